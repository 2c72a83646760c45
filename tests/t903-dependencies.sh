#!/bin/bash
#
# The library loads on a machine without a GPU: it needs no driver and no CUDA installation.
#
#   LIB=$PWD/build/lib/libpetscgpucsr.so tests/t903-dependencies.sh
# PETSc itself may be anywhere: the program that loads the library has loaded PETSc
if ldd "$LIB" | grep -v 'libpetsc[^ ]* => not found' | grep -E 'not found|libcuda|libcudart|libcublas|libcusparse|libnv'; then
  echo "$LIB asks for these"
  exit 1
fi

#!/bin/bash
#
# The library needs nothing that a machine without a GPU lacks: neither the driver nor a CUDA installation is among the libraries it asks for.
#
#   LIB=$PWD/build/lib/libpetscgpucsr.so tests/t903-dependencies.sh
# PETSc itself may be anywhere: whoever loads the library has it loaded
if ldd "$LIB" | grep -v 'libpetsc[^ ]* => not found' | grep -E 'not found|libcuda|libcudart|libcublas|libcusparse|libnv'; then
  echo "$LIB asks for these"
  exit 1
fi

#!/bin/bash
#
# The flavours of PETSc that a distribution has beside the usual one: 64-bit indices, also with complex numbers; with WHOLE=1 (make check-all) complex numbers alone too. Library, examples
# and converter are built in each, without CUDA and quickly. With 64-bit indices a sample of the tests runs; with WHOLE=1 all run, except the tests of files, packages and other programs. The
# folders stay, so that only changed files are built again.
#
#   BUILD=build tests/t909-flavours.sh
if [ ! -f makefile ] || [ "$BACKEND" = cuda ] || ! command -v pkg-config >/dev/null; then exit 77; fi
unset NVCC MAKEFLAGS MAKEOVERRIDES # `make check NVCC=` exports them
flavours=()
for name in ${WHOLE:+petsc-complex} petsc64-real petsc64-complex; do
  if [ -e "/usr/lib/petscdir/$name/lib/pkgconfig/PETSc.pc" ]; then flavours+=("$name"); fi
done
if [ ${#flavours[@]} = 0 ]; then exit 77; fi

# The parts with sums and solvers that meet each other's integers: products, halos of several ranks, sequences, solvers, multigrid on the device
tests=(t400-matmult t422-halo t450-sequences t610-gpuksp t640-multigrid)
sample='t400-matmult.standin.csr t400-matmult.ranks3 t422-halo.host_2 t422-halo.mpi_standin_host_vectors t450-sequences.ranks3 t610-gpuksp.standin.csr t610-gpuksp.ranks.csr t640-multigrid.separate t640-multigrid.five'

# flavour NAME TARGET ...: make the targets in a flavour
flavour() {
  local name=$1
  shift
  make -s -j2 NVCC= PETSC=PETSc PKG_CONFIG_PATH="/usr/lib/petscdir/$name/lib/pkgconfig" BUILD="$BUILD/$name" CFLAGS=-O0 "$@" >"$BUILD/$name.log" 2>&1 || { echo "make with $name:" && cat "$BUILD/$name.log" && return 1; }
}

# wide FOLDER: the converter there refuses a file of four rows with 2^62 entries each, whose total is 0 in 64 bits
wide() {
  local none='\x00\x00\x00\x00' many='\x40\x00\x00\x00\x00\x00\x00\x00'
  # shellcheck disable=SC2059 # the format is the file
  printf "$none\x00\x12\x7b\x50$none\x00\x00\x00\x04$many$none$none$many$many$many$many" >"$1/wide.petsc"
  "$1/bin/gpucsr-convert" "$1/wide.petsc" >"$1/wide.log" 2>&1
  if [ $? != 1 ] || ! grep -q 'more entries together than can be counted' "$1/wide.log"; then echo "rows of 2^62 entries:" && cat "$1/wide.log" && return 1; fi
}

failed=0
mkdir -p "$BUILD"
for name in "${flavours[@]}"; do
  flavour "$name" lib examples convert || failed=1
  if [ "$name" = petsc64-real ]; then
    if [ -n "$WHOLE" ]; then
      flavour "$name" tests || failed=1
      tests/run.sh BUILD="$BUILD/$name" without="t7 t8 t9" || failed=1
    else
      flavour "$name" "${tests[@]/#/$BUILD/$name/tests/}" "$BUILD/$name/tests/yield.so" || failed=1
      tests/run.sh BUILD="$BUILD/$name" JOBS=2 search="$sample" || failed=1
    fi
    wide "$BUILD/$name" || failed=1
  fi
done
exit $failed

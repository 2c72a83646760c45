#!/bin/bash
#
# The messages of make if something is missing: one line with the missing part and the remedy.
#
#   tests/t907-make.sh
if [ ! -f makefile ] || ! command -v pkg-config >/dev/null; then exit 77; fi
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

# says STATUS TEXT ARGUMENTS: make with ARGUMENTS ends with STATUS (0 or not), and says TEXT once
says() {
  local status=$1 text=$2
  shift 2
  make -s BUILD="$tmp/build" "$@" >"$tmp/out" 2>&1
  if [ $? = 0 ]; then ended=0; else ended=1; fi
  if [ $ended != "$status" ] || [ "$(grep -cF -- "$text" "$tmp/out")" != 1 ]; then
    echo "make $*: status $ended, should say once: $text" && cat "$tmp/out" && exit 1
  fi
}
says 1 'pkg-config does not know a PETSc named PETSc99' PETSC=PETSc99 -j2
says 1 'pkg-config does not know a PETSc named PETSc99' PETSC=PETSc99 deps
says 1 'this measures a GPU' NVCC= tune
says 1 'this measures a GPU' NVCC= bench
says 0 'not wanted (NVCC=): host backend alone' NVCC= info
says 0 'not found (PETSc99)' PETSC=PETSc99 info

# The kernels serve the libraries of all PETScs: existing kernels are not compiled again for another PETSc
if command -v nvcc >/dev/null && pkg-config --exists PETSc && other=$(pkg-config --list-all | sed -n 's/^\(PETSc64\|PETSc_complex\|petsc-complex\) .*/\1/p' | head -n 1) && [ -n "$other" ]; then
  make -s NVCC="$(command -v nvcc)" BUILD="$tmp/build" DEVICE="$tmp/device" -n lib >"$tmp/first" 2>/dev/null
  sed -n "s|.* -c \(src/[^ ]*\.cu\) -o \([^ ]*\).*|\2|p" "$tmp/first" | while read -r object; do
    mkdir -p "$(dirname "$object")" && touch "$object"
  done
  if [ "$(make -s NVCC="$(command -v nvcc)" BUILD="$tmp/build" DEVICE="$tmp/device" PETSC="$other" -n lib 2>/dev/null | grep -c ' -c src/.*\.cu ')" != 0 ]; then
    echo "make PETSC=$other compiles kernels that are there" && exit 1
  fi
fi

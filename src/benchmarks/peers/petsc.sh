#!/bin/sh
# Builds a PETSc with CUDA, whose aijcusparse is the peer of table.sh. Five minutes on 16 cores. It needs MPI, BLAS and LAPACK, and Python.
#
#   petsc.sh [-src FOLDER] [-out FOLDER] [-arch 90] [-jobs N]
#
#   -src    sources of PETSc; without the folder, git fetches https://gitlab.com/petsc/petsc, tag v3.24.6. Default OUT/petsc-source
#   -out    PETSc is installed into OUT/petsc. Default build/peers
#   -arch   compute capability
#   -jobs   of make; default: all cores
#
# Then: make PKG_CONFIG_PATH=OUT/petsc/lib/pkgconfig BUILD=build-cuda bench
set -eu
tag=v3.24.6 default=petsc-source
. "$(dirname "$0")/options.sh"
[ -d "$src" ] || git clone --depth 1 -b "$tag" https://gitlab.com/petsc/petsc "$src"
cd "$src"
unset PETSC_DIR PETSC_ARCH PETSC_OPTIONS
python3 ./configure PETSC_ARCH=arch --prefix="$out/petsc" --with-cc=mpicc --with-cxx=mpicxx --with-fc=0 --with-cuda=1 --with-cuda-dir="$cuda" --with-cuda-arch="$arch" --with-debugging=0 --with-x=0 --with-make-np="$jobs"
make PETSC_DIR="$PWD" PETSC_ARCH=arch MAKE_NP="$jobs" all
make PETSC_DIR="$PWD" PETSC_ARCH=arch install
echo "$out/petsc"

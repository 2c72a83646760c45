#!/bin/sh
# Builds hypre for one GPU and its driver, hypre.c, with MPI where mpicc is there. Nothing of PETSc is needed. About two minutes on 16 cores.
#
#   hypre.sh [-src FOLDER] [-out FOLDER] [-arch 90] [-jobs N]
#
#   -src    sources and build of hypre; without the folder, git fetches https://github.com/hypre-space/hypre, tag v3.1.0 (CUDA 13 needs at least 3.0.0).
#           Default OUT/hypre-source
#   -out    gets the driver: OUT/hypre. Default build/peers
#   -arch   compute capability
#   -jobs   of make; default: all cores
#
# The build uses src without src/test, src/docs, src/examples and src/FEI_mv. The driver's pools (cudaMallocAsync) replace Umpire's.
# Then: OUT/hypre lognormal7_64 lognormal7_128 lognormal27_96 elastic_56
set -eu
tag=v3.1.0 default=hypre-source
. "$(dirname "$0")/options.sh"
[ -d "$src" ] || git clone --depth 1 -b "$tag" https://github.com/hypre-space/hypre "$src"
src=$(cd "$src" && pwd)

mpi=--without-MPI cc=gcc cxx=g++
if command -v mpicc > /dev/null; then mpi=--with-MPI cc=mpicc cxx=mpicxx; fi
cd "$src/src"
[ -e config/Makefile.config ] || ./configure CC="$cc" CXX="$cxx" "$mpi" --disable-fortran --with-cuda --without-umpire --enable-device-malloc-async --with-cuda-home="$cuda" CUDA_HOME="$cuda" HYPRE_CUDA_SM="$arch"
make -j "$jobs"

# Beside the libraries, not among the stubs, is libcudart
lib=$(dirname "$(find -L "$cuda/lib64" "$cuda/lib" "$cuda/targets" -name libcusparse.so ! -path '*/stubs/*' 2>/dev/null | head -n 1)")
"$cc" -std=gnu99 -O2 -fopenmp -I"$src/src/hypre/include" -I"$cuda/include" -c "$here/hypre.c" -o "$out/hypre.o"
"$cxx" -fopenmp "$out/hypre.o" -o "$out/hypre" -L"$src/src/hypre/lib" -lHYPRE -L"$lib" -lcusparse -lcublas -lcurand -lcudart -lm -Wl,--disable-new-dtags -Wl,-rpath,"$lib"
echo "$out/hypre"

#!/bin/sh
# Builds AmgX for one GPU and its driver, amgx.c. Nothing of PETSc is needed. About ten minutes on 16 cores.
#
#   amgx.sh [-src FOLDER] [-out FOLDER] [-arch 90] [-jobs N]
#
#   -src    sources of AmgX; without the folder, git fetches https://github.com/NVIDIA/AMGX, tag v2.5.0, the first version for CUDA 13. Default OUT/AMGX
#           Classical coarsening fails in CUDA 13.0's build (AmgX' issue 380); aggregation works
#   -out    gets the build, and the driver: OUT/amgx. Default build/peers
#   -arch   compute capability
#   -jobs   of make; default: all cores
#
# The build uses CMakeLists.txt, include, src without src/tests, and external of the sources; examples/CMakeLists.txt may be empty.
# Then: OUT/amgx lognormal7_64 lognormal7_128 lognormal27_96 elastic_56
set -eu
tag=v2.5.0 default=AMGX
. "$(dirname "$0")/options.sh"
# A library built with the caller's --compress-mode=none, and stripped, failed with "invalid device function"
unset NVCC_APPEND_FLAGS NVCC_PREPEND_FLAGS
[ -d "$src" ] || git clone --depth 1 -b "$tag" https://github.com/NVIDIA/AMGX "$src"
src=$(cd "$src" && pwd)

cmake -S "$src" -B "$out/amgx-build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_ARCHITECTURES="$arch" -DCMAKE_NO_MPI=1 -DCMAKE_CUDA_COMPILER="$nvcc"
cmake --build "$out/amgx-build" --target amgxsh -j "$jobs"

# An old-style RPATH also serves the libraries that AmgX needs
lib=$(dirname "$(find -L "$cuda/lib64" "$cuda/lib" "$cuda/targets" -name libcudart.so 2>/dev/null | head -n 1)")
${CC:-gcc} -std=gnu99 -O2 -fopenmp -I"$src/include" -I"$cuda/include" "$here/amgx.c" -o "$out/amgx" -L"$out/amgx-build" -lamgxsh -L"$lib" -lcudart -lm \
  -Wl,--disable-new-dtags -Wl,-rpath,"$out/amgx-build" -Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib" -Wl,--allow-shlib-undefined
echo "$out/amgx"

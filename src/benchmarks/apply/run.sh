#!/bin/bash
#
# The time that an application of cuDSS' factor takes beside the solve, inside host loops, and whether a CUDA graph can hold the solve.
#
#   BUILD=build src/benchmarks/apply/run.sh [OPTIONS of apply ...]
#
# BUILD has what make lib benches makes, and make cudss' library. STANDIN=1 takes the stand-in library of the tests: a check of this script without a GPU.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd) && cd "$root" || exit 2
BUILD=${BUILD:-build} STANDIN=${STANDIN:-}
case $BUILD in /*) ;; *) BUILD=$root/$BUILD ;; esac
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
export OMPI_MCA_ess_singleton_isolated=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
sizes=(32 100 316 1000)
if [ "$STANDIN" ]; then
  sizes=(10) standin='-gpucsr_debug_standin 1'
  mpicc -shared -fPIC -O1 -o "$tmp/libcudss.so.1" tests/fake/cudss.c -lm || exit 1
  real=$tmp/libcudss.so.1
else
  real=$(ls "$BUILD"/cudss/nvidia/cu1?/lib/libcudss.so.1 | head -n 1)
fi
mpicc -shared -fPIC -O2 -Wall -o "$tmp/execute.so" src/benchmarks/peers/cudss.c -Wl,--no-as-needed "$real" -Wl,-rpath,"$(dirname "$real")" -ldl || exit 1
echo '# method rows applications: application execute difference, microseconds'
failed=0
for m in "${sizes[@]}"; do
  for method in cg gmres gpucg gpugmres; do
    # shellcheck disable=SC2086 # the stand-in is words
    APPLY_CAPTURE=$([ $method = cg ] && echo 1) "$BUILD/bench/apply" -dll_append "$BUILD/lib/libpetscgpucsr.so" $standin -mat_type gpucsr -vec_type gpu -mat_gpucsr_backend cuda -mat_gpucsr_small_on_host 0 \
      -pc_factor_mat_solver_type cudss -execute "$tmp/execute.so" -m "$m" -ksp_type $method "$@" || failed=1
  done
done
exit $failed

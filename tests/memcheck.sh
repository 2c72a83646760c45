#!/bin/bash
#
# compute-sanitizer's four tools on a GPU, over programs that run every kernel, every format's build, vectors and solvers. Prints a line a run that is not clean and the counts.
#
#   BUILD=build tests/memcheck.sh [memcheck racecheck initcheck synccheck]
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) && cd "$root" || exit 2
BUILD=${BUILD:-build} LIB=$PWD/$BUILD/lib/libpetscgpucsr.so passed=0 failed=0
command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not there: it comes with the CUDA Toolkit" >&2 && exit 2; }
log=$(mktemp) && trap 'rm -f "$log"' EXIT
load="-dll_append $LIB -mat_gpucsr_backend cuda"
runs=(
  "t000-sys -backend cuda"
  "t303-stencil"
  "t400-matmult $load -mat_gpucsr_format csr"
  "t400-matmult $load -mat_gpucsr_format sell_sorted -mat_gpucsr_precision single"
  "t400-matmult $load -mat_gpucsr_format dense"
  "t400-matmult $load -mat_gpucsr_format bcsr2x2"
  "t400-matmult $load -mat_gpucsr_format coo"
  "t400-matmult $load -mat_gpucsr_format hyb"
  "t400-matmult $load -mat_gpucsr_format jad"
  "t400-matmult $load -mat_gpucsr_format dia"
  "t400-matmult $load -mat_gpucsr_format bitdense"
  "t400-matmult $load -mat_gpucsr_format block4x64"
  "t411-dense $load -mat_gpucsr_format csr -mat_gpucsr_transpose_format csr"
  "t500-vec $load"
  "t201-steps -backend cuda"
  "t640-multigrid $load"
  "t610-gpuksp $load -mat_gpucsr_format csr"
  "t610-gpuksp $load -mat_gpucsr_format csr -path graph"
  "t616-gpugmres $load -mat_gpucsr_format csr"
)
for tool in "${@:-memcheck racecheck initcheck synccheck}"; do
  for run in "${runs[@]}"; do
    read -ra words <<<"$run"
    # shellcheck disable=SC2086 # tools are words
    for t in $tool; do
      if compute-sanitizer --tool "$t" --error-exitcode 9 "$BUILD/tests/${words[0]}" "${words[@]:1}" >"$log" 2>&1; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAILED compute-sanitizer --tool $t $BUILD/tests/$run"
        grep -E '^=========' "$log" | head -n 12
      fi
    done
  done
done
echo "$passed passed, $failed failed"
((failed == 0))

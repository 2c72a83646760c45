#!/bin/bash
#
# compute-sanitizer's four tools on a GPU, over programs that run every kernel, every format's build, vectors and solvers. Prints a line a run that is not clean and the counts.
#
#   BUILD=build tests/memcheck.sh [memcheck racecheck initcheck synccheck]
#
# JOBS of them run at once, 1 unless told; SEARCH takes the runs whose line holds this text, LIMIT is the seconds that one may take.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) && cd "$root" || exit 2
BUILD=${BUILD:-build} LIB=$PWD/$BUILD/lib/libpetscgpucsr.so JOBS=${JOBS:-1} LIMIT=${LIMIT:-1800}
command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not there: it comes with the CUDA Toolkit" >&2 && exit 2; }
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
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

# one TOOL NUMBER RUN
one() {
  local log=$tmp/$1.$2 words
  read -ra words <<<"$3"
  if timeout -k 5 "$LIMIT" compute-sanitizer --tool "$1" --error-exitcode 9 "$BUILD/tests/${words[0]}" "${words[@]:1}" >"$log" 2>&1; then touch "$log.passed"; else
    touch "$log.failed"
    echo "FAILED compute-sanitizer --tool $1 $BUILD/tests/$3"
    grep -E '^=========' "$log" | head -n 12
  fi
}

if [ $# = 0 ]; then set -- memcheck racecheck initcheck synccheck; fi
for tool; do
  for k in "${!runs[@]}"; do
    if [[ ${runs[k]} != *${SEARCH:-}* ]]; then continue; fi
    while (($(jobs -rp | wc -l) >= JOBS)); do wait -n; done
    one "$tool" "$k" "${runs[k]}" &
  done
done
wait
failed=$(find "$tmp" -name '*.failed' | wc -l)
echo "$(find "$tmp" -name '*.passed' | wc -l) passed, $failed failed"
((failed == 0))

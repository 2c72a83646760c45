#!/bin/bash
#
# compute-sanitizer's four tools on a GPU, over programs that run every kernel, every format's build, vectors and solvers. Prints a line for each run that is not clean, and the counts.
#
#   BUILD=build tests/memcheck.sh [memcheck racecheck initcheck synccheck]
#
# JOBS: runs at once (1); SEARCH: only the runs whose line matches this pattern; LIMIT: seconds for one run.
#
# Two reports of the tools are expected and are no failure. The number of runs with either is printed:
#   initcheck, csr_vector_kernel,   a thread reads 2 or 4 entries in one load. The last load may reach behind the last entry, into what pads every allocation; its value is not used. All reads of
#              inspect_kernel       other kernels count, and so do reads of 4 bytes by these two
#   racecheck, ranges_kernel        a warp polls results in shared memory that other warps write: the head of src/mat/impls/gpucsr/blackbox/triangles/solve.cu
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd) && cd "$root" || exit 2
BUILD=${BUILD:-build} LIB=$PWD/$BUILD/lib/libpetscgpucsr.so JOBS=${JOBS:-1} LIMIT=${LIMIT:-1800}
command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer is not there: it comes with the CUDA Toolkit" >&2 && exit 2; }
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
load="-dll_append $LIB -mat_gpucsr_backend cuda"
runs=(
  "t000-sys -backend cuda -gpucsr_debug_fault pagelock:0 -share 0,3"
  "t000-sys -backend cuda -gpucsr_debug_fault pagelock:0 -share 1,3"
  "t000-sys -backend cuda -gpucsr_debug_fault pagelock:0 -share 2,3"
  "t400-matmult $load -mat_gpucsr_format csr"
  "t400-matmult $load -mat_gpucsr_format sell_sorted -mat_gpucsr_precision single"
  "t400-matmult $load -mat_gpucsr_format bitdense"
  "t400-matmult $load -mat_gpucsr_format bcsr2x2"
  "t400-matmult $load -mat_gpucsr_format coo"
  "t400-matmult $load -mat_gpucsr_format hyb"
  "t400-matmult $load -mat_gpucsr_format jad"
  "t400-matmult $load -mat_gpucsr_format dia"
  "t400-matmult $load -mat_gpucsr_format bitdense"
  "t400-matmult $load -mat_gpucsr_format block4x64"
  "t411-dense $load -mat_gpucsr_format csr -mat_gpucsr_transpose_format csr"
  "t500-vec $load"
  "t201-steps -backend cuda -side 40 -share 0,4"
  "t201-steps -backend cuda -side 40 -share 1,4"
  "t201-steps -backend cuda -side 40 -share 2,4"
  "t201-steps -backend cuda -side 40 -share 3,4"
  "t450-sequences -sequences 2 $load -mat_gpucsr_format csr"
  "t450-sequences -sequences 2 $load -vec_type gpu"
  "t210-spgemm -backend cuda"
  "t430-coo $load -mat_gpucsr_product_least 0 -vec_type gpu -mat_gpucsr_master device"
  "t432-inplace $load -mat_gpucsr_product_least 0 -vec_type gpu -mat_gpucsr_master device"
  "t630-factor $load -most 2000 -mat_gpucsr_solve_kernel ranges"
  "t630-factor $load -most 2000 -mat_gpucsr_solve_kernel syncfree"
  "t640-multigrid $load"
  "t660-gpuamg $load -small"
  "t660-gpuamg $load -small -our_pc_gpuamg_precision single"
  "t610-gpuksp $load -mat_gpucsr_format csr"
  "t610-gpuksp $load -mat_gpucsr_format csr -path graph"
  "t616-gpugmres $load -mat_gpucsr_format csr"
  # solves of two ranks, so small that the tools end
  "2 t422-halo $load -mat_gpucsr_halo peer -vec_type gpu -cases 1"
  "2 t617-gpuksp-peers $load -mat_gpucsr_format dia -sizes 6 -seeds 1 -only 0"
  "2 t617-gpuksp-peers $load -mat_gpucsr_format dia -sizes 6 -seeds 1 -only 8 -path graph"
)

# meant TOOL LOG: it names something, and all of it is in the list above
meant() {
  grep -E -A1 '^========= (Uninitialized|Invalid|Error|Warning|Program hit|Barrier|Divergent|Leaked|Misaligned|Out-of-range)' "$2" | awk -v tool="$1" '
    /^========= [A-Z]/ { head = $0; next }
    head != "" {
      what = head " " $0
      if (tool == "initcheck" && what ~ /Uninitialized __global__ memory read of size (8|16) bytes.* at void (csr_vector|inspect)_kernel</) known++
      else if (tool == "racecheck" && what ~ /Race reported between (Read|Write) access at ranges_kernel.*and (Read|Write) access at ranges_kernel/) known++
      else other++
      head = ""
    }
    END { exit !(known && !other && head == "") }'
}

# one TOOL NUMBER RUN
one() {
  local log=$tmp/$1.$2 words status launcher=
  read -ra words <<<"$3"
  if [[ ${words[0]} =~ ^[0-9]+$ ]]; then # so many ranks
    launcher="${MPIEXEC:-mpiexec --oversubscribe} -n ${words[0]}"
    words=("${words[@]:1}")
  fi
  # shellcheck disable=SC2086 # the launcher is words
  timeout -k 5 "$LIMIT" $launcher compute-sanitizer --tool "$1" --error-exitcode 9 "$BUILD/tests/${words[0]}" "${words[@]:1}" >"$log" 2>&1
  status=$?
  if [ $status = 0 ]; then touch "$log.passed"; elif [ $status = 9 ] && meant "$1" "$log"; then touch "$log.passed" "$log.meant"; else
    touch "$log.failed"
    echo "FAILED (status $status) compute-sanitizer --tool $1 $BUILD/tests/$3"
    grep -E '^=========' "$log" | head -n 12
  fi
}

if [ $# = 0 ]; then set -- memcheck racecheck initcheck synccheck; fi
for tool; do
  for k in "${!runs[@]}"; do
    if [[ ! ${runs[k]} =~ ${SEARCH:-.} ]]; then continue; fi
    while (($(jobs -rp | wc -l) >= JOBS)); do wait -n; done
    one "$tool" "$k" "${runs[k]}" &
  done
done
wait
failed=$(find "$tmp" -name '*.failed' | wc -l)
echo "$(find "$tmp" -name '*.passed' | wc -l) passed ($(find "$tmp" -name '*.meant' | wc -l) of them with what is meant), $failed failed"
((failed == 0))

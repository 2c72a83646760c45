#!/bin/bash
#
# Random sequences of operations of Mat, Vec and KSP beside PETSc's own types (tests/t450-sequences.c).
#
#   tests/fuzz/sequences.sh [BUILD [SEQUENCES [BACKEND]]]        build, 20000 a set-up, host      (make fuzz FUZZ=20000 BACKEND=cuda)
#
# A set-up a line: ranks, then options. Each gets a seed of its own, and says when it is done; the last line counts.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
build=${1:-build} sequences=${2:-20000} backend=${3:-host} seed=${SEED:-$RANDOM}
read -ra launcher <<<"${MPIEXEC:-mpiexec --allow-run-as-root --oversubscribe}"
lib=$(realpath "$build")/lib/libpetscgpucsr.so passed=0 failed=0 total=0
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
log=$(mktemp) && trap 'rm -f "$log"' EXIT
while read -r ranks options; do
  launch=()
  count=$sequences
  if [ "$ranks" != 1 ]; then
    launch=("${launcher[@]}" -n "$ranks")
    count=$((sequences / 10))
  fi
  seed=$((seed + 1))
  # shellcheck disable=SC2086 # options are words
  if PETSC_OPTIONS="-dll_append $lib -mat_gpucsr_backend $backend $options" "${launch[@]}" "$build/tests/t450-sequences" -sequences "$count" -seed $seed >"$log" 2>/dev/null </dev/null && [ ! -s "$log" ]; then
    passed=$((passed + 1)) total=$((total + count))
    echo "$count sequences, $ranks ranks, seed $seed: $options"
  else
    failed=$((failed + 1))
    echo "FAILED with $ranks ranks, seed $seed: $options" && cat "$log"
  fi
done <<END
1 -vec_type standard
1 -vec_type gpu -vec_gpu_separate
1 -mat_gpucsr_format csr
1 -mat_gpucsr_format csr -vec_type gpu -vec_gpu_separate
1 -mat_gpucsr_format sell -vec_gpu_separate
1 -mat_gpucsr_format sell_sorted -vec_type gpu -vec_gpu_separate
1 -mat_gpucsr_format coo -vec_gpu_separate
1 -mat_gpucsr_format hyb -vec_type gpu -vec_gpu_separate
1 -mat_gpucsr_format jad -vec_gpu_separate
1 -mat_gpucsr_format bcsr2x2 -vec_type gpu -vec_gpu_separate
1 -mat_gpucsr_format bitdense -vec_gpu_separate
1 -mat_gpucsr_format csr -mat_gpucsr_precision auto -mat_gpucsr_transpose_at_assembly -vec_type gpu -vec_gpu_separate
1 -mat_type aij -mat_seqaij_type seqaijgpucsr
2 -mat_type aij -mat_seqaij_type seqaijgpucsr -mat_gpucsr_format csr
2 -mat_gpucsr_format csr -vec_type gpu -vec_gpu_separate
3 -mat_gpucsr_format sell -vec_gpu_separate
3 -vec_type gpu -vec_gpu_separate
END
echo "$total sequences"
echo "$passed passed, $failed failed"
((failed == 0))

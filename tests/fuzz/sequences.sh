#!/bin/bash
#
# Random sequences of operations of Mat, Vec and KSP beside PETSc's own types (tests/t450-sequences.c).
#
#   tests/fuzz/sequences.sh [BUILD [SEQUENCES [BACKEND]]]        build, 20000 a set-up, host      (make fuzz FUZZ=20000 BACKEND=cuda)
#
# A set-up a line: ranks, then options. Each gets a seed of its own, and says when it is done; the last line counts. JOBS of them run at once, 1 unless told; SEED is the first one's seed.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
build=${1:-build} sequences=${2:-20000} backend=${3:-host} seed=${SEED:-$RANDOM}
read -ra launcher <<<"${MPIEXEC:-mpiexec --allow-run-as-root --oversubscribe}"
lib=$(realpath "$build")/lib/libpetscgpucsr.so
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

# one RANKS COUNT SEED OPTIONS
one() {
  local launch=() log=$tmp/$3
  if [ "$1" != 1 ]; then launch=("${launcher[@]}" -n "$1"); fi
  # shellcheck disable=SC2086 # options are words
  if PETSC_OPTIONS="-dll_append $lib -mat_gpucsr_backend $backend $4" "${launch[@]}" "$build/tests/t450-sequences" -sequences "$2" -seed "$3" >"$log" 2>/dev/null </dev/null && [ ! -s "$log" ]; then
    echo "$2" >"$log.passed"
    echo "$2 sequences, $1 ranks, seed $3: $4"
  else
    touch "$log.failed"
    echo "FAILED with $1 ranks, seed $3: $4" && cat "$log"
  fi
}

while read -r ranks options; do
  seed=$((seed + 1)) count=$sequences
  if [ "$ranks" != 1 ]; then count=$((sequences / 10)); fi
  while (($(jobs -rp | wc -l) >= ${JOBS:-1})); do wait -n; done
  one "$ranks" "$count" "$seed" "$options" &
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
wait
failed=$(find "$tmp" -name '*.failed' | wc -l)
cat "$tmp"/*.passed 2>/dev/null | awk '{ n += $1 } END { print n + 0, "sequences" }'
echo "$(find "$tmp" -name '*.passed' | wc -l) passed, $failed failed"
((failed == 0))

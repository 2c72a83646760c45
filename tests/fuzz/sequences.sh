#!/bin/bash
#
# Random sequences of operations of Mat, Vec and KSP beside PETSc's own types (tests/t450-sequences.c).
#
#   tests/fuzz/sequences.sh [BUILD [SEQUENCES [BACKEND]]]        build, 20000 a set-up, host      (make fuzz FUZZ=20000 BACKEND=cuda)
#
# A set-up a line: ranks, then options. Each gets a seed of its own, and prints a line at its end; the last line counts. JOBS set-ups run at once (default 1); the first takes SEED.
# SECONDS_EACH ends each set-up after as many seconds, and DEVICES="0 1" deals the set-ups out to these GPUs. Processes on a GPU take turns, and each needs a second to begin: few at
# once, with many sequences each, get most done.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
build=${1:-build} sequences=${2:-20000} backend=${3:-host} seed=${SEED:-$RANDOM}
read -ra launcher <<<"${MPIEXEC:-mpiexec --allow-run-as-root --oversubscribe}"
lib=$(realpath "$build")/lib/libpetscgpucsr.so
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

# one RANKS COUNT SEED OPTIONS
one() {
  local launch=() log=$tmp/$3 done=$2 limit=
  if [ -n "${SECONDS_EACH:-}" ]; then limit="-seconds $SECONDS_EACH"; fi
  if [ "$1" != 1 ]; then launch=("${launcher[@]}" -n "$1"); fi
  # shellcheck disable=SC2086 # options are words
  if PETSC_OPTIONS="-dll_append $lib -mat_gpucsr_backend $backend $4" "${launch[@]}" "$build/tests/t450-sequences" -sequences "$2" -seed "$3" $limit >"$log" 2>/dev/null </dev/null && ! grep -qvE '^[0-9]+ sequences$' "$log"; then
    if [ -n "$limit" ]; then done=$(cut -d' ' -f1 "$log"); fi
    echo "$done" >"$log.passed"
    echo "$done sequences, $1 ranks, seed $3: $4"
  else
    touch "$log.failed"
    echo "FAILED with $1 ranks, seed $3: $4" && cat "$log"
  fi
}

read -ra devices <<<"${DEVICES:-}"
while read -r ranks options; do
  seed=$((seed + 1)) count=$sequences
  case "$ranks $backend $options" in [2-9]*"-mat_gpucsr_master device"*-mat_seqaij_type*) continue ;; esac # docs/program.md: MATMPIAIJ reads around it
  if [ "$ranks" != 1 ]; then count=$((sequences / 10)); fi
  while (($(jobs -rp | wc -l) >= ${JOBS:-1})); do wait -n; done
  if [ ${#devices[@]} -gt 0 ]; then export CUDA_VISIBLE_DEVICES=${devices[seed % ${#devices[@]}]}; fi
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
1 -mat_gpucsr_precision mixed -vec_type gpu -vec_gpu_separate
1 -mat_gpucsr_precision single -vec_type gpu -vec_gpu_separate
1 -mat_gpucsr_precision auto -vec_gpu_separate
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

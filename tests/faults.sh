#!/bin/bash
#
# Each call of a device fails (tests/t010-faults.c), in all programs, on one rank and on one of several.
#
#   tests/faults.sh [BUILD [EVERY [SELECT]]]        build, every call, all programs      (SELECT: lines that hold this text)
#
# Each line counts faults, runs, wrong, hung, leaked, ended in an allowed error. An error ends all of several ranks, so the next fault
# needs a new start. A second number in front of a row is its sample if EVERY is 1, because all faults take long.
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
build=${1:-build} all=${2:-1} select=${3:-}
read -ra launcher <<<"${MPIEXEC:-mpiexec --allow-run-as-root --oversubscribe}"
export OMP_NUM_THREADS=1 MALLOC_PERTURB_=1 # memory that nobody wrote is no zero
log=$(mktemp) && trap 'rm -f "$log"' EXIT
sum=(0 0 0 0 0 0)

# one RANKS EVERY OPTIONS...: all n of one kind; adds to row
one() {
  local ranks=$1 every=$2 from=1 status launch=() word
  shift 2
  if [ "$ranks" != 1 ]; then launch=("${launcher[@]}" -n "$ranks"); fi
  while [ "$from" ]; do
    "${launch[@]}" "$build/tests/t010-faults" "$@" -from "$from" -every "$every" -count -limit 120 >"$log" 2>&1 </dev/null
    status=$?
    word=$(grep -E '^[0-9]+ faults in' "$log" | tail -n 1)
    read -r faults _ _ runs wrong leaked errors < <(sed -E 's/,//g; s/ in ([0-9]+) runs:/ in \1 runs/; s/^([0-9]+) faults in ([0-9]+) runs ([0-9]+) wrong ([0-9]+) leaked ([0-9]+) ended.*/\1 _ _ \2 \3 \4 \5/' <<<"$word")
    if [ -z "$word" ]; then
      hung=$((hung + 1)) && echo "no end: $ranks ranks, $*, from $from (status $status)" && tail -n 5 "$log" && break
    fi
    if [ "$wrong$leaked" != 00 ]; then echo "$ranks ranks, $*:" && grep -m 3 '^-program' "$log" | cut -c1-400; fi
    row=($((row[0] + faults)) $((row[1] + runs)) $((row[2] + wrong)) $((row[3])) $((row[4] + leaked)) $((row[5] + errors)))
    from=$(sed -n 's/.*stopped at \([0-9]*\)$/\1/p' <<<"$word")
    if [ "$from" ]; then from=$((from + every)); fi
  done
}

while read -r ranks every options; do
  if [[ "$ranks $options" != *$select* ]]; then continue; fi
  row=(0 0 0 0 0 0) hung=0
  read -ra words <<<"$options"
  for kind in memory pagelock copy launch event synchronize properties device host; do
    on=false
    if [ $kind = device ]; then on=true; fi
    one "$ranks" $((every * all)) "${words[@]}" -kind $kind -on $on
  done
  row[3]=$hung
  echo "| $ranks | $((every * all)) | \`$options\` | ${row[1]} | ${row[0]} | ${row[2]} | ${row[3]} | ${row[4]} | ${row[5]} |"
  for k in 0 1 2 3 4 5; do sum[k]=$((sum[k] + row[k])); done
done <<END
1 1 -program products
1 1 -program products -backend cuda
1 1 -program products -vectors gpu
1 1 -program columns
1 1 -program columns -vectors gpu
1 1 -program vectors
1 1 -program learn
1 1 -program formats
1 1 -program pieces
1 1 -program sparse
1 1 -program factors
1 1 -program gamg
1 1 -program gpuamg
1 1 -program gpuamg -backend cuda
1 1 -program solvers
1 1 -program solvers -vectors gpu
1 1 -program solvers -backend cuda
2 1 -program products -rank 1
2 1 -program products -rank 1 -backend cuda
2 1 -program products -rank 0 -vectors gpu
2 1 -program columns -rank 1
2 1 -program vectors -rank 0
2 1 -program learn -rank 1
2 3 -program formats -rank 1
2 1 -program factors -rank 1
2 7 -program gamg -rank 1
2 7 -program gpuamg -rank 1
2 7 -program solvers -rank 1
3 1 -program products -rank 1
3 1 -program columns -rank 2
3 1 -program vectors -rank 2
3 3 -program factors -rank 2
3 11 -program gamg -rank 2
3 11 -program gpuamg -rank 2
3 11 -program solvers -rank 0
END
echo "| in all | | | ${sum[1]} | ${sum[0]} | ${sum[2]} | ${sum[3]} | ${sum[4]} | ${sum[5]} |"
((sum[2] + sum[3] + sum[4] == 0))

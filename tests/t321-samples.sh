#!/bin/bash
#
# A truncated sample file, compressed or not, gives one clear line in each program that reads sample files; the program then finds the built-in profile. Skipped without NumPy. ROOT/tests/run.sh runs it.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
python3 -c 'import numpy' 2>/dev/null || exit 77
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
kept=docs/results/survey-2026-11-21-samples.txt.xz failed=0

# says FILE TEXT: the reader ends with this line alone
says() {
  python3 src/benchmarks/papers/clock.py -o "$tmp" "$1" >"$tmp/out" 2>&1 && echo "$1: is taken" && failed=1
  if ! grep -qF -- "$2" "$tmp/out" || (($(wc -l <"$tmp/out") != 1)); then
    echo "$1: should say in one line: $2" && cat "$tmp/out"
    failed=1
  fi
}

xz -dc $kept | head -3 | head -c -20 >"$tmp/cut.txt"
says "$tmp/cut.txt" "line 3 is no sample, or was cut short: spmv -samples writes one anew"
head -c 2000 $kept >"$tmp/cut.xz"
says "$tmp/cut.xz" "ended before the end-of-stream marker"
says "$tmp/none.txt" "No such file"
PYTHONPATH=src/benchmarks/papers python3 -c 'import samples; assert samples.profile()' || failed=1
exit $failed

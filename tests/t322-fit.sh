#!/bin/bash
#
# fit: samples of two runs are joined, the extra time of a run's launches is taken off, and products with few timed pairs are not judged. Truncated files, packed or not, and foreign
# files give an error with the place. Skipped where the program is not built. ROOT/tests/run.sh runs it.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
fit=${BUILD:-build}/bench/fit
# A build without CUDA makes it here
if [ ! -x "$fit" ] && ! grep -qs GPUCSR_HAVE_CUDA "${BUILD:-build}/flags"; then make -s NVCC= BUILD="${BUILD:-build}" "$fit" 2>/dev/null; fi
if [ ! -x "$fit" ] || ! command -v xz >/dev/null; then exit 77; fi
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
kept=docs/results/later-samples.txt.xz failed=0

# says TEXT FILE ...: fit of these files prints this
says() {
  local text=$1
  shift
  "$fit" -pairs 3 -o "$tmp/profile" "$@" >"$tmp/out" 2>&1
  also "$text"
}

# also TEXT: the run before printed this too
also() {
  if ! grep -qF -- "$1" "$tmp/out"; then
    echo "fit should say: $1" && grep -v "PETSC ERROR: #" "$tmp/out" | head -8
    failed=1
  fi
}

# Two matrices by the formats csr and ell, and the same half a microsecond later
xz -dc $kept | grep -E '^(nos3|sherman3) N double (csr|ell) ' >"$tmp/first.txt"
awk '{$6 += 0.5; $7 += 0.5; print}' "$tmp/first.txt" >"$tmp/second.txt"
xz -k "$tmp/second.txt"
n=$(wc -l <"$tmp/first.txt")
says "second.txt.xz: 0.500 us longer than before" "$tmp/first.txt" "$tmp/second.txt.xz"
also "$n samples of 2 products, 2 of them judged"
cp "$tmp/profile" "$tmp/both"
says "$n samples of 2 products" "$tmp/first.txt"
if ! cmp -s "$tmp/profile" "$tmp/both"; then echo "half a microsecond was not taken off" && diff "$tmp/profile" "$tmp/both" | head -4 && failed=1; fi
if [ "$(head -1 "$tmp/profile")" != "gpucsr-profile 6" ]; then echo "no profile: $(head -1 "$tmp/profile")" && failed=1; fi
grep ' csr csr_vector8 ' "$tmp/first.txt" | sed 's/^/other_/' >"$tmp/few.txt"
says "4 products, 2 of them judged" "$tmp/first.txt" "$tmp/few.txt"
head -c -20 "$tmp/first.txt" >"$tmp/cut.txt"
says "cut.txt, line $n: cut short; spmv -samples writes the file anew" "$tmp/cut.txt"
head -c 3000 $kept >"$tmp/cut.txt.xz"
says "cut short" "$tmp/cut.txt.xz"
says "none.txt: cannot be read" "$tmp/none.txt"
says "No samples" /dev/null
exit $failed

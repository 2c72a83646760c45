#!/bin/bash
#
# gpucsr-convert: around through every format the matrix stays the same, by its checksum and by what PETSc loads; sorting by files gives what sorting in
# memory does; what cannot be converted leaves no file behind.
#
#   BUILD=build tests/t752-convert.sh
convert=$(realpath "$BUILD/bin/gpucsr-convert") files=$(realpath "$BUILD/tests/t750-files") data=$(realpath share/datasets)
if [ ! -x "$convert" ]; then echo "$convert is not built: make convert" && exit 1; fi
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 2
failed=0

fail() {
  echo "$@"
  failed=1
}

# sum FILE OPTIONS ...: the checksum of the matrix
sum() { timeout 60 "$convert" "$@" 2>err | sed -n 's/^checksum *//p'; }

complex=$("$files" -f "$data/ash219.mtx" -print | grep -c 'i')
for file in ash219.mtx gr_30_30.mtx bcsstk27.petsc wiki-Vote.petsc lp_afiro.mtx; do
  if [ "$complex" != 0 ] && [[ $file = *.petsc ]]; then continue; fi
  first=$(sum "$data/$file" a.rb)
  second=$(sum a.rb b.petsc)
  third=$(sum b.petsc c.mtx -threads 3)
  fourth=$(sum c.mtx d.svm -memory 1)
  fifth=$(sum d.svm e.petsc -columns "$(timeout 60 "$convert" c.mtx | sed -n 's/^columns *\([0-9]*\),.*/\1/p')")
  if [ -z "$first" ] || [ "$first $first $first $first" != "$second $third $fourth $fifth" ]; then fail "$file: checksums $first, as Rutherford-Boeing $second, as PETSc $third, as Matrix Market $fourth, as LIBSVM $fifth"; cat err; fi
  if [[ $file = *.petsc ]] && ! cmp -s "$data/$file" b.petsc; then fail "$file: not the same file after a round"; fi
  timeout 60 "$files" -f c.mtx -reference b.petsc || fail "$file: MatLoad() reads another matrix"
done

# Entries beyond the memory allowed are sorted by files: 60000 of them in random order, some twice, both halves of a symmetric matrix
{
  echo '%%MatrixMarket matrix coordinate real symmetric' && echo '5000 5000 60000'
  awk 'BEGIN { srand(7); for (k = 0; k < 60000; k++) { i = int(rand() * 5000) + 1; j = int(rand() * i) + 1; print i, j, k % 100 } }'
} >random.mtx
whole=$(sum random.mtx a.petsc)
parts=$(sum random.mtx b.petsc -memory 1)
if [ -z "$whole" ] || [ "$whole" != "$parts" ] || ! cmp -s a.petsc b.petsc; then fail "random.mtx: checksum $whole in memory, $parts by files"; fi
if ! timeout 60 "$convert" random.mtx | grep -q '^square *symmetric,'; then fail "random.mtx: is symmetric, and not told to be"; fi

# Labels go along, qid as far as text does; an index 0 far behind the rows that had none makes all of them begin with 0
printf '+1 qid:1 1:0.5 3:-2e-1 # one\r\n\r\n-1.5 qid:2 2:1   4:.25\t\r\n' >labels.svm
timeout 60 "$convert" -quiet labels.svm labels.petsc 2>err && grep -q 'numbers after qid: are not kept' err || fail "labels.svm to PETSc: no word about qid: $(cat err)"
got=$("$files" -f labels.petsc -print)
if [ "$complex" = 0 ] && [ "$got" != '2x4; 0 1: 0=0.5 2=-0.20000000000000001; 1 -1.5: 1=1 3=0.25' ]; then fail "labels.petsc holds $got"; fi
timeout 60 "$convert" -quiet labels.svm again.svm && [ "$(cat again.svm)" = $'1 qid:1 1:0.5 3:-0.2\n-1.5 qid:2 2:1 4:0.25' ] || fail "labels.svm became $(cat again.svm)"
{ yes '1 1:1 2:2' | head -n 3000000; echo '2 0:5'; } >late.svm
got=$(timeout 120 "$convert" -base 0 late.svm late.petsc | sed -n 's/^checksum *//p') && rm late.petsc
if [ "$got" != "$(timeout 120 "$convert" late.svm | sed -n 's/^checksum *//p')" ] || [ -z "$got" ]; then fail "late.svm: the base of the indices is told wrong"; fi
rm late.svm

# Statistics of a matrix that can be counted
printf '%%%%MatrixMarket matrix coordinate real general\n4 3 5\n1 1 1\n1 2 -2.5\n3 3 0\n4 1 7\n4 2 1\n' >small.mtx
expected='rows        4, 1 of them empty
columns     3, 0 of them empty
entries     5, 41.67% of the matrix; 1 are zero
row length  0 to 2, 1.25 on average, deviation 0.8292
column      at most 2 entries
values      -2.5 to 7, least size 1'
got=$(timeout 60 "$convert" small.mtx | sed -n '2,7p')
if [ "$got" != "$expected" ]; then fail "small.mtx: the statistics are $got"; fi

# What is wrong: status, message, and nothing left behind
# refuse STATUS TEXT ARGUMENT ...
refuse() {
  local status=$1 text=$2 got
  shift 2
  timeout 60 "$convert" "$@" >out 2>&1 </dev/null
  got=$?
  if [ $got != "$status" ] || [ "$(grep -cF -- "$text" out)" != 1 ]; then fail "gpucsr-convert $*: status $got instead of $status, or not once '$text': $(cat out)"; fi
}
rm -f ./*.petsc
printf '1 1:1\n1 x:1\n1 2:2\n' >bad.svm
refuse 1 "bad.svm, line 2, column 3: expected INDEX:VALUE, the index a whole number, not 'x:1'" bad.svm bad.petsc
refuse 1 "bad.svm, line 2, column 3" bad.svm bad.mtx
refuse 0 'bad.svm: 1 bad lines left out, the first is line 2' bad.svm -skip
printf '1 0:1\n' >zero.svm
refuse 1 'zero.svm: has an index 0 where the first index is 1' zero.svm -base 1
refuse 1 'zero.svm: has index 0, which is beyond 0 columns' zero.svm -columns 0
head -n 4 small.mtx >few.mtx && refuse 1 'few.mtx: the file ends after 2 of 5 entries' few.mtx few.petsc
refuse 1 'nowhere: cannot be opened' nowhere out.petsc
refuse 1 '/nowhere/out.petsc cannot be written' small.mtx /nowhere/out.petsc
refuse 2 'which file?'
refuse 2 '-to is needed' small.mtx out.what
refuse 2 'no such option: -fast' -fast small.mtx
refuse 2 'expected a whole number after -threads' -threads two small.mtx
refuse 2 'expected petsc, libsvm, market or boeing after -to' -to hdf5 small.mtx
refuse 2 'one file too many: c' a b c
if compgen -G '*.petsc*' >/dev/null || compgen -G '*.part' >/dev/null; then fail "left behind: $(echo ./*.petsc* ./*.part)"; fi
exit $failed

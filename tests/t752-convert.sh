#!/bin/bash
#
# gpucsr-convert: converted through all formats the matrix stays the same, by its checksum and as PETSc loads it; a failed
# conversion leaves no file, even without room.
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

# boeing FILE: a Matrix Market file of the converter as Rutherford-Boeing, which it reads alone
boeing() {
  sed 1d "$1" | { read -r m n nz && sort -k2,2n -k1,1n | awk -v m="$m" -v n="$n" -v nz="$nz" '
    { i[NR] = $1; re[NR] = $3; im[NR] = $4; count[$2]++; numbers = NF - 2 }
    END {
      printf "%-72s%-8s\n%14d %13d %13d %13d\n", "Written by a test", "GPUCSR", n + 1 + nz + numbers * nz, n + 1, nz, numbers * nz
      printf "%-14s %13d %13d %13d %13d\n%-16s%-16s%-20s\n", numbers == 2 ? "cua" : "rua", m, n, nz, 0, "(I16)", "(I16)", "(E26.17)"
      for (c = p = 1; c <= n + 1; c++) { printf "%16d\n", p; p += count[c] }
      for (k = 1; k <= nz; k++) printf "%16d\n", i[k]
      for (k = 1; k <= nz; k++) { printf "%26.17E\n", re[k]; if (numbers == 2) printf "%26.17E\n", im[k] }
    }'; }
}

complex=$("$files" -f "$data/ash219.mtx" -print | grep -c 'i')
for file in ash219.mtx gr_30_30.mtx bcsstk27.petsc wiki-Vote.petsc lp_afiro.mtx; do
  if [ "$complex" != 0 ] && [[ $file = *.petsc ]]; then continue; fi
  first=$(sum "$data/$file" c.mtx)
  boeing c.mtx >a.rb
  second=$(sum a.rb b.petsc)
  third=$(sum b.petsc c.mtx -threads 3)
  fourth=$(sum c.mtx d.svm)
  fifth=$(sum d.svm e.petsc -columns "$(timeout 60 "$convert" c.mtx | sed -n 's/^columns *\([0-9]*\),.*/\1/p')")
  if [ -z "$first" ] || [ "$first $first $first $first" != "$second $third $fourth $fifth" ]; then fail "$file: checksums $first, as Rutherford-Boeing $second, as PETSc $third, as Matrix Market $fourth, as LIBSVM $fifth"; cat err; fi
  if [[ $file = *.petsc ]] && ! cmp -s "$data/$file" b.petsc; then fail "$file: not the same file after a round"; fi
  timeout 60 "$files" -f c.mtx -reference b.petsc || fail "$file: MatLoad() reads another matrix"
done

wide=$(head -c 4 b.petsc | tr -d '\0' | wc -c) && wide=${wide/[1-9]*/} # 0 where integers have 64 bits

# 60000 entries in random order, some twice, both halves of a symmetric matrix
{
  echo '%%MatrixMarket matrix coordinate real symmetric' && echo '5000 5000 60000'
  awk 'BEGIN { srand(7); for (k = 0; k < 60000; k++) { i = int(rand() * 5000) + 1; j = int(rand() * i) + 1; print i, j, k % 100 } }'
} >random.mtx
if ! timeout 60 "$convert" random.mtx | grep -q '^square *symmetric,'; then fail "random.mtx: is symmetric, and not told to be"; fi

# A pipe without a writer, for five seconds; the end of this script checks its messages
mkfifo silent && { timeout 60 "$convert" silent; echo "status $?"; } >silent.said 2>&1 &
silent=$!

# Compressed files of every format
for file in a.rb b.petsc c.mtx d.svm; do
  for program in gzip xz bzip2; do
    if ! command -v $program >/dev/null; then continue; fi
    $program -c $file >squeezed
    if [ "$(sum $file)" != "$(sum squeezed squeezed.petsc)" ]; then fail "$file: another checksum compressed by $program: $(cat err)"; fi
  done
done

# Labels go along, qid as far as text does; an index 0 far behind the rows that had none makes all of them begin with 0
printf '+1 qid:1 1:0.5 3:-2e-1 # one\r\n\r\n-1.5 qid:2 2:1   4:.25\t\r\n' >labels.svm
timeout 60 "$convert" -quiet labels.svm labels.petsc 2>err && grep -q 'numbers after qid: are not kept' err || fail "labels.svm to PETSc: no word about qid: $(cat err)"
got=$("$files" -f labels.petsc -print)
if [ "$complex" = 0 ] && [ "$got" != '2x4; 0 1: 0=0.5 2=-0.20000000000000001; 1 -1.5: 1=1 3=0.25' ]; then fail "labels.petsc holds $got"; fi
timeout 60 "$convert" -quiet labels.svm again.svm && [ "$(cat again.svm)" = $'1 qid:1 1:0.5 3:-0.2\n-1.5 qid:2 2:1 4:0.25' ] || fail "labels.svm became $(cat again.svm)"
printf '1 qid:0 1:-0\n2 1:1\n3 qid:5 1:-0.0\n' >zeros.svm
timeout 60 "$convert" -quiet zeros.svm again.svm && [ "$(cat again.svm)" = $'1 qid:0 1:-0\n2 qid:0 1:1\n3 qid:5 1:-0' ] || fail "zeros.svm became $(cat again.svm)"
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

# A distant column takes no memory for the columns between, unless glibc writes to all allocations
printf '1 100000000:1\n' >far.svm
limit="ulimit -v 1500000"
if ldd "$convert" | grep -q libasan; then limit=true; fi # whose shadow is larger than any limit
got=$($limit && timeout 60 "$convert" -threads 1 far.svm 2>&1 | sed -n 's/^columns *//p')
if [ "$got" != '100000000, 99999999 of them empty' ]; then fail "far.svm: the columns are $got"; fi
if [ -x /usr/bin/time ] && [ "$limit" != true ]; then
  MALLOC_PERTURB_=0 /usr/bin/time -o far.kb -f %M timeout 60 "$convert" -quiet far.svm
  if [ "$(cat far.kb)" -gt 200000 ]; then fail "far.svm: $(cat far.kb) kB of memory"; fi
fi

# Errors: status, message, and no file left behind
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
# A terminal gets no control bytes of a binary file; letters of any language stay
printf '1 \xff\x1b[31m\x9b\xc2\x9b\xe2\x82\n' >bytes.svm && printf '1 M\xc3\xa4rz:1\n' >letters.svm
refuse 1 "not '??[31m?????'" bytes.svm bad.petsc
refuse 1 "not 'März:1'" letters.svm bad.petsc
refuse 1 "bad.svm, line 2, column 3" bad.svm bad.mtx
refuse 0 'bad.svm: 1 bad lines left out, the first is line 2' bad.svm -skip
printf '1 0:1\n' >zero.svm
printf '1 1:1\n1 2:2\n' >last.svm
refuse 1 'zero.svm, line 1, column 3: index 0, where the first index is 1' zero.svm -base 1
refuse 1 'zero.svm, line 1: the first of 1 bad lines, which are all that the file has' zero.svm zero.petsc -base 1 -skip
refuse 1 'zero.svm: has index 0, which is beyond 0 columns' zero.svm -columns 0
refuse 1 'last.svm, line 2, column 3: index 2 is beyond the columns, whose last index is 1' -columns 1 last.svm
refuse 0 'last.svm: 1 bad lines left out, the first is line 2' -columns 1 last.svm -skip
printf '%%%%MatrixMarket matrix array real general\n1 1\n1\n2\n' >array.mtx && refuse 1 'array.mtx: more than the 1 entries that the sizes ask for' array.mtx
head -n 4 small.mtx >few.mtx && refuse 1 'few.mtx: the file ends after 2 of 5 entries' few.mtx few.petsc
refuse 1 'nowhere: cannot be opened' nowhere out.petsc
refuse 1 '/nowhere/out.petsc cannot be written' small.mtx /nowhere/out.petsc
# finite FILE WORD ...: PETSc binary of two rows with one entry each, and labels; n stands for NaN, i for infinity
finite() {
  local name=$1 word
  shift
  for word in 1211216 2 2 2 1 1 0 1 "$@"; do
    case $word in
    r) printf '\x3f\xf0\0\0\0\0\0\0' ;;
    n) printf '\x7f\xf8\0\0\0\0\0\0' ;;
    i) printf '\x7f\xf0\0\0\0\0\0\0' ;;
    *) printf '%b' "$(printf '%08x' "$word" | sed 's/../\\x&/g')" ;;
    esac
  done >"$name"
}
if [ "$complex$wide" = 0 ]; then
  finite value.dat r i 1211214 2 r r && refuse 1 'value.dat: row 1 has a value that is not a finite number' value.dat value.svm
  finite label.dat r r 1211214 2 n r && refuse 1 'label.dat: the label of row 0 is not a finite number' label.dat label.svm
fi

# Pipes: the same matrix
timeout 60 "$convert" -quiet c.mtx b.petsc
for file in a.rb b.petsc c.mtx d.svm; do
  for input in - /dev/stdin /dev/fd/0; do
    if [ "$(timeout 60 cat $file | sum $input piped.petsc)" != "$(sum $file)" ]; then fail "$file through $input: $(cat err)"; fi
  done
  if [ "$(gzip -c $file | sum -)" != "$(sum $file)" ]; then fail "$file through gzip and a pipe: $(cat err)"; fi
  if [ "$(sum - <$file)" != "$(sum $file)" ]; then fail "$file as standard input: $(cat err)"; fi
done
rm -f piped.petsc b.petsc
printf '1 1:1\n2 0:5\n' >early.svm
if [ "$(sum - <early.svm)" != "$(sum early.svm)" ] || [ "$(cat early.svm | sum -)" != "$(sum early.svm)" ] || [ -z "$(sum early.svm)" ]; then fail 'early.svm: the base of the indices is told wrong in a pipe'; fi
refuse 2 'output is a file, not standard output' small.mtx -to libsvm -

# Its own texts; binary data are not called text
"$convert" -version | grep -q '^gpucsr-convert [0-9.]*, for PETSc [0-9.]* with .* scalars and integers of [0-9]* bits; decompresses' || fail "-version: $("$convert" -version)"
if [ "$complex$wide" = 0 ]; then "$convert" "$data/add32.petsc" | grep -q '^binary  ' || fail 'PETSc binary is called text'; fi

# Outputs that cannot be replaced, or not be written. No real device, which a failure would overwrite: a pipe is refused by the same line
mkdir folder && refuse 1 'folder cannot be written: it is not a regular file' small.mtx -to petsc folder
mkfifo pipe && refuse 1 'pipe cannot be written: it is not a regular file' small.mtx -to libsvm pipe
ln -s target link && refuse 1 'link cannot be written: it is not a regular file' small.mtx -to libsvm link
if [ ! -p pipe ] || [ ! -L link ]; then fail 'an output that is no regular file was replaced'; fi
for format in libsvm market petsc; do # no byte may be written; most formats find out by fclose() alone. A build for coverage cannot write its own files either, and would say so
  got=$(trap '' XFSZ && ulimit -f 0 && GCOV_ERROR_FILE=/dev/null timeout 60 "$convert" -quiet small.mtx -to $format full 2>&1)
  if [ $? != 1 ] || [[ $got != *'full cannot be written: File too large' ]] || compgen -G 'full*' >/dev/null; then fail "an output as $format on a full disk: $got, $(echo full*)"; fi
done
echo mine >mine.part && chmod 640 small.mtx && cp -p small.mtx mine && timeout 60 "$convert" -quiet small.mtx -to market mine
if [ "$(cat mine.part)" != mine ] || [ "$(stat -c %a mine)" != 640 ]; then fail "mine.part holds $(cat mine.part), mine has the permissions $(stat -c %a mine)"; fi
rm mine.part

# An interrupted conversion leaves nothing
{ yes '1 1:1 2:2 3:3.25' | head -n 6000000; } >long.svm
timeout -s INT 0.2 "$convert" -quiet -threads 1 long.svm interrupted.mtx
if compgen -G 'interrupted*' >/dev/null; then fail "interrupted, it left $(echo interrupted*)"; fi
rm long.svm

if [ -z "$wide" ]; then refuse 2 '-columns: more than the integers' -columns 5000000000 labels.svm big.petsc; fi
refuse 2 'output is not compressed' small.mtx out.svm.gz
refuse 2 'which file?'
refuse 2 '-to is needed' small.mtx out.what
refuse 2 'no such option: -fast' -fast small.mtx
refuse 2 'expected a whole number after -threads' -threads two small.mtx
refuse 2 'expected petsc, libsvm or market after -to' -to boeing small.mtx
refuse 2 'one file too many: c' a b c
wait $silent
if [ "$(grep -c 'silent: is a named pipe without a writer for 5 seconds\|^status 1' silent.said)" != 2 ]; then fail "a silent pipe: $(cat silent.said)"; fi
if compgen -G '*.petsc*' >/dev/null || compgen -G '*.part*' >/dev/null; then fail "left behind: $(echo ./*.petsc* ./*.part*)"; fi
exit $failed

#!/bin/bash
#
# Small files in every format that MatGPUCSRLoadFile() reads: correct files give the matrix computed by hand, plain and compressed; a wrong file gives one
# error with file, line, column and the expected text, and the next file is read. One process reads all files, with one thread and with three, and so do
# two and three ranks: hundreds of starts would take minutes. Two files show that an error ends a program.
#
#   BUILD=build MPIEXEC=mpiexec tests/t751-readers.sh
#
export CUDA_VISIBLE_DEVICES= # no device is used
files=$(realpath "$BUILD/tests/t750-files") convert=$(realpath "$BUILD/bin/gpucsr-convert")
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 2
mkfifo nobody && timeout 60 "$files" -f nobody >nobody.out 2>&1 &
kind=() wanted=() failed=0
zstd=$("$convert" -version | grep -w zstd) && command -v zstd >/dev/null || zstd=

# accept FILE EXPECTED OPTIONS ...: the output for it
accept() {
  kind+=(accept) wanted+=("$2"$'\n')
  echo "$1 ${*:3}" >>list
}

# refuse FILE TEXT OPTIONS ...: one error, which begins with the file's name and the text
refuse() {
  kind+=(refuse) wanted+=("error: $1$2")
  echo "$1 ${*:3}" >>list
}

# ends FILE TEXT: the same, and on one rank and on two it ends the program, without a signal
ends() {
  refuse "$1" "$2"
  for launch in "" "$MPIEXEC -n 2"; do
    # shellcheck disable=SC2086 # the launcher is words
    timeout 60 $launch "$files" -f "$1" >out 2>&1 </dev/null
    status=$?
    if [ $status = 0 ] || [ $status -gt 128 ] || grep -q 'Caught signal' out || [ "$(grep -cF -- "$1$2" out)" != 1 ]; then
      echo "'$launch t750-files -f $1' ended with status $status; expected one error '$1$2', got:" && grep -v 'Configure options' out
      failed=1
    fi
  done
}

# through RANKS THREADS [OPTIONS]: all of the list
through() {
  local launch="$MPIEXEC -n $1" got text k=0
  sed "s/\$/ $3/" list >these
  if [ "$1" = 1 ]; then launch=; fi
  # shellcheck disable=SC2086
  OMP_NUM_THREADS=$2 timeout 120 $launch "$files" -cases these >out 2>errors </dev/null || { echo "$1 ranks, $2 threads: ended by status $? in $(grep '^case' out | tail -n 1):" && cat errors && failed=1; }
  mapfile -t -d $'\x1e' got < <(sed -e '1d; s/^case [0-9]*$/\x1e/; s/[+-]0i//g' out) # a PETSc of complex numbers prints these
  for text in "${got[@]}"; do
    text=${text#$'\n'}
    case ${kind[k]} in
    accept) [ "$text" = "${wanted[k]}" ] ;;
    refuse) [[ $text = "${wanted[k]}"* && ${text#error: } != *error:* ]] ;;
    esac || { printf '%s ranks, %s threads, t750-files -f %s:\nexpected %s\ngot      %s\n' "$1" "$2" "$(sed -n $((k + 1))p list)" "${wanted[k]}" "$text" && failed=1; }
    k=$((k + 1))
  done
  if [ $k != ${#kind[@]} ]; then echo "$1 ranks, $2 threads: $k of ${#kind[@]} files" && failed=1; fi
}

# squeeze FILE: gzip (of two members), xz, and bzip2
squeeze() {
  if command -v gzip >/dev/null; then { head -n 3 "$1" | gzip; tail -n +4 "$1" | gzip; } >"$1.gz" && accept "$1.gz" "$2"; fi
  if command -v xz >/dev/null; then xz -k "$1" && accept "$1.xz" "$2"; fi
  if command -v bzip2 >/dev/null; then bzip2 -k "$1" && accept "$1.bz2" "$2"; fi
  if [ -n "$zstd" ]; then { zstd -qc "$1"; printf '\n' | zstd -qc --check; } >"$1.zst" && if [[ $1 = *.* ]]; then accept "$1.zst" "$2"; fi; fi
}

# blanks N: so many of them
blanks() { head -c "$1" /dev/zero | tr '\0' ' '; }

# --- LIBSVM and svmlight

printf '# all of it\r\n+1 1:0.5 3:-2e-1 # one\r\n\r\n-1.0\t2:1   4:.25\t\r\n  \n1e0\n#\n0 qid:3 1:7 \n3 qid:4 4:1e3' >all.svm
all='4x4; 0 1 0: 0=0.5 2=-0.20000000000000001; 1 -1 0: 1=1 3=0.25; 2 1 0:; 3 0 3: 0=7'
all=${all/4x4/5x4}'; 4 3 4: 3=1000'
accept all.svm "$all"
squeeze all.svm "$all"
accept all.svm "${all/5x4/5x9}" -gpucsr_file_columns 9
accept all.svm "${all/5x4/5x9}" -columns 9 -rows 5
accept all.svm '5x5; 0 1 0: 1=0.5 3=-0.20000000000000001; 1 -1 0: 2=1 4=0.25; 2 1 0:; 3 0 3: 1=7; 4 3 4: 4=1000' -gpucsr_file_base 0
printf '1 0:1 2:2\n2 1:3\n' >zero.svm && accept zero.svm '2x3; 0 1: 0=1 2=2; 1 2: 1=3'
printf '1 3:3 1:1 2:2\n' >unsorted.svm && accept unsorted.svm '1x3; 0 1: 0=1 1=2 2=3'
printf '5' >label.svm && accept label.svm '1x0; 0 5:' -mat_type aij
printf '\n# none\n\n' >none.svm && accept none.svm '0x0'
{ printf '1'; for i in $(seq 1 30000); do printf ' %d:%d' "$i" $((i % 7)); done; printf '\n2 1:1\n'; } >huge.svm
{ printf '2x30000; 0 1:'; for i in $(seq 1 30000); do printf ' %d=%d' $((i - 1)) $((i % 7)); done; printf '; 1 2: 0=1'; } >huge.expected
accept huge.svm "$(cat huge.expected)"
bad=$'1 1:1\n\nx 1:1\n2 2:2\n1 1:1 1:2\n'
printf '%s' "$bad" >bad.svm && ends bad.svm ", line 3, column 1: expected a label, a finite number, not 'x'"
accept bad.svm $'2x2; 0 1: 0=1; 1 2: 1=2\nskipped 2 from line 3' -gpucsr_file_skip
gzip -k bad.svm && refuse bad.svm.gz ", line 3, column 1: expected a label" && accept bad.svm.gz $'2x2; 0 1: 0=1; 1 2: 1=2\nskipped 2 from line 3' -gpucsr_file_skip
wrong() { printf '1 1:1\n%s\n1 2:2\n' "$1" >"wrong${#kind[@]}.svm" && refuse "wrong${#kind[@]}.svm" "$2"; }
wrong '1:1 2:2' ", line 2, column 1: expected a label before the first INDEX:VALUE, not '1:1'"
wrong '1,2 1:1' ", line 2, column 1: expected one label, a number, not '1,2'"
wrong 'nan 1:1' ", line 2, column 1: expected a label, a finite number, not 'nan'"
wrong '1 1:1 two' ", line 2, column 7: expected INDEX:VALUE, the index a whole number, not 'two'"
wrong '1 -1:1' ", line 2, column 3: expected INDEX:VALUE, the index a whole number, not '-1:1'"
wrong '1 1.5:1' ", line 2, column 3: expected INDEX:VALUE, the index a whole number, not '1.5:1'"
wrong '1 1 :1' ", line 2, column 3: expected INDEX:VALUE, the index a whole number, not '1'"
wide=$(ldd "$files" | grep -c libpetsc64) # PETSc's integers hold whatever is read as one
if [ "$wide" = 0 ]; then wrong '1 999999999999999999:1' ", line 2, column 3: expected an index that fits the integers of this PETSc, not '999999999999999999:1'"; fi
wrong '1 1: 1' ", line 2, column 5: expected a finite number as the value, not the end of the line"
wrong '1 1:one' ", line 2, column 5: expected a finite number as the value, not 'one'"
wrong '1 1:1e999' ", line 2, column 5: expected a finite number as the value, not '1e999'"
wrong '1 1:1;2:2' ", line 2, column 5: expected a finite number as the value, not '1;2:2'"
wrong '1 2:1 3:1 2:5' ", line 2: index 2 stands in this line a second time"
wrong '1 qid:x 1:1' ", line 2, column 3: expected a whole number after qid:, not 'qid:x'"
wrong '1 1:1 qid:1' ", line 2, column 7: expected one qid, in front of the entries, not 'qid:1'"
refuse zero.svm ', line 1, column 3: index 0, where the first index is 1' -gpucsr_file_base 1
accept zero.svm $'1x1; 0 2: 0=3\nskipped 1 from line 1' -gpucsr_file_base 1 -gpucsr_file_skip
refuse all.svm ', line 2, column 10: index 3 is beyond the columns, whose last index is 2' -gpucsr_file_columns 2
refuse all.svm ', line 2, column 10: index 3 is beyond the columns, whose last index is 2' -columns 3 -gpucsr_file_base 0
refuse zero.svm ': has index 2, which is beyond 2 columns that begin with index 0' -gpucsr_file_columns 2
accept all.svm $'2x2; 0 1 0:; 1 0 3: 0=7\nskipped 3 from line 2' -gpucsr_file_columns 2 -gpucsr_file_base 1 -gpucsr_file_skip
printf '\xef\xbb\xbf1 1:2\n-1 2:3' >mark.svm && accept mark.svm '2x2; 0 1: 0=2; 1 -1: 1=3' && squeeze mark.svm '2x2; 0 1: 0=2; 1 -1: 1=3'
# A last line that is longer than the pieces of a file, and does not end; files of which nothing is understood
{ printf '3 1:1'; blanks 7000000; printf '3:2'; } >long.svm && accept long.svm '1x3; 0 3: 0=1 2=2'
{ printf '2 2:5\n3 1:1'; blanks 7000000; printf '3:2'; } >longer.svm && accept longer.svm '2x3; 0 2: 1=5; 1 3: 0=1 2=2'
gzip -1 <longer.svm >longer.svm.gz && accept longer.svm.gz '2x3; 0 2: 1=5; 1 3: 0=1 2=2'
{ printf '1 1:1\n2 2:2\n3'; blanks 7000000; printf 'x'; } >longbad.svm && refuse longbad.svm ", line 3, column 7000002: expected INDEX:VALUE, the index a whole number, not 'x'"
blanks 5000000 | tr ' ' a >letters && refuse letters ", line 1, column 1: expected a label, a finite number, not 'aaaaaaaaaaaaaaaaaaaaaaaa...'"
refuse letters ', line 1: the first of 1 bad lines, which are all that the file has' -gpucsr_file_skip
head -c 5000000 /dev/zero >zeros && refuse zeros ", line 1, column 1: expected a label, a finite number, not '????????????????????????...'"
gzip -1 <zeros >zeros.gz && refuse zeros.gz ", line 1, column 1: expected a label, a finite number, not '????????????????????????...'"
printf 'a\n\nb\nc' >abc && refuse abc ', line 1: the first of 3 bad lines, which are all that the file has' -gpucsr_file_skip

# --- Matrix Market

market() {
  local name=$1
  printf '%%%%MatrixMarket matrix %s\n' "$2" >"$name.mtx"
  shift 2
  if [ $# -gt 0 ]; then printf '%s\n' "$@" >>"$name.mtx"; fi
}
general='coordinate real general'
market general "$general" '% a comment' '' '2 3 4' $'1 1 2\r' '%' ' 2	2 3e0 ' '' '1 3 -1' '1 1 +1' # blanks, a place given twice
accept general.mtx '2x3; 0: 0=3 2=-1; 1: 1=3'
squeeze general.mtx '2x3; 0: 0=3 2=-1; 1: 1=3'
market symmetric 'coordinate real symmetric' '3 3 3' '1 1 2' '2 1 -1' '3 2 4' && accept symmetric.mtx '3x3; 0: 0=2 1=-1; 1: 0=-1 2=4; 2: 1=4'
market skew 'coordinate real skew-symmetric' '3 3 2' '2 1 -1' '3 1 2' && accept skew.mtx '3x3; 0: 1=1 2=-2; 1: 0=-1; 2: 0=2'
market hermitian 'coordinate real hermitian' '2 2 2' '1 1 2' '2 1 -1' && accept hermitian.mtx '2x2; 0: 0=2 1=-1; 1: 0=-1'
market pattern 'coordinate pattern general' '2 2 2' '1 1' '2 2' && accept pattern.mtx '2x2; 0: 0=1; 1: 1=1'
market patternsym 'coordinate pattern symmetric' '2 2 2' '2 1' '2 2' && accept patternsym.mtx '2x2; 0: 1=1; 1: 0=1 1=1'
market integer 'Coordinate INTEGER General' '2 2 2' '1 1 4' '2 2 -7' && accept integer.mtx '2x2; 0: 0=4; 1: 1=-7'
market array 'array real general' '2 3' 4 1 '% c' 1 3 '' 5 6 && accept array.mtx '2x3; 0: 0=4 1=1 2=5; 1: 0=1 1=3 2=6'
market arraysym 'array integer symmetric' '3 3' 1 2 3 4 5 6 && accept arraysym.mtx '3x3; 0: 0=1 1=2 2=3; 1: 0=2 1=4 2=5; 2: 0=3 1=5 2=6'
market arrayskew 'array real skew-symmetric' '3 3' 1 2 3 && accept arrayskew.mtx '3x3; 0: 1=-1 2=-2; 1: 0=1 2=-3; 2: 0=2 1=3'
complex=$("$files" -f arrayskew.mtx -print | grep -c i)
if [ "$complex" != 0 ]; then
  market arrayskewi 'array complex skew-symmetric' '2 2' '1 2' && accept arrayskewi.mtx '2x2; 0: 1=-1-2i; 1: 0=1+2i'
fi
market nothing "$general" '3 2 0' && accept nothing.mtx '3x2; 0:; 1:; 2:'
printf '%%%%MatrixMarket matrix coordinate real general\n2 2 1\n2 1 5' >noeol.mtx && accept noeol.mtx '2x2; 0:; 1: 0=5'
printf '%%%%MatrixMarket matrix coordinate real general\n2 2 0' >nosize.mtx && accept nosize.mtx '2x2; 0:; 1:'
market skip "$general" '2 2 3' '1 1 2' '3 1 1' '2 2 3' && accept skip.mtx $'2x2; 0: 0=2; 1: 1=3\nskipped 1 from line 4' -gpucsr_file_skip

refuse /dev ': is a folder'
refuse /dev/zero ': is a device: neither a regular file nor a pipe'
: >empty.mtx && refuse empty.mtx ': is empty'
printf '%%%%MatrixMart matrix coordinate real general\n1 1 1\n1 1 1\n' >banner.mtx && refuse banner.mtx ", line 1, column 1: expected '%%MatrixMarket matrix', not '%%MatrixMart matrix'"
market format 'csr real general' '1 1 1' '1 1 1' && refuse format.mtx ", line 1, column 23: format 'csr' is none of coordinate, array"
market field 'coordinate rational general' '1 1 1' '1 1 1' && refuse field.mtx ", line 1, column 34: field 'rational' is none of real, integer, pattern, complex"
market symmetry 'coordinate real hankel' '1 1 1' '1 1 1' && refuse symmetry.mtx ", line 1, column 39: symmetry 'hankel' is none of general, symmetric, skew-symmetric, hermitian"
market words 'coordinate real general sorted' '1 1 1' '1 1 1' && refuse words.mtx ", line 1, column 47: expected five words"
market arraypattern 'array pattern general' '1 1' '1' && refuse arraypattern.mtx ", line 1, column 29: an array has values"
market skewpattern 'coordinate pattern skew-symmetric' '1 1 0' && refuse skewpattern.mtx ", line 1, column 42: a skew-symmetric matrix has values"
market nosizes "$general" '% nothing else' && refuse nosizes.mtx ', line 3: expected the sizes, and the file ends'
market twosizes "$general" '2 2' '1 1 1' && refuse twosizes.mtx ", line 2, column 4: expected the sizes: rows, columns and entries, as whole numbers, not the end of the line"
market foursizes "$general" '2 2 1 1' '1 1 1' && refuse foursizes.mtx ', line 2, column 7: expected no more than the sizes, 3 numbers'
market nansizes "$general" 'nan nan nan' '1 1 1' && refuse nansizes.mtx ", line 2, column 1: expected the sizes: rows, columns and entries, as whole numbers, not 'nan'"
market negative "$general" '-2 2 1' '1 1 1' && refuse negative.mtx ", line 2, column 1: expected the sizes: rows, columns and entries, as whole numbers, not '-2'"
market many "$general" '2 2 2000000000' '1 1 1' && refuse many.mtx ', line 2: the file, of 67 bytes, is too short for the 2000000000 entries announced here'
market truncated "$general" '2 2 3' '1 1 2' '2 2 3' && refuse truncated.mtx ': the file ends after 2 of 3 entries'
market more "$general" '2 2 1' '1 1 1' '' '2 2 1' && refuse more.mtx ': more than the 1 entries that the size line announces'
market moreall 'array real general' '1 1' 1 2 && refuse moreall.mtx ': more than the 1 entries that the sizes ask for'
market half "$general" '2 2 2' '1 1 2' '2 2' && refuse half.mtx ', line 4, column 4: expected a finite number as the value, not the end of the line'
market row "$general" '2 2 2' '1 1 2' '3 2 3' && refuse row.mtx ', line 4, column 1: row 3 is outside the matrix, of 2 rows and 2 columns'
market column "$general" '2 2 1' '1 0 2' && refuse column.mtx ', line 3, column 3: column 0 is outside the matrix, of 2 rows and 2 columns'
market fraction "$general" '2 2 1' '1.5 1 1' && refuse fraction.mtx ", line 3, column 1: expected a row, a whole number, not '1.5'"
market second "$general" '2 2 1' '1 b 1' && refuse second.mtx ", line 3, column 3: expected a column, a whole number, not 'b'"
market word "$general" '2 2 1' '1 1 one' && refuse word.mtx ", line 3, column 5: expected a finite number as the value, not 'one'"
market entries "$general" '2 2 1' '1 1 1 9' && refuse entries.mtx ", line 3, column 7: expected the end of the line after one entry, not '9'"
market upper 'coordinate real symmetric' '2 2 1' '1 2 1' && refuse upper.mtx ', line 3: entry (1, 2) is above the diagonal; a symmetric file has the lower triangle alone'
market diagonal 'coordinate real skew-symmetric' '2 2 1' '1 1 1' && refuse diagonal.mtx ', line 3: entry (1, 1) is not below the diagonal'
market oblong 'coordinate real symmetric' '3 2 1' '1 1 1' && refuse oblong.mtx ', line 2: a symmetric matrix has to be square, not 3 by 2'
if [ "$wide" = 0 ]; then market tall "$general" '9999999999999999 2 1' '1 1 1' && refuse tall.mtx ', line 2, column 1: 9999999999999999 rows: more than this PETSc can count'; fi
gzip -k truncated.mtx && refuse truncated.mtx.gz ': the file ends after 2 of 3 entries'
market complex 'coordinate complex hermitian' '2 2 2' '1 1 1 0' '2 1 1 2'
if [ "$complex" != 0 ]; then accept complex.mtx '2x2; 0: 0=1 1=1-2i; 1: 0=1+2i'; else refuse complex.mtx ', line 1, column 34: a complex matrix needs a PETSc configured with complex scalars'; fi

# --- Harwell-Boeing and Rutherford-Boeing: titles, sizes, formats, then the parts
printf '%%%%MatrixMarket matrix coordinate real general\n2 2 0' >none.mtx && accept none.mtx '2x2; 0:; 1:'
{ printf '%%%%MatrixMarket matrix coordinate real general\n%%'; blanks 7000000; printf '\n2 2 2\n1 1 1\n2'; blanks 7000000; printf '2 5'; } >long.mtx && accept long.mtx '2x2; 0: 0=1; 1: 1=5'
{ printf '%%%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2'; blanks 7000000; printf '2'; } >longbad.mtx && refuse longbad.mtx ', line 4, column 7000003: expected a finite number as the value, not the end of the line'
market allbad 'coordinate real general' '2 2 2' 'x' 'y' && refuse allbad.mtx ', line 3: the first of 2 bad lines, which are all that the file has' -gpucsr_file_skip
market billion 'coordinate real general' '1000000000 1000000000 1' '1 1 1' && refuse billion.mtx ', line 2: 1000000000 rows in a file of 76 bytes: almost all rows would be empty and waste memory'
gzip -k billion.mtx && refuse billion.mtx.gz ', line 2: 1000000000 rows in a file of 76 bytes'

# boeing NAME TYPE "SIZES" "CARDS" "FORMATS" LINE ...
boeing() {
  local name=$1 type=$2 sizes cards formats
  read -ra sizes <<<"$3" && read -ra cards <<<"$4" && read -ra formats <<<"$5"
  shift 5
  {
    printf '%-72s%-8s\n' 'A title' KEY
    printf '%14s' "${cards[@]}" && printf '\n%-14s' "$type" && printf '%14s' "${sizes[@]}" && printf '\n%-16s%-16s%-20s%-20s\n' "${formats[@]}"
    if [ $# -gt 0 ]; then printf '%s\n' "$@"; fi
  } >"$name.hb"
}
#    1  .  4       columns 1: rows 1 2; 2: row 3; 3: rows 1 3
#    2  .  .
#    .  3  5
rua='3x3; 0: 0=1.5 2=4; 1: 0=-20; 2: 1=3 2=50000'
boeing rua RUA '3 3 5 0' '4 1 1 2' '(4I3) (5I2) (1P,3E10.3)' '  1  3  4  6' ' 1 2 3 1 3' ' 1.500E+00-2.000D+01 3.000E+00' '     4.000 5.000+04'
accept rua.hb "${rua/2=4/2=0.40000000000000002}" # the scale 1P holds for what has no exponent
boeing crlf RUA '3 3 5 0' '4 1 1 2' '(4I3) (5I2) (3E10.3)' $'  1  3  4  6\r' $' 1 2 3 1 3\r' $' 1.500E+00-2.000D+01 3.000E+00\r' $'     4.000 5.000+04\r'
accept crlf.hb "$rua"
squeeze crlf.hb "$rua"
boeing implied rua '2 2 2 0' '3 1 1 1' '(3I2) (2I2) (2F6.2)' ' 1 2 3' ' 1 2' '   150  -025' && accept implied.hb '2x2; 0: 0=1.5; 1: 1=-0.25'
boeing rsa RSA '2 2 3 0' '3 1 1 1' '(3I2) (3I2) (3F6.2)' ' 1 3 4' ' 1 2 2' '  1.50  -2.5   3.0' && accept rsa.hb '2x2; 0: 0=1.5 1=-2.5; 1: 0=-2.5 1=3'
boeing rza RZA '2 2 1 0' '3 1 1 1' '(3I2) (3I2) (3F6.2)' ' 1 2 2' ' 2' '  1.50' && accept rza.hb '2x2; 0: 1=-1.5; 1: 0=1.5'
boeing pra PRA '2 3 2 0' '2 1 1 0' '(4I2) (3I2)' ' 1 2 2 3' ' 2 1' && accept pra.hb '2x3; 0: 2=1; 1: 0=1'
boeing iua iua '2 2 1 0' '3 1 1 1' '(3I2) (3I2) (4I5)' ' 1 1 2' ' 2' '   17' && accept iua.hb '2x2; 0:; 1: 1=17'
boeing rhs RUA '1 1 1 0' '4 1 1 1 1' '(3I2) (3I2) (4F5.1) (4F5.1)' 'F              1             0' ' 1 2' ' 1' '  2.5' '  9.9' && accept rhs.hb '1x1; 0: 0=2.5'
# formats whose lines do not have as many numbers of one width each
boeing blank RUA '3 3 5 0' '4 1 1 2' '(4I3) (5I2) (3(1X,E9.3))' '  1  3  4  6' ' 1 2 3 1 3' ' 1.500E+00x-2.00D+01 3.000E+00' '     4.000 5.000+04' && refuse blank.hb ", line 4, column 33: expected a Fortran format such as (16I5) or (1P,5E16.8), not '(3(1X,E9.3))'"
boeing after RUA '3 3 5 0' '4 1 1 2' '(4I3) (5(I2,1X)) (3E10.3,1X)' '  1  3  4  6' ' 1x 2  3  1  3' ' 1.500E+00-2.000D+01 3.000E+00x' '     4.000 5.000+04' && refuse after.hb ", line 4, column 17: expected a Fortran format such as (16I5) or (1P,5E16.8), not '(5(I2,1X))'"
boeing scaled RUA '3 3 5 0' '4 1 1 2' '(4I3) (5I2) (-2P3E10.3E2)' '  1  3  4  6' ' 1 2 3 1 3' ' 1.500E+00-2.000D+01 3.000E+00' '      .040 5.000+04' && accept scaled.hb "$rua"
boeing places RUA '3 3 5 0' '4 1 1 2' '(T3,4I3) (2I2,3I3) (T2,E9.3,TR1,2E10.3)' 'ab  1  3  4  6' ' 1 2  3  1  3' 'x1.500E+00x-2.000D+01 3.000E+00' 'x    4.000x 5.000+04' && refuse places.hb ", line 4, column 1: expected a Fortran format such as (16I5) or (1P,5E16.8), not '(T3,4I3)'"
boeing again RUA '3 3 5 0' '7 3 1 3' '(I3,(I4)) (5I2) (2(E10.3))' '  1   3' '   4' '   6' ' 1 2 3 1 3' ' 1.500E+00-2.000D+01' ' 3.000E+00     4.000' ' 5.000+04' && refuse again.hb ", line 4, column 1: expected a Fortran format such as (16I5) or (1P,5E16.8), not '(I3,(I4))'"
boeing group RUA '3 3 5 0' '4 1 1 2' '(4I3) (5I2) (1P,2(E10.3,0P))' '  1  3  4  6' ' 1 2 3 1 3' ' 1.500E+00-2.000D+01' && refuse group.hb ", line 4, column 33: expected a Fortran format such as (16I5) or (1P,5E16.8), not '(1P,2(E10.3,0P))'"
boeing records RUA '3 3 5 0' '6 2 1 3' '(2I3/1X,2I4) (5I2) (E10.3/2(1X,ES9.2))' '  1  3' 'x   4   6' ' 1 2 3 1 3' ' 1.500E+00' 'x-2.00D+01x3.000E+00' 'x    4.000x 5.00+04' && refuse records.hb ", line 4, column 1: expected a Fortran format such as (16I5) or (1P,5E16.8), not '(2I3/1X,2I4)'"
boeing nofield RUA '2 2 1 0' '3 1 1 1' '(3I2) (3I2) (3X)' ' 1 1 2' ' 2' '   17' && refuse nofield.hb ", line 4, column 33: expected a Fortran format such as (16I5) or (1P,5E16.8), not '(3X)'"
boeing many RUA '2 2 1 0' '3 1 1 1' '(3I2) (3I2) (999(999(9999X)))' ' 1 1 2' ' 2' '   17' && refuse many.hb ", line 4, column 33: expected a Fortran format"
boeing elements RSE '2 2 3 4' '3 1 1 1' '(3I2) (3I2) (3F6.2)' ' 1 3 4' ' 1 2 2' '  1.50' && refuse elements.hb ", line 3, column 3: matrix type 'RSE': unassembled matrices of finite elements are not supported"
boeing kind XUA '2 2 1 0' '3 1 1 1' '(3I2) (3I2) (4I5)' ' 1 1 2' ' 2' '   17' && refuse kind.hb ", line 3, column 1: matrix type 'XUA' must begin" -gpucsr_file_format boeing
boeing fortran RUA '2 2 1 0' '3 1 1 1' '(3X2) (3I2) (4I5)' ' 1 1 2' ' 2' '   17' && refuse fortran.hb ", line 4, column 1: expected a Fortran format such as (16I5) or (1P,5E16.8), not '(3X2)'"
boeing few RUA '9 9 1 0' '3 1 1 1' '(3I2) (3I2) (4I5)' ' 1 1 2' ' 2' '   17' && refuse few.hb ', line 2: 1 lines of 3 pointers are too few for 9 columns'
boeing short RUA '2 2 1 0' '3 1 1 1' '(3I2) (3I2) (4F5.1)' ' 1 1 2' ' 2' && refuse short.hb ', line 6: the file ends after 6 of the 7 lines that its header announces'
boeing pointer RUA '2 2 1 0' '3 1 1 1' '(3I2) (3I2) (4F5.1)' ' 1 4 2' ' 2' '  1.7' && refuse pointer.hb ', line 5, column 3: pointer 2 is 4: expected one that is at least its predecessor and within the entries'
boeing index RUA '2 2 1 0' '3 1 1 1' '(3I2) (3I2) (4F5.1)' ' 1 1 2' ' 3' '  1.7' && refuse index.hb ', line 6, column 1: row 3 is outside the matrix, of 2 rows'
boeing value RUA '2 2 2 0' '3 1 1 1' '(3I2) (3I2) (4F5.1)' ' 1 2 3' ' 1 2' '  1.7  1,7' && refuse value.hb ", line 7, column 6: expected a finite number in 5 columns, not '1,7'"
boeing number RUA '2 2 2 0' '3 1 1 1' '(3I2) (3I2) (4F5.1)' ' 1 2 x' ' 1 2' '  1.7  1.7' && refuse number.hb ", line 5, column 5: expected a whole number in 2 columns, not 'x'"
boeing upper RSA '2 2 1 0' '3 1 1 1' '(3I2) (3I2) (4F5.1)' ' 1 1 2' ' 1' '  1.7' && refuse upper.hb ', line 6, column 1: entry (1, 2) is not in the lower triangle, where a symmetric file has all its entries'

# --- Truncated compressed files, and unknown kinds of compression

printf '1 1:1\n%.0s' $(seq 1000) | gzip >cut.gz && head -c 40 cut.gz >short.gz && refuse short.gz ': the compressed data end early: the file is cut off'
{ head -c 20 cut.gz; printf 'xxxxxxxx'; } >damaged.gz && refuse damaged.gz ': the compressed data'
if command -v xz >/dev/null; then gzip -dc cut.gz | xz >cut.xz && head -c 60 cut.xz >short.xz && refuse short.xz ': the compressed data end early: the file is cut off'; fi
if command -v bzip2 >/dev/null; then gzip -dc cut.gz | bzip2 >cut.bz2 && head -c 40 cut.bz2 >short.bz2 && refuse short.bz2 ': the compressed data end early: the file is cut off'; fi
if [ -n "$zstd" ]; then
  printf '1 1:1\n%.0s' $(seq 1000) | zstd -qc >cut.zst && head -c 15 cut.zst >short.zst && refuse short.zst ': the compressed data end early: the file is cut off'
  { head -c 12 cut.zst; printf 'xxxxxxxxxxx'; } >damaged.zst && refuse damaged.zst ': the compressed data'
fi
printf '7z\xbc\xaf\x27\x1c....' >some.7z && refuse some.7z ': is a 7-Zip archive, which is not supported: decompress it first'
printf 'PK\x03\x04....' >some.npz && refuse some.npz ": is a zip archive, as NumPy's .npz, which is not supported: decompress it; or, SciPy's, convert it: python3 -c \"import"
printf '\x93NUMPY....' >some.npy && refuse some.npy ": is NumPy's .npy, which is not supported: convert it: python3 -c \"import"
printf 'MATLAB 5.0 MAT-file' >some.mat && refuse some.mat ": is MATLAB's .mat, which is not supported: convert it: python3 -c \"import"
printf '\x89HDF\r\n\x1a\n' >some.h5 && refuse some.h5 ": is HDF5, as MATLAB's .mat of version 7.3, which is not supported: write it in another format first"

# --- PETSc binary

# binary NAME WORD ...: a file of big-endian words, of 4 bytes each; r stands for the 8 bytes of 1.0
binary() {
  local name=$1 word
  shift
  for word; do
    if [ "$word" = r ]; then printf '\x3f\xf0\0\0\0\0\0\0'; else printf '%b' "$(printf '%08x' $((word & 0xffffffff)) | sed 's/../\\x&/g')"; fi
  done >"$name"
}
everything() { through 1 1; through 1 3; through 2 2; through 3 1; through 3 1 '-gpucsr_file_balance entries'; pipes; }

# piped FILE EXPECTED: through standard input, on one rank and on two
piped() {
  local launch got
  for launch in "" "$MPIEXEC -n 2"; do
    # shellcheck disable=SC2086
    got=$(timeout 60 cat "$1" | timeout 60 $launch "$files" -f - -print 2>&1 | sed -e 's/[+-]0i//g')
    if [[ $got != *"$2"* ]]; then printf '%s t750-files -f - <%s:\nexpected %s\ngot      %s\n' "$launch" "$1" "$2" "$got" && failed=1; fi
  done
}

# Pipes; a named one without a writer is an error after a while
pipes() {
  local got
  piped all.svm "$all"
  piped longer.svm '2x3; 0 2: 1=5; 1 3: 0=1 2=2'
  piped general.mtx.gz '2x3; 0: 0=3 2=-1; 1: 1=3'
  piped rua.hb "${rua/2=4/2=0.40000000000000002}"
  if [ -f labels ]; then piped labels '3x3; 0 1: 1=1; 1 1: 0=1 2=1; 2 1: 1=1'; fi
  piped /dev/null 'standard input: is empty'
  piped more.mtx 'standard input: more than the 1 entries that the size line announces'
  got=$(timeout 60 "$files" -print -f <(cat all.svm) 2>&1) && [ "${got//[+-]0i/}" = "$all" ] || { echo "t750-files -f <(cat all.svm): $got" && failed=1; }
  got=$(timeout 60 "$files" -print -f - <all.svm 2>&1) && [ "${got//[+-]0i/}" = "$all" ] || { echo "t750-files -f - <all.svm: $got" && failed=1; }
  mkfifo late && (sleep 0.3 && cat all.svm >late) &
  sleep 0.1 && got=$(timeout 60 "$files" -print -f late 2>&1) && [ "${got//[+-]0i/}" = "$all" ] || { echo "t750-files -f late: $got" && failed=1; }
  wait
  grep -q 'nobody: is a named pipe without a writer for 5 seconds' nobody.out || { echo "t750-files -f nobody: $(cat nobody.out)" && failed=1; }
}
if [ "$complex" != 0 ]; then everything; exit "$failed"; fi # what follows is real
good='3x3; 0: 1=1; 1: 0=1 2=1; 2: 1=1'
binary good 1211216 3 3 4 1 2 1 1 0 2 1 r r r r && accept good "$good"
binary labels 1211216 3 3 4 1 2 1 1 0 2 1 r r r r 1211214 3 r r r && accept labels '3x3; 0 1: 1=1; 1 1: 0=1 2=1; 2 1: 1=1'
squeeze labels '3x3; 0 1: 1=1; 1 1: 0=1 2=1; 2 1: 1=1'
binary line 1211216 1 11 1 1 10 r 1211214 1 r && squeeze line '1x11; 0 1: 10=1'
binary feed 1211216 1 11 1 1 10 0x3ff00000 0x0a && squeeze feed "1x11; 0: 10=1.0000000000000022" # ends in a line feed
head -c 75 good | gzip >short.gz2 && refuse short.gz2 ': has 75 bytes where its header asks for 76'
binary other 1211216 3 3 4 1 2 1 1 0 2 1 r r r r 1211214 1 r && refuse other ': has a vector of 1 numbers after a matrix of 3 rows, which cannot be its labels'
binary behind 1211216 3 3 4 1 2 1 1 0 2 1 r r r r 1211214 3 r r r 7 && refuse behind ': has 4 bytes after the vector that follows the matrix, which are not an object of PETSc'
binary two 1211216 3 3 4 1 2 1 1 0 2 1 r r r r 1211214 3 r r r 1211214 1 r && accept two '3x3; 0 1: 1=1; 1 1: 0=1 2=1; 2 1: 1=1'
head -c 14 good >header && refuse header ': the file ends in its header'
head -c 75 good >short && refuse short ': has 75 bytes where its header asks for 76'
binary complex 1211216 3 3 4 1 2 1 1 0 2 1 r r r r r r r r && refuse complex ': has 32 bytes more than its header asks for, which are no object of PETSc'
binary rows 1211216 -3 3 4 1 2 1 1 0 2 1 r r r r && refuse rows ': negative size in the header: -3 rows, 3 columns, 4 entries'
binary length 1211216 3 3 4 1 -2 5 1 0 2 1 r r r r && refuse length ': row 1 has -2 entries'
binary toolong 1211216 3 3 4 4 0 0 1 0 2 1 r r r r && refuse toolong ': row 0 has 4 entries in a matrix of 3 columns'
binary sum 1211216 3 3 4 1 1 1 1 0 2 1 r r r r && ends sum ': the rows have 3 entries together, the header says 4'
binary below 1211216 3 3 4 1 2 1 1 -1 2 1 r r r r && refuse below ': row 1 has an entry in column -1 of 3'
binary beyond 1211216 3 3 4 1 2 1 1 0 7 1 r r r r && refuse beyond ': row 1 has an entry in column 7 of 3'
binary unsorted 1211216 3 3 4 1 2 1 1 2 0 1 r r r r && refuse unsorted ': the columns of row 1 do not increase'
everything
exit "$failed"

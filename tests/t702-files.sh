#!/bin/bash
#
# The files that the examples read: what is right in either format gives the right matrix on one rank and on two, what is wrong gives one clear
# error that names the file.
#
#   BUILD=build LIB=$PWD/build/lib/libpetscgpucsr.so MPIEXEC=mpiexec tests/t702-files.sh
#
# A device has no part in it, and a hundred starts of one would take minutes.
export CUDA_VISIBLE_DEVICES=
solve=$(realpath "$BUILD/examples/solve")
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 2
export PETSC_OPTIONS="-dll_append $LIB -mat_type gpucsr -mat_gpucsr_backend host -pc_type none"

# refuse FILE TEXT OPTIONS ...: reading FILE ends in one error that says the file and the text
refuse() { side refused "$@"; }
refused() {
  local file=$1 text=$2 status
  shift 2
  timeout 60 "$solve" -f "$file" "$@" >"$out" 2>&1 </dev/null
  status=$?
  if [ $status = 0 ] || [ $status -gt 128 ] || grep -q 'Caught signal' "$out" || [ "$(grep -F -- "$text" "$out" | grep -cF "${BAD:-$file}")" != 1 ]; then
    echo "$file: ended with status $status; expected one error that names it and says '$text', got:" && grep -v 'Configure options' "$out"
  fi
}

# accept FILE ROWS: the matrix viewed on one rank and on two holds these rows
accept() { side accepted "$@"; }
accepted() {
  local file=$1 launch view
  for launch in "" "$MPIEXEC -n 2"; do
    # shellcheck disable=SC2086 # the launcher is words
    timeout 60 $launch "$solve" -f "$file" -ksp_max_it 1 -ksp_view_mat >"$out" 2>&1 </dev/null
    view=$(sed -n 's/^row [0-9]*: *//p' "$out" | tr -s ' ' | tr '\n' ';')
    if [ "$view" != "$2" ]; then echo "$file, run as '$launch solve': expected the rows $2, got $view" && grep -v 'Configure options' "$out"; fi
  done
}

# market NAME KIND LINE ...: a file NAME.mtx
market() {
  local name=$1
  printf '%%%%MatrixMarket matrix %s\n' "$2" >"$name.mtx"
  shift 2
  if [ $# -gt 0 ]; then printf '%s\n' "$@" >>"$name.mtx"; fi
}

general="coordinate real general"
market general "$general" '% a comment' '' '2 2 3' $'1 1 2\r' ' 2	2 3e0 ' '1 1 +1' # blanks, a comment, an entry given twice
accept general.mtx '(0, 3.) ;(1, 3.) ;'
market symmetric 'coordinate real symmetric' '2 2 3' '1 1 2' '2 1 -1' '2 2 2'
accept symmetric.mtx '(0, 2.) (1, -1.) ;(0, -1.) (1, 2.) ;'
market skew 'coordinate real skew-symmetric' '2 2 1' '2 1 -1'
accept skew.mtx '(1, 1.) ;(0, -1.) ;'
market pattern 'coordinate pattern general' '2 2 2' '1 1' '2 2'
accept pattern.mtx '(0, 1.) ;(1, 1.) ;'
market integer 'coordinate integer general' '2 2 2' '1 1 4' '2 2 -7'
accept integer.mtx '(0, 4.) ;(1, -7.) ;'
market array 'array real general' '2 2' 4 1 1 3
accept array.mtx '(0, 4.) (1, 1.) ;(0, 1.) (1, 3.) ;'
printf '%%%%MatrixMarket matrix coordinate real general\n2 2 1\n2 1 5' >noeol.mtx
accept noeol.mtx ';(0, 5.) ;'

refuse missing.mtx 'cannot be opened: No such file'
refuse /dev 'not a regular file'
: >empty.mtx && refuse empty.mtx 'is empty'
echo 'a text of some other kind' >other.txt && refuse other.txt 'is neither PETSc binary nor Matrix Market'
gzip -c general.mtx >general.mtx.gz && accept general.mtx.gz '(0, 3.) ;(1, 3.) ;'
without() {
  PETSC_OPTIONS='-pc_type none' refused general.mtx.gz 'is compressed: decompress it first, or let -dll_append'
}
side without
printf '%%%%MatrixMart matrix coordinate real general\n1 1 1\n1 1 1\n' >banner.mtx && refuse banner.mtx 'line 1: expected it to begin with'
printf '%%%%MatrixMarket matrix\n1 1 1\n1 1 1\n' >words.mtx && refuse words.mtx 'line 1: expected the five words'
market format 'csr real general' '1 1 1' '1 1 1' && refuse format.mtx "line 1: format 'csr' is none of"
market field 'coordinate rational general' '1 1 1' '1 1 1' && refuse field.mtx "line 1: field 'rational' is none of"
market symmetry 'coordinate real hankel' '1 1 1' '1 1 1' && refuse symmetry.mtx "line 1: symmetry 'hankel' is none of"
market nosizes "$general" '% nothing else' && refuse nosizes.mtx 'line 3: expected the sizes'
market twosizes "$general" '2 2' '1 1 1' && refuse twosizes.mtx 'line 2: expected the sizes'
market nansizes "$general" 'nan nan nan' '1 1 1' && refuse nansizes.mtx 'line 2: expected the sizes'
market large "$general" '99999999999999999999 2 1' '1 1 1' && refuse large.mtx 'line 2: expected the sizes'
market negative "$general" '-2 2 1' '1 1 1' && refuse negative.mtx 'line 2: negative size'
market many "$general" '2 2 2000000000' '1 1 1' && refuse many.mtx 'line 2: the file, of'
market truncated "$general" '2 2 3' '1 1 2' '2 2 3' && refuse truncated.mtx 'line 5: the file ends after 2 of 3 entries'
market half "$general" '2 2 2' '1 1 2' '2 2' && refuse half.mtx 'line 4: expected a finite number'
market more "$general" '2 2 1' '1 1 1' '2 2 1' && refuse more.mtx 'line 4: more than the 1 entries'
market row "$general" '2 2 2' '1 1 2' '3 2 3' && refuse row.mtx 'line 4: entry (3, 2) is outside the matrix'
market column "$general" '2 2 1' '1 0 2' && refuse column.mtx 'line 3: entry (1, 0) is outside the matrix'
market fraction "$general" '2 2 1' '1.5 1 1' && refuse fraction.mtx 'line 3: expected a row and a column'
market word "$general" '2 2 1' '1 1 one' && refuse word.mtx 'line 3: expected a finite number'
market nan "$general" '2 2 1' '1 1 nan' && refuse nan.mtx 'line 3: expected a finite number'
market infinite "$general" '2 2 1' '1 1 1e999' && refuse infinite.mtx 'line 3: expected a finite number'
market entries "$general" '2 2 1' '1 1 1 9' && refuse entries.mtx 'line 3: has more than one entry'
market upper 'coordinate real symmetric' '2 2 1' '1 2 1' && refuse upper.mtx 'line 3: entry (1, 2) is above the diagonal'
market diagonal 'coordinate real skew-symmetric' '2 2 1' '1 1 1' && refuse diagonal.mtx 'line 3: entry (1, 1) is not below the diagonal'
market oblong 'coordinate real symmetric' '3 2 1' '1 1 1' && refuse oblong.mtx 'line 2: a symmetric matrix has to be square'
market long "$general" '2 2 1' "1 1 1$(printf '%2000s' 0)" && refuse long.mtx 'line 3: is longer than 1024'
market rhs3 'array real general' '3 1' 1 2 3 && BAD=rhs3.mtx refuse general.mtx 'has 3 rows and 1 columns where a vector of 2 rows' -rhs rhs3.mtx
market rhs 'array real general' '2 1' 3 6
solved() {
  "$solve" -f general.mtx -rhs rhs.mtx -ksp_type preonly -pc_type lu -ksp_view_solution >"$out" 2>&1
  if [ "$(grep '^[0-9.]*$' "$out" | tr '\n' ' ')" != '1. 2. ' ]; then echo "general.mtx with rhs.mtx: expected the solution 1, 2, got:" && grep -v 'Configure options' "$out"; fi
}
side solved

# binary NAME WORD ...: a file of big-endian words, of 4 bytes each; r stands for the 8 bytes of 1.0
binary() {
  local name=$1 word
  shift
  for word; do
    if [ "$word" = r ]; then printf '\x3f\xf0\0\0\0\0\0\0'; else printf '%b' "$(printf '%08x' $((word & 0xffffffff)) | sed 's/../\\x&/g')"; fi
  done >"$name"
}

binary good 1211216 3 3 4 1 2 1 0 0 2 1 r r r r
if timeout 60 "$solve" -f good -ksp_max_it 1 2>&1 | grep -q 'bit indices\|scalar type'; then together && exit; exit 1; fi # a PETSc of other widths
accept good '(0, 1.) ;(0, 1.) (2, 1.) ;(1, 1.) ;'
binary followed 1211216 3 3 4 1 2 1 0 0 2 1 r r r r 1211214 1 r
accept followed '(0, 1.) ;(0, 1.) (2, 1.) ;(1, 1.) ;'
gzip -c followed >followed.gz && accept followed.gz '(0, 1.) ;(0, 1.) (2, 1.) ;(1, 1.) ;'
head -c 14 good >header && refuse header 'the file ends in its header'
head -c 75 good >short && refuse short 'has 75 bytes where its header asks for 76'
binary vector 1211214 3 r r r && refuse vector 'holds no matrix: class id 1211214'
binary classid 1211299 3 3 4 1 2 1 0 0 2 1 r r r r && refuse classid 'holds no matrix: class id 1211299'
binary wide 0 1211216 0 1 0 1 0 1 0 1 0 0 r && refuse wide 'was written by a PETSc of 64-bit indices'
binary complex 1211216 3 3 4 1 2 1 0 0 2 1 r r r r r r r r && refuse complex 'what follows is no object of PETSc'
binary rows 1211216 -3 3 4 1 2 1 0 0 2 1 r r r r && refuse rows 'negative size in the header'
binary columns 1211216 3 -3 4 1 2 1 0 0 2 1 r r r r && refuse columns 'negative size in the header'
binary nonzeros 1211216 3 3 -5 1 2 1 0 0 2 1 r r r r && refuse nonzeros 'negative number of entries'
binary nan 1211216 2146959360 2146959360 2146959360 1 r && refuse nan 'where its header asks for' # the first half of a NaN for each size
head -c 40 good >columnless && refuse columnless 'has 40 bytes where its header asks for 76'
head -c 10 vector >cut && BAD=cut refuse good 'has 10 bytes where its header asks for 32' -rhs cut
binary huge 1211216 2000000000 3 4 1 2 1 0 0 2 1 r r r r && refuse huge 'where its header asks for 8000000064'
binary length 1211216 3 3 4 1 -2 5 0 0 2 1 r r r r && refuse length 'row 1 has -2 entries'
binary toolong 1211216 3 3 4 4 0 0 0 0 2 1 r r r r && refuse toolong 'row 0 has 4 entries in a matrix of 3 columns'
binary sum 1211216 3 3 4 1 1 1 0 0 2 1 r r r r && refuse sum 'the rows have 3 entries together, the header says 4'
binary below 1211216 3 3 4 1 2 1 0 -1 2 1 r r r r && refuse below 'row 1 has an entry in column -1 of 3'
binary beyond 1211216 3 3 4 1 2 1 0 0 7 1 r r r r && refuse beyond 'row 1 has an entry in column 7 of 3'
binary unsorted 1211216 3 3 4 1 2 1 0 2 0 1 r r r r && refuse unsorted 'the columns of row 1 do not increase'
binary rhs 1211214 2 r r && BAD=rhs refuse good 'has 2 rows and 1 columns where a vector of 3 rows' -rhs rhs
together

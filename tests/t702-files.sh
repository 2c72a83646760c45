#!/bin/bash
#
# The files that the examples read. With the library they read all formats of MatGPUCSRLoadFile(), on one rank and on two, and report its errors (t751 tests all errors). Without it
# they read PETSc binary, and for other files say what helps. Right-hand sides come in both forms.
#
#   BUILD=build LIB=$PWD/build/lib/libpetscgpucsr.so MPIEXEC=mpiexec tests/t702-files.sh
#
# No device is used.
export CUDA_VISIBLE_DEVICES=
solve=$(realpath "$BUILD/examples/solve")
source "$(dirname "${BASH_SOURCE[0]}")/cases.sh"
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 2
plain="-pc_type none" loaded="-dll_append $LIB -mat_type gpucsr -mat_gpucsr_backend host -pc_type none"

# refuse OPTIONS FILE TEXT ARGUMENT ...: reading ends in one error that says FILE and TEXT
refuse() { side refused "$@"; }
refused() {
  local options=$1 file=$2 text=$3 status
  shift 3
  PETSC_OPTIONS=$options timeout 60 "$solve" -f "$@" >"$out" 2>&1 </dev/null
  status=$?
  if [ $status = 0 ] || [ $status -gt 128 ] || grep -q 'Caught signal' "$out" || [ "$(grep -F -- "$text" "$out" | grep -cF "$file")" != 1 ]; then
    echo "$*: ended with status $status; expected one error that names $file and says '$text', got:" && grep -v 'Configure options' "$out"
  fi
}

# accept OPTIONS FILE ROWS: the matrix viewed on one rank and on two holds these rows
accept() { side accepted "$@"; }
accepted() {
  local file=$2 launch view
  for launch in "" "$MPIEXEC -n 2"; do
    # shellcheck disable=SC2086 # the launcher is words
    PETSC_OPTIONS=$1 timeout 60 $launch "$solve" -f "$file" -ksp_max_it 1 -ksp_view_mat >"$out" 2>&1 </dev/null
    view=$(sed -n 's/^ *row [0-9]*: *//p' "$out" | tr -s ' ' | tr '\n' ';')
    if [ "$view" != "$3" ]; then echo "$file, run as '$launch solve': expected the rows $3, got $view" && grep -v 'Configure options' "$out"; fi
  done
}

# solved OPTIONS RHS: general.mtx or its binary form, with this right-hand side, has the solution 1, 2
solved() {
  PETSC_OPTIONS=$1 timeout 60 "$solve" -f "$2" -rhs "$3" -ksp_type preonly -pc_type lu -ksp_view_solution >"$out" 2>&1
  if [ "$(grep '^[0-9.]*$' "$out" | tr '\n' ' ')" != '1. 2. ' ]; then echo "$2 with $3: expected the solution 1, 2, got:" && grep -v 'Configure options' "$out"; fi
}

printf '%%%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 2\n2 2 3\n1 1 1\n' >general.mtx
printf '%%%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n' >outside.mtx
printf '%%%%MatrixMarket matrix array real general\n2 1\n3\n6\n' >rhs.mtx
printf '%%%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n' >rhs3.mtx
gzip -k general.mtx

rows='(0, 3.) ;(1, 3.) ;'
accept "$loaded" general.mtx "$rows"
accept "$loaded" general.mtx.gz "$rows"
side solved "$loaded" general.mtx rhs.mtx
refuse "$loaded" missing.mtx 'cannot be opened: No such file' missing.mtx
refuse "$loaded" outside.mtx 'line 3, column 1: row 3 is outside the matrix' outside.mtx
refuse "$loaded" rhs3.mtx 'has 3 rows and 1 columns where a vector of 2 rows' general.mtx -rhs rhs3.mtx
refuse "$plain" missing.mtx 'Cannot locate file: missing.mtx' missing.mtx
refuse "$plain" general.mtx 'convert it by gpucsr-convert, or read it with -dll_append libpetscgpucsr.so' general.mtx
: >empty && refuse "$plain" empty 'is not a matrix in PETSc binary' empty
mkdir folder && refuse "$plain" folder 'Cannot locate file: folder' folder

# binary NAME WORD ...: a file of big-endian words, of 4 bytes each; t stands for the 8 bytes of 3.0, s for 6.0
binary() {
  local name=$1 word
  shift
  for word; do
    case $word in
    t) printf '\x40\x08\0\0\0\0\0\0' ;;
    s) printf '\x40\x18\0\0\0\0\0\0' ;;
    *) printf '%b' "$(printf '%08x' "$word" | sed 's/../\\x&/g')" ;;
    esac
  done >"$name"
}
binary good 1211216 2 2 2 1 1 0 1 t t
binary rhs 1211214 2 t s
if PETSC_OPTIONS=$plain timeout 60 "$solve" -f good -ksp_max_it 1 2>&1 | grep -q 'is not a matrix in PETSc binary\|end of file'; then together && exit; exit 1; fi # a PETSc of other widths
accept "$plain" good "$rows"
accept "$loaded" good "$rows"
side solved "$plain" good rhs
side solved "$loaded" good rhs.mtx
side solved "$loaded" general.mtx rhs
refuse "$plain" rhs.mtx 'is not a matrix in PETSc binary' good -rhs rhs.mtx
head -c 40 good >short && refuse "$loaded" short 'has 40 bytes where its header asks for 48' short
together

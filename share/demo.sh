#!/bin/bash
#
# Solve a real system with PETSc twice, the matrix once of type gpucsr and once of PETSc's own type aij, and say what ran where.
#
#   make demo                      installs what is missing, builds, and runs this
#   BUILD=build share/demo.sh      with what is built in that folder
#
# The program, BUILD/examples/solve, knows nothing of the library; options alone make the difference.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
BUILD=${BUILD:-build}
lib=$(realpath -m "$BUILD")/lib/libpetscgpucsr.so
solve=$BUILD/examples/solve
problem="-f share/datasets/bcsstk16.petsc -ksp_type cg -pc_type jacobi -ksp_rtol 1e-8"
plugin="-dll_append $lib -mat_type gpucsr"
for file in "$lib" "$solve"; do
  test -f "$file" || { echo "demo: $file is not there: make builds it" >&2 && exit 2; }
done
unset PETSC_OPTIONS
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

# run NAME OPTIONS ...: leave what the program prints in NAME.out and what the matrix says of itself after the solve in NAME.view
run() {
  local name=$1
  shift
  # shellcheck disable=SC2086 # the problem is words
  if ! "$solve" $problem -times -ksp_view_mat "ascii:$tmp/$name.view:ascii_info" "$@" >"$tmp/$name.out" 2>&1 || ! grep -q ' CONVERGED' "$tmp/$name.out"; then
    echo "demo: this run failed: $solve $problem $*" >&2
    grep -v 'Configure options' "$tmp/$name.out" >&2
    exit 1
  fi
}

# take FILE EXPRESSION: what the sed expression makes of the one line that it matches
take() { sed -n "s/$2/\1/p;T;q" "$tmp/$1"; }

# row NAME WHERE FORMAT KERNEL
row() {
  printf '%-11s %-32s %-7s %-14s %10s %10s %10s s\n' "$1" "$2" "$3" "$4" "$(take "$1.out" '.* after \([0-9]*\) iterations.*')" \
    "$(take "$1.out" '^residual.*| \(.*\)$')" "$(take "$1.out" '^times.* solve \([0-9.]*\) s.*')"
}

# shellcheck disable=SC2086
run gpucsr $plugin
run aij -mat_type aij

device=$(take gpucsr.view '.*products run on \([a-z]* device [0-9]*, .*\), precision.*')
format=$(take gpucsr.view '.* A: format \([a-z0-9_]*\), kernel .*')
kernel=$(take gpucsr.view '.* A: format .*, kernel \([a-z0-9_]*\).*')
why=$(take gpucsr.view '.*, because \(.*\)$')
case $device in
cuda*) where="GPU: ${device#*, }" question="this format and kernel" ;;
*) where="CPU: host backend" question="${device:+this format and kernel}" ;;
esac

take gpucsr.out '^matrix *\(.*\)$' | sed 's|.*|share/datasets/bcsstk16.petsc, the stiffness matrix of a dam: &|'
echo "Conjugate gradients with Jacobi to a residual of 1e-8."
echo
printf '%-11s %-32s %-7s %-14s %10s %10s %12s\n' '-mat_type' 'products ran on' format kernel iterations residual solve
row gpucsr "$where" "${format:-aij}" "${kernel:-aij}"
row aij "CPU: PETSc" aij aij
echo
echo "Why ${question:-not on a GPU}: ${why:-not said}."
echo
cat <<END
The program that solved was compiled without this library. To do the same with a program of your own, as it is, add two options:

  ./program -dll_append $lib -mat_type gpucsr

or set them once, for all programs below:

  export PETSC_OPTIONS="-dll_append $lib -mat_seqaij_type seqaijgpucsr -dm_mat_type gpucsr"
  printf '%s\n' '-dll_append $lib' '-mat_seqaij_type seqaijgpucsr' '-dm_mat_type gpucsr' >> ~/.petscrc

These reach programs that ask for MATAIJ by name, or have a DM, too. -mat_type for all programs would also reach matrix-free and shell matrices.
To see what ran where, and why: -mat_gpucsr_report. For -pc_type lu and cholesky on a GPU: make cudss.
END

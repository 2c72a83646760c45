#!/bin/bash
#
# Forty of PETSc's examples ask for its CUDA types. Run with the library's types (tests/petsc-examples.py, tests/petsc-examples.list), they print the same as with MATAIJ and without the library. The host
# stands in for a GPU if there is none. Skipped if the sources of the examples are not installed (Debian's libpetsc3.18-dev-examples).
#
#   BUILD=build LIB=$PWD/build/lib/libpetscgpucsr.so BACKEND=host MPIEXEC=mpiexec tests/t705-petsc-examples.sh
here=$(dirname "$0")
minor=$(pkg-config --modversion "${PETSC:-PETSc}" 2>/dev/null | cut -d. -f1,2)
sources=/usr/share/petsc/$minor/share/petsc/examples
if [ -z "$minor" ] || [ ! -d "$sources/src/ksp" ] || ! command -v mpicc python3 >/dev/null; then exit 77; fi
standin=''
if [ "$BACKEND" = host ]; then standin='-gpucsr_debug_standin 1'; fi
export PETSC_OPTIONS=''
# shellcheck disable=SC2086 # options are words
python3 "$here/petsc-examples.py" -only "$here/petsc-examples.list" -keep "$BUILD/petsc-examples" "$sources" "$LIB" -mat_gpucsr_backend cuda $standin >"${TMPDIR:-/tmp}/t705.$$" 2>&1
status=$?
said=$(cat "${TMPDIR:-/tmp}/t705.$$")
rm -f "${TMPDIR:-/tmp}/t705.$$"
if [ $status != 0 ] || ! grep -qx "$(grep -vc '^#' "$here/petsc-examples.list") same, 0 both end in an error, 0 not built, 0 OTHER" <<<"$said"; then
  grep -v '^same' <<<"$said"
  exit 1
fi

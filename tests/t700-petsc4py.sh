#!/bin/bash
#
# A petsc4py script, unmodified but for PETSC_OPTIONS: the same output with the library as without, on one and two ranks, and the report says
# that the library did the products. Skipped where there is no petsc4py of the PETSc that the library was built for.
#
#   BUILD=build LIB=$PWD/build/lib/libpetscgpucsr.so BACKEND=host MPIEXEC=mpiexec tests/t700-petsc4py.sh
script=$(dirname "$0")/t700-petsc4py.py
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

# shellcheck source=tests/petsc4py.sh
. "$(dirname "$0")/petsc4py.sh"

failed=0
for ranks in 1 2; do
  launch=()
  if [ $ranks -gt 1 ]; then read -ra launch <<<"$MPIEXEC -n $ranks"; fi
  PETSC_OPTIONS='' "${launch[@]}" $python "$script" >"$tmp/plain" || exit 1
  for type in "-mat_type gpucsr" "-mat_seqaij_type seqaijgpucsr"; do
    if ! PETSC_OPTIONS="-dll_append $LIB -mat_gpucsr_backend $BACKEND -mat_gpucsr_format csr -mat_gpucsr_report full $type" "${launch[@]}" $python "$script" >"$tmp/out" 2>&1; then
      echo "$type on $ranks ranks failed:" && cat "$tmp/out" && failed=1
    elif ! grep -E '^(options|aij) ' "$tmp/out" | diff "$tmp/plain" - || ! grep -q csr_ "$tmp/out"; then
      echo "$type on $ranks ranks: not the output without the library (<), or no report of products in format csr:" && cat "$tmp/out" && failed=1
    fi
  done
done
exit $failed

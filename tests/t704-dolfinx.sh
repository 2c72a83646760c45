#!/bin/bash
#
# A script for dolfinx (FEniCSx), unmodified but for PETSC_OPTIONS: the same output with the library as without, on one and two ranks. -mat_seqaij_type reaches its matrices, which it asks for by
# name, and -vec_gpu_separate, or the host that stands in for a GPU, keeps two copies of each vector. Skipped where there is no dolfinx of the PETSc that the library was built for.
#
#   BUILD=build LIB=$PWD/build/lib/libpetscgpucsr.so BACKEND=host MPIEXEC=mpiexec tests/t704-dolfinx.sh
python=${PYTHON:-/usr/bin/python3}
script=$(dirname "$0")/t704-dolfinx.py
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

petsc() { ldd "$1" 2>/dev/null | grep -o 'libpetsc[^ ]*\.so[^ ]*' | grep -v gpucsr | head -n 1; }
module=$($python -c 'import dolfinx.cpp, petsc4py; petsc4py.init(); from petsc4py import PETSc; print(PETSc.__file__)' 2>/dev/null) || exit 77
if [ "$(petsc "$module")" != "$(petsc "$LIB")" ]; then exit 77; fi
export XDG_CACHE_HOME=$PWD/$BUILD/cache # what it compiles
case $BUILD in /*) XDG_CACHE_HOME=$BUILD/cache ;; esac

ours="-dll_append $LIB -mat_seqaij_type seqaijgpucsr -mat_gpucsr_format csr"
setups=("$ours -mat_gpucsr_backend $BACKEND")
if [ "$BACKEND" = host ]; then setups=("$ours -mat_gpucsr_backend host -vec_gpu_separate" "$ours -mat_gpucsr_backend cuda -gpucsr_debug_standin 1"); fi
failed=0
for ranks in 1 2; do
  launch=()
  if [ $ranks -gt 1 ]; then read -ra launch <<<"$MPIEXEC -n $ranks"; fi
  PETSC_OPTIONS='' "${launch[@]}" $python "$script" >"$tmp/plain" 2>"$tmp/err" || { cat "$tmp/err" && exit 1; }
  for setup in "${setups[@]}"; do
    if ! PETSC_OPTIONS="$setup -types" "${launch[@]}" $python "$script" >"$tmp/out" 2>&1; then
      echo "$setup on $ranks ranks failed:" && cat "$tmp/out" && failed=1
    elif ! grep -E '^(poisson|gamg|elasticity)' "$tmp/out" | diff "$tmp/plain" -; then
      echo "$setup on $ranks ranks: not the output without the library (<)" && failed=1
    elif [ $ranks = 1 ] && [ "$(grep -c '^types.*gpucsr' "$tmp/out")" != 3 ]; then
      echo "$setup on $ranks ranks: matrices are of other types" && grep ^types "$tmp/out" && failed=1
    fi
  done
done
if [ "$(grep -c 'converged True' "$tmp/plain")" != 6 ]; then echo "not a test:" && cat "$tmp/plain" && failed=1; fi
exit $failed

#!/bin/bash
#
# A slepc4py script, unmodified but for PETSC_OPTIONS: the same output with the library as without, with every type of BV, on one and two ranks. -vec_gpu_separate
# stands for a GPU: MatCreateVecs() gives vectors on the device. Skipped where there is no slepc4py of the PETSc that the library was built for.
#
#   BUILD=build LIB=$PWD/build/lib/libpetscgpucsr.so BACKEND=host MPIEXEC=mpiexec tests/t701-slepc4py.sh
python=${PYTHON:-/usr/bin/python3}
script=$(dirname "$0")/t701-slepc4py.py
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

petsc() { ldd "$1" | grep -o 'libpetsc[^ ]*\.so[^ ]*' | grep -v gpucsr | head -n 1; }
found=''
for slepc in "${PYTHONPATH:-}" /usr/lib/slepcdir/*/*/lib/python3/dist-packages; do # where Debian keeps it, one for each build of PETSc
  for path in "${PYTHONPATH:-}" /usr/lib/petscdir/*/*/lib/python3/dist-packages; do
    module=$(PYTHONPATH=$slepc:$path $python -c 'import slepc4py; slepc4py.init(); from slepc4py import SLEPc; print(SLEPc.__file__)' 2>/dev/null) || continue
    if [ "$(petsc "$module")" = "$(petsc "$LIB")" ]; then found=yes && break 2; fi
  done
done
if [ -z "$found" ]; then exit 77; fi
export PYTHONPATH=$slepc:$path

separate=''
if [ "$BACKEND" = host ]; then separate=-vec_gpu_separate; fi
failed=0
for ranks in 1 2; do
  launch=()
  if [ $ranks -gt 1 ]; then read -ra launch <<<"$MPIEXEC -n $ranks"; fi
  PETSC_OPTIONS='' "${launch[@]}" $python "$script" >"$tmp/plain" || exit 1
  types=("" "-bv_type vecs" "-bv_type mat" "-bv_type contiguous")
  if [ $ranks -gt 1 ]; then types=(""); fi
  for bv in "${types[@]}"; do
    if ! PETSC_OPTIONS="-dll_append $LIB -mat_gpucsr_backend $BACKEND $separate -mat_gpucsr_format csr -mat_type gpucsr $bv" "${launch[@]}" $python "$script" >"$tmp/out" 2>&1; then
      echo "BV '$bv' on $ranks ranks failed:" && cat "$tmp/out" && failed=1
    elif ! grep -E '^(eps|svd|mfn) ' "$tmp/out" | diff "$tmp/plain" -; then
      echo "BV '$bv' on $ranks ranks: not the output without the library (<)" && failed=1
    fi
  done
done
if grep -q failed "$tmp/plain"; then echo "not a test:" && cat "$tmp/plain" && failed=1; fi
exit $failed

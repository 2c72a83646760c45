#!/bin/bash
#
# SLEPc's shift-and-invert with factors of solver type cudss, by options alone, on the host in place of a GPU and with tests/fake/cudss.c in place of cuDSS: t635-cudss-slepc.py gives the same eigenvalues
# as with PETSc's factors. ROOT/tests/run.sh runs it.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
if [ "$BACKEND" != host ] || ! command -v mpicc >/dev/null; then exit 77; fi
python=${PYTHON:-/usr/bin/python3}
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
petsc() { ldd "$1" | grep -o 'libpetsc[^ ]*\.so[^ ]*' | grep -v gpucsr | head -n 1; }
found=''
for folder in /usr/lib/slepcdir/*/*/lib/python3/dist-packages; do # where Debian keeps it, one for each build of PETSc
  path=$folder:${folder//slepc/petsc}
  module=$(PYTHONPATH=$path $python -c 'import slepc4py; slepc4py.init(); from slepc4py import SLEPc; print(SLEPc.__file__)' 2>/dev/null) || continue
  if [ "$(petsc "$module")" = "$(petsc "$LIB")" ]; then found=$path && break; fi
done
if [ -z "$found" ]; then exit 77; fi
export PYTHONPATH=$found
mpicc -shared -fPIC -O1 -o "$tmp/cudss.so" tests/fake/cudss.c -lm || exit 1
PETSC_OPTIONS='' $python tests/t635-cudss-slepc.py >"$tmp/plain" || exit 1
if [ "$(grep -c ' right ' "$tmp/plain")" != 4 ]; then echo "not a test:" && cat "$tmp/plain" && exit 1; fi
failed=0
for options in '-st_pc_factor_mat_solver_type cudss' '-mat_gpucsr_cudss_least 100 -st_mat_gpucsr_cudss_least 100'; do
  options="-dll_append $LIB -mat_type gpucsr -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_cudss_library $tmp/cudss.so $options -mat_gpucsr_report"
  if ! PETSC_OPTIONS=$options $python tests/t635-cudss-slepc.py >"$tmp/out" 2>&1 || ! grep -E ' (right|failed) ' "$tmp/out" | diff "$tmp/plain" -; then
    echo "$options: not the output without the library (<)" && cat "$tmp/out" && failed=1
  elif ! grep -q 'by cudss' "$tmp/out"; then
    echo "$options: no factor is of cuDSS" && cat "$tmp/out" && failed=1
  fi
done
exit $failed

# shellcheck shell=bash
# Sourced by tests of petsc4py. $python with PYTHONPATH finds the petsc4py of the PETSc that the library was built for; if there is none, the test is skipped
python=${PYTHON:-/usr/bin/python3}
petsc() { ldd "$1" | grep -o 'libpetsc[^ ]*\.so[^ ]*' | grep -v gpucsr | head -n 1; }
found=''
for path in "${PYTHONPATH:-}" /usr/lib/petscdir/*/*/lib/python3/dist-packages; do # where Debian keeps it, one for each build of PETSc
  module=$(PYTHONPATH=$path $python -c 'import petsc4py; petsc4py.init(); from petsc4py import PETSc; print(PETSc.__file__)' 2>/dev/null) || continue
  if [ "$(petsc "$module")" = "$(petsc "$LIB")" ]; then found=yes && break; fi
done
if [ -z "$found" ]; then exit 77; fi
export PYTHONPATH=$path

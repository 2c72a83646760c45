#!/bin/bash
#
# gpucsr.learn: scikit-learn's own checks of estimators and its own optima, with AIJ and with gpucsr. Skipped where there is no scikit-learn (1.6 or later) or no petsc4py of the PETSc
# that the library was built for; PYTHON names another Python, for instance a virtual environment's, made with --system-site-packages.
python=${PYTHON:-/usr/bin/python3}
script=$(dirname "$0")/t706-sklearn.py
petsc() { ldd "$1" | grep -o 'libpetsc[^ ]*\.so[^ ]*' | grep -v gpucsr | head -n 1; }
found=''
for path in "${PYTHONPATH:-}" /usr/lib/petscdir/*/*/lib/python3/dist-packages; do # where Debian keeps it, one for each build of PETSc
  module=$(PYTHONPATH=$path $python -c 'import petsc4py; petsc4py.init(); from petsc4py import PETSc; print(PETSc.__file__)' 2>/dev/null) || continue
  if [ "$(petsc "$module")" = "$(petsc "$LIB")" ]; then found=yes && break; fi
done
if [ -z "$found" ] || ldd "$LIB" | grep -q complex; then exit 77; fi
if ! $python -c 'from sklearn.utils.validation import validate_data' 2>/dev/null; then exit 77; fi
export PYTHONPATH=$path

# shellcheck disable=SC2086 # options are words
for options in "" "-dll_append $LIB -mat_gpucsr_backend $BACKEND -mat_type gpucsr" "-dll_append $LIB -mat_gpucsr_backend $BACKEND -mat_type gpucsr -vec_type gpu"; do
  if ! PETSC_OPTIONS='' $python "$script" "$(dirname "$0")/../python/gpucsr" $options; then echo "with options: $options" && exit 1; fi
done

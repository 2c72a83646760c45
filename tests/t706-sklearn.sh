#!/bin/bash
#
# gpucsr.learn: scikit-learn's own checks of estimators and its own optima, with AIJ and with gpucsr. Skipped where there is no scikit-learn (1.6 or later) or no petsc4py of the PETSc
# that the library was built for; PYTHON names another Python, for instance a virtual environment's, made with --system-site-packages.
script=$(dirname "$0")/t706-sklearn.py
# shellcheck source=tests/petsc4py.sh
. "$(dirname "$0")/petsc4py.sh"
if ldd "$LIB" | grep -q complex; then exit 77; fi
if ! $python -c 'from sklearn.utils.validation import validate_data' 2>/dev/null; then exit 77; fi

# shellcheck disable=SC2086 # options are words
for options in "" "-dll_append $LIB -mat_gpucsr_backend $BACKEND -mat_type gpucsr" "-dll_append $LIB -mat_gpucsr_backend $BACKEND -mat_type gpucsr -vec_type gpu"; do
  if ! PETSC_OPTIONS='' $python "$script" "$(dirname "$0")/../python/gpucsr" $options; then echo "with options: $options" && exit 1; fi
done

#!/bin/bash
#
# Arrays of petsc4py: kept views, and python/gpucsr/arrays.py. Skipped where there is no petsc4py of the PETSc that the library was built for.
#
#   BUILD=build LIB=$PWD/build/lib/libpetscgpucsr.so BACKEND=host tests/t703-arrays.sh
script=$(dirname "$0")/t703-arrays.py
tmp=$(mktemp) && trap 'rm -f "$tmp"' EXIT

# shellcheck source=tests/petsc4py.sh
. "$(dirname "$0")/petsc4py.sh"

failed=0
separate=('') && if [ "$BACKEND" = host ]; then separate=('' -vec_gpu_separate '-vec_gpu_separate -mat_gpucsr_format csr' '-vec_type gpu' '-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_product_least 0' '-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_product_least 0 -mat_gpucsr_master device'); fi
for options in "${separate[@]}"; do
  if ! PETSC_OPTIONS="-dll_append $LIB -mat_gpucsr_backend $BACKEND $options" $python "$script" >"$tmp" 2>&1 || ! grep -q '^done' "$tmp"; then
    echo "with $options:" && cat "$tmp" && failed=1
  fi
done
exit $failed

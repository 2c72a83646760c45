#!/bin/bash
#
# src/ksp/examples/newton.c and newton.py: Newton's iterations, solution and Jacobian of MATAIJ with MatSetValuesCOO() of host arrays, on the host and with the host in place of a GPU, where no value of
# a matrix crosses the bus. Python's part is skipped where there is no petsc4py of the PETSc that the library was built for.
#
#   BUILD=build LIB=$PWD/build/lib/libpetscgpucsr.so BACKEND=host tests/t710-newton.sh
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
if ldd "$LIB" | grep -q complex; then exit 77; fi
here=$(dirname "$0") device="-mat_gpucsr_backend cuda -mat_gpucsr_product_least 0 -mat_gpucsr_master device"
if [ "$BACKEND" = host ]; then device+=" -gpucsr_debug_standin 1"; fi
tight="-ksp_rtol 1e-13" # iterates that differ by rounding
program=$BUILD/examples/newton
failed=0
fail() { echo "$1" && cat "$tmp/out" && failed=1; }

# without NAME: the report says that no value of a matrix crossed the bus
without() { grep -q 'of these values of matrices 0 MB and 0 MB' "$tmp/out" || fail "$1: values of matrices crossed the bus"; }

# shellcheck disable=SC2086 # options are words
run() {
  "$program" $tight "$@" >"$tmp/out" 2>&1 || fail "newton $* failed"
  iterations=$(sed -n 's/^outcome .* after //p' "$tmp/out")
}
run -mat_type aij -solution_view binary:"$tmp/aij" -jacobian_view binary:"$tmp/aij.mat"
expected=$iterations
for options in "-mat_gpucsr_backend host" "$device" "$device -mat_gpucsr_report"; do
  # shellcheck disable=SC2086 # options are words
  run -mat_type gpucsr $options
  if [ -z "$expected" ] || [ "$iterations" != "$expected" ]; then fail "newton $options: $iterations, not $expected"; fi
  if [[ $options == *report ]]; then without newton && continue; fi
  # shellcheck disable=SC2086 # options are words
  run -mat_type gpucsr $options -solution_view binary:"$tmp/gpucsr" -jacobian_view binary:"$tmp/gpucsr.mat"
  mv "$tmp/gpucsr" "$tmp/c$((++n))" && mv "$tmp/gpucsr.mat" "$tmp/c$n.mat"
done
if ((failed)); then exit 1; fi

# shellcheck source=tests/petsc4py.sh
. "$here/petsc4py.sh"
export PYTHONPATH="$PYTHONPATH:$here/../python:$here/../src/ksp/examples"
for options in "-mat_gpucsr_backend host" "$device" "$device -mat_gpucsr_report"; do
  PETSC_OPTIONS="-dll_append $LIB $tight $options" $python "$here/t710-newton.py" "$tmp" "${expected% iterations}" >"$tmp/out" 2>&1
  status=$?
  if [ "$BACKEND" = cuda ] && grep -q 'pip install' "$tmp/out"; then exit 77; fi
  if [ $status != 0 ] || ! grep -q '^done' "$tmp/out"; then fail "newton.py with $options failed"; fi
  if [[ $options == *report ]]; then without newton.py; fi
done
exit $failed

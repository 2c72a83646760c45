#!/bin/bash
#
# The output of -ksp_view and -mat_view for solvers, preconditioners, factors and matrices: the path taken, or the reason against it. The host stands in for a GPU.
if [ "$BACKEND" = cuda ]; then exit 77; fi
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
failed=0
solve="$BUILD/examples/solve -f share/datasets/gr_30_30.mtx -dll_append $LIB -mat_type gpucsr -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_small_on_host 0"
if $solve 2>&1 | grep -q "this PETSc computes with"; then exit 77; fi # complex or single precision has no device

# says TEXT OPTIONS: a solve with them converges, and shows TEXT once
says() {
  local text=$1
  shift
  if ! timeout 60 $solve "$@" >"$tmp/out" 2>&1 || ! grep -q CONVERGED "$tmp/out" || [ "$(grep -cF -- "$text" "$tmp/out")" != 1 ]; then
    echo "$*: does not converge, or does not say once: $text" && grep -v 'Configure options' "$tmp/out" && failed=1
  fi
}

says 'values: factored on the device' -ksp_type cg -pc_type icc -ksp_view
says 'kernel ranges' -ksp_type cg -pc_type icc -mat_gpucsr_solve_kernel ranges -ksp_view
says 'inverses: 900 rows, blocks of at most 45' -ksp_type gmres -pc_type bjacobi -pc_bjacobi_blocks 20 -sub_mat_gpucsr_solve_kernel inverses -ksp_view
says "solves: PETSc's" -ksp_type cg -pc_type icc -mat_gpucsr_solve_kernel host -ksp_view
says 'All 4 blocks of a process are one factor on the device' -ksp_type gmres -pc_type bjacobi -pc_bjacobi_blocks 4 -ksp_view
says 'Cycles run on backend cuda, ' -ksp_type cg -pc_type gamg -ksp_view
says 'replaces the coarsest 2 levels' -ksp_type cg -pc_type gamg -ksp_view
says "PETSc runs the cycles, because -pc_mg_gpucsr false was asked for" -ksp_type cg -pc_type gamg -pc_mg_gpucsr false -ksp_view
says "PETSc runs the cycles, because there is one level" -ksp_type gmres -pc_type mg -pc_mg_levels 1 -ksp_view
says 'variant single_reduction, precision double' -ksp_type gpucg -ksp_gpucg_variant single_reduction -pc_type jacobi -ksp_view
says 'last solve: path host_loop' -ksp_type gpubcgs -ksp_gpubcgs_path host_loop -pc_type jacobi -ksp_view
says 'last solve: ' -ksp_type gpugmres -pc_type jacobi -ksp_view

# A monitor asks for the solution in the middle of a solve: its residual is PETSc's
last() { timeout 60 $solve -pc_type jacobi -ksp_gmres_restart 7 -ksp_monitor_true_residual -ksp_type "$1" 2>&1 | sed -n 's/.*true resid norm \([0-9.]*[0-9]\{5\}\)[0-9]*\(e[-+0-9]*\) .*/\1\2/p' | cut -c1-8 | md5sum; }
for type in gmres fgmres; do
  if [ "$(last gpu$type)" != "$(last $type)" ]; then echo "gpu$type: other residuals in -ksp_monitor_true_residual than $type" && failed=1; fi
done

if ! timeout 60 "$BUILD/examples/bmrm" -f share/datasets/learning/heart_scale.petsc -dll_append "$LIB" -mat_type gpucsr -tao_type gpubmrm -tao_view >"$tmp/out" 2>&1 || ! grep -q 'planes, on the ' "$tmp/out" || ! grep -q 'dual problem on rank 0' "$tmp/out"; then
  echo "-tao_view: does not say where the planes are" && cat "$tmp/out" && failed=1
fi
exit $failed

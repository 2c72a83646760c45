#!/bin/bash
#
# Ranks with options that differ from the first rank's: the run continues if the option may differ; otherwise one error names it. No rank waits for ever. ROOT/tests/run.sh runs it.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
if [ "$BACKEND" = cuda ]; then echo "skipped: a stand-in plays the device" && exit 77; fi
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
failed=0
program="$BUILD/examples/poisson3d -n 6 -dll_append $LIB -mat_type gpucsr -mat_gpucsr_format csr -vec_type gpu -gpucsr_debug_standin 1 -pc_type jacobi"

# says TEXT ARGS OTHERS: the program runs on two ranks, the first with ARGS, the second with ARGS and OTHERS; it ends and says TEXT
says() {
  # shellcheck disable=SC2086 # words
  timeout 60 $MPIEXEC -n 1 $program $2 : -n 1 $program $2 $3 >"$tmp/out" 2>&1
  if [ $? -eq 124 ] || ! grep -qF -- "$1" "$tmp/out"; then
    echo "$2, and of rank 1 $3: waits for ever, or does not say: $1" && cat "$tmp/out"
    failed=1
  fi
}

cuda="-mat_gpucsr_backend cuda"
# shellcheck disable=SC2086 # words
if $program $cuda 2>&1 | grep -q "this PETSc computes with"; then exit 77; fi # complex or single precision has no device
says "report of 2 ranks" "$cuda -ksp_type cg" "-mat_gpucsr_report"
says "report of 2 ranks" "$cuda -ksp_type cg" "-mat_gpucsr_report full"
says "report of 2 ranks" "$cuda -ksp_type cg" "-mat_gpucsr_advise"
says "report of 2 ranks" "$cuda -ksp_type cg -mat_gpucsr_report" "-mat_gpucsr_backend host"
says "report of 2 ranks" "-mat_gpucsr_backend host -ksp_type gpucg -mat_gpucsr_report" "$cuda"
says "(met by rank 1, on 1 of 2 ranks in all)" "-mat_gpucsr_backend host" "$cuda -gpucsr_debug_standin 0"
says "-vec_gpu_reduce is not the same on all ranks" "$cuda -ksp_type cg" "-vec_gpu_reduce mpi"
says "-mat_gpucsr_halo is not the same on all ranks" "$cuda -ksp_type cg" "-mat_gpucsr_halo peer"
says "-mat_gpucsr_halo peer: rank 1 computes on the host and rank 0 on cuda" "$cuda -mat_gpucsr_halo peer -ksp_type cg" "-mat_gpucsr_backend host"
for type in cg bcgs; do says "The path of KSP type gpu$type is not the same on all ranks" "$cuda -ksp_type gpu$type" "-ksp_gpu${type}_path host_loop"; done
says "The variant of KSP type gpucg is not the same on all ranks" "$cuda -ksp_type gpucg" "-ksp_gpucg_variant single_reduction"
says "The precision of KSP type gpucg is not the same" "$cuda -ksp_type gpucg" "-ksp_gpucg_precision residual_replacement"
says "The test of the true residual of KSP type gpubcgs is not the same" "$cuda -ksp_type gpubcgs" "-ksp_gpubcgs_true_residual 0"
for type in bcgs gmres; do says "The side of the preconditioner of KSP type gpu$type is not the same" "$cuda -ksp_type gpu$type" "-ksp_pc_side right"; done
says "The norm of KSP type gpucg is not the same" "$cuda -ksp_type gpucg" "-ksp_norm_type natural"
says "The most number of iterations of KSP type gpucg is not the same" "$cuda -ksp_type gpucg" "-ksp_max_it 3"
for path in persistent graph host_loop; do
  cg="$cuda -mat_gpucsr_halo peer -ksp_type gpucg -ksp_gpucg_path $path"
  says "The relative tolerance of KSP type gpucg is not the same" "$cg" "-ksp_rtol 1e-2"
  says "The zero initial guess of KSP type gpucg is not the same" "$cg" "-ksp_initial_guess_nonzero"
done
says "The convergence test of KSP type gpucg is not the same" "$cg" "-ksp_convergence_test skip"
says "The convergence test of KSP type gpucg is not the same" "$cg" "-ksp_converged_use_initial_residual_norm"
says "The iteration that norms begin with of KSP type gpucg is not the same" "$cg" "-ksp_check_norm_iteration 20"
says "The preconditioner of KSP type gpucg is not the same" "$cg" "-pc_type none"
says "The recomputation of halos of KSP type gpucg is not the same" "$cg" "-ksp_gpucg_halo_recomputation 0"
says "The absolute tolerance of KSP type gpugmres is not the same" "$cuda -ksp_type gpugmres" "-ksp_atol 1e-2"
says "The restart, orthogonalization or tolerance of KSP type gpugmres is not the same" "$cuda -ksp_type gpugmres" "-ksp_gmres_haptol 1e-3"
gamg="$cuda -mat_gpucsr_halo peer -n 12 -pc_type gamg -pc_mg_gpucsr -ksp_type"
for type in cg gpucg; do
  says "-pc_mg_gpucsr is not the same on all ranks" "$gamg $type" "-pc_mg_gpucsr 0"
  says "-pc_mg_gpucsr_tail is not the same on all ranks" "$gamg $type" "-pc_mg_gpucsr_tail 0"
  says "-pc_mg_type is not the same on all ranks" "$gamg $type" "-pc_mg_type full"
  says "The smoother of level 1 is not the same on all ranks" "$gamg $type" "-mg_levels_ksp_max_it 3"
done
for it in "-ksp_gmres_restart 7" -ksp_gmres_modifiedgramschmidt; do says "The restart, orthogonalization or tolerance of KSP type gpugmres is not the same" "$cuda -ksp_type gpugmres" "$it"; done
says "outcome   CONVERGED_RTOL" "$cuda -n 12 -pc_type gamg -ksp_type cg -mat_gpucsr_product_least 0" "-mat_gpucsr_product_least 100000000"
says "outcome   CONVERGED_RTOL" "$cuda -n 12 -pc_type gamg -ksp_type cg -mat_gpucsr_product_least 0" "-mat_gpucsr_backend host"

# a library of another version: PETSc opens what rank 0's option says, in each rank's folder
mkdir "$tmp/a" "$tmp/b" && cp "$LIB" "$tmp/a/libpetscgpucsr.so" && sed 's/libpetscgpucsr 0/libpetscgpucsr 9/' "$LIB" >"$tmp/b/libpetscgpucsr.so"
run="$(realpath "$BUILD")/examples/poisson3d -n 6 -dll_append ./libpetscgpucsr.so -mat_type gpucsr -mat_gpucsr_format csr -gpucsr_debug_standin 1"
# shellcheck disable=SC2086 # words
timeout 60 $MPIEXEC -n 1 -wdir "$tmp/a" $run : -n 1 -wdir "$tmp/b" $run >"$tmp/out" 2>&1
if [ $? -eq 124 ] || ! grep -q "The ranks have loaded libpetscgpucsr.so of different versions" "$tmp/out"; then
  echo "libraries of two versions: waits for ever, or is no error" && cat "$tmp/out"
  failed=1
fi
exit $failed

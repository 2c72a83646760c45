#!/bin/bash
#
# Options unknown to the library: one line each at the end with the nearest names, once for all ranks. Known options that a run does not use get no line. ROOT/tests/run.sh runs it.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
failed=0
program=("$BUILD/examples/poisson3d" -n 6 -dll_append "$LIB" -mat_gpucsr_backend "$BACKEND" -mat_type gpucsr)

# Output of a run, on so many ranks; the program must pass
run() {
  local ranks=$1 launch=()
  shift
  if ((ranks > 1)); then read -ra launch <<<"$MPIEXEC -n $ranks"; fi
  "${launch[@]}" "${program[@]}" "$@" >"$tmp/out" 2>&1 || { echo "fails with $*" && cat "$tmp/out" && failed=1; }
}
# says TEXT RANKS ARGS ...: the run prints this line once
says() {
  local text=$1
  shift
  run "$@"
  sed -i 's/ (said by rank [0-9]*, once for all of this node)$//' "$tmp/out"
  if [ "$(grep -cxF -- "$text" "$tmp/out")" != 1 ]; then
    echo "${*:2} on $1 ranks: does not say once: $text" && cat "$tmp/out"
    failed=1
  fi
}
# silent RANKS ARGS ...: no line about options
silent() {
  run "$@"
  if grep -q "is no option\|MATGPUCSR warning" "$tmp/out"; then
    echo "${*:2} on $1 ranks: warns" && cat "$tmp/out"
    failed=1
  fi
}

no="MATGPUCSR warning:"
# each family, with a letter left out, doubled, swapped or wrong; a prefix; the word in capitals, which PETSc does not tell apart; the negation
says "$no -mat_gpucsr_formt is not an option of the library; near it: -mat_gpucsr_format" 1 -mat_gpucsr_formt csr
says "$no -mat_gpuscr_format is not an option of the library; near it: -mat_gpucsr_format" 1 -mat_gpuscr_format csr
says "$no -vec_gpu_reduze is not an option of the library; near it: -vec_gpu_reduce" 1 -vec_gpu_reduze mpi
says "$no -ksp_gpucg_pathh is not an option of the library; near it: -ksp_gpucg_path" 1 -ksp_gpucg_pathh graph
says "$no -pc_mg_gpucsr_tial is not an option of the library; near it: -pc_mg_gpucsr_tail" 1 -pc_mg_gpucsr_tial 3
says "$no -sub_mat_gpucsr_solve_kernl is not an option of the library; near it: -sub_mat_gpucsr_solve_kernel" 1 -sub_mat_gpucsr_solve_kernl host
says "$no -MAT_GPUCSR_Reprt is not an option of the library; near it: -mat_gpucsr_report" 1 -MAT_GPUCSR_Reprt
says "$no -no_mat_gpucsr_reprt is not an option of the library; near it: -no_mat_gpucsr_report" 1 -no_mat_gpucsr_reprt
# near nothing
says "$no -pc_gamg_gpucsr_nothing_like_it is not an option of the library (docs/options.md lists them)" 1 -pc_gamg_gpucsr_nothing_like_it
# several, each its line; on several ranks once
says "$no -mat_gpucsr_formt is not an option of the library; near it: -mat_gpucsr_format" 2 -mat_gpucsr_formt csr -gpucsr_file_bas 1
if ! grep -qxF -- "$no -gpucsr_file_bas is not an option of the library; near it: -gpucsr_file_base" "$tmp/out"; then
  echo "the second of two is not named" && cat "$tmp/out"
  failed=1
fi
# of one rank alone
timeout 60 $MPIEXEC -n 1 "${program[@]}" : -n 1 "${program[@]}" -mat_gpucsr_formt csr >"$tmp/out" 2>&1
if [ "$(grep -c -- "$no -mat_gpucsr_formt is not an option of the library" "$tmp/out")" != 1 ]; then
  echo "of the second rank alone: is not said once" && cat "$tmp/out"
  failed=1
fi
# options without a use in this run, with and without a prefix, and options of PETSc and of the program
silent 2 -ksp_gpucg_variant single_reduction -inner_ksp_gpubcgs_path graph -finemat_gpucsr_format sell -pc_mg_gpucsr_tail 7 -tao_gpubmrm_planes 9 -gpucsr_file_base 1 -mat_gpucsr_transpose_kernel auto -ksp_gmres_pathh 3 -my_format 1 -pc_mg_levelz 2
exit $failed

#!/bin/bash
#
# Solver type cudss, with the host in place of GPUs and tests/fake/cudss.c in place of cuDSS: t633-cudss.c, faults of each function of the library, its default, and libraries that are missing, incomplete
# or of another version. ROOT/tests/run.sh runs it. On a GPU: t633-cudss.c's first part by the library itself, where it is found.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
failed=0
if [ "$BACKEND" = host ]; then
  command -v mpicc >/dev/null || exit 77
  mpicc -shared -fPIC -O1 -o "$tmp/whole.so" tests/fake/cudss.c -lm || exit 1
  library=$tmp/whole.so
  standin='-gpucsr_debug_standin 1'
else
  library=''
  standin=''
fi

# run RANKS ARGS ...
run() {
  local launch='' ranks=$1
  shift
  if [ "$ranks" -gt 1 ]; then launch="$MPIEXEC -n $ranks"; fi
  # shellcheck disable=SC2086 # the launcher and the stand-in are words
  timeout 240 $launch "$BUILD/tests/${program:-t633-cudss}" -dll_append "$LIB" $standin -mat_gpucsr_backend cuda ${library:+-mat_gpucsr_cudss_library "$library"} "$@" >"$tmp/out" 2>&1
}
# The output without the lines that each error has
show() {
  grep -vE '^$|^-|^NOTE|^You may|^exactly when|MPI_ABORT|errorcode|PETSC ERROR: (-|#|See|Petsc Release|Configure|PETSc Option)' "$tmp/out" | head -n 12
}
# right RANKS ARGS ...
right() {
  run "$@" || { echo "t633-cudss of $* ended with status $?:" && show && failed=1; }
}
# says TEXT RANKS ARGS ...: it passes, and the output has the text
says() {
  local text=$1
  shift
  right "$@"
  grep -qF -- "$text" "$tmp/out" || { echo "t633-cudss of $* does not say: $text" && cat "$tmp/out" && failed=1; }
}
# refused TEXT ARGS ...
refused() {
  local text=$1
  shift
  if run 1 "$@" || [ "$(grep -cF -- "$text" "$tmp/out")" != 1 ]; then echo "t633-cudss of $* does not end in: $text" && cat "$tmp/out" && failed=1; fi
}
mine='-pc_factor_mat_solver_type cudss'
if [ "$BACKEND" = cuda ]; then
  run 1 -what ksp $mine || { grep -q 'cuDSS cannot be loaded' "$tmp/out" && exit 77; }
fi
# shellcheck disable=SC2086 # options are words
{
  for vectors in '-how 0' '-how 1' '-how 2' '-vec_type gpu -how 1' '-standard_vectors -how 1'; do right 1 -what solves -malloc_dump $vectors; done
  # Zeros on the diagonal: the library itself may refuse the matrix, and says so
  if [ "$BACKEND" = host ]; then right 1 -what solves -malloc_dump -how 3; else run 1 -what solves -how 3 || grep -q 'the factorization ends with FACTOR_NUMERIC_ZEROPIVOT' "$tmp/out" || right 1 -what solves -how 3; fi
  right 1 -what singular $mine
  refused 'Zero pivot: cuDSS has replaced ' -what singular $mine -ksp_error_if_not_converged
  refused 'one solve: ends with DIVERGED_PC_FAILED' -what ksp $mine -pc_type cholesky # a matrix that is not symmetric
  right 1 -what ksp $mine -mat_gpucsr_cudss_deterministic 1
  program=t637-cudss-schur right 1 -malloc_dump
  program=t637-cudss-schur refused 'cuDSS gives no Schur complement with -mat_gpucsr_cudss_matching' -mat_gpucsr_cudss_matching product
  program=t637-cudss-schur refused 'cuDSS gives no Schur complement with -mat_gpucsr_cudss_reordering' -mat_gpucsr_cudss_reordering colamd
}
if [ "$BACKEND" = cuda ]; then exit $failed; fi

# shellcheck disable=SC2086
{
  right 1 -what solves -gpucsr_debug_defer 1
  for method in preonly gmres bcgs gpugmres; do right 1 -what refused $mine -ksp_type $method -ksp_rtol 1e-12; done
  right 1 -what refused -pc_type redundant -redundant_pc_type lu -redundant_pc_factor_mat_solver_type cudss
  for method in gmres gpugmres gpucg; do
    right 1 -what refused -ksp_type $method -ksp_rtol 1e-12 -pc_type bjacobi -sub_pc_type lu -sub_pc_factor_mat_solver_type cudss
    right 1 -what refused -ksp_type $method -ksp_rtol 1e-12 -pc_type redundant -redundant_pc_type lu -redundant_pc_factor_mat_solver_type cudss
  done
  program=t636-cudss-users right 1 -malloc_dump
  program=t636-cudss-users right 1 -gpucsr_debug_defer 2
  for ranks in 1 2; do program=t636-cudss-users right $ranks -coarse; done
  program=t637-cudss-schur right 1 -gpucsr_debug_defer 2
  program=t637-cudss-schur right 1 -mat_gpucsr_cudss_hybrid always
  for fault in marks:1 schur:1 forward:1 forward:2 diagonal:1 diagonal:2 backward:1 set:2 set:3; do
    for status in 2 5; do
      FAKE_CUDSS_COUNT=$tmp/count FAKE_CUDSS_FAIL=$fault:$status program=t637-cudss-schur right 1 -faults -malloc_dump
      if ! grep -qx 'living 0' "$tmp/count"; then echo "$fault:$status leaks:" && cat "$tmp/count" && failed=1; fi
    done
  done
  FAKE_CUDSS_SCHUR=1e-6 program=t637-cudss-schur says 'cuDSS gives a wrong Schur complement' 1 -faults
  for check in auto never always; do program=t638-cudss-methods right 1 $mine -mat_gpucsr_cudss_check $check; done
  for inside in bjacobi,sub redundant,redundant mg,mg_levels; do program=t638-cudss-methods right 1 -pc_type ${inside%,*} -pc_mg_levels 1 -mg_levels_ksp_type preonly -${inside#*,}_pc_type lu -${inside#*,}_pc_factor_mat_solver_type cudss; done
  right 1 -what rare $mine
  right 1 -what memory $mine
  # As many columns together as there is memory for
  for how in 0 1; do
    right 1 -what solves -how $how -mat_gpucsr_memory_limit 150000
    FAKE_CUDSS_COLUMNS=5 right 1 -what solves -how $how
  done
  # Results missing in the library, and zero pivots that it does not report
  for datum in 0 1 2 13; do
    FAKE_CUDSS_WITHOUT=$datum right 1 -what ksp $mine
    FAKE_CUDSS_WITHOUT=$datum right 1 -what faults $mine
  done
  for pivot in 0 1e300; do FAKE_CUDSS_PIVOT=$pivot right 1 -what singular $mine; done
  # An option makes it the default for large matrices
  says 'cuDSS 1.0.0' 1 -what ksp -mat_gpucsr_cudss_least 100 -ksp_view
  says 'not by cuDSS, because it has fewer than 200 rows (-mat_gpucsr_cudss_least)' 1 -what ksp -mat_gpucsr_cudss_least 200 -ksp_view
  says 'not by cuDSS, because -mat_gpucsr_solve_kernel asks for solves with its triangles' 1 -what ksp -mat_gpucsr_cudss_least 100 -mat_gpucsr_solve_kernel ranges -ksp_view
  says 'factor LU of 144 rows by cudss, because the matrix has 100 rows or more (-mat_gpucsr_cudss_least): 1 time' 1 -what ksp -mat_gpucsr_cudss_least 100 -mat_gpucsr_report
  echo 'cudss_least = 100' >"$tmp/machine"
  says 'factor LU of 144 rows by cudss, because the matrix has 100 rows or more' 1 -what ksp -mat_gpucsr_machine "$tmp/machine" -mat_gpucsr_report
  says 'factor LU of 144 rows by PETSc on the host, because it has fewer than 20000 rows' 1 -what ksp -mat_gpucsr_cudss_least 20000 -mat_gpucsr_report
  says 'not by cuDSS, because it has fewer than 10000 rows (-mat_gpucsr_cudss_least)' 1 -what ksp -ksp_view
  says 'by PETSc on the host, because it has fewer than 10000 rows (-mat_gpucsr_cudss_least)' 1 -what ksp -mat_gpucsr_report
  says 'type: seqaij' 1 -what ksp -mat_gpucsr_cudss_least 100 -pc_factor_mat_solver_type petsc -ksp_view
  right 1 -what ksp -mat_gpucsr_cudss_least 100 -pc_factor_in_place # PETSc factors
  # A Krylov method around a factor looks at b - A x and mends wrong solutions, without a warning
  FAKE_CUDSS_WRONG=1e-3 right 1 -what ksp $mine -ksp_type fgmres -ksp_rtol 1e-13 -mat_gpucsr_cudss_refine 0
  if grep -q warning "$tmp/out"; then echo "A trusted solution was checked:" && cat "$tmp/out" && failed=1; fi
  FAKE_CUDSS_WRONG=1e-3 right 1 -what ksp $mine -ksp_type gpugmres -ksp_pc_side right -ksp_rtol 1e-13 -mat_gpucsr_cudss_refine 0
  if grep -q warning "$tmp/out"; then echo "A trusted solution of gpugmres was checked:" && cat "$tmp/out" && failed=1; fi
  FAKE_CUDSS_WRONG=1e-3 right 1 -what ksp $mine -ksp_type fgmres -ksp_convergence_test skip -ksp_max_it 1 # the method looks in vain
  for method in gmres fgmres gpugmres; do
    sub="-what ranks -ksp_type $method -ksp_rtol 1e-10"
    right 3 $sub -pc_type bjacobi -sub_pc_type lu -sub_pc_factor_mat_solver_type cudss
    right 3 $sub -pc_type asm -sub_pc_type lu -sub_pc_factor_mat_solver_type cudss
    right 1 $sub -pc_type bjacobi -pc_bjacobi_blocks 4 -sub_pc_type lu -sub_mat_gpucsr_cudss_least 20
    right 1 $sub -pc_type bjacobi -pc_bjacobi_blocks 4 -sub_pc_type lu -sub_mat_gpucsr_cudss_least 100 # all blocks together have as many rows
    right 3 $sub -pc_type redundant -redundant_pc_type lu -redundant_pc_factor_mat_solver_type cudss
    right 3 $sub -pc_type telescope -pc_telescope_reduction_factor 3 -telescope_pc_type lu -telescope_pc_factor_mat_solver_type cudss
    right 2 $sub -pc_type gamg -pc_gamg_coarse_eq_limit 60 -mg_coarse_sub_pc_type lu -mg_coarse_sub_pc_factor_mat_solver_type cudss
    right 1 $sub -pc_type lu $mine
  done
  right 3 -what ranks -ksp_type preonly -pc_type telescope -pc_telescope_reduction_factor 3 -telescope_pc_type lu -telescope_pc_factor_mat_solver_type cudss
  if run 2 -what ranks -ksp_type preonly -pc_type lu $mine || ! grep -q 'PCTELESCOPE' "$tmp/out"; then echo "On two ranks:" && cat "$tmp/out" && failed=1; fi
  # Faults of the library and of the device: an answer or a failure, all memory back, and the next solver works
  for fault in create:1 stream:1 config:1 set:1 data:1 get:1 get:2 get:3 csr:1 dense:1 dense:2 analysis:1 factorization:1 solve:1 solve:2 refactorization:1 refactorization:2; do
    for status in 2 5; do
      FAKE_CUDSS_COUNT=$tmp/count FAKE_CUDSS_FAIL=$fault:$status right 1 -what faults -must_fail -malloc_dump $mine
      if ! grep -qx 'living 0' "$tmp/count"; then echo "$fault:$status leaks:" && cat "$tmp/count" && failed=1; fi
    done
  done
  for fault in memory:1 memory:3 memory:6 memory:9 copy:2 copy:7 launch:1 launch:3 synchronize:3 pagelock:1; do
    run 1 -what faults $mine -gpucsr_debug_fault $fault
    status=$?
    if [ $status -gt 128 ] || [ $status = 124 ]; then echo "t633-cudss with $fault ended with status $status:" && cat "$tmp/out" && failed=1; fi
  done
}
# The public header, where it is found
for header in "$BUILD"/cudss/nvidia/cu1?/include; do
  cuda=$(ls -d /usr/local/cuda/include /usr/include/cuda_runtime.h 2>/dev/null | head -n 1)
  if [ -e "$header/cudss.h" ] && [ -n "$cuda" ]; then
    # shellcheck disable=SC2046 # flags are words
    mpicc -std=gnu11 -fsyntax-only $(pkg-config --cflags "${PETSC:-PETSc}") -I"$header" -I"$cuda" tests/fake/cudss-header.c || failed=1
  fi
done
# Libraries that cannot be used
echo 'int cudssGetProperty(int k, int *v) { return (*v = k) & 0; }' >"$tmp/part.c" && mpicc -shared -fPIC -o "$tmp/part.so" "$tmp/part.c" || exit 1
echo 'not a library' >"$tmp/none.so"
# shellcheck disable=SC2086
{
  library=$tmp/part.so refused 'cuDSS has no cudssCreate: version 1 is needed' -what ksp $mine
  library=$tmp/none.so refused 'cuDSS cannot be loaded: ' -what ksp $mine
  FAKE_CUDSS_VERSION=0 refused 'cuDSS is version 0.0.0: version 1 is needed' -what ksp $mine
  library=$tmp/none.so says 'not by cuDSS, because cuDSS cannot be loaded' 1 -what ksp -mat_gpucsr_cudss_least 100 -ksp_view
}
exit $failed

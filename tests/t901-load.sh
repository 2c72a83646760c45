#!/bin/bash
#
# The library is loaded, by options for all programs, into a PETSc with another minor version, scalar type or index size than it was built for. The program
# runs without the library, with one message; with -gpucsr_strict there is one clear error.
# Skipped if no other PETSc is installed; OTHER_PETSC may name folders of pkg-config files, separated by colons.
#
#   BUILD=build LIB=$PWD/build/lib/libpetscgpucsr.so OTHER_PETSC=/opt/petsc/lib/pkgconfig tests/t901-load.sh
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
petsc() { ldd "$1" | sed -n 's/.*=> \([^ ]*libpetsc[^ ]*\) .*/\1/p' | grep -v gpucsr | head -n 1 | xargs -r realpath; }
mine=$(petsc "$BUILD/examples/solve") # which knows where it is
cat >"$tmp/empty.c" <<'END'
#include <petscksp.h>
int main(int argc, char **argv)
{
  Mat A;
  Vec x, b;
  KSP ksp;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, 9, 9));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatSetUp(A));
  for (PetscInt k = 0; k < 9; k++) PetscCall(MatSetValue(A, k, k, 2.0, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(VecCreate(PETSC_COMM_WORLD, &x));
  PetscCall(VecSetSizes(x, PETSC_DECIDE, 9));
  PetscCall(VecSetFromOptions(x));
  PetscCall(VecDuplicate(x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(PetscFinalize());
  return 0;
}
END
tried=0 failed=0

IFS=: read -ra folders <<<"${OTHER_PETSC:-}"
for folder in "${folders[@]}" /usr/lib/petscdir/*/*/lib/pkgconfig; do
  file=$(find "$folder" -iname 'petsc*.pc' 2>/dev/null | head -n 1)
  if [ -z "$file" ] || ! command -v pkg-config mpicc >/dev/null; then continue; fi
  # shellcheck disable=SC2046 # flags are words
  mpicc "$tmp/empty.c" -o "$tmp/empty" $(PKG_CONFIG_PATH=$folder pkg-config --cflags --libs "$file") -Wl,-rpath,"$(pkg-config --variable=libdir "$file")" 2>"$tmp/log" || continue
  if [ "$(petsc "$tmp/empty")" = "$mine" ]; then continue; fi
  if ! PETSC_OPTIONS='' "$tmp/empty" >"$tmp/log" 2>&1; then continue; fi # a PETSc that does not start here at all
  tried=1
  load="-skip_petscrc -dll_append $LIB -mat_seqaij_type seqaijgpucsr -dm_mat_type gpucsr"
  for words in "$load" "$load -mat_type gpucsr -vec_type gpu -ksp_type gpucg" "$load -gpucsr_strict"; do
    LD_LIBRARY_PATH=$(dirname "$mine"):$LD_LIBRARY_PATH PETSC_OPTIONS="$words" "$tmp/empty" >"$tmp/log" 2>&1
    status=$?
    strict=0
    if [[ $words == *strict* ]]; then strict=1; fi
    if [ $status -gt 128 ] || [ "$(grep -c 'libpetscgpucsr.so was built for .* loaded into' "$tmp/log")" != 1 ] || [ $strict = $((status == 0)) ]; then
      echo "loaded into $(petsc "$tmp/empty") with $words: ended with status $status and said" && grep -v 'Configure options' "$tmp/log" && failed=1
    fi
  done
done
if [ $tried = 0 ]; then exit 77; fi
exit $failed

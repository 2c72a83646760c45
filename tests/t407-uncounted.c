//TEST name="reuse" args="-mat_gpucsr_format sell" nsize=2
//TEST name="reuse3" args="-mat_gpucsr_format csr" nsize=3
//TEST name="zero" args="-mat_gpucsr_format csr -zero" nsize=2
//TEST name="at_assembly" args="-mat_gpucsr_format csr -mat_gpucsr_transpose_at_assembly" nsize=2
//TEST name="ours" args="-mat_gpucsr_format csr -parent_type mpiaijgpucsr" nsize=2
//TEST name="malloc" args="-mat_gpucsr_format csr -malloc_debug -malloc_dump" nsize=2
//TEST name="aij" args="-mat_seqaij_type seqaij" load=0 nsize=2

/*
  PETSc gathers a whole matrix on each rank (MatCreateSubMatrices() of all rows and columns), and writes new values into the copy with
  MAT_REUSE_MATRIX, without counting the change. Products follow any changed value all the same, and nothing is sent when nothing changed.

    build/tests/t407-uncounted [-zero] [-parent_type mpiaij]      (linked with the library, for MatGPUCSRGetInfo())
*/
#include "testing.h"
#include <petscgpucsr.h>

#define SIDE 15

/* Both products of S against its own rows */
static PetscErrorCode Check(Mat S, PetscInt change)
{
  Vec          x, y[2];
  PetscInt     n;
  PetscScalar *u, *v[2], *z[2];
  PetscReal   *bound[2];

  PetscFunctionBegin;
  PetscCall(MatGetSize(S, &n, NULL));
  PetscCall(MatCreateVecs(S, &x, &y[0]));
  PetscCall(VecDuplicate(y[0], &y[1]));
  PetscCall(TestFill(x, 1, PETSC_FALSE));
  PetscCall(MatMult(S, x, y[0]));
  PetscCall(MatMultTranspose(S, x, y[1]));
  PetscCall(PetscCalloc4(n, &z[0], n, &z[1], n, &bound[0], n, &bound[1]));
  PetscCall(VecGetArray(x, &u));
  for (PetscInt r = 0; r < n; r++) {
    PetscInt           length;
    const PetscInt    *c;
    const PetscScalar *a;

    PetscCall(MatGetRow(S, r, &length, &c, &a));
    for (PetscInt k = 0; k < length; k++) {
      z[0][r] += a[k] * u[c[k]];
      z[1][c[k]] += a[k] * u[r];
      bound[0][r] += PetscAbsScalar(a[k] * u[c[k]]);
      bound[1][c[k]] += PetscAbsScalar(a[k] * u[r]);
    }
    PetscCall(MatRestoreRow(S, r, &length, &c, &a));
  }
  PetscCall(VecRestoreArray(x, &u));
  for (PetscInt t = 0; t < 2; t++) {
    PetscCall(VecGetArray(y[t], &v[t]));
    for (PetscInt r = 0; r < n; r++)
      PetscCheck(TestSame(v[t][r], z[t][r], TEST_C * PETSC_MACHINE_EPSILON * bound[t][r]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Change %" PetscInt_FMT ", %s: row %" PetscInt_FMT " is %.17g, should be %.17g", change, TestNames[t][0], r, (double)PetscRealPart(v[t][r]), (double)PetscRealPart(z[t][r]));
    PetscCall(VecRestoreArray(y[t], &v[t]));
    PetscCall(VecDestroy(&y[t]));
  }
  PetscCall(PetscFree4(z[0], z[1], bound[0], bound[1]));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* MatMatTransposeMult() makes a matrix with a pattern and no values; -mat_seqaij_type gives it the library's type */
static PetscErrorCode TestPatternAlone(void)
{
  Mat       A, C;
  Vec       x, y, z, w;
  PetscInt  n = 7;
  PetscBool same;
  MatInfo   info;

  PetscFunctionBegin;
  PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, n, n, 2, NULL, &A));
  for (PetscInt r = 0; r < n; r++) {
    PetscCall(MatSetValue(A, r, r, 1.0 + (double)r, INSERT_VALUES));
    PetscCall(MatSetValue(A, r, (r + 3) % n, -2.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatMatTransposeMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatGetInfo(C, MAT_LOCAL, &info));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(x, &z));
  PetscCall(VecDuplicate(x, &w));
  for (PetscInt r = 0; r < n; r++) PetscCall(VecSetValue(x, r, (PetscScalar)(r * r), INSERT_VALUES)); /* whole numbers: nothing is rounded */
  PetscCall(VecAssemblyBegin(x));
  PetscCall(VecAssemblyEnd(x));
  PetscCall(MatMultTranspose(A, x, y));
  PetscCall(MatMult(A, y, z));
  PetscCall(MatMult(C, x, w));
  PetscCall(VecEqual(z, w, &same));
  PetscCheck(same && info.nz_used == 21, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A A' of %g entries is not what A' and then A give", info.nz_used);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&w));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat           A, B, *S;
  IS            all;
  PetscInt      n        = SIDE * SIDE, rs, re;
  PetscBool     zero     = PETSC_FALSE, ours;
  char          type[64] = MATMPIAIJ, word[64] = MATSEQAIJGPUCSR;
  MatGPUCSRInfo before, after;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-zero", &zero, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-parent_type", type, sizeof(type), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_seqaij_type", word, sizeof(word), NULL));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_seqaij_type", word));
  PetscCall(TestPatternAlone());
  PetscCall(TestConvection(PETSC_COMM_WORLD, SIDE, 0.5, PETSC_TRUE, &B));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetType(A, type));
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    PetscInt           length;
    const PetscInt    *c;
    const PetscScalar *a;

    PetscCall(MatGetRow(B, r, &length, &c, &a));
    PetscCall(MatSetValues(A, 1, &r, length, c, a, INSERT_VALUES));
    PetscCall(MatRestoreRow(B, r, &length, &c, &a));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  if (zero) PetscCall(MatZeroEntries(A));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, n, 0, 1, &all));
  PetscCall(MatCreateSubMatrices(A, 1, &all, &all, MAT_INITIAL_MATRIX, &S));
  PetscCall(PetscObjectTypeCompare((PetscObject)S[0], MATSEQAIJGPUCSR, &ours));
  PetscCall(PetscStrcmp(word, MATSEQAIJ, &zero));
  PetscCheck(ours != zero, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The submatrix has not the type that was asked for");
  PetscCall(Check(S[0], -1));
  for (PetscInt k = 0; k < 30; k++) {
    const PetscInt row = (k * 37) % n, col = row % 2 || row + SIDE >= n ? row : row + SIDE;

    if (ours) PetscCall(MatGPUCSRGetInfo(S[0], &before));
    if (k % 3 && row >= rs && row < re) PetscCall(MatSetValue(A, row, col, 10.0 + k, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatCreateSubMatrices(A, 1, &all, &all, MAT_REUSE_MATRIX, &S));
    PetscCall(Check(S[0], k));
    PetscCall(Check(S[0], k));
    if (!ours) continue;
    PetscCall(MatGPUCSRGetInfo(S[0], &after));
    /* both sides, once; our own parent counts whether something changed or not */
    if (k % 3)
      PetscCheck(after.refreshes + after.transpose_builds == before.refreshes + before.transpose_builds + 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Change %" PetscInt_FMT " cost %" PetscInt_FMT " refreshes", k, after.refreshes - before.refreshes);
    else if (!strcmp(type, MATMPIAIJ)) PetscCheck(after.refreshes == before.refreshes, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No change, %" PetscInt_FMT ", cost %" PetscInt_FMT " refreshes", k, after.refreshes - before.refreshes);
  }
  PetscCall(MatDestroySubMatrices(1, &S));
  PetscCall(ISDestroy(&all));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(PetscFinalize());
  return 0;
}

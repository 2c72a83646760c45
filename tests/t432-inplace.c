//TEST name="default" args=""
//TEST name="standin" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_master device" gpu=0
//TEST name="host_vectors" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_master device" gpu=0
//TEST name="late" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -gpucsr_debug_defer 1 -mat_gpucsr_master device" gpu=0
//TEST name="gpu" args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -vec_type gpu -mat_gpucsr_master device" gpu=1
//TEST name="ranks" nsize=2 args="-mat_gpucsr_product_least 0 -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type gpu -mat_gpucsr_master device" gpu=0

/*
  Changes in place of matrices with some thousand entries, which many blocks of threads share: rows of all lengths, many empty rows in a series, and a row as long as the matrix. Numbers are small integers
  and powers of two, so results equal MATAIJ's to the bit.
*/
static char help[] = "Tests changes in place of matrices with rows of all lengths.\n";

#include "testing.h"
#include <petscgpucsr.h>

#define M 4000

static PetscErrorCode Make(PetscBool ref, PetscBool diagonal, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, M, M, ref, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 40, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 40, NULL, 40, NULL));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt i = rs; i < re; i++) {
    const PetscInt n = i == 77 ? M : i > 500 && i < 2900 ? 0 : (i * 7) % 31; /* entries beside the diagonal */

    if (diagonal) PetscCall(MatSetValue(*A, i, i, 2.0, INSERT_VALUES));
    for (PetscInt k = 0; k < n; k++) PetscCall(MatSetValue(*A, i, i == 77 ? k : (i * 13 + k * k * 5) % M, (PetscScalar)((i + k) % 5 - 2), INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(*A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Powers of two, with both signs */
static PetscErrorCode Fill(Vec x, PetscInt salt)
{
  PetscScalar *a;
  PetscInt     rs, re;

  PetscFunctionBegin;
  PetscCall(VecGetOwnershipRange(x, &rs, &re));
  PetscCall(VecGetArrayWrite(x, &a));
  for (PetscInt i = rs; i < re; i++) a[i - rs] = (PetscScalar)(((i + salt) % 3 ? 1 : -1) * (1 << (i * salt) % 4));
  PetscCall(VecRestoreArrayWrite(x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By products and norms, which fetch no value */
static PetscErrorCode Same(Mat m[2], Vec x[2], Vec y[2], const char what[])
{
  PetscReal norm[2][2], d;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(MatNorm(m[k], NORM_FROBENIUS, &norm[k][0]));
    PetscCall(MatNorm(m[k], NORM_INFINITY, &norm[k][1]));
  }
  PetscCheck(PetscAbsReal(norm[0][0] - norm[1][0]) <= 1e-12 * norm[1][0] && norm[0][1] == norm[1][1], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: norms %g and %g, not %g and %g", what, (double)norm[0][0], (double)norm[0][1], (double)norm[1][0], (double)norm[1][1]);
  for (int t = 0; t < 2; t++) {
    for (int k = 0; k < 2; k++) PetscCall(t ? MatMultTranspose(m[k], x[k], y[k]) : MatMult(m[k], x[k], y[k]));
    PetscCall(VecAXPY(y[0], -1.0, y[1]));
    PetscCall(VecNorm(y[0], NORM_INFINITY, &d));
    PetscCheck(d == 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: products differ by %g", what, (double)d);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lists of rows: a range, all rows, some in no order with one twice, one beyond the empty rows */
static PetscErrorCode Rows(Mat m[2], Vec x[2], Vec y[2], PetscScalar d)
{
  PetscInt    rs, re, n, *rows;
  PetscReal   norm;
  const char *what = d == 0.0 ? "MatZeroRows() with diagonal 0" : "MatZeroRows()";

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(m[0], &rs, &re));
  PetscCall(PetscMalloc1((size_t)(re - rs), &rows));
  for (int list = 0; list < 5; list++) {
    n = list == 0 ? 40 : list == 1 || list == 4 ? 60 : list == 2 ? 1 : re - rs;
    for (PetscInt k = 0; k < n; k++) rows[k] = list == 0 ? rs + 60 + k : list == 1 || list == 4 ? rs + (k == 59 ? 0 : k * 37 % (re - rs)) : list == 2 ? re - 3 : rs + k;
    for (int columns = 0; columns < (list < 3 ? 2 : 1); columns++) {
      for (int k = 0; k < 2; k++) {
        PetscCall(Fill(y[k], 5));
        if (columns) PetscCall(MatZeroRowsColumns(m[k], n, rows, d, x[k], y[k]));
        else PetscCall(MatZeroRows(m[k], n, rows, d, list ? x[k] : NULL, list ? y[k] : NULL));
      }
      PetscCall(VecAXPY(y[0], -1.0, y[1]));
      PetscCall(VecNorm(y[0], NORM_INFINITY, &norm));
      PetscCheck(norm == 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: right-hand sides differ by %g", what, (double)norm);
      PetscCall(Same(m, x, y, what));
    }
  }
  PetscCall(PetscFree(rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat m[2], B[2];
  Vec x[2], y[2];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(MatGPUCSRInitializePackage());
  for (int diagonal = 0; diagonal < 2; diagonal++) {
    for (int k = 0; k < 2; k++) {
      PetscCall(Make((PetscBool)k, (PetscBool)diagonal, &m[k]));
      PetscCall(MatDuplicate(m[k], MAT_COPY_VALUES, &B[k]));
      PetscCall(MatCreateVecs(m[k], &x[k], &y[k]));
      PetscCall(Fill(x[k], 1));
    }
    for (int r = 0; r < 3; r++) {
      for (int k = 0; k < 2; k++) {
        PetscCall(Fill(y[k], 2));
        PetscCall(MatDiagonalScale(m[k], r == 1 ? NULL : y[k], r == 2 ? NULL : x[k]));
      }
      PetscCall(Same(m, x, y, "MatDiagonalScale()"));
    }
    for (int k = 0; k < 2; k++) {
      PetscCall(MatScale(m[k], 0.5));
      PetscCall(MatAXPY(m[k], -2.0, B[k], SAME_NONZERO_PATTERN));
    }
    PetscCall(Same(m, x, y, "MatScale() and MatAXPY()"));
    for (int r = 0; r < 2 && diagonal; r++) {
      for (int k = 0; k < 2; k++) {
        PetscCall(Fill(y[k], 4));
        if (r) PetscCall(MatDiagonalSet(m[k], y[k], ADD_VALUES));
        else PetscCall(MatShift(m[k], 3.0));
      }
      PetscCall(Same(m, x, y, r ? "MatDiagonalSet()" : "MatShift()"));
    }
    PetscCall(Rows(m, x, y, diagonal ? 4.0 : 0.0));
    for (int k = 0; k < 2; k++) {
      PetscCall(MatDestroy(&m[k]));
      PetscCall(MatDestroy(&B[k]));
      PetscCall(VecDestroy(&x[k]));
      PetscCall(VecDestroy(&y[k]));
    }
  }
  PetscCall(PetscFinalize());
  return 0;
}

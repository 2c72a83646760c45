/*
  MatScale() and MatDiagonalScale() of a matrix on its device, large enough for several threads, against MATAIJ's. The numbers are the same, also in a product and in a sweep of SOR, for
  which PETSc keeps inverses of the diagonal. NaN and Inf are multiplied by 0; a vector of another length is PETSc's error.

  //TEST name="csr" args="-mat_gpucsr_format csr -mat_gpucsr_threads 3"
  //TEST name="vectors" args="-mat_gpucsr_format csr -mat_gpucsr_threads 3 -vec_type gpu -vec_gpu_separate"
  //TEST name="aij" args="-mat_gpucsr_format aij"
  //TEST name="length" args="-mat_gpucsr_format csr -mat_gpucsr_threads 3 -length" fails="scaling vector wrong length"
*/
static char help[] = "Tests the scaling of matrices.\n";

#include <petsc/private/matimpl.h>
#include "testing.h"

/* Seven entries a row, of which one is the diagonal and large */
static PetscErrorCode Band(PetscInt m, PetscBool ref, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_SELF, m, m, ref, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 7, NULL));
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt k = -3; k <= 3; k++) {
      const PetscInt    c = r + 17 * k * k * k;
      const PetscScalar v = k ? ZooScalar(3, r, k + 3) : 9.0 + ZooReal(3, r, 7);

      if (c >= 0 && c < m) PetscCall(MatSetValues(*A, 1, &r, 1, &c, &v, INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Sweep(Mat A, Vec b, Vec x)
{
  PetscFunctionBegin;
  PetscCall(MatSOR(A, b, 1.0, (MatSORType)(SOR_FORWARD_SWEEP | SOR_ZERO_INITIAL_GUESS), 0.0, 1, 1, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Same(Vec x, Vec y, const char what[])
{
  const PetscScalar *a, *b;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayRead(x, &a));
  PetscCall(VecGetArrayRead(y, &b));
  for (PetscInt k = 0; k < n; k++) PetscCheck(a[k] == b[k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: entry %" PetscInt_FMT " is %g, not %g", what, k, (double)PetscRealPart(a[k]), (double)PetscRealPart(b[k]));
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscCall(VecRestoreArrayRead(y, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* NaN and Inf times 0 depend on the BLAS of MATAIJ */
static PetscErrorCode Zero(Mat A[2], Vec b, Vec y[2])
{
  const PetscInt     row[2] = {5, 29000};
  const PetscScalar  v[2]   = {NAN, INFINITY};
  const PetscScalar *a[2];

  PetscFunctionBegin;
  for (int ref = 0; ref < 2; ref++) {
    for (int k = 0; k < 2; k++) PetscCall(MatSetValues(A[ref], 1, &row[k], 1, &row[k], &v[k], INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A[ref], MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A[ref], MAT_FINAL_ASSEMBLY));
    PetscCall(MatScale(A[ref], 0.0));
    PetscCall(MatMult(A[ref], b, y[ref]));
    PetscCall(VecGetArrayRead(y[ref], &a[ref]));
  }
  for (int k = 0; k < 2; k++)
    PetscCheck(TestSame(a[0][row[k]], a[1][row[k]], 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%g times 0 in a product: %g, should be %g", (double)PetscRealPart(v[k]), (double)PetscRealPart(a[0][row[k]]), (double)PetscRealPart(a[1][row[k]]));
  for (int ref = 0; ref < 2; ref++) PetscCall(VecRestoreArrayRead(y[ref], &a[ref]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Step 0: all by a number; 1: rows; 2: rows and columns; 3: columns */
static PetscErrorCode Scale(Mat A, PetscInt step, Vec l, Vec r)
{
  PetscFunctionBegin;
  if (step == 0) PetscCall(MatScale(A, -3.7));
  else PetscCall(MatDiagonalScale(A, step == 3 ? NULL : l, step == 1 ? NULL : r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const PetscInt m = 30000;
  Mat            A[2], B;
  Vec            l, r, b, bound, x[2], y[2], d[2];
  PetscBool      length = PETSC_FALSE, equal;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-length", &length, NULL));
  for (int ref = 0; ref < 2; ref++) {
    PetscCall(Band(m, (PetscBool)ref, &A[ref]));
    PetscCall(MatCreateVecs(A[ref], &x[ref], &y[ref]));
    PetscCall(VecDuplicate(x[ref], &d[ref]));
  }
  PetscCall(MatCreateVecs(A[0], &r, &l));
  PetscCall(VecDuplicate(l, &b));
  PetscCall(VecDuplicate(l, &bound));
  PetscCall(TestFill(b, 5, PETSC_FALSE));
  for (int ref = 0; ref < 2; ref++) PetscCall(MatMult(A[ref], b, y[ref])); /* it is on its device */
  if (length) {
    PetscCall(VecDestroy(&l));
    PetscCall(VecCreateSeq(PETSC_COMM_SELF, m - 1, &l));
    PetscCall(VecSet(l, 1.0));
    PetscCall((*A[0]->ops->diagonalscale)(A[0], l, NULL)); /* MatDiagonalScale() asks before; a block of several ranks does not */
  }
  for (PetscInt step = 0; step < 4; step++) {
    PetscCall(TestFill(l, 7 + step, PETSC_FALSE));
    PetscCall(TestFill(r, 17 + step, PETSC_FALSE));
    PetscCall(VecShift(l, 3.0));
    PetscCall(VecShift(r, 3.0));
    for (int ref = 0; ref < 2; ref++) {
      PetscCall(Sweep(A[ref], b, x[ref])); /* keeps data that scaling makes useless */
      PetscCall(Scale(A[ref], step, l, r));
      PetscCall(Sweep(A[ref], b, x[ref]));
      PetscCall(MatMult(A[ref], b, y[ref]));
      PetscCall(MatGetDiagonal(A[ref], d[ref]));
    }
    PetscCall(MatEqual(A[0], A[1], &equal));
    PetscCheck(equal, PETSC_COMM_SELF, PETSC_ERR_PLIB, "After step %" PetscInt_FMT " values are not MATAIJ's", step);
    PetscCall(Same(x[0], x[1], "A sweep"));
    PetscCall(Same(d[0], d[1], "The diagonal"));
    PetscCall(TestAbs(A[1], &B));
    PetscCall(VecCopy(b, r));
    PetscCall(VecAbs(r));
    PetscCall(MatMult(B, r, bound));
    PetscCall(TestClose(y[0], y[1], bound, "A product", "after scaling"));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(Zero(A, b, y));
  for (int ref = 0; ref < 2; ref++) {
    PetscCall(VecDestroy(&x[ref]));
    PetscCall(VecDestroy(&y[ref]));
    PetscCall(VecDestroy(&d[ref]));
    PetscCall(MatDestroy(&A[ref]));
  }
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&bound));
  PetscCall(PetscFinalize());
  return 0;
}

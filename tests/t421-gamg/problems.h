/*
  Systems for t421-gamg.c: a box with coefficients and convection, blocks of unknowns, rows that are alone
*/
#pragma once
#include "../testing.h"

/* k x k x k points: coefficients of contrast e^c; nonsymmetric: with convection, and no option that sets symmetry. pass: other values */
static PetscErrorCode Box(MPI_Comm comm, PetscInt k, PetscReal contrast, PetscReal convection, PetscInt pass, PetscBool ref, Mat *A)
{
  const PetscInt m = k * k * k;
  PetscInt       rs, re;

  PetscFunctionBegin;
  if (!*A) {
    PetscCall(TestMatCreate(comm, m, m, ref, A));
    PetscCall(MatSeqAIJSetPreallocation(*A, 7, NULL));
    PetscCall(MatMPIAIJSetPreallocation(*A, 7, NULL, 4, NULL));
  }
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt v = rs; v < re; v++) {
    const PetscInt x[3] = {v % k, v / k % k, v / (k * k)}, step[3] = {1, k, k * k};
    PetscScalar    diagonal = 0;

    for (int d = 0; d < 3; d++) {
      for (int side = -1; side <= 1; side += 2) {
        const PetscInt    u   = v + side * step[d];
        const PetscReal   w   = PetscExpReal(contrast * (ZooReal(PetscMin(u, v), 3 * PetscMax(u, v) + d, 17 + pass) - 0.5)) + (d == 0 && side < 0 ? convection : 0.0);
        const PetscScalar off = -w;

        diagonal += w;
        if (x[d] + side < 0 || x[d] + side >= k) continue;
        PetscCall(MatSetValues(*A, 1, &v, 1, &u, &off, INSERT_VALUES));
      }
    }
    PetscCall(MatSetValues(*A, 1, &v, 1, &v, &diagonal, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each entry becomes a block of 3 x 3: blocks that do not commute, so that no unknown goes by itself */
PETSC_UNUSED static PetscErrorCode Blocks(PetscBool ref, Mat *A)
{
  Mat                B;
  PetscInt           n;
  const PetscInt    *cols;
  const PetscScalar *v;

  PetscFunctionBegin;
  PetscCall(MatGetSize(*A, &n, NULL));
  PetscCall(TestMatCreate(PETSC_COMM_SELF, 3 * n, 3 * n, ref, &B));
  PetscCall(MatSetBlockSize(B, 3));
  PetscCall(MatSeqAIJSetPreallocation(B, 21, NULL));
  for (PetscInt r = 0; r < n; r++) {
    PetscInt ncols;

    PetscCall(MatGetRow(*A, r, &ncols, &cols, &v));
    for (PetscInt k = 0; k < ncols; k++) {
      const PetscReal   e        = 0.1 * ZooReal(PetscMin(r, cols[k]), PetscMax(r, cols[k]), 23);
      const PetscScalar block[9] = {v[k], e * v[k], 0.1 * v[k], e * v[k], v[k], 0, 0.1 * v[k], 0, v[k]};
      const PetscInt    row[3] = {3 * r, 3 * r + 1, 3 * r + 2}, col[3] = {3 * cols[k], 3 * cols[k] + 1, 3 * cols[k] + 2};

      PetscCall(MatSetValues(B, 3, row, 3, col, block, INSERT_VALUES));
    }
    PetscCall(MatRestoreRow(*A, r, &ncols, &cols, &v));
  }
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatShift(B, 1.0));
  PetscCall(MatDestroy(A));
  *A = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Some rows have only their diagonal, and one column only its own */
PETSC_UNUSED static PetscErrorCode Alone(Mat A)
{
  PetscInt rows[3] = {5, 77, 300};

  PetscFunctionBegin;
  PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_FALSE));
  PetscCall(MatZeroRowsColumns(A, 3, rows, 2.0, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

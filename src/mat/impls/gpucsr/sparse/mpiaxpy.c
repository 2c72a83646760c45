/*
  Y += a X of matrices of several ranks, where Y has every entry of X: block by block, each on the device if the block is there. PETSc would set X's
  entries in Y row by row.
*/
#include "../type/mpigpucsr.h"

/* The column in Y's block of each column of X's, both ascending; -1: none */
static PetscErrorCode Columns(Mat X, const PetscInt x[], Mat Y, const PetscInt y[], PetscInt **table)
{
  PetscInt q = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(X->cmap->n, table));
  for (PetscInt k = 0; k < X->cmap->n; k++) {
    while (q < Y->cmap->n && y[q] < x[k]) q++;
    (*table)[k] = q < Y->cmap->n && y[q] == x[k] ? q : -1;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Places of X's entries in Y, both rows ascending, for the caller to free, or NULL; subset becomes false if Y lacks one */
static PetscErrorCode Places(Mat X, Mat Y, const PetscInt table[], PetscInt **place, PetscBool *subset)
{
  const PetscInt *xi, *xj, *yi, *yj;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(X, &xi, &xj, NULL, NULL));
  PetscCall(MatSeqAIJGetCSRAndMemType(Y, &yi, &yj, NULL, NULL));
  if (place) PetscCall(PetscMalloc1(xi[X->rmap->n], place));
  for (PetscInt r = 0; r < X->rmap->n && *subset; r++) {
    PetscInt q = yi[r];

    for (PetscInt k = xi[r]; k < xi[r + 1] && *subset; k++) {
      const PetscInt c = table ? table[xj[k]] : xj[k];

      while (q < yi[r + 1] && yj[q] < c) q++;
      *subset = (PetscBool)(c >= 0 && q < yi[r + 1] && yj[q] == c);
      if (place) (*place)[k] = q;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AddAt(Mat Y, PetscScalar a, Mat X, const PetscInt place[])
{
  const PetscInt    *i;
  const PetscScalar *x;
  PetscScalar       *y;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFetch_Private(X));
  PetscCall(MatGPUCSRFetch_Private(Y));
  PetscCall(MatSeqAIJGetCSRAndMemType(X, &i, NULL, NULL, NULL));
  PetscCall(MatSeqAIJGetArrayRead(X, &x));
  PetscCall(MatSeqAIJGetArray(Y, &y));
  for (PetscInt k = 0; k < i[X->rmap->n]; k++) y[place[k]] += a * x[k];
  PetscCall(MatSeqAIJRestoreArray(Y, &y));
  PetscCall(MatSeqAIJRestoreArrayRead(X, &x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. done false: MATAIJ adds the matrices */
PetscErrorCode MatAXPY_MPIAIJGPUCSR(Mat Y, PetscScalar a, Mat X, MatStructure str, PetscBool *done)
{
  Mat             x[2], y[2];
  const PetscInt *xg, *yg;
  PetscInt       *table, *place;
  PetscBool       subset = PETSC_TRUE;
  int             all;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (!GPUCSRIsType(X, MATMPIAIJGPUCSR) || X == Y || str != SUBSET_NONZERO_PATTERN || !X->assembled || !Y->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(X, &x[0], &x[1], &xg));
  PetscCall(MatMPIAIJGetSeqAIJ(Y, &y[0], &y[1], &yg));
  PetscCall(Columns(x[1], xg, y[1], yg, &table));
  PetscCall(Places(x[0], y[0], NULL, NULL, &subset));
  PetscCall(Places(x[1], y[1], table, &place, &subset));
  all = subset;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)Y)));
  if (all) {
    PetscCall(MatAXPY(y[0], a, x[0], SUBSET_NONZERO_PATTERN));
    PetscCall(AddAt(y[1], a, x[1], place));
    PetscCall(PetscObjectStateIncrease((PetscObject)Y));
    *done = PETSC_TRUE;
  }
  PetscCall(PetscFree(table));
  PetscCall(PetscFree(place));
  PetscFunctionReturn(PETSC_SUCCESS);
}

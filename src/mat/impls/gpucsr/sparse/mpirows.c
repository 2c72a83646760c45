/*
  Rows of sparse matrices between ranks: fetched from their owners, or given to them.
*/
#include "mpirows.h"

PetscErrorCode GPUCSRRowsDestroy(GPUCSRRows *r)
{
  PetscFunctionBegin;
  PetscCall(PetscSFDestroy(&r->sf));
  PetscCall(PetscFree(r->i));
  PetscCall(PetscFree(r->j));
  PetscCall(PetscFree(r->a));
  PetscCall(PetscFree(r->first));
  PetscCall(PetscFree(r->sent));
  PetscCall(PetscFree(r->send));
  PetscCall(PetscMemzero(r, sizeof(*r)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Leaves are the columns of M's off-diagonal block, roots the columns that their owners have */
static PetscErrorCode Columns(Mat M, PetscSF *sf)
{
  const PetscInt *garray;
  Mat             Mo;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(M, NULL, &Mo, &garray));
  PetscCall(PetscSFCreate(PetscObjectComm((PetscObject)M), sf));
  PetscCall(PetscSFSetRankOrder(*sf, PETSC_TRUE));
  PetscCall(PetscSFSetGraphLayout(*sf, M->cmap, Mo->cmap->n, NULL, PETSC_COPY_VALUES, garray));
  PetscCall(PetscSFSetUp(*sf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries of rows that are leaves of sf: row k has i[k] to i[k + 1] - 1, from entry at[k] on of its owner's nroots entries */
static PetscErrorCode Entries(PetscSF sf, const PetscInt i[], const PetscInt at[], PetscInt nroots, PetscSF *entries)
{
  PetscInt           n;
  const PetscSFNode *owner;
  PetscSFNode       *to;

  PetscFunctionBegin;
  PetscCall(PetscSFGetGraph(sf, NULL, &n, NULL, &owner));
  PetscCall(PetscMalloc1(i[n], &to));
  for (PetscInt k = 0; k < n; k++)
    for (PetscInt q = i[k]; q < i[k + 1]; q++) {
      to[q].rank  = owner[k].rank;
      to[q].index = at[k] + q - i[k];
    }
  PetscCall(PetscSFCreate(PetscObjectComm((PetscObject)sf), entries));
  PetscCall(PetscSFSetGraph(*entries, nroots, i[n], NULL, PETSC_OWN_POINTER, to, PETSC_OWN_POINTER));
  PetscCall(PetscSFSetUp(*entries));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Exclusive sums */
static void Scan(PetscInt n, PetscInt i[])
{
  PetscInt sum = 0;

  for (PetscInt k = 0; k <= n; k++) {
    const PetscInt own = k < n ? i[k] : 0;

    i[k] = sum;
    sum += own;
  }
}

/* The pattern of the rows of B that belong to columns of A's off-diagonal block */
PetscErrorCode GPUCSRRowsFetch(Mat A, Mat B, GPUCSRRows *r)
{
  const PetscInt  m = B->rmap->n;
  const PetscInt *i[2], *j[2], *garray, *degree;
  PetscInt       *length, *at, *from, *columns, n = 0;
  Mat             b[2];
  PetscSF         sf;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(r, sizeof(*r)));
  PetscCall(Columns(A, &sf));
  PetscCall(PetscSFGetGraph(sf, NULL, &r->n, NULL, NULL));
  PetscCall(PetscSFComputeDegreeBegin(sf, &degree));
  PetscCall(PetscSFComputeDegreeEnd(sf, &degree));
  PetscCall(MatMPIAIJGetSeqAIJ(B, &b[0], &b[1], &garray));
  for (int k = 0; k < 2; k++) PetscCall(MatSeqAIJGetCSRAndMemType(b[k], &i[k], &j[k], NULL, NULL));
  PetscCall(PetscMalloc2(m, &length, m, &at));
  for (PetscInt q = 0; q < m; q++) r->nsent += degree[q] > 0;
  PetscCall(PetscMalloc1(r->nsent, &r->sent));
  r->nsent = 0;
  for (PetscInt q = 0; q < m; q++) {
    length[q] = degree[q] > 0 ? i[0][q + 1] - i[0][q] + i[1][q + 1] - i[1][q] : 0;
    at[q]     = n;
    n += length[q];
    if (degree[q] > 0) r->sent[r->nsent++] = q;
  }
  PetscCall(PetscMalloc1(r->n + 1, &r->i));
  PetscCall(PetscMalloc1(r->n, &from));
  PetscCall(PetscSFBcastBegin(sf, MPIU_INT, length, r->i, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(sf, MPIU_INT, length, r->i, MPI_REPLACE));
  PetscCall(PetscSFBcastBegin(sf, MPIU_INT, at, from, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(sf, MPIU_INT, at, from, MPI_REPLACE));
  PetscCall(PetscFree2(length, at));
  Scan(r->n, r->i);
  PetscCall(Entries(sf, r->i, from, n, &r->sf));
  PetscCall(PetscFree(from));
  PetscCall(PetscSFDestroy(&sf));
  PetscCall(PetscMalloc1(n, &columns));
  n = 0;
  for (PetscInt k = 0; k < r->nsent; k++) {
    for (PetscInt q = i[0][r->sent[k]]; q < i[0][r->sent[k] + 1]; q++) columns[n++] = B->cmap->rstart + j[0][q];
    for (PetscInt q = i[1][r->sent[k]]; q < i[1][r->sent[k] + 1]; q++) columns[n++] = garray[j[1][q]];
  }
  PetscCall(PetscMalloc1(r->i[r->n], &r->j));
  PetscCall(PetscMalloc1(r->i[r->n], &r->a));
  PetscCall(PetscMalloc1(n, &r->send));
  PetscCall(PetscSFBcastBegin(r->sf, MPIU_INT, columns, r->j, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(r->sf, MPIU_INT, columns, r->j, MPI_REPLACE));
  PetscCall(PetscFree(columns));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRRowsFetchValues(Mat B, GPUCSRRows *r)
{
  Mat                b[2];
  const PetscInt    *i[2];
  const PetscScalar *a[2];
  PetscInt           n = 0;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(B, &b[0], &b[1], NULL));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatGPUCSRFetch_Private(b[k]));
    PetscCall(MatSeqAIJGetCSRAndMemType(b[k], &i[k], NULL, NULL, NULL));
    PetscCall(MatSeqAIJGetArrayRead(b[k], &a[k]));
  }
  for (PetscInt k = 0; k < r->nsent; k++)
    for (int p = 0; p < 2; p++)
      for (PetscInt q = i[p][r->sent[k]]; q < i[p][r->sent[k] + 1]; q++) r->send[n++] = a[p][q];
  for (int k = 0; k < 2; k++) PetscCall(MatSeqAIJRestoreArrayRead(b[k], &a[k]));
  PetscCall(PetscSFBcastBegin(r->sf, MPIU_SCALAR, r->send, r->a, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(r->sf, MPIU_SCALAR, r->send, r->a, MPI_REPLACE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pattern: row k of this rank, with global columns, goes to the owner of column k of T's off-diagonal block */
PetscErrorCode GPUCSRRowsGive(Mat T, const PetscInt i[], const PetscInt j[], GPUCSRRows *r)
{
  const PetscInt  n = T->cmap->n;
  const PetscInt *degree;
  PetscInt       *length, *at, leaves;
  PetscSF         sf;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(r, sizeof(*r)));
  PetscCall(Columns(T, &sf));
  PetscCall(PetscSFGetGraph(sf, NULL, &leaves, NULL, NULL));
  PetscCall(PetscSFComputeDegreeBegin(sf, &degree));
  PetscCall(PetscSFComputeDegreeEnd(sf, &degree));
  PetscCall(PetscMalloc1(n + 1, &r->first));
  for (PetscInt k = 0; k < n; k++) r->first[k] = degree[k];
  Scan(n, r->first);
  r->n = r->first[n];
  PetscCall(PetscMalloc1(r->n + 1, &r->i));
  PetscCall(PetscMalloc2(leaves, &length, leaves, &at));
  for (PetscInt k = 0; k < leaves; k++) length[k] = i[k + 1] - i[k];
  PetscCall(PetscSFGatherBegin(sf, MPIU_INT, length, r->i));
  PetscCall(PetscSFGatherEnd(sf, MPIU_INT, length, r->i));
  Scan(r->n, r->i);
  PetscCall(PetscSFScatterBegin(sf, MPIU_INT, r->i, at));
  PetscCall(PetscSFScatterEnd(sf, MPIU_INT, r->i, at));
  PetscCall(Entries(sf, i, at, r->i[r->n], &r->sf));
  PetscCall(PetscFree2(length, at));
  PetscCall(PetscSFDestroy(&sf));
  PetscCall(PetscMalloc1(r->i[r->n], &r->j));
  PetscCall(PetscMalloc1(r->i[r->n], &r->a));
  PetscCall(PetscSFReduceBegin(r->sf, MPIU_INT, j, r->j, MPI_REPLACE));
  PetscCall(PetscSFReduceEnd(r->sf, MPIU_INT, j, r->j, MPI_REPLACE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRRowsGiveValues(GPUCSRRows *r, const PetscScalar a[])
{
  PetscFunctionBegin;
  PetscCall(PetscSFReduceBegin(r->sf, MPIU_SCALAR, a, r->a, MPI_REPLACE));
  PetscCall(PetscSFReduceEnd(r->sf, MPIU_SCALAR, a, r->a, MPI_REPLACE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Rows of sparse matrices between ranks: fetched from their owners, or given to them. And a rank's own rows, on the host.
*/
#include "mpirows.h"

PetscErrorCode GPUCSRRowsDestroy(GPUCSRRows *r)
{
  GPUCSRHostRows *const both[] = {&r->sent, &r->here};

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscFree(both[k]->i));
    PetscCall(PetscFree(both[k]->j));
    PetscCall(PetscFree(both[k]->a));
  }
  PetscCall(PetscSFDestroy(&r->sf));
  PetscCall(PetscSFDestroy(&r->rows));
  PetscCall(PetscFree(r->first));
  PetscCall(PetscFree(r->number));
  PetscCall(PetscMemzero(r, sizeof(*r)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Leaves are the ghost columns of M, roots the columns that their owners have */
static PetscErrorCode Columns(const GPUCSRRanksCSR *M, PetscSF *sf)
{
  PetscFunctionBegin;
  PetscCall(PetscSFCreate(M->comm, sf));
  PetscCall(PetscSFSetRankOrder(*sf, PETSC_TRUE));
  PetscCall(PetscSFSetGraphLayout(*sf, M->cmap, M->block[1]->n, NULL, PETSC_COPY_VALUES, M->ghost));
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

/* From rows sent to rows received */
static PetscErrorCode Exchange(GPUCSRRows *r, MPI_Datatype unit, const void *sent, void *here)
{
  PetscFunctionBegin;
  if (r->first) {
    PetscCall(PetscSFReduceBegin(r->sf, unit, sent, here, MPI_REPLACE));
    PetscCall(PetscSFReduceEnd(r->sf, unit, sent, here, MPI_REPLACE));
  } else {
    PetscCall(PetscSFBcastBegin(r->sf, unit, sent, here, MPI_REPLACE));
    PetscCall(PetscSFBcastEnd(r->sf, unit, sent, here, MPI_REPLACE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRRowsValues(GPUCSRRows *r)
{
  PetscFunctionBegin;
  PetscCall(Exchange(r, MPIU_SCALAR, r->sent.a, r->here.a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The columns of the rows received, and memory for their values */
static PetscErrorCode Pattern(GPUCSRRows *r)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc1(r->here.i[r->here.n], &r->here.j));
  PetscCall(PetscMalloc1(r->here.i[r->here.n], &r->here.a));
  PetscCall(Exchange(r, MPIU_INT, r->sent.j, r->here.j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Other ranks need this rank's rows for their ghost columns of A: which rows? */
PetscErrorCode GPUCSRRowsAsk(const GPUCSRRanksCSR *A, GPUCSRRows *r)
{
  const PetscInt *degree;
  PetscInt        m, n = 0;

  PetscFunctionBegin;
  PetscCall(Columns(A, &r->rows));
  PetscCall(PetscSFGetGraph(r->rows, &m, &r->here.n, NULL, NULL));
  PetscCall(PetscSFComputeDegreeBegin(r->rows, &degree));
  PetscCall(PetscSFComputeDegreeEnd(r->rows, &degree));
  for (PetscInt q = 0; q < m; q++) r->sent.n += degree[q] > 0;
  PetscCall(PetscMalloc1(r->sent.n, &r->number));
  for (PetscInt q = 0; q < m; q++)
    if (degree[q] > 0) r->number[n++] = q;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pattern of the rows asked for; the rows sent are complete */
PetscErrorCode GPUCSRRowsFetch(GPUCSRRows *r)
{
  const PetscInt *i = r->sent.i;
  PetscInt       *length, *at, *from, m;

  PetscFunctionBegin;
  PetscCall(PetscSFGetGraph(r->rows, &m, NULL, NULL, NULL));
  PetscCall(PetscCalloc2(m, &length, m, &at));
  for (PetscInt k = 0; k < r->sent.n; k++) {
    length[r->number[k]] = i[k + 1] - i[k];
    at[r->number[k]]     = i[k];
  }
  PetscCall(PetscMalloc1(r->here.n + 1, &r->here.i));
  PetscCall(PetscMalloc1(r->here.n, &from));
  PetscCall(PetscSFBcastBegin(r->rows, MPIU_INT, length, r->here.i, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(r->rows, MPIU_INT, length, r->here.i, MPI_REPLACE));
  PetscCall(PetscSFBcastBegin(r->rows, MPIU_INT, at, from, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(r->rows, MPIU_INT, at, from, MPI_REPLACE));
  PetscCall(PetscFree2(length, at));
  Scan(r->here.n, r->here.i);
  PetscCall(Entries(r->rows, r->here.i, from, i[r->sent.n], &r->sf));
  PetscCall(PetscFree(from));
  PetscCall(PetscSFDestroy(&r->rows));
  PetscCall(Pattern(r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pattern: row k of the rows sent goes to the owner of ghost column k of T */
PetscErrorCode GPUCSRRowsGive(const GPUCSRRanksCSR *T, GPUCSRRows *r)
{
  const PetscInt  n = T->cmap->n;
  const PetscInt *i = r->sent.i, *degree;
  PetscInt       *length, *at;
  PetscSF         sf;

  PetscFunctionBegin;
  PetscCall(Columns(T, &sf));
  PetscCall(PetscSFComputeDegreeBegin(sf, &degree));
  PetscCall(PetscSFComputeDegreeEnd(sf, &degree));
  PetscCall(PetscMalloc1(n + 1, &r->first));
  for (PetscInt k = 0; k < n; k++) r->first[k] = degree[k];
  Scan(n, r->first);
  r->here.n = r->first[n];
  PetscCall(PetscMalloc1(r->here.n + 1, &r->here.i));
  PetscCall(PetscMalloc2(r->sent.n, &length, r->sent.n, &at));
  for (PetscInt k = 0; k < r->sent.n; k++) length[k] = i[k + 1] - i[k];
  PetscCall(PetscSFGatherBegin(sf, MPIU_INT, length, r->here.i));
  PetscCall(PetscSFGatherEnd(sf, MPIU_INT, length, r->here.i));
  Scan(r->here.n, r->here.i);
  PetscCall(PetscSFScatterBegin(sf, MPIU_INT, r->here.i, at));
  PetscCall(PetscSFScatterEnd(sf, MPIU_INT, r->here.i, at));
  PetscCall(Entries(sf, i, at, r->here.i[r->here.n], &r->sf));
  PetscCall(PetscFree2(length, at));
  PetscCall(PetscSFDestroy(&sf));
  PetscCall(Pattern(r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a rank's own rows ---- */

/* The arrays of a matrix in CSR on its device; NULL: not needed */
PetscErrorCode GPUCSRCSRDownload(const GPUCSRStorage *A, PetscInt i[], PetscInt j[], PetscScalar a[])
{
  GPUCSRDevice dev = A->dev;

  PetscFunctionBegin;
  if (i) PetscCall(GPUCSRDownload(dev, i, GPUCSR_PETSCINT, A->array[CSR_ROWPTR].data, GPUCSR_INT32, (size_t)A->m + 1, PETSC_FALSE, dev->stream));
  if (j && A->nnz) PetscCall(GPUCSRDownload(dev, j, GPUCSR_PETSCINT, A->array[CSR_COL].data, GPUCSR_INT32, (size_t)A->nnz, PETSC_FALSE, dev->stream));
  if (a && A->nnz) PetscCall(GPUCSRDownload(dev, a, GPUCSR_DOUBLE, A->array[CSR_VAL].data, GPUCSR_DOUBLE, (size_t)A->nnz, PETSC_FALSE, dev->stream));
  PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This rank's rows of a matrix, on the host. The caller frees the arrays, NULL after an error, by PetscFree3() */
PetscErrorCode GPUCSRRanksRows(const GPUCSRRanksCSR *A, PetscInt **i, PetscInt **j, PetscScalar **a)
{
  const size_t   n    = (size_t)(A->block[0]->nnz + A->block[1]->nnz);
  GPUCSRHostRows b[2] = {{.n = 0}, {.n = 0}};
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  *i = *j = NULL;
  *a      = NULL;
  for (int k = 0; k < 2 && !ierr; k++) {
    PetscCall(PetscMalloc3(A->block[k]->m + 1, &b[k].i, A->block[k]->nnz, &b[k].j, A->block[k]->nnz, &b[k].a));
    ierr = GPUCSRCSRDownload(A->block[k], b[k].i, b[k].j, b[k].a);
  }
  if (!ierr) {
    PetscInt at;

    PetscCall(PetscMalloc3(A->block[0]->m + 1, i, n, j, n, a));
    at      = 0;
    (*i)[0] = 0;
    for (int r = 0; r < A->block[0]->m; r++) {
      PetscInt q = b[1].i[r];

      for (; q < b[1].i[r + 1] && A->ghost[b[1].j[q]] < A->cmap->rstart; q++) {
        (*j)[at]   = A->ghost[b[1].j[q]];
        (*a)[at++] = b[1].a[q];
      }
      for (PetscInt k = b[0].i[r]; k < b[0].i[r + 1]; k++) {
        (*j)[at]   = A->cmap->rstart + b[0].j[k];
        (*a)[at++] = b[0].a[k];
      }
      for (; q < b[1].i[r + 1]; q++) {
        (*j)[at]   = A->ghost[b[1].j[q]];
        (*a)[at++] = b[1].a[q];
      }
      (*i)[r + 1] = at;
    }
  }
  for (int k = 0; k < 2; k++) PetscCall(PetscFree3(b[k].i, b[k].j, b[k].a));
  PetscFunctionReturn(ierr);
}

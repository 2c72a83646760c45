/*
  The common part of the readers: agreement of ranks on an error, layouts, and arrays for the entries.

  With -gpucsr_file_balance entries each rank gets rows of equal work, if the program sets no layout. The work of a row is its entries, plus one for its numbers in the two vectors of a product, so
  empty rows count too. Bins of equally many rows hold the work, four million bins at most: 32 MB a rank for any matrix. Every rank has the sums of all bins, and cuts where the work before the cut is
  nearest to its share. So a rank has at most its share plus the work of one bin.
*/
#include "loadfile.h"
#include <stdlib.h>

#define BINS ((int64_t)1 << 22)

PetscErrorCode GPUCSRReaderDestroy(GPUCSRReader *R)
{
  PetscFunctionBegin;
  for (size_t k = 0; k < R->npieces; k++) GPUCSRPieceDestroy(&R->piece[k]);
  free(R->piece);
  GPUCSRInputClose(R->source);
  free(R->all);
  PetscCall(PetscFree2(R->row, R->nnz));
  PetscCall(PetscFree2(R->j, R->v));
  PetscCall(PetscFree(R->first));
  PetscCall(PetscFree(R->work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* If any rank has failed, all return the fault that comes first in the file */
PetscErrorCode GPUCSRReaderAgree(GPUCSRReader *R)
{
  const int64_t none = INT64_MAX;
  int64_t       line = R->failed ? R->fault.line : none, first;
  int           weight;
  PetscMPIInt   rank;
  char          text[PETSC_MAX_PATH_LEN + 512];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(&line, &first, 1, MPIU_INT64, MPI_MIN, R->comm));
  if (first == none) PetscFunctionReturn(PETSC_SUCCESS);
  weight = line == first;
  PetscCall(GPUCSRAgree(R->comm, &weight, NULL, &R->fault, sizeof(R->fault), &rank));
  GPUCSRFaultPrint(&R->fault, R->file, text, sizeof(text));
  SETERRQ(R->comm, PETSC_ERR_FILE_UNEXPECTED, "%s", text);
}

/* ---- Layouts */

void GPUCSRReaderCount(GPUCSRReader *R, int64_t row, int64_t entries)
{
  R->work[1 + row / R->bin] += entries;
}

/* The bin at the end of rank r's share; from: the end of the previous rank's */
static int64_t Cut(const int64_t before[], int64_t n, int64_t from, int64_t r, int64_t size)
{
  const double target = (double)before[n] / (double)size * (double)r;
  int64_t      k      = from;

  while (k < n && (double)before[k + 1] <= target) k++;
  if (k < n && (double)before[k + 1] - target < target - (double)before[k]) k++;
  return k;
}

/* Collective: the rows of this rank, and for a square matrix its columns, so that vectors fit both. count adds the entries of the rows that this rank has read */
static PetscErrorCode Balance(GPUCSRReader *R, Mat A, PetscInt M, PetscInt N, GPUCSRCountFn count, const void *ctx)
{
  PetscInt bs, m, columns;

  int64_t n, cut = 0, last = 0;
  int     set, any;

  PetscFunctionBegin;
  /* Does the program leave both layouts free? The same answer on all ranks, although only some ranks may have set a size */
  PetscCall(MatGetLocalSize(A, &m, &columns));
  set = m >= 0 || (M == N && columns >= 0);
  PetscCallMPI(MPI_Allreduce(&set, &any, 1, MPI_INT, MPI_MAX, R->comm));
  if (any || R->size == 1 || R->options.balance != MAT_GPUCSR_FILE_BALANCE_ENTRIES) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLayoutGetBlockSize(A->rmap, &bs));
  bs = PetscMax(bs, 1); /* -1: not set */
  if (M == N && A->cmap->bs > 1) {
    PetscInt common = bs;

    while (common % A->cmap->bs) common += bs;
    bs = common;
  }
  R->bin = ((M + BINS - 1) / BINS + bs - 1) / bs * bs;
  R->bin = PetscMax(R->bin, bs);
  n      = (M + R->bin - 1) / R->bin;
  PetscCall(PetscCalloc1((size_t)n + 1, &R->work));
  PetscCall((*count)(R, ctx));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, R->work + 1, (PetscMPIInt)n, MPIU_INT64, MPI_SUM, R->comm));
  for (int64_t k = 0; k < n; k++) R->work[k + 1] += R->work[k] + PetscMin(R->bin, M - k * R->bin);
  for (PetscMPIInt r = 1; r <= R->rank + 1; r++) {
    last = cut;
    cut  = r < R->size ? Cut(R->work, n, cut, r, R->size) : n;
  }
  m = (PetscInt)(PetscMin(cut * R->bin, M) - PetscMin(last * R->bin, M));
  PetscCall(MatSetSizes(A, m, M == N ? m : A->cmap->n, M, N));
  PetscCall(PetscFree(R->work));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sizes in the file, for sizes that the caller has not set; sizes that the caller has set must agree */
PetscErrorCode GPUCSRReaderLayout(GPUCSRReader *R, Mat A, PetscInt M, PetscInt N, GPUCSRCountFn count, const void *ctx)
{
  PetscInt m, n, has[2];

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &has[0], &has[1]));
  PetscCheck(has[0] < 0 || has[0] == M, R->comm, PETSC_ERR_FILE_UNEXPECTED, "%s: has %" PetscInt_FMT " rows where the matrix has %" PetscInt_FMT, R->file, M, has[0]);
  PetscCheck(has[1] < 0 || has[1] == N, R->comm, PETSC_ERR_FILE_UNEXPECTED, "%s: has %" PetscInt_FMT " columns where the matrix has %" PetscInt_FMT, R->file, N, has[1]);
  PetscCall(Balance(R, A, M, N, count, ctx));
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatSetSizes(A, m, n, M, N));
  if (!((PetscObject)A)->type_name) PetscCall(MatSetType(A, MATAIJ));
  PetscCall(PetscLayoutSetUp(A->rmap));
  PetscCall(PetscLayoutSetUp(A->cmap));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective, with R->row. One rank fills the arrays of the matrix if its type has arrays; otherwise the reader has them. A row with equal places may be longer than PETSc allows */
PetscErrorCode GPUCSRReaderArrays(GPUCSRReader *R, Mat A, PetscInt **j, PetscScalar **v, PetscBool *direct)
{
  const PetscInt m        = A->rmap->n;
  const size_t   n        = (size_t)R->row[m] + 1;
  PetscBool      possible = (PetscBool)(R->size == 1);

  PetscFunctionBegin;
  if (R->row[m] > PETSC_MAX_INT) R->failed = GPUCSRFaultSet(&R->fault, 0, 0, "one rank would have more entries than the integers of this PETSc can count: use more ranks, or a PETSc with 64-bit indices");
  PetscCall(GPUCSRReaderAgree(R));
  for (PetscInt r = 0; r < m; r++) {
    R->nnz[r] = (PetscInt)(R->row[r + 1] - R->row[r]);
    possible  = (PetscBool)(possible && R->nnz[r] <= A->cmap->N);
  }
  *j = NULL;
  if (possible) {
    PetscCall(MatSeqAIJSetPreallocation(A, 0, R->nnz)); /* no effect on other types */
    PetscCall(GPUCSRSeqArrays(A, n - 1, j, v));
  }
  *direct = (PetscBool)(*j != NULL);
  if (*direct) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc2(n, &R->j, n, &R->v));
  *j = R->j;
  *v = R->v;
  PetscFunctionReturn(PETSC_SUCCESS);
}

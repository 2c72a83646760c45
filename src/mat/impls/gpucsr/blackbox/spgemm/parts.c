/* Matrices in CSR on any device split by columns, and the host's twins of the kernels (parts.cu). */
#include "spgemm.h"

static PetscErrorCode PartRows(const GPUCSRStorage *A, int n, GPUCSRBool rest, int columns, int32_t *length, GPUCSRStorage *P)
{
  const GPUCSRSpGEMMOps *ops = GPUCSRSpGEMMOf(A->dev);
  int32_t               *rowptr;
  int64_t                nnz;
  PetscErrorCode         ierr;

  PetscFunctionBegin;
  PetscCall((*ops->lengths)(A, n, rest, length));
  PetscCall(GPUCSRMalloc(A->dev, sizeof(int32_t) * ((size_t)A->m + 1), "row pointers of a part", (void **)&rowptr));
  ierr = (*ops->scan)(A->m, length, rowptr, &nnz, A->dev);
  if (!ierr) ierr = GPUCSRCSRCreate(A->dev, A->m, columns, nnz, P);
  if (!ierr) ierr = A->dev->ops->copy(A->dev->id, P->array[CSR_ROWPTR].data, rowptr, sizeof(int32_t) * ((size_t)A->m + 1), GPUCSR_ON_DEVICE, A->dev->stream);
  PetscCall(GPUCSRFree(A->dev, sizeof(int32_t) * ((size_t)A->m + 1), (void **)&rowptr));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Splits A, with ascending columns in each row, at column n into D and E. After an error there is nothing to destroy. */
PetscErrorCode GPUCSRPartColumns(const GPUCSRStorage *A, int n, GPUCSRStorage *D, GPUCSRStorage *E)
{
  GPUCSRDevice   dev    = A->dev;
  const size_t   bytes  = sizeof(int32_t) * ((size_t)A->m + 1);
  void          *length = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(D, sizeof(*D)));
  PetscCall(PetscMemzero(E, sizeof(*E)));
  D->dev = E->dev = dev;
  ierr            = GPUCSRMalloc(dev, bytes, "lengths of a part's rows", &length);
  if (!ierr) ierr = dev->ops->zero(dev->id, length, bytes, dev->stream); /* the scan reads one number more than rows */
  if (!ierr) ierr = PartRows(A, n, PETSC_FALSE, n, (int32_t *)length, D);
  if (!ierr) ierr = PartRows(A, n, PETSC_TRUE, A->n - n, (int32_t *)length, E);
  if (!ierr) ierr = (*GPUCSRSpGEMMOf(dev)->part)(A, n, D, E);
  PetscCall(GPUCSRFree(dev, bytes, &length));
  if (ierr) {
    PetscCall(GPUCSRStorageDestroy(D));
    PetscCall(GPUCSRStorageDestroy(E));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- The host's twins */

#define INDICES(A, which) ((int32_t *)(A)->array[which].data)

PetscErrorCode GPUCSRRenumber_Host(int64_t n, const int32_t *table, int32_t *j, GPUCSRDevice dev)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(dev->stream));
  for (int64_t k = 0; k < n; k++) j[k] = table[j[k]];
  PetscCall(GPUCSRLaunched(dev, "renumber"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRLengths_Host(const GPUCSRStorage *A, int n, GPUCSRBool rest, int32_t *length)
{
  const int32_t *i = INDICES(A, CSR_ROWPTR), *j = INDICES(A, CSR_COL);

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(A->dev->stream));
  for (int r = 0; r < A->m; r++) {
    int32_t k = i[r];

    while (k < i[r + 1] && j[k] < n) k++;
    length[r] = rest ? i[r + 1] - k : k - i[r];
  }
  PetscCall(GPUCSRLaunched(A->dev, "lengths of parts"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRPart_Host(const GPUCSRStorage *A, int n, GPUCSRStorage *D, GPUCSRStorage *E)
{
  GPUCSRStorage *const to[2] = {D, E};

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(A->dev->stream));
  for (int r = 0; r < A->m; r++) {
    int32_t k = INDICES(A, CSR_ROWPTR)[r];

    for (int p = 0; p < 2; p++)
      for (int32_t q = INDICES(to[p], CSR_ROWPTR)[r]; q < INDICES(to[p], CSR_ROWPTR)[r + 1]; q++, k++) {
        INDICES(to[p], CSR_COL)[q]                = INDICES(A, CSR_COL)[k] - (p ? n : 0);
        ((double *)to[p]->array[CSR_VAL].data)[q] = ((const double *)A->array[CSR_VAL].data)[k];
      }
  }
  PetscCall(GPUCSRLaunched(A->dev, "parts"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

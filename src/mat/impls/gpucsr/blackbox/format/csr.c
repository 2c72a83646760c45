/*
  Compressed sparse rows: row r holds entries rowptr[r] <= k < rowptr[r + 1], entry k is value val[k] in column col[k].

  Extent: the width is the longest row if it was inspected, else 0.
  Bytes: 4 (m + 1) + (4 + v) nnz with v bytes a value. Wins if row lengths vary, as nothing is padded; the kernels differ in the number of threads for a row.
*/
#include "format.h"
#include "reference.h"

static void Layout_CSR(const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRStorage *A)
{
  A->stored            = e->stored;
  A->narrays           = 3;
  A->array[CSR_ROWPTR] = (GPUCSRArray){"rowptr", GPUCSR_INT32, PETSC_FALSE, (size_t)f->m + 1, NULL};
  A->array[CSR_COL]    = (GPUCSRArray){"col", GPUCSR_INT32, PETSC_FALSE, (size_t)f->nnz, NULL};
  A->array[CSR_VAL]    = (GPUCSRArray){"val", GPUCSRValueType(A->precision), PETSC_TRUE, (size_t)f->nnz, NULL};
}

/* Serves the device, too, as CSR is the format of the upload, which also converts and stages */
static PetscErrorCode Fill_CSR(const GPUCSRSource *s, GPUCSRStorage *A, GPUCSRBool valuesonly, double *rounding)
{
  const GPUCSRTransfer all[] = {
    {A->array[CSR_ROWPTR].data, GPUCSR_INT32,           s->i, GPUCSR_INT32,    (size_t)s->m + 1},
    {A->array[CSR_COL].data,    GPUCSR_INT32,           s->j, GPUCSR_PETSCINT, (size_t)s->nnz  },
    {A->array[CSR_VAL].data,    A->array[CSR_VAL].type, s->a, GPUCSR_DOUBLE,   (size_t)s->nnz  }
  };

  const GPUCSRStorage *const resident = (const GPUCSRStorage *)s->resident;

  PetscFunctionBegin;
  if (resident && resident->dev == A->dev && A->array[CSR_VAL].type == GPUCSR_DOUBLE) { /* it need not cross the bus again */
    for (int k = valuesonly ? CSR_VAL : CSR_ROWPTR; k <= CSR_VAL; k++) PetscCall((*A->dev->ops->copy)(A->dev->id, A->array[k].data, resident->array[k].data, A->array[k].count * GPUCSRTypeSize(A->array[k].type), GPUCSR_ON_DEVICE, A->dev->stream));
    if (rounding) *rounding = 0;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (valuesonly) PetscCall(GPUCSRUploadBatch(A->dev, all + CSR_VAL, 1, A->dev->stream, rounding));
  else PetscCall(GPUCSRUploadBatch(A->dev, all, 3, A->dev->stream, rounding));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of row r */
#define ROW(V, ENTRY) \
  for (int32_t k = rowptr[r]; k < rowptr[r + 1]; k++) ENTRY(col[k], ((const V *)A->array[CSR_VAL].data)[k])
#define LOCALS const int32_t *rowptr = (const int32_t *)A->array[CSR_ROWPTR].data, *col = (const int32_t *)A->array[CSR_COL].data
GPUCSR_REFERENCE(CSR, 0, q)
#undef LOCALS
#undef ROW

/*
  T = A transposed, both CSR in host memory, by counting: rows of T are sorted by column. map[k] is the entry of A at entry k of T, so that new values
  need no sort. Writes no values if A has no memory for them.
*/
PetscErrorCode GPUCSRTransposeCSR(const GPUCSRStorage *A, GPUCSRStorage *T, int32_t *map)
{
  const int32_t *rowptr = (const int32_t *)A->array[CSR_ROWPTR].data, *col = (const int32_t *)A->array[CSR_COL].data;
  int32_t       *start = (int32_t *)T->array[CSR_ROWPTR].data, *row = (int32_t *)T->array[CSR_COL].data;
  const size_t   size = GPUCSRTypeSize(A->array[CSR_VAL].type);

  PetscFunctionBegin;
  PetscCall(PetscArrayzero(start, A->n + 1));
  for (int64_t k = 0; k < A->nnz; k++) start[col[k] + 1]++;
  for (int c = 0; c < A->n; c++) start[c + 1] += start[c];
  for (int r = 0; r < A->m; r++) {
    for (int32_t k = rowptr[r]; k < rowptr[r + 1]; k++) {
      const int32_t q = start[col[k]]++;

      row[q] = r;
      map[q] = k;
    }
  }
  for (int c = A->n; c > 0; c--) start[c] = start[c - 1];
  start[0] = 0;
  if (!A->array[CSR_VAL].data) PetscFunctionReturn(PETSC_SUCCESS);
  if (size == 8)
    for (int64_t k = 0; k < A->nnz; k++) ((double *)T->array[CSR_VAL].data)[k] = ((const double *)A->array[CSR_VAL].data)[map[k]];
  else
    for (int64_t k = 0; k < A->nnz; k++) ((float *)T->array[CSR_VAL].data)[k] = ((const float *)A->array[CSR_VAL].data)[map[k]];
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUCSRFormatFamily GPUCSRFormat_csr = {NULL, GPUCSRStoresEntries, NULL, Layout_CSR, Fill_CSR, Mult_CSR, Diagonal_CSR};

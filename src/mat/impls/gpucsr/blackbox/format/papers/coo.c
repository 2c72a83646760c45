/*
  Coordinates: entry k is value val[k] in row row[k] and column col[k], ordered by row.

  Bytes: (8 + v) nnz. Threads share entries, not rows, so the lengths of rows do not matter; each entry pays 4 bytes more than in CSR.

  Paper: N. Bell, M. Garland, Implementing sparse matrix-vector multiplication on throughput-oriented processors, SC 2009.
*/
#include "coo.h"
#include "../reference.h"

static void Layout_COO(const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRStorage *A)
{
  A->stored         = e->stored;
  A->narrays        = 3;
  A->array[COO_ROW] = (GPUCSRArray){"row", GPUCSR_INT32, PETSC_FALSE, (size_t)f->nnz, NULL};
  A->array[COO_COL] = (GPUCSRArray){"col", GPUCSR_INT32, PETSC_FALSE, (size_t)f->nnz, NULL};
  A->array[COO_VAL] = (GPUCSRArray){"val", GPUCSRValueType(A->precision), PETSC_TRUE, (size_t)f->nnz, NULL};
}

static PetscErrorCode Fill_COO(const GPUCSRSource *s, GPUCSRStorage *A, GPUCSRBool valuesonly, double *rounding)
{
  int32_t *row = (int32_t *)A->array[COO_ROW].data, *col = (int32_t *)A->array[COO_COL].data;

  PetscFunctionBegin;
  for (int r = 0; r < s->m && !valuesonly; r++)
    for (int32_t k = s->i[r]; k < s->i[r + 1]; k++) {
      row[k] = r;
      col[k] = (int32_t)s->j[k];
    }
  PetscCall(GPUCSRConvert(A->array[COO_VAL].data, A->array[COO_VAL].type, s->a, GPUCSR_DOUBLE, (size_t)s->nnz, A->dev->threads, rounding));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define ROW(V, ENTRY) COOForRow(A->array, V, ENTRY)
#define LOCALS
GPUCSR_REFERENCE(COO, 0, q)
#undef LOCALS
#undef ROW

const GPUCSRFormatFamily GPUCSRFormat_coo = {NULL, GPUCSRStoresEntries, NULL, Layout_COO, Fill_COO, Mult_COO, Diagonal_COO};

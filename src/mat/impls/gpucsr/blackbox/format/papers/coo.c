/*
  Coordinates: entry k is value val[k] in row row[k] and column col[k], ordered by row.

  Bytes: (8 + v) nnz. Threads share entries, not rows, so the lengths of rows do not matter; each entry pays 4 bytes more than in CSR. The second part of hyb.

  Paper: N. Bell, M. Garland, Implementing sparse matrix-vector multiplication on throughput-oriented processors, SC 2009.
*/
#include "coo.h"

/* The three arrays for so many entries, from at on */
void GPUCSRCOOLayout(int64_t entries, GPUCSRPrecision p, GPUCSRArray *at)
{
  at[COO_ROW] = (GPUCSRArray){"row", GPUCSR_INT32, PETSC_FALSE, (size_t)entries, NULL};
  at[COO_COL] = (GPUCSRArray){"col", GPUCSR_INT32, PETSC_FALSE, (size_t)entries, NULL};
  at[COO_VAL] = (GPUCSRArray){"val", GPUCSRValueType(p), PETSC_TRUE, (size_t)entries, NULL};
}

/* The entries of each row from the skip-th on */
PetscErrorCode GPUCSRCOOFill(const GPUCSRSource *s, int skip, GPUCSRArray *at, GPUCSRBool valuesonly, double *rounding)
{
  int32_t *row = (int32_t *)at[COO_ROW].data, *col = (int32_t *)at[COO_COL].data;
  int64_t  q = 0;

  PetscFunctionBegin;
  for (int r = 0; r < s->m; r++) {
    for (int64_t k = (int64_t)s->i[r] + skip; k < s->i[r + 1]; k++, q++) {
      if (!valuesonly) {
        row[q] = r;
        col[q] = (int32_t)s->j[k];
      }
      PetscCall(GPUCSRConvert((char *)at[COO_VAL].data + (size_t)q * GPUCSRTypeSize(at[COO_VAL].type), at[COO_VAL].type, s->a + k, GPUCSR_DOUBLE, 1, 1, rounding));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z += alpha A x for the rows asked for */
void GPUCSRCOOAdd(const GPUCSRArray *at, GPUCSRPrecision precision, const GPUCSRProduct *p)
{
  const int32_t *row = (const int32_t *)at[COO_ROW].data, *col = (const int32_t *)at[COO_COL].data;
  const int64_t  n = (int64_t)at[COO_VAL].count;

#define ADD(V, X) \
  for (int64_t k = 0; k < n;) { \
    const int r   = row[k]; \
    double    sum = 0; \
\
    for (; k < n && row[k] == r; k++) sum += (X)((const V *)at[COO_VAL].data)[k] * ((const X *)p->x)[col[k]]; \
    if (r >= p->first && r < p->last) ((X *)p->z)[r] += (X)(p->alpha * sum); \
  }
  GPUCSRDispatchPrecision(precision, ADD);
#undef ADD
}

/* d[r] of those entries that are on the diagonal */
void GPUCSRCOODiagonal(const GPUCSRArray *at, GPUCSRPrecision precision, void *d)
{
  const int32_t *row = (const int32_t *)at[COO_ROW].data, *col = (const int32_t *)at[COO_COL].data;
  const int64_t  n = (int64_t)at[COO_VAL].count;

#define DIAGONAL(V, X) \
  for (int64_t k = 0; k < n; k++) \
    if (row[k] == col[k]) ((X *)d)[row[k]] = (X)((const V *)at[COO_VAL].data)[k];
  GPUCSRDispatchPrecision(precision, DIAGONAL);
#undef DIAGONAL
}

static void Layout_COO(const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRStorage *A)
{
  A->stored  = e->stored;
  A->narrays = 3;
  GPUCSRCOOLayout(A->stored, A->precision, A->array);
}

static PetscErrorCode Fill_COO(const GPUCSRSource *s, GPUCSRStorage *A, GPUCSRBool valuesonly, double *rounding)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRCOOFill(s, 0, A->array, valuesonly, rounding));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Mult_COO(const GPUCSRStorage *A, const GPUCSRProduct *p)
{
  PetscFunctionBegin;
#define SCALE(V, X) \
  for (int r = p->first; r < p->last; r++) ((X *)p->z)[r] = p->beta == 0 ? 0 : (X)p->beta * ((const X *)p->y)[r]
  GPUCSRDispatchPrecision(A->precision, SCALE);
#undef SCALE
  GPUCSRCOOAdd(A->array, A->precision, p);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diagonal_COO(const GPUCSRStorage *A, void *d)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(d, GPUCSRTypeSize(GPUCSRVectorType(A->precision)) * (size_t)PetscMin(A->m, A->n)));
  GPUCSRCOODiagonal(A->array, A->precision, d);
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUCSRFormatFamily GPUCSRFormat_coo = {NULL, GPUCSRStoresEntries, NULL, Layout_COO, Fill_COO, Mult_COO, Diagonal_COO};

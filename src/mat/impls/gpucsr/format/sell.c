/*
  Sliced ELL: 32 rows form a slice, stored as wide as its longest row and column by column, so that the 32 threads of a
  warp, one a row, read neighbouring entries together. Entry k of row r is at 32 (slice[r / 32] + k) + r % 32.

  Bytes: 4 (m + 1) + 4 (slices + 1) + (4 + v) stored, where stored >= nnz counts the padding. Wins where rows of a slice
  are about equally long: every load is coalesced and no thread waits for another. Loses as soon as padding outgrows that.
  Padding has column -1 and is never multiplied, so Inf and NaN in x stay where CSR would have them.

  Paper: A. Monakov, A. Lokhmotov, A. Avetisyan, Automatically Tuning Sparse Matrix-Vector Multiplication for GPU
  Architectures, HiPEAC 2010, section 3.
*/
#include "sell.h"

static PetscErrorCode Applicable_SELL(const GPUCSRFeatures *f, int variant, GPUCSRPrecision p, PetscBool *yes, char why[], size_t len)
{
  PetscFunctionBegin;
  (void)variant;
  (void)p;
  *yes = (double)f->sell_stored <= GPUCSR_MOST_STORED(f) ? PETSC_TRUE : PETSC_FALSE;
  if (!*yes) PetscCall(PetscSNPrintf(why, len, "its padding would store %.0f entries for %.0f nonzeros", (double)f->sell_stored, (double)f->nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Estimate_SELL(const GPUCSRFeatures *f, int variant, GPUCSRExtent *e)
{
  PetscFunctionBegin;
  (void)variant;
  e->stored = f->sell_stored;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Layout_SELL(const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRStorage *A)
{
  PetscFunctionBegin;
  A->stored             = e->stored;
  A->narrays            = 4;
  A->array[SELL_SLICE]  = (GPUCSRArray){"slice", GPUCSR_INT32, PETSC_FALSE, (size_t)(f->m + GPUCSR_SLICE - 1) / GPUCSR_SLICE + 1, NULL};
  A->array[SELL_ROWPTR] = (GPUCSRArray){"rowptr", GPUCSR_INT32, PETSC_FALSE, (size_t)f->m + 1, NULL};
  A->array[SELL_COL]    = (GPUCSRArray){"col", GPUCSR_INT32, PETSC_FALSE, (size_t)A->stored, NULL};
  A->array[SELL_VAL]    = (GPUCSRArray){"val", GPUCSRValueType(A->precision), PETSC_TRUE, (size_t)A->stored, NULL};
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fill_SELL(const GPUCSRSource *s, GPUCSRStorage *A, PetscBool valuesonly, double *rounding)
{
  int32_t  *slice = (int32_t *)A->array[SELL_SLICE].data, *rowptr = (int32_t *)A->array[SELL_ROWPTR].data, *col = (int32_t *)A->array[SELL_COL].data;
  const int nslices = (int)A->array[SELL_SLICE].count - 1;

  PetscFunctionBegin;
  if (!valuesonly) {
    PetscCall(PetscArraycpy(rowptr, s->i, s->m + 1));
    slice[0] = 0;
    for (int q = 0; q < nslices; q++) {
      int width = 0;

      for (int r = q * GPUCSR_SLICE; r < PetscMin(s->m, (q + 1) * GPUCSR_SLICE); r++) width = PetscMax(width, s->i[r + 1] - s->i[r]);
      slice[q + 1] = slice[q] + width;
    }
    for (int64_t q = 0; q < A->stored; q++) col[q] = -1;
    for (int r = 0; r < s->m; r++)
      for (int k = 0; k < s->i[r + 1] - s->i[r]; k++) col[SELLEntry(slice, r, k)] = (int32_t)s->j[s->i[r] + k];
    PetscCall(PetscMemzero(A->array[SELL_VAL].data, (size_t)A->stored * GPUCSRTypeSize(A->array[SELL_VAL].type)));
  }
  for (int r = 0; r < s->m; r++) {
    for (int k = 0; k < s->i[r + 1] - s->i[r]; k++) {
      const int64_t q = SELLEntry(slice, r, k);

      /* one at a time, through the one conversion there is, so that rounding is judged in one place */
      PetscCall(GPUCSRConvert((char *)A->array[SELL_VAL].data + (size_t)q * GPUCSRTypeSize(A->array[SELL_VAL].type), A->array[SELL_VAL].type, s->a + s->i[r] + k, GPUCSR_DOUBLE, 1, 1, rounding));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Mult_SELL(const GPUCSRStorage *A, const GPUCSRProduct *p)
{
  const int32_t *slice = (const int32_t *)A->array[SELL_SLICE].data, *rowptr = (const int32_t *)A->array[SELL_ROWPTR].data, *col = (const int32_t *)A->array[SELL_COL].data;

  PetscFunctionBegin;
#define MULT(V, X) \
  do { \
    const V *val = (const V *)A->array[SELL_VAL].data; \
    const X *x = (const X *)p->x, *y = (const X *)p->y, alpha = (X)p->alpha, beta = (X)p->beta; \
    X       *z = (X *)p->z; \
\
    for (int r = p->first; r < p->last; r++) { \
      X sum = 0; \
\
      for (int k = 0; k < rowptr[r + 1] - rowptr[r]; k++) { \
        const int64_t q = SELLEntry(slice, r, k); \
\
        sum += (X)val[q] * x[col[q]]; \
      } \
      z[r] = beta == 0 ? alpha * sum : alpha * sum + beta * y[r]; \
    } \
  } while (0)
  GPUCSRDispatchPrecision(A->precision, MULT);
#undef MULT
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diagonal_SELL(const GPUCSRStorage *A, void *diag)
{
  const int32_t *slice = (const int32_t *)A->array[SELL_SLICE].data, *rowptr = (const int32_t *)A->array[SELL_ROWPTR].data, *col = (const int32_t *)A->array[SELL_COL].data;

  PetscFunctionBegin;
#define DIAGONAL(V, X) \
  do { \
    const V *val = (const V *)A->array[SELL_VAL].data; \
    X       *d   = (X *)diag; \
\
    for (int r = 0; r < PetscMin(A->m, A->n); r++) { \
      d[r] = 0; \
      for (int k = 0; k < rowptr[r + 1] - rowptr[r]; k++) \
        if (col[SELLEntry(slice, r, k)] == r) d[r] = (X)val[SELLEntry(slice, r, k)]; \
    } \
  } while (0)
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
#undef DIAGONAL
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUCSRFormatFamily GPUCSRFormat_sell = {Applicable_SELL, Estimate_SELL, NULL, Layout_SELL, Fill_SELL, Mult_SELL, Diagonal_SELL};

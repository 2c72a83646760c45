/*
  Hybrid: the first entries of each row as ell, the rest as coordinates. The width of the first part is the largest length that a third of the rows
  and 4096 rows reach (all rows of a smaller matrix): up to there ELL is faster than coordinates, and its padding is bounded.

  Bytes: (4 + v) width m in whole slices + (8 + v) beyond. Wins if most rows are of about one length and some are much longer. Extent: units are the
  entries beyond. Padding is as in sell.

  Paper: N. Bell, M. Garland, Implementing sparse matrix-vector multiplication on throughput-oriented processors, SC 2009: with this width.
*/
#include "hyb.h"
#include "../reference.h"

/* Rows that reach the width */
static int64_t Enough(int m)
{
  return PetscMin((int64_t)m, PetscMax(4096, ((int64_t)m + 2) / 3));
}

static void Extent(int m, int64_t width, int64_t beyond, GPUCSRExtent *e)
{
  e->width  = (int)width;
  e->units  = beyond;
  e->stored = (int64_t)SELLSlices(m) * GPUCSR_SLICE * width + beyond;
}

/* As if all rows of a class were equally long */
static void Estimate_HYB(const GPUCSRFeatures *f, int variant, GPUCSRExtent *e)
{
  int64_t rows = 0, entries = 0, width;
  int     b = GPUCSR_NCLASSES;

  do {
    rows += f->rows[--b];
    entries += f->entries[b];
  } while (b > 0 && rows < Enough(f->m));
  width = f->rows[b] ? f->entries[b] / f->rows[b] : 0;
  Extent(f->m, width, entries - rows * width, e);
}

static PetscErrorCode Measure_HYB(const GPUCSRSource *s, int variant, GPUCSRExtent *e)
{
  int32_t *rows, width   = 0; /* rows of each length */
  int64_t  reach, beyond = 0;

  PetscFunctionBegin;
  for (int r = 0; r < s->m; r++) width = PetscMax(width, s->i[r + 1] - s->i[r]);
  PetscCall(PetscCalloc1((size_t)width + 1, &rows));
  for (int r = 0; r < s->m; r++) rows[s->i[r + 1] - s->i[r]]++;
  for (reach = rows[width]; width > 0 && reach < Enough(s->m); reach += rows[--width]) beyond += reach;
  PetscCall(PetscFree(rows));
  Extent(s->m, width, beyond, e);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Layout_HYB(const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRStorage *A)
{
  const GPUCSRType value = GPUCSRValueType(A->precision);
  const size_t     first = (size_t)(e->stored - e->units), beyond = (size_t)e->units;
  GPUCSRArray     *coo = A->array + HYB_COO;

  A->stored  = e->stored;
  A->narrays = HYB_COO + COO_VAL + 1;
  for (int k = 0; k < SELL_COL; k++) A->array[k] = (GPUCSRArray){"none", GPUCSR_INT32, PETSC_FALSE, 0, NULL}; /* as in ell, and no rowptr */
  A->array[SELL_COL] = (GPUCSRArray){"col", GPUCSR_INT32, PETSC_FALSE, first, NULL};
  A->array[SELL_VAL] = (GPUCSRArray){"val", value, PETSC_TRUE, first, NULL};
  coo[COO_ROW]       = (GPUCSRArray){"row beyond", GPUCSR_INT32, PETSC_FALSE, beyond, NULL};
  coo[COO_COL]       = (GPUCSRArray){"col beyond", GPUCSR_INT32, PETSC_FALSE, beyond, NULL};
  coo[COO_VAL]       = (GPUCSRArray){"val beyond", value, PETSC_TRUE, beyond, NULL};
}

static PetscErrorCode Fill_HYB(const GPUCSRSource *s, GPUCSRStorage *A, GPUCSRBool valuesonly, double *rounding)
{
  const int    width = A->extent.width;
  GPUCSRArray *coo   = A->array + HYB_COO;
  int64_t      next  = 0; /* of the entries beyond */

  PetscFunctionBegin;
  if (!valuesonly) {
    for (size_t q = 0; q < A->array[SELL_COL].count; q++) ((int32_t *)A->array[SELL_COL].data)[q] = -1;
    PetscCall(PetscMemzero(A->array[SELL_VAL].data, A->array[SELL_VAL].count * GPUCSRTypeSize(A->array[SELL_VAL].type)));
  }
  for (int r = 0; r < s->m; r++) {
    for (int32_t k = s->i[r]; k < s->i[r + 1]; k++) {
      const GPUCSRBool   beyond = (GPUCSRBool)(k - s->i[r] >= width);
      const int64_t      to     = beyond ? next++ : SELLEntry(NULL, width, r, k - s->i[r]);
      const GPUCSRArray *col = beyond ? &coo[COO_COL] : &A->array[SELL_COL], *val = beyond ? &coo[COO_VAL] : &A->array[SELL_VAL];

      if (!valuesonly) ((int32_t *)col->data)[to] = (int32_t)s->j[k];
      if (!valuesonly && beyond) ((int32_t *)coo[COO_ROW].data)[to] = r;
      PetscCall(GPUCSRConvert((char *)val->data + (size_t)to * GPUCSRTypeSize(val->type), val->type, s->a + k, GPUCSR_DOUBLE, 1, 1, rounding));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of row r */
#define ROW(V, ENTRY) \
  for (int k = 0; k < A->extent.width; k++) { \
    const int64_t e = SELLEntry(NULL, A->extent.width, r, k); \
\
    if (col[e] >= 0) ENTRY(col[e], ((const V *)A->array[SELL_VAL].data)[e]); \
  } \
  COOForRow(A->array + HYB_COO, V, ENTRY)
#define LOCALS const int32_t *col = (const int32_t *)A->array[SELL_COL].data
GPUCSR_REFERENCE(HYB, 0, q)
#undef LOCALS
#undef ROW

const GPUCSRFormatFamily GPUCSRFormat_hyb = {NULL, Estimate_HYB, Measure_HYB, Layout_HYB, Fill_HYB, Mult_HYB, Diagonal_HYB};

/*
  Sliced ELL: 32 rows form a slice, stored as wide as its longest row and column by column, so that the 32 threads of a
  warp read neighbouring entries together. Entry k of the row at place q is at 32 (slice[q / 32] + k) + q % 32.

  Variants, all of one layout and with the same kernels:

    sell              rows are not sorted
    sell_256, _4096   rows are sorted by falling length within windows (SELL-C-sigma): perm[q] is the row at place q
    sell_sorted       the window is all rows
    ell               ELLPACK: every slice as wide as the longest row, without slice pointers

  Bytes: 4 (m + 1) + 4 (slices + 1) + 4 m for perm + (4 + v) stored, where stored >= nnz counts the padding. Wins if rows of a slice are about equally long: every load is coalesced and no thread waits. Loses by padding. Sorting trades less padding for scattered results and another order of x: within a small window that costs little. Padding has column -1 and is never multiplied, so Inf and NaN in x act as with CSR.

  Papers: A. Monakov, A. Lokhmotov, A. Avetisyan, Automatically Tuning Sparse Matrix-Vector Multiplication for GPU
  Architectures, HiPEAC 2010, section 3; M. Kreutzer et al., A unified sparse matrix data format for efficient general sparse
  matrix-vector multiplication on modern processors with wide SIMD units, SIAM J. Sci. Comput. 36, 2014, section 2.
*/
#include "sell.h"
#include "reference.h"
#include <math.h>

/* The mean of the longest of so many random rows */
static double LongestOf(const GPUCSRFeatures *f, double rows)
{
  double longest = 0, before = 0, below = 0;

  for (int b = 0; b < GPUCSR_NCLASSES; b++) {
    if (!f->rows[b]) continue;
    const double upto = (below += f->rows[b]) / f->m, chance = pow(upto, rows);
    const double length = below < f->m ? (double)f->entries[b] / f->rows[b] : 0.5 * ((double)f->entries[b] / f->rows[b] + f->max);

    longest += (chance - before) * length;
    before = chance;
  }
  return longest;
}

static void Estimate_SELL(const GPUCSRFeatures *f, int variant, GPUCSRExtent *e)
{
  e->width  = f->max;
  e->stored = f->sell_stored;
  if (variant == SELL_ELL) e->stored = (int64_t)SELLSlices(f->m) * GPUCSR_SLICE * f->max;
  else if (variant != SELL_UNSORTED && f->m) {
    /* widths fall from the longest row to the shortest: each step loses half a slice */
    const double window = PetscMin(variant, f->m), fall = LongestOf(f, window) - f->min;

    e->window = variant;
    e->stored = PetscMin(f->sell_stored, f->nnz + (int64_t)(0.5 * GPUCSR_SLICE * fall * f->m / window) + GPUCSR_SLICE * f->min);
  }
}

/* Starts of the slices; perm may be NULL */
static int64_t Slices(int m, const int32_t *rowptr, const int32_t *perm, int32_t *slice)
{
  int64_t stored = 0;

  if (slice) slice[0] = 0;
  for (int s = 0; s < SELLSlices(m); s++) {
    int width = 0;

    for (int q = s * GPUCSR_SLICE; q < PetscMin(m, (s + 1) * GPUCSR_SLICE); q++) {
      const int r = perm ? perm[q] : q;

      width = PetscMax(width, rowptr[r + 1] - rowptr[r]);
    }
    stored += width;
    if (slice) slice[s + 1] = (int32_t)stored;
  }
  return GPUCSR_SLICE * stored;
}

static PetscErrorCode Measure_SELL(const GPUCSRSource *s, int variant, GPUCSRExtent *e)
{
  int32_t       *perm = NULL;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (int r = 0; r < s->m; r++) e->width = PetscMax(e->width, s->i[r + 1] - s->i[r]);
  if (variant == SELL_ELL) e->stored = (int64_t)SELLSlices(s->m) * GPUCSR_SLICE * e->width;
  else {
    if (variant != SELL_UNSORTED) {
      PetscCall(PetscMalloc1(s->m, &perm));
      ierr = GPUCSRSortRows(s->m, s->n, s->i, variant, perm);
    }
    if (!ierr) e->stored = Slices(s->m, s->i, perm, NULL);
    PetscCall(PetscFree(perm));
    PetscCall(ierr);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Layout_SELL(const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRStorage *A)
{
  const int variant = A->format->variant;

  A->stored             = e->stored;
  A->narrays            = 5;
  A->array[SELL_SLICE]  = (GPUCSRArray){"slice", GPUCSR_INT32, PETSC_FALSE, variant == SELL_ELL ? 0 : (size_t)SELLSlices(f->m) + 1, NULL};
  A->array[SELL_ROWPTR] = (GPUCSRArray){"rowptr", GPUCSR_INT32, PETSC_FALSE, (size_t)f->m + 1, NULL};
  A->array[SELL_PERM]   = (GPUCSRArray){"perm", GPUCSR_INT32, PETSC_FALSE, variant == SELL_ELL || variant == SELL_UNSORTED ? 0 : (size_t)f->m, NULL};
  A->array[SELL_COL]    = (GPUCSRArray){"col", GPUCSR_INT32, PETSC_FALSE, (size_t)A->stored, NULL};
  A->array[SELL_VAL]    = (GPUCSRArray){"val", GPUCSRValueType(A->precision), PETSC_TRUE, (size_t)A->stored, NULL};
}

/* The arrays as the host functions use them */
typedef struct {
  int32_t *slice, *rowptr, *perm, *col; /* slice and perm are NULL in variants without them */
  int      width;
} Arrays;

static Arrays ArraysOf(const GPUCSRStorage *A)
{
  Arrays a;

  a.slice  = A->array[SELL_SLICE].count ? (int32_t *)A->array[SELL_SLICE].data : NULL;
  a.rowptr = (int32_t *)A->array[SELL_ROWPTR].data;
  a.perm   = A->array[SELL_PERM].count ? (int32_t *)A->array[SELL_PERM].data : NULL;
  a.col    = (int32_t *)A->array[SELL_COL].data;
  a.width  = A->extent.width;
  return a;
}

static PetscErrorCode Fill_SELL(const GPUCSRSource *s, GPUCSRStorage *A, GPUCSRBool valuesonly, double *rounding)
{
  const Arrays a = ArraysOf(A);

  PetscFunctionBegin;
  if (!valuesonly) {
    PetscCall(PetscArraycpy(a.rowptr, s->i, s->m + 1));
    if (a.perm) PetscCall(GPUCSRSortRows(s->m, s->n, s->i, A->format->variant, a.perm));
    if (a.slice) (void)Slices(s->m, s->i, a.perm, a.slice);
    for (size_t q = 0; q < A->array[SELL_COL].count; q++) a.col[q] = -1;
    PetscCall(PetscMemzero(A->array[SELL_VAL].data, A->array[SELL_VAL].count * GPUCSRTypeSize(A->array[SELL_VAL].type)));
  }
  for (int q = 0; q < s->m; q++) {
    const int r = a.perm ? a.perm[q] : q;

    for (int k = 0; k < s->i[r + 1] - s->i[r]; k++) {
      const int64_t to = SELLEntry(a.slice, a.width, q, k);

      if (!valuesonly) a.col[to] = (int32_t)s->j[s->i[r] + k];
      /* one at a time, since GPUCSRConvert() alone judges the rounding */
      PetscCall(GPUCSRConvert((char *)A->array[SELL_VAL].data + (size_t)to * GPUCSRTypeSize(A->array[SELL_VAL].type), A->array[SELL_VAL].type, s->a + s->i[r] + k, GPUCSR_DOUBLE, 1, 1, rounding));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of row r, the q-th in the order of the format */
#define ROW(V, ENTRY) \
  for (int k = 0; k < a.rowptr[r + 1] - a.rowptr[r]; k++) { \
    const int64_t e = SELLEntry(a.slice, a.width, q, k); \
\
    ENTRY(a.col[e], ((const V *)A->array[SELL_VAL].data)[e]); \
  }
#define LOCALS const Arrays a = ArraysOf(A)
GPUCSR_REFERENCE(SELL, a.perm != NULL, a.perm ? a.perm[q] : q)
#undef LOCALS
#undef ROW

const GPUCSRFormatFamily GPUCSRFormat_sell = {NULL, Estimate_SELL, Measure_SELL, Layout_SELL, Fill_SELL, Mult_SELL, Diagonal_SELL};

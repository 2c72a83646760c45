/*
  Hybrid: the first entries of each row as ell, the rest as coordinates. The width of the first part is the largest length reached by a third of the rows and by 4096 rows (all rows of a smaller matrix): up to there ELL is faster than coordinates.

  Bytes: 4 (m + 1) + (4 + v) width m in whole slices + (8 + v) beyond. Wins if most rows are of about one length and some are much longer. Extent: units are the entries beyond. The first part has the arrays, the padding and the kernels of sell.

  Paper: N. Bell, M. Garland, Implementing sparse matrix-vector multiplication on throughput-oriented processors, SC 2009; the width follows the paper's rule.
*/
#include "../formats.h"
#include "hyb.h"

/* A third of the rows fill the first part, so its padding is bounded. All lengths of a class are assumed equally frequent */
static void Estimate_HYB(const GPUCSRFeatures *f, int variant, GPUCSRExtent *e)
{
  int32_t rows[HYB_WIDEST + 1] = {0};

  for (int b = 0; b < GPUCSR_NCLASSES; b++) {
    const int64_t lo = PetscMax(b ? (int64_t)1 << (b - 1) : 0, f->min), hi = PetscMin(b ? ((int64_t)1 << b) - 1 : 0, f->max);
    int64_t       given = 0;

    if (!f->rows[b]) continue;
    for (int64_t k = lo; k <= hi && given < f->rows[b]; k++) {
      const int64_t upto = (int64_t)((double)f->rows[b] * (double)(k - lo + 1) / (double)(hi - lo + 1));

      if (k >= HYB_WIDEST) {
        rows[HYB_WIDEST] += (int32_t)(f->rows[b] - given);
        break;
      }
      rows[k] += (int32_t)(upto - given);
      given = upto;
    }
  }
  HYBExtent(f->m, f->nnz, rows, e);
  e->units = PetscMax(0, e->units);
}

static PetscErrorCode Measure_HYB(const GPUCSRSource *s, int variant, GPUCSRExtent *e)
{
  int32_t *rows;

  PetscFunctionBegin;
  PetscCall(PetscCalloc1(HYB_WIDEST + 1, &rows));
  for (int r = 0; r < s->m; r++) rows[PetscMin(HYB_WIDEST, s->i[r + 1] - s->i[r])]++;
  HYBExtent(s->m, s->nnz, rows, e);
  PetscCall(PetscFree(rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Layout_HYB(const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRStorage *A)
{
  const GPUCSRExtent first = {.stored = e->stored - e->units, .width = e->width};

  (*GPUCSRFormat_sell.layout)(f, &first, A);
  GPUCSRCOOLayout(e->units, A->precision, A->array + HYB_COO);
  A->narrays = HYB_COO + COO_VAL + 1;
  A->stored  = e->stored;
}

static PetscErrorCode Fill_HYB(const GPUCSRSource *s, GPUCSRStorage *A, GPUCSRBool valuesonly, double *rounding)
{
  PetscFunctionBegin;
  PetscCall((*GPUCSRFormat_sell.fill)(s, A, valuesonly, rounding));
  PetscCall(GPUCSRCOOFill(s, A->extent.width, A->array + HYB_COO, valuesonly, rounding));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Mult_HYB(const GPUCSRStorage *A, const GPUCSRProduct *p)
{
  PetscFunctionBegin;
  PetscCall((*GPUCSRFormat_sell.mult)(A, p));
  GPUCSRCOOAdd(A->array + HYB_COO, A->precision, p);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diagonal_HYB(const GPUCSRStorage *A, void *d)
{
  PetscFunctionBegin;
  PetscCall((*GPUCSRFormat_sell.diagonal)(A, d));
  GPUCSRCOODiagonal(A->array + HYB_COO, A->precision, d);
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUCSRFormatFamily GPUCSRFormat_hyb = {NULL, Estimate_HYB, Measure_HYB, Layout_HYB, Fill_HYB, Mult_HYB, Diagonal_HYB};

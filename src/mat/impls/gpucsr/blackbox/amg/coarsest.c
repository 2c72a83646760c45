/*
  The dense inverse of the coarsest level.
*/
#include "amg.h"

#define FAR 0.1 /* A D A x is so far from A x at most, relative to its largest entry */

/*
  Pivots come from the diagonal, and an indefinite matrix may have none there. Without other levels D is the whole preconditioner, and must be an inverse: A D A = A, of a singular matrix too. The test takes a vector by chance.
  Then the rows and columns without a pivot get an entry, because a preconditioned norm does not see what a singular D hides
*/
static PetscErrorCode Check(GPUAMG *h)
{
  GPUAMGLevel  *L  = &h->level[0];
  const size_t  ld = GPUCSRAlignUp(sizeof(double) * (size_t)L->n) / sizeof(double);
  double       *x, *y, *host, most = 0;
  GPUAMGWork    w = {.A = GPUAMGRowsOf(&L->A), .bs = L->n, .coarse = (double *)h->inverse.p};
  GPUCSRProduct p = {.alpha = 1, .last = L->n, .doubles = PETSC_TRUE};
  GPUCSRError   error;

  PetscFunctionBegin;
  PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * 3 * ld, "the inverse of a coarse operator", &h->temp[GPUAMG_TEMP_VECTORS]));
  x       = (double *)h->temp[GPUAMG_TEMP_VECTORS].p;
  y       = x + ld;
  w.basis = x;
  w.norm  = y;
  p.x     = x;
  p.z     = y;
  PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_START, L->n, &w));
  PetscCall(GPUCSRPlanProduct(L->plan, &p, h->dev->stream));
  PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_TIMES, L->n, &w));
  p.z = y + ld;
  PetscCall(GPUCSRPlanProduct(L->plan, &p, h->dev->stream));
  PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_FILL, L->n, &w));
  PetscCall(PetscMalloc1(3 * ld, &host));
  error = GPUCSRRead(h->dev, host, x, sizeof(double) * 3 * ld);
  for (int i = 0; i < L->n && !error; i++) {
    most        = PetscMax(most, PetscAbsReal(host[ld + (size_t)i]));
    h->singular = (GPUCSRBool)(h->singular || host[i] > 0);
  }
  for (int i = 0; i < L->n && !error; i++)
    if (!(PetscAbsReal(host[2 * ld + (size_t)i] - host[ld + (size_t)i]) <= FAR * most)) h->problem = GPUAMG_PIVOT; /* or no number */
  PetscCall(PetscFree(host));
  PetscCall(error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Prepares the coarsest level, which has its values, for cycles */
PetscErrorCode GPUAMGCoarsest(GPUAMG *h)
{
  GPUAMGLevel *L = &h->level[h->levels - 1];
  const size_t n = (size_t)L->n;
  GPUAMGRows   A = GPUAMGRowsOf(&L->A);
  GPUAMGWork   w = {0};

  PetscFunctionBegin;
  PetscCall(GPUCSRBufferFree(h->dev, &h->inverseT));
  h->singular = 0;
  if (!h->exact || h->problem) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * n * n, "the inverse of a coarse operator", &h->inverse));
  PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * (GPUAMG_WORK(n) + n), "the inverse of a coarse operator", &h->temp[GPUAMG_TEMP_NORM]));
  if (h->levels > 1) {
    w = (GPUAMGWork){.from = GPUAMGRowsOf(&L[-1].R), .dinv = (double *)L[-1].dinv.p, .norm = (double *)h->temp[GPUAMG_TEMP_NORM].p + GPUAMG_WORK(n)};
    PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_ENERGY, L->n, &w));
  }
  PetscCall((*GPUAMGOf(h->dev)->invert)(h->dev, &A, w.norm, (double *)h->inverse.p, (double *)h->temp[GPUAMG_TEMP_NORM].p));
  if (h->levels == 1 && !h->o.level) PetscCall(Check(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

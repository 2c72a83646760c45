/*
  Float values of levels: the matrices of a cycle with their values rounded, while vectors and sums stay in double.
*/
#include "gpuamgimpl.h"

const char *const PCGPUAMGPrecisions[] = {"double", "single", "auto"};

/* Float values may change an application by this share; conjugate gradients then need no further iterations */
#define ROUNDED 0.01

/* The cycle with float values, or without */
static PetscErrorCode CycleRound(GPUAMG *h, GPUMGCycle *c, const GPUCSROperator *o, PetscBool rounded)
{
  PetscFunctionBegin;
  PetscCall(GPUMGCycleForget(c));
  for (int k = 0; k < h->levels; k++) {
    GPUAMGLevel *G = &h->level[k];
    GPUMGLevel  *L = &c->level[h->levels - 1 - k];

    L->A.o.plan = rounded ? &G->rounded[0] : k ? &G->own : o->plan;
    if (k + 1 == h->levels) continue;
    L->P.o.plan = rounded ? &G->rounded[1] : &G->planP;
    L->R.o.plan = rounded ? &G->rounded[2] : &G->planR;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The cycle's result for numbers by chance */
static PetscErrorCode Sample(GPUMGCycle *c, double *x)
{
  GPUMGLevel *top = &c->level[c->levels - 1];
  GPUAMGWork  w   = {.basis = NULL};

  PetscFunctionBegin;
  PetscCall(GPUMGCycleEnds(c));
  w.basis = top->b;
  PetscCall((*GPUAMGOf(c->dev)->rows)(c->dev, GPUAMG_START, top->n, &w));
  PetscCall(GPUMGCycleRun(c, top->b, top->x, NULL));
  PetscCall(GPUCSRDownload(c->dev, x, GPUCSR_DOUBLE, top->x, GPUCSR_DOUBLE, (size_t)top->n, PETSC_FALSE, c->dev->stream));
  PetscCall(c->dev->ops->streamsynchronize(c->dev->id, c->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do float values change a vector by little? The cycle has float values before the call and double values after it */
static PetscErrorCode RoundedWell(GPUAMG *h, GPUMGCycle *c, const GPUCSROperator *o, double *x, double *y, PetscBool *well)
{
  double all = 0, off = 0;

  PetscFunctionBegin;
  PetscCall(Sample(c, y));
  PetscCall(CycleRound(h, c, o, PETSC_FALSE));
  PetscCall(Sample(c, x));
  for (int i = 0; i < h->level[0].n; i++) {
    all += x[i] * x[i];
    off += (x[i] - y[i]) * (x[i] - y[i]);
  }
  *well = (PetscBool)(off <= ROUNDED * ROUNDED * all);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gives the cycle of h float values if the options ask for float values, or if the results are close enough. o: the finest matrix; precision: an index of the list above */
PetscErrorCode PCGPUAMGRound_Private(GPUAMG *h, GPUMGCycle *c, const GPUCSROperator *o, PetscInt precision, PetscBool *rounded)
{
  const size_t   n = (size_t)h->level[0].n;
  double        *x, *y;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *rounded = PETSC_FALSE;
  PetscCall(GPUAMGRound(h, (GPUCSRBool)(precision > 0)));
  if (!precision) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(CycleRound(h, c, o, PETSC_TRUE));
  *rounded = PETSC_TRUE;
  if (precision == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc2(n, &x, n, &y));
  ierr = RoundedWell(h, c, o, x, y, rounded);
  PetscCall(PetscFree2(x, y));
  PetscCall(ierr);
  if (*rounded) PetscCall(CycleRound(h, c, o, PETSC_TRUE));
  else PetscCall(GPUAMGRound(h, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

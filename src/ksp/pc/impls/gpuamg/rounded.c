/*
  Cycles in floats: their matrices, smoothers' data, dense matrix and vectors, inside a method in doubles.
*/
#include "gpuamgimpl.h"

const char *const PCGPUAMGPrecisions[] = {"double", "single", "auto"};

/* Floats may change an application by this share: conjugate gradients then take few further iterations, if any */
#define ROUNDED 0.01

/* Levels that a dense matrix does not replace */
static int Levels(const GPUMGCycle *c)
{
  return c->levels - (c->bottom || c->exact ? c->bottom + 1 : 0);
}

/* The cycle in floats, or in doubles again. o: the finest matrix */
static PetscErrorCode Switch(GPUAMG *h, GPUMGCycle *c, const GPUCSROperator *o, PetscBool floats)
{
  PetscFunctionBegin;
  PetscCall(GPUMGCycleForget(c));
  c->floats = floats;
  for (int k = 0; k < h->levels; k++) {
    GPUAMGLevel *G     = &h->level[k];
    const int    l     = h->levels - 1 - k;
    GPUMGMatrix *all[] = {&c->level[l].A, &c->level[l].P, &c->level[l].R};
    GPUCSRPlan  *own[] = {k ? &G->own : o->plan, &G->planP, &G->planR};

    for (int q = 0; k < Levels(c) && q < (k + 1 < h->levels ? 3 : 1); q++) {
      all[q]->o.plan   = floats ? &G->rounded[q] : own[q];
      all[q]->o.floats = floats;
    }
    PetscCall(GPUCSRBufferGrow(c->dev, GPUMGCycleVectorBytes(c, l), "vectors of a multigrid level", &c->level[l].memory));
    GPUMGCycleVectors(c, l);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n numbers rounded, in the next memory */
static PetscErrorCode Copy(GPUCSRDevice dev, size_t n, const void *from, char **next, const void **to)
{
  PetscFunctionBegin;
  PetscCall((*GPUCSRHelpers(dev)->convert)(dev, (int)n, from, GPUCSR_FLOAT, *next, dev->stream));
  *to = *next;
  *next += GPUCSRAlignUp(sizeof(float) * n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The cycle's result for numbers by chance */
static PetscErrorCode Sample(GPUMGCycle *c, double *x)
{
  const int  n = c->level[c->levels - 1].n;
  GPUAMGWork w = {.basis = NULL};

  PetscFunctionBegin;
  PetscCall(GPUMGCycleEnds(c));
  w.basis = c->b;
  PetscCall((*GPUAMGOf(c->dev)->rows)(c->dev, GPUAMG_START, n, &w));
  PetscCall(GPUMGCycleRun(c, c->b, c->x, NULL));
  PetscCall(GPUCSRDownload(c->dev, x, GPUCSR_DOUBLE, c->x, GPUCSR_DOUBLE, (size_t)n, PETSC_FALSE, c->dev->stream));
  PetscCall(c->dev->ops->streamsynchronize(c->dev->id, c->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Prepares floats for the cycle of h if the options ask for floats, or if the results are close enough. The cycle is in doubles until a method that floats serve begins. o: the finest matrix; precision: an index of the list above */
PetscErrorCode PCGPUAMGRound_Private(GPUAMG *h, GPUMGCycle *c, const GPUCSROperator *o, PetscInt precision, PetscBool *rounded)
{
  const size_t   n       = (size_t)h->level[0].n;
  const char    *doubles = c->levels == 1 ? "one level" : c->krylov ? "K-cycles" : c->level[0].down.factors ? "factors" : NULL;
  double        *x, *y, all = 0, off = 0;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *rounded = (PetscBool)(precision > 0 && !doubles);
  if (precision > 0 && doubles) PetscCall(PetscInfo(NULL, "A cycle with %s is in doubles\n", doubles));
  if (*rounded) { /* all numbers of the cycle that are not vectors */
    const int    least = c->levels - Levels(c);
    const size_t m = (size_t)c->level[c->bottom].n, dense = least ? m * m : 0, ends = GPUCSRAlignUp(sizeof(double) * GPUMG_ROUND_WORK);
    size_t       bytes = ends + GPUCSRAlignUp(sizeof(float) * dense);
    char        *next;

    PetscCall(GPUAMGRound(h, Levels(c)));
    for (int l = least; l < c->levels; l++) bytes += GPUCSRAlignUp(sizeof(float) * (size_t)c->level[l].n * (size_t)c->level[l].down.bs);
    PetscCall(GPUCSRBufferGrow(c->dev, bytes, "float values of a multigrid cycle", &c->rounded));
    next = (char *)c->rounded.p + ends;
    for (int l = least; l < c->levels; l++) PetscCall(Copy(c->dev, (size_t)c->level[l].n * (size_t)c->level[l].down.bs, c->level[l].down.M.p, &next, &c->level[l].down.rounded));
    if (dense) PetscCall(Copy(c->dev, dense, c->bottom ? c->tail.p : c->inverse.p, &next, &c->dense));
  }
  if (*rounded && precision == 2) {
    PetscCall(Switch(h, c, o, PETSC_TRUE));
    PetscCall(PetscMalloc2(n, &x, n, &y));
    ierr = Sample(c, y);
    if (!ierr) ierr = Switch(h, c, o, PETSC_FALSE);
    if (!ierr) ierr = Sample(c, x);
    for (size_t i = 0; i < n && !ierr; i++) {
      all += x[i] * x[i];
      off += (x[i] - y[i]) * (x[i] - y[i]);
    }
    *rounded = (PetscBool)(off <= ROUNDED * ROUNDED * all); /* floats change a vector by little */
    PetscCall(PetscFree2(x, y));
    PetscCall(ierr);
  }
  if (*rounded) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUAMGRound(h, 0));
  PetscCall(GPUCSRBufferFree(c->dev, &c->rounded));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The finest matrix of the cycle has moved, or has new values: o. The caller notes it afterwards, so that after an error the next call is the same */
PetscErrorCode PCGPUAMGFinest_Private(PC_GPUAMG *a, const GPUCSROperator *o)
{
  const GPUCSRStorage *csr;

  PetscFunctionBegin;
  if (a->rounded) {
    PetscCall(MatGPUCSROperatorBegin_Private(o));
    PetscCall(MatGPUCSROperatorCSR_Private(o, NULL, &csr));
    a->h.level[0].A = *csr;
    PetscCall(GPUCSRPlanRound(csr, o->plan, 0, &a->h.level[0].rounded[0]));
  }
  a->cycle.level[a->h.levels - 1].A.o = *o;
  PetscCall(Switch(&a->h, &a->cycle, o, a->cycle.floats));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Floats, if they are allowed, or doubles for the cycle. On several ranks the cycle of the small levels changes */
PetscErrorCode PCGPUAMGFloats_Private(PC pc, PetscBool floats)
{
  PC_GPUAMG *a   = (PC_GPUAMG *)pc->data;
  PC         one = a->taken && a->ranks ? a->ranks->one : NULL;
  PetscInt   version;

  PetscFunctionBegin;
  if (one) {
    version = ((PC_GPUAMG *)one->data)->version;
    PetscCall(PCGPUAMGFloats_Private(one, floats));
    if (((PC_GPUAMG *)one->data)->version == version) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(GPUMGCycleForget(&a->cycle)); /* its graphs have the other cycle */
  } else if (a->taken && a->rounded && a->cycle.floats != floats) PetscCall(Switch(&a->h, &a->cycle, &a->matrix, floats));
  else PetscFunctionReturn(PETSC_SUCCESS);
  a->version++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Weak entries of a level on several ranks, by the rules of one device (blackbox/amg) on rows of both blocks.
*/
#include "gpuamgimpl.h"

static GPUAMGWork Work(const GPUAMGRanksLevel *L, const GPUCSRStorage *A)
{
  const GPUAMGWork w = {.A = GPUAMGRowsOf(A), .bs = 1, .relative = 1, .dinv = (double *)L->dinv.p};

  return w;
}

/* For each row the size of its largest entry in columns of other ranks, on the device */
PetscErrorCode PCGPUAMGBeyond_Private(const GPUAMGRanksLevel *L, GPUCSRBuffer *beyond)
{
  GPUCSRDevice  dev  = L->A.o.dev;
  const size_t  n    = (size_t)L->n;
  GPUCSRStorage none = {.dev = dev}, *const off[2] = {&none, L->A.m.block[1]}; /* columns after this rank's own: none is on the diagonal */
  GPUCSRStorage  K    = {.dev = dev};
  GPUCSRBuffer   root = {NULL, 0};
  PetscErrorCode ierr;
  GPUAMGWork     w;

  PetscFunctionBegin;
  ierr = PCGPUAMGRanksEmpty_Private(dev, L->n, L->n, &none);
  if (!ierr) ierr = GPUCSRRanksBeside(off, &K);
  if (!ierr) ierr = GPUCSRBufferGrow(dev, sizeof(double) * n, "norms of a graph", &root);
  if (!ierr) ierr = GPUCSRBufferGrow(dev, sizeof(double) * n, "norms of a graph", beyond);
  w      = Work(L, &K);
  w.norm = (double *)root.p;
  if (!ierr) ierr = (*GPUAMGOf(dev)->rows)(dev, GPUAMG_NORMS, (int)n, &w);
  w.coarse = w.norm; /* squares */
  w.basis  = (double *)beyond->p;
  if (!ierr) ierr = (*GPUAMGOf(dev)->rows)(dev, GPUAMG_TIMES, (int)n, &w);
  PetscCall(GPUCSRBufferFree(dev, &root));
  PetscCall(GPUCSRStorageDestroy(&none));
  PetscCall(GPUCSRStorageDestroy(&K));
  PetscFunctionReturn(ierr);
}

/* [A_d A_o] without small entries, in h's first level; the caller's arrays stay */
static PetscErrorCode Filter(const GPUAMGRanksLevel *L, GPUAMG *h, GPUAMGRanksMatrix *F)
{
  GPUAMGLevel   *W    = &h->level[0];
  GPUCSRStorage  rest = {.dev = h->dev};
  PetscErrorCode ierr;
  GPUAMGWork     w;

  PetscFunctionBegin;
  W->dinv = L->dinv;
  PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * (size_t)L->n, "norms of a graph", &h->temp[GPUAMG_TEMP_NORM]));
  w      = Work(L, &W->A);
  w.norm = (double *)h->temp[GPUAMG_TEMP_NORM].p;
  PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_NORMS, (int)L->n, &w));
  ierr   = GPUAMGFilter(h, 0, &rest);
  rest.n = W->A.n;
  if (!ierr) ierr = GPUCSRPartColumns(&rest, (int)L->n, &F->own[0], &F->own[1]);
  if (!ierr) ierr = GPUCSRPartEntries(&rest, (int)L->n, &F->own[0], &F->own[1]);
  PetscCall(GPUCSRStorageDestroy(&rest));
  PetscFunctionReturn(ierr);
}

static PetscErrorCode Begin(const GPUAMGRanksLevel *L, GPUAMG *h)
{
  GPUCSRDevice dev = L->A.o.dev;
  const size_t n = (size_t)L->n, all = n + (size_t)L->A.m.block[1]->n;
  GPUAMGWork   w = {.bs = 1};

  PetscFunctionBegin;
  h->level[0].n = (int)L->n;
  PetscCall(GPUCSRRanksBeside(L->A.m.block, &h->level[0].A));
  /* the near null vector in the rank's columns and in its ghost columns */
  PetscCall(GPUCSRBufferGrow(dev, sizeof(double) * all, "a near null space", &h->level[0].basis));
  w.basis = (double *)h->level[0].basis.p;
  if (!L->basis.p) PetscCall((*GPUAMGOf(dev)->rows)(dev, GPUAMG_ONES, (int)all, &w));
  else PetscCall(dev->ops->copy(dev->id, w.basis, L->basis.p, sizeof(double) * n, GPUCSR_ON_DEVICE, dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: F is the level's matrix without small entries, for the smoother of its prolongator */
PetscErrorCode PCGPUAMGFilter_Private(const GPUAMGRanksLevel *L, GPUAMGRanksMatrix *F)
{
  GPUAMG         h = {.dev = L->A.o.dev};
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  F->m = L->A.m;
  for (int k = 0; k < 2; k++) F->m.block[k] = &F->own[k];
  GPUCSRTry(&attempt, Begin(L, &h));
  if (L->basis.p) {
    GPUCSRAttempt halo;

    GPUCSRTry(&halo, MatGPUCSRRanksHalo_Private(&L->A.o, &L->A.r, attempt.error ? NULL : (const double *)L->basis.p, attempt.error ? NULL : (double *)h.level[0].basis.p + L->n));
    if (!attempt.error) attempt = halo;
  }
  GPUCSRThen(&attempt, Filter(L, &h, F));
  PetscCall(GPUAMGTemporaries(&h));
  PetscCall(GPUCSRBufferFree(h.dev, &h.level[0].basis));
  PetscCall(GPUCSRStorageDestroy(&h.level[0].A));
  ierr = PCGPUAMGSettle_Private(L->A.m.comm, &attempt);
  if (ierr) PetscCall(PCGPUAMGRanksMatrixDestroy_Private(F));
  PetscFunctionReturn(ierr);
}

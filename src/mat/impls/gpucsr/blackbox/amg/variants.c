/*
  What a hierarchy has only after it is asked for: transposes, and plans in single precision.
*/
#include "amg.h"

/* What transposed cycles need: coarse matrices and the inverse transposed. The finest is the caller's */
PetscErrorCode GPUAMGTransposes(GPUAMG *h)
{
  const size_t n = (size_t)h->level[h->levels - 1].n;

  PetscFunctionBegin;
  for (int l = 1; l < h->levels; l++) {
    GPUAMGLevel *L = &h->level[l];

    if (L->T.format) continue;
    PetscCall(GPUCSRTransposeStorage(&L->A, &L->T, &L->tmap));
    PetscCall(GPUCSRPlanLend(&L->T, 0, &L->planT));
  }
  if (!h->exact || h->inverseT.p) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * n * n, "the inverse of a coarse operator", &h->inverseT));
  PetscCall(h->dev->ops->copy(h->dev->id, h->inverseT.p, h->inverse.p, sizeof(double) * n * n, GPUCSR_ON_DEVICE, h->dev->stream));
  PetscCall((*GPUAMGOf(h->dev)->transpose)(h->dev, (int)n, (double *)h->inverseT.p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes plans in single precision beside the double plans, for the matrices of the finest levels, so many, and frees all others */
PetscErrorCode GPUAMGRound(GPUAMG *h, int levels)
{
  PetscFunctionBegin;
  for (int l = 0; l < h->levels; l++) {
    GPUAMGLevel *L = &h->level[l];

    for (int k = 0; k < 3; k++) PetscCall(GPUCSRPlanReturn(&L->rounded[k]));
    if (l >= levels) continue;
    PetscCall(GPUCSRPlanRound(&L->A, l ? NULL : L->plan, l ? h->level[l - 1].crows.longest : 0, &L->rounded[0]));
    if (l + 1 == h->levels) continue;
    PetscCall(GPUCSRPlanRound(&L->P[h->o.nsmooths], NULL, L->prows[h->o.nsmooths].longest, &L->rounded[1]));
    PetscCall(GPUCSRPlanRound(&L->R, NULL, 0, &L->rounded[2]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

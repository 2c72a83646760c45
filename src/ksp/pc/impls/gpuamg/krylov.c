/*
  K-cycles of PCGPUAMG: the method, and cycles of several ranks. One process runs K-cycles on its device (../mg/cycle.c). With several ranks the sums pass through the host, so the cycles here are
  operations of PETSc's vectors over the levels of the PCMG.
*/
#include "gpuamgimpl.h"

/* A: the finest matrix */
PetscErrorCode PCGPUAMGKrylovMethod_Private(const PC_GPUAMG *a, Mat A, GPUMGKrylovMethod *method)
{
  PetscBool known = PETSC_FALSE, symmetric = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatIsSymmetricKnown(A, &known, &symmetric));
  *method = a->used.cycles < GPUAMG_K ? GPUMG_KRYLOV_NONE : known && symmetric ? GPUMG_KRYLOV_CG : GPUMG_KRYLOV_GCR;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the PC need a flexible method? */
PetscErrorCode PCGPUAMGFlexible_Private(PC pc, PetscBool *flexible)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCGPUAMG, flexible));
  if (*flexible) *flexible = (PetscBool)(((PC_GPUAMG *)pc->data)->used.cycles == GPUAMG_K);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before each solve. Warns once if a method assumes a linear preconditioner and this is a K-cycle: its residual norms are wrong */
PetscErrorCode PCGPUAMGPreSolve_Private(PC pc, KSP ksp, Vec b, Vec x)
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;
  PetscBool  flexible;

  PetscFunctionBegin;
  (void)b;
  (void)x;
  if (a->used.cycles < GPUAMG_K || a->warned) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp, &flexible, KSPGPUCG, KSPGPUFGMRES, KSPFCG, KSPPIPEFCG, KSPFGMRES, KSPPIPEFGMRES, KSPGCR, KSPPIPEGCR, KSPFBCGS, KSPRICHARDSON, KSPPREONLY, ""));
  a->warned = (PetscBool)!flexible;
  if (a->warned)
    PetscCall(PetscFPrintf(PetscObjectComm((PetscObject)pc), PETSC_STDERR, "PC type gpuamg warning: K-cycles are not linear, and KSP type %s may report convergence that the true residual does not have: take gpucg, gpufgmres, fcg, fgmres or gcr\n",
                           ((PetscObject)ksp)->type_name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Level l, which the PCMG counts from the coarsest */
static PC_MG_Levels *At(const GPUAMGRanks *r, int l)
{
  return ((PC_MG *)r->mg->data)->levels[r->levels - 1 - l];
}

/* Collective. Makes the vectors of the coarse levels */
PetscErrorCode PCGPUAMGKrylovSetUp_Private(GPUAMGRanks *r)
{
  const PC coarse = At(r, r->levels - 1)->smoothd->pc;

  PetscFunctionBegin;
  for (int l = 1; l < r->levels; l++)
    if (!r->level[l].krylov) PetscCall(VecDuplicateVecs(At(r, l)->x, 3, &r->level[l].krylov));
  PetscCall(PetscObjectTypeCompare((PetscObject)coarse, PCGPUAMG, &r->continues));
  if (r->continues) {
    const GPUAMGRanks *small = ((const PC_GPUAMG *)coarse->data)->ranks;

    r->continues = (PetscBool)(small && small->one && ((const PC_GPUAMG *)small->one->data)->h.levels > 1);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Cycle(PC, int, Vec, Vec);

/* As on a device. The solution of level l is in its x, and b changes */
static PetscErrorCode Krylov(PC pc, int l)
{
  const GPUAMGRanks *r = ((PC_GPUAMG *)pc->data)->ranks;
  const Vec          x = At(r, l)->x, b = At(r, l)->b, *k = r->level[l].krylov;
  PetscScalar        dot[3];
  double             sum[GPUMG_KRYLOV_SUMS] = {0}, f[2];

  PetscFunctionBegin;
  for (int step = 0; step < 2; step++) {
    const Vec v = k[1 + step], with[] = {k[1], step ? v : b, b};

    PetscCall(Cycle(pc, l, b, x));
    PetscCall(MatMult(r->level[l].A, x, v));
    PetscCall(VecMDot(r->krylov == GPUMG_KRYLOV_GCR ? v : x, 2 + step, with, dot));
    for (int q = 0; q < 2 + step; q++) sum[2 * step + q] = (double)PetscRealPart(dot[q]);
    GPUMGKrylovFactors(sum, step, f);
    if (step) PetscCall(VecAXPBY(x, f[0], f[1], k[0]));
    else {
      PetscCall(VecCopy(x, k[0]));
      PetscCall(VecAXPY(b, -f[0], v));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The cycle from level l down and back, from 0 */
static PetscErrorCode Cycle(PC pc, int l, Vec b, Vec x)
{
  const GPUAMGRanks *r = ((PC_GPUAMG *)pc->data)->ranks;
  PC_MG_Levels      *p = At(r, l), *q;

  PetscFunctionBegin;
  PetscCall(VecSet(x, 0.0));
  PetscCall(KSPSolve(p->smoothd, b, x));
  PetscCall(KSPCheckSolve(p->smoothd, pc, x));
  if (l + 1 == r->levels) PetscFunctionReturn(PETSC_SUCCESS);
  q = At(r, l + 1);
  PetscCall(MatResidual(r->level[l].A, b, x, p->r));
  PetscCall(MatRestrict(p->restrct, p->r, q->b));
  if (l + 2 < r->levels || r->continues) PetscCall(Krylov(pc, l + 1));
  else PetscCall(Cycle(pc, l + 1, q->b, q->x));
  PetscCall(MatInterpolateAdd(p->interpolate, q->x, x, x));
  PetscCall(KSPSolve(p->smoothu, b, x));
  PetscCall(KSPCheckSolve(p->smoothu, pc, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective */
PetscErrorCode PCGPUAMGKrylovApply_Private(PC pc, Vec b, Vec x)
{
  return Cycle(pc, 0, b, x);
}

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
  *method = a->cycles < GPUAMG_K ? GPUMG_KRYLOV_NONE : known && symmetric ? GPUMG_KRYLOV_CG : GPUMG_KRYLOV_GCR;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Needs the PC a flexible method? */
PetscErrorCode PCGPUAMGFlexible_Private(PC pc, PetscBool *flexible)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCGPUAMG, flexible));
  if (*flexible) *flexible = (PetscBool)(((PC_GPUAMG *)pc->data)->cycles == GPUAMG_K);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Level l of the PCMG, which counts from the coarsest */
static PC_MG_Levels *At(const GPUAMGRanks *r, int l)
{
  return ((PC_MG *)r->mg->data)->levels[r->levels - 1 - l];
}

/* Has the coarsest level of all ranks levels below, which each rank has? */
static PetscBool Continues(const GPUAMGRanks *r)
{
  PetscBool        amg;
  const PC_GPUAMG *c = (const PC_GPUAMG *)At(r, r->levels - 1)->smoothd->pc->data;

  if (PetscObjectTypeCompare((PetscObject)At(r, r->levels - 1)->smoothd->pc, PCGPUAMG, &amg) || !amg) return PETSC_FALSE;
  return (PetscBool)(c->ranks && c->ranks->one && ((const PC_GPUAMG *)c->ranks->one->data)->h.levels > 1);
}

/* Collective: vectors of the coarse levels */
PetscErrorCode PCGPUAMGKrylovSetUp_Private(PC pc)
{
  PC_GPUAMG   *a = (PC_GPUAMG *)pc->data;
  GPUAMGRanks *r = a->ranks;

  PetscFunctionBegin;
  for (int l = 1; l < r->levels && a->cycles == GPUAMG_K; l++)
    if (!r->level[l].krylov) PetscCall(VecDuplicateVecs(At(r, l)->x, 3, &r->level[l].krylov));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Cycle(PC, GPUMGKrylovMethod, int, Vec, Vec);

/* As on a device: the solution of level l in its x; b changes */
static PetscErrorCode Krylov(PC pc, GPUMGKrylovMethod method, int l)
{
  const GPUAMGRanks *r = ((PC_GPUAMG *)pc->data)->ranks;
  const Vec          x = At(r, l)->x, b = At(r, l)->b, *k = r->level[l].krylov;
  PetscScalar        dot[3];
  double             sum[GPUMG_KRYLOV_SUMS] = {0}, f[2];

  PetscFunctionBegin;
  for (int step = 0; step < 2; step++) {
    const Vec v = k[1 + step], with[] = {k[1], step ? v : b, b};

    PetscCall(Cycle(pc, method, l, b, x));
    PetscCall(MatMult(r->level[l].A, x, v));
    PetscCall(VecMDot(method == GPUMG_KRYLOV_GCR ? v : x, 2 + step, with, dot));
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
static PetscErrorCode Cycle(PC pc, GPUMGKrylovMethod method, int l, Vec b, Vec x)
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
  if (l + 2 < r->levels || Continues(r)) PetscCall(Krylov(pc, method, l + 1));
  else PetscCall(Cycle(pc, method, l + 1, q->b, q->x));
  PetscCall(MatInterpolateAdd(p->interpolate, q->x, x, x));
  PetscCall(KSPSolve(p->smoothu, b, x));
  PetscCall(KSPCheckSolve(p->smoothu, pc, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective */
PetscErrorCode PCGPUAMGKrylovApply_Private(PC pc, Vec b, Vec x)
{
  GPUMGKrylovMethod method;

  PetscFunctionBegin;
  PetscCall(PCGPUAMGKrylovMethod_Private((PC_GPUAMG *)pc->data, pc->pmat, &method));
  PetscCall(Cycle(pc, method, 0, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

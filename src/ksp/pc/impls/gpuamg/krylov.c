/*
  Krylov methods around cycles of PCGPUAMG (../mg/cycle.c), and inside K-cycles.
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
  PetscBool  flexible, floats = PETSC_FALSE, same, right;

  PetscFunctionBegin;
  (void)b;
  (void)x;
  /* floats serve if residual and solution take the same results of the preconditioner. A method without norms is a part of another method, which is not known here */
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp, &same, KSPCG, KSPGPUCG, KSPFCG, KSPFGMRES, KSPGCR, KSPFBCGS, ""));
  PetscCall(PetscObjectTypeCompare((PetscObject)ksp, KSPGPUBCGS, &right));
  floats = (PetscBool)(ksp->normtype != KSP_NORM_NONE && (same || (right && ksp->pc_side == PC_RIGHT)));
  PetscCall(PCGPUAMGFloats_Private(pc, floats));
  if (a->used.cycles < GPUAMG_K || a->warned) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp, &flexible, KSPGPUCG, KSPGPUFGMRES, KSPFCG, KSPPIPEFCG, KSPFGMRES, KSPPIPEFGMRES, KSPGCR, KSPPIPEGCR, KSPFBCGS, KSPRICHARDSON, KSPPREONLY, ""));
  a->warned = (PetscBool)!flexible;
  if (a->warned)
    PetscCall(PetscFPrintf(PetscObjectComm((PetscObject)pc), PETSC_STDERR, "PC type gpuamg warning: K-cycles are not linear, and KSP type %s may report convergence that the true residual does not have: take gpucg, gpufgmres, fcg, fgmres or gcr\n",
                           ((PetscObject)ksp)->type_name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

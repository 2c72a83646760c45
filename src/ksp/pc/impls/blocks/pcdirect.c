/*
  PCLU and PCCHOLESKY with a direct solver that checks its solutions: a refused solution is a failure of the preconditioner until the next solve or application. Each type is registered again under its own name,
  with another set-up, three other applications and a beginning of solves; the rest is PETSc's. PCREDUNDANT and PCCOMPOSITE hold such solvers, and get another set-up.
*/
#include "device.h"

/* After an application */
static PetscErrorCode Judge(PC pc)
{
  Mat            F;
  MatFactorError error;

  PetscFunctionBegin;
  PetscCall(PCFactorGetMatrix(pc, &F));
  PetscCall(MatFactorGetError(F, &error));
  if (!error) PetscCall(MatGPUCSRFactorRefused_Private(F, &error));
  PetscCall(PCSetFailedReason(pc, (PCFailedReason)error)); /* PETSc's own conversion: the numbers are the same */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCSetUp_Direct(PC pc)
{
  GPUCSRWrap *w;
  Mat         F;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapGet((PetscObject)pc, &w));
  if (pc->setupcalled) {
    PetscCall(PCFactorGetMatrix(pc, &F));
    PetscCall(MatGPUCSRFactorForgive_Private(F));
  } else {
    PetscBool     inplace, here, mine, several, cudss;
    MatSolverType type;
    PetscMPIInt   size;

    /* PETSc alone factors in place, and asks the solver type for an ordering before */
    PetscCall(PCFactorGetUseInPlace(pc, &inplace));
    PetscCall(PetscObjectTypeCompare((PetscObject)pc->pmat, MATSEQAIJGPUCSR, &here));
    PetscCall(PCFactorGetMatSolverType(pc, &type));
    PetscCall(PetscStrcmp(type, MATSOLVERGPUCSR, &mine));
    if (inplace && here && (!type || mine)) PetscCall(PCFactorSetMatSolverType(pc, MATSOLVERPETSC));
    /* PETSc's message for a type without such a factor names no way out */
    PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)pc), &size));
    PetscCall(PetscObjectTypeCompare((PetscObject)pc->pmat, MATMPIAIJGPUCSR, &several));
    PetscCall(PCFactorGetMatSolverType(pc, &type));
    PetscCall(PetscStrcmp(type, MATSOLVERCUDSS, &cudss));
    PetscCheck(!several || !cudss, PetscObjectComm((PetscObject)pc), PETSC_ERR_SUP, "Solver type %s factors the matrix of one process: -pc_type telescope -pc_telescope_reduction_factor %d -telescope_pc_type lu gathers it (PCTELESCOPE), or -pc_type redundant", MATSOLVERCUDSS, (int)size);
  }
  PetscCall((*w->petsc.pc.setup)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An application by PETSc, and its judgement */
#define APPLICATION(name, Operand, operation) \
  static PetscErrorCode name(PC pc, Operand x, Operand y) \
  { \
    GPUCSRWrap *w; \
\
    PetscFunctionBegin; \
    PetscCall(GPUCSRWrapGet((PetscObject)pc, &w)); \
    PetscCall((*w->petsc.pc.operation)(pc, x, y)); \
    PetscCall(Judge(pc)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
APPLICATION(PCApply_Direct, Vec, apply)
APPLICATION(PCApplyTranspose_Direct, Vec, applytranspose)
APPLICATION(PCMatApply_Direct, Mat, matapply)

#define WRAP(name, petsc)   GPUCSR_WRAP(PC, name, petsc, .ops.pc = {.setup = PCSetUp_Direct, .apply = PCApply_Direct, .applytranspose = PCApplyTranspose_Direct, .matapply = PCMatApply_Direct})
#define AROUND(name, petsc) GPUCSR_WRAP(PC, name, petsc, .ops.pc = {.setup = PCSetUp_WrapAnew})
WRAP(LU, PCLU)
WRAP(Cholesky, PCCHOLESKY)
AROUND(Redundant, PCREDUNDANT)
AROUND(Composite, PCCOMPOSITE)

GPUCSR_WRAP_REGISTER(PCDirectInitialize_Private, PCList, &wrap_LU, &wrap_Cholesky, &wrap_Redundant, &wrap_Composite)

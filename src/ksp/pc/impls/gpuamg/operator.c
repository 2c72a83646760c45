/*
  PCGPUAMGGetOperator(): the matrices of levels for the program.
*/
#include "gpuamgimpl.h"

/* The hierarchy keeps its arrays */
static PetscErrorCode OfDevice(Mat like, const GPUAMGLevel *L, Mat *A)
{
  GPUCSRStorage  csr = {0};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *A = NULL;
  PetscCall(GPUCSRStorageLend(&L->A, &csr));
  ierr = MatGPUCSROperatorFromCSR_Private(like, &csr, L->bs, L->bs, A);
  if (!ierr) ierr = MatConvert(*A, MATAIJ, MAT_INPLACE_MATRIX, A);
  if (ierr) PetscCall(MatDestroy(A));
  PetscFunctionReturn(ierr);
}

/* Collective */
static PetscErrorCode OfRanks(const GPUAMGRanksLevel *L, Mat *A)
{
  PetscInt     *i, *j;
  PetscScalar  *a;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  GPUCSRTry(&attempt, GPUCSRRanksRows(&L->A.m, &i, &j, &a));
  PetscCall(PCGPUAMGSettle_Private(L->A.m.comm, &attempt));
  PetscCall(MatCreateMPIAIJWithArrays(L->A.m.comm, L->n, L->n, L->N, L->N, i, j, a, A));
  PetscCall(MatSetBlockSize(*A, L->bs));
  PetscCall(PetscFree3(i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGPUAMGGetOperator_GPUAMG(PC pc, PetscInt level, Mat *A)
{
  const PC_GPUAMG *a = (const PC_GPUAMG *)pc->data;
  PetscInt         levels;

  PetscFunctionBegin;
  PetscCheck(a->taken, PetscObjectComm((PetscObject)pc), PETSC_ERR_ORDER, "PC type gpuamg has no levels before PCSetUp(), or because it has failed");
  levels = a->ranks ? a->ranks->levels : a->h.levels;
  PetscCheck(level >= 0 && level < levels, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_OUTOFRANGE, "Level %" PetscInt_FMT " of PC type gpuamg: must be from 0, the finest, to %" PetscInt_FMT, level, levels - 1);
  if (a->ranks && level) PetscCall(OfRanks(&a->ranks->level[level], A));
  else if (a->ranks) PetscCall(MatConvert(a->ranks->finest, MATAIJ, MAT_INITIAL_MATRIX, A));
  else if (!level) PetscCall(MatConvert(a->matrix.A, MATAIJ, MAT_INITIAL_MATRIX, A));
  else PetscCall(OfDevice(a->matrix.A, &a->h.level[level], A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  PCGPUAMGGetOperator - Makes a `MATAIJ` of the matrix of a level

  Collective

  Input Parameters:
+ pc    - the preconditioner, of type `PCGPUAMG` and set up
- level - number of the level, 0 for the finest

  Output Parameter:
. A - a copy of the level's matrix; the caller destroys it

  Level: advanced

  Notes:
  Rows and columns have the order of the level's vectors: the unknowns of an aggregate follow each other. A later set-up does not change the copy.

  With several ranks the coarsest level here is the first level that each rank holds completely. `-pc_view` lists the levels.

  A number without a level is an error. Its message has the number of levels.

.seealso: `PCGPUAMG`, `PCSetUp()`, `PCMGGetSmoother()`
@*/
PetscErrorCode PCGPUAMGGetOperator(PC pc, PetscInt level, Mat *A)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(pc, PC_CLASSID, 1);
  PetscValidLogicalCollectiveInt(pc, level, 2);
  PetscAssertPointerCompat(A, 3);
  PetscUseMethod(pc, "PCGPUAMGGetOperator_C", (PC, PetscInt, Mat *), (pc, level, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

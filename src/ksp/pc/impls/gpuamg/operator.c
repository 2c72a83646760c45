/*
  PCGPUAMGGetOperator(): the matrices of levels for the program.
*/
#include "gpuamgimpl.h"

static PetscErrorCode Rows(const GPUCSRStorage *A, PetscInt *i, PetscInt *j, PetscScalar *a)
{
  GPUCSRDevice dev = A->dev;
  double      *values;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1((size_t)A->nnz + 1, &values));
  PetscCall(GPUCSRDownload(dev, i, GPUCSR_PETSCINT, A->array[CSR_ROWPTR].data, GPUCSR_INT32, (size_t)A->m + 1, PETSC_FALSE, dev->stream));
  PetscCall(GPUCSRDownload(dev, j, GPUCSR_PETSCINT, A->array[CSR_COL].data, GPUCSR_INT32, (size_t)A->nnz, PETSC_FALSE, dev->stream));
  PetscCall(GPUCSRDownload(dev, values, GPUCSR_DOUBLE, A->array[CSR_VAL].data, GPUCSR_DOUBLE, (size_t)A->nnz, PETSC_FALSE, dev->stream));
  PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream));
  for (int64_t k = 0; k < A->nnz; k++) a[k] = (PetscScalar)values[k];
  PetscCall(PetscFree(values));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OfDevice(const GPUAMGLevel *L, Mat *A)
{
  PetscInt      *i, *j;
  PetscScalar   *a;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscMalloc3((size_t)L->n + 1, &i, (size_t)L->A.nnz + 1, &j, (size_t)L->A.nnz + 1, &a));
  ierr = Rows(&L->A, i, j, a);
  if (!ierr) {
    PetscCall(MatCreate(PETSC_COMM_SELF, A));
    PetscCall(MatSetSizes(*A, L->n, L->n, L->n, L->n));
    PetscCall(MatSetBlockSize(*A, L->bs));
    PetscCall(MatSetType(*A, MATSEQAIJ));
    PetscCall(MatSeqAIJSetPreallocationCSR(*A, i, j, a));
  }
  PetscCall(PetscFree3(i, j, a));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGPUAMGGetOperator_GPUAMG(PC pc, PetscInt level, Mat *A)
{
  const PC_GPUAMG *a = (const PC_GPUAMG *)pc->data;
  PetscInt         levels;

  PetscFunctionBegin;
  PetscCheck(a->taken, PetscObjectComm((PetscObject)pc), PETSC_ERR_ORDER, "PC type gpuamg has no levels before PCSetUp(), or because it has failed");
  levels = !a->ranks ? a->h.levels : a->ranks->one ? 1 : a->ranks->levels;
  PetscCheck(level >= 0 && level < levels, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_OUTOFRANGE, "Level %" PetscInt_FMT " of PC type gpuamg: must be from 0, the finest, to %" PetscInt_FMT, level, levels - 1);
  if (a->ranks) PetscCall(MatConvert(a->ranks->level[level].A, MATAIJ, MAT_INITIAL_MATRIX, A));
  else if (!level) PetscCall(MatConvert(a->matrix.A, MATAIJ, MAT_INITIAL_MATRIX, A));
  else PetscCall(OfDevice(&a->h.level[level], A));
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

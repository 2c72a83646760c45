/*
  The levels of a PCGPUAMG for other users than its cycle: a PCGAMG (../gamg), which has the levels alone, and PCGPUAMGGetOperator(). Their matrices have type gpucsrlevel or mpigpucsrlevel and share the PC.
*/
#include "gpuamgimpl.h"

/* Collective, and so are its errors: a PC of type gpuamg with levels of A and nothing else. The levels of several ranks end before the first level of fewer than `least` rows a rank. near: ns vectors by rows, which go
   to the PC; or NULL */
PetscErrorCode PCGPUAMGLevelsCreate_Private(Mat A, const GPUAMGOptions *o, PetscInt least, PetscInt ns, double *near, PC *pc)
{
  PC_GPUAMG *a;

  PetscFunctionBegin;
  PetscCall(PCCreate(PetscObjectComm((PetscObject)A), pc));
  PetscCall(PCSetType(*pc, PCGPUAMG));
  a                   = (PC_GPUAMG *)(*pc)->data;
  a->given            = near;
  a->ngiven           = ns;
  a->asked.o          = *o;
  a->asked.nthreshold = GPUAMG_LEVELS;
  a->asked.least      = (int)PetscMin(least, INT32_MAX);
  a->asked.gather     = 0;
  a->used             = a->asked;
  a->part = a->reuse = PETSC_TRUE;
  PetscCall(PCSetOperators(*pc, A, A));
  if (GPUCSRIsType(A, MATMPIAIJGPUCSR)) PetscCall(PCGPUAMGRanksLevels_Private(*pc));
  else PetscCall(PCGPUAMGOneLevels_Private(*pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PCGPUAMGLevels PCGPUAMGLevelsOf_Private(PC pc)
{
  const PC_GPUAMG   *a = (const PC_GPUAMG *)pc->data;
  const GPUAMGRanks *r = a->ranks;

  if (r) return (PCGPUAMGLevels){r->level[0].A.o.dev, r->levels, a->h.problem ? 0 : r->levels - 1 + (int)r->beyond};
  return (PCGPUAMGLevels){a->h.dev, a->h.levels, a->h.problem ? 0 : PetscMax(0, a->h.levels - 1)};
}

PCGPUAMGLevel PCGPUAMGLevelOf_Private(PC pc, int l)
{
  const PC_GPUAMG        *a = (const PC_GPUAMG *)pc->data;
  const GPUAMGLevel      *L = &a->h.level[l];
  const GPUAMGRanksLevel *R = a->ranks ? &a->ranks->level[l] : NULL;

  return R ? (PCGPUAMGLevel){R->n, R->ns, &R->basis, R->lambda} : (PCGPUAMGLevel){L->n, L->ns, &L->basis, L->lambda};
}

/* Collective: new values of the matrix with old prolongators. estimates: of eigenvalues, too. good: on the devices that the levels are on, and without a problem */
PetscErrorCode PCGPUAMGLevelsRefresh_Private(PC pc, PetscBool estimates, PetscBool *good)
{
  PC_GPUAMG     *a     = (PC_GPUAMG *)pc->data;
  int           *asked = a->ranks ? &a->used.o.steps : &a->h.o.steps;
  const int      steps = *asked;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  a->h.problem = 0;
  if (!estimates) *asked = 0;
  ierr   = a->ranks ? PCGPUAMGRanksRefresh_Private(pc, good) : PCGPUAMGOneRefresh_Private(pc, good);
  *asked = steps;
  PetscCall(ierr);
  *good = (PetscBool)(*good && !a->h.problem);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- their matrices ---- */

/* prolongator: from the next level */
PCGPUAMGMatrix PCGPUAMGMatrixOf_Private(PC_GPUAMG *a, int l, PetscBool prolongator)
{
  PCGPUAMGMatrix p = {.rows = NULL};

  if (a->ranks) {
    GPUAMGRanksLevel        *L = &a->ranks->level[l];
    const GPUAMGRanksMatrix *M = prolongator ? &L->P[a->used.o.nsmooths] : &L->A, *T = prolongator ? &L->R : &L->T;

    p.side[GPUCSR_FORWARD]    = M->o;
    p.side[GPUCSR_TRANSPOSE]  = T->o;
    p.ranks[GPUCSR_FORWARD]   = M->r;
    p.ranks[GPUCSR_TRANSPOSE] = T->r;
    p.rows                    = &M->m;
    p.bs                      = L->bs;
    p.cbs                     = prolongator ? L[1].bs : L->bs;
  } else {
    GPUAMGLevel *L = &a->h.level[l];

    p.side[GPUCSR_FORWARD] = (GPUCSROperator){.dev = a->h.dev, .plan = prolongator ? &L->planP : &L->own, .csr = prolongator ? &L->P[a->h.o.nsmooths] : &L->A};
    p.bs                   = L->bs;
    p.cbs                  = prolongator ? L[1].bs : L->bs;
    if (prolongator || L->T.format) p.side[GPUCSR_TRANSPOSE] = (GPUCSROperator){.dev = a->h.dev, .plan = prolongator ? &L->planR : &L->planT, .csr = prolongator ? &L->R : &L->T};
  }
  return p;
}

static PetscErrorCode Release(void *pc)
{
  return PetscObjectDereference((PetscObject)pc);
}

/* Collective: the matrix of level l, below the finest, or its prolongator */
PetscErrorCode PCGPUAMGLevelMat_Private(PC pc, int l, PetscBool prolongator, Mat *A)
{
  PC_GPUAMG           *a = (PC_GPUAMG *)pc->data;
  const PCGPUAMGMatrix p = PCGPUAMGMatrixOf_Private(a, l, prolongator);

  PetscFunctionBegin;
  PetscCall(PCGPUAMGStays_Private(pc));
  PetscCall(MatGPUCSRLevelCreate_Private(a->matrix.A, p.side, p.ranks, p.rows, p.bs, p.cbs, pc, Release, A));
  PetscCall(PetscObjectReference((PetscObject)pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is A such a matrix, on the device alone? */
PetscErrorCode PCGPUAMGLevelIs_Private(PC pc, int l, PetscBool prolongator, Mat A, PetscBool *is)
{
  const PCGPUAMGMatrix p = PCGPUAMGMatrixOf_Private((PC_GPUAMG *)pc->data, l, prolongator);
  GPUCSROperator       o;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRLevelGet_Private(A, PETSC_FALSE, &o, NULL));
  *is = (PetscBool)(o.csr && o.csr == p.side[GPUCSR_FORWARD].csr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGPUAMGGetOperator_GPUAMG(PC pc, PetscInt level, Mat *A)
{
  const PC_GPUAMG *a      = (const PC_GPUAMG *)pc->data;
  const PetscInt   levels = PCGPUAMGLevelsOf_Private(pc).levels;
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  PetscCheck(a->taken, PetscObjectComm((PetscObject)pc), PETSC_ERR_ORDER, "PC type gpuamg has no levels before PCSetUp(), or because it has failed");
  PetscCheck(level >= 0 && level < levels, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_OUTOFRANGE, "Level %" PetscInt_FMT " of PC type gpuamg: must be from 0, the finest, to %" PetscInt_FMT, level, levels - 1);
  if (!level) PetscFunctionReturn(MatConvert(a->matrix.A, MATAIJ, MAT_INITIAL_MATRIX, A));
  PetscCall(PCGPUAMGLevelMat_Private(pc, (int)level, PETSC_FALSE, A));
  ierr = MatConvert(*A, MATAIJ, MAT_INPLACE_MATRIX, A);
  if (ierr) PetscCall(MatDestroy(A));
  PetscFunctionReturn(ierr);
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

/*
  Levels of a PCGAMG of one rank that stay on the device alone. Their matrices have type gpucsrlevel and share the hierarchy. New values with old prolongators are the hierarchy's numeric phases.
*/
#include "../petscprivate.h"
#include "../../../../sys/gpucsrsys.h"
#include "gamg.h"

/* The device goes: so do the levels that only it has */
static PetscErrorCode Forget(void *shared)
{
  PetscFunctionBegin;
  PetscCall(GPUAMGDestroy(&((PCGAMGHierarchy *)shared)->h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRLivingList living = {GPUCSR_FINAL_PC, Forget, NULL};

PetscErrorCode PCGAMGHierarchyCreate_Private(PCGAMGData *d)
{
  PetscFunctionBegin;
  PetscCall(PetscNew(&d->shared));
  d->shared->references = 1;
  PetscCall(GPUCSRLivingAdd(&living, &d->shared->living, d->shared));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Release(void *shared)
{
  PCGAMGHierarchy *s = (PCGAMGHierarchy *)shared;

  PetscFunctionBegin;
  if (!s || --s->references) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUAMGDestroy(&s->h));
  PetscCall(GPUCSRLivingRemove(&s->living));
  PetscCall(PetscFree(s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGAMGHierarchyRelease_Private(PCGAMGData *d)
{
  PetscFunctionBegin;
  PetscCall(Release(d->shared));
  d->shared = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do levels stay on the device alone? PETSc reads entries on the host for other smoothers than Jacobi, and for options of prolongators */
PetscErrorCode PCGAMGKept_Private(PC pc, PetscBool *kept)
{
  char *all;

  PetscFunctionBegin;
  *kept = PETSC_TRUE;
  PetscCall(PetscOptionsGetAll(((PetscObject)pc)->options, &all));
  for (const char *at = strstr(all, "mg_levels_"); at && *kept; at = strstr(at + 1, "mg_levels_")) {
    const char *type = strstr(at, "pc_type "), *end = strchr(at, ' ');

    if (type && end && type < end) *kept = (PetscBool)!strncmp(end + 1, PCJACOBI, strlen(PCJACOBI));
  }
  if (strstr(all, "pc_gamg_prolongator_")) *kept = PETSC_FALSE;
  PetscCall(PetscFree(all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- matrices ---- */

/* A matrix of type gpucsrlevel with the entries of csr. T: its transpose, or NULL */
static PetscErrorCode Keep(PC pc, PCGAMGData *d, GPUCSRPlan *plan, const GPUCSRStorage *csr, GPUCSRPlan *planT, const GPUCSRStorage *T, PetscInt rbs, PetscInt cbs, Mat *A)
{
  const GPUCSROperator side[2] = {
    {.dev = csr->dev,            .plan = plan,  .csr = csr},
    {.dev = T ? csr->dev : NULL, .plan = planT, .csr = T  }
  };

  PetscFunctionBegin;
  PetscCall(MatGPUCSRLevelCreate_Private(pc->pmat, side, rbs, cbs, d->shared, Release, A));
  d->shared->references++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From level l + 1 to level l; level 0 is the finest */
PetscErrorCode PCGAMGKeepP_Private(PC pc, PCGAMGData *d, int l, Mat *P)
{
  GPUAMG      *h = &d->shared->h;
  GPUAMGLevel *L = &h->level[l];

  PetscFunctionBegin;
  d->shared->A       = pc->pmat;
  d->shared->pattern = pc->pmat->nonzerostate;
  PetscCall(Keep(pc, d, &L->planP, &L->P[h->o.nsmooths], &L->planR, &L->R, L->bs, h->level[l + 1].bs, P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc factors the coarsest matrix: its entries are on the host, too */
PetscErrorCode PCGAMGKeepA_Private(PC pc, PCGAMGData *d, int l, Mat *A)
{
  GPUAMGLevel *L = &d->shared->h.level[l];

  PetscFunctionBegin;
  PetscCall(Keep(pc, d, &L->own, &L->A, NULL, NULL, L->bs, L->bs, A));
  if (l + 1 == d->shared->h.levels) PetscCall(MatGPUCSRLevelBecome_Private(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- new values ---- */

static PetscErrorCode Is(Mat A, const GPUCSRStorage *csr, PetscBool *same)
{
  GPUCSROperator o;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRLevelGet_Private(A, PETSC_FALSE, &o));
  *same = (PetscBool)(*same && o.csr == csr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Level l of the hierarchy in PETSc's order */
static PC_MG_Levels *LevelOf(PC pc, int l)
{
  const PC_MG *mg = (const PC_MG *)pc->data;

  return mg->levels[mg->nlevels - 1 - l];
}

/* Does PETSc have the matrices of the hierarchy, does it keep prolongators, and has only their finest matrix new values? */
static PetscErrorCode Unchanged(PC pc, const PCGAMGData *d, PetscBool *same)
{
  const PC_MG   *mg = (const PC_MG *)pc->data;
  const PC_GAMG *g  = (const PC_GAMG *)mg->innerctx;
  const GPUAMG  *h;
  PetscBool      seq;
  Mat            A;

  PetscFunctionBegin;
  *same = (PetscBool)(d->kept && d->shared && d->shared->h.dev && pc->setupcalled && g->reuse_prol && pc->flag != DIFFERENT_NONZERO_PATTERN);
  if (!*same) PetscFunctionReturn(PETSC_SUCCESS);
  h = &d->shared->h;
  PetscCall(PetscObjectTypeCompare((PetscObject)pc->pmat, MATSEQAIJGPUCSR, &seq));
  *same = (PetscBool)(seq && d->shared->A == pc->pmat && d->shared->pattern == pc->pmat->nonzerostate && mg->nlevels == h->levels);
  for (int l = 0; l < h->levels && *same; l++) {
    if (l + 1 < h->levels) PetscCall(Is(LevelOf(pc, l)->interpolate, &h->level[l].P[h->o.nsmooths], same));
    PetscCall(KSPGetOperators(LevelOf(pc, l)->smoothd, NULL, &A));
    if (l && l + 1 < h->levels) PetscCall(Is(A, &h->level[l].A, same));
    else PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJGPUCSR, &seq));
    *same = (PetscBool)(*same && seq);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does PETSc estimate eigenvalues of new values? Not before it had the function. The option is the only way that tells its answer */
static PetscErrorCode Estimates(PC pc, PetscBool *yes)
{
  PetscErrorCode (*set)(PC, PetscBool) = NULL;

  PetscFunctionBegin;
  PetscCall(PetscObjectQueryFunction((PetscObject)pc, "PCGAMGSetRecomputeEstEig_C", &set));
  *yes = (PetscBool)(set != NULL);
  PetscCall(PetscOptionsGetBool(((PetscObject)pc)->options, ((PetscObject)pc)->prefix, "-pc_gamg_recompute_esteig", yes, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The hierarchy of the new values. good false (a zero on the diagonal, no numbers, other eigenvalues): PETSc makes new products of old prolongators */
static PetscErrorCode Numeric(PC pc, PCGAMGData *d, PetscBool *good)
{
  const PC_MG         *mg       = (const PC_MG *)pc->data;
  GPUAMG              *h        = &d->shared->h;
  const int            steps    = h->o.steps;
  char                 why[256] = "";
  const GPUCSRStorage *csr;
  GPUCSROperator       o;
  GPUCSRBool           stale = 1;
  PetscBool            estimates;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(Estimates(pc, &estimates));
  PetscCall(MatGPUCSROperatorSend_Private(pc->pmat));
  PetscCall(MatGPUCSROperatorGet_Private(pc->pmat, PETSC_FALSE, &o, why, sizeof(why)));
  *good = (PetscBool)(o.dev == h->dev);
  if (!*good) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSROperatorBegin_Private(&o));
  PetscCall(MatGPUCSROperatorCSR_Private(&o, NULL, &csr));
  if (!estimates) h->o.steps = 0;
  ierr       = GPUAMGRefresh(h, csr, o.plan, 1, &stale);
  h->o.steps = steps;
  PetscCall(ierr);
  *good = (PetscBool)(!stale && !h->problem);
  /* Chebyshev's bounds stay: they allow for eigenvalues a tenth larger */
  for (int l = 0; l + 1 < h->levels && estimates; l++)
    if (mg->max_eigen_DinvA[l] > 0) *good = (PetscBool)(*good && h->level[l].lambda < 1.05 * (double)mg->max_eigen_DinvA[l] && h->level[l].lambda > 0.8 * (double)mg->max_eigen_DinvA[l]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Tells PETSc of the new values */
static PetscErrorCode Renew(PC pc, const GPUAMG *h)
{
  PetscScalar *a;
  Mat          A, P;

  PetscFunctionBegin;
  for (int l = 0; l < h->levels; l++) {
    const GPUCSRStorage *csr = &h->level[l].A;

    PetscCall(KSPGetOperators(LevelOf(pc, l)->smoothd, &A, &P));
    if (l + 1 == h->levels) {
      PetscCall(MatSeqAIJGetArrayWrite(P, &a));
      PetscCall(GPUCSRDownload(h->dev, a, GPUCSR_DOUBLE, csr->array[CSR_VAL].data, GPUCSR_DOUBLE, (size_t)csr->nnz, PETSC_FALSE, h->dev->stream));
      PetscCall(h->dev->ops->streamsynchronize(h->dev->id, h->dev->stream));
      PetscCall(MatSeqAIJRestoreArrayWrite(P, &a));
    } else if (l) PetscCall(PetscObjectStateIncrease((PetscObject)P));
    if (l) PetscCall(MatPropagateSymmetryOptions(pc->pmat, P));
    PetscCall(KSPSetOperators(LevelOf(pc, l)->smoothd, A, P));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Levels come to the host before PETSc's products of old prolongators, inside which an error would leave memory allocated */
static PetscErrorCode Become(PC pc)
{
  const PC_MG *mg = (const PC_MG *)pc->data;
  Mat          A;

  PetscFunctionBegin;
  for (int l = 0; l + 1 < mg->nlevels; l++) {
    PetscCall(MatGPUCSRLevelBecome_Private(LevelOf(pc, l)->interpolate));
    PetscCall(KSPGetOperators(LevelOf(pc, l + 1)->smoothd, NULL, &A));
    PetscCall(MatGPUCSRLevelBecome_Private(A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before PETSc's set-up. done: levels have new values. After an error PETSc's set-up makes a new hierarchy */
PetscErrorCode PCGAMGRefresh_Private(PC pc, PetscBool *done)
{
  PCGAMGData   *d;
  GPUCSRAttempt attempt = {0};

  PetscFunctionBegin;
  PetscCall(PCGAMGDataOf_Private(pc, &d));
  PetscCall(Unchanged(pc, d, done));
  if (*done) GPUCSRTry(&attempt, Numeric(pc, d, done));
  if (!attempt.error && *done) GPUCSRTry(&attempt, Renew(pc, &d->shared->h));
  if (!attempt.error && !*done && d->shared && pc->setupcalled && ((PC_GAMG *)((PC_MG *)pc->data)->innerctx)->reuse_prol && pc->flag != DIFFERENT_NONZERO_PATTERN) GPUCSRTry(&attempt, Become(pc));
  if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(!MatGPUCSROperatorRequired_Private(pc->pmat) && (attempt.error == PETSC_ERR_MEM || attempt.error == PETSC_ERR_GPU || attempt.error == PETSC_ERR_SUP), PetscObjectComm((PetscObject)pc), attempt.error, "%s", attempt.message);
  *done    = PETSC_FALSE;
  pc->flag = DIFFERENT_NONZERO_PATTERN;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Levels of a PCGAMG that stay on the devices alone. Their matrices have type gpucsrlevel or mpigpucsrlevel and share the hierarchy. New values with old prolongators are the hierarchy's numeric phases.
*/
#include "../gpuamg/gpuamgimpl.h"
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
  PetscCall(PCDestroy(&s->of));
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

/* NULL: of one rank, or its device has gone */
static GPUAMGRanks *RanksOf(const PCGAMGHierarchy *s)
{
  return s->of ? ((PC_GPUAMG *)s->of->data)->ranks : NULL;
}

GPUCSRDevice PCGAMGHierarchyDevice_Private(const PCGAMGHierarchy *s)
{
  const GPUAMGRanks *r = RanksOf(s);

  return r ? r->level[0].A.o.dev : s->h.dev;
}

int PCGAMGHierarchyLevels_Private(const PCGAMGHierarchy *s)
{
  const GPUAMGRanks *r = RanksOf(s);

  return r ? r->levels : s->h.levels;
}

PCGAMGLevel PCGAMGHierarchyLevel_Private(const PCGAMGHierarchy *s, int l)
{
  const GPUAMGRanks *r = RanksOf(s);

  if (r) return (PCGAMGLevel){r->level[l].n, r->level[l].ns, &r->level[l].basis, r->level[l].lambda};
  return (PCGAMGLevel){s->h.level[l].n, s->h.level[l].ns, &s->h.level[l].basis, s->h.level[l].lambda};
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

static PetscErrorCode Keep(PC pc, PCGAMGData *d, const GPUCSROperator side[2], const GPUCSRRanks ranks[2], const GPUCSRRanksCSR *rows, PetscInt rbs, PetscInt cbs, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRLevelCreate_Private(pc->pmat, side, ranks, rows, rbs, cbs, d->shared, Release, A));
  d->shared->references++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix with the entries of csr. T: its transpose, or NULL */
static PetscErrorCode KeepOne(PC pc, PCGAMGData *d, GPUCSRPlan *plan, const GPUCSRStorage *csr, GPUCSRPlan *planT, const GPUCSRStorage *T, PetscInt rbs, PetscInt cbs, Mat *A)
{
  const GPUCSROperator side[2] = {
    {.dev = csr->dev,            .plan = plan,  .csr = csr},
    {.dev = T ? csr->dev : NULL, .plan = planT, .csr = T  }
  };

  return Keep(pc, d, side, NULL, NULL, rbs, cbs, A);
}

static PetscErrorCode KeepAll(PC pc, PCGAMGData *d, const GPUAMGRanksMatrix *M, const GPUAMGRanksMatrix *T, PetscInt rbs, PetscInt cbs, Mat *A)
{
  const GPUAMGRanksMatrix none = {.exchanges = PETSC_FALSE}, *const t = T ? T : &none;

  return Keep(pc, d, (GPUCSROperator[2]){M->o, t->o}, (GPUCSRRanks[2]){M->r, t->r}, &M->m, rbs, cbs, A);
}

/* From level l + 1 to level l; level 0 is the finest */
PetscErrorCode PCGAMGKeepP_Private(PC pc, PCGAMGData *d, int l, Mat *P)
{
  GPUAMGRanks *r = RanksOf(d->shared);
  GPUAMG      *h = &d->shared->h;
  GPUAMGLevel *L = &h->level[l];

  PetscFunctionBegin;
  d->shared->A       = pc->pmat;
  d->shared->pattern = pc->pmat->nonzerostate;
  if (r) PetscCall(KeepAll(pc, d, &r->level[l].P[d->nsmooths], &r->level[l].R, r->level[l].bs, r->level[l + 1].bs, P));
  else PetscCall(KeepOne(pc, d, &L->planP, &L->P[h->o.nsmooths], &L->planR, &L->R, L->bs, h->level[l + 1].bs, P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The coarsest matrix is PETSc's, to factor or to make coarser: its entries are on the host, too */
PetscErrorCode PCGAMGKeepA_Private(PC pc, PCGAMGData *d, int l, Mat *A)
{
  GPUAMGRanks *r = RanksOf(d->shared);
  GPUAMGLevel *L = &d->shared->h.level[l];

  PetscFunctionBegin;
  if (r) PetscCall(KeepAll(pc, d, &r->level[l].A, NULL, r->level[l].bs, r->level[l].bs, A));
  else PetscCall(KeepOne(pc, d, &L->own, &L->A, NULL, NULL, L->bs, L->bs, A));
  if (l + 1 == PCGAMGHierarchyLevels_Private(d->shared)) PetscCall(MatGPUCSRLevelBecome_Private(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- new values ---- */

static PetscErrorCode Is(Mat A, const GPUCSRStorage *csr, PetscBool *same)
{
  GPUCSROperator o;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRLevelGet_Private(A, PETSC_FALSE, &o, NULL));
  *same = (PetscBool)(*same && o.csr == csr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Level l of the hierarchy in PETSc's order */
static PC_MG_Levels *LevelOf(PC pc, int l)
{
  const PC_MG *mg = (const PC_MG *)pc->data;

  return mg->levels[mg->nlevels - 1 - l];
}

/* Collective: does PETSc have the matrices of the hierarchy, does it keep prolongators, and has only their finest matrix new values? */
static PetscErrorCode Unchanged(PC pc, const PCGAMGData *d, PetscBool *same)
{
  const PC_MG           *mg = (const PC_MG *)pc->data;
  const PC_GAMG         *g  = (const PC_GAMG *)mg->innerctx;
  const PCGAMGHierarchy *s  = d->shared;
  const GPUAMGRanks     *r;
  int                    levels, all;
  PetscBool              host;
  Mat                    A;

  PetscFunctionBegin;
  *same = (PetscBool)(d->kept && s && PCGAMGHierarchyDevice_Private(s) && pc->setupcalled && g->reuse_prol && pc->flag != DIFFERENT_NONZERO_PATTERN);
  if (!*same) PetscFunctionReturn(PETSC_SUCCESS);
  r      = RanksOf(s);
  levels = PCGAMGHierarchyLevels_Private(s);
  *same  = (PetscBool)(s->A == pc->pmat && s->pattern == pc->pmat->nonzerostate && (r ? mg->nlevels >= levels : mg->nlevels == levels));
  for (int l = 0; l < levels && *same; l++) {
    if (l + 1 < levels) PetscCall(Is(LevelOf(pc, l)->interpolate, r ? r->level[l].P[((const PC_GPUAMG *)s->of->data)->used.o.nsmooths].m.block[0] : &s->h.level[l].P[s->h.o.nsmooths], same));
    PetscCall(KSPGetOperators(LevelOf(pc, l)->smoothd, NULL, &A));
    PetscCall(PetscObjectTypeCompare((PetscObject)A, r ? MATMPIAIJGPUCSR : MATSEQAIJGPUCSR, &host));
    if (l && l + 1 < levels) PetscCall(Is(A, r ? r->level[l].A.m.block[0] : &s->h.level[l].A, same));
    else *same = (PetscBool)(*same && host);
  }
  if (!r) PetscFunctionReturn(PETSC_SUCCESS);
  all = *same;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)pc)));
  *same = (PetscBool)all;
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

/* Of one rank */
static PetscErrorCode NumericOne(PC pc, GPUAMG *h, PetscBool estimates, PetscBool *good)
{
  const int            steps    = h->o.steps;
  char                 why[256] = "";
  const GPUCSRStorage *csr;
  GPUCSROperator       o;
  GPUCSRBool           stale = 1;
  PetscErrorCode       ierr;

  PetscFunctionBegin;
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
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do Chebyshev's bounds stay for the new eigenvalue? Bounds allow for an eigenvalue that is a tenth larger. old 0: PETSc makes new bounds */
static PetscBool Bounded(double lambda, double old)
{
  return (PetscBool)(!(old > 0) || (lambda < 1.05 * old && lambda > 0.8 * old));
}

/* The hierarchy of the new values. good false (a zero on the diagonal, no numbers, other eigenvalues): PETSc makes new products of old prolongators */
static PetscErrorCode Numeric(PC pc, PCGAMGData *d, PetscBool *good)
{
  const PC_MG     *mg = (const PC_MG *)pc->data;
  PCGAMGHierarchy *s  = d->shared;
  PetscBool        estimates;

  PetscFunctionBegin;
  PetscCall(Estimates(pc, &estimates));
  if (s->of) PetscCall(PCGPUAMGRanksRefresh_Private(s->of, estimates, good));
  else PetscCall(NumericOne(pc, &s->h, estimates, good));
  for (int l = 0; l + 1 < PCGAMGHierarchyLevels_Private(s) && estimates; l++) *good = (PetscBool)(*good && Bounded(PCGAMGHierarchyLevel_Private(s, l).lambda, (double)mg->max_eigen_DinvA[l]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Tells PETSc of the new values */
static PetscErrorCode Renew(PC pc, PCGAMGHierarchy *s)
{
  const int     levels = PCGAMGHierarchyLevels_Private(s);
  const GPUAMG *h      = &s->h;
  PetscScalar  *a;
  Mat           A, P;

  PetscFunctionBegin;
  for (int l = 0; l < levels; l++) {
    const GPUCSRStorage *csr = &h->level[l].A;

    PetscCall(KSPGetOperators(LevelOf(pc, l)->smoothd, &A, &P));
    if (l + 1 < levels) {
      if (l) PetscCall(PetscObjectStateIncrease((PetscObject)P));
    } else if (!s->of) {
      PetscCall(MatSeqAIJGetArrayWrite(P, &a));
      PetscCall(GPUCSRDownload(h->dev, a, GPUCSR_DOUBLE, csr->array[CSR_VAL].data, GPUCSR_DOUBLE, (size_t)csr->nnz, PETSC_FALSE, h->dev->stream));
      PetscCall(h->dev->ops->streamsynchronize(h->dev->id, h->dev->stream));
      PetscCall(MatSeqAIJRestoreArrayWrite(P, &a));
    }
    if (l) PetscCall(MatPropagateSymmetryOptions(pc->pmat, P));
    PetscCall(KSPSetOperators(LevelOf(pc, l)->smoothd, A, P));
  }
  if (s->of) PetscCall(PCGAMGRanksRenew_Private(pc, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The largest eigenvalue of a level that PETSc has made, by the method of its set-up */
static PetscErrorCode Largest(PC pc, Mat A, PetscReal *lambda)
{
  PetscBool known, spd;
  PetscReal least;
  Vec       b, x;
  KSP       ksp;
  PC        jacobi;

  PetscFunctionBegin;
  PetscCall(MatIsSPDKnown(pc->pmat, &known, &spd));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSetRandom(b, NULL));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), &ksp));
  PetscCall(KSPSetType(ksp, known && spd ? KSPCG : KSPGMRES));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &jacobi));
  PetscCall(PCSetType(jacobi, PCJACOBI));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_NONE));
  PetscCall(KSPSetTolerances(ksp, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, 10));
  PetscCall(KSPSetComputeSingularValues(ksp, PETSC_TRUE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPComputeExtremeSingularValues(ksp, lambda, &least));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do Chebyshev's bounds of levels below the devices' stay for the new values? */
static PetscErrorCode Below(PC pc, PetscBool *good)
{
  const PC_MG *mg = (const PC_MG *)pc->data;
  PCGAMGData  *d;
  PetscBool    estimates;
  PetscReal    lambda;
  Mat          A;

  PetscFunctionBegin;
  PetscCall(PCGAMGDataOf_Private(pc, &d));
  PetscCall(Estimates(pc, &estimates));
  for (int l = PCGAMGHierarchyLevels_Private(d->shared) - 1; l + 1 < mg->nlevels && estimates && *good; l++) {
    if (!(mg->max_eigen_DinvA[l] > 0)) continue;
    PetscCall(KSPGetOperators(LevelOf(pc, l)->smoothd, NULL, &A));
    PetscCall(Largest(pc, A, &lambda));
    *good = Bounded((double)lambda, (double)mg->max_eigen_DinvA[l]);
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
  if (!attempt.error && *done) GPUCSRTry(&attempt, Renew(pc, d->shared));
  if (!attempt.error && *done) GPUCSRTry(&attempt, Below(pc, done));
  if (!attempt.error && !*done && d->shared && pc->setupcalled && ((PC_GAMG *)((PC_MG *)pc->data)->innerctx)->reuse_prol && pc->flag != DIFFERENT_NONZERO_PATTERN) {
    GPUCSRTry(&attempt, Become(pc));
    d->kept = PETSC_FALSE; /* the hierarchy goes after PETSc's set-up */
  }
  if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(!MatGPUCSROperatorRequired_Private(pc->pmat) && (attempt.error == PETSC_ERR_MEM || attempt.error == PETSC_ERR_GPU || attempt.error == PETSC_ERR_SUP), PetscObjectComm((PetscObject)pc), attempt.error, "%s", attempt.message);
  *done    = PETSC_FALSE;
  pc->flag = DIFFERENT_NONZERO_PATTERN;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  PCGPUAMG: smoothed aggregation on the device. The hierarchy (blackbox/amg) is made from the matrix on its device and stays on the device. The device's cycles of PCMG (../mg/cycle.c) apply it.
*/
#include "gpuamgimpl.h"

/* ---- the cycle ---- */

/* Frees the cycle's own memory; the hierarchy owns its levels */
static PetscErrorCode CycleDestroy(GPUMGCycle *c)
{
  PetscFunctionBegin;
  for (int l = 0; l < GPUMG_LEVELS; l++) c->level[l].down.M = (GPUCSRBuffer){NULL, 0};
  c->inverse = (GPUCSRBuffer){NULL, 0};
  PetscCall(GPUMGCycleDestroy(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- set-up ---- */

PetscErrorCode PCGPUAMGForget_Private(void *data)
{
  PC_GPUAMG   *a   = (PC_GPUAMG *)data;
  GPUCSRDevice dev = a->cycle.dev ? a->cycle.dev : a->h.dev;

  PetscFunctionBegin;
  if (a->event && dev && !dev->failed[0]) PetscCall(dev->ops->eventdestroy(dev->id, a->event));
  a->event = NULL;
  PetscCall(CycleDestroy(&a->cycle));
  PetscCall(CycleDestroy(&a->transposed));
  for (int l = 0; l < GPUAMG_LEVELS; l++) PetscCall(GPUCSRFactorDestroy(&a->factor[l]));
  PetscCall(GPUAMGDestroy(&a->h));
  PetscCall(PCGPUAMGRanksDestroy_Private(&a->ranks));
  PetscCall(MatDestroy(&a->matrix.A));
  a->taken = a->takent = a->rounded = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRLivingList living = {GPUCSR_FINAL_PC, PCGPUAMGForget_Private, NULL}; /* whose devices go next */

/* The options for a new hierarchy from a coarser level on */
void PCGPUAMGOptionsAt_Private(const PC_GPUAMG *a, int level, GPUAMGOptions *o)
{
  GPUAMGOptions all = a->used.o;

  for (PetscInt l = a->used.nthreshold; l < GPUAMG_LEVELS; l++) all.threshold[l] = all.threshold[l - 1] * (double)a->used.scale;
  *o = all;
  for (int l = 0; l < GPUAMG_LEVELS; l++) o->threshold[l] = all.threshold[PetscMin(l + level, GPUAMG_LEVELS - 1)];
  o->level  = all.level + level;
  o->levels = PetscMax(1, all.levels - level);
}

/* Is the matrix of the last set-up still one of type gpucsr? */
PetscErrorCode PCGPUAMGStays_Private(PC pc)
{
  const Mat A = ((PC_GPUAMG *)pc->data)->matrix.A;

  PetscFunctionBegin;
  PetscCheck(GPUCSRIsType(A, MATSEQAIJGPUCSR) || GPUCSRIsType(A, MATMPIAIJGPUCSR), PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_WRONGSTATE, "The matrix of PC type gpuamg has become one of type %s since the set-up", ((PetscObject)A)->type_name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGPUAMGOnDevice_Private(const GPUCSROperator *o, const char why[])
{
  PetscFunctionBegin;
  PetscCheck(o->dev, PETSC_COMM_SELF, PETSC_ERR_SUP, "PC type gpuamg needs its matrix on a device, but %s: take -pc_type gamg (PCGAMG)", why);
  PetscCheck(GPUCSRVectorType(o->plan->A.precision) == GPUCSR_DOUBLE, PETSC_COMM_SELF, PETSC_ERR_SUP, "PC type gpuamg needs a matrix whose vectors are double, not of -mat_gpucsr_precision single");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Takes the options. same: options, blocks and the near null space have not changed since the last set-up, and aggregates do not depend on values */
static PetscErrorCode Asked(PC pc, PetscBool *same)
{
  PC_GPUAMG       *a = (PC_GPUAMG *)pc->data;
  GPUAMGOptions    o;
  MatNullSpace     near;
  PetscObjectId    id     = 0;
  PetscObjectState state  = 0;
  PetscBool        strong = PETSC_FALSE;
  PetscInt         bs;

  PetscFunctionBegin;
  PetscCall(MatGetBlockSize(pc->pmat, &bs));
  PetscCall(MatGetNearNullSpace(pc->pmat, &near));
  if (near) { /* the state grows with each change of the space or of one of its vectors */
    PetscObjectState each;
    PetscBool        constant;
    PetscInt         n;
    const Vec       *v;

    PetscCall(PetscObjectGetId((PetscObject)near, &id));
    PetscCall(MatNullSpaceGetVecs(near, &constant, &n, &v));
    PetscCall(PetscObjectStateGet((PetscObject)near, &state));
    for (PetscInt k = 0; k < n; k++) {
      PetscCall(PetscObjectStateGet((PetscObject)v[k], &each));
      state += each;
    }
  }
  *same   = (PetscBool)(!a->moved && !memcmp(&a->asked, &a->used, sizeof(a->used)) && a->near == id && a->nearstate == state && a->bs == bs);
  a->used = a->asked;
  PCGPUAMGOptionsAt_Private(a, 0, &o);
  for (int l = 0; l < GPUAMG_LEVELS; l++) strong = (PetscBool)(strong || o.threshold[l] >= 0);
  *same        = (PetscBool)(*same && (a->reuse || !strong));
  a->bs        = bs;
  a->near      = id;
  a->nearstate = state;
  a->moved     = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The hierarchy of o: refreshed if pattern and options are unchanged, else made anew */
static PetscErrorCode Hierarchy(PC pc, const GPUCSROperator *o, PetscBool same)
{
  PC_GPUAMG           *a = (PC_GPUAMG *)pc->data;
  const GPUCSRStorage *csr;
  GPUCSRBool           stale = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(MatGPUCSROperatorBegin_Private(o));
  PetscCall(MatGPUCSROperatorCSR_Private(o, NULL, &csr));
  if (same && a->taken && !a->h.problem && a->matrix.A == o->A && a->h.dev == o->dev && a->pattern == o->version.pattern) PetscCall(GPUAMGRefresh(&a->h, csr, o->plan, (GPUCSRBool)a->reuse, &stale));
  if (stale) {
    GPUAMGOptions  options;
    PetscInt       bs, ns;
    GPUCSRBuffer   basis = {NULL, 0};
    PetscErrorCode ierr;

    PetscCall(PCGPUAMGForget_Private(a));
    PCGPUAMGOptionsAt_Private(a, 0, &options);
    ierr = PCGPUAMGNear_Private(pc, o->dev, &bs, &ns, &basis);
    if (!ierr) ierr = GPUAMGSetUp(&a->h, &options, csr, o->plan, (int)bs, (int)ns, (const double *)basis.p);
    PetscCall(GPUCSRBufferFree(o->dev, &basis));
    PetscCall(ierr);
  }
  a->pattern = o->version.pattern;
  if (stale) a->built++;
  else a->refreshed++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *KernelOf(const GPUCSRDevice dev, const GPUCSRPlan *P)
{
  return dev->ops->kernels && P->choice.kernel ? P->choice.kernel->name : P->A.format->name;
}

/* The finest matrix of the cycle, as it is now. The program may destroy, replace or convert it before the next set-up */
static PetscErrorCode Take(PC_GPUAMG *a, const GPUCSROperator *o)
{
  PetscFunctionBegin;
  PetscCall(PetscObjectReference((PetscObject)o->A));
  PetscCall(MatDestroy(&a->matrix.A));
  a->matrix          = *o;
  a->data            = o->plan->A.array[0].data;
  a->kernel          = KernelOf(o->dev, o->plan);
  a->h.level[0].plan = o->plan;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Send(Mat A, GPUCSROperator *o, char why[], size_t len)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSROperatorSend_Private(A));
  PetscCall(MatGPUCSROperatorGet_Private(A, PETSC_FALSE, o, why, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix as it is now on its device */
static PetscErrorCode Finest(PC pc, GPUCSROperator *o)
{
  PC_GPUAMG *a        = (PC_GPUAMG *)pc->data;
  char       why[256] = "";

  PetscFunctionBegin;
  GPUAMGPhase(&a->h, GPUAMG_SEND, Send(pc->pmat, o, why, sizeof(why)));
  PetscCall(PCGPUAMGOnDevice_Private(o, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OneSetUp(PC pc, PetscBool same)
{
  PC_GPUAMG     *a = (PC_GPUAMG *)pc->data;
  GPUCSROperator o;

  PetscFunctionBegin;
  if (a->matrix.A != pc->pmat) PetscCall(PCGPUAMGForget_Private(a)); /* before a new matrix needs memory */
  if (!pc->pmat->rmap->n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Finest(pc, &o));
  PetscCall(Hierarchy(pc, &o, same));
  a->takent = PETSC_FALSE;
  if (!a->h.problem) GPUAMGPhase(&a->h, GPUAMG_BUILD, PCGPUAMGFactors_Private(a));
  if (a->h.problem) PetscFunctionReturn(PETSC_SUCCESS);
  GPUAMGPhase(&a->h, GPUAMG_BUILD, PCGPUAMGCycleFill_Private(pc, &o, PETSC_FALSE, &a->cycle));
  GPUAMGPhase(&a->h, GPUAMG_BUILD, PCGPUAMGRound_Private(&a->h, &a->cycle, &o, a->used.precision, &a->rounded));
  PetscCall(Take(a, &o));
  a->taken = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The levels alone, for another PC; a problem of theirs is in h.problem */
PetscErrorCode PCGPUAMGOneLevels_Private(PC pc)
{
  GPUCSROperator o;

  PetscFunctionBegin;
  if (!pc->pmat->rmap->n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Finest(pc, &o));
  PetscCall(Hierarchy(pc, &o, PETSC_FALSE));
  PetscCall(Take((PC_GPUAMG *)pc->data, &o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Their new values with old prolongators. good: on the device that the levels are on */
PetscErrorCode PCGPUAMGOneRefresh_Private(PC pc, PetscBool *good)
{
  PC_GPUAMG           *a        = (PC_GPUAMG *)pc->data;
  char                 why[256] = "";
  GPUCSRBool           stale    = PETSC_FALSE;
  GPUCSROperator       o;
  const GPUCSRStorage *csr;

  PetscFunctionBegin;
  GPUAMGPhase(&a->h, GPUAMG_SEND, Send(pc->pmat, &o, why, sizeof(why)));
  *good = (PetscBool)(o.dev == a->h.dev && o.version.pattern == a->pattern);
  if (!*good) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSROperatorBegin_Private(&o));
  PetscCall(MatGPUCSROperatorCSR_Private(&o, NULL, &csr));
  PetscCall(GPUAMGRefresh(&a->h, csr, o.plan, PETSC_TRUE, &stale));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCSetUp_GPUAMG(PC pc)
{
  PC_GPUAMG     *a = (PC_GPUAMG *)pc->data;
  PetscBool      several, same = PETSC_FALSE;
  PetscErrorCode ierr;
  const Mat      A = pc->pmat;
  const GPUAMG  *h;
  MatNullSpace   nullspace;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRLevelBecome_Private(pc->pmat)); /* of another PC */
  several = GPUCSRIsType(A, MATMPIAIJGPUCSR);
  PetscCheck(several || GPUCSRIsType(A, MATSEQAIJGPUCSR), PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_WRONG, "PC type gpuamg needs a matrix of type %s, not %s: take -mat_type gpucsr, or -pc_type gamg (PCGAMG)", MATGPUCSR, ((PetscObject)A)->type_name);
  PetscCheck(A->rmap->N == A->cmap->N, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_SIZ, "PC type gpuamg needs a square matrix, not one of %" PetscInt_FMT " rows and %" PetscInt_FMT " columns", A->rmap->N, A->cmap->N);
  if (several) PetscCall(PCGPUAMGOptionsSame_Private(pc));
  PetscCall(Asked(pc, &same));
  PetscCall(PCGPUAMGSmootherTell_Private(pc));
  a->version++;
  pc->failedreason = PC_NOERROR;
  ierr             = several ? PCGPUAMGRanksSetUp_Private(pc, same) : OneSetUp(pc, same);
  if (ierr) {
    pc->setupcalled = PETSC_FALSE; /* PCSetUp() has noted the state of the matrix, and would not come again */
    PetscCall(PCGPUAMGForget_Private(a));
  }
  PetscCall(ierr);
  if (a->h.negative) PetscCall(PetscInfo(pc, "The diagonal has negative entries: the smoother's bounds are for a diagonal of one sign\n"));
  if (a->h.problem) {
    const PetscBool nan = (PetscBool)((a->h.problem & GPUAMG_NAN) != 0);

    PetscCall(PetscInfo(pc, "Level %d has %s\n", a->h.at,
                        nan                            ? "an entry, or an eigenvalue, that is no number"
                        : a->h.problem == GPUAMG_PIVOT ? "a factor or an inverse with a zero pivot, or a row without an entry on the diagonal"
                                                       : "a row whose entry on the diagonal is zero, and others are not"));
    pc->failedreason = nan ? PC_SUBPC_ERROR : PC_FACTOR_NUMERIC_ZEROPIVOT;
    a->taken         = PETSC_FALSE;
  }
  /* a solver may report convergence for a right-hand side that is no product with a singular matrix */
  h = !a->ranks ? &a->h : a->ranks->levels == 1 && a->ranks->one ? &((PC_GPUAMG *)a->ranks->one->data)->h : NULL;
  PetscCall(MatGetNullSpace(pc->mat, &nullspace));
  if (!a->inner && !a->singular && h && !h->problem && h->singular && !nullspace) {
    a->singular = PETSC_TRUE;
    PetscCall(GPUCSRWarn("the matrix of PC type gpuamg is singular to working precision, and has no null space (MatSetNullSpace()): a solver may not notice a right-hand side without a solution"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- applications ---- */

/* Renews the cycle's finest level if the matrix has moved or has new values */
static PetscErrorCode Current(PC pc)
{
  PC_GPUAMG     *a        = (PC_GPUAMG *)pc->data;
  char           why[256] = "";
  GPUCSROperator o;

  PetscFunctionBegin;
  if (!a->taken) PetscFunctionReturn(PETSC_SUCCESS);
  if (a->ranks) PetscFunctionReturn(PCGPUAMGRanksCurrent_Private(pc));
  PetscCall(PCGPUAMGStays_Private(pc));
  PetscCall(MatGPUCSROperatorGet_Private(a->matrix.A, PETSC_FALSE, &o, why, sizeof(why)));
  if (o.dev != a->h.dev) {
    PetscCall(PCGPUAMGForget_Private(a));
    PetscCall(PCSetUp_GPUAMG(pc));
  } else if (o.plan->A.array[0].data != a->data || memcmp(&o.version, &a->matrix.version, sizeof(o.version))) {
    PetscCall(PCGPUAMGFinest_Private(a, &o));
    PetscCall(Take(a, &o));
    a->takent = PETSC_FALSE;
    a->version++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGPUAMGCycleGet_Private(PC pc, GPUMGCycle **c, PetscInt *version)
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;

  PetscFunctionBegin;
  *c = NULL;
  if (!pc->setupcalled || !a->taken) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Current(pc));
  *version = a->version;
  if (a->taken && !a->cycle.host) *c = &a->cycle; /* no part of the cycle is the host's */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The result without a hierarchy: Inf after a failed set-up, as PETSc's factorizations give */
static PetscErrorCode ApplyNone(PC pc, Vec b, Vec x, PetscBool *none)
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;

  PetscFunctionBegin;
  PetscCall(Current(pc));
  *none = (PetscBool)!a->taken;
  if (!*none) PetscFunctionReturn(PETSC_SUCCESS);
  if (pc->failedreason) PetscCall(VecSet(x, (PetscScalar)INFINITY));
  else PetscCall(VecCopy(b, x)); /* of no rows */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: an error of one rank stops the other ranks, which are inside the cycle */
static PetscErrorCode Apply(PC pc, GPUMGCycle *c, Vec b, Vec x)
{
  PC_GPUAMG    *a = (PC_GPUAMG *)pc->data;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  GPUCSRTryIf(a->ranks, &attempt, GPUMGCycleApplyVecs(c, &a->event, b, x));
  if (c->host) PetscCall(PCGPUAMGSettle_Private(PetscObjectComm((PetscObject)pc), &attempt));
  if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUMGRanksFail(c, attempt.message));
  SETERRQ(PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
}

static PetscErrorCode PCApply_GPUAMG(PC pc, Vec b, Vec x)
{
  PetscBool none;

  PetscFunctionBegin;
  PetscCall(ApplyNone(pc, b, x, &none));
  if (!none) PetscCall(Apply(pc, &((PC_GPUAMG *)pc->data)->cycle, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the cycle of the transposed levels */
PetscErrorCode PCGPUAMGTransposedCycle_Private(PC pc, GPUMGCycle **c)
{
  PC_GPUAMG     *a        = (PC_GPUAMG *)pc->data;
  char           why[256] = "";
  GPUCSROperator o;

  PetscFunctionBegin;
  *c = &a->transposed;
  if (a->ranks) PetscFunctionReturn(PCGPUAMGRanksTranspose_Private(pc));
  PetscCall(MatGPUCSROperatorGet_Private(a->matrix.A, PETSC_TRUE, &o, why, sizeof(why)));
  PetscCheck(o.dev == a->h.dev, PetscObjectComm((PetscObject)pc), PETSC_ERR_GPU, "The matrix of PC type gpuamg has left the device");
  if (!a->takent) {
    PetscCall(GPUAMGTransposes(&a->h));
    PetscCall(PCGPUAMGCycleFill_Private(pc, &o, PETSC_TRUE, &a->transposed));
    a->takent = PETSC_TRUE;
  }
  a->transposed.level[a->h.levels - 1].A.o = o;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCApplyTranspose_GPUAMG(PC pc, Vec b, Vec x)
{
  PC_GPUAMG  *a         = (PC_GPUAMG *)pc->data;
  PetscBool   symmetric = PETSC_FALSE, known = PETSC_FALSE, none;
  GPUMGCycle *c;

  PetscFunctionBegin;
  PetscCheck(a->used.cycles < GPUAMG_K, PetscObjectComm((PetscObject)pc), PETSC_ERR_SUP, "PC type gpuamg has no transposed application with -pc_gpuamg_cycles k, because a K-cycle is not linear: take 1 or 2");
  PetscCall(ApplyNone(pc, b, x, &none));
  if (none) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatIsSymmetricKnown(a->matrix.A, &known, &symmetric));
  if (known && symmetric) PetscFunctionReturn(PCApply_GPUAMG(pc, b, x));
  PetscCheck(a->used.o.smoother != GPUAMG_BY_BLOCKS, PetscObjectComm((PetscObject)pc), PETSC_ERR_SUP, "PC type gpuamg has no transposed application with -pc_gpuamg_smoother pbjacobi: take jacobi or rowl1");
  PetscCall(PCGPUAMGTransposedCycle_Private(pc, &c));
  PetscCall(Apply(pc, c, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the type ---- */

static PetscErrorCode PCReset_GPUAMG(PC pc)
{
  return PCGPUAMGForget_Private(pc->data);
}

static PetscErrorCode PCDestroy_GPUAMG(PC pc)
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;

  PetscFunctionBegin;
  PetscCall(PCGPUAMGForget_Private(a));
  PetscCall(GPUCSRLivingRemove(&a->living));
  PetscCall(PetscFree(a->given));
  PetscCall(PetscFree(a->coordinates));
  PetscCall(PCGPUAMGSettersCompose_Private(pc, PETSC_FALSE));
  PetscCall(PetscFree(pc->data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The treatment of weak entries. Without levels nothing is known of them */
static const char *WeakOf(const PC_GPUAMG *a, const PCGPUAMGOptions *u)
{
  const int drop = a->taken && !a->ranks ? a->h.o.drop : u->o.drop;

  if (drop == GPUAMG_NEVER) return "threshold";
  if (!a->taken) return "weak entries dropped where they are many, share";
  return drop == GPUAMG_ALWAYS || (a->ranks ? a->ranks->weak : (PetscBool)a->h.weak) ? "weak entries dropped, share" : "few weak entries, share";
}

static PetscErrorCode PCView_GPUAMG(PC pc, PetscViewer viewer)
{
  const PC_GPUAMG       *a   = (const PC_GPUAMG *)pc->data;
  const GPUAMG          *h   = &a->h;
  double                 all = 0, bytes = GPUAMGBytes(h) + GPUMGCycleBytes(&a->cycle);
  PetscBool              ascii;
  const PCGPUAMGOptions *u    = a->taken ? &a->used : &a->asked; /* of the present levels */
  const char            *weak = WeakOf(a, u);

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerASCIIPrintf(viewer, "  %s cycles, smoother %s of degree %d with %s, prolongators smoothed %d times, %d aggressive levels, %s %g\n",
                                   u->cycles == 1   ? "V"
                                   : u->cycles == 2 ? "W"
                                                    : "K",
                                   u->smoother.richardson ? "Richardson" : "Chebyshev", u->degree, PCGPUAMGSmoothers[u->o.smoother], u->o.nsmooths, u->o.aggressive, weak, strcmp(weak, "threshold") ? GPUAMG_WEAK : u->o.threshold[0]));
  if (u->cycles == GPUAMG_K) PetscCall(PetscViewerASCIIPrintf(viewer, "  K-cycles are not linear: the method must be flexible (gpucg, gpufgmres, fcg, fgmres, gcr)\n"));
  if (a->taken && memcmp(&a->asked, &a->used, sizeof(a->used))) PetscCall(PetscViewerASCIIPrintf(viewer, "  options have changed since the set-up, and hold from the next one on\n"));
  if (!a->taken) PetscCall(PetscViewerASCIIPrintf(viewer, "  %s\n", pc->failedreason ? "no levels, because the set-up has failed: -info :pc gives the reason" : "not yet set up"));
  if (!a->taken) PetscFunctionReturn(PETSC_SUCCESS);
  if (a->ranks) {
    PetscCall(PCGPUAMGRanksView_Private(pc, viewer));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int l = 0; l < h->levels; l++) {
    all += (double)h->level[l].A.nnz;
    if (a->factor[l]) bytes += GPUCSRFactorBytes(a->factor[l]);
  }
  PetscCall(PetscViewerASCIIPrintf(viewer, "  %d levels on backend %s, operator complexity %.3f, coarse solver %s, %.3g MB besides the matrix, built %" PetscInt_FMT " times, refreshed %" PetscInt_FMT "\n", h->levels, h->dev->ops->name,
                                   all / (double)h->level[0].A.nnz, h->exact ? "a dense inverse" : "a smoother", 1e-6 * bytes, a->built, a->refreshed));
  if (a->used.precision)
    PetscCall(
      PetscViewerASCIIPrintf(viewer, "  values and vectors of cycles are %s%s (precision %s)\n", a->cycle.floats ? "floats" : "doubles", a->rounded && !a->cycle.floats ? ", and floats for methods that they serve" : "", PCGPUAMGPrecisions[a->used.precision]));
  PetscCall(PetscViewerASCIIPrintf(viewer, "  level       rows    nonzeros  a row  block  eigenvalue  kernel\n"));
  for (int l = 0; l < h->levels; l++) {
    const GPUAMGLevel *L = &h->level[l];

    PetscCall(PetscViewerASCIIPrintf(viewer, "  %5d %10d %11.0f %6.1f %6d %11.4f  %s\n", l, L->n, (double)L->A.nnz, (double)L->A.nnz / PetscMax(1, L->n), L->bs, l + 1 == h->levels && h->exact ? 0.0 : L->lambda, l ? KernelOf(h->dev, L->plan) : a->kernel));
  }
  if (a->cycle.bottom) PetscCall(PetscViewerASCIIPrintf(viewer, "  One dense matrix of %d rows stands for the coarsest %d levels\n", a->cycle.level[a->cycle.bottom].n, a->cycle.bottom + 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  PCGPUAMG - "gpuamg", smoothed aggregation for a `MATGPUCSR` matrix, built and kept on its device

  Options Database Keys:
+ -pc_type gpuamg                            - use this type
. -pc_gpuamg_threshold t1,t2,...             - entries of at most this size, relative to the diagonal, are not strong; a number a level; negative: all entries are strong; default: see below
. -pc_gpuamg_threshold_scale s               - factor from the threshold of a level to the next coarser one, 1 by default
. -pc_gpuamg_agg_nsmooths n                  - steps of the prolongator's smoother, 1 by default
. -pc_gpuamg_aggressive_coarsening n         - levels with larger aggregates, 1 by default
. -pc_gpuamg_coarse_eq_limit n               - a level of at most so many rows is the coarsest, 1000 by default: a dense inverse takes less time than further levels
. -pc_gpuamg_max_levels n                    - levels at most
. -pc_gpuamg_reuse_interpolation (true|false) - keep the prolongators when values change
. -pc_gpuamg_smoother_degree n               - steps of the smoother before and after the coarse correction, 2 by default
. -pc_gpuamg_smoother (jacobi|pbjacobi|rowl1|ilu) - inverse in the smoother: of the diagonal; of the blocks of vertices; one over the sum of the sizes of a row's entries, without an eigenvalue estimate; of the factors of ILU(0)
. -mg_levels_ksp_type (chebyshev|richardson) - the smoother
. -mg_levels_pc_type (jacobi|pbjacobi|ilu)     - the same as -pc_gpuamg_smoother
. -mg_levels_pc_jacobi_type rowl1              - the same as -pc_gpuamg_smoother rowl1
. -mg_levels_ksp_max_it n                    - the same as -pc_gpuamg_smoother_degree
. -mg_levels_ksp_chebyshev_esteig 0,b,0,d    - Chebyshev's bounds are b and d times the estimate of the largest eigenvalue, 0.1 and 1.1 by default
. -mg_levels_ksp_chebyshev_eigenvalues a,b   - Chebyshev's bounds on each level
. -mg_levels_ksp_richardson_scale s          - scale of Richardson's steps, 1 by default
. -pc_gpuamg_cycles (1|2|k)                  - V, W or K cycles; K: two steps of a Krylov method at each coarse level
. -pc_gpuamg_esteig_ksp_max_it n             - steps of an eigenvalue estimate, 10 by default
. -pc_gpuamg_process_eq_limit n              - each rank holds all of a level of fewer rows a rank, and all coarser levels, 50 by default
. -pc_gpuamg_gather_limit n                  - the same for a level below the finest of at most so many rows
. -pc_gpuamg_mis_k k                         - roots of aggregates are more than k edges apart, 1 by default
. -pc_gpuamg_aggressive_mis_k k              - the same where coarsening is aggressive, 3 by default
. -pc_gpuamg_precision (double|single|auto) - all numbers of the cycle: doubles, floats, or floats if an application to a vector changes by at most a hundredth
- -pc_gpuamg_tail n                          - levels of at most so many rows become one dense matrix

  Level: beginner

  Notes:
  Options of `PCGAMG` have the same meaning here. If the matrix has a block size (`MatSetBlockSize()`), the vertices of the aggregates are blocks of rows. The near null space has the rigid motions of the
  points after `PCSetCoordinates()` with points of two or three numbers and blocks of as many rows. Otherwise `MatSetNearNullSpace()` gives it; the default is a constant for each component of a block.

  Without `-pc_gpuamg_threshold` the set-up counts weak entries of a matrix of scalars with at most one near null vector. An entry counts if its size is at most a twentieth of the geometric mean of the largest
  off-diagonal entries of its row and of its column's row. An entry with the sign of the diagonal has a sixteenth of its size. From one weak entry in 200 on, a row of any level depends on its entries above a twentieth of
  the largest one alone. It joins an aggregate that it depends on, so aggregates grow from rows of large entries to rows of small ones. Levels after the aggressive ones coarsen less and less aggressively.
  The prolongator's smoother then leaves out entries of at most a fiftieth of the largest one of their row. It adds them to the diagonal, weighted with the near null vector. On several ranks the set-up counts in diagonal
  blocks. A row is an aggregate by itself if it depends on rows of other ranks alone. `-pc_gpuamg_threshold -1` takes all entries, as `PCGAMG` does.

  Other options `-mg_levels_...` and `-mg_coarse_...` have no effect, and a message names each option.

  New values of the same pattern take the numeric phases alone, with the result of a new set-up. With a threshold or dropped weak entries, new values take a new set-up. Equal matrices have equal hierarchies, bit by bit.

  The restriction is the transpose of the prolongator. The set-up fails with PETSc's reasons for a zero on the diagonal of a row with other entries, and for entries that are not finite. A row of zeros counts as a row of the identity.

  The functions of `PCGAMG` work here too: `PCGAMGSetThreshold()`, `PCGAMGSetThresholdScale()`, `PCGAMGSetNSmooths()`, `PCGAMGSetAggressiveLevels()`, `PCGAMGSetCoarseEqLim()`, `PCGAMGSetNlevels()`,
  `PCGAMGSetReuseInterpolation()`, `PCGAMGSetProcEqLim()`.

  K-cycles solve on each coarse level but the coarsest by two steps of a Krylov method with the cycle below as preconditioner: flexible conjugate gradients if the matrix is known to be symmetric (`MAT_SYMMETRIC`, `MAT_SPD`),
  otherwise the generalized conjugate residual method (Y. Notay, P. S. Vassilevski, Numer. Linear Algebra Appl. 15, 2008). There are always two steps, without a test of the residual after the first. So a graph can
  record the cycle, and all numbers stay on the device. Where a step is impossible, because the curvature is not positive, the V-cycle's correction or the first step remains. Small levels that become one dense matrix have W cycles there.
  A K-cycle visits levels as often as a W cycle. It is not linear: the outer method must be flexible. `KSPGPUCG` then takes the flexible formula for its directions. `KSPCG`, `KSPGMRES`, `KSPGPUGMRES`,
  `KSPGPUBCGS` and others may stall, or report convergence that the true residual does not have: the first such solve prints a warning. `PCApplyTranspose()` is an error. With several ranks their sums pass through the host.

  In floats the matrices of all levels, the smoothers, the dense matrix and the vectors of a cycle take half the bytes. A power of two scales a right-hand side that is far from 1, so its magnitude does not matter. The
  Krylov method stays in double. The rounding changes an application by about 1e-7. If a method repeats this rounding in its residual, the true residual ends at about 1e-7 of the first one. So only
  `KSPCG`, `KSPGPUCG`, `KSPFCG`, `KSPFGMRES`, `KSPGCR`, `KSPFBCGS` and `KSPGPUBCGS` with the preconditioner on the right get the cycle in floats. Other methods, methods without norms, a PC inside another PC and `PCApply()` by itself get
  doubles.
  K-cycles, cycles with the smoother ilu, transposed applications and hierarchies of one level stay in double. With several ranks only the small levels, of which each rank has all rows, are in floats.

  The smoother ilu factors a level's matrix of scalars in its own pattern and order. Chebyshev's bounds are those of the preconditioned matrix. New values of a pattern are factored on the device. The factors stay in
  double. A zero pivot, and a row without an entry on the diagonal, end the set-up with `PC_FACTOR_NUMERIC_ZEROPIVOT`. ICC(0) of a symmetric matrix is the same smoother, which is why there is no icc.

  A matrix that fits the dense inverse may be singular. Without a null space (`MatSetNullSpace()`) a message says so, because a solver may take an approximation for a solution that does not exist.

  With several ranks ilu is the factor of a rank's diagonal block, as in `PCBJACOBI`. Each rank factors the small levels, of which it has all rows, completely.

  With several ranks aggregates do not cross ranks, and the levels down to the first small one are on the devices of all ranks. With exchange peer a graph can record the cycle. With other exchanges the host takes part in an application.

.seealso: `MATGPUCSR`, `PCGAMG`, `KSPGPUCG`, `MatSetNearNullSpace()`, `PCSetCoordinates()`, `PCGPUAMGGetOperator()`
M*/
static PetscErrorCode PCCreate_GPUAMG(PC pc)
{
  PC_GPUAMG *a;

  PetscFunctionBegin;
  PetscCall(PetscNew(&a));
  pc->data   = a;
  a->asked.o = (GPUAMGOptions){
    .drop = GPUAMG_ASK, .nsmooths = 1, .aggressive = 1, .distance = {1, 3},
               .limit = 1000, .levels = GPUAMG_LEVELS, .steps = 10, .damping = 1.4
  };
  for (int l = 0; l < GPUAMG_LEVELS; l++) a->asked.o.threshold[l] = -1;
  a->asked.nthreshold = 1;
  a->asked.degree     = 2;
  a->asked.cycles     = 1;
  a->asked.tail       = 1024;
  a->asked.scale      = 1;
  a->asked.smoother   = (PCGPUAMGSmoother){
      PETSC_FALSE, PETSC_FALSE, 1, {0.1, 1.1},
         {0,   0  }
  };
  a->asked.least  = 50;
  a->asked.gather = (int)GPUCSRMachineShared.whole_level_rows;
  PetscCall(GPUCSRLivingAdd(&living, &a->living, a));

  pc->ops->setup          = PCSetUp_GPUAMG;
  pc->ops->reset          = PCReset_GPUAMG;
  pc->ops->destroy        = PCDestroy_GPUAMG;
  pc->ops->presolve       = PCGPUAMGPreSolve_Private;
  pc->ops->apply          = PCApply_GPUAMG;
  pc->ops->applytranspose = PCApplyTranspose_GPUAMG;
  pc->ops->setfromoptions = PCGPUAMGSetFromOptions_Private;
  pc->ops->view           = PCView_GPUAMG;
  PetscCall(PCGPUAMGSettersCompose_Private(pc, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGPUAMGInitialize_Private(void)
{
  PetscFunctionBegin;
  PetscCall(PCRegister(PCGPUAMG, PCCreate_GPUAMG));
  PetscCall(GPUAMGRegister(PC_CLASSID));
  PetscFunctionReturn(PETSC_SUCCESS);
}

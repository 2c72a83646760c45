/*
  The loop of a solve that the host drives: a step, a product, a preconditioner at a time, in one text for all places.

    graph    vectors are the solver's own, on the matrix' device. On a GPU an iteration is recorded once as a graph and launched again and again;
             rules are applied on the device, and the host looks at the outcome an iteration behind. On the host backend the same steps are loops
    driven   vectors are PETSc's, worked on where they are; products are MatMult() and preconditioners PCApply(), so that anything goes, several
             processes too; rules are applied by the host

  Where somebody looks at every iteration (a monitor, a test of convergence of the user's) rules are the host's in both.
*/
#include "gpukspimpl.h"

static double **Slot(GPUKSPVectors *v, int name)
{
  return &v->x + name;
}

/* PETSc's vectors for one step: on the device if all are there, otherwise all on the host */
static PetscErrorCode Borrow(KSP_GPU *k, GPUKSPVectors *v, PetscBool *device)
{
  Mat_SeqGPUCSR *g    = (Mat_SeqGPUCSR *)k->A->spptr;
  int            here = 0, all = 0;

  PetscFunctionBegin;
  for (int q = 0; q < GPUKSP_VECTORS; q++) {
    if (!k->work[q]) continue;
    PetscCall(MatGPUCSRVecGet_Private(g, k->work[q], PETSC_TRUE, (PetscBool)(q != VEC_B), &k->operand[q]));
    here += k->operand[q].place == GPUCSR_DEVICE;
    all++;
  }
  *device = (PetscBool)(here == all && k->dev->ops->kernels);
  for (int q = 0; q < GPUKSP_VECTORS && here && here < all; q++) {
    if (!k->work[q]) continue;
    PetscCall(MatGPUCSRVecRestore_Private(g, k->work[q], PETSC_TRUE, (PetscBool)(q != VEC_B), &k->operand[q]));
    PetscCall(PetscMemzero(&k->operand[q], sizeof(k->operand[q])));
    k->operand[q].place = GPUCSR_HOST;
    if (q == VEC_B) PetscCall(VecGetArrayRead(k->work[q], (const PetscScalar **)&k->operand[q].p));
    else PetscCall(VecGetArray(k->work[q], (PetscScalar **)&k->operand[q].p));
  }
  for (int q = 0; q < GPUKSP_VECTORS; q++) *Slot(v, q) = k->work[q] ? (double *)k->operand[q].p : NULL;
  /* the same vector under two names */
  if (!v->ph) v->ph = v->p;
  if (!v->sh) v->sh = v->s;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GiveBack(KSP_GPU *k)
{
  PetscFunctionBegin;
  for (int q = 0; q < GPUKSP_VECTORS; q++)
    if (k->work[q]) PetscCall(MatGPUCSRVecRestore_Private((Mat_SeqGPUCSR *)k->A->spptr, k->work[q], PETSC_TRUE, (PetscBool)(q != VEC_B), &k->operand[q]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sums over the processes, and the rule */
static PetscErrorCode Reduce(KSP ksp, KSP_GPU *k, GPUKSPStep step, double sum[], PetscBool rule, PetscBool first)
{
  PetscFunctionBegin;
  if (k->taken == KSP_GPU_PATH_DRIVEN) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, GPUKSPStepSums(step), MPI_DOUBLE, MPI_SUM, PetscObjectComm((PetscObject)ksp)));
  if (rule) GPUKSPStepRule(step, k->state, sum, first);
  else PetscCall(PetscArraycpy(k->sums, sum, GPUKSPStepSums(step)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One step of vectors that are in place: v, or f, those of the iteration of mixed */
static PetscErrorCode Rows(KSP_GPU *k, GPUKSPStep step, const GPUKSPVectors *v, const GPUKSPVectorsSingle *f, PetscBool device, GPUCSRStream s, PetscBool rule, PetscBool first, PetscBool next, double sum[])
{
  GPUKSPStepArgs args = {k->method, k->n, k->partial, k->sums, k->devstate, k->seen, k->stepblocks, PETSC_TRUE, first, next};

  PetscFunctionBegin;
#if defined(GPUCSR_HAVE_CUDA)
  if (device) {
    const int nsums = GPUKSPStepSums(step);

    if (k->rulehere || !rule) {
      args.rule = PETSC_FALSE;
      if (k->rulehere) args.state = k->state;
    }
    if (f) PetscCall(GPUKSPStepDeviceSingle(step, f, &args, s));
    else PetscCall(GPUKSPStepDevice(step, v, &args, s));
    if (!args.rule && nsums) {
      PetscCall(k->dev->ops->streamsynchronize(k->dev->id, s));
      PetscCall(PetscArraycpy(sum, k->sums, nsums));
    } else if (k->rulehere) PetscCall(k->dev->ops->streamsynchronize(k->dev->id, s)); /* the state it reads is about to change */
  }
#endif
  if (!device && f)
    for (int i = 0; i < k->n; i++) GPUKSPStepRowSingle(step, f, k->state, i, sum);
  else if (!device)
    for (int i = 0; i < k->n; i++) GPUKSPStepRow(step, v, k->state, i, sum);
  if (!device) PetscCall(GPUCSRLaunched(k->dev, "a step of a solver"));
  (void)args;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One step. Without a rule its sums, if any, are in k->sums; next: the rules' side of an iteration ends with it */
static PetscErrorCode Step(KSP ksp, KSP_GPU *k, GPUKSPStep step, GPUKSPVectors *v, PetscBool rule, PetscBool first, PetscBool next)
{
  PetscBool    driven = (PetscBool)(k->taken == KSP_GPU_PATH_DRIVEN), device = k->dev->ops->kernels;
  double       sum[GPUKSP_SUMS] = {0, 0, 0, 0};
  GPUCSRStream s                = k->dev->stream;

  PetscFunctionBegin;
  if (driven) {
    PetscCall(Borrow(k, v, &device));
    if (k->diagonal) {
      GPUCSROperand o;

      PetscCall(MatGPUCSRVecGet_Private((Mat_SeqGPUCSR *)k->A->spptr, k->diagonal, PETSC_TRUE, PETSC_FALSE, &o));
      if (o.place == GPUCSR_DEVICE && !device) {
        PetscCall(MatGPUCSRVecRestore_Private((Mat_SeqGPUCSR *)k->A->spptr, k->diagonal, PETSC_TRUE, PETSC_FALSE, &o));
        PetscCall(VecGetArrayRead(k->diagonal, (const PetscScalar **)&o.p));
        o.place = GPUCSR_HOST;
      }
      if (v->degree) v->diagonal = (const double *)o.p;
      else v->pc = (const double *)o.p;
      PetscCall(MatGPUCSRVecRestore_Private((Mat_SeqGPUCSR *)k->A->spptr, k->diagonal, PETSC_TRUE, PETSC_FALSE, &o)); /* nobody writes it */
    }
    v->from = *Slot(v, k->from);
    v->to   = *Slot(v, k->to);
    if (device) PetscCall(MatGPUCSRStream_Private(k->dev, &k->operand[VEC_B], &k->operand[VEC_X], NULL, &s));
  }
  PetscCall(Rows(k, step, v, NULL, device, s, rule, first, next, sum));
  if (driven) PetscCall(GiveBack(k));
  if (GPUKSPStepSums(step) && (k->rulehere || !rule)) PetscCall(Reduce(ksp, k, step, sum, rule, first));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Product(KSP ksp, KSP_GPU *k, GPUKSPVectors *v, int from, int to)
{
  PetscFunctionBegin;
  if (k->taken == KSP_GPU_PATH_DRIVEN) {
    Mat A;

    PetscCall(PCGetOperators(ksp->pc, &A, NULL));
    PetscCall(KSP_MatMult(ksp, A, k->work[from], k->work[to]));
  } else {
    Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)k->A->spptr;
    GPUCSRProduct  p = {1, 0, *Slot(v, from), NULL, *Slot(v, to), 0, k->n};

    PetscCall(GPUCSRPlanProduct(&g->plan[GPUCSR_FORWARD], &p, k->dev->stream));
    g->info.products++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define STEP(step)        Step(ksp, k, step, v, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE)
#define LAST(step, first) Step(ksp, k, step, v, PETSC_TRUE, first, PETSC_TRUE)
#define ENDED             (k->rulehere && k->state->reason)

static PetscErrorCode Polynomial(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  double rho = 0;

  PetscFunctionBegin;
  PetscCall(STEP(GPUKSP_POLYNOMIAL_START));
  for (int q = 0; q < v->degree; q++) {
    if (q) {
      PetscCall(Product(ksp, k, v, VEC_C0, VEC_C1));
      PetscCall(STEP(GPUKSP_POLYNOMIAL_RESIDUAL));
    }
    rho = GPUKSPChebyshev(v->emin, v->emax, rho, &v->ca, &v->cb);
    PetscCall(STEP(q ? GPUKSP_POLYNOMIAL_STEP : GPUKSP_POLYNOMIAL_FIRST));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Precondition(KSP ksp, KSP_GPU *k, GPUKSPVectors *v, int from, int to)
{
  PetscFunctionBegin;
  k->from = from;
  k->to   = to;
  if (v->degree) {
    v->from = *Slot(v, from);
    v->to   = *Slot(v, to);
    PetscCall(Polynomial(ksp, k, v));
  } else if (k->taken == KSP_GPU_PATH_DRIVEN) PetscCall(KSP_PCApply(ksp, k->work[from], k->work[to]));
  else {
    v->from = *Slot(v, from);
    v->to   = *Slot(v, to);
    PetscCall(Step(ksp, k, GPUKSP_PRECONDITION, v, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x as it should be by now, into PETSc's vector, for somebody who looks at it */
static PetscErrorCode Show(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  PetscFunctionBegin;
  if (k->method == GPUKSP_CG) {
    PetscCall(Step(ksp, k, GPUKSP_CG_FINISH, v, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE));
    k->state->xalpha = 0;
  }
  if (k->taken != KSP_GPU_PATH_DRIVEN) PetscCall(GPUKSPStoreX(ksp, k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What happens between the two rules that end an iteration: history, monitors, the test of somebody else's; then the second rule */
static PetscErrorCode After(KSP ksp, KSP_GPU *k, GPUKSPVectors *v, PetscBool first)
{
  GPUKSPState *s = k->state;

  PetscFunctionBegin;
  if (!k->rulehere) PetscFunctionReturn(PETSC_SUCCESS); /* the step has done it */
  if ((k->live || k->taken == KSP_GPU_PATH_DRIVEN) && s->reason != KSP_DIVERGED_NANORINF) {
    const PetscInt n = first ? 0 : s->i + 1;

    if (k->live) PetscCall(Show(ksp, k, v));
    ksp->its   = n;
    ksp->rnorm = s->rnorm;
    PetscCall(KSPLogResidualHistory(ksp, s->rnorm));
    PetscCall(KSPMonitor(ksp, n, s->rnorm));
    if (s->test == GPUKSP_TEST_HOST) {
      ksp->reason = KSP_CONVERGED_ITERATING;
      PetscCall((*ksp->converged)(ksp, n, s->rnorm, &ksp->reason, ksp->cnvP));
      s->reason = ksp->reason;
    }
  }
  GPUKSPNext(k->method, s, first);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* r = b - A x in w or, from x = 0, b, and the norm of b where there was a guess; left: it is that of M b */
static PetscErrorCode Start(KSP ksp, KSP_GPU *k, GPUKSPVectors *v, PetscBool left)
{
  PetscFunctionBegin;
  if (k->state->guesszero) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->state->normtype != KSP_NORM_NONE) {
    GPUKSPVectors u = *v;

    u.explicitpc = left ? v->explicitpc : 0;
    if (!left) u.pc = NULL;
    if (u.explicitpc) PetscCall(Precondition(ksp, k, v, VEC_B, VEC_W));
    PetscCall(Step(ksp, k, GPUKSP_BNORM, &u, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE));
  }
  PetscCall(Product(ksp, k, v, VEC_X, VEC_W));
  PetscCall(STEP(GPUKSP_SUBTRACT));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode StartCG(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  const PetscBool single = (PetscBool)(k->method == GPUKSP_CG_SINGLE_REDUCTION);

  PetscFunctionBegin;
  PetscCall(Start(ksp, k, v, PETSC_TRUE));
  PetscCall(STEP(GPUKSP_CG_START));
  if (v->explicitpc) PetscCall(Precondition(ksp, k, v, VEC_R, VEC_Z));
  else if (single) PetscCall(STEP(GPUKSP_CG1_Z));
  if (single) {
    PetscCall(STEP(GPUKSP_CG1_START));
    PetscCall(Product(ksp, k, v, VEC_Z, VEC_S));
  }
  PetscCall(LAST(single ? GPUKSP_CG1_NORMS : GPUKSP_NORMS, PETSC_TRUE));
  PetscCall(After(ksp, k, v, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode IterateCG(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  PetscFunctionBegin;
  PetscCall(STEP(GPUKSP_CG_DIRECTION));
  PetscCall(Product(ksp, k, v, VEC_P, VEC_W));
  PetscCall(STEP(GPUKSP_CG_CURVATURE));
  if (ENDED) PetscFunctionReturn(PETSC_SUCCESS);
  if (v->explicitpc) {
    PetscCall(STEP(GPUKSP_CG_R));
    PetscCall(Precondition(ksp, k, v, VEC_R, VEC_Z));
  }
  PetscCall(LAST(v->explicitpc ? GPUKSP_NORMS : GPUKSP_CG_RESIDUAL, PETSC_FALSE));
  PetscCall(After(ksp, k, v, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode IterateCGSingle(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  PetscFunctionBegin;
  PetscCall(STEP(GPUKSP_CG1_UPDATE));
  if (v->explicitpc) PetscCall(Precondition(ksp, k, v, VEC_R, VEC_Z));
  PetscCall(Product(ksp, k, v, VEC_Z, VEC_S));
  PetscCall(LAST(GPUKSP_CG1_NORMS, PETSC_FALSE));
  PetscCall(After(ksp, k, v, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode StartBCGS(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  const PetscBool left = (PetscBool)(ksp->pc_side == PC_LEFT);

  PetscFunctionBegin;
  PetscCall(Start(ksp, k, v, left));
  /* r = M (b - A x), or b - A x: CG's start, and from the left M on top of it */
  PetscCall(STEP(GPUKSP_CG_START));
  if (left && v->explicitpc) {
    PetscCall(Precondition(ksp, k, v, VEC_R, VEC_T));
    PetscCall(STEP(GPUKSP_BCGS_R_FROM_T));
  } else if (left && v->pc) PetscCall(STEP(GPUKSP_BCGS_R_SCALE));
  PetscCall(LAST(GPUKSP_BCGS_START, PETSC_TRUE));
  PetscCall(After(ksp, k, v, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode IterateBCGS(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  const PetscBool left = (PetscBool)(ksp->pc_side == PC_LEFT), before = (PetscBool)(!left && v->explicitpc), behind = (PetscBool)(left && v->explicitpc), hat = (PetscBool)(!left && (v->explicitpc || v->pc));

  PetscFunctionBegin;
  PetscCall(STEP(GPUKSP_BCGS_DIRECTION));
  if (before) PetscCall(Precondition(ksp, k, v, VEC_P, VEC_PH));
  PetscCall(Product(ksp, k, v, hat ? VEC_PH : VEC_P, behind ? VEC_W : VEC_V));
  if (behind) PetscCall(Precondition(ksp, k, v, VEC_W, VEC_V));
  PetscCall(STEP(GPUKSP_BCGS_V));
  if (ENDED) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(STEP(GPUKSP_BCGS_S));
  if (before) PetscCall(Precondition(ksp, k, v, VEC_S, VEC_SH));
  PetscCall(Product(ksp, k, v, hat ? VEC_SH : VEC_S, behind ? VEC_W : VEC_T));
  if (behind) PetscCall(Precondition(ksp, k, v, VEC_W, VEC_T));
  PetscCall(STEP(GPUKSP_BCGS_T));
  if (ENDED) {
    if (k->state->lucky && (k->live || k->taken == KSP_GPU_PATH_DRIVEN)) {
      PetscCall(KSPLogResidualHistory(ksp, k->state->rnorm));
      PetscCall(KSPMonitor(ksp, k->state->i + 1, 0));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(LAST(GPUKSP_BCGS_UPDATE, PETSC_FALSE));
  PetscCall(After(ksp, k, v, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One step of an iteration of mixed */
static PetscErrorCode StepSingle(KSP ksp, KSP_GPU *k, GPUKSPStep step, PetscBool rule, PetscBool next)
{
  double sum[GPUKSP_SUMS] = {0, 0, 0, 0};

  PetscFunctionBegin;
  PetscCall(Rows(k, step, NULL, &k->single, k->dev->ops->kernels, k->dev->stream, rule, PETSC_FALSE, next, sum));
  if (GPUKSPStepSums(step) && k->rulehere) PetscCall(Reduce(ksp, k, step, sum, rule, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PreconditionSingle(KSP ksp, KSP_GPU *k, PetscBool rule)
{
  PetscFunctionBegin;
  k->single.from = k->single.r;
  k->single.to   = k->single.z;
  PetscCall(StepSingle(ksp, k, GPUKSP_PRECONDITION, rule, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode IterateMixed(KSP ksp, KSP_GPU *k)
{
  const GPUCSRKernel *kernel     = ((Mat_SeqGPUCSR *)k->A->spptr)->plan[GPUCSR_FORWARD].choice.kernel;
  const PetscBool     explicitpc = (PetscBool)k->single.explicitpc;
  GPUCSRProduct       p          = {1, 0, k->single.p, NULL, k->single.w, 0, k->n};

  PetscFunctionBegin;
  PetscCall(StepSingle(ksp, k, GPUKSP_CG_DIRECTION, PETSC_TRUE, PETSC_FALSE));
  if (k->dev->ops->kernels) PetscCall((*kernel->family->launch)(&k->rounded, &p, kernel->variant, k->dev->stream));
  else {
    PetscCall((*k->rounded.format->ops->mult)(&k->rounded, &p));
    PetscCall(GPUCSRLaunched(k->dev, k->rounded.format->name));
  }
  PetscCall(StepSingle(ksp, k, GPUKSP_CG_CURVATURE, PETSC_TRUE, PETSC_FALSE));
  if (ENDED) PetscFunctionReturn(PETSC_SUCCESS);
  if (explicitpc) {
    PetscCall(StepSingle(ksp, k, GPUKSP_CG_R, PETSC_TRUE, PETSC_FALSE));
    PetscCall(PreconditionSingle(ksp, k, PETSC_TRUE));
  }
  PetscCall(StepSingle(ksp, k, explicitpc ? GPUKSP_NORMS : GPUKSP_CG_RESIDUAL, PETSC_TRUE, PETSC_TRUE));
  if (k->rulehere) GPUKSPNext(k->method, k->state, PETSC_FALSE);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Iterate(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  PetscFunctionBegin;
  if (k->mixed) PetscCall(IterateMixed(ksp, k));
  else if (k->method == GPUKSP_CG) PetscCall(IterateCG(ksp, k, v));
  else if (k->method == GPUKSP_CG_SINGLE_REDUCTION) PetscCall(IterateCGSingle(ksp, k, v));
  else PetscCall(IterateBCGS(ksp, k, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Iterations until the solve rests; k->state says why, wherever rules are applied. *k->seen must not be of an earlier rest. On a device they are launched ahead and looked at one behind. The first is not recorded,
  so that what it sets up for good is not either.
*/
static PetscErrorCode Loop(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  PetscFunctionBegin;
  if (k->rulehere)
    while (!GPUKSPRests(k->state)) PetscCall(Iterate(ksp, k, v));
#if defined(GPUCSR_HAVE_CUDA)
  else {
    const GPUCSRBackendOps     *ops  = k->dev->ops;
    const volatile GPUKSPState *seen = k->seen;
    PetscErrorCode              ierr;

    PetscCall(ops->streamsynchronize(k->dev->id, k->dev->stream));
    if (!k->graph && !GPUKSPRests(seen)) {
      PetscCall(Iterate(ksp, k, v));
      PetscCall(ops->streamsynchronize(k->dev->id, k->dev->stream));
      if (!GPUKSPRests(seen)) {
        PetscCall(GPUKSPGraphBegin(k->dev->stream));
        ierr = Iterate(ksp, k, v);
        PetscCall(GPUKSPGraphEnd(k->dev->stream, &k->graph));
        PetscCall(ierr);
        if (!k->graph) PetscCall(PetscInfo(ksp, "An iteration could not be recorded as a graph: each is launched by itself\n"));
      }
    }
    for (int q = 0; !GPUKSPRests(seen); q++) {
      if (k->graph) PetscCall(GPUKSPGraphLaunch(k->graph, k->dev->stream));
      else PetscCall(Iterate(ksp, k, v));
      PetscCall(ops->eventrecord(k->dev->id, k->events[q % 2], k->dev->stream));
      if (q) PetscCall(ops->eventsynchronize(k->dev->id, k->events[(q - 1) % 2]));
    }
    PetscCall(ops->streamsynchronize(k->dev->id, k->dev->stream));
    *k->state = *k->seen;
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An iteration of the next solve may be another */
static PetscErrorCode End(KSP_GPU *k)
{
  PetscFunctionBegin;
#if defined(GPUCSR_HAVE_CUDA)
  PetscCall(GPUKSPGraphDestroy(&k->graph));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rules are the device's where the vectors are the solver's own and nobody looks at iterations */
static PetscErrorCode Begin(KSP_GPU *k)
{
  PetscFunctionBegin;
  PetscCall(End(k)); /* an error may have left one */
  k->rulehere = (PetscBool)(!k->dev->ops->kernels || k->taken != KSP_GPU_PATH_GRAPH || k->live);
  if (k->rulehere) PetscFunctionReturn(PETSC_SUCCESS);
  *k->seen = *k->state;
  PetscCall(k->dev->ops->copy(k->dev->id, k->devstate, k->state, sizeof(*k->state), GPUCSR_TO_DEVICE, k->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* |b - A x| in the norm of the test */
static PetscErrorCode TrueNorm(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  const PetscBool left = (PetscBool)(k->method != GPUKSP_BCGS || ksp->pc_side == PC_LEFT);
  GPUKSPVectors   u    = *v;

  PetscFunctionBegin;
  PetscCall(Product(ksp, k, v, VEC_X, VEC_W));
  PetscCall(Step(ksp, k, GPUKSP_SUBTRACT, v, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE));
  /* w takes the place of b, whose norms a step is there for; w itself that of M w */
  u.b          = v->w;
  u.explicitpc = left ? v->explicitpc : 0;
  if (!left) u.pc = NULL;
  if (u.explicitpc) {
    PetscCall(Precondition(ksp, k, v, VEC_W, VEC_T));
    u.w = v->t;
  }
  if (k->taken == KSP_GPU_PATH_DRIVEN) {
    const Vec b = k->work[VEC_B], w = k->work[VEC_W];

    k->work[VEC_B] = w;
    k->work[VEC_W] = u.explicitpc ? k->work[VEC_T] : NULL;
    PetscCall(Step(ksp, k, GPUKSP_BNORM, &u, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE));
    k->work[VEC_B] = b;
    k->work[VEC_W] = w;
  } else PetscCall(Step(ksp, k, GPUKSP_BNORM, &u, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE));
  k->state->truenorm = GPUKSPNorm(k->state, k->sums);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve from k->state, with x and b in place; the outcome is in k->state */
PetscErrorCode GPUKSPDrive(KSP ksp, KSP_GPU *k)
{
  GPUKSPVectors v = k->launch.v;

  PetscFunctionBegin;
  PetscCall(Begin(k));
  if (k->method == GPUKSP_BCGS) PetscCall(StartBCGS(ksp, k, &v));
  else PetscCall(StartCG(ksp, k, &v));
  PetscCall(Loop(ksp, k, &v));
  PetscCall(End(k));
  if (k->method == GPUKSP_CG) PetscCall(Step(ksp, k, GPUKSP_CG_FINISH, &v, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE));
  if (k->state->lucky) PetscCall(Step(ksp, k, GPUKSP_BCGS_LUCKY, &v, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE));
  if (k->guard) PetscCall(TrueNorm(ksp, k, &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- mixed precision: the iterations of CG on vectors of their own, in single precision, and b - A x in double now and then ---- */

/* The true residual is in w: its norms, and the iteration goes on from it, in units of its norm */
static PetscErrorCode Residual(KSP ksp, KSP_GPU *k, GPUKSPVectors *v, PetscBool first)
{
  PetscFunctionBegin;
  if (v->explicitpc) {
    v->from = v->w;
    v->to   = v->z;
    PetscCall(Step(ksp, k, GPUKSP_PRECONDITION, v, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE));
  }
  PetscCall(LAST(GPUKSP_MIXED_NORMS, first));
  if (k->rulehere) GPUKSPNext(k->method, k->state, first);
  PetscCall(StepSingle(ksp, k, GPUKSP_MIXED_RESIDUAL, PETSC_FALSE, PETSC_FALSE));
  if (k->single.explicitpc) PetscCall(PreconditionSingle(ksp, k, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve in mixed precision from k->state, with x and b in place; the outcome is in k->state. Where single precision gives up, x is what the last replacement has confirmed */
PetscErrorCode GPUKSPDriveMixed(KSP ksp, KSP_GPU *k)
{
  GPUKSPVectors v = k->launch.v;

  PetscFunctionBegin;
  PetscCall(Begin(k));
  PetscCall(Start(ksp, k, &v, PETSC_TRUE));
  if (k->state->guesszero) PetscCall(Step(ksp, k, GPUKSP_MIXED_START, &v, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE));
  PetscCall(Residual(ksp, k, &v, PETSC_TRUE));
  PetscCall(Loop(ksp, k, &v));
  while (k->state->replace && !k->state->giveup) {
    k->seen->replace = k->seen->reason = 0;
    PetscCall(StepSingle(ksp, k, GPUKSP_MIXED_UPDATE, PETSC_FALSE, PETSC_FALSE));
    PetscCall(Product(ksp, k, &v, VEC_X, VEC_W));
    PetscCall(Step(ksp, k, GPUKSP_SUBTRACT, &v, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE));
    PetscCall(Residual(ksp, k, &v, PETSC_FALSE));
    PetscCall(Loop(ksp, k, &v));
  }
  PetscCall(End(k));
  if (CGGivenUp(k->state)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(StepSingle(ksp, k, GPUKSP_MIXED_UPDATE, PETSC_FALSE, PETSC_FALSE)); /* what has come since */
  k->state->scale = 1;
  if (k->guard) PetscCall(TrueNorm(ksp, k, &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

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
  *device = (PetscBool)(here == all);
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

/* One step. Without a rule its sums, if any, are in k->sums; next: the rules' side of an iteration ends with it */
static PetscErrorCode Step(KSP ksp, KSP_GPU *k, GPUKSPStep step, GPUKSPVectors *v, PetscBool rule, PetscBool first, PetscBool next)
{
  const int      nsums  = GPUKSPStepSums(step);
  PetscBool      driven = (PetscBool)(k->taken == KSP_GPU_PATH_DRIVEN), device = k->dev->ops->separate;
  double         sum[GPUKSP_SUMS] = {0, 0, 0, 0};
  GPUKSPStepArgs args             = {k->method, k->n, k->partial, k->sums, k->devstate, k->seen, PETSC_TRUE, first, next};
  GPUCSRStream   s                = k->dev->stream;

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
#if defined(GPUCSR_HAVE_CUDA)
  if (device) {
    if (k->rulehere || !rule) {
      args.rule = PETSC_FALSE;
      if (k->rulehere) args.state = k->state;
    }
    PetscCall(GPUKSPStepDevice(step, v, &args, s));
    if (!args.rule && nsums) {
      PetscCall(k->dev->ops->streamsynchronize(k->dev->id, s));
      PetscCall(PetscArraycpy(sum, k->sums, nsums));
    } else if (k->rulehere) PetscCall(k->dev->ops->streamsynchronize(k->dev->id, s)); /* the state it reads is about to change */
  }
#endif
  if (!device)
    for (int i = 0; i < k->n; i++) GPUKSPStepRow(step, v, k->state, i, sum);
  if (driven) PetscCall(GiveBack(k));
  if (nsums && (k->rulehere || !rule)) PetscCall(Reduce(ksp, k, step, sum, rule, first));
  (void)args;
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

static PetscErrorCode Iterate(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  PetscFunctionBegin;
  if (k->method == GPUKSP_CG) PetscCall(IterateCG(ksp, k, v));
  else if (k->method == GPUKSP_CG_SINGLE_REDUCTION) PetscCall(IterateCGSingle(ksp, k, v));
  else PetscCall(IterateBCGS(ksp, k, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if defined(GPUCSR_HAVE_CUDA)
/* Iterations launched ahead, looked at one behind; the first is not recorded, so that what it sets up for good is not either */
static PetscErrorCode Replay(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  const GPUCSRBackendOps *ops   = k->dev->ops;
  volatile GPUKSPState   *seen  = k->seen;
  GPUKSPGraph             graph = NULL;
  PetscErrorCode          ierr;

  PetscFunctionBegin;
  PetscCall(Iterate(ksp, k, v));
  PetscCall(ops->streamsynchronize(k->dev->id, k->dev->stream));
  if (!seen->reason) {
    PetscCall(GPUKSPGraphBegin(k->dev->stream));
    ierr = Iterate(ksp, k, v);
    PetscCall(GPUKSPGraphEnd(k->dev->stream, &graph));
    PetscCall(ierr);
    if (!graph) PetscCall(PetscInfo(ksp, "An iteration could not be recorded as a graph: each is launched by itself\n"));
  }
  for (int q = 0; !seen->reason; q++) {
    if (graph) PetscCall(GPUKSPGraphLaunch(graph, k->dev->stream));
    else PetscCall(Iterate(ksp, k, v));
    PetscCall(ops->eventrecord(k->dev->id, k->events[q % 2], k->dev->stream));
    if (q) PetscCall(ops->eventsynchronize(k->dev->id, k->events[(q - 1) % 2]));
  }
  PetscCall(ops->streamsynchronize(k->dev->id, k->dev->stream));
  PetscCall(GPUKSPGraphDestroy(&graph));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

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
  GPUKSPVectors   v      = k->launch.v;
  const PetscBool device = (PetscBool)(k->dev->ops->separate && k->taken == KSP_GPU_PATH_GRAPH);

  PetscFunctionBegin;
  k->rulehere = (PetscBool)(!device || k->live);
  if (!k->rulehere) {
    *k->seen = *k->state;
    PetscCall(k->dev->ops->copy(k->dev->id, k->devstate, k->state, sizeof(*k->state), GPUCSR_TO_DEVICE, k->dev->stream));
  }
  if (k->method == GPUKSP_BCGS) PetscCall(StartBCGS(ksp, k, &v));
  else PetscCall(StartCG(ksp, k, &v));
  if (k->rulehere)
    while (!k->state->reason) PetscCall(Iterate(ksp, k, &v));
#if defined(GPUCSR_HAVE_CUDA)
  else {
    PetscCall(k->dev->ops->streamsynchronize(k->dev->id, k->dev->stream));
    if (!k->seen->reason) PetscCall(Replay(ksp, k, &v));
    *k->state = *k->seen;
  }
#endif
  if (k->method == GPUKSP_CG) PetscCall(Step(ksp, k, GPUKSP_CG_FINISH, &v, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE));
  if (k->state->lucky) PetscCall(Step(ksp, k, GPUKSP_BCGS_LUCKY, &v, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE));
  if (k->guard) PetscCall(TrueNorm(ksp, k, &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- mixed precision on the host: what launch.cu does in a launch, a step at a time ---- */

#define ROWS(i) for (int i = 0; i < k->n; i++)

static PetscErrorCode StepMixed(KSP_GPU *k, GPUKSPStep step, double sum[])
{
  PetscFunctionBegin;
  PetscCall(PetscArrayzero(sum, GPUKSP_SUMS));
  ROWS(i) GPUKSPStepRow(step, &k->launch.inner, k->state, i, sum);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* r in double = b - A x, and its norms */
static PetscErrorCode TrueResidual(KSP ksp, KSP_GPU *k, PetscBool zero, double sum[])
{
  GPUKSPVectors *v = &k->launch.v;

  PetscFunctionBegin;
  if (zero) PetscCall(PetscArrayzero(v->w, k->n));
  else PetscCall(Product(ksp, k, v, VEC_X, VEC_W));
  PetscCall(PetscArrayzero(sum, GPUKSP_SUMS));
  ROWS(i) v->r[i] = v->b[i] - v->w[i];
  if (v->explicitpc) {
    v->from = v->r;
    v->to   = v->z;
    ROWS(i) GPUKSPStepRow(GPUKSP_PRECONDITION, v, k->state, i, sum);
  }
  ROWS(i) GPUKSPStepRow(GPUKSP_NORMS, v, k->state, i, sum);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Refined(KSP_GPU *k)
{
  PetscFunctionBegin;
  ROWS(i) k->launch.inner.r[i] = k->launch.v.r[i] / k->state->scale;
  if (k->launch.inner.explicitpc) {
    k->launch.inner.from = k->launch.inner.r;
    k->launch.inner.to   = k->launch.inner.z;
    ROWS(i) GPUKSPStepRow(GPUKSP_PRECONDITION, &k->launch.inner, k->state, i, NULL);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What rounding has taken from the sum of each row, which the iteration puts back on its diagonal. Where rows sum to about 0, as those of elliptic problems do, the product with a smooth vector is small, and
  the error that rounded values make of it is not: residuals would part, and iterations be lost (up to a tenth of them), long before the precision of the values.
*/
static PetscErrorCode Compensate(KSP_GPU *k)
{
  GPUKSPVectors *f       = &k->launch.inner;
  GPUCSRProduct  rounded = {1, 0, f->p, NULL, f->w, 0, k->n}, exact = {1, 0, f->p, NULL, f->c0, 0, k->n};

  PetscFunctionBegin;
  ROWS(i) f->p[i] = 1;
  PetscCall((*k->inner.format->ops->mult)(&k->inner, &rounded));
  PetscCall((*k->S->format->ops->mult)(k->S, &exact));
  ROWS(i) f->c0[i] -= f->w[i];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUKSPDriveMixed(KSP ksp, KSP_GPU *k)
{
  GPUKSPState   *s = k->state;
  GPUKSPVectors *v = &k->launch.v;
  GPUKSPVectors *f = &k->launch.inner;
  GPUCSRProduct  p = {1, 0, f->p, NULL, f->w, 0, k->n};
  double         sum[GPUKSP_SUMS];

  PetscFunctionBegin;
  if (!s->guesszero) {
    const double *b = v->b;

    PetscCall(PetscArrayzero(sum, GPUKSP_SUMS));
    if (v->explicitpc) {
      v->from = b;
      v->to   = v->w;
      ROWS(i) GPUKSPStepRow(GPUKSP_PRECONDITION, v, s, i, sum);
    }
    ROWS(i) GPUKSPStepRow(GPUKSP_BNORM, v, s, i, sum);
    s->bnorm = GPUKSPNorm(s, sum);
  } else PetscCall(PetscArrayzero(v->x, k->n));
  PetscCall(Compensate(k));
  PetscCall(TrueResidual(ksp, k, (PetscBool)s->guesszero, sum));
  CGInit(s, sum);
  s->scale = sum[SUM_RR] > 0 ? sqrt(sum[SUM_RR]) : 1;
  s->rho /= s->scale * s->scale;
  CGBegin(s);
  PetscCall(Refined(k));
  PetscCall(PetscArrayzero(f->x, k->n));
  PetscCall(PetscArrayzero(f->p, k->n));
  while (!s->reason && !s->giveup) {
    PetscCall(StepMixed(k, GPUKSP_CG_DIRECTION, sum));
    PetscCall((*k->inner.format->ops->mult)(&k->inner, &p));
    ROWS(i) f->w[i] += f->c0[i] * f->p[i];
    PetscCall(StepMixed(k, GPUKSP_CG_CURVATURE, sum));
    CGCurvature(s, sum[0]);
    if (s->reason) break;
    if (f->explicitpc) {
      PetscCall(StepMixed(k, GPUKSP_CG_R, sum));
      f->from = f->r;
      f->to   = f->z;
      PetscCall(StepMixed(k, GPUKSP_PRECONDITION, sum));
      PetscCall(StepMixed(k, GPUKSP_NORMS, sum));
    } else PetscCall(StepMixed(k, GPUKSP_CG_RESIDUAL, sum));
    CGResidual(s, sum);
    CGMixed(s);
    if (s->replace) {
      PetscCall(StepMixed(k, GPUKSP_CG_FINISH, sum));
      ROWS(i)
      {
        v->x[i] += s->scale * f->x[i];
        f->x[i] = 0;
      }
      PetscCall(TrueResidual(ksp, k, PETSC_FALSE, sum));
      CGReplaced(s, sum, sum[SUM_RR] > 0 ? sqrt(sum[SUM_RR]) : 1);
      PetscCall(Refined(k));
    }
    if (!s->giveup) CGNext(s);
  }
  PetscCall(StepMixed(k, GPUKSP_CG_FINISH, sum));
  ROWS(i) v->x[i] += s->scale * f->x[i];
  s->scale = 1;
  if (k->guard) {
    PetscCall(TrueResidual(ksp, k, PETSC_FALSE, sum));
    s->truenorm = GPUKSPNorm(s, sum);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

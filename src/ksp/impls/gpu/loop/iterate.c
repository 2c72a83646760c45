/*
  Iterations as steps: a product, a preconditioner, and between them passes over the rows of vectors (steps.h). The same source serves both paths and all backends.

    graph      The vectors are the solver's own, on the matrix' device. A GPU records an iteration once as a graph and launches the graph again and again. The device applies the rules, and the
               host reads the outcome one iteration later. On the host backend the same steps are loops.
    host loop  PETSc shares the vectors. Products are MatMult() and preconditioners PCApply(), for any operator and any processes. The host applies the rules.

  If a monitor or the user's convergence test reads every iteration, the host applies the rules on both paths.
*/
#include "../common/gpukspimpl.h"
#include "steprow.h"
#include <limits.h>

/* Does the host read the norm of each iteration? On one rank, where a superfluous iteration is expensive */
static PetscBool Watched(const KSP_GPU *k)
{
  return (PetscBool)(!k->pc.row->rows && !k->ranks.on);
}

/* Does the step run from the last row to the first? */
static PetscBool Backwards(const KSP_GPU *k, GPUKSPStep step)
{
  const GPUKSPOrder order = GPUKSPStepKinds[step].order;

  if (order == GPUKSP_FUSED) return k->graph.fused;
  return (PetscBool)(order == GPUKSP_BACKWARDS || (order == GPUKSP_APART && (!k->graph.fused || k->pc.kind == GPUKSP_PC_BETWEEN_STEPS)));
}

/* One step on the given arrays; v NULL: on the arrays in single precision */
static PetscErrorCode Rows(KSP_GPU *k, GPUKSPStep step, const GPUKSPVectors *v, int turn, double sum[])
{
  const PetscBool            device = k->dev->ops->kernels;
  const GPUCSRStream         s      = k->dev->stream;
  const GPUKSPVectorsSingle *f      = v ? NULL : &k->single.v;
  GPUKSPStepArgs             args   = {
                  .method  = k->method,
                  .n       = k->n,
                  .partial = (double *)k->partial.p,
                  .sums    = k->sums,
                  .state   = (GPUKSPState *)k->devstate.p,
                  .seen    = k->seen,
                  .blocks  = k->stepblocks,
                  .rule    = PETSC_TRUE,
                  .first   = (GPUCSRBool)((turn & GPUKSP_STEP_FIRST) != 0),
                  .next    = (GPUCSRBool)((turn & GPUKSP_STEP_LAST) != 0),
                  .parts   = k->graph.nparts,
                  .most    = GPUCSR_MOST_PARTS(k->n),
                  .part    = (const double *)k->graph.parts.p,
                  .back    = Backwards(k, step),
                  .norms   = (GPUCSRBool)Watched(k),
  };

  PetscFunctionBegin;
  if (device) {
    const int nsums = GPUKSPStepKinds[step].sums;

    if (k->graph.rulehere || !(turn & GPUKSP_STEP_RULE)) {
      args.rule = PETSC_FALSE;
      if (k->graph.rulehere) args.state = k->state;
    } else if (k->ranks.on && nsums) args.mine = (double *)k->ranks.sums.p;
    PetscCall(GPUCSREither(k->dev, f ? GPUKSPStepDeviceSingle(step, f, &args, s) : GPUKSPStepDevice(step, v, &args, s), 0));
    if (args.mine) {
      const GPUCSRPeerSlots slots = MatGPUCSRRanksSlots_Private(&k->ranks.A);
      double *const         all   = args.mine + GPUKSP_SUMS;

      if (!slots.size) PetscCall(MatGPUCSRRanksGather_Private(&k->op, &k->ranks.A, args.mine, nsums, all));
      PetscCall(GPUCSREither(k->dev, GPUKSPStepRuleDevice(step, &slots, all, k->size, &args, s), 0));
    }
    if (!args.rule && nsums) {
      PetscCall(k->dev->ops->streamsynchronize(k->dev->id, s));
      PetscCall(PetscArraycpy(sum, k->sums, nsums));
    } else if (k->graph.rulehere) PetscCall(k->dev->ops->streamsynchronize(k->dev->id, s)); /* the host is about to change the state that it reads */
  }
  if (!device) PetscCall(GPUCSRWaitStreamOnHost(s));
  if (!device && args.parts)
    for (int i = 0; i < args.parts; i++)
      for (int q = 0; q < GPUKSPStepKinds[step].sums; q++) sum[q] += args.part[GPUKSPStepPart(step, q) * (size_t)args.most + (size_t)i];
  else if (!device && f)
    for (int i = 0; i < k->n; i++) GPUKSPStepRowSingle(step, f, k->state, i, sum);
  else if (!device)
    for (int i = 0; i < k->n; i++) GPUKSPStepRow(step, v, k->state, i, sum);
  if (!device) PetscCall(GPUCSRLaunched(k->dev, "a step of a solver"));
  k->graph.nparts = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One step; v NULL: in single precision. Without a rule its sums, if any, are in k->sums. ksp: for sums alone */
PetscErrorCode GPUKSPStepRun(KSP ksp, KSP_GPU *k, GPUKSPStep step, const GPUKSPVectors *v, int turn)
{
  double sum[GPUKSP_SUMS] = {0, 0, 0, 0, 0};

  PetscFunctionBegin;
  PetscCall(Rows(k, step, v, turn, sum));
  if (GPUKSPStepKinds[step].sums && (k->graph.rulehere || !(turn & GPUKSP_STEP_RULE))) { /* the sums over the processes, and the rule */
    const int n = GPUKSPStepKinds[step].sums;

    if (k->peers.on) PetscCall(GPUKSPPeersReduce(k, sum, n));
    else if (k->ranks.on) {
      const GPUCSRBackendOps *ops  = k->dev->ops;
      const size_t            size = (size_t)k->size;
      double *const mine = (double *)k->ranks.sums.p, *const all = mine + GPUKSP_SUMS;
      double        *here;
      PetscErrorCode ierr;

      PetscCall(PetscMalloc1(n * k->size, &here));
      ierr = ops->copy(k->dev->id, mine, sum, sizeof(double) * (size_t)n, GPUCSR_TO_DEVICE, k->dev->stream);
      if (!ierr) ierr = MatGPUCSRRanksGather_Private(&k->op, &k->ranks.A, mine, n, all);
      if (!ierr) ierr = ops->copy(k->dev->id, here, all, sizeof(double) * (size_t)n * size, GPUCSR_TO_HOST, k->dev->stream);
      if (!ierr) ierr = ops->streamsynchronize(k->dev->id, k->dev->stream);
      for (int q = 0; q < n; q++) sum[q] = 0;
      for (size_t r = 0; r < size && !ierr; r++) /* in this order on each rank: the same bits */
        for (int q = 0; q < n; q++) sum[q] += here[r * (size_t)n + (size_t)q];
      PetscCall(PetscFree(here));
      PetscCall(ierr);
      PetscCall(MatGPUCSRRanksCheck_Private(&k->ranks.A));
    } else if (k->taken == KSP_GPU_PATH_HOST_LOOP) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sum, n, MPI_DOUBLE, MPI_SUM, PetscObjectComm((PetscObject)ksp)));
    if (turn & GPUKSP_STEP_RULE) GPUKSPStepRule(step, k->state, sum, (turn & GPUKSP_STEP_FIRST) != 0);
    else PetscCall(PetscArraycpy(k->sums, sum, n));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* to = A from */
PetscErrorCode GPUKSPProduct(KSP ksp, KSP_GPU *k, int from, int to)
{
  double *const *at = k->persistent.v.at;

  PetscFunctionBegin;
  if (k->taken == KSP_GPU_PATH_HOST_LOOP) {
    Mat A;

    PetscCall(PCGetOperators(ksp->pc, &A, NULL));
    PetscCall(GPUKSPGive(k, &k->slot[from]));
    PetscCall(KSP_MatMult(ksp, A, k->slot[from].vec, k->slot[to].vec));
    PetscCall(GPUKSPLend(k, &k->slot[to]));
  } else if (k->ranks.on) {
    PetscCall(MatGPUCSRRanksMultiply_Private(&k->op, &k->ranks.A, PETSC_FALSE, 1, at[from], 0, NULL, at[to]));
  } else {
    if (k->peers.on) PetscCall(GPUKSPPeersExchange(k, at[from]));
    PetscCall(MatGPUCSROperatorMultiply_Private(&k->op, 1, at[from], 0, NULL, at[to]));
    if (k->peers.on) PetscCall(GPUKSPPeersAdd(k, at[from], at[to]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* to = A from, and the next step. If the solve's products can, the product takes the step's sums with two vectors (-1: none), and stores M to in place of to */
static PetscErrorCode ProductStep(KSP ksp, KSP_GPU *k, GPUKSPVectors *v, int from, int to, const int with[2], const double *M, GPUKSPStep step)
{
  PetscFunctionBegin;
  if (!v) PetscCall(GPUKSPRefineProduct(k));
  else if (k->graph.fused) {
    const GPUCSRSums sums = {(PetscBool)(GPUKSPStepKinds[step].sums > 1), v->at[with[0]], with[1] < 0 ? NULL : v->at[with[1]], M, (double *)k->graph.parts.p, &k->graph.nparts};

    PetscCall(MatGPUCSROperatorSums_Private(&k->op, v->at[from], &sums, v->at[to]));
  } else PetscCall(GPUKSPProduct(ksp, k, from, to));
  PetscCall(GPUKSPStepRun(ksp, k, step, v, GPUKSP_STEP_RULE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define STEP(step)        GPUKSPStepRun(ksp, k, step, v, GPUKSP_STEP_RULE)
#define AFTER(step)       GPUKSPStepRun(ksp, k, step, v, GPUKSP_STEP_ALWAYS)
#define LAST(step, first) GPUKSPStepRun(ksp, k, step, v, GPUKSP_STEP_RULE | (first ? GPUKSP_STEP_FIRST : 0) | GPUKSP_STEP_LAST)
#define ENDED             (k->graph.rulehere && k->state->reason)

/* to = M from. rule: within an iteration: skip the step if the solve rests */
PetscErrorCode GPUKSPPrecondition(KSP ksp, KSP_GPU *k, int from, int to, PetscBool rule)
{
  double *const *at = k->persistent.v.at;

  PetscFunctionBegin;
  if (k->taken == KSP_GPU_PATH_HOST_LOOP) {
    PetscCall(GPUKSPGive(k, &k->slot[from]));
    PetscCall(KSP_PCApply(ksp, k->slot[from].vec, k->slot[to].vec));
    PetscCall(GPUKSPLend(k, &k->slot[to]));
  } else {
    if (!k->dev->ops->kernels) PetscCall(GPUCSRWaitStreamOnHost(k->dev->stream));
    PetscCall((*k->pc.row->apply)(k, at[from], at[to], rule));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Between the two rules at the end of an iteration: history, monitors and the user's convergence test; then the second rule */
static PetscErrorCode After(KSP ksp, KSP_GPU *k, GPUKSPVectors *v, PetscBool first)
{
  GPUKSPState *s = k->state;

  PetscFunctionBegin;
  if (!k->graph.rulehere) PetscFunctionReturn(PETSC_SUCCESS); /* the step has applied the rule */
  if ((k->live || k->taken == KSP_GPU_PATH_HOST_LOOP) && s->reason != KSP_DIVERGED_NANORINF) {
    const PetscInt n = first ? 0 : s->i + 1;

    if (k->live) { /* the current iterate into PETSc's vector, for a monitor or a convergence test */
      if (k->method == GPUKSP_CG) {
        PetscCall(AFTER(GPUKSP_CG_FINISH));
        k->state->xalpha = 0;
      }
      PetscCall(GPUKSPStore(k, k->persistent.v.x, ksp->vec_sol));
    }
    ksp->its   = n;
    ksp->rnorm = s->rnorm;
    PetscCall(KSPLogResidualHistory(ksp, s->rnorm));
    PetscCall(KSPMonitor(ksp, n, s->rnorm));
    if (s->test == GPUKSP_TEST_HOST) {
      ksp->reason = KSP_CONVERGED_ITERATING;
      PetscCall((*ksp->converged)(ksp, n, s->rnorm, &ksp->reason, ksp->cnvP));
      s->reason = ksp->reason;
    }
    if (k->live) s->maxit = (int)PetscMin(ksp->max_it, INT_MAX / 2); /* they may have changed it */
  }
  GPUKSPNext(k->method, s, first);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With a nonzero initial guess: b - A x in w, and the norm of b, or of M b if left */
PetscErrorCode GPUKSPStart(KSP ksp, KSP_GPU *k, GPUKSPVectors *v, PetscBool left)
{
  PetscFunctionBegin;
  if (k->state->guesszero) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->state->normtype != KSP_NORM_NONE) {
    GPUKSPVectors u = *v;

    u.explicitpc = left && k->state->normtype != KSP_NORM_UNPRECONDITIONED ? v->explicitpc : 0;
    if (!left) u.pc = NULL;
    if (u.explicitpc) PetscCall(GPUKSPPrecondition(ksp, k, VEC_B, VEC_W, PETSC_TRUE));
    PetscCall(GPUKSPStepRun(ksp, k, GPUKSP_BNORM, &u, GPUKSP_STEP_RULE));
  }
  PetscCall(GPUKSPProduct(ksp, k, VEC_X, VEC_W));
  PetscCall(STEP(GPUKSP_SUBTRACT));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode StartCG(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  const PetscBool single = (PetscBool)(k->method == GPUKSP_CG_SINGLE_REDUCTION);

  PetscFunctionBegin;
  PetscCall(GPUKSPStart(ksp, k, v, PETSC_TRUE));
  PetscCall(STEP(GPUKSP_CG_START));
  if (v->explicitpc) PetscCall(GPUKSPPrecondition(ksp, k, VEC_R, VEC_Z, PETSC_TRUE));
  if (single) {
    PetscCall(STEP(GPUKSP_CG1_START));
    PetscCall(GPUKSPProduct(ksp, k, VEC_Z, VEC_S));
  }
  PetscCall(LAST(single ? GPUKSP_CG1_NORMS : GPUKSP_NORMS, PETSC_TRUE));
  PetscCall(After(ksp, k, v, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* v NULL: in single precision */
PetscErrorCode GPUKSPIterateCG(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  const PetscBool apart = (PetscBool)k->persistent.v.explicitpc;

  PetscFunctionBegin;
  PetscCall(STEP(GPUKSP_CG_DIRECTION));
  PetscCall(ProductStep(ksp, k, v, VEC_P, VEC_W, (const int[]){VEC_P, -1}, NULL, GPUKSP_CG_CURVATURE));
  if (ENDED) PetscFunctionReturn(PETSC_SUCCESS);
  if (apart) {
    PetscCall(STEP(GPUKSP_CG_R));
    k->graph.normed = (PetscBool)(k->graph.fused && !k->pc.flexible);
    if (v) PetscCall(GPUKSPPrecondition(ksp, k, VEC_R, VEC_Z, PETSC_TRUE));
    else PetscCall(STEP(GPUKSP_PRECONDITION));
    k->graph.normed = PETSC_FALSE;
  }
  PetscCall(LAST(!apart ? GPUKSP_CG_RESIDUAL : k->pc.flexible ? GPUKSP_FLEXIBLE_NORMS : GPUKSP_NORMS, PETSC_FALSE));
  PetscCall(After(ksp, k, v, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode IterateCGSingle(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  PetscFunctionBegin;
  PetscCall(STEP(GPUKSP_CG1_UPDATE));
  if (v->explicitpc) PetscCall(GPUKSPPrecondition(ksp, k, VEC_R, VEC_Z, PETSC_TRUE));
  PetscCall(GPUKSPProduct(ksp, k, VEC_Z, VEC_S));
  PetscCall(LAST(GPUKSP_CG1_NORMS, PETSC_FALSE));
  PetscCall(After(ksp, k, v, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode StartBCGS(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  const PetscBool left = (PetscBool)(ksp->pc_side == PC_LEFT);

  PetscFunctionBegin;
  PetscCall(GPUKSPStart(ksp, k, v, left));
  PetscCall(STEP(GPUKSP_CG_START));
  if (left && v->explicitpc) PetscCall(GPUKSPPrecondition(ksp, k, VEC_R, VEC_T, PETSC_TRUE));
  PetscCall(LAST(GPUKSP_BCGS_START, PETSC_TRUE));
  PetscCall(After(ksp, k, v, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode IterateBCGS(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  const PetscBool left = (PetscBool)(ksp->pc_side == PC_LEFT), before = (PetscBool)(!left && v->explicitpc), behind = (PetscBool)(left && v->explicitpc), hat = (PetscBool)(!left && (v->explicitpc || v->pc));

  PetscFunctionBegin;
  if (before) PetscCall(GPUKSPPrecondition(ksp, k, VEC_P, VEC_PH, PETSC_TRUE));
  if (behind) {
    PetscCall(GPUKSPProduct(ksp, k, VEC_P, VEC_W));
    PetscCall(GPUKSPPrecondition(ksp, k, VEC_W, VEC_V, PETSC_TRUE));
    PetscCall(STEP(GPUKSP_BCGS_V));
  } else PetscCall(ProductStep(ksp, k, v, hat ? VEC_PH : VEC_P, VEC_V, (const int[]){VEC_RP, -1}, hat ? NULL : v->pc, GPUKSP_BCGS_V));
  if (ENDED) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(STEP(GPUKSP_BCGS_S));
  if (before) PetscCall(GPUKSPPrecondition(ksp, k, VEC_S, VEC_SH, PETSC_TRUE));
  if (behind) {
    PetscCall(GPUKSPProduct(ksp, k, VEC_S, VEC_W));
    PetscCall(GPUKSPPrecondition(ksp, k, VEC_W, VEC_T, PETSC_TRUE));
    PetscCall(STEP(GPUKSP_BCGS_T));
  } else PetscCall(ProductStep(ksp, k, v, hat ? VEC_SH : VEC_S, VEC_T, (const int[]){VEC_S, VEC_RP}, hat ? NULL : v->pc, GPUKSP_BCGS_T));
  if (ENDED) {
    if (k->state->lucky && (k->live || k->taken == KSP_GPU_PATH_HOST_LOOP)) {
      PetscCall(KSPLogResidualHistory(ksp, k->state->rnorm));
      PetscCall(KSPMonitor(ksp, k->state->i + 1, 0));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(LAST(GPUKSP_BCGS_ADVANCE, PETSC_FALSE));
  PetscCall(After(ksp, k, v, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Have the ranks launched all iterations? All ranks must launch equally many. Before iteration q, all but the last `ahead` are known to be done. The state, the same on all ranks, has the iteration i;
  the solve has come to rest in i or in i - 1. So all ranks go on to i + ahead, whenever they see the rest.
*/
static PetscBool RanksRest(const volatile GPUKSPState *seen, int q, int ahead)
{
  return (PetscBool)(GPUKSPRests(seen) && (q == 0 || q > seen->i + ahead));
}

/* An iteration as a graph, k->graph.recorded: an update of the graph of earlier data, if there is one; NULL if the iteration cannot be a graph */
PetscErrorCode GPUKSPGraphRecord(KSP ksp, KSP_GPU *k, GPUKSPVectors *v, GPUKSPIteration iteration)
{
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  if (k->ranks.on) PetscCall(MatGPUCSRRanksRecord_Private(&k->ranks.A, PETSC_TRUE));
  PetscCall(GPUCSREither(k->dev, GPUCSRLaunchGraphBegin(k->dev->stream), 0));
  GPUCSRTry(&attempt, (*iteration)(ksp, k, v));
  if (k->ranks.on) PetscCall(MatGPUCSRRanksRecord_Private(&k->ranks.A, PETSC_FALSE));
  k->graph.recorded = k->graph.stale;
  k->graph.stale    = NULL;
  PetscCall(GPUCSREither(k->dev, GPUCSRLaunchGraphEnd(k->dev->stream, &k->graph.recorded), 0));
  if (attempt.error) PetscCall(GPUCSREither(k->dev, GPUCSRLaunchGraphDestroy(&k->graph.recorded), 0));
  if (!k->graph.recorded) PetscCall(PetscInfo(ksp, "An iteration could not be recorded as a graph; its kernels are launched one by one\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the iteration after q, the last launched one, needed before q has ended? By its number, or if two more iterations like the last would not converge. `before` and `now`: norms before q */
static PetscBool GoesOn(const volatile GPUKSPState *seen, int q, double before, double now)
{
  const double factor = before > 0 ? now / before : 0.1;

  return (PetscBool)(q + 1 < seen->maxit && (seen->test == GPUKSP_TEST_SKIP || (seen->test == GPUKSP_TEST_DEFAULT && now * factor * factor > seen->ttol)));
}

/*
  Iterates until the solve rests; k->state has the reason. *k->seen must not be from an earlier rest. With a device the host launches ahead and reads the outcome one iteration later; a superfluous
  application of a cycle is expensive, and there it launches ahead far from convergence only. The first iteration is not recorded, because it may prepare objects that later iterations reuse.
*/
PetscErrorCode GPUKSPLoop(KSP ksp, KSP_GPU *k, GPUKSPVectors *v, GPUKSPIteration iteration)
{
  PetscFunctionBegin;
  if (k->graph.rulehere)
    while (!GPUKSPRests(k->state)) PetscCall((*iteration)(ksp, k, v));
  else {
    const GPUCSRBackendOps     *ops    = k->dev->ops;
    const volatile GPUKSPState *seen   = k->seen;
    const int                   ahead  = !k->ranks.on || k->pc.row->rows || k->rows / k->size < GPUCSRMachineShared.ahead_rows; /* the same on all ranks, which must launch equally many iterations */
    int                         q      = 0;
    double                      before = 0, now;

    PetscCall(ops->streamsynchronize(k->dev->id, k->dev->stream));
    now = seen->rnorm;
    if (!k->graph.recorded && !GPUKSPRests(seen)) {
      PetscCall((*iteration)(ksp, k, v));
      q++;
      if (k->ranks.on) PetscCall(ops->streamsynchronize(k->dev->id, k->dev->stream));
      if (!k->ranks.on || !GPUKSPRests(seen)) PetscCall(GPUKSPGraphRecord(ksp, k, v, iteration)); /* while the device computes */
      PetscCall(ops->streamsynchronize(k->dev->id, k->dev->stream));
      before = now;
      now    = seen->rnorm;
    }
    for (const int first = q; k->ranks.on ? !RanksRest(seen, q, ahead) : !GPUKSPRests(seen); q++) {
      if (!k->graph.recorded) PetscCall((*iteration)(ksp, k, v));
      else {
        PetscCall(GPUCSREither(k->dev, GPUCSRLaunchGraphLaunch(k->graph.recorded, k->dev->stream), 0));
        if (k->ranks.on) PetscCall(MatGPUCSRRanksPlayed_Private(&k->op, &k->ranks.A));
      }
      PetscCall(ops->eventrecord(k->dev->id, k->events[q % 2], k->dev->stream));
      if (q >= first + ahead) PetscCall(ops->eventsynchronize(k->dev->id, k->events[(q - ahead) % 2]));
      if (!Watched(k)) continue;
      if (q > first) {
        before = now;
        now    = seen->rnorm;
      }
      if (!GoesOn(seen, q, before, now)) PetscCall(ops->eventsynchronize(k->dev->id, k->events[q % 2]));
    }
    PetscCall(ops->streamsynchronize(k->dev->id, k->dev->stream));
    *k->state = *k->seen;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The graph is not launched again; a graph of one process may be updated */
PetscErrorCode GPUKSPGraphForget(KSP_GPU *k)
{
  PetscFunctionBegin;
  if (k->graph.recorded && !k->graph.stale && !k->ranks.on) k->graph.stale = k->graph.recorded;
  else PetscCall(GPUCSREither(k->dev, GPUCSRLaunchGraphDestroy(&k->graph.recorded), 0));
  k->graph.recorded = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Drops the graph if the next solve cannot use it, as always in single precision */
PetscErrorCode GPUKSPIterateEnd(KSP_GPU *k)
{
  PetscFunctionBegin;
  if (k->refined || k->graph.rulehere || (k->ranks.on && !MatGPUCSRRanksSlots_Private(&k->ranks.A).size)) PetscCall(GPUKSPGraphForget(k)); /* NCCL's communicator must not go before a graph that has it */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device applies the rules if the vectors are the solver's own and nothing reads the iterations. An earlier solve's graph stays if this solve's iteration is the same */
PetscErrorCode GPUKSPIterateBegin(KSP ksp, KSP_GPU *k)
{
  const GPUCSRVersion none = {0, 0}, off = k->ranks.on ? k->ranks.A.off.version : none;
  const GPUKSPKey     key =
    GPUKSPKeyOf(GPUKSPVersionOf(k->op.version), GPUKSPAddress(k->op.plan->A.array[0].data), GPUKSPAddress(k->pc.row), ((PetscObject)ksp->pc)->id, k->pc.variant, k->method, ksp->pc_side == PC_RIGHT, k->n, GPUKSPVersionOf(off), k->ranks.on ? k->ranks.A.made : 0);

  PetscFunctionBegin;
  k->graph.rulehere = (PetscBool)(!k->dev->ops->kernels || k->taken != KSP_GPU_PATH_GRAPH || k->live);
  if (k->refined || k->graph.rulehere || !k->pc.row->lasting || !GPUKSPSame(key, k->graph.key) || memcmp(&k->graph.v, &k->persistent.v, sizeof(k->graph.v))) PetscCall(GPUKSPGraphForget(k));
  k->graph.key = key;
  k->graph.v   = k->persistent.v;
  if (k->graph.rulehere) PetscFunctionReturn(PETSC_SUCCESS);
  *k->seen = *k->state;
  PetscCall(k->dev->ops->copy(k->dev->id, k->devstate.p, k->state, sizeof(*k->state), GPUCSR_TO_DEVICE, k->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* |b - A x| in the norm of the convergence test, after the solve */
PetscErrorCode GPUKSPTrueNorm(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  const PetscBool left = (PetscBool)(k->method != GPUKSP_BCGS || ksp->pc_side == PC_LEFT);
  GPUKSPVectors   u;

  PetscFunctionBegin;
  PetscCall(GPUKSPProduct(ksp, k, VEC_X, VEC_W));
  PetscCall(AFTER(GPUKSP_SUBTRACT));
  if (left && v->explicitpc) PetscCall(GPUKSPPrecondition(ksp, k, VEC_W, VEC_T, PETSC_FALSE));
  u   = *v;
  u.r = v->w;
  u.z = v->t;
  if (!left) {
    u.explicitpc = 0;
    u.pc         = NULL;
  }
  PetscCall(GPUKSPStepRun(ksp, k, GPUKSP_NORMS, &u, GPUKSP_STEP_ALWAYS));
  k->state->truenorm = GPUKSPNorm(k->state, k->sums);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Runs the solve that k->state describes, with x and b in place; leaves the outcome in k->state */
PetscErrorCode GPUKSPIterate(KSP ksp, KSP_GPU *k)
{
  static const struct {
    PetscErrorCode (*start)(KSP, KSP_GPU *, GPUKSPVectors *);
    GPUKSPIteration iteration;
  } methods[] = {
    [GPUKSP_CG]                  = {StartCG,   GPUKSPIterateCG},
    [GPUKSP_CG_SINGLE_REDUCTION] = {StartCG,   IterateCGSingle},
    [GPUKSP_BCGS]                = {StartBCGS, IterateBCGS    },
  };
  GPUKSPVectors *const v = &k->persistent.v;

  PetscFunctionBegin;
  PetscCall(GPUKSPIterateBegin(ksp, k));
  PetscCall((*methods[k->method].start)(ksp, k, v));
  PetscCall(GPUKSPLoop(ksp, k, v, methods[k->method].iteration));
  PetscCall(GPUKSPIterateEnd(k));
  if (k->method == GPUKSP_CG) PetscCall(AFTER(GPUKSP_CG_FINISH));
  if (k->state->lucky) PetscCall(AFTER(GPUKSP_BCGS_LUCKY));
  if (k->trueresidual && (k->trueresidualasked || k->graph.rulehere || k->pc.row->rows || k->state->its >= GPUCSRMachineShared.true_norm_iterations)) PetscCall(GPUKSPTrueNorm(ksp, k, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

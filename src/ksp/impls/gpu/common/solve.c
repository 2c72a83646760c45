/*
  A solve from beginning to end: preparation, the run, and the report to PETSc, also for -log_view; or a fall back to PETSc's own method.
*/
#include "gpukspimpl.h"
#include "../../petsc/methods.h"
#include <limits.h>
#include <math.h>
#include <petsctime.h>

static GPUCSRLogEvent events[4]; /* of the paths, by KSPGPUPath */

/* rules.h names them without PETSc's headers */
_Static_assert((int)GPUKSP_CONVERGED_ITERATING == (int)KSP_CONVERGED_ITERATING && (int)GPUKSP_CONVERGED_RTOL == (int)KSP_CONVERGED_RTOL && (int)GPUKSP_CONVERGED_ATOL == (int)KSP_CONVERGED_ATOL && (int)GPUKSP_CONVERGED_ITS == (int)KSP_CONVERGED_ITS, "reasons");
_Static_assert((int)GPUKSP_DIVERGED_ITS == (int)KSP_DIVERGED_ITS && (int)GPUKSP_DIVERGED_DTOL == (int)KSP_DIVERGED_DTOL && (int)GPUKSP_DIVERGED_BREAKDOWN == (int)KSP_DIVERGED_BREAKDOWN && (int)GPUKSP_DIVERGED_INDEFINITE_PC == (int)KSP_DIVERGED_INDEFINITE_PC, "reasons");
_Static_assert((int)GPUKSP_DIVERGED_NANORINF == (int)KSP_DIVERGED_NANORINF && (int)GPUKSP_DIVERGED_INDEFINITE_MAT == (int)KSP_DIVERGED_INDEFINITE_MAT, "reasons");
_Static_assert((int)GPUKSP_NORM_NONE == (int)KSP_NORM_NONE && (int)GPUKSP_NORM_PRECONDITIONED == (int)KSP_NORM_PRECONDITIONED && (int)GPUKSP_NORM_UNPRECONDITIONED == (int)KSP_NORM_UNPRECONDITIONED && (int)GPUKSP_NORM_NATURAL == (int)KSP_NORM_NATURAL, "norms");

/* Rounding error of any solve, relative to the norm of the right-hand side or of the first residual */
#define USUAL_GAP 1e-12

/* The solver in single precision replaces the residual after it has shrunk by this factor */
#define UPDATE 1e-2

/* Falls back to PETSc's own method, with one message for each solver */
PetscErrorCode GPUKSPFallBack(KSP ksp, const char why[])
{
  KSP_GPU            *k     = (KSP_GPU *)ksp->data;
  const KSPSetUpStage stage = ksp->setupstage;
  KSPNormType         norm;

  PetscFunctionBegin;
  PetscCall(PetscFPrintf(PetscObjectComm((PetscObject)ksp), PETSC_STDERR, "KSP type %s: %s solves instead, because %s\n", ((PetscObject)ksp)->type_name, k->petsc, why));
  PetscCall(GPUCSRSolvesInstead((PetscObject)ksp, why));
  PetscCall((*k->become)(ksp));
  PetscCall(KSPGetNormType(ksp, &norm)); /* sets norm and side for the new type */
  PetscCall((*ksp->ops->setup)(ksp));
  ksp->setupstage = stage; /* with a new type KSPSetUp() starts over and would scale the matrix by its diagonal again */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode StateInit(KSP ksp, KSP_GPU *k)
{
  GPUKSPState            *s    = k->state;
  KSPConvergedDefaultCtx *cctx = (KSPConvergedDefaultCtx *)ksp->cnvP;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(s, sizeof(*s)));
  s->normtype  = (int)ksp->normtype;
  s->test      = ksp->converged == KSPConvergedDefault ? GPUKSP_TEST_DEFAULT : ksp->converged == KSPConvergedSkip ? GPUKSP_TEST_SKIP : GPUKSP_TEST_HOST;
  s->guesszero = (int)ksp->guess_zero;
  if (s->test == GPUKSP_TEST_DEFAULT) {
    s->initialrtol    = (int)cctx->initialrtol;
    s->mininitialrtol = (int)cctx->mininitialrtol;
    s->convmaxits     = (int)cctx->convmaxits;
  }
  s->maxit   = (int)PetscMin(ksp->max_it, INT_MAX / 2);
  s->chknorm = (int)ksp->chknorm;
#if GPUCSR_KSP_HAS_MINIT
  s->minit = (int)ksp->min_it;
#endif
#if GPUCSR_KSP_HAS_NEGCURVE
  s->negcurve = (int)ksp->converged_neg_curve;
#endif
  s->rtol     = ksp->rtol;
  s->abstol   = ksp->abstol;
  s->divtol   = ksp->divtol;
  s->flexible = k->pc.flexible;
  s->refined  = k->refined;
  s->update   = UPDATE;
  s->scale    = 1;
  s->truenorm = -1;
  if (!k->live && k->taken != KSP_GPU_PATH_HOST_LOOP && (ksp->res_hist || ksp->numbermonitors)) { /* otherwise the host has passed on each norm at once */
    s->hist    = (double *)k->hist.p;
    s->histmax = (int)(k->hist.bytes / sizeof(double));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The residual norms that a solve has left on the device; NULL: none */
static PetscErrorCode Norms(KSP_GPU *k, double **norms, int *n)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *norms = NULL;
  *n     = k->state->hist ? (int)PetscMin((size_t)k->state->recorded, k->hist.bytes / sizeof(double)) : 0;
  if (!*n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(*n, norms));
  ierr = GPUCSRDownload(k->dev, *norms, GPUCSR_DOUBLE, k->hist.p, GPUCSR_DOUBLE, (size_t)*n, PETSC_FALSE, k->dev->stream);
  if (ierr) PetscCall(PetscFree(*norms));
  PetscFunctionReturn(ierr);
}

/* Launches one persistent kernel on vectors in place, and copies x to the host behind the kernel, unless x is NULL. Logs the reductions: superfluous synchronisations take time but change no result */
static PetscErrorCode Launch(KSP ksp, KSP_GPU *k, const GPUCSROperand *x)
{
  const GPUCSRDevice dev   = k->dev;
  unsigned *const    first = k->peers.on ? &k->persistent.here : &k->persistent.epoch; /* of the slots of this process */
  unsigned           since;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  if (!*first || *first > UINT_MAX / 2) { /* before the epoch wraps around: old flags could look new */
    PetscCall(dev->ops->zero(dev->id, k->launch.slots.p, GPUKSP_SLOTS_BYTES, dev->stream));
    *first = 1;
  }
  since                      = k->persistent.epoch;
  k->persistent.right        = (PetscBool)(ksp->pc_side == PC_RIGHT);
  k->persistent.trueresidual = k->trueresidual;
  ierr                       = GPUCSREither(dev, GPUKSPPersistentSolve(&k->persistent, dev->stream), PETSC_ERR_PLIB);
  if (!ierr && x) ierr = GPUCSRDownload(dev, x->p, GPUCSR_DOUBLE, k->persistent.v.x, GPUCSR_DOUBLE, (size_t)k->n, x->pinned, dev->stream);
  if (!ierr) ierr = dev->ops->streamsynchronize(dev->id, dev->stream);
  if (x && dev->ops->separate) VecGPUCrossed(PETSC_FALSE, (size_t)k->n);
  k->persistent.epoch = ierr ? 0 : k->state->epoch;
  k->persistent.here  = ierr ? 0 : k->state->here;
  PetscCall(ierr);
  PetscCall(PetscInfo(ksp, "One launch: %u reductions over the grid, %d iterations%s\n", k->state->epoch - since, k->state->its, k->persistent.halo ? ", halos recomputed" : ""));
  PetscCall(MatGPUCSROperatorEnd_Private(&k->op, k->state->its * (k->method == GPUKSP_BCGS ? 2 : 1)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The last step of a rank by itself, before work with other ranks: copies b and x to the solve's vectors */
PetscErrorCode GPUKSPBegin(KSP ksp, KSP_GPU *k)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSROperatorBegin_Private(&k->op));
  PetscCall(GPUKSPLoad(k, ksp->vec_rhs, k->persistent.v.b));
  if (!ksp->guess_zero) PetscCall(GPUKSPLoad(k, ksp->vec_sol, k->persistent.v.x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has another rank given up? Its message is the error */
static PetscErrorCode RanksCheck(const KSP_GPU *k)
{
  return k->ranks.on ? MatGPUCSRRanksCheck_Private(&k->ranks.A) : k->peers.on ? GPUCSRPeersCheck(k->peers.group) : PETSC_SUCCESS;
}

/* Runs the chosen path; leaves x in the solution vector */
static PetscErrorCode Run(KSP ksp, KSP_GPU *k)
{
  PetscFunctionBegin;
  /* one process: a kernel on the arrays of b and x, in place if the device has the arrays. On return the solution vector is complete */
  if (k->taken == KSP_GPU_PATH_PERSISTENT && k->size == 1) {
    const PetscBool guess = (PetscBool)!ksp->guess_zero;
    GPUKSPVectors  *v     = &k->persistent.v;
    double *const ownx = v->x, *const ownb = v->b;
    GPUCSROperand  b, x;
    PetscErrorCode ierr;

    PetscCall(MatGPUCSROperatorBegin_Private(&k->op));
    PetscCall(GPUKSPTake(k, ksp->vec_rhs, PETSC_TRUE, PETSC_FALSE, &b, &v->b));
    PetscCall(GPUKSPTake(k, ksp->vec_sol, guess, PETSC_TRUE, &x, &v->x));
    ierr = Launch(ksp, k, x.place == GPUCSR_DEVICE ? NULL : &x);
    v->x = ownx;
    v->b = ownb;
    PetscCall(MatGPUCSROperatorVecRestore_Private(&k->op, ksp->vec_sol, guess, PETSC_TRUE, &x));
    PetscCall(MatGPUCSROperatorVecRestore_Private(&k->op, ksp->vec_rhs, PETSC_TRUE, PETSC_FALSE, &b));
    PetscFunctionReturn(ierr);
  }
  if (k->taken == KSP_GPU_PATH_GRAPH && k->size == 1) PetscCall(GPUKSPBegin(ksp, k)); /* otherwise it was called before */
  if (k->taken == KSP_GPU_PATH_PERSISTENT) PetscCall(Launch(ksp, k, NULL));
  else if (k->refined) {
    PetscCall(GPUKSPRefine(ksp, k));
    if (CGGivenUp(k->state) && !CGImproved(k->state)) PetscFunctionReturn(PETSC_SUCCESS); /* the initial guess is better */
  } else PetscCall(GPUKSPIterate(ksp, k));
  PetscCall(k->dev->ops->streamsynchronize(k->dev->id, k->dev->stream));
  PetscCall(GPUKSPPCCheck(k));
  PetscCall(RanksCheck(k));
  PetscCall(GPUKSPStore(k, k->persistent.v.x, ksp->vec_sol));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Runs a solve by several ranks without MPI. Before the launch all ranks together may still take another path. Afterwards an error or an endless wait on one rank becomes an error on all ranks in bounded
  time, since the ranks can no longer agree on another path
*/
static PetscErrorCode RunRanks(KSP ksp, KSP_GPU *k, char why[])
{
  GPUCSRAttempt attempt;
  PetscBool     any;

  PetscFunctionBegin;
  GPUCSRTry(&attempt, GPUKSPBegin(ksp, k));
  GPUCSRThen(&attempt, k->dev->ops->streamsynchronize(k->dev->id, k->dev->stream));
  PetscCall(GPUKSPAgree(ksp, k, &attempt, "", why));
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->ranks.on) {
    PetscCall(MatGPUCSRRanksSolving_Private(&k->ranks.A, PETSC_TRUE));
    PetscCall(GPUKSPPCSolving(k, PETSC_TRUE));
  }
  GPUCSRTry(&attempt, Run(ksp, k));
  GPUCSRThen(&attempt, Norms(k, &k->norms, &k->nnorms));
  if (k->ranks.on) {
    PetscCall(MatGPUCSRRanksSolving_Private(&k->ranks.A, PETSC_FALSE));
    PetscCall(GPUKSPPCSolving(k, PETSC_FALSE));
  }
  if (attempt.error) { /* tell the other ranks not to wait for this rank */
    k->persistent.epoch = k->persistent.here = 0;
    if (k->ranks.on) {
      PetscCall(GPUKSPGraphForget(k));
      PetscCall(MatGPUCSRRanksFail_Private(&k->ranks.A, attempt.message));
      PetscCall(GPUKSPPCFail(k, attempt.message));
    } else PetscCall(GPUCSRPeersDead(k->peers.group, attempt.message));
  }
  PetscCall(GPUKSPEndAllreduce(ksp, attempt.error, &any));
  if (any) PetscCall(PetscFree(k->norms));
  PetscCheck(!attempt.error, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
  if (!any) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(RanksCheck(k));
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_GPU, "Another rank has failed at the end of this solve");
}

/* The state of a solve that continues after `its` iterations of another, with the same target. left: are any iterations left? */
static PetscErrorCode StateGoOn(KSP ksp, KSP_GPU *k, const GPUKSPState *before, int its, PetscBool *left)
{
  GPUKSPState *s = k->state;

  PetscFunctionBegin;
  PetscCall(StateInit(ksp, k));
  if (before->ttol > 0) {
    s->rtol   = 0;
    s->abstol = before->ttol;
  }
  *left = (PetscBool)(its < s->maxit);
  if (!*left) PetscFunctionReturn(PETSC_SUCCESS);
  s->maxit -= its;
  s->minit -= its;
  s->chknorm -= its;
  if (s->hist) { /* its first norm repeats the last of the previous solve */
    s->hist += PetscMin(its, s->histmax);
    s->histmax -= PetscMin(its, s->histmax);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Continues the solve in double after a stall of single precision, from the current iterate if it is better than the initial guess. The user sees one solve, with the same target and one count of
  iterations. A product confirms convergence in double too: the solve restarts from x as long as restarts help.
*/
static PetscErrorCode GoOnInDouble(KSP ksp, KSP_GPU *k, char why[])
{
  const GPUKSPState before = *k->state;
  const PetscBool   zero = ksp->guess_zero, trueresidual = k->trueresidual;
  GPUKSPState      *s;
  PetscReal         last = PETSC_INFINITY, rnorm = before.rnorm, truenorm = -1;
  int               its = before.its, recorded = before.recorded;
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  PetscCall(PetscInfo(ksp, "Single precision made no progress after %d iterations; the solve continues in double\n", its));
  PetscCall(GPUCSRBufferFree(k->dev, &k->single.memory));
  k->precision = KSP_GPU_DOUBLE;
  ierr         = GPUKSPPrepare(ksp, k, why);
  k->precision = KSP_GPU_RESIDUAL_REPLACEMENT;
  PetscCall(ierr);
  if (CGImproved(&before)) ksp->guess_zero = PETSC_FALSE;
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(k->whydouble, sizeof(k->whydouble), "single precision made no progress after %d iterations", its));
  k->trueresidual = PETSC_TRUE;
  s               = k->state;
  for (;;) {
    PetscBool says, left = PETSC_FALSE;

    PetscCall(StateGoOn(ksp, k, &before, its, &left));
    if (!left) {
      s->rnorm    = rnorm;
      s->truenorm = truenorm;
      s->reason   = s->test == GPUKSP_TEST_SKIP || s->convmaxits ? KSP_CONVERGED_ITS : KSP_DIVERGED_ITS;
      break;
    }
    PetscCall(Run(ksp, k));
    recorded = its + s->recorded;
    its += s->its;
    rnorm    = s->rnorm;
    truenorm = s->truenorm;
    says     = (PetscBool)(s->reason > 0 && s->reason != KSP_CONVERGED_ITS && s->reason != GPUKSP_NEG_CURVE && s->test == GPUKSP_TEST_DEFAULT && s->normtype != KSP_NORM_NONE);
    if (!says || s->truenorm <= s->ttol) break;
    if (!(s->truenorm <= last / 2)) {
      s->reason = KSP_DIVERGED_BREAKDOWN;
      break;
    }
    last            = s->truenorm;
    ksp->guess_zero = PETSC_FALSE;
  }
  k->trueresidual = trueresidual;
  ksp->guess_zero = zero;
  s->recorded     = recorded;
  s->its          = its;
  s->replacements = before.replacements;
  s->rnorm0       = before.rnorm0;
  if (!trueresidual) s->truenorm = -1;
  if (s->reason == KSP_CONVERGED_ATOL && s->rnorm >= before.abstol) s->reason = KSP_CONVERGED_RTOL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Calls run(). A failure of the device before it returns the solution is no error: b and an initial guess on the host are unchanged, and PETSc's method solves. The host loop may have replaced the guess
  by an iterate, an equally good guess. With several processes a failure in the host loop is an error, because all processes wait for the sums of the failed process.
*/
static PetscErrorCode Attempt(KSP ksp, KSP_GPU *k, PetscErrorCode (*run)(KSP, KSP_GPU *), char why[])
{
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  if (k->peers.on || k->ranks.on) PetscFunctionReturn(RunRanks(ksp, k, why));
  if ((k->taken == KSP_GPU_PATH_HOST_LOOP && k->size > 1) || k->op.required) PetscFunctionReturn((*run)(ksp, k));
  GPUCSRTry(&attempt, (*run)(ksp, k));
  if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(attempt.error == PETSC_ERR_MEM || attempt.error == PETSC_ERR_GPU, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
  if (attempt.error == PETSC_ERR_GPU) PetscCall(PetscStrncpy(k->dev->failed, attempt.message, sizeof(k->dev->failed)));
  PetscCall(PetscSNPrintf(why, GPUKSP_WHY, "the device failed: %s", attempt.message));
  if (ksp->guess_zero) PetscCall(VecSet(ksp->vec_sol, 0)); /* KSPSolve() had zeroed the solution, but the host loop may have changed it */
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUKSPAttempt(KSP ksp, KSP_GPU *k, PetscErrorCode (*run)(KSP, KSP_GPU *), char why[])
{
  const GPUCSRDevice    dev   = k->dev; /* may fail meanwhile */
  GPUCSRLogEvent *const event = &events[k->taken];

  PetscFunctionBegin;
  why[0] = 0;
  PetscCall(GPUCSRLogBegin(event, dev, ksp));
  PetscCall(Attempt(ksp, k, run, why));
  PetscCall(GPUCSRLogEnd(event, dev, ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve of CG or BiCGStab after its preparation */
PetscErrorCode KSPSolve_GPU(KSP ksp, KSP_GPU *k, char why[])
{
  PetscFunctionBegin;
  PetscCall(StateInit(ksp, k));
  PetscCall(GPUKSPAttempt(ksp, k, Run, why));
  if (!why[0] && k->refined && CGGivenUp(k->state)) PetscCall(GoOnInDouble(ksp, k, why));
  if (!why[0]) { /* the report to PETSc: history and monitors, reason, norms. Solves of several ranks have reported their history already */
    const GPUKSPState *s    = k->state;
    double            *hist = k->norms;
    int                n    = k->nnorms;

    k->norms = NULL;
    if (!hist) PetscCall(Norms(k, &hist, &n));
    for (int q = 0; q < n; q++) {
      ksp->its   = q;
      ksp->rnorm = hist[q];
      PetscCall(KSPLogResidualHistory(ksp, hist[q]));
      PetscCall(KSPMonitor(ksp, q, s->lucky && q == n - 1 ? 0 : hist[q]));
    }
    PetscCall(PetscFree(hist));
    ksp->its    = s->its;
    ksp->rnorm  = s->rnorm;
    ksp->rnorm0 = s->rnorm0;
    ksp->ttol   = s->ttol;
    ksp->reason = (KSPConvergedReason)s->reason;
    if (ksp->reason == KSP_DIVERGED_NANORINF) {
      PetscCall(GPUKSPCheckNorm(ksp, GPUKSPBad(s->rnorm) ? (PetscReal)s->rnorm : (PetscReal)NAN));
      if (ksp->reason != KSP_DIVERGED_PC_FAILED) ksp->rnorm = s->rnorm;
    }
    k->truenorm = s->truenorm;
    k->single.replacements += s->replacements;
    PetscCall(PetscLogFlops((double)s->its * ((k->method == GPUKSP_BCGS ? 4.0 : 2.0) * (double)k->op.plan->A.nnz + (k->method == GPUKSP_BCGS ? 20.0 : 13.0) * (double)k->n)));
    PetscCall(PetscInfo(ksp, "%s after %d iterations, residual norm %g, true residual norm %g; path %s%s%s\n", KSPConvergedReasons[ksp->reason], s->its, s->rnorm, s->truenorm, KSPGPUPaths[k->taken], k->why[0] ? " because " : "", k->why));
    /* a recurrence that has drifted from the true residual claims convergence although b - A x has not converged */
    if (k->truenorm >= 0 && ksp->reason > 0 && s->normtype != KSP_NORM_NONE && s->test == GPUKSP_TEST_DEFAULT && k->truenorm > PetscMax(2 * s->ttol, USUAL_GAP * PetscMax(s->rnorm0, s->bnorm)) && !s->convmaxits)
      PetscCall(PetscFPrintf(PetscObjectComm((PetscObject)ksp), PETSC_STDERR, "KSP type %s warning: converged by its recurrence, with residual norm %.3g for a tolerance of %.3g, but the true residual norm is %.3g: rounding has separated them\n",
                             ((PetscObject)ksp)->type_name, s->rnorm, s->ttol, (double)k->truenorm));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve of any type. After a fall back to PETSc's method, petsc/methods.c records the solve */
PetscErrorCode GPUKSPSolve(KSP ksp)
{
  KSP_GPU        *k    = (KSP_GPU *)ksp->data;
  const PetscBool zero = ksp->guess_zero;
  PetscBool       diagonalscale, failed = PETSC_FALSE;
  PetscLogDouble  begin, end;
  char            why[GPUKSP_WHY], how[GPUKSP_WHY + 32];

  PetscFunctionBegin;
  PetscCall(PetscTime(&begin));
  PetscCall(PCGetDiagonalScale(ksp->pc, &diagonalscale));
  PetscCheck(!diagonalscale, PetscObjectComm((PetscObject)ksp), PETSC_ERR_SUP, "Krylov method %s does not support diagonal scaling", ((PetscObject)ksp)->type_name);
  PetscCall(GPUKSPSettings(ksp, why));
  if (!why[0]) {
    PetscCall(KSPMethodsForget_Private(ksp, &k->failed)); /* sets up the PC, before the operator is read: the set-up may factor the matrix in place */
    failed = k->failed;
    if (failed) {
      ksp->its = 0;
      PetscCall(GPUKSPCheckNorm(ksp, (PetscReal)INFINITY));
    }
    PetscCall(GPUKSPOperator(ksp, k, why));
  }
  if (!why[0] && !failed) PetscCall((*k->prepare)(ksp, k, why));
  if (!why[0] && !failed) { /* solutions of a factor are not checked where the method looks itself */
    GPUCSRDevice   dev;
    PetscErrorCode ierr;

    PetscCall(KSPMethodsTrust_Private(ksp, &dev));
    ierr = (*k->solve)(ksp, k, why);
    PetscCall(MatGPUCSRFactorDistrust_Private(dev));
    PetscCall(ierr);
  }
  if (why[0]) {
    PetscCall(GPUKSPFallBack(ksp, why));
    ksp->reason = KSP_CONVERGED_ITERATING;
    PetscCall((*ksp->ops->solve)(ksp));
    ksp->guess_zero = zero;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(KSPMethodsRemember_Private(ksp, &k->failed));
  PetscCall(PetscTime(&end));
  if (failed) PetscCall(PetscStrncpy(how, "the preconditioner failed", sizeof(how)));
  else if (k->taken == KSP_GPU_PATH_PERSISTENT) PetscCall(PetscSNPrintf(how, sizeof(how), "path persistent, format %s", k->launch.with->name));
  else PetscCall(PetscSNPrintf(how, sizeof(how), "path %s, because %s", KSPGPUPaths[k->taken], k->why));
  PetscCall(GPUCSRSolvesAdd((PetscObject)ksp, ((PetscObject)ksp->pc)->type_name, how, ksp->its, end - begin));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUKSPSolveInitialize(void)
{
  PetscFunctionBegin;
  PetscCall(KSPInitializePackage());
  PetscCall(GPUCSRLogRegister("KSPGPUPersistent", KSP_CLASSID, &events[KSP_GPU_PATH_PERSISTENT]));
  PetscCall(GPUCSRLogRegister("KSPGPUGraph", KSP_CLASSID, &events[KSP_GPU_PATH_GRAPH]));
  PetscCall(GPUCSRLogRegister("KSPGPUHostLoop", KSP_CLASSID, &events[KSP_GPU_PATH_HOST_LOOP]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

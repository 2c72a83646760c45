/*
  A solve of KSPGPUGMRES or KSPGPUFGMRES: the cycles of KSPGMRES and KSPFGMRES, with the same norms, tests and reasons. The host keeps the Hessenberg matrix, rotates each new column and tests
  for convergence. Before that it launches the next iteration, unless the solve is about to end.
*/
#include "gmresimpl.h"
#include "../../../pc/impls/gpuamg/gpuamg.h"
#include <math.h>

_Static_assert((int)GPUGMRES_REFINE_NEVER == (int)KSP_GMRES_CGS_REFINE_NEVER && (int)GPUGMRES_REFINE_IFNEEDED == (int)KSP_GMRES_CGS_REFINE_IFNEEDED && (int)GPUGMRES_REFINE_ALWAYS == (int)KSP_GMRES_CGS_REFINE_ALWAYS,
               "gmres.h names them without PETSc's headers");

#define H(i, j) g->hessenberg[(size_t)(j) * (size_t)(g->m + 2) + (size_t)(i)]

/* ---- set-up ---- */

static PetscErrorCode Slots(KSP ksp, KSP_GPU *k)
{
  const PetscBool need[GPUKSP_VECTORS] = {[GMRES_DIRECTION] = PETSC_TRUE, [GMRES_PRODUCT] = PETSC_TRUE, [GMRES_RESULT] = PETSC_TRUE};

  PetscFunctionBegin;
  PetscCall(GPUKSPSlotsMake(ksp, k, need));
  k->persistent.v.block = (const double *)k->pc.numbers.p;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUGMRESPrepare(KSP ksp, KSP_GPU *k, char why[])
{
  static const GPUKSPParts parts = {GPUGMRESMemory, Slots, NULL};
  KSP_GPUGMRES            *g     = (KSP_GPUGMRES *)k;
  KSPGPUPath               path  = KSP_GPU_PATH_AUTO;
  char                     because[GPUKSP_WHY];
  const char              *reason;
  PetscBool                flexible;

  PetscFunctionBegin;
  PetscCall(VecDestroy(&g->built));
  PetscCall(GPUKSPPrepareBegin(ksp, k, why));
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUKSPWhyHostLoop(ksp, k, &reason));
  PetscCall(PCGPUAMGFlexible_Private(ksp->pc, &flexible));
  if (!reason && g->flexible && flexible) reason = "the preconditioner is not linear"; /* PCApply() fills the preconditioned basis */
  if (k->size > 1) reason = "there are several processes";
  if (reason && k->pc.kind == GPUKSP_PC_BETWEEN_STEPS) k->pc.kind = GPUKSP_PC_BY_PCAPPLY;
  path = reason ? KSP_GPU_PATH_HOST_LOOP : KSP_GPU_PATH_GRAPH;
  PetscCall(PetscStrncpy(because, reason ? reason : k->path == KSP_GPU_PATH_GRAPH ? "asked for" : "all of an iteration is the device's work", GPUKSP_WHY));
  PetscCheck(k->path == KSP_GPU_PATH_AUTO || k->path == path, PetscObjectComm((PetscObject)ksp), PETSC_ERR_SUP, "-ksp_%s_path %s is not possible here: %s; auto would take %s", ((PetscObject)ksp)->type_name, KSPGPUPaths[k->path], k->path == KSP_GPU_PATH_PERSISTENT ? "GMRES is no persistent kernel" : because, KSPGPUPaths[path]);
  PetscCall(GPUKSPMake(ksp, k, path, &parts, "", why));
  PetscCall(PetscStrncpy(k->why, because, sizeof(k->why)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- scalars ---- */

/* Back substitution: coefficients of the first `it` directions, in g->y. Not solvable: the matrix or the preconditioner is singular */
static PetscErrorCode Solve(KSP ksp, KSP_GPUGMRES *g, PetscInt it, PetscBool *solvable)
{
  PetscFunctionBegin;
  *solvable = PETSC_TRUE;
  for (PetscInt i = it - 1; i >= 0 && *solvable; i--) {
    PetscReal y = g->rhs[i];

    for (PetscInt j = i + 1; j < it; j++) y -= H(i, j) * g->y[j];
    if (H(i, i) == 0 && !g->flexible) {
      PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED, "GMRES has broken down: entry %" PetscInt_FMT " of its triangle is 0, so that the matrix or the preconditioner is likely to be singular", i);
      PetscCall(PetscInfo(ksp, "Breakdown: entry %" PetscInt_FMT " of the triangle is 0\n", i));
      *solvable = PETSC_FALSE;
    } else g->y[i] = H(i, i) == 0 && i == it - 1 ? 0 : y / H(i, i);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a cycle ---- */

static PetscErrorCode Record(KSP ksp, PetscReal res, PetscBool history, PetscBool monitor)
{
  PetscFunctionBegin;
  if (history) PetscCall(KSPLogResidualHistory(ksp, res));
  if (monitor) PetscCall(KSPMonitor(ksp, ksp->its, res));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Would two more iterations like the last not converge? Then the host may launch ahead before the test. PCApply() may be slow and gets a more cautious estimate */
static PetscBool GoesOn(KSP ksp, const KSP_GPUGMRES *g, PetscReal before, PetscReal now)
{
  const PetscReal factor = before > 0 ? now / before : 0.5;

  return (PetscBool)(g->k.size == 1 && now * factor * factor * (g->k.pc.kind == GPUKSP_PC_BY_PCAPPLY ? factor : 1) > ksp->ttol);
}

/* Waits for the new column, rotates and tests it. done: the cycle ends without a solution */
static PetscErrorCode TakeColumn(KSP ksp, KSP_GPUGMRES *g, PetscInt it, PetscReal *res, PetscBool *happy, PetscBool *done)
{
  const double *column;
  PetscReal     norm, bound, r;

  PetscFunctionBegin;
  *happy = *done = PETSC_FALSE;
  PetscCall(GPUGMRESWait(g, it, &column));
  norm = column[it + 1];
  for (PetscInt i = 0; i <= it && !ksp->reason; i++) {
    H(i, it) = column[i];
    PetscCall(GPUKSPCheckNorm(ksp, column[i]));
  }
  if (ksp->reason) {
    *done = g->flexible;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GPUKSPCheckNorm(ksp, norm));
  if (ksp->reason) {
    *done = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  H(it + 1, it) = g->norm[it + 1] = norm;
  bound                           = PetscMin(g->haptol, PetscAbsReal(norm / g->rhs[it]));
  *happy                          = (PetscBool)(g->flexible ? !(norm > bound) : norm < bound);
  if (*happy) PetscCall(PetscInfo(ksp, "Happy breakdown: the new direction has norm %g, the bound is %g\n", (double)norm, (double)bound));
  /* a rotation of this column of the Hessenberg matrix gives the residual norm */
  for (PetscInt i = 0; i < it; i++) {
    const PetscReal above = H(i, it), below = H(i + 1, it);

    H(i, it)     = g->cosine[i] * above + g->sine[i] * below;
    H(i + 1, it) = g->cosine[i] * below - g->sine[i] * above;
  }
  *res = 0;
  if (*happy) PetscFunctionReturn(PETSC_SUCCESS);
  r = PetscSqrtReal(H(it, it) * H(it, it) + H(it + 1, it) * H(it + 1, it));
  if (r == 0) {
    PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED, "A column of GMRES' Hessenberg matrix is 0");
    ksp->reason = KSP_DIVERGED_NULL;
    *res        = PetscAbsReal(g->rhs[it]);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  g->cosine[it]  = H(it, it) / r;
  g->sine[it]    = H(it + 1, it) / r;
  g->rhs[it + 1] = -g->sine[it] * g->rhs[it];
  g->rhs[it]     = g->cosine[it] * g->rhs[it];
  H(it, it)      = g->cosine[it] * H(it, it) + g->sine[it] * H(it + 1, it);
  *res           = PetscAbsReal(g->rhs[it + 1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The residual norm at the start of a cycle, and its test */
static PetscErrorCode TakeResidual(KSP ksp, KSP_GPUGMRES *g, PetscReal *res)
{
  const double *column;

  PetscFunctionBegin;
  PetscCall(GPUGMRESWait(g, -1, &column));
  *res = column[0];
  PetscCall(GPUKSPCheckNorm(ksp, *res));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  if (!g->flexible && ksp->rnorm > 0 && PetscAbsReal(*res - ksp->rnorm) > g->breakdowntol * g->rnorm0) {
    PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_CONV_FAILED, "At a restart of GMRES the residual norm is %g, but %g by its recurrence; the cycle began with %g", (double)*res, (double)ksp->rnorm, (double)g->rnorm0);
    PetscCall(PetscInfo(ksp, "At a restart the residual norm is %g, but %g by the recurrence; the cycle began with %g\n", (double)*res, (double)ksp->rnorm, (double)g->rnorm0));
    ksp->reason = KSP_DIVERGED_BREAKDOWN;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  g->rhs[0] = g->rnorm0 = g->norm[0] = ksp->rnorm = *res;
  PetscCall(Record(ksp, *res, PETSC_TRUE, PETSC_TRUE));
  if (!*res && !g->flexible) ksp->reason = KSP_CONVERGED_ATOL;
  else PetscCall((*ksp->converged)(ksp, ksp->its, *res, &ksp->reason, ksp->cnvP));
  if (!*res && !ksp->reason) PetscCall(GPUKSPCheckNorm(ksp, (PetscReal)NAN)); /* a zero residual cannot be normalised */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Cycle(KSP ksp, KSP_GPUGMRES *g, PetscBool zero)
{
  PetscInt  it = 0, launched = 0;
  PetscReal res = 0, before = 0;
  PetscBool happy = PETSC_FALSE, done, solvable, ended;

  PetscFunctionBegin;
  g->it = 0;
  PetscCall(GPUGMRESStart(ksp, g, zero));
  PetscCall(TakeResidual(ksp, g, &res));
  if (ksp->reason) PetscFunctionReturn(PETSC_SUCCESS);
  while (!ksp->reason && it < g->m && ksp->its < ksp->max_it) {
    const PetscInt most = PetscMin(g->m, it + ksp->max_it - ksp->its);

    if (it) PetscCall(Record(ksp, res, PETSC_TRUE, PETSC_TRUE));
    if (ksp->reason) break; /* by a monitor */
    if (launched == it) PetscCall(GPUGMRESLaunch(ksp, g, launched++));
    if (launched < most && GoesOn(ksp, g, before, res)) PetscCall(GPUGMRESLaunch(ksp, g, launched++));
    before = res;
    PetscCall(TakeColumn(ksp, g, it, &res, &happy, &done));
    if (done) PetscFunctionReturn(PETSC_SUCCESS);
    if (ksp->reason && (g->flexible || ksp->reason != KSP_DIVERGED_NULL)) {
      res = before;
      break;
    }
    g->it = ++it;
    ksp->its++;
    ksp->rnorm = res;
    if (ksp->reason) break;
    PetscCall((*ksp->converged)(ksp, ksp->its, res, &ksp->reason, ksp->cnvP));
    if (happy) {
      if (ksp->normtype == KSP_NORM_NONE && !g->flexible) ksp->reason = KSP_CONVERGED_HAPPY_BREAKDOWN;
      else if (!ksp->reason) {
        PetscCheck(!ksp->errorifnotconverged, PetscObjectComm((PetscObject)ksp), PETSC_ERR_NOT_CONVERGED, "GMRES has reached its happy breakdown, but the convergence test disagrees. Residual norm %g", (double)res);
        ksp->reason = KSP_DIVERGED_BREAKDOWN;
      }
      break;
    }
  }
  /* update x, and record the same as PETSc's methods */
  ended = (PetscBool)(ksp->reason || ksp->its >= ksp->max_it);
  if (it) {
    PetscCall(Solve(ksp, g, it, &solvable));
    if (solvable) PetscCall(GPUGMRESCombine(ksp, g, it, g->x));
    else ksp->reason = KSP_DIVERGED_BREAKDOWN;
  }
  g->it = 0;
  if (ksp->reason == KSP_CONVERGED_ITERATING && ksp->its >= ksp->max_it) ksp->reason = KSP_DIVERGED_ITS;
  if (GPUCSR_GMRES_RECORDS_BREAKDOWN && ksp->reason) ended = PETSC_TRUE;
  if (g->k.live || g->k.pc.kind == GPUKSP_PC_BY_PCAPPLY) PetscCall(GPUKSPStore(&g->k, g->x, ksp->vec_sol)); /* a monitor, a test or a PC of the program may look at it */
  PetscCall(Record(ksp, res, (PetscBool)((it && ended) || (GPUCSR_FGMRES_RECORDS_CYCLE && g->flexible)), (PetscBool)(it && ended)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a solve ---- */

/* A whole solve; leaves x in the solution vector */
static PetscErrorCode Run(KSP ksp, KSP_GPU *k)
{
  KSP_GPUGMRES *g    = (KSP_GPUGMRES *)k;
  PetscBool     zero = ksp->guess_zero;

  PetscFunctionBegin;
  k->persistent.right = (PetscBool)(g->flexible || ksp->pc_side == PC_RIGHT);
  PetscCall(MatGPUCSROperatorBegin_Private(&k->op));
  PetscCall(GPUKSPLoad(k, ksp->vec_rhs, g->b));
  if (zero) PetscCall(k->dev->ops->zero(k->dev->id, g->x, sizeof(double) * (size_t)k->n, k->dev->stream));
  else PetscCall(GPUKSPLoad(k, ksp->vec_sol, g->x));
  PetscCall(GPUKSPGraphForget(k)); /* recorded by an earlier solve */
  g->launched = g->replayed = 0;
  ksp->its                  = 0;
  ksp->rnorm                = -1; /* the first residual has no previous norm */
  ksp->reason               = KSP_CONVERGED_ITERATING;
  while (!ksp->reason) {
    PetscCall(Cycle(ksp, g, zero));
    zero = PETSC_FALSE;
    if (!ksp->reason && ksp->its >= ksp->max_it) ksp->reason = KSP_DIVERGED_ITS;
  }
  g->it = 0; /* KSPBuildSolution() returns the stored solution */
  PetscCall(GPUKSPGraphForget(k));
  PetscCall(k->dev->ops->streamsynchronize(k->dev->id, k->dev->stream));
  PetscCall(GPUKSPPCCheck(k));
  if (ksp->reason != KSP_DIVERGED_PC_FAILED) PetscCall(GPUKSPStore(k, g->x, ksp->vec_sol));
  else PetscCall(VecSet(ksp->vec_sol, (PetscReal)INFINITY)); /* a monitor may have got the iterate since the failure */
  PetscCall(MatGPUCSROperatorEnd_Private(&k->op, g->replayed));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode KSPSolve_GPUGMRES(KSP ksp, KSP_GPU *k, char why[])
{
  const PetscInt recorded = (PetscInt)ksp->res_hist_len;

  PetscFunctionBegin;
  k->solved = PETSC_TRUE;
  PetscCall(GPUKSPAttempt(ksp, k, Run, why));
  if (why[0]) {
    ksp->res_hist_len = recorded; /* the fallback records the history from the start */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscLogFlops((double)ksp->its * (2.0 * (double)k->op.plan->A.nnz + (2.0 * PetscMin(((KSP_GPUGMRES *)k)->m, ksp->its) + 8.0) * (double)k->n)));
  PetscCall(PetscInfo(ksp, "%s after %" PetscInt_FMT " iterations, residual norm %g; path %s because %s\n", KSPConvergedReasons[ksp->reason], ksp->its, (double)ksp->rnorm, KSPGPUPaths[k->taken], k->why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The current iterate, for a monitor or convergence test within a cycle; if the Hessenberg matrix is singular, the iterate at the start of the cycle */
PetscErrorCode KSPBuildSolution_GPUGMRES(KSP ksp, Vec v, Vec *V)
{
  KSP_GPUGMRES *g        = (KSP_GPUGMRES *)ksp->data;
  PetscBool     solvable = PETSC_FALSE;

  PetscFunctionBegin;
  if (!v) {
    if (!g->built) PetscCall(VecDuplicate(ksp->vec_sol, &g->built));
    v = g->built;
  }
  if (g->it) PetscCall(Solve(ksp, g, g->it, &solvable));
  if (solvable) {
    PetscCall(GPUGMRESCombine(ksp, g, g->it, NULL));
    PetscCall(GPUKSPStore(&g->k, g->k.slot[GMRES_RESULT].p, v));
  } else PetscCall(VecCopy(ksp->vec_sol, v));
  *V = v;
  PetscFunctionReturn(PETSC_SUCCESS);
}

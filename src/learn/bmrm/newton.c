/*
  A truncated Newton method for smooth losses. Conjugate gradients solve the Newton equations (lambda I + X^T D X) p = -g as long as that pays, and a line search along p finds the step.
  An iteration of conjugate gradients takes two products.

  The equations: C.-J. Lin, R. C. Weng and S. S. Keerthi, Trust region Newton method for large-scale logistic regression, JMLR 9, 2008. The truncation: S. G. Nash and A. Sofer, Assessing
  a search direction within a truncated-Newton method, Operations Research Letters 9, 1990.
*/
#include "learn.h"

#define PAYS 0.25 /* conjugate gradients continue while an iteration decreases the quadratic model by more than this fraction of the mean decrease */
#define LAST 0.05 /* the same when the decrease shows that the optimum is near, because the step must then be accurate */

PetscErrorCode CreateVecs(Vec like, PetscInt n, Vec *const v[])
{
  PetscFunctionBeginUser;
  for (PetscInt i = 0; i < n; i++) PetscCall(VecDuplicate(like, v[i]));
  PetscFunctionReturn(0);
}

PetscErrorCode DestroyVecs(PetscInt n, Vec *const v[])
{
  PetscFunctionBeginUser;
  for (PetscInt i = 0; i < n; i++) PetscCall(VecDestroy(v[i]));
  PetscFunctionReturn(0);
}

PetscErrorCode NewtonCreate(Learner *l, Newton *n)
{
  PetscFunctionBeginUser;
  PetscCall(CreateVecs(l->w[0], 5, (Vec *const[]){&n->g, &n->p, &n->r, &n->z, &n->q}));
  PetscCall(CreateVecs(l->s, 3, (Vec *const[]){&n->h, &n->xp, &n->xq}));
  PetscFunctionReturn(0);
}

PetscErrorCode NewtonDestroy(Newton *n)
{
  return DestroyVecs(8, (Vec *const[]){&n->g, &n->p, &n->r, &n->z, &n->q, &n->h, &n->xp, &n->xq});
}

/* Computes p, xp = X p, and the decrease of the quadratic model, until an iteration no longer pays or the residual is small. want: a decrease below which the optimum is near */
PetscErrorCode NewtonSolve(Learner *l, Newton *n, PetscReal want, PetscReal residual, PetscReal *decrease)
{
  PetscScalar rz, rznew, qq, xx;
  PetscReal   alpha, norm, norm0, shift;

  PetscFunctionBeginUser;
  n->shift = 0;
  PetscCall(VecSet(n->p, 0.0));
  PetscCall(VecSet(n->xp, 0.0));
  PetscCall(VecCopy(n->g, n->r));
  PetscCall(VecScale(n->r, -1.0));
  PetscCall(VecCopy(n->r, n->q));
  PetscCall(VecDot(n->r, n->r, &rz));
  norm0     = PetscSqrtReal(PetscRealPart(rz));
  *decrease = 0;
  for (PetscInt it = 1; it <= 10000; it++) {
    PetscReal gain;

    PetscCall(Scores(l, n->q, n->xq));
    PetscCall(BiasCentre(l, n->h, n->xq, &shift));
    PetscCall(VecPointwiseMult(l->s, n->h, n->xq));
    PetscCall(VecDot(l->s, n->xq, &xx));
    PetscCall(VecDot(n->q, n->q, &qq));
    alpha = PetscRealPart(rz) / (PetscRealPart(xx) + l->lambda * PetscRealPart(qq));
    PetscCall(VecAXPY(n->p, alpha, n->q));
    PetscCall(VecAXPY(n->xp, alpha, n->xq));
    n->shift += alpha * shift;
    gain = 0.5 * alpha * PetscRealPart(rz);
    *decrease += gain;
    if (residual == 0 && (PetscReal)it * gain <= (*decrease > want ? PAYS : LAST) * *decrease) break;
    PetscCall(Subgradient(l, l->s, n->z));
    PetscCall(VecAXPY(n->z, l->lambda, n->q));
    PetscCall(VecAXPY(n->r, -alpha, n->z));
    PetscCall(VecDot(n->r, n->r, &rznew));
    norm = PetscSqrtReal(PetscRealPart(rznew));
    if (norm <= PetscMax(1e-10 * norm0, residual)) break;
    PetscCall(VecAYPX(n->q, PetscRealPart(rznew) / PetscRealPart(rz), n->r));
    rz = rznew;
  }
  PetscFunctionReturn(0);
}

/* A step from w, where the gradient is n->g, to better weights; updates their scores l->origin. `decrease` is the decrease that the model predicts, `step` the length of the step along p */
static PetscErrorCode NewtonStep(Learner *l, Newton *n, PetscReal want, PetscReal *decrease, PetscReal *step)
{
  Vec         w = l->w[l->which];
  PetscScalar wp, pp;
  PetscReal   risk;

  PetscFunctionBeginUser;
  PetscCall(Curvature(l, l->origin, n->h));
  PetscCall(NewtonSolve(l, n, want, 0, decrease));
  PetscCall(VecCopy(n->xp, l->d));
  PetscCall(VecDot(w, n->p, &wp));
  PetscCall(VecDot(n->p, n->p, &pp));
  l->trial = 1;
  PetscCall(SearchLine(l, l->lambda * PetscRealPart(wp), l->lambda * PetscRealPart(pp), 0.1, step, &risk));
  PetscCall(VecAXPY(w, *step, n->p));
  PetscCall(VecAXPY(l->origin, *step, l->d));
  l->shift += *step * n->shift;
  PetscFunctionReturn(0);
}

/*
  Stops when the gradient proves that the objective is within epsilon of the optimum, |g|^2 <= 2 lambda epsilon, or when the quadratic model, which is then accurate, predicts a decrease
  of less than a quarter of epsilon.
*/
PetscErrorCode LearnNewton(Learner *l, Outcome *out)
{
  const Settings *o = l->settings;
  Vec             w = l->w[l->which];
  Newton          n;
  PetscReal       risk, level, norm, value = 0, gap = 0, want, decrease = 0, step, shift;
  PetscInt        it;
  PetscBool       done = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(NewtonCreate(l, &n));
  PetscCall(Scores(l, w, l->origin));
  PetscCall(VecShift(l->origin, l->shift));
  for (it = 0;; it++) {
    PetscCall(RiskBias(l, l->origin, l->c, &shift, &risk, &level));
    l->shift += shift;
    PetscCall(Subgradient(l, l->c, n.g));
    PetscCall(VecAXPY(n.g, l->lambda, w));
    PetscCall(Objective(l, w, risk, &value));
    want = PetscMax(o->epsilon * PetscAbsReal(value), o->absolute);
    PetscCall(VecNorm(n.g, NORM_2, &norm));
    PetscCheck(!PetscIsInfOrNanReal(value + norm), PETSC_COMM_WORLD, PETSC_ERR_FP, "The objective or its gradient is not finite: values in the file are too large");
    norm = norm * norm / (2 * l->lambda) + risk - level;
    gap  = done ? PetscMin(gap, norm) : norm;
    PetscCall(Progress(l, it, value, gap, (PetscBool)(done || gap <= want)));
    if (done || gap <= want) {
      done = PETSC_TRUE;
      break;
    }
    if (it >= o->maxits) break;
    PetscCall(NewtonStep(l, &n, want, &decrease, &step));
    if (step == 0 || (decrease <= 0.25 * want && step > 0.5)) { /* no step: the gradient is at rounding level */
      done = PETSC_TRUE;
      gap  = decrease;
    }
  }
  AddOutcome(out, value, risk, gap, it, done, "newton");
  PetscCall(NewtonDestroy(&n));
  PetscFunctionReturn(0);
}

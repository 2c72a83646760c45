/*
  An interior point method for the hinge loss.

  Row i has a slack x_i >= max(0, 1 - y_i s_i); r_i is the distance of the slack from the margin 1 - y_i s_i. The optimality conditions are

    a r = 0,  (1 - a) x = 0,  lambda w = X^T (u y a) / m        where u holds the weights of the rows, and a the multipliers, 0 <= a <= 1

  The method replaces the zeros of the first two by mu, which decreases from one iteration to the next. Eliminating a and x gives the Newton equations of newton.c, (lambda I + X^T D X) dw = ..., with D between 0 and
  1 / (4 mu). Conjugate gradients solve them. In every iteration the multipliers give a lower bound of the optimum. The matrix creates all vectors, so they are where its products are.

  M. C. Ferris and T. S. Munson, Interior-point methods for massive support vector machines, SIAM Journal on Optimization 13, 2002.
*/
#include "learn.h"

#define BACK   0.98 /* fraction of the step at which a slack, distance or multiplier would become 0 */
#define ENOUGH 0.4  /* fraction of the requested gap below which mu need not decrease */
#define EXACT  0.1  /* accuracy of the Newton equations: the gap that their residual may leave, as a fraction of mu */

typedef struct {
  Vec       x, r, a, da, dx, dr, t; /* slacks, distances, multipliers, and their steps; scratch */
  PetscReal mu;
} Interior;

/* v = 1 - v */
static PetscErrorCode OneLess(Vec v)
{
  PetscFunctionBeginUser;
  PetscCall(VecScale(v, -1.0));
  PetscCall(VecShift(v, 1.0));
  PetscFunctionReturn(0);
}

/* The point of the central path for mu and the current scores: x = (t + 2 mu + sqrt(t^2 + 4 mu^2)) / 2, r = x - t, a = mu / r */
static PetscErrorCode Centre(Learner *l, Interior *p)
{
  PetscFunctionBeginUser;
  PetscCall(VecPointwiseMult(p->t, l->z, l->origin));
  PetscCall(OneLess(p->t)); /* 1 - y s */
  PetscCall(VecPointwiseMult(p->x, p->t, p->t));
  PetscCall(VecShift(p->x, 4 * p->mu * p->mu));
  PetscCall(VecSqrtAbs(p->x));
  PetscCall(VecShift(p->x, 2 * p->mu));
  PetscCall(VecWAXPY(p->r, -1.0, p->t, p->x));
  PetscCall(VecScale(p->r, 0.5));
  PetscCall(VecAXPY(p->x, 1.0, p->t));
  PetscCall(VecScale(p->x, 0.5));
  PetscCall(VecCopy(p->r, p->a));
  PetscCall(VecReciprocal(p->a));
  PetscCall(VecScale(p->a, p->mu));
  PetscFunctionReturn(0);
}

/* c = u y v / m */
static PetscErrorCode Weigh(Learner *l, Vec v, Vec c)
{
  PetscFunctionBeginUser;
  PetscCall(VecPointwiseMult(c, l->z, v));
  PetscCall(WeighRows(l, c));
  PetscFunctionReturn(0);
}

/*
  The value of the dual problem at the multipliers a. If the bias is not regularised, the sum of u y a must be zero there: a gets smaller on the side that has more. Overwrites t, g and l->c
*/
static PetscErrorCode DualValue(Learner *l, Interior *p, Vec g, PetscReal *value)
{
  PetscScalar all, more;
  PetscReal   norm, factor[2];
  PetscInt    M;

  PetscFunctionBeginUser;
  PetscCall(VecGetSize(p->a, &M));
  if (l->u) PetscCall(VecDot(p->a, l->u, &all));
  else PetscCall(VecSum(p->a, &all));
  PetscCall(VecCopy(p->a, p->t));
  if (l->ones) {
    PetscCall(Weigh(l, p->a, l->c));
    PetscCall(VecSum(l->c, &more));
    more *= (PetscReal)M;
    for (int k = 0; k < 2; k++) factor[k] = PetscRealPart(k ? more : -more) > 0 ? PetscRealPart((all - PetscAbsScalar(more)) / (all + PetscAbsScalar(more))) : 1; /* of negative rows, of positive rows */
    PetscCall(VecCopy(l->z, p->t));
    PetscCall(VecScale(p->t, 0.5 * (factor[1] - factor[0])));
    PetscCall(VecShift(p->t, 0.5 * (factor[1] + factor[0])));
    PetscCall(VecPointwiseMult(p->t, p->t, p->a));
    all -= PetscAbsScalar(more);
  }
  PetscCall(Weigh(l, p->t, l->c));
  PetscCall(Subgradient(l, l->c, g));
  PetscCall(VecNorm(g, NORM_2, &norm));
  *value = PetscRealPart(all) / (PetscReal)M - norm * norm / (2 * l->lambda);
  PetscFunctionReturn(0);
}

/* Second derivatives h = u a (1 - a) / den / m with den = a x + (1 - a) r. The part of a's step without w is da = (mu (1 - 2a) + a (1 - a) t) / den */
static PetscErrorCode Eliminate(Learner *l, Interior *p, Vec h)
{
  Vec den = p->dx, ab = p->dr;

  PetscFunctionBeginUser;
  PetscCall(VecCopy(p->a, ab));
  PetscCall(OneLess(ab));
  PetscCall(VecPointwiseMult(den, ab, p->r));
  PetscCall(VecPointwiseMult(p->t, p->a, p->x));
  PetscCall(VecAXPY(den, 1.0, p->t));
  PetscCall(VecPointwiseMult(ab, ab, p->a));
  PetscCall(VecPointwiseDivide(h, ab, den));
  PetscCall(VecWAXPY(p->t, -1.0, p->r, p->x)); /* x - r is the margin */
  PetscCall(VecPointwiseMult(p->da, h, p->t));
  PetscCall(VecCopy(p->a, p->t));
  PetscCall(VecScale(p->t, -2.0));
  PetscCall(VecShift(p->t, 1.0));
  PetscCall(VecPointwiseDivide(p->t, p->t, den));
  PetscCall(VecAXPY(p->da, p->mu, p->t));
  PetscFunctionReturn(0);
}

/* The steps of a, x and r, for xp = X dw; theta: a (1 - a) / den */
static PetscErrorCode Expand(Learner *l, Interior *p, Vec theta, Vec xp)
{
  Vec b = p->t;

  PetscFunctionBeginUser;
  PetscCall(VecPointwiseMult(p->dr, l->z, xp)); /* y X dw */
  PetscCall(VecPointwiseMult(p->dx, theta, p->dr));
  PetscCall(VecAXPY(p->da, -1.0, p->dx));
  PetscCall(VecCopy(p->a, b));
  PetscCall(OneLess(b));
  PetscCall(VecPointwiseMult(p->dx, p->x, p->da));
  PetscCall(VecShift(p->dx, p->mu));
  PetscCall(VecPointwiseDivide(p->dx, p->dx, b));
  PetscCall(VecAXPY(p->dx, -1.0, p->x)); /* dx = (mu + x da) / b - x */
  PetscCall(VecAXPY(p->dr, 1.0, p->dx));
  PetscFunctionReturn(0);
}

/* The largest step along d before an entry of v becomes 0 */
static PetscErrorCode Room(Vec v, Vec d, Vec t, PetscReal *room)
{
  PetscReal least;

  PetscFunctionBeginUser;
  PetscCall(VecPointwiseDivide(t, d, v));
  PetscCall(VecMin(t, NULL, &least));
  if (least < 0) *room = PetscMin(*room, -1 / least);
  PetscFunctionReturn(0);
}

/* The weighted mean of a r and (1 - a) x, and the mean of the weights. Twice their product is the gap, if w is the vector that a defines */
static PetscErrorCode Complementarity(Learner *l, Interior *p, PetscReal *mu, PetscReal *weight)
{
  PetscScalar ar, ax, x, sum;
  PetscInt    M;

  PetscFunctionBeginUser;
  PetscCall(VecGetSize(p->a, &M));
  PetscCall(VecCopy(p->a, p->t));
  if (l->u) PetscCall(VecPointwiseMult(p->t, p->t, l->u));
  PetscCall(VecDot(p->t, p->r, &ar));
  PetscCall(VecDot(p->t, p->x, &ax));
  if (l->u) {
    PetscCall(VecDot(l->u, p->x, &x));
    PetscCall(VecSum(l->u, &sum));
  } else {
    PetscCall(VecSum(p->x, &x));
    sum = (PetscReal)M;
  }
  *mu     = PetscRealPart(ar + x - ax) / (2 * PetscRealPart(sum));
  *weight = PetscRealPart(sum) / (PetscReal)M;
  PetscFunctionReturn(0);
}

/* Starts from zero weights: better weights are no better start unless they are near the central path */
PetscErrorCode LearnInterior(Learner *l, Rest *rest, Outcome *out)
{
  const Settings *o = l->settings;
  Vec             w = l->w[l->which];
  Newton          n;
  Interior        p;
  Vec *const      vectors[] = {&p.x, &p.r, &p.a, &p.da, &p.dx, &p.dr, &p.t};
  PetscReal       risk, dual = 0, value = 0, gap, want, room = 1, decrease, mu = 1, weight = 1, shift;
  PetscInt        it;
  PetscBool       done = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(NewtonCreate(l, &n));
  PetscCall(CreateVecs(l->s, 7, vectors));
  PetscCall(VecSet(w, 0.0));
  PetscCall(VecSet(l->origin, 0.0));
  l->shift = 0;
  p.mu     = 1;
  PetscCall(Centre(l, &p));
  for (it = rest->iterations;; it++) {
    PetscCall(RiskAt(l, l->origin, l->c, &risk));
    PetscCall(Objective(l, w, risk, &value));
    PetscCall(DualValue(l, &p, n.g, &dual));
    rest->lower = PetscMax(rest->lower, dual);
    gap         = PetscMax(value - rest->lower, 0);
    want        = PetscMax(o->epsilon * PetscAbsReal(value), o->absolute);
    PetscCall(Progress(l, it, value, gap, (PetscBool)(gap <= want)));
    done = (PetscBool)(gap <= want);
    if (done || it >= o->maxits) break;
    PetscCall(Complementarity(l, &p, &mu, &weight));
    p.mu = PetscMax(mu * (room > 0.9 ? 0.1 : (room > 0.5 ? 0.25 : 0.5)), ENOUGH * want / weight);
    PetscCall(Eliminate(l, &p, n.h));
    PetscCall(VecCopy(n.h, l->d)); /* theta */
    PetscCall(WeighRows(l, n.h));
    PetscCall(VecWAXPY(p.t, 1.0, p.a, p.da));
    PetscCall(Weigh(l, p.t, l->c));
    PetscCall(BiasBalance(l, n.h, l->c, &shift));
    PetscCall(Subgradient(l, l->c, n.g));
    PetscCall(VecAYPX(n.g, -1.0, w)); /* with the next line, g = lambda w - g */
    PetscCall(VecAXPY(n.g, l->lambda - 1, w));
    PetscCall(NewtonSolve(l, &n, 0, PetscSqrtReal(2 * l->lambda * EXACT * p.mu * weight), &decrease));
    if (l->ones) PetscCall(VecShift(n.xp, shift));
    PetscCall(Expand(l, &p, l->d, n.xp));
    room = 1 / BACK;
    PetscCall(Room(p.x, p.dx, l->c, &room));
    PetscCall(Room(p.r, p.dr, l->c, &room));
    PetscCall(Room(p.a, p.da, l->c, &room));
    PetscCall(VecScale(p.da, -1.0));
    PetscCall(VecCopy(p.a, p.t));
    PetscCall(OneLess(p.t));
    PetscCall(Room(p.t, p.da, l->c, &room));
    room *= BACK;
    PetscCall(VecAXPY(p.a, -room, p.da));
    PetscCall(VecAXPY(p.x, room, p.dx));
    PetscCall(VecAXPY(p.r, room, p.dr));
    PetscCall(VecAXPY(w, room, n.p));
    PetscCall(VecAXPY(l->origin, room, n.xp));
    l->shift += room * (shift + n.shift);
  }
  AddOutcome(out, value, risk, gap, it, done, "interior");
  rest->left = PETSC_FALSE;
  PetscCall(DestroyVecs(7, vectors));
  PetscCall(NewtonDestroy(&n));
  PetscFunctionReturn(0);
}

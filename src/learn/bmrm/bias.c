/*
  A bias that is not regularised. Its column stays in the matrix, but while a weight vector is learned its weight is 0 and l->shift is added to all scores instead. So every norm and every
  scalar product of weights leaves the bias out.

  The methods minimise F(w) = lambda/2 |w|^2 + min over b of R(X w + b). That minimum costs no product, because a change of b shifts all scores alike. A search along b ends with two
  values of b, where the slopes of R by b are g1 <= 0 <= g2. Each of the two gives a plane below R(X w + b). The weighted mean of both planes
  with slope zero by b does not depend on b. So it is a plane below F, for smooth losses and for losses with kinks. Its known distance below F(w) tells the search when to end.
*/
#include "learn.h"

#define EVALUATIONS 200
#define SHARE       1e-3 /* accuracy of the minimum along b, as a share of the gap that ends the optimisation */

typedef struct {
  PetscReal b, risk, slope;
} End;

/* Moves the weight of the bias from w to l->shift */
PetscErrorCode BiasTake(Learner *l, Vec w)
{
  PetscScalar weight;

  PetscFunctionBeginUser;
  if (!l->ones) PetscFunctionReturn(0);
  PetscCall(VecDot(w, l->unit, &weight));
  PetscCall(VecAXPY(w, -weight, l->unit));
  l->shift = l->bias * PetscRealPart(weight);
  PetscFunctionReturn(0);
}

/* Moves it back */
PetscErrorCode BiasGive(Learner *l, Vec w)
{
  PetscFunctionBeginUser;
  if (l->ones) PetscCall(VecAXPY(w, l->shift / l->bias, l->unit));
  PetscFunctionReturn(0);
}

/* Removes from v the multiple of the weights h that makes its sum zero */
PetscErrorCode BiasBalance(Learner *l, Vec h, Vec v, PetscReal *multiple)
{
  PetscScalar sum, all;

  PetscFunctionBeginUser;
  *multiple = 0;
  if (!l->ones) PetscFunctionReturn(0);
  PetscCall(VecSum(v, &sum));
  PetscCall(VecSum(h, &all));
  if (PetscRealPart(all) > 0) *multiple = PetscRealPart(sum) / PetscRealPart(all);
  PetscCall(VecAXPY(v, -*multiple, h));
  PetscFunctionReturn(0);
}

/* Shifts the scores s to a mean of zero, weighted by h: the best change of the bias for the quadratic model with the second derivatives h */
PetscErrorCode BiasCentre(Learner *l, Vec h, Vec s, PetscReal *shift)
{
  PetscScalar sum, all;

  PetscFunctionBeginUser;
  *shift = 0;
  if (!l->ones) PetscFunctionReturn(0);
  PetscCall(VecDot(h, s, &sum));
  PetscCall(VecSum(h, &all));
  if (PetscRealPart(all) > 0) *shift = -PetscRealPart(sum) / PetscRealPart(all);
  PetscCall(VecShift(s, *shift));
  PetscFunctionReturn(0);
}

/* c = weighted mean of the slopes at both ends, with sum zero, at the scores s */
static PetscErrorCode Slopes(Learner *l, Vec s, const End *low, const End *high, Vec c)
{
  PetscReal risk;

  PetscFunctionBeginUser;
  PetscCall(VecWAXPY(l->s, high->b, l->ones, s));
  PetscCall(RiskAt(l, l->s, c, &risk));
  if (low->b == high->b) PetscFunctionReturn(0);
  PetscCall(VecWAXPY(l->s, low->b, l->ones, s));
  PetscCall(RiskAt(l, l->s, l->other, &risk));
  PetscCall(VecAXPBY(c, high->slope / (high->slope - low->slope), -low->slope / (high->slope - low->slope), l->other));
  PetscFunctionReturn(0);
}

/*
  The risk at the scores s and its slopes c; NULL to skip them. If the bias is not regularised, shifts s first to the least risk and returns the shift; then the sum of c is zero, and `level` is the value there
  of the plane of c. Overwrites l->s, so s must be another vector
*/
PetscErrorCode RiskBias(Learner *l, Vec s, Vec c, PetscReal *shift, PetscReal *risk, PetscReal *level)
{
  Vec       origin = l->origin, d = l->d;
  End       low = {0, 0, 0}, high = {0, 0, 0}, e = {0, 0, 0};
  PetscBool open = PETSC_FALSE;
  PetscReal step = 1;

  PetscFunctionBeginUser;
  *shift = 0;
  if (!l->ones) {
    PetscCall(RiskAt(l, s, c, risk));
    *level = *risk;
    PetscFunctionReturn(0);
  }
  l->origin = s;
  l->d      = l->ones;
  PetscCall(SetLine(l));
  /* bracket the minimum by steps that grow. An end that already is the minimum is both ends */
  PetscCall(RiskAlong(l, 0, &e.risk, &e.slope));
  low = high = e;
  for (const PetscReal sign = e.slope > 0 ? -1 : 1; e.slope * sign < 0 && !PetscIsInfOrNanReal(step); step *= 4) {
    *(sign > 0 ? &low : &high) = e;
    e.b                        = sign * step;
    PetscCall(RiskAlong(l, e.b, &e.risk, &e.slope));
    *(sign > 0 ? &high : &low) = e;
  }
  open = (PetscBool)(e.slope != 0);
  if (!open) low = high = e;
  *level = low.risk;
  /* narrow the bracket, alternating between the meeting point of the tangents, which ends the search for losses with kinks, the root of a linear slope, which is fast for smooth losses, and the middle */
  if (open) {
    End             next;
    const PetscReal want = SHARE * PetscMax(l->settings->epsilon * PetscMin(low.risk, high.risk), l->settings->absolute);

    for (int n = 0; n < EVALUATIONS; n++) {
      const PetscReal along = (high.risk - low.risk - high.slope * (high.b - low.b)) / (low.slope - high.slope);

      /* where the tangents at the two ends meet: a lower bound of the minimum, and the b of it */
      next.b = low.b + along;
      *level = low.risk + low.slope * along;
      if (PetscMin(low.risk, high.risk) - *level <= want) break;
      if (n % 3 == 1) next.b = (low.b * high.slope - high.b * low.slope) / (high.slope - low.slope);
      if (n % 3 == 2 || !(next.b > low.b && next.b < high.b)) next.b = 0.5 * (low.b + high.b);
      if (!(next.b > low.b && next.b < high.b)) break;
      PetscCall(RiskAlong(l, next.b, &next.risk, &next.slope));
      if (next.slope <= 0) low = next;
      if (next.slope >= 0) high = next;
      if (next.slope == 0) *level = next.risk;
      if (next.slope == 0) break;
    }
  }
  l->origin = origin;
  l->d      = d;
  *shift    = low.risk < high.risk ? low.b : high.b;
  *risk     = PetscMin(low.risk, high.risk);
  if (c) PetscCall(Slopes(l, s, &low, &high, c));
  PetscCall(VecShift(s, *shift));
  PetscFunctionReturn(0);
}

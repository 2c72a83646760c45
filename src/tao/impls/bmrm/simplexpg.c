/*
  A projected gradient method with steps of Barzilai and Borwein and an adaptive nonmonotone line search: Y.-H. Dai and R. Fletcher, New algorithms for singly
  linearly constrained quadratic programs subject to lower and upper bounds, Mathematical Programming 106, 2006.

  TAO's bmrm solves its inner problem by this method, but inexactly. Inexact iterates stay closer to their predecessors,
  often for the better. To get the same iterates, constants and tests are the same. Two differences are for speed:

  - The projection is exact instead of by bisection, which a simplex allows (C. Michelot, A finite algorithm for finding the projection of a point onto the
    canonical simplex of R^n, JOTA 50, 1986).
  - Most variables are zero, and stay so. A larger problem is solved in rounds of some steps. A round works on positive variables and on
    variables with a gradient below the mean over the positive variables, which would become positive. After each round the full gradient selects them
    anew, so a variable may enter some steps late. Rounds with more variables take longer.
*/
#include "../../../sys/gpucsrwide.h"
#include "simplexqp.h"

#define STEP_MIN   1e-10
#define STEP_MAX   1e10
#define CURVATURE  1e-20 /* least curvature along a direction of length 1 */
#define ZERO       1e-15 /* multipliers up to here count as zero */
#define MAX_STEPS  4000  /* and 20 a variable; then the active-set method takes over */
#define REFERENCES 2     /* steps without a new smallest value before the line search lowers its reference */
#define SMALL      64    /* with up to this many variables a round works on all */
#define ROUND      32    /* steps of a round */

/* A problem of n variables, and the state of the method */
typedef struct {
  PetscInt         n, ld;
  const PetscReal *Q;
  PetscReal       *f, *x, *Qx, *g, *y, *d, *Qd;
} Problem;

typedef struct {
  PetscReal step, value, least, reference, candidate, ssold, syold;
  PetscInt  since, steps;
} Progress;

/*
  y = the point of the simplex nearest to c: max(c_i - t, 0). The largest entry is subtracted from all, so that t lies between -1 and 0 whatever the size of c, and rounding
  does not lose digits to a large common part. t only rises and the count of positive entries only falls. The loop ends when the count does not fall, although
  rounding of t may let entries in again.
*/
GPUCSR_WIDE void SimplexProject(PetscInt n, const PetscReal c[], PetscReal y[])
{
  PetscReal most = c[0], t = -1;
  PetscInt  left = n + 1;

  for (PetscInt i = 1; i < n; i++) most = PetscMax(most, c[i]);
  for (;;) {
    PetscReal sum   = 0;
    PetscInt  count = 0;

#pragma omp simd reduction(+ : sum, count)
    for (PetscInt i = 0; i < n; i++) {
      const PetscReal z = c[i] - most;

      sum += z > t ? z : 0;
      count += z > t;
    }
    if (count >= left || !count) break;
    left = count;
    t    = PetscMax(t, (sum - 1) / (PetscReal)count);
  }
  for (PetscInt i = 0; i < n; i++) y[i] = PetscMax(c[i] - most - t, 0);
}

/* y += Q x, Q with n columns, by the rows of Q with a nonzero entry in x, four at a time */
GPUCSR_WIDE static void MultiplyAdd(PetscInt n, PetscInt ld, const PetscReal Q[], const PetscReal x[], PetscReal y[])
{
  const PetscReal *q[4];
  PetscReal        a[4];
  int              k = 0;

  for (PetscInt j = 0; j < n; j++) {
    if (x[j] == 0) continue;
    q[k]   = Q + (size_t)j * (size_t)ld;
    a[k++] = x[j];
    if (k == 4) {
      for (PetscInt i = 0; i < n; i++) y[i] += a[0] * q[0][i] + a[1] * q[1][i] + a[2] * q[2][i] + a[3] * q[3][i];
      k = 0;
    }
  }
  while (k--)
    for (PetscInt i = 0; i < n; i++) y[i] += a[k] * q[k][i];
}

GPUCSR_WIDE static PetscReal Dot(PetscInt n, const PetscReal a[], const PetscReal b[])
{
  PetscReal sum = 0;

#pragma omp simd reduction(+ : sum)
  for (PetscInt i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* Mean of the gradient where multipliers are positive */
static PetscReal MeanGradient(PetscInt n, const PetscReal x[], const PetscReal g[])
{
  PetscReal sum   = 0;
  PetscInt  count = 0;

  for (PetscInt i = 0; i < n; i++) {
    if (x[i] > ZERO) {
      sum += g[i];
      count++;
    }
  }
  return sum / (PetscReal)PetscMax(count, 1);
}

/* Is x optimal within tol? The gradient must be equal where multipliers are positive, and no less where multipliers are zero. */
static PetscBool Optimal(PetscInt n, const PetscReal x[], const PetscReal g[], PetscReal tol)
{
  const PetscReal mean = MeanGradient(n, x, g);

  for (PetscInt i = 0; i < n; i++)
    if (g[i] - mean < -tol || (x[i] > ZERO && g[i] - mean > tol)) return PETSC_FALSE;
  return PETSC_TRUE;
}

/* Iterates until optimal within tol, or for the given number of steps */
static PetscBool Advance(const Problem *p, Progress *at, PetscReal tol, PetscInt steps)
{
  for (PetscInt k = 0; k < steps; k++) {
    PetscReal gd, dd, dQd, length = 1, next, ss, sy;

    for (PetscInt i = 0; i < p->n; i++) p->y[i] = p->x[i] - at->step * p->g[i];
    SimplexProject(p->n, p->y, p->d);
    for (PetscInt i = 0; i < p->n; i++) {
      p->d[i] -= p->x[i];
      p->Qd[i] = 0;
    }
    MultiplyAdd(p->n, p->ld, p->Q, p->d, p->Qd);
    gd   = Dot(p->n, p->d, p->g);
    dd   = Dot(p->n, p->d, p->d);
    dQd  = Dot(p->n, p->d, p->Qd);
    next = at->value + gd + 0.5 * dQd;
    if (next >= (at->steps++ ? at->reference : at->value)) {
      length = dQd > CURVATURE * dd && gd < 0 ? PetscMin(-gd / dQd, 1) : 1;
      next   = at->value + length * (gd + 0.5 * length * dQd);
    }
    for (PetscInt i = 0; i < p->n; i++) {
      p->x[i] = PetscMax(p->x[i] + length * p->d[i], 0);
      p->Qx[i] += length * p->Qd[i];
      p->g[i] = p->Qx[i] + p->f[i];
    }
    at->value = next;
    if (next < at->least) {
      at->least = at->candidate = next;
      at->since                 = 0;
    } else {
      at->candidate = PetscMax(at->candidate, next);
      if (++at->since == REFERENCES) {
        at->reference = at->candidate;
        at->candidate = next;
        at->since     = 0;
      }
    }
    ss = length * length * dd;
    sy = length * length * dQd;
    if (sy <= CURVATURE * ss) at->step = STEP_MAX;
    else at->step = PetscMin(PetscMax(at->syold < CURVATURE * at->ssold ? ss / sy : (at->ssold + ss) / (at->syold + sy), STEP_MIN), STEP_MAX);
    at->ssold = ss;
    at->syold = sy;
    if (PetscSqrtReal(ss) < 10 * tol * PetscSqrtReal(Dot(p->n, p->x, p->x)) && Optimal(p->n, p->x, p->g, tol)) return PETSC_TRUE;
  }
  return PETSC_FALSE;
}

/* The variables of a round: positive variables, and variables with a gradient below the mean over the positive variables */
static PetscInt Choose(const Problem *p, PetscInt chosen[])
{
  const PetscReal mean = MeanGradient(p->n, p->x, p->g);
  PetscInt        m    = 0;

  for (PetscInt i = 0; i < p->n; i++)
    if (p->x[i] > 0 || p->g[i] < mean) chosen[m++] = i;
  return m;
}

/* A round on the chosen variables of p, in the memory of `part` */
static PetscBool Round(const Problem *p, Problem *part, const PetscInt chosen[], PetscInt m, PetscReal *Q, Progress *at, PetscReal tol)
{
  PetscBool done;

  part->n = part->ld = m;
  part->Q            = Q;
  for (PetscInt j = 0; j < m; j++) {
    const PetscReal *row = p->Q + (size_t)chosen[j] * (size_t)p->ld;

    for (PetscInt i = 0; i < m; i++) Q[(size_t)j * (size_t)m + (size_t)i] = row[chosen[i]];
    part->f[j]  = p->f[chosen[j]];
    part->x[j]  = p->x[chosen[j]];
    part->Qx[j] = p->Qx[chosen[j]];
    part->g[j]  = p->g[chosen[j]];
  }
  done = Advance(part, at, tol, ROUND);
  for (PetscInt i = 0; i < p->n; i++) p->d[i] = 0;
  for (PetscInt j = 0; j < m; j++) {
    p->d[chosen[j]] = part->x[j] - p->x[chosen[j]];
    p->x[chosen[j]] = part->x[j];
  }
  MultiplyAdd(p->n, p->ld, p->Q, p->d, p->Qx);
  for (PetscInt i = 0; i < p->n; i++) p->g[i] = p->Qx[i] + p->f[i];
  return (PetscBool)(done && Optimal(p->n, p->x, p->g, tol));
}

/* Computes the gradient at x anew, and scales x to sum 1, because both drift by rounding */
static void Evaluate(Problem *p)
{
  PetscReal sum = 0;

  for (PetscInt i = 0; i < p->n; i++) sum += p->x[i];
  for (PetscInt i = 0; i < p->n; i++) {
    p->x[i] /= sum;
    p->Qx[i] = 0;
  }
  MultiplyAdd(p->n, p->ld, p->Q, p->x, p->Qx);
  for (PetscInt i = 0; i < p->n; i++) p->g[i] = p->Qx[i] + p->f[i];
}

/* Starts from the previous solution, and ends when optimal within tol */
PetscErrorCode SimplexQPProjected(SimplexQP *qp, PetscReal tol)
{
  const PetscInt n = qp->n, limit = MAX_STEPS + 20 * n;
  PetscBool      done;
  Problem        p = {.n = n, .ld = qp->alloc, .Q = qp->Q, .f = qp->f, .x = qp->x, .g = qp->g, .y = qp->u, .d = qp->v}, part;
  Progress       at;
  PetscReal     *Q, most = STEP_MIN;
  PetscInt      *chosen;

  PetscFunctionBegin;
  PetscCall(PetscMalloc4(n, &p.Qx, n, &p.Qd, n > SMALL ? (size_t)n * (size_t)n : 0, &Q, n, &chosen));
  PetscCall(PetscMalloc7(n, &part.f, n, &part.x, n, &part.g, n, &part.y, n, &part.d, n, &part.Qx, n, &part.Qd));
  Evaluate(&p);
  for (PetscInt i = 0; i < n; i++) p.y[i] = p.x[i] - p.g[i];
  SimplexProject(n, p.y, p.d);
  for (PetscInt i = 0; i < n; i++) most = PetscMax(most, PetscAbsReal(p.d[i] - p.x[i]));
  PetscCall(PetscMemzero(&at, sizeof(at)));
  at.step  = 1 / most;
  at.value = at.least = at.candidate = 0.5 * Dot(n, p.x, p.Qx) + Dot(n, p.x, p.f);
  at.reference                       = PETSC_MAX_REAL;
  done                               = Optimal(n, p.x, p.g, tol);
  while (!done && at.steps < limit) {
    done = n <= SMALL ? Advance(&p, &at, tol, limit) : Round(&p, &part, chosen, Choose(&p, chosen), Q, &at, tol);
    if (done) { /* the gradient was updated in many steps: recompute it, and test again */
      Evaluate(&p);
      done = Optimal(n, p.x, p.g, tol);
    }
  }
  qp->changes += at.steps;
  qp->nfree = 0; /* the solution has no factor */
  qp->value = 0.5 * Dot(n, p.x, p.Qx) + Dot(n, p.x, p.f);
  PetscCall(PetscFree4(p.Qx, p.Qd, Q, chosen));
  PetscCall(PetscFree7(part.f, part.x, part.g, part.y, part.d, part.Qx, part.Qd));
  if (!done) {
    PetscCall(PetscInfo(NULL, "Projected gradients did not solve the dual problem of %" PetscInt_FMT " variables within %" PetscInt_FMT " steps\n", n, limit));
    PetscCall(SimplexQPExactFrom(qp, tol));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A projected gradient method with steps of Barzilai and Borwein and an adaptive nonmonotone line search: Y.-H. Dai and R. Fletcher, New algorithms for singly
  linearly constrained quadratic programs subject to lower and upper bounds, Mathematical Programming 106, 2006.

  TAO's bmrm solves its inner problem by this method, and not to the end. What is left open is part of its iterates, and often for the better: they stay
  closer to those before. To have the same ones, constants and tests are the same; the projection is not by bisection but exact, as a simplex
  allows it (C. Michelot, A finite algorithm for finding the projection of a point onto the canonical simplex of R^n, JOTA 50, 1986).
*/
#include "simplexqp.h"

#define STEP_MIN   1e-10
#define STEP_MAX   1e10
#define CURVATURE  1e-20 /* of a direction of length 1, at least */
#define ZERO       1e-15 /* multipliers up to here count as zero */
#define MAX_STEPS  300000
#define REFERENCES 2 /* steps without a new least value after which the reference of the line search comes down */

/* y = the point of the simplex nearest to c: c_i - t where that is positive. t only rises while those below it are left out. */
static void Project(PetscInt n, const PetscReal c[], PetscReal y[])
{
  PetscReal sum = 0, t;
  PetscInt  left = n;

  for (PetscInt i = 0; i < n; i++) sum += c[i];
  t = (sum - 1) / (PetscReal)n;
  for (;;) {
    PetscInt count = 0;

    sum = 0;
    for (PetscInt i = 0; i < n; i++) {
      const PetscBool in = (PetscBool)(c[i] > t);

      sum += in ? c[i] : 0;
      count += in;
    }
    if (count == left || !count) break;
    left = count;
    t    = (sum - 1) / (PetscReal)count;
  }
  for (PetscInt i = 0; i < n; i++) y[i] = PetscMax(c[i] - t, 0);
}

/* y = Q x, by the columns of the entries that are not zero, four at a time */
static void Multiply(const SimplexQP *qp, const PetscReal x[], PetscReal y[])
{
  const PetscReal *q[4] = {NULL, NULL, NULL, NULL};
  PetscReal        a[4] = {0, 0, 0, 0};
  int              k = 0;

  for (PetscInt i = 0; i < qp->n; i++) y[i] = 0;
  for (PetscInt j = 0; j < qp->n; j++) {
    if (x[j] != 0) {
      q[k]   = qp->Q + (size_t)j * (size_t)qp->alloc;
      a[k++] = x[j];
    }
    if (k == 4 || (k && j == qp->n - 1)) {
      const PetscReal *q0 = q[0], *q1 = k > 1 ? q[1] : q[0], *q2 = k > 2 ? q[2] : q[0], *q3 = k > 3 ? q[3] : q[0];
      const PetscReal  a0 = a[0], a1 = k > 1 ? a[1] : 0, a2 = k > 2 ? a[2] : 0, a3 = k > 3 ? a[3] : 0;

      for (PetscInt i = 0; i < qp->n; i++) y[i] += a0 * q0[i] + a1 * q1[i] + a2 * q2[i] + a3 * q3[i];
      k = 0;
    }
  }
}

static PetscReal Dot(PetscInt n, const PetscReal a[], const PetscReal b[])
{
  PetscReal sum = 0;

  for (PetscInt i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* Is x optimal within tol? Where a multiplier is positive the gradient is the same, and where it is zero no less. */
static PetscBool Optimal(const SimplexQP *qp, PetscReal tol)
{
  PetscReal mean = 0;
  PetscInt  count = 0;

  for (PetscInt i = 0; i < qp->n; i++) {
    if (qp->x[i] > ZERO) {
      mean += qp->g[i];
      count++;
    }
  }
  mean /= (PetscReal)PetscMax(count, 1);
  for (PetscInt i = 0; i < qp->n; i++)
    if (qp->g[i] - mean < -tol || (qp->x[i] > ZERO && qp->g[i] - mean > tol)) return PETSC_FALSE;
  return PETSC_TRUE;
}

/* From the solution before, until optimal within tol */
PetscErrorCode SimplexQPProjected(SimplexQP *qp, PetscReal tol)
{
  const PetscInt n = qp->n;
  PetscReal     *x = qp->x, *g = qp->g, *y = qp->u, *d = qp->v, *Qx, *Qd;
  PetscReal      most = STEP_MIN, step, value, least, reference = STEP_MAX, candidate, ssold = 0, syold = 0;
  PetscInt       since = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(n, &Qx, n, &Qd));
  Multiply(qp, x, Qx);
  for (PetscInt i = 0; i < n; i++) {
    g[i] = Qx[i] + qp->f[i];
    y[i] = x[i] - g[i];
  }
  Project(n, y, d);
  for (PetscInt i = 0; i < n; i++) most = PetscMax(most, PetscAbsReal(d[i] - x[i]));
  step = 1 / most;
  value = least = candidate = 0.5 * Dot(n, x, Qx) + Dot(n, x, qp->f);
  for (PetscInt it = 0; it < MAX_STEPS && most >= 1e-3 * tol; it++) {
    PetscReal gd, dd, dQd, length = 1, next, ss, sy;

    for (PetscInt i = 0; i < n; i++) y[i] = x[i] - step * g[i];
    Project(n, y, d);
    for (PetscInt i = 0; i < n; i++) d[i] -= x[i];
    Multiply(qp, d, Qd);
    qp->changes++;
    gd   = Dot(n, d, g);
    dd   = Dot(n, d, d);
    dQd  = Dot(n, d, Qd);
    next = value + gd + 0.5 * dQd;
    if (next >= (it ? reference : value)) {
      length = dQd > CURVATURE * dd && gd < 0 ? -gd / dQd : 1;
      next   = value + length * (gd + 0.5 * length * dQd);
    }
    for (PetscInt i = 0; i < n; i++) {
      x[i] = PetscMax(x[i] + length * d[i], 0);
      Qx[i] += length * Qd[i];
      g[i] = Qx[i] + qp->f[i];
    }
    value = next;
    if (value < least) {
      least = candidate = value;
      since = 0;
    } else {
      candidate = PetscMax(candidate, value);
      if (++since == REFERENCES) {
        reference = candidate;
        candidate = value;
        since     = 0;
      }
    }
    ss = length * length * dd;
    sy = length * length * dQd;
    if (sy <= CURVATURE * ss) step = STEP_MAX;
    else step = PetscMin(PetscMax(syold < CURVATURE * ssold ? ss / sy : (ssold + ss) / (syold + sy), STEP_MIN), STEP_MAX);
    ssold = ss;
    syold = sy;
    if (PetscSqrtReal(ss) < 10 * tol * PetscSqrtReal(Dot(n, x, x)) && Optimal(qp, tol)) break;
  }
  Multiply(qp, x, Qx);
  qp->value = 0.5 * Dot(n, x, Qx) + Dot(n, x, qp->f);
  PetscCall(PetscFree2(Qx, Qd));
  PetscFunctionReturn(PETSC_SUCCESS);
}

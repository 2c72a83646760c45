/*
  Dual coordinate descent for the hinge loss, on one process with the rows in its memory.

  In the dual problem each row has a multiplier 0 <= a_i <= C u_i, C = 1 / (lambda m), and w = sum of a_i y_i x_i. A step optimises one multiplier alone, and updates w: four operations per nonzero. The
  method skips a row for a while if its multiplier is at a bound and the gradient keeps the multiplier there. The method stops when the gap between the values of the two problems is small enough.

  C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan, A dual coordinate descent method for large-scale linear SVM, ICML 2008.
*/
#include "learn.h"

#define PASSES 1000 /* maximal number of passes over the rows */
#define FEW    0.25 /* columns divided by rows: with a smaller ratio and a small lambda the method can take many thousand passes, */
#define SPARSE 0.1  /* and if the density of the matrix exceeds this number; */
#define WORK   80   /* then another method takes over after so many reads of each entry, about twice a pass over all rows */

typedef struct {
  PetscInt           m, active, *order;
  const PetscInt    *i, *j;
  const PetscScalar *v, *y, *u;
  PetscReal         *a, *square, c; /* multipliers, |x_i|^2, and C */
  PetscScalar       *w;
  PetscReal          most, least; /* range of the gradients of variables not at a bound, in the previous pass */
  unsigned long long random;
  PetscReal          work; /* entries read */
} Dual;

static PetscInt Upto(Dual *d, PetscInt n)
{
  d->random = d->random * 6364136223846793005ULL + 1442695040888963407ULL;
  return (PetscInt)((d->random >> 33) % (unsigned long long)n);
}

/* One pass over the active rows, in random order. Returns the range of the gradients of the multipliers that can move */
static PetscReal Pass(Dual *d)
{
  PetscReal most = -PETSC_MAX_REAL, least = PETSC_MAX_REAL;

  for (PetscInt k = 0; k < d->active; k++) {
    const PetscInt  other = k + Upto(d, d->active - k), row = d->order[other];
    const PetscReal upper = d->c * (d->u ? PetscRealPart(d->u[row]) : 1), y = PetscRealPart(d->y[row]), before = d->a[row];
    PetscReal       g = 0;

    d->order[other] = d->order[k];
    d->order[k]     = row;
    for (PetscInt e = d->i[row]; e < d->i[row + 1]; e++) g += PetscRealPart(d->v[e] * d->w[d->j[e]]);
    d->work += d->i[row + 1] - d->i[row];
    g = y * g - 1;
    if ((before <= 0 && g > d->most) || (before >= upper && g < d->least)) {
      d->active--;
      d->order[k]         = d->order[d->active];
      d->order[d->active] = row;
      k--;
      continue;
    }
    if ((before <= 0 && g > 0) || (before >= upper && g < 0)) g = 0;
    most  = PetscMax(most, g);
    least = PetscMin(least, g);
    if (g == 0) continue;
    d->work += d->i[row + 1] - d->i[row];
    d->a[row] = d->square[row] > 0 ? PetscMin(PetscMax(before - g / d->square[row], 0), upper) : upper;
    for (PetscInt e = d->i[row]; e < d->i[row + 1]; e++) d->w[d->j[e]] += (d->a[row] - before) * y * d->v[e];
  }
  d->most  = most > 0 ? most : PETSC_MAX_REAL;
  d->least = least < 0 ? least : -PETSC_MAX_REAL;
  return most - least;
}

static void Reactivate(Dual *d)
{
  d->active = d->m;
  d->most   = PETSC_MAX_REAL;
  d->least  = -PETSC_MAX_REAL;
}

static PetscErrorCode DualCreate(Learner *l, Dual *d)
{
  PetscBool done;

  PetscFunctionBeginUser;
  PetscCall(MatGetRowIJ(l->data.X, 0, PETSC_FALSE, PETSC_FALSE, &d->m, &d->i, &d->j, &done));
  PetscCheck(done, PETSC_COMM_SELF, PETSC_ERR_SUP, "This type of matrix gives no rows");
  PetscCall(MatSeqAIJGetArrayRead(l->data.X, &d->v));
  PetscCall(VecGetArrayRead(l->z, &d->y));
  d->u = NULL;
  if (l->u) PetscCall(VecGetArrayRead(l->u, &d->u));
  PetscCall(VecSet(l->w[l->which], 0.0));
  PetscCall(PetscCalloc3(d->m, &d->a, d->m, &d->square, d->m, &d->order));
  for (PetscInt row = 0; row < d->m; row++) {
    d->order[row] = row;
    for (PetscInt e = d->i[row]; e < d->i[row + 1]; e++) d->square[row] += PetscRealPart(d->v[e] * d->v[e]);
  }
  d->c      = 1 / (l->lambda * (PetscReal)d->m);
  d->random = 1;
  d->work   = 0;
  Reactivate(d);
  PetscFunctionReturn(0);
}

/* If the user asked for this method, the maximal number of iterations limits the passes */
PetscErrorCode LearnDual(Learner *l, Rest *rest, Outcome *out)
{
  const Settings *o     = l->settings;
  const PetscBool alone = (PetscBool)(o->method == METHOD_DUAL);
  const PetscInt  most  = alone ? o->maxits : PetscMin(o->maxits, PASSES);
  Dual            d;
  PetscReal       value = 1, risk = 1, tol = 0.1, gap, entries = 0;
  PetscInt        next = 1, M;
  PetscBool       done = PETSC_FALSE, fast = PETSC_FALSE, ready;
  PetscLogDouble  begin, end;
  MatInfo         info;

  PetscFunctionBeginUser;
  /* is it fast for any lambda, because columns are many and rows are short? */
  PetscCall(MatGetSize(l->data.X, &M, NULL));
  PetscCall(MatGetInfo(l->data.X, MAT_GLOBAL_SUM, &info));
  entries = info.nz_used;
  fast    = (PetscBool)((PetscReal)l->columns >= FEW * (PetscReal)M && info.nz_used <= SPARSE * (PetscReal)M * (PetscReal)l->columns);
  PetscCall(DualCreate(l, &d));
  for (PetscInt pass = 1; pass <= most && !done && (alone || fast || d.work <= WORK * entries); pass++) {
    PetscReal spread, norm, sum = 0;

    PetscCall(PetscTime(&begin));
    PetscCall(VecGetArray(l->w[l->which], &d.w));
    spread = Pass(&d);
    PetscCall(VecRestoreArray(l->w[l->which], &d.w));
    PetscCall(PetscTime(&end));
    l->seconds[TIME_SUBGRADIENT] += end - begin;
    l->products += 2;
    rest->iterations++;
    if (spread > tol && pass < next && pass < most) continue;
    next = pass + pass / 3 + 1;
    if (spread <= tol && d.active == d.m) tol *= 0.25;
    if (spread <= tol) Reactivate(&d);
    /* the values of both problems at the current multipliers */
    PetscCall(Scores(l, l->w[l->which], l->s));
    PetscCall(RiskAt(l, l->s, l->c, &risk));
    PetscCall(VecNorm(l->w[l->which], NORM_2, &norm));
    for (PetscInt i = 0; i < d.m; i++) sum += d.a[i];
    value       = risk + 0.5 * l->lambda * norm * norm;
    rest->lower = PetscMax(rest->lower, l->lambda * (sum - 0.5 * norm * norm));
    gap         = PetscMax(value - rest->lower, 0);
    done        = (PetscBool)(gap <= PetscMax(o->epsilon * value, o->absolute));
    PetscCall(Progress(l, rest->iterations, value, gap, done));
  }
  PetscCall(PetscFree3(d.a, d.square, d.order));
  if (d.u) PetscCall(VecRestoreArrayRead(l->u, &d.u));
  PetscCall(VecRestoreArrayRead(l->z, &d.y));
  PetscCall(MatSeqAIJRestoreArrayRead(l->data.X, &d.v));
  PetscCall(MatRestoreRowIJ(l->data.X, 0, PETSC_FALSE, PETSC_FALSE, &d.m, &d.i, &d.j, &ready));
  rest->left = (PetscBool)(!done && !alone && rest->iterations < o->maxits);
  if (rest->left) PetscFunctionReturn(0);
  AddOutcome(out, value, risk, PetscMax(value - rest->lower, 0), rest->iterations, done, "dual");
  PetscFunctionReturn(0);
}

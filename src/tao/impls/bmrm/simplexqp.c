/*
  An active-set method, P. Wolfe's for the nearest point of a polytope (Mathematical Programming 11, 1976) with a linear term.

  The columns of Q of the free variables are affinely independent. Their Cholesky factor is updated in O(k^2) when one of k variables enters or leaves. A
  variable enters if the gradient says that the value would fall. Then x moves to the minimum over the free variables, and each variable that would
  become negative on the way leaves. A new plane of the bundle changes only a few free variables, so the previous solution is a good start. The solution is
  exact up to rounding: unlike a projected gradient method, the cost does not grow with the accuracy.
*/
#include "simplexqp.h"

/* A column is dependent on the free columns if less than this share of its square remains after projection */
#define DEPENDENT 1e-13
/* Most variables let in successively without a lower value */
#define STALLS 20

static PetscErrorCode Free(SimplexQP *qp)
{
  PetscFunctionBegin;
  PetscCall(PetscFree2(qp->Q, qp->L));
  PetscCall(PetscFree6(qp->f, qp->x, qp->g, qp->u, qp->v, qp->free));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* b = L^-1 b, and below b = L^-T b; both go by rows of L, in the order of memory */
static void Forward(const SimplexQP *qp, PetscReal b[])
{
  for (PetscInt i = 0; i < qp->nfree; i++) {
    const PetscReal *row = qp->L + (size_t)i * (size_t)qp->alloc;
    PetscReal        sum = b[i];

    for (PetscInt j = 0; j < i; j++) sum -= row[j] * b[j];
    b[i] = sum / row[i];
  }
}

static void Backward(const SimplexQP *qp, PetscReal b[])
{
  for (PetscInt i = qp->nfree - 1; i >= 0; i--) {
    const PetscReal *row = qp->L + (size_t)i * (size_t)qp->alloc;

    b[i] /= row[i];
    for (PetscInt j = 0; j < i; j++) b[j] -= row[j] * b[i];
  }
}

/* Puts all weight on variable j, the only free one */
static void Restart(SimplexQP *qp, PetscInt j)
{
  for (PetscInt i = 0; i < qp->n; i++) qp->x[i] = 0;
  qp->x[j]    = 1;
  qp->free[0] = j;
  qp->nfree   = 1;
  qp->L[0]    = PetscSqrtReal(qp->Q[(size_t)j * (size_t)qp->alloc + (size_t)j] + qp->shift);
}

/* Adds variable j to the free ones. False if its column depends on the free columns; then the next row of L holds its products with them */
static PetscBool Enter(SimplexQP *qp, PetscInt j)
{
  const PetscReal *q    = qp->Q + (size_t)j * (size_t)qp->alloc;
  PetscReal       *row  = qp->L + (size_t)qp->nfree * (size_t)qp->alloc;
  PetscReal        rest = q[j] + qp->shift;

  for (PetscInt i = 0; i < qp->nfree; i++) row[i] = q[qp->free[i]] + qp->shift;
  Forward(qp, row);
  for (PetscInt i = 0; i < qp->nfree; i++) rest -= PetscSqr(row[i]);
  if (!(rest > DEPENDENT * (q[j] + qp->shift))) return PETSC_FALSE;
  row[qp->nfree]        = PetscSqrtReal(rest);
  qp->free[qp->nfree++] = j;
  return PETSC_TRUE;
}

/* Appends a variable. column: its column of Q, with the diagonal entry last. The first variable is the whole solution. */
PetscErrorCode SimplexQPAppend(SimplexQP *qp, const PetscReal column[], PetscReal f)
{
  PetscInt n;

  PetscFunctionBegin;
  for (PetscInt i = 0; i <= qp->n; i++)
    PetscCheck(!PetscIsInfOrNanReal(column[i]) && !PetscIsInfOrNanReal(f), PETSC_COMM_SELF, PETSC_ERR_FP, "The dot products of plane %" PetscInt_FMT ", or its offset, are not finite: values of the matrix are too large", qp->n);
  if (qp->n == qp->alloc) {
    SimplexQP    old   = *qp;
    const size_t alloc = (size_t)PetscMax(64, 2 * old.alloc), ld = (size_t)old.alloc;

    PetscCall(PetscMalloc2(alloc * alloc, &qp->Q, alloc * alloc, &qp->L));
    PetscCall(PetscMalloc6(alloc, &qp->f, alloc, &qp->x, alloc, &qp->g, alloc, &qp->u, alloc, &qp->v, alloc, &qp->free));
    qp->alloc = (PetscInt)alloc;
    for (size_t i = 0; i < (size_t)old.n; i++) PetscCall(PetscArraycpy(qp->Q + i * alloc, old.Q + i * ld, old.n));
    for (size_t i = 0; i < (size_t)old.nfree; i++) PetscCall(PetscArraycpy(qp->L + i * alloc, old.L + i * ld, old.nfree));
    PetscCall(PetscArraycpy(qp->f, old.f, old.n));
    PetscCall(PetscArraycpy(qp->x, old.x, old.n));
    PetscCall(PetscArraycpy(qp->free, old.free, old.nfree));
    PetscCall(Free(&old));
  }
  n = qp->n++;
  for (PetscInt i = 0; i <= n; i++) qp->Q[(size_t)i * (size_t)qp->alloc + (size_t)n] = qp->Q[(size_t)n * (size_t)qp->alloc + (size_t)i] = column[i];
  qp->f[n] = f;
  qp->x[n] = 0;
  if (!n) {
    qp->shift = column[0] > 0 ? column[0] : 1;
    Restart(qp, 0);
  } else if (column[n] > 4 * qp->shift) {
    const PetscInt nfree = qp->nfree;

    /* sets a new shift, as large as the largest square; with a smaller shift, steps are small differences of large numbers. The factor is computed anew. A variable that depends on its predecessors loses its weight, which the next evaluation distributes to the other variables. */
    qp->shift = column[n];
    qp->nfree = 0;
    for (PetscInt k = 0; k < nfree; k++) {
      const PetscInt j = qp->free[k];

      if (!Enter(qp, j)) qp->x[j] = 0;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SimplexQPDestroy(SimplexQP *qp)
{
  PetscFunctionBegin;
  PetscCall(Free(qp));
  PetscCall(PetscMemzero(qp, sizeof(*qp)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Removes the free variable in place p: deletes its row of L, and makes the rest triangular again by rotations of columns */
static void LetOut(SimplexQP *qp, PetscInt p)
{
  const size_t ld = (size_t)qp->alloc;

  qp->x[qp->free[p]] = 0;
  qp->nfree--;
  qp->changes++;
  for (PetscInt i = p; i < qp->nfree; i++) {
    qp->free[i] = qp->free[i + 1];
    for (PetscInt j = 0; j <= i + 1; j++) qp->L[(size_t)i * ld + (size_t)j] = qp->L[(size_t)(i + 1) * ld + (size_t)j];
  }
  for (PetscInt j = p; j < qp->nfree; j++) {
    PetscReal      *row = qp->L + (size_t)j * ld + j;
    const PetscReal r = hypot(row[0], row[1]), c = row[0] / r, s = row[1] / r;

    row[0] = r;
    for (PetscInt i = j + 1; i < qp->nfree; i++) {
      PetscReal      *a  = qp->L + (size_t)i * ld + j;
      const PetscReal a0 = a[0];

      a[0] = c * a0 + s * a[1];
      a[1] = c * a[1] - s * a0;
    }
  }
}

/* Steps from x along d in the free variables, up to `most` or until one of them is zero. Returns its place, or -1 */
static PetscInt Step(SimplexQP *qp, const PetscReal d[], PetscReal most, PetscReal *length)
{
  PetscInt block = -1;

  *length = most;
  for (PetscInt i = 0; i < qp->nfree; i++) {
    const PetscReal x = qp->x[qp->free[i]];

    if (x + *length * d[i] < 0) {
      *length = x / -d[i];
      block   = i;
    }
  }
  for (PetscInt i = 0; i < qp->nfree; i++) qp->x[qp->free[i]] = PetscMax(qp->x[qp->free[i]] + *length * d[i], 0);
  return block;
}

/* Moves to the minimum over the free variables, and removes variables that become zero on the way. The step comes from the gradient at x, so a second call refines. */
static void Minimise(SimplexQP *qp)
{
  for (;;) {
    PetscReal su = 0, sv = 0, length;
    PetscInt  block;

    for (PetscInt i = 0; i < qp->nfree; i++) {
      const PetscReal *q = qp->Q + (size_t)qp->free[i] * (size_t)qp->alloc;

      qp->u[i] = -qp->f[qp->free[i]];
      for (PetscInt k = 0; k < qp->nfree; k++) qp->u[i] -= q[qp->free[k]] * qp->x[qp->free[k]];
      qp->v[i] = 1;
    }
    Forward(qp, qp->u);
    Backward(qp, qp->u);
    Forward(qp, qp->v);
    Backward(qp, qp->v);
    for (PetscInt i = 0; i < qp->nfree; i++) {
      su += qp->u[i];
      sv += qp->v[i];
    }
    for (PetscInt i = 0; i < qp->nfree; i++) qp->u[i] -= su / sv * qp->v[i];
    block = Step(qp, qp->u, 1, &length);
    if (block < 0) break;
    LetOut(qp, block);
  }
}

/*
  Lets variable j in. If its column depends on the free columns there is a direction in the null space of Q along which the value falls. x then moves along
  it until a free variable is zero and leaves.
*/
static void LetIn(SimplexQP *qp, PetscInt j)
{
  while (!Enter(qp, j)) {
    PetscReal *d = qp->L + (size_t)qp->nfree * (size_t)qp->alloc, length;
    PetscInt   block;

    Backward(qp, d);
    for (PetscInt i = 0; i < qp->nfree; i++) d[i] = -d[i];
    block = Step(qp, d, 1 - qp->x[j], &length);
    qp->x[j] += length;
    if (block < 0 || qp->nfree == 1) { /* no other variable has weight left */
      Restart(qp, j);
      return;
    }
    LetOut(qp, block);
  }
  qp->changes++;
}

/* Iterates until no entering variable would lower the value by more than tol */
PetscErrorCode SimplexQPSolve(SimplexQP *qp, PetscReal tol)
{
  PetscReal before = PETSC_MAX_REAL;
  PetscInt  stalls = 0;

  PetscFunctionBegin;
  Minimise(qp);
  for (;;) {
    PetscReal mean = 0, lowest = PETSC_MAX_REAL, sum = 0;
    PetscInt  j      = -1;
    PetscBool isfree = PETSC_FALSE;

    /* the gradient and value at x, after scaling x to sum 1, because the sum drifts by rounding */
    for (PetscInt i = 0; i < qp->nfree; i++) sum += qp->x[qp->free[i]];
    if (!(sum > 0)) {
      Restart(qp, qp->free[0]);
      sum = 1;
    }
    for (PetscInt i = 0; i < qp->n; i++) qp->g[i] = 0;
    for (PetscInt k = 0; k < qp->nfree; k++) {
      const PetscReal *q = qp->Q + (size_t)qp->free[k] * (size_t)qp->alloc, x = qp->x[qp->free[k]] /= sum;

      for (PetscInt i = 0; i < qp->n; i++) qp->g[i] += x * q[i];
    }
    qp->value = 0;
    for (PetscInt i = 0; i < qp->n; i++) {
      qp->value += qp->x[i] * (0.5 * qp->g[i] + qp->f[i]);
      qp->g[i] += qp->f[i];
    }
    for (PetscInt i = 0; i < qp->nfree; i++) mean += qp->x[qp->free[i]] * qp->g[qp->free[i]];
    for (PetscInt i = 0; i < qp->n; i++) {
      if (qp->g[i] < lowest) {
        lowest = qp->g[i];
        j      = i;
      }
    }
    /* if the value stops falling it has reached rounding level, but the gradient may not have */
    stalls = qp->value < before ? 0 : stalls + 1;
    if (!(lowest < mean - tol) || stalls > STALLS) break;
    before = PetscMin(before, qp->value);
    for (PetscInt i = 0; i < qp->nfree; i++) isfree = (PetscBool)(isfree || qp->free[i] == j);
    if (!isfree) LetIn(qp, j);
    Minimise(qp);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Chooses at most `goal` variables to keep, ascending: first by the largest multipliers, then the free variables, then the youngest. If dropped variables have multipliers they are merged into one variable,
  with the returned weights (0 for kept variables) and the linear term -f; otherwise `mean` is false.
*/
PetscErrorCode SimplexQPChoose(const SimplexQP *qp, PetscInt goal, PetscInt *nkept, PetscInt kept[], PetscReal weight[], PetscReal *f, PetscBool *mean)
{
  const PetscInt n = qp->n;
  PetscReal     *key, sum = 0;
  PetscInt      *order, m = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(n, &key, n, &order));
  for (PetscInt i = 0; i < n; i++) {
    key[i]   = qp->x[i] > 0 ? -qp->x[i] : (PetscReal)(n - i);
    order[i] = i;
  }
  for (PetscInt k = 0; k < qp->nfree; k++)
    if (qp->x[qp->free[k]] == 0) key[qp->free[k]] = 0;
  PetscCall(PetscSortRealWithArrayInt(n, key, order));
  PetscCall(PetscSortInt(PetscMin(goal, n), order));
  for (PetscInt i = 0; i < n; i++) {
    if (m < PetscMin(goal, n) && order[m] == i) {
      kept[m++] = i;
      weight[i] = 0;
    } else sum += weight[i] = qp->x[i];
  }
  *f    = 0;
  *mean = (PetscBool)(sum > 0);
  for (PetscInt i = 0; i < n && *mean; i++) {
    weight[i] /= sum;
    *f -= weight[i] * qp->f[i]; /* f is the negative of the plane's offset */
  }
  *nkept = m;
  PetscCall(PetscFree2(key, order));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Keeps only these variables, ascending. If a removed one was free or has a multiplier, the solution restarts at the largest multiplier */
PetscErrorCode SimplexQPKeep(SimplexQP *qp, PetscInt nkept, const PetscInt kept[])
{
  PetscInt  most  = 0, *place;
  PetscBool whole = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(qp->n, &place));
  for (PetscInt i = 0; i < qp->n; i++) place[i] = -1;
  for (PetscInt i = 0; i < nkept; i++) place[kept[i]] = i;
  for (PetscInt i = 0; i < qp->n; i++) whole = (PetscBool)(whole && (place[i] >= 0 || qp->x[i] == 0));
  for (PetscInt k = 0; k < qp->nfree; k++) whole = (PetscBool)(whole && place[qp->free[k]] >= 0);
  for (PetscInt k = 0; k < qp->nfree && whole; k++) qp->free[k] = place[qp->free[k]];
  PetscCall(PetscFree(place));
  for (PetscInt i = 0; i < nkept; i++) {
    for (PetscInt j = 0; j < nkept; j++) qp->Q[(size_t)i * (size_t)qp->alloc + (size_t)j] = qp->Q[(size_t)kept[i] * (size_t)qp->alloc + (size_t)kept[j]];
    qp->f[i] = qp->f[kept[i]];
    qp->x[i] = qp->x[kept[i]];
    if (qp->x[i] > qp->x[most]) most = i;
  }
  qp->n = nkept;
  if (!whole) qp->nfree = 0;
  if (!whole && nkept) Restart(qp, most);
  PetscFunctionReturn(PETSC_SUCCESS);
}

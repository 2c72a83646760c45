/*
  The risk R(w) of a weight vector, its subgradient, and the line search.

  The data enter through two products: the scores s = X w, and the subgradient X^T c, where c holds the slopes. Scores are linear in the weights, so evaluating the risk along a
  line costs no product.
*/
#include "learn.h"
#include <petscgpucsr.h> /* only for a struct: functions of the library are found by name */

#define EVALUATIONS 30 /* maximal number of evaluations of a line search */

/* s = X w */
PetscErrorCode Scores(Learner *l, Vec w, Vec s)
{
  PetscFunctionBeginUser;
  TIMED(l, TIME_SCORES, MatMult(l->data.X, w, s));
  l->products++;
  PetscFunctionReturn(0);
}

/* g = X^T c */
PetscErrorCode Subgradient(Learner *l, Vec c, Vec g)
{
  PetscFunctionBeginUser;
  TIMED(l, TIME_SUBGRADIENT, MatMultTranspose(l->data.X, c, g));
  l->products++;
  PetscFunctionReturn(0);
}

/*
  Losses of rows on host arrays, at the scores s or, if d is given, at s + k d: the risk, its slope along d, and the slopes c. Without weighing, c has the slopes of single losses
*/
static PetscErrorCode RiskRows(Learner *l, Vec s, PetscReal k, Vec d, PetscBool weigh, PetscReal *risk, Vec c, PetscReal *along)
{
  Vec       u = weigh ? l->u : NULL;
  LossRows  r = {0, NULL, NULL, NULL, NULL, k, l->parameter, 1, NULL, 0};
  PetscInt  M;
  PetscReal sums[2];

  PetscFunctionBeginUser;
  PetscCall(VecGetSize(s, &M));
  PetscCall(VecGetLocalSize(s, &r.n));
  if (weigh) r.scale = 1 / (PetscReal)M;
  PetscCall(VecGetArrayRead(s, &r.s));
  PetscCall(VecGetArrayRead(l->z, &r.y));
  if (d) PetscCall(VecGetArrayRead(d, &r.d));
  if (c) PetscCall(VecGetArrayWrite(c, &r.c));
  if (u) PetscCall(VecGetArrayRead(u, &r.u));
  sums[0] = (*l->loss->rows)(&r);
  sums[1] = r.along;
  if (u) PetscCall(VecRestoreArrayRead(u, &r.u));
  if (c) PetscCall(VecRestoreArrayWrite(c, &r.c));
  if (d) PetscCall(VecRestoreArrayRead(d, &r.d));
  PetscCall(VecRestoreArrayRead(l->z, &r.y));
  PetscCall(VecRestoreArrayRead(s, &r.s));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPIU_REAL, MPIU_SUM, PetscObjectComm((PetscObject)s)));
  *risk = sums[0] / (PetscReal)M;
  if (along) *along = sums[1];
  PetscFunctionReturn(0);
}

/* A number of each row, times its weight in the risk */
PetscErrorCode WeighRows(Learner *l, Vec v)
{
  PetscInt M;

  PetscFunctionBeginUser;
  PetscCall(VecGetSize(v, &M));
  if (l->u) PetscCall(VecPointwiseMult(v, v, l->u));
  PetscCall(VecScale(v, 1 / (PetscReal)M));
  PetscFunctionReturn(0);
}

/* The risk at the scores s, and its derivatives by the scores to c */
static PetscErrorCode RiskScores(Learner *l, Vec s, Vec c, PetscReal *risk)
{
  PetscScalar sum;
  PetscInt    M;

  PetscFunctionBeginUser;
  /* a loss of all rows together, on every rank for all rows: each keeps the slopes of its own */
  if (l->loss->allrows) {
    PetscScalar *score, *label, *query, *slope, *own;
    PetscInt     n, begin, end;

    PetscCall(VecGetSize(s, &n));
    PetscCall(VecGetOwnershipRange(s, &begin, &end));
    PetscCall(PetscMalloc4(n, &score, n, &label, n, &query, n, &slope));
    PetscCall(Gather(s, PETSC_TRUE, score));
    PetscCall(Gather(l->z, PETSC_TRUE, label));
    if (l->data.q) PetscCall(Gather(l->data.q, PETSC_TRUE, query));
    PetscCall((*l->loss->allrows)(n, score, label, query, slope, risk));
    PetscCall(VecGetArrayWrite(c, &own));
    PetscCall(PetscArraycpy(own, slope + begin, end - begin));
    PetscCall(VecRestoreArrayWrite(c, &own));
    PetscCall(PetscFree4(score, label, query, slope));
  } else if (!l->vectors) PetscCall(RiskRows(l, s, 0, NULL, PETSC_TRUE, risk, c, NULL));
  else {
    PetscCall(VecGetSize(s, &M));
    PetscCall((*l->loss->vectors)(s, l->z, l->parameter, l->zero, l->f, c));
    if (l->u) PetscCall(VecDot(l->f, l->u, &sum));
    else PetscCall(VecSum(l->f, &sum));
    PetscCall(WeighRows(l, c));
    *risk = PetscRealPart(sum) / (PetscReal)M;
  }
  PetscFunctionReturn(0);
}

PetscErrorCode RiskAt(Learner *l, Vec s, Vec c, PetscReal *risk)
{
  PetscFunctionBeginUser;
  TIMED(l, TIME_LOSS, RiskScores(l, s, c, risk));
  PetscFunctionReturn(0);
}

/* The line of scores as margins, if the loss can use them: computing 2 vectors once saves passes over 7 at each point of the line */
PetscErrorCode SetLine(Learner *l)
{
  PetscFunctionBeginUser;
  if (!l->t) PetscFunctionReturn(0);
  PetscCall(VecPointwiseMult(l->t, l->z, l->origin));
  PetscCall(VecScale(l->t, -1.0));
  PetscCall(VecShift(l->t, 1.0));
  PetscCall(VecPointwiseMult(l->dt, l->z, l->d));
  PetscCall(VecScale(l->dt, -1.0));
  PetscFunctionReturn(0);
}

/* The risk at the scores base + k d, and its derivative by k. Overwrites s and c */
PetscErrorCode RiskAlong(Learner *l, PetscReal k, PetscReal *risk, PetscReal *slope)
{
  PetscScalar dot, sums[2];
  PetscInt    M;

  PetscFunctionBeginUser;
  if (l->t && !l->u) {
    const Vec with[2] = {l->s, l->dt};

    PetscCall(VecGetSize(l->s, &M));
    PetscCall(VecWAXPY(l->s, k, l->dt, l->t));
    PetscCall(VecPointwiseMax(l->c, l->s, l->zero));
    if (l->loss->power == 1) PetscCall(VecPointwiseDivide(l->c, l->c, l->c)); /* 1 where the margin is positive */
    PetscCall(VecMDot(l->c, 2, with, sums));
    *risk  = PetscRealPart(sums[0]) / (PetscReal)M;
    *slope = l->loss->power * PetscRealPart(sums[1]) / (PetscReal)M;
  } else if (!l->vectors && !l->loss->allrows) PetscCall(RiskRows(l, l->origin, k, l->d, PETSC_TRUE, risk, NULL, slope));
  else {
    PetscCall(VecWAXPY(l->s, k, l->d, l->origin));
    PetscCall(RiskScores(l, l->s, l->c, risk));
    PetscCall(VecDot(l->c, l->d, &dot));
    *slope = PetscRealPart(dot);
  }
  PetscFunctionReturn(0);
}

/* Second derivatives of the risk by the scores s */
PetscErrorCode Curvature(Learner *l, Vec s, Vec h)
{
  PetscReal unused;

  PetscFunctionBeginUser;
  if (l->vectors) PetscCall((*l->loss->vectors)(s, l->z, l->parameter, l->zero, l->f, h));
  else PetscCall(RiskRows(l, s, 0, NULL, PETSC_FALSE, &unused, h, NULL));
  PetscCall((*l->loss->curvature)(h));
  PetscCall(WeighRows(l, h));
  PetscFunctionReturn(0);
}

/*
  The step k >= 0 that minimises  linear k + square k^2/2 + R(base + k d),  and the risk there. This function is convex, so its slope increases along the line. The search brackets
  the zero of the slope, and then applies the Illinois variant of regula falsi until the slope is tol times its initial value. At a kink the slope jumps; then the search stops when
  the bracket is small.
*/
PetscErrorCode SearchLine(Learner *l, PetscReal linear, PetscReal square, PetscReal tol, PetscReal *step, PetscReal *risk)
{
  PetscReal      low = 0, high = -1, atlow, athigh = 0, first, value, slope, best, k = l->trial;
  int            side = 0;
  PetscLogDouble begin, end;

  PetscFunctionBeginUser;
  PetscCall(PetscTime(&begin));
  PetscCall(SetLine(l));
  PetscCall(RiskAlong(l, 0, risk, &slope));
  *step = 0;
  best  = *risk;
  first = atlow = linear + slope;
  for (int n = 0; first < 0 && n < EVALUATIONS; n++) {
    PetscReal h;

    PetscCall(RiskAlong(l, k, &value, &slope));
    h = linear + square * k + slope;
    if (value + k * (linear + 0.5 * square * k) < best) {
      best  = value + k * (linear + 0.5 * square * k);
      *risk = value;
      *step = k;
    }
    if (PetscAbsReal(h) <= -tol * first || PetscIsInfOrNanReal(h)) break;
    if (h < 0) {
      low   = k;
      atlow = h;
      if (high > 0 && side < 0) athigh *= 0.5;
      side = -1;
    } else {
      high   = k;
      athigh = h;
      if (side > 0) atlow *= 0.5;
      side = 1;
    }
    if (high < 0) k *= 4;
    else {
      if (high - low <= 1e-3 * high && *step > 0) break;
      k = (low * athigh - high * atlow) / (athigh - atlow);
      k = PetscMin(PetscMax(k, low + 0.01 * (high - low)), high - 0.01 * (high - low));
    }
  }
  PetscCall(PetscTime(&end));
  l->seconds[TIME_LOSS] += end - begin;
  PetscFunctionReturn(0);
}

/* Creates the vectors for the data, and sets everything to zero */
PetscErrorCode LearnerSetUp(Learner *l)
{
  PetscBool  host;
  VecGPUInfo i;
  PetscInt   elsewhere                      = 0;
  PetscErrorCode (*info)(Vec, VecGPUInfo *) = NULL;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(l->k, &l->w));
  PetscCall(MatCreateVecs(l->data.X, &l->w[0], &l->s));
  PetscCall(VecSet(l->w[0], 0.0));
  for (PetscInt j = 1; j < l->k; j++) {
    PetscCall(VecDuplicate(l->w[0], &l->w[j]));
    PetscCall(VecSet(l->w[j], 0.0));
  }
  PetscCall(VecGetSize(l->w[0], &l->columns));
  PetscCall(CreateVecs(l->s, 4, (Vec *const[]){&l->c, &l->z, &l->origin, &l->d}));
  /* are these vectors in host memory on all ranks? The type does not tell, because vectors of a library may have the standard type name */
  PetscCall(PetscObjectTypeCompareAny((PetscObject)l->s, &host, VECSEQ, VECMPI, ""));
  PetscCall(PetscDLSym(NULL, "VecGPUGetInfo", (void **)&info));
  if (info && host) {
    PetscCall(PetscPushErrorHandler(PetscIgnoreErrorHandler, NULL)); /* an error means that the vectors are not the library's */
    elsewhere = !(*info)(l->s, &i) && strcmp(i.backend, "host");
    PetscCall(PetscPopErrorHandler());
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &elsewhere, 1, MPIU_INT, MPI_MAX, PetscObjectComm((PetscObject)l->s)));
  if (elsewhere) host = PETSC_FALSE;
  l->vectors = (PetscBool)((!host || l->settings->vectors) && l->loss->vectors);
  if (l->vectors) {
    PetscCall(CreateVecs(l->s, 2, (Vec *const[]){&l->f, &l->zero}));
    PetscCall(VecSet(l->zero, 0.0));
    if (l->loss->power) PetscCall(CreateVecs(l->s, 2, (Vec *const[]){&l->t, &l->dt}));
  }
  if (l->bias >= 0 && !l->settings->regularised) {
    PetscCall(CreateVecs(l->s, 3, (Vec *const[]){&l->ones, &l->near, &l->other}));
    PetscCall(VecSet(l->ones, 1.0));
    PetscCall(VecDuplicate(l->w[0], &l->unit));
    PetscCall(VecSet(l->unit, 0.0));
    PetscCall(VecSetValue(l->unit, l->columns - 1, 1.0, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(l->unit));
    PetscCall(VecAssemblyEnd(l->unit));
  }
  PetscFunctionReturn(0);
}

/* Sets labels and row weights for weight vector j. Labels of classes become +1 and -1. The weight of a row is the weight in the file times the weight of its class */
PetscErrorCode LearnerClass(Learner *l, PetscInt j)
{
  const Settings *o = l->settings;
  PetscInt        m;
  PetscReal       weight[2] = {1, 1};

  PetscFunctionBeginUser;
  l->which = j;
  l->trial = 1;
  l->shift = 0;
  PetscCall(VecCopy(l->data.y, l->z));
  PetscCall(VecDestroy(&l->u));
  if (l->data.u || o->nweights) {
    PetscCall(VecDuplicate(l->s, &l->u));
    if (l->data.u) PetscCall(VecCopy(l->data.u, l->u));
    else PetscCall(VecSet(l->u, 1.0));
  }
  PetscCall(VecGetLocalSize(l->z, &m));
  if (l->nclasses) {
    const PetscReal positive = l->k == 1 ? l->label[1] : l->label[j];
    PetscScalar    *z, *u = NULL;

    /* as in LIBLINEAR: with several classes, only the positive class has a weight */
    for (PetscInt i = 0; i < o->nweights; i++) {
      if (o->weighted[i] == positive) weight[1] = o->weight[i];
      else if (l->k == 1) weight[0] = o->weight[i];
    }
    PetscCall(VecGetArray(l->z, &z));
    if (l->u) PetscCall(VecGetArray(l->u, &u));
    for (PetscInt i = 0; i < m; i++) {
      const int is = PetscRealPart(z[i]) == positive;

      z[i] = is ? 1 : -1;
      if (u) u[i] *= weight[is];
    }
    if (l->u) PetscCall(VecRestoreArray(l->u, &u));
    PetscCall(VecRestoreArray(l->z, &z));
  }
  PetscFunctionReturn(0);
}

PetscErrorCode LearnerDestroy(Learner *l)
{
  Vec *const vectors[] = {&l->z, &l->u, &l->s, &l->c, &l->f, &l->origin, &l->d, &l->t, &l->dt, &l->zero, &l->ones, &l->unit, &l->near, &l->other};

  PetscFunctionBeginUser;
  for (PetscInt j = 0; l->w && j < l->k; j++) PetscCall(VecDestroy(&l->w[j]));
  PetscCall(PetscFree(l->w));
  PetscCall(DestroyVecs(PETSC_STATIC_ARRAY_LENGTH(vectors), vectors));
  PetscCall(DataDestroy(&l->data));
  PetscFunctionReturn(0);
}

/* ---- check of subgradients ---- */

/*
  At random weights this compares the subgradient with central differences along a random direction, and with the slope along that line. It also checks
  f(v) >= f(w) + <g, v - w>, which holds for every subgradient of a convex function. If a loss has kinks, the difference is wrong for the rows with a
  kink between the two points, so the points are close and the bound is wider.
*/
PetscErrorCode CheckRisk(Learner *l, PetscInt seed)
{
  Vec w, d, g, *const vectors[] = {&w, &d, &g};
  PetscReal       f, fplus, fminus, slope, along, bound, error = 0, below = 0;
  PetscScalar     gd;
  PetscRandom     random;
  const PetscReal h = 1e-6;

  PetscFunctionBeginUser;
  PetscCall(CreateVecs(l->w[0], 3, vectors));
  PetscCall(PetscRandomCreate(PetscObjectComm((PetscObject)w), &random));
  PetscCall(PetscRandomSetInterval(random, -1.0, 1.0));
  PetscCall(PetscRandomSetSeed(random, (unsigned long)seed));
  PetscCall(PetscRandomSeed(random));
  for (int trial = 0; trial < 5; trial++) {
    PetscCall(LearnerClass(l, trial % l->k));
    PetscCall(VecSetRandom(w, random));
    PetscCall(VecSetRandom(d, random));
    PetscCall(Scores(l, w, l->origin));
    PetscCall(Scores(l, d, l->d));
    PetscCall(SetLine(l));
    PetscCall(RiskAlong(l, h, &fplus, &along));
    PetscCall(RiskAlong(l, -h, &fminus, &along));
    PetscCall(RiskAlong(l, 0, &f, &along));
    PetscCall(RiskAt(l, l->origin, l->c, &f));
    PetscCall(Subgradient(l, l->c, g));
    PetscCall(VecDot(d, g, &gd));
    slope = (fplus - fminus) / (2 * h);
    error = PetscMax(error, PetscMax(PetscAbsReal(slope - PetscRealPart(gd)), PetscAbsReal(along - PetscRealPart(gd))) / (PetscAbsReal(slope) + 1));
    PetscCall(RiskAlong(l, 1, &fplus, &along));
    below = PetscMax(below, (f + PetscRealPart(gd) - fplus) / (PetscAbsReal(f) + 1));
  }
  bound = l->loss->curvature ? 1e-7 : 1e-3;
  PetscCheck(error <= bound, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Loss %s: the subgradient differs from finite differences by %g of them, %g is allowed", l->loss->name, (double)error, (double)bound);
  PetscCheck(below <= 1e-12, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Loss %s: the plane of the subgradient lies above the loss by %g", l->loss->name, (double)below);
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "check      loss %s: finite differences agree within %g, its planes lie below it\n", l->loss->name, (double)bound));
  PetscCall(PetscRandomDestroy(&random));
  PetscCall(DestroyVecs(3, vectors));
  PetscFunctionReturn(0);
}

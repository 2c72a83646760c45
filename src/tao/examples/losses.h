#pragma once

/*
  Losses of linear models: value and subgradient, both by the scores s = X w.

  A loss of single rows is a sum over rows, whose terms depend on the score and the label of a row; a loss of all rows together depends on the
  order of the scores. The first are computed by every rank on its own rows, the second by one rank on all.

  Losses of single rows are there twice: as a loop, one pass over arrays of the host; and as operations of vectors, for vectors that are somewhere else.

  Two classes have the labels -1 and +1 here, whatever they are in the file.
*/
#include <petscvec.h>
#include <stdlib.h>

typedef enum {
  LABELS_CLASSES, /* names of classes */
  LABELS_TARGETS  /* numbers to be met */
} LabelKind;

typedef struct {
  const char *name;
  LabelKind   labels;
  const char *option; /* that of its parameter, NULL where it has none */
  PetscReal   usual;  /* the parameter when the option is not given */
  PetscBool   smooth; /* differentiable everywhere */
  /* sum of the losses of n rows; c[i] becomes scale times the slope of the loss of row i */
  PetscReal (*rows)(PetscInt n, const PetscScalar s[], const PetscScalar y[], PetscReal parameter, PetscReal scale, PetscScalar c[]);
  /* the same of all ranks' rows by vectors; of t, those that the function says are left to it */
  PetscErrorCode (*vectors)(Vec s, Vec y, PetscReal parameter, PetscReal scale, Vec zero, Vec t[], Vec c, PetscReal *sum);
  /* loss of all n rows together; c[i] becomes its slope by the score of row i */
  PetscErrorCode (*together)(PetscInt n, const PetscScalar s[], const PetscScalar y[], PetscScalar c[], PetscReal *value);
} Loss;

/* ---- losses of single rows: value at a score s with the label y, and its slope ---- */

static inline PetscReal HingeRow(PetscReal s, PetscReal y, PetscReal p, PetscReal *slope)
{
  const PetscReal t = 1 - y * s;

  *slope = t > 0 ? -y : 0;
  return t > 0 ? t : 0;
}

static inline PetscReal SquaredHingeRow(PetscReal s, PetscReal y, PetscReal p, PetscReal *slope)
{
  const PetscReal t = 1 - y * s;

  *slope = t > 0 ? -2 * y * t : 0;
  return t > 0 ? t * t : 0;
}

/* log(1 + exp(-ys)); the exponential is taken of what is negative */
static inline PetscReal LogisticRow(PetscReal s, PetscReal y, PetscReal p, PetscReal *slope)
{
  const PetscReal t = y * s, e = PetscExpReal(-PetscAbsReal(t));

  *slope = -y * (t > 0 ? e : 1) / (1 + e);
  return (t > 0 ? 0 : -t) + log1p(e);
}

static inline PetscReal LeastSquaresRow(PetscReal s, PetscReal y, PetscReal p, PetscReal *slope)
{
  *slope = s - y;
  return 0.5 * (s - y) * (s - y);
}

/* |s - y|, but nothing closer than p */
static inline PetscReal InsensitiveRow(PetscReal s, PetscReal y, PetscReal p, PetscReal *slope)
{
  const PetscReal d = s - y;

  *slope = d > p ? 1 : (d < -p ? -1 : 0);
  return PetscMax(PetscAbsReal(d) - p, 0);
}

/* The best constant score is the p-quantile of the labels */
static inline PetscReal QuantileRow(PetscReal s, PetscReal y, PetscReal p, PetscReal *slope)
{
  const PetscReal d = y - s;

  *slope = d > 0 ? -p : (d < 0 ? 1 - p : 0);
  return d > 0 ? p * d : (p - 1) * d;
}

/* Rows are summed up in so many parts, by as many threads as there are: the sum does not depend on their number */
#define LOSS_PARTS 64

/* The loop over rows, with the loss of a row inlined */
#define LOSS_ROWS(Row) \
  static PetscReal Row##s(PetscInt n, const PetscScalar s[], const PetscScalar y[], PetscReal p, PetscReal scale, PetscScalar c[]) \
  { \
    PetscReal part[LOSS_PARTS], sum = 0; \
\
    _Pragma("omp parallel for schedule(static) if (n > 50000)") for (int k = 0; k < LOSS_PARTS; k++) \
    { \
      const PetscInt begin = (PetscInt)((PetscInt64)n * k / LOSS_PARTS), end = (PetscInt)((PetscInt64)n * (k + 1) / LOSS_PARTS); \
      PetscReal      losses = 0; \
\
      _Pragma("omp simd reduction(+ : losses)") for (PetscInt i = begin; i < end; i++) \
      { \
        PetscReal slope; \
\
        losses += Row(PetscRealPart(s[i]), PetscRealPart(y[i]), p, &slope); \
        c[i] = scale * slope; \
      } \
      part[k] = losses; \
    } \
    for (int k = 0; k < LOSS_PARTS; k++) sum += part[k]; \
    return sum; \
  }
LOSS_ROWS(HingeRow)
LOSS_ROWS(SquaredHingeRow)
LOSS_ROWS(LogisticRow)
LOSS_ROWS(LeastSquaresRow)
LOSS_ROWS(InsensitiveRow)
LOSS_ROWS(QuantileRow)

/* ---- the same by vectors; PETSc's quotient is zero where the divisor is, so that v/v says where v is not zero ---- */

#define LOSS_VECTORS 2 /* that they are lent */

/* m = max(1 - ys, 0) */
static PetscErrorCode Margin(Vec s, Vec y, Vec zero, Vec m)
{
  PetscFunctionBeginUser;
  PetscCall(VecPointwiseMult(m, y, s));
  PetscCall(VecScale(m, -1.0));
  PetscCall(VecShift(m, 1.0));
  PetscCall(VecPointwiseMax(m, m, zero));
  PetscFunctionReturn(0);
}

static PetscErrorCode HingeVectors(Vec s, Vec y, PetscReal p, PetscReal scale, Vec zero, Vec t[], Vec c, PetscReal *sum)
{
  PetscScalar total;

  PetscFunctionBeginUser;
  PetscCall(Margin(s, y, zero, t[0]));
  PetscCall(VecPointwiseDivide(c, t[0], t[0]));
  PetscCall(VecPointwiseMult(c, c, y));
  PetscCall(VecScale(c, -scale));
  PetscCall(VecSum(t[0], &total));
  *sum = PetscRealPart(total);
  PetscFunctionReturn(0);
}

static PetscErrorCode SquaredHingeVectors(Vec s, Vec y, PetscReal p, PetscReal scale, Vec zero, Vec t[], Vec c, PetscReal *sum)
{
  PetscScalar total;

  PetscFunctionBeginUser;
  PetscCall(Margin(s, y, zero, t[0]));
  PetscCall(VecPointwiseMult(c, t[0], y));
  PetscCall(VecScale(c, -2 * scale));
  PetscCall(VecDot(t[0], t[0], &total));
  *sum = PetscRealPart(total);
  PetscFunctionReturn(0);
}

/* With m = ys and e = exp(-|m|): the loss is max(m, 0) - m + log(1 + e), its slope -y exp(-max(m, 0)) / (1 + e) */
static PetscErrorCode LogisticVectors(Vec s, Vec y, PetscReal p, PetscReal scale, Vec zero, Vec t[], Vec c, PetscReal *sum)
{
  PetscScalar linear, logarithms;

  PetscFunctionBeginUser;
  PetscCall(VecPointwiseMult(t[0], y, s));
  PetscCall(VecPointwiseMax(c, t[0], zero));
  PetscCall(VecCopy(t[0], t[1]));
  PetscCall(VecAYPX(t[0], -1.0, c));
  PetscCall(VecSum(t[0], &linear));
  PetscCall(VecAbs(t[1]));
  PetscCall(VecScale(t[1], -1.0));
  PetscCall(VecExp(t[1]));
  PetscCall(VecShift(t[1], 1.0));
  PetscCall(VecScale(c, -1.0));
  PetscCall(VecExp(c));
  PetscCall(VecPointwiseDivide(c, c, t[1]));
  PetscCall(VecPointwiseMult(c, c, y));
  PetscCall(VecScale(c, -scale));
  PetscCall(VecLog(t[1]));
  PetscCall(VecSum(t[1], &logarithms));
  *sum = PetscRealPart(linear + logarithms);
  PetscFunctionReturn(0);
}

static PetscErrorCode LeastSquaresVectors(Vec s, Vec y, PetscReal p, PetscReal scale, Vec zero, Vec t[], Vec c, PetscReal *sum)
{
  PetscScalar total;

  PetscFunctionBeginUser;
  PetscCall(VecWAXPY(c, -1.0, y, s));
  PetscCall(VecDot(c, c, &total));
  PetscCall(VecScale(c, scale));
  *sum = 0.5 * PetscRealPart(total);
  PetscFunctionReturn(0);
}

static PetscErrorCode InsensitiveVectors(Vec s, Vec y, PetscReal p, PetscReal scale, Vec zero, Vec t[], Vec c, PetscReal *sum)
{
  PetscScalar total;

  PetscFunctionBeginUser;
  PetscCall(VecWAXPY(t[0], -1.0, y, s));
  PetscCall(VecCopy(t[0], t[1]));
  PetscCall(VecAbs(t[1]));
  PetscCall(VecPointwiseDivide(t[0], t[0], t[1])); /* the sign */
  PetscCall(VecShift(t[1], -p));
  PetscCall(VecPointwiseMax(t[1], t[1], zero));
  PetscCall(VecPointwiseDivide(c, t[1], t[1]));
  PetscCall(VecPointwiseMult(c, c, t[0]));
  PetscCall(VecScale(c, scale));
  PetscCall(VecSum(t[1], &total));
  *sum = PetscRealPart(total);
  PetscFunctionReturn(0);
}

static PetscErrorCode QuantileVectors(Vec s, Vec y, PetscReal p, PetscReal scale, Vec zero, Vec t[], Vec c, PetscReal *sum)
{
  PetscScalar above, below;

  PetscFunctionBeginUser;
  PetscCall(VecWAXPY(t[1], -1.0, y, s));
  PetscCall(VecPointwiseMax(t[0], t[1], zero)); /* scores that are too high, by so much, */
  PetscCall(VecScale(t[1], -1.0));
  PetscCall(VecPointwiseMax(t[1], t[1], zero)); /* and too low */
  PetscCall(VecSum(t[0], &above));
  PetscCall(VecSum(t[1], &below));
  PetscCall(VecPointwiseDivide(c, t[0], t[0]));
  PetscCall(VecPointwiseDivide(t[1], t[1], t[1]));
  PetscCall(VecAXPBY(c, -p * scale, (1 - p) * scale, t[1]));
  *sum = (1 - p) * PetscRealPart(above) + p * PetscRealPart(below);
  PetscFunctionReturn(0);
}

/* ---- losses of all rows together ---- */

typedef struct {
  PetscReal score;
  PetscInt  row;
} Ranked;

static int CompareRanked(const void *a, const void *b)
{
  const Ranked *x = (const Ranked *)a, *y = (const Ranked *)b;

  if (x->score != y->score) return x->score < y->score ? -1 : 1;
  return x->row < y->row ? -1 : (x->row > y->row); /* qsort() does not keep the order of equals */
}

/* The rows of each class by ascending score; positive and negative are one array, to be freed by PetscFree(*negative) */
static inline PetscErrorCode RankClasses(PetscInt n, const PetscScalar s[], const PetscScalar y[], Ranked **negative, PetscInt *nneg, Ranked **positive, PetscInt *npos)
{
  PetscInt neg = 0, pos;

  PetscFunctionBeginUser;
  for (PetscInt i = 0; i < n; i++) neg += PetscRealPart(y[i]) < 0;
  *nneg = neg;
  *npos = n - neg;
  PetscCall(PetscMalloc1(n, negative));
  *positive = *negative + neg;
  pos       = neg;
  neg       = 0;
  for (PetscInt i = 0; i < n; i++) {
    Ranked *r = *negative + (PetscRealPart(y[i]) < 0 ? neg++ : pos++);

    r->score = PetscRealPart(s[i]);
    r->row   = i;
  }
  qsort(*negative, (size_t)*nneg, sizeof(Ranked), CompareRanked);
  qsort(*positive, (size_t)*npos, sizeof(Ranked), CompareRanked);
  PetscFunctionReturn(0);
}

/*
  ROC area: the mean of max(0, 1 - (s_i - s_j)) over all pairs of a positive row i and a negative row j, a bound on the share of pairs in wrong
  order, 1 - AUC. (T. Joachims, A support vector method for multivariate performance measures, ICML 2005.)

  The negatives that lose with a positive of score s are those above s - 1: with both classes sorted one pass counts them.
*/
static PetscErrorCode ROCAreaLoss(PetscInt n, const PetscScalar s[], const PetscScalar y[], PetscScalar c[], PetscReal *value)
{
  Ranked   *neg = NULL, *pos = NULL;
  PetscInt  nneg, npos, j;
  PetscReal pairs, sum = 0;

  PetscFunctionBeginUser;
  PetscCall(RankClasses(n, s, y, &neg, &nneg, &pos, &npos));
  pairs = (PetscReal)nneg * (PetscReal)npos;
  j     = 0;
  for (PetscInt i = 0; i < npos; i++) {
    while (j < nneg && neg[j].score <= pos[i].score - 1) j++;
    c[pos[i].row] = -(PetscReal)(nneg - j) / pairs;
    sum += (PetscReal)(nneg - j) * (1 - pos[i].score);
  }
  j = 0;
  for (PetscInt i = 0; i < nneg; i++) {
    while (j < npos && pos[j].score < neg[i].score + 1) j++;
    c[neg[i].row] = (PetscReal)j / pairs;
    sum += (PetscReal)j * neg[i].score;
  }
  *value = sum / pairs;
  PetscCall(PetscFree(neg));
  PetscFunctionReturn(0);
}

/*
  F1: the largest, over all labellings z of the rows, of 1 - F1(z) + (1/n) sum (z_i - y_i) s_i, a bound on 1 - F1 of the signs of the scores.
  (Joachims, as above.)

  F1 depends on z by two numbers, of the a true and the b false positives: 2a / (a + b + positives). With both given, the sum is largest for the a
  highest positives and the b highest negatives. For a fixed a the whole is concave in b, so that its best b is found by bisection.
*/
static PetscErrorCode F1Loss(PetscInt n, const PetscScalar s[], const PetscScalar y[], PetscScalar c[], PetscReal *value)
{
  Ranked    *neg = NULL, *pos = NULL;
  PetscInt   nneg, npos, besta = 0, bestb = 0;
  PetscReal *sum, missed = 0, best = -PETSC_MAX_REAL; /* sum[b]: of the b highest negative scores */

  PetscFunctionBeginUser;
  PetscCall(RankClasses(n, s, y, &neg, &nneg, &pos, &npos));
  PetscCall(PetscMalloc1(nneg + 1, &sum));
  sum[0] = 0;
  for (PetscInt b = 0; b < nneg; b++) sum[b + 1] = sum[b] + neg[nneg - 1 - b].score;
  for (PetscInt a = npos; a >= 0; a--) { /* missed: sum of the scores of the lowest npos - a positives */
    PetscInt  low = 0, high = nneg;
    PetscReal total;

    while (low < high) {
      const PetscInt b = (low + high) / 2;

      if (2.0 * a / (a + b + npos) - 2.0 * a / (a + b + 1 + npos) + 2 * (sum[b + 1] - sum[b]) / n > 0) low = b + 1;
      else high = b;
    }
    total = 1 - 2.0 * a / (a + low + npos) + 2 * (sum[low] - missed) / n;
    if (total > best) {
      best  = total;
      besta = a;
      bestb = low;
    }
    if (a > 0) missed += pos[npos - a].score;
  }
  for (PetscInt i = 0; i < npos; i++) c[pos[i].row] = i < npos - besta ? -2.0 / n : 0;
  for (PetscInt i = 0; i < nneg; i++) c[neg[i].row] = i >= nneg - bestb ? 2.0 / n : 0;
  *value = best;
  PetscCall(PetscFree(sum));
  PetscCall(PetscFree(neg));
  PetscFunctionReturn(0);
}

static const Loss losses[] = {
  {"hinge",         LABELS_CLASSES, NULL,           0,   PETSC_FALSE, HingeRows,        HingeVectors,        NULL       },
  {"squared_hinge", LABELS_CLASSES, NULL,           0,   PETSC_TRUE,  SquaredHingeRows, SquaredHingeVectors, NULL       },
  {"logistic",      LABELS_CLASSES, NULL,           0,   PETSC_TRUE,  LogisticRows,     LogisticVectors,     NULL       },
  {"roc",           LABELS_CLASSES, NULL,           0,   PETSC_FALSE, NULL,             NULL,                ROCAreaLoss},
  {"f1",            LABELS_CLASSES, NULL,           0,   PETSC_FALSE, NULL,             NULL,                F1Loss     },
  {"least_squares", LABELS_TARGETS, NULL,           0,   PETSC_TRUE,  LeastSquaresRows, LeastSquaresVectors, NULL       },
  {"absolute",      LABELS_TARGETS, NULL,           0,   PETSC_FALSE, InsensitiveRows,  InsensitiveVectors,  NULL       },
  {"insensitive",   LABELS_TARGETS, "-insensitive", 0.1, PETSC_FALSE, InsensitiveRows,  InsensitiveVectors,  NULL       },
  {"quantile",      LABELS_TARGETS, "-quantile",    0.5, PETSC_FALSE, QuantileRows,     QuantileVectors,     NULL       },
};

/* ---- quality of scores ---- */

/* Share of the pairs of a positive and a negative row that are in the right order, ties counted half */
static inline PetscErrorCode ROCArea(PetscInt n, const PetscScalar s[], const PetscScalar y[], PetscReal *area)
{
  Ranked   *neg = NULL, *pos = NULL;
  PetscInt  nneg, npos, below = 0, upto = 0;
  PetscReal sum = 0;

  PetscFunctionBeginUser;
  PetscCall(RankClasses(n, s, y, &neg, &nneg, &pos, &npos));
  for (PetscInt i = 0; i < npos; i++) {
    while (below < nneg && neg[below].score < pos[i].score) below++;
    while (upto < nneg && neg[upto].score <= pos[i].score) upto++;
    sum += 0.5 * ((PetscReal)below + (PetscReal)upto);
  }
  *area = nneg && npos ? sum / ((PetscReal)nneg * (PetscReal)npos) : 0.5;
  PetscCall(PetscFree(neg));
  PetscFunctionReturn(0);
}

/*
  Losses of linear models: value and slope, as functions of the scores s = X w.

  A loss of single rows is a sum over rows; each term depends on the score and the label of one row. A loss of all rows together depends on the
  order of the scores. Every rank computes the former on its own rows, the latter on all rows.

  Losses of single rows have two implementations: a loop over arrays in host memory, and vector operations for other vectors.

  Two classes have the labels -1 and +1 here, whatever their names in the file.
*/
#include "losses.h"

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

/* log(1 + exp(-ys)), with an exponential of a negative number only, so that it cannot overflow */
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

/* Zero for a distance d of score and label within e. Beyond, the remaining distance times `above` or `below` */
static inline PetscReal SidesRow(PetscReal d, PetscReal e, PetscReal above, PetscReal below, PetscReal *slope)
{
  *slope = d > e ? above : (d < -e ? -below : 0);
  return d > e ? above * (d - e) : (d < -e ? below * (-d - e) : 0);
}

static inline PetscReal InsensitiveRow(PetscReal s, PetscReal y, PetscReal p, PetscReal *slope)
{
  return SidesRow(s - y, p, 1, 1, slope);
}

/* The best constant score is the p-quantile of the labels */
static inline PetscReal QuantileRow(PetscReal s, PetscReal y, PetscReal p, PetscReal *slope)
{
  return SidesRow(s - y, 0, 1 - p, p, slope);
}

/* Rows are summed in a fixed number of parts, so that the sum does not depend on the number of threads */
#define LOSS_PARTS 64

/* The loop over rows, with the loss of a row inlined */
#define LOSS_ROWS(Row) \
  static PetscReal Row##s(LossRows *r) \
  { \
    const PetscScalar *const s = r->s, *const d = r->d, *const y = r->y, *const u = r->u; \
    const PetscReal    p = r->parameter, k = r->k, scale = r->scale; \
    PetscScalar *const c = r->c; \
    PetscReal          part[LOSS_PARTS], slopes[LOSS_PARTS], sum = 0; \
\
    _Pragma("omp parallel for schedule(static) if (r->n > 50000)") for (int part_ = 0; part_ < LOSS_PARTS; part_++) \
    { \
      const PetscInt begin = (PetscInt)((PetscInt64)r->n * part_ / LOSS_PARTS), end = (PetscInt)((PetscInt64)r->n * (part_ + 1) / LOSS_PARTS); \
      PetscReal      losses_ = 0, slopes_ = 0; \
\
      if (d) { \
        _Pragma("omp simd reduction(+ : losses_, slopes_)") for (PetscInt i = begin; i < end; i++) \
        { \
          const PetscReal weight = u ? PetscRealPart(u[i]) : 1; \
          PetscReal       slope; \
\
          losses_ += weight * Row(PetscRealPart(s[i]) + k * PetscRealPart(d[i]), PetscRealPart(y[i]), p, &slope); \
          slopes_ += weight * slope * PetscRealPart(d[i]); \
        } \
      } else { \
        _Pragma("omp simd reduction(+ : losses_)") for (PetscInt i = begin; i < end; i++) \
        { \
          const PetscReal weight = u ? PetscRealPart(u[i]) : 1; \
          PetscReal       slope; \
\
          losses_ += weight * Row(PetscRealPart(s[i]), PetscRealPart(y[i]), p, &slope); \
          c[i] = scale * weight * slope; \
        } \
      } \
      part[part_]   = losses_; \
      slopes[part_] = slopes_; \
    } \
    r->along = 0; \
    for (int i = 0; i < LOSS_PARTS; i++) { \
      sum += part[i]; \
      r->along += scale * slopes[i]; \
    } \
    return sum; \
  }
LOSS_ROWS(HingeRow)
LOSS_ROWS(SquaredHingeRow)
LOSS_ROWS(LogisticRow)
LOSS_ROWS(LeastSquaresRow)
LOSS_ROWS(InsensitiveRow)
LOSS_ROWS(QuantileRow)

/* ---- the same by vector operations: losses to f, slopes to c. PETSc's quotient is zero where the divisor is zero, so v/v is 1 exactly where v is not zero ---- */

/* f = max(1 - ys, 0) */
static PetscErrorCode Margin(Vec s, Vec y, Vec zero, Vec f)
{
  PetscFunctionBeginUser;
  PetscCall(VecPointwiseMult(f, y, s));
  PetscCall(VecScale(f, -1.0));
  PetscCall(VecShift(f, 1.0));
  PetscCall(VecPointwiseMax(f, f, zero));
  PetscFunctionReturn(0);
}

static PetscErrorCode HingeVectors(Vec s, Vec y, PetscReal p, Vec zero, Vec f, Vec c)
{
  PetscFunctionBeginUser;
  PetscCall(Margin(s, y, zero, f));
  PetscCall(VecPointwiseDivide(c, f, f));
  PetscCall(VecPointwiseMult(c, c, y));
  PetscCall(VecScale(c, -1.0));
  PetscFunctionReturn(0);
}

static PetscErrorCode SquaredHingeVectors(Vec s, Vec y, PetscReal p, Vec zero, Vec f, Vec c)
{
  PetscFunctionBeginUser;
  PetscCall(Margin(s, y, zero, f));
  PetscCall(VecPointwiseMult(c, f, y));
  PetscCall(VecScale(c, -2.0));
  PetscCall(VecPointwiseMult(f, f, f));
  PetscFunctionReturn(0);
}

/* With m = ys and e = exp(-|m|): the loss is max(-m, 0) + log(1 + e), its slope -y exp(min(-m, 0)) / (1 + e) */
static PetscErrorCode LogisticVectors(Vec s, Vec y, PetscReal p, Vec zero, Vec f, Vec c)
{
  Vec t;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(s, &t));
  PetscCall(VecPointwiseMult(t, y, s));
  PetscCall(VecPointwiseMax(c, t, zero)); /* max(m, 0) */
  PetscCall(VecWAXPY(f, -1.0, t, c));     /* max(-m, 0) */
  PetscCall(VecAbs(t));
  PetscCall(VecScale(t, -1.0));
  PetscCall(VecExp(t));
  PetscCall(VecShift(t, 1.0));
  PetscCall(VecScale(c, -1.0));
  PetscCall(VecExp(c));
  PetscCall(VecPointwiseDivide(c, c, t));
  PetscCall(VecPointwiseMult(c, c, y));
  PetscCall(VecScale(c, -1.0));
  PetscCall(VecLog(t));
  PetscCall(VecAXPY(f, 1.0, t));
  PetscCall(VecDestroy(&t));
  PetscFunctionReturn(0);
}

static PetscErrorCode LeastSquaresVectors(Vec s, Vec y, PetscReal p, Vec zero, Vec f, Vec c)
{
  PetscFunctionBeginUser;
  PetscCall(VecWAXPY(c, -1.0, y, s));
  PetscCall(VecPointwiseMult(f, c, c));
  PetscCall(VecScale(f, 0.5));
  PetscFunctionReturn(0);
}

/* As SidesRow() */
static PetscErrorCode SidesVectors(Vec s, Vec y, PetscReal e, const PetscReal side[2], Vec zero, Vec f, Vec c)
{
  Vec t;

  PetscFunctionBeginUser;
  PetscCall(VecDuplicate(s, &t));
  PetscCall(VecWAXPY(f, -1.0, y, s));
  PetscCall(VecWAXPY(t, -1.0, s, y));
  PetscCall(VecShift(f, -e));
  PetscCall(VecShift(t, -e));
  PetscCall(VecPointwiseMax(f, f, zero));
  PetscCall(VecPointwiseMax(t, t, zero));
  PetscCall(VecPointwiseDivide(c, f, f));
  PetscCall(VecScale(c, side[0]));
  PetscCall(VecAXPBY(f, side[1], side[0], t));
  PetscCall(VecPointwiseDivide(t, t, t));
  PetscCall(VecAXPY(c, -side[1], t));
  PetscCall(VecDestroy(&t));
  PetscFunctionReturn(0);
}

static PetscErrorCode InsensitiveVectors(Vec s, Vec y, PetscReal p, Vec zero, Vec f, Vec c)
{
  const PetscReal sides[2] = {1, 1};

  return SidesVectors(s, y, p, sides, zero, f, c);
}

static PetscErrorCode QuantileVectors(Vec s, Vec y, PetscReal p, Vec zero, Vec f, Vec c)
{
  const PetscReal sides[2] = {1 - p, p};

  return SidesVectors(s, y, 0, sides, zero, f, c);
}

/* ---- second derivatives, computed from the slopes c in place ---- */

static PetscErrorCode SquaredHingeCurvature(Vec c)
{
  PetscFunctionBeginUser;
  PetscCall(VecPointwiseDivide(c, c, c));
  PetscCall(VecScale(c, 2.0));
  PetscFunctionReturn(0);
}

/* p (1 - p), where p = |c| is the probability of the other class */
static PetscErrorCode LogisticCurvature(Vec c)
{
  Vec t;

  PetscFunctionBeginUser;
  PetscCall(VecAbs(c));
  PetscCall(VecDuplicate(c, &t));
  PetscCall(VecPointwiseMult(t, c, c));
  PetscCall(VecAXPY(c, -1.0, t));
  PetscCall(VecDestroy(&t));
  PetscFunctionReturn(0);
}

static PetscErrorCode LeastSquaresCurvature(Vec c)
{
  return VecSet(c, 1.0);
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
  return x->row < y->row ? -1 : (x->row > y->row); /* qsort() is not stable */
}

/* Sorts the rows of each class by ascending score; positive and negative share one array, which PetscFree(*negative) frees */
static PetscErrorCode RankClasses(PetscInt n, const PetscScalar s[], const PetscScalar y[], Ranked **negative, PetscInt *nneg, Ranked **positive, PetscInt *npos)
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
  ROC area: the mean of max(0, 1 - (s_i - s_j)) over all pairs of a positive row i and a negative row j, an upper bound on the share of pairs in the
  wrong order, 1 - AUC. (T. Joachims, A support vector method for multivariate performance measures, ICML 2005.)

  A positive row of score s has a loss with the negative rows above s - 1. With both classes sorted, one pass counts them.
*/
static PetscErrorCode ROCAreaLoss(PetscInt n, const PetscScalar s[], const PetscScalar y[], const PetscScalar query[], PetscScalar c[], PetscReal *value)
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
  F1: the maximum of 1 - F1(z) + (1/n) sum (z_i - y_i) s_i over all labellings z of the rows, an upper bound on 1 - F1 of the signs of the scores.
  (Joachims, as above.)

  F1 depends on z only through the numbers of true positives a and false positives b: 2a / (a + b + positives). For given a and b, the sum is largest
  for the a highest positive rows and the b highest negative rows. For a fixed a the expression is concave in b, so bisection finds the best b.
*/
static PetscErrorCode F1Loss(PetscInt n, const PetscScalar s[], const PetscScalar y[], const PetscScalar query[], PetscScalar c[], PetscReal *value)
{
  Ranked    *neg = NULL, *pos = NULL;
  PetscInt   nneg, npos, besta = 0, bestb = 0;
  PetscReal *sum, missed = 0, best = -PETSC_MAX_REAL; /* sum[b]: sum of the b highest negative scores */

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

/* Rows by query, then by label, then by number */
typedef struct {
  PetscReal query, label, score;
  PetscInt  row;
} Judged;

static int CompareJudged(const void *a, const void *b)
{
  const Judged *x = (const Judged *)a, *y = (const Judged *)b;

  if (x->query != y->query) return x->query < y->query ? -1 : 1;
  if (x->label != y->label) return x->label < y->label ? -1 : 1;
  return x->row < y->row ? -1 : (x->row > y->row);
}

/*
  Pairs of two rows i and j of one query, where the label of i is greater. `loss` is the mean of max(0, 1 - (s_i - s_j)), and c, if given, its derivative. `right` is the share of pairs with s_i > s_j: ties count
  half, and no pair gives -1. The loop visits every pair, because queries are short.
*/
static PetscErrorCode Pairs(PetscInt n, const PetscScalar s[], const PetscScalar y[], const PetscScalar query[], PetscScalar c[], PetscReal *loss, PetscReal *right)
{
  Judged   *r;
  PetscReal pairs = 0, sum = 0, order = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(n, &r));
  for (PetscInt i = 0; i < n; i++) {
    r[i].query = PetscRealPart(query[i]);
    r[i].label = PetscRealPart(y[i]);
    r[i].score = PetscRealPart(s[i]);
    r[i].row   = i;
    if (c) c[i] = 0;
  }
  qsort(r, (size_t)n, sizeof(*r), CompareJudged);
  for (PetscInt first = 0, i = 0; i < n; i++) {
    if (r[i].query != r[first].query) first = i;
    for (PetscInt j = first; j < i && r[j].label < r[i].label; j++) {
      const PetscReal d = r[i].score - r[j].score;

      pairs++;
      order += d > 0 ? 1 : (d == 0 ? 0.5 : 0);
      if (d >= 1) continue;
      sum += 1 - d;
      if (!c) continue;
      c[r[i].row] -= 1;
      c[r[j].row] += 1;
    }
  }
  *loss  = sum / PetscMax(pairs, 1);
  *right = pairs > 0 ? order / pairs : -1;
  for (PetscInt i = 0; c && i < n; i++) c[i] /= PetscMax(pairs, 1);
  PetscCall(PetscFree(r));
  PetscFunctionReturn(0);
}

/* T. Joachims, Optimizing search engines using clickthrough data, KDD 2002 */
static PetscErrorCode RankLoss(PetscInt n, const PetscScalar s[], const PetscScalar y[], const PetscScalar query[], PetscScalar c[], PetscReal *value)
{
  PetscReal right;

  return Pairs(n, s, y, query, c, value, &right);
}

PetscErrorCode RankedPairs(PetscInt n, const PetscScalar s[], const PetscScalar y[], const PetscScalar query[], PetscReal *share)
{
  PetscReal loss;

  return Pairs(n, s, y, query, NULL, &loss, share);
}

const Loss losses[] = {
  {"hinge",         "L2R_L1LOSS_SVC_DUAL", LABELS_CLASSES, NULL,           0,   HingeRows,        HingeVectors,        1, NULL,                  NULL,        PETSC_FALSE, PETSC_TRUE },
  {"squared_hinge", "L2R_L2LOSS_SVC",      LABELS_CLASSES, NULL,           0,   SquaredHingeRows, SquaredHingeVectors, 2, SquaredHingeCurvature, NULL,        PETSC_FALSE, PETSC_FALSE},
  {"logistic",      "L2R_LR",              LABELS_CLASSES, NULL,           0,   LogisticRows,     LogisticVectors,     0, LogisticCurvature,     NULL,        PETSC_FALSE, PETSC_FALSE},
  {"roc",           "L2R_L1LOSS_SVC_DUAL", LABELS_CLASSES, NULL,           0,   NULL,             NULL,                0, NULL,                  ROCAreaLoss, PETSC_TRUE,  PETSC_FALSE},
  {"f1",            "L2R_L1LOSS_SVC_DUAL", LABELS_CLASSES, NULL,           0,   NULL,             NULL,                0, NULL,                  F1Loss,      PETSC_FALSE, PETSC_FALSE},
  {"rank",          "L2R_L2LOSS_SVR",      LABELS_RANKS,   NULL,           0,   NULL,             NULL,                0, NULL,                  RankLoss,    PETSC_TRUE,  PETSC_FALSE},
  {"least_squares", "L2R_L2LOSS_SVR",      LABELS_TARGETS, NULL,           0,   LeastSquaresRows, LeastSquaresVectors, 0, LeastSquaresCurvature, NULL,        PETSC_FALSE, PETSC_FALSE},
  {"absolute",      "L2R_L2LOSS_SVR",      LABELS_TARGETS, NULL,           0,   InsensitiveRows,  InsensitiveVectors,  0, NULL,                  NULL,        PETSC_FALSE, PETSC_FALSE},
  {"insensitive",   "L2R_L1LOSS_SVR_DUAL", LABELS_TARGETS, "-insensitive", 0.1, InsensitiveRows,  InsensitiveVectors,  0, NULL,                  NULL,        PETSC_FALSE, PETSC_FALSE},
  {"quantile",      "L2R_L2LOSS_SVR",      LABELS_TARGETS, "-quantile",    0.5, QuantileRows,     QuantileVectors,     0, NULL,                  NULL,        PETSC_FALSE, PETSC_FALSE},
  {NULL,            NULL,                  LABELS_TARGETS, NULL,           0,   NULL,             NULL,                0, NULL,                  NULL,        PETSC_FALSE, PETSC_FALSE}
};

/* ---- quality of scores ---- */

/* Share of the pairs of a positive and a negative row that are in the correct order; ties count half */
PetscErrorCode ROCArea(PetscInt n, const PetscScalar s[], const PetscScalar y[], PetscReal *area)
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

/*
  Every kernel on every matrix of the zoo and some larger matrices, against sums in long double. Covered are double, single and mixed precision; A and its transpose; all cases of alpha and beta, in place and not; ranges of rows; values
  changed after the build; Inf and NaN. -only TEXT,... takes pairs with one of these texts in "FORMAT KERNEL"; -every n takes each n-th matrix of the zoo (for the sanitizer). On the host backend this tests the formats' reference products, on a GPU the kernels. A new row
  of kernellist.h needs no line here.

  //TEST name="host" args="-backend host -large 0"
  //TEST name="host.large" args="-backend host -every 1000 -only {}" loop="bcsr2x2 dia hyb jad tile narrow"
  //TEST name="cuda" args="-backend cuda -only {}" loop="csr_s csr_v csr_b csr_a sell tile narrow bcsr1 bcsr2 bcsr3 bcsr4 bcsr8 block4x64 bitdense dia jad coo hyb" gpu=1
*/
static char help[] = "Tests kernels against sums in long double.\n";

#include "../src/mat/impls/gpucsr/blackbox/format/formats.h"
#include "../src/mat/impls/gpucsr/blackbox/plan/plan.h"
#include "testing.h"
#include <math.h>
#include <float.h>

static PetscInt failures  = 0;
static char     only[256] = ""; /* -only TEXT,...: pairs with one of these texts in "FORMAT KERNEL" */

typedef struct {
  const char  *name;
  PetscInt     m, n;
  int32_t     *i;
  PetscInt    *j;
  PetscScalar *a;
} Matrix;

/* Matrices that need many blocks: rows cut by many tiles, more rows than a grid's first wave, lengths of all sizes */
#define NLARGE 6
static PetscErrorCode Large(int which, Matrix *M)
{
  static const char *const names[NLARGE] = {"large uneven", "large even", "large one long row", "large few long rows", "large different columns", "large steps of 8192 columns"};
  static const PetscInt    rows[NLARGE] = {20011, 70001, 5000, 7, 3001, 301}, cols[NLARGE] = {15000, 70001, 300000, 120000, 200000, 81920};
  int64_t                  nnz = 0;

  PetscFunctionBegin;
  M->name = names[which];
  M->m    = rows[which];
  M->n    = cols[which];
  PetscCall(PetscMalloc1(M->m + 1, &M->i));
  M->i[0] = 0;
  for (PetscInt r = 0; r < M->m; r++) {
    PetscInt len = 0;

    if (which == 0) len = (r * 7919) % 13 ? (r * 31) % 9 : (r * 17) % 4000 / (1 + r % 7);
    if (which == 1) len = 5 + (r % 3);
    if (which == 2) len = r == 2500 ? 250000 : r % 4;
    if (which == 3) len = 100000 + r;
    if (which == 4) len = r < 1500 ? 40 + r % 20 : r % 9;
    if (which == 5) len = 2 * (1 + r / 32);
    M->i[r + 1] = M->i[r] + (int32_t)len;
  }
  nnz = M->i[M->m];
  PetscCall(PetscMalloc2(nnz, &M->j, nnz, &M->a));
  for (PetscInt r = 0; r < M->m; r++) {
    const PetscInt len = M->i[r + 1] - M->i[r];

    for (PetscInt k = 0; k < len; k++) {
      M->j[M->i[r] + k] = (PetscInt)(((int64_t)k * M->n) / PetscMax(1, len)); /* ascending, distinct as len <= n */
      if (which == 4) M->j[M->i[r] + k] += r * 37 % (M->n / PetscMax(1, len));
      if (which == 5) M->j[M->i[r] + k] = k / 2 * 8192 + (k % 2 ? 8191 : 0); /* the first and the last of each window of narrow columns: from one window to more than a slice may have */
      M->a[M->i[r] + k] = ZooScalar(which, r, k);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FromZoo(PetscInt which, PetscBool special, Matrix *M)
{
  Zoo z;

  PetscFunctionBegin;
  PetscCall(ZooCreate(which, special, &z));
  M->name = z.name;
  M->m    = z.m;
  M->n    = z.n;
  PetscCall(PetscMalloc1(z.m + 1, &M->i));
  for (PetscInt r = 0; r <= z.m; r++) M->i[r] = (int32_t)z.i[r];
  PetscCall(PetscMalloc2(z.i[z.m], &M->j, z.i[z.m], &M->a));
  PetscCall(PetscArraycpy(M->j, z.j, z.i[z.m]));
  PetscCall(PetscArraycpy(M->a, z.a, z.i[z.m]));
  PetscCall(ZooDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatrixDestroy(Matrix *M)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(M->i));
  PetscCall(PetscFree2(M->j, M->a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const double cases[][2] = {
  {1,    0   },
  {-2.5, 0.75},
  {1,    1   },
  {0,    1   },
  {1,    -1  }
}; /* alpha, beta; larger matrices take the first two */
#define NCASES 5

/* z = alpha op(A) x + beta y and, in bound, |alpha| |op(A)| |x| + |beta y|; count: terms of the longest sum */
static PetscErrorCode Reference(const Matrix *M, PetscBool trans, PetscBool single, double alpha, const double *x, double beta, const double *y, long double *z, long double *bound)
{
  const PetscInt rows = trans ? M->n : M->m;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < rows; r++) z[r] = bound[r] = 0;
  for (PetscInt r = 0; r < M->m; r++) {
    for (int32_t k = M->i[r]; k < M->i[r + 1]; k++) {
      const PetscInt    to = trans ? M->j[k] : r, from = trans ? r : M->j[k];
      const long double p = (long double)(single ? (double)(float)M->a[k] : M->a[k]) * x[from];

      z[to] += p;
      bound[to] += fabsl(p);
    }
  }
  for (PetscInt r = 0; r < rows; r++) {
    z[r]     = alpha * z[r];
    bound[r] = fabs(alpha) * bound[r];
    if (beta != 0) {
      z[r] += (long double)beta * y[r];
      bound[r] += fabsl((long double)beta * y[r]);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The value that a GPU may give for r: both NaN, or the same Inf, or within the bound */
static PetscBool Agrees(double v, long double r, long double bound, double eps, double terms)
{
  if (isnan(r)) return isnan(v) ? PETSC_TRUE : PETSC_FALSE;
  if (isinf(r)) return isinf(v) && (v > 0) == (r > 0) ? PETSC_TRUE : PETSC_FALSE;
  return fabsl(v - r) <= (2 + terms) * eps * bound + 4 * DBL_MIN ? PETSC_TRUE : PETSC_FALSE;
}

/*
  One matrix under test. A reference serves all kernels. Each state of the values (as built, refreshed), side, precision and case has one reference,
  with its x, its y and the initial NaN. The products of a kernel are launched without a wait, into places of their own, which are
  downloaded together.
*/
#define MAX_PRODUCTS (4 * NCASES)
typedef struct {
  GPUCSRDevice   dev;
  void          *x[2][2][2], *y[2], *nan[2]; /* by refreshed, trans, float */
  void          *ywork, *z, *result;
  size_t         bytes, resultbytes;
  double        *hx[2][2][2], *hy[2], *hz;
  int            ncases;
  PetscBool      special, doubles; /* doubles: vectors of a plan in single */
  long double   *ref[2][2][3][NCASES], *bound[2][2][3][NCASES];
  PetscBool      inspected;
  GPUCSRFeatures features; /* as the host's inspector has them */
} Space;

static PetscErrorCode Send(Space *w, void **to, GPUCSRType type, const double *from, size_t n)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRMalloc(w->dev, w->bytes, "a vector", to));
  PetscCall(GPUCSRUpload(w->dev, *to, type, from, GPUCSR_DOUBLE, n, PETSC_FALSE, w->dev->stream, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpaceCreate(GPUCSRDevice dev, const Matrix *M, PetscBool special, Space *w)
{
  const PetscInt longest = PetscMax(M->m, M->n) + 1;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(w, sizeof(*w)));
  w->dev         = dev;
  w->special     = special;
  w->bytes       = sizeof(double) * (size_t)longest;
  w->resultbytes = MAX_PRODUCTS * w->bytes;
  w->ncases      = longest < 10000 ? NCASES : 2;
  PetscCall(GPUCSRMalloc(dev, w->bytes, "y", &w->ywork));
  PetscCall(GPUCSRMalloc(dev, w->bytes, "z", &w->z));
  PetscCall(GPUCSRMalloc(dev, w->resultbytes, "results", &w->result));
  PetscCall(PetscMalloc1(longest, &w->hz));
  for (int f = 0; f < 2; f++) {
    const GPUCSRType vt = f ? GPUCSR_FLOAT : GPUCSR_DOUBLE;

    for (PetscInt k = 0; k < longest; k++) w->hz[k] = NAN;
    PetscCall(Send(w, &w->nan[f], vt, w->hz, (size_t)longest));
    PetscCall(PetscMalloc1(longest, &w->hy[f]));
    for (PetscInt k = 0; k < longest; k++) w->hy[f][k] = f ? (double)(float)ZooScalar(78, k, 2) : ZooScalar(78, k, 2);
    PetscCall(Send(w, &w->y[f], vt, w->hy[f], (size_t)longest));
    for (int refreshed = 0; refreshed < 2; refreshed++)
      for (int trans = 0; trans < 2; trans++) {
        const PetscInt cols = trans ? M->m : M->n;
        double       **hx   = &w->hx[refreshed][trans][f];

        PetscCall(PetscMalloc1(longest, hx));
        for (PetscInt k = 0; k < longest; k++) (*hx)[k] = f ? (double)(float)ZooScalar(77, k, 1) : ZooScalar(77, k, 1);
        if (special && !refreshed && cols > 4) {
          (*hx)[cols / 2] = NAN;
          (*hx)[cols - 1] = INFINITY;
        }
        PetscCall(Send(w, &w->x[refreshed][trans][f], vt, *hx, (size_t)longest));
      }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SpaceDestroy(Space *w)
{
  PetscFunctionBegin;
  for (int k = 0; k < 8; k++) {
    PetscCall(GPUCSRFree(w->dev, w->bytes, &(&w->x[0][0][0])[k]));
    PetscCall(PetscFree((&w->hx[0][0][0])[k]));
  }
  for (int f = 0; f < 2; f++) {
    PetscCall(GPUCSRFree(w->dev, w->bytes, &w->y[f]));
    PetscCall(GPUCSRFree(w->dev, w->bytes, &w->nan[f]));
    PetscCall(PetscFree(w->hy[f]));
  }
  PetscCall(GPUCSRFree(w->dev, w->bytes, &w->ywork));
  PetscCall(GPUCSRFree(w->dev, w->bytes, &w->z));
  PetscCall(GPUCSRFree(w->dev, w->resultbytes, &w->result));
  PetscCall(PetscFree(w->hz));
  for (int k = 0; k < 2 * 2 * 3 * NCASES; k++) {
    PetscCall(PetscFree((&w->ref[0][0][0][0])[k]));
    PetscCall(PetscFree((&w->bound[0][0][0][0])[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One product of the plan, in so many pieces, its result at the place of number q */
static PetscErrorCode Product(Space *w, GPUCSRPlan *P, int rows, int f, const void *x, const double ab[2], PetscBool inplace, int pieces, int q)
{
  GPUCSRDevice  d     = w->dev;
  const size_t  bytes = (f ? sizeof(float) : sizeof(double)) * (size_t)rows;
  GPUCSRProduct p     = {.alpha = ab[0], .beta = ab[1], .x = x, .y = inplace ? w->z : w->ywork, .z = w->z, .last = rows, .doubles = w->doubles};

  PetscFunctionBegin;
  /* poison what must be written, and y where it must not be read */
  PetscCall(d->ops->copy(d->id, w->ywork, p.beta != 0 ? w->y[f] : w->nan[f], bytes, GPUCSR_ON_DEVICE, d->stream));
  PetscCall(d->ops->copy(d->id, w->z, inplace && p.beta != 0 ? w->y[f] : w->nan[f], bytes, GPUCSR_ON_DEVICE, d->stream));
  for (int k = 0; k < pieces; k++) {
    p.first = (int)((int64_t)rows * k / pieces);
    p.last  = (int)((int64_t)rows * (k + 1) / pieces);
    PetscCall(GPUCSRPlanProduct(P, &p, d->stream));
  }
  PetscCall(d->ops->copy(d->id, (char *)w->result + w->bytes * (size_t)q, w->z, bytes, GPUCSR_ON_DEVICE, d->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The kernel that the plan has now. Double as built takes every meaning of alpha and beta; otherwise two meanings do, and for new values one. */
static PetscErrorCode Check(Space *w, const Matrix *M, PetscBool trans, GPUCSRPlan *P, int refreshed)
{
  const GPUCSRPrecision precision = w->doubles ? GPUCSR_PRECISION_MIXED : P->A.precision;
  const GPUCSRType      vt        = GPUCSRVectorType(precision);
  const int             f         = vt == GPUCSR_FLOAT;
  const PetscInt        rows      = trans ? M->n : M->m;
  const double          eps       = f ? FLT_EPSILON : DBL_EPSILON;
  const double          terms     = 4 + 2 * log2(1.0 + P->features.max) + P->features.max / 8.0;
  const PetscBool       special   = (PetscBool)(w->special && !refreshed);
  const PetscBool       piecewise = (PetscBool)(!w->dev->ops->separate || P->choice.kernel->family->piecewise);
  const double         *hx        = w->hx[refreshed][trans][f];
  int                   c[MAX_PRODUCTS], inplace[MAX_PRODUCTS], pieces[MAX_PRODUCTS], n = 0;

  PetscFunctionBegin;
  for (int k = refreshed; k < (refreshed || precision ? 2 : w->ncases); k++)
    for (int q = 0; q < 4; q++) {
      c[n]       = k;
      inplace[n] = q % 2;
      pieces[n]  = q < 2 ? 1 : 3;
      if (special && cases[k][0] == 0) continue; /* 0 Inf is NaN */
      if ((pieces[n] > 1 && (rows < 3 || !piecewise || k != 1)) || (refreshed && q)) continue;
      PetscCall(Product(w, P, (int)rows, f, w->x[refreshed][trans][f], cases[k], (PetscBool)inplace[n], pieces[n], n));
      n++;
    }
  for (int q = 0; q < n; q++) {
    long double **ref = &w->ref[refreshed][trans][precision][c[q]], **bound = &w->bound[refreshed][trans][precision][c[q]];

    PetscCall(GPUCSRDownload(w->dev, w->hz, GPUCSR_DOUBLE, (char *)w->result + w->bytes * (size_t)q, vt, (size_t)rows, PETSC_FALSE, w->dev->stream));
    if (!*ref) {
      PetscCall(PetscMalloc1(rows + 1, ref));
      PetscCall(PetscMalloc1(rows + 1, bound));
      PetscCall(Reference(M, trans, (PetscBool)(GPUCSRValueType(precision) == GPUCSR_FLOAT), cases[c[q]][0], hx, cases[c[q]][1], w->hy[f], *ref, *bound));
    }
    for (PetscInt k = 0; k < rows; k++) {
      if (Agrees(w->hz[k], (*ref)[k], (*bound)[k], eps, terms)) continue;
      if (failures++ < 20)
        PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s%s, %s, format %s, kernel %s, precision %d, alpha %g, beta %g, %s, %d pieces, %s: row %d is %.17g, should be %.17Lg within %.3Lg\n", M->name, special ? " (special)" : "", trans ? "transpose" : "plain",
                              P->A.format->name, P->choice.kernel ? P->choice.kernel->name : "none", (int)precision, cases[c[q]][0], cases[c[q]][1], inplace[q] ? "in place" : "out of place", pieces[q], refreshed ? "refreshed" : "built", (int)k, w->hz[k], (*ref)[k], (2 + terms) * eps * (*bound)[k]));
      break;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the kernel work on the format, and was it asked for? */
static PetscErrorCode Wanted(const GPUCSRFormat *format, const GPUCSRKernel *k, PetscBool *yes)
{
  char      names[128], text[sizeof(only)];
  size_t    length;
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(PetscStrcmp(k->format, format->family, &same));
  *yes = (PetscBool)(same && !only[0]);
  if (!same || *yes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(names, sizeof(names), "%s %s", format->name, k->name));
  for (const char *p = only; *p && !*yes; p += length + (p[length] == ',')) { /* asked for every kernel of every plan: without memory */
    length = strcspn(p, ",");
    memcpy(text, p, length);
    text[length] = 0;
    *yes         = (PetscBool)(length && strstr(names, text));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All requested kernels, on the format of the plan's matrix; on the host, the format's one reference kernel */
static PetscErrorCode CheckKernels(Space *w, const Matrix *M, PetscBool trans, GPUCSRPlan *P, int refreshed)
{
  const GPUCSRKernel *k;
  PetscBool           wanted;

  PetscFunctionBegin;
  for (int r = 0; (k = GPUCSRKernelGet(r)); r++) {
    PetscCall(Wanted(P->A.format, k, &wanted));
    if (!wanted) continue;
    if (P->choice.kernel != k && w->dev->ops->separate) {
      PetscCall(GPUCSRFree(w->dev, P->A.work.count * GPUCSRTypeSize(P->A.work.type), &P->A.work.data));
      P->choice.kernel = k;
      if (k->family->prepare) PetscCall((*k->family->prepare)(&P->A, k->variant));
    }
    for (int doubles = 0; doubles < (P->A.precision == GPUCSR_PRECISION_SINGLE && !refreshed ? 2 : 1); doubles++) {
      w->doubles = (PetscBool)doubles;
      PetscCall(Check(w, M, trans, P, refreshed));
    }
    w->doubles = PETSC_FALSE;
    if (!w->dev->ops->separate) break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The diagonal, straight from the values */
static PetscErrorCode CheckDiagonal(Space *w, const Matrix *M, GPUCSRPlan *P)
{
  const GPUCSRType          vt = GPUCSRVectorType(P->A.precision);
  const PetscInt            n  = PetscMin(M->m, M->n);
  const GPUCSRDeviceFormat *df = GPUCSRDeviceFormatOf(P->A.format);

  PetscFunctionBegin;
  if (w->dev->ops->kernels && !df) PetscFunctionReturn(PETSC_SUCCESS); /* a format that the host fills */
  PetscCall(GPUCSRPlanDiagonal(P, w->z, w->dev->stream));
  PetscCall(GPUCSRDownload(w->dev, w->hz, GPUCSR_DOUBLE, w->z, vt, (size_t)n, PETSC_FALSE, w->dev->stream));
  for (PetscInt r = 0; r < n; r++) {
    double d = 0;

    for (int32_t k = M->i[r]; k < M->i[r + 1]; k++)
      if (M->j[k] == r) d = GPUCSRValueType(P->A.precision) == GPUCSR_FLOAT ? (double)(float)M->a[k] : M->a[k];
    if (d != w->hz[r] && !(isnan(d) && isnan(w->hz[r]))) {
      if (failures++ < 20) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, format %s, precision %d: diagonal %d is %g, should be %g\n", M->name, P->A.format->name, (int)P->A.precision, (int)r, w->hz[r], d));
      break;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Row lengths of the transpose */
static PetscErrorCode TransposedFeatures(const Matrix *M, GPUCSRFeatures *f)
{
  int32_t *rowptr;

  PetscFunctionBegin;
  PetscCall(PetscCalloc1(M->n + 1, &rowptr));
  for (int32_t k = 0; k < M->i[M->m]; k++) rowptr[M->j[k] + 1]++;
  for (PetscInt c = 0; c < M->n; c++) rowptr[c + 1] += rowptr[c];
  PetscCall(GPUCSRFeaturesOfRows((int)M->n, (int)M->m, rowptr, 1, f));
  PetscCall(PetscFree(rowptr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device's inspector must count as the host's. For unsorted rows the sample is undefined */
static PetscErrorCode CheckFeatures(Space *w, const GPUCSRSource *s, const GPUCSRFeatures *f)
{
  const PetscBool wide   = (PetscBool)(sizeof(PetscInt) != sizeof(int32_t));
  PetscBool       sorted = PETSC_TRUE, same;
  GPUCSRFeatures  h;

  PetscFunctionBegin;
  for (int r = 0; r < s->m; r++)
    for (int32_t k = s->i[r] + 1; k < s->i[r + 1]; k++) sorted = (PetscBool)(sorted && s->j[k] > s->j[k - 1]);
  if (!w->inspected) PetscCall(GPUCSRInspect(s->m, s->n, s->i, wide ? NULL : (const int32_t *)s->j, GPUCSRPlanSettings.sample, 1, &w->features));
  w->inspected = PETSC_TRUE;
  h            = w->features;
  PetscCall(PetscMemcmp(h.rows, f->rows, sizeof(h.rows), &same));
  if (same) PetscCall(PetscMemcmp(h.entries, f->entries, sizeof(h.entries), &same));
  same = (PetscBool)(same && h.min == f->min && h.max == f->max && h.mean == f->mean && h.deviation == f->deviation && h.sell_stored == f->sell_stored && h.heaviest == f->heaviest);
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d rows, %d columns: the features of all rows differ from the host's", s->m, s->n);
  if (!sorted || wide) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMemcmp(h.blocks, f->blocks, sizeof(h.blocks), &same));
  same = (PetscBool)(same && h.sampled == f->sampled && h.spread == f->spread && h.bandwidth == f->bandwidth && h.diagonals == f->diagonals && h.listed == f->listed && !memcmp(h.sectors, f->sectors, sizeof(h.sectors)));
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d rows, %d columns: the features of the sample differ from the host's", s->m, s->n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Built, or refused because the format would store far more than the matrix has: that is no failure of a kernel */
static PetscErrorCode Build(Space *w, const GPUCSRSource *s, const GPUCSRPlan *A, PetscBool trans, int precision, const GPUCSRRequest *q, GPUCSRPlan *P)
{
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRAttemptBegin(&attempt));
  if (trans) ierr = GPUCSRPlanBuildTranspose(w->dev, s, A, (GPUCSRPrecision)precision, q, P);
  else ierr = GPUCSRPlanBuild(w->dev, s, (GPUCSRPrecision)precision, q, P);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  PetscCheck(!ierr || ierr == PETSC_ERR_SUP, PETSC_COMM_SELF, ierr, "Format %s, kernel %s: %s", q->format, q->kernel, attempt.message);
  if (ierr) PetscCall(GPUCSRPlanDestroy(P));
  else if (!trans && w->dev->ops->separate) PetscCall(CheckFeatures(w, s, &P->features));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Large matrices show how work is shared out. The zoo shows the effect of padding and of each block size in less time. */
#define LARGE 10000 /* rows or columns */

static PetscErrorCode DropPadded(GPUCSRPlan *P)
{
  PetscFunctionBegin;
  if (P->built && PetscMax(P->A.m, P->A.n) >= LARGE && P->A.stored > 4 * P->A.nnz) PetscCall(GPUCSRPlanDestroy(P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool Oblong(const GPUCSRFormat *format)
{
  return (PetscBool)(format->ops == &GPUCSRFormat_oblong);
}

/* All kernels on one format, k the first of them */
static PetscErrorCode Format(Space *w, Matrix *M, const GPUCSRFormat *format, const GPUCSRKernel *k, const GPUCSRFeatures f[2], const PetscScalar *keep)
{
  const size_t  nnz     = (size_t)M->i[M->m];
  GPUCSRSource  s       = {(int)M->m, (int)M->n, (int64_t)nnz, M->i, M->j, M->a, NULL};
  GPUCSRRequest request = {.select = GPUCSR_SELECT_ESTIMATE};

  PetscFunctionBegin;
  PetscCall(PetscStrncpy(request.format, format->name, sizeof(request.format)));
  PetscCall(PetscStrncpy(request.kernel, k->name, sizeof(request.kernel)));
  for (int p = 0; p < 3; p++) {
    GPUCSRPlan A, T;
    PetscBool  can;
    char       why[256];

    if (p && !w->dev->ops->separate && (Oblong(format) || (w->special && nnz > 5000))) continue; /* on the host all block sizes are one function, and small matrices show what Inf and NaN do */
    if (!GPUCSRFormatHolds(format, &f[0], why, sizeof(why))) continue;
    PetscCall(PetscMemzero(&A, sizeof(A)));
    PetscCall(PetscMemzero(&T, sizeof(T)));
    PetscCall(Build(w, &s, NULL, PETSC_FALSE, p, &request, &A));
    PetscCall(DropPadded(&A));
    if (A.built) {
      PetscCall(CheckKernels(w, M, PETSC_FALSE, &A, 0));
      PetscCall(CheckDiagonal(w, M, &A));
    }
    if (GPUCSRFormatHolds(format, &f[1], why, sizeof(why))) PetscCall(Build(w, &s, &A, PETSC_TRUE, p, &request, &T));
    PetscCall(DropPadded(&T));
    if (T.built) PetscCall(CheckKernels(w, M, PETSC_TRUE, &T, 0));
    for (size_t e = 0; e < nnz; e++) M->a[e] = ZooScalar(5, (PetscInt)e, 3);
    if (A.built) {
      PetscCheck(GPUCSRPlanCanRefresh(&A), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Format %s cannot take new values", format->name);
      PetscCall(GPUCSRPlanRefresh(&A, &s, NULL, &can));
      PetscCheck(can || format->ops == &GPUCSRFormat_stencil, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Format %s did not take new values", format->name);
      if (!can) PetscCall(Build(w, &s, NULL, PETSC_FALSE, p, &request, &A));
      if (A.built) PetscCall(CheckKernels(w, M, PETSC_FALSE, &A, 1));
    }
    if (T.built) {
      can = GPUCSRPlanCanRefresh(&T);
      if (can) PetscCall(GPUCSRPlanRefresh(&T, &s, A.built && p % 2 == 0 ? &A : NULL, &can));
      if (!can) PetscCall(Build(w, &s, NULL, PETSC_TRUE, p, &request, &T));
      if (T.built) PetscCall(CheckKernels(w, M, PETSC_TRUE, &T, 1));
    }
    PetscCall(PetscArraycpy(M->a, keep, nnz));
    PetscCall(GPUCSRPlanDestroy(&A));
    PetscCall(GPUCSRPlanDestroy(&T));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode One(GPUCSRDevice dev, Matrix *M, PetscBool special)
{
  const size_t        nnz = (size_t)M->i[M->m];
  Space               w;
  PetscScalar        *keep;
  GPUCSRFeatures      f[2];
  const GPUCSRFormat *format;
  const GPUCSRKernel *k;

  PetscFunctionBegin;
  PetscCall(SpaceCreate(dev, M, special, &w));
  PetscCall(PetscMalloc1(nnz + 1, &keep));
  PetscCall(PetscArraycpy(keep, M->a, nnz));
  PetscCall(GPUCSRFeaturesOfRows((int)M->m, (int)M->n, M->i, 1, &f[0]));
  PetscCall(GPUCSRStencils((int)M->m, M->i, M->j, GPUCSR_PETSCINT, M->a, GPUCSR_DOUBLE, &f[0]));
  PetscCall(TransposedFeatures(M, &f[1]));
  f[1].stencils = f[0].stencils; /* to be tried: the build may refuse */
  for (int q = 0; (format = GPUCSRFormatGet(q)); q++) {
    PetscBool wanted = PETSC_FALSE;

    if (PetscMax(M->m, M->n) >= LARGE && Oblong(format)) continue;
    for (int r = 0; !wanted && (k = GPUCSRKernelGet(r)); r++) PetscCall(Wanted(format, k, &wanted));
    if (wanted) PetscCall(Format(&w, M, format, k, f, keep));
  }
  PetscCall(SpaceDestroy(&w));
  PetscCall(PetscFree(keep));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char         backend[32] = "host", why[512];
  GPUCSRDevice dev;
  Matrix       M;
  PetscBool    large = PETSC_TRUE;
  PetscInt     every = 1;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(64)); /* the library makes nothing of other kinds */
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", backend, sizeof(backend), NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-large", &large, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &every, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-only", only, sizeof(only), NULL));
  PetscCall(GPUCSRSysInitialize());
  PetscCall(GPUCSRDeviceOpen(backend, &dev, why, sizeof(why)));
  PetscCheck(dev, PETSC_COMM_SELF, PETSC_ERR_GPU, "Backend %s: %s", backend, why);
  for (PetscInt which = 0; which < ZOO_COUNT; which++) {
    if (which == ZOO_DUPLICATES || which % every) continue; /* MATAIJ adds duplicates before they get here */
    for (int special = 0; special < 2; special++) {
      PetscCall(FromZoo(which, (PetscBool)special, &M));
      PetscCall(One(dev, &M, (PetscBool)special));
      PetscCall(MatrixDestroy(&M));
    }
  }
  for (int which = 0; which < (large ? NLARGE : 0); which++) {
    PetscCall(Large(which, &M));
    PetscCall(One(dev, &M, PETSC_FALSE));
    PetscCall(MatrixDestroy(&M));
  }
  PetscCheck(!dev->allocated, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%zu bytes of device memory were not given back", dev->allocated);
  PetscCall(GPUCSRSysFinalize());
  if (failures) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%d products were wrong\n", (int)failures));
  PetscCall(PetscFinalize());
  return failures ? 1 : 0;
}

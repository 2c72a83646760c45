/*
  Every kernel on every matrix of the zoo and some larger ones, against sums in long double: double, single and mixed; A and
  its transpose; every meaning of alpha and beta, in place and not; ranges of rows; values changed after the build; Inf and
  NaN. On the host backend this tests the formats' reference products, on a GPU the kernels: a new row of kernellist.h needs
  no line here.

  //TEST name="host" args="-backend host -large 0"
  //TEST name="host.large" args="-backend host -only {}" loop="bcsr2x2 dia hyb jad"
  //TEST name="cuda" args="-backend cuda -only {}" loop="csr_s csr_v csr_b csr_a csr_m sell bcsr1 bcsr2 bcsr3 bcsr4 bcsr8 block4x64 dense dia jad coo hyb" gpu=1
*/
static char help[] = "Tests kernels against sums in long double.\n";

#include "../src/mat/impls/gpucsr/plan/plan.h"
#include "zoo.h"
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
#define NLARGE 4
static PetscErrorCode Large(int which, Matrix *M)
{
  static const char *const names[NLARGE] = {"large uneven", "large even", "large one long row", "large few long rows"};
  static const PetscInt    rows[NLARGE] = {20011, 70001, 5000, 7}, cols[NLARGE] = {15000, 70001, 300000, 120000};
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
    M->i[r + 1] = M->i[r] + (int32_t)len;
  }
  nnz = M->i[M->m];
  PetscCall(PetscMalloc2(nnz, &M->j, nnz, &M->a));
  for (PetscInt r = 0; r < M->m; r++) {
    const PetscInt len = M->i[r + 1] - M->i[r];

    for (PetscInt k = 0; k < len; k++) {
      M->j[M->i[r] + k] = (PetscInt)(((int64_t)k * M->n) / PetscMax(1, len)); /* ascending, distinct as len <= n */
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
}; /* alpha, beta; larger matrices, and products in pieces, take the first two */
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

/* One matrix under test. A reference is the same for all kernels: computed once for each state of the values (as built,
   refreshed), side, precision and case */
typedef struct {
  GPUCSRDevice dev;
  void        *x, *y, *z;
  size_t       bytes;
  double      *hx, *hy, *hz, *poison;
  int          ncases;
  int          state; /* what x and y on the device hold, -1: nothing yet */
  long double *ref[2][2][3][NCASES], *bound[2][2][3][NCASES];
} Space;

/* x, and y or what must not be read in its place, on the device: written when they differ from what is there */
static PetscErrorCode Vectors(Space *w, PetscBool trans, GPUCSRType vt, PetscInt rows, PetscInt cols, PetscBool special, PetscBool unread)
{
  const int state = (trans ? 1 : 0) + (vt == GPUCSR_FLOAT ? 2 : 0) + (special ? 4 : 0) + (unread ? 8 : 0);

  PetscFunctionBegin;
  if (w->state == state) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt k = 0; k < cols; k++) w->hx[k] = vt == GPUCSR_FLOAT ? (double)(float)ZooScalar(77, k, 1) : ZooScalar(77, k, 1);
  for (PetscInt k = 0; k < rows; k++) w->hy[k] = vt == GPUCSR_FLOAT ? (double)(float)ZooScalar(78, k, 2) : ZooScalar(78, k, 2);
  if (special && cols > 4) {
    w->hx[cols / 2] = NAN;
    w->hx[cols - 1] = INFINITY;
  }
  PetscCall(GPUCSRUpload(w->dev, w->x, vt, w->hx, GPUCSR_DOUBLE, (size_t)cols, PETSC_FALSE, w->dev->stream, NULL));
  PetscCall(GPUCSRUpload(w->dev, w->y, vt, unread ? w->poison : w->hy, GPUCSR_DOUBLE, (size_t)rows, PETSC_FALSE, w->dev->stream, NULL));
  w->state = state;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Check(Space *w, const Matrix *M, PetscBool trans, const GPUCSRPlan *P, PetscBool special, int refreshed)
{
  const GPUCSRPrecision precision = P->A.precision;
  const GPUCSRType      vt        = GPUCSRVectorType(precision);
  const PetscInt        rows = trans ? M->n : M->m, cols = trans ? M->m : M->n;
  const double          eps   = vt == GPUCSR_FLOAT ? FLT_EPSILON : DBL_EPSILON;
  const double          terms = 4 + 2 * log2(1.0 + P->features.max) + P->features.max / 8.0;
  const PetscBool       dense = (PetscBool)(P->A.format->ops == &GPUCSRFormat_dense);

  PetscFunctionBegin;
  for (int c = 0; c < w->ncases; c++) {
    long double **ref = &w->ref[refreshed][trans][precision][c], **bound = &w->bound[refreshed][trans][precision][c];

    for (int inplace = 0; inplace < 2; inplace++) {
      for (int pieces = 1; pieces < 4; pieces += 2) {
        GPUCSRProduct p = {cases[c][0], cases[c][1], w->x, inplace ? w->z : w->y, w->z, 0, (int)rows};

        if (special && (p.alpha == 0 || dense)) continue; /* 0 Inf, and the zeros that dense multiplies, may give NaN */
        if (inplace && p.beta == 0) continue;             /* y is not read */
        if (pieces > 1 && (c > 1 || rows < 3 || (w->dev->ops->separate && !P->choice.kernel->family->piecewise))) continue;
        PetscCall(Vectors(w, trans, vt, rows, cols, special && !refreshed, p.beta == 0));
        PetscCall(GPUCSRUpload(w->dev, w->z, vt, inplace ? w->hy : w->poison, GPUCSR_DOUBLE, (size_t)rows, PETSC_FALSE, w->dev->stream, NULL));
        for (int q = 0; q < pieces; q++) {
          p.first = (int)(rows * q / pieces);
          p.last  = (int)(rows * (q + 1) / pieces);
          PetscCall(GPUCSRPlanProduct(P, &p, w->dev->stream));
        }
        PetscCall(GPUCSRDownload(w->dev, w->hz, GPUCSR_DOUBLE, w->z, vt, (size_t)rows, PETSC_FALSE, w->dev->stream));
        PetscCall(GPUCSRDeviceSynchronize(w->dev));
        if (!*ref) {
          PetscCall(PetscMalloc1(rows + 1, ref));
          PetscCall(PetscMalloc1(rows + 1, bound));
          PetscCall(Reference(M, trans, (PetscBool)(GPUCSRValueType(precision) == GPUCSR_FLOAT), p.alpha, w->hx, p.beta, w->hy, *ref, *bound));
        }
        for (PetscInt k = 0; k < rows; k++) {
          if (Agrees(w->hz[k], (*ref)[k], (*bound)[k], eps, terms)) continue;
          if (failures++ < 20)
            PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s%s, %s, format %s, kernel %s, precision %d, alpha %g, beta %g, %s, %d pieces, %s: row %d is %.17g, should be %.17Lg within %.3Lg\n", M->name, special ? " (special)" : "", trans ? "transpose" : "plain",
                                  P->A.format->name, P->choice.kernel ? P->choice.kernel->name : "none", (int)precision, p.alpha, p.beta, inplace ? "in place" : "out of place", pieces, refreshed ? "refreshed" : "built", (int)k, w->hz[k], (*ref)[k], (2 + terms) * eps * (*bound)[k]));
          break;
        }
      }
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The diagonal, straight from the values */
static PetscErrorCode CheckDiagonal(Space *w, const Matrix *M, const GPUCSRPlan *P)
{
  const GPUCSRType vt = GPUCSRVectorType(P->A.precision);
  const PetscInt   n  = PetscMin(M->m, M->n);
  PetscBool        has;

  PetscFunctionBegin;
  PetscCall(GPUCSRPlanHasDiagonal(P, &has));
  if (!has) PetscFunctionReturn(PETSC_SUCCESS);
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
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Large matrices show how work is shared out. What padding does, and each block size, the zoo shows in less time. */
#define LARGE 10000 /* rows or columns */

static PetscErrorCode DropPadded(GPUCSRPlan *P)
{
  PetscFunctionBegin;
  if (P->built && PetscMax(P->A.m, P->A.n) >= LARGE && P->A.stored > 4 * P->A.nnz) PetscCall(GPUCSRPlanDestroy(P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool Oblong(const GPUCSRFormat *format)
{
  return (PetscBool)(format->ops == &GPUCSRFormat_bcsr && GPUCSR_BLOCK_ROWS(format->variant) != GPUCSR_BLOCK_COLS(format->variant));
}

static PetscErrorCode Wanted(const GPUCSRFormat *format, const GPUCSRKernel *k, PetscBool *yes)
{
  char names[128], *found, **text;
  int  n;

  PetscFunctionBegin;
  *yes = only[0] ? PETSC_FALSE : PETSC_TRUE;
  PetscCall(PetscSNPrintf(names, sizeof(names), "%s %s", format->name, k->name));
  PetscCall(PetscStrToArray(only, ',', &n, &text));
  for (int q = 0; q < n && !*yes; q++) {
    PetscCall(PetscStrstr(names, text[q], &found));
    *yes = found ? PETSC_TRUE : PETSC_FALSE;
  }
  PetscCall(PetscStrToArrayDestroy(n, text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One kernel on one format */
static PetscErrorCode Pair(Space *w, Matrix *M, PetscBool special, const GPUCSRFormat *format, const GPUCSRKernel *k, const GPUCSRFeatures f[2], const PetscScalar *keep)
{
  const size_t  nnz     = (size_t)M->i[M->m];
  GPUCSRSource  s       = {(int)M->m, (int)M->n, (int64_t)nnz, M->i, M->j, M->a};
  GPUCSRRequest request = {.select = GPUCSR_SELECT_ESTIMATE};

  PetscFunctionBegin;
  PetscCall(PetscStrncpy(request.format, format->name, sizeof(request.format)));
  PetscCall(PetscStrncpy(request.kernel, k->name, sizeof(request.kernel)));
  for (int p = 0; p < 3; p++) {
    GPUCSRPlan A, T;
    PetscBool  yes, can;
    char       why[256];

    PetscCall((*format->ops->applicable)(&f[0], format->variant, (GPUCSRPrecision)p, &yes, why, sizeof(why)));
    if (yes && w->dev->ops->separate && k->family->available) {
      PetscCall((*k->family->available)(&yes, why, sizeof(why)));
      PetscCheck(yes, PETSC_COMM_SELF, PETSC_ERR_SUP, "%s", why);
    }
    if (!yes) continue;
    PetscCall(PetscMemzero(&A, sizeof(A)));
    PetscCall(PetscMemzero(&T, sizeof(T)));
    PetscCall(Build(w, &s, NULL, PETSC_FALSE, p, &request, &A));
    PetscCall(DropPadded(&A));
    if (A.built) {
      PetscCall(Check(w, M, PETSC_FALSE, &A, special, 0));
      PetscCall(CheckDiagonal(w, M, &A));
    }
    PetscCall((*format->ops->applicable)(&f[1], format->variant, (GPUCSRPrecision)p, &yes, why, sizeof(why)));
    if (yes) PetscCall(Build(w, &s, &A, PETSC_TRUE, p, &request, &T));
    PetscCall(DropPadded(&T));
    if (T.built) PetscCall(Check(w, M, PETSC_TRUE, &T, special, 0));
    for (size_t e = 0; e < nnz; e++) M->a[e] = ZooScalar(5, (PetscInt)e, 3);
    if (A.built) {
      PetscCall(GPUCSRPlanCanRefresh(&A, &can));
      PetscCheck(can, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Format %s cannot take new values", format->name);
      PetscCall(GPUCSRPlanRefresh(&A, &s, NULL));
      PetscCall(Check(w, M, PETSC_FALSE, &A, PETSC_FALSE, 1));
    }
    if (T.built) {
      PetscCall(GPUCSRPlanCanRefresh(&T, &can));
      if (can) PetscCall(GPUCSRPlanRefresh(&T, &s, A.built && k->variant % 2 ? &A : NULL));
      else PetscCall(Build(w, &s, NULL, PETSC_TRUE, p, &request, &T));
      PetscCall(Check(w, M, PETSC_TRUE, &T, PETSC_FALSE, 1));
    }
    PetscCall(PetscArraycpy(M->a, keep, nnz));
    PetscCall(GPUCSRPlanDestroy(&A));
    PetscCall(GPUCSRPlanDestroy(&T));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode One(GPUCSRDevice dev, Matrix *M, PetscBool special)
{
  const size_t   longest = (size_t)PetscMax(M->m, M->n) + 1, nnz = (size_t)M->i[M->m];
  Space          w;
  PetscScalar   *keep;
  GPUCSRFeatures f[2];

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&w, sizeof(w)));
  w.dev   = dev;
  w.bytes = sizeof(double) * longest;
  PetscCall(GPUCSRMalloc(dev, w.bytes, "x", &w.x));
  PetscCall(GPUCSRMalloc(dev, w.bytes, "y", &w.y));
  PetscCall(GPUCSRMalloc(dev, w.bytes, "z", &w.z));
  PetscCall(PetscMalloc4(longest, &w.hx, longest, &w.hy, longest, &w.hz, longest, &w.poison));
  for (size_t k = 0; k < longest; k++) w.poison[k] = NAN;
  w.state = -1;
  PetscCall(PetscMalloc1(nnz + 1, &keep));
  w.ncases = longest < 10000 ? NCASES : 2;
  PetscCall(PetscArraycpy(keep, M->a, nnz));
  PetscCall(GPUCSRFeaturesOfRows((int)M->m, (int)M->n, M->i, 1, &f[0]));
  PetscCall(TransposedFeatures(M, &f[1]));
  for (int q = 0;; q++) {
    const GPUCSRFormat *format;

    PetscCall(GPUCSRFormatGet(q, &format));
    if (!format) break;
    for (int r = 0;; r++) {
      const GPUCSRKernel *k;
      PetscBool           same, wanted;

      PetscCall(GPUCSRKernelGet(r, &k));
      if (!k) break;
      PetscCall(PetscStrcmp(k->format, format->family, &same));
      PetscCall(Wanted(format, k, &wanted));
      if (!same || !wanted || (longest > LARGE && Oblong(format))) continue;
      PetscCall(Pair(&w, M, special, format, k, f, keep));
      if (!dev->ops->separate) break; /* all kernels of a format are its one reference there */
    }
  }
  PetscCall(GPUCSRFree(dev, w.bytes, &w.x));
  PetscCall(GPUCSRFree(dev, w.bytes, &w.y));
  PetscCall(GPUCSRFree(dev, w.bytes, &w.z));
  PetscCall(PetscFree4(w.hx, w.hy, w.hz, w.poison));
  PetscCall(PetscFree(keep));
  for (int k = 0; k < 2 * 2 * 3 * NCASES; k++) {
    PetscCall(PetscFree((&w.ref[0][0][0][0])[k]));
    PetscCall(PetscFree((&w.bound[0][0][0][0])[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char         backend[32] = "host", why[512];
  GPUCSRDevice dev;
  Matrix       M;
  PetscBool    large = PETSC_TRUE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", backend, sizeof(backend), NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-large", &large, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-only", only, sizeof(only), NULL));
  PetscCall(GPUCSRSysInitialize());
  PetscCall(GPUCSRDeviceOpen(backend, &dev, why, sizeof(why)));
  PetscCheck(dev, PETSC_COMM_SELF, PETSC_ERR_GPU, "Backend %s: %s", backend, why);
  for (PetscInt which = 0; which < ZOO_COUNT; which++) {
    if (which == ZOO_DUPLICATES) continue; /* MATAIJ adds duplicates before they get here */
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
  PetscCall(GPUCSRKernelsRelease());
  PetscCall(GPUCSRPlanFinalize());
  PetscCall(GPUCSRSysFinalize());
  if (failures) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%d products were wrong\n", (int)failures));
  PetscCall(PetscFinalize());
  return failures ? 1 : 0;
}

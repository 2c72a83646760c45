/*
  The stencil format finds exactly the equal rows, in any order of the rows. Values are compared by their stored bits. Too many stencils are
  refused with a reason, and the limit is exact. New values are accepted as long as equal rows stay equal, and refused
  otherwise. The same for the transpose. A matrix that is on the device in CSR is the source of any format.

  //TEST name="host" args="-backend host"
  //TEST name="cuda" args="-backend cuda" gpu=1
*/
static char help[] = "Tests the stencil format and what is found before it is chosen.\n";

#include "../src/mat/impls/gpucsr/blackbox/spgemm/spgemm.h"
#include "../src/mat/impls/gpucsr/blackbox/plan/plan.h"
#include "testing.h"
#include "../src/mat/impls/gpucsr/blackbox/format/stencil.h"
#include <math.h>
#include <string.h>

static GPUCSRDevice dev;

/* Host CSR with any rows and single entries added */
typedef struct {
  GPUCSRSource s;
  int32_t      i[80001];
  PetscInt     j[400000];
  PetscScalar  a[400000];
} Matrix;

static void Begin(Matrix *M, int m, int n)
{
  M->s = (GPUCSRSource){m, n, 0, M->i, M->j, M->a, NULL};
}

static void Put(Matrix *M, int r, int c, double a)
{
  if (c < 0 || c >= M->s.n) return;
  M->j[M->s.nnz]   = c;
  M->a[M->s.nnz++] = a;
  M->i[r + 1]      = (int32_t)M->s.nnz;
}

/* The grid's neighbours, of 5, 7 or 27 points; what lies outside is left out */
static void Grid(Matrix *M, int k, int points)
{
  const int deep = points == 5 ? 1 : k;

  Begin(M, k * k * deep, k * k * deep);
  for (int r = 0; r < M->s.m; r++) {
    const int x = r % k, y = r / k % k, z = r / k / k;

    M->i[r + 1] = M->i[r];
    for (int dz = -1; dz <= 1; dz++)
      for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
          if ((points != 27 && abs(dx) + abs(dy) + abs(dz) > 1) || x + dx < 0 || x + dx >= k || y + dy < 0 || y + dy >= k || z + dz < 0 || z + dz >= deep) continue;
          Put(M, r, r + (dz * k + dy) * k + dx, dx || dy || dz ? -1 - 0.25 * dx : 26);
        }
  }
}

/* Rows of one entry, value v[r mod d] */
static void Diagonal(Matrix *M, int m, const double v[], int d)
{
  Begin(M, m, m);
  for (int r = 0; r < m; r++) Put(M, r, r, v ? v[r % d] : 1 + (r * 7919) % d);
}

static PetscErrorCode Expect(const char what[], double is, double should)
{
  PetscFunctionBegin;
  PetscCheck(is == should, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s is %g, should be %g", what, is, should);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same as stored: entry e of row r and of row q */
static PetscBool Alike(const Matrix *M, GPUCSRPrecision p, int r, int q)
{
  const int length = M->i[r + 1] - M->i[r];

  if (M->i[q + 1] - M->i[q] != length) return PETSC_FALSE;
  for (int k = 0; k < length; k++) {
    const double a = (double)PetscRealPart(M->a[M->i[r] + k]), b = (double)PetscRealPart(M->a[M->i[q] + k]);
    const float  fa = (float)a, fb = (float)b;

    if (M->j[M->i[r] + k] - r != M->j[M->i[q] + k] - q) return PETSC_FALSE;
    if (p == GPUCSR_PRECISION_DOUBLE ? memcmp(&a, &b, sizeof(a)) : memcmp(&fa, &fb, sizeof(fa))) return PETSC_FALSE;
  }
  return PETSC_TRUE;
}

static PetscErrorCode Get(const GPUCSRStorage *A, int array, GPUCSRType type, void *to)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRDownload(A->dev, to, type, A->array[array].data, A->array[array].type, A->array[array].count, PETSC_FALSE, A->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The dictionary against one made by comparing each row with the first of each stencil met so far */
static PetscErrorCode CheckDictionary(const Matrix *M, const GPUCSRPlan *P)
{
  const GPUCSRStorage *A = &P->A;
  static uint16_t      id[80000];
  static int32_t       begin[STENCIL_MOST + 1], offset[STENCIL_MOST], row[STENCIL_MOST];
  static double        val[STENCIL_MOST];
  int                  first[STENCIL_MOST], n = 0, entries = 0;

  PetscFunctionBegin;
  PetscCall(Get(A, STENCIL_ID, GPUCSR_UINT16, id));
  PetscCall(Get(A, STENCIL_BEGIN, GPUCSR_INT32, begin));
  PetscCall(Get(A, STENCIL_OFFSET, GPUCSR_INT32, offset));
  PetscCall(Get(A, STENCIL_VAL, GPUCSR_DOUBLE, val));
  PetscCall(Get(A, STENCIL_ROW, GPUCSR_INT32, row));
  for (int r = 0; r < M->s.m; r++) {
    int u = 0;

    while (u < n && !Alike(M, A->precision, r, first[u])) u++;
    if (u == n) {
      PetscCall(Expect("The first row of a stencil", row[u], r));
      PetscCall(Expect("The begin of a stencil", begin[u], entries));
      for (int32_t k = M->i[r]; k < M->i[r + 1]; k++) {
        const double a = (double)PetscRealPart(M->a[k]), v = A->precision == GPUCSR_PRECISION_DOUBLE ? a : (double)(float)a;

        PetscCall(Expect("An offset", offset[entries], (double)(M->j[k] - r)));
        PetscCheck(!memcmp(&v, &val[entries], sizeof(v)) || (isnan(v) && isnan(val[entries])), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A value is %g, should be %g", val[entries], v);
        entries++;
      }
      first[n++] = r;
    }
    PetscCall(Expect("The stencil of a row", id[r], u));
  }
  PetscCall(Expect("The number of stencils", P->features.stencils, n));
  PetscCall(Expect("The number of their entries", P->features.stencilentries, entries));
  PetscCall(Expect("The end of the last stencil", begin[n], entries));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sums of small whole numbers and quarters, exact in double */
static PetscErrorCode CheckProduct(const Matrix *M, GPUCSRPlan *P, PetscBool trans)
{
  const int     m = trans ? M->s.n : M->s.m, n = trans ? M->s.m : M->s.n;
  const size_t  bytes = sizeof(double) * (size_t)PetscMax(m, n);
  static double x[80000], z[80000], should[80000];
  void         *dx, *dz;
  GPUCSRProduct p = {.alpha = 1, .last = m};

  PetscFunctionBegin;
  if (P->A.precision != GPUCSR_PRECISION_DOUBLE) PetscFunctionReturn(PETSC_SUCCESS);
  for (int c = 0; c < n; c++) x[c] = c % 17 - 5;
  for (int r = 0; r < m; r++) should[r] = 0;
  for (int r = 0; r < M->s.m; r++)
    for (int32_t k = M->i[r]; k < M->i[r + 1]; k++) should[trans ? M->j[k] : r] += (double)PetscRealPart(M->a[k]) * x[trans ? r : M->j[k]];
  PetscCall(GPUCSRMalloc(dev, bytes, "x", &dx));
  PetscCall(GPUCSRMalloc(dev, bytes, "z", &dz));
  PetscCall(GPUCSRUpload(dev, dx, GPUCSR_DOUBLE, x, GPUCSR_DOUBLE, (size_t)n, PETSC_FALSE, dev->stream, NULL));
  p.x = dx;
  p.z = dz;
  PetscCall(GPUCSRPlanProduct(P, &p, dev->stream));
  PetscCall(GPUCSRDownload(dev, z, GPUCSR_DOUBLE, dz, GPUCSR_DOUBLE, (size_t)m, PETSC_FALSE, dev->stream));
  for (int r = 0; r < m; r++) PetscCheck(z[r] == should[r] || (isnan(z[r]) && isnan(should[r])), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Row %d of %s is %g, should be %g", r, trans ? "A^T x" : "A x", z[r], should[r]);
  PetscCall(GPUCSRFree(dev, bytes, &dx));
  PetscCall(GPUCSRFree(dev, bytes, &dz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const GPUCSRRequest asked = {.format = "stencil", .kernel = "auto"}, anything = {.format = "auto", .kernel = "auto"};

static PetscErrorCode Build(Matrix *M, GPUCSRPrecision p, GPUCSRPlan *P)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRPlanBuild(dev, &M->s, p, &asked, P));
  PetscCall(CheckDictionary(M, P));
  PetscCall(CheckProduct(M, P, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Built for each precision, with so many stencils in double and in the others */
static PetscErrorCode Found(Matrix *M, int indouble, int infloat)
{
  PetscFunctionBegin;
  for (int p = 0; p < 3; p++) {
    GPUCSRPlan P = {0};

    PetscCall(Build(M, (GPUCSRPrecision)p, &P));
    PetscCall(Expect("The number of stencils", P.features.stencils, p ? infloat : indouble));
    PetscCall(GPUCSRPlanDestroy(&P));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Refused by name, and not chosen */
static PetscErrorCode Refused(Matrix *M)
{
  GPUCSRPlan     P = {0};
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = GPUCSRPlanBuild(dev, &M->s, GPUCSR_PRECISION_DOUBLE, &asked, &P);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  PetscCheck(ierr == PETSC_ERR_SUP && strstr(attempt.message, "its rows are not alike"), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Different rows: error %d, %s", (int)ierr, attempt.message);
  PetscCall(GPUCSRPlanBuild(dev, &M->s, GPUCSR_PRECISION_DOUBLE, &anything, &P));
  PetscCall(Expect("What tells that there are too many", P.features.stencils, -1));
  PetscCall(CheckProduct(M, &P, PETSC_FALSE));
  PetscCall(GPUCSRPlanDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestFound(Matrix *M)
{
  uint64_t other;
  double   values[] = {1, nextafter(1, 2), 0, -0.0, NAN, NAN};

  PetscFunctionBegin;
  Grid(M, 3, 7);
  PetscCall(Found(M, 27, 27));
  Grid(M, 20, 7);
  PetscCall(Found(M, 27, 27));
  Grid(M, 14, 27);
  PetscCall(Found(M, 27, 27));
  Grid(M, 100, 5);
  PetscCall(Found(M, 9, 9));
  /* bits count: numbers that compare equal, and NaN */
  memcpy(&other, &values[5], sizeof(other));
  other ^= 1;
  memcpy(&values[5], &other, sizeof(other));
  Diagonal(M, 5000, values, 6);
  PetscCall(Found(M, 6, 4));
  /* no entries at all, and none in most rows */
  Begin(M, 3000, 200);
  for (int r = 0; r <= 3000; r++) M->i[r] = 0;
  PetscCall(Found(M, 1, 1));
  Begin(M, 3000, 3500);
  for (int r = 0; r < 3000; r++) {
    M->i[r + 1] = M->i[r];
    if (r % 50 == 7) Put(M, r, r + 300, 2);
  }
  PetscCall(Found(M, 2, 2));
  /* the same entries in another order are another row */
  Begin(M, 4000, 4001);
  for (int r = 0; r < 4000; r++) {
    Put(M, r, r + (r % 3 == 0), 5);
    Put(M, r, r + (r % 3 != 0), 5);
  }
  PetscCall(Found(M, 2, 2));
  /* a row unlike all others, where no sample looks */
  Diagonal(M, 70000, NULL, 1);
  M->a[69999 - 13] = 3;
  PetscCall(Found(M, 2, 2));
  /* as many as there may be, and one more: each counts itself and its entry */
  Diagonal(M, 10000, NULL, STENCIL_MOST / 2);
  PetscCall(Found(M, STENCIL_MOST / 2, STENCIL_MOST / 2));
  Diagonal(M, 10000, NULL, STENCIL_MOST / 2 + 1);
  PetscCall(Refused(M));
  Diagonal(M, 70000, NULL, 70000);
  PetscCall(Refused(M));
  /* a long row alone */
  Begin(M, 2, 5000);
  for (int c = 0; c < 5000; c++) Put(M, 0, c, 1);
  M->i[2] = M->i[1];
  PetscCall(Refused(M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values into P, or into a successor if P cannot take the values; T: of the transpose */
static PetscErrorCode Follow(Matrix *M, GPUCSRPlan *P, GPUCSRPlan *T, PetscBool should)
{
  PetscBool held, can;

  PetscFunctionBegin;
  PetscCall(GPUCSRPlanRefresh(P, &M->s, NULL, &held));
  PetscCheck(held == should, PETSC_COMM_SELF, PETSC_ERR_PLIB, "New values were %s", held ? "taken though rows are not alike any more" : "not taken though they could be");
  PetscCheck(held || !P->built, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A plan whose values are not the matrix' can be multiplied by");
  if (held) PetscCall(CheckDictionary(M, P));
  else PetscCall(GPUCSRPlanBuild(dev, &M->s, P->A.precision, &asked, P));
  PetscCall(CheckProduct(M, P, PETSC_FALSE));
  can = GPUCSRPlanCanRefresh(T);
  PetscCall(Expect("Can a transpose be refreshed", can, dev->ops->separate));
  held = PETSC_FALSE;
  if (can) {
    PetscCall(GPUCSRPlanRefresh(T, &M->s, P, &held));
    PetscCheck(held == should, PETSC_COMM_SELF, PETSC_ERR_PLIB, "New values of a transpose were %s", held ? "taken though rows are not alike any more" : "not taken though they could be");
  }
  if (!held) PetscCall(GPUCSRPlanBuildTranspose(dev, &M->s, P, P->A.precision, &asked, T));
  PetscCall(CheckProduct(M, T, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TestRefresh(Matrix *M)
{
  PetscFunctionBegin;
  for (int p = 0; p < 3; p++) {
    GPUCSRPlan P = {0}, T = {0};

    Grid(M, 18, 7);
    PetscCall(Build(M, (GPUCSRPrecision)p, &P));
    PetscCall(GPUCSRPlanBuildTranspose(dev, &M->s, &P, (GPUCSRPrecision)p, &asked, &T));
    PetscCall(CheckProduct(M, &T, PETSC_TRUE));
    for (int64_t k = 0; k < M->s.nnz; k++) M->a[k] *= -4; /* MatScale() */
    PetscCall(Follow(M, &P, &T, PETSC_TRUE));
    for (int r = 0; r < M->s.m; r++)
      for (int32_t k = M->i[r]; k < M->i[r + 1]; k++)
        if (M->j[k] == r) M->a[k] += 3; /* MatShift() */
    PetscCall(Follow(M, &P, &T, PETSC_TRUE));
    M->a[M->s.nnz - 2001] += 1; /* one entry of one row */
    PetscCall(Follow(M, &P, &T, PETSC_FALSE));
    for (int64_t k = 0; k < M->s.nnz; k++) M->a[k] = 0; /* stencils that have become the same do no harm */
    PetscCall(GPUCSRPlanDestroy(&T));
    PetscCall(GPUCSRPlanBuildTranspose(dev, &M->s, NULL, (GPUCSRPrecision)p, &asked, &T));
    M->a[7]             = p ? 1 + 1e-12 : 1; /* a float, as it is stored */
    M->a[M->s.nnz - 20] = 1;
    PetscCall(Follow(M, &P, &T, PETSC_FALSE));
    PetscCall(GPUCSRPlanDestroy(&P));
    PetscCall(GPUCSRPlanDestroy(&T));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* CSR on the device is the source in place of the host's, in several formats; new values follow with and without the CSR */
static PetscErrorCode TestResident(Matrix *M)
{
  static const char *const formats[] = {"csr", "sell", "dia", "stencil", "auto"};

  PetscFunctionBegin;
  for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(formats); q++) {
    GPUCSRPlan    P = {0}, T = {0};
    GPUCSRStorage csr     = {0};
    GPUCSRRequest request = {.kernel = "auto"};
    PetscBool     held, can;

    PetscCall(PetscStrncpy(request.format, formats[q], sizeof(request.format)));
    Grid(M, 18, 7);
    for (int again = 0; again < 3; again++) {
      for (int64_t k = 0; k < M->s.nnz && again; k++) M->a[k] *= -4;
      M->s.resident = NULL;
      if (again < 2) { /* at last there is none */
        if (!again) PetscCall(GPUCSRCSRCreate(dev, M->s.m, M->s.n, M->s.nnz, &csr));
        PetscCall((*csr.format->ops->fill)(&M->s, &csr, PETSC_FALSE, NULL));
        M->s.resident = &csr;
      } else PetscCall(GPUCSRStorageDestroy(&csr));
      held = can = PETSC_FALSE;
      if (again) PetscCall(GPUCSRPlanRefresh(&P, &M->s, NULL, &held));
      if (!held) PetscCall(GPUCSRPlanBuild(dev, &M->s, GPUCSR_PRECISION_DOUBLE, &request, &P));
      held = PETSC_FALSE;
      if (again) can = GPUCSRPlanCanRefresh(&T);
      if (can) PetscCall(GPUCSRPlanRefresh(&T, &M->s, NULL, &held));
      if (!held) PetscCall(GPUCSRPlanBuildTranspose(dev, &M->s, NULL, GPUCSR_PRECISION_DOUBLE, &request, &T));
      PetscCall(CheckProduct(M, &P, PETSC_FALSE));
      PetscCall(CheckProduct(M, &T, PETSC_TRUE));
      if (again < 2) PetscCall(Expect("Bytes that crossed the bus again for the transpose", T.costs.uploaded, 0));
    }
    PetscCall(GPUCSRPlanDestroy(&P));
    PetscCall(GPUCSRPlanDestroy(&T));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char    backend[32] = "host", why[512];
  Matrix *M;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(64)); /* the library makes nothing of other kinds */
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", backend, sizeof(backend), NULL));
  PetscCall(GPUCSRSysInitialize());
  PetscCall(GPUCSRDeviceOpen(backend, &dev, why, sizeof(why)));
  PetscCheck(dev, PETSC_COMM_SELF, PETSC_ERR_GPU, "Backend %s: %s", backend, why);
  PetscCall(PetscNew(&M));
  PetscCall(TestFound(M));
  PetscCall(TestRefresh(M));
  PetscCall(TestResident(M));
  PetscCall(PetscFree(M));
  PetscCall(Expect("Bytes of device memory that were not given back", (double)dev->allocated, 0));
  PetscCall(GPUCSRSysFinalize());
  PetscCall(PetscFinalize());
  return 0;
}

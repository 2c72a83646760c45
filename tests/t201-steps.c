/*
  Products fused with a step of an iteration, for every kernel that has them, against the product by the same kernel followed by the step. The sums are the same, so the results differ
  only by the rounding of a few numbers in a row. With a plan in single, too, whose vectors are doubles or floats. On the host backend this tests the formats' references.

  //TEST name="host" args="-backend host"
  //TEST name="cuda" args="-backend cuda" gpu=1
*/
static char help[] = "Tests products that end with a step.\n";

#include "../src/mat/impls/gpucsr/blackbox/plan/plan.h"
#include "testing.h"
#include <float.h>

typedef struct {
  GPUCSRDevice dev;
  size_t       bytes;
  double      *b, *x, *M, *z, *v, *part; /* on the device, */
  double      *hx, *hd, *hM, *hz, *hv;   /* and on the host */
  PetscBool    floats;                   /* the vectors on the device are */
} Space;

#define TYPE(w) ((w)->floats ? GPUCSR_FLOAT : GPUCSR_DOUBLE)

static PetscErrorCode Send(Space *w, double *to, double *h, PetscInt n, PetscInt seed)
{
  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) h[k] = w->floats ? (double)(float)ZooReal(k, seed, 5) : ZooReal(k, seed, 5);
  PetscCall(GPUCSRUpload(w->dev, to, TYPE(w), h, GPUCSR_DOUBLE, (size_t)n, PETSC_FALSE, w->dev->stream, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fetch(Space *w, double *h, const double *from, PetscInt n)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRDownload(w->dev, h, GPUCSR_DOUBLE, from, TYPE(w), (size_t)n, PETSC_FALSE, w->dev->stream));
  PetscCall(w->dev->ops->streamsynchronize(w->dev->id, w->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parts of sums left by a product, against the sums of its result */
static PetscErrorCode CheckSums(Space *w, const double *q, const double *u, int sums, PetscInt n, int parts, const char where[], int which)
{
  const size_t most = GPUCSR_MOST_PARTS((size_t)n);
  double      *part;

  PetscFunctionBegin;
  PetscCheck(parts > 0 && (size_t)parts <= most, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, step %d: %d parts of sums", where, which, parts);
  PetscCall(PetscMalloc1(GPUCSR_INNER * most, &part));
  PetscCall(Fetch(w, part, w->part, (PetscInt)(GPUCSR_INNER * most)));
  for (int k = 0; k < sums; k++) {
    double sum = 0, size = 0, got = 0;

    for (PetscInt r = 0; r < n; r++) {
      const double a = k == 1 ? w->hz[r] : k < 3 ? q[r] : u ? u[r] : 0, b = k == 2 || k == 4 ? q[r] : w->hz[r];

      sum += a * b;
      size += PetscAbsReal(a * b);
    }
    for (int b = 0; b < parts; b++) got += part[(size_t)k * most + (size_t)b];
    PetscCheck(PetscAbsReal(got - sum) <= (double)n * DBL_EPSILON * size, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, step %d: sum %d is %.17g, not %.17g", where, which, k, got, sum);
  }
  PetscCall(PetscFree(part));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One kernel on one matrix: a scaled product, and steps with and without M, and with a previous iterate in z, elsewhere (b), or none; with sums or without */
static PetscErrorCode Check(Space *w, GPUCSRPlan *P, PetscInt n, const char where[])
{
  PetscFunctionBegin;
  for (int which = 0; which < 16; which++) {
    const PetscBool diagonal = (PetscBool)(which % 2), summed = (PetscBool)(!w->floats && which / 2 % 2);
    const int       before = which / 4; /* none, in z, in b; 3: no step */
    const double    ca = before == 3 ? 0 : before ? 0.375 : which < 2 ? 0 : 0.25, cb = 0.7, eps = w->floats ? FLT_EPSILON : DBL_EPSILON;
    int             parts = 0;
    GPUCSRProduct   p     = {.alpha = -1, .beta = 1, .x = w->x, .y = w->b, .z = w->v, .last = (int)n, .doubles = (GPUCSRBool)!w->floats};

    PetscCall(Send(w, w->b, before == 2 ? w->hd : w->hz, n, 1));
    PetscCall(Send(w, w->x, w->hx, n, 2));
    PetscCall(Send(w, w->M, w->hM, n, 3));
    PetscCall(Send(w, w->z, before == 2 ? w->hz : w->hd, n, 4));
    PetscCall(GPUCSRPlanProduct(P, &p, w->dev->stream));
    PetscCall(Fetch(w, w->hv, w->v, n));
    p.z = w->z;
    if (before < 3) p.step = (GPUCSRStep){PETSC_TRUE, ca, cb, diagonal ? w->M : NULL, before == 1 ? w->z : before == 2 ? w->b : NULL};
    if (summed) p.sums = (GPUCSRSums){(PetscBool)(before < 3 || diagonal), w->x, before % 2 ? NULL : w->M, diagonal && before == 3 ? w->M : NULL, w->part, &parts};
    PetscCall(GPUCSRPlanProduct(P, &p, w->dev->stream));
    PetscCall(Fetch(w, w->hz, w->z, n));
    for (PetscInt r = 0; r < n; r++) {
      const double m = (diagonal && (before < 3 || summed) ? w->hM[r] : 1) * w->hv[r], d = ca * (w->hx[r] - (before ? w->hd[r] : 0)), z = before == 3 ? m : w->hx[r] + d + cb * m;
      const double bound = 6 * eps * (PetscAbsReal(w->hx[r]) + PetscAbsReal(ca * w->hx[r]) + PetscAbsReal(ca * w->hd[r]) + PetscAbsReal(m));

      PetscCheck(PetscAbsReal(w->hz[r] - z) <= bound, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, step %d, row %" PetscInt_FMT ": %.17g, not %.17g", where, which, r, w->hz[r], z);
    }
    if (summed) PetscCall(CheckSums(w, w->hx, before % 2 ? NULL : w->hM, before < 3 || diagonal ? GPUCSR_INNER : 1, n, parts, where, which));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All kernels with steps, on the formats that can hold the matrix; *count: their number */
static PetscErrorCode Kernels(Space *w, const GPUCSRSource *s, GPUCSRPrecision precision, const char name[], int *count)
{
  const GPUCSRFormat *format;
  const GPUCSRKernel *k;

  PetscFunctionBegin;
  for (int q = 0; (format = GPUCSRFormatGet(q)); q++) {
    for (int r = 0; (k = GPUCSRKernelGet(r)); r++) {
      GPUCSRRequest  request = {"auto", "auto", GPUCSR_SELECT_ESTIMATE, 0, 0};
      GPUCSRPlan     P;
      GPUCSRAttempt  attempt;
      PetscErrorCode ierr;
      PetscBool      of;
      char           where[160];

      PetscCall(PetscStrncmp(format->name, k->format, strlen(k->format), &of));
      if (!of || (w->dev->ops->kernels && (!k->family || !k->family->steps))) continue;
      PetscCall(PetscMemzero(&P, sizeof(P)));
      PetscCall(PetscStrncpy(request.format, format->name, sizeof(request.format)));
      if (w->dev->ops->kernels) PetscCall(PetscStrncpy(request.kernel, k->name, sizeof(request.kernel)));
      PetscCall(GPUCSRAttemptBegin(&attempt));
      ierr = GPUCSRPlanBuild(w->dev, s, precision, &request, &P);
      PetscCall(GPUCSRAttemptEnd(&attempt));
      if (!ierr) {
        PetscCall(PetscSNPrintf(where, sizeof(where), "%s, %s, %s%s", name, precision == GPUCSR_PRECISION_DOUBLE ? "" : w->floats ? "floats, " : "single, ", format->name, w->dev->ops->kernels ? k->name : "reference"));
        PetscCheck(GPUCSRPlanSteps(&P) && GPUCSRPlanSums(&P), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s has no steps", where);
        PetscCall(Check(w, &P, s->m, where));
        (*count)++;
      }
      PetscCall(GPUCSRPlanDestroy(&P));
      if (!w->dev->ops->kernels) break;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode One(GPUCSRDevice dev, const GPUCSRSource *s, const char name[], int *count)
{
  const size_t n = (size_t)s->m, bytes = sizeof(double) * n, sums = sizeof(double) * GPUCSR_INNER * GPUCSR_MOST_PARTS(n);
  Space        w   = {dev, bytes, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, PETSC_FALSE};
  double     **d[] = {&w.b, &w.x, &w.M, &w.z, &w.v};

  PetscFunctionBegin;
  for (int k = 0; k < 5; k++) PetscCall(GPUCSRMalloc(dev, bytes, "a vector", (void **)d[k]));
  PetscCall(GPUCSRMalloc(dev, sums, "sums", (void **)&w.part));
  PetscCall(PetscMalloc5(n, &w.hx, n, &w.hd, n, &w.hM, n, &w.hz, n, &w.hv));
  PetscCall(Kernels(&w, s, GPUCSR_PRECISION_DOUBLE, name, count));
  PetscCall(Kernels(&w, s, GPUCSR_PRECISION_SINGLE, name, count));
  w.floats = PETSC_TRUE;
  PetscCall(Kernels(&w, s, GPUCSR_PRECISION_SINGLE, name, count));
  PetscCall(GPUCSRFree(dev, sums, (void **)&w.part));
  for (int k = 0; k < 5; k++) PetscCall(GPUCSRFree(dev, bytes, (void **)d[k]));
  PetscCall(PetscFree5(w.hx, w.hd, w.hM, w.hz, w.hv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* 5 points on k x k: few stencils, or values of all kinds */
static PetscErrorCode Grid(GPUCSRDevice dev, PetscInt k, PetscBool alike, int *count)
{
  GPUCSRSource s = {(int)(k * k), (int)(k * k), 0, NULL, NULL, NULL, NULL};
  int32_t     *i;
  PetscInt    *j;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(s.m + 1, &i, 5 * (size_t)s.m, &j, 5 * (size_t)s.m, &a));
  i[0] = 0;
  for (PetscInt r = 0; r < s.m; r++) {
    const PetscInt  x = r % k, y = r / k, to[5] = {r - k, r - 1, r, r + 1, r + k};
    const PetscBool in[5] = {(PetscBool)(y > 0), (PetscBool)(x > 0), PETSC_TRUE, (PetscBool)(x < k - 1), (PetscBool)(y < k - 1)};

    for (int q = 0; q < 5; q++) {
      if (!in[q]) continue;
      j[s.nnz]   = to[q];
      a[s.nnz++] = alike ? (q == 2 ? 4 : -1) : ZooReal(r, q, 9);
    }
    i[r + 1] = (int32_t)s.nnz;
  }
  s.i = i;
  s.j = j;
  s.a = a;
  PetscCall(One(dev, &s, alike ? "grid" : "grid of all values", count));
  PetscCall(PetscFree3(i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char         backend[32] = "host", why[512];
  GPUCSRDevice dev;
  int          count = 0;
  PetscInt     side  = 0;
  PetscBool    mine  = PETSC_TRUE, share;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(64));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", backend, sizeof(backend), NULL));
  PetscCall(GPUCSRSysInitialize());
  PetscCall(GPUCSRDeviceOpen(backend, &dev, why, sizeof(why)));
  PetscCheck(dev, PETSC_COMM_SELF, PETSC_ERR_GPU, "Backend %s: %s", backend, why);
  side = dev->ops->kernels ? 300 : 40;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-side", &side, NULL)); /* of the grids */
  PetscCall(PetscOptionsHasName(NULL, NULL, "-share", &share));
  for (PetscInt which = 0; which < ZOO_COUNT; which++) {
    Zoo z;

    PetscCall(TestShare(which, &mine));
    if (which == ZOO_DUPLICATES || !mine) continue;
    PetscCall(ZooCreate(which, PETSC_FALSE, &z));
    if (z.m == z.n && z.m) {
      GPUCSRSource s = {(int)z.m, (int)z.n, z.i[z.m], NULL, z.j, z.a, NULL};
      int32_t     *i;

      PetscCall(PetscMalloc1(z.m + 1, &i));
      for (PetscInt r = 0; r <= z.m; r++) i[r] = (int32_t)z.i[r];
      s.i = i;
      PetscCall(One(dev, &s, z.name, &count));
      PetscCall(PetscFree(i));
    }
    PetscCall(ZooDestroy(&z));
  }
  for (int alike = 0; alike < 2; alike++) {
    PetscCall(TestShare(ZOO_COUNT + alike, &mine));
    if (mine) PetscCall(Grid(dev, side, (PetscBool)alike, &count));
  }
  PetscCheck(count > (share ? 0 : 30), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Only %d kernels and matrices were tested", count);
  PetscCheck(!dev->allocated, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%zu bytes of device memory were not given back", dev->allocated);
  PetscCall(GPUCSRSysFinalize());
  PetscCall(PetscFinalize());
  return 0;
}

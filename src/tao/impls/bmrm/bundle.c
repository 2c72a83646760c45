/*
  A bundle on the device or on the host: memory, copies of vectors, and the products on the host.
*/
#include "../../../mat/impls/gpucsr/product/operator.h"
#include "../../../sys/gpucsrwide.h"
#include "bundle.h"

#if GPUCSR_SCALAR_IS_DOUBLE

/* With fewer rows a call of the device costs more than a few hundred planes on the host, which stay in its caches */
  #define DEVICE_ROWS 2048

  #if !defined(GPUCSR_HAVE_CUDA)
/* Never called: without a device there is no bundle */
static int BundleParts_CUDA(PetscInt n)
{
  return (int)PetscMin(n, 1);
}

static PetscErrorCode BundleDots_CUDA(PetscInt n, int columns, const double *block, const double *g, double *parts, GPUCSRStream s)
{
  return PETSC_ERR_PLIB;
}

static PetscErrorCode BundleSum_CUDA(PetscInt n, PetscInt columns, const double *parts, double *dots, GPUCSRStream s)
{
  return PETSC_ERR_PLIB;
}

static PetscErrorCode BundleStep_CUDA(PetscInt n, const BundleTerms *terms, const double *block, PetscBool add, double *w, GPUCSRStream s)
{
  return PETSC_ERR_PLIB;
}
  #endif

static double *Column(const Bundle *b, PetscInt k)
{
  return b->block[k / BUNDLE_BLOCK] + (size_t)(k % BUNDLE_BLOCK) * (size_t)b->n;
}

static int ColumnsOfBlock(const Bundle *b, PetscInt k)
{
  return (int)PetscMin(BUNDLE_BLOCK, b->columns - k * BUNDLE_BLOCK);
}

/* Do kernels compute? Otherwise the host does, and can read the device's memory */
static PetscBool Kernels(const Bundle *b)
{
  return (PetscBool)(b->dev && b->dev->ops->kernels);
}

/* Waits for copies on the device, before the host reads them */
static PetscErrorCode Wait(const Bundle *b)
{
  PetscFunctionBegin;
  if (b->dev && !Kernels(b)) PetscCall(b->dev->ops->streamsynchronize(b->dev->id, b->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* backend: auto, cuda or host */
PetscErrorCode BundleCreate(PetscInt n, const char backend[], Bundle *b)
{
  PetscBool cuda, host;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(b, sizeof(*b)));
  b->n = n;
  PetscCall(PetscStrcmp(backend, "cuda", &cuda));
  PetscCall(PetscStrcmp(backend, "host", &host));
  if (host) PetscCall(PetscStrncpy(b->why, "it was asked for", sizeof(b->why)));
  else if (!cuda && n < DEVICE_ROWS) PetscCall(PetscSNPrintf(b->why, sizeof(b->why), "%" PetscInt_FMT " rows are too few for a device", n));
  else PetscCall(GPUCSRDeviceOpen("cuda", &b->dev, b->why, sizeof(b->why)));
  PetscCheck(b->dev || !cuda, PETSC_COMM_SELF, PETSC_ERR_SUP, "The bundle cannot be kept on the device: %s", b->why);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BundleDestroy(Bundle *b)
{
  const size_t bytes = BUNDLE_BLOCK * (size_t)b->n * sizeof(double);

  PetscFunctionBegin;
  for (PetscInt k = 0; k < b->nblocks; k++) {
    if (b->dev) PetscCall(GPUCSRFree(b->dev, bytes, (void **)&b->block[k]));
    else PetscCall(PetscFree(b->block[k]));
  }
  if (b->dev) {
    PetscCall(GPUCSRFree(b->dev, b->adots * sizeof(double), (void **)&b->dots));
  }
  PetscCall(PetscFree(b->block));
  PetscCall(PetscMemzero(b, sizeof(*b)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes room for one more column; on the device also for its dot products */
static PetscErrorCode Grow(Bundle *b)
{
  const size_t bytes = BUNDLE_BLOCK * (size_t)b->n * sizeof(double);

  PetscFunctionBegin;
  if (b->columns < b->nblocks * BUNDLE_BLOCK) PetscFunctionReturn(PETSC_SUCCESS);
  if (b->nblocks == b->ablocks) {
    double **block;

    PetscCall(PetscMalloc1(2 * b->ablocks + 8, &block));
    for (PetscInt k = 0; k < b->nblocks; k++) block[k] = b->block[k];
    PetscCall(PetscFree(b->block));
    b->block   = block;
    b->ablocks = 2 * b->ablocks + 8;
  }
  if (b->dev) {
    const size_t room = (size_t)(b->nblocks + 1) * BUNDLE_BLOCK * (size_t)(1 + BundleParts_CUDA(b->n));

    PetscCall(GPUCSRMalloc(b->dev, bytes, "planes of a bundle", (void **)&b->block[b->nblocks]));
    b->nblocks++;
    if (room > b->adots) {
      PetscCall(GPUCSRFree(b->dev, b->adots * sizeof(double), (void **)&b->dots));
      b->adots = 0;
      PetscCall(GPUCSRMalloc(b->dev, 2 * room * sizeof(double), "dot products of a bundle", (void **)&b->dots));
      b->adots = 2 * room;
    }
  } else PetscCall(PetscMalloc1(BUNDLE_BLOCK * (size_t)b->n, &b->block[b->nblocks++]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Moves the bundle from the device to the host, and continues there */
static PetscErrorCode MoveToHost(Bundle *b, const char why[])
{
  GPUCSRDevice dev = b->dev;
  Bundle       host;

  PetscFunctionBegin;
  PetscCall(PetscInfo(NULL, "The bundle leaves the device: %s\n", why));
  PetscCall(BundleCreate(b->n, "host", &host));
  PetscCall(PetscStrncpy(host.why, why, sizeof(host.why)));
  for (PetscInt k = 0; k < b->columns; k++) {
    PetscCall(Grow(&host));
    host.columns++;
    PetscCall(GPUCSRDownload(dev, Column(&host, k), GPUCSR_DOUBLE, Column(b, k), GPUCSR_DOUBLE, (size_t)b->n, PETSC_FALSE, dev->stream));
  }
  PetscCall(BundleDestroy(b));
  *b = host;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The array of a vector, on the side where it is. Work on a VECGPU is in the order of the bundle's stream, so no wait is needed. For another device vector this function waits for PETSc's work.
*/
static PetscErrorCode GetArray(const Bundle *b, Vec v, PetscBool write, GPUCSROperand *o)
{
  PetscMemType mtype = PETSC_MEMTYPE_HOST;
  PetscScalar *a     = NULL;
  GPUCSRDevice dev;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(o, sizeof(*o)));
  PetscCall(VecGPUGetDevice(v, &dev));
  if (!b->dev) {
    if (write) PetscCall(VecGetArrayWrite(v, &a));
    else PetscCall(VecGetArrayRead(v, (const PetscScalar **)&a));
  } else if (dev == b->dev) {
    if (write) PetscCall(VecGPUGetArrayWrite(v, (double **)&a));
    else PetscCall(VecGPUGetArrayRead(v, (const double **)&a));
    o->ours = PETSC_TRUE;
  } else {
    if (write) PetscCall(VecGetArrayWriteAndMemType(v, &a, &mtype));
    else PetscCall(VecGetArrayReadAndMemType(v, (const PetscScalar **)&a, &mtype));
    if (!PetscMemTypeHost(mtype)) PetscCall(GPUCSRDeviceSynchronize(b->dev));
    else if (GPUCSRSettingsGlobal.pinvectors) PetscCall(GPUCSRPinVector(b->dev, v, a, &o->pinned));
  }
  o->p     = a;
  o->place = o->ours || !PetscMemTypeHost(mtype) ? GPUCSR_DEVICE : GPUCSR_HOST;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Restores the array, after the work on it is complete */
static PetscErrorCode RestoreArray(const Bundle *b, Vec v, PetscBool write, GPUCSROperand *o)
{
  PetscScalar *a = (PetscScalar *)o->p;

  PetscFunctionBegin;
  if (!b->dev) {
    if (write) PetscCall(VecRestoreArrayWrite(v, &a));
    else PetscCall(VecRestoreArrayRead(v, (const PetscScalar **)&a));
  } else if (o->ours) {
    if (write) PetscCall(VecGPURestoreArrayWrite(v, (double **)&o->p));
    else PetscCall(VecGPURestoreArrayRead(v, (const double **)&o->p));
  } else {
    if (o->pinned || o->place == GPUCSR_DEVICE) PetscCall(b->dev->ops->streamsynchronize(b->dev->id, b->dev->stream));
    if (write) PetscCall(VecRestoreArrayWriteAndMemType(v, &a));
    else PetscCall(VecRestoreArrayReadAndMemType(v, (const PetscScalar **)&a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies the entries of v to a column */
static PetscErrorCode PutColumn(Bundle *b, PetscInt k, Vec v)
{
  GPUCSROperand o;

  PetscFunctionBegin;
  PetscCall(GetArray(b, v, PETSC_FALSE, &o));
  if (o.place == GPUCSR_DEVICE) PetscCall(b->dev->ops->copy(b->dev->id, Column(b, k), o.p, (size_t)b->n * sizeof(double), GPUCSR_ON_DEVICE, b->dev->stream));
  else if (b->dev) PetscCall(GPUCSRUpload(b->dev, Column(b, k), GPUCSR_DOUBLE, o.p, GPUCSR_DOUBLE, (size_t)b->n, o.pinned, b->dev->stream, NULL));
  else PetscCall(PetscArraycpy(Column(b, k), (const double *)o.p, b->n));
  PetscCall(RestoreArray(b, v, PETSC_FALSE, &o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets the initial weights; there is no plane yet */
PetscErrorCode BundleSetWeights(Bundle *b, Vec w)
{
  PetscFunctionBegin;
  PetscCall(Grow(b));
  b->columns = 1;
  PetscCall(PutColumn(b, 0, w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Add(Bundle *b, Vec g)
{
  PetscFunctionBegin;
  PetscCall(Grow(b));
  PetscCall(PutColumn(b, b->columns, g));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Dot products of a vector with four vectors in a single pass */
GPUCSR_WIDE static void Dots(PetscInt n, const double a[], const double *const c[4], double s[4])
{
  const double *c0 = c[0], *c1 = c[1], *c2 = c[2], *c3 = c[3];
  double        s0 = 0, s1 = 0, s2 = 0, s3 = 0;

  #pragma omp simd reduction(+ : s0, s1, s2, s3)
  for (PetscInt r = 0; r < n; r++) {
    s0 += a[r] * c0[r];
    s1 += a[r] * c1[r];
    s2 += a[r] * c2[r];
    s3 += a[r] * c3[r];
  }
  s[0] = s0;
  s[1] = s1;
  s[2] = s2;
  s[3] = s3;
}

/* Adds a plane. dots: dot products of its rows on this rank with the weights, all earlier planes, and itself */
PetscErrorCode BundleAdd(Bundle *b, Vec g, double dots[])
{
  const double *a;

  PetscFunctionBegin;
  if (b->dev) {
    GPUCSRAttempt attempt;

    GPUCSRTry(&attempt, Add(b, g));
    if (attempt.error == PETSC_ERR_MEM) PetscCall(MoveToHost(b, attempt.message));
    else PetscCheck(!attempt.error, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
  }
  if (!b->dev) PetscCall(Add(b, g));
  a = Column(b, b->columns);
  b->columns++;
  PetscCall(Wait(b));
  if (Kernels(b)) {
    double *parts = b->dots + b->nblocks * BUNDLE_BLOCK;

    for (PetscInt k = 0; k * BUNDLE_BLOCK < b->columns; k++) PetscCall(BundleDots_CUDA(b->n, ColumnsOfBlock(b, k), b->block[k], a, parts + (size_t)k * BUNDLE_BLOCK * (size_t)BundleParts_CUDA(b->n), b->dev->stream));
    PetscCall(BundleSum_CUDA(b->n, b->columns, parts, b->dots, b->dev->stream));
    PetscCall(GPUCSRDownload(b->dev, dots, GPUCSR_DOUBLE, b->dots, GPUCSR_DOUBLE, (size_t)b->columns, PETSC_FALSE, b->dev->stream));
  } else {
    for (PetscInt k = 0; k < b->columns; k += 4) {
      const double *c[4];
      double        s[4];

      for (PetscInt j = 0; j < 4; j++) c[j] = Column(b, PetscMin(k + j, b->columns - 1));
      Dots(b->n, a, c, s);
      for (PetscInt j = 0; j < 4 && k + j < b->columns; j++) dots[k + j] = s[j];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Keeps only these planes, ascending, from 0; the weights in front are not counted */
PetscErrorCode BundleKeep(Bundle *b, PetscInt nkept, const PetscInt kept[])
{
  const size_t bytes = (size_t)b->n * sizeof(double);

  PetscFunctionBegin;
  for (PetscInt k = 0; k < nkept; k++) {
    if (kept[k] == k) continue;
    if (b->dev) PetscCall(b->dev->ops->copy(b->dev->id, Column(b, k + 1), Column(b, kept[k] + 1), bytes, GPUCSR_ON_DEVICE, b->dev->stream));
    else PetscCall(PetscMemcpy(Column(b, k + 1), Column(b, kept[k] + 1), bytes));
  }
  b->columns = nkept + 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* w += sum of four columns by their weights */
GPUCSR_WIDE static void Sum(PetscInt n, const double x[4], const double *const c[4], double w[])
{
  const double *c0 = c[0], *c1 = c[1], *c2 = c[2], *c3 = c[3], x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];

  for (PetscInt r = 0; r < n; r++) w[r] += x0 * c0[r] + x1 * c1[r] + x2 * c2[r] + x3 * c3[r];
}

/* w = sum of weight[k] times plane k, the new weights */
PetscErrorCode BundleStep(Bundle *b, const double weight[], Vec w)
{
  GPUCSROperand o;
  PetscScalar  *to;
  PetscBool     add = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(Wait(b));
  to = Kernels(b) ? NULL : Column(b, 0);
  if (to) PetscCall(PetscArrayzero(to, b->n));
  for (PetscInt k = 0; k < b->nblocks; k++) {
    BundleTerms terms;

    terms.count = 0;
    for (PetscInt j = k ? 0 : 1; j < ColumnsOfBlock(b, k); j++) {
      if (weight[k * BUNDLE_BLOCK + j - 1] == 0) continue;
      terms.column[terms.count]   = (int)j;
      terms.weight[terms.count++] = weight[k * BUNDLE_BLOCK + j - 1];
    }
    if (!terms.count) continue;
    if (Kernels(b)) PetscCall(BundleStep_CUDA(b->n, &terms, b->block[k], add, Column(b, 0), b->dev->stream));
    else {
      for (int j = 0; j < terms.count; j += 4) {
        const double *c[4], x[4] = {terms.weight[j], j + 1 < terms.count ? terms.weight[j + 1] : 0, j + 2 < terms.count ? terms.weight[j + 2] : 0, j + 3 < terms.count ? terms.weight[j + 3] : 0};

        for (int i = 0; i < 4; i++) c[i] = b->block[k] + (size_t)terms.column[PetscMin(j + i, terms.count - 1)] * (size_t)b->n;
        Sum(b->n, x, c, to);
      }
    }
    add = PETSC_TRUE;
  }
  PetscCall(GetArray(b, w, PETSC_TRUE, &o));
  if (o.place == GPUCSR_DEVICE) PetscCall(b->dev->ops->copy(b->dev->id, o.p, Column(b, 0), (size_t)b->n * sizeof(double), GPUCSR_ON_DEVICE, b->dev->stream));
  else if (b->dev) PetscCall(GPUCSRDownload(b->dev, o.p, GPUCSR_DOUBLE, Column(b, 0), GPUCSR_DOUBLE, (size_t)b->n, o.pinned, b->dev->stream));
  else PetscCall(PetscArraycpy((double *)o.p, to, b->n));
  PetscCall(RestoreArray(b, w, PETSC_TRUE, &o));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

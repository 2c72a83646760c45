/*
  A bundle on the device or on the host: memory and copies of vectors. The products with its planes are VECGPU's.
*/
#include "../../../mat/impls/gpucsr/product/operator.h"
#include "../../../vec/impls/gpu/kernels.h"
#include "bundle.h"

#if GPUCSR_SCALAR_IS_DOUBLE

  #define BLOCK 64 /* columns */

/* Numbers from one column to the next: each begins where the device can read pairs */
static size_t Stride(const Bundle *b)
{
  return ((size_t)b->n + 1) / 2 * 2;
}

static double *Column(const Bundle *b, PetscInt k)
{
  return b->block[k / BLOCK] + (size_t)(k % BLOCK) * Stride(b);
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
  else if (!cuda && n < GPUCSRMachineShared.bundle_rows) PetscCall(PetscSNPrintf(b->why, sizeof(b->why), "%" PetscInt_FMT " rows are too few for a device", n));
  else PetscCall(GPUCSRDeviceOpen("cuda", &b->dev, b->why, sizeof(b->why)));
  if (b->dev && VecGPUKernelsOf(b->dev)->prepare) {
    GPUCSRAttempt attempt;

    GPUCSRTry(&attempt, (*VecGPUKernelsOf(b->dev)->prepare)(b->dev));
    if (attempt.error) {
      b->dev = NULL;
      PetscCall(PetscStrncpy(b->why, attempt.message, sizeof(b->why)));
    }
  }
  PetscCheck(b->dev || !cuda, PETSC_COMM_SELF, PETSC_ERR_SUP, "The bundle cannot be kept on the device: %s", b->why);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode BundleDestroy(Bundle *b)
{
  const size_t bytes = BLOCK * Stride(b) * sizeof(double);

  PetscFunctionBegin;
  for (PetscInt k = 0; k < b->nblocks; k++) {
    if (b->dev) PetscCall(GPUCSRFree(b->dev, bytes, (void **)&b->block[k]));
    else PetscCall(PetscFree(b->block[k]));
  }
  PetscCall(PetscFree(b->block));
  PetscCall(PetscMemzero(b, sizeof(*b)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes room for one more column */
static PetscErrorCode Grow(Bundle *b)
{
  const size_t bytes = BLOCK * Stride(b) * sizeof(double);

  PetscFunctionBegin;
  if (b->columns < b->nblocks * BLOCK) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscRealloc(sizeof(*b->block) * (size_t)(b->nblocks + 1), &b->block));
  b->block[b->nblocks] = NULL;
  if (b->dev) PetscCall(GPUCSRMalloc(b->dev, bytes, "planes of a bundle", (void **)&b->block[b->nblocks]));
  else PetscCall(PetscMalloc(bytes, &b->block[b->nblocks]));
  b->nblocks++;
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
  PetscFunctionBegin;
  if (!b->dev) {
    *o = (GPUCSROperand){.place = GPUCSR_HOST};
    if (write) PetscCall(VecGetArrayWrite(v, (PetscScalar **)&o->p));
    else PetscCall(VecGetArrayRead(v, (const PetscScalar **)&o->p));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGPUCSRVecGet_Private(b->dev, v, (PetscBool)!write, write, o));
  if (o->place == GPUCSR_DEVICE && !o->vecgpu) PetscCall(GPUCSRDeviceSynchronize(b->dev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Restores the array, after the work on it is complete */
static PetscErrorCode RestoreArray(const Bundle *b, Vec v, PetscBool write, GPUCSROperand *o)
{
  PetscFunctionBegin;
  if (o->pinned || (o->place == GPUCSR_DEVICE && !o->vecgpu)) PetscCall(b->dev->ops->streamsynchronize(b->dev->id, b->dev->stream));
  PetscCall(MatGPUCSRVecRestore_Private(b->dev, v, (PetscBool)!write, write, o));
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

/* Adds a plane. dots: dot products of its rows on this rank with the weights, all earlier planes, and itself */
PetscErrorCode BundleAdd(Bundle *b, Vec g, double dots[])
{
  const double **column;

  PetscFunctionBegin;
  if (b->dev) {
    GPUCSRAttempt attempt;

    GPUCSRTry(&attempt, Add(b, g));
    if (attempt.error == PETSC_ERR_MEM) PetscCall(MoveToHost(b, attempt.message));
    else PetscCheck(!attempt.error, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
  }
  if (!b->dev) PetscCall(Add(b, g));
  b->columns++;
  PetscCall(PetscMalloc1(b->columns, &column));
  for (PetscInt k = 0; k < b->columns; k++) column[k] = Column(b, k);
  PetscCall((*VecGPUKernelsOf(b->dev)->mdot)(b->dev, (size_t)b->n, (int)b->columns, column[b->columns - 1], column, dots));
  PetscCall(PetscFree(column));
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

/* w = sum of weight[k] times plane k, the new weights */
PetscErrorCode BundleStep(Bundle *b, const double weight[], Vec w)
{
  GPUCSROperand  o;
  const double **column;
  double        *factor;
  int            n = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2(b->columns, &column, b->columns, &factor));
  for (PetscInt k = 1; k < b->columns; k++) {
    if (weight[k - 1] == 0) continue;
    column[n]   = Column(b, k);
    factor[n++] = weight[k - 1];
  }
  PetscCall((*VecGPUKernelsOf(b->dev)->maxpy)(b->dev, (size_t)b->n, n, factor, column, 0, Column(b, 0)));
  PetscCall(PetscFree2(column, factor));
  PetscCall(GetArray(b, w, PETSC_TRUE, &o));
  if (o.place == GPUCSR_DEVICE) PetscCall(b->dev->ops->copy(b->dev->id, o.p, Column(b, 0), (size_t)b->n * sizeof(double), GPUCSR_ON_DEVICE, b->dev->stream));
  else if (b->dev) PetscCall(GPUCSRDownload(b->dev, o.p, GPUCSR_DOUBLE, Column(b, 0), GPUCSR_DOUBLE, (size_t)b->n, o.pinned, b->dev->stream));
  else PetscCall(PetscArraycpy((double *)o.p, Column(b, 0), b->n));
  PetscCall(RestoreArray(b, w, PETSC_TRUE, &o));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

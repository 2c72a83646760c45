/*
  The operations of VECGPU. An operation runs on the device if all its vectors are there, whatever their types (foreign.c); otherwise the parent's operation uses the host's arrays. Numbers of a
  parallel vector are reduced on each rank's device first, then over the ranks: rankreduce.c.
*/
#include "vecgpuimpl.h"

/* The device computes with doubles; in a PETSc with other scalars no vector has a device */
#define D(scalar) ((double)PetscRealPart(scalar))

/* Can v be used on the same device? dev becomes NULL if not */
static PetscErrorCode Join(Vec v, GPUCSRDevice *dev)
{
  GPUCSRDevice d = NULL;
  PetscBool    foreign;

  PetscFunctionBegin;
  if (VecGPUIs(v)) PetscCall(VecGPUReady_Private(v, &d));
  else {
    PetscCall(VecGPUForeign_Private(v, *dev, &foreign));
    if (foreign) d = *dev;
  }
  if (d != *dev) *dev = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The common device of all vectors that are not NULL; NULL if there is none */
static PetscErrorCode Common(Vec a, Vec b, Vec c, GPUCSRDevice *dev)
{
  Vec v[] = {a, b, c};

  PetscFunctionBegin;
  PetscCall(VecGPUReady_Private(a, dev));
  for (int k = 1; k < 3 && *dev; k++)
    if (v[k]) PetscCall(Join(v[k], dev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CommonMany(Vec a, PetscInt n, const Vec v[], GPUCSRDevice *dev)
{
  PetscFunctionBegin;
  PetscCall(VecGPUReady_Private(a, dev));
  for (PetscInt k = 0; k < n && *dev; k++) PetscCall(Join(v[k], dev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define ARRAY(v) ((v) ? VecGPUDeviceOf(v) : NULL)

/* An operand that is read, of any type on the device: *a has the array of another type; OPERAND() is the array once all operands are there */
#define OPERAND(v, a) ((a) ? (a) : ARRAY(v))

#define FACTORS(a, b, c) ((const double[3]){D(a), D(b), D(c)})

/* z = an expression of veclist.h with three factors; x and y may be NULL, readz says whether it reads z */
static PetscErrorCode Map(GPUCSRDevice dev, VecGPUMap op, const double abc[3], Vec x, Vec y, PetscBool readz, Vec z)
{
  double *ax, *ay;

  PetscFunctionBegin;
  PetscCall(VecGPUOperandGet_Private(dev, x, &ax));
  PetscCall(VecGPUOperandGet_Private(dev, y, &ay));
  if (readz) PetscCall(VecGPUDeviceRead_Private(z));
  PetscCall(VecGPUDeviceWrite_Private(z));
  PetscCall((*VecGPUKernelsOf(dev)->map)(dev, op, (size_t)z->map->n, abc, OPERAND(x, ax), OPERAND(y, ay), ARRAY(z)));
  PetscCall(VecGPUDeviceWritten_Private(z));
  PetscCall(VecGPUOperandRestore_Private(dev, x, &ax));
  PetscCall(VecGPUOperandRestore_Private(dev, y, &ay));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An operation on the device, or else the parent's */
#define ON_DEVICE(a, b, c, op, ...) \
  GPUCSRDevice dev; \
\
  PetscFunctionBegin; \
  PetscCall(Common(a, b, c, &dev)); \
  if (!dev) { \
    PetscCall((*VecGPUParent(a)->op)(__VA_ARGS__)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }

/* --- Entry by entry. A factor 0 leaves out its vector, as in VECSEQ */

static PetscErrorCode VecSet_GPU(Vec z, PetscScalar a)
{
  ON_DEVICE(z, NULL, NULL, set, z, a)
  PetscCall(VecGPUFill_Private(z, a));
  PetscCall(PetscObjectStateIncrease((PetscObject)z)); /* VecSetInf() calls this function without increasing the state, and marks a failed preconditioner, which a cached norm would hide */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecScale_GPU(Vec z, PetscScalar a)
{
  ON_DEVICE(z, NULL, NULL, scale, z, a)
  if (a == (PetscScalar)0.0) PetscCall(VecGPUFill_Private(z, 0));
  else if (a != (PetscScalar)1.0) {
    PetscCall(Map(dev, VECGPU_MAP_scale, FACTORS(a, 0, 0), NULL, NULL, PETSC_TRUE, z));
    PetscCall(PetscLogFlops((PetscLogDouble)z->map->n));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From the device to the place of z: z may be of any type */
static PetscErrorCode VecCopy_GPU(Vec x, Vec z)
{
  VecGPUEntries *e;
  GPUCSRDevice   dev;
  PetscScalar   *a;

  PetscFunctionBegin;
  if (x == z) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Common(x, z, NULL, &dev));
  if (dev && VecGPUIs(z)) {
    PetscCall(Map(dev, VECGPU_MAP_copy, FACTORS(0, 0, 0), x, NULL, PETSC_FALSE, z));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (dev) {
    double *az;

    PetscCall(VecGPUDeviceRead_Private(x));
    PetscCall(VecGPUForeignGet_Private(dev, z, VEC_GPU_WRITE, &az));
    PetscCall(dev->ops->copy(dev->id, az, ARRAY(x), sizeof(double) * (size_t)x->map->n, GPUCSR_ON_DEVICE, dev->stream));
    PetscCall(VecGPUForeignRestore_Private(dev, z, VEC_GPU_WRITE, &az));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecGPUReady_Private(x, &dev));
  e = VecGPUOf(x)->entries;
  if (!dev || e->valid != VEC_GPU_DEVICE) {
    PetscCall((*VecGPUParent(x)->copy)(x, z));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* past the host's array of x, which may not exist */
  PetscCall(VecGetArrayWrite(z, &a));
  PetscCall(dev->ops->activate(dev->id));
  PetscCall(GPUCSRDownload(dev, a, GPUCSR_DOUBLE, ARRAY(x), GPUCSR_DOUBLE, (size_t)x->map->n, PETSC_FALSE, dev->stream));
  PetscCall(VecRestoreArrayWrite(z, &a));
  e->info.downloads++;
  e->info.downloaded += (double)sizeof(double) * (double)x->map->n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecSwap_GPU(Vec x, Vec y)
{
  GPUCSRDevice dev;

  PetscFunctionBegin;
  PetscCall(Common(x, y, NULL, &dev));
  if (!dev || !VecGPUIs(y)) {
    PetscCall((*VecGPUParent(x)->swap)(x, y));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecGPUDeviceRead_Private(x));
  PetscCall(VecGPUDeviceRead_Private(y));
  PetscCall(VecGPUDeviceWrite_Private(x));
  PetscCall(VecGPUDeviceWrite_Private(y));
  PetscCall((*VecGPUKernelsOf(dev)->swap)(dev, (size_t)x->map->n, ARRAY(x), ARRAY(y)));
  PetscCall(VecGPUDeviceWritten_Private(x));
  PetscCall(VecGPUDeviceWritten_Private(y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecAXPY_GPU(Vec z, PetscScalar a, Vec x)
{
  ON_DEVICE(z, x, NULL, axpy, z, a, x)
  if (a == (PetscScalar)0.0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Map(dev, VECGPU_MAP_axpy, FACTORS(a, 0, 0), x, NULL, PETSC_TRUE, z));
  PetscCall(PetscLogFlops(2.0 * (PetscLogDouble)z->map->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecAYPX_GPU(Vec z, PetscScalar b, Vec x)
{
  ON_DEVICE(z, x, NULL, aypx, z, b, x)
  if (b == (PetscScalar)0.0) PetscCall(Map(dev, VECGPU_MAP_copy, FACTORS(0, 0, 0), x, NULL, PETSC_FALSE, z));
  else {
    PetscCall(Map(dev, VECGPU_MAP_aypx, FACTORS(b, 0, 0), x, NULL, PETSC_TRUE, z));
    PetscCall(PetscLogFlops(2.0 * (PetscLogDouble)z->map->n));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecAXPBY_GPU(Vec z, PetscScalar a, PetscScalar b, Vec x)
{
  ON_DEVICE(z, x, NULL, axpby, z, a, b, x)
  if (a == (PetscScalar)0.0) PetscCall(VecScale_GPU(z, b));
  else if (b == (PetscScalar)0.0) PetscCall(Map(dev, VECGPU_MAP_multiple, FACTORS(a, 0, 0), x, NULL, PETSC_FALSE, z));
  else PetscCall(Map(dev, VECGPU_MAP_axpby, FACTORS(a, b, 0), x, NULL, PETSC_TRUE, z));
  PetscCall(PetscLogFlops(3.0 * (PetscLogDouble)z->map->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecWAXPY_GPU(Vec z, PetscScalar a, Vec x, Vec y)
{
  ON_DEVICE(z, x, y, waxpy, z, a, x, y)
  if (a == (PetscScalar)0.0) PetscCall(Map(dev, VECGPU_MAP_copy, FACTORS(0, 0, 0), y, NULL, PETSC_FALSE, z));
  else {
    PetscCall(Map(dev, VECGPU_MAP_waxpy, FACTORS(a, 0, 0), x, y, PETSC_FALSE, z));
    PetscCall(PetscLogFlops(2.0 * (PetscLogDouble)z->map->n));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecAXPBYPCZ_GPU(Vec z, PetscScalar a, PetscScalar b, PetscScalar c, Vec x, Vec y)
{
  ON_DEVICE(z, x, y, axpbypcz, z, a, b, c, x, y)
  if (c == (PetscScalar)0.0) PetscCall(Map(dev, VECGPU_MAP_axpbyz, FACTORS(a, b, 0), x, y, PETSC_FALSE, z));
  else PetscCall(Map(dev, VECGPU_MAP_axpbypcz, FACTORS(a, b, c), x, y, PETSC_TRUE, z));
  PetscCall(PetscLogFlops(5.0 * (PetscLogDouble)z->map->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define POINTWISE(Name, name) \
  static PetscErrorCode Name(Vec z, Vec x, Vec y) \
  { \
    ON_DEVICE(z, x, y, pointwise##name, z, x, y) \
    PetscCall(Map(dev, VECGPU_MAP_##name, FACTORS(0, 0, 0), x, y, PETSC_FALSE, z)); \
    PetscCall(PetscLogFlops((PetscLogDouble)z->map->n)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
POINTWISE(VecPointwiseMult_GPU, mult)
POINTWISE(VecPointwiseDivide_GPU, divide)
POINTWISE(VecPointwiseMax_GPU, max)
POINTWISE(VecPointwiseMaxAbs_GPU, maxabs)
POINTWISE(VecPointwiseMin_GPU, min)

/*
  VECSEQ has no operation for these: VecExp() and its siblings loop over the host's array, and so does this code without a device. PETSc 3.18 does not increase the state if there is an operation.
*/
#define ENTRYWISE(Name, name, function) \
  static PetscErrorCode Name(Vec z) \
  { \
    GPUCSRDevice dev; \
\
    PetscFunctionBegin; \
    PetscCall(Common(z, NULL, NULL, &dev)); \
    if (dev) PetscCall(Map(dev, VECGPU_MAP_##name, FACTORS(0, 0, 0), NULL, NULL, PETSC_TRUE, z)); \
    else { \
      PetscScalar *a; \
\
      PetscCall(VecGetArray(z, &a)); \
      for (PetscInt k = 0; k < z->map->n; k++) a[k] = function; \
      PetscCall(VecRestoreArray(z, &a)); \
    } \
    PetscCall(PetscObjectStateIncrease((PetscObject)z)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
ENTRYWISE(VecReciprocal_GPU, reciprocal, a[k] == (PetscScalar)0.0 ? a[k] : (PetscScalar)1.0 / a[k])
ENTRYWISE(VecAbs_GPU, abs, PetscAbsScalar(a[k]))
ENTRYWISE(VecSqrtAbs_GPU, sqrtabs, PetscSqrtReal(PetscAbsScalar(a[k])))
ENTRYWISE(VecExp_GPU, exp, PetscExpScalar(a[k]))
ENTRYWISE(VecLog_GPU, log, PetscLogScalar(a[k]))

static PetscErrorCode VecShift_GPU(Vec z, PetscScalar s)
{
  GPUCSRDevice dev;

  PetscFunctionBegin;
  PetscCall(Common(z, NULL, NULL, &dev));
  if (dev) PetscCall(Map(dev, VECGPU_MAP_shift, FACTORS(s, 0, 0), NULL, NULL, PETSC_TRUE, z));
  else {
    PetscScalar *a;

    PetscCall(VecGetArray(z, &a));
    for (PetscInt k = 0; k < z->map->n; k++) a[k] += s;
    PetscCall(VecRestoreArray(z, &a));
  }
  PetscCall(PetscObjectStateIncrease((PetscObject)z));
  PetscCall(PetscLogFlops((PetscLogDouble)z->map->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecConjugate_GPU(Vec z)
{
  PetscFunctionBegin;
  if (PetscDefined(USE_COMPLEX)) PetscCall((*VecGPUParent(z)->conjugate)(z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = b z + sum of a[k] x[k] */
static PetscErrorCode Terms(GPUCSRDevice dev, Vec z, PetscInt nv, const PetscScalar a[], PetscScalar b, Vec x[])
{
  const double **arrays;
  double        *numbers, **foreign;

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(nv, &arrays, nv, &numbers, nv, &foreign));
  for (PetscInt k = 0; k < nv; k++) {
    PetscCall(VecGPUOperandGet_Private(dev, x[k], &foreign[k]));
    arrays[k]  = OPERAND(x[k], foreign[k]);
    numbers[k] = D(a[k]);
  }
  if (b != (PetscScalar)0.0) PetscCall(VecGPUDeviceRead_Private(z));
  PetscCall(VecGPUDeviceWrite_Private(z));
  PetscCall((*VecGPUKernelsOf(dev)->maxpy)(dev, (size_t)z->map->n, (int)nv, numbers, arrays, D(b), ARRAY(z)));
  PetscCall(VecGPUDeviceWritten_Private(z));
  PetscCall(VecGPUOperandsRestore_Private(dev, nv, x, foreign));
  PetscCall(PetscFree3(arrays, numbers, foreign));
  PetscCall(PetscLogFlops(2.0 * (PetscLogDouble)nv * (PetscLogDouble)z->map->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecMAXPY_GPU(Vec z, PetscInt nv, const PetscScalar a[], Vec x[])
{
  GPUCSRDevice dev;

  PetscFunctionBegin;
  PetscCall(CommonMany(z, nv, x, &dev));
  if (dev) PetscCall(Terms(dev, z, nv, a, 1, x));
  else PetscCall((*VecGPUParent(z)->maxpy)(z, nv, a, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if GPUCSR_VEC_HAS_MAXPBY
static PetscErrorCode VecMAXPBY_GPU(Vec z, PetscInt nv, const PetscScalar a[], PetscScalar b, Vec x[])
{
  GPUCSRDevice dev;

  PetscFunctionBegin;
  PetscCall(CommonMany(z, nv, x, &dev));
  if (dev) PetscCall(Terms(dev, z, nv, a, b, x));
  else {
    PetscCall(VecScale_GPU(z, b));
    PetscCall(VecMAXPY_GPU(z, nv, a, x));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* --- Numbers of this rank */

static PetscErrorCode Reduce(GPUCSRDevice dev, VecGPUReduction op, Vec x, Vec y, double result[2])
{
  double *ay;

  PetscFunctionBegin;
  PetscCall(VecGPUDeviceRead_Private(x));
  PetscCall(VecGPUOperandGet_Private(dev, y, &ay));
  PetscCall((*VecGPUKernelsOf(dev)->reduce)(dev, op, (size_t)x->map->n, ARRAY(x), OPERAND(y, ay), result));
  PetscCall(VecGPUOperandRestore_Private(dev, y, &ay));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecDotLocal_GPU(Vec x, Vec y, PetscScalar *z)
{
  double r[2];

  ON_DEVICE(x, y, NULL, dot_local, x, y, z)
  PetscCall(Reduce(dev, VECGPU_REDUCE_dot, x, y, r));
  *z = r[0];
  PetscCall(PetscLogFlops(PetscMax(2.0 * (PetscLogDouble)x->map->n - 1, 0)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecTDotLocal_GPU(Vec x, Vec y, PetscScalar *z)
{
  double r[2];

  ON_DEVICE(x, y, NULL, tdot_local, x, y, z)
  PetscCall(Reduce(dev, VECGPU_REDUCE_dot, x, y, r));
  *z = r[0];
  PetscCall(PetscLogFlops(PetscMax(2.0 * (PetscLogDouble)x->map->n - 1, 0)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Dots(GPUCSRDevice dev, Vec x, PetscInt nv, const Vec y[], PetscScalar z[])
{
  const double **arrays;
  double        *numbers, **foreign;

  PetscFunctionBegin;
  PetscCall(PetscMalloc3(nv, &arrays, nv, &numbers, nv, &foreign));
  PetscCall(VecGPUDeviceRead_Private(x));
  for (PetscInt k = 0; k < nv; k++) {
    PetscCall(VecGPUOperandGet_Private(dev, y[k], &foreign[k]));
    arrays[k] = OPERAND(y[k], foreign[k]);
  }
  PetscCall((*VecGPUKernelsOf(dev)->mdot)(dev, (size_t)x->map->n, (int)nv, ARRAY(x), arrays, numbers));
  for (PetscInt k = 0; k < nv; k++) z[k] = numbers[k];
  PetscCall(VecGPUOperandsRestore_Private(dev, nv, y, foreign));
  PetscCall(PetscFree3(arrays, numbers, foreign));
  PetscCall(PetscLogFlops(PetscMax((PetscLogDouble)nv * (2.0 * (PetscLogDouble)x->map->n - 1), 0)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecMDotLocal_GPU(Vec x, PetscInt nv, const Vec y[], PetscScalar z[])
{
  GPUCSRDevice dev;

  PetscFunctionBegin;
  PetscCall(CommonMany(x, nv, y, &dev));
  if (dev) PetscCall(Dots(dev, x, nv, y, z));
  else PetscCall((*VecGPUParent(x)->mdot_local)(x, nv, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecMTDotLocal_GPU(Vec x, PetscInt nv, const Vec y[], PetscScalar z[])
{
  GPUCSRDevice dev;

  PetscFunctionBegin;
  PetscCall(CommonMany(x, nv, y, &dev));
  if (dev) PetscCall(Dots(dev, x, nv, y, z));
  else PetscCall((*VecGPUParent(x)->mtdot_local)(x, nv, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parts of a norm: the sum of squares for the 2-norm */
static PetscErrorCode NormParts(GPUCSRDevice dev, Vec x, NormType type, double r[2])
{
  PetscFunctionBegin;
  switch (type) {
  case NORM_1:
    PetscCall(Reduce(dev, VECGPU_REDUCE_norm1, x, NULL, r));
    break;
  case NORM_INFINITY:
    PetscCall(Reduce(dev, VECGPU_REDUCE_largest, x, NULL, r));
    break;
  case NORM_1_AND_2:
    PetscCall(Reduce(dev, VECGPU_REDUCE_norm1square, x, NULL, r));
    break;
  default:
    PetscCall(Reduce(dev, VECGPU_REDUCE_square, x, NULL, r));
  }
  if (type != NORM_INFINITY) PetscCall(PetscLogFlops((type == NORM_1 ? 1.0 : type == NORM_1_AND_2 ? 3.0 : 2.0) * (PetscLogDouble)x->map->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void NormFromParts(NormType type, const double r[2], PetscReal z[])
{
  z[0] = (PetscReal)r[0];
  if (type == NORM_2 || type == NORM_FROBENIUS) z[0] = PetscSqrtReal(z[0]);
  if (type == NORM_1_AND_2) z[1] = PetscSqrtReal((PetscReal)r[1]);
}

static PetscErrorCode VecNormLocal_GPU(Vec x, NormType type, PetscReal *z)
{
  double r[2];

  ON_DEVICE(x, NULL, NULL, norm_local, x, type, z)
  PetscCall(NormParts(dev, x, type, r));
  NormFromParts(type, r, z);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* VecSum() adds up over ranks itself */
static PetscErrorCode VecSum_GPU(Vec x, PetscScalar *z)
{
  GPUCSRDevice dev;
  double       r[2];

  PetscFunctionBegin;
  PetscCall(Common(x, NULL, NULL, &dev));
  *z = 0;
  if (dev) {
    PetscCall(Reduce(dev, VECGPU_REDUCE_sum, x, NULL, r));
    *z = r[0];
  } else {
    const PetscScalar *a;

    PetscCall(VecGetArrayRead(x, &a));
    for (PetscInt k = 0; k < x->map->n; k++) *z += a[k];
    PetscCall(VecRestoreArrayRead(x, &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Numbers of all ranks */

/* ierr: an error of this rank in its part */
static PetscErrorCode Sum(Vec x, PetscErrorCode ierr, PetscInt n, PetscScalar z[])
{
  PetscFunctionBegin;
#if GPUCSR_SCALAR_IS_DOUBLE
  PetscCall(VecGPUTogether_Private(x, ierr, VEC_GPU_ADD, n, z));
#else
  PetscCall(ierr);
  if (VecGPUOf(x)->mpi && n) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, z, (PetscMPIInt)n, MPIU_SCALAR, MPIU_SUM, PetscObjectComm((PetscObject)x)));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecDot_GPU(Vec x, Vec y, PetscScalar *z)
{
  PetscFunctionBegin;
  PetscCall(Sum(x, VecDotLocal_GPU(x, y, z), 1, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecTDot_GPU(Vec x, Vec y, PetscScalar *z)
{
  PetscFunctionBegin;
  PetscCall(Sum(x, VecTDotLocal_GPU(x, y, z), 1, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecMDot_GPU(Vec x, PetscInt nv, const Vec y[], PetscScalar z[])
{
  PetscFunctionBegin;
  PetscCall(Sum(x, VecMDotLocal_GPU(x, nv, y, z), nv, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecMTDot_GPU(Vec x, PetscInt nv, const Vec y[], PetscScalar z[])
{
  PetscFunctionBegin;
  PetscCall(Sum(x, VecMTDotLocal_GPU(x, nv, y, z), nv, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The product of s with t and the square of t's norm, of this rank */
static PetscErrorCode DotNorm2Local(Vec s, Vec t, PetscScalar z[2])
{
  GPUCSRDevice dev;
  double       r[2];

  PetscFunctionBegin;
  PetscCall(Common(s, t, NULL, &dev));
  if (dev) {
    PetscCall(Reduce(dev, VECGPU_REDUCE_dotnorm2, s, t, r));
    z[0] = r[0];
    z[1] = r[1];
    PetscCall(PetscLogFlops(4.0 * (PetscLogDouble)s->map->n));
  } else {
    PetscCall((*VecGPUParent(s)->dot_local)(s, t, &z[0]));
    PetscCall((*VecGPUParent(s)->dot_local)(t, t, &z[1])); /* t may be of any type */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's VecDotNorm2() expects the values of all ranks */
static PetscErrorCode VecDotNorm2_GPU(Vec s, Vec t, PetscScalar *dot, PetscScalar *square)
{
  PetscScalar z[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(Sum(s, DotNorm2Local(s, t, z), 2, z));
  *dot    = z[0];
  *square = z[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A rank whose vector has no device contributes the parent's result */
static PetscErrorCode NormPartsAnywhere(Vec x, NormType type, double r[2])
{
  GPUCSRDevice dev;
  PetscReal    parts[2];

  PetscFunctionBegin;
  PetscCall(Common(x, NULL, NULL, &dev));
  if (dev) PetscCall(NormParts(dev, x, type, r));
  else {
    PetscCall((*VecGPUParent(x)->norm_local)(x, type, parts));
    r[0] = (double)(type == NORM_2 || type == NORM_FROBENIUS ? parts[0] * parts[0] : parts[0]);
    if (type == NORM_1_AND_2) r[1] = (double)(parts[1] * parts[1]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecNorm_GPU(Vec x, NormType type, PetscReal *z)
{
  double r[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(VecGPUTogether_Private(x, NormPartsAnywhere(x, type, r), type == NORM_INFINITY ? VEC_GPU_TOP : VEC_GPU_ADD, type == NORM_1_AND_2 ? 2 : 1, r));
  NormFromParts(type, r, z);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MaxPointwiseDivideLocal(Vec x, Vec y, double r[2])
{
  GPUCSRDevice dev;

  PetscFunctionBegin;
  PetscCall(Common(x, y, NULL, &dev));
  if (dev) {
    PetscCall(Reduce(dev, VECGPU_REDUCE_largestquotient, x, y, r));
    PetscCall(PetscLogFlops((PetscLogDouble)x->map->n));
  } else {
    const PetscScalar *a, *b;

    PetscCall(VecGetArrayRead(x, &a));
    PetscCall(VecGetArrayRead(y, &b));
    r[0] = 0;
    for (PetscInt k = 0; k < x->map->n; k++) r[0] = PetscMax(r[0], (double)PetscAbsScalar(b[k] == (PetscScalar)0.0 ? a[k] : a[k] / b[k]));
    PetscCall(VecRestoreArrayRead(x, &a));
    PetscCall(VecRestoreArrayRead(y, &b));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecMaxPointwiseDivide_GPU(Vec x, Vec y, PetscReal *z)
{
  double r[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(VecGPUTogether_Private(x, MaxPointwiseDivideLocal(x, y, r), VEC_GPU_TOP, 1, r));
  *z = (PetscReal)r[0];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The largest (sign 1) or smallest entry and its first place; without entries the values that PETSc returns */
static PetscErrorCode Extreme(Vec x, int sign, PetscInt *at, PetscReal *z)
{
  struct {
    PetscReal v;
    PetscInt  i;
  } best = {sign > 0 ? PETSC_MIN_REAL : PETSC_MAX_REAL, -1};
  GPUCSRDevice dev;

  PetscFunctionBegin;
  PetscCall(Common(x, NULL, NULL, &dev));
  if (dev && x->map->n) {
    double value;
    size_t place;

    PetscCall(VecGPUDeviceRead_Private(x));
    PetscCall((*VecGPUKernelsOf(dev)->extreme)(dev, sign, (size_t)x->map->n, ARRAY(x), &value, &place));
    best.v = (PetscReal)value;
    best.i = (PetscInt)place;
  } else if (x->map->n) {
    const PetscScalar *a;

    PetscCall(VecGetArrayRead(x, &a));
    best.i = 0;
    for (PetscInt k = 1; k < x->map->n; k++)
      if (sign > 0 ? PetscRealPart(a[k]) > PetscRealPart(a[best.i]) : PetscRealPart(a[k]) < PetscRealPart(a[best.i])) best.i = k;
    best.v = PetscRealPart(a[best.i]);
    PetscCall(VecRestoreArrayRead(x, &a));
  }
  if (VecGPUOf(x)->mpi) {
    best.i += x->map->rstart;
    if (at) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &best, 1, MPIU_REAL_INT, sign > 0 ? MPIU_MAXLOC : MPIU_MINLOC, PetscObjectComm((PetscObject)x)));
    else PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &best.v, 1, MPIU_REAL, sign > 0 ? MPIU_MAX : MPIU_MIN, PetscObjectComm((PetscObject)x)));
  }
  *z = best.v;
  if (at) *at = best.i;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecMax_GPU(Vec x, PetscInt *at, PetscReal *z)
{
  PetscFunctionBegin;
  PetscCall(Extreme(x, 1, at, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecMin_GPU(Vec x, PetscInt *at, PetscReal *z)
{
  PetscFunctionBegin;
  PetscCall(Extreme(x, -1, at, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void VecGPUOperations_Private(struct _VecOps *o)
{
  o->set                = VecSet_GPU;
  o->copy               = VecCopy_GPU;
  o->swap               = VecSwap_GPU;
  o->scale              = VecScale_GPU;
  o->shift              = VecShift_GPU;
  o->axpy               = VecAXPY_GPU;
  o->aypx               = VecAYPX_GPU;
  o->axpby              = VecAXPBY_GPU;
  o->waxpy              = VecWAXPY_GPU;
  o->axpbypcz           = VecAXPBYPCZ_GPU;
  o->maxpy              = VecMAXPY_GPU;
  o->pointwisemult      = VecPointwiseMult_GPU;
  o->pointwisedivide    = VecPointwiseDivide_GPU;
  o->pointwisemax       = VecPointwiseMax_GPU;
  o->pointwisemaxabs    = VecPointwiseMaxAbs_GPU;
  o->pointwisemin       = VecPointwiseMin_GPU;
  o->reciprocal         = VecReciprocal_GPU;
  o->abs                = VecAbs_GPU;
  o->sqrt               = VecSqrtAbs_GPU;
  o->exp                = VecExp_GPU;
  o->log                = VecLog_GPU;
  o->conjugate          = VecConjugate_GPU;
  o->dot                = VecDot_GPU;
  o->tdot               = VecTDot_GPU;
  o->mdot               = VecMDot_GPU;
  o->mtdot              = VecMTDot_GPU;
  o->norm               = VecNorm_GPU;
  o->dotnorm2           = VecDotNorm2_GPU;
  o->sum                = VecSum_GPU;
  o->max                = VecMax_GPU;
  o->min                = VecMin_GPU;
  o->maxpointwisedivide = VecMaxPointwiseDivide_GPU;
  o->dot_local          = VecDotLocal_GPU;
  o->tdot_local         = VecTDotLocal_GPU;
  o->mdot_local         = VecMDotLocal_GPU;
  o->mtdot_local        = VecMTDotLocal_GPU;
  o->norm_local         = VecNormLocal_GPU;
#if GPUCSR_VEC_HAS_MAXPBY
  o->maxpby = VecMAXPBY_GPU;
#endif
}

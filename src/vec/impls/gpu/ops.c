/*
  The operations of VECGPU. An operation runs on the device if all its vectors are there, whatever their types (access.c); otherwise the same expression of veclist.h uses the host's arrays. Numbers of a
  parallel vector are reduced on each rank first, then over the ranks: rankreduce.c.
*/
#include "vecgpuimpl.h"

#if GPUCSR_SCALAR_IS_DOUBLE

/* The common device of v and of all vectors of w except NULL; NULL without a common device */
static PetscErrorCode Common(Vec v, PetscInt n, const Vec w[], GPUCSRDevice *dev)
{
  PetscFunctionBegin;
  PetscCall(VecGPUReady_Private(v, dev));
  for (PetscInt k = 0; k < n && *dev; k++) {
    GPUCSRDevice d;

    if (!w[k]) continue;
    PetscCall(VecGPUGetDevice(w[k], &d));
    if (d != *dev) *dev = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lends the arrays of v, a[0], and of n other vectors, a[1] to a[n], on their common device or on the host. A vector may be NULL. The arrays of the others come first, because v may be one of them and lose its old entries */
static PetscErrorCode Get(Vec v, VecGPUAccess access, PetscInt n, const Vec w[], VecGPUAccess others, GPUCSRDevice *dev, double *a[])
{
  PetscFunctionBegin;
  PetscCall(Common(v, n, w, dev));
  for (PetscInt k = 0; k < n; k++) PetscCall(VecGPUGet_Private(*dev, w[k], others, &a[k + 1]));
  PetscCall(VecGPUGet_Private(*dev, v, access, &a[0]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Restore(Vec v, VecGPUAccess access, PetscInt n, const Vec w[], VecGPUAccess others, GPUCSRDevice dev, double *a[])
{
  PetscFunctionBegin;
  PetscCall(VecGPURestore_Private(dev, v, access, &a[0]));
  for (PetscInt k = n; k-- > 0;) PetscCall(VecGPURestore_Private(dev, w[k], others, &a[k + 1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Entry by entry. A factor 0 leaves out its vector, as in VECSEQ */

/* Vectors that each expression reads */
  #define VECGPU_MAP(name, reads, expression) reads,
static const int mapreads[] = {
  #include "veclist.h"
};
  #undef VECGPU_MAP

  #define FACTORS(a, b, c) ((const double[3]){a, b, c})

/* z = an expression of veclist.h with three factors; x and y may be NULL */
static PetscErrorCode Map(VecGPUMap op, const double abc[3], Vec x, Vec y, Vec z)
{
  const VecGPUAccess access = mapreads[op] & VECGPU_Z ? VEC_GPU_CHANGE : VEC_GPU_WRITE;
  const Vec          xy[2]  = {x, y};
  GPUCSRDevice       dev;
  double            *a[3];

  PetscFunctionBegin;
  PetscCall(Get(z, access, 2, xy, VEC_GPU_READ, &dev, a));
  PetscCall((*VecGPUKernelsOf(dev)->map)(dev, op, (size_t)z->map->n, abc, a[1], a[2], a[0]));
  PetscCall(Restore(z, access, 2, xy, VEC_GPU_READ, dev, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LogFlops(Vec v, PetscInt each)
{
  return PetscLogFlops((PetscLogDouble)each * (PetscLogDouble)v->map->n);
}

static PetscErrorCode VecSet_GPU(Vec z, PetscScalar a)
{
  PetscFunctionBegin;
  PetscCall(VecGPUFill_Private(z, a));
  PetscCall(PetscObjectStateIncrease((PetscObject)z)); /* VecSetInf() calls this function without increasing the state, and marks a failed preconditioner, which a cached norm would hide */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecScale_GPU(Vec z, PetscScalar a)
{
  PetscFunctionBegin;
  if (a == 0) PetscCall(VecGPUFill_Private(z, 0));
  else if (a != 1) {
    PetscCall(Map(VECGPU_MAP_scale, FACTORS(a, 0, 0), NULL, NULL, z));
    PetscCall(LogFlops(z, 1));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From the device to the place of z: z may be of any type */
static PetscErrorCode VecCopy_GPU(Vec x, Vec z)
{
  VecGPUEntries *e = VecGPUOf(x)->entries;
  GPUCSRDevice   dev, own = NULL;
  double        *ax, *az;
  PetscScalar   *a;

  PetscFunctionBegin;
  if (x == z) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Common(x, 1, &z, &dev));
  if (!dev && e->valid == VEC_GPU_DEVICE) PetscCall(VecGPUReady_Private(x, &own));
  if (!own) { /* also if x is bound to the CPU and another vector has changed its entries on the device */
    PetscCall(VecGPUGet_Private(dev, x, VEC_GPU_READ, &ax));
    PetscCall(VecGPUGet_Private(dev, z, VEC_GPU_WRITE, &az));
    PetscCall((*VecGPUKernelsOf(dev)->map)(dev, VECGPU_MAP_copy, (size_t)z->map->n, FACTORS(0, 0, 0), ax, NULL, az));
    PetscCall(VecGPURestore_Private(dev, z, VEC_GPU_WRITE, &az));
    PetscCall(VecGPURestore_Private(dev, x, VEC_GPU_READ, &ax));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* past the host's array of x, which may not exist */
  PetscCall(VecGetArrayWrite(z, &a));
  PetscCall(own->ops->activate(own->id));
  PetscCall(GPUCSRDownload(own, a, GPUCSR_DOUBLE, VecGPUDeviceOf(x), GPUCSR_DOUBLE, (size_t)x->map->n, PETSC_FALSE, own->stream));
  PetscCall(VecRestoreArrayWrite(z, &a));
  e->info.downloads++;
  e->info.downloaded += (double)sizeof(double) * (double)x->map->n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecSwap_GPU(Vec x, Vec y)
{
  Vec t;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(x, &t));
  PetscCall(VecCopy(x, t));
  PetscCall(VecCopy(y, x));
  PetscCall(VecCopy(t, y));
  PetscCall(VecDestroy(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecAXPY_GPU(Vec z, PetscScalar a, Vec x)
{
  PetscFunctionBegin;
  if (a == 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Map(VECGPU_MAP_axpy, FACTORS(a, 0, 0), x, NULL, z));
  PetscCall(LogFlops(z, 2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecAYPX_GPU(Vec z, PetscScalar b, Vec x)
{
  PetscFunctionBegin;
  PetscCall(Map(b == 0 ? VECGPU_MAP_copy : VECGPU_MAP_aypx, FACTORS(b, 0, 0), x, NULL, z));
  PetscCall(LogFlops(z, b == 0 ? 0 : 2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecAXPBY_GPU(Vec z, PetscScalar a, PetscScalar b, Vec x)
{
  PetscFunctionBegin;
  if (a == 0) {
    PetscCall(VecScale_GPU(z, b));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Map(b == 0 ? VECGPU_MAP_multiple : VECGPU_MAP_axpby, FACTORS(a, b, 0), x, NULL, z));
  PetscCall(LogFlops(z, 3));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecWAXPY_GPU(Vec z, PetscScalar a, Vec x, Vec y)
{
  PetscFunctionBegin;
  if (a == 0) PetscCall(Map(VECGPU_MAP_copy, FACTORS(0, 0, 0), y, NULL, z));
  else PetscCall(Map(VECGPU_MAP_waxpy, FACTORS(a, 0, 0), x, y, z));
  PetscCall(LogFlops(z, a == 0 ? 0 : 2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecAXPBYPCZ_GPU(Vec z, PetscScalar a, PetscScalar b, PetscScalar c, Vec x, Vec y)
{
  PetscFunctionBegin;
  PetscCall(Map(c == 0 ? VECGPU_MAP_axpbyz : VECGPU_MAP_axpbypcz, FACTORS(a, b, c), x, y, z));
  PetscCall(LogFlops(z, 5));
  PetscFunctionReturn(PETSC_SUCCESS);
}

  #define POINTWISE(Name, name) \
    static PetscErrorCode Name(Vec z, Vec x, Vec y) \
    { \
      PetscFunctionBegin; \
      PetscCall(Map(VECGPU_MAP_##name, FACTORS(0, 0, 0), x, y, z)); \
      PetscCall(LogFlops(z, 1)); \
      PetscFunctionReturn(PETSC_SUCCESS); \
    }
POINTWISE(VecPointwiseMult_GPU, mult)
POINTWISE(VecPointwiseDivide_GPU, divide)
POINTWISE(VecPointwiseMax_GPU, max)
POINTWISE(VecPointwiseMaxAbs_GPU, maxabs)
POINTWISE(VecPointwiseMin_GPU, min)

/* VECSEQ has no operation for these, and PETSc 3.18 does not increase the state if there is an operation */
static PetscErrorCode Entrywise(VecGPUMap op, PetscScalar a, Vec z)
{
  PetscFunctionBegin;
  PetscCall(Map(op, FACTORS(a, 0, 0), NULL, NULL, z));
  PetscCall(PetscObjectStateIncrease((PetscObject)z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

  #define ENTRYWISE(Name, name) \
    static PetscErrorCode Name(Vec z) \
    { \
      PetscFunctionBegin; \
      PetscCall(Entrywise(VECGPU_MAP_##name, 0, z)); \
      PetscFunctionReturn(PETSC_SUCCESS); \
    }
ENTRYWISE(VecReciprocal_GPU, reciprocal)
ENTRYWISE(VecAbs_GPU, abs)
ENTRYWISE(VecSqrtAbs_GPU, sqrtabs)
ENTRYWISE(VecExp_GPU, exp)
ENTRYWISE(VecLog_GPU, log)

static PetscErrorCode VecShift_GPU(Vec z, PetscScalar s)
{
  PetscFunctionBegin;
  PetscCall(Entrywise(VECGPU_MAP_shift, s, z));
  PetscCall(LogFlops(z, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Several vectors */

/* z = b z + sum of factor[k] x[k] */
static PetscErrorCode VecMAXPBY_GPU(Vec z, PetscInt nv, const PetscScalar factor[], PetscScalar b, Vec x[])
{
  const VecGPUAccess access = b == 0 ? VEC_GPU_WRITE : VEC_GPU_CHANGE;
  double           **a;
  GPUCSRDevice       dev;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(nv + 1, &a));
  PetscCall(Get(z, access, nv, x, VEC_GPU_READ, &dev, a));
  PetscCall((*VecGPUKernelsOf(dev)->maxpy)(dev, (size_t)z->map->n, (int)nv, factor, (const double *const *)a + 1, b, a[0]));
  PetscCall(Restore(z, access, nv, x, VEC_GPU_READ, dev, a));
  PetscCall(PetscFree(a));
  PetscCall(LogFlops(z, 2 * nv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecMAXPY_GPU(Vec z, PetscInt nv, const PetscScalar a[], Vec x[])
{
  return VecMAXPBY_GPU(z, nv, a, 1, x);
}

/* --- Numbers of this rank. Numbers are real, so VecTDot() equals VecDot() */

static PetscErrorCode Reduce(VecGPUReduction op, Vec x, Vec y, double result[2])
{
  GPUCSRDevice dev;
  double      *a[2];

  PetscFunctionBegin;
  PetscCall(Get(x, VEC_GPU_READ, 1, &y, VEC_GPU_READ, &dev, a));
  PetscCall((*VecGPUKernelsOf(dev)->reduce)(dev, op, (size_t)x->map->n, a[0], a[1], result));
  PetscCall(Restore(x, VEC_GPU_READ, 1, &y, VEC_GPU_READ, dev, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecDotLocal_GPU(Vec x, Vec y, PetscScalar *z)
{
  double r[2];

  PetscFunctionBegin;
  PetscCall(Reduce(VECGPU_REDUCE_dot, x, y, r));
  *z = r[0];
  PetscCall(PetscLogFlops(PetscMax(2.0 * (PetscLogDouble)x->map->n - 1, 0)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecMDotLocal_GPU(Vec x, PetscInt nv, const Vec y[], PetscScalar z[])
{
  GPUCSRDevice dev;
  double     **a;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(nv + 1, &a));
  PetscCall(Get(x, VEC_GPU_READ, nv, y, VEC_GPU_READ, &dev, a));
  PetscCall((*VecGPUKernelsOf(dev)->mdot)(dev, (size_t)x->map->n, (int)nv, a[0], (const double *const *)a + 1, z));
  PetscCall(Restore(x, VEC_GPU_READ, nv, y, VEC_GPU_READ, dev, a));
  PetscCall(PetscFree(a));
  PetscCall(PetscLogFlops(PetscMax((PetscLogDouble)nv * (2.0 * (PetscLogDouble)x->map->n - 1), 0)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parts of a norm: the sum of squares for the 2-norm */
static PetscErrorCode NormParts(Vec x, NormType type, double r[2])
{
  const VecGPUReduction op = type == NORM_1 ? VECGPU_REDUCE_norm1 : type == NORM_INFINITY ? VECGPU_REDUCE_largest : type == NORM_1_AND_2 ? VECGPU_REDUCE_norm1square : VECGPU_REDUCE_square;

  PetscFunctionBegin;
  PetscCall(Reduce(op, x, NULL, r));
  PetscCall(LogFlops(x, type == NORM_INFINITY ? 0 : type == NORM_1 ? 1 : type == NORM_1_AND_2 ? 3 : 2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void NormFromParts(NormType type, const double r[2], PetscReal z[])
{
  z[0] = type == NORM_2 || type == NORM_FROBENIUS ? PetscSqrtReal(r[0]) : r[0];
  if (type == NORM_1_AND_2) z[1] = PetscSqrtReal(r[1]);
}

static PetscErrorCode VecNormLocal_GPU(Vec x, NormType type, PetscReal *z)
{
  double r[2];

  PetscFunctionBegin;
  PetscCall(NormParts(x, type, r));
  NormFromParts(type, r, z);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* VecSum() adds up over ranks itself */
static PetscErrorCode VecSum_GPU(Vec x, PetscScalar *z)
{
  double r[2];

  PetscFunctionBegin;
  PetscCall(Reduce(VECGPU_REDUCE_sum, x, NULL, r));
  *z = r[0];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Numbers of all ranks */

static PetscErrorCode VecDot_GPU(Vec x, Vec y, PetscScalar *z)
{
  return VecGPUAllreduce_Private(x, VecDotLocal_GPU(x, y, z), VEC_GPU_ADD, 1, z);
}

static PetscErrorCode VecMDot_GPU(Vec x, PetscInt nv, const Vec y[], PetscScalar z[])
{
  return VecGPUAllreduce_Private(x, VecMDotLocal_GPU(x, nv, y, z), VEC_GPU_ADD, nv, z);
}

/* The product of s with t and the square of t's norm: PETSc's VecDotNorm2() expects the values of all ranks */
static PetscErrorCode VecDotNorm2_GPU(Vec s, Vec t, PetscScalar *dot, PetscScalar *square)
{
  double r[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(VecGPUAllreduce_Private(s, Reduce(VECGPU_REDUCE_dotnorm2, s, t, r), VEC_GPU_ADD, 2, r));
  *dot    = r[0];
  *square = r[1];
  PetscCall(LogFlops(s, 4));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecNorm_GPU(Vec x, NormType type, PetscReal *z)
{
  double r[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(VecGPUAllreduce_Private(x, NormParts(x, type, r), type == NORM_INFINITY ? VEC_GPU_TOP : VEC_GPU_ADD, type == NORM_1_AND_2 ? 2 : 1, r));
  NormFromParts(type, r, z);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecMaxPointwiseDivide_GPU(Vec x, Vec y, PetscReal *z)
{
  double r[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(VecGPUAllreduce_Private(x, Reduce(VECGPU_REDUCE_largestquotient, x, y, r), VEC_GPU_TOP, 1, r));
  *z = r[0];
  PetscCall(LogFlops(x, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The largest (sign 1) or smallest entry and its first place; without entries the values that PETSc returns */
static PetscErrorCode Extreme(Vec x, int sign, PetscInt *at, PetscReal *z)
{
  struct {
    PetscReal v;
    PetscInt  i;
  } best = {sign > 0 ? PETSC_MIN_REAL : PETSC_MAX_REAL, -1};

  PetscFunctionBegin;
  if (x->map->n) {
    GPUCSRDevice dev;
    double      *a;
    size_t       place;

    PetscCall(Get(x, VEC_GPU_READ, 0, NULL, VEC_GPU_READ, &dev, &a));
    PetscCall((*VecGPUKernelsOf(dev)->extreme)(dev, sign, (size_t)x->map->n, a, &best.v, &place));
    PetscCall(Restore(x, VEC_GPU_READ, 0, NULL, VEC_GPU_READ, dev, &a));
    best.i = (PetscInt)place;
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
  return Extreme(x, 1, at, z);
}

static PetscErrorCode VecMin_GPU(Vec x, PetscInt *at, PetscReal *z)
{
  return Extreme(x, -1, at, z);
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
  o->norm               = VecNorm_GPU;
  o->norm_local         = VecNormLocal_GPU;
  o->dotnorm2           = VecDotNorm2_GPU;
  o->sum                = VecSum_GPU;
  o->max                = VecMax_GPU;
  o->min                = VecMin_GPU;
  o->maxpointwisedivide = VecMaxPointwiseDivide_GPU;
  o->dot = o->tdot = VecDot_GPU;
  o->mdot = o->mtdot = VecMDot_GPU;
  o->dot_local = o->tdot_local = VecDotLocal_GPU;
  o->mdot_local = o->mtdot_local = VecMDotLocal_GPU;
  #if GPUCSR_VEC_HAS_MAXPBY
  o->maxpby = VecMAXPBY_GPU;
  #endif
}
#endif

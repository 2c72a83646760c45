/*
  Vectors of products: the place of their arrays, the stream of their work, and page-locking of host arrays.

  Arrays on the device (of VECGPU, VECCUDA and VECKOKKOS) are used in place. Page-locked host arrays are copied several times as fast, but page-locking takes
  as long as some products: the second product with a vector page-locks its array. Memory must be unlocked before it is freed, so only arrays allocated by
  the vector are page-locked.
*/
#include "../type/gpucsrimpl.h"

static PetscErrorCode SetUpVec(Mat A, PetscLayout map, PetscInt bs, Vec *v)
{
  PetscBool device = ((Mat_GPUCSR *)A->spptr)->devicevectors;

  PetscFunctionBegin;
  PetscCheck(map->n >= 0, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONGSTATE, "The layout of the matrix is not set up yet");
  PetscCall(VecCreate(PetscObjectComm((PetscObject)A), v));
  PetscCall(PetscLayoutReference(map, &(*v)->map)); /* first, so that its type needs no messages */
  PetscCall(VecSetBlockSize(*v, bs));
  device = (PetscBool)(device && (!strcmp(A->defaultvectype, VECGPU) || !strcmp(A->defaultvectype, VECSTANDARD))); /* MatSetVecType() may ask for another */
  if (device) PetscCall(VecGPUSetTypeUnasked(*v));
  else PetscCall(VecSetType(*v, A->defaultvectype));
#if PetscDefined(HAVE_DEVICE)
  if (A->boundtocpu && A->bindingpropagates) {
    PetscCall(VecSetBindingPropagates(*v, PETSC_TRUE));
    PetscCall(VecBindToCPU(*v, PETSC_TRUE));
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Leaves no vector after an error: PETSc would reuse it */
static PetscErrorCode CreateVec(Mat A, PetscLayout map, PetscInt bs, Vec *v)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!v) PetscFunctionReturn(PETSC_SUCCESS);
  *v   = NULL;
  ierr = SetUpVec(A, map, bs, v);
  if (ierr) PetscCall(VecDestroy(v));
  PetscFunctionReturn(ierr);
}

PetscErrorCode MatCreateVecs_GPUCSR(Mat A, Vec *right, Vec *left)
{
  PetscInt       rbs, cbs;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGetBlockSizes(A, &rbs, &cbs));
  PetscCall(CreateVec(A, A->cmap, cbs, right));
  ierr = CreateVec(A, A->rmap, rbs, left);
  if (ierr && right) PetscCall(VecDestroy(right));
  PetscFunctionReturn(ierr);
}

/* Before 3.20 PETSc does not tell the stream of its vectors: their products take the host's arrays */
#define GPUCSR_DEVICE_VECTORS (!PetscDefined(HAVE_CUDA) || GPUCSR_STREAM_IS_TOLD)

/* The stream of a product: PETSc's current stream if an operand is a device vector of PETSc's, else this library's. y may be NULL */
PetscErrorCode MatGPUCSRStream_Private(GPUCSRDevice dev, GPUCSROperand *x, GPUCSROperand *y, GPUCSROperand *z, GPUCSRStream *s)
{
  PetscFunctionBegin;
  *s = dev->stream;
#if PetscDefined(HAVE_CUDA) && GPUCSR_STREAM_IS_TOLD
  {
    GPUCSROperand *all[]   = {x, y, z};
    PetscBool      foreign = PETSC_FALSE, isvecgpu = PETSC_FALSE;

    for (int k = 0; k < 3; k++) {
      if (!all[k] || all[k]->place != GPUCSR_DEVICE) continue;
      if (all[k]->vecgpu) isvecgpu = PETSC_TRUE;
      else foreign = PETSC_TRUE;
    }
    if (foreign) PetscCall(VecGPUPetscStream(s));
    if (foreign && isvecgpu) {
      PetscCall(GPUCSRDeviceSynchronize(dev));
      for (int k = 0; k < 3; k++)
        if (all[k]) all[k]->mixed = PETSC_TRUE;
    }
  }
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A host vector that has been in a product: the second product page-locks its array */
typedef struct {
  GPUCSRLiving  living;
  PetscObjectId id;
  const void   *array;
  GPUCSRBool    pinned, refused;
  GPUCSRDevice  dev;
} Pin;

/* The parent's functions of VECSEQ and VECMPI; duplicates of a page-locked vector have this file's functions, too */
static struct {
  PetscErrorCode (*destroy)(Vec);
  PetscErrorCode (*replacearray)(Vec, const PetscScalar *);
} standard[2];

static PetscErrorCode PinRelease(void *object)
{
  Pin *p = (Pin *)object;

  PetscFunctionBegin;
  if (p->pinned && !p->dev->failed[0]) PetscCall(p->dev->ops->hostunregister(p->dev->id, (void *)p->array));
  PetscCall(GPUCSRLivingRemove(&p->living));
  PetscCall(PetscFree(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRLivingList pins = {GPUCSR_FINAL_VEC, PinRelease, NULL};

static Pin *PinOf(Vec v)
{
  for (GPUCSRLiving *l = pins.first; l; l = l->next)
    if (((Pin *)l->object)->id == ((PetscObject)v)->id) return (Pin *)l->object;
  return NULL;
}

static PetscErrorCode Unpin(Vec v)
{
  Pin *p = PinOf(v);

  PetscFunctionBegin;
  if (p) PetscCall(PinRelease(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The place in standard of v's type, or of v's type at page-locking */
static int Standard(Vec v)
{
  return GPUCSRIsType(v, VECMPI) ? 1 : 0;
}

static PetscErrorCode VecDestroy_Pinned(Vec v)
{
  PetscFunctionBegin;
  PetscCall(Unpin(v));
  PetscCall((*standard[Standard(v)].destroy)(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecReplaceArray_Pinned(Vec v, const PetscScalar *a)
{
  PetscFunctionBegin;
  PetscCall(Unpin(v));
  PetscCall((*standard[Standard(v)].replacearray)(v, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is this array of v page-locked? The second call for the same array page-locks it */
static PetscErrorCode PinVector(GPUCSRDevice dev, Vec v, const void *array, PetscBool *pinned)
{
  typedef struct {
    VECHEADER
  } Header;
  const size_t bytes = sizeof(PetscScalar) * (size_t)v->map->n;
  const int    t     = Standard(v);
  Pin         *p;

  PetscFunctionBegin;
  *pinned = PETSC_FALSE;
  if ((double)bytes < GPUCSRMachineShared.pinned_least || !v->petscnative || ((Header *)v->data)->array_allocated != array) PetscFunctionReturn(PETSC_SUCCESS);
  p = PinOf(v);
  if (p && p->array == array) {
    if (!p->pinned && !p->refused) {
      PetscCall(dev->ops->hostregister(dev->id, (void *)array, bytes, &p->pinned));
      p->refused = (PetscBool)!p->pinned;
    }
    *pinned = (PetscBool)(p->pinned && p->dev == dev);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!t && !GPUCSRIsType(v, VECSEQ)) PetscFunctionReturn(PETSC_SUCCESS);
  if (p) PetscCall(PinRelease(p));
  PetscCall(PetscNew(&p));
  p->id    = ((PetscObject)v)->id;
  p->array = array;
  p->dev   = dev;
  PetscCall(GPUCSRLivingAdd(&pins, &p->living, p));
  if (v->ops->destroy != VecDestroy_Pinned) {
    standard[t].destroy      = v->ops->destroy;
    standard[t].replacearray = v->ops->replacearray;
    v->ops->destroy          = VecDestroy_Pinned;
    v->ops->replacearray     = VecReplaceArray_Pinned;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The array of v on dev if it has one, else on the host; dev NULL: on the host */
PetscErrorCode MatGPUCSRVecGet_Private(GPUCSRDevice dev, Vec v, PetscBool read, PetscBool write, GPUCSROperand *o)
{
  const PetscBool memtype  = (PetscBool)(dev && dev->ops->separate && GPUCSR_DEVICE_VECTORS);
  PetscMemType    mtype    = PETSC_MEMTYPE_HOST;
  PetscScalar    *a        = NULL;
  GPUCSRDevice    at       = NULL;
  PetscBool       isvecgpu = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(o, sizeof(*o)));
  if (dev) PetscCall(VecGPUCheck(v, &isvecgpu));
  if (isvecgpu) PetscCall(VecGPUGetDevice(v, &at));
  if (at && at == dev) {
    if (!write) PetscCall(VecGPUGetArrayRead(v, (const double **)&o->p));
    else if (read) PetscCall(VecGPUGetArray(v, (double **)&o->p));
    else PetscCall(VecGPUGetArrayWrite(v, (double **)&o->p));
    o->place  = dev->ops->separate ? GPUCSR_DEVICE : GPUCSR_HOST;
    o->vecgpu = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!write) PetscCall(memtype ? VecGetArrayReadAndMemType(v, (const PetscScalar **)&a, &mtype) : VecGetArrayRead(v, (const PetscScalar **)&a));
  else if (read) PetscCall(memtype ? VecGetArrayAndMemType(v, &a, &mtype) : VecGetArray(v, &a));
  else PetscCall(memtype ? VecGetArrayWriteAndMemType(v, &a, &mtype) : VecGetArrayWrite(v, &a));
  o->p     = a;
  o->place = PetscMemTypeHost(mtype) ? GPUCSR_HOST : GPUCSR_DEVICE;
  if (dev && dev->ops->separate && o->place == GPUCSR_HOST && GPUCSRSettingsGlobal.pinvectors) PetscCall(PinVector(dev, v, a, &o->pinned));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRVecRestore_Private(GPUCSRDevice dev, Vec v, PetscBool read, PetscBool write, GPUCSROperand *o)
{
  const PetscBool memtype = (PetscBool)(o->place == GPUCSR_DEVICE);
  PetscScalar    *a       = (PetscScalar *)o->p;

  PetscFunctionBegin;
  if (o->mixed && dev) PetscCall(GPUCSRDeviceSynchronize(dev));
  if (o->vecgpu) {
    if (!write) PetscCall(VecGPURestoreArrayRead(v, (const double **)&o->p));
    else PetscCall(VecGPURestoreArray(v, (double **)&o->p));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!write) PetscCall(memtype ? VecRestoreArrayReadAndMemType(v, (const PetscScalar **)&a) : VecRestoreArrayRead(v, (const PetscScalar **)&a));
  else if (read) PetscCall(memtype ? VecRestoreArrayAndMemType(v, &a) : VecRestoreArray(v, &a));
  else PetscCall(memtype ? VecRestoreArrayWriteAndMemType(v, &a) : VecRestoreArrayWrite(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The array of v on dev, for work in the order of its stream; without entries it is an address. v may be NULL */
PetscErrorCode MatGPUCSRArrayGet_Private(GPUCSRDevice dev, Vec v, PetscBool read, PetscBool write, GPUCSRVecArray *a)
{
  size_t n;

  PetscFunctionBegin;
  *a = (GPUCSRVecArray){.read = read, .write = write};
  if (!v) PetscFunctionReturn(PETSC_SUCCESS);
  n = (size_t)v->map->n;
  PetscCall(MatGPUCSRVecGet_Private(dev, v, read, write, &a->o));
  a->v = v;
  a->p = (double *)a->o.p;
  if (a->o.place == GPUCSR_DEVICE && !a->o.vecgpu) PetscCall(GPUCSRDeviceSynchronize(dev)); /* PETSc's stream */
  if (n && (a->o.place == GPUCSR_DEVICE || !dev->ops->separate)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRBufferGrow(dev, sizeof(double) * n, "a copy of a vector", &a->copy));
  a->p = (double *)a->copy.p;
  if (!read) PetscFunctionReturn(PETSC_SUCCESS);
  if (n) PetscCall(GPUCSRUpload(dev, a->p, GPUCSR_DOUBLE, a->o.p, GPUCSR_DOUBLE, n, a->o.pinned, dev->stream, NULL));
  VecGPUCrossed(PETSC_TRUE, n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All of it or nothing, unless a part will do */
static PetscErrorCode BringBack(GPUCSRDevice dev, const GPUCSRVecArray *a)
{
  const size_t   n   = (size_t)a->v->map->n;
  double        *all = (double *)a->o.p;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!a->partly) PetscCall(PetscMalloc1(n, &all));
  ierr = GPUCSRDownload(dev, all, GPUCSR_DOUBLE, a->p, GPUCSR_DOUBLE, n, (PetscBool)(a->partly && a->o.pinned), dev->stream);
  if (!ierr && !a->partly) PetscCall(PetscArraycpy((double *)a->o.p, all, n));
  if (!a->partly) PetscCall(PetscFree(all));
  VecGPUCrossed(PETSC_FALSE, n);
  PetscFunctionReturn(ierr);
}

/* ierr: of the work until now; after an error a copied array keeps its entries. The host waits for a copy, which may still be read from page-locked memory */
PetscErrorCode MatGPUCSRArrayRestore_Private(GPUCSRDevice dev, GPUCSRVecArray *a, PetscErrorCode ierr)
{
  PetscFunctionBegin;
  if (!a->v) PetscFunctionReturn(ierr);
  if (!ierr && a->copy.p && a->write && a->v->map->n) ierr = BringBack(dev, a);
  if (!ierr && (a->copy.p || (a->o.place == GPUCSR_DEVICE && !a->o.vecgpu))) ierr = (*dev->ops->streamsynchronize)(dev->id, dev->stream);
  PetscCall(GPUCSRBufferFree(dev, &a->copy));
  PetscCall(MatGPUCSRVecRestore_Private(dev, a->v, a->read, a->write, &a->o));
  PetscFunctionReturn(ierr);
}

/* An error leaves the arrays taken so far, for MatGPUCSRVectorsRestore_Private() */
PetscErrorCode MatGPUCSRVectorsGet_Private(GPUCSRDevice dev, GPUCSRVectors *v)
{
  const PetscBool separate = (PetscBool)(v->y && v->y != v->z), inz = (PetscBool)(v->y == v->z);

  PetscFunctionBegin;
  PetscCall(MatGPUCSRVecGet_Private(dev, v->x, PETSC_TRUE, PETSC_FALSE, &v->ox));
  v->hasx = PETSC_TRUE;
  if (separate) PetscCall(MatGPUCSRVecGet_Private(dev, v->y, PETSC_TRUE, PETSC_FALSE, &v->oy));
  v->hasy = separate;
  PetscCall(MatGPUCSRVecGet_Private(dev, v->z, inz, PETSC_TRUE, &v->oz));
  v->hasz = PETSC_TRUE;
  if (inz) v->oy = v->oz;
  PetscCall(MatGPUCSRStream_Private(dev, &v->ox, separate ? &v->oy : NULL, &v->oz, &v->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Count(GPUCSRDevice dev, PetscBool up, Vec v, const GPUCSROperand *o)
{
  if (dev && dev->ops->separate && o->place == GPUCSR_HOST) VecGPUCrossed(up, (size_t)v->map->n);
}

PetscErrorCode MatGPUCSRVectorsRestore_Private(GPUCSRDevice dev, GPUCSRVectors *v)
{
  PetscFunctionBegin;
  if (v->hasx) Count(dev, PETSC_TRUE, v->x, &v->ox);
  if (v->hasz && v->y) Count(dev, PETSC_TRUE, v->y, &v->oy);
  if (v->hasz) Count(dev, PETSC_FALSE, v->z, &v->oz);
  if (v->hasx) PetscCall(MatGPUCSRVecRestore_Private(dev, v->x, PETSC_TRUE, PETSC_FALSE, &v->ox));
  if (v->hasy) PetscCall(MatGPUCSRVecRestore_Private(dev, v->y, PETSC_TRUE, PETSC_FALSE, &v->oy));
  if (v->hasz) PetscCall(MatGPUCSRVecRestore_Private(dev, v->z, (PetscBool)(v->y == v->z), PETSC_TRUE, &v->oz));
  v->hasx = v->hasy = v->hasz = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

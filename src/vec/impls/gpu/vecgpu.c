/*
  VECGPU: vectors that live on the device in any PETSc. VECSEQ or VECMPI without an array is what a vector is made from; its
  arrays, one of the host and one of the device, are ours. Each is allocated when first needed, and a flag for each says
  whether it holds the entries. PETSc asks for the host's by VecGetArray() and its siblings, which come to us; operations
  (ops.c), products and our solvers ask for the device's. So PETSc, its scatters, viewers, and a program's own loops see an
  ordinary vector, and what was last written where decides what crosses the bus, and when.
*/
#include "vecgpuimpl.h"

struct _VecOps VecGPUParents[2];

/* Shorter vectors travel by the staging buffers as fast */
#define PIN_BYTES ((size_t)1 << 19)

static PetscLogEvent VEC_GPU_Up, VEC_GPU_Down;
static Vec_GPU      *living;
static VecGPUInfo    gone; /* sums over vectors destroyed */
static PetscInt      made;
static PetscBool     warned, separate; /* separate: -vec_gpu_separate */

static size_t Bytes(Vec v)
{
  return sizeof(PetscScalar) * (size_t)v->map->n;
}

/* The device that options give to vectors; NULL where PETSc computes with other numbers than doubles */
static PetscErrorCode Device(GPUCSRDevice *dev, PetscBool *required)
{
  MatGPUCSRBackend b        = MAT_GPUCSR_BACKEND_AUTO;
  char             why[512] = "";

  PetscFunctionBegin;
  *dev = NULL;
  PetscCall(PetscOptionsGetEnum(NULL, NULL, "-mat_gpucsr_backend", MatGPUCSRBackends, (PetscEnum *)&b, NULL));
  *required = (PetscBool)(b == MAT_GPUCSR_BACKEND_CUDA);
  if (!GPUCSR_SCALAR_IS_DOUBLE) PetscFunctionReturn(PETSC_SUCCESS);
  if (b != MAT_GPUCSR_BACKEND_HOST) PetscCall(GPUCSRDeviceOpen("cuda", dev, why, sizeof(why)));
  PetscCheck(*dev || !*required, PETSC_COMM_SELF, PETSC_ERR_GPU, "-mat_gpucsr_backend cuda cannot be had: %s; with auto vectors would be on the host", why);
  if (!*dev) PetscCall(GPUCSRDeviceOpen("host", dev, why, sizeof(why)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Arrays */

static void SetHost(Vec v, PetscScalar *a, VecGPUOwner owner)
{
  VecGPUArrays *now = &VecGPUOf(v)->now;

  now->host      = a;
  now->hostowner = owner;
  now->locked = now->refused = PETSC_FALSE;
  if (VecGPUOf(v)->shared) {
    now->device      = (double *)a;
    now->deviceowner = a ? VEC_GPU_BORROWED : VEC_GPU_NONE;
  }
  ((VecGPUHeader *)v->data)->array = a;
}

static PetscErrorCode HostAllocate(Vec v)
{
  PetscScalar *a;

  PetscFunctionBegin;
  if (VecGPUOf(v)->now.host || !v->map->n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(v->map->n, &a));
  SetHost(v, a, VEC_GPU_OWN);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Is the host's array page-locked? Doing so costs several copies by staging buffers: it is done when the entries cross the
  bus for the second time, to an array that is ours, since we must know when it goes. Not in a PETSc with CUDA, which
  copies from its vectors into ours without waiting when it can.
*/
static PetscErrorCode Pin(Vec v, PetscBool *pinned)
{
  Vec_GPU      *g   = VecGPUOf(v);
  VecGPUArrays *now = &g->now;

  PetscFunctionBegin;
  if (!now->locked && !now->refused && now->hostowner == VEC_GPU_OWN && Bytes(v) >= PIN_BYTES && g->dev->ops->separate && GPUCSRSettingsGlobal.pinvectors && !PetscDefined(HAVE_CUDA) && g->info.uploads + g->info.downloads > 0) {
    PetscCall(g->dev->ops->hostregister(g->dev->id, now->host, Bytes(v), &now->locked));
    now->refused = (PetscBool)!now->locked;
  }
  *pinned = now->locked;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Unpin(Vec v, VecGPUArrays *a)
{
  const GPUCSRDevice dev = VecGPUOf(v)->dev;

  PetscFunctionBegin;
  if (a->locked && !dev->failed[0]) PetscCall(dev->ops->hostunregister(dev->id, a->host));
  a->locked = a->refused = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DeviceAllocate(Vec v)
{
  Vec_GPU *g = VecGPUOf(v);

  PetscFunctionBegin;
  if (g->now.device || !v->map->n) PetscFunctionReturn(PETSC_SUCCESS);
  if (g->shared) PetscCall(HostAllocate(v));
  else {
    PetscCall(GPUCSRMalloc(g->dev, Bytes(v), "a vector", (void **)&g->now.device));
    g->now.deviceowner = VEC_GPU_OWN;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is ours of them goes */
static PetscErrorCode Free(Vec v, VecGPUArrays *a)
{
  Vec_GPU *g = VecGPUOf(v);

  PetscFunctionBegin;
  PetscCall(Unpin(v, a));
  if (a->hostowner == VEC_GPU_OWN) PetscCall(PetscFree(a->host));
  if (a->deviceowner == VEC_GPU_OWN) PetscCall(GPUCSRFree(g->dev, Bytes(v), (void **)&a->device));
  PetscCall(PetscMemzero(a, sizeof(*a)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host's array holds the entries */
static PetscErrorCode HostRead(Vec v)
{
  Vec_GPU     *g   = VecGPUOf(v);
  GPUCSRDevice dev = g->dev;

  PetscFunctionBegin;
  if (g->now.valid & VEC_GPU_HOST) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HostAllocate(v));
  if (g->now.valid == VEC_GPU_FILLED || !v->map->n) {
    for (PetscInt k = 0; k < v->map->n; k++) g->now.host[k] = g->now.fill;
  } else {
    PetscBool pinned;

    PetscCall(PetscLogEventBegin(VEC_GPU_Down, v, 0, 0, 0));
    PetscCall(dev->ops->activate(dev->id));
    PetscCall(Pin(v, &pinned));
    PetscCall(GPUCSRDownload(dev, g->now.host, GPUCSR_DOUBLE, g->now.device, GPUCSR_DOUBLE, (size_t)v->map->n, pinned, dev->stream));
    if (pinned) PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream));
    g->info.downloads++;
    g->info.downloaded += (double)Bytes(v);
    PetscCall(PetscLogEventEnd(VEC_GPU_Down, v, 0, 0, 0));
  }
  g->now.valid = (VecGPUValid)(g->now.valid | (g->shared ? VEC_GPU_BOTH : VEC_GPU_HOST));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host's array is about to hold them, and is the only one then. PETSc 3.18 is known to set all entries, ask for the array to write, and read (MatGetRowMaxAbs()) */
static PetscErrorCode HostWrite(Vec v)
{
  Vec_GPU *g = VecGPUOf(v);

  PetscFunctionBegin;
  if (g->now.valid == VEC_GPU_FILLED) PetscCall(HostRead(v));
  PetscCall(HostAllocate(v));
  g->now.valid = g->shared ? VEC_GPU_BOTH : VEC_GPU_HOST;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device's array holds the entries. Waits for them to arrive: the program may write its array again as soon as we return */
PetscErrorCode VecGPUDeviceRead_Private(Vec v)
{
  Vec_GPU     *g   = VecGPUOf(v);
  GPUCSRDevice dev = g->dev;

  PetscFunctionBegin;
  if (g->now.valid & VEC_GPU_DEVICE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(DeviceAllocate(v));
  if (g->now.valid == VEC_GPU_FILLED || !v->map->n) {
    const double abc[3] = {(double)PetscRealPart(g->now.fill), 0, 0};

    PetscCall((*VecGPUKernelsOf(dev)->map)(dev, VECGPU_MAP_set, (size_t)v->map->n, abc, NULL, NULL, g->now.device));
  } else {
    PetscBool pinned;

    PetscCall(PetscLogEventBegin(VEC_GPU_Up, v, 0, 0, 0));
    PetscCall(dev->ops->activate(dev->id));
    PetscCall(Pin(v, &pinned));
    PetscCall(GPUCSRUpload(dev, g->now.device, GPUCSR_DOUBLE, g->now.host, GPUCSR_DOUBLE, (size_t)v->map->n, pinned, dev->stream, NULL));
    if (pinned) PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream));
    g->info.uploads++;
    g->info.uploaded += (double)Bytes(v);
    PetscCall(PetscLogEventEnd(VEC_GPU_Up, v, 0, 0, 0));
  }
  g->now.valid = (VecGPUValid)(g->now.valid | (g->shared ? VEC_GPU_BOTH : VEC_GPU_DEVICE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPUDeviceWrite_Private(Vec v)
{
  Vec_GPU *g = VecGPUOf(v);

  PetscFunctionBegin;
  PetscCall(DeviceAllocate(v));
  g->now.valid = g->shared ? VEC_GPU_BOTH : VEC_GPU_DEVICE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every entry is to be a: it is written where it is first asked for, which for a right-hand side that the program then adds up is the host */
PetscErrorCode VecGPUFill_Private(Vec v, PetscScalar a)
{
  PetscFunctionBegin;
  VecGPUOf(v)->now.valid = VEC_GPU_FILLED;
  VecGPUOf(v)->now.fill  = a;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where v can be worked on, with memory there; NULL: on the host. A device without memory left for it is met once, and said once */
PetscErrorCode VecGPUReady_Private(Vec v, GPUCSRDevice *dev)
{
  Vec_GPU       *g = VecGPUOf(v);
  GPUCSRDevice   d;
  PetscBool      required;
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *dev = g->bound ? NULL : g->dev;
  if (!*dev || g->now.device || !v->map->n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Device(&d, &required));
  if (required || g->shared) {
    PetscCall(DeviceAllocate(v));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = DeviceAllocate(v);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  if (ierr == PETSC_ERR_MEM) {
    if (!warned) PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "VECGPU warning: a vector of %" PetscInt_FMT " entries, and others after it, stays on the host: %s\n", v->map->n, attempt.message));
    warned   = PETSC_TRUE;
    g->bound = PETSC_TRUE;
    *dev     = NULL;
  } else PetscCheck(!ierr, PETSC_COMM_SELF, ierr, "%s", attempt.message);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- The host's array, for PETSc and programs */

PetscErrorCode VecGetArray_GPU(Vec v, PetscScalar **a)
{
  PetscFunctionBegin;
  PetscCall(HostRead(v));
  PetscCall(HostWrite(v));
  *a = VecGPUOf(v)->now.host;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Said again when the array is given back: the device may have read what was there in between */
static PetscErrorCode VecRestoreArray_GPU(Vec v, PetscScalar **a)
{
  PetscFunctionBegin;
  (void)a;
  PetscCall(HostWrite(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecGetArrayRead_GPU(Vec v, const PetscScalar **a)
{
  PetscFunctionBegin;
  PetscCall(HostRead(v));
  *a = VecGPUOf(v)->now.host;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecRestoreArrayRead_GPU(Vec v, const PetscScalar **a)
{
  PetscFunctionBegin;
  (void)v;
  (void)a;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecGetArrayWrite_GPU(Vec v, PetscScalar **a)
{
  PetscFunctionBegin;
  PetscCall(HostWrite(v));
  *a = VecGPUOf(v)->now.host;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Put other arrays in place of v's own, which keep their entries on the host where there is but one array of the device */
static PetscErrorCode Exchange(Vec v)
{
  Vec_GPU *g = VecGPUOf(v);

  PetscFunctionBegin;
  PetscCheck(!g->placed, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Another array is in place of this vector's already: call VecResetArray() or VecRestoreLocalVector() first");
  g->before = g->now;
  g->placed = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void ComeBack(Vec v)
{
  Vec_GPU *g = VecGPUOf(v);

  g->now                           = g->before;
  g->before                        = (VecGPUArrays){.host = NULL};
  g->placed                        = PETSC_FALSE;
  ((VecGPUHeader *)v->data)->array = g->now.host;
}

/* Part of another vector has no array of its own to exchange */
static PetscErrorCode NotAPart(Vec v)
{
  const Vec_GPU *g = VecGPUOf(v);

  PetscFunctionBegin;
  PetscCheck(g->placed || (g->now.hostowner != VEC_GPU_BORROWED && (g->shared || g->now.deviceowner != VEC_GPU_BORROWED)), PETSC_COMM_SELF, PETSC_ERR_SUP, "The array of a subvector is that of the whole: give another one to a duplicate");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device's array serves the placed entries, so those of before must be on the host */
static PetscErrorCode VecPlaceArray_GPU(Vec v, const PetscScalar *a)
{
  Vec_GPU *g = VecGPUOf(v);

  PetscFunctionBegin;
  PetscCall(NotAPart(v));
  if (g->now.valid == VEC_GPU_DEVICE) PetscCall(HostRead(v));
  PetscCall(Exchange(v));
  if (!g->shared && g->now.valid != VEC_GPU_FILLED) g->before.valid = VEC_GPU_HOST;
  SetHost(v, (PetscScalar *)a, VEC_GPU_BORROWED);
  g->now.valid = g->shared ? VEC_GPU_BOTH : VEC_GPU_HOST;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The array that was placed gets what the device has computed */
static PetscErrorCode VecResetArray_GPU(Vec v)
{
  Vec_GPU *g = VecGPUOf(v);

  PetscFunctionBegin;
  if (!g->placed) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HostRead(v));
  if (!g->shared) {
    g->before.device      = g->now.device;
    g->before.deviceowner = g->now.deviceowner;
  }
  ComeBack(v);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecReplaceArray_GPU(Vec v, const PetscScalar *a)
{
  Vec_GPU     *g    = VecGPUOf(v);
  VecGPUArrays host = g->now;

  PetscFunctionBegin;
  PetscCall(NotAPart(v));
  PetscCheck(!g->placed, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "An array is in place of this vector's: call VecResetArray() first");
  host.device      = NULL;
  host.deviceowner = VEC_GPU_NONE;
  PetscCall(Free(v, &host));
  SetHost(v, (PetscScalar *)a, a ? VEC_GPU_OWN : VEC_GPU_NONE);
  g->now.valid = !a ? VEC_GPU_FILLED : g->shared ? VEC_GPU_BOTH : VEC_GPU_HOST;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- The device's array, for our own */

PetscErrorCode VecGPUGetDevice(Vec v, GPUCSRDevice *dev)
{
  PetscFunctionBegin;
  *dev = NULL;
  if (VecGPUIs(v)) PetscCall(VecGPUReady_Private(v, dev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPUGetArrayRead(Vec v, const double **a)
{
  PetscFunctionBegin;
  PetscCall(VecGPUDeviceRead_Private(v));
  *a = VecGPUOf(v)->now.device;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPURestoreArrayRead(Vec v, const double **a)
{
  PetscFunctionBegin;
  (void)v;
  *a = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPUGetArray(Vec v, double **a)
{
  PetscFunctionBegin;
  PetscCall(VecSetErrorIfLocked(v, 1));
  PetscCall(VecGPUDeviceRead_Private(v));
  PetscCall(VecGPUDeviceWrite_Private(v));
  *a = VecGPUOf(v)->now.device;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPURestoreArray(Vec v, double **a)
{
  PetscFunctionBegin;
  *a = NULL;
  PetscCall(PetscObjectStateIncrease((PetscObject)v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPUGetArrayWrite(Vec v, double **a)
{
  PetscFunctionBegin;
  PetscCall(VecSetErrorIfLocked(v, 1));
  PetscCall(VecGPUDeviceWrite_Private(v));
  *a = VecGPUOf(v)->now.device;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPURestoreArrayWrite(Vec v, double **a)
{
  PetscFunctionBegin;
  PetscCall(VecGPURestoreArray(v, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Vectors from vectors */

static PetscErrorCode VecDuplicate_GPU(Vec v, Vec *w)
{
  PetscFunctionBegin;
  PetscCall(VecCreate(PetscObjectComm((PetscObject)v), w));
  PetscCall(PetscLayoutReference(v->map, &(*w)->map));
  PetscCall(VecSetType(*w, ((PetscObject)v)->type_name));
  /* a DM sets operations of its vectors, and composes what they need */
  *(*w)->ops               = *v->ops;
  (*w)->stash.donotstash   = v->stash.donotstash;
  (*w)->stash.ignorenegidx = v->stash.ignorenegidx;
  (*w)->stash.bs           = v->stash.bs;
  (*w)->bstash.bs          = v->bstash.bs;
  VecGPUOf(*w)->bound      = VecGPUOf(v)->bound;
#if PetscDefined(HAVE_DEVICE)
  (*w)->boundtocpu        = v->boundtocpu;
  (*w)->bindingpropagates = v->bindingpropagates;
#endif
  PetscCall(PetscObjectListDuplicate(((PetscObject)v)->olist, &((PetscObject)*w)->olist));
  PetscCall(PetscFunctionListDuplicate(((PetscObject)v)->qlist, &((PetscObject)*w)->qlist));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecDuplicateVecs_GPU(Vec v, PetscInt m, Vec *w[])
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc1(m, w));
  for (PetscInt k = 0; k < m; k++) PetscCall(VecDuplicate(v, *w + k));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecCreateLocalVector_GPU(Vec v, Vec *w)
{
  PetscInt bs;

  PetscFunctionBegin;
  PetscCall(VecGetBlockSize(v, &bs));
  PetscCall(VecCreate(PETSC_COMM_SELF, w));
  PetscCall(VecSetSizes(*w, v->map->n, v->map->n));
  PetscCall(VecSetBlockSize(*w, bs));
  PetscCall(VecSetType(*w, VECSEQGPU));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Can w stand for the local entries of v on the device? */
static PetscErrorCode CanLend(Vec v, Vec w, GPUCSRDevice *dev)
{
  GPUCSRDevice e;

  PetscFunctionBegin;
  PetscCall(VecGPUGetDevice(v, dev));
  PetscCall(VecGPUGetDevice(w, &e));
  if (e != *dev || (*dev && VecGPUOf(v)->shared != VecGPUOf(w)->shared)) *dev = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* w has v's array of the device, and its own of the host to copy to; where both are one, it is v's */
static PetscErrorCode VecGetLocalVectorRead_GPU(Vec v, Vec w)
{
  GPUCSRDevice dev;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(CanLend(v, w, &dev));
  if (dev) {
    PetscCall(VecGPUDeviceRead_Private(v));
    if (VecGPUOf(v)->shared) PetscCall(VecPlaceArray_GPU(w, VecGPUOf(v)->now.host));
    else {
      PetscCall(Exchange(w));
      VecGPUOf(w)->before.valid    = VEC_GPU_FILLED; /* PETSc promises nothing about what w was */
      VecGPUOf(w)->before.fill     = 0;
      VecGPUOf(w)->now.device      = VecGPUOf(v)->now.device;
      VecGPUOf(w)->now.deviceowner = VEC_GPU_BORROWED;
      VecGPUOf(w)->now.valid       = VEC_GPU_DEVICE;
    }
  } else {
    PetscCall(VecGetArrayRead(v, (const PetscScalar **)&a));
    PetscCall(VecPlaceArray(w, a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecRestoreLocalVectorRead_GPU(Vec v, Vec w)
{
  const PetscScalar *a = NULL;

  PetscFunctionBegin;
  if (VecGPUIs(w) && VecGPUOf(w)->now.deviceowner == VEC_GPU_BORROWED && !VecGPUOf(w)->shared) {
    Vec_GPU *g = VecGPUOf(w);

    /* its array of the host may have been made meanwhile */
    g->before.host      = g->now.host;
    g->before.hostowner = g->now.hostowner;
    g->before.locked    = g->now.locked;
    g->before.refused   = g->now.refused;
    ComeBack(w);
  } else {
    PetscCall(VecResetArray(w));
    PetscCall(VecRestoreArrayRead(v, &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecGetLocalVector_GPU(Vec v, Vec w)
{
  GPUCSRDevice dev;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(CanLend(v, w, &dev));
  if (dev) PetscCall(VecGetLocalVectorRead_GPU(v, w));
  else {
    PetscCall(VecGetArray(v, &a));
    PetscCall(VecPlaceArray(w, a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecRestoreLocalVector_GPU(Vec v, Vec w)
{
  PetscScalar *a = NULL;

  PetscFunctionBegin;
  if (VecGPUIs(w) && VecGPUOf(w)->now.deviceowner == VEC_GPU_BORROWED && !VecGPUOf(w)->shared) {
    PetscCall(VecGPUDeviceRead_Private(w)); /* what was written on the host goes back where v has it */
    PetscCall(VecRestoreLocalVectorRead_GPU(v, w));
    VecGPUOf(v)->now.valid = VEC_GPU_DEVICE;
    PetscCall(PetscObjectStateIncrease((PetscObject)v));
  } else {
    PetscCall(VecResetArray(w));
    PetscCall(VecRestoreArray(v, &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are the indices of every rank one piece of its part of v? And the block size of such a subvector: the index set's, or v's where it divides */
static PetscErrorCode Contiguous(Vec v, IS is, PetscBool *yes, PetscInt *start, PetscInt *bs)
{
  PetscInt    n, first, end, isbs, vbs;
  PetscMPIInt all[2];
  PetscBool   contig;

  PetscFunctionBegin;
  PetscCall(ISGetLocalSize(is, &n));
  PetscCall(ISGetBlockSize(is, &isbs));
  PetscCall(VecGetBlockSize(v, &vbs));
  PetscCall(VecGetOwnershipRange(v, &first, &end));
  PetscCall(ISContiguousLocal(is, first, end, start, &contig));
  all[0] = contig;
  all[1] = n % vbs == 0;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)v)));
  *yes = (PetscBool)all[0];
  *bs  = isbs > 1 ? isbs : all[1] ? vbs : 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One piece: a vector with that part of v's array on the device; else a copy, scattered on the host */
static PetscErrorCode VecGetSubVector_GPU(Vec v, IS is, Vec *sub)
{
  PetscInt     n, total, start = 0, bs, locked = 0;
  PetscBool    contiguous;
  GPUCSRDevice dev, own;
  Vec          w;

  PetscFunctionBegin;
  PetscCall(ISGetLocalSize(is, &n));
  PetscCall(ISGetSize(is, &total));
  PetscCall(Contiguous(v, is, &contiguous, &start, &bs));
  PetscCall(VecCreate(PetscObjectComm((PetscObject)v), &w));
  PetscCall(VecSetSizes(w, n, total));
  PetscCall(VecSetBlockSize(w, bs));
  PetscCall(VecSetType(w, VecGPUOf(v)->mpi ? VECMPIGPU : VECSEQGPU));
  if (contiguous) {
    Vec_GPU *g = VecGPUOf(w);

    PetscCall(VecGPUReady_Private(v, &dev));
    own = g->dev;
    if (dev && own == dev && g->shared == VecGPUOf(v)->shared) {
      PetscCall(VecGPUDeviceRead_Private(v));
      g->start = start;
      if (g->shared) SetHost(w, v->map->n ? VecGPUOf(v)->now.host + start : NULL, VEC_GPU_BORROWED);
      else {
        g->now.device      = v->map->n ? VecGPUOf(v)->now.device + start : NULL;
        g->now.deviceowner = VEC_GPU_BORROWED;
      }
      g->now.valid = g->shared ? VEC_GPU_BOTH : VEC_GPU_DEVICE;
    } else {
      PetscCall(HostRead(v));
      g->bound = PETSC_TRUE;
      SetHost(w, v->map->n ? VecGPUOf(v)->now.host + start : NULL, VEC_GPU_BORROWED);
      g->now.valid = VEC_GPU_HOST;
    }
    PetscCall(VecLockGet(v, &locked));
    if (locked) PetscCall(VecLockReadPush(w));
  } else {
    PetscCall(VecScatterCreate(v, is, w, NULL, &VecGPUOf(w)->scatter));
    PetscCall(VecScatterBegin(VecGPUOf(w)->scatter, v, w, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(VecGPUOf(w)->scatter, v, w, INSERT_VALUES, SCATTER_FORWARD));
  }
  PetscCall(PetscObjectStateIncrease((PetscObject)w)); /* PETSc may remember the norm of what it held when it was made */
  PetscCall(PetscObjectStateGet((PetscObject)w, &VecGPUOf(w)->got));
  *sub = w;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Changes go back; the caller destroys the subvector */
static PetscErrorCode VecRestoreSubVector_GPU(Vec v, IS is, Vec *sub)
{
  PetscObjectState state;
  Vec_GPU         *g = VecGPUOf(*sub);

  PetscFunctionBegin;
  (void)is;
  PetscCall(PetscObjectStateGet((PetscObject)*sub, &state));
  if (state == g->got) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecSetErrorIfLocked(v, 1));
  if (g->scatter) {
    PetscCall(VecScatterBegin(g->scatter, *sub, v, INSERT_VALUES, SCATTER_REVERSE));
    PetscCall(VecScatterEnd(g->scatter, *sub, v, INSERT_VALUES, SCATTER_REVERSE));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (g->now.hostowner == VEC_GPU_BORROWED) {
    PetscCall(HostRead(*sub));
    VecGPUOf(v)->now.valid = g->shared ? VEC_GPU_BOTH : VEC_GPU_HOST;
  } else if (VecGPUOf(v)->now.valid & VEC_GPU_DEVICE) {
    PetscCall(VecGPUDeviceRead_Private(*sub));
    VecGPUOf(v)->now.valid = VEC_GPU_DEVICE;
  } else { /* other entries were written on the host meanwhile */
    PetscCall(HostRead(*sub));
    PetscCall(PetscArraycpy(VecGPUOf(v)->now.host + g->start, g->now.host, (*sub)->map->n));
  }
  PetscCall(PetscObjectStateIncrease((PetscObject)v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Life */

#if PetscDefined(HAVE_DEVICE)
static PetscErrorCode VecBindToCPU_GPU(Vec v, PetscBool cpu)
{
  PetscFunctionBegin;
  if (cpu) PetscCall(HostRead(v));
  VecGPUOf(v)->bound = cpu;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode VecView_GPU(Vec v, PetscViewer viewer)
{
  PetscBool         ascii;
  PetscViewerFormat format;
  VecGPUInfo        info;

  PetscFunctionBegin;
  PetscCall((*VecGPUParent(v)->view)(v, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerGetFormat(viewer, &format));
  if (format == PETSC_VIEWER_ASCII_INFO || format == PETSC_VIEWER_ASCII_INFO_DETAIL) {
    PetscCall(VecGPUGetInfo(v, &info));
    PetscCall(PetscViewerASCIIPrintf(viewer, "VECGPU of rank 0: backend %s, entries on the %s; copied to the device %" PetscInt_FMT " times, to the host %" PetscInt_FMT " times\n", info.backend,
                                     info.onhost && info.ondevice ? "host and the device"
                                     : info.ondevice              ? "device"
                                                                  : "host",
                                     info.uploads, info.downloads));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Arrays that what is in place shares with what it is in place of are its own from here on, so that each is given back once */
static void Part(Vec_GPU *g)
{
  if (g->before.host == g->now.host) {
    g->before.hostowner = VEC_GPU_NONE;
    g->before.locked    = PETSC_FALSE;
  }
  if (g->before.device == g->now.device) g->before.deviceowner = VEC_GPU_NONE;
}

static void Count(VecGPUInfo *sum, const VecGPUInfo *i)
{
  sum->uploads += i->uploads;
  sum->downloads += i->downloads;
  sum->uploaded += i->uploaded;
  sum->downloaded += i->downloaded;
}

/*
  Asked for type gpu again (VecSetFromOptions() called twice, say), PETSc before 3.20 destroys a vector of type seqgpu or mpigpu and makes it anew: what
  it does not do with its own types. The values wait here, with the vector. Later versions leave the vector alone.
*/
#if PETSC_VERSION_LT(3, 20, 0)
static const char valueskept[] = "VecGPU_values";

static PetscErrorCode KeepValues(Vec v)
{
  const PetscScalar *a;
  PetscContainer     c;
  PetscScalar       *kept;

  PetscFunctionBegin;
  if (((PetscObject)v)->refct <= 0) PetscFunctionReturn(PETSC_SUCCESS); /* it goes for good */
  PetscCall(PetscMalloc1(v->map->n, &kept));
  PetscCall(VecGetArrayRead(v, &a));
  PetscCall(PetscArraycpy(kept, a, v->map->n));
  PetscCall(VecRestoreArrayRead(v, &a));
  PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &c));
  PetscCall(PetscContainerSetPointer(c, kept));
  PetscCall(PetscContainerSetUserDestroy(c, PetscContainerUserDestroyDefault));
  PetscCall(PetscObjectCompose((PetscObject)v, valueskept, (PetscObject)c));
  PetscCall(PetscContainerDestroy(&c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TakeValues(Vec v)
{
  PetscContainer c;
  PetscScalar   *kept, *a;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)v, valueskept, (PetscObject *)&c));
  if (!c) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscContainerGetPointer(c, (void **)&kept));
  PetscCall(VecGetArrayWrite(v, &a));
  PetscCall(PetscArraycpy(a, kept, v->map->n));
  PetscCall(VecRestoreArrayWrite(v, &a));
  PetscCall(PetscObjectCompose((PetscObject)v, valueskept, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#else
static PetscErrorCode KeepValues(Vec v)
{
  return PETSC_SUCCESS;
}

static PetscErrorCode TakeValues(Vec v)
{
  return PETSC_SUCCESS;
}
#endif

static PetscErrorCode VecDestroy_GPU(Vec v)
{
  Vec_GPU              *g      = VecGPUOf(v);
  const struct _VecOps *parent = VecGPUParent(v);

  PetscFunctionBegin;
  PetscCall(KeepValues(v));
  Count(&gone, &g->info);
  if (g->next) g->next->previous = g->previous;
  *g->previous = g->next;
  PetscCall(VecScatterDestroy(&g->scatter));
  Part(g);
  PetscCall(Free(v, &g->before));
  PetscCall(Free(v, &g->now));
  PetscCall(PetscFree(g));
  ((VecGPUHeader *)v->data)->array = ((VecGPUHeader *)v->data)->array_allocated = NULL;
  PetscCall((*parent->destroy)(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* VECSEQ and VECMPI allocate as they are made, and would fill what they allocate: made with an empty layout they have nothing */
static PetscErrorCode MakeParent(Vec v, PetscBool mpi)
{
  PetscLayout map = v->map;
  PetscInt    bs;

  PetscFunctionBegin;
  PetscCall(PetscLayoutSetUp(map));
  PetscCall(PetscLayoutGetBlockSize(map, &bs));
  PetscCall(PetscLayoutCreateFromSizes(PetscObjectComm((PetscObject)v), 0, 0, bs, &v->map));
  PetscCall(PetscFree(((PetscObject)v)->type_name)); /* PETSc 3.18 leaves that of another type, which may be this one */
  PetscCall(VecSetType(v, mpi ? VECMPI : VECSEQ));
  PetscCall(PetscLayoutDestroy(&v->map));
  v->map = map;
  /* the parent may have allocated even nothing */
  PetscCall(PetscFree(((VecGPUHeader *)v->data)->array_allocated));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(Vec v, PetscBool mpi)
{
  Vec_GPU  *g;
  PetscBool required;

  PetscFunctionBegin;
  PetscCall(MakeParent(v, mpi));
  PetscCall(PetscNew(&g));
  ((VecGPUHeader *)v->data)->array           = NULL;
  ((VecGPUHeader *)v->data)->array_allocated = (PetscScalar *)g;
  v->offloadmask                             = PETSC_OFFLOAD_UNALLOCATED;
  VecGPUParents[mpi]                         = *v->ops;
  g->mpi                                     = mpi;
  g->self                                    = v;
  g->next                                    = living;
  g->previous                                = &living;
  if (living) living->previous = &g->next;
  living = g;
  made++;
  PetscCall(Device(&g->dev, &required));
  g->shared = (PetscBool)(!g->dev || (!g->dev->ops->separate && !separate));

  if (GPUCSR_SCALAR_IS_DOUBLE) VecGPUOperations_Private(v->ops);
  v->ops->destroy                = VecDestroy_GPU;
  v->ops->duplicate              = VecDuplicate_GPU;
  v->ops->duplicatevecs          = VecDuplicateVecs_GPU;
  v->ops->view                   = VecView_GPU;
  v->ops->getarray               = VecGetArray_GPU;
  v->ops->restorearray           = VecRestoreArray_GPU;
  v->ops->getarrayread           = VecGetArrayRead_GPU;
  v->ops->restorearrayread       = VecRestoreArrayRead_GPU;
  v->ops->getarraywrite          = VecGetArrayWrite_GPU;
  v->ops->restorearraywrite      = VecRestoreArray_GPU;
  v->ops->placearray             = VecPlaceArray_GPU;
  v->ops->resetarray             = VecResetArray_GPU;
  v->ops->replacearray           = VecReplaceArray_GPU;
  v->ops->createlocalvector      = VecCreateLocalVector_GPU;
  v->ops->getlocalvector         = VecGetLocalVector_GPU;
  v->ops->restorelocalvector     = VecRestoreLocalVector_GPU;
  v->ops->getlocalvectorread     = VecGetLocalVectorRead_GPU;
  v->ops->restorelocalvectorread = VecRestoreLocalVectorRead_GPU;
  v->ops->getsubvector           = VecGetSubVector_GPU;
  v->ops->restoresubvector       = VecRestoreSubVector_GPU;
#if PetscDefined(HAVE_DEVICE)
  v->ops->bindtocpu = VecBindToCPU_GPU;
#endif
  PetscCall(PetscObjectChangeTypeName((PetscObject)v, mpi ? VECMPIGPU : VECSEQGPU));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  VECSEQGPU - "seqgpu", the one-process form of `VECGPU`

  Level: beginner

.seealso: `VECGPU`, `VECMPIGPU`
M*/
static PetscErrorCode VecCreate_SeqGPU(Vec v)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)v), &size));
  PetscCheck(size == 1, PetscObjectComm((PetscObject)v), PETSC_ERR_ARG_WRONG, "Cannot create VECSEQGPU on more than one process: use VECGPU or VECMPIGPU");
  PetscCall(Create(v, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  VECMPIGPU - "mpigpu", the form of `VECGPU` for any number of processes

  Level: beginner

.seealso: `VECGPU`, `VECSEQGPU`
M*/
static PetscErrorCode VecCreate_MPIGPU(Vec v)
{
  PetscFunctionBegin;
  PetscCall(Create(v, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  VECGPU - "gpu", a vector that lives on an NVIDIA GPU, in a PETSc with or without CUDA: `VECSEQGPU` on one process, else `VECMPIGPU`

  Options Database Keys:
+ -vec_type gpu                          - makes a vector of this type where the program calls `VecSetFromOptions()`
. -dm_vec_type gpu                       - makes a `DM` create such vectors
. -mat_gpucsr_backend (auto|cuda|host)   - where vectors live: with auto, on the GPU if there is one
- -vec_gpu_separate                      - on the host backend, keep two copies as on a GPU, to test what depends on that

  Level: beginner

  Notes:
  Vector operations and products with `MATGPUCSR` work on the device's array. PETSc and the program get the host's, which is
  brought up to date when they ask for it: `VecGetArrayRead()` costs a copy after a change on the device, `VecGetArray()` one more
  when the device next needs the entries, `VecGetArrayWrite()` only the latter. `VecGPUGetInfo()` counts both.

  `VecSetRandom()` draws its numbers on the host, so that they are those of other vector types.

.seealso: `MATGPUCSR`, `VecGPUGetInfo()`, `VECSTANDARD`
M*/
static PetscErrorCode VecCreate_GPU(Vec v)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)v), &size));
  PetscCall(Create(v, (PetscBool)(size > 1))); /* not VecSetType(), which would take a vector that is made anew for the one it was */
  PetscCall(TakeValues(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  VecGPUGetInfo - Get where a `VECGPU` vector lives on this rank, and what was copied between host and device

  Not Collective

  Input Parameter:
. v - the vector

  Output Parameter:
. info - see `VecGPUInfo`; sizes in bytes

  Level: intermediate

.seealso: `VECGPU`, `VecGPUInfo`
@*/
PetscErrorCode VecGPUGetInfo(Vec v, VecGPUInfo *info)
{
  Vec_GPU *g;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(v, VEC_CLASSID, 1);
  PetscAssertPointerCompat(info, 2);
  PetscCheck(VecGPUIs(v), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "Only for vectors of type gpu, not %s", ((PetscObject)v)->type_name);
  g              = VecGPUOf(v);
  *info          = g->info;
  info->backend  = g->dev && !g->bound ? g->dev->ops->name : "host";
  info->onhost   = (PetscBool)(g->now.valid != VEC_GPU_DEVICE);
  info->ondevice = (PetscBool)(g->now.valid != VEC_GPU_HOST);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPUTypeAsked(VecType *type)
{
  static const char *const words[]  = {VECGPU, VECSEQGPU, VECMPIGPU, VECSTANDARD, VECSEQ, VECMPI};
  char                     word[64] = "";
  PetscBool                same;

  PetscFunctionBegin;
  *type = NULL;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-vec_type", word, sizeof(word), NULL));
  for (int k = 0; k < 6; k++) {
    PetscCall(PetscStrcmp(word, words[k], &same));
    if (same) *type = k < 3 ? VECGPU : VECSTANDARD;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPUInitialize(void)
{
  PetscFunctionBegin;
  separate = PETSC_FALSE;
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "GPU vectors: process options", "VECGPU");
  PetscCall(PetscOptionsBool("-vec_gpu_separate", "On the host backend, keep two copies as on a GPU", "VECGPU", separate, &separate, NULL));
  PetscOptionsEnd();
  PetscCall(VecRegister(VECSEQGPU, VecCreate_SeqGPU));
  PetscCall(VecRegister(VECMPIGPU, VecCreate_MPIGPU));
  PetscCall(VecRegister(VECGPU, VecCreate_GPU));
  PetscCall(PetscLogEventRegister("GPUVecUp", VEC_CLASSID, &VEC_GPU_Up));
  PetscCall(PetscLogEventRegister("GPUVecDown", VEC_CLASSID, &VEC_GPU_Down));
  warned = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPUReport(MPI_Comm comm)
{
  VecGPUInfo sum = gone;
  double     numbers[5];

  PetscFunctionBegin;
  for (Vec_GPU *g = living; g; g = g->next) Count(&sum, &g->info);
  numbers[0] = (double)made;
  numbers[1] = (double)sum.uploads;
  numbers[2] = (double)sum.downloads;
  numbers[3] = sum.uploaded;
  numbers[4] = sum.downloaded;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, numbers, 5, MPI_DOUBLE, MPI_SUM, comm));
  if (numbers[0] > 0) PetscCall(PetscPrintf(comm, "VECGPU: %.0f vectors made; copied to the device %.0f times, %.3g MB; to the host %.0f times, %.3g MB\n", numbers[0], numbers[1], 1e-6 * numbers[3], numbers[2], 1e-6 * numbers[4]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host's array of what is in place is all that stays */
PetscErrorCode VecGPUFinalize(void)
{
  PetscFunctionBegin;
  for (Vec_GPU *g = living; g; g = g->next) {
    VecGPUArrays *all[] = {&g->now, &g->before};

    if (!g->dev) continue;
    if (!g->dev->failed[0]) PetscCall(HostRead(g->self));
    if (g->before.device == g->now.device) g->before.deviceowner = VEC_GPU_NONE;
    if (g->before.host == g->now.host) g->before.locked = PETSC_FALSE;
    for (int k = 0; k < 2; k++) {
      PetscCall(Unpin(g->self, all[k]));
      if (all[k]->deviceowner == VEC_GPU_OWN) PetscCall(GPUCSRFree(g->dev, Bytes(g->self), (void **)&all[k]->device));
      all[k]->deviceowner = VEC_GPU_NONE;
      all[k]->device      = NULL;
    }
    if (!g->now.host) g->now.valid = VEC_GPU_FILLED; /* the device failed, and took the entries along */
    else g->now.valid = VEC_GPU_BOTH;
    g->shared = PETSC_TRUE;
    g->dev    = NULL;
  }
  PetscCall(VecGPUKernels_host.release());
#if defined(GPUCSR_HAVE_CUDA)
  PetscCall(VecGPUKernels_cuda.release());
#endif
  PetscCall(PetscMemzero(&gone, sizeof(gone)));
  made = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

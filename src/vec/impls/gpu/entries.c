/*
  The two copies of the entries of a VECGPU, and the transfers between both: a request for one copy brings newer entries from the other. So PETSc, its scatters, viewers, and a program's own loops see
  an ordinary vector.

  VecGPUHostGet_Private() counts the pointers that a program holds. Meanwhile these pointers show all results of the device at once, and the device sees all values written through a pointer
  (VecGPUDeviceRead_Private(), VecGPUDeviceWritten_Private()).
*/
#include "vecgpuimpl.h"
#include <string.h>

static GPUCSRLogEvent   VEC_GPU_Up, VEC_GPU_Down;
static PetscErrorCode   EntriesRelease(void *);
static GPUCSRLivingList living = {GPUCSR_FINAL_VEC, EntriesRelease, NULL};
static VecGPUInfo       gone;                          /* sums over destroyed entries */
static PetscBool        warned, told, ready, separate; /* separate: -vec_gpu_separate */

static size_t Bytes(PetscInt n)
{
  return sizeof(PetscScalar) * (size_t)n;
}

/* The device that options give to vectors; NULL if PETSc computes with other numbers than doubles */
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
  PetscCheck(*dev || !*required, PETSC_COMM_SELF, PETSC_ERR_GPU, "-mat_gpucsr_backend cuda is not possible here: %s; with auto vectors would be on the host", why);
  if (!*dev) PetscCall(GPUCSRDeviceOpen("host", dev, why, sizeof(why)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool VecGPUSeparate(void)
{
  return separate;
}

/* --- Memory */

static PetscErrorCode New(PetscInt n, GPUCSRDevice dev, PetscBool shared, VecGPUEntries **entries)
{
  VecGPUEntries *e;

  PetscFunctionBegin;
  PetscCall(PetscNew(&e));
  e->dev        = dev;
  e->shared     = shared;
  e->n          = n;
  e->references = 1;
  PetscCall(GPUCSRLivingAdd(&living, &e->living, e));
  *entries = e;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n entries, all 0 */
PetscErrorCode VecGPUEntriesCreate_Private(PetscInt n, VecGPUEntries **entries)
{
  GPUCSRDevice dev;
  PetscBool    required;

  PetscFunctionBegin;
  PetscCall(Device(&dev, &required));
  PetscCall(New(n, dev, (PetscBool)(!dev || (!dev->ops->separate && !separate)), entries));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n entries in the program's array, of the same kind */
PetscErrorCode VecGPUEntriesPlace_Private(const VecGPUEntries *kind, PetscInt n, PetscScalar *a, VecGPUEntries **entries)
{
  PetscFunctionBegin;
  PetscCall(New(n, kind->dev, kind->shared, entries));
  if (!a) PetscFunctionReturn(PETSC_SUCCESS);
  (*entries)->host     = a;
  (*entries)->borrowed = PETSC_TRUE;
  (*entries)->valid    = kind->shared ? VEC_GPU_BOTH : VEC_GPU_HOST;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PrepareEntries(VecGPUEntries *);
static PetscErrorCode GiveBack(VecGPUEntries *);

/* n entries in the program's array on the device, of entries that are not shared */
PetscErrorCode VecGPUEntriesPlaceDevice_Private(const VecGPUEntries *kind, PetscInt n, double *a, VecGPUEntries **entries)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(New(n, kind->dev, PETSC_FALSE, entries));
  (*entries)->device = a;
  (*entries)->lent   = PETSC_TRUE;
  (*entries)->valid  = VEC_GPU_DEVICE;
  ierr               = PrepareEntries(*entries);
  if (ierr) PetscCall(VecGPUEntriesRelease_Private(entries, NULL));
  PetscFunctionReturn(ierr);
}

static PetscErrorCode Unpin(VecGPUEntries *e)
{
  PetscFunctionBegin;
  if (e->locked && !e->dev->failed[0]) PetscCall(e->dev->ops->hostunregister(e->dev->id, e->host));
  e->locked = e->refused = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Takes over the array a, from PetscMalloc(), with its entries. Pointers to the array before are void */
PetscErrorCode VecGPUEntriesReplace_Private(VecGPUEntries *e, PetscScalar *a)
{
  PetscFunctionBegin;
  PetscCall(Unpin(e));
  if (!e->borrowed) PetscCall(PetscFree(e->host));
  e->host     = a;
  e->borrowed = PETSC_FALSE;
  e->readers = e->writers = 0;
  e->marked               = PETSC_FALSE;
  e->fill                 = 0;
  e->valid                = !a ? VEC_GPU_FILLED : e->shared ? VEC_GPU_BOTH : VEC_GPU_HOST;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Add(VecGPUInfo *sum, const VecGPUInfo *i)
{
  sum->uploads += i->uploads;
  sum->downloads += i->downloads;
  sum->forced += i->forced;
  sum->uploaded += i->uploaded;
  sum->downloaded += i->downloaded;
}

/* A vector drops its entries. Their counts go to the heir, or to the sum over all destroyed entries */
PetscErrorCode VecGPUEntriesRelease_Private(VecGPUEntries **entries, VecGPUEntries *heir)
{
  VecGPUEntries *e = *entries;

  PetscFunctionBegin;
  *entries = NULL;
  if (!e || --e->references) PetscFunctionReturn(PETSC_SUCCESS);
  Add(heir ? &heir->info : &gone, &e->info);
  PetscCall(GPUCSRLivingRemove(&e->living));
  PetscCall(GiveBack(e));
  PetscCall(Unpin(e));
  if (!e->borrowed) PetscCall(PetscFree(e->host));
  if (e->device && !e->lent) PetscCall(GPUCSRFree(e->dev, Bytes(e->n), (void **)&e->device));
  PetscCall(PetscFree(e));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostAllocate(VecGPUEntries *e)
{
  PetscFunctionBegin;
  if (!e->host && e->n) PetscCall(PetscMalloc1(e->n, &e->host));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DeviceAllocate(VecGPUEntries *e)
{
  PetscFunctionBegin;
  if (e->shared) PetscCall(HostAllocate(e));
  else if (!e->device && e->n) PetscCall(GPUCSRMalloc(e->dev, Bytes(e->n), "a vector", (void **)&e->device));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The vector's memory on the device, and the memory of its reductions */
static PetscErrorCode PrepareEntries(VecGPUEntries *e)
{
  PetscFunctionBegin;
  if (!ready && VecGPUKernelsOf(e->dev)->prepare) PetscCall((*VecGPUKernelsOf(e->dev)->prepare)(e->dev));
  ready = PETSC_TRUE;
  PetscCall(DeviceAllocate(e));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device of v, with memory for v there; NULL: the host. A device without memory or with a failure is reported once */
PetscErrorCode VecGPUReady_Private(Vec v, GPUCSRDevice *dev)
{
  Vec_GPU       *g = VecGPUOf(v);
  VecGPUEntries *e = g->entries;
  GPUCSRDevice   d;
  PetscBool      required;
  GPUCSRAttempt  attempt;

  PetscFunctionBegin;
  *dev = g->bound || e->full ? NULL : e->dev;
  if (!*dev || e->device || (ready && (e->shared || !e->n))) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Device(&d, &required));
  GPUCSRTryIf(!required, &attempt, PrepareEntries(e));
  if (attempt.error == PETSC_ERR_MEM || attempt.error == PETSC_ERR_GPU) { /* no entry is on the device yet */
    if (attempt.error == PETSC_ERR_GPU) PetscCall(PetscStrncpy(e->dev->failed, attempt.message, sizeof(e->dev->failed)));
    if (!warned) PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "VECGPU warning: a vector of %" PetscInt_FMT " entries, and later vectors, stay on the host: %s\n", v->map->n, attempt.message));
    warned  = PETSC_TRUE;
    e->full = PETSC_TRUE;
    *dev    = NULL;
  } else PetscCheck(!attempt.error, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- The bus */

/* Copies n entries from first on to the device or to the host, and waits: the program may read and write the host's array after the return */
static PetscErrorCode Cross(VecGPUEntries *e, PetscBool up, PetscInt first, PetscInt n)
{
  const GPUCSRDevice    dev   = e->dev;
  const GPUCSRLogEvent *event = up ? &VEC_GPU_Up : &VEC_GPU_Down;

  PetscFunctionBegin;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRLogBegin(event, dev, NULL));
  PetscCall(dev->ops->activate(dev->id));
  /*
    Page-locks the host's array. Page-locking costs several copies by staging buffers. It happens when the entries cross the bus for the second time. Arrays of the program stay as they are, because the
    program may free them. A PETSc with CUDA would copy between its vectors and a page-locked array without waiting, so it gets pageable arrays.
  */
  if (!e->locked && !e->refused && !e->borrowed && (double)Bytes(e->n) >= GPUCSRMachineShared.pinned_least && e->dev->ops->separate && GPUCSRSettingsGlobal.pinvectors && !PetscDefined(HAVE_CUDA) && e->info.uploads + e->info.downloads > 0) {
    PetscCall(e->dev->ops->hostregister(e->dev->id, e->host, Bytes(e->n), &e->locked));
    e->refused = (PetscBool)!e->locked;
  }
  if (up) PetscCall(GPUCSRUpload(dev, e->device + first, GPUCSR_DOUBLE, e->host + first, GPUCSR_DOUBLE, (size_t)n, e->locked, dev->stream, NULL));
  else PetscCall(GPUCSRDownload(dev, e->host + first, GPUCSR_DOUBLE, e->device + first, GPUCSR_DOUBLE, (size_t)n, e->locked, dev->stream));
  if (e->locked) PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream));
  *(up ? &e->info.uploads : &e->info.downloads) += 1;
  *(up ? &e->info.uploaded : &e->info.downloaded) += (double)Bytes(n);
  PetscCall(GPUCSRLogEnd(event, dev, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Completes the program's array on the device. No kernel uses the array afterwards, so the program may free it */
static PetscErrorCode GiveBack(VecGPUEntries *e)
{
  PetscFunctionBegin;
  if (!e->lent || !e->dev || e->dev->failed[0]) PetscFunctionReturn(PETSC_SUCCESS);
  if (e->valid == VEC_GPU_HOST) PetscCall(Cross(e, PETSC_TRUE, 0, e->n));
  PetscCall(GPUCSRDeviceSynchronize(e->dev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reports once that a pointer of the program causes copies */
static PetscErrorCode Forced(Vec v)
{
  VecGPUEntries *e = VecGPUOf(v)->entries;

  PetscFunctionBegin;
  e->info.forced++;
  if (told) PetscFunctionReturn(PETSC_SUCCESS);
  told = PETSC_TRUE;
  PetscCall(PetscInfo(v, "The program holds an array of a vector of %" PetscInt_FMT " entries (VecGetArray() without VecRestoreArray(), x.array in petsc4py) while the device works on it: entries cross the bus at each operation until it is restored\n", e->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- The host's array */

PetscErrorCode VecGPUHostRead_Private(VecGPUEntries *e)
{
  PetscFunctionBegin;
  if (e->lent && !e->shared && e->valid == VEC_GPU_BOTH && !e->readers && !e->writers) e->valid = VEC_GPU_DEVICE;
  if (e->valid & VEC_GPU_HOST) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HostAllocate(e));
  if (e->valid == VEC_GPU_FILLED) {
    for (PetscInt k = 0; k < e->n; k++) e->host[k] = e->fill;
  } else PetscCall(Cross(e, PETSC_FALSE, 0, e->n));
  e->valid = (VecGPUValid)(e->valid | (e->shared ? VEC_GPU_BOTH : VEC_GPU_HOST));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A hash of some entries of the host's array, of all if they are few. Programs sometimes write through a pointer for reading: SLEPc places the array in another vector, which a scatter then fills
  (PEPSetRefine() by several groups of ranks). The device would miss the change.
*/
static uint64_t Mark(const VecGPUEntries *e)
{
  const PetscInt step = e->n <= 1024 ? 1 : e->n / 64;
  uint64_t       mark = 0, bits = 0;

  for (PetscInt k = 0; k < e->n; k += step) {
    memcpy(&bits, e->host + k, PetscMin(sizeof(bits), sizeof(PetscScalar)));
    mark = (mark ^ bits) * 1099511628211ULL;
  }
  return mark;
}

/*
  Lends a pointer to the host's array. A pointer for writing a whole vector needs no old entries, but PETSc 3.18 sets all entries, asks for the array to write, and reads (MatGetRowMaxAbs()).
*/
PetscErrorCode VecGPUHostGet_Private(Vec v, PetscBool read, PetscBool write, PetscScalar **a)
{
  VecGPUEntries *e = VecGPUOf(v)->entries;

  PetscFunctionBegin;
  if (read || e->valid == VEC_GPU_FILLED || v->map->n != e->n) PetscCall(VecGPUHostRead_Private(e));
  PetscCall(HostAllocate(e));
  if (write) {
    e->valid = e->shared ? VEC_GPU_BOTH : VEC_GPU_HOST;
    e->writers++;
    e->marked = PETSC_FALSE;
  } else {
    e->marked = (PetscBool)(!e->shared && !e->writers && (e->marked || !e->readers) && e->valid == VEC_GPU_BOTH);
    if (e->marked && !e->readers) e->mark = Mark(e);
    e->readers++;
  }
  *a = VecGPUHostOf(v);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Takes back a pointer: a, if the program passes it, may belong to the current array or to its predecessor. Superfluous restores do no harm: a restore for reading never counts as a restore
  for writing, because the writer may still write.
*/
PetscErrorCode VecGPUHostRestore_Private(Vec v, PetscBool write, const PetscScalar *a)
{
  Vec_GPU       *g = VecGPUOf(v);
  VecGPUEntries *e = g->entries;

  PetscFunctionBegin;
  if (g->before && (a ? g->before->host && a == g->before->host + g->startbefore : !e->readers && !e->writers)) e = g->before;
  if (write && (e->valid & VEC_GPU_HOST)) e->valid = e->shared ? VEC_GPU_BOTH : VEC_GPU_HOST;
  if (write && e->writers) e->writers--;
  else if (e->readers) e->readers--;
  if (e->marked && e->valid == VEC_GPU_BOTH && Mark(e) != e->mark) {
    PetscCall(PetscInfo(v, "The program wrote through a read-only array (VecGetArrayRead()): its entries are sent to the device again\n"));
    e->valid = VEC_GPU_HOST;
  }
  if (!e->readers || e->valid != VEC_GPU_BOTH) e->marked = PETSC_FALSE;
  if (e->lent && e->valid == VEC_GPU_HOST && !e->writers) {
    PetscCall(Cross(e, PETSC_TRUE, 0, e->n));
    e->valid = VEC_GPU_BOTH;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- The device's array */

/* Makes the device's array hold the entries of v */
PetscErrorCode VecGPUDeviceRead_Private(Vec v)
{
  Vec_GPU       *g = VecGPUOf(v);
  VecGPUEntries *e = g->entries;

  PetscFunctionBegin;
  if (e->shared) {
    PetscCall(VecGPUHostRead_Private(e));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (e->valid & VEC_GPU_DEVICE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(DeviceAllocate(e));
  if (e->writers) { /* and must be sent again */
    PetscCall(Cross(e, PETSC_TRUE, g->start, v->map->n));
    PetscCall(Forced(v));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (e->valid == VEC_GPU_FILLED) {
    const double abc[3] = {(double)PetscRealPart(e->fill), 0, 0};

    PetscCall((*VecGPUKernelsOf(e->dev)->map)(e->dev, VECGPU_MAP_set, (size_t)e->n, abc, NULL, NULL, e->device));
    e->valid = VEC_GPU_DEVICE;
  } else {
    PetscCall(Cross(e, PETSC_TRUE, 0, e->n));
    e->valid = VEC_GPU_BOTH;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before the device overwrites the entries of v: its copy becomes the only valid one */
PetscErrorCode VecGPUDeviceWrite_Private(Vec v)
{
  VecGPUEntries *e = VecGPUOf(v)->entries;

  PetscFunctionBegin;
  if (v->map->n != e->n && !e->writers) PetscCall(VecGPUDeviceRead_Private(v));
  PetscCall(DeviceAllocate(e));
  if (e->shared) e->valid = VEC_GPU_BOTH;
  else if (!e->readers && !e->writers) e->valid = VEC_GPU_DEVICE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After the device has written: pointers that the program holds see the entries */
PetscErrorCode VecGPUDeviceWritten_Private(Vec v)
{
  Vec_GPU       *g = VecGPUOf(v);
  VecGPUEntries *e = g->entries;

  PetscFunctionBegin;
  if (e->shared) PetscFunctionReturn(PETSC_SUCCESS);
  if (!e->readers && !e->writers) {
    e->valid = VEC_GPU_DEVICE; /* again, because the host may have read the old entries meanwhile */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Cross(e, PETSC_FALSE, g->start, v->map->n));
  PetscCall(Forced(v));
  e->valid  = e->writers ? VEC_GPU_HOST : VEC_GPU_BOTH;
  e->marked = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sets every entry to a. The first reader decides where, for example the host before additions to a right-hand side. If the program holds a pointer, at once */
PetscErrorCode VecGPUFill_Private(Vec v, PetscScalar a)
{
  Vec_GPU        *g      = VecGPUOf(v);
  VecGPUEntries  *e      = g->entries;
  const PetscInt  n      = v->map->n;
  const PetscBool held   = (PetscBool)(e->readers || e->writers);
  const double    abc[3] = {(double)PetscRealPart(a), 0, 0};
  GPUCSRDevice    dev;

  PetscFunctionBegin;
  if (n == e->n && !held && !e->lent) {
    e->valid = VEC_GPU_FILLED;
    e->fill  = a;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecGPUReady_Private(v, &dev));
  if (!dev || held || e->shared || e->valid == VEC_GPU_HOST) {
    PetscCall(VecGPUHostRead_Private(e));
    for (PetscInt k = 0; k < n; k++) e->host[g->start + k] = a;
    e->valid  = e->shared ? VEC_GPU_BOTH : VEC_GPU_HOST;
    e->marked = PETSC_FALSE;
  } else {
    PetscCall(VecGPUDeviceRead_Private(v));
    PetscCall((*VecGPUKernelsOf(dev)->map)(dev, VECGPU_MAP_set, (size_t)n, abc, NULL, NULL, e->device + g->start));
    e->valid = VEC_GPU_DEVICE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- All of them */

static PetscErrorCode EntriesFinalize(void)
{
  PetscFunctionBegin;
#if defined(GPUCSR_HAVE_CUDA)
  PetscCall(VecGPUKernels_cuda.release());
#endif
  ready = PETSC_FALSE; /* vectors that live on need the memory for reductions anew */
  PetscCall(PetscMemzero(&gone, sizeof(gone)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPUEntriesInitialize_Private(void)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRRegisterFinalize(GPUCSR_FINAL_VEC, EntriesFinalize));
  separate = warned = told = ready = PETSC_FALSE;
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "GPU vectors: process options", "VECGPU");
  PetscCall(PetscOptionsBool("-vec_gpu_separate", "On the host backend, keep two copies as on a GPU", "VECGPU", separate, &separate, NULL));
  PetscOptionsEnd();
  PetscCall(GPUCSRLogRegister("VecGPUCopyTo", VEC_CLASSID, &VEC_GPU_Up));
  PetscCall(GPUCSRLogRegister("VecGPUCopyFrom", VEC_CLASSID, &VEC_GPU_Down));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies of all entries that have existed */
VecGPUInfo VecGPUEntriesCount_Private(void)
{
  VecGPUInfo sum = gone;

  for (const GPUCSRLiving *l = living.first; l; l = l->next) Add(&sum, &((const VecGPUEntries *)l->object)->info);
  return sum;
}

/* Only the host's array stays. Entries on a failed device are lost */
static PetscErrorCode EntriesRelease(void *entries)
{
  VecGPUEntries *e = (VecGPUEntries *)entries;

  PetscFunctionBegin;
  if (!e->dev) PetscFunctionReturn(PETSC_SUCCESS);
  if (!e->dev->failed[0] && e->valid != VEC_GPU_FILLED) PetscCall(VecGPUHostRead_Private(e));
  PetscCall(GiveBack(e));
  PetscCall(Unpin(e));
  if (e->device && !e->lent) PetscCall(GPUCSRFree(e->dev, Bytes(e->n), (void **)&e->device));
  if (!e->host) e->valid = VEC_GPU_FILLED;
  if (e->valid != VEC_GPU_FILLED) e->valid = VEC_GPU_BOTH;
  e->shared = PETSC_TRUE;
  e->dev    = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

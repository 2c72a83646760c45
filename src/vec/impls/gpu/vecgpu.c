/*
  VECGPU: vectors that live on the device in any PETSc. A vector is a VECSEQ or VECMPI without an array; its entries (entries.c) belong to this library, and PETSc reaches them only by VecGetArray() and its
  siblings.

  PETSc must treat the type as foreign (petscnative), since it does not restore read-only arrays of its own types.
*/
#include "vecgpuimpl.h"

struct _VecOps VecGPUParents[2];

static PetscInt   made;
static VecGPUInfo crossed; /* copies of vectors of other types */

/* --- The host's array, for PETSc and programs */

PetscErrorCode VecGetArray_GPU(Vec v, PetscScalar **a)
{
  return VecGPUHostGet_Private(v, PETSC_TRUE, PETSC_TRUE, a);
}

static PetscErrorCode VecGetArrayWrite_GPU(Vec v, PetscScalar **a)
{
  return VecGPUHostGet_Private(v, PETSC_FALSE, PETSC_TRUE, a);
}

static PetscErrorCode VecRestoreArray_GPU(Vec v, PetscScalar **a)
{
  return VecGPUHostRestore_Private(v, PETSC_TRUE, a ? *a : NULL);
}

static PetscErrorCode VecGetArrayRead_GPU(Vec v, const PetscScalar **a)
{
  return VecGPUHostGet_Private(v, PETSC_TRUE, PETSC_FALSE, (PetscScalar **)a);
}

static PetscErrorCode VecRestoreArrayRead_GPU(Vec v, const PetscScalar **a)
{
  return VecGPUHostRestore_Private(v, PETSC_FALSE, a ? *a : NULL);
}

static PetscErrorCode VecPlaceArray_GPU(Vec v, const PetscScalar *a)
{
  VecGPUEntries *placed;

  PetscFunctionBegin;
  PetscCall(VecGPUEntriesPlace_Private(VecGPUOf(v)->entries, v->map->n, (PetscScalar *)a, &placed));
  PetscCall(VecGPUExchange_Private(v, placed, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The placed array has the results */
static PetscErrorCode VecResetArray_GPU(Vec v)
{
  const Vec_GPU *g = VecGPUOf(v);

  PetscFunctionBegin;
  if (g->before && g->entries->borrowed) PetscCall(VecGPUHostRead_Private(g->entries));
  PetscCall(VecGPUComeBack_Private(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VecReplaceArray_GPU(Vec v, const PetscScalar *a)
{
  Vec_GPU *g = VecGPUOf(v);

  PetscFunctionBegin;
  PetscCheck(!g->before, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Another array replaces this vector's: call VecResetArray() first");
  PetscCheck(g->entries->n == v->map->n, PETSC_COMM_SELF, PETSC_ERR_SUP, "A subvector shares the array of the whole vector: replace the array of a duplicate");
  PetscCall(VecGPUEntriesReplace_Private(g->entries, (PetscScalar *)a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- The device's array, for this library */

PetscErrorCode VecGPUGetDevice(Vec v, GPUCSRDevice *dev)
{
  PetscFunctionBegin;
  *dev = NULL;
  if (VecGPUIs(v)) PetscCall(VecGPUReady_Private(v, dev));
  else PetscCall(VecGPUForeign_Private(v, dev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPUCheck(Vec v, PetscBool *isvecgpu)
{
  PetscFunctionBegin;
  *isvecgpu = VecGPUIs(v);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Until VecGPURelease() PETSc treats the vector as its own type: it keeps pointers to the array, and does not count readers and writers. Release restores both counts */
PetscErrorCode VecGPUHold(Vec v, VecGPUHeld *held)
{
  PetscScalar *a;

  PetscFunctionBegin;
  if (!VecGPUIs(v)) PetscFunctionReturn(PETSC_SUCCESS);
  held->readers = VecGPUOf(v)->entries->readers;
  held->writers = VecGPUOf(v)->entries->writers;
  PetscCall(VecGPUHostGet_Private(v, PETSC_TRUE, PETSC_TRUE, &a));
  v->petscnative = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPURelease(Vec v, const VecGPUHeld *held)
{
  VecGPUEntries *e;

  PetscFunctionBegin;
  if (!VecGPUIs(v)) PetscFunctionReturn(PETSC_SUCCESS);
  e              = VecGPUOf(v)->entries;
  e->readers     = held->readers;
  e->writers     = held->writers + 1; /* of VecGPUHold() */
  v->petscnative = PETSC_FALSE;
  PetscCall(VecGPUHostRestore_Private(v, PETSC_TRUE, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Life */

#if PetscDefined(HAVE_DEVICE)
static PetscErrorCode VecBindToCPU_GPU(Vec v, PetscBool cpu)
{
  PetscFunctionBegin;
  if (cpu) PetscCall(VecGPUHostRead_Private(VecGPUOf(v)->entries));
  VecGPUOf(v)->bound = cpu;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

static PetscErrorCode VecView_GPU(Vec v, PetscViewer viewer)
{
  VecGPUInfo info;

  PetscFunctionBegin;
  PetscCall((*VecGPUParent(v)->view)(v, viewer));
  if (GPUCSRViewsInfo(viewer)) {
    PetscCall(VecGPUGetInfo(v, &info));
    PetscCall(PetscViewerASCIIPrintf(viewer, "VECGPU of rank 0: backend %s, entries on the %s; copied to the device %" PetscInt_FMT " times, to the host %" PetscInt_FMT " times, %" PetscInt_FMT " of them for open arrays\n", info.backend,
                                     info.onhost && info.ondevice ? "host and the device"
                                     : info.ondevice              ? "device"
                                                                  : "host",
                                     info.uploads, info.downloads, info.forced));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  If a program sets type gpu again (VecSetFromOptions() called twice, for example), PETSc before 3.20 destroys a vector of type seqgpu or mpigpu and makes it anew, unlike its own types. The entries, to
  which the program may hold a pointer, wait here, with the vector. If the vector had another type meanwhile, the entries are destroyed. Later versions keep the vector.
*/
static const char entrieskept[] = "VecGPU_entries";

#if !GPUCSR_VEC_TYPE_KEEPS_NOTHING
static PetscErrorCode DropEntries(void *kept)
{
  VecGPUEntries *e = (VecGPUEntries *)kept;

  return VecGPUEntriesRelease_Private(&e, NULL);
}
#endif

/* Is the type's name one of VECGPU's? */
static PetscBool IsNamed(Vec v)
{
  return (PetscBool)(GPUCSRIsType(v, VECSEQGPU) || GPUCSRIsType(v, VECMPIGPU));
}

static PetscErrorCode VecDestroy_GPU(Vec v)
{
  Vec_GPU              *g      = VecGPUOf(v);
  const struct _VecOps *parent = VecGPUParent(v);
  VecGPUEntries        *kept   = g->entries;
  PetscContainer        c;

  PetscFunctionBegin;
  if (!GPUCSR_VEC_TYPE_KEEPS_NOTHING && IsNamed(v) && ((PetscObject)v)->refct > 0) { /* it does not go for good */
    kept->references++;
    if (g->before || kept->n != v->map->n) { /* a copy, because the entries are not the vector's own */
      PetscScalar *a;

      PetscCall(VecGPUHostRead_Private(kept));
      PetscCall(PetscMalloc1(v->map->n, &a));
      PetscCall(PetscArraycpy(a, VecGPUHostOf(v), v->map->n));
      PetscCall(VecGPUEntriesRelease_Private(&kept, NULL));
      PetscCall(VecGPUEntriesCreate_Private(v->map->n, &kept));
      PetscCall(VecGPUEntriesReplace_Private(kept, a));
    }
    PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &c));
    PetscCall(PetscContainerSetPointer(c, kept));
#if !GPUCSR_VEC_TYPE_KEEPS_NOTHING
    PetscCall(PetscContainerSetUserDestroy(c, DropEntries));
#endif
    PetscCall(PetscObjectCompose((PetscObject)v, entrieskept, (PetscObject)c));
    PetscCall(PetscContainerDestroy(&c));
  }
  PetscCall(VecScatterDestroy(&g->scatter));
  PetscCall(VecGPUEntriesRelease_Private(&g->before, NULL));
  PetscCall(VecGPUEntriesRelease_Private(&g->entries, NULL));
  PetscCall(PetscFree(g));
  ((VecGPUHeader *)v->data)->array_allocated = NULL;
  PetscCall((*parent->destroy)(v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* VECSEQ and VECMPI allocate and fill their arrays on creation; with an empty layout there is nothing to allocate. Known ranges avoid a message, which would wait for a failed rank */
static PetscErrorCode MakeParent(Vec v, PetscBool mpi)
{
  PetscLayout map = v->map;
  PetscInt   *none;

  PetscFunctionBegin;
  PetscCall(PetscLayoutSetUp(map));
  PetscCall(PetscCalloc1(map->size + 1, &none));
  PetscCall(PetscLayoutCreateFromRanges(PetscObjectComm((PetscObject)v), none, PETSC_OWN_POINTER, map->bs, &v->map));
  PetscCall(PetscFree(((PetscObject)v)->type_name)); /* PETSc 3.18 keeps the name of another type, possibly this one */
  PetscCall(VecSetType(v, mpi ? VECMPI : VECSEQ));
  PetscCall(PetscLayoutDestroy(&v->map));
  v->map = map;
  /* the parent may have allocated 0 bytes */
  PetscCall(PetscFree(((VecGPUHeader *)v->data)->array_allocated));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In a PETSc with CUDA a vector on the device is a VECCUDA: PETSc's operations between VECCUDA and another type use the host */
static PetscErrorCode TakeCUDA(Vec v, PetscBool *taken)
{
#if PetscDefined(HAVE_CUDA) && GPUCSR_STREAM_IS_TOLD
  GPUCSRDevice dev;
  char         why[512];
#endif

  PetscFunctionBegin;
  *taken = PETSC_FALSE;
#if PetscDefined(HAVE_CUDA) && GPUCSR_STREAM_IS_TOLD
  if (!GPUCSR_SCALAR_IS_DOUBLE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRDeviceOpen("cuda", &dev, why, sizeof(why)));
  *taken = (PetscBool)(dev && dev->ops->kernels);
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, taken, 1, GPUCSR_MPI_BOOL, MPI_LAND, PetscObjectComm((PetscObject)v)));
  if (*taken) PetscCall(VecSetType(v, VECCUDA));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CreateVecGPU(Vec v, PetscBool mpi)
{
  Vec_GPU       *g;
  PetscBool      cuda;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(TakeCUDA(v, &cuda));
  if (cuda) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscLayoutSetUp(v->map));
  PetscCall(PetscNew(&g)); /* first the parts that may fail: a vector is complete, or has no type */
  ierr = VecGPUEntriesCreate_Private(v->map->n, &g->entries);
  if (!ierr) ierr = MakeParent(v, mpi);
  if (ierr) {
    PetscCall(VecGPUEntriesRelease_Private(&g->entries, NULL));
    PetscCall(PetscFree(g));
  }
  PetscCall(ierr);
  ((VecGPUHeader *)v->data)->array           = NULL;
  ((VecGPUHeader *)v->data)->array_allocated = (PetscScalar *)g;
  v->offloadmask                             = PETSC_OFFLOAD_UNALLOCATED;
  v->petscnative                             = PETSC_FALSE;
  VecGPUParents[mpi]                         = *v->ops;
  g->mpi                                     = mpi;
  made++;

#if GPUCSR_SCALAR_IS_DOUBLE
  VecGPUOperations_Private(v->ops);
#endif
  VecGPUPartOperations_Private(v->ops);
  v->ops->destroy           = VecDestroy_GPU;
  v->ops->view              = VecView_GPU;
  v->ops->getarray          = VecGetArray_GPU;
  v->ops->restorearray      = VecRestoreArray_GPU;
  v->ops->getarrayread      = VecGetArrayRead_GPU;
  v->ops->restorearrayread  = VecRestoreArrayRead_GPU;
  v->ops->getarraywrite     = VecGetArrayWrite_GPU;
  v->ops->restorearraywrite = VecRestoreArray_GPU;
  v->ops->placearray        = VecPlaceArray_GPU;
  v->ops->resetarray        = VecResetArray_GPU;
  v->ops->replacearray      = VecReplaceArray_GPU;
#if GPUCSR_VECMPI_MAPS_GHOSTS
  v->ops->getlocaltoglobalmapping = NULL; /* a VECGPU has no ghosts */
#endif
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
  const PetscMPIInt size = GPUCSRSizeOf(PetscObjectComm((PetscObject)v));

  PetscFunctionBegin;
  PetscCheck(size == 1, PetscObjectComm((PetscObject)v), PETSC_ERR_ARG_WRONG, "Cannot create VECSEQGPU on more than one process: use VECGPU or VECMPIGPU");
  PetscCall(CreateVecGPU(v, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  VECMPIGPU - "mpigpu", the form of `VECGPU` for any number of processes

  Level: beginner

.seealso: `VECGPU`, `VECSEQGPU`
M*/
static PetscErrorCode VecCreate_MPIGPU(Vec v)
{
  return CreateVecGPU(v, PETSC_TRUE);
}

/*MC
  VECGPU - VECGPU = "gpu" - A `VECSEQGPU` on one process, and a `VECMPIGPU` otherwise: a vector with its entries on an NVIDIA GPU.

  Options Database Keys:
+ -vec_type gpu                          - makes a vector of this type if the program calls `VecSetFromOptions()`
. -dm_vec_type gpu                       - makes a `DM` create vectors of this type
. -mat_gpucsr_backend (auto|cuda|host)   - place of the entries: with auto, the GPU if the process has one
. -vec_gpu_reduce (auto|shared|mpi)      - way of reductions over ranks, see docs/vectors.md
- -vec_gpu_separate                      - on the host backend, keep two copies as on a GPU, for tests

  Level: beginner

  Notes:
  The type works in a PETSc with or without CUDA. Vector operations and products with `MATGPUCSR` work on the device's array. PETSc and the program get the host's array.
  `VecGetArrayRead()` copies the entries to the host after a change on the device. `VecGetArray()` does the same, and the device copies the
  entries back at their next use. `VecGetArrayWrite()` causes only the copy back. `VecGPUGetInfo()` counts the copies.

  In a PETSc with CUDA (3.20 or later) and a working device the type is `VECCUDA` under another name; `VecGPUGetArray()` and similar functions support both.

  `VecSetRandom()` draws numbers on the host, the same as for other vector types.

.seealso: `MATGPUCSR`, `VecGPUGetInfo()`, `VECSTANDARD`
M*/
static PetscErrorCode VecCreate_GPU(Vec v)
{
  VecGPUEntries *kept = NULL;
  PetscContainer c;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)v, entrieskept, (PetscObject *)&c));
  if (c && IsNamed(v)) { /* PETSc keeps the name of the previous type */
    PetscCall(PetscContainerGetPointer(c, (void **)&kept));
    kept->references++;
  }
  if (c) PetscCall(PetscObjectCompose((PetscObject)v, entrieskept, NULL));
  PetscCall(CreateVecGPU(v, (PetscBool)(GPUCSRSizeOf(PetscObjectComm((PetscObject)v)) > 1))); /* not VecSetType(), which would confuse a remade vector with the old vector */
  if (kept && VecGPUIs(v)) {
    PetscCall(VecGPUEntriesRelease_Private(&VecGPUOf(v)->entries, kept));
    VecGPUOf(v)->entries = kept;
  } else if (kept) PetscCall(VecGPUEntriesRelease_Private(&kept, NULL)); /* VECCUDA took the vector */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  PETSc and SLEPc compare a vector's type name to decide on fast paths: MatCreateDenseFromVecType(), BVSVEC and BVMAT of SLEPc, VecGhostGetLocalForm(), and a debugging PETSc wherever two vectors meet. So a
  vector that a program gets without asking for type gpu has the standard type's name. VecSetType() in a PETSc with devices would act on the name and convert the vector in place.
*/
PetscErrorCode VecGPUSetTypeUnasked(Vec v)
{
  const PetscMPIInt size = GPUCSRSizeOf(PetscObjectComm((PetscObject)v));

  PetscFunctionBegin;
  PetscCall(VecSetType(v, size > 1 ? VECMPIGPU : VECSEQGPU));
  if (!PetscDefined(HAVE_DEVICE)) PetscCall(PetscObjectChangeTypeName((PetscObject)v, size > 1 ? VECMPI : VECSEQ));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  VecGPUGetInfo - Get the place of a `VECGPU` vector on this rank, and its copies between host and device

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
  const Vec_GPU       *g;
  const VecGPUEntries *e;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(v, VEC_CLASSID, 1);
  PetscAssertPointerCompat(info, 2);
  if (!VecGPUIs(v)) {
    GPUCSRDevice dev;

    PetscCall(VecGPUForeign_Private(v, &dev));
    PetscCheck(dev, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "Needs a vector on a device, for example of type gpu or cuda, not %s", ((PetscObject)v)->type_name);
    *info = (VecGPUInfo){.backend = dev->ops->name, .ondevice = PETSC_TRUE};
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  g              = VecGPUOf(v);
  e              = g->entries;
  *info          = e->info;
  info->backend  = e->dev && !g->bound && !e->full ? e->dev->ops->name : "host";
  info->onhost   = (PetscBool)(e->valid != VEC_GPU_DEVICE);
  info->ondevice = (PetscBool)(e->valid != VEC_GPU_HOST);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPUTypeAsked(VecType *type)
{
  static const char *const words[]  = {VECGPU, VECSEQGPU, VECMPIGPU, VECSTANDARD, VECSEQ, VECMPI};
  char                     word[64] = "";

  PetscFunctionBegin;
  *type = NULL;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-vec_type", word, sizeof(word), NULL));
  for (int k = 0; k < 6; k++) {
    if (!strcmp(word, words[k])) *type = k < 3 ? VECGPU : VECSTANDARD;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPUInitialize(void)
{
  PetscFunctionBegin;
  made = 0;
  PetscCall(PetscMemzero(&crossed, sizeof(crossed)));
  PetscCall(VecGPUEntriesInitialize_Private());
  PetscCall(VecRegister(VECSEQGPU, VecCreate_SeqGPU));
  PetscCall(VecRegister(VECMPIGPU, VecCreate_MPIGPU));
  PetscCall(VecRegister(VECGPU, VecCreate_GPU));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void VecGPUCrossed(PetscBool up, size_t n)
{
  *(up ? &crossed.uploads : &crossed.downloads) += 1;
  *(up ? &crossed.uploaded : &crossed.downloaded) += (double)(n * sizeof(double));
}

PetscErrorCode VecGPUReport(MPI_Comm comm, FILE *fp)
{
  const VecGPUInfo sum = VecGPUEntriesCount_Private();
  double           n[] = {(double)made, (double)sum.uploads, (double)sum.downloads, sum.uploaded, sum.downloaded, (double)sum.forced, (double)crossed.uploads, (double)crossed.downloads, crossed.uploaded, crossed.downloaded};

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, n, 10, MPI_DOUBLE, MPI_SUM, comm));
  if (n[0] > 0) PetscCall(PetscFPrintf(comm, fp, "VECGPU: %.0f vectors made; copied to the device %.0f times, %.3g MB; to the host %.0f times, %.3g MB\n", n[0], n[1], 1e-6 * n[3], n[2], 1e-6 * n[4]));
  if (n[6] + n[7] > 0) PetscCall(PetscFPrintf(comm, fp, "VECGPU: host vectors of products and solves copied to the device %.0f times, %.3g MB; to the host %.0f times, %.3g MB\n", n[6], 1e-6 * n[8], n[7], 1e-6 * n[9]));
  if (n[5] > 0)
    PetscCall(PetscFPrintf(comm, fp, "VECGPU: %.0f of these copies were made because the program held an array of a vector while the device worked on it: restore it (VecRestoreArray(); in petsc4py delete x.array's) to save them\n", n[5]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

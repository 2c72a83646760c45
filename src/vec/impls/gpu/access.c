/*
  The array of a vector on its device, for programs and for this library. Vectors of PETSc's device types, VECCUDA and VECKOKKOS, are used in place: PETSc's and VECGPU's streams wait for each other; the
  host does not wait.
*/
#include "vecgpuimpl.h"
#if PetscDefined(HAVE_CUDA)
  #include <petscdevice.h>
#endif

#if PetscDefined(HAVE_CUDA) && GPUCSR_STREAM_IS_TOLD
static GPUCSREvent  event = NULL;
static GPUCSRDevice of    = NULL; /* the device of the event */

static PetscErrorCode EventFree(void)
{
  PetscFunctionBegin;
  if (event && !of->failed[0]) PetscCall(of->ops->eventdestroy(of->id, event));
  event = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

  #define CUDA_STREAM_LEGACY ((GPUCSRStream)1) /* cudaStreamLegacy */

/* PETSc's default is NULL: CUDA's default stream, which has another handle too */
PetscErrorCode VecGPUPetscStream(GPUCSRStream *s)
{
  PetscDeviceContext dctx;
  void              *handle = NULL;

  PetscFunctionBegin;
  PetscCall(PetscDeviceContextGetCurrentContext(&dctx));
  PetscCall(PetscDeviceContextGetStreamHandle(dctx, &handle));
  *s = *(GPUCSRStream *)handle;
  if (!*s) *s = CUDA_STREAM_LEGACY;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* before: the library's stream waits for PETSc's stream; otherwise PETSc's stream waits for the library's. PETSc before 3.20 hides its stream, and has none without CUDA: then the whole device is awaited */
static PetscErrorCode Wait(GPUCSRDevice dev, PetscBool before)
{
  PetscFunctionBegin;
#if PetscDefined(HAVE_CUDA) && GPUCSR_STREAM_IS_TOLD
  {
    GPUCSRStream s;

    PetscCall(VecGPUPetscStream(&s));
    if (!event) {
      PetscCall(dev->ops->eventcreate(dev->id, PETSC_FALSE, &event));
      PetscCall(GPUCSRRegisterFinalize(GPUCSR_FINAL_VEC, EventFree));
    }
    of = dev;
    PetscCall(dev->ops->eventrecord(dev->id, event, before ? s : dev->stream));
    PetscCall(dev->ops->streamwait(dev->id, before ? dev->stream : s, event));
  }
#else
  PetscCall(GPUCSRDeviceSynchronize(dev));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device of v, of another type than VECGPU: the process' device; NULL if v is on the host */
PetscErrorCode VecGPUForeign_Private(Vec v, GPUCSRDevice *dev)
{
  const PetscScalar *a     = NULL;
  PetscMemType       mtype = PETSC_MEMTYPE_HOST;
  char               why[512];

  PetscFunctionBegin;
  *dev = NULL;
  if (!GPUCSR_SCALAR_IS_DOUBLE || !(v->ops->getarrayreadandmemtype || v->ops->getarrayandmemtype)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetArrayReadAndMemType(v, &a, &mtype));
  PetscCall(VecRestoreArrayReadAndMemType(v, &a));
  if (PetscMemTypeDevice(mtype)) PetscCall(GPUCSRDeviceOpen("cuda", dev, why, sizeof(why)));
  if (*dev && !(*dev)->ops->separate) *dev = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Lends the array of a vector of any type, for work in the order of the library's stream: its array on dev, or on the host if dev is NULL. The array of no vector is NULL.
*/
PetscErrorCode VecGPUGet_Private(GPUCSRDevice dev, Vec v, VecGPUAccess access, double **array)
{
  PetscScalar *a = NULL;

  PetscFunctionBegin;
  *array = NULL;
  if (!v) PetscFunctionReturn(PETSC_SUCCESS);
  if (dev && VecGPUIs(v)) {
    if (access != VEC_GPU_WRITE) PetscCall(VecGPUDeviceRead_Private(v));
    if (access != VEC_GPU_READ) PetscCall(VecGPUDeviceWrite_Private(v));
    *array = VecGPUDeviceOf(v);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (access == VEC_GPU_READ) PetscCall(dev ? VecGetArrayReadAndMemType(v, (const PetscScalar **)&a, NULL) : VecGetArrayRead(v, (const PetscScalar **)&a));
  else if (access == VEC_GPU_WRITE) PetscCall(dev ? VecGetArrayWriteAndMemType(v, &a, NULL) : VecGetArrayWrite(v, &a));
  else PetscCall(dev ? VecGetArrayAndMemType(v, &a, NULL) : VecGetArray(v, &a));
  *array = (double *)a;
  if (!dev) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(dev->ops->activate(dev->id));
  PetscCall(Wait(dev, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode VecGPURestore_Private(GPUCSRDevice dev, Vec v, VecGPUAccess access, double **array)
{
  PetscScalar *a = (PetscScalar *)*array;

  PetscFunctionBegin;
  *array = NULL;
  if (!v) PetscFunctionReturn(PETSC_SUCCESS);
  if (dev && VecGPUIs(v)) {
    if (access != VEC_GPU_READ) PetscCall(VecGPUDeviceWritten_Private(v));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (dev) PetscCall(Wait(dev, PETSC_FALSE));
  if (access == VEC_GPU_READ) PetscCall(dev ? VecRestoreArrayReadAndMemType(v, (const PetscScalar **)&a) : VecRestoreArrayRead(v, (const PetscScalar **)&a));
  else if (access == VEC_GPU_WRITE) PetscCall(dev ? VecRestoreArrayWriteAndMemType(v, &a) : VecRestoreArrayWrite(v, &a));
  else PetscCall(dev ? VecRestoreArrayAndMemType(v, &a) : VecRestoreArray(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- for programs */

/* The device of an array that can be lent */
static PetscErrorCode Device(Vec v, GPUCSRDevice *dev)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(v, VEC_CLASSID, 1);
  PetscCall(VecGPUGetDevice(v, dev));
  PetscCheck(*dev || VecGPUIs(v), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "Needs a vector on a device, for example of type gpu or cuda, not %s: VecGetArrayAndMemType() has the array of any type", ((PetscObject)v)->type_name);
  PetscCheck(*dev, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "This vector has no array on a device: it is bound to the CPU, or the device has no memory for it; use VecGetArray() for the array on the host");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Lend(Vec v, VecGPUAccess access, double **a)
{
  GPUCSRDevice dev;

  PetscFunctionBegin;
  PetscCall(Device(v, &dev));
  PetscAssertPointerCompat(a, 2);
  if (access != VEC_GPU_READ) PetscCall(VecSetErrorIfLocked(v, 1));
  PetscCall(VecGPUGet_Private(dev, v, access, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Takes an array back */
static PetscErrorCode Return(Vec v, VecGPUAccess access, double **a)
{
  GPUCSRDevice dev;
  double      *array = a ? *a : NULL;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(v, VEC_CLASSID, 1);
  if (VecGPUIs(v)) dev = VecGPUOf(v)->entries->dev;
  else {
    PetscCall(VecGPUForeign_Private(v, &dev));
    PetscCheck(dev, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "This vector of type %s has left the device while the program held its array", ((PetscObject)v)->type_name);
  }
  if (dev) PetscCall(VecGPURestore_Private(dev, v, access, &array));
  if (VecGPUIs(v) && access != VEC_GPU_READ) PetscCall(PetscObjectStateIncrease((PetscObject)v));
  if (a) *a = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  VecGPUGetArray - Get the array of a `VECGPU` on its device, with the entries, to read and to write

  Logically Collective; No Fortran Support

  Input Parameter:
. v - the vector

  Output Parameter:
. a - the array on the device

  Level: advanced

  Notes:
  Vector operations and products work in the order of one stream (`VecGPUGetStream()`), and do not wait. Work on the array in the same stream
  needs no synchronisation; other work must wait for the stream before, and be complete before `VecGPURestoreArray()`.

  Do not touch the host's array between the two calls. Earlier host pointers stay consistent: the array begins with values written
  through such pointers, and `VecGPURestoreArray()` copies the results to the host.

  On the host backend the array is in host memory; `VecGPUGetInfo()` tells the backend.

.seealso: `VECGPU`, `VecGPURestoreArray()`, `VecGPUGetArrayRead()`, `VecGPUGetArrayWrite()`, `VecGPUGetStream()`, `VecGetArray()`
@*/
PetscErrorCode VecGPUGetArray(Vec v, double **a)
{
  return Lend(v, VEC_GPU_CHANGE, a);
}

/*@C
  VecGPURestoreArray - Restore an array from `VecGPUGetArray()` with its new entries

  Logically Collective; No Fortran Support

  Input Parameters:
+ v - the vector
- a - the array; `NULL` afterwards

  Level: advanced

.seealso: `VECGPU`, `VecGPUGetArray()`
@*/
PetscErrorCode VecGPURestoreArray(Vec v, double **a)
{
  return Return(v, VEC_GPU_CHANGE, a);
}

/*@C
  VecGPUGetArrayRead - Get the array of a `VECGPU` on its device, to read

  Not Collective; No Fortran Support

  Input Parameter:
. v - the vector

  Output Parameter:
. a - the array on the device

  Level: advanced

  Note:
  The host's copy stays valid. See `VecGPUGetArray()` for the order of work.

.seealso: `VECGPU`, `VecGPURestoreArrayRead()`, `VecGPUGetArray()`, `VecGPUGetStream()`
@*/
PetscErrorCode VecGPUGetArrayRead(Vec v, const double **a)
{
  return Lend(v, VEC_GPU_READ, (double **)a);
}

/*@C
  VecGPURestoreArrayRead - Restore an array from `VecGPUGetArrayRead()`

  Not Collective; No Fortran Support

  Input Parameters:
+ v - the vector
- a - the array; `NULL` afterwards

  Level: advanced

.seealso: `VECGPU`, `VecGPUGetArrayRead()`
@*/
PetscErrorCode VecGPURestoreArrayRead(Vec v, const double **a)
{
  return Return(v, VEC_GPU_READ, (double **)a);
}

/*@C
  VecGPUGetArrayWrite - Get the array of a `VECGPU` on its device, to write every entry; the old contents are undefined

  Logically Collective; No Fortran Support

  Input Parameter:
. v - the vector

  Output Parameter:
. a - the array on the device

  Level: advanced

  Note:
  Nothing is copied. See `VecGPUGetArray()` for the order of work.

.seealso: `VECGPU`, `VecGPURestoreArrayWrite()`, `VecGPUGetArray()`, `VecGPUGetStream()`
@*/
PetscErrorCode VecGPUGetArrayWrite(Vec v, double **a)
{
  return Lend(v, VEC_GPU_WRITE, a);
}

/*@C
  VecGPURestoreArrayWrite - Restore an array from `VecGPUGetArrayWrite()` with its new entries

  Logically Collective; No Fortran Support

  Input Parameters:
+ v - the vector
- a - the array; `NULL` afterwards

  Level: advanced

.seealso: `VECGPU`, `VecGPUGetArrayWrite()`
@*/
PetscErrorCode VecGPURestoreArrayWrite(Vec v, double **a)
{
  return Return(v, VEC_GPU_WRITE, a);
}

/*@
  VecGPUPlaceArray - Let a `VECGPU` have its entries in an array of the program on the vector's device, without a copy

  Logically Collective; No Fortran Support

  Input Parameters:
+ v - the vector
- a - the array, with a number for each entry of this rank; its numbers become the vector's entries

  Level: advanced

  Notes:
  `VecResetArray()` gives the vector its own array again. The array has to exist until then, or until the vector is destroyed.

  Every operation leaves its result in the array, in the order of the stream (`VecGPUGetStream()`). A program that changes the array otherwise than between `VecGPUGetArray()` and `VecGPURestoreArray()`
  has to call `PetscObjectStateIncrease()`. Each request for the host's array copies the entries from `a`, and its restoration copies the entries back.

  This function waits for the device, so the program may have written the array in any stream. An array of another device, or of the host, is an error; on the host backend the array is one of the host.

.seealso: `VECGPU`, `VecResetArray()`, `VecPlaceArray()`, `VecGPUGetArray()`, `MatGPUCSRGetDevice()`
@*/
PetscErrorCode VecGPUPlaceArray(Vec v, double *a)
{
  const VecGPUEntries *e;
  VecGPUEntries       *placed;
  GPUCSRBool           there;

  PetscFunctionBegin;
  PetscValidHeaderSpecific(v, VEC_CLASSID, 1);
  PetscCheck(VecGPUIs(v), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "Needs a vector of type gpu, not %s: a VECCUDA has VecCUDAPlaceArray()", ((PetscObject)v)->type_name);
  e = VecGPUOf(v)->entries;
  PetscCheck(e->dev && !e->full && !VecGPUOf(v)->bound, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "This vector is on the host: VecPlaceArray() places an array there");
  PetscCheck(a || !v->map->n, PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "No array for %" PetscInt_FMT " entries", v->map->n);
  PetscCall(GPUCSRHolds(e->dev, a, &there));
  PetscCheck(there || !a || !e->dev->ops->separate, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The array at %p is the host's, and the vector is on a GPU: VecPlaceArray() places it", (void *)a);
  if (e->shared) {
    PetscCall(VecGPUEntriesPlace_Private(e, v->map->n, (PetscScalar *)a, &placed));
    placed->lent = PETSC_TRUE;
  } else {
    PetscCall(GPUCSRDeviceSynchronize(e->dev));
    PetscCall(VecGPUEntriesPlaceDevice_Private(e, v->map->n, a, &placed));
  }
  PetscCall(VecGPUExchange_Private(v, placed, 0));
  PetscCall(PetscObjectStateIncrease((PetscObject)v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  VecGPUGetStream - Get the stream of a `VECGPU`'s operations

  Not Collective; No Fortran Support

  Input Parameter:
. v - the vector

  Output Parameter:
. stream - the `cudaStream_t`; `NULL` on the host backend, where work is complete when a function returns

  Level: advanced

.seealso: `VECGPU`, `VecGPUGetArray()`
@*/
PetscErrorCode VecGPUGetStream(Vec v, void **stream)
{
  GPUCSRDevice dev;

  PetscFunctionBegin;
  PetscAssertPointerCompat(stream, 2);
  PetscCall(Device(v, &dev));
  *stream = (void *)dev->stream;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  VecGPUSynchronize - Wait for all work on the device of a `VECGPU`, including work of other libraries

  Not Collective

  Input Parameter:
. v - the vector

  Level: advanced

  Note:
  Needed before `VecGPURestoreArray()` if work on the vector's array is in another stream.

.seealso: `VECGPU`, `VecGPUGetArray()`, `VecGPUGetStream()`
@*/
PetscErrorCode VecGPUSynchronize(Vec v)
{
  GPUCSRDevice dev;

  PetscFunctionBegin;
  PetscCall(Device(v, &dev));
  PetscCall(dev->ops->activate(dev->id));
  PetscCall(dev->ops->synchronize(dev->id));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The arrays of operands. Vectors of PETSc's device types, VECCUDA and VECKOKKOS, are used in place: PETSc's and VECGPU's streams wait for each other; the host does not wait.
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

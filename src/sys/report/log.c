/*
  Events of -log_view. On a device whose backend knows ranges of a profiler (NVTX), each is one by the same name.
*/
#include "../gpucsrsys.h"

PetscErrorCode GPUCSRLogRegister(const char name[], PetscClassId classid, GPUCSRLogEvent *e)
{
  PetscFunctionBegin;
  e->name = name;
  PetscCall(PetscLogEventRegister(name, classid, &e->event));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRLogBegin(const GPUCSRLogEvent *e, GPUCSRDevice dev, void *object)
{
  PetscFunctionBegin;
  PetscCall(PetscLogEventBegin(e->event, object, 0, 0, 0));
  if (dev && dev->ops->range) (*dev->ops->range)(e->name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* dev: as at the beginning, whatever has become of it */
PetscErrorCode GPUCSRLogEnd(const GPUCSRLogEvent *e, GPUCSRDevice dev, void *object)
{
  PetscFunctionBegin;
  if (dev && dev->ops->range) (*dev->ops->range)(NULL);
  PetscCall(PetscLogEventEnd(e->event, object, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

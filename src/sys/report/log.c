/*
  Events of -log_view, also as ranges of a profiler (NVTX) if the device's backend supports ranges.
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

/* dev: as at the beginning, even if the device has failed since */
PetscErrorCode GPUCSRLogEnd(const GPUCSRLogEvent *e, GPUCSRDevice dev, void *object)
{
  PetscFunctionBegin;
  if (dev && dev->ops->range) (*dev->ops->range)(NULL);
  PetscCall(PetscLogEventEnd(e->event, object, 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

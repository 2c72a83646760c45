/*
  PETSc's preconditioners with an application on the device for vectors of type gpu. Each type is registered again under its own name: the wrapper makes PETSc's preconditioner and replaces its
  application. PETSc keeps everything else: other vectors, and cases that the device cannot run.
*/
#include "../petscprivate.h"
#include "../../../../sys/gpucsrsys.h"
#include "device.h"

static PetscErrorCode DeviceRelease(void *data)
{
  PCDevice d = (PCDevice)data;

  PetscFunctionBegin;
  if (d->dev) PetscCall((*d->ops->release)(d));
  d->dev   = NULL;
  d->fresh = d->possible = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For GPUCSRProbe() */
PetscErrorCode PCDeviceApplyPETSc(void *pc, Vec x, Vec y)
{
  GPUCSRWrap *w;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapGet((PetscObject)pc, &w));
  PetscCall((*w->petsc.pc.apply)((PC)pc, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCApply_Device(PC pc, Vec x, Vec y)
{
  PCDevice     d;
  GPUCSRDevice dev, other;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &d));
  PetscCall(VecGPUGetDevice(x, &dev));
  PetscCall(VecGPUGetDevice(y, &other));
  if (dev != other) dev = NULL;
  /* take the data of an application. If the device has no memory, PETSc's application continues */
  if (dev) {
    GPUCSRAttempt attempt;

    if (d->dev && d->dev != dev) PetscCall(DeviceRelease(d));
    if (!d->fresh) {
      d->dev = dev;
      GPUCSRTry(&attempt, (*d->ops->take)(pc, d, x, &d->possible));
      PetscCheck(!attempt.error || attempt.error == PETSC_ERR_MEM, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
      if (attempt.error) {
        PetscCall(PetscInfo(pc, "Applications are PETSc's: %s\n", attempt.message));
        PetscCall(DeviceRelease(d));
      }
      d->fresh = PETSC_TRUE;
    }
  }
  if (dev && d->possible) PetscCall((*d->ops->apply)(pc, d, x, y));
  else PetscCall((*d->wrap->petsc.pc.apply)(pc, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCView_Device(PC pc, PetscViewer viewer)
{
  PCDevice  d;
  PetscBool ascii;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &d));
  PetscCall((*d->wrap->petsc.pc.view)(pc, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (ascii && d->fresh) PetscCall(PetscViewerASCIIPrintf(viewer, "  Applications to vectors of type gpu %s%s\n", d->possible ? "run on backend " : "are PETSc's", d->possible ? d->dev->ops->name : ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc sets some of its operations when the PC is set up */
static PetscErrorCode PCSetUp_Device(PC pc)
{
  PCDevice d;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &d));
  d->fresh = PETSC_FALSE;
  PetscCall((*d->wrap->petsc.pc.setup)(pc));
  PetscCall(GPUCSRWrapOver((PetscObject)pc, d->wrap));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Options may change what an application does */
static PetscErrorCode PCSetFromOptions_Device(PC pc, GPUCSROptionItems PetscOptionsObject)
{
  PCDevice d;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &d));
  d->fresh = d->settled = PETSC_FALSE;
  PetscCall((*d->wrap->petsc.pc.setfromoptions)(pc, PetscOptionsObject));
  PetscCall(GPUCSRWrapOver((PetscObject)pc, d->wrap));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DeviceMade(PetscObject pc, GPUCSRWrap *w)
{
  const PCDevice d = (PCDevice)w->data;

  PetscFunctionBegin;
  d->ops = !strcmp(w->type->type, PCPBJACOBI) ? &PCDeviceOps_PBJacobi : !strcmp(w->type->type, PCVPBJACOBI) ? &PCDeviceOps_VPBJacobi : &PCDeviceOps_FieldSplit;
  PetscCheck(d->ops->bytes <= sizeof(d->data), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Data of %zu bytes have no room", d->ops->bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define WRAP(name, petsc) \
  GPUCSR_WRAP(PC, name, petsc, .ops.pc = {.setup = PCSetUp_Device, .apply = PCApply_Device, .view = PCView_Device, .setfromoptions = PCSetFromOptions_Device}, .bytes = sizeof(struct _n_PCDevice), .release = DeviceRelease, .made = DeviceMade)
WRAP(PBJacobi, PCPBJACOBI)
WRAP(FieldSplit, PCFIELDSPLIT)
WRAP(VPBJacobi, PCVPBJACOBI)

GPUCSR_WRAP_REGISTER(PCDeviceInitialize_Private, PCList, &wrap_PBJacobi, &wrap_FieldSplit, &wrap_VPBJacobi)

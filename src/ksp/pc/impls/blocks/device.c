/*
  PETSc's preconditioners whose application to vectors of type gpu is ours. Their types are registered again under their own names; ours make PETSc's, and step in where the preconditioner is applied. What
  is not possible on the device, and all other vectors, are PETSc's.
*/
#include <petsc/private/pcimpl.h>
#include "../../../../sys/gpucsrsys.h"
#include "device.h"

static const char KEY[] = "PCDeviceGPUCSR";

/* Our operations of a type, our function that makes it, and PETSc's */
typedef struct {
  const PCDeviceOps *ops;
  PetscErrorCode (*ours)(PC);
  PetscErrorCode (*create)(PC);
} Type;

static PetscErrorCode PCCreate_PBJacobi_GPUCSR(PC), PCCreate_FieldSplit_GPUCSR(PC);
static Type           types[] = {
            {&PCDeviceOps_PBJacobi,   PCCreate_PBJacobi_GPUCSR,   NULL},
            {&PCDeviceOps_FieldSplit, PCCreate_FieldSplit_GPUCSR, NULL},
};
static PCDevice living = NULL;

static PetscErrorCode DeviceOf(PC pc, PCDevice *d)
{
  PetscContainer c;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)pc, KEY, (PetscObject *)&c));
  PetscCheck(c, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A PC of type %s has lost our data", ((PetscObject)pc)->type_name);
  PetscCall(PetscContainerGetPointer(c, (void **)d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const PCDeviceOps *OpsOf(PC pc)
{
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++)
    if (!strcmp(types[k].ops->name, ((PetscObject)pc)->type_name)) return types[k].ops;
  return NULL;
}

static PetscErrorCode Release(PC pc, PCDevice d)
{
  const PCDeviceOps *ops = OpsOf(pc);

  PetscFunctionBegin;
  if (d->dev) PetscCall((*ops->release)(d));
  d->dev   = NULL;
  d->fresh = d->possible = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device of an application: that of both vectors */
static PetscErrorCode Common(Vec x, Vec y, GPUCSRDevice *dev)
{
  GPUCSRDevice other;

  PetscFunctionBegin;
  PetscCall(VecGPUGetDevice(x, dev));
  PetscCall(VecGPUGetDevice(y, &other));
  if (*dev != other) *dev = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Takes what an application needs. Where the device has no memory, PETSc's goes on */
static PetscErrorCode Take(PC pc, PCDevice d, GPUCSRDevice dev, Vec x)
{
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  if (d->dev && d->dev != dev) PetscCall(Release(pc, d));
  if (d->fresh) PetscFunctionReturn(PETSC_SUCCESS);
  d->dev = dev;
  GPUCSRTry(&attempt, (*OpsOf(pc)->take)(pc, d, x, &d->possible));
  PetscCheck(!attempt.error || attempt.error == PETSC_ERR_MEM, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
  if (attempt.error) {
    PetscCall(PetscInfo(pc, "Applications are PETSc's: %s\n", attempt.message));
    PetscCall(Release(pc, d));
  }
  d->fresh = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCApply_Device(PC pc, Vec x, Vec y)
{
  PCDevice     d;
  GPUCSRDevice dev;

  PetscFunctionBegin;
  PetscCall(DeviceOf(pc, &d));
  PetscCall(Common(x, y, &dev));
  if (dev) PetscCall(Take(pc, d, dev, x));
  if (dev && d->possible) PetscCall((*OpsOf(pc)->apply)(pc, d, x, y));
  else PetscCall((*d->petsc.apply)(pc, x, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCReset_Device(PC pc)
{
  PCDevice d;

  PetscFunctionBegin;
  PetscCall(DeviceOf(pc, &d));
  PetscCall(Release(pc, d));
  if (d->petsc.reset) PetscCall((*d->petsc.reset)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCDestroy_Device(PC pc)
{
  PCDevice d;
  PetscErrorCode (*destroy)(PC);

  PetscFunctionBegin;
  PetscCall(DeviceOf(pc, &d));
  destroy = d->petsc.destroy;
  PetscCall(Release(pc, d));
  *d->previous = d->next;
  if (d->next) d->next->previous = d->previous;
  PetscCall(PetscFree(d->data));
  PetscCall(PetscFree(d));
  PetscCall(PetscObjectCompose((PetscObject)pc, KEY, NULL));
  PetscCall((*destroy)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCView_Device(PC pc, PetscViewer viewer)
{
  PCDevice  d;
  PetscBool ascii;

  PetscFunctionBegin;
  PetscCall(DeviceOf(pc, &d));
  PetscCall((*d->petsc.view)(pc, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (ascii && d->fresh) PetscCall(PetscViewerASCIIPrintf(viewer, "  Applications to vectors of type gpu %s%s\n", d->possible ? "run on backend " : "are PETSc's", d->possible ? d->dev->ops->name : ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCSetUp_Device(PC);

/* Ours over PETSc's, which sets some of its operations when it is set up */
static PetscErrorCode Wrap(PC pc, PCDevice d)
{
  struct _PCOps *o = pc->ops;

  PetscFunctionBegin;
#define WRAP(op, ours) \
  if (o->op != ours) { \
    d->petsc.op = o->op; \
    o->op       = ours; \
  }
  WRAP(setup, PCSetUp_Device)
  WRAP(reset, PCReset_Device)
  WRAP(destroy, PCDestroy_Device)
  WRAP(apply, PCApply_Device)
  if (o->view) WRAP(view, PCView_Device)
#undef WRAP
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCSetUp_Device(PC pc)
{
  PCDevice d;

  PetscFunctionBegin;
  PetscCall(DeviceOf(pc, &d));
  d->fresh = PETSC_FALSE;
  PetscCall((*d->petsc.setup)(pc));
  PetscCall(Wrap(pc, d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(PC pc, const Type *t)
{
  PCDevice       d;
  PetscContainer c;

  PetscFunctionBegin;
  PetscCall((*t->create)(pc));
  PetscCall(PetscNew(&d));
  PetscCall(PetscCalloc(t->ops->bytes, &d->data));
  PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &c));
  PetscCall(PetscContainerSetPointer(c, d));
  PetscCall(PetscObjectCompose((PetscObject)pc, KEY, (PetscObject)c));
  PetscCall(PetscContainerDestroy(&c));
  d->pc       = pc;
  d->next     = living;
  d->previous = &living;
  if (living) living->previous = &d->next;
  living = d;
  PetscCall(Wrap(pc, d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCCreate_PBJacobi_GPUCSR(PC pc)
{
  return Create(pc, &types[0]);
}

static PetscErrorCode PCCreate_FieldSplit_GPUCSR(PC pc)
{
  return Create(pc, &types[1]);
}

/* A type that the program has registered itself under one of these names is wrapped as well */
PetscErrorCode PCDeviceInitialize_Private(void)
{
  PetscFunctionBegin;
  if (!GPUCSR_SCALAR_IS_DOUBLE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCInitializePackage());
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    PetscErrorCode (*create)(PC) = NULL;

    PetscCall(PetscFunctionListFind(PCList, types[k].ops->name, &create));
    if (!create || create == types[k].ours) continue;
    types[k].create = create;
    PetscCall(PCRegister(types[k].ops->name, types[k].ours));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The devices go next */
PetscErrorCode PCDeviceFinalize_Private(void)
{
  PetscFunctionBegin;
  for (PCDevice d = living; d; d = d->next) PetscCall(Release(d->pc, d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

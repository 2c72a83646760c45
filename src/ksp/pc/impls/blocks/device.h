#pragma once

/*
  Preconditioners of PETSc, applied here to vectors of type gpu: a type a file, and a row of the list in device.c.
*/
#include "../../../wrap.h"
#include "../../../../mat/impls/gpucsr/product/operator.h"
#include "../mg/pass.h"

typedef struct _n_PCDevice *PCDevice;
struct _n_PCDevice {
  GPUCSRWrap                *wrap;
  const struct _PCDeviceOps *ops;
  GPUCSRDevice               dev;      /* holds the type's data */
  PetscBool                  fresh;    /* data were taken since PETSc's last set-up, */
  PetscBool                  possible; /* and serve */
  PetscBool                  settled;  /* no option or function has changed the application since */
  void                      *data[12]; /* the type's own struct, zeros at first */
};

typedef struct _PCDeviceOps {
  size_t bytes; /* of data */
  /* makes the data for applications to vectors like x; not possible: PETSc's application goes on */
  PetscErrorCode (*take)(PC, PCDevice, Vec x, PetscBool *possible);
  PetscErrorCode (*apply)(PC, PCDevice, Vec x, Vec y);
  PetscErrorCode (*release)(PCDevice);
} PCDeviceOps;

GPUCSR_INTERN const PCDeviceOps PCDeviceOps_PBJacobi, PCDeviceOps_VPBJacobi, PCDeviceOps_FieldSplit;

GPUCSR_INTERN PetscErrorCode PCDeviceApplyPETSc(void *pc, Vec, Vec);
GPUCSR_INTERN PetscErrorCode PCDeviceInitialize_Private(void);
GPUCSR_INTERN PetscErrorCode PCDirectInitialize_Private(void); /* pcdirect.c */
GPUCSR_INTERN PetscErrorCode PCJacobiInitialize_Private(void); /* pcjacobi.c */

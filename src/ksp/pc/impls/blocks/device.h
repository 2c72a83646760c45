#pragma once

/*
  Preconditioners of PETSc, applied here to vectors of type gpu: a type a file, and a row of the list in device.c.
*/
#include <petscpc.h>
#include "../../../../mat/impls/gpucsr/product/operator.h"
#include "../mg/pass.h"

typedef struct _n_PCDevice *PCDevice;
struct _n_PCDevice {
  struct {
    PetscErrorCode (*setup)(PC), (*reset)(PC), (*destroy)(PC), (*apply)(PC, Vec, Vec), (*view)(PC, PetscViewer);
  } petsc; /* PETSc's operations where the wrapper replaces them */
  PC           pc;
  GPUCSRDevice dev;             /* device of the data */
  PetscBool    fresh;           /* data taken since PETSc's last set-up */
  PetscBool    possible;        /* and serve */
  void        *data;            /* the type's own, zeros at first */
  PCDevice     next, *previous; /* list of the living: a device may be closed before they are destroyed */
};

typedef struct {
  const char *name;  /* PETSc's type */
  size_t      bytes; /* of data */
  /* takes the data to apply the PC to vectors like x; not possible: PETSc's application continues */
  PetscErrorCode (*take)(PC, PCDevice, Vec x, PetscBool *possible);
  PetscErrorCode (*apply)(PC, PCDevice, Vec x, Vec y);
  PetscErrorCode (*release)(PCDevice);
} PCDeviceOps;

GPUCSR_INTERN const PCDeviceOps PCDeviceOps_PBJacobi, PCDeviceOps_FieldSplit;

GPUCSR_INTERN PetscErrorCode PCDeviceInitialize_Private(void);
GPUCSR_INTERN PetscErrorCode PCDeviceFinalize_Private(void);

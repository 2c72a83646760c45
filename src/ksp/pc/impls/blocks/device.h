#pragma once

/*
  Preconditioners that are PETSc's but for the application to vectors of type gpu: a type a file, and a row of the list in device.c.
*/
#include <petscpc.h>
#include "../../../../mat/impls/gpucsr/product/operator.h"
#include "../mg/pass.h"

typedef struct _n_PCDevice *PCDevice;
struct _n_PCDevice {
  struct {
    PetscErrorCode (*setup)(PC), (*reset)(PC), (*destroy)(PC), (*apply)(PC, Vec, Vec), (*view)(PC, PetscViewer);
  } petsc; /* its operations, where ours stand */
  PC           pc;
  GPUCSRDevice dev;             /* of what is in data */
  PetscBool    fresh;           /* data were taken since PETSc's last set-up, */
  PetscBool    possible;        /* and serve */
  void        *data;            /* the type's own, zeros at first */
  PCDevice     next, *previous; /* living ones: their device may go before them */
};

typedef struct {
  const char *name;  /* PETSc's type */
  size_t      bytes; /* of data */
  /* takes what an application to vectors like x needs; not possible: PETSc's application goes on */
  PetscErrorCode (*take)(PC, PCDevice, Vec x, PetscBool *possible);
  PetscErrorCode (*apply)(PC, PCDevice, Vec x, Vec y);
  PetscErrorCode (*release)(PCDevice);
} PCDeviceOps;

GPUCSR_INTERN const PCDeviceOps PCDeviceOps_PBJacobi, PCDeviceOps_FieldSplit;

GPUCSR_INTERN PetscErrorCode PCDeviceInitialize_Private(void);
GPUCSR_INTERN PetscErrorCode PCDeviceFinalize_Private(void);

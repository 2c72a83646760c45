#pragma once

/*
  A bundle: the planes of a function as columns of a dense matrix, with rows distributed like the weights. This rank's rows are stored in blocks of
  columns, on the device or on the host, so that a new plane moves no old plane. The first column has the weights.
*/
#include <petscvec.h>
#include "../../../sys/gpucsrsys.h"

typedef struct {
  GPUCSRDevice dev; /* NULL: in host memory */
  PetscInt     n;   /* rows of this rank */
  PetscInt     columns, nblocks;
  double     **block;    /* device pointers if dev is set */
  char         why[512]; /* the reason if dev is NULL */
} Bundle;

GPUCSR_INTERN PetscErrorCode BundleCreate(PetscInt n, const char backend[], Bundle *);
GPUCSR_INTERN PetscErrorCode BundleDestroy(Bundle *);
GPUCSR_INTERN PetscErrorCode BundleSetWeights(Bundle *, Vec);
GPUCSR_INTERN PetscErrorCode BundleAdd(Bundle *, Vec, double dots[]);
GPUCSR_INTERN PetscErrorCode BundleKeep(Bundle *, PetscInt, const PetscInt[]);
GPUCSR_INTERN PetscErrorCode BundleStep(Bundle *, const double weight[], Vec);

#pragma once

/* PCGPUAMG for solvers, PCGAMG and the registration */
#include <petscpc.h>
#include "../../../../mat/impls/gpucsr/blackbox/amg/amg.h"
#include "../mg/cycle.h"

/* The aggregation of a rank's diagonal block, in host memory: a prolongator by rows, the near null space of its columns, and flags of columns without a vector */
typedef struct {
  PetscInt       columns, *i, *j;
  PetscScalar   *a;
  double        *near;
  unsigned char *dead;
} PCGPUAMGTentative;

GPUCSR_INTERN PetscErrorCode PCGPUAMGHierarchy_Private(Mat, const GPUAMGOptions *, PetscInt ns, const double *near, PetscBool whole, GPUAMG *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGTentativeMake_Private(Mat, const GPUAMGOptions *, PetscInt ns, const double *near, PCGPUAMGTentative *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGTentativeColumns_Private(Mat, const PCGPUAMGTentative *, PetscInt *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGTentativeMatrix_Private(Mat, PCGPUAMGTentative *, Mat *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGTentativeDestroy_Private(PCGPUAMGTentative *);

GPUCSR_INTERN PetscErrorCode PCGPUAMGCycleGet_Private(PC, GPUMGCycle **, PetscInt *version);
GPUCSR_INTERN PetscErrorCode PCGPUAMGFlexible_Private(PC, PetscBool *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGInitialize_Private(void);

#pragma once

/* PCGPUAMG as solvers and the registration see it */
#include <petscpc.h>
#include "../mg/cycle.h"

GPUCSR_INTERN PetscErrorCode PCGPUAMGCycleGet_Private(PC, GPUMGCycle **, PetscInt *version);
GPUCSR_INTERN PetscErrorCode PCGPUAMGSmall_Private(PC, GPUMGCycle **);
GPUCSR_INTERN PetscErrorCode PCGPUAMGInitialize_Private(void);

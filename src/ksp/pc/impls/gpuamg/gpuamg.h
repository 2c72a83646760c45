#pragma once

/* PCGPUAMG as solvers and the registration see it */
#include <petscpc.h>
#include "../mg/cycle.h"
#include "../../../../mat/impls/gpucsr/blackbox/amg/amg.h"

GPUCSR_INTERN PetscErrorCode    PCGPUAMGCycleGet_Private(PC, GPUMGCycle **, PetscInt *version);
GPUCSR_INTERN PetscErrorCode    PCGPUAMGInitialize_Private(void);
GPUCSR_INTERN const char *const PCGPUAMGPrecisions[];
GPUCSR_INTERN PetscErrorCode    PCGPUAMGRound_Private(GPUAMG *, GPUMGCycle *, const GPUCSROperator *, PetscInt precision, PetscBool *rounded);

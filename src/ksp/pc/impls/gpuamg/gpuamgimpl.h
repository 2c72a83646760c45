#pragma once

/* PCGPUAMG as the files of this folder see it */
#include "../petscprivate.h"
#include "../../../../sys/gpucsrsys.h"
#include "../../../../mat/impls/gpucsr/blackbox/amg/amg.h"
#include "gpuamg.h"

typedef struct _n_PC_GPUAMG PC_GPUAMG;
struct _n_PC_GPUAMG {
  GPUAMGOptions    o;
  PetscInt         nthreshold, degree, cycles, tail;
  PetscReal        scale;
  PetscBool        reuse;
  GPUAMG           h;
  GPUMGCycle       cycle, transposed;
  PetscBool        taken, takent; /* the cycles are those of the hierarchy */
  GPUCSROperator   matrix;        /* that the hierarchy was made of */
  const void      *data;          /* of its plan's first array */
  PetscObjectId    near;          /* near null space */
  PetscObjectState nearstate;
  PetscBool        changed; /* options, since the hierarchy was made */
  PetscInt         version; /* another one whenever the cycle is another one */
  PetscInt         built, refreshed;
  GPUCSREvent      event;
  GPUCSRLiving     living;
};

/* options.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGSettersCompose_Private(PC, PetscBool);
GPUCSR_INTERN PetscErrorCode PCGPUAMGSetFromOptions_Private(PC, GPUCSROptionItems);

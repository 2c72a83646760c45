#pragma once

/* The aggregates of PCGAMG's type agg before they become PETSc's lists */
#include "../../../../mat/impls/gpucsr/sparse/coarsen.h"

GPUCSR_INTERN PetscErrorCode PCGAMGCreateGraph_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGAMGCoarsen_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGAMGCoarsenerOfOthers_Private(PC, PetscBool *);
GPUCSR_INTERN PetscErrorCode PCGAMGAggregatesTake_Private(PetscCoarsenData *, GPUCSRAggregates *, PetscBool *);
GPUCSR_INTERN PetscErrorCode PCGAMGAggregatesForget_Private(void);

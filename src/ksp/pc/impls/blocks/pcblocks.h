#pragma once

/*
  PCBJACOBI and PCASM with the blocks of a process solved together on the device.
*/
#include <petscpc.h>
#include "../../../../mat/impls/gpucsr/product/operator.h"

GPUCSR_INTERN PetscErrorCode PCBlocksInitialize_Private(void);
GPUCSR_INTERN PetscErrorCode PCBlocksFactor_Private(PC, Mat *F);

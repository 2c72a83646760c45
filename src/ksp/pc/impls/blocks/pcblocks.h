#pragma once

/*
  PCBJACOBI and PCASM with the blocks of a process solved together on the device; and the factor of any PC.
*/
#include <petscpc.h>
#include "../../../../mat/impls/gpucsr/product/operator.h"

GPUCSR_INTERN PetscErrorCode PCBlocksInitialize_Private(void);
GPUCSR_INTERN PetscErrorCode PCFactorNow_Private(PC, Mat *F);
GPUCSR_INTERN PetscErrorCode PCFactorOf_Private(PC, Mat *F);

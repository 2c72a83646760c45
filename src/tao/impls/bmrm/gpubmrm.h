#pragma once

/* The Tao type as the registration sees it */
#include "../../../sys/gpucsrsys.h"

GPUCSR_INTERN PetscErrorCode TaoGPUBMRMRegister(void);

#pragma once

/* Registration of TAOGPUBMRM */
#include "../../../sys/gpucsrsys.h"

GPUCSR_INTERN PetscErrorCode TaoGPUBMRMRegister(void);

#pragma once

/* TAOGPUBMRM, for the one who registers it */
#include "../../../sys/gpucsrsys.h"

GPUCSR_INTERN PetscErrorCode TaoGPUBMRMRegister(void);

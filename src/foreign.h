#pragma once

/* A library in the wrong PETSc */
#include "sys/gpucsrsys.h"

GPUCSR_INTERN PetscErrorCode GPUCSRForeign(char[], size_t);
GPUCSR_INTERN PetscErrorCode GPUCSRForeignNames(void);

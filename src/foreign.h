#pragma once

/* A library that does not fit the PETSc that loads it */
#include "sys/gpucsrsys.h"

GPUCSR_INTERN PetscErrorCode GPUCSRForeign(char[], size_t);
GPUCSR_INTERN PetscErrorCode GPUCSRForeignNames(void);

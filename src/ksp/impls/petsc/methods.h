#pragma once

/* PETSc's own Krylov methods, wrapped where they and device vectors do not fit */
#include "../../../sys/gpucsrsys.h"

GPUCSR_INTERN PetscErrorCode KSPMethodsInitialize_Private(void);

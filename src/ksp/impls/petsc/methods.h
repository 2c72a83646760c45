#pragma once

/* PETSc's own Krylov methods, wrapped where they and device vectors do not fit */
#include <petscksp.h>
#include "../../../sys/gpucsrsys.h"

GPUCSR_INTERN PetscErrorCode KSPMethodsInitialize_Private(void);
GPUCSR_INTERN PetscErrorCode KSPMethodsLooked_Private(KSP, PetscBool *monitors, PetscBool *test);
GPUCSR_INTERN PetscErrorCode KSPMethodsForget_Private(KSP, PetscBool *failed);
GPUCSR_INTERN PetscErrorCode KSPMethodsRemember_Private(KSP, PetscBool *failed);
GPUCSR_INTERN PetscErrorCode KSPMethodsTrust_Private(KSP, GPUCSRDevice *);

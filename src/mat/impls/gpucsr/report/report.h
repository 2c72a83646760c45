#pragma once

/* Interface between the files of the report */
#include "../type/gpucsrimpl.h"

GPUCSR_INTERN PetscErrorCode MatGPUCSRAppend_Private(char text[], size_t len, const char format[], ...);
GPUCSR_INTERN PetscErrorCode MatGPUCSRTotalsAdd_Private(const Mat_SeqGPUCSR *, const MatGPUCSRInfo *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRTotalsPrint_Private(MPI_Comm, FILE *, PetscInt);
GPUCSR_INTERN PetscErrorCode MatGPUCSRTotalsForget_Private(void);

#pragma once

/* Interface between the files of the report */
#include "../type/gpucsrimpl.h"

GPUCSR_INTERN PetscErrorCode MatGPUCSRAppend_Private(char text[], size_t len, const char format[], ...);

/* Predicted times: foretell.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRForetell_Private(GPUCSRDevice, const GPUCSRFeatures *, GPUCSRPrecision, const GPUCSRRequest *, double host, MatGPUCSRAdvice *);

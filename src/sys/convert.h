#pragma once

/* Conversion for the staged copies: a piece at a time, by one thread */
#include "gpucsrsys.h"

GPUCSR_INTERN PetscBool GPUCSRConvertible(GPUCSRType to, GPUCSRType from);
GPUCSR_INTERN double    GPUCSRConvertPiece(void *, GPUCSRType, const void *, GPUCSRType, size_t, size_t, double);

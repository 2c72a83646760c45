#pragma once

/* Interface between the products of sparse matrices on one rank (sparseproduct.c) and on several (mpisparse.c) */
#include "../type/gpucsrimpl.h"

GPUCSR_INTERN PetscErrorCode MatGPUCSRProductShape_Private(Mat C);
GPUCSR_INTERN PetscErrorCode MatGPUCSRProductAsked_Private(Mat C, PetscBool *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRProductOnHost_Private(Mat C, PetscErrorCode (*)(Mat));
GPUCSR_INTERN void           MatGPUCSRProductZero_Private(PetscScalar *, int64_t, int);

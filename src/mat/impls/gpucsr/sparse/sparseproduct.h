#pragma once

/* Interface between the products of sparse matrices on one rank (sparseproduct.c) and on several (mpisparse.c) */
#include "../type/gpucsrimpl.h"

GPUCSR_INTERN PetscErrorCode MatGPUCSRProductShape_Private(Mat C);
GPUCSR_INTERN PetscErrorCode MatGPUCSRProductAsked_Private(Mat C, PetscBool *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRProductOnHost_Private(Mat C, PetscErrorCode (*)(Mat));
GPUCSR_INTERN PetscErrorCode MatGPUCSRProductFailed_Private(Mat C, Mat A, Mat other, const GPUCSRAttempt *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRProductLengths_Private(const GPUCSRStorage *, PetscInt **);
GPUCSR_INTERN PetscErrorCode MatGPUCSRProductEntries_Private(Mat, const GPUCSRStorage *, const PetscInt ghost[], PetscBool values);
GPUCSR_INTERN PetscErrorCode MatGPUCSRProductMirror_Private(Mat, GPUCSRStorage *, PetscBool values);

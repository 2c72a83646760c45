#pragma once

/* Interface between the products of sparse matrices (products.c), on one rank (sparseproduct.c) and on several (mpisparse.c) */
#include "mpirows.h"

typedef struct {
  MatType type; /* of the factors and the result */
  /* for the factors of C on this rank: is there such a product? */
  PetscBool (*computes)(Mat C);
  /* collective: makes C and its data. Not ok on all ranks after an error for which the host takes over */
  PetscErrorCode (*symbolic)(Mat C, GPUCSRDevice, PetscBool *ok);
  /* do the data fit the blocks of A, B and C now? NULL: always */
  PetscErrorCode (*current)(Mat C, const Mat block[], GPUCSRDevice, PetscBool *yes);
  /* collective: the values of C */
  PetscErrorCode (*numeric)(Mat C, GPUCSRDevice, PetscBool *ok);
} GPUCSRProductWay;

GPUCSR_INTERN const GPUCSRProductWay GPUCSRProductWay_seq, GPUCSRProductWay_mpi;

GPUCSR_INTERN PetscErrorCode MatGPUCSRProductBlocks_Private(Mat C, PetscBool result, Mat b[6], int *n);
GPUCSR_INTERN PetscErrorCode MatGPUCSRProductShape_Private(Mat C);
GPUCSR_INTERN PetscErrorCode MatGPUCSRProductAgree_Private(void *C, const GPUCSRAttempt *, PetscBool *ok);
GPUCSR_INTERN PetscErrorCode MatGPUCSRProductLengths_Private(const GPUCSRStorage *, PetscInt **);
GPUCSR_INTERN PetscErrorCode MatGPUCSRProductEntries_Private(Mat, const GPUCSRStorage *, const PetscInt ghost[], PetscBool values);

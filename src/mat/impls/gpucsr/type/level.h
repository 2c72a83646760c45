#pragma once

/* Matrices of types gpucsrlevel (level.c) and mpigpucsrlevel (mpilevel.c) */
#include "../sparse/mpirows.h"

/* A->spptr */
typedef struct {
  Mat_GPUCSR            base;    /* the configuration of the later matrix */
  GPUCSROperator        side[2]; /* the matrix and its transpose; no device: there is no plan */
  GPUCSRRanks           ranks[2];
  const GPUCSRRanksCSR *rows;  /* of several ranks; NULL: of one process */
  void                 *owner; /* of the arrays and plans */
  PetscErrorCode (*release)(void *owner);
  PetscInt        *i, *j; /* of several ranks: this rank's rows on the host, */
  PetscScalar     *a;
  PetscObjectState at, blockat; /* with the values of this state; the same for the diagonal block */
} Mat_GPUCSRLevel;

GPUCSR_INTERN PetscErrorCode MatGPUCSRLevelBlock_Private(Mat, MPI_Comm, Mat *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRLevelAllToHost_Private(Mat, Mat *, GPUCSRAttempt *);
GPUCSR_INTERN void           MatGPUCSRLevelOfRanks_Private(Mat);

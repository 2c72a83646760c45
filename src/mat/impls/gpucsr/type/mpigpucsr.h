#pragma once

/* What the files of MATMPIAIJGPUCSR share: the type (mpigpucsr.c) and its products (mpiproduct.c) */
#include "../mpi/halo.h"

/*
  A pattern of A: what was prepared for one is made anew for another, by all ranks together. PETSc's number of it is a sum over blocks and
  ranks, which begins anew where the blocks are replaced, by all ranks too, so that it tells patterns apart only of the same two blocks.
*/
typedef struct {
  PetscObjectState state;
  PetscObjectId    block[2];
} Pattern;

typedef struct {
  Mat_GPUCSR       base;
  GPUCSRHalo       halo;
  Vec              lvec;      /* its entries as a vector, for the parent's products */
  Pattern          exchanged; /* for which the halo was made */
  Pattern          agreed[2]; /* for which the ranks told each other what became of each side, */
  PetscObjectState values[2]; /* and the values */
} Mat_MPIGPUCSR;

GPUCSR_INTERN PetscErrorCode MatGPUCSRHaloForget_Private(Mat_MPIGPUCSR *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRReadyTogether_Private(Mat, GPUCSRSide, PetscBool *, PetscBool *);
GPUCSR_INTERN PetscErrorCode MatProduct_MPIAIJGPUCSR(Mat, GPUCSRSide, Vec, Vec, Vec);
GPUCSR_INTERN PetscErrorCode MatAXPY_MPIAIJGPUCSR(Mat, PetscScalar, Mat, MatStructure, PetscBool *); /* mpiaxpy.c */

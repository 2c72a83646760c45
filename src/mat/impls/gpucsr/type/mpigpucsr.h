#pragma once

/* Private declarations of MATMPIAIJGPUCSR: the type (mpigpucsr.c) and its products (mpiproduct.c) */
#include "../mpi/halo.h"

/*
  A pattern of A: all ranks together make its data anew when it changes. PETSc's nonzerostate, a sum over blocks and ranks, begins anew when blocks
  are replaced, on all ranks: it distinguishes patterns of the same two blocks only.
*/
typedef struct {
  PetscObjectState state;
  PetscObjectId    block[2];
} Pattern;

typedef struct {
  Mat_GPUCSR       base;
  GPUCSRHalo       halo;
  Vec              lvec;      /* its entries as a vector, for the parent's products */
  Pattern          exchanged; /* pattern of the halo */
  Pattern          agreed[2]; /* patterns on which ranks agreed, by side, */
  PetscObjectState values[2]; /* and the values */
  PetscBool        quiet;     /* the next assembly has no values of other ranks */
} Mat_MPIGPUCSR;

GPUCSR_INTERN PetscErrorCode MatGPUCSRHaloForget_Private(Mat);
GPUCSR_INTERN PetscErrorCode MatGPUCSRHaloGraph_Private(Mat);
GPUCSR_INTERN PetscErrorCode MatGPUCSRReadyAllreduce_Private(Mat, GPUCSRSide, PetscBool *, PetscBool *);
GPUCSR_INTERN PetscErrorCode MatProduct_MPIAIJGPUCSR(Mat, GPUCSRSide, Vec, Vec, Vec);

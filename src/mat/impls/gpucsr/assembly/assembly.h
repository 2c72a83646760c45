#pragma once

/* A matrix assembled by coordinates (coo.c, coopattern.c), and the copy of its values that is the master (master.c) */
#include <petscsf.h>
#include "../type/mpigpucsr.h"
#include "../blackbox/assemble/assemble.h"

/* With backend auto the host goes on after a failure of the device, else it is an error */
static inline PetscBool MatGPUCSRMayFail(Mat A)
{
  return (PetscBool)(MatGPUCSRBackendOf(A) != MAT_GPUCSR_BACKEND_CUDA);
}
GPUCSR_INTERN PetscErrorCode MatGPUCSRKept_Private(Mat, GPUCSRDevice, const GPUCSRAttempt *);

/* Contributions to one block: the matrix of one process, or a rank's diagonal or off-diagonal block */
typedef struct {
  GPUCSRSum sum;           /* its device is the block's, or the host */
  int32_t  *first, *order; /* of the sum, on the host: for a device that fails */
} GPUCSRCOOBlock;

/* Contributions sent to other ranks, and received contributions, which follow the rank's own list */
typedef struct {
  PetscSF      sf; /* its leaves are sent, its roots received. NULL: a matrix of one process */
  PetscInt     nsent, nreceived;
  int32_t     *sent; /* places in the list */
  PetscScalar *out, *in;
  void        *dsent, *dout, *din; /* on the device: made at the first use */
} GPUCSRCOORanks;

/* Composed with the matrix, and shared with its duplicates */
typedef struct {
  PetscErrorCode (*preallocate)(Mat, PetscCount, PetscInt[], PetscInt[]); /* the parent's functions */
  PetscErrorCode (*set)(Mat, const PetscScalar[], InsertMode);
  MPI_Comm       comm;
  GPUCSRDevice   dev; /* NULL: none, or it is closed */
  PetscCount     n;   /* contributions of this rank */
  int            nblocks;
  GPUCSRCOOBlock block[2];
  GPUCSRCOORanks ranks;
  GPUCSRLiving   living;
} GPUCSRCOO;

GPUCSR_INTERN PetscErrorCode MatGPUCSRWholeDiagonal_Private(Mat, PetscBool *); /* this and the next: inplace.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRNormOfRanks_Private(Mat, NormType, PetscReal *, PetscBool *done);

GPUCSR_INTERN PetscErrorCode MatGPUCSRCOONew_Private(Mat, GPUCSRDevice, PetscCount, GPUCSRCOO **);
GPUCSR_INTERN PetscErrorCode MatGPUCSRCOORemove_Private(Mat);
GPUCSR_INTERN PetscErrorCode MatGPUCSRCOODevice_Private(Mat, const void *, GPUCSRDevice *, GPUCSRBool *ondevice);
GPUCSR_INTERN PetscErrorCode MatSetPreallocationCOO_GPUCSR(Mat, PetscCount, PetscInt[], PetscInt[]); /* this and the next: coopattern.c */
GPUCSR_INTERN PetscErrorCode MatSetPreallocationCOOLocal_GPUCSR(Mat, PetscCount, PetscInt[], PetscInt[]);
GPUCSR_INTERN PetscErrorCode MatGPUCSRCOOBlock_Private(Mat, GPUCSRDevice, const GPUCSRCoordinates *, GPUCSRCOOBlock *, GPUCSRStorage *);
GPUCSR_INTERN PetscErrorCode GPUCSRCOOBlockDestroy(GPUCSRCOOBlock *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRCOORanks_Private(Mat, PetscCount, PetscInt[], PetscInt[]); /* coo.c */

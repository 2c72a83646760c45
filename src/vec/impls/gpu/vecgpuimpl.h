#pragma once

/* What the files of VECGPU share */
#include <petscgpucsr.h>
#include <petsc/private/vecimpl.h>
#include "vecgpu.h"
#include "kernels.h"

/* Which copies are valid; none: every entry is the same, as in a new vector and after VecSet() */
typedef enum {
  VEC_GPU_FILLED = 0,
  VEC_GPU_HOST   = 1,
  VEC_GPU_DEVICE = 2,
  VEC_GPU_BOTH   = 3
} VecGPUValid;

/* Whose an array is */
typedef enum {
  VEC_GPU_NONE, /* it is not there */
  VEC_GPU_OWN,
  VEC_GPU_BORROWED
} VecGPUOwner;

typedef struct {
  PetscScalar *host;
  double      *device;
  VecGPUOwner  hostowner, deviceowner;
  PetscBool    locked, refused; /* the host's array is page-locked in place, or that was refused */
  VecGPUValid  valid;
  PetscScalar  fill; /* of VEC_GPU_FILLED */
} VecGPUArrays;

/*
  A vector of this type. PETSc's vectors have no place for what a type adds to VECSEQ and VECMPI, so it hangs where their
  VECHEADER keeps the array to be freed, which here is ours to free.
*/
typedef struct _n_Vec_GPU Vec_GPU;
struct _n_Vec_GPU {
  GPUCSRDevice     dev;    /* NULL: on the host for good */
  PetscBool        bound;  /* on the host for now */
  PetscBool        shared; /* the device's memory is the host's: there is one array, and both names are its */
  PetscBool        mpi;
  VecGPUArrays     now;
  VecGPUArrays     before; /* what comes back when an array that was placed, or another vector's, goes */
  PetscBool        placed;
  PetscObjectState got;     /* of a subvector: its state when it was got */
  PetscInt         start;   /* of a subvector that is a piece: where in the local part of the whole */
  VecScatter       scatter; /* of a subvector that is a copy: from the whole */
  VecGPUInfo       info;
  Vec              self; /* living vectors */
  Vec_GPU         *next;
  Vec_GPU        **previous;
};

typedef struct {
  VECHEADER
} VecGPUHeader;

GPUCSR_INTERN PetscErrorCode VecGetArray_GPU(Vec, PetscScalar **);

static inline PetscBool VecGPUIs(Vec v)
{
  return (PetscBool)(v->ops->getarray == VecGetArray_GPU);
}

static inline Vec_GPU *VecGPUOf(Vec v)
{
  return (Vec_GPU *)((VecGPUHeader *)v->data)->array_allocated;
}

/* Operations of VECSEQ and VECMPI: those that we do not replace, and those that work on the host */
GPUCSR_INTERN struct _VecOps        VecGPUParents[2];
static inline const struct _VecOps *VecGPUParent(Vec v)
{
  return &VecGPUParents[VecGPUOf(v)->mpi];
}

static inline const VecGPUKernels *VecGPUKernelsOf(GPUCSRDevice dev)
{
#if defined(GPUCSR_HAVE_CUDA)
  if (dev->ops->kernels) return &VecGPUKernels_cuda;
#endif
  (void)GPUCSRHostTurn(dev->stream); /* in the order of the stream here too */
  return &VecGPUKernels_host;
}

GPUCSR_INTERN PetscErrorCode VecGPUReady_Private(Vec, GPUCSRDevice *);
GPUCSR_INTERN PetscErrorCode VecGPUDeviceRead_Private(Vec);
GPUCSR_INTERN PetscErrorCode VecGPUDeviceWrite_Private(Vec);
GPUCSR_INTERN PetscErrorCode VecGPUFill_Private(Vec, PetscScalar);
GPUCSR_INTERN void           VecGPUOperations_Private(struct _VecOps *);

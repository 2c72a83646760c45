#pragma once

/*
  What the files of VECGPU share. entries.c has the two copies of the entries and keeps them equal where they are asked for, ops.c the
  operations, parts.c vectors that are made from vectors, vecgpu.c the type. ops.c and parts.c stand on entries.c, vecgpu.c on all of them.
*/
#include <petscgpucsr.h>
#include <petsc/private/vecimpl.h> /* the operations of a Vec, which the types replace */
#include "vecgpu.h"
#include "kernels.h"

/* Which copies are valid; none: every entry is the same, as in a new vector and after VecSet() */
typedef enum {
  VEC_GPU_FILLED = 0,
  VEC_GPU_HOST   = 1,
  VEC_GPU_DEVICE = 2,
  VEC_GPU_BOTH   = 3
} VecGPUValid;

/*
  Entries: an array on the host, one on the device, each allocated when first needed. A vector has them, or part of them when it is a
  subvector or a local vector: then several vectors have the same, as VECSTANDARD's share memory.

  A program may hold pointers to the host's array. While one of them is for writing, the host's copy is the master: the device takes the
  entries from there each time that it works, and brings home what it writes. While all of them are for reading, it only does the latter.
*/
typedef struct _n_VecGPUEntries VecGPUEntries;
struct _n_VecGPUEntries {
  GPUCSRDevice dev;    /* NULL: on the host for good */
  PetscBool    shared; /* the device's memory is the host's: there is one array */
  PetscBool    full;   /* the device had no memory for them: they stay on the host */
  PetscInt     n;
  PetscInt     references;       /* vectors that have them */
  PetscInt     readers, writers; /* pointers to the host's array that the program holds */
  PetscScalar *host;
  double      *device;
  PetscBool    borrowed;        /* the host's array is the program's (VecPlaceArray()) */
  GPUCSRBool   locked, refused; /* the host's array is page-locked in place, or that was refused */
  VecGPUValid  valid;
  PetscScalar  fill;   /* of VEC_GPU_FILLED */
  PetscBool    marked; /* mark is what the host's array held when it went out for reading */
  uint64_t     mark;
  VecGPUInfo   info;
  GPUCSRLiving living;
};

/*
  A vector of this type. PETSc's vectors have no place for what a type adds to VECSEQ and VECMPI, so it hangs where their
  VECHEADER keeps the array to be freed. Their own array stays NULL, so that who looks there past VecGetArray() fails at once.
*/
typedef struct {
  PetscBool        bound; /* on the host for now (VecBindToCPU()) */
  PetscBool        mpi;
  VecGPUEntries   *entries;
  PetscInt         start;  /* where in the entries the vector's begin */
  VecGPUEntries   *before; /* what comes back when an array that was placed, or another vector's entries, go; NULL: none are in place */
  PetscInt         startbefore;
  PetscObjectState got;     /* of a subvector: its state when it was got */
  VecScatter       scatter; /* of a subvector that is a copy: from the whole */
} Vec_GPU;

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

/* The vector's entries in either array, which may not be there */
static inline PetscScalar *VecGPUHostOf(Vec v)
{
  const Vec_GPU *g = VecGPUOf(v);

  return g->entries->host ? g->entries->host + g->start : NULL;
}

static inline double *VecGPUDeviceOf(Vec v)
{
  const Vec_GPU *g     = VecGPUOf(v);
  double        *first = g->entries->shared ? (double *)g->entries->host : g->entries->device;

  return first ? first + g->start : NULL;
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
  (void)GPUCSRWaitStreamOnHost(dev->stream); /* in the order of the stream here too */
  return &VecGPUKernels_host;
}

/* entries.c */
GPUCSR_INTERN PetscErrorCode VecGPUEntriesInitialize_Private(void);
GPUCSR_INTERN PetscErrorCode VecGPUEntriesFinalize_Private(void);
GPUCSR_INTERN PetscErrorCode VecGPUEntriesCount_Private(VecGPUInfo *);
GPUCSR_INTERN PetscErrorCode VecGPUEntriesCreate_Private(PetscInt, VecGPUEntries **);
GPUCSR_INTERN PetscErrorCode VecGPUEntriesPlace_Private(const VecGPUEntries *, PetscInt, PetscScalar *, VecGPUEntries **);
GPUCSR_INTERN PetscErrorCode VecGPUEntriesReplace_Private(VecGPUEntries *, PetscScalar *);
GPUCSR_INTERN PetscErrorCode VecGPUEntriesRelease_Private(VecGPUEntries **, VecGPUEntries *);
GPUCSR_INTERN PetscErrorCode VecGPUHostRead_Private(Vec);
GPUCSR_INTERN PetscErrorCode VecGPUHostGet_Private(Vec, PetscBool, PetscBool, PetscScalar **);
GPUCSR_INTERN PetscErrorCode VecGPUHostRestore_Private(Vec, PetscBool, const PetscScalar *);
GPUCSR_INTERN PetscErrorCode VecGPUReady_Private(Vec, GPUCSRDevice *);
GPUCSR_INTERN PetscErrorCode VecGPUDeviceRead_Private(Vec);
GPUCSR_INTERN PetscErrorCode VecGPUDeviceWrite_Private(Vec);
GPUCSR_INTERN PetscErrorCode VecGPUDeviceWritten_Private(Vec);
GPUCSR_INTERN PetscErrorCode VecGPUFill_Private(Vec, PetscScalar);

/* foreign.c */
typedef enum {
  VEC_GPU_READ,
  VEC_GPU_WRITE, /* every entry */
  VEC_GPU_CHANGE
} VecGPUAccess;
GPUCSR_INTERN PetscErrorCode VecGPUForeign_Private(Vec, GPUCSRDevice, PetscBool *);
GPUCSR_INTERN PetscErrorCode VecGPUForeignDevice_Private(Vec, GPUCSRDevice *);
GPUCSR_INTERN PetscErrorCode VecGPUForeignGet_Private(GPUCSRDevice, Vec, VecGPUAccess, double **);
GPUCSR_INTERN PetscErrorCode VecGPUForeignRestore_Private(GPUCSRDevice, Vec, VecGPUAccess, double **);
GPUCSR_INTERN PetscErrorCode VecGPUOperandGet_Private(GPUCSRDevice, Vec, double **a);
GPUCSR_INTERN PetscErrorCode VecGPUOperandRestore_Private(GPUCSRDevice, Vec, double **a);
GPUCSR_INTERN PetscErrorCode VecGPUOperandsRestore_Private(GPUCSRDevice, PetscInt, const Vec[], double *a[]);

/* ops.c */
GPUCSR_INTERN void VecGPUOperations_Private(struct _VecOps *);

/* rankreduce.c */
typedef enum {
  VEC_GPU_ADD,
  VEC_GPU_TOP
} VecGPUCombine;
GPUCSR_INTERN PetscErrorCode VecGPUTogether_Private(Vec, PetscErrorCode, VecGPUCombine, PetscInt, double[]);

/* parts.c */
GPUCSR_INTERN PetscErrorCode VecGPUExchange_Private(Vec, VecGPUEntries *, PetscInt);
GPUCSR_INTERN PetscErrorCode VecGPUComeBack_Private(Vec);
GPUCSR_INTERN void           VecGPUPartOperations_Private(struct _VecOps *);

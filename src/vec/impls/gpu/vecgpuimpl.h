#pragma once

/*
  Shared by the files of VECGPU. entries.c has the two copies of the entries and updates a copy on request, ops.c the operations, parts.c vectors that are made from vectors, vecgpu.c the type. ops.c and
  parts.c call entries.c, vecgpu.c calls all of them.
*/
#include <petscgpucsr.h>
#include <petsc/private/vecimpl.h> /* the operations of a Vec, which the types replace */
#include "vecgpu.h"
#include "kernels.h"

/* Which copies are valid; none: all entries are equal, as in a new vector and after VecSet() */
typedef enum {
  VEC_GPU_FILLED = 0,
  VEC_GPU_HOST   = 1,
  VEC_GPU_DEVICE = 2,
  VEC_GPU_BOTH   = 3
} VecGPUValid;

/*
  Entries: an array on the host and one on the device, each allocated when first needed. Several vectors may share entries: subvectors and local vectors have a part of them, as with VECSTANDARD.

  A program may hold pointers to the host's array. While a pointer is for writing, the host's copy is the master: each operation of the device first copies the entries from the host, and copies its
  results back. While all pointers are for reading, it only copies results back.
*/
typedef struct _n_VecGPUEntries VecGPUEntries;
struct _n_VecGPUEntries {
  GPUCSRDevice dev;    /* NULL: on the host for good */
  PetscBool    shared; /* the device's memory is the host's: there is one array */
  PetscBool    full;   /* the device has no memory for the entries, which stay on the host */
  PetscInt     n;
  PetscInt     references;       /* vectors that have them */
  PetscInt     readers, writers; /* pointers to the host's array that the program holds */
  PetscScalar *host;
  double      *device;
  PetscBool    borrowed;        /* the host's array is the program's (VecPlaceArray()) */
  PetscBool    lent;            /* the device's array is the program's (VecGPUPlaceArray()): every change goes there at once, and the host's copy is made anew for each reader */
  GPUCSRBool   locked, refused; /* the host's array is page-locked in place, or that was refused */
  VecGPUValid  valid;
  PetscScalar  fill;   /* of VEC_GPU_FILLED */
  PetscBool    marked; /* mark is the hash of the host's array at the time of its lending for reading */
  uint64_t     mark;
  VecGPUInfo   info;
  GPUCSRLiving living;
};

/*
  A vector of this type. PETSc's vectors have no place for data of a type derived from VECSEQ and VECMPI, so these data hang where VECHEADER keeps the array to free. The array of the header stays NULL,
  so code that bypasses VecGetArray() fails at once.
*/
typedef struct {
  PetscBool        bound; /* on the host for now (VecBindToCPU()) */
  PetscBool        mpi;
  VecGPUEntries   *entries;
  PetscInt         start;  /* offset of the vector in the entries */
  VecGPUEntries   *before; /* entries to return to when a placed array, or another vector's entries, are reset; NULL: own entries */
  PetscInt         startbefore;
  PetscObjectState got;     /* of a subvector: its state when it was lent */
  VecScatter       scatter; /* of a subvector that is a copy: from the whole vector */
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

/* The vector's entries in either array, which may not exist */
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

/* Operations of VECSEQ and VECMPI, for operations on the host and operations that are not replaced */
GPUCSR_INTERN struct _VecOps        VecGPUParents[2];
static inline const struct _VecOps *VecGPUParent(Vec v)
{
  return &VecGPUParents[VecGPUOf(v)->mpi];
}

/* entries.c */
GPUCSR_INTERN PetscErrorCode VecGPUEntriesInitialize_Private(void);
GPUCSR_INTERN VecGPUInfo     VecGPUEntriesCount_Private(void);
GPUCSR_INTERN PetscErrorCode VecGPUEntriesCreate_Private(PetscInt, VecGPUEntries **);
GPUCSR_INTERN PetscErrorCode VecGPUEntriesPlace_Private(const VecGPUEntries *, PetscInt, PetscScalar *, VecGPUEntries **);
GPUCSR_INTERN PetscErrorCode VecGPUEntriesPlaceDevice_Private(const VecGPUEntries *, PetscInt, double *, VecGPUEntries **);
GPUCSR_INTERN PetscErrorCode VecGPUEntriesReplace_Private(VecGPUEntries *, PetscScalar *);
GPUCSR_INTERN PetscErrorCode VecGPUEntriesRelease_Private(VecGPUEntries **, VecGPUEntries *);
GPUCSR_INTERN PetscErrorCode VecGPUHostRead_Private(VecGPUEntries *);
GPUCSR_INTERN PetscErrorCode VecGPUHostGet_Private(Vec, PetscBool, PetscBool, PetscScalar **);
GPUCSR_INTERN PetscErrorCode VecGPUHostRestore_Private(Vec, PetscBool, const PetscScalar *);
GPUCSR_INTERN PetscErrorCode VecGPUReady_Private(Vec, GPUCSRDevice *);
GPUCSR_INTERN PetscErrorCode VecGPUDeviceRead_Private(Vec);
GPUCSR_INTERN PetscErrorCode VecGPUDeviceWrite_Private(Vec);
GPUCSR_INTERN PetscErrorCode VecGPUDeviceWritten_Private(Vec);
GPUCSR_INTERN PetscErrorCode VecGPUFill_Private(Vec, PetscScalar);

/* access.c */
typedef enum {
  VEC_GPU_READ,
  VEC_GPU_WRITE, /* every entry */
  VEC_GPU_CHANGE
} VecGPUAccess;
GPUCSR_INTERN PetscErrorCode VecGPUForeign_Private(Vec, GPUCSRDevice *);
GPUCSR_INTERN PetscErrorCode VecGPUGet_Private(GPUCSRDevice, Vec, VecGPUAccess, double **);
GPUCSR_INTERN PetscErrorCode VecGPURestore_Private(GPUCSRDevice, Vec, VecGPUAccess, double **);

/* ops.c */
GPUCSR_INTERN void VecGPUOperations_Private(struct _VecOps *);

/* rankreduce.c */
typedef enum {
  VEC_GPU_ADD,
  VEC_GPU_TOP
} VecGPUCombine;
GPUCSR_INTERN PetscErrorCode VecGPUAllreduce_Private(Vec, PetscErrorCode, VecGPUCombine, PetscInt, double[]);

/* parts.c */
GPUCSR_INTERN PetscErrorCode VecGPUExchange_Private(Vec, VecGPUEntries *, PetscInt);
GPUCSR_INTERN PetscErrorCode VecGPUComeBack_Private(Vec);
GPUCSR_INTERN void           VecGPUPartOperations_Private(struct _VecOps *);

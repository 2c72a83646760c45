#pragma once

/*
  VECGPU for the Mat and the KSP: the place of a vector. VecGPUGetArray() and its siblings of the public header lend its array.

  Between Get and Restore the pointer is the device's, valid for work in the order of dev->stream, where all operations of
  VECGPU run too, without any wait. Device memory of the host backend is the host's.
*/
#include <petscgpucsr.h>
#include "../../../sys/gpucsrsys.h"

/* The device of v, a VECGPU or one of PETSc's device types; NULL if v is on the host */
GPUCSR_INTERN PetscErrorCode VecGPUGetDevice(Vec v, GPUCSRDevice *dev);

/* Is v a VECGPU? Its type name may be the standard type's */
GPUCSR_INTERN PetscErrorCode VecGPUCheck(Vec v, PetscBool *isvecgpu);

/* For a vector that a matrix makes without a requested type: its name is the standard type's. v has sizes and no type */
GPUCSR_INTERN PetscErrorCode VecGPUSetTypeUnasked(Vec v);

/* Like VecDuplicate(), but the entries of a vector of the standard type are on the device, under that type's name */
GPUCSR_INTERN PetscErrorCode VecGPUDuplicate(Vec v, Vec *w);

/* -vec_gpu_separate */
GPUCSR_INTERN PetscBool VecGPUSeparate(void);

/* Between Hold and Release, arrays of v may be used after their restore. No effect on a vector of another type */
typedef struct {
  PetscInt readers, writers;
} VecGPUHeld;
GPUCSR_INTERN PetscErrorCode VecGPUHold(Vec v, VecGPUHeld *);
GPUCSR_INTERN PetscErrorCode VecGPURelease(Vec v, const VecGPUHeld *);

/* The vector type for the whole program (-vec_type): NULL without the option, VECGPU, or VECSTANDARD */
GPUCSR_INTERN PetscErrorCode VecGPUTypeAsked(VecType *type);

GPUCSR_INTERN PetscErrorCode VecGPUInitialize(void);
GPUCSR_INTERN PetscErrorCode VecGPUReport(MPI_Comm, FILE *); /* totals, when there were any vectors */

/* In a PETSc with CUDA that tells it: PETSc's current stream, never NULL, which here means no stream */
GPUCSR_INTERN PetscErrorCode VecGPUPetscStream(GPUCSRStream *s);

/* Counts, for the report, the copy of a vector of n entries that is on the host and no VECGPU */
GPUCSR_INTERN void VecGPUCrossed(PetscBool up, size_t n);

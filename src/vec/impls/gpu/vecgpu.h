#pragma once

/*
  VECGPU as the Mat and the KSP see it: where a vector lives. Its array there is got by VecGPUGetArray() and its siblings of the public header.

  Between Get and Restore the pointer is the device's, valid for work in the order of dev->stream, where all operations of
  VECGPU run too: nobody has to wait for anybody. Device memory of the host backend is the host's.
*/
#include <petscgpucsr.h>
#include "../../../sys/gpucsrsys.h"

/* The device that v lives on, a VECGPU or one of PETSc's device types; NULL where it is kept on the host */
GPUCSR_INTERN PetscErrorCode VecGPUGetDevice(Vec v, GPUCSRDevice *dev);

/* Is v one of ours? Its type's name need not say so */
GPUCSR_INTERN PetscErrorCode VecGPUCheck(Vec v, PetscBool *ours);

/* A vector that a matrix makes where nobody asked for a type: it goes by the name of the standard type. v has sizes and no type */
GPUCSR_INTERN PetscErrorCode VecGPUSetTypeUnasked(Vec v);

/* As VecDuplicate(), but the entries of a vector of the standard type are on the device; it goes by the name of that type */
GPUCSR_INTERN PetscErrorCode VecGPUDuplicate(Vec v, Vec *w);

/* -vec_gpu_separate */
GPUCSR_INTERN PetscErrorCode VecGPUSeparate(PetscBool *separate);

/* From Hold to Release arrays of v may be read and written after they were given back. Nothing happens to a vector of another type */
typedef struct {
  PetscInt readers, writers;
} VecGPUHeld;
GPUCSR_INTERN PetscErrorCode VecGPUHold(Vec v, VecGPUHeld *);
GPUCSR_INTERN PetscErrorCode VecGPURelease(Vec v, const VecGPUHeld *);

/* A vector type that options ask the whole program for (-vec_type): NULL when they do not, VECGPU, or VECSTANDARD */
GPUCSR_INTERN PetscErrorCode VecGPUTypeAsked(VecType *type);

GPUCSR_INTERN PetscErrorCode VecGPUInitialize(void);
GPUCSR_INTERN PetscErrorCode VecGPUReport(MPI_Comm, FILE *); /* one line of totals, when there were any vectors */

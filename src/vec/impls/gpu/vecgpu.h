#pragma once

/*
  VECGPU as the Mat and the KSP see it: where a vector lives. Its array there is got by VecGPUGetArray() and its siblings of the public header.

  Between Get and Restore the pointer is the device's, valid for work in the order of dev->stream, where all operations of
  VECGPU run too: nobody has to wait for anybody. Device memory of the host backend is the host's.
*/
#include <petscgpucsr.h>
#include "../../../sys/gpucsrsys.h"

/* The device that v lives on; NULL where v is of another type, or is kept on the host (bound to the CPU, or out of device memory) */
GPUCSR_INTERN PetscErrorCode VecGPUGetDevice(Vec v, GPUCSRDevice *dev);

/* A vector type that options ask the whole program for (-vec_type): NULL when they do not, VECGPU, or VECSTANDARD */
GPUCSR_INTERN PetscErrorCode VecGPUTypeAsked(VecType *type);

GPUCSR_INTERN PetscErrorCode VecGPUInitialize(void);
GPUCSR_INTERN PetscErrorCode VecGPUFinalize(void);   /* vectors still alive go on with the host */
GPUCSR_INTERN PetscErrorCode VecGPUReport(MPI_Comm); /* one line of totals, when there were any vectors */

#pragma once

/*
  VECGPU as the Mat and the KSP see it: where a vector lives, and its array there.

  Between Get and Restore the pointer is the device's, valid for work in the order of dev->stream, where all operations of
  VECGPU run too: nobody has to wait for anybody. Device memory of the host backend is the host's.
*/
#include <petscvec.h>
#include "../../../sys/gpucsrsys.h"

/* The device that v lives on; NULL where v is of another type, or is kept on the host (bound to the CPU, or out of device memory) */
GPUCSR_INTERN PetscErrorCode VecGPUGetDevice(Vec v, GPUCSRDevice *dev);

/* The array of a vector that has a device. Read: the host's copy stays valid; write: entries are undefined before. Restoring an array got for writing counts as a change of v */
GPUCSR_INTERN PetscErrorCode VecGPUGetArray(Vec v, double **a);
GPUCSR_INTERN PetscErrorCode VecGPURestoreArray(Vec v, double **a);
GPUCSR_INTERN PetscErrorCode VecGPUGetArrayRead(Vec v, const double **a);
GPUCSR_INTERN PetscErrorCode VecGPURestoreArrayRead(Vec v, const double **a);
GPUCSR_INTERN PetscErrorCode VecGPUGetArrayWrite(Vec v, double **a);
GPUCSR_INTERN PetscErrorCode VecGPURestoreArrayWrite(Vec v, double **a);

/* A vector type that options ask the whole program for (-vec_type): NULL when they do not, VECGPU, or VECSTANDARD */
GPUCSR_INTERN PetscErrorCode VecGPUTypeAsked(VecType *type);

GPUCSR_INTERN PetscErrorCode VecGPUInitialize(void);
GPUCSR_INTERN PetscErrorCode VecGPUFinalize(void);   /* vectors still alive go on with the host */
GPUCSR_INTERN PetscErrorCode VecGPUReport(MPI_Comm); /* one line of totals, when there were any vectors */

#pragma once

/* Interface between the files of the report */
#include "../type/gpucsrimpl.h"

GPUCSR_INTERN PetscErrorCode MatGPUCSRAppend_Private(char text[], size_t len, const char format[], ...);
GPUCSR_INTERN PetscErrorCode MatGPUCSRTotalsAdd_Private(const Mat_SeqGPUCSR *, const MatGPUCSRInfo *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRTotalsPrint_Private(MPI_Comm, FILE *, PetscInt);
GPUCSR_INTERN PetscErrorCode MatGPUCSRTotalsForget_Private(void);

/* Predicted times: foretell.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRForetell_Private(GPUCSRDevice, const GPUCSRFeatures *, GPUCSRPrecision, const GPUCSRRequest *, double host, MatGPUCSRAdvice *);
GPUCSR_INTERN double         MatGPUCSRHostVectorsTime(double m, double n, double kernel, size_t number, double reach);
GPUCSR_INTERN double         MatGPUCSRHostProductTime(double rows, double entries);

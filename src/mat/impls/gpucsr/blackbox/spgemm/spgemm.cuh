#pragma once

/*
  Common to the kernels of this folder: the stream, and functions of spgemm.cu's table from other files.
*/
#include "spgemm.h"
#include "../kernels/device.cuh"

static inline cudaStream_t StreamOf(const GPUCSRStorage *A)
{
  return (cudaStream_t)A->dev->stream;
}

/* classes.cu */
GPUCSR_INTERN GPUCSRError GPUCSRClassify_CUDA(int m, const int32_t *length, GPUCSRRowClasses *c, GPUCSRDevice dev);
GPUCSR_INTERN GPUCSRError GPUCSRScan_CUDA(int m, const int32_t *length, int32_t *rowptr, int64_t *nnz, GPUCSRDevice dev);
GPUCSR_INTERN GPUCSRError GPUCSRShape_CUDA(int m, const int32_t *length, int32_t *rowptr, int64_t *nnz, GPUCSRRowClasses *c, GPUCSRDevice dev);

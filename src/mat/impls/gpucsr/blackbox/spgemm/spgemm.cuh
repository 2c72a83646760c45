#pragma once

/*
  Common to the kernels of this folder: a matrix for kernels, and functions of spgemm.cu's table from other files.
*/
#include "spgemm.h"
#include "../kernels/device.cuh"

struct csr {
  const int    *i, *j;
  const double *a;
};

static inline csr Arrays(const GPUCSRStorage *A)
{
  return {(const int *)A->array[CSR_ROWPTR].data, (const int *)A->array[CSR_COL].data, (const double *)A->array[CSR_VAL].data};
}

static inline cudaStream_t StreamOf(const GPUCSRStorage *A)
{
  return (cudaStream_t)A->dev->stream;
}

/* rows.cu */
GPUCSR_INTERN GPUCSRError GPUCSRBound_CUDA(const GPUCSRStorage *A, const GPUCSRStorage *B, int32_t *length);
GPUCSR_INTERN GPUCSRError GPUCSRClassify_CUDA(int m, const int32_t *length, GPUCSRRowClasses *c, GPUCSRDevice dev);
GPUCSR_INTERN GPUCSRError GPUCSRScan_CUDA(int m, const int32_t *length, int32_t *rowptr, int64_t *nnz, GPUCSRDevice dev);
GPUCSR_INTERN GPUCSRError GPUCSRShape_CUDA(int m, const int32_t *length, int32_t *rowptr, int64_t *nnz, GPUCSRRowClasses *c, GPUCSRDevice dev);

/* sums.cu */
GPUCSR_INTERN GPUCSRError GPUCSRBeside_CUDA(const GPUCSRStorage *A, const GPUCSRStorage *T, GPUCSRStorage *K);
GPUCSR_INTERN GPUCSRError GPUCSRAXPY_CUDA(double f, const GPUCSRStorage *X, GPUCSRStorage *Y, GPUCSRBool *lost);

/* parts.cu */
GPUCSR_INTERN GPUCSRError GPUCSRRenumber_CUDA(int64_t n, const int32_t *table, int32_t *j, GPUCSRDevice dev);
GPUCSR_INTERN GPUCSRError GPUCSRLengths_CUDA(const GPUCSRStorage *A, int n, GPUCSRBool rest, int32_t *length);
GPUCSR_INTERN GPUCSRError GPUCSRPart_CUDA(const GPUCSRStorage *A, int n, GPUCSRStorage *D, GPUCSRStorage *E);

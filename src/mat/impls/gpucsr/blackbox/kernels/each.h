#pragma once

/*
  Steps whose rows do not need each other. A row has one text, for the loop of the host and for the kernel of a GPU.

  A room lists its steps in a macro, as STEP(name, lanes, (formal arguments), (actual arguments)), and writes name##_row(GPUCSRShare, formal arguments), the share of one lane. The room's table of functions gets a
  member name(device, rows, formal arguments, stream) for each step from GPUCSR_EACH_MEMBER. The file of the table makes the functions by GPUCSR_EACH, a loop in C and a kernel in CUDA C, and names them by GPUCSR_EACH_ENTRY.
*/
#include "kernels.h"
#if defined(__CUDACC__)
  #include "device.cuh"
#endif

/* A matrix in CSR as steps see it */
typedef struct {
  int32_t *i, *j;
  double  *a;
  int      m, n;
} GPUCSRCSR;

static inline GPUCSRCSR GPUCSRCSROf(const GPUCSRStorage *A)
{
  const GPUCSRCSR R = {(int32_t *)A->array[CSR_ROWPTR].data, (int32_t *)A->array[CSR_COL].data, (double *)A->array[CSR_VAL].data, A->m, A->n};

  return R;
}

/* The lanes of a row share its entries: lane, lane + lanes and so on. On the host a row has one lane; on a GPU `lanes` is a power of two up to 32, and the lanes are threads of one warp */
typedef struct {
  int row, lane, lanes;
} GPUCSRShare;

#if defined(__CUDA_ARCH__)
  #define GPUCSR_LANES_OF(p) ((((p).lanes == 32 ? 0u : 1u << (p).lanes) - 1u) << (threadIdx.x % 32 & ~((p).lanes - 1)))
#endif

/* The sum over the lanes of a row, for its first lane */
GPUCSR_HOST_DEVICE double GPUCSRLanesSum(GPUCSRShare p, double v)
{
#if defined(__CUDA_ARCH__)
  for (int o = p.lanes / 2; o; o >>= 1) v += __shfl_down_sync(GPUCSR_LANES_OF(p), v, o, p.lanes);
#endif
  return (void)p, v;
}

/* The maximum, for all lanes */
GPUCSR_HOST_DEVICE int GPUCSRLanesMax(GPUCSRShare p, int v)
{
#if defined(__CUDA_ARCH__)
  for (int o = p.lanes / 2; o; o >>= 1) v = max(v, __shfl_xor_sync(GPUCSR_LANES_OF(p), v, o, p.lanes));
#endif
  return (void)p, v;
}

/* The place of column c in the ascending columns j[begin], ..., j[end - 1], or -1 */
GPUCSR_HOST_DEVICE int GPUCSRColumnFind(const int *j, int begin, int end, int c)
{
  while (begin < end) {
    const int mid = begin + (end - begin) / 2, at = j[mid];

    if (at == c) return mid;
    if (at < c) begin = mid + 1;
    else end = mid;
  }
  return -1;
}

#define GPUCSR_LIST(...)                                __VA_ARGS__
#define GPUCSR_EACH_MEMBER(name, lanes, formal, actual) GPUCSRError (*name)(GPUCSRDevice, int rows, GPUCSR_LIST formal, GPUCSRStream);
#define GPUCSR_EACH_ENTRY(name, lanes, formal, actual)  name##_each,
#if defined(__CUDACC__)
  #define GPUCSR_EACH(name, lanes, formal, actual) \
    static __global__ void name##_kernel(int rows_, GPUCSR_LIST formal) \
    { \
      const int64_t t_ = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; \
\
      if (t_ / lanes < rows_) name##_row({(int)(t_ / lanes), (int)(threadIdx.x % lanes), lanes}, GPUCSR_LIST actual); \
    } \
    static GPUCSRError name##_each(GPUCSRDevice dev_, int rows_, GPUCSR_LIST formal, GPUCSRStream s_) \
    { \
      (void)dev_; \
      if (!rows_) return 0; \
      name##_kernel<<<GPUCSRBlocks(lanes *(int64_t)rows_, 128), 128, 0, (cudaStream_t)s_>>>(rows_, GPUCSR_LIST actual); \
      GPUCSRCheckLaunch(#name "_kernel"); \
      return 0; \
    }
#else
  #define GPUCSR_EACH(name, lanes, formal, actual) \
    static PetscErrorCode name##_each(GPUCSRDevice dev_, int rows_, GPUCSR_LIST formal, GPUCSRStream s_) \
    { \
      PetscFunctionBegin; \
      PetscCall(GPUCSRWaitStreamOnHost(s_)); \
      for (int r_ = 0; r_ < rows_; r_++) name##_row((GPUCSRShare){r_, 0, 1}, GPUCSR_LIST actual); \
      PetscCall(GPUCSRLaunched(dev_, #name "_kernel")); \
      PetscFunctionReturn(PETSC_SUCCESS); \
    }
#endif

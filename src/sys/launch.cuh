#pragma once

/* Checked launches and calls of CUDA, and the end of a launch whose blocks add up, for device sources */
#include "device.h"
#include <cuda_runtime.h>

#define GPUCSRCheckLaunch(what) \
  do { \
    cudaError_t err_ = cudaGetLastError(); \
    GPUCSRCheck(err_ == cudaSuccess, GPUCSR_ERR_GPU, "Launch of %s failed with %s: %s", what, cudaGetErrorName(err_), cudaGetErrorString(err_)); \
    GPUCSRCall(GPUCSRLaunched(NULL, what)); \
  } while (0)

#define GPUCSR_CUDA(call) \
  do { \
    cudaError_t err_ = (call); \
    GPUCSRCheck(err_ == cudaSuccess, err_ == cudaErrorMemoryAllocation ? GPUCSR_ERR_MEM : GPUCSR_ERR_GPU, "%s failed with %s: %s", #call, cudaGetErrorName(err_), cudaGetErrorString(err_)); \
    GPUCSRCall(GPUCSRLaunched(NULL, #call)); \
  } while (0)

/*
  Is this block the last of `all` blocks to come here? If so, its threads see all that threads of the other blocks wrote before. The count is 0 before the first block and after the last.
  ALONE: in each block thread 0 alone has written. For all threads of the block
*/
template <bool ALONE = false>
__device__ __forceinline__ bool last_block(void *count, unsigned all)
{
  __shared__ bool last;

  if (!ALONE) __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicInc((unsigned *)count, all - 1) == all - 1;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

#pragma once

/* Checked launches and calls of CUDA, for device sources */
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

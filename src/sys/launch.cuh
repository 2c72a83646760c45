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
  Programmatic dependent launch, from compute capability 9.0 on: the blocks of a kernel start while the last blocks of the kernel before it run, which hides the launch. A kernel that launch_after() launches
  calls after_previous() before anything else: the kernel before has then ended, all its writes are visible, and the blocks of the next kernel may start.
*/
__device__ __forceinline__ void after_previous()
{
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Was after_previous() compiled for the current device? cuda/graph.cu */
GPUCSR_INTERN bool GPUCSRLaunchesEarly(void);

/* CLUSTER: blocks of a cluster. GPUCSRCheckLaunch() follows */
template <unsigned int CLUSTER = 1, class... P, class... A>
static void launch_after(void (*kernel)(P...), dim3 grid, unsigned int block, size_t shared, GPUCSRStream s, const A &...arguments)
{
  cudaLaunchAttribute a[2]   = {};
  cudaLaunchConfig_t  config = {};

  config.gridDim          = grid;
  config.blockDim         = dim3(block);
  config.dynamicSmemBytes = shared;
  config.stream           = (cudaStream_t)s;
  config.attrs            = a;
  if (GPUCSRLaunchesEarly()) {
    a[config.numAttrs].id                                           = cudaLaunchAttributeProgrammaticStreamSerialization;
    a[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (CLUSTER > 1) {
    a[config.numAttrs].id               = cudaLaunchAttributeClusterDimension;
    a[config.numAttrs++].val.clusterDim = {CLUSTER, 1, 1};
  }
  (void)cudaLaunchKernelEx(&config, kernel, static_cast<P>(arguments)...);
}

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

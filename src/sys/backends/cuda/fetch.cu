/*
  Small copies by the device's processors. Starting a copy engine, and its signal to the waiting processors, take longer than some hundred kilobytes of transfer.
*/
#include "../../device.h"
#include <cuda_runtime.h>

#define BLOCK 256

__global__ void __launch_bounds__(BLOCK) fetch_kernel(size_t bytes, const char *__restrict__ from, char *to)
{
  const size_t k = ((size_t)blockIdx.x * BLOCK + threadIdx.x) * sizeof(uint4);

  if (k + sizeof(uint4) <= bytes) *(uint4 *)(to + k) = *(const uint4 *)(from + k);
  else
    for (size_t q = k; q < bytes; q++) to[q] = from[q]; /* the last few */
}

GPUCSR_INTERN GPUCSRError GPUCSRFetch_CUDA(int, void *, const void *, size_t, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUCSRProbe_CUDA(int);

/* dst = src, with one side in page-locked memory; both aligned to 16 bytes */
GPUCSRError GPUCSRFetch_CUDA(int id, void *dst, const void *src, size_t bytes, GPUCSRStream s)
{
  if (!bytes) return 0;
  fetch_kernel<<<(unsigned int)((bytes + BLOCK * sizeof(uint4) - 1) / (BLOCK * sizeof(uint4))), BLOCK, 0, (cudaStream_t)s>>>(bytes, (const char *)src, (char *)dst);
  const cudaError_t err = cudaGetLastError();
  GPUCSRCheck(err == cudaSuccess, GPUCSR_ERR_GPU, "CUDA device %d: a launch to copy %zu bytes failed with %s: %s", id, bytes, cudaGetErrorName(err), cudaGetErrorString(err));
  return 0;
}

/* Has this library code for the GPU that the driver understands? Asked when a device is opened, not at the first product */
GPUCSRError GPUCSRProbe_CUDA(int id)
{
  cudaFuncAttributes attributes;

  const cudaError_t err = cudaFuncGetAttributes(&attributes, fetch_kernel);
  if (err != cudaSuccess) (void)cudaGetLastError();
  GPUCSRCheck(err == cudaSuccess, GPUCSR_ERR_GPU, "CUDA device %d: this library has no code for this device: %s: %s", id, cudaGetErrorName(err), cudaGetErrorString(err));
  return 0;
}

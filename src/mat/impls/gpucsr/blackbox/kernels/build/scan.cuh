#pragma once

#include "../device.cuh"
#include <cub/device/device_scan.cuh>

/* to[k] = the sum of from[0], ..., from[k - 1], for k < n; in place, too */
template <class I>
static GPUCSRError GPUCSRSumsBefore(GPUCSRDevice dev, I from, int *to, int n, cudaStream_t s)
{
  size_t bytes = 0;
  void  *temp  = NULL;

  GPUCSR_CUDA(cub::DeviceScan::ExclusiveSum(NULL, bytes, from, to, n, s));
  GPUCSRCall(GPUCSRMalloc(dev, bytes, "a scan", &temp));
  const cudaError_t err = cub::DeviceScan::ExclusiveSum(temp, bytes, from, to, n, s);
  GPUCSRCall(GPUCSRFree(dev, bytes, &temp));
  GPUCSR_CUDA(err);
  return 0;
}

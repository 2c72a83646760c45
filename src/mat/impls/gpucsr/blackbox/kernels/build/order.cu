/*
  Rows in the order of their lengths, on the device: a stable radix sort (CUB) of window and length together.
*/
#include "../device.cuh"
#include "../../inspect/order.h"
#include <cub/device/device_radix_sort.cuh>

__global__ void order_key_kernel(int m, GPUCSRRowOrder o, const int *__restrict__ rowptr, unsigned int *key, int *row)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r >= m) return;
  key[r] = GPUCSRRowKey(o, r, rowptr[r + 1] - rowptr[r]);
  row[r] = r;
}

/* GPUCSRSortRows() with rowptr and perm on the device */
GPUCSRError GPUCSRSortRowsOnDevice(GPUCSRDevice dev, int m, int n, const int *rowptr, int window, int *perm, GPUCSRStream st)
{
  const GPUCSRRowOrder o     = GPUCSRRowOrderOf(m, n, window);
  const size_t         list  = ((size_t)m + 63) / 64 * 64; /* aligns the array behind each list */
  cudaStream_t         s     = (cudaStream_t)st;
  size_t               bytes = 0;
  unsigned int        *key   = NULL;

  GPUCSR_CUDA(cub::DeviceRadixSort::SortPairs(NULL, bytes, key, key, perm, perm, m, 0, o.keybits, s));
  GPUCSRCall(GPUCSRMalloc(dev, 12 * list + bytes, "the order of rows", (void **)&key));
  order_key_kernel<<<GPUCSRBlocks(m, 256), 256, 0, s>>>(m, o, rowptr, key, (int *)(key + 2 * list));
  const cudaError_t err = cub::DeviceRadixSort::SortPairs(key + 3 * list, bytes, key, key + list, (int *)(key + 2 * list), perm, m, 0, o.keybits, s);
  GPUCSRCall(GPUCSRFree(dev, 12 * list + bytes, (void **)&key));
  GPUCSR_CUDA(err);
  return 0;
}

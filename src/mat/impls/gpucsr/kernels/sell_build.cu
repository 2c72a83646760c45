/*
  Sliced ELL filled on the device from CSR already there, and its diagonal.

  Widths of the slices by a warp each, their starts by a scan (CUB), entries by 32 threads a row.
*/
#include "device.cuh"
#include "../format/sell.h"
#include <cub/device/device_scan.cuh>

__global__ void sell_width_kernel(int m, int nslices, const int *__restrict__ rowptr, int *width)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x), q = r / GPUCSR_SLICE;

  if (q >= nslices) return;
  int len = r < m ? rowptr[r + 1] - rowptr[r] : 0;
#pragma unroll
  for (int o = 16; o; o >>= 1) len = max(len, __shfl_down_sync(0xffffffffu, len, o));
  if (r % GPUCSR_SLICE == 0) {
    width[q] = len;
    if (q == nslices - 1) width[nslices] = 0;
  }
}

/* A thread a stored entry, so that what is written is coalesced; padding gets column -1 and value 0 */
template <class V>
__global__ void sell_fill_kernel(int m, int nslices, const int *__restrict__ slice, const int *__restrict__ rowptr, const int *__restrict__ ccol, const V *__restrict__ cval, int *col, V *val, bool valuesonly)
{
  const int q = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / GPUCSR_SLICE), lane = threadIdx.x % GPUCSR_SLICE;

  if (q >= nslices) return;
  const int r = q * GPUCSR_SLICE + lane, width = slice[q + 1] - slice[q];
  const int begin = r < m ? rowptr[r] : 0, len = r < m ? rowptr[r + 1] - begin : 0;

#pragma unroll 4
  for (int k = 0; k < width; k++) {
    const int64_t e = SELLEntry(slice, r, k);

    if (!valuesonly) col[e] = k < len ? ccol[begin + k] : -1;
    val[e] = k < len ? cval[begin + k] : V(0);
  }
}

template <class V, class X>
__global__ void sell_diagonal_kernel(int n, const int *__restrict__ slice, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, X *d)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  X         v = 0;

  if (r >= n) return;
  const int len = rowptr[r + 1] - rowptr[r];
#pragma unroll 4
  for (int k = 0; k < len; k++)
    if (col[SELLEntry(slice, r, k)] == r) v = X(val[SELLEntry(slice, r, k)]);
  d[r] = v;
}

static PetscErrorCode Fill(const GPUCSRStorage *csr, GPUCSRStorage *A, PetscBool valuesonly, GPUCSRStream st)
{
  cudaStream_t s       = (cudaStream_t)st;
  const int    nslices = (int)A->array[SELL_SLICE].count - 1;
  int         *slice = (int *)A->array[SELL_SLICE].data, *rowptr = (int *)A->array[SELL_ROWPTR].data;

  PetscFunctionBegin;
  if (!nslices) {
    if (!valuesonly) {
      GPUCSR_CUDA(cudaMemsetAsync(slice, 0, sizeof(int), s));
      GPUCSR_CUDA(cudaMemsetAsync(rowptr, 0, sizeof(int), s));
    }
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!valuesonly) {
    size_t bytes = 0;
    void  *temp  = NULL;

    GPUCSR_CUDA(cudaMemcpyAsync(rowptr, csr->array[CSR_ROWPTR].data, sizeof(int) * ((size_t)A->m + 1), cudaMemcpyDeviceToDevice, s));
    sell_width_kernel<<<GPUCSRBlocks((int64_t)nslices * GPUCSR_SLICE, 256), 256, 0, s>>>(A->m, nslices, rowptr, slice);
    GPUCSRCheckLaunch("sell_build (width)");
    GPUCSR_CUDA(cub::DeviceScan::ExclusiveSum(NULL, bytes, slice, slice, nslices + 1, s));
    PetscCall(GPUCSRStorageWork(A, GPUCSR_INT32, bytes / 4 + 1));
    temp = A->work.data;
    GPUCSR_CUDA(cub::DeviceScan::ExclusiveSum(temp, bytes, slice, slice, nslices + 1, s));
  }
#define FILL(V, X) \
  sell_fill_kernel<V><<<GPUCSRBlocks((int64_t)nslices *GPUCSR_SLICE, 128), 128, 0, s>>>(A->m, nslices, slice, rowptr, (const int *)csr->array[CSR_COL].data, (const V *)csr->array[CSR_VAL].data, (int *)A->array[SELL_COL].data, (V *)A->array[SELL_VAL].data, valuesonly ? true : false)
  GPUCSRDispatchPrecision(A->precision, FILL);
  GPUCSRCheckLaunch("sell_build (fill)");
  if (!valuesonly) {
    GPUCSR_CUDA(cudaStreamSynchronize(s));
    PetscCall(GPUCSRFree(A->dev, A->work.count * GPUCSRTypeSize(A->work.type), &A->work.data));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diagonal(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  const int n = PetscMin(A->m, A->n);

  PetscFunctionBegin;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
#define DIAGONAL(V, X) \
  sell_diagonal_kernel<V, X><<<GPUCSRBlocks(n, 256), 256, 0, (cudaStream_t)s>>>(n, (const int *)A->array[SELL_SLICE].data, (const int *)A->array[SELL_ROWPTR].data, (const int *)A->array[SELL_COL].data, (const V *)A->array[SELL_VAL].data, (X *)d)
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
  GPUCSRCheckLaunch("sell_build (diagonal)");
  PetscFunctionReturn(PETSC_SUCCESS);
}

GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_sell) = {NULL, Fill, Diagonal, PETSC_FALSE};

/*
  Jagged diagonals filled on the device from CSR there, and their diagonal.

  A sort gives the order of the rows (order.cu), a search among the sorted lengths the rows of a jagged diagonal, a scan (CUB) its start; four warps
  fill 32 rows.
*/
#include "../device.cuh"
#include "../../format/papers/jad.h"
#include <cub/device/device_scan.cuh>

#define FILL_WARPS 4

/* count[k] = number of rows longer than k */
__global__ void jad_count_kernel(int m, int64_t diagonals, const int *__restrict__ rowptr, const int *__restrict__ perm, int *count)
{
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (k > diagonals) return;
  count[k] = bisect(0, m, [=](int q) { return rowptr[perm[q] + 1] - rowptr[perm[q]] > k; });
}

template <class V>
__global__ void __launch_bounds__(FILL_WARPS * 32) jad_fill_kernel(int m, const int *__restrict__ start, const int *__restrict__ perm, const int *__restrict__ rowptr, const int *__restrict__ ccol, const V *__restrict__ cval, int *col, V *val, bool valuesonly)
{
  const int q = (int)(blockIdx.x * 32 + threadIdx.x);

  if (q >= m) return;
  const int r = perm[q], begin = rowptr[r], len = rowptr[r + 1] - begin;
  for (int k = (int)threadIdx.y; k < len; k += FILL_WARPS) {
    const size_t to = (size_t)start[k] + (size_t)q;

    if (!valuesonly) col[to] = ccol[begin + k];
    val[to] = cval[begin + k];
  }
}

template <class V, class X>
__global__ void jad_diagonal_kernel(int m, int n, const int *__restrict__ start, const int *__restrict__ perm, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, X *d)
{
  const int q = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  X         v = 0;

  if (q >= m) return;
  const int r = perm[q], len = rowptr[r + 1] - rowptr[r];
  if (r >= n) return;
  for (int k = 0; k < len; k++)
    if (col[(size_t)start[k] + (size_t)q] == r) v = X(val[(size_t)start[k] + (size_t)q]);
  d[r] = v;
}

static GPUCSRError Pattern(const GPUCSRStorage *csr, GPUCSRStorage *A, cudaStream_t s)
{
  const int64_t diagonals = A->extent.units;
  int          *start = (int *)A->array[JAD_START].data, *rowptr = (int *)A->array[JAD_ROWPTR].data, *perm = (int *)A->array[JAD_PERM].data;
  size_t        bytes = 0;
  void         *temp  = NULL;

  GPUCSR_CUDA(cudaMemcpyAsync(rowptr, csr->array[CSR_ROWPTR].data, sizeof(int) * ((size_t)A->m + 1), cudaMemcpyDeviceToDevice, s));
  if (A->m) GPUCSRCall(GPUCSRSortRowsOnDevice(A->dev, A->m, A->n, rowptr, GPUCSR_ALL_ROWS, perm, s));
  jad_count_kernel<<<GPUCSRBlocks(diagonals + 1, 128), 128, 0, s>>>(A->m, diagonals, rowptr, perm, start);
  GPUCSRCheckLaunch("jad_build (count)");
  GPUCSR_CUDA(cub::DeviceScan::ExclusiveSum(NULL, bytes, start, start, (int)diagonals + 1, s));
  GPUCSRCall(GPUCSRMalloc(A->dev, bytes, "the starts of jagged diagonals", &temp));
  const cudaError_t err = cub::DeviceScan::ExclusiveSum(temp, bytes, start, start, (int)diagonals + 1, s);
  GPUCSRCall(GPUCSRFree(A->dev, bytes, &temp));
  GPUCSR_CUDA(err);
  return 0;
}

static GPUCSRError Fill_JAD_CUDA(const GPUCSRStorage *csr, GPUCSRStorage *A, GPUCSRBool valuesonly, GPUCSRStream st)
{
  if (!valuesonly) GPUCSRCall(Pattern(csr, A, (cudaStream_t)st));
  if (!A->m) return 0;
#define FILL(V, X) \
  jad_fill_kernel<V><<<GPUCSRBlocks(A->m, 32), dim3(32, FILL_WARPS), 0, (cudaStream_t)st>>>(A->m, (const int *)A->array[JAD_START].data, (const int *)A->array[JAD_PERM].data, (const int *)A->array[JAD_ROWPTR].data, (const int *)csr->array[CSR_COL].data, \
                                                                                            (const V *)csr->array[CSR_VAL].data, (int *)A->array[JAD_COL].data, (V *)A->array[JAD_VAL].data, valuesonly ? true : false)
  GPUCSRDispatchPrecision(A->precision, FILL);
  GPUCSRCheckLaunch("jad_build (fill)");
  return 0;
}

static GPUCSRError Diagonal_JAD_CUDA(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  if (!A->m) return 0;
#define DIAGONAL(V, X) \
  jad_diagonal_kernel<V, X><<<GPUCSRBlocks(A->m, 256), 256, 0, (cudaStream_t)s>>>(A->m, A->n, (const int *)A->array[JAD_START].data, (const int *)A->array[JAD_PERM].data, (const int *)A->array[JAD_ROWPTR].data, (const int *)A->array[JAD_COL].data, \
                                                                                  (const V *)A->array[JAD_VAL].data, (X *)d)
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
  GPUCSRCheckLaunch("jad_build (diagonal)");
  return 0;
}

GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_jad) = {NULL, Fill_JAD_CUDA, Diagonal_JAD_CUDA, false};

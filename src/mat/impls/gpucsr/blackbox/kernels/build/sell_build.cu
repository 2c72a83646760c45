/*
  Sliced ELL in all its variants filled on the device from CSR there, and its diagonal.

  One warp finds the width of each slice, a scan (CUB) their starts, and four warps fill each slice.
*/
#include "scan.cuh"
#include "../../format/sell.h"
#include <cub/device/device_radix_sort.cuh>

#define FILL_WARPS 4
#define ORDER      4 /* the beginning of the rows' order in the data that measure() leaves for fill(), behind the sum and the largest of the widths */

__global__ void order_key_kernel(int m, GPUCSRRowOrder o, const int *__restrict__ rowptr, unsigned int *key, int *row)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r >= m) return;
  key[r] = GPUCSRRowKey(o, r, rowptr[r + 1] - rowptr[r]);
  row[r] = r;
}

/* GPUCSRSortRows() on the device: a stable radix sort (CUB) of window and length together */
static GPUCSRError SortRows(GPUCSRDevice dev, int m, int n, const int *rowptr, int window, int *perm, GPUCSRStream st)
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

/* Widths of the slices, their sum and the largest; width, total and perm may be NULL */
__global__ void sell_width_kernel(int m, int nslices, const int *__restrict__ rowptr, const int *__restrict__ perm, int *width, unsigned long long *total)
{
  const int q = (int)(blockIdx.x * blockDim.x + threadIdx.x), s = q / GPUCSR_SLICE;
  int       len = 0;

  if (s >= nslices) return;
  if (q < m) {
    const int r = perm ? perm[q] : q;

    len = rowptr[r + 1] - rowptr[r];
  }
#pragma unroll
  for (int o = 16; o; o >>= 1) len = max(len, __shfl_down_sync(0xffffffffu, len, o));
  if (q % GPUCSR_SLICE) return;
  if (width) {
    width[s] = len;
    if (s == nslices - 1) width[nslices] = 0;
  }
  if (total) {
    atomicAdd(total, (unsigned long long)len);
    atomicMax(total + 1, (unsigned long long)len);
  }
}

/* One thread for each place of a slice's columns, so that writes are coalesced; padding gets column -1 and value 0. kept: receives the row pointers;
   NULL for values only */
template <class V>
__global__ void __launch_bounds__(FILL_WARPS *GPUCSR_SLICE) sell_fill_kernel(int m, const int *__restrict__ slice, int ellwidth, const int *__restrict__ perm, const int *__restrict__ rowptr, int *kept, const int *__restrict__ ccol, const V *__restrict__ cval, int *col, V *val)
{
  const int s = (int)blockIdx.x, q = s * GPUCSR_SLICE + (int)threadIdx.x, width = slice ? slice[s + 1] - slice[s] : ellwidth;
  int       begin = 0, len = 0;

  if (q < m) {
    const int r = perm ? perm[q] : q;

    begin = rowptr[r];
    len   = rowptr[r + 1] - begin;
    if (kept && threadIdx.y == 0) {
      kept[r] = begin;
      if (r == m - 1) kept[m] = begin + len;
    }
  }
#pragma unroll 4
  for (int k = (int)threadIdx.y; k < width; k += FILL_WARPS) {
    const int64_t e = SELLEntry(slice, ellwidth, q, k);

    if (kept) col[e] = k < len ? ccol[begin + k] : -1;
    val[e] = k < len ? cval[begin + k] : V(0);
  }
}

template <class V, class X>
__global__ void sell_diagonal_kernel(int m, int n, const int *__restrict__ slice, int ellwidth, const int *__restrict__ perm, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, X *d)
{
  const int q = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  X         v = 0;

  if (q >= m) return;
  const int r = perm ? perm[q] : q, len = rowptr[r + 1] - rowptr[r];
  if (r >= n) return;
#pragma unroll 4
  for (int k = 0; k < len; k++)
    if (col[SELLEntry(slice, ellwidth, q, k)] == r) v = X(val[SELLEntry(slice, ellwidth, q, k)]);
  d[r] = v;
}

/* For sorted rows; without sorting the features have the exact extent, without a wait for the device */
static GPUCSRError Measure_SELL_CUDA(GPUCSRStorage *csr, int variant, GPUCSRExtent *e, GPUCSRStream st)
{
  const int           nslices = SELLSlices(csr->m), *rowptr = (const int *)csr->array[CSR_ROWPTR].data;
  cudaStream_t        s      = (cudaStream_t)st;
  int64_t             sum[2] = {0, 0};
  unsigned long long *total;

  if (!nslices || variant == SELL_ELL || variant == SELL_UNSORTED) return 0;
  GPUCSRCall(GPUCSRStorageWork(csr, GPUCSR_INT32, ORDER + (size_t)csr->m));
  total = (unsigned long long *)csr->work.data;
  GPUCSR_CUDA(cudaMemsetAsync(total, 0, sizeof(sum), s));
  GPUCSRCall(SortRows(csr->dev, csr->m, csr->n, rowptr, variant, (int *)csr->work.data + ORDER, st));
  sell_width_kernel<<<GPUCSRBlocks((int64_t)nslices * GPUCSR_SLICE, 256), 256, 0, s>>>(csr->m, nslices, rowptr, (const int *)csr->work.data + ORDER, NULL, total);
  GPUCSRCheckLaunch("sell_build (width)");
  GPUCSRCall(GPUCSRDownload(csr->dev, sum, GPUCSR_INT64, total, GPUCSR_INT64, 2, false, st));
  e->width  = (int)sum[1];
  e->stored = (int64_t)GPUCSR_SLICE * sum[0];
  return 0;
}

static GPUCSRError Pattern(const GPUCSRStorage *csr, GPUCSRStorage *A, cudaStream_t s)
{
  const int  nslices = SELLSlices(A->m);
  const int *rowptr  = (const int *)csr->array[CSR_ROWPTR].data;
  int       *slice = (int *)A->array[SELL_SLICE].data, *perm = A->array[SELL_PERM].count ? (int *)A->array[SELL_PERM].data : NULL;

  if (!nslices) {
    GPUCSR_CUDA(cudaMemsetAsync(A->array[SELL_ROWPTR].data, 0, sizeof(int), s));
    if (A->array[SELL_SLICE].count) GPUCSR_CUDA(cudaMemsetAsync(slice, 0, sizeof(int), s));
    return 0;
  }
  if (perm && csr->work.data) GPUCSR_CUDA(cudaMemcpyAsync(perm, (const int *)csr->work.data + ORDER, sizeof(int) * (size_t)A->m, cudaMemcpyDeviceToDevice, s));
  else if (perm) GPUCSRCall(SortRows(A->dev, A->m, A->n, rowptr, A->format->variant, perm, s));
  if (A->array[SELL_SLICE].count) {
    sell_width_kernel<<<GPUCSRBlocks((int64_t)nslices * GPUCSR_SLICE, 256), 256, 0, s>>>(A->m, nslices, rowptr, perm, slice, NULL);
    GPUCSRCheckLaunch("sell_build (width)");
    GPUCSRCall(GPUCSRSumsBefore(A->dev, slice, slice, nslices + 1, s));
  }
  return 0;
}

static GPUCSRError Fill_SELL_CUDA(const GPUCSRStorage *csr, GPUCSRStorage *A, GPUCSRBool valuesonly, GPUCSRStream st)
{
  const unsigned int nslices = (unsigned int)SELLSlices(A->m);
  const int         *slice = A->array[SELL_SLICE].count ? (const int *)A->array[SELL_SLICE].data : NULL, *perm = A->array[SELL_PERM].count ? (const int *)A->array[SELL_PERM].data : NULL;
  int               *kept = valuesonly ? NULL : (int *)A->array[SELL_ROWPTR].data;

  if (!valuesonly) GPUCSRCall(Pattern(csr, A, (cudaStream_t)st));
  if (!nslices) return 0;
#define FILL(V, X) \
  sell_fill_kernel<V><<<nslices, dim3(GPUCSR_SLICE, FILL_WARPS), 0, (cudaStream_t)st>>>(A->m, slice, A->extent.width, perm, (const int *)(valuesonly ? A->array[SELL_ROWPTR].data : csr->array[CSR_ROWPTR].data), kept, (const int *)csr->array[CSR_COL].data, \
                                                                                        (const V *)csr->array[CSR_VAL].data, (int *)A->array[SELL_COL].data, (V *)A->array[SELL_VAL].data)
  GPUCSRDispatchPrecision(A->precision, FILL);
  GPUCSRCheckLaunch("sell_build (fill)");
  return 0;
}

static GPUCSRError Diagonal_SELL_CUDA(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  const int *slice = A->array[SELL_SLICE].count ? (const int *)A->array[SELL_SLICE].data : NULL, *perm = A->array[SELL_PERM].count ? (const int *)A->array[SELL_PERM].data : NULL;
  const int  m = perm ? A->m : GPUCSRMin(A->m, A->n);

  if (!m) return 0;
#define DIAGONAL(V, X) \
  sell_diagonal_kernel<V, X><<<GPUCSRBlocks(m, 256), 256, 0, (cudaStream_t)s>>>(m, A->n, slice, A->extent.width, perm, (const int *)A->array[SELL_ROWPTR].data, (const int *)A->array[SELL_COL].data, (const V *)A->array[SELL_VAL].data, (X *)d)
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
  GPUCSRCheckLaunch("sell_build (diagonal)");
  return 0;
}

GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_sell) = {Measure_SELL_CUDA, Fill_SELL_CUDA, Diagonal_SELL_CUDA, false};

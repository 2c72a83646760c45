/*
  CSR on the device: its diagonal, its transpose by a stable radix sort (CUB) of the column numbers, and helpers that move numbers by index. The
  upload is CSR already, so nothing is filled.
*/
#include "../moves.h"
#include <cub/device/device_radix_sort.cuh>

template <class V, class X>
__global__ void csr_diagonal_kernel(int n, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, X *d)
{
  const int r    = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 8);
  const int lane = threadIdx.x % 8;
  X         v    = 0;

  if (r < n)
    for (int k = rowptr[r] + lane; k < rowptr[r + 1]; k += 8)
      if (col[k] == r) v = X(val[k]);
  v = reduce<8>(v); /* at most one number is not 0 */
  if (r < n && lane == 0) d[r] = v;
}

static GPUCSRError Fill_CSR_CUDA(const GPUCSRStorage *csr, GPUCSRStorage *A, GPUCSRBool valuesonly, GPUCSRStream s)
{
  for (int k = valuesonly ? CSR_VAL : CSR_ROWPTR; k <= CSR_VAL; k++) GPUCSR_CUDA(cudaMemcpyAsync(A->array[k].data, csr->array[k].data, A->array[k].count * GPUCSRTypeSize(A->array[k].type), cudaMemcpyDeviceToDevice, (cudaStream_t)s));
  return 0;
}

static GPUCSRError Diagonal_CSR_CUDA(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  const int n = GPUCSRMin(A->m, A->n);

  if (!n) return 0;
#define DIAGONAL(V, X) csr_diagonal_kernel<V, X><<<GPUCSRBlocks((int64_t)n * 8, 256), 256, 0, (cudaStream_t)s>>>(n, (const int *)A->array[CSR_ROWPTR].data, (const int *)A->array[CSR_COL].data, (const V *)A->array[CSR_VAL].data, (X *)d)
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
  GPUCSRCheckLaunch("csr_build (diagonal)");
  return 0;
}

GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_csr) = {NULL, Fill_CSR_CUDA, Diagonal_CSR_CUDA, false};

__global__ void iota_kernel(int64_t n, int *to)
{
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (k < n) to[k] = (int)k;
}

/* start[c] = the first of the sorted columns >= c */
__global__ void column_starts_kernel(int n, int64_t nnz, const int *__restrict__ sorted, int *start)
{
  const int c = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (c > n) return;
  start[c] = (int)bisect((int64_t)0, nnz, [=](int64_t k) { return sorted[k] < c; });
}

/* row[k] = the row of entry k: 8 threads for a row */
__global__ void row_numbers_kernel(int m, const int *__restrict__ rowptr, int *row)
{
  const int r = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 8);

  if (r >= m) return;
  for (int k = rowptr[r] + (int)(threadIdx.x % 8); k < rowptr[r + 1]; k += 8) row[k] = r;
}

GPUCSR_MOVES(GPUCSR_EACH)

static GPUCSRError Sort(const GPUCSRStorage *A, int *sorted, int *order, int32_t *map, void **temp, size_t *bytes, cudaStream_t s)
{
  const int *col  = (const int *)A->array[CSR_COL].data;
  int        bits = 1;

  while (bits < 31 && ((int64_t)1 << bits) < A->n) bits++;
  GPUCSR_CUDA(cub::DeviceRadixSort::SortPairs(NULL, *bytes, col, sorted, order, map, A->nnz, 0, bits, s));
  GPUCSRCall(GPUCSRMalloc(A->dev, *bytes, "the transpose's sort", temp));
  iota_kernel<<<GPUCSRBlocks(A->nnz, 256), 256, 0, s>>>(A->nnz, order);
  GPUCSR_CUDA(cub::DeviceRadixSort::SortPairs(*temp, *bytes, col, sorted, order, map, A->nnz, 0, bits, s));
  return 0;
}

/* The sort is stable, so the rows of T are sorted by column */
static GPUCSRError Transpose_CUDA(const GPUCSRStorage *A, GPUCSRStorage *T, int32_t *map, GPUCSRStream st)
{
  const size_t list   = sizeof(int) * (size_t)A->nnz;
  cudaStream_t s      = (cudaStream_t)st;
  void        *sorted = NULL, *order = NULL, *temp = NULL;
  size_t       bytes = 0;
  GPUCSRError  ierr;

  if (!A->nnz) {
    GPUCSR_CUDA(cudaMemsetAsync(T->array[CSR_ROWPTR].data, 0, sizeof(int) * ((size_t)A->n + 1), s));
    return 0;
  }
  GPUCSRCall(GPUCSRMalloc(A->dev, list, "the transpose's sort", &sorted));
  ierr = GPUCSRMalloc(A->dev, list, "the transpose's sort", &order);
  if (!ierr) ierr = Sort(A, (int *)sorted, (int *)order, map, &temp, &bytes, s);
  if (!ierr) {
    column_starts_kernel<<<GPUCSRBlocks((int64_t)A->n + 1, 256), 256, 0, s>>>(A->n, A->nnz, (const int *)sorted, (int *)T->array[CSR_ROWPTR].data);
    row_numbers_kernel<<<GPUCSRBlocks((int64_t)A->m * 8, 256), 256, 0, s>>>(A->m, (const int *)A->array[CSR_ROWPTR].data, (int *)order);
    ierr = gather_each(A->dev, (int)A->nnz, GPUCSR_FLOAT, map, order, T->array[CSR_COL].data, st); /* bits of the size of a float */
    if (!ierr && A->array[CSR_VAL].data) ierr = gather_each(A->dev, (int)A->nnz, T->array[CSR_VAL].type, map, A->array[CSR_VAL].data, T->array[CSR_VAL].data, st);
  }
  if (st != A->dev->stream) (void)cudaStreamSynchronize(s); /* memory goes in the order of the device's stream */
  GPUCSRCall(GPUCSRFree(A->dev, list, &sorted));
  GPUCSRCall(GPUCSRFree(A->dev, list, &order));
  GPUCSRCall(GPUCSRFree(A->dev, bytes, &temp));
  GPUCSRCall(ierr);
  return 0;
}

GPUCSR_EXPORT(GPUCSRDeviceHelpers, GPUCSRDeviceHelpers_cuda) = {Transpose_CUDA, GPUCSRInspect_CUDA, GPUCSR_MOVES(GPUCSR_EACH_ENTRY)};

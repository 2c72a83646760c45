/*
  Coordinates and hyb filled on the device from CSR there, and their diagonals.

  The row of each entry: every row with entries is written at its first one, and a scan by maximum (CUB) carries it on, for any row lengths.
*/
#include "../device.cuh"
#include "../../format/papers/hyb.h"
#include <cub/device/device_scan.cuh>

GPUCSR_INTERN const GPUCSRDeviceFormat GPUCSRDeviceFormat_sell;

struct Largest {
  __device__ __forceinline__ int operator()(int a, int b) const
  {
    return a > b ? a : b;
  }
};

__global__ void coo_mark_kernel(int m, const int *__restrict__ start, int *row)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r < m && start[r] < start[r + 1]) row[start[r]] = r;
}

/* Entries of each row beyond the skip-th */
__global__ void coo_beyond_kernel(int m, const int *__restrict__ rowptr, int skip, int *beyond)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r <= m) beyond[r] = r < m ? max(0, rowptr[r + 1] - rowptr[r] - skip) : 0;
}

/* row = the row of each of n entries; the entries of row r begin at start[r] */
static GPUCSRError Rows(GPUCSRDevice dev, int m, int n, const int *start, int *row, cudaStream_t s)
{
  size_t bytes = 0;
  void  *temp  = NULL;

  GPUCSR_CUDA(cudaMemsetAsync(row, 0, sizeof(int) * (size_t)n, s));
  coo_mark_kernel<<<GPUCSRBlocks(m, 256), 256, 0, s>>>(m, start, row);
  GPUCSRCheckLaunch("coo_build (rows)");
  GPUCSR_CUDA(cub::DeviceScan::InclusiveScan(NULL, bytes, row, row, Largest(), n, s));
  GPUCSRCall(GPUCSRMalloc(dev, bytes, "the rows of entries", &temp));
  const cudaError_t err = cub::DeviceScan::InclusiveScan(temp, bytes, row, row, Largest(), n, s);
  GPUCSRCall(GPUCSRFree(dev, bytes, &temp));
  GPUCSR_CUDA(err);
  return 0;
}

template <class V, class X>
__global__ void coo_diagonal_kernel(int64_t n, const int *__restrict__ row, const int *__restrict__ col, const V *__restrict__ val, X *d)
{
  for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < n; k += (int64_t)gridDim.x * blockDim.x)
    if (row[k] == col[k]) d[row[k]] = X(val[k]);
}

/* Adds the entries on the diagonal to d[r], which has the other ones already */
static GPUCSRError AddDiagonal(const GPUCSRArray *at, GPUCSRPrecision precision, void *d, cudaStream_t s)
{
  const int64_t n = (int64_t)at[COO_VAL].count;

  if (!n) return 0;
#define DIAGONAL(V, X) coo_diagonal_kernel<V, X><<<GPUCSRBlocks(GPUCSRMin(n, 1 << 21), 256), 256, 0, s>>>(n, (const int *)at[COO_ROW].data, (const int *)at[COO_COL].data, (const V *)at[COO_VAL].data, (X *)d)
  GPUCSRDispatchPrecision(precision, DIAGONAL);
  GPUCSRCheckLaunch("coo_build (diagonal)");
  return 0;
}

static GPUCSRError Fill_COO_CUDA(const GPUCSRStorage *csr, GPUCSRStorage *A, GPUCSRBool valuesonly, GPUCSRStream st)
{
  cudaStream_t s = (cudaStream_t)st;

  if (!A->nnz) return 0;
  if (!valuesonly) {
    GPUCSRCall(Rows(A->dev, A->m, (int)A->nnz, (const int *)csr->array[CSR_ROWPTR].data, (int *)A->array[COO_ROW].data, s));
    GPUCSR_CUDA(cudaMemcpyAsync(A->array[COO_COL].data, csr->array[CSR_COL].data, sizeof(int) * (size_t)A->nnz, cudaMemcpyDeviceToDevice, s));
  }
  GPUCSR_CUDA(cudaMemcpyAsync(A->array[COO_VAL].data, csr->array[CSR_VAL].data, GPUCSRTypeSize(A->array[COO_VAL].type) * (size_t)A->nnz, cudaMemcpyDeviceToDevice, s));
  return 0;
}

static GPUCSRError Diagonal_COO_CUDA(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  GPUCSR_CUDA(cudaMemsetAsync(d, 0, GPUCSRTypeSize(GPUCSRVectorType(A->precision)) * (size_t)GPUCSRMin(A->m, A->n), (cudaStream_t)s));
  GPUCSRCall(AddDiagonal(A->array, A->precision, d, (cudaStream_t)s));
  return 0;
}

GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_coo) = {NULL, Fill_COO_CUDA, Diagonal_COO_CUDA, false};

#define COUNT_BLOCK 512

__global__ void __launch_bounds__(COUNT_BLOCK) hyb_count_kernel(int m, const int *__restrict__ rowptr, int *rows)
{
  __shared__ int mine[HYB_WIDEST + 1];

  for (int k = (int)threadIdx.x; k <= HYB_WIDEST; k += COUNT_BLOCK) mine[k] = 0;
  __syncthreads();
  for (int64_t r = (int64_t)blockIdx.x * COUNT_BLOCK + threadIdx.x; r < m; r += (int64_t)gridDim.x * COUNT_BLOCK) atomicAdd(mine + min(HYB_WIDEST, rowptr[r + 1] - rowptr[r]), 1);
  __syncthreads();
  for (int k = (int)threadIdx.x; k <= HYB_WIDEST; k += COUNT_BLOCK)
    if (mine[k]) atomicAdd(rows + k, mine[k]);
}

static GPUCSRError Measure_HYB_CUDA(GPUCSRStorage *csr, int variant, GPUCSRExtent *e, GPUCSRStream st)
{
  const size_t       bytes = sizeof(int) * (HYB_WIDEST + 1);
  HostArray<int32_t> rows;
  int               *device = NULL;
  GPUCSRError        ierr;

  (void)variant;
  GPUCSRCall(rows.make(HYB_WIDEST + 1));
  GPUCSRCall(GPUCSRMalloc(csr->dev, bytes, "counts of rows", (void **)&device));
  (void)cudaMemsetAsync(device, 0, bytes, (cudaStream_t)st);
  if (csr->m) hyb_count_kernel<<<GPUCSRBlocks(GPUCSRMin(csr->m, 1 << 18), COUNT_BLOCK), COUNT_BLOCK, 0, (cudaStream_t)st>>>(csr->m, (const int *)csr->array[CSR_ROWPTR].data, device);
  ierr = GPUCSRDownload(csr->dev, rows.p, GPUCSR_INT32, device, GPUCSR_INT32, HYB_WIDEST + 1, false, st);
  GPUCSRCall(GPUCSRFree(csr->dev, bytes, (void **)&device));
  GPUCSRCall(ierr);
  GPUCSRCheckLaunch("coo_build (count)");
  HYBExtent(csr->m, csr->nnz, rows.p, e);
  return 0;
}

/* The entry in CSR of each entry of the second part: bisection finds its row's first one, so that new values need no pattern */
template <class V>
__global__ void hyb_beyond_kernel(int64_t n, int width, const int *__restrict__ rowptr, const int *__restrict__ row, const int *__restrict__ ccol, const V *__restrict__ cval, int *col, V *val, bool valuesonly)
{
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (k >= n) return;
  const int     r    = row[k];
  const int64_t from = rowptr[r] + width + (k - bisect((int64_t)0, k, [=](int64_t q) { return row[q] < r; }));
  if (!valuesonly) col[k] = ccol[from];
  val[k] = cval[from];
}

static GPUCSRError RowsBeyond(GPUCSRStorage *A, cudaStream_t s)
{
  const size_t list   = ((size_t)A->m + 64) / 64 * 64; /* m + 1 and more, to align the array behind it */
  size_t       bytes  = 0;
  int         *beyond = NULL;

  GPUCSR_CUDA(cub::DeviceScan::ExclusiveSum(NULL, bytes, beyond, beyond, A->m + 1, s));
  GPUCSRCall(GPUCSRMalloc(A->dev, sizeof(int) * list + bytes, "the rows of entries", (void **)&beyond));
  coo_beyond_kernel<<<GPUCSRBlocks((int64_t)A->m + 1, 256), 256, 0, s>>>(A->m, (const int *)A->array[SELL_ROWPTR].data, A->extent.width, beyond);
  const cudaError_t err  = cub::DeviceScan::ExclusiveSum(beyond + list, bytes, beyond, beyond, A->m + 1, s);
  const GPUCSRError ierr = err ? GPUCSR_ERR_GPU : Rows(A->dev, A->m, (int)A->extent.units, beyond, (int *)A->array[HYB_COO + COO_ROW].data, s);
  GPUCSRCall(GPUCSRFree(A->dev, sizeof(int) * list + bytes, (void **)&beyond));
  GPUCSR_CUDA(err);
  GPUCSRCall(ierr);
  return 0;
}

static GPUCSRError Fill_HYB_CUDA(const GPUCSRStorage *csr, GPUCSRStorage *A, GPUCSRBool valuesonly, GPUCSRStream s)
{
  const int64_t n = A->extent.units;

  GPUCSRCall((*GPUCSRDeviceFormat_sell.fill)(csr, A, valuesonly, s));
  if (!n) return 0;
  if (!valuesonly) GPUCSRCall(RowsBeyond(A, (cudaStream_t)s));
#define FILL(V, X) \
  hyb_beyond_kernel<V><<<GPUCSRBlocks(n, 256), 256, 0, (cudaStream_t)s>>>(n, A->extent.width, (const int *)A->array[SELL_ROWPTR].data, (const int *)A->array[HYB_COO + COO_ROW].data, (const int *)csr->array[CSR_COL].data, \
                                                                          (const V *)csr->array[CSR_VAL].data, (int *)A->array[HYB_COO + COO_COL].data, (V *)A->array[HYB_COO + COO_VAL].data, valuesonly ? true : false)
  GPUCSRDispatchPrecision(A->precision, FILL);
  GPUCSRCheckLaunch("coo_build (hyb)");
  return 0;
}

static GPUCSRError Diagonal_HYB_CUDA(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  GPUCSRCall((*GPUCSRDeviceFormat_sell.diagonal)(A, d, s));
  GPUCSRCall(AddDiagonal(A->array + HYB_COO, A->precision, d, (cudaStream_t)s));
  return 0;
}

GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_hyb) = {Measure_HYB_CUDA, Fill_HYB_CUDA, Diagonal_HYB_CUDA, false};

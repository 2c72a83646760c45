/* Row lengths of a product on a GPU: their bound, classes of rows by length, and row pointers */
#include "spgemm.cuh"
#include <cub/device/device_scan.cuh>

__global__ void bound_kernel(int m, int n, csr A, const int *__restrict__ brow, int *length)
{
  const int r = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 8);
  int64_t   w = 0;

  if (r < m)
    for (int k = A.i[r] + (int)(threadIdx.x % 8); k < A.i[r + 1]; k += 8) w += brow[A.j[k] + 1] - brow[A.j[k]];
  w = reduce<8>(w);
  if (r < m && threadIdx.x % 8 == 0) length[r] = (int)(w < n ? w : n);
}

GPUCSRError GPUCSRBound_CUDA(const GPUCSRStorage *A, const GPUCSRStorage *B, int32_t *length)
{
  if (!A->m) return 0;
  bound_kernel<<<GPUCSRBlocks((int64_t)A->m * 8, 256), 256, 0, StreamOf(A)>>>(A->m, B->n, Arrays(A), Arrays(B).i, length);
  GPUCSRCheckLaunch("spgemm (bound)");
  return 0;
}

/* counts[0 ..]: number of rows in each class; then the longest row */
__global__ void classes_kernel(int m, const int *__restrict__ length, int *counts)
{
  __shared__ int part[GPUCSR_ROW_CLASSES + 1];
  const int      r = blockIdx.x * blockDim.x + threadIdx.x;

  if (threadIdx.x <= GPUCSR_ROW_CLASSES) part[threadIdx.x] = 0;
  __syncthreads();
  if (r < m) {
    atomicAdd(part + GPUCSRRowClass(length[r]), 1);
    atomicMax(part + GPUCSR_ROW_CLASSES, length[r]);
  }
  __syncthreads();
  if (threadIdx.x < GPUCSR_ROW_CLASSES && part[threadIdx.x]) atomicAdd(counts + threadIdx.x, part[threadIdx.x]);
  if (threadIdx.x == GPUCSR_ROW_CLASSES && part[threadIdx.x]) atomicMax(counts + threadIdx.x, part[threadIdx.x]);
}

/* The order of a class' rows depends on the timing of blocks; no result depends on it */
__global__ void deal_kernel(int m, const int *__restrict__ length, int *next, int *rows)
{
  __shared__ int part[GPUCSR_ROW_CLASSES], from[GPUCSR_ROW_CLASSES];
  const int      r = blockIdx.x * blockDim.x + threadIdx.x, k = r < m ? GPUCSRRowClass(length[r]) : 0;
  int            at = 0;

  if (threadIdx.x < GPUCSR_ROW_CLASSES) part[threadIdx.x] = 0;
  __syncthreads();
  if (r < m) at = atomicAdd(part + k, 1);
  __syncthreads();
  if (threadIdx.x < GPUCSR_ROW_CLASSES && part[threadIdx.x]) from[threadIdx.x] = atomicAdd(next + threadIdx.x, part[threadIdx.x]);
  __syncthreads();
  if (r < m) rows[from[k] + at] = r;
}

static GPUCSRError ClassifySteps(int m, const int32_t *length, GPUCSRRowClasses *c, GPUCSRDevice dev, int *counts)
{
  const cudaStream_t s = (cudaStream_t)dev->stream;
  int                host[GPUCSR_ROW_CLASSES + 1];

  GPUCSRCall(dev->ops->zero(dev->id, counts, sizeof(host), s));
  classes_kernel<<<GPUCSRBlocks(m, 256), 256, 0, s>>>(m, length, counts);
  GPUCSRCheckLaunch("spgemm (classes)");
  GPUCSRCall(dev->ops->copy(dev->id, host, counts, sizeof(host), GPUCSR_TO_HOST, s));
  GPUCSRCall(dev->ops->streamsynchronize(dev->id, s));
  c->longest  = host[GPUCSR_ROW_CLASSES];
  c->first[0] = 0;
  for (int k = 0; k < GPUCSR_ROW_CLASSES; k++) c->first[k + 1] = c->first[k] + host[k];
  GPUCSRCall(dev->ops->copy(dev->id, counts, c->first, sizeof(int) * GPUCSR_ROW_CLASSES, GPUCSR_TO_DEVICE, s));
  deal_kernel<<<GPUCSRBlocks(m, 256), 256, 0, s>>>(m, length, counts, c->rows);
  GPUCSRCheckLaunch("spgemm (deal)");
  return 0;
}

GPUCSRError GPUCSRClassify_CUDA(int m, const int32_t *length, GPUCSRRowClasses *c, GPUCSRDevice dev)
{
  void        *counts = NULL;
  const size_t bytes  = sizeof(int) * (GPUCSR_ROW_CLASSES + 1);
  GPUCSRError  ierr;

  if (!m) return 0;
  GPUCSRCall(GPUCSRMalloc(dev, bytes, "rows by class", &counts));
  ierr = ClassifySteps(m, length, c, dev, (int *)counts);
  GPUCSRCall(GPUCSRFree(dev, bytes, &counts));
  GPUCSRCall(ierr);
  return 0;
}

__global__ void sum_kernel(int m, const int *__restrict__ length, unsigned long long *sum)
{
  unsigned long long s = 0;

  for (int64_t r = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; r < m; r += (int64_t)gridDim.x * blockDim.x) s += (unsigned long long)length[r];
  s = reduce<32>(s);
  if (threadIdx.x % 32 == 0 && s) atomicAdd(sum, s);
}

GPUCSRError GPUCSRScan_CUDA(int m, const int32_t *length, int32_t *rowptr, int64_t *nnz, GPUCSRDevice dev)
{
  const cudaStream_t s     = (cudaStream_t)dev->stream;
  size_t             bytes = 0;
  void              *temp  = NULL;
  GPUCSRError        ierr;

  GPUCSR_CUDA(cub::DeviceScan::ExclusiveSum(NULL, bytes, length, rowptr, m + 1, s));
  bytes = GPUCSRMax(bytes, sizeof(*nnz));
  GPUCSRCall(GPUCSRMalloc(dev, bytes, "a product's scan", &temp));
  ierr = dev->ops->zero(dev->id, temp, sizeof(*nnz), s);
  if (!ierr) {
    if (m) sum_kernel<<<GPUCSRMin(GPUCSRBlocks(m, 256), 4096u), 256, 0, s>>>(m, length, (unsigned long long *)temp);
    ierr = dev->ops->copy(dev->id, nnz, temp, sizeof(*nnz), GPUCSR_TO_HOST, s);
  }
  if (!ierr) ierr = dev->ops->streamsynchronize(dev->id, s);
  if (!ierr && cub::DeviceScan::ExclusiveSum(temp, bytes, length, rowptr, m + 1, s) != cudaSuccess) ierr = GPUCSR_ERR_GPU;
  GPUCSRCall(GPUCSRFree(dev, bytes, &temp));
  GPUCSRCheck(ierr != GPUCSR_ERR_GPU, GPUCSR_ERR_GPU, "The scan of a product's row lengths failed");
  GPUCSRCall(ierr);
  return 0;
}

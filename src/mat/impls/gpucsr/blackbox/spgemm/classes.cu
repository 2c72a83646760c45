/* Row lengths of a product on a GPU: classes of rows by length, and row pointers */
#include "spgemm.h"
#include <cub/device/device_scan.cuh>

/* The host reads these counts of all lengths. next: the next free place of each class */
struct counts {
  unsigned long long sum;
  int                rows[GPUCSR_ROW_CLASSES], longest, next[GPUCSR_ROW_CLASSES];
};

#define COUNT_THREADS 256
#define COUNT_BLOCKS  1024u

__global__ void __launch_bounds__(COUNT_THREADS) classes_kernel(int m, const int *__restrict__ length, counts *c)
{
  __shared__ counts part;
  int               rows[GPUCSR_ROW_CLASSES] = {0}, longest = 0;
  int64_t           sum = 0;

  if (threadIdx.x < GPUCSR_ROW_CLASSES) part.rows[threadIdx.x] = 0;
  if (threadIdx.x == 0) part.longest = 0;
  if (threadIdx.x == 0) part.sum = 0;
  __syncthreads();
  for (int64_t r = (int64_t)blockIdx.x * COUNT_THREADS + threadIdx.x; r < m; r += (int64_t)gridDim.x * COUNT_THREADS) {
    const int n = length[r], at = GPUCSRRowClass(n);

    sum += n;
    longest = max(longest, n);
#pragma unroll
    for (int k = 0; k < GPUCSR_ROW_CLASSES; k++) rows[k] += k == at;
  }
  sum = reduce<32>(sum);
#pragma unroll
  for (int o = 16; o; o >>= 1) longest = max(longest, __shfl_down_sync(0xffffffffu, longest, o));
#pragma unroll
  for (int k = 0; k < GPUCSR_ROW_CLASSES; k++) rows[k] = reduce<32>(rows[k]);
  if (threadIdx.x % 32 == 0) {
#pragma unroll
    for (int k = 0; k < GPUCSR_ROW_CLASSES; k++)
      if (rows[k]) atomicAdd(part.rows + k, rows[k]);
    atomicMax(&part.longest, longest);
    atomicAdd(&part.sum, (unsigned long long)sum);
  }
  __syncthreads();
  if (threadIdx.x < GPUCSR_ROW_CLASSES && part.rows[threadIdx.x]) atomicAdd(c->rows + threadIdx.x, part.rows[threadIdx.x]);
  if (threadIdx.x == 0) atomicMax(&c->longest, part.longest);
  if (threadIdx.x == 0) atomicAdd(&c->sum, part.sum);
}

/* The order of a class' rows depends on the timing of blocks; no result depends on it */
__global__ void __launch_bounds__(COUNT_THREADS) deal_kernel(int m, const int *__restrict__ length, counts *c, int *rows)
{
  __shared__ int part[GPUCSR_ROW_CLASSES], from[GPUCSR_ROW_CLASSES];
  const int      r = blockIdx.x * COUNT_THREADS + threadIdx.x, k = r < m ? GPUCSRRowClass(length[r]) : 0;
  int            at = 0;

  if (threadIdx.x < GPUCSR_ROW_CLASSES) part[threadIdx.x] = 0;
  __syncthreads();
  if (r < m) at = atomicAdd(part + k, 1);
  __syncthreads();
  if (threadIdx.x < GPUCSR_ROW_CLASSES && part[threadIdx.x]) {
    int first = 0;

    for (int q = 0; q < (int)threadIdx.x; q++) first += c->rows[q];
    from[threadIdx.x] = first + atomicAdd(c->next + threadIdx.x, part[threadIdx.x]);
  }
  __syncthreads();
  if (r < m) rows[from[k] + at] = r;
}

/* rowptr NULL: the classes alone; c NULL: the row pointers alone. The scan's memory is behind the counts */
static GPUCSRError ShapeSteps(int m, const int32_t *length, int32_t *rowptr, size_t bytes, int64_t *nnz, GPUCSRRowClasses *c, GPUCSRDevice dev, char *work)
{
  const cudaStream_t s = (cudaStream_t)dev->stream;
  counts             host, *all = (counts *)work;

  GPUCSRCall(dev->ops->zero(dev->id, all, sizeof(host), s));
  classes_kernel<<<GPUCSRMin(GPUCSRBlocks(m, COUNT_THREADS), COUNT_BLOCKS), COUNT_THREADS, 0, s>>>(m, length, all);
  GPUCSRCheckLaunch("spgemm (classes)");
  if (c) deal_kernel<<<GPUCSRBlocks(m, COUNT_THREADS), COUNT_THREADS, 0, s>>>(m, length, all, c->rows);
  GPUCSRCheckLaunch("spgemm (deal)");
  if (rowptr) GPUCSR_CUDA(cub::DeviceScan::ExclusiveSum(work + GPUCSRAlignUp(sizeof(host)), bytes, length, rowptr, m + 1, s));
  GPUCSRCall(GPUCSRRead(dev, &host, all, sizeof(host)));
  if (nnz) *nnz = (int64_t)host.sum;
  if (!c) return 0;
  c->longest  = host.longest;
  c->first[0] = 0;
  for (int k = 0; k < GPUCSR_ROW_CLASSES; k++) c->first[k + 1] = c->first[k] + host.rows[k];
  return 0;
}

GPUCSRError GPUCSRShape_CUDA(int m, const int32_t *length, int32_t *rowptr, int64_t *nnz, GPUCSRRowClasses *c, GPUCSRDevice dev)
{
  void       *work = NULL;
  size_t      scan = 0;
  GPUCSRError ierr;

  if (nnz) *nnz = 0;
  if (!m) {
    if (rowptr) GPUCSRCall(dev->ops->zero(dev->id, rowptr, sizeof(*rowptr), dev->stream));
    return 0;
  }
  if (rowptr) GPUCSR_CUDA(cub::DeviceScan::ExclusiveSum(NULL, scan, length, rowptr, m + 1, (cudaStream_t)dev->stream));
  const size_t bytes = GPUCSRAlignUp(sizeof(counts)) + scan;
  GPUCSRCall(GPUCSRMalloc(dev, bytes, "rows by class", &work));
  ierr = ShapeSteps(m, length, rowptr, scan, nnz, c, dev, (char *)work);
  GPUCSRCall(GPUCSRFree(dev, bytes, &work));
  GPUCSRCall(ierr);
  return 0;
}

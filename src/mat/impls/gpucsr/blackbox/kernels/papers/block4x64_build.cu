/*
  Hybrid blocks filled on the device from CSR there, and their diagonal.

  A warp has a block row, with eight threads for each row, and goes from block to block. The least column left in its rows begins the block, and the
  eight threads count their row's entries in the block. The first pass counts blocks and units of each block row, whose places are scans (CUB); the second writes.
  A copy of unsorted rows is sorted first.
*/
#include "../device.cuh"
#include "../build/sorted.cuh"
#include "../../format/papers/block4x64.h"
#include <cub/device/device_scan.cuh>

#define LANES 8 /* a row */
#define NONE  0x7FFFFFFF

/* The next block of a warp's block row. A thread knows the remaining entries of its row, begin <= k < end. */
typedef struct {
  int start, count, units; /* the block's first column; this row's entries and units there */
  int before, all;         /* units of the rows above, and of all four */
} Next;

/* False: no row has an entry left */
__device__ __forceinline__ bool next_block(int begin, int end, const int *__restrict__ col, Next *b)
{
  const int lane = threadIdx.x % 32, row = lane / LANES;
  int       least = begin < end ? col[begin] : NONE;
  unsigned  in;

  least = min(least, __shfl_xor_sync(0xffffffffu, least, LANES));
  least = min(least, __shfl_xor_sync(0xffffffffu, least, 2 * LANES));
  if (least == NONE) return false;
  b->start = least / BLOCK4X64_UNIT * BLOCK4X64_UNIT;
  b->count = 0;
  do {
    const int k = begin + b->count + lane % LANES;

    in = __ballot_sync(0xffffffffu, k < end && col[k] - b->start < BLOCK4X64_COLS) >> (row * LANES) & ((1u << LANES) - 1);
    b->count += __popc(in);
  } while (__any_sync(0xffffffffu, in == (1u << LANES) - 1));
  b->units  = (b->count + BLOCK4X64_UNIT - 1) / BLOCK4X64_UNIT;
  b->before = b->all = 0;
#pragma unroll
  for (int i = 0; i < BLOCK4X64_ROWS; i++) {
    const int u = __shfl_sync(0xffffffffu, b->units, i * LANES);

    b->before += i < row ? u : 0;
    b->all += u;
  }
  return true;
}

/* Blocks and units of each block row */
__global__ void __launch_bounds__(256) hybrid_count_kernel(int rows, int m, const int *__restrict__ rowptr, const int *__restrict__ col, int *blocks, int *units, int *unsorted)
{
  const int R = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32), lane = threadIdx.x % 32, r = R * BLOCK4X64_ROWS + lane / LANES;
  int       nblocks = 0, nunits = 0;
  Next      b;

  if (R >= rows) return;
  int       begin = r < m ? rowptr[r] : 0;
  const int end   = r < m ? rowptr[r + 1] : 0;
  for (int k = begin + lane % LANES; k < end; k += LANES) check_sorted(k, begin, col, unsorted);
  for (; next_block(begin, end, col, &b); begin += b.count) {
    nblocks++;
    nunits += b.all;
  }
  if (lane == 0) {
    blocks[R] = nblocks;
    units[R]  = nunits;
  }
}

/* start NULL: values only */
template <class V>
__global__ void __launch_bounds__(256) hybrid_fill_kernel(int rows, int m, const int *__restrict__ rowptr, const int *__restrict__ ccol, const V *__restrict__ cval, const int *__restrict__ blocks, const int *__restrict__ units, int *start, int *unit, unsigned char *col, V *val)
{
  const int R = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32), lane = threadIdx.x % 32, row = lane / LANES, r = R * BLOCK4X64_ROWS + row;
  Next      b;

  if (R >= rows) return;
  int       begin = r < m ? rowptr[r] : 0, q = blocks[R], u = units[R];
  const int end = r < m ? rowptr[r + 1] : 0;
  for (; next_block(begin, end, ccol, &b); begin += b.count) {
    if (start) {
      if (lane == 0) start[q] = b.start;
      if (lane % LANES == 0) unit[BLOCK4X64_ROWS * q + row] = u + b.before;
    }
    for (int k = lane % LANES; k < b.units * BLOCK4X64_UNIT; k += LANES) {
      const int e = (u + b.before) * BLOCK4X64_UNIT + k;

      if (start) col[e] = k < b.count ? (unsigned char)(ccol[begin + k] - b.start) : BLOCK4X64_COLS;
      val[e] = k < b.count ? cval[begin + k] : V(0);
    }
    q++;
    u += b.all;
  }
}

template <class V, class X>
__global__ void hybrid_diagonal_kernel(int n, const int *__restrict__ rowptr, const int *__restrict__ start, const int *__restrict__ unit, const unsigned char *__restrict__ col, const V *__restrict__ val, X *d)
{
  const int r = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / LANES), lane = threadIdx.x % LANES;
  X         v = 0;

  if (r < n)
    for (int b = rowptr[r / BLOCK4X64_ROWS]; b < rowptr[r / BLOCK4X64_ROWS + 1]; b++) {
      const int *u = unit + BLOCK4X64_ROWS * b + r % BLOCK4X64_ROWS, at = r - start[b];

      if (at < 0 || at >= BLOCK4X64_COLS) continue;
      for (int k = BLOCK4X64_UNIT * u[0] + lane; k < BLOCK4X64_UNIT * u[1]; k += LANES)
        if (col[k] == at) v = X(val[k]);
    }
  v = reduce<LANES>(v); /* at most one number is not 0 */
  if (r < n && lane == 0) d[r] = v;
}

/* The beginnings of the blocks and units of each block row, rows + 1 of each, in one allocation */
typedef struct {
  int    rows;
  int   *blocks, *units, *unsorted;
  void  *memory;
  size_t bytes;
} Places;

static GPUCSRError CountSteps(const GPUCSRStorage *csr, Places *p, size_t scan, GPUCSRBool *sorted, GPUCSRExtent *e, cudaStream_t s)
{
  void *temp = p->unsorted + 1;
  int   host[3];

  GPUCSR_CUDA(cudaMemsetAsync(p->memory, 0, (size_t)((char *)temp - (char *)p->memory), s));
  hybrid_count_kernel<<<GPUCSRBlocks((int64_t)p->rows * 32, 256), 256, 0, s>>>(p->rows, csr->m, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, p->blocks, p->units, p->unsorted);
  GPUCSRCheckLaunch("block4x64_build (count)");
  GPUCSR_CUDA(cub::DeviceScan::ExclusiveSum(temp, scan, p->blocks, p->blocks, p->rows + 1, s));
  GPUCSR_CUDA(cub::DeviceScan::ExclusiveSum(temp, scan, p->units, p->units, p->rows + 1, s));
  GPUCSR_CUDA(cudaMemcpyAsync(host, p->blocks + p->rows, sizeof(int), cudaMemcpyDeviceToHost, s));
  GPUCSR_CUDA(cudaMemcpyAsync(host + 1, p->units + p->rows, 2 * sizeof(int), cudaMemcpyDeviceToHost, s));
  GPUCSR_CUDA(cudaStreamSynchronize(s));
  e->units  = host[0];
  e->stored = (int64_t)host[1] * BLOCK4X64_UNIT;
  *sorted   = host[2] ? false : true;
  return 0;
}

/* The caller frees p, even after an error */
static GPUCSRError Count_block4x64(const GPUCSRStorage *csr, Places *p, GPUCSRBool *sorted, GPUCSRExtent *e, cudaStream_t s)
{
  size_t scan = 0;

  p->rows = (int)(((int64_t)csr->m + BLOCK4X64_ROWS - 1) / BLOCK4X64_ROWS);
  GPUCSR_CUDA(cub::DeviceScan::ExclusiveSum(NULL, scan, (int *)NULL, (int *)NULL, p->rows + 1, s));
  p->bytes = sizeof(int) * (2 * (size_t)p->rows + 3) + scan;
  GPUCSRCall(GPUCSRMalloc(csr->dev, p->bytes, "the places of blocks", &p->memory));
  p->blocks   = (int *)p->memory;
  p->units    = p->blocks + p->rows + 1;
  p->unsorted = p->units + p->rows + 1;
  GPUCSRCall(CountSteps(csr, p, scan, sorted, e, s));
  return 0;
}

static GPUCSRError FillSteps(const GPUCSRStorage *csr, const Places *p, const GPUCSRExtent *e, GPUCSRStorage *A, GPUCSRBool valuesonly, cudaStream_t s)
{
  int *unit = (int *)A->array[BLOCK4X64_UNIT4].data;

  GPUCSRCheck(e->units == A->extent.units && e->stored == A->extent.stored, GPUCSR_ERR_PLIB, "%.0f blocks, %.0f when they were counted", (double)e->units, (double)A->extent.units);
  if (!valuesonly) {
    GPUCSR_CUDA(cudaMemcpyAsync(A->array[BLOCK4X64_ROWPTR].data, p->blocks, sizeof(int) * ((size_t)p->rows + 1), cudaMemcpyDeviceToDevice, s));
    GPUCSR_CUDA(cudaMemcpyAsync(unit + BLOCK4X64_ROWS * e->units, p->units + p->rows, sizeof(int), cudaMemcpyDeviceToDevice, s));
  }
#define FILL(V, X) \
  hybrid_fill_kernel<V><<<GPUCSRBlocks((int64_t)p->rows * 32, 256), 256, 0, s>>>(p->rows, csr->m, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, (const V *)csr->array[CSR_VAL].data, p->blocks, p->units, \
                                                                                 valuesonly ? NULL : (int *)A->array[BLOCK4X64_START].data, unit, (unsigned char *)A->array[BLOCK4X64_COL].data, (V *)A->array[BLOCK4X64_VAL].data)
  GPUCSRDispatchPrecision(A->precision, FILL);
  GPUCSRCheckLaunch("block4x64_build (fill)");
  return 0;
}

/* Counts and, if A is given, fills it: from csr, or from a copy with sorted rows */
static GPUCSRError Build(const GPUCSRStorage *csr, GPUCSRStorage *A, GPUCSRBool valuesonly, GPUCSRExtent *e, GPUCSRStream st)
{
  GPUCSRDevice  dev  = csr->dev;
  GPUCSRStorage copy = {0};
  Places        p    = {0};
  GPUCSRBool    sorted;
  GPUCSRError   ierr;

  ierr = Count_block4x64(csr, &p, &sorted, e, (cudaStream_t)st);
  if (!ierr && !sorted) {
    ierr = GPUCSRFree(dev, p.bytes, &p.memory);
    if (!ierr) ierr = GPUCSRSortColumns(csr, &copy, st);
    csr = &copy;
    if (!ierr) ierr = Count_block4x64(csr, &p, &sorted, e, (cudaStream_t)st);
  }
  if (!ierr && A) ierr = FillSteps(csr, &p, e, A, valuesonly, (cudaStream_t)st);
  GPUCSRCall(GPUCSRFree(dev, p.bytes, &p.memory)); /* in the order of the stream */
  GPUCSRCall(GPUCSRStorageDestroy(&copy));
  GPUCSRCall(ierr);
  return 0;
}

static GPUCSRError Measure_Block4x64_CUDA(GPUCSRStorage *csr, int variant, GPUCSRExtent *e, GPUCSRStream s)
{
  (void)variant;
  e->units = e->stored = 0;
  if (csr->nnz) GPUCSRCall(Build(csr, NULL, false, e, s));
  return 0;
}

static GPUCSRError Fill_Block4x64_CUDA(const GPUCSRStorage *csr, GPUCSRStorage *A, GPUCSRBool valuesonly, GPUCSRStream s)
{
  GPUCSRExtent e = {0};

  if (A->nnz) GPUCSRCall(Build(csr, A, valuesonly, &e, s));
  else if (!valuesonly)
    for (int k = BLOCK4X64_ROWPTR; k <= BLOCK4X64_UNIT4; k++) GPUCSR_CUDA(cudaMemsetAsync(A->array[k].data, 0, sizeof(int) * A->array[k].count, (cudaStream_t)s));
  return 0;
}

static GPUCSRError Diagonal_Block4x64_CUDA(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  const int n = GPUCSRMin(A->m, A->n);

  if (!n) return 0;
#define DIAGONAL(V, X) \
  hybrid_diagonal_kernel<V, X><<<GPUCSRBlocks((int64_t)n *LANES, 256), 256, 0, (cudaStream_t)s>>>(n, (const int *)A->array[BLOCK4X64_ROWPTR].data, (const int *)A->array[BLOCK4X64_START].data, (const int *)A->array[BLOCK4X64_UNIT4].data, \
                                                                                                  (const unsigned char *)A->array[BLOCK4X64_COL].data, (const V *)A->array[BLOCK4X64_VAL].data, (X *)d)
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
  GPUCSRCheckLaunch("block4x64_build (diagonal)");
  return 0;
}

GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_block4x64) = {Measure_Block4x64_CUDA, Fill_Block4x64_CUDA, Diagonal_Block4x64_CUDA, true};

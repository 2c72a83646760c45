/*
  A list of coordinates becomes a pattern and sums on a GPU.

  Sort: a key for each contribution, row in the high bits, column in the low bits, sorted with the place in the list by CUB's stable radix sort; a scan of the heads of equal keys numbers the entries.
  Sum: a block of threads takes 256 neighbouring entries. Their contributions are neighbours in the sorted list: all threads fetch them into shared memory, piece by piece, and each thread adds up its own.
*/
#include "inplace.h"
#include "../kernels/device.cuh"
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#define THREADS 256
#define PIECE   2048 /* contributions of a block in shared memory at a time */

static inline cudaStream_t StreamOf(GPUCSRDevice dev)
{
  return (cudaStream_t)dev->stream;
}

/* Indices as a kernel sees them */
template <class I>
struct list {
  const I *i, *j, *row, *col;
  int      rows, cols, m, n;
  int      low; /* bits of a column */
};

/* -1: skipped, n: beyond the matrix */
template <class I>
__device__ __forceinline__ int64_t index_of(I i, const I *table, int length, int n)
{
  int64_t k = i;

  if (k >= 0 && table) k = k < length ? (int64_t)table[k] : n;
  return k < 0 ? -1 : k < n ? k : n;
}

/* A skipped contribution sorts behind all others, as row m */
template <class I>
__global__ void keys_kernel(int64_t len, list<I> c, uint64_t *key, int *order, unsigned long long *bad)
{
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (k >= len) return;
  const int64_t r = index_of(c.i[k], c.row, c.rows, c.m), q = index_of(c.j[k], c.col, c.cols, c.n);
  const bool    skipped = r < 0 || q < 0, beyond = !skipped && (r == c.m || q == c.n);

  if (beyond) atomicMin(bad, (unsigned long long)k);
  key[k]   = skipped || beyond ? (uint64_t)c.m << c.low : (uint64_t)r << c.low | (uint64_t)q;
  order[k] = (int)k;
}

/* The first of a list in ascending order that is not below x */
__device__ __forceinline__ int64_t lower_bound(const uint64_t *key, int64_t n, uint64_t x)
{
  int64_t lo = 0, hi = n;

  while (lo < hi) {
    const int64_t mid = (lo + hi) / 2;

    if (key[mid] < x) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

__global__ void heads_kernel(int64_t len, const uint64_t *__restrict__ key, uint64_t end, int *head)
{
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (k < len) head[k] = key[k] < end && (!k || key[k] != key[k - 1]) ? 1 : 0;
}

/* result: contributions that are kept, and entries */
__global__ void counts_kernel(int64_t len, const uint64_t *key, uint64_t end, const int *entry, unsigned long long *result)
{
  const int64_t kept = lower_bound(key, len, end);

  result[0] = (unsigned long long)kept;
  result[1] = kept ? (unsigned long long)entry[kept - 1] : 0;
}

static int Bits(int64_t n)
{
  int bits = 0;

  while (((int64_t)1 << bits) < n) bits++;
  return bits;
}

/* key[0] and order[0] sorted, entry, and the counts; number: three numbers on the device */
static GPUCSRError SortSteps(const GPUCSRCoordinates *c, int m, int n, GPUCSRSum *s, unsigned long long *number, void **temp, size_t *bytes)
{
  GPUCSRDevice                dev    = s->dev;
  cudaStream_t                stream = StreamOf(dev);
  const int64_t               len    = s->n;
  const int                   low = Bits(n), bits = GPUCSRMax(1, low + Bits((int64_t)m + 1));
  const uint64_t              end  = (uint64_t)m << low;
  const unsigned long long    none = ~0ull;
  unsigned long long          host[3];
  size_t                      scan = 0;
  cub::DoubleBuffer<uint64_t> key(s->key[0], s->key[1]);
  cub::DoubleBuffer<int32_t>  order(s->order[0], s->order[1]);

  GPUCSRCall(dev->ops->copy(dev->id, number + 2, &none, sizeof(none), GPUCSR_TO_DEVICE, dev->stream));
  if (c->type == GPUCSR_INT32) {
    const list<int32_t> l = {(const int32_t *)c->i, (const int32_t *)c->j, (const int32_t *)c->row, (const int32_t *)c->col, c->rows, c->cols, m, n, low};

    keys_kernel<<<GPUCSRBlocks(len, THREADS), THREADS, 0, stream>>>(len, l, s->key[0], s->order[0], number + 2);
  } else {
    const list<int64_t> l = {(const int64_t *)c->i, (const int64_t *)c->j, (const int64_t *)c->row, (const int64_t *)c->col, c->rows, c->cols, m, n, low};

    keys_kernel<<<GPUCSRBlocks(len, THREADS), THREADS, 0, stream>>>(len, l, s->key[0], s->order[0], number + 2);
  }
  GPUCSRCheckLaunch("assemble (keys)");
  GPUCSR_CUDA(cub::DeviceRadixSort::SortPairs(NULL, *bytes, key, order, (int)len, 0, bits, stream));
  GPUCSR_CUDA(cub::DeviceScan::InclusiveSum(NULL, scan, s->entry, s->entry, (int)len, stream));
  *bytes = GPUCSRMax(*bytes, scan);
  GPUCSRCall(GPUCSRMalloc(dev, *bytes, "the sort of coordinates", temp));
  GPUCSR_CUDA(cub::DeviceRadixSort::SortPairs(*temp, *bytes, key, order, (int)len, 0, bits, stream));
  s->key[1]   = key.Alternate();
  s->key[0]   = key.Current();
  s->order[1] = order.Alternate();
  s->order[0] = order.Current();
  heads_kernel<<<GPUCSRBlocks(len, THREADS), THREADS, 0, stream>>>(len, s->key[0], end, s->entry);
  GPUCSRCheckLaunch("assemble (heads)");
  GPUCSR_CUDA(cub::DeviceScan::InclusiveSum(*temp, *bytes, s->entry, s->entry, (int)len, stream));
  counts_kernel<<<1, 1, 0, stream>>>(len, s->key[0], end, s->entry, number);
  GPUCSRCheckLaunch("assemble (counts)");
  GPUCSRCall(dev->ops->copy(dev->id, host, number, sizeof(host), GPUCSR_TO_HOST, dev->stream));
  GPUCSRCall(dev->ops->streamsynchronize(dev->id, dev->stream));
  s->kept = (int64_t)host[0];
  s->nnz  = (int64_t)host[1];
  s->bad  = host[2] == none ? -1 : (int64_t)host[2];
  return 0;
}

static GPUCSRError Sort_CUDA(const GPUCSRCoordinates *c, int m, int n, GPUCSRSum *s)
{
  void       *number = NULL, *temp = NULL;
  size_t      bytes = 0;
  GPUCSRError ierr;

  if (!s->n) return 0;
  GPUCSRCall(GPUCSRMalloc(s->dev, 3 * sizeof(unsigned long long), "the sort of coordinates", &number));
  ierr = SortSteps(c, m, n, s, (unsigned long long *)number, &temp, &bytes);
  GPUCSRCall(GPUCSRFree(s->dev, bytes, &temp));
  GPUCSRCall(GPUCSRFree(s->dev, 3 * sizeof(unsigned long long), &number));
  GPUCSRCall(ierr);
  return 0;
}

__global__ void entries_kernel(int64_t kept, const uint64_t *__restrict__ key, int low, const int *__restrict__ entry, int *col, int *first)
{
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (k > kept) return;
  if (k == kept) first[kept ? entry[kept - 1] : 0] = (int)kept;
  else if (!k || key[k] != key[k - 1]) {
    first[entry[k] - 1] = (int)k;
    col[entry[k] - 1]   = (int)(key[k] & (((uint64_t)1 << low) - 1));
  }
}

__global__ void rows_kernel(int m, int64_t kept, const uint64_t *__restrict__ key, int low, const int *__restrict__ entry, int *rowptr)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r > m) return;
  const int64_t k = lower_bound(key, kept, (uint64_t)r << low);

  rowptr[r] = k ? entry[k - 1] : 0;
}

static GPUCSRError Pattern_CUDA(GPUCSRSum *s, GPUCSRStorage *A)
{
  cudaStream_t stream = StreamOf(s->dev);
  const int    low    = Bits(A->n);

  entries_kernel<<<GPUCSRBlocks(s->kept + 1, THREADS), THREADS, 0, stream>>>(s->kept, s->key[0], low, s->entry, (int *)A->array[CSR_COL].data, s->first);
  GPUCSRCheckLaunch("assemble (entries)");
  rows_kernel<<<GPUCSRBlocks((int64_t)A->m + 1, THREADS), THREADS, 0, stream>>>(A->m, s->kept, s->key[0], low, s->entry, (int *)A->array[CSR_ROWPTR].data);
  GPUCSRCheckLaunch("assemble (rows)");
  return 0;
}

__global__ void __launch_bounds__(THREADS) sum_kernel(int64_t nnz, const int *__restrict__ first, const int *__restrict__ order, const double *__restrict__ v, int64_t there, const double *__restrict__ more, bool add, double *a)
{
  __shared__ double part[PIECE];
  const int64_t     e0 = (int64_t)blockIdx.x * THREADS, e = e0 + threadIdx.x, e1 = e0 + THREADS < nnz ? e0 + THREADS : nnz;
  const int64_t     begin = first[e0], end = first[e1], mine = e < nnz ? first[e] : end, stop = e < nnz ? first[e + 1] : end;
  double            t = 0;

  for (int64_t c = begin; c < end; c += PIECE) {
    const int64_t last = c + PIECE < end ? c + PIECE : end;

    for (int64_t k = c + threadIdx.x; k < last; k += THREADS) {
      const int o = streamed(order + k);

      part[k - c] = o < there ? v[o] : more[o - there];
    }
    __syncthreads();
    for (int64_t k = mine > c ? mine : c; k < stop && k < last; k++) t += part[k - c];
    __syncthreads();
  }
  if (e < nnz) a[e] = add ? a[e] + t : t;
}

static GPUCSRError Sum_CUDA(const GPUCSRSum *s, const double *v, int64_t there, const double *more, GPUCSRBool add, GPUCSRStorage *A)
{
  if (!s->nnz) return 0;
  sum_kernel<<<GPUCSRBlocks(s->nnz, THREADS), THREADS, 0, StreamOf(s->dev)>>>(s->nnz, s->first, s->order[0], v, there, more, add != 0, (double *)A->array[CSR_VAL].data);
  GPUCSRCheckLaunch("assemble (sum)");
  return 0;
}

__global__ void pick_kernel(int64_t n, const int *__restrict__ index, const double *__restrict__ a, double *b)
{
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (k < n) b[k] = a[index[k]];
}

static GPUCSRError Gather_CUDA(int64_t n, const int32_t *index, const double *a, double *b, GPUCSRDevice dev)
{
  if (!n) return 0;
  pick_kernel<<<GPUCSRBlocks(n, THREADS), THREADS, 0, StreamOf(dev)>>>(n, index, a, b);
  GPUCSRCheckLaunch("assemble (gather)");
  return 0;
}

GPUCSR_EXPORT(GPUCSRAssembleOps, GPUCSRAssemble_cuda) = {
  Sort_CUDA, Pattern_CUDA, Sum_CUDA, GPUCSRScale_CUDA, GPUCSRDiagonalScale_CUDA, GPUCSRMissing_CUDA, GPUCSRDiagonal_CUDA, GPUCSRAdd_CUDA, GPUCSRZeroRows_CUDA, GPUCSRZeroRowsColumns_CUDA, GPUCSRRowMaxAbs_CUDA, GPUCSRNorm_CUDA, Gather_CUDA};

/*
  A list of coordinates becomes a pattern and sums on a GPU.

  Sort: each contribution has a key, with the row in the high bits and the column in the low bits. CUB's stable radix sort sorts keys with places in the list; a scan of the heads of equal keys numbers the
  entries. Sum: a block of threads takes some hundred neighbouring entries, whose contributions are neighbours in the sorted list. All threads fetch the contributions into shared memory, piece by piece,
  and each thread sums its entries. A thread has all its loads of a piece on their way at once.
*/
#include "rows.h"
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#define THREADS 256
#define FETCHED 8                   /* contributions that a thread fetches at a time */
#define PIECE   (FETCHED * THREADS) /* contributions of a block, in shared memory */

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

/* A skipped contribution sorts last, as row m */
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

__global__ void heads_kernel(int64_t len, const uint64_t *__restrict__ key, uint64_t end, int *head)
{
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (k < len) head[k] = key[k] < end && (!k || key[k] != key[k - 1]) ? 1 : 0;
}

/* result: contributions that are kept, and entries */
__global__ void counts_kernel(int64_t len, const uint64_t *key, uint64_t end, const int *entry, unsigned long long *result)
{
  const int64_t kept = bisect((int64_t)0, len, [=](int64_t k) { return key[k] < end; });

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
  const int64_t k = bisect((int64_t)0, kept, [=](int64_t q) { return key[q] < (uint64_t)r << low; });

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

/* Entries of a thread are THREADS apart. Loads that wait for each other are: first, a piece of the order, the piece's contributions */
template <int ENTRIES>
__global__ void __launch_bounds__(THREADS) sum_kernel(int nnz, const int *__restrict__ first, const int *__restrict__ order, const double *__restrict__ v, int there, const double *__restrict__ more, bool add, double *a)
{
  __shared__ double part[PIECE];
  const int         e0 = (int)blockIdx.x * (ENTRIES * THREADS), begin = first[e0], end = first[min(e0 + ENTRIES * THREADS, nnz)];
  int               next[ENTRIES], stop[ENTRIES];
  double            t[ENTRIES];

#pragma unroll
  for (int q = 0; q < ENTRIES; q++) {
    const int e = min(e0 + q * THREADS + (int)threadIdx.x, nnz);

    next[q] = first[e];
    stop[q] = first[min(e + 1, nnz)];
    t[q]    = 0;
  }
  for (int c = begin; c < end; c += PIECE) {
    const int last = min(end, c + PIECE);
    int       o[FETCHED];
    double    x[FETCHED];

#pragma unroll
    for (int u = 0; u < FETCHED; u++) {
      const int k = c + u * THREADS + (int)threadIdx.x;

      o[u] = k < last ? streamed(order + k) : -1;
    }
#pragma unroll
    for (int u = 0; u < FETCHED; u++) {
      const double *const from = o[u] < there ? v + o[u] : more + (o[u] - there);

      x[u] = o[u] < 0 ? 0 : __ldg(from);
    }
#pragma unroll
    for (int u = 0; u < FETCHED; u++) part[u * THREADS + threadIdx.x] = x[u];
    __syncthreads();
#pragma unroll
    for (int q = 0; q < ENTRIES; q++)
      for (const int until = min(stop[q], last); next[q] < until; next[q]++) t[q] += part[next[q] - c];
    __syncthreads();
  }
#pragma unroll
  for (int q = 0; q < ENTRIES; q++) {
    const int e = e0 + q * THREADS + (int)threadIdx.x;

    if (e < nnz) a[e] = add ? a[e] + t[q] : t[q];
  }
}

template <int ENTRIES>
static void LaunchSum(const GPUCSRSum *s, const double *v, int there, const double *more, bool add, double *a)
{
  sum_kernel<ENTRIES><<<GPUCSRBlocks(s->nnz, ENTRIES * THREADS), THREADS, 0, StreamOf(s->dev)>>>((int)s->nnz, s->first, s->order[0], v, there, more, add, a);
}

/* A block has so many entries that their contributions fill most of a piece */
static GPUCSRError Sum_CUDA(const GPUCSRSum *s, const double *v, int64_t there, const double *more, GPUCSRBool add, GPUCSRStorage *A)
{
  const double each = (double)s->kept / (double)GPUCSRMax(s->nnz, 1);

  if (!s->nnz) return 0;
  (each > 0.45 * FETCHED ? LaunchSum<1> : each > 0.22 * FETCHED ? LaunchSum<2> : LaunchSum<4>)(s, v, (int)GPUCSRMin(there, INT32_MAX), more, add != 0, (double *)A->array[CSR_VAL].data);
  GPUCSRCheckLaunch("assemble (sum)");
  return 0;
}

GPUCSR_ASSEMBLE_STEPS(GPUCSR_EACH)

GPUCSR_EXPORT(GPUCSRAssembleOps, GPUCSRAssemble_cuda) = {GPUCSR_ASSEMBLE_STEPS(GPUCSR_EACH_ENTRY) Sort_CUDA, Pattern_CUDA, Sum_CUDA};

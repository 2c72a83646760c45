/*
  Sparse products on a GPU. G threads, a part of a warp or a whole block, compute a row of C with a hash table of T places. The first pass counts
  the columns, the second writes the columns, the third adds up the values. Every search ends after T steps at most.

  G grows with the mean length of B's rows, whose entries the threads of a group share; T with the class of the row.
*/
#include "rows.h"
#include <cub/device/device_segmented_sort.cuh>

#define LONG 512 /* threads of a row with a table in device memory */

/* Threads of a block: a row that takes more than a warp has a block of its own */
__host__ __device__ constexpr int threads_of(int G)
{
  return G > 32 ? G : 128;
}

/* The threads that share a row: a part of a warp, a warp, or a block */
template <int G>
struct group {
  int        lane;
  unsigned   mask;
  __device__ group()
  {
    lane = (int)threadIdx.x % G;
    mask = G >= 32 ? 0xffffffffu : ((1u << (G % 32)) - 1) << (threadIdx.x % 32 / G * G);
  }
  __device__ void sync() const
  {
    if constexpr (G > 32) __syncthreads();
    else __syncwarp(mask);
  }
};

__device__ __forceinline__ unsigned int hash(int c, int bits)
{
  return ((unsigned int)c * 0x9E3779B1u) >> (32 - bits);
}

/* The place of column c in a table of 2^bits places: true: c is new; place -1: the table is full */
__device__ __forceinline__ bool insert(int *key, int bits, int c, int *place)
{
  const unsigned int last = (1u << bits) - 1;
  unsigned int       h    = hash(c, bits);

  for (unsigned int tries = 0; tries <= last; tries++, h = (h + 1) & last) {
    const int old = atomicCAS(key + h, -1, c);

    *place = (int)h;
    if (old == -1) return true;
    if (old == c) return false;
  }
  *place = -1;
  return false;
}

__device__ __forceinline__ int find(const int *key, int bits, int c)
{
  const unsigned int last = (1u << bits) - 1;
  unsigned int       h    = hash(c, bits);

  for (unsigned int tries = 0; tries <= last; tries++, h = (h + 1) & last) {
    const int k = key[h];

    if (k == c) return (int)h;
    if (k == -1) return -1;
  }
  return -1;
}

/* Number of columns of row r of A B that this thread put into the table: W neighbours share a row of B */
template <int G>
__device__ int gather(const group<G> &g, const GPUCSRCSR &A, const GPUCSRCSR &B, int r, int W, int *key, int bits)
{
  const int end = A.i[r + 1];
  int       n   = 0, place;

  for (int k = A.i[r] + g.lane / W; k < end; k += G / W) {
    const int c = A.j[k], last = B.i[c + 1];

    for (int q = B.i[c] + g.lane % W; q < last; q += W) n += insert(key, bits, B.j[q], &place);
  }
  return n;
}

/* Sum of n over the group, in its first thread at least; total: shared memory of the group */
template <int G>
__device__ int total_of(const group<G> &g, int n, int *total)
{
  if constexpr (G <= 32) {
#pragma unroll
    for (int o = G / 2; o; o >>= 1) n += __shfl_down_sync(g.mask, n, o, G);
    return n;
  } else {
    n = reduce<32>(n);
    if (threadIdx.x == 0) *total = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 0) atomicAdd(total, n);
    __syncthreads();
    return *total;
  }
}

/* Ascending order of n numbers in fast memory, which has places up to the next power of two: a bitonic network */
template <int G>
__device__ void sort(const group<G> &g, int n, int *list)
{
  int size = 1;

  while (size < n) size *= 2;
  for (int p = n + g.lane; p < size; p += G) list[p] = INT_MAX;
  for (int run = 2; run <= size; run *= 2)
    for (int step = run / 2; step; step /= 2) {
      g.sync();
      for (int t = g.lane; t < size / 2; t += G) {
        const int i = 2 * t - (t & (step - 1)), a = list[i], b = list[i + step];

        if ((a > b) == ((i & run) == 0)) {
          list[i]        = b;
          list[i + step] = a;
        }
      }
    }
  g.sync();
}

/* One row of the product: counts its columns or writes them. A list in fast memory, half the size of the table, sorts the columns; NULL: any order */
template <int G, bool WRITE>
__device__ void pattern_row(const group<G> &g, const GPUCSRCSR &A, const GPUCSRCSR &B, int r, int W, int *key, int bits, int *shared, int *list, int *length, const int *rowptr, int *col)
{
  const int size = 1 << bits;

  for (int s = g.lane; s < size; s += G) key[s] = -1;
  if (WRITE && g.lane == 0) *shared = 0;
  g.sync();
  const int n = gather(g, A, B, r, W, key, bits);
  if constexpr (WRITE) {
    const int  first = rowptr[r], room = rowptr[r + 1] - first;
    int *const to = list ? list : col + first;

    g.sync();
    for (int s = g.lane; s < size; s += G) {
      if (key[s] < 0) continue;
      const int at = atomicAdd(shared, 1);

      if (at < room) to[at] = key[s];
    }
    g.sync();
    if (list) {
      sort(g, room, list);
      for (int p = g.lane; p < room; p += G) col[first + p] = list[p];
    }
  } else {
    const int all = total_of(g, n, shared);

    if (g.lane == 0) length[r] = all;
  }
  g.sync();
}

template <int G, int BITS, bool WRITE>
__global__ void __launch_bounds__(threads_of(G)) pattern_kernel(int n, const int *__restrict__ rows, GPUCSRCSR A, GPUCSRCSR B, int W, int *length, const int *rowptr, int *col)
{
  constexpr int  ROWS = threads_of(G) / G, LIST = WRITE ? 1 << (BITS - 1) : 0;
  __shared__ int key[ROWS << BITS], shared[ROWS], list[ROWS * LIST + 1];
  const int      slot = threadIdx.x / G, k = blockIdx.x * ROWS + slot;
  const group<G> g;

  if (k >= n) return; /* whole groups leave; a group that is a block never does */
  pattern_row<G, WRITE>(g, A, B, rows[k], W, key + (slot << BITS), BITS, shared + slot, list + slot * LIST, length, rowptr, col);
}

/* Rows too long for fast memory: one block each, with a table of 2^most places in work */
template <bool WRITE>
__global__ void __launch_bounds__(LONG) pattern_long_kernel(int n, const int *__restrict__ rows, GPUCSRCSR A, GPUCSRCSR B, int W, int most, int *work, int *length, const int *rowptr, int *col)
{
  __shared__ int    shared;
  const group<LONG> g;

  for (int k = blockIdx.x; k < n; k += gridDim.x) {
    const int r = rows[k], bound = WRITE ? rowptr[r + 1] - rowptr[r] : length[r];
    int       bits = 12;

    while (bits < most && ((int64_t)1 << bits) < 2 * (int64_t)bound) bits++;
    __syncthreads(); /* length[r] is read before it is written */
    pattern_row<LONG, WRITE>(g, A, B, r, W, work + ((size_t)blockIdx.x << most), bits, &shared, NULL, length, rowptr, col);
  }
}

/* One row: fills the table with the columns and their places in the row. Then the group takes one entry of A after the other, a thread for each entry of B's row */
template <int G, class P>
__device__ void numeric_row(const group<G> &g, const GPUCSRCSR &A, const GPUCSRCSR &B, int r, const int *__restrict__ rowptr, const int *__restrict__ col, double *val, int *key, P *place, double *sum, int bits, int *lost)
{
  const int size = 1 << bits, first = rowptr[r], length = rowptr[r + 1] - first, end = A.i[r + 1];
  const int warp = G < 32 ? G : 32, lane = (int)threadIdx.x % warp;

  for (int s = g.lane; s < size; s += G) key[s] = -1;
  for (int p = g.lane; p < length; p += G) sum[p] = 0;
  g.sync();
  for (int p = g.lane; p < length; p += G) {
    int s;

    insert(key, bits, col[first + p], &s);
    if (s >= 0) place[s] = (P)p;
    else *lost = 1;
  }
  g.sync();
  for (int k0 = A.i[r]; k0 < end; k0 += warp) {
    const int k = k0 + lane, now = end - k0 < warp ? end - k0 : warp;
    int       begin = 0, stop = 0;
    double    a = 0;

    if (k < end) {
      const int c = A.j[k];

      a     = A.a[k];
      begin = B.i[c];
      stop  = B.i[c + 1];
    }
    for (int t = 0; t < now; t++) {
      const int    from = __shfl_sync(g.mask, begin, t, warp), to = __shfl_sync(g.mask, stop, t, warp);
      const double f = __shfl_sync(g.mask, a, t, warp);

      for (int q = from + g.lane; q < to; q += G) {
        const int s = find(key, bits, B.j[q]);

        if (s >= 0) sum[place[s]] += f * B.a[q];
        else *lost = 1;
      }
      g.sync();
    }
  }
  for (int p = g.lane; p < length; p += G) val[first + p] = sum[p];
  g.sync();
}

template <int G, int BITS>
__global__ void __launch_bounds__(threads_of(G)) numeric_kernel(int n, const int *__restrict__ rows, GPUCSRCSR A, GPUCSRCSR B, const int *__restrict__ rowptr, const int *__restrict__ col, double *val, int *lost)
{
  constexpr int             ROWS = threads_of(G) / G, T = 1 << BITS;
  __shared__ double         sum[ROWS * T / 2]; /* the limit of a class is half the places of its table */
  __shared__ int            key[ROWS * T];
  __shared__ unsigned short place[ROWS * T];
  const int                 slot = threadIdx.x / G, k = blockIdx.x * ROWS + slot;
  const group<G>            g;

  if (k >= n) return;
  numeric_row(g, A, B, rows[k], rowptr, col, val, key + slot * T, place + slot * T, sum + slot * (T / 2), BITS, lost);
}

/* Sets *lost if the product has an entry in a row that is empty in C */
__global__ void empty_kernel(int n, const int *__restrict__ rows, GPUCSRCSR A, const int *__restrict__ brow, int *lost)
{
  const int k = blockIdx.x * blockDim.x + threadIdx.x;

  if (k >= n) return;
  for (int q = A.i[rows[k]]; q < A.i[rows[k] + 1]; q++)
    if (brow[A.j[q] + 1] > brow[A.j[q]]) *lost = 1;
}

/* A long row's sums are its values */
__global__ void __launch_bounds__(LONG) numeric_long_kernel(int n, const int *__restrict__ rows, GPUCSRCSR A, GPUCSRCSR B, const int *__restrict__ rowptr, const int *__restrict__ col, double *val, int most, int *work, int *lost)
{
  const group<LONG> g;
  int              *key = work + ((size_t)blockIdx.x << (most + 1)), *place = key + ((size_t)1 << most);

  for (int k = blockIdx.x; k < n; k += gridDim.x) {
    const int r = rows[k], first = rowptr[r], length = rowptr[r + 1] - first;
    int       bits = 12;

    while (bits < most && ((int64_t)1 << bits) < 2 * (int64_t)length) bits++;
    numeric_row(g, A, B, r, rowptr, col, val, key, place, val + first, bits, lost);
  }
}

/* Threads that share a row of B if order does not matter: a power of two about its mean length */
static int Sharing(const GPUCSRStorage *B, int most)
{
  const double mean = B->m ? (double)B->nnz / B->m : 0;
  int          w    = 1;

  while (w < most && w < mean) w *= 2;
  return w;
}

/* Most bytes of the tables in device memory for the rows of the last class */
#define LONG_BYTES ((size_t)1 << 28)

/* Calls launch(rows of the last class, how many, blocks, log2 of a table's places, the tables), with perplace numbers a place */
template <class F>
static GPUCSRError LongRows(const GPUCSRStorage *A, const GPUCSRRowClasses *c, int perplace, F launch)
{
  const int   first = c->first[GPUCSR_ROW_CLASSES - 1], n = c->first[GPUCSR_ROW_CLASSES] - first;
  void       *work = NULL;
  int         most = 12;
  cudaError_t err;

  if (!n) return 0;
  while (most < 31 && ((int64_t)1 << most) < 2 * (int64_t)c->longest) ++most;
  const size_t one    = sizeof(int) * (size_t)perplace << most;
  const int    blocks = (int)GPUCSRMax((size_t)1, GPUCSRMin(GPUCSRMin((size_t)n, 2 * (size_t)A->dev->props.processors), LONG_BYTES / one));

  GPUCSRCall(GPUCSRMalloc(A->dev, one * (size_t)blocks, "tables of a product's long rows", &work));
  launch(c->rows + first, n, blocks, most, (int *)work);
  err = cudaGetLastError();
  GPUCSRCall(GPUCSRFree(A->dev, one * (size_t)blocks, &work));
  GPUCSRCheck(err == cudaSuccess, GPUCSR_ERR_GPU, "Launch of spgemm (long rows) failed with %s", cudaGetErrorString(err));
  return 0;
}

#define CLASS_ROWS(k) const int n = c->first[k + 1] - c->first[k], *rows = c->rows + c->first[k]

template <bool WRITE>
static GPUCSRError Pattern(const GPUCSRStorage *SA, const GPUCSRStorage *SB, const GPUCSRRowClasses *c, int *length, const int *rowptr, int *col, int *loose)
{
  const GPUCSRCSR    A = GPUCSRCSROf(SA), B = GPUCSRCSROf(SB);
  const cudaStream_t s = (cudaStream_t)SA->dev->stream;

#define LAUNCH(k, G, BITS) \
  do { \
    CLASS_ROWS(k); \
    if (n) pattern_kernel<G, BITS, WRITE><<<GPUCSRBlocks((int64_t)n *(G), threads_of(G)), threads_of(G), 0, s>>>(n, rows, A, B, Sharing(SB, (G) < 32 ? (G) : 32), length, rowptr, col); \
  } while (0)
  LAUNCH(1, 8, 5);
  LAUNCH(2, 16, 7);
  LAUNCH(3, 32, 9);
  LAUNCH(4, 128, 11);
  LAUNCH(5, 256, 12);
#undef LAUNCH
  GPUCSRCheckLaunch("spgemm (pattern)");
  GPUCSRCall(LongRows(SA, c, 1, [&](const int *rows, int n, int blocks, int most, int *work) { pattern_long_kernel<WRITE><<<blocks, LONG, 0, s>>>(n, rows, A, B, Sharing(SB, 32), most, work, length, rowptr, loose); }));
  return 0;
}

static GPUCSRError Count_CUDA(const GPUCSRStorage *A, const GPUCSRStorage *B, const GPUCSRRowClasses *c, int32_t *length)
{
  GPUCSRCall(Pattern<false>(A, B, c, length, NULL, NULL, NULL));
  return 0;
}

__global__ void segments_kernel(int n, const int *__restrict__ rows, const int *__restrict__ rowptr, int *begin, int *end)
{
  const int k = blockIdx.x * blockDim.x + threadIdx.x;

  if (k >= n) return;
  begin[k] = rowptr[rows[k]];
  end[k]   = rowptr[rows[k] + 1];
}

/* Columns of the last class' rows, written in any order and then sorted; work: a column each, then twice a number a row */
static GPUCSRError FillLong(const GPUCSRStorage *A, const GPUCSRStorage *B, const GPUCSRRowClasses *c, GPUCSRStorage *C, int *work)
{
  CLASS_ROWS(6);
  const cudaStream_t s      = (cudaStream_t)C->dev->stream;
  const int         *rowptr = (const int *)C->array[CSR_ROWPTR].data;
  int               *col = (int *)C->array[CSR_COL].data, *begin = work + C->nnz, *end = begin + n;
  size_t             some = 0;
  void              *temp = NULL;
  GPUCSRError        ierr;

  GPUCSR_CUDA(cub::DeviceSegmentedSort::SortKeys(NULL, some, (const int *)work, col, (int)C->nnz, n, begin, end, s));
  GPUCSRCall(GPUCSRMalloc(C->dev, some, "sort of a product's columns", &temp));
  ierr = Pattern<true>(A, B, c, NULL, rowptr, col, work);
  if (!ierr) segments_kernel<<<GPUCSRBlocks(n, 256), 256, 0, s>>>(n, rows, rowptr, begin, end);
  if (!ierr && cub::DeviceSegmentedSort::SortKeys(temp, some, (const int *)work, col, (int)C->nnz, n, begin, end, s) != cudaSuccess) ierr = GPUCSR_ERR_GPU;
  GPUCSRCall(GPUCSRFree(C->dev, some, &temp));
  return ierr;
}

static GPUCSRError Fill_CUDA(const GPUCSRStorage *A, const GPUCSRStorage *B, const GPUCSRRowClasses *c, GPUCSRStorage *C)
{
  const int    n     = c->first[GPUCSR_ROW_CLASSES] - c->first[GPUCSR_ROW_CLASSES - 1];
  const size_t bytes = sizeof(int) * ((size_t)C->nnz + 2 * (size_t)n);
  void        *loose = NULL;
  GPUCSRError  ierr;

  if (!C->nnz) return 0;
  if (!n) {
    GPUCSRCall(Pattern<true>(A, B, c, NULL, (const int *)C->array[CSR_ROWPTR].data, (int *)C->array[CSR_COL].data, NULL));
    return 0;
  }
  GPUCSRCall(GPUCSRMalloc(C->dev, bytes, "columns of a product", &loose));
  ierr = FillLong(A, B, c, C, (int *)loose);
  GPUCSRCall(GPUCSRFree(C->dev, bytes, &loose));
  GPUCSRCheck(ierr != GPUCSR_ERR_GPU, GPUCSR_ERR_GPU, "The pattern of a product could not be computed on the device");
  GPUCSRCall(ierr);
  return 0;
}

static GPUCSRError NumericLaunch(const GPUCSRStorage *SA, const GPUCSRStorage *SB, const GPUCSRRowClasses *c, GPUCSRStorage *C, int *lost)
{
  const GPUCSRCSR    A = GPUCSRCSROf(SA), B = GPUCSRCSROf(SB);
  const cudaStream_t s      = (cudaStream_t)SA->dev->stream;
  const int         *rowptr = (const int *)C->array[CSR_ROWPTR].data, *col = (const int *)C->array[CSR_COL].data;
  double            *val   = (double *)C->array[CSR_VAL].data;
  const bool         small = SB->nnz <= 6 * (int64_t)SB->m; /* few threads for a row of B */

#define LAUNCH(k, G, BITS) \
  do { \
    CLASS_ROWS(k); \
    if (n) numeric_kernel<G, BITS><<<GPUCSRBlocks((int64_t)n *(G), threads_of(G)), threads_of(G), 0, s>>>(n, rows, A, B, rowptr, col, val, lost); \
  } while (0)
  if (c->first[1]) empty_kernel<<<GPUCSRBlocks(c->first[1], 256), 256, 0, s>>>(c->first[1], c->rows, A, B.i, lost);
  if (small) {
    LAUNCH(1, 4, 5);
    LAUNCH(2, 8, 7);
  } else {
    LAUNCH(1, 8, 5);
    LAUNCH(2, 16, 7);
  }
  LAUNCH(3, 32, 9);
  LAUNCH(4, 64, 11);
  LAUNCH(5, 128, 12);
#undef LAUNCH
  GPUCSRCheckLaunch("spgemm (values)");
  GPUCSRCall(LongRows(SA, c, 2, [&](const int *rows, int n, int blocks, int most, int *work) { numeric_long_kernel<<<blocks, LONG, 0, s>>>(n, rows, A, B, rowptr, col, val, most, work, lost); }));
  return 0;
}

static GPUCSRError Numeric_CUDA(const GPUCSRStorage *A, const GPUCSRStorage *B, const GPUCSRRowClasses *c, GPUCSRStorage *C, GPUCSRBool *lost)
{
  int        *flag;
  GPUCSRError ierr;

  GPUCSRCall(GPUCSRFlagCreate(A->dev, &flag));
  ierr = NumericLaunch(A, B, c, C, flag);
  GPUCSRCall(GPUCSRFlagRead(A->dev, ierr, &flag, lost));
  return 0;
}

GPUCSR_SPGEMM_STEPS(GPUCSR_EACH)

const GPUCSRSpGEMMOps GPUCSRSpGEMM_cuda = {GPUCSR_SPGEMM_STEPS(GPUCSR_EACH_ENTRY) Count_CUDA, GPUCSRShape_CUDA, Fill_CUDA, Numeric_CUDA};

/*
  A list of coordinates becomes a pattern and sums on a GPU.

  Sort: each contribution has a key, with the row in the high bits and the column in the low bits. CUB's stable radix sort sorts keys with places in the list; a scan of the heads of equal keys numbers the
  entries. Sum: a block of threads takes some hundred neighbouring entries, whose contributions are neighbours in the sorted list. All threads fetch the contributions into shared memory, piece by piece,
  and each thread sums its entries. A thread has all its loads of a piece on their way at once.
*/
#include "assemble.h"
#include "../kernels/device.cuh"
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

/*
  Changes in place. Every kernel reads and writes each value once, and has 8 threads for a row if it needs rows. Products of two roundings are not fused where MATAIJ rounds twice.
*/

#define LANES 8 /* of a row */

struct rows {
  const int *i, *j;
  double    *a;
};

static inline rows RowsOf(const GPUCSRStorage *A)
{
  return {(const int *)A->array[CSR_ROWPTR].data, (const int *)A->array[CSR_COL].data, (double *)A->array[CSR_VAL].data};
}

#define ROW      const int r = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / LANES), lane = (int)(threadIdx.x % LANES)
#define BYROW(n) GPUCSRBlocks((int64_t)(n)*LANES, THREADS), THREADS, 0
#define EACH(n)  GPUCSRBlocks(n, THREADS), THREADS, 0

__global__ void diagonalscale_kernel(int m, rows x, const double *__restrict__ l, const double *__restrict__ r_)
{
  ROW;

  if (r >= m) return;
  const double f = l ? l[r] : 1;
  for (int k = x.i[r] + lane; k < x.i[r + 1]; k += LANES) {
    double v = x.a[k];

    if (l) v *= f;
    if (r_) v *= r_[x.j[k]];
    x.a[k] = v;
  }
}

static GPUCSRError DiagonalScale_CUDA(const double *l, const double *r, GPUCSRStorage *A)
{
  if (!A->nnz) return 0;
  diagonalscale_kernel<<<BYROW(A->m), StreamOf(A->dev)>>>(A->m, RowsOf(A), l, r);
  GPUCSRCheckLaunch("assemble (diagonal scale)");
  return 0;
}

/* place[n]: rows without */
__global__ void places_kernel(int n, const int *__restrict__ i, const int *__restrict__ j, int *place)
{
  ROW;
  int at = -1;

  if (r < n)
    for (int k = i[r] + lane, end = i[r + 1]; k < end; k += LANES)
      if (j[k] == r) at = k;
#pragma unroll
  for (int o = LANES / 2; o; o >>= 1) at = max(at, __shfl_xor_sync(0xffffffffu, at, o));
  if (r >= n || lane) return;
  place[r] = at;
  if (at < 0) atomicAdd(place + n, 1);
}

static GPUCSRError Places_CUDA(const GPUCSRStorage *A, int32_t *place, int *missing)
{
  GPUCSRDevice dev = A->dev;
  const int    n   = GPUCSRMin(A->m, A->n);
  const rows   x   = RowsOf(A);

  GPUCSRCall(dev->ops->zero(dev->id, place + n, sizeof(int32_t), dev->stream));
  if (n) places_kernel<<<BYROW(n), StreamOf(dev)>>>(n, x.i, x.j, place);
  GPUCSRCheckLaunch("assemble (places)");
  GPUCSRCall(dev->ops->copy(dev->id, missing, place + n, sizeof(int32_t), GPUCSR_TO_HOST, dev->stream));
  GPUCSRCall(dev->ops->streamsynchronize(dev->id, dev->stream));
  return 0;
}

__global__ void setdiagonal_kernel(int n, const int *__restrict__ place, const double *__restrict__ d, double s, bool add, double *a)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r >= n) return;
  const int k = place[r];

  a[k] = (add ? a[k] : 0) + (d ? d[r] : s);
}

static GPUCSRError Diagonal_CUDA(const int32_t *place, const double *d, double s, GPUCSRBool add, GPUCSRStorage *A)
{
  const int n = GPUCSRMin(A->m, A->n);

  if (!n) return 0;
  setdiagonal_kernel<<<EACH(n), StreamOf(A->dev)>>>(n, place, d, s, add != 0, RowsOf(A).a);
  GPUCSRCheckLaunch("assemble (diagonal)");
  return 0;
}

/* The k-th of a list of rows */
__device__ __forceinline__ int listed(const GPUCSRRowList &list, int k)
{
  return list.row ? list.row[k] : list.first + k;
}

__global__ void zerorows_kernel(GPUCSRRowList list, int n, const int *__restrict__ place, double d, const double *__restrict__ x, double *b, const int *__restrict__ i, double *a)
{
  ROW;

  if (r >= list.n) return;
  const int row = listed(list, r), end = i[row + 1], at = place && row < n ? place[row] : -1;

  for (int k = i[row] + lane; k < end; k += LANES) a[k] = k == at ? d : 0;
  if (x && !lane && row < n) b[row] = d * x[row];
}

static GPUCSRError ZeroRows_CUDA(const GPUCSRRowList *list, const int32_t *place, double d, const double *x, double *b, GPUCSRStorage *A)
{
  if (!list->n) return 0;
  zerorows_kernel<<<BYROW(list->n), StreamOf(A->dev)>>>(*list, A->n, place, d, x, b, RowsOf(A).i, RowsOf(A).a);
  GPUCSRCheckLaunch("assemble (zero rows)");
  return 0;
}

__global__ void mark_kernel(GPUCSRRowList list, char *mark)
{
  const int k = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (k < list.n) mark[listed(list, k)] = 1;
}

__global__ void zerorowscolumns_kernel(int m, int n, const char *__restrict__ mark, double d, const double *__restrict__ x, double *b, const int *__restrict__ i, const int *__restrict__ j, double *a)
{
  ROW;
  const bool all = r < m && mark[r];
  double     t   = 0;

  if (r < m) {
    for (int k = i[r] + lane, end = i[r + 1]; k < end; k += LANES) {
      const int c = j[k];

      if (all) a[k] = c == r ? d : 0;
      else if (c < m && mark[c]) {
        if (x) t += a[k] * x[c];
        a[k] = 0;
      }
    }
  }
  t = reduce<LANES>(t);
  if (r >= m || lane || !x) return;
  if (!all) b[r] -= t;
  else if (r < n) b[r] = d * x[r];
}

static GPUCSRError ZeroRowsColumns_CUDA(const GPUCSRRowList *list, char *mark, double d, const double *x, double *b, GPUCSRStorage *A)
{
  const rows y = RowsOf(A);

  if (!list->n) return 0;
  GPUCSRCall(A->dev->ops->zero(A->dev->id, mark, (size_t)A->m, A->dev->stream));
  mark_kernel<<<EACH(list->n), StreamOf(A->dev)>>>(*list, mark);
  GPUCSRCheckLaunch("assemble (marks of rows)");
  zerorowscolumns_kernel<<<BYROW(A->m), StreamOf(A->dev)>>>(A->m, A->n, mark, d, x, b, y.i, y.j, y.a);
  GPUCSRCheckLaunch("assemble (zero rows and columns)");
  return 0;
}

/* One thread for a row: the first of equal entries wins */
__global__ void rowmaxabs_kernel(int m, rows x, double *v, int *column)
{
  const int r    = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  double    most = 0;
  int       at   = -1;

  if (r >= m) return;
  for (int k = x.i[r]; k < x.i[r + 1]; k++) {
    if (!(fabs(x.a[k]) > most)) continue;
    most = fabs(x.a[k]);
    at   = x.j[k];
  }
  v[r] = most;
  if (column && at >= 0) column[r] = at;
}

static GPUCSRError RowMaxAbs_CUDA(const GPUCSRStorage *A, double *v, int32_t *column)
{
  if (!A->m) return 0;
  rowmaxabs_kernel<<<EACH(A->m), StreamOf(A->dev)>>>(A->m, RowsOf(A), v, column);
  GPUCSRCheckLaunch("assemble (row maxima)");
  return 0;
}

#define PARTS 1024 /* blocks of a norm; the host combines their results */

__global__ void rowsums_kernel(int m, rows x, double *s)
{
  ROW;
  double t = 0;

  if (r < m)
    for (int k = x.i[r] + lane; k < x.i[r + 1]; k += LANES) t += fabs(x.a[k]);
  t = reduce<LANES>(t);
  if (r < m && !lane) s[r] = t;
}

static GPUCSRError RowSums_CUDA(const GPUCSRStorage *A, double *s)
{
  if (!A->m) return 0;
  rowsums_kernel<<<BYROW(A->m), StreamOf(A->dev)>>>(A->m, RowsOf(A), s);
  GPUCSRCheckLaunch("assemble (row sums)");
  return 0;
}

__global__ void largestrow_kernel(int m, const int *__restrict__ i, const double *__restrict__ a, const double *__restrict__ more, double *part)
{
  __shared__ double warp[THREADS / 32];
  const int         lane = (int)(threadIdx.x % LANES);
  double            most = 0;

  for (int64_t first = (int64_t)blockIdx.x * (THREADS / LANES); first < m; first += (int64_t)gridDim.x * (THREADS / LANES)) {
    const int64_t r = first + threadIdx.x / LANES;
    double        t = more && r < m && !lane ? more[r] : 0;

    if (r < m)
      for (int k = i[r] + lane, end = i[r + 1]; k < end; k += LANES) t += fabs(a[k]);
    t = reduce<LANES>(t);
    if (!lane && t > most) most = t;
  }
  for (int o = 16; o; o /= 2) {
    const double other = __shfl_xor_sync(0xffffffffu, most, o);

    most = other > most ? other : most;
  }
  if (threadIdx.x % 32 == 0) warp[threadIdx.x / 32] = most;
  __syncthreads();
  if (threadIdx.x) return;
  for (int k = 1; k < THREADS / 32; k++) most = warp[k] > most ? warp[k] : most;
  part[blockIdx.x] = most;
}

static GPUCSRError LargestRow_CUDA(const GPUCSRStorage *A, const double *more, double *norm)
{
  GPUCSRDevice dev   = A->dev;
  const size_t bytes = sizeof(double) * PARTS;
  void        *part  = NULL;
  double       host[PARTS];
  GPUCSRError  ierr;

  *norm = 0;
  if (!A->m || (!A->nnz && !more)) return 0;
  GPUCSRCall(GPUCSRMalloc(dev, bytes, "a norm", &part));
  largestrow_kernel<<<PARTS, THREADS, 0, StreamOf(A->dev)>>>(A->m, RowsOf(A).i, RowsOf(A).a, more, (double *)part);
  ierr = dev->ops->copy(dev->id, host, part, bytes, GPUCSR_TO_HOST, dev->stream);
  if (!ierr) ierr = dev->ops->streamsynchronize(dev->id, dev->stream);
  GPUCSRCall(GPUCSRFree(dev, bytes, &part));
  GPUCSRCall(ierr);
  GPUCSRCheckLaunch("assemble (norm)");
  for (int k = 0; k < PARTS; k++) *norm = GPUCSRMax(*norm, host[k]);
  return 0;
}

/* A thread for each entry, which looks for its row, and for each row pointer, which is compared with the next */
__global__ void entryrows_kernel(int m, int64_t n, const int *__restrict__ rowptr, int *row, int *wrong)
{
  const int64_t k  = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  int           lo = 0, hi = m - 1;

  if (k <= m && ((k == 0 && rowptr[0] != 0) || (k == m ? rowptr[m] != n : rowptr[k] > rowptr[k + 1]))) *wrong = 1;
  if (k >= n) return;
  while (lo < hi) { /* the last row that does not begin behind k */
    const int mid = lo + (hi - lo + 1) / 2;

    if (rowptr[mid] <= k) lo = mid;
    else hi = mid - 1;
  }
  row[k] = lo;
}

static GPUCSRError Rows_CUDA(int m, int64_t n, const int32_t *rowptr, int32_t *row, int *wrong, GPUCSRDevice dev)
{
  void       *flag = NULL;
  GPUCSRError ierr;

  GPUCSRCall(GPUCSRMalloc(dev, sizeof(int), "rows of entries", &flag));
  ierr = dev->ops->zero(dev->id, flag, sizeof(int), dev->stream);
  if (!ierr) entryrows_kernel<<<EACH(GPUCSRMax((int64_t)m + 1, n)), StreamOf(dev)>>>(m, n, rowptr, row, (int *)flag);
  if (!ierr) ierr = dev->ops->copy(dev->id, wrong, flag, sizeof(int), GPUCSR_TO_HOST, dev->stream);
  if (!ierr) ierr = dev->ops->streamsynchronize(dev->id, dev->stream);
  GPUCSRCall(GPUCSRFree(dev, sizeof(int), &flag));
  GPUCSRCall(ierr);
  GPUCSRCheckLaunch("assemble (rows of entries)");
  return 0;
}

GPUCSR_EXPORT(GPUCSRAssembleOps, GPUCSRAssemble_cuda) = {Sort_CUDA, Pattern_CUDA, Sum_CUDA, DiagonalScale_CUDA, Places_CUDA, Diagonal_CUDA, ZeroRows_CUDA, ZeroRowsColumns_CUDA, RowMaxAbs_CUDA, RowSums_CUDA, LargestRow_CUDA, Rows_CUDA, Gather_CUDA};

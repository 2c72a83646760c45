/*
  y = A x, coordinates, by segmented sums; and hyb, whose first part is sell_row's. The variant is sell_row's, 0 for coordinates alone.

  A block takes a tile of entries, of any rows: products go into shared memory by coalesced loads, then a segmented scan runs over its threads. Rows
  inside the tile are complete. A row that begins before the tile or ends behind it leaves a partial sum with the tile; a warp at the beginning of
  the row adds the parts in their order. So no two blocks write a row, and every run has the same bits.

  Bytes: (8 + v) entries, n x once at best, m z twice (z = beta y comes first), 16 for each tile. Wins on extremely uneven rows; loses elsewhere, by
  the third launch and the row numbers.

  Paper: N. Bell, M. Garland, SC 2009; segmented sums after G. E. Blelloch, M. A. Heroux, M. Zagha, Segmented operations for sparse matrix computation
  on vector multiprocessors, CMU-CS-93-173.
*/
#include "segment.cuh"
#include "../../format/papers/hyb.h"

#define BLOCK 128
#define ITEMS 8 /* entries a thread */
#define TILE  (BLOCK * ITEMS)

/* The place of entry q of a tile in shared memory: a gap after each thread's entries puts them in different banks */
__device__ __forceinline__ int spread(int q)
{
  return q + q / ITEMS;
}

template <class X>
__global__ void coo_scale_kernel(int m, X beta, const X *y, X *z)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r < m) z[r] = beta == X(0) ? X(0) : beta * y[r];
}

/* head[t]: sum for a row from before tile t; tail[t]: sum for a row that begins in tile t and ends behind */
template <class V, class X>
__global__ void __launch_bounds__(BLOCK) coo_segment_kernel(int64_t n, const int *__restrict__ row, const int *__restrict__ col, const V *__restrict__ val, X alpha, const X *__restrict__ x, X *z, X *head, X *tail)
{
  __shared__ X   product[TILE + TILE / ITEMS];
  __shared__ int rows[TILE + TILE / ITEMS];
  const int64_t  base = (int64_t)blockIdx.x * TILE;
  const int      size = (int)min((int64_t)TILE, n - base), mine = (int)threadIdx.x * ITEMS;
  int            c[ITEMS], r[ITEMS];
  V              v[ITEMS];

#pragma unroll
  for (int u = 0; u < ITEMS; u++) {
    const int q = u * BLOCK + (int)threadIdx.x;

    c[u] = q < size ? streamed(col + base + q) : -1;
    r[u] = q < size ? streamed(row + base + q) : -1;
    v[u] = q < size ? streamed(val + base + q) : V(0);
  }
#pragma unroll
  for (int u = 0; u < ITEMS; u++) {
    const int q = u * BLOCK + (int)threadIdx.x;

    rows[spread(q)]    = r[u];
    product[spread(q)] = c[u] >= 0 ? X(v[u]) * __ldg(x + c[u]) : X(0);
  }
  __syncthreads();

  const int  before = mine ? rows[spread(mine - 1)] : (base ? row[base - 1] : -1);
  Segment<X> sum    = {0, false}, all;
  int        last   = before;
#pragma unroll
  for (int u = 0; u < ITEMS; u++) {
    const int  at    = rows[spread(mine + u)];
    const bool start = at != last;

    sum  = sum + Segment<X>{product[spread(mine + u)], start};
    last = at;
  }
  sum  = segment_scan<BLOCK>(sum, &all);
  last = before;
#pragma unroll
  for (int u = 0; u < ITEMS; u++) {
    const int q = mine + u, at = rows[spread(q)];

    if (q >= size) break;
    sum               = sum + Segment<X>{product[spread(q)], at != last};
    last              = at;
    const bool bottom = q == size - 1, ends = bottom ? base + size == n || row[base + size] != at : rows[spread(q + 1)] != at;
    if (ends && sum.started) z[at] += alpha * sum.sum;
    else if (ends || (bottom && !sum.started)) head[blockIdx.x] = sum.sum;
    else if (bottom) tail[blockIdx.x] = sum.sum;
  }
}

/* One warp for each tile, and its row that ends behind it, if any */
template <class X>
__global__ void coo_carry_kernel(int64_t n, int64_t tiles, const int *__restrict__ row, X alpha, X *z, const X *__restrict__ head, const X *__restrict__ tail)
{
  const int64_t t = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32, base = t * TILE, next = base + TILE;
  const int     lane = (int)threadIdx.x % 32;
  X             sum  = 0;

  if (t >= tiles || next >= n) return;
  const int r = row[next];
  if (row[next - 1] != r || (row[base] == r && base && row[base - 1] == r)) return;
  const int64_t end = bisect(next, n, [=](int64_t k) { return row[k] == r; }); /* of the row */
  for (int64_t u = t + 1 + lane; u <= (end - 1) / TILE; u += 32) sum += head[u];
  sum = reduce<32>(sum);
  if (lane == 0) z[r] += alpha * (tail[t] + sum);
}

GPUCSR_INTERN const GPUCSRKernelFamily GPUCSRKernel_sell_row;

static const GPUCSRArray *Coordinates(const GPUCSRStorage *A, int variant)
{
  return A->array + (variant ? HYB_COO : 0);
}

static int64_t Tiles(const GPUCSRArray *coo)
{
  return ((int64_t)coo[COO_VAL].count + TILE - 1) / TILE;
}

/* A->work: head and tail of each tile, with room for doubles */
static GPUCSRError Prepare_coo_segment(GPUCSRStorage *A, int variant)
{
  GPUCSRCall(GPUCSRStorageWork(A, GPUCSR_DOUBLE, 2 * (size_t)Tiles(Coordinates(A, variant))));
  return 0;
}

static GPUCSRError Launch_coo_segment(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream st)
{
  const GPUCSRArray *coo = Coordinates(A, variant);
  const int64_t      n = (int64_t)coo[COO_VAL].count, tiles = Tiles(coo);
  const int         *row = (const int *)coo[COO_ROW].data;
  cudaStream_t       s   = (cudaStream_t)st;

  if (variant) GPUCSRCall((*GPUCSRKernel_sell_row.launch)(A, p, variant, st));
#define LAUNCH(V, X) \
  do { \
    X *z = (X *)p->z, *head = (X *)A->work.data, *tail = head + tiles; \
\
    if (!variant && (p->beta != 1 || p->y != p->z)) coo_scale_kernel<X><<<GPUCSRBlocks(A->m, 256), 256, 0, s>>>(A->m, (X)p->beta, (const X *)p->y, z); \
    if (n) coo_segment_kernel<V, X><<<(unsigned int)tiles, BLOCK, 0, s>>>(n, row, (const int *)coo[COO_COL].data, (const V *)coo[COO_VAL].data, (X)p->alpha, (const X *)p->x, z, head, tail); \
    if (tiles > 1) coo_carry_kernel<X><<<GPUCSRBlocks(tiles * 32, 256), 256, 0, s>>>(n, tiles, row, (X)p->alpha, z, head, tail); \
  } while (0)
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("coo_segment");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_coo_segment) = {false, Prepare_coo_segment, Launch_coo_segment};

/*
  y = A x, CSR, load balanced by merge path.

  Rows and entries together are one list of m + nnz items, cut into tiles of equal size for any row lengths; the first row of each tile is found once
  for each pattern. A block multiplies the entries of its tile with coalesced loads into shared memory, its threads walk equal stretches of the merged
  list, and a segmented scan adds sums of rows that threads cut. A second, small kernel finishes rows that tiles cut, in a fixed order, so every run
  has the same bits.

  Bytes: CSR's, n x once at best, m y, 12 for each tile. Wins if lengths differ wildly, as no thread waits for the longest row; else loses by
  its shared memory traffic.

  Paper: D. Merrill, M. Garland, Merge-based parallel sparse matrix-vector multiplication, SC 2016, section 3.
*/
#include "../device.cuh"
#include "merge.cuh"
#include <cub/block/block_scan.cuh>

#define BLOCK 128
#define ITEMS 8 /* of the merged list, a thread */
#define TILE  (BLOCK * ITEMS)

static int64_t Tiles(const GPUCSRStorage *A)
{
  return (A->m + A->nnz + TILE - 1) / TILE;
}

__global__ void merge_starts_kernel(int64_t tiles, int m, int64_t nnz, const int *__restrict__ rowptr, int *starts)
{
  const int64_t t = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (t <= tiles) starts[t] = merge_row(t * TILE < m + nnz ? t * TILE : m + nnz, rowptr, m, nnz);
}

template <class X>
struct Carry {
  int row;
  X   sum;
};

template <class X>
struct SumSameRow {
  __device__ __forceinline__ Carry<X> operator()(const Carry<X> &a, const Carry<X> &b) const
  {
    Carry<X> c = b;

    if (a.row == b.row) c.sum = a.sum + b.sum;
    return c;
  }
};

template <class V, class X>
__global__ void __launch_bounds__(BLOCK) csr_merge_kernel(int m, int64_t nnz, const int *__restrict__ starts, X *carry, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, X alpha, const X *__restrict__ x, X beta, const X *y, X *z)
{
  typedef cub::BlockScan<Carry<X>, BLOCK> Scan;
  __shared__ union {
    X                          product[TILE];
    typename Scan::TempStorage scan;
  } s;
  __shared__ X   out[TILE];
  __shared__ int rowend[TILE + 1];

  const int64_t d0 = (int64_t)blockIdx.x * TILE, d1 = d0 + TILE < m + nnz ? d0 + TILE : m + nnz;
  const int     r0 = starts[blockIdx.x], r1 = starts[blockIdx.x + 1];
  const int     k0 = (int)(d0 - r0), k1 = (int)(d1 - r1);
  const int     rows = r1 - r0, entries = k1 - k0;

  {
    V   v[ITEMS];
    int c[ITEMS];

#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
      const int q = i * BLOCK + (int)threadIdx.x;

      if (q < entries) {
        c[i] = streamed(col + k0 + q);
        v[i] = streamed(val + k0 + q);
      }
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
      const int q = i * BLOCK + (int)threadIdx.x;

      if (q < entries) s.product[q] = X(v[i]) * __ldg(x + c[i]);
    }
  }
  /* Ends relative to the tile; the row cut by the tile's end lasts beyond it */
  for (int q = (int)threadIdx.x; q <= rows; q += BLOCK) rowend[q] = r0 + q < m ? min(rowptr[r0 + q + 1] - k0, TILE + 1) : TILE + 1;
  __syncthreads();

  /* This thread's stretch of the tile's merged list */
  const int total = (int)(d1 - d0), d = min((int)threadIdx.x * ITEMS, total);
  int       row = bisect(max(d - entries, 0), min(d, rows), [&](int q) { return rowend[q] <= d - 1 - q; });

  int       k = d - row, done = -1;
  const int firstrow = row;
  X         sum      = 0;

#pragma unroll
  for (int i = 0; i < ITEMS; i++) {
    if (d + i < total) {
      if (row < rows && k >= rowend[row]) {
        out[row] = sum;
        done     = row;
        sum      = 0;
        row++;
      } else sum += s.product[k++];
    }
  }
  __syncthreads(); /* the products are read: the scan takes their memory */

  Carry<X> mine = {row, sum}, before = {-1, X(0)}, all;
  Scan(s.scan).ExclusiveScan(mine, before, Carry<X>{-1, X(0)}, SumSameRow<X>(), all);
  if (done >= firstrow && before.row == firstrow) out[firstrow] += before.sum;
  if (threadIdx.x == BLOCK - 1) carry[blockIdx.x] = before.row == mine.row ? before.sum + mine.sum : mine.sum;
  __syncthreads();
  for (int q = (int)threadIdx.x; q < rows; q += BLOCK) store(z, y, r0 + q, alpha, out[q], beta);
}

/* z[row] += alpha times the sums of the row in earlier tiles: one warp for each row that tiles cut */
template <class X>
__global__ void merge_carry_kernel(int64_t tiles, int m, const int *__restrict__ starts, const X *__restrict__ carry, X alpha, X *z)
{
  const int64_t t    = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int     lane = threadIdx.x % 32;

  if (t >= tiles) return;
  const int row = starts[t + 1];
  if (row >= m || (t && starts[t] == row)) return;

  const int64_t later = bisect(t + 1, tiles, [=](int64_t q) { return starts[q + 1] == row; }); /* the first tile after t that ends in a later row */
  X             sum   = 0;
  for (int64_t q = t + lane; q < later; q += 32) sum += carry[q];
  sum = reduce<32>(sum);
  if (lane == 0) z[row] += alpha * sum;
}

/* work: a carry for each tile (room for a double), then the tiles' first rows */
static GPUCSRError Prepare_csr_merge(GPUCSRStorage *A, int variant)
{
  const int64_t tiles = Tiles(A);

  (void)variant;
  GPUCSRCall(GPUCSRStorageWork(A, GPUCSR_DOUBLE, (size_t)(tiles + tiles / 2 + 2)));
  merge_starts_kernel<<<GPUCSRBlocks(tiles + 1, 256), 256, 0, (cudaStream_t)A->dev->stream>>>(tiles, A->m, A->nnz, (const int *)A->array[CSR_ROWPTR].data, (int *)((double *)A->work.data + tiles));
  GPUCSRCheckLaunch("csr_merge (starts)");
  return 0;
}

static GPUCSRError Launch_csr_merge(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int64_t tiles  = Tiles(A);
  const int    *starts = (const int *)((double *)A->work.data + tiles);

  (void)variant;
#define LAUNCH(V, X) \
  csr_merge_kernel<V, X><<<(unsigned int)tiles, BLOCK, 0, (cudaStream_t)s>>>(A->m, A->nnz, starts, (X *)A->work.data, (const int *)A->array[CSR_ROWPTR].data, (const int *)A->array[CSR_COL].data, (const V *)A->array[CSR_VAL].data, (X)p->alpha, \
                                                                             (const X *)p->x, (X)p->beta, (const X *)p->y, (X *)p->z); \
  merge_carry_kernel<X><<<GPUCSRBlocks(tiles * 32, 256), 256, 0, (cudaStream_t)s>>>(tiles, A->m, starts, (const X *)A->work.data, (X)p->alpha, (X *)p->z)
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("csr_merge");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_csr_merge) = {false, NULL, Prepare_csr_merge, Launch_csr_merge, NULL};

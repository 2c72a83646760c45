/*
  y = A x, CSR, load balanced by blocks of whole rows (CSR-Adaptive), in one launch.

  Rows and entries together are cut into tiles of about equal size, at row ends: a tile has the rows that begin in it. Its block
  multiplies the tile's entries with coalesced loads into shared memory, for any row lengths, then sums each row there with all threads that are free.
  A row longer than a tile is cut into chunks, and each block takes a chunk. The last block to finish adds the chunks' sums in their order, so every
  run has the same bits. An integer counter finds the last block, which resets it for the next product. If the long rows are few and not huge, a cluster of
  eight blocks takes each long row instead, and adds its sums in shared memory. The cluster saves two ways through the L2 cache (compute capability 9.0).

  Bytes: CSR's, n x once at best, m y, 4 for each tile, 32 for each chunk. Wins if lengths differ much; loses little elsewhere.

  Paper: J. L. Greathouse, M. Daga, Efficient sparse matrix-vector multiplication on GPUs using the CSR storage format, SC 2014, section III.
  Different: tiles are found without a pass over all rows, and long rows are cut.
*/
#include "chunks.cuh"
#include <cooperative_groups.h>

#define BLOCK 256
#define TILE  1024 /* rows and entries of a tile, without its last row */
#define LONG  TILE /* entries above which a row is cut into chunks, so a tile has less than TILE + LONG */
#define CHUNK 2048 /* entries of a chunk; a row of at most two chunks is one, to save the way through memory */

#define AHEAD 8 /* entries of a chunk that a thread has in flight */

#define CLUSTER 8                      /* blocks of a cluster */
#define FEW     128                    /* most long rows: more blocks would not run at once, and */
#define LONGEST (CLUSTER * BLOCK * 24) /* their longest, for clusters */

#define MUCH 64 /* entries for each thread above which a warp takes a row of a tile */

static int64_t Tiles(const GPUCSRStorage *A)
{
  return (A->m + A->nnz + TILE - 1) / TILE;
}

template <class X>
__device__ __forceinline__ X block_sum(X sum, X *part)
{
  sum = reduce<32>(sum);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = threadIdx.x < BLOCK / 32 ? part[threadIdx.x] : X(0);
  if (threadIdx.x < 32) sum = reduce<32>(sum);
  return sum; /* of thread 0 */
}

/* Adds the sums of a cluster's blocks in its first one; PARTS: clusters take the long rows */
template <class X>
__device__ __forceinline__ bool cluster_sum(X &sum)
{
#if __CUDA_ARCH__ >= 900
  namespace cg = cooperative_groups;
  __shared__ X       parts[CLUSTER];
  cg::cluster_group  cluster = cg::this_cluster();
  const unsigned int rank    = cluster.block_rank();

  if (threadIdx.x == 0) *cluster.map_shared_rank(parts + rank, 0) = sum;
  cluster.sync();
  if (rank || threadIdx.x) return false;
  sum = 0;
  for (int q = 0; q < CLUSTER; q++) sum += parts[q];
  return true;
#else
  return false; /* never launched */
#endif
}

/* The rows of a tile: their products with x into s, then their sums */
template <class V, class X>
__device__ __forceinline__ void adaptive_tile(int tile, X *s, const int *__restrict__ start, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, X alpha, const X *__restrict__ x, X beta, const X *y, X *z)
{
  const int r0 = start[tile];
  int       r1 = start[tile + 1];

  if (r0 >= r1) return;
  const int k0     = rowptr[r0];
  int       k1     = rowptr[r1];
  const int before = rowptr[r1 - 1]; /* only the last row that begins in a tile can be long */

  if (k1 - before > LONG) {
    r1--;
    k1 = before;
  }
  const int entries = k1 - k0, rows = r1 - r0;

  for (int base = 0; base < entries; base += 4 * BLOCK) {
    int c[4];
    V   v[4];

#pragma unroll
    for (int u = 0; u < 4; u++) {
      const int q = base + u * BLOCK + (int)threadIdx.x;

      if (q < entries) {
        c[u] = streamed(col + k0 + q);
        v[u] = streamed(val + k0 + q);
      }
    }
#pragma unroll
    for (int u = 0; u < 4; u++) {
      const int q = base + u * BLOCK + (int)threadIdx.x;

      if (q < entries) s[q] = X(v[u]) * __ldg(x + c[u]);
    }
  }
  __syncthreads();

  int t = 1; /* threads a row */
  while (t < 32 && 2 * t * rows <= BLOCK) t *= 2;
  for (int base = 0; base < rows; base += BLOCK / t) { /* whole warps stay in the loop, for the shuffles */
    const int    r = base + (int)threadIdx.x / t, mine = (int)threadIdx.x % t;
    const int    begin = r < rows ? rowptr[r0 + r] - k0 : 0, end = r < rows ? rowptr[r0 + r + 1] - k0 : 0;
    const bool   much = end - begin > MUCH * t;
    unsigned int todo = __ballot_sync(0xffffffffu, much && mine == 0);
    X            sum  = 0;

    if (!much) {
#pragma unroll 4
      for (int q = begin + mine; q < end; q += t) sum += s[q];
    }
    for (int o = t / 2; o; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o, t);
    for (; todo; todo &= todo - 1) { /* the warp together takes each row that would keep it waiting */
      const int from = __ffs(todo) - 1, b = __shfl_sync(0xffffffffu, begin, from), e = __shfl_sync(0xffffffffu, end, from);
      X         part = 0;

#pragma unroll 4
      for (int q = b + (int)threadIdx.x % 32; q < e; q += 32) part += s[q];
      part = __shfl_sync(0xffffffffu, reduce<32>(part), 0);
      if ((int)threadIdx.x % 32 == from) sum = part;
    }
    if (r < rows && mine == 0) store(z, y, r0 + r, alpha, sum, beta);
  }
}

/* A chunk of a long row */
template <class V, class X, bool CLUSTERS>
__device__ __forceinline__ void adaptive_chunk(int me, X *s, const Chunk *__restrict__ chunk, X *partial, int *counter, const int *__restrict__ col, const V *__restrict__ val, X alpha, const X *__restrict__ x, X beta, const X *y, X *z)
{
  const Chunk c   = chunk[me];
  const int   n   = CLUSTERS ? CLUSTER : c.count;
  X           sum = 0;

  const int whole = c.begin + (c.end - c.begin) / (AHEAD * BLOCK) * (AHEAD * BLOCK); /* the end of whole rounds of AHEAD entries for all threads */

#pragma unroll 8
  for (int q = c.begin + (int)threadIdx.x; q < whole; q += BLOCK) sum += X(streamed(val + q)) * __ldg(x + streamed(col + q));
  if (whole < c.end) { /* the last ones together, too, so that no thread waits alone for its loads */
    int k[AHEAD];
    V   v[AHEAD];

#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const int q = whole + u * BLOCK + (int)threadIdx.x;

      k[u] = -1;
      if (q < c.end) {
        k[u] = streamed(col + q);
        v[u] = streamed(val + q);
      }
    }
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
      if (k[u] >= 0) sum += X(v[u]) * __ldg(x + k[u]);
  }
  sum = block_sum(sum, s);
  if (CLUSTERS) {
    if (cluster_sum(sum)) store(z, y, c.row, alpha, sum, beta);
    return;
  }
  if (n == 1) {
    if (threadIdx.x == 0) store(z, y, c.row, alpha, sum, beta);
    return;
  }
  if (threadIdx.x == 0) partial[me] = sum;
  if (!last_block<true>(counter + c.first, n)) return;
  sum = 0;
  for (int q = (int)threadIdx.x; q < n; q += BLOCK) sum += __ldcg(partial + c.first + q);
  __syncthreads();
  sum = block_sum(sum, s);
  if (threadIdx.x == 0) store(z, y, c.row, alpha, sum, beta);
}

/* Chunks go first, as they take longest; blocks after the tiles fill the last cluster */
template <class V, class X, bool CLUSTERS>
__global__ void __launch_bounds__(BLOCK) csr_adaptive_kernel(int chunks, int tiles, const int *__restrict__ start, const Chunk *__restrict__ chunk, X *partial, int *counter, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, X alpha, const X *__restrict__ x, X beta, const X *y, X *z)
{
  after_previous();
  __shared__ X s[TILE + LONG];
  const int    me = (int)blockIdx.x, tile = me - chunks;

  if (tile < 0) adaptive_chunk<V, X, CLUSTERS>(me, s, chunk, partial, counter, col, val, alpha, x, beta, y, z);
  else if (tile < tiles) adaptive_tile<V, X>(tile, s, start, rowptr, col, val, alpha, x, beta, y, z);
}

static GPUCSRError Prepare_csr_adaptive(GPUCSRStorage *A, int variant)
{
  const GPUCSRBool   inspected = A->extent.width > 0 && A->extent.width <= LONG; /* and there is no long row */
  int64_t            entries   = 0;
  int                n = 0, major = 0;
  GPUCSRBool         clusters;
  HostArray<int32_t> list;

  GPUCSRCall(LongRows(A, A->m, 1, LONG, inspected ? 0 : A->nnz / LONG + 1, &list, &n));
  GPUCSR_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, A->dev->id));
  clusters = (GPUCSRBool)(major >= 9 && n > 0 && n <= FEW);
  for (int q = 0; q < n; q++) {
    const int length = list[3 * q + 2] - list[3 * q + 1];

    entries += length;
    clusters = (GPUCSRBool)(clusters && length <= LONGEST);
  }
  if (entries <= 2 * CHUNK * (int64_t)n) clusters = false;
  A->way = clusters;
  GPUCSRCall(Lay(A, A->m, 1, Tiles(A), TILE, 1, list, n, [=](int length, int *size) { /* with clusters the blocks of a cluster */
                                                                                      *size = clusters ? (length + CLUSTER - 1) / CLUSTER : CHUNK;
                                                                                      return clusters ? CLUSTER : length <= 2 * CHUNK ? 1 : (length + CHUNK - 1) / CHUNK;
  }));
  return 0;
}

static GPUCSRError Launch_csr_adaptive(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int          tiles  = (int)Tiles(A);
  const Work         w      = WorkOf(A, 1);
  const unsigned int blocks = (unsigned int)(tiles + A->parts);

#define ARGUMENTS(V, X) \
  A->parts, tiles, w.start, w.chunk, (X *)w.sum, w.counter, (const int *)A->array[CSR_ROWPTR].data, (const int *)A->array[CSR_COL].data, (const V *)A->array[CSR_VAL].data, (X)p->alpha, (const X *)p->x, (X)p->beta, (const X *)p->y, (X *)p->z
#define LAUNCH(V, X) \
  if (A->way) launch_after<CLUSTER>(csr_adaptive_kernel<V, X, true>, (blocks + CLUSTER - 1) / CLUSTER * CLUSTER, BLOCK, 0, s, ARGUMENTS(V, X)); \
  else launch_after(csr_adaptive_kernel<V, X, false>, blocks, BLOCK, 0, s, ARGUMENTS(V, X))
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("csr_adaptive");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_csr_adaptive) = {false, Prepare_csr_adaptive, Launch_csr_adaptive};

/*
  y = A x, blocked CSR, load balanced by thread blocks of several whole block rows each (as csr_adaptive for rows), in one launch.

  Block rows and blocks together are cut into tiles of about equal size, at the ends of block rows: a tile has the block rows that begin in it. Its
  threads multiply the tile's blocks in order, with coalesced loads for any lengths, and put the sums of each block's rows into shared memory; there
  all threads that are free add up each row. A block row longer than a tile is cut into chunks, and each thread block takes a chunk. The last thread
  block to finish adds the chunks' sums in their order, so every run has the same bits. An integer counter finds the last thread block, which resets the counter for the next product.

  Bytes: blocked CSR's, n x once at best, m y, 4 for each tile. Wins if the lengths of block rows differ much.

  Papers: J. L. Greathouse, M. Daga, SC 2014, section III, for the tiles; M. Verschoor, A. C. Jalba, Parallel Computing 2012, for multiple block rows
  a thread block.
*/
#include "bcsr.cuh"
#include "chunks.cuh"

#define BLOCK 256
#define TILE  512  /* block rows and lanes of a tile, without its last block row */
#define LONG  512  /* lanes above which a block row is cut into chunks, so a tile has less than TILE + LONG */
#define CHUNK 2048 /* lanes of a chunk */
#define SUMS  8    /* of a chunk: most rows of a block */

static int Rows(const GPUCSRStorage *A)
{
  return (int)A->array[BCSR_ROWPTR].count - 1;
}

static int64_t Tiles(const GPUCSRStorage *A)
{
  return (Rows(A) + A->extent.units * BCSR_LANES(GPUCSR_BLOCK_ROWS(A->format->variant)) + TILE - 1) / TILE;
}

template <int BR, int BC, class V, class X>
__global__ void __launch_bounds__(BLOCK) bcsr_adaptive_kernel(int chunks, int m, int n, bool wide, const int *__restrict__ start, const Chunk *__restrict__ chunk, X *partial, int *counter, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, X alpha, const X *__restrict__ x, X beta, const X *y, X *z)
{
  after_previous();
  constexpr int S = BCSR_LANES(BR), R = BR / S, K = R * BC;
  __shared__ X  s[R][TILE + LONG];

  if ((int)blockIdx.x >= chunks) { /* a tile; chunks go first, as they take longest */
    const int tile = (int)blockIdx.x - chunks, r0 = start[tile];
    int       r1 = start[tile + 1];

    if (r0 >= r1) return;
    const int l0     = rowptr[r0] * S;
    int       l1     = rowptr[r1] * S;
    const int before = rowptr[r1 - 1] * S; /* only the last block row that begins in a tile can be long */

    if (l1 - before > LONG) {
      r1--;
      l1 = before;
    }
    for (int q = (int)threadIdx.x; q < l1 - l0; q += BLOCK) {
      X         xs[BC], sum[R] = {0};
      V         v[K];
      const int j = streamed(col + (l0 + q) / S);

      load_lane<K>(val, l0 + q, v);
      load_x<BC>(x, j, n, wide, xs);
      multiply<R, BC>(v, xs, sum);
#pragma unroll
      for (int i = 0; i < R; i++) s[i][q] = sum[i];
    }
    __syncthreads();

    const int rows = (r1 - r0) * BR;
    int       t    = 1; /* threads a row */
    while (t < 32 && 2 * t * rows <= BLOCK) t *= 2;
    for (int base = 0; base < rows; base += BLOCK / t) { /* whole warps stay in the loop, for the shuffles */
      const int r = base + (int)threadIdx.x / t, R0 = r0 + r / BR, i = r % BR, lane = i / R;
      const int begin = r < rows ? rowptr[R0] * S - l0 : 0, end = r < rows ? rowptr[R0 + 1] * S - l0 : 0;
      X         sum = 0;

#pragma unroll 4
      for (int q = begin + lane + S * ((int)threadIdx.x % t); q < end; q += S * t) sum += s[i % R][q];
      for (int o = t / 2; o; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o, t);
      if (r < rows && threadIdx.x % t == 0 && (int64_t)r0 * BR + r < m) store(z, y, (int64_t)r0 * BR + r, alpha, sum, beta);
    }
    return;
  }

  /* A chunk of a long block row */
  const int   me = (int)blockIdx.x, t = (int)threadIdx.x;
  const Chunk c      = chunk[me];
  X           sum[R] = {0};

  for (int q = c.begin + t; q < c.end; q += BLOCK) {
    X         xs[BC];
    V         v[K];
    const int j = streamed(col + q / S);

    load_lane<K>(val, q, v);
    load_x<BC>(x, j, n, wide, xs);
    multiply<R, BC>(v, xs, sum);
  }
#pragma unroll
  for (int i = 0; i < R; i++) s[i][t] = sum[i];
  __syncthreads();
  if (t < BR) { /* one thread for each row: slow, but in a fixed order */
    X all = 0;

    for (int q = t / R; q < BLOCK; q += S) all += s[t % R][q];
    partial[SUMS * (int64_t)me + t] = all;
  }
  if (!last_block(counter + c.first, c.count)) return;
  if (t < BR && (int64_t)c.row * BR + t < m) {
    X all = 0;

    for (int q = 0; q < c.count; q++) all += __ldcg(partial + SUMS * (int64_t)(c.first + q) + t);
    store(z, y, (int64_t)c.row * BR + t, alpha, all, beta);
  }
}

static GPUCSRError Prepare_bcsr_adaptive(GPUCSRStorage *A, int variant)
{
  const int          lanes = BCSR_LANES(GPUCSR_BLOCK_ROWS(A->format->variant));
  int                n;
  HostArray<int32_t> list;

  GPUCSRCall(LongRows(A, Rows(A), lanes, LONG, A->extent.units * lanes / LONG, &list, &n));
  GPUCSRCall(Lay(A, Rows(A), lanes, Tiles(A), TILE, SUMS, list, n, [](int length, int *size) {
    *size = CHUNK;
    return (length + CHUNK - 1) / CHUNK;
  }));
  return 0;
}

static GPUCSRError Launch_bcsr_adaptive(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int  tiles = (int)Tiles(A), bc = GPUCSR_BLOCK_COLS(A->format->variant);
  const Work w = WorkOf(A, SUMS);

#define CASE(R, C, V, X) \
  case GPUCSR_BLOCK(R, C): \
    launch_after(bcsr_adaptive_kernel<R, C, V, X>, (unsigned int)(tiles + A->parts), BLOCK, 0, s, A->parts, A->m, A->n, WideX(p->x, A->n, bc), w.start, w.chunk, (X *)w.sum, w.counter, (const int *)A->array[BCSR_ROWPTR].data, \
                 (const int *)A->array[BCSR_COL].data, (const V *)A->array[BCSR_VAL].data, (X)p->alpha, (const X *)p->x, (X)p->beta, (const X *)p->y, (X *)p->z); \
    break;
#define LAUNCH(V, X) \
  switch (A->format->variant) { \
    BCSR_SQUARES(CASE, V, X) \
  }
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("bcsr_adaptive");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_bcsr_adaptive) = {false, Prepare_bcsr_adaptive, Launch_bcsr_adaptive};

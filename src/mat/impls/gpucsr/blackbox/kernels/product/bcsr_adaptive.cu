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

#define BLOCK 256
#define TILE  512  /* block rows and lanes of a tile, without its last block row */
#define LONG  512  /* lanes above which a block row is cut into chunks, so a tile has less than TILE + LONG */
#define CHUNK 2048 /* lanes of a chunk */

typedef struct {
  int row, begin, end; /* block row; its lanes */
  int first, count;    /* numbers of its row's first chunk, and of its chunks */
} BlockChunk;

/* A->work, A->parts chunks: room for 8 doubles each, the chunks, a counter each, the tiles' first block rows */
typedef struct {
  double     *sum;
  BlockChunk *chunk;
  int        *counter, *start;
} BlockWork;

static int Rows(const GPUCSRStorage *A)
{
  return (int)A->array[BCSR_ROWPTR].count - 1;
}

static int64_t Tiles(const GPUCSRStorage *A)
{
  return (Rows(A) + A->extent.units * BCSR_LANES(GPUCSR_BLOCK_ROWS(A->format->variant)) + TILE - 1) / TILE;
}

static BlockWork WorkOf(const GPUCSRStorage *A)
{
  BlockWork w;

  w.sum     = (double *)A->work.data;
  w.chunk   = (BlockChunk *)(w.sum + 8 * (size_t)A->parts);
  w.counter = (int *)(w.chunk + A->parts);
  w.start   = w.counter + A->parts;
  return w;
}

/* start[t] = the first block row whose number plus first lane reaches t TILE */
__global__ void bcsr_starts_kernel(int64_t tiles, int rows, int lanes, const int *__restrict__ rowptr, int *start)
{
  const int64_t t = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (t <= tiles) start[t] = bisect(0, rows, [=](int r) { return (int64_t)r + (int64_t)rowptr[r] * lanes < t * TILE; });
}

/* list[0] counts the long block rows; each takes three places, in any order: block row, first and last lane */
__global__ void bcsr_long_kernel(int rows, int lanes, const int *__restrict__ rowptr, int *list)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r < rows && (rowptr[r + 1] - rowptr[r]) * lanes > LONG) {
    const int q = atomicAdd(list, 1);

    list[1 + 3 * q] = r;
    list[2 + 3 * q] = rowptr[r] * lanes;
    list[3 + 3 * q] = rowptr[r + 1] * lanes;
  }
}

template <int BR, int BC, class V, class X>
__global__ void __launch_bounds__(BLOCK) bcsr_adaptive_kernel(int chunks, int m, int n, bool wide, const int *__restrict__ start, const BlockChunk *__restrict__ chunk, X *partial, int *counter, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, X alpha, const X *__restrict__ x, X beta, const X *y, X *z)
{
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
  const int        me = (int)blockIdx.x, t = (int)threadIdx.x;
  const BlockChunk c      = chunk[me];
  X                sum[R] = {0};

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
    partial[8 * (int64_t)me + t] = all;
  }
  if (!last_block(counter + c.first, c.count)) return;
  if (t < BR && (int64_t)c.row * BR + t < m) {
    X all = 0;

    for (int q = 0; q < c.count; q++) all += __ldcg(partial + 8 * (int64_t)(c.first + q) + t);
    store(z, y, (int64_t)c.row * BR + t, alpha, all, beta);
  }
}

/* The host lays out the chunks of the long block rows, as it must know their number */
static GPUCSRError Prepare_bcsr_adaptive(GPUCSRStorage *A, int variant)
{
  const int            *rowptr = (const int *)A->array[BCSR_ROWPTR].data;
  const int             rows = Rows(A), lanes = BCSR_LANES(GPUCSR_BLOCK_ROWS(A->format->variant));
  const int64_t         most = A->extent.units * lanes / LONG, tiles = Tiles(A); /* long rows there can be */
  cudaStream_t          s      = (cudaStream_t)A->dev->stream;
  void                 *device = NULL;
  int32_t               n      = 0;
  HostArray<int32_t>    list;
  HostArray<BlockChunk> chunk;
  BlockWork             w;

  GPUCSRCall(list.make(3 * (size_t)most + 1));
  if (most) {
    GPUCSRError ierr;

    GPUCSRCall(GPUCSRMalloc(A->dev, sizeof(int) * (3 * (size_t)most + 1), "the list of long block rows", &device));
    GPUCSR_CUDA(cudaMemsetAsync(device, 0, sizeof(int), s));
    bcsr_long_kernel<<<GPUCSRBlocks(rows, 256), 256, 0, s>>>(rows, lanes, rowptr, (int *)device);
    ierr = GPUCSRDownload(A->dev, list.p, GPUCSR_INT32, device, GPUCSR_INT32, 3 * (size_t)most + 1, false, s);
    GPUCSRCall(GPUCSRFree(A->dev, sizeof(int) * (3 * (size_t)most + 1), &device));
    GPUCSRCall(ierr);
    n = list[0];
  }
  A->parts = 0;
  for (int q = 0; q < n; q++) A->parts += (list[3 + 3 * q] - list[2 + 3 * q] + CHUNK - 1) / CHUNK;
  GPUCSRCall(chunk.make((size_t)A->parts));
  for (int q = 0, c = 0; q < n; q++) {
    const int begin = list[2 + 3 * q], end = list[3 + 3 * q], first = c, count = (end - begin + CHUNK - 1) / CHUNK;

    for (int k = 0; k < count; k++) chunk[c++] = BlockChunk{list[1 + 3 * q], begin + k * CHUNK, k == count - 1 ? end : begin + (k + 1) * CHUNK, first, count};
  }
  GPUCSRCall(GPUCSRStorageWork(A, GPUCSR_INT32, 16 * (size_t)A->parts + 6 * (size_t)A->parts + (size_t)tiles + 1));
  w = WorkOf(A);
  GPUCSRCall(GPUCSRUpload(A->dev, w.chunk, GPUCSR_INT32, chunk.p, GPUCSR_INT32, 5 * (size_t)A->parts, false, s, NULL));
  GPUCSR_CUDA(cudaMemsetAsync(w.counter, 0, sizeof(int) * (size_t)A->parts, s));
  bcsr_starts_kernel<<<GPUCSRBlocks(tiles + 1, 256), 256, 0, s>>>(tiles, rows, lanes, rowptr, w.start);
  GPUCSRCheckLaunch("bcsr_adaptive (starts)");
  return 0;
}

static GPUCSRError Launch_bcsr_adaptive(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int       tiles = (int)Tiles(A), bc = GPUCSR_BLOCK_COLS(A->format->variant);
  const BlockWork w = WorkOf(A);

#define CASE(R, C, V, X) \
  case GPUCSR_BLOCK(R, C): \
    bcsr_adaptive_kernel<R, C, V, X><<<(unsigned int)(tiles + A->parts), BLOCK, 0, (cudaStream_t)s>>>(A->parts, A->m, A->n, WideX(p->x, A->n, bc), w.start, w.chunk, (X *)w.sum, w.counter, (const int *)A->array[BCSR_ROWPTR].data, \
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

/*
  The inspector on the device, over CSR, in one launch. Some blocks read samples of the rows (inspect/inspect.h), some count equal rows of the sample,
  some read all row lengths, some check all column numbers: a column out of range would read beyond x. A second launch counts the equal rows of the
  whole matrix, unless the sampled rows differ too much.

  All counts are integers, so the order of atomics does not matter.
*/
#include "../product/stencil.cuh"
#include "../../inspect/inspect.h"

#define ALIKE 32 /* windows of the sample searched first for equal rows: enough to find most matrices too different */

typedef struct {
  unsigned long long squares, stored, bad; /* bad: ~ of the first entry with a column out of range, so that the largest is the first */
  unsigned long long entries[GPUCSR_NCLASSES];
  int                rows[GPUCSR_NCLASSES];
  int                notmin, max; /* INT_MAX - the shortest length */
  int                heaviest;    /* entries of the largest slice */
  GPUCSRSample       sample;
  StencilCount       stencils;
} Counts;

/* The counts and temporary data; behind it, a bit for each diagonal */
typedef struct {
  Counts counts;
  int    slot[STENCIL_SLOTS];
} Scratch;

/*
  A thread takes rows at a stride, and adds to a class when the class changes: most matrices have few classes. At the end a warp with rows of one class first adds up its
  counts; otherwise all threads of a block would add to one address. Entries of a class are counted in 32 bits, as a matrix' are.
*/
static __device__ void inspect_rows(int block, int blocks, int m, const int *__restrict__ rowptr, Counts *to)
{
  __shared__ unsigned int       entries[GPUCSR_NCLASSES];
  __shared__ int                rows[GPUCSR_NCLASSES], los[32], his[32], heaviests[32]; /* of each warp */
  __shared__ unsigned long long squaress[32], storeds[32];
  const int                     stride = blocks * (int)blockDim.x, lane = threadIdx.x % 32;
  unsigned long long            squares = 0, stored = 0;
  unsigned int                  sum = 0;
  int                           lo = INT_MAX, hi = 0, heaviest = 0, b = -1, count = 0, top;

  if (threadIdx.x < GPUCSR_NCLASSES) entries[threadIdx.x] = rows[threadIdx.x] = 0;
  if (threadIdx.x < 32) {
    los[threadIdx.x]       = INT_MAX;
    his[threadIdx.x]       = 0;
    heaviests[threadIdx.x] = 0;
    squaress[threadIdx.x] = storeds[threadIdx.x] = 0;
  }
  __syncthreads();
  for (int64_t base = (int64_t)block * blockDim.x; base < m; base += stride) {
    const int64_t r   = base + threadIdx.x;
    const int     len = r < m ? rowptr[r + 1] - rowptr[r] : 0, c = 32 - __clz(len);
    int           width = len, slice = len;

#pragma unroll
    for (int o = 16; o; o >>= 1) {
      width = max(width, __shfl_xor_sync(0xffffffffu, width, o));
      slice += __shfl_xor_sync(0xffffffffu, slice, o);
    }
    heaviest = max(heaviest, slice);
    if (threadIdx.x % GPUCSR_SLICE == 0) stored += (unsigned long long)width * GPUCSR_SLICE;
    if (r >= m) continue;
    lo = min(lo, len);
    hi = max(hi, len);
    squares += (unsigned long long)len * len;
    if (c != b) {
      if (count) {
        atomicAdd(&rows[b], count);
        atomicAdd(&entries[b], sum);
      }
      b     = c;
      count = 0;
      sum   = 0;
    }
    count++;
    sum += len;
  }
  top     = b;
  squares = warp_sum(squares);
#pragma unroll
  for (int o = 16; o; o >>= 1) {
    lo  = min(lo, __shfl_xor_sync(0xffffffffu, lo, o));
    hi  = max(hi, __shfl_xor_sync(0xffffffffu, hi, o));
    top = max(top, __shfl_xor_sync(0xffffffffu, top, o));
  }
  if (__all_sync(0xffffffffu, !count || b == top)) {
    b     = top;
    count = reduce<32>(count);
    sum   = reduce<32>(sum);
    if (lane) count = 0;
  }
  if (count) {
    atomicAdd(&rows[b], count);
    atomicAdd(&entries[b], sum);
  }
  if (lane == 0) {
    los[threadIdx.x / 32]       = lo;
    his[threadIdx.x / 32]       = hi;
    heaviests[threadIdx.x / 32] = heaviest;
    squaress[threadIdx.x / 32]  = squares;
    storeds[threadIdx.x / 32]   = stored;
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    lo       = los[lane];
    hi       = his[lane];
    heaviest = heaviests[lane];
    squares  = warp_sum(squaress[lane]);
    stored   = warp_sum(storeds[lane]);
#pragma unroll
    for (int o = 16; o; o >>= 1) {
      lo       = min(lo, __shfl_xor_sync(0xffffffffu, lo, o));
      hi       = max(hi, __shfl_xor_sync(0xffffffffu, hi, o));
      heaviest = max(heaviest, __shfl_xor_sync(0xffffffffu, heaviest, o));
    }
    if (lane == 0) {
      atomicAdd(&to->squares, squares);
      atomicAdd(&to->stored, stored);
      atomicMax(&to->notmin, INT_MAX - lo);
      atomicMax(&to->max, hi);
      atomicMax(&to->heaviest, heaviest);
    }
    if (rows[lane]) {
      atomicAdd(&to->rows[lane], rows[lane]);
      atomicAdd(&to->entries[lane], (unsigned long long)entries[lane]);
    }
  }
}

static __device__ void inspect_columns(int block, int blocks, int64_t nnz, int n, const int *__restrict__ col, Counts *to)
{
  const int64_t stride = (int64_t)blocks * blockDim.x * 4;

  for (int64_t k = ((int64_t)block * blockDim.x + threadIdx.x) * 4; k < nnz; k += stride) {
    const int4     c   = *(const int4 *)(col + k); /* arrays are padded */
    const unsigned u   = (unsigned)n;
    const int      off = (unsigned)c.x >= u ? 0 : k + 1 < nnz && (unsigned)c.y >= u ? 1 : k + 2 < nnz && (unsigned)c.z >= u ? 2 : k + 3 < nnz && (unsigned)c.w >= u ? 3 : 4;

    if (off < 4) atomicMax(&to->bad, ~(unsigned long long)(k + off));
  }
}

/* A block for each window, a warp for each row. The search in the rows above, step by step, takes the time: so in shared memory */
#define THREADS (32 * GPUCSR_WINDOW)

static __device__ void inspect_window(int window, int m, int n, int windows, const int *__restrict__ rowptr, const int *__restrict__ col, unsigned int *met, Counts *to)
{
  __shared__ int                blocks[GPUCSR_NBLOCKSIZES];
  __shared__ unsigned long long spreads[32]; /* for each row: 64-bit atomics in shared memory are slow */
  __shared__ int                entries, filled, diagonals, bandwidth;
  __shared__ int                cols[GPUCSR_WINDOW * GPUCSR_SAMPLE_LENGTH], begins[GPUCSR_WINDOW], ends[GPUCSR_WINDOW]; /* of the sample */
  const int                     first = GPUCSRWindowStart(m, windows, window), last = min(m, first + GPUCSR_WINDOW), lane = threadIdx.x % 32;
  int                           mine[GPUCSR_NBLOCKSIZES] = {0}, fresh = 0, wide = 0;

  if (threadIdx.x < GPUCSR_NBLOCKSIZES) blocks[threadIdx.x] = 0;
  if (threadIdx.x < 32) spreads[threadIdx.x] = 0;
  if (threadIdx.x == 0) entries = filled = diagonals = bandwidth = 0;
  {
    const int q = threadIdx.x / 32, r = first + q; /* THREADS is a warp for each row */

    if (r < last) {
      const int begin = rowptr[r], len = min(rowptr[r + 1] - begin, GPUCSR_SAMPLE_LENGTH);

      if (lane == 0) {
        begins[q] = q * GPUCSR_SAMPLE_LENGTH;
        ends[q]   = begins[q] + len;
      }
      for (int k = lane; k < len; k += 32) cols[q * GPUCSR_SAMPLE_LENGTH + k] = col[begin + k];
    }
  }
  __syncthreads();
  for (int r = first + threadIdx.x / 32; r < last; r += THREADS / 32) {
    const int begin = rowptr[r], length = rowptr[r + 1] - begin, len = min(length, GPUCSR_SAMPLE_LENGTH);

    for (int k = begin + lane; k < begin + len; k += 32) {
      const int c = col[k];

      if ((unsigned)c >= (unsigned)n) continue; /* the caller refuses the column; until then no address may use it */
      const int64_t bit = (int64_t)c - r + m - 1;
      SampleBlocks(begins, ends, cols, r - first, begins[r - first] + k - begin, mine);
      wide = max(wide, abs(c - r));
      if (!(met[bit / 32] >> (bit % 32) & 1)) fresh += !(atomicOr(&met[bit / 32], 1u << (bit % 32)) >> (bit % 32) & 1);
    }
    if (lane == 0) {
      atomicAdd(&entries, len);
      if (len) {
        atomicAdd(&filled, 1);
        spreads[r - first] = (unsigned long long)max(0, col[begin + length - 1] - col[begin] + 1);
      }
    }
  }
  for (int q = 0; q < GPUCSR_NBLOCKSIZES; q++) { /* summed over a warp: its threads would wait for each other at one address */
    const int sum = reduce<32>(mine[q]);

    if (lane == 0 && sum) atomicAdd(&blocks[q], sum);
  }
  fresh = reduce<32>(fresh);
#pragma unroll
  for (int o = 16; o; o >>= 1) wide = max(wide, __shfl_xor_sync(0xffffffffu, wide, o));
  if (lane == 0) {
    if (fresh) atomicAdd(&diagonals, fresh);
    atomicMax(&bandwidth, wide);
  }
  __syncthreads();
  if (threadIdx.x < GPUCSR_NBLOCKSIZES) atomicAdd(&to->sample.blocks[threadIdx.x], (unsigned long long)blocks[threadIdx.x]);
  if (threadIdx.x >= 32) return;
  const unsigned long long spread = warp_sum(spreads[lane]);
  if (threadIdx.x == 0) {
    atomicAdd(&to->sample.rows, (unsigned long long)(last - first));
    atomicAdd(&to->sample.filled, (unsigned long long)filled);
    atomicAdd(&to->sample.entries, (unsigned long long)entries);
    atomicAdd(&to->sample.spread, spread);
    atomicAdd(&to->sample.diagonals, (unsigned long long)diagonals);
    atomicMax(&to->sample.bandwidth, bandwidth);
  }
}

/* One block for each tile */
static __device__ void inspect_tile(int tile, int tiles, int m, const int *__restrict__ rowptr, const int *__restrict__ col, Counts *to)
{
  __shared__ unsigned int bits[GPUCSR_ALL_WORDS];
  __shared__ int          set[GPUCSR_TILE_SECTIONS], entries;
  const int               first = GPUCSRTileStart(m, tiles, tile), last = min(m - first, GPUCSR_TILE) + first, lane = threadIdx.x % 32;
  int                     mine = 0;

  for (int k = (int)threadIdx.x; k < GPUCSR_ALL_WORDS; k += THREADS) bits[k] = 0;
  if (threadIdx.x < GPUCSR_TILE_SECTIONS) set[threadIdx.x] = 0;
  if (threadIdx.x == 0) entries = 0;
  __syncthreads();
  for (int r = first + (int)threadIdx.x / 32; r < last; r += THREADS / 32) {
    const int begin = rowptr[r], len = min(rowptr[r + 1] - begin, GPUCSR_SAMPLE_LENGTH);

    for (int k = lane; k < len; k += 32) {
      const int c = col[begin + k];

#pragma unroll
      for (int q = 0; q < GPUCSR_TILE_SETS; q++) {
        const unsigned int b = GPUCSRTileBit(q, r - first, c);

        atomicOr(&bits[b / 32], 1u << b % 32);
      }
    }
    if (lane == 0) mine += len;
  }
  if (mine) atomicAdd(&entries, mine);
  __syncthreads();
  for (int k = (int)threadIdx.x; k < GPUCSR_ALL_WORDS; k += THREADS) { /* a warp's words belong to one section */
    const int sum = reduce<32>(__popc(bits[k]));

    if (lane == 0 && sum) atomicAdd(&set[GPUCSRSectionOfWord(k)], sum);
  }
  __syncthreads();
  if (threadIdx.x < GPUCSR_TILE_SECTIONS) atomicAdd(GPUCSRSectionCount(&to->sample, threadIdx.x), (unsigned long long)GPUCSRDifferent(GPUCSRSectionBits(threadIdx.x), GPUCSRSectionBits(threadIdx.x) - set[threadIdx.x]));
  if (threadIdx.x == 0) atomicAdd(&to->sample.tiled, (unsigned long long)entries);
}

static_assert(GPUCSR_ALL_WORDS % 32 == 0 && THREADS % 32 == 0, "whole warps count bits");

/* Number of blocks of each kind, in order */
typedef struct {
  int windows, tiles, alike, rows, columns;
} Blocks;

template <class V>
__global__ void __launch_bounds__(THREADS) inspect_kernel(int m, int n, int64_t nnz, Blocks blocks, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, Scratch *to)
{
  int b = (int)blockIdx.x;

  if (b < blocks.windows) {
    inspect_window(b, m, n, blocks.windows, rowptr, col, (unsigned int *)(to + 1), &to->counts);
    return;
  }
  b -= blocks.windows;
  if (b < blocks.tiles) {
    inspect_tile(b, blocks.tiles, m, rowptr, col, &to->counts);
    return;
  }
  b -= blocks.tiles;
  if (b < blocks.alike) { /* one warp for each row */
    const int            r = GPUCSRWindowStart(m, blocks.alike, b) + (int)threadIdx.x / 32;
    const StencilRows<V> a = {rowptr, col, val};
    int                  like;

    if (r < m) (void)stencil_find<32>(a, r, &to->counts.stencils, to->slot, &like);
    return;
  }
  b -= blocks.alike;
  if (b < blocks.rows) inspect_rows(b, blocks.rows, m, rowptr, &to->counts);
  else inspect_columns(b - blocks.rows, blocks.columns, nnz, n, col, &to->counts);
}

static GPUCSRError Count_inspect(const GPUCSRStorage *csr, Blocks blocks, size_t bytes, Scratch *to, Counts *host, cudaStream_t s)
{
  GPUCSR_CUDA(cudaMemsetAsync(to, 0, bytes, s));
#define INSPECT(V, X) \
  inspect_kernel<V> \
    <<<blocks.windows + blocks.tiles + blocks.alike + blocks.rows + blocks.columns, THREADS, 0, s>>>(csr->m, csr->n, csr->nnz, blocks, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, (const V *)csr->array[CSR_VAL].data, to)
  GPUCSRDispatchPrecision(csr->precision, INSPECT);
  GPUCSRCheckLaunch("inspect");
  if (blocks.alike && blocks.alike < GPUCSRWindows(csr->m)) GPUCSRCall(GPUCSRFindStencils(csr, csr->m, 1, &to->counts.stencils, to->slot, NULL, NULL, (GPUCSRStream)s));
  GPUCSRCall(GPUCSRDownload(csr->dev, host, GPUCSR_INT32, &to->counts, GPUCSR_INT32, sizeof(*host) / sizeof(int32_t), false, (GPUCSRStream)s));
  return 0;
}

static void Features(const Counts *c, GPUCSRFeatures *f)
{
  f->min         = INT_MAX - c->notmin;
  f->max         = c->max;
  f->sell_stored = (int64_t)c->stored;
  f->heaviest    = c->heaviest;
  for (int b = 0; b < GPUCSR_NCLASSES; b++) {
    f->rows[b]    = c->rows[b];
    f->entries[b] = (int64_t)c->entries[b];
  }
  GPUCSRFeaturesDerive((double)c->squares, f);
  if (f->nnz) GPUCSRFeaturesOfSample(&c->sample, f);
  f->stencils       = c->max > STENCIL_MOST || c->stencils.entries > STENCIL_MOST ? -1 : c->stencils.stencils;
  f->stencilentries = f->stencils < 0 ? 0 : c->stencils.entries - c->stencils.stencils;
}

/* bad: the first entry with a column out of range, or -1; f NULL: inspects nothing else */
GPUCSRError GPUCSRInspect_CUDA(const GPUCSRStorage *csr, double fraction, GPUCSRFeatures *f, int64_t *bad, GPUCSRStream s)
{
  const size_t size   = sizeof(Scratch) + ((size_t)csr->m + (size_t)csr->n) / 8 + 4;
  Blocks       blocks = {0, 0, 0, 0, (int)GPUCSRMin(1024u, GPUCSRBlocks(csr->nnz, 4 * THREADS))};
  void        *to     = NULL;
  Counts       c;
  GPUCSRError  ierr;

  *bad = -1;
  if (f) {
    memset(f, 0, sizeof(*f)); /* features are hashed as memory */
    f->m           = csr->m;
    f->n           = csr->n;
    f->nnz         = csr->nnz;
    blocks.rows    = (int)GPUCSRMin(512u, GPUCSRBlocks(csr->m, THREADS));
    blocks.windows = csr->nnz ? GPUCSRSampledWindows(csr->m, fraction) : 0;
    blocks.tiles   = csr->nnz ? GPUCSRSampledTiles(csr->m) : 0;
    blocks.alike   = GPUCSRMin(ALIKE, GPUCSRWindows(csr->m));
  }
  if (!csr->m || !(blocks.rows + blocks.columns)) return 0;
  GPUCSRCall(GPUCSRMalloc(csr->dev, size, "the inspector's counts", &to));
  ierr = Count_inspect(csr, blocks, size, (Scratch *)to, &c, (cudaStream_t)s);
  GPUCSRCall(GPUCSRFree(csr->dev, size, &to));
  GPUCSRCall(ierr);
  if (f) Features(&c, f);
  if (c.bad) *bad = (int64_t)~c.bad;
  return 0;
}

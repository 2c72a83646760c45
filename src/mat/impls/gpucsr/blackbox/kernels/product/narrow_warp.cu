/*
  y = A x, CSR with narrow columns, one warp for each slice of 32 rows.

  The warp loads the entries of its slice in their order, gathers x and leaves the products in shared memory; then one thread for each row adds up. So
  no thread searches for its entries, and none idles if rows differ in length. The windows' first columns stay in registers, one in each thread, and
  are fetched from there.

  Bytes: the format's, n x once at best, m y. Wins and loses as the format.

  Papers: J. L. Greathouse, M. Daga, Efficient sparse matrix-vector multiplication on GPUs using the CSR storage format, SC 2014 (products to shared
  memory, then rows); see format/narrow.c.
*/
#include "../device.cuh"
#include "../../format/narrow.h"

#define BLOCK 128
#define WARPS (BLOCK / GPUCSR_SLICE)
#define ROUND 256 /* entries of a slice in flight */
#define MOST  9   /* blocks of a processor at a time, for their registers */

/* W neighbouring columns in one load */
template <int W>
__device__ __forceinline__ void narrow_columns(const unsigned short *p, unsigned short (&c)[W])
{
  if constexpr (W == 1) c[0] = streamed(p);
  else {
    const unsigned int two = streamed((const unsigned int *)p);

    c[0] = (unsigned short)two;
    c[1] = (unsigned short)(two >> 16);
  }
}
/* Of wide slices */
__device__ __forceinline__ void narrow_columns(const int *p, int (&c)[1])
{
  c[0] = streamed(p);
}

/* The column of an entry; all threads of the warp call it */
__device__ __forceinline__ int narrow_column(unsigned short c, int head)
{
  return __shfl_sync(0xffffffffu, head, 1 + NarrowWindow(c)) + NarrowWithin(c);
}
__device__ __forceinline__ int narrow_column(int c, int head)
{
  (void)head;
  return c;
}

/*
  The sum of a thread's row, of the warp's n entries from col and val on, W of which are loaded together; skip: earlier entries that aligned loads of
  W include. Missing entries count as the first of window 0, whose entry of x is safe to load; their products are never read
*/
template <int W, class C, class V, class X>
__device__ __forceinline__ X narrow_sum(int n, int skip, int length, int head, const C *__restrict__ col, const V *__restrict__ val, const X *__restrict__ x, X *product)
{
  constexpr int LOADS = ROUND / 32 / W;
  const int     lane = (int)threadIdx.x % 32, stop = skip + warp_upto(length); /* entries up to the end of this thread's row */
  X             sum = 0;

  col += W * lane;
  val += W * lane;
  for (int first = 0; first < skip + n; first += ROUND, col += ROUND, val += ROUND) {
    const int end = skip + n - first - W * lane; /* of the rest, counted from this thread's first */
    C         c[LOADS][W];
    V         v[LOADS][W];
    X         g[LOADS][W];

#pragma unroll
    for (int u = 0; u < LOADS; u++) {
#pragma unroll
      for (int w = 0; w < W; w++) c[u][w] = 0;
      if (32 * W * u < end) {
        narrow_columns(col + 32 * W * u, c[u]);
        streamed(val + 32 * W * u, v[u]);
      }
    }
    if (W == 2 && first + W * lane < skip) c[0][0] = 0;
#pragma unroll
    for (int u = 0; u < LOADS; u++)
#pragma unroll
      for (int w = 0; w < W; w++) {
        if (w && 32 * W * u + w >= end) c[u][w] = 0;
        g[u][w] = __ldg(x + narrow_column(c[u][w], head));
      }
#pragma unroll
    for (int u = 0; u < LOADS; u++) {
      const int k = W * (32 * u + lane);

      if constexpr (W == 1) product[k] = X(v[u][0]) * g[u][0];
      else ((typename pair_of<X>::type *)product)[k / 2] = {X(v[u][0]) * g[u][0], X(v[u][1]) * g[u][1]};
    }
    __syncwarp();
    const int to = min(ROUND, stop - first);
#pragma unroll 4
    for (int k = max(0, stop - length - first); k < to; k++) sum += product[k];
    __syncwarp();
  }
  return sum;
}

template <int W, class V, class X, class E>
__global__ void __launch_bounds__(BLOCK, MOST) narrow_warp_kernel(int slices, int offset, int first, int last, const int *__restrict__ heads, const unsigned char *__restrict__ lengths, const unsigned short *__restrict__ col, const int *__restrict__ wide, const V *__restrict__ val, const X *__restrict__ x, const E ending)
{
  after_previous();
  __shared__ __align__(16) X products[WARPS][ROUND];
  const int                  warp = (int)threadIdx.x / GPUCSR_SLICE, lane = (int)threadIdx.x % GPUCSR_SLICE, mine = (int)blockIdx.x * WARPS + warp, s = offset + mine, r = s * GPUCSR_SLICE + lane;

  typename E::Tally tally;

  if (mine < slices) { /* the whole warp */
    const int length = lengths[r], head = heads[NARROW_WORDS * (int64_t)s + lane % NARROW_WORDS], n = warp_sum(length);
    const int begin = __shfl_sync(0xffffffffu, head, 0), one = __shfl_sync(0xffffffffu, head, 1), two = __shfl_sync(0xffffffffu, head, 2);
    X         sum;

    if (one == NARROW_WIDE_SLICE) sum = narrow_sum<1>(n, 0, length, head, wide + two, val + begin, x, products[warp]);
    else sum = narrow_sum<W>(n, begin % W, length, head, col + begin / W * W, val + begin / W * W, x, products[warp]);
    if (r >= first && r < last) store(ending, r, sum, tally);
  }
  finish(ending, tally);
}

static GPUCSRError Launch_narrow_warp(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int offset = p->first / GPUCSR_SLICE, slices = NarrowSlices(p->last) - offset;

#define LAUNCHW(W, V, X) \
  case W: \
    GPUCSREnding<X>(p, GPUCSRBlocks(slices, WARPS), [&](auto ending) { \
      launch_after(narrow_warp_kernel<W, V, X, decltype(ending)>, GPUCSRBlocks(slices, WARPS), BLOCK, 0, s, slices, offset, p->first, p->last, (const int *)A->array[NARROW_HEAD].data, (const unsigned char *)A->array[NARROW_LENGTH].data, \
                   (const unsigned short *)A->array[NARROW_COL].data, (const int *)A->array[NARROW_WIDE].data, (const V *)A->array[NARROW_VAL].data, (const X *)p->x, ending); \
    }); \
    break
#define LAUNCH(V, X) \
  switch (variant) { \
    LAUNCHW(1, V, X); \
    LAUNCHW(2, V, X); \
  }
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("narrow_warp");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_narrow_warp) = {true, NULL, Launch_narrow_warp, 0, true};

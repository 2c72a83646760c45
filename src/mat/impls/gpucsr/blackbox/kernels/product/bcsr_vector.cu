/*
  y = A x, blocked CSR, T threads for a block row: 2 to 32 of a warp (bcsr_vector2 ... bcsr_vector32), or a thread block (bcsr_block). The 256 threads
  of a thread block have 256 / T block rows at a time, the number B_x that the literature tunes.

  A thread takes every T-th block of its block row. It loads the block's values in pieces of 16 bytes, coalesced by the format's order, one column
  number, and the block's part of x once for all rows. In an 8 by 8 block a thread takes a single row. Shuffles add the sums of a block row's threads.

  Bytes: blocked CSR's, n x once at best, m y. Wins on block rows of about equal length with one or two blocks for each thread: 16 threads for
  27 blocks, 8 for 7.

  Paper: M. Verschoor, A. C. Jalba, Analysis and performance estimation of the conjugate gradient method on multiple GPUs, Parallel Computing 2012: a
  block row a thread block, a block row a warp, several block rows a thread block.
*/
#include "bcsr.cuh"

#define BLOCK 256

/* 1 << shift threads a block row */
template <int BR, int BC, class V, class X>
__global__ void __launch_bounds__(BLOCK) bcsr_vector_kernel(int shift, int first, int last, int n, bool wide, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, X alpha, const X *__restrict__ x, X beta, const X *y, X *z)
{
  after_previous();
  constexpr int S = BCSR_LANES(BR), R = BR / S, K = R * BC;
  constexpr int U = K <= 2 ? 4 : K <= 6 ? 2 : 1; /* blocks in flight */
  const int     T = 1 << shift, t = (int)threadIdx.x & (T - 1);
  const int64_t q     = (int64_t)first / BR + (((int64_t)blockIdx.x * BLOCK + threadIdx.x) >> shift);
  const bool    mine  = q * BR < last;
  const int     row   = mine ? (int)q : 0;
  const int     begin = mine ? rowptr[row] : 0, end = mine ? rowptr[row + 1] : 0;
  const int     step = T / S, s = t % S;
  X             sum[R] = {0};

  for (int b = begin + t / S; b < end; b += U * step) {
    int c[U];
    V   v[U][K];
    X   xs[U][BC];

#pragma unroll
    for (int u = 0; u < U; u++) {
      if (b + u * step < end) {
        c[u] = streamed(col + b + u * step);
        load_lane<K>(val, (b + u * step) * S + s, v[u]);
      }
    }
#pragma unroll
    for (int u = 0; u < U; u++)
      if (b + u * step < end) load_x<BC>(x, c[u], n, wide, xs[u]);
#pragma unroll
    for (int u = 0; u < U; u++)
      if (b + u * step < end) multiply<R, BC>(v[u], xs[u], sum);
  }
  for (int o = min(T, 32) / 2; o >= S; o >>= 1)
#pragma unroll
    for (int i = 0; i < R; i++) sum[i] += __shfl_down_sync(0xffffffffu, sum[i], o);
  if (T > 32) {
    __shared__ X part[BLOCK / 32][BR];

    if (threadIdx.x % 32 < S)
#pragma unroll
      for (int i = 0; i < R; i++) part[threadIdx.x / 32][t % 32 * R + i] = sum[i];
    __syncthreads();
    if (t < S)
#pragma unroll
      for (int i = 0; i < R; i++) {
        sum[i] = 0;
        for (int w = 0; w < BLOCK / 32; w++) sum[i] += part[w][t * R + i];
      }
  }
  if (!mine || t >= S) return;
#pragma unroll
  for (int i = 0; i < R; i++) {
    const int64_t r = (int64_t)row * BR + t * R + i;

    if (r >= first && r < last) store(z, y, r, alpha, sum[i], beta);
  }
}

static GPUCSRError Launch_bcsr_vector(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int br = GPUCSR_BLOCK_ROWS(A->format->variant), bc = GPUCSR_BLOCK_COLS(A->format->variant), threads = GPUCSRMax(variant, BCSR_LANES(br));
  const int rows  = (p->last + br - 1) / br - p->first / br; /* block rows with a row of the range */
  int       shift = 0;

  while (1 << shift < threads) shift++;
#define CASE(R, C, V, X) \
  case GPUCSR_BLOCK(R, C): \
    launch_after(bcsr_vector_kernel<R, C, V, X>, GPUCSRBlocks((int64_t)rows << shift, BLOCK), BLOCK, 0, s, shift, p->first, p->last, A->n, WideX(p->x, A->n, bc), (const int *)A->array[BCSR_ROWPTR].data, (const int *)A->array[BCSR_COL].data, \
                 (const V *)A->array[BCSR_VAL].data, (X)p->alpha, (const X *)p->x, (X)p->beta, (const X *)p->y, (X *)p->z); \
    break;
#define LAUNCH(V, X) \
  switch (A->format->variant) { \
    BCSR_SQUARES(CASE, V, X) \
  }
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("bcsr_vector");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_bcsr_vector) = {true, NULL, Launch_bcsr_vector};

/*
  y = A x, hybrid blocks of 4 by 64, 4 of the 8 warps of a thread block for a block row; the variant is that number.

  A warp loads the 64 values of x of a block into shared memory, two for each thread, coalesced as a block starts at a multiple of 16. Then eight
  threads multiply each row, two entries each, so a unit is one load. The x of the next block is loaded meanwhile, and the start of the block after
  it.

  Bytes: the blocks, 64 of x for each block, m y. Loses to blocked CSR.

  Paper: M. M. Baskaran, R. Bordawekar, Optimizing sparse matrix-vector multiplication on GPUs, IBM RC24704, 2009. There a half warp has a row; here
  a quarter warp has a row, and a thread loads two entries at a time.
*/
#include "../device.cuh"
#include "../../format/papers/block4x64.h"

#define BLOCK 256
#define LANES 8 /* a row */

template <class V, class X>
__global__ void __launch_bounds__(BLOCK) block4x64_warp_kernel(int warps, int first, int last, int n, const int *__restrict__ rowptr, const int *__restrict__ start, const int *__restrict__ unit, const uchar2 *__restrict__ col, const V *__restrict__ val, X alpha, const X *__restrict__ x, X beta, const X *y, X *z)
{
  typedef typename pair_of<V>::type V2;
  __shared__ X                      xs[BLOCK / 32][BLOCK4X64_COLS], part[BLOCK / 32][BLOCK4X64_ROWS];
  const int                         warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = lane / LANES;
  const int64_t                     R     = first / BLOCK4X64_ROWS + ((int64_t)blockIdx.x * (BLOCK / 32) + warp) / warps;
  const bool                        mine  = R * BLOCK4X64_ROWS < last;
  const int                         begin = mine ? rowptr[R] : 0, end = mine ? rowptr[R + 1] : 0;
  X                                 sum = 0, x0 = 0, x1 = 0;
  int                               b = begin + warp % warps, next;

#define LOADX(s) \
  do { \
    x0 = lane < n - (s) ? __ldg(x + (s) + lane) : X(0); \
    x1 = lane + 32 < n - (s) ? __ldg(x + (s) + lane + 32) : X(0); \
  } while (0)
  if (b < end) {
    const int s = start[b];

    LOADX(s);
  }
  next = b + warps < end ? start[b + warps] : 0;
  for (; b < end; b += warps) {
    const int u0 = unit[BLOCK4X64_ROWS * b + row], u1 = unit[BLOCK4X64_ROWS * b + row + 1];
    uchar2    c[4];
    V2        v[4];

    xs[warp][lane]      = x0;
    xs[warp][lane + 32] = x1;
    __syncwarp();
#pragma unroll
    for (int u = 0; u < 4; u++) {
      if (u0 + u < u1) {
        c[u] = streamed(col + (u0 + u) * LANES + lane % LANES);
        v[u] = streamed((const V2 *)val + (u0 + u) * LANES + lane % LANES);
      }
    }
    if (b + warps < end) {
      LOADX(next);
      if (b + 2 * warps < end) next = start[b + 2 * warps];
    }
#pragma unroll
    for (int u = 0; u < 4; u++) {
      if (u0 + u < u1) {
        if (c[u].x < BLOCK4X64_COLS) sum += X(v[u].x) * xs[warp][c[u].x];
        if (c[u].y < BLOCK4X64_COLS) sum += X(v[u].y) * xs[warp][c[u].y];
      }
    }
    __syncwarp();
  }
#undef LOADX
  sum = reduce<LANES>(sum);
  if (warps > 1) {
    if (lane % LANES == 0) part[warp][row] = sum;
    __syncthreads();
    sum = 0;
    for (int w = 0; w < warps; w++) sum += part[warp / warps * warps + w][row];
  }
  if (mine && warp % warps == 0 && lane % LANES == 0) {
    const int64_t r = R * BLOCK4X64_ROWS + row;

    if (r >= first && r < last) store(z, y, r, alpha, sum, beta);
  }
}

static GPUCSRError Launch_block4x64_warp(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int rows = (p->last + BLOCK4X64_ROWS - 1) / BLOCK4X64_ROWS - p->first / BLOCK4X64_ROWS; /* block rows with a row of the range */

#define LAUNCH(V, X) \
  block4x64_warp_kernel<V, X><<<GPUCSRBlocks((int64_t)rows *variant * 32, BLOCK), BLOCK, 0, (cudaStream_t)s>>>(variant, p->first, p->last, A->n, (const int *)A->array[BLOCK4X64_ROWPTR].data, (const int *)A->array[BLOCK4X64_START].data, \
                                                                                                               (const int *)A->array[BLOCK4X64_UNIT4].data, (const uchar2 *)A->array[BLOCK4X64_COL].data, (const V *)A->array[BLOCK4X64_VAL].data, (X)p->alpha, \
                                                                                                               (const X *)p->x, (X)p->beta, (const X *)p->y, (X *)p->z)
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("block4x64_warp");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_block4x64_warp) = {true, NULL, Launch_block4x64_warp};

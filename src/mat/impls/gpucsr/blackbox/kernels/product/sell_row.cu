/*
  y = A x, sliced ELL in all its variants, 1, 2, 4 or 8 warps for a slice, so as many threads for a row.

  The 32 threads of a warp have the 32 rows of a slice and read its columns in coalesced loads, several in flight before the first is used. For few or
  long rows several warps share the columns of a slice, and add their sums in shared memory in the order of the warps: the loads stay coalesced for
  any number of threads.

  Bytes: 4 slices + (4 + v) stored, n x once at best, m y. Wins on rows of about equal length; loses by padding.

  Papers: A. Monakov et al., HiPEAC 2010, section 3; several threads a row after F. Vazquez, J. J. Fernandez, E. M. Garzon, A new approach for sparse
  matrix vector product on NVIDIA GPUs, Concurrency and Computation 2011 (ELLR-T).
*/
#include "../device.cuh"
#include "../../format/sell.h"

#define AHEAD 8   /* entries of a thread in flight */
#define MOST  256 /* threads of a block at most */

/* The column of padding is negative, so no row length is read. W: neighbours in a load, of W rows */
template <int T, int W, class V, class X, class E>
__global__ void __launch_bounds__(MOST) sell_row_kernel(int slices, int offset, int m, int first, int last, const int *__restrict__ slice, int ellwidth, const int *__restrict__ perm, const int *__restrict__ col, const V *__restrict__ val, const X *__restrict__ x, const E ending)
{
  after_previous();
  constexpr int STEPS = AHEAD / W;
  const int     lane = (int)threadIdx.x % GPUCSR_SLICE, warp = (int)threadIdx.x / GPUCSR_SLICE % T, team = (int)threadIdx.x / (GPUCSR_SLICE * T);
  const int     mine = (int)blockIdx.x * ((int)blockDim.x / (GPUCSR_SLICE * T)) + team, s = offset + mine, q = s * GPUCSR_SLICE + lane;
  int           row    = -1;
  X             sum[W] = {};

  if (mine < slices && q < m) row = perm ? perm[q] : q;
  const bool wanted = row >= first && row < last;
  if (__any_sync(0xffffffffu, wanted)) { /* the same for all warps of a slice */
    const int     begin = SELLBegin(slice, ellwidth, s), width = SELLBegin(slice, ellwidth, s + 1) - begin, column = W * lane / GPUCSR_SLICE;
    const int64_t start = (int64_t)GPUCSR_SLICE * begin + W * lane;

    for (int k = W * warp; k < width; k += W * T * STEPS) {
      int c[STEPS][W];
      V   v[STEPS][W];

#pragma unroll
      for (int u = 0; u < STEPS; u++) {
#pragma unroll
        for (int w = 0; w < W; w++) c[u][w] = -1;
        if (k + W * T * u + column < width) {
          streamed(col + start + GPUCSR_SLICE * (k + W * T * u), c[u]);
          streamed(val + start + GPUCSR_SLICE * (k + W * T * u), v[u]);
        }
      }
#pragma unroll
      for (int u = 0; u < STEPS; u++)
#pragma unroll
        for (int w = 0; w < W; w++)
          if (c[u][w] >= 0) sum[w] += X(v[u][w]) * __ldg(x + c[u][w]);
    }
  }
  const X           total = add_warps<MOST / GPUCSR_SLICE / T, T>(to_rows(sum));
  typename E::Tally tally;

  if (wanted && warp == 0) store(ending, row, total, tally);
  finish(ending, tally);
}

GPUCSR_INTERN const GPUCSRKernelFamily GPUCSRKernel_sell_row;

/* Of a block: whole slices, of T warps each */
static int Threads(int T)
{
  return GPUCSRMax(GPUCSR_SLICE * T, GPUCSRMin(MOST, GPUCSRBlockOf(&GPUCSRKernel_sell_row)));
}

static GPUCSRError Launch_sell_row(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int *perm = A->array[SELL_PERM].count ? (const int *)A->array[SELL_PERM].data : NULL, *slice = A->array[SELL_SLICE].count ? (const int *)A->array[SELL_SLICE].data : NULL;
  const int  window = perm ? A->format->variant : 1; /* windows are sorted, so a range of rows needs a range of windows */
  const int  begin = p->first / window * window / GPUCSR_SLICE, end = SELLSlices((int)GPUCSRMin(A->m, ((int64_t)p->last + window - 1) / window * window));

#define LAUNCHT(T, W, V, X) \
  case SELL_ROW(T, W): \
    GPUCSREnding<X>(p, GPUCSRBlocks(end - begin, Threads(T) / GPUCSR_SLICE / T), [&](auto ending) { \
      launch_after(sell_row_kernel<T, W, V, X, decltype(ending)>, GPUCSRBlocks(end - begin, Threads(T) / GPUCSR_SLICE / T), Threads(T), 0, s, end - begin, begin, A->m, p->first, p->last, slice, A->extent.width, perm, (const int *)A->array[SELL_COL].data, \
                   (const V *)A->array[SELL_VAL].data, (const X *)p->x, ending); \
    }); \
    break
#define LAUNCH(V, X) \
  switch (variant) { \
    LAUNCHT(1, 1, V, X); \
    LAUNCHT(2, 1, V, X); \
    LAUNCHT(4, 1, V, X); \
    LAUNCHT(8, 1, V, X); \
    LAUNCHT(1, 2, V, X); \
  }
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("sell_row");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_sell_row) = {true, NULL, Launch_sell_row, 128, true};

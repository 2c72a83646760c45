/*
  y = A x, diagonals, 1, 2 or 4 warps for a slice, so as many threads for a row; the variant is that number.

  As sell_row, but the diagonal gives an entry's column: entries of x and of A are loaded at the same time.

  Bytes: v stored, n x once at best, m y. Wins on stencils and bands; loses by the empty places on its diagonals.

  Paper: N. Bell, M. Garland, SC 2009.
*/
#include "../device.cuh"
#include "../../format/dia.h"

#define AHEAD 8 /* entries of a thread in flight */

/* W: neighbouring rows of a thread, in one load */
template <int T, int W, class V, class X, class E>
__global__ void __launch_bounds__(128) dia_row_kernel(int slices, int offset, int m, int n, int first, int last, int diagonals, const int *__restrict__ diagonal, const V *__restrict__ val, const X *__restrict__ x, const E ending)
{
  after_previous();
  constexpr int TEAMS = 4 / T, STEPS = AHEAD / W;
  const int     lane = (int)threadIdx.x % GPUCSR_SLICE, warp = (int)threadIdx.x / GPUCSR_SLICE % T, team = (int)threadIdx.x / (GPUCSR_SLICE * T);
  const int     mine = (int)blockIdx.x * TEAMS + team, s = offset + mine, row = s * GPUCSR_SLICE + lane, own = s * GPUCSR_SLICE + W * lane % GPUCSR_SLICE;
  const bool    wanted = mine < slices && row >= first && row < last;
  X             sum[W] = {};

  if (mine < slices) {
    const int     column = W * lane / GPUCSR_SLICE;
    const int64_t start  = DIAEntry(diagonals, s * GPUCSR_SLICE, 0) + W * lane;

    for (int k = W * warp; k < diagonals; k += W * T * STEPS) {
      V v[STEPS][W];
      X xc[STEPS][W];

#pragma unroll
      for (int u = 0; u < STEPS; u++) {
        const int  d  = k + W * T * u + column;
        const bool in = d < diagonals;
        const int  c  = in ? own + __ldg(diagonal + d) : 0;

#pragma unroll
        for (int w = 0; w < W; w++) {
          v[u][w]  = absent<V>();
          xc[u][w] = in && (unsigned int)(c + w) < (unsigned int)n ? __ldg(x + c + w) : X(0);
        }
        if (in) streamed(val + start + GPUCSR_SLICE * (int64_t)(k + W * T * u), v[u]);
      }
#pragma unroll
      for (int u = 0; u < STEPS; u++)
#pragma unroll
        for (int w = 0; w < W; w++)
          if (!is_absent(v[u][w])) sum[w] += X(v[u][w]) * xc[u][w];
    }
  }
  const X           total = add_warps<TEAMS, T>(to_rows(sum));
  typename E::Tally tally;

  if (wanted && warp == 0) store(ending, row, total, tally);
  finish(ending, tally);
}

#define PAIRS 4 /* pairs of diagonals of a thread in flight, two entries each */

/* In double, a thread a row: the cache still has the mirrored entries, so memory is read for one diagonal of each pair */
template <class E>
__global__ void __launch_bounds__(128) dia_pairs_kernel(int offset, int n, int first, int last, int diagonals, const GPUCSRDiagonal *__restrict__ order, const double *__restrict__ val, const double *__restrict__ x, const E ending)
{
  __shared__ GPUCSRDiagonal which[DIA_MOST_PAIRED + 1];

  after_previous();
  const int     row    = offset * GPUCSR_SLICE + (int)(blockIdx.x * 128 + threadIdx.x);
  const bool    wanted = row >= first && row < last;
  const double *own    = val + DIAEntry(diagonals, wanted ? row : 0, 0);
  double        sum    = 0;

  for (int d = (int)threadIdx.x; d <= diagonals; d += 128) which[d] = order[d];
  __syncthreads();
  const int count = which[diagonals].offset;

  for (int k = 0; k < count; k += PAIRS) {
    double v[PAIRS][2], xc[PAIRS][2];

#pragma unroll
    for (int u = 0; u < PAIRS; u++) {
      const bool           in = wanted && k + u < count;
      const GPUCSRDiagonal w  = which[in ? k + u : 0];
      const int            d = w.number < 0 ? -1 - w.number : w.number, right = row + w.offset, left = row - w.offset;
      const bool           both = in && w.number >= 0 && left >= 0;

      v[u][0]  = in ? __ldg(own + GPUCSR_SLICE * d) : absent<double>();
      xc[u][0] = in && (unsigned int)right < (unsigned int)n ? __ldg(x + right) : 0;
      v[u][1]  = both ? __ldg(val + DIAEntry(diagonals, left, d)) : absent<double>();
      xc[u][1] = both ? __ldg(x + left) : 0;
    }
#pragma unroll
    for (int u = 0; u < PAIRS; u++)
#pragma unroll
      for (int side = 0; side < 2; side++)
        if (!is_absent(v[u][side])) sum += v[u][side] * xc[u][side];
  }
  typename E::Tally tally;

  if (wanted) store(ending, row, sum, tally);
  finish(ending, tally);
}

static GPUCSRError Launch_dia_row(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int begin = p->first / GPUCSR_SLICE, slices = (p->last - 1) / GPUCSR_SLICE + 1 - begin;

#define LAUNCHT(T, W, V, X) \
  case T: \
    GPUCSREnding<X>(p, GPUCSRBlocks(slices, 4 / T), [&](auto ending) { \
      launch_after(dia_row_kernel<T, W, V, X, decltype(ending)>, GPUCSRBlocks(slices, 4 / T), 128, 0, s, slices, begin, A->m, A->n, p->first, p->last, (int)A->extent.units, (const int *)A->array[DIA_OFFSET].data, (const V *)A->array[DIA_VAL].data, \
                   (const X *)p->x, ending); \
    }); \
    break
#define LAUNCH(V, X) \
  switch (variant) { \
    LAUNCHT(1, 1, V, X); \
    LAUNCHT(2, 2, V, X); \
    LAUNCHT(4, 2, V, X); \
  }
  if (variant == 1 && DIAPairs(A)) {
    GPUCSREnding<double>(p, GPUCSRBlocks(slices, 4), [&](auto ending) {
      launch_after(dia_pairs_kernel<decltype(ending)>, GPUCSRBlocks(slices, 4), 128, 0, s, begin, A->n, p->first, p->last, (int)A->extent.units, (const GPUCSRDiagonal *)A->array[DIA_ORDER].data, (const double *)A->array[DIA_VAL].data,
                   (const double *)p->x, ending);
    });
  } else GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("dia_row");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_dia_row) = {true, NULL, Launch_dia_row, 0, true};

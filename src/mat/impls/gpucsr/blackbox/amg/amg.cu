/*
  Steps of smoothed aggregation on a GPU. A step is a thread a row, or some where rows are long, compiled by itself; sums have a fixed order, so that a hierarchy has the same bits every time.
*/
#include "../kernels/device.cuh"
#include "rows.h"

#define THREADS 256

template <GPUAMGStep S>
__global__ void __launch_bounds__(THREADS) rows_kernel(int n, const GPUAMGWork w)
{
  const int i = (int)(blockIdx.x * THREADS + threadIdx.x);

  if (i < n) GPUAMGRow(S, &w, i);
}

template <GPUAMGStep S>
static void Launch(int n, const GPUAMGWork *w, cudaStream_t s)
{
  rows_kernel<S><<<GPUCSRBlocks(n, THREADS), THREADS, 0, s>>>(n, *w);
}

/* G threads share a row and look at its neighbours */
template <int G, GPUAMGStep S>
__global__ void __launch_bounds__(THREADS) neighbours_kernel(int n, const GPUAMGWork w)
{
  const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const int     v = (int)(at / G), lane = (int)threadIdx.x % G;
  const bool    open = v < n && ((S == GPUAMG_SPREAD && w.fresh) || GPUAMGOpen(&w, S, v));
  uint32_t      most = open ? GPUAMGMost(&w, v, lane, G) : 0;

#pragma unroll
  for (int o = G / 2; o; o /= 2) most = max(most, __shfl_down_sync(0xffffffffu, most, o, G));
  if (v >= n || lane) return;
  if (S == GPUAMG_DECIDE && !open) w.next[v] = w.key[v];
  if (!open) return;
  if (S == GPUAMG_DECIDE) GPUAMGDecideRow(&w, v, most);
  else GPUAMGSpreadRow(&w, v, most);
}

/* Rows with at least this mean number of entries have threads of their own */
#define WIDE 12

template <GPUAMGStep S>
static void LaunchNeighbours(int n, const GPUAMGWork *w, cudaStream_t s)
{
  if (w->wide < WIDE) neighbours_kernel<1, S><<<GPUCSRBlocks(n, THREADS), THREADS, 0, s>>>(n, *w);
  else neighbours_kernel<8, S><<<GPUCSRBlocks((int64_t)n * 8, THREADS), THREADS, 0, s>>>(n, *w);
}

/* A warp an aggregate, or a row of a graph */
template <GPUAMGStep S>
__global__ void __launch_bounds__(THREADS) warps_kernel(int n, const GPUAMGWork w)
{
  const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;

  if (at / 32 >= n) return;
  if (S == GPUAMG_ORTHOGONAL) GPUAMGOrthogonalRow(&w, (int)(at / 32), (int)threadIdx.x % 32, 32);
  else GPUAMGBlocksOfRow(&w, (int)(at / 32), (int)threadIdx.x % 32, 32);
}

template <GPUAMGStep S>
static void LaunchWarps(int n, const GPUAMGWork *w, cudaStream_t s)
{
  warps_kernel<S><<<GPUCSRBlocks((int64_t)n * 32, THREADS), THREADS, 0, s>>>(n, *w);
}

static GPUCSRError Rows_CUDA(GPUCSRDevice dev, GPUAMGStep step, int n, const GPUAMGWork *w)
{
  typedef void (*Launcher)(int, const GPUAMGWork *, cudaStream_t);
  /* in the order of GPUAMGStep */
  static const Launcher launch[] = {
    Launch<GPUAMG_DIAGONAL>,
    Launch<GPUAMG_NORMS>,
    Launch<GPUAMG_COUNT>,
    Launch<GPUAMG_GRAPH>,
    Launch<GPUAMG_BEGIN>,
    LaunchNeighbours<GPUAMG_SPREAD>,
    LaunchNeighbours<GPUAMG_DECIDE>,
    Launch<GPUAMG_ROOTS>,
    Launch<GPUAMG_OWN>,
    Launch<GPUAMG_JOIN>,
    Launch<GPUAMG_BELONGS>,
    Launch<GPUAMG_MEMBERS>,
    Launch<GPUAMG_PATTERN>,
    LaunchWarps<GPUAMG_ORTHOGONAL>,
    LaunchWarps<GPUAMG_BLOCKS_OF>,
    Launch<GPUAMG_SMOOTH>,
    Launch<GPUAMG_DEAD>,
    Launch<GPUAMG_ONES>,
    Launch<GPUAMG_START>,
    Launch<GPUAMG_SIZES>,
    Launch<GPUAMG_INVERSES>,
    Launch<GPUAMG_TIMES>,
    Launch<GPUAMG_KEPT>,
    Launch<GPUAMG_FILTER>,
    Launch<GPUAMG_REACH>,
    Launch<GPUAMG_REACHED>,
    Launch<GPUAMG_ENERGY>,
    Launch<GPUAMG_FILL>,
  };

  if (!n) return 0;
  launch[step](n, w, (cudaStream_t)dev->stream);
  GPUCSRCheckLaunch("a step of smoothed aggregation");
  return 0;
}

/* ---- sums ---- */

/* Threads of a warp add up, then the first of each warp, in this order; the first thread has it */
__device__ __forceinline__ double block_sum(double v)
{
  __shared__ double part[THREADS / 32];

  __syncthreads();
  v = reduce<32>(v);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x) return 0;
  for (int k = 1; k < THREADS / 32; k++) v += part[k];
  return v;
}

/* The sum of a vector's parts, by a warp, in its first thread */
__device__ __forceinline__ double sum_of_parts(const double *part)
{
  double sum = 0;

#pragma unroll
  for (int b = (int)threadIdx.x % 32; b < GPUAMG_BLOCKS; b += 32) sum += __ldcg(part + b);
  return reduce<32>(sum);
}

__device__ __forceinline__ double inverse(double norm)
{
  return norm > 0 ? 1 / norm : 0;
}

/* w, and sums of its products with k vectors: of vector j from block b in part[j GPUAMG_BLOCKS + b] */
__global__ void __launch_bounds__(THREADS) dots_kernel(const GPUAMGArnoldi a, int k)
{
  const double scale = inverse(a.norm[k - 1]);
  double       sum[GPUAMG_STEPS];
  double      *w = a.V + (size_t)k * a.ld;

#pragma unroll
  for (int j = 0; j < GPUAMG_STEPS; j++) sum[j] = 0;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < a.n; i += (int64_t)GPUAMG_BLOCKS * THREADS) {
    const double v = (a.dinv ? a.dinv[i] * a.z[i] : a.z[i]) * scale;

    w[i] = v;
#pragma unroll
    for (int j = 0; j < GPUAMG_STEPS; j++)
      if (j < k) sum[j] += a.V[(size_t)j * a.ld + i] * v;
  }
#pragma unroll
  for (int j = 0; j < GPUAMG_STEPS; j++)
    if (j < k) {
      const double s = block_sum(sum[j]);

      if (!threadIdx.x) a.part[j * GPUAMG_BLOCKS + blockIdx.x] = s;
    }
  if (!last_block(a.done, GPUAMG_BLOCKS)) return;
  for (int j = (int)threadIdx.x / 32; j < k; j += THREADS / 32) {
    const double s = sum_of_parts(a.part + j * GPUAMG_BLOCKS);

    if (threadIdx.x % 32 == 0) a.h[j] = s * inverse(a.norm[j]);
  }
}

__global__ void __launch_bounds__(THREADS) minus_kernel(const GPUAMGArnoldi a, int k)
{
  __shared__ double f[GPUAMG_STEPS];
  double            sum = 0, *w = a.V + (size_t)k * a.ld;

  if (threadIdx.x < k) f[threadIdx.x] = a.h[threadIdx.x] * inverse(a.norm[threadIdx.x]);
  __syncthreads();
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < a.n; i += (int64_t)GPUAMG_BLOCKS * THREADS) {
    double v = w[i];

#pragma unroll
    for (int j = 0; j < GPUAMG_STEPS; j++)
      if (j < k) v -= f[j] * a.V[(size_t)j * a.ld + i];
    if (k) w[i] = v;
    sum += v * v;
  }
  sum = block_sum(sum);
  if (!threadIdx.x) a.part[blockIdx.x] = sum;
  if (!last_block(a.done, GPUAMG_BLOCKS) || threadIdx.x >= 32) return;
  sum = sqrt(sum_of_parts(a.part));
  if (threadIdx.x) return;
  a.norm[k] = sum;
  if (k) a.h[k] = sum;
}

static GPUCSRError Orthogonalize_CUDA(GPUCSRDevice dev, const GPUAMGArnoldi *a, int k)
{
  const cudaStream_t s = (cudaStream_t)dev->stream;

  if (k) dots_kernel<<<GPUAMG_BLOCKS, THREADS, 0, s>>>(*a, k);
  minus_kernel<<<GPUAMG_BLOCKS, THREADS, 0, s>>>(*a, k);
  GPUCSRCheckLaunch("an eigenvalue estimate");
  return 0;
}

GPUCSR_EXPORT(GPUAMGOps, GPUAMG_cuda) = {Rows_CUDA, Orthogonalize_CUDA, GPUAMGInvert_CUDA, GPUAMGTurn_CUDA};

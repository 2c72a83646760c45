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

/* G threads share a row whose neighbours are looked at */
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

/* From how many entries a row on it has threads of its own */
#define WIDE 12

template <GPUAMGStep S>
static void LaunchNeighbours(int n, const GPUAMGWork *w, cudaStream_t s)
{
  if (w->wide < WIDE) neighbours_kernel<1, S><<<GPUCSRBlocks(n, THREADS), THREADS, 0, s>>>(n, *w);
  else neighbours_kernel<8, S><<<GPUCSRBlocks((int64_t)n * 8, THREADS), THREADS, 0, s>>>(n, *w);
}

/* A warp an aggregate */
__global__ void __launch_bounds__(THREADS) orthogonal_kernel(int n, const GPUAMGWork w)
{
  const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x;

  if (at / 32 < n) GPUAMGOrthogonalRow(&w, (int)(at / 32), (int)threadIdx.x % 32, 32);
}

static void LaunchOrthogonal(int n, const GPUAMGWork *w, cudaStream_t s)
{
  orthogonal_kernel<<<GPUCSRBlocks((int64_t)n * 32, THREADS), THREADS, 0, s>>>(n, *w);
}

static GPUCSRError Rows_CUDA(GPUCSRDevice dev, GPUAMGStep step, int n, const GPUAMGWork *w)
{
  typedef void (*Launcher)(int, const GPUAMGWork *, cudaStream_t);
  /* in the order of GPUAMGStep */
  static const Launcher launch[] = {Launch<GPUAMG_DIAGONAL>,         Launch<GPUAMG_NORMS>, Launch<GPUAMG_COUNT>,  Launch<GPUAMG_GRAPH>, Launch<GPUAMG_BEGIN>,   LaunchNeighbours<GPUAMG_SPREAD>,
                                    LaunchNeighbours<GPUAMG_DECIDE>, Launch<GPUAMG_ROOTS>, Launch<GPUAMG_OWN>,    Launch<GPUAMG_JOIN>,  Launch<GPUAMG_BELONGS>, Launch<GPUAMG_MEMBERS>,
                                    Launch<GPUAMG_PATTERN>,          LaunchOrthogonal,     Launch<GPUAMG_SMOOTH>, Launch<GPUAMG_DEAD>,  Launch<GPUAMG_ONES>,    Launch<GPUAMG_START>};

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

/* w = dinv z, and sums of its products with k vectors: of vector j from block b in part[j GPUAMG_BLOCKS + b] */
__global__ void __launch_bounds__(THREADS) dots_kernel(int n, int k, const double *__restrict__ V, size_t ld, const double *__restrict__ z, const double *__restrict__ dinv, double *w, double *part)
{
  double sum[GPUAMG_STEPS];

#pragma unroll
  for (int j = 0; j < GPUAMG_STEPS; j++) sum[j] = 0;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (int64_t)GPUAMG_BLOCKS * THREADS) {
    const double v = dinv[i] * z[i];

    w[i] = v;
#pragma unroll
    for (int j = 0; j < GPUAMG_STEPS; j++)
      if (j < k) sum[j] += V[(size_t)j * ld + i] * v;
  }
#pragma unroll
  for (int j = 0; j < GPUAMG_STEPS; j++)
    if (j < k) {
      const double s = block_sum(sum[j]);

      if (!threadIdx.x) part[j * GPUAMG_BLOCKS + blockIdx.x] = s;
    }
}

__global__ void __launch_bounds__(THREADS) minus_kernel(int n, int k, const double *__restrict__ V, size_t ld, const double *__restrict__ h, double *w, double *part)
{
  double sum = 0;

  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (int64_t)GPUAMG_BLOCKS * THREADS) {
    double v = w[i];

#pragma unroll
    for (int j = 0; j < GPUAMG_STEPS; j++)
      if (j < k) v -= h[j] * V[(size_t)j * ld + i];
    w[i] = v;
    sum += v * v;
  }
  sum = block_sum(sum);
  if (!threadIdx.x) part[blockIdx.x] = sum;
}

/* A block a sum. root: of the sum */
__global__ void __launch_bounds__(THREADS) sums_kernel(const double *__restrict__ part, bool root, double *h)
{
  double sum = 0;

  for (int b = (int)threadIdx.x; b < GPUAMG_BLOCKS; b += THREADS) sum += part[blockIdx.x * GPUAMG_BLOCKS + b];
  sum = block_sum(sum);
  if (!threadIdx.x) h[blockIdx.x] = root ? sqrt(sum) : sum;
}

__global__ void __launch_bounds__(THREADS) over_kernel(int n, const double *__restrict__ norm, double *w)
{
  const int    i = (int)(blockIdx.x * THREADS + threadIdx.x);
  const double d = *norm;

  if (i < n && d > 0) w[i] /= d;
}

static GPUCSRError Orthogonalize_CUDA(GPUCSRDevice dev, int n, int k, const double *V, size_t ld, const double *z, const double *dinv, double *w, double *part, double *h)
{
  const cudaStream_t s = (cudaStream_t)dev->stream;

  if (z) {
    dots_kernel<<<GPUAMG_BLOCKS, THREADS, 0, s>>>(n, k, V, ld, z, dinv, w, part);
    sums_kernel<<<(unsigned int)k, THREADS, 0, s>>>(part, false, h);
  }
  minus_kernel<<<GPUAMG_BLOCKS, THREADS, 0, s>>>(n, k, V, ld, h, w, part);
  sums_kernel<<<1, THREADS, 0, s>>>(part, true, h + k);
  over_kernel<<<GPUCSRBlocks(n, THREADS), THREADS, 0, s>>>(n, h + k, w);
  GPUCSRCheckLaunch("an eigenvalue estimate");
  return 0;
}

/* ---- the inverse of the coarsest matrix ---- */

/* What pivots have for each other, behind a row and a column of D */
struct Pivots {
  double *row, *column, *first, *value; /* the largest of all pivots is the first; value: of the one at hand, 0: there is none */
  int    *at, *done;
};

static Pivots PivotsIn(int n, double *work)
{
  return {work, work + n, work + 2 * n, work + 2 * n + 1, (int *)(work + 2 * n + 2), (int *)(work + 2 * n + 2) + 1};
}

__global__ void __launch_bounds__(THREADS) scatter_dense_kernel(int n, const GPUAMGRows A, double *D, int *done)
{
  const int i = (int)(blockIdx.x * THREADS + threadIdx.x);

  if (i >= n) return;
  done[i] = 0;
  for (int k = A.i[i]; k < A.i[i + 1]; k++) D[(size_t)i * n + A.j[k]] += A.a[k];
}

/* One block: the largest entry on the diagonal of what is left, the first of as large ones, and its row and column */
__global__ void __launch_bounds__(THREADS) pivot_kernel(int n, int step, const double *__restrict__ D, Pivots p)
{
  __shared__ double size[THREADS];
  __shared__ int    place[THREADS];
  double            most = -1;
  int               best = -1;

  for (int i = (int)threadIdx.x; i < n; i += THREADS) {
    const double d = fabs(D[(size_t)i * n + i]);

    if (!p.done[i] && (best < 0 || d > most)) {
      best = i;
      most = d;
    }
  }
  size[threadIdx.x]  = most;
  place[threadIdx.x] = best;
  __syncthreads();
  for (int o = THREADS / 2; o; o /= 2) {
    if ((int)threadIdx.x < o) {
      const double d = size[threadIdx.x + o];
      const int    q = place[threadIdx.x + o];

      if (q >= 0 && (place[threadIdx.x] < 0 || d > size[threadIdx.x] || (d == size[threadIdx.x] && q < place[threadIdx.x]))) {
        size[threadIdx.x]  = d;
        place[threadIdx.x] = q;
      }
    }
    __syncthreads();
  }
  const int  k     = place[0];
  const bool ended = step ? *p.value == 0 : false;

  if (!step && !threadIdx.x) *p.first = size[0];
  __syncthreads();
  if (k < 0 || ended || size[0] <= 1e-13 * *p.first) {
    if (!threadIdx.x) *p.value = 0;
    return;
  }
  const double d = D[(size_t)k * n + k];

  for (int j = (int)threadIdx.x; j < n; j += THREADS) {
    p.row[j]    = D[(size_t)k * n + j] / d;
    p.column[j] = D[(size_t)j * n + k];
  }
  __syncthreads();
  if (threadIdx.x) return;
  *p.value  = d;
  *p.at     = k;
  p.done[k] = 1;
}

__global__ void __launch_bounds__(THREADS) sweep_kernel(int n, double *D, Pivots p)
{
  const int64_t q = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const double  d = *p.value;

  if (q >= (int64_t)n * n || d == 0) return;
  const int i = (int)(q / n), j = (int)(q % n), k = *p.at;

  if (i == k) D[q] = j == k ? 1 / d : p.row[j];
  else D[q] = j == k ? -p.column[i] / d : D[q] - p.column[i] * p.row[j];
}

__global__ void __launch_bounds__(THREADS) left_kernel(int n, double *D, const int *__restrict__ done)
{
  const int64_t q = (int64_t)blockIdx.x * THREADS + threadIdx.x;

  if (q < (int64_t)n * n && (!done[q / n] || !done[q % n])) D[q] = 0;
}

static GPUCSRError Invert_CUDA(GPUCSRDevice dev, const GPUAMGRows *A, double *D, double *work)
{
  const cudaStream_t s      = (cudaStream_t)dev->stream;
  const int          n      = A->m;
  const unsigned int blocks = GPUCSRBlocks((int64_t)n * n, THREADS);
  const Pivots       p      = PivotsIn(n, work);

  if (!n) return 0;
  GPUCSRCall(dev->ops->zero(dev->id, D, sizeof(double) * (size_t)n * (size_t)n, dev->stream));
  scatter_dense_kernel<<<GPUCSRBlocks(n, THREADS), THREADS, 0, s>>>(n, *A, D, p.done);
  for (int step = 0; step < n; step++) {
    pivot_kernel<<<1, THREADS, 0, s>>>(n, step, D, p);
    sweep_kernel<<<blocks, THREADS, 0, s>>>(n, D, p);
  }
  left_kernel<<<blocks, THREADS, 0, s>>>(n, D, p.done);
  GPUCSRCheckLaunch("the inverse of a coarse operator");
  return 0;
}

__global__ void __launch_bounds__(THREADS) transpose_dense_kernel(int n, double *D)
{
  const int64_t q = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const int64_t i = q / n, j = q % n;

  if (i >= n || j >= i) return;
  const double d = D[q];

  D[q]         = D[j * n + i];
  D[j * n + i] = d;
}

static GPUCSRError Transpose_CUDA(GPUCSRDevice dev, int n, double *D)
{
  if (!n) return 0;
  transpose_dense_kernel<<<GPUCSRBlocks((int64_t)n * n, THREADS), THREADS, 0, (cudaStream_t)dev->stream>>>(n, D);
  GPUCSRCheckLaunch("the transpose of an inverse");
  return 0;
}

GPUCSR_EXPORT(GPUAMGOps, GPUAMG_cuda) = {Rows_CUDA, Orthogonalize_CUDA, Invert_CUDA, Transpose_CUDA};

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
  static const Launcher launch[] = {Launch<GPUAMG_DIAGONAL>, Launch<GPUAMG_NORMS>, Launch<GPUAMG_COUNT>, Launch<GPUAMG_GRAPH>,   Launch<GPUAMG_BEGIN>,   LaunchNeighbours<GPUAMG_SPREAD>, LaunchNeighbours<GPUAMG_DECIDE>,
                                    Launch<GPUAMG_ROOTS>,    Launch<GPUAMG_OWN>,   Launch<GPUAMG_JOIN>,  Launch<GPUAMG_BELONGS>, Launch<GPUAMG_MEMBERS>, Launch<GPUAMG_PATTERN>,          LaunchOrthogonal,
                                    Launch<GPUAMG_SMOOTH>,   Launch<GPUAMG_DEAD>,  Launch<GPUAMG_ONES>,  Launch<GPUAMG_START>,   Launch<GPUAMG_SIZES>,   Launch<GPUAMG_INVERSES>,         Launch<GPUAMG_TIMES>,
                                    Launch<GPUAMG_KEPT>,     Launch<GPUAMG_FILTER>};

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

/* Is this block the last of all to come here? All threads of the group get the result and see writes of the group. The number is 0 again after it */
__device__ __forceinline__ bool last_block(int *done)
{
  __shared__ bool last;

  __threadfence();
  __syncthreads();
  if (!threadIdx.x) {
    last = atomicAdd(done, 1) == (int)gridDim.x - 1;
    if (last) *done = 0;
  }
  __syncthreads();
  __threadfence();
  return last;
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
  if (!last_block(a.done)) return;
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
  if (!last_block(a.done) || threadIdx.x >= 32) return;
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

/* ---- the inverse of the coarsest matrix ---- */

/*
  Gauss and Jordan's elimination in place by blocks of TILE rows. In a first launch each block of threads inverts the block on the diagonal and multiplies its part of the rows with the inverse. A second
  launch changes all other rows. Pivots come from the diagonal of the block.
*/
#define TILE GPUAMG_TILE

/* Behind each other in the memory of the call */
struct Elimination {
  double *row, *column, *diagonal; /* TILE rows of D times the inverse of their block, TILE columns of D, the diagonal at the beginning */
};

static Elimination EliminationIn(int n, double *work)
{
  return {work, work + (size_t)TILE * n, work + (size_t)2 * TILE * n};
}

__global__ void __launch_bounds__(THREADS) scatter_dense_kernel(int n, const GPUAMGRows A, double *D, double *diagonal)
{
  const int i = (int)(blockIdx.x * THREADS + threadIdx.x);

  if (i >= n) return;
  for (int k = A.i[i]; k < A.i[i + 1]; k++) D[(size_t)i * n + A.j[k]] += A.a[k];
  diagonal[i] = fabs(D[(size_t)i * n + i]);
}

/* P = its inverse. A pivot below least times its first value makes its row and column zero. The first warp chooses pivots */
__device__ void invert_tile(int m, double (*P)[TILE + 1], const double *was, double least)
{
  __shared__ double row[TILE], column[TILE], pivot;
  __shared__ int    at;
  const int         lane = (int)threadIdx.x;
  bool              left = lane < m;

  for (int step = 0; step < m; step++) {
    if (lane < 32) {
      double share = left ? GPUAMGShare(P[lane][lane], was[lane]) : -1;
      int    place = lane;

#pragma unroll
      for (int o = 16; o; o /= 2) {
        const double other = __shfl_xor_sync(0xffffffffu, share, o);
        const int    from  = __shfl_xor_sync(0xffffffffu, place, o);

        if (other > share || (other == share && from < place)) {
          share = other;
          place = from;
        }
      }
      if (lane == place) left = false;
      if (lane == 0) at = place;
      if (lane == 0) pivot = share > least ? P[place][place] : 0;
    }
    __syncthreads();
    const int    k = at;
    const double d = pivot;

    if (lane < m) {
      row[lane]    = d == 0 ? 0 : P[k][lane] / d;
      column[lane] = d == 0 ? 0 : P[lane][k];
    }
    __syncthreads();
    for (int q = lane; q < m * TILE; q += THREADS) {
      const int i = q / TILE, j = q % TILE;

      if (j >= m) continue;
      if (i == k) P[i][j] = d == 0 ? 0 : j == k ? 1 / d : row[j];
      else P[i][j] = j == k ? (d == 0 ? 0 : -column[i] / d) : P[i][j] - column[i] * row[j];
    }
    __syncthreads();
  }
}

/* Block b: columns from b TILE on of the rows of block k, and rows from there on of its columns, which are kept as they are */
__global__ void __launch_bounds__(THREADS) rows_of_block_kernel(int n, int k, double least, const double *__restrict__ D, Elimination e)
{
  __shared__ double P[TILE][TILE + 1], R[TILE][TILE + 1], was[TILE];
  const int         first = k * TILE, m = min(TILE, n - first), begin = (int)blockIdx.x * TILE, l = min(TILE, n - begin);

  for (int q = (int)threadIdx.x; q < TILE * TILE; q += THREADS) {
    const int i = q / TILE, j = q % TILE;

    P[i][j] = i < m && j < m ? D[(size_t)(first + i) * n + first + j] : 0;
    R[i][j] = i < m && j < l ? D[(size_t)(first + i) * n + begin + j] : 0;
    if (i < l) e.column[(size_t)(begin + i) * TILE + j] = j < m ? D[(size_t)(begin + i) * n + first + j] : 0;
  }
  if (threadIdx.x < m) was[threadIdx.x] = e.diagonal[first + threadIdx.x];
  __syncthreads();
  invert_tile(m, P, was, least);
  for (int q = (int)threadIdx.x; q < m * TILE; q += THREADS) {
    const int i = q / TILE, j = q % TILE;
    double    sum = 0;

    if (j >= l) continue;
    if ((int)blockIdx.x == k) sum = P[i][j];
    else
      for (int p = 0; p < m; p++) sum += P[i][p] * R[p][j];
    e.row[(size_t)i * n + begin + j] = sum;
  }
}

/* A block of threads a block of D */
__global__ void __launch_bounds__(THREADS) eliminate_kernel(int n, int k, double *D, Elimination e)
{
  __shared__ double C[TILE][TILE + 1], R[TILE][TILE + 1];
  const int         m = min(TILE, n - k * TILE), row = (int)blockIdx.y * TILE, begin = (int)blockIdx.x * TILE;

  for (int q = (int)threadIdx.x; q < TILE * TILE; q += THREADS) {
    const int i = q / TILE, j = q % TILE;

    C[i][j] = row + i < n ? e.column[(size_t)(row + i) * TILE + j] : 0;
    R[i][j] = i < m && begin + j < n ? e.row[(size_t)i * n + begin + j] : 0;
  }
  __syncthreads();
  for (int q = (int)threadIdx.x; q < TILE * TILE; q += THREADS) {
    const int i = q / TILE, j = q % TILE;
    double    sum = 0;

    if (row + i >= n || begin + j >= n) continue;
    double *const d = D + (size_t)(row + i) * n + begin + j;

    if ((int)blockIdx.y == k) {
      *d = R[i][j];
      continue;
    }
#pragma unroll 8
    for (int p = 0; p < m; p++) sum += C[i][p] * R[p][j];
    *d = ((int)blockIdx.x == k ? 0 : *d) - sum;
  }
}

static GPUCSRError Invert_CUDA(GPUCSRDevice dev, const GPUAMGRows *A, double *D, double *work)
{
  const cudaStream_t s     = (cudaStream_t)dev->stream;
  const int          n     = A->m;
  const unsigned int tiles = (unsigned int)((n + TILE - 1) / TILE);
  const Elimination  e     = EliminationIn(n, work);

  if (!n) return 0;
  GPUCSRCall(dev->ops->zero(dev->id, D, sizeof(double) * (size_t)n * (size_t)n, dev->stream));
  scatter_dense_kernel<<<GPUCSRBlocks(n, THREADS), THREADS, 0, s>>>(n, *A, D, e.diagonal);
  for (int k = 0; k < (int)tiles; k++) {
    rows_of_block_kernel<<<tiles, THREADS, 0, s>>>(n, k, GPUAMG_LEAST(n), D, e);
    eliminate_kernel<<<dim3(tiles, tiles), THREADS, 0, s>>>(n, k, D, e);
  }
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

/*
  The inverse of the coarsest matrix on a GPU: Gauss and Jordan's elimination by blocks of TILE rows. Pivots come from the diagonal of a block.

  A launch eliminates block k: each block of threads changes a tile of the matrix. Meanwhile further blocks of threads prepare the next launch: each computes its own copy of the new tiles of rows and
  columns k + 1, inverts the diagonal tile, and multiplies the rows with the inverse. Otherwise the pivots, which come one after the other, would take longer than all else. The matrix alternates between two places.
*/
#include "../kernels/device.cuh"
#include "rows.h"

#define THREADS 256
#define TILE    GPUAMG_TILE
#define WARPS   (THREADS / 32)
#define EACH    (TILE / WARPS) /* of a tile a thread has so many entries: of its lane's column, in the rows of its warp and of each WARPS rows below */

#define FOR_EACH(r, i) for (int r = 0, i = (int)threadIdx.x / 32; r < EACH; r++, i += WARPS)

typedef double Tile[TILE][TILE + 1];

/* Behind each other in the memory of the call */
struct Elimination {
  double *row, *column, *nextrow, *nextcolumn; /* TILE rows of the matrix times the inverse of their block, and TILE columns; of the next step */
  double *diagonal;                            /* at the beginning */
  double *from, *to;                           /* the matrix before a step, and after it */
};

static Elimination EliminationIn(int n, double *work)
{
  const size_t part = (size_t)TILE * n;

  return {work, work + part, work + 2 * part, work + 3 * part, work + 4 * part, NULL, NULL};
}

__global__ void __launch_bounds__(THREADS) scatter_dense_kernel(int n, const GPUAMGRows A, const double *scale, double *D, double *diagonal)
{
  const int i = (int)(blockIdx.x * THREADS + threadIdx.x);

  if (i >= n) return;
  for (int k = A.i[i]; k < A.i[i + 1]; k++) D[(size_t)i * n + A.j[k]] += A.a[k];
  diagonal[i] = fmax(fabs(D[(size_t)i * n + i]), scale ? scale[i] : 0);
}

/* ---- tiles ---- */

/* A tile of rows x columns at most, of so many entries a row; zero elsewhere */
__device__ __forceinline__ void load(const double *from, size_t ld, int rows, int columns, double (&v)[EACH])
{
  const int j = (int)threadIdx.x % 32;

#pragma unroll
  FOR_EACH(r, i) v[r] = i < rows && j < columns ? from[(size_t)i * ld + j] : 0;
}

__device__ __forceinline__ void store(const double (&v)[EACH], double *to, size_t ld, int rows, int columns)
{
  const int j = (int)threadIdx.x % 32;

#pragma unroll
  FOR_EACH(r, i)
  if (i < rows && j < columns) to[(size_t)i * ld + j] = v[r];
}

__device__ __forceinline__ void share(const double (&v)[EACH], Tile S)
{
#pragma unroll
  FOR_EACH(r, i) S[i][threadIdx.x % 32] = v[r];
}

/* v += f A B */
__device__ __forceinline__ void multiply(double f, const Tile A, const Tile B, double (&v)[EACH])
{
  double sum[EACH] = {0};

#pragma unroll 8
  for (int p = 0; p < TILE; p++) {
    const double b = B[p][threadIdx.x % 32];

#pragma unroll
    FOR_EACH(r, i) sum[r] += A[i][p] * b;
  }
#pragma unroll
  for (int r = 0; r < EACH; r++) v[r] += f * sum[r];
}

/* The lane with the largest share among the lanes left; of equal shares (in float) the first. Shares are at least 0 */
__device__ __forceinline__ int best(bool left, double share)
{
  unsigned int key = left ? (__float_as_uint((float)share) & ~31u) | (31u - threadIdx.x % 32) : 0;

#if __CUDA_ARCH__ >= 800
  key = __reduce_max_sync(0xffffffffu, key);
#else
  #pragma unroll
  for (int o = 16; o; o /= 2) key = max(key, __shfl_xor_sync(0xffffffffu, key, o));
#endif
  return 31 - (int)(key & 31);
}

/* The inverse of a tile of m rows in place. A pivot below least times its first value makes its row and column zero */
__device__ void invert_tile(int m, const double *was, double least, double (&v)[EACH])
{
  __shared__ double diagonal[TILE], row[TILE], column[TILE];
  const int         lane  = (int)threadIdx.x % 32;
  const double      first = lane < m ? was[lane] : 0, scale = first > 0 ? 1 / first : 0;
  bool              left = lane < m;

#pragma unroll
  FOR_EACH(r, i)
  if (i == lane) diagonal[i] = v[r];
  __syncthreads();
  for (int step = 0; step < m; step++) {
    const double d = diagonal[lane], s = first > 0 ? fabs(d) * scale : d != 0;
    const int    k     = best(left, s);
    const bool   taken = __shfl_sync(0xffffffffu, s, k) > least;
    const double pivot = __shfl_sync(0xffffffffu, d, k), inverse = taken ? 1 / pivot : 0;

    if (lane == k) left = false;
#pragma unroll
    FOR_EACH(r, i)
    {
      if (i == k) row[lane] = v[r];
      if (lane == k) column[i] = v[r];
    }
    __syncthreads();
    const double a = !taken ? 0 : lane == k ? inverse : row[lane] * inverse;
#pragma unroll
    FOR_EACH(r, i)
    {
      if (i == k) v[r] = a;
      else v[r] = (lane == k ? 0 : v[r]) - (taken ? column[i] * a : 0);
      if (i == lane) diagonal[i] = v[r];
    }
    __syncthreads();
  }
}

/* ---- steps ---- */

/* After step k (-1: before the first): the part of rows and columns of block k + 1 that tile b has */
__device__ void look_ahead(int n, int k, int b, double least, const Elimination &e, Tile S[4])
{
  const int    q = k + 1, at = q * TILE, m = min(TILE, n - at), begin = b * TILE, l = min(TILE, n - begin);
  const size_t N = (size_t)n;
  double       middle[EACH], right[EACH], below[EACH], v[EACH];

  load(e.from + at * N + at, N, m, m, middle);
  load(e.from + at * N + begin, N, m, b == k ? 0 : l, right);
  load(e.from + begin * N + at, N, b == k ? 0 : l, m, below);
  if (k >= 0) {
    load(e.column + (size_t)at * TILE, TILE, m, TILE, v);
    share(v, S[0]);
    load(e.row + at, N, TILE, m, v);
    share(v, S[1]);
    load(e.row + begin, N, TILE, l, v);
    share(v, S[2]);
    load(e.column + (size_t)begin * TILE, TILE, l, TILE, v);
    share(v, S[3]);
    __syncthreads();
    multiply(-1, S[0], S[1], middle);
    multiply(-1, S[0], S[2], right);
    if (b == k) {
#pragma unroll
      FOR_EACH(r, i) below[r] = S[1][i][threadIdx.x % 32];
    } else multiply(-1, S[3], S[1], below);
    __syncthreads();
  }
  store(below, e.nextcolumn + (size_t)begin * TILE, TILE, l, TILE);
  share(right, S[2]);
  invert_tile(m, e.diagonal + at, least, middle);
  share(middle, S[0]);
  __syncthreads();
#pragma unroll
  for (int r = 0; r < EACH; r++) v[r] = 0;
  if (b != q) multiply(1, S[0], S[2], v);
#pragma unroll
  for (int r = 0; r < EACH; r++) v[r] += b == q ? middle[r] : 0; /* of arrays, a choice would take them out of registers */
  store(v, e.nextrow + begin, N, TILE, l);
}

/* Step k for the tile of block rows and columns i and j */
__device__ void eliminate(int n, int k, int i, int j, const Elimination &e, Tile S[2])
{
  const int    row = i * TILE, begin = j * TILE, m = min(TILE, n - row), l = min(TILE, n - begin);
  const size_t N = (size_t)n;
  double       d[EACH], v[EACH];

  load(e.row + begin, N, i == k ? m : TILE, l, v);
  if (i == k) {
    store(v, e.to + row * N + begin, N, m, l);
    return;
  }
  share(v, S[1]);
  load(e.column + (size_t)row * TILE, TILE, m, TILE, v);
  share(v, S[0]);
  load(e.from + row * N + begin, N, m, j == k ? 0 : l, d);
  __syncthreads();
  multiply(-1, S[0], S[1], d);
  store(d, e.to + row * N + begin, N, m, l);
}

/* Blocks of threads of y = 0 look ahead, if there is a next step: they take longest, and begin first. The others eliminate */
__global__ void __launch_bounds__(THREADS) step_kernel(int n, int k, int more, double least, Elimination e)
{
  __shared__ Tile S[4];

  if ((int)blockIdx.y < more) look_ahead(n, k, (int)blockIdx.x, least, e, S);
  else eliminate(n, k, (int)blockIdx.y - more, (int)blockIdx.x, e, S);
}

/* The data of the next step become this step's */
static void Turn(Elimination *e, bool matrix)
{
  const Elimination old = *e;

  e->row        = old.nextrow;
  e->column     = old.nextcolumn;
  e->nextrow    = old.row;
  e->nextcolumn = old.column;
  if (!matrix) return;
  e->from = old.to;
  e->to   = old.from;
}

GPUCSRError GPUAMGInvert_CUDA(GPUCSRDevice dev, const GPUAMGRows *A, const double *scale, double *D, double *work)
{
  const cudaStream_t s = (cudaStream_t)dev->stream;
  const int          n = A->m, tiles = (n + TILE - 1) / TILE;
  Elimination        e     = EliminationIn(n, work);
  double *const      other = e.diagonal + n;

  if (!n) return 0;
  e.from = tiles % 2 ? other : D; /* after so many steps it is D */
  e.to   = tiles % 2 ? D : other;
  GPUCSRCall(dev->ops->zero(dev->id, e.from, sizeof(double) * (size_t)n * (size_t)n, dev->stream));
  scatter_dense_kernel<<<GPUCSRBlocks(n, THREADS), THREADS, 0, s>>>(n, *A, scale, e.from, e.diagonal);
  step_kernel<<<dim3((unsigned int)tiles, 1), THREADS, 0, s>>>(n, -1, 1, GPUAMG_LEAST(n), e);
  for (int k = 0; k < tiles; k++) {
    const int more = k + 1 < tiles;

    Turn(&e, k > 0);
    step_kernel<<<dim3((unsigned int)tiles, (unsigned int)(tiles + more)), THREADS, 0, s>>>(n, k, more, GPUAMG_LEAST(n), e);
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

GPUCSRError GPUAMGTurn_CUDA(GPUCSRDevice dev, int n, double *D)
{
  if (!n) return 0;
  transpose_dense_kernel<<<GPUCSRBlocks((int64_t)n * n, THREADS), THREADS, 0, (cudaStream_t)dev->stream>>>(n, D);
  GPUCSRCheckLaunch("the transpose of an inverse");
  return 0;
}

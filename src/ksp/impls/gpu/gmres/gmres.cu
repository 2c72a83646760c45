/*
  The passes of GMRES (gmres.h) as kernels. A thread takes two rows at a time, for loads of 16 bytes, and keeps loads of 8 columns or more in flight. Sums have two stages of fixed order: the last
  block to finish does the second stage and applies the rule. The update runs backwards through the rows, since the cache still holds the last rows of project.

  Bytes a row of iteration k: 8 (k + 1) and 8 to project, 8 (k + 1) and 24 to update (and 8 for a diagonal in each).
*/
#include "../../../../mat/impls/gpucsr/blackbox/kernels/device.cuh"
#include "gmres.h"

#define THREADS 256
#define WARPS   (THREADS / 32)
#define GROUP   32 /* columns in one pass over w: their sums are in registers */
#define AHEAD   8  /* least number of columns whose loads are in flight together */

__device__ __forceinline__ double2 pair(const double *v, int i)
{
  return __ldg((const double2 *)v + i);
}

/* u times entries 2 i and 2 i + 1 of a diagonal; NULL: 1 */
__device__ __forceinline__ void scale(double2 &u, const double *diagonal, int i)
{
  if (!diagonal) return;
  const double2 d = pair(diagonal, i);

  u.x *= d.x;
  u.y *= d.y;
}

/* v[j] summed over the warp, in the lanes with numbers that end with j: 31 exchanges for 32 sums */
template <int C>
__device__ __forceinline__ double warp_sums(double (&v)[C])
{
  const int lane = (int)(threadIdx.x % 32);

#pragma unroll
  for (int level = 1; level <= 5; level++) {
    const int s = C >> level;

#pragma unroll
    for (int q = 0; q < C / 2; q++)
      if (q < s) {
        const double mine = lane & s ? v[q + s] : v[q], other = lane & s ? v[q] : v[q + s];

        v[q] = mine + __shfl_xor_sync(0xffffffffu, other, s);
      }
  }
#pragma unroll
  for (int s = C; s < 32; s *= 2) v[0] += __shfl_xor_sync(0xffffffffu, v[0], s);
  return v[0];
}

/* Sums of w times count <= C columns, by the whole block */
template <int C>
__device__ __forceinline__ void project(const GPUGMRESPass &a, const double *w, double factor, const double *columns, int count, double *partial, double (&part)[WARPS][GROUP])
{
  constexpr int  A = C < AHEAD ? C : AHEAD;
  double         acc[C];
  const unsigned pairs = (unsigned)a.n / 2, first = blockIdx.x * THREADS + threadIdx.x;

#pragma unroll
  for (int j = 0; j < C; j++) acc[j] = 0;
  for (unsigned i = first; i < pairs; i += gridDim.x * THREADS) {
    double2 u = pair(w, (int)i);

    if (!a.again) scale(u, a.left, (int)i);
    u.x *= factor;
    u.y *= factor;
#pragma unroll
    for (int j = 0; j < C; j += A) {
      double2 v[A];

#pragma unroll
      for (int q = 0; q < A; q++) v[q] = j + q < count ? pair(columns + (j + q) * a.stride, (int)i) : make_double2(0, 0);
#pragma unroll
      for (int q = 0; q < A; q++) acc[j + q] += u.x * v[q].x + u.y * v[q].y;
    }
  }
  if (a.n % 2 && first == 0) {
    const double u = GPUGMRESEntry(&a, factor, w, a.n - 1);

#pragma unroll
    for (int j = 0; j < C; j++)
      if (j < count) acc[j] += u * columns[j * a.stride + a.n - 1];
  }
  part[threadIdx.x / 32][threadIdx.x % 32] = warp_sums(acc);
  __syncthreads();
  if (threadIdx.x < count) {
    double sum = part[0][threadIdx.x];

    for (int q = 1; q < WARPS; q++) sum += part[q][threadIdx.x];
    partial[(size_t)threadIdx.x * a.most + blockIdx.x] = sum;
  }
  __syncthreads();
}

__global__ void __launch_bounds__(THREADS, 2) project_kernel(const GPUGMRESPass a)
{
  after_previous();
  __shared__ double    part[WARPS][GROUP];
  GPUGMRESState *const s      = a.state;
  const int            k      = s->k;
  const double        *w      = a.again ? a.basis + (k + 1) * a.stride : a.w;
  const double         factor = a.again || a.scaled ? 1 : GPUGMRESInverse(s)[k];

  if (a.again && !s->again) return;
  for (int j = 0; j <= k; j += GROUP) {
    const double *columns = a.basis + j * a.stride;
    const int     count   = min(GROUP, k + 1 - j);
    double       *partial = a.partial + (size_t)j * a.most;

    if (count <= 4) project<4>(a, w, factor, columns, count, partial, part);
    else if (count <= 8) project<8>(a, w, factor, columns, count, partial, part);
    else if (count <= 16) project<16>(a, w, factor, columns, count, partial, part);
    else project<GROUP>(a, w, factor, columns, count, partial, part);
  }
  if (!last_block(a.ended, gridDim.x)) return;
  for (int j = (int)(threadIdx.x / 32); j <= k; j += WARPS) {
    double sum = 0;

    for (int b = (int)(threadIdx.x % 32); b < (int)gridDim.x; b += 32) sum += __ldcg(a.partial + (size_t)j * a.most + b);
    sum = reduce<32>(sum);
    if (threadIdx.x % 32) continue;
    if (a.seen) GPUGMRESProjected(s, j, sum, a.again);
    else a.sums[j] = sum;
  }
}

/* u minus its components along the columns, rows 2 i and 2 i + 1 */
__device__ __forceinline__ void subtract(const double *vectors, size_t stride, int count, const double *coefficients, int i, double2 &u)
{
  for (int j = 0; j < count; j += AHEAD) {
    double2 v[AHEAD];

#pragma unroll
    for (int q = 0; q < AHEAD; q++) v[q] = j + q < count ? pair(vectors + (j + q) * stride, i) : make_double2(0, 0);
#pragma unroll
    for (int q = 0; q < AHEAD; q++)
      if (j + q < count) {
        const double c = coefficients[j + q];

        u.x -= c * v[q].x;
        u.y -= c * v[q].y;
      }
  }
}

__global__ void __launch_bounds__(THREADS, 4) update_kernel(const GPUGMRESPass a)
{
  after_previous();
  __shared__ double    part[WARPS];
  GPUGMRESState *const s            = a.state;
  const int            k            = a.first ? -1 : s->k;
  const double        *coefficients = GPUGMRESCoefficients(s);
  double *const        next         = a.basis + (k + 1) * a.stride;
  const double        *w            = a.again ? next : a.w;
  const double         factor       = a.first || a.again || a.scaled ? 1 : GPUGMRESInverse(s)[k];
  const unsigned       pairs = (unsigned)a.n / 2, first = blockIdx.x * THREADS + threadIdx.x;
  double               sum = 0;

  if (a.again && !s->again) return;
  for (unsigned i = first; i < pairs; i += gridDim.x * THREADS) {
    const int at = (int)(pairs - 1 - i);
    double2   u  = ((const double2 *)w)[at];

    if (!a.again) scale(u, a.left, at);
    u.x *= factor;
    u.y *= factor;
    subtract(a.basis, a.stride, k + 1, coefficients, at, u);
    ((double2 *)next)[at] = u;
    sum += u.x * u.x + u.y * u.y;
    if (!a.direction) continue;
    scale(u, a.right, at);
    ((double2 *)a.direction)[at] = u;
  }
  if (a.n % 2 && first == 0) {
    const int at = a.n - 1;
    double    u  = GPUGMRESEntry(&a, factor, w, at);

    for (int j = 0; j <= k; j++) u -= coefficients[j] * a.basis[j * a.stride + at];
    next[at] = u;
    sum += u * u;
    if (a.direction) a.direction[at] = a.right ? a.right[at] * u : u;
  }
  sum = reduce<32>(sum);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int q = 1; q < WARPS; q++) sum += part[q];
    a.partial[blockIdx.x] = sum;
  }
  if (!last_block(a.ended, gridDim.x)) return;
  if (threadIdx.x < 32) {
    sum = 0;
    for (int b = (int)threadIdx.x; b < (int)gridDim.x; b += 32) sum += __ldcg(a.partial + b);
    sum = reduce<32>(sum);
    if (threadIdx.x == 0) {
      if (a.first) s->k = -1;
      if (!a.seen) a.sums[0] = sum;
      else GPUGMRESUpdated(s, sum, a.again);
    }
  }
  if (!a.seen) return;
  __syncthreads();
  if (s->k == k + 1)
    for (int j = (int)threadIdx.x; j <= k + 1; j += THREADS) a.seen[(size_t)GPUGMRESSeen(k) * (s->m + 2) + j] = GPUGMRESColumn(s)[j];
}

__global__ void __launch_bounds__(THREADS, 4) sum_kernel(const GPUGMRESSum a)
{
  after_previous();
  const unsigned pairs = (unsigned)a.n / 2, first = blockIdx.x * THREADS + threadIdx.x;

  for (unsigned i = first; i < pairs; i += gridDim.x * THREADS) {
    double2 u = make_double2(0, 0), x = make_double2(0, 0), d = make_double2(1, 1);

    subtract(a.vectors, a.stride, a.count, a.coefficients, (int)i, u);
    if (a.diagonal) d = pair(a.diagonal, (int)i);
    if (a.x) x = ((const double2 *)a.x)[i];
    ((double2 *)a.out)[i] = make_double2(x.x - d.x * u.x, x.y - d.y * u.y);
  }
  if (a.n % 2 && first == 0) {
    const int at = a.n - 1;
    double    u  = 0;

    for (int j = 0; j < a.count; j++) u += a.coefficients[j] * a.vectors[j * a.stride + at];
    a.out[at] = (a.x ? a.x[at] : 0) + (a.diagonal ? a.diagonal[at] * u : u);
  }
}

/* Upper bound of the blocks of a pass: the largest number of resident blocks over all kernels */
GPUCSRError GPUGMRESDeviceBlocks(GPUCSRDevice dev, int *blocks)
{
  *blocks = 4 * dev->props.processors;
  return 0;
}

static unsigned Blocks(int n, int most)
{
  return GPUCSRMax(1u, GPUCSRMin((unsigned)most, GPUCSRBlocks((int64_t)n / 2, THREADS)));
}

GPUCSRError GPUGMRESDeviceProject(const GPUGMRESPass *a, GPUCSRStream s)
{
  launch_after(project_kernel, Blocks(a->n, a->most / 2), THREADS, 0, s, *a);
  GPUCSRCheckLaunch("a projection of GMRES");
  return 0;
}

GPUCSRError GPUGMRESDeviceUpdate(const GPUGMRESPass *a, GPUCSRStream s)
{
  launch_after(update_kernel, Blocks(a->n, a->most), THREADS, 0, s, *a);
  GPUCSRCheckLaunch("an orthogonalization of GMRES");
  return 0;
}

GPUCSRError GPUGMRESDeviceSum(const GPUGMRESSum *a, GPUCSRStream s)
{
  launch_after(sum_kernel, Blocks(a->n, 1 << 16), THREADS, 0, s, *a);
  GPUCSRCheckLaunch("a combination of GMRES' basis");
  return 0;
}

/*
  Passes of a cycle on the device. A smoother's step is a thread a row: 8 to 48 bytes each, read from memory on large levels, since the product before has filled the caches. The coarse solve is a
  block a row of the inverse.
*/
#include "../../../../mat/impls/gpucsr/blackbox/kernels/device.cuh"
#include "pass.h"

#define THREADS     256
#define ROW_THREADS 128

__global__ void __launch_bounds__(THREADS) pass_kernel(const GPUMGPass p)
{
  after_previous();
  const int i = (int)(blockIdx.x * THREADS + threadIdx.x);

  if (i < p.n * (1 + p.more)) GPUMGPassRow(&p, i);
}

GPUCSRError GPUMGPassDevice(const GPUMGPass *p, GPUCSRStream s)
{
  if (!p->n) return 0;
  launch_after(pass_kernel, GPUCSRBlocks((int64_t)p->n * (1 + p->more), THREADS), THREADS, 0, s, *p);
  GPUCSRCheckLaunch("a step of a smoother");
  return 0;
}

/* The largest of a block's numbers, in all threads */
__device__ __forceinline__ double largest(double v)
{
  __shared__ double part[THREADS / 32];

#pragma unroll
  for (int o = 16; o; o >>= 1) v = fmax(v, __shfl_xor_sync(0xffffffffu, v, o));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
#pragma unroll
  for (int w = 0; w < THREADS / 32; w++) v = fmax(v, part[w]);
  return v;
}

__global__ void __launch_bounds__(THREADS) largest_kernel(const GPUMGEnds e)
{
  after_previous();
  double most = 0;

#pragma unroll 4
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < e.n; i += (int64_t)gridDim.x * THREADS) most = fmax(most, fabs(((const double *)e.from)[i]));
  most = largest(most);
  if (!threadIdx.x) e.work[1 + blockIdx.x] = most;
}

/* Each block finds the scale from the numbers of n blocks */
__global__ void __launch_bounds__(THREADS) first_kernel(int n, const GPUMGEnds e, const GPUMGPass p)
{
  after_previous();
  double most = 0, scale;

  for (int b = (int)threadIdx.x; b < n; b += THREADS) most = fmax(most, e.work[1 + b]);
  scale = GPUMGScale(largest(most));
  if (!blockIdx.x && !threadIdx.x) e.work[0] = scale;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < e.n; i += (int64_t)gridDim.x * THREADS) GPUMGFirstRow(&e, &p, scale, (int)i);
}

static unsigned int EndBlocks(const GPUMGEnds *e)
{
  return GPUCSRMin((unsigned int)GPUMG_ROUND_BLOCKS, GPUCSRBlocks(e->n, THREADS));
}

GPUCSRError GPUMGFirstDevice(const GPUMGEnds *e, const GPUMGPass *p, GPUCSRStream s)
{
  if (!e->n) return 0;
  launch_after(largest_kernel, EndBlocks(e), THREADS, 0, s, *e);
  launch_after(first_kernel, GPUCSRMin(4u * GPUMG_ROUND_BLOCKS, GPUCSRBlocks(e->n, THREADS)), THREADS, 0, s, (int)EndBlocks(e), *e, *p);
  GPUCSRCheckLaunch("the start of a cycle in floats");
  return 0;
}

__global__ void __launch_bounds__(THREADS) widen_kernel(const GPUMGEnds e, const Summing sums)
{
  after_previous();
  const double   back = 1 / e.work[0];
  Summing::Tally tally;

#pragma unroll 4
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < e.n; i += (int64_t)gridDim.x * THREADS) {
    const double v = ((const float *)e.from)[i] * back;

    ((double *)e.to)[i] = v;
    if (sums.q) tally.row(sums, i, v);
  }
  if (sums.q) finish(sums, tally);
}

/* p: the numbers' sums, if it has any */
GPUCSRError GPUMGWidenDevice(const GPUMGEnds *e, const GPUCSRProduct *p, GPUCSRStream s)
{
  if (!e->n) return 0;
  if (p->sums.q) *p->sums.parts = (int)EndBlocks(e);
  launch_after(widen_kernel, EndBlocks(e), THREADS, 0, s, *e, Summing(p));
  GPUCSRCheckLaunch("the end of a cycle in floats");
  return 0;
}

/* A block a row: with so few rows, all loads of a row must be in flight */
template <class X>
__global__ void __launch_bounds__(ROW_THREADS) dense_kernel(int n, const X *__restrict__ A, const X *__restrict__ x, X *__restrict__ z)
{
  after_previous();
  __shared__ X  part[ROW_THREADS / 32];
  const int64_t begin = (int64_t)blockIdx.x * n;
  X             sum   = 0;

#pragma unroll 8
  for (int j = (int)threadIdx.x; j < n; j += ROW_THREADS) sum += A[begin + j] * x[j];
  sum = reduce<32>(sum);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < ROW_THREADS / 32; w++) sum += part[w];
  z[blockIdx.x] = sum;
}

/* A thread an entry of Z: neighbouring threads have the same row of A and neighbouring columns */
template <class X>
__global__ void __launch_bounds__(THREADS) dense_columns_kernel(int n, int k, const X *__restrict__ A, const X *__restrict__ x, X *__restrict__ z)
{
  after_previous();
  const int64_t i   = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  X             sum = 0;

  if (i >= (int64_t)n * k) return;
#pragma unroll 4
  for (int j = 0; j < n; j++) sum += A[i / k * n + j] * x[(int64_t)j * k + i % k];
  z[i] = sum;
}

template <class X>
static GPUCSRError Dense(int n, int k, const X *A, const X *x, X *z, cudaStream_t s)
{
  if (k == 1) launch_after(dense_kernel<X>, (unsigned int)n, ROW_THREADS, 0, s, n, A, x, z);
  else launch_after(dense_columns_kernel<X>, GPUCSRBlocks((int64_t)n * k, THREADS), THREADS, 0, s, n, k, A, x, z);
  GPUCSRCheckLaunch("a coarse solve");
  return 0;
}

GPUCSRError GPUMGDenseDevice(GPUCSRBool floats, int n, int k, const void *A, const void *x, void *z, GPUCSRStream s)
{
  return floats ? Dense(n, k, (const float *)A, (const float *)x, (float *)z, (cudaStream_t)s) : Dense(n, k, (const double *)A, (const double *)x, (double *)z, (cudaStream_t)s);
}

/* Each block leaves its parts of a step's sums, in an order that depends on n alone */
__global__ void __launch_bounds__(THREADS) krylov_sums_kernel(const GPUMGKrylov k, int step)
{
  after_previous();
  __shared__ double part[3][THREADS / 32];
  double            sum[3] = {0, 0, 0}, all = 0;

  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < k.n; i += (int64_t)gridDim.x * THREADS) GPUMGKrylovSum(&k, step, i, sum);
#pragma unroll
  for (int q = 0; q < 3; q++) {
    const double s = reduce<32>(sum[q]);

    if (threadIdx.x % 32 == 0) part[q][threadIdx.x / 32] = s;
  }
  __syncthreads();
  if ((int)threadIdx.x >= 2 + step) return;
  for (int w = 0; w < THREADS / 32; w++) all += part[threadIdx.x][w];
  k.part[(2 * step + (int)threadIdx.x) * GPUMG_KRYLOV_PARTS + (int)blockIdx.x] = all;
}

/* Each block adds up all parts, a warp a sum: a further launch for the factors would take longer */
__global__ void __launch_bounds__(THREADS) krylov_rows_kernel(const GPUMGKrylov k, int step)
{
  after_previous();
  __shared__ double sum[GPUMG_KRYLOV_SUMS];
  const int         warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
  double            all = 0, f[2];

  static_assert(GPUMG_KRYLOV_SUMS <= THREADS / 32, "a warp a sum");
  if (warp < 2 + 3 * step) {
    for (int b = lane; b < (int)gridDim.x; b += 32) all += k.part[warp * GPUMG_KRYLOV_PARTS + b];
    all = reduce<32>(all);
    if (!lane) sum[warp] = all;
  }
  __syncthreads();
  GPUMGKrylovFactors(sum, step, f);
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < k.n; i += (int64_t)gridDim.x * THREADS) GPUMGKrylovRow(&k, step, f, i);
}

static unsigned KrylovBlocks(const GPUMGKrylov *k)
{
  return GPUCSRMin((unsigned)GPUMG_KRYLOV_PARTS, GPUCSRBlocks(k->n, THREADS));
}

GPUCSRError GPUMGKrylovSumsDevice(const GPUMGKrylov *k, int step, GPUCSRStream s)
{
  if (k->n) launch_after(krylov_sums_kernel, KrylovBlocks(k), THREADS, 0, s, *k, step);
  GPUCSRCheckLaunch("sums of a K-cycle");
  return 0;
}

GPUCSRError GPUMGKrylovRowsDevice(const GPUMGKrylov *k, int step, GPUCSRStream s)
{
  if (k->n) launch_after(krylov_rows_kernel, KrylovBlocks(k), THREADS, 0, s, *k, step);
  GPUCSRCheckLaunch("a step of a K-cycle");
  return 0;
}

__global__ void __launch_bounds__(THREADS) identity_kernel(int n, double *D)
{
  const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;

  if (k < (int64_t)n * n) D[k] = k % (n + 1) == 0;
}

GPUCSRError GPUMGIdentityDevice(int n, double *D, GPUCSRStream s)
{
  if (n) identity_kernel<<<GPUCSRBlocks((int64_t)n * n, THREADS), THREADS, 0, (cudaStream_t)s>>>(n, D);
  GPUCSRCheckLaunch("an identity");
  return 0;
}

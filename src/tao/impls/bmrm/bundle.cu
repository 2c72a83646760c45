/*
  The two products with a bundle on the device, each a pass over the planes at memory bandwidth:

    dots   dot products of one vector with all columns. A block of threads takes a part of the rows and eight columns, so that the vector is read once for eight
           columns. Partial sums are added up in a fixed order, so a repeated run gives the same bits.
    step   w = sum of weight times column, over the few columns with a nonzero weight. cuBLAS' matrix-vector product would read all columns.
*/
#include "../../../mat/impls/gpucsr/blackbox/kernels/device.cuh"
#include "bundlekernels.h"

#define THREADS 256
#define GROUP   8    /* columns of a block of threads */
#define PARTS   1024 /* at most */
#define ROWS    2048 /* of a part, at least */

extern "C" int BundleParts_CUDA(int64_t n)
{
  return GPUCSRMax(1, (int)GPUCSRMin((n + ROWS - 1) / ROWS, PARTS));
}

__global__ void bundle_dots_kernel(int64_t n, int columns, const double *__restrict__ block, const double *__restrict__ g, double *parts)
{
  __shared__ double shared[GROUP][THREADS / 32];
  const int         first = (int)blockIdx.y * GROUP;
  const int64_t     rows  = (n + gridDim.x - 1) / gridDim.x;
  const int64_t     begin = blockIdx.x * rows, end = begin + rows < n ? begin + rows : n;
  double            sum[GROUP] = {0};

  for (int64_t r = begin + threadIdx.x; r < end; r += THREADS) {
    const double x = g[r];

#pragma unroll
    for (int k = 0; k < GROUP; k++)
      if (first + k < columns) sum[k] += x * streamed(block + (first + k) * n + r);
  }
#pragma unroll
  for (int k = 0; k < GROUP; k++) {
    const double s = reduce<32>(sum[k]);

    if (threadIdx.x % 32 == 0) shared[k][threadIdx.x / 32] = s;
  }
  __syncthreads();
  if (threadIdx.x < GROUP && first + (int)threadIdx.x < columns) {
    double s = 0;

    for (int k = 0; k < THREADS / 32; k++) s += shared[threadIdx.x][k];
    parts[(first + threadIdx.x) * (int64_t)gridDim.x + blockIdx.x] = s;
  }
}

/* A warp a column */
__global__ void bundle_sum_kernel(int columns, int nparts, const double *__restrict__ parts, double *dots)
{
  const int column = (int)((blockIdx.x * blockDim.x + threadIdx.x) / 32);
  double    sum    = 0;

  if (column >= columns) return;
  for (int k = (int)(threadIdx.x % 32); k < nparts; k += 32) sum += parts[(int64_t)column * nparts + k];
  sum = reduce<32>(sum);
  if (threadIdx.x % 32 == 0) dots[column] = sum;
}

// cppcheck-suppress passedByValue // arguments of a kernel go by value
__global__ void bundle_step_kernel(int64_t n, const BundleTerms terms, const double *block, bool add, double *w)
{
  const int64_t r = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  double        sum;

  if (r >= n) return;
  sum = add ? w[r] : 0;
  for (int k = 0; k < terms.count; k++) sum += terms.weight[k] * streamed(block + terms.column[k] * n + r);
  w[r] = sum;
}

/* parts: BundleParts_CUDA() numbers a column */
extern "C" GPUCSRError BundleDots_CUDA(int64_t n, int columns, const double *block, const double *g, double *parts, GPUCSRStream s)
{
  const dim3 grid((unsigned int)BundleParts_CUDA(n), (unsigned int)((columns + GROUP - 1) / GROUP));

  bundle_dots_kernel<<<grid, THREADS, 0, (cudaStream_t)s>>>(n, columns, block, g, parts);
  GPUCSRCheckLaunch("bundle_dots");
  return 0;
}

extern "C" GPUCSRError BundleSum_CUDA(int64_t n, int64_t columns, const double *parts, double *dots, GPUCSRStream s)
{
  bundle_sum_kernel<<<GPUCSRBlocks((int64_t)columns * 32, THREADS), THREADS, 0, (cudaStream_t)s>>>((int)columns, BundleParts_CUDA(n), parts, dots);
  GPUCSRCheckLaunch("bundle_sum");
  return 0;
}

/* add: add to w instead of overwriting it */
extern "C" GPUCSRError BundleStep_CUDA(int64_t n, const BundleTerms *terms, const double *block, GPUCSRBool add, double *w, GPUCSRStream s)
{
  if (!n) return 0;
  bundle_step_kernel<<<GPUCSRBlocks(n, THREADS), THREADS, 0, (cudaStream_t)s>>>(n, *terms, block, add, w);
  GPUCSRCheckLaunch("bundle_step");
  return 0;
}

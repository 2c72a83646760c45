/*
  The check of solutions on a GPU: a warp for each row, one column after the other in the second dimension of the grid. The largest numbers are found as integers, so that their order does not matter.
*/
#include "check.h"
#include "../../blackbox/kernels/device.cuh"

typedef unsigned long long Bits;

static __device__ Bits BitsOf(double v)
{
  return (Bits)__double_as_longlong(fabs(v));
}

static __global__ void check_kernel(int n, const int32_t *__restrict__ i, const int32_t *__restrict__ j, const double *__restrict__ a, DirectCheck c)
{
  __shared__ Bits all[CHECK_NUMBERS];
  const int       lane = (int)(threadIdx.x % 32), warp = (int)((blockIdx.x * blockDim.x + threadIdx.x) / 32), warps = (int)(gridDim.x * blockDim.x / 32);
  const double   *b = c.b + blockIdx.y * c.ldb, *x = c.x + blockIdx.y * c.ldx;
  double         *r                   = c.r + (size_t)blockIdx.y * (size_t)n;
  Bits            most[CHECK_NUMBERS] = {0, 0, 0, 0, 0};

  if (threadIdx.x < CHECK_NUMBERS) all[threadIdx.x] = 0;
  __syncthreads();
  for (int row = warp; row < n; row += warps) {
    double sum = 0, size = 0;

    for (int e = i[row] + lane; e < i[row + 1]; e += 32) {
      sum += a[e] * x[j[e]];
      size += fabs(a[e]);
    }
    for (int step = 16; step; step /= 2) {
      sum += __shfl_xor_sync(0xffffffffu, sum, step);
      size += __shfl_xor_sync(0xffffffffu, size, step);
    }
    if (!lane) {
      const double v = b[row] - sum;

      r[row]        = v;
      most[CHECK_R] = GPUCSRMax(most[CHECK_R], BitsOf(v));
      most[CHECK_X] = GPUCSRMax(most[CHECK_X], BitsOf(x[row]));
      most[CHECK_B] = GPUCSRMax(most[CHECK_B], BitsOf(b[row]));
      most[CHECK_A] = GPUCSRMax(most[CHECK_A], BitsOf(size));
      if (size == 0) most[CHECK_ZERO] = 1;
    }
  }
  if (!lane)
    for (int k = 0; k < CHECK_NUMBERS; k++) atomicMax(&all[k], most[k]);
  __syncthreads();
  if (threadIdx.x < CHECK_NUMBERS) atomicMax((Bits *)&c.most[CHECK_NUMBERS * blockIdx.y + threadIdx.x], all[threadIdx.x]);
}

GPUCSRError DirectCheck_CUDA(const DirectCheck *c)
{
  const GPUCSRStorage *A = c->A;
  /* enough blocks for every processor, few enough that their atomic operations are few */
  const unsigned blocks = GPUCSRMin(GPUCSRBlocks(32 * (int64_t)A->m, 256), 4096u);

  if (A->m) check_kernel<<<dim3(blocks, (unsigned)c->k), 256, 0, (cudaStream_t)A->dev->stream>>>(A->m, (const int32_t *)A->array[CSR_ROWPTR].data, (const int32_t *)A->array[CSR_COL].data, (const double *)A->array[CSR_VAL].data, *c);
  GPUCSRCheckLaunch("check_kernel");
  return 0;
}

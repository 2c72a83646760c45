/*
  Inverses of the blocks on a diagonal, on a GPU: one thread for each row. A block's inverse is stored by columns, so neighbouring threads read
  neighbouring numbers.
*/
#include "triangle.h"
#include "../kernels/device.cuh"

__global__ void invert_kernel(GPUCSRFactorCSR F, GPUCSRBool symmetric, GPUCSRInverses V)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r >= V.n) return;
  const int k = V.block[r], first = V.begin[k], end = V.begin[k + 1];
  GPUCSRInverseRow(&F, symmetric, first, end, r, V.value + V.at[k] + (r - first), end - first);
}

__global__ void multiply_kernel(GPUCSRInverses V, const int *__restrict__ from, const int *__restrict__ to, const double *__restrict__ b, double *x)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r < V.n) x[to ? to[r] : r] = GPUCSRInverseTimes(&V, r, from, b);
}

GPUCSRError GPUCSRInvert_CUDA(const GPUCSRFactorCSR *F, GPUCSRBool symmetric, GPUCSRInverses *V, GPUCSRStream s)
{
  if (V->n) invert_kernel<<<GPUCSRBlocks(V->n, 128), 128, 0, (cudaStream_t)s>>>(*F, symmetric, *V);
  GPUCSRCheckLaunch("invert_kernel");
  return 0;
}

GPUCSRError GPUCSRMultiply_CUDA(const GPUCSRInverses *V, const int *from, const int *to, const double *b, double *x, GPUCSRStream s)
{
  if (V->n) multiply_kernel<<<GPUCSRBlocks(V->n, 128), 128, 0, (cudaStream_t)s>>>(*V, from, to, b, x);
  GPUCSRCheckLaunch("multiply_kernel");
  return 0;
}

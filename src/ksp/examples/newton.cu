/* The kernel of newton.c and newton.py, a thread an element; and CUDA's functions that newton.c needs */
#include "newton.h"

extern "C" __global__ void newton_kernel(int elements, const int *corner, const int *unknown, const double *point, const double *u, int tangent, double *v)
{
  const int e = blockIdx.x * blockDim.x + threadIdx.x;

  if (e < elements) NewtonValues(e, corner, unknown, point, u, tangent, v);
}

#ifndef __CUDACC_RTC__
extern "C" int NewtonLaunch(int elements, const int *corner, const int *unknown, const double *point, const double *u, int tangent, double *v, void *stream)
{
  newton_kernel<<<(elements + 127) / 128, 128, 0, (cudaStream_t)stream>>>(elements, corner, unknown, point, u, tangent, v);
  return cudaGetLastError();
}

/* A copy of a table on the GPU, NULL: there is no room */
extern "C" void *NewtonSend(const void *table, size_t bytes)
{
  void *copy = NULL;

  if (cudaMalloc(&copy, bytes) || cudaMemcpy(copy, table, bytes, cudaMemcpyHostToDevice)) return NULL;
  return copy;
}

extern "C" void NewtonFree(void *copy)
{
  cudaFree(copy);
}
#endif

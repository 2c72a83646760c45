#pragma once

/*
  Waits for the result of another row, without flags: a missing number is the mark of ../format/absent.h, and 8 bytes are written at once. Polling reads the cache that all multiprocessors share. All waits are
  bounded.
*/
#include "triangle.h"
#include "../kernels/device.cuh"

/* Polls before a wait is given up; and polls between checks whether another thread gave up */
#define AWAIT_LOOKS (1u << 23)
#define AWAIT_ASK   4096u

__device__ __forceinline__ double look(const double *p)
{
  double v;

  asm volatile("ld.relaxed.gpu.global.f64 %0, [%1];" : "=d"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ int look(const int *p)
{
  int v;

  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
__device__ __forceinline__ void show(double *p, double v)
{
  asm volatile("st.relaxed.gpu.global.f64 [%0], %1;" ::"l"(p), "d"(v) : "memory");
}
__device__ __forceinline__ void show(int *p, int v)
{
  asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

/* Orders earlier reads and writes before later writes, for all readers; __threadfence() is the more expensive fence.sc */
__device__ __forceinline__ void fence()
{
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

/* Counts polls; true when a thread, this or any other, has reached the limit: time to give up. trouble is in page-locked memory of the host, or on the device */
struct Patience {
  unsigned looks = 0;

  __device__ __forceinline__ bool gone(volatile int *trouble)
  {
    if (++looks % AWAIT_ASK) return false;
    if (looks >= AWAIT_LOOKS) *trouble = 1;
    return *trouble != 0;
  }
};

/* Number of blocks of a launch that are all resident */
template <class K>
static GPUCSRError Resident(GPUCSRDevice dev, K kernel, int threads, size_t shared, int most, int *blocks)
{
  GPUCSR_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared));
  GPUCSRCheck(*blocks > 0, GPUCSR_ERR_GPU, "A block of %d threads does not fit a processor", threads);
  *blocks = GPUCSRMin(*blocks, most) * dev->props.processors;
  return 0;
}

#pragma once

/*
  Waiting for what another row computes, without flags: a number that is not there yet is the mark of ../format/absent.h, and 8 bytes are written at once. What is waited
  for is read from the cache that all processors share. All waits are bounded.
*/
#include "triangle.h"
#include "../kernels/device.cuh"

/* Looks at a number before a wait is given up; and after so many it is asked whether somebody else gave up */
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

/* What was read or written before is so for whoever sees what is shown after; __threadfence() is the dearer fence.sc */
__device__ __forceinline__ void fence()
{
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

/* Counts looks; true when it is time to give up: the limit is reached, or somebody else has met it. trouble is in page-locked host memory */
struct Patience {
  unsigned looks = 0;

  __device__ __forceinline__ bool gone(volatile int *trouble)
  {
    if (++looks % AWAIT_ASK) return false;
    if (looks >= AWAIT_LOOKS) *trouble = 1;
    return *trouble != 0;
  }
};

/* Blocks of a launch all of which run at the same time */
template <class K>
static PetscErrorCode Resident(GPUCSRDevice dev, K kernel, int threads, size_t shared, int most, int *blocks)
{
  PetscFunctionBegin;
  GPUCSR_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared));
  PetscCheck(*blocks > 0, PETSC_COMM_SELF, PETSC_ERR_GPU, "A block of %d threads does not fit a processor", threads);
  *blocks = PetscMin(*blocks, most) * dev->props.processors;
  PetscFunctionReturn(PETSC_SUCCESS);
}

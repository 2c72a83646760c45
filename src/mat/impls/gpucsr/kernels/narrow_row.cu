/*
  y = A x, slices with narrow columns, a warp a slice and a thread a row.

  Nothing that a thread waits for has to come first but the head of its slice and the lengths of its rows, 64 bytes together: where its entries are it counts by votes of the warp. The windows' first
  columns stay in registers, one a thread, and are fetched from there.

  Bytes: those of the format but its rowptr, n x once at best, m y. Wins and loses as the format.

  Paper: see format/narrow.c.
*/
#include "device.cuh"
#include "../format/narrow.h"

#define AHEAD   8 /* entries of a row in flight */
#define BLOCK   256
#define RUNNING 1280 /* threads of a processor at a time, which is what registers are for */

/* The column of an entry: narrow, or wide. All threads of the warp ask */
__device__ __forceinline__ int narrow_column(unsigned short c, int head)
{
  return __shfl_sync(0xffffffffu, head, 1 + NarrowWindow(c)) + NarrowWithin(c);
}
__device__ __forceinline__ int narrow_column(int c, int head)
{
  (void)head;
  return c;
}

/* A row's sum, col and val being those of the slice */
template <class C, class V, class X>
__device__ __forceinline__ X narrow_sum(int length, int head, const C *__restrict__ col, const V *__restrict__ val, const X *__restrict__ x)
{
  const int          longest = __reduce_max_sync(0xffffffffu, length);
  const unsigned int before  = (1u << threadIdx.x % GPUCSR_SLICE) - 1;
  int                at      = 0;
  X                  sum     = 0;

  for (int k = 0; k < longest; k += AHEAD) {
    C c[AHEAD];
    V v[AHEAD];

#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const unsigned int have = __ballot_sync(0xffffffffu, k + u < length);

      c[u] = 0;
      if (k + u < length) {
        c[u] = streamed(col + at + __popc(have & before));
        v[u] = streamed(val + at + __popc(have & before));
      }
      at += __popc(have);
    }
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const int column = narrow_column(c[u], head);

      if (k + u < length) sum += X(v[u]) * __ldg(x + column);
    }
  }
  return sum;
}

template <class V, class X>
__global__ void __launch_bounds__(BLOCK, RUNNING / BLOCK) narrow_row_kernel(int slices, int offset, int first, int last, const int *__restrict__ heads, const unsigned char *__restrict__ lengths, const unsigned short *__restrict__ col, const int *__restrict__ wide, const V *__restrict__ val, const X *__restrict__ x, const Ending<X> ending)
{
  const int mine = (int)(blockIdx.x * (BLOCK / GPUCSR_SLICE) + threadIdx.x / GPUCSR_SLICE), lane = (int)threadIdx.x % GPUCSR_SLICE, s = offset + mine, r = s * GPUCSR_SLICE + lane;

  if (mine >= slices) return; /* the whole warp */
  const int length = lengths[r], head = heads[NARROW_WORDS * (int64_t)s + lane % NARROW_WORDS];
  const int begin = __shfl_sync(0xffffffffu, head, 0), one = __shfl_sync(0xffffffffu, head, 1), two = __shfl_sync(0xffffffffu, head, 2);
  X         sum;

  if (one == NARROW_WIDE_SLICE) sum = narrow_sum(length, head, wide + two, val + begin, x);
  else sum = narrow_sum(length, head, col + begin, val + begin, x);
  if (r >= first && r < last) store(ending, r, sum);
}

static PetscErrorCode Launch_narrow_row(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int offset = p->first / GPUCSR_SLICE, slices = NarrowSlices(p->last) - offset;

  PetscFunctionBegin;
  (void)variant;
#define LAUNCH(V, X) \
  narrow_row_kernel<V, X><<<GPUCSRBlocks(slices, BLOCK / GPUCSR_SLICE), BLOCK, 0, (cudaStream_t)s>>>(slices, offset, p->first, p->last, (const int *)A->array[NARROW_HEAD].data, (const unsigned char *)A->array[NARROW_LENGTH].data, \
                                                                                                     (const unsigned short *)A->array[NARROW_COL].data, (const int *)A->array[NARROW_WIDE].data, (const V *)A->array[NARROW_VAL].data, (const X *)p->x, Ending<X>(p))
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("narrow_row");
  PetscFunctionReturn(PETSC_SUCCESS);
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_narrow_row) = {PETSC_TRUE, NULL, NULL, Launch_narrow_row, NULL, 0, PETSC_TRUE};

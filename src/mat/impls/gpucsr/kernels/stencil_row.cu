/*
  y = A x, stencils, a thread for 1, 2 or 4 rows, 32 apart; the variant is that number.

  Each block takes the dictionary into its shared memory, an entry a load of 16 bytes (8 in float) that the threads of a warp mostly
  share. Of A, a thread then reads nothing but the numbers of its rows' stencils. Neighbouring rows read neighbours of x; where a warp
  meets a boundary, its threads walk along different stencils at the same time, each at its own pace. Rows of a thread that have the
  same stencil share its entries.

  Bytes: 2 m, n x once at best, m y. What takes the time is the first-level cache: two or three lines of x and one of the dictionary for 32
  entries. Wins wherever rows are alike; there is nothing that it loses to but a launch.

  Papers: M. Belgin, G. Back, C. J. Ribbens, ICS 2009; K. Kourtis, G. Goumas, N. Koziris, CF 2008.
*/
#include "device.cuh"
#include "../format/stencil.h"

#define AHEAD 8 /* entries of a thread in flight */

template <class V>
struct Entry;
template <>
struct __align__(16) Entry<double>
{
  double val;
  int    offset;
};
template <>
struct __align__(8) Entry<float>
{
  float val;
  int   offset;
};

/* In one load: left to itself the compiler takes two, the offset first */
static __device__ __forceinline__ Entry<double> load(const Entry<double> *p)
{
  const int4    t = *(const int4 *)p;
  Entry<double> e;

  e.val    = __hiloint2double(t.y, t.x);
  e.offset = t.z;
  return e;
}
static __device__ __forceinline__ Entry<float> load(const Entry<float> *p)
{
  const int2   t = *(const int2 *)p;
  Entry<float> e;

  e.val    = __int_as_float(t.x);
  e.offset = t.y;
  return e;
}

/* STEPS entries of each of a thread's R rows, from number i on; ALL: they all have so many */
template <bool ALL, int STEPS, int R, class V, class X>
static __device__ __forceinline__ void steps(int i, const Entry<V> *entry, const int (&begin)[R], const int (&end)[R], const X *__restrict__ x, X (&sum)[R])
{
  Entry<V> e[STEPS][R];
  X        xc[STEPS][R];

#pragma unroll
  for (int q = 0; q < STEPS; q++)
#pragma unroll
    for (int u = 0; u < R; u++) {
      const int  k  = begin[u] + i + q;
      const bool in = ALL || k < end[u];

      e[q][u].val = 0;
      xc[q][u]    = 0;
      if (u && begin[u] == begin[0] && end[u] == end[0]) e[q][u] = e[q][0];
      else if (in) e[q][u] = load(entry + k);
      if (in) xc[q][u] = __ldg(x + u * GPUCSR_SLICE + e[q][u].offset);
    }
#pragma unroll
  for (int q = 0; q < STEPS; q++)
#pragma unroll
    for (int u = 0; u < R; u++) sum[u] += X(e[q][u].val) * xc[q][u];
}

template <int R, class V, class X>
__global__ void __launch_bounds__(512) stencil_row_kernel(int units, int entries, int first, int last, const unsigned short *__restrict__ id, const int *__restrict__ begin, const int *__restrict__ offset, const V *__restrict__ val, X alpha, const X *__restrict__ x, X beta, const X *y, X *z)
{
  extern __shared__ __align__(16) char memory[];
  constexpr int                        STEPS = AHEAD / R;
  Entry<V> *const                      entry = (Entry<V> *)memory;
  int *const                           start = (int *)(entry + entries);
  const int64_t                        own   = first + ((int64_t)blockIdx.x * blockDim.x + threadIdx.x / GPUCSR_SLICE * GPUCSR_SLICE) * R + threadIdx.x % GPUCSR_SLICE;
  int                                  mine[R], from[R], to[R], i = 0, shortest = INT_MAX, longest = 0;
  X                                    sum[R] = {};

#pragma unroll
  for (int u = 0; u < R; u++) mine[u] = own + u * GPUCSR_SLICE < last ? (int)__ldcs(id + own + u * GPUCSR_SLICE) : -1;
  for (int e = (int)threadIdx.x; e < entries; e += (int)blockDim.x) {
    entry[e].val    = val[e];
    entry[e].offset = offset[e];
  }
  for (int e = (int)threadIdx.x; e <= units; e += (int)blockDim.x) start[e] = begin[e];
  __syncthreads();
#pragma unroll
  for (int u = 0; u < R; u++) {
    from[u]  = mine[u] < 0 ? 0 : start[mine[u]];
    to[u]    = mine[u] < 0 ? 0 : start[mine[u] + 1];
    shortest = min(shortest, to[u] - from[u]);
    longest  = max(longest, to[u] - from[u]);
  }
  for (; i + STEPS <= shortest; i += STEPS) steps<true, STEPS>(i, entry, from, to, x + own, sum);
  for (; i < longest; i += STEPS) steps<false, STEPS>(i, entry, from, to, x + own, sum);
#pragma unroll
  for (int u = 0; u < R; u++)
    if (mine[u] >= 0) store(z, y, own + u * GPUCSR_SLICE, alpha, sum[u], beta);
}

GPUCSR_DECLARE(GPUCSRKernelFamily, GPUCSRKernel_stencil_row);

static PetscErrorCode Launch(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int units = (int)A->extent.units, entries = (int)A->stored, block = GPUCSRBlockOf(&GPUCSRKernel_stencil_row);

  PetscFunctionBegin;
  /* beyond 48 kilobytes a kernel has to ask for its shared memory */
#define LAUNCHR(R, V, X) \
  case R: { \
    const size_t bytes = sizeof(Entry<V>) * (size_t)entries + sizeof(int) * ((size_t)units + 1); \
\
    if (bytes > 48 << 10) GPUCSR_CUDA(cudaFuncSetAttribute(stencil_row_kernel<R, V, X>, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10)); \
    stencil_row_kernel<R, V, X><<<GPUCSRBlocks((int64_t)p->last - p->first, R * block), block, bytes, (cudaStream_t)s>>>(units, entries, p->first, p->last, (const unsigned short *)A->array[STENCIL_ID].data, (const int *)A->array[STENCIL_BEGIN].data, \
                                                                                                                         (const int *)A->array[STENCIL_OFFSET].data, (const V *)A->array[STENCIL_VAL].data, (X)p->alpha, (const X *)p->x, (X)p->beta, \
                                                                                                                         (const X *)p->y, (X *)p->z); \
  } break
#define LAUNCH(V, X) \
  switch (variant) { \
    LAUNCHR(1, V, X); \
    LAUNCHR(2, V, X); \
    LAUNCHR(4, V, X); \
  }
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("stencil_row");
  PetscFunctionReturn(PETSC_SUCCESS);
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_stencil_row) = {PETSC_TRUE, NULL, NULL, Launch, NULL, 256};

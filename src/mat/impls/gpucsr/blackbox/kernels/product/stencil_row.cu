/*
  y = A x, stencils, one thread for 1, 2 or 4 rows at a time, 32 apart; the variant is that number.

  A block loads the dictionary into its shared memory once; a load takes an entry of 16 bytes (8 in float), mostly the same one for all threads of a
  warp. All blocks go over the matrix together, by blocks of rows. Blocks of one multiprocessor are neighbours and share x in its first-level cache.
  Of A, a thread then reads only the numbers of its rows' stencils, and loads its next rows' numbers ahead of time. At a boundary the threads
  of a warp walk along different stencils, each at its own pace. Rows of a thread with the same stencil share its entries.

  Bytes: 2 m, n x once at best, m y. Bound by the first-level cache: 32 entries take 256 bytes of x, and up to 512 of the dictionary. Wins wherever
  rows are alike; loses by a launch alone.

  Papers: M. Belgin, G. Back, C. J. Ribbens, ICS 2009; K. Kourtis, G. Goumas, N. Koziris, CF 2008.
*/
#include "../device.cuh"
#include "../../format/stencil.h"

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

/* In one load, where the compiler would take two, the offset first */
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

/* STEPS entries of R rows with the same stencil; ALL: so many are left */
template <bool ALL, int STEPS, int R, class V, class X>
static __device__ __forceinline__ void steps(const Entry<V> *entry, int left, const X *__restrict__ x, X (&sum)[R])
{
  Entry<V> e[STEPS];
  X        xc[STEPS][R];

#pragma unroll
  for (int q = 0; q < STEPS; q++) {
    const bool in = ALL || q < left;

    e[q].val = 0;
    if (in) e[q] = load(entry + q);
#pragma unroll
    for (int u = 0; u < R; u++) xc[q][u] = in ? __ldg(x + u * GPUCSR_SLICE + e[q].offset) : X(0);
  }
#pragma unroll
  for (int q = 0; q < STEPS; q++)
#pragma unroll
    for (int u = 0; u < R; u++) sum[u] += X(e[q].val) * xc[q][u];
}

/* R rows with the same stencil, from entry k on */
template <int R, class V, class X>
static __device__ __forceinline__ void together(const Entry<V> *entry, int k, int end, const X *__restrict__ x, X (&sum)[R])
{
  constexpr int STEPS = R == 1 ? AHEAD : AHEAD / 2;

  for (; k + STEPS <= end; k += STEPS) steps<true, STEPS>(entry + k, STEPS, x, sum);
  if (k < end) steps<false, STEPS>(entry + k, end - k, x, sum);
}

/* R rows, each along its own stencil; rows with the first one's stencil share its entries */
template <int R, class V, class X>
static __device__ __forceinline__ void apart(const Entry<V> *entry, const int (&begin)[R], const int (&end)[R], const X *__restrict__ x, X (&sum)[R])
{
  constexpr int STEPS   = AHEAD / R;
  int           longest = 0;

#pragma unroll
  for (int u = 0; u < R; u++) longest = max(longest, end[u] - begin[u]);
  for (int i = 0; i < longest; i += STEPS) {
    Entry<V> e[STEPS][R];
    X        xc[STEPS][R];

#pragma unroll
    for (int q = 0; q < STEPS; q++)
#pragma unroll
      for (int u = 0; u < R; u++) {
        const int  k  = begin[u] + i + q;
        const bool in = k < end[u];

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
}

/* each: blocks resident on a multiprocessor, which take neighbouring rows; 0: all blocks are resident */
template <int R, class V, class X, class E>
__global__ void __launch_bounds__(512) stencil_row_kernel(int units, int entries, int first, int last, int each, const unsigned short *__restrict__ id, const int *__restrict__ begin, const int *__restrict__ offset, const V *__restrict__ val, const X *__restrict__ x, const E ending)
{
  after_previous();
  extern __shared__ __align__(16) char memory[];
  Entry<V> *const                      entry = (Entry<V> *)memory;
  int *const                           start = (int *)(entry + entries);
  const int                            place = each ? (int)(blockIdx.x % (gridDim.x / each) * each + blockIdx.x / (gridDim.x / each)) : (int)blockIdx.x, lane = (int)threadIdx.x % GPUCSR_SLICE;
  const int64_t                        stride = (int64_t)gridDim.x * blockDim.x * R;
  int64_t                              own    = first + ((int64_t)place * blockDim.x + threadIdx.x - lane) * R + lane;
  int                                  next[R];
  typename E::Tally                    tally;

#pragma unroll
  for (int u = 0; u < R; u++) next[u] = own + u * GPUCSR_SLICE < last ? (int)__ldcs(id + own + u * GPUCSR_SLICE) : -1;
  for (int e = (int)threadIdx.x; e < entries; e += (int)blockDim.x) {
    entry[e].val    = val[e];
    entry[e].offset = offset[e];
  }
  for (int e = (int)threadIdx.x; e <= units; e += (int)blockDim.x) start[e] = begin[e];
  __syncthreads();
  for (; own - lane < last; own += stride) { /* the same for the whole warp */
    bool same = true;
    int  mine[R], from[R], to[R];
    X    sum[R] = {};

#pragma unroll
    for (int u = 0; u < R; u++) {
      const int64_t r = own + stride + u * GPUCSR_SLICE;

      mine[u] = next[u];
      from[u] = mine[u] < 0 ? 0 : start[mine[u]];
      to[u]   = mine[u] < 0 ? 0 : start[mine[u] + 1];
      same    = same && mine[u] == mine[0];
      next[u] = r < last ? (int)__ldcs(id + r) : -1;
    }
    if (R == 1 || __all_sync(0xffffffffu, same)) together(entry, from[0], to[0], x + own, sum);
    else apart(entry, from, to, x + own, sum);
#pragma unroll
    for (int u = 0; u < R; u++)
      if (mine[u] >= 0) store(ending, own + u * GPUCSR_SLICE, sum[u], tally);
  }
  finish(ending, tally);
}

GPUCSR_INTERN const GPUCSRKernelFamily GPUCSRKernel_stencil_row;

/* Of a block: half as many if a thread has several rows, for their registers */
static int Threads(int R, int block)
{
  return R == 1 ? block : GPUCSRMax(GPUCSR_SLICE, block / 2);
}

template <class V>
static size_t Bytes(const GPUCSRStorage *A)
{
  return sizeof(Entry<V>) * (size_t)A->stored + sizeof(int) * ((size_t)A->extent.units + 1);
}

/* A->parts: blocks that run on a multiprocessor at once. A kernel must ask for more than 48 kilobytes of shared memory */
template <int R, class V, class X>
static GPUCSRError PrepareR(GPUCSRStorage *A)
{
  GPUCSR_CUDA(cudaFuncSetAttribute(stencil_row_kernel<R, V, X, Ending<X>>, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
  if constexpr (sizeof(X) == sizeof(double)) GPUCSR_CUDA(cudaFuncSetAttribute(stencil_row_kernel<R, V, X, Summing>, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
  GPUCSR_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&A->parts, stencil_row_kernel<R, V, X, Ending<X>>, Threads(R, GPUCSRKernel_stencil_row.block), Bytes<V>(A)));
  return 0;
}

static GPUCSRError Prepare_stencil_row(GPUCSRStorage *A, int variant)
{
#define PREPARE(V, X) GPUCSRCall(variant == 1 ? PrepareR<1, V, X>(A) : variant == 2 ? PrepareR<2, V, X>(A) : PrepareR<4, V, X>(A))
  GPUCSRDispatchPrecision(A->precision, PREPARE);
  return 0;
}

template <int R, class V, class X>
static void LaunchR(const GPUCSRStorage *A, const GPUCSRProduct *p, cudaStream_t s)
{
  const int          block = Threads(R, GPUCSRBlockOf(&GPUCSRKernel_stencil_row)), each = GPUCSRMax(1, A->parts * Threads(R, GPUCSRKernel_stencil_row.block) / block);
  const unsigned int all = GPUCSRBlocks((int64_t)p->last - p->first, R * block), most = (unsigned int)(each * A->dev->props.processors);

  GPUCSREnding<X>(p, GPUCSRMin(all, most), [&](auto ending) {
    launch_after(stencil_row_kernel<R, V, X, decltype(ending)>, GPUCSRMin(all, most), block, Bytes<V>(A), s, (int)A->extent.units, (int)A->stored, p->first, p->last, all < most ? 0 : each, (const unsigned short *)A->array[STENCIL_ID].data,
                 (const int *)A->array[STENCIL_BEGIN].data, (const int *)A->array[STENCIL_OFFSET].data, (const V *)A->array[STENCIL_VAL].data, (const X *)p->x, ending);
  });
}

static GPUCSRError Launch_stencil_row(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
#define LAUNCH(V, X) \
  if (variant == 1) LaunchR<1, V, X>(A, p, (cudaStream_t)s); \
  else if (variant == 2) LaunchR<2, V, X>(A, p, (cudaStream_t)s); \
  else LaunchR<4, V, X>(A, p, (cudaStream_t)s)
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("stencil_row");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_stencil_row) = {true, Prepare_stencil_row, Launch_stencil_row, 512, true};

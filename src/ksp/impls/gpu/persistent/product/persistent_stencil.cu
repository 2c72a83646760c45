/* Persistent kernels with stencils */
#include "../../../../../mat/impls/gpucsr/blackbox/format/stencil.h"
#include "../kernel.cuh"

/* An entry of a stencil, as one load of shared memory */
struct __align__(16) Entry
{
  double value;
  int    offset, at; /* from the row's own place, in the vector and in the windows of a chunk */
};

/*
  The stencils are in shared memory, their values widened to double. From global memory a row reads only the number of its stencil.

  Most rows have the largest stencil, or at the boundary of the grid a part of it. This common stencil is an argument of the kernel: its values and offsets are operands of the instructions. A row's
  number tells its entries of the common stencil, and no load of x waits for anything else.
*/
#define OTHER (1u << 31) /* not part of the common stencil */
#define BATCH 7          /* entries of the common stencil with loads in flight together */

struct Stencil {
  static const bool offsets = true, peers = true;
  const uint16_t   *id;
  const int        *begin, *offset; /* in storage order */
  const void       *val;
  bool              single;
  int               units, stored;
  Sharing           split; /* warps that share a slice */
  unsigned          every; /* entries of the common stencil for the first of the warps */
  Entry            *entry; /* and in shared memory */
  int              *start;
  unsigned         *has; /* for each stencil its entries of the common stencil, or OTHER */
  GPUKSPCommon      common;
  GPUKSPWindows     windows;

  size_t shared() const
  {
    return (sizeof(int) * (size_t)(units + 1) + 15) / 16 * 16 + (sizeof(*entry) * (size_t)stored + 15) / 16 * 16 + (sizeof(*has) * (size_t)units + 15) / 16 * 16;
  }

  static Stencil of(const GPUKSPPersistent *L)
  {
    const GPUCSRStorage *A = L->A;
    Stencil              S = {
                   (const uint16_t *)A->array[STENCIL_ID].data, (const int *)A->array[STENCIL_BEGIN].data, (const int *)A->array[STENCIL_OFFSET].data, A->array[STENCIL_VAL].data, A->array[STENCIL_VAL].type == GPUCSR_FLOAT, (int)A->extent.units, (int)A->extent.stored, Sharing::of(L->threads), L->threads < 32 ? 0xffffffffu / ((1u << L->threads) - 1) : 1u, NULL, NULL, NULL, L->common, L->windows};

    for (int k = 0; k < S.common.count; k++) S.common.at[k] = L->windows.at(S.common.offset[k]);
    return S;
  }

  __device__ __forceinline__ void settle(Pool &pool)
  {
    start = pool.take<int>(units + 1);
    entry = pool.take<Entry>(stored);
    has   = pool.take<unsigned>(units);
    for (int i = threadIdx.x; i <= units; i += THREADS) start[i] = begin[i];
    for (int i = threadIdx.x; i < stored; i += THREADS) entry[i] = {single ? (double)((const float *)val)[i] : ((const double *)val)[i], offset[i], windows.at(offset[i])};
    __syncthreads();
    for (int i = threadIdx.x; i < units; i += THREADS) {
      unsigned bits = 0;
      int      k    = start[i];

#pragma unroll
      for (int c = 0; c < GPUKSP_COMMON; c++) {
        if (c < common.count && k < start[i + 1] && entry[k].offset == common.offset[c] && entry[k].value == common.value[c]) {
          bits |= 1u << c;
          k++;
        }
      }
      has[i] = k == start[i + 1] ? bits : OTHER;
    }
  }

  __device__ __forceinline__ bool shares() const
  {
    return split.count > 1;
  }

  /* The row's part of the common stencil */
  template <bool WINDOWS, class G>
  __device__ __forceinline__ double common_part(const G &x, int row, unsigned bits) const
  {
    double sum = 0;

#pragma unroll
    for (int k = 0; k < GPUKSP_COMMON; k += BATCH) {
      double xc[BATCH];

      if (k >= common.count) break;
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        xc[u] = 0;
        if (bits >> (k + u) & 1) xc[u] = x(row + (WINDOWS ? common.at[k + u] : common.offset[k + u]));
      }
#pragma unroll
      for (int u = 0; u < BATCH; u++) sum += common.value[k + u] * xc[u];
    }
    return sum;
  }

  /* Any stencil: all of its entries, or every split-th */
  template <bool WINDOWS, class G>
  __device__ __forceinline__ double whole(const G &x, int row, int which, int part) const
  {
    constexpr int ahead = G::ahead;
    const int     end   = start[which + 1];
    double        sum   = 0;

    for (int k = start[which] + part; k < end; k += ahead * split.count) {
      double v[ahead], xc[ahead];

#pragma unroll
      for (int u = 0; u < ahead; u++) {
        v[u]  = 0;
        xc[u] = 0;
        if (k + u * split.count < end) {
          const Entry e = entry[k + u * split.count];

          v[u]  = e.value;
          xc[u] = x(row + (WINDOWS ? e.at : e.offset));
        }
      }
#pragma unroll
      for (int u = 0; u < ahead; u++) sum += v[u] * xc[u];
    }
    return sum;
  }

  template <class G, class F>
  __device__ __forceinline__ void product(const G &x, int first, int last, double *scratch, F f) const
  {
    const int      lane = threadIdx.x % 32, warp = threadIdx.x / 32, groups = split.groups(WARPS), part = split.part(warp);
    const int      slices = (last - first + 31) / 32;
    const unsigned mine   = every << part; /* this warp's entries of the common stencil */

    for (int q0 = 0; q0 < slices; q0 += groups) {
      const int      q = q0 + split.groups(warp), row = first + 32 * q + lane;
      const bool     in    = q < slices && row < last;
      const int      which = in ? id[row] : 0;
      const unsigned bits  = in ? has[which] : 0;
      double         sum   = 0;

      if (!__any_sync(0xffffffffu, bits & OTHER)) sum = common_part<false>(x, row, bits & mine);
      else if (in) sum = whole<false>(x, row, which, part);
      if (split.count > 1) sum = add_parts(sum, split, part, scratch);
      if (part == 0 && in) f(32 * q + lane, sum);
    }
  }

  /* The rows of a thread in a chunk, as in persistent_dia.cu */
  typedef int Ahead;

  __device__ __forceinline__ Ahead ahead(int row, bool in) const
  {
    return in ? id[row] : 0;
  }

  __device__ __forceinline__ void rows_of_chunk(const double *x, int t, int, int left, const Ahead (&which)[WINDOW_ROWS], double (&sum)[WINDOW_ROWS]) const
  {
#pragma unroll
    for (int r = 0; r < WINDOW_ROWS; r++) {
      const bool     in   = r * WINDOW_THREADS < left;
      const unsigned bits = in ? has[which[r]] : 0;
      const int      c    = t + r * WINDOW_THREADS;

      if (!__any_sync(0xffffffffu, bits & OTHER)) sum[r] = common_part<true>(Vector{x}, c, bits);
      else sum[r] = in ? whole<true>(Vector{x}, c, which[r], 0) : 0;
    }
  }
};

/* The stencil with the most entries, which contains most other stencils; with 0 entries if there is none */
GPUCSRError GPUKSPPersistentCommon(const GPUCSRStorage *A, GPUKSPCommon *common, GPUCSRStream stream)
{
  const size_t   bytes = GPUCSRTypeSize(A->array[STENCIL_VAL].type);
  cudaStream_t   s     = (cudaStream_t)stream;
  int            most  = 0;
  HostArray<int> begin;
  double         value[GPUKSP_COMMON];
  cudaError_t    err;

  memset(common, 0, sizeof(*common));
  if (!GPUKSPFormatIsTable(A->format)) return 0;
  GPUCSRCall(begin.make((size_t)A->extent.units + 2));
  err = cudaMemcpyAsync(begin.p, A->array[STENCIL_BEGIN].data, sizeof(int) * (size_t)(A->extent.units + 1), cudaMemcpyDeviceToHost, s);
  if (!err) err = cudaStreamSynchronize(s);
  for (int u = 1; u < (int)A->extent.units; u++)
    if (begin[u + 1] - begin[u] > begin[most + 1] - begin[most]) most = u;
  if (!err && begin[most + 1] - begin[most] <= GPUKSP_COMMON) {
    common->count = begin[most + 1] - begin[most];
    err           = cudaMemcpyAsync(common->offset, (const int *)A->array[STENCIL_OFFSET].data + begin[most], sizeof(int) * (size_t)common->count, cudaMemcpyDeviceToHost, s);
    if (!err) err = cudaMemcpyAsync(value, (const char *)A->array[STENCIL_VAL].data + bytes * (size_t)begin[most], bytes * (size_t)common->count, cudaMemcpyDeviceToHost, s);
    if (!err) err = cudaStreamSynchronize(s);
    for (int k = 0; k < common->count && !err; k++) common->value[k] = bytes == sizeof(float) ? (double)((const float *)value)[k] : value[k];
  }
  GPUCSR_CUDA(err);
  return 0;
}

/* Is d[row] the same in all rows of a stencil? A first pass writes each d[row] to its stencil's entry of table; a second, with check, sets *differ if a row disagrees */
__global__ void diagonals_kernel(int m, const uint16_t *id, const double *d, double *table, int *differ, int check)
{
  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (i >= m) return;
  if (!check) table[id[i]] = d[i];
  else if (table[id[i]] != d[i]) *differ = 1;
}

/* Is the preconditioner's diagonal constant on each stencil? Then it is not read as a vector. table: room for GPUKSP_STENCILS numbers and a flag */
GPUCSRError GPUKSPPersistentDiagonals(const GPUCSRStorage *A, const double *d, double *table, GPUKSPDiagonals *same, GPUCSRStream s)
{
  int differ = 0, *flag = (int *)(table + GPUKSP_STENCILS);

  *same = {NULL, NULL, 0};
  if (!d || !A->m || !GPUKSPFormatIsTable(A->format) || A->extent.units > GPUKSP_STENCILS) return 0;
  GPUCSR_CUDA(cudaMemsetAsync(flag, 0, sizeof(*flag), (cudaStream_t)s));
  for (int check = 0; check < 2; check++) diagonals_kernel<<<GPUCSRBlocks(A->m, 256), 256, 0, (cudaStream_t)s>>>(A->m, (const uint16_t *)A->array[STENCIL_ID].data, d, table, flag, check);
  GPUCSRCheckLaunch("the diagonal of stencils");
  GPUCSR_CUDA(cudaMemcpyAsync(&differ, flag, sizeof(differ), cudaMemcpyDeviceToHost, (cudaStream_t)s));
  GPUCSR_CUDA(cudaStreamSynchronize((cudaStream_t)s));
  if (!differ) *same = {(const uint16_t *)A->array[STENCIL_ID].data, table, (int)A->extent.units};
  return 0;
}

GPUKSP_PERSISTENT_PRODUCT(stencil, Widened<Stencil>);

/*
  A whole solve in one cooperative launch: conjugate gradients, standard and with a single reduction, and BiCGStab.

  Each block, one a processor, owns a range of rows of about equal work (GPUKSPLaunchPartition()) and all that is private to them; as
  much of that as fits stays in its shared memory. What other blocks read, the vector that A is multiplied with, is in global memory.

  Blocks meet in exchange(): each publishes its part of up to four sums, and reads those of all others. The flag that says that a part has
  arrived travels inside it, a half of the number with a half of a word each, so that no fence and no second round trip is needed; all
  add up the same parts in the same order, so that all take the same decisions, and two runs give the same bits. Where vectors must have become visible too,
  a fence goes before publishing, and reading acquires. Small matrices are solved by one cluster, whose blocks write each other's shared memory and meet
  in hardware.

  No meeting is only for a vector to become visible: a direction is put together where the product reads it, from vectors that were there
  at the last reduction. CG then needs two meetings an iteration, CG with a single reduction too, BiCGStab three. Where a block's rows and all that they need of
  others' fit its shared memory, CG needs one: see cg_tile_kernel.

  The rules (rules.h) are those of the host. x takes the step of an iteration together with the next direction, which reads p anyway.

  Bytes an iteration of n rows, CG: those of the matrix, and of vectors 72 n, and 8 n for a diagonal that is not that of stencils, less what stays in shared memory
  (w first) and what z leaves in the last-level cache from one phase to the next, for which the second goes backwards. Needs CSR, diagonals, stencils, or sliced ELL whose
  rows move within windows of a few hundred at most.
*/
#include "../../../mat/impls/gpucsr/kernels/device.cuh"
#include "../../../mat/impls/gpucsr/format/dia.h"
#include "../../../mat/impls/gpucsr/format/sell.h"
#include "../../../mat/impls/gpucsr/format/stencil.h"
#include "launch.h"
#include <stdio.h>

#define MOST_THREADS 1024 /* of a block; a power of two, as many as the launch says */
#define MOST_WARPS   (MOST_THREADS / 32)
#define THREADS      ((int)blockDim.x)
#define WARPS        (THREADS / 32)
#define AHEAD        8 /* entries of a row in flight */

/* ---- matrix entries: read once an iteration, and kept in the last-level cache between iterations only where all of them fit ---- */

__device__ __forceinline__ unsigned long long entry_policy(int keep)
{
  unsigned long long p = 0;

#if __CUDA_ARCH__ >= 800
  if (keep) asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(p));
  else asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(p));
#endif
  return p;
}

#if __CUDA_ARCH__ >= 800
  #define LOAD_ENTRY(v, name, letter, p, policy) asm("ld.global.nc.L1::no_allocate.L2::cache_hint." name " %0, [%1], %2;" : letter(v) : "l"(p), "l"(policy))
#else
  #define LOAD_ENTRY(v, name, letter, p, policy) v = __ldcs(p)
#endif
#define ENTRY(type, name, letter) \
  __device__ __forceinline__ type entry(const type *p, unsigned long long policy) \
  { \
    type v; \
\
    LOAD_ENTRY(v, name, letter, p, policy); \
    return v; \
  }
ENTRY(int, "s32", "=r")
ENTRY(float, "f32", "=f")
ENTRY(double, "f64", "=d")

/*
  ---- what A is multiplied with: a vector, or one that is a sum of others and is put together where it is read ----

  The latter is what spares a meeting: the parts are there before the sums that say how much of each to take. They are written in this launch, by
  other blocks: plain loads, which the meetings keep from being stale.
*/

template <class X>
struct Vector {
  typedef X        type;
  static const int ahead = AHEAD;
  const X         *x;

  __device__ __forceinline__ X operator()(int c) const
  {
    return x[c];
  }
};

/* A vector of which the block keeps all that its rows need in shared memory; x is where element 0 would be */
template <class X>
struct Tile {
  typedef X        type;
  static const int ahead = AHEAD;
  const X         *x;

  __device__ __forceinline__ X operator()(int c) const
  {
    return x[c];
  }
};

/* No vector: which columns the rows of a thread have */
struct Reach {
  typedef double   type;
  static const int ahead = AHEAD;
  int             *lo, *hi;

  __device__ __forceinline__ double operator()(int c) const
  {
    *lo = min(*lo, c);
    *hi = max(*hi, c + 1);
    return 0;
  }
};

/* The next direction of conjugate gradients */
template <class X>
struct Direction {
  typedef X        type;
  static const int ahead = AHEAD;
  const X         *z, *p;
  X                beta;

  __device__ __forceinline__ X operator()(int c) const
  {
    return z[c] + beta * p[c];
  }
};

/* Those of BiCGStab; d is the diagonal of a preconditioner from the right, or NULL */
template <class X>
struct BCGSWhole {
  typedef X        type;
  static const int ahead = AHEAD / 2;
  const X         *r, *v, *p, *d;
  X                omegabeta, beta;

  __device__ __forceinline__ X operator()(int c) const
  {
    const X y = r[c] - omegabeta * v[c] + beta * p[c];

    return d ? d[c] * y : y;
  }
};

template <class X>
struct BCGSHalf {
  typedef X        type;
  static const int ahead = AHEAD / 2;
  const X         *r, *v, *d;
  X                alpha;

  __device__ __forceinline__ X operator()(int c) const
  {
    const X y = r[c] - alpha * v[c];

    return d ? d[c] * y : y;
  }
};

/* ---- a vector of the block's rows, the first of them in shared memory ---- */

template <class X>
struct Rows {
  X  *nearby, *far;
  int resident;

  __device__ __forceinline__ X &operator[](int i) const
  {
    return i < resident ? nearby[i] : far[i];
  }
};

struct Pool {
  char  *next;
  size_t left;

  template <class X>
  __device__ __forceinline__ Rows<X> rows(X *global, int first, int count)
  {
    Rows<X>   v;
    const int fit = (int)(left / sizeof(X));

    v.far      = global ? global + first : global;
    v.nearby   = (X *)next;
    v.resident = global ? (count <= fit ? count : fit / THREADS * THREADS) : 0;
    next += (sizeof(X) * v.resident + 15) / 16 * 16;
    left -= min(left, (sizeof(X) * v.resident + 15) / 16 * 16);
    return v;
  }

  /* What is known to fit */
  template <class X>
  __device__ __forceinline__ X *take(int count)
  {
    X *const p = (X *)next;

    next += (sizeof(X) * count + 15) / 16 * 16;
    left -= (sizeof(X) * count + 15) / 16 * 16;
    return p;
  }
};

/* The sum of what so many neighbouring warps have, in the first of them */
template <class X>
__device__ __forceinline__ X add_parts(X sum, int warps, int part, X *scratch)
{
  scratch[threadIdx.x] = sum;
  __syncthreads();
  for (int u = 1; u < warps && part == 0; u++) sum += scratch[threadIdx.x + 32 * u];
  __syncthreads();
  return sum;
}

/* ---- products of a block's rows: f(row in the block, sum) for each, by the thread that has the sum ---- */

template <class V>
struct Sell {
  typedef V  value;
  const int *slice, *perm, *col; /* slice is NULL where all are of one width, perm where rows are where they were; else they move within a block */
  const V   *val;
  int        width;
  int        split; /* warps that share a slice, where there are fewer slices than warps */
  int        keep;

  __device__ __forceinline__ void settle(Pool &)
  {
  }

  size_t shared() const
  {
    return 0;
  }

  __device__ __forceinline__ bool shares() const
  {
    return split > 1;
  }

  template <class G, class F>
  __device__ __forceinline__ void product(const G &x, int first, int last, typename G::type *scratch, F f) const
  {
    typedef typename G::type X;
    constexpr int            ahead  = G::ahead;
    const unsigned long long policy = entry_policy(keep);
    const int                lane = threadIdx.x % 32, warp = threadIdx.x / 32, groups = WARPS / split, part = warp % split;
    const int                slices = (last - first + 31) / 32;

    for (int q0 = 0; q0 < slices; q0 += groups) {
      const int q   = q0 + warp / split;
      X         sum = 0;

      if (q < slices) {
        const int  begin = SELLBegin(slice, width, first / 32 + q), most = SELLBegin(slice, width, first / 32 + q + 1) - begin;
        const int *c0 = col + 32 * (int64_t)begin + lane;
        const V   *v0 = val + 32 * (int64_t)begin + lane;

        for (int k = part; k < most; k += ahead * split) {
          int c[ahead];
          V   v[ahead];

#pragma unroll
          for (int u = 0; u < ahead; u++) {
            c[u] = -1;
            if (k + u * split < most) {
              c[u] = entry(c0 + 32 * (k + u * split), policy);
              v[u] = entry(v0 + 32 * (k + u * split), policy);
            }
          }
#pragma unroll
          for (int u = 0; u < ahead; u++)
            if (c[u] >= 0) sum += X(v[u]) * x(c[u]);
        }
      }
      if (split > 1) sum = add_parts(sum, split, part, scratch);
      if (part == 0 && q < slices && first + 32 * q + lane < last) f(perm ? perm[first + 32 * q + lane] - first : 32 * q + lane, sum);
    }
  }
};

#define DIA_AHEAD 9 /* values of a row in flight */

/* As sliced ELL, but that the column follows from the diagonal: entries of x and of A are asked for together */
template <class V>
struct Dia {
  typedef V  value;
  const int *offset;
  const V   *val;
  int        diagonals, n;
  int        split, keep;
  int       *at; /* in shared memory: of each diagonal, its place in the windows of a chunk */
  GPUKSPWindows windows;

  __device__ __forceinline__ void settle(Pool &pool)
  {
    if (!windows.count) return;
    at = pool.take<int>(diagonals);
    for (int i = threadIdx.x; i < diagonals; i += THREADS) at[i] = windows.at(offset[i]);
  }

  size_t shared() const
  {
    return windows.count ? (sizeof(int) * (size_t)diagonals + 15) / 16 * 16 : 0;
  }

  /* A row of a chunk, and what of it can be read before */
  struct Ahead {
    V v[DIA_AHEAD];
  };

  __device__ __forceinline__ Ahead some(int k, int row, bool in) const
  {
    const unsigned long long policy = entry_policy(keep);
    const V                 *v0     = val + DIAEntry(diagonals, row, 0);
    Ahead                    a;

#pragma unroll
    for (int u = 0; u < DIA_AHEAD; u++) {
      a.v[u] = absent<V>();
      if (in && k + u < diagonals) a.v[u] = entry(v0 + 32 * (k + u), policy);
    }
    return a;
  }

  __device__ __forceinline__ Ahead ahead(int row, bool in) const
  {
    return some(0, row, in);
  }

  template <class X>
  __device__ __forceinline__ X row_of_chunk(const X *x, int t, int row, bool in, const Ahead &first) const
  {
    Ahead a   = first;
    X     sum = 0;

    for (int k = 0;;) {
#pragma unroll
      for (int u = 0; u < DIA_AHEAD; u++)
        if (!is_absent(a.v[u])) sum += X(a.v[u]) * x[t + at[k + u]];
      k += DIA_AHEAD;
      if (k >= diagonals) return sum;
      a = some(k, row, in);
    }
  }

  __device__ __forceinline__ bool shares() const
  {
    return split > 1;
  }

  template <class G, class F>
  __device__ __forceinline__ void product(const G &x, int first, int last, typename G::type *scratch, F f) const
  {
    typedef typename G::type X;
    constexpr int            ahead  = G::ahead;
    const unsigned long long policy = entry_policy(keep);
    const int                lane = threadIdx.x % 32, warp = threadIdx.x / 32, groups = WARPS / split, part = warp % split;
    const int                slices = (last - first + 31) / 32;

    for (int q0 = 0; q0 < slices; q0 += groups) {
      const int q   = q0 + warp / split;
      X         sum = 0;

      if (q < slices) {
        const int row = first + 32 * q + lane;
        const V  *v0  = val + DIAEntry(diagonals, row, 0);

        for (int k = part; k < diagonals; k += ahead * split) {
          V v[ahead];
          X xc[ahead];

#pragma unroll
          for (int u = 0; u < ahead; u++) {
            const int d = k + u * split, c = d < diagonals ? row + __ldg(offset + d) : -1;

            v[u]  = absent<V>();
            xc[u] = 0;
            if (c >= 0 && c < n) {
              v[u]  = entry(v0 + 32 * d, policy);
              xc[u] = x(c);
            }
          }
#pragma unroll
          for (int u = 0; u < ahead; u++)
            if (!is_absent(v[u])) sum += X(v[u]) * xc[u];
        }
      }
      if (split > 1) sum = add_parts(sum, split, part, scratch);
      if (part == 0 && q < slices && first + 32 * q + lane < last) f(32 * q + lane, sum);
    }
  }
};

/* An entry of a stencil, as one load of shared memory */
template <class V>
struct __align__(16) Entry
{
  V   value;
  int offset, at; /* from the row's own place, in the vector and in the windows of a chunk */
};

/*
  The stencils in shared memory; no entry of A is read from anywhere else, and of each row the number of its stencil alone.

  Most rows have the stencil of the most entries, or a part of it where the grid ends. That one is an argument of the launch: its values and offsets are
  operands of the instructions, a row's number says which of them it has, and no load of x waits for it but through that.
*/
#define OTHER (1u << 31) /* no part of the common stencil */
#define BATCH 7          /* entries of it whose loads are in flight together */

template <class V>
struct Stencil {
  typedef V       value;
  const uint16_t *id;
  const int      *begin, *offset; /* as they are stored, */
  const V        *val;
  int             units, stored;
  int             split;
  Entry<V>       *entry; /* and in shared memory */
  int            *start;
  unsigned       *has; /* of each stencil, which entries of the common one, or OTHER */
  GPUKSPCommon    common;
  GPUKSPWindows   windows;

  size_t shared() const
  {
    return (sizeof(int) * (size_t)(units + 1) + 15) / 16 * 16 + (sizeof(*entry) * (size_t)stored + 15) / 16 * 16 + (sizeof(*has) * (size_t)units + 15) / 16 * 16;
  }

  __device__ __forceinline__ void settle(Pool &pool)
  {
    start = pool.take<int>(units + 1);
    entry = pool.take<Entry<V>>(stored);
    has   = pool.take<unsigned>(units);
    for (int i = threadIdx.x; i <= units; i += THREADS) start[i] = begin[i];
    for (int i = threadIdx.x; i < stored; i += THREADS) entry[i] = {val[i], offset[i], windows.at(offset[i])};
    __syncthreads();
    for (int i = threadIdx.x; i < units; i += THREADS) {
      unsigned bits = 0;
      int      k    = start[i];

#pragma unroll
      for (int c = 0; c < GPUKSP_COMMON; c++) {
        if (c < common.count && k < start[i + 1] && entry[k].offset == common.offset[c] && (double)entry[k].value == common.value[c]) {
          bits |= 1u << c;
          k++;
        }
      }
      has[i] = k == start[i + 1] ? bits : OTHER;
    }
  }

  __device__ __forceinline__ bool shares() const
  {
    return split > 1;
  }

  /* What the row has of the common stencil */
  template <bool WINDOWS, class G>
  __device__ __forceinline__ typename G::type common_part(const G &x, int row, unsigned bits) const
  {
    typedef typename G::type X;
    X                        sum = 0;

#pragma unroll
    for (int k = 0; k < GPUKSP_COMMON; k += BATCH) {
      X xc[BATCH];

      if (k >= common.count) break;
#pragma unroll
      for (int u = 0; u < BATCH; u++) {
        xc[u] = 0;
        if (bits >> (k + u) & 1) xc[u] = x(row + (WINDOWS ? common.at[k + u] : common.offset[k + u]));
      }
#pragma unroll
      for (int u = 0; u < BATCH; u++) sum += X(common.value[k + u]) * xc[u];
    }
    return sum;
  }

  /* All of any stencil, or every split-th entry */
  template <bool WINDOWS, class G>
  __device__ __forceinline__ typename G::type whole(const G &x, int row, int which, int part) const
  {
    typedef typename G::type X;
    constexpr int            ahead = G::ahead;
    const int                end   = start[which + 1];
    X                        sum   = 0;

    for (int k = start[which] + part; k < end; k += ahead * split) {
      V v[ahead];
      X xc[ahead];

#pragma unroll
      for (int u = 0; u < ahead; u++) {
        v[u]  = 0;
        xc[u] = 0;
        if (k + u * split < end) {
          const Entry<V> e = entry[k + u * split];

          v[u]  = e.value;
          xc[u] = x(row + (WINDOWS ? e.at : e.offset));
        }
      }
#pragma unroll
      for (int u = 0; u < ahead; u++) sum += X(v[u]) * xc[u];
    }
    return sum;
  }

  template <class G, class F>
  __device__ __forceinline__ void product(const G &x, int first, int last, typename G::type *scratch, F f) const
  {
    typedef typename G::type X;
    const int                lane = threadIdx.x % 32, warp = threadIdx.x / 32, groups = WARPS / split, part = warp % split;
    const int                slices = (last - first + 31) / 32;
    const unsigned           mine   = (split < 32 ? 0xffffffffu / ((1u << split) - 1) : 1u) << part; /* entries of this warp's share */

    for (int q0 = 0; q0 < slices; q0 += groups) {
      const int  q = q0 + warp / split, row = first + 32 * q + lane;
      const bool in    = q < slices && row < last;
      const int  which = in ? id[row] : 0;
      const unsigned bits = in ? has[which] : 0;
      X          sum = 0;

      if (!__any_sync(0xffffffffu, bits & OTHER)) sum = common_part<false>(x, row, bits & mine);
      else if (in) sum = whole<false>(x, row, which, part);
      if (split > 1) sum = add_parts(sum, split, part, scratch);
      if (part == 0 && in) f(32 * q + lane, sum);
    }
  }

  /* A row of a chunk, and what of it can be read before; all lanes of the warp take part */
  typedef int Ahead;

  __device__ __forceinline__ Ahead ahead(int row, bool in) const
  {
    return in ? id[row] : 0;
  }

  template <class X>
  __device__ __forceinline__ X row_of_chunk(const X *x, int t, int row, bool in, const Ahead &which) const
  {
    const unsigned bits = in ? has[which] : 0;

    if (!__any_sync(0xffffffffu, bits & OTHER)) return common_part<true>(Tile<X>{x}, t, bits);
    return in ? whole<true>(Tile<X>{x}, t, which, 0) : X(0);
  }
};

template <class V>
struct Csr {
  typedef V  value;
  const int *rowptr, *col;
  const V   *val;
  int        lanes; /* threads that share a row */
  int        keep;

  __device__ __forceinline__ void settle(Pool &)
  {
  }

  size_t shared() const
  {
    return 0;
  }

  __device__ __forceinline__ bool shares() const
  {
    return false;
  }

  template <class G, class F>
  __device__ __forceinline__ void product(const G &x, int first, int last, typename G::type *, F f) const
  {
    typedef typename G::type X;
    const int                lane = threadIdx.x % lanes, groups = THREADS / lanes, rows = last - first;

    for (int r0 = 0; r0 < rows; r0 += groups) {
      const int r   = r0 + threadIdx.x / lanes;
      X         sum = 0;

      if (r < rows) {
        const int end = rowptr[first + r + 1];

        for (int k = rowptr[first + r] + lane; k < end; k += 4 * lanes) {
          int c[4];
          V   v[4];

#pragma unroll
          for (int u = 0; u < 4; u++) {
            c[u] = -1;
            if (k + u * lanes < end) {
              c[u] = keep ? __ldg(col + k + u * lanes) : __ldcs(col + k + u * lanes);
              v[u] = keep ? __ldg(val + k + u * lanes) : __ldcs(val + k + u * lanes);
            }
          }
#pragma unroll
          for (int u = 0; u < 4; u++)
            if (c[u] >= 0) sum += X(v[u]) * x(c[u]);
        }
      }
      for (int o = lanes / 2; o; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o, lanes);
      if (lane == 0 && r < rows) f(r, sum);
    }
  }
};

/*
  ---- the next direction of a chunk of rows at a time, put together in shared memory ----

  Where the columns of a row are its number and a few offsets, a chunk of rows needs no more than some windows of the vector: one around each group of offsets. The parts of
  the direction in them are copied while the chunk before is multiplied, each once, where gathering would read them once an entry.
*/
#define WINDOW_THREADS 512
#define WINDOW_ROWS    2 /* of a chunk, each thread */

__device__ __forceinline__ void order_proxies()
{
#if defined(KSP_BULK) && __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async;" ::: "memory");
#endif
}

struct Windows {
  double             *stage; /* two, of windows of z and of p each */
  unsigned long long *full;  /* a barrier for each, that counts bytes */
  int                 length, turn;

  __device__ __forceinline__ void settle(Pool &pool, int all)
  {
    length = all;
    turn   = 0;
    stage  = pool.take<double>(4 * length);
    full   = pool.take<unsigned long long>(2);
#if defined(KSP_BULK) && __CUDA_ARCH__ >= 900
    if (threadIdx.x < 2) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"((unsigned)__cvta_generic_to_shared(full + threadIdx.x)) : "memory");
    order_proxies();
#endif
  }

  /* Those of the chunk from row on, into a stage that nobody reads any more */
  __device__ __forceinline__ void fetch(const GPUKSPWindows &w, const double *z, const double *p, int n, int row, int which) const
  {
    double *const to = stage + 2 * which * length;

#if defined(KSP_BULK)
  #if __CUDA_ARCH__ >= 900
    if (threadIdx.x == THREADS - 32) {
      const unsigned bar   = (unsigned)__cvta_generic_to_shared(full + which);
      unsigned       bytes = 0;

    #pragma unroll
      for (int q = 0; q < GPUKSP_WINDOWS; q++)
        if (q < w.count) bytes += 16 * max(0, min(row + w.lo[q] + w.wide[q], (n + 1) / 2 * 2) - max(0, row + w.lo[q]));
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
    #pragma unroll
      for (int q = 0; q < GPUKSP_WINDOWS; q++) {
        if (q >= w.count) break;
        const int lo = max(0, row + w.lo[q]), count = min(row + w.lo[q] + w.wide[q], (n + 1) / 2 * 2) - lo, place = w.place[q] + lo - (row + w.lo[q]);

        if (count <= 0) continue;
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"((unsigned)__cvta_generic_to_shared(to + place)), "l"(z + lo), "r"(8 * count), "r"(bar) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"((unsigned)__cvta_generic_to_shared(to + length + place)), "l"(p + lo), "r"(8 * count), "r"(bar) : "memory");
      }
    }
  #endif
#else
  #pragma unroll
    for (int q = 0; q < GPUKSP_WINDOWS; q++) {
      if (q >= w.count) break;
      for (int e = 2 * threadIdx.x; e < w.wide[q]; e += 2 * THREADS) {
        const int  c  = row + w.lo[q] + e;
        const bool in = c >= 0 && c < n;

        copy(to + w.place[q] + e, z + (in ? c : 0), in);
        copy(to + length + w.place[q] + e, p + (in ? c : 0), in);
      }
    }
#endif
  }

  /* 16 bytes, or as many zeros */
  static __device__ __forceinline__ void copy(double *to, const double *from, bool in)
  {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(in ? 16 : 0) : "memory");
#else
    *(double2 *)to = in ? __ldcg((const double2 *)from) : make_double2(0, 0);
#endif
  }

  __device__ __forceinline__ void wait() const
  {
#if defined(KSP_BULK)
  #if __CUDA_ARCH__ >= 900
    int there;

    do asm volatile("{\n\t.reg .pred there;\n\tmbarrier.try_wait.parity.shared::cta.b64 there, [%1], %2;\n\tselp.b32 %0, 1, 0, there;\n\t}" : "=r"(there) : "r"((unsigned)__cvta_generic_to_shared(full + (turn & 1))), "r"(turn >> 1 & 1) : "memory");
    while (!there);
  #endif
#elif __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  }

  /* f(row in the block, sum, the direction there, p there, what x was) */
  template <class M, class F>
  __device__ __forceinline__ void product(const M &A, const double *z, const double *p, double beta, int n, int first, int rows, const Rows<double> &x, F f)
  {
    const GPUKSPWindows &w     = A.windows;
    const int            chunk = WINDOW_ROWS * WINDOW_THREADS;
    typename M::Ahead    ahead[WINDOW_ROWS];
    double               xi[WINDOW_ROWS];

    order_proxies();
    if (rows) fetch(w, z, p, n, first, turn & 1);
    for (int i0 = 0; i0 < rows; i0 += chunk, turn++) {
      const int     t = threadIdx.x;
      double *const d = stage + 2 * (turn & 1) * length, *const before = d + length;

#pragma unroll
      for (int u = 0; u < WINDOW_ROWS; u++) {
        const int  i  = i0 + t + u * WINDOW_THREADS;
        const bool in = i < rows;

        ahead[u] = A.ahead(first + i, in);
        xi[u]    = in ? x[i] : 0;
      }
      wait();
      order_proxies();
      __syncthreads();
      if (i0 + chunk < rows) fetch(w, z, p, n, first + i0 + chunk, 1 - (turn & 1));
      for (int e = 2 * t; e < length; e += 2 * WINDOW_THREADS) {
        double2       a = *(double2 *)(d + e);
        const double2 b = *(double2 *)(before + e);

        a.x += beta * b.x;
        a.y += beta * b.y;
        *(double2 *)(d + e) = a;
      }
      __syncthreads();
#pragma unroll
      for (int u = 0; u < WINDOW_ROWS; u++) {
        const int    k = t + u * WINDOW_THREADS, i = i0 + k;
        const double sum = A.row_of_chunk(d, k, first + i, i < rows, ahead[u]);

        if (i < rows) f(i, sum, d[w.own + k], before[w.own + k], xi[u]);
      }
    }
  }
};

/* ---- where blocks meet ---- */

/* Blocks of a cluster, which write each other's shared memory: at most that many */
#define CLUSTER 16

#define LARGE        2048 /* rows of a block from which on a direction is not gathered */
#define WINDOWS_MOST 5120 /* elements of the windows of a chunk at most, four times which are in shared memory */

/* Bytes of shared memory beyond which the product's gathers would miss the first-level cache more than vectors gain; measured on an H200 */
#define SHARED_MOST (150 * 1024)

struct Meeting {
  ulonglong2 *slots; /* NULL: all blocks are one cluster */
  unsigned    epoch;
  double     *part, *all; /* shared: of each warp, and of each block of a cluster, twice */
  double     *total;      /* and of all, twice: those of the meeting before stay */
};

__device__ __forceinline__ double warp_sum(double v)
{
#pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

/* Sums over a warp of N numbers at once: lanes share the work, and which() says whose sum a lane has come to have */
template <int N>
struct WarpSums {
  static constexpr int wide = N <= 1 ? 1 : N <= 2 ? 2 : N <= 4 ? 4 : 8;

  static __device__ __forceinline__ int which(int lane)
  {
    return wide == 1 ? 0 : wide == 2 ? lane / 16 : wide == 4 ? lane / 8 : lane / 4;
  }

  static __device__ __forceinline__ double sum(const double (&v)[N], int lane)
  {
    double w[wide];

#pragma unroll
    for (int k = 0; k < wide; k++) w[k] = k < N ? v[k] : 0;
#pragma unroll
    for (int have = wide, o = 16; o; o >>= 1) {
      if (have > 1) {
        have /= 2;
#pragma unroll
        for (int k = 0; k < have; k++) {
          const double keep = lane & o ? w[k + have] : w[k], give = lane & o ? w[k] : w[k + have];

          w[k] = keep + __shfl_xor_sync(0xffffffffu, give, o);
        }
      } else w[0] += __shfl_xor_sync(0xffffffffu, w[0], o);
    }
    return w[0];
  }
};

/* What was written before by anybody in the block can be read by whoever sees what is published after */
__device__ __forceinline__ void fence()
{
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

__device__ __forceinline__ void publish(ulonglong2 *slot, double v, unsigned epoch)
{
  const unsigned long long bits = (unsigned long long)__double_as_longlong(v), flag = (unsigned long long)epoch << 32;

  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(slot), "l"(flag | (bits & 0xffffffffull)), "l"(flag | (bits >> 32)) : "memory");
}

/* The sum of what all blocks have published, each lane's share of it. Loads of AWAIT blocks are in flight together, and the warp stays together */
#define AWAIT 5

__device__ __forceinline__ double await(const ulonglong2 *slots, int blocks, unsigned epoch)
{
  double sum = 0;

  for (int b = threadIdx.x % 32; b - (int)threadIdx.x % 32 < blocks; b += AWAIT * 32) {
    unsigned long long low[AWAIT], high[AWAIT];
    bool               here;

    do {
      here = true;
#pragma unroll
      for (int u = 0; u < AWAIT; u++) {
        low[u] = high[u] = (unsigned long long)epoch << 32;
        if (b + 32 * u < blocks) asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(low[u]), "=l"(high[u]) : "l"(slots + b + 32 * u) : "memory");
      }
#pragma unroll
      for (int u = 0; u < AWAIT; u++) here = here && (unsigned)(low[u] >> 32) == epoch && (unsigned)(high[u] >> 32) == epoch;
    } while (!__all_sync(0xffffffffu, here));
#pragma unroll
    for (int u = 0; u < AWAIT; u++) sum += __longlong_as_double((long long)((high[u] << 32) | (low[u] & 0xffffffffull)));
  }
  return sum;
}

/* Into the same place of another block's shared memory */
__device__ __forceinline__ void tell(double *to, int block, double v)
{
#if __CUDA_ARCH__ >= 900
  unsigned there;

  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((unsigned)__cvta_generic_to_shared(to)), "r"(block));
  asm volatile("st.shared::cluster.f64 [%0], %1;" ::"r"(there), "d"(v) : "memory");
#endif
}

/* All threads of the cluster; what they wrote before arriving all may read after waiting */
__device__ __forceinline__ void cluster_arrive()
{
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

__device__ __forceinline__ void cluster_wait()
{
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

/*
  v[k], summed over all threads of all blocks. A block is at most one meeting ahead of another, so two sets of slots do. With FENCE what any
  thread wrote before can be read by all after. The first N warps add and wait; what the others do meanwhile costs nothing.
*/
template <int N, bool FENCE, class F>
__device__ __forceinline__ void exchange(Meeting &m, double (&v)[N], F meanwhile)
{
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, blocks = gridDim.x, set = m.epoch & 1;
  double   *total = m.total + set * GPUKSP_MEETING, sum = 0;

  {
    const int    k    = WarpSums<N>::which(lane);
    const double part = WarpSums<N>::sum(v, lane);

    if (k < N) m.part[k * MOST_WARPS + warp] = part; /* the lanes that have it have the same */
  }
  __syncthreads();
  if (warp < N) sum = warp_sum(lane < WARPS ? m.part[warp * MOST_WARPS + lane] : 0);
  if (!m.slots) {
    double *all = m.all + set * GPUKSP_MEETING * CLUSTER;

    if (warp < N && lane < blocks) tell(all + warp * CLUSTER + blockIdx.x, lane, sum);
    cluster_arrive();
    meanwhile();
    __syncwarp();
    cluster_wait();
    if (warp < N) sum = lane < blocks ? all[warp * CLUSTER + lane] : 0;
  } else {
    ulonglong2 *slots = m.slots + (size_t)(set * GPUKSP_MEETING + warp) * blocks;

    if (warp < N && lane == 0) {
      if (FENCE) fence();
      publish(slots + blockIdx.x, sum, m.epoch);
    }
    meanwhile();
    __syncwarp();
    if (warp < N) {
      sum = await(slots, blocks, m.epoch);
      if (FENCE) fence();
    }
  }
  if (warp < N) {
    sum = warp_sum(sum);
    if (lane == 0) total[warp] = sum;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < N; k++) v[k] = total[k];
  m.epoch++;
}

template <int N, bool FENCE>
__device__ __forceinline__ void exchange(Meeting &m, double (&v)[N])
{
  exchange<N, FENCE>(m, v, [] {});
}

__device__ __forceinline__ void meet(Meeting &m)
{
  double none[1] = {0};

  exchange<1, true>(m, none);
}

/* ---- the preconditioner, of the block's rows ---- */

template <class X>
struct Preconditioner {
  Rows<X>         d;     /* the diagonal, where there is one */
  const X        *block; /* rows of the diagonal blocks, whole; a block of rows holds whole ones */
  int             diagonal, bs, first;
  const uint16_t *id;    /* where the diagonal of a row is that of its stencil: which of these it has; no row of d is read then */
  const X        *table; /* in shared memory, and one over it; else NULL */
  int             tables;

  __device__ __forceinline__ X one_over(int i, X entry) const
  {
    return table ? table[tables + id[first + i]] : entry != X(0) ? 1 / entry : X(0);
  }

  __device__ __forceinline__ X entry(int i) const
  {
    return table ? table[id[first + i]] : d[i];
  }

  __device__ __forceinline__ X on_the_way(int i, X r) const
  {
    return diagonal ? entry(i) * r : r;
  }

  /* The block's part of it into shared memory */
  __device__ __forceinline__ void settle(const X *whole, const GPUKSPDiagonals &same, Pool &pool, int rows)
  {
    if (diagonal && same.table) {
      X *const t = pool.take<X>(2 * same.count);

      for (int i = threadIdx.x; i < same.count; i += THREADS) {
        const X v = same.table[i];

        t[i]              = v;
        t[same.count + i] = v != X(0) ? 1 / v : X(0);
      }
      table  = t;
      tables = same.count;
      id     = same.id;
    } else {
      d = pool.rows((X *)whole, first, rows);
      for (int i = threadIdx.x; i < d.resident && diagonal; i += THREADS) d.nearby[i] = d.far[i];
    }
  }

  /* r is complete in all rows of the block */
  template <class R>
  __device__ __forceinline__ X of(int i, const R &r) const
  {
    if (!bs) return on_the_way(i, r[i]);
    const int b = i - (first + i) % bs;
    X         z = 0;

    for (int j = 0; j < bs; j++) z += block[(int64_t)(first + i) * bs + j] * r[b + j];
    return z;
  }
};

template <class X, class V>
__device__ __forceinline__ Preconditioner<X> preconditioner(const V &v, int first)
{
  const X *d = v.degree ? v.diagonal : v.pc;

  return {
    {NULL, (X *)d + first, 0},
    v.block, d != NULL, v.block ? v.bs : 0, first, NULL, NULL, 0
  };
}

template <class X>
struct From {
  const X                     *p;
  __device__ __forceinline__ X operator[](int i) const
  {
    return p[i];
  }
};

__device__ __forceinline__ void add_norms(double r, double z, double (&sum)[3])
{
  sum[SUM_RR] += r * r;
  sum[SUM_ZZ] += z * z;
  sum[SUM_RZ] += r * z;
}

/* What a launch works on; M the matrix of the iteration, E the one of true residuals */
template <class M, class E>
struct Args {
  M               A;
  E               exact;
  GPUKSPVectors   v; /* of the iteration */
  GPUKSPVectors   w; /* of all; another in mixed alone */
  const int      *bounds, *reach;
  ulonglong2     *slots;
  GPUKSPState     start, *state;
  unsigned        epoch; /* of the first meeting: slots hold earlier ones */
  int             guard, right, n, windows;
  size_t          shared;
  GPUKSPDiagonals same;
};

#define FOR_ROWS(i) for (int i = threadIdx.x; i < rows; i += THREADS)

/* The loops of an iteration: several rows of a thread are read before the first is written, so that their loads are in flight together */
#define FOR_GROUPS(g)      for (int g = threadIdx.x; g < rows; g += GROUP * THREADS)
#define FOR_GROUPS_BACK(g) for (int g = (rows + GROUP * THREADS - 1) / (GROUP * THREADS) * (GROUP * THREADS) - GROUP * THREADS + threadIdx.x; g >= 0; g -= GROUP * THREADS)
#define FOR_GROUP(g, u, i) _Pragma("unroll") for (int u = 0, i = g; u < GROUP; u++, i += THREADS) if (i < rows)

/* The matrix of true residuals, where it is that of the iteration and where it is another */
template <class M>
__device__ __forceinline__ void settle_other(M &exact, const M &A, Pool &)
{
  exact = A;
}

template <class M, class E>
__device__ __forceinline__ void settle_other(E &exact, const M &, Pool &pool)
{
  exact.settle(pool);
}

/* CG by tiles: elements of the halo that a thread has in flight, and the loop over its own rows, which are in registers */
#define TILE_GROUP    6
#define TILE_ROWS     4 /* of a thread in blocks of 512 threads; in those of 1024, one */
#define FOR_OWN(k, i) _Pragma("unroll") for (int k = 0, i = threadIdx.x; k < ROWS; k++, i += SIZE) if (i < rows)

#if defined(KSP_STAMPS)
  #include <stdio.h>
  #define STAMPS_DECLARE \
    __shared__ long long ticks_[12], tick_; \
    if (threadIdx.x == 0) { \
      for (int u = 0; u < 12; u++) ticks_[u] = 0; \
      tick_ = clock64(); \
    }
  #define STAMP(k) \
    do { \
      if (threadIdx.x == 0) { \
        const long long t_ = clock64(); \
        ticks_[k] += t_ - tick_; \
        tick_ = t_; \
      } \
    } while (0)
  #define STAMPS_PRINT(what) \
    do { \
      if (threadIdx.x == 0 && blockIdx.x % 33 == 0) printf("STAMP block %d rows %d its %d %s: %lld %lld %lld %lld %lld %lld %lld %lld\n", (int)blockIdx.x, rows, st.its, what, ticks_[0] / st.its, ticks_[1] / st.its, ticks_[2] / st.its, ticks_[3] / st.its, ticks_[4] / st.its, ticks_[5] / st.its, ticks_[6] / st.its, ticks_[7] / st.its); \
    } while (0)
#else
  #define STAMPS_DECLARE
  #define STAMP(k)
  #define STAMPS_PRINT(what)
#endif

#define PROLOGUE \
  STAMPS_DECLARE \
  extern __shared__ __align__(16) char pool_[]; \
  __shared__ GPUKSPState               st; \
  __shared__ int                       stops[2]; \
  __shared__ double                    part_[GPUKSP_MEETING * MOST_WARPS], all_[2 * GPUKSP_MEETING * CLUSTER], total_[2 * GPUKSP_MEETING]; \
  const int                            first = a.bounds[blockIdx.x], last = a.bounds[blockIdx.x + 1], rows = last - first; \
  Pool                                 pool    = {pool_, a.shared}; \
  X                                   *scratch = (X *)pool_; \
  Meeting                              meeting = {a.slots, a.epoch, part_, all_, total_}; \
  M                                    A       = a.A; \
  if (A.shares()) { /* the most that a product asks for */ \
    pool.next += THREADS * sizeof(double); \
    pool.left -= THREADS * sizeof(double); \
  } \
  E exact = a.exact; \
  A.settle(pool); \
  settle_other(exact, A, pool); \
  if (threadIdx.x == 0) { \
    st = a.start; \
    if (blockIdx.x) st.hist = NULL; \
    stops[0] = stops[1] = 0; \
  } \
  if (!a.slots) { /* all are there now */ \
    cluster_arrive(); \
    cluster_wait(); \
  } \
  __syncthreads()

/* The thread that applies rules: of the warp that has rows last */
#define RULER (threadIdx.x == THREADS - 32)

/* Rules that need not be waited for: what follows is computed from the sums by every thread, and found to be too much one meeting later. stops[k] is read after
   the next meeting and written again after another one */
#define RULE_AHEAD(k, call) \
  do { \
    if (RULER) { \
      call; \
      stops[k] = st.reason; \
    } \
  } while (0)

/* One thread applies the rule, all see the outcome */
#define RULE(call) \
  do { \
    if (threadIdx.x == 0) { \
      call; \
    } \
    __syncthreads(); \
  } while (0)

/* z = a Chebyshev polynomial in A of r, whose rows the thread that has written them takes. A function of its own, which the solve without it must not make room for */
template <class X>
struct Polynomial {
  X     *now, *next, *left, *z;
  double emin, emax;
  int    degree;
};

template <class M, class X>
__device__ __noinline__ unsigned chebyshev(const M &A, Polynomial<X> v, const Preconditioner<X> pc, Meeting meeting, int first, int rows, X *scratch)
{
  X     *now = v.now, *next = v.next, *left = v.left, *z = v.z;
  double rho = 0, ca, cb;

  for (int k = 0; k < v.degree; k++) {
    if (k) {
      meet(meeting);
      A.product(Vector<X>{now}, first, first + rows, scratch, [&](int i, X s) { left[i] -= s; });
    }
    __syncthreads();
    rho = GPUKSPChebyshev(v.emin, v.emax, rho, &ca, &cb);
    FOR_ROWS(i)
    {
      const X y = pc.of(i, From<X>{left}), step = k ? X(ca) * now[first + i] + X(cb) * y : X(cb) * y;

      next[first + i] = step;
      z[i]            = k ? z[i] + step : step;
    }
    { /* others still read it */
      X *const old = now;

      now  = next;
      next = old;
    }
  }
  __syncthreads();
  return meeting.epoch;
}

template <class M, class X, class V, class R>
__device__ __forceinline__ void polynomial(const M &A, const V &v, const Preconditioner<X> &pc, Meeting &meeting, int first, int rows, X *scratch, const R &r)
{
  FOR_ROWS(i) v.c2[first + i] = r[i];
  meeting.epoch               = chebyshev<M, X>(A, {v.c0, v.c1, v.c2 + first, v.z + first, v.emin, v.emax, v.degree}, pc, meeting, first, rows, scratch);
}

/* x - the true residual, in the norm of the test, into st.truenorm; x and w are whole vectors */
template <bool POLYNOMIAL, class E>
__device__ void true_norm(const E &A, const GPUKSPVectors &v, GPUKSPState &st, Meeting &meeting, int first, int rows, double *scratch, int right)
{
  double                       sum[3] = {0, 0, 0};
  double                      *w      = v.w + first;
  const double                *b      = v.b + first;
  const Preconditioner<double> pc     = preconditioner<double>(v, first);

  meet(meeting);
  A.product(Vector<double>{v.x}, first, first + rows, scratch, [&](int i, double s) { w[i] = b[i] - s; });
  __syncthreads();
  if constexpr (POLYNOMIAL) polynomial(A, v, pc, meeting, first, rows, scratch, w);
  FOR_ROWS(i) add_norms(w[i], right ? w[i] : POLYNOMIAL ? v.z[first + i] : pc.of(i, From<double>{w}), sum);
  exchange<3, false>(meeting, sum);
  RULE(st.scale = 1; st.truenorm = GPUKSPNorm(&st, sum));
}

/*
  How the product of an iteration has its direction: gathered from its two parts; from windows that are put together in shared memory; or from a vector, written before at
  the price of a meeting, where columns are anywhere and the gathers of two vectors would cost more.
*/
enum {
  GATHERED,
  BY_WINDOWS,
  WRITTEN
};

template <class M, class E, bool POLYNOMIAL, bool MIXED, int HOW>
__global__ void __launch_bounds__(HOW == BY_WINDOWS ? WINDOW_THREADS : MOST_THREADS, 1) cg_kernel(const Args<M, E> a)
{
  typedef double X;
  PROLOGUE;
  constexpr int GROUP = HOW == BY_WINDOWS ? 6 : 4;
  Windows       windows;

  if constexpr (HOW == BY_WINDOWS) windows.settle(pool, a.windows);
  const Preconditioner<double> exactpc = preconditioner<double>(a.w, first);
  const Rows<X>                w = pool.rows(a.v.w, first, rows), x = pool.rows(a.v.x, first, rows);
  Preconditioner<X>            pc = preconditioner<X>(a.v, first);

  pc.settle(POLYNOMIAL ? a.v.diagonal : a.v.pc, a.same, pool, rows);
  const Rows<X> r = pool.rows(a.v.r, first, rows);                                            /* after the start only where keeps is set: else r = z / d */
  X            *z = a.v.z + first, *p = a.v.p + first, *q = a.v.p2 + first;                   /* the direction, and the one before or to come */
  const bool    keeps = pc.bs || POLYNOMIAL || a.start.normtype == KSP_NORM_UNPRECONDITIONED; /* z is no matter of a single row, or r itself is asked for */
  double        s3[3], s1[1];

  FOR_ROWS(i) p[i] = 0;

  /* r = b - A x, bnorm, and the first norms */
  if (!st.guesszero) {
    double bb[3] = {0, 0, 0};

    if constexpr (MIXED) {
      exact.product(Vector<double>{a.w.x}, first, last, (double *)scratch, [&](int i, double s) { a.w.r[first + i] = a.w.b[first + i] - s; });
      FOR_ROWS(i) add_norms(a.w.b[first + i], exactpc.of(i, From<double>{a.w.b + first}), bb);
    } else {
      A.product(Vector<X>{a.v.x}, first, last, scratch, [&](int i, X s) { r[i] = a.v.b[first + i] - s; });
      if constexpr (POLYNOMIAL) polynomial(A, a.v, pc, meeting, first, rows, scratch, a.v.b + first);
      FOR_ROWS(i)
      {
        x[i] = a.v.x[first + i];
        add_norms(a.v.b[first + i], POLYNOMIAL ? z[i] : pc.of(i, From<X>{a.v.b + first}), bb);
      }
    }
    exchange<3, false>(meeting, bb);
    RULE(st.bnorm = GPUKSPNorm(&st, bb));
  } else {
    FOR_ROWS(i)
    {
      if constexpr (MIXED) {
        a.w.r[first + i] = a.w.b[first + i];
        a.w.x[first + i] = 0;
      } else {
        r[i] = a.v.b[first + i];
        x[i] = 0;
      }
    }
  }
  __syncthreads();
  s3[0] = s3[1] = s3[2] = 0;
  if constexpr (MIXED) {
    FOR_ROWS(i) add_norms(a.w.r[first + i], exactpc.of(i, From<double>{a.w.r + first}), s3);
  } else {
    if constexpr (POLYNOMIAL) polynomial(A, a.v, pc, meeting, first, rows, scratch, r);
    FOR_ROWS(i)
    {
      const X zi = POLYNOMIAL ? z[i] : pc.of(i, r);

      z[i] = zi;
      add_norms(r[i], zi, s3);
    }
  }
  exchange<3, true>(meeting, s3);
  if constexpr (MIXED) {
    RULE(CGInit(&st, s3); st.scale = s3[SUM_RR] > 0 ? sqrt(s3[SUM_RR]) : 1; st.rho /= st.scale * st.scale; CGBegin(&st));
    FOR_ROWS(i)
    {
      r[i] = (X)(a.w.r[first + i] / st.scale);
      x[i] = 0;
    }
    __syncthreads();
    FOR_ROWS(i) z[i] = pc.of(i, r);
    meet(meeting);
  } else {
    RULE(CGInit(&st, s3); CGBegin(&st));
  }

  double rho    = st.rho;
  X      xalpha = 0, beta = (X)st.beta;
  bool   stop = st.reason || st.giveup;

  while (!stop) {
    s1[0] = 0;
    if constexpr (HOW == BY_WINDOWS) {
      windows.product(A, a.v.z, p - first, beta, a.n, first, rows, x, [&](int i, X s, X now, X before, X xi) {
        w[i] = s;
        q[i] = now;
        x[i] = xi + xalpha * before;
        s1[0] += now * s;
      });
    } else if constexpr (HOW == WRITTEN) {
      FOR_GROUPS(g)
      {
        X zi[GROUP], pi[GROUP], xi[GROUP];

        FOR_GROUP(g, u, i)
        {
          zi[u] = z[i];
          pi[u] = p[i];
          xi[u] = x[i];
        }
        FOR_GROUP(g, u, i)
        {
          q[i] = zi[u] + beta * pi[u];
          x[i] = xi[u] + xalpha * pi[u];
        }
      }
      meet(meeting);
      A.product(Vector<X>{q - first}, first, last, scratch, [&](int i, X s) {
        w[i] = s;
        s1[0] += q[i] * s;
      });
    } else {
      A.product(Direction<X>{a.v.z, p - first, beta}, first, last, scratch, [&](int i, X s) {
        const X before = p[i], now = z[i] + beta * before;

        w[i] = s;
        q[i] = now;
        x[i] += xalpha * before;
        s1[0] += (double)now * (double)s;
      });
    }
    STAMP(0);
    xalpha = 0;
    { /* others still read p */
      X *const old = p;

      p = q;
      q = old;
    }
    exchange<1, false>(meeting, s1);
    STAMP(1);
    if (stops[1]) break;
    RULE_AHEAD(0, CGCurvature(&st, s1[0]));
    xalpha = (X)(rho / s1[0]);
    s3[0] = s3[1] = s3[2] = 0;
    if (!keeps) {
      FOR_GROUPS_BACK(g)
      {
        X zi[GROUP], wi[GROUP], di[GROUP], ei[GROUP];

        FOR_GROUP(g, u, i)
        {
          zi[u] = z[i];
          wi[u] = w[i];
          di[u] = ei[u] = 1;
          if (pc.diagonal) {
            di[u] = pc.entry(i);
            ei[u] = pc.one_over(i, di[u]);
          }
        }
        FOR_GROUP(g, u, i)
        {
          zi[u] -= xalpha * (di[u] * wi[u]);
          z[i] = zi[u];
          add_norms(zi[u] * ei[u], zi[u], s3);
        }
      }
    } else {
      FOR_ROWS(i) r[i] -= xalpha * w[i];
      __syncthreads();
      if constexpr (POLYNOMIAL) polynomial(A, a.v, pc, meeting, first, rows, scratch, r);
      FOR_ROWS(i)
      {
        const X zi = POLYNOMIAL ? z[i] : pc.of(i, r);

        z[i] = zi;
        add_norms(r[i], zi, s3);
      }
    }
    STAMP(2);
    exchange<3, true>(meeting, s3);
    STAMP(3);
    if (stops[0]) { /* no step, then: x is where the one before has left it */
      xalpha = 0;
      break;
    }
    if constexpr (MIXED) {
      RULE(CGResidual(&st, s3); CGMixed(&st));
      if (st.replace) {
        FOR_ROWS(i)
        {
          const double xi = (double)x[i] + st.xalpha * (double)p[i];

          a.w.x[first + i] += st.scale * xi;
          x[i] = 0;
        }
        meet(meeting);
        exact.product(Vector<double>{a.w.x}, first, last, (double *)scratch, [&](int i, double s) { a.w.r[first + i] = a.w.b[first + i] - s; });
        __syncthreads();
        s3[0] = s3[1] = s3[2] = 0;
        FOR_ROWS(i) add_norms(a.w.r[first + i], exactpc.of(i, From<double>{a.w.r + first}), s3);
        exchange<3, false>(meeting, s3);
        RULE(CGReplaced(&st, s3, s3[SUM_RR] > 0 ? sqrt(s3[SUM_RR]) : 1));
        FOR_ROWS(i) r[i] = (X)(a.w.r[first + i] / st.scale);
        __syncthreads();
        FOR_ROWS(i) z[i] = pc.of(i, r);
        meet(meeting);
      }
      RULE(if (!st.giveup) CGNext(&st));
      stop   = st.reason || st.giveup;
      xalpha = (X)st.xalpha;
      beta   = (X)st.beta;
      rho    = st.rho;
    } else {
      RULE_AHEAD(1, CGResidual(&st, s3); CGNext(&st));
      beta = (X)(s3[SUM_RZ] / rho);
      rho  = s3[SUM_RZ];
    }
  }
  __syncthreads();
  STAMPS_PRINT("cg: product, meeting, update, meeting");

  /* the last step of x; what is resident goes home */
  FOR_ROWS(i)
  {
    const X step = xalpha != X(0) ? xalpha * p[i] : X(0); /* p may be no number after a breakdown */

    if constexpr (MIXED) a.w.x[first + i] += st.scale * ((double)x[i] + (double)step);
    else a.v.x[first + i] = x[i] + step;
  }
  if (a.guard) true_norm<POLYNOMIAL>(exact, a.w, st, meeting, first, rows, (double *)scratch, 0);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    st.epoch = meeting.epoch;
    *a.state = st;
  }
}

/*
  Conjugate gradients where a block has room in shared memory for all that its rows need of z and p, the halo included: one meeting an iteration.

  The halo of z and p is computed again by every block that needs it, from the halo of y = M A p alone: z -= alpha y, p = z + beta p. That needs both step lengths
  after one reduction. rho of the next residual is therefore predicted, (r - alpha w)'M(r - alpha w) with w = A p, for beta alone, and summed again beside the next
  p'A p, for alpha and for the tests: T. Chen, E. Carson, SIAM J. Sci. Comput. 42 (2020), "Predict-and-recompute conjugate gradient variants".

  The rules run behind: those of one meeting during the next. x takes each step when it is known that it is to be taken.
*/
template <class M, class E, int SIZE, int ROWS>
__global__ void __launch_bounds__(SIZE, 1) cg_tile_kernel(const Args<M, E> a)
{
  typedef double X;
  enum {
    MU,    /* p'w */
    DELTA, /* z'w */
    GAMMA, /* w'y */
    RHO,   /* r'z */
    NORM,
    SUMS
  };
  PROLOGUE;
  const int  lo = a.reach[2 * blockIdx.x], count = a.reach[2 * blockIdx.x + 1] - lo, own = first - lo, halo = count - rows;
  X         *z = pool.take<X>(count), *p = pool.take<X>(count), *w = pool.take<X>(rows);
  X          ri[ROWS], zi[ROWS], xi[ROWS], step[ROWS], di[ROWS]; /* of the thread's own rows */
  const bool unpreconditioned = a.start.normtype == KSP_NORM_UNPRECONDITIONED;

  FOR_OWN(k, i)
  {
    di[k]   = a.v.pc ? a.v.pc[first + i] : X(1);
    step[k] = 0;
    xi[k]   = st.guesszero ? X(0) : a.v.x[first + i];
    ri[k]   = a.v.b[first + i];
  }
  if (st.guesszero) {
    for (int i = threadIdx.x; i < count; i += THREADS) z[i] = p[i] = (a.v.pc ? a.v.pc[lo + i] : X(1)) * a.v.b[lo + i];
  } else {
    double bb[3] = {0, 0, 0};

    A.product(Vector<X>{a.v.x}, first, last, scratch, [&](int i, X sum) { w[i] = sum; });
    __syncthreads();
    FOR_OWN(k, i)
    {
      add_norms(ri[k], di[k] * ri[k], bb);
      ri[k] -= w[i];
      a.v.z[first + i] = di[k] * ri[k];
    }
    exchange<3, true>(meeting, bb);
    RULE(st.bnorm = GPUKSPNorm(&st, bb));
    for (int i = threadIdx.x; i < count; i += THREADS) z[i] = p[i] = a.v.z[lo + i];
  }
  __syncthreads();
  FOR_OWN(k, i) zi[k] = z[own + i];
  STAMP(7);

  for (int n = 0;; n++) {
    X *const y         = n & 1 ? a.v.p2 : a.v.p; /* others may be a meeting behind */
    double   sum[SUMS] = {0, 0, 0, 0, 0};

    A.product(Tile<X>{p - lo}, first, last, scratch, [&](int i, X wi) { w[i] = wi; });
    __syncthreads();
    STAMP(0);
    FOR_OWN(k, i)
    {
      const X wi = w[i], pi = p[own + i], yi = di[k] * wi, norm = unpreconditioned ? ri[k] : zi[k];

      y[first + i] = yi;
      sum[MU] += pi * wi;
      sum[DELTA] += zi[k] * wi;
      sum[GAMMA] += wi * yi;
      sum[RHO] += ri[k] * zi[k];
      sum[NORM] += norm * norm;
    }
    STAMP(1);
    exchange<SUMS, true>(meeting, sum, [&] {
      if (RULER && n) {
        const double *before = meeting.total + (~meeting.epoch & 1) * GPUKSP_MEETING, norms[3] = {before[NORM], before[NORM], before[RHO]};

        if (n > 1) {
          CGResidual(&st, norms);
          CGNext(&st);
        } else {
          CGInit(&st, norms);
          CGBegin(&st);
        }
        if (!st.reason) CGCurvature(&st, before[MU]);
        stops[0] = st.reason;
      }
    });
    STAMP(2);
    if (stops[0]) break;

    const X mu = 1 / sum[MU], alpha = sum[RHO] * mu, beta = fmax(0.0, 1 + (alpha * sum[GAMMA] - 2 * sum[DELTA]) * mu);

    for (int g = threadIdx.x; g < halo; g += TILE_GROUP * THREADS) {
      X yi[TILE_GROUP];

#pragma unroll
      for (int u = 0; u < TILE_GROUP; u++) {
        const int h = g + u * THREADS;

        if (h < halo) yi[u] = y[lo + (h < own ? h : h + rows)];
      }
#pragma unroll
      for (int u = 0; u < TILE_GROUP; u++) {
        const int h = g + u * THREADS, t = h < own ? h : h + rows;

        if (h < halo) {
          const X zt = z[t] - alpha * yi[u];

          z[t] = zt;
          p[t] = zt + beta * p[t];
        }
      }
    }
    STAMP(3);
    FOR_OWN(k, i)
    {
      const X wi = w[i], before = p[own + i];

      zi[k] -= alpha * (di[k] * wi);
      ri[k] -= alpha * wi;
      xi[k] += step[k];
      step[k]    = alpha * before;
      p[own + i] = zi[k] + beta * before;
    }
    STAMP(4);
    __syncthreads();
    STAMP(5);
  }
  __syncthreads();
  STAMPS_PRINT("tile: product, sums, meeting, halo, own, barrier and rules");
  FOR_OWN(k, i) a.v.x[first + i] = xi[k];
  if (a.guard) true_norm<false>(exact, a.w, st, meeting, first, rows, (double *)scratch, 0);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    st.epoch = meeting.epoch;
    *a.state = st;
  }
}

/* The first column that a block's rows have, and the one after the last; its own rows are counted in */
template <class M>
__global__ void __launch_bounds__(MOST_THREADS, 1) reach_kernel(M A, const int *bounds, int *reach)
{
  extern __shared__ __align__(16) char pool_[];
  __shared__ double                    scratch[MOST_THREADS];
  __shared__ int                       ends[2];
  Pool                                 pool  = {pool_, 0};
  const int                            first = bounds[blockIdx.x], last = bounds[blockIdx.x + 1];
  int                                  lo = first, hi = last;

  A.settle(pool);
  if (threadIdx.x < 2) ends[threadIdx.x] = threadIdx.x ? last : first;
  __syncthreads();
  A.product(Reach{&lo, &hi}, first, last, scratch, [](int, double) {});
  atomicMin(&ends[0], lo);
  atomicMax(&ends[1], hi);
  __syncthreads();
  if (threadIdx.x < 2) reach[2 * blockIdx.x + threadIdx.x] = ends[threadIdx.x];
}

template <class M, class E>
__global__ void __launch_bounds__(MOST_THREADS, 1) cg1_kernel(const Args<M, E> a)
{
  typedef double X;
  constexpr int  GROUP = 4;
  PROLOGUE;
  const Rows<X>     w = pool.rows(a.v.w, first, rows), r = pool.rows(a.v.r, first, rows), s = pool.rows(a.v.s, first, rows), p = pool.rows(a.v.p, first, rows);
  Preconditioner<X> pc = preconditioner<X>(a.v, first);

  pc.settle(a.v.pc, a.same, pool, rows);
  const Rows<X> x = pool.rows(a.v.x, first, rows);
  X            *z = a.v.z + first;
  double        s4[4], none[3] = {0, 0, 0};

  if (!st.guesszero) {
    A.product(Vector<X>{a.v.x}, first, last, scratch, [&](int i, X sum) { r[i] = a.v.b[first + i] - sum; });
    FOR_ROWS(i)
    {
      x[i] = a.v.x[first + i];
      add_norms(a.v.b[first + i], pc.of(i, From<X>{a.v.b + first}), none);
    }
    exchange<3, false>(meeting, none);
    RULE(st.bnorm = GPUKSPNorm(&st, none));
  }
  FOR_ROWS(i)
  {
    p[i] = w[i] = 0;
    if (st.guesszero) {
      r[i] = a.v.b[first + i];
      x[i] = 0;
    }
  }
  __syncthreads();
  FOR_ROWS(i) z[i] = pc.of(i, r);
  for (int start = 1;; start = 0) {
    double n3[3] = {0, 0, 0};

    meet(meeting);
    s4[SUM_ZS] = 0;
    A.product(Vector<X>{a.v.z}, first, last, scratch, [&](int i, X sum) {
      s[i] = sum;
      s4[SUM_ZS] += (double)z[i] * (double)sum;
    });
    FOR_ROWS(i) add_norms(r[i], z[i], n3);
    s4[SUM_RR] = n3[SUM_RR];
    s4[SUM_ZZ] = n3[SUM_ZZ];
    s4[SUM_RZ] = n3[SUM_RZ];
    exchange<4, false>(meeting, s4);
    if (start) RULE(CGInit(&st, s4); CGBeginSingle(&st));
    else RULE(CGResidual(&st, s4); CGNextSingle(&st));
    if (st.reason) break;
    const X beta = (X)st.beta, alpha = (X)st.alpha;

    FOR_GROUPS(g)
    {
      X pi[GROUP], wi[GROUP], ri[GROUP], xi[GROUP];

      FOR_GROUP(g, u, i)
      {
        pi[u] = z[i] + beta * p[i];
        wi[u] = s[i] + beta * w[i];
        ri[u] = r[i];
        xi[u] = x[i];
      }
      FOR_GROUP(g, u, i)
      {
        p[i] = pi[u];
        w[i] = wi[u];
        x[i] = xi[u] + alpha * pi[u];
        ri[u] -= alpha * wi[u];
        r[i] = ri[u];
        if (!pc.bs) z[i] = pc.on_the_way(i, ri[u]);
      }
    }
    if (pc.bs) {
      __syncthreads();
      FOR_ROWS(i) z[i] = pc.of(i, r);
    }
  }
  __syncthreads();
  FOR_ROWS(i) a.v.x[first + i] = x[i];
  if (a.guard) true_norm<false>(exact, a.w, st, meeting, first, rows, (double *)scratch, 0);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    st.epoch = meeting.epoch;
    *a.state = st;
  }
}

template <class M, class E>
__global__ void __launch_bounds__(MOST_THREADS, 1) bcgs_kernel(const Args<M, E> a)
{
  typedef double X;
  constexpr int  GROUP = 4;
  PROLOGUE;
  const Rows<X>     t = pool.rows(a.v.t, first, rows), s = pool.rows(a.v.s, first, rows), rp = pool.rows(a.v.rp, first, rows);
  Preconditioner<X> pc = preconditioner<X>(a.v, first);

  pc.settle(a.v.pc, a.same, pool, rows);
  const Rows<X> x = pool.rows(a.v.x, first, rows);
  const Rows<X> w = pool.rows(a.v.block ? a.v.w : (X *)NULL, first, rows);
  X            *r = a.v.r + first, *ph = a.v.ph + first, *sh = a.v.sh + first;
  X            *p = a.v.p + first, *q = a.v.p2 + first, *v = a.v.v + first, *u = a.v.v2 + first; /* as they are, and as they were or will be */
  const bool    hat = a.v.ph != a.v.p;                                                           /* the preconditioner comes first */
  const X      *d   = hat ? a.v.pc : NULL;
  double        s1[1], s2[2], s3[3];

  FOR_ROWS(i)
  {
    x[i] = st.guesszero ? X(0) : a.v.x[first + i];
    p[i] = v[i] = 0;
  }
  /* r = b - A x, preconditioned from the left */
  if (!st.guesszero) {
    double bb[3] = {0, 0, 0};

    A.product(Vector<X>{a.v.x}, first, last, scratch, [&](int i, X sum) { t[i] = a.v.b[first + i] - sum; });
    FOR_ROWS(i) add_norms(a.v.b[first + i], a.right ? a.v.b[first + i] : pc.of(i, From<X>{a.v.b + first}), bb);
    exchange<3, false>(meeting, bb);
    RULE(st.bnorm = GPUKSPNorm(&st, bb));
  } else {
    FOR_ROWS(i) t[i] = a.v.b[first + i];
  }
  __syncthreads();
  s1[0] = 0;
  FOR_ROWS(i)
  {
    const X ri = a.right ? t[i] : pc.of(i, t);

    r[i] = rp[i] = ri;
    s1[0] += (double)ri * (double)ri;
  }
  exchange<1, true>(meeting, s1);
  RULE(BCGSInit(&st, s1[0]); BCGSBegin(&st));

  while (!st.reason) {
    const X omegabeta = (X)(st.omegaold * st.beta), beta = (X)st.beta;

    /* v = A p, preconditioned; p = r - omegabeta v + beta p */
    s1[0] = 0;
    {
      const BCGSWhole<X> direction = {a.v.r, v - first, p - first, d, omegabeta, beta};
      const auto         keep      = [&](int i, X vi) {
        u[i] = vi;
        s1[0] += (double)vi * (double)rp[i];
      };

      FOR_ROWS(i) q[i] = r[i] - omegabeta * v[i] + beta * p[i];
      if (!pc.bs) A.product(direction, first, last, scratch, [&](int i, X sum) { keep(i, hat ? sum : pc.on_the_way(i, sum)); });
      else if (hat) {
        __syncthreads();
        FOR_ROWS(i) ph[i] = pc.of(i, From<X>{q});
        meet(meeting);
        A.product(Vector<X>{a.v.ph}, first, last, scratch, keep);
      } else {
        A.product(direction, first, last, scratch, [&](int i, X sum) { w[i] = sum; });
        __syncthreads();
        FOR_ROWS(i) keep(i, pc.of(i, w));
      }
    }
    { /* others still read p and v */
      X *const oldp = p, *const oldv = v;

      p = q;
      v = u;
      q = oldp;
      u = oldv;
    }
    exchange<1, true>(meeting, s1);
    RULE(BCGSDirection(&st, s1[0]));
    if (st.reason) break;
    const X alpha = (X)st.alpha;

    /* t = A s, preconditioned; s = r - alpha v */
    s3[0] = s3[1] = s3[2] = 0;
    {
      const BCGSHalf<X> half      = {a.v.r, v - first, d, alpha};
      const auto        stabilize = [&](int i, X ti) {
        const X si = r[i] - alpha * v[i];

        t[i] = ti;
        s[i] = si;
        s3[0] += (double)si * (double)ti;
        s3[1] += (double)ti * (double)ti;
        s3[2] += (double)si * (double)si;
      };

      if (!pc.bs) A.product(half, first, last, scratch, [&](int i, X sum) { stabilize(i, hat ? sum : pc.on_the_way(i, sum)); });
      else if (hat) {
        FOR_ROWS(i) s[i] = r[i] - alpha * v[i];
        __syncthreads();
        FOR_ROWS(i) sh[i] = pc.of(i, s);
        meet(meeting);
        A.product(Vector<X>{a.v.sh}, first, last, scratch, stabilize);
      } else {
        A.product(half, first, last, scratch, [&](int i, X sum) { w[i] = sum; });
        __syncthreads();
        FOR_ROWS(i) stabilize(i, pc.of(i, w));
      }
    }
    exchange<3, false>(meeting, s3);
    RULE(BCGSStabilize(&st, s3[0], s3[1], s3[2]));
    if (st.lucky) {
      FOR_ROWS(i) x[i] += (X)st.alpha * (!hat ? p[i] : pc.bs ? ph[i] : pc.entry(i) * p[i]);
    }
    if (st.reason) break;
    s2[0] = s2[1] = 0;
    const X omega = (X)st.omega;

    FOR_GROUPS(g)
    {
      X xi[GROUP], pi[GROUP], hi[GROUP], ri[GROUP], ti[GROUP], oi[GROUP];

      FOR_GROUP(g, k, i)
      {
        const bool on_the_way = hat && !pc.bs, before = hat && pc.bs;

        xi[k] = x[i];
        ri[k] = s[i];
        pi[k] = before ? ph[i] : p[i];
        hi[k] = before ? sh[i] : ri[k];
        if (on_the_way) {
          const X di = pc.entry(i);

          pi[k] *= di;
          hi[k] *= di;
        }
        ti[k] = t[i];
        oi[k] = rp[i];
      }
      FOR_GROUP(g, k, i)
      {
        x[i] = xi[k] + (alpha * pi[k] + omega * hi[k]);
        ri[k] -= omega * ti[k];
        r[i] = ri[k];
        s2[0] += (double)ri[k] * (double)ri[k];
        s2[1] += (double)ri[k] * (double)oi[k];
      }
    }
    exchange<2, true>(meeting, s2);
    RULE(BCGSResidual(&st, s2[0], s2[1]); BCGSNext(&st));
  }
  FOR_ROWS(i) a.v.x[first + i] = x[i];
  if (a.guard) true_norm<false>(exact, a.w, st, meeting, first, rows, (double *)scratch, a.right);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    st.epoch = meeting.epoch;
    *a.state = st;
  }
}

/* ---- ranges of rows of about equal work ---- */

/* prefix[r / step] * weight entries are stored before row r, as many before all rows where prefix is NULL; a row itself costs as much as ROW entries */
#define ROW 6

__global__ void partition_kernel(int m, int step, int weight, const int *prefix, int align, int blocks, int *bounds)
{
  const int     b = (int)(blockIdx.x * blockDim.x + threadIdx.x), units = (m + align - 1) / align;
  const int64_t all = (prefix ? (int64_t)weight * prefix[(m + step - 1) / step] : 0) + (int64_t)ROW * m, want = all / blocks * b + all % blocks * b / blocks;
  int           low = 0, high = units;

  if (b > blocks) return;
  while (low < high) {
    const int     mid = low + (high - low) / 2, r = min(m, mid * align);
    const int64_t before = (prefix ? (int64_t)weight * prefix[(r + step - 1) / step] : 0) + (int64_t)ROW * r;

    if (before < want) low = mid + 1;
    else high = mid;
  }
  bounds[b] = b == blocks ? m : min(m, low * align);
}

PetscErrorCode GPUKSPLaunchPartition(const GPUCSRStorage *A, int align, int blocks, int *bounds, GPUCSRStream s)
{
  const bool sell   = A->format->ops == &GPUCSRFormat_sell;
  const int *prefix = NULL;

  PetscFunctionBegin;
  while (align % GPUCSR_SLICE) align *= 2;
  if (sell && A->array[SELL_PERM].count)
    while (align % A->format->variant) align *= 2;
  if (GPUCSRIsCSR(A->format)) prefix = (const int *)A->array[CSR_ROWPTR].data;
  else if (sell && A->array[SELL_SLICE].count) prefix = (const int *)A->array[SELL_SLICE].data;
  partition_kernel<<<GPUCSRBlocks(blocks + 1, 128), 128, 0, (cudaStream_t)s>>>(A->m, sell ? GPUCSR_SLICE : 1, sell ? GPUCSR_SLICE : 1, prefix, align, blocks, bounds);
  GPUCSRCheckLaunch("the partition of a solve");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- from the host ---- */

template <class V>
static Sell<V> sell_of(const GPUCSRStorage *A, const GPUKSPLaunch *, int threads, int keep)
{
  return {A->array[SELL_SLICE].count ? (const int *)A->array[SELL_SLICE].data : NULL, A->array[SELL_PERM].count ? (const int *)A->array[SELL_PERM].data : NULL, (const int *)A->array[SELL_COL].data, (const V *)A->array[SELL_VAL].data, A->extent.width, threads, keep};
}

template <class V>
static Dia<V> dia_of(const GPUCSRStorage *A, const GPUKSPLaunch *L, int threads, int keep)
{
  return {(const int *)A->array[DIA_OFFSET].data, (const V *)A->array[DIA_VAL].data, (int)A->extent.units, A->n, threads, keep, NULL, L->windows};
}

template <class V>
static Stencil<V> stencil_of(const GPUCSRStorage *A, const GPUKSPLaunch *L, int threads, int)
{
  Stencil<V> S = {(const uint16_t *)A->array[STENCIL_ID].data, (const int *)A->array[STENCIL_BEGIN].data, (const int *)A->array[STENCIL_OFFSET].data, (const V *)A->array[STENCIL_VAL].data, (int)A->extent.units, (int)A->extent.stored, threads, NULL, NULL, NULL, L->common, L->windows};

  for (int k = 0; k < S.common.count; k++) {
    S.common.value[k] = (double)(V)S.common.value[k];
    S.common.at[k]    = L->windows.at(S.common.offset[k]);
  }
  return S;
}

template <class V>
static Csr<V> csr_of(const GPUCSRStorage *A, const GPUKSPLaunch *, int threads, int keep)
{
  return {(const int *)A->array[CSR_ROWPTR].data, (const int *)A->array[CSR_COL].data, (const V *)A->array[CSR_VAL].data, threads, keep};
}

/* Does it all stay in the last-level cache between iterations? */
static int fits(const GPUCSRStorage *A, size_t entry)
{
  const double column = A->format->ops == &GPUCSRFormat_dia ? 0 : 4;

  return (double)A->stored * (column + (double)entry) + 8.0 * 4.0 * (double)A->m < 0.9 * (double)A->dev->props.l2;
}

/* Fills in the kernel and its arguments, then either asks about the kernel or launches it */
template <class M, class E>
static PetscErrorCode with(const GPUKSPLaunch *L, M A, E exact, const GPUKSPVectors &v, void *kernel, int *possible, GPUCSRStream s)
{
  PetscFunctionBegin;
  if (possible) {
    struct cudaFuncAttributes attr;
    int                       limit;

    GPUCSR_CUDA(cudaFuncGetAttributes(&attr, kernel));
    GPUCSR_CUDA(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, L->A->dev->id));
    *possible = limit - (int)attr.sharedSizeBytes;
    GPUCSR_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, *possible));
    if (L->cluster) { /* a device may have clusters, but none of so many blocks */
      cudaLaunchConfig_t  config    = {};
      cudaLaunchAttribute attribute = {};
      int                 most      = 0;

      attribute.id             = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim = {(unsigned)L->blocks, 1, 1};
      config.gridDim           = dim3((unsigned)L->blocks);
      config.blockDim          = dim3((unsigned)L->size);
      config.dynamicSmemBytes  = (size_t)PetscMin(*possible, SHARED_MOST);
      config.attrs             = &attribute;
      config.numAttrs          = 1;
      if (cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) || cudaOccupancyMaxActiveClusters(&most, kernel, &config) || most < 1) {
        (void)cudaGetLastError();
        *possible = -1;
      }
    }
  } else {
    Args<M, E>                a         = {A, exact, v, L->v, L->bounds, L->reach, L->cluster ? NULL : (ulonglong2 *)L->slots, *L->state, L->state, L->epoch, (int)L->guard, (int)L->right, L->A->m, L->windows.length, L->shared, L->same};
    void                     *args[]    = {&a};
    cudaLaunchConfig_t        config    = {};
    cudaLaunchAttribute       attribute = {};
    struct cudaFuncAttributes attr;
    int                       all;

    GPUCSR_CUDA(cudaFuncGetAttributes(&attr, kernel));
    GPUCSR_CUDA(cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, L->A->dev->id));
    /* no more of the first-level cache than is asked for */
    GPUCSR_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, (int)PetscMin(100, (100 * (L->shared + attr.sharedSizeBytes + 1024) + (size_t)all - 1) / (size_t)all)));
    config.gridDim          = dim3((unsigned)L->blocks);
    config.blockDim         = dim3((unsigned)L->size);
    config.dynamicSmemBytes = L->shared;
    config.stream           = (cudaStream_t)s;
    config.attrs            = &attribute;
    config.numAttrs         = 1;
    if (L->cluster) {
      GPUCSR_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
      attribute.id             = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim = {(unsigned)L->blocks, 1, 1};
    } else {
      attribute.id              = cudaLaunchAttributeCooperative;
      attribute.val.cooperative = 1;
    }
    GPUCSR_CUDA(cudaLaunchKernelExC(&config, kernel, args));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Formats with windows have offsets; columns of the others may be anywhere */
template <class M>
struct offsets {
  static constexpr bool known = false;
};
template <class V>
struct offsets<Stencil<V>> {
  static constexpr bool known = true;
};
template <class V>
struct offsets<Dia<V>> {
  static constexpr bool known = true;
};

template <class M, class E, bool MIXED>
static void *cg_of(const GPUKSPLaunch *L)
{
  if constexpr (offsets<M>::known) return L->windows.count ? (void *)cg_kernel<M, E, false, MIXED, BY_WINDOWS> : (void *)cg_kernel<M, E, false, MIXED, GATHERED>;
  else return L->written ? (void *)cg_kernel<M, E, false, MIXED, WRITTEN> : (void *)cg_kernel<M, E, false, MIXED, GATHERED>;
}

template <class M>
static PetscErrorCode method(const GPUKSPLaunch *L, M A, int *possible, GPUCSRStream s)
{
  void *kernel = NULL;

  PetscFunctionBegin;
  switch (L->method) {
  case GPUKSP_CG:
    if (L->tile) kernel = L->size == 1024 ? (void *)cg_tile_kernel<M, M, 1024, 1> : (void *)cg_tile_kernel<M, M, 512, TILE_ROWS>;
    else if (L->v.degree) kernel = (void *)cg_kernel<M, M, true, false, GATHERED>;
    else kernel = cg_of<M, M, false>(L);
    break;
  case GPUKSP_CG_SINGLE_REDUCTION:
    kernel = (void *)cg1_kernel<M, M>;
    break;
  case GPUKSP_BCGS:
    kernel = (void *)bcgs_kernel<M, M>;
    break;
  }
  PetscCall((with<M, M>(L, A, A, L->v, kernel, possible, s)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* f(what multiplies with A) */
template <class F>
static PetscErrorCode visit(const GPUCSRStorage *A, const GPUKSPLaunch *L, int threads, F f)
{
  PetscFunctionBegin;
#define FORMAT(of) \
  do { \
    if (A->precision == GPUCSR_PRECISION_DOUBLE) PetscCall(f(of<double>(A, L, threads, fits(A, 8)))); \
    else PetscCall(f(of<float>(A, L, threads, fits(A, 4)))); \
  } while (0)
#if defined(KSP_ONLY)
  FORMAT(stencil_of);
  PetscFunctionReturn(PETSC_SUCCESS);
#else
  if (A->format->ops == &GPUCSRFormat_sell) FORMAT(sell_of);
  else if (A->format->ops == &GPUCSRFormat_dia) FORMAT(dia_of);
  else if (A->format->ops == &GPUCSRFormat_stencil) FORMAT(stencil_of);
  else FORMAT(csr_of);
#endif
#undef FORMAT
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode dispatch(const GPUKSPLaunch *L, int *possible, GPUCSRStream s)
{
  const GPUCSRStorage *A = L->A, *B = L->Ainner;
  const int            t = L->threads;

  PetscFunctionBegin;
  if (!B) PetscCall(visit(A, L, t, [&](auto M) -> PetscErrorCode { return method(L, M, possible, s); }));
#define FORMAT(F, of) PetscCall((with<F<float>, F<double>>(L, of<float>(B, L, t, fits(B, 4)), of<double>(A, L, t, 0), L->inner, (cg_of<F<float>, F<double>, true>(L)), possible, s)))
  else if (A->format->ops == &GPUCSRFormat_sell) FORMAT(Sell, sell_of);
  else if (A->format->ops == &GPUCSRFormat_dia) FORMAT(Dia, dia_of);
  else if (A->format->ops == &GPUCSRFormat_stencil) FORMAT(Stencil, stencil_of);
  else FORMAT(Csr, csr_of);
#undef FORMAT
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows that are sorted in windows stay in their block, which begins where a window does; in larger windows blocks would be uneven */
#define WINDOW 256

/* Can a launch multiply with it? */
PetscErrorCode GPUKSPLaunchTakes(const GPUCSRStorage *A, PetscBool *yes)
{
  PetscFunctionBegin;
  *yes = (PetscBool)(GPUCSRIsCSR(A->format) || A->format->ops == &GPUCSRFormat_dia || A->format->ops == &GPUCSRFormat_stencil || (A->format->ops == &GPUCSRFormat_sell && (!A->array[SELL_PERM].count || A->format->variant <= WINDOW)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries below which one cluster, whose meetings are short, is faster than all processors; measured on an H200 */
#define CLUSTER_ENTRIES 1.2e5

/* Warps that share a slice, or threads that share a row of CSR, in blocks of so many threads */
static int Share(const GPUCSRStorage *A, int blocks, int size)
{
  const double mean   = (double)A->nnz / PetscMax(1, A->m);
  const int    slices = (A->m / GPUCSR_SLICE + blocks) / blocks, rows = (A->m + blocks - 1) / blocks;
  int          share;

  if (!GPUCSRIsCSR(A->format)) {
    for (share = 1; 2 * share * slices <= size / 32 && 2 * share <= mean; share *= 2) {
    }
  } else {
    for (share = 1; 2 * share <= 32 && (4 * share <= mean || (2 * share * rows <= size && 2 * share <= mean)); share *= 2) {
    }
  }
  return share;
}

static int Ascending(const void *a, const void *b)
{
  return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b;
}

/* The windows of a chunk of as many rows as a block has threads; none where there would be too many, or they would be too wide */
static PetscErrorCode Window(const GPUCSRStorage *A, int chunk, GPUKSPWindows *w)
{
  const GPUCSRArray *offsets = &A->array[A->format->ops == &GPUCSRFormat_dia ? (int)DIA_OFFSET : (int)STENCIL_OFFSET];
  int               *offset, n = A->format->ops == &GPUCSRFormat_dia ? (int)A->extent.units : (int)A->extent.stored;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(w, sizeof(*w)));
  PetscCall(PetscMalloc1(n + 1, &offset));
  offset[n] = 0;
  GPUCSR_CUDA(cudaMemcpy(offset, offsets->data, sizeof(int) * (size_t)n, cudaMemcpyDeviceToHost));
  qsort(offset, (size_t)n + 1, sizeof(int), Ascending);
  for (int k = 0; k <= n;) {
    const int lo = offset[k] - (offset[k] & 1);
    int       hi = lo;

    for (; k <= n && offset[k] - hi <= chunk; k++) hi = offset[k];
    if (w->count == GPUKSP_WINDOWS || w->length > WINDOWS_MOST) {
      w->count = 0;
      break;
    }
    w->lo[w->count]    = lo;
    w->wide[w->count]  = (chunk + hi - lo + 2) / 2 * 2;
    w->place[w->count] = w->length;
    w->length += w->wide[w->count++];
  }
  if (w->length > WINDOWS_MOST) w->count = 0;
  if (!w->count) w->length = 0;
  w->own = w->at(0);
  PetscCall(PetscFree(offset));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Can this be one launch here? Fills in blocks, threads, shared */
PetscErrorCode GPUKSPLaunchShape(GPUCSRDevice dev, GPUKSPLaunch *L, PetscBool *possible, char why[], size_t len)
{
  const GPUCSRStorage *A       = L->A;
  const int            vectors = L->method == GPUKSP_CG && !L->v.explicitpc ? 3 : 6, size = 8;
  int                  cooperative = 0, clusters = 0, most = -1;
  size_t               need, matrix = 0;

  PetscFunctionBegin;
  GPUCSR_CUDA(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, dev->id));
  GPUCSR_CUDA(cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, dev->id));
  *possible = (PetscBool)cooperative;
  if (!cooperative) {
    PetscCall(PetscSNPrintf(why, len, "the device has no cooperative launches"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  L->tile = PETSC_FALSE;
  PetscCall(PetscMemzero(&L->windows, sizeof(L->windows)));
  L->written = PETSC_FALSE;
  L->size = MOST_THREADS;
  for (L->cluster = (PetscBool)(clusters && (double)A->nnz < (A->format->ops == &GPUCSRFormat_stencil ? 2 : 1) * CLUSTER_ENTRIES); most < 0; L->cluster = PETSC_FALSE) {
    L->blocks  = (int)PetscMax(1, PetscMin(L->cluster ? CLUSTER : dev->props.processors, (A->m + GPUCSR_SLICE - 1) / GPUCSR_SLICE));
    L->threads = Share(A, L->blocks, L->size);
    PetscCall(dispatch(L, &most, NULL));
    if (most >= 0) break;
  }
  if (!L->cluster && L->method == GPUKSP_CG && !L->v.explicitpc && !L->v.degree && A->m / L->blocks >= LARGE) {
    const PetscBool known = (PetscBool)(A->format->ops == &GPUCSRFormat_stencil || A->format->ops == &GPUCSRFormat_dia);

    if (known && clusters) PetscCall(Window(A, WINDOW_ROWS * WINDOW_THREADS, &L->windows)); /* GPUs that have one have the other */
    L->written = (PetscBool)!known;
    if (L->windows.count) L->size = WINDOW_THREADS;
    PetscCall(dispatch(L, &most, NULL));
  }
  PetscCall(visit(A, L, L->threads, [&](auto M) -> PetscErrorCode {
    matrix = M.shared();
    return PETSC_SUCCESS;
  }));
  if (L->windows.count) matrix += sizeof(double) * (4 * (size_t)L->windows.length + 2);
  if (L->Ainner)
    PetscCall(visit(L->Ainner, L, L->threads, [&](auto M) -> PetscErrorCode {
      matrix += M.shared();
      return PETSC_SUCCESS;
    }));
  if ((size_t)most < matrix + MOST_THREADS * sizeof(double)) {
    *possible = PETSC_FALSE;
    PetscCall(PetscSNPrintf(why, len, "its stencils do not fit the shared memory of a block"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* what the vectors that are private to a block take, as far as the product's gathers are left a cache */
  need      = matrix + (size_t)vectors * (size_t)size * (size_t)((double)A->m / L->blocks * 1.1 + 128) + MOST_THREADS * sizeof(double);
  L->shared = PetscMin(need, PetscMax(matrix + MOST_THREADS * sizeof(double), (size_t)(L->windows.count ? most : PetscMin(most, SHARED_MOST)))) / 16 * 16;
  if (getenv("KSP_SAY")) printf("blocks %d size %d split %d windows %d of %d, matrix %zu shared %zu of %d; common %d\n", L->blocks, L->size, L->threads, L->windows.count, L->windows.length, matrix, L->shared, most, L->common.count);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The stencil of the most entries, for those that are parts of it; of 0 entries where there is none */
PetscErrorCode GPUKSPLaunchCommon(const GPUCSRStorage *A, GPUKSPCommon *common, GPUCSRStream s)
{
  int    *begin, most = 0;
  size_t  bytes = GPUCSRTypeSize(A->array[STENCIL_VAL].type);
  double  value[GPUKSP_COMMON];

  PetscFunctionBegin;
  PetscCall(PetscMemzero(common, sizeof(*common)));
  if (A->format->ops != &GPUCSRFormat_stencil) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1(A->extent.units + 1, &begin));
  GPUCSR_CUDA(cudaMemcpyAsync(begin, A->array[STENCIL_BEGIN].data, sizeof(int) * (size_t)(A->extent.units + 1), cudaMemcpyDeviceToHost, (cudaStream_t)s));
  GPUCSR_CUDA(cudaStreamSynchronize((cudaStream_t)s));
  for (int u = 1; u < (int)A->extent.units; u++)
    if (begin[u + 1] - begin[u] > begin[most + 1] - begin[most]) most = u;
  if (A->extent.units && begin[most + 1] - begin[most] <= GPUKSP_COMMON) {
    common->count = begin[most + 1] - begin[most];
    GPUCSR_CUDA(cudaMemcpyAsync(common->offset, (const int *)A->array[STENCIL_OFFSET].data + begin[most], sizeof(int) * (size_t)common->count, cudaMemcpyDeviceToHost, (cudaStream_t)s));
    GPUCSR_CUDA(cudaMemcpyAsync(value, (const char *)A->array[STENCIL_VAL].data + bytes * (size_t)begin[most], bytes * (size_t)common->count, cudaMemcpyDeviceToHost, (cudaStream_t)s));
    GPUCSR_CUDA(cudaStreamSynchronize((cudaStream_t)s));
    for (int k = 0; k < common->count; k++) common->value[k] = bytes == sizeof(float) ? (double)((const float *)value)[k] : value[k];
  }
  PetscCall(PetscFree(begin));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* d[row] the same in all rows of a stencil? One by one into table; *differ where not */
__global__ void diagonals_kernel(int m, const uint16_t *id, const double *d, double *table, int *differ, int check)
{
  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (i >= m) return;
  if (!check) table[id[i]] = d[i];
  else if (table[id[i]] != d[i]) *differ = 1;
}

/* Is the diagonal of a preconditioner that of the stencils, so that no vector of it need be read? table: room for GPUKSP_STENCILS and a number */
PetscErrorCode GPUKSPLaunchDiagonals(const GPUCSRStorage *A, const double *d, double *table, GPUKSPDiagonals *same, GPUCSRStream s)
{
  int differ = 0, *flag = (int *)(table + GPUKSP_STENCILS);

  PetscFunctionBegin;
  *same = {NULL, NULL, 0};
  if (!d || A->format->ops != &GPUCSRFormat_stencil || A->extent.units > GPUKSP_STENCILS) PetscFunctionReturn(PETSC_SUCCESS);
  GPUCSR_CUDA(cudaMemsetAsync(flag, 0, sizeof(*flag), (cudaStream_t)s));
  for (int check = 0; check < 2; check++) diagonals_kernel<<<GPUCSRBlocks(A->m, 256), 256, 0, (cudaStream_t)s>>>(A->m, (const uint16_t *)A->array[STENCIL_ID].data, d, table, flag, check);
  GPUCSRCheckLaunch("the diagonal of stencils");
  GPUCSR_CUDA(cudaMemcpyAsync(&differ, flag, sizeof(differ), cudaMemcpyDeviceToHost, (cudaStream_t)s));
  GPUCSR_CUDA(cudaStreamSynchronize((cudaStream_t)s));
  if (!differ) *same = {(const uint16_t *)A->array[STENCIL_ID].data, table, (int)A->extent.units};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do z and p of all that a block's rows need fit its shared memory, beside what is its own? Then that is how: see cg_tile_kernel. After GPUKSPLaunchPartition() */
PetscErrorCode GPUKSPLaunchTile(GPUKSPLaunch *L, GPUCSRStream s)
{
  GPUKSPLaunch tile = *L;
  int          ends[2 * GPUKSP_BLOCKS], bounds[GPUKSP_BLOCKS + 1], most, rows = 0;
  size_t       need = 0, vectors = 0;

  PetscFunctionBegin;
  if (L->method != GPUKSP_CG || L->Ainner || L->v.explicitpc) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(visit(L->A, L, L->threads, [&](auto M) -> PetscErrorCode {
    GPUCSR_CUDA(cudaFuncSetAttribute(reach_kernel<decltype(M)>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)M.shared()));
    reach_kernel<<<(unsigned)L->blocks, MOST_THREADS, M.shared(), (cudaStream_t)s>>>(M, L->bounds, L->reach);
    need = M.shared();
    return PETSC_SUCCESS;
  }));
  GPUCSRCheckLaunch("the columns of a solve's blocks");
  GPUCSR_CUDA(cudaMemcpyAsync(ends, L->reach, sizeof(int) * 2 * (size_t)L->blocks, cudaMemcpyDeviceToHost, (cudaStream_t)s));
  GPUCSR_CUDA(cudaMemcpyAsync(bounds, L->bounds, sizeof(int) * ((size_t)L->blocks + 1), cudaMemcpyDeviceToHost, (cudaStream_t)s));
  GPUCSR_CUDA(cudaStreamSynchronize((cudaStream_t)s));
  for (int b = 0; b < L->blocks; b++) {
    const size_t of = (sizeof(double) * (size_t)(ends[2 * b + 1] - ends[2 * b]) + 15) / 16 * 16, own = (sizeof(double) * (size_t)(bounds[b + 1] - bounds[b]) + 15) / 16 * 16;

    vectors = PetscMax(vectors, 2 * of + own);
    rows    = PetscMax(rows, bounds[b + 1] - bounds[b]);
  }
  tile.tile    = PETSC_TRUE;
  if (rows > 512 * TILE_ROWS) PetscFunctionReturn(PETSC_SUCCESS);
  tile.size    = rows > 512 && rows <= 1024 ? 1024 : 512;
  tile.threads = Share(L->A, L->blocks, tile.size);
  need += vectors + (GPUCSRIsCSR(L->A->format) || tile.threads == 1 ? 0 : MOST_THREADS * sizeof(double));
  PetscCall(dispatch(&tile, &most, s));
  if (most < 0 || (size_t)most < need) PetscFunctionReturn(PETSC_SUCCESS);
  *L        = tile;
  L->shared = need;
  if (getenv("KSP_SAY")) printf("tile: size %d split %d shared %zu\n", L->size, L->threads, L->shared);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUKSPLaunchClear(void *p, size_t bytes, GPUCSRStream s)
{
  PetscFunctionBegin;
  GPUCSR_CUDA(cudaMemsetAsync(p, 0, bytes, (cudaStream_t)s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUKSPLaunchSolve(const GPUKSPLaunch *L, GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(dispatch(L, NULL, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

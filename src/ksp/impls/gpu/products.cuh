#pragma once

/* What the blocks of a launch multiply with: the matrix, by rows of each format, and the vectors on the other side */
#include "../../../mat/impls/gpucsr/kernels/device.cuh"
#include "../../../mat/impls/gpucsr/format/dia.h"
#include "../../../mat/impls/gpucsr/format/sell.h"
#include "../../../mat/impls/gpucsr/format/stencil.h"
#include "launch.h"

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

/* Rows of a chunk (windows.cuh): so many of each thread */
#define WINDOW_THREADS 512
#define WINDOW_ROWS    2
#define DIA_AHEAD      9 /* values of a row in flight */

/* As sliced ELL, but that the column follows from the diagonal: entries of x and of A are asked for together */
template <class V>
struct Dia {
  typedef V     value;
  const int    *offset;
  const V      *val;
  int           diagonals, n;
  int           split, keep;
  int          *at; /* in shared memory: of each diagonal, its place in the windows of a chunk */
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

  /* The rows of a thread in a chunk: row, row + WINDOW_THREADS, ...; left: from how far on there are none. Ahead: what can be read before */
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

  __device__ __forceinline__ void rows_of_chunk(const double *x, int t, int row, int left, Ahead (&a)[WINDOW_ROWS], double (&sum)[WINDOW_ROWS]) const
  {
#pragma unroll
    for (int r = 0; r < WINDOW_ROWS; r++) sum[r] = 0;
    for (int k = 0; k < diagonals; k += DIA_AHEAD) {
#pragma unroll
      for (int r = 0; r < WINDOW_ROWS; r++) {
#pragma unroll
        for (int u = 0; u < DIA_AHEAD; u++)
          if (!is_absent(a[r].v[u])) sum[r] += (double)a[r].v[u] * x[t + r * WINDOW_THREADS + at[k + u]];
        if (k + DIA_AHEAD < diagonals) a[r] = some(k + DIA_AHEAD, row + r * WINDOW_THREADS, r * WINDOW_THREADS < left);
      }
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
      const int      q = q0 + warp / split, row = first + 32 * q + lane;
      const bool     in    = q < slices && row < last;
      const int      which = in ? id[row] : 0;
      const unsigned bits  = in ? has[which] : 0;
      X              sum   = 0;

      if (!__any_sync(0xffffffffu, bits & OTHER)) sum = common_part<false>(x, row, bits & mine);
      else if (in) sum = whole<false>(x, row, which, part);
      if (split > 1) sum = add_parts(sum, split, part, scratch);
      if (part == 0 && in) f(32 * q + lane, sum);
    }
  }

  /* The rows of a thread in a chunk, as those of diagonals */
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

      if (!__any_sync(0xffffffffu, bits & OTHER)) sum[r] = common_part<true>(Vector<double>{x}, c, bits);
      else sum[r] = in ? whole<true>(Vector<double>{x}, c, which[r], 0) : 0;
    }
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
    int                      r = threadIdx.x / lanes, begin = r < rows ? rowptr[first + r] : 0, end = r < rows ? rowptr[first + r + 1] : 0;

    for (int r0 = 0; r0 < rows; r0 += groups, r += groups) {
      const int next = r + groups, nextbegin = next < rows ? rowptr[first + next] : 0, nextend = next < rows ? rowptr[first + next + 1] : 0;
      X         sum = 0;

      for (int k = begin + lane; k < end; k += 4 * lanes) {
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
      begin = nextbegin;
      end   = nextend;
      for (int o = lanes / 2; o; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o, lanes);
      if (lane == 0 && r < rows) f(r, sum);
    }
  }
};

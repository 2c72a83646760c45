#pragma once

/*
  Exchanges between the launches of several ranks, besides reductions: the halo entries of a vector, and the off-diagonal block. The halo follows a vector's own entries, so code that computes a
  direction on reading serves the halo too.

  A rank writes an entry for a neighbour straight into the neighbour's inbox. Like a sum, the entry carries a flag: the number of the next reduction of all ranks. The neighbour reads the entry before the
  reduction after that, and entries of the next reduction go into another set, so no unread entry is overwritten. Blocks receive equal shares of the inbox, whichever rows need them. A fence makes the
  entries visible to the other blocks: the fence of a reduction, or of a barrier of the rank's blocks.

  Rows of the off-diagonal block are often neighbours, so they belong to a few blocks, and all other blocks would wait for these. In CG with many rows a block, all blocks of a rank share these rows
  equally. The blocks read the inbox directly, and the sums reach their rows' blocks with the next reduction, in time for their use.
*/
#include "reduction.cuh"

/* One rank: no exchanges */
struct Alone {
  template <int AT_ONCE>
  __device__ __forceinline__ void send(const double *, const GridReduction &) const
  {
  }

  __device__ __forceinline__ void exchange(double *, const GridReduction &) const
  {
  }

  template <class F>
  __device__ __forceinline__ void entries(F) const
  {
  }

  template <class G, class F>
  __device__ __forceinline__ void add(const G &, F) const
  {
  }

  __device__ __forceinline__ bool shares_rows() const
  {
    return true;
  }

  template <int AT_ONCE>
  __device__ __forceinline__ double direction(const double *, const double *, double *, double, unsigned) const
  {
    return 0;
  }

  template <int AT_ONCE>
  __device__ __forceinline__ void settle_sums(const Rows &) const
  {
  }
};

/* Ranges of the block's share in view->ends[] */
enum {
  SENDS   = 0, /* entries to send, in rows of the block; */
  ROWS    = 2, /* its rows of the off-diagonal block, */
  ENTRIES = 4, /* the block's equal share of halo entries; */
  SHARE   = 6  /* and its share of the rows of the off-diagonal block, in whole slices */
};

/* From so many rows a thread on blocks share the rows of the off-diagonal block in CG. In BiCGStab they would wait for each other */
#define SHARED_HALO_ROWS 2

#define FOR_SHARE(what, k) for (int k = view->ends[(what)] + threadIdx.x; k < view->ends[(what) + 1]; k += THREADS)

struct Neighbours {
  PeerView *view;

  /* Lower bound of a row in an increasing list */
  static __device__ int from(const int *list, int n, int row)
  {
    return bisect(0, n, [=](int k) { return list[k] < row; });
  }

  /* Called by all threads of a block. Fills in the block's share; the rest of the view is set */
  __device__ __forceinline__ void settle(int first, int last)
  {
    const GPUKSPPeers &o = view->o;

    if (threadIdx.x < 2) {
      const int row = threadIdx.x ? last : first;

      view->ends[SENDS + threadIdx.x]   = from(o.sendrow, o.nsend, row);
      view->ends[ROWS + threadIdx.x]    = from(o.row, o.rows, row);
      view->ends[ENTRIES + threadIdx.x] = (int)((int64_t)o.halo * (blockIdx.x + threadIdx.x) / gridDim.x);
      view->ends[SHARE + threadIdx.x]   = min(o.rows, GPUCSR_SLICE * (int)((int64_t)((o.rows + GPUCSR_SLICE - 1) / GPUCSR_SLICE) * (blockIdx.x + threadIdx.x) / gridDim.x));
      if (!threadIdx.x) {
        view->first = first;
        view->many  = o.tail / (int)gridDim.x > SHARED_HALO_ROWS * THREADS;
      }
    }
    __syncthreads();
  }

  /* Sends the entries that other ranks need, after the block has written its rows of a vector to global memory. AT_ONCE: entries of a thread with loads in flight together */
  template <int AT_ONCE>
  __device__ __forceinline__ void send(const double *v, const PeerReduction &m) const
  {
    const GPUKSPPeers &o    = view->o;
    const int          last = view->ends[SENDS + 1];

    __syncthreads();
    for (int g = view->ends[SENDS] + threadIdx.x; g < last; g += AT_ONCE * THREADS) {
      double e[AT_ONCE];
      void  *to[AT_ONCE];

#pragma unroll
      for (int u = 0; u < AT_ONCE; u++) {
        const int k = min(g + u * THREADS, last - 1);

        e[u]  = v[o.sendrow[k]];
        to[u] = o.sendto[k];
      }
#pragma unroll
      for (int u = 0; u < AT_ONCE; u++)
        if (g + u * THREADS < last) peer_publish((ulonglong2 *)to[u] + (m.epoch & 1) * o.apart, e[u], m.epoch);
    }
  }

  __device__ __forceinline__ const ulonglong2 *inbox_of(unsigned epoch) const
  {
    const GPUKSPPeers &o = view->o;

    return (const ulonglong2 *)((const char *)o.memory[o.rank] + o.inbox) + (epoch & 1) * o.apart;
  }

  /* Entries of the inbox, sent before the given reduction, all loads together. h < 0: no entry, 0 */
  template <int N>
  __device__ __forceinline__ void look(const int (&h)[N], unsigned epoch, double (&v)[N]) const
  {
    const GPUKSPPeers &o     = view->o;
    const ulonglong2  *inbox = inbox_of(epoch);
    PeerPatience       patience;
    bool               there;

    do {
      there = true;
#pragma unroll
      for (int u = 0; u < N; u++) there = (peer_look(inbox + max(h[u], 0), epoch, v[u]) | (h[u] < 0)) & there;
    } while (!there && !patience.gone(o.watch));
    if (!there) view->gone = 1;
#pragma unroll
    for (int u = 0; u < N; u++) v[u] = h[u] < 0 ? 0 : v[u];
  }

  /* Receives the block's share of the halo, sent before the given reduction */
  __device__ __forceinline__ void receive(double *v, unsigned epoch) const
  {
    const GPUKSPPeers &o     = view->o;
    const ulonglong2  *inbox = inbox_of(epoch);

    FOR_SHARE(ENTRIES, h)
    {
      double e;

      if (!peer_await(inbox + h, epoch, o.watch, e)) view->gone = 1;
      v[o.tail + h] = e;
    }
  }

  __device__ __forceinline__ void exchange(double *v, const PeerReduction &m) const
  {
    send<2>(v, m);
    receive(v, m.epoch);
  }

  /* Calls f(place in the whole vector) for the block's share of the halo */
  template <class F>
  __device__ __forceinline__ void entries(F f) const
  {
    FOR_SHARE(ENTRIES, h) f(view->o.tail + h);
  }

  /* Row k of the off-diagonal block, times x */
  template <class G>
  __device__ __forceinline__ double row_times(int k, const G &x) const
  {
    constexpr int      ahead = G::ahead;
    const GPUKSPPeers &o     = view->o;
    const int          begin = o.slice[k / GPUCSR_SLICE], wide = o.slice[k / GPUCSR_SLICE + 1] - begin;
    const int64_t      at  = GPUCSR_SLICE * (int64_t)begin + k % GPUCSR_SLICE;
    const int         *c0  = o.col + at;
    const double      *v0  = o.val + at;
    double             sum = 0;

    for (int j = 0; j < wide; j += ahead) {
      int    c[ahead];
      double v[ahead];

#pragma unroll
      for (int u = 0; u < ahead; u++) {
        c[u] = -1;
        if (j + u < wide) {
          c[u] = c0[GPUCSR_SLICE * (j + u)];
          v[u] = v0[GPUCSR_SLICE * (j + u)];
        }
      }
#pragma unroll
      for (int u = 0; u < ahead; u++)
        if (c[u] >= 0) sum += v[u] * x(c[u]);
    }
    return sum;
  }

  /* Calls f(row in the block, sum) for the off-diagonal block. f adds to the diagonal block's sums, which any thread may have written */
  template <class G, class F>
  __device__ __forceinline__ void add(const G &x, F f) const
  {
    __syncthreads();
    FOR_SHARE(ROWS, k) f(view->o.row[k] - view->first, row_times(k, x));
  }

  /* Do all blocks share the rows of the off-diagonal block in CG? Then they begin with these. Otherwise their few owners multiply after the diagonal block's product, when the entries have arrived */
  __device__ __forceinline__ bool shares_rows() const
  {
    return view->many;
  }

  /*
    The direction z + beta p of CG, with z sent before the given reduction: writes the block's share of the halo into q, and the off-diagonal block's product into sums[]. Vectors are whole. Returns the
    block's part of p'A p
*/
  template <int AT_ONCE>
  __device__ __forceinline__ double direction(const double *z, const double *p, double *q, double beta, unsigned epoch) const
  {
    const GPUKSPPeers &o  = view->o;
    double             pw = 0;

    FOR_SHARE(view->many ? SHARE : ROWS, k)
    {
      const int     row = o.row[k], begin = o.slice[k / GPUCSR_SLICE], wide = o.slice[k / GPUCSR_SLICE + 1] - begin;
      const int64_t at  = GPUCSR_SLICE * (int64_t)begin + k % GPUCSR_SLICE;
      const double  own = z[row] + beta * p[row];
      double        sum = 0;

      for (int j = 0; j < wide; j += AT_ONCE) {
        int    h[AT_ONCE];
        double v[AT_ONCE], zh[AT_ONCE], ph[AT_ONCE];

#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) { /* past the end, repeat the last: branches would separate the loads */
          const int64_t e = at + GPUCSR_SLICE * min(j + u, wide - 1);

          h[u] = j + u < wide ? o.col[e] - o.tail : -1; /* padding is negative too */
          v[u] = o.val[e];
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) ph[u] = p[o.tail + max(h[u], 0)];
        look(h, epoch, zh);
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
          if (h[u] >= 0) sum += v[u] * (zh[u] + beta * ph[u]);
      }
      o.sums[k] = sum;
      pw += own * sum;
    }
    FOR_SHARE(ENTRIES, h)
    {
      const int    one[1] = {h};
      const double ph     = p[o.tail + h];
      double       zh[1];

      look(one, epoch, zh);
      q[o.tail + h] = zh[0] + beta * ph;
    }
    return pw;
  }

  /* After a reduction with a fence: adds sums[] to the block's rows of w */
  template <int AT_ONCE>
  __device__ __forceinline__ void settle_sums(const Rows &w) const
  {
    const GPUKSPPeers &o    = view->o;
    const int          last = view->ends[ROWS + 1];

    if (view->ends[ROWS] == last) return;
    for (int g = view->ends[ROWS] + threadIdx.x; g < last; g += AT_ONCE * THREADS) {
      int    i[AT_ONCE];
      double s[AT_ONCE];

#pragma unroll
      for (int u = 0; u < AT_ONCE; u++) {
        const int k = min(g + u * THREADS, last - 1);

        i[u] = o.row[k] - view->first;
        s[u] = o.sums[k];
      }
#pragma unroll
      for (int u = 0; u < AT_ONCE; u++) s[u] += w[i[u]];
#pragma unroll
      for (int u = 0; u < AT_ONCE; u++)
        if (g + u * THREADS < last) w[i[u]] = s[u];
    }
    __syncthreads();
  }
};

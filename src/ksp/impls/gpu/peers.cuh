#pragma once

/*
  Exchanges between the launches of several ranks, besides reductions: the halo entries of a vector, and the off-diagonal block. The halo follows a vector's own entries, so that code that computes
  a direction where it reads it serves the halo too.

  An entry that a neighbour's rows need is written straight into that rank's inbox. Like a sum it carries a flag: the number of the next reduction of all ranks. It is received before the reduction
  after that at the latest, and nothing else is sent until then, so nobody overwrites an entry that has not been read. Blocks receive equal shares of the inbox, whichever rows need them. A fence
  makes them visible to the other blocks: the fence of a reduction, or of a barrier of the rank's blocks. Only blocks with rows of the off-diagonal block wait at that barrier, after the product of
  the diagonal one.
*/
#include "reduction.cuh"

/* One rank: no exchanges */
struct Alone {
  __device__ __forceinline__ void send(const double *, const GridReduction &) const
  {
  }

  __device__ __forceinline__ void receive(double *, unsigned) const
  {
  }

  __device__ __forceinline__ void exchange(double *, const GridReduction &) const
  {
  }

  __device__ __forceinline__ void await(GridReduction &) const
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
};

/* Ranges of the block's share in view->ends[] */
enum {
  SENDS   = 0, /* entries to send that are rows of the block, */
  ROWS    = 2, /* its rows of the off-diagonal block, */
  ENTRIES = 4  /* and its equal share of the halo entries */
};

#define FOR_SHARE(what, k) for (int k = view->ends[what] + threadIdx.x; k < view->ends[what + 1]; k += THREADS)

struct Neighbours {
  PeerView *view;

  /* Lower bound of a row in an increasing list */
  static __device__ int from(const int *list, int n, int row)
  {
    int low = 0;

    while (low < n) {
      const int mid = low + (n - low) / 2;

      if (list[mid] < row) low = mid + 1;
      else n = mid;
    }
    return low;
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
      if (!threadIdx.x) view->first = first;
    }
    __syncthreads();
  }

  /* After the block has written its rows of a vector in global memory: sends what other ranks need of them */
  __device__ __forceinline__ void send(const double *v, const PeerReduction &m) const
  {
    const GPUKSPPeers &o = view->o;

    __syncthreads();
    FOR_SHARE(SENDS, k) peer_publish((ulonglong2 *)o.sendto[k], v[o.sendrow[k]], m.epoch);
  }

  /* Receives the block's share of the halo, sent before that reduction */
  __device__ __forceinline__ void receive(double *v, unsigned epoch) const
  {
    const GPUKSPPeers &o     = view->o;
    const ulonglong2  *inbox = (const ulonglong2 *)((const char *)o.theirs[o.rank] + o.inbox);

    FOR_SHARE(ENTRIES, h)
    {
      double e;

      if (!peer_await(inbox + h, epoch, o.watch, e)) view->gone = 1;
      v[o.tail + h] = e;
    }
  }

  __device__ __forceinline__ void exchange(double *v, const PeerReduction &m) const
  {
    send(v, m);
    receive(v, m.epoch);
  }

  /* Waits until all blocks of the rank have received their shares; only blocks with rows of the off-diagonal block need to */
  __device__ __forceinline__ void await(PeerReduction &m) const
  {
    if (view->ends[ROWS] < view->ends[ROWS + 1]) rank_wait(m);
    m.here++;
  }

  /* Calls f(place in the whole vector) for the block's share of the halo */
  template <class F>
  __device__ __forceinline__ void entries(F f) const
  {
    FOR_SHARE(ENTRIES, h) f(view->o.tail + h);
  }

  /* Calls f(row in the block, sum) for the off-diagonal block. f adds to the diagonal block's sums, which any thread may have written */
  template <class G, class F>
  __device__ __forceinline__ void add(const G &x, F f) const
  {
    constexpr int      ahead = G::ahead;
    const GPUKSPPeers &o     = view->o;

    __syncthreads();
    FOR_SHARE(ROWS, k)
    {
      const int     begin = o.slice[k / GPUCSR_SLICE], wide = o.slice[k / GPUCSR_SLICE + 1] - begin;
      const int64_t at  = GPUCSR_SLICE * (int64_t)begin + k % GPUCSR_SLICE;
      const int    *c0  = o.col + at;
      const double *v0  = o.val + at;
      double        sum = 0;

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
      f(o.row[k] - view->first, sum);
    }
  }
};

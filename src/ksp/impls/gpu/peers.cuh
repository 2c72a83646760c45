#pragma once

/*
  What a launch has to do with those of other ranks, beside reductions: the entries of a vector that cross, and the off-diagonal block. A vector's entries that are others' follow its own, so that
  whatever puts a direction together where it is read does so there too.

  An entry that a neighbour's rows need goes straight into that rank's inbox, and carries its flag as sums do: the number of the next reduction of all ranks. It is received before the reduction after that at the
  latest, and nothing else is sent until then: so nobody writes over what has not been read. Blocks take equal shares of the inbox, whichever rows need them. A fence shows them to the others: that of a
  reduction, or of a meeting of the rank's blocks, which those wait for that have rows of the off-diagonal block, behind the product of the diagonal one.
*/
#include "reduction.cuh"

/* One rank: nothing of that */
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
  SENDS   = 0, /* of what others need, that which the block's rows are, */
  ROWS    = 2, /* of the off-diagonal block, its rows, */
  ENTRIES = 4  /* and of others' entries, as many as any block */
};

#define FOR_SHARE(what, k) for (int k = view->ends[what] + threadIdx.x; k < view->ends[what + 1]; k += THREADS)

struct Neighbours {
  PeerView *view;

  /* Where in an increasing list the rows from this one on begin */
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

  /* By all threads of a block; the view has all but its share */
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

  /* The block has written its rows of a whole vector: what others need goes to them */
  __device__ __forceinline__ void send(const double *v, const PeerReduction &m) const
  {
    const GPUKSPPeers &o = view->o;

    __syncthreads();
    FOR_SHARE(SENDS, k) peer_publish((ulonglong2 *)o.sendto[k], v[o.sendrow[k]], m.epoch);
  }

  /* What ours need comes, of what was sent before that reduction */
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

  /* All blocks of the rank have arrived with their shares: of interest to those that have rows of the off-diagonal block */
  __device__ __forceinline__ void await(PeerReduction &m) const
  {
    if (view->ends[ROWS] < view->ends[ROWS + 1]) rank_wait(m);
    m.here++;
  }

  /* f(place in a whole vector), of the block's share */
  template <class F>
  __device__ __forceinline__ void entries(F f) const
  {
    FOR_SHARE(ENTRIES, h) f(view->o.tail + h);
  }

  /* f(row in the block, sum) of the off-diagonal block. Sums of the diagonal one are where f adds to them, by whichever thread */
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

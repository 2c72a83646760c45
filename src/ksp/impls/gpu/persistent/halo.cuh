#pragma once

/*
  Halo recomputation, shared by the methods of cg_halo.cuh and bcgs_halo.cuh.

  A block keeps in its shared memory all entries of a vector from the first to the last that its rows need, followed by entries of other ranks. It updates all of them by itself, from vectors that
  other blocks have written for the last reduction. On a grid the rows of a block need a few windows of the range, so a block has a list of needed pieces and updates only these.
*/
#include "solve.cuh"

/* Loop over a thread's own rows, which are in registers */
#define FOR_OWN(k, i) _Pragma("unroll") for (int k = 0, i = threadIdx.x; k < ROWS; k++, i += SIZE) if (i < rows)

/* Entries in flight of a thread; blocks of 1024 threads have 64 registers each */
#define HALO_GROUP(size) ((size) == 1024 ? 3 : 6)

/* The entries that a block keeps */
template <class M, bool PEERS>
struct Range {
  const int lo, count, own, rows; /* the first column, how many, the place of the block's own rows among them, their number */
  const int rlo, remote;          /* the first entry of other ranks, and their number; these follow the rank's own entries */

  __device__ __forceinline__ Range(const Args<M, PEERS> &a, const Block<M, PEERS, true> &B)
      : lo(a.reach[2 * blockIdx.x]), count(a.reach[2 * blockIdx.x + 1] - lo), own(B.first - lo), rows(B.rows), rlo(PEERS ? a.reach[2 * (gridDim.x + blockIdx.x)] : 0), remote(PEERS ? a.reach[2 * (gridDim.x + blockIdx.x) + 1] - rlo : 0)
  {
  }

  /* Calls use(number from 0 on, place, value) for the entries of other ranks, sent before the last reduction */
  template <int AT_ONCE, class U>
  __device__ __forceinline__ void received(const Block<M, PEERS, true> &B, U use) const
  {
    if constexpr (PEERS) {
      for (int g = threadIdx.x; g < remote; g += AT_ONCE * THREADS) {
        int    h[AT_ONCE];
        double e[AT_ONCE];

#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) h[u] = g + u * THREADS < remote ? rlo + g + u * THREADS : -1;
        B.ranks.look(h, B.grid.epoch - 1, e);
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++)
          if (h[u] >= 0) use(h[u] - rlo, count + h[u] - rlo, e[u]);
      }
    }
  }

  /* w = A v, for a vector that the block keeps; all threads see the complete result of a row */
  __device__ __forceinline__ void product(Block<M, PEERS, true> &B, const double *v, double *w) const
  {
    B.A.product(Vector{v - lo}, B.first, B.last, B.scratch, [&](int i, double sum) { w[i] = sum; });
    if constexpr (PEERS) B.ranks.add(Vector{v + count - rlo - B.ranks.view->o.tail}, [&](int i, double sum) { w[i] += sum; });
    __syncthreads();
  }

  /*
    r = b - A x in ri, x in xi and the diagonal in di, of the thread's own rows; u = p = M r, sent in a vector in global memory, in all entries of the range; bnorm with a nonzero initial guess. w: room
    for the block's rows. right: the norm is not preconditioned
  */
  template <int SIZE, int ROWS>
  __device__ __forceinline__ void start(const Args<M, PEERS> &a, Block<M, PEERS, true> &B, double *w, double *sent, double *u, double *p, double (&di)[ROWS], double (&xi)[ROWS], double (&ri)[ROWS], bool right) const
  {
    const int first = B.first;

    FOR_OWN(k, i)
    {
      di[k] = a.v.pc ? a.v.pc[first + i] : 1.0;
      xi[k] = B.st->guesszero ? 0.0 : a.v.x[first + i];
      ri[k] = a.v.b[first + i];
    }
    if (B.st->guesszero && !PEERS) {
      for (int i = threadIdx.x; i < count; i += THREADS) u[i] = p[i] = (a.v.pc ? a.v.pc[lo + i] : 1.0) * a.v.b[lo + i];
    } else {
      double bb[3] = {0, 0, 0};

      if (!B.st->guesszero) {
        if constexpr (PEERS) {
          B.ranks.exchange(a.v.x, B.grid);
          grid_sync(B.grid);
        }
        B.A.product(Vector{a.v.x}, first, B.last, B.scratch, [&](int i, double sum) { w[i] = sum; });
        B.ranks.add(Vector{a.v.x}, [&](int i, double sum) { w[i] += sum; });
        __syncthreads();
        FOR_OWN(k, i)
        {
          add_norms(ri[k], right ? ri[k] : di[k] * ri[k], bb);
          ri[k] -= w[i];
        }
      }
      FOR_OWN(k, i) sent[first + i] = di[k] * ri[k];
      B.ranks.template send<2>(sent, B.grid);
      grid_reduce<3, true>(B.grid, bb);
      if (!B.st->guesszero) B.rule([&](GPUKSPState *s) { s->bnorm = GPUKSPNorm(s, bb); });
      for (int i = threadIdx.x; i < count; i += THREADS) u[i] = p[i] = sent[lo + i];
      received<2>(B, [&](int, int at, double e) { u[at] = p[at] = e; });
    }
    __syncthreads();
  }
};

/* The same with the list of needed pieces */
template <class M, bool PEERS>
struct Halo : Range<M, PEERS> {
  using Range<M, PEERS>::lo;
  using Range<M, PEERS>::count;
  using Range<M, PEERS>::own;
  using Range<M, PEERS>::rows;
  int             pieces;
  unsigned short *piece; /* in shared memory: needed pieces of 32 entries, without pieces within the block's own rows */

  __device__ __forceinline__ Halo(const Args<M, PEERS> &a, Block<M, PEERS, true> &B) : Range<M, PEERS>(a, B), pieces(0)
  {
    const unsigned *const bits = (const unsigned *)(a.reach + 4 * gridDim.x) + HALO_WORDS * blockIdx.x;

    piece = B.pool.template take<unsigned short>(HALO_PIECES);
    for (int w = 0; w < HALO_WORDS; w++) {
      const unsigned word = bits[w];

      for (int q = threadIdx.x; q < 32; q += THREADS)
        if (word >> q & 1) piece[pieces + __popc(word & ((1u << q) - 1))] = (unsigned short)(32 * w + q);
      pieces += __popc(word);
    }
    __syncthreads();
  }

  /* Calls load(column, values), and then use(place, values), for the entries of this rank's other blocks */
  template <int AT_ONCE, int N, class L, class U>
  __device__ __forceinline__ void entries(L load, U use) const
  {
    for (int g = threadIdx.x / 32; g < pieces; g += AT_ONCE * WARPS) {
      int    at[AT_ONCE];
      double v[AT_ONCE][N];

#pragma unroll
      for (int u = 0; u < AT_ONCE; u++) { /* past the end, repeat the last: branches would separate the loads */
        const int q = g + u * WARPS, h = 32 * piece[min(q, pieces - 1)] + threadIdx.x % 32;

        at[u] = q < pieces && h < count && (h < own || h >= own + rows) ? h : -1;
        load(lo + min(h, count - 1), v[u]);
      }
#pragma unroll
      for (int u = 0; u < AT_ONCE; u++)
        if (at[u] >= 0) use(at[u], v[u]);
    }
  }
};

/* Notes the requested columns, in bits of 32 each */
struct Pieces {
  static const int ahead = AHEAD;
  int              lo;
  unsigned        *bits;

  __device__ __forceinline__ double operator()(int c) const
  {
    const int q = (c - lo) / 32;

    atomicOr(bits + q / 32, 1u << q % 32);
    return 0;
  }
};

/* The range of columns of a block's rows, including its own rows: the first and past the last; and the pieces with other rows */
template <class M>
__global__ void __launch_bounds__(MOST_THREADS, 1) reach_kernel(M A, const int *bounds, int *reach)
{
  extern __shared__ __align__(16) char pool_[];
  __shared__ double                    scratch[MOST_THREADS];
  __shared__ int                       ends[2];
  __shared__ unsigned                  bits[HALO_WORDS];
  Pool                                 pool  = {pool_, 0};
  const int                            first = bounds[blockIdx.x], last = bounds[blockIdx.x + 1];
  int                                  lo = first, hi = last;

  A.settle(pool);
  if (threadIdx.x < 2) ends[threadIdx.x] = threadIdx.x ? last : first;
  if (threadIdx.x < HALO_WORDS) bits[threadIdx.x] = 0;
  __syncthreads();
  A.product(Reach{&lo, &hi}, first, last, scratch, [](int, double) {});
  atomicMin(&ends[0], lo);
  atomicMax(&ends[1], hi);
  __syncthreads();
  lo = ends[0] & ~31; /* whole sectors */
  if (threadIdx.x < 2) reach[2 * blockIdx.x + threadIdx.x] = threadIdx.x ? ends[1] : lo;
  if (ends[1] - lo > 32 * HALO_PIECES) return; /* too many for the shared memory anyway */
  A.product(Pieces{lo, bits}, first, last, scratch, [](int, double) {});
  __syncthreads();
  if (threadIdx.x < HALO_WORDS) {
    unsigned word = bits[threadIdx.x];

    for (int q = 0; q < 32; q++) {
      const int c = lo + 32 * (32 * (int)threadIdx.x + q);

      if (c >= first && c + 32 <= last) word &= ~(1u << q);
    }
    ((unsigned *)(reach + 4 * gridDim.x))[HALO_WORDS * blockIdx.x + threadIdx.x] = word;
  }
}

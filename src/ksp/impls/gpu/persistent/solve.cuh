#pragma once

/*
  A whole solve in one persistent kernel: the part that all methods share. The methods are cg.cuh, cg_halo.cuh, bcgs.cuh and bcgs_halo.cuh.

  Each block, one a multiprocessor, owns a range of rows of about equal work (GPUKSPPersistentPartition()) and all data private to the range. As much as fits of these data stays in its shared memory. The
  vector that A multiplies, which other blocks read, is in global memory. Blocks synchronise by grid-wide reductions only (reduction.cuh).

  The host uses the same rules (rules.h). The formats' products are in persistent_FORMAT.cu: CSR, diagonals, stencils, or sliced ELL with rows moved within windows of a few hundred at most.
*/
#include "peers.cuh"
#include "persistent.cuh"
#include "precond.cuh"
#include "product/windows.cuh"

__device__ __forceinline__ void add_norms(double r, double z, double (&sum)[3])
{
  sum[SUM_RR] += r * r;
  sum[SUM_ZZ] += z * z;
  sum[SUM_RZ] += r * z;
}

/* Arguments of a persistent kernel */
template <class M>
struct ArgsAlone {
  M               A;
  GPUKSPVectors   v;
  const int      *bounds, *reach;
  ulonglong2     *slots;
  GPUKSPState     start, *state;
  unsigned        epoch; /* of the first reduction; slots may hold earlier epochs */
  int             trueresidual, right, n;
  size_t          shared;
  GPUKSPDiagonals same;
};

template <class M>
struct ArgsPeers : ArgsAlone<M> {
  GPUKSPPeers peers;
  unsigned    here; /* as epoch, of the barriers of this rank's blocks */
};

/* The types that differ between one rank alone and several ranks */
template <class M, bool PEERS>
struct Kind {
  typedef ArgsAlone<M>  Args;
  typedef GridReduction Reduction;
  typedef Alone         Ranks;
};

template <class M>
struct Kind<M, true> {
  typedef ArgsPeers<M>  Args;
  typedef PeerReduction Reduction;
  typedef Neighbours    Ranks;
};

template <class M, bool PEERS>
using Args = typename Kind<M, PEERS>::Args;

/* The thread that applies rules ahead, in the warp with the fewest rows */
#define RULE_THREAD (threadIdx.x == THREADS - 32)

/* A block's view of the solve. PEERS: there are other ranks; RULES_AHEAD: the method applies rules ahead */
template <class M, bool PEERS, bool RULES_AHEAD = false>
struct Block {
  const int                          first, last, rows;
  Pool                               pool; /* the unused shared memory */
  double                            *scratch;
  typename Kind<M, PEERS>::Reduction grid;
  typename Kind<M, PEERS>::Ranks     ranks;
  M                                  A;
  GPUKSPState                       *st;    /* each block's copy, in shared memory, */
  int                               *stops; /* in shared memory too: see rule_ahead() */

  /* Loads the matrix' tables and the state to shared memory */
  __device__ __forceinline__ Block(const Args<M, PEERS> &a) : first(a.bounds[blockIdx.x]), last(a.bounds[blockIdx.x + 1]), rows(last - first), A(a.A)
  {
    extern __shared__ __align__(16) char memory[];
    __shared__ GPUKSPState               state;
    __shared__ int                       stop[2];
    __shared__ double                    part[GPUKSP_GRID_SUMS * MOST_WARPS], all[2 * GPUKSP_GRID_SUMS * CLUSTER], total[2 * GPUKSP_GRID_SUMS];

    pool    = {memory, a.shared};
    scratch = (double *)memory;
    meet(a, {a.slots, a.epoch, part, all, total});
    st    = &state;
    stops = stop;
    if (A.shares()) { /* the most scratch that a product needs */
      pool.next += THREADS * sizeof(double);
      pool.left -= THREADS * sizeof(double);
    }
    A.settle(pool);
    if (threadIdx.x == 0) {
      *st = a.start;
      if (blockIdx.x) st->hist = NULL;
      if constexpr (RULES_AHEAD) stops[0] = stops[1] = 0;
    }
    if (!PEERS && !a.slots) { /* all blocks of the cluster have started */
      cluster_arrive();
      cluster_wait();
    }
    __syncthreads();
  }

  __device__ __forceinline__ void meet(const ArgsAlone<M> &, const GridReduction &here)
  {
    grid = here;
  }

  __device__ __forceinline__ void meet(const ArgsPeers<M> &a, const GridReduction &here)
  {
    __shared__ PeerView view;

    if (threadIdx.x == 0) {
      view.o    = a.peers;
      view.here = here.slots;
      view.gone = 0;
    }
    __syncthreads();
    grid  = {here.epoch, a.here, here.part, here.total, &view};
    ranks = {&view};
    ranks.settle(first, last);
  }

  /* One thread applies the rule, all see the outcome */
  template <class F>
  __device__ __forceinline__ void rule(F f)
  {
    if (threadIdx.x == 0) f(st);
    __syncthreads();
  }

  /*
    Applies a rule without a wait: every thread continues with its results from the sums, and learns one reduction later if the step was superfluous. stops[k] is read after the next reduction, and
    written again after another
*/
  template <class F>
  __device__ __forceinline__ void rule_ahead(int k, F f)
  {
    if (RULE_THREAD) {
      f(st);
      stops[k] = st->reason;
    }
  }

  /* r = b - A x in the block's rows; bnorm with a nonzero initial guess. right: the norm is not preconditioned */
  __device__ __forceinline__ void residual(const Args<M, PEERS> &a, const Preconditioner &pc, const Rows &r, bool right)
  {
    if (!st->guesszero) {
      double bb[3] = {0, 0, 0};

      if constexpr (PEERS) {
        ranks.exchange(a.v.x, grid);
        grid_sync(grid);
      }
      A.product(Vector{a.v.x}, first, last, scratch, [&](int i, double s) { r[i] = a.v.b[first + i] - s; });
      ranks.add(Vector{a.v.x}, [&](int i, double s) { r[i] -= s; });
      FOR_ROWS(i) add_norms(a.v.b[first + i], right ? a.v.b[first + i] : pc.of(i, From{a.v.b + first}), bb);
      grid_reduce<3, false>(grid, bb);
      rule([&](GPUKSPState *s) { s->bnorm = GPUKSPNorm(s, bb); });
    } else FOR_ROWS(i) r[i] = a.v.b[first + i];
    __syncthreads();
  }

  /* |b - A x| in the norm of the convergence test, into st.truenorm; x and w are whole vectors */
  __device__ void true_norm(const GPUKSPVectors &v, int right)
  {
    double               sum[3] = {0, 0, 0};
    double              *w      = v.w + first;
    const double        *b      = v.b + first;
    const Preconditioner pc     = preconditioner(v, first);

    ranks.exchange(v.x, grid);
    rank_sync(grid);
    A.product(Vector{v.x}, first, first + rows, scratch, [&](int i, double s) { w[i] = b[i] - s; });
    ranks.add(Vector{v.x}, [&](int i, double s) { w[i] -= s; });
    __syncthreads();
    FOR_ROWS(i) add_norms(w[i], right ? w[i] : pc.of(i, From{w}), sum);
    grid_reduce<3, false>(grid, sum);
    rule([&](GPUKSPState *s) {
      s->scale    = 1;
      s->truenorm = GPUKSPNorm(s, sum);
    });
  }

  /* After x is complete: the true residual, if requested, and the state to the host */
  __device__ __forceinline__ void end(const Args<M, PEERS> &a, int right)
  {
    if (a.trueresidual) true_norm(a.v, right);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      st->epoch = grid.epoch;
      if constexpr (PEERS) st->here = grid.here;
      *a.state = *st;
    }
  }
};

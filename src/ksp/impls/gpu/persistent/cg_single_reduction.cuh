#pragma once

/*
  Conjugate gradients with a single reduction: A. T. Chronopoulos, C. W. Gear, J. Comput. Appl. Math. 25 (1989), in the form of PETSc's KSPCGUseSingleReduction(). The product of an iteration is
  s = A z; w = A p follows from s + beta w, and p'A p from a recurrence of the scalars. In a persistent kernel all blocks must see z before the product, which takes a second grid-wide reduction.

  Memory traffic of an iteration on n rows: the matrix, z and s written and read (32 n), and p, w, x and r read and written (64 n), less what stays in shared memory.
*/
#include "solve.cuh"

template <class M, bool PEERS>
struct SingleReductionCG {
  typedef Args<M, PEERS>  Arguments;
  typedef Block<M, PEERS> Rank;
  static constexpr int    GROUP = 4;
  Preconditioner          pc;
  Rows                    w, r, s, p, x;
  double                 *z;

  __device__ __forceinline__ SingleReductionCG(const Arguments &a, Rank &B) : pc(preconditioner(a.v, B.first))
  {
    pc.tabulate(a.same, B.pool);
    w = B.pool.rows(a.v.w, B.first, B.rows);
    r = B.pool.rows(a.v.r, B.first, B.rows);
    s = B.pool.rows(a.v.s, B.first, B.rows);
    p = B.pool.rows(a.v.p, B.first, B.rows);
    pc.settle(a.v.pc, B.pool, B.rows);
    x = B.pool.rows(a.v.x, B.first, B.rows);
    z = a.v.z + B.first;
  }

  /* r = b - A x, z = M r; bnorm with a nonzero initial guess */
  __device__ __forceinline__ void start(const Arguments &a, Rank &B)
  {
    const int first = B.first, last = B.last, rows = B.rows;
    double    bb[3] = {0, 0, 0};

    if (!B.st->guesszero) {
      if constexpr (PEERS) {
        B.others.exchange(a.v.x, B.grid);
        grid_sync(B.grid);
      }
      B.A.product(Vector{a.v.x}, first, last, B.scratch, [&](int i, double sum) { r[i] = a.v.b[first + i] - sum; });
      B.others.add(Vector{a.v.x}, [&](int i, double sum) { r[i] -= sum; });
      FOR_ROWS(i)
      {
        x[i] = a.v.x[first + i];
        add_norms(a.v.b[first + i], pc.of(i, From{a.v.b + first}), bb);
      }
      grid_reduce<3, false>(B.grid, bb);
      B.rule([&](GPUKSPState *st) { st->bnorm = GPUKSPNorm(st, bb); });
    }
    FOR_ROWS(i)
    {
      p[i] = w[i] = 0;
      if (B.st->guesszero) {
        r[i] = a.v.b[first + i];
        x[i] = 0;
      }
    }
    __syncthreads();
    FOR_ROWS(i) z[i] = pc.of(i, r);
  }

  /* s = A z, and all sums of the iteration */
  __device__ __forceinline__ void sums(const Arguments &a, Rank &B, double (&sum)[4])
  {
    const int rows  = B.rows;
    double    n3[3] = {0, 0, 0};

    B.others.exchange(a.v.z, B.grid);
    rank_sync(B.grid);
    sum[SUM_ZS] = 0;
    B.A.product(Vector{a.v.z}, B.first, B.last, B.scratch, [&](int i, double si) {
      s[i] = si;
      sum[SUM_ZS] += z[i] * si;
    });
    B.others.add(Vector{a.v.z}, [&](int i, double si) {
      s[i] += si;
      sum[SUM_ZS] += z[i] * si;
    });
    FOR_ROWS(i) add_norms(r[i], z[i], n3);
    sum[SUM_RR] = n3[SUM_RR];
    sum[SUM_ZZ] = n3[SUM_ZZ];
    sum[SUM_RZ] = n3[SUM_RZ];
    grid_reduce<4, false>(B.grid, sum);
  }

  /* p = z + beta p, w = s + beta w, x += alpha p, r -= alpha w, z = M r */
  __device__ __forceinline__ void update(const Rank &B, double beta, double alpha)
  {
    const int rows = B.rows;

    FOR_GROUPS(g)
    {
      double pi[GROUP], wi[GROUP], ri[GROUP], xi[GROUP];

      FOR_GROUP_READ(g, u, i)
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
};

template <class M, bool PEERS>
__global__ void __launch_bounds__(MOST_THREADS, 1) cg_single_reduction_kernel(const Args<M, PEERS> a)
{
  Block<M, PEERS>             B(a);
  SingleReductionCG<M, PEERS> S(a, B);
  const int                   rows = B.rows;

  S.start(a, B);
  for (int start = 1;; start = 0) {
    double sum[4];

    S.sums(a, B, sum);
    if (start)
      B.rule([&](GPUKSPState *st) {
        CGInit(st, sum);
        CGBeginSingle(st);
      });
    else
      B.rule([&](GPUKSPState *st) {
        CGResidual(st, sum);
        CGNextSingle(st);
      });
    if (B.st->reason) break;
    S.update(B, B.st->beta, B.st->alpha);
  }
  __syncthreads();
  FOR_ROWS(i) a.v.x[B.first + i] = S.x[i];
  B.template end<false>(a, 0);
}

#pragma once

/*
  Conjugate gradients: M. R. Hestenes, E. Stiefel, J. Res. Nat. Bur. Stand. 49 (1952), equations (3:1), with a preconditioner M; z = M r.

  The product computes the direction on reading, from vectors that were complete at the last reduction. The direction needs no synchronisation of its own, so an iteration takes two reductions. For
  large matrices with scattered columns, gathering two vectors costs more than a third synchronisation: the direction is then written first, and gathered alone. With a diagonal M only z is stored,
  and r = z / d. The step of x is applied with the next direction, which reads p anyway.

  Memory traffic of an iteration on n rows: the matrix, 72 n bytes of vectors, and 8 n for a diagonal other than a stencil's, less the vectors in shared memory (w first). The second phase runs
  backwards through the rows, to find part of z in the last-level cache.
*/
#include "solve.cuh"

/* How the product reads the direction */
enum {
  GATHERED,   /* computed entry by entry from z and p */
  BY_WINDOWS, /* computed in windows in shared memory */
  WRITTEN     /* written to a vector first: with scattered columns, gathers of two vectors would cost more */
};

template <class M, int HOW, bool PEERS>
struct CG {
  typedef Args<M, PEERS>        Arguments;
  typedef Block<M, PEERS, true> Rank;
  static constexpr int          GROUP = HOW == BY_WINDOWS ? 8 : 4, CROSSING = HOW == BY_WINDOWS ? 10 : 2; /* of entries that cross */
  Preconditioner                pc;
  Windows                       windows;
  Rows                          w, x, r;   /* r is stored after the start only if keeps is set; otherwise r = z / d */
  double                       *z, *p, *q; /* p: the direction; q: the previous or next one */
  bool                          keeps;     /* r is stored: z of a row depends on other rows, or r itself is needed */

  __device__ __forceinline__ CG(const Arguments &a, Rank &B) : pc(preconditioner(a.v, B.first))
  {
    pc.tabulate(a.same, B.pool);
    if constexpr (HOW == BY_WINDOWS) {
      B.pool.align(GPUKSP_ALIGN * sizeof(double));
      windows = {B.pool.template take<double>(4 * B.A.windows.length), B.A.windows.length};
    }
    w = B.pool.rows(a.v.w, B.first, B.rows);
    x = B.pool.rows(a.v.x, B.first, B.rows);
    pc.settle(a.v.pc, B.pool, B.rows);
    r     = B.pool.rows(a.v.r, B.first, B.rows);
    z     = a.v.z + B.first;
    p     = a.v.p + B.first;
    q     = a.v.p2 + B.first;
    keeps = pc.bs || a.start.normtype == GPUKSP_NORM_UNPRECONDITIONED;
  }

  /* z = M r, and the norms of both */
  __device__ __forceinline__ void precondition(const Arguments &a, Rank &B, double (&sum)[3])
  {
    const int rows = B.rows;

    FOR_ROWS(i)
    {
      const double zi = pc.of(i, r);

      z[i] = zi;
      add_norms(r[i], zi, sum);
    }
  }

  /* (3:1a): r = b - A x; p = z follows from p = 0; bnorm with a nonzero initial guess */
  __device__ __forceinline__ void start(const Arguments &a, Rank &B)
  {
    const int rows   = B.rows;
    double    sum[3] = {0, 0, 0};

    FOR_ROWS(i)
    {
      p[i] = 0;
      x[i] = B.st->guesszero ? 0.0 : a.v.x[B.first + i];
    }
    B.ranks.entries([&](int h) { a.v.p[h] = 0; });
    B.residual(a, pc, r, false);
    precondition(a, B, sum);
    B.ranks.template send<CROSSING>(a.v.z, B.grid);
    grid_reduce<3, true>(B.grid, sum);
    B.rule([&](GPUKSPState *s) {
      CGInit(s, sum);
      CGBegin(s);
    });
  }

  /*
    (3:1f) p = z + beta p, into q; (3:1c) of the previous iteration, x += alpha p; w = A p; and the sum p'w of (3:1b). Reads the matrix, z, p and x; writes q, x and w: 48 bytes a row, 64 if the
    direction is written first
  */
  __device__ __forceinline__ double direction(const Arguments &a, Rank &B, double beta, double alpha)
  {
    const int first = B.first, last = B.last, rows = B.rows;
    double    pw = 0;

    const bool first_off = B.ranks.shares_rows();
    const auto off       = [&] { return B.ranks.template direction<3>(a.v.z, p - first, q - first, beta, B.grid.epoch - 1); }; /* z was sent before the last reduction */

    if (first_off) pw += off();
    if constexpr (HOW == BY_WINDOWS) {
      windows.product(B.A, a.v.z, p - first, beta, a.n, first, rows, x, [&](int i, double s, double now, double before, double xi) {
        w[i] = s;
        q[i] = now;
        x[i] = xi + alpha * before;
        pw += now * s;
      });
    } else if constexpr (HOW == WRITTEN) {
      FOR_GROUPS(g)
      {
        double zi[GROUP], pi[GROUP], xi[GROUP];

        FOR_GROUP_READ(g, u, i)
        {
          zi[u] = z[i];
          pi[u] = p[i];
          xi[u] = x[i];
        }
        FOR_GROUP(g, u, i)
        {
          q[i] = zi[u] + beta * pi[u];
          x[i] = xi[u] + alpha * pi[u];
        }
      }
      rank_sync(B.grid);
      B.A.product(Vector{q - first}, first, last, B.scratch, [&](int i, double s) {
        const double now = q[i];

        w[i] = s;
        pw += now * s;
      });
    } else {
      B.A.product(Direction{a.v.z, p - first, beta}, first, last, B.scratch, [&](int i, double s) {
        const double before = p[i], now = z[i] + beta * before;

        w[i] = s;
        q[i] = now;
        x[i] += alpha * before;
        pw += now * s;
      });
    }
    if (!first_off) pw += off();
    return pw;
  }

  /* Double buffering: other blocks still read p */
  __device__ __forceinline__ void turn()
  {
    double *const old = p;

    p = q;
    q = old;
  }

  /* (3:1d) with a diagonal M, in z alone: z -= alpha d w, r = z / d, with d and 1 / d looked up by a row's key; and the sums. Reads z, w and the key, writes z: 24 bytes a row and the key */
  template <class Key, class Factors>
  __device__ __forceinline__ void update(const Rank &B, double alpha, double (&sum)[3], Key key, Factors factors)
  {
    const int rows = B.rows;

    FOR_GROUPS_BACK(g)
    {
      double           zi[GROUP], wi[GROUP];
      decltype(key(0)) ki[GROUP];

      FOR_GROUP_READ(g, u, i)
      {
        zi[u] = z[i];
        wi[u] = w[i];
        ki[u] = key(i);
      }
      FOR_GROUP(g, u, i)
      {
        double di, over;

        factors(ki[u], di, over);
        zi[u] -= alpha * (di * wi[u]);
        z[i] = zi[u];
        add_norms(zi[u] * over, zi[u], sum);
      }
    }
  }

  /* (3:1d): r -= alpha w, z = M r; and the sums of (3:1e) and of the convergence test */
  __device__ __forceinline__ void residual(const Arguments &a, Rank &B, double alpha, double (&sum)[3])
  {
    const int first = B.first, rows = B.rows;

    B.ranks.template settle_sums<CROSSING>(w);
    if (keeps) {
      FOR_ROWS(i) r[i] -= alpha * w[i];
      __syncthreads();
      precondition(a, B, sum);
    } else if (pc.table)
      update(
        B, alpha, sum, [&](int i) { return (int)pc.id[first + i]; },
        [&](int k, double &di, double &over) {
          di   = pc.table[k];
          over = pc.table[pc.tables + k];
        });
    else if (pc.diagonal)
      update(
        B, alpha, sum, [&](int i) { return pc.d[i]; },
        [](double d, double &di, double &over) {
          di   = d;
          over = d != 0.0 ? 1 / d : 0.0;
        });
    else
      update(
        B, alpha, sum, [](int) { return 0; }, [](int, double &di, double &over) { di = over = 1; });
  }
};

template <class M, int HOW, bool PEERS>
__global__ void __launch_bounds__(HOW == BY_WINDOWS ? WINDOW_THREADS : MOST_THREADS, 1) cg_kernel(const Args<M, PEERS> a)
{
  Block<M, PEERS, true> B(a);
  CG<M, HOW, PEERS>     S(a, B);
  const int             rows = B.rows;

  S.start(a, B);

  double     rho    = B.st->rho;
  double     xalpha = 0, beta = B.st->beta;
  const bool ended = B.st->reason; /* ended before the first iteration; later stops[] says so */

  while (!ended) {
    double pw[1] = {S.direction(a, B, beta, xalpha)}, sum[3];

    xalpha = 0;
    S.turn();
    grid_reduce<1, PEERS>(B.grid, pw); /* sums for other blocks' rows become visible */
    if (B.stops[1]) break;
    B.rule_ahead(0, [&](GPUKSPState *s) { CGCurvature(s, pw[0]); });
    xalpha = (rho / pw[0]); /* (3:1b) */
    sum[0] = sum[1] = sum[2] = 0;
    S.residual(a, B, xalpha, sum);
    B.ranks.template send<CG<M, HOW, PEERS>::CROSSING>(a.v.z, B.grid);
    grid_reduce<3, true>(B.grid, sum);
    if (B.stops[0]) { /* breakdown: x keeps the previous iterate */
      xalpha = 0;
      break;
    }
    B.rule_ahead(1, [&](GPUKSPState *s) {
      CGResidual(s, sum);
      CGNext(s);
    });
    beta = (sum[SUM_RZ] / rho); /* (3:1e) */
    rho  = sum[SUM_RZ];
  }
  __syncthreads();

  /* The last step of x; vectors resident in shared memory are written back */
  FOR_ROWS(i)
  {
    const double step = xalpha != 0.0 ? xalpha * S.p[i] : 0.0; /* after a breakdown p may be NaN */

    a.v.x[B.first + i] = S.x[i] + step;
  }
  B.end(a, 0);
}

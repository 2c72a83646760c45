#pragma once

/*
  BiCGStab with halo recomputation (halo.cuh): two grid-wide reductions an iteration in place of three or more, and with several ranks no other exchange. The method is bcgs.cuh's in another order.

  Every block keeps its halos of r and p as inputs of the product; r becomes s and then the next r. The block recomputes both halos from the halos of v = A p and t = A s alone. The second reduction must
  then give beta too. Its rho is predicted as (s - omega t)'rp from the sums s'rp and t'rp: J. Jacques et al., "Electromagnetic scattering with the boundary integral method on MIMD systems" (1999). As in
  predict-and-recompute conjugate gradients (cg_halo.cuh) the prediction serves beta alone. rho and the norm of r are summed again with the next v'rp, for alpha and for the tests, and so equal
  bcgs.cuh's up to rounding. If r is much shorter than s, the prediction would cancel, and another reduction sums rho from r itself.

  The rules of one reduction run during the next. x takes a step when the second reduction has given omega; by then the rules of the first have accepted the residual before it.

  Memory traffic of an iteration: the matrix twice, v and t written (16 bytes a row), and the halos of v, twice, and of t read. Everything else is in registers and shared memory.
*/
#include "halo.cuh"

/* If r'r is this part of s's, or less, cancellation could cost a predicted rho more than two digits */
#define BCGS_CANCELS 1e-4

template <class M, int SIZE, int ROWS, bool PEERS>
struct HaloBCGS {
  typedef Args<M, PEERS>        Arguments;
  typedef Block<M, PEERS, true> Rank;
  enum {
    SIGMA, /* v'rp */
    RHO,   /* r'rp */
    NORM,  /* r'r */
    FIRST
  };
  enum {
    TS,
    TT,
    SS,
    RS, /* s'rp */
    RT, /* t'rp */
    SECOND
  };
  const Halo<M, PEERS> halo;
  double              *r, *p, *w, *far;                                  /* in shared memory: r, then s, and p, as inputs of the product; the product; v of other ranks */
  double               ri[ROWS], oi[ROWS], vi[ROWS], xi[ROWS], di[ROWS]; /* of the thread's own rows: r or s, rp, v, x, the diagonal */
  const bool           right;

  __device__ __forceinline__ HaloBCGS(const Arguments &a, Rank &B)
      : halo(a, B), r(B.pool.template take<double>(halo.count + halo.remote)), p(B.pool.template take<double>(halo.count + halo.remote)), w(B.pool.template take<double>(halo.rows)), far(B.pool.template take<double>(halo.remote)), right(a.right)
  {
  }

  /* left() preconditions the result of a product, hat() the input, each for a preconditioner on its side */
  __device__ __forceinline__ double left(int k, double q) const
  {
    return right ? q : di[k] * q;
  }

  __device__ __forceinline__ double hat(int k, double q) const
  {
    return right ? di[k] * q : q;
  }

  /* r = b - A x, left preconditioned; rp = p = r; bnorm with a nonzero initial guess */
  __device__ __forceinline__ void start(const Arguments &a, Rank &B)
  {
    const int rows = B.rows;

    halo.template start<SIZE>(a, B, w, a.v.r, r, p, di, xi, ri, right);
    FOR_OWN(k, i)
    {
      ri[k] = oi[k] = left(k, ri[k]);
      vi[k]         = 0;
    }
  }

  /* v = A p into `to`, and its sums; meanwhile rule() runs */
  template <class F>
  __device__ __forceinline__ void direction(Rank &B, double *to, double (&sum)[FIRST], F rule)
  {
    const int first = B.first, rows = B.rows;

    halo.product(B, p, w);
    FOR_OWN(k, i)
    {
      vi[k]         = left(k, w[i]);
      to[first + i] = hat(k, vi[k]);
      sum[SIGMA] += vi[k] * oi[k];
      sum[RHO] += ri[k] * oi[k];
      sum[NORM] += ri[k] * ri[k];
    }
    B.ranks.template send<2>(to, B.grid);
    grid_reduce<FIRST, true>(B.grid, sum, rule);
  }

  /* s = r - alpha v in all entries that the block keeps */
  __device__ __forceinline__ void half(Rank &B, const double *v, double alpha)
  {
    const int     rows = B.rows;
    double *const s = r, *const keep = far;

    halo.template entries<HALO_GROUP(SIZE), 1>([=](int c, double(&e)[1]) { e[0] = v[c]; }, [=](int at, double(&e)[1]) { s[at] -= alpha * e[0]; });
    halo.template received<HALO_GROUP(SIZE)>(B, [=](int h, int at, double e) {
      keep[h] = e;
      s[at] -= alpha * e;
    });
    FOR_OWN(k, i)
    {
      ri[k] -= alpha * vi[k];
      s[halo.own + i] -= alpha * hat(k, vi[k]);
    }
    __syncthreads();
  }

  /* t = A s into `to`, and its sums; meanwhile rule() runs */
  template <class F>
  __device__ __forceinline__ void stabilize(Rank &B, double *to, double (&sum)[SECOND], F rule)
  {
    const int first = B.first, rows = B.rows;

    halo.product(B, r, w);
    FOR_OWN(k, i)
    {
      const double ti = left(k, w[i]);

      to[first + i] = hat(k, ti);
      sum[TS] += ri[k] * ti;
      sum[TT] += ti * ti;
      sum[SS] += ri[k] * ri[k];
      sum[RS] += ri[k] * oi[k];
      sum[RT] += ti * oi[k];
    }
    B.ranks.template send<2>(to, B.grid);
    grid_reduce<SECOND, true>(B.grid, sum, rule);
  }

  /* r = s - omega t and p = a r + b (p - omega v) in all entries of the block and its halo. x += alpha p + omega s, if x takes a step */
  __device__ __forceinline__ void update(Rank &B, const double *v, const double *t, double alpha, double omega, double a, double b, bool moves)
  {
    const int     rows = B.rows;
    double *const q = r, *const d = p, *const kept = far;

    const auto both = [=](int at, double ve, double te) {
      const double re = q[at] - omega * te;

      q[at] = re;
      d[at] = a * re + b * (d[at] - omega * ve);
    };

    halo.template entries<HALO_GROUP(SIZE), 2>(
      [=](int c, double(&e)[2]) {
        e[0] = v[c];
        e[1] = t[c];
      },
      [=](int at, double(&e)[2]) { both(at, e[0], e[1]); });
    halo.template received<HALO_GROUP(SIZE)>(B, [=](int h, int at, double e) { both(at, kept[h], e); });
    FOR_OWN(k, i)
    {
      const double ti = left(k, w[i]);

      if (moves) xi[k] += alpha * d[halo.own + i] + omega * q[halo.own + i];
      ri[k] -= omega * ti;
      both(halo.own + i, hat(k, vi[k]), hat(k, ti));
    }
    __syncthreads();
  }

  /* The same if the prediction would cancel: rho is summed from r, before beta and p */
  __device__ __forceinline__ void update_summed(Rank &B, const double *v, const double *t, double alpha, double omega, double rhoold, bool moves)
  {
    const int rows   = B.rows;
    double    rho[1] = {0}, beta;

    update(B, v, t, alpha, omega, 0, 1, moves);
    FOR_OWN(k, i) rho[0] += ri[k] * oi[k];
    grid_reduce<1, false>(B.grid, rho);
    beta = rho[0] / rhoold * (alpha / omega);
    for (int i = threadIdx.x; i < halo.count + halo.remote; i += THREADS) p[i] = r[i] + beta * p[i];
    __syncthreads();
  }
};

template <class M, int SIZE, int ROWS, bool PEERS>
__global__ void __launch_bounds__(SIZE, 1) bcgs_halo_kernel(const Args<M, PEERS> a)
{
  typedef HaloBCGS<M, SIZE, ROWS, PEERS> Solver;
  typename Solver::Rank                  B(a);
  Solver                                 S(a, B);
  const int                              rows = B.rows;
  bool                                   told = true; /* the rule of the last second reduction has run, or there was none */

  /* the totals of the reduction before the current one */
  const auto before = [&](int k) { return B.grid.what(B.grid.total[(~B.grid.epoch & 1) * GPUKSP_GRID_SUMS + k]); };

  S.start(a, B);
  for (int n = 0;; n++) {
    double *const v                  = n & 1 ? a.v.v2 : a.v.v; /* read until the second reduction, which other blocks may not have passed */
    double        s1[Solver::FIRST]  = {0, 0, 0};
    double        s2[Solver::SECOND] = {0, 0, 0, 0, 0};

    S.direction(B, v, s1, [&] {
      if (RULE_THREAD && !told) {
        BCGSStabilize(B.st, before(Solver::TS), before(Solver::TT), before(Solver::SS));
        B.stops[0] = B.st->reason;
      }
    });
    if (B.stops[0]) break;
    const double alpha = s1[Solver::RHO] / s1[Solver::SIGMA];

    S.half(B, v, alpha);
    S.stabilize(B, a.v.t, s2, [&] {
      if (RULE_THREAD) {
        if (n) {
          BCGSResidual(B.st, before(Solver::NORM), before(Solver::RHO));
          BCGSNext(B.st);
        } else {
          BCGSInit(B.st, before(Solver::NORM));
          BCGSBegin(B.st);
        }
        if (!B.st->reason) BCGSDirection(B.st, before(Solver::SIGMA));
        B.stops[0] = B.st->reason;
      }
    });
    if (B.stops[0]) break;
    const double tt = s2[Solver::TT], ss = s2[Solver::SS], omega = tt != 0 ? s2[Solver::TS] / tt : 0;
    const bool   moves = tt != 0 || ss == 0; /* if only t is 0, the rule ends the solve before a step; if t and s are 0, x + alpha p is the solution */

    told = !(ss - omega * s2[Solver::TS] > BCGS_CANCELS * ss);
    if (told) {
      B.rule_ahead(1, [&](GPUKSPState *st) { BCGSStabilize(st, s2[Solver::TS], tt, ss); });
      S.update_summed(B, v, a.v.t, alpha, omega, s1[Solver::RHO], moves);
      if (B.stops[1]) break;
    } else S.update(B, v, a.v.t, alpha, omega, 1, (s2[Solver::RS] - omega * s2[Solver::RT]) / s1[Solver::RHO] * (alpha / omega), moves);
  }
  __syncthreads();
  FOR_OWN(k, i) a.v.x[B.first + i] = S.xi[k];
  B.end(a, a.right);
}

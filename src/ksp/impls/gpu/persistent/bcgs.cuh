#pragma once

/*
  BiCGStab: H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992). rp is the shadow residual. With right preconditioning, ph = M p and sh = M s replace p and s in products and in x.

  The products compute p and s on reading, from vectors that were complete at the last reduction. So an iteration takes three grid-wide reductions, or five with diagonal blocks on the right.
  For large matrices gathers of several vectors cost more than two reductions: p and s are then written first (WRITE).

  Memory traffic of an iteration on n rows: the matrix twice, and of vectors 72 n bytes with the first product (r, v, p and rp read, q and u written, and missed gathers), 40 n with the second (r and
  v read, t and s written), 56 n with the update (x, s, p, t and rp read, x and r written), less the vectors in shared memory (t, s and rp first).
*/
#include "solve.cuh"

template <class M, bool PEERS, bool WRITE>
struct BCGS {
  typedef Args<M, PEERS>  Arguments;
  typedef Block<M, PEERS> Rank;
  static constexpr int    GROUP = 4;
  Preconditioner          pc;
  Rows                    t, s, rp, x, w;
  double                 *r, *ph, *sh, *p, *q, *v, *u; /* p and v: current; q and u: previous or next */
  bool                    hat;                         /* right preconditioning by blocks */
  const double           *d;

  __device__ __forceinline__ BCGS(const Arguments &a, Rank &B) : pc(preconditioner(a.v, B.first))
  {
    const int first = B.first;

    pc.tabulate(a.same, B.pool);
    t  = B.pool.rows(a.v.t, first, B.rows);
    s  = WRITE ? Rows{NULL, a.v.s + first, 0} : B.pool.rows(a.v.s, first, B.rows);
    rp = B.pool.rows(a.v.rp, first, B.rows);
    pc.settle(a.v.pc, B.pool, B.rows);
    x   = B.pool.rows(a.v.x, first, B.rows);
    w   = B.pool.rows(a.v.block ? a.v.w : (double *)NULL, first, B.rows);
    r   = a.v.r + first;
    ph  = a.v.ph + first;
    sh  = a.v.sh + first;
    p   = a.v.p + first;
    q   = a.v.p2 + first;
    v   = a.v.v + first;
    u   = a.v.v2 + first;
    hat = a.v.ph != a.v.p;
    d   = hat ? a.v.pc : NULL;
  }

  /* r = b - A x, left preconditioned; rp = r, p = v = 0; bnorm with a nonzero initial guess */
  __device__ __forceinline__ void start(const Arguments &a, Rank &B)
  {
    const int first = B.first, rows = B.rows;
    double    rr[1] = {0};

    FOR_ROWS(i)
    {
      x[i] = B.st->guesszero ? 0.0 : a.v.x[first + i];
      p[i] = v[i] = 0;
    }
    B.ranks.entries([&](int h) { a.v.p[h] = a.v.v[h] = 0; });
    if constexpr (PEERS)
      if (d) {
        B.ranks.exchange((double *)d, B.grid);
        grid_sync(B.grid);
      }
    B.residual(a, pc, t, a.right);
    FOR_ROWS(i)
    {
      const double ri = a.right ? t[i] : pc.of(i, t);

      r[i] = rp[i] = ri;
      rr[0] += (double)ri * (double)ri;
    }
    B.ranks.exchange(a.v.r, B.grid);
    grid_reduce<1, true>(B.grid, rr);
    B.rule([&](GPUKSPState *st) {
      BCGSInit(st, rr[0]);
      BCGSBegin(st);
    });
  }

  /* p = r + beta (p - omega v), into q; v = A p, preconditioned, into u; and the sum v'rp */
  __device__ __forceinline__ void direction(const Arguments &a, Rank &B, double omegabeta, double beta, double (&sum)[1])
  {
    const int       first = B.first, last = B.last, rows = B.rows;
    const BCGSWhole whole = {a.v.r, v - first, p - first, d, omegabeta, beta};
    const auto      keep  = [&](int i, double vi) {
      u[i] = vi;
      sum[0] += (double)vi * (double)rp[i];
    };

    const auto off = [&](int i, double vi) {
      u[i] += vi;
      sum[0] += (double)vi * (double)rp[i];
    };

    sum[0]           = 0;
    FOR_ROWS(i) q[i] = r[i] - omegabeta * v[i] + beta * p[i];
    B.ranks.entries([&](int h) { q[h - first] = a.v.r[h] - omegabeta * v[h - first] + beta * p[h - first]; });
    if (!pc.bs) {
      B.A.product(whole, first, last, B.scratch, [&](int i, double vi) { keep(i, hat ? vi : pc.on_the_way(i, vi)); });
      B.ranks.add(whole, [&](int i, double vi) { off(i, hat ? vi : pc.on_the_way(i, vi)); });
    } else if (hat) {
      __syncthreads();
      FOR_ROWS(i) ph[i] = pc.of(i, From{q});
      B.ranks.exchange(a.v.ph, B.grid);
      grid_sync(B.grid);
      B.A.product(Vector{a.v.ph}, first, last, B.scratch, keep);
      B.ranks.add(Vector{a.v.ph}, off);
    } else {
      B.A.product(whole, first, last, B.scratch, [&](int i, double vi) { w[i] = vi; });
      B.ranks.add(whole, [&](int i, double vi) { w[i] += vi; });
      __syncthreads();
      FOR_ROWS(i) keep(i, pc.of(i, w));
    }
    B.ranks.exchange(u - first, B.grid);
  }

  /* The same with p written first */
  __device__ __forceinline__ void write_direction(const Arguments &a, Rank &B, double omegabeta, double beta, double (&sum)[1])
  {
    const int first = B.first, last = B.last, rows = B.rows;

    FOR_GROUPS(g)
    {
      double ri[GROUP], vi[GROUP], pi[GROUP];

      FOR_GROUP_READ(g, k, i)
      {
        ri[k] = r[i];
        vi[k] = v[i];
        pi[k] = p[i];
      }
      FOR_GROUP(g, k, i)
      {
        pi[k] = ri[k] - omegabeta * vi[k] + beta * pi[k];
        q[i]  = pi[k];
        if (hat) ph[i] = pc.entry(i) * pi[k];
      }
    }
    rank_sync(B.grid);
    sum[0] = 0;
    B.A.product(Vector{(hat ? ph : q) - first}, first, last, B.scratch, [&](int i, double vi) {
      if (!hat) vi = pc.on_the_way(i, vi);
      u[i] = vi;
      sum[0] += vi * rp[i];
    });
  }

  /* Double buffering: other blocks still read p and v */
  __device__ __forceinline__ void turn()
  {
    double *const oldp = p, *const oldv = v;

    p = q;
    v = u;
    q = oldp;
    u = oldv;
  }

  /* s = r - alpha v; t = A s, preconditioned; and the sums of omega = (t, s) / (t, t) */
  __device__ __forceinline__ void stabilize(const Arguments &a, Rank &B, double alpha, double (&sum)[3])
  {
    const int      first = B.first, last = B.last, rows = B.rows;
    const BCGSHalf half  = {a.v.r, v - first, d, alpha};
    const auto     tally = [&](double si, double ti) {
      sum[0] += (double)si * (double)ti;
      sum[1] += (double)ti * (double)ti;
      sum[2] += (double)si * (double)si;
    };
    const auto keep = [&](int i, double ti) {
      const double si = r[i] - alpha * v[i];

      t[i] = ti;
      s[i] = si;
      if (!PEERS) tally(si, ti);
    };
    const auto off = [&](int i, double ti) { t[i] += ti; };

    sum[0] = sum[1] = sum[2] = 0;
    if (!pc.bs) {
      B.A.product(half, first, last, B.scratch, [&](int i, double ti) { keep(i, hat ? ti : pc.on_the_way(i, ti)); });
      B.ranks.add(half, [&](int i, double ti) { off(i, hat ? ti : pc.on_the_way(i, ti)); });
    } else if (hat) {
      FOR_ROWS(i) s[i] = r[i] - alpha * v[i];
      __syncthreads();
      FOR_ROWS(i) sh[i] = pc.of(i, s);
      B.ranks.exchange(a.v.sh, B.grid);
      grid_sync(B.grid);
      B.A.product(Vector{a.v.sh}, first, last, B.scratch, keep);
      B.ranks.add(Vector{a.v.sh}, off);
    } else {
      B.A.product(half, first, last, B.scratch, [&](int i, double ti) { w[i] = ti; });
      B.ranks.add(half, [&](int i, double ti) { w[i] += ti; });
      __syncthreads();
      FOR_ROWS(i) keep(i, pc.of(i, w));
    }
    if constexpr (PEERS) { /* t is complete */
      __syncthreads();
      FOR_ROWS(i) tally(s[i], t[i]);
    }
  }

  /* The same with s written first */
  __device__ __forceinline__ void write_half(const Arguments &a, Rank &B, double alpha, double (&sum)[3])
  {
    const int first = B.first, last = B.last, rows = B.rows;

    FOR_GROUPS_BACK(g)
    {
      double ri[GROUP], vi[GROUP];

      FOR_GROUP_READ(g, k, i)
      {
        ri[k] = r[i];
        vi[k] = v[i];
      }
      FOR_GROUP(g, k, i)
      {
        ri[k] -= alpha * vi[k];
        s[i] = ri[k];
        if (hat) sh[i] = pc.entry(i) * ri[k];
      }
    }
    rank_sync(B.grid);
    sum[0] = sum[1] = sum[2] = 0;
    B.A.product(Vector{hat ? a.v.sh : a.v.s}, first, last, B.scratch, [&](int i, double ti) {
      const double si = s[i];

      if (!hat) ti = pc.on_the_way(i, ti);
      t[i] = ti;
      sum[0] += si * ti;
      sum[1] += ti * ti;
      sum[2] += si * si;
    });
  }

  /* s = 0, so x + alpha p is the solution */
  __device__ __forceinline__ void lucky(const Rank &B)
  {
    const int rows = B.rows;

    FOR_ROWS(i) x[i] += B.st->alpha * (!hat ? p[i] : pc.bs ? ph[i] : pc.entry(i) * p[i]);
  }

  /* x += alpha p + omega s, r = s - omega t, and the sums r'r and rho = r'rp */
  __device__ __forceinline__ void update(const Arguments &a, const Rank &B, double alpha, double omega, double (&sum)[2])
  {
    const int rows = B.rows;

    sum[0] = sum[1] = 0;
    FOR_GROUPS_BACK(g)
    {
      double xi[GROUP], pi[GROUP], hi[GROUP], ri[GROUP], ti[GROUP], oi[GROUP];

      FOR_GROUP_READ(g, k, i)
      {
        const bool on_the_way = hat && !pc.bs, before = hat && pc.bs;

        xi[k] = x[i];
        ri[k] = s[i];
        pi[k] = before ? ph[i] : p[i];
        hi[k] = before ? sh[i] : ri[k];
        if (on_the_way) {
          const double di = pc.entry(i);

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
        sum[0] += (double)ri[k] * (double)ri[k];
        sum[1] += (double)ri[k] * (double)oi[k];
      }
    }
    B.ranks.exchange(a.v.r, B.grid);
  }
};

template <class M, bool PEERS, bool WRITE>
__global__ void __launch_bounds__(MOST_THREADS, 1) bcgs_kernel(const Args<M, PEERS> a)
{
  Block<M, PEERS>       B(a);
  BCGS<M, PEERS, WRITE> S(a, B);
  const int             rows = B.rows;

  S.start(a, B);
  while (!B.st->reason) {
    double s1[1], s2[2], s3[3];

    if constexpr (WRITE) S.write_direction(a, B, B.st->omegaold * B.st->beta, B.st->beta, s1);
    else S.direction(a, B, B.st->omegaold * B.st->beta, B.st->beta, s1);
    S.turn();
    grid_reduce<1, true>(B.grid, s1);
    B.rule([&](GPUKSPState *st) { BCGSDirection(st, s1[0]); });
    if (B.st->reason) break;
    const double alpha = B.st->alpha;

    if constexpr (WRITE) S.write_half(a, B, alpha, s3);
    else S.stabilize(a, B, alpha, s3);
    grid_reduce<3, false>(B.grid, s3);
    B.rule([&](GPUKSPState *st) { BCGSStabilize(st, s3[0], s3[1], s3[2]); });
    if (B.st->lucky) S.lucky(B);
    if (B.st->reason) break;

    S.update(a, B, alpha, B.st->omega, s2);
    grid_reduce<2, true>(B.grid, s2);
    B.rule([&](GPUKSPState *st) {
      BCGSResidual(st, s2[0], s2[1]);
      BCGSNext(st);
    });
  }
  FOR_ROWS(i) a.v.x[B.first + i] = S.x[i];
  B.end(a, a.right);
}

#pragma once

/*
  Conjugate gradients with halo recomputation: one grid-wide reduction an iteration. A block's shared memory must hold all entries of z and p that its rows need, the halo included.

  Every block recomputes its halo of z and p from the halo of y = M A p alone: z -= alpha y, p = z + beta p. Both step lengths must come from one reduction. So rho of the next residual is
  predicted as (r - alpha w)'M(r - alpha w) with w = A p. The prediction serves beta alone; rho is summed again with the next p'A p, for alpha and for the tests: T. Chen, E. Carson,
  SIAM J. Sci. Comput. 42 (2020), "Predict-and-recompute conjugate gradient variants".

  The rules of one reduction run during the next. x takes a step once the rules have accepted the step.

  If other ranks have a part of the halo, they send their y, and the block keeps z and p of this part too.

  Memory traffic of an iteration: the matrix, y written (8 bytes a row) and its halos read. Everything else is in registers and shared memory.
*/
#include "halo.cuh"

/* Halo elements that a thread has in flight. All of a block's range are updated: with halo.cuh's list of pieces the compiler would not overlap the loads of a 27-point product */
#define WHOLE_GROUP 6

template <class M, int SIZE, int ROWS, bool PEERS>
struct HaloCG {
  typedef Args<M, PEERS>        Arguments;
  typedef Block<M, PEERS, true> Rank;
  enum {
    MU,    /* p'w */
    DELTA, /* z'w */
    GAMMA, /* w'y */
    RHO,   /* r'z */
    NORM,
    SUMS
  };
  const Range<M, PEERS> at;
  double               *z, *p, *w;
  double                ri[ROWS], zi[ROWS], xi[ROWS], step[ROWS], di[ROWS]; /* of the thread's own rows */
  const bool            unpreconditioned;

  __device__ __forceinline__ HaloCG(const Arguments &a, Rank &B)
      : at(a, B), z(B.pool.template take<double>(at.count + at.remote)), p(B.pool.template take<double>(at.count + at.remote)), w(B.pool.template take<double>(B.rows)), unpreconditioned(a.start.normtype == GPUKSP_NORM_UNPRECONDITIONED)
  {
  }

  /* r = b - A x, z = M r, p = z; bnorm with a nonzero initial guess */
  __device__ __forceinline__ void start(const Arguments &a, Rank &B)
  {
    const int rows = B.rows;

    at.template start<SIZE>(a, B, w, a.v.z, z, p, di, xi, ri, false);
    FOR_OWN(k, i)
    {
      step[k] = 0;
      zi[k]   = z[at.own + i];
    }
  }

  /* w = A p, y = M w, and all sums of the iteration; meanwhile the rules of the previous one run */
  __device__ __forceinline__ void sums(Rank &B, double *y, int n, double (&sum)[SUMS])
  {
    const int first = B.first, rows = B.rows;

    at.product(B, p, w);
    FOR_OWN(k, i)
    {
      const double wi = w[i], pi = p[at.own + i], yi = di[k] * wi, norm = unpreconditioned ? ri[k] : zi[k];

      y[first + i] = yi;
      sum[MU] += pi * wi;
      sum[DELTA] += zi[k] * wi;
      sum[GAMMA] += wi * yi;
      sum[RHO] += ri[k] * zi[k];
      sum[NORM] += norm * norm;
    }
    B.ranks.template send<2>(y, B.grid);
    grid_reduce<SUMS, true>(B.grid, sum, [&] {
      if (RULE_THREAD && n) {
        const double *before = B.grid.total + (~B.grid.epoch & 1) * GPUKSP_GRID_SUMS, norm = B.grid.what(before[NORM]), norms[3] = {norm, norm, before[RHO]};

        if (n > 1) {
          CGResidual(B.st, norms);
          CGNext(B.st);
        } else {
          CGInit(B.st, norms);
          CGBegin(B.st);
        }
        if (!B.st->reason) CGCurvature(B.st, before[MU]);
        B.stops[0] = B.st->reason;
      }
    });
  }

  /* In the halo: z -= alpha y, p = z + beta p. In the thread's own rows also r -= alpha w and the step of x */
  __device__ __forceinline__ void update(const Rank &B, const double *y, double alpha, double beta)
  {
    constexpr int AT_ONCE = SIZE == 1024 ? 2 : WHOLE_GROUP; /* blocks of 1024 threads have 64 registers each */
    const int     rows = B.rows, lo = at.lo, own = at.own, halo = at.count - rows;
    const auto    renew = [&](int t, double yt) {
      const double zt = z[t] - alpha * yt;

      z[t] = zt;
      p[t] = zt + beta * p[t];
    };

    for (int g = threadIdx.x; g < halo; g += WHOLE_GROUP * THREADS) {
      double yi[WHOLE_GROUP];

#pragma unroll
      for (int u = 0; u < WHOLE_GROUP; u++) {
        const int h = g + u * THREADS;

        if (h < halo) yi[u] = y[lo + (h < own ? h : h + rows)];
      }
#pragma unroll
      for (int u = 0; u < WHOLE_GROUP; u++) {
        const int h = g + u * THREADS, t = h < own ? h : h + rows;

        if (h < halo) renew(t, yi[u]);
      }
    }
    at.template received<AT_ONCE>(B, [&](int, int t, double yt) { renew(t, yt); });
    FOR_OWN(k, i)
    {
      const double wi = w[i], before = p[own + i];

      zi[k] -= alpha * (di[k] * wi);
      ri[k] -= alpha * wi;
      xi[k] += step[k];
      step[k]    = alpha * before;
      p[own + i] = zi[k] + beta * before;
    }
  }
};

template <class M, int SIZE, int ROWS, bool PEERS>
__global__ void __launch_bounds__(SIZE, 1) cg_halo_kernel(const Args<M, PEERS> a)
{
  typedef HaloCG<M, SIZE, ROWS, PEERS> Solver;
  typename Solver::Rank                B(a);
  Solver                               S(a, B);
  const int                            rows = B.rows;

  S.start(a, B);
  for (int n = 0;; n++) {
    double *const y                 = n & 1 ? a.v.p2 : a.v.p; /* other blocks may be one reduction behind */
    double        sum[Solver::SUMS] = {0, 0, 0, 0, 0};

    S.sums(B, y, n, sum);
    if (B.stops[0]) break;

    /* alpha from the summed rho, beta from the predicted */
    const double mu = 1 / sum[Solver::MU], alpha = sum[Solver::RHO] * mu, beta = fmax(0.0, 1 + (alpha * sum[Solver::GAMMA] - 2 * sum[Solver::DELTA]) * mu);

    S.update(B, y, alpha, beta);
    __syncthreads();
  }
  __syncthreads();
  FOR_OWN(k, i) a.v.x[B.first + i] = S.xi[k];
  B.end(a, 0);
}

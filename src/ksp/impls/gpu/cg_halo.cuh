#pragma once

/*
  Conjugate gradients with halo recomputation: one grid-wide reduction an iteration. A block's shared memory must hold all that its rows need of z and p, the halo included.

  Every block recomputes its halo of z and p from the halo of y = M A p alone: z -= alpha y, p = z + beta p. That needs both step lengths after one reduction. So rho of the next residual is
  predicted as (r - alpha w)'M(r - alpha w) with w = A p. The prediction serves beta alone; rho is summed again with the next p'A p, for alpha and for the tests: T. Chen, E. Carson,
  SIAM J. Sci. Comput. 42 (2020), "Predict-and-recompute conjugate gradient variants".

  The rules of one reduction run during the next. x takes a step once the rules have accepted it.

  If other ranks have a part of the halo, they send their y, and the block keeps z and p of it too.

  Memory traffic of an iteration: the matrix, y written (8 bytes a row) and its halos read. All else is in registers and shared memory.
*/
#include "halo.cuh"

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
  const Halo<M, PEERS> halo;
  double              *z, *p, *w;
  double               ri[ROWS], zi[ROWS], xi[ROWS], step[ROWS], di[ROWS]; /* of the thread's own rows */
  const bool           unpreconditioned;

  __device__ __forceinline__ HaloCG(const Arguments &a, Rank &B)
      : halo(a, B), z(B.pool.template take<double>(halo.count + halo.remote)), p(B.pool.template take<double>(halo.count + halo.remote)), w(B.pool.template take<double>(halo.rows)), unpreconditioned(a.start.normtype == KSP_NORM_UNPRECONDITIONED)
  {
  }

  /* r = b - A x, z = M r, p = z; bnorm with a nonzero initial guess */
  __device__ __forceinline__ void start(const Arguments &a, Rank &B)
  {
    const int first = B.first, last = B.last, rows = B.rows;

    FOR_OWN(k, i)
    {
      di[k]   = a.v.pc ? a.v.pc[first + i] : 1.0;
      step[k] = 0;
      xi[k]   = B.st->guesszero ? 0.0 : a.v.x[first + i];
      ri[k]   = a.v.b[first + i];
    }
    if (B.st->guesszero && !PEERS) {
      for (int i = threadIdx.x; i < halo.count; i += THREADS) z[i] = p[i] = (a.v.pc ? a.v.pc[halo.lo + i] : 1.0) * a.v.b[halo.lo + i];
    } else {
      double bb[3] = {0, 0, 0};

      if (!B.st->guesszero) {
        if constexpr (PEERS) {
          B.others.exchange(a.v.x, B.grid);
          grid_sync(B.grid);
        }
        B.A.product(Vector{a.v.x}, first, last, B.scratch, [&](int i, double sum) { w[i] = sum; });
        B.others.add(Vector{a.v.x}, [&](int i, double sum) { w[i] += sum; });
        __syncthreads();
        FOR_OWN(k, i)
        {
          add_norms(ri[k], di[k] * ri[k], bb);
          ri[k] -= w[i];
        }
      }
      FOR_OWN(k, i) a.v.z[first + i] = di[k] * ri[k];
      B.others.template send<2>(a.v.z, B.grid);
      grid_reduce<3, true>(B.grid, bb);
      if (!B.st->guesszero) B.rule([&](GPUKSPState *s) { s->bnorm = GPUKSPNorm(s, bb); });
      for (int i = threadIdx.x; i < halo.count; i += THREADS) z[i] = p[i] = a.v.z[halo.lo + i];
      halo.template received<2>(B, [&](int, int at, double zh) { z[at] = p[at] = zh; });
    }
    __syncthreads();
    FOR_OWN(k, i) zi[k] = z[halo.own + i];
  }

  /* w = A p, y = M w, and all sums of the iteration; meanwhile the rules of the previous one run */
  __device__ __forceinline__ void sums(Rank &B, double *y, int n, double (&sum)[SUMS])
  {
    const int first = B.first, rows = B.rows;

    halo.product(B, p, w);
    FOR_OWN(k, i)
    {
      const double wi = w[i], pi = p[halo.own + i], yi = di[k] * wi, norm = unpreconditioned ? ri[k] : zi[k];

      y[first + i] = yi;
      sum[MU] += pi * wi;
      sum[DELTA] += zi[k] * wi;
      sum[GAMMA] += wi * yi;
      sum[RHO] += ri[k] * zi[k];
      sum[NORM] += norm * norm;
    }
    B.others.template send<2>(y, B.grid);
    grid_reduce<SUMS, true>(B.grid, sum, [&] {
      if (RULER && n) {
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
    const int     rows = B.rows;
    double *const zs = z, *const ps = p;

    const auto both = [=](int at, double ye) {
      const double zt = zs[at] - alpha * ye;

      zs[at] = zt;
      ps[at] = zt + beta * ps[at];
    };

    halo.template entries<HALO_GROUP(SIZE), 1>([=](int c, double(&e)[1]) { e[0] = y[c]; }, [=](int at, double(&e)[1]) { both(at, e[0]); });
    halo.template received<SIZE == 1024 ? 2 : 6>(B, [=](int, int at, double e) { both(at, e); });
    FOR_OWN(k, i)
    {
      const double wi = w[i], before = p[halo.own + i];

      zi[k] -= alpha * (di[k] * wi);
      ri[k] -= alpha * wi;
      xi[k] += step[k];
      step[k]         = alpha * before;
      p[halo.own + i] = zi[k] + beta * before;
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

    /* alpha from the summed rho, beta from the predicted one */
    const double mu = 1 / sum[Solver::MU], alpha = sum[Solver::RHO] * mu, beta = fmax(0.0, 1 + (alpha * sum[Solver::GAMMA] - 2 * sum[Solver::DELTA]) * mu);

    S.update(B, y, alpha, beta);
    __syncthreads();
  }
  __syncthreads();
  FOR_OWN(k, i) a.v.x[B.first + i] = S.xi[k];
  B.template end<false>(a, 0);
}

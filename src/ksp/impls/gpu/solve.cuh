#pragma once

/*
  A whole solve in one cooperative launch: conjugate gradients, standard and with a single reduction, and BiCGStab.

  Each block, one a processor, owns a range of rows of about equal work (GPUKSPPersistentPartition()) and all that is private to them; as
  much of that as fits stays in its shared memory. What other blocks read, the vector that A is multiplied with, is in global memory.

  Blocks meet in exchange(): each publishes its part of up to five sums, and reads those of all others. The flag that says that a part has
  arrived travels inside it, a half of the number with a half of a word each, so that no fence and no second round trip is needed; all
  add up the same parts in the same order, so that all take the same decisions, and two runs give the same bits. Where vectors must have become visible too,
  a fence goes before publishing, and behind reading. Small matrices are solved by one cluster, whose blocks write each other's shared memory and meet
  in hardware.

  A direction is put together where the product reads it, from vectors that were there at the last reduction, so that no meeting is only for it to become visible: CG then
  needs two meetings an iteration, CG with a single reduction too, BiCGStab three. Large matrices whose columns may be anywhere gather one vector, not two, and CG meets
  once more. Where a block's rows and all that they need of others' fit its shared memory, CG needs one: see cg_tile_kernel.

  The rules (rules.h) are those of the host. x takes the step of an iteration together with the next direction, which reads p anyway.

  Bytes an iteration of n rows, CG: those of the matrix, and of vectors 72 n, and 8 n for a diagonal that is not that of stencils, less what stays in shared memory
  (w first) and what z leaves in the last-level cache from one phase to the next, for which the second goes backwards. Needs CSR, diagonals, stencils, or sliced ELL whose
  rows move within windows of a few hundred at most.
*/
#include "persistent.cuh"
#include "reduction.cuh"
#include "windows.cuh"

/* ---- the preconditioner, of the block's rows ---- */

struct Preconditioner {
  Rows            d;     /* the diagonal, where there is one */
  const double   *block; /* rows of the diagonal blocks, whole; a block of rows holds whole ones */
  int             diagonal, bs, first;
  const uint16_t *id;    /* where the diagonal of a row is that of its stencil: which of these it has; no row of d is read then */
  const double   *table; /* in shared memory, and one over it; else NULL */
  int             tables;

  __device__ __forceinline__ double entry(int i) const
  {
    return table ? table[id[first + i]] : d[i];
  }

  __device__ __forceinline__ double on_the_way(int i, double r) const
  {
    return diagonal ? entry(i) * r : r;
  }

  /* The diagonals of stencils into shared memory, which the launch has room for: before any vector takes what is left */
  __device__ __forceinline__ void tabulate(const GPUKSPDiagonals &same, Pool &pool)
  {
    if (!diagonal || !same.table) return;
    double *const t = pool.take<double>(2 * same.count);

    for (int i = threadIdx.x; i < same.count; i += THREADS) {
      const double v = same.table[i];

      t[i]              = v;
      t[same.count + i] = v != 0.0 ? 1 / v : 0.0;
    }
    table  = t;
    tables = same.count;
    id     = same.id;
    __syncthreads();
  }

  /* The block's part of a diagonal that differs from row to row */
  __device__ __forceinline__ void settle(const double *whole, Pool &pool, int rows)
  {
    if (table) return;
    d = pool.rows((double *)whole, first, rows);
    for (int i = threadIdx.x; i < d.resident && diagonal; i += THREADS) d.nearby[i] = d.far[i];
  }

  /* r is complete in all rows of the block */
  template <class R>
  __device__ __forceinline__ double of(int i, const R &r) const
  {
    if (!bs) return on_the_way(i, r[i]);
    const int b = i - (first + i) % bs;
    double    z = 0;

    for (int j = 0; j < bs; j++) z += block[(int64_t)(first + i) * bs + j] * r[b + j];
    return z;
  }
};

__device__ __forceinline__ Preconditioner preconditioner(const GPUKSPVectors &v, int first)
{
  const double *d = v.degree ? v.diagonal : v.pc;

  return {
    {NULL, (double *)d + first, 0},
    v.block, d != NULL, v.block ? v.bs : 0, first, NULL, NULL, 0
  };
}

struct From {
  const double                     *p;
  __device__ __forceinline__ double operator[](int i) const
  {
    return p[i];
  }
};

__device__ __forceinline__ void add_norms(double r, double z, double (&sum)[3])
{
  sum[SUM_RR] += r * r;
  sum[SUM_ZZ] += z * z;
  sum[SUM_RZ] += r * z;
}

/* What a launch works on */
template <class M>
struct Args {
  M               A;
  GPUKSPVectors   v;
  const int      *bounds, *reach;
  ulonglong2     *slots;
  GPUKSPState     start, *state;
  unsigned        epoch; /* of the first meeting: slots hold earlier ones */
  int             guard, right, n;
  size_t          shared;
  GPUKSPDiagonals same;
};

#define FOR_ROWS(i) for (int i = threadIdx.x; i < rows; i += THREADS)

/* The loops of an iteration: several rows of a thread are read before the first is written, so that their loads are in flight together */
#define FOR_GROUPS(g)      for (int g = threadIdx.x; g < rows; g += GROUP * THREADS)
#define FOR_GROUPS_BACK(g) for (int g = (rows + GROUP * THREADS - 1) / (GROUP * THREADS) * (GROUP * THREADS) - GROUP * THREADS + threadIdx.x; g >= 0; g -= GROUP * THREADS)
#define FOR_GROUP(g, u, i) _Pragma("unroll") for (int u = 0, i = g; u < GROUP; u++, i += THREADS) if (i < rows)
/* To read, without branches that would keep the loads apart: the last row again where there are no more */
#define FOR_GROUP_READ(g, u, i) _Pragma("unroll") for (int u = 0, i = min(g, rows - 1); u < GROUP; u++, i = min(g + u * THREADS, rows - 1))

/* CG by tiles: elements of the halo that a thread has in flight, and the loop over its own rows, which are in registers */
#define TILE_GROUP    6
#define FOR_OWN(k, i) _Pragma("unroll") for (int k = 0, i = threadIdx.x; k < ROWS; k++, i += SIZE) if (i < rows)

#define PROLOGUE \
  extern __shared__ __align__(16) char pool_[]; \
  __shared__ GPUKSPState               st; \
  __shared__ int                       stops[2]; \
  __shared__ double                    part_[GPUKSP_MEETING * MOST_WARPS], all_[2 * GPUKSP_MEETING * CLUSTER], total_[2 * GPUKSP_MEETING]; \
  const int                            first = a.bounds[blockIdx.x], last = a.bounds[blockIdx.x + 1], rows = last - first; \
  Pool                                 pool    = {pool_, a.shared}; \
  double                              *scratch = (double *)pool_; \
  Meeting                              meeting = {a.slots, a.epoch, part_, all_, total_}; \
  M                                    A       = a.A; \
  if (A.shares()) { /* the most that a product asks for */ \
    pool.next += THREADS * sizeof(double); \
    pool.left -= THREADS * sizeof(double); \
  } \
  A.settle(pool); \
  if (threadIdx.x == 0) { \
    st = a.start; \
    if (blockIdx.x) st.hist = NULL; \
    stops[0] = stops[1] = 0; \
  } \
  if (!a.slots) { /* all are there now */ \
    cluster_arrive(); \
    cluster_wait(); \
  } \
  __syncthreads()

/* The thread that applies rules: of the warp that has rows last */
#define RULER (threadIdx.x == THREADS - 32)

/* Rules that need not be waited for: what follows is computed from the sums by every thread, and found to be too much one meeting later. stops[k] is read after
   the next meeting and written again after another one */
#define RULE_AHEAD(k, call) \
  do { \
    if (RULER) { \
      call; \
      stops[k] = st.reason; \
    } \
  } while (0)

/* One thread applies the rule, all see the outcome */
#define RULE(call) \
  do { \
    if (threadIdx.x == 0) { \
      call; \
    } \
    __syncthreads(); \
  } while (0)

/* z = a Chebyshev polynomial in A of r, whose rows the thread that has written them takes. A function of its own, which the solve without it must not make room for */
struct Polynomial {
  double *now, *next, *left, *z;
  double  emin, emax;
  int     degree;
};

template <class M>
__device__ __noinline__ unsigned chebyshev(const M &A, Polynomial v, const Preconditioner pc, Meeting meeting, int first, int rows, double *scratch)
{
  double *now = v.now, *next = v.next, *left = v.left, *z = v.z;
  double  rho = 0, ca, cb;

  for (int k = 0; k < v.degree; k++) {
    if (k) {
      meet(meeting);
      A.product(Vector{now}, first, first + rows, scratch, [&](int i, double s) { left[i] -= s; });
    }
    __syncthreads();
    rho = GPUKSPChebyshev(v.emin, v.emax, rho, &ca, &cb);
    FOR_ROWS(i)
    {
      const double y = pc.of(i, From{left}), step = k ? ca * now[first + i] + cb * y : cb * y;

      next[first + i] = step;
      z[i]            = k ? z[i] + step : step;
    }
    { /* others still read it */
      double *const old = now;

      now  = next;
      next = old;
    }
  }
  __syncthreads();
  return meeting.epoch;
}

template <class M, class R>
__device__ __forceinline__ void polynomial(const M &A, const GPUKSPVectors &v, const Preconditioner &pc, Meeting &meeting, int first, int rows, double *scratch, const R &r)
{
  FOR_ROWS(i) v.c2[first + i] = r[i];
  meeting.epoch               = chebyshev(A, {v.c0, v.c1, v.c2 + first, v.z + first, v.emin, v.emax, v.degree}, pc, meeting, first, rows, scratch);
}

/* x - the true residual, in the norm of the test, into st.truenorm; x and w are whole vectors */
template <bool POLYNOMIAL, class M>
__device__ void true_norm(const M &A, const GPUKSPVectors &v, GPUKSPState &st, Meeting &meeting, int first, int rows, double *scratch, int right)
{
  double               sum[3] = {0, 0, 0};
  double              *w      = v.w + first;
  const double        *b      = v.b + first;
  const Preconditioner pc     = preconditioner(v, first);

  meet(meeting);
  A.product(Vector{v.x}, first, first + rows, scratch, [&](int i, double s) { w[i] = b[i] - s; });
  __syncthreads();
  if constexpr (POLYNOMIAL) polynomial(A, v, pc, meeting, first, rows, scratch, w);
  FOR_ROWS(i) add_norms(w[i], right ? w[i] : POLYNOMIAL ? v.z[first + i] : pc.of(i, From{w}), sum);
  exchange<3, false>(meeting, sum);
  RULE(st.scale = 1; st.truenorm = GPUKSPNorm(&st, sum));
}

/*
  How the product of an iteration has its direction: gathered from its two parts; from windows that are put together in shared memory; or from a vector, written before at
  the price of a meeting, where columns are anywhere and the gathers of two vectors would cost more.
*/
enum {
  GATHERED,
  BY_WINDOWS,
  WRITTEN
};

template <class M, bool POLYNOMIAL, int HOW>
__global__ void __launch_bounds__(HOW == BY_WINDOWS ? WINDOW_THREADS : MOST_THREADS, 1) cg_kernel(const Args<M> a)
{
  PROLOGUE;
  constexpr int  GROUP = HOW == BY_WINDOWS ? 8 : 4;
  Preconditioner pc    = preconditioner(a.v, first);
  Windows        windows;

  pc.tabulate(a.same, pool);
  if constexpr (HOW == BY_WINDOWS) {
    pool.align(GPUKSP_ALIGN * sizeof(double));
    windows = {pool.take<double>(4 * A.windows.length), A.windows.length};
  }
  const Rows w = pool.rows(a.v.w, first, rows), x = pool.rows(a.v.x, first, rows);
  pc.settle(POLYNOMIAL ? a.v.diagonal : a.v.pc, pool, rows);
  const Rows r = pool.rows(a.v.r, first, rows);                                            /* after the start only where keeps is set: else r = z / d */
  double    *z = a.v.z + first, *p = a.v.p + first, *q = a.v.p2 + first;                   /* the direction, and the one before or to come */
  const bool keeps = pc.bs || POLYNOMIAL || a.start.normtype == KSP_NORM_UNPRECONDITIONED; /* z is no matter of a single row, or r itself is asked for */
  double     s3[3], s1[1];

  FOR_ROWS(i) p[i] = 0;

  /* r = b - A x, bnorm, and the first norms */
  if (!st.guesszero) {
    double bb[3] = {0, 0, 0};

    A.product(Vector{a.v.x}, first, last, scratch, [&](int i, double s) { r[i] = a.v.b[first + i] - s; });
    if constexpr (POLYNOMIAL) polynomial(A, a.v, pc, meeting, first, rows, scratch, a.v.b + first);
    FOR_ROWS(i)
    {
      x[i] = a.v.x[first + i];
      add_norms(a.v.b[first + i], POLYNOMIAL ? z[i] : pc.of(i, From{a.v.b + first}), bb);
    }
    exchange<3, false>(meeting, bb);
    RULE(st.bnorm = GPUKSPNorm(&st, bb));
  } else {
    FOR_ROWS(i)
    {
      r[i] = a.v.b[first + i];
      x[i] = 0;
    }
  }
  __syncthreads();
  s3[0] = s3[1] = s3[2] = 0;
  if constexpr (POLYNOMIAL) polynomial(A, a.v, pc, meeting, first, rows, scratch, r);
  FOR_ROWS(i)
  {
    const double zi = POLYNOMIAL ? z[i] : pc.of(i, r);

    z[i] = zi;
    add_norms(r[i], zi, s3);
  }
  exchange<3, true>(meeting, s3);
  RULE(CGInit(&st, s3); CGBegin(&st));

  double     rho    = st.rho;
  double     xalpha = 0, beta = st.beta;
  const bool ended = st.reason; /* before it has begun; later stops[] say so */

  while (!ended) {
    s1[0] = 0;
    if constexpr (HOW == BY_WINDOWS) {
      windows.product(A, a.v.z, p - first, beta, a.n, first, rows, x, [&](int i, double s, double now, double before, double xi) {
        w[i] = s;
        q[i] = now;
        x[i] = xi + xalpha * before;
        s1[0] += now * s;
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
          x[i] = xi[u] + xalpha * pi[u];
        }
      }
      meet(meeting);
      A.product(Vector{q - first}, first, last, scratch, [&](int i, double s) {
        const double now = q[i];

        w[i] = s;
        s1[0] += now * s;
      });
    } else {
      A.product(Direction{a.v.z, p - first, beta}, first, last, scratch, [&](int i, double s) {
        const double before = p[i], now = z[i] + beta * before;

        w[i] = s;
        q[i] = now;
        x[i] += xalpha * before;
        s1[0] += now * s;
      });
    }
    xalpha = 0;
    { /* others still read p */
      double *const old = p;

      p = q;
      q = old;
    }
    exchange<1, false>(meeting, s1);
    if (stops[1]) break;
    RULE_AHEAD(0, CGCurvature(&st, s1[0]));
    xalpha = (rho / s1[0]);
    s3[0] = s3[1] = s3[2] = 0;
    if (!keeps) {
      const auto update = [&](auto key, auto factors) {
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
            zi[u] -= xalpha * (di * wi[u]);
            z[i] = zi[u];
            add_norms(zi[u] * over, zi[u], s3);
          }
        }
      };

      if (pc.table)
        update([&](int i) { return (int)pc.id[first + i]; },
               [&](int k, double &di, double &over) {
                 di   = pc.table[k];
                 over = pc.table[pc.tables + k];
               });
      else if (pc.diagonal)
        update([&](int i) { return pc.d[i]; },
               [](double d, double &di, double &over) {
                 di   = d;
                 over = d != 0.0 ? 1 / d : 0.0;
               });
      else update([](int) { return 0; }, [](int, double &di, double &over) { di = over = 1; });
    } else {
      FOR_ROWS(i) r[i] -= xalpha * w[i];
      __syncthreads();
      if constexpr (POLYNOMIAL) polynomial(A, a.v, pc, meeting, first, rows, scratch, r);
      FOR_ROWS(i)
      {
        const double zi = POLYNOMIAL ? z[i] : pc.of(i, r);

        z[i] = zi;
        add_norms(r[i], zi, s3);
      }
    }
    exchange<3, true>(meeting, s3);
    if (stops[0]) { /* no step, then: x is where the one before has left it */
      xalpha = 0;
      break;
    }
    RULE_AHEAD(1, CGResidual(&st, s3); CGNext(&st));
    beta = (s3[SUM_RZ] / rho);
    rho  = s3[SUM_RZ];
  }
  __syncthreads();

  /* the last step of x; what is resident goes home */
  FOR_ROWS(i)
  {
    const double step = xalpha != 0.0 ? xalpha * p[i] : 0.0; /* p may be no number after a breakdown */

    a.v.x[first + i] = x[i] + step;
  }
  if (a.guard) true_norm<POLYNOMIAL>(A, a.v, st, meeting, first, rows, scratch, 0);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    st.epoch = meeting.epoch;
    *a.state = st;
  }
}

/*
  Conjugate gradients where a block has room in shared memory for all that its rows need of z and p, the halo included: one meeting an iteration.

  The halo of z and p is computed again by every block that needs it, from the halo of y = M A p alone: z -= alpha y, p = z + beta p. That needs both step lengths
  after one reduction. rho of the next residual is therefore predicted, (r - alpha w)'M(r - alpha w) with w = A p, for beta alone, and summed again beside the next
  p'A p, for alpha and for the tests: T. Chen, E. Carson, SIAM J. Sci. Comput. 42 (2020), "Predict-and-recompute conjugate gradient variants".

  The rules run behind: those of one meeting during the next. x takes each step when it is known that it is to be taken.
*/
template <class M, int SIZE, int ROWS>
__global__ void __launch_bounds__(SIZE, 1) cg_tile_kernel(const Args<M> a)
{
  enum {
    MU,    /* p'w */
    DELTA, /* z'w */
    GAMMA, /* w'y */
    RHO,   /* r'z */
    NORM,
    SUMS
  };
  PROLOGUE;
  const int  lo = a.reach[2 * blockIdx.x], count = a.reach[2 * blockIdx.x + 1] - lo, own = first - lo, halo = count - rows;
  double    *z = pool.take<double>(count), *p = pool.take<double>(count), *w = pool.take<double>(rows);
  double     ri[ROWS], zi[ROWS], xi[ROWS], step[ROWS], di[ROWS]; /* of the thread's own rows */
  const bool unpreconditioned = a.start.normtype == KSP_NORM_UNPRECONDITIONED;

  FOR_OWN(k, i)
  {
    di[k]   = a.v.pc ? a.v.pc[first + i] : 1.0;
    step[k] = 0;
    xi[k]   = st.guesszero ? 0.0 : a.v.x[first + i];
    ri[k]   = a.v.b[first + i];
  }
  if (st.guesszero) {
    for (int i = threadIdx.x; i < count; i += THREADS) z[i] = p[i] = (a.v.pc ? a.v.pc[lo + i] : 1.0) * a.v.b[lo + i];
  } else {
    double bb[3] = {0, 0, 0};

    A.product(Vector{a.v.x}, first, last, scratch, [&](int i, double sum) { w[i] = sum; });
    __syncthreads();
    FOR_OWN(k, i)
    {
      add_norms(ri[k], di[k] * ri[k], bb);
      ri[k] -= w[i];
      a.v.z[first + i] = di[k] * ri[k];
    }
    exchange<3, true>(meeting, bb);
    RULE(st.bnorm = GPUKSPNorm(&st, bb));
    for (int i = threadIdx.x; i < count; i += THREADS) z[i] = p[i] = a.v.z[lo + i];
  }
  __syncthreads();
  FOR_OWN(k, i) zi[k] = z[own + i];

  for (int n = 0;; n++) {
    double *const y         = n & 1 ? a.v.p2 : a.v.p; /* others may be a meeting behind */
    double        sum[SUMS] = {0, 0, 0, 0, 0};

    A.product(Vector{p - lo}, first, last, scratch, [&](int i, double wi) { w[i] = wi; });
    __syncthreads();
    FOR_OWN(k, i)
    {
      const double wi = w[i], pi = p[own + i], yi = di[k] * wi, norm = unpreconditioned ? ri[k] : zi[k];

      y[first + i] = yi;
      sum[MU] += pi * wi;
      sum[DELTA] += zi[k] * wi;
      sum[GAMMA] += wi * yi;
      sum[RHO] += ri[k] * zi[k];
      sum[NORM] += norm * norm;
    }
    exchange<SUMS, true>(meeting, sum, [&] {
      if (RULER && n) {
        const double *before = meeting.total + (~meeting.epoch & 1) * GPUKSP_MEETING, norms[3] = {before[NORM], before[NORM], before[RHO]};

        if (n > 1) {
          CGResidual(&st, norms);
          CGNext(&st);
        } else {
          CGInit(&st, norms);
          CGBegin(&st);
        }
        if (!st.reason) CGCurvature(&st, before[MU]);
        stops[0] = st.reason;
      }
    });
    if (stops[0]) break;

    const double mu = 1 / sum[MU], alpha = sum[RHO] * mu, beta = fmax(0.0, 1 + (alpha * sum[GAMMA] - 2 * sum[DELTA]) * mu);

    for (int g = threadIdx.x; g < halo; g += TILE_GROUP * THREADS) {
      double yi[TILE_GROUP];

#pragma unroll
      for (int u = 0; u < TILE_GROUP; u++) {
        const int h = g + u * THREADS;

        if (h < halo) yi[u] = y[lo + (h < own ? h : h + rows)];
      }
#pragma unroll
      for (int u = 0; u < TILE_GROUP; u++) {
        const int h = g + u * THREADS, t = h < own ? h : h + rows;

        if (h < halo) {
          const double zt = z[t] - alpha * yi[u];

          z[t] = zt;
          p[t] = zt + beta * p[t];
        }
      }
    }
    FOR_OWN(k, i)
    {
      const double wi = w[i], before = p[own + i];

      zi[k] -= alpha * (di[k] * wi);
      ri[k] -= alpha * wi;
      xi[k] += step[k];
      step[k]    = alpha * before;
      p[own + i] = zi[k] + beta * before;
    }
    __syncthreads();
  }
  __syncthreads();
  FOR_OWN(k, i) a.v.x[first + i] = xi[k];
  if (a.guard) true_norm<false>(A, a.v, st, meeting, first, rows, scratch, 0);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    st.epoch = meeting.epoch;
    *a.state = st;
  }
}

/* The first column that a block's rows have, and the one after the last; its own rows are counted in */
template <class M>
__global__ void __launch_bounds__(MOST_THREADS, 1) reach_kernel(M A, const int *bounds, int *reach)
{
  extern __shared__ __align__(16) char pool_[];
  __shared__ double                    scratch[MOST_THREADS];
  __shared__ int                       ends[2];
  Pool                                 pool  = {pool_, 0};
  const int                            first = bounds[blockIdx.x], last = bounds[blockIdx.x + 1];
  int                                  lo = first, hi = last;

  A.settle(pool);
  if (threadIdx.x < 2) ends[threadIdx.x] = threadIdx.x ? last : first;
  __syncthreads();
  A.product(Reach{&lo, &hi}, first, last, scratch, [](int, double) {});
  atomicMin(&ends[0], lo);
  atomicMax(&ends[1], hi);
  __syncthreads();
  if (threadIdx.x < 2) reach[2 * blockIdx.x + threadIdx.x] = ends[threadIdx.x];
}

template <class M>
__global__ void __launch_bounds__(MOST_THREADS, 1) cg1_kernel(const Args<M> a)
{
  constexpr int GROUP = 4;
  PROLOGUE;
  Preconditioner pc = preconditioner(a.v, first);

  pc.tabulate(a.same, pool);
  const Rows w = pool.rows(a.v.w, first, rows), r = pool.rows(a.v.r, first, rows), s = pool.rows(a.v.s, first, rows), p = pool.rows(a.v.p, first, rows);
  pc.settle(a.v.pc, pool, rows);
  const Rows x = pool.rows(a.v.x, first, rows);
  double    *z = a.v.z + first;
  double     s4[4], none[3] = {0, 0, 0};

  if (!st.guesszero) {
    A.product(Vector{a.v.x}, first, last, scratch, [&](int i, double sum) { r[i] = a.v.b[first + i] - sum; });
    FOR_ROWS(i)
    {
      x[i] = a.v.x[first + i];
      add_norms(a.v.b[first + i], pc.of(i, From{a.v.b + first}), none);
    }
    exchange<3, false>(meeting, none);
    RULE(st.bnorm = GPUKSPNorm(&st, none));
  }
  FOR_ROWS(i)
  {
    p[i] = w[i] = 0;
    if (st.guesszero) {
      r[i] = a.v.b[first + i];
      x[i] = 0;
    }
  }
  __syncthreads();
  FOR_ROWS(i) z[i] = pc.of(i, r);
  for (int start = 1;; start = 0) {
    double n3[3] = {0, 0, 0};

    meet(meeting);
    s4[SUM_ZS] = 0;
    A.product(Vector{a.v.z}, first, last, scratch, [&](int i, double sum) {
      s[i] = sum;
      s4[SUM_ZS] += z[i] * sum;
    });
    FOR_ROWS(i) add_norms(r[i], z[i], n3);
    s4[SUM_RR] = n3[SUM_RR];
    s4[SUM_ZZ] = n3[SUM_ZZ];
    s4[SUM_RZ] = n3[SUM_RZ];
    exchange<4, false>(meeting, s4);
    if (start) RULE(CGInit(&st, s4); CGBeginSingle(&st));
    else RULE(CGResidual(&st, s4); CGNextSingle(&st));
    if (st.reason) break;
    const double beta = st.beta, alpha = st.alpha;

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
  __syncthreads();
  FOR_ROWS(i) a.v.x[first + i] = x[i];
  if (a.guard) true_norm<false>(A, a.v, st, meeting, first, rows, scratch, 0);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    st.epoch = meeting.epoch;
    *a.state = st;
  }
}

template <class M>
__global__ void __launch_bounds__(MOST_THREADS, 1) bcgs_kernel(const Args<M> a)
{
  constexpr int GROUP = 4;
  PROLOGUE;
  Preconditioner pc = preconditioner(a.v, first);

  pc.tabulate(a.same, pool);
  const Rows t = pool.rows(a.v.t, first, rows), s = pool.rows(a.v.s, first, rows), rp = pool.rows(a.v.rp, first, rows);
  pc.settle(a.v.pc, pool, rows);
  const Rows    x = pool.rows(a.v.x, first, rows);
  const Rows    w = pool.rows(a.v.block ? a.v.w : (double *)NULL, first, rows);
  double       *r = a.v.r + first, *ph = a.v.ph + first, *sh = a.v.sh + first;
  double       *p = a.v.p + first, *q = a.v.p2 + first, *v = a.v.v + first, *u = a.v.v2 + first; /* as they are, and as they were or will be */
  const bool    hat = a.v.ph != a.v.p;                                                           /* the preconditioner comes first */
  const double *d   = hat ? a.v.pc : NULL;
  double        s1[1], s2[2], s3[3];

  FOR_ROWS(i)
  {
    x[i] = st.guesszero ? 0.0 : a.v.x[first + i];
    p[i] = v[i] = 0;
  }
  /* r = b - A x, preconditioned from the left */
  if (!st.guesszero) {
    double bb[3] = {0, 0, 0};

    A.product(Vector{a.v.x}, first, last, scratch, [&](int i, double sum) { t[i] = a.v.b[first + i] - sum; });
    FOR_ROWS(i) add_norms(a.v.b[first + i], a.right ? a.v.b[first + i] : pc.of(i, From{a.v.b + first}), bb);
    exchange<3, false>(meeting, bb);
    RULE(st.bnorm = GPUKSPNorm(&st, bb));
  } else {
    FOR_ROWS(i) t[i] = a.v.b[first + i];
  }
  __syncthreads();
  s1[0] = 0;
  FOR_ROWS(i)
  {
    const double ri = a.right ? t[i] : pc.of(i, t);

    r[i] = rp[i] = ri;
    s1[0] += (double)ri * (double)ri;
  }
  exchange<1, true>(meeting, s1);
  RULE(BCGSInit(&st, s1[0]); BCGSBegin(&st));

  while (!st.reason) {
    const double omegabeta = st.omegaold * st.beta, beta = st.beta;

    /* v = A p, preconditioned; p = r - omegabeta v + beta p */
    s1[0] = 0;
    {
      const BCGSWhole direction = {a.v.r, v - first, p - first, d, omegabeta, beta};
      const auto      keep      = [&](int i, double vi) {
        u[i] = vi;
        s1[0] += (double)vi * (double)rp[i];
      };

      FOR_ROWS(i) q[i] = r[i] - omegabeta * v[i] + beta * p[i];
      if (!pc.bs) A.product(direction, first, last, scratch, [&](int i, double sum) { keep(i, hat ? sum : pc.on_the_way(i, sum)); });
      else if (hat) {
        __syncthreads();
        FOR_ROWS(i) ph[i] = pc.of(i, From{q});
        meet(meeting);
        A.product(Vector{a.v.ph}, first, last, scratch, keep);
      } else {
        A.product(direction, first, last, scratch, [&](int i, double sum) { w[i] = sum; });
        __syncthreads();
        FOR_ROWS(i) keep(i, pc.of(i, w));
      }
    }
    { /* others still read p and v */
      double *const oldp = p, *const oldv = v;

      p = q;
      v = u;
      q = oldp;
      u = oldv;
    }
    exchange<1, true>(meeting, s1);
    RULE(BCGSDirection(&st, s1[0]));
    if (st.reason) break;
    const double alpha = st.alpha;

    /* t = A s, preconditioned; s = r - alpha v */
    s3[0] = s3[1] = s3[2] = 0;
    {
      const BCGSHalf half      = {a.v.r, v - first, d, alpha};
      const auto     stabilize = [&](int i, double ti) {
        const double si = r[i] - alpha * v[i];

        t[i] = ti;
        s[i] = si;
        s3[0] += (double)si * (double)ti;
        s3[1] += (double)ti * (double)ti;
        s3[2] += (double)si * (double)si;
      };

      if (!pc.bs) A.product(half, first, last, scratch, [&](int i, double sum) { stabilize(i, hat ? sum : pc.on_the_way(i, sum)); });
      else if (hat) {
        FOR_ROWS(i) s[i] = r[i] - alpha * v[i];
        __syncthreads();
        FOR_ROWS(i) sh[i] = pc.of(i, s);
        meet(meeting);
        A.product(Vector{a.v.sh}, first, last, scratch, stabilize);
      } else {
        A.product(half, first, last, scratch, [&](int i, double sum) { w[i] = sum; });
        __syncthreads();
        FOR_ROWS(i) stabilize(i, pc.of(i, w));
      }
    }
    exchange<3, false>(meeting, s3);
    RULE(BCGSStabilize(&st, s3[0], s3[1], s3[2]));
    if (st.lucky) {
      FOR_ROWS(i) x[i] += st.alpha * (!hat ? p[i] : pc.bs ? ph[i] : pc.entry(i) * p[i]);
    }
    if (st.reason) break;
    s2[0] = s2[1]      = 0;
    const double omega = st.omega;

    FOR_GROUPS(g)
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
        s2[0] += (double)ri[k] * (double)ri[k];
        s2[1] += (double)ri[k] * (double)oi[k];
      }
    }
    exchange<2, true>(meeting, s2);
    RULE(BCGSResidual(&st, s2[0], s2[1]); BCGSNext(&st));
  }
  FOR_ROWS(i) a.v.x[first + i] = x[i];
  if (a.guard) true_norm<false>(A, a.v, st, meeting, first, rows, scratch, a.right);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    st.epoch = meeting.epoch;
    *a.state = st;
  }
}

/* ---- from the host ---- */

/* Fills in the kernel and its arguments, then either asks about the kernel or launches it */
template <class M>
static PetscErrorCode with(const GPUKSPPersistent *L, M A, void *kernel, int *possible, GPUCSRStream s)
{
  PetscFunctionBegin;
  if (possible) {
    struct cudaFuncAttributes attr;
    int                       limit;

    GPUCSR_CUDA(cudaFuncGetAttributes(&attr, kernel));
    GPUCSR_CUDA(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, L->A->dev->id));
    *possible = limit - (int)attr.sharedSizeBytes;
    GPUCSR_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, *possible));
    if (L->cluster) { /* a device may have clusters, but none of so many blocks */
      cudaLaunchConfig_t  config    = {};
      cudaLaunchAttribute attribute = {};
      int                 most      = 0;

      attribute.id             = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim = {(unsigned)L->blocks, 1, 1};
      config.gridDim           = dim3((unsigned)L->blocks);
      config.blockDim          = dim3((unsigned)L->size);
      config.dynamicSmemBytes  = (size_t)PetscMin(*possible, SHARED_MOST);
      config.attrs             = &attribute;
      config.numAttrs          = 1;
      if (cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) || cudaOccupancyMaxActiveClusters(&most, kernel, &config) || most < 1) {
        (void)cudaGetLastError();
        *possible = -1;
      }
    }
  } else {
    Args<M>                   a         = {A, L->v, L->bounds, L->reach, L->cluster ? NULL : (ulonglong2 *)L->slots, *L->state, L->state, L->epoch, (int)L->guard, (int)L->right, L->A->m, L->shared, L->same};
    void                     *args[]    = {&a};
    cudaLaunchConfig_t        config    = {};
    cudaLaunchAttribute       attribute = {};
    struct cudaFuncAttributes attr;
    int                       all;

    GPUCSR_CUDA(cudaFuncGetAttributes(&attr, kernel));
    GPUCSR_CUDA(cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, L->A->dev->id));
    /* no more of the first-level cache than is asked for */
    GPUCSR_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, (int)PetscMin(100, (100 * (L->shared + attr.sharedSizeBytes + 1024) + (size_t)all - 1) / (size_t)all)));
    config.gridDim          = dim3((unsigned)L->blocks);
    config.blockDim         = dim3((unsigned)L->size);
    config.dynamicSmemBytes = L->shared;
    config.stream           = (cudaStream_t)s;
    config.attrs            = &attribute;
    config.numAttrs         = 1;
    if (L->cluster) {
      GPUCSR_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
      attribute.id             = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim = {(unsigned)L->blocks, 1, 1};
    } else {
      attribute.id              = cudaLaunchAttributeCooperative;
      attribute.val.cooperative = 1;
    }
    GPUCSR_CUDA(cudaLaunchKernelExC(&config, kernel, args));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

template <class M>
static void *cg_of(const GPUKSPPersistent *L)
{
  if constexpr (M::offsets) return L->windows.count ? (void *)cg_kernel<M, false, BY_WINDOWS> : (void *)cg_kernel<M, false, GATHERED>;
  else return L->written ? (void *)cg_kernel<M, false, WRITTEN> : (void *)cg_kernel<M, false, GATHERED>;
}

template <class M>
static PetscErrorCode method(const GPUKSPPersistent *L, M A, int *possible, GPUCSRStream s)
{
  void *kernel = NULL;

  PetscFunctionBegin;
  switch (L->method) {
  case GPUKSP_CG:
    if (L->halo) kernel = L->size == 1024 ? (void *)cg_tile_kernel<M, 1024, 1> : (void *)cg_tile_kernel<M, 512, TILE_ROWS>;
    else if (L->v.degree) kernel = (void *)cg_kernel<M, true, GATHERED>;
    else kernel = cg_of<M>(L);
    break;
  case GPUKSP_CG_SINGLE_REDUCTION:
    kernel = (void *)cg1_kernel<M>;
    break;
  case GPUKSP_BCGS:
    kernel = (void *)bcgs_kernel<M>;
    break;
  }
  PetscCall(with(L, A, kernel, possible, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What launch.cu asks of a format, F<V> with values V */
template <template <class> class F>
struct LaunchOf {
  template <class Do>
  static PetscErrorCode with_values(const GPUKSPPersistent *L, Do f)
  {
    PetscFunctionBegin;
    if (L->A->precision == GPUCSR_PRECISION_DOUBLE) PetscCall(f(F<double>::of(L)));
    else PetscCall(f(F<float>::of(L)));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  static PetscErrorCode run(const GPUKSPPersistent *L, int *possible, GPUCSRStream s)
  {
    PetscFunctionBegin;
    PetscCall(with_values(L, [&](auto A) -> PetscErrorCode { return method(L, A, possible, s); }));
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  static PetscErrorCode reach(const GPUKSPPersistent *L, GPUCSRStream s)
  {
    PetscFunctionBegin;
    PetscCall(with_values(L, [&](auto A) -> PetscErrorCode {
      GPUCSR_CUDA(cudaFuncSetAttribute(reach_kernel<decltype(A)>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)A.shared()));
      reach_kernel<<<(unsigned)L->blocks, MOST_THREADS, A.shared(), (cudaStream_t)s>>>(A, L->bounds, L->reach);
      return PETSC_SUCCESS;
    }));
    GPUCSRCheckLaunch("the columns of a solve's blocks");
    PetscFunctionReturn(PETSC_SUCCESS);
  }

  static PetscErrorCode shared(const GPUKSPPersistent *L, size_t *bytes)
  {
    PetscFunctionBegin;
    PetscCall(with_values(L, [&](auto A) -> PetscErrorCode {
      *bytes = A.shared();
      return PETSC_SUCCESS;
    }));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
};

#define GPUKSP_PERSISTENT_PRODUCT(name, F) const GPUKSPPersistentProduct GPUKSPPersistent_##name = {LaunchOf<F>::run, LaunchOf<F>::reach, LaunchOf<F>::shared}

/*
  A whole solve in one cooperative launch: conjugate gradients, standard and with a single reduction, and BiCGStab.

  Each block, one a processor, owns a range of rows of about equal work (GPUKSPLaunchPartition()) and all that is private to them; as
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
#include "meeting.cuh"
#include "windows.cuh"

/* ---- the preconditioner, of the block's rows ---- */

template <class X>
struct Preconditioner {
  Rows<X>         d;     /* the diagonal, where there is one */
  const X        *block; /* rows of the diagonal blocks, whole; a block of rows holds whole ones */
  int             diagonal, bs, first;
  const uint16_t *id;    /* where the diagonal of a row is that of its stencil: which of these it has; no row of d is read then */
  const X        *table; /* in shared memory, and one over it; else NULL */
  int             tables;

  __device__ __forceinline__ X entry(int i) const
  {
    return table ? table[id[first + i]] : d[i];
  }

  __device__ __forceinline__ X on_the_way(int i, X r) const
  {
    return diagonal ? entry(i) * r : r;
  }

  /* The diagonals of stencils into shared memory, which the launch has room for: before any vector takes what is left */
  __device__ __forceinline__ void tabulate(const GPUKSPDiagonals &same, Pool &pool)
  {
    if (!diagonal || !same.table) return;
    X *const t = pool.take<X>(2 * same.count);

    for (int i = threadIdx.x; i < same.count; i += THREADS) {
      const X v = same.table[i];

      t[i]              = v;
      t[same.count + i] = v != X(0) ? 1 / v : X(0);
    }
    table  = t;
    tables = same.count;
    id     = same.id;
    __syncthreads();
  }

  /* The block's part of a diagonal that differs from row to row */
  __device__ __forceinline__ void settle(const X *whole, Pool &pool, int rows)
  {
    if (table) return;
    d = pool.rows((X *)whole, first, rows);
    for (int i = threadIdx.x; i < d.resident && diagonal; i += THREADS) d.nearby[i] = d.far[i];
  }

  /* r is complete in all rows of the block */
  template <class R>
  __device__ __forceinline__ X of(int i, const R &r) const
  {
    if (!bs) return on_the_way(i, r[i]);
    const int b = i - (first + i) % bs;
    X         z = 0;

    for (int j = 0; j < bs; j++) z += block[(int64_t)(first + i) * bs + j] * r[b + j];
    return z;
  }
};

template <class X, class V>
__device__ __forceinline__ Preconditioner<X> preconditioner(const V &v, int first)
{
  const X *d = v.degree ? v.diagonal : v.pc;

  return {
    {NULL, (X *)d + first, 0},
    v.block, d != NULL, v.block ? v.bs : 0, first, NULL, NULL, 0
  };
}

template <class X>
struct From {
  const X                     *p;
  __device__ __forceinline__ X operator[](int i) const
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
#define TILE_ROWS     4 /* of a thread in blocks of 512 threads; in those of 1024, one */
#define FOR_OWN(k, i) _Pragma("unroll") for (int k = 0, i = threadIdx.x; k < ROWS; k++, i += SIZE) if (i < rows)

#define PROLOGUE \
  extern __shared__ __align__(16) char pool_[]; \
  __shared__ GPUKSPState               st; \
  __shared__ int                       stops[2]; \
  __shared__ double                    part_[GPUKSP_MEETING * MOST_WARPS], all_[2 * GPUKSP_MEETING * CLUSTER], total_[2 * GPUKSP_MEETING]; \
  const int                            first = a.bounds[blockIdx.x], last = a.bounds[blockIdx.x + 1], rows = last - first; \
  Pool                                 pool    = {pool_, a.shared}; \
  X                                   *scratch = (X *)pool_; \
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
template <class X>
struct Polynomial {
  X     *now, *next, *left, *z;
  double emin, emax;
  int    degree;
};

template <class M, class X>
__device__ __noinline__ unsigned chebyshev(const M &A, Polynomial<X> v, const Preconditioner<X> pc, Meeting meeting, int first, int rows, X *scratch)
{
  X     *now = v.now, *next = v.next, *left = v.left, *z = v.z;
  double rho = 0, ca, cb;

  for (int k = 0; k < v.degree; k++) {
    if (k) {
      meet(meeting);
      A.product(Vector<X>{now}, first, first + rows, scratch, [&](int i, X s) { left[i] -= s; });
    }
    __syncthreads();
    rho = GPUKSPChebyshev(v.emin, v.emax, rho, &ca, &cb);
    FOR_ROWS(i)
    {
      const X y = pc.of(i, From<X>{left}), step = k ? X(ca) * now[first + i] + X(cb) * y : X(cb) * y;

      next[first + i] = step;
      z[i]            = k ? z[i] + step : step;
    }
    { /* others still read it */
      X *const old = now;

      now  = next;
      next = old;
    }
  }
  __syncthreads();
  return meeting.epoch;
}

template <class M, class X, class V, class R>
__device__ __forceinline__ void polynomial(const M &A, const V &v, const Preconditioner<X> &pc, Meeting &meeting, int first, int rows, X *scratch, const R &r)
{
  FOR_ROWS(i) v.c2[first + i] = r[i];
  meeting.epoch               = chebyshev<M, X>(A, {v.c0, v.c1, v.c2 + first, v.z + first, v.emin, v.emax, v.degree}, pc, meeting, first, rows, scratch);
}

/* x - the true residual, in the norm of the test, into st.truenorm; x and w are whole vectors */
template <bool POLYNOMIAL, class M>
__device__ void true_norm(const M &A, const GPUKSPVectors &v, GPUKSPState &st, Meeting &meeting, int first, int rows, double *scratch, int right)
{
  double                       sum[3] = {0, 0, 0};
  double                      *w      = v.w + first;
  const double                *b      = v.b + first;
  const Preconditioner<double> pc     = preconditioner<double>(v, first);

  meet(meeting);
  A.product(Vector<double>{v.x}, first, first + rows, scratch, [&](int i, double s) { w[i] = b[i] - s; });
  __syncthreads();
  if constexpr (POLYNOMIAL) polynomial(A, v, pc, meeting, first, rows, scratch, w);
  FOR_ROWS(i) add_norms(w[i], right ? w[i] : POLYNOMIAL ? v.z[first + i] : pc.of(i, From<double>{w}), sum);
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
  typedef double X;
  PROLOGUE;
  constexpr int     GROUP = HOW == BY_WINDOWS ? 8 : 4;
  Preconditioner<X> pc    = preconditioner<X>(a.v, first);
  Windows           windows;

  pc.tabulate(a.same, pool);
  if constexpr (HOW == BY_WINDOWS) windows = {pool.take<X>(4 * A.windows.length), A.windows.length};
  const Rows<X> w = pool.rows(a.v.w, first, rows), x = pool.rows(a.v.x, first, rows);
  pc.settle(POLYNOMIAL ? a.v.diagonal : a.v.pc, pool, rows);
  const Rows<X> r = pool.rows(a.v.r, first, rows);                                            /* after the start only where keeps is set: else r = z / d */
  X            *z = a.v.z + first, *p = a.v.p + first, *q = a.v.p2 + first;                   /* the direction, and the one before or to come */
  const bool    keeps = pc.bs || POLYNOMIAL || a.start.normtype == KSP_NORM_UNPRECONDITIONED; /* z is no matter of a single row, or r itself is asked for */
  double        s3[3], s1[1];

  FOR_ROWS(i) p[i] = 0;

  /* r = b - A x, bnorm, and the first norms */
  if (!st.guesszero) {
    double bb[3] = {0, 0, 0};

    A.product(Vector<X>{a.v.x}, first, last, scratch, [&](int i, X s) { r[i] = a.v.b[first + i] - s; });
    if constexpr (POLYNOMIAL) polynomial(A, a.v, pc, meeting, first, rows, scratch, a.v.b + first);
    FOR_ROWS(i)
    {
      x[i] = a.v.x[first + i];
      add_norms(a.v.b[first + i], POLYNOMIAL ? z[i] : pc.of(i, From<X>{a.v.b + first}), bb);
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
    const X zi = POLYNOMIAL ? z[i] : pc.of(i, r);

    z[i] = zi;
    add_norms(r[i], zi, s3);
  }
  exchange<3, true>(meeting, s3);
  RULE(CGInit(&st, s3); CGBegin(&st));

  double     rho    = st.rho;
  X          xalpha = 0, beta = (X)st.beta;
  const bool ended = st.reason;

  while (!ended) {
    s1[0] = 0;
    if constexpr (HOW == BY_WINDOWS) {
      windows.product(A, a.v.z, p - first, beta, a.n, first, rows, x, [&](int i, X s, X now, X before, X xi) {
        w[i] = s;
        q[i] = now;
        x[i] = xi + xalpha * before;
        s1[0] += now * s;
      });
    } else if constexpr (HOW == WRITTEN) {
      FOR_GROUPS(g)
      {
        X zi[GROUP], pi[GROUP], xi[GROUP];

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
      A.product(Vector<X>{q - first}, first, last, scratch, [&](int i, X s) {
        const X now = q[i];

        w[i] = s;
        s1[0] += now * s;
      });
    } else {
      A.product(Direction<X>{a.v.z, p - first, beta}, first, last, scratch, [&](int i, X s) {
        const X before = p[i], now = z[i] + beta * before;

        w[i] = s;
        q[i] = now;
        x[i] += xalpha * before;
        s1[0] += (double)now * (double)s;
      });
    }
    xalpha = 0;
    { /* others still read p */
      X *const old = p;

      p = q;
      q = old;
    }
    exchange<1, false>(meeting, s1);
    if (stops[1]) break;
    RULE_AHEAD(0, CGCurvature(&st, s1[0]));
    xalpha = (X)(rho / s1[0]);
    s3[0] = s3[1] = s3[2] = 0;
    if (!keeps) {
      const auto update = [&](auto key, auto factors) {
        FOR_GROUPS_BACK(g)
        {
          X                zi[GROUP], wi[GROUP];
          decltype(key(0)) ki[GROUP];

          FOR_GROUP_READ(g, u, i)
          {
            zi[u] = z[i];
            wi[u] = w[i];
            ki[u] = key(i);
          }
          FOR_GROUP(g, u, i)
          {
            X di, over;

            factors(ki[u], di, over);
            zi[u] -= xalpha * (di * wi[u]);
            z[i] = zi[u];
            add_norms(zi[u] * over, zi[u], s3);
          }
        }
      };

      if (pc.table)
        update([&](int i) { return (int)pc.id[first + i]; },
               [&](int k, X &di, X &over) {
                 di   = pc.table[k];
                 over = pc.table[pc.tables + k];
               });
      else if (pc.diagonal)
        update([&](int i) { return pc.d[i]; },
               [](X d, X &di, X &over) {
                 di   = d;
                 over = d != X(0) ? 1 / d : X(0);
               });
      else update([](int) { return 0; }, [](int, X &di, X &over) { di = over = 1; });
    } else {
      FOR_ROWS(i) r[i] -= xalpha * w[i];
      __syncthreads();
      if constexpr (POLYNOMIAL) polynomial(A, a.v, pc, meeting, first, rows, scratch, r);
      FOR_ROWS(i)
      {
        const X zi = POLYNOMIAL ? z[i] : pc.of(i, r);

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
    beta = (X)(s3[SUM_RZ] / rho);
    rho  = s3[SUM_RZ];
  }
  __syncthreads();

  /* the last step of x; what is resident goes home */
  FOR_ROWS(i)
  {
    const X step = xalpha != X(0) ? xalpha * p[i] : X(0); /* p may be no number after a breakdown */

    a.v.x[first + i] = x[i] + step;
  }
  if (a.guard) true_norm<POLYNOMIAL>(A, a.v, st, meeting, first, rows, (double *)scratch, 0);
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
  typedef double X;
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
  X         *z = pool.take<X>(count), *p = pool.take<X>(count), *w = pool.take<X>(rows);
  X          ri[ROWS], zi[ROWS], xi[ROWS], step[ROWS], di[ROWS]; /* of the thread's own rows */
  const bool unpreconditioned = a.start.normtype == KSP_NORM_UNPRECONDITIONED;

  FOR_OWN(k, i)
  {
    di[k]   = a.v.pc ? a.v.pc[first + i] : X(1);
    step[k] = 0;
    xi[k]   = st.guesszero ? X(0) : a.v.x[first + i];
    ri[k]   = a.v.b[first + i];
  }
  if (st.guesszero) {
    for (int i = threadIdx.x; i < count; i += THREADS) z[i] = p[i] = (a.v.pc ? a.v.pc[lo + i] : X(1)) * a.v.b[lo + i];
  } else {
    double bb[3] = {0, 0, 0};

    A.product(Vector<X>{a.v.x}, first, last, scratch, [&](int i, X sum) { w[i] = sum; });
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
    X *const y         = n & 1 ? a.v.p2 : a.v.p; /* others may be a meeting behind */
    double   sum[SUMS] = {0, 0, 0, 0, 0};

    A.product(Vector<X>{p - lo}, first, last, scratch, [&](int i, X wi) { w[i] = wi; });
    __syncthreads();
    FOR_OWN(k, i)
    {
      const X wi = w[i], pi = p[own + i], yi = di[k] * wi, norm = unpreconditioned ? ri[k] : zi[k];

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

    const X mu = 1 / sum[MU], alpha = sum[RHO] * mu, beta = fmax(0.0, 1 + (alpha * sum[GAMMA] - 2 * sum[DELTA]) * mu);

    for (int g = threadIdx.x; g < halo; g += TILE_GROUP * THREADS) {
      X yi[TILE_GROUP];

#pragma unroll
      for (int u = 0; u < TILE_GROUP; u++) {
        const int h = g + u * THREADS;

        if (h < halo) yi[u] = y[lo + (h < own ? h : h + rows)];
      }
#pragma unroll
      for (int u = 0; u < TILE_GROUP; u++) {
        const int h = g + u * THREADS, t = h < own ? h : h + rows;

        if (h < halo) {
          const X zt = z[t] - alpha * yi[u];

          z[t] = zt;
          p[t] = zt + beta * p[t];
        }
      }
    }
    FOR_OWN(k, i)
    {
      const X wi = w[i], before = p[own + i];

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
  if (a.guard) true_norm<false>(A, a.v, st, meeting, first, rows, (double *)scratch, 0);
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
  typedef double X;
  constexpr int  GROUP = 4;
  PROLOGUE;
  Preconditioner<X> pc = preconditioner<X>(a.v, first);

  pc.tabulate(a.same, pool);
  const Rows<X> w = pool.rows(a.v.w, first, rows), r = pool.rows(a.v.r, first, rows), s = pool.rows(a.v.s, first, rows), p = pool.rows(a.v.p, first, rows);
  pc.settle(a.v.pc, pool, rows);
  const Rows<X> x = pool.rows(a.v.x, first, rows);
  X            *z = a.v.z + first;
  double        s4[4], none[3] = {0, 0, 0};

  if (!st.guesszero) {
    A.product(Vector<X>{a.v.x}, first, last, scratch, [&](int i, X sum) { r[i] = a.v.b[first + i] - sum; });
    FOR_ROWS(i)
    {
      x[i] = a.v.x[first + i];
      add_norms(a.v.b[first + i], pc.of(i, From<X>{a.v.b + first}), none);
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
    A.product(Vector<X>{a.v.z}, first, last, scratch, [&](int i, X sum) {
      s[i] = sum;
      s4[SUM_ZS] += (double)z[i] * (double)sum;
    });
    FOR_ROWS(i) add_norms(r[i], z[i], n3);
    s4[SUM_RR] = n3[SUM_RR];
    s4[SUM_ZZ] = n3[SUM_ZZ];
    s4[SUM_RZ] = n3[SUM_RZ];
    exchange<4, false>(meeting, s4);
    if (start) RULE(CGInit(&st, s4); CGBeginSingle(&st));
    else RULE(CGResidual(&st, s4); CGNextSingle(&st));
    if (st.reason) break;
    const X beta = (X)st.beta, alpha = (X)st.alpha;

    FOR_GROUPS(g)
    {
      X pi[GROUP], wi[GROUP], ri[GROUP], xi[GROUP];

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
  if (a.guard) true_norm<false>(A, a.v, st, meeting, first, rows, (double *)scratch, 0);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    st.epoch = meeting.epoch;
    *a.state = st;
  }
}

template <class M>
__global__ void __launch_bounds__(MOST_THREADS, 1) bcgs_kernel(const Args<M> a)
{
  typedef double X;
  constexpr int  GROUP = 4;
  PROLOGUE;
  Preconditioner<X> pc = preconditioner<X>(a.v, first);

  pc.tabulate(a.same, pool);
  const Rows<X> t = pool.rows(a.v.t, first, rows), s = pool.rows(a.v.s, first, rows), rp = pool.rows(a.v.rp, first, rows);
  pc.settle(a.v.pc, pool, rows);
  const Rows<X> x = pool.rows(a.v.x, first, rows);
  const Rows<X> w = pool.rows(a.v.block ? a.v.w : (X *)NULL, first, rows);
  X            *r = a.v.r + first, *ph = a.v.ph + first, *sh = a.v.sh + first;
  X            *p = a.v.p + first, *q = a.v.p2 + first, *v = a.v.v + first, *u = a.v.v2 + first; /* as they are, and as they were or will be */
  const bool    hat = a.v.ph != a.v.p;                                                           /* the preconditioner comes first */
  const X      *d   = hat ? a.v.pc : NULL;
  double        s1[1], s2[2], s3[3];

  FOR_ROWS(i)
  {
    x[i] = st.guesszero ? X(0) : a.v.x[first + i];
    p[i] = v[i] = 0;
  }
  /* r = b - A x, preconditioned from the left */
  if (!st.guesszero) {
    double bb[3] = {0, 0, 0};

    A.product(Vector<X>{a.v.x}, first, last, scratch, [&](int i, X sum) { t[i] = a.v.b[first + i] - sum; });
    FOR_ROWS(i) add_norms(a.v.b[first + i], a.right ? a.v.b[first + i] : pc.of(i, From<X>{a.v.b + first}), bb);
    exchange<3, false>(meeting, bb);
    RULE(st.bnorm = GPUKSPNorm(&st, bb));
  } else {
    FOR_ROWS(i) t[i] = a.v.b[first + i];
  }
  __syncthreads();
  s1[0] = 0;
  FOR_ROWS(i)
  {
    const X ri = a.right ? t[i] : pc.of(i, t);

    r[i] = rp[i] = ri;
    s1[0] += (double)ri * (double)ri;
  }
  exchange<1, true>(meeting, s1);
  RULE(BCGSInit(&st, s1[0]); BCGSBegin(&st));

  while (!st.reason) {
    const X omegabeta = (X)(st.omegaold * st.beta), beta = (X)st.beta;

    /* v = A p, preconditioned; p = r - omegabeta v + beta p */
    s1[0] = 0;
    {
      const BCGSWhole<X> direction = {a.v.r, v - first, p - first, d, omegabeta, beta};
      const auto         keep      = [&](int i, X vi) {
        u[i] = vi;
        s1[0] += (double)vi * (double)rp[i];
      };

      FOR_ROWS(i) q[i] = r[i] - omegabeta * v[i] + beta * p[i];
      if (!pc.bs) A.product(direction, first, last, scratch, [&](int i, X sum) { keep(i, hat ? sum : pc.on_the_way(i, sum)); });
      else if (hat) {
        __syncthreads();
        FOR_ROWS(i) ph[i] = pc.of(i, From<X>{q});
        meet(meeting);
        A.product(Vector<X>{a.v.ph}, first, last, scratch, keep);
      } else {
        A.product(direction, first, last, scratch, [&](int i, X sum) { w[i] = sum; });
        __syncthreads();
        FOR_ROWS(i) keep(i, pc.of(i, w));
      }
    }
    { /* others still read p and v */
      X *const oldp = p, *const oldv = v;

      p = q;
      v = u;
      q = oldp;
      u = oldv;
    }
    exchange<1, true>(meeting, s1);
    RULE(BCGSDirection(&st, s1[0]));
    if (st.reason) break;
    const X alpha = (X)st.alpha;

    /* t = A s, preconditioned; s = r - alpha v */
    s3[0] = s3[1] = s3[2] = 0;
    {
      const BCGSHalf<X> half      = {a.v.r, v - first, d, alpha};
      const auto        stabilize = [&](int i, X ti) {
        const X si = r[i] - alpha * v[i];

        t[i] = ti;
        s[i] = si;
        s3[0] += (double)si * (double)ti;
        s3[1] += (double)ti * (double)ti;
        s3[2] += (double)si * (double)si;
      };

      if (!pc.bs) A.product(half, first, last, scratch, [&](int i, X sum) { stabilize(i, hat ? sum : pc.on_the_way(i, sum)); });
      else if (hat) {
        FOR_ROWS(i) s[i] = r[i] - alpha * v[i];
        __syncthreads();
        FOR_ROWS(i) sh[i] = pc.of(i, s);
        meet(meeting);
        A.product(Vector<X>{a.v.sh}, first, last, scratch, stabilize);
      } else {
        A.product(half, first, last, scratch, [&](int i, X sum) { w[i] = sum; });
        __syncthreads();
        FOR_ROWS(i) stabilize(i, pc.of(i, w));
      }
    }
    exchange<3, false>(meeting, s3);
    RULE(BCGSStabilize(&st, s3[0], s3[1], s3[2]));
    if (st.lucky) {
      FOR_ROWS(i) x[i] += (X)st.alpha * (!hat ? p[i] : pc.bs ? ph[i] : pc.entry(i) * p[i]);
    }
    if (st.reason) break;
    s2[0] = s2[1] = 0;
    const X omega = (X)st.omega;

    FOR_GROUPS(g)
    {
      X xi[GROUP], pi[GROUP], hi[GROUP], ri[GROUP], ti[GROUP], oi[GROUP];

      FOR_GROUP_READ(g, k, i)
      {
        const bool on_the_way = hat && !pc.bs, before = hat && pc.bs;

        xi[k] = x[i];
        ri[k] = s[i];
        pi[k] = before ? ph[i] : p[i];
        hi[k] = before ? sh[i] : ri[k];
        if (on_the_way) {
          const X di = pc.entry(i);

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
  if (a.guard) true_norm<false>(A, a.v, st, meeting, first, rows, (double *)scratch, a.right);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    st.epoch = meeting.epoch;
    *a.state = st;
  }
}

/* ---- ranges of rows of about equal work ---- */

/* prefix[r / step] * weight entries are stored before row r, as many before all rows where prefix is NULL; a row itself costs as much as ROW entries */
#define ROW 6

__global__ void partition_kernel(int m, int step, int weight, const int *prefix, int align, int blocks, int *bounds)
{
  const int     b = (int)(blockIdx.x * blockDim.x + threadIdx.x), units = (m + align - 1) / align;
  const int64_t all = (prefix ? (int64_t)weight * prefix[(m + step - 1) / step] : 0) + (int64_t)ROW * m, want = all / blocks * b + all % blocks * b / blocks;
  int           low = 0, high = units;

  if (b > blocks) return;
  while (low < high) {
    const int     mid = low + (high - low) / 2, r = min(m, mid * align);
    const int64_t before = (prefix ? (int64_t)weight * prefix[(r + step - 1) / step] : 0) + (int64_t)ROW * r;

    if (before < want) low = mid + 1;
    else high = mid;
  }
  bounds[b] = b == blocks ? m : min(m, low * align);
}

PetscErrorCode GPUKSPLaunchPartition(const GPUCSRStorage *A, int align, int blocks, int *bounds, GPUCSRStream s)
{
  const bool sell   = A->format->ops == &GPUCSRFormat_sell;
  const int *prefix = NULL;

  PetscFunctionBegin;
  while (align % GPUCSR_SLICE) align *= 2;
  if (sell && A->array[SELL_PERM].count)
    while (align % A->format->variant) align *= 2;
  if (GPUCSRIsCSR(A->format)) prefix = (const int *)A->array[CSR_ROWPTR].data;
  else if (sell && A->array[SELL_SLICE].count) prefix = (const int *)A->array[SELL_SLICE].data;
  partition_kernel<<<GPUCSRBlocks(blocks + 1, 128), 128, 0, (cudaStream_t)s>>>(A->m, sell ? GPUCSR_SLICE : 1, sell ? GPUCSR_SLICE : 1, prefix, align, blocks, bounds);
  GPUCSRCheckLaunch("the partition of a solve");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- from the host ---- */

/* Bytes of shared memory beyond which the product's gathers would miss the first-level cache more than vectors gain; measured on an H200 */
#define SHARED_MOST (150 * 1024)

/* Rows of a block from which on no direction is gathered from its parts, if there is another way */
#define LARGE 2048

template <class V>
static Sell<V> sell_of(const GPUCSRStorage *A, const GPUKSPLaunch *, int threads, int keep)
{
  return {A->array[SELL_SLICE].count ? (const int *)A->array[SELL_SLICE].data : NULL, A->array[SELL_PERM].count ? (const int *)A->array[SELL_PERM].data : NULL, (const int *)A->array[SELL_COL].data, (const V *)A->array[SELL_VAL].data, A->extent.width, threads, keep};
}

template <class V>
static Dia<V> dia_of(const GPUCSRStorage *A, const GPUKSPLaunch *L, int threads, int keep)
{
  return {(const int *)A->array[DIA_OFFSET].data, (const V *)A->array[DIA_VAL].data, (int)A->extent.units, A->n, threads, keep, NULL, L->windows};
}

template <class V>
static Stencil<V> stencil_of(const GPUCSRStorage *A, const GPUKSPLaunch *L, int threads, int)
{
  Stencil<V> S = {(const uint16_t *)A->array[STENCIL_ID].data, (const int *)A->array[STENCIL_BEGIN].data, (const int *)A->array[STENCIL_OFFSET].data, (const V *)A->array[STENCIL_VAL].data, (int)A->extent.units, (int)A->extent.stored, threads, NULL, NULL, NULL, L->common, L->windows};

  for (int k = 0; k < S.common.count; k++) {
    S.common.value[k] = (double)(V)S.common.value[k];
    S.common.at[k]    = L->windows.at(S.common.offset[k]);
  }
  return S;
}

template <class V>
static Csr<V> csr_of(const GPUCSRStorage *A, const GPUKSPLaunch *, int threads, int keep)
{
  return {(const int *)A->array[CSR_ROWPTR].data, (const int *)A->array[CSR_COL].data, (const V *)A->array[CSR_VAL].data, threads, keep};
}

/* Does it all stay in the last-level cache between iterations? */
static int fits(const GPUCSRStorage *A, size_t entry)
{
  const double column = A->format->ops == &GPUCSRFormat_dia ? 0 : 4;

  return (double)A->stored * (column + (double)entry) + 8.0 * 4.0 * (double)A->m < 0.9 * (double)A->dev->props.l2;
}

/* Fills in the kernel and its arguments, then either asks about the kernel or launches it */
template <class M>
static PetscErrorCode with(const GPUKSPLaunch *L, M A, void *kernel, int *possible, GPUCSRStream s)
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

/* Formats with windows have offsets; columns of the others may be anywhere */
template <class M>
struct offsets {
  static constexpr bool known = false;
};
template <class V>
struct offsets<Stencil<V>> {
  static constexpr bool known = true;
};
template <class V>
struct offsets<Dia<V>> {
  static constexpr bool known = true;
};

template <class M>
static void *cg_of(const GPUKSPLaunch *L)
{
  if constexpr (offsets<M>::known) return L->windows.count ? (void *)cg_kernel<M, false, BY_WINDOWS> : (void *)cg_kernel<M, false, GATHERED>;
  else return L->written ? (void *)cg_kernel<M, false, WRITTEN> : (void *)cg_kernel<M, false, GATHERED>;
}

template <class M>
static PetscErrorCode method(const GPUKSPLaunch *L, M A, int *possible, GPUCSRStream s)
{
  void *kernel = NULL;

  PetscFunctionBegin;
  switch (L->method) {
  case GPUKSP_CG:
    if (L->tile) kernel = L->size == 1024 ? (void *)cg_tile_kernel<M, 1024, 1> : (void *)cg_tile_kernel<M, 512, TILE_ROWS>;
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

/* f(what multiplies with A) */
template <class F>
static PetscErrorCode visit(const GPUCSRStorage *A, const GPUKSPLaunch *L, int threads, F f)
{
  PetscFunctionBegin;
#define FORMAT(of) \
  do { \
    if (A->precision == GPUCSR_PRECISION_DOUBLE) PetscCall(f(of<double>(A, L, threads, fits(A, 8)))); \
    else PetscCall(f(of<float>(A, L, threads, fits(A, 4)))); \
  } while (0)
  if (A->format->ops == &GPUCSRFormat_sell) FORMAT(sell_of);
  else if (A->format->ops == &GPUCSRFormat_dia) FORMAT(dia_of);
  else if (A->format->ops == &GPUCSRFormat_stencil) FORMAT(stencil_of);
  else FORMAT(csr_of);
#undef FORMAT
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode dispatch(const GPUKSPLaunch *L, int *possible, GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(visit(L->A, L, L->threads, [&](auto M) -> PetscErrorCode { return method(L, M, possible, s); }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows that are sorted in windows stay in their block, which begins where a window does; in larger windows blocks would be uneven */
#define WINDOW 256

/* Can a launch multiply with it? */
PetscErrorCode GPUKSPLaunchTakes(const GPUCSRStorage *A, PetscBool *yes)
{
  PetscFunctionBegin;
  *yes = (PetscBool)(GPUCSRIsCSR(A->format) || A->format->ops == &GPUCSRFormat_dia || A->format->ops == &GPUCSRFormat_stencil || (A->format->ops == &GPUCSRFormat_sell && (!A->array[SELL_PERM].count || A->format->variant <= WINDOW)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Entries below which one cluster, whose meetings are short, is faster than all processors; measured on an H200 */
#define CLUSTER_ENTRIES 1.2e5

/* Warps that share a slice, or threads that share a row of CSR, in blocks of so many threads */
static int Share(const GPUCSRStorage *A, int blocks, int size)
{
  const double mean   = (double)A->nnz / PetscMax(1, A->m);
  const int    slices = (A->m / GPUCSR_SLICE + blocks) / blocks, rows = (A->m + blocks - 1) / blocks;
  int          share;

  if (!GPUCSRIsCSR(A->format)) {
    for (share = 1; 2 * share * slices <= size / 32 && 2 * share <= mean; share *= 2) {
    }
  } else {
    for (share = 1; 2 * share <= 32 && (8 * share <= mean || (2 * share * rows <= size && 2 * share <= mean)); share *= 2) {
    }
  }
  return share;
}

static int Ascending(const void *a, const void *b)
{
  return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b;
}

/* The windows of a chunk of so many rows; none where there would be too many, or where they would take more than three quarters of so much shared memory */
static PetscErrorCode Window(const GPUCSRStorage *A, int chunk, size_t shared, GPUKSPWindows *w, cudaStream_t s)
{
  const GPUCSRArray *offsets = &A->array[A->format->ops == &GPUCSRFormat_dia ? (int)DIA_OFFSET : (int)STENCIL_OFFSET];
  int               *offset, n = A->format->ops == &GPUCSRFormat_dia ? (int)A->extent.units : (int)A->extent.stored;
  cudaError_t        err;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(w, sizeof(*w)));
  PetscCall(PetscMalloc1(n + 1, &offset));
  offset[n] = 0;
  err       = cudaMemcpyAsync(offset, offsets->data, sizeof(int) * (size_t)n, cudaMemcpyDeviceToHost, s);
  if (!err) err = cudaStreamSynchronize(s);
  if (err) PetscCall(PetscFree(offset));
  GPUCSR_CUDA(err);
  qsort(offset, (size_t)n + 1, sizeof(int), Ascending);
  for (int k = 0; k <= n;) {
    const int lo = offset[k] - (offset[k] & 1);
    int       hi = lo;

    for (; k <= n && offset[k] - hi <= chunk; k++) hi = offset[k];
    if (w->count == GPUKSP_WINDOWS) {
      w->count = 0;
      break;
    }
    w->lo[w->count]    = lo;
    w->wide[w->count]  = (chunk + hi - lo + 2) / 2 * 2;
    w->place[w->count] = w->length;
    w->length += w->wide[w->count++];
  }
  if (4 * sizeof(double) * (size_t)w->length > shared / 4 * 3) w->count = 0;
  if (!w->count) w->length = 0;
  w->own = w->at(0);
  PetscCall(PetscFree(offset));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Bytes of shared memory that a launch needs before any vector: of the matrix, of the diagonals of stencils, of windows */
static PetscErrorCode Tables(const GPUKSPLaunch *L, size_t *bytes)
{
  PetscFunctionBegin;
  *bytes = sizeof(double) * 4 * (size_t)L->windows.length;
  if (L->A->format->ops == &GPUCSRFormat_stencil) *bytes += sizeof(double) * 2 * (size_t)(PetscMin(L->A->extent.units, GPUKSP_STENCILS) + 1);
  PetscCall(visit(L->A, L, L->threads, [&](auto M) -> PetscErrorCode {
    *bytes += M.shared();
    return PETSC_SUCCESS;
  }));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of shared memory, beside tables and windows: what a product may ask for to add up, and something for vectors */
#define ROOM (2 * MOST_THREADS * sizeof(double))

/* Can this be one launch here? Fills in blocks, threads, shared */
PetscErrorCode GPUKSPLaunchShape(GPUCSRDevice dev, GPUKSPLaunch *L, PetscBool *possible, char why[], size_t len)
{
  const GPUCSRStorage *A       = L->A;
  const int            vectors = L->method == GPUKSP_CG && !L->v.explicitpc ? 3 : 6, size = 8;
  int                  cooperative = 0, clusters = 0, most = -1;
  size_t               need, matrix = 0;

  PetscFunctionBegin;
  GPUCSR_CUDA(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, dev->id));
  GPUCSR_CUDA(cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, dev->id));
  *possible = (PetscBool)cooperative;
  if (!cooperative) {
    PetscCall(PetscSNPrintf(why, len, "the device has no cooperative launches"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  L->tile = PETSC_FALSE;
  PetscCall(PetscMemzero(&L->windows, sizeof(L->windows)));
  L->written = PETSC_FALSE;
  L->size    = MOST_THREADS;
  for (L->cluster = (PetscBool)(clusters && (double)A->nnz < (A->format->ops == &GPUCSRFormat_stencil ? 2 : 1) * CLUSTER_ENTRIES); most < 0; L->cluster = PETSC_FALSE) {
    L->blocks  = (int)PetscMax(1, PetscMin(L->cluster ? CLUSTER : dev->props.processors, (A->m + GPUCSR_SLICE - 1) / GPUCSR_SLICE));
    L->threads = Share(A, L->blocks, L->size);
    PetscCall(dispatch(L, &most, NULL));
    if (most >= 0) break;
  }
  if (!L->cluster && L->method == GPUKSP_CG && !L->v.explicitpc && !L->v.degree && A->m / L->blocks >= LARGE) {
    const PetscBool known = (PetscBool)(A->format->ops == &GPUCSRFormat_stencil || A->format->ops == &GPUCSRFormat_dia);

    L->written = (PetscBool)!known;
    PetscCall(Tables(L, &matrix));
    if (known && (size_t)most > matrix + ROOM) PetscCall(Window(A, WINDOW_ROWS * WINDOW_THREADS, (size_t)most - matrix - ROOM, &L->windows, (cudaStream_t)dev->stream));
    if (L->windows.count) L->size = WINDOW_THREADS;
    PetscCall(dispatch(L, &most, NULL));
  }
  PetscCall(Tables(L, &matrix));
  if ((size_t)most < matrix + MOST_THREADS * sizeof(double)) {
    *possible = PETSC_FALSE;
    PetscCall(PetscSNPrintf(why, len, "its stencils do not fit the shared memory of a block"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  /* what the vectors that are private to a block take, as far as the product's gathers are left a cache */
  need      = matrix + (size_t)vectors * (size_t)size * (size_t)((double)A->m / L->blocks * 1.1 + 128) + MOST_THREADS * sizeof(double);
  L->shared = PetscMin(need, PetscMax(matrix + MOST_THREADS * sizeof(double), (size_t)(L->windows.count ? most : PetscMin(most, SHARED_MOST)))) / 16 * 16;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The stencil of the most entries, for those that are parts of it; of 0 entries where there is none */
PetscErrorCode GPUKSPLaunchCommon(const GPUCSRStorage *A, GPUKSPCommon *common, GPUCSRStream stream)
{
  const size_t bytes = GPUCSRTypeSize(A->array[STENCIL_VAL].type);
  cudaStream_t s     = (cudaStream_t)stream;
  int         *begin, most = 0;
  double       value[GPUKSP_COMMON];
  cudaError_t  err;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(common, sizeof(*common)));
  if (A->format->ops != &GPUCSRFormat_stencil) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscCalloc1(A->extent.units + 2, &begin));
  err = cudaMemcpyAsync(begin, A->array[STENCIL_BEGIN].data, sizeof(int) * (size_t)(A->extent.units + 1), cudaMemcpyDeviceToHost, s);
  if (!err) err = cudaStreamSynchronize(s);
  for (int u = 1; u < (int)A->extent.units; u++)
    if (begin[u + 1] - begin[u] > begin[most + 1] - begin[most]) most = u;
  if (!err && begin[most + 1] - begin[most] <= GPUKSP_COMMON) {
    common->count = begin[most + 1] - begin[most];
    err           = cudaMemcpyAsync(common->offset, (const int *)A->array[STENCIL_OFFSET].data + begin[most], sizeof(int) * (size_t)common->count, cudaMemcpyDeviceToHost, s);
    if (!err) err = cudaMemcpyAsync(value, (const char *)A->array[STENCIL_VAL].data + bytes * (size_t)begin[most], bytes * (size_t)common->count, cudaMemcpyDeviceToHost, s);
    if (!err) err = cudaStreamSynchronize(s);
    for (int k = 0; k < common->count && !err; k++) common->value[k] = bytes == sizeof(float) ? (double)((const float *)value)[k] : value[k];
  }
  PetscCall(PetscFree(begin));
  GPUCSR_CUDA(err);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* d[row] the same in all rows of a stencil? One by one into table; *differ where not */
__global__ void diagonals_kernel(int m, const uint16_t *id, const double *d, double *table, int *differ, int check)
{
  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (i >= m) return;
  if (!check) table[id[i]] = d[i];
  else if (table[id[i]] != d[i]) *differ = 1;
}

/* Is the diagonal of a preconditioner that of the stencils, so that no vector of it need be read? table: room for GPUKSP_STENCILS and a number */
PetscErrorCode GPUKSPLaunchDiagonals(const GPUCSRStorage *A, const double *d, double *table, GPUKSPDiagonals *same, GPUCSRStream s)
{
  int differ = 0, *flag = (int *)(table + GPUKSP_STENCILS);

  PetscFunctionBegin;
  *same = {NULL, NULL, 0};
  if (!d || A->format->ops != &GPUCSRFormat_stencil || A->extent.units > GPUKSP_STENCILS) PetscFunctionReturn(PETSC_SUCCESS);
  GPUCSR_CUDA(cudaMemsetAsync(flag, 0, sizeof(*flag), (cudaStream_t)s));
  for (int check = 0; check < 2; check++) diagonals_kernel<<<GPUCSRBlocks(A->m, 256), 256, 0, (cudaStream_t)s>>>(A->m, (const uint16_t *)A->array[STENCIL_ID].data, d, table, flag, check);
  GPUCSRCheckLaunch("the diagonal of stencils");
  GPUCSR_CUDA(cudaMemcpyAsync(&differ, flag, sizeof(differ), cudaMemcpyDeviceToHost, (cudaStream_t)s));
  GPUCSR_CUDA(cudaStreamSynchronize((cudaStream_t)s));
  if (!differ) *same = {(const uint16_t *)A->array[STENCIL_ID].data, table, (int)A->extent.units};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do z and p of all that a block's rows need fit its shared memory, beside what is its own? Then that is how: see cg_tile_kernel. After GPUKSPLaunchPartition() */
PetscErrorCode GPUKSPLaunchTile(GPUKSPLaunch *L, GPUCSRStream s)
{
  GPUKSPLaunch tile = *L;
  int          ends[2 * GPUKSP_BLOCKS], bounds[GPUKSP_BLOCKS + 1], most, rows = 0;
  size_t       need = 0, vectors = 0;

  PetscFunctionBegin;
  if (L->method != GPUKSP_CG || L->v.explicitpc) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(visit(L->A, L, L->threads, [&](auto M) -> PetscErrorCode {
    GPUCSR_CUDA(cudaFuncSetAttribute(reach_kernel<decltype(M)>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)M.shared()));
    reach_kernel<<<(unsigned)L->blocks, MOST_THREADS, M.shared(), (cudaStream_t)s>>>(M, L->bounds, L->reach);
    need = M.shared();
    return PETSC_SUCCESS;
  }));
  GPUCSRCheckLaunch("the columns of a solve's blocks");
  GPUCSR_CUDA(cudaMemcpyAsync(ends, L->reach, sizeof(int) * 2 * (size_t)L->blocks, cudaMemcpyDeviceToHost, (cudaStream_t)s));
  GPUCSR_CUDA(cudaMemcpyAsync(bounds, L->bounds, sizeof(int) * ((size_t)L->blocks + 1), cudaMemcpyDeviceToHost, (cudaStream_t)s));
  GPUCSR_CUDA(cudaStreamSynchronize((cudaStream_t)s));
  for (int b = 0; b < L->blocks; b++) {
    const size_t of = (sizeof(double) * (size_t)(ends[2 * b + 1] - ends[2 * b]) + 15) / 16 * 16, own = (sizeof(double) * (size_t)(bounds[b + 1] - bounds[b]) + 15) / 16 * 16;

    vectors = PetscMax(vectors, 2 * of + own);
    rows    = PetscMax(rows, bounds[b + 1] - bounds[b]);
  }
  tile.tile = PETSC_TRUE;
  if (rows > 512 * TILE_ROWS) PetscFunctionReturn(PETSC_SUCCESS);
  tile.size    = rows > 512 && rows <= 1024 ? 1024 : 512;
  tile.threads = Share(L->A, L->blocks, tile.size);
  need += vectors + (GPUCSRIsCSR(L->A->format) || tile.threads == 1 ? 0 : MOST_THREADS * sizeof(double));
  PetscCall(dispatch(&tile, &most, s));
  if (most < 0 || (size_t)most < need) PetscFunctionReturn(PETSC_SUCCESS);
  *L        = tile;
  L->shared = need;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUKSPLaunchClear(void *p, size_t bytes, GPUCSRStream s)
{
  PetscFunctionBegin;
  GPUCSR_CUDA(cudaMemsetAsync(p, 0, bytes, (cudaStream_t)s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUKSPLaunchSolve(const GPUKSPLaunch *L, GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(dispatch(L, NULL, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Triangular solves on a GPU.

  syncfree: each row waits only for the results that it needs (Liu, Li, Hogg, Duff and Vinter, Euro-Par 2016, with counters). Results are their own flags, marked absent before, so a step from level to level
  is one store and one load through the second-level cache. Slices are dealt to all warps in the order of levels, and all blocks are resident, so the first unfinished slice never waits for
  ever. Each solve marks absent the results of the next solve. L and U follow each other in one launch, without a barrier in between.

  ranges: the same, but a block has a range of neighbouring rows, with their results also in its shared memory. A step through shared memory is much faster. Only results of other ranges come through the cache; the warp waits for them and for the right-hand side first. A warp loads the entries of its next slices while it waits.

  In ranges a warp polls, without a barrier, results in shared memory that other warps write meanwhile; racecheck of compute-sanitizer reports such pairs as hazards. They are harmless. A result is 8 bytes
  at a multiple of 8, and accesses are volatile, so it is read whole and never kept in a register. It is marked absent before, and written once. Its reader needs nothing else, so no other write has to come
  before it; a reader that comes too early polls again. Barriers separate the marking from the first use, and the last use from the next range.
*/
#include "await.cuh"

#define UNROLL GPUCSR_LANE_ENTRIES

#define SYNCFREE_THREADS 256
#define SYNCFREE_BLOCKS  2 /* a processor */
#define RANGES_THREADS   512

struct Sweep {
  const GPUCSRSlice *slice;
  const int         *col, *from, *to, *range;
  const double      *val, *scale;
  double            *x, *other;
  int                nslices, rows, nranges;
  GPUCSRScaling      scaling;
};

struct SolveArgs {
  Sweep         sweep[2];
  const double *b;
  double       *out;
  volatile int *trouble;
};

/* A lane's data of a slice, except results of other rows */
struct Lane {
  int    log, width, p, first, from, to, c[UNROLL]; /* p: its place; first: its first entry, in units of 32 */
  bool   head;                                      /* has the sum of its row at the end */
  double v[UNROLL], scale, rhs;
};

__device__ __forceinline__ void load_entries(Lane &L, const Sweep &w, int at, int lane)
{
  const int64_t first = 32 * (int64_t)(L.first + at) + lane;

#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    L.c[u] = at + u < L.width ? streamed(w.col + first + 32 * u) : -1;
    L.v[u] = at + u < L.width ? streamed(w.val + first + 32 * u) : 0;
  }
}

__device__ __forceinline__ int4 load_shape(const Sweep &w, int k)
{
  return __ldg((const int4 *)(w.slice + k));
}

__device__ __forceinline__ void load_slice(Lane &L, const Sweep &w, int4 d, int lane)
{
  L.log   = GPUCSRSliceLanes((unsigned)d.y);
  L.width = GPUCSRSliceWidth((unsigned)d.y);
  L.p     = d.x + (lane >> L.log);
  L.head  = lane >> L.log < GPUCSRSliceRows((unsigned)d.y) && !(lane & ((1 << L.log) - 1));
  L.first = d.z;
  load_entries(L, w, 0, lane);
  if (L.head) L.from = __ldg(w.from + L.p);
}

/* The data needed last */
__device__ __forceinline__ void load_rest(Lane &L, const Sweep &w)
{
  L.to    = L.head && w.to ? __ldg(w.to + L.p) : 0;
  L.scale = !L.head || w.scaling == GPUCSR_UNIT ? 1 : w.scale[L.p];
}

/* The sum of a row, in its head; lanes are added in the order of host.c */
__device__ __forceinline__ double add_lanes(double sum, int log)
{
  for (int o = (1 << log) >> 1; o; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
  return sum;
}

/* The result of a row, first for readers of shared memory, unless NULL; the next solve's is marked absent */
__device__ __forceinline__ void finish(const Lane &L, const Sweep &w, double sum, double *out, double *near)
{
  const double r = present(GPUCSRScaled(w.scaling, L.rhs, sum, L.scale));

  if (near) *(volatile double *)near = r;
  show(w.x + L.p, r);
  if (w.to) out[L.to] = r;
  w.other[L.p] = absent<double>();
}

/* The sum over entries whose columns are places: values times results, after the whole warp's results have come */
__device__ __forceinline__ double sum_far(const Lane &L, const Sweep &w, Patience &patience, volatile int *trouble)
{
  const unsigned all = 0xffffffffu;
  double         x[UNROLL], sum = 0;
  bool           missing;

#pragma unroll
  for (int u = 0; u < UNROLL; u++) x[u] = L.c[u] < 0 ? 0 : absent<double>();
  do {
    missing = false;
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
      if (is_absent(x[u])) x[u] = look(w.x + L.c[u]);
#pragma unroll
    for (int u = 0; u < UNROLL; u++) missing = missing || is_absent(x[u]);
  } while (__any_sync(all, missing) && !__any_sync(all, patience.gone(trouble)));
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    if (L.c[u] >= 0) sum += L.v[u] * x[u];
  return sum;
}

/* The same for entries with results in shared memory; padding reads the last one there, a zero */
__device__ __forceinline__ double sum_near(const Lane &L, const double *results, int none, Patience &patience, volatile int *trouble)
{
  const unsigned all = 0xffffffffu;
  const double  *at[UNROLL];
  double         x[UNROLL], v[UNROLL];
  bool           missing;

#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    at[u] = results + (L.c[u] < -1 ? GPUCSR_NEAR_OF(L.c[u]) : none);
    v[u]  = L.c[u] < -1 ? L.v[u] : 0;
  }
  do {
    missing = false;
#pragma unroll
    for (int u = 0; u < UNROLL; u++) x[u] = *(const volatile double *)at[u];
#pragma unroll
    for (int u = 0; u < UNROLL; u++) missing = missing || is_absent(x[u]);
  } while (__any_sync(all, missing) && !__any_sync(all, patience.gone(trouble)));
  static_assert(UNROLL == 4, "sums of two");
  return (v[0] * x[0] + v[1] * x[1]) + (v[2] * x[2] + v[3] * x[3]);
}

/* Loads the right-hand side, which may be a result of this launch */
template <bool ASK>
__device__ __forceinline__ double right_side(const Lane &L, const double *b)
{
  if (!L.head) return 0;
  return ASK ? look(b + L.from) : __ldg(b + L.from);
}

__device__ __forceinline__ void await_right_side(Lane &L, const double *b, Patience &patience, volatile int *trouble)
{
  const unsigned all = 0xffffffffu;

  while (__any_sync(all, is_absent(L.rhs)) && !__any_sync(all, patience.gone(trouble)))
    if (is_absent(L.rhs)) L.rhs = look(b + L.from);
}

template <bool ASK>
__device__ __forceinline__ void solve_slice(const Sweep &w, int k, const double *b, double *out, volatile int *trouble, int lane)
{
  Lane     L;
  Patience patience;
  double   sum = 0;

  load_slice(L, w, load_shape(w, k), lane);
  load_rest(L, w);
  L.rhs = right_side<ASK>(L, b);
  for (int at = 0; at < L.width; at += UNROLL) {
    if (at) load_entries(L, w, at, lane);
    sum += sum_far(L, w, patience, trouble);
  }
  sum = add_lanes(sum, L.log);
  if (ASK) await_right_side(L, b, patience, trouble);
  if (L.head) finish(L, w, sum, out, NULL);
  __syncwarp();
}

/* Solves the slice in L, of a range that begins at place base */
template <bool ASK>
__device__ __forceinline__ void solve_near(Lane &L, const Sweep &w, int base, const double *b, double *out, volatile int *trouble, double *results, int lane)
{
  Patience patience;
  double   sum = 0;

  if (ASK) await_right_side(L, b, patience, trouble);
  for (int at = 0;;) {
    if (__any_sync(0xffffffffu, max(max(L.c[0], L.c[1]), max(L.c[2], L.c[3])) >= 0)) sum += sum_far(L, w, patience, trouble);
    sum += sum_near(L, results, w.rows, patience, trouble);
    at += UNROLL;
    if (at >= L.width) break;
    load_entries(L, w, at, lane);
  }
  sum = add_lanes(sum, L.log);
  if (L.head) finish(L, w, sum, out, results + L.p - base);
  __syncwarp();
}

/* Solves all slices of a range, by this block. Its warps load two slices ahead */
template <bool ASK>
__device__ __forceinline__ void solve_range(const Sweep &w, int g, const double *b, double *out, volatile int *trouble, double *results, int lane)
{
  const int last = w.range[g + 1], step = RANGES_THREADS / 32;
  int       k = w.range[g] + (int)threadIdx.x / 32;
  Lane      L, N, M;
  int4      d;

  if (k < last) load_slice(L, w, load_shape(w, k), lane);
  if (k + step < last) load_slice(N, w, load_shape(w, k + step), lane);
  if (k + 2 * step < last) d = load_shape(w, k + 2 * step);
  for (; k < last; k += step) {
    L.rhs = right_side<ASK>(L, b);
    load_rest(L, w);
    if (k + 2 * step < last) load_slice(M, w, d, lane);
    if (k + 3 * step < last) d = load_shape(w, k + 3 * step);
    solve_near<ASK>(L, w, g * w.rows, b, out, trouble, results, lane);
    L = N;
    N = M;
  }
}

__global__ void __launch_bounds__(RANGES_THREADS, 1) ranges_kernel(SolveArgs a)
{
  extern __shared__ double results[];
  const int                lane = (int)threadIdx.x % 32;

  for (int s = 0; s < 2; s++) {
    const Sweep &w = a.sweep[s];

    for (int g = (int)blockIdx.x; g < w.nranges; g += (int)gridDim.x) {
      for (int p = (int)threadIdx.x; p <= w.rows; p += RANGES_THREADS) results[p] = p < w.rows ? absent<double>() : 0;
      __syncthreads();
      if (s) solve_range<true>(w, g, a.sweep[0].x, a.out, a.trouble, results, lane);
      else solve_range<false>(w, g, a.b, a.out, a.trouble, results, lane);
      __syncthreads();
    }
  }
}

__global__ void __launch_bounds__(SYNCFREE_THREADS) syncfree_kernel(SolveArgs a)
{
  const int lane = (int)threadIdx.x % 32, warps = (int)gridDim.x * (SYNCFREE_THREADS / 32), warp = (int)threadIdx.x / 32 * (int)gridDim.x + (int)blockIdx.x;
  int       k = warp;

  for (; k < a.sweep[0].nslices; k += warps) solve_slice<false>(a.sweep[0], k, a.b, a.out, a.trouble, lane);
  for (k -= a.sweep[0].nslices; k < a.sweep[1].nslices; k += warps) solve_slice<true>(a.sweep[1], k, a.sweep[0].x, a.out, a.trouble, lane);
}

static Sweep SweepOf(const GPUCSRSweep *s)
{
  const GPUCSRTriangle *T = s->T;

  return {T->slice, T->col, s->from, s->to, T->range, T->val, T->scale, T->x[T->turn], T->x[1 - T->turn], T->nslices, T->rows, T->nranges, s->scaling};
}

/* A kernel and its launch: at most this many blocks a multiprocessor, fewer if the work needs fewer */
typedef struct {
  const void *kernel;
  int         threads, most;
  size_t      shared;
  int         work;
} LaunchShape;

static LaunchShape ShapeOf(GPUCSRSolveMethod method, const GPUCSRSweep sweep[2])
{
  LaunchShape h = {(const void *)syncfree_kernel, SYNCFREE_THREADS, SYNCFREE_BLOCKS, 0, 0};

  if (method == GPUCSR_SOLVE_RANGES) h = {(const void *)ranges_kernel, RANGES_THREADS, 1, 0, 0};
  for (int k = 0; k < 2; k++) {
    const GPUCSRTriangle *T     = sweep[k].T;
    const int             warps = h.threads / 32;

    if (method == GPUCSR_SOLVE_RANGES) {
      h.shared = GPUCSRMax(h.shared, sizeof(double) * (size_t)(T->rows + 1));
      h.work   = GPUCSRMax(h.work, T->nranges);
    } else h.work = GPUCSRMax(h.work, (T->nslices + warps - 1) / warps);
  }
  return h;
}

GPUCSRError GPUCSRSolve_CUDA(GPUCSRDevice dev, GPUCSRSolveMethod method, const GPUCSRSweep sweep[2], const double *b, double *x, volatile int *trouble, GPUCSRStream s)
{
  const LaunchShape h = ShapeOf(method, sweep);
  SolveArgs         a = {
            {SweepOf(&sweep[0]), SweepOf(&sweep[1])},
            b, x, trouble
  };
  void *args[] = {&a};
  int   blocks = 1;

  if (!sweep[0].T->n) return 0;
  if (h.shared) GPUCSR_CUDA(cudaFuncSetAttribute(h.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)h.shared));
  GPUCSRCall(Resident(dev, h.kernel, h.threads, h.shared, h.most, &blocks));
  blocks = GPUCSRMin(blocks, h.work);
  GPUCSR_CUDA(cudaLaunchCooperativeKernel(h.kernel, blocks, h.threads, args, h.shared, (cudaStream_t)s));
  for (int k = 0; k < 2; k++) sweep[k].T->turn = 1 - sweep[k].T->turn;
  return 0;
}

/*
  Triangular solves on a GPU.

  syncfree: each row waits for the results that it needs (Liu, Li, Hogg, Duff and Vinter, Euro-Par 2016, who wait for counters), and nobody for anything else. Results are their own flags: marked
  absent before, so that a step from level to level is one store and one load by way of the second-level cache. Slices go round all warps in the order of levels, and all
  blocks run at the same time, so the least slice that is not done never waits in vain. A warp loads its entries long before their turn; until the herald of its slice is there it looks at
  that alone, so that the warps whose turn is near have the cache to themselves. Each solve marks absent what the next one writes. L and U go one after the other in one launch, nobody waits in between.

  levels: all blocks meet after each level; levels of few slices are one block's, whose last results are in its shared memory.
*/
#include "await.cuh"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

#define UNROLL GPUCSR_LANE_ENTRIES

#define SYNCFREE_THREADS 256
#define LEVELS_THREADS   (32 * GPUCSR_NARROW_SLICES)
#define WINDOW           8192 /* results in shared memory, a power of two */

struct Sweep {
  const GPUCSRSlice *slice;
  const int         *col, *from, *to, *level;
  const GPUCSRStep  *step;
  const double      *val, *scale;
  double            *x, *other;
  int                n, nslices, nsteps;
  GPUCSRScaling      scaling;
  bool               outroot;
};

struct SolveArgs {
  Sweep         sweep[2];
  int           nsweeps;
  const double *b;
  double       *out;
  volatile int *trouble;
};

/* All that a lane needs of a slice but results of other rows */
struct Lane {
  int    first, log, width, herald, p, from, to, c[UNROLL];
  bool   head; /* it has the sum of its row in the end */
  double v[UNROLL], scale, rhs;
  const int    *col;
  const double *val;
};

__device__ __forceinline__ void load_entries(Lane &L, int w)
{
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    if (w + u < L.width) {
      L.c[u] = streamed(L.col + 32 * (int64_t)(w + u));
      L.v[u] = streamed(L.val + 32 * (int64_t)(w + u));
    }
}

__device__ __forceinline__ void load_slice(Lane &L, const Sweep &w, int k, int lane)
{
  const int4 d = __ldg((const int4 *)(w.slice + k));

  L.first  = d.x;
  L.log    = GPUCSRSliceLanes((unsigned)d.y);
  L.width  = GPUCSRSliceWidth((unsigned)d.y);
  L.herald = d.w;
  L.p      = d.x + (lane >> L.log);
  L.head   = lane >> L.log < GPUCSRSliceRows((unsigned)d.y) && !(lane & ((1 << L.log) - 1));
  L.col    = w.col + 32 * (int64_t)d.z + lane;
  L.val    = w.val + 32 * (int64_t)d.z + lane;
  load_entries(L, 0);
  if (L.head) {
    L.from  = __ldg(w.from + L.p);
    L.to    = w.to ? __ldg(w.to + L.p) : 0;
    L.scale = w.scaling == GPUCSR_UNIT && !w.outroot ? 1 : w.scale[L.p];
  }
}

/* The sum of the row in its head, lanes added as host.c does */
__device__ __forceinline__ double add_lanes(double sum, int log)
{
  for (int o = (1 << log) >> 1; o; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o);
  return sum;
}

__device__ __forceinline__ double scaled(GPUCSRScaling scaling, double b, double sum, double d)
{
  switch (scaling) {
  case GPUCSR_SCALE_ROW:
    return (b - sum) * d;
  case GPUCSR_SCALE_RIGHT:
    return b * d - sum;
  case GPUCSR_SCALE_ROOT:
    return b * sqrt(d) - sum;
  default:
    return b - sum;
  }
}

__device__ __forceinline__ double finish(const Lane &L, const Sweep &w, double b, double sum, double *out)
{
  const double r = present(scaled(w.scaling, b, sum, L.scale));

  show(w.x + L.p, r);
  if (w.to) out[L.to] = w.outroot ? r * sqrt(L.scale) : r;
  return r;
}

/* ASK: the right-hand side is a result of this launch */
template <bool ASK>
__device__ __forceinline__ void solve_slice(const Sweep &w, int k, const double *b, double *out, volatile int *trouble, int lane)
{
  const unsigned all = 0xffffffffu;
  Lane           L;
  double         sum = 0, rhs = 0;
  Patience       patience;

  load_slice(L, w, k, lane);
  if (L.head && !ASK) rhs = b[L.from];
  if (L.herald >= 0)
    while (__any_sync(all, is_absent(look(w.x + L.herald))))
      if (__any_sync(all, patience.gone(trouble))) break;
  if (ASK) {
    if (L.head) rhs = look(b + L.from);
    while (__any_sync(all, is_absent(rhs))) {
      if (__any_sync(all, patience.gone(trouble))) break;
      if (is_absent(rhs)) rhs = look(b + L.from);
    }
  }
  for (int at = 0; at < L.width; at += UNROLL) {
    double x[UNROLL];
    bool   absent = false;

    if (at) load_entries(L, at);
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
      if (at + u < L.width) x[u] = look(w.x + L.c[u]);
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
      if (at + u < L.width) absent = absent || is_absent(x[u]);
    while (__any_sync(all, absent)) {
      absent = false;
#pragma unroll
      for (int u = 0; u < UNROLL; u++)
        if (at + u < L.width && is_absent(x[u])) {
          x[u]   = look(w.x + L.c[u]);
          absent = absent || is_absent(x[u]);
        }
      if (__any_sync(all, patience.gone(trouble))) break;
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
      if (at + u < L.width) sum += L.v[u] * x[u];
  }
  sum = add_lanes(sum, L.log);
  if (L.head) {
    finish(L, w, rhs, sum, out);
    w.other[L.p] = absent<double>();
  }
  __syncwarp();
}

__global__ void __launch_bounds__(SYNCFREE_THREADS) syncfree_kernel(SolveArgs a)
{
  const int lane = (int)threadIdx.x % 32, warps = (int)gridDim.x * (SYNCFREE_THREADS / 32), warp = (int)threadIdx.x / 32 * (int)gridDim.x + (int)blockIdx.x;
  int       k = warp;

  for (; k < a.sweep[0].nslices; k += warps) solve_slice<false>(a.sweep[0], k, a.b, a.out, a.trouble, lane);
  if (a.nsweeps > 1)
    for (k -= a.sweep[0].nslices; k < a.sweep[1].nslices; k += warps) solve_slice<true>(a.sweep[1], k, a.sweep[0].x, a.out, a.trouble, lane);
}

/* With the right-hand side, which was put where the result will be */
__device__ __forceinline__ void load_level(Lane &L, const Sweep &w, int k, int lane)
{
  load_slice(L, w, k, lane);
  L.rhs = L.head ? look(w.x + L.p) : 0;
}

/* One slice of a level whose predecessors are all there; SHARED: results from place low on are in window */
template <bool SHARED>
__device__ __forceinline__ void finish_slice(Lane &L, const Sweep &w, double *out, double *window, int low)
{
  double sum = 0;

  for (int at = 0; at < L.width; at += UNROLL) {
    if (at) load_entries(L, at);
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
      if (at + u < L.width) sum += L.v[u] * (SHARED && L.c[u] >= low && L.v[u] != 0 ? window[L.c[u] % WINDOW] : look(w.x + L.c[u]));
  }
  sum = add_lanes(sum, L.log);
  if (L.head) {
    const double r = finish(L, w, L.rhs, sum, out);

    if (SHARED) window[L.p % WINDOW] = r;
  }
}

/* Narrow levels in a row, by this block alone: the entries of the next level are on their way while one is computed */
__device__ __forceinline__ void narrow_levels(const Sweep &w, const GPUCSRStep &step, double *out, double *window, int lane)
{
  const int warp  = (int)threadIdx.x / 32;
  int       begin = w.level[step.first], end = w.level[step.first + 1];
  const int first = w.slice[begin].first;
  Lane      L, N;

  if (begin + warp < end) load_level(L, w, begin + warp, lane);
  for (int l = step.first; l < step.last; l++) {
    const bool mine = begin + warp < end;

    begin = end;
    end   = l + 1 < step.last ? w.level[l + 2] : begin;
    if (begin + warp < end) load_level(N, w, begin + warp, lane);
    if (mine) finish_slice<true>(L, w, out, window, max(first, L.first + LEVELS_THREADS - WINDOW));
    __syncthreads();
    L = N;
  }
}

__global__ void __launch_bounds__(LEVELS_THREADS) levels_kernel(SolveArgs a)
{
  extern __shared__ double window[];
  const int                lane = (int)threadIdx.x % 32, warps = (int)gridDim.x * (LEVELS_THREADS / 32), warp = (int)threadIdx.x / 32 * (int)gridDim.x + (int)blockIdx.x;
  cg::grid_group           grid = cg::this_grid();

  for (int s = 0; s < a.nsweeps; s++) {
    const Sweep  &w = a.sweep[s];
    const double *b = s ? a.sweep[0].x : a.b;

    for (int p = (int)(blockIdx.x * blockDim.x + threadIdx.x); p < w.n; p += (int)(gridDim.x * blockDim.x)) show(w.x + p, look(b + w.from[p]));
    grid.sync();
    for (int t = 0; t < w.nsteps; t++) {
      const GPUCSRStep step = w.step[t];

      if (step.narrow) {
        if (blockIdx.x == 0) narrow_levels(w, step, a.out, window, lane);
      } else {
        for (int k = w.level[step.first] + warp; k < w.level[step.first + 1]; k += warps) {
          Lane L;

          load_level(L, w, k, lane);
          finish_slice<false>(L, w, a.out, window, 0);
        }
      }
      grid.sync();
    }
  }
}

/* x from y of the sweep before; a warp a slice */
__global__ void jacobi_kernel(Sweep w, const double *__restrict__ b, const double *__restrict__ y, double *out)
{
  const int k = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / 32), lane = (int)threadIdx.x % 32;
  Lane      L;
  double    sum = 0;

  if (k >= w.nslices) return;
  load_slice(L, w, k, lane);
  const double rhs = L.head ? b[L.from] : 0;
  for (int at = 0; at < L.width; at += UNROLL) {
    if (at) load_entries(L, at);
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
      if (at + u < L.width) sum += L.v[u] * y[L.c[u]];
  }
  sum = add_lanes(sum, L.log);
  if (L.head) finish(L, w, rhs, sum, out);
}

static Sweep SweepOf(const GPUCSRSweep *s)
{
  const GPUCSRTriangle *T = s->T;

  return {T->slice, T->col, s->from, s->to, T->level, T->step, T->val, T->scale, T->x[T->turn], T->x[1 - T->turn], T->n, T->nslices, T->nsteps, s->scaling, (bool)s->outroot};
}

extern "C" {
GPUCSR_INTERN PetscErrorCode GPUCSRSolve_CUDA(GPUCSRDevice, GPUCSRSolveMethod, const GPUCSRSweep *, int, const double *, double *, volatile int *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUCSRJacobi_CUDA(GPUCSRDevice, int, const GPUCSRSweep *, int, const double *, double *, GPUCSRStream);
}

PetscErrorCode GPUCSRSolve_CUDA(GPUCSRDevice dev, GPUCSRSolveMethod method, const GPUCSRSweep *sweep, int nsweeps, const double *b, double *x, volatile int *trouble, GPUCSRStream s)
{
  const size_t shared  = sizeof(double) * WINDOW;
  SolveArgs    a       = {{}, nsweeps, b, x, trouble};
  void        *args[]  = {&a};
  const bool   levels  = method == GPUCSR_SOLVE_LEVELS;
  const void  *kernel  = levels ? (const void *)levels_kernel : (const void *)syncfree_kernel;
  const int    threads = levels ? LEVELS_THREADS : SYNCFREE_THREADS;
  int          blocks  = 1, slices = 0;

  PetscFunctionBegin;
  if (!sweep[0].T->n) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < nsweeps; k++) {
    a.sweep[k] = SweepOf(&sweep[k]);
    slices     = PetscMax(slices, levels ? sweep[k].T->widest : sweep[k].T->nslices);
  }
  if (levels) {
    GPUCSR_CUDA(cudaFuncSetAttribute(levels_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
    PetscCall(Resident(dev, levels_kernel, threads, shared, 1, &blocks));
  } else PetscCall(Resident(dev, syncfree_kernel, threads, 0, GPUCSRSolveBlocks, &blocks));
  blocks = PetscMin(blocks, (slices + threads / 32 - 1) / (threads / 32));
  if (levels && slices <= LEVELS_THREADS / 32) blocks = 1;
  GPUCSR_CUDA(cudaLaunchCooperativeKernel(kernel, blocks, threads, args, levels ? shared : 0, (cudaStream_t)s));
  for (int k = 0; k < nsweeps && !levels; k++) sweep[k].T->turn = 1 - sweep[k].T->turn;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRJacobi_CUDA(GPUCSRDevice dev, int sweeps, const GPUCSRSweep *sweep, int nsweeps, const double *b, double *x, GPUCSRStream s)
{
  PetscFunctionBegin;
  if (!sweep[0].T->n) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < nsweeps; k++) {
    GPUCSRTriangle *T = sweep[k].T;

    PetscCall(dev->ops->zero(dev->id, T->x[T->turn], sizeof(double) * (size_t)T->n, s));
    for (int m = 0; m < sweeps; m++) {
      const double *y = T->x[T->turn];

      T->turn = 1 - T->turn;
      jacobi_kernel<<<GPUCSRBlocks(32 * (int64_t)T->nslices, 128), 128, 0, (cudaStream_t)s>>>(SweepOf(&sweep[k]), k ? sweep[k - 1].T->x[sweep[k - 1].T->turn] : b, y, x);
    }
  }
  GPUCSRCheckLaunch("jacobi_kernel");
  PetscFunctionReturn(PETSC_SUCCESS);
}

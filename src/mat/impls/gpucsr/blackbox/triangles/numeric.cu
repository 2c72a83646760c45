/*
  ILU and ICC on a GPU, row by row in PETSc's order, so that factors agree up to rounding: the entries left of the diagonal ascend, and each eliminates with the row of its column. A warp takes a row; rows are in
  the order of levels, and each waits for the inverse pivots of the rows that it needs.

  Work without these values is done before the wait. A warp keeps its row in shared memory if the row fits, as nearly all do. For up to 32 rows above, the warp lists their entries with a place in its row, and the places, found by bisection. It loads the values of each row above as soon as the row is finished, in any order, and eliminates with consecutive finished rows. So only the work for the last finished row follows the wait, which dominates in a matrix of many narrow levels.

  All blocks are resident, and a warp's rows ascend in the order of levels, so the first unfinished row never waits for ever.
*/
#include "await.cuh"
#include <limits.h>

#define NUMERIC_WARPS  4
#define NUMERIC_ROW    256  /* entries of a row in shared memory, with room for all blocks of a multiprocessor, */
#define NUMERIC_LONG   1024 /* or this many if rows are long */
#define NUMERIC_STAGED 1024 /* entries of rows above in shared memory, at most */
#define NUMERIC_LOADS  4    /* loads of a lane before the first is used */

/* A row that is being factored */
struct Row {
  int        r, nlower, length;
  const int *col;
  double    *val;
};

/* Entries of rows above, in shared memory: their places in the factor and in the row, and their values after the wait */
struct Staged {
  int     room, *from, *to;
  double *val;
};

/* A lane's row above: its number, its list of staged entries, and its inverse pivot */
struct Above {
  int    k, first, count;
  double dinv;
};

/* Lists the entries of rows above that have a place in the row, for its entries from e0 on, as far as there is room. Returns the number of entries
   served; 0: the first row above is too long */
template <bool SYMMETRIC>
__device__ __forceinline__ int stage(const GPUCSRFactorCSR &F, const Row &R, int e0, const Staged &S, int lane, Above *a)
{
  const unsigned all   = 0xffffffffu;
  const bool     some  = e0 + lane < R.nlower;
  const int      begin = some ? F.diag[R.col[e0 + lane]] + 1 : 0, n = some ? F.i[R.col[e0 + lane] + 1] - begin : 0;
  int            after = n, staged = 0;

#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    const int left = __shfl_up_sync(all, after, o);

    if (lane >= o) after += left;
  }
  const int take = __popc(__ballot_sync(all, some && after <= S.room)), before = after - n;
  if (!take) return 0;
  const int total = __shfl_sync(all, after, take - 1);
  if (lane >= take) after = INT_MAX;

  *a = {lane < take ? R.col[e0 + lane] : 0, 0, 0, lane < take ? absent<double>() : 0};
  for (int t0 = 0; t0 < total; t0 += 32) {
    const int t = t0 + lane;
    int       g = 0; /* the row above of entry t: as many as end before it */

#pragma unroll
    for (int o = 16; o; o /= 2) {
      const int end = __shfl_sync(all, after, g + o - 1);

      if (end <= t) g += o;
    }
    const int      q = __shfl_sync(all, begin - before, g) + t, c = t < total ? F.j[q] : -1;
    const int      at   = t < total ? GPUCSRColumnFind(R.col, SYMMETRIC ? R.nlower : e0 + g + 1, R.length, c) : -1;
    const unsigned mask = __ballot_sync(all, at >= 0);

    if (at >= 0) {
      const int p = staged + __popc(mask & ((1u << lane) - 1));

      S.from[p] = q;
      S.to[p]   = at;
    }
    if (before >= t0 && before < t0 + 32) a->first = staged + __popc(mask & ((1u << (before - t0)) - 1));
    staged += __popc(mask);
  }
  if (before >= total) a->first = staged;
  const int next = __shfl_down_sync(all, a->first, 1);
  a->count       = lane < take ? (lane == take - 1 ? staged : next) - a->first : 0;
  __syncwarp();
  return take;
}

/* Loads values [p, end) of the staged entries */
__device__ __forceinline__ void load(const GPUCSRFactorCSR &F, const Staged &S, int p, int end, int lane)
{
  for (p += lane; p < end; p += 32 * NUMERIC_LOADS) {
    double v[NUMERIC_LOADS];

#pragma unroll
    for (int u = 0; u < NUMERIC_LOADS; u++) v[u] = p + 32 * u < end ? look(F.a + S.from[p + 32 * u]) : 0;
#pragma unroll
    for (int u = 0; u < NUMERIC_LOADS; u++)
      if (p + 32 * u < end) S.val[p + 32 * u] = v[u];
  }
}

/* Loads the rows above in mask, run by run */
__device__ __forceinline__ void load_rows(const GPUCSRFactorCSR &F, const Staged &S, const Above &a, unsigned mask, int lane)
{
  const unsigned all = 0xffffffffu;

  while (mask) {
    const int      b    = __ffs((int)mask) - 1;
    const unsigned rest = ~(mask >> b);
    const int      e    = rest ? b + __ffs((int)rest) - 1 : 32; /* the run is [b, e) */
    const int      p = __shfl_sync(all, a.first, b), end = __shfl_sync(all, a.first + a.count, e - 1);

    load(F, S, p, end, lane);
    mask &= e < 32 ? ~0u << e : 0;
  }
  __syncwarp();
}

/* Eliminates entry e0 + e with its row above, which is staged. SYMMETRIC: the multiplier, too, comes from the row above, whose first entry here has column r */
template <bool SYMMETRIC>
__device__ __forceinline__ double eliminate(const Row &R, const Staged &S, const Above &a, int e0, int e, int lane, int *unsymmetric)
{
  const unsigned all = 0xffffffffu;
  const int      p = __shfl_sync(all, a.first, e), n = __shfl_sync(all, a.count, e);
  const double   d = __shfl_sync(all, a.dinv, e);
  double         m = SYMMETRIC ? 0 : R.val[e0 + e];

  if (SYMMETRIC) {
    if (n && S.to[p] == R.nlower) m = S.val[p];
    else if (lane == 0) *unsymmetric = 1;
  }
  m *= d;
  if (m != 0)
    for (int q = p + lane; q < p + n; q += 32) R.val[S.to[q]] -= m * S.val[q];
  __syncwarp();
  return m;
}

/* Eliminates entries e0 to e0 + take - 1 left of the diagonal, in this order, as their rows above get finished */
template <bool SYMMETRIC>
__device__ __forceinline__ void eliminate_some(const GPUCSRFactorCSR &F, const Row &R, const Staged &S, Above a, int e0, int take, int lane, int *pivots, volatile int *trouble)
{
  const unsigned all    = 0xffffffffu;
  unsigned       loaded = 0;
  double         mine   = 0;
  Patience       patience;

  for (int e = 0; e < take;) {
    if (is_absent(a.dinv)) a.dinv = look(F.dinv + a.k);
    const unsigned finished = __ballot_sync(all, lane < take && !is_absent(a.dinv)) & ~loaded;

    if (!finished && __any_sync(all, patience.gone(trouble))) break;
    if (!finished) continue;
    fence();
    load_rows(F, S, a, finished, lane);
    loaded |= finished;
    for (; e < take && (loaded >> e & 1); e++) {
      const double m = eliminate<SYMMETRIC>(R, S, a, e0, e, lane, pivots + 1);

      if (lane == e) mine = m;
    }
  }
  if (lane < take) R.val[e0 + lane] = mine;
}

/* Eliminates entry e with a row above that has no room */
template <bool SYMMETRIC>
__device__ __noinline__ void eliminate_long(const GPUCSRFactorCSR &F, const Row &R, int e, int lane, int *pivots, volatile int *trouble)
{
  const int k = R.col[e], begin = F.diag[k] + 1, end = F.i[k + 1];
  double    d = absent<double>(), m;
  Patience  patience;

  while (is_absent(d)) {
    d = look(F.dinv + k);
    if (is_absent(d) && patience.gone(trouble)) break;
  }
  __syncwarp();
  fence();
  if (SYMMETRIC) {
    const int at = GPUCSRColumnFind(F.j, begin, end, R.r);

    m = at < 0 ? 0 : look(F.a + at);
    if (at < 0 && lane == 0) pivots[1] = 1;
  } else m = R.val[e];
  m *= d;
  if (m != 0)
    for (int q = begin + lane; q < end; q += 32) {
      const int at = GPUCSRColumnFind(R.col, SYMMETRIC ? R.nlower : e + 1, R.length, F.j[q]);

      if (at >= 0) R.val[at] -= m * look(F.a + q);
    }
  __syncwarp();
  if (lane == 0) R.val[e] = m;
}

template <bool SYMMETRIC>
__global__ void __launch_bounds__(32 * NUMERIC_WARPS) numeric_kernel(GPUCSRFactorCSR F, const int *__restrict__ order, int rule, double tolerance, int *pivots, volatile int *trouble, int room, int staged)
{
  extern __shared__ double values[];
  const int                lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, warps = (int)gridDim.x * NUMERIC_WARPS;

  double *const val = values + warp * (room + staged);
  int *const    col = (int *)(values + NUMERIC_WARPS * (room + staged)) + warp * (room + 2 * staged);
  const Staged  S   = {staged, col + room, col + room + staged, val + room};

  for (int p = warp * (int)gridDim.x + (int)blockIdx.x; p < F.n; p += warps) {
    const int  r = order[p], begin = F.i[r], length = F.i[r + 1] - begin, nlower = F.diag[r] - begin;
    const bool fits = length <= room;
    const Row  R    = {r, nlower, length, fits ? col : F.j + begin, fits ? val : F.a + begin};

    if (fits)
      for (int e = lane; e < length; e += 32) {
        col[e] = F.j[begin + e];
        val[e] = F.a[begin + e];
      }
    __syncwarp();
    for (int e = 0, take; e < nlower; e += max(1, take)) {
      Above a;

      take = stage<SYMMETRIC>(F, R, e, S, lane, &a);
      if (take) eliminate_some<SYMMETRIC>(F, R, S, a, e, take, lane, pivots, trouble);
      else eliminate_long<SYMMETRIC>(F, R, e, lane, pivots, trouble);
    }
    __syncwarp();
    const double pivot = R.val[nlower], inverse = present(1.0 / pivot);
    double       least = tolerance;
    if (fits)
      for (int e = lane; e < length; e += 32) F.a[begin + e] = R.val[e];
    if (rule != GPUCSR_PIVOT_ABSOLUTE) {
      double sum = 0;

      for (int e = (SYMMETRIC ? nlower : 0) + lane; e < length; e += 32)
        if (e != nlower) sum += fabs(R.val[e]);
#pragma unroll
      for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
      least *= sum;
    }
    __syncwarp();
    if (lane == 0) {
      fence(); /* make the row visible before its pivot */
      show(F.dinv + r, inverse);
      if (!((rule == GPUCSR_PIVOT_POSITIVE ? pivot : fabs(pivot)) > least)) atomicMin(pivots, r);
    }
  }
}

/* Room for entries of rows above, for a row of usual length */
static int StagedEntries(const GPUCSRFactorCSR *F)
{
  const int length = GPUCSRMin(GPUCSRMin(F->longest, 128), GPUCSRMax(8, (int)(2 * F->nnz / F->n))), half = length / 2 + 1;

  return GPUCSRMin(NUMERIC_STAGED, (half * half + 31) / 32 * 32);
}

static size_t SharedBytes(int room, int staged)
{
  return NUMERIC_WARPS * ((sizeof(int) + sizeof(double)) * (size_t)room + (2 * sizeof(int) + sizeof(double)) * (size_t)staged);
}

template <bool SYMMETRIC>
static GPUCSRError LaunchFactor(GPUCSRDevice dev, GPUCSRFactorCSR *F, const int *order, int rule, double tolerance, int *pivots, cudaStream_t s)
{
  const int most = F->nnz / F->n > NUMERIC_LONG / 16 ? NUMERIC_LONG : NUMERIC_ROW;
  int       blocks, limit = 0, *trouble = pivots + 2, room = F->longest <= most ? (F->longest + 31) / 32 * 32 : NUMERIC_ROW, staged = StagedEntries(F);
  size_t    shared;
  void     *args[] = {F, &order, &rule, &tolerance, &pivots, &trouble, &room, &staged};

  GPUCSR_CUDA(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, dev->id));
  while (SharedBytes(room, staged) > (size_t)limit && staged > 32) staged = staged / 64 * 32; /* many devices have half of an H200's, or less */
  shared = SharedBytes(room, staged);
  GPUCSR_CUDA(cudaFuncSetAttribute((const void *)numeric_kernel<SYMMETRIC>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
  GPUCSRCall(Resident(dev, numeric_kernel<SYMMETRIC>, 32 * NUMERIC_WARPS, shared, 16, &blocks));
  GPUCSR_CUDA(cudaMemsetAsync(F->dinv, 0xFF, sizeof(double) * (size_t)F->n, s));
  GPUCSR_CUDA(cudaLaunchCooperativeKernel((const void *)numeric_kernel<SYMMETRIC>, blocks, 32 * NUMERIC_WARPS, args, shared, s));
  return 0;
}

/* found: the least row whose pivot is not good, whether the pattern is unsymmetric, and whether a wait was too long; at d on the device */
static GPUCSRError FactorWith(GPUCSRDevice dev, GPUCSRFactorCSR *F, GPUCSRBool symmetric, const int *order, GPUCSRPivotRule rule, double tolerance, int found[3], int *d, GPUCSRStream s)
{
  GPUCSRCall(GPUCSRUpload(dev, d, GPUCSR_INT32, found, GPUCSR_INT32, 3, false, s, NULL));
  if (symmetric) GPUCSRCall(LaunchFactor<true>(dev, F, order, rule, tolerance, d, (cudaStream_t)s));
  else GPUCSRCall(LaunchFactor<false>(dev, F, order, rule, tolerance, d, (cudaStream_t)s));
  GPUCSRCall(GPUCSRDownload(dev, found, GPUCSR_INT32, d, GPUCSR_INT32, 3, false, s));
  GPUCSRCheck(!found[2], GPUCSR_ERR_GPU, "numeric_kernel waited too long for the pivots of other rows");
  return 0;
}

GPUCSRError GPUCSRFactor_CUDA(GPUCSRDevice dev, GPUCSRFactorCSR *F, GPUCSRBool symmetric, const int *order, GPUCSRPivotRule rule, double tolerance, GPUCSRPivots *pivots, GPUCSRStream s)
{
  int         found[3] = {F->n, 0, 0}, *d = NULL;
  GPUCSRError ierr = 0;

  if (F->n) {
    GPUCSRCall(GPUCSRMalloc(dev, sizeof(found), "pivots of a factor", (void **)&d));
    ierr = FactorWith(dev, F, symmetric, order, rule, tolerance, found, d, s);
    GPUCSRCall(GPUCSRFree(dev, sizeof(found), (void **)&d));
  }
  pivots->row         = found[0];
  pivots->unsymmetric = found[1];
  return ierr;
}

/*
  ILU and ICC on a GPU, row by row in PETSc's order, so that factors agree up to rounding: the entries left of the diagonal ascend, and each eliminates with the row of its column. A warp takes a row; rows are in
  the order of levels, and each waits for the inverse pivots of the rows that it needs.

  A warp keeps its row in shared memory if it fits there, which is so for all but a few rows. It finds the place of an entry of the row above by bisection. All blocks are resident, and a warp's rows
  ascend in the order of levels, so the first unfinished row never waits for ever.
*/
#include "await.cuh"

#define NUMERIC_WARPS 8
#define NUMERIC_ROW   256  /* entries of a row in shared memory, with room for all blocks of a multiprocessor, */
#define NUMERIC_LONG  1024 /* or this many if rows are long */
#define GROUP         4    /* rows above that are loaded together */

__device__ __forceinline__ int bisect(const int *j, int begin, int end, int c)
{
  while (begin < end) {
    const int mid = begin + (end - begin) / 2, at = j[mid];

    if (at == c) return mid;
    if (at < c) begin = mid + 1;
    else end = mid;
  }
  return -1;
}

/* Entry q of the row above, if it has that many */
struct Above {
  int    col;
  double val;
};
__device__ __forceinline__ Above above(const GPUCSRFactorCSR &F, int q, int end)
{
  if (q >= end) return {-1, 0};
  return {F.j[q], look(F.a + q)};
}

/* A row that is being factored */
struct Row {
  int        r, nlower, length;
  const int *col;
  double    *val;
};

/* Eliminates its entry e with a row above. That row's entries right of the diagonal are [begin, end), the first of them loaded already. SYMMETRIC: the multiplier comes from the row above as well */
template <bool SYMMETRIC>
__device__ __forceinline__ void eliminate(const GPUCSRFactorCSR &F, const Row &R, double d, int e, int begin, int end, Above a, int lane, int *unsymmetric)
{
  const unsigned all = 0xffffffffu;
  double         m   = R.val[e];

  if (SYMMETRIC) {
    bool found = false;

    m = 0;
    for (int q = begin; q < end && !found; q += 32) {
      const Above    u   = q == begin ? a : above(F, q + lane, end);
      const unsigned who = __ballot_sync(all, u.col == R.r);

      found = who != 0;
      if (found) m = __shfl_sync(all, u.val, __ffs((int)who) - 1);
    }
    if (!found && lane == 0) *unsymmetric = 1;
  }
  m *= d;
  __syncwarp();
  if (lane == 0) R.val[e] = m;
  if (m != 0)
    for (int q = begin + lane; q < end; q += 32) {
      if (q >= begin + 32) a = above(F, q, end);
      const int at = bisect(R.col, SYMMETRIC ? R.nlower : e + 1, R.length, a.col);

      if (at >= 0) R.val[at] -= m * a.val;
    }
  __syncwarp();
}

/* Eliminates entries e0 to e0 + 31 left of the diagonal, in this order. It takes all entries whose rows are ready at a time, so that one fence serves them */
template <bool SYMMETRIC>
__device__ __forceinline__ void eliminate_some(const GPUCSRFactorCSR &F, const Row &R, int e0, int lane, int *pivots, volatile int *trouble)
{
  const unsigned all  = 0xffffffffu;
  const int      last = min(R.nlower, e0 + 32);
  const bool     some = e0 + lane < last;
  const int      k = some ? R.col[e0 + lane] : 0, begin = some ? F.diag[k] + 1 : 0, end = some ? F.i[k + 1] : 0;
  double         d = some ? absent<double>() : 0;
  Patience       patience;

  for (int e = e0; e < last;) {
    if (is_absent(d)) d = look(F.dinv + k);
    const unsigned waiting = __ballot_sync(all, is_absent(d)) >> (e - e0);
    const int      ready   = waiting ? __ffs((int)waiting) - 1 : last - e;

    if (!ready && __any_sync(all, patience.gone(trouble))) break;
    if (!ready) continue;
    fence();
    const int stop = e + ready;
    for (; e < stop; e += GROUP) {
      int   b[GROUP], n[GROUP];
      Above a[GROUP];

#pragma unroll
      for (int g = 0; g < GROUP; g++) { /* issue all loads before the first is used */
        b[g] = __shfl_sync(all, begin, min(e + g, stop - 1) - e0);
        n[g] = __shfl_sync(all, end, min(e + g, stop - 1) - e0);
        a[g] = above(F, b[g] + lane, n[g]);
      }
#pragma unroll
      for (int g = 0; g < GROUP; g++) {
        const double p = __shfl_sync(all, d, min(e + g, stop - 1) - e0);

        if (e + g < stop) eliminate<SYMMETRIC>(F, R, p, e + g, b[g], n[g], a[g], lane, pivots + 1);
      }
    }
    e = stop;
  }
}

template <bool SYMMETRIC>
__global__ void __launch_bounds__(32 * NUMERIC_WARPS) numeric_kernel(GPUCSRFactorCSR F, const int *__restrict__ order, int rule, double tolerance, int *pivots, volatile int *trouble, int room)
{
  extern __shared__ double values[];
  const int                lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, warps = (int)gridDim.x * NUMERIC_WARPS;

  double *const val = values + warp * room;
  int *const    col = (int *)(values + NUMERIC_WARPS * room) + warp * room;

  for (int p = warp * (int)gridDim.x + (int)blockIdx.x; p < F.n; p += warps) {
    const int  r = order[p], begin = F.i[r], length = F.i[r + 1] - begin, nlower = F.diag[r] - begin;
    const bool fits = length <= room;
    const Row  R    = {r, nlower, length, fits ? col : F.j + begin, fits ? val : F.a + begin};
    double     sum  = 0;

    if (fits)
      for (int e = lane; e < length; e += 32) {
        col[e] = F.j[begin + e];
        val[e] = F.a[begin + e];
      }
    __syncwarp();
    for (int e = 0; e < nlower; e += 32) eliminate_some<SYMMETRIC>(F, R, e, lane, pivots, trouble);
    for (int e = (SYMMETRIC ? nlower : 0) + lane; e < length; e += 32)
      if (e != nlower) sum += fabs(R.val[e]);
#pragma unroll
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (fits)
      for (int e = lane; e < length; e += 32) F.a[begin + e] = R.val[e];
    const double pivot = R.val[nlower];
    __syncwarp();
    if (lane == 0) {
      const double least = rule == GPUCSR_PIVOT_ABSOLUTE ? tolerance : tolerance * sum;

      fence(); /* make the row visible before its pivot */
      if (!((rule == GPUCSR_PIVOT_POSITIVE ? pivot : fabs(pivot)) > least)) atomicMin(pivots, r);
      show(F.dinv + r, present(1.0 / pivot));
    }
    __syncwarp();
  }
}

template <bool SYMMETRIC>
static PetscErrorCode LaunchFactor(GPUCSRDevice dev, GPUCSRFactorCSR *F, const int *order, int rule, double tolerance, int *pivots, int *trouble, cudaStream_t s)
{
  const int    most = F->nnz / F->n > NUMERIC_LONG / 16 ? NUMERIC_LONG : NUMERIC_ROW;
  int          blocks, room = F->longest <= most ? (F->longest + 31) / 32 * 32 : NUMERIC_ROW;
  const size_t shared = (sizeof(int) + sizeof(double)) * NUMERIC_WARPS * (size_t)room;
  void        *args[] = {F, &order, &rule, &tolerance, &pivots, &trouble, &room};

  PetscFunctionBegin;
  GPUCSR_CUDA(cudaFuncSetAttribute((const void *)numeric_kernel<SYMMETRIC>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
  PetscCall(Resident(dev, numeric_kernel<SYMMETRIC>, 32 * NUMERIC_WARPS, shared, 8, &blocks));
  GPUCSR_CUDA(cudaMemsetAsync(F->dinv, 0xFF, sizeof(double) * (size_t)F->n, s));
  GPUCSR_CUDA(cudaLaunchCooperativeKernel((const void *)numeric_kernel<SYMMETRIC>, blocks, 32 * NUMERIC_WARPS, args, shared, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern "C" {
GPUCSR_INTERN PetscErrorCode GPUCSRFactor_CUDA(GPUCSRDevice, GPUCSRFactorCSR *, PetscBool, const int *, GPUCSRPivotRule, double, GPUCSRPivots *, GPUCSRStream);
}

static PetscErrorCode FactorWith(GPUCSRDevice dev, GPUCSRFactorCSR *F, PetscBool symmetric, const int *order, GPUCSRPivotRule rule, double tolerance, int *d, int *trouble, int found[2], GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRUpload(dev, d, GPUCSR_INT32, found, GPUCSR_INT32, 2, PETSC_FALSE, s, NULL));
  if (symmetric) PetscCall(LaunchFactor<true>(dev, F, order, rule, tolerance, d, trouble, (cudaStream_t)s));
  else PetscCall(LaunchFactor<false>(dev, F, order, rule, tolerance, d, trouble, (cudaStream_t)s));
  PetscCall(GPUCSRDownload(dev, found, GPUCSR_INT32, d, GPUCSR_INT32, 2, PETSC_FALSE, s));
  PetscCheck(!*trouble, PETSC_COMM_SELF, PETSC_ERR_GPU, "numeric_kernel waited too long for the pivots of other rows");
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRFactor_CUDA(GPUCSRDevice dev, GPUCSRFactorCSR *F, PetscBool symmetric, const int *order, GPUCSRPivotRule rule, double tolerance, GPUCSRPivots *pivots, GPUCSRStream s)
{
  int   found[2] = {F->n, 0}, *d = NULL;
  void *trouble;

  PetscFunctionBegin;
  pivots->row         = F->n;
  pivots->unsymmetric = 0;
  if (!F->n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRMalloc(dev, sizeof(found), "pivots of a factor", (void **)&d));
  PetscCall(dev->ops->hostmalloc(dev->id, sizeof(int), &trouble));
  *(int *)trouble           = 0;
  const PetscErrorCode ierr = FactorWith(dev, F, symmetric, order, rule, tolerance, d, (int *)trouble, found, s);
  PetscCall(GPUCSRFree(dev, sizeof(found), (void **)&d));
  PetscCall(dev->ops->hostfree(dev->id, trouble));
  PetscCall(ierr);
  pivots->row         = found[0];
  pivots->unsymmetric = found[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

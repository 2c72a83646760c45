/*
  ILU and ICC on a GPU, row by row as PETSc has it (the row's entries left of the diagonal in ascending order, each times the row above that it names), so that
  factors agree to rounding: a warp a row, rows in the order of levels, each waiting for the inverse pivots of the rows that it needs.

  A warp keeps its row in shared memory if that is short, and looks up where an entry of the row above goes by bisection. All blocks run at the same time, and a warp's
  rows ascend in the order of levels, so the least row that is not done never waits in vain.
*/
#include "await.cuh"

#define NUMERIC_WARPS 8
#define NUMERIC_ROW   96 /* entries of a row in shared memory */

struct RowSpace {
  int    col[NUMERIC_ROW];
  double val[NUMERIC_ROW];
};

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

/* Row r takes out row k above, from its entry e on; SYMMETRIC: the multiplier comes from that row as well */
template <bool SYMMETRIC>
__device__ __forceinline__ void eliminate(const GPUCSRFactorCSR &F, int r, int k, double d, int e, int nlower, int length, const int *col, double *val, int lane, int *unsymmetric)
{
  const int begin = F.diag[k] + 1, end = F.i[k + 1];
  double    m = val[e];

  if (SYMMETRIC) {
    bool found = false;

    for (int q = begin; q < end && !found; q += 32) {
      const bool     here = q + lane < end && F.j[q + lane] == r;
      const unsigned who  = __ballot_sync(0xffffffffu, here);
      double         u    = here ? look(F.a + q + lane) : 0;

      found = who != 0;
      if (found) m = __shfl_sync(0xffffffffu, u, __ffs((int)who) - 1);
    }
    if (!found) {
      m = 0;
      if (lane == 0) *unsymmetric = 1;
    }
  }
  m *= d;
  __syncwarp();
  if (lane == 0) val[e] = m;
  if (m != 0)
    for (int q = begin + lane; q < end; q += 32) {
      const int at = bisect(col, SYMMETRIC ? nlower : e + 1, length, F.j[q]);

      if (at >= 0) val[at] -= m * look(F.a + q);
    }
  __syncwarp();
}

template <bool SYMMETRIC>
__global__ void __launch_bounds__(32 * NUMERIC_WARPS) numeric_kernel(GPUCSRFactorCSR F, const int *__restrict__ order, int rule, double tolerance, int *pivots, volatile int *trouble)
{
  __shared__ RowSpace space[NUMERIC_WARPS];
  const int           lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, warps = (int)gridDim.x * NUMERIC_WARPS;

  for (int p = warp * (int)gridDim.x + (int)blockIdx.x; p < F.n; p += warps) {
    const int  r = order[p], begin = F.i[r], length = F.i[r + 1] - begin, nlower = F.diag[r] - begin;
    const bool fits = length <= NUMERIC_ROW;
    const int *col  = fits ? space[warp].col : F.j + begin;
    double    *val  = fits ? space[warp].val : F.a + begin, sum = 0;
    Patience   patience;

    if (fits)
      for (int e = lane; e < length; e += 32) {
        space[warp].col[e] = F.j[begin + e];
        space[warp].val[e] = F.a[begin + e];
      }
    __syncwarp();
    for (int e = 0; e < nlower; e++) {
      const int k = col[e];
      double    d = look(F.dinv + k);

      while (__any_sync(0xffffffffu, is_absent(d))) {
        if (__any_sync(0xffffffffu, patience.gone(trouble))) break;
        d = look(F.dinv + k);
      }
      __threadfence();
      eliminate<SYMMETRIC>(F, r, k, d, e, nlower, length, col, val, lane, pivots + 1);
    }
    for (int e = (SYMMETRIC ? nlower : 0) + lane; e < length; e += 32)
      if (e != nlower) sum += fabs(val[e]);
#pragma unroll
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, o);
    if (fits)
      for (int e = lane; e < length; e += 32) F.a[begin + e] = val[e];
    const double pivot = val[nlower];
    __syncwarp();
    if (lane == 0) {
      __threadfence(); /* the row is there before its pivot */
      const double least = rule == GPUCSR_PIVOT_ABSOLUTE ? tolerance : tolerance * sum;

      if (!((rule == GPUCSR_PIVOT_POSITIVE ? pivot : fabs(pivot)) > least)) atomicMin(pivots, r);
      show(F.dinv + r, present(1.0 / pivot));
    }
    __syncwarp();
  }
}

template <bool SYMMETRIC>
static PetscErrorCode Launch(GPUCSRDevice dev, GPUCSRFactorCSR *F, const int *order, int rule, double tolerance, int *pivots, int *trouble, cudaStream_t s)
{
  int   blocks;
  void *args[] = {F, &order, &rule, &tolerance, &pivots, &trouble};

  PetscFunctionBegin;
  PetscCall(Resident(dev, numeric_kernel<SYMMETRIC>, 32 * NUMERIC_WARPS, 0, 8, &blocks));
  GPUCSR_CUDA(cudaMemsetAsync(F->dinv, 0xFF, sizeof(double) * (size_t)F->n, s));
  GPUCSR_CUDA(cudaLaunchCooperativeKernel((const void *)numeric_kernel<SYMMETRIC>, blocks, 32 * NUMERIC_WARPS, args, 0, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

extern "C" {
GPUCSR_INTERN PetscErrorCode GPUCSRFactor_CUDA(GPUCSRDevice, GPUCSRFactorCSR *, PetscBool, const int *, GPUCSRPivotRule, double, GPUCSRPivots *, GPUCSRStream);
}

static PetscErrorCode FactorWith(GPUCSRDevice dev, GPUCSRFactorCSR *F, PetscBool symmetric, const int *order, GPUCSRPivotRule rule, double tolerance, int *d, int *trouble, int found[2], GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRUpload(dev, d, GPUCSR_INT32, found, GPUCSR_INT32, 2, PETSC_FALSE, s, NULL));
  if (symmetric) PetscCall(Launch<true>(dev, F, order, rule, tolerance, d, trouble, (cudaStream_t)s));
  else PetscCall(Launch<false>(dev, F, order, rule, tolerance, d, trouble, (cudaStream_t)s));
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
  *(int *)trouble = 0;
  const PetscErrorCode ierr = FactorWith(dev, F, symmetric, order, rule, tolerance, d, (int *)trouble, found, s);
  PetscCall(GPUCSRFree(dev, sizeof(found), (void **)&d));
  PetscCall(dev->ops->hostfree(dev->id, trouble));
  PetscCall(ierr);
  pivots->row         = found[0];
  pivots->unsymmetric = found[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

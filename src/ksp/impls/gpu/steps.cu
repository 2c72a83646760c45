/*
  Single steps of the solvers: a kernel for each, one thread for several rows, sums in two stages of fixed order. The block that ends last adds up
  the parts of all and, where the state is the device's, applies the rule; then the next step finds its scalars there and the host needs not wait.
  A step of a solve that has ended does nothing, so that iterations may be launched ahead.
*/
#include "../../../mat/impls/gpucsr/kernels/device.cuh"
#include "launch.h"

#define THREADS 256

/* The sum over the threads of the block, held by the first */
__device__ __forceinline__ double block_sum(double v, double *part)
{
  v = reduce<32>(v);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = threadIdx.x < THREADS / 32 ? part[threadIdx.x] : 0;
  if (threadIdx.x < 32) v = reduce<32>(v);
  __syncthreads();
  return v;
}

template <GPUKSPStep S>
__global__ void __launch_bounds__(THREADS) step_kernel(const GPUKSPVectors v, const GPUKSPStepArgs a)
{
  constexpr int          N = GPUKSPStepSums(S);
  __shared__ double      part[THREADS / 32];
  __shared__ unsigned    last;
  __shared__ GPUKSPState st;
  double                 sum[GPUKSP_SUMS] = {0, 0, 0, 0};
  unsigned              *count            = (unsigned *)(a.partial + GPUKSP_SUMS * GPUKSP_PARTIALS);

  if (threadIdx.x == 0) st = *a.state;
  __syncthreads();
  /* what follows the end: the last step of x, and the true residual */
  if (a.rule && st.reason) return;
  for (int i = (int)(blockIdx.x * THREADS + threadIdx.x); i < a.n; i += (int)(gridDim.x * THREADS)) GPUKSPStepRow(S, &v, &st, i, sum);
  if constexpr (N > 0) {
    for (int k = 0; k < N; k++) {
      sum[k] = block_sum(sum[k], part);
      if (threadIdx.x == 0) a.partial[k * GPUKSP_PARTIALS + blockIdx.x] = sum[k];
    }
    if (threadIdx.x == 0) {
      __threadfence();
      last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (int k = 0; k < N; k++) {
      double s = 0;

      for (int b = (int)threadIdx.x; b < (int)gridDim.x; b += THREADS) s += __ldcg(a.partial + k * GPUKSP_PARTIALS + b);
      sum[k] = block_sum(s, part);
    }
    if (threadIdx.x == 0) {
      if (a.rule) {
        GPUKSPStepRule(S, &st, sum, a.first);
        if (a.next) GPUKSPNext(a.method, &st, a.first);
        *a.state = st;
        if (a.seen) {
          *a.seen = st;
          __threadfence_system();
        }
      } else
        for (int k = 0; k < N; k++) a.sums[k] = sum[k];
    }
  }
}

PetscErrorCode GPUKSPStepDevice(GPUKSPStep step, const GPUKSPVectors *v, const GPUKSPStepArgs *a, GPUCSRStream s)
{
  const unsigned blocks = PetscMax(1u, PetscMin((unsigned)GPUKSP_PARTIALS, GPUCSRBlocks(a->n, THREADS)));

  PetscFunctionBegin;
  switch (step) {
#define STEP(name) \
  case name: \
    step_kernel<name><<<blocks, THREADS, 0, (cudaStream_t)s>>>(*v, *a); \
    break
    STEP(GPUKSP_SUBTRACT);
    STEP(GPUKSP_CG_START);
    STEP(GPUKSP_BNORM);
    STEP(GPUKSP_NORMS);
    STEP(GPUKSP_PRECONDITION);
    STEP(GPUKSP_POLYNOMIAL_START);
    STEP(GPUKSP_POLYNOMIAL_FIRST);
    STEP(GPUKSP_POLYNOMIAL_RESIDUAL);
    STEP(GPUKSP_POLYNOMIAL_STEP);
    STEP(GPUKSP_CG_DIRECTION);
    STEP(GPUKSP_CG_CURVATURE);
    STEP(GPUKSP_CG_RESIDUAL);
    STEP(GPUKSP_CG_R);
    STEP(GPUKSP_CG_FINISH);
    STEP(GPUKSP_CG1_START);
    STEP(GPUKSP_CG1_Z);
    STEP(GPUKSP_CG1_NORMS);
    STEP(GPUKSP_CG1_UPDATE);
    STEP(GPUKSP_BCGS_R_FROM_T);
    STEP(GPUKSP_BCGS_R_SCALE);
    STEP(GPUKSP_BCGS_START);
    STEP(GPUKSP_BCGS_DIRECTION);
    STEP(GPUKSP_BCGS_V);
    STEP(GPUKSP_BCGS_S);
    STEP(GPUKSP_BCGS_T);
    STEP(GPUKSP_BCGS_UPDATE);
    STEP(GPUKSP_BCGS_LUCKY);
#undef STEP
  default:
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_PLIB, "No step %d", (int)step);
  }
  GPUCSRCheckLaunch("a step of a solver");
  PetscFunctionReturn(PETSC_SUCCESS);
}

__global__ void round_kernel(size_t n, const double *from, float *to)
{
  for (size_t k = blockIdx.x * (size_t)blockDim.x + threadIdx.x; k < n; k += gridDim.x * (size_t)blockDim.x) to[k] = is_absent(from[k]) ? absent<float>() : present((float)from[k]);
}

/* Values in single precision; places that are marked as empty stay so */
PetscErrorCode GPUKSPRound(size_t n, const double *from, float *to, GPUCSRStream s)
{
  PetscFunctionBegin;
  if (n) round_kernel<<<(unsigned)PetscMin((size_t)2048, (n + 255) / 256), 256, 0, (cudaStream_t)s>>>(n, from, to);
  GPUCSRCheckLaunch("rounding");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The counter of blocks that have ended, at 0: each launch leaves it so */
PetscErrorCode GPUKSPStepReset(double *partial, GPUCSRStream s)
{
  PetscFunctionBegin;
  GPUCSR_CUDA(cudaMemsetAsync(partial + GPUKSP_SUMS * GPUKSP_PARTIALS, 0, sizeof(double), (cudaStream_t)s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- graphs ---- */

PetscErrorCode GPUKSPGraphBegin(GPUCSRStream s)
{
  PetscFunctionBegin;
  GPUCSR_CUDA(cudaStreamBeginCapture((cudaStream_t)s, cudaStreamCaptureModeThreadLocal));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* *g is NULL where what was recorded cannot be a graph */
PetscErrorCode GPUKSPGraphEnd(GPUCSRStream s, GPUKSPGraph *g)
{
  cudaGraph_t     graph = NULL;
  cudaGraphExec_t exec  = NULL;

  PetscFunctionBegin;
  *g = NULL;
  if (cudaStreamEndCapture((cudaStream_t)s, &graph) == cudaSuccess && graph) {
    if (cudaGraphInstantiateWithFlags(&exec, graph, 0) == cudaSuccess) *g = (GPUKSPGraph)exec;
    GPUCSR_CUDA(cudaGraphDestroy(graph));
  }
  (void)cudaGetLastError();
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUKSPGraphLaunch(GPUKSPGraph g, GPUCSRStream s)
{
  PetscFunctionBegin;
  GPUCSR_CUDA(cudaGraphLaunch((cudaGraphExec_t)g, (cudaStream_t)s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUKSPGraphDestroy(GPUKSPGraph *g)
{
  PetscFunctionBegin;
  if (*g) GPUCSR_CUDA(cudaGraphExecDestroy((cudaGraphExec_t)*g));
  *g = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  A graph that repeats itself on the device until the solve rests. Where an iteration is long (a multigrid cycle on a large matrix), the host launches none that may be one too many, and would wait for each: its outcome
  on the way to the host and the next launch on the way back take longer than a small kernel. Here the last kernel of an iteration says whether there is another one.
*/
#include "../../../mat/impls/gpucsr/kernels/device.cuh"
#include "loop.h"

#if CUDART_VERSION >= 12040
  #define REPEATS 1
#endif

#if REPEATS
__global__ void goes_on_kernel(cudaGraphConditionalHandle condition, const GPUKSPState *state)
{
  cudaGraphSetConditional(condition, !GPUKSPRests(state));
}

/* A node of the graph whose body is run while the condition is set, as it is at each launch */
static cudaError_t AddLoop(cudaGraph_t whole, cudaGraphConditionalHandle *condition, cudaGraph_t *body)
{
  cudaGraphNodeParams       params = {};
  cudaGraphNode_t           node;
  struct cudaFuncAttributes attr;
  cudaError_t               err = cudaFuncGetAttributes(&attr, goes_on_kernel); /* loads it: not while something is recorded */

  if (!err) err = cudaGraphConditionalHandleCreate(condition, whole, 1, cudaGraphCondAssignDefault);
  if (err) return err;
  params.type               = cudaGraphNodeTypeConditional;
  params.conditional.handle = *condition;
  params.conditional.type   = cudaGraphCondTypeWhile;
  params.conditional.size   = 1;
  #if CUDART_VERSION >= 13000
  err = cudaGraphAddNode(&node, whole, NULL, NULL, 0, &params);
  #else
  err = cudaGraphAddNode(&node, whole, NULL, 0, &params);
  #endif
  if (!err) *body = params.conditional.phGraph_out[0];
  return err;
}
#endif

/* Begins to record an iteration */
PetscErrorCode GPUKSPLoopGraphBegin(GPUCSRStream s, GPUKSPLoopGraph *g)
{
  PetscFunctionBegin;
  *g = {NULL, 0};
#if REPEATS
  cudaGraph_t                whole = NULL, body = NULL;
  cudaGraphConditionalHandle condition = 0;
  cudaError_t                err       = cudaGraphCreate(&whole, 0);

  if (!err) err = AddLoop(whole, &condition, &body);
  if (!err) err = cudaStreamBeginCaptureToGraph((cudaStream_t)s, body, NULL, NULL, 0, cudaStreamCaptureModeThreadLocal);
  if (!err) *g = {whole, condition};
  else if (whole) GPUCSR_CUDA(cudaGraphDestroy(whole));
  (void)cudaGetLastError();
#endif
  (void)s;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Ends that. state: in device memory, as the iteration leaves it. *graph is NULL if the recorded work cannot be a graph */
PetscErrorCode GPUKSPLoopGraphEnd(GPUCSRStream s, GPUKSPLoopGraph *g, const GPUKSPState *state, GPUKSPGraph *graph)
{
  PetscFunctionBegin;
  *graph = NULL;
#if REPEATS
  cudaGraph_t     body = NULL;
  cudaGraphExec_t exec = NULL;

  goes_on_kernel<<<1, 1, 0, (cudaStream_t)s>>>((cudaGraphConditionalHandle)g->condition, state);
  if (cudaStreamEndCapture((cudaStream_t)s, &body) == cudaSuccess && body && cudaGraphInstantiateWithFlags(&exec, (cudaGraph_t)g->whole, 0) == cudaSuccess) *graph = (GPUKSPGraph)exec;
  GPUCSR_CUDA(cudaGraphDestroy((cudaGraph_t)g->whole));
  (void)cudaGetLastError();
#endif
  (void)s;
  (void)state;
  g->whole = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

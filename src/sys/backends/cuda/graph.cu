/*
  Work of a stream, recorded once and launched as one graph.
*/
#include "../../graph.h"
#include "../../launch.cuh"

GPUCSRError GPUCSRLaunchGraphBegin(GPUCSRStream s)
{
  GPUCSR_CUDA(cudaStreamBeginCapture((cudaStream_t)s, cudaStreamCaptureModeThreadLocal));
  return 0;
}

/* *g is NULL if the recorded work cannot become a graph */
GPUCSRError GPUCSRLaunchGraphEnd(GPUCSRStream s, GPUCSRLaunchGraph *g)
{
  cudaGraph_t     graph = NULL;
  cudaGraphExec_t exec  = NULL;

  *g = NULL;
  if (cudaStreamEndCapture((cudaStream_t)s, &graph) == cudaSuccess && graph) {
    if (cudaGraphInstantiateWithFlags(&exec, graph, 0) == cudaSuccess) *g = (GPUCSRLaunchGraph)exec;
    GPUCSR_CUDA(cudaGraphDestroy(graph));
  }
  (void)cudaGetLastError();
  return 0;
}

GPUCSRError GPUCSRLaunchGraphLaunch(GPUCSRLaunchGraph g, GPUCSRStream s)
{
  GPUCSR_CUDA(cudaGraphLaunch((cudaGraphExec_t)g, (cudaStream_t)s));
  return 0;
}

GPUCSRError GPUCSRLaunchGraphDestroy(GPUCSRLaunchGraph *g)
{
  if (*g) GPUCSR_CUDA(cudaGraphExecDestroy((cudaGraphExec_t)*g));
  *g = NULL;
  return 0;
}

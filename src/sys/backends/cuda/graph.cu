/*
  Work of a stream, recorded once and launched as one graph.
*/
#include "../../graph.h"
#include "../../launch.cuh"

static __global__ void architecture_kernel(void)
{
}

#define DEVICES 64

/* All kernels are compiled for the same architectures; the driver's limit is that of graphs with such launches */
bool GPUCSRLaunchesEarly(void)
{
  static signed char known[DEVICES]; /* 1 yes, -1 no */
  int                dev, driver;
  cudaFuncAttributes a;

  if (cudaGetDevice(&dev) != cudaSuccess || dev >= DEVICES) return false;
  if (!known[dev]) known[dev] = cudaDriverGetVersion(&driver) == cudaSuccess && driver >= 12030 && cudaFuncGetAttributes(&a, architecture_kernel) == cudaSuccess && a.ptxVersion >= 90 ? 1 : -1;
  return known[dev] > 0;
}

GPUCSRError GPUCSRLaunchGraphBegin(GPUCSRStream s)
{
  GPUCSR_CUDA(cudaStreamBeginCapture((cudaStream_t)s, cudaStreamCaptureModeThreadLocal));
  return 0;
}

/* Does exec do the work of graph from now on? */
static bool Update(cudaGraphExec_t exec, cudaGraph_t graph)
{
#if CUDART_VERSION >= 12000
  cudaGraphExecUpdateResultInfo info;

  return cudaGraphExecUpdate(exec, graph, &info) == cudaSuccess;
#else
  cudaGraphNode_t           node;
  cudaGraphExecUpdateResult result;

  return cudaGraphExecUpdate(exec, graph, &node, &result) == cudaSuccess;
#endif
}

/* Instantiating takes longer than the launches that were recorded */
GPUCSRError GPUCSRLaunchGraphEnd(GPUCSRStream s, GPUCSRLaunchGraph *g)
{
  cudaGraph_t     graph = NULL;
  cudaGraphExec_t exec = NULL, old = (cudaGraphExec_t)*g;

  *g = NULL;
  if (cudaStreamEndCapture((cudaStream_t)s, &graph) == cudaSuccess && graph) {
    if (old && Update(old, graph)) {
      *g  = (GPUCSRLaunchGraph)old;
      old = NULL;
    } else if (cudaGraphInstantiateWithFlags(&exec, graph, 0) == cudaSuccess) *g = (GPUCSRLaunchGraph)exec;
    GPUCSR_CUDA(cudaGraphDestroy(graph));
  }
  if (old) GPUCSR_CUDA(cudaGraphExecDestroy(old));
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

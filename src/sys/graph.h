#pragma once

/* Work of a stream, recorded once and launched as one graph on a GPU */
#include "device.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef void             *GPUCSRLaunchGraph;
GPUCSR_INTERN GPUCSRError GPUCSRLaunchGraphBegin(GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUCSRLaunchGraphEnd(GPUCSRStream, GPUCSRLaunchGraph *); /* NULL if the recorded work cannot become a graph */
GPUCSR_INTERN GPUCSRError GPUCSRLaunchGraphLaunch(GPUCSRLaunchGraph, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUCSRLaunchGraphDestroy(GPUCSRLaunchGraph *);

#if defined(__cplusplus)
}
#endif

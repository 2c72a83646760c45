#pragma once

/* Work of a stream, recorded once and launched as one graph on a GPU */
#include "device.h"

typedef void             *GPUCSRLaunchGraph;
GPUCSR_INTERN GPUCSRError GPUCSRLaunchGraphBegin(GPUCSRStream);
/* In: NULL, or a graph of earlier work, which is updated where the new work differs in numbers alone, and else goes. Out: NULL if the recorded work cannot become a graph */
GPUCSR_INTERN GPUCSRError GPUCSRLaunchGraphEnd(GPUCSRStream, GPUCSRLaunchGraph *);
GPUCSR_INTERN GPUCSRError GPUCSRLaunchGraphLaunch(GPUCSRLaunchGraph, GPUCSRStream);
GPUCSR_INTERN GPUCSRError GPUCSRLaunchGraphDestroy(GPUCSRLaunchGraph *);

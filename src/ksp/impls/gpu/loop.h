#pragma once

/* A graph that repeats itself on the device until the solve rests (loop.cu): an iteration is recorded between begin and end, and one launch is a whole solve */
#include "persistent.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct {
  void              *whole; /* NULL: CUDA or the driver has no such graphs, and nothing is being recorded */
  unsigned long long condition;
} GPUKSPLoopGraph;

GPUCSR_INTERN PetscErrorCode GPUKSPLoopGraphBegin(GPUCSRStream, GPUKSPLoopGraph *);
GPUCSR_INTERN PetscErrorCode GPUKSPLoopGraphEnd(GPUCSRStream, GPUKSPLoopGraph *, const GPUKSPState *, GPUKSPGraph *);

#if defined(__cplusplus)
}
#endif

#pragma once

/*
  What a product and an iteration of conjugate gradients take by where they run, predicted (advise.c): the profile for what the device computes, a few constants for what
  crosses the bus and for what the host does meanwhile.
*/
#include "plan.h"

/* Where: the CPU, by MATSEQAIJ; the device with the program's vectors on the host, and with vectors there; one kernel from b to x */
typedef enum {
  GPUCSR_AT_CPU,
  GPUCSR_AT_HOST_VECTORS,
  GPUCSR_AT_DEVICE_VECTORS,
  GPUCSR_AT_SOLVER,
  GPUCSR_NPLACES
} GPUCSRWhere;

#define GPUCSR_NGPUS 4 /* 1, 2, 4, 8 */

/* Seconds, 0 where there is no such thing; bytes of device memory, at the CPU of the host's */
typedef struct {
  const GPUCSRFormat *format;
  const GPUCSRKernel *kernel;
  double              kernelproduct; /* of the kernel alone, as the profile has it */
  double              product[GPUCSR_NPLACES], iteration[GPUCSR_NPLACES], bytes[GPUCSR_NPLACES];
  double              products[GPUCSR_NGPUS], iterations[GPUCSR_NGPUS], bytesofeach[GPUCSR_NGPUS]; /* on so many GPUs: device vectors; the solver */
} GPUCSRForetold;

GPUCSR_INTERN GPUCSRDevice   GPUCSRForetoldDevice(GPUCSRDevice); /* the one that times are predicted for: it, if it is a GPU, or that of the profile */
GPUCSR_INTERN PetscErrorCode GPUCSRForetell(GPUCSRDevice, const GPUCSRFeatures *, GPUCSRPrecision, const GPUCSRRequest *, const GPUCSRHostTimes *, GPUCSRForetold *);
GPUCSR_INTERN double         GPUCSRHostVectorsTime(double m, double n, double kernel, size_t number, double reach);
GPUCSR_INTERN PetscErrorCode GPUCSRHostTimesMeasure(const GPUCSRSource *, GPUCSRHostTimes *);
GPUCSR_INTERN void           GPUCSRHostTimesUsual(double rows, double entries, GPUCSRHostTimes *);

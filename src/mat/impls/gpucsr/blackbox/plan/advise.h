#pragma once

/*
  Predicted times of a product and of an iteration of conjugate gradients on the CPU and on GPUs (advise.c): the profile gives the device's part, a
  few constants the copies and the host's part.
*/
#include "plan.h"

/* The places: the CPU, by MATSEQAIJ; the device with the program's vectors on the host, and on the device; one kernel from b to x */
typedef enum {
  GPUCSR_AT_CPU,
  GPUCSR_AT_HOST_VECTORS,
  GPUCSR_AT_DEVICE_VECTORS,
  GPUCSR_AT_SOLVER,
  GPUCSR_NPLACES
} GPUCSRWhere;

#define GPUCSR_NGPUS 4 /* 1, 2, 4, 8 */

/* Seconds, 0: does not exist; bytes of device memory, or, for the CPU, host memory */
typedef struct {
  const GPUCSRFormat *format;
  const GPUCSRKernel *kernel;
  double              kernelproduct; /* of the kernel alone, from the profile */
  double              product[GPUCSR_NPLACES], iteration[GPUCSR_NPLACES], bytes[GPUCSR_NPLACES];
  double              products[GPUCSR_NGPUS], iterations[GPUCSR_NGPUS], bytesofeach[GPUCSR_NGPUS]; /* on 1, 2, 4 and 8 GPUs: device vectors; the solver */
} GPUCSRForetold;

GPUCSR_INTERN PetscErrorCode GPUCSRForetell(GPUCSRDevice, const GPUCSRFeatures *, GPUCSRPrecision, const GPUCSRRequest *, double host, GPUCSRForetold *);
GPUCSR_INTERN double         GPUCSRHostVectorsTime(double m, double n, double kernel, size_t number, double reach);
GPUCSR_INTERN double         GPUCSRHostProductTime(double rows, double entries);

#pragma once

/*
  The arithmetic of VECGPU without Vec: reads arrays of one device, and writes arrays or numbers of the host. All work is in the order of dev->stream. Functions that return numbers wait for the result.
  For the same n and entries the bits are always the same. The host's functions also take arrays without a device, with dev NULL.
*/
#include "../../../sys/device.h"

/* Vectors that an expression of veclist.h reads */
#define VECGPU_X 1
#define VECGPU_Y 2
#define VECGPU_Z 4

typedef enum {
#define VECGPU_MAP(name, reads, expression) VECGPU_MAP_##name,
#include "veclist.h"
#undef VECGPU_MAP
  VECGPU_MAPS
} VecGPUMap;

typedef enum {
#define VECGPU_REDUCE(name, reads, count, combine, first, second) VECGPU_REDUCE_##name,
#include "veclist.h"
#undef VECGPU_REDUCE
  VECGPU_REDUCTIONS
} VecGPUReduction;

typedef struct {
  GPUCSRError (*prepare)(GPUCSRDevice); /* once, before any reduction: allocates its memory; GPUCSR_ERR_MEM if there is none. NULL: needs none */
  GPUCSRError (*map)(GPUCSRDevice, VecGPUMap, size_t n, const double abc[3], const double *x, const double *y, double *z);
  GPUCSRError (*maxpy)(GPUCSRDevice, size_t n, int nv, const double a[], const double *const x[], double b, double *y); /* y = b y + sum of a[k] x[k], y not read if b is 0 */
  GPUCSRError (*reduce)(GPUCSRDevice, VecGPUReduction, size_t n, const double *x, const double *y, double result[2]);
  GPUCSRError (*mdot)(GPUCSRDevice, size_t n, int nv, const double *x, const double *const y[], double result[]);
  /* the largest (sign 1) or smallest (-1) entry and its first place, n > 0; a NaN counts only as first entry, as in VECSEQ */
  GPUCSRError (*extreme)(GPUCSRDevice, int sign, size_t n, const double *x, double *value, size_t *at);
  GPUCSRError (*release)(void); /* before the device goes; NULL: nothing to release */
} VecGPUKernels;

GPUCSR_INTERN const VecGPUKernels VecGPUKernels_host;
GPUCSR_INTERN const VecGPUKernels VecGPUKernels_cuda;

/* dev NULL: the host */
static inline const VecGPUKernels *VecGPUKernelsOf(GPUCSRDevice dev)
{
  return dev ? GPUCSREither(dev, &VecGPUKernels_cuda, &VecGPUKernels_host) : &VecGPUKernels_host;
}

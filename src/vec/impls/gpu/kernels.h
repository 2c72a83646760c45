#pragma once

/*
  The arithmetic of VECGPU: arrays of one device in, arrays or numbers of the host out; knows no Vec. All of it works in
  the order of dev->stream. Functions that give numbers wait for them, and give the same bits every time for the same n.
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

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct {
  GPUCSRError (*prepare)(GPUCSRDevice); /* once, before any reduction: the memory that those need; GPUCSR_ERR_MEM where there is none left */
  GPUCSRError (*map)(GPUCSRDevice, VecGPUMap, size_t n, const double abc[3], const double *x, const double *y, double *z);
  GPUCSRError (*swap)(GPUCSRDevice, size_t n, double *x, double *y);
  GPUCSRError (*maxpy)(GPUCSRDevice, size_t n, int nv, const double a[], const double *const x[], double b, double *y); /* y = b y + sum of a[k] x[k], y not read when b is 0 */
  GPUCSRError (*reduce)(GPUCSRDevice, VecGPUReduction, size_t n, const double *x, const double *y, double result[2]);
  GPUCSRError (*mdot)(GPUCSRDevice, size_t n, int nv, const double *x, const double *const y[], double result[]);
  /* the largest (sign 1) or smallest (-1) entry and the first place where it is, n > 0; a NaN counts only as first entry, as in VECSEQ */
  GPUCSRError (*extreme)(GPUCSRDevice, int sign, size_t n, const double *x, double *value, size_t *at);
  GPUCSRError (*release)(void); /* before the device goes */
} VecGPUKernels;

GPUCSR_INTERN const VecGPUKernels VecGPUKernels_host;
#if defined(GPUCSR_HAVE_CUDA)
GPUCSR_INTERN const VecGPUKernels VecGPUKernels_cuda;
#endif

#if defined(__cplusplus)
}
#endif

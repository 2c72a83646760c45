#pragma once

/*
  The mark of absent entries, in formats with a place for absent entries: a NaN whose bits are all ones (in a double: the upper 32 bits). memset() with
  GPUCSR_ABSENT writes marks, and one comparison of 32 bits finds a mark. A stored value with the same bits becomes another NaN; only its payload is lost.
  Products skip marked entries, so an Inf or NaN in x never meets a zero that is not in the matrix. Kernels have the same as is_absent() and present()
  (device.cuh).
*/
#include "format.h"
#include <math.h>
#include <string.h>

#define GPUCSR_ABSENT 0xFF /* each byte of the mark */

static inline GPUCSRBool GPUCSRIsAbsent(const void *value, size_t size)
{
  uint64_t d;
  uint32_t f;

  if (size == sizeof(d)) {
    memcpy(&d, value, sizeof(d));
    f = (uint32_t)(d >> 32);
  } else memcpy(&f, value, sizeof(f));
  return f == UINT32_MAX;
}

#if !defined(__CUDACC__)
/* Converts one value into its place */
static inline PetscErrorCode GPUCSRPut(void *to, GPUCSRType type, const PetscScalar *from, double *rounding)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRConvert(to, type, from, GPUCSR_DOUBLE, 1, 1, rounding));
  if (GPUCSRIsAbsent(to, GPUCSRTypeSize(type))) {
    if (type == GPUCSR_DOUBLE) *(double *)to = NAN;
    else *(float *)to = NAN;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

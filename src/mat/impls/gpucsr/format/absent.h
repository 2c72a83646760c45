#pragma once

/*
  Formats that keep a place for entries that are not there mark it in the value: the NaN whose bits are all ones, which memset()
  writes. A stored value of these very bits becomes another NaN, so nothing is lost but its payload. Products look at the mark and
  leave the entry out, so an Inf or NaN in x never meets a zero that is not in the matrix.
*/
#include "format.h"
#include <math.h>
#include <string.h>

static inline PetscBool GPUCSRIsAbsent(const void *value, size_t size)
{
  static const unsigned char absent[8] = {255, 255, 255, 255, 255, 255, 255, 255};

  return memcmp(value, absent, size) ? PETSC_FALSE : PETSC_TRUE;
}

/* Converts one value to its place */
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

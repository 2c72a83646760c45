#pragma once

/* Changes in place: the functions of inplace.c and inplace.cu for the tables of sum.c and coo.cu */
#include "assemble.h"

#if defined(__cplusplus)
extern "C" {
#endif

#define GPUCSR_INPLACE(backend) \
  GPUCSR_INTERN GPUCSRError GPUCSRScale_##backend(double, GPUCSRStorage *A); \
  GPUCSR_INTERN GPUCSRError GPUCSRDiagonalScale_##backend(const double *l, const double *r, GPUCSRStorage *A); \
  GPUCSR_INTERN GPUCSRError GPUCSRMissing_##backend(const GPUCSRStorage *A, GPUCSRBool *); \
  GPUCSR_INTERN GPUCSRError GPUCSRDiagonal_##backend(const double *d, double s, GPUCSRBool add, GPUCSRStorage *A); \
  GPUCSR_INTERN GPUCSRError GPUCSRAdd_##backend(double a, const GPUCSRStorage *X, GPUCSRStorage *Y); \
  GPUCSR_INTERN GPUCSRError GPUCSRZeroRows_##backend(int n, const int32_t *row, double d, GPUCSRStorage *A); \
  GPUCSR_INTERN GPUCSRError GPUCSRZeroRowsColumns_##backend(const int32_t *row, double d, const double *x, double *b, GPUCSRStorage *A); \
  GPUCSR_INTERN GPUCSRError GPUCSRRowMaxAbs_##backend(const GPUCSRStorage *A, double *v, int32_t *column); \
  GPUCSR_INTERN GPUCSRError GPUCSRNorm_##backend(const GPUCSRStorage *A, GPUCSRNormKind, double *)
GPUCSR_INPLACE(Host);
GPUCSR_INPLACE(CUDA);
#undef GPUCSR_INPLACE

#if defined(__cplusplus)
}
#endif

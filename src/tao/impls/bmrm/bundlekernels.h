#pragma once

/* The kernels of a bundle (bundle.h) */
#include "../../../sys/device.h"

#define BUNDLE_BLOCK 64 /* columns of a block */

/* Columns of one block, and their weights in a sum */
typedef struct {
  int    count, column[BUNDLE_BLOCK];
  double weight[BUNDLE_BLOCK];
} BundleTerms;

#if defined(GPUCSR_HAVE_CUDA)
  #if defined(__cplusplus)
extern "C" {
  #endif
GPUCSR_INTERN int         BundleParts_CUDA(int64_t n);
GPUCSR_INTERN GPUCSRError BundleDots_CUDA(int64_t n, int columns, const double *block, const double *g, double *parts, GPUCSRStream);
GPUCSR_INTERN GPUCSRError BundleSum_CUDA(int64_t n, int64_t columns, const double *parts, double *dots, GPUCSRStream);
GPUCSR_INTERN GPUCSRError BundleStep_CUDA(int64_t n, const BundleTerms *, const double *block, GPUCSRBool add, double *w, GPUCSRStream);
  #if defined(__cplusplus)
}
  #endif
#endif

#pragma once

/*
  Products with several vectors at once. Vectors of a matrix of columns lie behind each other outside; here, by rows: what one entry of the
  sparse matrix needs of all of them is then in one place.
*/
#include "kernels.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* n by k numbers, columns that are ld apart, to rows of k */
GPUCSR_INTERN GPUCSRError GPUCSRColumnsToRows(GPUCSRDevice, GPUCSRType, size_t n, int k, const void *columns, size_t ld, void *rows);
/* and back; plus, columns of n, is added to them if it is not NULL */
GPUCSR_INTERN GPUCSRError GPUCSRRowsToColumns(GPUCSRDevice, GPUCSRType, size_t n, int k, const void *rows, const void *plus, void *columns, size_t ld);
/* Z = A X of CSR; X and Z in rows of k numbers of the vector type */
GPUCSR_INTERN GPUCSRError GPUCSRMultRows(const GPUCSRStorage *csr, int k, const void *x, void *z);

/* The same on the device, in the order of its stream */
GPUCSR_INTERN GPUCSRError GPUCSRColumnsToRows_CUDA(GPUCSRDevice, GPUCSRType, size_t n, int k, const void *columns, size_t ld, void *rows);
GPUCSR_INTERN GPUCSRError GPUCSRRowsToColumns_CUDA(GPUCSRDevice, GPUCSRType, size_t n, int k, const void *rows, const void *plus, void *columns, size_t ld);
GPUCSR_INTERN GPUCSRError GPUCSRMultRows_CUDA(const GPUCSRStorage *csr, int k, const void *x, void *z);

#if defined(__cplusplus)
}
#endif

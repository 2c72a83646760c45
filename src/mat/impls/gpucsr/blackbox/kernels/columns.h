#pragma once

/*
  Products with several vectors at once. Callers store a matrix of vectors by columns, kernels by rows: an entry of the sparse matrix finds its
  numbers of all vectors in one place.
*/
#include "kernels.h"

/* Copies n by k numbers, in columns ld apart, into rows of k */
GPUCSR_INTERN GPUCSRError GPUCSRColumnsToRows(GPUCSRDevice, GPUCSRType, size_t n, int k, const void *columns, size_t ld, void *rows);
/* Copies the columns back; adds plus, columns of n, unless NULL */
GPUCSR_INTERN GPUCSRError GPUCSRRowsToColumns(GPUCSRDevice, GPUCSRType, size_t n, int k, const void *rows, const void *plus, void *columns, size_t ld);
/* Z = A X for A in CSR; X and Z in rows of k numbers of the vector type */
GPUCSR_INTERN GPUCSRError GPUCSRMultRows(const GPUCSRStorage *csr, int k, const void *x, void *z);

/* The same on the device, in the order of its stream */
GPUCSR_INTERN GPUCSRError GPUCSRColumnsToRows_CUDA(GPUCSRDevice, GPUCSRType, size_t n, int k, const void *columns, size_t ld, void *rows);
GPUCSR_INTERN GPUCSRError GPUCSRRowsToColumns_CUDA(GPUCSRDevice, GPUCSRType, size_t n, int k, const void *rows, const void *plus, void *columns, size_t ld);
GPUCSR_INTERN GPUCSRError GPUCSRMultRows_CUDA(const GPUCSRStorage *csr, int k, const void *x, void *z);

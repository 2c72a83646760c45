#pragma once

/*
  Device kernels. A kernel is one .cu file, which exports a GPUCSRKernelFamily, and a row of kernellist.h for each variant (as the threads for a row). It sees a GPUCSRStorage and a GPUCSRProduct, never a PETSc object.

  In a library built without nvcc the rows stay, so that every word of a user is known, and the families are NULL.
*/
#include "../format/format.h"

typedef struct {
  GPUCSRBool piecewise; /* can compute any range of rows */
  /* once for each pattern; NULL: nothing to do. May fill A->work */
  GPUCSRError (*prepare)(GPUCSRStorage *A, int variant);
  GPUCSRError (*launch)(const GPUCSRStorage *A, const GPUCSRProduct *, int variant, GPUCSRStream);
  int        block; /* threads of a block, if GPUCSRThreads may change them; 0: fixed by the kernel */
  GPUCSRBool steps; /* a product may end with a step */
} GPUCSRKernelFamily;

/* Threads of a block for the survey, a power of two from 32 to 512; 0: each family's own */
GPUCSR_INTERN int GPUCSRThreads;
static inline int GPUCSRBlockOf(const GPUCSRKernelFamily *f)
{
  return GPUCSRThreads ? GPUCSRThreads : f->block;
}

typedef struct {
  const char               *name, *format; /* format: its family of formats */
  const GPUCSRKernelFamily *family;
  int                       variant;
} GPUCSRKernel;

/*
  Variants of two numbers. csr_vector: threads for a row, entries of a load. sell_row: threads for a row, rows that share a load
*/
#define CSR_VECTOR(threads, entries) (100 * (entries) + (threads))
#define SELL_ROW(threads, together)  (100 * (together) + (threads))

GPUCSR_INTERN const GPUCSRKernel *GPUCSRKernelFind(const char[]); /* NULL: no kernel has that name */
GPUCSR_INTERN const GPUCSRKernel *GPUCSRKernelGet(int);           /* NULL: past the last */
GPUCSR_INTERN GPUCSRError         GPUCSRKernelNames(const char[], char[], size_t);

/* The device's functions for a format, apart from its products */
typedef struct {
  /* its exact extent, from CSR on the device, with the stream's work done, in place of the estimate from the features; NULL: the estimate is exact. May
     leave data in csr->work for a later fill() */
  GPUCSRError (*measure)(GPUCSRStorage *csr, int variant, GPUCSRExtent *, GPUCSRStream);
  GPUCSRError (*fill)(const GPUCSRStorage *csr, GPUCSRStorage *A, GPUCSRBool valuesonly, GPUCSRStream);
  GPUCSRError (*diagonal)(const GPUCSRStorage *A, void *d, GPUCSRStream);
  GPUCSRBool pattern; /* fill() of new values needs the pattern of csr, too */
} GPUCSRDeviceFormat;
GPUCSR_INTERN const GPUCSRDeviceFormat *GPUCSRDeviceFormatOf(const GPUCSRFormat *); /* NULL: the host fills the format */

/* Helpers for any format; plain loops on a device that uses host memory */
typedef struct {
  GPUCSRError (*transpose)(const GPUCSRStorage *A, GPUCSRStorage *T, int32_t *map, GPUCSRStream); /* see GPUCSRTransposeCSR() */
  /* features of CSR, from a sample of this fraction of the rows, unless NULL; bad: the first entry with a column out of range, or -1 */
  GPUCSRError (*inspect)(const GPUCSRStorage *csr, double fraction, GPUCSRFeatures *, int64_t *bad, GPUCSRStream);
  /* of n numbers, doubles or floats (moves.h): to[k] = from[index[k]]; to[index[k]] += from[k], no index twice; to[k] = from[k], which has the other type */
  GPUCSRError (*gather)(GPUCSRDevice, int n, GPUCSRType, const int32_t *index, const void *from, void *to, GPUCSRStream);
  GPUCSRError (*scatteradd)(GPUCSRDevice, int n, const int32_t *index, const double *from, double *to, GPUCSRStream);
  GPUCSRError (*convert)(GPUCSRDevice, int n, const void *from, GPUCSRType, void *to, GPUCSRStream);
  /* n by k numbers, in columns ld apart, to rows of k; and back, with plus, columns ldplus apart, added unless it is NULL */
  GPUCSRError (*columnstorows)(GPUCSRDevice, int n, GPUCSRType, int k, const void *columns, size_t ld, void *rows, GPUCSRStream);
  GPUCSRError (*rowstocolumns)(GPUCSRDevice, int n, GPUCSRType, int k, const void *rows, const void *plus, void *columns, size_t ld, size_t ldplus, GPUCSRStream);
} GPUCSRDeviceHelpers;
GPUCSR_INTERN const GPUCSRDeviceHelpers *GPUCSRHelpers(GPUCSRDevice);
GPUCSR_INTERN GPUCSRError                GPUCSRInspect_CUDA(const GPUCSRStorage *, double, GPUCSRFeatures *, int64_t *, GPUCSRStream);

/* Z = A X for A in CSR; X and Z in rows of k numbers of the vector type: an entry of A finds its numbers of all vectors in one place */
GPUCSR_INTERN GPUCSRError GPUCSRMultRows(const GPUCSRStorage *csr, int k, const void *x, void *z);
GPUCSR_INTERN GPUCSRError GPUCSRMultRows_CUDA(const GPUCSRStorage *csr, int k, const void *x, void *z); /* in the order of the device's stream */

/* A number on the device that kernels count or set, 0 before. GPUCSRFlagRead() waits, and frees the flag; with an error since its creation, which it returns, it only frees. value NULL: no wait */
GPUCSR_INTERN GPUCSRError GPUCSRFlagCreate(GPUCSRDevice, int **flag);
GPUCSR_INTERN GPUCSRError GPUCSRFlagRead(GPUCSRDevice, GPUCSRError since, int **flag, int *value);

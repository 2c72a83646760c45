#pragma once

/*
  Device kernels. A kernel is one .cu file, which exports one GPUCSRKernelFamily, and one row of kernellist.h for each
  variant of it (its threads a row, say). It sees a GPUCSRStorage and a GPUCSRProduct, never a PETSc object.

  In a library built without nvcc the rows stay, so that every word a user may give is known, and the families are NULL.
*/
#include "../format/format.h"

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct {
  GPUCSRBool piecewise; /* computes any range of rows, not only all of them */
  /* can it run here at all; NULL: always */
  GPUCSRError (*available)(GPUCSRBool *, char why[], size_t len);
  /* once a pattern; NULL: nothing to do. May fill A->work */
  GPUCSRError (*prepare)(GPUCSRStorage *A, int variant);
  GPUCSRError (*launch)(const GPUCSRStorage *A, const GPUCSRProduct *, int variant, GPUCSRStream);
  /* before the device goes: give back what belongs to no matrix; NULL: nothing */
  GPUCSRError (*release)(void);
  int        block; /* threads of a block, where GPUCSRThreads may ask for others; 0: they are part of how the kernel works */
  GPUCSRBool steps; /* a product may end with a step */
} GPUCSRKernelFamily;

/* Threads of a block, a power of two from 32 to 512, that the survey asks for; 0: each family's own */
GPUCSR_INTERN int GPUCSRThreads;
static inline int GPUCSRBlockOf(const GPUCSRKernelFamily *f)
{
  return GPUCSRThreads ? GPUCSRThreads : f->block;
}

typedef struct {
  const char               *name, *format; /* format: the family of formats it works on */
  const GPUCSRKernelFamily *family;
  int                       variant;
} GPUCSRKernel;

/*
  Variants that say more than one thing. csr_vector: threads a row, entries a load. sell_row: threads a row, rows whose entries are loaded together; hyb_segment hands its variant on to it
*/
#define CSR_VECTOR(threads, entries) (100 * (entries) + (threads))
#define SELL_ROW(threads, together)  (100 * (together) + (threads))

GPUCSR_INTERN GPUCSRError GPUCSRKernelFind(const char[], const GPUCSRKernel **);
GPUCSR_INTERN GPUCSRError GPUCSRKernelGet(int, const GPUCSRKernel **);
GPUCSR_INTERN GPUCSRError GPUCSRKernelsRelease(void);
GPUCSR_INTERN GPUCSRError GPUCSRKernelNames(const char[], char[], size_t);

/* What the device does with a format besides its products */
typedef struct {
  /* its extent exactly, from CSR on the device, with the stream's work done, in place of the estimate from the features; NULL: that is exact. May leave in
     csr->work what a fill() that follows need not find again */
  GPUCSRError (*measure)(GPUCSRStorage *csr, int variant, GPUCSRExtent *, GPUCSRStream);
  GPUCSRError (*fill)(const GPUCSRStorage *csr, GPUCSRStorage *A, GPUCSRBool valuesonly, GPUCSRStream);
  GPUCSRError (*diagonal)(const GPUCSRStorage *A, void *d, GPUCSRStream);
  GPUCSRBool pattern; /* new values alone do not do: fill() needs the pattern of csr with them */
} GPUCSRDeviceFormat;
GPUCSR_INTERN GPUCSRError GPUCSRDeviceFormatGet(const GPUCSRFormat *, const GPUCSRDeviceFormat **);

/* Helpers that belong to no format; on a device whose memory is the host's they are plain loops */
typedef struct {
  GPUCSRError (*transpose)(const GPUCSRStorage *A, GPUCSRStorage *T, int32_t *map, GPUCSRStream);                  /* see GPUCSRTransposeCSR() */
  GPUCSRError (*gather)(GPUCSRType, size_t n, const int32_t *index, const void *from, void *to, GPUCSRStream);     /* to[k] = from[index[k]] */
  GPUCSRError (*scatteradd)(GPUCSRType, size_t n, const int32_t *index, const void *from, void *to, GPUCSRStream); /* to[index[k]] += from[k], no index twice */
  /* features of CSR, from a sample of this fraction of the rows, NULL where nobody wants them; bad: the first entry whose column does not exist, -1 where there is none */
  GPUCSRError (*inspect)(const GPUCSRStorage *csr, double fraction, GPUCSRFeatures *, int64_t *bad, GPUCSRStream);
  GPUCSRError (*convert)(size_t n, GPUCSRType, const void *from, GPUCSRType, void *to, GPUCSRStream);
} GPUCSRDeviceHelpers;
GPUCSR_INTERN const GPUCSRDeviceHelpers *GPUCSRHelpers(GPUCSRDevice);
GPUCSR_INTERN GPUCSRError                GPUCSRInspect_CUDA(const GPUCSRStorage *, double, GPUCSRFeatures *, int64_t *, GPUCSRStream);

#if defined(__cplusplus)
}
#endif

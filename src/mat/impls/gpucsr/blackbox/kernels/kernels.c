/* The list of kernels as a table, and the helpers of a device that uses host memory. */
#include "../format/formats.h"
#include "moves.h"
#include <string.h>

#if defined(GPUCSR_HAVE_CUDA)
  #define GPUCSR_KERNEL(name, family, variant, format) extern PETSC_VISIBILITY_INTERNAL const GPUCSRKernelFamily GPUCSRKernel_##family;
  #include "kernellist.h"
  #undef GPUCSR_KERNEL
  #define FAMILY(family) &GPUCSRKernel_##family
extern PETSC_VISIBILITY_INTERNAL const GPUCSRDeviceHelpers GPUCSRDeviceHelpers_cuda;
  #define CUDA_HELPERS           &GPUCSRDeviceHelpers_cuda
  #define DECLARE_DEVICE(family) extern PETSC_VISIBILITY_INTERNAL const GPUCSRDeviceFormat GPUCSRDeviceFormat_##family;
  #define DECLARE_HOST(family)
  #define GPUCSR_FORMAT(name, family, variant, build) DECLARE_##build(family)
  #include "../format/formatlist.h"
  #undef GPUCSR_FORMAT
  #define DEVICEFORMAT_DEVICE(family) &GPUCSRDeviceFormat_##family
#else
  #define FAMILY(family)              NULL
  #define CUDA_HELPERS                NULL
  #define DEVICEFORMAT_DEVICE(family) NULL
#endif
#define DEVICEFORMAT_HOST(family) NULL

int GPUCSRThreads = 0;

#define GPUCSR_KERNEL(name, family, variant, format) {#name, #format, FAMILY(family), variant},
static const GPUCSRKernel kernels[] = {
#include "kernellist.h"
};
#undef GPUCSR_KERNEL
#define NKERNELS ((int)(sizeof(kernels) / sizeof(kernels[0])))

#define GPUCSR_FORMAT(name, family, variant, build) {&GPUCSRFormat_##family, DEVICEFORMAT_##build(family)},
static const struct {
  const GPUCSRFormatFamily *family;
  const GPUCSRDeviceFormat *device;
} deviceformats[] = {
#include "../format/formatlist.h"
};
#undef GPUCSR_FORMAT

const GPUCSRKernel *GPUCSRKernelGet(int q)
{
  return q < NKERNELS ? &kernels[q] : NULL;
}

const GPUCSRKernel *GPUCSRKernelFind(const char name[])
{
  for (int q = 0; q < NKERNELS; q++)
    if (!strcmp(name, kernels[q].name)) return &kernels[q];
  return NULL;
}

/* The kernels of one family of formats, or all for NULL */
PetscErrorCode GPUCSRKernelNames(const char format[], char list[], size_t len)
{
  PetscFunctionBegin;
  list[0] = 0;
  for (int q = 0; q < NKERNELS; q++) {
    if (format && strcmp(format, kernels[q].format)) continue;
    if (list[0]) PetscCall(PetscStrlcat(list, ", ", len));
    PetscCall(PetscStrlcat(list, kernels[q].name, len));
  }
  PetscCheck(strlen(list) + 1 < len, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The names of the kernels need more than %zu characters", len);
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUCSRDeviceFormat *GPUCSRDeviceFormatOf(const GPUCSRFormat *f)
{
  for (size_t q = 0; q < sizeof(deviceformats) / sizeof(deviceformats[0]); q++)
    if (deviceformats[q].family == f->ops) return deviceformats[q].device;
  return NULL;
}

static PetscErrorCode Transpose_Host(const GPUCSRStorage *A, GPUCSRStorage *T, int32_t *map, GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(s));
  PetscCall(GPUCSRTransposeCSR(A, T, map));
  PetscCall(GPUCSRLaunched(A->dev, "Transpose"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Inspect_Host(const GPUCSRStorage *csr, double fraction, GPUCSRFeatures *f, int64_t *bad, GPUCSRStream s)
{
  const int32_t *rowptr = (const int32_t *)csr->array[CSR_ROWPTR].data, *col = (const int32_t *)csr->array[CSR_COL].data;

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(s));
  *bad = -1;
  for (int64_t k = csr->nnz; k-- > 0;)
    if (col[k] < 0 || col[k] >= csr->n) *bad = k;
  if (f) {
    PetscCall(GPUCSRInspect(csr->m, csr->n, rowptr, *bad < 0 ? col : NULL, fraction, csr->dev->threads, f));
    PetscCall(GPUCSRStencils(csr->m, rowptr, col, GPUCSR_INT32, csr->array[CSR_VAL].data, csr->array[CSR_VAL].type, f));
  }
  PetscCall(GPUCSRLaunched(csr->dev, "Inspect"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

GPUCSR_MOVES(GPUCSR_EACH)

const GPUCSRDeviceHelpers *GPUCSRHelpers(GPUCSRDevice d)
{
  static const GPUCSRDeviceHelpers host = {Transpose_Host, Inspect_Host, GPUCSR_MOVES(GPUCSR_EACH_ENTRY)};

  return d->ops->kernels ? CUDA_HELPERS : &host;
}

/* The reference of csr_columns.cu */
PetscErrorCode GPUCSRMultRows(const GPUCSRStorage *A, int k, const void *x, void *z)
{
  const int32_t *rowptr = (const int32_t *)A->array[CSR_ROWPTR].data, *col = (const int32_t *)A->array[CSR_COL].data;

  PetscFunctionBegin;
  GPUCSRByKernels(A->dev, GPUCSRMultRows_CUDA(A, k, x, z));
  PetscCall(GPUCSRWaitStreamOnHost(A->dev->stream));
#define MULT(V, X) \
  do { \
    const V *val = (const V *)A->array[CSR_VAL].data; \
\
    for (int r = 0; r < A->m; r++) { \
      X *to = (X *)z + (size_t)r * (size_t)k; \
\
      for (int c = 0; c < k; c++) to[c] = 0; \
      for (int32_t q = rowptr[r]; q < rowptr[r + 1]; q++) { \
        const X *from = (const X *)x + (size_t)col[q] * (size_t)k; \
\
        for (int c = 0; c < k; c++) to[c] += (X)val[q] * from[c]; \
      } \
    } \
  } while (0)
  GPUCSRDispatchPrecision(A->precision, MULT);
#undef MULT
  PetscCall(GPUCSRLaunched(A->dev, "csr_columns"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRFlagCreate(GPUCSRDevice dev, int **flag)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRMalloc(dev, sizeof(**flag), "a flag", (void **)flag));
  ierr = dev->ops->zero(dev->id, *flag, sizeof(**flag), dev->stream);
  if (ierr) PetscCall(GPUCSRFree(dev, sizeof(**flag), (void **)flag));
  PetscFunctionReturn(ierr);
}

PetscErrorCode GPUCSRFlagRead(GPUCSRDevice dev, PetscErrorCode since, int **flag, int *value)
{
  PetscErrorCode ierr = since;

  PetscFunctionBegin;
  if (!ierr && value) ierr = GPUCSRRead(dev, value, *flag, sizeof(*value));
  PetscCall(GPUCSRFree(dev, sizeof(**flag), (void **)flag));
  PetscFunctionReturn(ierr);
}

/*
  Products with several vectors at once, on a device that uses host memory: plain loops, the reference of csr_columns.cu.
*/
#include "columns.h"

PetscErrorCode GPUCSRColumnsToRows(GPUCSRDevice dev, GPUCSRType type, size_t n, int k, const void *columns, size_t ld, void *rows)
{
  PetscFunctionBegin;
  GPUCSRByKernels(dev, GPUCSRColumnsToRows_CUDA(dev, type, n, k, columns, ld, rows));
  PetscCall(GPUCSRWaitStreamOnHost(dev->stream));
#define TOROWS(X) \
  do { \
    for (size_t r = 0; r < n; r++) \
      for (size_t c = 0; c < (size_t)k; c++) ((X *)rows)[r * (size_t)k + c] = ((const X *)columns)[c * ld + r]; \
  } while (0)
  if (type == GPUCSR_DOUBLE) TOROWS(double);
  else TOROWS(float);
#undef TOROWS
  PetscCall(GPUCSRLaunched(dev, "columns_to_rows"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRRowsToColumns(GPUCSRDevice dev, GPUCSRType type, size_t n, int k, const void *rows, const void *plus, void *columns, size_t ld)
{
  PetscFunctionBegin;
  GPUCSRByKernels(dev, GPUCSRRowsToColumns_CUDA(dev, type, n, k, rows, plus, columns, ld));
  PetscCall(GPUCSRWaitStreamOnHost(dev->stream));
#define TOCOLUMNS(X) \
  do { \
    for (size_t c = 0; c < (size_t)k; c++) \
      for (size_t r = 0; r < n; r++) ((X *)columns)[c * ld + r] = ((const X *)rows)[r * (size_t)k + c] + (plus ? ((const X *)plus)[c * n + r] : 0); \
  } while (0)
  if (type == GPUCSR_DOUBLE) TOCOLUMNS(double);
  else TOCOLUMNS(float);
#undef TOCOLUMNS
  PetscCall(GPUCSRLaunched(dev, "rows_to_columns"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

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

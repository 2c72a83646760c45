/*
  What all formats share: finding one by its word, the features of a matrix, and the memory of its arrays.
*/
#include "format.h"
#include <math.h>

#define GPUCSR_FORMAT(name, build) &GPUCSRFormat_##name,
static const GPUCSRFormat *const formats[] = {
#include "formatlist.h"
};
#undef GPUCSR_FORMAT
#define NFORMATS ((int)(sizeof(formats) / sizeof(formats[0])))

/* The q-th format, NULL past the last */
PetscErrorCode GPUCSRFormatGet(int q, const GPUCSRFormat **f)
{
  *f = q < NFORMATS ? formats[q] : NULL;
  return PETSC_SUCCESS;
}

/* NULL where there is none of that name */
PetscErrorCode GPUCSRFormatFind(const char name[], const GPUCSRFormat **f)
{
  PetscBool same;

  PetscFunctionBegin;
  *f = NULL;
  for (int q = 0; q < NFORMATS; q++) {
    PetscCall(PetscStrcmp(name, formats[q]->name, &same));
    if (same) *f = formats[q];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRFormatNames(char list[], size_t len)
{
  PetscFunctionBegin;
  list[0] = 0;
  for (int q = 0; q < NFORMATS; q++) {
    if (q) PetscCall(PetscStrlcat(list, ", ", len));
    PetscCall(PetscStrlcat(list, formats[q]->name, len));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One pass over the row pointers of CSR */
PetscErrorCode GPUCSRFeaturesGet(int m, int n, const int32_t *rowptr, int threads, GPUCSRFeatures *f)
{
  const int nslices = (int)(((int64_t)m + GPUCSR_SLICE - 1) / GPUCSR_SLICE);
  int       lo = PETSC_MAX_INT < INT32_MAX ? PETSC_MAX_INT : INT32_MAX, hi = 0, empty = 0;
  int64_t   stored = 0, squares = 0;

  PetscFunctionBegin;
  if (m < 20000) threads = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1) reduction(+ : empty, stored, squares) reduction(min : lo) reduction(max : hi)
  for (int q = 0; q < nslices; q++) {
    const int last  = m - q * GPUCSR_SLICE < GPUCSR_SLICE ? m : (q + 1) * GPUCSR_SLICE;
    int       width = 0;

    for (int r = q * GPUCSR_SLICE; r < last; r++) {
      const int len = rowptr[r + 1] - rowptr[r];

      width = len > width ? len : width;
      lo    = len < lo ? len : lo;
      empty += len == 0;
      squares += (int64_t)len * len;
    }
    hi = width > hi ? width : hi;
    stored += (int64_t)width * GPUCSR_SLICE;
  }
  f->m           = m;
  f->n           = n;
  f->nnz         = m ? rowptr[m] : 0;
  f->min         = m ? lo : 0;
  f->max         = hi;
  f->empty       = empty;
  f->mean        = m ? (double)f->nnz / m : 0;
  f->deviation   = m ? sqrt(PetscMax(0, (double)squares / m - f->mean * f->mean)) : 0;
  f->density     = m && n ? f->mean / n : 0;
  f->sell_stored = stored;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Describe, without memory */
PetscErrorCode GPUCSRStorageCreate(GPUCSRDevice dev, const GPUCSRFormat *format, const GPUCSRFeatures *f, GPUCSRPrecision precision, GPUCSRStorage *A)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(A, sizeof(*A)));
  A->format    = format;
  A->dev       = dev;
  A->precision = precision;
  A->m         = f->m;
  A->n         = f->n;
  A->nnz       = f->nnz;
  PetscCall((*format->layout)(f, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRStorageAllocate(GPUCSRStorage *A, PetscBool valuesonly)
{
  PetscFunctionBegin;
  for (int k = 0; k < A->narrays; k++) {
    GPUCSRArray *a = &A->array[k];

    if (valuesonly && !a->values) continue;
    PetscCall(GPUCSRMalloc(A->dev, a->count * GPUCSRTypeSize(a->type), a->name, &a->data));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An array that a kernel computes once from the pattern; freed with the matrix */
PetscErrorCode GPUCSRStorageWork(GPUCSRStorage *A, GPUCSRType type, size_t count)
{
  PetscFunctionBegin;
  A->work = (GPUCSRArray){"work", type, PETSC_FALSE, count, NULL};
  PetscCall(GPUCSRMalloc(A->dev, count * GPUCSRTypeSize(type), "kernel work array", &A->work.data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRStorageDestroy(GPUCSRStorage *A)
{
  PetscFunctionBegin;
  for (int k = 0; k < A->narrays; k++) PetscCall(GPUCSRFree(A->dev, A->array[k].count * GPUCSRTypeSize(A->array[k].type), &A->array[k].data));
  PetscCall(GPUCSRFree(A->dev, A->work.count * GPUCSRTypeSize(A->work.type), &A->work.data));
  PetscCall(PetscMemzero(A, sizeof(*A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

double GPUCSRStorageBytes(const GPUCSRStorage *A)
{
  double bytes = 0;

  for (int k = 0; k < A->narrays; k++)
    if (A->array[k].data) bytes += (double)A->array[k].count * (double)GPUCSRTypeSize(A->array[k].type);
  if (A->work.data) bytes += (double)A->work.count * (double)GPUCSRTypeSize(A->work.type);
  return bytes;
}

double GPUCSRCSRBytes(const GPUCSRFeatures *f, GPUCSRPrecision p)
{
  return 4.0 * (f->m + 1.0) + (4.0 + (double)GPUCSRTypeSize(GPUCSRValueType(p))) * (double)f->nnz;
}

/*
  What all formats share: finding one by its word, the features of a matrix, and the memory of its arrays.
*/
#include "format.h"
#include <math.h>

#define GPUCSR_FORMAT(name, family, variant, build) {#name, #family, variant, &GPUCSRFormat_##family},
static const GPUCSRFormat formats[] = {
#include "formatlist.h"
};
#undef GPUCSR_FORMAT
#define NFORMATS ((int)(sizeof(formats) / sizeof(formats[0])))

/* The q-th format, NULL past the last */
PetscErrorCode GPUCSRFormatGet(int q, const GPUCSRFormat **f)
{
  *f = q < NFORMATS ? &formats[q] : NULL;
  return PETSC_SUCCESS;
}

/* NULL where there is none of that name */
PetscErrorCode GPUCSRFormatFind(const char name[], const GPUCSRFormat **f)
{
  PetscBool same;

  PetscFunctionBegin;
  *f = NULL;
  for (int q = 0; q < NFORMATS; q++) {
    PetscCall(PetscStrcmp(name, formats[q].name, &same));
    if (same) *f = &formats[q];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The one that every build starts from */
const GPUCSRFormat *GPUCSRFormatCSR(void)
{
  return &formats[0];
}

PetscErrorCode GPUCSRFormatNames(char list[], size_t len)
{
  PetscFunctionBegin;
  list[0] = 0;
  for (int q = 0; q < NFORMATS; q++) {
    if (q) PetscCall(PetscStrlcat(list, ", ", len));
    PetscCall(PetscStrlcat(list, formats[q].name, len));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The class of a row's length: 0, 1, 2..3, 4..7, ... */
static int Class(int length)
{
  int b = 0;

  for (; length; length >>= 1) b++;
  return b;
}

/* The exact part of the features, from the row pointers on the host */
PetscErrorCode GPUCSRFeaturesOfRows(int m, int n, const int32_t *rowptr, int threads, GPUCSRFeatures *f)
{
  const int nslices = (int)(((int64_t)m + GPUCSR_SLICE - 1) / GPUCSR_SLICE);
  int       lo = INT32_MAX, hi = 0, rows[GPUCSR_NCLASSES] = {0};
  int64_t   stored = 0, squares = 0, entries[GPUCSR_NCLASSES] = {0};

  PetscFunctionBegin;
  if (m < 20000) threads = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1) reduction(+ : stored, squares, rows[:GPUCSR_NCLASSES], entries[:GPUCSR_NCLASSES]) reduction(min : lo) reduction(max : hi)
  for (int q = 0; q < nslices; q++) {
    const int last  = m - q * GPUCSR_SLICE < GPUCSR_SLICE ? m : (q + 1) * GPUCSR_SLICE;
    int       width = 0;

    for (int r = q * GPUCSR_SLICE; r < last; r++) {
      const int len = rowptr[r + 1] - rowptr[r], b = Class(len);

      width = len > width ? len : width;
      lo    = len < lo ? len : lo;
      rows[b]++;
      entries[b] += len;
      squares += (int64_t)len * len;
    }
    hi = width > hi ? width : hi;
    stored += (int64_t)width * GPUCSR_SLICE;
  }
  PetscCall(PetscMemzero(f, sizeof(*f))); /* features are hashed as memory */
  f->m           = m;
  f->n           = n;
  f->nnz         = m ? rowptr[m] : 0;
  f->min         = m ? lo : 0;
  f->max         = hi;
  f->sell_stored = stored;
  PetscCall(PetscArraycpy(f->rows, rows, GPUCSR_NCLASSES));
  PetscCall(PetscArraycpy(f->entries, entries, GPUCSR_NCLASSES));
  PetscCall(GPUCSRFeaturesDerive((double)squares, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What follows from the counts, and the sum of the squared row lengths */
PetscErrorCode GPUCSRFeaturesDerive(double squares, GPUCSRFeatures *f)
{
  const double half  = 0.5 * f->m;
  double       below = 0;
  int          b     = 0;

  PetscFunctionBegin;
  f->empty     = f->rows[0];
  f->mean      = f->m ? (double)f->nnz / f->m : 0;
  f->deviation = f->m ? sqrt(PetscMax(0, squares / f->m - f->mean * f->mean)) : 0;
  f->density   = f->m && f->n ? f->mean / f->n : 0;
  while (b < GPUCSR_NCLASSES - 1 && below + f->rows[b] < half) below += f->rows[b++];
  f->median = f->rows[b] ? (double)f->entries[b] / f->rows[b] : 0; /* the mean of the class that holds it */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Describe, without memory. Without an extent it is the estimated one. */
PetscErrorCode GPUCSRStorageCreate(GPUCSRDevice dev, const GPUCSRFormat *format, const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRPrecision precision, GPUCSRStorage *A)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(A, sizeof(*A)));
  A->format    = format;
  A->dev       = dev;
  A->precision = precision;
  A->m         = f->m;
  A->n         = f->n;
  A->nnz       = f->nnz;
  if (e) A->extent = *e;
  else PetscCall((*format->ops->estimate)(f, format->variant, &A->extent));
  PetscCall((*format->ops->layout)(f, &A->extent, A));
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

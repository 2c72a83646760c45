/* Common to all formats: finding a format by its word, and the memory of its arrays. */
#include "formats.h"
#include <string.h>

#define GPUCSR_FORMAT(name, family, variant, build) {#name, #family, variant, &GPUCSRFormat_##family},
static const GPUCSRFormat formats[] = {
#include "formatlist.h"
};
#undef GPUCSR_FORMAT
#define NFORMATS ((int)(sizeof(formats) / sizeof(formats[0])))

const GPUCSRFormat *GPUCSRFormatGet(int q)
{
  return q < NFORMATS ? &formats[q] : NULL;
}

const GPUCSRFormat *GPUCSRFormatFind(const char name[])
{
  for (int q = 0; q < NFORMATS; q++)
    if (!strcmp(name, formats[q].name)) return &formats[q];
  return NULL;
}

/* The source of every build */
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

/* Can the format store the matrix? If not, why has the reason */
GPUCSRBool GPUCSRFormatHolds(const GPUCSRFormat *format, const GPUCSRFeatures *f, char why[], size_t len)
{
  GPUCSRExtent e = {0};

  if (format->ops->applicable && !(*format->ops->applicable)(f, format->variant, why, len)) return PETSC_FALSE;
  (*format->ops->estimate)(f, format->variant, &e);
  if ((double)e.stored <= GPUCSR_MOST_STORED(f)) return PETSC_TRUE;
  (void)snprintf(why, len, "it would store %.0f entries for %.0f nonzeros", (double)e.stored, (double)f->nnz);
  return PETSC_FALSE;
}

void GPUCSRStoresEntries(const GPUCSRFeatures *f, int variant, GPUCSRExtent *e)
{
  e->stored = f->nnz;
}

void GPUCSRStoresAll(const GPUCSRFeatures *f, int variant, GPUCSRExtent *e)
{
  e->stored = (int64_t)f->m * f->n;
}

/* Describes a matrix, without memory; without an extent, with the estimated one */
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
  else (*format->ops->estimate)(f, format->variant, &A->extent);
  (*format->ops->layout)(f, &A->extent, A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static size_t ArrayBytes(const GPUCSRArray *a)
{
  return a->count * GPUCSRTypeSize(a->type);
}

PetscErrorCode GPUCSRStorageAllocate(GPUCSRStorage *A, GPUCSRBool valuesonly)
{
  size_t all = 0;

  PetscFunctionBegin;
  for (int k = 0; k < A->narrays; k++)
    if (!valuesonly || A->array[k].values) all += GPUCSRAlignUp(ArrayBytes(&A->array[k]));
  if (A->dev->ops->separate && all <= GPUCSR_PIECE) {
    A->piecebytes = all;
    PetscCall(GPUCSRMalloc(A->dev, all, A->format->name, &A->piece));
  }
  all = 0;
  for (int k = 0; k < A->narrays; k++) {
    GPUCSRArray *a = &A->array[k];

    if (valuesonly && !a->values) continue;
    if (A->piece) a->data = (char *)A->piece + all;
    else PetscCall(GPUCSRMalloc(A->dev, ArrayBytes(a), a->name, &a->data));
    all += GPUCSRAlignUp(ArrayBytes(a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix in CSR, with memory, which the caller frees even after an error; valuesonly: for its values alone */
PetscErrorCode GPUCSRStorageCSR(GPUCSRDevice dev, int m, int n, int64_t nnz, GPUCSRPrecision precision, GPUCSRBool valuesonly, GPUCSRStorage *A)
{
  const GPUCSRFeatures f = {.m = m, .n = n, .nnz = nnz};

  PetscFunctionBegin;
  PetscCall(GPUCSRStorageCreate(dev, GPUCSRFormatCSR(), &f, NULL, precision, A));
  PetscCall(GPUCSRStorageAllocate(A, valuesonly));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory for a kernel's data from the pattern; freed with the matrix */
PetscErrorCode GPUCSRStorageWork(GPUCSRStorage *A, GPUCSRType type, size_t count)
{
  PetscFunctionBegin;
  A->work = (GPUCSRArray){"work", type, PETSC_FALSE, count, NULL};
  PetscCall(GPUCSRMalloc(A->dev, count * GPUCSRTypeSize(type), "kernel work array", &A->work.data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B with the arrays of A, which stay A's and outlive B; a kernel's data of B is its own */
PetscErrorCode GPUCSRStorageLend(const GPUCSRStorage *A, GPUCSRStorage *B)
{
  PetscFunctionBegin;
  *B       = *A;
  B->lent  = A->narrays;
  B->piece = NULL;
  B->work  = (GPUCSRArray){0};
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRStorageDestroy(GPUCSRStorage *A)
{
  PetscFunctionBegin;
  if (A->piece) PetscCall(GPUCSRFree(A->dev, A->piecebytes, &A->piece));
  else
    for (int k = A->lent; k < A->narrays; k++) PetscCall(GPUCSRFree(A->dev, ArrayBytes(&A->array[k]), &A->array[k].data));
  PetscCall(GPUCSRFree(A->dev, ArrayBytes(&A->work), &A->work.data));
  PetscCall(PetscMemzero(A, sizeof(*A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

double GPUCSRStorageBytes(const GPUCSRStorage *A)
{
  double bytes = 0;

  for (int k = A->lent; k < A->narrays; k++)
    if (A->array[k].data) bytes += (double)ArrayBytes(&A->array[k]);
  if (A->work.data) bytes += (double)ArrayBytes(&A->work);
  return bytes;
}

double GPUCSRCSRBytes(const GPUCSRFeatures *f, GPUCSRPrecision p)
{
  return 4.0 * (f->m + 1.0) + (4.0 + (double)GPUCSRTypeSize(GPUCSRValueType(p))) * (double)f->nnz;
}

/* Sparse products on any device: the two phases, sums, graphs and blocks */
#include "spgemm.h"

const GPUCSRSpGEMMOps *GPUCSRSpGEMMOf(GPUCSRDevice d)
{
  return GPUCSREither(d, &GPUCSRSpGEMM_cuda, &GPUCSRSpGEMM_host);
}

/* Memory for a matrix in CSR, of doubles */
PetscErrorCode GPUCSRCSRCreate(GPUCSRDevice dev, int m, int n, int64_t nnz, GPUCSRStorage *A)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRStorageCSR(dev, m, n, nnz, GPUCSR_PRECISION_DOUBLE, PETSC_FALSE, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRRowClassesDestroy(GPUCSRDevice dev, GPUCSRRowClasses *c)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRFree(dev, sizeof(int32_t) * (size_t)c->m, (void **)&c->rows));
  PetscCall(PetscMemzero(c, sizeof(*c)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Puts rows into classes by these lengths; replaces older classes */
static PetscErrorCode Classify(GPUCSRDevice dev, int m, const int32_t *length, GPUCSRRowClasses *c)
{
  PetscFunctionBegin;
  if (c->m != m) PetscCall(GPUCSRRowClassesDestroy(dev, c));
  c->m = m;
  if (!c->rows) PetscCall(GPUCSRMalloc(dev, sizeof(int32_t) * (size_t)m, "rows by class", (void **)&c->rows));
  PetscCall((*GPUCSRSpGEMMOf(dev)->shape)(m, length, NULL, NULL, c, dev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory for a matrix of rows of these m + 1 lengths, the last of which is ignored, and its row pointers; classes: its rows by class, or NULL */
PetscErrorCode GPUCSRCSRFromLengths(GPUCSRDevice dev, int m, int n, const int32_t *length, GPUCSRRowClasses *classes, GPUCSRStorage *C)
{
  const size_t   bytes  = sizeof(int32_t) * ((size_t)m + 1);
  const int64_t  most   = INT32_MAX - 1024;
  int32_t       *rowptr = NULL;
  int64_t        nnz    = 0;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRMalloc(dev, bytes, "row pointers", (void **)&rowptr));
  ierr = (*GPUCSRSpGEMMOf(dev)->shape)(m, length, rowptr, &nnz, classes, dev);
  if (!ierr && nnz <= most) ierr = GPUCSRCSRCreate(dev, m, n, nnz, C);
  if (!ierr && nnz <= most) ierr = dev->ops->copy(dev->id, C->array[CSR_ROWPTR].data, rowptr, bytes, GPUCSR_ON_DEVICE, dev->stream);
  PetscCall(GPUCSRFree(dev, bytes, (void **)&rowptr));
  PetscCall(ierr);
  PetscCheck(nnz <= most, PETSC_COMM_SELF, PETSC_ERR_SUP, "A product of %d rows, %d columns and %" PetscInt64_FMT " nonzeros does not fit the 32-bit indices of the device formats", m, n, (PetscInt64)nnz);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pattern of C = A B, with ascending columns. After an error there is nothing to destroy. */
PetscErrorCode GPUCSRSpGEMMSymbolic(const GPUCSRStorage *A, const GPUCSRStorage *B, GPUCSRStorage *C, GPUCSRRowClasses *classes)
{
  GPUCSRDevice           dev    = A->dev;
  const GPUCSRSpGEMMOps *ops    = GPUCSRSpGEMMOf(dev);
  const size_t           bytes  = sizeof(int32_t) * ((size_t)A->m + 1);
  void                  *length = NULL;
  PetscErrorCode         ierr;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(C, sizeof(*C)));
  PetscCall(PetscMemzero(classes, sizeof(*classes)));
  C->dev = dev;
  ierr   = GPUCSRMalloc(dev, bytes, "lengths of a product's rows", &length);
  if (!ierr) ierr = dev->ops->zero(dev->id, length, bytes, dev->stream); /* the scan reads one number more than rows */
  if (!ierr) ierr = (*ops->bound)(dev, A->m, GPUCSRCSROf(A), GPUCSRCSROf(B), (int32_t *)length, dev->stream);
  if (!ierr) ierr = Classify(dev, A->m, (int32_t *)length, classes);
  if (!ierr) ierr = (*ops->count)(A, B, classes, (int32_t *)length);
  if (!ierr) ierr = GPUCSRCSRFromLengths(dev, A->m, B->n, (int32_t *)length, classes, C);
  if (!ierr) ierr = (*ops->fill)(A, B, classes, C);
  PetscCall(GPUCSRFree(dev, bytes, &length));
  if (ierr) {
    PetscCall(GPUCSRStorageDestroy(C));
    PetscCall(GPUCSRRowClassesDestroy(dev, classes));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values of C = A B, with the pattern of GPUCSRSpGEMMSymbolic() */
PetscErrorCode GPUCSRSpGEMMNumeric(const GPUCSRStorage *A, const GPUCSRStorage *B, const GPUCSRRowClasses *classes, GPUCSRStorage *C)
{
  GPUCSRBool lost;

  PetscFunctionBegin;
  PetscCall((*GPUCSRSpGEMMOf(A->dev)->numeric)(A, B, classes, C, &lost));
  PetscCheck(!lost, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The product has entries that its pattern has no place for: the pattern of a factor changed since, make it again with MAT_INITIAL_MATRIX");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same if neither pattern has changed: the host does not wait */
PetscErrorCode GPUCSRSpGEMMValues(const GPUCSRStorage *A, const GPUCSRStorage *B, const GPUCSRRowClasses *classes, GPUCSRStorage *C)
{
  PetscFunctionBegin;
  PetscCall((*GPUCSRSpGEMMOf(A->dev)->numeric)(A, B, classes, C, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The classes of a given pattern */
PetscErrorCode GPUCSRRowClassesOf(const GPUCSRStorage *C, GPUCSRRowClasses *classes)
{
  GPUCSRDevice   dev    = C->dev;
  const size_t   bytes  = sizeof(int32_t) * ((size_t)C->m + 1);
  void          *length = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRMalloc(dev, bytes, "lengths of a product's rows", &length));
  ierr = (*GPUCSRSpGEMMOf(dev)->lengths)(dev, C->m, GPUCSRCSROf(C), 0, PETSC_TRUE, (int32_t *)length, dev->stream);
  if (!ierr) ierr = Classify(dev, C->m, (const int32_t *)length, classes);
  PetscCall(GPUCSRFree(dev, bytes, &length));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* T = A transposed, with its values if A has memory for them, and their map, nnz numbers of device memory. After an error there is nothing to destroy. */
PetscErrorCode GPUCSRTransposeStorage(const GPUCSRStorage *A, GPUCSRStorage *T, int32_t **map)
{
  GPUCSRDevice   dev = A->dev;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *map = NULL;
  PetscCall(PetscMemzero(T, sizeof(*T)));
  T->dev = dev;
  ierr   = GPUCSRMalloc(dev, sizeof(int32_t) * (size_t)A->nnz, "a transpose's map", (void **)map);
  if (!ierr) ierr = GPUCSRCSRCreate(dev, A->n, A->m, A->nnz, T);
  if (!ierr) ierr = (*GPUCSRHelpers(dev)->transpose)(A, T, *map, dev->stream);
  if (ierr) {
    PetscCall(GPUCSRFree(dev, sizeof(int32_t) * (size_t)A->nnz, (void **)map));
    PetscCall(GPUCSRStorageDestroy(T));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values of T */
PetscErrorCode GPUCSRTransposeValues(const GPUCSRStorage *A, const int32_t *map, GPUCSRStorage *T)
{
  PetscFunctionBegin;
  PetscCall((*GPUCSRHelpers(A->dev)->gather)(A->dev, (int)A->nnz, GPUCSR_DOUBLE, map, A->array[CSR_VAL].data, T->array[CSR_VAL].data, A->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

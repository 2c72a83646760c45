/*
  Dense, row by row, with a mark at entries that are not there (absent.h): entry (r, c) is val[r n + c].

  Bytes: v m n. Wins where more than about v / (4 + v) of the entries are there, two thirds in double and half in single: no column
  is read, and x is met in order. Unlike dense it multiplies stored entries alone, so Inf and NaN in x stay where CSR would have
  them, and it takes mixed precision.
*/
#include "absent.h"
#include "reference.h"

static PetscErrorCode Applicable_BitDense(const GPUCSRFeatures *f, int variant, GPUCSRPrecision p, GPUCSRBool *yes, char why[], size_t len)
{
  PetscFunctionBegin;
  (void)variant;
  (void)p;
  *yes = (double)f->m * (double)f->n <= GPUCSR_MOST_STORED(f) ? PETSC_TRUE : PETSC_FALSE;
  if (!*yes) PetscCall(PetscSNPrintf(why, len, "it would store %.0f entries for %.0f nonzeros", (double)f->m * (double)f->n, (double)f->nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Layout_BitDense(const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRStorage *A)
{
  PetscFunctionBegin;
  (void)f;
  A->stored   = e->stored;
  A->narrays  = 1;
  A->array[0] = (GPUCSRArray){"val", GPUCSRValueType(A->precision), PETSC_TRUE, (size_t)A->stored, NULL};
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fill_BitDense(const GPUCSRSource *s, GPUCSRStorage *A, GPUCSRBool valuesonly, double *rounding)
{
  const GPUCSRType type = A->array[0].type;
  const size_t     size = GPUCSRTypeSize(type);

  PetscFunctionBegin;
  if (!valuesonly) memset(A->array[0].data, GPUCSR_ABSENT, (size_t)A->stored * size);
  for (int r = 0; r < s->m; r++)
    for (int32_t k = s->i[r]; k < s->i[r + 1]; k++) PetscCall(GPUCSRPut((char *)A->array[0].data + ((size_t)r * (size_t)s->n + (size_t)s->j[k]) * size, type, s->a + k, rounding));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of row r */
#define ROW(V, ENTRY) \
  for (int c = 0; c < A->n; c++) { \
    const V *v = (const V *)A->array[0].data + (size_t)r * (size_t)A->n + (size_t)c; \
\
    if (!GPUCSRIsAbsent(v, sizeof(V))) ENTRY(c, *v); \
  }

static PetscErrorCode Mult_BitDense(const GPUCSRStorage *A, const GPUCSRProduct *p)
{

  PetscFunctionBegin;
  GPUCSRReferenceMult(A, p, NULL, ROW);
  PetscFunctionReturn(PETSC_SUCCESS);
}
#undef ROW

static PetscErrorCode Diagonal_BitDense(const GPUCSRStorage *A, void *diag)
{
  PetscFunctionBegin;
#define DIAGONAL(V, X) \
  for (int r = 0; r < PetscMin(A->m, A->n); r++) { \
    const V *v = (const V *)A->array[0].data + (size_t)r * (size_t)A->n + (size_t)r; \
\
    ((X *)diag)[r] = GPUCSRIsAbsent(v, sizeof(V)) ? 0 : (X)*v; \
  }
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
#undef DIAGONAL
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUCSRFormatFamily GPUCSRFormat_bitdense = {Applicable_BitDense, GPUCSRStoresAll, NULL, Layout_BitDense, Fill_BitDense, Mult_BitDense, Diagonal_BitDense};

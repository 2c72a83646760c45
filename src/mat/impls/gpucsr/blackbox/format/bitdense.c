/*
  Dense, row by row: entry (r, c) is val[r n + c], or a mark where the matrix has no entry (absent.h).

  Bytes: v m n. Wins if more than about v / (4 + v) of the entries are there, two thirds in double and half in single: no column index is read. Only
  stored entries are multiplied, so Inf and NaN in x act as with CSR.
*/
#include "absent.h"
#include "reference.h"

enum {
  BITDENSE_VAL
};

static GPUCSRBool Applicable_BitDense(const GPUCSRFeatures *f, int variant, GPUCSRPrecision p, char why[], size_t len)
{
  if ((double)f->m * (double)f->n <= GPUCSR_MOST_STORED(f)) return PETSC_TRUE;
  (void)snprintf(why, len, "it would store %.0f entries for %.0f nonzeros", (double)f->m * (double)f->n, (double)f->nnz);
  return PETSC_FALSE;
}

static void Layout_BitDense(const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRStorage *A)
{
  A->stored              = e->stored;
  A->narrays             = 1;
  A->array[BITDENSE_VAL] = (GPUCSRArray){"val", GPUCSRValueType(A->precision), PETSC_TRUE, (size_t)A->stored, NULL};
}

static PetscErrorCode Fill_BitDense(const GPUCSRSource *s, GPUCSRStorage *A, GPUCSRBool valuesonly, double *rounding)
{
  const GPUCSRType type = A->array[BITDENSE_VAL].type;
  const size_t     size = GPUCSRTypeSize(type);

  PetscFunctionBegin;
  if (!valuesonly) memset(A->array[BITDENSE_VAL].data, GPUCSR_ABSENT, (size_t)A->stored * size);
  for (int r = 0; r < s->m; r++)
    for (int32_t k = s->i[r]; k < s->i[r + 1]; k++) PetscCall(GPUCSRPut((char *)A->array[BITDENSE_VAL].data + ((size_t)r * (size_t)s->n + (size_t)s->j[k]) * size, type, s->a + k, rounding));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of row r */
#define ROW(V, ENTRY) \
  for (int c = 0; c < A->n; c++) { \
    const V *v = (const V *)A->array[BITDENSE_VAL].data + (size_t)r * (size_t)A->n + (size_t)c; \
\
    if (!GPUCSRIsAbsent(v, sizeof(V))) ENTRY(c, *v); \
  }
#define LOCALS
GPUCSR_REFERENCE_MULT(BitDense, 0, q)
#undef LOCALS
#undef ROW

static PetscErrorCode Diagonal_BitDense(const GPUCSRStorage *A, void *diag)
{
  PetscFunctionBegin;
#define DIAGONAL(V, X) \
  for (int r = 0; r < PetscMin(A->m, A->n); r++) { \
    const V *v = (const V *)A->array[BITDENSE_VAL].data + (size_t)r * (size_t)A->n + (size_t)r; \
\
    ((X *)diag)[r] = GPUCSRIsAbsent(v, sizeof(V)) ? 0 : (X)*v; \
  }
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
#undef DIAGONAL
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUCSRFormatFamily GPUCSRFormat_bitdense = {Applicable_BitDense, GPUCSRStoresAll, NULL, Layout_BitDense, Fill_BitDense, Mult_BitDense, Diagonal_BitDense};

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
GPUCSR_REFERENCE(BitDense, 0, q)
#undef LOCALS
#undef ROW

const GPUCSRFormatFamily GPUCSRFormat_bitdense = {NULL, GPUCSRStoresAll, NULL, Layout_BitDense, Fill_BitDense, Mult_BitDense, Diagonal_BitDense};

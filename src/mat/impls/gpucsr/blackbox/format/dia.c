/*
  Diagonals: every diagonal with an entry is stored whole, with its offset (column - row) once. A slice of 32 rows has its parts of all diagonals together: the entry of row r on diagonal d is at 32 (diagonals (r / 32) + d) + r % 32.

  Two diagonals of opposite offsets are a pair if their mirrored entries have the same bits. In square matrices in double that the last-level cache does not hold, the device looks for pairs at every fill, and dia_row reads the upper diagonal of a pair alone. The host has no pairs.

  Bytes: 4 diagonals + v stored, stored = diagonals m in whole slices, v of one diagonal for each pair: no column is read. Wins on stencils of structured grids and on bands; loses if diagonals are mostly empty. Extent: units are the diagonals. Absent entries are marked (absent.h) and never multiplied, so Inf and NaN in x act as with CSR.

  Paper: N. Bell, M. Garland, Implementing sparse matrix-vector multiplication on throughput-oriented processors, SC 2009; reading a symmetric matrix once: B. Lee, R. Vuduc, J. Demmel, K. Yelick, Performance models for evaluation and automatic tuning of symmetric sparse matrix-vector multiply, ICPP 2004.
*/
#include "absent.h"
#include "reference.h"
#include "dia.h"

static int64_t Stored(int m, int64_t diagonals)
{
  return ((int64_t)m + GPUCSR_SLICE - 1) / GPUCSR_SLICE * GPUCSR_SLICE * diagonals;
}

/* Without a sample of the columns, the worst case that can be stored */
static void Estimate_DIA(const GPUCSRFeatures *f, int variant, GPUCSRExtent *e)
{
  e->units  = f->sampled ? f->diagonals : PetscMin(f->nnz, (int64_t)f->m + f->n);
  e->stored = Stored(f->m, e->units);
  if (!f->sampled) e->stored = PetscMin(e->stored, (int64_t)GPUCSR_MOST_STORED(f));
}

/* seen[column - row + m - 1] of each entry; the caller frees it */
static PetscErrorCode Seen(const GPUCSRSource *s, char **seen)
{
  PetscFunctionBegin;
  PetscCall(PetscCalloc1((size_t)s->m + (size_t)s->n + 1, seen));
  for (int r = 0; r < s->m; r++)
    for (int32_t k = s->i[r]; k < s->i[r + 1]; k++) (*seen)[s->j[k] - r + s->m - 1] = 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Measure_DIA(const GPUCSRSource *s, int variant, GPUCSRExtent *e)
{
  char *seen;

  PetscFunctionBegin;
  PetscCall(Seen(s, &seen));
  for (int64_t k = 0; k < (int64_t)s->m + s->n; k++) e->units += seen[k];
  e->stored = Stored(s->m, e->units);
  PetscCall(PetscFree(seen));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Layout_DIA(const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRStorage *A)
{
  A->stored            = e->stored;
  A->narrays           = 3;
  A->array[DIA_OFFSET] = (GPUCSRArray){"offset", GPUCSR_INT32, PETSC_FALSE, (size_t)e->units, NULL};
  A->array[DIA_VAL]    = (GPUCSRArray){"val", GPUCSRValueType(A->precision), PETSC_TRUE, (size_t)A->stored, NULL};
  A->array[DIA_ORDER]  = (GPUCSRArray){"order", GPUCSR_INT32, PETSC_TRUE, 2 * (size_t)e->units + 2, NULL};
}

static PetscErrorCode Fill_DIA(const GPUCSRSource *s, GPUCSRStorage *A, GPUCSRBool valuesonly, double *rounding)
{
  const GPUCSRType type      = A->array[DIA_VAL].type;
  const size_t     size      = GPUCSRTypeSize(type);
  const int        diagonals = (int)A->extent.units;
  int32_t         *offset    = (int32_t *)A->array[DIA_OFFSET].data;
  GPUCSRDiagonal  *order     = (GPUCSRDiagonal *)A->array[DIA_ORDER].data;

  PetscFunctionBegin;
  if (!valuesonly) {
    char *seen;
    int   d = 0;

    PetscCall(Seen(s, &seen));
    for (int64_t k = 0; k < (int64_t)s->m + s->n; k++)
      if (seen[k]) offset[d++] = (int32_t)(k - s->m + 1);
    PetscCall(PetscFree(seen));
    memset(A->array[DIA_VAL].data, GPUCSR_ABSENT, (size_t)A->stored * size);
  }
  for (int d = 0; d < diagonals; d++) order[d] = (GPUCSRDiagonal){offset[d], -1 - d};
  order[diagonals].offset = diagonals;
  for (int r = 0; r < s->m; r++)
    for (int32_t k = s->i[r]; k < s->i[r + 1]; k++) PetscCall(GPUCSRPut((char *)A->array[DIA_VAL].data + (size_t)DIAEntry(diagonals, r, DIAFind(offset, diagonals, (int)s->j[k] - r)) * size, type, s->a + k, rounding));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of row r */
#define ROW(V, ENTRY) \
  for (int d = 0; d < diagonals; d++) { \
    const V *v = (const V *)A->array[DIA_VAL].data + DIAEntry(diagonals, r, d); \
\
    if (!GPUCSRIsAbsent(v, sizeof(V))) ENTRY(r + offset[d], *v); \
  }
#define LOCALS \
  const int32_t *offset    = (const int32_t *)A->array[DIA_OFFSET].data; \
  const int      diagonals = (int)A->extent.units
GPUCSR_REFERENCE(DIA, 0, q)
#undef LOCALS
#undef ROW

/* Bytes of values that dia_row does not read if all diagonals are in pairs; 0: it reads all */
double GPUCSRPairedBytes(const GPUCSRStorage *A)
{
  const int64_t diagonals = A->extent.units;

  return !strcmp(A->format->family, "dia") && diagonals && DIAPairs(A) ? 8.0 * (double)A->stored / (double)diagonals * (double)(diagonals / 2) : 0;
}

const GPUCSRFormatFamily GPUCSRFormat_dia = {NULL, Estimate_DIA, Measure_DIA, Layout_DIA, Fill_DIA, Mult_DIA, Diagonal_DIA};

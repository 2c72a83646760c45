/*
  Hybrid blocks: blocks of 4 rows by 64 columns, in which each row is padded to a multiple of half a warp (16 entries, a unit). The blocks of a block row go from left to right; each begins at the first column beyond the block before, rounded down to a multiple of 16. Within a block a column is a byte.

  Block row R holds blocks rowptr[R] <= b < rowptr[R + 1]; block b covers columns start[b] to start[b] + 63; its row i has
  units unit[4 b + i] <= u < unit[4 b + i + 1]; unit u has entries 16 u to 16 u + 15.

  Bytes: 4 (block rows + 1) + 20 blocks + 4 + (1 + v) stored. Fewer than CSR's if rows have runs of 16 entries and more (wide bands, dense matrices), and x is read once for four rows; elsewhere padding and the metadata of each block lose. Padding has column 64 and is never multiplied, so Inf and NaN in x act as with CSR.

  Paper: M. M. Baskaran, R. Bordawekar, Optimizing sparse matrix-vector multiplication on GPUs, IBM RC24704, 2009.
*/
#include "block4x64.h"
#include "../reference.h"
#include <stdlib.h>

/* Assumes equally full blocks; without a sample of the columns, one unit for each entry, so that the format is not chosen by chance */
static void Estimate_Block4x64(const GPUCSRFeatures *f, int variant, GPUCSRExtent *e)
{
  const double blocks = f->sampled ? f->blocks[GPUCSRBlockIndex(variant)] : (double)f->nnz, rows = f->sampled ? BLOCK4X64_ROWS * blocks : (double)f->nnz;

  e->units  = (int64_t)blocks;
  e->stored = rows > 0 ? (int64_t)(rows * BLOCK4X64_UNIT) * (int64_t)PetscCeilReal((double)f->nnz / rows / BLOCK4X64_UNIT) : 0;
}

static void Layout_Block4x64(const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRStorage *A)
{
  const size_t rows = ((size_t)f->m + BLOCK4X64_ROWS - 1) / BLOCK4X64_ROWS, blocks = (size_t)e->units;

  A->stored                  = e->stored;
  A->narrays                 = 5;
  A->array[BLOCK4X64_ROWPTR] = (GPUCSRArray){"rowptr", GPUCSR_INT32, PETSC_FALSE, rows + 1, NULL};
  A->array[BLOCK4X64_START]  = (GPUCSRArray){"start", GPUCSR_INT32, PETSC_FALSE, blocks, NULL};
  A->array[BLOCK4X64_UNIT4]  = (GPUCSRArray){"unit", GPUCSR_INT32, PETSC_FALSE, BLOCK4X64_ROWS * blocks + 1, NULL};
  A->array[BLOCK4X64_COL]    = (GPUCSRArray){"col", GPUCSR_INT32, PETSC_FALSE, (size_t)e->stored / 4, NULL}; /* four to an integer */
  A->array[BLOCK4X64_VAL]    = (GPUCSRArray){"val", GPUCSRValueType(A->precision), PETSC_TRUE, (size_t)e->stored, NULL};
}

typedef struct {
  int32_t col, row, entry; /* row of its block row; entry of CSR */
} Place;

static int Compare(const void *a, const void *b)
{
  const int32_t x = ((const Place *)a)->col, y = ((const Place *)b)->col;

  return x < y ? -1 : x > y;
}

/* The entries of block row R by column; returns their number */
static int32_t Places(const GPUCSRSource *s, int R, Place *p)
{
  const int last = PetscMin(s->m, (R + 1) * BLOCK4X64_ROWS);
  int32_t   n    = 0;

  for (int r = R * BLOCK4X64_ROWS; r < last; r++)
    for (int32_t k = s->i[r]; k < s->i[r + 1]; k++) p[n++] = (Place){(int32_t)s->j[k], r % BLOCK4X64_ROWS, k};
  qsort(p, (size_t)n, sizeof(*p), Compare);
  return n;
}

/* The block that begins with the first place: returns the number of its places, and of each row, and its first column */
static int32_t BlockOf(const Place *p, int32_t n, int32_t *start, int32_t count[BLOCK4X64_ROWS])
{
  int32_t q = 0;

  *start = p[0].col / BLOCK4X64_UNIT * BLOCK4X64_UNIT;
  for (int i = 0; i < BLOCK4X64_ROWS; i++) count[i] = 0;
  for (; q < n && p[q].col - *start < BLOCK4X64_COLS; q++) count[p[q].row]++;
  return q;
}

static int32_t Units(int32_t count)
{
  return (count + BLOCK4X64_UNIT - 1) / BLOCK4X64_UNIT;
}

/* The longest block row */
static int32_t Longest(const GPUCSRSource *s)
{
  int32_t n = 0;

  for (int r = 0; r < s->m; r += BLOCK4X64_ROWS) n = PetscMax(n, s->i[PetscMin(s->m, r + BLOCK4X64_ROWS)] - s->i[r]);
  return n;
}

static PetscErrorCode Measure_Block4x64(const GPUCSRSource *s, int variant, GPUCSRExtent *e)
{
  Place  *place;
  int64_t blocks = 0, units = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(Longest(s) + 1, &place));
  for (int R = 0; R * BLOCK4X64_ROWS < s->m; R++) {
    const int32_t n = Places(s, R, place);

    for (int32_t p = 0; p < n; blocks++) {
      int32_t start, count[BLOCK4X64_ROWS];

      p += BlockOf(place + p, n - p, &start, count);
      for (int i = 0; i < BLOCK4X64_ROWS; i++) units += Units(count[i]);
    }
  }
  PetscCall(PetscFree(place));
  e->units  = blocks;
  e->stored = units * BLOCK4X64_UNIT;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fill_Block4x64(const GPUCSRSource *s, GPUCSRStorage *A, GPUCSRBool valuesonly, double *rounding)
{
  int32_t         *rowptr = (int32_t *)A->array[BLOCK4X64_ROWPTR].data, *start = (int32_t *)A->array[BLOCK4X64_START].data, *unit = (int32_t *)A->array[BLOCK4X64_UNIT4].data;
  uint8_t         *col    = (uint8_t *)A->array[BLOCK4X64_COL].data;
  char            *val    = (char *)A->array[BLOCK4X64_VAL].data;
  const GPUCSRType type   = A->array[BLOCK4X64_VAL].type;
  const size_t     size   = GPUCSRTypeSize(type);
  int32_t          blocks = 0, units = 0;
  Place           *place;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(Longest(s) + 1, &place));
  PetscCall(PetscMemzero(val, (size_t)A->stored * size));
  if (!valuesonly)
    for (int64_t k = 0; k < A->stored; k++) col[k] = BLOCK4X64_COLS;
  for (int R = 0; R * BLOCK4X64_ROWS < s->m; R++) {
    const int32_t n = Places(s, R, place);

    if (!valuesonly) rowptr[R] = blocks;
    for (int32_t p = 0, q; p < n; p += q, blocks++) {
      int32_t first, count[BLOCK4X64_ROWS], at[BLOCK4X64_ROWS];

      q = BlockOf(place + p, n - p, &first, count);
      if (!valuesonly) start[blocks] = first;
      for (int i = 0; i < BLOCK4X64_ROWS; i++) {
        if (!valuesonly) unit[BLOCK4X64_ROWS * blocks + i] = units;
        at[i] = BLOCK4X64_UNIT * units;
        units += Units(count[i]);
      }
      for (int32_t k = p; k < p + q; k++) {
        const int32_t e = at[place[k].row]++;

        if (!valuesonly) col[e] = (uint8_t)(place[k].col - first);
        PetscCall(GPUCSRConvert(val + (size_t)e * size, type, s->a + place[k].entry, GPUCSR_DOUBLE, 1, 1, rounding));
      }
    }
  }
  if (!valuesonly) {
    rowptr[A->array[BLOCK4X64_ROWPTR].count - 1] = blocks;
    unit[BLOCK4X64_ROWS * blocks]                = units;
  }
  PetscCall(PetscFree(place));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of row r */
#define ROW(V, ENTRY) \
  for (int32_t b = rowptr[r / BLOCK4X64_ROWS]; b < rowptr[r / BLOCK4X64_ROWS + 1]; b++) { \
    const int32_t *u = unit + BLOCK4X64_ROWS * b + r % BLOCK4X64_ROWS; \
\
    for (int32_t k = BLOCK4X64_UNIT * u[0]; k < BLOCK4X64_UNIT * u[1]; k++) \
      if (col[k] < BLOCK4X64_COLS) { \
        ENTRY(start[b] + col[k], ((const V *)A->array[BLOCK4X64_VAL].data)[k]); \
      } \
  }
#define LOCALS \
  const int32_t *rowptr = (const int32_t *)A->array[BLOCK4X64_ROWPTR].data, *start = (const int32_t *)A->array[BLOCK4X64_START].data, *unit = (const int32_t *)A->array[BLOCK4X64_UNIT4].data; \
  const uint8_t *col = (const uint8_t *)A->array[BLOCK4X64_COL].data
GPUCSR_REFERENCE(Block4x64, 0, q)
#undef LOCALS
#undef ROW

const GPUCSRFormatFamily GPUCSRFormat_block4x64 = {NULL, Estimate_Block4x64, Measure_Block4x64, Layout_Block4x64, Fill_Block4x64, Mult_Block4x64, Diagonal_Block4x64};

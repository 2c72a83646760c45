/*
  Blocked CSR: the matrix is cut into blocks of r by c, r rows form a block row, and a block with any entry is stored whole. Block row R holds blocks rowptr[R] <= b < rowptr[R + 1], in the order of their first entries, row by row; block b begins in column col[b], a multiple of c. The variant is 100 r + c.

  Values are reordered for a warp. The values of 32 consecutive blocks, of any block rows, lie lane by lane: 16 bytes of block 0, of block 1, ... of block 31, then the next 16 bytes of each block. With a thread for each block, loads are wide and coalesced (BCSRPlace()). In 8 by 8 blocks a lane holds one row, and 4 blocks lie together.

  Bytes: 4 (block rows + 1) + 4 blocks + v stored, stored = r c blocks rounded up to 32 lanes. Wins if entries form blocks: a block has one column number and reads its part of x once. Loses if blocks are less than about two thirds full.
  Absent entries of a block are marked (absent.h) and never multiplied, so Inf and NaN in x act as with CSR.

  Papers: J. W. Choi, A. Singh, R. W. Vuduc, Model-driven autotuning of sparse matrix-vector multiply on GPUs, PPoPP 2010; the
  reordering after M. Verschoor, A. C. Jalba, Analysis and performance estimation of the conjugate gradient method on
  multiple GPUs, Parallel Computing 2012.
*/
#include "bcsr.h"
#include "reference.h"
#include "absent.h"

static GPUCSRBool Applicable_BCSR(const GPUCSRFeatures *f, int variant, char why[], size_t len)
{
  if (f->n <= INT32_MAX - GPUCSR_BLOCK_COLS(variant)) return PETSC_TRUE; /* the padding is unknown before measure() */
  (void)snprintf(why, len, "columns of a block past the last of %d would have no number", f->n);
  return PETSC_FALSE;
}

static void Extent(int64_t blocks, int variant, GPUCSRExtent *e)
{
  e->units  = blocks;
  e->stored = BCSRStored(blocks, GPUCSR_BLOCK_ROWS(variant), GPUCSR_BLOCK_COLS(variant));
}

/* Without a sample of the columns, each entry counts as a block, so the format is not chosen by chance */
static void Estimate_BCSR(const GPUCSRFeatures *f, int variant, GPUCSRExtent *e)
{
  Extent(f->sampled ? (int64_t)f->blocks[GPUCSRBlockIndex(variant)] : f->nnz, variant, e);
}

/* The number of the block of column j in block row R; a new number, from *next on, for a new block */
static int32_t Block(int32_t j, int c, int R, int32_t last[], int32_t number[], int32_t *next)
{
  const int32_t q = j / c;

  if (last[q] != R) {
    last[q]   = R;
    number[q] = (*next)++;
  }
  return number[q];
}

/* Calls BODY for each entry k of row r, in block b of block row R; `first` for the block's first entry */
#define ForEntries(s, variant, BODY) \
  do { \
    const int br = GPUCSR_BLOCK_ROWS(variant), bc = GPUCSR_BLOCK_COLS(variant), columns = ((s)->n + bc - 1) / bc; \
    int32_t  *last, *number, next                                                       = 0; \
\
    PetscCall(PetscMalloc2(columns + 1, &last, columns + 1, &number)); \
    for (int q = 0; q < columns; q++) last[q] = -1; \
    for (int r = 0; r < (s)->m; r++) { \
      for (int32_t k = (s)->i[r]; k < (s)->i[r + 1]; k++) { \
        const int32_t before = next, b = Block((int32_t)(s)->j[k], bc, r / br, last, number, &next), first = next > before; \
\
        BODY \
      } \
    } \
    PetscCall(PetscFree2(last, number)); \
  } while (0)

static PetscErrorCode Measure_BCSR(const GPUCSRSource *s, int variant, GPUCSRExtent *e)
{
  int64_t blocks = 0;

  PetscFunctionBegin;
  ForEntries(s, variant, {
    (void)b;
    blocks += first;
  });
  Extent(blocks, variant, e);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Layout_BCSR(const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRStorage *A)
{
  const int64_t r = GPUCSR_BLOCK_ROWS(A->format->variant);

  A->stored             = e->stored;
  A->narrays            = 3;
  A->array[BCSR_ROWPTR] = (GPUCSRArray){"rowptr", GPUCSR_INT32, PETSC_FALSE, (size_t)((f->m + r - 1) / r) + 1, NULL};
  A->array[BCSR_COL]    = (GPUCSRArray){"col", GPUCSR_INT32, PETSC_FALSE, (size_t)e->units, NULL};
  A->array[BCSR_VAL]    = (GPUCSRArray){"val", GPUCSRValueType(A->precision), PETSC_TRUE, (size_t)e->stored, NULL};
}

static PetscErrorCode Fill_BCSR(const GPUCSRSource *s, GPUCSRStorage *A, GPUCSRBool valuesonly, double *rounding)
{
  int32_t         *rowptr = (int32_t *)A->array[BCSR_ROWPTR].data, *col = (int32_t *)A->array[BCSR_COL].data;
  char            *val  = (char *)A->array[BCSR_VAL].data;
  const GPUCSRType type = A->array[BCSR_VAL].type;
  const size_t     size = GPUCSRTypeSize(type);

  PetscFunctionBegin;
  memset(val, GPUCSR_ABSENT, (size_t)A->stored * size);
  if (!valuesonly) PetscCall(PetscArrayzero(rowptr, A->array[BCSR_ROWPTR].count));
  ForEntries(s, A->format->variant, {
    void *v = val + (size_t)BCSREntry(b, r % br, (int)(s->j[k] % bc), br, bc, (int)size) * size;

    if (first && !valuesonly) {
      col[b]             = (int32_t)(s->j[k] / bc) * bc;
      rowptr[r / br + 1] = b + 1;
    }
    PetscCall(GPUCSRPut(v, type, s->a + k, rounding));
  });
  if (!valuesonly) /* an empty block row begins at the end of the last one */
    for (size_t R = 1; R < A->array[BCSR_ROWPTR].count; R++) rowptr[R] = PetscMax(rowptr[R], rowptr[R - 1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of row r */
#define ROW(V, ENTRY) \
  for (int32_t b = rowptr[r / br]; b < rowptr[r / br + 1]; b++) { \
    for (int j = 0; j < bc; j++) { \
      const V *v = (const V *)A->array[BCSR_VAL].data + BCSREntry(b, r % br, j, br, bc, (int)sizeof(V)); \
\
      if (!GPUCSRIsAbsent(v, sizeof(V))) ENTRY(col[b] + j, *v); \
    } \
  }
#define LOCALS \
  const int32_t *rowptr = (const int32_t *)A->array[BCSR_ROWPTR].data, *col = (const int32_t *)A->array[BCSR_COL].data; \
  const int      br = GPUCSR_BLOCK_ROWS(A->format->variant), bc = GPUCSR_BLOCK_COLS(A->format->variant)
GPUCSR_REFERENCE(BCSR, 0, q)
#undef LOCALS
#undef ROW

#define FAMILY \
  { \
    Applicable_BCSR, Estimate_BCSR, Measure_BCSR, Layout_BCSR, Fill_BCSR, Mult_BCSR, Diagonal_BCSR \
  }

/* Blocks that are not square are a family of their own, with the kernels of GOSpMV alone */
const GPUCSRFormatFamily GPUCSRFormat_bcsr = FAMILY, GPUCSRFormat_oblong = FAMILY;

/*
  Jagged diagonals: rows sorted by falling length; the first entries of all rows, then the second entries of rows that have two, and so on. Entry k of the row at place q is at start[k] + q.

  Bytes: 4 (longest + 1) + 4 (m + 1) + 4 m + (4 + v) nnz: nothing is padded. Neighbouring threads, with one row each, read neighbouring entries for any lengths; but loads are not aligned, results are scattered, and one thread computes a long row. Extent:
  units are the diagonals.

  Paper: Y. Saad, Krylov subspace methods on supercomputers, SIAM J. Sci. Stat. Comput. 10, 1989; on GPUs R. Li, Y. Saad,
  GPU-accelerated preconditioned iterative linear solvers, J. Supercomputing 63, 2013.
*/
#include "jad.h"
#include "../reference.h"

static void Estimate_JAD(const GPUCSRFeatures *f, int variant, GPUCSRExtent *e)
{
  e->stored = f->nnz;
  e->units  = f->max;
  e->window = GPUCSR_ALL_ROWS;
}

static void Layout_JAD(const GPUCSRFeatures *f, const GPUCSRExtent *e, GPUCSRStorage *A)
{
  A->stored            = e->stored;
  A->narrays           = 5;
  A->array[JAD_START]  = (GPUCSRArray){"start", GPUCSR_INT32, PETSC_FALSE, (size_t)e->units + 1, NULL};
  A->array[JAD_ROWPTR] = (GPUCSRArray){"rowptr", GPUCSR_INT32, PETSC_FALSE, (size_t)f->m + 1, NULL};
  A->array[JAD_PERM]   = (GPUCSRArray){"perm", GPUCSR_INT32, PETSC_FALSE, (size_t)f->m, NULL};
  A->array[JAD_COL]    = (GPUCSRArray){"col", GPUCSR_INT32, PETSC_FALSE, (size_t)A->stored, NULL};
  A->array[JAD_VAL]    = (GPUCSRArray){"val", GPUCSRValueType(A->precision), PETSC_TRUE, (size_t)A->stored, NULL};
}

static PetscErrorCode Fill_JAD(const GPUCSRSource *s, GPUCSRStorage *A, GPUCSRBool valuesonly, double *rounding)
{
  int32_t         *start = (int32_t *)A->array[JAD_START].data, *rowptr = (int32_t *)A->array[JAD_ROWPTR].data, *perm = (int32_t *)A->array[JAD_PERM].data, *col = (int32_t *)A->array[JAD_COL].data;
  const GPUCSRType type = A->array[JAD_VAL].type;

  PetscFunctionBegin;
  if (!valuesonly) {
    PetscCall(PetscArraycpy(rowptr, s->i, s->m + 1));
    PetscCall(GPUCSRSortRows(s->m, s->n, s->i, GPUCSR_ALL_ROWS, perm));
    start[0] = 0;
    for (int64_t k = 0, rows = s->m; k < A->extent.units; k++) { /* fewer and fewer rows reach diagonal k */
      while (rows && s->i[perm[rows - 1] + 1] - s->i[perm[rows - 1]] <= k) rows--;
      start[k + 1] = start[k] + (int32_t)rows;
    }
  }
  for (int q = 0; q < s->m; q++) {
    const int begin = s->i[perm[q]], length = s->i[perm[q] + 1] - begin;

    for (int k = 0; k < length; k++) {
      const size_t to = (size_t)start[k] + (size_t)q;

      if (!valuesonly) col[to] = (int32_t)s->j[begin + k];
      PetscCall(GPUCSRConvert((char *)A->array[JAD_VAL].data + to * GPUCSRTypeSize(type), type, s->a + begin + k, GPUCSR_DOUBLE, 1, 1, rounding));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The entries of row r, the q-th in the order of the format */
#define ROW(V, ENTRY) \
  for (int k = 0; k < rowptr[r + 1] - rowptr[r]; k++) ENTRY(col[start[k] + q], ((const V *)A->array[JAD_VAL].data)[start[k] + q])
#define LOCALS const int32_t *start = (const int32_t *)A->array[JAD_START].data, *rowptr = (const int32_t *)A->array[JAD_ROWPTR].data, *perm = (const int32_t *)A->array[JAD_PERM].data, *col = (const int32_t *)A->array[JAD_COL].data
GPUCSR_REFERENCE(JAD, 1, perm[q])
#undef LOCALS
#undef ROW

const GPUCSRFormatFamily GPUCSRFormat_jad = {NULL, Estimate_JAD, NULL, Layout_JAD, Fill_JAD, Mult_JAD, Diagonal_JAD};

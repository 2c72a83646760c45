/* Sparse products on the host: the twin of each kernel */
#include "rows.h"

GPUCSR_SPGEMM_STEPS(GPUCSR_EACH)

/* Counts the columns of row r of A B not yet in mark[], and writes them to `to` unless NULL */
static int Gather(GPUCSRCSR a, GPUCSRCSR b, int r, int32_t *mark, int32_t *to)
{
  int n = 0;

  for (int32_t k = a.i[r]; k < a.i[r + 1]; k++) {
    for (int32_t q = b.i[a.j[k]]; q < b.i[a.j[k] + 1]; q++) {
      if (mark[b.j[q]] == r) continue;
      mark[b.j[q]] = r;
      if (to) to[n] = b.j[q];
      n++;
    }
  }
  return n;
}

static PetscErrorCode Marks(int n, int32_t **mark)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc1((size_t)n, mark));
  for (int c = 0; c < n; c++) (*mark)[c] = -1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Count_Host(const GPUCSRStorage *A, const GPUCSRStorage *B, const GPUCSRRowClasses *c, int32_t *length)
{
  int32_t *mark;

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(A->dev->stream));
  PetscCall(Marks(B->n, &mark));
  for (int k = c->first[1]; k < c->first[GPUCSR_ROW_CLASSES]; k++) length[c->rows[k]] = Gather(GPUCSRCSROf(A), GPUCSRCSROf(B), c->rows[k], mark, NULL);
  PetscCall(PetscFree(mark));
  PetscCall(GPUCSRLaunched(A->dev, "spgemm (count)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Shape_Host(int m, const int32_t *length, int32_t *rowptr, int64_t *nnz, GPUCSRRowClasses *c, GPUCSRDevice dev)
{
  int     at[GPUCSR_ROW_CLASSES] = {0}, longest = 0;
  int64_t sum = 0;

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(dev->stream));
  if (rowptr) rowptr[0] = 0;
  for (int r = 0; r < m; r++) {
    sum += length[r];
    if (rowptr) rowptr[r + 1] = (int32_t)PetscMin(sum, INT32_MAX);
    at[GPUCSRRowClass(length[r])]++;
    longest = PetscMax(longest, length[r]);
  }
  if (nnz) *nnz = sum;
  if (c) {
    c->longest  = longest;
    c->first[0] = 0;
    for (int k = 0; k < GPUCSR_ROW_CLASSES; k++) {
      c->first[k + 1] = c->first[k] + at[k];
      at[k]           = c->first[k];
    }
    for (int r = 0; r < m; r++) c->rows[at[GPUCSRRowClass(length[r])]++] = r;
  }
  PetscCall(GPUCSRLaunched(dev, "spgemm (shape)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int Ascending(const void *a, const void *b)
{
  const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

  return (x > y) - (x < y);
}

static PetscErrorCode Fill_Host(const GPUCSRStorage *A, const GPUCSRStorage *B, const GPUCSRRowClasses *c, GPUCSRStorage *C)
{
  const GPUCSRCSR R = GPUCSRCSROf(C);
  int32_t        *mark;

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(A->dev->stream));
  PetscCall(Marks(B->n, &mark));
  for (int k = c->first[1]; k < c->first[GPUCSR_ROW_CLASSES]; k++) {
    const int r = c->rows[k], n = Gather(GPUCSRCSROf(A), GPUCSRCSROf(B), r, mark, R.j + R.i[r]);

    qsort(R.j + R.i[r], (size_t)n, sizeof(*R.j), Ascending);
  }
  PetscCall(PetscFree(mark));
  PetscCall(GPUCSRLaunched(A->dev, "spgemm (fill)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Numeric_Host(const GPUCSRStorage *A, const GPUCSRStorage *B, const GPUCSRRowClasses *classes, GPUCSRStorage *C, GPUCSRBool *lost)
{
  const GPUCSRCSR a = GPUCSRCSROf(A), b = GPUCSRCSROf(B), c = GPUCSRCSROf(C);
  GPUCSRBool      gone = PETSC_FALSE;
  int32_t        *at; /* place in C of a column of the row, if C has it */

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(A->dev->stream));
  PetscCall(Marks(B->n, &at));
  for (int k = 0; k < C->m; k++) {
    const int r = classes->rows[k];

    for (int32_t p = c.i[r]; p < c.i[r + 1]; p++) {
      at[c.j[p]] = p;
      c.a[p]     = 0;
    }
    for (int32_t s = a.i[r]; s < a.i[r + 1]; s++) {
      for (int32_t q = b.i[a.j[s]]; q < b.i[a.j[s] + 1]; q++) {
        const int32_t p = at[b.j[q]];

        if (p < c.i[r] || p >= c.i[r + 1]) gone = PETSC_TRUE;
        else c.a[p] += a.a[s] * b.a[q];
      }
    }
  }
  PetscCall(PetscFree(at));
  if (lost) *lost = gone;
  PetscCall(GPUCSRLaunched(A->dev, "spgemm (numeric)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUCSRSpGEMMOps GPUCSRSpGEMM_host = {GPUCSR_SPGEMM_STEPS(GPUCSR_EACH_ENTRY) Count_Host, Shape_Host, Fill_Host, Numeric_Host};

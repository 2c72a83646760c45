/* Sparse products on the host: the twin of each kernel */
#include "spgemm.h"

typedef struct {
  const int32_t *i, *j;
  const double  *a;
} Rows;

static Rows RowsOf(const GPUCSRStorage *A)
{
  const Rows R = {(const int32_t *)A->array[CSR_ROWPTR].data, (const int32_t *)A->array[CSR_COL].data, (const double *)A->array[CSR_VAL].data};

  return R;
}

static PetscErrorCode Bound_Host(const GPUCSRStorage *A, const GPUCSRStorage *B, int32_t *length)
{
  const Rows a = RowsOf(A), b = RowsOf(B);

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(A->dev->stream));
  for (int r = 0; r < A->m; r++) {
    int64_t sum = 0;

    for (int32_t k = a.i[r]; k < a.i[r + 1]; k++) sum += b.i[a.j[k] + 1] - b.i[a.j[k]];
    length[r] = (int32_t)PetscMin(sum, (int64_t)B->n);
  }
  PetscCall(GPUCSRLaunched(A->dev, "spgemm (bound)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Classify_Host(int m, const int32_t *length, GPUCSRRowClasses *c, GPUCSRDevice dev)
{
  int at[GPUCSR_ROW_CLASSES] = {0};

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(dev->stream));
  c->longest  = 0;
  c->first[0] = 0;
  for (int r = 0; r < m; r++) {
    at[GPUCSRRowClass(length[r])]++;
    c->longest = PetscMax(c->longest, length[r]);
  }
  for (int k = 0; k < GPUCSR_ROW_CLASSES; k++) {
    c->first[k + 1] = c->first[k] + at[k];
    at[k]           = c->first[k];
  }
  for (int r = 0; r < m; r++) c->rows[at[GPUCSRRowClass(length[r])]++] = r;
  PetscCall(GPUCSRLaunched(dev, "spgemm (classify)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Counts the columns of row r of A B not yet in mark[], and writes them to `to` unless NULL */
static int Gather(Rows a, Rows b, int r, int32_t *mark, int32_t *to)
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
  for (int k = c->first[1]; k < c->first[GPUCSR_ROW_CLASSES]; k++) length[c->rows[k]] = Gather(RowsOf(A), RowsOf(B), c->rows[k], mark, NULL);
  PetscCall(PetscFree(mark));
  PetscCall(GPUCSRLaunched(A->dev, "spgemm (count)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Scan_Host(int m, const int32_t *length, int32_t *rowptr, int64_t *nnz, GPUCSRDevice dev)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(dev->stream));
  *nnz      = 0;
  rowptr[0] = 0;
  for (int r = 0; r < m; r++) {
    *nnz += length[r];
    rowptr[r + 1] = (int32_t)PetscMin(*nnz, INT32_MAX);
  }
  PetscCall(GPUCSRLaunched(dev, "spgemm (scan)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Shape_Host(int m, const int32_t *length, int32_t *rowptr, int64_t *nnz, GPUCSRRowClasses *c, GPUCSRDevice dev)
{
  PetscFunctionBegin;
  PetscCall(Scan_Host(m, length, rowptr, nnz, dev));
  PetscCall(Classify_Host(m, length, c, dev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int Ascending(const void *a, const void *b)
{
  const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

  return (x > y) - (x < y);
}

static PetscErrorCode Fill_Host(const GPUCSRStorage *A, const GPUCSRStorage *B, const GPUCSRRowClasses *c, GPUCSRStorage *C)
{
  const int32_t *i = (const int32_t *)C->array[CSR_ROWPTR].data;
  int32_t       *j = (int32_t *)C->array[CSR_COL].data, *mark;

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(A->dev->stream));
  PetscCall(Marks(B->n, &mark));
  for (int k = c->first[1]; k < c->first[GPUCSR_ROW_CLASSES]; k++) {
    const int r = c->rows[k], n = Gather(RowsOf(A), RowsOf(B), r, mark, j + i[r]);

    qsort(j + i[r], (size_t)n, sizeof(*j), Ascending);
  }
  PetscCall(PetscFree(mark));
  PetscCall(GPUCSRLaunched(A->dev, "spgemm (fill)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Numeric_Host(const GPUCSRStorage *A, const GPUCSRStorage *B, const GPUCSRRowClasses *classes, GPUCSRStorage *C, GPUCSRBool *lost)
{
  const Rows a = RowsOf(A), b = RowsOf(B), c = RowsOf(C);
  double    *to   = (double *)C->array[CSR_VAL].data;
  GPUCSRBool gone = PETSC_FALSE;
  int32_t   *at; /* place in C of a column of the row, if C has it */

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(A->dev->stream));
  PetscCall(Marks(B->n, &at));
  for (int k = 0; k < C->m; k++) {
    const int r = classes->rows[k];

    for (int32_t p = c.i[r]; p < c.i[r + 1]; p++) {
      at[c.j[p]] = p;
      to[p]      = 0;
    }
    for (int32_t s = a.i[r]; s < a.i[r + 1]; s++) {
      for (int32_t q = b.i[a.j[s]]; q < b.i[a.j[s] + 1]; q++) {
        const int32_t p = at[b.j[q]];

        if (p < c.i[r] || p >= c.i[r + 1]) gone = PETSC_TRUE;
        else to[p] += a.a[s] * b.a[q];
      }
    }
  }
  PetscCall(PetscFree(at));
  if (lost) *lost = gone;
  PetscCall(GPUCSRLaunched(A->dev, "spgemm (numeric)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Beside_Host(const GPUCSRStorage *A, const GPUCSRStorage *T, GPUCSRStorage *K)
{
  const Rows part[2] = {RowsOf(A), RowsOf(T)};
  int32_t   *i = (int32_t *)K->array[CSR_ROWPTR].data, *j = (int32_t *)K->array[CSR_COL].data, to = 0;
  double    *a = (double *)K->array[CSR_VAL].data;

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(A->dev->stream));
  i[0] = 0;
  for (int r = 0; r < A->m; r++) {
    for (int p = 0; p < 2; p++) {
      for (int32_t k = part[p].i[r]; k < part[p].i[r + 1]; k++, to++) {
        j[to] = part[p].j[k] + p * A->n;
        a[to] = part[p].a[k];
      }
    }
    i[r + 1] = to;
  }
  PetscCall(GPUCSRLaunched(A->dev, "spgemm (beside)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AXPY_Host(double f, const GPUCSRStorage *X, GPUCSRStorage *Y, GPUCSRBool *lost)
{
  const Rows x = RowsOf(X), y = RowsOf(Y);
  double    *to = (double *)Y->array[CSR_VAL].data;
  int32_t   *at; /* place in Y of a column of the row, if Y has it */

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(Y->dev->stream));
  *lost = PETSC_FALSE;
  PetscCall(Marks(Y->n, &at));
  for (int r = 0; r < Y->m; r++) {
    for (int32_t p = y.i[r]; p < y.i[r + 1]; p++) at[y.j[p]] = p;
    for (int32_t q = x.i[r]; q < x.i[r + 1]; q++) {
      const int32_t p = at[x.j[q]];

      if (p < y.i[r] || p >= y.i[r + 1]) *lost = PETSC_TRUE;
      else to[p] += f * x.a[q];
    }
  }
  PetscCall(PetscFree(at));
  PetscCall(GPUCSRLaunched(Y->dev, "spgemm (axpy)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUCSRSpGEMMOps GPUCSRSpGEMM_host = {Bound_Host, Classify_Host, Count_Host, Scan_Host, Shape_Host, Fill_Host, Numeric_Host, Beside_Host, AXPY_Host, GPUCSRRenumber_Host, GPUCSRLengths_Host, GPUCSRPart_Host};

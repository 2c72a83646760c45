/* The host's twins of inplace.cu */
#include "inplace.h"
#include <math.h>

typedef struct {
  const int32_t *i, *j;
  double        *a;
} Rows;

static Rows RowsOf(const GPUCSRStorage *A)
{
  return (Rows){(const int32_t *)A->array[CSR_ROWPTR].data, (const int32_t *)A->array[CSR_COL].data, (double *)A->array[CSR_VAL].data};
}

/* The loop of a function that returns after it */
#define LOOP(A, name, ...) \
  do { \
    PetscCall(GPUCSRWaitStreamOnHost((A)->dev->stream)); \
    __VA_ARGS__ \
    PetscCall(GPUCSRLaunched((A)->dev, "assemble (" name ")")); \
  } while (0)

PetscErrorCode GPUCSRScale_Host(double f, GPUCSRStorage *A)
{
  double *a = RowsOf(A).a;

  PetscFunctionBegin;
  LOOP(A, "scale", for (int64_t k = 0; k < A->nnz; k++) a[k] *= f;);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRDiagonalScale_Host(const double *l, const double *r, GPUCSRStorage *A)
{
  const Rows x = RowsOf(A);

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(A->dev->stream));
  for (int row = 0; row < A->m; row++) {
    for (int32_t k = x.i[row]; k < x.i[row + 1]; k++) {
      if (l) x.a[k] *= l[row];
      if (r) x.a[k] *= r[x.j[k]];
    }
  }
  PetscCall(GPUCSRLaunched(A->dev, "assemble (diagonal scale)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Place of entry (row, column), -1: there is none */
static int64_t Place(Rows x, int row, int column)
{
  for (int32_t k = x.i[row]; k < x.i[row + 1]; k++)
    if (x.j[k] == column) return k;
  return -1;
}

PetscErrorCode GPUCSRMissing_Host(const GPUCSRStorage *A, GPUCSRBool *missing)
{
  PetscFunctionBegin;
  *missing = PETSC_FALSE;
  LOOP(A, "missing", for (int r = 0; r < GPUCSRMin(A->m, A->n); r++) if (Place(RowsOf(A), r, r) < 0) *missing = PETSC_TRUE;);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRDiagonal_Host(const double *d, double s, GPUCSRBool add, GPUCSRStorage *A)
{
  const Rows x = RowsOf(A);

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(A->dev->stream));
  for (int r = 0; r < GPUCSRMin(A->m, A->n); r++) {
    const int64_t k = Place(x, r, r);

    if (k >= 0) x.a[k] = (add ? x.a[k] : 0) + (d ? d[r] : s);
  }
  PetscCall(GPUCSRLaunched(A->dev, "assemble (diagonal)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRAdd_Host(double f, const GPUCSRStorage *X, GPUCSRStorage *Y)
{
  const double *x = RowsOf(X).a;
  double       *y = RowsOf(Y).a;

  PetscFunctionBegin;
  LOOP(Y, "add", for (int64_t k = 0; k < Y->nnz; k++) y[k] += f * x[k];);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRZeroRows_Host(int n, const int32_t *row, double d, GPUCSRStorage *A)
{
  const Rows x = RowsOf(A);

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(A->dev->stream));
  for (int q = 0; q < n; q++)
    for (int32_t k = x.i[row[q]]; k < x.i[row[q] + 1]; k++) x.a[k] = x.j[k] == row[q] ? d : 0;
  PetscCall(GPUCSRLaunched(A->dev, "assemble (zero rows)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRZeroRowsColumns_Host(const int32_t *row, double d, const double *x, double *b, GPUCSRStorage *A)
{
  const Rows a = RowsOf(A);

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(A->dev->stream));
  for (int r = 0; r < A->m; r++) {
    double t = 0;

    for (int32_t k = a.i[r]; k < a.i[r + 1]; k++) {
      const int32_t c = a.j[k];

      if (row[r]) a.a[k] = c == r ? d : 0;
      else if (c < A->m && row[c]) {
        if (x) t += a.a[k] * x[c];
        a.a[k] = 0;
      }
    }
    if (x && row[r] && r < A->n) b[r] = d * x[r];
    else if (x && !row[r]) b[r] -= t;
  }
  PetscCall(GPUCSRLaunched(A->dev, "assemble (zero rows and columns)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRRowMaxAbs_Host(const GPUCSRStorage *A, double *v, int32_t *column)
{
  const Rows x = RowsOf(A);

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(A->dev->stream));
  for (int r = 0; r < A->m; r++) {
    v[r] = 0;
    for (int32_t k = x.i[r]; k < x.i[r + 1]; k++) {
      if (!(fabs(x.a[k]) > v[r])) continue;
      v[r] = fabs(x.a[k]);
      if (column) column[r] = x.j[k];
    }
  }
  PetscCall(GPUCSRLaunched(A->dev, "assemble (row maxima)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRNorm_Host(const GPUCSRStorage *A, GPUCSRNormKind kind, double *norm)
{
  const Rows x = RowsOf(A);

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(A->dev->stream));
  *norm = 0;
  for (int r = 0; r < A->m; r++) {
    double t = 0;

    for (int32_t k = x.i[r]; k < x.i[r + 1]; k++) t += kind == GPUCSR_SUM_OF_SQUARES ? x.a[k] * x.a[k] : fabs(x.a[k]);
    if (kind == GPUCSR_SUM_OF_SQUARES) *norm += t;
    else if (t > *norm) *norm = t;
  }
  PetscCall(GPUCSRLaunched(A->dev, "assemble (norm)"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Reads PETSc's factors. LU (MATSEQAIJ) stores the rows of L from the first to the last, then the rows of U from the last to the first, each with its inverse diagonal at the end. Cholesky
  (MATSEQSBAIJ of block size 1) stores the rows of U, negated and divided by the diagonal, each with its inverse diagonal at the end.
*/
#include "factorimpl.h"

static PetscErrorCode Allocate(GPUCSRFactorArrays *c, PetscInt n, int64_t nnz, PetscBool values)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc4(n + 1, &c->i, (size_t)nnz, &c->j, values ? (size_t)nnz : 0, &c->a, values ? n : 0, &c->dinv));
  PetscCall(PetscArrayzero(c->i, n + 1));
  c->nnz = nnz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FromLU(PetscInt n, PetscInt most, const PetscInt fi[], const PetscInt fj[], const PetscScalar fa[], GPUCSRFactorArrays *c)
{
  PetscInt *end, at = fi[n];
  PetscBool known = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(n, &end));
  for (PetscInt r = n; r-- > 0 && known;) {
    while (at < most && fj[at] > r) at++;
    known  = (PetscBool)(at < most && fj[at] == r);
    end[r] = at++;
  }
  if (known && at < INT32_MAX - 1024) {
    const PetscErrorCode ierr = Allocate(c, n, at, (PetscBool)(fa != NULL));

    if (ierr) PetscCall(PetscFree(end));
    PetscCall(ierr);
    for (PetscInt r = 0, k = 0; r < n; r++) {
      const PetscInt begin = r + 1 < n ? end[r + 1] + 1 : fi[n];

      for (PetscInt e = fi[r]; e < fi[r + 1]; e++, k++) {
        c->j[k] = (int)fj[e];
        if (fa) c->a[k] = (double)PetscRealPart(fa[e]);
      }
      c->j[k] = (int)r;
      if (fa) c->a[k] = c->dinv[r] = (double)PetscRealPart(fa[end[r]]);
      k++;
      for (PetscInt e = begin; e < end[r]; e++, k++) {
        c->j[k] = (int)fj[e];
        if (fa) c->a[k] = (double)PetscRealPart(fa[e]);
      }
      c->i[r + 1] = (int)k;
    }
  }
  PetscCall(PetscFree(end));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FromCholesky(PetscInt n, const PetscInt ui[], const PetscInt uj[], const PetscScalar ua[], GPUCSRFactorArrays *c)
{
  const int64_t nnz   = 2 * (int64_t)ui[n] - n;
  PetscBool     known = PETSC_TRUE;
  int          *next;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < n && known; r++) known = (PetscBool)(ui[r + 1] > ui[r] && uj[ui[r + 1] - 1] == r);
  if (!known || nnz > INT32_MAX - 1024) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Allocate(c, n, nnz, (PetscBool)(ua != NULL)));
  for (PetscInt r = 0; r < n; r++) {
    c->i[r + 1] += (int)(ui[r + 1] - ui[r]);
    for (PetscInt e = ui[r]; e < ui[r + 1] - 1; e++) c->i[uj[e] + 1]++;
  }
  for (PetscInt r = 0; r < n; r++) c->i[r + 1] += c->i[r];
  PetscCall(PetscMalloc1(n, &next)); /* place of the next entry left of the diagonal, later right of the diagonal */
  PetscCall(PetscArraycpy(next, c->i, n));
  for (PetscInt r = 0; r < n; r++) {
    const PetscInt last = ui[r + 1] - 1;

    c->j[next[r]] = (int)r; /* entries left of the diagonal come from rows above, so they are complete */
    if (ua) c->a[next[r]] = c->dinv[r] = (double)PetscRealPart(ua[last]);
    for (PetscInt e = ui[r]; e < last; e++) {
      const int right = next[r] + 1 + (int)(e - ui[r]), left = next[uj[e]]++;

      c->j[right] = (int)uj[e];
      c->j[left]  = (int)r;
      if (ua) c->a[right] = c->a[left] = -(double)PetscRealPart(ua[e]);
    }
  }
  PetscCall(PetscFree(next));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The factor as one matrix, or its pattern alone. c->i NULL: the storage is of another form. The caller frees the arrays (PetscFree4) */
PetscErrorCode MatGPUCSRFactorFromPETSc_Private(Mat F, PetscBool symmetric, PetscBool values, GPUCSRFactorArrays *c)
{
  const PetscInt *fi, *fj;
  PetscScalar    *fa = NULL;
  MatInfo         info;
  PetscInt        n;
  PetscBool       known;

  PetscFunctionBegin;
  *c = (GPUCSRFactorArrays){0};
  if (symmetric) {
    PetscCall(MatGetRowIJ(F, 0, PETSC_FALSE, PETSC_FALSE, &n, &fi, &fj, &known));
    if (!known) PetscFunctionReturn(PETSC_SUCCESS);
    if (values) PetscCall(MatSeqSBAIJGetArray(F, &fa));
    PetscCall(FromCholesky(n, fi, fj, fa, c));
    if (values) PetscCall(MatSeqSBAIJRestoreArray(F, &fa));
    PetscCall(MatRestoreRowIJ(F, 0, PETSC_FALSE, PETSC_FALSE, &n, &fi, &fj, &known));
  } else {
    PetscCall(MatSeqAIJGetCSRAndMemType(F, &fi, &fj, &fa, NULL));
    PetscCall(MatGetInfo(F, MAT_LOCAL, &info));
    PetscCall(FromLU(F->rmap->n, (PetscInt)info.nz_used, fi, fj, values ? fa : NULL, c));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

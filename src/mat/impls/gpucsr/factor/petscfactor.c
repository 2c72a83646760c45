/*
  Reads PETSc's factors. LU (MATSEQAIJ) stores the rows of L from the first to the last, then those of U from the last to the first, each with its inverse diagonal at the end. Cholesky
  (MATSEQSBAIJ of block size 1) stores the rows of U, negated and divided by the diagonal, each with its inverse diagonal at the end.
*/
#include "factorimpl.h"

typedef struct {
  int     *i, *j;
  double  *a, *dinv;
  PetscInt n;
} Combined;

/* Allocates all arrays, or none */
static PetscErrorCode Allocate(Combined *c, PetscInt n, int64_t nnz, PetscBool values)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  c->n = n;
  c->i = c->j = NULL;
  c->a = c->dinv = NULL;
  ierr           = PetscCalloc1(n + 1, &c->i);
  if (!ierr) ierr = PetscMalloc1((size_t)nnz, &c->j);
  if (!ierr && values) ierr = PetscMalloc1((size_t)nnz, &c->a);
  if (!ierr && values) ierr = PetscMalloc1(n, &c->dinv);
  if (ierr) {
    PetscCall(PetscFree(c->i));
    PetscCall(PetscFree(c->j));
    PetscCall(PetscFree(c->a));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FromLU(PetscInt n, PetscInt most, const PetscInt fi[], const PetscInt fj[], const PetscScalar fa[], PetscBool *known, int64_t *nnz, Combined *c)
{
  PetscInt *end, at = fi[n];

  PetscFunctionBegin;
  *known = PETSC_TRUE;
  PetscCall(PetscMalloc1(n, &end));
  for (PetscInt r = n; r-- > 0;) {
    while (at < most && fj[at] > r) at++;
    *known = (PetscBool)(at < most && fj[at] == r);
    if (!*known) break;
    end[r] = at++;
  }
  *nnz = at;
  if (*known && at < INT32_MAX - 1024) {
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

static PetscErrorCode FromCholesky(PetscInt n, const PetscInt ui[], const PetscInt uj[], const PetscScalar ua[], PetscBool *known, int64_t *nnz, Combined *c)
{
  int *next;

  PetscFunctionBegin;
  *known = PETSC_TRUE;
  *nnz   = 2 * (int64_t)ui[n] - n;
  for (PetscInt r = 0; r < n && *known; r++) *known = (PetscBool)(ui[r + 1] > ui[r] && uj[ui[r + 1] - 1] == r);
  if (!*known || *nnz > INT32_MAX - 1024) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Allocate(c, n, *nnz, (PetscBool)(ua != NULL)));
  for (PetscInt r = 0; r < n; r++) {
    c->i[r + 1] += (int)(ui[r + 1] - ui[r]);
    for (PetscInt e = ui[r]; e < ui[r + 1] - 1; e++) c->i[uj[e] + 1]++;
  }
  for (PetscInt r = 0; r < n; r++) c->i[r + 1] += c->i[r];
  PetscCall(PetscMalloc1(n, &next)); /* place of the next entry left of the diagonal, later of the next one right of it */
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

/* The factor as one matrix; a NULL: its pattern only. known: the storage is in one of these two forms. The caller frees the arrays (PetscFree) */
PetscErrorCode MatGPUCSRFactorFromPETSc_Private(Mat F, PetscBool symmetric, PetscBool *known, int64_t *nnz, int **i, int **j, double **a, double **dinv)
{
  const PetscInt *fi, *fj;
  PetscScalar    *fa = NULL;
  MatInfo         info;
  PetscInt        n;
  Combined        c = {NULL, NULL, NULL, NULL, 0};

  PetscFunctionBegin;
  *i = *j = NULL;
  if (symmetric) {
    PetscCall(MatGetRowIJ(F, 0, PETSC_FALSE, PETSC_FALSE, &n, &fi, &fj, known));
    if (!*known) PetscFunctionReturn(PETSC_SUCCESS);
    if (a) PetscCall(MatSeqSBAIJGetArray(F, &fa));
    PetscCall(FromCholesky(n, fi, fj, a ? fa : NULL, known, nnz, &c));
    if (a) PetscCall(MatSeqSBAIJRestoreArray(F, &fa));
    PetscCall(MatRestoreRowIJ(F, 0, PETSC_FALSE, PETSC_FALSE, &n, &fi, &fj, known));
  } else {
    PetscCall(MatSeqAIJGetCSRAndMemType(F, &fi, &fj, &fa, NULL));
    PetscCall(MatGetInfo(F, MAT_LOCAL, &info));
    PetscCall(FromLU(F->rmap->n, (PetscInt)info.nz_used, fi, fj, a ? fa : NULL, known, nnz, &c));
  }
  *known = (PetscBool)(c.i != NULL);
  *i     = c.i;
  *j     = c.j;
  if (a) {
    *a    = c.a;
    *dinv = c.dinv;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

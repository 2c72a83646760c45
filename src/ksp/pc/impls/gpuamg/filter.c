/*
  Leaves out the small entries of a level's matrix on several ranks, for the smoother of the prolongator. The rule is the rule of one device (GPUAMGFilterRow() of blackbox/amg), on rows of both blocks.
*/
#include "gpuamgimpl.h"
#include <petscsf.h>
#include "../../../../mat/impls/gpucsr/blackbox/amg/rows.h"

/* The rows of a rank: first its own columns, then the columns of other ranks */
typedef struct {
  PetscInt        n, ghosts, first;
  const PetscInt *garray; /* global columns of other ranks, ascending */
  GPUAMGRows      A, F;
  PetscInt       *rowptr, *col; /* F in PETSc's types */
  PetscScalar    *val;
  double         *dinv, *basis, *norm;
} Rows;

static PetscErrorCode RowsDestroy(Rows *r)
{
  PetscFunctionBegin;
  PetscCall(PetscFree3(r->A.i, r->A.j, r->A.a));
  PetscCall(PetscFree3(r->F.i, r->F.j, r->F.a));
  PetscCall(PetscFree3(r->rowptr, r->col, r->val));
  PetscCall(PetscFree3(r->dinv, r->basis, r->norm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RowsCreate(Mat A, Rows *r)
{
  MatInfo info;
  size_t  n, nnz;
  Mat     O;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &O, &r->garray));
  PetscCall(MatGetLocalSize(A, &r->n, NULL));
  PetscCall(MatGetLocalSize(O, NULL, &r->ghosts));
  PetscCall(MatGetOwnershipRange(A, &r->first, NULL));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  n   = (size_t)r->n;
  nnz = (size_t)info.nz_used;
  PetscCheck((double)r->n + (double)r->ghosts <= INT32_MAX && info.nz_used <= INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_SUP, "A block of %g nonzeros does not fit the 32-bit indices of the device formats", info.nz_used);
  PetscCall(PetscMalloc3(n + 1, &r->A.i, nnz, &r->A.j, nnz, &r->A.a));
  PetscCall(PetscMalloc3(n + 1, &r->F.i, nnz, &r->F.j, nnz, &r->F.a));
  PetscCall(PetscMalloc3(n + 1, &r->rowptr, nnz, &r->col, nnz, &r->val));
  PetscCall(PetscMalloc3(n, &r->dinv, n + (size_t)r->ghosts, &r->basis, n, &r->norm));
  r->A.m = r->F.m = (int)r->n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows of A in local columns */
static PetscErrorCode Take(Mat A, Vec dinv, Rows *r)
{
  const PetscScalar *d;

  PetscFunctionBegin;
  r->A.i[0] = 0;
  for (PetscInt i = 0; i < r->n; i++) {
    const PetscInt    *j;
    const PetscScalar *a;
    PetscInt           n, at = 0;
    int32_t            to = r->A.i[i];

    PetscCall(MatGetRow(A, r->first + i, &n, &j, &a));
    for (PetscInt k = 0; k < n; k++, to++) {
      const PetscBool own = (PetscBool)(j[k] >= r->first && j[k] < r->first + r->n);

      if (!own) PetscCall(PetscFindInt(j[k], r->ghosts, r->garray, &at));
      r->A.j[to] = (int32_t)(own ? j[k] - r->first : r->n + at);
      r->A.a[to] = (double)PetscRealPart(a[k]);
    }
    PetscCall(MatRestoreRow(A, r->first + i, &n, &j, &a));
    r->A.i[i + 1] = to;
  }
  PetscCall(VecGetArrayRead(dinv, &d));
  for (PetscInt i = 0; i < r->n; i++) r->dinv[i] = (double)PetscRealPart(d[i]);
  PetscCall(VecRestoreArrayRead(dinv, &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the near null vector in the rank's rows and in its columns of other ranks; NULL: constants */
static PetscErrorCode Basis(Mat A, const double *near, Rows *r)
{
  PetscSF sf;

  PetscFunctionBegin;
  for (PetscInt i = 0; i < r->n + r->ghosts; i++) r->basis[i] = near && i < r->n ? near[i] : 1;
  if (!near) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSFCreate(PetscObjectComm((PetscObject)A), &sf));
  PetscCall(PetscSFSetGraphLayout(sf, A->cmap, r->ghosts, NULL, PETSC_COPY_VALUES, r->garray));
  PetscCall(PetscSFBcastBegin(sf, MPI_DOUBLE, near, r->basis + r->n, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(sf, MPI_DOUBLE, near, r->basis + r->n, MPI_REPLACE));
  PetscCall(PetscSFDestroy(&sf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows without small entries, in global columns */
static void Filter(Rows *r)
{
  GPUAMGWork w = {.A = r->A, .bs = 1, .relative = 1, .dinv = r->dinv, .basis = r->basis, .norm = r->norm};

  r->F.i[0] = r->rowptr[0] = 0;
  for (int i = 0; i < r->A.m; i++) {
    const int32_t to = r->F.i[i];

    GPUAMGRow(GPUAMG_NORMS, &w, i);
    r->F.i[i + 1]    = to + GPUAMGFilterRow(&w, i, r->F.j + to, r->F.a + to);
    r->rowptr[i + 1] = r->F.i[i + 1];
    for (int32_t k = to; k < r->F.i[i + 1]; k++) {
      r->col[k] = r->F.j[k] < r->n ? r->first + r->F.j[k] : r->garray[r->F.j[k] - r->n];
      r->val[k] = r->F.a[k];
    }
  }
}

/* For each row the size, by the rule of weak entries, of its largest entry in columns of other ranks. The caller frees the array */
PetscErrorCode PCGPUAMGBeyond_Private(Mat A, Vec dinv, double **beyond)
{
  GPUAMGWork         w = {.bs = 1, .relative = 1};
  const PetscScalar *d;
  double             own;
  PetscInt           m;
  Mat                O;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &O, NULL));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(PetscCalloc1((size_t)m + 1, beyond));
  PetscCall(VecGetArrayRead(dinv, &d));
  w.dinv = &own;
  for (PetscInt i = 0; i < m; i++) {
    const PetscScalar *a;
    PetscInt           n;

    own = (double)PetscRealPart(d[i]);
    PetscCall(MatGetRow(O, i, &n, NULL, &a));
    for (PetscInt k = 0; k < n; k++) (*beyond)[i] = PetscMax((*beyond)[i], GPUAMGSize(&w, 0, (double)PetscRealPart(a[k])));
    PetscCall(MatRestoreRow(O, i, &n, NULL, &a));
  }
  PetscCall(VecRestoreArrayRead(dinv, &d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Local(Mat A, Vec dinv, Rows *r)
{
  PetscFunctionBegin;
  PetscCall(RowsCreate(A, r));
  PetscCall(Take(A, dinv, r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: F has the type and configuration of A. near: the near null vector in this rank's rows, or NULL */
PetscErrorCode PCGPUAMGFilter_Private(Mat A, Vec dinv, const double *near, Mat *F)
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);
  Rows           r    = {0};
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;
  Mat            plain;

  PetscFunctionBegin;
  GPUCSRTry(&attempt, Local(A, dinv, &r));
  ierr = PCGPUAMGSettle_Private(comm, &attempt);
  if (ierr) PetscCall(RowsDestroy(&r));
  PetscCall(ierr);
  PetscCall(Basis(A, near, &r));
  Filter(&r);
  PetscCall(MatCreateMPIAIJWithArrays(comm, r.n, r.n, A->rmap->N, A->cmap->N, r.rowptr, r.col, r.val, &plain));
  PetscCall(RowsDestroy(&r));
  PetscCall(MatGPUCSRLike_Private(A, plain, F));
  PetscCall(MatDestroy(&plain));
  PetscFunctionReturn(PETSC_SUCCESS);
}

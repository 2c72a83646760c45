/*
  Type mpigpucsrlevel: products and the diagonal are the devices', as on one process. Here too are the operations that PETSc does not call on all ranks together. They read a copy of this rank's rows on the
  host, or of its diagonal block, and the matrix stays as it is.
*/
#include "level.h"

static Mat_GPUCSRLevel *Of(Mat A)
{
  return (Mat_GPUCSRLevel *)A->spptr;
}

/* ---- products ---- */

/* z = A x + y, or with the transpose; y may be NULL, may be z. A rank with an error takes part to the end */
static PetscErrorCode Product(Mat A, PetscBool transposed, Vec x, Vec y, Vec z)
{
  const GPUCSROperator *o   = &Of(A)->side[transposed];
  const GPUCSRRanks    *r   = &Of(A)->ranks[transposed];
  GPUCSRDevice          dev = o->dev;
  GPUCSRVecArray        ax = {.v = NULL}, az = {.v = NULL};
  PetscErrorCode        error = PETSC_SUCCESS, ierr;

  PetscFunctionBegin;
  if (y && y != z) error = VecCopy(y, z);
  GPUCSRKeep(&error, dev->ops->activate(dev->id));
  GPUCSRKeep(&error, MatGPUCSRRanksCheck_Private(r));
  GPUCSRKeep(&error, MatGPUCSRArrayGet_Private(dev, x, PETSC_TRUE, PETSC_FALSE, &ax));
  GPUCSRKeep(&error, MatGPUCSRArrayGet_Private(dev, z, (PetscBool)(y != NULL), PETSC_TRUE, &az));
  az.partly = PETSC_TRUE;
  ierr      = MatGPUCSRRanksMultiply_Private(o, r, transposed, 1, error ? NULL : ax.p, y ? 1 : 0, y ? az.p : NULL, az.p);
  GPUCSRKeep(&error, ierr);
  error = MatGPUCSRArrayRestore_Private(dev, &ax, error);
  PetscCall(MatGPUCSRArrayRestore_Private(dev, &az, error));
  PetscCall(PetscLogFlops(2.0 * (double)(o->csr->nnz + r->off.csr->nnz)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMult_MPIGPUCSRLevel(Mat A, Vec x, Vec y)
{
  return Product(A, PETSC_FALSE, x, NULL, y);
}

static PetscErrorCode MatMultAdd_MPIGPUCSRLevel(Mat A, Vec x, Vec y, Vec z)
{
  return Product(A, PETSC_FALSE, x, y, z);
}

static PetscErrorCode MatMultTranspose_MPIGPUCSRLevel(Mat A, Vec x, Vec y)
{
  return Product(A, PETSC_TRUE, x, NULL, y);
}

static PetscErrorCode MatMultTransposeAdd_MPIGPUCSRLevel(Mat A, Vec x, Vec y, Vec z)
{
  return Product(A, PETSC_TRUE, x, y, z);
}

/* ---- this rank's rows on the host ---- */

static PetscErrorCode Rows(Mat A)
{
  Mat_GPUCSRLevel *g = Of(A);

  PetscFunctionBegin;
  if (g->i && g->at == GPUCSRStateOf(A)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscFree3(g->i, g->j, g->a));
  PetscCall(GPUCSRRanksRows(g->rows, &g->i, &g->j, &g->a));
  g->at = GPUCSRStateOf(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Host(Mat A, Mat *C)
{
  const Mat_GPUCSRLevel *g = Of(A);
  PetscInt               rbs, cbs;

  PetscFunctionBegin;
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), C));
  PetscCall(MatSetSizes(*C, A->rmap->n, A->cmap->n, A->rmap->N, A->cmap->N));
  PetscCall(MatGetBlockSizes(A, &rbs, &cbs));
  PetscCall(MatSetBlockSizes(*C, rbs, cbs));
  PetscCall(MatSetType(*C, MATMPIAIJ));
  PetscCall(MatMPIAIJSetPreallocationCSR(*C, g->i, g->j, g->a));
  PetscCall(MatSetOption(*C, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE)); /* as after MATAIJ's products */
  PetscCall(MatConvert(*C, MATMPIAIJGPUCSR, MAT_INPLACE_MATRIX, C));
  PetscCall(MatGPUCSRConfigure_Private(*C, &g->base.config));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the matrix on the host of all ranks, or an error on all */
PetscErrorCode MatGPUCSRLevelAllToHost_Private(Mat A, Mat *C, GPUCSRAttempt *attempt)
{
  int         weight;
  PetscMPIInt rank;

  PetscFunctionBegin;
  GPUCSRTry(attempt, Rows(A));
  weight = attempt->error ? 1 : 0;
  PetscCall(GPUCSRAgree(PetscObjectComm((PetscObject)A), &weight, &attempt->error, attempt->message, sizeof(attempt->message), &rank));
  GPUCSRThen(attempt, Host(A, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The place of a row of this rank */
static PetscErrorCode Row(Mat A, PetscInt row, PetscInt *r)
{
  PetscFunctionBegin;
  *r = row - A->rmap->rstart;
  PetscCheck(*r >= 0 && *r < A->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "Row %" PetscInt_FMT " is not of this rank, which has %" PetscInt_FMT " to %" PetscInt_FMT, row, A->rmap->rstart, A->rmap->rend - 1);
  PetscCall(Rows(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetRow_MPIGPUCSRLevel(Mat A, PetscInt row, PetscInt *n, PetscInt **j, PetscScalar **v)
{
  const Mat_GPUCSRLevel *g = Of(A);
  PetscInt               r;

  PetscFunctionBegin;
  PetscCall(Row(A, row, &r));
  *n = g->i[r + 1] - g->i[r];
  if (j) *j = *n ? g->j + g->i[r] : NULL;
  if (v) *v = *n ? g->a + g->i[r] : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetValues_MPIGPUCSRLevel(Mat A, PetscInt m, const PetscInt i[], PetscInt n, const PetscInt j[], PetscScalar v[])
{
  const Mat_GPUCSRLevel *g = Of(A);
  PetscInt               r, at;

  PetscFunctionBegin;
  for (PetscInt p = 0; p < m; p++) {
    if (i[p] < 0) continue;
    PetscCall(Row(A, i[p], &r));
    for (PetscInt q = 0; q < n; q++) {
      if (j[q] < 0) continue;
      PetscCall(PetscFindInt(j[q], g->i[r + 1] - g->i[r], g->j + g->i[r], &at));
      v[p * n + q] = at < 0 ? 0 : g->a[g->i[r] + at];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc has noted the change already */
static PetscErrorCode MatSetValues_MPIGPUCSRLevel(Mat A, PetscInt m, const PetscInt i[], PetscInt n, const PetscInt j[], const PetscScalar v[], InsertMode mode)
{
  PetscFunctionBegin;
  A->assembled  = PETSC_TRUE;
  A->insertmode = NOT_SET_VALUES;
  PetscCheck(!m || !n, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Entries of a matrix of type %s are on devices alone: call MatConvert(A, %s, MAT_INPLACE_MATRIX, &A) on all ranks before MatSetValues()", MATMPIGPUCSRLEVEL, MATMPIAIJGPUCSR);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetDiagonal_MPIGPUCSRLevel(Mat A, Vec d)
{
  const GPUCSROperator *o = &Of(A)->side[GPUCSR_FORWARD];
  GPUCSRStream          s;
  PetscBool             done;
  PetscScalar          *v;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRPlanDiagonal_Private(o->dev, o->plan, d, &s, &done));
  if (done && s != o->dev->stream) PetscCall(o->dev->ops->streamsynchronize(o->dev->id, s));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetArrayWrite(d, &v));
  for (PetscInt r = 0; r < A->rmap->n; r++) {
    const PetscInt row = A->rmap->rstart + r;

    PetscCall(MatGetValues_MPIGPUCSRLevel(A, 1, &row, 1, &row, v + r));
  }
  PetscCall(VecRestoreArrayWrite(d, &v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetGhosts_MPIGPUCSRLevel(Mat A, PetscInt *n, const PetscInt *ghosts[])
{
  const GPUCSRRanksCSR *rows = Of(A)->rows;

  PetscFunctionBegin;
  if (n) *n = rows->block[1]->n;
  if (ghosts) *ghosts = rows->ghost;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- this rank's diagonal block on the host ---- */

/* Attached to A: a program may have it without a reference, also when A becomes another type */
static PetscErrorCode MatGetDiagonalBlock_MPIGPUCSRLevel(Mat A, Mat *D)
{
  Mat_GPUCSRLevel *g = Of(A);

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)A, "gpucsr_diagonal_block", (PetscObject *)D));
  if (!*D) {
    PetscCall(MatGPUCSRLevelBlock_Private(A, PETSC_COMM_SELF, D));
    PetscCall(PetscObjectCompose((PetscObject)A, "gpucsr_diagonal_block", (PetscObject)*D));
    PetscCall(PetscObjectDereference((PetscObject)*D));
  } else if (g->blockat != GPUCSRStateOf(A)) {
    const GPUCSRStorage *csr = Of(A)->side[GPUCSR_FORWARD].csr;
    GPUCSRDevice         dev = csr->dev;
    PetscScalar         *a;
    PetscErrorCode       ierr = PETSC_SUCCESS;

    PetscCall(MatSeqAIJGetArrayWrite(*D, &a));
    if (csr->nnz) ierr = GPUCSRDownload(dev, a, GPUCSR_DOUBLE, csr->array[CSR_VAL].data, GPUCSR_DOUBLE, (size_t)csr->nnz, PETSC_FALSE, dev->stream);
    if (!ierr) ierr = dev->ops->streamsynchronize(dev->id, dev->stream);
    PetscCall(MatSeqAIJRestoreArrayWrite(*D, &a));
    PetscCall(ierr);
  }
  g->blockat = GPUCSRStateOf(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatInvertBlockDiagonal_MPIGPUCSRLevel(Mat A, const PetscScalar **v)
{
  Mat D;

  PetscFunctionBegin;
  PetscCall(MatGetDiagonalBlock_MPIGPUCSRLevel(A, &D));
  PetscCall(MatInvertBlockDiagonal(D, v));
  A->factorerrortype = D->factorerrortype;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatInvertVariableBlockDiagonal_MPIGPUCSRLevel(Mat A, PetscInt n, const PetscInt *sizes, PetscScalar *v)
{
  Mat D;

  PetscFunctionBegin;
  PetscCall(MatGetDiagonalBlock_MPIGPUCSRLevel(A, &D));
  PetscCall(MatInvertVariableBlockDiagonal(D, n, sizes, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMissingDiagonal_MPIGPUCSRLevel(Mat A, PetscBool *missing, PetscInt *first)
{
  Mat D;

  PetscFunctionBegin;
  PetscCall(MatGetDiagonalBlock_MPIGPUCSRLevel(A, &D));
  PetscCall(MatMissingDiagonal(D, missing, first));
  if (first) *first += A->rmap->rstart;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Operations of several ranks in place of those that become another type */
void MatGPUCSRLevelOfRanks_Private(Mat A)
{
  struct _MatOps *o = A->ops;

  o->mult                        = MatMult_MPIGPUCSRLevel;
  o->multadd                     = MatMultAdd_MPIGPUCSRLevel;
  o->getdiagonal                 = MatGetDiagonal_MPIGPUCSRLevel;
  o->getrow                      = MatGetRow_MPIGPUCSRLevel;
  o->getvalues                   = MatGetValues_MPIGPUCSRLevel;
  o->setvalues                   = MatSetValues_MPIGPUCSRLevel;
  o->getghosts                   = MatGetGhosts_MPIGPUCSRLevel;
  o->getdiagonalblock            = MatGetDiagonalBlock_MPIGPUCSRLevel;
  o->invertblockdiagonal         = MatInvertBlockDiagonal_MPIGPUCSRLevel;
  o->invertvariableblockdiagonal = MatInvertVariableBlockDiagonal_MPIGPUCSRLevel;
  o->missingdiagonal             = MatMissingDiagonal_MPIGPUCSRLevel;
  if (!Of(A)->side[GPUCSR_TRANSPOSE].dev) return;
  o->multtranspose    = MatMultTranspose_MPIGPUCSRLevel;
  o->multtransposeadd = MatMultTransposeAdd_MPIGPUCSRLevel;
}

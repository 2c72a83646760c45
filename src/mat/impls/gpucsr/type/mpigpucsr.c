/* MATMPIAIJGPUCSR: MATMPIAIJ with blocks of type MATSEQAIJGPUCSR; mpiproduct.c has its products. */
#include "mpigpucsr.h"

/* Converts the two blocks to MATSEQAIJGPUCSR, with the matrix' configuration */
static PetscErrorCode Blocks(Mat A)
{
  Mat_MPIGPUCSR *g = (Mat_MPIGPUCSR *)A->spptr;
  Mat            b[2];
  const char    *prefix = ((PetscObject)A)->prefix;
  char           name[128];

  PetscFunctionBegin;
  if (!A->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(A, &b[0], &b[1], NULL));
  for (int k = 0; k < 2; k++) {
    MatGPUCSRConfig c;

    if (!b[k]) continue;
    if (!GPUCSRIsType(b[k], MATSEQAIJGPUCSR)) PetscCall(MatConvert_SeqAIJ_SeqAIJGPUCSR(b[k], MATSEQAIJGPUCSR, MAT_INPLACE_MATRIX, &b[k]));
    ((Mat_SeqGPUCSR *)b[k]->spptr)->block = PETSC_TRUE;
    if (k) ((Mat_SeqGPUCSR *)b[k]->spptr)->advised = PETSC_TRUE; /* the diagonal block prints for both */
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s%s%sdiagonal block of %" PetscInt_FMT " x %" PetscInt_FMT, prefix ? prefix : "", prefix ? ": " : "", k ? "off-" : "", A->rmap->N, A->cmap->N));
    PetscCall(PetscObjectSetName((PetscObject)b[k], name));
#if PetscDefined(HAVE_DEVICE)
    PetscCall(MatBindToCPU(b[k], A->boundtocpu));
#endif
    c                     = g->base.config;
    c.transposeatassembly = PETSC_FALSE; /* the parallel matrix decides when transposes are built */
    PetscCall(MatGPUCSRReconfigure_Private(b[k], &c));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGPUCSRSetUp_MPIAIJGPUCSR(Mat A, PetscBool transpose)
{
  PetscBool ready, alone;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRReadyAllreduce_Private(A, GPUCSR_FORWARD, &ready, &alone));
  if (transpose) PetscCall(MatGPUCSRReadyAllreduce_Private(A, GPUCSR_TRANSPOSE, &ready, &alone)); /* collective, even if this rank is ready */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the number of the pattern, PETSc's sum over the blocks, some of which have numbers of their own since PETSc added them */
static PetscErrorCode Number(Mat A)
{
  PetscObjectState own = 0;
  Mat              b[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &b[0], &b[1], NULL));
  for (int k = 0; k < 2; k++) own += b[k] ? b[k]->nonzerostate : 0;
  PetscCallMPI(MPI_Allreduce(&own, &A->nonzerostate, 1, MPI_INT64_T, MPI_SUM, PetscObjectComm((PetscObject)A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAssemblyEnd_MPIAIJGPUCSR(Mat A, MatAssemblyType type)
{
  Mat_MPIGPUCSR *g = (Mat_MPIGPUCSR *)A->spptr;

  PetscFunctionBegin;
  if (!g->quiet) PetscCall(MatGPUCSRFetch_Private(A)); /* values of other ranks, and new columns there, go past MatSetValues() */
  g->quiet = PETSC_FALSE;
  PetscCall((*g->base.parent.assemblyend)(A, type));
  PetscCall(MatGPUCSRWatch_Private(A));
  PetscCall(Blocks(A)); /* assembly may have replaced the off-diagonal block */
  if (type == MAT_FINAL_ASSEMBLY) PetscCall(Number(A));
  if (type == MAT_FINAL_ASSEMBLY && g->base.config.transposeatassembly) PetscCall(MatGPUCSRSetUp_MPIAIJGPUCSR(A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Some of the parent's functions write values without counting the change */
static PetscErrorCode MatCreateSubMatrices_MPIAIJGPUCSR(Mat A, PetscInt n, const IS rows[], const IS cols[], MatReuse reuse, Mat *sub[])
{
  PetscFunctionBegin;
  PetscCall((*((Mat_MPIGPUCSR *)A->spptr)->base.parent.createsubmatrices)(A, n, rows, cols, reuse, sub));
  for (PetscInt k = 0; k < n; k++) PetscCall(PetscObjectStateIncrease((PetscObject)(*sub)[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The blocks of the first process: the report has all processes' blocks */
static PetscErrorCode ViewBlocks(Mat A, PetscViewer viewer)
{
  Mat_MPIGPUCSR *g = (Mat_MPIGPUCSR *)A->spptr;
  PetscViewer    sub;
  PetscBool      ready, alone;
  Mat            Ad, Ao;

  PetscFunctionBegin;
  if (A->assembled) PetscCall(MatGPUCSRReadyAllreduce_Private(A, GPUCSR_FORWARD, &ready, &alone)); /* a view shows the choice, so it must be made */
  PetscCall(MatMPIAIJGetSeqAIJ(A, &Ad, &Ao, NULL));
  if (g->halo && g->halo->data) PetscCall(PetscViewerASCIIPrintf(viewer, "MATGPUCSR halo: %s (%s)\n", g->halo->exchange->name, g->halo->why));
  PetscCall(PetscViewerASCIIPrintf(viewer, "MATGPUCSR blocks of rank 0, diagonal then off-diagonal:\n"));
  PetscCall(PetscViewerGetSubViewer(viewer, PETSC_COMM_SELF, &sub));
  if (!GPUCSRRankOf(PetscObjectComm((PetscObject)A))) {
    PetscCall(MatGPUCSRViewBlock_Private(Ad, sub));
    PetscCall(MatGPUCSRViewBlock_Private(Ao, sub));
  }
  PetscCall(PetscViewerFlush(sub));
  PetscCall(PetscViewerRestoreSubViewer(viewer, PETSC_COMM_SELF, &sub));
  PetscCall(PetscViewerFlush(viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Places of X's entries in Y, both rows ascending, for the caller to free, or NULL; subset becomes false if Y lacks one */
static PetscErrorCode Places(Mat X, Mat Y, const PetscInt table[], PetscInt **place, PetscBool *subset)
{
  const PetscInt *xi, *xj, *yi, *yj;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(X, &xi, &xj, NULL, NULL));
  PetscCall(MatSeqAIJGetCSRAndMemType(Y, &yi, &yj, NULL, NULL));
  if (place) PetscCall(PetscMalloc1(xi[X->rmap->n], place));
  for (PetscInt r = 0; r < X->rmap->n && *subset; r++) {
    PetscInt q = yi[r];

    for (PetscInt k = xi[r]; k < xi[r + 1] && *subset; k++) {
      const PetscInt c = table ? table[xj[k]] : xj[k];

      while (q < yi[r + 1] && yj[q] < c) q++;
      *subset = (PetscBool)(c >= 0 && q < yi[r + 1] && yj[q] == c);
      if (place) (*place)[k] = q;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Y += a X, where Y has every entry of X: block by block, each on the device if the block is there. PETSc would set X's entries in Y row by row. Collective. done false: MATAIJ adds the matrices
*/
static PetscErrorCode MatAXPY_MPIAIJGPUCSR(Mat Y, PetscScalar a, Mat X, MatStructure str, PetscBool *done)
{
  Mat             x[2], y[2];
  const PetscInt *xg, *yg;
  PetscInt       *table, *place;
  PetscBool       subset = PETSC_TRUE;
  int             all;
  PetscInt        q = 0;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (!GPUCSRIsType(X, MATMPIAIJGPUCSR) || X == Y || str != SUBSET_NONZERO_PATTERN || !X->assembled || !Y->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(X, &x[0], &x[1], &xg));
  PetscCall(MatMPIAIJGetSeqAIJ(Y, &y[0], &y[1], &yg));
  /* the column in Y's block of each column of X's, both ascending; -1: none */
  PetscCall(PetscMalloc1(x[1]->cmap->n, &table));
  for (PetscInt k = 0; k < x[1]->cmap->n; k++) {
    while (q < y[1]->cmap->n && yg[q] < xg[k]) q++;
    table[k] = q < y[1]->cmap->n && yg[q] == xg[k] ? q : -1;
  }
  PetscCall(Places(x[0], y[0], NULL, NULL, &subset));
  PetscCall(Places(x[1], y[1], table, &place, &subset));
  all = subset;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)Y)));
  if (all) {
    const PetscInt    *i;
    const PetscScalar *xa;
    PetscScalar       *ya;

    PetscCall(MatAXPY(y[0], a, x[0], SUBSET_NONZERO_PATTERN));
    PetscCall(MatGPUCSRFetch_Private(x[1]));
    PetscCall(MatGPUCSRFetch_Private(y[1]));
    PetscCall(MatSeqAIJGetCSRAndMemType(x[1], &i, NULL, NULL, NULL));
    PetscCall(MatSeqAIJGetArrayRead(x[1], &xa));
    PetscCall(MatSeqAIJGetArray(y[1], &ya));
    for (PetscInt k = 0; k < i[x[1]->rmap->n]; k++) ya[place[k]] += a * xa[k];
    PetscCall(MatSeqAIJRestoreArray(y[1], &ya));
    PetscCall(MatSeqAIJRestoreArrayRead(x[1], &xa));
    PetscCall(PetscObjectStateIncrease((PetscObject)Y));
    *done = PETSC_TRUE;
  }
  PetscCall(PetscFree(table));
  PetscCall(PetscFree(place));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Names from the diagonal block, numbers from both */
static PetscErrorCode MatGPUCSRGetInfo_MPIAIJGPUCSR(Mat A, MatGPUCSRInfo *info)
{
  Mat           b[2];
  MatGPUCSRInfo o;

  PetscFunctionBegin;
  PetscCheck(A->preallocated, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix has no blocks yet: set it up first, MatSetUp()");
  PetscCall(MatMPIAIJGetSeqAIJ(A, &b[0], &b[1], NULL));
  PetscCall(MatGPUCSRInfoGet_Private(b[0], info));
  PetscCall(MatGPUCSRInfoGet_Private(b[1], &o));
#define SUM(field) info->field += o.field
  SUM(builds);
  SUM(refreshes);
  SUM(transpose_builds);
  SUM(products);
  SUM(transpose_products);
  SUM(dense_products);
  SUM(sparse_products);
  SUM(dense_columns);
  SUM(aij_products);
  SUM(aij_transpose_products);
  SUM(fallbacks);
  SUM(solver_products);
  SUM(solver_transpose_products);
  SUM(bytes);
  SUM(transpose_bytes);
  SUM(csr_bytes);
  SUM(uploaded);
  SUM(downloaded);
  SUM(values_uploaded);
  SUM(values_downloaded);
  SUM(inspect_time);
  SUM(convert_time);
  SUM(build_time);
  SUM(upload_time);
  SUM(transpose_time);
  SUM(product_time);
  SUM(transpose_product_time);
  SUM(download_time);
  SUM(pad_time);
  SUM(vector_upload_time);
  SUM(vector_convert_time);
  SUM(aij_time);
#undef SUM
  info->padding  = PetscMax(info->padding, o.padding);
  info->rounding = PetscMax(info->rounding, o.rounding);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device may have changed */
static PetscErrorCode Configured(Mat A)
{
  Mat_MPIGPUCSR *g = (Mat_MPIGPUCSR *)A->spptr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRHaloForget_Private(A));
  for (int k = 0; k < 2; k++) g->agreed[k] = (Pattern){.state = -1};
  PetscCall(Blocks(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatConvert_MPIAIJGPUCSR_MPIAIJ(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat b[2];

  PetscFunctionBegin;
  PetscCall(MatGPUCSRToAIJ_Private(A, type, reuse, newmat));
  if (reuse == MAT_REUSE_MATRIX || !(*newmat)->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(*newmat, &b[0], &b[1], NULL));
  for (int k = 0; k < 2; k++)
    if (b[k]) PetscCall(MatConvert(b[k], MATSEQAIJ, MAT_INPLACE_MATRIX, &b[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const MatGPUCSRKind kind = {
  .name              = MATMPIAIJGPUCSR,
  .parent            = MATMPIAIJ,
  .seq               = "mpi",
  .size              = sizeof(Mat_MPIGPUCSR),
  .release           = MatGPUCSRHaloForget_Private,
  .configured        = Configured,
  .product           = MatProduct_MPIAIJGPUCSR,
  .axpy              = MatAXPY_MPIAIJGPUCSR,
  .createsubmatrices = MatCreateSubMatrices_MPIAIJGPUCSR,
  .assemblyend       = MatAssemblyEnd_MPIAIJGPUCSR,
  .view              = ViewBlocks,
  .setup             = MatGPUCSRSetUp_MPIAIJGPUCSR,
  .getinfo           = MatGPUCSRGetInfo_MPIAIJGPUCSR,
  .toaij             = MatConvert_MPIAIJGPUCSR_MPIAIJ,
  .fromaij           = MatConvert_MPIAIJ_MPIAIJGPUCSR,
};

PetscErrorCode MatConvert_MPIAIJ_MPIAIJGPUCSR(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRFromAIJ_Private(A, &kind, reuse, newmat));
  if ((*newmat)->assembled) PetscCall(Number(*newmat)); /* larger than an earlier pattern's, for the PC of a matrix that was of this type before */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  MATMPIAIJGPUCSR - "mpiaijgpucsr", the form of `MATGPUCSR` for any number of processes

  Level: beginner

  Notes:
  Each rank keeps its diagonal and its off-diagonal block on its GPU. On one host, ranks write entries of vectors into each other's GPU memory; between hosts, entries go through page-locked host memory. So MPI need not know of GPUs; see -mat_gpucsr_halo.

.seealso: `MATGPUCSR`, `MATSEQAIJGPUCSR`, `MatCreateAIJGPUCSR()`
M*/
PetscErrorCode MatCreate_MPIAIJGPUCSR(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatSetType(A, MATMPIAIJ));
  PetscCall(MatConvert_MPIAIJ_MPIAIJGPUCSR(A, MATMPIAIJGPUCSR, MAT_INPLACE_MATRIX, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The master copy of the values. By default it is the host's: what the device computes is home before an operation returns. With -mat_gpucsr_master device
  it is the device's: the host's values are NaN, until an operation that this file wraps fetches them.
*/
#include "assembly.h"
#include <string.h>

/* The values of the mirror, into the host's array */
static PetscErrorCode Home(Mat_SeqGPUCSR *g, PetscScalar *a)
{
  const GPUCSRStorage *csr = &g->mirror.csr;
  GPUCSRDevice         dev = csr->dev;

  PetscFunctionBegin;
  PetscCall((*dev->ops->activate)(dev->id));
  PetscCall(GPUCSRDownload(dev, a, GPUCSR_DOUBLE, csr->array[CSR_VAL].data, GPUCSR_DOUBLE, (size_t)csr->nnz, PETSC_FALSE, dev->stream));
  PetscCall((*dev->ops->streamsynchronize)(dev->id, dev->stream));
  g->info.downloaded += sizeof(PetscScalar) * (double)csr->nnz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host has the values of one block again; nothing counts as changed */
static PetscErrorCode FetchBlock(Mat A)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  PetscScalar   *a;
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!g->mirror.ahead) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetCSRAndMemType(A, NULL, NULL, &a, NULL));
  GPUCSRTry(&attempt, Home(g, a));
  ierr = attempt.error;
  PetscCheck(!ierr, PETSC_COMM_SELF, ierr, "The device failed while it held the only copy of the values (-mat_gpucsr_master device): %s", attempt.message);
  g->mirror.ahead = PETSC_FALSE;
  PetscCall(PetscObjectStateGet((PetscObject)A, &g->mirror.values));
  PetscCall(MatGPUCSRSample_Private(A, GPUCSR_SAMPLES, g->sample));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before the host reads or writes values. A matrix of another type has its values */
PetscErrorCode MatGPUCSRFetch_Private(Mat A)
{
  Mat         block[2];
  const char *type = ((PetscObject)A)->type_name;

  PetscFunctionBegin;
  if (!A->spptr || !type || !A->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  if (!strcmp(type, MATSEQAIJGPUCSR)) PetscCall(FetchBlock(A));
  else if (!strcmp(type, MATMPIAIJGPUCSR)) {
    PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
    for (int b = 0; b < 2; b++)
      if (block[b]) PetscCall(MatGPUCSRFetch_Private(block[b]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device has changed the values of the mirror, and PETSc will count the change `later` more times */
PetscErrorCode MatGPUCSRWritten_Private(Mat A, PetscInt later)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  PetscScalar   *a;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (!g->base.config.masterdevice || !g->mirror.ahead) {
    PetscCall(MatSeqAIJGetArray(A, &a)); /* voids what PETSc has computed of older values */
    if (g->base.config.masterdevice)
      for (int64_t k = 0; k < g->mirror.csr.nnz; k++) a[k] = (PetscScalar)NAN;
    else ierr = Home(g, a);
    PetscCall(MatSeqAIJRestoreArray(A, &a));
    PetscCall(ierr);
  }
  g->mirror.ahead = g->base.config.masterdevice;
  PetscCall(PetscFree(g->bare));
  PetscCall(PetscFree(g->copy));
  if (!g->mirror.ahead) PetscCall(MatGPUCSRSample_Private(A, GPUCSR_SAMPLES, g->sample));
  PetscCall(PetscObjectStateGet((PetscObject)A, &g->mirror.values));
  g->mirror.values += later;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The operations that read or write the host's values */
#define READS(op, formal, actual) \
  static PetscErrorCode op##_Fetched formal \
  { \
    PetscFunctionBegin; \
    PetscCall(MatGPUCSRFetch_Private(A)); \
    PetscCall((*((Mat_GPUCSR *)A->spptr)->behind->op)actual); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }

READS(setvalues, (Mat A, PetscInt m, const PetscInt i[], PetscInt n, const PetscInt j[], const PetscScalar v[], InsertMode mode), (A, m, i, n, j, v, mode))
READS(getvalues, (Mat A, PetscInt m, const PetscInt i[], PetscInt n, const PetscInt j[], PetscScalar v[]), (A, m, i, n, j, v))
READS(getrow, (Mat A, PetscInt row, PetscInt *n, PetscInt **j, PetscScalar **v), (A, row, n, j, v))
READS(sor, (Mat A, Vec b, PetscReal omega, MatSORType type, PetscReal shift, PetscInt its, PetscInt lits, Vec x), (A, b, omega, type, shift, its, lits, x))
READS(transpose, (Mat A, MatReuse reuse, Mat *B), (A, reuse, B))
READS(duplicate, (Mat A, MatDuplicateOption op, Mat *B), (A, op, B))
READS(view, (Mat A, PetscViewer viewer), (A, viewer))
READS(createsubmatrices, (Mat A, PetscInt n, const IS rows[], const IS cols[], MatReuse reuse, Mat *sub[]), (A, n, rows, cols, reuse, sub))
READS(createsubmatrix, (Mat A, IS rows, IS cols, MatReuse reuse, Mat *sub), (A, rows, cols, reuse, sub))
READS(permute, (Mat A, IS rows, IS cols, Mat *B), (A, rows, cols, B))
READS(getrowmax, (Mat A, Vec v, PetscInt at[]), (A, v, at))
READS(getrowmin, (Mat A, Vec v, PetscInt at[]), (A, v, at))
READS(getrowminabs, (Mat A, Vec v, PetscInt at[]), (A, v, at))
READS(invertblockdiagonal, (Mat A, const PetscScalar **v), (A, v))
READS(invertvariableblockdiagonal, (Mat A, PetscInt n, const PetscInt *sizes, PetscScalar *v), (A, n, sizes, v))
READS(multdiagonalblock, (Mat A, Vec x, Vec y), (A, x, y))
READS(findnonzerorows, (Mat A, IS *is), (A, is))
READS(findzerodiagonals, (Mat A, IS *is), (A, is))
READS(getcolumnreductions, (Mat A, PetscInt type, PetscReal *v), (A, type, v))
READS(setrandom, (Mat A, PetscRandom random), (A, random))
READS(load, (Mat A, PetscViewer viewer), (A, viewer))
READS(issymmetric, (Mat A, PetscReal tol, PetscBool *yes), (A, tol, yes))
READS(ishermitian, (Mat A, PetscReal tol, PetscBool *yes), (A, tol, yes))
READS(lufactor, (Mat A, IS row, IS col, const MatFactorInfo *info), (A, row, col, info))
READS(ilufactor, (Mat A, IS row, IS col, const MatFactorInfo *info), (A, row, col, info))
READS(fdcoloringapply, (Mat A, MatFDColoring coloring, Vec x, void *ctx), (A, coloring, x, ctx))

/* Its second matrix is read, too */
static PetscErrorCode equal_Fetched(Mat A, Mat B, PetscBool *yes)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRFetch_Private(A));
  PetscCall(MatGPUCSRFetch_Private(B));
  PetscCall((*((Mat_GPUCSR *)A->spptr)->behind->equal)(A, B, yes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode copy_Fetched(Mat A, Mat B, MatStructure str)
{
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRCopySame_Private(A, B, str, &done));
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRFetch_Private(A));
  PetscCall(MatGPUCSRFetch_Private(B));
  PetscCall((*((Mat_GPUCSR *)A->spptr)->behind->copy)(A, B, str));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of several ranks; one block alone has its own */
READS(norm, (Mat A, NormType type, PetscReal *v), (A, type, v))
READS(zerorowscolumns, (Mat A, PetscInt n, const PetscInt rows[], PetscScalar d, Vec x, Vec b), (A, n, rows, d, x, b))

/* Wraps them while the device's copy is the master. PETSc replaces some at each assembly, so this is done again then */
PetscErrorCode MatGPUCSRWatch_Private(Mat A)
{
  Mat_GPUCSR     *g = (Mat_GPUCSR *)A->spptr;
  struct _MatOps *o = A->ops;

  PetscFunctionBegin;
  if (!g->config.masterdevice && !g->behind) PetscFunctionReturn(PETSC_SUCCESS);
  if (!g->behind) PetscCall(PetscNew(&g->behind));
#define WRAP(op) \
  do { \
    if (g->config.masterdevice && o->op && o->op != op##_Fetched) { \
      g->behind->op = o->op; \
      o->op         = op##_Fetched; \
    } else if (!g->config.masterdevice && o->op == op##_Fetched) o->op = g->behind->op; \
  } while (0)
  WRAP(setvalues);
  WRAP(getvalues);
  WRAP(getrow);
  WRAP(sor);
  WRAP(transpose);
  WRAP(duplicate);
  WRAP(view);
  WRAP(createsubmatrices);
  WRAP(createsubmatrix);
  WRAP(permute);
  WRAP(getrowmax);
  WRAP(getrowmin);
  WRAP(getrowminabs);
  WRAP(invertblockdiagonal);
  WRAP(invertvariableblockdiagonal);
  WRAP(multdiagonalblock);
  WRAP(findnonzerorows);
  WRAP(findzerodiagonals);
  WRAP(getcolumnreductions);
  WRAP(setrandom);
  WRAP(load);
  WRAP(issymmetric);
  WRAP(ishermitian);
  WRAP(lufactor);
  WRAP(ilufactor);
  WRAP(fdcoloringapply);
  WRAP(equal);
  WRAP(copy);
  if (!g->kind->inplace) {
    WRAP(norm);
    WRAP(zerorowscolumns);
  }
#undef WRAP
  if (!g->config.masterdevice) PetscCall(PetscFree(g->behind));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix leaves its type, with its values */
PetscErrorCode MatGPUCSRUnwatch_Private(Mat A)
{
  PetscFunctionBegin;
  if (((PetscObject)A)->refct) PetscCall(MatGPUCSRFetch_Private(A));
  ((Mat_GPUCSR *)A->spptr)->config.masterdevice = PETSC_FALSE;
  PetscCall(MatGPUCSRWatch_Private(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

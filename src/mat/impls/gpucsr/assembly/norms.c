/*
  Norms on the device, if its copy of the values is up to date (inplace.c): largest sums of absolute values of rows or columns, and Frobenius'. Sums of columns are row sums of the transpose, in the
  same order. Ranks add their sums of the off-diagonal block's columns at the columns' owners.
*/
#include "assembly.h"
#include "../../../../vec/impls/gpu/kernels.h"
#include <petscsf.h>

/* s[r] = the sum of absolute values of row r of the transpose; s NULL: the largest sum to most */
static PetscErrorCode OfColumns(const GPUCSRStorage *A, double *s, double *most)
{
  const GPUCSRAssembleOps *ops = GPUCSRAssembleOf(A->dev);
  GPUCSRStorage            T;
  int32_t                 *map;
  PetscErrorCode           ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRTransposeStorage(A, &T, &map));
  ierr = s ? (*ops->rowsums)(T.dev, T.m, GPUCSRCSROf(&T), s, T.dev->stream) : (*ops->largestrow)(&T, NULL, most);
  PetscCall(GPUCSRFree(A->dev, sizeof(int32_t) * (size_t)A->nnz, (void **)&map));
  PetscCall(GPUCSRStorageDestroy(&T));
  PetscFunctionReturn(ierr);
}

/* By the reduction of vectors */
static PetscErrorCode Squares(const GPUCSRStorage *A, double *v)
{
  const VecGPUKernels *vec = VecGPUKernelsOf(A->dev);
  double               sums[2];

  PetscFunctionBegin;
  if (vec->prepare) PetscCall((*vec->prepare)(A->dev));
  PetscCall((*vec->reduce)(A->dev, VECGPU_REDUCE_square, (size_t)A->nnz, (const double *)A->array[CSR_VAL].data, NULL, sums));
  *v = sums[0];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OfBlock(const GPUCSRStorage *A, NormType type, double *v)
{
  PetscFunctionBegin;
  if (type == NORM_1) PetscCall(OfColumns(A, NULL, v));
  else if (type == NORM_INFINITY) PetscCall((*GPUCSRAssembleOf(A->dev)->largestrow)(A, NULL, v));
  else PetscCall(Squares(A, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* NORM_FROBENIUS: its square. done false: the host has the values */
static PetscErrorCode Norm(Mat A, NormType type, double *v, PetscBool *done)
{
  GPUCSRStorage *csr     = NULL;
  GPUCSRAttempt  attempt = {.error = PETSC_ERR_GPU};

  PetscFunctionBegin;
  PetscCall(MatGPUCSRInPlaceBegin_Private(A, PETSC_FALSE, &csr));
  if (csr) GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, OfBlock(csr, type, v));
  *done = (PetscBool)!attempt.error;
  if (!*done) PetscCall(MatGPUCSRFetch_Private(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatNorm_InPlace(Mat A, NormType type, PetscReal *norm)
{
  double    v    = 0;
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  if (type == NORM_1 || type == NORM_FROBENIUS || type == NORM_INFINITY) PetscCall(Norm(A, type, &v, &done));
  else PetscCall(MatGPUCSRFetch_Private(A));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.norm)(A, type, norm));
  else *norm = (PetscReal)(type == NORM_FROBENIUS ? PetscSqrtReal((PetscReal)v) : v);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Several ranks */

/* The largest sum of a rank's rows, over both blocks */
static PetscErrorCode RowsOfBlocks(GPUCSRStorage *const b[2], double *most)
{
  const GPUCSRAssembleOps *ops   = GPUCSRAssembleOf(b[0]->dev);
  const size_t             bytes = sizeof(double) * (size_t)b[0]->m;
  void                    *s     = NULL;
  PetscErrorCode           ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRMalloc(b[0]->dev, bytes, "sums of rows", &s));
  ierr = (*ops->rowsums)(b[1]->dev, b[1]->m, GPUCSRCSROf(b[1]), (double *)s, b[1]->dev->stream);
  if (!ierr) ierr = (*ops->largestrow)(b[0], (const double *)s, most);
  PetscCall(GPUCSRFree(b[0]->dev, bytes, &s));
  PetscFunctionReturn(ierr);
}

/* sum: the sums of both blocks' columns, on the host */
static PetscErrorCode ColumnsOfBlocks(GPUCSRStorage *const b[2], double *sum[2])
{
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (int k = 0; k < 2 && !ierr; k++) {
    GPUCSRDevice dev = b[k]->dev;
    const size_t n   = (size_t)b[k]->n;
    void        *s   = NULL;

    if (!n) continue;
    PetscCall(GPUCSRMalloc(dev, sizeof(double) * n, "sums of columns", &s));
    ierr = OfColumns(b[k], (double *)s, NULL);
    if (!ierr) ierr = GPUCSRDownload(dev, sum[k], GPUCSR_DOUBLE, s, GPUCSR_DOUBLE, n, PETSC_FALSE, dev->stream);
    PetscCall(GPUCSRFree(dev, sizeof(double) * n, &s));
  }
  PetscFunctionReturn(ierr);
}

/* Collective: own += the other ranks' sums of these columns, and the largest */
static PetscErrorCode AddAtOwners(Mat A, PetscInt n, const PetscInt garray[], const double *others, double *own, double *most)
{
  PetscSF sf;

  PetscFunctionBegin;
  PetscCall(PetscSFCreate(PetscObjectComm((PetscObject)A), &sf));
  PetscCall(PetscSFSetGraphLayout(sf, A->cmap, n, NULL, PETSC_OWN_POINTER, garray));
  PetscCall(PetscSFReduceBegin(sf, MPI_DOUBLE, others, own, MPI_SUM));
  PetscCall(PetscSFReduceEnd(sf, MPI_DOUBLE, others, own, MPI_SUM));
  PetscCall(PetscSFDestroy(&sf));
  *most = 0;
  for (PetscInt k = 0; k < A->cmap->n; k++)
    if (own[k] > *most) *most = own[k];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* NORM_1 and NORM_INFINITY. done false: on some rank the values are not on a device */
static PetscErrorCode LargestOfRanks(Mat A, NormType type, double *v, PetscBool *done)
{
  GPUCSRStorage  *csr[2]  = {NULL, NULL};
  double         *sum[2]  = {NULL, NULL};
  GPUCSRAttempt   attempt = {.error = PETSC_ERR_GPU};
  const PetscInt *garray;
  Mat             block[2];
  PetscMPIInt     all;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], &garray));
  for (int b = 0; b < 2; b++) {
    PetscCall(MatGPUCSRInPlaceBegin_Private(block[b], PETSC_FALSE, &csr[b]));
    if (type == NORM_1) PetscCall(PetscMalloc1((size_t)block[b]->cmap->n + 1, &sum[b]));
  }
  if (csr[0] && csr[1] && type == NORM_1) GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, ColumnsOfBlocks(csr, sum));
  if (csr[0] && csr[1] && type == NORM_INFINITY) GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, RowsOfBlocks(csr, v));
  all = !attempt.error;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)A)));
  *done = (PetscBool)(all > 0);
  if (*done && type == NORM_1) PetscCall(AddAtOwners(A, block[1]->cmap->n, garray, sum[1], sum[0], v));
  for (int b = 0; b < 2; b++) PetscCall(PetscFree(sum[b]));
  if (*done) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, v, 1, MPI_DOUBLE, MPI_MAX, PetscObjectComm((PetscObject)A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sum of all squares; a block that is not on a device adds its own */
static PetscErrorCode SquaresOfRanks(Mat A, double *v)
{
  Mat       block[2];
  double    square[2] = {0, 0};
  PetscReal part;
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  for (int b = 0; b < 2; b++) {
    PetscCall(Norm(block[b], NORM_FROBENIUS, &square[b], &done));
    if (done) continue;
    PetscCall(MatNorm(block[b], NORM_FROBENIUS, &part));
    square[b] = (double)part * (double)part;
  }
  *v = square[0] + square[1];
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, v, 1, MPI_DOUBLE, MPI_SUM, PetscObjectComm((PetscObject)A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. done false: the host has all values */
PetscErrorCode MatGPUCSRNormOfRanks_Private(Mat A, NormType type, PetscReal *norm, PetscBool *done)
{
  double v = 0;

  PetscFunctionBegin;
  *done = (PetscBool)(type == NORM_FROBENIUS);
  if (*done) PetscCall(SquaresOfRanks(A, &v));
  else if (type == NORM_1 || type == NORM_INFINITY) PetscCall(LargestOfRanks(A, type, &v, done));
  if (*done) *norm = (PetscReal)(type == NORM_FROBENIUS ? PetscSqrtReal((PetscReal)v) : v);
  else PetscCall(MatGPUCSRFetch_Private(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Norms on the device, if its copy of the values is up to date (inplace.c): largest sums of absolute values of rows or columns, and Frobenius'. Sums of columns are row sums of the transpose, in the
  same order. Ranks add their sums of the off-diagonal block's columns at the columns' owners.
*/
#include "assembly.h"
#include "../../../../vec/impls/gpu/kernels.h"

/* s[r] += the sum of absolute values of row r of the transpose */
static PetscErrorCode AddColumns(const GPUCSRStorage *A, double *s)
{
  GPUCSRStorage  T;
  int32_t       *map;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRTransposeStorage(A, &T, &map));
  ierr = (*GPUCSRAssembleOf(T.dev)->rowsums)(T.dev, T.m, GPUCSRCSROf(&T), s, T.dev->stream);
  PetscCall(GPUCSRFree(A->dev, sizeof(int32_t) * (size_t)A->nnz, (void **)&map));
  PetscCall(GPUCSRStorageDestroy(&T));
  PetscFunctionReturn(ierr);
}

/* By a reduction of vectors */
static PetscErrorCode Reduce(GPUCSRDevice dev, VecGPUReduction op, size_t n, const double *x, double *v)
{
  const VecGPUKernels *vec = VecGPUKernelsOf(dev);
  double               result[2];

  PetscFunctionBegin;
  if (vec->prepare) PetscCall((*vec->prepare)(dev));
  PetscCall((*vec->reduce)(dev, op, n, x, NULL, result));
  *v = result[0];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sums of rows (NORM_INFINITY) or columns of some blocks beside or below each other: all of them on the host, or, with sums NULL, the largest */
static PetscErrorCode Sums(int blocks, GPUCSRStorage *const A[], NormType type, double *sums, double *most)
{
  const GPUCSRDevice dev = A[0]->dev;
  const size_t       n   = (size_t)(type == NORM_1 ? A[0]->n : A[0]->m);
  void              *s   = NULL;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  if (most) *most = 0;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRMalloc(dev, sizeof(double) * n, "sums of a norm", &s));
  ierr = (*dev->ops->zero)(dev->id, s, sizeof(double) * n, dev->stream);
  for (int k = 0; k < blocks && !ierr; k++) ierr = type == NORM_1 ? AddColumns(A[k], (double *)s) : (*GPUCSRAssembleOf(dev)->rowsums)(dev, A[k]->m, GPUCSRCSROf(A[k]), (double *)s, dev->stream);
  if (!ierr) ierr = sums ? GPUCSRDownload(dev, sums, GPUCSR_DOUBLE, s, GPUCSR_DOUBLE, n, PETSC_FALSE, dev->stream) : Reduce(dev, VECGPU_REDUCE_largest, n, (const double *)s, most);
  PetscCall(GPUCSRFree(dev, sizeof(double) * n, &s));
  PetscFunctionReturn(ierr);
}

static PetscErrorCode OfBlock(GPUCSRStorage *A, NormType type, double *v)
{
  PetscFunctionBegin;
  if (type != NORM_FROBENIUS) PetscCall(Sums(1, &A, type, NULL, v));
  else PetscCall(Reduce(A->dev, VECGPU_REDUCE_square, (size_t)A->nnz, (const double *)A->array[CSR_VAL].data, v));
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

/* sum: the sums of both blocks' columns, on the host */
static PetscErrorCode ColumnsOfBlocks(GPUCSRStorage *const b[2], double *sum[2])
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(Sums(1, &b[k], NORM_1, sum[k], NULL));
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
  if (csr[0] && csr[1] && type == NORM_INFINITY) GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, Sums(2, csr, NORM_INFINITY, NULL, v));
  all = !attempt.error;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)A)));
  *done = (PetscBool)(all > 0);
  if (*done && type == NORM_1) {
    PetscSF sf;

    PetscCall(PetscSFCreate(PetscObjectComm((PetscObject)A), &sf));
    PetscCall(PetscSFSetGraphLayout(sf, A->cmap, block[1]->cmap->n, NULL, PETSC_OWN_POINTER, garray));
    PetscCall(PetscSFReduceBegin(sf, MPI_DOUBLE, sum[1], sum[0], MPI_SUM));
    PetscCall(PetscSFReduceEnd(sf, MPI_DOUBLE, sum[1], sum[0], MPI_SUM));
    PetscCall(PetscSFDestroy(&sf));
    *v = 0;
    for (PetscInt k = 0; k < A->cmap->n; k++)
      if (sum[0][k] > *v) *v = sum[0][k];
  }
  for (int b = 0; b < 2; b++) PetscCall(PetscFree(sum[b]));
  if (*done) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, v, 1, MPI_DOUBLE, MPI_MAX, PetscObjectComm((PetscObject)A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. done false: the host has all values */
PetscErrorCode MatGPUCSRNormOfRanks_Private(Mat A, NormType type, PetscReal *norm, PetscBool *done)
{
  double    v = 0;
  PetscReal part;
  Mat       block[2];

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (type == NORM_FROBENIUS) { /* the sum of all squares; a block that is not on a device adds its own */
    PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
    for (int b = 0; b < 2; b++) {
      double square = 0;

      PetscCall(Norm(block[b], NORM_FROBENIUS, &square, done));
      if (!*done) {
        PetscCall(MatNorm(block[b], NORM_FROBENIUS, &part));
        square = (double)part * (double)part;
      }
      v += square;
    }
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &v, 1, MPI_DOUBLE, MPI_SUM, PetscObjectComm((PetscObject)A)));
    *done = PETSC_TRUE;
  } else if (type == NORM_1 || type == NORM_INFINITY) PetscCall(LargestOfRanks(A, type, &v, done));
  if (*done) *norm = (PetscReal)(type == NORM_FROBENIUS ? PetscSqrtReal((PetscReal)v) : v);
  else PetscCall(MatGPUCSRFetch_Private(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MatScale() and MatDiagonalScale() of matrices with products on a device: several threads scale the host's values. PCGAMG scales the largest
  matrices of its set-up.
*/
#include "gpucsrimpl.h"

/* Values of A, and the number of threads for scaling; 1: the parent scales */
static PetscErrorCode Threads(Mat A, const PetscInt **i, int *threads)
{
  const Mat_SeqGPUCSR *g   = (Mat_SeqGPUCSR *)A->spptr;
  const GPUCSRDevice   dev = g->dev ? g->dev : g->mirror.csr.format ? g->mirror.csr.dev : NULL; /* a product of matrices may have a mirror and no plan */

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(A, i, NULL, NULL, NULL));
  *threads = dev && *i && (*i)[A->rmap->n] >= GPUCSRMachineShared.threaded_entries ? dev->threads : 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatScale_SeqAIJGPUCSR(Mat A, PetscScalar alpha)
{
  const PetscInt *i;
  PetscScalar    *a;
  int             threads;

  PetscFunctionBegin;
  PetscCall(Threads(A, &i, &threads));
  if (threads == 1 || alpha == (PetscScalar)0.0) { /* 0 times NaN or Inf depends on the BLAS */
    PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.scale)(A, alpha));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSeqAIJGetArray(A, &a));
#pragma omp parallel for num_threads(threads)
  for (PetscInt k = 0; k < i[A->rmap->n]; k++) a[k] *= alpha;
  PetscCall(PetscLogFlops((PetscLogDouble)i[A->rmap->n]));
  PetscCall(MatSeqAIJRestoreArray(A, &a)); /* voids PETSc's inverses of the diagonal */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The rows, by l; the parent scales the columns */
PetscErrorCode MatDiagonalScale_SeqAIJGPUCSR(Mat A, Vec l, Vec r)
{
  const PetscInt    *i;
  const PetscScalar *s;
  PetscScalar       *a;
  PetscInt           m = 0;
  int                threads;

  PetscFunctionBegin;
  PetscCall(Threads(A, &i, &threads));
  if (l) m = l->map->n;
  if (threads == 1 || m != A->rmap->n) { /* the parent raises the error for a wrong length */
    PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.diagonalscale)(A, l, r));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecGetArrayRead(l, &s));
  PetscCall(MatSeqAIJGetArray(A, &a));
#pragma omp parallel for num_threads(threads)
  for (PetscInt row = 0; row < m; row++)
    for (PetscInt k = i[row]; k < i[row + 1]; k++) a[k] *= s[row];
  PetscCall(PetscLogFlops((PetscLogDouble)i[m]));
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscCall(VecRestoreArrayRead(l, &s));
  if (r) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.diagonalscale)(A, NULL, r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

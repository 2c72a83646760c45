/* Matrices in CSR on any device split by columns, put side by side, and added */
#include "spgemm.h"

/* Splits A, with ascending columns in each row, at column n into D and E. After an error there is nothing to destroy. */
PetscErrorCode GPUCSRPartColumns(const GPUCSRStorage *A, int n, GPUCSRStorage *D, GPUCSRStorage *E)
{
  GPUCSRDevice           dev    = A->dev;
  const GPUCSRSpGEMMOps *ops    = GPUCSRSpGEMMOf(dev);
  const size_t           bytes  = sizeof(int32_t) * ((size_t)A->m + 1);
  int32_t               *length = NULL;
  PetscErrorCode         ierr;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(D, sizeof(*D)));
  PetscCall(PetscMemzero(E, sizeof(*E)));
  D->dev = E->dev = dev;
  ierr            = GPUCSRMalloc(dev, bytes, "lengths of a part's rows", (void **)&length);
  if (!ierr) ierr = dev->ops->zero(dev->id, length, bytes, dev->stream); /* the scan reads one number more than rows */
  for (int rest = 0; rest < 2; rest++) {
    if (!ierr) ierr = (*ops->lengths)(dev, A->m, GPUCSRCSROf(A), n, (GPUCSRBool)rest, length, dev->stream);
    if (!ierr) ierr = GPUCSRCSRFromLengths(dev, A->m, rest ? A->n - n : n, length, NULL, rest ? E : D);
  }
  if (!ierr) ierr = GPUCSRPartEntries(A, n, D, E);
  PetscCall(GPUCSRFree(dev, bytes, (void **)&length));
  if (ierr) {
    PetscCall(GPUCSRStorageDestroy(D));
    PetscCall(GPUCSRStorageDestroy(E));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values, and columns, of the two parts */
PetscErrorCode GPUCSRPartEntries(const GPUCSRStorage *A, int n, GPUCSRStorage *D, GPUCSRStorage *E)
{
  const GPUCSRCSR d = GPUCSRCSROf(D);

  PetscFunctionBegin;
  PetscCall((*GPUCSRSpGEMMOf(A->dev)->part)(A->dev, A->m, GPUCSRCSROf(A), n, d.i, d.j, d.a, GPUCSRCSROf(E), A->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* K = [A T] */
PetscErrorCode GPUCSRBeside(const GPUCSRStorage *A, const GPUCSRStorage *T, GPUCSRStorage *K)
{
  const GPUCSRCSR k = GPUCSRCSROf(K);

  PetscFunctionBegin;
  PetscCall((*GPUCSRSpGEMMOf(A->dev)->beside)(A->dev, A->m + 1, GPUCSRCSROf(A), GPUCSRCSROf(T), k.i, k.j, k.a, A->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Y += f X, if Y has all entries of X; lost: Y lacks an entry, and values of Y may be wrong */
PetscErrorCode GPUCSRSpAXPY(double f, const GPUCSRStorage *X, GPUCSRStorage *Y, GPUCSRBool *lost)
{
  int           *flag;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRFlagCreate(Y->dev, &flag));
  ierr = (*GPUCSRSpGEMMOf(Y->dev)->axpy)(Y->dev, Y->m, f, GPUCSRCSROf(X), GPUCSRCSROf(Y), flag, Y->dev->stream);
  PetscCall(GPUCSRFlagRead(Y->dev, ierr, &flag, lost));
  PetscFunctionReturn(PETSC_SUCCESS);
}

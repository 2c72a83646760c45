/* ILU(0) of a matrix that is only on the device, without a Mat. The host sees flags alone. */
#include "factorimpl.h"

static PetscErrorCode Make(Mat_GPUCSRFactor *f, const GPUCSRStorage *A, int longest, PetscBool *good)
{
  GPUCSRDevice dev = f->dev;
  int          row;

  PetscFunctionBegin;
  *good = PETSC_TRUE;
  if (!f->pair[0].M.i) {
    GPUCSRFactorCSR *M = &f->pair[0].M;
    int              bad;

    PetscCheck(A->m < 1 << 28, PETSC_COMM_SELF, PETSC_ERR_SUP, "A factor of %d rows is too large for the device", A->m);
    PetscCall(GPUCSRFactorCSRCreate(dev, A->m, A->nnz, M));
    M->longest = longest;
    PetscCall(dev->ops->copy(dev->id, M->i, A->array[CSR_ROWPTR].data, sizeof(int) * ((size_t)A->m + 1), GPUCSR_ON_DEVICE, dev->stream));
    PetscCall(dev->ops->copy(dev->id, M->j, A->array[CSR_COL].data, sizeof(int) * (size_t)A->nnz, GPUCSR_ON_DEVICE, dev->stream));
    PetscCall(GPUCSRFactorCSRInspect(dev, M, &bad));
    *good = (PetscBool)!bad;
  }
  if (!*good) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(dev->ops->copy(dev->id, f->pair[0].M.a, A->array[CSR_VAL].data, sizeof(double) * (size_t)A->nnz, GPUCSR_ON_DEVICE, dev->stream));
  PetscCall(MatGPUCSRFactorEliminate_Private(f, GPUCSR_PIVOT_ROW, 100 * PETSC_MACHINE_EPSILON, good, &row));
  if (*good) PetscCall(MatGPUCSRFactorBuild_Private(f));
  else PetscCall(PetscInfo(NULL, "Row %d has a zero pivot\n", row));
  f->ondevice = *good;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ILU(0) of A, whose rows have at most `longest` entries. An existing factor has the pattern of A and gets new values. Not good: a row has no pivot or no diagonal entry. Then, and after an error, no factor remains. */
PetscErrorCode GPUCSRFactorMake(const GPUCSRStorage *A, int longest, Mat_GPUCSRFactor **f, PetscBool *good)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!*f) PetscCall(PetscNew(f));
  (*f)->dev     = A->dev;
  (*f)->type    = MAT_FACTOR_ILU;
  (*f)->natural = PETSC_TRUE;
  (*f)->method  = GPUCSR_METHOD_DEVICE;
  ierr          = Make(*f, A, longest, good);
  if (ierr || !*good) PetscCall(GPUCSRFactorDestroy(f));
  PetscFunctionReturn(ierr);
}

PetscErrorCode GPUCSRFactorDestroy(Mat_GPUCSRFactor **f)
{
  PetscFunctionBegin;
  if (*f) PetscCall(MatGPUCSRFactorEmpty_Private(*f));
  PetscCall(PetscFree(*f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

double GPUCSRFactorEntries(const Mat_GPUCSRFactor *f)
{
  return (double)f->pair[0].M.nnz;
}

/* Of device memory */
double GPUCSRFactorBytes(const Mat_GPUCSRFactor *f)
{
  double bytes = 0;

  for (int k = 0; k < 2; k++) bytes += 12.0 * (double)f->pair[k].M.nnz + 16.0 * f->pair[k].M.n + GPUCSRTriangleBytes(&f->pair[k].T[0]) + GPUCSRTriangleBytes(&f->pair[k].T[1]);
  return bytes;
}

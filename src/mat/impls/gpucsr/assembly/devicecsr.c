/* The program reads and changes the matrix on its device */
#include "assembly.h"

/*@C
  MatGPUCSRGetDevice - Get the GPU on which this process has its matrices and vectors

  Not Collective; No Fortran Support

  Output Parameter:
. device - its number as CUDA counts, -1: no GPU can be used

  Level: advanced

.seealso: `MATGPUCSR`, `VECGPU`, `MatGPUCSRGetDeviceCSR()`, `VecGPUPlaceArray()`
@*/
PetscErrorCode MatGPUCSRGetDevice(PetscInt *device)
{
  GPUCSRDevice dev = NULL;
  char         why[512];

  PetscFunctionBegin;
  if (GPUCSR_SCALAR_IS_DOUBLE) PetscCall(GPUCSRDeviceOpen("cuda", &dev, why, sizeof(why)));
  *device = dev ? dev->id : -1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Check(Mat A)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscCheck(GPUCSRIsType(A, MATSEQAIJGPUCSR), PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "A matrix of type %s has no arrays on a device; of several processes, each block of MatMPIAIJGetSeqAIJ() has", ((PetscObject)A)->type_name ? ((PetscObject)A)->type_name : "(none)");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatGPUCSRGetDeviceCSR - Get the arrays of a `MATSEQAIJGPUCSR` on its device, to read the pattern and to read and change the values

  Not Collective; No Fortran Support

  Input Parameter:
. A - the matrix, assembled

  Output Parameters:
+ i - row pointers, 1 more than rows
. j - columns, ascending in each row
- a - values

  Level: advanced

  Notes:
  All three are in the memory of the GPU. This function waits for the device, so the program may use them in any stream. `MatGPUCSRRestoreDeviceCSR()` waits for the program's work.

  Between the two calls the matrix must not be used otherwise. The pattern must not change.

  An error if the matrix is not on a GPU. Of a matrix of several processes, get the arrays of each block, `MatMPIAIJGetSeqAIJ()`, and assemble the matrix after they are restored.

.seealso: `MATGPUCSR`, `MatGPUCSRRestoreDeviceCSR()`, `MatGPUCSRSetMaster()`, `MatSetValuesCOO()`, `VecGPUGetArray()`
@*/
PetscErrorCode MatGPUCSRGetDeviceCSR(Mat A, const int **i, const int **j, double **a)
{
  Mat_SeqGPUCSR *g;
  GPUCSRStorage *csr;

  PetscFunctionBegin;
  PetscCall(Check(A));
  PetscCheck(A->assembled, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Not for unassembled matrix");
  g = (Mat_SeqGPUCSR *)A->spptr;
  PetscCall(MatGPUCSRDecide_Private(A));
  PetscCheck(g->dev && g->dev->ops->separate, PETSC_COMM_SELF, PETSC_ERR_GPU, "The matrix is not on a GPU: %s", g->dev ? "its device is the host" : g->whynot);
  PetscCall(MatGPUCSRMirror_Private(A, g->dev, PETSC_TRUE, &csr));
  PetscCall(GPUCSRDeviceSynchronize(g->dev));
  *i = (const int *)csr->array[CSR_ROWPTR].data;
  *j = (const int *)csr->array[CSR_COL].data;
  *a = (double *)csr->array[CSR_VAL].data;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatGPUCSRRestoreDeviceCSR - Restore arrays from `MatGPUCSRGetDeviceCSR()`, with new values

  Not Collective; No Fortran Support

  Input Parameters:
+ A - the matrix
. i - row pointers
. j - columns
- a - values; all three are `NULL` afterwards

  Level: advanced

  Note:
  Values count as changed. They are copied to the host, unless the master copy is the device's (`MatGPUCSRSetMaster()`).

.seealso: `MATGPUCSR`, `MatGPUCSRGetDeviceCSR()`, `MatGPUCSRSetMaster()`
@*/
PetscErrorCode MatGPUCSRRestoreDeviceCSR(Mat A, const int **i, const int **j, double **a)
{
  GPUCSRMirror *m;

  PetscFunctionBegin;
  PetscCall(Check(A));
  m = &((Mat_SeqGPUCSR *)A->spptr)->mirror;
  PetscCheck(*a && m->csr.format && *a == (double *)m->csr.array[CSR_VAL].data, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "The array is not one of MatGPUCSRGetDeviceCSR(), or the matrix has changed since");
  PetscCall(GPUCSRDeviceSynchronize(m->csr.dev));
  m->values = -1;
  PetscCall(MatGPUCSRWritten_Private(A));
  *i = *j = NULL;
  *a      = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

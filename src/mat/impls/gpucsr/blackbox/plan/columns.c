/* A product with several vectors: one pass over CSR, or a product for each vector. */
#include "plan.h"
#include "../kernels/columns.h"

/* z = A x + y, in the order of the device's stream */
PetscErrorCode GPUCSRPlanColumns(GPUCSRPlan *P, const GPUCSRColumns *q)
{
  const GPUCSRStorage *A    = &P->A;
  const GPUCSRType     type = GPUCSRVectorType(A->precision);
  const size_t         size = GPUCSRTypeSize(type);

  PetscFunctionBegin;
  if (GPUCSRIsCSR(A->format)) {
    PetscCall(GPUCSRColumnsToRows(A->dev, type, (size_t)A->n, q->k, q->x, q->ldx, q->xrows));
    PetscCall(GPUCSRMultRows(A, q->k, q->xrows, q->zrows));
    PetscCall(GPUCSRRowsToColumns(A->dev, type, (size_t)A->m, q->k, q->zrows, q->y, q->z, q->ldz));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (size_t c = 0; c < (size_t)q->k; c++) {
    const GPUCSRProduct p = {.alpha = 1, .beta = q->y ? 1 : 0, .x = (const char *)q->x + c * q->ldx * size, .y = q->y ? (const char *)q->y + c * (size_t)A->m * size : NULL, .z = (char *)q->z + c * q->ldz * size, .last = A->m};

    PetscCall(GPUCSRPlanProduct(P, &p, A->dev->stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

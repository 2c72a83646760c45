/* A product with several vectors: one pass over CSR, or a product for each vector. */
#include "plan.h"

/* z = A x + y, in the order of the device's stream */
PetscErrorCode GPUCSRPlanColumns(GPUCSRPlan *P, const GPUCSRColumns *q)
{
  const GPUCSRStorage *A    = &P->A;
  const GPUCSRType     type = GPUCSRVectorType(A->precision);
  const size_t         size = GPUCSRTypeSize(type);
  GPUCSRDevice         dev  = A->dev;

  PetscFunctionBegin;
  if (GPUCSRIsCSR(A->format)) {
    PetscCall((*GPUCSRHelpers(dev)->columnstorows)(dev, A->n, type, q->k, q->x, q->ldx, q->xrows, dev->stream));
    PetscCall(GPUCSRMultRows(A, q->k, q->xrows, q->zrows));
    PetscCall((*GPUCSRHelpers(dev)->rowstocolumns)(dev, A->m, type, q->k, q->zrows, q->y, q->z, q->ldz, (size_t)A->m, dev->stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (size_t c = 0; c < (size_t)q->k; c++) {
    const GPUCSRProduct p = {.alpha = 1, .beta = q->y ? 1 : 0, .x = (const char *)q->x + c * q->ldx * size, .y = q->y ? (const char *)q->y + c * (size_t)A->m * size : NULL, .z = (char *)q->z + c * q->ldz * size, .last = A->m};

    PetscCall(GPUCSRPlanProduct(P, &p, dev->stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product with several vectors at once: CSR in one pass, other formats one product for each vector. */
#include "plan.h"
#include "../kernels/columns.h"

/*
  z = A x + y for k columns, ldx and ldz apart, of the vector type, on the plan's device in the order of its stream; y, with contiguous columns, may
  be NULL. xrows and zrows have room for x and z.
*/
PetscErrorCode GPUCSRPlanColumns(GPUCSRPlan *P, int k, const void *x, size_t ldx, const void *y, void *z, size_t ldz, void *xrows, void *zrows)
{
  const GPUCSRStorage *A    = &P->A;
  const GPUCSRType     type = GPUCSRVectorType(A->precision);
  const size_t         size = GPUCSRTypeSize(type);

  PetscFunctionBegin;
  if (GPUCSRIsCSR(A->format)) {
    PetscCall(GPUCSRColumnsToRows(A->dev, type, (size_t)A->n, k, x, ldx, xrows));
    PetscCall(GPUCSRMultRows(A, k, xrows, zrows));
    PetscCall(GPUCSRRowsToColumns(A->dev, type, (size_t)A->m, k, zrows, y, z, ldz));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (size_t c = 0; c < (size_t)k; c++) {
    const GPUCSRProduct p = {.alpha = 1, .beta = y ? 1 : 0, .x = (const char *)x + c * ldx * size, .y = y ? (const char *)y + c * (size_t)A->m * size : NULL, .z = (char *)z + c * ldz * size, .last = A->m};

    PetscCall(GPUCSRPlanProduct(P, &p, A->dev->stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

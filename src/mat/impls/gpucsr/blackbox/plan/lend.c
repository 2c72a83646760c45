/*
  Plans of matrices that are on the device in CSR already, whose arrays stay their owner's.
*/
#include "plan.h"

/* A plan of csr, in CSR, with a kernel by its features. New values in the arrays are new values of the plan */
PetscErrorCode GPUCSRPlanLend(const GPUCSRStorage *csr, GPUCSRPlan *P)
{
  static const GPUCSRRequest request = {.format = "csr", .kernel = "auto"};
  GPUCSRDevice               dev     = csr->dev;
  GPUCSRChoice               choice;
  int64_t                    bad;

  PetscFunctionBegin;
  PetscCall(GPUCSRPlanReturn(P));
  PetscCall((*GPUCSRHelpers(dev)->inspect)(csr, GPUCSRPlanSettings.sample, &P->features, &bad, dev->stream));
  PetscCall(GPUCSRChoose(&P->features, csr->precision, dev, &request, &choice, NULL, NULL));
  P->choice         = choice;
  P->A              = *csr;
  P->A.work         = (GPUCSRArray){0};
  P->A.extent.width = P->features.max;
  P->waited         = dev->stream;
  P->built          = PETSC_TRUE;
  PetscCall(GPUCSRPlanPrepare(P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The plan goes, the arrays stay. Also of a plan of zeros */
PetscErrorCode GPUCSRPlanReturn(GPUCSRPlan *P)
{
  PetscFunctionBegin;
  if (P->A.dev) {
    P->A.piece = NULL;
    for (int k = 0; k < P->A.narrays; k++) P->A.array[k].data = NULL;
  }
  PetscCall(GPUCSRPlanDestroy(P));
  PetscCall(PetscMemzero(P, sizeof(*P)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

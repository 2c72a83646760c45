/*
  Plans of matrices that are on the device in CSR already, whose arrays stay their owner's.
*/
#include "plan.h"

/* Entries of the longest row, above so many times the mean, for which threads that share rows wait */
#define UNEVEN 32

/* Threads a row by its mean length, two entries each: an inspection takes longer than it would save on the small matrices that come here */
static const char *KernelOf(double mean, int longest)
{
  static const struct {
    double      mean;
    const char *name;
  } rows[] = {
    {4,  "csr_vector2" },
    {8,  "csr_vector4" },
    {16, "csr_vector8" },
    {32, "csr_vector16"}
  };

  if (longest > UNEVEN * (mean + 8)) return "csr_adaptive";
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(rows); k++)
    if (mean <= rows[k].mean) return rows[k].name;
  return "csr_vector32";
}

/* A plan of csr, in CSR. longest: row, 0 where that is not known. New values in the arrays are new values of the plan */
PetscErrorCode GPUCSRPlanLend(const GPUCSRStorage *csr, int longest, GPUCSRPlan *P)
{
  const double mean = (double)csr->nnz / PetscMax(1, csr->m);

  PetscFunctionBegin;
  PetscCall(GPUCSRPlanReturn(P));
  P->features      = (GPUCSRFeatures){.m = csr->m, .n = csr->n, .nnz = csr->nnz, .mean = mean, .max = longest};
  P->choice.format = csr->format;
  PetscCall(GPUCSRKernelFind(KernelOf(mean, longest), &P->choice.kernel));
  PetscCall(GPUCSRStorageLend(csr, &P->A));
  P->A.extent.width = longest;
  P->waited         = csr->dev->stream;
  P->built          = PETSC_TRUE;
  PetscCall(GPUCSRPlanPrepare(P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The plan goes, the arrays stay. Also of a plan of zeros */
PetscErrorCode GPUCSRPlanReturn(GPUCSRPlan *P)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRPlanDestroy(P));
  PetscCall(PetscMemzero(P, sizeof(*P)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

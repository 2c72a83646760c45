/*
  A matrix and its new values cross the bus once, for products and for the set-up of PCGPUAMG, which takes the matrix in CSR.

  //TEST name="standin" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1"
  //TEST name="auto" gpu=1 args="-mat_gpucsr_format {}" loop="auto csr dia sell"
*/
static char help[] = "Tests transfers of matrices.\n";

#include "testing.h"
#include <petscgpucsr.h>

#define POINTS 150 /* an edge: smaller matrices are sent again */

static PetscErrorCode Solver(Mat A, KSP *ksp)
{
  PC pc;

  PetscFunctionBegin;
  PetscCall(KSPCreate(PETSC_COMM_SELF, ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, KSPGPUBCGS));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCGPUAMG));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Sent(Mat A, double *all, double *values)
{
  MatGPUCSRInfo info;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRGetInfo(A, &info));
  *all    = info.uploaded;
  *values = info.values_uploaded;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* product: one comes before the first set-up */
static PetscErrorCode Crossings(PetscBool product)
{
  const double m = POINTS * POINTS;
  Mat          A = NULL;
  MatInfo      info;
  Vec          x, y;
  KSP          ksp;
  double       before, all, values, nnz;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_SELF, POINTS, 0.5, PETSC_FALSE, &A));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  nnz = info.nz_used;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecSet(x, 1.0));
  PetscCall(Solver(A, &ksp));
  if (product) PetscCall(MatMult(A, x, y));
  PetscCall(Sent(A, &before, &values));
  PetscCall(KSPSetUp(ksp));
  PetscCall(Sent(A, &all, &values));
  PetscCheck(all - before == (product ? 0 : 12 * nnz + 4 * (m + 1)), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A set-up %s has sent %g bytes of a matrix of %g values", product ? "after a product" : "before all products", all - before, nnz);
  PetscCheck(values == 8 * nnz, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Of %g values %g bytes were sent", nnz, values);
  PetscCall(MatSetValue(A, 0, 0, 7.0, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetUp(ksp));
  PetscCall(Sent(A, &before, &values));
  PetscCheck(before - all == 8 * nnz && values == 16 * nnz, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Of %g new values %g bytes were sent", nnz, before - all);
  PetscCall(KSPSolve(ksp, x, y));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(TestRequireReal(0));
  PetscCall(Crossings(PETSC_FALSE));
  PetscCall(Crossings(PETSC_TRUE));
  PetscCall(PetscFinalize());
  return 0;
}

/* One application of a preconditioner of the device beside PETSc's own */
#pragma once
#include "testing.h"

static inline PetscErrorCode TestApply(PC pc, PetscBool transposed, Vec x, Vec y)
{
  return transposed ? PCApplyTranspose(pc, x, y) : PCApply(pc, x, y);
}

/*
  Compares one application, or one of the transpose. PETSc's for |b| bounds all sums if the matrix is an M-matrix, except a diagonal in residuals: one
  more product with |A|, and one more application, bound that, and the rounding in factors.
*/
static inline PetscErrorCode TestApplications(PC pc, PC ref, PetscInt seed, PetscBool transposed, const char where[])
{
  Mat A, R, B;
  Vec b, z, c, y, bound, t;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(PCGetOperators(ref, &R, NULL));
  PetscCall(TestAbs(R, &B));
  PetscCall(MatCreateVecs(A, &z, &b));
  PetscCall(MatCreateVecs(R, &y, &c));
  PetscCall(VecDuplicate(y, &bound));
  PetscCall(VecDuplicate(y, &t));
  PetscCall(TestFill(b, seed, PETSC_FALSE));
  PetscCall(TestFill(c, seed, PETSC_FALSE));
  PetscCall(PCSetUp(pc));
  PetscCall(PCSetUp(ref));
  PetscCall(VecSet(z, -7.0));
  PetscCall(TestApply(pc, transposed, b, z));
  PetscCall(TestApply(ref, transposed, c, y));
  PetscCall(VecCopy(c, t));
  PetscCall(VecAbs(t));
  PetscCall(TestApply(ref, transposed, t, bound));
  PetscCall(VecAbs(bound));
  if (transposed) PetscCall(MatMultTranspose(B, bound, t));
  else PetscCall(MatMult(B, bound, t));
  PetscCall(TestApply(ref, transposed, t, c));
  PetscCall(VecAbs(c));
  PetscCall(VecAXPY(bound, 1.0, c));
  PetscCall(TestClose(z, y, bound, "an application", where));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&c));
  PetscCall(VecDestroy(&t));
  PetscCall(VecDestroy(&bound));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

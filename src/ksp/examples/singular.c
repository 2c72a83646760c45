static char help[] = "Computes the largest singular value of a matrix from a file, and on request the smallest and the condition number.\n"
                     "The file is PETSc binary, or any format that a loaded library reads.\n\n";

/*
  Power iteration on A^T A for the largest, inverse iteration with it for the smallest; every step multiplies by A and by its transpose.

    singular -f share/datasets/Chem97Zt.petsc
    singular -f share/datasets/well1850.petsc -smallest
    mpiexec -n 2 singular -f share/datasets/well1850.petsc -smallest -inverse_ksp_monitor

  An iteration ends when |A^T A v - sigma^2 v| <= tol sigma^2. Then a singular value lies within about tol/2 of sigma, relatively. Most often
  it lies much nearer, because the error falls as the square of the residual. In complex numbers the transpose is Hermitian.
  The options -inverse_ksp_type cg, -inverse_pc_type jacobi, ... choose the solver of the inverse iteration.
*/
#include "loadmat.h"

/*
  Iterates with A^T A, or with its inverse if inverse is not NULL. The start vector is the same on any number of ranks
*/
static PetscErrorCode SingularValue(Mat A, KSP inverse, PetscReal tol, PetscInt maxits, const char which[], PetscReal *sigma)
{
  Vec       v, u, w, r; /* v unit, u = A v, w = A^T u */
  PetscReal residual = 0.0, s2;
  PetscInt  its, begin, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreateVecs(A, &v, &u));
  PetscCall(VecDuplicate(v, &w));
  PetscCall(VecDuplicate(v, &r));
  PetscCall(VecGetOwnershipRange(v, &begin, &end));
  for (PetscInt i = begin; i < end; i++) PetscCall(VecSetValue(v, i, 1.0 + PetscSinReal((PetscReal)i), INSERT_VALUES));
  PetscCall(VecAssemblyBegin(v));
  PetscCall(VecAssemblyEnd(v));
  PetscCall(VecNormalize(v, NULL));

  for (its = 1; its <= maxits; its++) {
    if (inverse) {
      PetscCall(KSPSolve(inverse, v, w));
      PetscCall(VecCopy(w, v));
      PetscCall(VecNormalize(v, NULL));
    }
    PetscCall(MatMult(A, v, u));
    PetscCall(VecNorm(u, NORM_2, sigma));
    PetscCall(MatMultHermitianTranspose(A, u, w)); /* MatMultTranspose() where numbers are real */
    s2 = *sigma * *sigma;
    PetscCall(VecWAXPY(r, -s2, v, w));
    PetscCall(VecNorm(r, NORM_2, &residual));
    if (residual <= tol * s2) break;
    if (!inverse) {
      PetscCall(VecCopy(w, v));
      PetscCall(VecNormalize(v, NULL));
    }
  }
  if (its <= maxits) PetscCall(PetscPrintf(PetscObjectComm((PetscObject)A), "%-8s  %.4e after %" PetscInt_FMT " iterations\n", which, (double)*sigma, its));
  else PetscCall(PetscPrintf(PetscObjectComm((PetscObject)A), "%-8s  %.4e, not converged after %" PetscInt_FMT " iterations\n", which, (double)*sigma, maxits));

  PetscCall(VecDestroy(&v));
  PetscCall(VecDestroy(&u));
  PetscCall(VecDestroy(&w));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
  Mat       A, AtA;
  KSP       inverse;
  PC        pc;
  MatInfo   info;
  PetscInt  M, N, maxits = 1000;
  PetscReal tol     = 1e-4, largest, smallest;
  PetscBool hasfile = PETSC_FALSE, dosmallest = PETSC_FALSE;
  char      file[PETSC_MAX_PATH_LEN] = "";

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "Options of singular", NULL);
  PetscCall(PetscOptionsString("-f", "file of the matrix", "singular.c", file, file, sizeof(file), &hasfile));
  PetscCall(PetscOptionsBool("-smallest", "compute the smallest singular value too", "singular.c", dosmallest, &dosmallest, NULL));
  PetscCall(PetscOptionsReal("-tol", "residual at which to stop, relative to the square of the value", "singular.c", tol, &tol, NULL));
  PetscCall(PetscOptionsInt("-max_it", "most iterations for one value", "singular.c", maxits, &maxits, NULL));
  PetscOptionsEnd();
  PetscCheck(hasfile && file[0], PETSC_COMM_WORLD, PETSC_ERR_USER, "No matrix to work on: give -f FILE");
  PetscCheck(tol > 0.0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-tol has to be positive, not %g", (double)tol);
  PetscCheck(maxits > 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-max_it has to be positive, not %" PetscInt_FMT, maxits);

  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(LoadMat(A, file, NULL, NULL, NULL));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "matrix    %" PetscInt_FMT " rows, %" PetscInt_FMT " columns, %.0f nonzeros\n", M, N, info.nz_used));
  PetscCheck(M > 0 && N > 0, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "%s: a matrix without rows or columns has no singular values", file);
  PetscCheck(!dosmallest || M >= N, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "%s: -smallest needs at least as many rows as columns, here are %" PetscInt_FMT " and %" PetscInt_FMT, file, M, N);

  PetscCall(SingularValue(A, NULL, tol, maxits, "largest", &largest));
  if (dosmallest) {
    PetscCall(MatCreateNormalHermitian(A, &AtA));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &inverse));
    PetscCall(KSPSetOptionsPrefix(inverse, "inverse_"));
    PetscCall(KSPSetOperators(inverse, AtA, AtA));
    PetscCall(KSPSetType(inverse, KSPCG));
    PetscCall(KSPGetPC(inverse, &pc));
    PetscCall(PCSetType(pc, PCJACOBI));
    PetscCall(KSPSetTolerances(inverse, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
    PetscCall(KSPSetErrorIfNotConverged(inverse, PETSC_TRUE));
    PetscCall(KSPSetFromOptions(inverse));
    PetscCall(SingularValue(A, inverse, tol, maxits, "smallest", &smallest));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "condition %.4e\n", (double)(largest / smallest)));
    PetscCall(KSPDestroy(&inverse));
    PetscCall(MatDestroy(&AtA));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}

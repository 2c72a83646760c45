static char help[] = "Solves a linear system, or a least-squares problem, whose matrix is read from a file.\n"
                     "The file is PETSc binary, or any format that a loaded library reads.\n\n";

/*
  Solve A x = b with any KSP and PC, on any number of ranks:

    solve -f share/datasets/bcsstk16.petsc -ksp_type cg -pc_type jacobi
    mpiexec -n 2 solve -f share/datasets/add32.petsc -ksp_type gmres -ksp_monitor
    solve -f share/datasets/well1850.petsc.

  The matrix of the last command is rectangular: the default solver is lsqr. With -dll_append libpetscgpucsr.so the file may be Matrix Market, Harwell-Boeing or LIBSVM too, and compressed.

  -rhs FILE is the right-hand side. The default is A times a vector of ones: then the solution is known.
  The type of the matrix is an option, as in all PETSc programs: -mat_type aij, baij, gpucsr, ...
*/
#include "loadmat.h"
#include "report.h"
#include <petsctime.h>

int main(int argc, char **argv)
{
  Mat            A;
  Vec            x, b;
  KSP            ksp;
  PC             pc;
  MatInfo        info;
  PetscInt       M, N;
  PetscBool      hasfile = PETSC_FALSE, hasrhs = PETSC_FALSE, times = PETSC_FALSE, rectangular;
  char           file[PETSC_MAX_PATH_LEN] = "", rhs[PETSC_MAX_PATH_LEN] = "";
  PetscLogDouble t[5];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscOptionsBegin(PETSC_COMM_WORLD, NULL, "Options of solve", NULL);
  PetscCall(PetscOptionsString("-f", "file of the matrix", "solve.c", file, file, sizeof(file), &hasfile));
  PetscCall(PetscOptionsString("-rhs", "file of the right-hand side; default: A times ones", "solve.c", rhs, rhs, sizeof(rhs), &hasrhs));
  PetscCall(PetscOptionsBool("-times", "print the times of reading, set-up and solve", "solve.c", times, &times, NULL));
  PetscOptionsEnd();
  PetscCheck(hasfile && file[0], PETSC_COMM_WORLD, PETSC_ERR_USER, "No matrix to solve with: give -f FILE");
  PetscCheck(!hasrhs || rhs[0], PETSC_COMM_WORLD, PETSC_ERR_USER, "-rhs needs the name of a file");

  PetscCall(PetscTime(&t[0]));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetFromOptions(A));
  PetscCall(LoadMat(A, file, NULL, NULL, NULL));
  PetscCall(MatGetSize(A, &M, &N));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "matrix    %" PetscInt_FMT " rows, %" PetscInt_FMT " columns, %.0f nonzeros\n", M, N, info.nz_used));

  PetscCall(PetscTime(&t[1]));
  PetscCall(MatCreateVecs(A, &x, &b));
  if (hasrhs) PetscCall(LoadVec(b, rhs));
  else {
    PetscCall(VecSet(x, 1.0));
    PetscCall(MatMult(A, x, b));
    PetscCall(VecSet(x, 0.0));
  }

  PetscCall(PetscTime(&t[2]));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  if (M != N) {
    PetscCall(KSPSetType(ksp, KSPLSQR));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCNONE));
  }
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)ksp, &rectangular, KSPLSQR, KSPCGLS, ""));
  PetscCheck(M == N || rectangular, PETSC_COMM_WORLD, PETSC_ERR_ARG_INCOMP, "%s has %" PetscInt_FMT " rows and %" PetscInt_FMT " columns: a matrix that is not square needs -ksp_type lsqr or cgls", file, M, N);
  PetscCall(KSPSetUp(ksp));
  PetscCall(PetscTime(&t[3]));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(PetscTime(&t[4]));

  PetscCall(KSPReport(ksp, A, b, x));
  if (times) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "times     reading %.4f s, right-hand side %.4f s, set-up %.4f s, solve %.4f s\n", t[1] - t[0], t[2] - t[1], t[3] - t[2], t[4] - t[3]));

  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}

static char help[] = "Eigenvalues nearest a target by SLEPc's shift-and-invert.\n\n";

/*
    shift -dim 3 -m 46 -eps_target 1.3 -st_pc_factor_mat_solver_type cudss -mat_type gpucsr -dll_append libpetscgpucsr.so
    mpiexec -n 16 shift -dim 3 -m 46 -eps_target 1.3 -st_pc_factor_mat_solver_type mumps.

  A plain SLEPc program without calls of the library. Build: mpicc shift.c -o build/bench/shift $(pkg-config --cflags --libs slepc petsc). The matrix is the Laplacian of m points an edge in two or three dimensions.
  A row, times in seconds:
    dimensions, rows, solver, ranks: all of EPSSolve(), found eigenvalues, steps of Lanczos' method, the largest relative residual
*/
#include <slepceps.h>
#include <petsctime.h>
#if PETSC_VERSION_LT(3, 19, 0)
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

static PetscErrorCode Create(PetscInt dim, PetscInt m, Mat *A)
{
  const PetscInt n = dim == 3 ? m * m * m : m * m;
  PetscInt       begin, end;

  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, n, n));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 7, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 7, NULL, 7, NULL));
  PetscCall(MatGetOwnershipRange(*A, &begin, &end));
  for (PetscInt r = begin; r < end; r++) {
    PetscInt    at = 1, cols[7] = {r};
    PetscScalar values[7] = {2.0 * (PetscReal)dim, -1, -1, -1, -1, -1, -1};

    for (PetscInt d = 0, stride = 1; d < dim; d++, stride *= m) {
      if (r / stride % m) cols[at++] = r - stride;
      if (r / stride % m < m - 1) cols[at++] = r + stride;
    }
    PetscCall(MatSetValues(*A, 1, &r, at, cols, values, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat            A;
  EPS            eps;
  char           solver[64] = "default";
  PetscInt       dim = 3, m = 20, n, found, steps;
  PetscMPIInt    size;
  PetscReal      worst = 0, error;
  PetscLogDouble begin, end;

  PetscFunctionBeginUser;
  PetscCall(SlepcInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-dim", &dim, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-m", &m, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-st_pc_factor_mat_solver_type", solver, sizeof(solver), NULL));
  PetscCall(Create(dim, m, &A));
  PetscCall(EPSCreate(PETSC_COMM_WORLD, &eps));
  PetscCall(EPSSetOperators(eps, A, NULL));
  PetscCall(EPSSetProblemType(eps, EPS_HEP));
  PetscCall(EPSSetDimensions(eps, 10, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscCall(EPSSetWhichEigenpairs(eps, EPS_TARGET_MAGNITUDE));
  {
    ST st;

    PetscCall(EPSGetST(eps, &st));
    PetscCall(STSetType(st, STSINVERT));
  }
  PetscCall(EPSSetFromOptions(eps));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(PetscTime(&begin));
  PetscCall(EPSSolve(eps));
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
  PetscCall(PetscTime(&end));
  PetscCall(EPSGetConverged(eps, &found));
  PetscCall(EPSGetIterationNumber(eps, &steps));
  for (PetscInt k = 0; k < found; k++) {
    PetscCall(EPSComputeError(eps, k, EPS_ERROR_RELATIVE, &error));
    worst = PetscMax(worst, error);
  }
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "shift %" PetscInt_FMT "-D %9" PetscInt_FMT " %-8s %2d: %9.3f %" PetscInt_FMT " %" PetscInt_FMT " %.1e\n", dim, n, solver, (int)size, end - begin, found, steps, (double)worst));
  PetscCall(EPSDestroy(&eps));
  PetscCall(MatDestroy(&A));
  PetscCall(SlepcFinalize());
  return 0;
}

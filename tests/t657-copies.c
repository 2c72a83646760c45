//TEST name="host"
//TEST name="standin" args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 3" gpu=0
//TEST name="ranks" nsize=2 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1" gpu=0
//TEST name="gpu" args="-mat_gpucsr_backend cuda" gpu=1

/*
  Copies of vectors over the bus in the steps of FEniCSx's Newton method: new values, a ghosted right-hand side, a solve with Jacobi into a vector of the matrix or into a ghosted vector, and an update of a
  ghosted vector. At most three a step, in every step and with every method. And PCJACOBI with zeros on the diagonal, sometimes, is PETSc's.
*/
static char help[] = "Tests how many vectors a linear solve copies.\n";

#include "testing.h"
#include <math.h>
#include "precond.h"

#define K     8
#define STEPS 4

static PetscErrorCode Copies(PetscInt *n)
{
  static const char *const names[] = {"VecGPUCopyTo", "VecGPUCopyFrom"};
  PetscEventPerfInfo       info;
  PetscLogEvent            event;

  PetscFunctionBegin;
  *n = 0;
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscLogEventGetId(names[k], &event));
    if (event < 0) continue;
    PetscCall(PetscLogEventGetPerfInfo(PETSC_DETERMINE, event, &info));
    *n += info.count;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* most: copies of one step */
static PetscErrorCode Steps(const char method[], PetscBool ghosted, PetscBool ref, Vec u, PetscInt *most)
{
  Mat      A;
  Vec      b, dx;
  KSP      ksp;
  PC       pc;
  PetscInt before, after;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_WORLD, K, 0.0, ref, &A));
  PetscCall(VecDuplicate(u, &b));
  if (ghosted) PetscCall(VecDuplicate(u, &dx));
  else PetscCall(MatCreateVecs(A, &dx, NULL));
  PetscCall(VecSet(u, 0.0));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, method));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetTolerances(ksp, 1e-12, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  *most = 0;
  for (PetscInt step = 0; step < STEPS; step++) {
    PetscCall(MatShift(A, 1.0));
    PetscCall(TestFill(b, step, PETSC_FALSE));
    PetscCall(Copies(&before));
    PetscCall(KSPSolve(ksp, b, dx));
    PetscCall(VecAXPY(u, -1.0, dx));
    PetscCall(Copies(&after));
    *most = PetscMax(*most, after - before);
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&dx));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Both applied to ones: quotients of the diagonal, correctly rounded */
static PetscErrorCode Ones(PC pc[])
{
  Vec                x[2], y[2];
  const PetscScalar *a[2];
  PetscInt           n;
  Mat                A;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(PCGetOperators(pc[k], &A, NULL));
    PetscCall(MatCreateVecs(A, &y[k], &x[k]));
    PetscCall(VecSet(x[k], 1.0));
    PetscCall(PCApply(pc[k], x[k], y[k]));
    PetscCall(VecGetArrayRead(y[k], &a[k]));
  }
  PetscCall(VecGetLocalSize(y[0], &n));
  for (PetscInt r = 0; r < n; r++) PetscCheck(a[0][r] == a[1][r], PETSC_COMM_SELF, PETSC_ERR_PLIB, "Row %" PetscInt_FMT ": %g, should be %g", r, (double)PetscRealPart(a[0][r]), (double)PetscRealPart(a[1][r]));
  for (int k = 0; k < 2; k++) {
    PetscCall(VecRestoreArrayRead(y[k], &a[k]));
    PetscCall(VecDestroy(&x[k]));
    PetscCall(VecDestroy(&y[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One rank's diagonal has a zero, has no zero, has the zero again, and has Inf, whose reciprocal is 0 */
static PetscErrorCode Zeros(void)
{
  Mat      A[2];
  PC       pc[2];
  Vec      d[2];
  PetscInt first, n;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(TestConvection(PETSC_COMM_WORLD, K, 0.5, (PetscBool)k, &A[k]));
    PetscCall(MatGetLocalSize(A[k], &n, NULL));
    PetscCall(PCCreate(PETSC_COMM_WORLD, &pc[k]));
    PetscCall(PCSetOperators(pc[k], A[k], A[k]));
    PetscCall(PCSetType(pc[k], PCJACOBI));
    PetscCall(VecCreateMPI(PETSC_COMM_WORLD, n, PETSC_DETERMINE, &d[k]));
  }
  for (int turn = 0; turn < 4; turn++) {
    for (int k = 0; k < 2; k++) {
      PetscBool fix;

      PetscCall(VecSet(d[k], 2.5 + turn));
      PetscCall(VecGetOwnershipRange(d[k], &first, NULL));
      if (turn != 1 && !first) PetscCall(VecSetValue(d[k], 3, turn == 3 ? INFINITY : 0.0, INSERT_VALUES));
      PetscCall(VecAssemblyBegin(d[k]));
      PetscCall(VecAssemblyEnd(d[k]));
      PetscCall(MatDiagonalSet(A[k], d[k], INSERT_VALUES));
      PetscCall(PCSetUp(pc[k]));
      PetscCall(PCJacobiGetFixDiagonal(pc[k], &fix));
      PetscCheck(fix, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The set-up has changed PCJacobiSetFixDiagonal()");
    }
    PetscCall(Ones(pc));
    if (turn == 3) continue; /* bounds of the next would be Inf */
    PetscCall(TestApplications(pc[0], pc[1], turn, PETSC_FALSE, "jacobi"));
    PetscCall(TestApplications(pc[0], pc[1], turn, PETSC_TRUE, "jacobi"));
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(PCDestroy(&pc[k]));
    PetscCall(VecDestroy(&d[k]));
    PetscCall(MatDestroy(&A[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A first application reads the current matrix, here with a zero on the diagonal, and the current options */
static PetscErrorCode Later(void)
{
  Mat       A[2];
  PC        pc[2];
  PetscInt  row = 3;
  PetscBool fix;

  PetscFunctionBegin;
  for (int option = 0; option < 2; option++) {
    for (int k = 0; k < 2; k++) {
      PetscCall(TestConvection(PETSC_COMM_WORLD, K, 0.5, (PetscBool)k, &A[k]));
      PetscCall(PCCreate(PETSC_COMM_WORLD, &pc[k]));
      PetscCall(PCSetOperators(pc[k], A[k], A[k]));
      PetscCall(PCSetType(pc[k], PCJACOBI));
      PetscCall(PCSetUp(pc[k]));
      if (option) PetscCall(PCJacobiSetFixDiagonal(pc[k], PETSC_FALSE));
      else {
        PetscCall(PCSetReusePreconditioner(pc[k], PETSC_TRUE));
        PetscCall(MatZeroRows(A[k], 1, &row, 0.0, NULL, NULL));
      }
    }
    PetscCall(TestApplications(pc[0], pc[1], 5, PETSC_FALSE, "jacobi, changed after its set-up"));
    PetscCall(PCJacobiGetFixDiagonal(pc[0], &fix));
    PetscCheck(fix == !option, PETSC_COMM_SELF, PETSC_ERR_PLIB, "An application has changed PCJacobiSetFixDiagonal()");
    for (int k = 0; k < 2; k++) {
      PetscCall(PCDestroy(&pc[k]));
      PetscCall(MatDestroy(&A[k]));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const methods[][2] = {
    {"cg",     "cg"    },
    {"bcgs",   "bcgs"  },
    {"minres", "minres"},
    {"gmres",  "gmres" },
    {"fgmres", "fgmres"},
    {"gpucg",  "cg"    }
  };
  PetscMPIInt size;
  PetscInt    ghost = 0, most, n, wrong = 0;
  Mat         A;
  Vec         u[2];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscLogDefaultBegin());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(TestConvection(PETSC_COMM_WORLD, K, 0.0, PETSC_TRUE, &A));
  PetscCall(MatGetLocalSize(A, &n, NULL));
  for (int k = 0; k < 2; k++) PetscCall(VecCreateGhost(PETSC_COMM_WORLD, n, PETSC_DETERMINE, 1, &ghost, &u[k]));
  PetscCall(MatDestroy(&A));
  for (size_t m = 0; m < PETSC_STATIC_ARRAY_LENGTH(methods); m++)
    for (int ghosted = 0; ghosted < 2; ghosted++) {
      PetscReal distance, norm;

      if (size > 1 && ghosted && !strncmp(methods[m][0], "gpu", 3)) continue; /* by PETSc's operations on vectors like the program's, where the host computes */
      PetscCall(Steps(methods[m][1], (PetscBool)ghosted, PETSC_TRUE, u[1], &most));
      PetscCall(Steps(methods[m][0], (PetscBool)ghosted, PETSC_FALSE, u[0], &most));
      if (most > 3) {
        PetscCall(PetscFPrintf(PETSC_COMM_SELF, stderr, "%s, %s: a step copies %d vectors\n", methods[m][0], ghosted ? "into a ghosted vector" : "into a vector of the matrix", (int)most));
        wrong++;
      }
      PetscCall(VecAXPY(u[0], -1.0, u[1]));
      PetscCall(VecNorm(u[0], NORM_2, &distance));
      PetscCall(VecNorm(u[1], NORM_2, &norm));
      if (!(distance <= 1e-9 * norm)) { /* four solves, each to 1e-12 of a matrix of condition 4 */
        PetscCall(PetscFPrintf(PETSC_COMM_WORLD, stderr, "%s: the sum of the steps differs by %g of %g\n", methods[m][0], (double)distance, (double)norm));
        wrong++;
      }
    }
  PetscCheck(!wrong, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d cases are wrong", (int)wrong);
  PetscCall(Zeros());
  PetscCall(Later());
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&u[k]));
  PetscCall(PetscFinalize());
  return 0;
}

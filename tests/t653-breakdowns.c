//TEST name="host" args="-vec_gpu_separate"
//TEST name="standin" args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0" gpu=0

/*
  Where GMRES cannot go on: a matrix of zeros, a nilpotent one, a test of convergence that never says yes, a residual that differs from the recurrence's. gpugmres ends as KSPGMRES does, for the same reason;
  with KSPSetErrorIfNotConverged() both give an error, of the same code.
*/
static char help[] = "Tests where GMRES breaks down.\n";

#include "testing.h"
#include <petsc/private/kspimpl.h>

#define N 12

typedef enum {
  ZERO,      /* the first column of the Hessenberg matrix is 0 */
  NILPOTENT, /* column 3 is */
  TINY,      /* column 3 is but for 1e-40, which counts as a happy breakdown (of squares that do not underflow), with a triangle that is singular */
  NEVER,     /* a happy breakdown, and a test that never says so */
  RESTART,   /* a residual at a restart that differs from the recurrence's by rounding, where nothing may */
  INPUTS
} Input;
static const char *const inputs[] = {"zeros", "nilpotent", "nilpotent but for 1e-40", "a test that never says yes", "no rounding allowed at restarts"};

static PetscErrorCode Never(KSP ksp, PetscInt it, PetscReal norm, KSPConvergedReason *reason, void *ctx)
{
  PetscFunctionBegin;
  (void)norm;
  (void)ctx;
  *reason = it >= ksp->max_it ? KSP_DIVERGED_ITS : KSP_CONVERGED_ITERATING;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Matrix(PetscBool ref, Input input, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, N, N, ref, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 3, NULL));
  for (PetscInt r = 0; r < N; r++) {
    if (input == ZERO || input == NEVER) PetscCall(MatSetValue(*A, r, r, input == ZERO ? 0 : 2, INSERT_VALUES));
    if (input == RESTART) {
      for (PetscInt c = PetscMax(r - 1, 0); c < PetscMin(r + 2, N); c++) PetscCall(MatSetValue(*A, r, c, r == c ? 2.1 + 0.3 * (PetscReal)r : -1.0 / 3, INSERT_VALUES));
    }
    if (input == NEVER && r == 1) PetscCall(MatSetValue(*A, r, 0, 1e-40, INSERT_VALUES));
    if ((input == NILPOTENT || input == TINY) && r > 0 && r < 4) PetscCall(MatSetValue(*A, r, r - 1, r < 3 ? 1 : input == TINY ? 1e-40 : 0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  int                ierr;
  KSPConvergedReason reason;
} End;

static PetscErrorCode Run(PetscBool ref, Input input, PetscBool strict, End *end)
{
  Mat            A;
  Vec            x, b;
  KSP            ksp;
  PC             pc;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(Matrix(ref, input, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  if (input != RESTART) PetscCall(VecSetValue(b, 0, 0.5, INSERT_VALUES));
  else PetscCall(TestFill(b, 1, PETSC_FALSE));
  PetscCall(VecAssemblyBegin(b));
  PetscCall(VecAssemblyEnd(b));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOptionsPrefix(ksp, ref ? "ref_" : "our_"));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, ref ? KSPGMRES : "gpugmres"));
  PetscCall(KSPSetTolerances(ksp, 1e-14, PETSC_DEFAULT, PETSC_DEFAULT, 20));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCNONE));
  if (input == NEVER) PetscCall(KSPSetConvergenceTest(ksp, Never, NULL, NULL));
  if (input == RESTART) {
    PetscCall(KSPGMRESSetRestart(ksp, 4));
    PetscCall(KSPGMRESSetBreakdownTolerance(ksp, 0));
  }
  PetscCall(KSPSetErrorIfNotConverged(ksp, strict));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = KSPSolve(ksp, b, x);
  PetscCall(PetscPopErrorHandler());
  end->ierr = (int)ierr;
  PetscCall(KSPGetConvergedReason(ksp, &end->reason));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt wrong = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(32));
  for (Input input = ZERO; input < INPUTS; input++)
    for (int strict = 0; strict < 2; strict++) {
      End end[2];

      for (int ref = 0; ref < 2; ref++) PetscCall(Run((PetscBool)ref, input, (PetscBool)strict, &end[ref]));
      if (end[0].ierr == end[1].ierr && (strict || end[0].reason == end[1].reason)) continue;
      wrong++;
      PetscCall(PetscFPrintf(PETSC_COMM_WORLD, stderr, "%s%s: error %d, reason %d; KSPGMRES: error %d, reason %d\n", inputs[input], strict ? ", an error if not converged" : "", end[0].ierr, (int)end[0].reason, end[1].ierr, (int)end[1].reason));
    }
  PetscCheck(!wrong, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " ends differ", wrong);
  PetscCall(PetscFinalize());
  return 0;
}

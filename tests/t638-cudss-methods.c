//TEST name="without" fails="Solver type cudss cannot factor this matrix: " gpu=0

/*
  A solve of a factor fails inside each method of PETSc's list: in its first application, or in a later one. No method may end as converged with a wrong solution. After a failure in the first application each
  ends with a reason or an error, and the next solve works. So does the solve after a failed factorization, as soon as the matrix has good values, without KSPSetOperators(). t633-cudss.sh runs this program
  with tests/fake/cudss.c.
*/
#include "testing.h"

#define K 12 /* points a side of the grid */

typedef enum {
  RIGHT,  /* as converged, near the solution */
  ENDED,  /* with a reason or an error */
  SILENT, /* as converged, far from it */
  ENDS
} End;

static PetscErrorCode Solve(KSP ksp, Mat R, Vec b, End *end, char said[], size_t len)
{
  Vec                x, r;
  KSPConvergedReason reason = KSP_CONVERGED_ITERATING;
  PetscErrorCode     ierr;
  PetscReal          norm[2];

  PetscFunctionBegin;
  PetscCall(VecDuplicate(b, &x));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSet(x, 0.0));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = KSPSolve(ksp, b, x);
  PetscCall(PetscPopErrorHandler());
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(MatMult(R, x, r));
  PetscCall(VecAYPX(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &norm[0]));
  PetscCall(VecNorm(b, NORM_2, &norm[1]));
  *end = ierr || reason <= 0 ? ENDED : norm[0] <= 1e-3 * norm[1] ? RIGHT : SILENT;
  PetscCall(PetscSNPrintf(said, len, "error %d, %s, a residual of %g", (int)ierr, KSPConvergedReasons[reason], (double)(norm[0] / norm[1])));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(KSPType type, KSPNormType norm, Mat A, Mat P, KSP *ksp)
{
  PC pc;

  PetscFunctionBegin;
  PetscCall(KSPCreate(PETSC_COMM_SELF, ksp));
  PetscCall(KSPSetOperators(*ksp, A, P));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCLU));
  PetscCall(KSPSetType(*ksp, type));
  PetscCall(KSPSetTolerances(*ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 200));
  if (norm != KSP_NORM_DEFAULT) PetscCall(KSPSetNormType(*ksp, norm));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The factorization fails at a row of zeros, or at NaN. The next solve has good values. PETSc's chebyshev keeps the bounds of eigenvalues from its first set-up */
static PetscErrorCode Spoilt(KSPType type, KSPNormType norm, Mat A, Mat P, Mat R, Vec b, PetscScalar factor)
{
  KSP      ksp;
  End      end;
  char     said[128];
  Mat      good;
  Vec      d;
  PetscInt row = 5;

  PetscFunctionBegin;
  PetscCall(MatDuplicate(P, MAT_COPY_VALUES, &good));
  PetscCall(VecDuplicate(b, &d));
  PetscCall(VecSet(d, 1.0));
  PetscCall(VecSetValues(d, 1, &row, &factor, INSERT_VALUES));
  PetscCall(MatDiagonalScale(P, d, NULL));
  PetscCall(Create(type, norm, A, P, &ksp));
  PetscCall(Solve(ksp, R, b, &end, said, sizeof(said)));
  PetscCall(MatCopy(good, P, SAME_NONZERO_PATTERN));
  PetscCheck(end != SILENT, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, norm %d, a row times %g: %s", type, (int)norm, (double)PetscRealPart(factor), said);
  PetscCall(Solve(ksp, R, b, &end, said, sizeof(said)));
  PetscCheck(end == RIGHT, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, norm %d, after a row times %g: %s", type, (int)norm, (double)PetscRealPart(factor), said);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&d));
  PetscCall(MatDestroy(&good));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ended: the method is one for this system, and has met a failure. PETSc's pipelcg keeps Inf and NaN in its vectors, until KSPReset() */
static PetscErrorCode Method(KSPType type, KSPNormType norm, Mat A, Mat P, Mat R, Vec b, PetscBool *ended)
{
  KSP       ksp;
  End       end;
  char      said[128], fault[32];
  PetscBool works, pipelcg, chebyshev;

  PetscFunctionBegin;
  PetscCall(Create(type, norm, A, P, &ksp));
  PetscCall(Solve(ksp, R, b, &end, said, sizeof(said)));
  PetscCall(KSPDestroy(&ksp));
  *ended = PETSC_FALSE;
  works  = (PetscBool)(end == RIGHT);
  PetscCall(PetscStrcmp(type, KSPPIPELCG, &pipelcg));
  PetscCall(PetscStrcmp(type, KSPCHEBYSHEV, &chebyshev));
  for (int at = 1; at < 5 && works; at++) {
    PetscCall(Create(type, norm, A, P, &ksp));
    PetscCall(KSPSetUp(ksp));
    PetscCall(KSPSetUpOnBlocks(ksp));
    PetscCall(PetscSNPrintf(fault, sizeof(fault), "solve:%d:5", at));
    PetscCall(TestEnv("FAKE_CUDSS_FAIL", fault));
    PetscCall(Solve(ksp, R, b, &end, said, sizeof(said)));
    PetscCall(TestEnv("FAKE_CUDSS_FAIL", NULL));
    PetscCheck(end != SILENT, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, norm %d, a failure in application %d: %s", type, (int)norm, at, said);
    if (at == 1 && end == ENDED) *ended = PETSC_TRUE;
    PetscCall(Solve(ksp, R, b, &end, said, sizeof(said)));
    if (pipelcg && end == ENDED) {
      PetscCall(KSPReset(ksp));
      PetscCall(KSPSetOperators(ksp, A, P));
      PetscCall(Solve(ksp, R, b, &end, said, sizeof(said)));
    }
    PetscCheck(end == RIGHT, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, norm %d, after a failure in application %d: %s", type, (int)norm, at, said);
    PetscCall(KSPDestroy(&ksp));
  }
  if (works && !pipelcg && !chebyshev) PetscCall(Spoilt(type, norm, A, P, R, b, 0.0));
  if (works && !pipelcg && !chebyshev) PetscCall(Spoilt(type, norm, A, P, R, b, (PetscScalar)NAN));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  const char **names;
  char       **types;
  int          n, working = 0;
  Mat          A, P, R;
  Vec          b;
  PetscBool    ended, skip, once;

  PetscFunctionBegin;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestConvection(PETSC_COMM_SELF, K, 0.0, PETSC_FALSE, &A));
  PetscCall(TestConvection(PETSC_COMM_SELF, K, 0.0, PETSC_TRUE, &R));
  PetscCall(MatGetFactor(A, "cudss", MAT_FACTOR_LU, &P)); /* an error without the library */
  PetscCall(MatDestroy(&P));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &P));
  PetscCall(MatShift(P, 0.2)); /* some iterations */
  PetscCall(MatCreateVecs(R, NULL, &b));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(PetscFunctionListGet(KSPList, &names, &n));
  PetscCall(PetscMalloc1(n, &types));
  for (int k = 0; k < n; k++) PetscCall(PetscStrallocpy(names[k], &types[k])); /* a type may be registered later */
  PetscCall(PetscFree(names));
  for (int k = 0; k < n; k++) {
    PetscBool any = PETSC_FALSE;

    PetscCall(PetscStrcmp(types[k], "python", &skip));
    PetscCall(PetscStrcmp(types[k], KSPPREONLY, &once));
    for (int norm = KSP_NORM_DEFAULT; norm <= (int)KSP_NORM_NATURAL && !skip; norm++) {
      if (norm == KSP_NORM_NONE) continue; /* ends after a number of iterations, whatever the residual */
      PetscCall(Method(types[k], (KSPNormType)norm, A, once ? A : P, R, b, &ended));
      any = (PetscBool)(any || ended);
    }
    if (any) working++;
    else PetscCall(PetscPrintf(PETSC_COMM_SELF, "does not apply the preconditioner, or does not solve the system: %s\n", types[k]));
  }
  PetscCheck(working >= 36, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d methods of %d meet the failure", working, n);
  for (int k = 0; k < n; k++) PetscCall(PetscFree(types[k]));
  PetscCall(PetscFree(types));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&P));
  PetscCall(MatDestroy(&R));
  PetscCall(PetscFinalize());
  return 0;
}

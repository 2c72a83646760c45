//TEST name="without" args="-what ksp"
//TEST name="without.standin" args="-what ksp -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda" gpu=0
//TEST name="asked" args="-what ksp -pc_factor_mat_solver_type cudss" fails="Solver type cudss cannot factor this matrix: " gpu=0

/*
  Factors of solver type cudss: tests/fake/cudss.c makes them where t633-cudss.sh runs this program, and the library itself on a GPU. Solutions must meet the bound of a backward stable solver. Covered are
  new values and patterns, inertia, singular matrices, Inf and NaN, refused solutions, memory, failures of each function of the library, and preconditioners of several ranks around the factors. Without
  the library PETSc factors.
*/
#include "testing.h"

/* How: 0 unsymmetric, 1 positive definite, 2 symmetric and indefinite, 3 the same with zeros on the diagonal of the last third */
static PetscErrorCode Make(PetscInt how, PetscInt k, PetscReal factor, PetscBool ref, Mat *A)
{
  Vec d;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_SELF, k, how ? 0.0 : 0.3, ref, A));
  if (how >= 2) {
    PetscCall(MatCreateVecs(*A, &d, NULL));
    PetscCall(MatGetDiagonal(*A, d));
    for (PetscInt r = 0; r < k * k; r++) PetscCall(VecSetValue(d, r, how == 3 && r >= 2 * k * k / 3 ? 0.0 : r % 3 ? 4.0 : -4.0, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(d));
    PetscCall(VecAssemblyEnd(d));
    PetscCall(MatDiagonalSet(*A, d, INSERT_VALUES));
    PetscCall(VecDestroy(&d));
    PetscCall(MatSetOption(*A, MAT_SPD, PETSC_FALSE));
    PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_TRUE));
  }
  PetscCall(MatScale(*A, factor));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Factor(Mat A, PetscBool cholesky, const char type[], Mat *F)
{
  MatFactorInfo info;
  MatSolverType is;
  PetscBool     same;
  IS            row, col;

  PetscFunctionBegin;
  PetscCall(MatFactorInfoInitialize(&info));
  info.zeropivot = 100 * PETSC_MACHINE_EPSILON;
  info.fill      = 5;
  if (!*F) {
    PetscCall(MatGetOrdering(A, MATORDERINGNATURAL, &row, &col));
    PetscCall(MatGetFactor(A, type, cholesky ? MAT_FACTOR_CHOLESKY : MAT_FACTOR_LU, F));
    PetscCall(MatFactorGetSolverType(*F, &is));
    PetscCall(PetscStrcmp(is, type ? type : "cudss", &same));
    PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The factor is of solver type %s, not %s", is, type ? type : "cudss");
    if (cholesky) PetscCall(MatCholeskyFactorSymbolic(*F, A, row, &info));
    else PetscCall(MatLUFactorSymbolic(*F, A, row, col, &info));
    PetscCall(ISDestroy(&row));
    PetscCall(ISDestroy(&col));
  }
  if (cholesky) PetscCall(MatCholeskyFactorNumeric(*F, A, &info));
  else PetscCall(MatLUFactorNumeric(*F, A, &info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* |b - A x| <= c eps (|A| |x| + |b|) in the maximum norm, or with the transpose; the solver may be as good as -mat_gpucsr_cudss_error */
static PetscErrorCode Right(Mat R, PetscBool transposed, Vec b, Vec x, PetscReal most, const char where[])
{
  Vec       y, c, r;
  PetscReal n[4];

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(R, &y, &c));
  PetscCall(VecDuplicate(c, &r));
  PetscCall(VecCopy(x, y));
  PetscCall(VecCopy(b, c));
  if (transposed) PetscCall(MatMultTranspose(R, y, r));
  else PetscCall(MatMult(R, y, r));
  PetscCall(VecAXPY(r, -1.0, c));
  PetscCall(VecNorm(r, NORM_INFINITY, &n[0]));
  PetscCall(VecNorm(y, NORM_INFINITY, &n[1]));
  PetscCall(VecNorm(c, NORM_INFINITY, &n[2]));
  PetscCall(MatNorm(R, transposed ? NORM_1 : NORM_INFINITY, &n[3]));
  PetscCheck(n[0] <= most * (n[3] * n[1] + n[2]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: a residual of %g, of at most %g (a solution of size %g; Inf: refused)", where, (double)n[0], (double)(most * (n[3] * n[1] + n[2])), (double)n[1]);
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&c));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define STABLE (4 * TEST_C * PETSC_MACHINE_EPSILON)

static PetscErrorCode Solutions(Mat A, Mat R, Mat F, PetscReal most, const char where[])
{
  Vec      b, x, c, z;
  Mat      B, X;
  PetscInt n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(x, &z));
  PetscCall(VecDuplicate(b, &c));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  for (PetscInt again = 0; again < 2; again++) {
    PetscCall(MatSolve(F, b, x));
    PetscCall(Right(R, PETSC_FALSE, b, x, most, where));
    PetscCall(MatSolveTranspose(F, b, x));
    PetscCall(Right(R, PETSC_TRUE, b, x, most, where));
  }
  PetscCall(TestFill(c, 4, PETSC_FALSE));
  PetscCall(VecCopy(c, z));
  PetscCall(MatSolveAdd(F, b, z, x));
  PetscCall(VecAXPY(x, -1.0, z));
  PetscCall(Right(R, PETSC_FALSE, b, x, 100 * most, where)); /* the sum has lost some digits */
  for (PetscInt k = 1; k < 90; k += 69) {
    PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, n, k, NULL, &B));
    PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, n, k, NULL, &X));
    for (PetscInt q = 0; q < k; q++) {
      Vec v;

      PetscCall(MatDenseGetColumnVecWrite(B, q, &v));
      PetscCall(TestFill(v, q, PETSC_FALSE));
      PetscCall(MatDenseRestoreColumnVecWrite(B, q, &v));
    }
    for (PetscInt transposed = 0; transposed < 2; transposed++) {
      if (transposed) PetscCall(MatMatSolveTranspose(F, B, X));
      else PetscCall(MatMatSolve(F, B, X));
      for (PetscInt q = 0; q < k; q++) {
        Vec v, w;

        PetscCall(MatDenseGetColumnVecRead(B, q, &v));
        PetscCall(MatDenseGetColumnVecRead(X, q, &w));
        PetscCall(Right(R, (PetscBool)transposed, v, w, most, where));
        PetscCall(MatDenseRestoreColumnVecRead(B, q, &v));
        PetscCall(MatDenseRestoreColumnVecRead(X, q, &w));
      }
    }
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&X));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solves(PetscReal size)
{
  PetscInt only = -1;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-how", &only, NULL));
  for (PetscInt how = only < 0 ? 0 : only; how < (only < 0 ? 4 : only + 1); how++)
    for (PetscInt cholesky = 0; cholesky < (how ? 2 : 1); cholesky++) {
      Mat            A, R, F = NULL, G = NULL;
      MatFactorError error;
      char           where[96];

      PetscCall(Make(how, 12, size, PETSC_FALSE, &A));
      PetscCall(Make(how, 12, size, PETSC_TRUE, &R));
      for (PetscInt value = 0; value < 3; value++) { /* as made, new values, a new pattern */
        PetscCall(PetscSNPrintf(where, sizeof(where), "kind %" PetscInt_FMT ", %s, values %" PetscInt_FMT " of size %g", how, cholesky ? "Cholesky" : "LU", value, (double)size));
        if (value == 1) PetscCall(MatScale(A, 3.0));
        if (value == 1) PetscCall(MatScale(R, 3.0));
        for (PetscInt k = 0; k < 2 && value == 2; k++) {
          Mat M = k ? R : A;

          PetscCall(MatSetOption(M, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
          PetscCall(MatSetValue(M, 0, 143, 0.5 * size, INSERT_VALUES));
          PetscCall(MatSetValue(M, 143, 0, 0.5 * size, INSERT_VALUES));
          PetscCall(MatAssemblyBegin(M, MAT_FINAL_ASSEMBLY));
          PetscCall(MatAssemblyEnd(M, MAT_FINAL_ASSEMBLY));
        }
        PetscCall(Factor(A, (PetscBool)cholesky, "cudss", &F));
        PetscCall(MatFactorGetError(F, &error));
        PetscCheck(!error, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the factorization ends with %s", where, PCFailedReasons[error]);
        PetscCall(Solutions(A, R, F, STABLE, where));
        if (cholesky && how < 3) {
          PetscInt n[2][3];

          PetscCall(MatDestroy(&G));
          PetscCall(Factor(R, PETSC_TRUE, "petsc", &G));
          PetscCall(MatGetInertia(F, &n[0][0], &n[0][1], &n[0][2]));
          PetscCall(MatGetInertia(G, &n[1][0], &n[1][1], &n[1][2]));
          for (int k = 0; k < 3; k++)
            PetscCheck(n[0][k] == n[1][k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: inertia %" PetscInt_FMT " %" PetscInt_FMT " %" PetscInt_FMT ", of PETSc %" PetscInt_FMT " %" PetscInt_FMT " %" PetscInt_FMT, where, n[0][0], n[0][1], n[0][2], n[1][0], n[1][1], n[1][2]);
        }
      }
      PetscCall(MatScale(A, -1.0)); /* the factor is of the old values */
      PetscCall(Solutions(A, R, F, STABLE, where));
      PetscCall(MatDestroy(&F));
      PetscCall(MatDestroy(&G));
      PetscCall(MatDestroy(&A));
      PetscCall(MatDestroy(&R));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve by KSP with the options; right: the solution must be */
static PetscErrorCode Solve(KSP ksp, Mat A, Mat R, Vec b, PetscBool right, KSPConvergedReason *reason, const char where[])
{
  Vec       x;
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(b, &x));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, reason));
  PetscCall(VecNorm(x, NORM_INFINITY, &norm));
  if (right) PetscCheck(*reason > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: ends with %s", where, KSPConvergedReasons[*reason]);
  if (*reason > 0) PetscCall(Right(R, PETSC_FALSE, b, x, 1e-10, where));
  else PetscCheck(!(norm < PETSC_MAX_REAL), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: ends with %s and a solution", where, KSPConvergedReasons[*reason]);
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  Mat A, R;
  Vec b;
  KSP ksp;
} Case;

static PetscErrorCode Begin(PetscInt how, PetscReal factor, Case *c)
{
  PC pc;

  PetscFunctionBegin;
  PetscCall(Make(how, 12, factor, PETSC_FALSE, &c->A));
  PetscCall(Make(how, 12, factor, PETSC_TRUE, &c->R));
  PetscCall(MatCreateVecs(c->A, NULL, &c->b));
  PetscCall(TestFill(c->b, 3, PETSC_FALSE));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &c->ksp));
  PetscCall(KSPSetType(c->ksp, KSPPREONLY));
  PetscCall(KSPGetPC(c->ksp, &pc));
  PetscCall(PCSetType(pc, PCLU));
  PetscCall(KSPSetFromOptions(c->ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode End(Case *c)
{
  PetscFunctionBegin;
  PetscCall(KSPDestroy(&c->ksp));
  PetscCall(VecDestroy(&c->b));
  PetscCall(MatDestroy(&c->A));
  PetscCall(MatDestroy(&c->R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Expect(KSPConvergedReason reason, KSPConvergedReason wanted, const char where[])
{
  PetscFunctionBegin;
  PetscCheck(reason == wanted, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: ends with %s, not with %s", where, KSPConvergedReasons[reason], KSPConvergedReasons[wanted]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solutions that refinement mends. Other wrong solutions are refused until they are right again */
static PetscErrorCode Refused(void)
{
  Case               c;
  KSPConvergedReason reason;
  Mat                F = NULL;

  PetscFunctionBegin;
  PetscCall(Begin(0, 1.0, &c));
  PetscCall(Factor(c.A, PETSC_FALSE, "cudss", &F));
  PetscCall(TestEnv("FAKE_CUDSS_WRONG", "1e-3"));
  PetscCall(Solutions(c.A, c.R, F, STABLE, "an error of 1e-3"));
  PetscCall(MatDestroy(&F));
  PetscCall(TestEnv("FAKE_CUDSS_WRONG", "1e-6"));
  PetscCall(Solve(c.ksp, c.A, c.R, c.b, PETSC_TRUE, &reason, "an error of 1e-6"));
  PetscCall(TestEnv("FAKE_CUDSS_WRONG", "2"));
  PetscCall(Solve(c.ksp, c.A, c.R, c.b, PETSC_FALSE, &reason, "an error of 2"));
  PetscCall(Expect(reason, KSP_DIVERGED_PC_FAILED, "an error of 2"));
  PetscCall(TestEnv("FAKE_CUDSS_WRONG", NULL));
  PetscCall(Solve(c.ksp, c.A, c.R, c.b, PETSC_TRUE, &reason, "right again"));
  PetscCall(VecSetValue(c.b, 3, (PetscScalar)NAN, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(c.b));
  PetscCall(VecAssemblyEnd(c.b));
  PetscCall(Solve(c.ksp, c.A, c.R, c.b, PETSC_FALSE, &reason, "NaN in b"));
  PetscCall(Expect(reason, KSP_DIVERGED_PC_FAILED, "NaN in b"));
  PetscCall(TestFill(c.b, 3, PETSC_FALSE));
  PetscCall(Solve(c.ksp, c.A, c.R, c.b, PETSC_TRUE, &reason, "after NaN in b"));
  PetscCall(End(&c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* |b - (A11 - A10 A00^-1 A01) x|, which a method measures with solves of its own. inner: the solver type of A00's */
static PetscErrorCode SchurMake(PetscBool ref, const char inner[], Mat *S)
{
  Mat      A, B[4];
  IS       is[2];
  KSP      ksp;
  PC       pc;
  PetscInt n = 144;

  PetscFunctionBegin;
  PetscCall(Make(0, 12, 1.0, ref, &A));
  for (int k = 0; k < 2; k++) PetscCall(ISCreateStride(PETSC_COMM_SELF, n / 2, k * n / 2, 1, &is[k]));
  for (int k = 0; k < 4; k++) PetscCall(MatCreateSubMatrix(A, is[k / 2], is[k % 2], MAT_INITIAL_MATRIX, &B[k]));
  PetscCall(MatCreateSchurComplement(B[0], B[0], B[1], B[2], B[3], S));
  PetscCall(MatSchurComplementGetKSP(*S, &ksp));
  PetscCall(KSPSetType(ksp, KSPPREONLY));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCLU));
  PetscCall(PCFactorSetMatSolverType(pc, inner));
  for (int k = 0; k < 4; k++) PetscCall(MatDestroy(&B[k]));
  for (int k = 0; k < 2; k++) PetscCall(ISDestroy(&is[k]));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A method looks at residuals of a product that hides solves: the solves are checked */
static PetscErrorCode Hidden(void)
{
  Mat       S, R;
  Vec       b, x, c, y, r;
  KSP       ksp;
  PC        pc;
  PetscReal norm[2];

  PetscFunctionBegin;
  PetscCall(SchurMake(PETSC_FALSE, "cudss", &S));
  PetscCall(SchurMake(PETSC_TRUE, "petsc", &R));
  PetscCall(MatCreateVecs(S, &x, &b));
  PetscCall(MatCreateVecs(R, &y, &c));
  PetscCall(VecDuplicate(c, &r));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(TestEnv("FAKE_CUDSS_WRONG", "1e-6"));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, S, S));
  PetscCall(KSPSetType(ksp, KSPFGMRES));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCNONE));
  PetscCall(KSPSetTolerances(ksp, 1e-11, PETSC_DEFAULT, PETSC_DEFAULT, 500));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(TestEnv("FAKE_CUDSS_WRONG", NULL));
  PetscCall(VecCopy(x, y));
  PetscCall(VecCopy(b, c));
  PetscCall(MatMult(R, y, r));
  PetscCall(VecAXPY(r, -1.0, c));
  PetscCall(VecNorm(r, NORM_2, &norm[0]));
  PetscCall(VecNorm(c, NORM_2, &norm[1]));
  PetscCheck(norm[0] <= 1e-9 * norm[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "A Schur complement: a relative residual of %g", (double)(norm[0] / norm[1]));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&c));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&S));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* No rows; an inertia of doubtful factors; an analysis of outdated values */
static PetscErrorCode Rare(void)
{
  Case               c;
  KSPConvergedReason reason;
  Mat                A, F = NULL;
  Vec                x, b;
  KSP                ksp;
  PC                 pc;
  PetscInt           n[3], m[3];
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_SELF, 0, 0, PETSC_FALSE, &A));
  PetscCall(MatSetUp(A));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPPREONLY));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCLU));
  PetscCall(PCFactorSetMatSolverType(pc, "cudss"));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCheck(reason > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No rows: ends with %s", KSPConvergedReasons[reason]);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));

  PetscCall(Make(2, 12, 1.0, PETSC_FALSE, &A));
  PetscCall(Factor(A, PETSC_TRUE, "cudss", &F));
  PetscCall(TestEnv("FAKE_CUDSS_WRONG", "2"));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatGetInertia(F, &n[0], &n[1], &n[2]);
  PetscCall(PetscPopErrorHandler());
  PetscCall(TestEnv("FAKE_CUDSS_WRONG", NULL));
  PetscCheck(ierr == PETSC_ERR_LIB, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The inertia of poor factors: error %d", (int)ierr);
  PetscCall(MatGetInertia(F, &n[0], &n[1], &n[2]));
  PetscCall(TestEnv("FAKE_CUDSS_STALE", "2"));
  PetscCall(MatScale(A, -1.0));
  PetscCall(Factor(A, PETSC_TRUE, "cudss", &F));
  PetscCall(MatGetInertia(F, &m[0], &m[1], &m[2]));
  PetscCall(TestEnv("FAKE_CUDSS_STALE", NULL));
  PetscCheck(m[0] == n[2] && m[1] == n[1] && m[2] == n[0], PETSC_COMM_SELF, PETSC_ERR_PLIB, "The inertia of -A with an old analysis: %" PetscInt_FMT " %" PetscInt_FMT " %" PetscInt_FMT, m[0], m[1], m[2]);
  PetscCall(TestEnv("FAKE_CUDSS_WITHOUT", "3"));
  PetscCall(Factor(A, PETSC_TRUE, "cudss", &F));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatGetInertia(F, &n[0], &n[1], &n[2]);
  PetscCall(PetscPopErrorHandler());
  PetscCall(TestEnv("FAKE_CUDSS_WITHOUT", NULL));
  PetscCheck(ierr == PETSC_ERR_SUP, PETSC_COMM_SELF, PETSC_ERR_PLIB, "An inertia that the library does not say: error %d", (int)ierr);
  PetscCall(MatDestroy(&F));
  PetscCall(MatDestroy(&A));

  PetscCall(TestEnv("FAKE_CUDSS_STALE", "2"));
  PetscCall(Begin(0, 1.0, &c));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(Solve(c.ksp, c.A, c.R, c.b, PETSC_TRUE, &reason, "an old analysis"));
    PetscCall(MatScale(c.A, 2.0));
    PetscCall(MatScale(c.R, 2.0));
  }
  PetscCall(MatDuplicate(c.A, MAT_COPY_VALUES, &A));
  PetscCall(MatCreateVecs(A, &x, NULL));
  PetscCall(VecSet(x, 1.0));
  PetscCall(VecSetValue(x, 5, 0.0, INSERT_VALUES));
  PetscCall(MatDiagonalScale(c.A, NULL, x));
  PetscCall(Solve(c.ksp, c.A, c.R, c.b, PETSC_FALSE, &reason, "a column of zeros"));
  PetscCall(Expect(reason, KSP_DIVERGED_PC_FAILED, "a column of zeros"));
  PetscCall(MatCopy(A, c.A, SAME_NONZERO_PATTERN));
  PetscCall(Solve(c.ksp, c.A, c.R, c.b, PETSC_TRUE, &reason, "the analysis of a singular matrix"));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscCall(End(&c));
  PetscCall(TestEnv("FAKE_CUDSS_STALE", NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Matrices without factors, and then the same solver with a good matrix */
static PetscErrorCode Singular(void)
{
  KSPConvergedReason reason;
  PCFailedReason     why;
  PC                 pc;

  PetscFunctionBegin;
  for (PetscInt what = 0; what < 4; what++) {
    Case        c;
    Mat         S;
    const char *where[] = {"a row that is another row", "a row of zeros", "a row without entries", "NaN in the matrix"};
    PetscInt    row     = 5;

    PetscCall(Begin(0, 1.0, &c));
    PetscCall(TestMatCreate(PETSC_COMM_SELF, 144, 144, PETSC_FALSE, &S));
    PetscCall(MatSeqAIJSetPreallocation(S, 6, NULL));
    for (PetscInt r = 0; r < 144; r++) {
      PetscInt           n;
      const PetscInt    *col;
      const PetscScalar *v;

      if (what == 2 && r == row) continue;
      PetscCall(MatGetRow(c.R, what == 0 && r == row ? 7 : r, &n, &col, &v));
      PetscCall(MatSetValues(S, 1, &r, n, col, v, INSERT_VALUES));
      PetscCall(MatRestoreRow(c.R, what == 0 && r == row ? 7 : r, &n, &col, &v));
    }
    if (what == 3) PetscCall(MatSetValue(S, row, row, (PetscScalar)NAN, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(S, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(S, MAT_FINAL_ASSEMBLY));
    PetscCall(MatSetOption(S, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
    if (what == 1) PetscCall(MatZeroRows(S, 1, &row, 0.0, NULL, NULL));
    PetscCall(Solve(c.ksp, S, c.R, c.b, PETSC_FALSE, &reason, where[what]));
    PetscCall(Expect(reason, KSP_DIVERGED_PC_FAILED, where[what]));
    PetscCall(KSPGetPC(c.ksp, &pc));
    PetscCall(PCGetFailedReason(pc, &why));
    PetscCheck(why == (what == 2 ? PC_FACTOR_STRUCT_ZEROPIVOT : what == 3 ? PC_FACTOR_OTHER : PC_FACTOR_NUMERIC_ZEROPIVOT), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the PC says %s", where[what], PCFailedReasons[why]);
    PetscCall(Solve(c.ksp, c.A, c.R, c.b, PETSC_TRUE, &reason, "the solve after"));
    PetscCall(MatDestroy(&S));
    PetscCall(End(&c));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Factors that do not fit the device go to host memory, or nowhere */
static PetscErrorCode Memory(void)
{
  Case               c;
  KSPConvergedReason reason;
  PCFailedReason     why;
  PC                 pc;

  PetscFunctionBegin;
  for (PetscInt what = 0; what < 3; what++) {
    PetscCall(TestEnv("FAKE_CUDSS_BYTES", "1000000000000000"));
    PetscCall(TestEnv("FAKE_CUDSS_HYBRID", what == 1 ? "1000000000000000" : "1000"));
    if (what == 2) PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_cudss_hybrid", "never"));
    PetscCall(Begin(0, 1.0, &c));
    PetscCall(Solve(c.ksp, c.A, c.R, c.b, (PetscBool)!what, &reason, "no room"));
    PetscCall(KSPGetPC(c.ksp, &pc));
    PetscCall(PCGetFailedReason(pc, &why));
    PetscCheck(why == (what ? PC_FACTOR_OUTMEMORY : PC_NOERROR), PETSC_COMM_SELF, PETSC_ERR_PLIB, "No room, case %" PetscInt_FMT ": the PC says %s", what, PCFailedReasons[why]);
    PetscCall(End(&c));
    PetscCall(PetscOptionsClearValue(NULL, "-mat_gpucsr_cudss_hybrid"));
    PetscCall(TestEnv("FAKE_CUDSS_BYTES", NULL));
    PetscCall(TestEnv("FAKE_CUDSS_HYBRID", NULL));
  }
  PetscCall(Begin(0, 1.0, &c));
  PetscCall(TestEnv("FAKE_CUDSS_COLUMNS", "0"));
  PetscCall(Solve(c.ksp, c.A, c.R, c.b, PETSC_FALSE, &reason, "no room for a solve"));
  PetscCall(TestEnv("FAKE_CUDSS_COLUMNS", NULL));
  PetscCall(KSPGetPC(c.ksp, &pc));
  PetscCall(PCGetFailedReason(pc, &why));
  PetscCheck(why == PC_FACTOR_OUTMEMORY, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No room for a solve: the PC says %s", PCFailedReasons[why]);
  PetscCall(Solve(c.ksp, c.A, c.R, c.b, PETSC_TRUE, &reason, "room again"));
  PetscCall(End(&c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Three factorizations, one of which may meet a fault */
static PetscErrorCode Faults(PetscBool *failed)
{
  Case               c;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  *failed = PETSC_FALSE;
  PetscCall(Begin(1, 1.0, &c));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(Solve(c.ksp, c.A, c.R, c.b, *failed, &reason, *failed ? "after a fault" : "with a fault"));
    if (reason < 0) *failed = PETSC_TRUE;
    PetscCall(MatScale(c.A, 2.0));
    PetscCall(MatScale(c.R, 2.0));
  }
  PetscCall(End(&c));
  PetscCall(TestEnv("FAKE_CUDSS_FAIL", NULL));
  PetscCall(Begin(1, 1.0, &c));
  PetscCall(Solve(c.ksp, c.A, c.R, c.b, PETSC_TRUE, &reason, "after a fault"));
  PetscCall(End(&c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of several ranks has no factor of cuDSS, and by default that of MATMPIAIJ */
static PetscErrorCode Default(Mat A, Mat R)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (MatFactorType type = MAT_FACTOR_LU; type <= MAT_FACTOR_CHOLESKY; type++) {
    Mat           F, G;
    MatSolverType is[2];
    PetscBool     yes, same;

    PetscCall(MatGetFactorAvailable(A, "cudss", type, &yes));
    PetscCheck(yes == (PetscBool)(size == 1), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "On %d ranks a factor of cuDSS is %savailable", (int)size, yes ? "" : "not ");
    PetscCall(MatGetFactorAvailable(R, NULL, type, &yes));
    if (size == 1 || !yes) continue;
    PetscCall(MatGetFactor(A, NULL, type, &F));
    PetscCall(MatGetFactor(R, NULL, type, &G));
    PetscCall(MatFactorGetSolverType(F, &is[0]));
    PetscCall(MatFactorGetSolverType(G, &is[1]));
    PetscCall(PetscStrcmp(is[0], is[1], &same));
    PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "On %d ranks the default is %s, with MATMPIAIJ %s", (int)size, is[0], is[1]);
    PetscCall(MatDestroy(&F));
    PetscCall(MatDestroy(&G));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* NaN in a row of the first rank */
static PetscErrorCode Spoil(Mat A)
{
  Vec d;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, NULL, &d));
  PetscCall(VecSet(d, 1.0));
  PetscCall(VecSetValue(d, 0, (PetscScalar)NAN, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(d));
  PetscCall(VecAssemblyEnd(d));
  PetscCall(MatDiagonalScale(A, d, NULL));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All ranks must know of a failure */
static PetscErrorCode Fails(KSP ksp, Vec b, Vec x, const char where[])
{
  KSPConvergedReason reason;
  int                most;

  PetscFunctionBegin;
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  most = (int)reason;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
  PetscCheck(most < 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: ends with %s on a rank", where, KSPConvergedReasons[most]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Preconditioners around factors, on all ranks: a solve with NaN in b, one with NaN in A, and one without, all without KSPSetOperators() */
static PetscErrorCode Ranks(void)
{
  Mat       A, R, good;
  Vec       b, x, y, r;
  KSP       ksp;
  PetscReal norm[2];

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_WORLD, 14, 0.3, PETSC_FALSE, &A));
  PetscCall(TestConvection(PETSC_COMM_WORLD, 14, 0.3, PETSC_TRUE, &R));
  PetscCall(Default(A, R));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(MatCreateVecs(R, &y, &r));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetTolerances(ksp, 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, 300));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(VecSetValue(b, 0, (PetscScalar)NAN, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(b));
  PetscCall(VecAssemblyEnd(b));
  PetscCall(Fails(ksp, b, x, "NaN in b"));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &good));
  PetscCall(Spoil(A));
  PetscCall(Fails(ksp, b, x, "NaN in A"));
  PetscCall(MatCopy(good, A, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&good));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(VecCopy(x, y));
  PetscCall(MatMult(R, y, r));
  PetscCall(VecCopy(b, y));
  PetscCall(VecAXPY(r, -1.0, y));
  PetscCall(VecNorm(r, NORM_2, &norm[0]));
  PetscCall(VecNorm(y, NORM_2, &norm[1]));
  PetscCheck(norm[0] <= 1e-8 * norm[1], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "A relative residual of %g", (double)(norm[0] / norm[1]));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char      what[16] = "solves";
  PetscBool is, failed = PETSC_FALSE, must = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-what", what, sizeof(what), NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-must_fail", &must, NULL));
  PetscCall(PetscStrcmp(what, "solves", &is));
  if (is) PetscCall(Solves(1.0));
  if (is) PetscCall(Solves(1e-20)); /* smaller than the numbers that the library takes for zero pivots */
  PetscCall(PetscStrcmp(what, "refused", &is));
  if (is) PetscCall(Refused());
  PetscCall(PetscStrcmp(what, "rare", &is));
  if (is) PetscCall(Hidden());
  if (is) PetscCall(Rare());
  PetscCall(PetscStrcmp(what, "singular", &is));
  if (is) PetscCall(Singular());
  PetscCall(PetscStrcmp(what, "memory", &is));
  if (is) PetscCall(Memory());
  PetscCall(PetscStrcmp(what, "faults", &is));
  if (is) PetscCall(Faults(&failed));
  if (is) PetscCheck(failed || !must, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No solve has met the fault");
  PetscCall(PetscStrcmp(what, "ranks", &is));
  if (is) PetscCall(Ranks());
  PetscCall(PetscStrcmp(what, "ksp", &is));
  if (is) {
    Case               c;
    KSPConvergedReason reason;

    PetscCall(Begin(0, 1.0, &c));
    PetscCall(Solve(c.ksp, c.A, c.R, c.b, PETSC_TRUE, &reason, "one solve"));
    PetscCall(End(&c));
  }
  PetscCall(PetscFinalize());
  return 0;
}

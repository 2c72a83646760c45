//TEST name="without" fails="Solver type cudss cannot factor this matrix: " gpu=0

/*
  Schur complements of factors of solver type cudss. t633-cudss.sh runs this program, with tests/fake/cudss.c, or on a GPU with the library itself. S must be near A22 - A21 A11^-1 A12 of PETSc's dense
  factors, and solutions of the whole system must meet the bound of a backward stable solver.
*/
#include "testing.h"

#define K 12 /* points a side of the grid */
#define N (K * K)

/* 0 unsymmetric, 1 positive definite, 2 symmetric and indefinite */
static PetscErrorCode Make(PetscInt how, PetscBool ref, Mat *A)
{
  Vec d;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_SELF, K, how ? 0.0 : 0.3, ref, A));
  if (how == 2) {
    PetscCall(MatCreateVecs(*A, &d, NULL));
    for (PetscInt r = 0; r < N; r++) PetscCall(VecSetValue(d, r, r % 3 ? 4.5 : -4.5, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(d));
    PetscCall(VecAssemblyEnd(d));
    PetscCall(MatDiagonalSet(*A, d, INSERT_VALUES));
    PetscCall(VecDestroy(&d));
    PetscCall(MatSetOption(*A, MAT_SPD, PETSC_FALSE));
    PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_TRUE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Which rows: the last ones, some in descending order, one, all but one, none */
#define SETS 5
static PetscErrorCode Rows(PetscInt which, IS *is)
{
  PetscInt *r, n = 0;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(N, &r));
  for (PetscInt k = N; k-- > 0;) {
    const PetscInt row = which == 1 ? k : N - 1 - k;

    if (which == 0 ? row >= N - K : which == 1 ? row % 7 == 3 : which == 2 ? row == N / 2 : which == 3 && row != N / 3) r[n++] = row;
  }
  PetscCall(ISCreateGeneral(PETSC_COMM_SELF, n, r, PETSC_OWN_POINTER, is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Begin(Mat A, PetscBool cholesky, IS is, Mat *F)
{
  MatFactorInfo info;

  PetscFunctionBegin;
  PetscCall(MatFactorInfoInitialize(&info));
  PetscCall(MatGetFactor(A, "cudss", cholesky ? MAT_FACTOR_CHOLESKY : MAT_FACTOR_LU, F));
  if (is) PetscCall(MatFactorSetSchurIS(*F, is));
  if (cholesky) PetscCall(MatCholeskyFactorSymbolic(*F, A, NULL, &info));
  else PetscCall(MatLUFactorSymbolic(*F, A, NULL, NULL, &info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Numeric(Mat F, Mat A, PetscBool cholesky, MatFactorError expected, const char where[])
{
  MatFactorInfo  info;
  MatFactorError error;

  PetscFunctionBegin;
  PetscCall(MatFactorInfoInitialize(&info));
  if (cholesky) PetscCall(MatCholeskyFactorNumeric(F, A, &info));
  else PetscCall(MatLUFactorNumeric(F, A, &info));
  PetscCall(MatFactorGetError(F, &error));
  PetscCheck(error == expected, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the factorization ends with %s, not %s", where, PCFailedReasons[error], PCFailedReasons[expected]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Block(Mat R, IS rows, IS columns, Mat *D)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatCreateSubMatrix(R, rows, columns, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatConvert(B, MATSEQDENSE, MAT_INITIAL_MATRIX, D));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* S of PETSc's dense factors, and its size: |A22| + |A21| |A11^-1 A12| */
static PetscErrorCode Reference(Mat R, IS is, Mat *S, PetscReal *size)
{
  IS        rest, sorted;
  Mat       A11, A12, A21, X, P;
  PetscReal n[3];

  PetscFunctionBegin;
  PetscCall(ISDuplicate(is, &sorted));
  PetscCall(ISSort(sorted));
  PetscCall(ISComplement(sorted, 0, N, &rest));
  PetscCall(Block(R, is, is, S));
  PetscCall(Block(R, rest, rest, &A11));
  PetscCall(Block(R, rest, is, &A12));
  PetscCall(Block(R, is, rest, &A21));
  PetscCall(MatDuplicate(A12, MAT_DO_NOT_COPY_VALUES, &X));
  PetscCall(MatLUFactor(A11, NULL, NULL, NULL));
  PetscCall(MatMatSolve(A11, A12, X));
  PetscCall(MatMatMult(A21, X, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &P));
  PetscCall(MatNorm(*S, NORM_INFINITY, &n[0]));
  PetscCall(MatNorm(A21, NORM_INFINITY, &n[1]));
  PetscCall(MatNorm(X, NORM_INFINITY, &n[2]));
  *size = n[0] + n[1] * n[2];
  PetscCall(MatAXPY(*S, -1.0, P, SAME_NONZERO_PATTERN));
  PetscCall(MatDestroy(&A11));
  PetscCall(MatDestroy(&A12));
  PetscCall(MatDestroy(&A21));
  PetscCall(MatDestroy(&X));
  PetscCall(MatDestroy(&P));
  PetscCall(ISDestroy(&rest));
  PetscCall(ISDestroy(&sorted));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* |b - A x| <= c eps (|A| |x| + |b|) in the maximum norm */
static PetscErrorCode Right(Mat R, PetscBool transposed, Vec b, Vec x, const char where[])
{
  Vec       r;
  PetscReal n[4];

  PetscFunctionBegin;
  PetscCall(VecDuplicate(b, &r));
  if (transposed) PetscCall(MatMultTranspose(R, x, r));
  else PetscCall(MatMult(R, x, r));
  PetscCall(VecAXPY(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_INFINITY, &n[0]));
  PetscCall(VecNorm(x, NORM_INFINITY, &n[1]));
  PetscCall(VecNorm(b, NORM_INFINITY, &n[2]));
  PetscCall(MatNorm(R, transposed ? NORM_1 : NORM_INFINITY, &n[3]));
  PetscCheck(n[0] <= 16 * TEST_C * PETSC_MACHINE_EPSILON * (n[3] * n[1] + n[2]), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: a residual of %g with a solution of size %g", where, (double)n[0], (double)n[1]);
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* expression must end with this error of PETSc */
#define Expect(error, expression) \
  do { \
    PetscErrorCode e_; \
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL)); \
    e_ = (expression); \
    PetscCall(PetscPopErrorHandler()); \
    PetscCheck(e_ == (error), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: error %d, not %d", #expression, (int)e_, (int)(error)); \
  } while (0)

/* Solutions with S, which must be as factored or inverted in F, and with the whole */
static PetscErrorCode Solutions(Mat F, Mat R, Mat S, PetscBool transposes, const char where[])
{
  Vec      b, x, c, y;
  Mat      B, X;
  PetscInt m;

  PetscFunctionBegin;
  PetscCall(MatGetSize(S, &m, NULL));
  PetscCall(MatCreateVecs(R, &x, &b));
  PetscCall(MatCreateVecs(S, &y, &c));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(TestFill(c, 4, PETSC_FALSE));
  for (PetscInt transposed = 0; transposed < 2; transposed++) {
    if (transposed && !transposes) Expect(PETSC_ERR_SUP, MatSolveTranspose(F, b, x));
    else {
      if (transposed) PetscCall(MatSolveTranspose(F, b, x));
      else PetscCall(MatSolve(F, b, x));
      PetscCall(Right(R, (PetscBool)transposed, b, x, where));
    }
    if (transposed) PetscCall(MatFactorSolveSchurComplementTranspose(F, c, y));
    else PetscCall(MatFactorSolveSchurComplement(F, c, y));
    if (m) PetscCall(Right(S, (PetscBool)transposed, c, y, where));
  }
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, N, 70, NULL, &B));
  PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
  PetscCall(MatSetRandom(B, NULL));
  PetscCall(MatMatSolve(F, B, X));
  for (PetscInt q = 0; q < 70; q++) {
    Vec v, w;

    PetscCall(MatDenseGetColumnVecRead(B, q, &v));
    PetscCall(MatDenseGetColumnVecRead(X, q, &w));
    PetscCall(Right(R, PETSC_FALSE, v, w, where));
    PetscCall(MatDenseRestoreColumnVecRead(B, q, &v));
    PetscCall(MatDenseRestoreColumnVecRead(X, q, &w));
  }
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&X));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&c));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Complement(PetscInt how, PetscBool cholesky, PetscInt set)
{
  Mat                  A, R, F, S, T, copy;
  IS                   is;
  PetscReal            size = 0, distance;
  PetscInt             m, n;
  MatFactorSchurStatus status;
  char                 where[96];

  PetscFunctionBegin;
  PetscCall(Make(how, PETSC_FALSE, &A));
  PetscCall(Make(how, PETSC_TRUE, &R));
  PetscCall(Rows(set, &is));
  PetscCall(Begin(A, cholesky, is, &F));
  for (PetscInt value = 0; value < 2; value++) {
    PetscCall(PetscSNPrintf(where, sizeof(where), "kind %" PetscInt_FMT ", %s, rows %" PetscInt_FMT ", values %" PetscInt_FMT, how, cholesky ? "Cholesky" : "LU", set, value));
    if (value) PetscCall(MatScale(A, 3.0));
    if (value) PetscCall(MatScale(R, 3.0));
    PetscCall(Numeric(F, A, cholesky, MAT_FACTOR_NOERROR, where));
    PetscCall(Reference(R, is, &T, &size));
    PetscCall(MatFactorGetSchurComplement(F, &S, &status));
    PetscCall(MatGetSize(S, &m, NULL));
    PetscCall(ISGetSize(is, &n));
    PetscCheck(status == MAT_FACTOR_SCHUR_UNFACTORED && m == n, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: S has status %d, %" PetscInt_FMT " by %" PetscInt_FMT, where, (int)status, m, n);
    PetscCall(MatDuplicate(S, MAT_COPY_VALUES, &copy));
    PetscCall(MatAXPY(copy, -1.0, T, SAME_NONZERO_PATTERN));
    PetscCall(MatNorm(copy, NORM_INFINITY, &distance));
    PetscCheck(distance <= 16 * TEST_C * PETSC_MACHINE_EPSILON * size, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: S differs by %g from numbers of size %g", where, (double)distance, (double)size);
    PetscCall(MatDestroy(&copy));
    PetscCall(MatFactorRestoreSchurComplement(F, &S, status));
    PetscCall(MatFactorCreateSchurComplement(F, &copy, NULL));
    PetscCall(Solutions(F, R, copy, (PetscBool)(cholesky || how == 1 || !m), where));
    if (m) {
      PetscCall(MatFactorInvertSchurComplement(F));
      PetscCall(Solutions(F, R, copy, (PetscBool)(cholesky || how == 1), where));
    }
    if (m && cholesky) Expect(PETSC_ERR_SUP, MatGetInertia(F, &n, NULL, NULL));
    PetscCall(MatDestroy(&copy));
    PetscCall(MatDestroy(&T));
  }
  PetscCall(MatDestroy(&F));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Index sets that are refused, calls in a wrong state, and another index set later */
static PetscErrorCode Errors(void)
{
  static const struct {
    PetscInt       n, index[2];
    PetscErrorCode error;
  } bad[] = {
    {2, {3, N},  PETSC_ERR_ARG_OUTOFRANGE},
    {2, {-1, 3}, PETSC_ERR_ARG_OUTOFRANGE},
    {2, {3, 3},  PETSC_ERR_ARG_INCOMP    }
  };
  Mat       A, R, F, S;
  Vec       b, x, c, y;
  IS        is;
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall(Make(0, PETSC_FALSE, &A));
  PetscCall(Make(0, PETSC_TRUE, &R));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(Begin(A, PETSC_FALSE, NULL, &F));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(bad); k++) {
    PetscCall(ISCreateGeneral(PETSC_COMM_SELF, bad[k].n, bad[k].index, PETSC_COPY_VALUES, &is));
    Expect(bad[k].error, MatFactorSetSchurIS(F, is));
    PetscCall(ISDestroy(&is));
  }
  PetscCall(ISCreateStride(PETSC_COMM_SELF, N, 0, 1, &is));
  Expect(PETSC_ERR_SUP, MatFactorSetSchurIS(F, is));
  PetscCall(ISDestroy(&is));
  PetscCall(Numeric(F, A, PETSC_FALSE, MAT_FACTOR_NOERROR, "after refused index sets"));
  PetscCall(MatSolve(F, b, x));
  PetscCall(Right(R, PETSC_FALSE, b, x, "after refused index sets"));
  PetscCall(Rows(1, &is));
  PetscCall(MatFactorSetSchurIS(F, is)); /* the factor is not of this index set */
  PetscCall(MatSolve(F, b, x));
  PetscCall(VecNorm(x, NORM_INFINITY, &norm));
  PetscCheck(!(norm < PETSC_MAX_REAL), PETSC_COMM_SELF, PETSC_ERR_PLIB, "An index set, and a solution of size %g without a new factorization", (double)norm);
  PetscCall(MatFactorGetSchurComplement(F, &S, NULL));
  PetscCall(MatCreateVecs(S, &y, &c));
  PetscCall(VecSet(c, 1.0));
  Expect(PETSC_ERR_MAT_LU_ZRPVT, MatFactorSolveSchurComplement(F, c, y));
  PetscCall(Numeric(F, A, PETSC_FALSE, MAT_FACTOR_NOERROR, "after an index set"));
  PetscCall(MatSolve(F, b, x));
  PetscCall(Right(R, PETSC_FALSE, b, x, "after an index set"));
  PetscCall(MatFactorSolveSchurComplement(F, c, y));
  /* a failed factorization has no S */
  PetscCall(MatSetValue(A, 0, 0, (PetscReal)INFINITY, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(Numeric(F, A, PETSC_FALSE, MAT_FACTOR_OTHER, "Inf"));
  Expect(PETSC_ERR_MAT_LU_ZRPVT, MatFactorSolveSchurComplement(F, c, y));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&c));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&F));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A singular matrix whose A11 is regular, with preonly: S is singular, and the solve ends with a failure. Then values that work */
static PetscErrorCode Singular(void)
{
  Mat                A, R, F;
  Vec                b, x;
  IS                 is;
  KSP                ksp;
  PC                 pc;
  KSPConvergedReason reason;
  const PetscInt     rows[2] = {N - 2, N - 1};

  PetscFunctionBegin;
  PetscCall(Make(0, PETSC_FALSE, &A));
  PetscCall(Make(0, PETSC_TRUE, &R));
  PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPPREONLY));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCLU));
  PetscCall(PCFactorSetMatSolverType(pc, "cudss"));
  PetscCall(PCFactorSetUpMatSolverType(pc));
  PetscCall(PCFactorGetMatrix(pc, &F));
  PetscCall(ISCreateGeneral(PETSC_COMM_SELF, 2, rows, PETSC_COPY_VALUES, &is));
  PetscCall(MatFactorSetSchurIS(F, is));
  for (PetscInt k = 0; k < 3; k++) {
    const PetscScalar ones[4] = {1, 1, 1, 1};

    PetscCall(MatCopy(R, A, SAME_NONZERO_PATTERN));
    if (k == 1) { /* the last two rows are equal */
      PetscCall(MatZeroRows(A, 2, rows, 0.0, NULL, NULL));
      PetscCall(MatSetValues(A, 2, rows, 2, rows, ones, INSERT_VALUES));
      PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    }
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCheck(reason == (k == 1 ? KSP_DIVERGED_PC_FAILED : KSP_CONVERGED_ITS), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Values %" PetscInt_FMT ": ends with %s", k, KSPConvergedReasons[reason]);
    if (k != 1) PetscCall(Right(R, PETSC_FALSE, b, x, "preonly"));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The environment has a fault of the stand-in: no wrong S and no wrong solution, and then both */
static PetscErrorCode Faults(void)
{
  Mat            A, R, F;
  Vec            b, x;
  IS             is;
  PetscReal      norm;
  MatFactorError error;
  MatFactorInfo  info;

  PetscFunctionBegin;
  PetscCall(Make(2, PETSC_FALSE, &A));
  PetscCall(Make(2, PETSC_TRUE, &R));
  PetscCall(MatCreateVecs(R, &x, &b));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(Rows(0, &is));
  PetscCall(MatFactorInfoInitialize(&info));
  PetscCall(Begin(A, PETSC_TRUE, is, &F));
  PetscCall(MatFactorGetError(F, &error));
  if (!error) {
    PetscCall(MatCholeskyFactorNumeric(F, A, &info));
    PetscCall(MatFactorGetError(F, &error));
  }
  if (!error) {
    PetscCall(MatSolve(F, b, x));
    PetscCall(VecNorm(x, NORM_INFINITY, &norm));
  }
  PetscCheck(error || !(norm < PETSC_MAX_REAL), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A fault, and a solution of size %g", (double)norm);
  PetscCall(TestEnv("FAKE_CUDSS_FAIL", NULL));
  PetscCall(TestEnv("FAKE_CUDSS_SCHUR", NULL));
  PetscCall(MatFactorClearError(F));
  PetscCall(Numeric(F, A, PETSC_TRUE, MAT_FACTOR_NOERROR, "after a fault"));
  PetscCall(MatSolve(F, b, x));
  PetscCall(Right(R, PETSC_FALSE, b, x, "after a fault"));
  PetscCall(MatDestroy(&F));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool faults;

  PetscFunctionBegin;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-faults", &faults));
  if (faults) PetscCall(Faults());
  else {
    for (PetscInt set = 0; set < SETS; set++)
      for (PetscInt how = 0; how < 3; how++)
        for (PetscInt cholesky = 0; cholesky < (how ? 2 : 1); cholesky++) PetscCall(Complement(how, (PetscBool)cholesky, set));
    PetscCall(Errors());
    PetscCall(Singular());
  }
  PetscCall(PetscFinalize());
  return 0;
}

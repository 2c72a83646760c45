//TEST name="filled" args="-mat_gpucsr_solve_kernel ranges"
//TEST name="kernel" args="-most 20000 -mat_gpucsr_solve_kernel {}" loop="ranges syncfree host auto"
//TEST name="vecgpu" args="-most 20000 -mat_gpucsr_solve_kernel syncfree -vec_type gpu -vec_gpu_separate"
//TEST name="standard" args="-most 20000 -mat_gpucsr_solve_kernel syncfree -standard_vectors -malloc_dump"
//TEST name="standin" args="-most 20000 -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_solve_kernel {} -gpucsr_debug_defer 1" loop="ranges syncfree" gpu=0
//TEST name="petsc" args="-most 20000 -mat_type aij" load=0

/*
  Factors of solver type gpucsr against PETSc's of MATAIJ: every solve of ILU, ICC, LU and Cholesky, in several orderings and levels of fill, on the zoo and on real patterns, each made
  diagonally dominant. Values and patterns change; pivots are zero, with each kind of shift and without; a diagonal has gaps.

  -most N skips factors with more entries, which fill in and take most of the time. The same code solves all factors, so one run has the large ones.

  How far two results may differ is known by the factor of the comparison matrix (|a| on the diagonal, -|a| beside it): its inverse is at least that of the factors in absolute value.
*/
#include "testing.h"

typedef struct {
  MatFactorType type;
  PetscInt      levels;
  const char   *ordering;
} Kind;

static const Kind kinds[] = {
  {MAT_FACTOR_ILU,      0, MATORDERINGNATURAL},
  {MAT_FACTOR_ILU,      0, MATORDERINGRCM    },
  {MAT_FACTOR_ILU,      2, MATORDERINGNATURAL},
  {MAT_FACTOR_ILU,      1, MATORDERINGRCM    },
  {MAT_FACTOR_LU,       0, MATORDERINGND     },
  {MAT_FACTOR_LU,       0, MATORDERINGNATURAL},
  {MAT_FACTOR_ICC,      0, MATORDERINGNATURAL},
  {MAT_FACTOR_ICC,      0, MATORDERINGRCM    },
  {MAT_FACTOR_ICC,      1, MATORDERINGNATURAL},
  {MAT_FACTOR_CHOLESKY, 0, MATORDERINGND     },
};

static PetscBool Symmetric(MatFactorType type)
{
  return (PetscBool)(type == MAT_FACTOR_ICC || type == MAT_FACTOR_CHOLESKY);
}

/* The pattern of R, with its transpose if symmetric, and dominant values. what = 0: R's values, 1: other values, 2: the comparison matrix of 0, 3: of
   1, 4: absolute values of 0, 5: of 1 */
static PetscErrorCode Dominant(Mat R, PetscBool symmetric, PetscInt what, PetscBool ref, Mat *A)
{
  const PetscInt other = what % 2;
  Mat            S, T;
  PetscInt       n, *nnz;

  PetscFunctionBegin;
  PetscCall(MatGetSize(R, &n, NULL));
  if (symmetric) {
    PetscCall(MatTranspose(R, MAT_INITIAL_MATRIX, &T));
    PetscCall(MatDuplicate(R, MAT_COPY_VALUES, &S));
    PetscCall(MatAXPY(S, 1.0, T, DIFFERENT_NONZERO_PATTERN));
    PetscCall(MatDestroy(&T));
  } else {
    S = R;
    PetscCall(PetscObjectReference((PetscObject)S));
  }
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, n, n, ref, A));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(PetscMalloc1(n, &nnz));
  for (PetscInt r = 0; r < n; r++) {
    PetscInt length;

    PetscCall(MatGetRow(S, r, &length, NULL, NULL));
    nnz[r] = PetscMin(length + 1, n);
    PetscCall(MatRestoreRow(S, r, &length, NULL, NULL));
  }
  PetscCall(MatSeqAIJSetPreallocation(*A, 0, nnz));
  PetscCall(PetscFree(nnz));
  for (PetscInt r = 0; r < n; r++) {
    PetscInt           length;
    const PetscInt    *c;
    const PetscScalar *v;
    PetscReal          sum = 0.1;

    PetscCall(MatGetRow(S, r, &length, &c, &v));
    for (PetscInt k = 0; k < length; k++) {
      PetscScalar a = v[k] * (other ? 0.5 + (PetscReal)((r + c[k]) % 5) : 1.0);

      if (PetscIsInfOrNanScalar(a) || c[k] == r) continue;
      sum += PetscAbsScalar(a);
      if (what >= 2) a = what >= 4 ? PetscAbsScalar(a) : -PetscAbsScalar(a);
      PetscCall(MatSetValues(*A, 1, &r, 1, &c[k], &a, INSERT_VALUES));
    }
    {
      const PetscScalar d = 1.1 * sum;

      PetscCall(MatSetValues(*A, 1, &r, 1, &r, &d, INSERT_VALUES));
    }
    PetscCall(MatRestoreRow(S, r, &length, &c, &v));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  if (symmetric) PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(MatDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Symbolic(Mat A, const Kind *k, const MatFactorInfo *info, Mat *F)
{
  IS row, col;

  PetscFunctionBegin;
  PetscCall(MatGetFactor(A, NULL, k->type, F));
  PetscCall(MatGetOrdering(A, k->ordering, &row, &col));
  switch (k->type) {
  case MAT_FACTOR_ILU:
    PetscCall(MatILUFactorSymbolic(*F, A, row, col, info));
    break;
  case MAT_FACTOR_LU:
    PetscCall(MatLUFactorSymbolic(*F, A, row, col, info));
    break;
  case MAT_FACTOR_ICC:
    PetscCall(MatICCFactorSymbolic(*F, A, row, info));
    break;
  default:
    PetscCall(MatCholeskyFactorSymbolic(*F, A, row, info));
  }
  PetscCall(ISDestroy(&row));
  PetscCall(ISDestroy(&col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Numeric(Mat F, Mat A, const Kind *k, const MatFactorInfo *info)
{
  PetscFunctionBegin;
  if (Symmetric(k->type)) PetscCall(MatCholeskyFactorNumeric(F, A, info));
  else PetscCall(MatLUFactorNumeric(F, A, info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Info(const Kind *k, MatFactorInfo *info)
{
  PetscFunctionBegin;
  PetscCall(MatFactorInfoInitialize(info));
  info->levels    = (PetscReal)k->levels;
  info->fill      = 2.0;
  info->zeropivot = 100 * PETSC_MACHINE_EPSILON;
  if (k->type == MAT_FACTOR_ICC) info->shifttype = (PetscReal)MAT_SHIFT_POSITIVE_DEFINITE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *const solves[] = {"MatSolve", "MatSolveTranspose", "MatForwardSolve", "MatBackwardSolve", "MatSolveAdd"};

static PetscErrorCode Run(Mat F, PetscInt solve, Vec b, Vec x)
{
  PetscFunctionBegin;
  if (solve == 0) PetscCall(MatSolve(F, b, x));
  if (solve == 1) PetscCall(MatSolveTranspose(F, b, x));
  if (solve == 2) PetscCall(MatForwardSolve(F, b, x));
  if (solve == 3) PetscCall(MatBackwardSolve(F, b, x));
  if (solve == 4) PetscCall(MatSolveAdd(F, b, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All solves of F, a factor of A, against FR's; FC of the comparison matrix, B absolute values */
static PetscErrorCode Solves(Mat A, Mat F, Mat FR, Mat FC, Mat B, const Kind *k, const char where[])
{
  Vec x, b, y, c, bound, t;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(MatCreateVecs(B, &y, &c));
  PetscCall(VecDuplicate(y, &bound));
  PetscCall(VecDuplicate(y, &t));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(TestFill(c, 3, PETSC_FALSE));
  for (PetscInt s = 0; s < 5; s++) {
    char what[128];

    if ((s == 2 || s == 3) && !Symmetric(k->type)) continue;
    PetscCall(PetscSNPrintf(what, sizeof(what), "%s, %s(%" PetscInt_FMT ") in %s ordering", solves[s], MatFactorTypes[k->type], k->levels, k->ordering));
    PetscCall(VecSet(x, -7.0));
    PetscCall(Run(F, s, b, x));
    PetscCall(Run(FR, s, c, y));
    PetscCall(VecCopy(c, t));
    PetscCall(VecAbs(t));
    PetscCall(Run(FC, s, t, bound)); /* at least |y| in each entry */
    if (s == 1) PetscCall(MatMultTranspose(B, bound, t));
    else PetscCall(MatMult(B, bound, t));
    PetscCall(Run(FC, s == 4 ? 0 : s, t, c)); /* what rounding in the factors does */
    PetscCall(VecAbs(c));
    PetscCall(VecAbs(bound));
    PetscCall(VecAXPY(bound, 1.0, c));
    PetscCall(TestClose(x, y, bound, what, where));
    PetscCall(TestFill(c, 3, PETSC_FALSE));
    PetscCall(TestCloseVec(b, c, "the right-hand side, after", where));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&c));
  PetscCall(VecDestroy(&t));
  PetscCall(VecDestroy(&bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Several right-hand sides at once: as MatSolve(), to the bit if one kernel does both */
static PetscErrorCode MatSolves2(Mat A, Mat F, const char where[])
{
  Mat       B, X;
  Vec       b, x, col;
  PetscInt  n;
  PetscReal norm, most;
  char      kernel[32] = "auto";
  PetscBool ours[3];

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_solve_kernel", kernel, sizeof(kernel), NULL));
  PetscCall(PetscStrcmp(kernel, "ranges", &ours[0]));
  PetscCall(PetscStrcmp(kernel, "syncfree", &ours[1]));
  PetscCall(PetscStrcmp(kernel, "levels", &ours[2]));
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, n, 3, NULL, &B));
  PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(MatDenseGetColumnVecWrite(B, k, &col));
    PetscCall(TestFill(col, 10 + k, PETSC_FALSE));
    PetscCall(MatDenseRestoreColumnVecWrite(B, k, &col));
  }
  PetscCall(MatMatSolve(F, B, X));
  PetscCall(MatCreateVecs(A, &x, &b));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(TestFill(b, 10 + k, PETSC_FALSE));
    PetscCall(MatSolve(F, b, x));
    PetscCall(VecNorm(x, NORM_INFINITY, &most));
    PetscCall(MatDenseGetColumnVecRead(X, k, &col));
    PetscCall(VecCopy(col, b));
    PetscCall(MatDenseRestoreColumnVecRead(X, k, &col));
    PetscCall(VecAXPY(x, -1.0, b));
    PetscCall(VecNorm(x, NORM_INFINITY, &norm));
    PetscCheck(norm <= (ours[0] || ours[1] || ours[2] ? 0.0 : TEST_C * PETSC_MACHINE_EPSILON * most), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: column %" PetscInt_FMT " of MatMatSolve() differs by %g from MatSolve()", where, k, (double)norm);
  }
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* How many pivots are negative, and how many positive, of A and of -A: as PETSc's factor says, or the other way round */
static PetscErrorCode Inertia(Mat A, Mat F, Mat FR, const Kind *k, const MatFactorInfo *info, const char where[])
{
  PetscInt got[3], should[3];

  PetscFunctionBegin;
  PetscCall(MatGetInertia(FR, &should[0], &should[1], &should[2]));
  for (PetscInt sign = 0; sign < 2; sign++) {
    PetscCall(MatGetInertia(F, &got[0], &got[1], &got[2]));
    PetscCheck(got[0] == should[2 * sign] && got[1] == should[1] && got[2] == should[2 - 2 * sign], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " negative and %" PetscInt_FMT " positive pivots, should be %" PetscInt_FMT " and %" PetscInt_FMT, where, got[0], got[2], should[2 * sign], should[2 - 2 * sign]);
    PetscCall(MatScale(A, -1.0));
    PetscCall(Numeric(F, A, k, info));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Factor, solve, change the values, factor again, solve */
static PetscErrorCode Case(Mat R, const Kind *k, const char where[])
{
  const PetscBool symmetric = Symmetric(k->type);
  Mat             A[6], F[3]; /* numbered as in Dominant(), [0] of the type under test; its factor, the reference's, and the comparison matrix' */
  Mat             Ref[2];
  MatFactorInfo   info;
  MatInfo         entries;
  PetscInt        most = PETSC_MAX_INT;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-most", &most, NULL));
  PetscCall(Info(k, &info));
  PetscCall(Dominant(R, symmetric, 0, PETSC_TRUE, &Ref[0]));
  PetscCall(Symbolic(Ref[0], k, &info, &F[1]));
  PetscCall(MatGetInfo(F[1], MAT_LOCAL, &entries));
  if (entries.nz_used > (PetscReal)most) {
    PetscCall(MatDestroy(&Ref[0]));
    PetscCall(MatDestroy(&F[1]));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (PetscInt w = 0; w < 6; w++) PetscCall(Dominant(R, symmetric, w, (PetscBool)(w > 1), &A[w]));
  PetscCall(Dominant(R, symmetric, 1, PETSC_TRUE, &Ref[1]));
  PetscCall(Symbolic(A[0], k, &info, &F[0]));
  PetscCall(Symbolic(A[2], k, &info, &F[2]));
  for (PetscInt round = 0; round < 2; round++) {
    if (round) PetscCall(MatCopy(A[1], A[0], SAME_NONZERO_PATTERN));
    PetscCall(Numeric(F[0], A[0], k, &info));
    PetscCall(Numeric(F[1], Ref[round], k, &info));
    PetscCall(Numeric(F[2], A[2 + round], k, &info));
    PetscCall(Solves(A[0], F[0], F[1], F[2], A[4 + round], k, where));
  }
  PetscCall(MatSolves2(A[0], F[0], where));
  if (k->type == MAT_FACTOR_CHOLESKY) PetscCall(Inertia(A[0], F[0], F[1], k, &info, where));
  for (PetscInt w = 0; w < 6; w++) PetscCall(MatDestroy(&A[w]));
  for (PetscInt w = 0; w < 2; w++) PetscCall(MatDestroy(&Ref[w]));
  for (PetscInt w = 0; w < 3; w++) PetscCall(MatDestroy(&F[w]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const real[] = {"bfw782a", "nos3", "sherman3"};
  PetscBool                only   = PETSC_FALSE;
  PetscInt                 one    = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-kind", &one, &only));
  for (PetscInt which = 0; which < ZOO_COUNT + (PetscInt)PETSC_STATIC_ARRAY_LENGTH(real); which++) {
    const char *where = which < ZOO_COUNT ? ZooTable[which].name : real[which - ZOO_COUNT];
    Mat         R;

    if (which < ZOO_COUNT) {
      if (ZooTable[which].m != ZooTable[which].n || !ZooTable[which].m || ZooTable[which].m > 1100) continue;
      PetscCall(TestZoo(PETSC_COMM_WORLD, which, PETSC_FALSE, PETSC_TRUE, &R));
    } else {
      PetscViewer viewer;
      char        file[256];

      PetscCall(PetscSNPrintf(file, sizeof(file), "share/datasets/%s.petsc", where));
      PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, file, FILE_MODE_READ, &viewer));
      PetscCall(TestMatCreate(PETSC_COMM_WORLD, PETSC_DETERMINE, PETSC_DETERMINE, PETSC_TRUE, &R));
      PetscCall(MatLoad(R, viewer));
      PetscCall(PetscViewerDestroy(&viewer));
    }
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(kinds); k++)
      if (!only || (PetscInt)k == one) PetscCall(Case(R, &kinds[k], where));
    PetscCall(MatDestroy(&R));
  }
  PetscCall(PetscFinalize());
  return 0;
}

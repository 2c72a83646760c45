//TEST name="default"
//TEST name="format" args="-mat_gpucsr_format {}" loop="csr sell bitdense"
//TEST name="ranks4" nsize=4 args="-mat_gpucsr_format sell"
//TEST name="assembly" nsize=2 args="-mat_gpucsr_format csr -mat_gpucsr_transpose_at_assembly"
//TEST name="aij" nsize=3 args="-mat_type aij" load=0
//TEST name="malloc" nsize=2 args="-mat_gpucsr_format csr -malloc_dump"
//TEST name="vecgpu" nsize=2 args="-vec_type gpu -vec_gpu_separate -mat_gpucsr_format csr"
//TEST name="vecgpu1" args="-vec_type gpu -vec_gpu_separate"

/*
  All other operations of MATAIJ: each operation on A, of the type under test, gives the same matrix, vector or number as on R. Products before and after
  it make sure that a resident copy exists and does no harm.

    build/tests/t402-operations -dll_append build/lib/libpetscgpucsr.so [-mat_type gpucsr] [-mat_gpucsr_...]
*/
#include "testing.h"
#include <unistd.h>

#define SEQUENTIAL 1 /* MATMPIAIJ cannot do it */
#define SAME_TYPE  2 /* what comes out has the type of what went in */

static MatType Type(Mat A)
{
  MatType type = NULL;

  PetscCallAbort(PETSC_COMM_SELF, MatGetType(A, &type));
  return type;
}

#include "t402-operations/matrices.h"

/* ---- matrix in, vector out ---- */

static PetscErrorCode GetDiagonal(Mat A, Vec x, Vec y)
{
  (void)x;
  return MatGetDiagonal(A, y);
}

static PetscErrorCode GetRowSum(Mat A, Vec x, Vec y)
{
  (void)x;
  return MatGetRowSum(A, y);
}

static PetscErrorCode GetRowMaxAbs(Mat A, Vec x, Vec y)
{
  (void)x;
  return MatGetRowMaxAbs(A, y, NULL);
}

static PetscErrorCode GetRow(Mat A, Vec x, Vec y) /* a number that depends on every column and value of each row */
{
  PetscInt           rs, re, n;
  const PetscInt    *cols;
  const PetscScalar *v;

  PetscFunctionBegin;
  (void)x;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    PetscScalar sum = 0.0;

    PetscCall(MatGetRow(A, r, &n, &cols, &v));
    for (PetscInt k = 0; k < n; k++) sum += v[k] * (PetscReal)(cols[k] + 1);
    PetscCall(MatRestoreRow(A, r, &n, &cols, &v));
    PetscCall(VecSetValue(y, r, sum, INSERT_VALUES));
  }
  PetscCall(VecAssemblyBegin(y));
  PetscCall(VecAssemblyEnd(y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GetValues(Mat A, Vec x, Vec y)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  (void)x;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    const PetscInt cols[3] = {rs, r, re - 1};
    PetscScalar    v[3];

    PetscCall(MatGetValues(A, 1, &r, 3, cols, v));
    PetscCall(VecSetValue(y, r, v[0] + 2.0 * v[1] + 4.0 * v[2], INSERT_VALUES));
  }
  PetscCall(VecAssemblyBegin(y));
  PetscCall(VecAssemblyEnd(y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Norms(Mat A, Vec x, Vec y)
{
  PetscReal   norm;
  PetscScalar trace;
  MatInfo     info;

  PetscFunctionBegin;
  (void)x;
  PetscCall(MatNorm(A, NORM_1, &norm));
  PetscCall(VecSet(y, norm));
  PetscCall(MatNorm(A, NORM_INFINITY, &norm));
  PetscCall(VecShift(y, 3.0 * norm));
  PetscCall(MatNorm(A, NORM_FROBENIUS, &norm));
  PetscCall(VecShift(y, 5.0 * norm));
  PetscCall(MatGetTrace(A, &trace));
  PetscCall(VecShift(y, 7.0 * PetscAbsScalar(trace)));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
  PetscCall(VecShift(y, info.nz_used));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ColumnNorms(Mat A, Vec x, Vec y)
{
  PetscInt   n, rs, re;
  PetscReal *norms;

  PetscFunctionBegin;
  (void)x;
  PetscCall(MatGetSize(A, NULL, &n));
  PetscCall(PetscMalloc1(n, &norms));
  PetscCall(MatGetColumnNorms(A, NORM_2, norms));
  PetscCall(VecGetOwnershipRange(y, &rs, &re));
  for (PetscInt r = rs; r < re; r++) PetscCall(VecSetValue(y, r, norms[r], INSERT_VALUES));
  PetscCall(VecAssemblyBegin(y));
  PetscCall(VecAssemblyEnd(y));
  PetscCall(PetscFree(norms));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Residual(Mat A, Vec x, Vec y)
{
  Vec b;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(y, &b));
  PetscCall(VecSet(b, 100.0)); /* nothing cancels */
  PetscCall(MatResidual(A, b, x, y));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Sor(Mat A, Vec x, Vec y)
{
  PetscFunctionBegin;
  PetscCall(VecSet(y, 0.0));
  PetscCall(MatSOR(A, x, 1.2, (MatSORType)(SOR_LOCAL_SYMMETRIC_SWEEP | SOR_ZERO_INITIAL_GUESS), 0.0, 2, 1, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Factor(Mat A, MatFactorType type, Vec x, Vec y)
{
  Mat           F, S = A;
  IS            rows, cols;
  MatFactorInfo info;
  PetscBool     symmetric = (PetscBool)(type == MAT_FACTOR_CHOLESKY || type == MAT_FACTOR_ICC);

  PetscFunctionBegin;
  if (symmetric) PetscCall(Symmetrize(A, &S));
  PetscCall(MatFactorInfoInitialize(&info));
  info.fill = 2.0;
  PetscCall(MatGetFactor(S, MATSOLVERPETSC, type, &F));
  PetscCall(MatGetOrdering(S, symmetric ? MATORDERINGNATURAL : MATORDERINGRCM, &rows, &cols));
  for (PetscInt twice = 0; twice < 2; twice++) { /* the second time with other values */
    if (twice) PetscCall(MatScale(S, 2.0));
    switch (type) {
    case MAT_FACTOR_LU:
      if (!twice) PetscCall(MatLUFactorSymbolic(F, S, rows, cols, &info));
      PetscCall(MatLUFactorNumeric(F, S, &info));
      break;
    case MAT_FACTOR_ILU:
      if (!twice) PetscCall(MatILUFactorSymbolic(F, S, rows, cols, &info));
      PetscCall(MatLUFactorNumeric(F, S, &info));
      break;
    case MAT_FACTOR_CHOLESKY:
      if (!twice) PetscCall(MatCholeskyFactorSymbolic(F, S, rows, &info));
      PetscCall(MatCholeskyFactorNumeric(F, S, &info));
      break;
    default:
      if (!twice) PetscCall(MatICCFactorSymbolic(F, S, rows, &info));
      PetscCall(MatCholeskyFactorNumeric(F, S, &info));
    }
    PetscCall(MatSolve(F, x, y));
  }
  PetscCall(MatScale(S, 0.5));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  PetscCall(MatDestroy(&F));
  if (symmetric) PetscCall(MatDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FactorLU(Mat A, Vec x, Vec y)
{
  return Factor(A, MAT_FACTOR_LU, x, y);
}

static PetscErrorCode FactorILU(Mat A, Vec x, Vec y)
{
  return Factor(A, MAT_FACTOR_ILU, x, y);
}

static PetscErrorCode FactorCholesky(Mat A, Vec x, Vec y)
{
  return Factor(A, MAT_FACTOR_CHOLESKY, x, y);
}

static PetscErrorCode FactorICC(Mat A, Vec x, Vec y)
{
  return Factor(A, MAT_FACTOR_ICC, x, y);
}

static PetscErrorCode FactorInPlace(Mat A, Vec x, Vec y)
{
  Mat           B;
  IS            rows, cols;
  MatFactorInfo info;

  PetscFunctionBegin;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(MatFactorInfoInitialize(&info));
  PetscCall(MatGetOrdering(B, MATORDERINGNATURAL, &rows, &cols));
  PetscCall(MatILUFactor(B, rows, cols, &info));
  PetscCall(MatSolve(B, x, y));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  PetscErrorCode (*compute)(Mat, Vec, Vec);
  PetscInt what;
} computers[] = {
  {"MatGetDiagonal",                   GetDiagonal,    0         },
  {"MatGetRowSum",                     GetRowSum,      0         },
  {"MatGetRowMaxAbs",                  GetRowMaxAbs,   0         },
  {"MatGetRow",                        GetRow,         0         },
  {"MatGetValues",                     GetValues,      0         },
  {"MatNorm, MatGetTrace, MatGetInfo", Norms,          0         },
  {"MatGetColumnNorms",                ColumnNorms,    0         },
  {"MatResidual",                      Residual,       0         },
  {"MatSOR",                           Sor,            0         },
  {"MatLUFactor, MatSolve",            FactorLU,       SEQUENTIAL},
  {"MatILUFactor, MatSolve",           FactorILU,      SEQUENTIAL},
  {"MatCholeskyFactor, MatSolve",      FactorCholesky, SEQUENTIAL},
  {"MatICCFactor, MatSolve",           FactorICC,      SEQUENTIAL},
  {"MatILUFactor in place, MatSolve",  FactorInPlace,  SEQUENTIAL}
};

static PetscErrorCode Check(Mat A, Mat R, const char where[])
{
  PetscMPIInt size;
  PetscBool   same;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCall(TestProducts(A, R, PETSC_FALSE, where));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(makers); k++) {
    Mat  C, S, plain, B;
    char name[128];

    if (size > 1 && (makers[k].what & SEQUENTIAL)) continue;
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s of %s", makers[k].name, where));
    PetscCall(makers[k].make(A, &C));
    PetscCall(makers[k].make(R, &S));
    if (makers[k].what & SAME_TYPE) {
      PetscCall(PetscStrcmp(Type(A), Type(C), &same));
      PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s is a %s, should be a %s as before", name, Type(C), Type(A));
    }
    PetscCall(MatComputeOperator(S, MATAIJ, &plain)); /* C and S may be of any type, even one without rows */
    PetscCall(TestAbs(plain, &B));
    PetscCall(TestProductsBound(C, S, B, PETSC_FALSE, name));
    PetscCall(MatDestroy(&plain));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&C));
    PetscCall(MatDestroy(&S));
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(computers); k++) {
    Vec x, y, r, s;

    if (size > 1 && (computers[k].what & SEQUENTIAL)) continue;
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(MatCreateVecs(R, &r, &s));
    PetscCall(TestFill(x, 3, PETSC_FALSE));
    PetscCall(TestFill(r, 3, PETSC_FALSE));
    PetscCall(computers[k].compute(A, x, y));
    PetscCall(computers[k].compute(R, r, s));
    PetscCall(TestCloseVec(y, s, computers[k].name, where));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&r));
    PetscCall(VecDestroy(&s));
  }
  PetscCall(MatEqual(A, R, &same));
  PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: MatEqual() sees a difference", where);
  PetscCall(TestProducts(A, R, PETSC_FALSE, where));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat A, R;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestConvection(PETSC_COMM_WORLD, 9, 0.5, PETSC_FALSE, &A));
  PetscCall(TestConvection(PETSC_COMM_WORLD, 9, 0.5, PETSC_TRUE, &R));
  PetscCall(Check(A, R, "convection"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(TestZoo(PETSC_COMM_WORLD, ZOO_BLOCK, PETSC_FALSE, PETSC_FALSE, &A));
  PetscCall(TestZoo(PETSC_COMM_WORLD, ZOO_BLOCK, PETSC_FALSE, PETSC_TRUE, &R));
  PetscCall(MatShift(A, 60.0)); /* dominates its rows, so that every factorization exists */
  PetscCall(MatShift(R, 60.0));
  PetscCall(Check(A, R, "block"));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(PetscFinalize());
  return 0;
}

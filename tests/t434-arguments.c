//TEST name="host" args=""
//TEST name="master" args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_master device -mat_gpucsr_product_least {}" loop="0 100000" gpu=0
//TEST name="ranks" nsize=2 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_master device -mat_gpucsr_product_least {}" loop="0 100000" gpu=0
//TEST name="gpu" args="-mat_gpucsr_backend cuda -mat_gpucsr_master device" gpu=1
//TEST name="ranks_gpu" nsize=2 args="-mat_gpucsr_backend cuda -mat_gpucsr_master device" gpu=1

/*
  Matrices whose values the device has, as arguments of PETSc's functions: each row of the table does the same with matrices of the type under test and with MATAIJ. A row that makes a matrix is done
  again with MAT_REUSE_MATRIX after the device has changed the values, and with MATAIJ in the place of each argument.
*/
static char help[] = "Tests PETSc's functions with matrices whose values the device has.\n";

#include "pair.h"
#include <petscgpucsr.h>
#include <petscksp.h>
#include <unistd.h>

/* What a row gives */
typedef struct {
  Mat       M;
  Vec       v;
  IS        is;
  PetscReal number;
} Result;

/* By the type's own solver, which is PETSc's for MATAIJ */
static PetscErrorCode Factored(Mat A, MatFactorType type, Vec x, Vec y)
{
  IS            row, col;
  Mat           F;
  MatFactorInfo info;

  PetscFunctionBegin;
  PetscCall(MatGetFactor(A, NULL, type, &F));
  PetscCall(MatGetOrdering(A, MATORDERINGNATURAL, &row, &col));
  PetscCall(MatFactorInfoInitialize(&info));
  info.fill = 5;
  if (type == MAT_FACTOR_LU) PetscCall(MatLUFactorSymbolic(F, A, row, col, &info));
  if (type == MAT_FACTOR_ILU) PetscCall(MatILUFactorSymbolic(F, A, row, col, &info));
  if (type == MAT_FACTOR_CHOLESKY) PetscCall(MatCholeskyFactorSymbolic(F, A, row, &info));
  if (type == MAT_FACTOR_ICC) PetscCall(MatICCFactorSymbolic(F, A, row, &info));
  if (type == MAT_FACTOR_LU || type == MAT_FACTOR_ILU) PetscCall(MatLUFactorNumeric(F, A, &info));
  else PetscCall(MatCholeskyFactorNumeric(F, A, &info));
  PetscCall(MatSolve(F, x, y));
  PetscCall(MatDestroy(&F));
  PetscCall(ISDestroy(&row));
  PetscCall(ISDestroy(&col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By a preconditioner, which reads the matrix in its own ways */
static PetscErrorCode Applied(Mat A, PCType type, Vec x, Vec y)
{
  PC pc;

  PetscFunctionBegin;
  PetscCall(PCCreate(PetscObjectComm((PetscObject)A), &pc));
  PetscCall(PCSetOptionsPrefix(pc, "t434_"));
  PetscCall(PCSetOperators(pc, A, A));
  PetscCall(PCSetType(pc, type));
  PetscCall(PCSetUp(pc));
  PetscCall(PCApply(pc, x, y));
  PetscCall(PCDestroy(&pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Nested(Mat A, Mat B, Mat *M)
{
  Mat block[4] = {A, B, B, A}, nest;

  PetscFunctionBegin;
  PetscCall(MatCreateNest(PetscObjectComm((PetscObject)A), 2, NULL, 2, NULL, block, &nest));
  PetscCall(MatConvert(nest, MATAIJ, MAT_INITIAL_MATRIX, M));
  PetscCall(MatDestroy(&nest));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Merged(Mat A, Mat B, MatCompositeType type, Mat *M)
{
  Mat m[2] = {A, B};

  PetscFunctionBegin;
  PetscCall(MatCreateComposite(PetscObjectComm((PetscObject)A), 2, m, M));
  PetscCall(MatCompositeSetType(*M, type));
  PetscCall(MatAssemblyBegin(*M, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*M, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCompositeMerge(*M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Viewed(Mat A, Mat *M)
{
  PetscViewer viewer;
  char        name[64];
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(name, sizeof(name), "/tmp/t434.%d", (int)getpid()));
  PetscCallMPI(MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, PETSC_COMM_WORLD));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, name, FILE_MODE_WRITE, &viewer));
  PetscCall(PetscViewerBinarySetSkipInfo(viewer, PETSC_TRUE));
  PetscCall(MatView(A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, name, FILE_MODE_READ, &viewer));
  PetscCall(MatCreate(PETSC_COMM_WORLD, M));
  PetscCall(MatSetType(*M, MATAIJ));
  PetscCall(MatLoad(*M, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  if (!rank) unlink(name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Permuted(Mat A, Mat *M)
{
  IS       is;
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(ISCreateStride(PetscObjectComm((PetscObject)A), re - rs, re - 1, -1, &is));
  PetscCall(ISSetPermutation(is));
  PetscCall(MatPermute(A, is, is, M));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Part(Mat A, MatReuse reuse, Mat *M)
{
  IS       is;
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(ISCreateStride(PetscObjectComm((PetscObject)A), (re - rs) / 2, rs, 2, &is));
  PetscCall(MatCreateSubMatrix(A, is, is, reuse, M));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Rows(Mat A, PetscInt kind, Vec v)
{
  PetscInt at[N];

  PetscFunctionBegin;
  if (kind == 0) PetscCall(MatGetRowMax(A, v, at));
  if (kind == 1) PetscCall(MatGetRowMin(A, v, at));
  if (kind == 2) PetscCall(MatGetRowMaxAbs(A, v, at));
  if (kind == 3) PetscCall(MatGetRowMinAbs(A, v, at));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Y += A, where Y is a MATAIJ, and the same for MatCopy() */
static PetscErrorCode Into(Mat A, PetscBool copy, MatStructure str, Mat *M)
{
  PetscFunctionBegin;
  PetscCall(Make(PETSC_TRUE, 3, M));
  if (copy) PetscCall(MatCopy(A, *M, str));
  else PetscCall(MatAXPY(*M, 2.0, A, str));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Changed(Mat A, Mat B, PetscInt kind, MatStructure str, Mat *M)
{
  PetscFunctionBegin;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, M));
  PetscCall(MatScale(*M, 2.0));
  if (kind == 0) PetscCall(MatAXPY(*M, 2.0, B, str));
  if (kind == 1) PetscCall(MatAYPX(*M, 2.0, B, str));
  if (kind == 2) PetscCall(MatCopy(B, *M, str));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Dense(MPI_Comm comm, Mat *D)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatCreateDense(comm, PETSC_DECIDE, PETSC_DECIDE, N, N, NULL, D));
  PetscCall(MatSetUp(*D));
  PetscCall(MatGetOwnershipRange(*D, &rs, &re));
  for (PetscInt i = rs; i < re; i++)
    for (PetscInt j = 0; j < N; j++) PetscCall(MatSetValue(*D, i, j, Small(i, j, 6), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*D, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product with a dense matrix: type, and the dense matrix in first place */
static PetscErrorCode WithDense(Mat A, MatProductType type, PetscBool first, MatReuse reuse, Mat *M)
{
  Mat D;

  PetscFunctionBegin;
  if (reuse == MAT_INITIAL_MATRIX) {
    PetscCall(Dense(PetscObjectComm((PetscObject)A), &D));
    PetscCall(MatProductCreate(first ? D : A, first ? A : D, NULL, M));
    PetscCall(MatDestroy(&D));
    PetscCall(MatProductSetType(*M, type));
    PetscCall(MatProductSetFromOptions(*M));
    PetscCall(MatProductSymbolic(*M));
  }
  PetscCall(MatProductNumeric(*M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* T(A) B, and T(A) B C */
static PetscErrorCode WithTranspose(Mat A, Mat B, Mat C, MatReuse reuse, Mat *M)
{
  Mat T;

  PetscFunctionBegin;
  if (reuse == MAT_INITIAL_MATRIX) {
    PetscCall(MatCreateTranspose(A, &T));
    PetscCall(MatProductCreate(T, B, C, M));
    PetscCall(MatDestroy(&T));
    PetscCall(MatProductSetType(*M, C ? MATPRODUCT_ABC : MATPRODUCT_AB));
    PetscCall(MatProductSetFromOptions(*M));
    PetscCall(MatProductSymbolic(*M));
  }
  PetscCall(MatProductNumeric(*M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of one process on each rank, one below the other */
static PetscErrorCode Concatenated(Mat A, MatReuse reuse, Mat *M)
{
  Mat       B;
  PetscBool ref;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)A, &ref, MATSEQAIJ, MATMPIAIJ, ""));
  PetscCall(TestMatCreate(PETSC_COMM_SELF, N, N, ref, &B));
  PetscCall(MatSeqAIJSetPreallocation(B, 12, NULL));
  PetscCall(Fill(B, reuse == MAT_INITIAL_MATRIX ? 1 : 2));
  PetscCall(MatScale(B, 2.0));
  PetscCall(MatCreateMPIMatConcatenateSeqMat(PETSC_COMM_WORLD, B, PETSC_DECIDE, reuse, M));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Schur(Mat A, Mat *M)
{
  IS       is[2];
  PetscInt rs, re;
  Mat      none = NULL;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (int k = 0; k < 2; k++) PetscCall(ISCreateStride(PetscObjectComm((PetscObject)A), k ? re - rs - (re - rs) / 2 : (re - rs) / 2, k ? rs + (re - rs) / 2 : rs, 1, &is[k]));
  PetscCall(MatGetSchurComplement(A, is[0], is[0], is[1], is[1], MAT_IGNORE_MATRIX, &none, MAT_SCHUR_COMPLEMENT_AINV_DIAG, MAT_INITIAL_MATRIX, M));
  for (int k = 0; k < 2; k++) PetscCall(ISDestroy(&is[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A + D D^T */
static PetscErrorCode LowRank(Mat A, Vec x, Vec y)
{
  Mat D, L;

  PetscFunctionBegin;
  PetscCall(Dense(PetscObjectComm((PetscObject)A), &D));
  PetscCall(MatCreateLRC(A, D, NULL, NULL, &L));
  PetscCall(MatMult(L, x, y));
  PetscCall(MatDestroy(&L));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ByNormal(Mat A, Vec x, Vec y, PetscBool diagonal)
{
  Mat M;

  PetscFunctionBegin;
  PetscCall(MatCreateNormal(A, &M));
  if (diagonal) PetscCall(MatGetDiagonal(M, y));
  else PetscCall(MatMult(M, x, y));
  PetscCall(MatDestroy(&M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The factor replaces the matrix */
static PetscErrorCode InPlace(Mat A, Vec x, Vec y)
{
  IS            row, col;
  Mat           F;
  MatFactorInfo info;

  PetscFunctionBegin;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &F));
  PetscCall(MatScale(F, 2.0));
  PetscCall(MatGetOrdering(F, MATORDERINGNATURAL, &row, &col));
  PetscCall(MatFactorInfoInitialize(&info));
  PetscCall(MatLUFactor(F, row, col, &info));
  PetscCall(MatSolve(F, x, y));
  PetscCall(MatDestroy(&F));
  PetscCall(ISDestroy(&row));
  PetscCall(ISDestroy(&col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Relaxed(Mat A, Vec x, Vec y)
{
  PetscFunctionBegin;
  PetscCall(VecSet(y, 0.0));
  PetscCall(MatSOR(A, x, 1.0, SOR_LOCAL_SYMMETRIC_SWEEP, 0.0, 1, 1, y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Answered(Mat A, Mat B, PetscInt kind, PetscReal *number)
{
  PetscBool yes = PETSC_FALSE;
  PetscReal column[N];

  PetscFunctionBegin;
  *number = 0;
  if (kind == 0) PetscCall(MatEqual(A, B, &yes));
  if (kind == 1) PetscCall(MatIsTranspose(A, B, 0.0, &yes));
  if (kind == 2) PetscCall(MatIsSymmetric(A, 1e3, &yes)); /* a NaN is below no tolerance */
  if (kind == 3) PetscCall(MatMultEqual(A, B, 3, &yes));
  if (kind == 4) PetscCall(MatIsHermitian(A, 1e3, &yes));
  if (kind == 5) {
    PetscCall(MatGetColumnNorms(A, NORM_1, column));
    for (int k = 0; k < N; k++) *number += column[k] * (k + 1);
  }
  if (kind == 6) PetscCall(MatNorm(A, NORM_FROBENIUS, number));
  if (kind == 7) PetscCall(MatNorm(A, NORM_1, number));
  if (kind == 8) PetscCall(MatNorm(A, NORM_INFINITY, number));
  *number += yes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A = 0 in every other row, so that rows of zeros are found */
static PetscErrorCode Found(Mat A, PetscInt kind, IS *is)
{
  PetscInt rs, re, n = 0, rows[N];

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt i = rs; i < re; i += 2) rows[n++] = i;
  PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  PetscCall(MatZeroRows(A, n, rows, 0.0, NULL, NULL));
  if (kind == 0) PetscCall(MatFindZeroDiagonals(A, is));
  if (kind == 1) PetscCall(MatFindNonzeroRows(A, is));
  if (kind == 2) PetscCall(MatFindZeroRows(A, is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Blocks(Mat A, Vec v)
{
  const PetscScalar *inverse;
  PetscScalar       *a;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(MatInvertBlockDiagonal(A, &inverse));
  PetscCall(VecGetArrayWrite(v, &a));
  for (PetscInt k = 0; k < n; k++) a[k] = inverse[k];
  PetscCall(VecRestoreArrayWrite(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define ONE   1 /* on one process */
#define SOME  2 /* on several */
#define BOTH  3
#define AGAIN 4  /* with MAT_REUSE_MATRIX, too */
#define MIXED 8  /* with MATAIJ in the place of an argument, too */
#define LOOSE 16 /* with rounding */

#define TABLE(R) \
  R(AB, BOTH | AGAIN | MIXED, MatMatMult(A, B, reuse, PETSC_DEFAULT, &r->M)) \
  R(AtB, BOTH | AGAIN | MIXED, MatTransposeMatMult(A, B, reuse, PETSC_DEFAULT, &r->M)) \
  R(ABt, ONE | AGAIN | MIXED, MatMatTransposeMult(A, B, reuse, PETSC_DEFAULT, &r->M)) \
  R(PtAP, BOTH | AGAIN | MIXED, MatPtAP(A, B, reuse, PETSC_DEFAULT, &r->M)) \
  R(RARt, BOTH | AGAIN | MIXED, MatRARt(A, B, reuse, PETSC_DEFAULT, &r->M)) \
  R(ABC, BOTH | AGAIN | MIXED, MatMatMatMult(A, B, C, reuse, PETSC_DEFAULT, &r->M)) \
  R(TA_B, BOTH | AGAIN | MIXED, WithTranspose(A, B, NULL, reuse, &r->M)) \
  R(TA_B_C, ONE | AGAIN | MIXED, WithTranspose(A, B, C, reuse, &r->M)) \
  R(A_dense, BOTH | AGAIN, WithDense(A, MATPRODUCT_AB, PETSC_FALSE, reuse, &r->M)) \
  R(At_dense, BOTH | AGAIN, WithDense(A, MATPRODUCT_AtB, PETSC_FALSE, reuse, &r->M)) \
  R(A_denset, ONE | AGAIN, WithDense(A, MATPRODUCT_ABt, PETSC_FALSE, reuse, &r->M)) \
  R(dense_A, BOTH | AGAIN, WithDense(A, MATPRODUCT_AB, PETSC_TRUE, reuse, &r->M)) \
  R(dense_PtAP, BOTH | AGAIN, WithDense(A, MATPRODUCT_PtAP, PETSC_FALSE, reuse, &r->M)) \
  R(dense_RARt, ONE | AGAIN, WithDense(A, MATPRODUCT_RARt, PETSC_FALSE, reuse, &r->M)) \
  R(AXPYSame, BOTH | MIXED, Changed(A, B, 0, SAME_NONZERO_PATTERN, &r->M)) \
  R(AXPYSubset, BOTH | MIXED, Changed(A, B, 0, SUBSET_NONZERO_PATTERN, &r->M)) \
  R(AXPYDifferent, BOTH | MIXED, Changed(A, B, 0, DIFFERENT_NONZERO_PATTERN, &r->M)) \
  R(AYPXSame, BOTH | MIXED, Changed(A, B, 1, SAME_NONZERO_PATTERN, &r->M)) \
  R(AYPXDifferent, BOTH | MIXED, Changed(A, B, 1, DIFFERENT_NONZERO_PATTERN, &r->M)) \
  R(CopySame, BOTH | MIXED, Changed(A, B, 2, SAME_NONZERO_PATTERN, &r->M)) \
  R(CopyDifferent, BOTH | MIXED, Changed(A, B, 2, DIFFERENT_NONZERO_PATTERN, &r->M)) \
  R(AXPYInto, BOTH, Into(A, PETSC_FALSE, SAME_NONZERO_PATTERN, &r->M)) \
  R(AXPYIntoDifferent, BOTH, Into(A, PETSC_FALSE, DIFFERENT_NONZERO_PATTERN, &r->M)) \
  R(CopyInto, BOTH, Into(A, PETSC_TRUE, SAME_NONZERO_PATTERN, &r->M)) \
  R(Duplicate, BOTH, MatDuplicate(A, MAT_COPY_VALUES, &r->M)) \
  R(Transpose, BOTH | AGAIN, MatTranspose(A, reuse, &r->M)) \
  R(ToAIJ, BOTH | AGAIN, MatConvert(A, MATAIJ, reuse, &r->M)) \
  R(ToDense, BOTH | AGAIN, MatConvert(A, MATDENSE, reuse, &r->M)) \
  R(ToBAIJ, BOTH | AGAIN, MatConvert(A, MATBAIJ, reuse, &r->M)) \
  R(ToSELL, BOTH, MatConvert(A, MATSELL, MAT_INITIAL_MATRIX, &r->M)) \
  R(ToPerm, BOTH, MatConvert(A, MATAIJPERM, MAT_INITIAL_MATRIX, &r->M)) \
  R(ToCRL, BOTH, MatConvert(A, MATAIJCRL, MAT_INITIAL_MATRIX, &r->M)) \
  R(ToIS, BOTH, MatConvert(A, MATIS, MAT_INITIAL_MATRIX, &r->M)) \
  R(Normal, BOTH, ByNormal(A, x, r->v, PETSC_FALSE)) \
  R(NormalDiagonal, BOTH, ByNormal(A, x, r->v, PETSC_TRUE)) \
  R(Nest, BOTH, Nested(A, B, &r->M)) \
  R(CompositeSum, BOTH | MIXED, Merged(A, B, MAT_COMPOSITE_ADDITIVE, &r->M)) \
  R(CompositeProduct, BOTH | MIXED, Merged(A, B, MAT_COMPOSITE_MULTIPLICATIVE, &r->M)) \
  R(View, BOTH, Viewed(A, &r->M)) \
  R(Permute, BOTH, Permuted(A, &r->M)) \
  R(SubMatrix, BOTH | AGAIN, Part(A, reuse, &r->M)) \
  R(Redundant, BOTH | AGAIN, MatCreateRedundantMatrix(A, 2, MPI_COMM_NULL, reuse, &r->M)) \
  R(Concatenate, BOTH | AGAIN, Concatenated(A, reuse, &r->M)) \
  R(SchurComplement, BOTH | LOOSE, Schur(A, &r->M)) \
  R(LU, ONE | LOOSE, Factored(A, MAT_FACTOR_LU, x, r->v)) \
  R(ILU, ONE | LOOSE, Factored(A, MAT_FACTOR_ILU, x, r->v)) \
  R(Cholesky, ONE | LOOSE, Factored(A, MAT_FACTOR_CHOLESKY, x, r->v)) \
  R(ICC, ONE | LOOSE, Factored(A, MAT_FACTOR_ICC, x, r->v)) \
  R(PCRedundant, BOTH | LOOSE, Applied(A, PCREDUNDANT, x, r->v)) \
  R(PCBJacobi, BOTH | LOOSE, Applied(A, PCBJACOBI, x, r->v)) \
  R(PCASM, BOTH | LOOSE, Applied(A, PCASM, x, r->v)) \
  R(PCSOR, BOTH | LOOSE, Applied(A, PCSOR, x, r->v)) \
  R(PCJacobi, BOTH | LOOSE, Applied(A, PCJACOBI, x, r->v)) \
  R(PCPBJacobi, BOTH | LOOSE, Applied(A, PCPBJACOBI, x, r->v)) \
  R(PCGAMG, BOTH | LOOSE, Applied(A, PCGAMG, x, r->v)) \
  R(PCSVD, BOTH | LOOSE, Applied(A, PCSVD, x, r->v)) \
  R(PCKaczmarz, BOTH | LOOSE, Applied(A, PCKACZMARZ, x, r->v)) \
  R(LUInPlace, ONE | LOOSE, InPlace(A, x, r->v)) \
  R(Relax, BOTH | LOOSE, Relaxed(A, x, r->v)) \
  R(LRC, BOTH, LowRank(A, x, r->v)) \
  R(InvertBlocks, BOTH | LOOSE, Blocks(A, r->v)) \
  R(Diagonal, BOTH, MatGetDiagonal(A, r->v)) \
  R(RowSum, BOTH, MatGetRowSum(A, r->v)) \
  R(RowMax, BOTH, Rows(A, 0, r->v)) \
  R(RowMin, BOTH, Rows(A, 1, r->v)) \
  R(RowMaxAbs, BOTH, Rows(A, 2, r->v)) \
  R(RowMinAbs, BOTH, Rows(A, 3, r->v)) \
  R(Equal, BOTH | MIXED, Answered(A, B, 0, &r->number)) \
  R(EqualSelf, BOTH, Answered(A, A, 0, &r->number)) \
  R(IsTranspose, BOTH, Answered(A, B, 1, &r->number)) \
  R(IsSymmetric, ONE, Answered(A, B, 2, &r->number)) \
  R(MultEqual, BOTH | MIXED, Answered(A, B, 3, &r->number)) \
  R(IsHermitian, ONE, Answered(A, B, 4, &r->number)) \
  R(ColumnNorms, BOTH, Answered(A, B, 5, &r->number)) \
  R(NormFrobenius, BOTH | LOOSE, Answered(A, B, 6, &r->number)) \
  R(Norm1, BOTH, Answered(A, B, 7, &r->number)) \
  R(NormInfinity, BOTH, Answered(A, B, 8, &r->number)) \
  R(ZeroDiagonals, BOTH, Found(A, 0, &r->is)) \
  R(NonzeroRows, BOTH, Found(A, 1, &r->is)) \
  R(ZeroRows, BOTH, Found(A, 2, &r->is))

#define DEFINE(name, where, call) \
  static PetscErrorCode Run##name(Mat A, Mat B, Mat C, Vec x, MatReuse reuse, Result *r) \
  { \
    PetscFunctionBegin; \
    PetscCall(call); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
TABLE(DEFINE)

typedef struct {
  const char *name;
  int         flags;
  PetscErrorCode (*run)(Mat, Mat, Mat, Vec, MatReuse, Result *);
} Row;
#define ROW(name, flags, call) {#name, flags, Run##name},
static const Row table[] = {TABLE(ROW)};

/* Every entry of the local rows, zeros included */
static PetscErrorCode Entries(Mat A, PetscInt rs, PetscInt re, PetscInt n, PetscScalar *a)
{
  PetscFunctionBegin;
  PetscCall(PetscArrayzero(a, (re - rs) * n));
  for (PetscInt i = rs; i < re; i++) {
    const PetscInt    *c;
    const PetscScalar *v;
    PetscInt           m;

    PetscCall(MatGetRow(A, i, &m, &c, &v));
    for (PetscInt k = 0; k < m; k++) a[(i - rs) * n + c[k]] += v[k];
    PetscCall(MatRestoreRow(A, i, &m, &c, &v));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Same(const PetscScalar a[], const PetscScalar b[], PetscInt n, PetscBool loose, const char what[])
{
  PetscReal largest = 0;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < n; k++) largest = PetscMax(largest, PetscAbsScalar(b[k]));
  for (PetscInt k = 0; k < n; k++)
    PetscCheck(PetscAbsScalar(a[k] - b[k]) <= (loose ? 1e6 * PETSC_MACHINE_EPSILON * largest : 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: entry %" PetscInt_FMT " is %.17g, not %.17g", what, k, (double)PetscRealPart(a[k]), (double)PetscRealPart(b[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SameMat(const Mat m[2], PetscBool loose, const char what[])
{
  PetscInt     rs, re, n;
  PetscScalar *a[2];

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(m[1], &rs, &re));
  PetscCall(MatGetSize(m[1], NULL, &n));
  for (int k = 0; k < 2; k++) {
    PetscBool is; /* has no MatGetRow(); MATMPISELL has none in PETSc 3.24 */

    PetscCall(PetscObjectTypeCompareAny((PetscObject)m[k], &is, MATIS, MATMPISELL, ""));
    PetscCall(PetscMalloc1((re - rs) * n + 1, &a[k]));
    if (is) {
      Mat B;

      PetscCall(MatConvert(m[k], MATAIJ, MAT_INITIAL_MATRIX, &B));
      PetscCall(Entries(B, rs, re, n, a[k]));
      PetscCall(MatDestroy(&B));
    } else PetscCall(Entries(m[k], rs, re, n, a[k]));
  }
  PetscCall(Same(a[0], a[1], (re - rs) * n, loose, what));
  for (int k = 0; k < 2; k++) PetscCall(PetscFree(a[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(const Result r[2], PetscBool loose, const char what[])
{
  const PetscScalar number[2] = {r[0].number, r[1].number}, *a[2];
  PetscInt          n;

  PetscFunctionBegin;
  if (r[1].M) {
    const Mat m[2] = {r[0].M, r[1].M};

    PetscCall(SameMat(m, loose, what));
  }
  if (r[1].is) {
    PetscBool same;

    PetscCall(ISEqual(r[0].is, r[1].is, &same));
    PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: other rows", what);
  }
  PetscCall(Same(&number[0], &number[1], 1, loose, what));
  PetscCall(VecGetLocalSize(r[1].v, &n));
  for (int k = 0; k < 2; k++) PetscCall(VecGetArrayRead(r[k].v, &a[k]));
  PetscCall(Same(a[0], a[1], n, loose, what));
  for (int k = 0; k < 2; k++) PetscCall(VecRestoreArrayRead(r[k].v, &a[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* aij: the argument that is a MATAIJ; 3: none */
static PetscErrorCode Do(const Row *row, int aij, const char what[])
{
  Mat    m[2][3];
  Vec    x[2];
  Result r[2] = {{NULL}};

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    for (int q = 0; q < 3; q++) PetscCall(Make((PetscBool)(k || q == aij), 1 + 4 * q, &m[k][q]));
    PetscCall(MatCreateVecs(m[k][0], &x[k], &r[k].v));
    for (int q = 0; q < 3; q++) PetscCall(MatShift(m[k][q], 50.0 + q)); /* with an inverse */
    PetscCall(FillVec(x[k], 1));
    PetscCall(VecSet(r[k].v, 0.0));
  }
  for (int again = 0; again < (row->flags & AGAIN ? 2 : 1); again++) {
    for (int k = 0; k < 2; k++) {
      Vec y;

      PetscCall(VecDuplicate(r[k].v, &y));
      for (int q = 0; q < 3; q++) {
        PetscCall(MatMult(m[k][q], x[k], y));
        PetscCall(MatScale(m[k][q], again ? -1.0 : 2.0)); /* on the device */
      }
      if (again) PetscCall(MatScale(r[k].M, 3.0));
      PetscCall(VecDestroy(&y));
      PetscCall((*row->run)(m[k][0], m[k][1], m[k][2], x[k], again ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, &r[k]));
    }
    PetscCall(Compare(r, (PetscBool) !!(row->flags & LOOSE), what));
  }
  for (int q = 0; q < 3; q++) {
    const Mat pair[2] = {m[0][q], m[1][q]};

    PetscCall(SameMat(pair, PETSC_FALSE, what));
  }
  for (int k = 0; k < 2; k++) {
    for (int q = 0; q < 3; q++) PetscCall(MatDestroy(&m[k][q]));
    PetscCall(MatDestroy(&r[k].M));
    PetscCall(ISDestroy(&r[k].is));
    PetscCall(VecDestroy(&r[k].v));
    PetscCall(VecDestroy(&x[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscMPIInt size;
  char        only[64] = "", what[64];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsSetValue(NULL, "-t434_pc_gamg_gpucsr", "false")); /* its aggregates are others, and estimates of eigenvalues differ by more than rounding */
  PetscCall(PetscOptionsSetValue(NULL, "-t434_pc_gamg_agg_nsmooths", "0"));
  PetscCall(PetscOptionsSetValue(NULL, "-t434_mg_levels_ksp_type", "richardson"));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-row", only, sizeof(only), NULL));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(table); k++) {
    if (!(table[k].flags & (size == 1 ? ONE : SOME)) || (only[0] && strcmp(only, table[k].name))) continue;
    if (PETSC_VERSION_GE(3, 24, 0) && !strcmp(table[k].name, "TA_B_C")) continue; /* MatProductSetFromOptions() of three MATAIJ reads the freed transpose: PETSc 3.24.6, ProductType UNSPECIFIED */
    for (int aij = 3; aij >= (table[k].flags & MIXED ? 0 : 3); aij--) {
      PetscCall(PetscSNPrintf(what, sizeof(what), "%s%s%s", table[k].name, aij < 3 ? ", MATAIJ in place " : "", aij < 3 ? (const char *[]){"0", "1", "2"}[aij] : ""));
      PetscCall(Do(&table[k], aij, what));
    }
  }
  PetscCall(PetscFinalize());
  return 0;
}

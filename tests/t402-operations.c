//TEST name="default"
//TEST name="format" args="-mat_gpucsr_format {}" loop="csr sell dense"
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

/* ---- matrix in, matrix out ---- */

static PetscErrorCode Duplicate(Mat A, Mat *C)
{
  return MatDuplicate(A, MAT_COPY_VALUES, C);
}

static PetscErrorCode DuplicateThenCopy(Mat A, Mat *C)
{
  PetscFunctionBegin;
  PetscCall(MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, C));
  PetscCall(MatCopy(A, *C, SAME_NONZERO_PATTERN));
  PetscCall(MatScale(A, 3.0)); /* the copy is its own */
  PetscCall(MatScale(A, 1.0 / 3.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SharePattern(Mat A, Mat *C)
{
  PetscFunctionBegin;
  PetscCall(MatDuplicate(A, MAT_SHARE_NONZERO_PATTERN, C));
  PetscCall(MatShift(*C, 2.0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ToAIJ(Mat A, Mat *C)
{
  return MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, C);
}

static PetscErrorCode ToSame(Mat A, Mat *C)
{
  return MatConvert(A, MATSAME, MAT_INITIAL_MATRIX, C);
}

static PetscErrorCode ToDense(Mat A, Mat *C)
{
  return MatConvert(A, MATDENSE, MAT_INITIAL_MATRIX, C);
}

static PetscErrorCode ToBAIJ(Mat A, Mat *C)
{
  return MatConvert(A, MATBAIJ, MAT_INITIAL_MATRIX, C);
}

static PetscErrorCode ToSELL(Mat A, Mat *C)
{
  return MatConvert(A, MATSELL, MAT_INITIAL_MATRIX, C);
}

static PetscErrorCode ToPerm(Mat A, Mat *C)
{
  return MatConvert(A, MATAIJPERM, MAT_INITIAL_MATRIX, C);
}

static PetscErrorCode Symmetrize(Mat A, Mat *S)
{
  Mat T;

  PetscFunctionBegin;
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &T));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, S));
  PetscCall(MatAXPY(*S, 1.0, T, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatSetOption(*S, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(MatDestroy(&T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ToSBAIJ(Mat A, Mat *C)
{
  Mat S;

  PetscFunctionBegin;
  PetscCall(Symmetrize(A, &S));
  PetscCall(MatConvert(S, MATSBAIJ, MAT_INITIAL_MATRIX, C));
  PetscCall(MatDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A to `there`, and back to the type that A has */
static PetscErrorCode Back(Mat A, MatType there, Mat *C)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatConvert(A, there, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatConvert(B, Type(A), MAT_INITIAL_MATRIX, C));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FromAIJ(Mat A, Mat *C)
{
  return Back(A, MATAIJ, C);
}

static PetscErrorCode FromDense(Mat A, Mat *C)
{
  return Back(A, MATDENSE, C);
}

static PetscErrorCode FromBAIJ(Mat A, Mat *C)
{
  return Back(A, MATBAIJ, C);
}

static PetscErrorCode ConvertReuse(Mat A, Mat *C)
{
  PetscFunctionBegin;
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, C));
  PetscCall(MatScale(*C, 5.0));
  PetscCall(MatConvert(A, MATAIJ, MAT_REUSE_MATRIX, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transpose(Mat A, Mat *C)
{
  return MatTranspose(A, MAT_INITIAL_MATRIX, C);
}

static PetscErrorCode TransposeReuse(Mat A, Mat *C)
{
  PetscFunctionBegin;
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, C));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, C));
  PetscCall(MatScale(A, 0.5));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeVirtual(Mat A, Mat *C)
{
  return MatCreateTranspose(A, C);
}

static PetscErrorCode NormalVirtual(Mat A, Mat *C)
{
  return MatCreateNormal(A, C);
}

/* Written by MatView() and read again, both in PETSc's binary format, from a file that only this run uses */
static PetscErrorCode ViewLoad(Mat A, Mat *C)
{
  char        name[PETSC_MAX_PATH_LEN], tmp[PETSC_MAX_PATH_LEN];
  MPI_Comm    comm = PetscObjectComm((PetscObject)A);
  PetscViewer viewer;
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCall(PetscGetTmp(comm, tmp, sizeof(tmp)));
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s/t402.%d", tmp, (int)getpid()));
  PetscCallMPI(MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, comm));
  PetscCall(PetscViewerBinaryOpen(comm, name, FILE_MODE_WRITE, &viewer));
  PetscCall(PetscViewerBinarySetSkipInfo(viewer, PETSC_TRUE));
  PetscCall(MatView(A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(MatCreate(comm, C));
  PetscCall(MatSetType(*C, Type(A)));
  PetscCall(PetscViewerBinaryOpen(comm, name, FILE_MODE_READ, &viewer));
  PetscCall(MatLoad(*C, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  if (!rank) PetscCheck(!remove(name), PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "Cannot remove %s", name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every second row of this rank, two thirds of its columns backwards */
static PetscErrorCode Some(Mat A, IS *rows, IS *cols)
{
  PetscInt rs, re, cs, ce;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatGetOwnershipRangeColumn(A, &cs, &ce));
  PetscCall(ISCreateStride(PetscObjectComm((PetscObject)A), (re - rs + 1) / 2, rs, 2, rows));
  PetscCall(ISCreateStride(PetscObjectComm((PetscObject)A), 2 * (ce - cs) / 3, cs, 1, cols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubMatrix(Mat A, Mat *C)
{
  IS rows, cols;

  PetscFunctionBegin;
  PetscCall(Some(A, &rows, &cols));
  PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_INITIAL_MATRIX, C));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubMatrixReuse(Mat A, Mat *C)
{
  IS  rows, cols;
  Vec x, y;

  PetscFunctionBegin;
  PetscCall(Some(A, &rows, &cols));
  PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_INITIAL_MATRIX, C));
  PetscCall(MatCreateVecs(*C, &x, &y)); /* a product, so that the old values are resident */
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(*C, x, y));
  PetscCall(MatScale(A, 4.0));
  PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_REUSE_MATRIX, C));
  PetscCall(MatScale(A, 0.25));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubMatrixVirtual(Mat A, Mat *C)
{
  IS rows, cols;

  PetscFunctionBegin;
  PetscCall(Some(A, &rows, &cols));
  PetscCall(MatCreateSubMatrixVirtual(A, rows, cols, C));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&cols));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A sequential matrix on every rank: its own rows, and their neighbours */
static PetscErrorCode SubMatrices(Mat A, Mat *C)
{
  IS       is;
  Mat     *sub;
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, re - rs, rs, 1, &is));
  PetscCall(MatIncreaseOverlap(A, 1, &is, 2));
  PetscCall(ISSort(is));
  PetscCall(MatCreateSubMatrices(A, 1, &is, &is, MAT_INITIAL_MATRIX, &sub));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatCreateSubMatrices(A, 1, &is, &is, MAT_REUSE_MATRIX, &sub));
  PetscCall(MatScale(A, 0.5));
  *C = sub[0];
  PetscCall(PetscObjectReference((PetscObject)*C));
  PetscCall(MatDestroySubMatrices(1, &sub));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Permute(Mat A, Mat *C)
{
  IS       is;
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(ISCreateStride(PetscObjectComm((PetscObject)A), re - rs, re - 1, -1, &is));
  PetscCall(ISSetPermutation(is));
  PetscCall(MatPermute(A, is, is, C));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalBlock(Mat A, Mat *C)
{
  PetscFunctionBegin;
  PetscCall(MatGetDiagonalBlock(A, C));
  PetscCall(PetscObjectReference((PetscObject)*C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode LocalMatrix(Mat A, Mat *C)
{
  PetscBool mpi;

  PetscFunctionBegin;
  PetscCall(PetscObjectBaseTypeCompare((PetscObject)A, MATMPIAIJ, &mpi));
  if (mpi) PetscCall(MatMPIAIJGetLocalMat(A, MAT_INITIAL_MATRIX, C));
  else PetscCall(MatDuplicate(A, MAT_COPY_VALUES, C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Redundant(Mat A, Mat *C)
{
  return MatCreateRedundantMatrix(A, 0, PETSC_COMM_SELF, MAT_INITIAL_MATRIX, C);
}

static PetscErrorCode AtimesA(Mat A, Mat *C)
{
  PetscFunctionBegin;
  PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatMatMult(A, A, MAT_REUSE_MATRIX, PETSC_DEFAULT, C));
  PetscCall(MatScale(A, 0.5));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AtimesPlain(Mat A, Mat *C) /* a factor of another type */
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatShift(B, 1.0));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PlainTimesA(Mat A, Mat *C)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &B));
  PetscCall(MatShift(B, 1.0));
  PetscCall(MatMatMult(B, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A tall dense matrix with A's layout of columns, or of rows */
static PetscErrorCode Dense(Mat A, PetscBool rows, Mat *B)
{
  PetscInt     m, n, rs, lda;
  PetscScalar *v;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, rows ? &m : NULL, rows ? NULL : &m));
  if (rows) PetscCall(MatGetOwnershipRange(A, &rs, NULL));
  else PetscCall(MatGetOwnershipRangeColumn(A, &rs, NULL));
  PetscCall(MatCreateDense(PetscObjectComm((PetscObject)A), m, PETSC_DECIDE, PETSC_DETERMINE, 5, NULL, B));
  PetscCall(MatDenseGetLDA(*B, &lda));
  PetscCall(MatDenseGetArrayWrite(*B, &v));
  n = 5;
  for (PetscInt c = 0; c < n; c++)
    for (PetscInt r = 0; r < m; r++) v[c * lda + r] = ZooScalar(4711, rs + r, c);
  PetscCall(MatDenseRestoreArrayWrite(*B, &v));
  PetscCall(MatAssemblyBegin(*B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*B, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AtimesDense(Mat A, Mat *C)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(Dense(A, PETSC_FALSE, &B));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeTimesDense(Mat A, Mat *C)
{
  Mat B;

  PetscFunctionBegin;
  PetscCall(Dense(A, PETSC_TRUE, &B));
  PetscCall(MatTransposeMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Five rows, dealt out to the ranks as PETSc does, times A */
static PetscErrorCode DenseTimesA(Mat A, Mat *C)
{
  PetscInt m, rs, re, columns;
  Mat      D;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatCreateDense(PetscObjectComm((PetscObject)A), PETSC_DECIDE, m, 5, PETSC_DETERMINE, NULL, &D));
  PetscCall(MatGetOwnershipRange(D, &rs, &re));
  PetscCall(MatGetSize(D, NULL, &columns));
  for (PetscInt r = rs; r < re; r++)
    for (PetscInt c = 0; c < columns; c++) PetscCall(MatSetValue(D, r, c, ZooScalar(4711, r, c), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(D, MAT_FINAL_ASSEMBLY));
  PetscCall(MatMatMult(D, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TransposeTimesA(Mat A, Mat *C)
{
  return MatTransposeMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C);
}

static PetscErrorCode AtimesTranspose(Mat A, Mat *C)
{
  return MatMatTransposeMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C);
}

/* Every third column of the identity, as a coarse space; of A's type */
static PetscErrorCode Prolongation(Mat A, Mat *P)
{
  PetscInt rs, re, n = 0, start;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  n = (re - rs + 2) / 3;
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), P));
  PetscCall(MatSetSizes(*P, re - rs, n, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(*P, Type(A)));
  PetscCall(MatSeqAIJSetPreallocation(*P, 2, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*P, 2, NULL, 0, NULL));
  PetscCall(MatGetOwnershipRangeColumn(*P, &start, NULL));
  for (PetscInt r = rs; r < re; r++) PetscCall(MatSetValue(*P, r, start + (r - rs) / 3, 1.0 + (r % 3) * 0.5, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*P, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*P, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PtAP(Mat A, Mat *C)
{
  Mat P;

  PetscFunctionBegin;
  PetscCall(Prolongation(A, &P));
  PetscCall(MatPtAP(A, P, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatPtAP(A, P, MAT_REUSE_MATRIX, PETSC_DEFAULT, C));
  PetscCall(MatScale(A, 0.5));
  PetscCall(MatDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode RARt(Mat A, Mat *C)
{
  Mat P, R;

  PetscFunctionBegin;
  PetscCall(Prolongation(A, &P));
  PetscCall(MatTranspose(P, MAT_INITIAL_MATRIX, &R));
  PetscCall(MatRARt(A, R, MAT_INITIAL_MATRIX, PETSC_DEFAULT, C));
  PetscCall(MatDestroy(&P));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Nest(Mat A, Mat *C)
{
  Mat T, blocks[4];

  PetscFunctionBegin;
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &T));
  blocks[0] = A;
  blocks[1] = T;
  blocks[2] = NULL;
  blocks[3] = A;
  PetscCall(MatCreateNest(PetscObjectComm((PetscObject)A), 2, NULL, 2, NULL, blocks, C));
  PetscCall(MatDestroy(&T));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NestConverted(Mat A, Mat *C)
{
  Mat N;

  PetscFunctionBegin;
  PetscCall(Nest(A, &N));
  PetscCall(MatConvert(N, MATAIJ, MAT_INITIAL_MATRIX, C));
  PetscCall(MatDestroy(&N));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Composite(Mat A, Mat *C)
{
  Mat both[2] = {A, A};

  return MatCreateComposite(PetscObjectComm((PetscObject)A), 2, both, C);
}

static PetscErrorCode Kaij(Mat A, Mat *C)
{
  return MatCreateMAIJ(A, 2, C);
}

static const struct {
  const char *name;
  PetscErrorCode (*make)(Mat, Mat *);
  PetscInt what;
} makers[] = {
  {"MatDuplicate",                    Duplicate,           SAME_TYPE },
  {"MatDuplicate, MatCopy",           DuplicateThenCopy,   SAME_TYPE },
  {"MatDuplicate, pattern shared",    SharePattern,        SAME_TYPE },
  {"MatConvert to aij",               ToAIJ,               0         },
  {"MatConvert to same",              ToSame,              SAME_TYPE },
  {"MatConvert to dense",             ToDense,             0         },
  {"MatConvert to baij",              ToBAIJ,              0         },
  {"MatConvert to sbaij",             ToSBAIJ,             0         },
  {"MatConvert to sell",              ToSELL,              SEQUENTIAL},
  {"MatConvert to aijperm",           ToPerm,              0         },
  {"MatConvert from aij",             FromAIJ,             SAME_TYPE },
  {"MatConvert from dense",           FromDense,           SAME_TYPE },
  {"MatConvert from baij",            FromBAIJ,            SAME_TYPE },
  {"MatConvert, reuse",               ConvertReuse,        0         },
  {"MatTranspose",                    Transpose,           SAME_TYPE },
  {"MatTranspose, reuse",             TransposeReuse,      SAME_TYPE },
  {"MatCreateTranspose",              TransposeVirtual,    0         },
  {"MatCreateNormal",                 NormalVirtual,       0         },
  {"MatView, MatLoad",                ViewLoad,            SAME_TYPE },
  {"MatCreateSubMatrix",              SubMatrix,           SAME_TYPE },
  {"MatCreateSubMatrix, reuse",       SubMatrixReuse,      SAME_TYPE },
  {"MatCreateSubMatrixVirtual",       SubMatrixVirtual,    0         },
  {"MatCreateSubMatrices",            SubMatrices,         0         },
  {"MatPermute",                      Permute,             0         },
  {"MatGetDiagonalBlock",             DiagonalBlock,       0         },
  {"MatMPIAIJGetLocalMat",            LocalMatrix,         0         },
  {"MatCreateRedundantMatrix",        Redundant,           0         },
  {"MatMatMult",                      AtimesA,             0         },
  {"MatMatMult with aij",             AtimesPlain,         0         },
  {"MatMatMult of aij",               PlainTimesA,         0         },
  {"MatMatMult with dense",           AtimesDense,         0         },
  {"MatTransposeMatMult with dense",  TransposeTimesDense, 0         },
  {"MatMatMult of dense",             DenseTimesA,         0         },
  {"MatTransposeMatMult",             TransposeTimesA,     0         },
  {"MatMatTransposeMult",             AtimesTranspose,     SEQUENTIAL},
  {"MatPtAP",                         PtAP,                0         },
  {"MatRARt",                         RARt,                0         },
  {"MatCreateNest",                   Nest,                0         },
  {"MatCreateNest, converted to aij", NestConverted,       0         },
  {"MatCreateComposite",              Composite,           0         },
  {"MatCreateMAIJ",                   Kaij,                0         }
};

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

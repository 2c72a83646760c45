/* Operations that take a matrix and give a matrix, of t402-operations.c */
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

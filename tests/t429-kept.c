/*
  Levels of PCGAMG on the device alone (type gpucsrlevel). The test compares each operation of a program on such a level or prolongator with the same operation on a MATAIJ. Applications agree before
  and after the operation. New values agree with PETSc's products of the same prolongators. The program replaces smoothers. A device fails, and solves go on.

  //TEST name="standin" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1"
  //TEST name="hosts" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_type standard"
  //TEST name="late" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 5"
  //TEST name="vectors" args="-mat_gpucsr_format csr -vec_type gpu -vec_gpu_separate"
  //TEST name="auto" args="-sometimes"
  //TEST name="host" gpu=0 args="-mat_gpucsr_backend host -petscs"
  //TEST name="limit" gpu=0 args="-mat_gpucsr_backend auto -gpucsr_debug_standin 1 -fails -standard_vectors -mat_gpucsr_memory_limit {}" loop="300000 600000 900000 1200000"
  //TEST name="fault" gpu=0 args="-mat_gpucsr_backend auto -gpucsr_debug_standin 1 -fails -standard_vectors -gpucsr_debug_fault {}" loop="device:400:on device:700:on device:900:on device:1000:on device:1100:on device:1200:on device:1400:on device:1800:on launch:300:on copy:60:on memory:30:on memory:90 event:26 synchronize:12:on synchronize:33:on copy:43:on copy:100:on"
  //TEST name="gmres" gpu=0 args="-mat_gpucsr_backend auto -gpucsr_debug_standin 1 -fails -standard_vectors -mg_levels_ksp_type gmres -gpucsr_debug_fault {}" loop="event:35 event:33:on synchronize:26:on copy:49:on copy:58:on"
*/
static char help[] = "Tests levels on the device alone.\n";

#include "t429-kept/levels.h"
#include <unistd.h>

#define EDGE 18

/* ---- operations; each gives a vector of the host that depends on all that it does ---- */

static PetscErrorCode Product(Mat A, PetscBool transposed, Vec *v)
{
  Vec x, y;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, transposed ? &y : &x, transposed ? &x : &y));
  PetscCall(TestFill(x, 5, PETSC_FALSE));
  PetscCall(transposed ? MatMultTranspose(A, x, y) : MatMult(A, x, y));
  PetscCall(VecDestroy(&x));
  *v = y;
  PetscFunctionReturn(PETSC_SUCCESS);
}

OPERATION(Mult, PetscCall(Product(A, PETSC_FALSE, v));)
OPERATION(MultTranspose, PetscCall(Product(A, PETSC_TRUE, v));)
OPERATION(GetDiagonal, PetscCall(MatCreateVecs(A, v, NULL)); PetscCall(MatGetDiagonal(A, *v));)
OPERATION(Norm, PetscCall(MatNorm(A, NORM_FROBENIUS, &norm)); PetscCall(Number(A, norm, v));)
OPERATION(Duplicate, PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B)); PetscCall(Product(B, PETSC_FALSE, v));)
OPERATION(Convert, PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &B)); PetscCall(Product(B, PETSC_FALSE, v));)
OPERATION(ConvertInPlace, PetscCall(MatConvert(A, MATAIJ, MAT_INPLACE_MATRIX, &A)); PetscCall(Product(A, PETSC_FALSE, v));)
OPERATION(Dense, PetscCall(MatConvert(A, MATDENSE, MAT_INITIAL_MATRIX, &B)); PetscCall(Product(B, PETSC_FALSE, v));)
OPERATION(Transpose, PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &B)); PetscCall(Product(B, PETSC_TRUE, v));)
OPERATION(Scale, PetscCall(MatScale(A, 3.0)); PetscCall(Product(A, PETSC_FALSE, v));)
OPERATION(Shift, PetscCall(MatShift(A, 0.5)); PetscCall(Product(A, PETSC_FALSE, v));)
OPERATION(Square, PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &B)); PetscCall(Product(B, PETSC_FALSE, v));)
OPERATION(Gram, PetscCall(MatTransposeMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &B)); PetscCall(Product(B, PETSC_FALSE, v));)
OPERATION(PtAP, PetscCall(MatPtAP(fine, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &B)); PetscCall(Product(B, PETSC_FALSE, v));)
OPERATION(Times, PetscCall(MatMatMult(fine, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &B)); PetscCall(Product(B, PETSC_FALSE, v));)
OPERATION(Add, PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B)); PetscCall(MatAXPY(B, 2.0, A, SAME_NONZERO_PATTERN)); PetscCall(Product(B, PETSC_FALSE, v));)
OPERATION(MaxAbs, PetscCall(MatCreateVecs(A, NULL, v)); PetscCall(MatGetRowMaxAbs(A, *v, NULL));)

/* Operations of two levels: the other level is of another PC */
static Mat finest;

static PetscErrorCode Other(Mat A, Mat fine, Mat *B)
{
  PetscInt m, n;
  PC       pc;

  PetscFunctionBegin;
  if (fine == finest) {
    PetscCall(MatGetSize(A, &m, &n));
    PetscCall(Create(finest, PETSC_FALSE, &pc));
    PetscCall(LevelOf(pc, (PetscBool)(m != n), B));
    PetscCall(PetscObjectReference((PetscObject)*B));
    PetscCall(PCDestroy(&pc));
  } else PetscCall(MatDuplicate(A, MAT_COPY_VALUES, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode EqualOther(Mat A, Mat fine, Vec *v)
{
  PetscBool yes;
  Mat       B;

  PetscFunctionBegin;
  PetscCall(Other(A, fine, &B));
  PetscCall(MatEqual(A, B, &yes));
  PetscCall(Number(A, yes ? 1 : 2, v));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}
OPERATION(AddOther, PetscCall(Other(A, fine, &B)); PetscCall(MatAXPY(A, 2.0, B, SAME_NONZERO_PATTERN)); PetscCall(Product(A, PETSC_FALSE, v));)

/* A product of the finest matrix, which has this type; three: and of the transposed prolongator of another PC */
static PetscErrorCode WithType(Mat A, Mat fine, MatType type, PetscBool three, Vec *v)
{
  Mat B, C, T = NULL;

  PetscFunctionBegin;
  PetscCall(MatConvert(fine, type, MAT_INITIAL_MATRIX, &B));
  if (three) PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &T));
  if (three) PetscCall(Other(A, fine, &A));
  PetscCall(three ? MatMatMatMult(T, B, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C) : MatMatMult(B, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(Product(C, PETSC_FALSE, v));
  if (three) PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&T));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}
OPERATION(OfAIJ, PetscCall(WithType(A, fine, MATAIJ, PETSC_FALSE, v));)
OPERATION(OfDense, PetscCall(WithType(A, fine, MATDENSE, PETSC_FALSE, v));)
OPERATION(OfThree, PetscCall(WithType(A, fine, MATSAME, PETSC_TRUE, v));)

static PetscErrorCode GetRow(Mat A, Mat fine, Vec *v)
{
  PetscInt m;

  PetscFunctionBegin;
  (void)fine;
  PetscCall(MatGetSize(A, &m, NULL));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, m, v));
  for (PetscInt r = 0; r < m; r++) {
    PetscInt           n;
    const PetscInt    *j;
    const PetscScalar *a;
    PetscScalar        sum = 0;

    PetscCall(MatGetRow(A, r, &n, &j, &a));
    for (PetscInt k = 0; k < n; k++) sum += a[k] * (j[k] + 1.0);
    PetscCall(MatRestoreRow(A, r, &n, &j, &a));
    PetscCall(VecSetValue(*v, r, sum, INSERT_VALUES));
  }
  PetscCall(VecAssemblyBegin(*v));
  PetscCall(VecAssemblyEnd(*v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetValue(Mat A, Mat fine, Vec *v)
{
  PetscFunctionBegin;
  (void)fine;
  PetscCall(MatSetValue(A, 3, 3, 7.0, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(Product(A, PETSC_FALSE, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SubMatrix(Mat A, Mat fine, Vec *v)
{
  IS  is;
  Mat B;

  PetscFunctionBegin;
  (void)fine;
  PetscCall(ISCreateStride(PETSC_COMM_SELF, 20, 4, 2, &is));
  PetscCall(MatCreateSubMatrix(A, is, is, MAT_INITIAL_MATRIX, &B));
  PetscCall(Product(B, PETSC_FALSE, v));
  PetscCall(MatDestroy(&B));
  PetscCall(ISDestroy(&is));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A name, an attached object, null spaces, a map and sizes of blocks of the program stay when a level becomes another type */
static PetscErrorCode Header(Mat A, Mat fine, Vec *v)
{
  PetscInt               m, count, *sizes, first = 0;
  const PetscInt        *got;
  const char            *name;
  PetscBool              same;
  PetscObject            object;
  MatNullSpace           null, has[3];
  ISLocalToGlobalMapping map, hasmap;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, NULL));
  PetscCall(PetscMalloc1(m, &sizes));
  for (PetscInt i = 0; i < m; i++) sizes[i] = 1;
  PetscCall(MatSetVariableBlockSizes(A, m, sizes));
  PetscCall(PetscFree(sizes));
  PetscCall(PetscObjectSetName((PetscObject)A, "mine"));
  PetscCall(PetscObjectCompose((PetscObject)A, "attached", (PetscObject)fine));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_SELF, PETSC_TRUE, 0, NULL, &null));
  PetscCall(MatSetNullSpace(A, null));
  PetscCall(MatSetTransposeNullSpace(A, null));
  PetscCall(MatSetNearNullSpace(A, null));
  PetscCall(ISLocalToGlobalMappingCreate(PETSC_COMM_SELF, 1, 1, &first, PETSC_COPY_VALUES, &map));
  PetscCall(MatSetLocalToGlobalMapping(A, map, map));
  PetscCall(Product(A, PETSC_FALSE, v));
  PetscCall(PetscObjectGetName((PetscObject)A, &name));
  PetscCall(PetscStrcmp(name, "mine", &same));
  PetscCall(PetscObjectQuery((PetscObject)A, "attached", &object));
  PetscCall(MatGetVariableBlockSizes(A, &count, &got));
  PetscCall(MatGetNullSpace(A, &has[0]));
  PetscCall(MatGetTransposeNullSpace(A, &has[1]));
  PetscCall(MatGetNearNullSpace(A, &has[2]));
  PetscCall(MatGetLocalToGlobalMapping(A, &hasmap, NULL));
  PetscCheck(same && object == (PetscObject)fine && count == m && has[0] == null && has[1] == null && has[2] == null && hasmap == map, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "A level has lost a part of its header");
  PetscCall(MatNullSpaceDestroy(&null));
  PetscCall(ISLocalToGlobalMappingDestroy(&map));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The program's own pattern in place of a level's */
static PetscErrorCode Again(Mat A, PetscBool coordinates, Vec *v)
{
  PetscInt i[3] = {0, 1, 2}, j[3] = {2, 1, 0};

  PetscFunctionBegin;
  if (coordinates) PetscCall(MatSetPreallocationCOO(A, 3, i, j));
  else PetscCall(MatSeqAIJSetPreallocation(A, 3, NULL));
  for (PetscInt k = 0; k < 3; k++) PetscCall(MatSetValue(A, i[k], j[k], 7.0 + (double)k, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(Product(A, PETSC_FALSE, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}
OPERATION(Preallocate, PetscCall(Again(A, PETSC_FALSE, v));)
OPERATION(Coordinates, PetscCall(Again(A, PETSC_TRUE, v));)

OPERATION(SOR, PetscCall(By(A, PCSOR, v));)
OPERATION(ILU, PetscCall(By(A, PCILU, v));)
OPERATION(LU, PetscCall(By(A, PCLU, v));)
OPERATION(Cholesky, PetscCall(By(A, PCCHOLESKY, v));)
OPERATION(Jacobi, PetscCall(By(A, PCJACOBI, v));)

/* PETSc's own factor */
static PetscErrorCode PETScs(Mat A, Mat fine, Vec *v)
{
  IS            rows, columns;
  MatFactorInfo info;
  PetscBool     there;
  Mat           F;
  Vec           b;

  PetscFunctionBegin;
  (void)fine;
  PetscCall(MatGetFactorAvailable(A, MATSOLVERPETSC, MAT_FACTOR_LU, &there));
  PetscCheck(there, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "PETSc's LU is not available");
  PetscCall(MatGetFactor(A, MATSOLVERPETSC, MAT_FACTOR_LU, &F));
  PetscCall(MatGetOrdering(A, MATORDERINGND, &rows, &columns));
  PetscCall(MatFactorInfoInitialize(&info));
  PetscCall(MatLUFactorSymbolic(F, A, rows, columns, &info));
  PetscCall(MatLUFactorNumeric(F, A, &info));
  PetscCall(MatCreateVecs(A, v, &b));
  PetscCall(TestFill(b, 6, PETSC_FALSE));
  PetscCall(MatSolve(F, b, *v));
  PetscCall(VecDestroy(&b));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISDestroy(&columns));
  PetscCall(MatDestroy(&F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PCs of this library inside a hierarchy: their aggregates are not those of a MATAIJ */
static PetscErrorCode Inside(Mat A, Mat fine, Vec *v)
{
  const PCType types[] = {PCGAMG, "gpuamg"};

  PetscFunctionBegin;
  for (int k = 0; k < (petscs ? 1 : 2) && fine == finest; k++) {
    Mat B;

    PetscCall(Other(A, fine, &B));
    PetscCall(By(B, types[k], v));
    PetscCall(VecDestroy(v));
    PetscCall(MatDestroy(&B));
  }
  PetscCall(Number(A, 1, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Binary(Mat A, Mat fine, Vec *v)
{
  PetscViewer viewer;
  Mat         B;
  char        name[64];

  PetscFunctionBegin;
  (void)fine;
  PetscCall(PetscSNPrintf(name, sizeof(name), "/tmp/t429.%d", (int)getpid()));
  for (int read = 0; read < 2; read++) {
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, name, read ? FILE_MODE_READ : FILE_MODE_WRITE, &viewer));
    if (!read) {
      PetscCall(PetscViewerBinarySetSkipInfo(viewer, PETSC_TRUE));
      PetscCall(MatView(A, viewer));
    } else {
      PetscCall(MatCreate(PETSC_COMM_SELF, &B));
      PetscCall(MatSetType(B, MATAIJ));
      PetscCall(MatLoad(B, viewer));
    }
    PetscCall(PetscViewerDestroy(&viewer));
  }
  unlink(name);
  PetscCall(Product(B, PETSC_FALSE, v));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Tested operations[] = {
  {"MatMult",             Mult,           2, PETSC_FALSE, PETSC_FALSE},
  {"MatMultTranspose",    MultTranspose,  2, PETSC_FALSE, PETSC_FALSE},
  {"MatGetDiagonal",      GetDiagonal,    0, PETSC_TRUE,  PETSC_FALSE},
  {"PCJACOBI",            Jacobi,         0, PETSC_TRUE,  PETSC_FALSE},
  {"MatNorm",             Norm,           2, PETSC_FALSE, PETSC_FALSE},
  {"MatDuplicate",        Duplicate,      2, PETSC_FALSE, PETSC_FALSE},
  {"MatConvert",          Convert,        2, PETSC_FALSE, PETSC_FALSE},
  {"MatConvert in place", ConvertInPlace, 2, PETSC_FALSE, PETSC_FALSE},
  {"MatConvert to dense", Dense,          0, PETSC_FALSE, PETSC_FALSE},
  {"MatTranspose",        Transpose,      2, PETSC_FALSE, PETSC_FALSE},
  {"MatScale",            Scale,          2, PETSC_FALSE, PETSC_TRUE },
  {"MatShift",            Shift,          0, PETSC_FALSE, PETSC_TRUE },
  {"MatSetValue",         SetValue,       0, PETSC_FALSE, PETSC_TRUE },
  {"MatMatMult",          Square,         0, PETSC_FALSE, PETSC_FALSE},
  {"MatTransposeMatMult", Gram,           1, PETSC_FALSE, PETSC_FALSE},
  {"MatPtAP",             PtAP,           1, PETSC_FALSE, PETSC_FALSE},
  {"MatMatMult of two",   Times,          1, PETSC_FALSE, PETSC_FALSE},
  {"MatAXPY",             Add,            2, PETSC_FALSE, PETSC_FALSE},
  {"MatEqual",            EqualOther,     2, PETSC_FALSE, PETSC_FALSE},
  {"MatAXPY of two",      AddOther,       2, PETSC_FALSE, PETSC_TRUE },
  {"MatMatMult of AIJ",   OfAIJ,          1, PETSC_FALSE, PETSC_FALSE},
  {"MatMatMult of dense", OfDense,        1, PETSC_FALSE, PETSC_FALSE},
  {"MatMatMatMult",       OfThree,        1, PETSC_FALSE, PETSC_FALSE},
  {"MatGetRowMaxAbs",     MaxAbs,         2, PETSC_FALSE, PETSC_FALSE},
  {"MatGetRow",           GetRow,         2, PETSC_FALSE, PETSC_FALSE},
  {"MatCreateSubMatrix",  SubMatrix,      2, PETSC_FALSE, PETSC_FALSE},
  {"its header",          Header,         2, PETSC_FALSE, PETSC_TRUE },
  {"preallocation",       Preallocate,    2, PETSC_FALSE, PETSC_TRUE },
  {"coordinates",         Coordinates,    2, PETSC_FALSE, PETSC_TRUE },
  {"PCSOR",               SOR,            0, PETSC_FALSE, PETSC_FALSE},
  {"PCILU",               ILU,            0, PETSC_FALSE, PETSC_FALSE},
  {"PCLU",                LU,             0, PETSC_FALSE, PETSC_FALSE},
  {"PCLU of PETSc",       PETScs,         0, PETSC_FALSE, PETSC_FALSE},
  {"PCCHOLESKY",          Cholesky,       0, PETSC_FALSE, PETSC_FALSE},
  {"PCGAMG",              Inside,         0, PETSC_FALSE, PETSC_FALSE},
  {"MatView",             Binary,         2, PETSC_FALSE, PETSC_FALSE}
};

/* ---- new values ---- */

static PetscErrorCode Smoother(PC pc, PCType type)
{
  PetscInt levels;
  KSP      smoother;
  PC       sub;

  PetscFunctionBegin;
  PetscCall(PCMGGetLevels(pc, &levels));
  for (PetscInt l = 1; l < levels; l++) {
    PetscCall(PCMGGetSmoother(pc, l, &smoother));
    PetscCall(KSPGetPC(smoother, &sub));
    PetscCall(PCSetType(sub, type));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewValues(void)
{
  Mat         A = NULL, level;
  PC          pc[2];
  Vec         y[2], d;
  PetscScalar nan = NAN;
  PetscBool   known, symmetric;

  PetscFunctionBegin;
  PetscCall(Box(PETSC_COMM_WORLD, EDGE, 1.0, 0.0, 0, PETSC_FALSE, &A));
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  for (int ref = 0; ref < 2; ref++) PetscCall(Create(A, (PetscBool)ref, &pc[ref]));
  PetscCall(MatScale(A, 3.0));
  PetscCall(Values(A, pc, PETSC_TRUE, "Values times 3"));
  PetscCall(MatShift(A, 0.01));
  PetscCall(Values(A, pc, PETSC_TRUE, "A small shift"));
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_FALSE));
  PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_FALSE));
  PetscCall(MatShift(A, 0.01));
  PetscCall(Values(A, pc, PETSC_TRUE, "A small shift again"));
  PetscCall(LevelOf(pc[0], PETSC_FALSE, &level));
  PetscCall(MatIsSymmetricKnown(level, &known, &symmetric));
  PetscCheck(!known || !symmetric, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "The level of an unsymmetric matrix is symmetric");
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  PetscCall(MatShift(A, -0.01));
  PetscCall(MatShift(A, 100.0)); /* eigenvalues of D^-1 A come near 1: with estimates PETSc makes the products */
  PetscCall(PetscOptionsSetValue(own, "-pc_gamg_recompute_esteig", "1"));
  PetscCall(Values(A, pc, PETSC_FALSE, "A large shift"));
  PetscCall(PetscOptionsSetValue(own, "-pc_gamg_recompute_esteig", "0"));
  PetscCall(MatShift(A, -90.0));
  PetscCall(Values(A, pc, PETSC_FALSE, "Back"));
  for (int ref = 0; ref < 2; ref++) PetscCall(PCDestroy(&pc[ref]));
  /* no number, and numbers again */
  PetscCall(MatShift(A, -10.0));
  PetscCall(Create(A, PETSC_FALSE, &pc[0]));
  PetscCall(MatCreateVecs(A, &d, NULL));
  PetscCall(MatGetDiagonal(A, d));
  PetscCall(MatSetValue(A, 5, 5, nan, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(PCSetOperators(pc[0], A, A));
  PetscCall(PCSetUp(pc[0]));
  PetscCall(MatDiagonalSet(A, d, INSERT_VALUES));
  PetscCall(PCSetOperators(pc[0], A, A));
  PetscCall(PCSetUp(pc[0]));
  PetscCall(Create(A, PETSC_TRUE, &pc[1]));
  for (int ref = 0; ref < 2; ref++) PetscCall(Apply(pc[ref], &y[ref]));
  PetscCall(Near(y[0], y[1], 1e3, "After NaN"));
  for (int ref = 0; ref < 2; ref++) PetscCall(VecDestroy(&y[ref]));
  for (int ref = 0; ref < 2; ref++) PetscCall(PCDestroy(&pc[ref]));
  PetscCall(VecDestroy(&d));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The program's smoothers, before and after an application, and then Jacobi's with new values */
static PetscErrorCode Smoothers(Mat A)
{
  const PCType types[] = {PCSOR, PCILU, PCPBJACOBI, PCBJACOBI, PCNONE};
  PC           pc[2];

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++)
    for (int applied = 0; applied < 2; applied++) {
      Vec y[2];

      for (int ref = 0; ref < 2; ref++) {
        PetscCall(Create(A, (PetscBool)ref, &pc[ref]));
        if (applied) PetscCall(Apply(pc[ref], &y[ref]));
        if (applied) PetscCall(VecDestroy(&y[ref]));
        PetscCall(Smoother(pc[ref], types[k]));
        PetscCall(Apply(pc[ref], &y[ref]));
      }
      PetscCall(Near(y[0], y[1], 1e3, types[k]));
      for (int ref = 0; ref < 2; ref++) {
        PetscCall(VecDestroy(&y[ref]));
        PetscCall(PCDestroy(&pc[ref]));
      }
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a device that fails ---- */

/* Solves of a device that fails, and PETSc's residual. A vector that only the device has may end in an error */
static PetscErrorCode Fails(Mat A, Mat R)
{
  KSP            ksp;
  PC             pc;
  Vec            x, b, w, y, r;
  PetscReal      norm, bnorm;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(x, &w));
  PetscCall(MatCreateVecs(R, &y, &r));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetType(ksp, "gpucg"));
  PetscCall(KSPSetTolerances(ksp, 1e-9, PETSC_DEFAULT, PETSC_DEFAULT, 200));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  for (int pass = 0; pass < 4; pass++) {
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(VecSet(b, 1.0));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = KSPSolve(ksp, b, x);
    if (!ierr) ierr = PCApplyTranspose(pc, b, w);
    PetscCall(PetscPopErrorHandler());
    if (ierr == PETSC_ERR_GPU || ierr == PETSC_ERR_ARG_WRONGSTATE) break; /* PETSc 3.24 leaves the vectors of an interrupted solver locked */
    PetscCall(ierr);
    PetscCall(VecCopy(x, y));
    PetscCall(VecSet(r, -1.0));
    PetscCall(VecNorm(r, NORM_2, &bnorm));
    PetscCall(MatMultAdd(R, y, r, r));
    PetscCall(VecNorm(r, NORM_2, &norm));
    PetscCheck(norm <= 1e-8 * bnorm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Solve %d: residual %g", pass, (double)(norm / bnorm));
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&w));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool fails = PETSC_FALSE, sometimes = PETSC_FALSE;
  Mat       A = NULL, R = NULL;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(32));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-petscs", &petscs, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-fails", &fails, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-sometimes", &sometimes, NULL)); /* there is a device */
  PetscCall(PetscOptionsCreate(&own));
  PetscCall(PetscOptionsCreate(&aside));
  PetscCall(PetscOptionsInsertString(own, "-pc_gamg_recompute_esteig 0")); /* else PETSc estimates Chebyshev's bounds anew for new values */
  PetscCall(PetscOptionsInsertString(aside, "-pc_gamg_recompute_esteig 0 -pc_gamg_prolongator_0_none 1"));
  PetscCall(Box(PETSC_COMM_WORLD, EDGE, 3.0, 0.0, 0, PETSC_FALSE, &A));
  PetscCall(Box(PETSC_COMM_WORLD, EDGE, 3.0, 0.0, 0, PETSC_TRUE, &R));
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  PetscCall(MatSetOption(R, MAT_SPD, PETSC_TRUE));
  finest = A;
  if (fails) PetscCall(Fails(A, R));
  else {
    PC        pc;
    Mat       level;
    MatType   type;
    PetscBool there;

    PetscCall(Create(A, PETSC_FALSE, &pc));
    PetscCall(LevelOf(pc, PETSC_FALSE, &level));
    PetscCall(MatGetType(level, &type));
    PetscCall(PetscStrcmp(type, "seqaijgpucsr", &there));
    PetscCall(PCDestroy(&pc));
    if (there && !petscs && sometimes) PetscCall(TestSkip("no device"));
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(operations); k++)
      for (int p = 0; p < 2; p++)
        if (operations[k].of == 2 || operations[k].of == p) PetscCall(One(A, R, &operations[k], strncmp(operations[k].name, "PCLU", 4) && strcmp(operations[k].name, "PCCHOLESKY") ? 4 : 1e4, (PetscBool)p));
    PetscCall(NewValues());
    PetscCall(Smoothers(A));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(PetscOptionsDestroy(&own));
  PetscCall(PetscOptionsDestroy(&aside));
  PetscCall(PetscFinalize());
  return 0;
}

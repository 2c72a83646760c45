/*
  Levels of PCGAMG on the devices of several ranks alone (type mpigpucsrlevel). A level's matrix is PETSc's product of the same prolongator. Each operation of a program on a level or a prolongator gives the
  result of the same operation on a MATAIJ, and applications agree before and after it. Some operations are called by one rank alone. New values agree with PETSc's products of the same prolongators. Levels
  live longer than their PC. A device of one rank fails: all ranks have PETSc's levels, or all have the error.

  //TEST name="csr" nsize={} loop="2 3 4 8" args="-mat_gpucsr_format csr"
  //TEST name="standin" nsize={} loop="2 3" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin {} -mat_gpucsr_halo peer -cycles"
  //TEST name="staged" nsize={} loop="2 3" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin {} -gpucsr_debug_defer 5 -mat_gpucsr_halo staged"
  //TEST name="host_vectors" nsize=2 gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 2 -gpucsr_debug_defer 5 -mat_gpucsr_halo peer -standard_vectors"
  //TEST name="vectors" nsize=2 args="-mat_gpucsr_format csr -vec_type gpu -vec_gpu_separate"
  //TEST name="fault" nsize=2 gpu=0 args="-mat_gpucsr_backend auto -gpucsr_debug_standin 2 -fails -standard_vectors -gpucsr_debug_fault {}:rank=1" loop="memory:22:on memory:60:on memory:140 launch:35 launch:90 copy:60 copy:140 synchronize:40"
*/
static char help[] = "Tests levels on the devices of several ranks alone.\n";

#include "t429-kept/levels.h"
#include <unistd.h>

#define EDGE 16

static Mat       finest;
static PetscBool cycles = PETSC_FALSE; /* are the devices' */

/* ---- operations; each gives a vector that depends on all that it does ---- */

/* z = A x and z = A x + y with y in its place and elsewhere, or with the transpose. host: vectors of PETSc's own type */
static PetscErrorCode Products(Mat A, PetscBool transposed, PetscBool host, Vec *v)
{
  PetscInt m, n;
  Vec      x, y, z;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, &n));
  if (host) {
    PetscCall(VecCreateMPI(PETSC_COMM_WORLD, transposed ? m : n, PETSC_DETERMINE, &x));
    PetscCall(VecCreateMPI(PETSC_COMM_WORLD, transposed ? n : m, PETSC_DETERMINE, &y));
  } else PetscCall(MatCreateVecs(A, transposed ? &y : &x, transposed ? &x : &y));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(TestFill(x, 5, PETSC_FALSE));
  PetscCall(transposed ? MatMultTranspose(A, x, y) : MatMult(A, x, y));
  PetscCall(transposed ? MatMultTransposeAdd(A, x, y, z) : MatMultAdd(A, x, y, z));
  PetscCall(VecScale(z, 0.5));
  PetscCall(transposed ? MatMultTransposeAdd(A, x, z, z) : MatMultAdd(A, x, z, z));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  *v = z;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define PRODUCT(A) PetscCall(Products(A, PETSC_FALSE, PETSC_FALSE, v))
OPERATION(Mult, PRODUCT(A);)
OPERATION(MultTranspose, PetscCall(Products(A, PETSC_TRUE, PETSC_FALSE, v));)
OPERATION(MultHost, PetscCall(Products(A, PETSC_FALSE, PETSC_TRUE, v));)
OPERATION(MultTransposeHost, PetscCall(Products(A, PETSC_TRUE, PETSC_TRUE, v));)
OPERATION(GetDiagonal, PetscCall(MatCreateVecs(A, v, NULL)); PetscCall(MatGetDiagonal(A, *v));)
OPERATION(Norm, PetscCall(MatNorm(A, NORM_FROBENIUS, &norm)); PetscCall(Number(A, norm, v));)
OPERATION(Duplicate, PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B)); PRODUCT(B);)
OPERATION(Convert, PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &B)); PRODUCT(B);)
OPERATION(ConvertInPlace, PetscCall(MatConvert(A, MATAIJ, MAT_INPLACE_MATRIX, &A)); PRODUCT(A);)
OPERATION(Dense, PetscCall(MatConvert(A, MATDENSE, MAT_INITIAL_MATRIX, &B)); PRODUCT(B);)
OPERATION(Transpose, PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &B)); PetscCall(Products(B, PETSC_TRUE, PETSC_FALSE, v));)
OPERATION(Scale, PetscCall(MatScale(A, 3.0)); PRODUCT(A);)
OPERATION(Shift, PetscCall(MatShift(A, 0.5)); PRODUCT(A);)
OPERATION(Square, PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &B)); PRODUCT(B);)
OPERATION(Gram, PetscCall(MatTransposeMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &B)); PRODUCT(B);)
OPERATION(PtAP, PetscCall(MatPtAP(fine, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &B)); PRODUCT(B);)
OPERATION(Times, PetscCall(MatMatMult(fine, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &B)); PRODUCT(B);)
OPERATION(Add, PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B)); PetscCall(MatAXPY(B, 2.0, A, SAME_NONZERO_PATTERN)); PRODUCT(B);)

/* Rows of the first rank that has some: other ranks make no call */
static PetscErrorCode Rows(Mat A, PetscBool values, Vec *v)
{
  PetscInt    m, first, end;
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  PetscCall(VecCreateMPI(PETSC_COMM_WORLD, m, PETSC_DETERMINE, v));
  for (PetscInt r = first; r < end && !first; r++) {
    PetscInt           n;
    const PetscInt    *j;
    const PetscScalar *a;
    PetscScalar        sum = 0, got;

    PetscCall(MatGetRow(A, r, &n, &j, &a));
    for (PetscInt k = 0; k < n; k++) {
      got = a[k];
      if (values) PetscCall(MatGetValues(A, 1, &r, 1, &j[k], &got));
      sum += got * (j[k] + 1.0);
    }
    PetscCall(MatRestoreRow(A, r, &n, &j, &a));
    PetscCall(VecSetValue(*v, r, sum, INSERT_VALUES));
  }
  PetscCall(VecAssemblyBegin(*v));
  PetscCall(VecAssemblyEnd(*v));
  PetscFunctionReturn(PETSC_SUCCESS);
}
OPERATION(GetRow, PetscCall(Rows(A, PETSC_FALSE, v));)
OPERATION(GetValues, PetscCall(Rows(A, PETSC_TRUE, v));)

/* The first rank's block, ghost columns and missing entries */
static PetscErrorCode Block(Mat A, Mat fine, Vec *v)
{
  PetscInt        m, n, first, ghosts;
  const PetscInt *ghost;
  PetscReal       norm;
  PetscBool       missing;
  MatInfo         info;
  Mat             D;

  PetscFunctionBegin;
  (void)fine;
  PetscCall(MatGetLocalSize(A, &m, &n));
  PetscCall(MatGetOwnershipRange(A, &first, NULL));
  PetscCall(VecCreateMPI(PETSC_COMM_WORLD, m, PETSC_DETERMINE, v));
  PetscCall(VecSet(*v, 1.0));
  if (!first && m) {
    PetscCall(MatGetDiagonalBlock(A, &D));
    PetscCall(MatNorm(D, NORM_FROBENIUS, &norm));
    PetscCall(MatGetGhosts(A, &ghosts, &ghost));
    PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
    PetscCall(MatMissingDiagonal(A, &missing, NULL));
    PetscCall(VecSetValue(*v, 0, norm * (1 + ghosts + (ghosts ? ghost[ghosts - 1] : 0)) + info.nz_used + (missing ? 1000 : 0), INSERT_VALUES));
  }
  PetscCall(VecAssemblyBegin(*v));
  PetscCall(VecAssemblyEnd(*v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Info(Mat A, Mat fine, Vec *v)
{
  MatInfo info[2];

  PetscFunctionBegin;
  (void)fine;
  PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info[0]));
  PetscCall(MatGetInfo(A, MAT_GLOBAL_MAX, &info[1]));
  PetscCall(Number(A, info[0].nz_used + 0.001 * info[1].nz_used, v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An error with advice on the rank that calls; after the advice the entries change */
static PetscErrorCode SetValue(Mat A, Mat fine, Vec *v)
{
  PetscErrorCode ierr  = PETSC_ERR_ARG_WRONGSTATE;
  PetscBool      level = PETSC_FALSE;
  PetscInt       first, end;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, "mpigpucsrlevel", &level));
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  if (level && !first && end) {
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = MatSetValue(A, 0, 0, 7.0, INSERT_VALUES);
    PetscCall(PetscPopErrorHandler());
  }
  PetscCheck(ierr == PETSC_ERR_ARG_WRONGSTATE, PETSC_COMM_SELF, PETSC_ERR_PLIB, "MatSetValue() of a level gives error %d", (int)ierr);
  if (fine == finest) {
    PetscCall(MatConvert(A, "mpiaijgpucsr", MAT_INPLACE_MATRIX, &A));
  }
  if (!first && end) PetscCall(MatSetValue(A, 0, 0, 7.0, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PRODUCT(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A name and an attached object of the program stay when a level becomes another type */
static PetscErrorCode Header(Mat A, Mat fine, Vec *v)
{
  const char  *name;
  PetscBool    same;
  PetscObject  object;
  MatNullSpace null, has;

  PetscFunctionBegin;
  PetscCall(PetscObjectSetName((PetscObject)A, "mine"));
  PetscCall(PetscObjectCompose((PetscObject)A, "attached", (PetscObject)fine));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &null));
  PetscCall(MatSetNullSpace(A, null));
  PetscCall(MatScale(A, 2.0));
  PetscCall(PetscObjectGetName((PetscObject)A, &name));
  PetscCall(PetscStrcmp(name, "mine", &same));
  PetscCall(PetscObjectQuery((PetscObject)A, "attached", &object));
  PetscCall(MatGetNullSpace(A, &has));
  PetscCheck(same && object == (PetscObject)fine && has == null, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "A level has lost a part of its header");
  PetscCall(MatNullSpaceDestroy(&null));
  PRODUCT(A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

OPERATION(SOR, PetscCall(By(A, PCSOR, v));)
OPERATION(BJacobi, PetscCall(By(A, PCBJACOBI, v));)
OPERATION(PBJacobi, PetscCall(By(A, PCPBJACOBI, v));)
OPERATION(Jacobi, PetscCall(By(A, PCJACOBI, v));)
OPERATION(ASM, PetscCall(By(A, PCASM, v));)
OPERATION(Redundant, PetscCall(By(A, PCREDUNDANT, v));)

static PetscErrorCode Binary(Mat A, Mat fine, Vec *v)
{
  PetscMPIInt pid;
  PetscViewer viewer;
  Mat         B;
  char        name[64];

  PetscFunctionBegin;
  (void)fine;
  pid = (PetscMPIInt)getpid();
  PetscCallMPI(MPI_Bcast(&pid, 1, MPI_INT, 0, PETSC_COMM_WORLD));
  PetscCall(PetscSNPrintf(name, sizeof(name), "/tmp/t435.%d", (int)pid));
  for (int read = 0; read < 2; read++) {
    PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, name, read ? FILE_MODE_READ : FILE_MODE_WRITE, &viewer));
    if (!read) {
      PetscCall(PetscViewerBinarySetSkipInfo(viewer, PETSC_TRUE));
      PetscCall(MatView(A, viewer));
    } else {
      PetscInt m, n;

      PetscCall(MatGetLocalSize(A, &m, &n));
      PetscCall(MatCreate(PETSC_COMM_WORLD, &B));
      PetscCall(MatSetSizes(B, m, n, PETSC_DETERMINE, PETSC_DETERMINE));
      PetscCall(MatSetType(B, MATAIJ));
      PetscCall(MatLoad(B, viewer));
    }
    PetscCall(PetscViewerDestroy(&viewer));
  }
  unlink(name);
  PRODUCT(B);
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Tested operations[] = {
  {"MatMult",                         Mult,              2, PETSC_TRUE,  PETSC_FALSE},
  {"MatMult of the host's vectors",   MultHost,          2, PETSC_TRUE,  PETSC_FALSE},
  {"MatMultTranspose",                MultTranspose,     1, PETSC_TRUE,  PETSC_FALSE},
  {"MatMultTranspose of a level",     MultTranspose,     0, PETSC_FALSE, PETSC_FALSE},
  {"MatMultTranspose on the host",    MultTransposeHost, 1, PETSC_TRUE,  PETSC_FALSE},
  {"MatGetDiagonal",                  GetDiagonal,       0, PETSC_TRUE,  PETSC_FALSE},
  {"PCJACOBI",                        Jacobi,            0, PETSC_TRUE,  PETSC_FALSE},
  {"MatGetRow of one rank",           GetRow,            2, PETSC_TRUE,  PETSC_FALSE},
  {"MatGetValues of one rank",        GetValues,         2, PETSC_TRUE,  PETSC_FALSE},
  {"MatGetDiagonalBlock of one rank", Block,             0, PETSC_TRUE,  PETSC_FALSE},
  {"MatGetInfo",                      Info,              2, PETSC_TRUE,  PETSC_FALSE},
  {"MatNorm",                         Norm,              2, PETSC_FALSE, PETSC_FALSE},
  {"MatDuplicate",                    Duplicate,         2, PETSC_FALSE, PETSC_FALSE},
  {"MatConvert",                      Convert,           2, PETSC_FALSE, PETSC_FALSE},
  {"MatConvert in place",             ConvertInPlace,    2, PETSC_FALSE, PETSC_FALSE},
  {"MatConvert to dense",             Dense,             0, PETSC_FALSE, PETSC_FALSE},
  {"MatTranspose",                    Transpose,         2, PETSC_FALSE, PETSC_FALSE},
  {"MatScale",                        Scale,             2, PETSC_FALSE, PETSC_TRUE },
  {"MatShift",                        Shift,             0, PETSC_FALSE, PETSC_TRUE },
  {"MatSetValue",                     SetValue,          0, PETSC_FALSE, PETSC_TRUE },
  {"MatMatMult",                      Square,            0, PETSC_FALSE, PETSC_FALSE},
  {"MatTransposeMatMult",             Gram,              1, PETSC_FALSE, PETSC_FALSE},
  {"MatPtAP",                         PtAP,              1, PETSC_FALSE, PETSC_FALSE},
  {"MatMatMult of two",               Times,             1, PETSC_FALSE, PETSC_FALSE},
  {"MatAXPY",                         Add,               2, PETSC_FALSE, PETSC_FALSE},
  {"its header",                      Header,            2, PETSC_FALSE, PETSC_TRUE },
  {"PCSOR",                           SOR,               0, PETSC_FALSE, PETSC_FALSE},
  {"PCBJACOBI",                       BJacobi,           0, PETSC_FALSE, PETSC_FALSE},
  {"PCPBJACOBI",                      PBJacobi,          0, PETSC_FALSE, PETSC_FALSE},
  {"PCASM",                           ASM,               0, PETSC_FALSE, PETSC_FALSE},
  {"PCREDUNDANT",                     Redundant,         0, PETSC_FALSE, PETSC_FALSE},
  {"MatView",                         Binary,            2, PETSC_FALSE, PETSC_FALSE}
};

/* ---- levels ---- */

static PetscErrorCode Absolute(Mat A, Mat *B)
{
  Mat b[2];

  PetscFunctionBegin;
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, B));
  PetscCall(MatMPIAIJGetSeqAIJ(*B, &b[0], &b[1], NULL));
  for (int k = 0; k < 2; k++) {
    PetscScalar *a;
    MatInfo      info;

    PetscCall(MatGetInfo(b[k], MAT_LOCAL, &info));
    PetscCall(MatSeqAIJGetArray(b[k], &a));
    for (PetscInt q = 0; q < (PetscInt)info.nz_used; q++) a[q] = PetscAbsScalar(a[q]);
    PetscCall(MatSeqAIJRestoreArray(b[k], &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C = P^T A P entry by entry; all in type mpiaij */
static PetscErrorCode Galerkin(Mat A, Mat P, Mat C)
{
  Mat      B, S, a, p;
  PetscInt first, end;

  PetscFunctionBegin;
  PetscCall(MatPtAP(A, P, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &B));
  PetscCall(Absolute(A, &a));
  PetscCall(Absolute(P, &p));
  PetscCall(MatPtAP(a, p, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &S));
  PetscCall(MatAXPY(B, -1.0, C, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatGetOwnershipRange(B, &first, &end));
  for (PetscInt r = first; r < end; r++) {
    PetscInt           n;
    const PetscInt    *j;
    const PetscScalar *v;

    PetscCall(MatGetRow(B, r, &n, &j, &v));
    for (PetscInt k = 0; k < n; k++) {
      PetscScalar sum;

      PetscCall(MatGetValues(S, 1, &r, 1, &j[k], &sum));
      PetscCheck(PetscAbsScalar(v[k]) <= TEST_C * PETSC_MACHINE_EPSILON * PetscRealPart(sum), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Entry (%" PetscInt_FMT ", %" PetscInt_FMT ") of a level is off by %g, terms are %g", r, j[k], (double)PetscAbsScalar(v[k]), (double)PetscRealPart(sum));
    }
    PetscCall(MatRestoreRow(B, r, &n, &j, &v));
  }
  PetscCall(MatDestroy(&a));
  PetscCall(MatDestroy(&p));
  PetscCall(MatDestroy(&S));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AllGalerkin(PC pc)
{
  PetscInt levels, rows[2];
  Mat      A = NULL, C, P;
  KSP      smoother;

  PetscFunctionBegin;
  PetscCall(PCMGGetLevels(pc, &levels));
  for (PetscInt l = levels - 1; l >= 0; l--) {
    PetscCall(PCMGGetSmoother(pc, l, &smoother));
    PetscCall(KSPGetOperators(smoother, NULL, &C));
    PetscCall(MatConvert(C, MATAIJ, MAT_INITIAL_MATRIX, &C));
    if (A) {
      PetscCall(PCMGGetInterpolation(pc, l + 1, &P));
      PetscCall(MatConvert(P, MATAIJ, MAT_INITIAL_MATRIX, &P));
      PetscCall(Galerkin(A, P, C));
      PetscCall(MatGetSize(A, &rows[0], NULL));
      PetscCall(MatGetSize(C, &rows[1], NULL));
      PetscCheck(rows[1] < rows[0], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "A level of %" PetscInt_FMT " rows is under one of %" PetscInt_FMT, rows[1], rows[0]);
      PetscCall(MatDestroy(&P));
    }
    PetscCall(MatDestroy(&A));
    A = C;
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The program has a level and a prolongator longer than their PC, and than the matrix */
static PetscErrorCode Lives(void)
{
  Mat A = NULL, level[2], copy;
  PC  pc;
  Vec v, w;

  PetscFunctionBegin;
  for (int order = 0; order < 2; order++) {
    PetscCall(Box(PETSC_COMM_WORLD, EDGE, 3.0, 0.0, 0, PETSC_FALSE, &A));
    PetscCall(Create(A, PETSC_FALSE, &pc));
    for (int p = 0; p < 2; p++) {
      PetscCall(LevelOf(pc, (PetscBool)p, &level[p]));
      PetscCall(PetscObjectReference((PetscObject)level[p]));
    }
    if (order) PetscCall(MatDestroy(&A));
    PetscCall(PCDestroy(&pc));
    if (!order) PetscCall(MatDestroy(&A));
    for (int k = 0; k < 2; k++) {
      const int p = k ^ order;

      PetscCall(Products(level[p], PETSC_FALSE, PETSC_FALSE, &v));
      PetscCall(MatConvert(level[p], MATAIJ, MAT_INITIAL_MATRIX, &copy));
      PetscCall(Products(copy, PETSC_FALSE, PETSC_FALSE, &w));
      PetscCall(Near(v, w, 4, "A level without its PC"));
      PetscCall(VecDestroy(&v));
      PetscCall(VecDestroy(&w));
      PetscCall(MatDestroy(&copy));
      PetscCall(MatDestroy(&level[p]));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Coordinates of a matrix of scalars stand for constants, also beside a near null space of the matrix */
static PetscErrorCode Coordinates(Mat A)
{
  MatNullSpace near;
  PetscReal   *x;
  PetscInt     n, rows[2];
  Vec          v[2];
  Mat          level;
  PC           pc;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(PetscCalloc1(3 * n, &x));
  for (int k = 0; k < 2; k++) {
    PetscCall(MatCreateVecs(A, &v[k], NULL));
    PetscCall(TestFill(v[k], 7 + k, PETSC_FALSE));
  }
  for (int attached = 0; attached < 2; attached++) {
    PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
    PetscCall(PetscObjectSetOptions((PetscObject)pc, own));
    PetscCall(PCSetOperators(pc, A, A));
    PetscCall(PCSetType(pc, PCGAMG));
    PetscCall(PCSetCoordinates(pc, 3, n, x));
    PetscCall(PCSetFromOptions(pc));
    if (attached) {
      PetscReal   norm;
      PetscScalar dot;

      PetscCall(VecNormalize(v[0], &norm));
      PetscCall(VecDot(v[1], v[0], &dot));
      PetscCall(VecAXPY(v[1], -dot, v[0]));
      PetscCall(VecNormalize(v[1], &norm));
      PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_FALSE, 2, v, &near));
      PetscCall(MatSetNearNullSpace(A, near));
      PetscCall(MatNullSpaceDestroy(&near));
    }
    PetscCall(PCSetUp(pc));
    PetscCall(LevelOf(pc, PETSC_FALSE, &level));
    PetscCall(MatGetSize(level, &rows[attached], NULL));
    PetscCall(PCDestroy(&pc));
  }
  PetscCheck(rows[0] == rows[1], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "A near null space beside coordinates: %" PetscInt_FMT " rows, not %" PetscInt_FMT, rows[1], rows[0]);
  PetscCall(MatSetNearNullSpace(A, NULL));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&v[k]));
  PetscCall(PetscFree(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- new values ---- */

static PetscErrorCode NewValues(void)
{
  Mat A = NULL, level, D;
  PC  pc[2];
  Vec v, w;

  PetscFunctionBegin;
  PetscCall(Box(PETSC_COMM_WORLD, EDGE, 1.0, 0.0, 0, PETSC_FALSE, &A));
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  for (int ref = 0; ref < 2; ref++) PetscCall(Create(A, (PetscBool)ref, &pc[ref]));
  PetscCall(LevelOf(pc[0], PETSC_FALSE, &level));
  PetscCall(MatGetDiagonalBlock(level, &D)); /* old copies on the host */
  PetscCall(GetRow(level, A, &v));
  PetscCall(MatScale(A, 3.0));
  PetscCall(Values(A, pc, PETSC_TRUE, "Values times 3"));
  PetscCall(GetRow(level, A, &w));
  PetscCall(VecScale(v, 3.0));
  PetscCall(Near(w, v, 100, "Rows after new values"));
  PetscCall(VecDestroy(&v));
  PetscCall(VecDestroy(&w));
  PetscCall(MatCreateVecs(D, &v, NULL));
  PetscCall(VecDuplicate(v, &w));
  PetscCall(MatGetDiagonal(D, v));
  PetscCall(MatGetDiagonalBlock(level, &D));
  PetscCall(MatGetDiagonal(D, w));
  PetscCall(VecScale(v, 3.0));
  PetscCall(Near(w, v, 100, "The diagonal block after new values"));
  PetscCall(VecDestroy(&v));
  PetscCall(VecDestroy(&w));
  PetscCall(MatShift(A, 0.01));
  PetscCall(Values(A, pc, PETSC_TRUE, "A small shift"));
  PetscCall(PetscOptionsSetValue(own, "-pc_gamg_recompute_esteig", "1"));
  PetscCall(MatScale(A, 0.5));
  PetscCall(Values(A, pc, PETSC_TRUE, "Values with the same eigenvalues"));
  PetscCall(PetscOptionsSetValue(own, "-pc_gamg_recompute_esteig", "0"));
  PetscCall(AllGalerkin(pc[0]));
  PetscCall(Values(A, pc, PETSC_FALSE, "Levels on the host"));
  PetscCall(PCDestroy(&pc[0]));
  PetscCall(Create(A, PETSC_FALSE, &pc[0]));
  PetscCall(MatShift(A, 100.0)); /* eigenvalues of D^-1 A come near 1: with estimates PETSc makes the products */
  PetscCall(PetscOptionsSetValue(own, "-pc_gamg_recompute_esteig", "1"));
  PetscCall(PCDestroy(&pc[1]));
  PetscCall(PCSetOperators(pc[0], A, A));
  PetscCall(PCSetUp(pc[0]));
  PetscCall(AllGalerkin(pc[0]));
  PetscCall(PetscOptionsSetValue(own, "-pc_gamg_recompute_esteig", "0"));
  PetscCall(PCDestroy(&pc[0]));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values move the eigenvalues of coarse levels alone: with estimates PETSc makes the products and new bounds */
static PetscErrorCode Eigenvalues(void)
{
  Mat       A = NULL, P;
  PetscInt  references[3];
  PetscBool kept;
  PC        pc;

  PetscFunctionBegin;
  PetscCall(PetscOptionsInsertString(own, "-pc_gamg_recompute_esteig 1 -pc_gamg_process_eq_limit 25"));
  PetscCall(Box(PETSC_COMM_WORLD, EDGE, 0.0, 0.0, 0, PETSC_FALSE, &A));
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  PetscCall(Create(A, PETSC_FALSE, &pc));
  for (int pass = 0; pass < 3; pass++) {
    if (pass == 1) PetscCall(MatScale(A, 0.3));
    if (pass == 1) PetscCall(PCGAMGSetNSmooths(pc, 9)); /* for the next hierarchy */
    if (pass == 2) PetscCall(Box(PETSC_COMM_WORLD, EDGE, 9.0, 0.0, 0, PETSC_FALSE, &A));
    PetscCall(PCSetOperators(pc, A, A));
    PetscCall(PCSetUp(pc));
    PetscCall(LevelOf(pc, PETSC_TRUE, &P));
    PetscCall(PetscObjectTypeCompare((PetscObject)P, "mpigpucsrlevel", &kept));
    PetscCheck(kept == (PetscBool)(pass < 2 && !petscs), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "New values %d: the prolongator is %son the devices alone", pass, kept ? "" : "not ");
    PetscCall(PetscObjectGetReference((PetscObject)A, &references[pass]));
  }
  PetscCheck(references[2] < references[1] || petscs, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Levels on the host keep the devices' hierarchy");
  PetscCall(AllGalerkin(pc));
  PetscCall(PetscOptionsInsertString(own, "-pc_gamg_recompute_esteig 0 -pc_gamg_process_eq_limit 3"));
  PetscCall(PCDestroy(&pc));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The program's smoothers, before and after an application */
static PetscErrorCode Smoothers(Mat A)
{
  const PCType types[] = {PCSOR, PCPBJACOBI, PCBJACOBI, PCNONE};
  PC           pc[2], sub;
  PetscInt     levels;
  KSP          smoother;

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++)
    for (int applied = 0; applied < 2; applied++) {
      Vec y[2];

      for (int ref = 0; ref < 2; ref++) {
        PetscCall(Create(A, (PetscBool)ref, &pc[ref]));
        if (applied) PetscCall(Apply(pc[ref], &y[ref]));
        if (applied) PetscCall(VecDestroy(&y[ref]));
        PetscCall(PCMGGetLevels(pc[ref], &levels));
        for (PetscInt l = 1; l < levels; l++) {
          PetscCall(PCMGGetSmoother(pc[ref], l, &smoother));
          PetscCall(KSPGetPC(smoother, &sub));
          PetscCall(PCSetType(sub, types[k]));
        }
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

/* ---- a device of one rank fails ---- */

static PetscErrorCode Fails(Mat A, Mat R)
{
  PC        pc;
  KSP       ksp;
  Vec       x, b, r;
  PetscReal norm, bnorm;
  PetscInt  m;
  int       error, least, most;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &m, NULL));
  PetscCall(VecCreateMPI(PETSC_COMM_WORLD, m, PETSC_DETERMINE, &x));
  PetscCall(VecDuplicate(x, &b));
  PetscCall(VecDuplicate(x, &r));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetType(ksp, KSPCG));
  PetscCall(KSPSetTolerances(ksp, 1e-9, PETSC_DEFAULT, PETSC_DEFAULT, 200));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  for (int pass = 0; pass < 3; pass++) {
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(VecSet(b, 1.0));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    error = (int)KSPSetUp(ksp);
    PetscCall(PetscPopErrorHandler());
    PetscCallMPI(MPI_Allreduce(&error, &least, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD));
    PetscCallMPI(MPI_Allreduce(&error, &most, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
    PetscCheck((least == 0) == (most == 0), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "A rank has error %d, another %d", most, least);
    if (most) break;
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(VecNorm(b, NORM_2, &bnorm));
    PetscCall(MatMult(R, x, r));
    PetscCall(VecAXPY(r, -1.0, b));
    PetscCall(VecNorm(r, NORM_2, &norm));
    PetscCheck(norm <= 1e-8 * bnorm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Solve %d: residual %g", pass, (double)(norm / bnorm));
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool fails = PETSC_FALSE;
  Mat       A = NULL, R = NULL;
  PC        pc;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(32));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-fails", &fails, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-cycles", &cycles, NULL));
  PetscCall(PetscOptionsCreate(&own));
  PetscCall(PetscOptionsCreate(&aside));
  if (cycles) PetscCall(PetscOptionsInsertString(own, "-pc_mg_gpucsr"));
  PetscCall(PetscOptionsInsertString(own, "-pc_gamg_recompute_esteig 0 -pc_gamg_process_eq_limit 3 -pc_gamg_coarse_eq_limit 12")); /* else PETSc estimates Chebyshev's bounds anew for new values */
  PetscCall(PetscOptionsInsertString(aside, "-pc_gamg_recompute_esteig 0 -pc_gamg_process_eq_limit 3 -pc_gamg_coarse_eq_limit 12 -pc_gamg_prolongator_0_none 1"));
  PetscCall(Box(PETSC_COMM_WORLD, EDGE, 3.0, 0.0, 0, PETSC_FALSE, &A));
  PetscCall(Box(PETSC_COMM_WORLD, EDGE, 3.0, 0.0, 0, PETSC_TRUE, &R));
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  PetscCall(MatSetOption(R, MAT_SPD, PETSC_TRUE));
  finest = A;
  if (fails) PetscCall(Fails(A, R));
  else {
    PetscCall(Create(A, PETSC_FALSE, &pc));
    if (cycles) {
      Vec       y;
      PetscBool says;

      PetscCall(Apply(pc, &y));
      PetscCall(VecDestroy(&y));
      PetscCall(TestPCSays(pc, "Cycles run on backend", &says));
      PetscCheck(says, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "PETSc runs the cycles");
    }
    PetscCall(AllGalerkin(pc));
    PetscCall(PCDestroy(&pc));
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(operations); k++)
      for (int p = 0; p < 2; p++)
        if (operations[k].of == 2 || operations[k].of == p) PetscCall(One(A, R, &operations[k], strcmp(operations[k].name, "PCREDUNDANT") ? 8 : 1e4, (PetscBool)p));
    PetscCall(Lives());
    PetscCall(Coordinates(A));
    PetscCall(NewValues());
    PetscCall(Eigenvalues());
    PetscCall(Smoothers(A));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(PetscOptionsDestroy(&own));
  PetscCall(PetscOptionsDestroy(&aside));
  PetscCall(PetscFinalize());
  return 0;
}

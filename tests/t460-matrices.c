//TEST name="default" args="-vec_gpu_separate -mat_gpucsr_format csr"
//TEST name="ranks2" nsize=2 args="-vec_gpu_separate -mat_gpucsr_format csr"
//TEST name="standin" args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0" gpu=0
//TEST name="standin2" nsize=2 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0" gpu=0
//TEST name="aij" args="-mat_type aij"

/* Unusual programs with matrices: views, nests, patterns, parts, files, other types and back, entries by coordinates and by blocks (programs.h) */
static char help[] = "Tests what a program may do and few do: matrices.\n";

#include "programs.h"
#include <petscksp.h>
#include <petsc/private/petscimpl.h>
#include <unistd.h>

static PetscErrorCode Case_views(World *w)
{
  Mat A, B, T, N, H, S, C, M;
  Vec d, x, y;
  IS  rows;

  PetscFunctionBegin;
  PetscCall(Grid(w, 7, 1, &A));
  PetscCall(MatCreateVecs(A, &x, &d));
  PetscCall(MatCreateTranspose(A, &T));
  PetscCall(TellProducts(w, T));
  PetscCall(MatCreateNormal(A, &N));
  PetscCall(TellProducts(w, N));
  PetscCall(MatGetDiagonal(N, d));
  PetscCall(TellVec(w, d));
  PetscCall(MatCreateHermitianTranspose(A, &H));
  PetscCall(TellProducts(w, H));
  PetscCall(ISCreateStride(w->comm, 0, 0, 1, &rows));
  {
    PetscInt rs, re;

    PetscCall(ISDestroy(&rows));
    PetscCall(MatGetOwnershipRange(A, &rs, &re));
    PetscCall(ISCreateStride(w->comm, (re - rs + 1) / 2, rs, 2, &rows));
  }
  PetscCall(MatCreateSubMatrixVirtual(A, rows, rows, &S));
  PetscCall(TellProducts(w, S));
  PetscCall(MatGetDiagonal(A, d));
  PetscCall(TellVec(w, d));
  PetscCall(MatScale(A, 2));
  PetscCall(TellProducts(w, T)); /* views follow */
  PetscCall(TellProducts(w, S));
  PetscCall(MatGetDiagonal(N, d));
  PetscCall(TellVec(w, d));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  {
    Mat list[2] = {A, B};

    PetscCall(MatCreateComposite(w->comm, 2, list, &C));
    PetscCall(TellProducts(w, C));
    PetscCall(MatGetDiagonal(C, d));
    PetscCall(TellVec(w, d));
    PetscCall(MatShift(B, 1));
    PetscCall(TellProducts(w, C));
    PetscCall(MatCompositeSetType(C, MAT_COMPOSITE_MULTIPLICATIVE));
    PetscCall(TellProducts(w, C));
    PetscCall(MatCompositeMerge(C));
    PetscCall(TellProducts(w, C));
    PetscCall(MatDestroy(&C));
  }
  PetscCall(MatCreateVecs(A, &y, NULL));
  PetscCall(MatConvert(T, MATAIJ, MAT_INITIAL_MATRIX, &M));
  PetscCall(TellProducts(w, M));
  PetscCall(MatDestroy(&M));
  PetscCall(VecDestroy(&y));
  PetscCall(ISDestroy(&rows));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&d));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&T));
  PetscCall(MatDestroy(&N));
  PetscCall(MatDestroy(&H));
  PetscCall(MatDestroy(&S));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_nest(World *w)
{
  Mat A, B, C, D, N, M, block[4];
  KSP ksp;

  PetscFunctionBegin;
  PetscCall(Grid(w, 6, 0, &A));
  PetscCall(Grid(w, 6, 0, &D));
  PetscCall(Ragged(w, 36, &B));
  PetscCall(MatTranspose(B, MAT_INITIAL_MATRIX, &C));
  PetscCall(MatShift(A, 20));
  PetscCall(MatShift(D, 20));
  block[0] = A;
  block[1] = B;
  block[2] = C;
  block[3] = D;
  PetscCall(MatCreateNest(w->comm, 2, NULL, 2, NULL, block, &N));
  PetscCall(TellProducts(w, N));
  PetscCall(MatScale(B, 2));
  PetscCall(TellProducts(w, N));
  PetscCall(MatConvert(N, MATAIJ, MAT_INITIAL_MATRIX, &M));
  PetscCall(TellProducts(w, M));
  PetscCall(MatDestroy(&M));
  PetscCall(NewKSP(w, w->comm, N, "gmres", "fieldsplit", &ksp));
  {
    IS is[2];
    PC pc;

    PetscCall(MatNestGetISs(N, is, NULL));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCFieldSplitSetIS(pc, "a", is[0]));
    PetscCall(PCFieldSplitSetIS(pc, "d", is[1]));
  }
  PetscCall(Solve(w, ksp, N));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&N));
  block[1] = NULL;
  PetscCall(MatCreateNest(w->comm, 2, NULL, 2, NULL, block, &N));
  PetscCall(TellProducts(w, N));
  PetscCall(MatDestroy(&N));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_patterns(World *w)
{
  Mat A, B, C;

  PetscFunctionBegin;
  PetscCall(Grid(w, 7, 1, &A));
  PetscCall(Ragged(w, 49, &B));
  PetscCall(TellProducts(w, A));
  PetscCall(TellProducts(w, B));
  PetscCall(MatDuplicate(A, MAT_SHARE_NONZERO_PATTERN, &C));
  PetscCall(TellProducts(w, C));
  PetscCall(MatCopy(A, C, SAME_NONZERO_PATTERN));
  PetscCall(TellProducts(w, C));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDuplicate(A, MAT_DO_NOT_COPY_VALUES, &C));
  PetscCall(TellProducts(w, C));
  PetscCall(MatAXPY(C, 3, A, SAME_NONZERO_PATTERN));
  PetscCall(TellProducts(w, C));
  PetscCall(MatAXPY(C, 1, B, DIFFERENT_NONZERO_PATTERN));
  PetscCall(TellProducts(w, C));
  PetscCall(MatAXPY(C, -1, B, SUBSET_NONZERO_PATTERN));
  PetscCall(TellProducts(w, C));
  PetscCall(MatAYPX(C, 2, B, UNKNOWN_NONZERO_PATTERN));
  PetscCall(TellProducts(w, C));
  PetscCall(MatCopy(B, C, DIFFERENT_NONZERO_PATTERN));
  PetscCall(TellProducts(w, C));
  PetscCall(MatShift(C, 5)); /* empty rows */
  PetscCall(TellProducts(w, C));
  PetscCall(MatDestroy(&C));
  {
    Vec d;

    PetscCall(MatCreateVecs(B, &d, NULL));
    PetscCall(Fill(d, 8));
    PetscCall(MatDuplicate(B, MAT_COPY_VALUES, &C));
    PetscCall(MatDiagonalSet(C, d, ADD_VALUES));
    PetscCall(TellProducts(w, C));
    PetscCall(MatDiagonalSet(C, d, INSERT_VALUES));
    PetscCall(TellProducts(w, C));
    PetscCall(MatDiagonalScale(C, d, NULL));
    PetscCall(MatDiagonalScale(C, NULL, d));
    PetscCall(TellProducts(w, C));
    PetscCall(MatGetRowMaxAbs(C, d, NULL));
    PetscCall(TellVec(w, d));
    PetscCall(MatGetRowSum(C, d));
    PetscCall(TellVec(w, d));
    PetscCall(VecDestroy(&d));
    PetscCall(MatChop(C, 2.5));
    PetscCall(TellProducts(w, C));
    PetscCall(MatDestroy(&C));
  }
  PetscCall(MatTranspose(B, MAT_INPLACE_MATRIX, &B));
  PetscCall(TellProducts(w, B));
  PetscCall(MatTranspose(A, MAT_INITIAL_MATRIX, &C));
  PetscCall(MatScale(A, 3));
  PetscCall(MatTranspose(A, MAT_REUSE_MATRIX, &C));
  PetscCall(TellProducts(w, C));
  PetscCall(MatRealPart(A));
  PetscCall(TellProducts(w, A));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_parts(World *w)
{
  Mat         A, S, *many;
  IS          rows, cols, perm;
  PetscInt    rs, re, n;
  PetscMPIInt ranks;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(w->comm, &ranks));
  PetscCall(Grid(w, 7, 1, &A));
  PetscCall(TellProducts(w, A));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  n = re - rs;
  {
    PetscInt again[6] = {rs, rs + 1, rs + 1, rs + 3, rs, rs + 2};

    PetscCall(ISCreateGeneral(w->comm, 6, again, PETSC_COPY_VALUES, &rows));
    PetscCall(ISCreateStride(w->comm, n, rs, 1, &cols));
    PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_INITIAL_MATRIX, &S)); /* rows again and again */
    PetscCall(TellProducts(w, S));
    PetscCall(MatScale(A, 2));
    PetscCall(MatCreateSubMatrix(A, rows, cols, MAT_REUSE_MATRIX, &S));
    PetscCall(TellProducts(w, S));
    PetscCall(MatDestroy(&S));
    PetscCall(ISDestroy(&rows));
    PetscCall(ISDestroy(&cols));
  }
  PetscCall(ISCreateStride(PETSC_COMM_SELF, 20, 5, 2, &rows));
  PetscCall(MatCreateSubMatrices(A, 1, &rows, &rows, MAT_INITIAL_MATRIX, &many));
  PetscCall(TellProducts(w, many[0]));
  PetscCall(MatShift(A, 1));
  PetscCall(MatCreateSubMatrices(A, 1, &rows, &rows, MAT_REUSE_MATRIX, &many));
  PetscCall(TellProducts(w, many[0]));
  PetscCall(MatDestroySubMatrices(1, &many));
  PetscCall(MatIncreaseOverlap(A, 1, &rows, 1));
  PetscCall(ISGetLocalSize(rows, &n));
  PetscCall(Tell(w, (double)n));
  PetscCall(ISDestroy(&rows));
  PetscCall(ISCreateStride(w->comm, re - rs, re - 1, -1, &perm));
  PetscCall(ISSetPermutation(perm));
  PetscCall(MatPermute(A, perm, perm, &S));
  PetscCall(TellProducts(w, S));
  PetscCall(MatDestroy(&S));
  PetscCall(ISDestroy(&perm));
  {
    Mat R, L;
    Vec v;

    PetscCall(MatCreateRedundantMatrix(A, ranks, MPI_COMM_NULL, MAT_INITIAL_MATRIX, &R));
    PetscCall(TellProducts(w, R));
    PetscCall(MatScale(A, 3));
    PetscCall(MatCreateRedundantMatrix(A, ranks, MPI_COMM_NULL, MAT_REUSE_MATRIX, &R));
    PetscCall(TellProducts(w, R));
    PetscCall(MatDestroy(&R));
    PetscCall(MatGetDiagonalBlock(A, &L));
    PetscCall(TellProducts(w, L));
    PetscCall(MatCreateVecs(A, NULL, &v));
    PetscCall(MatGetColumnVector(A, v, 11));
    PetscCall(TellVec(w, v));
    PetscCall(VecDestroy(&v));
    if (ranks > 1) {
      Mat             d, o;
      const PetscInt *map;

      PetscCall(MatMPIAIJGetLocalMat(A, MAT_INITIAL_MATRIX, &L));
      PetscCall(TellProducts(w, L));
      PetscCall(MatDestroy(&L));
      PetscCall(MatMPIAIJGetSeqAIJ(A, &d, &o, &map));
      PetscCall(MatScale(d, 2)); /* behind A's back */
      PetscCall(MatScale(o, -1));
      PetscCall(PetscObjectStateIncrease((PetscObject)A));
      PetscCall(TellProducts(w, A));
    }
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_load(World *w)
{
  Mat         A, B;
  PetscViewer v;
  char        name[64];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(name, sizeof(name), "/tmp/t460.%d", w->ref));
  {
    long pid = (long)getpid();

    PetscCallMPI(MPI_Bcast(&pid, 1, MPI_LONG, 0, w->comm));
    PetscCall(PetscSNPrintf(name, sizeof(name), "/tmp/t460.%ld.%d", pid, w->ref));
  }
  PetscCall(Grid(w, 7, 1, &A));
  PetscCall(Ragged(w, 49, &B));
  PetscCall(TellProducts(w, B));
  PetscCall(PetscViewerBinaryOpen(w->comm, name, FILE_MODE_WRITE, &v));
  PetscCall(MatView(A, v));
  PetscCall(PetscViewerDestroy(&v));
  PetscCall(PetscViewerBinaryOpen(w->comm, name, FILE_MODE_READ, &v));
  PetscCall(MatLoad(B, v)); /* over a used matrix */
  PetscCall(PetscViewerDestroy(&v));
  PetscCall(TellProducts(w, B));
  PetscCall(MatShift(A, 2));
  PetscCall(PetscViewerBinaryOpen(w->comm, name, FILE_MODE_WRITE, &v));
  PetscCall(MatView(A, v));
  PetscCall(PetscViewerDestroy(&v));
  PetscCall(PetscViewerBinaryOpen(w->comm, name, FILE_MODE_READ, &v));
  PetscCall(MatLoad(B, v));
  PetscCall(PetscViewerDestroy(&v));
  PetscCall(TellProducts(w, B));
  {
    Vec x, y;

    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(Fill(x, 9));
    PetscCall(VecScale(x, 2));
    PetscCall(PetscViewerBinaryOpen(w->comm, name, FILE_MODE_WRITE, &v));
    PetscCall(VecView(x, v));
    PetscCall(PetscViewerDestroy(&v));
    PetscCall(MatMult(A, x, y));
    PetscCall(PetscViewerBinaryOpen(w->comm, name, FILE_MODE_READ, &v));
    PetscCall(VecLoad(y, v));
    PetscCall(PetscViewerDestroy(&v));
    PetscCall(VecAXPY(y, 1, x));
    PetscCall(TellVec(w, y));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
  }
  PetscCallMPI(MPI_Barrier(w->comm));
  unlink(name);
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_convert(World *w)
{
  PetscMPIInt ranks;
  const char *types[] = {"baij", "sbaij", "sell", "dense", "aijperm", "aijsell", "aijcrl", "is", "aij", "gpucsr", "same"};

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(w->comm, &ranks));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    const char *type = w->plain && !strcmp(types[k], "gpucsr") ? "aij" : types[k];
    Mat         A, B, C;

    if (ranks > 1 && !strcmp(type, "aijsell")) continue; /* transposed products of MATMPIAIJSELL of PETSc 3.18 are wrong */

    PetscCall(Grid(w, 6, 0, &A));
    PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
    PetscCall(MatSetOption(A, MAT_SYMMETRY_ETERNAL, PETSC_TRUE));
    PetscCall(TellProducts(w, A));
    PetscCall(MatConvert(A, type, MAT_INITIAL_MATRIX, &B));
    PetscCall(TellProducts(w, B));
    PetscCall(MatScale(A, 2));
    if (strcmp(type, "is") && strcmp(type, "aijcrl") && strcmp(type, "same")) {
      if (strcmp(type, "sell") && strcmp(type, "sbaij") && strcmp(type, "aijperm") && strcmp(type, "aijsell")) { /* of the last two PETSc's stay as they were */
        PetscCall(MatConvert(A, type, MAT_REUSE_MATRIX, &B));
        PetscCall(TellProducts(w, B));
      }
      PetscCall(MatConvert(B, w->plain ? "aij" : "gpucsr", MAT_INITIAL_MATRIX, &C));
      PetscCall(TellProducts(w, C));
      PetscCall(MatDestroy(&C));
    }
    if (strcmp(type, "sell") && strcmp(type, "is") && strcmp(type, "aijcrl")) {
      PetscCall(MatConvert(A, type, MAT_INPLACE_MATRIX, &A));
      PetscCall(TellProducts(w, A));
      if (strcmp(type, "same")) PetscCall(MatConvert(A, w->plain ? "aij" : "gpucsr", MAT_INPLACE_MATRIX, &A));
      PetscCall(MatScale(A, 3));
      PetscCall(TellProducts(w, A));
    }
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_coo(World *w)
{
  Mat         A;
  PetscInt    i[40], j[40], rs, re;
  PetscScalar a[40], zeros[40] = {0};
  PetscMPIInt ranks;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(w->comm, &ranks));
  if (ranks > 1) PetscFunctionReturn(PETSC_SUCCESS); /* MATAIJ of PETSc 3.18 frees memory twice */
  PetscCall(TestMatCreate(w->comm, 30, 30, w->ref, &A));
  PetscCall(MatSetUp(A));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (int round = 0; round < 2; round++) {
    for (int k = 0; k < 40; k++) {
      i[k] = k % 9 == 8 ? -1 : (k * 7 + round) % 30; /* rows of other ranks too, some twice */
      j[k] = (k * 11 + 3) % 30;
      a[k] = k % 5 - 2 + round;
    }
    PetscCall(MatSetPreallocationCOO(A, 40, i, j));
    PetscCall(MatSetValuesCOO(A, a, INSERT_VALUES));
    PetscCall(TellProducts(w, A));
    PetscCall(MatSetValuesCOO(A, a, ADD_VALUES));
    PetscCall(TellProducts(w, A));
    PetscCall(MatSetValuesCOO(A, zeros, INSERT_VALUES));
    PetscCall(TellProducts(w, A));
    PetscCall(MatSetValuesCOO(A, a, ADD_VALUES));
    PetscCall(TellProducts(w, A));
  }
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetValue(A, rs, 29, 4, INSERT_VALUES));
  PetscCall(Assemble(A));
  PetscCall(TellProducts(w, A));
  PetscCall(MatDestroy(&A));
  PetscCall(Grid(w, 6, 0, &A));
  PetscCall(TellProducts(w, A));
  PetscCall(MatResetPreallocation(A));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) PetscCall(MatSetValue(A, r, (r + 3) % 36, 2, INSERT_VALUES));
  PetscCall(Assemble(A));
  PetscCall(TellProducts(w, A));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_blocks(World *w)
{
  Mat                    A;
  ISLocalToGlobalMapping map;
  PetscInt               rs, re, index[9];

  PetscFunctionBegin;
  PetscCall(TestMatCreate(w->comm, 36, 36, w->ref, &A));
  PetscCall(MatSetBlockSize(A, 2));
  PetscCall(MatSeqAIJSetPreallocation(A, 8, NULL));
  PetscCall(MatMPIAIJSetPreallocation(A, 8, NULL, 8, NULL));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt k = 0; k < 9; k++) index[k] = (rs / 2 + k) % 18;
  PetscCall(ISLocalToGlobalMappingCreate(w->comm, 2, 9, index, PETSC_COPY_VALUES, &map));
  PetscCall(MatSetLocalToGlobalMapping(A, map, map));
  for (int round = 0; round < 2; round++) {
    for (PetscInt k = 0; k < 8; k++) {
      const PetscInt    i[1] = {k}, j[2] = {k, k + 1};
      const PetscScalar a[8] = {4, 1, 2, -1, 1, 5, 0, 1};

      PetscCall(MatSetValuesBlockedLocal(A, 1, i, 2, j, a, ADD_VALUES));
    }
    PetscCall(Assemble(A));
    PetscCall(TellProducts(w, A));
  }
  {
    PetscInt rows[2] = {1, 2};

    PetscCall(MatZeroRowsLocal(A, 2, rows, 7, NULL, NULL));
    PetscCall(TellProducts(w, A));
  }
  PetscCall(ISLocalToGlobalMappingDestroy(&map));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_newplaces(World *w)
{
  Mat            A;
  KSP            ksp;
  PetscInt       rs, re;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(Grid(w, 8, 0, &A));
  PetscCall(NewKSP(w, w->comm, A, "cg", "jacobi", &ksp));
  PetscCall(Solve(w, ksp, A));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) PetscCall(MatSetValue(A, r, r, 9, INSERT_VALUES));
  PetscCall(Assemble(A));
  PetscCall(Solve(w, ksp, A));
  PetscCall(TellProducts(w, A));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatSetValue(A, rs, (rs + 30) % 64, 1, INSERT_VALUES);
  PetscCall(PetscPopErrorHandler());
  PetscCall(Tell(w, ierr != 0));
  PetscCall(Assemble(A));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_FALSE));
  PetscCall(MatSetValue(A, rs, (rs + 30) % 64, 1, ADD_VALUES)); /* ignored */
  PetscCall(MatSetValue(A, rs, rs, 1, ADD_VALUES));
  PetscCall(Assemble(A));
  PetscCall(TellProducts(w, A));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATIONS, PETSC_TRUE));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatSetValue(A, rs, (rs + 30) % 64, 1, ADD_VALUES));
  PetscCall(MatSetValue(A, (rs + 30) % 64, rs, 1, ADD_VALUES));
  PetscCall(Assemble(A));
  PetscCall(TellProducts(w, A));
  PetscCall(MatSetOption(A, MAT_IGNORE_ZERO_ENTRIES, PETSC_TRUE));
  PetscCall(MatZeroEntries(A));
  for (PetscInt r = rs; r < re; r++) PetscCall(MatSetValue(A, r, r, 4, INSERT_VALUES));
  PetscCall(Assemble(A));
  PetscCall(TellProducts(w, A));
  PetscCall(Solve(w, ksp, A));
  PetscCall(MatDestroy(&A));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Program programs[] = {
  {"views",     Case_views    },
  {"nest",      Case_nest     },
  {"patterns",  Case_patterns },
  {"parts",     Case_parts    },
  {"load",      Case_load     },
  {"convert",   Case_convert  },
  {"coo",       Case_coo      },
  {"blocks",    Case_blocks   },
  {"newplaces", Case_newplaces},
};

int main(int argc, char **argv)
{
  return ProgramsMain(argc, argv, help, PETSC_STATIC_ARRAY_LENGTH(programs), programs);
}

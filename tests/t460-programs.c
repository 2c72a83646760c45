//TEST name="default" args="-vec_gpu_separate -mat_gpucsr_format csr"
//TEST name="ranks2" nsize=2 args="-vec_gpu_separate -mat_gpucsr_format csr"
//TEST name="standin" args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0" gpu=0
//TEST name="standin2" nsize=2 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0" gpu=0
//TEST name="aij" args="-mat_type aij"

/*
  What a program may do and few do: operators swapped, rows zeroed after a solve, new places refused, arrays of others placed in vectors, views of matrices, other types and back, sub-communicators, threads,
  a fork. Each case runs with MATAIJ and VECSTANDARD and with the types under test, and tells numbers that must be the same: exactly where all are small integers, else to a bound that it tells with them.

    build/tests/t460-programs [-only NAME]
*/
static char help[] = "Tests what a program may do and few do.\n";

#include "testing.h"
#include <petscksp.h>
#include <petsc/private/petscimpl.h>
#include <petscsnes.h>
#include <petscts.h>
#include <petscdmda.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 20000

typedef struct {
  PetscBool ref, plain; /* plain: without the library's types */
  MPI_Comm  comm;
  int       n;
  double    value[MOST], bound[MOST];
} World;

static PetscErrorCode Tell(World *w, double value, double bound)
{
  PetscFunctionBegin;
  PetscCheck(w->n < MOST, PETSC_COMM_SELF, PETSC_ERR_PLIB, "More than %d numbers", MOST);
  w->value[w->n]   = value;
  w->bound[w->n++] = bound;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode TellVec(World *w, Vec x, double bound)
{
  const PetscScalar *a;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayRead(x, &a));
  for (PetscInt k = 0; k < n; k++) PetscCall(Tell(w, PetscRealPart(a[k]), bound));
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Small integers, the same whatever the number of ranks */
static PetscErrorCode Fill(Vec x, PetscInt seed)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(VecGetOwnershipRange(x, &rs, &re));
  for (PetscInt k = rs; k < re; k++) PetscCall(VecSetValue(x, k, (PetscScalar)((k * 7 + seed * 13) % 11 - 5), INSERT_VALUES));
  PetscCall(VecAssemblyBegin(x));
  PetscCall(VecAssemblyEnd(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The product with small integers, and of the transpose */
static PetscErrorCode TellProducts(World *w, Mat A)
{
  Vec       x, y;
  PetscBool has;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(Fill(x, 1));
  PetscCall(MatMult(A, x, y));
  PetscCall(TellVec(w, y, 0));
  PetscCall(MatHasOperation(A, MATOP_MULT_TRANSPOSE, &has));
  if (has) {
    PetscCall(Fill(y, 2));
    PetscCall(MatMultTranspose(A, y, x));
    PetscCall(TellVec(w, x, 0));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Make(World *w, MPI_Comm comm, PetscInt m, PetscInt n, Mat *A)
{
  PetscFunctionBegin;
  PetscCall(TestMatCreate(comm, m, n, w->ref, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 7, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 7, NULL, 7, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Assemble(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* 5 points on k by k, integers, symmetric positive definite for asymmetry 0 */
static PetscErrorCode GridOn(World *w, MPI_Comm comm, PetscInt k, PetscInt asymmetry, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(Make(w, comm, k * k, k * k, A));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    const PetscInt x = r % k, y = r / k;

    PetscCall(MatSetValue(*A, r, r, 5 + asymmetry, INSERT_VALUES));
    if (x) PetscCall(MatSetValue(*A, r, r - 1, -1 - asymmetry, INSERT_VALUES));
    if (x < k - 1) PetscCall(MatSetValue(*A, r, r + 1, -1, INSERT_VALUES));
    if (y) PetscCall(MatSetValue(*A, r, r - k, -1, INSERT_VALUES));
    if (y < k - 1) PetscCall(MatSetValue(*A, r, r + k, -1, INSERT_VALUES));
  }
  PetscCall(Assemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Grid(World *w, PetscInt k, PetscInt asymmetry, Mat *A)
{
  return GridOn(w, w->comm, k, asymmetry, A);
}

/* Rows without entries, without a diagonal, and one long one */
static PetscErrorCode Ragged(World *w, PetscInt n, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(Make(w, w->comm, n, n, A));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    if (r % 3 == 0) continue;
    for (PetscInt q = 0; q < (r == 4 ? n : 3); q++) PetscCall(MatSetValue(*A, r, r == 4 ? q : (r * 5 + q * 3 + 1) % n, (PetscScalar)((r + q) % 5 - 2), INSERT_VALUES));
  }
  PetscCall(Assemble(*A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x of A x = b where b = A (integers): the error is at most cond(A) rtol |x|; 5 points plus 1 have cond < 9 */
static PetscErrorCode Solve(World *w, KSP ksp, Mat A)
{
  Vec                x, b;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(Fill(x, 3));
  PetscCall(MatMult(A, x, b));
  PetscCall(VecSet(x, 0));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(Tell(w, reason > 0, 0));
  PetscCall(TellVec(w, x, 1e-7));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NewKSP(World *w, MPI_Comm comm, Mat A, const char type[], const char pctype[], KSP *ksp)
{
  PC pc;

  PetscFunctionBegin;
  PetscCall(KSPCreate(comm, ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, type));
  PetscCall(KSPSetTolerances(*ksp, 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, 2000));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  PetscCall(KSPSetOptionsPrefix(*ksp, w->ref ? "ref_" : "our_"));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_swap(World *w)
{
  Mat         A, B;
  KSP         ksp;
  const char *types[] = {"cg", "gmres", "gpucg", "gpugmres", "gpubcgs"};

  PetscFunctionBegin;
  for (int t = 0; t < 5; t++) {
    const char *type = w->plain && t > 1 ? (t == 2 ? "cg" : t == 3 ? "gmres" : "bcgs") : types[t];

    PetscCall(Grid(w, 9, 0, &A));
    PetscCall(Grid(w, 9, 0, &B));
    PetscCall(MatShift(B, 3));
    PetscCall(NewKSP(w, w->comm, A, type, "jacobi", &ksp));
    PetscCall(Solve(w, ksp, A));
    PetscCall(KSPSetOperators(ksp, B, B));
    PetscCall(Solve(w, ksp, B));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(Solve(w, ksp, A));
    PetscCall(KSPSetOperators(ksp, A, B)); /* another one for the preconditioner */
    PetscCall(Solve(w, ksp, A));
    PetscCall(MatDestroy(&B));
    PetscCall(Grid(w, 9, 0, &B)); /* perhaps at the same address */
    PetscCall(MatShift(B, 7));
    PetscCall(KSPSetOperators(ksp, B, B));
    PetscCall(Solve(w, ksp, B));
    PetscCall(KSPReset(ksp));
    PetscCall(MatDestroy(&A));
    PetscCall(Grid(w, 5, 0, &A)); /* of another size */
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(Solve(w, ksp, A));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_zerorows(World *w)
{
  for (int keep = 0; keep < 2; keep++) {
    Mat      A;
    Vec      x, b;
    KSP      ksp;
    PetscInt rows[] = {3, 17, 40}, n = 3;

    PetscFunctionBegin;
    PetscCall(Grid(w, 8, 0, &A));
    PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, (PetscBool)keep));
    PetscCall(NewKSP(w, w->comm, A, "cg", "jacobi", &ksp));
    PetscCall(Solve(w, ksp, A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(Fill(x, 4));
    PetscCall(Fill(b, 5));
    PetscCall(MatZeroRowsColumns(A, n, rows, 2.0, x, b));
    PetscCall(TellVec(w, b, 0));
    PetscCall(TellProducts(w, A));
    PetscCall(Solve(w, ksp, A));
    rows[0] = 5;
    PetscCall(MatZeroRows(A, 1, rows, 0.0, x, b));
    PetscCall(TellVec(w, b, 0));
    PetscCall(TellProducts(w, A));
    PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatShift(A, 1));
    PetscCall(TellProducts(w, A));
    PetscCall(MatDestroy(&A));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
  }
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
  PetscCall(Tell(w, ierr != 0, 0));
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

static PetscErrorCode Case_placed(World *w)
{
  Mat                A;
  Vec                x, y, z;
  PetscScalar       *a, mine[200];
  const PetscScalar *r;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(Grid(w, 8, 1, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(x, &z));
  PetscCall(Fill(x, 1));
  PetscCall(Fill(z, 6));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecGetArray(z, &a)); /* z's array is x's for a while */
  PetscCall(VecPlaceArray(x, a));
  PetscCall(MatMult(A, x, y));
  PetscCall(TellVec(w, y, 0));
  PetscCall(VecScale(x, 2));
  PetscCall(VecResetArray(x));
  PetscCall(VecRestoreArray(z, &a));
  PetscCall(TellVec(w, z, 0));
  PetscCall(MatMult(A, z, y));
  PetscCall(TellVec(w, y, 0));
  PetscCall(MatMult(A, x, y));
  PetscCall(TellVec(w, y, 0));
  for (PetscInt k = 0; k < n; k++) mine[k] = (PetscScalar)(k % 7);
  PetscCall(VecPlaceArray(y, mine));
  PetscCall(MatMultAdd(A, x, y, y));
  PetscCall(VecResetArray(y));
  for (PetscInt k = 0; k < n; k++) PetscCall(Tell(w, PetscRealPart(mine[k]), 0));
  PetscCall(TellVec(w, y, 0));
  PetscCall(VecGetArrayRead(x, &r)); /* while one looks at x it is multiplied */
  PetscCall(MatMult(A, x, y));
  PetscCall(VecAXPY(y, 3, x));
  PetscCall(VecRestoreArrayRead(x, &r));
  PetscCall(TellVec(w, y, 0));
  {
    PetscScalar *own;

    PetscCall(PetscMalloc1(PetscMax(n, 1), &own));
    for (PetscInt k = 0; k < n; k++) own[k] = (PetscScalar)(k % 3);
    PetscCall(VecReplaceArray(z, own)); /* z frees it */
    PetscCall(MatMult(A, z, y));
    PetscCall(TellVec(w, y, 0));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

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
  PetscCall(TellVec(w, d, 0));
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
  PetscCall(TellVec(w, d, 0));
  PetscCall(MatScale(A, 2));
  PetscCall(TellProducts(w, T)); /* views follow */
  PetscCall(TellProducts(w, S));
  PetscCall(MatGetDiagonal(N, d));
  PetscCall(TellVec(w, d, 0));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  {
    Mat list[2] = {A, B};

    PetscCall(MatCreateComposite(w->comm, 2, list, &C));
    PetscCall(TellProducts(w, C));
    PetscCall(MatGetDiagonal(C, d));
    PetscCall(TellVec(w, d, 0));
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
    PetscCall(TellVec(w, d, 0));
    PetscCall(MatGetRowSum(C, d));
    PetscCall(TellVec(w, d, 0));
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
  PetscCall(Tell(w, (double)n, 0));
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
    PetscCall(TellVec(w, v, 0));
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
  PetscCall(MatLoad(B, v)); /* over one that was used */
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
    PetscCall(TellVec(w, y, 0));
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
      i[k] = k % 9 == 8 ? -1 : (k * 7 + round) % 30; /* of others too, twice too */
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

static PetscErrorCode Case_factors(World *w)
{
  Mat           A, F;
  IS            row, col;
  MatFactorInfo info;
  Vec           x, b;
  PetscMPIInt   ranks;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(w->comm, &ranks));
  if (ranks > 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatFactorInfoInitialize(&info));
  info.fill = 5;
  for (int kind = 0; kind < 3; kind++) {
    PetscCall(Grid(w, 7, 0, &A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(Fill(x, 2));
    PetscCall(MatMult(A, x, b));
    PetscCall(MatGetOrdering(A, MATORDERINGNATURAL, &row, &col));
    if (kind == 0) PetscCall(MatLUFactor(A, row, col, &info));
    else if (kind == 1) PetscCall(MatILUFactor(A, row, col, &info));
    else {
      PetscCall(MatGetFactor(A, MATSOLVERPETSC, MAT_FACTOR_CHOLESKY, &F));
      PetscCall(MatCholeskyFactorSymbolic(F, A, row, &info));
      PetscCall(MatCholeskyFactorNumeric(F, A, &info));
      PetscCall(MatScale(A, 2));
      PetscCall(MatCholeskyFactorNumeric(F, A, &info));
    }
    PetscCall(MatSolve(kind == 2 ? F : A, b, x));
    PetscCall(TellVec(w, x, 1e-9));
    PetscCall(MatSolveTranspose(kind == 2 ? F : A, b, x));
    PetscCall(TellVec(w, x, 1e-9));
    if (kind == 1) {
      PetscCall(MatSetUnfactored(A));
      PetscCall(MatZeroEntries(A));
      for (PetscInt r = 0; r < 49; r++) PetscCall(MatSetValue(A, r, r, 3, INSERT_VALUES));
      PetscCall(Assemble(A));
      PetscCall(TellProducts(w, A));
    }
    if (kind == 2) PetscCall(MatDestroy(&F));
    PetscCall(ISDestroy(&row));
    PetscCall(ISDestroy(&col));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_flight(World *w)
{
  Mat A;
  KSP ksp;

  PetscFunctionBegin;
  PetscCall(Grid(w, 8, 0, &A));
  PetscCall(TellProducts(w, A));
  if (!w->ref) PetscCall(PetscOptionsSetValue(NULL, "-fl_mat_gpucsr_format", "sell"));
  PetscCall(MatSetOptionsPrefix(A, w->ref ? "ref_" : "fl_"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(TellProducts(w, A));
  if (!w->ref) PetscCall(PetscOptionsSetValue(NULL, "-fl_mat_gpucsr_format", "coo"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatScale(A, 2));
  PetscCall(TellProducts(w, A));
  PetscCall(NewKSP(w, w->comm, A, "cg", "jacobi", &ksp));
  PetscCall(Solve(w, ksp, A));
  PetscCall(KSPSetType(ksp, w->plain ? "cg" : "gpucg"));
  PetscCall(Solve(w, ksp, A));
  PetscCall(KSPSetType(ksp, "minres"));
  PetscCall(Solve(w, ksp, A));
  PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscCall(TellProducts(w, A));
  PetscCall(Solve(w, ksp, A));
  PetscCall(MatBindToCPU(A, PETSC_FALSE));
  PetscCall(MatShift(A, 1));
  PetscCall(TellProducts(w, A));
  PetscCall(MatConvert(A, MATAIJ, MAT_INPLACE_MATRIX, &A));
  PetscCall(TellProducts(w, A));
  PetscCall(Solve(w, ksp, A));
  PetscCall(MatConvert(A, w->plain ? MATAIJ : "gpucsr", MAT_INPLACE_MATRIX, &A));
  PetscCall(MatShift(A, 1));
  PetscCall(TellProducts(w, A));
  PetscCall(Solve(w, ksp, A));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscOptionsClearValue(NULL, "-fl_mat_gpucsr_format"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_solvers(World *w)
{
  static const char *const types[] = {"cg",     "groppcg", "pipecg", "pipecgrr", "pipelcg",  "cgne", "nash",  "stcg", "gltr",   "fcg",  "pipefcg", "gmres",  "pipefgmres", "fgmres", "lgmres", "dgmres",  "pgmres", "tcqmr",      "bcgs",     "ibcgs",
                                      "qmrcgs", "fbcgs",   "fbcgsr", "bcgsl",    "pipebcgs", "cgs",  "tfqmr", "cr",   "pipecr", "lsqr", "bicg",    "minres", "symmlq",     "lcd",    "gcr",    "pipegcr", "cgls",   "richardson", "chebyshev"};
  Mat                      A;
  KSP                      ksp;

  PetscFunctionBegin;
  PetscCall(Grid(w, 6, 0, &A));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    PetscCall(NewKSP(w, w->comm, A, types[k], !strcmp(types[k], "lsqr") || !strcmp(types[k], "cgls") ? "none" : "jacobi", &ksp));
    PetscCall(Solve(w, ksp, A));
    PetscCall(Solve(w, ksp, A));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_pcs(World *w)
{
  static const char *const types[] = {"none", "jacobi", "pbjacobi", "bjacobi", "asm", "gasm", "sor", "eisenstat", "gamg", "redundant", "telescope", "ksp", "svd", "kaczmarz", "mg", "redistribute", "lmvm", "hmg", "ilu", "icc", "lu", "cholesky"};
  PetscMPIInt              ranks;
  Mat                      A;
  KSP                      ksp;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(w->comm, &ranks));
  PetscCall(Grid(w, 6, 0, &A));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    if (ranks > 1 && (!strcmp(types[k], "ilu") || !strcmp(types[k], "icc") || !strcmp(types[k], "lu") || !strcmp(types[k], "cholesky") || !strcmp(types[k], "eisenstat"))) continue;
    if (!strcmp(types[k], "lmvm") || !strcmp(types[k], "mg") || !strcmp(types[k], "hmg")) continue;
    PetscCall(NewKSP(w, w->comm, A, "fgmres", types[k], &ksp));
    if (!strcmp(types[k], "eisenstat")) PetscCall(KSPSetType(ksp, "cg"));
    PetscCall(Solve(w, ksp, A));
    PetscCall(MatScale(A, 2));
    PetscCall(Solve(w, ksp, A));
    PetscCall(MatScale(A, 0.5));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_matsolve(World *w)
{
  Mat       A, X, B;
  KSP       ksp;
  PetscInt  n;
  const int columns = 3;

  PetscFunctionBegin;
  PetscCall(Grid(w, 6, 0, &A));
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(MatCreateDense(w->comm, n, PETSC_DECIDE, 36, columns, NULL, &B));
  PetscCall(MatCreateDense(w->comm, n, PETSC_DECIDE, 36, columns, NULL, &X));
  for (int c = 0; c < columns; c++) {
    Vec v;

    PetscCall(MatDenseGetColumnVecWrite(B, c, &v));
    PetscCall(Fill(v, c));
    PetscCall(MatDenseRestoreColumnVecWrite(B, c, &v));
  }
  PetscCall(Assemble(X));
  for (int t = 0; t < 3; t++) {
    PetscCall(NewKSP(w, w->comm, A, t == 0 ? "cg" : t == 1 ? "preonly" : w->plain ? "cg" : "gpucg", t == 1 ? "redundant" : "jacobi", &ksp));
    PetscCall(KSPMatSolve(ksp, B, X));
    for (int c = 0; c < columns; c++) {
      Vec v;

      PetscCall(MatDenseGetColumnVecRead(X, c, &v));
      PetscCall(TellVec(w, v, 1e-7));
      PetscCall(MatDenseRestoreColumnVecRead(X, c, &v));
    }
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_comms(World *w)
{
  PetscSubcomm sub;
  PetscMPIInt  ranks;
  MPI_Comm     comm, dup;
  Mat          A, B, C;
  KSP          ksp;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(w->comm, &ranks));
  PetscCall(PetscSubcommCreate(w->comm, &sub));
  PetscCall(PetscSubcommSetNumber(sub, ranks > 1 ? 2 : 1));
  PetscCall(PetscSubcommSetType(sub, PETSC_SUBCOMM_INTERLACED));
  PetscCall(PetscSubcommGetChild(sub, &comm));
  PetscCallMPI(MPI_Comm_dup(w->comm, &dup));
  PetscCall(GridOn(w, comm, 6, 0, &A));
  PetscCall(GridOn(w, dup, 5, 0, &B));
  PetscCall(GridOn(w, PETSC_COMM_SELF, 4, 1, &C));
  PetscCall(TellProducts(w, A));
  PetscCall(TellProducts(w, B));
  PetscCall(TellProducts(w, C));
  PetscCall(NewKSP(w, comm, A, w->plain ? "cg" : "gpucg", "jacobi", &ksp));
  PetscCall(Solve(w, ksp, A));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(NewKSP(w, dup, B, "cg", "gamg", &ksp));
  PetscCall(Solve(w, ksp, B));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(PetscSubcommDestroy(&sub));
  PetscCallMPI(MPI_Comm_free(&dup));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_scatter(World *w)
{
  Mat        A;
  Vec        x, y, host, all, zero;
  VecScatter s;
  IS         from, to;
  PetscInt   rs, re, n;

  PetscFunctionBegin;
  PetscCall(Grid(w, 7, 1, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecCreate(w->comm, &host));
  PetscCall(VecSetSizes(host, PETSC_DECIDE, 49));
  PetscCall(VecSetType(host, VECSTANDARD));
  PetscCall(Fill(x, 1));
  PetscCall(VecScale(x, 3));
  PetscCall(VecGetOwnershipRange(x, &rs, &re));
  n = re - rs;
  PetscCall(ISCreateStride(w->comm, n, rs, 1, &from));
  PetscCall(ISCreateStride(w->comm, n, 48 - rs, -1, &to));
  PetscCall(VecScatterCreate(x, from, host, to, &s));
  for (int round = 0; round < 3; round++) {
    PetscCall(VecScale(x, 2));
    PetscCall(VecScatterBegin(s, x, host, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(s, x, host, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(TellVec(w, host, 0));
    PetscCall(MatMult(A, x, y));
    PetscCall(VecScatterBegin(s, host, y, ADD_VALUES, SCATTER_REVERSE));
    PetscCall(VecScatterEnd(s, host, y, ADD_VALUES, SCATTER_REVERSE));
    PetscCall(MatMult(A, y, x));
    PetscCall(TellVec(w, x, 0));
    PetscCall(Fill(x, round));
  }
  PetscCall(VecScatterDestroy(&s));
  PetscCall(VecScatterCreate(x, from, y, to, &s));
  PetscCall(VecScatterBegin(s, x, y, MAX_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(s, x, y, MAX_VALUES, SCATTER_FORWARD));
  PetscCall(TellVec(w, y, 0));
  PetscCall(VecScatterBegin(s, x, x, INSERT_VALUES, SCATTER_FORWARD_LOCAL));
  PetscCall(VecScatterEnd(s, x, x, INSERT_VALUES, SCATTER_FORWARD_LOCAL));
  PetscCall(VecScatterDestroy(&s));
  PetscCall(VecScatterCreateToAll(x, &s, &all));
  PetscCall(Fill(x, 3));
  PetscCall(VecShift(x, 1));
  PetscCall(VecScatterBegin(s, x, all, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(s, x, all, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScale(all, 2));
  PetscCall(TellVec(w, all, 0));
  PetscCall(VecScatterDestroy(&s));
  PetscCall(VecScatterCreateToZero(x, &s, &zero));
  PetscCall(VecScale(x, -1));
  PetscCall(VecScatterBegin(s, x, zero, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(VecScatterEnd(s, x, zero, INSERT_VALUES, SCATTER_FORWARD));
  PetscCall(TellVec(w, zero, 0));
  PetscCall(VecShift(zero, 4));
  PetscCall(VecScatterBegin(s, zero, x, INSERT_VALUES, SCATTER_REVERSE));
  PetscCall(VecScatterEnd(s, zero, x, INSERT_VALUES, SCATTER_REVERSE));
  PetscCall(TellVec(w, x, 0));
  PetscCall(VecScatterDestroy(&s));
  PetscCall(VecDestroy(&all));
  PetscCall(VecDestroy(&zero));
  PetscCall(VecDestroy(&host));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(ISDestroy(&from));
  PetscCall(ISDestroy(&to));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_vectors(World *w)
{
  Mat       A;
  Vec       x, y, z, local, sub, cat, *many, pair[2];
  IS        is;
  PetscInt  rs, re;
  PetscReal nrm[2];

  PetscFunctionBegin;
  PetscCall(Grid(w, 8, 1, &A));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(x, &z));
  PetscCall(Fill(x, 1));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecGetOwnershipRange(x, &rs, &re));
  PetscCall(ISCreateStride(w->comm, (re - rs) / 3, rs, 3, &is));
  PetscCall(VecGetSubVector(y, is, &sub));
  PetscCall(VecScale(sub, 3));
  PetscCall(VecRestoreSubVector(y, is, &sub));
  PetscCall(TellVec(w, y, 0));
  PetscCall(VecISSet(y, is, 4));
  PetscCall(TellVec(w, y, 0));
  PetscCall(VecGetSubVector(x, is, &sub));
  PetscCall(VecISAXPY(y, is, 2, sub));
  PetscCall(VecISCopy(y, is, SCATTER_REVERSE, sub));
  PetscCall(VecRestoreSubVector(x, is, &sub));
  PetscCall(TellVec(w, x, 0));
  PetscCall(TellVec(w, y, 0));
  PetscCall(VecCreateLocalVector(x, &local));
  PetscCall(VecGetLocalVector(x, local));
  PetscCall(VecShift(local, 2));
  PetscCall(VecRestoreLocalVector(x, local));
  PetscCall(MatMult(A, x, y));
  PetscCall(TellVec(w, y, 0));
  PetscCall(VecGetLocalVectorRead(x, local));
  PetscCall(VecNorm(local, NORM_1, nrm));
  PetscCall(Tell(w, nrm[0], 0));
  PetscCall(VecRestoreLocalVectorRead(x, local));
  PetscCall(VecDestroy(&local));
  PetscCall(VecDuplicateVecs(x, 4, &many));
  for (int k = 0; k < 4; k++) {
    PetscScalar dots[4];

    PetscCall(Fill(many[k], k));
    PetscCall(MatMult(A, many[k], z));
    PetscCall(VecMDot(z, k + 1, many, dots));
    for (int q = 0; q <= k; q++) PetscCall(Tell(w, PetscRealPart(dots[q]), 0));
    PetscCall(VecMAXPY(z, k + 1, dots, many));
    PetscCall(TellVec(w, z, 0));
  }
  PetscCall(VecSwap(many[0], many[3]));
  PetscCall(VecPointwiseMult(many[1], many[0], many[3]));
  PetscCall(VecPointwiseMax(many[2], many[0], many[1]));
  PetscCall(TellVec(w, many[1], 0));
  PetscCall(TellVec(w, many[2], 0));
  pair[0] = many[0];
  pair[1] = y;
  PetscCall(VecConcatenate(2, pair, &cat, NULL));
  PetscCall(VecScale(cat, 2));
  PetscCall(TellVec(w, cat, 0));
  PetscCall(VecDestroy(&cat));
  PetscCall(VecDestroyVecs(4, &many));
  PetscCall(VecSetBlockSize(y, 2));
  PetscCall(VecStrideScale(y, 1, 3));
  PetscCall(VecStrideNorm(y, 0, NORM_1, nrm));
  PetscCall(Tell(w, nrm[0], 0));
  PetscCall(VecStrideNormAll(y, NORM_INFINITY, nrm));
  PetscCall(Tell(w, nrm[1], 0));
  PetscCall(TellVec(w, y, 0));
  PetscCall(VecZeroEntries(z));
  PetscCall(VecSetValue(z, 63 - rs, 2, ADD_VALUES)); /* perhaps another rank's */
  PetscCall(VecAssemblyBegin(z));
  PetscCall(VecAssemblyEnd(z));
  PetscCall(MatMultAdd(A, z, y, y));
  PetscCall(TellVec(w, y, 0));
  PetscCall(VecCreateNest(w->comm, 2, NULL, (Vec[]){x, y}, &cat));
  PetscCall(VecScale(cat, 2));
  PetscCall(VecNorm(cat, NORM_1, nrm));
  PetscCall(Tell(w, nrm[0], 0));
  PetscCall(MatMult(A, x, y));
  PetscCall(VecNorm(cat, NORM_1, nrm));
  PetscCall(Tell(w, nrm[0], 0));
  PetscCall(VecDestroy(&cat));
  PetscCall(VecSetRandom(z, NULL));
  PetscCall(VecReciprocal(x));
  PetscCall(TellVec(w, x, 1e-15));
  PetscCall(ISDestroy(&is));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
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

/* A product in another thread, while this one waits */
typedef struct {
  Mat            A;
  Vec            x, y;
  PetscErrorCode ierr;
} Errand;

static void *Run(void *p)
{
  Errand *e = (Errand *)p;

  e->ierr = MatMult(e->A, e->x, e->y);
  return NULL;
}

static PetscErrorCode Case_thread(World *w)
{
  Errand    e;
  pthread_t thread;

  PetscFunctionBegin;
  PetscCall(Grid(w, 8, 1, &e.A));
  PetscCall(MatCreateVecs(e.A, &e.x, &e.y));
  for (int round = 0; round < 3; round++) {
    PetscCall(Fill(e.x, round));
    PetscCheck(!pthread_create(&thread, NULL, Run, &e), PETSC_COMM_SELF, PETSC_ERR_SYS, "No thread");
    pthread_join(thread, NULL);
    PetscCall(e.ierr);
    PetscCall(VecScale(e.y, 2));
    PetscCall(TellVec(w, e.y, 0));
    PetscCall(MatScale(e.A, 2));
  }
  PetscCall(VecDestroy(&e.x));
  PetscCall(VecDestroy(&e.y));
  PetscCall(MatDestroy(&e.A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A child that ends at once */
static PetscErrorCode Case_fork(World *w)
{
  Mat   A;
  pid_t child;
  int   status;

  PetscFunctionBegin;
  PetscCall(Grid(w, 8, 1, &A));
  PetscCall(TellProducts(w, A));
  child = fork();
  if (!child) _exit(3);
  waitpid(child, &status, 0);
  PetscCall(Tell(w, WEXITSTATUS(status), 0));
  PetscCall(MatScale(A, 2));
  PetscCall(TellProducts(w, A));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* u' = diffusion, implicit, + reaction, explicit */
static PetscErrorCode Reaction(TS ts, PetscReal t, Vec u, Vec f, void *ctx)
{
  const PetscScalar *a;
  PetscScalar       *b;
  PetscInt           n;

  PetscFunctionBegin;
  (void)ts;
  (void)t;
  (void)ctx;
  PetscCall(VecGetLocalSize(u, &n));
  PetscCall(VecGetArrayRead(u, &a));
  PetscCall(VecGetArrayWrite(f, &b));
  for (PetscInt k = 0; k < n; k++) b[k] = a[k] * (1 - a[k]);
  PetscCall(VecRestoreArrayWrite(f, &b));
  PetscCall(VecRestoreArrayRead(u, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diffusion(TS ts, PetscReal t, Vec u, Vec udot, Vec f, void *ctx)
{
  PetscFunctionBegin;
  (void)ts;
  (void)t;
  PetscCall(MatMult((Mat)ctx, u, f));
  PetscCall(VecAXPY(f, 1, udot));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Jacobian(TS ts, PetscReal t, Vec u, Vec udot, PetscReal shift, Mat J, Mat P, void *ctx)
{
  PetscFunctionBegin;
  (void)ts;
  (void)t;
  (void)u;
  (void)udot;
  PetscCall(MatCopy((Mat)ctx, P, SAME_NONZERO_PATTERN));
  PetscCall(MatShift(P, shift));
  if (J != P) PetscCall(Assemble(J));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_imex(World *w)
{
  static const char *const types[] = {"arkimex", "theta", "bdf", "rosw", "euler"};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    Mat  A, J;
    Vec  u;
    TS   ts;
    SNES snes;
    KSP  ksp;

    PetscCall(Grid(w, 6, 0, &A));
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &J));
    PetscCall(MatCreateVecs(A, &u, NULL));
    PetscCall(Fill(u, 1));
    PetscCall(VecScale(u, 0.1));
    PetscCall(TSCreate(w->comm, &ts));
    PetscCall(TSSetType(ts, types[k]));
    if (strcmp(types[k], "euler")) {
      PetscCall(TSSetIFunction(ts, NULL, Diffusion, A));
      PetscCall(TSSetIJacobian(ts, J, J, Jacobian, A));
    }
    if (!strcmp(types[k], "arkimex") || !strcmp(types[k], "euler")) PetscCall(TSSetRHSFunction(ts, NULL, Reaction, NULL));
    PetscCall(TSSetTimeStep(ts, 0.01));
    PetscCall(TSSetMaxSteps(ts, 5));
    PetscCall(TSSetMaxTime(ts, 1));
    PetscCall(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_STEPOVER));
    {
      TSAdapt adapt;

      PetscCall(TSGetAdapt(ts, &adapt));
      PetscCall(TSAdaptSetType(adapt, TSADAPTNONE));
    }
    PetscCall(TSGetSNES(ts, &snes));
    PetscCall(SNESSetTolerances(snes, 1e-13, 1e-11, PETSC_DEFAULT, 20, 1000));
    PetscCall(SNESGetKSP(snes, &ksp));
    PetscCall(KSPSetTolerances(ksp, 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, 200));
    PetscCall(TSSolve(ts, u));
    PetscCall(TellVec(w, u, 1e-8));
    PetscCall(TSDestroy(&ts));
    PetscCall(VecDestroy(&u));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&J));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A x + x^3 = b */
static PetscErrorCode Cubic(SNES snes, Vec x, Vec f, void *ctx)
{
  Vec t;

  PetscFunctionBegin;
  (void)snes;
  PetscCall(MatMult((Mat)ctx, x, f));
  PetscCall(VecDuplicate(x, &t));
  PetscCall(VecPointwiseMult(t, x, x));
  PetscCall(VecPointwiseMult(t, t, x));
  PetscCall(VecAXPY(f, 1, t));
  PetscCall(VecShift(f, -1));
  PetscCall(VecDestroy(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CubicJacobian(SNES snes, Vec x, Mat J, Mat P, void *ctx)
{
  Vec t;

  PetscFunctionBegin;
  (void)snes;
  PetscCall(MatCopy((Mat)ctx, P, SAME_NONZERO_PATTERN));
  PetscCall(VecDuplicate(x, &t));
  PetscCall(VecPointwiseMult(t, x, x));
  PetscCall(VecScale(t, 3));
  PetscCall(MatDiagonalSet(P, t, ADD_VALUES));
  PetscCall(VecDestroy(&t));
  if (J != P) PetscCall(Assemble(J));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_free(World *w)
{
  static const char *const types[] = {"newtonls", "newtontr", "nrichardson", "anderson", "qn", "ncg", "ksponly"};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    Mat                 A, P;
    Vec                 x;
    SNES                snes;
    KSP                 ksp;
    SNESConvergedReason reason;

    PetscCall(Grid(w, 6, 0, &A));
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &P));
    PetscCall(MatCreateVecs(A, &x, NULL));
    PetscCall(SNESCreate(w->comm, &snes));
    PetscCall(SNESSetType(snes, types[k]));
    PetscCall(SNESSetFunction(snes, NULL, Cubic, A));
    PetscCall(SNESSetJacobian(snes, P, P, CubicJacobian, A));
    PetscCall(SNESSetTolerances(snes, 1e-12, 1e-10, PETSC_DEFAULT, 2000, 100000));
    PetscCall(SNESGetKSP(snes, &ksp));
    PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 200));
    PetscCall(SNESSetFromOptions(snes));
    PetscCall(SNESSolve(snes, NULL, x));
    PetscCall(SNESGetConvergedReason(snes, &reason));
    PetscCall(Tell(w, reason > 0, 0));
    if (reason > 0) PetscCall(TellVec(w, x, 1e-5)); /* one that diverges goes where rounding leads */
    PetscCall(SNESDestroy(&snes));
    PetscCall(VecDestroy(&x));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&P));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each iterate while rounding has grown to 1e-13 at most: NGMRES goes back from its solution here, eight times as far with each step, whatever the types, until it diverges */
static PetscErrorCode TellIterate(SNES snes, PetscInt step, PetscReal norm, void *ctx)
{
  Vec x;

  PetscFunctionBegin;
  PetscCall(SNESGetSolution(snes, &x));
  PetscCall(Tell((World *)ctx, (double)norm, 1e-11));
  PetscCall(TellVec((World *)ctx, x, step < 6 ? 1e-13 : 1e-12));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_ngmres(World *w)
{
  static const char *const types[] = {"ngmres", "anderson"};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    Mat                 A;
    Vec                 x;
    SNES                snes;
    SNESConvergedReason reason;

    PetscCall(Grid(w, 6, 0, &A));
    PetscCall(MatCreateVecs(A, &x, NULL));
    PetscCall(SNESCreate(w->comm, &snes));
    PetscCall(SNESSetType(snes, types[k]));
    PetscCall(SNESSetFunction(snes, NULL, Cubic, A));
    PetscCall(SNESSetTolerances(snes, 0, 0, 0, k ? 6 : 8, 100000));
    PetscCall(SNESMonitorSet(snes, TellIterate, w, NULL));
    PetscCall(SNESSolve(snes, NULL, x));
    PetscCall(SNESGetConvergedReason(snes, &reason));
    PetscCall(Tell(w, reason, 0));
    PetscCall(SNESDestroy(&snes));
    PetscCall(VecDestroy(&x));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The Jacobian's products by differences, of the function's vectors; its preconditioner of the matrix under test */
static PetscErrorCode Case_mffd(World *w)
{
  static const char *const pcs[] = {"jacobi", "bjacobi", "gamg", "none"};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(pcs); k++) {
    Mat                 A, P, J;
    Vec                 x, y, z, f;
    SNES                snes;
    KSP                 ksp;
    PC                  pc;
    SNESConvergedReason reason;

    PetscCall(Grid(w, 6, 1, &A));
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &P));
    PetscCall(MatCreateVecs(A, &x, &f));
    PetscCall(SNESCreate(w->comm, &snes));
    PetscCall(SNESSetFunction(snes, f, Cubic, A)); /* with its vector, which MatCreateSNESMF() asks for the sizes */
    PetscCall(MatCreateSNESMF(snes, &J));
    PetscCall(MatSetOptionsPrefix(J, "free_")); /* its first product asks the options: -mat_type, if it had none, would make it another matrix in the midst of it */
    PetscCall(SNESSetJacobian(snes, J, P, CubicJacobian, A));
    PetscCall(SNESSetTolerances(snes, 1e-12, 1e-10, PETSC_DEFAULT, 50, 100000));
    PetscCall(SNESGetKSP(snes, &ksp));
    PetscCall(KSPSetTolerances(ksp, 1e-5, PETSC_DEFAULT, PETSC_DEFAULT, 200));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, pcs[k]));
    PetscCall(SNESSolve(snes, NULL, x));
    PetscCall(SNESGetConvergedReason(snes, &reason));
    PetscCall(Tell(w, reason > 0, 0));
    PetscCall(TellVec(w, x, 1e-8));
    PetscCall(VecDuplicate(x, &y));
    PetscCall(VecDuplicate(x, &z));
    PetscCall(Fill(z, 4));
    PetscCall(Assemble(J)); /* at the solution, not where the last step began with the function of where it ended */
    PetscCall(MatMult(J, z, y));
    PetscCall(TellVec(w, y, 1e-4)); /* what rounds in the function, over steps of 1e-9 */
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&z));
    PetscCall(SNESDestroy(&snes));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&f));
    PetscCall(MatDestroy(&J));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&P));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PCDEFLATION keeps its spaces' products from the first solve (PETSc 3.18 to 3.24), so that new values want another one; else it stays where it is, and then goes where rounding leads */
static PetscErrorCode TellResidual(KSP ksp, PetscInt step, PetscReal norm, void *ctx)
{
  PetscFunctionBegin;
  (void)ksp;
  (void)step;
  PetscCall(Tell((World *)ctx, (double)norm, 1e-10));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_deflation(World *w)
{
  Mat A;
  KSP ksp;

  PetscFunctionBegin;
  PetscCall(Grid(w, 6, 0, &A));
  for (int round = 0; round < 2; round++) {
    Vec      x, b;
    PetscInt steps;

    PetscCall(NewKSP(w, w->comm, A, "fgmres", "deflation", &ksp));
    PetscCall(Solve(w, ksp, A));
    PetscCall(KSPGetIterationNumber(ksp, &steps));
    PetscCall(Tell(w, (double)steps, 1));
    PetscCall(MatScale(A, 2));
    PetscCall(MatShift(A, 1));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(Fill(b, 5));
    PetscCall(KSPSetTolerances(ksp, 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, 5)); /* with the products of before */
    PetscCall(KSPMonitorSet(ksp, TellResidual, w, NULL));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(TellVec(w, x, 1e-10));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A DMDA's vectors, local and global, and its matrices, by the DM's types */
static PetscErrorCode Case_dm(World *w)
{
  DM         da, coarse;
  Mat        A, P;
  Vec        g, l, v, nat;
  KSP        ksp;
  PetscInt   xs, ys, xm, ym;
  MatStencil row, col[5];

  PetscFunctionBegin;
  PetscCall(DMDACreate2d(w->comm, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 9, 9, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, &da));
  if (!w->ref) {
    char type[64];

    PetscCall(TestType(type, sizeof(type)));
    PetscCall(DMSetMatType(da, type));
    if (strstr(type, "gpucsr")) PetscCall(DMSetVecType(da, "gpu"));
  }
  PetscCall(DMSetUp(da));
  PetscCall(DMCreateMatrix(da, &A));
  PetscCall(DMDAGetCorners(da, &xs, &ys, NULL, &xm, &ym, NULL));
  for (PetscInt y = ys; y < ys + ym; y++)
    for (PetscInt x = xs; x < xs + xm; x++) {
      PetscScalar a[5] = {5, -1, -1, -1, -1};
      PetscInt    n    = 1;

      row.i = col[0].i = x;
      row.j = col[0].j = y;
      row.k = row.c = 0;
      if (x > 0) col[n++] = (MatStencil){0, y, x - 1, 0};
      if (x < 8) col[n++] = (MatStencil){0, y, x + 1, 0};
      if (y > 0) col[n++] = (MatStencil){0, y - 1, x, 0};
      if (y < 8) col[n++] = (MatStencil){0, y + 1, x, 0};
      PetscCall(MatSetValuesStencil(A, 1, &row, n, col, a, INSERT_VALUES));
    }
  PetscCall(Assemble(A));
  PetscCall(DMCreateGlobalVector(da, &g));
  PetscCall(DMCreateLocalVector(da, &l));
  PetscCall(VecDuplicate(g, &v));
  PetscCall(Fill(g, 1));
  for (int round = 0; round < 2; round++) {
    PetscScalar **a;

    PetscCall(MatMult(A, g, v));
    PetscCall(DMGlobalToLocal(da, v, INSERT_VALUES, l));
    PetscCall(TellVec(w, l, 0));
    PetscCall(VecScale(l, 2));
    PetscCall(DMLocalToGlobal(da, l, ADD_VALUES, v));
    PetscCall(TellVec(w, v, 0));
    PetscCall(DMDAVecGetArray(da, g, &a));
    for (PetscInt y = ys; y < ys + ym; y++)
      for (PetscInt x = xs; x < xs + xm; x++) a[y][x] += 1;
    PetscCall(DMDAVecRestoreArray(da, g, &a));
    PetscCall(DMLocalToLocalBegin(da, l, INSERT_VALUES, l));
    PetscCall(DMLocalToLocalEnd(da, l, INSERT_VALUES, l));
    PetscCall(TellVec(w, l, 0));
    PetscCall(DMDACreateNaturalVector(da, &nat));
    PetscCall(DMDAGlobalToNaturalBegin(da, v, INSERT_VALUES, nat));
    PetscCall(DMDAGlobalToNaturalEnd(da, v, INSERT_VALUES, nat));
    PetscCall(VecScale(nat, 2));
    PetscCall(DMDANaturalToGlobalBegin(da, nat, INSERT_VALUES, g));
    PetscCall(DMDANaturalToGlobalEnd(da, nat, INSERT_VALUES, g));
    PetscCall(VecDestroy(&nat));
    PetscCall(TellVec(w, g, 0));
    row.i = row.j = 3;
    PetscCall(MatZeroRowsColumnsStencil(A, xs <= 3 && 3 < xs + xm && ys <= 3 && 3 < ys + ym ? 1 : 0, &row, 1, NULL, NULL));
  }
  PetscCall(DMCoarsen(da, w->comm, &coarse));
  PetscCall(DMCreateInterpolation(coarse, da, &P, NULL));
  PetscCall(TellProducts(w, P));
  PetscCall(MatDestroy(&P));
  PetscCall(DMDestroy(&coarse));
  PetscCall(NewKSP(w, w->comm, A, "cg", "mg", &ksp));
  {
    PC pc;

    PetscCall(KSPSetDM(ksp, da));
    PetscCall(KSPSetDMActive(ksp, PETSC_FALSE));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCMGSetLevels(pc, 2, NULL));
    PetscCall(PCMGSetGalerkin(pc, PC_MG_GALERKIN_BOTH));
  }
  PetscCall(Solve(w, ksp, A));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&g));
  PetscCall(VecDestroy(&l));
  PetscCall(VecDestroy(&v));
  PetscCall(MatDestroy(&A));
  PetscCall(DMDestroy(&da));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_ghosts(World *w)
{
  Mat         A;
  Vec         g, y, l;
  PetscInt    rs, re, ghosts[3];
  PetscMPIInt rank, ranks;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(w->comm, &rank));
  PetscCallMPI(MPI_Comm_size(w->comm, &ranks));
  PetscCall(Grid(w, 8, 1, &A));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (int k = 0; k < 3; k++) ghosts[k] = (re + k) % 64;
  PetscCall(VecCreateGhost(w->comm, re - rs, 64, ranks > 1 ? 3 : 0, ghosts, &g));
  if (!w->ref) {
    char type[64];

    PetscCall(TestType(type, sizeof(type)));
    if (strstr(type, "gpucsr")) PetscCall(VecSetOptionsPrefix(g, "ghosts_"));
  }
  PetscCall(VecDuplicate(g, &y));
  PetscCall(Fill(g, 1));
  for (int round = 0; round < 3; round++) {
    PetscCall(MatMult(A, g, y));
    PetscCall(VecGhostUpdateBegin(y, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecGhostUpdateEnd(y, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecGhostGetLocalForm(y, &l));
    PetscCall(TellVec(w, l, 0));
    PetscCall(VecShift(l, 1));
    PetscCall(VecGhostRestoreLocalForm(y, &l));
    PetscCall(VecGhostUpdateBegin(y, ADD_VALUES, SCATTER_REVERSE));
    PetscCall(VecGhostUpdateEnd(y, ADD_VALUES, SCATTER_REVERSE));
    PetscCall(VecAXPY(g, 1, y));
    PetscCall(TellVec(w, g, 0));
  }
  PetscCall(VecDestroy(&g));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  PetscErrorCode (*run)(World *);
} cases[] = {
  {"swap",      Case_swap     },
  {"zerorows",  Case_zerorows },
  {"newplaces", Case_newplaces},
  {"placed",    Case_placed   },
  {"views",     Case_views    },
  {"nest",      Case_nest     },
  {"patterns",  Case_patterns },
  {"parts",     Case_parts    },
  {"load",      Case_load     },
  {"convert",   Case_convert  },
  {"coo",       Case_coo      },
  {"factors",   Case_factors  },
  {"flight",    Case_flight   },
  {"solvers",   Case_solvers  },
  {"pcs",       Case_pcs      },
  {"matsolve",  Case_matsolve },
  {"comms",     Case_comms    },
  {"scatter",   Case_scatter  },
  {"vectors",   Case_vectors  },
  {"blocks",    Case_blocks   },
  {"thread",    Case_thread   },
  {"fork",      Case_fork     },
  {"imex",      Case_imex     },
  {"free",      Case_free     },
  {"ngmres",    Case_ngmres   },
  {"mffd",      Case_mffd     },
  {"deflation", Case_deflation},
  {"dm",        Case_dm       },
  {"ghosts",    Case_ghosts   },
};

int main(int argc, char **argv)
{
  static World us, ref;
  char         only[32] = "", type[64];
  PetscInt     wrong    = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(32));
  PetscCall(TestType(type, sizeof(type)));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-only", only, sizeof(only), NULL));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(cases); k++) {
    PetscInt first = -1, found[2];

    if (only[0] && strcmp(only, cases[k].name)) continue;
    us.n = ref.n = 0;
    ref.ref = ref.plain = PETSC_TRUE;
    us.plain            = (PetscBool)!strstr(type, "gpucsr");
    us.comm = ref.comm = PETSC_COMM_WORLD;
    PetscCall((*cases[k].run)(&ref));
    PetscCall((*cases[k].run)(&us));
    if (us.n != ref.n) first = PetscMin(us.n, ref.n);
    for (int q = PetscMin(us.n, ref.n); q-- > 0;)
      if (!(PetscAbsReal(us.value[q] - ref.value[q]) <= ref.bound[q])) first = q;
    found[0] = first >= 0;
    PetscCallMPI(MPI_Allreduce(&found[0], &found[1], 1, MPIU_INT, MPI_MAX, PETSC_COMM_WORLD));
    if (first >= 0) PetscCall(PetscFPrintf(PETSC_COMM_SELF, stderr, "case %s: number %" PetscInt_FMT " of %d (%d) is %.17g, not %.17g\n", cases[k].name, first, us.n, ref.n, us.value[first], ref.value[first]));
    wrong += found[1];
  }
  PetscCheck(!wrong, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " cases differ", wrong);
  PetscCall(PetscFinalize());
  return 0;
}

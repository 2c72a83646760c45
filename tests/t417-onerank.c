//TEST name="cuda" nsize=2 args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_format csr -kind {}" loop="memory pagelock copy launch event synchronize" gpu=0
//TEST name="auto" nsize=2 args="-gpucsr_debug_standin 1 -mat_gpucsr_backend auto -mat_gpucsr_format csr -kind {}" loop="memory pagelock copy launch event synchronize" gpu=0

/*
  One of several ranks meets an error, in any call of the library to its device: no rank waits for ever, and each result is right, or NaN, or
  some rank returns an error. The library reads the fault to inject when it is registered, so PETSc starts and ends for each n.

    mpiexec -n 2 build/tests/t417-onerank -dll_append build/lib/libpetscgpucsr.so -gpucsr_debug_standin 1 -kind copy
*/
#include "testing.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N    60
#define MOST 150 /* calls of a kind */
#define OPEN 12  /* of them, at least, belong to the opening of the device */

static PetscErrorCode Create(PetscBool ref, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, N, N, ref, A));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt r = rs; r < re; r++)
    for (PetscInt k = 0; k < 4; k++) PetscCall(MatSetValue(*A, r, (r * 7 + 11 * k) % N, (PetscScalar)(1 + (r + k) % 5), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Some rank met an error */
static PetscErrorCode Met(PetscErrorCode ierr, PetscBool *met)
{
  PetscMPIInt mine = ierr ? 1 : 0, all;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD));
  *met = (PetscBool)all;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Same(Vec z, Vec r, const char what[])
{
  const PetscScalar *a, *b;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(z, &n));
  PetscCall(VecGetArrayRead(z, &a));
  PetscCall(VecGetArrayRead(r, &b));
  for (PetscInt k = 0; k < n; k++) PetscCheck(a[k] == b[k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %" PetscInt_FMT " is %g, should be %g", what, k, (double)PetscRealPart(a[k]), (double)PetscRealPart(b[k]));
  PetscCall(VecRestoreArrayRead(z, &a));
  PetscCall(VecRestoreArrayRead(r, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Products of every kind, with new values between them, until some rank meets an error */
static PetscErrorCode Products(Mat A, Mat R, Mat B, const char what[])
{
  Vec       x, z, y, r;
  Mat       C = NULL, D = NULL;
  PetscBool met = PETSC_FALSE, equal;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(R, &x, &z));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecDuplicate(z, &r));
  PetscCall(VecSet(x, 1.0));
  PetscCall(VecSet(y, 3.0));
  for (int k = 0; k < 12 && !met; k++) {
    const PetscInt kind = k % 4 / 2, add = k % 2;
    PetscErrorCode ierr;

    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = TestProduct(A, kind, add, x, y, z);
    PetscCall(PetscPopErrorHandler());
    PetscCall(Met(ierr, &met));
    PetscCall(TestProduct(R, kind, add, x, y, r));
    if (!met) PetscCall(Same(z, r, what));
    if (k == 7) PetscCall(MatScale(A, 2.0));
    if (k == 7) PetscCall(MatScale(R, 2.0));
  }
  for (int k = 0; k < 2 && !met; k++) {
    PetscErrorCode ierr;

    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = MatMatMult(A, B, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C);
    PetscCall(PetscPopErrorHandler());
    PetscCall(Met(ierr, &met));
    if (met) break;
    PetscCall(MatMatMult(R, B, k ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
    PetscCall(MatEqual(C, D, &equal));
    PetscCheck(equal, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: a product with a dense matrix", what);
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
  }
  /* after an error the objects stay as they are: PETSc promises nothing more */
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(VecDestroy(&r));
  if (!met) PetscCall(MatDestroy(&C));
  if (!met) PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscErrorCode ierr     = MPI_Init(&argc, &argv) ? PETSC_ERR_MPI : PETSC_SUCCESS;
  char           kind[32] = "copy", options[4096], own[4096] = "", what[128];

  if (ierr) return 1;
  if (getenv("PETSC_OPTIONS")) (void)snprintf(own, sizeof(own), "%s", getenv("PETSC_OPTIONS"));
  for (int k = 1; k + 1 < argc; k++)
    if (!strcmp(argv[k], "-kind")) (void)snprintf(kind, sizeof(kind), "%s", argv[k + 1]);
  for (int n = !strcmp(kind, "pagelock") || !strcmp(kind, "event") ? OPEN : 1; n < MOST; n += 1 + n / 16) {
    Mat A, R, B;

    PetscFunctionBeginUser;
    (void)alarm(60); /* a rank that waits for ever */
    (void)snprintf(options, sizeof(options), "%.3900s -gpucsr_debug_fault %s:%d:rank=1", own, kind, n);
    (void)setenv("PETSC_OPTIONS", options, 1);
    (void)snprintf(what, sizeof(what), "%s call %d fails on rank 1", kind, n);
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(TestRequireReal(64));
    PetscCall(Create(PETSC_TRUE, &R));
    PetscCall(Create(PETSC_FALSE, &A));
    PetscCall(MatCreateDense(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, N, 3, NULL, &B));
    PetscCall(MatSetUp(B));
    PetscCall(MatZeroEntries(B));
    PetscCall(MatShift(B, 2.0));
    PetscCall(Products(A, R, B, what));
    PetscCall(PetscFinalize());
  }
  return MPI_Finalize();
}

//TEST name="default"
//TEST name="format" args="-mat_gpucsr_format {} -mat_gpucsr_transpose_format {}" loop="csr sell bitdense"
//TEST name="single" args="-mat_gpucsr_format csr -mat_gpucsr_transpose_format csr -mat_gpucsr_precision single"
//TEST name="mixed" args="-mat_gpucsr_format csr -mat_gpucsr_transpose_format csr -mat_gpucsr_precision mixed"
//TEST name="ranks" nsize=3 args="-mat_gpucsr_format {} -mat_gpucsr_transpose_format {}" loop="csr sell"
//TEST name="ranks.single" nsize=2 args="-mat_gpucsr_format csr -mat_gpucsr_transpose_format csr -mat_gpucsr_precision single"
//TEST name="ranks.default" nsize=2
//TEST name="memory" gpu=0 args="-zoo 15 -columns 20 -mat_gpucsr_format csr -mat_gpucsr_transpose_format csr -mat_gpucsr_memory_limit 600000" warns="goes on with the products of MATSEQAIJ"
//TEST name="memory.ranks" gpu=0 nsize=2 args="-zoo 15 -columns 20 -mat_gpucsr_format csr -mat_gpucsr_transpose_format csr -mat_gpucsr_memory_limit 250000"
/*
  Products with dense matrices, A B and A^T B, over the zoo: numbers of columns around the tiles of the kernel, columns apart in memory, values changed since,
  and special values. Each column is compared with MatMult() and MatMultTranspose() of MATAIJ.

    build/tests/t411-dense -dll_append build/lib/libpetscgpucsr.so [-zoo which] [-columns k] [-mat_type gpucsr] [-mat_gpucsr_...]
*/
#include <petscgpucsr.h>
#include "testing.h"

/* n rows as v is dealt to the ranks, and k columns, ahead of each other by more than the rows */
static PetscErrorCode CreateDense(Vec v, PetscInt k, PetscInt apart, Mat *B)
{
  PetscInt n, N;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(v, &n));
  PetscCall(VecGetSize(v, &N));
  PetscCall(MatCreate(PetscObjectComm((PetscObject)v), B));
  PetscCall(MatSetSizes(*B, n, PETSC_DECIDE, N, k));
  PetscCall(MatSetType(*B, MATDENSE));
  PetscCall(MatDenseSetLDA(*B, n + apart));
  PetscCall(MatSetUp(*B));
  PetscCall(MatAssemblyBegin(*B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*B, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C against the columns of R B, or of its transpose */
static PetscErrorCode Compare(Mat R, Mat absolute, Mat B, Mat C, PetscBool transposed, const char where[])
{
  PetscInt k;
  Vec      x, y, b, c, r, bound;
  char     what[64];

  PetscFunctionBegin;
  PetscCall(MatGetSize(B, NULL, &k));
  PetscCall(MatCreateVecs(R, transposed ? &r : &x, transposed ? &x : &r));
  PetscCall(VecDuplicate(x, &y));
  PetscCall(VecDuplicate(r, &bound));
  for (PetscInt q = 0; q < k; q++) {
    PetscCall(MatDenseGetColumnVecRead(B, q, &b));
    PetscCall(VecCopy(b, x));
    PetscCall(MatDenseRestoreColumnVecRead(B, q, &b));
    PetscCall(VecCopy(x, y));
    PetscCall(VecAbs(y));
    PetscCall((transposed ? MatMultTranspose : MatMult)(R, x, r));
    PetscCall((transposed ? MatMultTranspose : MatMult)(absolute, y, bound));
    PetscCall(PetscSNPrintf(what, sizeof(what), "column %" PetscInt_FMT " of %" PetscInt_FMT "%s", q, k, transposed ? ", transposed" : ""));
    PetscCall(MatDenseGetColumnVecRead(C, q, &c));
    PetscCall(TestClose(c, r, bound, what, where));
    PetscCall(MatDenseRestoreColumnVecRead(C, q, &c));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&bound));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One more entry in each row, mostly in empty columns of other ranks */
static PetscErrorCode Grow(Mat A)
{
  PetscInt first, last, n;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &first, &last));
  PetscCall(MatGetSize(A, NULL, &n));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  for (PetscInt r = first; r < last && n; r++) PetscCall(MatSetValue(A, r, (7 * r + 3 + n / 2) % n, 0.75, ADD_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Twice, with new values between; then, of a few numbers of columns, with a new pattern (which is an error of MATAIJ's own product), or with A converted to MATAIJ */
static PetscErrorCode Products(Mat A, Mat R, PetscInt k, PetscBool special, const char where[])
{
  Mat       B[2], C[2] = {NULL, NULL}, absolute;
  Vec       v[2];
  PetscBool format;

  PetscFunctionBegin;
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_gpucsr_format", &format));
  PetscCall(MatCreateVecs(R, &v[0], &v[1]));
  for (int side = 0; side < 2; side++) {
    PetscCall(CreateDense(v[side], k, k == 7 ? 3 : 0, &B[side]));
    for (PetscInt q = 0; q < k; q++) {
      Vec b;

      PetscCall(MatDenseGetColumnVecWrite(B[side], q, &b));
      PetscCall(TestFill(b, q, special));
      PetscCall(MatDenseRestoreColumnVecWrite(B[side], q, &b));
    }
    PetscCall(VecDestroy(&v[side]));
  }
  for (int again = 0; again < ((k == 2 && format) || k == 11 ? 3 : 2); again++) {
    if (again == 1) {
      PetscCall(MatScale(A, -0.5));
      PetscCall(MatScale(R, -0.5));
    } else if (again && k == 2) {
      PetscCall(Grow(A));
      PetscCall(Grow(R));
    } else if (again) PetscCall(MatConvert(A, MATAIJ, MAT_INPLACE_MATRIX, &A));
    PetscCall(TestAbs(R, &absolute));
    PetscCall(MatMatMult(A, B[0], again ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[0]));
    PetscCall(Compare(R, absolute, B[0], C[0], PETSC_FALSE, where));
    PetscCall(MatTransposeMatMult(A, B[1], again ? MAT_REUSE_MATRIX : MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C[1]));
    PetscCall(Compare(R, absolute, B[1], C[1], PETSC_TRUE, where));
    PetscCall(MatDestroy(&absolute));
  }
  for (int side = 0; side < 2; side++) {
    PetscCall(MatDestroy(&B[side]));
    PetscCall(MatDestroy(&C[side]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const PetscInt columns[] = {1, 2, 3, 6, 7, 11, 12, 20, 70};
  PetscInt              only = -1, just = -1;
  PetscBool             limited;
  PetscMPIInt           ranks;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(32));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-zoo", &only, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-columns", &just, NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_gpucsr_memory_limit", &limited));
  for (PetscInt which = 0; which < ZOO_COUNT; which++) {
    if (only >= 0 && which != only) continue;
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(columns); k++) {
      Mat           A, R;
      PetscBool     takes = PETSC_TRUE;
      MatGPUCSRInfo info;
      PetscErrorCode (*getinfo)(Mat, MatGPUCSRInfo *) = NULL;

      if (just >= 0 ? columns[k] != just : ranks > 1 && (k + (size_t)which) % 3) continue; /* one rank has all, and all ranks have some */
      PetscCall(TestZoo(PETSC_COMM_WORLD, which, PETSC_FALSE, PETSC_FALSE, &A));
      PetscCall(TestZoo(PETSC_COMM_WORLD, which, PETSC_FALSE, PETSC_TRUE, &R));
      PetscCall(TestTakes(A, &takes));
      if (takes) PetscCall(Products(A, R, columns[k], (PetscBool)(columns[k] == 3), ZooTable[which].name));
      PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatGPUCSRGetInfo_C", &getinfo));
      if (getinfo) {
        PetscCall((*getinfo)(A, &info));
        PetscCheck(info.dense_columns <= info.products + info.transpose_products, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " columns are more than products", ZooTable[which].name, info.dense_columns);
        PetscCheck(limited || info.dense_products == 0 || info.aij_products == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: left the device", ZooTable[which].name);
      }
      PetscCall(MatDestroy(&A));
      PetscCall(MatDestroy(&R));
    }
  }
  PetscCall(PetscOptionsClear(NULL));
  PetscCall(PetscFinalize());
  return 0;
}

//TEST name="late" args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_format csr -gpucsr_debug_defer {}" loop="0 1 2" gpu=0
//TEST name="formats" args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_format {} -mat_gpucsr_transpose_format {} -gpucsr_debug_defer 0" loop="sell dia hyb" gpu=0
//TEST name="single" args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_format csr -mat_gpucsr_precision {} -gpucsr_debug_defer 0" loop="single mixed" gpu=0
//TEST name="ranks" nsize=2 args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_format csr -gpucsr_debug_defer {}" loop="0 3" gpu=0
//TEST name="gpu" args="-mat_gpucsr_format csr" gpu=1
//TEST name="gpu_ranks" nsize=2 args="-mat_gpucsr_format csr" gpu=1

/*
  When a product returns, the program may use its vectors again, whatever the device still has to do. Here the device does everything as late as possible, or
  in a random order (-gpucsr_debug_defer), and the program overwrites a vector at once: a missing wait gives a wrong number.

  All numbers are small integers, so that results are exact.

    build/tests/t414-late -dll_append build/lib/libpetscgpucsr.so -gpucsr_debug_standin 1 -gpucsr_debug_defer 0 -mat_gpucsr_format csr
*/
#include "testing.h"

/* Entries of a rank that make the vectors large enough to be page-locked, and for a product in pieces */
#define LOCKED 70000
#define PIECES 600000

/* Three diagonals; with several ranks the last row of each but the first needs an entry of the rank before, and no rank needs one of a later rank */
static PetscErrorCode Create(PetscInt n, PetscBool ref, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, n, n, PETSC_DETERMINE, PETSC_DETERMINE));
  if (ref) PetscCall(MatSetOptionsPrefix(*A, "ref_"));
  PetscCall(MatSetType(*A, ref ? MATAIJ : "gpucsr"));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 4, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 3, NULL, 1, NULL));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    const PetscInt    col[] = {r > rs ? r - 1 : -1, r, r + 1 < re ? r + 1 : -1, r == re - 1 && rs ? rs - 1 - r % 100 : -1};
    const PetscScalar v[]   = {1 + r % 3, 5, 2 + r % 4, 7};

    PetscCall(MatSetValues(*A, 1, &r, 4, col, v, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode VectorCreate(PetscInt n, VecType type, Vec *v)
{
  PetscFunctionBegin;
  PetscCall(VecCreate(PETSC_COMM_WORLD, v));
  PetscCall(VecSetSizes(*v, n, PETSC_DETERMINE));
  PetscCall(VecSetType(*v, type));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By its array, as a program does it */
static PetscErrorCode Fill(Vec v, PetscInt seed)
{
  PetscInt     n;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(v, &n));
  PetscCall(VecGetArray(v, &a));
  for (PetscInt k = 0; k < n; k++) a[k] = (PetscScalar)((k * 7 + seed * 13) % 31 - 15);
  PetscCall(VecRestoreArray(v, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  Mat R;       /* the reference, */
  Vec x, y, z; /* and its vectors */
} Expected;

/* z is R x + y of the vectors of these seeds; no y: add is false */
static PetscErrorCode Check(Expected *e, PetscBool transpose, PetscInt xseed, PetscBool add, PetscInt yseed, Vec z, const char what[])
{
  const PetscScalar *a, *b;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(Fill(e->x, xseed));
  PetscCall(Fill(e->y, yseed));
  PetscCall(TestProduct(e->R, transpose ? TEST_T : TEST_N, add, e->x, e->y, e->z));
  PetscCall(VecGetLocalSize(z, &n));
  PetscCall(VecGetArrayRead(z, &a));
  PetscCall(VecGetArrayRead(e->z, &b));
  for (PetscInt k = 0; k < n; k++) PetscCheck(a[k] == b[k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s%s: row %" PetscInt_FMT " is %g, should be %g", what, transpose ? ", transposed" : "", k, (double)PetscRealPart(a[k]), (double)PetscRealPart(b[k]));
  PetscCall(VecRestoreArrayRead(z, &a));
  PetscCall(VecRestoreArrayRead(e->z, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Vectors of these types: each product three times, as page-locking begins with the second, with x and y overwritten as soon as it returns */
static PetscErrorCode Overwrite(Mat A, Expected *e, PetscInt n, VecType xtype, VecType ytype, VecType ztype)
{
  Vec  x, y, z;
  char what[128];

  PetscFunctionBegin;
  PetscCall(VectorCreate(n, xtype, &x));
  PetscCall(VectorCreate(n, ytype, &y));
  PetscCall(VectorCreate(n, ztype, &z));
  for (PetscInt k = 0; k < 12; k++) {
    const PetscBool transpose = (PetscBool)(k / 6 == 1), add = (PetscBool)(k % 2);

    PetscCall(PetscSNPrintf(what, sizeof(what), "product %" PetscInt_FMT " of %" PetscInt_FMT " rows, vectors %s, %s and %s", k, n, xtype, add ? ytype : "none", ztype));
    PetscCall(Fill(x, k));
    PetscCall(Fill(y, k + 100));
    PetscCall(TestProduct(A, transpose ? TEST_T : TEST_N, add, x, y, z));
    PetscCall(Fill(x, k + 200));
    PetscCall(Fill(y, k + 300));
    PetscCall(Check(e, transpose, k, add, k + 100, z, what));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A product whose result stays on the device, then a product in pieces, which uses the same memory for its x */
static PetscErrorCode OneAfterTheOther(Mat A, Expected *e, PetscInt n)
{
  Vec x, w, z[2];

  PetscFunctionBegin;
  PetscCall(VectorCreate(n, VECSTANDARD, &x));
  PetscCall(VectorCreate(n, VECSTANDARD, &w));
  PetscCall(VectorCreate(n, "gpu", &z[0]));
  PetscCall(VectorCreate(n, VECSTANDARD, &z[1]));
  for (PetscInt k = 0; k < 6; k++) {
    const PetscBool transpose = (PetscBool)(k / 3 == 1);

    PetscCall(Fill(x, k));
    PetscCall(Fill(w, k + 50));
    PetscCall(TestProduct(A, transpose ? TEST_T : TEST_N, 0, x, NULL, z[0]));
    PetscCall(TestProduct(A, transpose ? TEST_T : TEST_N, 0, w, NULL, z[1]));
    PetscCall(Check(e, transpose, k + 50, PETSC_FALSE, 0, z[1], "a product in pieces"));
    PetscCall(Check(e, transpose, k, PETSC_FALSE, 0, z[0], "the product before one in pieces"));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&w));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&z[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values while products with the old ones are under way */
static PetscErrorCode Refresh(Mat A, Expected *e, PetscInt n)
{
  Vec x, z[2];

  PetscFunctionBegin;
  PetscCall(VectorCreate(n, "gpu", &x));
  for (int k = 0; k < 2; k++) PetscCall(VectorCreate(n, "gpu", &z[k]));
  PetscCall(Fill(x, 1));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(TestProduct(A, TEST_N, 0, x, NULL, z[0]));
    PetscCall(MatScale(A, 2.0));
    PetscCall(TestProduct(A, TEST_N, 0, x, NULL, z[1]));
    PetscCall(Check(e, PETSC_FALSE, 1, PETSC_FALSE, 0, z[0], "with the values before"));
    PetscCall(MatScale(e->R, 2.0));
    PetscCall(Check(e, PETSC_FALSE, 1, PETSC_FALSE, 0, z[1], "with new values"));
  }
  PetscCall(VecDestroy(&x));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&z[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const PetscInt sizes[] = {1000, LOCKED, PIECES};
  PetscMPIInt           size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (int k = 0; k < 3; k++) {
    static const char *const types[2] = {VECSTANDARD, "gpu"};
    Mat                      A;
    Expected                 e;

    PetscCall(Create(sizes[k], PETSC_FALSE, &A));
    PetscCall(Create(sizes[k], PETSC_TRUE, &e.R));
    PetscCall(VectorCreate(sizes[k], VECSTANDARD, &e.x));
    PetscCall(VecDuplicate(e.x, &e.y));
    PetscCall(VecDuplicate(e.x, &e.z));
    for (int q = 0; q < 8; q++)
      if (sizes[k] != PIECES || q == 0) PetscCall(Overwrite(A, &e, sizes[k], types[q & 1], types[(q & 2) / 2], types[(q & 4) / 4]));
    if (sizes[k] == PIECES && size == 1) PetscCall(OneAfterTheOther(A, &e, sizes[k]));
    if (sizes[k] == LOCKED) PetscCall(Refresh(A, &e, sizes[k]));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&e.R));
    PetscCall(VecDestroy(&e.x));
    PetscCall(VecDestroy(&e.y));
    PetscCall(VecDestroy(&e.z));
  }
  PetscCall(PetscFinalize());
  return 0;
}

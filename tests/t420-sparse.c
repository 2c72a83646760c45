/*
  Products of sparse matrices of the type under test, A B, A^T B, A B^T, P^T A P, R A R^T, against MATAIJ's: the same entries, values within rounding; with values changed,
  with the same pattern assembled again, after the result was used, changed and duplicated; with one factor a MATAIJ; with a new entry in a factor
  outside the pattern of the result. -device: they must have been computed on the device, or (0) must not

  //TEST name="csr" args="-mat_gpucsr_format csr -mat_gpucsr_product_least 0 -device 1"
  //TEST name="sell" args="-mat_gpucsr_format sell -mat_gpucsr_product_least 0 -device 1"
  //TEST name="small" args="-mat_gpucsr_format csr -mat_gpucsr_product_least 1000000 -device 0"
  //TEST name="algorithm" args="-mat_gpucsr_format csr -mat_gpucsr_product_least 0 -mat_product_algorithm default -matptap_via rap -matmatmult_via scalable -device 0"
  //TEST name="aij" args="-mat_gpucsr_format aij -device 0"
  //TEST name="memory" args="-mat_gpucsr_backend auto -mat_gpucsr_format csr -mat_gpucsr_product_least 0 -mat_gpucsr_memory_limit 30000 -only random" warns="MATGPUCSR warning: a product of sparse matrices, PtAP of 777 rows"
  //TEST name="limit" args="-mat_gpucsr_backend auto -mat_gpucsr_format csr -mat_gpucsr_product_least 0 -mat_gpucsr_memory_limit {} -only random" loop="100000 200000 400000 800000 1600000"
  //TEST name="lost" args="-mat_gpucsr_format csr -mat_gpucsr_product_least 0 -lost" fails="make it again with MAT_INITIAL_MATRIX"
  //TEST name="report" gpu=0 args="-mat_gpucsr_format csr -mat_gpucsr_product_least 0 -alone -mat_gpucsr_report" output=t420-report.out
*/
static char help[] = "Tests products of sparse matrices.\n";

#include <petscgpucsr.h>
#include "testing.h"
#include "sparse.h"

static PetscInt device = -1;

/* k entries a row, anywhere; pass: other values, same places */
static PetscErrorCode Fill(Mat M, PetscInt k, PetscInt seed, PetscInt pass)
{
  PetscInt m, n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(M, &m, &n));
  for (PetscInt r = 0; r < m; r++) {
    for (PetscInt q = 0; q < PetscMin(k, n); q++) {
      const PetscInt    c = (PetscInt)((ZooHash(seed, r, 0) + q * PetscMax(1, n / PetscMin(k, n))) % n);
      const PetscScalar v = ZooScalar(seed + 100 * pass, r, q);

      PetscCall(MatSetValues(M, 1, &r, 1, &c, &v, INSERT_VALUES));
    }
  }
  PetscCall(MatAssemblyBegin(M, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(M, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Make(PetscInt m, PetscInt n, PetscInt k, PetscInt seed, PetscBool ref, Mat *M)
{
  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_SELF, m, n, ref, M));
  PetscCall(MatSeqAIJSetPreallocation(*M, k, NULL));
  PetscCall(Fill(*M, k, seed, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Times(Mat A, PetscInt *n)
{
  MatGPUCSRInfo info;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRGetInfo(A, &info));
  *n = info.sparse_products;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The result is used as any other matrix: multiplied, doubled, given an entry it did not have, and its products must be right then */
static PetscErrorCode Use(Mat C, Mat R, Mat bound, const char where[])
{
  Mat         D, E, F; /* bound of the last */
  PetscInt    m, n, row, col;
  PetscScalar one = 1.0;

  PetscFunctionBegin;
  PetscCall(TestProductsBound(C, R, bound, PETSC_FALSE, where));
  PetscCall(MatGetSize(C, &m, &n));
  PetscCall(MatDuplicate(C, MAT_COPY_VALUES, &D));
  PetscCall(MatDuplicate(R, MAT_COPY_VALUES, &E));
  PetscCall(MatDuplicate(bound, MAT_COPY_VALUES, &F));
  if (m && n) {
    row = m / 2;
    col = n / 3;
    PetscCall(MatSetOption(D, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatSetOption(E, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatSetValues(D, 1, &row, 1, &col, &one, ADD_VALUES));
    PetscCall(MatSetValues(E, 1, &row, 1, &col, &one, ADD_VALUES));
    PetscCall(MatSetOption(F, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatSetValues(F, 1, &row, 1, &col, &one, ADD_VALUES));
    PetscCall(MatAssemblyBegin(F, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(F, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyBegin(D, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(D, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyBegin(E, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(E, MAT_FINAL_ASSEMBLY));
  }
  PetscCall(TestProductsBound(D, E, F, PETSC_FALSE, where));
  PetscCall(MatAXPY(D, -0.75, C, SUBSET_NONZERO_PATTERN)); /* D has one entry more */
  PetscCall(MatAXPY(E, -0.75, R, SUBSET_NONZERO_PATTERN));
  PetscCall(Compare(D, E, F, "A + B", where));
  PetscCall(TestProductsBound(D, E, F, PETSC_FALSE, where));
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&E));
  PetscCall(MatDestroy(&F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All that is asked of one product; A and B are changed */
static PetscErrorCode Case(MatProductType t, Mat A, Mat RA, Mat B, Mat RB, PetscInt k, PetscInt seed, const char where[])
{
  const char *name = MatProductTypes[t];
  Mat         C, R, b, D, mixed;
  PetscInt    before = 0, after = 0;

  PetscFunctionBegin;
  PetscCall(Times(A, &before));
  PetscCall(Product(t, A, B, MAT_INITIAL_MATRIX, &C));
  PetscCall(Times(A, &after));
  PetscCheck(device < 0 || after - before == device, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, %s: %" PetscInt_FMT " products on the device, should be %" PetscInt_FMT, where, name, after - before, device);
  PetscCall(Product(t, RA, RB, MAT_INITIAL_MATRIX, &R));
  PetscCall(Bound(t, RA, RB, &b));
  PetscCall(Compare(C, R, b, name, where));
  PetscCall(Use(C, R, b, where));
  PetscCall(MatDestroy(&b));
  for (PetscInt pass = 1; pass <= 3; pass++) { /* other values */
    if (pass == 3) {                           /* the pattern set again, the same as before */
      PetscCall(MatSeqAIJSetPreallocation(B, k, NULL));
      PetscCall(MatSeqAIJSetPreallocation(RB, k, NULL));
    }
    PetscCall(Fill(B, k, seed, pass));
    PetscCall(Fill(RB, k, seed, pass));
    PetscCall(MatScale(A, -1.25));
    PetscCall(MatScale(RA, -1.25));
    if (pass == 2) { /* the result is another's in between */
      PetscCall(MatScale(C, 3.0));
      PetscCall(MatZeroEntries(C));
    }
    PetscCall(Product(t, A, B, MAT_REUSE_MATRIX, &C));
    PetscCall(Product(t, RA, RB, MAT_REUSE_MATRIX, &R));
    PetscCall(Bound(t, RA, RB, &b));
    PetscCall(Compare(C, R, b, name, where));
    if (pass == 3) PetscCall(Use(C, R, b, where));
    PetscCall(MatDestroy(&b));
  }
  PetscCall(MatConvert(B, MATSEQAIJ, MAT_INITIAL_MATRIX, &mixed)); /* with a factor of another type */
  PetscCall(Product(t, A, mixed, MAT_INITIAL_MATRIX, &D));
  PetscCall(Bound(t, RA, RB, &b));
  PetscCall(Compare(D, R, b, "with a MATAIJ", where));
  PetscCall(MatDestroy(&D));
  PetscCall(MatDestroy(&b));
  PetscCall(MatDestroy(&mixed));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B of the shape that each product takes */
static PetscErrorCode Cases(Mat A, Mat RA, const char where[])
{
  static const MatProductType types[] = {MATPRODUCT_AB, MATPRODUCT_AtB, MATPRODUCT_ABt, MATPRODUCT_PtAP, MATPRODUCT_RARt};
  PetscInt                    m, n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &m, &n));
  for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(types); q++) {
    const MatProductType t     = types[q];
    const PetscInt       other = 1 + PetscMin(m, n) / 3;
    Mat                  B, RB;

    if (m != n && (t == MATPRODUCT_PtAP || t == MATPRODUCT_RARt)) continue;
    for (int ref = 0; ref < 2; ref++) PetscCall(Make(t == MATPRODUCT_AtB ? m : t == MATPRODUCT_AB || t == MATPRODUCT_PtAP ? n : other, t == MATPRODUCT_ABt || t == MATPRODUCT_RARt ? n : other, 3, 11, (PetscBool)ref, ref ? &RB : &B));
    PetscCall(Case(t, A, RA, B, RB, 3, 11, where));
    PetscCall(MatDestroy(&B));
    PetscCall(MatDestroy(&RB));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B gets an entry whose products have no place in C */
static PetscErrorCode Lost(void)
{
  Mat         A, B, C;
  PetscInt    row = 0, col = 37;
  PetscScalar one = 1.0;

  PetscFunctionBegin;
  PetscCall(Make(100, 100, 1, 3, PETSC_FALSE, &A));
  PetscCall(Make(100, 50, 1, 4, PETSC_FALSE, &B));
  PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatSetOption(B, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  for (row = 0; row < 100; row++) PetscCall(MatSetValues(B, 1, &row, 1, &col, &one, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatMatMult(A, B, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix without a product with a vector */
static PetscErrorCode Alone(void)
{
  Mat A, C;

  PetscFunctionBegin;
  PetscCall(Make(100, 100, 2, 3, PETSC_FALSE, &A));
  PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatMatMult(A, A, MAT_REUSE_MATRIX, PETSC_DEFAULT, &C));
  PetscCall(MatDestroy(&C));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char      only[64] = "";
  PetscBool lost = PETSC_FALSE, alone = PETSC_FALSE, chosen;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-device", &device, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-lost", &lost, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-only", only, sizeof(only), &chosen));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-alone", &alone, NULL));
  if (lost) PetscCall(Lost());
  if (alone) PetscCall(Alone());
  for (PetscInt which = 0; which < ZOO_COUNT && !alone; which++) {
    Mat       A, R;
    PetscBool same = PETSC_TRUE;

    if (chosen) PetscCall(PetscStrcmp(only, ZooTable[which].name, &same));
    if (!same || !ZooTable[which].n) continue;
    PetscCall(TestZoo(PETSC_COMM_SELF, which, PETSC_FALSE, PETSC_FALSE, &A));
    PetscCall(TestZoo(PETSC_COMM_SELF, which, PETSC_FALSE, PETSC_TRUE, &R));
    PetscCall(Cases(A, R, ZooTable[which].name));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&R));
  }
  PetscCall(PetscFinalize());
  return 0;
}

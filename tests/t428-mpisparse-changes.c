/*
  Products of sparse matrices on several ranks are computed again and again. Between two products a factor is scaled, gets values on one rank alone, or has its diagonal block written to, and the result is scaled. Sizes, and which
  ranks have no rows, are drawn; a factor may be both factors. Beside MATAIJ: entries, pattern, and a product with the result.

  //TEST name="default" nsize={} gpu=0 args="-gpucsr_debug_standin {} -mat_gpucsr_backend cuda -mat_gpucsr_product_least 0 -programs 24 -malloc_dump" loop="1 2 3 5"
  //TEST name="late" nsize=3 gpu=0 args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_product_least 0 -programs 24 -gpucsr_debug_defer {}" loop="0 5"
  //TEST name="gpu" nsize=2 gpu=1 args="-mat_gpucsr_product_least 0 -programs 60"
*/
static char help[] = "Tests products of sparse matrices on several ranks, whose factors change.\n";

#include "testing.h"
#include "sparse.h"
#include <petsc/private/petscimpl.h>

/* Two entries of a row near its number, and two anywhere */
static PetscErrorCode Make(PetscBool ref, PetscInt m, PetscInt n, PetscInt seed, Mat *A)
{
  char     type[64];
  PetscInt rs, re, N;

  PetscFunctionBegin;
  PetscCall(TestType(type, sizeof(type)));
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, m, n, PETSC_DETERMINE, PETSC_DETERMINE));
  PetscCall(MatSetType(*A, ref ? MATAIJ : type));
  PetscCall(MatSeqAIJSetPreallocation(*A, 4, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 4, NULL, 4, NULL));
  PetscCall(MatGetSize(*A, NULL, &N));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt i = rs; i < re; i++)
    for (PetscInt q = 0; q < 4; q++) PetscCall(MatSetValue(*A, i, q < 2 ? (i + q) % N : (PetscInt)(ZooHash(seed, i, q) % (uint64_t)N), ZooReal(seed + i, i, q), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Change(Mat A, PetscInt how, PetscInt step)
{
  PetscMPIInt  rank;
  PetscInt     rs, re, m, N;
  Mat          D;
  PetscScalar *a;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatGetSize(A, NULL, &N));
  if (how == 0) PetscCall(MatScale(A, 1.25));
  else if (how == 1) { /* one rank alone has new values */
    for (PetscInt i = rs; i < re && !rank; i++) PetscCall(MatSetValue(A, i, i % N, 3.5 + (PetscReal)step, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  } else { /* a block's array is written to */
    const PetscInt *i;

    PetscCall(MatMPIAIJGetSeqAIJ(A, &D, NULL, NULL));
    PetscCall(MatGetLocalSize(D, &m, NULL));
    PetscCall(MatSeqAIJGetCSRAndMemType(D, &i, NULL, NULL, NULL));
    PetscCall(MatSeqAIJGetArray(D, &a));
    for (PetscInt k = 0; k < i[m]; k++) a[k] *= 0.5;
    PetscCall(MatSeqAIJRestoreArray(D, &a));
    PetscCall(PetscObjectStateIncrease((PetscObject)A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Norm of the product of absolute values, eps of which for each term of an entry is what rounding may make of the product */
#define TERMS 30
static PetscErrorCode All(MatProductType type, Mat A, Mat B, PetscReal *all)
{
  Mat c;

  PetscFunctionBegin;
  PetscCall(Bound(type, A, B, &c));
  PetscCall(MatNorm(c, NORM_FROBENIUS, all));
  PetscCall(MatDestroy(&c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* C as R, which MATAIJ has made: entries, pattern, and the device's copy, which a product is with */
static PetscErrorCode Same(Mat C, Mat R, PetscReal all, const char where[])
{
  Mat       D;
  Vec       x[2], z[2], y;
  PetscReal norm, size = 0;
  MatInfo   info[2];

  PetscFunctionBegin;
  PetscCall(MatConvert(C, MATAIJ, MAT_INITIAL_MATRIX, &D));
  PetscCall(MatAXPY(D, -1.0, R, DIFFERENT_NONZERO_PATTERN));
  PetscCall(MatNorm(D, NORM_FROBENIUS, &norm));
  PetscCheck(norm <= TERMS * PETSC_MACHINE_EPSILON * all, PETSC_COMM_SELF, PETSC_ERR_PLIB, "products of %s differ by %g of %g", where, (double)norm, (double)all);
  PetscCall(MatGetInfo(C, MAT_GLOBAL_SUM, &info[0]));
  PetscCall(MatGetInfo(R, MAT_GLOBAL_SUM, &info[1]));
  PetscCheck(info[0].nz_used == info[1].nz_used, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the product of %s has %g entries, MATAIJ's %g", where, (double)info[0].nz_used, (double)info[1].nz_used);
  for (int k = 0; k < 2; k++) {
    PetscCall(MatCreateVecs(k ? R : C, &x[k], &z[k]));
    PetscCall(TestFill(x[k], 3, PETSC_FALSE));
    if (k) PetscCall(VecNorm(x[k], NORM_2, &size));
    PetscCall(MatMult(k ? R : C, x[k], z[k]));
    PetscCall(VecDestroy(&x[k]));
  }
  PetscCall(VecDuplicate(z[1], &y));
  PetscCall(VecCopy(z[0], y)); /* which may be of another type */
  PetscCall(VecAXPY(z[1], -1.0, y));
  PetscCall(VecDestroy(&y));
  PetscCall(VecNorm(z[1], NORM_2, &norm));
  PetscCheck(norm <= 2 * TERMS * PETSC_MACHINE_EPSILON * all * size, PETSC_COMM_SELF, PETSC_ERR_PLIB, "a product with that of %s differs by %g, norms are %g and %g", where, (double)norm, (double)all, (double)size);
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&z[k]));
  PetscCall(MatDestroy(&D));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Program(PetscInt seed)
{
  const PetscInt       kind = seed % 3;
  const MatProductType type = kind == 0 ? MATPRODUCT_AB : kind == 1 ? MATPRODUCT_AtB : MATPRODUCT_PtAP;
  const PetscBool      one  = (PetscBool)(seed / 3 % 4 == 3); /* both factors are one matrix */
  PetscMPIInt          rank, size;
  PetscInt             n[3];
  Mat                  A[2], B[2], C[2];
  PetscReal            all;
  char                 where[96];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (int k = 0; k < 3; k++) {
    n[k] = (PetscInt)(ZooHash(seed, rank, 1 + k) % 13);
    if (k == 0 && ZooHash(seed, rank, 4) % 4 == 0) n[k] = 0;
    if (rank == size - 1) n[k] = PetscMax(n[k], 2);
    if (one || (k == 1 && type == MATPRODUCT_PtAP)) n[k] = n[0];
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(Make((PetscBool)(k == 1), n[0], n[1], seed, &A[k]));
    if (one) PetscCall(PetscObjectReference((PetscObject)A[k]));
    if (one) B[k] = A[k];
    else PetscCall(Make((PetscBool)(k == 1), type == MATPRODUCT_AB ? n[1] : n[0], n[2], seed + 1, &B[k]));
    PetscCall(Product(type, A[k], B[k], MAT_INITIAL_MATRIX, &C[k]));
  }
  for (PetscInt step = 0; step < 6; step++) {
    const PetscInt how = (PetscInt)(ZooHash(seed, step, 7) % (size > 1 ? 3 : 2)), on = (PetscInt)(ZooHash(seed, step, 8) % 2);

    PetscCall(PetscSNPrintf(where, sizeof(where), "program %" PetscInt_FMT ", step %" PetscInt_FMT ", change %" PetscInt_FMT " of factor %" PetscInt_FMT, seed, step, how, on));
    for (int k = 0; k < 2 && step; k++) {
      PetscCall(Change(on ? B[k] : A[k], how, step));
      PetscCall(Product(type, A[k], B[k], MAT_REUSE_MATRIX, &C[k]));
    }
    PetscCall(All(type, A[1], B[1], &all));
    PetscCall(Same(C[0], C[1], all, where));
    for (int k = 0; k < 2 && step == 3; k++) PetscCall(MatScale(C[k], 2.0)); /* which the next product makes anew */
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(MatDestroy(&A[k]));
    PetscCall(MatDestroy(&B[k]));
    PetscCall(MatDestroy(&C[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt programs = 60, first = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-programs", &programs, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-first", &first, NULL));
  for (PetscInt seed = first; seed < first + programs; seed++) PetscCall(Program(seed));
  PetscCall(PetscFinalize());
  return 0;
}

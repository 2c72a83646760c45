//TEST name="default" args="-mat_gpucsr_format {}" loop="csr sell"
//TEST name="standin" args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda" gpu=0
//TEST name="ranks" nsize=2 args="-mat_gpucsr_format csr"
//TEST name="type" args="-mat_gpucsr_format csr -seqaij -mat_seqaij_type seqaijgpucsr"

/*
  A matrix that takes over the contents of another (MatHeaderReplace()), and a matrix converted to its own type: products use the new values, and its settings
  stay. A factor whose matrix is converted to MATAIJ, and constructors registered by a program under its own names.

    build/tests/t416-replace -dll_append build/lib/libpetscgpucsr.so -mat_gpucsr_format csr
*/
#include "testing.h"
#include <petscgpucsr.h>
#include <petsc/private/petscimpl.h>

#define N 30

static PetscErrorCode Create(PetscScalar scale, PetscBool ref, Mat *A)
{
  PetscInt  rs, re;
  PetscBool seqaij = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-seqaij", &seqaij, NULL));
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, N, N));
  PetscCall(MatSetOptionsPrefix(*A, ref ? "ref_" : NULL));
  PetscCall(MatSetType(*A, ref || seqaij ? MATAIJ : "gpucsr"));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt r = rs; r < re; r++)
    for (PetscInt k = 0; k < 4; k++) PetscCall(MatSetValue(*A, r, (r * 3 + 7 * k) % N, scale * (PetscScalar)(1 + (r + k) % 5), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A is scale times what Create() makes */
static PetscErrorCode Check(Mat A, PetscScalar scale, const char what[])
{
  Mat R;

  PetscFunctionBegin;
  PetscCall(Create(scale, PETSC_TRUE, &R));
  PetscCall(TestProducts(A, R, PETSC_FALSE, what));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Multiply(Mat A)
{
  Vec x[2];

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x[0], &x[1]));
  PetscCall(VecSet(x[0], 1.0));
  PetscCall(MatMult(A, x[0], x[1]));
  PetscCall(MatMultTranspose(A, x[1], x[0]));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&x[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values of one row alone, which is not where a few values are looked at before each product */
static PetscErrorCode ChangeRow(Mat A)
{
  const PetscInt r = 1;
  PetscInt       rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  if (r >= rs && r < re) PetscCall(MatSetValue(A, r, (r * 3 + 7) % N, 77.0, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Both matrices had products. The replaced matrix has changed since; in some cases the count of the remaining matrix equals the other's at its product */
static PetscErrorCode Replace(PetscInt changes, PetscInt others)
{
  Mat  A, B, R;
  char what[128];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(what, sizeof(what), "replaced after %" PetscInt_FMT " and %" PetscInt_FMT " changes", changes, others));
  PetscCall(Create(1.0, PETSC_FALSE, &A));
  PetscCall(Create(3.0, PETSC_FALSE, &B));
  PetscCall(Create(3.0, PETSC_TRUE, &R));
  PetscCall(Multiply(A));
  for (PetscInt k = 0; k < changes; k++) PetscCall(PetscObjectStateIncrease((PetscObject)A));
  for (PetscInt k = 0; k < others; k++) PetscCall(PetscObjectStateIncrease((PetscObject)B));
  PetscCall(Multiply(B));
  PetscCall(ChangeRow(B));
  PetscCall(ChangeRow(R));
  PetscCall(MatHeaderReplace(A, &B));
  PetscCall(TestProducts(A, R, PETSC_FALSE, what));
  PetscCall(MatScale(A, 2.0));
  PetscCall(MatScale(R, 2.0));
  PetscCall(TestProducts(A, R, PETSC_FALSE, what));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* To the type's root name, and to its own: the format that was set stays, in place nothing changes at all */
static PetscErrorCode Convert(const char type[], MatReuse reuse)
{
  Mat           A, B;
  MatGPUCSRInfo info;
  const char   *prefix;
  PetscBool     same;
  char          what[128];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(what, sizeof(what), "converted to %s", type));
  PetscCall(Create(1.0, PETSC_FALSE, &A));
  PetscCall(MatSetOptionsPrefix(A, "mine_"));
  PetscCall(MatGPUCSRSetFormat(A, "coo"));
  B = A;
  if (reuse == MAT_REUSE_MATRIX) PetscCall(Create(5.0, PETSC_FALSE, &B));
  if (reuse == MAT_REUSE_MATRIX) PetscCall(MatGPUCSRSetFormat(B, "coo"));
  PetscCall(MatConvert(A, type, reuse, &B));
  if (reuse == MAT_INPLACE_MATRIX) {
    PetscCall(MatGetOptionsPrefix(B, &prefix));
    PetscCall(PetscStrcmp(prefix, "mine_", &same));
    PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: prefix %s", what, prefix ? prefix : "lost");
  }
  PetscCall(Check(B, 1.0, what));
  PetscCall(MatGPUCSRGetInfo(B, &info));
  PetscCall(PetscStrcmp(info.format, "coo", &same));
  PetscCheck(same, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: format %s, coo was asked for", what, info.format);
  if (B != A) PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A factor of the device, and then a matrix that has been converted to MATAIJ and changed: the factor is of the new values */
static PetscErrorCode Refactor(void)
{
  Mat       A, R;
  KSP       ksp;
  PC        pc;
  Vec       x, b, r;
  PetscReal norm, bound;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_SELF, 12, 0.5, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSet(b, 1));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetType(ksp, KSPPREONLY));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCLU));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(MatConvert(A, MATSEQAIJ, MAT_INPLACE_MATRIX, &A));
  PetscCall(MatShift(A, 1));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &R));
  PetscCall(MatResidual(R, b, x, r));
  PetscCall(MatNorm(R, NORM_INFINITY, &bound));
  PetscCall(VecNorm(x, NORM_INFINITY, &norm));
  bound *= norm;
  PetscCall(VecNorm(r, NORM_INFINITY, &norm));
  PetscCheck(norm <= TEST_C * PETSC_MACHINE_EPSILON * (bound + 1), PETSC_COMM_SELF, PETSC_ERR_PLIB, "After a conversion to MATAIJ the residual is %g", (double)norm);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A program may register a constructor that it finds under a name of its own */
static PetscErrorCode OwnName(const char type[])
{
  PC   pc;
  char name[32];
  PetscErrorCode (*create)(PC) = NULL;

  PetscFunctionBegin;
  PetscCall(PCInitializePackage());
  PetscCall(PetscFunctionListFind(PCList, type, &create));
  PetscCall(PetscSNPrintf(name, sizeof(name), "own_%s", type));
  PetscCall(PCRegister(name, create));
  PetscCall(PCCreate(PETSC_COMM_SELF, &pc));
  PetscCall(PCSetType(pc, name));
  PetscCall(PCDestroy(&pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const MatReuse reuse[] = {MAT_INITIAL_MATRIX, MAT_REUSE_MATRIX, MAT_INPLACE_MATRIX};
  PetscMPIInt           size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(TestRequireReal(64));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (PetscInt k = 0; k < 6; k++)
    for (PetscInt l = 0; l < 6; l++) PetscCall(Replace(k, l));
  for (int k = 0; k < 3; k++) {
    PetscCall(Convert("gpucsr", reuse[k]));
    PetscCall(Convert("aijgpucsr", reuse[k]));
    PetscCall(Convert(size > 1 ? "mpiaijgpucsr" : "seqaijgpucsr", reuse[k]));
  }
  PetscCall(Refactor());
  PetscCall(OwnName(PCLU));
  PetscCall(OwnName(PCBJACOBI));
  PetscCall(OwnName(PCGAMG));
  PetscCall(PetscFinalize());
  return 0;
}

//TEST name="transpose" args="-mat_gpucsr_format csr -mat_gpucsr_transpose_format stencil"
//TEST name="auto" args="-mat_gpucsr_precision auto -edge 400"
//TEST name="default" args="-edge {}" loop="40 700" gpu=1
//TEST name="ranks" nsize=3 args="-mat_gpucsr_precision auto -edge 300"
//TEST name="vecgpu" nsize=2 args="-vec_type gpu -vec_gpu_separate -mat_gpucsr_precision auto"
//TEST name="refused" nsize=3 args="-mat_gpucsr_format stencil -refused 1"
//TEST name="refused_transpose" nsize=2 args="-mat_gpucsr_format csr -mat_gpucsr_transpose_format stencil -refused 0 -backward"
//TEST name="malloc" args="-mat_gpucsr_format stencil -malloc_debug -malloc_dump"

/*
  A matrix with constant coefficients on a regular grid changes between products. As long as equal rows stay equal, the resident copy is refreshed with new values. Otherwise
  the copy is rebuilt in another format, unless the option asks for stencils. -refused: the option asks for stencils, and on one rank equal rows become
  unequal. The product is then an error on all ranks, and no rank waits.

    build/tests/t412-stencil [-edge k] [-refused RANK [-backward]] [-mat_type gpucsr] [-mat_gpucsr_...]      (linked with the library, for MatGPUCSRGetInfo())
*/
#include "testing.h"
#include <petscgpucsr.h>

static PetscInt edge = 40; /* rows enough that not all of them are in the inspector's sample */

static PetscErrorCode Fill(Mat A, PetscScalar diagonal, PetscScalar neighbour)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    const PetscInt x = r % edge, y = r / edge, there[] = {y > 0 ? r - edge : -1, x > 0 ? r - 1 : -1, x + 1 < edge ? r + 1 : -1, y + 1 < edge ? r + edge : -1};

    PetscCall(MatSetValue(A, r, r, diagonal, INSERT_VALUES));
    for (int k = 0; k < 4; k++) PetscCall(MatSetValue(A, r, there[k], neighbour * (k + 1), INSERT_VALUES)); /* a column of -1 is passed over */
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fill0(Mat A)
{
  return Fill(A, 8.0, -1.0);
}

static PetscErrorCode Scale(Mat A)
{
  return MatScale(A, -0.5);
}

static PetscErrorCode Shift(Mat A)
{
  return MatShift(A, 3.0);
}

static PetscErrorCode DiagonalSetAlike(Mat A)
{
  Vec d;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, NULL, &d));
  PetscCall(VecSet(d, 7.0));
  PetscCall(MatDiagonalSet(A, d, INSERT_VALUES));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A boundary condition: another row, alike where it was */
static PetscErrorCode ZeroRow(Mat A)
{
  const PetscInt row = 3 * edge + 5;
  PetscInt       rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_TRUE));
  PetscCall(MatZeroRows(A, row >= rs && row < re ? 1 : 0, &row, 1.0, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DiagonalSetUnlike(Mat A)
{
  Vec      d;
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, NULL, &d));
  PetscCall(VecGetOwnershipRange(d, &rs, &re));
  for (PetscInt r = rs; r < re; r++) PetscCall(VecSetValue(d, r, 5.0 + (PetscReal)r / 4096, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(d));
  PetscCall(VecAssemblyEnd(d));
  PetscCall(MatDiagonalSet(A, d, INSERT_VALUES));
  PetscCall(VecDestroy(&d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In this order. anew: on each copy of a matrix in one block, the one resident copy in the format is built, not refreshed */
static const struct {
  const char *name;
  PetscErrorCode (*change)(Mat);
  PetscBool anew, unlike;
} changes[] = {
  {"MatScale",                       Scale,             PETSC_FALSE, PETSC_FALSE},
  {"MatShift",                       Shift,             PETSC_FALSE, PETSC_FALSE},
  {"MatDiagonalSet, a constant",     DiagonalSetAlike,  PETSC_FALSE, PETSC_FALSE},
  {"MatZeroRows",                    ZeroRow,           PETSC_TRUE,  PETSC_FALSE},
  {"MatScale, after that",           Scale,             PETSC_FALSE, PETSC_FALSE},
  {"MatSetValues, rows alike again", Fill0,             PETSC_FALSE, PETSC_FALSE},
  {"MatDiagonalSet, different rows", DiagonalSetUnlike, PETSC_TRUE,  PETSC_TRUE },
};

/* Rows of one rank different from each other; then all alike again */
static PetscErrorCode Refused(Mat A, PetscInt which, PetscBool backward)
{
  Vec            x, y;
  PetscInt       rs, re;
  PetscMPIInt    rank;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; rank == which && r < re; r++) PetscCall(MatSetValue(A, r, r, 5.0 + (PetscReal)r / 4096, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  for (int k = 0; k < 2; k++) { /* and it stays one */
    PetscCall(MatCreateVecs(A, &x, &y));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = backward ? MatMultTranspose(A, x, y) : MatMult(A, x, y);
    PetscCall(PetscPopErrorHandler());
    PetscCheck(ierr, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Rank %d met no error", (int)rank);
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt      n, refused = -1;
  Mat           A, R;
  MatGPUCSRInfo before, after;
  PetscMPIInt   size;
  char          format[32] = "auto", transpose[32] = "auto";
  PetscBool     forward, backward, transpose_refused = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-edge", &edge, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-refused", &refused, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-backward", &transpose_refused, NULL));
  if (refused >= 0) edge = 100;
  n = edge * edge;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_format", format, sizeof(format), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_gpucsr_transpose_format", transpose, sizeof(transpose), NULL));
  PetscCall(PetscStrcmp(format, "stencil", &forward));
  PetscCall(PetscStrcmp(transpose, "stencil", &backward));
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, n, n, PETSC_FALSE, &A));
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, n, n, PETSC_TRUE, &R));
  PetscCall(MatSetUp(A));
  PetscCall(MatSetUp(R));
  PetscCall(Fill0(A));
  PetscCall(Fill0(R));
  PetscCall(TestProducts(A, R, PETSC_FALSE, "as it was built"));
  PetscCall(TestProducts(A, R, PETSC_TRUE, "as it was built, times NaN"));
  if (refused >= 0) {
    PetscCall(Refused(A, refused, transpose_refused));
    PetscCall(Fill0(A));
  }
  for (size_t k = 0; k < sizeof(changes) / sizeof(changes[0]); k++) {
    if (changes[k].unlike && (forward || backward)) continue; /* asked for by name, it would be an error */
    PetscCall(MatGPUCSRGetInfo(A, &before));
    PetscCall((*changes[k].change)(A));
    PetscCall((*changes[k].change)(R));
    PetscCall(TestProducts(A, R, PETSC_FALSE, changes[k].name));
    PetscCall(MatGPUCSRGetInfo(A, &after));
    if (size == 1 && forward) PetscCheck(after.builds == before.builds + (PetscInt)changes[k].anew, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " builds", changes[k].name, after.builds - before.builds);
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(PetscFinalize());
  return 0;
}

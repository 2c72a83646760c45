/*
  PCGPUAMG of several ranks between its set-up and an application: the program fills the matrix again, moves it to another device, or converts it. Later values of the pattern have many weak entries.

  //TEST name="host" nsize={} loop="2 3" args="-mat_gpucsr_format csr"
  //TEST name="standin" nsize={} loop="2 3" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin {} -mat_gpucsr_halo peer"
  //TEST name="staged" nsize=2 gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 2 -mat_gpucsr_halo staged -gpucsr_debug_defer 5"
*/
static char help[] = "Tests PCGPUAMG whose matrix changes between set-up and application.\n";

#include "testing.h"
#include <petscgpucsr.h>

#define SIDE 14

static PetscBool Coupled(PetscInt x, PetscInt dx)
{
  return (PetscBool)(x + dx >= 0 && x + dx < SIDE);
}

/* A grid of points; couplings along x are 1, others `weak` */
static PetscErrorCode Fill(Mat A, PetscReal weak)
{
  PetscInt first, end;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  for (PetscInt v = first; v < end; v++) {
    const PetscInt at[3] = {v % SIDE, v / SIDE % SIDE, v / (SIDE * SIDE)}, step[3] = {1, SIDE, SIDE * SIDE};
    PetscScalar    diagonal = 0.01;

    for (int k = 0; k < 6; k++) {
      const PetscInt    d = k % 2 ? 1 : -1, u = v + d * step[k / 2];
      const PetscScalar off = k / 2 ? -weak : -1.0;

      diagonal -= off;
      if (Coupled(at[k / 2], d)) PetscCall(MatSetValues(A, 1, &v, 1, &u, &off, INSERT_VALUES));
    }
    PetscCall(MatSetValues(A, 1, &v, 1, &v, &diagonal, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Matrix(PetscReal weak, Mat *A)
{
  const PetscInt n = SIDE * SIDE * SIDE;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, n, n, PETSC_FALSE, A));
  PetscCall(MatMPIAIJSetPreallocation(*A, 7, NULL, 6, NULL));
  PetscCall(Fill(*A, weak));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Begin(PetscReal weak, Mat *A, PC *pc)
{
  PetscFunctionBegin;
  PetscCall(Matrix(weak, A));
  PetscCall(PCCreate(PETSC_COMM_WORLD, pc));
  PetscCall(PCSetType(*pc, PCGPUAMG));
  PetscCall(PCSetOperators(*pc, *A, *A));
  PetscCall(PCSetFromOptions(*pc));
  PetscCall(PCSetUp(*pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode End(Mat *A, PC *pc)
{
  PetscFunctionBegin;
  PetscCall(PCDestroy(pc));
  PetscCall(MatDestroy(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Apply(PC pc, Vec *x)
{
  Mat A;
  Vec b;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(MatCreateVecs(A, x, &b));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(PCApply(pc, b, *x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Same(PC pc, PC other, const char where[])
{
  Vec       x, y;
  PetscReal difference, norm;

  PetscFunctionBegin;
  PetscCall(Apply(pc, &x));
  PetscCall(Apply(other, &y));
  PetscCall(VecNorm(x, NORM_2, &norm));
  PetscCall(VecAXPY(x, -1.0, y));
  PetscCall(VecNorm(x, NORM_2, &difference));
  PetscCheck(difference <= 1e-12 * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: applications differ by %g", where, (double)(difference / norm));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values with many weak entries take a new hierarchy, which drops them */
static PetscErrorCode Weak(void)
{
  Mat A, B;
  PC  pc, other;

  PetscFunctionBegin;
  PetscCall(Begin(1.0, &A, &pc));
  PetscCall(Begin(1e-3, &B, &other));
  PetscCall(Fill(A, 1e-3));
  PetscCall(PCSetOperators(pc, A, A));
  PetscCall(PCSetUp(pc));
  PetscCall(Same(pc, other, "weak entries"));
  PetscCall(End(&A, &pc));
  PetscCall(End(&B, &other));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix that is allocated and filled again has other blocks. The preconditioner stays, and works with the new values on its finest level */
static PetscErrorCode Again(void)
{
  Mat A, B, C;
  PC  pc, other;

  PetscFunctionBegin;
  PetscCall(Begin(1.0, &A, &pc));
  PetscCall(Begin(1.0, &B, &other));
  PetscCall(PCSetReusePreconditioner(pc, PETSC_TRUE));
  for (int pass = 0; pass < 3; pass++) {
    if (pass % 2) {
      PetscCall(Matrix(1.0, &C));
      PetscCall(MatHeaderReplace(A, &C));
    } else {
      PetscCall(MatMPIAIJSetPreallocation(A, 7, NULL, 6, NULL));
      PetscCall(Fill(A, 1.0));
    }
    PetscCall(Same(pc, other, "a matrix allocated again"));
  }
  PetscCall(End(&A, &pc));
  PetscCall(End(&B, &other));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix whose levels must be made again, on another device, and cannot: its new values are no numbers, and applications give none */
static PetscErrorCode Moved(void)
{
  PetscInt  first;
  PetscReal norm;
  Mat       A;
  PC        pc;
  Vec       x;

  PetscFunctionBegin;
  PetscCall(Begin(1.0, &A, &pc));
  PetscCall(PCSetReusePreconditioner(pc, PETSC_TRUE));
  PetscCall(MatGPUCSRSetFormat(A, "csr"));
  PetscCall(MatGPUCSRSetBackend(A, MAT_GPUCSR_BACKEND_HOST));
  PetscCall(MatGetOwnershipRange(A, &first, NULL));
  if (!first) PetscCall(MatSetValue(A, 0, 0, NAN, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(Apply(pc, &x));
  PetscCall(VecNorm(x, NORM_2, &norm));
  PetscCheck(PetscIsInfOrNanReal(norm), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A matrix with NaN: a result of norm %g", (double)norm);
  PetscCall(VecDestroy(&x));
  PetscCall(End(&A, &pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The view of a PC whose matrix has another type by now, and an error of each application until there are levels again */
static PetscErrorCode Converted(void)
{
  PetscErrorCode ierr[2];
  PetscViewer    viewer;
  Mat            A, B;
  PC             pc, other;
  Vec            b, x;

  PetscFunctionBegin;
  PetscCall(Begin(1.0, &A, &pc));
  PetscCall(Begin(1.0, &B, &other));
  PetscCall(PCSetReusePreconditioner(pc, PETSC_TRUE));
  PetscCall(MatCreateVecs(B, &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(MatConvert(A, MATAIJ, MAT_INPLACE_MATRIX, &A));
  PetscCall(PetscViewerASCIIOpen(PETSC_COMM_WORLD, "/dev/null", &viewer));
  PetscCall(PCView(pc, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  for (int k = 0; k < 2; k++) ierr[k] = PCApply(pc, b, x);
  PetscCall(PetscPopErrorHandler());
  PetscCheck(ierr[0] == PETSC_ERR_ARG_WRONGSTATE && ierr[1] == PETSC_ERR_ARG_WRONGSTATE, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A matrix of another type: errors %d and %d", (int)ierr[0], (int)ierr[1]);
  PetscCall(MatConvert(A, MATGPUCSR, MAT_INPLACE_MATRIX, &A));
  PetscCall(Same(pc, other, "a matrix converted there and back"));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(End(&A, &pc));
  PetscCall(End(&B, &other));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const limits[][2] = {
    {"-pc_gpuamg_coarse_eq_limit",  "50"},
    {"-pc_gpuamg_gather_limit",     "60"},
    {"-pc_gpuamg_process_eq_limit", "10"}
  };
  char what[16] = "";

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-what", what, sizeof(what), NULL));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(limits); k++) PetscCall(PetscOptionsSetValue(NULL, limits[k][0], limits[k][1]));
  if (!what[0] || what[0] == 'w') PetscCall(Weak());
  if (!what[0] || what[0] == 'a') PetscCall(Again());
  if (!what[0] || what[0] == 'c') PetscCall(Converted());
  if (!what[0] || what[0] == 'm') PetscCall(Moved());
  PetscCall(PetscFinalize());
  return 0;
}

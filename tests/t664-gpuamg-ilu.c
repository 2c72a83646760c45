/*
  ILU(0) smoothers of PCGPUAMG. The cycle is compared with PETSc's cycle of the same hierarchy, which PCGAMG has on one rank, with PCILU; PCGAMG's cycle on the device too. Iterations on
  an anisotropic problem beside Jacobi's; several vectors; zero pivots and rows without a diagonal entry.

  //TEST name="host" args="-mat_gpucsr_format csr"
  //TEST name="auto" gpu=1
  //TEST name="vectors" args="-mat_gpucsr_format csr -vec_type gpu -vec_gpu_separate"
  //TEST name="standin" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -device"
  //TEST name="late" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 3 -device"
*/
static char help[] = "Tests ILU smoothers of PCGPUAMG.\n";

#include "testing.h"
#include <petscgpucsr.h>
#include "t660-gpuamg/problems.h"

static PetscBool report = PETSC_FALSE, device = PETSC_FALSE;

/* Option and value are those of the PC's prefix, in pairs up to a NULL */
static PetscErrorCode Solver(Mat A, const char type[], const char pctype[], const char *const options[], KSP *ksp, PC *pc)
{
  PetscReal all = -1;

  PetscFunctionBegin;
  for (int k = 0; options[k]; k += 2) PetscCall(PetscOptionsSetValue(NULL, options[k], options[k + 1]));
  PetscCall(KSPCreate(PETSC_COMM_SELF, ksp));
  PetscCall(KSPSetOptionsPrefix(*ksp, "our_"));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, type));
  PetscCall(KSPSetTolerances(*ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 500));
  PetscCall(KSPGetPC(*ksp, pc));
  PetscCall(PCSetType(*pc, pctype));
  PetscCall(PCGAMGSetCoarseEqLim(*pc, 50)); /* several levels, the same for both types */
  PetscCall(PCGAMGSetAggressiveLevels(*pc, 0));
  PetscCall(PCGAMGSetThreshold(*pc, &all, 1));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscCall(KSPSetUp(*ksp));
  for (int k = 0; options[k]; k += 2) PetscCall(PetscOptionsClearValue(NULL, options[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Applied(PC pc, Vec *y)
{
  Mat A;
  Vec b;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(MatCreateVecs(A, y, &b));
  PetscCall(TestFill(b, 7, PETSC_FALSE));
  PetscCall(PCApply(pc, b, *y));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- beside PETSc's cycle ---- */

/* Condition numbers of triangles are not known here. Two orders of sums differ by rounding; other numbers, other steps or another order of steps by much more */
#define NEAR 1e-13

static PetscErrorCode Near(PC pc, Vec ref, const char how[], const char where[])
{
  Vec       y;
  PetscReal norm, difference;

  PetscFunctionBegin;
  PetscCall(Applied(pc, &y));
  PetscCall(VecAXPY(y, -1.0, ref));
  PetscCall(VecNorm(y, NORM_2, &difference));
  PetscCall(VecNorm(ref, NORM_2, &norm));
  if (report) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, %s: %g\n", where, how, (double)(difference / norm)));
  PetscCheck(difference <= NEAR * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, %s: differs from PETSc's cycle by %g", where, how, (double)(difference / norm));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Cycles(Mat A, const char where[])
{
  static const char *const smoothers[][4] = {
    {"-our_mg_levels_ksp_type", "richardson", "-our_mg_levels_ksp_richardson_scale",      "0.9"    },
    {"-our_mg_levels_ksp_type", "chebyshev",  "-our_mg_levels_ksp_chebyshev_eigenvalues", "0.2,1.3"}
  };

  PetscFunctionBegin;
  for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(smoothers); s++)
    for (int w = 0; w < 2; w++) {
      const char *const *o      = smoothers[s];
      const char *const  ours[] = {o[0], o[1], o[2], o[3], "-our_mg_levels_pc_type", "ilu", "-our_pc_gpuamg_cycles", w ? "2" : "1", NULL};
      const char *const  gamg[] = {o[0], o[1], o[2], o[3], "-our_mg_levels_pc_type", "ilu", "-our_pc_mg_cycle_type", w ? "w" : "v", NULL};
      const char *const  ref[]  = {o[0], o[1], o[2], o[3], "-our_mg_levels_pc_type", "ilu", "-our_pc_mg_cycle_type", w ? "w" : "v", "-our_pc_mg_gpucsr", "false", NULL};
      KSP                ksp, smoother;
      PC                 pc;
      Vec                y;
      PetscInt           its;

      PetscCall(Solver(A, KSPCG, PCGAMG, ref, &ksp, &pc));
      PetscCall(Applied(pc, &y));
      PetscCall(KSPDestroy(&ksp));
      PetscCall(Solver(A, KSPCG, PCGPUAMG, ours, &ksp, &pc));
      PetscCall(Near(pc, y, o[1], where));
      PetscCall(KSPDestroy(&ksp));
      PetscCall(Solver(A, KSPCG, PCGAMG, gamg, &ksp, &pc));
      PetscCall(Near(pc, y, o[1], where));
      if (device) {
        PetscCall(PCMGGetSmoother(pc, 1, &smoother));
        PetscCall(KSPGetTotalIterations(smoother, &its));
        PetscCheck(!its, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, %s: PCGAMG's cycle is not the device's", where, o[1]);
      }
      PetscCall(KSPDestroy(&ksp));
      PetscCall(VecDestroy(&y));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- iterations ---- */

static PetscErrorCode Iterations(Mat A, const char type[], const char *const options[], PetscInt *its)
{
  KSP                ksp;
  PC                 pc;
  Vec                b, x;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(Solver(A, type, PCGPUAMG, options, &ksp, &pc));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCheck(reason > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s %s: %s", type, options[1], KSPConvergedReasons[reason]);
  if (report) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s %s %s: %" PetscInt_FMT " iterations\n", type, options[1], options[3], *its));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Aggregates across weak connections: the smoother must do the work. It takes at most 0.6 of Jacobi's iterations, with each solver and in floats */
static PetscErrorCode Anisotropic(const Grid *g)
{
  static const char *const types[] = {KSPCG, KSPGPUCG, KSPGPUGMRES, KSPGPUBCGS}, *const precisions[] = {"double", "single", "auto"}, *const methods[] = {"chebyshev", "richardson"};
  Mat      A = NULL;
  PetscInt jacobi, its;

  PetscFunctionBegin;
  PetscCall(GridCreate(g, 0, PETSC_FALSE, &A));
  for (int t = 0; t < 4; t++) {
    const char *const plain[] = {"-our_mg_levels_pc_type", "jacobi", "-our_mg_levels_ksp_type", "chebyshev", NULL};

    PetscCall(Iterations(A, types[t], plain, &jacobi));
    for (int k = 0; k < 6; k++) {
      const char *const ilu[] = {"-our_mg_levels_pc_type", "ilu", "-our_mg_levels_ksp_type", methods[k / 3], "-our_pc_gpuamg_precision", precisions[k % 3], NULL};

      PetscCall(Iterations(A, types[t], ilu, &its));
      PetscCheck(10 * its <= 6 * jacobi, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, %s, %s: %" PetscInt_FMT " iterations with ILU, with Jacobi %" PetscInt_FMT, types[t], methods[k / 3], precisions[k % 3], its, jacobi);
    }
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- several vectors ---- */

static PetscErrorCode Several(const Grid *g)
{
  static const char *const ilu[] = {"-our_mg_levels_pc_type", "ilu", NULL};
  Mat                      A     = NULL, B, X;
  KSP                      ksp;
  PC                       pc;
  PetscInt                 n;

  PetscFunctionBegin;
  PetscCall(GridCreate(g, 0, PETSC_FALSE, &A));
  PetscCall(Solver(A, KSPGMRES, PCGPUAMG, ilu, &ksp, &pc));
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, n, 3, NULL, &B));
  PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
  for (PetscInt c = 0; c < 3; c++) {
    Vec b;

    PetscCall(MatDenseGetColumnVecWrite(B, c, &b));
    PetscCall(TestFill(b, 7 + c, PETSC_FALSE));
    PetscCall(MatDenseRestoreColumnVecWrite(B, c, &b));
  }
  PetscCall(PCMatApply(pc, B, X));
  for (PetscInt c = 0; c < 3; c++) {
    Vec       b, x, y;
    PetscReal norm;

    PetscCall(MatDenseGetColumnVecRead(B, c, &b));
    PetscCall(MatDenseGetColumnVecRead(X, c, &x));
    PetscCall(VecDuplicate(x, &y));
    PetscCall(PCApply(pc, b, y));
    PetscCall(VecAXPY(y, -1.0, x));
    PetscCall(VecNorm(y, NORM_INFINITY, &norm));
    PetscCheck(norm == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "PCMatApply() and PCApply() differ by %g", (double)norm);
    PetscCall(VecDestroy(&y));
    PetscCall(MatDenseRestoreColumnVecRead(X, c, &x));
    PetscCall(MatDenseRestoreColumnVecRead(B, c, &b));
  }
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&X));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- bad pivots ---- */

static PetscErrorCode Failed(KSP ksp, PC pc, PetscBool failed, const char where[])
{
  Mat                A;
  Vec                b, x;
  KSPConvergedReason reason;
  PCFailedReason     why;

  PetscFunctionBegin;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(PCGetFailedReason(pc, &why));
  if (failed) PetscCheck(reason == KSP_DIVERGED_PC_FAILED && why == PC_FACTOR_NUMERIC_ZEROPIVOT, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %s, %s", where, KSPConvergedReasons[reason], PCFailedReasons[why]);
  else PetscCheck(reason > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %s after the matrix is mended", where, KSPConvergedReasons[reason]);
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The second row is the first, to the left of its diagonal entry; or it has no diagonal entry. Mended values converge */
static PetscErrorCode Pivots(const Grid *g, const char type[])
{
  static const char *const ilu[]  = {"-our_mg_levels_pc_type", "ilu", NULL};
  const PetscInt           two[2] = {0, 1}, last = g->n[0] * g->n[1] * g->n[2] - 1;
  const PetscScalar        ones[4] = {1.0, 1.0, 1.0, 1.0};
  Mat                      A       = NULL;
  KSP                      ksp;
  PC                       pc;

  PetscFunctionBegin;
  PetscCall(GridCreate(g, 0, PETSC_FALSE, &A));
  PetscCall(MatSetValues(A, 2, two, 2, two, ones, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(Solver(A, type, PCGPUAMG, ilu, &ksp, &pc));
  PetscCall(Failed(ksp, pc, PETSC_TRUE, "a zero pivot"));
  for (PetscInt pass = 0; pass < 2; pass++) {
    PetscCall(GridCreate(g, pass, PETSC_FALSE, &A));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(Failed(ksp, pc, PETSC_FALSE, "a zero pivot"));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));

  PetscCall(TestMatCreate(PETSC_COMM_SELF, last + 1, last + 1, PETSC_FALSE, &A));
  PetscCall(MatSeqAIJSetPreallocation(A, 3, NULL));
  for (PetscInt i = 0; i < last; i++) {
    PetscCall(MatSetValue(A, i, i, 2.0, INSERT_VALUES));
    if (i) PetscCall(MatSetValue(A, i, i - 1, -1.0, INSERT_VALUES));
    if (i + 1 < last) PetscCall(MatSetValue(A, i, i + 1, -1.0, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(Solver(A, type, PCGPUAMG, ilu, &ksp, &pc));
  PetscCall(Failed(ksp, pc, PETSC_TRUE, "a row of no entries"));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const Grid grids[] = {
    {"contrast e^3", {9, 8, 9},   3, {1, 1, 1},    0,   NULL, NULL, {0}},
    {"convection",   {8, 8, 7},   1, {1, 1, 1},    0.7, NULL, NULL, {0}},
    {"anisotropy",   {50, 50, 1}, 0, {1, 0.01, 0}, 0,   NULL, NULL, {0}}
  };
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-report", &report, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-device", &device, NULL));
  for (int k = 0; k < 2; k++) {
    A = NULL;
    PetscCall(GridCreate(&grids[k], 0, PETSC_FALSE, &A));
    PetscCall(Cycles(A, grids[k].name));
    PetscCall(MatDestroy(&A));
    PetscCall(Several(&grids[k]));
    PetscCall(Pivots(&grids[k], k ? KSPGPUGMRES : KSPCG));
  }
  PetscCall(ElasticCreate(12, 0.3, PETSC_TRUE, PETSC_FALSE, &A));
  PetscCall(Cycles(A, "elasticity"));
  PetscCall(MatDestroy(&A));
  PetscCall(Anisotropic(&grids[2]));
  PetscCall(PetscFinalize());
  return 0;
}

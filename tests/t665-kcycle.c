/*
  K-cycles of PCGPUAMG: an application beside dense arithmetic of the same hierarchy; iterations beside V- and W-cycles where V-cycles degrade; zero and indefinite problems; one level; the same bits;
  several columns; no transpose.

  //TEST name="host" args="-mat_gpucsr_format csr"
  //TEST name="auto" gpu=1
  //TEST name="standin" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1"
  //TEST name="late" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 3"
  //TEST name="ranks" nsize={} loop="2 3 4" args="-mat_gpucsr_format csr"
  //TEST name="ranks-standin" nsize=2 gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 2"
  //TEST name="unflexible" nsize={} loop="1 2" args="-mat_gpucsr_format csr -unflexible" warns="K-cycles are not linear, and KSP type gmres may report convergence"
  //TEST name="transpose" nsize={} loop="1 2" args="-mat_gpucsr_format csr -transpose" fails="no transposed application with -pc_gpuamg_cycles k"
*/
static char help[] = "Tests K-cycles of PCGPUAMG.\n";

#include "testing.h"
#include <petscgpucsr.h>

static PetscBool report = PETSC_FALSE;

/* Plain aggregation over several levels, also on several ranks. cycles NULL: a PCGAMG */
static PetscErrorCode Solver(Mat A, const char type[], const char cycles[], PetscInt limit, PetscInt smooths, KSP *ksp)
{
  PetscReal none = -1;
  PC        pc;

  PetscFunctionBegin;
  if (cycles) PetscCall(PetscOptionsSetValue(NULL, "-k_pc_gpuamg_cycles", cycles));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), ksp));
  PetscCall(KSPSetOptionsPrefix(*ksp, cycles ? "k_" : "reference_"));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, type));
  PetscCall(KSPSetTolerances(*ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 500));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, cycles ? PCGPUAMG : PCGAMG));
  PetscCall(PCGAMGSetNSmooths(pc, smooths));
  PetscCall(PCGAMGSetAggressiveLevels(pc, 0));
  PetscCall(PCGAMGSetThreshold(pc, &none, 1));
  PetscCall(PCGAMGSetCoarseEqLim(pc, limit));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscCall(KSPSetUp(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Application(KSP ksp, Vec b, Vec *x)
{
  PC pc;

  PetscFunctionBegin;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(VecDuplicate(b, x));
  PetscCall(PCApply(pc, b, *x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the reference: dense matrices of PCGAMG's levels ---- */

#define LEVELS 8

typedef struct {
  PetscInt  levels;
  PetscBool residuals, linear; /* the method of generalized conjugate residuals; V-cycles */
  Mat       A[LEVELS], P[LEVELS];
  KSP       solver[LEVELS]; /* smoothers, and the coarse solver */
} Dense;

static PetscErrorCode DenseCreate(PC pc, PetscBool residuals, Dense *d)
{
  PetscFunctionBegin;
  d->residuals = residuals;
  d->linear    = PETSC_FALSE;
  PetscCall(PCMGGetLevels(pc, &d->levels));
  PetscCheck(d->levels > 2 && d->levels <= LEVELS, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " levels", d->levels);
  for (PetscInt l = 0; l < d->levels; l++) {
    KSP ksp;
    PC  inner;
    Mat A, P;

    PetscCall(PCMGGetSmoother(pc, l, &ksp));
    PetscCall(KSPGetOperators(ksp, &A, NULL));
    PetscCall(MatConvert(A, MATSEQAIJ, MAT_INITIAL_MATRIX, &P));
    PetscCall(MatConvert(P, MATSEQDENSE, MAT_INITIAL_MATRIX, &d->A[l]));
    PetscCall(MatDestroy(&P));
    PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
    PetscCall(KSPSetOperators(ksp, d->A[l], d->A[l]));
    PetscCall(KSPSetType(ksp, l ? KSPCHEBYSHEV : KSPPREONLY));
    PetscCall(KSPGetPC(ksp, &inner));
    PetscCall(PCSetType(inner, l ? PCJACOBI : PCLU));
    if (l) {
      PetscCall(KSPChebyshevSetEigenvalues(ksp, 2.2, 0.2));
      PetscCall(KSPSetNormType(ksp, KSP_NORM_NONE));
      PetscCall(KSPSetTolerances(ksp, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, 2));
      PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
      PetscCall(PCMGGetInterpolation(pc, l, &P));
      PetscCall(MatConvert(P, MATSEQAIJ, MAT_INITIAL_MATRIX, &A));
      PetscCall(MatConvert(A, MATSEQDENSE, MAT_INITIAL_MATRIX, &d->P[l]));
      PetscCall(MatDestroy(&A));
    }
    d->solver[l] = ksp;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DenseDestroy(Dense *d)
{
  PetscFunctionBegin;
  for (PetscInt l = 0; l < d->levels; l++) {
    PetscCall(MatDestroy(&d->A[l]));
    if (l) PetscCall(MatDestroy(&d->P[l]));
    PetscCall(KSPDestroy(&d->solver[l]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DenseKrylov(const Dense *, PetscInt, Vec, Vec);

static PetscErrorCode DenseCycle(const Dense *d, PetscInt l, Vec b, Vec x)
{
  Vec r, rc, xc;

  PetscFunctionBegin;
  PetscCall(VecSet(x, 0.0));
  PetscCall(KSPSolve(d->solver[l], b, x));
  if (!l) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecDuplicate(b, &r));
  PetscCall(MatCreateVecs(d->P[l], &rc, NULL));
  PetscCall(VecDuplicate(rc, &xc));
  PetscCall(MatMult(d->A[l], x, r));
  PetscCall(VecAYPX(r, -1.0, b));
  PetscCall(MatMultTranspose(d->P[l], r, rc));
  if (l > 1 && !d->linear) PetscCall(DenseKrylov(d, l - 1, rc, xc));
  else PetscCall(DenseCycle(d, l - 1, rc, xc));
  PetscCall(MatMultAdd(d->P[l], xc, x, x));
  PetscCall(KSPSolve(d->solver[l], b, x));
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&rc));
  PetscCall(VecDestroy(&xc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x in the span of two corrections c, with b - A x orthogonal to both, or to A times both */
static PetscErrorCode DenseKrylov(const Dense *d, PetscInt l, Vec b, Vec x)
{
  Vec         c[2], v[2], r;
  PetscScalar g[2][2], h[2], t;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecCopy(b, r));
  for (int k = 0; k < 2; k++) {
    PetscCall(VecDuplicate(b, &c[k]));
    PetscCall(VecDuplicate(b, &v[k]));
    PetscCall(DenseCycle(d, l, r, c[k]));
    PetscCall(MatMult(d->A[l], c[k], v[k]));
    if (k) continue;
    PetscCall(VecDot(b, d->residuals ? v[0] : c[0], &h[0]));
    PetscCall(VecDot(v[0], d->residuals ? v[0] : c[0], &g[0][0]));
    PetscCall(VecAXPY(r, -h[0] / g[0][0], v[0]));
  }
  for (int k = 0; k < 2; k++) {
    PetscCall(VecDot(b, d->residuals ? v[k] : c[k], &h[k]));
    for (int j = 0; j < 2; j++) PetscCall(VecDot(v[j], d->residuals ? v[k] : c[k], &g[k][j]));
  }
  t = g[0][0] * g[1][1] - g[0][1] * g[1][0];
  PetscCall(VecCopy(c[0], x));
  PetscCall(VecAXPBY(x, (g[0][0] * h[1] - g[1][0] * h[0]) / t, (g[1][1] * h[0] - g[0][1] * h[1]) / t, c[1]));
  for (int k = 0; k < 2; k++) {
    PetscCall(VecDestroy(&c[k]));
    PetscCall(VecDestroy(&v[k]));
  }
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- beside the reference ---- */

/* Collective, one rank: K-cycles, and K-cycles that must be V-cycles, differ from the reference by as little as the reference from itself after rounding b */
static PetscErrorCode Beside(PetscReal convection, PetscReal sign, const char where[])
{
  Mat       A;
  KSP       ksp, gamg;
  PC        pc;
  Vec       b, x, y, z;
  Dense     d;
  PetscReal difference, rounding, norm;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_SELF, 21, convection, PETSC_FALSE, &A));
  if (sign < 0) PetscCall(MatScale(A, sign));
  if (convection == 0) PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(Solver(A, KSPPREONLY, "k", 8, 1, &ksp));
  PetscCall(Solver(A, KSPPREONLY, NULL, 8, 1, &gamg));
  PetscCall(KSPGetPC(gamg, &pc));
  PetscCall(DenseCreate(pc, (PetscBool)(convection != 0), &d));
  d.linear = (PetscBool)(sign < 0);
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, 441, &b));
  PetscCall(TestFill(b, 5, PETSC_FALSE));
  PetscCall(Application(ksp, b, &x));
  PetscCall(VecDuplicate(b, &y));
  PetscCall(VecDuplicate(b, &z));
  PetscCall(DenseCycle(&d, d.levels - 1, b, y));
  PetscCall(TestFill(z, 6, PETSC_FALSE));
  PetscCall(VecPointwiseMult(z, z, b));
  PetscCall(VecAXPY(b, PETSC_MACHINE_EPSILON, z));
  PetscCall(DenseCycle(&d, d.levels - 1, b, z));
  PetscCall(VecAXPY(x, -1.0, y));
  PetscCall(VecAXPY(z, -1.0, y));
  PetscCall(VecNorm(x, NORM_2, &difference));
  PetscCall(VecNorm(z, NORM_2, &rounding));
  PetscCall(VecNorm(y, NORM_2, &norm));
  if (report) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: %" PetscInt_FMT " levels, difference %g, rounding %g\n", where, d.levels, (double)(difference / norm), (double)(rounding / norm)));
  PetscCheck(difference <= 32 * (rounding + PETSC_MACHINE_EPSILON * norm), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: an application differs by %g, rounding by %g", where, (double)(difference / norm), (double)(rounding / norm));
  PetscCall(DenseDestroy(&d));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(KSPDestroy(&gamg));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- iterations ---- */

static PetscErrorCode Iterations(Mat A, const char type[], const char cycles[], PetscInt *its)
{
  KSPConvergedReason reason;
  KSP                ksp;
  Vec                b, x;
  PetscReal          norm, left;

  PetscFunctionBegin;
  PetscCall(Solver(A, type, cycles, 20, 0, &ksp));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetIterationNumber(ksp, its));
  if (report && !strcmp(cycles, "k")) PetscCall(KSPView(ksp, NULL));
  PetscCall(VecNorm(b, NORM_2, &norm));
  PetscCall(VecScale(b, -1.0));
  PetscCall(MatMultAdd(A, x, b, b));
  PetscCall(VecNorm(b, NORM_2, &left));
  PetscCheck(reason > 0 && left <= 1e-5 * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, cycles %s: %s after %" PetscInt_FMT " iterations, true residual %g", type, cycles, KSPConvergedReasons[reason], *its, (double)(left / norm));
  PetscCall(VecSet(b, 0.0));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(VecNorm(x, NORM_INFINITY, &norm));
  PetscCheck(norm == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, cycles %s: the solution for 0 has norm %g", type, cycles, (double)norm);
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* K-cycles take no more iterations than W-cycles, and these than V-cycles. On larger grids K-cycles take less than half of the further iterations of V-cycles */
static PetscErrorCode Grids(PetscReal convection, const char *const types[])
{
  static const char *const cycles[] = {"1", "2", "k"};
  static const PetscInt    sizes[]  = {24, 48, 96};

  PetscFunctionBegin;
  for (int t = 0; types[t]; t++) {
    PetscInt its[3][3];

    for (int n = 0; n < 3; n++) {
      Mat A;

      PetscCall(TestConvection(PETSC_COMM_WORLD, sizes[n], convection, PETSC_FALSE, &A));
      for (int k = 0; k < 3; k++) PetscCall(Iterations(A, types[t], cycles[k], &its[n][k]));
      PetscCall(MatDestroy(&A));
      if (report) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s, convection %g, %" PetscInt_FMT " points: V %" PetscInt_FMT ", W %" PetscInt_FMT ", K %" PetscInt_FMT "\n", types[t], (double)convection, sizes[n], its[n][0], its[n][1], its[n][2]));
    }
    for (int n = 0; n < 3 && !report; n++)
      PetscCheck(its[n][2] <= its[n][1] && its[n][1] <= its[n][0], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s, %" PetscInt_FMT " points: %" PetscInt_FMT " iterations with V-cycles, %" PetscInt_FMT " with W, %" PetscInt_FMT " with K", types[t], sizes[n], its[n][0], its[n][1], its[n][2]);
    PetscCheck(report || (its[2][0] > its[0][0] + 10 && 2 * (its[2][2] - its[0][2]) < its[2][0] - its[0][0]), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: from %" PetscInt_FMT " to %" PetscInt_FMT " iterations with V-cycles, from %" PetscInt_FMT " to %" PetscInt_FMT " with K", types[t], its[0][0], its[2][0], its[0][2], its[2][2]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- applications ---- */

/* Two equal PCs have equal bits, for a column alone and among others; 0 stays 0; bad scalars give no NaN */
static PetscErrorCode Applications(PetscReal shift, PetscInt limit)
{
  Mat       A, B, X;
  KSP       ksp, again;
  PC        pc;
  Vec       b, x, y, column;
  PetscReal norm, difference;
  PetscInt  n;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_WORLD, 40, 0, PETSC_FALSE, &A));
  if (shift != 0) {
    PetscCall(MatShift(A, -shift));
    PetscCall(MatSetOption(A, MAT_SPD, PETSC_FALSE));
    PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_TRUE));
  }
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(Solver(A, KSPPREONLY, "k", limit, 0, &ksp));
  PetscCall(Solver(A, KSPPREONLY, limit < 1600 ? "k" : "1", limit, 0, &again)); /* one level: any cycle */
  PetscCall(Application(ksp, b, &x));
  PetscCall(VecNorm(x, NORM_INFINITY, &norm));
  PetscCheck(norm > 0 && norm < 1e10, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Shift %g: an application of norm %g", (double)shift, (double)norm);
  for (int k = 0; k < 3; k++) {
    PetscCall(Application(again, b, &y));
    PetscCall(VecAXPY(y, -1.0, x));
    PetscCall(VecNorm(y, NORM_INFINITY, &difference));
    PetscCheck(difference == 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Application %d differs by %g", k, (double)difference);
    PetscCall(VecDestroy(&y));
  }
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, n, PETSC_DECIDE, 1600, 3, NULL, &B));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(MatDenseGetColumnVecWrite(B, k, &column));
    PetscCall(VecCopy(b, column));
    PetscCall(VecScale(column, (PetscScalar)(1 - k))); /* b, 0 and -b */
    PetscCall(MatDenseRestoreColumnVecWrite(B, k, &column));
  }
  PetscCall(MatDuplicate(B, MAT_DO_NOT_COPY_VALUES, &X));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCMatApply(pc, B, X));
  PetscCall(VecDuplicate(x, &y));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(MatDenseGetColumnVecRead(X, k, &column));
    PetscCall(VecCopy(column, y));
    PetscCall(MatDenseRestoreColumnVecRead(X, k, &column));
    PetscCall(VecAXPY(y, (PetscScalar)(k - 1), x));
    PetscCall(VecNorm(y, NORM_INFINITY, &difference));
    /* the column is the host's, and x perhaps the device's: on several ranks products with these round differently */
    PetscCheck(difference <= 1e4 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Column %" PetscInt_FMT " of several differs by %g", k, (double)difference);
  }
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&X));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(KSPDestroy(&again));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transpose(void)
{
  Mat A;
  KSP ksp;
  PC  pc;
  Vec b, x;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_WORLD, 20, 0, PETSC_FALSE, &A));
  PetscCall(Solver(A, KSPPREONLY, "k", 20, 0, &ksp));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(PCApplyTranspose(pc, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two solves by a method that is not flexible: a warning */
static PetscErrorCode Unflexible(void)
{
  Mat A;
  KSP ksp;
  Vec b, x;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_WORLD, 20, 0, PETSC_FALSE, &A));
  PetscCall(Solver(A, KSPGMRES, "k", 20, 0, &ksp));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));
  for (int k = 0; k < 2; k++) PetscCall(KSPSolve(ksp, b, x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const symmetric[] = {KSPGPUCG, KSPFCG, KSPFGMRES, KSPGPUFGMRES, NULL};
  static const char *const general[]   = {KSPGPUFGMRES, KSPGCR, NULL};
  static const char *const single[]    = {KSPGPUCG, NULL};
  PetscBool                transpose = PETSC_FALSE, unflexible = PETSC_FALSE;
  PetscMPIInt              size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-report", &report, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-transpose", &transpose, NULL));
  PetscCall(PetscOptionsSetValue(NULL, "-k_pc_gpuamg_gather_limit", "60")); /* several levels of all ranks */
  PetscCall(PetscOptionsSetValue(NULL, "-k_pc_gpuamg_process_eq_limit", "10"));
  PetscCall(PetscOptionsSetValue(NULL, "-k_pc_gpuamg_tail", "0"));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-unflexible", &unflexible, NULL));
  if (transpose) PetscCall(Transpose());
  if (unflexible) {
    PetscCall(Unflexible());
    PetscCall(PetscFinalize());
    return 0;
  }
  if (size == 1) {
    PetscCall(PetscOptionsSetValue(NULL, "-k_mg_levels_ksp_chebyshev_eigenvalues", "0.2,2.2"));
    PetscCall(Beside(0, 1, "conjugate gradients"));
    PetscCall(Beside(0, -1, "no positive curvature"));
    PetscCall(Beside(0.4, 1, "conjugate residuals"));
    PetscCall(PetscOptionsClearValue(NULL, "-k_mg_levels_ksp_chebyshev_eigenvalues"));
  }
  PetscCall(Grids(0, symmetric));
  PetscCall(Grids(0.5, general));
  PetscCall(PetscOptionsSetValue(NULL, "-k_pc_gpuamg_precision", "single"));
  PetscCall(Grids(0, single));
  PetscCall(PetscOptionsClearValue(NULL, "-k_pc_gpuamg_precision"));
  PetscCall(Applications(0, 20));
  PetscCall(Applications(0.3, 20));
  PetscCall(Applications(0, 1000));
  PetscCall(Applications(9, 20));
  PetscCall(PetscFinalize());
  return 0;
}

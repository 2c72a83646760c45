/*
  Options of smoothers and the interface of PCGPUAMG: each option changes the cycle as documented, and options without an effect on the device are reported; matrices of levels; coordinates; singular
  matrices; what a program does between two set-ups.

  //TEST name="one" args="-mat_gpucsr_format csr"
  //TEST name="standin" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1"
  //TEST name="ranks" nsize=3 args="-mat_gpucsr_format csr -our_pc_gpuamg_gather_limit 60 -our_pc_gpuamg_process_eq_limit 10"
  //TEST name="gathered" nsize=2 args="-mat_gpucsr_format csr -quick -our_pc_gpuamg_process_eq_limit 10000"
  //TEST name="nosolution" loop="0 1 2" args="-mat_gpucsr_format csr -quick -nosolution {}" warns="the matrix of PC type gpuamg is singular to working precision"
  //TEST name="nosolution_ranks" nsize=3 args="-mat_gpucsr_format csr -quick -nosolution 0" warns="the matrix of PC type gpuamg is singular to working precision"
  //TEST name="richardson" args="-mat_gpucsr_format csr -quick -our_mg_levels_ksp_richardson_scale 0.7" warns="-our_mg_levels_ksp_richardson_scale has no effect on the levels of PC type gpuamg"
  //TEST name="chebyshev" args="-mat_gpucsr_format csr -quick -our_mg_levels_ksp_type richardson -our_mg_levels_ksp_chebyshev_eigenvalues 0.1,2" warns="-our_mg_levels_ksp_chebyshev_eigenvalues has no effect on the levels of PC type gpuamg"
  //TEST name="later" args="-mat_gpucsr_format csr -quick -later" warns="-our_mg_levels_pc_type has no effect on the levels of PC type gpuamg"
  //TEST name="pc" args="-mat_gpucsr_format csr -quick -our_mg_levels_pc_type sor" warns="-our_mg_levels_pc_type has no effect on the levels of PC type gpuamg"
  //TEST name="ksp" args="-mat_gpucsr_format csr -quick -our_mg_levels_ksp_type gmres" warns="-our_mg_levels_ksp_type has no effect on the levels of PC type gpuamg"
  //TEST name="level" args="-mat_gpucsr_format csr -quick -our_mg_levels_1_ksp_max_it 4" warns="-our_mg_levels_1_ksp_max_it has no effect"
  //TEST name="coarse" args="-mat_gpucsr_format csr -quick -our_mg_coarse_pc_type lu" warns="-our_mg_coarse_pc_type has no effect on the coarse solver"
  //TEST name="small" nsize=2 args="-mat_gpucsr_format csr -quick -our_mg_levels_pc_type sor" warns="-our_mg_levels_pc_type has no effect on the levels of PC type gpuamg"
  //TEST name="alone" nsize=2 args="-mat_gpucsr_format csr -quick -prefix none -mg_levels_pc_type sor -mg_coarse_ksp_type preonly" warns="-mg_levels_pc_type has no effect on"
  //TEST name="nolevel" args="-mat_gpucsr_format csr -quick -level 99" fails="must be from 0, the finest, to"
  //TEST name="nan" args="-mat_gpucsr_format csr -quick -our_pc_gpuamg_threshold 0.1,nan" fails="-pc_gpuamg_threshold of level 1 is not a number"
  //TEST name="points" args="-mat_gpucsr_format csr -quick -points 3" fails="PCSetCoordinates() has given 3 points"
  //TEST name="infinite" args="-mat_gpucsr_format csr -quick -points 3 -at nan" fails="PCSetCoordinates(): point 0 has a number that is not finite"
*/
static char help[] = "Tests the options of PCGPUAMG.\n";

#include "testing.h"
#include <petscgpucsr.h>

/* A grid of k by k points, or of plane strain's two displacements, coupled in a row of springs */
static PetscErrorCode Create(MPI_Comm comm, PetscInt k, PetscInt bs, Mat *A)
{
  PetscInt first, end;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(comm, bs * k * k, bs * k * k, PETSC_FALSE, A));
  PetscCall(MatSetBlockSize(*A, bs));
  PetscCall(MatSeqAIJSetPreallocation(*A, 5, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 5, NULL, 4, NULL));
  PetscCall(MatGetOwnershipRange(*A, &first, &end));
  for (PetscInt r = first; r < end; r++) {
    const PetscInt    v = r / bs, s = bs * k;
    const PetscReal   w      = r % bs ? 2.0 : 1.0;
    const PetscInt    col[5] = {v >= k ? r - s : -1, v % k ? r - bs : -1, r, (v + 1) % k ? r + bs : -1, v + k < k * k ? r + s : -1};
    const PetscScalar a[5]   = {-1.0, -w, 2.0 + 2.0 * w, -w, -1.0};

    PetscCall(MatSetValues(*A, 1, &r, 5, col, a, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solver(Mat A, KSP *ksp, PC *pc)
{
  PetscBool none;

  PetscFunctionBegin;
  PetscCall(PetscOptionsHasName(NULL, NULL, "-prefix", &none));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), ksp));
  if (!none) PetscCall(KSPSetOptionsPrefix(*ksp, "our_"));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, KSPCG));
  PetscCall(KSPSetTolerances(*ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 200));
  PetscCall(KSPGetPC(*ksp, pc));
  PetscCall(PCSetType(*pc, PCGPUAMG));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Its solution has a small residual; M b of a vector by chance */
static PetscErrorCode Solve(KSP ksp, PC pc, const char where[], PetscInt *its, Vec *y)
{
  KSPConvergedReason reason;
  Mat                A;
  Vec                b, x;

  PetscFunctionBegin;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCheck(reason > 0 && *its < 60, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %s after %" PetscInt_FMT " iterations", where, KSPConvergedReasons[reason], *its);
  PetscCall(PCApply(pc, b, x));
  *y = x;
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Options that state the default leave the cycle unchanged, up to rounding; other options change it */
static PetscErrorCode Smoothers(Mat A)
{
  static const struct {
    const char *option, *value, *second, *secondvalue;
    PetscBool   same;
  } sets[] = {
    {"-our_mg_levels_ksp_max_it",                "2",          NULL,                                  NULL,     PETSC_TRUE },
    {"-our_mg_levels_ksp_max_it",                "3",          NULL,                                  NULL,     PETSC_FALSE},
    {"-our_mg_levels_ksp_type",                  "chebyshev",  "-our_mg_levels_pc_type",              "jacobi", PETSC_TRUE },
    {"-our_pc_gpuamg_smoother",                  "rowl1",      "-our_mg_levels_pc_type",              "jacobi", PETSC_TRUE },
    {"-our_pc_gpuamg_smoother",                  "rowl1",      "-our_mg_levels_pc_type",              "ilu",    PETSC_FALSE},
    {"-our_mg_levels_ksp_type",                  "richardson", "-our_mg_levels_ksp_richardson_scale", "0.6",    PETSC_FALSE},
    {"-our_mg_levels_ksp_chebyshev_eigenvalues", "0.2,2.2",    NULL,                                  NULL,     PETSC_FALSE}
  };
  KSP       ksp;
  PC        pc;
  Vec       x, y;
  PetscInt  its, other;
  PetscReal norm, difference;

  PetscFunctionBegin;
  PetscCall(Solver(A, &ksp, &pc));
  PetscCall(Solve(ksp, pc, "the default", &its, &x));
  PetscCall(VecNorm(x, NORM_2, &norm));
  PetscCall(KSPDestroy(&ksp));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(sets); k++) {
    PetscCall(PetscOptionsSetValue(NULL, sets[k].option, sets[k].value));
    if (sets[k].second) PetscCall(PetscOptionsSetValue(NULL, sets[k].second, sets[k].secondvalue));
    PetscCall(Solver(A, &ksp, &pc));
    PetscCall(Solve(ksp, pc, sets[k].option, &other, &y));
    PetscCall(PetscOptionsClearValue(NULL, sets[k].option));
    if (sets[k].second) PetscCall(PetscOptionsClearValue(NULL, sets[k].second));
    PetscCall(VecAXPY(y, -1.0, x));
    PetscCall(VecNorm(y, NORM_2, &difference));
    PetscCheck((difference <= 1e-12 * norm) == sets[k].same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s %s: the cycle differs by %g", sets[k].option, sets[k].value, (double)(difference / norm));
    PetscCall(VecDestroy(&y));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Level 0 is the matrix; the next are symmetric, smaller, and positive */
static PetscErrorCode Levels(Mat A, PetscInt more)
{
  KSP       ksp;
  PC        pc;
  Mat       L;
  Vec       x, y;
  PetscInt  n, N, its;
  PetscReal difference, norm;
  PetscBool gathered;

  PetscFunctionBegin;
  PetscCall(Solver(A, &ksp, &pc));
  PetscCall(Solve(ksp, pc, "a solve with options", &its, &y));
  PetscCall(VecDestroy(&y));
  PetscCall(MatGetSize(A, &N, NULL));
  PetscCall(TestPCSays(pc, "Each rank has all rows", &gathered)); /* of one level */
  for (PetscInt l = 0; l < (gathered ? 1 : 2); l++) {
    PetscScalar energy;
    PetscBool   ours;

    PetscCall(PCGPUAMGGetOperator(pc, l, &L));
    PetscCall(PetscObjectTypeCompareAny((PetscObject)L, &ours, MATSEQAIJ, MATMPIAIJ, ""));
    PetscCall(MatGetSize(L, &n, NULL));
    PetscCheck(ours && (l ? n < N / 2 : n == N), PETSC_COMM_SELF, PETSC_ERR_PLIB, "Level %" PetscInt_FMT " is no MATAIJ, or has %" PetscInt_FMT " rows, where the matrix has %" PetscInt_FMT, l, n, N);
    PetscCall(MatCreateVecs(L, &x, &y));
    PetscCall(TestFill(x, 4, PETSC_FALSE));
    PetscCall(MatMult(L, x, y));
    PetscCall(VecDot(x, y, &energy));
    PetscCheck(PetscRealPart(energy) > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Level %" PetscInt_FMT ": (A x, x) = %g", l, (double)PetscRealPart(energy));
    PetscCall(VecNorm(y, NORM_2, &norm));
    PetscCall(VecScale(y, -1.0));
    PetscCall(MatMultTransposeAdd(L, x, y, y));
    PetscCall(VecNorm(y, NORM_2, &difference));
    PetscCheck(difference <= 1e-13 * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Level %" PetscInt_FMT " is not symmetric: %g", l, (double)(difference / norm));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(MatDestroy(&L));
  }
  if (more) PetscCall(PCGPUAMGGetOperator(pc, more, &L));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Points of a plane: three rigid motions of blocks of two rows */
static PetscErrorCode Coordinates(MPI_Comm comm, PetscInt k, PetscInt points)
{
  Mat        A, L;
  KSP        ksp;
  PC         pc;
  Vec        y;
  PetscInt   first, n, bs, its;
  PetscReal *at;

  PetscFunctionBegin;
  PetscCall(Create(comm, k, 2, &A));
  PetscCall(MatGetOwnershipRange(A, &first, NULL));
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(PetscMalloc1(n + 6, &at));
  for (PetscInt v = 0; v < n / 2; v++) {
    at[2 * v]     = (PetscReal)((first / 2 + v) % k);
    at[2 * v + 1] = (PetscReal)((first / 2 + v) / k);
  }
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-at", at, NULL));
  PetscCall(Solver(A, &ksp, &pc));
  PetscCall(PCSetCoordinates(pc, 2, points ? points : n / 2, at));
  PetscCall(PetscFree(at));
  PetscCall(Solve(ksp, pc, "coordinates", &its, &y));
  PetscCall(PCGPUAMGGetOperator(pc, 1, &L));
  PetscCall(MatGetBlockSize(L, &bs));
  PetscCheck(bs == 3, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Blocks of %" PetscInt_FMT " rows below coordinates in the plane", bs);
  PetscCall(MatDestroy(&L));
  PetscCall(VecDestroy(&y));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- singular matrices ---- */

/* A grid of k by k points without a boundary condition */
static PetscErrorCode Neumann(MPI_Comm comm, PetscInt k, Mat *A)
{
  PetscInt     first, end;
  MatNullSpace constants;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(comm, k * k, k * k, PETSC_FALSE, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 5, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 5, NULL, 4, NULL));
  PetscCall(MatGetOwnershipRange(*A, &first, &end));
  for (PetscInt r = first; r < end; r++) {
    const PetscInt col[5] = {r >= k ? r - k : -1, r % k ? r - 1 : -1, (r + 1) % k ? r + 1 : -1, r + k < k * k ? r + k : -1, r};
    PetscScalar    a[5]   = {0};

    for (int q = 0; q < 4; q++) {
      if (col[q] >= 0) a[q] = -1.0 - (PetscScalar)((col[q] + r) % 7) / 7.0;
      a[4] -= a[q];
    }
    PetscCall(MatSetValues(*A, 1, &r, 5, col, a, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatNullSpaceCreate(comm, PETSC_TRUE, 0, NULL, &constants));
  PetscCall(MatSetNullSpace(*A, constants));
  PetscCall(MatNullSpaceDestroy(&constants));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The inverse of a coarse matrix of very few rows leaves the constants out: no application has a large constant, which would hide the digits of the solution. In floats a restricted residual has constants too */
static PetscErrorCode Singular(MPI_Comm comm)
{
  static const PetscInt    points[] = {12, 28, 36, 48};
  static const char *const set[][2] = {
    {"-our_pc_gpuamg_coarse_eq_limit",       "2"},
    {"-our_pc_gpuamg_aggressive_coarsening", "2"},
    {"-our_pc_gpuamg_tail",                  "0"}
  };
  static const char *const precisions[] = {"double", "single"};

  PetscFunctionBegin;
  for (int q = 0; q < 3; q++) PetscCall(PetscOptionsSetValue(NULL, set[q][0], set[q][1]));
  for (int k = 0; k < 2 * (int)PETSC_STATIC_ARRAY_LENGTH(points); k++) {
    Mat          A;
    KSP          ksp;
    PC           pc;
    Vec          b, x;
    MatNullSpace constants;
    PetscScalar  sum;
    PetscReal    norm;
    PetscInt     n;

    PetscCall(Neumann(comm, points[k / 2], &A));
    PetscCall(MatGetNullSpace(A, &constants));
    PetscCall(PetscOptionsSetValue(NULL, "-our_pc_gpuamg_precision", precisions[k % 2]));
    PetscCall(Solver(A, &ksp, &pc));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(TestFill(b, 3, PETSC_FALSE));
    PetscCall(MatNullSpaceRemove(constants, b));
    PetscCall(KSPSetUp(ksp));
    PetscCall(PCApply(pc, b, x));
    PetscCall(VecSum(x, &sum));
    PetscCall(MatNullSpaceRemove(constants, x));
    PetscCall(VecNorm(x, NORM_2, &norm));
    PetscCall(VecGetSize(x, &n));
    PetscCheck(PetscAbsScalar(sum) <= 10 * PetscSqrtReal((PetscReal)n) * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " rows, %s: the constant of an application has norm %g, all else %g", n, precisions[k % 2], (double)(PetscAbsScalar(sum) / PetscSqrtReal((PetscReal)n)), (double)norm);
    PetscCall(VecDestroy(&b));
    PetscCall(VecDestroy(&x));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
  }
  for (int q = 0; q < 3; q++) PetscCall(PetscOptionsClearValue(NULL, set[q][0]));
  PetscCall(PetscOptionsClearValue(NULL, "-our_pc_gpuamg_precision"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Small singular matrices, of zeros and with an empty row too, and a right-hand side that is no product with them: a message, and no solution of GMRES */
static PetscErrorCode NoSolution(MPI_Comm comm, PetscInt kind)
{
  Mat                A;
  KSP                ksp;
  PC                 pc;
  Vec                b, x, r;
  KSPConvergedReason reason;
  PetscReal          norm, left;
  PetscInt           first, end;

  PetscFunctionBegin;
  PetscCall(Neumann(comm, 20, &A));
  PetscCall(MatSetNullSpace(A, NULL));
  if (kind == 1) PetscCall(MatScale(A, 0.0));
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  if (kind == 2) PetscCall(MatZeroRowsColumns(A, first <= 123 && 123 < end, (const PetscInt[]){123}, 0.0, NULL, NULL));
  PetscCall(Solver(A, &ksp, &pc));
  PetscCall(KSPSetType(ksp, KSPGMRES));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAXPY(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &left));
  PetscCall(VecNorm(b, NORM_2, &norm));
  PetscCheck(reason < 0 || left <= 1e-6 * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s with a residual of %g", KSPConvergedReasons[reason], (double)(left / norm));
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- between two set-ups ---- */

/* An option without effect that comes after the first set-up has its message, once */
static PetscErrorCode Later(Mat A)
{
  KSP ksp;
  PC  pc;

  PetscFunctionBegin;
  PetscCall(Solver(A, &ksp, &pc));
  PetscCall(KSPSetUp(ksp));
  PetscCall(PetscOptionsSetValue(NULL, "-our_mg_levels_pc_type", "sor"));
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPSetFromOptions(ksp));
    PetscCall(MatScale(A, 2.0));
    PetscCall(KSPSetUp(ksp));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Expect(PC pc, PetscBool expected, const char text[], const char where[])
{
  PetscBool says;

  PetscFunctionBegin;
  PetscCall(TestPCSays(pc, text, &says));
  PetscCheck(says == expected, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the view has%s \"%s\"", where, says ? "" : " no", text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* M b of a vector by chance is still y; the transposed application belongs to the same M */
static PetscErrorCode Still(PC pc, Vec y, const char where[])
{
  Vec         b, x, z;
  PetscReal   norm, size;
  PetscScalar dot, other;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(y, &b));
  PetscCall(VecDuplicate(y, &x));
  PetscCall(VecDuplicate(y, &z));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(PCApply(pc, b, x));
  PetscCall(PCApplyTranspose(pc, y, z));
  PetscCall(VecDot(x, y, &dot));
  PetscCall(VecDot(b, z, &other));
  PetscCall(VecAXPY(x, -1.0, y));
  PetscCall(VecNorm(x, NORM_2, &norm));
  PetscCall(VecNorm(y, NORM_2, &size));
  PetscCheck(norm <= 1e-13 * size, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the application has changed by %g", where, (double)(norm / size));
  PetscCheck(PetscAbsScalar(dot - other) <= 1e-12 * PetscAbsScalar(dot), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: (M b, c) = %g, (b, M^T c) = %g", where, (double)PetscRealPart(dot), (double)PetscRealPart(other));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Until the next set-up views, applications and levels are those of the last one, whatever options the program changes and whatever happens to the matrix */
static PetscErrorCode Between(MPI_Comm comm, PetscInt k)
{
  Mat            A, B, L;
  KSP            ksp;
  PC             pc;
  Vec            b, y;
  PetscReal      norm;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(Create(comm, k, 1, &A));
  PetscCall(Create(comm, k, 1, &B));
  PetscCall(MatScale(B, 2.0));
  PetscCall(MatSetOption(A, MAT_SYMMETRIC, PETSC_FALSE)); /* its transposed cycle is another one */
  PetscCall(MatCreateVecs(A, &y, &b));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(Solver(A, &ksp, &pc));
  PetscCall(Expect(pc, PETSC_TRUE, "not yet set up", "before a set-up"));
  PetscCall(Expect(pc, PETSC_FALSE, "few weak entries", "before a set-up"));
  PetscCall(KSPSetUp(ksp));
  PetscCall(PCApply(pc, b, y));
  PetscCall(PCGAMGSetNSmooths(pc, 0));
  PetscCall(PetscOptionsSetValue(NULL, "-our_pc_gpuamg_smoother_degree", "5"));
  PetscCall(PCSetFromOptions(pc));
  PetscCall(PetscOptionsSetValue(NULL, "-our_pc_gpuamg_smoother_degree", "1000"));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = PCSetFromOptions(pc);
  PetscCall(PetscPopErrorHandler());
  PetscCheck(ierr == PETSC_ERR_ARG_OUTOFRANGE, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A smoother of degree 1000: error %d", (int)ierr);
  PetscCall(PetscOptionsClearValue(NULL, "-our_pc_gpuamg_smoother_degree"));
  PetscCall(Expect(pc, PETSC_TRUE, "of degree 2 with jacobi, prolongators smoothed 1 times", "changed options"));
  PetscCall(Expect(pc, PETSC_TRUE, "options have changed since the set-up", "changed options"));
  PetscCall(Still(pc, y, "changed options"));
  PetscCall(PCSetReusePreconditioner(pc, PETSC_TRUE));
  PetscCall(PetscObjectReference((PetscObject)A));
  PetscCall(KSPSetOperators(ksp, B, B));
  PetscCall(PCGPUAMGGetOperator(pc, 0, &L));
  PetscCall(MatAXPY(L, -1.0, A, SAME_NONZERO_PATTERN));
  PetscCall(MatNorm(L, NORM_FROBENIUS, &norm));
  PetscCheck(norm == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Level 0 is not the matrix of the set-up: %g", (double)norm);
  PetscCall(MatDestroy(&L));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&A)); /* the PC alone has it */
  PetscCall(Expect(pc, PETSC_TRUE, "built 1 times", "another matrix"));
  PetscCall(Still(pc, y, "another matrix"));
  PetscCall(PCSetReusePreconditioner(pc, PETSC_FALSE));
  PetscCall(PCSetUp(pc));
  PetscCall(Expect(pc, PETSC_TRUE, "of degree 5 with jacobi, prolongators smoothed 0 times", "a second set-up"));
  PetscCall(Expect(pc, PETSC_FALSE, "options have changed", "a second set-up"));
  PetscCall(PCApply(pc, b, y));
  PetscCall(Create(comm, k, 1, &A));
  PetscCall(MatHeaderReplace(B, &A));
  PetscCall(Expect(pc, PETSC_TRUE, "built 2 times", "a replaced matrix"));
  PetscCall(VecScale(y, 2.0));
  PetscCall(Still(pc, y, "a replaced matrix"));
  PetscCall(MatSetBlockSize(B, 2));
  PetscCall(MatScale(B, 2.0));
  PetscCall(PCSetUp(pc));
  PetscCall(Expect(pc, PETSC_TRUE, "built 4 times", "another block size"));
  PetscCall(PCSetReusePreconditioner(pc, PETSC_TRUE));
  PetscCall(MatConvert(B, MATAIJ, MAT_INPLACE_MATRIX, &B));
  PetscCall(Expect(pc, PETSC_TRUE, "built 4 times", "a converted matrix"));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = PCApply(pc, b, y);
  PetscCall(PetscPopErrorHandler());
  PetscCheck(!ierr || ierr == PETSC_ERR_ARG_WRONGSTATE, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A converted matrix: error %d", (int)ierr);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&B));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The program changes the vector of a near null space in place: the next set-up is the one of a new preconditioner */
static PetscErrorCode Near(MPI_Comm comm)
{
  Mat          A;
  KSP          ksp[2];
  PC           pc;
  Vec          v, y[2];
  MatNullSpace near;
  PetscInt     its, locks;
  PetscReal    norm, difference;

  PetscFunctionBegin;
  PetscCall(Create(comm, 40, 1, &A));
  PetscCall(MatCreateVecs(A, &v, NULL));
  PetscCall(VecSet(v, 1.0 / 40));
  PetscCall(MatNullSpaceCreate(comm, PETSC_FALSE, 1, &v, &near));
  PetscCall(MatSetNearNullSpace(A, near));
  PetscCall(Solver(A, &ksp[0], &pc));
  PetscCall(KSPSetUp(ksp[0]));
  PetscCall(VecLockGet(v, &locks)); /* by the null space, in PETSc 3.24 */
  PetscCall(TestUnlock(v));
  PetscCall(TestFill(v, 5, PETSC_FALSE));
  PetscCall(VecShift(v, 4.0));
  for (; locks > 0; locks--) PetscCall(VecLockReadPush(v));
  PetscCall(MatScale(A, 2.0));
  for (int k = 0; k < 2; k++) {
    if (k) PetscCall(Solver(A, &ksp[1], &pc));
    PetscCall(KSPSetOperators(ksp[k], A, A));
    PetscCall(Solve(ksp[k], pc, "another near null vector", &its, &y[k]));
  }
  PetscCall(VecNorm(y[1], NORM_2, &norm));
  PetscCall(VecAXPY(y[0], -1.0, y[1]));
  PetscCall(VecNorm(y[0], NORM_2, &difference));
  PetscCheck(difference <= 1e-12 * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Another near null vector: the cycle differs from a new one's by %g", (double)(difference / norm));
  for (int k = 0; k < 2; k++) {
    PetscCall(VecDestroy(&y[k]));
    PetscCall(KSPDestroy(&ksp[k]));
  }
  PetscCall(MatNullSpaceDestroy(&near));
  PetscCall(VecDestroy(&v));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix of zeros has a preconditioner, also where a level is larger than its dense inverse may be */
static PetscErrorCode Zero(MPI_Comm comm)
{
  Mat                A;
  KSP                ksp;
  Vec                b, x;
  KSPConvergedReason reason;
  PetscReal          norm;

  PetscFunctionBegin;
  PetscCall(Create(comm, 40, 1, &A));
  PetscCall(MatScale(A, 0.0));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(KSPCreate(comm, &ksp));
  PetscCall(KSPSetType(ksp, KSPPREONLY));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetOptionsPrefix(ksp, "zero_"));
  PetscCall(PetscOptionsSetValue(NULL, "-zero_pc_type", PCGPUAMG));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(VecNorm(x, NORM_INFINITY, &norm));
  PetscCheck(reason > 0 && norm < 1e3, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A matrix of zeros: %s, and a solution of size %g", KSPConvergedReasons[reason], (double)norm);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A regular matrix without pivots on the diagonal after the first: a reason, not a solution of another system. With other values the next set-up works */
static PetscErrorCode NoPivots(void)
{
  Mat                A;
  KSP                ksp;
  Vec                b, x, r;
  KSPConvergedReason reason;
  PetscReal          norm;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_SELF, 3, 3, PETSC_FALSE, &A));
  PetscCall(MatSetUp(A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSetValues(b, 3, (const PetscInt[]){0, 1, 2}, (const PetscScalar[]){1, 2, 4}, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(b));
  PetscCall(VecAssemblyEnd(b));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetType(ksp, KSPGMRES));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetOptionsPrefix(ksp, "none_"));
  PetscCall(PetscOptionsSetValue(NULL, "-none_pc_type", PCGPUAMG));
  PetscCall(KSPSetFromOptions(ksp));
  for (int good = 0; good < 2; good++) {
    const PetscScalar a[9] = {1, 1, 1, 1, good ? 3 : 1, 2, 1, 2, good ? 4 : 1};

    PetscCall(MatSetValues(A, 3, (const PetscInt[]){0, 1, 2}, 3, (const PetscInt[]){0, 1, 2}, a, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCheck(good || reason == KSP_DIVERGED_PC_FAILED, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A matrix without pivots: %s", KSPConvergedReasons[reason]);
  }
  PetscCall(VecDuplicate(b, &r));
  PetscCall(MatResidual(A, b, x, r));
  PetscCall(VecNorm(r, NORM_2, &norm));
  PetscCheck(reason > 0 && norm < 1e-4, PETSC_COMM_SELF, PETSC_ERR_PLIB, "After a matrix without pivots: %s, residual %g", KSPConvergedReasons[reason], (double)norm);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool quick = PETSC_FALSE, later = PETSC_FALSE;
  PetscInt  level = 0, points = 0, kind = -1;
  Mat       A;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-quick", &quick, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-later", &later, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-nosolution", &kind, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-level", &level, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-points", &points, NULL));
  PetscCall(Create(PETSC_COMM_WORLD, 40, 1, &A));
  if (later) PetscCall(Later(A));
  if (kind >= 0) PetscCall(NoSolution(PETSC_COMM_WORLD, kind));
  if (!quick) {
    PetscCall(Smoothers(A));
    PetscCall(Between(PETSC_COMM_WORLD, 42));
    PetscCall(Singular(PETSC_COMM_WORLD));
    PetscCall(Zero(PETSC_COMM_WORLD));
    PetscCall(NoPivots());
    PetscCall(Near(PETSC_COMM_WORLD));
  }
  if (!points) PetscCall(Levels(A, level));
  PetscCall(MatDestroy(&A));
  if (!quick || points) PetscCall(Coordinates(PETSC_COMM_WORLD, 24, points));
  PetscCall(PetscFinalize());
  return 0;
}

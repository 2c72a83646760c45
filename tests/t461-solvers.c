//TEST name="default" args="-our_pc_gamg_gpucsr false -vec_gpu_separate -mat_gpucsr_format csr"
//TEST name="ranks2" nsize=2 args="-our_pc_gamg_gpucsr false -vec_gpu_separate -mat_gpucsr_format csr"
//TEST name="standin" args="-our_pc_gamg_gpucsr false -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0" gpu=0
//TEST name="standin2" nsize=2 args="-our_pc_gamg_gpucsr false -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0" gpu=0
//TEST name="aij" args="-mat_type aij"

/* A program's uses of solvers: operators swapped, rows zeroed after a solve, types changed in flight, factors in place, every KSP and PC, several right-hand sides, sub-communicators (programs.h) */
static char help[] = "Tests what a program may do and few do: solvers.\n";

#include "programs.h"
#include <petsc/private/kspimpl.h> /* KSPSetConvergedReason(), in PETSc 3.18 */

static PetscErrorCode Case_swap(World *w)
{
  Mat         A, B;
  KSP         ksp;
  const char *types[] = {"cg", "gmres", "gpucg", "gpugmres", "gpubcgs"};

  PetscFunctionBegin;
  for (int t = 0; t < 5; t++) {
    const char *type = w->plain && t > 1 ? (t == 2 ? "cg" : t == 3 ? "gmres" : "bcgs") : types[t];

    PetscCall(Grid(w, 9, 0, &A));
    PetscCall(Grid(w, 9, 0, &B));
    PetscCall(MatShift(B, 3));
    PetscCall(NewKSP(w, w->comm, A, type, "jacobi", &ksp));
    PetscCall(Solve(w, ksp, A));
    PetscCall(KSPSetOperators(ksp, B, B));
    PetscCall(Solve(w, ksp, B));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(Solve(w, ksp, A));
    PetscCall(KSPSetOperators(ksp, A, B)); /* another one for the preconditioner */
    PetscCall(Solve(w, ksp, A));
    PetscCall(MatDestroy(&B));
    PetscCall(Grid(w, 9, 0, &B)); /* perhaps at the same address */
    PetscCall(MatShift(B, 7));
    PetscCall(KSPSetOperators(ksp, B, B));
    PetscCall(Solve(w, ksp, B));
    PetscCall(KSPReset(ksp));
    PetscCall(MatDestroy(&A));
    PetscCall(Grid(w, 5, 0, &A)); /* of another size */
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(Solve(w, ksp, A));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&B));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_zerorows(World *w)
{
  for (int keep = 0; keep < 2; keep++) {
    Mat      A;
    Vec      x, b;
    KSP      ksp;
    PetscInt rows[] = {3, 17, 40}, n = 3;

    PetscFunctionBegin;
    PetscCall(Grid(w, 8, 0, &A));
    PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, (PetscBool)keep));
    PetscCall(NewKSP(w, w->comm, A, "cg", "jacobi", &ksp));
    PetscCall(Solve(w, ksp, A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(Fill(x, 4));
    PetscCall(Fill(b, 5));
    PetscCall(MatZeroRowsColumns(A, n, rows, 2.0, x, b));
    PetscCall(TellVec(w, b));
    PetscCall(TellProducts(w, A));
    PetscCall(Solve(w, ksp, A));
    rows[0] = 5;
    PetscCall(MatZeroRows(A, 1, rows, 0.0, x, b));
    PetscCall(TellVec(w, b));
    PetscCall(TellProducts(w, A));
    PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatShift(A, 1));
    PetscCall(TellProducts(w, A));
    PetscCall(MatDestroy(&A));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_flight(World *w)
{
  Mat A;
  KSP ksp;

  PetscFunctionBegin;
  PetscCall(Grid(w, 8, 0, &A));
  PetscCall(TellProducts(w, A));
  if (!w->ref) PetscCall(PetscOptionsSetValue(NULL, "-fl_mat_gpucsr_format", "sell"));
  PetscCall(MatSetOptionsPrefix(A, w->ref ? "ref_" : "fl_"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(TellProducts(w, A));
  if (!w->ref) PetscCall(PetscOptionsSetValue(NULL, "-fl_mat_gpucsr_format", "coo"));
  PetscCall(MatSetFromOptions(A));
  PetscCall(MatScale(A, 2));
  PetscCall(TellProducts(w, A));
  PetscCall(NewKSP(w, w->comm, A, "cg", "jacobi", &ksp));
  PetscCall(Solve(w, ksp, A));
  PetscCall(KSPSetType(ksp, w->plain ? "cg" : "gpucg"));
  PetscCall(Solve(w, ksp, A));
  PetscCall(KSPSetType(ksp, "minres"));
  PetscCall(Solve(w, ksp, A));
  PetscCall(MatBindToCPU(A, PETSC_TRUE));
  PetscCall(TellProducts(w, A));
  PetscCall(Solve(w, ksp, A));
  PetscCall(MatBindToCPU(A, PETSC_FALSE));
  PetscCall(MatShift(A, 1));
  PetscCall(TellProducts(w, A));
  PetscCall(MatConvert(A, MATAIJ, MAT_INPLACE_MATRIX, &A));
  PetscCall(TellProducts(w, A));
  PetscCall(Solve(w, ksp, A));
  PetscCall(MatConvert(A, w->plain ? MATAIJ : "gpucsr", MAT_INPLACE_MATRIX, &A));
  PetscCall(MatShift(A, 1));
  PetscCall(TellProducts(w, A));
  PetscCall(Solve(w, ksp, A));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscOptionsClearValue(NULL, "-fl_mat_gpucsr_format"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_factors(World *w)
{
  Mat           A, F;
  IS            row, col;
  MatFactorInfo info;
  Vec           x, b;
  PetscMPIInt   ranks;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(w->comm, &ranks));
  if (ranks > 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatFactorInfoInitialize(&info));
  info.fill = 5;
  for (int kind = 0; kind < 3; kind++) {
    PetscCall(Grid(w, 7, 0, &A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(Fill(x, 2));
    PetscCall(MatMult(A, x, b));
    PetscCall(Perturb(w, b));
    PetscCall(MatGetOrdering(A, MATORDERINGNATURAL, &row, &col));
    if (kind == 0) PetscCall(MatLUFactor(A, row, col, &info));
    else if (kind == 1) PetscCall(MatILUFactor(A, row, col, &info));
    else {
      PetscCall(MatGetFactor(A, MATSOLVERPETSC, MAT_FACTOR_CHOLESKY, &F));
      PetscCall(MatCholeskyFactorSymbolic(F, A, row, &info));
      PetscCall(MatCholeskyFactorNumeric(F, A, &info));
      PetscCall(MatScale(A, 2));
      PetscCall(MatCholeskyFactorNumeric(F, A, &info));
    }
    PetscCall(MatSolve(kind == 2 ? F : A, b, x));
    PetscCall(TellFoundVec(w, x, 0));
    PetscCall(MatSolveTranspose(kind == 2 ? F : A, b, x));
    PetscCall(TellFoundVec(w, x, 0));
    if (kind == 1) {
      PetscCall(MatSetUnfactored(A));
      PetscCall(MatZeroEntries(A));
      for (PetscInt r = 0; r < 49; r++) PetscCall(MatSetValue(A, r, r, 3, INSERT_VALUES));
      PetscCall(Assemble(A));
      PetscCall(TellProducts(w, A));
    }
    if (kind == 2) PetscCall(MatDestroy(&F));
    PetscCall(ISDestroy(&row));
    PetscCall(ISDestroy(&col));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_solvers(World *w)
{
  static const char *const types[] = {"cg",     "groppcg", "pipecg", "pipecgrr", "pipelcg",  "cgne", "nash",  "stcg", "gltr",   "fcg",  "pipefcg", "gmres",  "pipefgmres", "fgmres", "lgmres", "dgmres",  "pgmres", "tcqmr",      "bcgs",     "ibcgs",
                                      "qmrcgs", "fbcgs",   "fbcgsr", "bcgsl",    "pipebcgs", "cgs",  "tfqmr", "cr",   "pipecr", "lsqr", "bicg",    "minres", "symmlq",     "lcd",    "gcr",    "pipegcr", "cgls",   "richardson", "chebyshev"};
  Mat                      A;
  KSP                      ksp;

  PetscFunctionBegin;
  PetscCall(Grid(w, 6, 0, &A));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    PetscCall(NewKSP(w, w->comm, A, types[k], !strcmp(types[k], "lsqr") || !strcmp(types[k], "cgls") ? "none" : "jacobi", &ksp));
    PetscCall(Solve(w, ksp, A));
    PetscCall(Solve(w, ksp, A));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_pcs(World *w)
{
  static const char *const types[] = {"none", "jacobi", "pbjacobi", "bjacobi", "asm", "gasm", "sor", "eisenstat", "gamg", "redundant", "telescope", "ksp", "svd", "kaczmarz", "mg", "redistribute", "lmvm", "hmg", "ilu", "icc", "lu", "cholesky"};
  PetscMPIInt              ranks;
  Mat                      A;
  KSP                      ksp;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(w->comm, &ranks));
  PetscCall(Grid(w, 6, 0, &A));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    if (ranks > 1 && (!strcmp(types[k], "ilu") || !strcmp(types[k], "icc") || !strcmp(types[k], "lu") || !strcmp(types[k], "cholesky") || !strcmp(types[k], "eisenstat"))) continue;
    if (!strcmp(types[k], "lmvm") || !strcmp(types[k], "mg") || !strcmp(types[k], "hmg")) continue;
    PetscCall(NewKSP(w, w->comm, A, "fgmres", types[k], &ksp));
    if (!strcmp(types[k], "eisenstat")) PetscCall(KSPSetType(ksp, "cg"));
    PetscCall(Solve(w, ksp, A));
    PetscCall(MatScale(A, 2));
    PetscCall(Solve(w, ksp, A));
    PetscCall(MatScale(A, 0.5));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_matsolve(World *w)
{
  Mat       A, X, B;
  KSP       ksp;
  PetscInt  n;
  const int columns = 3;

  PetscFunctionBegin;
  PetscCall(Grid(w, 6, 0, &A));
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(MatCreateDense(w->comm, n, PETSC_DECIDE, 36, columns, NULL, &B));
  PetscCall(MatCreateDense(w->comm, n, PETSC_DECIDE, 36, columns, NULL, &X));
  for (int c = 0; c < columns; c++) {
    Vec v;

    PetscCall(MatDenseGetColumnVecWrite(B, c, &v));
    PetscCall(Fill(v, c));
    PetscCall(Perturb(w, v));
    PetscCall(MatDenseRestoreColumnVecWrite(B, c, &v));
  }
  PetscCall(Assemble(X));
  for (int t = 0; t < 3; t++) {
    PetscCall(NewKSP(w, w->comm, A, t == 0 ? "cg" : t == 1 ? "preonly" : w->plain ? "cg" : "gpucg", t == 1 ? "redundant" : "jacobi", &ksp));
    PetscCall(KSPMatSolve(ksp, B, X));
    for (int c = 0; c < columns; c++) {
      Vec v;

      PetscCall(MatDenseGetColumnVecRead(X, c, &v));
      PetscCall(TellFoundVec(w, v, 0));
      PetscCall(MatDenseRestoreColumnVecRead(X, c, &v));
    }
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&X));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_comms(World *w)
{
  PetscSubcomm sub;
  PetscMPIInt  ranks;
  MPI_Comm     comm, dup;
  Mat          A, B, C;
  KSP          ksp;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(w->comm, &ranks));
  PetscCall(PetscSubcommCreate(w->comm, &sub));
  PetscCall(PetscSubcommSetNumber(sub, ranks > 1 ? 2 : 1));
  PetscCall(PetscSubcommSetType(sub, PETSC_SUBCOMM_INTERLACED));
  PetscCall(PetscSubcommGetChild(sub, &comm));
  PetscCallMPI(MPI_Comm_dup(w->comm, &dup));
  PetscCall(GridOn(w, comm, 6, 0, &A));
  PetscCall(GridOn(w, dup, 5, 0, &B));
  PetscCall(GridOn(w, PETSC_COMM_SELF, 4, 1, &C));
  PetscCall(TellProducts(w, A));
  PetscCall(TellProducts(w, B));
  PetscCall(TellProducts(w, C));
  PetscCall(NewKSP(w, comm, A, w->plain ? "cg" : "gpucg", "jacobi", &ksp));
  PetscCall(Solve(w, ksp, A));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(NewKSP(w, dup, B, "cg", "gamg", &ksp));
  PetscCall(Solve(w, ksp, B));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscCall(MatDestroy(&C));
  PetscCall(PetscSubcommDestroy(&sub));
  PetscCallMPI(MPI_Comm_free(&dup));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PCDEFLATION keeps its spaces' products from the first solve (PETSc 3.18 to 3.24). New values need a new PC: with the old products the solve stagnates, and then follows rounding */
static PetscErrorCode TellResidual(KSP ksp, PetscInt step, PetscReal norm, void *ctx)
{
  Vec       b;
  PetscReal first;

  PetscFunctionBegin;
  (void)step;
  PetscCall(KSPGetRhs(ksp, &b));
  PetscCall(VecNorm(b, NORM_2, &first));
  PetscCall(TellFound((World *)ctx, (double)norm, (double)(TEST_C * PETSC_MACHINE_EPSILON * first)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_deflation(World *w)
{
  Mat         A;
  KSP         ksp;
  PC          pc;
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(w->comm, &size));
  PetscCall(Grid(w, 6, 0, &A));
  for (int round = 0; round < 2; round++) {
    Vec      x, b;
    PetscInt steps;

    PetscCall(NewKSP(w, w->comm, A, "fgmres", "deflation", &ksp));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCDeflationSetReductionFactor(pc, size)); /* a PETSc of its own has no factorization on several ranks */
    PetscCall(Solve(w, ksp, A));
    PetscCall(KSPGetIterationNumber(ksp, &steps));
    PetscCall(TellNear(w, (double)steps, 1)); /* a norm may pass the tolerance a step later */
    PetscCall(MatScale(A, 2));
    PetscCall(MatShift(A, 1));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(Fill(b, 5));
    PetscCall(Perturb(w, b));
    PetscCall(KSPSetTolerances(ksp, 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, 5)); /* with the products of before */
    PetscCall(KSPMonitorSet(ksp, TellResidual, w, NULL));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(TellFoundVec(w, x, 0));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix that is scaled by its diagonal, once. PCEISENSTAT, which PETSc has for one process, puts another operator in its place for a solve */
static PetscErrorCode Case_scaled(World *w)
{
  static const char *const types[][2] = {
    {"gpucg",     "cg"    },
    {"gpubcgs",   "bcgs"  },
    {"gpugmres",  "gmres" },
    {"gpufgmres", "fgmres"}
  };
  PetscMPIInt ranks;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(w->comm, &ranks));
  for (int t = 0; t < 8; t++) {
    Mat       A;
    KSP       ksp;
    Vec       x, b;
    PetscReal norm;

    PetscCall(Grid(w, 8, 0, &A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(NewKSP(w, w->comm, A, types[t / 2][w->plain], t % 2 || t == 6 || ranks > 1 ? "jacobi" : "eisenstat", &ksp));
    PetscCall(KSPSetDiagonalScale(ksp, PETSC_TRUE));
    for (int solve = 0; solve < 3; solve++) {
      PetscCall(Fill(b, 3 + solve));
      PetscCall(Perturb(w, b));
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(TellFoundVec(w, x, 0));
      PetscCall(MatNorm(A, NORM_FROBENIUS, &norm));
      PetscCall(TellFound(w, (double)norm, 0));
    }
    PetscCall(KSPDestroy(&ksp));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's PC is made anew: it may take a later pattern for the factored one, as in 3.24 */
static PetscErrorCode SolveAnew(World *w, KSP ksp, Mat A)
{
  PC pc;

  PetscFunctionBegin;
  if (w->plain) {
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCReset(pc));
    PetscCall(KSPSetOperators(ksp, A, A));
  }
  PetscCall(Solve(w, ksp, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc counts the patterns of a sum anew, and may come back to the number of the factored one */
static PetscErrorCode Case_patterns(World *w)
{
  Mat         A, B, P;
  KSP         ksp;
  PetscMPIInt ranks;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(w->comm, &ranks));
  for (int k = 0; k < 8; k++) {
    const int sums = k / 2, direct = k % 2 && ranks == 1;

    PetscCall(Grid(w, 8, 1, &A));
    for (int to = 0; to < 2 * direct; to++) PetscCall(MatConvert(A, to && !w->plain ? "gpucsr" : MATAIJ, MAT_INPLACE_MATRIX, &A));
    PetscCall(NewKSP(w, w->comm, A, direct ? "preonly" : w->plain ? "gmres" : "gpugmres", ranks > 1 ? (k % 2 ? "redundant" : "bjacobi") : direct ? "lu" : "ilu", &ksp));
    PetscCall(Solve(w, ksp, A));
    PetscCall(MatZeroRows(A, 3, (PetscInt[]){3, 17, 40}, 2.0, NULL, NULL));
    for (int sum = 0; sum < sums; sum++) {
      PetscCall(direct ? Ragged(w, 64, &B) : MatDuplicate(A, MAT_COPY_VALUES, &B));
      PetscCall(MatAXPY(A, direct ? 0.0625 : 1.0, B, DIFFERENT_NONZERO_PATTERN));
      PetscCall(MatDestroy(&B));
    }
    if (ranks > 1 && k % 2) { /* the pattern changes while the matrix is a MATAIJ */
      PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &B));
      PetscCall(MatMatMult(B, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &P));
      PetscCall(MatConvert(A, MATAIJ, MAT_INPLACE_MATRIX, &A));
      PetscCall(MatAXPY(A, 0.0625, P, DIFFERENT_NONZERO_PATTERN));
      if (!w->plain) PetscCall(MatConvert(A, "gpucsr", MAT_INPLACE_MATRIX, &A));
      PetscCall(MatDestroy(&B));
      PetscCall(MatDestroy(&P));
    }
    PetscCall(TellProducts(w, A));
    PetscCall(SolveAnew(w, ksp, A));
    for (int to = 0; to < 2; to++) { /* another type and pattern: the PC keeps the solver type of its first factor */
      PetscInt r;

      PetscCall(MatConvert(A, to && !w->plain ? "gpucsr" : MATAIJ, MAT_INPLACE_MATRIX, &A));
      PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
      PetscCall(MatGetOwnershipRange(A, &r, NULL));
      PetscCall(MatSetValue(A, r, r + 3 + to, 0.25, INSERT_VALUES));
      PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
      PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
      PetscCall(SolveAnew(w, ksp, A));
    }
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A monitor ends a solve: by the reason, or by the number of iterations, which another one may have made larger */
static PetscErrorCode Ends(KSP ksp, PetscInt it, PetscReal norm, void *how)
{
  PetscFunctionBegin;
  (void)norm;
  if (it == 3 && *(int *)how == 0) ksp->reason = KSP_CONVERGED_ITS;
  if (it == 3 && *(int *)how) PetscCall(KSPSetTolerances(ksp, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, *(int *)how));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_ended(World *w)
{
  static const char *const types[][2] = {
    {"gpucg",     "cg"    },
    {"gpubcgs",   "bcgs"  },
    {"gpugmres",  "gmres" },
    {"gpufgmres", "fgmres"}
  };

  PetscFunctionBegin;
  for (int t = 0; t < 12; t++) {
    Mat      A;
    KSP      ksp;
    Vec      x, b;
    PetscInt its;
    int      how = t % 3 == 0 ? 0 : t % 3 == 1 ? 5 : 9;

    if (t % 3 == 2 && t > 5) continue; /* of GMRES a cycle has no more columns than were asked for at its start */
    PetscCall(Grid(w, 8, 0, &A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(Fill(b, 3));
    PetscCall(Perturb(w, b));
    PetscCall(NewKSP(w, w->comm, A, types[t / 3][w->plain], "jacobi", &ksp));
    PetscCall(KSPSetTolerances(ksp, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, t % 3 == 2 ? 6 : PETSC_DEFAULT));
    PetscCall(KSPMonitorSet(ksp, Ends, &how, NULL));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetIterationNumber(ksp, &its));
    PetscCall(Tell(w, (double)its));
    PetscCall(TellFoundVec(w, x, 0));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Program programs[] = {
  {"swap",      Case_swap     },
  {"zerorows",  Case_zerorows },
  {"flight",    Case_flight   },
  {"factors",   Case_factors  },
  {"solvers",   Case_solvers  },
  {"pcs",       Case_pcs      },
  {"matsolve",  Case_matsolve },
  {"comms",     Case_comms    },
  {"deflation", Case_deflation},
  {"scaled",    Case_scaled   },
  {"patterns",  Case_patterns },
  {"ended",     Case_ended    },
};

int main(int argc, char **argv)
{
  return ProgramsMain(argc, argv, help, PETSC_STATIC_ARRAY_LENGTH(programs), programs);
}

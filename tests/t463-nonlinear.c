//TEST name="default" args="-pc_gamg_gpucsr false -vec_gpu_separate -mat_gpucsr_format csr"
//TEST name="ranks2" nsize=2 args="-pc_gamg_gpucsr false -vec_gpu_separate -mat_gpucsr_format csr"
//TEST name="standin" args="-pc_gamg_gpucsr false -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0" gpu=0
//TEST name="standin2" nsize=2 args="-pc_gamg_gpucsr false -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0" gpu=0
//TEST name="aij" args="-mat_type aij"

/* A program's uses of nonlinear and time-dependent solvers: IMEX, Newton and the methods without a Jacobian, matrix-free products (programs.h) */
static char help[] = "Tests what a program may do and few do: nonlinear.\n";

#include "programs.h"
#include <petscts.h>

/* u' = diffusion, implicit, + reaction, explicit */
static PetscErrorCode Reaction(TS ts, PetscReal t, Vec u, Vec f, void *ctx)
{
  const PetscScalar *a;
  PetscScalar       *b;
  PetscInt           n;

  PetscFunctionBegin;
  (void)ts;
  (void)t;
  (void)ctx;
  PetscCall(VecGetLocalSize(u, &n));
  PetscCall(VecGetArrayRead(u, &a));
  PetscCall(VecGetArrayWrite(f, &b));
  for (PetscInt k = 0; k < n; k++) b[k] = a[k] * (1 - a[k]);
  PetscCall(VecRestoreArrayWrite(f, &b));
  PetscCall(VecRestoreArrayRead(u, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diffusion(TS ts, PetscReal t, Vec u, Vec udot, Vec f, void *ctx)
{
  PetscFunctionBegin;
  (void)ts;
  (void)t;
  PetscCall(MatMult((Mat)ctx, u, f));
  PetscCall(VecAXPY(f, 1, udot));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Jacobian(TS ts, PetscReal t, Vec u, Vec udot, PetscReal shift, Mat J, Mat P, void *ctx)
{
  PetscFunctionBegin;
  (void)ts;
  (void)t;
  (void)u;
  (void)udot;
  PetscCall(MatCopy((Mat)ctx, P, SAME_NONZERO_PATTERN));
  PetscCall(MatShift(P, shift));
  if (J != P) PetscCall(Assemble(J));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_imex(World *w)
{
  static const char *const types[] = {"arkimex", "theta", "bdf", "rosw", "euler"};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    Mat  A, J;
    Vec  u;
    TS   ts;
    SNES snes;
    KSP  ksp;

    PetscCall(Grid(w, 6, 0, &A));
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &J));
    PetscCall(MatCreateVecs(A, &u, NULL));
    PetscCall(Fill(u, 1));
    PetscCall(VecScale(u, 0.1));
    PetscCall(Perturb(w, u));
    PetscCall(TSCreate(w->comm, &ts));
    PetscCall(TSSetType(ts, types[k]));
    if (strcmp(types[k], "euler")) {
      PetscCall(TSSetIFunction(ts, NULL, Diffusion, A));
      PetscCall(TSSetIJacobian(ts, J, J, Jacobian, A));
    }
    if (!strcmp(types[k], "arkimex") || !strcmp(types[k], "euler")) PetscCall(TSSetRHSFunction(ts, NULL, Reaction, NULL));
    PetscCall(TSSetTimeStep(ts, 0.01));
    PetscCall(TSSetMaxSteps(ts, 5));
    PetscCall(TSSetMaxTime(ts, 1));
    PetscCall(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_STEPOVER));
    {
      TSAdapt adapt;

      PetscCall(TSGetAdapt(ts, &adapt));
      PetscCall(TSAdaptSetType(adapt, TSADAPTNONE));
    }
    PetscCall(TSGetSNES(ts, &snes));
    PetscCall(SNESSetTolerances(snes, 1e-13, 1e-11, PETSC_DEFAULT, 20, 1000));
    PetscCall(SNESGetKSP(snes, &ksp));
    PetscCall(KSPSetTolerances(ksp, 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, 200));
    PetscCall(TSSolve(ts, u));
    PetscCall(TellFoundVec(w, u, 0));
    PetscCall(TSDestroy(&ts));
    PetscCall(VecDestroy(&u));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&J));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A x + x^3 = b */
static PetscErrorCode Cubic(SNES snes, Vec x, Vec f, void *ctx)
{
  Vec t;

  PetscFunctionBegin;
  (void)snes;
  PetscCall(MatMult((Mat)ctx, x, f));
  PetscCall(VecDuplicate(x, &t));
  PetscCall(VecPointwiseMult(t, x, x));
  PetscCall(VecPointwiseMult(t, t, x));
  PetscCall(VecAXPY(f, 1, t));
  PetscCall(VecShift(f, -1));
  PetscCall(VecDestroy(&t));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What rounds in an entry of it */
static PetscErrorCode FunctionRounds(Mat A, Vec x, PetscReal *rounding)
{
  PetscReal most, norm;

  PetscFunctionBegin;
  PetscCall(VecNorm(x, NORM_INFINITY, &most));
  PetscCall(MatNorm(A, NORM_INFINITY, &norm));
  *rounding = TEST_C * PETSC_MACHINE_EPSILON * (norm * most + most * most * most + 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CubicJacobian(SNES snes, Vec x, Mat J, Mat P, void *ctx)
{
  Vec t;

  PetscFunctionBegin;
  (void)snes;
  PetscCall(MatCopy((Mat)ctx, P, SAME_NONZERO_PATTERN));
  PetscCall(VecDuplicate(x, &t));
  PetscCall(VecPointwiseMult(t, x, x));
  PetscCall(VecScale(t, 3));
  PetscCall(MatDiagonalSet(P, t, ADD_VALUES));
  PetscCall(VecDestroy(&t));
  if (J != P) PetscCall(Assemble(J));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_free(World *w)
{
  static const char *const types[] = {"newtonls", "newtontr", "nrichardson", "anderson", "qn", "ncg", "ksponly"};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    Mat                 A, P;
    Vec                 x;
    SNES                snes;
    KSP                 ksp;
    SNESConvergedReason reason;

    PetscCall(Grid(w, 6, 0, &A));
    PetscCall(PerturbMat(w, A));
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &P));
    PetscCall(MatCreateVecs(A, &x, NULL));
    PetscCall(SNESCreate(w->comm, &snes));
    PetscCall(SNESSetType(snes, types[k]));
    PetscCall(SNESSetFunction(snes, NULL, Cubic, A));
    PetscCall(SNESSetJacobian(snes, P, P, CubicJacobian, A));
    PetscCall(SNESSetTolerances(snes, 1e-12, 1e-10, PETSC_DEFAULT, 2000, 100000));
    PetscCall(SNESGetKSP(snes, &ksp));
    PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 200));
    PetscCall(SNESSetFromOptions(snes));
    PetscCall(SNESSolve(snes, NULL, x));
    PetscCall(SNESGetConvergedReason(snes, &reason));
    PetscCall(Tell(w, reason > 0));
    if (reason > 0) PetscCall(TellFoundVec(w, x, 0)); /* a diverging solve follows rounding */
    PetscCall(SNESDestroy(&snes));
    PetscCall(VecDestroy(&x));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&P));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each iterate while rounding is small: NGMRES goes back from its solution here, eight times as far with each step, whatever the types, until it diverges */
static PetscErrorCode TellIterate(SNES snes, PetscInt step, PetscReal norm, void *ctx)
{
  Vec       x;
  PetscInt  n;
  PetscReal rounding;
  void     *A;

  PetscFunctionBegin;
  (void)step;
  PetscCall(SNESGetFunction(snes, NULL, NULL, &A));
  PetscCall(SNESGetSolution(snes, &x));
  PetscCall(VecGetSize(x, &n));
  PetscCall(FunctionRounds((Mat)A, x, &rounding));
  PetscCall(TellFound((World *)ctx, (double)norm, (double)(PetscSqrtReal((PetscReal)n) * rounding)));
  PetscCall(TellFoundVec((World *)ctx, x, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case_ngmres(World *w)
{
  static const char *const types[] = {"ngmres", "anderson"};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    Mat                 A;
    Vec                 x;
    SNES                snes;
    SNESConvergedReason reason;

    PetscCall(Grid(w, 6, 0, &A));
    PetscCall(PerturbMat(w, A));
    PetscCall(MatCreateVecs(A, &x, NULL));
    PetscCall(SNESCreate(w->comm, &snes));
    PetscCall(SNESSetType(snes, types[k]));
    PetscCall(SNESSetFunction(snes, NULL, Cubic, A));
    PetscCall(SNESSetTolerances(snes, 0, 0, 0, k ? 6 : 8, 100000));
    PetscCall(SNESMonitorSet(snes, TellIterate, w, NULL));
    PetscCall(SNESSolve(snes, NULL, x));
    PetscCall(SNESGetConvergedReason(snes, &reason));
    PetscCall(Tell(w, reason));
    PetscCall(SNESDestroy(&snes));
    PetscCall(VecDestroy(&x));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The Jacobian's products by differences, of the function's vectors; its preconditioner of the matrix under test */
static PetscErrorCode Case_mffd(World *w)
{
  static const char *const pcs[] = {"jacobi", "bjacobi", "gamg", "none"};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(pcs); k++) {
    Mat                 A, P, J;
    Vec                 x, y, z, f, step;
    SNES                snes;
    KSP                 ksp;
    PC                  pc;
    SNESConvergedReason reason;
    PetscReal           rounding = 0, last, norm;
    PetscScalar         h;

    PetscCall(Grid(w, 6, 1, &A));
    PetscCall(PerturbMat(w, A));
    PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &P));
    PetscCall(MatCreateVecs(A, &x, &f));
    PetscCall(SNESCreate(w->comm, &snes));
    PetscCall(SNESSetFunction(snes, f, Cubic, A)); /* with its vector, which MatCreateSNESMF() asks for the sizes */
    PetscCall(MatCreateSNESMF(snes, &J));
    PetscCall(MatSetOptionsPrefix(J, "free_")); /* its first product reads the options: -mat_type without a prefix would change the type meanwhile */
    PetscCall(SNESSetJacobian(snes, J, P, CubicJacobian, A));
    PetscCall(SNESSetTolerances(snes, 1e-12, 1e-10, PETSC_DEFAULT, 50, 100000));
    PetscCall(SNESGetKSP(snes, &ksp));
    PetscCall(KSPSetTolerances(ksp, 1e-5, PETSC_DEFAULT, PETSC_DEFAULT, 200));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, pcs[k]));
    PetscCall(SNESSolve(snes, NULL, x));
    PetscCall(SNESGetConvergedReason(snes, &reason));
    PetscCall(Tell(w, reason > 0));
    PetscCall(VecDuplicate(x, &y));
    PetscCall(VecDuplicate(x, &z));
    PetscCall(Fill(z, 4));
    PetscCall(Assemble(J)); /* at the solution, not where the last step began with the function of where it ended */
    PetscCall(MatMult(J, z, y));
    PetscCall(FunctionRounds(A, x, &rounding));
    PetscCall(MatMFFDGetH(J, &h));
    rounding /= PetscAbsScalar(h); /* of a difference of two values */
    PetscCall(TellFoundVec(w, y, (double)rounding));
    PetscCall(SNESGetSolutionUpdate(snes, &step)); /* the last step is a solution with these products, which h makes nearly equal; |J^-1| < 1, since rows are dominant by 1 */
    PetscCall(VecNorm(step, NORM_2, &last));
    PetscCall(VecNorm(z, NORM_2, &norm));
    PetscCall(TellFoundVec(w, x, (double)(rounding * last / norm)));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&z));
    PetscCall(SNESDestroy(&snes));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&f));
    PetscCall(MatDestroy(&J));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&P));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Program programs[] = {
  {"imex",   Case_imex  },
  {"free",   Case_free  },
  {"ngmres", Case_ngmres},
  {"mffd",   Case_mffd  },
};

int main(int argc, char **argv)
{
  return ProgramsMain(argc, argv, help, PETSC_STATIC_ARRAY_LENGTH(programs), programs);
}

//TEST name="without" args="-solver gpucsr"
//TEST name="standin" args="-solver gpucsr -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda" gpu=0

/*
  PETSc's solvers around LU: Newton's method with lagging, time steps with one operator and then another step, and fields. t633-cudss.sh runs them with -solver cudss, and multigrid (-coarse) whose coarse
  solutions cuDSS' stand-in makes wrong for a while. Each must end as with MATAIJ and PETSc's
  factor: after as many iterations, which show an outdated factor, and with the same solution to the tolerance of the solvers.
*/
#include "testing.h"
#include <petscts.h>

typedef struct {
  Vec      x;
  PetscInt its[2];
} End;

/* F(u) = A u + u^3 - 1 */
static PetscErrorCode Function(SNES snes, Vec u, Vec f, void *A)
{
  Vec w;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(u, &w));
  PetscCall(VecPointwiseMult(w, u, u));
  PetscCall(VecPointwiseMult(w, w, u));
  PetscCall(VecShift(w, -1.0));
  PetscCall(MatMultAdd((Mat)A, u, w, f));
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Jacobian(SNES snes, Vec u, Mat J, Mat P, void *A)
{
  Vec w;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(u, &w));
  PetscCall(VecPointwiseMult(w, u, u));
  PetscCall(VecScale(w, 3.0));
  PetscCall(MatCopy((Mat)A, P, SAME_NONZERO_PATTERN));
  PetscCall(MatDiagonalSet(P, w, ADD_VALUES));
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Newton(Mat A, End *e)
{
  SNES                snes;
  SNESConvergedReason reason;
  Mat                 J;

  PetscFunctionBegin;
  PetscCall(MatScale(A, 0.01)); /* the cubes weigh as much */
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &J));
  PetscCall(SNESCreate(PETSC_COMM_SELF, &snes));
  PetscCall(SNESSetFunction(snes, NULL, Function, A));
  PetscCall(SNESSetJacobian(snes, J, J, Jacobian, A));
  PetscCall(SNESSetFromOptions(snes));
  PetscCall(SNESSolve(snes, NULL, e->x));
  PetscCall(SNESGetIterationNumber(snes, &e->its[0]));
  PetscCall(SNESGetLinearSolveIterations(snes, &e->its[1]));
  PetscCall(SNESGetConvergedReason(snes, &reason));
  PetscCheck(reason > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Newton's method ends with %s", SNESConvergedReasons[reason]);
  PetscCall(SNESDestroy(&snes));
  PetscCall(MatDestroy(&J));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* u' = -A u */
static PetscErrorCode Steps(Mat A, End *e)
{
  TS ts;

  PetscFunctionBegin;
  PetscCall(MatScale(A, -1.0));
  PetscCall(TestFill(e->x, 3, PETSC_FALSE));
  PetscCall(TSCreate(PETSC_COMM_SELF, &ts));
  PetscCall(TSSetProblemType(ts, TS_LINEAR));
  PetscCall(TSSetRHSFunction(ts, NULL, TSComputeRHSFunctionLinear, NULL));
  PetscCall(TSSetRHSJacobian(ts, A, A, TSComputeRHSJacobianConstant, NULL));
  PetscCall(TSSetExactFinalTime(ts, TS_EXACTFINALTIME_STEPOVER));
  PetscCall(TSSetMaxTime(ts, 1e3));
  for (PetscInt k = 1; k < 3; k++) {
    PetscCall(TSSetTimeStep(ts, 0.1 * (PetscReal)k));
    PetscCall(TSSetMaxSteps(ts, 5 * k));
    PetscCall(TSSetFromOptions(ts));
    PetscCall(TSSolve(ts, e->x));
  }
  PetscCall(TSGetStepNumber(ts, &e->its[0]));
  PetscCall(TSGetKSPIterations(ts, &e->its[1]));
  PetscCall(TSDestroy(&ts));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two fields, and the same with new values */
static PetscErrorCode Fields(Mat A, End *e)
{
  KSP                ksp;
  KSPConvergedReason reason;
  PC                 pc;
  Vec                b;
  IS                 is;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatCreateVecs(A, NULL, &b));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCFIELDSPLIT));
  for (PetscInt k = 0; k < 2; k++) {
    PetscCall(ISCreateStride(PETSC_COMM_SELF, n / 2, k * n / 2, 1, &is));
    PetscCall(PCFieldSplitSetIS(pc, NULL, is));
    PetscCall(ISDestroy(&is));
  }
  PetscCall(KSPSetFromOptions(ksp));
  for (PetscInt k = 0; k < 2; k++) {
    if (k) PetscCall(MatShift(A, 1.0));
    PetscCall(KSPSolve(ksp, b, e->x));
    PetscCall(KSPGetIterationNumber(ksp, &e->its[k]));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCheck(reason > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A solve by fields ends with %s", KSPConvergedReasons[reason]);
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A coarse problem whose solution is refused once, then solves with the same and with new values */
static PetscErrorCode Coarse(MPI_Comm comm, const char solver[])
{
  static const char *const coarse[] = {"-mg_coarse_pc_type lu -mg_coarse_pc_factor_mat_solver_type", "-mg_coarse_pc_type bjacobi -mg_coarse_sub_pc_type lu -mg_coarse_sub_pc_factor_mat_solver_type"};
  static const char *const types[]  = {KSPGMRES, KSPCG, "gpucg"};
  PetscMPIInt              size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(comm, &size));
  for (int k = 0; k < 6; k++) {
    char               text[256];
    Mat                A;
    Vec                x, b;
    KSP                ksp;
    PC                 pc;
    KSPConvergedReason reason;

    if (k % 2 == 0 && size > 1) continue;
    PetscCall(PetscSNPrintf(text, sizeof(text), "-pc_type gamg -pc_gamg_coarse_eq_limit 60 %s %s", coarse[k % 2], solver));
    PetscCall(PetscOptionsInsertString(NULL, text));
    PetscCall(TestConvection(comm, 20, 0.0, PETSC_FALSE, &A));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(VecSet(b, 1.0));
    PetscCall(KSPCreate(comm, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetFromOptions(pc));
    PetscCall(KSPSetType(ksp, types[k / 2]));
    for (int pass = 0; pass < 5; pass++) {
      const PetscBool wrong = (PetscBool)(pass % 3 == 0);

      PetscCall(TestEnv("FAKE_CUDSS_WRONG", wrong ? "2" : NULL));
      if (pass > 1) PetscCall(MatScale(A, 2.0));
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(KSPGetConvergedReason(ksp, &reason));
      PetscCheck(wrong ? reason == KSP_DIVERGED_PC_FAILED : reason > 0, comm, PETSC_ERR_PLIB, "%s with %s, solve %d: ends with %s", types[k / 2], text, pass, KSPConvergedReasons[reason]);
    }
    PetscCall(KSPDestroy(&ksp));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  PetscErrorCode (*run)(Mat, End *);
  const char *options;
} programs[] = {
  {Newton, "-ksp_type preonly -pc_type lu"                                                                                                                             },
  {Newton, "-ksp_type preonly -pc_type lu -snes_lag_preconditioner 2"                                                                                                  },
  {Newton, "-ksp_type gmres -pc_type lu -snes_lag_preconditioner 2"                                                                                                    },
  {Newton, "-ksp_type preonly -pc_type lu -snes_lag_jacobian 3 -snes_lag_preconditioner 1"                                                                             },
  {Newton, "-ksp_type gmres -pc_type lu -snes_lag_preconditioner -2"                                                                                                   },
  {Steps,  "-ts_type beuler -ksp_type preonly -pc_type lu"                                                                                                             },
  {Steps,  "-ts_type cn -ksp_type preonly -pc_type lu"                                                                                                                 },
  {Steps,  "-ts_type rosw -ksp_type gmres -pc_type lu -ts_adapt_type none"                                                                                             },
  {Fields, "-ksp_type fgmres -pc_type fieldsplit -pc_fieldsplit_type additive -fieldsplit_ksp_type preonly -fieldsplit_pc_type lu"                                     },
  {Fields, "-ksp_type gmres -pc_type fieldsplit -pc_fieldsplit_type multiplicative -fieldsplit_ksp_type preonly -fieldsplit_pc_type lu"                                },
  {Fields, "-ksp_type fgmres -pc_type fieldsplit -pc_fieldsplit_type schur -pc_fieldsplit_schur_precondition selfp -fieldsplit_ksp_type preonly -fieldsplit_pc_type lu"},
  {Fields, "-ksp_type gpugmres -pc_type fieldsplit -pc_fieldsplit_type schur -pc_fieldsplit_schur_precondition a11 -fieldsplit_ksp_type preonly -fieldsplit_pc_type lu"},
};

static PetscErrorCode Run(int p, PetscBool ref, const char solver[], End *e)
{
  char text[128];
  Mat  A;

  PetscFunctionBegin;
  PetscCall(PetscOptionsInsertString(NULL, programs[p].options));
  if (ref && strstr(programs[p].options, "gpugmres")) PetscCall(PetscOptionsSetValue(NULL, "-ksp_type", "gmres"));
  PetscCall(PetscSNPrintf(text, sizeof(text), "-pc_factor_mat_solver_type %s -fieldsplit_pc_factor_mat_solver_type %s", ref ? "petsc" : solver, ref ? "petsc" : solver));
  PetscCall(PetscOptionsInsertString(NULL, text));
  PetscCall(TestConvection(PETSC_COMM_SELF, 12, 0.3, ref, &A));
  PetscCall(MatCreateVecs(A, &e->x, NULL));
  PetscCall((*programs[p].run)(A, e));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscOptionsClearValue(NULL, "-snes_lag_preconditioner")); /* time steps have a SNES too */
  PetscCall(PetscOptionsClearValue(NULL, "-snes_lag_jacobian"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char      solver[32] = "cudss";
  PetscBool coarse;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-solver", solver, sizeof(solver), NULL));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-coarse", &coarse));
  if (coarse) PetscCall(Coarse(PETSC_COMM_WORLD, solver));
  for (int p = 0; p < (coarse ? 0 : (int)PETSC_STATIC_ARRAY_LENGTH(programs)); p++) {
    End         e[2] = {{0}};
    const char *w    = programs[p].options;
    Vec         d;
    PetscReal   norm[2];

    for (int ref = 0; ref < 2; ref++) PetscCall(Run(p, (PetscBool)ref, solver, &e[ref]));
    for (int k = 0; k < 2; k++) PetscCheck(e[0].its[k] == e[1].its[k], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: number %d is %" PetscInt_FMT ", of PETSc %" PetscInt_FMT, w, k, e[0].its[k], e[1].its[k]);
    PetscCall(VecDuplicate(e[1].x, &d));
    PetscCall(VecCopy(e[0].x, d));
    PetscCall(VecAXPY(d, -1.0, e[1].x));
    PetscCall(VecNorm(d, NORM_2, &norm[0]));
    PetscCall(VecNorm(e[1].x, NORM_2, &norm[1]));
    PetscCheck(norm[0] <= 1e-7 * norm[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: the solutions differ by %g of %g", w, (double)norm[0], (double)norm[1]);
    PetscCall(VecDestroy(&d));
    for (int ref = 0; ref < 2; ref++) PetscCall(VecDestroy(&e[ref].x));
  }
  PetscCall(PetscFinalize());
  return 0;
}

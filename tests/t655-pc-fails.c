//TEST name="host"
//TEST name="standin" args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_gpu_separate -mat_gpucsr_product_least 0" gpu=0
//TEST name="ranks" nsize=2 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_gpu_separate -mat_gpucsr_product_least 0" gpu=0
//TEST name="gpu" args="-mat_gpucsr_backend cuda" gpu=1

/*
  A preconditioner fails, in its set-up or in an application, on all ranks or on one. Each solver of the library ends as PETSc's solver does, with
  the same reason and number of iterations, or the same error. Solution and residual norm then are visibly no results. The next solve with
  a working preconditioner is not affected.
*/
static char help[] = "Tests solves whose preconditioner fails.\n";

#include "testing.h"
#include <petsc/private/kspimpl.h>

#define K 6 /* points a side of the grid */

static const struct {
  const char *type, *peer, *options;
} methods[] = {
  {"gpucg",     "cg",     ""                                 },
  {"gpucg",     "cg",     "-ksp_norm_type unpreconditioned"  },
  {"gpucg",     "cg",     "-ksp_norm_type natural"           },
  {"gpucg",     "cg",     "-ksp_norm_type none -ksp_max_it 9"},
  {"gpubcgs",   "bcgs",   ""                                 },
  {"gpubcgs",   "bcgs",   "-ksp_pc_side right"               },
  {"gpugmres",  "gmres",  ""                                 },
  {"gpugmres",  "gmres",  "-ksp_pc_side right"               },
  {"gpufgmres", "fgmres", ""                                 },
};

typedef enum {
  SETUP,  /* a shell's set-up */
  FACTOR, /* a pivot that is 0, of a block */
  AGAIN,  /* the same, after a solve that has worked */
  APPLY0, /* the first application */
  APPLY2, /* the third */
  FAILURES
} Failure;
static const char *const failures[] = {"a set-up", "a factor", "a factor of new values", "the first application", "the third application"};

typedef struct {
  PetscInt           applied, fails; /* applications of a shell, and which one fails; -1: the set-up does */
  PetscBool          here;           /* the shell fails on this rank */
  PetscInt           monitored;
  int                ierr;
  KSPConvergedReason reason;
  PetscInt           its;
  PetscReal          norm;
  PetscInt           bad, rows; /* entries of the solution that are no numbers */
} End;

static PetscErrorCode ShellSetUp(PC pc)
{
  End *e;

  PetscFunctionBegin;
  PetscCall(PCShellGetContext(pc, &e));
  if (e->fails < 0 && e->here) PetscCall(PCSetFailedReason(pc, PC_FACTOR_OTHER));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ShellApply(PC pc, Vec x, Vec y)
{
  End *e;

  PetscFunctionBegin;
  PetscCall(PCShellGetContext(pc, &e));
  PetscCall(VecCopy(x, y));
  PetscCall(VecScale(y, 0.25));
  if (e->applied++ == e->fails && e->here) {
    PetscScalar *a;
    PetscInt     n;

    PetscCall(PCSetFailedReason(pc, PC_SUBPC_ERROR));
    PetscCall(VecGetLocalSize(y, &n));
    PetscCall(VecGetArray(y, &a));
    for (PetscInt r = 0; r < n; r++) a[r] = (PetscReal)INFINITY;
    PetscCall(VecRestoreArray(y, &a));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Monitor(KSP ksp, PetscInt it, PetscReal norm, void *ctx)
{
  PetscFunctionBegin;
  (void)ksp;
  (void)it;
  (void)norm;
  ((End *)ctx)->monitored++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Row `row` without its off-diagonal entries, and with 0 on the diagonal, which no factorization without shifts takes; or as it was */
static PetscErrorCode Pivot(Mat A, PetscInt row, PetscBool zero)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  if (row >= rs && row < re) PetscCall(MatSetValue(A, row, row, zero ? 0.0 : 4.0, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Once(KSP ksp, Vec b, Vec x, End *e)
{
  const PetscScalar *a;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(TestFill(x, 2, PETSC_FALSE));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = KSPSolve(ksp, b, x);
  PetscCall(PetscPopErrorHandler());
  e->ierr = (int)ierr;
  PetscCall(KSPGetConvergedReason(ksp, &e->reason));
  PetscCall(KSPGetIterationNumber(ksp, &e->its));
  PetscCall(KSPGetResidualNorm(ksp, &e->norm));
  PetscCall(VecGetLocalSize(x, &e->rows));
  PetscCall(VecGetArrayRead(x, &a));
  e->bad = 0;
  for (PetscInt r = 0; r < e->rows; r++) e->bad += PetscIsInfOrNanScalar(a[r]);
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(PetscBool ref, int method, Failure failure, PetscBool strict, PetscBool guess, PetscBool monitor, End e[2])
{
  const PetscBool factor = (PetscBool)(failure == FACTOR || failure == AGAIN);
  Mat             A;
  KSP             ksp;
  PC              pc;
  Vec             x, b;
  PetscMPIInt     rank, size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscMemzero(e, 2 * sizeof(*e)));
  e[0].fails = failure == SETUP ? -1 : failure == APPLY0 ? 0 : failure == APPLY2 ? 2 : 1000;
  e[0].here  = (PetscBool)(rank == size - 1);
  PetscCall(TestConvection(PETSC_COMM_WORLD, K, 0.0, ref, &A));
  if (failure == FACTOR) PetscCall(Pivot(A, 0, PETSC_TRUE));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 1, PETSC_FALSE));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, ref ? methods[method].peer : methods[method].type));
  PetscCall(KSPSetInitialGuessNonzero(ksp, guess));
  PetscCall(KSPSetErrorIfNotConverged(ksp, strict));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, factor ? PCBJACOBI : PCSHELL));
  if (!factor) {
    PetscCall(PCShellSetContext(pc, e));
    PetscCall(PCShellSetSetUp(pc, ShellSetUp));
    PetscCall(PCShellSetApply(pc, ShellApply));
  }
  PetscCall(PetscOptionsInsertString(NULL, methods[method].options));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_pc_side"));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_norm_type"));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_max_it"));
  if (monitor) PetscCall(KSPMonitorSet(ksp, Monitor, e, NULL));
  if (failure == AGAIN) {
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(Pivot(A, 0, PETSC_TRUE));
    e[0].monitored = 0;
  }
  PetscCall(Once(ksp, b, x, &e[0]));
  if (!strict) {
    e[0].fails     = 1000;
    e[1].monitored = -e[0].monitored;
    if (factor) PetscCall(Pivot(A, 0, PETSC_FALSE));
    else {
      PetscCall(PCSetFailedReason(pc, PC_NOERROR));
      PetscCall(PetscObjectStateIncrease((PetscObject)A));
    }
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(Once(ksp, b, x, &e[1]));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool Finite(PetscReal a)
{
  return (PetscBool)!PetscIsInfOrNanReal(a);
}

int main(int argc, char **argv)
{
  PetscInt    wrong = 0;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(32));
  PetscCall(PetscOptionsSetValue(NULL, "-sub_pc_factor_shift_type", "none")); /* PETSc 3.24 shifts a block's pivot that is 0 */
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (int m = 0; m < (int)PETSC_STATIC_ARRAY_LENGTH(methods); m++)
    for (Failure failure = SETUP; failure < FAILURES; failure++)
      for (int how = 0; how < 8; how++) {
        const PetscBool strict = (PetscBool)(how & 1), guess = (PetscBool)((how >> 1) & 1), monitor = (PetscBool)((how >> 2) & 1);
        const PetscBool none = (PetscBool)(strstr(methods[m].options, "none") != NULL); /* PETSc's monitors may see a norm that was never taken */
        End             e[2], r[2];

        if (strict && size > 1 && failure <= AGAIN) continue; /* an error of one rank, which is no solver's */
        PetscCall(Solve(PETSC_FALSE, m, failure, strict, guess, monitor, e));
        PetscCall(Solve(PETSC_TRUE, m, failure, strict, guess, monitor, r));
        for (int k = 0; k < (strict ? 1 : 2); k++) {
          const PetscBool sooner = (PetscBool)(failure == AGAIN && (size > 1 || !strcmp(methods[m].peer, "bcgs")) && r[k].reason == KSP_DIVERGED_PC_FAILED); /* ranks know of it at the set-up, PETSc's at an application; the count of KSPBCGS is of the solve before */
          const PetscBool same =
            (PetscBool)(e[k].ierr == r[k].ierr && (strict || (e[k].reason == r[k].reason && (sooner || e[k].its == r[k].its) && (Finite(r[k].norm) || !Finite(e[k].norm)) && e[k].bad == r[k].bad && (none || sooner || e[k].monitored == r[k].monitored))));

          if (same) continue;
          wrong++;
          PetscCall(PetscFPrintf(PETSC_COMM_SELF, stderr, "%s %s, %s fails%s%s%s%s: error %d, %s after %" PetscInt_FMT ", norm %g, %" PetscInt_FMT " of %" PetscInt_FMT " entries are no numbers, %" PetscInt_FMT " monitored; PETSc's: error %d, %s after %" PetscInt_FMT ", norm %g, %" PetscInt_FMT ", %" PetscInt_FMT " monitored\n",
                                 methods[m].type, methods[m].options, failures[failure], strict ? ", an error if not converged" : "", guess ? ", a guess" : "", monitor ? ", a monitor" : "", k ? ", the next solve" : "", e[k].ierr,
                                 KSPConvergedReasons[e[k].reason], e[k].its, (double)e[k].norm, e[k].bad, e[k].rows, e[k].monitored, r[k].ierr, KSPConvergedReasons[r[k].reason], r[k].its, (double)r[k].norm, r[k].bad, r[k].monitored));
        }
      }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  PetscCheck(!wrong, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " ends differ from PETSc's", wrong);
  PetscCall(PetscFinalize());
  return 0;
}

/*
  Newton steps: values by an array on the device, a product, and CG with Jacobi (-newton_ksp_type, ...). The matrix of step k is K + s M, with s smaller in each step. With -variable the coefficient of
  an element of K is between 0.5 and 1.5, a hash of the element's number. A line has
    newton  problem, type, master, entries, variable, values_ms, product_ms, solve_ms, step_ms, iterations, residual, copies.
  Times are the best of -steps steps without the first step. step_ms is the best whole step. iterations, residual and copies (of vectors over the bus) belong to the last step.
*/
#include "coo.h"
#include "../problems/random.h"

typedef struct {
  KSP ksp;
  Vec k, m, v; /* contributions: of K, of M, and of the step's matrix */
  Vec x, b, r, dx;
} Newtons;

/* Contributions, on the device after the first step */
static PetscErrorCode Contributions(const Bench *b, const Problem *p, Newtons *w)
{
  const PetscCount each = p->corners * p->corners;
  PetscScalar     *a;

  PetscFunctionBeginUser;
  PetscCall(VecCreate(PETSC_COMM_SELF, &w->k));
  PetscCall(VecSetSizes(w->k, (PetscInt)p->len, PETSC_DECIDE));
  PetscCall(VecSetFromOptions(w->k));
  PetscCall(VecDuplicate(w->k, &w->m));
  PetscCall(VecDuplicate(w->k, &w->v));
  PetscCall(VecGetArrayWrite(w->m, &a));
  PetscCall(PetscArraycpy(a, p->v, (size_t)p->len));
  PetscCall(VecRestoreArrayWrite(w->m, &a));
  PetscCall(VecGetArrayWrite(w->k, &a));
#pragma omp parallel for
  for (PetscCount e = 0; e < p->len; e++) a[e] = (b->variable ? 0.5 + SyntheticUniform(1, 0, (uint64_t)(e / each)) : 1) * (p->v[e] == 2.0 ? p->corners - 1 : -1);
  PetscCall(VecRestoreArrayWrite(w->k, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(const Bench *b, const Problem *p, Mat A, Newtons *w)
{
  PC pc;

  PetscFunctionBeginUser;
  PetscCall(Contributions(b, p, w));
  PetscCall(MatCreateVecs(A, &w->x, &w->b));
  PetscCall(VecDuplicate(w->x, &w->r));
  PetscCall(VecDuplicate(w->x, &w->dx));
  PetscCall(VecSet(w->b, 1.0));
  PetscCall(VecSet(w->x, 0.0));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &w->ksp));
  PetscCall(KSPSetOptionsPrefix(w->ksp, "newton_"));
  PetscCall(KSPSetType(w->ksp, KSPCG));
  PetscCall(KSPGetPC(w->ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetTolerances(w->ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
  PetscCall(KSPSetFromOptions(w->ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(Newtons *w)
{
  PetscFunctionBeginUser;
  PetscCall(KSPDestroy(&w->ksp));
  PetscCall(VecDestroy(&w->k));
  PetscCall(VecDestroy(&w->m));
  PetscCall(VecDestroy(&w->v));
  PetscCall(VecDestroy(&w->x));
  PetscCall(VecDestroy(&w->b));
  PetscCall(VecDestroy(&w->r));
  PetscCall(VecDestroy(&w->dx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ms: of values, product and solve */
static PetscErrorCode Step(const Bench *b, Mat A, Newtons *w, double s, double ms[3])
{
  const PetscScalar *d;
  double             t[4];

  PetscFunctionBeginUser;
  PetscCall(VecWAXPY(w->v, s, w->m, w->k));
  PetscCall(Wait(b));
  t[0] = MPI_Wtime();
  PetscCall(ArrayGet(w->v, &d));
  PetscCall(MatSetValuesCOO(A, d, INSERT_VALUES));
  PetscCall(ArrayRestore(w->v, &d));
  PetscCall(Wait(b));
  t[1] = MPI_Wtime();
  PetscCall(MatMult(A, w->x, w->r));
  PetscCall(VecAYPX(w->r, -1.0, w->b));
  PetscCall(Wait(b));
  t[2] = MPI_Wtime();
  PetscCall(KSPSetOperators(w->ksp, A, A));
  PetscCall(KSPSolve(w->ksp, w->r, w->dx));
  PetscCall(VecAXPY(w->x, 1.0, w->dx));
  PetscCall(Wait(b));
  t[3] = MPI_Wtime();
  for (int k = 0; k < 3; k++) ms[k] = 1e3 * (t[k + 1] - t[k]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode Newton(const Bench *b, const Problem *p, Mat A)
{
  Newtons       w;
  PetscLogStage stage;
  MatInfo       info;
  PetscInt      iterations;
  PetscReal     norm[2];
  double        best[4] = {1e30, 1e30, 1e30, 1e30}, copies;

  PetscFunctionBeginUser;
  PetscCall(Create(b, p, A, &w));
  PetscCall(PetscLogStageRegister(p->name, &stage));
  for (PetscInt k = 0; k <= b->steps; k++) {
    double ms[4];

    if (k == b->steps) PetscCall(PetscLogStagePush(stage));
    PetscCall(Step(b, A, &w, 1e-3 / (double)(1 + k), ms));
    if (k == b->steps) PetscCall(PetscLogStagePop());
    ms[3] = ms[0] + ms[1] + ms[2];
    for (int q = 0; q < 4 && k; q++) best[q] = PetscMin(best[q], ms[q]);
  }
  PetscCall(Copies(stage, &copies));
  PetscCall(KSPGetIterationNumber(w.ksp, &iterations));
  PetscCall(MatMult(A, w.dx, w.x)); /* the last step's equation */
  PetscCall(VecAXPY(w.x, -1.0, w.r));
  PetscCall(VecNorm(w.x, NORM_2, &norm[0]));
  PetscCall(VecNorm(w.r, NORM_2, &norm[1]));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  fprintf(b->out, "{\"record\": \"newton\", \"problem\": \"%s\", \"type\": \"%s\", \"master\": \"%s\", \"entries\": %.0f, \"variable\": %s, \"values_ms\": %.3f, \"product_ms\": %.3f, \"solve_ms\": %.3f, \"step_ms\": %.3f, \"iterations\": %d, \"residual\": %.2e, \"copies\": %.0f}\n", p->name, b->type, b->master,
          info.nz_used, b->variable ? "true" : "false", best[0], best[1], best[2], best[3], (int)iterations, (double)(norm[0] / norm[1]), copies);
  fflush(b->out);
  PetscCall(Destroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

//TEST args="-m 300 -n 40"
//TEST name="ranks3" nsize=3 args="-m 300 -n 40"
//TEST name="wide" args="-m 120 -n 5000"
//TEST name="wide.ranks2" nsize=2 args="-m 120 -n 7000"
//TEST name="host" args="-m 120 -n 5000 -tao_gpubmrm_backend host"
//TEST name="one" args="-m 1 -n 1"
//TEST name="few.ranks3" nsize=3 args="-m 50 -n 2"
//TEST name="cuda" gpu=1 args="-m 300 -n 40 -tao_gpubmrm_backend cuda"
//TEST name="cuda.ranks2" gpu=1 nsize=2 args="-m 120 -n 5000 -tao_gpubmrm_backend cuda"
//TEST name="memory" gpu=1 args="-m 120 -n 5000 -mat_gpucsr_backend auto -mat_gpucsr_memory_limit 1500000" warns="stay on the host"
//TEST name="standin" gpu=0 args="-m 120 -n 5000 -gpucsr_debug_standin 1 -tao_gpubmrm_backend cuda -mat_gpucsr_backend cuda"
//TEST name="standin.planes" gpu=0 args="-m 120 -n 5000 -gpucsr_debug_standin 1 -tao_gpubmrm_backend cuda -mat_gpucsr_backend cuda -tao_gpubmrm_planes 30"
//TEST name="standin.memory" gpu=0 args="-m 120 -n 5000 -gpucsr_debug_standin 1 -mat_gpucsr_backend auto -mat_gpucsr_memory_limit 1500000" warns="stay on the host"
//TEST name="walk" args="-m 90 -n 40 -walk 60"
//TEST name="walk.ranks" nsize={} loop="2 3" args="-m 60 -n 30 -walk 25"
//TEST name="walk.standin" gpu=0 args="-m 90 -n 60 -walk 60 -gpucsr_debug_standin 1 -tao_gpubmrm_backend cuda -mat_gpucsr_backend cuda -vec_type gpu"
//TEST name="walk.late" gpu=0 args="-m 60 -n 40 -walk 30 -gpucsr_debug_standin 1 -gpucsr_debug_defer 2 -tao_gpubmrm_backend cuda -mat_gpucsr_backend cuda"
//TEST name="lambda" args="-m 30 -n 10 -bad_lambda" fails="-tao_bmrm_lambda has to be positive and finite"
//TEST name="nodevice" gpu=0 args="-m 30 -n 10 -tao_gpubmrm_backend cuda" fails="The bundle cannot be kept on the device"
/*
  TAOGPUBMRM against TAOBMRM, on the hinge loss of random rows: the same first iterates, not many more of them, the same optimum. Only the first iterates, whose planes are few, can be compared: TAOBMRM
  solves the inner problem inexactly.

  -walk N: N random changes of values, labels, options and types. After each change the used solver and a new solver end with the same bits.
*/
#include "testing.h"
#include <petsctao.h>

enum {
  SAME = 2 /* iterates that are compared */
};

typedef struct {
  Mat       X;
  Vec       y, s, first[SAME];
  PetscReal lambda, best;
} Problem;

static PetscErrorCode Risk(Tao tao, Vec w, PetscReal *f, Vec g, void *ctx)
{
  Problem           *p = (Problem *)ctx;
  PetscScalar       *s;
  const PetscScalar *y;
  PetscInt           m, M, its;
  PetscReal          sum = 0, norm;

  PetscFunctionBegin;
  PetscCall(MatGetSize(p->X, &M, NULL));
  PetscCall(MatGetLocalSize(p->X, &m, NULL));
  PetscCall(MatMult(p->X, w, p->s));
  PetscCall(VecGetArray(p->s, &s));
  PetscCall(VecGetArrayRead(p->y, &y));
  for (PetscInt i = 0; i < m; i++) {
    const PetscReal t = 1 - PetscRealPart(y[i] * s[i]);

    sum += PetscMax(t, 0);
    s[i] = t > 0 ? -y[i] / (PetscReal)M : 0;
  }
  PetscCall(VecRestoreArrayRead(p->y, &y));
  PetscCall(VecRestoreArray(p->s, &s));
  PetscCallMPI(MPI_Allreduce(&sum, f, 1, MPIU_REAL, MPIU_SUM, PetscObjectComm((PetscObject)w)));
  *f /= (PetscReal)M;
  PetscCall(MatMultTranspose(p->X, p->s, g));
  PetscCall(VecNorm(w, NORM_2, &norm));
  p->best = PetscMin(p->best, *f + 0.5 * p->lambda * norm * norm);
  PetscCall(TaoGetIterationNumber(tao, &its));
  if (its < SAME) PetscCall(VecCopy(w, p->first[its]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* 10 entries a row (or one in each column), between -1 and 1; labels of a random model, a tenth of them wrong */
static PetscErrorCode Create(PetscInt M, PetscInt N, Problem *p)
{
  PetscRandom random;
  PetscInt    rs, re;
  PetscScalar v[10], label;
  PetscInt    j[10];

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, M, N, PETSC_FALSE, &p->X));
  PetscCall(MatSeqAIJSetPreallocation(p->X, 10, NULL));
  PetscCall(MatMPIAIJSetPreallocation(p->X, 10, NULL, 10, NULL));
  PetscCall(MatSetOption(p->X, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatCreateVecs(p->X, &p->first[0], &p->y));
  for (int k = 1; k < SAME; k++) PetscCall(VecDuplicate(p->first[0], &p->first[k]));
  PetscCall(VecDuplicate(p->y, &p->s));
  PetscCall(PetscRandomCreate(PETSC_COMM_SELF, &random));
  PetscCall(PetscRandomSetInterval(random, -1.0, 1.0));
  PetscCall(MatGetOwnershipRange(p->X, &rs, &re));
  for (PetscInt r = 0; r < M; r++) { /* all ranks draw all rows, so that the problem does not depend on their number */
    PetscReal score = 0;

    for (PetscInt k = 0; k < 10; k++) {
      PetscScalar where;

      PetscCall(PetscRandomGetValue(random, &where));
      PetscCall(PetscRandomGetValue(random, &v[k]));
      j[k] = PetscMin((PetscInt)(0.5 * (PetscRealPart(where) + 1) * (PetscReal)N), N - 1);
      score += PetscRealPart(v[k]) * PetscSinReal((PetscReal)j[k]);
    }
    PetscCall(PetscRandomGetValue(random, &label));
    label = (score > 0) == (PetscRealPart(label) > -0.8) ? 1 : -1;
    if (r < rs || r >= re) continue;
    PetscCall(MatSetValues(p->X, 1, &r, 10, j, v, ADD_VALUES));
    PetscCall(VecSetValue(p->y, r, label, INSERT_VALUES));
  }
  PetscCall(PetscRandomDestroy(&random));
  PetscCall(MatAssemblyBegin(p->X, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(p->X, MAT_FINAL_ASSEMBLY));
  PetscCall(VecAssemblyBegin(p->y));
  PetscCall(VecAssemblyEnd(p->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Learn; first[] and best are left in p */
static PetscErrorCode Learn(Problem *p, const char type[], PetscReal epsilon, PetscInt *its, PetscReal *gap)
{
  Tao                tao;
  Vec                w;
  TaoConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(p->first[0], &w));
  for (int k = 0; k < SAME; k++) PetscCall(VecSet(p->first[k], 0.0));
  p->best = PETSC_MAX_REAL;
  PetscCall(TaoCreate(PETSC_COMM_WORLD, &tao));
  PetscCall(TaoSetType(tao, type));
  PetscCall(TaoSetObjectiveAndGradient(tao, NULL, Risk, p));
  PetscCall(TaoSetTolerances(tao, epsilon, 0.0, 0.0));
  PetscCall(TaoSetFromOptions(tao));
  PetscCall(VecSet(w, 0.0));
  PetscCall(TaoSetSolution(tao, w));
  PetscCall(TaoSolve(tao));
  PetscCall(TaoGetSolutionStatus(tao, its, NULL, gap, NULL, NULL, &reason));
  PetscCheck(reason == TAO_CONVERGED_GATOL, PETSC_COMM_WORLD, PETSC_ERR_NOT_CONVERGED, "%s: ended by %s after %" PetscInt_FMT " iterations", type, TaoConvergedReasons[reason], *its);
  PetscCall(TaoDestroy(&tao));
  PetscCall(VecDestroy(&w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  PetscReal epsilon;
  PetscInt  most;
  Vec       start;
} Settings;

static PetscErrorCode Configure(Tao tao, const Settings *set)
{
  PetscFunctionBegin;
  PetscCall(TaoSetType(tao, "gpubmrm"));
  PetscCall(TaoSetTolerances(tao, set->epsilon, 0.0, 0.0));
  PetscCall(TaoSetMaximumIterations(tao, set->most));
  PetscCall(TaoSetFromOptions(tao));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(Tao tao, const Settings *set, Vec *w, PetscInt *its, TaoConvergedReason *reason)
{
  PetscFunctionBegin;
  PetscCall(VecDuplicate(set->start, w));
  PetscCall(VecCopy(set->start, *w));
  PetscCall(TaoSetSolution(tao, *w));
  PetscCall(TaoSolve(tao));
  PetscCall(TaoGetSolutionStatus(tao, its, NULL, NULL, NULL, NULL, reason));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One change, drawn by all ranks alike */
static PetscErrorCode Change(Problem *p, Tao used, Settings *set, int what, int how)
{
  static const char *const lambdas[]  = {"1e-2", "3e-2", "0.2"};
  static const PetscReal   epsilons[] = {1e-2, 1e-4, 1e-6};

  PetscFunctionBegin;
  switch (what) {
  case 0:
    PetscCall(MatScale(p->X, how ? 0.5 : 2.0));
    break;
  case 1:
    PetscCall(VecScale(p->y, -1.0));
    break;
  case 2:
    PetscCall(PetscOptionsSetValue(NULL, "-tao_bmrm_lambda", lambdas[how]));
    p->lambda = atof(lambdas[how]);
    break;
  case 3:
    set->epsilon = epsilons[how];
    break;
  case 4:
    PetscCall(VecSet(set->start, how - 1.0));
    break;
  case 5:
    PetscCall(MatDiagonalScale(p->X, p->y, NULL));
    break;
  case 6:
    PetscCall(TaoSetType(used, how ? TAOBMRM : "gpubmrm"));
    break;
  case 7:
    set->most = how ? 2000 : 4;
    break;
  default:
    PetscCall(TaoSetUp(used));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Walk(Problem *p, PetscInt steps)
{
  Settings    set = {1e-4, 2000, NULL};
  PetscRandom random;
  Tao         used, fresh;

  PetscFunctionBegin;
  PetscCall(PetscRandomCreate(PETSC_COMM_SELF, &random));
  PetscCall(VecDuplicate(p->first[0], &set.start));
  PetscCall(VecSet(set.start, 0.0));
  PetscCall(TaoCreate(PETSC_COMM_WORLD, &used));
  PetscCall(TaoSetObjectiveAndGradient(used, NULL, Risk, p));
  for (PetscInt k = 0; k < steps; k++) {
    PetscReal          what, how;
    PetscInt           its[2];
    TaoConvergedReason reason[2];
    Vec                w[2];
    PetscBool          same;

    PetscCall(PetscRandomGetValueReal(random, &what));
    PetscCall(PetscRandomGetValueReal(random, &how));
    if (k) PetscCall(Change(p, used, &set, (int)(9 * what), (int)(3 * how)));
    PetscCall(TaoCreate(PETSC_COMM_WORLD, &fresh));
    PetscCall(TaoSetObjectiveAndGradient(fresh, NULL, Risk, p));
    PetscCall(Configure(used, &set));
    PetscCall(Configure(fresh, &set));
    PetscCall(Solve(used, &set, &w[0], &its[0], &reason[0]));
    PetscCall(Solve(fresh, &set, &w[1], &its[1], &reason[1]));
    PetscCall(VecEqual(w[0], w[1], &same));
    PetscCheck(same && its[0] == its[1] && reason[0] == reason[1], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Step %" PetscInt_FMT ", change %d (%d): %" PetscInt_FMT " iterations to %s, a new solver %" PetscInt_FMT " to %s%s", k, (int)(9 * what), (int)(3 * how), its[0], TaoConvergedReasons[reason[0]], its[1], TaoConvergedReasons[reason[1]], same ? "" : ", and other weights");
    PetscCall(VecDestroy(&w[0]));
    PetscCall(VecDestroy(&w[1]));
    PetscCall(TaoDestroy(&fresh));
  }
  PetscCall(TaoDestroy(&used));
  PetscCall(VecDestroy(&set.start));
  PetscCall(PetscRandomDestroy(&random));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Beside TAOBMRM */
static PetscErrorCode Compare(Problem *p, PetscBool bad)
{
  Vec       theirs[SAME];
  PetscInt  its = 0, ourits;
  PetscReal gap, best, epsilon = 1e-4, norm, difference;

  PetscFunctionBegin;
  if (!bad) PetscCall(Learn(p, TAOBMRM, epsilon, &its, &gap));
  best = p->best;
  for (int k = 0; k < SAME; k++) {
    PetscCall(VecDuplicate(p->first[k], &theirs[k]));
    PetscCall(VecCopy(p->first[k], theirs[k]));
  }
  PetscCall(Learn(p, "gpubmrm", epsilon, &ourits, &gap));
  for (int k = 0; k < SAME; k++) {
    PetscCall(VecNorm(theirs[k], NORM_2, &norm));
    PetscCall(VecAXPY(p->first[k], -1.0, theirs[k]));
    PetscCall(VecNorm(p->first[k], NORM_2, &difference));
    PetscCheck(difference <= 1e-6 * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Iterate %d differs from that of bmrm by %g of its norm", k, (double)(difference / norm));
    PetscCall(VecDestroy(&theirs[k]));
  }
  PetscCheck(PetscAbsReal(p->best - best) <= 1.01 * epsilon, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "The optimum is %.10g, that of bmrm %.10g", (double)p->best, (double)best);
  PetscCheck(ourits <= 3 + its + its / 4, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " iterations, bmrm takes %" PetscInt_FMT, ourits, its);

  PetscCall(Learn(p, "gpubmrm", 1e-9, &ourits, &gap)); /* as far as TAO's does not come */
  PetscCheck(p->best <= best + 1e-9 && p->best >= best - 1.01 * epsilon, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "The optimum to 1e-9 is %.10g, by bmrm it was at most %g below %.10g", (double)p->best, (double)epsilon, (double)best);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Problem   p;
  PetscInt  M = 300, N = 40, steps = 0;
  PetscBool bad = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-m", &M, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-n", &N, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-walk", &steps, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-bad_lambda", &bad, NULL));
  p.lambda = 1e-2;
  PetscCall(PetscOptionsSetValue(NULL, "-tao_bmrm_lambda", bad ? "-1" : "1e-2"));
  PetscCall(Create(M, N, &p));
  if (steps) PetscCall(Walk(&p, steps));
  else PetscCall(Compare(&p, bad));

  for (int k = 0; k < SAME; k++) PetscCall(VecDestroy(&p.first[k]));
  PetscCall(VecDestroy(&p.s));
  PetscCall(VecDestroy(&p.y));
  PetscCall(MatDestroy(&p.X));
  PetscCall(PetscOptionsClearValue(NULL, "-tao_bmrm_lambda"));
  PetscCall(PetscFinalize());
  return 0;
}

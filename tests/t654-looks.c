//TEST name="host"
//TEST name="standin" args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_gpu_separate -mat_gpucsr_product_least 0" gpu=0
//TEST name="ranks" nsize=2 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -vec_gpu_separate -mat_gpucsr_product_least 0" gpu=0
//TEST name="gpu" args="-mat_gpucsr_backend cuda" gpu=1

/*
  What a program sees of a solve while it runs: the entries of its own solution in a monitor and in a convergence test, KSPBuildSolution(), KSPGetSolution() and KSPGetRhs(), and its contexts. All are as with
  MATAIJ, for each method of the library (its own or wrapped) and for vectors of several kinds. A monitor may remove all monitors or end with an error; the test may change the solution.
*/
static char help[] = "Tests what monitors and convergence tests see of a solve.\n";

#include "testing.h"
#include <petsc/private/kspimpl.h>

#define K     6 /* points a side of the grid */
#define MOST  64
#define STEPS 5 /* iterations of a solve */
#define ERROR 91

/* its name; does its solution change in each iteration? */
static const struct {
  const char *type, *peer, *options;
  PetscBool   changing;
} methods[] = {
  {"cg",      "cg",     "",                     PETSC_TRUE },
  {"bcgs",    "bcgs",   "",                     PETSC_TRUE },
  {"bcgs",    "bcgs",   "-ksp_pc_side right",   PETSC_TRUE },
  {"minres",  "minres", "",                     PETSC_TRUE },
  {"gmres",   "gmres",  "-ksp_gmres_restart 2", PETSC_FALSE},
  {"fgmres",  "fgmres", "-ksp_gmres_restart 2", PETSC_FALSE},
  {"ibcgs",   "ibcgs",  "",                     PETSC_TRUE },
  {"fbcgsr",  "fbcgsr", "",                     PETSC_TRUE },
  {"gpucg",   "cg",     "",                     PETSC_TRUE },
  {"gpubcgs", "bcgs",   "",                     PETSC_TRUE },
};

/* Where the program's vectors are */
typedef enum {
  STANDARD,
  ARRAY, /* around an array of the program */
  GHOSTED,
  DEVICE,
  MIXED, /* the solution as DEVICE, the right-hand side as GHOSTED */
  KINDS
} Kind;

/* The program's work while it looks */
typedef enum {
  LOOKS,
  CANCELS, /* its second monitor cancels all */
  FAILS,   /* its monitor */
  CHANGES, /* its test changes the solution */
  DEEDS
} Deed;
static const char *const deeds[] = {"looks", "cancels", "fails", "changes"};

typedef struct {
  KSP         ksp;
  Vec         x, b, built;
  PetscScalar own[K * K]; /* the array of ARRAY */
  Deed        deed;
  PetscBool   right;
  PetscInt    n, length[MOST]; /* looks so far, and their entries of this process, in order */
  PetscScalar seen[MOST][K * K];
  PetscInt    wrong, cancelled;
} Program;

static PetscErrorCode Look(Program *p, Vec v)
{
  const PetscScalar *a;

  PetscFunctionBegin;
  PetscCheck(p->n < MOST, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Too many looks");
  PetscCall(VecGetLocalSize(v, &p->length[p->n]));
  PetscCall(VecGetArrayRead(v, &a));
  PetscCall(PetscArraycpy(p->seen[p->n], a, p->length[p->n]));
  PetscCall(VecRestoreArrayRead(v, &a));
  p->n++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All that can be seen of the solution */
static PetscErrorCode LookAtAll(Program *p, KSP ksp)
{
  Vec x, b, built;

  PetscFunctionBegin;
  PetscCall(KSPGetSolution(ksp, &x));
  PetscCall(KSPGetRhs(ksp, &b));
  if (x != p->x || b != p->b) p->wrong++;
  PetscCall(Look(p, p->x));
  PetscCall(KSPBuildSolution(ksp, p->built, NULL));
  PetscCall(Look(p, p->built));
  if (p->right) PetscFunctionReturn(PETSC_SUCCESS); /* KSPBCGS needs a vector then */
  PetscCall(KSPBuildSolution(ksp, NULL, &built));
  PetscCall(Look(p, built));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Second(KSP ksp, PetscInt it, PetscReal norm, void *ctx)
{
  Program *p = (Program *)ctx;

  PetscFunctionBegin;
  (void)norm;
  if (it == 2 && p->deed == CANCELS) PetscCall(KSPMonitorCancel(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Monitor(KSP ksp, PetscInt it, PetscReal norm, void *ctx)
{
  Program *p = (Program *)ctx;
  void    *first;

  PetscFunctionBegin;
  (void)norm;
  PetscCall(KSPGetMonitorContext(ksp, &first));
  if (first != p) p->wrong++;
  PetscCall(LookAtAll(p, ksp));
  if (p->deed == FAILS && it == 2) PetscFunctionReturn((PetscErrorCode)ERROR);
  if (!it) PetscCall(KSPMonitorSet(ksp, Second, p, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Cancelled(void **ctx)
{
  PetscFunctionBegin;
  ((Program *)*ctx)->cancelled++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Test(KSP ksp, PetscInt it, PetscReal norm, KSPConvergedReason *reason, void *ctx)
{
  Program *p = (Program *)ctx;
  void    *mine;

  PetscFunctionBegin;
  (void)norm;
  PetscCall(KSPGetConvergenceContext(ksp, &mine));
  if (mine != p) p->wrong++;
  PetscCall(LookAtAll(p, ksp));
  if (p->deed == CHANGES && it == 2) PetscCall(VecScale(p->x, 0.5));
  *reason = it >= STEPS ? KSP_CONVERGED_ITS : KSP_CONVERGED_ITERATING;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PostSolve(KSP ksp, Vec b, Vec x, void *ctx)
{
  Program *p = (Program *)ctx;

  PetscFunctionBegin;
  (void)b;
  if (x != p->x) p->wrong++;
  PetscCall(LookAtAll(p, ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A vector of this kind, like A's vectors */
static PetscErrorCode VecOf(Mat A, Kind kind, PetscScalar own[], Vec *v)
{
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);
  PetscInt       n;
  const PetscInt ghost = 0;

  PetscFunctionBegin;
  PetscCall(MatGetLocalSize(A, &n, NULL));
  switch (kind) {
  case STANDARD:
    PetscCall(VecCreate(comm, v));
    PetscCall(VecSetSizes(*v, n, PETSC_DETERMINE));
    PetscCall(VecSetType(*v, VECSTANDARD));
    break;
  case ARRAY:
    PetscCall(VecCreateMPIWithArray(comm, 1, n, PETSC_DETERMINE, own, v));
    break;
  case GHOSTED:
    PetscCall(VecCreateGhost(comm, n, PETSC_DETERMINE, 1, &ghost, v));
    break;
  default:
    PetscCall(MatCreateVecs(A, v, NULL));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve, and all that the program has seen. With an error in the middle once more, without */
static PetscErrorCode Solve(PetscBool ref, int method, Kind kind, Deed deed, PetscBool guess, Program *p)
{
  PetscScalar    rhs[K * K];
  Mat            A;
  PC             pc;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(p, sizeof(*p)));
  p->deed  = deed;
  p->right = (PetscBool)(methods[method].changing && (methods[method].options[0] || !strcmp(methods[method].type, "fbcgsr")));
  PetscCall(TestConvection(PETSC_COMM_WORLD, K, 0.0, ref, &A));
  PetscCall(VecOf(A, kind, p->own, &p->x));
  PetscCall(VecOf(A, kind == MIXED ? GHOSTED : kind, rhs, &p->b));
  PetscCall(VecDuplicate(p->x, &p->built));
  PetscCall(TestFill(p->b, 1, PETSC_FALSE));
  PetscCall(TestFill(p->x, 2, PETSC_FALSE));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &p->ksp));
  PetscCall(KSPSetOperators(p->ksp, A, A));
  PetscCall(KSPSetType(p->ksp, ref ? methods[method].peer : methods[method].type));
  PetscCall(KSPGetPC(p->ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetInitialGuessNonzero(p->ksp, guess));
  PetscCall(KSPSetConvergenceTest(p->ksp, Test, p, NULL));
  PetscCall(KSPSetPostSolve(p->ksp, PostSolve, p));
  PetscCall(PetscOptionsInsertString(NULL, methods[method].options));
  PetscCall(KSPSetFromOptions(p->ksp));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_pc_side"));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_gmres_restart"));
  PetscCall(KSPMonitorSet(p->ksp, Monitor, p, Cancelled));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = KSPSolve(p->ksp, p->b, p->x);
  PetscCall(PetscPopErrorHandler());
  PetscCheck((int)ierr == (deed == FAILS ? ERROR : 0), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s, %s: error %d", methods[method].type, deeds[deed], (int)ierr);
  PetscCall(Look(p, p->x));
  if (kind == ARRAY)
    for (PetscInt r = 0; r < p->length[p->n - 1]; r++)
      if (p->own[r] != p->seen[p->n - 1][r]) p->wrong++;
  PetscCall(KSPDestroy(&p->ksp));
  if (p->cancelled != 1) p->wrong++;
  PetscCall(VecDestroy(&p->x));
  PetscCall(VecDestroy(&p->b));
  PetscCall(VecDestroy(&p->built));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each entry within the rounding of the system's solution */
static PetscErrorCode Compare(const Program *p, const Program *r, const char what[], PetscInt *wrong)
{
  const PetscReal sine = PetscSinReal(PETSC_PI / (2.0 * (K + 1))), condition = 1.0 / (sine * sine);

  PetscFunctionBegin;
  if (p->wrong) PetscCall(PetscFPrintf(PETSC_COMM_SELF, stderr, "%s: %" PetscInt_FMT " times another vector, context or count than the program's\n", what, p->wrong));
  if (p->n != r->n) PetscCall(PetscFPrintf(PETSC_COMM_SELF, stderr, "%s: %" PetscInt_FMT " looks, %" PetscInt_FMT " with MATAIJ\n", what, p->n, r->n));
  *wrong += p->wrong || p->n != r->n;
  for (PetscInt k = 0; k < PetscMin(p->n, r->n); k++) {
    PetscReal largest = 0, most = 0;

    for (PetscInt e = 0; e < r->length[k]; e++) {
      largest = PetscMax(largest, PetscAbsScalar(r->seen[k][e]));
      most    = PetscMax(most, PetscAbsScalar(p->seen[k][e] - r->seen[k][e]));
    }
    if (most <= TEST_C * PETSC_MACHINE_EPSILON * condition * largest) continue;
    PetscCall(PetscFPrintf(PETSC_COMM_SELF, stderr, "%s, look %" PetscInt_FMT ": the solution differs by %g from that with MATAIJ, whose largest entry is %g\n", what, k, (double)most, (double)largest));
    (*wrong)++;
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static Program p, r;
  PetscInt       wrong = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(32));
  for (int m = 0; m < (int)PETSC_STATIC_ARRAY_LENGTH(methods); m++)
    for (Deed deed = LOOKS; deed < DEEDS; deed++) {
      const PetscBool ours = (PetscBool)strcmp(methods[m].type, methods[m].peer);

      if (deed == CHANGES && (ours || !methods[m].changing)) continue; /* no method has to follow that */
      if (deed == FAILS && ours) continue;
      for (int guess = 0; guess < 2; guess++) {
        PetscCall(Solve(PETSC_TRUE, m, STANDARD, deed, (PetscBool)guess, &r));
        for (Kind kind = STANDARD; kind < KINDS; kind++) {
          char what[128];

          PetscCall(PetscSNPrintf(what, sizeof(what), "%s %s, program %s, vectors %d, guess %d", methods[m].type, methods[m].options, deeds[deed], (int)kind, guess));
          PetscCall(Solve(PETSC_FALSE, m, kind, deed, (PetscBool)guess, &p));
          PetscCall(Compare(&p, &r, what, &wrong));
        }
      }
    }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  PetscCheck(!wrong, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " solves are seen otherwise than with MATAIJ", wrong);
  PetscCall(PetscFinalize());
  return 0;
}

//TEST name="host" args="-mat_gpucsr_format csr -vec {}" loop="standard gpu ghosted"
//TEST name="standin" args="-gpucsr_debug_standin 1 -gpucsr_debug_defer 0 -mat_gpucsr_backend cuda -mat_gpucsr_format csr -vec {}" loop="standard gpu ghosted" gpu=0
//TEST name="standin_ranks" nsize=2 args="-gpucsr_debug_standin 1 -gpucsr_debug_defer 5 -mat_gpucsr_backend cuda -mat_gpucsr_format csr -malloc_dump -vec {}" loop="standard gpu ghosted" gpu=0
//TEST name="gpu" args="-mat_gpucsr_format csr -vec {}" loop="standard gpu ghosted" gpu=1
//TEST name="gpu_ranks" nsize=2 args="-mat_gpucsr_format csr -vec {}" loop="standard gpu" gpu=1
//TEST name="aij" args="-mat_type aij -vec standard"

/*
  A solver's vectors for a preconditioner, a monitor or a test of the program are like VecDuplicate() of the program's vector: block size, DM, local-to-global mapping, ghosts, composed objects, and the
  name of the type. The solution of each iteration, read in every way of PETSc's, equals the solution of PETSc's methods.

  The system lives on a DMDA with two unknowns a point. All runs are compared with MATAIJ and PETSc's method.

    build/tests/t656-program-vectors -dll_append build/lib/libpetscgpucsr.so -mat_gpucsr_format csr -vec standard|gpu|ghosted
*/
#include "testing.h"
#include "krylov.h"
#include <petscdmda.h>

#define MOST 200 /* iterations that are watched */

typedef struct {
  PetscBool ref;    /* by PETSc's own types */
  PetscBool strict; /* the vectors of this solve must be like the program's; PETSc's methods keep an earlier solve's */
  char      vec[16];
  DM        da;
  Mat       A;
  Vec       x, b;
  Vec       like;  /* as VecDuplicate() makes them; */
  Vec       first; /* the matrix' own, of an earlier solve with the same KSP */
} System;

/* ---- the preconditioner of a program ---- */

static PetscErrorCode HasGhosts(Vec v, PetscBool *has)
{
  Vec local;

  PetscFunctionBegin;
  PetscCall(VecGhostGetLocalForm(v, &local));
  *has = (PetscBool)(local != NULL);
  PetscCall(VecGhostRestoreLocalForm(v, &local));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Like(Vec v, System *s, const char which[])
{
  const char            *names[2];
  PetscInt               bs[2];
  ISLocalToGlobalMapping map[2];
  DM                     dm[2];
  PetscObject            mark[2];
  PetscBool              ghosts[2], same;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    Vec w = k ? s->like : v;

    PetscCall(HasGhosts(w, &ghosts[k]));
    PetscCall(VecGetType(w, &names[k]));
    PetscCall(VecGetBlockSize(w, &bs[k]));
    PetscCall(VecGetLocalToGlobalMapping(w, &map[k]));
    PetscCall(VecGetDM(w, &dm[k]));
    PetscCall(PetscObjectQuery((PetscObject)w, "mark", &mark[k]));
  }
  PetscCall(PetscStrcmp(names[0], names[1], &same));
  TestExpect(same, "%s: a vector of type %s, the program's is %s", which, names[0], names[1]);
  TestExpect(bs[0] == bs[1], "%s: a vector of block size %" PetscInt_FMT ", the program's is %" PetscInt_FMT, which, bs[0], bs[1]);
  TestExpect(!map[0] == !map[1], "%s: a vector %s a mapping", which, map[0] ? "with" : "without");
  TestExpect(dm[0] == dm[1], "%s: a vector of %s DM", which, dm[0] ? "another" : "no");
  TestExpect(ghosts[0] == ghosts[1], "%s: a vector with%s ghosts", which, ghosts[0] ? "" : "out");
  TestExpect(mark[0] == mark[1], "%s: a vector without what the program composed", which);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Divides the components by 5 and by 7: x by strides, y by local numbers */
static PetscErrorCode Apply(PC pc, Vec x, Vec y)
{
  System                *s;
  ISLocalToGlobalMapping map;
  PetscInt               bs;
  const PetscScalar     *a;
  PetscReal              norms[2];

  PetscFunctionBegin;
  PetscCall(PCShellGetContext(pc, &s));
  if (s->strict) {
    PetscCall(Like(x, s, "input"));
    PetscCall(Like(y, s, "result"));
  }
  PetscCall(VecGetBlockSize(x, &bs));
  PetscCall(VecGetLocalToGlobalMapping(y, &map));
  if (bs == 2) {
    PetscCall(VecCopy(x, y));
    PetscCall(VecStrideScale(y, 0, 1.0 / 5));
    PetscCall(VecStrideScale(y, 1, 1.0 / 7));
    PetscCall(VecStrideNormAll(y, NORM_2, norms));
  }
  if (map) {
    PetscInt        n, first, end, count;
    const PetscInt *global;

    PetscCall(VecSet(y, 0));
    PetscCall(VecGetLocalSize(x, &n));
    PetscCall(VecGetOwnershipRange(x, &first, &end));
    PetscCall(ISLocalToGlobalMappingGetSize(map, &count));
    PetscCall(ISLocalToGlobalMappingGetIndices(map, &global));
    PetscCall(VecGetArrayRead(x, &a));
    for (PetscInt q = 0; q < count; q++)
      if (global[q] >= first && global[q] < end) {
        const PetscScalar value = a[global[q] - first] / (global[q] % 2 ? 7 : 5);

        PetscCall(VecSetValuesLocal(y, 1, &q, &value, INSERT_VALUES));
      }
    PetscCall(VecRestoreArrayRead(x, &a));
    PetscCall(ISLocalToGlobalMappingRestoreIndices(map, &global));
    PetscCall(VecAssemblyBegin(y));
    PetscCall(VecAssemblyEnd(y));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the system ---- */

static PetscErrorCode Entries(System *s)
{
  PetscInt first, end, N, nx;

  PetscFunctionBegin;
  PetscCall(DMDAGetInfo(s->da, NULL, &nx, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  PetscCall(MatGetOwnershipRange(s->A, &first, &end));
  PetscCall(MatGetSize(s->A, &N, NULL));
  for (PetscInt i = first; i < end; i++) {
    const PetscInt    c = i % 2, col[] = {i - 2, i, i + 2 < N ? i + 2 : -1, c ? i - 1 : i + 1};
    const PetscScalar v[] = {-1.2, c ? 4.5 : 3.5, -0.9, c ? 0.3 : -0.4};

    PetscCall(MatSetValues(s->A, 1, &i, 4, col, v, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(s->A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(s->A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(PetscBool ref, System *s)
{
  char           type[16] = "gpucsr";
  PetscBool      gpu, ghosted;
  PetscContainer mark;

  PetscFunctionBegin;
  s->ref = ref;
  PetscCall(PetscStrncpy(s->vec, "standard", sizeof(s->vec)));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-vec", s->vec, sizeof(s->vec), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", type, sizeof(type), NULL));
  PetscCall(PetscStrcmp(s->vec, "gpu", &gpu));
  PetscCall(PetscStrcmp(s->vec, "ghosted", &ghosted));
  PetscCall(DMDACreate1d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, 40, 2, 1, NULL, &s->da));
  PetscCall(DMSetMatType(s->da, ref ? MATAIJ : type));
  PetscCall(DMSetVecType(s->da, gpu && !ref ? "gpu" : VECSTANDARD));
  PetscCall(DMSetUp(s->da));
  PetscCall(DMCreateMatrix(s->da, &s->A));
  PetscCall(Entries(s));
  if (ghosted) {
    PetscInt    n, N, ghost;
    PetscMPIInt rank;

    PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
    PetscCall(MatGetLocalSize(s->A, &n, NULL));
    PetscCall(MatGetSize(s->A, &N, NULL));
    ghost = rank ? 0 : N / 2 - 1;
    PetscCall(VecCreateGhostBlock(PETSC_COMM_WORLD, 2, n, N, 1, &ghost, &s->x));
  } else PetscCall(DMCreateGlobalVector(s->da, &s->x));
  PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &mark));
  PetscCall(PetscObjectCompose((PetscObject)s->x, "mark", (PetscObject)mark));
  PetscCall(PetscContainerDestroy(&mark));
  PetscCall(VecDuplicate(s->x, &s->b));
  PetscCall(VecDuplicate(s->x, &s->like));
  PetscCall(TestFill(s->b, 1, PETSC_FALSE));
  PetscCall(MatCreateVecs(s->A, &s->first, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(System *s)
{
  PetscFunctionBegin;
  PetscCall(VecDestroy(&s->first));
  PetscCall(VecDestroy(&s->x));
  PetscCall(VecDestroy(&s->b));
  PetscCall(VecDestroy(&s->like));
  PetscCall(MatDestroy(&s->A));
  PetscCall(DMDestroy(&s->da));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- reads of a program while a solve runs ---- */

enum {
  BY_SOLUTION, /* KSPGetSolution() */
  BY_BUILD,    /* KSPBuildSolution() into a vector of the program, */
  BY_BUILT,    /* and into one of the KSP */
  BY_RESIDUAL, /* KSPBuildResidual() */
  WAYS
};

typedef struct {
  PetscInt  n;
  PetscReal norm[MOST][WAYS]; /* of the true residual */
  Vec       kept[MOST];       /* iterates, read after the solve */
  PetscBool monitor;          /* a monitor reads, the test is PETSc's */
} Watched;

static PetscErrorCode TrueResidual(KSP ksp, Vec x, PetscReal *norm)
{
  Mat A;
  Vec b, r;

  PetscFunctionBegin;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  PetscCall(KSPGetRhs(ksp, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, norm));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Look(KSP ksp, Watched *w)
{
  PetscReal *norm = w->norm[w->n];
  Vec        x, v;

  PetscFunctionBegin;
  PetscCheck(w->n < MOST, PETSC_COMM_SELF, PETSC_ERR_PLIB, "More than %d iterations", MOST);
  PetscCall(KSPGetSolution(ksp, &x));
  PetscCall(TrueResidual(ksp, x, &norm[BY_SOLUTION]));
  PetscCall(VecDuplicate(x, &w->kept[w->n]));
  PetscCall(KSPBuildSolution(ksp, w->kept[w->n], NULL));
  PetscCall(KSPBuildSolution(ksp, NULL, &v));
  PetscCall(TrueResidual(ksp, v, &norm[BY_BUILT]));
  PetscCall(KSPBuildResidual(ksp, NULL, NULL, &v));
  PetscCall(VecNorm(v, NORM_2, &norm[BY_RESIDUAL]));
  PetscCall(VecDestroy(&v));
  w->n++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A test on the true residual */
static PetscErrorCode Test(KSP ksp, PetscInt n, PetscReal rnorm, KSPConvergedReason *reason, void *ctx)
{
  Watched *w = (Watched *)ctx;

  PetscFunctionBegin;
  (void)rnorm;
  PetscCall(Look(ksp, w));
  *reason = n && w->norm[w->n - 1][BY_RESIDUAL] < 1e-6 * w->norm[0][BY_RESIDUAL] ? KSP_CONVERGED_RTOL : KSP_CONVERGED_ITERATING;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Keeps iterates, and looks at none before the end. None of the last iteration, as Monitor() */
static PetscErrorCode Keep(KSP ksp, PetscInt n, PetscReal rnorm, void *ctx)
{
  Watched           *w = (Watched *)ctx;
  KSPConvergedReason reason;
  PetscInt           most;

  PetscFunctionBegin;
  (void)rnorm;
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetTolerances(ksp, NULL, NULL, NULL, &most));
  if (reason || n == most) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(w->n < MOST, PETSC_COMM_SELF, PETSC_ERR_PLIB, "More than %d iterations", MOST);
  PetscCall(PetscArrayzero(w->norm[w->n], WAYS));
  PetscCall(KSPBuildSolution(ksp, w->kept[w->n++], NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The last iteration, after which PETSc's own method adds its correction twice, is not read */
static PetscErrorCode Monitor(KSP ksp, PetscInt n, PetscReal rnorm, void *ctx)
{
  KSPConvergedReason reason;

  PetscFunctionBegin;
  (void)n;
  (void)rnorm;
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  if (!reason) PetscCall(Look(ksp, (Watched *)ctx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- solves ---- */

#define SHELL     1
#define TRANSPOSE 2
#define GUESS     4
#define TEST      8  /* of the program */
#define MONITOR   16 /* its monitor */
#define SHORT     32 /* a short recurrence */
#define KEEP      64 /* a monitor that keeps iterates */

static const struct {
  const char *method, *options;
  int         what;
} cases[] = {
  {"gmres",  "-ksp_gmres_restart 7",                                                                        SHELL            },
  {"gmres",  "-ksp_gmres_restart 7 -ksp_pc_side right",                                                     SHELL | GUESS    },
  {"fgmres", "-ksp_gmres_restart 7",                                                                        SHELL            },
  {"cg",     "-ksp_max_it 4 -ksp_norm_type natural",                                                        SHELL | SHORT    },
  {"bcgs",   "-ksp_max_it 6",                                                                               SHELL | SHORT    },
  {"gmres",  "-pc_type fieldsplit -pc_fieldsplit_type additive -fieldsplit_pc_type jacobi",                 0                },
  {"gmres",  "-pc_type fieldsplit -pc_fieldsplit_type additive -fieldsplit_pc_type jacobi",                 TRANSPOSE        },
  {"fgmres", "-pc_type fieldsplit -pc_fieldsplit_type symmetric_multiplicative -fieldsplit_pc_type jacobi", GUESS            },
  {"bcgs",   "-pc_type fieldsplit -pc_fieldsplit_type additive -fieldsplit_pc_type jacobi -ksp_max_it 6",   TRANSPOSE | SHORT},
  {"gmres",  "-ksp_gmres_restart 3 -pc_type none",                                                          TEST             },
  {"gmres",  "-ksp_gmres_restart 3 -pc_type jacobi -ksp_pc_side right",                                     TEST | GUESS     },
  {"fgmres", "-ksp_gmres_restart 3 -pc_type jacobi",                                                        TEST             },
  {"gmres",  "-ksp_gmres_restart 3 -pc_type bjacobi -sub_pc_type sor",                                      TEST             },
  {"fgmres", "-ksp_gmres_restart 3 -pc_type bjacobi -sub_pc_type sor",                                      TEST             },
  {"gmres",  "-ksp_gmres_restart 3 -pc_type jacobi",                                                        MONITOR          },
  {"fgmres", "-ksp_gmres_restart 3 -pc_type bjacobi -sub_pc_type sor",                                      MONITOR          },
  {"gmres",  "-ksp_gmres_restart 3",                                                                        TEST | SHELL     },
  {"gmres",  "-ksp_gmres_restart 60 -pc_type none -ksp_max_it 30 -ksp_rtol 1e-14",                          KEEP             },
  {"fgmres", "-ksp_gmres_restart 60 -pc_type jacobi -ksp_max_it 30 -ksp_rtol 1e-14",                        KEEP             },
};

static PetscErrorCode Solve(System *s, PetscInt k, TestOutcome *o, Watched *w)
{
  char        type[16], prefix[32];
  const char *now;
  KSP         ksp;
  PC          pc;
  PetscBool   same, mine, aij;
  const int   what = cases[k].what;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)s->A, &aij, MATSEQAIJ, MATMPIAIJ, ""));
  mine = (PetscBool)!aij;
  PetscCall(PetscSNPrintf(type, sizeof(type), "%s%s", mine ? "gpu" : "", cases[k].method));
  PetscCall(PetscSNPrintf(prefix, sizeof(prefix), "%s%" PetscInt_FMT "_", s->ref ? "ref" : "test", k));
  PetscCall(PetscOptionsPrefixPush(NULL, prefix));
  PetscCall(PetscOptionsInsertString(NULL, cases[k].options));
  PetscCall(PetscOptionsPrefixPop(NULL));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOptionsPrefix(ksp, prefix));
  PetscCall(KSPSetOperators(ksp, s->A, s->A));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPSetTolerances(ksp, 1e-6, PETSC_DEFAULT, PETSC_DEFAULT, 60));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(KSPSetFromOptions(ksp));
  if (what & SHELL) {
    PetscCall(PCSetType(pc, PCSHELL));
    PetscCall(PCShellSetContext(pc, s));
    PetscCall(PCShellSetApply(pc, Apply));
  }
  for (int q = 0; q < MOST && (what & KEEP); q++) PetscCall(VecDuplicate(s->x, &w->kept[q])); /* before the solve, in which nothing is to wait */
  if (what & KEEP) PetscCall(KSPMonitorSet(ksp, Keep, w, NULL));
  if (!(what & (TEST | MONITOR | KEEP))) { /* an earlier solve, with the matrix' vectors */
    s->strict = PETSC_FALSE;
    PetscCall(VecSet(s->first, 1));
    PetscCall(KSPSolve(ksp, s->first, s->first));
  }
  s->strict = mine;
  PetscCall(KSPSetResidualHistory(ksp, NULL, TEST_HISTORY, PETSC_TRUE));
  if (what & TEST) PetscCall(KSPSetConvergenceTest(ksp, Test, w, NULL));
  if (what & MONITOR) PetscCall(KSPMonitorSet(ksp, Monitor, w, NULL));
  PetscCall(KSPSetInitialGuessNonzero(ksp, (PetscBool)((what & GUESS) != 0)));
  if (what & GUESS) PetscCall(TestFill(s->x, 3, PETSC_FALSE));
  else PetscCall(VecSet(s->x, 0));
  if (what & TRANSPOSE) PetscCall(KSPSolveTranspose(ksp, s->b, s->x));
  else PetscCall(KSPSolve(ksp, s->b, s->x));
  PetscCall(KSPGetType(ksp, &now));
  PetscCall(PetscStrcmp(now, type, &same));
  TestExpect(same, "%s: fell back to %s", cases[k].options, now);
  PetscCall(TestOutcomeGet(ksp, o));
  for (PetscInt q = 0; q < w->n; q++) PetscCall(TrueResidual(ksp, w->kept[q], &w->norm[q][BY_BUILD]));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case(System *s, System *ref, PetscInt k)
{
  static TestOutcome a, r;
  static Watched     wa, wr;
  char               where[256];
  PetscInt           part;
  PetscReal          top       = 0, xn, dn;
  PetscReal (*bound)(PetscInt) = cases[k].what & SHORT ? TestShortRecurrences : TestLongRecurrences;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(where, sizeof(where), "%" PetscInt_FMT " (%s %s)", k, cases[k].method, cases[k].options));
  wa.n = wr.n = 0;
  PetscCall(Solve(s, k, &a, &wa));
  PetscCall(Solve(ref, k, &r, &wr));
  TestExpect(a.reason == r.reason && a.its == r.its, "%s: %s after %" PetscInt_FMT " iterations, PETSc's %s after %" PetscInt_FMT, where, KSPConvergedReasons[a.reason], a.its, KSPConvergedReasons[r.reason], r.its);
  part = TestHistoriesPart(&a, &r, bound, &top);
  TestExpect(a.n == r.n && part < 0, "%s: norm %.15g in iteration %" PetscInt_FMT ", PETSc's %.15g", where, (double)a.norm[PetscMax(part, 0)], part, (double)r.norm[PetscMax(part, 0)]);
  PetscCall(TestDistance(s->x, ref->x, &dn, &xn));
  TestExpect(dn <= bound(r.its) * 1e2 * xn, "%s: x differs from PETSc's by %g of %g", where, (double)dn, (double)xn);
  TestExpect(wa.n == wr.n, "%s: looked at %" PetscInt_FMT " times, PETSc's %" PetscInt_FMT, where, wa.n, wr.n);
  for (PetscInt q = 0; q < PetscMin(wa.n, wr.n); q++)
    for (int way = 0; way < WAYS; way++)
      TestExpect(PetscAbsReal(wa.norm[q][way] - wr.norm[q][way]) <= bound(q) * wr.norm[0][way], "%s: in iteration %" PetscInt_FMT " way %d of looking at the solution finds a residual of %g, PETSc's is %g", where, q, way, (double)wa.norm[q][way],
                 (double)wr.norm[q][way]);
  for (int q = 0; q < MOST; q++) PetscCall(VecDestroy(&wa.kept[q]));
  for (int q = 0; q < MOST; q++) PetscCall(VecDestroy(&wr.kept[q]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  System   s, ref;
  PetscInt only = -1;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-case", &only, NULL)); /* this one alone */
  PetscCall(Create(PETSC_FALSE, &s));
  PetscCall(Create(PETSC_TRUE, &ref));
  for (PetscInt k = 0; k < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(cases); k++)
    if (only < 0 || k == only) PetscCall(Case(&s, &ref, k));
  PetscCall(Destroy(&s));
  PetscCall(Destroy(&ref));
  PetscCheck(!TestFailures, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%d of what was expected did not happen", TestFailures);
  PetscCall(PetscFinalize());
  return 0;
}

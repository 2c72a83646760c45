//TEST name="ranks1" args="-mat_gpucsr_format csr"
//TEST name="ranks2" nsize=2 args="-mat_gpucsr_format {}" loop="csr sell stencil"
//TEST name="ranks3" nsize=3 args="-mat_gpucsr_format csr"
//TEST name="ranks4" nsize=4 args="-mat_gpucsr_format {}" loop="csr dia"
//TEST name="floats" nsize=2 args="-mat_gpucsr_format csr -mat_gpucsr_precision mixed -path graph -mat_gpucsr_halo peer"
//TEST name="standin" nsize=3 gpu=0 args="-mat_gpucsr_format csr -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda"
//TEST name="late" nsize=2 gpu=0 args="-mat_gpucsr_format csr -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -gpucsr_debug_defer 0"
//TEST name="large" nsize=2 gpu=1 args="-mat_gpucsr_format {} -sizes 200,480 -seeds 1" loop="csr sell dia stencil"
//TEST name="auto" nsize=2 gpu=1 args="-mat_gpucsr_format csr -path auto"
//TEST name="grid" nsize=2 gpu=1 args="-mat_gpucsr_format {} -sizes 61,130 -seeds 2" loop="csr sell dia stencil"
//TEST name="grid4" nsize=4 gpu=1 args="-mat_gpucsr_format {} -sizes 61,130 -seeds 2" loop="csr dia"
//TEST name="parts" nsize=2 gpu=1 args="-mat_gpucsr_format dia -sizes 700 -seeds 3 -only 0"
//TEST name="many" nsize=2 gpu=1 args="-mat_gpucsr_format dia -sizes 800 -seeds 1 -only {}" loop="0 6 7"
//TEST name="graph2" nsize=2 gpu=0 args="-mat_gpucsr_format {} -path graph -mat_gpucsr_halo peer" loop="csr dia"
//TEST name="graph4" nsize=4 gpu=0 args="-mat_gpucsr_format csr -path graph -mat_gpucsr_halo peer"
//TEST name="ranks8" nsize=8 gpu=0 args="-mat_gpucsr_format csr -mat_gpucsr_halo peer -sizes 12 -seeds 2 -path {}" loop="persistent graph"
//TEST name="ranks8.cg" nsize=8 gpu=1 args="-mat_gpucsr_format csr -mat_gpucsr_halo peer -sizes 12 -seeds 1 -only 0 -path {}" loop="persistent graph"
//TEST name="ranks8.bcgs" nsize=8 gpu=1 args="-mat_gpucsr_format csr -mat_gpucsr_halo peer -sizes 12 -seeds 1 -only 8 -path {}" loop="persistent graph"
//TEST name="graph_standin" nsize=3 gpu=0 args="-mat_gpucsr_format csr -path graph -mat_gpucsr_halo peer -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda"
//TEST name="graph_late" nsize=2 gpu=0 args="-mat_gpucsr_format csr -path graph -mat_gpucsr_halo peer -gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -gpucsr_debug_defer 0"
//TEST name="graph_gpu" nsize=2 gpu=1 args="-mat_gpucsr_format {} -path graph -sizes 60,130 -seeds 2" loop="csr dia bcsr2x2"
//TEST name="late_rank" nsize=2 gpu=0 args="-mat_gpucsr_format csr -gpucsr_peer_timeout 2 -late"
//TEST name="late_graph" nsize=3 gpu=0 args="-mat_gpucsr_format csr -path graph -mat_gpucsr_halo peer -gpucsr_peer_timeout 2 -late"
//TEST name="late_rank4" nsize=4 gpu=0 args="-mat_gpucsr_format csr -gpucsr_peer_timeout 2 -late"

/*
  gpucg and gpubcgs of several ranks that exchange by themselves. The residual history is one rank's up to rounding, with the same bits on every rank and in every run. A rank may have any part of the rows, or no
  rows, and neighbours or no neighbours. Values and patterns change. Ranks that share a GPU take turns in milliseconds, so one small size runs there. Size 480 is the largest: at 520 and 560 a residual of program 10 depends on cancellation (at 560, in iteration 64, 199
  by one process of the host, 1951 by two, 568 by three). With -late a rank does not come: all ranks get an error in bounded time, x stays as before, and the next solve of the same solver is right.

    mpiexec -n 3 build/tests/t617-gpuksp-peers -dll_append build/lib/libpetscgpucsr.so -mat_gpucsr_format csr [-path auto] [-sizes 12,33] [-seeds 4] [-late]
*/
#include "testing.h"
#include "krylov.h"
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#define SYNCFREE " -sub_mat_gpucsr_solve_kernel syncfree"
#define SINGLE   " -ksp_gpucg_variant single_reduction"

typedef struct {
  PetscReal   convection;
  PetscBool   guess;
  PetscInt    bs;
  const char *type, *options;
  PetscBool   graph; /* of path graph alone; the history to compare with is the host loop's on as many ranks */
  PetscReal   weak;  /* factor of the entries besides the diagonal, if not 0: one step then makes the residual much shorter, and its predicted norm cancels */
} Program;

static const Program programs[] = {
  {0,   PETSC_FALSE, 1, "gpucg",   "-pc_type jacobi",                                               PETSC_FALSE, 0   },
  {0,   PETSC_FALSE, 1, "gpucg",   "-pc_type none -ksp_norm_type unpreconditioned",                 PETSC_FALSE, 0   },
  {0,   PETSC_TRUE,  1, "gpucg",   "-pc_type jacobi -ksp_norm_type natural",                        PETSC_FALSE, 0   },
  {0,   PETSC_FALSE, 2, "gpucg",   "-pc_type pbjacobi",                                             PETSC_FALSE, 0   },
  {0,   PETSC_TRUE,  1, "gpucg",   "-pc_type jacobi" SINGLE,                                        PETSC_TRUE,  0   },
  {0,   PETSC_FALSE, 2, "gpucg",   "-pc_type pbjacobi" SINGLE,                                      PETSC_TRUE,  0   },
  {0.5, PETSC_TRUE,  1, "gpubcgs", "-pc_type jacobi",                                               PETSC_FALSE, 0   },
  {0.5, PETSC_FALSE, 1, "gpubcgs", "-pc_type jacobi -ksp_pc_side right",                            PETSC_FALSE, 0   },
  {0.5, PETSC_TRUE,  2, "gpubcgs", "-pc_type pbjacobi",                                             PETSC_FALSE, 0   },
  {0.5, PETSC_FALSE, 2, "gpubcgs", "-pc_type pbjacobi -ksp_pc_side right",                          PETSC_FALSE, 0   },
  {0.5, PETSC_TRUE,  1, "gpubcgs", "-pc_type none",                                                 PETSC_FALSE, 0   },
  {0.5, PETSC_TRUE,  1, "gpubcgs", "-pc_type jacobi -ksp_gpubcgs_halo_recomputation false",         PETSC_FALSE, 0   },
  {0.5, PETSC_FALSE, 1, "gpubcgs", "-pc_type jacobi -ksp_gpubcgs_halo_recomputation true",          PETSC_FALSE, 3e-3},
  {0.5, PETSC_TRUE,  1, "gpubcgs", "-pc_type none -ksp_pc_side right",                              PETSC_FALSE, 3e-2},
  {0,   PETSC_FALSE, 1, "gpucg",   "-pc_type bjacobi -sub_pc_type icc" SYNCFREE,                    PETSC_TRUE,  0   },
  {0.5, PETSC_TRUE,  1, "gpubcgs", "-pc_type bjacobi -sub_pc_type ilu" SYNCFREE,                    PETSC_TRUE,  0   },
  {0.5, PETSC_TRUE,  1, "gpubcgs", "-pc_type bjacobi -sub_pc_type ilu -ksp_pc_side right" SYNCFREE, PETSC_TRUE,  0   },
};

static PetscMPIInt rank, size;
static char        path[32] = "persistent";

/* Parts of rows that are drawn: some ranks may have none */
static PetscInt Share(PetscInt rows, PetscInt bs, PetscInt seed)
{
  double   cut[16] = {0}, sum = 0;
  PetscInt at[17] = {0};
  unsigned x      = 12345u + 77u * (unsigned)seed;

  for (int r = 0; r < size; r++) {
    x      = x * 1664525u + 1013904223u;
    cut[r] = seed == 0 ? 1 : (x >> 8) % 3 ? (x >> 12) % 1000 : 0;
    sum += cut[r];
  }
  if (sum == 0) sum = cut[0] = 1;
  for (int r = 0; r < size; r++) at[r + 1] = PetscMin(rows, at[r] + (PetscInt)(cut[r] / sum * (double)(rows / bs)) * bs);
  at[size] = rows;
  return at[rank + 1] - at[rank];
}

/* The 5-point matrix of a k by k grid, whose lines connect only where they are not the first of a group; scale: of its values */
static PetscErrorCode Make(MPI_Comm comm, PetscInt k, const Program *p, PetscInt seed, PetscInt group, Mat *A)
{
  const PetscReal c = p->convection;
  PetscInt        rs, re, local = comm == PETSC_COMM_SELF ? k * k : Share(k * k, p->bs, seed);
  char            type[64];

  PetscFunctionBegin;
  PetscCall(TestType(type, sizeof(type)));
  PetscCall(MatCreate(comm, A));
  PetscCall(MatSetSizes(*A, local, local, k * k, k * k));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetBlockSize(*A, p->bs));
  PetscCall(MatSeqAIJSetPreallocation(*A, 5, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 5, NULL, 4, NULL));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    const PetscInt  line  = r / k;
    const PetscBool above = (PetscBool)(line && line % group), below = (PetscBool)(line + 1 < k && (line + 1) % group);
    const PetscInt  col[5] = {above ? r - k : -1, r % k ? r - 1 : -1, r, (r + 1) % k ? r + 1 : -1, below ? r + k : -1};
    PetscScalar     v[5]   = {-1.0 - c, -1.0 - 2.0 * c, 4.0 + 3.0 * c + 0.01 * (double)(r % 5), -1.0, -1.0};

    for (int e = 0; e < 5; e++)
      if (p->weak > 0 && e != 2) v[e] *= p->weak;
    PetscCall(MatSetValues(*A, 1, &r, 5, col, v, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solver(Mat A, const Program *p, PetscBool together, KSP *ksp)
{
  char option[512], prefix[32];

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(prefix, sizeof(prefix), "s%d%s_", (int)(p - programs), together ? "" : "ref"));
  PetscCall(PetscSNPrintf(option, sizeof(option), "%s -ksp_rtol 1e-9 -ksp_max_it 900 -ksp_%s_path %s", p->options, p->type, together ? path : p->graph ? "host_loop" : "auto"));
  PetscCall(PetscOptionsPrefixPush(NULL, prefix));
  PetscCall(PetscOptionsInsertString(NULL, option));
  PetscCall(PetscOptionsPrefixPop(NULL));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), ksp));
  PetscCall(KSPSetOptionsPrefix(*ksp, prefix));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, p->type));
  PetscCall(KSPSetInitialGuessNonzero(*ksp, p->guess));
  PetscCall(KSPSetResidualHistory(*ksp, NULL, TEST_HISTORY, PETSC_TRUE));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(KSP ksp, Vec b, Vec x, TestOutcome *o)
{
  PetscFunctionBegin;
  PetscCall(TestFill(b, 1, PETSC_FALSE));
  PetscCall(TestFill(x, 5, PETSC_FALSE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(TestOutcomeGet(ksp, o));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the view hold these words? On rank 0; elsewhere PETSC_TRUE */
static PetscErrorCode Says(KSP ksp, const char words[], char text[], size_t len, PetscBool *says)
{
  PetscViewer viewer;
  FILE       *file;

  PetscFunctionBegin;
  *says = PETSC_TRUE;
  file  = rank ? stdout : tmpfile();
  PetscCall(PetscViewerASCIIOpenWithFILE(PetscObjectComm((PetscObject)ksp), file, &viewer));
  PetscCall(KSPView(ksp, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  if (rank) PetscFunctionReturn(PETSC_SUCCESS);
  rewind(file);
  text[fread(text, 1, len - 1, file)] = 0;
  fclose(file);
  *says = (PetscBool)(strstr(text, words) != NULL);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Did they exchange by themselves? */
static PetscErrorCode Together(KSP ksp)
{
  char      text[4096] = "";
  PetscBool says;

  PetscFunctionBegin;
  if (size == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Says(ksp, "which exchange by themselves", text, sizeof(text), &says));
  PetscCheck(says, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the ranks did not solve together:\n%s", text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same bits on all ranks */
static PetscErrorCode Same(const TestOutcome *o, const char what[], PetscInt k, PetscInt seed)
{
  static TestOutcome first;

  PetscFunctionBegin;
  first = *o;
  PetscCallMPI(MPI_Bcast(&first, (PetscMPIInt)sizeof(first), MPI_BYTE, 0, PETSC_COMM_WORLD));
  PetscCheck(!memcmp(&first, o, sizeof(first)), PETSC_COMM_SELF, PETSC_ERR_PLIB, "with %s, %" PetscInt_FMT ", part %" PetscInt_FMT ": rank %d has another history than rank 0", what, k, seed, (int)rank);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A history but for rounding */
static PetscErrorCode Close(const TestOutcome *a, const TestOutcome *r, const char what[], PetscInt k, PetscInt seed)
{
  PetscReal top = 0;
  PetscInt  part;

  PetscFunctionBegin;
  PetscCheck(a->reason == r->reason && PetscAbsInt(a->its - r->its) <= r->its / 20 + (r->its > 20 ? 1 : 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "with %s, %" PetscInt_FMT ", part %" PetscInt_FMT ": %s after %" PetscInt_FMT " iterations, one rank %s after %" PetscInt_FMT, what, k, seed, KSPConvergedReasons[a->reason], a->its, KSPConvergedReasons[r->reason], r->its);
  part = TestHistoriesPart(a, r, TestShortRecurrences, &top);
  PetscCheck(part < 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "with %s, %" PetscInt_FMT ", part %" PetscInt_FMT ": norm %.15g in iteration %" PetscInt_FMT ", of one rank %.15g", what, k, seed, (double)a->norm[part], part, (double)r->norm[part]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The solves of one matrix, together and alone, again, with other values, and with another pattern */
static PetscErrorCode Case(const Program *p, PetscInt k, PetscInt seed)
{
  const MPI_Comm     alone = p->graph ? PETSC_COMM_WORLD : PETSC_COMM_SELF;
  static TestOutcome a, again, r;
  char               text[4096] = "";
  PetscBool          says;
  Mat                A, R;
  Vec                x, b, y, c;
  KSP                ksp, ref;

  PetscFunctionBegin;
  PetscCall(Make(PETSC_COMM_WORLD, k, p, seed, seed == 1 ? 2 : k + 1, &A));
  PetscCall(Make(alone, k, p, seed, seed == 1 ? 2 : k + 1, &R));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(MatCreateVecs(R, &y, &c));
  PetscCall(Solver(A, p, PETSC_TRUE, &ksp));
  PetscCall(Solver(R, p, PETSC_FALSE, &ref));
  for (int pass = 0; pass < 2; pass++) {
    PetscCall(Solve(ksp, b, x, &a));
    PetscCall(Together(ksp));
    PetscCall(Solve(ref, c, y, &r));
    PetscCall(Same(&a, p->options, k, seed));
    PetscCall(Close(&a, &r, p->options, k, seed));
    PetscCall(Solve(ksp, b, x, &again));
    PetscCheck(!memcmp(&a, &again, sizeof(a)), PETSC_COMM_SELF, PETSC_ERR_PLIB, "with %s, %" PetscInt_FMT ", part %" PetscInt_FMT ": another run has other bits", p->options, k, seed);
    if (pass) break;
    PetscCall(MatScale(A, 3.0));
    PetscCall(MatScale(R, 3.0));
  }
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscCall(Make(PETSC_COMM_WORLD, k, p, seed, 3, &A));
  PetscCall(Make(alone, k, p, seed, 3, &R));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetOperators(ref, R, R));
  PetscCall(Solve(ksp, b, x, &a));
  PetscCall(Solve(ref, c, y, &r));
  PetscCall(Same(&a, p->options, k, seed));
  PetscCall(Close(&a, &r, p->options, k, seed));
  PetscCall(KSPReset(ksp));
  PetscCall(Says(ksp, p->type, text, sizeof(text), &says)); /* a view of a solver without data */
  PetscCheck(says, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the view after a reset:\n%s", text);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(KSPDestroy(&ref));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&c));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In the middle of its solve the last rank does nothing for some seconds */
static void Sleep(int number)
{
  const struct timespec some = {6, 0};

  (void)number;
  (void)nanosleep(&some, NULL);
}

static PetscErrorCode Late(void)
{
  const Program         *p    = &programs[2]; /* x begins somewhere */
  const PetscInt         k    = 200;          /* so many iterations that the rank falls asleep in the middle of them */
  const struct itimerval soon = {
    {5, 0     }, /* again, in case the rank slept before the other ranks waited */
    {0, 300000}
  };
  static TestOutcome a, r;
  Mat                A, R;
  Vec                x, b, y, c;
  KSP                ksp, ref;
  PetscReal          before, after;
  PetscErrorCode     ierr;
  double             since;

  PetscFunctionBegin;
  PetscCall(Make(PETSC_COMM_WORLD, k, p, 0, k + 1, &A));
  PetscCall(Make(PETSC_COMM_SELF, k, p, 0, k + 1, &R));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(MatCreateVecs(R, &y, &c));
  PetscCall(Solver(A, p, PETSC_TRUE, &ksp));
  PetscCall(Solver(R, p, PETSC_FALSE, &ref));
  PetscCall(TestFill(b, 1, PETSC_FALSE));
  PetscCall(TestFill(x, 5, PETSC_FALSE));
  PetscCall(VecNorm(x, NORM_2, &before));
  PetscCall(KSPSetUp(ksp));
  PetscCall(Solve(ksp, b, x, &a)); /* the first solve makes all */
  PetscCall(TestFill(x, 5, PETSC_FALSE));
  PetscCall(KSPSetResidualHistory(ksp, NULL, 10, PETSC_TRUE));
  PetscCall(KSPSetTolerances(ksp, 1e-300, 0, 1e300, 2000000000));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  if (rank == size - 1) {
    (void)signal(SIGALRM, Sleep);
    (void)setitimer(ITIMER_REAL, &soon, NULL);
  }
  since = MPI_Wtime();
  ierr  = KSPSetConvergenceTest(ksp, KSPConvergedSkip, NULL, NULL);
  if (!ierr) ierr = KSPSolve(ksp, b, x);
  since = MPI_Wtime() - since;
  (void)signal(SIGALRM, SIG_IGN);
  PetscCall(PetscPopErrorHandler());
  PetscCheck(ierr == PETSC_ERR_GPU, PETSC_COMM_SELF, PETSC_ERR_PLIB, "a rank slept, and this one ended with error %d", (int)ierr);
  PetscCheck(since < 60, PETSC_COMM_SELF, PETSC_ERR_PLIB, "that took %g seconds", since);
  PetscCall(VecNorm(x, NORM_2, &after));
  PetscCheck(before == after, PETSC_COMM_SELF, PETSC_ERR_PLIB, "x was changed by a solve that failed");
  PetscCall(KSPDestroy(&ksp));
  PetscCall(Solver(A, p, PETSC_TRUE, &ksp));
  PetscCall(Solve(ksp, b, x, &a));
  PetscCall(Solve(ref, c, y, &r));
  PetscCall(Together(ksp));
  PetscCall(Close(&a, &r, "after a rank was late", k, 0));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(KSPDestroy(&ref));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&c));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Do ranks share a GPU? */
static PetscErrorCode Crowded(PetscBool *crowded)
{
  const Program     *p          = &programs[0];
  char               text[4096] = "";
  static TestOutcome o;
  Mat                A;
  Vec                x, b;
  KSP                ksp;

  PetscFunctionBegin;
  *crowded = PETSC_FALSE;
  if (size == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Make(PETSC_COMM_WORLD, 4, p, 0, 5, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(Solver(A, p, PETSC_FALSE, &ksp));
  PetscCall(Solve(ksp, b, x, &o));
  PetscCall(Says(ksp, "several of them have the same GPU", text, sizeof(text), crowded));
  PetscCallMPI(MPI_Bcast(crowded, 1, MPIU_BOOL, 0, PETSC_COMM_WORLD));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt  sizes[8] = {2, 12, 25}, nsizes = 8, seeds = 3, only = -1;
  PetscBool late = PETSC_FALSE, set, crowded, graph;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-sizes", sizes, &nsizes, &set));
  if (!set) nsizes = 3;
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seeds", &seeds, NULL)); /* ways to share the rows */
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-only", &only, NULL));   /* this program */
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-late", &late, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-path", path, sizeof(path), NULL));
  PetscCall(PetscStrcmp(path, "graph", &graph));
  PetscCall(Crowded(&crowded));
  if (crowded) {
    sizes[0] = 12;
    nsizes = seeds = 1;
    graph          = PETSC_FALSE;
    PetscCall(PetscStrncpy(path, "persistent", sizeof(path)));
  }
  if (late) PetscCall(Late());
  else
    for (PetscInt s = 0; s < nsizes; s++)
      for (PetscInt seed = 0; seed < (size > 1 ? seeds : 1); seed++)
        for (PetscInt q = 0; q < (PetscInt)PETSC_STATIC_ARRAY_LENGTH(programs); q++)
          if ((only < 0 || q == only) && (graph || !programs[q].graph) && sizes[s] * sizes[s] % programs[q].bs == 0) PetscCall(Case(&programs[q], sizes[s], seed));
  PetscCall(PetscFinalize());
  return 0;
}

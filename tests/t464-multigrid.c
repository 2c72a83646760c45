/*
  Changes that a program may make to a hierarchy between two applications of PCMG or PCGAMG: each change of a list, and random sets of a few. Then coarseners that a program calls itself,
  PCGAMG's subdomains made of aggregates, and a matrix that loses its values.

  //TEST name="host" args="-our_pc_gamg_gpucsr false -mat_gpucsr_format csr -mat_gpucsr_product_least 0"
  //TEST name="standin" gpu=0 args="-our_pc_gamg_gpucsr false -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0 -seed 100"
  //TEST name="whole" gpu=0 whole=1 args="-our_pc_gamg_gpucsr false -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 3 -mat_gpucsr_product_least 0 -walks 500 -seed 1000"
  //TEST name="whole2" nsize=2 whole=1 args="-our_pc_gamg_gpucsr false -our_pc_mg_gpucsr -mat_gpucsr_format csr -mat_gpucsr_product_least 0 -mat_gpucsr_halo peer -walks 100 -seed 2000"
  //TEST name="late" gpu=0 args="-our_pc_gamg_gpucsr false -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 3 -every 7 -walks 3 -seed 200"
  //TEST name="ranks" nsize=2 args="-our_pc_gamg_gpucsr false -our_pc_mg_gpucsr -mat_gpucsr_format csr -mat_gpucsr_product_least 0 -mat_gpucsr_halo peer -every 9 -walks 2 -seed 300"
  //TEST name="three" nsize=3 gpu=0 args="-our_pc_gamg_gpucsr false -our_pc_mg_gpucsr -mat_gpucsr_backend cuda -gpucsr_debug_standin 3 -mat_gpucsr_product_least 0 -mat_gpucsr_halo peer -our_pc_mg_gpucsr_tail 0 -every 11 -walks 2 -seed 400"
*/
static char help[] = "Tests changes of a hierarchy.\n";

#include "programs.h"
#include <petsc/private/matimpl.h> /* lists of a coarsener */

#define LEVELS 3
#define LINE   72 /* points of the finest level */

static PetscInt calls = 0; /* of the program's functions by PETSc */

static PetscErrorCode Count(KSP ksp, PetscInt it, PetscReal norm, void *ctx)
{
  PetscFunctionBegin;
  (void)ksp, (void)it, (void)norm, (void)ctx;
  calls++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AfterOne(KSP ksp, PetscInt it, PetscReal norm, KSPConvergedReason *reason, void *ctx)
{
  PetscFunctionBegin;
  (void)ksp, (void)norm, (void)ctx;
  calls++;
  *reason = it > 0 ? KSP_CONVERGED_ITS : KSP_CONVERGED_ITERATING;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Shrink(KSP ksp, Vec b, Vec x, void *ctx)
{
  PetscFunctionBegin;
  (void)ksp, (void)b, (void)ctx;
  calls++;
  PetscCall(VecScale(x, 0.875));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HalfResidual(Mat A, Vec b, Vec x, Vec r)
{
  PetscFunctionBegin;
  calls++;
  PetscCall(MatResidual(A, b, x, r));
  PetscCall(VecScale(r, 0.5));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#include "t464-multigrid/changes.h"

/* ---- a hierarchy ---- */

/* A line of n points; the finest operator of all programs, symmetric positive definite */
static PetscErrorCode Line(World *w, PetscInt n, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(Make(w, w->comm, n, n, A));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    PetscCall(MatSetValue(*A, r, r, 2.0625 + (PetscReal)(r % 3), INSERT_VALUES));
    if (r) PetscCall(MatSetValue(*A, r, r - 1, -1, INSERT_VALUES));
    if (r < n - 1) PetscCall(MatSetValue(*A, r, r + 1, -1, INSERT_VALUES));
  }
  PetscCall(Assemble(*A));
  PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscCall(PerturbMat(w, *A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From half as many points */
static PetscErrorCode Interpolation(World *w, PetscInt n, Mat *P)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(Make(w, w->comm, n, n / 2, P));
  PetscCall(MatGetOwnershipRange(*P, &rs, &re));
  for (PetscInt r = rs; r < re; r++) {
    PetscCall(MatSetValue(*P, r, r / 2, r % 2 ? 0.5 : 1, INSERT_VALUES));
    if (r % 2 && r / 2 + 1 < n / 2) PetscCall(MatSetValue(*P, r, r / 2 + 1, 0.5, INSERT_VALUES));
  }
  PetscCall(Assemble(*P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Options of this world's prefix, or their end */
static PetscErrorCode Needs(World *w, const char needs[], PetscBool begin)
{
  char **words;
  int    n;

  PetscFunctionBegin;
  PetscCall(PetscStrToArray(needs, ' ', &n, &words));
  for (int k = 0; k + 1 < n; k += 2) {
    char name[128];

    PetscCall(PetscSNPrintf(name, sizeof(name), "-%s_%s", w->ref ? "ref" : "our", words[k] + 1));
    if (begin) PetscCall(PetscOptionsSetValue(NULL, name, words[k + 1]));
    else PetscCall(PetscOptionsClearValue(NULL, name));
  }
  PetscCall(PetscStrToArrayDestroy(n, words));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Hierarchy(World *w, PetscBool gamg, KSP *ksp, Mat *A)
{
  PC pc;

  PetscFunctionBegin;
  if (gamg) {
    PetscCall(Grid(w, 14, 0, A));
    PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_TRUE));
    PetscCall(PerturbMat(w, *A));
  } else PetscCall(Line(w, LINE, A));
  PetscCall(NewKSP(w, w->comm, *A, KSPRICHARDSON, gamg ? PCGAMG : PCMG, ksp));
  PetscCall(KSPGetPC(*ksp, &pc));
  if (!gamg) {
    PetscCall(PCMGSetLevels(pc, LEVELS, NULL));
    PetscCall(PCMGSetGalerkin(pc, PC_MG_GALERKIN_BOTH));
    for (PetscInt l = LEVELS - 1, n = LINE; l > 0; l--, n /= 2) {
      Mat P;
      KSP smoother;
      PC  jacobi;

      PetscCall(Interpolation(w, n, &P));
      PetscCall(PCMGSetInterpolation(pc, l, P));
      PetscCall(MatDestroy(&P));
      PetscCall(Smoother(pc, l, &smoother, &jacobi));
      PetscCall(PCSetType(jacobi, PCJACOBI));
    }
  }
  PetscCall(KSPSetFromOptions(*ksp));
  PetscCall(KSPSetUp(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PartsOf(PC pc, Parts *p)
{
  PetscFunctionBegin;
  p->pc = pc;
  PetscCall(PCGetOperators(pc, &p->A, NULL));
  PetscCall(Smoother(pc, 1, &p->mid, &p->mpc));
  PetscCall(PCMGGetCoarseSolve(pc, &p->coarse));
  PetscCall(KSPGetPC(p->coarse, &p->cpc));
  PetscCall(KSPGetOperators(p->mid, &p->middle, NULL));
  PetscCall(KSPGetOperators(p->coarse, &p->coarsest, NULL));
  PetscCall(PCMGGetInterpolation(pc, 1, &p->P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One application as the program sees it */
static PetscErrorCode TellApplied(World *w, PC pc, PetscBool device)
{
  Parts    p;
  Vec      b, x;
  PetscInt before, after;

  PetscFunctionBegin;
  PetscCall(PartsOf(pc, &p));
  PetscCall(MatCreateVecs(p.A, &x, &b));
  PetscCall(Fill(b, 5));
  PetscCall(Perturb(w, b));
  calls = 0;
  PetscCall(KSPGetTotalIterations(p.mid, &before));
  PetscCall(PCApply(pc, b, x));
  PetscCall(KSPGetTotalIterations(p.mid, &after));
  PetscCheck(!device || before == after, PETSC_COMM_SELF, PETSC_ERR_PLIB, "no cycle to change: it is PETSc's");
  PetscCall(Tell(w, (double)calls));
  PetscCall(TellFoundVec(w, x, 0));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OneChange(World *w, PetscBool gamg, const Change *change)
{
  Mat   A;
  KSP   ksp;
  PC    pc;
  Parts p;

  PetscFunctionBegin;
  PetscCall(Needs(w, change->needs, PETSC_TRUE));
  PetscCall(Hierarchy(w, gamg, &ksp, &A));
  PetscCall(KSPGetPC(ksp, &pc));
  for (int k = 0; k < 2; k++) PetscCall(TellApplied(w, pc, (PetscBool)!w->plain)); /* the second may be recorded */
  PetscCall(PartsOf(pc, &p));
  PetscCall((*change->change)(&p));
  for (int k = 0; k < 2; k++) PetscCall(TellApplied(w, pc, PETSC_FALSE));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(Needs(w, change->needs, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- by chance ---- */

static uint32_t chance;

static PetscInt Draw(PetscInt below)
{
  chance = chance * 1664525u + 1013904223u;
  return (PetscInt)((chance >> 8) % (uint32_t)below);
}

/* A few steps of a method over the cycle as it is */
static PetscErrorCode TellSteps(World *w, KSP ksp, const char type[])
{
  Mat A;
  Vec b, x;

  PetscFunctionBegin;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(Fill(b, 7));
  PetscCall(Perturb(w, b));
  PetscCall(KSPSetType(ksp, w->plain && !strncmp(type, "gpu", 3) ? type + 3 : type));
  PetscCall(KSPSetTolerances(ksp, 1e-30, PETSC_DEFAULT, 1e30, 2));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(TellFoundVec(w, x, 0));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Walk(World *w, uint32_t seed)
{
  static const char *const methods[] = {"gpucg", "cg", "gpugmres", "gmres"};
  const size_t             count     = PETSC_STATIC_ARRAY_LENGTH(changes);
  Mat                      A;
  KSP                      ksp;
  PC                       pc;

  PetscFunctionBegin;
  chance = seed;
  PetscCall(Hierarchy(w, (PetscBool)(Draw(2) == 0), &ksp, &A));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(TellApplied(w, pc, PETSC_FALSE));
  for (int k = 0; k < 6; k++) {
    const Change *change = &changes[Draw((PetscInt)count)];
    Parts         p;

    if (!change->walks) continue;
    PetscCall(PetscInfo(ksp, "Change %s\n", change->name));
    PetscCall(PartsOf(pc, &p));
    PetscCall((*change->change)(&p));
    if (Draw(3)) PetscCall(TellApplied(w, pc, PETSC_FALSE));
    else PetscCall(TellSteps(w, ksp, methods[Draw(4)]));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- coarseners that a program calls ---- */

/* A graph of so many neighbours a vertex by chance, symmetric in its pattern */
static PetscErrorCode Graph(World *w, PetscInt n, PetscInt degree, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(w->comm, n, n, w->ref, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 20, NULL));
  PetscCall(MatMPIAIJSetPreallocation(*A, 20, NULL, 20, NULL));
  PetscCall(MatSetOption(*A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt r = rs; r < re; r++) PetscCall(MatSetValue(*A, r, r, 1, INSERT_VALUES));
  for (PetscInt q = 0; q < n * degree; q++) { /* the same on all ranks, in any storage */
    const PetscInt r = Draw(n), c = (r + 1 + Draw(9)) % n;

    if (r >= rs && r < re) PetscCall(MatSetValue(*A, r, c, -1, INSERT_VALUES));
    if (c >= rs && c < re) PetscCall(MatSetValue(*A, c, r, -1, INSERT_VALUES));
  }
  PetscCall(Assemble(*A));
  if (Draw(2)) PetscCall(MatSetOption(*A, MAT_SYMMETRIC, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lists are told as sets in their order: a root and its members as PETSc lists them */
static PetscErrorCode TellLists(World *w, PetscCoarsenData *lists, PetscInt n)
{
  PetscFunctionBegin;
  for (PetscInt v = 0; v < n; v++) {
    PetscCDIntNd *node;

    PetscCall(PetscCDGetHeadPos(lists, v, &node));
    while (node) {
      PetscInt id;

      PetscCall(PetscCDIntNdGetID(node, &id));
      PetscCall(Tell(w, (double)id));
      PetscCall(PetscCDGetNextPos(lists, v, &node));
    }
    PetscCall(Tell(w, -1));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Coarsening(World *w, uint32_t seed)
{
  Mat               A;
  MatCoarsen        coarsen;
  PetscCoarsenData *lists;
  IS                order = NULL;
  PetscInt          n, local, first;

  PetscFunctionBegin;
  chance = seed;
  n      = 1 + Draw(150);
  PetscCall(Graph(w, n, Draw(4), &A));
  PetscCall(MatGetLocalSize(A, &local, NULL));
  PetscCall(MatGetOwnershipRange(A, &first, NULL));
  PetscCall(MatCoarsenCreate(w->comm, &coarsen));
  PetscCall(MatCoarsenSetType(coarsen, Draw(2) ? MATCOARSENMIS : MATCOARSENMISK));
  PetscCall(MatCoarsenMISKSetDistance(coarsen, 1 + Draw(3)));
  PetscCall(MatCoarsenSetStrictAggs(coarsen, PETSC_TRUE));
  if (Draw(2)) {
    PetscInt *p;

    PetscCall(PetscMalloc1(local, &p));
    for (PetscInt k = 0; k < local; k++) p[k] = k;
    for (PetscInt k = 0; k < local; k++) {
      const PetscInt other = (k * 7 + 3) % local, was = p[k];

      p[k]     = p[other];
      p[other] = was;
    }
    PetscCall(ISCreateGeneral(PETSC_COMM_SELF, local, p, PETSC_OWN_POINTER, &order));
    PetscCall(MatCoarsenSetGreedyOrdering(coarsen, order));
  }
  PetscCall(MatCoarsenSetAdjacency(coarsen, A));
  PetscCall(MatCoarsenApply(coarsen));
  PetscCall(MatCoarsenGetData(coarsen, &lists));
  PetscCall(TellLists(w, lists, local));
  PetscCall(PetscCDDestroy(lists));
  PetscCall(MatCoarsenDestroy(&coarsen));
  PetscCall(ISDestroy(&order));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Aggregates as subdomains of a smoother equal MATAIJ's */
static PetscErrorCode Subdomains(World *w)
{
  static const char *const needs[] = {"-pc_gamg_asm_use_agg 1", "-pc_gamg_asm_use_agg 1 -pc_gamg_aggressive_coarsening 0", "-pc_gamg_asm_use_agg 1 -pc_gamg_threshold 0.01"};

  PetscFunctionBegin;
  for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(needs); q++) {
    Mat      A;
    KSP      ksp, smoother;
    PC       pc, asmpc;
    IS      *is;
    PetscInt n, levels;

    PetscCall(Needs(w, needs[q], PETSC_TRUE));
    PetscCall(Hierarchy(w, PETSC_TRUE, &ksp, &A));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCMGGetLevels(pc, &levels));
    for (PetscInt l = 1; l < levels; l++) {
      PetscCall(Smoother(pc, l, &smoother, &asmpc));
      PetscCall(PCASMGetLocalSubdomains(asmpc, &n, &is, NULL));
      PetscCall(Tell(w, (double)n));
      for (PetscInt k = 0; k < n; k++) {
        const PetscInt *index;
        PetscInt        members;

        PetscCall(ISGetLocalSize(is[k], &members));
        PetscCall(ISGetIndices(is[k], &index));
        for (PetscInt m = 0; m < members; m++) PetscCall(Tell(w, (double)index[m]));
        PetscCall(ISRestoreIndices(is[k], &index));
        PetscCall(Tell(w, -1));
      }
    }
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
    PetscCall(Needs(w, needs[q], PETSC_FALSE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A matrix without a value ends as MATAIJ's does, whatever solves */
static PetscErrorCode Emptied(World *w)
{
  static const char *const methods[] = {"cg", "gpucg", "gmres"};

  PetscFunctionBegin;
  for (int m = 0; m < 3; m++) {
    const char        *method = methods[m];
    Mat                A;
    Vec                x, b;
    KSP                ksp;
    KSPConvergedReason reason;
    PetscInt           its;

    PetscCall(Grid(w, 14, 0, &A));
    PetscCall(NewKSP(w, w->comm, A, w->plain && !strcmp(method, "gpucg") ? "cg" : method, PCGAMG, &ksp));
    PetscCall(MatCreateVecs(A, &x, &b));
    PetscCall(Fill(b, 5));
    PetscCall(KSPSetTolerances(ksp, 1e-6, PETSC_DEFAULT, PETSC_DEFAULT, 50));
    for (int k = 0; k < 3; k++) {
      if (k) PetscCall(MatZeroEntries(A));
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(KSPGetConvergedReason(ksp, &reason));
      PetscCall(KSPGetIterationNumber(ksp, &its));
      PetscCall(Tell(w, (double)reason));
      PetscCall(Tell(w, k ? (double)its : 0));
    }
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- programs ---- */

static struct {
  const Change *change;
  PetscBool     gamg;
  uint32_t      seed;
} now;

static PetscErrorCode RunChange(World *w)
{
  return OneChange(w, now.gamg, now.change);
}

static PetscErrorCode RunCoarsening(World *w)
{
  return Coarsening(w, now.seed);
}

static PetscErrorCode RunWalk(World *w)
{
  return Walk(w, now.seed);
}

int main(int argc, char **argv)
{
  static const Program single[] = {
    {"subdomains", Subdomains},
    {"emptied",    Emptied   }
  };
  char     only[32] = "";
  PetscInt walks = 10, seed = 1, every = 1;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-change", only, sizeof(only), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-walks", &walks, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &seed, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &every, NULL));
  for (size_t k = (size_t)(seed % every); k < PETSC_STATIC_ARRAY_LENGTH(changes); k += (size_t)every) {
    for (int gamg = 0; gamg < 2; gamg++) {
      const Program program = {changes[k].name, RunChange};

      now.change = &changes[k];
      now.gamg   = (PetscBool)gamg;
      if (!only[0] || !strcmp(only, program.name)) PetscCall(RunPrograms(1, &program));
    }
  }
  for (PetscInt k = 0; k < walks && !only[0]; k++) {
    char          name[32];
    const Program program = {name, RunWalk};

    now.seed = (uint32_t)(seed + k);
    PetscCall(PetscSNPrintf(name, sizeof(name), "walk %" PetscInt_FMT, seed + k));
    PetscCall(RunPrograms(1, &program));
  }
  for (PetscInt k = 0; k < 3 * walks && !only[0]; k++) {
    char          name[32];
    const Program program = {name, RunCoarsening};

    now.seed = (uint32_t)(seed + k);
    PetscCall(PetscSNPrintf(name, sizeof(name), "coarsening %" PetscInt_FMT, seed + k));
    PetscCall(RunPrograms(1, &program));
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(single); k++) {
    if (!only[0] || !strcmp(only, single[k].name)) PetscCall(RunPrograms(1, &single[k]));
  }
  PetscCall(PetscFinalize());
  return 0;
}

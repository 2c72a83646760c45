/*
  PCGAMG of a matrix of the type under test beside MATAIJ's. It takes at most 1.3 times as many iterations and finds as good a solution, on several problems, with new values, and inside each solver.
  Each option has its effect; options that need PETSc's aggregates get PETSc's levels. A program asks for levels and changes them; applications are transposed, and several at once.

  //TEST name="csr" args="-mat_gpucsr_format csr"
  //TEST name="vectors" args="-mat_gpucsr_format csr -mat_gpucsr_product_least 0 -vec_type gpu -vec_gpu_separate -few"
  //TEST name="standin" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0"
  //TEST name="late" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 3 -mat_gpucsr_product_least 0 -few"
  //TEST name="levels" args="-mat_gpucsr_format csr -mat_gpucsr_product_least 0 -few -gamg {}" loop="pc_gamg_aggressive_coarsening=2 pc_gamg_threshold=0.05 pc_gamg_threshold=0 pc_gamg_agg_nsmooths=0 pc_gamg_agg_nsmooths=2 pc_gamg_reuse_interpolation=1 pc_gamg_square_graph=1 pc_gamg_coarse_eq_limit=200 mg_levels_ksp_max_it=3 mg_levels_ksp_type=richardson mg_levels_pc_type=sor mg_levels_pc_type=ilu mg_levels_pc_type=pbjacobi mg_coarse_pc_type=svd pc_mg_cycle_type=w pc_mg_type=full pc_gamg_esteig_ksp_max_it=5 pc_gamg_esteig_ksp_type=cg"
  //TEST name="petscs" args="-mat_gpucsr_format csr -mat_gpucsr_product_least 0 -petscs -few -gamg {}" loop="pc_gamg_gpucsr=0 mat_coarsen_type=mis mat_coarsen_type=hem mat_coarsen_misk_distance=2 pc_gamg_asm_use_agg=1 matptap_via=scalable pc_gamg_agg_nsmooths=5"
  //TEST name="limit" args="-mat_gpucsr_backend auto -mat_gpucsr_format csr -mat_gpucsr_product_least 0 -few -either -mat_gpucsr_memory_limit {}" loop="100000 400000 1000000"
  //TEST name="fault" gpu=0 args="-mat_gpucsr_backend auto -mat_gpucsr_format csr -gpucsr_debug_standin 1 -few -either -gpucsr_debug_fault {}" loop="memory:4 memory:9 memory:15 memory:30 memory:8:on memory:60:on"
  //TEST name="ranks" nsize={} loop="2 3 4 8" args="-mat_gpucsr_format csr"
  //TEST name="ranks_levels" nsize=3 args="-mat_gpucsr_format csr -mat_gpucsr_product_least 0 -few -gamg {}" loop="pc_gamg_agg_nsmooths=0 pc_gamg_agg_nsmooths=2 pc_gamg_reuse_interpolation=1 pc_gamg_process_eq_limit=10 pc_gamg_coarse_eq_limit=200 pc_gamg_parallel_coarse_grid_solver=1 pc_gamg_rank_reduction_factors=3 pc_gamg_esteig_ksp_type=gmres mg_levels_ksp_type=richardson mg_levels_pc_type=sor mg_levels_pc_type=pbjacobi pc_mg_cycle_type=w pc_mg_type=full"
  //TEST name="ranks_standin" nsize=2 gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 2 -mat_gpucsr_halo peer -few"
  //TEST name="ranks_options" nsize=2 args="-mat_gpucsr_format csr -refuse" fails="Options -pc_gamg_... are not the same on all ranks"
*/
static char help[] = "Tests GAMG.\n";

#include "t421-gamg/problems.h"

#define FEWER     1.3  /* times PCGAMG's iterations, at most */
#define TOLERANCE 1e-8 /* of the true residual */

static PetscBool petscs = PETSC_FALSE, either = PETSC_FALSE, few = PETSC_FALSE; /* aggregates are PETSc's; they may be */
static PetscInt  steps = 1;                                                     /* of the prolongator's smoother: more need a matrix that is known to be symmetric */

typedef struct {
  PetscInt  levels, its, n[20];
  PetscReal nonzeros[20], error;
} Outcome;

/* The levels as a program sees them */
static PetscErrorCode Levels(PC pc, Outcome *o)
{
  PetscFunctionBegin;
  PetscCall(PCMGGetLevels(pc, &o->levels));
  PetscCheck(o->levels > 1 && o->levels < 20, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " levels", o->levels);
  for (PetscInt l = 0; l < o->levels; l++) {
    KSP     smoother;
    Mat     A;
    MatInfo info;

    PetscCall(PCMGGetSmoother(pc, l, &smoother));
    PetscCall(KSPGetOperators(smoother, &A, NULL));
    PetscCall(MatGetSize(A, &o->n[l], NULL));
    PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
    o->nonzeros[l] = info.nz_used;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Relative residual of a solve for ones */
static PetscErrorCode Measure(KSP ksp, Mat R, Outcome *o)
{
  PC        pc;
  Vec       r, b, x;
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(R, &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetIterationNumber(ksp, &o->its));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(Levels(pc, o));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(MatMult(R, x, r));
  PetscCall(VecAYPX(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &norm));
  PetscCall(VecNorm(b, NORM_2, &o->error));
  o->error = norm / o->error;
  PetscCall(VecDestroy(&r));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* same: PETSc's aggregates equal MATAIJ's; more: iterations that are allowed beyond MATAIJ's */
static PetscErrorCode Compare(const Outcome *o, const Outcome *r, PetscBool same, PetscInt more, const char where[])
{
  PetscFunctionBegin;
  PetscCheck(!same || o->levels == r->levels, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " levels, MATAIJ has %" PetscInt_FMT, where, o->levels, r->levels);
  for (PetscInt l = 0; l < o->levels && same; l++)
    PetscCheck(o->n[l] == r->n[l] && o->nonzeros[l] == r->nonzeros[l], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: level %" PetscInt_FMT " has %" PetscInt_FMT " rows and %g nonzeros, MATAIJ's %" PetscInt_FMT " and %g", where, l, o->n[l], (double)o->nonzeros[l], r->n[l],
               (double)r->nonzeros[l]);
  PetscCheck((PetscReal)o->its <= PetscMax(FEWER * (PetscReal)r->its, (PetscReal)(r->its + more)), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " iterations, MATAIJ takes %" PetscInt_FMT, where, o->its, r->its);
  PetscCheck(o->error <= 2 * PetscMax(TOLERANCE, r->error), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: residual %g", where, (double)o->error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are the aggregates as expected, and does the view say so? */
static PetscErrorCode Whose(PC pc, PetscBool own, const char where[])
{
  PetscBool device, host;

  PetscFunctionBegin;
  PetscCall(TestPCSays(pc, "are made on the device, as those of PC type gpuamg", &device));
  PetscCall(TestPCSays(pc, "Aggregates are PETSc's, because", &host));
  PetscCheck(device || host, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: the view does not say whose the aggregates are", where);
  PetscCheck(either || own == device, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: aggregates are %s", where, device ? "the device's" : "PETSc's");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solver(Mat A, const char type[], KSP *ksp)
{
  PC pc;

  PetscFunctionBegin;
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, type));
  PetscCall(KSPSetTolerances(*ksp, TOLERANCE, PETSC_DEFAULT, PETSC_DEFAULT, 200));
  if (strstr(type, "cg")) PetscCall(KSPSetNormType(*ksp, KSP_NORM_UNPRECONDITIONED));
  else PetscCall(KSPSetPCSide(*ksp, PC_RIGHT));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* type: of the Krylov method, of MATAIJ's PETSc's CG or GMRES */
static PetscErrorCode Case(PetscInt k, PetscReal contrast, PetscReal convection, PetscBool symmetric, PetscBool alone, PetscBool blocks, const char type[], const char where[])
{
  Mat A[2] = {NULL, NULL};
  KSP ksp[2];
  PC  pc;

  PetscFunctionBegin;
  for (int ref = 0; ref < 2; ref++) {
    PetscCall(Box(PETSC_COMM_WORLD, k, contrast, convection, 0, (PetscBool)ref, &A[ref]));
    if (symmetric) PetscCall(MatSetOption(A[ref], MAT_SPD, PETSC_TRUE));
    if (alone) PetscCall(Alone(A[ref]));
    if (blocks) PetscCall(Blocks((PetscBool)ref, &A[ref]));
    if (blocks && symmetric) PetscCall(MatSetOption(A[ref], MAT_SPD, PETSC_TRUE));
    PetscCall(Solver(A[ref], ref ? (symmetric ? KSPCG : convection != 0 && !strcmp(type, "gpubcgs") ? KSPBCGS : KSPGMRES) : type, &ksp[ref]));
  }
  for (PetscInt pass = 0; pass < 3; pass++) {
    Outcome o[2];

    for (int ref = 0; ref < 2; ref++) {
      if (pass && !alone && !blocks) PetscCall(Box(PETSC_COMM_WORLD, k, contrast, convection, pass, (PetscBool)ref, &A[ref]));
      if (pass && (alone || blocks)) PetscCall(MatScale(A[ref], 3.0));
      PetscCall(KSPSetOperators(ksp[ref], A[ref], A[ref]));
      PetscCall(Measure(ksp[ref], A[ref], &o[ref]));
    }
    PetscCall(Compare(&o[0], &o[1], petscs, strcmp(type, "gpubcgs") ? 1 : 2, where)); /* residuals of BiCGStab jump */
    PetscCall(KSPGetPC(ksp[0], &pc));
    PetscCall(Whose(pc, (PetscBool)(!petscs && (symmetric || steps < 2)), where));
  }
  for (int ref = 0; ref < 2; ref++) {
    PetscCall(KSPDestroy(&ksp[ref]));
    PetscCall(MatDestroy(&A[ref]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- options and functions ---- */

typedef PetscErrorCode Setting(PC);

/* Levels of a PC with options ("-name value ..."), or after a function */
static PetscErrorCode With(Mat A, const char options[], Setting *set, Outcome *o, PC *pc)
{
  PetscOptions all;

  PetscFunctionBegin;
  PetscCall(PetscOptionsCreate(&all));
  PetscCall(PetscOptionsInsertString(all, options ? options : ""));
  PetscCall(PCCreate(PetscObjectComm((PetscObject)A), pc));
  PetscCall(PetscObjectSetOptions((PetscObject)*pc, all));
  PetscCall(PCSetOperators(*pc, A, A));
  PetscCall(PCSetType(*pc, PCGAMG));
  if (set) PetscCall((*set)(*pc));
  PetscCall(PCSetFromOptions(*pc));
  PetscCall(PCSetUp(*pc));
  PetscCall(Levels(*pc, o));
  PetscCall(PetscObjectSetOptions((PetscObject)*pc, NULL));
  PetscCall(PetscOptionsDestroy(&all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NoSmooths(PC pc)
{
  PetscFunctionBegin;
  PetscCall(PCGAMGSetNSmooths(pc, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NoAggressive(PC pc)
{
  PetscFunctionBegin;
  PetscCall(PCGAMGSetAggressiveLevels(pc, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The type has its defaults again */
static PetscErrorCode TypeAgain(PC pc)
{
  PetscFunctionBegin;
  PetscCall(PCGAMGSetAggressiveLevels(pc, 0));
  PetscCall(PCGAMGSetType(pc, PCGAMGCLASSICAL));
  PetscCall(PCGAMGSetType(pc, PCGAMGAGG));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Threshold(PC pc)
{
  PetscReal t = 0.2;

  PetscFunctionBegin;
  PetscCall(PCGAMGSetThreshold(pc, &t, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Ordering(PC pc)
{
  PetscErrorCode (*f)(PC, PetscBool);

  PetscFunctionBegin;
  PetscCall(PetscObjectQueryFunction((PetscObject)pc, "PCGAMGMISkSetMinDegreeOrdering_C", &f));
  if (f) PetscCall((*f)(pc, PETSC_TRUE));
  else PetscCall(PCGAMGASMSetUseAggs(pc, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A setting's effect on the number of rows below the finest level, against the default: -1 fewer, 0 the same, 1 more, 2 anything; own: the device makes the aggregates */
static PetscErrorCode Effects(void)
{
  static const struct {
    const char *options;
    Setting    *set;
    int         rows;
    PetscBool   own;
  } effect[] = {
    {"",                                                               NULL,         0,  PETSC_TRUE },
    {"-pc_gamg_aggressive_coarsening 0",                               NULL,         1,  PETSC_TRUE },
    {"-pc_gamg_square_graph 0",                                        NULL,         1,  PETSC_TRUE },
    {NULL,                                                             NoAggressive, 1,  PETSC_TRUE },
    {"-pc_gamg_aggressive_coarsening 1",                               NoAggressive, 0,  PETSC_TRUE },
    {NULL,                                                             TypeAgain,    0,  PETSC_TRUE },
    {"-pc_gamg_type agg",                                              NoAggressive, 0,  PETSC_TRUE },
    {"-pc_gamg_aggressive_square_graph 0 -pc_gamg_aggressive_mis_k 3", NULL,         -1, PETSC_TRUE },
    {"-pc_gamg_threshold 0.2",                                         NULL,         1,  PETSC_TRUE },
    {NULL,                                                             Threshold,    1,  PETSC_TRUE },
    {"-pc_gamg_gpucsr true",                                           NULL,         0,  PETSC_TRUE },
    {"-pc_gamg_gpucsr false",                                          NULL,         2,  PETSC_FALSE},
    {"-pc_gamg_type classical",                                        NULL,         2,  PETSC_FALSE},
    {"-pc_gamg_asm_use_agg",                                           NULL,         2,  PETSC_FALSE},
    {"-mat_coarsen_type hem",                                          NULL,         2,  PETSC_FALSE},
    {NULL,                                                             Ordering,     2,  PETSC_FALSE}
  };
  Mat A = NULL;

  PetscFunctionBegin;
  PetscCall(Box(PETSC_COMM_WORLD, 16, 6.0, 0.0, 0, PETSC_FALSE, &A));
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(effect); k++) {
    static PetscInt usual = 0;
    const char     *name  = effect[k].options ? effect[k].options : "a function";
    PC              pc;
    Outcome         o;
    int             rows;

    PetscCall(With(A, effect[k].options, effect[k].set, &o, &pc));
    PetscCall(Whose(pc, effect[k].own, name));
    PetscCall(PCDestroy(&pc));
    if (!k) usual = o.n[o.levels - 2];
    rows = (o.n[o.levels - 2] > usual) - (o.n[o.levels - 2] < usual);
    PetscCheck(effect[k].rows == 2 || rows == effect[k].rows, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s (%d): %" PetscInt_FMT " rows below the finest level, %" PetscInt_FMT " by default", name, (int)k, o.n[o.levels - 2], usual);
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Options of what PETSc does with the aggregates */
static PetscErrorCode PetscsOptions(void)
{
  Mat       A = NULL, P;
  PC        pc;
  Outcome   o;
  PetscInt  usual;
  PetscReal last;
  MatInfo   info;
  Vec       before, after, w;

  PetscFunctionBegin;
  PetscCall(Box(PETSC_COMM_WORLD, 14, 2.0, 0.0, 0, PETSC_FALSE, &A));
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  PetscCall(With(A, "", NULL, &o, &pc));
  PetscCall(PCDestroy(&pc));
  usual = o.n[0];
  last  = o.nonzeros[o.levels - 2];
  PetscCall(With(A, "-pc_gamg_coarse_eq_limit 3", NULL, &o, &pc));
  PetscCheck(o.n[0] < usual || usual <= 3, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "-pc_gamg_coarse_eq_limit has no effect: %" PetscInt_FMT " rows", o.n[0]);
  PetscCall(PCDestroy(&pc));
#if PETSC_VERSION_LT(3, 24, 0) /* PCGAMG of 3.24 refuses it */
  PetscCall(With(A, "-pc_mg_levels 2", NULL, &o, &pc));
  PetscCheck(o.levels == 2, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "-pc_mg_levels 2 has no effect: %" PetscInt_FMT " levels", o.levels);
  PetscCall(PCDestroy(&pc));
#endif
  for (int k = 0; k < 2; k++) {
    PetscCall(With(A, k ? "" : "-pc_gamg_agg_nsmooths 0", k ? NoSmooths : NULL, &o, &pc));
    PetscCall(PCMGGetInterpolation(pc, o.levels - 1, &P));
    PetscCall(MatGetInfo(P, MAT_GLOBAL_SUM, &info));
    PetscCheck(info.nz_used <= (double)o.n[o.levels - 1], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "No steps of the prolongator's smoother have no effect (%d)", k);
    PetscCall(PCDestroy(&pc));
  }
  PetscCall(With(A, "-pc_gamg_agg_nsmooths 2", NULL, &o, &pc));
  PetscCheck(o.nonzeros[o.levels - 2] > last, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "-pc_gamg_agg_nsmooths 2 has no effect");
  PetscCall(PCDestroy(&pc));
  for (int reuse = 0; reuse < 2; reuse++) {
    PetscReal off;

    PetscCall(With(A, reuse ? "-pc_gamg_reuse_interpolation true" : "-pc_gamg_reuse_interpolation false", NULL, &o, &pc));
    PetscCall(PCMGGetInterpolation(pc, o.levels - 1, &P));
    PetscCall(MatCreateVecs(P, &w, &before));
    PetscCall(VecDuplicate(before, &after));
    PetscCall(TestFill(w, 2, PETSC_FALSE));
    PetscCall(MatMult(P, w, before));
    PetscCall(Box(PETSC_COMM_WORLD, 14, 2.0, 0.0, 1 + reuse, PETSC_FALSE, &A));
    PetscCall(PCSetOperators(pc, A, A));
    PetscCall(PCSetUp(pc));
    PetscCall(PCMGGetInterpolation(pc, o.levels - 1, &P));
    PetscCall(MatMult(P, w, after));
    PetscCall(VecAXPY(after, -1.0, before));
    PetscCall(VecNorm(after, NORM_2, &off));
    PetscCheck((off == 0) == (PetscBool)reuse, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "The interpolation was%s kept with -pc_gamg_reuse_interpolation %d", reuse ? " not" : "", reuse);
    PetscCall(VecDestroy(&w));
    PetscCall(VecDestroy(&before));
    PetscCall(VecDestroy(&after));
    PetscCall(Whose(pc, PETSC_TRUE, "after new values"));
    PetscCall(PCReset(pc));
    PetscCall(PCSetOperators(pc, A, A));
    PetscCall(PCSetUp(pc));
    PetscCall(Whose(pc, PETSC_TRUE, "after a reset"));
    PetscCall(PCDestroy(&pc));
  }
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- levels in the hands of a program ---- */

static PetscErrorCode Change(PC pc, int what)
{
  KSP ksp;
  PC  sub;

  PetscFunctionBegin;
  PetscCall(PCMGGetSmoother(pc, 1, &ksp));
  PetscCall(KSPGetPC(ksp, &sub));
  if (what == 0) PetscCall(PCSetType(sub, PCSOR));
  if (what == 1) PetscCall(KSPSetType(ksp, KSPRICHARDSON));
  if (what == 1) PetscCall(KSPRichardsonSetScale(ksp, 0.5));
  if (what == 2) PetscCall(PCMGSetCycleType(pc, PC_MG_CYCLE_W));
  if (what == 3) PetscCall(PCMGSetNumberSmooth(pc, 4));
  if (what == 4) {
    PetscCall(PCMGGetCoarseSolve(pc, &ksp));
    PetscCall(KSPSetType(ksp, KSPCG));
    PetscCall(KSPSetTolerances(ksp, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, 5));
    PetscCall(KSPGetPC(ksp, &sub));
    PetscCall(PCSetType(sub, PCJACOBI));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Touched(void)
{
  PetscFunctionBegin;
  for (int what = 0; what < 5; what++) {
    Mat     A[2] = {NULL, NULL};
    Outcome o[2];
    KSP     ksp;
    PC      pc;

    for (int ref = 0; ref < 2; ref++) {
      PetscCall(Box(PETSC_COMM_WORLD, 12, 2.0, 0.0, 0, (PetscBool)ref, &A[ref]));
      PetscCall(Solver(A[ref], KSPFGMRES, &ksp));
      PetscCall(KSPGetPC(ksp, &pc));
      PetscCall(PCSetUp(pc));
      PetscCall(Change(pc, what));
      PetscCall(Measure(ksp, A[ref], &o[ref]));
      PetscCall(Change(pc, what == 2 ? 3 : 2)); /* between two solves too */
      PetscCall(Measure(ksp, A[ref], &o[ref]));
      PetscCall(KSPDestroy(&ksp));
      PetscCall(MatDestroy(&A[ref]));
    }
    PetscCall(Compare(&o[0], &o[1], petscs, 1, "changed levels"));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* (M x, y) = (x, M^T y), and M of the columns of a dense matrix */
static PetscErrorCode Applications(void)
{
  Mat         A = NULL, X, Y;
  Vec         x, y, z, c;
  PC          pc;
  Outcome     o;
  PetscScalar a, b;
  PetscReal   size;
  PetscInt    n, N;

  PetscFunctionBegin;
  PetscCall(Box(PETSC_COMM_WORLD, 10, 1.0, 0.7, 0, PETSC_FALSE, &A));
  PetscCall(With(A, "", NULL, &o, &pc));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(VecDuplicate(x, &z));
  PetscCall(TestFill(x, 3, PETSC_FALSE));
  PetscCall(TestFill(y, 4, PETSC_FALSE));
  PetscCall(PCApply(pc, x, z));
  PetscCall(VecDot(z, y, &a));
  PetscCall(VecNorm(z, NORM_2, &size));
  PetscCall(PCApplyTranspose(pc, y, z));
  PetscCall(VecDot(x, z, &b));
  PetscCheck(PetscAbsScalar(a - b) <= 1e-12 * size * 1e3, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "(M x, y) is %g, (x, M^T y) is %g", (double)PetscRealPart(a), (double)PetscRealPart(b));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetSize(x, &N));
  PetscCall(MatCreateDense(PETSC_COMM_WORLD, n, PETSC_DECIDE, N, 3, NULL, &X));
  PetscCall(MatDuplicate(X, MAT_DO_NOT_COPY_VALUES, &Y));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(MatDenseGetColumnVecWrite(X, k, &c));
    PetscCall(TestFill(c, 5 + k, PETSC_FALSE));
    PetscCall(MatDenseRestoreColumnVecWrite(X, k, &c));
  }
  PetscCall(MatAssemblyBegin(X, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(X, MAT_FINAL_ASSEMBLY));
  PetscCall(PCMatApply(pc, X, Y));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(MatDenseGetColumnVecRead(X, k, &c));
    PetscCall(VecCopy(c, x));
    PetscCall(MatDenseRestoreColumnVecRead(X, k, &c));
    PetscCall(PCApply(pc, x, z));
    PetscCall(MatDenseGetColumnVecRead(Y, k, &c));
    PetscCall(VecCopy(c, y));
    PetscCall(MatDenseRestoreColumnVecRead(Y, k, &c));
    PetscCall(VecNorm(z, NORM_2, &size));
    PetscCall(VecAXPY(y, -1.0, z));
    PetscCall(VecNorm(y, NORM_2, &o.error));
    PetscCheck(o.error <= 1e-12 * size, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "PCMatApply() differs from PCApply() by %g of %g", (double)o.error, (double)size);
  }
  PetscCall(MatDestroy(&X));
  PetscCall(MatDestroy(&Y));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&z));
  PetscCall(PCDestroy(&pc));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* NaN: an error, or a reason below zero */
static PetscErrorCode Bad(void)
{
  Mat                A = NULL;
  KSP                ksp;
  Vec                x, b;
  KSPConvergedReason reason = KSP_DIVERGED_NANORINF;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  PetscCall(Box(PETSC_COMM_WORLD, 8, 1.0, 0.0, 0, PETSC_FALSE, &A));
  PetscCall(MatScale(A, (PetscScalar)NAN));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(Solver(A, KSPCG, &ksp));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = KSPSolve(ksp, b, x);
  PetscCall(PetscPopErrorHandler());
  if (!ierr) PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCheck(reason < 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "No number converged");
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The interpolation without smoothing has the near null space: P P^T v = v. vectors: so many, the first constant and the others of both signs */
static PetscErrorCode Near(PetscInt vectors, PetscBool alone)
{
  Mat          A = NULL, P;
  Vec          v[3], s, z;
  MatNullSpace near;
  Outcome      o;
  PC           pc;
  PetscReal    norm, off;

  PetscFunctionBegin;
  PetscCall(Box(PETSC_COMM_WORLD, 9, 1.0, 0.0, 0, PETSC_FALSE, &A));
  PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));
  if (alone) PetscCall(Alone(A));
  PetscCall(MatCreateVecs(A, &v[0], NULL));
  for (PetscInt k = 1; k < 3; k++) PetscCall(VecDuplicate(v[0], &v[k]));
  PetscCall(VecSet(v[0], 1.0));
  for (PetscInt k = 0; k < vectors; k++) {
    if (k || alone) PetscCall(TestFill(v[k], 11 + k, PETSC_FALSE));
    for (PetscInt q = 0; q < k; q++) {
      PetscScalar dot;

      PetscCall(VecDot(v[k], v[q], &dot));
      PetscCall(VecAXPY(v[k], -dot, v[q]));
    }
    PetscCall(VecNormalize(v[k], NULL));
  }
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_FALSE, vectors, v, &near));
  PetscCall(MatSetNearNullSpace(A, near));
  PetscCall(MatNullSpaceDestroy(&near));
  PetscCall(With(A, "-pc_gamg_agg_nsmooths 0", NULL, &o, &pc));
  PetscCall(Whose(pc, PETSC_TRUE, "a near null space"));
  PetscCall(PCMGGetInterpolation(pc, o.levels - 1, &P));
  PetscCall(MatCreateVecs(P, &s, &z));
  for (PetscInt k = 0; k < vectors; k++) {
    PetscCall(MatMultTranspose(P, v[k], s));
    PetscCall(MatMult(P, s, z));
    PetscCall(VecAXPY(z, -1.0, v[k]));
    if (alone) { /* rows alone belong to no aggregate */
      PetscInt rows[3] = {5, 77, 300};

      PetscCall(VecSetOption(z, VEC_IGNORE_OFF_PROC_ENTRIES, PETSC_TRUE));
      for (int q = 0; q < 3; q++) PetscCall(VecSetValue(z, rows[q], 0.0, INSERT_VALUES));
      PetscCall(VecAssemblyBegin(z));
      PetscCall(VecAssemblyEnd(z));
    }
    PetscCall(VecNorm(z, NORM_2, &off));
    PetscCall(VecNorm(v[k], NORM_2, &norm));
    PetscCheck(off <= 1e3 * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "Vector %" PetscInt_FMT " of %" PetscInt_FMT " is missed by %g", k, vectors, (double)off);
  }
  PetscCall(VecDestroy(&s));
  PetscCall(VecDestroy(&z));
  for (PetscInt k = 0; k < 3; k++) PetscCall(VecDestroy(&v[k]));
  PetscCall(PCDestroy(&pc));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fields of a block matrix, each with PCGAMG */
static PetscErrorCode Fields(void)
{
  Mat      A[2] = {NULL, NULL};
  PetscInt its[2];

  PetscFunctionBegin;
  for (int ref = 0; ref < 2; ref++) {
    KSP ksp, *sub;
    PC  pc;
    Vec x, b;

    PetscCall(Box(PETSC_COMM_SELF, 8, 1.0, 0.0, 0, (PetscBool)ref, &A[ref]));
    PetscCall(Blocks((PetscBool)ref, &A[ref]));
    PetscCall(MatCreateVecs(A[ref], &x, &b));
    PetscCall(VecSet(b, 1.0));
    PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
    PetscCall(KSPSetOperators(ksp, A[ref], A[ref]));
    PetscCall(KSPSetType(ksp, KSPGMRES));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCFIELDSPLIT));
    PetscCall(PCFieldSplitSetBlockSize(pc, 3));
    PetscCall(KSPSetUp(ksp));
    PetscCall(PCFieldSplitGetSubKSP(pc, NULL, &sub));
    for (int f = 0; f < 3; f++) {
      PC of;

      PetscCall(KSPGetPC(sub[f], &of));
      PetscCall(KSPSetType(sub[f], KSPPREONLY));
      PetscCall(PCSetType(of, PCGAMG));
      PetscCall(PCSetUp(of));
      if (!ref) PetscCall(Whose(of, PETSC_TRUE, "a field"));
    }
    PetscCall(PetscFree(sub));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetIterationNumber(ksp, &its[ref]));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&A[ref]));
  }
  PetscCheck((PetscReal)its[0] <= PetscMax(FEWER * (PetscReal)its[1], (PetscReal)its[1] + 1), PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " iterations with fields, MATAIJ takes %" PetscInt_FMT, its[0], its[1]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Ranks with other options */
static PetscErrorCode Refuse(void)
{
  Mat         A = NULL;
  PC          pc;
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(Box(PETSC_COMM_WORLD, 8, 1.0, 0.0, 0, PETSC_FALSE, &A));
  PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
  PetscCall(PCSetOperators(pc, A, A));
  PetscCall(PCSetType(pc, PCGAMG));
  PetscCall(PCGAMGSetAggressiveLevels(pc, rank));
  PetscCall(PCSetUp(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const methods[]   = {"gpucg", "gpubcgs", "gpugmres"};
  char                     option[128] = "-", *value;
  PetscBool                set, refuse = PETSC_FALSE;
  PetscMPIInt              size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-gamg", option + 1, sizeof(option) - 1, &set)); /* name=value */
  if (set) {
    PetscCall(PetscStrchr(option, '=', &value));
    PetscCheck(value, PETSC_COMM_WORLD, PETSC_ERR_ARG_WRONG, "-gamg name=value");
    *value++ = 0;
    PetscCall(PetscOptionsSetValue(NULL, option, value));
  }
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-pc_gamg_agg_nsmooths", &steps, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-petscs", &petscs, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-either", &either, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-few", &few, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-refuse", &refuse, NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (refuse) PetscCall(Refuse());
  PetscCall(Case(12, 0.0, 0.0, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE, KSPCG, "Poisson"));
  PetscCall(Case(13, 3.0, 0.0, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE, KSPCG, "contrast"));
  PetscCall(Case(11, 1.0, 0.0, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE, KSPGMRES, "symmetric, which nobody said"));
  PetscCall(Case(11, 1.0, 0.7, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE, KSPGMRES, "convection"));
  PetscCall(Case(10, 1.0, 0.0, PETSC_TRUE, PETSC_TRUE, PETSC_FALSE, KSPCG, "rows alone"));
  if (size == 1) PetscCall(Case(8, 1.0, 0.0, PETSC_TRUE, PETSC_FALSE, PETSC_TRUE, KSPCG, "blocks"));
  if (size == 1) PetscCall(Case(7, 1.0, 0.0, PETSC_FALSE, PETSC_FALSE, PETSC_TRUE, KSPGMRES, "blocks, symmetric, which nobody said"));
  if (!few) {
    for (int m = 0; m < 3; m++) PetscCall(Case(12, 1.0, m ? 0.5 : 0.0, (PetscBool)!m, PETSC_FALSE, PETSC_FALSE, methods[m], methods[m]));
    PetscCall(Effects());
    PetscCall(PetscsOptions());
    PetscCall(Touched());
    PetscCall(Applications());
    for (PetscInt k = 1; k < 4; k++) PetscCall(Near(k, PETSC_FALSE));
    PetscCall(Near(1, PETSC_TRUE));
    if (size == 1) PetscCall(Fields());
    PetscCall(Bad());
  }
  PetscCall(PetscFinalize());
  return 0;
}

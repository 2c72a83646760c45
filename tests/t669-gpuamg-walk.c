/*
  Random walks of set-ups of PCGPUAMG, and of PCGAMG whose levels the device makes. A step changes values, pattern, matrix, near null space, options, right-hand side or the KSPs. After each step solves and
  applications of all PCs of the walk are compared with those of a PC that is made anew: of a copy of the matrix, or, if prolongators are kept, of the matrix they come from and then of the new values.

    -walks n    how many walks, -seed n the first, -steps n of how many steps, -show: print each step

  //TEST name="gpuamg" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1"
  //TEST name="gamg" gpu=0 args="-pc gamg -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0"
  //TEST name="ranks" nsize=3 gpu=0 args="-pc {} -mat_gpucsr_backend cuda -gpucsr_debug_standin 3 -mat_gpucsr_halo peer -mat_gpucsr_product_least 0 -walks 1 -steps 8" loop="gpuamg gamg"
  //TEST name="gpu" gpu=1 args="-pc {} -walks 5" loop="gpuamg gamg"
  //TEST name="whole" gpu=0 whole=1 args="-pc {} -mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 3 -mat_gpucsr_product_least 0 -walks 200 -seed 1000" loop="gpuamg gamg"
  //TEST name="whole_ranks" nsize=3 gpu=0 whole=1 args="-pc {} -mat_gpucsr_backend cuda -gpucsr_debug_standin 3 -mat_gpucsr_halo peer -mat_gpucsr_product_least 0 -walks 30 -seed 2000" loop="gpuamg gamg"
*/
static char help[] = "Walks from set-up to set-up of PCGPUAMG and PCGAMG.\n";

#include "t660-gpuamg/elastic.h"
#include <petscgpucsr.h>
#include <petsc/private/petscimpl.h>

#define RTOL    1e-8
#define OPTIONS 14

/* Places among the options */
#define REUSE     0
#define THRESHOLD 2

/* ---- options ---- */

/* A KSP takes back no option, so each has its first value from the start; NULL: the option is not set yet */
static const struct {
  const char *name, *only; /* only: for this type of PC */
  const char *value[4];
} options[OPTIONS] = {
  {"reuse_interpolation",   "",       {"false", "true"}           },
  {"mg_levels_ksp_max_it",  "",       {"2", "3", "1"}             },
  {"threshold",             "",       {NULL, "-1", "0.02", "0"}   },
  {"agg_nsmooths",          "",       {"1", "0", "2"}             },
  {"aggressive_coarsening", "",       {"1", "0", "2"}             },
  {"coarse_eq_limit",       "",       {"20", "60"}                },
  {"process_eq_limit",      "",       {"50", "10"}                },
  {"gather_limit",          "gpuamg", {"16384", "30"}             },
  {"precision",             "gpuamg", {"double", "single", "auto"}},
  {"smoother",              "gpuamg", {"jacobi", "rowl1", "ilu"}  },
  {"cycles",                "gpuamg", {"1", "2"}                  },
  {"tail",                  "gpuamg", {"1024", "0"}               },
  {"gpucsr",                "gamg",   {"true", "false"}           },
  {"recompute_esteig",      "gamg",   {"true", "false"}           }
};

/* ---- a walk ---- */

/* Points of a grid in a plane, each with bs unknowns; corner: with two more neighbours */
typedef struct {
  PetscInt  n[2], bs, seed;
  PetscReal along[2], convection;
  PetscBool corner;
} Grid;

typedef struct {
  KSP       ksp;
  Mat       base;  /* a MATAIJ: what the prolongators are made of */
  PetscBool made;  /* the KSP has had no set-up, */
  PetscBool anew;  /* or the next one makes all of it */
  PetscBool loose; /* a PCGAMG that PETSc keeps smoothers and bounds of over a change of options or of coarse levels */
  int       used[OPTIONS];
} Solver;

typedef struct {
  const char  *pctype, *ksptype, *step;
  Grid         g;
  Mat          A, R; /* under test, and the same as a MATAIJ */
  MatNullSpace near;
  Solver       solver[2];
  int          solvers, option[OPTIONS], application; /* 0, 1: of the transpose, 2: of several columns */
  PetscInt     rhs, seed, number;
  PetscInt     bad; /* the row of a value that stops the set-up, -1: none, */
  PetscScalar  was; /* and the value before */
  PetscBool    nan; /* it is no number, otherwise zero */
  enum {
    CHOSEN, /* by PCGAMG: of the first estimates, or of new ones where eigenvalues have changed */
    FIXED,
    ESTIMATED /* for each matrix by GMRES: a smoother keeps CG of a definite matrix for others */
  } bounds;   /* of Chebyshev */
} Walk;

static PetscBool show = PETSC_FALSE;
static uint32_t  chance;

static int Draw(int below)
{
  chance = chance * 1664525u + 1013904223u;
  return (int)((chance >> 8) % (uint32_t)below);
}

#define WALKED(condition, w, text, ...) PetscCheck(condition, PETSC_COMM_SELF, PETSC_ERR_PLIB, "In the walk -seed %" PetscInt_FMT ", step %" PetscInt_FMT " (%s): " text, (w)->seed, (w)->number, (w)->step, __VA_ARGS__)

static PetscErrorCode Assemble(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- solvers ---- */

static PetscErrorCode New(const Walk *w, Mat A, KSP *ksp)
{
  PC pc;

  PetscFunctionBegin;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, ksp));
  PetscCall(KSPSetOptionsPrefix(*ksp, "our_"));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, w->ksptype));
  PetscCall(KSPSetTolerances(*ksp, RTOL, PETSC_DEFAULT, PETSC_DEFAULT, 500));
  if (strstr(w->ksptype, "cg")) PetscCall(KSPSetNormType(*ksp, KSP_NORM_UNPRECONDITIONED));
  else PetscCall(KSPSetPCSide(*ksp, PC_RIGHT));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, w->pctype));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The levels that a solver must have, of a matrix of its own */
static PetscErrorCode Anew(const Walk *w, const Solver *s, PetscBool kept, Mat *B, KSP *ksp)
{
  char type[64];

  PetscFunctionBegin;
  PetscCall(TestType(type, sizeof(type)));
  PetscCall(MatConvert(s->base, type, MAT_INITIAL_MATRIX, B));
  PetscCall(MatPropagateSymmetryOptions(s->base, *B));
  PetscCall(MatSetNearNullSpace(*B, w->near));
  PetscCall(New(w, *B, ksp));
  PetscCall(KSPSetUp(*ksp));
  if (kept) PetscCall(MatCopy(w->R, *B, SAME_NONZERO_PATTERN));
  PetscCall(MatPropagateSymmetryOptions(w->A, *B));
  PetscCall(KSPSetOperators(*ksp, *B, *B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whatever is said to be a solution is one */
static PetscErrorCode Solve(const Walk *w, KSP ksp, KSPConvergedReason *reason, PetscInt *its)
{
  Vec       b, x, r;
  PetscReal norm, all;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(w->A, &x, &b));
  PetscCall(MatCreateVecs(w->R, &r, NULL));
  PetscCall(TestFill(b, w->rhs, PETSC_FALSE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, reason));
  PetscCall(KSPGetIterationNumber(ksp, its));
  if (*reason > 0) {
    PetscCall(MatMult(w->R, x, r));
    PetscCall(VecAYPX(r, -1.0, b));
    PetscCall(VecNorm(r, NORM_2, &norm));
    PetscCall(VecNorm(b, NORM_2, &all));
    WALKED(norm <= 10 * RTOL * all, w, "%s after %" PetscInt_FMT " iterations, with a true residual of %g", KSPConvergedReasons[*reason], *its, (double)(norm / all));
  }
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Application(const Walk *w, KSP ksp, Vec *y)
{
  PC       pc;
  Vec      b;
  Mat      X, Y;
  PetscInt n, N;

  PetscFunctionBegin;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(MatCreateVecs(w->A, y, &b));
  PetscCall(TestFill(b, w->rhs, PETSC_FALSE));
  PetscCall(ForCG(pc));
  if (w->application == 0) PetscCall(PCApply(pc, b, *y));
  if (w->application == 1) PetscCall(PCApplyTranspose(pc, b, *y));
  if (w->application == 2) {
    PetscCall(VecGetLocalSize(b, &n));
    PetscCall(VecGetSize(b, &N));
    PetscCall(MatCreateDense(PETSC_COMM_WORLD, n, PETSC_DECIDE, N, 3, NULL, &X));
    PetscCall(MatDuplicate(X, MAT_DO_NOT_COPY_VALUES, &Y));
    for (PetscInt k = 0; k < 3; k++) {
      Vec c;

      PetscCall(MatDenseGetColumnVecWrite(X, k, &c));
      PetscCall(TestFill(c, w->rhs + k, PETSC_FALSE));
      PetscCall(MatDenseRestoreColumnVecWrite(X, k, &c));
    }
    PetscCall(Assemble(X));
    PetscCall(PCMatApply(pc, X, Y));
    PetscCall(MatGetColumnVector(Y, *y, 2));
    PetscCall(MatDestroy(&X));
    PetscCall(MatDestroy(&Y));
  }
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* kept: the prolongators stay. Sets what they are made of */
static PetscErrorCode Kept(const Walk *w, Solver *s, PetscBool *kept)
{
  const PetscBool gamg    = (PetscBool)!strcmp(w->pctype, PCGAMG);
  PetscBool       changed = PETSC_FALSE;

  PetscFunctionBegin;
  for (int k = 0; k < OPTIONS; k++) {
    if (k != REUSE && s->used[k] != w->option[k]) changed = PETSC_TRUE;
    s->used[k] = w->option[k];
  }
  *kept = (PetscBool)(w->option[REUSE] && !s->made && !s->anew && (gamg || !changed));
  if (gamg && (changed || s->anew || w->option[THRESHOLD] > 1)) s->loose = PETSC_TRUE;
  if (s->made) s->loose = PETSC_FALSE;
  s->made = s->anew = PETSC_FALSE;
  if (*kept) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatDestroy(&s->base));
  PetscCall(MatDuplicate(w->R, MAT_COPY_VALUES, &s->base));
  PetscCall(MatPropagateSymmetryOptions(w->A, s->base));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From PETSc 3.19 on, new values with old prolongators leave the smoothers of PCGAMG an estimator, which finds the bounds of later hierarchies, too. Have both KSPs one, or neither? */
static PetscErrorCode SameBounds(const Walk *w, KSP ksp[2], PetscBool *same)
{
  PetscInt levels[2];
  PC       pc[2];

  PetscFunctionBegin;
  *same = PETSC_TRUE;
  if (strcmp(w->pctype, PCGAMG) || w->bounds == FIXED) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPGetPC(ksp[k], &pc[k]));
    PetscCall(PCMGGetLevels(pc[k], &levels[k]));
  }
  WALKED(levels[0] == levels[1], w, "%" PetscInt_FMT " levels, anew %" PetscInt_FMT, levels[0], levels[1]);
  for (PetscInt l = 1; l < levels[0]; l++) {
    KSP smoother, estimator[2];

    for (int k = 0; k < 2; k++) {
      PetscCall(PCMGGetSmoother(pc[k], l, &smoother));
      PetscCall(KSPChebyshevEstEigGetKSP(smoother, &estimator[k]));
    }
    if (!estimator[0] != !estimator[1]) *same = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(const Walk *w, Solver *s)
{
  const PetscBool    gpuamg = (PetscBool)!strcmp(w->pctype, PCGPUAMG);
  Mat                B;
  KSP                fresh;
  Vec                y, z;
  PetscInt           its, ref;
  PetscReal          norm, difference;
  KSPConvergedReason reason, other;
  PetscBool          kept, same = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(Kept(w, s, &kept));
  PetscCall(Solve(w, s->ksp, &reason, &its));
  if (w->bad >= 0) {
    WALKED(gpuamg ? reason == KSP_DIVERGED_PC_FAILED : reason < 0 || !w->nan, w, "a bad value: %s", KSPConvergedReasons[reason]);
    s->anew = gpuamg;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Anew(w, s, kept, &B, &fresh));
  PetscCall(Solve(w, fresh, &other, &ref));
  if (show)
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "    %s, %" PetscInt_FMT " iterations; anew%s %s, %" PetscInt_FMT "\n", KSPConvergedReasons[reason], its,
                          s->loose ? ", without the past of PETSc's,"
                          : kept   ? ", with prolongators kept,"
                                   : "",
                          KSPConvergedReasons[other], ref));
  if (!s->loose) PetscCall(SameBounds(w, (KSP[]){s->ksp, fresh}, &same));
  WALKED(s->loose || (reason == other && PetscAbsInt(its - ref) <= 1 + (gpuamg ? 0
                                                                        : same ? ref / 20
                                                                               : ref / 2)),
         w, "%s after %" PetscInt_FMT " iterations, anew %s after %" PetscInt_FMT, KSPConvergedReasons[reason], its, KSPConvergedReasons[other], ref);
  if (!s->loose && same && (gpuamg || !kept || w->bounds == FIXED)) {
    PetscCall(Application(w, s->ksp, &y));
    PetscCall(Application(w, fresh, &z));
    PetscCall(VecNorm(z, NORM_2, &norm));
    PetscCall(VecAXPY(y, -1.0, z));
    PetscCall(VecNorm(y, NORM_2, &difference));
    WALKED(difference <= (gpuamg || !kept ? TEST_C * PETSC_MACHINE_EPSILON : 1e-10) * norm, w, "application %d differs by %g of its norm", w->application, (double)(difference / norm));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&z));
  }
  PetscCall(KSPDestroy(&fresh));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#include "t669-gpuamg-walk/steps.h"

static PetscErrorCode Take(PetscInt seed, PetscInt nsteps, const char pctype[])
{
  static const char *const types[] = {KSPCG, KSPGPUCG, KSPGMRES, KSPGPUGMRES};
  Walk                     w       = {.pctype = pctype, .step = "first", .seed = seed, .bad = -1};

  PetscFunctionBegin;
  chance    = (uint32_t)seed;
  w.ksptype = types[Draw(4)];
  w.g       = (Grid){
          .along = {1, 1},
            .convection = strstr(w.ksptype, "cg") ? 0 : 0.5
  };
  w.bounds = strcmp(pctype, PCGAMG) ? CHOSEN : Draw(3);
  if (w.bounds == FIXED) PetscCall(PetscOptionsSetValue(NULL, "-our_mg_levels_ksp_chebyshev_eigenvalues", "0.3,3"));
  if (w.bounds == ESTIMATED) PetscCall(PetscOptionsSetValue(NULL, "-our_mg_levels_ksp_chebyshev_esteig", "0,0.1,0,1.1"));
  if (w.bounds == ESTIMATED) PetscCall(PetscOptionsSetValue(NULL, "-our_mg_levels_esteig_ksp_type", KSPGMRES));
  for (int k = 0; k < OPTIONS; k++) PetscCall(Set(&w, k, 0));
  PetscCall(Size(&w));
  PetscCall(Second(&w));
  for (w.number = 0; w.number < nsteps; w.number++) {
    const int at = w.bad >= 0 ? -1 : Draw((int)PETSC_STATIC_ARRAY_LENGTH(steps)), again = Draw(2); /* new values are found without KSPSetOperators(), too */

    w.application = Draw(3);
    w.step        = at < 0 ? "mended" : steps[at].name;
    if (show) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s %s, -seed %" PetscInt_FMT ", step %" PetscInt_FMT ": %s\n", w.ksptype, pctype, seed, w.number, w.step));
    PetscCall(at < 0 ? Mended(&w) : (*steps[at].take)(&w));
    for (int k = 0; k < w.solvers && again; k++) PetscCall(KSPSetOperators(w.solver[k].ksp, w.A, w.A));
    for (int k = 0; k < w.solvers; k++) PetscCall(Compare(&w, &w.solver[k]));
  }
  for (int k = 0; k < w.solvers; k++) {
    PetscCall(KSPDestroy(&w.solver[k].ksp));
    PetscCall(MatDestroy(&w.solver[k].base));
  }
  for (int k = 0; k < OPTIONS; k++) PetscCall(Set(&w, k, -1));
  PetscCall(PetscOptionsClearValue(NULL, "-our_mg_levels_ksp_chebyshev_eigenvalues"));
  PetscCall(PetscOptionsClearValue(NULL, "-our_mg_levels_ksp_chebyshev_esteig"));
  PetscCall(PetscOptionsClearValue(NULL, "-our_mg_levels_esteig_ksp_type"));
  PetscCall(MatNullSpaceDestroy(&w.near));
  PetscCall(MatDestroy(&w.A));
  PetscCall(MatDestroy(&w.R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscInt walks = 2, seed = 1, nsteps = 20;
  char     pctype[16] = PCGPUAMG;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-walks", &walks, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-seed", &seed, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-steps", &nsteps, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-show", &show, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-pc", pctype, sizeof(pctype), NULL));
  for (PetscInt k = 0; k < walks; k++) PetscCall(Take(seed + k, nsteps, pctype));
  PetscCall(PetscFinalize());
  return 0;
}

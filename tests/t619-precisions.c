//TEST name="host"
//TEST name="standin" args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -from 3"
//TEST name="hostvectors" args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -standard_vectors -from 5"
//TEST name="ranks" nsize=2 args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -every 307"
//TEST name="all" gpu=1 args="-all"
//TEST name="whole" gpu=0 whole=1 args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -all"

/*
  Every solver of the library, on each of its paths, and some of PETSc's over a matrix of this type, with every kind of preconditioner, format and precision: b - A x, computed by MATAIJ, is as small as
  tolerance and precision allow. A sample of this product, every 61st case, unless -all is given; -from R starts at another one.

    build/tests/t619-precisions -dll_append build/lib/libpetscgpucsr.so [-all] [-every 61] [-from 0] [-number 1234]
*/
#include "testing.h"
#include "krylov.h"

#define RTOL 1e-5

static const char *const precisions[] = {"double", "mixed", "single", "auto"};
static const char *const formats[]    = {"csr", "sell", "ell", "dia", "stencil", "sell_256", "sell_sorted", "jad", "coo", "hyb", "bcsr2x2", "tile_128", "narrow", "bitdense"};

/* path: option and word; rows: for preconditioners that are numbers of each row alone */
static const struct {
  const char *type, *options;
  PetscBool   symmetric, rows;
} solvers[] = {
  {"gpucg",     "",                                                                                PETSC_TRUE,  PETSC_FALSE},
  {"gpucg",     "-t_ksp_gpucg_path persistent",                                                    PETSC_TRUE,  PETSC_TRUE },
  {"gpucg",     "-t_ksp_gpucg_path graph",                                                         PETSC_TRUE,  PETSC_TRUE },
  {"gpucg",     "-t_ksp_gpucg_path host_loop",                                                     PETSC_TRUE,  PETSC_FALSE},
  {"gpucg",     "-t_ksp_gpucg_variant single_reduction",                                           PETSC_TRUE,  PETSC_FALSE},
  {"gpucg",     "-t_ksp_gpucg_precision residual_replacement -t_ksp_gpucg_path graph",             PETSC_TRUE,  PETSC_TRUE },
  {"gpucg",     "-t_ksp_gpucg_precision residual_replacement",                                     PETSC_TRUE,  PETSC_FALSE},
  {"gpubcgs",   "",                                                                                PETSC_FALSE, PETSC_FALSE},
  {"gpubcgs",   "-t_ksp_gpubcgs_path persistent",                                                  PETSC_FALSE, PETSC_TRUE },
  {"gpubcgs",   "-t_ksp_gpubcgs_path graph",                                                       PETSC_FALSE, PETSC_TRUE },
  {"gpubcgs",   "-t_ksp_gpubcgs_path host_loop",                                                   PETSC_FALSE, PETSC_FALSE},
  {"gpugmres",  "",                                                                                PETSC_FALSE, PETSC_FALSE},
  {"gpugmres",  "-t_ksp_gpugmres_path graph -t_ksp_gmres_restart 7",                               PETSC_FALSE, PETSC_TRUE },
  {"gpugmres",  "-t_ksp_gpugmres_path host_loop -t_ksp_gmres_cgs_refinement_type refine_ifneeded", PETSC_FALSE, PETSC_FALSE},
  {"gpufgmres", "",                                                                                PETSC_FALSE, PETSC_FALSE},
  {"gpufgmres", "-t_ksp_gpufgmres_path host_loop",                                                 PETSC_FALSE, PETSC_FALSE},
  {"cg",        "",                                                                                PETSC_TRUE,  PETSC_FALSE},
  {"minres",    "",                                                                                PETSC_TRUE,  PETSC_TRUE },
  {"bcgs",      "",                                                                                PETSC_FALSE, PETSC_FALSE},
  {"gmres",     "",                                                                                PETSC_FALSE, PETSC_FALSE},
  {"bicg",      "",                                                                                PETSC_FALSE, PETSC_TRUE },
  {"fgmres",    "",                                                                                PETSC_FALSE, PETSC_FALSE},
  {"chebyshev", "",                                                                                PETSC_TRUE,  PETSC_FALSE},
};

/* one: only for one process; factor: of the matrix itself */
static const struct {
  const char *options;
  PetscBool   rows, one, varies; /* varies: its numbers are another matrix type's but for rounding */
} pcs[] = {
  {"none",                                                           PETSC_TRUE,  PETSC_FALSE, PETSC_FALSE},
  {"jacobi",                                                         PETSC_TRUE,  PETSC_FALSE, PETSC_FALSE},
  {"pbjacobi",                                                       PETSC_TRUE,  PETSC_FALSE, PETSC_FALSE},
  {"ilu",                                                            PETSC_FALSE, PETSC_TRUE,  PETSC_FALSE},
  {"icc",                                                            PETSC_FALSE, PETSC_TRUE,  PETSC_FALSE},
  {"bjacobi -t_pc_bjacobi_blocks 4",                                 PETSC_FALSE, PETSC_FALSE, PETSC_FALSE},
  {"sor",                                                            PETSC_FALSE, PETSC_FALSE, PETSC_FALSE},
  {"gamg -t_mg_levels_pc_type jacobi -t_pc_gamg_coarse_eq_limit 20", PETSC_FALSE, PETSC_FALSE, PETSC_TRUE },
};

#define COUNT(a) ((PetscInt)PETSC_STATIC_ARRAY_LENGTH(a))

/* The matrices of a format and precision, symmetric and not: that under test, MATAIJ, and its absolute values */
typedef struct {
  Mat A[2], R[2], B[2];
} Matrices;

static PetscErrorCode Create(PetscInt format, PetscInt precision, Matrices *m)
{
  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_format", formats[format]));
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_precision", precisions[precision]));
  for (int k = 0; k < 2; k++) {
    PetscCall(TestConvection(PETSC_COMM_WORLD, 12, k ? 0.5 : 0.0, PETSC_FALSE, &m->A[k]));
    PetscCall(TestConvection(PETSC_COMM_WORLD, 12, k ? 0.5 : 0.0, PETSC_TRUE, &m->R[k]));
    if (precision < 3) { /* no floats; where floats are looked for, the values are some */
      PetscCall(MatScale(m->A[k], 1.0 / 3.0));
      PetscCall(MatScale(m->R[k], 1.0 / 3.0));
    }
    PetscCall(TestAbs(m->R[k], &m->B[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(Matrices *m)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscCall(MatDestroy(&m->A[k]));
    PetscCall(MatDestroy(&m->R[k]));
    PetscCall(MatDestroy(&m->B[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* v of a type of PETSc's own */
static PetscErrorCode Plain(Vec v, Mat R, Vec *copy)
{
  const PetscScalar *from;
  PetscScalar       *to;
  PetscInt           n;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(R, copy, NULL));
  PetscCall(VecGetLocalSize(v, &n));
  PetscCall(VecGetArrayRead(v, &from));
  PetscCall(VecGetArrayWrite(*copy, &to));
  PetscCall(PetscArraycpy(to, from, n));
  PetscCall(VecRestoreArrayWrite(*copy, &to));
  PetscCall(VecRestoreArrayRead(v, &from));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Norms of b - A x, of b, and of what rounding may add to the first, |A||x| + |b|: as the solver's test sees them, M times each with a left preconditioner */
static PetscErrorCode Norms(Mat R, Mat B, Vec b, Vec x, PetscBool left, PetscReal norm[3])
{
  Vec v[3], y;
  PC  pc;

  PetscFunctionBegin;
  PetscCall(Plain(x, R, &v[0]));
  PetscCall(Plain(b, R, &v[1]));
  PetscCall(Plain(b, R, &v[2]));
  PetscCall(VecDuplicate(v[1], &y));
  PetscCall(MatMult(R, v[0], y));
  PetscCall(VecAbs(v[0]));
  PetscCall(VecAbs(v[2]));
  PetscCall(MatMultAdd(B, v[0], v[2], v[2]));
  PetscCall(VecWAXPY(v[0], -1.0, y, v[1]));
  PetscCall(PCCreate(PetscObjectComm((PetscObject)R), &pc));
  PetscCall(PCSetOptionsPrefix(pc, "t_"));
  PetscCall(PCSetOperators(pc, R, R));
  if (left) PetscCall(PCSetFromOptions(pc));
  for (int k = 0; k < 3; k++) {
    if (left) PetscCall(PCApply(pc, v[k], y));
    PetscCall(VecNorm(left ? y : v[k], NORM_2, &norm[k]));
    PetscCall(VecDestroy(&v[k]));
  }
  PetscCall(PCDestroy(&pc));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One solve with the options that the database has */
static PetscErrorCode Case(Mat A, Mat R, Mat B, PetscInt number, const char text[], PetscInt *failures)
{
  KSP                ksp;
  Vec                x, b;
  KSPConvergedReason reason;
  KSPNormType        type;
  PetscReal          norm[3], eps = 0;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 1, PETSC_FALSE));
  PetscCall(TestFill(x, 2, PETSC_FALSE));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), &ksp));
  PetscCall(KSPSetOptionsPrefix(ksp, "t_"));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetTolerances(ksp, RTOL, PETSC_DEFAULT, PETSC_DEFAULT, 1000));
  PetscCall(KSPSetInitialGuessNonzero(ksp, (PetscBool)(number % 3 == 0)));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetNormType(ksp, &type));
  PetscCall(Norms(R, B, b, x, (PetscBool)(type == KSP_NORM_PRECONDITIONED), norm));
  PetscCall(TestEps(&eps));
  if (!(reason > 0 && norm[0] <= RTOL * norm[1] + TEST_C * eps * norm[2])) {
    (*failures)++;
    PetscCall(PetscFPrintf(PETSC_COMM_WORLD, stderr, "case %" PetscInt_FMT ", %s: %s, the true residual's norm is %g, may be %g\n", number, text, KSPConvergedReasons[reason], (double)norm[0], (double)(RTOL * norm[1] + TEST_C * eps * norm[2])));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solver s with preconditioner p, if there is such a solve */
static PetscErrorCode Options(PetscInt s, PetscInt p, PetscMPIInt size, char text[], size_t len, PetscBool *there)
{
  const char *right = solvers[s].symmetric ? "-t_ksp_norm_type unpreconditioned" : "-t_ksp_pc_side right";

  PetscFunctionBegin;
  *there = (PetscBool)((pcs[p].rows || !solvers[s].rows) && !(pcs[p].one && size > 1) && !(!strcmp(pcs[p].options, "icc") && !solvers[s].symmetric));
  if (size > 1 && strstr(solvers[s].options, "_path ") && !strstr(solvers[s].options, "host_loop")) *there = PETSC_FALSE; /* which paths several ranks have depends on more */
  PetscCall(PetscSNPrintf(text, len, "-t_ksp_type %s %s -t_pc_type %s %s", solvers[s].type, solvers[s].options, pcs[p].options, pcs[p].varies ? right : ""));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The options of a case leave the database with it */
static PetscErrorCode Clear(const char text[])
{
  char **word;
  int    n;

  PetscFunctionBegin;
  PetscCall(PetscStrToArray(text, ' ', &n, &word));
  for (int k = 0; k < n; k++)
    if (word[k][0] == '-') PetscCall(PetscOptionsClearValue(NULL, word[k]));
  PetscCall(PetscStrToArrayDestroy(n, word));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool   all   = PETSC_FALSE;
  PetscInt    every = 61, from = 0, only = -1, number = 0, failures = 0;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-all", &all, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-every", &every, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-from", &from, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-number", &only, NULL));
  if (all) every = 1;
  for (PetscInt f = 0; f < COUNT(formats); f++) {
    for (PetscInt q = 0; q < COUNT(precisions); q++) {
      Matrices m;

      PetscCall(PetscMemzero(&m, sizeof(m)));
      for (PetscInt s = 0; s < COUNT(solvers); s++) {
        for (PetscInt p = 0; p < COUNT(pcs); p++, number++) {
          const int unsymmetric = !solvers[s].symmetric;
          char      text[256], where[384];
          PetscBool there = PETSC_FALSE;

          PetscCall(Options(s, p, size, text, sizeof(text), &there));
          if (!there || (only >= 0 ? number != only : number % every != from % every)) continue;
          if (!m.A[0]) PetscCall(Create(f, q, &m));
          PetscCall(PetscSNPrintf(where, sizeof(where), "format %s, precision %s, %s", formats[f], precisions[q], text));
          PetscCall(PetscOptionsInsertString(NULL, text));
          PetscCall(Case(m.A[unsymmetric], m.R[unsymmetric], m.B[unsymmetric], number, where, &failures));
          PetscCall(Clear(text));
        }
      }
      PetscCall(Destroy(&m));
    }
  }
  PetscCall(PetscOptionsClearValue(NULL, "-mat_gpucsr_format"));
  PetscCall(PetscOptionsClearValue(NULL, "-mat_gpucsr_precision"));
  PetscCheck(!failures, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " solves failed", failures);
  PetscCall(PetscFinalize());
  return 0;
}

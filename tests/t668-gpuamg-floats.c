/*
  Cycles of PCGPUAMG in floats (-pc_gpuamg_precision) beside those in doubles: iterations, applications, right-hand sides of all magnitudes, new values with and without a set-up, and the cycles
  that stay in doubles. On several ranks cycles of small levels, from one method to the next.

  //TEST name="host" args="-mat_gpucsr_format csr"
  //TEST name="auto" gpu=1
  //TEST name="vectors" args="-mat_gpucsr_format sell -vec_type gpu -vec_gpu_separate"
  //TEST name="standin" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1"
  //TEST name="late" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 3 -vec_type gpu"
  //TEST name="mixed" args="-mat_gpucsr_precision mixed"
  //TEST name="ranks" nsize=3 args="-mat_gpucsr_format csr"
  //TEST name="ranks_standin" nsize=2 gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 2 -mat_gpucsr_halo peer"
*/
static char help[] = "Tests cycles of PCGPUAMG in floats.\n";

#include "t660-gpuamg/problems.h"
#include <petscgpucsr.h>

#define TOLERANCE 1e-8

static PetscBool report = PETSC_FALSE;

/* ---- problems ---- */

/* 27 points on a cube of side k, with coefficients of contrast e^3 */
static PetscErrorCode Cube(PetscInt k, Mat *A)
{
  const PetscInt m = k * k * k;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_SELF, m, m, PETSC_FALSE, A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 27, NULL));
  for (PetscInt v = 0; v < m; v++) {
    const PetscInt x[3]     = {v % k, v / k % k, v / (k * k)};
    PetscScalar    diagonal = 0;

    for (PetscInt q = 0; q < 27; q++) {
      const PetscInt    d[3] = {q % 3 - 1, q / 3 % 3 - 1, q / 9 - 1}, u = v + d[0] + k * (d[1] + k * d[2]);
      const PetscScalar off = -PetscExpReal(3 * (ZooReal(PetscMin(u, v), PetscMax(u, v), 11) - 0.5));
      PetscBool         in  = PETSC_TRUE;

      if (q == 13) continue;
      diagonal -= off;
      for (int a = 0; a < 3; a++) in = (PetscBool)(in && x[a] + d[a] >= 0 && x[a] + d[a] < k);
      if (in) PetscCall(MatSetValues(*A, 1, &v, 1, &u, &off, INSERT_VALUES));
    }
    PetscCall(MatSetValues(*A, 1, &v, 1, &v, &diagonal, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Grid grids[] = {
  {"contrast e^3", {14, 13, 12}, 3, {1, 1, 1},    0,   NULL, NULL, {0}},
  {"anisotropy",   {40, 40, 1},  0, {1, 0.05, 0}, 0,   NULL, NULL, {0}},
  {"convection",   {13, 13, 13}, 1, {1, 1, 1},    0.7, NULL, NULL, {0}}
};
#define PROBLEMS 5

static PetscErrorCode Problem(int p, const char **name, PetscBool *symmetric, Mat *A)
{
  PetscFunctionBegin;
  *symmetric = (PetscBool)(p != 2);
  *A         = NULL;
  *name      = p < 3 ? grids[p].name : p == 3 ? "27 points" : "elasticity";
  if (p < 3) PetscCall(GridCreate(&grids[p], 0, PETSC_FALSE, A));
  else if (p == 3) PetscCall(Cube(12, A));
  else PetscCall(ElasticCreate(20, 0.3, PETSC_TRUE, PETSC_FALSE, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- applications ---- */

/* A solver of A; options: of its PC, or NULL */
static PetscErrorCode Begin(Mat A, const char type[], const char precision[], const char options[], KSP *ksp, PC *pc)
{
  PetscOptions own;

  PetscFunctionBegin;
  PetscCall(PetscOptionsCreate(&own));
  PetscCall(PetscOptionsInsertString(own, "-pc_gpuamg_coarse_eq_limit 40"));
  PetscCall(PetscOptionsInsertString(own, options ? options : ""));
  PetscCall(PetscOptionsSetValue(own, "-pc_gpuamg_precision", precision));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), ksp));
  PetscCall(PetscObjectSetOptions((PetscObject)*ksp, own));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, type));
  PetscCall(KSPSetTolerances(*ksp, TOLERANCE, 0.0, PETSC_DEFAULT, 500));
  PetscCall(KSPGetPC(*ksp, pc));
  PetscCall(PCSetType(*pc, PCGPUAMG));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscCall(PetscObjectSetOptions((PetscObject)*ksp, NULL));
  PetscCall(PetscObjectSetOptions((PetscObject)*pc, NULL));
  PetscCall(PetscOptionsDestroy(&own));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* y = M b for numbers by chance times 2^power */
static PetscErrorCode Application(PC pc, int power, Vec *y)
{
  Mat A;
  Vec b;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(MatCreateVecs(A, y, &b));
  PetscCall(TestFill(b, 5, PETSC_FALSE));
  PetscCall(VecScale(b, ldexp(1.0, power)));
  PetscCall(ForCG(pc));
  PetscCall(PCApply(pc, b, *y));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* |x - y| <= bound |y|, and not equal unless the bound is 0 */
static PetscErrorCode Near(Vec x, Vec y, PetscReal bound, const char name[], const char what[])
{
  PetscReal norm, off;
  Vec       d;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(y, &d));
  PetscCall(VecWAXPY(d, -1.0, x, y));
  PetscCall(VecNorm(d, NORM_2, &off));
  PetscCall(VecNorm(y, NORM_2, &norm));
  PetscCall(VecDestroy(&d));
  if (report) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, %s: an application differs by %g\n", name, what, (double)(off / norm)));
  PetscCheck(norm > 0 && off <= bound * norm && (off > 0 || bound == 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, %s: an application differs by %g", name, what, (double)(off / norm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All entries are 0, or no number */
static PetscErrorCode Extreme(Vec x, PetscReal expected, const char name[])
{
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall(VecNorm(x, NORM_2, &norm));
  PetscCheck(PetscIsNanReal(expected) ? PetscIsNanReal(norm) : norm == expected, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: an application to %g gives %g", name, (double)expected, (double)norm);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Floats change an application by their rounding, and its vectors scale with the right-hand side, of any magnitude, bit by bit */
static PetscErrorCode Beside(Mat A, const char name[], const char options[])
{
  static const int powers[] = {-900, -160, -33, 33, 160, 900};
  KSP              ksp;
  PC               pc;
  Vec              y, x, z;

  PetscFunctionBegin;
  PetscCall(Begin(A, KSPCG, "double", options, &ksp, &pc));
  PetscCall(Application(pc, 0, &y));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(Begin(A, KSPCG, "single", options, &ksp, &pc));
  PetscCall(Application(pc, 0, &x));
  PetscCall(Near(x, y, 100 * FLT_EPSILON, name, options ? options : "defaults"));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(powers); k++) {
    PetscCall(Application(pc, powers[k], &z));
    PetscCall(VecScale(z, ldexp(1.0, -powers[k])));
    PetscCall(Near(z, x, 0, name, "another magnitude"));
    PetscCall(VecDestroy(&z));
  }
  PetscCall(VecSet(y, 0.0));
  PetscCall(PCApply(pc, y, x));
  PetscCall(Extreme(x, 0, name));
  PetscCall(VecSet(y, (PetscScalar)NAN));
  PetscCall(PCApply(pc, y, x));
  PetscCall(Extreme(x, (PetscReal)NAN, name));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- solves ---- */

/* The norm of M v */
static PetscErrorCode Norm(KSP ksp, Vec v, PetscReal *norm)
{
  PC  pc;
  Vec z;

  PetscFunctionBegin;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(VecDuplicate(v, &z));
  PetscCall(PCApply(pc, v, z));
  PetscCall(VecNorm(z, NORM_2, norm));
  PetscCall(VecDestroy(&z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For a right-hand side times scale; ref: iterations in doubles, or 0 */
static PetscErrorCode Solve(Mat A, KSP ksp, PetscReal scale, PetscInt ref, PetscInt *its, const char name[])
{
  KSPConvergedReason reason;
  Vec                b, x, r;
  PetscReal          norm, all;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(VecScale(b, scale));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(VecScale(b, 1 / scale));
  PetscCall(VecScale(x, 1 / scale));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAXPY(r, -1.0, b));
  PetscCall(Norm(ksp, r, &norm));
  PetscCall(Norm(ksp, b, &all));
  if (report) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s, times %g: %" PetscInt_FMT " iterations, in doubles %" PetscInt_FMT "\n", name, (double)scale, *its, ref));
  PetscCheck(reason > 0 && norm <= 2 * TOLERANCE * all, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, times %g: %s, true residual %g", name, (double)scale, KSPConvergedReasons[reason], (double)(norm / all));
  PetscCheck(!ref || *its <= (11 * ref) / 10 + 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, times %g: %" PetscInt_FMT " iterations, in doubles %" PetscInt_FMT, name, (double)scale, *its, ref);
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A PC inside another PC, and a method that follows its residual by the preconditioner: the true residual ends where that of doubles does */
static PetscErrorCode Inside(Mat A, const char options[], const char name[])
{
  PetscOptions own;
  PetscReal    off, norm;
  KSP          ksp;
  Vec          b, x, r;

  PetscFunctionBegin;
  PetscCall(PetscOptionsCreate(&own));
  PetscCall(PetscOptionsInsertString(own, options));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(PetscObjectSetOptions((PetscObject)ksp, own));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetTolerances(ksp, 1e-11, PETSC_DEFAULT, PETSC_DEFAULT, 100));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(TestFill(b, 7, PETSC_FALSE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &off));
  PetscCall(VecNorm(b, NORM_2, &norm));
  PetscCheck(off < 1e-8 * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, %s: the true residual ends at %g", name, options, (double)(off / norm));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&r));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(PetscOptionsDestroy(&own));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iterations of all methods, where b is small or large, too, as far as the squares of norms are numbers */
static PetscErrorCode Methods(Mat A, PetscBool symmetric, const char name[])
{
  static const char *const types[2][8] = {
  /* one that follows itself: with the preconditioner on the right */
    {KSPGMRES, KSPGPUGMRES, KSPGPUFGMRES, KSPFGMRES, KSPGPUBCGS, KSPGPUBCGS, NULL,        NULL     },
    {KSPCG,    KSPGPUCG,    KSPGMRES,     KSPFCG,    KSPGPUBCGS, KSPGPUBCGS, KSPGPUGMRES, KSPFGMRES}
  };
  static const PetscReal scales[] = {1, 1e-45, 1e45, 1e-120, 1e120};

  PetscFunctionBegin;
  PetscCall(Inside(A, "-ksp_type gmres -pc_type composite -pc_composite_pcs gpuamg -sub_0_pc_gpuamg_precision single", name));
  if (symmetric) PetscCall(Inside(A, "-ksp_type richardson -ksp_richardson_self_scale -pc_type gpuamg -pc_gpuamg_precision single", name));
  for (int t = 0; t < 8 && types[symmetric][t]; t++) {
    const char *const words[] = {"double", "single", "auto"};
    PetscInt          ref = 0, its, unscaled = 0;

    for (int k = 0; k < 3; k++) {
      KSP ksp;
      PC  pc;

      PetscCall(Begin(A, types[symmetric][t], words[k], t && !strcmp(types[symmetric][t], types[symmetric][t - 1]) ? "-ksp_pc_side right" : NULL, &ksp, &pc));
      for (size_t s = 0; s < (k == 1 ? PETSC_STATIC_ARRAY_LENGTH(scales) : 1); s++) {
        PetscCall(Solve(A, ksp, scales[s], ref, &its, name));
        if (!s) unscaled = its;
        PetscCheck(its == unscaled, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, %s: %" PetscInt_FMT " iterations for b, and %" PetscInt_FMT " for %g b", name, types[symmetric][t], unscaled, its, (double)scales[s]);
      }
      if (!k) ref = its;
      PetscCall(KSPDestroy(&ksp));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One preconditioner serves a method that takes floats, then one that takes doubles, and again */
static PetscErrorCode Switched(Mat A, const char name[])
{
  static const char *const types[] = {KSPGPUCG, KSPGPUGMRES, KSPCG, KSPGMRES, KSPGPUCG, KSPGPUBCGS};
  PetscInt                 its, ref = 0;
  KSP                      ksp;
  PC                       pc;

  PetscFunctionBegin;
  PetscCall(Begin(A, KSPGPUCG, "single", NULL, &ksp, &pc));
  for (size_t t = 0; t < PETSC_STATIC_ARRAY_LENGTH(types); t++) {
    PetscCall(KSPSetType(ksp, types[t]));
    PetscCall(Solve(A, ksp, 1.0, ref, &its, name));
    if (!t) ref = its;
  }
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- new values ---- */

/* After a set-up with new values an application is the same as after the first of that matrix; with PCSetReusePreconditioner() it is about that in doubles */
static PetscErrorCode Renewed(const Grid *g)
{
  static const char *const words[] = {"double", "single", "auto"};

  PetscFunctionBegin;
  for (int reused = 0; reused < 2; reused++) {
    Vec y[3], fresh;

    for (int k = 0; k < 3; k++) {
      KSP ksp;
      PC  pc;
      Mat A = NULL;

      PetscCall(GridCreate(g, 0, PETSC_FALSE, &A));
      PetscCall(Begin(A, KSPGPUCG, words[k], NULL, &ksp, &pc));
      PetscCall(Application(pc, 0, &y[k]));
      PetscCall(VecDestroy(&y[k]));
      PetscCall(PCSetReusePreconditioner(pc, (PetscBool)reused));
      PetscCall(GridCreate(g, 1, PETSC_FALSE, &A));
      PetscCall(KSPSetOperators(ksp, A, A));
      PetscCall(KSPSetUp(ksp));
      PetscCall(Application(pc, 0, &y[k]));
      PetscCall(KSPDestroy(&ksp));
      if (!reused) {
        PetscCall(Begin(A, KSPGPUCG, words[k], NULL, &ksp, &pc));
        PetscCall(Application(pc, 0, &fresh));
        PetscCall(Near(y[k], fresh, 0, g->name, words[k]));
        PetscCall(VecDestroy(&fresh));
        PetscCall(KSPDestroy(&ksp));
      }
      PetscCall(MatDestroy(&A));
    }
    PetscCall(Near(y[1], y[0], 100 * FLT_EPSILON, g->name, reused ? "values reused" : "new values"));
    PetscCall(Near(y[2], y[1], 0, g->name, "auto"));
    for (int k = 0; k < 3; k++) PetscCall(VecDestroy(&y[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An application meets a new pattern with the old hierarchy; the set-up that follows makes a new one */
static PetscErrorCode Patterns(const Grid *g, const char precision[])
{
  KSP ksp;
  PC  pc;
  Mat A = NULL, B;
  Vec y, fresh;

  PetscFunctionBegin;
  PetscCall(GridCreate(g, 0, PETSC_FALSE, &A));
  PetscCall(MatMatMult(A, A, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &B));
  PetscCall(Begin(A, KSPGPUCG, precision, "-pc_gpuamg_threshold -1", &ksp, &pc));
  PetscCall(KSPSetUp(ksp));
  PetscCall(PCSetReusePreconditioner(pc, PETSC_TRUE));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
  PetscCall(MatCopy(B, A, DIFFERENT_NONZERO_PATTERN));
  PetscCall(Application(pc, 0, &y));
  PetscCall(VecDestroy(&y));
  PetscCall(PCSetReusePreconditioner(pc, PETSC_FALSE));
  PetscCall(MatScale(A, 2.0));
  PetscCall(KSPSetUp(ksp));
  PetscCall(Application(pc, 0, &y));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(Begin(A, KSPGPUCG, precision, "-pc_gpuamg_threshold -1", &ksp, &pc));
  PetscCall(Application(pc, 0, &fresh));
  PetscCall(Near(y, fresh, 0, g->name, "new pattern"));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&fresh));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- doubles ---- */

/* Cycles that stay in doubles */
static PetscErrorCode Doubles(Mat A, const char options[], const char name[])
{
  static const char *const words[] = {"double", "single", "auto"};
  Vec                      y[3];

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    KSP ksp;
    PC  pc;

    PetscCall(Begin(A, KSPCG, words[k], options, &ksp, &pc));
    PetscCall(Application(pc, 0, &y[k]));
    if (k) PetscCall(Near(y[k], y[0], 0, name, options));
    PetscCall(KSPDestroy(&ksp));
  }
  for (int k = 0; k < 3; k++) PetscCall(VecDestroy(&y[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values that no float holds end a solve in single, and auto takes doubles */
static PetscErrorCode Large(Mat A, const char name[])
{
  KSP                ksp;
  PC                 pc;
  Vec                b, x;
  Mat                B;
  PetscBool          mixed;
  PetscInt           its;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(PetscOptionsHasName(NULL, NULL, "-mat_gpucsr_precision", &mixed));
  if (mixed) PetscFunctionReturn(PETSC_SUCCESS); /* the matrix itself is not finite */
  PetscCall(MatDuplicate(A, MAT_COPY_VALUES, &B));
  PetscCall(MatScale(B, 1e60));
  PetscCall(Begin(B, KSPFGMRES, "auto", NULL, &ksp, &pc));
  PetscCall(Solve(B, ksp, 1.0, 0, &its, name));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(Doubles(B, "-pc_gpuamg_max_levels 1", name));
  PetscCall(Begin(B, KSPFGMRES, "single", NULL, &ksp, &pc));
  PetscCall(MatCreateVecs(B, &x, &b));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCheck(reason < 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, values of size 1e60 in floats: %s", name, KSPConvergedReasons[reason]);
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const options[] = {NULL, "-pc_gpuamg_tail 0", "-pc_gpuamg_cycles 2 -pc_gpuamg_tail 0", "-pc_gpuamg_smoother pbjacobi", "-pc_gpuamg_smoother rowl1 -pc_gpuamg_smoother_degree 3", "-mg_levels_ksp_type richardson -mg_levels_ksp_richardson_scale 0.6 -pc_gpuamg_smoother_degree 1"};
  static const char *const doubles[] = {"-pc_gpuamg_smoother ilu", "-pc_gpuamg_cycles k", "-pc_gpuamg_max_levels 1"};
  PetscMPIInt              size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-report", &report, NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (int p = 0; p < PROBLEMS; p++) {
    const char *name;
    PetscBool   symmetric;
    Mat         A, D;

    PetscCall(Problem(p, &name, &symmetric, &A));
    if (size > 1 && symmetric) {
      PetscCall(Spread(PETSC_COMM_WORLD, A, &D));
      PetscCall(Switched(D, name));
      PetscCall(MatDestroy(&D));
    }
    if (size > 1) {
      PetscCall(MatDestroy(&A));
      continue;
    }
    if (symmetric) PetscCall(Switched(A, name));
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(options); k++) PetscCall(Beside(A, name, options[k]));
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(doubles); k++) PetscCall(Doubles(A, doubles[k], name));
    PetscCall(Methods(A, symmetric, name));
    PetscCall(Large(A, name));
    PetscCall(MatDestroy(&A));
  }
  for (size_t k = 0; size == 1 && k < PETSC_STATIC_ARRAY_LENGTH(grids); k++) {
    PetscCall(Renewed(&grids[k]));
    PetscCall(Patterns(&grids[k], "double"));
    PetscCall(Patterns(&grids[k], "single"));
  }
  PetscCall(PetscFinalize());
  return 0;
}

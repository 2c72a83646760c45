static char help[] = "PETSc's Krylov methods with Jacobi on the matrix type of your choice.\n\n";

/*
    ksp -mat_type aij
    ksp -mat_type gpucsr -dll_append libpetscgpucsr.so
    ksp -mat_type aijcusparse                              in a PETSc built with CUDA
    ksp -mat_type gpucsr -dll_append libpetscgpucsr.so -ksp_type gpucg
    ksp -cases st27_50,lap7_129,conv_100 [-o FILE] [-repeats 5] [-budget s] [-id TEXT] [-ksp_rtol 1e-8 ...].

  A plain PETSc program without calls of the library. Vectors come from MatCreateVecs(): VECCUDA from types with CUDA vectors,
  VECGPU from gpucsr in a PETSc without CUDA. -vec_type changes the type. A case NAME_N is a cube with N points an edge: the 7-point (lap7_) or 27-point (st27_) Laplacian,
  or 7-point convection and diffusion (conv_), which is unsymmetric and solved by BiCGStab. A case is also a file in PETSc binary, solved by BiCGStab unless its name
  begins with spd:. The prefix rough: scales row and column i of a cube by a number between 1 and 2, so that all values differ. b is all ones, x starts at 0.
  -ksp_type gpucg or gpubcgs asks for the library's solvers.
  A small case of the same kind runs before the first, so that no time has the start of a library.
  The set-up goes from the assembled matrix on the host to the result of the first product. Solves are KSPSolve(): the first, and the
  median of all later solves. The first solve sets up the preconditioner. The total is the set-up and the first solve.

  -o FILE gets one JSON object a line, times in microseconds:
    ksp   matrix, rows, nnz, mat_type, vec_type, ksp, pc, petsc, id, iterations, reason, residual (true, relative), setup_us, first_us,
          solve_us, iteration_us = solve_us / iterations, total_us = setup_us + first_us, restart (of GMRES).
*/
#include <petscksp.h>
#include <petsctime.h>
#include <string.h>
#include "problems/files.h"
#include "problems/spd.h"

static int Less(const void *a, const void *b)
{
  return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static double Factor(int i)
{
  return 1 + (uint32_t)i * 2654435761u / 4294967296.0;
}

/* The matrix of a cube, in arrays that stay in use */
static PetscErrorCode Assemble(const char name[], PetscBool convection, PetscBool rough, int32_t **i, PetscInt **j, PetscScalar **a, PetscInt *rows, Mat *A)
{
  Synthetic s   = {name, STENCIL7, 0, 1, 0, 0, 0, 0, 0, 0};
  SPD       spd = {LOGNORMAL7, 0, 0, 0, NULL};
  int       m = 0, n = 0;

  PetscFunctionBeginUser;
  if (SPDNamed(name, &spd)) {
    const int most = spd.kind == ELASTIC ? 80 : 200;

    PetscCheck(spd.m >= 2 && spd.m <= most, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-cases %s: must have from 2 to %d points an edge", name, most);
    PetscCall(SPDCreate(&spd, &m, i, j, a));
    PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, m, m, (PetscInt *)*i, *j, *a, A));
    *rows = m;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (sscanf(name, convection ? "conv_%d" : "lap7_%d", &s.m) != 1) {
    s.kind = STENCIL27;
    PetscCheck(sscanf(name, "st27_%d", &s.m) == 1, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "-cases %s: must be lap7_N, st27_N, conv_N, lognormal7_N, lognormal27_N, elastic_N or graph_N, N points an edge, or a file .petsc", name);
  }
  PetscCheck(s.m >= 1 && s.m <= 400, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-cases %s: must have from 1 to 400 points an edge", name);
  PetscCall(SyntheticCreate(&s, 1, &m, &n, i, j, a));
  for (int r = 0; r < m && convection; r++) /* upwind: what flows in counts more */
    for (int e = (*i)[r]; e < (*i)[r + 1]; e++) (*a)[e] = (*j)[e] < r ? -1.2 : (*j)[e] > r ? -1 : 6.6;
  for (int r = 0; r < m && rough; r++)
    for (int e = (*i)[r]; e < (*i)[r + 1]; e++) (*a)[e] *= Factor(r) * Factor((int)(*j)[e]);
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, m, n, (PetscInt *)*i, *j, *a, A));
  *rows = m;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* quiet: to start the libraries */
static PetscErrorCode Solve(const char name[], const char type[], const char vtype[], int repeats, PetscBool quiet, FILE *out, const char id[])
{
  Mat                A;
  Vec                x, b, r;
  KSP                ksp;
  PC                 pc;
  KSPType            ksptype;
  PCType             pctype;
  MatType            mattype;
  VecType            vectype;
  KSPConvergedReason reason;
  PetscInt           its, restart = 0, *j = NULL;
  PetscScalar       *a = NULL;
  MatInfo            info;
  PetscReal          bnorm, rnorm;
  PetscLogDouble     t0, t1;
  int32_t           *i = NULL;
  PetscInt           m;
  double             setup, first = 0, solve, t[64] = {0};
  char               version[128];
  PetscBool          convection, file, spd, rough;

  PetscFunctionBeginUser;
  PetscCall(PetscStrncmp(name, "conv_", 5, &convection));
  PetscCall(PetscStrncmp(name, "spd:", 4, &spd));
  PetscCall(PetscStrncmp(name, "rough:", 6, &rough));
  PetscCall(PetscStrendswith(name, ".petsc", &file));
  if (file) {
    const char *slash = strrchr(name, '/');

    PetscCall(BenchLoad(name + (spd ? 4 : 0), &A));
    if (slash) name = slash + 1;
    PetscCall(MatGetSize(A, &m, NULL));
    convection = (PetscBool)!spd;
  } else PetscCall(Assemble(name + (rough ? 6 : 0), convection, rough, &i, &j, &a, &m, &A));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  if (!convection) PetscCall(MatSetOption(A, MAT_SPD, PETSC_TRUE));

  PetscCall(PetscTime(&t0));
  PetscCall(MatConvert(A, type, MAT_INPLACE_MATRIX, &A));
  if (vtype[0]) PetscCall(MatSetVecType(A, vtype));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(x, 1.0));
  PetscCall(MatMult(A, x, b));
  PetscCall(VecNorm(b, NORM_2, &bnorm)); /* waits for the device */
  PetscCall(PetscTime(&t1));
  setup = t1 - t0;

  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSet(b, 1.0));
  PetscCall(VecNorm(b, NORM_2, &bnorm));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, convection ? KSPBCGS : KSPCG));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 20000));
  PetscCall(KSPSetFromOptions(ksp));
  for (int k = -1; k < repeats; k++) {
    PetscCall(VecSet(x, 0.0));
    PetscCall(VecNorm(x, NORM_2, &rnorm));
    PetscCall(PetscTime(&t0));
    PetscCall(KSPSolve(ksp, b, x)); /* ends with a norm, so the device is done */
    PetscCall(PetscTime(&t1));
    if (k < 0) first = t1 - t0;
    else t[k] = t1 - t0;
  }
  qsort(t, (size_t)repeats, sizeof(*t), Less);
  solve = t[repeats / 2];
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &rnorm));
  PetscCall(KSPGetIterationNumber(ksp, &its));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetType(ksp, &ksptype));
  if (strstr(ksptype, "gmres")) PetscCall(KSPGMRESGetRestart(ksp, &restart));
  PetscCall(PCGetType(pc, &pctype));
  PetscCall(MatGetType(A, &mattype));
  PetscCall(VecGetType(x, &vectype));
  if (!quiet)
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-18s %-13s %-7s %-8s %5" PetscInt_FMT " iterations  set-up %9.1f us  first %11.1f  solve %11.1f  an iteration %8.2f us  residual %.1e  %s\n", name, mattype, ksptype, vectype, its, 1e6 * setup, 1e6 * first, 1e6 * solve, 1e6 * solve / PetscMax(1, its), (double)(rnorm / bnorm), KSPConvergedReasons[reason]));
  if (out) {
    PetscCall(PetscGetVersion(version, sizeof(version)));
    fprintf(out, "{\"record\": \"ksp\", \"matrix\": \"%s\", \"rows\": %d, \"nnz\": %d, \"mat_type\": \"%s\", \"vec_type\": \"%s\", \"ksp\": \"%s\", \"pc\": \"%s\", \"petsc\": \"%.60s\", \"id\": \"%s\", \"iterations\": %d, \"reason\": \"%s\", \"residual\": %.3g, \"setup_us\": %.10g, \"first_us\": %.10g, \"solve_us\": %.10g, \"iteration_us\": %.10g, \"total_us\": %.10g", name, (int)m,
            (int)info.nz_used, mattype, vectype, ksptype, pctype, version, id, (int)its, KSPConvergedReasons[reason], (double)(rnorm / bnorm), 1e6 * setup, 1e6 * first, 1e6 * solve, 1e6 * solve / PetscMax(1, its), 1e6 * (setup + first));
    if (restart) fprintf(out, ", \"restart\": %d", (int)restart);
    fprintf(out, "}\n");
    fflush(out);
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&A));
  if (!file) PetscCall(SyntheticDestroy(&i, &j, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char          *cases[64], type[64] = MATAIJ, vtype[64] = "", name[PETSC_MAX_PATH_LEN] = "", id[64] = "unknown";
  const char    *usual[] = {"st27_50", "lap7_129", "st27_128", "lap7_200"};
  PetscInt       n = 64, repeats = 5;
  PetscBool      set;
  PetscReal      budget = 0;
  PetscLogDouble t0, t1;
  FILE          *out = NULL;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCheck(sizeof(PetscInt) == sizeof(int32_t), PETSC_COMM_SELF, PETSC_ERR_SUP, "This program needs a PETSc of 32-bit indices");
  PetscCall(PetscTime(&t0));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", type, sizeof(type), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-vec_type", vtype, sizeof(vtype), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-o", name, sizeof(name), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-id", id, sizeof(id), NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeats", &repeats, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-budget", &budget, NULL));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-cases", cases, &n, &set));
  PetscCheck(repeats >= 1 && repeats <= 64, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-repeats must be from 1 to 64");
  if (!set)
    for (n = 0; n < 4; n++) PetscCall(PetscStrallocpy(usual[n], &cases[n]));
  if (name[0]) {
    out = fopen(name, "a");
    PetscCheck(out, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-o %s: cannot be written", name);
  }
  PetscCall(Solve(n && !strncmp(cases[0], "conv_", 5) ? "conv_32" : "lognormal7_32", type, vtype, 1, PETSC_TRUE, NULL, id));
  for (PetscInt k = 0; k < n; k++) {
    PetscCall(PetscTime(&t1));
    if (budget > 0 && t1 - t0 > budget) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s LEFT OUT, the budget of %g s was spent\n", cases[k], (double)budget));
    else PetscCall(Solve(cases[k], type, vtype, (int)repeats, PETSC_FALSE, out, id));
    PetscCall(PetscFree(cases[k]));
  }
  if (out) fclose(out);
  PetscCall(PetscFinalize());
  return 0;
}

static char help[] = "Products and solves of a matrix whose rows are shared by the ranks.\n\n";

/*
    mpiexec -n 2 scale -mat_type gpucsr -dll_append libpetscgpucsr.so -ksp_type gpucg
    mpiexec -n 2 scale -mat_type aijcusparse -ksp_type cg                            in a PETSc built with CUDA
    mpiexec -n 2 scale ... -cases lognormal27_64,lognormal27_200,conv_100 [-repeats 5] [-its 200]

  A plain PETSc program: it knows nothing of the library. A case is a matrix of spd.h, or 7-point convection and diffusion (conv_), N points an edge of a cube, in slabs of equal rows; b is all ones, x starts at 0, the
  preconditioner is PCJACOBI unless -pc_type says otherwise. A line a case: microseconds of a product, and of an iteration of a solve that takes -its of them, each the median of -repeats; and the norm of
  the residual b - A x over that of b after these iterations, which must not depend on the ranks.
*/
#include <petscksp.h>
#include <petsctime.h>
#include <string.h>
#include "spd.h"

static int Less(const void *a, const void *b)
{
  return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

/* A row of 7-point convection and diffusion: what flows in counts more */
static int ConvectionRow(int m, int r, int32_t *col, double *val)
{
  const int at[3] = {r % m, r / m % m, r / m / m}, far[3] = {1, m, m * m};
  int       count = 0;

  for (int d = 2; d >= 0; d--)
    if (at[d]) {
      col[count]   = r - far[d];
      val[count++] = -1.2;
    }
  col[count]   = r;
  val[count++] = 6.6;
  for (int d = 0; d < 3; d++)
    if (at[d] + 1 < m) {
      col[count]   = r + far[d];
      val[count++] = -1;
    }
  return count;
}

static PetscErrorCode Assemble(const char name[], PetscBool *convection, Mat *A)
{
  static const char *const kinds[] = {"lognormal7_%d", "lognormal27_%d", "elastic_%d", "graph_%d", "conv_%d"}; /* in the order of SPDKind */
  SPD                      s;
  int                      kind = 0, rows;
  PetscInt                 n, m = PETSC_DECIDE, rs, *i, *j;
  PetscScalar             *a;
  char                     type[64] = MATAIJ;

  PetscFunctionBeginUser;
  while (kind < 5 && sscanf(name, kinds[kind], &s.m) != 1) kind++;
  PetscCheck(kind < 5 && s.m >= 2 && s.m <= 400, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-cases %s: must be lognormal7_N, lognormal27_N, elastic_N, graph_N or conv_N, N points an edge", name);
  *convection = (PetscBool)(kind == 4);
  s.kind      = (SPDKind)kind;
  n           = (PetscInt)s.m * s.m * s.m * (kind == ELASTIC ? 3 : 1);
  PetscCall(PetscSplitOwnership(PETSC_COMM_WORLD, &m, &n));
  PetscCallMPI(MPI_Scan(&m, &rs, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  rs -= m;
  rows = (int)m;
  PetscCall(PetscMalloc1(m + 1, &i));
  i[0] = 0;
#pragma omp parallel for
  for (int r = 0; r < rows; r++) {
    int32_t col[SPD_LONGEST];
    double  val[SPD_LONGEST];

    i[r + 1] = *convection ? ConvectionRow(s.m, (int)rs + r, col, val) : SPDRow(&s, (int)rs + r, col, val);
  }
  for (int r = 0; r < rows; r++) i[r + 1] += i[r];
  PetscCall(PetscMalloc2(i[m], &j, i[m], &a));
#pragma omp parallel for
  for (int r = 0; r < rows; r++) {
    int32_t   col[SPD_LONGEST];
    double    val[SPD_LONGEST];
    const int count = *convection ? ConvectionRow(s.m, (int)rs + r, col, val) : SPDRow(&s, (int)rs + r, col, val);

    for (int e = 0; e < count; e++) {
      j[i[r] + e] = col[e];
      a[i[r] + e] = val[e];
    }
  }
  PetscCall(PetscOptionsGetString(NULL, NULL, "-mat_type", type, sizeof(type), NULL));
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, m, m, n, n));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSeqAIJSetPreallocationCSR(*A, i, j, a));
  PetscCall(MatMPIAIJSetPreallocationCSR(*A, i, j, a));
  PetscCall(PetscFree(i));
  PetscCall(PetscFree2(j, a));
  if (!*convection) PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Measure(const char name[], int repeats, PetscInt its)
{
  Mat            A;
  Vec            x, b, r;
  KSP            ksp;
  PC             pc;
  KSPType        type;
  PetscMPIInt    size;
  PetscInt       done, n;
  PetscReal      norm, rnorm;
  PetscLogDouble t0, t1;
  double         product[64], solve[64];
  PetscBool      convection;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCall(Assemble(name, &convection, &A));
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSet(x, 1.0));
  for (int k = -1; k < repeats; k++) { /* ends with a norm, so the device is done */
    PetscCall(MatMult(A, x, r));
    PetscCall(VecNorm(r, NORM_2, &norm));
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    PetscCall(PetscTime(&t0));
    for (int q = 0; q < 50; q++) PetscCall(MatMult(A, x, r));
    PetscCall(VecNorm(r, NORM_2, &norm));
    PetscCall(PetscTime(&t1));
    if (k >= 0) product[k] = (t1 - t0) / 50;
  }
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, convection ? KSPBCGS : KSPCG));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetTolerances(ksp, 1e-300, 1e-300, 1e300, its));
  PetscCall(KSPSetFromOptions(ksp));
  for (int k = -1; k < repeats; k++) {
    PetscCall(VecSet(x, 0.0));
    PetscCall(VecNorm(x, NORM_2, &norm));
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    PetscCall(PetscTime(&t0));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(PetscTime(&t1));
    if (k >= 0) solve[k] = t1 - t0;
  }
  PetscCall(KSPGetIterationNumber(ksp, &done));
  PetscCall(KSPGetType(ksp, &type));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &rnorm));
  PetscCall(VecNorm(b, NORM_2, &norm));
  qsort(product, (size_t)repeats, sizeof(*product), Less);
  qsort(solve, (size_t)repeats, sizeof(*solve), Less);
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-18s ranks %d rows %9" PetscInt_FMT " product %8.1f us  %-8s iteration %8.2f us  its %4" PetscInt_FMT " residual %.6e\n", name, (int)size, n, 1e6 * product[repeats / 2], type, 1e6 * solve[repeats / 2] / (double)PetscMax(1, done), done, (double)(rnorm / norm)));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char     *cases[64];
  PetscInt  ncases = 64, repeats = 5, its = 200;
  PetscBool set;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-repeats", &repeats, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-its", &its, NULL));
  PetscCheck(repeats >= 1 && repeats <= 64, PETSC_COMM_WORLD, PETSC_ERR_ARG_OUTOFRANGE, "-repeats %" PetscInt_FMT ": must be from 1 to 64", repeats);
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-cases", cases, &ncases, &set));
  if (!set) {
    ncases = 0;
    PetscCall(PetscStrallocpy("lognormal27_64", &cases[ncases++]));
    PetscCall(PetscStrallocpy("lognormal27_128", &cases[ncases++]));
  }
  for (PetscInt k = 0; k < ncases; k++) {
    PetscCall(Measure(cases[k], (int)repeats, its));
    PetscCall(PetscFree(cases[k]));
  }
  PetscCall(PetscFinalize());
  return 0;
}

//TEST name="launch" nsize={} args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_format csr -mat_gpucsr_halo peer -path persistent -kinds memory,copy,launch,synchronize" loop="2 3" gpu=0
//TEST name="graph" nsize={} args="-gpucsr_debug_standin 1 -mat_gpucsr_backend cuda -mat_gpucsr_format csr -mat_gpucsr_halo peer -path graph -kinds memory,copy,launch,synchronize" loop="2 3" gpu=0
//TEST name="auto" nsize=2 args="-gpucsr_debug_standin 1 -mat_gpucsr_backend auto -mat_gpucsr_format csr -mat_gpucsr_halo peer -path {} -kinds memory,copy,launch" loop="persistent graph" gpu=0

/*
  Several ranks solve together, and one rank meets an error in a call of the library to its device, from the set-up to the last sum. No rank waits for ever: all get an error, or all get the
  solution. A monitor on a single rank makes no rank wait. The library reads the fault to inject when it is registered, so PETSc starts and ends for each call.

    mpiexec -n 2 build/tests/t625-ranks-faults -dll_append build/lib/libpetscgpucsr.so -gpucsr_debug_standin 1 -mat_gpucsr_halo peer -path graph -kinds copy [-first 30 -step 1 -most 300]
*/
#include "testing.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define N     40
#define RTOL  1e-8
#define STEPS 8 /* each call comes later than the one before, by a part of the calls so far */

static PetscErrorCode Create(MatType type, Mat *A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  PetscCall(MatSetSizes(*A, PETSC_DECIDE, PETSC_DECIDE, N, N));
  PetscCall(MatSetType(*A, type));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSetUp(*A));
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt r = rs; r < re; r++)
    for (PetscInt c = PetscMax(0, r - 1); c < PetscMin(N, r + 2); c++) PetscCall(MatSetValue(*A, r, c, c == r ? 2.5 + 0.01 * (double)(r % 5) : -1, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Errors on how many ranks? */
static PetscErrorCode Count(PetscErrorCode ierr, PetscMPIInt *count)
{
  PetscMPIInt mine = ierr ? 1 : 0;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Allreduce(&mine, count, 1, MPI_INT, MPI_SUM, PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Look(KSP ksp, PetscInt n, PetscReal norm, void *seen)
{
  (void)ksp;
  (void)norm;
  *(PetscInt *)seen = n;
  return PETSC_SUCCESS;
}

/* Two solves, until some rank meets an error */
static PetscErrorCode Solves(const char type[], const char path[], PetscBool monitored, const char what[])
{
  Mat            A, R;
  Vec            x, b, r;
  KSP            ksp = NULL;
  PetscMPIInt    size, rank, met = 0;
  PetscInt       seen = -1;
  PetscErrorCode ierr;
  char           option[128];

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(PetscSNPrintf(option, sizeof(option), "-ksp_%s_path %s", type, path));
  PetscCall(PetscOptionsInsertString(NULL, option));
  PetscCall(PetscOptionsSetValue(NULL, "-pc_type", "jacobi"));
  PetscCall(Create(MATAIJ, &R));
  PetscCall(MatCreateVecs(R, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(VecSet(b, 1.0));
  PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
  ierr = MatConvert(R, "gpucsr", MAT_INITIAL_MATRIX, &A);
  PetscCall(PetscPopErrorHandler());
  PetscCall(Count(ierr, &met));
  if (!met) {
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetType(ksp, type));
    PetscCall(KSPSetTolerances(ksp, RTOL, 0, PETSC_DEFAULT, 2 * N));
    PetscCall(KSPSetResidualHistory(ksp, NULL, N, PETSC_TRUE));
    if (monitored && rank == 0) PetscCall(KSPMonitorSet(ksp, Look, &seen, NULL));
    PetscCall(KSPSetFromOptions(ksp));
  }
  for (int k = 0; k < 2 && !met; k++) {
    PetscReal norm = 0, first;

    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = KSPSolve(ksp, b, x);
    PetscCall(PetscPopErrorHandler());
    PetscCall(Count(ierr, &met));
    PetscCheck(met == 0 || met == size, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, %s, %s: an error on %d of %d ranks, on this one %d", what, type, path, met, size, (int)ierr);
    if (met) break;
    PetscCall(MatMult(R, x, r));
    PetscCall(VecAYPX(r, -1, b));
    PetscCall(VecNorm(r, NORM_2, &norm));
    PetscCall(VecNorm(b, NORM_2, &first));
    /* the diagonal, by which the norm of the test is divided, is between 2.5 and 2.54; rounding of a residual is below rtol by far */
    PetscCheck(norm <= 2 * RTOL * first, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s, %s, %s, solve %d: residual norm %g of %g", what, type, path, k, (double)norm, (double)first);
    PetscCheck(!monitored || rank || seen > 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, %s, %s: the monitor has seen iteration %d last", what, type, path, (int)seen);
    PetscCall(VecSet(x, 0));
  }
  if (!met) { /* after an error the objects stay as they are: PETSc promises nothing more */
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(MatDestroy(&R));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *Word(int argc, char **argv, const char name[], const char otherwise[])
{
  for (int k = 1; k + 1 < argc; k++)
    if (!strcmp(argv[k], name)) return argv[k + 1];
  return otherwise;
}

int main(int argc, char **argv)
{
  PetscErrorCode ierr  = MPI_Init(&argc, &argv) ? PETSC_ERR_MPI : PETSC_SUCCESS;
  const char    *kinds = Word(argc, argv, "-kinds", "copy"), *path = Word(argc, argv, "-path", "graph");
  const int      first = atoi(Word(argc, argv, "-first", "1")), step = atoi(Word(argc, argv, "-step", "0")), most = atoi(Word(argc, argv, "-most", "300"));
  char           options[4096], own[2048] = "", list[256], what[128];

  if (ierr) return 1;
  if (getenv("PETSC_OPTIONS")) (void)snprintf(own, sizeof(own), "%s", getenv("PETSC_OPTIONS"));
  (void)snprintf(list, sizeof(list), "%s", kinds);
  for (char *kind = strtok(list, ","); kind; kind = strtok(NULL, ","))
    for (int n = first, turn = 0; n < most; n += step ? step : 1 + n / STEPS, turn++) {
      PetscFunctionBeginUser;
      (void)alarm(60); /* a rank that waits for ever */
      (void)snprintf(options, sizeof(options), "%s -gpucsr_debug_fault %s:%d:rank=%d", own, kind, n, turn % 2);
      (void)setenv("PETSC_OPTIONS", options, 1);
      (void)snprintf(what, sizeof(what), "%s call %d fails on rank %d", kind, n, turn % 2);
      if (getenv("TEST_LOUD")) fprintf(stderr, "%s\n", what);
      PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
      PetscCall(TestRequireReal(64));
      PetscCall(Solves(turn % 4 < 2 ? "gpucg" : "gpubcgs", path, (PetscBool)(turn % 3 == 2 && !strcmp(path, "graph")), what));
      PetscCall(PetscFinalize());
    }
  return MPI_Finalize();
}

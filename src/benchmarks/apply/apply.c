static char help[] = "Time of an application of a direct solver inside a Krylov method, and of cuDSS' solve in it.\n\n";

/*
    apply -execute execute.so -m 316 -ksp_type gmres -mat_type gpucsr -vec_type gpu -pc_factor_mat_solver_type cudss -dll_append libpetscgpucsr.so

  run.sh makes execute.so, which times cuDSS. The matrix is the 5-point Laplacian on M by M points; the factor is of this matrix and a part of the identity, so that the method makes iterations. A row:
    method, rows, applications: microseconds of an application, of cudssExecute() in it, and their difference. Each begins and ends when the device has no work.
*/
#include <petscksp.h>
#include <petsctime.h>
#include <dlfcn.h>
#include <stdlib.h>

#if PETSC_VERSION_LT(3, 19, 0) && !defined(PETSC_SUCCESS)
  #define PETSC_SUCCESS ((PetscErrorCode)0)
#endif

typedef struct {
  PC inner;
  void (*wait)(void);
  double *inside; /* seconds of the solves of cuDSS so far */
  double *application, *execute;
  int     n, most;
} Clock;

static PetscErrorCode Apply(PC pc, Vec x, Vec y)
{
  Clock         *c;
  PetscLogDouble begin, end;
  double         before;

  PetscFunctionBeginUser;
  PetscCall(PCShellGetContext(pc, &c));
  (*c->wait)();
  before = *c->inside;
  PetscCall(PetscTime(&begin));
  PetscCall(PCApply(c->inner, x, y));
  (*c->wait)();
  PetscCall(PetscTime(&end));
  if (c->n < c->most) {
    c->application[c->n] = end - begin;
    c->execute[c->n++]   = *c->inside - before;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Matrix(PetscInt m, PetscReal shift, Mat *A)
{
  PetscFunctionBeginUser;
  PetscCall(MatCreate(PETSC_COMM_SELF, A));
  PetscCall(MatSetSizes(*A, m * m, m * m, m * m, m * m));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(MatSeqAIJSetPreallocation(*A, 5, NULL));
  for (PetscInt r = 0; r < m * m; r++) {
    const PetscInt    col[5] = {r >= m ? r - m : -1, r % m ? r - 1 : -1, r, (r + 1) % m ? r + 1 : -1, r + m < m * m ? r + m : -1}; /* those below 0 are left out */
    const PetscScalar v[5]   = {-1, -1, 4 + shift, -1, -1};

    PetscCall(MatSetValues(*A, 1, &r, 5, col, v, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int Less(const void *a, const void *b)
{
  return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static PetscErrorCode Run(PetscInt m, Clock *c)
{
  Mat     A, P;
  Vec     x, b;
  KSP     ksp;
  PC      pc;
  KSPType type;
  double  difference[3];

  PetscFunctionBeginUser;
  PetscCall(Matrix(m, 0, &A));
  PetscCall(Matrix(m, 0.01, &P));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSetRandom(b, NULL));
  PetscCall(PCCreate(PETSC_COMM_SELF, &c->inner));
  PetscCall(PCSetType(c->inner, PCLU));
  PetscCall(PCSetOperators(c->inner, P, P));
  PetscCall(PCSetFromOptions(c->inner));
  PetscCall(PCSetUp(c->inner));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCSHELL));
  PetscCall(PCShellSetContext(pc, c));
  PetscCall(PCShellSetApply(pc, Apply));
  PetscCall(KSPSetTolerances(ksp, 1e-13, PETSC_DEFAULT, PETSC_DEFAULT, 200));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSolve(ksp, b, x)); /* warms up */
  c->n = 0;
  while (c->n < c->most) PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetType(ksp, &type));
  qsort(c->application, (size_t)c->n, sizeof(double), Less);
  qsort(c->execute, (size_t)c->n, sizeof(double), Less);
  difference[0] = 1e6 * c->application[c->n / 2];
  difference[1] = 1e6 * c->execute[c->n / 2];
  difference[2] = difference[0] - difference[1];
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-10s %9" PetscInt_FMT " %6d: %9.1f %9.1f %9.1f\n", type, m * m, c->n, difference[0], difference[1], difference[2]));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(PCDestroy(&c->inner));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Clock     c = {.most = 100};
  char      file[PETSC_MAX_PATH_LEN];
  PetscInt  m = 100;
  PetscBool set;
  void     *library;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-execute", file, sizeof(file), &set));
  PetscCheck(set, PETSC_COMM_SELF, PETSC_ERR_USER, "-execute FILE, the library of run.sh, is needed");
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-m", &m, NULL));
  library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  PetscCheck(library, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s", dlerror());
  c.wait   = (void (*)(void))dlsym(library, "execute_wait");
  c.inside = (double *)dlsym(library, "execute_seconds");
  PetscCheck(c.wait && c.inside, PETSC_COMM_SELF, PETSC_ERR_LIB, "%s is not the library of run.sh", file);
  PetscCall(PetscOptionsSetValue(NULL, "-mat_gpucsr_cudss_library", file));
  PetscCall(PetscMalloc2(c.most, &c.application, c.most, &c.execute));
  PetscCall(Run(m, &c));
  PetscCall(PetscFree2(c.application, c.execute));
  PetscCall(PetscFinalize());
  return 0;
}

//TEST name="memory" gpu=0 args="-mat_gpucsr_format csr -vec_type {}" loop="standard gpu"
//TEST name="memory_separate" gpu=0 args="-mat_gpucsr_format csr -vec_type gpu -vec_gpu_separate"
//TEST name="memory_ranks" gpu=0 nsize=2 args="-mat_gpucsr_format csr -vec_type {}" loop="standard gpu"
//TEST name="memory_ranks_separate" gpu=0 nsize=2 args="-mat_gpucsr_format csr -vec_type gpu -vec_gpu_separate"
//TEST name="program" args="-mat_gpucsr_format csr -vec_type {} -program" loop="standard gpu"
//TEST name="program_ranks" nsize=2 args="-mat_gpucsr_format csr -vec_type {} -program" loop="standard gpu"

/*
  Failures during a solve. Each allocation of device memory on the last rank fails, one after the other: the solve must end with the right answer, and so must the next solve with the
  same solver. Then the program's functions (-program): a monitor, a convergence test or a preconditioner returns an error, in each of its calls. KSPSolve() returns that error, and the next solve is right.

    build/tests/t615-gpuksp-faults -dll_append build/lib/libpetscgpucsr.so -mat_gpucsr_format csr -vec_type gpu [-program]
*/
#include "testing.h"
#include <unistd.h>
#include <fcntl.h>

#define ROWS 60

static int       countdown = 0, allocations = 0; /* the allocation to fail, 0: none; and how many there were */
static PetscBool onwards = PETSC_FALSE;          /* and all after it */
static PetscErrorCode (*original)(size_t, PetscBool, int, const char[], const char[], void **);

/* Device memory of the host backend is allocated in its file */
static PetscErrorCode Allocate(size_t bytes, PetscBool clear, int line, const char function[], const char file[], void **p)
{
  const char *name = file ? strrchr(file, '/') : NULL;

  if (bytes && name && !strcmp(name, "/host.c") && strstr(file, "backends/host")) {
    allocations++;
    if (countdown && (allocations == countdown || (onwards && allocations > countdown))) {
      *p = NULL;
      return PetscError(PETSC_COMM_SELF, line, function, file, PETSC_ERR_MEM, PETSC_ERROR_INITIAL, "injected: no memory for %zu bytes", bytes);
    }
  }
  return (*original)(bytes, clear, line, function, file, p);
}

typedef struct {
  const char *options;
} Program;

static const Program programs[] = {
  {"-ksp_type gpucg -pc_type jacobi"},
  {"-ksp_type gpucg -pc_type pbjacobi -ksp_norm_type natural"},
  {"-ksp_type gpucg -pc_type none -ksp_gpucg_variant single_reduction"},
  {"-ksp_type gpucg -pc_type jacobi -ksp_gpucg_precision residual_replacement -ksp_gpucg_path graph"},
  {"-ksp_type gpucg -pc_type bjacobi -sub_pc_type icc"},
  {"-ksp_type gpubcgs -pc_type jacobi"},
  {"-ksp_type gpubcgs -pc_type jacobi -ksp_pc_side right -ksp_gpubcgs_path host_loop"},
  {"-ksp_type gpugmres -pc_type jacobi"},
  {"-ksp_type gpugmres -pc_type pbjacobi -ksp_pc_side right -ksp_gmres_restart 5 -ksp_gmres_cgs_refinement_type refine_ifneeded"},
  {"-ksp_type gpugmres -pc_type bjacobi"},
  {"-ksp_type gpufgmres -pc_type bjacobi"},
};

static PetscErrorCode Fill(Mat A)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++)
    for (PetscInt c = PetscMax(r - 1, 0); c <= PetscMin(r + 1, ROWS - 1); c++) PetscCall(MatSetValue(A, r, c, r == c ? 2.5 + (PetscReal)(r % 3) : -1.0, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  Mat A;
  Vec b, x, exact;
  KSP ksp;
} System;

static PetscErrorCode Create(const Program *p, System *s)
{
  char type[32] = "standard";

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-vec_type", type, sizeof(type), NULL));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_pc_side"));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_norm_type"));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_gpucg_variant"));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_gpucg_precision"));
  PetscCall(PetscOptionsClearValue(NULL, "-ksp_gpucg_path"));
  PetscCall(PetscOptionsInsertString(NULL, p->options));
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, ROWS, ROWS, PETSC_FALSE, &s->A));
  PetscCall(MatSetBlockSize(s->A, 3));
  PetscCall(MatSetVecType(s->A, type));
  PetscCall(MatSetUp(s->A));
  PetscCall(Fill(s->A));
  PetscCall(VecCreate(PETSC_COMM_WORLD, &s->exact));
  PetscCall(VecSetSizes(s->exact, PETSC_DECIDE, ROWS));
  PetscCall(VecSetType(s->exact, VECSTANDARD));
  PetscCall(TestFill(s->exact, 3, PETSC_FALSE));
  PetscCall(MatCreateVecs(s->A, &s->x, &s->b));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &s->ksp));
  PetscCall(KSPSetOperators(s->ksp, s->A, s->A));
  PetscCall(KSPSetTolerances(s->ksp, 1e-11, PETSC_DEFAULT, PETSC_DEFAULT, 500));
  PetscCall(KSPSetFromOptions(s->ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Destroy(System *s)
{
  PetscFunctionBegin;
  PetscCall(KSPDestroy(&s->ksp));
  PetscCall(VecDestroy(&s->x));
  PetscCall(VecDestroy(&s->b));
  PetscCall(VecDestroy(&s->exact));
  PetscCall(MatDestroy(&s->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* b = A exact by hand, x = 0, through the vectors' host arrays */
static PetscErrorCode Reset(System *s)
{
  PetscScalar *b;
  PetscInt     rs, re;

  PetscFunctionBegin;
  PetscCall(VecGetOwnershipRange(s->b, &rs, &re));
  PetscCall(TestUnlock(s->b));
  PetscCall(VecGetArrayWrite(s->b, &b));
  for (PetscInt r = rs; r < re; r++) b[r - rs] = 1.0 + (PetscReal)(r % 7);
  PetscCall(VecRestoreArrayWrite(s->b, &b));
  PetscCall(VecGetArrayWrite(s->x, &b));
  for (PetscInt r = rs; r < re; r++) b[r - rs] = 0;
  PetscCall(VecRestoreArrayWrite(s->x, &b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* |b - A x| of the tridiagonal matrix, by all ranks' own entries of a copy on every rank */
static PetscErrorCode Right(System *s, const char when[], const char what[], int n)
{
  PetscScalar        all[ROWS] = {0};
  const PetscScalar *x;
  PetscInt           rs, re;
  PetscReal          worst = 0;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(VecGetOwnershipRange(s->x, &rs, &re));
  PetscCall(VecGetArrayRead(s->x, &x));
  for (PetscInt r = rs; r < re; r++) all[r] = x[r - rs];
  PetscCall(VecRestoreArrayRead(s->x, &x));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, all, ROWS, MPIU_SCALAR, MPIU_SUM, PETSC_COMM_WORLD));
  for (PetscInt r = 0; r < ROWS; r++) {
    PetscScalar sum = 1.0 + (PetscReal)(r % 7) - (2.5 + (PetscReal)(r % 3)) * all[r];

    if (r) sum += all[r - 1];
    if (r + 1 < ROWS) sum += all[r + 1];
    worst = PetscIsNanReal(PetscAbsScalar(sum)) ? PETSC_INFINITY : PetscMax(worst, PetscAbsScalar(sum));
  }
  PetscCall(KSPGetConvergedReason(s->ksp, &reason));
  PetscCheck(reason > 0 && worst < 1e-8, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s, %s, fault %d: %s, residual %g", what, when, n, KSPConvergedReasons[reason], (double)worst);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The messages of the faults, thousands of lines, are not checked here */
static void Quiet(PetscBool quiet)
{
  static int out = -1;
  int        null;

  fflush(stderr);
  if (quiet && out < 0) {
    out  = dup(2);
    null = open("/dev/null", O_WRONLY);
    dup2(null, 2);
    close(null);
  } else if (!quiet && out >= 0) {
    dup2(out, 2);
    close(out);
    out = -1;
  }
}

static PetscErrorCode Memory(void)
{
  PetscMPIInt rank, size;
  PetscInt    faults = 0;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (size_t p = 0; p < PETSC_STATIC_ARRAY_LENGTH(programs); p++) {
    for (int forever = 0; forever < 2; forever++) {
      int n = 0, reached = 1;

      while (reached) {
        System         s;
        PetscErrorCode ierr;

        n++;
        PetscCall(Create(&programs[p], &s));
        PetscCall(Reset(&s));
        Quiet(PETSC_TRUE);
        PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
        allocations = 0;
        onwards     = (PetscBool)forever;
        countdown   = rank == size - 1 ? n : 0;
        ierr        = KSPSolve(s.ksp, s.b, s.x);
        countdown   = 0;
        reached     = allocations >= n;
        PetscCall(PetscPopErrorHandler());
        if (ierr == PETSC_SUCCESS) ierr = Right(&s, "the solve", programs[p].options, n);
        else ierr = PetscErrorPrintf("%s, fault %d%s: KSPSolve() returned error %d\n", programs[p].options, n, forever ? " and all after it" : "", (int)ierr) ? PETSC_ERR_LIB : PETSC_ERR_PLIB;
        Quiet(PETSC_FALSE);
        PetscCheck(!ierr, PETSC_COMM_WORLD, ierr, "%s, fault %d%s: wrong or an error", programs[p].options, n, forever ? " and all after it" : "");
        PetscCall(Reset(&s));
        Quiet(PETSC_TRUE);
        PetscCall(KSPSolve(s.ksp, s.b, s.x));
        Quiet(PETSC_FALSE);
        PetscCall(Right(&s, "the solve after it", programs[p].options, n));
        PetscCall(Destroy(&s));
        PetscCallMPI(MPI_Bcast(&reached, 1, MPI_INT, size - 1, PETSC_COMM_WORLD));
        faults += reached;
      }
    }
  }
  PetscCheck(faults > 20, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "No test: %" PetscInt_FMT " faults", faults);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the program's own functions ---- */

typedef enum {
  MONITOR,
  TEST,
  PRECONDITIONER,
  FUNCTIONS
} Function;

static int calls = 0;

static PetscErrorCode Call(void)
{
  if (countdown && ++calls == countdown) return PetscError(PETSC_COMM_SELF, __LINE__, PETSC_FUNCTION_NAME, __FILE__, PETSC_ERR_USER, PETSC_ERROR_INITIAL, "injected");
  return PETSC_SUCCESS;
}

static PetscErrorCode Monitor(KSP ksp, PetscInt n, PetscReal norm, void *ctx)
{
  PetscFunctionBegin;
  (void)ksp, (void)n, (void)norm, (void)ctx;
  PetscCall(Call());
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Test(KSP ksp, PetscInt n, PetscReal norm, KSPConvergedReason *reason, void *ctx)
{
  PetscFunctionBegin;
  PetscCall(Call());
  PetscCall(KSPConvergedDefault(ksp, n, norm, reason, ctx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Halve(PC pc, Vec x, Vec y)
{
  PetscFunctionBegin;
  (void)pc;
  PetscCall(Call());
  PetscCall(VecCopy(x, y));
  PetscCall(VecScale(y, 0.5));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Own(void)
{
  static const Program types[] = {{"-ksp_type gpucg"}, {"-ksp_type gpucg -ksp_gpucg_variant single_reduction"}, {"-ksp_type gpubcgs"}, {"-ksp_type gpubcgs -ksp_pc_side right"}, {"-ksp_type gpugmres"}, {"-ksp_type gpugmres -ksp_pc_side right"}};

  PetscFunctionBegin;
  for (size_t p = 0; p < PETSC_STATIC_ARRAY_LENGTH(types); p++)
    for (int f = 0; f < FUNCTIONS; f++) {
      int reached = 1;

      for (int n = 1; reached; n++) {
        System         s;
        PC             pc;
        void          *ctx;
        PetscErrorCode ierr;

        PetscCall(Create(&types[p], &s));
        PetscCall(KSPGetPC(s.ksp, &pc));
        PetscCall(PCSetType(pc, f == PRECONDITIONER ? PCSHELL : PCJACOBI));
        if (f == PRECONDITIONER) PetscCall(PCShellSetApply(pc, Halve));
        if (f == MONITOR) PetscCall(KSPMonitorSet(s.ksp, Monitor, NULL, NULL));
        if (f == TEST) {
          PetscCall(KSPConvergedDefaultCreate(&ctx));
          PetscCall(KSPSetConvergenceTest(s.ksp, Test, ctx, KSPConvergedDefaultDestroy));
        }
        PetscCall(Reset(&s));
        calls     = 0;
        countdown = n;
        Quiet(PETSC_TRUE);
        PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
        ierr = KSPSolve(s.ksp, s.b, s.x);
        PetscCall(PetscPopErrorHandler());
        Quiet(PETSC_FALSE);
        countdown = 0;
        reached   = calls >= n;
        PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &reached, 1, MPI_INT, MPI_MAX, PETSC_COMM_WORLD)); /* a rank may be stopped by the error of another one before its own call */
        PetscCheck(!ierr == !reached, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s, function %d: error at call %d, KSPSolve() returned %d", types[p].options, f, n, (int)ierr);
        PetscCall(Reset(&s));
        Quiet(PETSC_TRUE);
        PetscCall(KSPSolve(s.ksp, s.b, s.x));
        Quiet(PETSC_FALSE);
        PetscCall(Right(&s, "the solve after it", types[p].options, n));
        PetscCall(Destroy(&s));
      }
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  PetscBool program = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-program", &program, NULL));
  if (program) PetscCall(Own());
  else {
    original      = PetscTrMalloc;
    PetscTrMalloc = Allocate;
    PetscCall(Memory());
    PetscTrMalloc = original;
  }
  PetscCall(PetscFinalize());
  return 0;
}

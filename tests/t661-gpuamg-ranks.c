/*
  PCGPUAMG of several ranks beside one rank's: iterations on scalar and elastic problems, applications with new values beside a hierarchy from the start, the transpose, matrices of levels, float
  values of small levels, and bad matrices, whose errors all ranks meet. Smoothers are those asked for, with a later degree, and a zero pivot of one rank is a failure on all ranks.

  //TEST name="csr" nsize={} loop="1 2 3 8" args="-mat_gpucsr_format csr"
  //TEST name="cycles" nsize={} loop="2 3" args="-mat_gpucsr_format csr -mat_gpucsr_halo peer -cycles"
  //TEST name="standin" nsize={} loop="2 3" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin {} -mat_gpucsr_halo peer -mat_gpucsr_product_least 0 -cycles -few"
  //TEST name="late" nsize=2 gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 2 -gpucsr_debug_defer 5 -mat_gpucsr_halo peer -cycles -few"
  //TEST name="staged" nsize={} loop="2 3" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin {} -gpucsr_debug_defer 5 -mat_gpucsr_halo staged -mat_gpucsr_product_least 0 -cycles -few"
  //TEST name="vectors" nsize=2 args="-mat_gpucsr_format csr -vec_type gpu -vec_gpu_separate -few"
  //TEST name="ilu" nsize={} loop="1 2 3 4" args="-mat_gpucsr_format csr -ilu -our_mg_levels_pc_type ilu"
  //TEST name="ilu_cycles" nsize={} loop="2 4" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin {} -mat_gpucsr_halo peer -mat_gpucsr_product_least 0 -cycles -few -ilu -our_mg_levels_pc_type ilu"
  //TEST name="ilu_late" nsize=2 gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 2 -gpucsr_debug_defer 5 -mat_gpucsr_halo peer -cycles -few -ilu -our_pc_gpuamg_smoother ilu -our_mg_levels_ksp_type richardson"
  //TEST name="aij" nsize=2 args="-refuse aij" fails="PC type gpuamg needs a matrix of type gpucsr, not mpiaij"
  //TEST name="wide" nsize=2 args="-refuse wide" fails="PC type gpuamg needs a square matrix"
  //TEST name="options" nsize=2 args="-mat_gpucsr_format csr -refuse options" fails="Options -pc_gpuamg_... are not the same on all ranks"
  //TEST name="fault" nsize=2 gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 2 -gpucsr_debug_fault {}:rank=1 -refuse nothing" loop="memory:22:on memory:26:on memory:60:on launch:35 launch:38 copy:140 copy:142 copy:144" fails="(met by rank 1)"
*/
static char help[] = "Tests PCGPUAMG of several ranks.\n";

#include "t660-gpuamg/elastic.h"
#include <petscgpucsr.h>
#include <unistd.h>

static PetscBool report = PETSC_FALSE, few = PETSC_FALSE, cycles = PETSC_FALSE, ilu = PETSC_FALSE;
/* ---- problems ---- */

/* Points of a grid with coefficients of contrast e^c, coupled to their 6 or 26 neighbours; upwinded convection */
typedef struct {
  const char *name;
  PetscInt    n[3], neighbours;
  PetscReal   contrast, convection;
} Grid;

static PetscErrorCode GridCreate(MPI_Comm comm, const Grid *g, PetscInt pass, Mat *A)
{
  const PetscInt m = g->n[0] * g->n[1] * g->n[2];
  PetscInt       first, end;

  PetscFunctionBegin;
  if (!*A) {
    PetscCall(TestMatCreate(comm, m, m, PETSC_FALSE, A));
    PetscCall(MatSeqAIJSetPreallocation(*A, 27, NULL));
    PetscCall(MatMPIAIJSetPreallocation(*A, 27, NULL, 26, NULL));
  }
  PetscCall(MatGetOwnershipRange(*A, &first, &end));
  for (PetscInt v = first; v < end; v++) {
    const PetscInt x = v % g->n[0], y = v / g->n[0] % g->n[1], z = v / (g->n[0] * g->n[1]);
    PetscScalar    diagonal = 0;

    for (PetscInt k = 0; k < 27; k++) {
      const PetscInt    dx = k % 3 - 1, dy = k / 3 % 3 - 1, dz = k / 9 - 1, u = v + dx + g->n[0] * (dy + g->n[1] * dz);
      const PetscReal   w   = PetscExpReal(g->contrast * (ZooReal(PetscMin(u, v), PetscMax(u, v), 17 + pass) - 0.5)) + (k < 13 ? g->convection : 0.0);
      const PetscScalar off = -w;

      if (k == 13 || (g->neighbours == 6 && dx * dx + dy * dy + dz * dz > 1)) continue;
      diagonal += w;
      if (x + dx < 0 || x + dx >= g->n[0] || y + dy < 0 || y + dy >= g->n[1] || z + dz < 0 || z + dz >= g->n[2]) continue;
      PetscCall(MatSetValues(*A, 1, &v, 1, &u, &off, INSERT_VALUES));
    }
    PetscCall(MatSetValues(*A, 1, &v, 1, &v, &diagonal, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  if (g->convection == 0) PetscCall(MatSetOption(*A, MAT_SPD, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Elastic(MPI_Comm comm, PetscInt elements, Mat *A)
{
  Mat R;

  PetscFunctionBegin;
  PetscCall(ElasticCreate(elements, 0.3, PETSC_FALSE, PETSC_TRUE, &R));
  PetscCall(Spread(comm, R, A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rigid motions, by PCSetCoordinates() or as the near null space of the matrix */
static PetscErrorCode Motions(PC pc, Mat A, PetscInt k, PetscBool coordinates)
{
  Vec          x;
  PetscScalar *c;
  PetscReal   *at;
  MatNullSpace near;
  PetscInt     first, n;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, NULL));
  PetscCall(VecSetBlockSize(x, 2));
  PetscCall(VecGetOwnershipRange(x, &first, NULL));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(PetscMalloc1(n, &at));
  PetscCall(VecGetArray(x, &c));
  for (PetscInt v = 0; v < n / 2; v++) {
    at[2 * v]     = (PetscReal)((first / 2 + v) % k + 1);
    at[2 * v + 1] = (PetscReal)((first / 2 + v) / k);
    c[2 * v]      = at[2 * v];
    c[2 * v + 1]  = at[2 * v + 1];
  }
  PetscCall(VecRestoreArray(x, &c));
  if (coordinates) PetscCall(PCSetCoordinates(pc, 2, n / 2, at));
  else {
    PetscCall(MatNullSpaceCreateRigidBody(x, &near));
    PetscCall(MatSetNearNullSpace(A, near));
    PetscCall(MatNullSpaceDestroy(&near));
  }
  PetscCall(PetscFree(at));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- solves ---- */

static PetscErrorCode Solver(Mat A, const char type[], KSP *ksp, PC *pc)
{
  PetscFunctionBegin;
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), ksp));
  PetscCall(KSPSetOptionsPrefix(*ksp, "our_"));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, type));
  PetscCall(KSPSetTolerances(*ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 500));
  PetscCall(KSPGetPC(*ksp, pc));
  PetscCall(PCSetType(*pc, PCGPUAMG));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Iterations(KSP ksp, const char where[], PetscInt *its)
{
  KSPConvergedReason reason;
  Mat                A;
  Vec                b, x, r;
  PetscReal          norm, all;

  PetscFunctionBegin;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCheck(reason > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %s after %" PetscInt_FMT " iterations", where, KSPConvergedReasons[reason], *its);
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &norm));
  PetscCall(VecNorm(b, NORM_2, &all));
  PetscCheck(norm <= 1e-5 * all, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: true residual %g", where, (double)(norm / all));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the view of a PC as a file of rank 0 that goes when it is closed; NULL on other ranks */
static PetscErrorCode View(PC pc, FILE **f)
{
  char        tmp[PETSC_MAX_PATH_LEN], name[PETSC_MAX_PATH_LEN];
  PetscViewer viewer;
  PetscMPIInt rank;

  PetscFunctionBegin;
  PetscCall(PetscGetTmp(PETSC_COMM_WORLD, tmp, sizeof(tmp)));
  PetscCall(PetscSNPrintf(name, sizeof(name), "%s/t661-%d", tmp, (int)getpid()));
  PetscCallMPI(MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, PETSC_COMM_WORLD));
  PetscCall(PetscViewerASCIIOpen(PETSC_COMM_WORLD, name, &viewer));
  PetscCall(PCView(pc, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  *f = NULL;
  if (rank) PetscFunctionReturn(PETSC_SUCCESS);
  *f = fopen(name, "r");
  PetscCheck(*f, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s", name);
  remove(name);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With -cycles, the cycles of all ranks run on the devices */
static PetscErrorCode OnDevices(PC pc, const char where[])
{
  char      line[512], *at = NULL;
  FILE     *f;
  PetscBool found = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(View(pc, &f));
  if (!f) PetscFunctionReturn(PETSC_SUCCESS);
  while (fgets(line, sizeof(line), f)) {
    PetscCall(PetscStrstr(line, "Cycles run on backend", &at));
    if (at) found = PETSC_TRUE;
    PetscCall(PetscStrstr(line, "PETSc runs the cycles", &at));
    if (at) break;
  }
  fclose(f);
  PetscCheck(found, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %s", where, at ? line : "the view does not tell where cycles run");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All ranks together take at most 1.15 times one rank's iterations, plus one; 1.5 times with ILU, whose blocks are those of ranks */
static PetscErrorCode Beside(Mat A, Mat one, PetscInt elements, PetscBool coordinates, const char type[], const char where[])
{
  const Mat both[2] = {one, A};
  PetscInt  its[2];

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    KSP ksp;
    PC  pc;

    PetscCall(Solver(both[k], type, &ksp, &pc));
    if (elements) PetscCall(Motions(pc, both[k], elements, coordinates));
    PetscCall(Iterations(ksp, where, &its[k]));
    if (k && cycles) PetscCall(OnDevices(pc, where));
    if (report && k) PetscCall(KSPView(ksp, PETSC_VIEWER_STDOUT_WORLD));
    PetscCall(KSPDestroy(&ksp));
  }
  if (report) PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s: %s %" PetscInt_FMT " iterations, of one rank %" PetscInt_FMT "\n", where, type, its[1], its[0]));
  else PetscCheck(its[1] <= (PetscInt)((ilu ? 1.5 : 1.15) * (PetscReal)its[0] + 1), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " iterations, one rank takes %" PetscInt_FMT, where, its[1], its[0]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- applications ---- */

static PetscErrorCode Application(PC pc, PetscBool transposed, PetscInt seed, Vec *y)
{
  Mat A;
  Vec b;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(MatCreateVecs(A, y, &b));
  PetscCall(TestFill(b, seed, PETSC_FALSE));
  if (transposed) PetscCall(PCApplyTranspose(pc, b, *y));
  else PetscCall(PCApply(pc, b, *y));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* (M x, y) = (x, M^T y) */
static PetscErrorCode Adjoint(PC pc, const char where[])
{
  Mat         A;
  Vec         x, y, mx, my;
  PetscScalar a, b;
  PetscReal   nx, ny;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(MatCreateVecs(A, &x, &y));
  PetscCall(TestFill(x, 5, PETSC_FALSE));
  PetscCall(TestFill(y, 6, PETSC_FALSE));
  PetscCall(Application(pc, PETSC_FALSE, 5, &mx));
  PetscCall(Application(pc, PETSC_TRUE, 6, &my));
  PetscCall(VecDot(mx, y, &a));
  PetscCall(VecDot(my, x, &b));
  PetscCall(VecNorm(mx, NORM_2, &nx));
  PetscCall(VecNorm(y, NORM_2, &ny));
  PetscCheck(PetscAbsScalar(a - b) <= 1e-10 * nx * ny, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: (M x, y) = %.17g, (x, M^T y) = %.17g", where, (double)PetscRealPart(a), (double)PetscRealPart(b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&mx));
  PetscCall(VecDestroy(&my));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Same(PC pc, PC other, const char where[])
{
  Vec       x, y;
  PetscReal difference, norm;

  PetscFunctionBegin;
  PetscCall(Application(pc, PETSC_FALSE, 9, &x));
  PetscCall(Application(other, PETSC_FALSE, 9, &y));
  PetscCall(VecNorm(x, NORM_2, &norm));
  PetscCall(VecAXPY(x, -1.0, y));
  PetscCall(VecNorm(x, NORM_2, &difference));
  PetscCheck(difference <= 1e-12 * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: two hierarchies differ by %g", where, (double)(difference / norm));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Several columns at once give the single columns' results up to rounding: a GPU sums several columns in another order */
static PetscErrorCode Columns(PC pc)
{
  Mat         A, X, Y;
  Vec         y, c, b;
  PetscInt    n, N;
  PetscReal   difference, norm;
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(MatGetLocalSize(A, &n, NULL));
  PetscCall(MatGetSize(A, &N, NULL));
  PetscCall(MatCreateDense(PetscObjectComm((PetscObject)A), n, PETSC_DECIDE, N, 3, NULL, &X));
  PetscCall(MatDuplicate(X, MAT_DO_NOT_COPY_VALUES, &Y));
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(MatDenseGetColumnVecWrite(X, k, &b));
    PetscCall(TestFill(b, 20 + k, PETSC_FALSE));
    PetscCall(MatDenseRestoreColumnVecWrite(X, k, &b));
  }
  PetscCall(MatAssemblyBegin(X, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(X, MAT_FINAL_ASSEMBLY));
  PetscCall(PCMatApply(pc, X, Y));
  for (PetscInt k = 0; k < 3; k++) {
    PetscCall(Application(pc, PETSC_FALSE, 20 + k, &y));
    PetscCall(MatDenseGetColumnVecRead(Y, k, &c));
    PetscCall(VecNorm(y, NORM_INFINITY, &norm));
    PetscCall(VecAXPY(y, -1.0, c));
    PetscCall(MatDenseRestoreColumnVecRead(Y, k, &c));
    PetscCall(VecNorm(y, NORM_INFINITY, &difference));
    PetscCheck(difference <= TEST_C * PETSC_MACHINE_EPSILON * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Column %" PetscInt_FMT " differs by %g", k, (double)difference);
    PetscCall(VecDestroy(&y));
  }
  PetscCall(MatDestroy(&X));
  PetscCall(MatDestroy(&Y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Changes(const Grid *g, const char type[])
{
  Mat      A = NULL;
  KSP      ksp, fresh;
  PC       pc, other;
  PetscInt its;

  PetscFunctionBegin;
  PetscCall(GridCreate(PETSC_COMM_WORLD, g, 0, &A));
  PetscCall(Solver(A, type, &ksp, &pc));
  PetscCall(KSPSetUp(ksp));
  PetscCall(Adjoint(pc, g->name));
  PetscCall(Columns(pc));
  for (PetscInt pass = 0; pass < 3; pass++) {
    if (pass) PetscCall(GridCreate(PETSC_COMM_WORLD, g, pass, &A));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetUp(ksp));
    PetscCall(PCSetUp(pc));
    PetscCall(Solver(A, type, &fresh, &other));
    PetscCall(KSPSetUp(fresh));
    PetscCall(Same(pc, other, g->name));
    PetscCall(Iterations(ksp, g->name, &its));
    PetscCall(KSPDestroy(&fresh));
  }
  PetscCall(PCGAMGSetReuseInterpolation(pc, PETSC_TRUE));
  PetscCall(GridCreate(PETSC_COMM_WORLD, g, 3, &A));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(Iterations(ksp, g->name, &its));
  PetscCall(PCReset(pc));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(Iterations(ksp, g->name, &its));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Small levels in floats change an application by little, and iterations hardly. auto takes doubles if a value is too large for a float */
static PetscErrorCode Precisions(const Grid *g)
{
  static const char *const words[] = {"double", "single", "auto"};
  PetscInt                 its[3];
  PetscReal                norm, difference;
  Vec                      x[3];

  PetscFunctionBegin;
  for (int large = 0; large < 2; large++) {
    for (int k = 0; k < 3; k++) {
      Mat A = NULL;
      KSP ksp;
      PC  pc;

      PetscCall(GridCreate(PETSC_COMM_WORLD, g, 0, &A));
      if (large) PetscCall(MatScale(A, 1e40));
      PetscCall(PetscOptionsSetValue(NULL, "-our_pc_gpuamg_precision", large && k == 1 ? "double" : words[k]));
      PetscCall(Solver(A, KSPCG, &ksp, &pc));
      PetscCall(PetscOptionsClearValue(NULL, "-our_pc_gpuamg_precision"));
      PetscCall(Iterations(ksp, words[k], &its[k]));
      PetscCall(Application(pc, PETSC_FALSE, 9, &x[k]));
      PetscCall(KSPDestroy(&ksp));
      PetscCall(MatDestroy(&A));
    }
    PetscCall(VecNorm(x[0], NORM_2, &norm));
    for (int k = 1; k < 3; k++) {
      PetscCall(VecAXPY(x[k], -1.0, x[0]));
      PetscCall(VecNorm(x[k], NORM_2, &difference));
      if (report)
        PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%s, values%s, %s: %" PetscInt_FMT " iterations, in doubles %" PetscInt_FMT ", an application differs by %g\n", g->name, large ? " of size 1e40" : "", words[k], its[k], its[0], (double)(difference / norm)));
      PetscCheck(large ? difference == 0 : difference > 1e-12 * norm && difference < 1e-5 * norm, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, precision %s%s: an application differs by %g", g->name, words[k], large ? ", large values" : "", (double)(difference / norm));
      PetscCheck(its[k] <= its[0] + 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, precision %s: %" PetscInt_FMT " iterations, in doubles %" PetscInt_FMT, g->name, words[k], its[k], its[0]);
    }
    for (int k = 0; k < 3; k++) PetscCall(VecDestroy(&x[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A value that no hierarchy can be made of ends the solve, and with another value the next solve succeeds */
static PetscErrorCode Bad(const Grid *g, PetscScalar value, const char where[])
{
  Mat                A = NULL;
  KSP                ksp;
  PC                 pc;
  Vec                b, x;
  PetscInt           its, first, end;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(GridCreate(PETSC_COMM_WORLD, g, 0, &A));
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  if (end == g->n[0] * g->n[1] * g->n[2]) PetscCall(MatSetValue(A, end - 1, end - 1, value, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(Solver(A, KSPCG, &ksp, &pc));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCheck(reason == KSP_DIVERGED_PC_FAILED, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %s", where, KSPConvergedReasons[reason]);
  PetscCall(GridCreate(PETSC_COMM_WORLD, g, 0, &A));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(Iterations(ksp, where, &its));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The first two rows of the last rank's block are equal, to the right of other ranks' columns: a zero pivot on this rank alone. Later values are good, bad and good */
static PetscErrorCode Pivots(const Grid *g, const char method[])
{
  static const char *const options[] = {"-our_mg_levels_pc_type", "-our_mg_levels_ksp_type"};
  const PetscScalar        ones[4]   = {1.0, 1.0, 1.0, 1.0};
  Mat                      A         = NULL;
  KSP                      ksp;
  PC                       pc;
  Vec                      b, x;
  PetscInt                 first, end, its;
  KSPConvergedReason       reason;
  PCFailedReason           why;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(PetscOptionsSetValue(NULL, options[k], k ? method : PCILU));
  PetscCall(GridCreate(PETSC_COMM_WORLD, g, 0, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  PetscCall(Solver(A, KSPGMRES, &ksp, &pc));
  for (int pass = 0; pass < 5; pass++) {
    const PetscInt two[2] = {first, first + 1};

    PetscCall(GridCreate(PETSC_COMM_WORLD, g, 0, &A));
    if (pass % 2 && end == g->n[0] * g->n[1] * g->n[2]) PetscCall(MatSetValues(A, 2, two, 2, two, ones, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
    PetscCall(KSPSetOperators(ksp, A, A));
    if (pass % 2) {
      PetscCall(KSPSolve(ksp, b, x));
      PetscCall(KSPGetConvergedReason(ksp, &reason));
      PetscCall(PCGetFailedReason(pc, &why));
      PetscCheck(reason == KSP_DIVERGED_PC_FAILED && why == PC_FACTOR_NUMERIC_ZEROPIVOT, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, a zero pivot: %s, %s", method, KSPConvergedReasons[reason], PCFailedReasons[why]);
    } else PetscCall(Iterations(ksp, method, &its));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  for (int k = 0; k < 2; k++) PetscCall(PetscOptionsClearValue(NULL, options[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Finds the smoother, of so many steps, in a view */
static PetscErrorCode Viewed(PC pc, const char smoother[], PetscInt steps)
{
  char      text[64], line[512], *at = NULL;
  FILE     *f;
  PetscBool found = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscSNPrintf(text, sizeof(text), "of degree %" PetscInt_FMT " with %s,", steps, smoother));
  PetscCall(View(pc, &f));
  if (!f) PetscFunctionReturn(PETSC_SUCCESS);
  while (fgets(line, sizeof(line), f)) {
    PetscCall(PetscStrstr(line, text, &at));
    if (at) found = PETSC_TRUE;
  }
  fclose(f);
  PetscCheck(found, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The view lacks: %s", text);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The smoother of levels of all ranks is the one asked for; a later degree counts */
static PetscErrorCode Smoothers(const char smoother[])
{
  Mat      A;
  KSP      ksp;
  PC       pc;
  PetscInt its;

  PetscFunctionBegin;
  PetscCall(Elastic(PETSC_COMM_WORLD, 14, &A));
  PetscCall(PetscOptionsSetValue(NULL, "-our_pc_gpuamg_smoother", smoother));
  PetscCall(Solver(A, KSPCG, &ksp, &pc));
  PetscCall(Motions(pc, A, 14, PETSC_TRUE));
  PetscCall(Iterations(ksp, smoother, &its));
  PetscCall(Viewed(pc, smoother, 2));
  PetscCall(PetscOptionsSetValue(NULL, "-our_pc_gpuamg_smoother_degree", "5"));
  PetscCall(PCSetFromOptions(pc));
  PetscCall(MatScale(A, 2.0));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(Iterations(ksp, smoother, &its));
  PetscCall(Viewed(pc, smoother, 5));
  PetscCall(PetscOptionsClearValue(NULL, "-our_pc_gpuamg_smoother_degree"));
  PetscCall(PetscOptionsClearValue(NULL, "-our_pc_gpuamg_smoother"));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On levels of all ranks */
static PetscErrorCode Levels(const Grid *g)
{
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size == 1) PetscFunctionReturn(PETSC_SUCCESS);
  if (ilu) {
    PetscCall(Pivots(g, KSPRICHARDSON));
    PetscCall(Pivots(g, KSPCHEBYSHEV));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Smoothers("jacobi"));
  PetscCall(Smoothers("pbjacobi"));
  PetscCall(Smoothers("rowl1"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows without neighbours, each third of them empty, which ILU refuses unless a dense inverse does all */
static PetscErrorCode Diagonal(PetscInt n)
{
  Mat                A;
  KSP                ksp;
  PC                 pc;
  Vec                b, x;
  PetscInt           first, end;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, n, n, PETSC_FALSE, &A));
  PetscCall(MatSeqAIJSetPreallocation(A, 1, NULL));
  PetscCall(MatMPIAIJSetPreallocation(A, 1, NULL, 0, NULL));
  PetscCall(MatGetOwnershipRange(A, &first, &end));
  for (PetscInt i = first; i < end; i++)
    if (i % 3) PetscCall(MatSetValue(A, i, i, 2.0 + (PetscReal)(i % 5), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &x, &b));
  for (PetscInt i = first; i < end; i++) PetscCall(VecSetValue(b, i, i % 3 ? 1.0 : 0.0, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(b));
  PetscCall(VecAssemblyEnd(b));
  PetscCall(Solver(A, KSPCG, &ksp, &pc));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCheck(reason > 0 || (ilu && n != 40 && reason == KSP_DIVERGED_PC_FAILED), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A diagonal matrix of %" PetscInt_FMT " rows: %s", n, KSPConvergedReasons[reason]);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Refuse(const char what[])
{
  const Grid little = {
    "little", {12, 11, 10},
     6, 1, 0
  };
  PetscMPIInt rank;
  Mat         A = NULL;
  PC          pc;
  Vec         y;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (!strcmp(what, "aij") || !strcmp(what, "wide")) {
    PetscCall(TestMatCreate(PETSC_COMM_WORLD, 20, strcmp(what, "wide") ? 20 : 24, (PetscBool)!strcmp(what, "aij"), &A));
    PetscCall(MatSetUp(A));
    PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  } else PetscCall(GridCreate(PETSC_COMM_WORLD, &little, 0, &A));
  PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
  PetscCall(PCSetType(pc, PCGPUAMG));
  if (!strcmp(what, "options")) PetscCall(PCGAMGSetNSmooths(pc, rank));
  PetscCall(PCSetOperators(pc, A, A));
  PetscCall(PCSetUp(pc));
  PetscCall(Application(pc, PETSC_FALSE, 1, &y));
  PetscCall(VecDestroy(&y));
  PetscCall(PCDestroy(&pc));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Limits that leave several levels to all ranks, and the library's limits */
static PetscErrorCode Everything(const Grid grids[], size_t n)
{
  static const char *const types[] = {KSPCG, KSPGPUCG};

  PetscFunctionBegin;
  for (size_t k = 0; k < n; k++) {
    Mat A = NULL, one = NULL;

    PetscCall(GridCreate(PETSC_COMM_WORLD, &grids[k], 0, &A));
    PetscCall(GridCreate(PETSC_COMM_SELF, &grids[k], 0, &one));
    for (int t = 0; t < 2; t++) PetscCall(Beside(A, one, 0, PETSC_FALSE, grids[k].convection == 0 ? types[t] : t ? KSPGPUBCGS : KSPGMRES, grids[k].name));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&one));
  }
  for (int coordinates = 0; coordinates < 2; coordinates++) {
    const PetscInt elements = few ? 14 : 30;
    Mat            A, one;

    PetscCall(Elastic(PETSC_COMM_WORLD, elements, &A));
    PetscCall(Elastic(PETSC_COMM_SELF, elements, &one));
    PetscCall(Beside(A, one, elements, (PetscBool)coordinates, KSPCG, coordinates ? "elasticity with coordinates" : "elasticity with rigid motions"));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&one));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rows whose strong entries are in columns of other ranks, on two levels of all ranks */
static PetscErrorCode Large(void)
{
  const Grid large = {
    "7 points, weak entries, large", {50, 48, 47},
     6, 8, 0
  };
  PetscMPIInt size;
  Mat         A = NULL, one = NULL;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size < 8 || few || ilu) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GridCreate(PETSC_COMM_WORLD, &large, 0, &A));
  PetscCall(GridCreate(PETSC_COMM_SELF, &large, 0, &one));
  PetscCall(Beside(A, one, 0, PETSC_FALSE, KSPCG, large.name));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&one));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const Grid grids[] = {
    {"7 points, contrast e^3",  {20, 18, 17}, 6,  3, 0  },
    {"27 points, contrast e^2", {18, 17, 16}, 26, 2, 0  },
    {"convection",              {16, 15, 14}, 6,  1, 0.7},
    {"7 points, weak entries",  {20, 18, 17}, 6,  8, 0  }
  };
  static const Grid little[] = {
    {"7 points, contrast e^3",  {12, 11, 10}, 6,  3, 0  },
    {"27 points, contrast e^2", {11, 10, 10}, 26, 2, 0  },
    {"convection",              {10, 11, 10}, 6,  1, 0.7},
    {"7 points, weak entries",  {12, 11, 10}, 6,  8, 0  }
  };
  static const char *const none[] = {"-our_pc_gpuamg_coarse_eq_limit", "-our_pc_gpuamg_gather_limit", "-our_pc_gpuamg_process_eq_limit"};
  PetscBool                set;
  char                     what[16];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-few", &few, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-cycles", &cycles, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-ilu", &ilu, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-report", &report, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-refuse", what, sizeof(what), &set));
  if (set) PetscCall(Refuse(what));
  PetscCall(PetscOptionsSetValue(NULL, "-our_pc_gpuamg_coarse_eq_limit", "50")); /* or one rank solves directly */
  PetscCall(Everything(few ? little : grids, 4));                                /* levels below the finest are on each rank */
  PetscCall(Large());
  if (!ilu) PetscCall(Precisions(&little[0]));
  PetscCall(PetscOptionsSetValue(NULL, "-our_pc_gpuamg_gather_limit", "60"));
  PetscCall(PetscOptionsSetValue(NULL, "-our_pc_gpuamg_process_eq_limit", "10"));
  PetscCall(Everything(few ? little : grids, 4));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(little); k++) PetscCall(Changes(&little[k], little[k].convection == 0 ? KSPCG : KSPGMRES));
  PetscCall(Bad(&little[0], 0.0, "zero on the diagonal"));
  PetscCall(Bad(&little[0], NAN, "a value that is no number"));
  PetscCall(Levels(&little[0]));
  PetscCall(Diagonal(40));
  PetscCall(Diagonal(1500));
  for (int k = 0; k < 3; k++) PetscCall(PetscOptionsSetValue(NULL, none[k], k ? "0" : "1")); /* all ranks keep all levels, where some have no rows */
  PetscCall(Diagonal(5));
  PetscCall(Changes(&little[0], KSPCG));
  PetscCall(PetscFinalize());
  return 0;
}

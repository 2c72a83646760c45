/*
  PCGPUAMG beside PCGAMG of the same matrix as MATAIJ: iterations on scalar, convective and elastic problems. Further, the same hierarchy from one set-up to the next; new values as from the start;
  symmetry of the cycle, and its transpose; options; matrices without a hierarchy; bad near null spaces.

  //TEST name="host" args="-mat_gpucsr_format csr"
  //TEST name="auto" gpu=1
  //TEST name="vectors" args="-mat_gpucsr_format csr -vec_type gpu -vec_gpu_separate"
  //TEST name="standin" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1"
  //TEST name="late" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 3 -small"
  //TEST name="direct" args="-mat_gpucsr_format csr -direct"
  //TEST name="floats" args="-mat_gpucsr_format csr -our_pc_gpuamg_precision {}" loop="single auto"
  //TEST name="floats_late" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 3 -small -our_pc_gpuamg_precision single"
  //TEST name="ilu" args="-mat_gpucsr_format csr -our_mg_levels_pc_type ilu -kept_mg_levels_pc_type ilu"
  //TEST name="ilu_late" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 3 -small -our_mg_levels_pc_type ilu -our_mg_levels_ksp_type richardson -our_pc_gpuamg_cycles 2"
  //TEST name="aij" args="-refuse aij" fails="PC type gpuamg needs a matrix of type gpucsr, not seqaij"
  //TEST name="wide" args="-refuse wide" fails="PC type gpuamg needs a square matrix"
  //TEST name="blocks" args="-mat_gpucsr_format csr -refuse blocks" fails="PC type gpuamg takes blocks of at most 16 rows, not 20"
  //TEST name="near" nsize=2 args="-mat_gpucsr_format csr -refuse near" fails="Vector 0 of the near null space has no finite number in row"
  //TEST name="option" args="-mat_gpucsr_format csr -our_pc_gpuamg_agg_nsmooths 9" fails="-pc_gpuamg_agg_nsmooths 9: must be from 0 to 4"
  //TEST name="cycles" args="-mat_gpucsr_format csr -our_pc_gpuamg_cycles 3" fails="for -our_pc_gpuamg_cycles"
*/
static char help[] = "Tests PCGPUAMG.\n";

#include "testing.h"
#include <petscgpucsr.h>
#include "t660-gpuamg/problems.h"

static PetscBool report = PETSC_FALSE, direct = PETSC_FALSE, floats = PETSC_FALSE;

/* ---- solves ---- */

static PetscErrorCode Solver(Mat A, const char prefix[], const char type[], const char pctype[], KSP *ksp)
{
  PC pc;

  PetscFunctionBegin;
  PetscCall(KSPCreate(PETSC_COMM_SELF, ksp));
  PetscCall(KSPSetOptionsPrefix(*ksp, prefix));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, type));
  PetscCall(KSPSetTolerances(*ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 500));
  PetscCall(KSPGetPC(*ksp, &pc));
  PetscCall(PCSetType(pc, pctype));
  if (!direct) PetscCall(PCGAMGSetCoarseEqLim(pc, 50)); /* several levels */
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

/* At most 1.3 times the iterations of PCGAMG, and two */
static PetscErrorCode Beside(Mat A, Mat R, const char type[], const char gputype[], const char where[])
{
  const char *const types[] = {type, gputype};
  KSP               ksp;
  PetscInt          its, ref;

  PetscFunctionBegin;
  PetscCall(Solver(R, "ref_", type, PCGAMG, &ksp));
  PetscCall(Iterations(ksp, where, &ref));
  PetscCall(KSPDestroy(&ksp));
  for (int k = 0; k < 2; k++) {
    PetscCall(Solver(A, "our_", types[k], PCGPUAMG, &ksp));
    PetscCall(Iterations(ksp, where, &its));
    if (report) {
      PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: %s %" PetscInt_FMT " iterations, PCGAMG %" PetscInt_FMT "\n", where, types[k], its, ref));
      if (k) PetscCall(KSPView(ksp, PETSC_VIEWER_STDOUT_SELF));
    } else PetscCheck(its <= (PetscInt)(1.3 * (PetscReal)ref + 2), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " iterations of %s, PCGAMG takes %" PetscInt_FMT, where, its, types[k], ref);
    PetscCall(KSPDestroy(&ksp));
  }
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

/* (M x, y) = (x, M^T y), with M^T = M where symmetric is set, up to rounding */
static PetscErrorCode Adjoint(PC pc, PetscBool symmetric, const char where[])
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
  PetscCall(Application(pc, (PetscBool)!symmetric, 6, &my));
  PetscCall(VecDot(mx, y, &a));
  PetscCall(VecDot(my, x, &b));
  PetscCall(VecNorm(mx, NORM_2, &nx));
  PetscCall(VecNorm(y, NORM_2, &ny));
  PetscCheck(PetscAbsScalar(a - b) <= (floats || strstr(where, "precision") ? 10 * FLT_EPSILON : 1e-10) * nx * ny, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: (M x, y) = %.17g, (x, M y) = %.17g", where, (double)PetscRealPart(a), (double)PetscRealPart(b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&mx));
  PetscCall(VecDestroy(&my));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Same(PC pc, PC other, const char where[])
{
  Vec                x, y;
  PetscInt           n;
  const PetscScalar *a, *b;
  PetscBool          same;

  PetscFunctionBegin;
  PetscCall(Application(pc, PETSC_FALSE, 9, &x));
  PetscCall(Application(other, PETSC_FALSE, 9, &y));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayRead(x, &a));
  PetscCall(VecGetArrayRead(y, &b));
  PetscCall(PetscArraycmp(a, b, n, &same));
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscCall(VecRestoreArrayRead(y, &b));
  PetscCheck(same, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: two hierarchies differ", where);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* New values of the same matrix against a hierarchy from the start; with interpolation that is kept the solve converges */
static PetscErrorCode Changes(const Grid *g)
{
  Mat      A = NULL;
  KSP      ksp, fresh, kept;
  PC       pc, other;
  PetscInt its;

  PetscFunctionBegin;
  PetscCall(GridCreate(g, 0, PETSC_FALSE, &A));
  PetscCall(Solver(A, "our_", g->ksp, PCGPUAMG, &ksp));
  PetscCall(Solver(A, "kept_", g->ksp, PCGPUAMG, &kept));
  PetscCall(KSPGetPC(kept, &pc));
  PetscCall(PCGAMGSetReuseInterpolation(pc, PETSC_TRUE));
  PetscCall(Iterations(kept, g->name, &its));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(KSPSetUp(ksp));
  PetscCall(Adjoint(pc, (PetscBool)(g->convection == 0), g->name));
  PetscCall(Adjoint(pc, PETSC_FALSE, g->name));
  for (PetscInt pass = 0; pass < 3; pass++) {
    if (pass) PetscCall(GridCreate(g, pass, PETSC_FALSE, &A));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetUp(ksp));
    PetscCall(PCSetUp(pc));
    PetscCall(Solver(A, "our_", g->ksp, PCGPUAMG, &fresh));
    PetscCall(KSPGetPC(fresh, &other));
    PetscCall(KSPSetUp(fresh));
    PetscCall(Same(pc, other, g->name));
    PetscCall(Iterations(ksp, g->name, &its));
    PetscCall(KSPSetOperators(kept, A, A));
    PetscCall(Iterations(kept, g->name, &its));
    PetscCall(KSPDestroy(&fresh));
  }
  PetscCall(Adjoint(pc, PETSC_FALSE, g->name));
  PetscCall(PCReset(pc));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(Iterations(ksp, g->name, &its));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(KSPDestroy(&kept));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* With all entries the solve takes more than so many times the iterations that it takes without weak entries; a matrix of the other sign has the cycle of the other sign, bit by bit */
static PetscErrorCode Weak(const Grid *g, PetscInt times)
{
  Mat                A = NULL;
  KSP                ksp, all, minus;
  PC                 pc, other;
  Vec                x, y;
  PetscInt           its, most, n;
  const PetscScalar *a, *b;

  PetscFunctionBegin;
  PetscCall(GridCreate(g, 0, PETSC_FALSE, &A));
  PetscCall(Solver(A, "our_", g->ksp, PCGPUAMG, &ksp));
  PetscCall(Iterations(ksp, g->name, &its));
  PetscCall(Solver(A, "all_", g->ksp, PCGPUAMG, &all));
  PetscCall(KSPGetPC(all, &pc));
  PetscCall(PCGAMGSetThreshold(pc, (PetscReal[]){-1}, 1));
  PetscCall(Iterations(all, g->name, &most));
  if (report) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s: %" PetscInt_FMT ", of all entries %" PetscInt_FMT "\n", g->name, its, most));
  PetscCheck(direct || times * its < most, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " iterations, of all entries %" PetscInt_FMT, g->name, its, most);
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(ForCG(pc));
  PetscCall(Application(pc, PETSC_FALSE, 9, &x));
  PetscCall(MatScale(A, -1.0));
  PetscCall(Solver(A, "our_", g->ksp, PCGPUAMG, &minus));
  PetscCall(KSPSetUp(minus));
  PetscCall(KSPGetPC(minus, &other));
  PetscCall(ForCG(other));
  PetscCall(Application(other, PETSC_FALSE, 9, &y));
  PetscCall(VecGetLocalSize(x, &n));
  PetscCall(VecGetArrayRead(x, &a));
  PetscCall(VecGetArrayRead(y, &b));
  for (PetscInt i = 0; i < n; i++) PetscCheck(a[i] == -b[i], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %" PetscInt_FMT " depends on the sign of the matrix", g->name, i);
  PetscCall(VecRestoreArrayRead(x, &a));
  PetscCall(VecRestoreArrayRead(y, &b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(KSPDestroy(&all));
  PetscCall(KSPDestroy(&minus));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- matrices without a hierarchy ---- */

/* rows of zeros, a zero on the diagonal, a NaN: the solve ends with this reason, and converges after the values are mended */
static PetscErrorCode Bad(const Grid *g, PetscInt row, PetscScalar value, const char where[])
{
  Mat                A = NULL;
  KSP                ksp;
  Vec                b, x;
  PetscInt           its;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(GridCreate(g, 0, PETSC_FALSE, &A));
  PetscCall(MatSetValue(A, row, row, value, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));
  for (int k = 0; k < 2; k++) {
    PetscCall(Solver(A, "our_", k ? KSPGPUCG : KSPCG, PCGPUAMG, &ksp));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCheck(reason == KSP_DIVERGED_PC_FAILED, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %s", where, KSPConvergedReasons[reason]);
    if (k) {
      PetscCall(GridCreate(g, 0, PETSC_FALSE, &A));
      PetscCall(KSPSetOperators(ksp, A, A));
      PetscCall(Iterations(ksp, where, &its));
    }
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A diagonal matrix of n rows, each third of which is empty where empty is set */
static PetscErrorCode Diagonal(PetscInt n, PetscBool empty)
{
  Mat                A;
  KSP                ksp;
  Vec                b, x;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_SELF, n, n, PETSC_FALSE, &A));
  PetscCall(MatSeqAIJSetPreallocation(A, 1, NULL));
  for (PetscInt i = 0; i < n; i++)
    if (!empty || i % 3) PetscCall(MatSetValue(A, i, i, 2.0 + (PetscReal)(i % 5), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatCreateVecs(A, &x, &b));
  for (PetscInt i = 0; i < n; i++) PetscCall(VecSetValue(b, i, empty && i % 3 == 0 ? 0.0 : 1.0, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(b));
  PetscCall(VecAssemblyEnd(b));
  PetscCall(Solver(A, "our_", KSPCG, PCGPUAMG, &ksp));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCheck(reason > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A diagonal matrix of %" PetscInt_FMT " rows%s: %s", n, empty ? ", some of them empty" : "", KSPConvergedReasons[reason]);
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A near null space of one vector, which has no number on the last rank */
static PetscErrorCode NearOfRanks(Mat A)
{
  Vec          v;
  MatNullSpace near;
  PetscInt     n, end, locks;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &v, NULL));
  PetscCall(VecGetSize(v, &n));
  PetscCall(VecSet(v, 1 / PetscSqrtReal((PetscReal)n)));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_FALSE, 1, &v, &near));
  PetscCall(VecGetOwnershipRange(v, NULL, &end));
  PetscCall(VecLockGet(v, &locks)); /* by the null space, in PETSc 3.24 */
  PetscCall(TestUnlock(v));
  if (end == n) PetscCall(VecSetValue(v, n - 1, NAN, INSERT_VALUES));
  PetscCall(VecAssemblyBegin(v));
  PetscCall(VecAssemblyEnd(v));
  for (; locks > 0; locks--) PetscCall(VecLockReadPush(v));
  PetscCall(MatSetNearNullSpace(A, near));
  PetscCall(MatNullSpaceDestroy(&near));
  PetscCall(VecDestroy(&v));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Refuse(const char what[])
{
  const PetscBool near = (PetscBool)!strcmp(what, "near");
  const PetscBool aij = (PetscBool)!strcmp(what, "aij"), blocks = (PetscBool)!strcmp(what, "blocks");
  Mat             A;
  PC              pc;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(near ? PETSC_COMM_WORLD : PETSC_COMM_SELF, 20, aij || blocks || near ? 20 : 24, aij, &A));
  if (blocks) PetscCall(MatSetBlockSize(A, 20));
  PetscCall(MatSetUp(A));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  if (near) PetscCall(NearOfRanks(A));
  PetscCall(PCCreate(near ? PETSC_COMM_WORLD : PETSC_COMM_SELF, &pc));
  PetscCall(PCSetType(pc, PCGPUAMG));
  PetscCall(PCSetOperators(pc, A, A));
  PetscCall(PCSetUp(pc));
  PetscCall(PCDestroy(&pc));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- near null spaces and blocks ---- */

/* Two orthogonal vectors of one size that differ on few aggregates; or shorter vectors (of another matrix), or vectors with NaN */
static PetscErrorCode NearNullSpace(Mat A, PetscBool shorter, PetscBool numbers)
{
  Vec          v[2];
  PetscInt     n, locked;
  MatNullSpace near;

  PetscFunctionBegin;
  PetscCall(MatGetSize(A, &n, NULL));
  if (shorter) n -= 2;
  for (int k = 0; k < 2; k++) {
    PetscCall(VecCreateSeq(PETSC_COMM_SELF, n, &v[k]));
    for (PetscInt i = 0; i < n; i++) PetscCall(VecSetValue(v[k], i, (k && i < n / 2 ? -1 : 1) / PetscSqrtReal((PetscReal)n), INSERT_VALUES));
    PetscCall(VecAssemblyBegin(v[k]));
    PetscCall(VecAssemblyEnd(v[k]));
  }
  PetscCall(MatNullSpaceCreate(PETSC_COMM_SELF, PETSC_FALSE, 2, v, &near));
  if (!numbers) { /* newer releases of PETSc lock the vectors of a null space */
    PetscCall(VecLockGet(v[1], &locked));
    if (locked) PetscCall(VecLockReadPop(v[1]));
    PetscCall(VecSetValue(v[1], 3, NAN, INSERT_VALUES));
    PetscCall(VecAssemblyBegin(v[1]));
    PetscCall(VecAssemblyEnd(v[1]));
    if (locked) PetscCall(VecLockReadPush(v[1]));
  }
  PetscCall(MatSetNearNullSpace(A, near));
  PetscCall(MatNullSpaceDestroy(&near));
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&v[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Vectors dependent on most aggregates, and wrong block sizes, cost iterations at most */
static PetscErrorCode Misled(const Grid *g)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    Mat      A = NULL;
    KSP      ksp;
    PetscInt its;

    PetscCall(GridCreate(g, 0, PETSC_FALSE, &A));
    if (k) PetscCall(MatSetBlockSize(A, 3));
    else PetscCall(NearNullSpace(A, PETSC_FALSE, PETSC_TRUE));
    PetscCall(Solver(A, "our_", KSPGPUCG, PCGPUAMG, &ksp));
    PetscCall(Iterations(ksp, k ? "wrong blocks" : "dependent vectors", &its));
    PetscCheck(its < 60, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " iterations", k ? "wrong blocks" : "dependent vectors", its);
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An error of the set-up with a bad near null space, and then success without it */
static PetscErrorCode NearErrors(const Grid *g)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    Mat            A = NULL;
    KSP            ksp;
    PetscInt       its;
    PetscErrorCode ierr;

    PetscCall(GridCreate(g, 0, PETSC_FALSE, &A));
    PetscCall(NearNullSpace(A, (PetscBool)!k, (PetscBool)!k));
    PetscCall(Solver(A, "our_", KSPGPUCG, PCGPUAMG, &ksp));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    ierr = KSPSetUp(ksp);
    PetscCall(PetscPopErrorHandler());
    PetscCheck(ierr == (k ? PETSC_ERR_FP : PETSC_ERR_ARG_SIZ), PETSC_COMM_SELF, PETSC_ERR_PLIB, "A near null space %s: error %d", k ? "without numbers" : "of another matrix", (int)ierr);
    PetscCall(MatSetNearNullSpace(A, NULL));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(Iterations(ksp, "after a wrong near null space", &its));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- smoothers ---- */

/* Those of blocks and of sums of sizes beside the diagonal's, in elasticity: a symmetric cycle in not many more iterations, again after new values */
static PetscErrorCode Smoothers(PetscInt k)
{
  static const char *const words[] = {"jacobi", "pbjacobi", "rowl1"};
  PetscInt                 its[3];

  PetscFunctionBegin;
  for (int w = 0; w < 3; w++) {
    Mat A;
    KSP ksp;
    PC  pc;

    PetscCall(ElasticCreate(k, 0.3, PETSC_TRUE, PETSC_FALSE, &A));
    PetscCall(PetscOptionsSetValue(NULL, "-our_pc_gpuamg_smoother", words[w]));
    PetscCall(Solver(A, "our_", KSPGPUCG, PCGPUAMG, &ksp));
    PetscCall(PetscOptionsClearValue(NULL, "-our_pc_gpuamg_smoother"));
    for (int again = 0; again < 2; again++) {
      PetscCall(Iterations(ksp, words[w], &its[w]));
      if (report) PetscCall(PetscPrintf(PETSC_COMM_SELF, "elasticity, smoother %s: %" PetscInt_FMT "\n", words[w], its[w]));
      PetscCheck(its[w] <= (13 * its[0]) / 10 + 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Smoother %s: %" PetscInt_FMT " iterations, of the diagonal %" PetscInt_FMT, words[w], its[w], its[0]);
      PetscCall(MatScale(A, 2.0));
      PetscCall(KSPSetOperators(ksp, A, A));
    }
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(Adjoint(pc, PETSC_TRUE, words[w]));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- memory ---- */

static int countdown = 0, allocations = 0; /* the missing piece of the device's memory (0: no piece), and the number of pieces */
static PetscErrorCode (*original)(size_t, PetscBool, int, const char[], const char[], void **);

/* Device memory of the host backend is allocated in its file */
static PetscErrorCode Allocate(size_t bytes, PetscBool clear, int line, const char function[], const char file[], void **p)
{
  const char *name = file ? strrchr(file, '/') : NULL;

  if (bytes && name && !strcmp(name, "/host.c") && strstr(file, "host/host.c") && ++allocations == countdown) {
    *p = NULL;
    return PETSC_ERR_MEM;
  }
  return (*original)(bytes, clear, line, function, file, p);
}

/* Any piece of memory is missing in a set-up or in a set-up with new values: an error, and the next set-up works */
static PetscErrorCode Memory(const Grid *g, PetscBool again)
{
  int      reached = 1, n = 0;
  PetscInt its = 0, most = 0;

  PetscFunctionBegin;
  for (n = 1; reached; n++) {
    Mat            A = NULL;
    KSP            ksp;
    Vec            x, b;
    PetscErrorCode ierr;

    PetscCall(GridCreate(g, 0, PETSC_FALSE, &A));
    PetscCall(Solver(A, "our_", KSPGPUCG, PCGPUAMG, &ksp));
    if (again) {
      PetscCall(KSPSetUp(ksp));
      PetscCall(GridCreate(g, 1, PETSC_FALSE, &A));
      PetscCall(KSPSetOperators(ksp, A, A));
    }
    PetscCall(MatCreateVecs(A, &x, &b)); /* the matrix itself is on the device */
    PetscCall(VecSet(x, 1.0));
    PetscCall(MatMult(A, x, b));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL));
    original      = PetscTrMalloc;
    PetscTrMalloc = Allocate;
    allocations   = 0;
    countdown     = n;
    ierr          = KSPSetUp(ksp);
    reached       = allocations >= n;
    countdown     = 0;
    PetscTrMalloc = original;
    PetscCall(PetscPopErrorHandler());
    PetscCheck(!reached || ierr == PETSC_ERR_MEM || !ierr, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Without piece %d of memory the error is %d", n, (int)ierr);
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(Iterations(ksp, "after a lack of memory", &its));
    most = PetscMax(most, its);
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
  }
  if (report) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%d pieces of memory\n", n));
  PetscCheck(n > (direct ? 2 : again ? 5 : 50) || n == 2, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%d pieces of memory", n); /* of a device none is seen here */
  PetscCheck(most == its, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%" PetscInt_FMT " iterations after a lack of memory, %" PetscInt_FMT " otherwise", most, its);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Options(const Grid *g)
{
  static const char *const sets[][2] = {
    {"-our_pc_gpuamg_threshold",             "0.02"    },
    {"-our_pc_gpuamg_agg_nsmooths",          "0"       },
    {"-our_pc_gpuamg_agg_nsmooths",          "2"       },
    {"-our_pc_gpuamg_aggressive_coarsening", "0"       },
    {"-our_pc_gpuamg_aggressive_coarsening", "2"       },
    {"-our_pc_gpuamg_coarse_eq_limit",       "400"     },
    {"-our_pc_gpuamg_max_levels",            "2"       },
    {"-our_pc_gpuamg_smoother_degree",       "3"       },
    {"-our_pc_gpuamg_cycles",                "2"       },
    {"-our_pc_gpuamg_tail",                  "0"       },
    {"-our_pc_gpuamg_mis_k",                 "2"       },
    {"-our_pc_gpuamg_smoother",              "pbjacobi"},
    {"-our_pc_gpuamg_smoother",              "rowl1"   },
    {"-our_pc_gpuamg_smoother",              "ilu"     },
    {"-our_pc_gpuamg_precision",             "single"  },
    {"-our_pc_gpuamg_precision",             "auto"    },
    {"-our_pc_gpuamg_esteig_ksp_max_it",     "5"       }
  };

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(sets); k++) {
    Mat      A = NULL;
    KSP      ksp;
    PC       pc;
    PetscInt its;

    PetscCall(PetscOptionsSetValue(NULL, sets[k][0], sets[k][1]));
    PetscCall(GridCreate(g, 0, PETSC_FALSE, &A));
    PetscCall(Solver(A, "our_", KSPGPUCG, PCGPUAMG, &ksp));
    PetscCall(PetscOptionsClearValue(NULL, sets[k][0]));
    PetscCall(Iterations(ksp, sets[k][0], &its));
    PetscCheck(its < 60, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s %s: %" PetscInt_FMT " iterations", sets[k][0], sets[k][1], its);
    if (report) PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s %s: %" PetscInt_FMT "\n", sets[k][0], sets[k][1], its));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(Adjoint(pc, PETSC_TRUE, sets[k][0]));
    PetscCall(GridCreate(g, 1, PETSC_FALSE, &A));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(Iterations(ksp, sets[k][0], &its));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const Grid grids[] = {
    {"Poisson in a plane",      {60, 55, 1},  0, {1, 1, 0},    0,   KSPCG,    KSPGPUCG,    {0}},
    {"Poisson in space",        {17, 16, 15}, 0, {1, 1, 1},    0,   KSPCG,    KSPGPUCG,    {0}},
    {"contrast e^3",            {16, 16, 16}, 3, {1, 1, 1},    0,   KSPCG,    KSPGPUCG,    {0}},
    {"contrast e^6 in a plane", {50, 50, 1},  6, {1, 1, 0},    0,   KSPCG,    KSPGPUCG,    {0}},
    {"anisotropy",              {50, 50, 1},  0, {1, 0.05, 0}, 0,   KSPCG,    KSPGPUCG,    {0}},
    {"weak entries",            {50, 50, 1},  0, {1, 1e-3, 0}, 0,   KSPCG,    KSPGPUCG,    {0}},
    {"convection",              {15, 15, 15}, 1, {1, 1, 1},    0.7, KSPGMRES, KSPGPUGMRES, {0}},
    {"convection, BiCGStab",    {15, 15, 15}, 1, {1, 1, 1},    0.7, KSPBCGS,  KSPGPUBCGS,  {0}}
  };
  static const Grid little[] = {
    {"Poisson in a plane", {16, 15, 1}, 0, {1, 1, 0},    0,   KSPCG,    KSPGPUCG,    {0}           },
    {"contrast e^3",       {9, 8, 9},   3, {1, 1, 1},    0,   KSPCG,    KSPGPUCG,    {0}           },
    {"convection",         {8, 8, 7},   1, {1, 1, 1},    0.7, KSPGMRES, KSPGPUGMRES, {0}           },
    {"weak for a while",   {16, 15, 1}, 0, {1, 1, 0},    0,   KSPCG,    KSPGPUCG,    {1, 1e-3, 0}  },
    {"another axis",       {16, 15, 1}, 0, {1, 1e-3, 0}, 0,   KSPCG,    KSPGPUCG,    {1e-3, 1e3, 0}}
  };
  static const Grid weak[] = {
    {"weak entries",          {60, 50, 1},  0, {1, 1e-3, 0}, 0, KSPCG, KSPGPUCG, {0}},
    {"contrast e^8 in space", {20, 20, 20}, 8, {1, 1, 1},    0, KSPCG, KSPGPUCG, {0}}
  };
  const Grid *g     = grids;
  size_t      n     = PETSC_STATIC_ARRAY_LENGTH(grids);
  PetscBool   small = PETSC_FALSE, set;
  char        what[16];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-small", &small, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-report", &report, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-direct", &direct, NULL));
  PetscCall(PetscOptionsHasName(NULL, "our_", "-pc_gpuamg_precision", &floats));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-refuse", what, sizeof(what), &set));
  if (set) PetscCall(Refuse(what));
  if (small) {
    g = little;
    n = PETSC_STATIC_ARRAY_LENGTH(little);
  }
  for (size_t k = 0; k < n; k++) {
    Mat A = NULL, R = NULL;

    PetscCall(GridCreate(&g[k], 0, PETSC_FALSE, &A));
    PetscCall(GridCreate(&g[k], 0, PETSC_TRUE, &R));
    PetscCall(Beside(A, R, g[k].ksp, g[k].gpuksp, g[k].name));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&R));
  }
  for (int modes = 0; modes < 2; modes++) {
    Mat A, R;

    PetscCall(ElasticCreate(small ? 8 : 24, 0.3, (PetscBool)modes, PETSC_FALSE, &A));
    PetscCall(ElasticCreate(small ? 8 : 24, 0.3, (PetscBool)modes, PETSC_TRUE, &R));
    PetscCall(Beside(A, R, KSPCG, KSPGPUCG, modes ? "elasticity with rigid motions" : "elasticity"));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&R));
  }
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(little); k++) PetscCall(Changes(&little[k]));
  PetscCall(Weak(&weak[0], 2));
  PetscCall(Weak(&weak[1], 5));
  PetscCall(Options(&little[1]));
  PetscCall(Smoothers(small ? 8 : 24));
  PetscCall(Memory(&little[1], PETSC_FALSE));
  PetscCall(Memory(&little[1], PETSC_TRUE));
  PetscCall(Bad(&little[1], 77, 0.0, "zero on the diagonal"));
  PetscCall(Bad(&little[1], 78, NAN, "a value that is no number"));
  PetscCall(Bad(&little[1], 79, INFINITY, "an infinite value"));
  PetscCall(Misled(&little[1]));
  PetscCall(NearErrors(&little[1]));
  PetscCall(Diagonal(0, PETSC_FALSE));
  PetscCall(Diagonal(1, PETSC_FALSE));
  PetscCall(Diagonal(40, PETSC_TRUE));
  PetscCall(Diagonal(1500, PETSC_FALSE));
  PetscCall(PetscFinalize());
  return 0;
}

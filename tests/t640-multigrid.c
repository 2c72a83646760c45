/*
  A cycle of multigrid on the device against PETSc's cycle of the same hierarchy. Cycles are V, W, full, additive and cascadic, with all supported smoothers; GAMG or a DMDA makes
  the hierarchy. Values, smoothers and the number of steps change. In unsupported cases PETSc's cycle must run.

  A monitor on a smoother selects PETSc's cycle, and only the smoothers of PETSc's cycle count their iterations. So the test knows which cycle ran.

  //TEST name="csr" args="-mat_gpucsr_format csr -mat_gpucsr_product_least 0"
  //TEST name="separate" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_product_least 0"
  //TEST name="late" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer {}" loop="0 7"
  //TEST name="vectors" args="-mat_gpucsr_format csr -vec_type standard"
  //TEST name="memory" gpu=0 args="-faulty -mat_gpucsr_backend auto -mat_gpucsr_format csr -gpucsr_debug_standin 1 -mat_gpucsr_memory_limit {}" loop="30000 100000 200000 300000 340000 350000 360000 400000 500000 600000"
  //TEST name="fault" gpu=0 args="-faulty -mat_gpucsr_backend auto -mat_gpucsr_format csr -gpucsr_debug_standin 1 -gpucsr_debug_fault {}" loop="memory:1 memory:3 memory:5 memory:7 memory:6:on"
  //TEST name="ranks" nsize=2 args="-t_pc_mg_gpucsr -mat_gpucsr_format csr -mat_gpucsr_product_least 0 -mat_gpucsr_halo peer"
  //TEST name="three" nsize=3 gpu=0 args="-t_pc_mg_gpucsr -mat_gpucsr_backend cuda -gpucsr_debug_standin 3 -mat_gpucsr_product_least 0 -mat_gpucsr_halo peer -t_ksp_gpucg_path graph"
  //TEST name="five" nsize=5 gpu=0 args="-t_pc_mg_gpucsr -mat_gpucsr_format csr -mat_gpucsr_halo peer -few"
  //TEST name="ranks_late" nsize=2 gpu=0 args="-t_pc_mg_gpucsr -mat_gpucsr_backend cuda -gpucsr_debug_standin 2 -mat_gpucsr_halo peer -gpucsr_debug_defer {} -few" loop="0 7"
  //TEST name="ranks_memory" nsize=2 gpu=0 args="-t_pc_mg_gpucsr -faulty -mat_gpucsr_backend auto -gpucsr_debug_standin 2 -mat_gpucsr_halo peer -gpucsr_debug_fault memory:20:on:rank=1" fails="-mat_gpucsr_halo peer: rank 1"
  //TEST name="ranks_fault" nsize=2 gpu=0 args="-t_pc_mg_gpucsr -faulty -mat_gpucsr_backend auto -gpucsr_debug_standin 2 -mat_gpucsr_halo peer -gpucsr_debug_fault {}:rank=1" loop="memory:100 memory:220 memory:300 memory:420"
  //TEST name="ranks_refused" nsize=2 args="-t_pc_mg_gpucsr -mat_gpucsr_format csr -mat_gpucsr_product_least 0 -mat_gpucsr_halo peer -refuse"
  //TEST name="staged" nsize=2 args="-mat_gpucsr_format csr -mat_gpucsr_halo staged -few -petscs"
  //TEST name="precision" args="-mat_gpucsr_format csr -mat_gpucsr_precision mixed"
*/
static char help[] = "Tests cycles of multigrid.\n";

#include "testing.h"
#include <petscdmda.h>
#include <petscksp.h>

static PetscErrorCode Nothing(KSP ksp, PetscInt n, PetscReal norm, void *ctx)
{
  PetscFunctionBegin;
  (void)ksp;
  (void)n;
  (void)norm;
  (void)ctx;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iterations that PETSc's smoothers have made so far */
static PetscErrorCode Smoothed(PC pc, PetscInt *its)
{
  PetscInt levels, one;

  PetscFunctionBegin;
  *its = 0;
  PetscCall(PCMGGetLevels(pc, &levels));
  for (PetscInt l = 1; l < levels; l++) {
    KSP smoother;

    PetscCall(PCMGGetSmoother(pc, l, &smoother));
    PetscCall(KSPGetTotalIterations(smoother, &one));
    *its += one;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What rounding may make of an entry of M b: each of the passes of a cycle adds up a row's products and scales them by M, |M| (|b| + |A| |x|) c eps with c a row's length and what the step does
  besides; coarser levels see no more than that, and the coarse solve, whose error its condition magnifies, is a small part of it. No entry is counted on by itself: bounds are of the largest.
*/
static PetscErrorCode Bound(PC pc, Vec b, Vec z, PetscInt passes, PetscReal *bound)
{
  Mat       A, B;
  Vec       t, d;
  PetscReal eps = 0, all;
  PetscInt  rs, re, most = 0;

  PetscFunctionBegin;
  PetscCall(TestEps(&eps));
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(TestAbs(A, &B));
  PetscCall(MatCreateVecs(B, &t, &d));
  PetscCall(VecCopy(z, t));
  PetscCall(VecAbs(t));
  PetscCall(MatMult(B, t, d));
  PetscCall(VecCopy(b, t));
  PetscCall(VecAbs(t));
  PetscCall(VecAXPY(d, 1.0, t));
  PetscCall(MatGetDiagonal(B, t));
  PetscCall(VecPointwiseDivide(d, d, t));
  PetscCall(VecNorm(d, NORM_INFINITY, &all));
  PetscCall(MatGetOwnershipRange(B, &rs, &re));
  for (PetscInt i = rs; i < re; i++) {
    PetscInt length;

    PetscCall(MatGetRow(B, i, &length, NULL, NULL));
    most = PetscMax(most, length);
    PetscCall(MatRestoreRow(B, i, &length, NULL, NULL));
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPIU_INT, MPI_MAX, PETSC_COMM_WORLD));
  *bound = eps * (PetscReal)passes * (PetscReal)(most + 8) * all;
  PetscCall(VecDestroy(&t));
  PetscCall(VecDestroy(&d));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Bounds hold if smoothers dampen errors. For an indefinite matrix smoothers enlarge errors, and two cycles with different orders of sums may differ
  by more than the bound. So PETSc's cycle of b with changed last bits must be near z, PETSc's cycle of b
*/
static PetscErrorCode Steady(PC pc, Vec b, Vec z, PetscReal bound, const char where[])
{
  Vec          near, y;
  PetscScalar *a;
  PetscInt     n, first;
  PetscReal    norm;

  PetscFunctionBegin;
  PetscCall(VecDuplicate(b, &near));
  PetscCall(VecDuplicate(z, &y));
  PetscCall(VecCopy(b, near));
  PetscCall(VecGetLocalSize(near, &n));
  PetscCall(VecGetOwnershipRange(near, &first, NULL));
  PetscCall(VecGetArray(near, &a));
  for (PetscInt i = 0; i < n; i++) a[i] *= 1 + PETSC_MACHINE_EPSILON * ZooReal(first + i, 0, 77);
  PetscCall(VecRestoreArray(near, &a));
  PetscCall(PCApply(pc, near, y));
  PetscCall(VecAXPY(y, -1.0, z));
  PetscCall(VecNorm(y, NORM_INFINITY, &norm));
  PetscCheck(norm <= 0.05 * bound, PETSC_COMM_SELF, PETSC_ERR_PLIB, "no case to compare cycles by: %s, where PETSc's of b, last bits changed, differ by %g, and rounding may make %g in all", where, (double)norm, (double)bound);
  PetscCall(VecDestroy(&near));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One application of the library's cycle and one of PETSc's; ours: whether the library's cycle must run */
static PetscErrorCode Compare(PC pc, PetscInt seed, PetscBool ours, const char where[])
{
  Mat       A;
  Vec       b, z[2], r;
  KSP       smoother;
  PetscInt  before, after, levels;
  PetscReal bound = 0, norm;

  PetscFunctionBegin;
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(MatCreateVecs(A, &z[0], &b));
  PetscCall(VecDuplicate(z[0], &z[1]));
  PetscCall(VecDuplicate(z[0], &r));
  PetscCall(TestFill(b, seed, PETSC_FALSE));
  PetscCall(PCSetUp(pc));
  PetscCall(PCMGGetLevels(pc, &levels));
  for (int again = 0; again < 2; again++) { /* the second may be a recorded one */
    PetscCall(Smoothed(pc, &before));
    PetscCall(PCApply(pc, b, z[0]));
    PetscCall(Smoothed(pc, &after));
    PetscCheck((after == before) == ours, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the cycle of %s is %s", where, ours ? "PETSc's" : "ours");
    PetscCall(VecScale(b, -2.0));
  }
  PetscCall(VecScale(b, -0.5));
  PetscCall(PCMGGetSmoother(pc, 1, &smoother));
  PetscCall(KSPMonitorSet(smoother, Nothing, NULL, NULL));
  PetscCall(Smoothed(pc, &before));
  PetscCall(PCApply(pc, b, z[1]));
  PetscCall(Smoothed(pc, &after));
  PetscCheck(after > before, PETSC_COMM_SELF, PETSC_ERR_PLIB, "a cycle of ours in spite of a monitor: %s", where);
  PetscCall(Bound(pc, b, z[1], 4 * levels * 8, &bound));
  PetscCall(Steady(pc, b, z[1], bound, where));
  PetscCall(KSPMonitorCancel(smoother));
  PetscCall(VecWAXPY(r, -1.0, z[1], z[0]));
  PetscCall(VecNorm(r, NORM_INFINITY, &norm));
  if (!(norm <= bound)) {
    PetscReal size;

    PetscCall(VecNorm(z[1], NORM_INFINITY, &size));
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_PLIB, "cycles of %s differ by %g of %g, rounding may make %g", where, (double)norm, (double)size, (double)bound);
  }
  for (int k = 0; k < 2; k++) PetscCall(VecDestroy(&z[k]));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* 5 points on a DMDA, with bs unknowns a point; pass: other values. Symmetric where bs is 1; each diagonal entry is larger than all others of its row, or rounding would grow (Steady()) */
static PetscErrorCode Fill(DM da, PetscInt bs, PetscInt pass, Mat A)
{
  DMDALocalInfo info;

  PetscFunctionBegin;
  PetscCall(DMDAGetLocalInfo(da, &info));
  PetscCall(MatZeroEntries(A));
  for (PetscInt j = info.ys; j < info.ys + info.ym; j++)
    for (PetscInt i = info.xs; i < info.xs + info.xm; i++)
      for (PetscInt c = 0; c < bs; c++) {
        const PetscInt step[4][2] = {
          {-1, 0 },
          {1,  0 },
          {0,  -1},
          {0,  1 }
        };
        MatStencil  row, col[8];
        PetscScalar v[8], diagonal = 0.01;
        PetscInt    n = 0;

        row.i = i, row.j = j, row.k = 0, row.c = c;
        for (int q = 0; q < 4; q++) {
          const PetscInt  x = i + step[q][0], y = j + step[q][1];
          const PetscReal w = 1 + 0.5 * ZooReal(i + x, j + y, 31 + pass); /* of the edge: symmetric */

          diagonal += w;
          if (x < 0 || y < 0 || x >= info.mx || y >= info.my) continue;
          col[n].i = x, col[n].j = y, col[n].k = 0, col[n].c = c;
          v[n++] = -w;
        }
        for (PetscInt k = 0; k < bs; k++) diagonal += k == c ? 0 : 0.1 * (double)(k + 1);
        for (PetscInt k = 0; k < bs; k++) {
          col[n]   = row;
          col[n].c = k;
          v[n++]   = k == c ? diagonal : (PetscScalar)(0.1 * (double)(k + 1));
        }
        PetscCall(MatSetValuesStencil(A, 1, &row, n, col, v, INSERT_VALUES));
      }
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The norms of CG with the library's cycle between its steps, whose last product takes the sums, equal the norms of PETSc's CG up to the rounding of sums */
static PetscErrorCode SameNorms(KSP ksp, PetscInt rows, PetscReal norms[], PetscInt *n, PetscBool first, const char where[])
{
  const PetscReal *a;
  PetscInt         na;

  PetscFunctionBegin;
  PetscCall(KSPGetResidualHistory(ksp, &a, &na));
  if (first) {
    *n = PetscMin(na, 101);
    PetscCall(PetscArraycpy(norms, a, *n));
  }
  for (PetscInt k = 0; k < PetscMin(na, *n); k++) {
    const PetscReal bound = (PetscReal)rows * PETSC_MACHINE_EPSILON * norms[0];

    PetscCheck(PetscAbsReal(a[k] - norms[k]) <= bound, PETSC_COMM_SELF, PETSC_ERR_PLIB, "with %s norm %" PetscInt_FMT " is %.17g, not %.17g", where, k, (double)a[k], (double)norms[k]);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* CG with either cycle, and the library's methods with its cycle between their steps: the same number of iterations */
static PetscErrorCode Solve(KSP ksp, const char where[])
{
  static const KSPType methods[] = {KSPCG, KSPCG, "gpucg", KSPBCGS, KSPBCGS, "gpubcgs", KSPGMRES, KSPGMRES, "gpugmres"};
  Mat                  A;
  PC                   pc;
  Vec                  x, b;
  KSP                  smoother;
  PetscInt             its = 0, n, before, after, rows, recorded = 0;
  PetscReal            norms[101];
  KSPConvergedReason   reason;

  PetscFunctionBegin;
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCGetOperators(pc, &A, NULL));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 11, PETSC_FALSE));
  PetscCall(VecGetSize(b, &rows));
  PetscCall(KSPSetResidualHistory(ksp, NULL, 101, PETSC_TRUE));
  PetscCall(PCMGGetSmoother(pc, 1, &smoother));
  for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(methods); q++) {
    PetscCall(KSPSetType(ksp, methods[q]));
    PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 100));
    if (q % 3 == 0) PetscCall(KSPMonitorSet(smoother, Nothing, NULL, NULL));
    PetscCall(Smoothed(pc, &before));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(Smoothed(pc, &after));
    PetscCall(KSPMonitorCancel(smoother));
    PetscCheck((after > before) == (q % 3 == 0), PETSC_COMM_SELF, PETSC_ERR_PLIB, "with %s, %s with the other's cycle", where, methods[q]);
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCall(KSPGetIterationNumber(ksp, &n));
    PetscCheck(reason > 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "with %s, %s says %s", where, methods[q], KSPConvergedReasons[reason]);
    if (q % 3 == 0) its = n;
    if (q == 1 || q == 2) PetscCall(SameNorms(ksp, rows, norms, &recorded, (PetscBool)(q == 1), where));
    PetscCheck(PetscAbsInt(n - its) <= (q < 3 ? 0 : 1), PETSC_COMM_SELF, PETSC_ERR_PLIB, "with %s, %s takes %" PetscInt_FMT " iterations, with PETSc's cycle %" PetscInt_FMT, where, methods[q], n, its);
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A hierarchy of a DMDA, or GAMG's, by options; then it changes */
static PetscErrorCode Case(PetscInt k, PetscInt bs, PetscBool gamg, const char options[], PetscBool ours)
{
  DM   da;
  Mat  A;
  KSP  ksp, smoother;
  PC   pc;
  char mtype[64];

  PetscFunctionBegin;

  PetscCall(PetscOptionsInsertString(NULL, options));
  PetscCall(TestType(mtype, sizeof(mtype)));
  PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, k, k, PETSC_DECIDE, PETSC_DECIDE, bs, 1, NULL, NULL, &da));
  PetscCall(DMSetMatType(da, mtype));
  PetscCall(DMSetUp(da));
  PetscCall(DMCreateMatrix(da, &A));
  PetscCall(Fill(da, bs, 0, A));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOptionsPrefix(ksp, "t_"));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, gamg ? PCGAMG : PCMG));
  if (!gamg) {
    PetscCall(KSPSetDM(ksp, da));
    PetscCall(KSPSetDMActive(ksp, PETSC_FALSE));
    PetscCall(PCMGSetLevels(pc, 3, NULL));
    PetscCall(PCMGSetGalerkin(pc, PC_MG_GALERKIN_BOTH));
  }
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(Compare(pc, 3, ours, options));
  PetscCall(Fill(da, bs, 1, A));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(Compare(pc, 4, ours, "new values"));
  if (ours) { /* one more step, known to the smoother alone */
    PetscReal rtol, atol, dtol;
    PetscInt  its;
    PetscBool same;

    PetscCall(PCMGGetSmoother(pc, 1, &smoother));
    PetscCall(KSPGetTolerances(smoother, &rtol, &atol, &dtol, &its));
    PetscCall(KSPSetTolerances(smoother, rtol, atol, dtol, its + 1));
    PetscCall(Compare(pc, 5, ours, "one more step"));
    PetscCall(PetscObjectTypeCompare((PetscObject)smoother, KSPCHEBYSHEV, &same));
    if (same) PetscCall(KSPChebyshevSetEigenvalues(smoother, 1.7, 0.3));
    PetscCall(Compare(pc, 6, ours, "other eigenvalues"));
  }
  if (ours && bs == 1 && (gamg || k == 33)) PetscCall(Solve(ksp, options));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(DMDestroy(&da));
  for (const char *word = options; word; word = strchr(word, '-')) { /* the case's options must not reach the next case */
    char name[128];

    if (sscanf(word, "%127s", name) == 1 && name[0] == '-' && name[1] == 't' && name[2] == '_') PetscCall(PetscOptionsClearValue(NULL, name));
    word++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode (*diagonal)(Mat, Vec) = NULL;
static PetscBool refuses                    = PETSC_FALSE;

/* The diagonal, but for once on the last rank */
static PetscErrorCode Refuse(Mat A, Vec d)
{
  PetscMPIInt rank, size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (rank < size - 1) refuses = PETSC_FALSE;
  if (refuses) {
    refuses = PETSC_FALSE;
    SETERRQ(PETSC_COMM_SELF, PETSC_ERR_GPU, "This diagonal is refused once");
  }
  PetscCall((*diagonal)(A, d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* If one rank cannot have the numbers of a smoother, all ranks go on with PETSc's cycles */
static PetscErrorCode Refused(void)
{
  Mat                A;
  Vec                x, b;
  KSP                ksp;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  if (PETSC_VERSION_GE(3, 24, 0)) PetscCall(TestSkip("PETSc 3.24 cannot reset a PCJACOBI whose set-up has failed: it unlocks a vector that it had not locked"));
  PetscCall(PetscOptionsInsertString(NULL, "-t_ksp_type cg -t_pc_type gamg -t_mg_levels_ksp_type richardson -t_mg_levels_ksp_richardson_scale 0.7 -t_mg_levels_pc_type jacobi"));
  PetscCall(TestConvection(PETSC_COMM_WORLD, 30, 0.0, PETSC_FALSE, &A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 5, PETSC_FALSE));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOptionsPrefix(ksp, "t_"));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetUp(ksp));
  PetscCall(MatGetOperation(A, MATOP_GET_DIAGONAL, (void (**)(void)) & diagonal));
  PetscCall(MatSetOperation(A, MATOP_GET_DIAGONAL, (void (*)(void))Refuse));
  refuses = PETSC_TRUE;
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCheck(reason > 0 && !refuses, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, %s", KSPConvergedReasons[reason], refuses ? "nobody asked for the diagonal" : "the diagonal was refused");
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Whatever the device does, or fails to do, the solution is one */
static PetscErrorCode Faulty(PetscInt k, const KSPType method)
{
  Mat                A, R;
  Vec                x, b, r;
  KSP                ksp;
  PC                 pc;
  PetscReal          norm[2];
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(TestConvection(PETSC_COMM_WORLD, k, 0.0, PETSC_FALSE, &A));
  PetscCall(TestConvection(PETSC_COMM_WORLD, k, 0.0, PETSC_TRUE, &R));
  PetscCall(MatCreateVecs(R, &x, &b));
  PetscCall(VecDuplicate(x, &r));
  PetscCall(TestFill(b, 5, PETSC_FALSE));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOptionsPrefix(ksp, "t_")); /* -t_pc_mg_gpucsr */
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, method));
  PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 100));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCGAMG));
  for (int pass = 0; pass < 3; pass++) {
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPGetConvergedReason(ksp, &reason));
    PetscCall(MatMult(R, x, r));
    PetscCall(VecAYPX(r, -1.0, b));
    PetscCall(VecNorm(r, NORM_2, &norm[0]));
    PetscCall(VecNorm(b, NORM_2, &norm[1]));
    PetscCheck(reason > 0 && norm[0] <= 1e-6 * norm[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s, pass %d: %s with residual %g of %g", method, pass, KSPConvergedReasons[reason], (double)norm[0], (double)norm[1]);
    PetscCall(MatScale(A, 2.0));
    PetscCall(MatScale(R, 2.0));
    PetscCall(KSPSetOperators(ksp, A, A));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define JACOBI "-t_mg_levels_pc_type jacobi "
#define BLOCKS "-t_mg_levels_sub_mat_gpucsr_solve_kernel syncfree -t_mg_coarse_sub_mat_gpucsr_solve_kernel syncfree -t_mg_levels_pc_type bjacobi "

int main(int argc, char **argv)
{
  static const char *const dmda[] = {
    JACOBI,
    JACOBI "-t_pc_mg_cycle_type w",
    JACOBI "-t_pc_mg_gpucsr_tail 0",
    JACOBI "-t_pc_mg_gpucsr_tail 100 -t_pc_mg_cycle_type w",
    JACOBI "-t_pc_mg_type full",
    JACOBI "-t_pc_mg_type additive",
    JACOBI "-t_pc_mg_type kaskade",
    JACOBI "-t_pc_mg_multiplicative_cycles 3",
    JACOBI "-t_pc_mg_distinct_smoothup -t_mg_levels_up_pc_type jacobi -t_mg_levels_up_ksp_max_it 3",
    JACOBI "-t_pc_mg_distinct_smoothup -t_mg_levels_up_pc_type jacobi -t_mg_levels_up_ksp_max_it 0",
    JACOBI "-t_mg_levels_ksp_max_it 1",
    JACOBI "-t_mg_levels_ksp_max_it 7",
    JACOBI "-t_mg_levels_ksp_type richardson -t_mg_levels_ksp_richardson_scale 0.7",
    JACOBI "-t_mg_coarse_ksp_type chebyshev -t_mg_coarse_pc_type jacobi -t_mg_coarse_ksp_max_it 9 -t_mg_coarse_ksp_norm_type none -t_mg_coarse_ksp_convergence_test skip",
    JACOBI "-t_mg_coarse_ksp_type chebyshev -t_mg_coarse_pc_type jacobi -t_mg_coarse_ksp_max_it 9 -t_mg_coarse_ksp_norm_type none -t_mg_coarse_ksp_convergence_test skip -t_pc_mg_gpucsr_tail 0",
    JACOBI "-t_mg_coarse_pc_type svd",
    JACOBI "-t_mg_levels_pc_jacobi_type rowmax",
    "-t_mg_levels_pc_type none -t_mg_levels_ksp_type richardson -t_mg_levels_ksp_richardson_scale 0.1",
    "-t_mg_levels_pc_type pbjacobi",
    BLOCKS,
    BLOCKS "-t_mg_levels_ksp_type richardson -t_pc_mg_cycle_type w",
    BLOCKS "-t_pc_mg_type full -t_mg_levels_sub_pc_type icc",
    BLOCKS "-t_pc_mg_type additive",
    BLOCKS "-t_pc_mg_distinct_smoothup -t_mg_levels_up_pc_type jacobi -t_mg_levels_up_ksp_max_it 3",
    BLOCKS "-t_mg_coarse_ksp_type chebyshev -t_mg_coarse_pc_type bjacobi -t_mg_coarse_ksp_max_it 9 -t_mg_coarse_ksp_norm_type none -t_mg_coarse_ksp_convergence_test skip",
  };
  static const char *const petsc[] = {
    "-t_mg_levels_pc_type sor",
    JACOBI "-t_mg_levels_1_ksp_type gmres",
    JACOBI "-t_mg_levels_ksp_norm_type unpreconditioned -t_mg_levels_ksp_convergence_test default",
    JACOBI "-t_mg_levels_ksp_type richardson -t_mg_levels_ksp_richardson_self_scale",
    JACOBI "-t_mg_coarse_ksp_type cg -t_mg_coarse_pc_type jacobi",
  };

  PetscBool faulty, few, ours, refuse;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-faulty", &faulty));
  if (faulty) {
    PetscCall(Faulty(30, KSPCG));
    PetscCall(Faulty(30, "gpucg"));
    PetscCall(PetscFinalize());
    return 0;
  }
  PetscCall(PetscOptionsHasName(NULL, NULL, "-refuse", &refuse));
  if (refuse) {
    PetscCall(Refused());
    PetscCall(PetscFinalize());
    return 0;
  }
  PetscCall(PetscOptionsHasName(NULL, NULL, "-few", &few));
  PetscCall(PetscOptionsHasName(NULL, NULL, "-petscs", &ours)); /* cycles that must be PETSc's */
  ours = (PetscBool)!ours;
  if (few) {
    PetscCall(Case(25, 1, PETSC_FALSE, JACOBI, ours));
    PetscCall(Case(40, 1, PETSC_TRUE, "-t_pc_type gamg", ours));
    PetscCall(Case(40, 1, PETSC_TRUE, "-t_pc_type gamg -t_pc_mg_gpucsr_tail 0", ours));
    PetscCall(Case(40, 1, PETSC_TRUE, "-t_pc_type gamg -t_pc_mg_gpucsr_tail 10", ours));
    PetscCall(PetscFinalize());
    return 0;
  }
  for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(dmda); q++) PetscCall(Case(25, 1, PETSC_FALSE, dmda[q], PETSC_TRUE));
  PetscCall(Case(17, 3, PETSC_FALSE, "-t_mg_levels_pc_type pbjacobi ", PETSC_TRUE));
  for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(petsc); q++) PetscCall(Case(13, 1, PETSC_FALSE, petsc[q], PETSC_FALSE));
  PetscCall(Case(33, 1, PETSC_FALSE, JACOBI, PETSC_TRUE));
  PetscCall(Case(40, 1, PETSC_TRUE, "-t_pc_type gamg", PETSC_TRUE));
  PetscCall(Case(40, 1, PETSC_TRUE, "-t_pc_type gamg -t_pc_mg_cycle_type w", PETSC_TRUE));
  PetscCall(Case(30, 2, PETSC_TRUE, "-t_pc_type gamg -t_mg_levels_pc_type pbjacobi", PETSC_TRUE));
  PetscCall(PetscFinalize());
  return 0;
}

/*
  GAMG of a matrix of the type under test against MATAIJ's: the same levels, the same number of iterations, an equally good solution; for several problems and options, and
  with new values, with the interpolation reused and recomputed. The aggregates of both coarseners are PETSc's.

  //TEST name="csr" args="-mat_gpucsr_format csr -mat_gpucsr_product_least 0"
  //TEST name="vectors" args="-mat_gpucsr_format csr -mat_gpucsr_product_least 0 -vec_type gpu -vec_gpu_separate"
  //TEST name="levels" args="-mat_gpucsr_format csr -mat_gpucsr_product_least 0 -gamg {}" loop="pc_gamg_aggressive_coarsening=1 pc_gamg_aggressive_coarsening=2 pc_gamg_threshold=0.05 pc_gamg_threshold=0 pc_gamg_agg_nsmooths=0 pc_gamg_agg_nsmooths=2 mat_coarsen_type=mis mat_coarsen_type=hem mat_coarsen_misk_distance=3 pc_gamg_aggressive_mis_k=3 pc_gamg_aggressive_square_graph=0 pc_gamg_mis_k_minimum_degree_ordering=1 pc_gamg_reuse_interpolation=1 pc_gamg_square_graph=1"
  //TEST name="limit" args="-mat_gpucsr_backend auto -mat_gpucsr_format csr -mat_gpucsr_product_least 0 -mat_gpucsr_memory_limit {}" loop="100000 400000 1000000"
  //TEST name="least" args="-mat_gpucsr_format csr -mat_gpucsr_product_least 5000"
  //TEST name="ranks" nsize=2 args="-mat_gpucsr_format csr -mat_gpucsr_product_least 0"
*/
static char help[] = "Tests GAMG.\n";

#include "testing.h"
#include <petsc/private/matimpl.h> /* lists of a coarsener */

/* k x k x k points: coefficients of contrast e^c; nonsymmetric: with convection, and no option that sets symmetry. pass: other values */
static PetscErrorCode Box(MPI_Comm comm, PetscInt k, PetscReal contrast, PetscReal convection, PetscInt pass, PetscBool ref, Mat *A)
{
  const PetscInt m = k * k * k;
  PetscInt       rs, re;

  PetscFunctionBegin;
  if (!*A) {
    PetscCall(TestMatCreate(comm, m, m, ref, A));
    PetscCall(MatSeqAIJSetPreallocation(*A, 7, NULL));
    PetscCall(MatMPIAIJSetPreallocation(*A, 7, NULL, 4, NULL));
  }
  PetscCall(MatGetOwnershipRange(*A, &rs, &re));
  for (PetscInt v = rs; v < re; v++) {
    const PetscInt x[3] = {v % k, v / k % k, v / (k * k)}, step[3] = {1, k, k * k};
    PetscScalar    diagonal = 0;

    for (int d = 0; d < 3; d++) {
      for (int side = -1; side <= 1; side += 2) {
        const PetscInt    u   = v + side * step[d];
        const PetscReal   w   = PetscExpReal(contrast * (ZooReal(PetscMin(u, v), 3 * PetscMax(u, v) + d, 17 + pass) - 0.5)) + (d == 0 && side < 0 ? convection : 0.0);
        const PetscScalar off = -w;

        diagonal += w;
        if (x[d] + side < 0 || x[d] + side >= k) continue;
        PetscCall(MatSetValues(*A, 1, &v, 1, &u, &off, INSERT_VALUES));
      }
    }
    PetscCall(MatSetValues(*A, 1, &v, 1, &v, &diagonal, INSERT_VALUES));
  }
  PetscCall(MatAssemblyBegin(*A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each entry becomes a block of 3 x 3: blocks that do not commute, so that no unknown goes by itself */
static PetscErrorCode Blocks(PetscBool ref, Mat *A)
{
  Mat                B;
  PetscInt           n;
  const PetscInt    *cols;
  const PetscScalar *v;

  PetscFunctionBegin;
  PetscCall(MatGetSize(*A, &n, NULL));
  PetscCall(TestMatCreate(PETSC_COMM_SELF, 3 * n, 3 * n, ref, &B));
  PetscCall(MatSetBlockSize(B, 3));
  PetscCall(MatSeqAIJSetPreallocation(B, 21, NULL));
  for (PetscInt r = 0; r < n; r++) {
    PetscInt ncols;

    PetscCall(MatGetRow(*A, r, &ncols, &cols, &v));
    for (PetscInt k = 0; k < ncols; k++) {
      const PetscReal   e        = 0.1 * ZooReal(PetscMin(r, cols[k]), PetscMax(r, cols[k]), 23);
      const PetscScalar block[9] = {v[k], e * v[k], 0.1 * v[k], e * v[k], v[k], 0, 0.1 * v[k], 0, v[k]};
      const PetscInt    row[3] = {3 * r, 3 * r + 1, 3 * r + 2}, col[3] = {3 * cols[k], 3 * cols[k] + 1, 3 * cols[k] + 2};

      PetscCall(MatSetValues(B, 3, row, 3, col, block, INSERT_VALUES));
    }
    PetscCall(MatRestoreRow(*A, r, &ncols, &cols, &v));
  }
  PetscCall(MatAssemblyBegin(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(B, MAT_FINAL_ASSEMBLY));
  PetscCall(MatShift(B, 1.0));
  PetscCall(MatDestroy(A));
  *A = B;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Some rows have only their diagonal, and one column only its own */
static PetscErrorCode Alone(Mat A)
{
  PetscInt rows[3] = {5, 77, 300};

  PetscFunctionBegin;
  PetscCall(MatSetOption(A, MAT_KEEP_NONZERO_PATTERN, PETSC_FALSE));
  PetscCall(MatZeroRowsColumns(A, 3, rows, 2.0, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  PetscInt  levels, its, n[20];
  PetscReal nonzeros[20], error;
} Outcome;

static PetscErrorCode Measure(KSP ksp, Mat R, Vec b, Vec x, Outcome *o)
{
  PC        pc;
  Vec       r;
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetIterationNumber(ksp, &o->its));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCMGGetLevels(pc, &o->levels));
  PetscCheck(o->levels > 1 && o->levels < 20, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%" PetscInt_FMT " levels", o->levels);
  for (PetscInt l = 0; l < o->levels; l++) {
    KSP     smoother;
    Mat     A;
    MatInfo info;

    PetscCall(PCMGGetSmoother(pc, l, &smoother));
    PetscCall(KSPGetOperators(smoother, &A, NULL));
    PetscCall(MatGetSize(A, &o->n[l], NULL));
    PetscCall(MatGetInfo(A, MAT_GLOBAL_SUM, &info));
    o->nonzeros[l] = info.nz_used;
  }
  PetscCall(VecDuplicate(b, &r));
  PetscCall(MatMult(R, x, r));
  PetscCall(VecAYPX(r, -1.0, b));
  PetscCall(VecNorm(r, NORM_2, &norm));
  PetscCall(VecNorm(b, NORM_2, &o->error));
  o->error = norm / o->error;
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Compare(const Outcome *o, const Outcome *r, const char where[])
{
  PetscFunctionBegin;
  PetscCheck(o->levels == r->levels, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " levels, MATAIJ has %" PetscInt_FMT, where, o->levels, r->levels);
  for (PetscInt l = 0; l < o->levels; l++)
    PetscCheck(o->n[l] == r->n[l] && o->nonzeros[l] == r->nonzeros[l], PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: level %" PetscInt_FMT " has %" PetscInt_FMT " rows and %g nonzeros, MATAIJ's %" PetscInt_FMT " and %g", where, l, o->n[l], (double)o->nonzeros[l], r->n[l],
               (double)r->nonzeros[l]);
  PetscCheck(PetscAbsInt(o->its - r->its) <= 1, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " iterations, MATAIJ takes %" PetscInt_FMT, where, o->its, r->its);
  PetscCheck(o->error < 2 * r->error + 1e-12 || o->error < 1e-7, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: residual %g, MATAIJ's %g", where, (double)o->error, (double)r->error);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Case(PetscInt k, PetscReal contrast, PetscReal convection, PetscBool symmetric, PetscBool alone, PetscBool blocks, const char where[])
{
  Mat A[2] = {NULL, NULL};
  KSP ksp[2];
  Vec x[2], b[2];

  PetscFunctionBegin;
  for (int ref = 0; ref < 2; ref++) {
    PC pc;

    PetscCall(Box(PETSC_COMM_WORLD, k, contrast, convection, 0, (PetscBool)ref, &A[ref]));
    if (symmetric) PetscCall(MatSetOption(A[ref], MAT_SPD, PETSC_TRUE));
    if (alone) PetscCall(Alone(A[ref]));
    if (blocks) PetscCall(Blocks((PetscBool)ref, &A[ref]));
    if (blocks && symmetric) PetscCall(MatSetOption(A[ref], MAT_SPD, PETSC_TRUE));
    PetscCall(MatCreateVecs(A[ref], &x[ref], &b[ref]));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp[ref]));
    PetscCall(KSPSetOperators(ksp[ref], A[ref], A[ref]));
    PetscCall(KSPSetType(ksp[ref], symmetric ? KSPCG : KSPGMRES));
    PetscCall(KSPSetTolerances(ksp[ref], 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 200));
    PetscCall(KSPGetPC(ksp[ref], &pc));
    PetscCall(PCSetType(pc, PCGAMG));
    PetscCall(KSPSetFromOptions(ksp[ref]));
  }
  for (PetscInt pass = 0; pass < 3; pass++) {
    Outcome o[2];

    for (int ref = 0; ref < 2; ref++) {
      if (pass && !alone && !blocks) PetscCall(Box(PETSC_COMM_WORLD, k, contrast, convection, pass, (PetscBool)ref, &A[ref]));
      if (pass && (alone || blocks)) PetscCall(MatScale(A[ref], 3.0));
      PetscCall(KSPSetOperators(ksp[ref], A[ref], A[ref]));
      PetscCall(Measure(ksp[ref], A[ref], b[ref], x[ref], &o[ref]));
    }
    PetscCall(Compare(&o[0], &o[1], where));
  }
  for (int ref = 0; ref < 2; ref++) {
    PetscCall(KSPDestroy(&ksp[ref]));
    PetscCall(VecDestroy(&x[ref]));
    PetscCall(VecDestroy(&b[ref]));
    PetscCall(MatDestroy(&A[ref]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An unsmoothed interpolation is the tentative one: the same numbers up to rounding. vector: of the near null space has both signs */
static PetscErrorCode Tentative(PetscInt k, PetscBool alone, PetscBool vector, const char where[])
{
  Mat      A[2] = {NULL, NULL};
  PC       pc[2];
  PetscInt n;

  PetscFunctionBegin;
  for (int ref = 0; ref < 2; ref++) {
    PetscCall(Box(PETSC_COMM_WORLD, k, 1.0, 0.0, 0, (PetscBool)ref, &A[ref]));
    PetscCall(MatGetLocalSize(A[ref], &n, NULL));
    PetscCall(MatSetOption(A[ref], MAT_SPD, PETSC_TRUE));
    if (alone) PetscCall(Alone(A[ref]));
    if (vector) {
      Vec          v;
      MatNullSpace near;

      PetscCall(VecCreateMPI(PETSC_COMM_WORLD, n, PETSC_DETERMINE, &v));
      PetscCall(TestFill(v, 11, PETSC_FALSE));
      PetscCall(VecNormalize(v, NULL));
      PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_FALSE, 1, &v, &near));
      PetscCall(MatSetNearNullSpace(A[ref], near));
      PetscCall(MatNullSpaceDestroy(&near));
      PetscCall(VecDestroy(&v));
    }
    PetscCall(PCCreate(PETSC_COMM_WORLD, &pc[ref]));
    PetscCall(PCSetOperators(pc[ref], A[ref], A[ref]));
    PetscCall(PCSetType(pc[ref], PCGAMG));
    PetscCall(PCGAMGSetNSmooths(pc[ref], 0));
    PetscCall(PCSetUp(pc[ref]));
  }
  for (PetscInt l = 1, levels;; l++) {
    Mat P[2], B;
    Vec s[2], z[2], bound;

    PetscCall(PCMGGetLevels(pc[1], &levels));
    if (l == levels) break;
    for (int ref = 0; ref < 2; ref++) {
      PetscCall(PCMGGetInterpolation(pc[ref], l, &P[ref]));
      PetscCall(MatCreateVecs(P[ref], &s[ref], &z[ref]));
      PetscCall(TestFill(s[ref], l, PETSC_FALSE));
      PetscCall(MatMult(P[ref], s[ref], z[ref]));
    }
    PetscCall(TestAbs(P[1], &B));
    PetscCall(VecDuplicate(z[1], &bound));
    PetscCall(VecAbs(s[1]));
    PetscCall(MatMult(B, s[1], bound));
    PetscCall(TestClose(z[0], z[1], bound, "the tentative interpolation", where));
    PetscCall(MatDestroy(&B));
    PetscCall(VecDestroy(&bound));
    for (int ref = 0; ref < 2; ref++) {
      PetscCall(VecDestroy(&s[ref]));
      PetscCall(VecDestroy(&z[ref]));
    }
  }
  for (int ref = 0; ref < 2; ref++) {
    PetscCall(PCDestroy(&pc[ref]));
    PetscCall(MatDestroy(&A[ref]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A coarsener's lists are PETSc's, entry by entry: of one that a program makes itself, for each distance. ordered: backwards, else by number */
static PetscErrorCode Coarsener(PetscInt k, PetscInt distance, PetscBool ordered)
{
  Mat               A[2] = {NULL, NULL};
  PetscCoarsenData *lists[2];
  PetscInt          n = k * k * k, members = 0;
  IS                order;

  PetscFunctionBegin;
  PetscCall(ISCreateStride(PETSC_COMM_SELF, n, ordered ? n - 1 : 0, ordered ? -1 : 1, &order));
  for (int ref = 0; ref < 2; ref++) {
    MatCoarsen coarse;

    PetscCall(Box(PETSC_COMM_SELF, k, 1.0, 0.0, 0, (PetscBool)ref, &A[ref]));
    PetscCall(MatSetOption(A[ref], MAT_SYMMETRIC, PETSC_TRUE));
    PetscCall(MatCoarsenCreate(PETSC_COMM_SELF, &coarse));
    PetscCall(MatCoarsenSetType(coarse, distance ? MATCOARSENMISK : MATCOARSENMIS));
    PetscCall(MatCoarsenSetAdjacency(coarse, A[ref]));
    PetscCall(MatCoarsenSetStrictAggs(coarse, PETSC_TRUE));
    PetscCall(MatCoarsenSetGreedyOrdering(coarse, order));
    if (distance) PetscCall(MatCoarsenMISKSetDistance(coarse, distance));
    PetscCall(MatCoarsenApply(coarse));
    PetscCall(MatCoarsenGetData(coarse, &lists[ref]));
    PetscCall(MatCoarsenDestroy(&coarse));
  }
  for (PetscInt p = 0; p < n; p++) {
    PetscCDIntNd *node[2];

    for (int ref = 0; ref < 2; ref++) PetscCall(PetscCDGetHeadPos(lists[ref], p, &node[ref]));
    while (node[0] && node[1]) {
      PetscInt id[2];

      for (int ref = 0; ref < 2; ref++) {
        PetscCall(PetscCDIntNdGetID(node[ref], &id[ref]));
        PetscCall(PetscCDGetNextPos(lists[ref], p, &node[ref]));
      }
      PetscCheck(id[0] == id[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "Distance %" PetscInt_FMT ": list %" PetscInt_FMT " has %" PetscInt_FMT ", PETSc's %" PetscInt_FMT, distance, p, id[0], id[1]);
      members++;
    }
    PetscCheck(!node[0] && !node[1], PETSC_COMM_SELF, PETSC_ERR_PLIB, "Distance %" PetscInt_FMT ": list %" PetscInt_FMT " is %s than PETSc's", distance, p, node[0] ? "longer" : "shorter");
  }
  PetscCheck(members == n, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Distance %" PetscInt_FMT ": %" PetscInt_FMT " vertices of %" PetscInt_FMT " are in lists", distance, members, n);
  for (int ref = 0; ref < 2; ref++) {
    PetscCall(PetscCDDestroy(lists[ref]));
    PetscCall(MatDestroy(&A[ref]));
  }
  PetscCall(ISDestroy(&order));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char        option[128] = "-", *value;
  PetscBool   set;
  PetscMPIInt size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(0));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-gamg", option + 1, sizeof(option) - 1, &set)); /* name=value */
  if (set) {
    PetscCall(PetscStrchr(option, '=', &value));
    PetscCheck(value, PETSC_COMM_WORLD, PETSC_ERR_ARG_WRONG, "-gamg name=value");
    *value++ = 0;
    PetscCall(PetscOptionsSetValue(NULL, option, value));
  }
  PetscCall(Case(12, 0.0, 0.0, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE, "Poisson"));
  PetscCall(Case(13, 3.0, 0.0, PETSC_TRUE, PETSC_FALSE, PETSC_FALSE, "contrast"));
  PetscCall(Case(11, 1.0, 0.0, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE, "symmetric, which nobody said"));
  PetscCall(Case(11, 1.0, 0.7, PETSC_FALSE, PETSC_FALSE, PETSC_FALSE, "convection"));
  PetscCall(Case(10, 1.0, 0.0, PETSC_TRUE, PETSC_TRUE, PETSC_FALSE, "rows alone"));
  PetscCall(Tentative(11, PETSC_FALSE, PETSC_FALSE, "ones"));
  PetscCall(Tentative(10, PETSC_TRUE, PETSC_FALSE, "rows alone"));
  PetscCall(Tentative(10, PETSC_FALSE, PETSC_TRUE, "a vector of both signs"));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  if (size == 1) {
    for (PetscInt distance = 0; distance < 5; distance++) {
      PetscCall(Coarsener(9, distance, PETSC_FALSE));
      PetscCall(Coarsener(10, distance, PETSC_TRUE));
    }
    PetscCall(Case(8, 1.0, 0.0, PETSC_TRUE, PETSC_FALSE, PETSC_TRUE, "blocks"));
    PetscCall(Case(7, 1.0, 0.0, PETSC_FALSE, PETSC_FALSE, PETSC_TRUE, "blocks, symmetric, which nobody said"));
  }
  PetscCall(PetscFinalize());
  return 0;
}

//TEST name="format" args="-mat_gpucsr_format {}" loop="csr stencil"
//TEST name="ranks" nsize=2 args="-mat_gpucsr_format csr"
//TEST name="graph" gpu=1 args="-mat_gpucsr_format csr -path graph"
//TEST name="host_loop" args="-mat_gpucsr_format csr -path host_loop"
//TEST name="pc" args="-mat_gpucsr_format {} -walk" loop="csr stencil"
//TEST name="pc_vectors" args="-mat_gpucsr_format csr -vec_gpu_separate -walk"
//TEST name="pc_ranks" nsize=2 args="-mat_gpucsr_format csr -walk"
//TEST name="pc_path" gpu=1 args="-mat_gpucsr_format {} -walk -path graph" loop="csr stencil"
//TEST name="pc_host_loop" args="-mat_gpucsr_format csr -walk -path host_loop"
//TEST name="pc_mixed" args="-mat_gpucsr_format csr -walk -path graph -ksp_gpucg_precision residual_replacement"
//TEST name="uncounted" nsize=2 args="-mat_gpucsr_format {} -uncounted" loop="csr sell dia"
//TEST name="uncounted_copy" nsize=2 gpu=1 args="-mat_gpucsr_format auto -mat_gpucsr_kernel {} -uncounted -path persistent" loop="auto bcsr_vector8 coo_segment"
//TEST name="finalize" args="-mat_gpucsr_format csr -finalize"
//TEST name="finalize_ranks" nsize=2 args="-mat_gpucsr_format csr -finalize"
//TEST name="finalize_standin" nsize=2 gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -mat_gpucsr_format csr -finalize"
//TEST name="finalize_late" gpu=0 args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1 -gpucsr_debug_defer 3 -mat_gpucsr_format csr -finalize"
//TEST name="mixed" args="-mat_gpucsr_format {} -path graph -ksp_gpucg_precision residual_replacement" loop="csr bcsr3x3"

/*
  A solver that is used again after a change (values, the preconditioner, its reuse) takes the same iterations as a new one. -walk: after each of many changes of the PC
  of a solved KSP: its type, its options, the object itself, its side. -uncounted: after values were changed without increasing the matrix' state, which is found by comparing them. -finalize: after the devices were released.

    build/tests/t613-gpuksp-again -dll_append build/lib/libpetscgpucsr.so -mat_gpucsr_format csr [-path persistent] [-walk] [-uncounted] [-finalize]    (linked with the library)
*/
#include "testing.h"
#include <petscgpucsr.h>
#include <petsc/private/petscimpl.h>

#define ROWS 300

/* d A d, A the second difference with this diagonal; d_r = 1 + r % period */
static PetscErrorCode FillWith(Mat A, PetscReal diagonal, PetscInt period, PetscReal factor)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++)
    for (PetscInt c = PetscMax(r - 1, 0); c <= PetscMin(r + 1, ROWS - 1); c++) PetscCall(MatSetValue(A, r, c, (r == c ? diagonal : -1.0) * factor * (1.0 + (PetscReal)(r % period)) * (1.0 + (PetscReal)(c % period)), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fill(Mat A, PetscInt period, PetscReal factor)
{
  return FillWith(A, 2.05, period, factor);
}

static PetscErrorCode Create(Mat A, const char type[], const char pc[], KSP *ksp)
{
  char option[128], path[16] = "auto";
  PC   p;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-path", path, sizeof(path), NULL));
  PetscCall(PetscSNPrintf(option, sizeof(option), "-ksp_%s_path %s", type, path));
  PetscCall(PetscOptionsInsertString(NULL, option));
  PetscCall(KSPCreate(PetscObjectComm((PetscObject)A), ksp));
  PetscCall(KSPSetOperators(*ksp, A, A));
  PetscCall(KSPSetType(*ksp, type));
  PetscCall(KSPSetTolerances(*ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 2000));
  PetscCall(KSPGetPC(*ksp, &p));
  PetscCall(PCSetType(p, pc));
  PetscCall(KSPSetFromOptions(*ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The next solve of ksp, and one of a solver made anew */
static PetscErrorCode Same(KSP ksp, const char type[], const char pc[], const char what[])
{
  Mat       A;
  Vec       x, b;
  KSP       anew;
  KSPType   now;
  PetscInt  its[2];
  PetscBool ours;

  PetscFunctionBegin;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetIterationNumber(ksp, &its[0]));
  PetscCall(Create(A, type, pc, &anew));
  PetscCall(KSPSolve(anew, b, x));
  PetscCall(KSPGetIterationNumber(anew, &its[1]));
  PetscCall(KSPGetType(ksp, &now));
  PetscCall(PetscStrcmp(now, type, &ours));
  PetscCheck(ours && PetscAbsInt(its[0] - its[1]) <= its[1] / 20, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s, %s: %" PetscInt_FMT " iterations of %s, made anew it takes %" PetscInt_FMT, type, what, its[0], now, its[1]);
  PetscCall(KSPDestroy(&anew));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Changes of a PC. Each change from each, by a walk that takes every pair */
typedef enum {
  TO_NONE,
  TO_JACOBI,
  TO_ROWMAX,
  TO_ABSOLUTE, /* row sums of absolute values */
  TO_BLOCKS,
  TO_ICC,     /* of the diagonal block of each process */
  TO_ANOTHER, /* PC, with Jacobi */
  CHANGES
} Change;

static PetscErrorCode ChangePC(KSP ksp, Change to)
{
  PC pc;

  PetscFunctionBegin;
  if (to == TO_ANOTHER) {
    PetscCall(PCCreate(PetscObjectComm((PetscObject)ksp), &pc));
    PetscCall(PCSetType(pc, PCJACOBI));
    PetscCall(KSPSetPC(ksp, pc));
    PetscCall(PCDestroy(&pc));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCNONE)); /* so that options of the same type begin anew */
  PetscCall(PCSetType(pc, to == TO_NONE ? PCNONE : to == TO_BLOCKS ? PCPBJACOBI : to == TO_ICC ? PCBJACOBI : PCJACOBI));
  if (to == TO_ROWMAX) PetscCall(PCJacobiSetType(pc, PC_JACOBI_ROWMAX));
  if (to == TO_ABSOLUTE) {
    PetscCall(PCJacobiSetType(pc, PC_JACOBI_ROWSUM));
    PetscCall(PCJacobiSetUseAbs(pc, PETSC_TRUE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Iterations of a solve with the PC changed in this way: of a solved solver, or of PETSc's own of the same method on the same matrix as MATAIJ */
static PetscErrorCode Iterations(KSP ksp, Mat A, PetscInt *its)
{
  Vec                x, b;
  KSPConvergedReason reason;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "It ended with %s", KSPConvergedReasons[reason]);
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Walk(const char type[], PetscBool right)
{
  Mat       A, R;
  KSP       ksp, ref;
  PetscInt  its[2];
  KSPType   now;
  PetscBool ours, single, graph;
  char      path[32] = "";

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-path", path, sizeof(path), NULL));
  PetscCall(PetscStrcmp(path, "graph", &graph));                               /* which has no ICC, and says so on a GPU */
  PetscCall(PetscOptionsHasName(NULL, NULL, "-ksp_gpucg_precision", &single)); /* takes more */
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, ROWS, ROWS, PETSC_FALSE, &A));
  PetscCall(MatSetBlockSize(A, 3));
  PetscCall(MatSetUp(A));
  PetscCall(FillWith(A, 3.0, 5, 1.0)); /* with 2.05 rounding decides the iterations of BiCGStab: 51 or 63, by whether a product and a sum are contracted */
  PetscCall(MatConvert(A, MATAIJ, MAT_INITIAL_MATRIX, &R));
  PetscCall(Create(A, type, PCJACOBI, &ksp));
  if (right) PetscCall(KSPSetPCSide(ksp, PC_RIGHT));
  for (int from = 0; from < CHANGES; from++)
    for (int to = 0; to < CHANGES; to++)
      for (int k = 0; k < 2; k++) {
        const Change change = (Change)(k ? to : from);

        if (graph && change == TO_ICC) continue;
        PetscCall(ChangePC(ksp, change));
        PetscCall(Iterations(ksp, A, &its[0]));
        PetscCall(KSPCreate(PETSC_COMM_WORLD, &ref));
        PetscCall(KSPSetType(ref, type + 3)); /* without the first letters, gpu */
        PetscCall(KSPSetTolerances(ref, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 2000));
        if (right) PetscCall(KSPSetPCSide(ref, PC_RIGHT));
        PetscCall(KSPSetOperators(ref, R, R));
        PetscCall(ChangePC(ref, change));
        PetscCall(Iterations(ref, R, &its[1]));
        PetscCall(KSPDestroy(&ref));
        PetscCall(KSPGetType(ksp, &now));
        PetscCall(PetscStrcmp(now, type, &ours));
        PetscCheck(ours && PetscAbsInt(its[0] - its[1]) <= its[1] / (single ? 3 : 10) + 1, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s, %s, preconditioner %d after %d: %" PetscInt_FMT " iterations of %s, PETSc's takes %" PetscInt_FMT, type, right ? "right" : "left", (int)change, k ? from : -1, its[0], now, its[1]);
      }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscCall(MatDestroy(&R));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc fills a matrix without counting the change, as in MatCreateSubMatrices() with MAT_REUSE_MATRIX: the solver follows, whatever it keeps of the matrix */
static PetscErrorCode Uncounted(const char type[])
{
  Mat       A, *S;
  IS        all;
  KSP       ksp;
  char      what[64];
  PetscBool ours;

  PetscFunctionBegin;
  PetscCall(PetscOptionsSetValue(NULL, "-mat_seqaij_type", MATSEQAIJGPUCSR));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, ROWS, ROWS));
  PetscCall(MatSetType(A, MATMPIAIJ));
  PetscCall(MatSetUp(A));
  PetscCall(Fill(A, 1, 1.0));
  PetscCall(ISCreateStride(PETSC_COMM_SELF, ROWS, 0, 1, &all));
  PetscCall(MatCreateSubMatrices(A, 1, &all, &all, MAT_INITIAL_MATRIX, &S));
  PetscCall(PetscObjectTypeCompare((PetscObject)S[0], MATSEQAIJGPUCSR, &ours));
  PetscCheck(ours, PETSC_COMM_SELF, PETSC_ERR_PLIB, "No test: the gathered matrix is of type %s", ((PetscObject)S[0])->type_name);
  PetscCall(Create(S[0], type, PCNONE, &ksp));
  for (PetscInt k = 0; k < 4; k++) {
    PetscCall(PetscSNPrintf(what, sizeof(what), "change %" PetscInt_FMT " that nobody counts", k));
    PetscCall(Same(ksp, type, PCNONE, what));
    PetscCall(Fill(A, 2 + 3 * k, 1.0 + (PetscReal)k));
    PetscCall(MatCreateSubMatrices(A, 1, &all, &all, MAT_REUSE_MATRIX, &S));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroySubMatrices(1, &S));
  PetscCall(ISDestroy(&all));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A Jacobi preconditioner made anew, or reset, and reused: PETSc's takes its diagonal in the first solve, although the solver may have kept the numbers */
static PetscErrorCode Reused(KSP ksp, PetscBool reset)
{
  Mat       A;
  Vec       x, b, d;
  PC        pc;
  PetscReal norm;

  PetscFunctionBegin;
  PetscCall(KSPGetOperators(ksp, &A, NULL));
  PetscCall(PetscObjectReference((PetscObject)A));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &d));
  PetscCall(VecSet(b, 1.0));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetPC(ksp, &pc));
  if (reset) PetscCall(PCReset(pc));
  else PetscCall(PCSetType(pc, PCNONE));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetReusePreconditioner(ksp, PETSC_TRUE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(MatGetDiagonal(A, d));
  PetscCall(MatScale(A, 2.0));
  PetscCall(PCApply(pc, b, x));
  PetscCall(VecPointwiseMult(x, x, d));
  PetscCall(VecAXPY(x, -1.0, b));
  PetscCall(VecNorm(x, NORM_INFINITY, &norm));
  PetscCheck(norm < 1e-12, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "A reused preconditioner, %s before: its diagonal is not that of the first solve, by %g", reset ? "reset" : "of another type", (double)norm);
  PetscCall(KSPSetReusePreconditioner(ksp, PETSC_FALSE));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&d));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The devices are given back between two solves, and before the solver goes */
static PetscErrorCode Finalize(const char type[])
{
  Mat A;
  KSP ksp;

  PetscFunctionBegin;
  PetscCall(TestMatCreate(PETSC_COMM_WORLD, ROWS, ROWS, PETSC_FALSE, &A));
  PetscCall(MatSetVecType(A, VECSTANDARD));
  PetscCall(MatSetUp(A));
  PetscCall(Fill(A, 3, 1.0));
  PetscCall(Create(A, type, PCJACOBI, &ksp));
  for (int k = 0; k < 3; k++) {
    PetscCall(Same(ksp, type, PCJACOBI, "the devices given back"));
    PetscCall(MatGPUCSRFinalizePackage());
    if (k == 1) PetscCall(MatGPUCSRInitializePackage());
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const types[] = {"gpucg", "gpubcgs"};
  PetscBool                walk = PETSC_FALSE, uncounted = PETSC_FALSE, finalize = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(TestRequireReal(64));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-walk", &walk, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-uncounted", &uncounted, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-finalize", &finalize, NULL));
  for (int t = 0; t < 2; t++) {
    if (walk) PetscCall(Walk(types[t], PETSC_FALSE));
    if (walk && t) PetscCall(Walk(types[t], PETSC_TRUE));
    if (uncounted) PetscCall(Uncounted(types[t]));
    if (finalize) PetscCall(Finalize(types[t]));
    if (walk || uncounted || finalize) continue;
    Mat A;
    Vec x, b;
    KSP ksp;
    PC  pc;

    PetscCall(TestMatCreate(PETSC_COMM_WORLD, ROWS, ROWS, PETSC_FALSE, &A));
    PetscCall(MatSetBlockSize(A, 3));
    PetscCall(MatSetUp(A));
    PetscCall(Fill(A, 1, 1.0));
    PetscCall(Create(A, types[t], PCJACOBI, &ksp));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(Same(ksp, types[t], PCJACOBI, "the first solve"));
    PetscCall(Fill(A, 10, 1.0));
    PetscCall(Same(ksp, types[t], PCJACOBI, "other values"));
    for (int again = 0; again < 2; again++) {
      PetscCall(KSPSetReusePreconditioner(ksp, PETSC_TRUE));
      PetscCall(Fill(A, again ? 10 : 5, 1.0));
      PetscCall(MatCreateVecs(A, &x, &b));
      PetscCall(VecSet(b, 1.0));
      PetscCall(KSPSolve(ksp, b, x)); /* with what there was */
      PetscCall(VecDestroy(&x));
      PetscCall(VecDestroy(&b));
      PetscCall(KSPSetReusePreconditioner(ksp, PETSC_FALSE));
      if (again) {
        PetscCall(PCSetUp(pc));
        PetscCall(KSPSetReusePreconditioner(ksp, PETSC_TRUE));
      }
      PetscCall(Same(ksp, types[t], PCJACOBI, again ? "set up, then reused" : "reused no more"));
    }
    PetscCall(KSPSetReusePreconditioner(ksp, PETSC_FALSE));
    PetscCall(Fill(A, 1, 1000.0));
    PetscCall(Same(ksp, types[t], PCJACOBI, "a thousand times as large"));
    PetscCall(PCSetType(pc, PCNONE));
    PetscCall(Same(ksp, types[t], PCNONE, "no preconditioner"));
    PetscCall(PCSetType(pc, PCPBJACOBI));
    PetscCall(Same(ksp, types[t], PCPBJACOBI, "blocks"));
    PetscCall(Fill(A, 10, 1.0));
    PetscCall(Same(ksp, types[t], PCPBJACOBI, "blocks of other values"));
    PetscCall(PCSetType(pc, PCJACOBI));
    PetscCall(Same(ksp, types[t], PCJACOBI, "the diagonal again"));
    for (int reset = 0; reset < 2; reset++) PetscCall(Reused(ksp, (PetscBool)reset));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(MatDestroy(&A));
  }
  PetscCall(PetscFinalize());
  return 0;
}

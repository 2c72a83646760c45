//TEST name="format" args="-mat_gpucsr_format {}" loop="csr stencil"
//TEST name="ranks" nsize=2 args="-mat_gpucsr_format csr"
//TEST name="graph" gpu=1 args="-mat_gpucsr_format csr -path graph"
//TEST name="driven" args="-mat_gpucsr_format csr -path driven"
//TEST name="mixed" args="-mat_gpucsr_format {} -path graph -ksp_gpucg_precision mixed" loop="csr bcsr3x3"

/*
  A solver that is used again after something has changed (values, the preconditioner, whether it is reused) takes the iterations that one made anew takes.

    build/tests/t613-gpuksp-again -dll_append build/lib/libpetscgpucsr.so -mat_gpucsr_format csr [-path launch]
*/
#include "testing.h"

#define ROWS 300

/* d A d, A the second difference (2.05 on the diagonal); d_r = 1 + r % period */
static PetscErrorCode Fill(Mat A, PetscInt period, PetscReal factor)
{
  PetscInt rs, re;

  PetscFunctionBegin;
  PetscCall(MatGetOwnershipRange(A, &rs, &re));
  for (PetscInt r = rs; r < re; r++)
    for (PetscInt c = PetscMax(r - 1, 0); c <= PetscMin(r + 1, ROWS - 1); c++) PetscCall(MatSetValue(A, r, c, (r == c ? 2.05 : -1.0) * factor * (1.0 + (PetscReal)(r % period)) * (1.0 + (PetscReal)(c % period)), INSERT_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(Mat A, const char type[], const char pc[], PetscInt degree, KSP *ksp)
{
  char option[128], path[16] = "auto";
  PC   p;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-path", path, sizeof(path), NULL));
  PetscCall(PetscSNPrintf(option, sizeof(option), "-ksp_%s_path %s -ksp_%s_polynomial_degree %" PetscInt_FMT, type, path, type, degree));
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
static PetscErrorCode Same(KSP ksp, const char type[], const char pc[], PetscInt degree, const char what[])
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
  PetscCall(Create(A, type, pc, degree, &anew));
  PetscCall(KSPSolve(anew, b, x));
  PetscCall(KSPGetIterationNumber(anew, &its[1]));
  PetscCall(KSPGetType(ksp, &now));
  PetscCall(PetscStrcmp(now, type, &ours));
  PetscCheck(ours && PetscAbsInt(its[0] - its[1]) <= its[1] / 20, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s, degree %" PetscInt_FMT ", %s: %" PetscInt_FMT " iterations of %s, made anew it takes %" PetscInt_FMT, type, degree, what, its[0], now, its[1]);
  PetscCall(KSPDestroy(&anew));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const types[]  = {"gpucg", "gpubcgs"};
  char                     path[16] = "auto";
  PetscBool                driven;
  PetscMPIInt              size;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(64));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-path", path, sizeof(path), NULL));
  PetscCall(PetscStrcmp(path, "driven", &driven));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  for (int t = 0; t < 2; t++) {
    for (PetscInt degree = 0; degree <= (driven ? 0 : 3); degree += 3) {
      Mat A;
      Vec x, b;
      KSP ksp;
      PC  pc;

      PetscCall(TestMatCreate(PETSC_COMM_WORLD, ROWS, ROWS, PETSC_FALSE, &A));
      PetscCall(MatSetBlockSize(A, 3));
      PetscCall(MatSetUp(A));
      PetscCall(Fill(A, 1, 1.0));
      PetscCall(Create(A, types[t], PCJACOBI, degree, &ksp));
      PetscCall(KSPGetPC(ksp, &pc));
      PetscCall(Same(ksp, types[t], PCJACOBI, degree, "the first solve"));
      PetscCall(Fill(A, 10, 1.0));
      PetscCall(Same(ksp, types[t], PCJACOBI, degree, "other values"));
      PetscCall(KSPSetReusePreconditioner(ksp, PETSC_TRUE));
      PetscCall(Fill(A, 5, 1.0));
      PetscCall(MatCreateVecs(A, &x, &b));
      PetscCall(VecSet(b, 1.0));
      PetscCall(KSPSolve(ksp, b, x)); /* with what there was */
      PetscCall(VecDestroy(&x));
      PetscCall(VecDestroy(&b));
      PetscCall(KSPSetReusePreconditioner(ksp, PETSC_FALSE));
      PetscCall(Same(ksp, types[t], PCJACOBI, degree, "reused no more"));
      PetscCall(Fill(A, 1, 1000.0));
      PetscCall(Same(ksp, types[t], PCJACOBI, degree, "a thousand times as large"));
      PetscCall(PCSetType(pc, PCNONE));
      PetscCall(Same(ksp, types[t], PCNONE, degree, "no preconditioner"));
      if (!degree || size == 1) {
        PetscCall(PCSetType(pc, PCPBJACOBI));
        PetscCall(Same(ksp, types[t], PCPBJACOBI, degree, "blocks"));
        PetscCall(Fill(A, 10, 1.0));
        PetscCall(Same(ksp, types[t], PCPBJACOBI, degree, "blocks of other values"));
      }
      PetscCall(PCSetType(pc, PCJACOBI));
      PetscCall(Same(ksp, types[t], PCJACOBI, degree, "the diagonal again"));
      PetscCall(KSPDestroy(&ksp));
      PetscCall(MatDestroy(&A));
    }
  }
  PetscCall(PetscFinalize());
  return 0;
}

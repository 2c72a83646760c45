//TEST name="default" args="-mat_gpucsr_format csr"
//TEST name="standin" args="-mat_gpucsr_backend cuda -gpucsr_debug_standin 1" gpu=0
//TEST name="loop" nsize=2 args="-loop {} -mat_gpucsr_format csr -mat_gpucsr_halo peer -mat_gpucsr_backend cuda -gpucsr_debug_standin 2" loop="asm null" gpu=0 warns="KSP type gpucg takes the host loop on several processes, because"
//TEST name="ranks" nsize=3 args="-ranks -mat_gpucsr_format csr -mat_gpucsr_halo peer" gpu=0

/*
  Every option has a function: every setter of the solvers and of a matrix is called on an object of the type, on an object of another type, where it does nothing, and with numbers that are refused. The
  solve after each call must be right.
*/
static char help[] = "Tests the functions that set what options do.\n";

#include "testing.h"
#include <petscgpucsr.h>
#include <petscksp.h>

/* The call ends in an error */
#define REFUSED(...) \
  do { \
    PetscErrorCode refused_; \
\
    PetscCall(PetscPushErrorHandler(PetscReturnErrorHandler, NULL)); \
    refused_ = (__VA_ARGS__); \
    PetscCall(PetscPopErrorHandler()); \
    PetscCheck(refused_, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Line %d: no error", __LINE__); \
  } while (0)

/* The residual of a solve to 1e-8, at most ten times that in the norm that is not preconditioned: the diagonal is constant */
static PetscErrorCode Solve(KSP ksp, Mat A, const char what[])
{
  Vec       x, b, r;
  PetscReal norm, all;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecDuplicate(b, &r));
  PetscCall(TestFill(b, 3, PETSC_FALSE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAXPY(r, -1, b));
  PetscCall(VecNorm(r, NORM_2, &norm));
  PetscCall(VecNorm(b, NORM_2, &all));
  PetscCheck(norm <= 1e-7 * all, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: residual %g of %g", what, (double)norm, (double)all);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Setters(Mat A, const char type[])
{
  KSP       ksp;
  PC        pc;
  PetscReal norm;
  PetscInt  restart;

  PetscFunctionBegin;
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 500));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  for (int k = 0; k < 2; k++) {
    static const KSPGPUPath paths[] = {KSP_GPU_PATH_HOST_LOOP, KSP_GPU_PATH_AUTO};

    PetscCall(KSPGPUSetPath(ksp, paths[k]));
    PetscCall(Solve(ksp, A, KSPGPUPaths[paths[k]]));
  }
  PetscCall(KSPGPUSetPrecision(ksp, KSP_GPU_DOUBLE));
  PetscCall(KSPGPUCGSetVariant(ksp, KSP_GPU_STANDARD));
  PetscCall(KSPGPUSetTrueResidual(ksp, PETSC_TRUE));
  PetscCall(Solve(ksp, A, type));
  PetscCall(KSPGPUGetTrueResidualNorm(ksp, &norm));
  PetscCheck((norm >= 0) == (!strcmp(type, KSPGPUCG) || !strcmp(type, KSPGPUBCGS)), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: a true residual of norm %g", type, (double)norm);
  if (!strcmp(type, KSPGPUGMRES)) {
    KSPGMRESCGSRefinementType refinement;

    PetscCall(KSPGMRESSetRestart(ksp, 7));
    PetscCall(KSPGMRESGetRestart(ksp, &restart));
    PetscCheck(restart == 7, PETSC_COMM_SELF, PETSC_ERR_PLIB, "A restart of %" PetscInt_FMT, restart);
    REFUSED(KSPGMRESSetRestart(ksp, 2000000));
    PetscCall(KSPGMRESSetCGSRefinementType(ksp, KSP_GMRES_CGS_REFINE_ALWAYS));
    PetscCall(KSPGMRESGetCGSRefinementType(ksp, &refinement));
    PetscCheck(refinement == KSP_GMRES_CGS_REFINE_ALWAYS, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Refinement %d", (int)refinement);
    PetscCall(KSPGMRESSetPreAllocateVectors(ksp));
    PetscCall(Solve(ksp, A, "refined"));
    PetscCall(KSPGMRESSetOrthogonalization(ksp, KSPGMRESModifiedGramSchmidtOrthogonalization));
    PetscCall(Solve(ksp, A, "modified Gram-Schmidt"));
  }
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One rank of several sets something between two solves: an error on all of them, at the next solve. After the setting is back, the next solve is right */
static PetscErrorCode Alone(Mat A, const char type[], KSPGPUPath path)
{
  PetscMPIInt rank;
  Vec         x, b;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 4, PETSC_FALSE));
  for (int what = 0; what < 5; what++) { /* PETSc lets a solver meet one error */
    KSP ksp;
    PC  pc;

    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetType(ksp, type));
    PetscCall(KSPGPUSetPath(ksp, path));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCJACOBI));
    PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 500));
    PetscCall(Solve(ksp, A, type));
    if (what == 0 && rank == 1) PetscCall(KSPSetTolerances(ksp, 1e-2, PETSC_DEFAULT, PETSC_DEFAULT, 500));
    if (what == 1 && rank == 2) PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 3));
    if (what == 2 && rank == 0) PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_TRUE));
    if (what == 3 && rank == 1) PetscCall(KSPGPUSetPath(ksp, KSP_GPU_PATH_HOST_LOOP));
    if (what == 4 && rank == 1) PetscCall(KSPSetTolerances(ksp, 1e-8, 1e-2, PETSC_DEFAULT, 500));
    PetscCall(VecSet(x, 1)); /* PETSc takes a guess that it knows to be 0 for none */
    REFUSED(KSPSolve(ksp, b, x));
    PetscCall(KSPGPUSetPath(ksp, path));
    PetscCall(KSPSetTolerances(ksp, 1e-8, 1e-50, PETSC_DEFAULT, 500));
    PetscCall(KSPSetInitialGuessNonzero(ksp, PETSC_FALSE));
    PetscCall(Solve(ksp, A, type));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Two solves, of another solver each, that several processes cannot take the devices' way: the first says so */
static PetscErrorCode Loop(Mat A, const char what[])
{
  KSP          ksp;
  PC           pc;
  Vec          x, b;
  MatNullSpace null;

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(TestFill(b, 4, PETSC_FALSE));
  PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &null));
  if (!strcmp(what, "null")) PetscCall(MatSetNullSpace(A, null));
  PetscCall(MatNullSpaceDestroy(&null));
  for (int again = 0; again < 2; again++) {
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
    PetscCall(KSPSetOperators(ksp, A, A));
    PetscCall(KSPSetType(ksp, KSPGPUCG));
    PetscCall(KSPSetTolerances(ksp, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 5));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, strcmp(what, "asm") ? PCJACOBI : PCASM));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(KSPDestroy(&ksp));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Mat       A;
  Vec       x;
  void     *stream;
  PetscBool ranks;
  char      loop[8];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(TestRequireReal(32));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PetscOptionsGetString(NULL, NULL, "-loop", loop, sizeof(loop), &ranks));
  if (ranks) {
    PetscCall(TestConvection(PETSC_COMM_WORLD, 12, 0, PETSC_FALSE, &A));
    PetscCall(Loop(A, loop));
    PetscCall(MatDestroy(&A));
    PetscCall(PetscFinalize());
    return 0;
  }
  PetscCall(PetscOptionsHasName(NULL, NULL, "-ranks", &ranks));
  if (ranks) {
    PetscCall(TestConvection(PETSC_COMM_WORLD, 12, 0, PETSC_FALSE, &A));
    PetscCall(Alone(A, KSPGPUCG, KSP_GPU_PATH_GRAPH));
    PetscCall(Alone(A, KSPGPUBCGS, KSP_GPU_PATH_PERSISTENT));
    PetscCall(Alone(A, KSPGPUGMRES, KSP_GPU_PATH_AUTO));
    PetscCall(MatDestroy(&A));
    PetscCall(PetscFinalize());
    return 0;
  }
  PetscCall(TestConvection(PETSC_COMM_SELF, 12, 0, PETSC_FALSE, &A));
  PetscCall(Setters(A, KSPGPUCG));
  PetscCall(Setters(A, KSPGPUBCGS));
  PetscCall(Setters(A, KSPGPUGMRES));
  PetscCall(Setters(A, KSPCG)); /* which it does not concern */
  PetscCall(MatGPUCSRSetSelect(A, MAT_GPUCSR_SELECT_ESTIMATE));
  PetscCall(MatGPUCSRSetExpectedMults(A, 50));
  REFUSED(MatGPUCSRSetExpectedMults(A, -1));
  REFUSED(MatGPUCSRSetSelect(A, (MatGPUCSRSelect)99));
  PetscCall(Setters(A, KSPGPUCG));
  PetscCall(VecCreateSeq(PETSC_COMM_SELF, 5, &x));
  REFUSED(VecGPUGetStream(x, &stream));
  REFUSED(VecGPUSynchronize(x));
  PetscCall(VecDestroy(&x));
  PetscCall(MatDestroy(&A));
  PetscCall(PetscFinalize());
  return 0;
}

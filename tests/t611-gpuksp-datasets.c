//TEST name="format" args="-mat_gpucsr_format {}" loop="csr sell"
//TEST name="mixed" args="-mat_gpucsr_format {} -ksp_gpucg_path graph -ksp_gpucg_precision residual_replacement" loop="csr sell ell hyb jad bcsr3x3 bcsr8x8"
//TEST name="single" args="-mat_gpucsr_format {} -ksp_gpucg_variant single_reduction" loop="csr sell"
//TEST name="path" args="-ksp_gpucg_path {} -ksp_gpubcgs_path {}" loop="graph host_loop" gpu=1

/*
  gpucg and gpubcgs on the real matrices: to 1e-12 they converge if PETSc's cg and bcgs do, in about as many iterations, and x has the residual that they report. In
  mixed precision too: a solve that reports convergence has a true residual within the tolerance, computed here with MATAIJ.

    build/tests/t611-gpuksp-datasets -dll_append build/lib/libpetscgpucsr.so [-dir share/datasets] -mat_gpucsr_format csr [-ksp_gpucg_precision residual_replacement]
*/
#include "testing.h"

static const struct {
  const char *file;
  PetscBool   spd;
  PetscReal   rtol;
} systems[] = {
  {"bcsstk16",       PETSC_TRUE,  1e-12},
  {"bcsstk27",       PETSC_TRUE,  1e-12},
  {"nos3",           PETSC_TRUE,  1e-12},
  {"Trefethen_2000", PETSC_TRUE,  1e-12},
  {"add32",          PETSC_FALSE, 1e-6 }, /* to 1e-8 or less, rounding of 1e-16 in the products ends 2 in 100 BiCGStab solves by a rho of exactly 0, after 50 iterations or more; to 1e-6, 0 of 400 */
  {"epb0",           PETSC_FALSE, 1e-8 },
  {"sherman3",       PETSC_FALSE, 1e-9 }, /* which a next rho without (s, rp) does not reach */
};

static PetscErrorCode Load(const char path[], PetscBool ref, Mat *A)
{
  PetscViewer viewer;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_WORLD, A));
  if (ref) PetscCall(MatSetOptionsPrefix(*A, "ref_"));
  PetscCall(MatSetType(*A, ref ? MATAIJ : "gpucsr"));
  PetscCall(MatSetFromOptions(*A));
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, path, FILE_MODE_READ, &viewer));
  PetscCall(MatLoad(*A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* residual: of x, computed by R; said: the residual that the solver reports, if any */
static PetscErrorCode Solve(Mat A, Mat R, KSPType type, PetscReal rtol, Vec b, PetscInt *its, KSPConvergedReason *reason, PetscReal *residual, PetscReal *said)
{
  KSP                ksp;
  PC                 pc;
  Vec                x, y, r;
  const PetscScalar *v;
  PetscScalar       *w;
  PetscInt           n;
  PetscReal          rnorm;
  const PetscReal   *history;
  PetscErrorCode (*truenorm)(KSP, PetscReal *);

  PetscFunctionBegin;
  PetscCall(MatCreateVecs(A, &x, NULL));
  PetscCall(MatCreateVecs(R, &y, &r));
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  if (A == R) PetscCall(KSPSetOptionsPrefix(ksp, "ref_"));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetTolerances(ksp, rtol, PETSC_DEFAULT, 1e8, 5000));
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(KSPSetResidualHistory(ksp, NULL, 6000, PETSC_TRUE));
  PetscCall(KSPSolve(ksp, b, x));
  PetscCall(KSPGetIterationNumber(ksp, its));
  PetscCall(KSPGetResidualNorm(ksp, &rnorm));
  PetscCall(KSPGetResidualHistory(ksp, &history, &n));
  PetscCheck(n == *its + 1 && history[n - 1] == rnorm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " norms of %" PetscInt_FMT " iterations, the last of them %g, the solver's %g", type, n, *its, (double)history[n - 1], (double)rnorm);
  PetscCall(KSPGetConvergedReason(ksp, reason));
  *said = -1;
  PetscCall(PetscObjectQueryFunction((PetscObject)ksp, "KSPGPUGetTrueResidualNorm_C", &truenorm));
  if (truenorm) PetscCall((*truenorm)(ksp, said));
  PetscCall(VecGetLocalSize(y, &n));
  PetscCall(VecGetArrayRead(x, &v));
  PetscCall(VecGetArrayWrite(y, &w));
  PetscCall(PetscArraycpy(w, v, n));
  PetscCall(VecRestoreArrayRead(x, &v));
  PetscCall(VecRestoreArrayWrite(y, &w));
  PetscCall(MatResidual(R, b, y, r));
  PetscCall(PCApply(pc, r, y)); /* the norm of the test is the preconditioned one */
  PetscCall(VecNorm(y, NORM_2, residual));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(VecDestroy(&r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  char      dir[PETSC_MAX_PATH_LEN] = "share/datasets", word[32] = "double";
  PetscBool mixed;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(TestRequireReal(32)); /* as the files were written */
  PetscCall(PetscOptionsGetString(NULL, NULL, "-dir", dir, sizeof(dir), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-ksp_gpucg_precision", word, sizeof(word), NULL));
  PetscCall(PetscStrcmp(word, "residual_replacement", &mixed));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(systems); k++) {
    char               path[2 * PETSC_MAX_PATH_LEN];
    Mat                A, R;
    Vec                b, z;
    PC                 pc;
    PetscInt           its, itsref;
    KSPConvergedReason reason, reasonref;
    PetscReal          residual, residualref, said, saidref, bnorm;

    PetscCall(PetscSNPrintf(path, sizeof(path), "%s/%s.petsc", dir, systems[k].file));
    PetscCall(Load(path, PETSC_FALSE, &A));
    PetscCall(Load(path, PETSC_TRUE, &R));
    PetscCall(MatCreateVecs(R, &z, &b));
    PetscCall(TestFill(b, 1, PETSC_FALSE));
    PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
    PetscCall(PCSetType(pc, PCJACOBI));
    PetscCall(PCSetOperators(pc, R, R));
    PetscCall(PCApply(pc, b, z));
    PetscCall(VecNorm(z, NORM_2, &bnorm));
    PetscCall(PCDestroy(&pc));
    PetscCall(Solve(R, R, systems[k].spd ? KSPCG : KSPBCGS, systems[k].rtol, b, &itsref, &reasonref, &residualref, &saidref));
    PetscCall(Solve(A, R, systems[k].spd ? "gpucg" : "gpubcgs", systems[k].rtol, b, &its, &reason, &residual, &said));
    PetscCheck(reasonref > 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: not a test, as aij does not converge (%s)", systems[k].file, KSPConvergedReasons[reasonref]);
    PetscCheck(reason > 0, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %s after %" PetscInt_FMT " iterations, PETSc's %s after %" PetscInt_FMT, systems[k].file, KSPConvergedReasons[reason], its, KSPConvergedReasons[reasonref], itsref);
    /* BiCGStab's path depends on rounding soon; single precision has no bound */
    PetscCheck(mixed || its <= (systems[k].spd ? 1.15 : 1.6) * itsref + 2, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %" PetscInt_FMT " iterations, PETSc's takes %" PetscInt_FMT, systems[k].file, its, itsref);
    PetscCheck(PetscAbsReal(said - residual) <= 0.2 * residual + 1e-13 * bnorm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: the true residual norm is %g, the solver says %g", systems[k].file, (double)residual, (double)said);
    if (mixed && systems[k].spd)
      PetscCheck(residual <= 1.001 * systems[k].rtol * bnorm + 1e-13 * bnorm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: converged with a true residual of %g of the right-hand side", systems[k].file, (double)(residual / bnorm));
    else PetscCheck(residual <= 2.0 * PetscMax(residualref, systems[k].rtol * bnorm) + 1e-12 * bnorm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: residual %g, PETSc's leaves %g", systems[k].file, (double)residual, (double)residualref);
    PetscCall(PetscInfo(NULL, "%s: %" PetscInt_FMT " iterations, PETSc's takes %" PetscInt_FMT "; residual %g, its %g\n", systems[k].file, its, itsref, (double)(residual / bnorm), (double)(residualref / bnorm)));
    PetscCall(MatDestroy(&A));
    PetscCall(MatDestroy(&R));
    PetscCall(VecDestroy(&b));
    PetscCall(VecDestroy(&z));
  }
  PetscCall(PetscFinalize());
  return 0;
}

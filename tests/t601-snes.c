//TEST name="default"
//TEST name="format" args="-mat_gpucsr_format {}" loop="csr sell"
//TEST name="ranks" nsize=4 args="-mat_gpucsr_format csr"
//TEST name="aij" nsize=2 args="-dm_mat_type aij" load=0

/*
  A nonlinear problem on a DMDA. DMCreateMatrix() makes the Jacobian with -dm_mat_type gpucsr; the solve is first by coloring and differences,
  then by geometric multigrid. Newton's and Krylov methods take the same steps as with MATAIJ.

    build/tests/t601-snes -dll_append build/lib/libpetscgpucsr.so [-dm_mat_type gpucsr] [-mat_gpucsr_...]
*/
#include <petscdmda.h>
#include <petscsnes.h>
#include "testing.h"
#include "bratu.h"

typedef struct {
  PetscInt            newton, krylov;
  SNESConvergedReason reason;
  PetscReal           norm; /* of the solution */
} Outcome;

static PetscErrorCode Solve(PetscBool ref, const char options[], Outcome *o)
{
  const char *prefix = ref ? "ref_" : "test_";
  char        type[64];
  DM          dm;
  SNES        snes;
  Vec         u;

  PetscFunctionBegin;
  PetscCall(PetscStrncpy(type, ref ? MATAIJ : "gpucsr", sizeof(type)));
  if (!ref) PetscCall(PetscOptionsGetString(NULL, NULL, "-dm_mat_type", type, sizeof(type), NULL));
  PetscCall(PetscOptionsPrefixPush(NULL, prefix));
  PetscCall(PetscOptionsInsertString(NULL, options));
  PetscCall(PetscOptionsPrefixPop(NULL));
  PetscCall(DMDACreate2d(PETSC_COMM_WORLD, DM_BOUNDARY_NONE, DM_BOUNDARY_NONE, DMDA_STENCIL_STAR, 17, 17, PETSC_DECIDE, PETSC_DECIDE, 1, 1, NULL, NULL, &dm));
  PetscCall(DMSetMatType(dm, type));
  PetscCall(DMSetOptionsPrefix(dm, prefix));
  PetscCall(DMSetFromOptions(dm));
  PetscCall(DMSetUp(dm));
  PetscCall(SNESCreate(PETSC_COMM_WORLD, &snes));
  PetscCall(SNESSetOptionsPrefix(snes, prefix));
  PetscCall(SNESSetDM(snes, dm));
  PetscCall(DMDASNESSetFunctionLocal(dm, INSERT_VALUES, (PetscErrorCode(*)(DMDALocalInfo *, void *, void *, void *))Bratu, NULL));
  PetscCall(SNESSetFromOptions(snes));
  PetscCall(DMCreateGlobalVector(dm, &u));
  PetscCall(SNESSolve(snes, NULL, u));
  PetscCall(SNESGetIterationNumber(snes, &o->newton));
  PetscCall(SNESGetLinearSolveIterations(snes, &o->krylov));
  PetscCall(SNESGetConvergedReason(snes, &o->reason));
  PetscCall(VecNorm(u, NORM_2, &o->norm));
  PetscCall(VecDestroy(&u));
  PetscCall(SNESDestroy(&snes));
  PetscCall(DMDestroy(&dm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const options[] = {"-ksp_type gmres -pc_type bjacobi", "-ksp_type cg -pc_type jacobi", "-da_refine 1 -ksp_type fgmres -pc_type mg -mg_levels_pc_type jacobi"};

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(options); k++) {
    Outcome o, r;

    PetscCall(Solve(PETSC_FALSE, options[k], &o));
    PetscCall(Solve(PETSC_TRUE, options[k], &r));
    PetscCheck(r.reason > 0 && o.reason == r.reason && o.newton == r.newton && PetscAbsInt(o.krylov - r.krylov) <= r.newton + r.krylov / 20, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: %s after %" PetscInt_FMT " steps and %" PetscInt_FMT " iterations, with aij %s after %" PetscInt_FMT " and %" PetscInt_FMT, options[k], SNESConvergedReasons[o.reason], o.newton, o.krylov, SNESConvergedReasons[r.reason], r.newton, r.krylov);
    /* both stop where Newton's residual is 1e-8 of the first, its default: the rounding of the products is far below */
    PetscCheck(PetscAbsReal(o.norm - r.norm) <= PETSC_SQRT_MACHINE_EPSILON * r.norm, PETSC_COMM_WORLD, PETSC_ERR_PLIB, "%s: the solution's norm is %g, with aij %g", options[k], (double)o.norm, (double)r.norm);
  }
  PetscCall(PetscFinalize());
  return 0;
}

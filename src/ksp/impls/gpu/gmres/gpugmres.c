/*
  KSPGPUGMRES and KSPGPUFGMRES: PETSc's restarted GMRES and its flexible variant, iterating on the matrix' device. This file has the types and their options, set by PETSc's own functions and
  options of KSPGMRES and KSPFGMRES.
*/
#include "gmresimpl.h"

typedef PetscErrorCode ModifyFn(KSP, PetscInt, PetscInt, PetscReal, void *);
typedef PetscErrorCode OrthogonalizeFn(KSP, PetscInt);

/* Destroys the context of KSPFGMRESSetModifyPC() */
static PetscErrorCode Forget(KSP_GPUGMRES *g)
{
  GPUCSRDestroyFn *destroy = (GPUCSRDestroyFn *)g->modifydestroy;

  PetscFunctionBegin;
  g->modifydestroy = NULL;
  if (destroy) PetscCall(GPUCSRDestroyContext(destroy, g->modifyctx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Changes the type to PETSc's, and passes on all settings */
static PetscErrorCode Become_GPUGMRES(KSP ksp)
{
  KSP_GPUGMRES *mine = (KSP_GPUGMRES *)ksp->data, g = *mine;

  PetscFunctionBegin;
  mine->modifydestroy = NULL;
  PetscCall(KSPSetType(ksp, g.k.petsc));
  PetscCall(KSPGMRESSetRestart(ksp, g.restart));
  PetscCall(KSPGMRESSetHapTol(ksp, g.haptol));
  PetscCall(KSPGMRESSetBreakdownTolerance(ksp, g.breakdowntol));
  PetscCall(KSPGMRESSetCGSRefinementType(ksp, g.refinement));
  PetscCall(KSPGMRESSetOrthogonalization(ksp, g.orthogonalize));
  if (g.preallocate) PetscCall(KSPGMRESSetPreAllocateVectors(ksp));
  if (g.modify) PetscCall(KSPFGMRESSetModifyPC(ksp, g.modify, g.modifyctx, (GPUCSRDestroyFn *)g.modifydestroy));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Returns why PETSc's type must solve, the same on every process; NULL: no reason. own: a number of the type's own settings that all ranks must share */
static const char *Settings(KSP ksp, int64_t *own)
{
  const KSP_GPUGMRES *g = (const KSP_GPUGMRES *)ksp->data;

  *own = -1;
  if (g->orthogonalize != KSPGMRESClassicalGramSchmidtOrthogonalization) return "an orthogonalization other than the classical is selected";
  if (g->modify && g->modify != KSPFGMRESModifyPCNoChange) return "KSPFGMRESSetModifyPC() changes the preconditioner between iterations";
  if (ksp->pc_side == PC_SYMMETRIC) return "symmetric preconditioning was asked for";
  if (ksp->calc_ritz) return "Ritz pairs were asked for";
  *own = g->restart + 31 * (int64_t)g->refinement + 37 * (GPUCSRBits((double)g->haptol) % INT32_MAX) + 41 * (GPUCSRBits((double)g->breakdowntol) % INT32_MAX);
  return NULL;
}

static PetscErrorCode KSPView_GPUGMRES(KSP ksp, PetscViewer viewer)
{
  static const char *const refinements[] = {"never refined", "refined if needed", "always refined"};
  const KSP_GPUGMRES      *g             = (const KSP_GPUGMRES *)ksp->data;
  PetscBool                ascii;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerASCIIPrintf(viewer, "  restart=%" PetscInt_FMT ", classical Gram-Schmidt orthogonalization, %s\n", g->restart, refinements[g->refinement]));
  PetscCall(PetscViewerASCIIPrintf(viewer, "  happy breakdown tolerance %g\n", (double)g->haptol));
  if (g->k.solved) PetscCall(PetscViewerASCIIPrintf(viewer, "  last solve: path %s, because %s\n", KSPGPUPaths[g->k.taken], g->k.why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPSetFromOptions_GPUGMRES(KSP ksp, GPUCSROptionItems PetscOptionsObject)
{
  KSP_GPUGMRES *g       = (KSP_GPUGMRES *)ksp->data;
  PetscInt      restart = g->restart;
  PetscReal     haptol = g->haptol, breakdowntol = g->breakdowntol;
  PetscBool     flg = PETSC_FALSE;

  PetscFunctionBegin;
  PetscOptionsHeadBegin(PetscOptionsObject, "KSPGPUGMRES options");
  if (g->flexible) PetscCall(GPUKSPPathFromOptions(&g->k, PetscOptionsObject, "-ksp_gpufgmres_path"));
  else PetscCall(GPUKSPPathFromOptions(&g->k, PetscOptionsObject, "-ksp_gpugmres_path"));
  PetscCall(PetscOptionsInt("-ksp_gmres_restart", "Number of Krylov search directions", "KSPGMRESSetRestart", restart, &restart, NULL));
  PetscCall(KSPGMRESSetRestart(ksp, restart));
  PetscCall(PetscOptionsReal("-ksp_gmres_haptol", "Tolerance of a happy breakdown", "KSPGMRESSetHapTol", haptol, &haptol, NULL));
  PetscCall(KSPGMRESSetHapTol(ksp, haptol));
  PetscCall(PetscOptionsReal("-ksp_gmres_breakdown_tolerance", "Tolerance of the difference of norms at a restart", "KSPGMRESSetBreakdownTolerance", breakdowntol, &breakdowntol, NULL));
  PetscCall(KSPGMRESSetBreakdownTolerance(ksp, breakdowntol));
  PetscCall(PetscOptionsBool("-ksp_gmres_preallocate", "Allocate all vectors of a cycle at once (always the case)", "KSPGMRESSetPreAllocateVectors", g->preallocate, &g->preallocate, NULL));
  PetscCall(PetscOptionsEnum("-ksp_gmres_cgs_refinement_type", "When to orthogonalize a second time", "KSPGMRESSetCGSRefinementType", KSPGMRESCGSRefinementTypes, (PetscEnum)g->refinement, (PetscEnum *)&g->refinement, NULL));
  PetscCall(PetscOptionsBoolGroupBegin("-ksp_gmres_classicalgramschmidt", "Classical Gram-Schmidt orthogonalization", "KSPGMRESSetOrthogonalization", &flg));
  if (flg) g->orthogonalize = KSPGMRESClassicalGramSchmidtOrthogonalization;
  PetscCall(PetscOptionsBoolGroupEnd("-ksp_gmres_modifiedgramschmidt", "Modified Gram-Schmidt orthogonalization, by PETSc's own type", "KSPGMRESSetOrthogonalization", &flg));
  if (flg) g->orthogonalize = KSPGMRESModifiedGramSchmidtOrthogonalization;
  if (g->flexible) {
    PetscCall(PetscOptionsBoolGroupBegin("-ksp_fgmres_modifypcnochange", "Do not change the preconditioner", "KSPFGMRESSetModifyPC", &flg));
    if (flg) PetscCall(KSPFGMRESSetModifyPC(ksp, KSPFGMRESModifyPCNoChange, NULL, NULL));
    PetscCall(PetscOptionsBoolGroupEnd("-ksp_fgmres_modifypcksp", "Change the tolerances of a PCKSP, by PETSc's own type", "KSPFGMRESSetModifyPC", &flg));
    if (flg) PetscCall(KSPFGMRESSetModifyPC(ksp, KSPFGMRESModifyPCKSP, NULL, NULL));
  }
  PetscOptionsHeadEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- settings by PETSc's functions of GMRES ---- */

static PetscErrorCode KSPGMRESSetRestart_GPUGMRES(KSP ksp, PetscInt restart)
{
  PetscFunctionBegin;
  PetscCheck(restart >= 1 && restart <= 1000000, PetscObjectComm((PetscObject)ksp), PETSC_ERR_ARG_OUTOFRANGE, "The restart of GMRES is %" PetscInt_FMT ": must be from 1 to 1000000", restart);
  ((KSP_GPUGMRES *)ksp->data)->restart = restart;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPGMRESSetHapTol_GPUGMRES(KSP ksp, PetscReal tol)
{
  PetscFunctionBegin;
  PetscCheck(tol >= 0, PetscObjectComm((PetscObject)ksp), PETSC_ERR_ARG_OUTOFRANGE, "The tolerance of happy breakdowns is %g: must not be negative", (double)tol);
  ((KSP_GPUGMRES *)ksp->data)->haptol = tol;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPGMRESSetBreakdownTolerance_GPUGMRES(KSP ksp, PetscReal tol)
{
  PetscFunctionBegin;
  if (tol == (PetscReal)PETSC_DEFAULT) tol = 0.1;
  PetscCheck(tol >= 0, PetscObjectComm((PetscObject)ksp), PETSC_ERR_ARG_OUTOFRANGE, "The breakdown tolerance is %g: must not be negative", (double)tol);
  ((KSP_GPUGMRES *)ksp->data)->breakdowntol = tol;
  PetscFunctionReturn(PETSC_SUCCESS);
}

GPUKSP_GETTER(KSPGMRESGetRestart_GPUGMRES, KSP_GPUGMRES, PetscInt, restart)
GPUKSP_SETTER(KSPGMRESSetCGSRefinementType_GPUGMRES, KSP_GPUGMRES, KSPGMRESCGSRefinementType, refinement)
GPUKSP_GETTER(KSPGMRESGetCGSRefinementType_GPUGMRES, KSP_GPUGMRES, KSPGMRESCGSRefinementType, refinement)
GPUKSP_SETTER(KSPGMRESSetOrthogonalization_GPUGMRES, KSP_GPUGMRES, OrthogonalizeFn *, orthogonalize)
GPUKSP_GETTER(KSPGMRESGetOrthogonalization_GPUGMRES, KSP_GPUGMRES, OrthogonalizeFn *, orthogonalize)

static PetscErrorCode KSPGMRESSetPreAllocateVectors_GPUGMRES(KSP ksp)
{
  PetscFunctionBegin;
  ((KSP_GPUGMRES *)ksp->data)->preallocate = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPFGMRESSetModifyPC_GPUFGMRES(KSP ksp, ModifyFn *f, void *ctx, GPUCSRDestroyFn *destroy)
{
  KSP_GPUGMRES *g = (KSP_GPUGMRES *)ksp->data;

  PetscFunctionBegin;
  PetscCall(Forget(g));
  g->modify        = f;
  g->modifyctx     = ctx;
  g->modifydestroy = (void (*)(void))destroy;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Names of the functions in PETSc; the flexible variant's own come last */
static const GPUKSPComposed composed[] = {
  {"KSPGMRESSetRestart_C",            (void (*)(void))KSPGMRESSetRestart_GPUGMRES           },
  {"KSPGMRESGetRestart_C",            (void (*)(void))KSPGMRESGetRestart_GPUGMRES           },
  {"KSPGMRESSetHapTol_C",             (void (*)(void))KSPGMRESSetHapTol_GPUGMRES            },
  {"KSPGMRESSetBreakdownTolerance_C", (void (*)(void))KSPGMRESSetBreakdownTolerance_GPUGMRES},
  {"KSPGMRESSetCGSRefinementType_C",  (void (*)(void))KSPGMRESSetCGSRefinementType_GPUGMRES },
  {"KSPGMRESGetCGSRefinementType_C",  (void (*)(void))KSPGMRESGetCGSRefinementType_GPUGMRES },
  {"KSPGMRESSetOrthogonalization_C",  (void (*)(void))KSPGMRESSetOrthogonalization_GPUGMRES },
  {"KSPGMRESGetOrthogonalization_C",  (void (*)(void))KSPGMRESGetOrthogonalization_GPUGMRES },
  {"KSPGMRESSetPreAllocateVectors_C", (void (*)(void))KSPGMRESSetPreAllocateVectors_GPUGMRES},
  {"KSPFGMRESSetModifyPC_C",          (void (*)(void))KSPFGMRESSetModifyPC_GPUFGMRES        },
  {"KSPFlexibleSetModifyPC_C",        (void (*)(void))KSPFGMRESSetModifyPC_GPUFGMRES        },
};

static PetscErrorCode KSPDestroy_GPUGMRES(KSP ksp)
{
  KSP_GPUGMRES *g = (KSP_GPUGMRES *)ksp->data;

  PetscFunctionBegin;
  PetscCall(Forget(g));
  PetscCall(VecDestroy(&g->built));
  PetscCall(GPUKSPDestroy(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GMRESCreate(KSP ksp, PetscBool flexible)
{
  KSP_GPUGMRES *g;

  PetscFunctionBegin;
  PetscCall(PetscNew(&g));
  PetscCall(GPUKSPCreate(ksp, &g->k, PETSC_STATIC_ARRAY_LENGTH(composed) - (flexible ? 0 : 2), composed));
  g->k.petsc               = flexible ? KSPFGMRES : KSPGMRES;
  g->k.become              = Become_GPUGMRES;
  g->k.release             = GPUGMRESRelease;
  g->flexible              = flexible;
  g->restart               = 30;
  g->haptol                = 1e-30;
  g->breakdowntol          = 0.1;
  g->refinement            = KSP_GMRES_CGS_REFINE_NEVER;
  g->orthogonalize         = KSPGMRESClassicalGramSchmidtOrthogonalization;
  g->k.settings            = Settings;
  g->k.prepare             = GPUGMRESPrepare;
  g->k.solve               = KSPSolve_GPUGMRES;
  ksp->ops->destroy        = KSPDestroy_GPUGMRES;
  ksp->ops->view           = KSPView_GPUGMRES;
  ksp->ops->setfromoptions = KSPSetFromOptions_GPUGMRES;
  ksp->ops->buildsolution  = KSPBuildSolution_GPUGMRES;
  ksp->ops->buildresidual  = KSPBuildResidualDefault;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  KSPGPUGMRES - "gpugmres", the restarted GMRES of `KSPGMRES` for a `MATGPUCSR` matrix, with the whole solve on its device

  Options Database Keys:
+ -ksp_type gpugmres                                                                - use this type
. -ksp_gmres_restart restart                                                        - iterations of a cycle, 30 by default, see `KSPGMRESSetRestart()`
. -ksp_gmres_cgs_refinement_type (refine_never|refine_ifneeded|refine_always)       - when to orthogonalize a second time, see `KSPGMRESSetCGSRefinementType()`
. -ksp_gmres_haptol tol                                                             - tolerance of a happy breakdown, see `KSPGMRESSetHapTol()`
. -ksp_gmres_breakdown_tolerance tol                                                - tolerance of the difference of norms at a restart, see `KSPGMRESSetBreakdownTolerance()`
- -ksp_gpugmres_path (auto|graph|host_loop)                                         - how the solver iterates, see `KSPGPUSetPath()`

  Level: beginner

  Notes:
  Iterates, norms, tests and reasons equal those of `KSPGMRES` with classical Gram-Schmidt up to rounding. The norm is preconditioned with a left `PC`, unpreconditioned with a right `PC`.

  On one process an iteration is a graph of the product and two passes over the basis, each with a reduction. The `PC` is `PCNONE`, `PCJACOBI`, `PCPBJACOBI` with blocks of at most 8, or another
  preconditioner that the device applies. `PCApply()` applies any other preconditioner to vectors on the device, between the same passes. The Hessenberg matrix is on the host,
  which tests an iteration while the device runs the next, unless the solve is likely to end.

  The solver allocates all vectors of a cycle at once. Unsupported cases fall back to `KSPGMRES`, with a message. Such cases are too little memory for the vectors, modified Gram-Schmidt, symmetric
  preconditioning, and requests for eigenvalues, singular values or Ritz pairs. Another one is an operator that is not a `MATGPUCSR` matrix or is on no device.

.seealso: `MATGPUCSR`, `KSPGPUFGMRES`, `KSPGPUCG`, `KSPGPUBCGS`, `KSPGPUSetPath()`
M*/
PetscErrorCode KSPCreate_GPUGMRES(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(GMRESCreate(ksp, PETSC_FALSE));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_PRECONDITIONED, PC_LEFT, 4));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_UNPRECONDITIONED, PC_RIGHT, 3));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_PRECONDITIONED, PC_SYMMETRIC, 2));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NONE, PC_RIGHT, 1));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NONE, PC_LEFT, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  KSPGPUFGMRES - "gpufgmres", the flexible GMRES of `KSPFGMRES` for a `MATGPUCSR` matrix, iterating on its device from the right-hand side to the solution

  Options Database Keys:
+ -ksp_type gpufgmres                        - use this type
- -ksp_gpufgmres_path (auto|graph|host_loop) - how the solver iterates, see `KSPGPUSetPath()`

  Level: beginner

  Note:
  As `KSPGPUGMRES`, with the same other options. The preconditioner is on the right and may differ between iterations. With `KSPFGMRESSetModifyPC()`, `KSPFGMRES` solves
  instead, with a message. The preconditioned basis is stored unless the preconditioner is known to be linear. With K-cycles of `PCGPUAMG` a host loop solves.

.seealso: `MATGPUCSR`, `KSPGPUGMRES`, `KSPGPUSetPath()`
M*/
PetscErrorCode KSPCreate_GPUFGMRES(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(GMRESCreate(ksp, PETSC_TRUE));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_UNPRECONDITIONED, PC_RIGHT, 3));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NONE, PC_RIGHT, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

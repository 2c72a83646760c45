/*
  KSPGPUCG and KSPGPUBCGS: PETSc's conjugate gradients and BiCGStab, iterating on the matrix' device. The types, their options and public functions.
*/
#include "../gmres/gmresimpl.h"

const char *const KSPGPUPaths[]      = {"auto", "persistent", "graph", "host_loop", "KSPGPUPath", "KSP_GPU_PATH_", NULL};
const char *const KSPGPUVariants[]   = {"standard", "single_reduction", "KSPGPUVariant", "KSP_GPU_", NULL};
const char *const KSPGPUPrecisions[] = {"double", "residual_replacement", "KSPGPUPrecision", "KSP_GPU_", NULL};

/* A number for the test of convergence: the kind of tolerances of the default test; negative: another test */
static int64_t TestOf(KSP ksp)
{
  const KSPConvergedDefaultCtx *c = (const KSPConvergedDefaultCtx *)ksp->cnvP;

  if (ksp->converged == KSPConvergedSkip) return -1;
  if (ksp->converged != KSPConvergedDefault) return -2;
  return (c->initialrtol ? 1 : 0) + (c->mininitialrtol ? 2 : 0) + (c->convmaxits ? 4 : 0);
}

/* Collective, before each solve, since a program may change settings at any time: ranks with different settings deadlock or compute wrong solutions. why: the reason of the settings for PETSc's type; empty: none */
PetscErrorCode GPUKSPSettings(KSP ksp, char why[])
{
  const KSP_GPU    *k     = (const KSP_GPU *)ksp->data;
  int64_t           own   = 0; /* a number of the type's own settings */
  const char *const petsc = k->settings ? (*k->settings)(ksp, &own) : NULL;
  const struct {
    const char *what, *option;
    int64_t     value;
  } choice[] = {
    {"path",                                    "-ksp_gpu..._path",               (int64_t)k->path                                 },
    {"variant",                                 "-ksp_gpucg_variant",             (int64_t)k->variant                              },
    {"precision",                               "-ksp_gpucg_precision",           (int64_t)k->precision                            },
    {"test of the true residual",               "-ksp_gpu..._true_residual",      (int64_t)k->trueresidual                         },
    {"recomputation of halos",                  "-ksp_gpu..._halo_recomputation", (int64_t)k->halo                                 },
    {"preconditioner",                          "-pc_type",                       GPUCSRNumberOf(((PetscObject)ksp->pc)->type_name)},
    {"side of the preconditioner",              "-ksp_pc_side",                   (int64_t)ksp->pc_side                            },
    {"norm",                                    "-ksp_norm_type",                 (int64_t)ksp->normtype                           },
    {"iteration that norms begin with",         "-ksp_check_norm_iteration",      ksp->chknorm                                     },
    {"most number of iterations",               "-ksp_max_it",                    ksp->max_it                                      },
#if GPUCSR_KSP_HAS_MINIT
    {"least number of iterations",              "-ksp_min_it",                    ksp->min_it                                      },
#endif
    {"relative tolerance",                      "-ksp_rtol",                      GPUCSRBits((double)ksp->rtol)                    },
    {"absolute tolerance",                      "-ksp_atol",                      GPUCSRBits((double)ksp->abstol)                  },
    {"tolerance of divergence",                 "-ksp_divtol",                    GPUCSRBits((double)ksp->divtol)                  },
    {"convergence test",                        "-ksp_convergence_test",          TestOf(ksp)                                      },
    {"zero initial guess",                      "-ksp_initial_guess_nonzero",     (int64_t)ksp->guess_zero                         },
    {"restart, orthogonalization or tolerance", "-ksp_gmres_...",                 own                                              }
  };
  enum {
    CHOICES = sizeof(choice) / sizeof(choice[0])
  };
  int64_t mine[CHOICES];
  int     c;

  PetscFunctionBegin;
  for (c = 0; c < CHOICES; c++) mine[c] = choice[c].value;
  PetscCall(GPUCSRSameOnAllRanks(PetscObjectComm((PetscObject)ksp), CHOICES, mine, &c));
  PetscCheck(c == CHOICES, PetscObjectComm((PetscObject)ksp), PETSC_ERR_ARG_INCOMP, "The %s of KSP type %s is not the same on all ranks (%s)", choice[c].what, ((PetscObject)ksp)->type_name, choice[c].option);
  PetscCall(PetscStrncpy(why, petsc ? petsc : "", GPUKSP_WHY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Checks the settings and the operator. The first solve prepares everything else */
static PetscErrorCode KSPSetUp_GPU(KSP ksp)
{
  char why[GPUKSP_WHY];

  PetscFunctionBegin;
  PetscCall(GPUKSPSettings(ksp, why));
  if (!why[0]) {
    ksp->setupnewmatrix = PETSC_TRUE;
    PetscCall(GPUKSPOperator(ksp, (KSP_GPU *)ksp->data, why));
  }
  if (why[0]) PetscCall(GPUKSPFallBack(ksp, why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The next solve starts over */
static PetscErrorCode SolverRelease(void *solver)
{
  PetscFunctionBegin;
  PetscCall(GPUKSPPeersRelease((KSP_GPU *)solver));
  PetscCall(GPUKSPRelease((KSP_GPU *)solver));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRLivingList solvers = {GPUCSR_FINAL_KSP, SolverRelease, NULL};

static PetscErrorCode KSPReset_GPU(KSP ksp)
{
  return SolverRelease(ksp->data);
}

/* The destructor of a type, or called last by it */
PetscErrorCode GPUKSPDestroy(KSP ksp)
{
  KSP_GPU *k = (KSP_GPU *)ksp->data;

  PetscFunctionBegin;
  PetscCall(KSPReset_GPU(ksp));
  PetscCall(GPUCSRLivingRemove(&k->living));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPGPUSetPath_C", NULL));
  for (size_t q = 0; q < k->ncomposed; q++) PetscCall(PetscObjectComposeFunction((PetscObject)ksp, k->composed[q].name, NULL));
  PetscCall(KSPDestroyDefault(ksp));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The solution vector holds the current iterate, with left and right preconditioning */
static PetscErrorCode KSPBuildSolution_GPU(KSP ksp, Vec v, Vec *V)
{
  PetscFunctionBegin;
  if (v) PetscCall(VecCopy(ksp->vec_sol, v));
  *V = v ? v : ksp->vec_sol;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KSPView_GPU(KSP ksp, PetscViewer viewer)
{
  KSP_GPU             *k          = (KSP_GPU *)ksp->data;
  const GPUCSRMachine *t          = &GPUCSRMachineShared;
  const PetscBool      persistent = (PetscBool)(k->taken == KSP_GPU_PATH_PERSISTENT);
  const double one = k->method != GPUKSP_BCGS ? (persistent ? 0 : t->one_device_cg_graph) : persistent ? t->one_device_bcgs : t->one_device_bcgs_graph; /* up to this number of rows one GPU takes less time than two (docs/results/several-gpus.md) */
  PetscBool    ascii;
  char         ranks[96];

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->method != GPUKSP_BCGS)
    PetscCall(PetscViewerASCIIPrintf(viewer, "  variant %s, precision %s%s%s\n", KSPGPUVariants[k->variant], KSPGPUPrecisions[k->precision], k->precision == KSP_GPU_RESIDUAL_REPLACEMENT && k->solved && !k->refined ? ", double in the last solve because " : "", k->precision == KSP_GPU_RESIDUAL_REPLACEMENT && k->solved && !k->refined ? k->whydouble : ""));
  if (!k->solved) PetscFunctionReturn(PETSC_SUCCESS);
  if (k->method != GPUKSP_BCGS && k->pc.flexible)
    PetscCall(PetscViewerASCIIPrintf(viewer, "  directions of flexible conjugate gradients%s, because the preconditioner is not linear\n", k->variant == KSP_GPU_SINGLE_REDUCTION ? " without the single reduction" : ""));
  ranks[0] = 0;
  if (k->peers.on || k->ranks.on) PetscCall(PetscSNPrintf(ranks, sizeof(ranks), ", on each of %d processes, which exchange by themselves (%s)", (int)k->size, k->peers.on ? "peer" : k->ranks.way));
  if (persistent) PetscCall(PetscViewerASCIIPrintf(viewer, "  last solve: one persistent kernel of %d blocks, format %s%s%s\n", k->persistent.blocks, k->launch.with->name, k->persistent.halo ? ", halos recomputed" : "", ranks));
  else PetscCall(PetscViewerASCIIPrintf(viewer, "  last solve: path %s, because %s%s\n", KSPGPUPaths[k->taken], k->why, ranks));
  if (ranks[0] && k->dev && k->dev->ops->separate && (double)k->rows <= one) PetscCall(PetscViewerASCIIPrintf(viewer, "  one GPU may be faster: of %" PetscInt_FMT " rows two took longer, where it was measured (docs/several-gpus.md)\n", k->rows));
  if (k->refined || k->single.replacements) PetscCall(PetscViewerASCIIPrintf(viewer, "  residual replaced by the true one %" PetscInt_FMT " times\n", k->single.replacements));
  if (k->truenorm >= 0) PetscCall(PetscViewerASCIIPrintf(viewer, "  true residual norm %g, by the recurrence %g\n", (double)k->truenorm, (double)ksp->rnorm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUKSPPathFromOptions(KSP_GPU *k, GPUCSROptionItems PetscOptionsObject, const char option[])
{
  return PetscOptionsEnum(option, "How the solver iterates", "KSPGPUSetPath", KSPGPUPaths, (PetscEnum)k->path, (PetscEnum *)&k->path, NULL);
}

static PetscErrorCode KSPSetFromOptions_GPU(KSP ksp, GPUCSROptionItems PetscOptionsObject)
{
  KSP_GPU  *k = (KSP_GPU *)ksp->data;
  PetscBool set;

  PetscFunctionBegin;
  PetscOptionsHeadBegin(PetscOptionsObject, "KSPGPUCG and KSPGPUBCGS options");
  if (k->method == GPUKSP_BCGS) {
    PetscCall(GPUKSPPathFromOptions(k, PetscOptionsObject, "-ksp_gpubcgs_path"));
    PetscCall(PetscOptionsBool("-ksp_gpubcgs_halo_recomputation", "Recompute halos in a persistent kernel, if they fit, to save grid-wide reductions", "None", k->halo, &k->halo, NULL));
    PetscCall(PetscOptionsBool("-ksp_gpubcgs_true_residual", "Compute the true residual on exit", "KSPGPUSetTrueResidual", k->trueresidual, &k->trueresidual, &set));
  } else {
    PetscCall(GPUKSPPathFromOptions(k, PetscOptionsObject, "-ksp_gpucg_path"));
    PetscCall(PetscOptionsBool("-ksp_gpucg_halo_recomputation", "Recompute halos in a persistent kernel, if they fit, to save grid-wide reductions", "None", k->halo, &k->halo, NULL));
    PetscCall(PetscOptionsBool("-ksp_gpucg_true_residual", "Compute the true residual on exit", "KSPGPUSetTrueResidual", k->trueresidual, &k->trueresidual, &set));
    PetscCall(PetscOptionsEnum("-ksp_gpucg_variant", "Reductions of an iteration", "KSPGPUCGSetVariant", KSPGPUVariants, (PetscEnum)k->variant, (PetscEnum *)&k->variant, NULL));
    PetscCall(PetscOptionsEnum("-ksp_gpucg_precision", "What the solver iterates in", "KSPGPUSetPrecision", KSPGPUPrecisions, (PetscEnum)k->precision, (PetscEnum *)&k->precision, NULL));
  }
  if (set) k->trueresidualasked = PETSC_TRUE;
  PetscOptionsHeadEnd();
  PetscFunctionReturn(PETSC_SUCCESS);
}

GPUKSP_SETTER(KSPGPUSetPath_GPU, KSP_GPU, KSPGPUPath, path)
GPUKSP_SETTER(KSPGPUSetPrecision_GPU, KSP_GPU, KSPGPUPrecision, precision)
GPUKSP_SETTER(KSPGPUCGSetVariant_GPU, KSP_GPU, KSPGPUVariant, variant)
GPUKSP_GETTER(KSPGPUGetTrueResidualNorm_GPU, KSP_GPU, PetscReal, truenorm)

static PetscErrorCode KSPGPUSetTrueResidual_GPU(KSP ksp, PetscBool compute)
{
  PetscFunctionBegin;
  ((KSP_GPU *)ksp->data)->trueresidual      = compute;
  ((KSP_GPU *)ksp->data)->trueresidualasked = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* KSPGPUCG's own come last */
static const GPUKSPComposed composed[] = {
  {"KSPGPUSetTrueResidual_C",     (void (*)(void))KSPGPUSetTrueResidual_GPU    },
  {"KSPGPUGetTrueResidualNorm_C", (void (*)(void))KSPGPUGetTrueResidualNorm_GPU},
  {"KSPGPUSetPrecision_C",        (void (*)(void))KSPGPUSetPrecision_GPU       },
  {"KSPGPUCGSetVariant_C",        (void (*)(void))KSPGPUCGSetVariant_GPU       },
};

/* Called first by the constructor of every type. k: newly allocated, owned by the KSP from here on. The KSP gets the first n functions of the list */
PetscErrorCode GPUKSPCreate(KSP ksp, KSP_GPU *k, size_t n, const GPUKSPComposed list[])
{
  PetscFunctionBegin;
  ksp->data         = k;
  ksp->ops->solve   = GPUKSPSolve;
  ksp->ops->setup   = KSPSetUp_GPU;
  ksp->ops->reset   = KSPReset_GPU;
  ksp->ops->destroy = GPUKSPDestroy;
  k->composed       = list;
  k->ncomposed      = n;
  PetscCall(GPUCSRLivingAdd(&solvers, &k->living, k));
  PetscCall(PetscObjectComposeFunction((PetscObject)ksp, "KSPGPUSetPath_C", KSPGPUSetPath_GPU));
  for (size_t q = 0; q < n; q++) PetscCall(PetscObjectComposeFunction((PetscObject)ksp, list[q].name, list[q].f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Become_GPU(KSP ksp)
{
  const GPUKSPMethod method = ((KSP_GPU *)ksp->data)->method;

  PetscFunctionBegin;
  PetscCall(KSPSetType(ksp, method == GPUKSP_BCGS ? KSPBCGS : KSPCG));
  if (method == GPUKSP_CG_SINGLE_REDUCTION) PetscCall(KSPCGUseSingleReduction(ksp, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GPUKSPCreateMethod(KSP ksp, GPUKSPMethod method)
{
  KSP_GPU *k;

  PetscFunctionBegin;
  PetscCall(PetscNew(&k));
  PetscCall(GPUKSPCreate(ksp, k, PETSC_STATIC_ARRAY_LENGTH(composed) - (method == GPUKSP_BCGS ? 2 : 0), composed));
  k->method                = method;
  k->petsc                 = method == GPUKSP_BCGS ? KSPBCGS : KSPCG;
  k->become                = Become_GPU;
  k->trueresidual          = PETSC_TRUE;
  k->halo                  = PETSC_TRUE;
  k->truenorm              = -1;
  k->prepare               = GPUKSPPrepare;
  k->solve                 = KSPSolve_GPU;
  ksp->ops->view           = KSPView_GPU;
  ksp->ops->setfromoptions = KSPSetFromOptions_GPU;
  ksp->ops->buildsolution  = KSPBuildSolution_GPU;
  ksp->ops->buildresidual  = KSPBuildResidualDefault;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  KSPGPUCG - "gpucg", the conjugate gradients of `KSPCG` for a `MATGPUCSR` matrix, with the whole solve on its device

  Options Database Keys:
+ -ksp_type gpucg                                         - use this type
. -ksp_gpucg_path (auto|persistent|graph|host_loop)       - how the solver iterates, see `KSPGPUSetPath()`
. -ksp_gpucg_variant (standard|single_reduction)          - the conjugate gradients of `KSPCG`, or of `KSPCGUseSingleReduction()`
. -ksp_gpucg_precision (double|residual_replacement)      - iterate in double, or in single precision with residual replacement; the test of convergence is in double in both
. -ksp_gpucg_halo_recomputation (true|false)              - recompute halos redundantly, if they fit, to save one grid-wide reduction an iteration; true by default
- -ksp_gpucg_true_residual (true|false)                   - compute b - A x on exit, show its norm, and warn if the recurrence has drifted away; true by default

  Level: beginner

  Notes:
  Iterates, norms, tests and reasons equal those of `KSPCG` up to rounding, but with K-cycles of `PCGPUAMG`, which are not linear, the directions are those of flexible conjugate gradients. The preconditioner is on the left; norms are preconditioned, unpreconditioned, natural and none.

  One persistent kernel runs the whole solve for matrices stored as csr, sell, sell_256, ell, dia or stencil, with `PCNONE`, `PCJACOBI`, or `PCPBJACOBI` with blocks of at most 8. The kernel runs on one
  process. It also runs on each of up to 8 processes of one host, if their devices address each other's memory. For other formats a graph of a few kernels, launched again and again, solves. For other
  preconditioners, null spaces and other sets of processes a host loop solves.

  -ksp_monitor and the residual history get their norms after the solve. With a test of your own, or a monitor that reads more than the norm, the host synchronises in every iteration.

  Unsupported cases (an operator that is not a `MATGPUCSR` matrix or on no device) fall back to `KSPCG`, with a message.

  With residual_replacement the matrix, the preconditioner and the vectors of the iteration are in single precision, and the path is graph. The residual is replaced by b - A x, in double,
  whenever it has become a hundred times smaller, at least every 300 iterations, and before convergence is accepted. Without progress, the solve continues in double. If a
  persistent kernel in double takes less time, the solver uses that kernel, and -ksp_view says so. In contrast, -mat_gpucsr_precision mixed rounds the matrix for good.

.seealso: `MATGPUCSR`, `KSPGPUBCGS`, `KSPGPUSetPath()`, `KSPGPUCGSetVariant()`, `KSPGPUSetPrecision()`, `KSPGPUSetTrueResidual()`
M*/
static PetscErrorCode KSPCreate_GPUCG(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(GPUKSPCreateMethod(ksp, GPUKSP_CG));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_PRECONDITIONED, PC_LEFT, 3));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_UNPRECONDITIONED, PC_LEFT, 2));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NATURAL, PC_LEFT, 2));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NONE, PC_LEFT, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  KSPGPUBCGS - "gpubcgs", the BiCGStab of `KSPBCGS` for a `MATGPUCSR` matrix, with the whole solve on its device

  Options Database Keys:
+ -ksp_type gpubcgs                                   - use this type
. -ksp_gpubcgs_path (auto|persistent|graph|host_loop) - how the solver iterates, see `KSPGPUSetPath()`
. -ksp_gpubcgs_halo_recomputation (true|false)        - recompute halos to save grid-wide reductions, if they fit; true by default
- -ksp_gpubcgs_true_residual (true|false)             - compute b - A x on exit, show its norm, and warn if the recurrence has drifted away; true by default

  Level: beginner

  Note:
  Iterates, norms, tests and reasons equal those of `KSPBCGS` up to rounding. The norm is preconditioned with a left `PC`, unpreconditioned with a right `PC`. Paths and unsupported cases are as
  for `KSPGPUCG`.

.seealso: `MATGPUCSR`, `KSPGPUCG`, `KSPGPUSetPath()`, `KSPGPUSetTrueResidual()`
M*/
static PetscErrorCode KSPCreate_GPUBCGS(KSP ksp)
{
  PetscFunctionBegin;
  PetscCall(GPUKSPCreateMethod(ksp, GPUKSP_BCGS));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_PRECONDITIONED, PC_LEFT, 3));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_UNPRECONDITIONED, PC_RIGHT, 2));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NONE, PC_LEFT, 1));
  PetscCall(KSPSetSupportedNorm(ksp, KSP_NORM_NONE, PC_RIGHT, 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  KSPGPUSetPath - Set the path of a `KSPGPUCG`, `KSPGPUBCGS` or `KSPGPUGMRES`

  Logically Collective

  Input Parameters:
+ ksp  - the solver
- path - one launch, a graph or a host loop; an impossible path is an error. `KSP_GPU_PATH_AUTO` takes the first possible path (graph with residual replacement or a very long row)

  Options Database Key:
. -ksp_gpucg_path (auto|persistent|graph|host_loop) - sets the path

  Level: advanced

.seealso: `KSPGPUCG`, `KSPGPUBCGS`, `KSPGPUPath`
@*/
PetscErrorCode KSPGPUSetPath(KSP ksp, KSPGPUPath path)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(ksp, KSP_CLASSID, 1);
  PetscTryMethod(ksp, "KSPGPUSetPath_C", (KSP, KSPGPUPath), (ksp, path));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  KSPGPUSetPrecision - Set the precision of a `KSPGPUCG`: double, or single with residual replacement

  Logically Collective

  Input Parameters:
+ ksp       - the solver
- precision - `KSP_GPU_DOUBLE` or `KSP_GPU_RESIDUAL_REPLACEMENT`

  Options Database Key:
. -ksp_gpucg_precision (double|residual_replacement) - sets the precision

  Level: intermediate

.seealso: `KSPGPUCG`, `KSPGPUPrecision`
@*/
PetscErrorCode KSPGPUSetPrecision(KSP ksp, KSPGPUPrecision precision)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(ksp, KSP_CLASSID, 1);
  PetscTryMethod(ksp, "KSPGPUSetPrecision_C", (KSP, KSPGPUPrecision), (ksp, precision));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  KSPGPUCGSetVariant - Set the variant of the conjugate gradients of a `KSPGPUCG`

  Logically Collective

  Input Parameters:
+ ksp     - the solver
- variant - `KSP_GPU_STANDARD` or `KSP_GPU_SINGLE_REDUCTION`

  Options Database Key:
. -ksp_gpucg_variant (standard|single_reduction) - sets the variant

  Level: intermediate

  Note:
  `KSP_GPU_SINGLE_REDUCTION` is the method of `KSPCGUseSingleReduction()`. It takes one reduction less an iteration on several processes, and is a little less accurate at the end. A graph or the host loop runs it.

.seealso: `KSPGPUCG`, `KSPGPUVariant`
@*/
PetscErrorCode KSPGPUCGSetVariant(KSP ksp, KSPGPUVariant variant)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(ksp, KSP_CLASSID, 1);
  PetscTryMethod(ksp, "KSPGPUCGSetVariant_C", (KSP, KSPGPUVariant), (ksp, variant));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  KSPGPUSetTrueResidual - Set whether a `KSPGPUCG` or `KSPGPUBCGS` computes b - A x at its end

  Logically Collective

  Input Parameters:
+ ksp     - the solver
- compute - true by default. The residual costs one product a solve

  Options Database Key:
. -ksp_gpucg_true_residual (true|false) - compute the residual

  Level: intermediate

.seealso: `KSPGPUCG`, `KSPGPUBCGS`, `KSPGPUGetTrueResidualNorm()`
@*/
PetscErrorCode KSPGPUSetTrueResidual(KSP ksp, PetscBool compute)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(ksp, KSP_CLASSID, 1);
  PetscTryMethod(ksp, "KSPGPUSetTrueResidual_C", (KSP, PetscBool), (ksp, compute));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@
  KSPGPUGetTrueResidualNorm - Get the norm of b - A x at the end of the last solve, in the norm of the test of convergence

  Not Collective

  Input Parameter:
. ksp - the solver

  Output Parameter:
. norm - the norm; negative: not computed

  Level: intermediate

.seealso: `KSPGPUCG`, `KSPGPUBCGS`, `KSPGPUSetTrueResidual()`
@*/
PetscErrorCode KSPGPUGetTrueResidualNorm(KSP ksp, PetscReal *norm)
{
  PetscFunctionBegin;
  PetscValidHeaderSpecific(ksp, KSP_CLASSID, 1);
  PetscAssertPointerCompat(norm, 2);
  *norm = -1;
  PetscTryMethod(ksp, "KSPGPUGetTrueResidualNorm_C", (KSP, PetscReal *), (ksp, norm));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The types exist in every PETSc. Without real double scalars every solve falls back, with a message */
PetscErrorCode KSPGPUInitialize_Private(void)
{
  PetscFunctionBegin;
  PetscCall(GPUKSPSolveInitialize());
  PetscCall(KSPRegister(KSPGPUCG, KSPCreate_GPUCG));
  PetscCall(KSPRegister(KSPGPUBCGS, KSPCreate_GPUBCGS));
  PetscCall(KSPRegister(KSPGPUGMRES, KSPCreate_GPUGMRES));
  PetscCall(KSPRegister(KSPGPUFGMRES, KSPCreate_GPUFGMRES));
  PetscFunctionReturn(PETSC_SUCCESS);
}

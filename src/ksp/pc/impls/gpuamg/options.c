/*
  The options of PCGPUAMG, and the functions of PCGAMG, which set the same here.
*/
#include "gpuamgimpl.h"

/* A whole number: its place in the options, and its range. most 0: the rows of the largest inverse */
typedef struct {
  const char *name, *help;
  size_t      at;
  PetscInt    least, most;
} Number;
#define AT(member) offsetof(PCGPUAMGOptions, member)
static const Number numbers[] = {
  {"-pc_gpuamg_agg_nsmooths",          "Steps of the prolongator's smoother",                          AT(o.nsmooths),    0, GPUAMG_SMOOTHS},
  {"-pc_gpuamg_aggressive_coarsening", "Levels with aggressive coarsening",                            AT(o.aggressive),  0, GPUAMG_LEVELS },
  {"-pc_gpuamg_coarse_eq_limit",       "Rows that are solved directly",                                AT(o.limit),       1, 0             },
  {"-pc_gpuamg_max_levels",            "Levels at most",                                               AT(o.levels),      1, GPUAMG_LEVELS },
  {"-pc_gpuamg_esteig_ksp_max_it",     "Steps of an eigenvalue estimate",                              AT(o.steps),       1, GPUAMG_STEPS  },
  {"-pc_gpuamg_mis_k",                 "Roots of aggregates are further apart",                        AT(o.distance[0]), 1, 8             },
  {"-pc_gpuamg_aggressive_mis_k",      "The same where coarsening is aggressive",                      AT(o.distance[1]), 1, 8             },
  {"-pc_gpuamg_smoother_degree",       "Steps of the smoother before and after the coarse correction", AT(degree),        1, GPUMG_STEPS   },
  {"-pc_gpuamg_process_eq_limit",      "A level of fewer rows a rank goes to each rank",               AT(least),         0, INT_MAX       },
  {"-pc_gpuamg_gather_limit",          "So does a level below the finest of at most so many rows",     AT(gather),        0, INT_MAX       },
  {"-pc_gpuamg_tail",                  "Rows of levels that become one dense matrix",                  AT(tail),          0, 8192          }
};

static int *Place(PC pc, const Number *n)
{
  return (int *)(void *)((char *)&((PC_GPUAMG *)pc->data)->asked + n->at);
}

static PetscErrorCode Store(PC pc, const Number *n, PetscInt value)
{
  const PetscInt most = n->most ? n->most : (PetscInt)GPUCSRMachineShared.inverse_rows;

  PetscFunctionBegin;
  PetscCheck(value >= n->least && value <= most, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_OUTOFRANGE, "%s %" PetscInt_FMT ": must be from %" PetscInt_FMT " to %" PetscInt_FMT, n->name, value, n->least, most);
  *Place(pc, n) = (int)value;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Functions of PCGAMG: the option of this name */
#define SETTER(Name, option) \
  static PetscErrorCode PCGAMGSet##Name##_GPUAMG(PC pc, PetscInt value) \
  { \
    size_t k = 0; \
\
    PetscFunctionBegin; \
    while (strcmp(numbers[k].name, option)) k++; \
    PetscCall(Store(pc, &numbers[k], value)); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
SETTER(NSmooths, "-pc_gpuamg_agg_nsmooths")
SETTER(AggressiveLevels, "-pc_gpuamg_aggressive_coarsening")
SETTER(CoarseEqLim, "-pc_gpuamg_coarse_eq_limit")
SETTER(ProcEqLim, "-pc_gpuamg_process_eq_limit")
SETTER(Levels, "-pc_gpuamg_max_levels")

static PetscErrorCode PCGAMGSetNlevels_GPUAMG(PC pc, PetscInt n)
{
  return PCGAMGSetLevels_GPUAMG(pc, PetscMin(n, GPUAMG_LEVELS));
}

static PetscErrorCode Thresholds(PC pc, const PetscReal threshold[], PetscInt n)
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;

  PetscFunctionBegin;
  for (PetscInt l = 0; l < n; l++) PetscCheck(!PetscIsNanReal(threshold[l]), PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_OUTOFRANGE, "-pc_gpuamg_threshold of level %" PetscInt_FMT " is not a number", l);
  a->asked.nthreshold = n;
  a->asked.o.drop     = GPUAMG_NEVER;
  for (PetscInt l = 0; l < n; l++) a->asked.o.threshold[l] = (double)threshold[l];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCGAMGSetThreshold_GPUAMG(PC pc, PetscReal threshold[], PetscInt n)
{
  PetscFunctionBegin;
  if (n < 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Thresholds(pc, threshold, PetscMin(n, GPUAMG_LEVELS)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCGAMGSetThresholdScale_GPUAMG(PC pc, PetscReal scale)
{
  PetscFunctionBegin;
  ((PC_GPUAMG *)pc->data)->asked.scale = scale;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCGAMGSetReuseInterpolation_GPUAMG(PC pc, PetscBool reuse)
{
  PetscFunctionBegin;
  ((PC_GPUAMG *)pc->data)->reuse = reuse;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const struct {
  const char *name;
  void (*set)(void);
} setters[] = {
  {"PCGAMGSetNSmooths_C",           (void (*)(void))PCGAMGSetNSmooths_GPUAMG          },
  {"PCGAMGSetAggressiveLevels_C",   (void (*)(void))PCGAMGSetAggressiveLevels_GPUAMG  },
  {"PCGAMGSetCoarseEqLim_C",        (void (*)(void))PCGAMGSetCoarseEqLim_GPUAMG       },
  {"PCGAMGSetNlevels_C",            (void (*)(void))PCGAMGSetNlevels_GPUAMG           },
  {"PCGAMGSetThreshold_C",          (void (*)(void))PCGAMGSetThreshold_GPUAMG         },
  {"PCGAMGSetThresholdScale_C",     (void (*)(void))PCGAMGSetThresholdScale_GPUAMG    },
  {"PCGAMGSetProcEqLim_C",          (void (*)(void))PCGAMGSetProcEqLim_GPUAMG         },
  {"PCGAMGSetReuseInterpolation_C", (void (*)(void))PCGAMGSetReuseInterpolation_GPUAMG},
  {"PCGPUAMGGetOperator_C",         (void (*)(void))PCGPUAMGGetOperator_GPUAMG        },
  {"PCSetCoordinates_C",            (void (*)(void))PCSetCoordinates_GPUAMG           }
};

PetscErrorCode PCGPUAMGSettersCompose_Private(PC pc, PetscBool compose)
{
  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(setters); k++) PetscCall(PetscObjectComposeFunction((PetscObject)pc, setters[k].name, compose ? setters[k].set : NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const char *const cycles[] = {"1", "2", "k"};

const char *const PCGPUAMGSmoothers[] = {"jacobi", "pbjacobi", "rowl1", PCILU};

PetscErrorCode PCGPUAMGSetFromOptions_Private(PC pc, GPUCSROptionItems PetscOptionsObject)
{
  PC_GPUAMG *a                        = (PC_GPUAMG *)pc->data;
  PetscReal  threshold[GPUAMG_LEVELS] = {0};
  PetscInt   n = GPUAMG_LEVELS, smoother = a->asked.o.smoother, cycle = a->asked.cycles - 1;
  PetscBool  set;

  PetscFunctionBegin;
  PetscOptionsHeadBegin(PetscOptionsObject, "PCGPUAMG options");
  PetscCall(PetscOptionsRealArray("-pc_gpuamg_threshold", "Relative threshold for the strength graph, a number a level; negative: all entries", "PCGPUAMG", threshold, &n, &set));
  PetscCall(PetscOptionsReal("-pc_gpuamg_threshold_scale", "From one level to the next where none is given", "PCGPUAMG", a->asked.scale, &a->asked.scale, NULL));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(numbers); k++) {
    PetscInt value = *Place(pc, &numbers[k]);

    PetscCall(PetscOptionsInt(numbers[k].name, numbers[k].help, "PCGPUAMG", value, &value, NULL));
    PetscCall(Store(pc, &numbers[k], value));
  }
  PetscCall(PetscOptionsBool("-pc_gpuamg_reuse_interpolation", "Keep prolongators with new values", "PCGPUAMG", a->reuse, &a->reuse, NULL));
  PetscCall(PetscOptionsEList("-pc_gpuamg_smoother", "Inverse in the smoother's iteration", "PCGPUAMG", PCGPUAMGSmoothers, GPUAMG_SMOOTHERS, PCGPUAMGSmoothers[smoother], &smoother, NULL));
  PetscCall(PetscOptionsEList("-pc_gpuamg_precision", "Values of levels", "PCGPUAMG", PCGPUAMGPrecisions, 3, PCGPUAMGPrecisions[a->asked.precision], &a->asked.precision, NULL));
  PetscCall(PetscOptionsEList("-pc_gpuamg_cycles", "1: V cycles, 2: W cycles, k: K-cycles", "PCGPUAMG", cycles, GPUAMG_K, cycles[cycle], &cycle, NULL));
  PetscOptionsHeadEnd();
  a->asked.o.smoother = (int)smoother;
  a->asked.cycles     = cycle + 1;
  if (set && n > 0) PetscCall(Thresholds(pc, threshold, n));
  PetscCall(PCGPUAMGSmootherSetFromOptions_Private(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: an error if options differ between ranks, because the ranks would wait for each other for ever */
PetscErrorCode PCGPUAMGOptionsSame_Private(PC pc)
{
  const PC_GPUAMG *a                                            = (const PC_GPUAMG *)pc->data;
  int64_t          mine[2 + sizeof(a->asked) / sizeof(int64_t)] = {(int64_t)a->reuse};
  int              differs;

  PetscFunctionBegin;
  memcpy(mine + 1, &a->asked, sizeof(a->asked));
  PetscCall(GPUCSRSameOnAllRanks(PetscObjectComm((PetscObject)pc), PETSC_STATIC_ARRAY_LENGTH(mine), mine, &differs));
  PetscCheck(differs == PETSC_STATIC_ARRAY_LENGTH(mine), PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_INCOMP, "Options -pc_gpuamg_... are not the same on all ranks: they must be");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The options of PCGPUAMG, and the functions of PCGAMG, which set the same here.
*/
#include "gpuamgimpl.h"

static PetscErrorCode Range(PC pc, const char name[], PetscInt value, PetscInt least, PetscInt most)
{
  PetscFunctionBegin;
  PetscCheck(value >= least && value <= most, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_OUTOFRANGE, "-pc_gpuamg_%s %" PetscInt_FMT ": must be from %" PetscInt_FMT " to %" PetscInt_FMT, name, value, least, most);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Checks the range of an option and stores its value */
static PetscErrorCode Set(PC pc, const char name[], PetscInt value, PetscInt least, PetscInt most, int *number)
{
  PetscFunctionBegin;
  PetscCall(Range(pc, name, value, least, most));
  *number = (int)value;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCGAMGSetNSmooths_GPUAMG(PC pc, PetscInt n)
{
  PetscFunctionBegin;
  PetscCall(Set(pc, "agg_nsmooths", n, 0, GPUAMG_SMOOTHS, &((PC_GPUAMG *)pc->data)->asked.o.nsmooths));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCGAMGSetAggressiveLevels_GPUAMG(PC pc, PetscInt n)
{
  PetscFunctionBegin;
  PetscCall(Set(pc, "aggressive_coarsening", n, 0, GPUAMG_LEVELS, &((PC_GPUAMG *)pc->data)->asked.o.aggressive));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCGAMGSetCoarseEqLim_GPUAMG(PC pc, PetscInt n)
{
  PetscFunctionBegin;
  PetscCall(Set(pc, "coarse_eq_limit", n, 1, (PetscInt)GPUCSRMachineShared.inverse_rows, &((PC_GPUAMG *)pc->data)->asked.o.limit));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCGAMGSetProcEqLim_GPUAMG(PC pc, PetscInt n)
{
  PetscFunctionBegin;
  PetscCall(Range(pc, "process_eq_limit", n, 0, PETSC_MAX_INT));
  ((PC_GPUAMG *)pc->data)->asked.least = n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCGAMGSetNlevels_GPUAMG(PC pc, PetscInt n)
{
  PetscFunctionBegin;
  PetscCall(Set(pc, "max_levels", PetscMin(n, GPUAMG_LEVELS), 1, GPUAMG_LEVELS, &((PC_GPUAMG *)pc->data)->asked.o.levels));
  PetscFunctionReturn(PETSC_SUCCESS);
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
  PC_GPUAMG     *a                        = (PC_GPUAMG *)pc->data;
  GPUAMGOptions *o                        = &a->asked.o;
  PetscReal      threshold[GPUAMG_LEVELS] = {0};
  PetscInt n = GPUAMG_LEVELS, smoother = o->smoother, cycle = a->asked.cycles - 1, v[] = {o->nsmooths, o->aggressive, o->limit, o->levels, o->steps, o->distance[0], o->distance[1], a->asked.degree, a->asked.tail, a->asked.least, a->asked.gather};
  static const char names[][24] = {"agg_nsmooths", "aggressive_coarsening", "coarse_eq_limit", "max_levels", "esteig_ksp_max_it", "mis_k", "aggressive_mis_k", "smoother_degree", "tail", "process_eq_limit", "gather_limit"};
  const PetscInt    range[][2]  = {
        {0, GPUAMG_SMOOTHS                            },
        {0, GPUAMG_LEVELS                             },
        {1, (PetscInt)GPUCSRMachineShared.inverse_rows},
        {1, GPUAMG_LEVELS                             },
        {1, GPUAMG_STEPS                              },
        {1, 8                                         },
        {1, 8                                         },
        {1, GPUMG_STEPS                               },
        {0, 8192                                      },
        {0, PETSC_MAX_INT                             },
        {0, PETSC_MAX_INT                             }
  };
  PetscBool set;

  PetscFunctionBegin;
  PetscOptionsHeadBegin(PetscOptionsObject, "PCGPUAMG options");
  PetscCall(PetscOptionsRealArray("-pc_gpuamg_threshold", "Relative threshold for the strength graph, a number a level; negative: all entries", "PCGPUAMG", threshold, &n, &set));
  PetscCall(PetscOptionsReal("-pc_gpuamg_threshold_scale", "From one level to the next where none is given", "PCGPUAMG", a->asked.scale, &a->asked.scale, NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_agg_nsmooths", "Steps of the prolongator's smoother", "PCGPUAMG", v[0], &v[0], NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_aggressive_coarsening", "Levels with aggressive coarsening", "PCGPUAMG", v[1], &v[1], NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_coarse_eq_limit", "Rows that are solved directly", "PCGPUAMG", v[2], &v[2], NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_max_levels", "Levels at most", "PCGPUAMG", v[3], &v[3], NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_esteig_ksp_max_it", "Steps of an eigenvalue estimate", "PCGPUAMG", v[4], &v[4], NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_mis_k", "Roots of aggregates are further apart", "PCGPUAMG", v[5], &v[5], NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_aggressive_mis_k", "The same where coarsening is aggressive", "PCGPUAMG", v[6], &v[6], NULL));
  PetscCall(PetscOptionsBool("-pc_gpuamg_reuse_interpolation", "Keep prolongators with new values", "PCGPUAMG", a->reuse, &a->reuse, NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_smoother_degree", "Steps of the smoother before and after the coarse correction", "PCGPUAMG", v[7], &v[7], NULL));
  PetscCall(PetscOptionsEList("-pc_gpuamg_smoother", "Inverse in the smoother's iteration", "PCGPUAMG", PCGPUAMGSmoothers, GPUAMG_SMOOTHERS, PCGPUAMGSmoothers[smoother], &smoother, NULL));
  PetscCall(PetscOptionsEList("-pc_gpuamg_precision", "Values of levels", "PCGPUAMG", PCGPUAMGPrecisions, 3, PCGPUAMGPrecisions[a->asked.precision], &a->asked.precision, NULL));
  PetscCall(PetscOptionsEList("-pc_gpuamg_cycles", "1: V cycles, 2: W cycles, k: K-cycles", "PCGPUAMG", cycles, GPUAMG_K, cycles[cycle], &cycle, NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_process_eq_limit", "A level of fewer rows a rank goes to each rank", "PCGPUAMG", v[9], &v[9], NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_gather_limit", "So does a level below the finest of at most so many rows", "PCGPUAMG", v[10], &v[10], NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_tail", "Rows of levels that become one dense matrix", "PCGPUAMG", v[8], &v[8], NULL));
  PetscOptionsHeadEnd();
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(v); k++) PetscCall(Range(pc, names[k], v[k], range[k][0], range[k][1]));
  o->smoother     = (int)smoother;
  o->nsmooths     = (int)v[0];
  o->aggressive   = (int)v[1];
  o->limit        = (int)v[2];
  o->levels       = (int)v[3];
  o->steps        = (int)v[4];
  o->distance[0]  = (int)v[5];
  o->distance[1]  = (int)v[6];
  a->asked.degree = v[7];
  a->asked.tail   = v[8];
  a->asked.least  = v[9];
  a->asked.gather = v[10];
  a->asked.cycles = cycle + 1;
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

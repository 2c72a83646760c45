/*
  The options -mg_levels_... choose the smoothers of levels. A message names an option without effect.
*/
#include "gpuamgimpl.h"

/* d = ca d + cb D^-1 (b - A x), x += d */
static void Chebyshev(double from, double to, int degree, GPUMGSmoother *m)
{
  const double theta = 0.5 * (to + from), delta = 0.5 * (to - from), sigma = theta / delta;
  double       rho = 1 / sigma;

  for (int k = 0; k < degree; k++) {
    const double next = 1 / (2 * sigma - rho);

    m->step[k] = k ? (GPUMGStep){next * rho, 2 * next / delta} : (GPUMGStep){0, 1 / theta};
    if (k) rho = next;
  }
}

#define COARSE_STEPS 16 /* of the smoother that replaces the coarse inverse */

/* The smoother of a level. smooth: in place of the diagonal's inverse, if there is memory; lambda: the largest eigenvalue; last: of the coarsest level. The level keeps its memory */
void PCGPUAMGSmoother_Private(const PC_GPUAMG *a, const GPUCSRBuffer *dinv, const GPUCSRBuffer *smooth, int bs, Mat_GPUCSRFactor *factor, double lambda, PetscBool last, GPUMGSmoother *m)
{
  const int steps = last ? COARSE_STEPS : a->used.degree;

  *m = (GPUMGSmoother){
    .steps = steps, .bs = smooth->p && a->used.o.smoother == GPUAMG_BY_BLOCKS ? bs : 1, .M = {smooth->p ? smooth->p : dinv->p, 0}
  };
  if (a->used.o.smoother == GPUAMG_BY_FACTOR) *m = (GPUMGSmoother){.steps = steps, .factors = PETSC_TRUE, .factor = factor};
  if (a->used.smoother.richardson)
    for (int k = 0; k < steps; k++) m->step[k] = (GPUMGStep){0, (double)a->used.smoother.scale};
  else if (a->used.smoother.given) Chebyshev((double)a->used.smoother.bounds[0], (double)a->used.smoother.bounds[1], steps, m);
  else Chebyshev((double)a->used.smoother.part[0] * lambda, (double)a->used.smoother.part[1] * lambda, steps, m);
}

static PetscErrorCode SolveWithFactor(GPUAMG *h, int l, void *f, const double *from, double *to)
{
  (void)h;
  (void)l;
  return GPUCSRFactorSolve((Mat_GPUCSRFactor *)f, PETSC_FALSE, from, to);
}

/* Factors the levels of a hierarchy that is up to date, except an exact coarsest level. Chebyshev's bounds need the largest eigenvalues */
PetscErrorCode PCGPUAMGFactors_Private(PC_GPUAMG *a)
{
  GPUAMG *h = &a->h;

  PetscFunctionBegin;
  for (int l = 0; l < h->levels - (h->exact ? 1 : 0) && h->o.smoother == GPUAMG_BY_FACTOR && !h->problem; l++) {
    PetscBool good;

    h->at = l;
    PetscCall(GPUCSRFactorMake(&h->level[l].A, l ? h->level[l - 1].crows.longest : h->level[l].plan->features.max, &a->factor[l], &good));
    if (!good) h->problem = GPUAMG_PIVOT;
    else if (!a->used.smoother.richardson && !a->used.smoother.given) PetscCall(GPUAMGBound(h, l, SolveWithFactor, a->factor[l]));
  }
  PetscCall(GPUAMGTemporaries(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define LEVELS "-mg_levels_"

/* Is KSP or PC type `name` one of two? */
static PetscErrorCode Type(PC pc, const char option[], const char first[], const char second[], PetscBool *isfirst, PetscBool *issecond)
{
  char      name[64];
  PetscBool set;

  PetscFunctionBegin;
  PetscCall(PetscOptionsGetString(((PetscObject)pc)->options, ((PetscObject)pc)->prefix, option, name, sizeof(name), &set));
  *isfirst = *issecond = PETSC_FALSE;
  if (!set) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrcmp(name, first, isfirst));
  PetscCall(PetscStrcmp(name, second, issecond));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGPUAMGSmootherSetFromOptions_Private(PC pc)
{
  PC_GPUAMG   *a       = (PC_GPUAMG *)pc->data;
  PetscOptions options = ((PetscObject)pc)->options;
  const char  *prefix  = ((PetscObject)pc)->prefix;
  PetscReal    part[4] = {0, a->asked.smoother.part[0], 0, a->asked.smoother.part[1]}, bounds[2];
  PetscInt     n = 4, two = 2, degree = a->asked.degree;
  PetscBool    chebyshev, richardson, set, diagonal, blocks, sizes, factor;

  PetscFunctionBegin;
  a->told = PETSC_FALSE;
  PetscCall(Type(pc, LEVELS "ksp_type", KSPCHEBYSHEV, KSPRICHARDSON, &chebyshev, &richardson));
  if (chebyshev || richardson) a->asked.smoother.richardson = richardson;
  PetscCall(Type(pc, LEVELS "pc_type", PCJACOBI, PCPBJACOBI, &diagonal, &blocks));
  PetscCall(Type(pc, LEVELS "pc_jacobi_type", "rowl1", "diagonal", &sizes, &set));
  PetscCall(Type(pc, LEVELS "pc_type", PCILU, "", &factor, &set));
  if (diagonal || blocks || sizes || factor) a->asked.o.smoother = factor ? GPUAMG_BY_FACTOR : blocks ? GPUAMG_BY_BLOCKS : sizes ? GPUAMG_BY_SIZES : GPUAMG_BY_DIAGONAL;
  PetscCall(PetscOptionsGetReal(options, prefix, LEVELS "ksp_richardson_scale", &a->asked.smoother.scale, NULL));
  PetscCall(PetscOptionsGetInt(options, prefix, LEVELS "ksp_max_it", &degree, NULL));
  PetscCheck(degree >= 1 && degree <= GPUMG_STEPS, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_OUTOFRANGE, LEVELS "ksp_max_it %" PetscInt_FMT ": must be from 1 to %d", degree, GPUMG_STEPS);
  a->asked.degree = (int)degree;
  PetscCall(PetscOptionsGetRealArray(options, prefix, LEVELS "ksp_chebyshev_esteig", part, &n, &set));
  if (set && n == 4 && part[0] == 0 && part[2] == 0) {
    PetscCheck(part[1] > 0 && part[3] > part[1], PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_OUTOFRANGE, LEVELS "ksp_chebyshev_esteig: the second number must be above 0, and the fourth above it");
    a->asked.smoother.part[0] = part[1];
    a->asked.smoother.part[1] = part[3];
  }
  PetscCall(PetscOptionsGetRealArray(options, prefix, LEVELS "ksp_chebyshev_eigenvalues", bounds, &two, &set));
  if (set) {
    PetscCheck(two == 2 && bounds[0] > 0 && bounds[1] > bounds[0], PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_OUTOFRANGE, LEVELS "ksp_chebyshev_eigenvalues: must be two numbers above 0, the smallest and the largest");
    a->asked.smoother.given     = PETSC_TRUE;
    a->asked.smoother.bounds[0] = bounds[0];
    a->asked.smoother.bounds[1] = bounds[1];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the device's smoother follow this option? Chebyshev's and Richardson's iterations have options of their own */
static PetscBool Done(PetscBool richardson, const char option[], const char value[])
{
  static const char *const one[][2] = {
    {"ksp_type",       KSPCHEBYSHEV },
    {"ksp_type",       KSPRICHARDSON},
    {"ksp_norm_type",  "none"       },
    {"pc_type",        PCJACOBI     },
    {"pc_type",        PCPBJACOBI   },
    {"pc_type",        PCILU        },
    {"pc_jacobi_type", "rowl1"      },
    {"pc_jacobi_type", "diagonal"   }
  };
  double part[4];

  if (!strncmp(option, "ksp_chebyshev_", 14) && richardson) return PETSC_FALSE;
  if (!strcmp(option, "ksp_max_it") || !strcmp(option, "ksp_chebyshev_eigenvalues")) return PETSC_TRUE;
  if (!strcmp(option, "ksp_richardson_scale")) return richardson;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(one); k++)
    if (!strcmp(option, one[k][0]) && !strcmp(value, one[k][1])) return PETSC_TRUE;
  return (PetscBool)(!strcmp(option, "ksp_chebyshev_esteig") && sscanf(value, "%lf,%lf,%lf,%lf", &part[0], &part[1], &part[2], &part[3]) == 4 && part[0] == 0 && part[2] == 0);
}

/* A message for each option of levels and of the coarse solver without effect, once in the life of a PC for each */
PetscErrorCode PCGPUAMGSmootherTell_Private(PC pc)
{
  PC_GPUAMG   *a      = (PC_GPUAMG *)pc->data;
  const char  *prefix = ((PetscObject)pc)->prefix ? ((PetscObject)pc)->prefix : "";
  const size_t before = strlen(prefix), levels = sizeof(LEVELS) - 2;
  char        *all, text[512], **words;
  PetscMPIInt  rank;
  int          n;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(PetscObjectComm((PetscObject)pc), &rank));
  if (a->inner || a->told || rank) PetscFunctionReturn(PETSC_SUCCESS);
  a->told = PETSC_TRUE; /* until PCSetFromOptions() */
  PetscCall(PetscOptionsGetAll(((PetscObject)pc)->options, &all));
  PetscCall(PetscStrToArray(all, ' ', &n, &words));
  for (int k = 0; k < n; k++) {
    const char *option = words[k] + 1 + before;
    PetscBool   level, coarse;

    if (words[k][0] != '-' || strncmp(words[k] + 1, prefix, before)) continue;
    level  = (PetscBool)!strncmp(option, LEVELS + 1, levels);
    coarse = (PetscBool)!strncmp(option, "mg_coarse_", 10);
    if (!coarse && (!level || Done(a->asked.smoother.richardson, option + levels, k + 1 < n ? words[k + 1] : ""))) continue;
    if (strstr(a->without, words[k])) continue;
    PetscCall(PetscStrlcat(a->without, words[k], sizeof(a->without)));
    PetscCall(PetscStrlcat(a->without, " ", sizeof(a->without)));
    PetscCall(PetscSNPrintf(text, sizeof(text), "%s has no effect on %s of PC type gpuamg: %s", words[k], coarse ? "the coarse solver" : "the levels", coarse ? "it is a dense inverse, or the smoother" : "their smoothers on the device are Chebyshev's and Richardson's iterations with Jacobi, point-block Jacobi or ILU(0) (docs/solvers.md)"));
    PetscCall(GPUCSRWarn(text));
  }
  PetscCall(PetscStrToArrayDestroy(n, words));
  PetscCall(PetscFree(all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

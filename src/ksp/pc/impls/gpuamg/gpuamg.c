/*
  PCGPUAMG: smoothed aggregation whose hierarchy (blackbox/amg) is made of the matrix on its device and stays there, applied by the cycles that PCMG has on the device (../mg/cycle.c).
*/
#include <petsc/private/pcimpl.h>  /* a PC type: its operations and data */
#include <petsc/private/matimpl.h> /* the type and the state of the operator */
#include "../../../../sys/gpucsrsys.h"
#include "../../../../mat/impls/gpucsr/blackbox/amg/amg.h"
#include "gpuamg.h"

typedef struct _n_PC_GPUAMG PC_GPUAMG;
struct _n_PC_GPUAMG {
  GPUAMGOptions    o;
  PetscInt         nthreshold, degree, cycles, tail;
  PetscReal        scale;
  PetscBool        reuse;
  GPUAMG           h;
  GPUMGCycle       cycle, transposed;
  PetscBool        taken, takent; /* the cycles are those of the hierarchy */
  GPUCSROperator   matrix;        /* that the hierarchy was made of */
  const void      *data;          /* of its plan's first array */
  PetscObjectId    near;          /* near null space */
  PetscObjectState nearstate;
  PetscBool        changed; /* options, since the hierarchy was made */
  PetscInt         version; /* another one whenever the cycle is another one */
  PetscInt         built, refreshed;
  GPUCSREvent      event;
  GPUCSRLiving     living;
};
static PetscErrorCode   ForgetLiving(void *);
static GPUCSRLivingList living = {GPUCSR_FINAL_PC, ForgetLiving, NULL};

/* ---- the cycle ---- */

/* The cycle's own memory goes; what it has of the hierarchy is the hierarchy's */
static PetscErrorCode CycleDestroy(GPUMGCycle *c)
{
  PetscFunctionBegin;
  for (int l = 0; l < GPUMG_LEVELS; l++) c->level[l].down.M = (GPUCSRBuffer){NULL, 0};
  c->inverse = (GPUCSRBuffer){NULL, 0};
  PetscCall(GPUMGCycleDestroy(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Chebyshev's iteration for eigenvalues of D^-1 A from 0.1 to 1.1 times the largest */
static void Chebyshev(double lambda, int degree, GPUMGSmoother *m)
{
  const double theta = 0.6 * lambda, delta = 0.5 * lambda, sigma = theta / delta;
  double       rho = 1 / sigma;

  m->steps = degree;
  for (int k = 0; k < degree; k++) {
    const double next = 1 / (2 * sigma - rho);

    m->step[k] = k ? (GPUMGStep){next * rho, 2 * next / delta} : (GPUMGStep){0, 1 / theta};
    if (k) rho = next;
  }
}

static GPUMGMatrix MatrixOf(GPUCSRDevice dev, GPUCSRPlan *plan, const GPUCSRStorage *csr)
{
  const GPUMGMatrix m = {
    .o = {.dev = dev, .plan = plan, .csr = csr}
  };

  return m;
}

/* Steps of a smoother that solves where there is no inverse */
#define COARSE_STEPS 16

/* The cycle of the hierarchy, or of the transposed one, whose finest matrix is o */
static PetscErrorCode CycleFill(PC_GPUAMG *a, const GPUCSROperator *o, PetscBool transposed, GPUMGCycle *c)
{
  GPUAMG *h = &a->h;

  PetscFunctionBegin;
  if (c->dev) PetscCall(GPUMGCycleForget(c));
  c->dev    = h->dev;
  c->type   = PC_MG_MULTIPLICATIVE;
  c->levels = h->levels;
  c->cycles = 1;
  c->size   = 1;
  c->exact  = (PetscBool)h->exact;
  if (h->exact) {
    const GPUAMGMemory *inverse = transposed ? &h->inverseT : &h->inverse;

    c->inverse = (GPUCSRBuffer){inverse->p, inverse->bytes};
  }
  for (int k = 0; k < h->levels; k++) {
    GPUAMGLevel *G = &h->level[k];
    GPUMGLevel  *L = &c->level[h->levels - 1 - k];

    L->n      = G->n;
    L->cycles = (int)a->cycles;
    L->two    = PETSC_FALSE;
    if (!k) L->A = (GPUMGMatrix){.A = o->A, .o = *o};
    else L->A = transposed ? MatrixOf(h->dev, &G->planT, &G->T) : MatrixOf(h->dev, &G->own, &G->A);
    if (k + 1 < h->levels) {
      L->P = MatrixOf(h->dev, &G->planP, &G->P[h->o.nsmooths]);
      L->R = MatrixOf(h->dev, &G->planR, &G->R);
    }
    L->down = (GPUMGSmoother){
      .bs = 1, .M = {G->dinv.p, G->dinv.bytes}
    };
    Chebyshev(G->lambda, k + 1 < h->levels ? (int)a->degree : COARSE_STEPS, &L->down);
    PetscCall(GPUCSRBufferGrow(h->dev, GPUMGCycleVectorBytes(L->n), "vectors of a multigrid level", &L->memory));
    GPUMGCycleVectors(L);
  }
  PetscCall(GPUMGTailMake(c, (int)a->tail));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- set-up ---- */

static PetscErrorCode Forget(PC_GPUAMG *a)
{
  GPUCSRDevice dev = a->cycle.dev ? a->cycle.dev : a->h.dev;

  PetscFunctionBegin;
  if (a->event && dev && !dev->failed[0]) PetscCall(dev->ops->eventdestroy(dev->id, a->event));
  a->event = NULL;
  PetscCall(CycleDestroy(&a->cycle));
  PetscCall(CycleDestroy(&a->transposed));
  PetscCall(GPUAMGDestroy(&a->h));
  a->taken = a->takent = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Check(PC pc)
{
  Mat         A = pc->pmat;
  PetscBool   ours, several;
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)pc), &size));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJGPUCSR, &ours));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATMPIAIJGPUCSR, &several));
  PetscCheck(!several && size == 1, PetscObjectComm((PetscObject)pc), PETSC_ERR_SUP, "PC type gpuamg is for one process: on several take -pc_type gamg (PCGAMG), whose products are on the devices");
  PetscCheck(ours, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_WRONG, "PC type gpuamg needs a matrix of type %s, not %s: take -mat_type gpucsr, or -pc_type gamg (PCGAMG)", MATGPUCSR, ((PetscObject)A)->type_name);
  PetscCheck(A->rmap->n == A->cmap->n, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_SIZ, "PC type gpuamg needs a square matrix, not one of %" PetscInt_FMT " rows and %" PetscInt_FMT " columns", A->rmap->n, A->cmap->n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode NearRows(MatNullSpace near, PetscInt n, PetscInt ns, PetscBool constant, const Vec v[], double *rows)
{
  const PetscScalar *x;

  PetscFunctionBegin;
  (void)near;
  for (PetscInt c = 0; c < ns; c++) {
    const PetscBool one = (PetscBool)(constant && c == 0);

    if (!one) PetscCall(VecGetArrayRead(v[c - (PetscInt)constant], &x));
    for (PetscInt i = 0; i < n; i++) rows[i * ns + c] = one ? 1 : (double)PetscRealPart(x[i]);
    if (!one) PetscCall(VecRestoreArrayRead(v[c - (PetscInt)constant], &x));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The near null space of the matrix on the device; without one basis is NULL, and constants are taken */
static PetscErrorCode Near(PC pc, GPUCSRDevice dev, PetscInt *ns, GPUCSRBuffer *basis)
{
  const PetscInt n = pc->pmat->rmap->n;
  MatNullSpace   near;
  PetscBool      constant;
  const Vec     *v;
  PetscInt       count;
  double        *rows;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *ns = 0;
  PetscCall(MatGetNearNullSpace(pc->pmat, &near));
  if (!near) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatNullSpaceGetVecs(near, &constant, &count, &v));
  *ns = count + (PetscInt)constant;
  PetscCheck(*ns <= GPUAMG_VECTORS, PetscObjectComm((PetscObject)pc), PETSC_ERR_SUP, "PC type gpuamg takes a near null space of at most %d vectors, not %" PetscInt_FMT, GPUAMG_VECTORS, *ns);
  if (!*ns) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRBufferGrow(dev, sizeof(double) * (size_t)n * (size_t)*ns, "a near null space", basis));
  PetscCall(PetscMalloc1((size_t)n * (size_t)*ns, &rows));
  ierr = NearRows(near, n, *ns, constant, v, rows);
  if (!ierr) ierr = GPUCSRUpload(dev, basis->p, GPUCSR_DOUBLE, rows, GPUCSR_DOUBLE, (size_t)n * (size_t)*ns, PETSC_FALSE, dev->stream, NULL);
  PetscCall(PetscFree(rows));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The hierarchy of o: refreshed where its pattern and what was asked for are as they were, and nothing of the aggregates depends on values */
static PetscErrorCode Hierarchy(PC pc, const GPUCSROperator *o)
{
  PC_GPUAMG           *a = (PC_GPUAMG *)pc->data;
  const GPUCSRStorage *csr;
  GPUAMGOptions        options = a->o;
  MatNullSpace         near;
  PetscObjectId        id    = 0;
  PetscObjectState     state = 0;
  PetscBool            same, strong = PETSC_FALSE;
  PetscInt             bs, ns;
  GPUCSRBuffer         basis = {NULL, 0};
  PetscErrorCode       ierr;

  PetscFunctionBegin;
  PetscCall(MatGetNearNullSpace(pc->pmat, &near));
  if (near) PetscCall(PetscObjectGetId((PetscObject)near, &id));
  if (near) PetscCall(PetscObjectStateGet((PetscObject)near, &state));
  for (PetscInt l = a->nthreshold; l < GPUAMG_LEVELS; l++) options.threshold[l] = options.threshold[l - 1] * (double)a->scale;
  for (int l = 0; l < GPUAMG_LEVELS; l++) strong = (PetscBool)(strong || options.threshold[l] >= 0);
  PetscCall(MatGPUCSROperatorBegin_Private(o));
  PetscCall(MatGPUCSROperatorCSR_Private(o, NULL, &csr));
  same = (PetscBool)(a->taken && !a->changed && !a->h.problem && a->matrix.A == o->A && a->h.dev == o->dev && a->matrix.version.pattern == o->version.pattern && a->near == id && a->nearstate == state);
  if (same && (a->reuse || !strong)) {
    PetscCall(GPUAMGRefresh(&a->h, csr, o->plan, (GPUCSRBool)a->reuse));
    a->refreshed++;
  } else {
    PetscCall(Forget(a));
    PetscCall(MatGetBlockSize(pc->pmat, &bs));
    PetscCheck(bs <= GPUAMG_VECTORS, PetscObjectComm((PetscObject)pc), PETSC_ERR_SUP, "PC type gpuamg takes blocks of at most %d rows, not %" PetscInt_FMT, GPUAMG_VECTORS, bs);
    ierr = Near(pc, o->dev, &ns, &basis);
    if (!ierr) ierr = GPUAMGSetUp(&a->h, &options, csr, o->plan, (int)bs, (int)ns, (const double *)basis.p);
    PetscCall(GPUCSRBufferFree(o->dev, &basis));
    PetscCall(ierr);
    a->built++;
  }
  a->near      = id;
  a->nearstate = state;
  a->changed   = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetUpSteps(PC pc, const GPUCSROperator *o)
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;

  PetscFunctionBegin;
  PetscCall(Hierarchy(pc, o));
  a->takent = PETSC_FALSE;
  if (a->h.problem) PetscFunctionReturn(PETSC_SUCCESS);
  GPUAMGPhase(&a->h, GPUAMG_BUILD, CycleFill(a, o, PETSC_FALSE, &a->cycle));
  a->matrix = *o;
  a->data   = o->plan->A.array[0].data;
  a->taken  = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Send(Mat A, GPUCSROperator *o, char why[], size_t len)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSROperatorSend_Private(A));
  PetscCall(MatGPUCSROperatorGet_Private(A, o, why, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCSetUp_GPUAMG(PC pc)
{
  PC_GPUAMG     *a        = (PC_GPUAMG *)pc->data;
  char           why[256] = "";
  GPUCSROperator o;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(Check(pc));
  a->version++;
  pc->failedreason = PC_NOERROR;
  if (!pc->pmat->rmap->n) PetscFunctionReturn(PETSC_SUCCESS);
  GPUAMGPhase(&a->h, GPUAMG_SEND, Send(pc->pmat, &o, why, sizeof(why)));
  PetscCheck(o.dev, PetscObjectComm((PetscObject)pc), PETSC_ERR_SUP, "PC type gpuamg needs its matrix on a device, but %s: take -pc_type gamg (PCGAMG)", why);
  PetscCheck(GPUCSRVectorType(o.plan->A.precision) == GPUCSR_DOUBLE, PetscObjectComm((PetscObject)pc), PETSC_ERR_SUP, "PC type gpuamg needs a matrix whose vectors are double, not of -mat_gpucsr_precision single");
  ierr = SetUpSteps(pc, &o);
  if (ierr) PetscCall(Forget(a));
  PetscCall(ierr);
  if (a->h.problem) {
    const PetscBool nan = (PetscBool)((a->h.problem & GPUAMG_NAN) != 0);

    PetscCall(PetscInfo(pc, "Level %d has %s\n", a->h.at, nan ? "an entry, or an eigenvalue, that is no number" : "a row whose entry on the diagonal is zero, and others are not"));
    pc->failedreason = nan ? PC_SUBPC_ERROR : PC_FACTOR_NUMERIC_ZEROPIVOT;
    a->taken         = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- applications ---- */

/* The matrix may have been moved since, or its values be others: the cycle's finest level is as it is now */
static PetscErrorCode Current(PC pc)
{
  PC_GPUAMG     *a        = (PC_GPUAMG *)pc->data;
  char           why[256] = "";
  GPUCSROperator o;

  PetscFunctionBegin;
  if (!a->taken) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSROperatorGet_Private(a->matrix.A, &o, why, sizeof(why)));
  if (o.dev != a->h.dev) {
    PetscCall(Forget(a));
    PetscCall(PCSetUp_GPUAMG(pc));
  } else if (o.plan->A.array[0].data != a->data || memcmp(&o.version, &a->matrix.version, sizeof(o.version))) {
    a->matrix                           = o;
    a->data                             = o.plan->A.array[0].data;
    a->cycle.level[a->h.levels - 1].A.o = o;
    a->h.level[0].plan                  = o.plan;
    a->takent                           = PETSC_FALSE;
    a->version++;
    PetscCall(GPUMGCycleForget(&a->cycle));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGPUAMGCycleGet_Private(PC pc, GPUMGCycle **c, PetscInt *version)
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;

  PetscFunctionBegin;
  *c = NULL;
  if (!pc->setupcalled || !a->taken) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Current(pc));
  *version = a->version;
  if (a->taken) *c = &a->cycle;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of a hierarchy that could not be made: no number, as PETSc's factorizations give */
static PetscErrorCode ApplyNone(PC pc, Vec b, Vec x, PetscBool *none)
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;

  PetscFunctionBegin;
  PetscCall(Current(pc));
  *none = (PetscBool)!a->taken;
  if (!*none) PetscFunctionReturn(PETSC_SUCCESS);
  if (pc->failedreason) PetscCall(VecSet(x, (PetscScalar)INFINITY));
  else PetscCall(VecCopy(b, x)); /* of no rows */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCApply_GPUAMG(PC pc, Vec b, Vec x)
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;
  PetscBool  none;

  PetscFunctionBegin;
  PetscCall(ApplyNone(pc, b, x, &none));
  if (!none) PetscCall(GPUMGCycleApplyVecs(&a->cycle, &a->event, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCApplyTranspose_GPUAMG(PC pc, Vec b, Vec x)
{
  PC_GPUAMG     *a         = (PC_GPUAMG *)pc->data;
  PetscBool      symmetric = PETSC_FALSE, known = PETSC_FALSE, none;
  char           why[256] = "";
  GPUCSROperator o;

  PetscFunctionBegin;
  PetscCall(ApplyNone(pc, b, x, &none));
  if (none) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatIsSymmetricKnown(a->matrix.A, &known, &symmetric));
  if (known && symmetric) {
    PetscCall(GPUMGCycleApplyVecs(&a->cycle, &a->event, b, x));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGPUCSROperatorTransposeGet_Private(a->matrix.A, &o, why, sizeof(why)));
  PetscCheck(o.dev == a->h.dev, PetscObjectComm((PetscObject)pc), PETSC_ERR_GPU, "The matrix of PC type gpuamg has left the device");
  if (!a->takent) {
    PetscCall(GPUAMGTransposes(&a->h));
    PetscCall(CycleFill(a, &o, PETSC_TRUE, &a->transposed));
    a->takent = PETSC_TRUE;
  }
  a->transposed.level[a->h.levels - 1].A.o = o;
  PetscCall(GPUMGCycleApplyVecs(&a->transposed, &a->event, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Range(PC pc, const char name[], PetscInt value, PetscInt least, PetscInt most)
{
  PetscFunctionBegin;
  PetscCheck(value >= least && value <= most, PetscObjectComm((PetscObject)pc), PETSC_ERR_ARG_OUTOFRANGE, "-pc_gpuamg_%s %" PetscInt_FMT ": must be from %" PetscInt_FMT " to %" PetscInt_FMT, name, value, least, most);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- PCGAMG's functions, which set the same here ---- */

/* A number of the options, within the range that its option has */
static PetscErrorCode Set(PC pc, const char name[], PetscInt value, PetscInt least, PetscInt most, int *number)
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;

  PetscFunctionBegin;
  PetscCall(Range(pc, name, value, least, most));
  if (*number != (int)value) a->changed = PETSC_TRUE;
  *number = (int)value;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCGAMGSetNSmooths_GPUAMG(PC pc, PetscInt n)
{
  PetscFunctionBegin;
  PetscCall(Set(pc, "agg_nsmooths", n, 0, GPUAMG_SMOOTHS, &((PC_GPUAMG *)pc->data)->o.nsmooths));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCGAMGSetAggressiveLevels_GPUAMG(PC pc, PetscInt n)
{
  PetscFunctionBegin;
  PetscCall(Set(pc, "aggressive_coarsening", n, 0, GPUAMG_LEVELS, &((PC_GPUAMG *)pc->data)->o.aggressive));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCGAMGSetCoarseEqLim_GPUAMG(PC pc, PetscInt n)
{
  PetscFunctionBegin;
  PetscCall(Set(pc, "coarse_eq_limit", n, 1, GPUAMG_INVERSE, &((PC_GPUAMG *)pc->data)->o.limit));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCGAMGSetNlevels_GPUAMG(PC pc, PetscInt n)
{
  PetscFunctionBegin;
  PetscCall(Set(pc, "max_levels", PetscMin(n, GPUAMG_LEVELS), 1, GPUAMG_LEVELS, &((PC_GPUAMG *)pc->data)->o.levels));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCGAMGSetThreshold_GPUAMG(PC pc, PetscReal threshold[], PetscInt n)
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;

  PetscFunctionBegin;
  if (n < 1) PetscFunctionReturn(PETSC_SUCCESS);
  a->changed    = PETSC_TRUE;
  a->nthreshold = PetscMin(n, GPUAMG_LEVELS);
  for (PetscInt l = 0; l < a->nthreshold; l++) a->o.threshold[l] = (double)threshold[l];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCGAMGSetThresholdScale_GPUAMG(PC pc, PetscReal scale)
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;

  PetscFunctionBegin;
  if (a->scale != scale) a->changed = PETSC_TRUE;
  a->scale = scale;
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
  {"PCGAMGSetReuseInterpolation_C", (void (*)(void))PCGAMGSetReuseInterpolation_GPUAMG}
};

/* ---- the type ---- */

static PetscErrorCode PCReset_GPUAMG(PC pc)
{
  PetscFunctionBegin;
  PetscCall(Forget((PC_GPUAMG *)pc->data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCDestroy_GPUAMG(PC pc)
{
  PC_GPUAMG *a = (PC_GPUAMG *)pc->data;

  PetscFunctionBegin;
  PetscCall(Forget(a));
  PetscCall(GPUCSRLivingRemove(&a->living));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(setters); k++) PetscCall(PetscObjectComposeFunction((PetscObject)pc, setters[k].name, NULL));
  PetscCall(PetscFree(pc->data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCSetFromOptions_GPUAMG(PC pc, GPUCSROptionItems PetscOptionsObject)
{
  PC_GPUAMG        *a = (PC_GPUAMG *)pc->data;
  GPUAMGOptions    *o = &a->o, old = *o;
  const PetscReal   oldscale                 = a->scale;
  PetscReal         threshold[GPUAMG_LEVELS] = {0};
  PetscInt          n = GPUAMG_LEVELS, v[] = {o->nsmooths, o->aggressive, o->limit, o->levels, o->steps, o->distance[0], o->distance[1]};
  static const char names[][24] = {"agg_nsmooths", "aggressive_coarsening", "coarse_eq_limit", "max_levels", "esteig_ksp_max_it", "mis_k", "aggressive_mis_k"};
  static const int  range[][2]  = {
      {0, GPUAMG_SMOOTHS},
      {0, GPUAMG_LEVELS },
      {1, GPUAMG_INVERSE},
      {1, GPUAMG_LEVELS },
      {1, GPUAMG_STEPS  },
      {1, 8             },
      {1, 8             }
  };
  PetscBool set;

  PetscFunctionBegin;
  PetscOptionsHeadBegin(PetscOptionsObject, "PCGPUAMG options");
  PetscCall(PetscOptionsRealArray("-pc_gpuamg_threshold", "Relative threshold for the strength graph, a number a level; negative: all entries", "PCGPUAMG", threshold, &n, &set));
  PetscCall(PetscOptionsReal("-pc_gpuamg_threshold_scale", "From one level to the next where none is given", "PCGPUAMG", a->scale, &a->scale, NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_agg_nsmooths", "Steps of the prolongator's smoother", "PCGPUAMG", v[0], &v[0], NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_aggressive_coarsening", "Levels with aggressive coarsening", "PCGPUAMG", v[1], &v[1], NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_coarse_eq_limit", "Rows that are solved directly", "PCGPUAMG", v[2], &v[2], NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_max_levels", "Levels at most", "PCGPUAMG", v[3], &v[3], NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_esteig_ksp_max_it", "Steps of an eigenvalue estimate", "PCGPUAMG", v[4], &v[4], NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_mis_k", "Roots of aggregates are further apart", "PCGPUAMG", v[5], &v[5], NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_aggressive_mis_k", "The same where coarsening is aggressive", "PCGPUAMG", v[6], &v[6], NULL));
  PetscCall(PetscOptionsBool("-pc_gpuamg_reuse_interpolation", "Keep prolongators with new values", "PCGPUAMG", a->reuse, &a->reuse, NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_smoother_degree", "Steps of Chebyshev's iteration before and after the coarse correction", "PCGPUAMG", a->degree, &a->degree, NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_cycles", "1: V cycles, 2: W cycles", "PCGPUAMG", a->cycles, &a->cycles, NULL));
  PetscCall(PetscOptionsInt("-pc_gpuamg_tail", "Rows of levels that become one dense matrix", "PCGPUAMG", a->tail, &a->tail, NULL));
  PetscOptionsHeadEnd();
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(v); k++) PetscCall(Range(pc, names[k], v[k], range[k][0], range[k][1]));
  PetscCall(Range(pc, "smoother_degree", a->degree, 1, GPUMG_STEPS));
  PetscCall(Range(pc, "cycles", a->cycles, 1, 2));
  PetscCall(Range(pc, "tail", a->tail, 0, 8192));
  o->nsmooths    = (int)v[0];
  o->aggressive  = (int)v[1];
  o->limit       = (int)v[2];
  o->levels      = (int)v[3];
  o->steps       = (int)v[4];
  o->distance[0] = (int)v[5];
  o->distance[1] = (int)v[6];
  if (set && n > 0) {
    a->nthreshold = n;
    for (PetscInt l = 0; l < n; l++) o->threshold[l] = (double)threshold[l];
  }
  if (memcmp(&old, o, sizeof(old)) || oldscale != a->scale) a->changed = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCView_GPUAMG(PC pc, PetscViewer viewer)
{
  const PC_GPUAMG *a   = (const PC_GPUAMG *)pc->data;
  const GPUAMG    *h   = &a->h;
  double           all = 0;
  PetscBool        ascii;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (!ascii) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerASCIIPrintf(viewer, "  %s cycles, smoother Chebyshev of degree %" PetscInt_FMT " with Jacobi, prolongators smoothed %d times, %d aggressive levels, threshold %g\n", a->cycles == 1 ? "V" : "W", a->degree, a->o.nsmooths, a->o.aggressive,
                                   a->o.threshold[0]));
  if (!a->taken) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  not yet set up\n"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int l = 0; l < h->levels; l++) all += (double)h->level[l].A.nnz;
  PetscCall(PetscViewerASCIIPrintf(viewer, "  %d levels on backend %s, operator complexity %.3f, coarse solver %s, %.3g MB besides the matrix, built %" PetscInt_FMT " times, refreshed %" PetscInt_FMT "\n", h->levels, h->dev->ops->name,
                                   all / (double)h->level[0].A.nnz, h->exact ? "a dense inverse" : "a smoother", 1e-6 * (GPUAMGBytes(h) + GPUMGCycleBytes(&a->cycle)), a->built, a->refreshed));
  PetscCall(PetscViewerASCIIPrintf(viewer, "  level       rows    nonzeros  a row  block  eigenvalue  kernel\n"));
  for (int l = 0; l < h->levels; l++) {
    const GPUAMGLevel *L = &h->level[l];

    PetscCall(PetscViewerASCIIPrintf(viewer, "  %5d %10d %11.0f %6.1f %6d %11.4f  %s\n", l, L->n, (double)L->A.nnz, (double)L->A.nnz / PetscMax(1, L->n), L->bs, l + 1 == h->levels && h->exact ? 0.0 : L->lambda,
                                     h->dev->ops->kernels && L->plan->choice.kernel ? L->plan->choice.kernel->name : L->plan->A.format->name));
  }
  if (a->cycle.bottom) PetscCall(PetscViewerASCIIPrintf(viewer, "  One dense matrix of %d rows stands for the coarsest %d levels\n", a->cycle.level[a->cycle.bottom].n, a->cycle.bottom + 1));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  PCGPUAMG - "gpuamg", smoothed aggregation for a `MATGPUCSR` matrix, built and kept on its device

  Options Database Keys:
+ -pc_type gpuamg                            - use this type
. -pc_gpuamg_threshold t1,t2,...             - entries of at most this size, relative to the diagonal, are not strong; a number a level; negative, the default: all are
. -pc_gpuamg_threshold_scale s               - threshold of a level that none is given for, relative to that of the finer one, 1 by default
. -pc_gpuamg_agg_nsmooths n                  - steps of the prolongator's smoother, 1 by default
. -pc_gpuamg_aggressive_coarsening n         - levels with larger aggregates, 1 by default
. -pc_gpuamg_coarse_eq_limit n               - rows of a level that is not made coarser, 1000 by default: its dense inverse takes less time than further levels
. -pc_gpuamg_max_levels n                    - levels at most
. -pc_gpuamg_reuse_interpolation (true|false) - keep the prolongators when values change
. -pc_gpuamg_smoother_degree n               - steps of Chebyshev's iteration before and after the coarse correction, 2 by default
. -pc_gpuamg_cycles (1|2)                    - V or W cycles
. -pc_gpuamg_esteig_ksp_max_it n             - steps of an eigenvalue estimate, 10 by default
. -pc_gpuamg_mis_k k                         - roots of aggregates are further apart than this, 1 by default
. -pc_gpuamg_aggressive_mis_k k              - the same where coarsening is aggressive, 3 by default
- -pc_gpuamg_tail n                          - levels of at most so many rows become one dense matrix

  Level: beginner

  Notes:
  Options that `PCGAMG` has mean the same here. A block size (`MatSetBlockSize()`) makes blocks of rows the vertices of the aggregates. The near null space is that of `MatSetNearNullSpace()`, otherwise a constant for each component of
  a block.

  New values of the same pattern take the numeric phases alone, with the result of a new set-up, unless a threshold is given. Equal matrices have equal hierarchies, bit by bit.

  The restriction is the transpose of the prolongator. A zero on the diagonal of a row that has other entries, and entries that are no numbers, fail the set-up with PETSc's reasons; a row of zeros counts as one of the identity.

  The functions of `PCGAMG` that set these options set them here: `PCGAMGSetThreshold()`, `PCGAMGSetThresholdScale()`, `PCGAMGSetNSmooths()`, `PCGAMGSetAggressiveLevels()`, `PCGAMGSetCoarseEqLim()`, `PCGAMGSetNlevels()`,
  `PCGAMGSetReuseInterpolation()`.

  One process alone so far.

.seealso: `MATGPUCSR`, `PCGAMG`, `KSPGPUCG`, `MatSetNearNullSpace()`
M*/
static PetscErrorCode PCCreate_GPUAMG(PC pc)
{
  PC_GPUAMG *a;

  PetscFunctionBegin;
  PetscCall(PetscNew(&a));
  pc->data = a;
  a->o     = (GPUAMGOptions){
        .nsmooths = 1, .aggressive = 1, .distance = {1, 3},
                .limit = 1000, .levels = GPUAMG_LEVELS, .steps = 10, .damping = 1.4
  };
  for (int l = 0; l < GPUAMG_LEVELS; l++) a->o.threshold[l] = -1;
  a->nthreshold = 1;
  a->degree     = 2;
  a->cycles     = 1;
  a->tail       = 1024;
  a->scale      = 1;
  PetscCall(GPUCSRLivingAdd(&living, &a->living, a));

  pc->ops->setup          = PCSetUp_GPUAMG;
  pc->ops->reset          = PCReset_GPUAMG;
  pc->ops->destroy        = PCDestroy_GPUAMG;
  pc->ops->apply          = PCApply_GPUAMG;
  pc->ops->applytranspose = PCApplyTranspose_GPUAMG;
  pc->ops->setfromoptions = PCSetFromOptions_GPUAMG;
  pc->ops->view           = PCView_GPUAMG;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(setters); k++) PetscCall(PetscObjectComposeFunction((PetscObject)pc, setters[k].name, setters[k].set));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode PCGPUAMGInitialize_Private(void)
{
  PetscFunctionBegin;
  PetscCall(PCRegister(PCGPUAMG, PCCreate_GPUAMG));
  PetscCall(GPUAMGRegister(PC_CLASSID));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The devices go next */
static PetscErrorCode ForgetLiving(void *a)
{
  PetscFunctionBegin;
  PetscCall(Forget((PC_GPUAMG *)a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

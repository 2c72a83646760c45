/*
  PCMG and PCGAMG with cycles on the device. Both types are registered again under their own names: the wrapper makes PETSc's preconditioner and replaces the application. levels.c decides if the
  device can run a hierarchy, and cycle.c applies it. PETSc does all other work.
*/
#include "../petscprivate.h"
#include "../../../wrap.h"
#include "cycle.h"
#include "../gamg/gamg.h"

static PetscErrorCode PCApply_MG_GPUCSR(PC, Vec, Vec);

typedef struct {
  GPUCSRWrap *wrap;
  GPUMGCycle  cycle;
  PetscBool   taken, ok; /* the hierarchy has been read; and the cycle is valid */
  GPUMGKey    key;
  PetscInt    version; /* changes when the cycle changes */
  char        why[512];
  GPUCSREvent event;
  PCGAMGData  gamg;
} Multigrid;

PetscErrorCode PCGAMGDataOf_Private(PC pc, PCGAMGData **d)
{
  Multigrid *m = NULL;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &m));
  *d = &m->gamg;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- does the cycle match the hierarchy? ---- */

/* The device of levels of a PCGAMG that are on devices alone; NULL: none */
static GPUCSRDevice Alone(const Multigrid *m)
{
  return m->gamg.levels ? PCGPUAMGLevelsOf_Private(m->gamg.levels).dev : NULL;
}

/* Collective. stale: the hierarchy has changed, or a matrix of the cycle has moved; failed: so has the device of levels that it alone has. Of one rank is of all */
static PetscErrorCode Look(PC pc, Multigrid *m, PetscBool *failed, PetscBool *stale)
{
  const GPUCSRDevice dev = Alone(m);
  int                all[2];
  PetscBool          same = m->taken, moved = PETSC_FALSE;
  PetscMPIInt        size;

  PetscFunctionBegin;
  all[0] = dev && dev->failed[0];
  if (same && !all[0]) PetscCall(GPUMGKeyNote(pc, &m->key, &same));
  if (same && !all[0] && m->ok) PetscCall(GPUMGLevelsMoved(&m->cycle, &moved));
  all[1] = !same || moved;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)pc), &size));
  if (size > 1) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, all, 2, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)pc)));
  *failed = (PetscBool)all[0];
  *stale  = (PetscBool)all[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Prints once why PETSc applies the cycles, in programs on a GPU */
static PetscErrorCode Tell(PC pc, Multigrid *m)
{
  static char        told[512]; /* do not repeat the reason of another PC */
  const GPUCSRDevice dev = m->cycle.dev;
  char               text[640];

  PetscFunctionBegin;
  if (!dev || !dev->ops->separate || !strcmp(m->why, told)) PetscCall(PetscInfo(pc, "Cycles are PETSc's: %s\n", m->why));
  else {
    PetscCall(PetscSNPrintf(text, sizeof(text), "PC type %s runs PETSc's cycles, a call for each step, because %s", ((PetscObject)pc)->type_name, m->why));
    PetscCall(GPUCSRWarn(text));
  }
  PetscCall(PetscStrncpy(told, m->why, sizeof(told)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reads the hierarchy. PETSc applies the hierarchy if the device cannot, or has too little memory */
static PetscErrorCode MultigridTake(PC pc, Multigrid *m)
{
  GPUMGCycle   *c   = &m->cycle;
  GPUCSRDevice  old = c->dev, dev;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  m->taken = PETSC_TRUE;
  m->ok    = PETSC_FALSE;
  m->version++;
  if (old) PetscCall(GPUMGCycleForget(c));
  GPUCSRTry(&attempt, GPUMGLevelsTake(pc, c, &m->ok, m->why, sizeof(m->why)));
  PetscCheck(attempt.error != PETSC_ERR_ARG_INCOMP && attempt.error != PETSC_ERR_ARG_OUTOFRANGE, PetscObjectComm((PetscObject)pc), attempt.error, "%s", attempt.message); /* of all ranks */
  PetscCheck(!attempt.error || c->size <= 1, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);                                                                      /* an error inside a collective operation */
  PetscCheck(!attempt.error || (!c->level[c->levels - 1].A.o.required && (attempt.error == PETSC_ERR_MEM || attempt.error == PETSC_ERR_GPU || attempt.error == PETSC_ERR_SUP)), PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
  dev = c->dev;
  if (attempt.error) {
    m->ok = PETSC_FALSE;
    PetscCall(PetscStrncpy(m->why, attempt.message, sizeof(m->why)));
    if (attempt.error == PETSC_ERR_GPU && dev) PetscCall(PetscStrncpy(dev->failed, attempt.message, sizeof(dev->failed)));
  }
  if (!m->ok) {
    PetscCall(Tell(pc, m));
    PetscCall(GPUMGCycleDestroy(c));
  }
  PetscCall(GPUMGKeyNote(pc, &m->key, NULL)); /* smoothers may have been set up */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: after a failure of a device that alone has levels PETSc makes new ones, and their cycle goes */
static PetscErrorCode Regain(PC pc, Multigrid *m)
{
  const GPUCSRDevice dev = Alone(m);

  PetscFunctionBegin;
  if (m->ok) {
    PetscCall(PetscStrncpy(m->why, dev && dev->failed[0] ? dev->failed : "the device of another rank has failed", sizeof(m->why)));
    PetscCall(GPUMGCycleDestroy(&m->cycle));
    m->ok = PETSC_FALSE;
  }
  PetscCall(PCGAMGRelease_Private(&m->gamg, PETSC_TRUE));
  pc->flag = DIFFERENT_NONZERO_PATTERN;
  PetscCall((*pc->ops->setup)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Current(PC pc, Multigrid **m)
{
  PetscBool failed, stale;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, m));
  PetscCall(Look(pc, *m, &failed, &stale));
  if (failed) PetscCall(Regain(pc, *m));
  if (!failed && !stale) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MultigridTake(pc, *m));
  PetscCall(Look(pc, *m, &failed, &stale));
  if (failed) PetscCall(Regain(pc, *m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The current cycle of a PC after its set-up; NULL if PETSc applies the PC. A new version is a new cycle */
PetscErrorCode PCMGCycleGet_Private(PC pc, GPUMGCycle **c, PetscInt *version)
{
  Multigrid *m;

  PetscFunctionBegin;
  *c = NULL;
  if (pc->ops->apply != PCApply_MG_GPUCSR || !pc->setupcalled) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Current(pc, &m));
  *version = m->version;
  if (m->ok) *c = &m->cycle;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After an error of PETSc's set-up or cycle on one rank, in which the device failed: PETSc makes new levels on the host */
static PetscErrorCode Anew(PC pc, Multigrid *m, const GPUCSRAttempt *a)
{
  PC_GAMG     *g   = (PC_GAMG *)((PC_MG *)pc->data)->innerctx;
  GPUCSRDevice dev = Alone(m);

  PetscFunctionBegin;
  PetscCheck(a->error == PETSC_ERR_GPU && dev, PETSC_COMM_SELF, a->error, "%s", a->message);
  if (!dev->failed[0]) PetscCall(PetscStrncpy(dev->failed, a->message, sizeof(dev->failed)));
  PetscCall(PetscInfo(pc, "New levels are made, because %s\n", a->message));
  PetscCall(PCGAMGRelease_Private(&m->gamg, PETSC_TRUE));
  PetscCall(PetscFree(g->data)); /* the near null space of an unfinished level */
  g->data_sz    = 0;
  m->gamg.fresh = PETSC_TRUE;
  pc->flag      = DIFFERENT_NONZERO_PATTERN;
  PetscCall(PCSetFailedReason(pc, PC_NOERROR));
  PetscCall((*m->wrap->petsc.pc.setup)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* May PETSc make new levels after an error of the device? */
static PetscErrorCode Replaceable(PC pc, PetscBool *yes)
{
  PetscBool gamg;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)pc, PCGAMG, &gamg));
  PetscCall(PetscObjectTypeCompare((PetscObject)pc->pmat, MATSEQAIJGPUCSR, yes));
  *yes = (PetscBool)(*yes && gamg && !MatGPUCSROperatorRequired_Private(pc->pmat));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- operations ---- */

/* PETSc's cycle by apply(), which lends b and x to the finest level. After an error it leaves them there, and the level would destroy them */
static PetscErrorCode Lent(PC pc, PetscErrorCode (*apply)(PC, Vec, Vec), Vec b, Vec x)
{
  const PC_MG         *mg   = (const PC_MG *)pc->data;
  const PetscErrorCode ierr = (*apply)(pc, b, x);

  PetscFunctionBegin;
  for (PetscInt l = 0; ierr && mg->levels && l < mg->nlevels; l++) {
    if (mg->levels[l]->b == b) mg->levels[l]->b = NULL;
    if (mg->levels[l]->x == x) mg->levels[l]->x = NULL;
    mg->levels[l]->smoothd->pc->presolvedone = mg->levels[l]->smoothu->pc->presolvedone = 0; /* PETSc counts solves that have not ended */
  }
  PetscFunctionReturn(ierr);
}

/* The same, or its transpose, and a second time after a failure of the device */
static PetscErrorCode CycleOfPETSc(PC pc, Multigrid *m, PetscErrorCode (*apply)(PC, Vec, Vec), Vec b, Vec x)
{
  GPUCSRAttempt attempt;
  PetscBool     replaceable;

  PetscFunctionBegin;
  PetscCall(Replaceable(pc, &replaceable));
  GPUCSRTryIf(replaceable && m->gamg.levels, &attempt, Lent(pc, apply, b, x));
  if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Anew(pc, m, &attempt));
  PetscCall(Lent(pc, apply, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCApplyTranspose_MG_GPUCSR(PC pc, Vec b, Vec x)
{
  Multigrid *m;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &m));
  PetscCall(CycleOfPETSc(pc, m, m->wrap->petsc.pc.applytranspose, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCApply_MG_GPUCSR(PC pc, Vec b, Vec x)
{
  Multigrid    *m;
  GPUCSRDevice  dev;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  PetscCall(Current(pc, &m));
  if (m->ok) {
    GPUCSRTry(&attempt, GPUMGCycleApplyVecs(&m->cycle, &m->event, b, x));
    if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
    if (m->cycle.size > 1) { /* the other ranks are inside the cycle */
      PetscCall(GPUMGRanksFail(&m->cycle, attempt.message));
      SETERRQ(PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
    }
    PetscCheck(!m->cycle.level[m->cycle.levels - 1].A.o.required && (attempt.error == PETSC_ERR_MEM || attempt.error == PETSC_ERR_GPU), PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
    if (attempt.error == PETSC_ERR_GPU) PetscCall(PetscStrncpy(m->cycle.dev->failed, attempt.message, sizeof(m->cycle.dev->failed)));
    PetscCall(PetscStrncpy(m->why, attempt.message, sizeof(m->why)));
    PetscCall(Tell(pc, m));
    PetscCall(GPUMGCycleDestroy(&m->cycle));
    m->ok = PETSC_FALSE; /* until the hierarchy changes */
    dev   = Alone(m);
    if (dev && dev->failed[0]) PetscCall(Regain(pc, m));
  }
  PetscCall(CycleOfPETSc(pc, m, m->wrap->petsc.pc.apply, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MultigridRelease(void *data)
{
  Multigrid   *m   = (Multigrid *)data;
  GPUCSRDevice dev = m->cycle.dev;

  PetscFunctionBegin;
  if (m->event && dev && !dev->failed[0]) PetscCall(dev->ops->eventdestroy(dev->id, m->event));
  m->event = NULL;
  PetscCall(GPUMGCycleDestroy(&m->cycle));
  PetscCall(PetscFree(m->key.bytes));
  PetscCall(PetscMemzero(&m->key, sizeof(m->key)));
  PetscCall(PCGAMGRelease_Private(&m->gamg, PETSC_TRUE));
  m->taken = m->ok = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCView_MG_GPUCSR(PC pc, PetscViewer viewer)
{
  Multigrid        *m;
  PetscBool         ascii;
  const GPUMGCycle *c;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &m));
  PetscCall((*m->wrap->petsc.pc.view)(pc, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  if (ascii && m->gamg.made)
    PetscCall(PetscViewerASCIIPrintf(viewer, "  Aggregates of the finest %" PetscInt_FMT " levels are made on the device, as those of PC type gpuamg, and eigenvalues are its own estimates of %" PetscInt_FMT " steps\n", m->gamg.made, m->gamg.steps));
  if (ascii && m->gamg.why[0]) PetscCall(PetscViewerASCIIPrintf(viewer, "  Aggregates are PETSc's, because %s\n", m->gamg.why));
  if (!ascii || !m->taken) PetscFunctionReturn(PETSC_SUCCESS);
  c = &m->cycle;
  if (m->ok) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  Cycles run on backend %s%s, %d levels, coarse solver %s, %.3g MB besides the matrices\n", c->dev->ops->name, c->dev->ops->kernels ? ", recorded as a graph" : "", c->levels, c->exact ? "a dense inverse" : "a smoother", 1e-6 * GPUMGCycleBytes(c)));
    if (c->bottom) PetscCall(PetscViewerASCIIPrintf(viewer, "  One dense matrix of %d rows replaces the coarsest %d levels\n", c->level[c->bottom].n, c->bottom + 1));
  } else PetscCall(PetscViewerASCIIPrintf(viewer, "  PETSc runs the cycles, because %s\n", m->why[0] ? m->why : "the matrix is on no device"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- registration ---- */

/* The set-up of the PCMG that a PCGAMG is, without the products of its levels */
static PetscErrorCode OfLevels(PC pc)
{
  GPUCSRWrap *w;
  PC          mg;

  PetscFunctionBegin;
  PetscCall(PCCreate(PetscObjectComm((PetscObject)pc), &mg));
  PetscCall(PCSetType(mg, PCMG));
  PetscCall(GPUCSRWrapGet((PetscObject)mg, &w));
  PetscCall(PCSetFailedReason(pc, PC_NOERROR));
  PetscCall((*w->petsc.pc.setup)(pc));
  PetscCall(PCDestroy(&mg));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCSetUp_GAMG_GPUCSR(PC pc)
{
  Multigrid    *m;
  GPUCSRAttempt attempt;
  PetscBool     done, replaceable;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &m));
  PetscCall(PCGAMGAggregates_Private(pc));
  PetscCall(PCGAMGRefresh_Private(pc, &done));
  PetscCall(Replaceable(pc, &replaceable));
  GPUCSRTryIf(replaceable, &attempt, done ? OfLevels(pc) : PCSetUp_WrapAnew(pc));
  if (attempt.error) PetscCall(Anew(pc, m, &attempt));
  PetscCall(PCGAMGRelease_Private(&m->gamg, PETSC_FALSE));
  if (m->gamg.why[0]) PetscCall(PetscInfo(pc, "Aggregates are PETSc's, because %s\n", m->gamg.why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Reads again the options that PETSc keeps in private data. PETSc has read its options before, and may have changed the type */
static PetscErrorCode PCSetFromOptions_GAMG_GPUCSR(PC pc, GPUCSROptionItems PetscOptionsObject)
{
  PetscOptions options = ((PetscObject)pc)->options;
  const char  *prefix  = ((PetscObject)pc)->prefix;
  PetscBool    levels, squares, squared;
  PetscInt     old = 0;
  PCGAMGData  *d   = NULL;
  Multigrid   *m;

  PetscFunctionBegin;
  PetscCall(GPUCSRWrapData((PetscObject)pc, &m));
  PetscCall((*m->wrap->petsc.pc.setfromoptions)(pc, PetscOptionsObject));
  PetscCall(PCGAMGDataOf_Private(pc, &d));
  PetscCall(PetscOptionsGetInt(options, prefix, "-pc_gamg_agg_nsmooths", &d->nsmooths, NULL));
  PetscCall(PetscOptionsGetInt(options, prefix, "-pc_gamg_aggressive_coarsening", &d->aggressive, &levels));
  PetscCall(PetscOptionsGetInt(options, prefix, "-pc_gamg_square_graph", &old, &squares));
  PetscCall(PetscOptionsGetBool(options, prefix, "-pc_gamg_aggressive_square_graph", &d->squared, &squared));
  PetscCall(PetscOptionsGetInt(options, prefix, "-pc_gamg_aggressive_mis_k", &d->distance, NULL));
  if (squares && !levels && !squared) {
    d->aggressive = old;
    d->squared    = PETSC_TRUE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GAMGMade(PetscObject pc, GPUCSRWrap *w)
{
  return PCGAMGIntercept_Private((PC)pc);
}

#define CYCLES .apply = PCApply_MG_GPUCSR, .applytranspose = PCApplyTranspose_MG_GPUCSR, .view = PCView_MG_GPUCSR
#define DATA   .bytes = sizeof(Multigrid), .release = MultigridRelease
GPUCSR_WRAP(PC, MG, PCMG, .ops.pc = {.setup = PCSetUp_WrapAnew, CYCLES}, DATA)
GPUCSR_WRAP(PC, GAMG, PCGAMG, .ops.pc = {.setup = PCSetUp_GAMG_GPUCSR, .setfromoptions = PCSetFromOptions_GAMG_GPUCSR, CYCLES}, DATA, .made = GAMGMade)

GPUCSR_WRAP_REGISTER(PCMGInitialize_Private, PCList, &wrap_MG, &wrap_GAMG)

/*
  PCMG and PCGAMG whose cycles run on the device. Both types are registered again under their own names; ours make PETSc's, and step in where the preconditioner is applied: a hierarchy that
  qualifies (levels.c) is applied by cycle.c, any other, and all that is not an application, by PETSc.
*/
#include <petsc/private/pcmgimpl.h>
#include <petsc/private/kspimpl.h>
#include "../../../../sys/gpucsrsys.h"
#include "cycle.h"
#include "aggregates.h"

static const char KEY[] = "PCMGGPUCSR";

/* What the two types do themselves, by row; what both have from PCMG is that of the first */
typedef struct {
  const char *type;
  PetscErrorCode (*ours)(PC);
  PetscErrorCode (*create)(PC), (*setup)(PC), (*reset)(PC), (*destroy)(PC), (*apply)(PC, Vec, Vec), (*view)(PC, PetscViewer); /* PETSc's */
} Type;

static PetscErrorCode PCCreate_MG_GPUCSR(PC), PCCreate_GAMG_GPUCSR(PC), PCApply_MG_GPUCSR(PC, Vec, Vec);
static Type           types[] = {
            {PCMG,   PCCreate_MG_GPUCSR,   NULL, NULL, NULL, NULL, NULL, NULL},
            {PCGAMG, PCCreate_GAMG_GPUCSR, NULL, NULL, NULL, NULL, NULL, NULL},
};

typedef struct _n_Multigrid Multigrid;
struct _n_Multigrid {
  GPUMGCycle  cycle;
  PetscBool   taken, ok; /* the hierarchy has been looked at as it is, and is the cycle's */
  GPUMGKey    key;
  PetscInt    version; /* another one whenever the cycle is another one */
  PetscInt    applied;
  char        why[512];
  GPUCSREvent event;
  Multigrid  *next, **previous; /* living ones: their device may go before them */
};
static Multigrid *living = NULL;

static PetscErrorCode MultigridOf(PC pc, Multigrid **m)
{
  PetscContainer c;

  PetscFunctionBegin;
  *m = NULL;
  PetscCall(PetscObjectQuery((PetscObject)pc, KEY, (PetscObject *)&c));
  if (c) PetscCall(PetscContainerGetPointer(c, (void **)m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const Type *TypeOf(PC pc)
{
  return &types[!strcmp(((PetscObject)pc)->type_name, PCGAMG)];
}

/* ---- is the cycle that of the hierarchy as it is? ---- */

static PetscErrorCode Same(PC pc, Multigrid *m, PetscBool *same)
{
  PetscBool   moved = PETSC_FALSE;
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)pc), &size));
  *same = m->taken;
  if (*same) {
    PetscCall(GPUMGKeySame(pc, &m->key, same));
    if (*same && m->ok) PetscCall(GPUMGLevelsMoved(&m->cycle, &moved)); /* its matrices are those of the hierarchy */
    if (moved) *same = PETSC_FALSE;
  }
  if (size > 1) { /* what is another one for one rank is for all */
    int all = *same;

    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)pc)));
    *same = (PetscBool)all;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Why a cycle is PETSc's: said once, to who runs on a GPU */
static PetscErrorCode Tell(PC pc, Multigrid *m)
{
  static char        told[512]; /* the same of another PC is no news */
  const GPUCSRDevice dev = m->cycle.dev;
  char               text[640];

  PetscFunctionBegin;
  if (!dev || !dev->ops->separate || !strcmp(m->why, told)) PetscCall(PetscInfo(pc, "Cycles are PETSc's: %s\n", m->why));
  else {
    PetscCall(PetscSNPrintf(text, sizeof(text), "cycles of PC type %s are PETSc's, a call for each step, because %s", ((PetscObject)pc)->type_name, m->why));
    PetscCall(GPUCSRWarn(text));
  }
  PetscCall(PetscStrncpy(told, m->why, sizeof(told)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The hierarchy as it is, if that can be on the device; what the device has no room for is PETSc's */
static PetscErrorCode Take(PC pc, Multigrid *m)
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
  PetscCheck(!attempt.error || c->size <= 1, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);                                                                      /* in the middle of what all ranks do together */
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
  PetscCall(GPUMGKeyTake(pc, &m->key)); /* smoothers may have been set up */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(PC pc, Multigrid **m)
{
  PetscContainer c;

  PetscFunctionBegin;
  PetscCall(PetscNew(m));
  PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &c));
  PetscCall(PetscContainerSetPointer(c, *m));
  PetscCall(PetscObjectCompose((PetscObject)pc, KEY, (PetscObject)c));
  PetscCall(PetscContainerDestroy(&c));
  (*m)->next     = living;
  (*m)->previous = &living;
  if (living) living->previous = &(*m)->next;
  living = *m;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Current(PC pc, Multigrid **m)
{
  PetscBool same;

  PetscFunctionBegin;
  PetscCall(MultigridOf(pc, m));
  if (!*m) PetscCall(Create(pc, m));
  PetscCall(Same(pc, *m, &same));
  if (!same) PetscCall(Take(pc, *m));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The cycle of a PC of one of these types that is set up, as it is now; NULL where it is PETSc's. Another version is another cycle */
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

/* ---- operations ---- */

/* b to the device and x back where they are not there. Nobody waits but a vector on the host, and the stream of somebody else's vectors for ours */
static PetscErrorCode Apply(Multigrid *m, GPUCSROperand *b, GPUCSROperand *x)
{
  GPUMGCycle             *c   = &m->cycle;
  GPUMGLevel             *top = &c->level[c->levels - 1];
  GPUCSRDevice            dev = c->dev;
  const GPUCSRBackendOps *ops = dev->ops;
  const size_t            n   = (size_t)top->n;
  GPUCSRStream            s;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRStream_Private(dev, b, x, NULL, &s));
  PetscCall(MatGPUCSROperatorBegin_Private(&top->A.o));
  if (s != dev->stream) {
    if (!m->event) PetscCall(ops->eventcreate(dev->id, PETSC_FALSE, &m->event));
    PetscCall(ops->eventrecord(dev->id, m->event, s));
    PetscCall(ops->streamwait(dev->id, dev->stream, m->event));
  }
  if (b->place != GPUCSR_DEVICE) PetscCall(GPUCSRUpload(dev, top->b, GPUCSR_DOUBLE, b->p, GPUCSR_DOUBLE, n, b->pinned, dev->stream, NULL));
  PetscCall(GPUMGCycleApply(c, b->place == GPUCSR_DEVICE ? (const double *)b->p : top->b, x->place == GPUCSR_DEVICE ? (double *)x->p : top->x));
  if (x->place != GPUCSR_DEVICE) PetscCall(GPUCSRDownload(dev, x->p, GPUCSR_DOUBLE, top->x, GPUCSR_DOUBLE, n, x->pinned, dev->stream));
  if (x->place != GPUCSR_DEVICE || b->pinned) PetscCall(ops->streamsynchronize(dev->id, dev->stream));
  else if (s != dev->stream) {
    PetscCall(ops->eventrecord(dev->id, m->event, dev->stream));
    PetscCall(ops->streamwait(dev->id, s, m->event));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The arrays go back to their vectors whether it worked or not */
static PetscErrorCode ApplyVecs(Multigrid *m, Vec b, Vec x)
{
  const GPUCSROperator *o = &m->cycle.level[m->cycle.levels - 1].A.o;
  GPUCSROperand         ob, ox;
  PetscErrorCode        ierr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSROperatorVecGet_Private(o, b, PETSC_TRUE, PETSC_FALSE, &ob));
  PetscCall(MatGPUCSROperatorVecGet_Private(o, x, PETSC_FALSE, PETSC_TRUE, &ox));
  ierr = Apply(m, &ob, &ox);
  PetscCall(MatGPUCSROperatorVecRestore_Private(o, x, PETSC_FALSE, PETSC_TRUE, &ox));
  PetscCall(MatGPUCSROperatorVecRestore_Private(o, b, PETSC_TRUE, PETSC_FALSE, &ob));
  PetscCall(ierr);
  PetscCall(PetscLogFlops(m->cycle.flops));
  m->applied++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCApply_MG_GPUCSR(PC pc, Vec b, Vec x)
{
  Multigrid    *m;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  PetscCall(Current(pc, &m));
  if (m->ok) {
    GPUCSRTry(&attempt, ApplyVecs(m, b, x));
    if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
    if (m->cycle.size > 1) { /* the others are in the middle of it */
      PetscCall(GPUMGRanksFail(&m->cycle, attempt.message));
      SETERRQ(PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
    }
    PetscCheck(!m->cycle.level[m->cycle.levels - 1].A.o.required && (attempt.error == PETSC_ERR_MEM || attempt.error == PETSC_ERR_GPU), PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
    if (attempt.error == PETSC_ERR_GPU) PetscCall(PetscStrncpy(m->cycle.dev->failed, attempt.message, sizeof(m->cycle.dev->failed)));
    PetscCall(PetscStrncpy(m->why, attempt.message, sizeof(m->why)));
    PetscCall(Tell(pc, m));
    PetscCall(GPUMGCycleDestroy(&m->cycle));
    m->ok = PETSC_FALSE; /* until something about the hierarchy is another */
  }
  PetscCall((*types[0].apply)(pc, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Release(Multigrid *m)
{
  GPUCSRDevice dev = m->cycle.dev;

  PetscFunctionBegin;
  if (m->event && dev && !dev->failed[0]) PetscCall(dev->ops->eventdestroy(dev->id, m->event));
  m->event = NULL;
  PetscCall(GPUMGCycleDestroy(&m->cycle));
  PetscCall(GPUMGKeyDestroy(&m->key));
  m->taken = m->ok = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCReset_MG_GPUCSR(PC pc)
{
  Multigrid *m;

  PetscFunctionBegin;
  PetscCall(MultigridOf(pc, &m));
  if (m) PetscCall(Release(m));
  PetscCall((*TypeOf(pc)->reset)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCDestroy_MG_GPUCSR(PC pc)
{
  Multigrid *m;

  PetscFunctionBegin;
  PetscCall(MultigridOf(pc, &m));
  if (m) {
    PetscCall(Release(m));
    *m->previous = m->next;
    if (m->next) m->next->previous = m->previous;
    PetscCall(PetscFree(m));
    PetscCall(PetscObjectCompose((PetscObject)pc, KEY, NULL));
  }
  PetscCall((*TypeOf(pc)->destroy)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCView_MG_GPUCSR(PC pc, PetscViewer viewer)
{
  Multigrid        *m;
  PetscBool         ascii;
  const GPUMGCycle *c;

  PetscFunctionBegin;
  PetscCall((*types[0].view)(pc, viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)viewer, PETSCVIEWERASCII, &ascii));
  PetscCall(MultigridOf(pc, &m));
  if (!ascii || !m || !m->taken) PetscFunctionReturn(PETSC_SUCCESS);
  c = &m->cycle;
  if (m->ok) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "  Cycles run on backend %s%s, %d levels, coarse solver %s, %.3g MB besides the matrices\n", c->dev->ops->name, c->dev->ops->kernels ? ", recorded as a graph" : "", c->levels, c->exact ? "a dense inverse" : "a smoother", 1e-6 * GPUMGCycleBytes(c)));
    if (c->small) PetscCall(PetscViewerASCIIPrintf(viewer, "  Each rank has all of the coarsest %d levels, of %d rows at most\n", c->bottom + 1, c->whole));
    if (c->bottom && !c->small) PetscCall(PetscViewerASCIIPrintf(viewer, "  One dense matrix of %d rows stands for the coarsest %d levels\n", c->all.r.halo ? c->whole : c->level[c->bottom].n, c->bottom + 1));
  } else PetscCall(PetscViewerASCIIPrintf(viewer, "  Cycles are PETSc's, because %s\n", m->why[0] ? m->why : "the matrix is on no device"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- registration ---- */

static PetscErrorCode PCCreate_MG_GPUCSR(PC pc)
{
  Type *t = &types[0];

  PetscFunctionBegin;
  PetscCall((*t->create)(pc));
  t->reset         = pc->ops->reset;
  t->destroy       = pc->ops->destroy;
  t->apply         = pc->ops->apply;
  t->view          = pc->ops->view;
  pc->ops->reset   = PCReset_MG_GPUCSR;
  pc->ops->destroy = PCDestroy_MG_GPUCSR;
  pc->ops->apply   = PCApply_MG_GPUCSR;
  pc->ops->view    = PCView_MG_GPUCSR;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PCSetUp_GAMG_GPUCSR(PC pc)
{
  PetscFunctionBegin;
  PetscCall(PCGAMGProlongator_Private(pc));
  PetscCall((*types[1].setup)(pc));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's makes a PCMG, ours that is, and puts some of its own over that */
static PetscErrorCode PCCreate_GAMG_GPUCSR(PC pc)
{
  Type *t = &types[1];

  PetscFunctionBegin;
  PetscCall((*t->create)(pc));
  t->setup         = pc->ops->setup;
  t->reset         = pc->ops->reset;
  t->destroy       = pc->ops->destroy;
  pc->ops->setup   = PCSetUp_GAMG_GPUCSR;
  pc->ops->reset   = PCReset_MG_GPUCSR;
  pc->ops->destroy = PCDestroy_MG_GPUCSR;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A type that the program has registered itself under one of these names is wrapped as well */
PetscErrorCode PCMGInitialize_Private(void)
{
  PetscFunctionBegin;
  if (!GPUCSR_SCALAR_IS_DOUBLE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PCInitializePackage());
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(types); k++) {
    PetscErrorCode (*create)(PC) = NULL;

    PetscCall(PetscFunctionListFind(PCList, types[k].type, &create));
    if (!create || create == types[k].ours) continue;
    types[k].create = create;
    PetscCall(PCRegister(types[k].type, types[k].ours));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The devices go next */
PetscErrorCode PCMGFinalize_Private(void)
{
  PetscFunctionBegin;
  for (Multigrid *m = living; m; m = m->next) PetscCall(Release(m));
  PetscCall(PCGAMGAggregatesForget_Private());
  PetscFunctionReturn(PETSC_SUCCESS);
}

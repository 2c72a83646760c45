/*
  Memory of the solvers, and their vectors on the device, which PETSc shares in host loops.
*/
#include "gpukspimpl.h"

#define PARTIAL_BYTES ((GPUKSP_SUMS * GPUKSP_PARTIALS + 1) * sizeof(double))
#define BOUNDS_BYTES  (sizeof(int) * ((5 + GPUKSP_HALO_WORDS) * GPUKSP_BLOCKS + 1))
#define TABLE_BYTES   (sizeof(double) * (GPUKSP_STENCILS + 1))

/* Frees the memory on the device */
static PetscErrorCode Close(KSP_GPU *k)
{
  PetscFunctionBegin;
  if (k->dev) {
    const GPUCSRBackendOps *ops = k->dev->ops;
    GPUCSRBool              works;
    GPUCSRBuffer *const     memory[] = {&k->partial, &k->devstate, &k->hist, &k->vectors, &k->slotmemory, &k->pc.numbers, &k->launch.bounds, &k->launch.slots, &k->launch.table, &k->single.memory, &k->peers.lists, &k->ranks.sums, &k->graph.parts};

    PetscCall(GPUCSRDeviceReach(k->dev, PETSC_FALSE, &works));
    if (works) PetscCall(GPUCSREither(k->dev, GPUCSRLaunchGraphDestroy(&k->graph.recorded), 0));
    if (works) PetscCall(GPUCSREither(k->dev, GPUCSRLaunchGraphDestroy(&k->graph.stale), 0));
    if (k->release) PetscCall((*k->release)(k));
    PetscCall(GPUCSRPlanDestroy(&k->launch.copy));
    for (size_t q = 0; q < PETSC_STATIC_ARRAY_LENGTH(memory); q++) PetscCall(GPUCSRBufferFree(k->dev, memory[q]));
    if (k->state && works) PetscCall(ops->hostfree(k->dev->id, k->state));
    for (int q = 0; q < 2; q++)
      if (k->events[q] && works) PetscCall(ops->eventdestroy(k->dev->id, k->events[q]));
  }
  k->dev   = NULL;
  k->state = k->seen = NULL;
  k->sums            = NULL;
  k->events[0] = k->events[1] = NULL;
  k->graph.recorded = k->graph.stale = NULL;
  k->persistent.epoch = k->persistent.here = 0;
  PetscCall(PetscMemzero(&k->keys, sizeof(k->keys)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Frees all prepared data; the next solve starts over. Collective, because the vectors are parallel */
PetscErrorCode GPUKSPRelease(KSP_GPU *k)
{
  PetscFunctionBegin;
  PetscCall(Close(k));
  for (int q = 0; q < GPUKSP_VECTORS; q++) PetscCall(VecDestroy(&k->slot[q].vec));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Allocate(KSP_GPU *k)
{
  const GPUCSRDevice dev  = k->dev;
  const size_t       each = GPUCSRAlignUp(sizeof(GPUKSPState));
  char              *p;

  PetscFunctionBegin;
  PetscCall(dev->ops->hostmalloc(dev->id, 2 * each + sizeof(double) * GPUKSP_SUMS, (void **)&p));
  k->state = (GPUKSPState *)p;
  k->seen  = (GPUKSPState *)(p + each);
  k->sums  = (double *)(p + 2 * each);
  PetscCall(GPUCSRBufferGrow(k->dev, PARTIAL_BYTES, "sums of a solver", &k->partial));
  PetscCall(GPUCSRBufferGrow(k->dev, sizeof(GPUKSPState), "the state of a solver", &k->devstate));
  for (int q = 0; q < 2; q++) PetscCall(dev->ops->eventcreate(dev->id, PETSC_FALSE, &k->events[q]));
  if (dev->ops->kernels) {
    PetscCall(GPUCSRBufferGrow(k->dev, BOUNDS_BYTES, "ranges of rows of a solver", &k->launch.bounds));
    PetscCall(GPUCSRBufferGrow(k->dev, GPUKSP_SLOTS_BYTES, "slots of a solver", &k->launch.slots));
    PetscCall(GPUCSRBufferGrow(k->dev, TABLE_BYTES, "the diagonal of a solver's stencils", &k->launch.table));
    PetscCall(dev->ops->zero(dev->id, (double *)k->partial.p + GPUKSP_SUMS * GPUKSP_PARTIALS, sizeof(double), dev->stream)); /* no block of a step has finished */
  }
  PetscCall(GPUCSREither(dev, GPUKSPStepBlocks(dev, &k->stepblocks), 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Allocates the memory for all solves on this device, completely or not at all. Not collective: one rank may change its device alone. PETSc's vectors stay, because their creation is collective */
PetscErrorCode GPUKSPOpen(KSP_GPU *k, GPUCSRDevice dev)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (k->dev == dev) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Close(k));
  k->dev = dev;
  ierr   = Allocate(k);
  if (ierr) (void)Close(k);
  PetscFunctionReturn(ierr);
}

/* Length of a vector with its halo */
size_t GPUKSPLength(const KSP_GPU *k)
{
  return k->peers.on ? (size_t)(k->persistent.peers.tail + k->persistent.peers.halo) : (size_t)k->n;
}

/* ---- vectors that PETSc shares with the steps ---- */

/* Before PETSc works on the slots' vectors: a slot for it to read. The device alone has its entries, */
PetscErrorCode GPUKSPGive(KSP_GPU *k, GPUKSPSlot *s)
{
  double *p;

  PetscFunctionBegin;
  if (s->borrowed) {
    PetscCall(VecGPUGetArrayWrite(s->vec, &p));
    s->p = p; /* the array stays there */
    PetscCall(VecGPURestoreArrayWrite(s->vec, &p));
  } else PetscCall(GPUKSPStore(k, s->p, s->vec));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* and after its work: the device has the entries of the slot that PETSc has written */
PetscErrorCode GPUKSPLend(KSP_GPU *k, GPUKSPSlot *s)
{
  GPUCSRDevice dev;
  double      *p;

  PetscFunctionBegin;
  if (s->borrowed) {
    PetscCall(VecGPUGetDevice(s->vec, &dev));
    PetscCheck(dev == k->dev, PETSC_COMM_SELF, PETSC_ERR_MEM, "A vector of a solver is not on %s device %d", k->dev->ops->name, k->dev->id);
    PetscCall(VecGPUGetArray(s->vec, &p));
    s->p = p;
    PetscCall(VecGPURestoreArray(s->vec, &p));
  } else PetscCall(GPUKSPLoad(k, s->vec, s->p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The slots that are needed. In the host loop they have vectors for PETSc's work. The device memory is that of
  the vectors or, without vectors there, the solver's, with copies around PETSc's work
*/
PetscErrorCode GPUKSPSlotsMake(KSP ksp, KSP_GPU *k, const PetscBool need[])
{
  const PetscBool loop = (PetscBool)(k->taken == KSP_GPU_PATH_HOST_LOOP);
  const size_t    each = GPUCSRAlignUp(PetscMax(1, GPUKSPLength(k)) * sizeof(double)); /* vectors without rows get different addresses */
  size_t          own  = 0;
  GPUCSRDevice    dev;

  PetscFunctionBegin;
  if (loop) { /* duplicates of the solution for PETSc's work, kept for the next host loop with that vector: a failure of one rank destroys the vectors of all */
    PetscObjectId id;
    DM            dm;
    GPUKSPKey     key;

    PetscCall(PetscObjectGetId((PetscObject)ksp->vec_sol, &id));
    PetscCall(VecGetDM(ksp->vec_sol, &dm));
    key = GPUKSPKeyOf(id, GPUKSPAddress(dm));
    for (int q = 0; q < GPUKSP_VECTORS; q++) {
      Vec      *v    = &k->slot[q].vec;
      PetscBool like = PETSC_FALSE;
      PetscInt  locks;

      if (*v) PetscCall(PetscObjectTypeCompare((PetscObject)*v, ((PetscObject)ksp->vec_sol)->type_name, &like));
      if (!need[q] || !like || !GPUKSPSame(key, k->solution)) PetscCall(VecDestroy(v));
      if (!need[q]) continue;
      if (!*v) PetscCall(VecGPUDuplicate(ksp->vec_sol, v));
      PetscCall(VecLockGet(*v, &locks));
      for (; locks > 0; locks--) PetscCall(VecLockReadPop(*v)); /* an error in PETSc's work has left it */
    }
    k->solution = key;
  }
  for (int q = 0; q < GPUKSP_VECTORS; q++) {
    dev = NULL;
    if (loop && need[q]) PetscCall(VecGPUGetDevice(k->slot[q].vec, &dev));
    k->slot[q].borrowed = (PetscBool)(dev == k->dev);
    own += need[q] && !k->slot[q].borrowed;
  }
  PetscCall(GPUCSRBufferGrow(k->dev, each * own, "vectors of a solver", &k->slotmemory));
  own = 0;
  for (int q = 0; q < GPUKSP_VECTORS; q++) {
    k->slot[q].p = need[q] && !k->slot[q].borrowed ? (double *)((char *)k->slotmemory.p + each * own++) : NULL;
    if (k->slot[q].borrowed) PetscCall(GPUKSPGive(k, &k->slot[q]));
    if (need[q]) k->persistent.v.at[q] = k->slot[q].p;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The vectors of the method on the device, for the steps. BiCGStab stores M p and M s with right preconditioning. Collective in the host loop */
PetscErrorCode GPUKSPVectorsMake(KSP ksp, KSP_GPU *k)
{
  const PetscBool apart = (PetscBool)(k->pc.kind == GPUKSP_PC_BETWEEN_STEPS || k->pc.kind == GPUKSP_PC_BY_PCAPPLY); /* M r is stored */
  const PetscBool cg1 = (PetscBool)(k->method == GPUKSP_CG_SINGLE_REDUCTION), bcgs = (PetscBool)(k->method == GPUKSP_BCGS);
  const PetscBool persistent           = (PetscBool)(k->taken != KSP_GPU_PATH_HOST_LOOP && k->dev->ops->kernels && !k->refined && !cg1);
  GPUKSPVectors  *v                    = &k->persistent.v;
  PetscBool       need[GPUKSP_VECTORS] = {PETSC_FALSE};

  PetscFunctionBegin;
  need[VEC_X] = need[VEC_B] = need[VEC_W] = PETSC_TRUE;
  need[VEC_R] = need[VEC_P] = (PetscBool)!k->refined; /* the iteration has these in single precision */
  need[VEC_Z]               = (PetscBool)(cg1 || (!bcgs && (apart || persistent)));
  need[VEC_S]               = (PetscBool)(cg1 || bcgs);
  need[VEC_T]               = (PetscBool)(apart || bcgs);
  need[VEC_V] = need[VEC_RP] = bcgs;
  need[VEC_PH] = need[VEC_SH] = (PetscBool)(bcgs && ksp->pc_side == PC_RIGHT && k->pc.kind != GPUKSP_PC_NONE);
  need[VEC_P2]                = persistent;
  need[VEC_V2]                = (PetscBool)(persistent && bcgs);
  PetscCall(PetscMemzero(v, sizeof(*v)));
  PetscCall(GPUKSPSlotsMake(ksp, k, need));
  if (!need[VEC_PH]) {
    v->ph = v->p;
    v->sh = v->s;
  }
  v->bs         = (int)k->pc.bs;
  v->explicitpc = apart;
  if (k->pc.kind == GPUKSP_PC_BETWEEN_STEPS) v->block = (const double *)k->pc.numbers.p;
  else if (k->pc.kind == GPUKSP_PC_DIAGONAL) v->pc = (const double *)k->pc.numbers.p;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- copies between PETSc's vectors and the solver's ---- */

/* The work on an array of the device is done before the solver's stream uses the array */
static PetscErrorCode Await(KSP_GPU *k, GPUCSROperand *o)
{
  GPUCSRStream s;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRStream_Private(k->dev, o, NULL, NULL, &s));
  if (s != k->dev->stream) PetscCall(k->dev->ops->streamsynchronize(k->dev->id, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyArray(KSP_GPU *k, GPUCSROperand *o, double *own, PetscBool store)
{
  const GPUCSRDevice dev = k->dev;
  const size_t       n   = (size_t)k->n;

  PetscFunctionBegin;
  if (o->place == GPUCSR_DEVICE) {
    PetscCall(Await(k, o));
    PetscCall(dev->ops->copy(dev->id, store ? o->p : own, store ? own : o->p, sizeof(double) * n, GPUCSR_ON_DEVICE, dev->stream));
  } else {
    if (store) PetscCall(GPUCSRDownload(dev, o->p, GPUCSR_DOUBLE, own, GPUCSR_DOUBLE, n, o->pinned, dev->stream));
    else PetscCall(GPUCSRUpload(dev, own, GPUCSR_DOUBLE, o->p, GPUCSR_DOUBLE, n, o->pinned, dev->stream, NULL));
    if (dev->ops->separate) VecGPUCrossed((PetscBool)!store, n);
  }
  if (store) PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CopyVec(KSP_GPU *k, Vec v, double *own, PetscBool store)
{
  GPUCSROperand  o;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSROperatorVecGet_Private(&k->op, v, (PetscBool)!store, store, &o));
  ierr = CopyArray(k, &o, own, store);
  PetscCall(MatGPUCSROperatorVecRestore_Private(&k->op, v, (PetscBool)!store, store, &o));
  PetscFunctionReturn(ierr);
}

PetscErrorCode GPUKSPLoad(KSP_GPU *k, Vec from, double *to)
{
  return CopyVec(k, from, to, PETSC_FALSE);
}

/* Complete on return */
PetscErrorCode GPUKSPStore(KSP_GPU *k, const double *from, Vec to)
{
  return CopyVec(k, to, (double *)from, PETSC_TRUE);
}

/* b or x of a persistent kernel: its array if on the device, otherwise a copy */
PetscErrorCode GPUKSPTake(KSP_GPU *k, Vec from, PetscBool read, PetscBool write, GPUCSROperand *o, double **p)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSROperatorVecGet_Private(&k->op, from, read, write, o));
  if (o->place == GPUCSR_DEVICE) {
    PetscCall(Await(k, o));
    *p = (double *)o->p;
  } else if (read) PetscCall(CopyArray(k, o, *p, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

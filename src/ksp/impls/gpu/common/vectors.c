/*
  Memory of the solvers, and their vectors: the solver's own on the device for graphs and persistent kernels, and PETSc's for the host loop.
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
    GPUCSRBuffer *const     memory[] = {&k->partial, &k->devstate, &k->hist, &k->vectors, &k->pc.numbers, &k->launch.bounds, &k->launch.slots, &k->launch.table, &k->single.memory, &k->peers.lists, &k->ranks.sums, &k->graph.parts};

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
  for (int q = 0; q < GPUKSP_VECTORS; q++) PetscCall(VecDestroy(&k->loop.work[q]));
  PetscCall(VecDestroy(&k->loop.diagonal));
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

/* The vectors of the method besides x and b. apart: M r is stored. BiCGStab stores M p and M s with right preconditioning */
static void Needed(KSP ksp, const KSP_GPU *k, PetscBool apart, PetscBool need[GPUKSP_VECTORS])
{
  const PetscBool cg1 = (PetscBool)(k->method == GPUKSP_CG_SINGLE_REDUCTION), bcgs = (PetscBool)(k->method == GPUKSP_BCGS);

  memset(need, 0, sizeof(need[0]) * GPUKSP_VECTORS);
  need[VEC_R] = need[VEC_P] = need[VEC_W] = PETSC_TRUE;
  need[VEC_Z]                             = (PetscBool)(cg1 || (apart && !bcgs));
  need[VEC_S]                             = (PetscBool)(cg1 || bcgs);
  need[VEC_T]                             = (PetscBool)(apart || bcgs);
  need[VEC_V] = need[VEC_RP] = bcgs;
  need[VEC_PH] = need[VEC_SH] = (PetscBool)(bcgs && ksp->pc_side == PC_RIGHT && k->pc.kind != GPUKSP_PC_NONE);
}

/* The solver's own vectors on the device, for the steps */
PetscErrorCode GPUKSPVectorsOwn(KSP ksp, KSP_GPU *k)
{
  const PetscBool apart      = (PetscBool)(k->pc.kind == GPUKSP_PC_BETWEEN_STEPS);
  const PetscBool persistent = (PetscBool)(k->dev->ops->kernels && !k->refined && k->method != GPUKSP_CG_SINGLE_REDUCTION);
  const size_t    each       = GPUCSRAlignUp(PetscMax(1, GPUKSPLength(k)) * sizeof(double)); /* vectors without rows get different addresses */
  GPUKSPVectors  *v          = &k->persistent.v;
  PetscBool       need[GPUKSP_VECTORS];
  int             count = 0;

  PetscFunctionBegin;
  Needed(ksp, k, apart, need);
  need[VEC_X] = need[VEC_B] = PETSC_TRUE;
  if (k->refined) need[VEC_R] = need[VEC_P] = PETSC_FALSE; /* the iteration has these in single precision */
  if (persistent) {
    if (k->method == GPUKSP_CG) need[VEC_Z] = PETSC_TRUE;
    need[VEC_P2] = PETSC_TRUE;
    need[VEC_V2] = (PetscBool)(k->method == GPUKSP_BCGS);
  }
  for (int q = 0; q < GPUKSP_VECTORS; q++) count += need[q];
  PetscCall(GPUCSRBufferGrow(k->dev, each * (size_t)count, "vectors of a solver", &k->vectors));
  count = 0;
  PetscCall(PetscMemzero(v, sizeof(*v)));
  for (int q = 0; q < GPUKSP_VECTORS; q++)
    if (need[q]) v->at[q] = (double *)((char *)k->vectors.p + each * (size_t)count++);
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

/* PETSc vectors for the host loop: new duplicates of the program's, which may have changed, and an error may have left the old ones locked. A right-hand side on the host is copied if the solution is on the device: steps with both would run on the host */
PetscErrorCode GPUKSPVectorsBorrowed(KSP ksp, KSP_GPU *k)
{
  const PetscBool apart = (PetscBool)(k->pc.kind == GPUKSP_PC_BY_PCAPPLY);
  GPUKSPVectors  *v     = &k->persistent.v;
  PetscBool       need[GPUKSP_VECTORS], device[2];

  PetscFunctionBegin;
  PetscCall(PetscMemzero(v, sizeof(*v)));
  Needed(ksp, k, apart, need);
  for (int q = 0; q < GPUKSP_VECTORS; q++) {
    PetscCall(VecDestroy(&k->loop.work[q]));
    if (need[q]) PetscCall(VecDuplicate(ksp->vec_sol, &k->loop.work[q]));
  }
  PetscCall(VecGPUCheck(ksp->vec_sol, &device[0]));
  PetscCall(VecGPUCheck(ksp->vec_rhs, &device[1]));
  PetscCall(PetscObjectReference((PetscObject)ksp->vec_sol));
  k->loop.work[VEC_X] = ksp->vec_sol;
  if (device[0] && !device[1]) {
    PetscCall(VecDuplicate(ksp->vec_sol, &k->loop.work[VEC_B]));
    PetscCall(VecCopy(ksp->vec_rhs, k->loop.work[VEC_B]));
  } else {
    PetscCall(PetscObjectReference((PetscObject)ksp->vec_rhs));
    k->loop.work[VEC_B] = ksp->vec_rhs;
  }
  v->bs         = (int)k->pc.bs;
  v->explicitpc = apart;
  if (k->loop.diagonal) v->pc = k->sums; /* any non-NULL pointer: each step replaces it by the array */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- PETSc's vectors for one step ---- */

/* b and the diagonal are only read */
static PetscBool Written(int q)
{
  return (PetscBool)(q != VEC_B && q != GPUKSP_VECTORS);
}

/* The diagonal comes last */
static Vec Borrowed(const KSP_GPU *k, int q)
{
  return q < GPUKSP_VECTORS ? k->loop.work[q] : k->loop.diagonal;
}

/* count: so many of the vectors are borrowed, the diagonal last */
PetscErrorCode GPUKSPVectorsGiveBack(KSP_GPU *k, int count)
{
  PetscFunctionBegin;
  for (int q = 0; q < count; q++)
    if (Borrowed(k, q)) PetscCall(MatGPUCSROperatorVecRestore_Private(&k->op, Borrowed(k, q), PETSC_TRUE, Written(q), &k->loop.operand[q]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Borrows the arrays of the vectors: all on the device, if all vectors are there, otherwise all on the host. After an error, none stays borrowed */
PetscErrorCode GPUKSPVectorsGet(KSP_GPU *k, GPUKSPVectors *v, PetscBool *device)
{
  PetscErrorCode ierr = PETSC_SUCCESS;
  int            here = 0, all = 0, q;

  PetscFunctionBegin;
  for (q = 0; q <= GPUKSP_VECTORS && !ierr; q++) {
    if (!Borrowed(k, q)) continue;
    ierr = MatGPUCSROperatorVecGet_Private(&k->op, Borrowed(k, q), PETSC_TRUE, Written(q), &k->loop.operand[q]);
    here += !ierr && k->loop.operand[q].place == GPUCSR_DEVICE;
    all++;
  }
  *device = (PetscBool)(here == all && k->dev->ops->kernels);
  if (!ierr && here && here < all) {
    PetscCall(GPUKSPVectorsGiveBack(k, q));
    for (q = 0; q <= GPUKSP_VECTORS && !ierr; q++)
      if (Borrowed(k, q)) ierr = MatGPUCSRVecGet_Private(NULL, Borrowed(k, q), PETSC_TRUE, Written(q), &k->loop.operand[q]);
  }
  if (ierr) (void)GPUKSPVectorsGiveBack(k, q - 1);
  PetscCall(ierr);
  for (q = 0; q < GPUKSP_VECTORS; q++) v->at[q] = k->loop.work[q] ? (double *)k->loop.operand[q].p : NULL;
  if (k->loop.diagonal) v->pc = (const double *)k->loop.operand[GPUKSP_VECTORS].p;
  /* the same vector under two names */
  if (!v->ph) v->ph = v->p;
  if (!v->sh) v->sh = v->s;
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

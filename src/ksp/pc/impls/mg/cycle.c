/*
  One application of multigrid to arrays of the device, as PCMG has it: V and W cycles, full, additive and cascadic multigrid. All work is given to the device's stream, so that an
  application, or an iteration of a solver that has it inside, can be recorded as a graph.
*/
#include "cycle.h"
#include "../../../../sys/graph.h"

/* Rows from which the launches of a cycle are ahead of the device's work */
#define LONG 400000

PetscErrorCode GPUMGFree(GPUCSRDevice dev, GPUMGMemory *m)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRFree(dev, m->bytes, &m->p));
  m->bytes = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUMGGrow(GPUCSRDevice dev, size_t bytes, const char what[], GPUMGMemory *m)
{
  PetscFunctionBegin;
  if (m->p && m->bytes >= bytes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUMGFree(dev, m));
  PetscCall(GPUCSRMalloc(dev, PetscMax(bytes, 1), what, &m->p));
  m->bytes = PetscMax(bytes, 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a level has while a cycle goes on: where its x is, and where it may be written to next. On the finest level b and x are the caller's */
typedef struct {
  const double *b;
  double       *x, *spare;
} Place;

typedef struct {
  GPUMGCycle       *c;
  GPUCSRStream      s;
  double           *home; /* where x of the finest level is to be in the end */
  const GPUCSRSums *sums; /* of this x, for the last product; NULL: none */
  Place             at[GPUMG_LEVELS];
} Run;

/* What is written next is x in its other array */
static void Turn(Place *at)
{
  double *const x = at->x;

  at->x     = at->spare;
  at->spare = x;
}

static PetscErrorCode Copy(Run *u, int l, double *to, const double *from)
{
  PetscFunctionBegin;
  PetscCall(u->c->dev->ops->copy(u->c->dev->id, to, from, sizeof(double) * (size_t)u->c->level[l].n, GPUCSR_ON_DEVICE, u->s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = alpha A x + beta y */
static PetscErrorCode Multiply(Run *u, const GPUMGMatrix *A, double alpha, const double *x, double beta, const double *y, double *z)
{
  PetscFunctionBegin;
  if (A->r.halo) PetscCall(MatGPUCSRRanksMultiply_Private(&A->o, &A->r, A->transposed, alpha, x, beta, y, z));
  else PetscCall(MatGPUCSROperatorMultiply_Private(&A->o, alpha, x, beta, y, z));
  u->c->flops += 2 * (double)A->o.plan->A.nnz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  r = b - A x, or of several ranks A x - b: what others' entries of x add is then added to few rows, by the launch that waits for them. The sign is SIGN(L)
*/
#define SIGN(L) ((L)->A.r.halo ? -1.0 : 1.0)
static PetscErrorCode Residual(Run *u, int l)
{
  GPUMGLevel  *L  = &u->c->level[l];
  const Place *at = &u->at[l];

  PetscFunctionBegin;
  PetscCall(Multiply(u, &L->A, -SIGN(L), at->x, SIGN(L), at->b, L->r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are steps ends of the products that they begin with? Of several ranks they would miss what others' entries add */
static PetscBool Fused(const GPUMGLevel *L, const GPUMGSmoother *m)
{
  return (PetscBool)(m->bs < 2 && !L->A.r.halo && GPUCSRPlanSteps(L->A.o.plan));
}

/*
  A step by itself, or as the end of the product that it begins with; x is then in the other array, where the iterate before it was. fromzero: the smoother has begun with 0, which no array holds.
  sums: of the new x, which only a product takes; or NULL
*/
static PetscErrorCode Step(Run *u, int l, const GPUMGSmoother *m, int k, PetscBool fromzero, const GPUCSRSums *sums)
{
  const PetscBool zero = (PetscBool)(fromzero && k == 0);
  GPUMGLevel     *L    = &u->c->level[l];
  Place          *at   = &u->at[l];
  double         *d    = Fused(L, m) || (k == m->steps - 1 && m->step[k].ca == 0) ? NULL : L->d; /* nobody needs it, or it is the difference of two iterates */
  GPUMGPass       p    = {.n = L->n, .bs = m->bs, .ca = m->step[k].ca, .cb = m->step[k].cb, .M = (const double *)m->M.p, .r = at->b, .x = NULL, .d = d, .z = at->x};

  PetscFunctionBegin;
  if (!zero && Fused(L, m)) {
    GPUCSRStep step = {PETSC_TRUE, p.ca, p.cb, m->bs ? p.M : NULL, NULL};

    Turn(at);
    if (k > (fromzero ? 1 : 0)) step.before = at->x;
    PetscCall(MatGPUCSROperatorStep_Private(&L->A.o, at->b, at->spare, &step, sums, at->x));
    u->c->flops += 2 * (double)L->A.o.plan->A.nnz;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!zero) {
    PetscCall(Residual(u, l));
    p.r = L->r;
    p.x = at->x;
    p.cb *= SIGN(L);
  }
  PetscCall(GPUMGPassRun(u->c->dev, &p, u->s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* zero: x is 0, and its array has not been written. sums: of x in the end, or NULL */
static PetscErrorCode Smooth(Run *u, int l, const GPUMGSmoother *m, PetscBool zero, const GPUCSRSums *sums)
{
  const PetscBool none = (PetscBool)(zero || m->fromzero);

  PetscFunctionBegin;
  for (int k = 0; k < m->steps; k++) PetscCall(Step(u, l, m, k, none, k == m->steps - 1 ? sums : NULL));
  if (none && !m->steps) PetscCall(u->c->dev->ops->zero(u->c->dev->id, u->at[l].x, sizeof(double) * (size_t)u->c->level[l].n, u->s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The right-hand side of the next coarser level: alpha R r */
static PetscErrorCode Restrict(Run *u, int l, double alpha, const double *r)
{
  GPUMGLevel *L = &u->c->level[l];

  PetscFunctionBegin;
  PetscCall(Multiply(u, &L->R, alpha, r, 0, NULL, u->c->level[l - 1].b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x = P of the coarser level's, or x += that. On the finest level into the array from which the steps that follow end in the caller's */
static PetscErrorCode Interpolate(Run *u, int l, PetscBool add)
{
  GPUMGCycle          *c  = u->c;
  const GPUMGLevel    *L  = &c->level[l];
  const GPUMGSmoother *up = L->two ? &L->up : &L->down;
  Place               *at = &u->at[l];
  const double *const  y  = add ? at->x : NULL;

  PetscFunctionBegin;
  if (l == c->levels - 1 && c->type == PC_MG_MULTIPLICATIVE && (at->x == u->home) == (PetscBool)(Fused(L, up) && up->steps % 2)) Turn(at);
  PetscCall(Multiply(u, &L->P, 1, u->at[l - 1].x, add ? 1 : 0, y, at->x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The solution where cycles end: one dense product, or the smoother of the coarsest level */
static PetscErrorCode Coarse(Run *u, PetscBool zero)
{
  GPUMGCycle  *c  = u->c;
  const Place *at = &u->at[c->bottom];

  PetscFunctionBegin;
  if (c->all.r.halo) { /* x of the level is a part of this one */
    double *const b = (double *)c->both.p, *const x = b + c->whole;

    PetscCall(Multiply(u, &c->all, 1, at->b, 0, NULL, b));
    if (c->small) PetscCall(GPUMGCycleRun(c->small, b, x, NULL));
    else PetscCall(GPUMGDense(c->dev, c->whole, 1, (const double *)(c->bottom ? c->tail.p : c->inverse.p), b, x, u->s));
    if (c->small) c->flops += c->small->flops;
  } else if (c->bottom || c->exact) PetscCall(GPUMGDense(c->dev, c->level[c->bottom].n, 1, (const double *)(c->bottom ? c->tail.p : c->inverse.p), at->b, at->x, u->s));
  else PetscCall(Smooth(u, 0, &c->level[0].down, zero, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Down and up again from level l */
static PetscErrorCode Multiplicative(Run *u, int l, PetscBool zero)
{
  GPUMGLevel *L      = &u->c->level[l];
  const int   cycles = l == u->c->bottom + 1 ? 1 : L->cycles;

  PetscFunctionBegin;
  if (l == u->c->bottom) {
    PetscCall(Coarse(u, zero));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Smooth(u, l, &L->down, zero, NULL));
  PetscCall(Residual(u, l));
  PetscCall(Restrict(u, l, SIGN(L), L->r));
  for (int k = 0; k < cycles; k++) PetscCall(Multiplicative(u, l - 1, (PetscBool)(k == 0)));
  PetscCall(Interpolate(u, l, PETSC_TRUE));
  PetscCall(Smooth(u, l, L->two ? &L->up : &L->down, PETSC_FALSE, l == u->c->levels - 1 ? u->sums : NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* b to all levels; then each is smoothed from 0 and all are added, or each is begun from the coarser one's solution, with a cycle or by smoothing alone */
static PetscErrorCode Others(Run *u)
{
  GPUMGCycle *c = u->c;

  PetscFunctionBegin;
  for (int l = c->levels - 1; l > 0; l--) PetscCall(Restrict(u, l, 1, u->at[l].b));
  for (int l = 0; l < c->levels; l++) {
    const PetscBool zero = (PetscBool)(l == 0 || c->type == PC_MG_ADDITIVE);

    if (l && c->type != PC_MG_ADDITIVE) PetscCall(Interpolate(u, l, PETSC_FALSE));
    if (c->type == PC_MG_FULL) PetscCall(Multiplicative(u, l, zero));
    else if (l) PetscCall(Smooth(u, l, &c->level[l].down, zero, NULL));
    else PetscCall(Coarse(u, zero));
  }
  if (c->type == PC_MG_ADDITIVE)
    for (int l = 1; l < c->levels; l++) PetscCall(Interpolate(u, l, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x = the cycle's M b, arrays of the device that are not the cycle's own, in the order of the device's stream. sums: of x, taken where the last pass can: *sums->parts then says so; or NULL */
PetscErrorCode GPUMGCycleRun(GPUMGCycle *c, const double *b, double *x, const GPUCSRSums *sums)
{
  const int top = c->levels - 1;
  Run       u   = {c, c->dev->stream, x, NULL, {{NULL, NULL, NULL}}};

  PetscFunctionBegin;
  c->flops = 0;
  for (int l = 0; l < top; l++) u.at[l] = (Place){c->level[l].b, c->level[l].x, c->level[l].spare};
  u.at[top] = (Place){b, x, c->level[top].spare};
  if (c->type == PC_MG_MULTIPLICATIVE)
    for (int k = 0; k < c->cycles; k++) {
      if (k == c->cycles - 1 && GPUCSRPlanSums(c->level[top].A.o.plan)) u.sums = sums;
      PetscCall(Multiplicative(&u, top, (PetscBool)(k == 0)));
    }
  else PetscCall(Others(&u));
  if (u.at[top].x != x) PetscCall(Copy(&u, top, x, u.at[top].x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An application by its graph, which is recorded if it is not yet */
static PetscErrorCode Replay(GPUMGCycle *c, GPUMGRecord *r)
{
  PetscFunctionBegin;
#if defined(GPUCSR_HAVE_CUDA)
  if (c->dev->ops->kernels && c->ran && !r->graph && !c->unrecordable) {
    PetscErrorCode ierr;

    PetscCall(GPUCSRLaunchGraphBegin(c->dev->stream));
    ierr = GPUMGCycleRun(c, r->b, r->x, NULL);
    PetscCall(GPUCSRLaunchGraphEnd(c->dev->stream, &r->graph));
    PetscCall(ierr);
    c->unrecordable = (PetscBool)!r->graph;
  }
  if (r->graph) {
    PetscCall(GPUCSRLaunchGraphLaunch(r->graph, c->dev->stream));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#endif
  PetscCall(GPUMGCycleRun(c, r->b, r->x, NULL));
  c->ran = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Drop(GPUMGCycle *c, GPUMGRecord *r)
{
  PetscFunctionBegin;
#if defined(GPUCSR_HAVE_CUDA)
  if (r->graph && !c->dev->failed[0]) PetscCall(GPUCSRLaunchGraphDestroy(&r->graph));
#endif
  *r = (GPUMGRecord){NULL, NULL, NULL};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The same for somebody who will come again. With the same arrays as last time, as conjugate gradients do, by a graph of those. With others, as GMRES does, by one of our own arrays, or
  launch by launch where that takes less than copies of long vectors.
*/
PetscErrorCode GPUMGCycleApply(GPUMGCycle *c, const double *b, double *x)
{
  GPUMGLevel *top = &c->level[c->levels - 1];

  PetscFunctionBegin;
  if (b == c->last.b && x == c->last.x) {
    PetscCall(Replay(c, &c->last));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Drop(c, &c->last));
  c->last.b = b;
  c->last.x = x;
  if (top->n >= LONG || !c->ran || !c->dev->ops->kernels) {
    PetscCall(GPUMGCycleRun(c, b, x, NULL));
    c->ran = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  c->own.b = top->b;
  c->own.x = top->x;
  if (b != top->b) PetscCall(c->dev->ops->copy(c->dev->id, top->b, b, sizeof(double) * (size_t)top->n, GPUCSR_ON_DEVICE, c->dev->stream));
  PetscCall(Replay(c, &c->own));
  if (x != top->x) PetscCall(c->dev->ops->copy(c->dev->id, x, top->x, sizeof(double) * (size_t)top->n, GPUCSR_ON_DEVICE, c->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* b to the device and x back where they are not there. Nobody waits but a vector on the host, and the stream of somebody else's vectors for ours */
static PetscErrorCode ApplyOperands(GPUMGCycle *c, GPUCSREvent *event, GPUCSROperand *b, GPUCSROperand *x)
{
  GPUMGLevel             *top = &c->level[c->levels - 1];
  GPUCSRDevice            dev = c->dev;
  const GPUCSRBackendOps *ops = dev->ops;
  const size_t            n   = (size_t)top->n;
  GPUCSRStream            s;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRStream_Private(dev, b, x, NULL, &s));
  PetscCall(MatGPUCSROperatorBegin_Private(&top->A.o));
  if (s != dev->stream) {
    if (!*event) PetscCall(ops->eventcreate(dev->id, PETSC_FALSE, event));
    PetscCall(ops->eventrecord(dev->id, *event, s));
    PetscCall(ops->streamwait(dev->id, dev->stream, *event));
  }
  if (b->place != GPUCSR_DEVICE) PetscCall(GPUCSRUpload(dev, top->b, GPUCSR_DOUBLE, b->p, GPUCSR_DOUBLE, n, b->pinned, dev->stream, NULL));
  PetscCall(GPUMGCycleApply(c, b->place == GPUCSR_DEVICE ? (const double *)b->p : top->b, x->place == GPUCSR_DEVICE ? (double *)x->p : top->x));
  if (x->place != GPUCSR_DEVICE) PetscCall(GPUCSRDownload(dev, x->p, GPUCSR_DOUBLE, top->x, GPUCSR_DOUBLE, n, x->pinned, dev->stream));
  if (x->place != GPUCSR_DEVICE || b->pinned) PetscCall(ops->streamsynchronize(dev->id, dev->stream));
  else if (s != dev->stream) {
    PetscCall(ops->eventrecord(dev->id, *event, dev->stream));
    PetscCall(ops->streamwait(dev->id, s, *event));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The arrays go back to their vectors whether it worked or not */
PetscErrorCode GPUMGCycleApplyVecs(GPUMGCycle *c, GPUCSREvent *event, Vec b, Vec x)
{
  const GPUCSROperator *o = &c->level[c->levels - 1].A.o;
  GPUCSROperand         ob, ox;
  PetscErrorCode        ierr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSROperatorVecGet_Private(o, b, PETSC_TRUE, PETSC_FALSE, &ob));
  PetscCall(MatGPUCSROperatorVecGet_Private(o, x, PETSC_FALSE, PETSC_TRUE, &ox));
  ierr = ApplyOperands(c, event, &ob, &ox);
  PetscCall(MatGPUCSROperatorVecRestore_Private(o, x, PETSC_FALSE, PETSC_TRUE, &ox));
  PetscCall(MatGPUCSROperatorVecRestore_Private(o, b, PETSC_TRUE, PETSC_FALSE, &ob));
  PetscCall(ierr);
  PetscCall(PetscLogFlops(c->flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory for a level's vectors, */
size_t GPUMGCycleVectorBytes(int n)
{
  return GPUMG_VECTORS * GPUCSRAlignUp(sizeof(double) * (size_t)PetscMax(1, n));
}

/* and where they are in it */
void GPUMGCycleVectors(GPUMGLevel *L)
{
  double **v[GPUMG_VECTORS] = {&L->b, &L->x, &L->spare, &L->r, &L->d};

  for (size_t k = 0; k < GPUMG_VECTORS; k++) *v[k] = (double *)((char *)L->memory.p + k * GPUCSRAlignUp(sizeof(double) * (size_t)PetscMax(1, L->n)));
}

/* What was recorded is of other matrices now */
PetscErrorCode GPUMGCycleForget(GPUMGCycle *c)
{
  PetscFunctionBegin;
  PetscCall(Drop(c, &c->own));
  PetscCall(Drop(c, &c->last));
  c->ran = c->unrecordable = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUMGCycleDestroy(GPUMGCycle *c)
{
  GPUCSRBool reached;

  PetscFunctionBegin;
  if (!c->dev) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRDeviceReach(c->dev, PETSC_FALSE, &reached));
  PetscCall(GPUMGCycleForget(c));
  for (int l = 0; l < GPUMG_LEVELS; l++) {
    PetscCall(GPUMGFree(c->dev, &c->level[l].memory));
    PetscCall(GPUMGFree(c->dev, &c->level[l].down.M));
    PetscCall(GPUMGFree(c->dev, &c->level[l].up.M));
    for (int k = 0; k < 3; k++) PetscCall(MatDestroy(&c->level[l].copy[k].A));
  }
  if (c->small) PetscCall(GPUMGCycleDestroy(c->small));
  PetscCall(PetscFree(c->small));
  PetscCall(MatDestroy(&c->everything));
  PetscCall(GPUMGFree(c->dev, &c->both));
  PetscCall(GPUMGFree(c->dev, &c->inverse));
  PetscCall(GPUMGFree(c->dev, &c->tail));
  PetscCall(GPUMGFree(c->dev, &c->panels));
  PetscCall(PetscMemzero(c, sizeof(*c)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Of device memory that the matrices have not */
double GPUMGCycleBytes(const GPUMGCycle *c)
{
  double bytes = (double)c->inverse.bytes + (double)c->both.bytes + (double)c->tail.bytes + (double)c->panels.bytes + (c->small ? GPUMGCycleBytes(c->small) : 0);

  for (int l = 0; l < c->levels; l++) bytes += (double)c->level[l].memory.bytes + (double)c->level[l].down.M.bytes + (double)c->level[l].up.M.bytes;
  return bytes;
}

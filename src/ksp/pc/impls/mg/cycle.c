/*
  One application of multigrid to device arrays, as PCMG computes it: V and W cycles, full, additive and cascadic multigrid; and K-cycles of PCGPUAMG. All work goes to the device's stream, so a graph can record an
  application, or an iteration of a solver around it.
*/
#include "cycle.h"
#include "../../../../sys/graph.h"

/* State of a level during a cycle: the array of x, and the array for the next x. On the finest level the caller owns b and x, unless vectors of levels are floats */
typedef struct {
  const void *b;
  void       *x, *spare, *other; /* other: of a K-cycle */
} Place;

typedef struct {
  GPUMGCycle       *c;
  GPUCSRStream      s;
  void             *home;    /* final array of x of the finest level */
  const GPUCSRSums *sums;    /* sums of the final x, computed by the last product; NULL: no sums */
  const GPUMGEnds  *first;   /* of a cycle in floats, before its first step; NULL: the step has been taken */
  int               columns; /* vectors at once, side by side */
  PetscErrorCode    error;   /* of this rank, which still takes part in exchanges */
  Place             at[GPUMG_LEVELS];
} Run;

/* Work of this rank alone, which several ranks leave out after an error */
#define ALONE(u, call) \
  do { \
    if ((u)->c->size <= 1) PetscCall(call); \
    else GPUCSRKeep(&(u)->error, call); \
  } while (0)

/* The next write of x goes to the other array */
static void Turn(Place *at)
{
  void *const x = at->x;

  at->x     = at->spare;
  at->spare = x;
}

/* z = alpha A X + Y for several vectors at once; y NULL: alpha is 1. The matrix under construction has room for a product if z is y */
static PetscErrorCode MultiplyColumns(Run *u, const GPUCSRStorage *A, double alpha, const void *x, const void *y, void *z)
{
  void *const     product = z == y ? u->c->tail.p : z;
  const GPUMGPass add     = {.n = A->m, .cb = alpha, .r = product, .x = y, .z = z, .more = u->columns - 1};

  PetscFunctionBegin;
  PetscCall(GPUCSRMultRows(A, u->columns, x, product));
  if (y) PetscCall(GPUMGPassRun(u->c->dev, &add, u->s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = alpha A x + beta y */
static PetscErrorCode Multiply(Run *u, const GPUMGMatrix *A, double alpha, const void *x, double beta, const void *y, void *z)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (A->rows) ALONE(u, MultiplyColumns(u, A->rows, alpha, x, y, z));
  else if (A->r.halo) {
    ierr = MatGPUCSRRanksMultiply_Private(&A->o, &A->r, A->transposed, alpha, u->error ? NULL : x, beta, y, z);
    ALONE(u, ierr);
  } else ALONE(u, MatGPUCSROperatorMultiply_Private(&A->o, alpha, x, beta, y, z));
  u->c->flops += 2 * (double)A->o.plan->A.nnz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  r = b - A x; with several ranks A x - b, because the launch after the halo's arrival adds products to few rows only. SIGN(L) is the sign
*/
#define SIGN(L) ((L)->A.r.halo ? -1.0 : 1.0)
static PetscErrorCode Residual(Run *u, int l)
{
  GPUMGLevel  *L  = &u->c->level[l];
  const Place *at = &u->at[l];

  return Multiply(u, &L->A, -SIGN(L), at->x, SIGN(L), at->b, L->r);
}

/* Can a product end with the step? With several ranks no: the step would miss products with halo entries. Products with several vectors have no steps */
static PetscBool Fused(const GPUMGLevel *L, const GPUMGSmoother *m)
{
  return (PetscBool)(m->bs < 2 && !m->factors && !L->A.r.halo && !L->A.rows && GPUCSRPlanSteps(L->A.o.plan));
}

/*
  A step by itself, or as the end of its product; x then moves to the array of the previous iterate. fromzero: the smoother has begun with 0, which no array holds.
  sums: sums of the new x, computed by the product; or NULL
*/
static PetscErrorCode Step(Run *u, int l, const GPUMGSmoother *m, int k, PetscBool fromzero, const GPUCSRSums *sums)
{
  const PetscBool zero = (PetscBool)(fromzero && k == 0);
  GPUMGLevel     *L    = &u->c->level[l];
  Place          *at   = &u->at[l];
  void           *d    = Fused(L, m) || (k == m->steps - 1 && m->step[k].ca == 0) ? NULL : L->d; /* not needed after the last step, or the difference of two iterates */
  GPUMGPass       p    = {.n = L->n, .bs = m->bs, .ca = m->step[k].ca, .cb = m->step[k].cb, .M = u->c->floats ? m->rounded : m->M.p, .r = at->b, .x = NULL, .d = d, .z = at->x, .more = u->columns - 1, .floats = (GPUCSRBool)u->c->floats};

  PetscFunctionBegin;
  if (!zero && Fused(L, m)) {
    GPUCSRStep step = {PETSC_TRUE, p.ca, p.cb, m->bs ? p.M : NULL, NULL};

    Turn(at);
    if (k > (fromzero ? 1 : 0)) step.before = at->x;
    ALONE(u, MatGPUCSROperatorStep_Private(&L->A.o, at->b, at->spare, &step, sums, at->x));
    u->c->flops += 2 * (double)L->A.o.plan->A.nnz;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!zero) {
    PetscCall(Residual(u, l));
    p.r = L->r;
    p.x = at->x;
    p.cb *= SIGN(L);
  }
  if (m->factor) {
    ALONE(u, GPUCSRFactorSolve(m->factor, m->transposed, (const double *)p.r, (double *)at->spare)); /* has no data between two of these steps */
    u->c->flops += 2 * GPUCSRFactorEntries(m->factor);
    p.r = at->spare;
  }
  if (u->first) ALONE(u, GPUMGFirst(u->c->dev, u->first, &p, u->s));
  else ALONE(u, GPUMGPassRun(u->c->dev, &p, u->s));
  u->first = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Bytes of a number of the levels' vectors, and of memory for a vector of n numbers */
#define NUMBER(c) ((c)->floats ? sizeof(float) : sizeof(double))
static size_t VectorBytes(const GPUMGCycle *c, int n)
{
  return GPUCSRAlignUp(NUMBER(c) * (size_t)PetscMax(1, n));
}

/* zero: x is 0 and its array is not written yet. sums: of the final x, or NULL */
static PetscErrorCode Smooth(Run *u, int l, const GPUMGSmoother *m, PetscBool zero, const GPUCSRSums *sums)
{
  const PetscBool none = (PetscBool)(zero || m->fromzero);

  PetscFunctionBegin;
  for (int k = 0; k < m->steps; k++) PetscCall(Step(u, l, m, k, none, k == m->steps - 1 ? sums : NULL));
  if (none && !m->steps) ALONE(u, u->c->dev->ops->zero(u->c->dev->id, u->at[l].x, NUMBER(u->c) * (size_t)u->c->level[l].n * (size_t)u->columns, u->s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The right-hand side of the next coarser level: alpha R r */
static PetscErrorCode Restrict(Run *u, int l, double alpha, const void *r)
{
  GPUMGLevel *L = &u->c->level[l];

  return Multiply(u, &L->R, alpha, r, 0, NULL, u->c->level[l - 1].b);
}

/* x = P x of the coarser level, or x += P x. The finest level writes to the array from which the remaining steps end in the caller's */
static PetscErrorCode Interpolate(Run *u, int l, PetscBool add)
{
  GPUMGCycle          *c  = u->c;
  const GPUMGLevel    *L  = &c->level[l];
  const GPUMGSmoother *up = L->two ? &L->up : &L->down;
  Place               *at = &u->at[l];
  const void *const    y  = add ? at->x : NULL;

  PetscFunctionBegin;
  if (l == c->levels - 1 && c->type == PC_MG_MULTIPLICATIVE && (at->x == u->home) == (PetscBool)(Fused(L, up) && up->steps % 2)) Turn(at);
  PetscCall(Multiply(u, &L->P, 1, u->at[l - 1].x, add ? 1 : 0, y, at->x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The solution where cycles end: a dense product, or the smoother of the coarsest level */
static PetscErrorCode Coarse(Run *u, PetscBool zero)
{
  GPUMGCycle  *c  = u->c;
  const Place *at = &u->at[c->bottom];
  const void  *D  = c->floats ? c->dense : c->bottom ? c->tail.p : c->inverse.p;

  PetscFunctionBegin;
  if (c->gather.r.halo) { /* x of the level is a part of this vector, or a copy of the part */
    double *const b = (double *)c->coarsevectors.p, *const x = b + c->coarserows, *const own = x + c->coarsefirst;

    PetscCall(Multiply(u, &c->gather, 1, at->b, 0, NULL, b));
    if (c->small) ALONE(u, GPUMGCycleRun(c->small, b, x, NULL));
    else ALONE(u, GPUMGDense(c->dev, PETSC_FALSE, c->coarserows, 1, D, b, x, u->s));
    if (at->x != own) ALONE(u, c->dev->ops->copy(c->dev->id, at->x, own, sizeof(double) * (size_t)c->level[c->bottom].n, GPUCSR_ON_DEVICE, u->s));
    if (c->small) c->flops += c->small->flops;
  } else if (c->bottom || c->exact) ALONE(u, GPUMGDense(c->dev, (GPUCSRBool)c->floats, c->level[c->bottom].n, u->columns, D, at->b, at->x, u->s));
  else PetscCall(Smooth(u, 0, &c->level[0].down, zero, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Multiplicative(Run *, int, PetscBool);

/* Two steps of the Krylov method on level l, with the cycle from there as preconditioner. Always two: a recorded graph cannot skip the second one. The result is x of the level; b changes */
static PetscErrorCode Krylov(Run *u, int l)
{
  GPUMGCycle  *c    = u->c;
  GPUMGLevel  *L    = &c->level[l];
  Place       *at   = &u->at[l];
  const size_t each = VectorBytes(c, L->n);
  char *const  more = (char *)L->krylov.p;
  GPUMGKrylov  k    = {
        .n = L->n, .residuals = (GPUCSRBool)(c->krylov == GPUMG_KRYLOV_GCR), .v = {(double *)(more + each), (double *)L->r},
                  .b = (double *)L->b, .part = (double *)(more + 2 * each)
  };

  PetscFunctionBegin;
  for (int step = 0; step < 2; step++) {
    PetscCall(Multiplicative(u, l, PETSC_TRUE));
    k.c[step] = (double *)at->x;
    PetscCall(Multiply(u, &L->A, 1, at->x, 0, NULL, k.v[step]));
    if (c->size > 1) PetscCall(GPUMGKrylovStepOfRanks(c->dev, &k, step, c->comm, &u->error, u->s));
    else PetscCall(GPUMGKrylovStep(c->dev, &k, step, u->s));
    if (step) continue;
    at->x     = at->other; /* the first step's result stays */
    at->other = k.c[0];
  }
  c->flops += 15.0 * L->n;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The cycle from level l down and back */
static PetscErrorCode Multiplicative(Run *u, int l, PetscBool zero)
{
  GPUMGLevel *L      = &u->c->level[l];
  const int   cycles = l == u->c->bottom + 1 ? 1 : L->cycles;

  PetscFunctionBegin;
  if (l == u->c->bottom) PetscFunctionReturn(Coarse(u, zero));
  PetscCall(Smooth(u, l, &L->down, zero, NULL));
  PetscCall(Residual(u, l));
  PetscCall(Restrict(u, l, SIGN(L), L->r));
  if (u->c->krylov && (l - 1 > u->c->bottom || (u->c->small && u->c->small->levels > 1))) PetscCall(Krylov(u, l - 1));
  else
    for (int k = 0; k < cycles; k++) PetscCall(Multiplicative(u, l - 1, (PetscBool)(k == 0)));
  PetscCall(Interpolate(u, l, PETSC_TRUE));
  PetscCall(Smooth(u, l, L->two ? &L->up : &L->down, PETSC_FALSE, l == u->c->levels - 1 ? u->sums : NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* error: of this rank, which takes part in exchanges alone */
static PetscErrorCode CycleRun(GPUMGCycle *c, PetscErrorCode error, const double *b, double *x, const GPUCSRSums *sums)
{
  const int   top = c->levels - 1;
  GPUMGLevel *L   = &c->level[top];
  GPUMGEnds   e   = {.n = L->n, .from = b, .to = L->b, .work = (double *)c->rounded.p};
  Run         u   = {.c = c, .s = c->dev->stream, .home = c->floats ? L->x : x, .columns = 1, .error = error};

  PetscFunctionBegin;
  c->met   = PETSC_TRUE;
  c->flops = 0;
  for (int l = 0; l < top; l++) u.at[l] = (Place){c->level[l].b, c->level[l].x, c->level[l].spare, c->level[l].krylov.p};
  u.at[top] = (Place){c->floats ? L->b : b, u.home, L->spare, NULL};
  if (c->floats) u.first = &e;
  if (c->type == PC_MG_MULTIPLICATIVE)
    for (int k = 0; k < c->cycles; k++) {
      if (k == c->cycles - 1 && !c->floats && GPUCSRPlanSums(L->A.o.plan)) u.sums = sums;
      PetscCall(Multiplicative(&u, top, (PetscBool)(k == 0)));
    }
  else { /* additive, full and cascadic cycles: restrict b to all levels; then smooth each level from 0 and add, or start each level from the coarser solution */
    for (int l = c->levels - 1; l > 0; l--) PetscCall(Restrict(&u, l, 1, u.at[l].b));
    for (int l = 0; l < c->levels; l++) {
      const PetscBool zero = (PetscBool)(l == 0 || c->type == PC_MG_ADDITIVE);

      if (l && c->type != PC_MG_ADDITIVE) PetscCall(Interpolate(&u, l, PETSC_FALSE));
      if (c->type == PC_MG_FULL) PetscCall(Multiplicative(&u, l, zero));
      else if (l) PetscCall(Smooth(&u, l, &c->level[l].down, zero, NULL));
      else PetscCall(Coarse(&u, zero));
    }
    if (c->type == PC_MG_ADDITIVE)
      for (int l = 1; l < c->levels; l++) PetscCall(Interpolate(&u, l, PETSC_TRUE));
  }
  e.from = u.at[top].x;
  e.to   = x;
  if (c->floats) PetscCall(GPUMGWiden(c->dev, &e, sums, u.s));
  else if (u.at[top].x != x) ALONE(&u, c->dev->ops->copy(c->dev->id, x, u.at[top].x, sizeof(double) * (size_t)L->n, GPUCSR_ON_DEVICE, u.s));
  PetscFunctionReturn(u.error);
}

/* x = M b on device arrays of the caller, in stream order. sums: sums of x, or NULL; *sums->parts tells if the last pass has computed the sums */
PetscErrorCode GPUMGCycleRun(GPUMGCycle *c, const double *b, double *x, const GPUCSRSums *sums)
{
  return CycleRun(c, PETSC_SUCCESS, b, x, sums);
}

/* An application by its graph, recorded on first use */
static PetscErrorCode Replay(GPUMGCycle *c, GPUMGRecord *r)
{
  PetscFunctionBegin;
  if (c->dev->ops->kernels && c->ran && !r->graph && !c->unrecordable && !c->host) {
    PetscErrorCode ierr;

    PetscCall(GPUMGRanksRecord(c, PETSC_TRUE));
    PetscCall(GPUCSREither(c->dev, GPUCSRLaunchGraphBegin(c->dev->stream), 0));
    ierr     = GPUMGCycleRun(c, r->b, r->x, NULL);
    r->graph = c->stale;
    c->stale = NULL;
    PetscCall(GPUCSREither(c->dev, GPUCSRLaunchGraphEnd(c->dev->stream, &r->graph), 0));
    PetscCall(ierr);
    PetscCall(GPUMGRanksRecord(c, PETSC_FALSE));
    c->unrecordable = (PetscBool)!r->graph;
  }
  if (r->graph) PetscFunctionReturn(GPUCSREither(c->dev, GPUCSRLaunchGraphLaunch(r->graph, c->dev->stream), 0));
  PetscCall(GPUMGCycleRun(c, r->b, r->x, NULL));
  c->ran = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Drop(GPUMGCycle *c, GPUMGRecord *r)
{
  PetscFunctionBegin;
  if (!c->stale) c->stale = r->graph;
  else if (r->graph && !c->dev->failed[0]) PetscCall(GPUCSREither(c->dev, GPUCSRLaunchGraphDestroy(&r->graph), 0));
  *r = (GPUMGRecord){NULL, NULL, NULL};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes the cycle's own b and x */
PetscErrorCode GPUMGCycleEnds(GPUMGCycle *c)
{
  const size_t bytes = GPUCSRAlignUp(sizeof(double) * (size_t)c->level[c->levels - 1].n);

  PetscFunctionBegin;
  PetscCall(GPUCSRBufferGrow(c->dev, 2 * bytes, "vectors of the finest multigrid level", &c->ends));
  c->b = (double *)c->ends.p;
  c->x = (double *)((char *)c->ends.p + bytes);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  M b for repeated calls. If the arrays are the same as in the last call, as in conjugate gradients, a graph works on the arrays. If they change, as in GMRES, a graph works on the cycle's own arrays;
  or single launches do the work if copies of long vectors take longer.
*/
static PetscErrorCode GPUMGCycleApply(GPUMGCycle *c, const double *b, double *x)
{
  const int n = c->level[c->levels - 1].n;

  PetscFunctionBegin;
  if (b == c->callerrecord.b && x == c->callerrecord.x) PetscFunctionReturn(Replay(c, &c->callerrecord));
  PetscCall(Drop(c, &c->callerrecord));
  c->callerrecord.b = b;
  c->callerrecord.x = x;
  if (n >= GPUCSRMachineOf(c->dev)->unrecorded_rows || !c->ran || !c->dev->ops->kernels) {
    PetscCall(GPUMGCycleRun(c, b, x, NULL));
    c->ran = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GPUMGCycleEnds(c));
  c->ownrecord.b = c->b;
  c->ownrecord.x = c->x;
  if (b != c->b) PetscCall(c->dev->ops->copy(c->dev->id, c->b, b, sizeof(double) * (size_t)n, GPUCSR_ON_DEVICE, c->dev->stream));
  PetscCall(Replay(c, &c->ownrecord));
  if (x != c->x) PetscCall(c->dev->ops->copy(c->dev->id, x, c->x, sizeof(double) * (size_t)n, GPUCSR_ON_DEVICE, c->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies b to the device and x back if the host holds the vectors. The host waits only if it holds a vector. The streams of foreign vectors and of the cycle wait for each other by events */
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
  if (b->place != GPUCSR_DEVICE || x->place != GPUCSR_DEVICE) PetscCall(GPUMGCycleEnds(c));
  if (b->place != GPUCSR_DEVICE) PetscCall(GPUCSRUpload(dev, c->b, GPUCSR_DOUBLE, b->p, GPUCSR_DOUBLE, n, b->pinned, dev->stream, NULL));
  PetscCall(GPUMGCycleApply(c, b->place == GPUCSR_DEVICE ? (const double *)b->p : c->b, x->place == GPUCSR_DEVICE ? (double *)x->p : c->x));
  if (x->place != GPUCSR_DEVICE) PetscCall(GPUCSRDownload(dev, x->p, GPUCSR_DOUBLE, c->x, GPUCSR_DOUBLE, n, x->pinned, dev->stream));
  if (b->place != GPUCSR_DEVICE && ops->separate) VecGPUCrossed(PETSC_TRUE, n);
  if (x->place != GPUCSR_DEVICE && ops->separate) VecGPUCrossed(PETSC_FALSE, n);
  if (x->place != GPUCSR_DEVICE || b->pinned) PetscCall(ops->streamsynchronize(dev->id, dev->stream));
  else if (s != dev->stream) {
    PetscCall(ops->eventrecord(dev->id, *event, dev->stream));
    PetscCall(ops->streamwait(dev->id, s, *event));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The vectors get their arrays back also after an error */
static PetscErrorCode ApplyVecs(GPUMGCycle *c, GPUCSREvent *event, Vec b, Vec x)
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
  PetscCall(GPUMGCycleCheck(c)); /* of earlier applications, where the host has not waited */
  PetscCall(PetscLogFlops(c->flops));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x = M b. A rank with an error before its exchanges still takes part in those that pass through the host */
PetscErrorCode GPUMGCycleApplyVecs(GPUMGCycle *c, GPUCSREvent *event, Vec b, Vec x)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  c->met = PETSC_FALSE;
  ierr   = ApplyVecs(c, event, b, x);
  if (ierr && c->host && !c->met) (void)CycleRun(c, ierr, NULL, NULL, NULL);
  PetscFunctionReturn(ierr);
}

/* Number of a level's own vectors: an application in doubles has b and x of the finest level */
static size_t Vectors(const GPUMGCycle *c, int l)
{
  return l == c->levels - 1 && !c->floats ? 3 : 5;
}

/* Memory for a level's vectors, */
size_t GPUMGCycleVectorBytes(const GPUMGCycle *c, int l)
{
  return Vectors(c, l) * VectorBytes(c, c->level[l].n);
}

/* and their addresses */
void GPUMGCycleVectors(GPUMGCycle *c, int l)
{
  GPUMGLevel *L   = &c->level[l];
  void      **v[] = {&L->r, &L->d, &L->spare, &L->b, &L->x};

  L->b = L->x = NULL;
  for (size_t k = 0; k < Vectors(c, l); k++) *v[k] = (char *)L->memory.p + k * VectorBytes(c, L->n);
}

/* Sets the method of K-cycles, with its memory. A dense matrix of small levels stands for their W-cycles */
PetscErrorCode GPUMGCycleKrylov(GPUMGCycle *c, GPUMGKrylovMethod method)
{
  PetscFunctionBegin;
  c->krylov = method;
  for (int l = c->bottom + (c->small ? 0 : 1); method && l < c->levels - 1; l++)
    PetscCall(GPUCSRBufferGrow(c->dev, 2 * VectorBytes(c, c->level[l].n) + sizeof(double) * GPUMG_KRYLOV_SUMS * GPUMG_KRYLOV_PARTS, "vectors of a K-cycle", &c->level[l].krylov));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Drops the graphs of earlier matrices */
PetscErrorCode GPUMGCycleForget(GPUMGCycle *c)
{
  PetscFunctionBegin;
  PetscCall(Drop(c, &c->ownrecord));
  PetscCall(Drop(c, &c->callerrecord));
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
  if (c->stale && !c->dev->failed[0]) PetscCall(GPUCSREither(c->dev, GPUCSRLaunchGraphDestroy(&c->stale), 0));
  PetscCall(GPUCSRBufferFree(c->dev, &c->ends));
  for (int l = 0; l < GPUMG_LEVELS; l++) {
    PetscCall(GPUCSRBufferFree(c->dev, &c->level[l].memory));
    PetscCall(GPUCSRBufferFree(c->dev, &c->level[l].krylov));
    PetscCall(GPUCSRBufferFree(c->dev, &c->level[l].down.M));
    PetscCall(GPUCSRBufferFree(c->dev, &c->level[l].up.M));
    for (int k = 0; k < 3; k++) PetscCall(MatDestroy(&c->level[l].copy[k].A));
  }
  PetscCall(MatDestroy(&c->gathermatrix));
  PetscCall(GPUCSRBufferFree(c->dev, &c->coarsevectors));
  PetscCall(GPUCSRBufferFree(c->dev, &c->inverse));
  PetscCall(GPUCSRBufferFree(c->dev, &c->tail));
  PetscCall(GPUCSRBufferFree(c->dev, &c->panels));
  PetscCall(GPUCSRBufferFree(c->dev, &c->rounded));
  PetscCall(PetscMemzero(c, sizeof(*c)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Have all solves of smoothers succeeded? Call it when the device has finished them */
PetscErrorCode GPUMGCycleCheck(const GPUMGCycle *c)
{
  PetscFunctionBegin;
  for (int l = 0; l < c->levels; l++) {
    const GPUMGSmoother *const both[] = {&c->level[l].down, &c->level[l].up};

    for (int k = 0; k <= (c->level[l].two ? 1 : 0); k++)
      if (both[k]->factor) PetscCall(GPUCSRFactorCheck(both[k]->factor));
  }
  if (c->small) PetscCall(GPUMGCycleCheck(c->small));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Device memory besides the matrices */
double GPUMGCycleBytes(const GPUMGCycle *c)
{
  double bytes = (double)c->ends.bytes + (double)c->inverse.bytes + (double)c->coarsevectors.bytes + (double)c->tail.bytes + (double)c->panels.bytes + (double)c->rounded.bytes;

  for (int l = 0; l < c->levels; l++) bytes += (double)c->level[l].memory.bytes + (double)c->level[l].krylov.bytes + (double)c->level[l].down.M.bytes + (double)c->level[l].up.M.bytes;
  return bytes;
}

/*
  The tail of a cycle: its small levels as one dense matrix. From a zero start, the cycle on a level is linear in the right-hand side. On a small level a dense product takes less time than the
  launches of all passes below. One cycle of the level, applied to all unit vectors at once, gives the columns of the matrix: vectors become panels with as many columns, stored by rows.
*/

/* Leaves the matrix in c->tail. Columns of it are cycles from the level bottom on */
static PetscErrorCode Columns(GPUMGCycle *c, int bottom, GPUCSRStorage own[][2])
{
  const int    n       = c->level[bottom].n;
  const size_t columns = (size_t)n, bytes = sizeof(double) * columns * columns;
  size_t       room = 0, next = 0;
  Run          u = {.c = c, .s = c->dev->stream, .columns = n};

  PetscFunctionBegin;
  /* the matrices of levels up to bottom in CSR, and panels for their vectors */
  for (int l = 0; l <= bottom; l++) room += 4 * GPUCSRAlignUp(sizeof(double) * (size_t)c->level[l].n * columns);
  PetscCall(GPUCSRBufferGrow(c->dev, room, "panels of a multigrid tail", &c->panels));
  for (int l = 0; l <= bottom; l++) {
    GPUMGLevel *L   = &c->level[l];
    void      **v[] = {&L->b, &L->x, &L->r, &L->d};

    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(v); k++) {
      *v[k] = (char *)c->panels.p + next;
      next += GPUCSRAlignUp(sizeof(double) * (size_t)L->n * columns);
    }
    PetscCall(MatGPUCSROperatorCSR_Private(&L->A.o, NULL, &L->A.rows));
    if (!l) continue;
    PetscCall(MatGPUCSROperatorCSR_Private(&L->P.o, &own[l][0], &L->P.rows));
    PetscCall(MatGPUCSROperatorCSR_Private(&L->R.o, &own[l][1], &L->R.rows));
  }
  PetscCall(GPUCSRBufferGrow(c->dev, bytes, "the tail of a multigrid cycle", &c->tail));
  PetscCall(GPUMGIdentity(c->dev, n, (double *)c->level[bottom].b, c->dev->stream));
  for (int l = 0; l <= bottom; l++) u.at[l] = (Place){.b = c->level[l].b, .x = c->level[l].x};
  for (int k = 0; k < c->level[bottom + 1].cycles; k++) PetscCall(Multiplicative(&u, bottom, (PetscBool)(k == 0)));
  PetscCall(c->dev->ops->copy(c->dev->id, c->tail.p, c->level[bottom].x, bytes, GPUCSR_ON_DEVICE, c->dev->stream));
  PetscCall(c->dev->ops->streamsynchronize(c->dev->id, c->dev->stream)); /* transposes go */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  One matrix for the levels of at most so many rows in V and W cycles, below the finest level. The coarsest level alone gains nothing: its solver is a matrix already. Other cycle types begin on
  small levels, not from 0
*/
PetscErrorCode GPUMGTailMake(GPUMGCycle *c, int most)
{
  GPUCSRStorage own[GPUMG_LEVELS][2] = {{{0}}}; /* P and R if only their transposes are stored */
  int           bottom               = 0;
  GPUMGCycle   *t;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  c->bottom = 0;
  if (c->type != PC_MG_MULTIPLICATIVE) PetscFunctionReturn(PETSC_SUCCESS);
  while (bottom < c->levels - 2 && c->level[bottom + 1].n <= most && !GPUMGFactored(&c->level[bottom + 1]) && (c->exact || !GPUMGFactored(&c->level[0]))) bottom++; /* a solve takes one vector */
  if (!bottom) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(&t));
  *t        = *c; /* with panels as its vectors */
  t->krylov = GPUMG_KRYLOV_NONE;
  GPUCSRTry(&attempt, Columns(t, bottom, own));
  c->tail   = t->tail;
  c->panels = t->panels;
  PetscCall(PetscFree(t));
  for (int l = 0; l <= bottom; l++)
    for (int k = 0; k < 2; k++)
      if (own[l][k].dev) PetscCall(GPUCSRStorageDestroy(&own[l][k]));
  /* without memory for the matrix, cycles go over all levels */
  if (!attempt.error) c->bottom = bottom;
  else {
    PetscCheck(attempt.error == PETSC_ERR_MEM, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
    PetscCall(GPUCSRBufferFree(c->dev, &c->tail));
    PetscCall(GPUCSRBufferFree(c->dev, &c->panels));
    PetscCall(PetscInfo(NULL, "No matrix for the small levels of a cycle: %s\n", attempt.message));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

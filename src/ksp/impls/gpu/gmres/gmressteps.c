/*
  The device's side of a cycle of GMRES: products, preconditioners, and the passes of gmres.h, by kernels or, on the host backend, by loops.

    graph      on one process: each iteration is a launch of one recorded graph; scalars stay on the device.
    host loop  for any matrix and preconditioner: MatMult() and PCApply() of PETSc vectors on the device. On one process scalars stay on the device too; on several the host adds up the sums.

  On both paths the host reads each complete column of the Hessenberg matrix, and may have launched the next iteration by then.
*/
#include "gmresimpl.h"

/* ---- memory ---- */

static PetscErrorCode ColumnsFree(KSP_GPUGMRES *g)
{
  PetscFunctionBegin;
  if (g->locked && !g->k.dev->failed[0]) PetscCall(g->k.dev->ops->hostfree(g->k.dev->id, g->locked));
  g->locked = NULL;
  g->room   = 0;
  PetscCall(PetscFree6(g->hessenberg, g->cosine, g->sine, g->rhs, g->norm, g->y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Device address of a member of the mirrored state */
static double *OnDevice(const KSP_GPUGMRES *g, const double *here)
{
  return (double *)g->state + (here - (double *)g->mirror);
}

static PetscErrorCode SendState(KSP_GPUGMRES *g)
{
  return g->k.dev->ops->copy(g->k.dev->id, g->state, g->mirror, GPUGMRESStateBytes(g->m), GPUCSR_TO_DEVICE, g->k.dev->stream);
}

/* Memory for the passes. Not collective, so that one process may fail alone */
PetscErrorCode GPUGMRESMemory(KSP ksp, KSP_GPU *k)
{
  KSP_GPUGMRES  *g = (KSP_GPUGMRES *)k;
  const PetscInt m = PetscMax(1, PetscMin(g->restart, ksp->max_it)), z = g->flexible && k->pc.kind == GPUKSP_PC_BY_PCAPPLY ? m : 0;
  GPUKSPVectors *v       = &k->persistent.v;
  GPUGMRESState  initial = {(int)m, -1, (int)g->refinement, 0};
  double        *p;

  PetscFunctionBegin;
  g->m      = (int)m;
  g->stride = GPUCSRAlignUp((size_t)k->n * sizeof(double)) / sizeof(double);
  g->most   = 1;
  PetscCall(GPUCSREither(k->dev, GPUGMRESDeviceBlocks(k->dev, &g->most), PETSC_SUCCESS));
  /* the host's memory for m columns: the Hessenberg matrix, and page-locked memory */
  if (g->room != g->m) {
    const size_t state = GPUCSRAlignUp(GPUGMRESStateBytes(g->m)), column = sizeof(double) * (size_t)(g->m + 2);

    PetscCall(ColumnsFree(g));
    PetscCall(PetscMalloc6((size_t)(g->m + 2) * (size_t)g->m, &g->hessenberg, g->m, &g->cosine, g->m, &g->sine, g->m + 1, &g->rhs, g->m + 1, &g->norm, g->m, &g->y));
    PetscCall(g->k.dev->ops->hostmalloc(g->k.dev->id, state + (GPUGMRES_SEEN + 1) * column, &g->locked));
    g->mirror = (GPUGMRESState *)g->locked;
    g->seen   = (double *)((char *)g->locked + state);
    g->sums   = (double *)((char *)g->locked + state + GPUGMRES_SEEN * column);
    g->room   = g->m;
  }
  PetscCall(GPUCSRBufferGrow(k->dev, sizeof(double) * (1 + (size_t)(m + 1) * (size_t)g->most), "sums of a solver", &g->partial));
  PetscCall(k->dev->ops->zero(k->dev->id, g->partial.p, sizeof(double), k->dev->stream)); /* no block has finished */
  PetscCall(GPUCSRBufferGrow(k->dev, GPUGMRESStateBytes(g->m), "the state of a solver", &g->statememory));
  PetscCall(GPUCSRBufferGrow(k->dev, PetscMax(1, g->stride) * sizeof(double) * (size_t)(m + 1 + z + 2), "the Krylov basis of a solver", &k->vectors));
  p                = (double *)k->vectors.p;
  g->state         = (GPUGMRESState *)g->statememory.p;
  g->basis         = p;
  g->flexiblebasis = p + g->stride * (size_t)(m + 1);
  g->x             = g->flexiblebasis + g->stride * (size_t)z;
  g->b             = g->x + g->stride;
  PetscCall(PetscMemzero(g->mirror, GPUGMRESStateBytes(g->m)));
  *g->mirror                     = initial;
  GPUGMRESSolution(g->mirror)[m] = 1;
  PetscCall(SendState(g));
  /* arguments of the steps of steps.h, for subtraction and preconditioners on the device */
  PetscCall(PetscMemzero(v, sizeof(*v)));
  v->x  = g->x;
  v->b  = g->b;
  v->bs = (int)k->pc.bs;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUGMRESRelease(KSP_GPU *k)
{
  KSP_GPUGMRES *g = (KSP_GPUGMRES *)k;

  PetscFunctionBegin;
  PetscCall(ColumnsFree(g));
  PetscCall(GPUCSRBufferFree(k->dev, &g->partial));
  PetscCall(GPUCSRBufferFree(k->dev, &g->statememory));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- passes ---- */

/* source: slot of the vector to orthogonalize */
static GPUGMRESPass PassOf(KSP_GPUGMRES *g, int source, PetscBool first, PetscBool again)
{
  const KSP_GPU  *k   = &g->k;
  const PetscBool any = (PetscBool)(k->pc.kind == GPUKSP_PC_BY_PCAPPLY), right = (PetscBool)k->persistent.right;
  const double   *diagonal = k->pc.kind == GPUKSP_PC_DIAGONAL ? (const double *)k->pc.numbers.p : NULL, *own = right ? NULL : diagonal, *behind = right ? diagonal : NULL;
  double         *direction = any ? NULL : k->slot[GMRES_DIRECTION].p, *seen = k->size > 1 ? NULL : g->seen, *partial = (double *)g->partial.p;

  return (GPUGMRESPass){k->n, first, again, any, g->stride, g->basis, direction, k->slot[source].p, own, behind, g->state, seen, g->sums, partial + 1, g->most, (unsigned *)partial};
}

static PetscErrorCode ProjectLoop(void *arg)
{
  const GPUGMRESPass *a      = (const GPUGMRESPass *)arg;
  GPUGMRESState      *s      = a->state;
  const double       *w      = a->again ? a->basis + (size_t)(s->k + 1) * a->stride : a->w;
  const double        factor = a->again || a->scaled ? 1 : GPUGMRESInverse(s)[s->k];

  PetscFunctionBegin;
  if (a->again && !s->again) PetscFunctionReturn(PETSC_SUCCESS);
  for (int j = 0; j <= s->k; j++) {
    const double *v   = a->basis + (size_t)j * a->stride;
    double        sum = 0;

    for (int i = 0; i < a->n; i++) sum += GPUGMRESEntry(a, factor, w, i) * v[i];
    if (a->seen) GPUGMRESProjected(s, j, sum, a->again);
    else a->sums[j] = sum;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode UpdateLoop(void *arg)
{
  const GPUGMRESPass *a      = (const GPUGMRESPass *)arg;
  GPUGMRESState      *s      = a->state;
  const int           k      = a->first ? -1 : s->k;
  double             *next   = a->basis + (size_t)(k + 1) * a->stride;
  const double       *w      = a->again ? next : a->w;
  const double        factor = a->first || a->again || a->scaled ? 1 : GPUGMRESInverse(s)[k];
  double              sum    = 0;

  PetscFunctionBegin;
  if (a->again && !s->again) PetscFunctionReturn(PETSC_SUCCESS);
  for (int i = 0; i < a->n; i++) {
    double u = GPUGMRESEntry(a, factor, w, i);

    for (int j = 0; j <= k; j++) u -= GPUGMRESCoefficients(s)[j] * a->basis[(size_t)j * a->stride + (size_t)i];
    next[i] = u;
    sum += u * u;
    if (a->direction) a->direction[i] = a->right ? a->right[i] * u : u;
  }
  s->k = k;
  if (!a->seen) a->sums[0] = sum;
  else if (GPUGMRESUpdated(s, sum, a->again)) PetscCall(PetscArraycpy(a->seen + (size_t)GPUGMRESSeen(k) * (size_t)(s->m + 2), GPUGMRESColumn(s), k + 2));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SumLoop(void *arg)
{
  const GPUGMRESSum *a = (const GPUGMRESSum *)arg;

  PetscFunctionBegin;
  for (int i = 0; i < a->n; i++) {
    double u = 0;

    for (int j = 0; j < a->count; j++) u += a->coefficients[j] * a->vectors[(size_t)j * a->stride + (size_t)i];
    a->out[i] = (a->x ? a->x[i] : 0) + (a->diagonal ? a->diagonal[i] * u : u);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sums over all processes, in a->sums */
static PetscErrorCode Reduce(KSP ksp, KSP_GPUGMRES *g, int count)
{
  PetscFunctionBegin;
  PetscCall(g->k.dev->ops->streamsynchronize(g->k.dev->id, g->k.dev->stream));
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, g->sums, count, MPI_DOUBLE, MPI_SUM, PetscObjectComm((PetscObject)ksp)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* out = x + diagonal . (vectors times coefficients) */
static PetscErrorCode Sum(KSP_GPUGMRES *g, int count, const double *vectors, const double *coefficients, const double *diagonal, const double *x, double *out)
{
  GPUGMRESSum a = {g->k.n, count, g->stride, vectors, coefficients, diagonal, x, out};

  PetscFunctionBegin;
  PetscCall(GPUCSREither(g->k.dev, GPUGMRESDeviceSum(&a, g->k.dev->stream), GPUCSRRunOnHost(g->k.dev, SumLoop, &a, sizeof(a), g->k.dev->stream, "a combination of GMRES' basis")));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The new basis vector from the vector in a slot */
static PetscErrorCode Orthogonalize(KSP ksp, KSP_GPUGMRES *g, int source, PetscBool first)
{
  PetscFunctionBegin;
  for (int again = 0; again < 2; again++) {
    GPUGMRESPass a = PassOf(g, source, first, (PetscBool)again);

    if (again && (first || g->refinement == KSP_GMRES_CGS_REFINE_NEVER)) break;
    if (again && g->k.size > 1 && !g->mirror->again) break; /* on one process the passes test this themselves */
    if (!first) {
      PetscCall(GPUCSREither(g->k.dev, GPUGMRESDeviceProject(&a, g->k.dev->stream), GPUCSRRunOnHost(g->k.dev, ProjectLoop, &a, sizeof(a), g->k.dev->stream, "a projection of GMRES")));
      if (g->k.size > 1) {
        PetscCall(Reduce(ksp, g, g->mirror->k + 1));
        for (int j = 0; j <= g->mirror->k; j++) GPUGMRESProjected(g->mirror, j, g->sums[j], a.again);
        PetscCall(SendState(g));
      }
    }
    PetscCall(GPUCSREither(g->k.dev, GPUGMRESDeviceUpdate(&a, g->k.dev->stream), GPUCSRRunOnHost(g->k.dev, UpdateLoop, &a, sizeof(a), g->k.dev->stream, "an orthogonalization of GMRES")));
    if (g->k.size > 1) {
      PetscCall(Reduce(ksp, g, 1));
      if (a.first) g->mirror->k = -1;
      (void)GPUGMRESUpdated(g->mirror, g->sums[0], a.again);
      PetscCall(SendState(g));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- products and preconditioners ---- */

/* A copy of n entries, on the device */
static PetscErrorCode Copy(KSP_GPUGMRES *g, double *to, const double *from)
{
  return g->k.dev->ops->copy(g->k.dev->id, to, from, sizeof(double) * (size_t)g->k.n, GPUCSR_ON_DEVICE, g->k.dev->stream);
}

/* Is the preconditioner a step of its own? */
static PetscBool Apart(const KSP_GPU *k)
{
  return (PetscBool)(k->pc.kind == GPUKSP_PC_BY_PCAPPLY || k->pc.kind == GPUKSP_PC_BETWEEN_STEPS);
}

/* The first basis vector: the residual of x, left preconditioned. zero: x is 0 */
PetscErrorCode GPUGMRESStart(KSP ksp, KSP_GPUGMRES *g, PetscBool zero)
{
  const PetscBool apart = (PetscBool)(Apart(&g->k) && !g->k.persistent.right);

  PetscFunctionBegin;
  if (zero) PetscCall(Copy(g, g->k.slot[GMRES_PRODUCT].p, g->b));
  else {
    PetscCall(Copy(g, g->k.slot[GMRES_DIRECTION].p, g->x));
    PetscCall(GPUKSPProduct(ksp, &g->k, GMRES_DIRECTION, GMRES_PRODUCT));
    PetscCall(GPUKSPStepRun(ksp, &g->k, GPUKSP_SUBTRACT, &g->k.persistent.v, GPUKSP_STEP_ALWAYS));
  }
  if (apart) PetscCall(GPUKSPPrecondition(ksp, &g->k, GMRES_PRODUCT, GMRES_RESULT, PETSC_FALSE));
  PetscCall(Orthogonalize(ksp, g, apart ? GMRES_RESULT : GMRES_PRODUCT, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One iteration; a GPUKSPIteration. PCApply() gets a normalised vector */
static PetscErrorCode Column(KSP ksp, KSP_GPU *k, GPUKSPVectors *v)
{
  KSP_GPUGMRES   *g      = (KSP_GPUGMRES *)k;
  const size_t    at     = g->stride * (size_t)g->column;
  const PetscBool any    = (PetscBool)(k->pc.kind == GPUKSP_PC_BY_PCAPPLY);
  const PetscBool before = (PetscBool)(Apart(k) && k->persistent.right), behind = (PetscBool)(Apart(k) && !k->persistent.right);

  PetscFunctionBegin;
  if (any) PetscCall(Sum(g, 1, g->basis + at, OnDevice(g, GPUGMRESInverse(g->mirror)) + g->column, NULL, NULL, k->slot[GMRES_DIRECTION].p));
  if (before) PetscCall(GPUKSPPrecondition(ksp, k, GMRES_DIRECTION, GMRES_RESULT, PETSC_FALSE));
  if (any && g->flexible) PetscCall(Copy(g, g->flexiblebasis + at, k->slot[GMRES_RESULT].p));
  PetscCall(GPUKSPProduct(ksp, k, before ? GMRES_RESULT : GMRES_DIRECTION, GMRES_PRODUCT));
  if (behind) PetscCall(GPUKSPPrecondition(ksp, k, GMRES_PRODUCT, GMRES_RESULT, PETSC_FALSE));
  PetscCall(Orthogonalize(ksp, g, behind ? GMRES_RESULT : GMRES_PRODUCT, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Launches iteration `it`. The first is not recorded, because it may prepare objects that later iterations reuse */
PetscErrorCode GPUGMRESLaunch(KSP ksp, KSP_GPUGMRES *g, PetscInt it)
{
  KSP_GPU *k = &g->k;

  PetscFunctionBegin;
  g->column = it;
  if (k->dev->ops->kernels && k->taken == KSP_GPU_PATH_GRAPH) {
    if (!k->graph.recorded && g->launched++ > 0) {
      PetscCall(GPUKSPGraphRecord(ksp, k, NULL, Column));
      if (!k->graph.recorded) g->launched = PETSC_MIN_INT; /* never again */
    }
    if (k->graph.recorded) {
      PetscCall(GPUCSREither(k->dev, GPUCSRLaunchGraphLaunch(k->graph.recorded, k->dev->stream), 0));
      g->replayed++;
    } else PetscCall(Column(ksp, k, NULL));
  } else PetscCall(Column(ksp, k, NULL));
  PetscCall(k->dev->ops->eventrecord(k->dev->id, k->events[it % 2], k->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Waits for column `it` of the Hessenberg matrix, followed by the norm of the new basis vector; for -1, for the norm of the first. The column is valid until the launch after the next */
PetscErrorCode GPUGMRESWait(KSP_GPUGMRES *g, PetscInt it, const double **column)
{
  KSP_GPU *k = &g->k;

  PetscFunctionBegin;
  if (g->k.size > 1) {
    *column = GPUGMRESColumn(g->mirror);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (it < 0) PetscCall(k->dev->ops->streamsynchronize(k->dev->id, k->dev->stream));
  else PetscCall(k->dev->ops->eventsynchronize(k->dev->id, k->events[it % 2]));
  *column = g->seen + (size_t)GPUGMRESSeen((int)it) * (size_t)(g->m + 2);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* out = x plus the first `it` directions times g->y, the coefficients for normalised basis vectors. out may be x; NULL: the slot of results. Keeps the direction's slot */
PetscErrorCode GPUGMRESCombine(KSP ksp, KSP_GPUGMRES *g, PetscInt it, double *out)
{
  const KSP_GPU *k = &g->k;
  double *const y = OnDevice(g, GPUGMRESSolution(g->mirror)), *const one = y + g->m;
  const PetscBool z = (PetscBool)(g->flexible && k->pc.kind == GPUKSP_PC_BY_PCAPPLY), apart = (PetscBool)(Apart(k) && k->persistent.right && !z);

  PetscFunctionBegin;
  if (!z)
    for (PetscInt j = 0; j < it; j++) g->y[j] = g->norm[j] > 0 ? g->y[j] / g->norm[j] : 0;
  PetscCall(k->dev->ops->copy(k->dev->id, y, g->y, sizeof(double) * (size_t)it, GPUCSR_TO_DEVICE, k->dev->stream));
  if (apart) {
    PetscCall(Sum(g, (int)it, g->basis, y, NULL, NULL, g->k.slot[GMRES_PRODUCT].p));
    PetscCall(GPUKSPPrecondition(ksp, &g->k, GMRES_PRODUCT, GMRES_RESULT, PETSC_FALSE));
    PetscCall(Sum(g, 1, g->k.slot[GMRES_RESULT].p, one, NULL, g->x, out ? out : g->k.slot[GMRES_RESULT].p));
  } else PetscCall(Sum(g, (int)it, z ? g->flexiblebasis : g->basis, y, k->persistent.right && k->pc.kind == GPUKSP_PC_DIAGONAL ? (const double *)k->pc.numbers.p : NULL, g->x, out ? out : g->k.slot[GMRES_RESULT].p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

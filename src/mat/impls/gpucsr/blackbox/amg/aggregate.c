/*
  Aggregates of a level: its strong connections, roots more than a distance apart, and who joins them.
*/
#include "amg.h"

#define ROUNDS    4   /* between two questions whether all vertices are decided, after twice as many */
#define FEW       200 /* of so many entries one is weak, or the matrix counts as one without */
#define QUESTIONS 256 /* at most: each round decides at least one vertex, and most of the rest */

GPUAMGRows GPUAMGRowsOf(const GPUCSRStorage *A)
{
  const GPUAMGRows R = {A->m, (int32_t *)A->array[CSR_ROWPTR].data, (int32_t *)A->array[CSR_COL].data, (double *)A->array[CSR_VAL].data};

  return R;
}

static PetscErrorCode Ints(GPUAMG *h, int which, size_t n, const char what[], int32_t **p)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRBufferGrow(h->dev, sizeof(int32_t) * (n + 1), what, &h->temp[which]));
  *p = (int32_t *)h->temp[which].p;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* rowptr of n rows from w->length, in w->number */
static PetscErrorCode Scan(GPUAMG *h, int n, GPUAMGWork *w, int64_t *sum)
{
  PetscFunctionBegin;
  PetscCall((*GPUCSRSpGEMMOf(h->dev)->shape)(n, w->length, w->number, sum, NULL, h->dev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Strong connections: how many of each vertex, and of all */
static PetscErrorCode Strong(GPUAMG *h, int l, GPUAMGWork *w, int64_t *nnz)
{
  GPUAMGLevel     *L   = &h->level[l];
  const GPUAMGOps *ops = GPUAMGOf(h->dev);
  const int        n   = L->n / L->bs;

  PetscFunctionBegin;
  w->A     = GPUAMGRowsOf(&L->A);
  w->dinv  = (double *)L->dinv.p;
  w->theta = w->relative ? GPUAMG_WEAK : h->o.threshold[l];
  if (w->theta >= 0) {
    PetscCall(GPUCSRBufferGrow(h->dev, sizeof(double) * (size_t)n, "norms of a graph", &h->temp[GPUAMG_TEMP_NORM]));
    w->norm = (double *)h->temp[GPUAMG_TEMP_NORM].p;
    if (l || !w->relative || !h->normed) PetscCall((*ops->rows)(h->dev, GPUAMG_NORMS, n, w));
  }
  PetscCall((*ops->rows)(h->dev, GPUAMG_COUNT, n, w));
  PetscCall(Scan(h, n, w, nnz));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Zeros for the lengths of n rows, and memory for their sums */
PetscErrorCode GPUAMGLengths(GPUAMG *h, int n, GPUAMGWork *w)
{
  PetscFunctionBegin;
  PetscCall(Ints(h, GPUAMG_TEMP_LENGTH, (size_t)n, "aggregates", &w->length));
  PetscCall(Ints(h, GPUAMG_TEMP_NUMBER, (size_t)n, "aggregates", &w->number));
  PetscCall(h->dev->ops->zero(h->dev->id, w->length, sizeof(int32_t) * ((size_t)n + 1), h->dev->stream)); /* a scan reads one more than there are */
  PetscFunctionReturn(PETSC_SUCCESS);
}

GPUCSRBool GPUAMGEnoughWeak(int64_t weak, int64_t all)
{
  return (GPUCSRBool)(weak * FEW > all);
}

/* Of the finest matrix, whose diagonal is there */
PetscErrorCode GPUAMGCountWeak(GPUAMG *h, int64_t *weak)
{
  const GPUCSRStorage *A = &h->level[0].A;
  GPUAMGWork           w = {.bs = 1, .relative = 1};
  int64_t              nnz;

  PetscFunctionBegin;
  PetscCall(GPUAMGLengths(h, A->m, &w));
  PetscCall(Strong(h, 0, &w, &nnz));
  *weak = A->nnz - nnz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix of a level without its small entries, while the norms of its graph are there. The caller destroys it */
PetscErrorCode GPUAMGFilter(GPUAMG *h, int l, GPUCSRStorage *F)
{
  GPUAMGLevel     *L   = &h->level[l];
  const GPUAMGOps *ops = GPUAMGOf(h->dev);
  GPUAMGWork       w   = {.A = GPUAMGRowsOf(&L->A), .bs = 1, .relative = 1, .dinv = (double *)L->dinv.p, .basis = (double *)L->basis.p, .norm = (double *)h->temp[GPUAMG_TEMP_NORM].p};
  int64_t          nnz;

  PetscFunctionBegin;
  PetscCall(GPUAMGLengths(h, L->n, &w));
  PetscCall((*ops->rows)(h->dev, GPUAMG_KEPT, L->n, &w));
  PetscCall(Scan(h, L->n, &w, &nnz));
  PetscCall(GPUCSRCSRCreate(h->dev, L->n, L->n, nnz, F));
  w.to = GPUAMGRowsOf(F);
  PetscCall(h->dev->ops->copy(h->dev->id, w.to.i, w.number, sizeof(int32_t) * ((size_t)L->n + 1), GPUCSR_ON_DEVICE, h->dev->stream));
  PetscCall((*ops->rows)(h->dev, GPUAMG_FILTER, L->n, &w));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory and row pointers of C = A B, where GPUAMG_REACHED fills the rest; can: rows are short, else there is no C */
PetscErrorCode GPUAMGReach(GPUAMG *h, const GPUCSRStorage *A, const GPUCSRStorage *B, GPUCSRStorage *C, GPUCSRBool *can)
{
  GPUAMGWork w = {.A = GPUAMGRowsOf(A), .from = GPUAMGRowsOf(B)};
  int32_t    flag;
  int64_t    nnz;

  PetscFunctionBegin;
  PetscCall(GPUAMGLengths(h, A->m, &w));
  PetscCall(Ints(h, GPUAMG_TEMP_FLAG, 0, "a product", &w.flag));
  PetscCall(h->dev->ops->zero(h->dev->id, w.flag, sizeof(int32_t), h->dev->stream));
  PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_REACH, A->m, &w));
  PetscCall(Scan(h, A->m, &w, &nnz));
  PetscCall(GPUCSRRead(h->dev, &flag, w.flag, sizeof(flag)));
  *can = (GPUCSRBool)(!flag && nnz <= INT32_MAX - 1024);
  if (!*can) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRCSRCreate(h->dev, A->m, B->n, nnz, C));
  PetscCall(h->dev->ops->copy(h->dev->id, C->array[CSR_ROWPTR].data, w.number, sizeof(int32_t) * ((size_t)A->m + 1), GPUCSR_ON_DEVICE, h->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The graph of strong connections. g: all connections of the level, which may be strong; or the matrix is their graph */
static PetscErrorCode Graph(GPUAMG *h, int l, const GPUAMGGraphs *g, GPUAMGWork *w)
{
  GPUAMGLevel *L = &h->level[l];
  const int    n = L->n / L->bs;
  int64_t      nnz;
  int32_t     *graph = NULL;

  PetscFunctionBegin;
  w->A = GPUAMGRowsOf(g->on ? &g->A : &L->A);
  if ((w->bs == 1 || g->on) && !w->relative && h->o.threshold[l] < 0) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Strong(h, l, w, &nnz));
  PetscCall(Ints(h, GPUAMG_TEMP_GRAPH, (size_t)nnz + (size_t)n + 1, "a graph", &graph));
  PetscCall(h->dev->ops->copy(h->dev->id, graph, w->number, sizeof(int32_t) * ((size_t)n + 1), GPUCSR_ON_DEVICE, h->dev->stream));
  w->to = (GPUAMGRows){n, graph, graph + n + 1, NULL};
  PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_GRAPH, n, w));
  w->A = w->to;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Roots, of which no two are within distance k, and of which each other vertex has one within it. Where connections have a direction, a root may depend on a later one */
static PetscErrorCode Roots(GPUAMG *h, int n, int k, GPUAMGWork *w)
{
  int32_t   flag   = GPUAMG_UNDECIDED;
  uint32_t *spread = NULL;

  PetscFunctionBegin;
  PetscCall(Ints(h, GPUAMG_TEMP_SPREAD, (size_t)n * (size_t)(k - 1), "aggregates", (int32_t **)&spread));
  PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_BEGIN, n, w));
  w->fresh = 1;
  for (int q = 0; q < QUESTIONS && flag; q++) {
    const int rounds = q ? ROUNDS : 2 * ROUNDS;

    for (int r = 0; r < rounds; r++) {
      const GPUAMGOps *ops = GPUAMGOf(h->dev);
      GPUAMGWork       s   = *w;

      if (r == rounds - 1) PetscCall(h->dev->ops->zero(h->dev->id, w->flag, sizeof(int32_t), h->dev->stream));
      /* one round: the largest priority within distance k - 1 spreads to neighbours, and vertices decide by the largest within k */
      s.keys = w->key;
      for (int d = 1; d < k; d++) {
        s.next = spread + (size_t)(d - 1) * (size_t)n;
        PetscCall((*ops->rows)(h->dev, GPUAMG_SPREAD, n, &s));
        s.keys = s.next;
      }
      s.next = w->next;
      PetscCall((*ops->rows)(h->dev, GPUAMG_DECIDE, n, &s));
      w->next  = w->key;
      w->key   = s.next;
      w->fresh = 0;
    }
    PetscCall(GPUCSRRead(h->dev, &flag, w->flag, sizeof(flag)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Roots are further apart than this distance. It decreases by one a level where weak entries are dropped, because these graphs stay thin */
static int Distance(const GPUAMG *h, int l)
{
  const int *d = h->o.distance, later = h->o.level + l + 1 - h->o.aggressive;

  if (later <= 0) return d[1];
  return h->weak && h->o.aggressive ? PetscMax(d[0], d[1] - later) : d[0];
}

static PetscErrorCode Members(GPUAMG *h, int l, int n, GPUAMGWork *w, GPUCSRStorage *M, GPUCSRStorage *members)
{
  int32_t *map = NULL;
  int64_t  count;

  PetscFunctionBegin;
  PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_BELONGS, n, w));
  PetscCall(Scan(h, n, w, &count));
  PetscCall(GPUCSRCSRCreate(h->dev, n, h->level[l].aggregates, count, M));
  PetscCall(h->dev->ops->copy(h->dev->id, M->array[CSR_ROWPTR].data, w->number, sizeof(int32_t) * ((size_t)n + 1), GPUCSR_ON_DEVICE, h->dev->stream));
  PetscCall(h->dev->ops->zero(h->dev->id, M->array[CSR_VAL].data, sizeof(double) * (size_t)count, h->dev->stream));
  w->to = GPUAMGRowsOf(M);
  PetscCall((*GPUAMGOf(h->dev)->rows)(h->dev, GPUAMG_MEMBERS, n, w));
  PetscCall(GPUCSRTransposeStorage(M, members, &map));
  PetscCall(GPUCSRFree(h->dev, sizeof(int32_t) * (size_t)count, (void **)&map));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The number of aggregates of level l; of each vertex its aggregate, or -1, in GPUAMG_TEMP_AGG, and in GPUAMG_TEMP_NUMBER how many vertices before it have one. members: by aggregate, which the
  caller destroys; none where there are no aggregates. g->P: the graph of the tentative prolongator, if g is on
*/
PetscErrorCode GPUAMGAggregates(GPUAMG *h, int l, GPUAMGGraphs *g, GPUCSRStorage *members)
{
  GPUAMGLevel     *L   = &h->level[l];
  const GPUAMGOps *ops = GPUAMGOf(h->dev);
  const int        n = L->n / L->bs, k = Distance(h, l);
  GPUAMGWork       w = {.bs = L->bs, .relative = h->weak, .directed = h->weak, .beyond = h->weak ? h->beyond : NULL, .wide = (int)(L->A.nnz / PetscMax(1, L->n) / L->bs)};
  GPUCSRStorage    M = {.dev = h->dev};
  int32_t         *p[GPUAMG_TEMPS];
  int64_t          count;
  PetscErrorCode   ierr;

  PetscFunctionBegin;
  for (int t = GPUAMG_TEMP_KEY; t < GPUAMG_TEMP_LENGTH; t++)
    if (t != GPUAMG_TEMP_SPREAD) PetscCall(Ints(h, t, (size_t)n, "aggregates", &p[t]));
  w.key  = (uint32_t *)p[GPUAMG_TEMP_KEY];
  w.next = (uint32_t *)p[GPUAMG_TEMP_KEY + 1];
  w.agg  = p[GPUAMG_TEMP_AGG];
  w.out  = p[GPUAMG_TEMP_AGG + 1];
  w.flag = (int32_t *)h->temp[GPUAMG_TEMP_FLAG].p;
  PetscCall(GPUAMGLengths(h, n, &w));
  GPUAMGPhase(h, GPUAMG_STRENGTH, Graph(h, l, g, &w));
  PetscCall(Roots(h, n, k, &w));
  PetscCall((*ops->rows)(h->dev, GPUAMG_ROOTS, n, &w));
  PetscCall(Scan(h, n, &w, &count));
  L->aggregates = (int)count;
  if (!count) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*ops->rows)(h->dev, GPUAMG_OWN, n, &w));
  for (int d = 0; d < k; d++) {
    int32_t *const agg = w.agg;

    PetscCall((*ops->rows)(h->dev, GPUAMG_JOIN, n, &w));
    w.agg = w.out;
    w.out = agg;
  }
  if (w.agg != p[GPUAMG_TEMP_AGG]) { /* where the caller looks */
    const GPUCSRBuffer m = h->temp[GPUAMG_TEMP_AGG];

    h->temp[GPUAMG_TEMP_AGG]     = h->temp[GPUAMG_TEMP_AGG + 1];
    h->temp[GPUAMG_TEMP_AGG + 1] = m;
  }
  ierr = Members(h, l, n, &w, &M, members);
  if (g->on) g->P = M;
  else PetscCall(GPUCSRStorageDestroy(&M));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

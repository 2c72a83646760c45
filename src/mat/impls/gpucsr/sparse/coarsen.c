/*
  Coarsening of graphs that are matrices of type seqaijgpucsr, for PCGAMG: aggregates (coarsen.h), and MATCOARSENMIS and MATCOARSENMISK registered again under their own names. The
  aggregates are PETSc's: both select greedily in a given order, which has one result however many threads look for it (spgemm/). All other graphs
  are coarsened by PETSc's own function, and so are these where the device does not serve.
*/
#include "../type/gpucsrimpl.h"
#include "coarsen.h"

static PetscErrorCode (*createmis)(MatCoarsen) = NULL, (*createmisk)(MatCoarsen) = NULL; /* PETSc's */
static PetscErrorCode (*applymis)(MatCoarsen) = NULL, (*applymisk)(MatCoarsen) = NULL;

/* Vertices without neighbours belong to nobody in the first round; in later ones, since PETSc 3.21, they are aggregates of their own */
#define ALONE (GPUCSR_COARSEN_KEEPS_ALONE ? 0 : 2)

/* Vertices of one round: who is whose root, and after that which number the root has among roots */
typedef struct {
  int      n, roots;
  int32_t *root, *number; /* on the host; number of the root, -1 where there is none */
  int      lates;
  int32_t *late; /* vertices that went to another root later */
} Round;

static PetscErrorCode RoundFree(Round *r)
{
  PetscFunctionBegin;
  PetscCall(PetscFree2(r->root, r->number));
  PetscCall(PetscFree(r->late));
  r->n = r->roots = r->lates = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One independent set of the graph A on the device; order: on the host, NULL is the natural one; least: see spgemm.h */
static PetscErrorCode Select(const GPUCSRStorage *A, PetscBool symmetric, const PetscInt *order, int least, Round *r, GPUCSRBool *complete)
{
  GPUCSRDevice   dev   = A->dev;
  const size_t   bytes = sizeof(int32_t) * (size_t)A->m, mapbytes = sizeof(int32_t) * (size_t)A->nnz;
  void          *dorder = NULL, *droot = NULL;
  int32_t       *map  = NULL;
  GPUCSRStorage  T    = {0};
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  r->n = A->m;
  PetscCall(PetscMalloc2((size_t)A->m, &r->root, (size_t)A->m, &r->number));
  if (!symmetric) ierr = GPUCSRTransposeStorage(A, &T, &map);
  if (!ierr) ierr = GPUCSRMalloc(dev, bytes, "roots of aggregates", &droot);
  if (!ierr && order) ierr = GPUCSRMalloc(dev, bytes, "order of vertices", &dorder);
  if (!ierr && order) ierr = GPUCSRUpload(dev, dorder, GPUCSR_INT32, order, GPUCSR_PETSCINT, (size_t)A->m, PETSC_FALSE, dev->stream, NULL);
  if (!ierr) ierr = (*GPUCSRSpGEMMOf(dev)->independent)(A, symmetric ? A : &T, (const int32_t *)dorder, least, (int32_t *)droot, complete);
  if (!ierr) ierr = GPUCSRDownload(dev, r->root, GPUCSR_INT32, droot, GPUCSR_INT32, (size_t)A->m, PETSC_FALSE, dev->stream);
  if (!ierr) ierr = (*dev->ops->streamsynchronize)(dev->id, dev->stream);
  PetscCall(GPUCSRFree(dev, bytes, &dorder));
  PetscCall(GPUCSRFree(dev, bytes, &droot));
  PetscCall(GPUCSRFree(dev, mapbytes, (void **)&map));
  if (T.dev) PetscCall(GPUCSRStorageDestroy(&T));
  PetscCall(ierr);
  for (int v = 0; v < r->n; v++)
    if (r->root[v] == v) r->number[v] = r->roots++;
  for (int v = 0; v < r->n; v++)
    if (r->root[v] != v) r->number[v] = r->root[v] < 0 ? -1 : r->number[r->root[v]];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* P, which has a one for each vertex in the column of its root, on the device; its values do not matter */
static PetscErrorCode Projection(GPUCSRDevice dev, const Round *r, GPUCSRStorage *P)
{
  int32_t       *i, *j, n = 0;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscMalloc2((size_t)r->n + 1, &i, (size_t)r->n, &j));
  i[0] = 0;
  for (int v = 0; v < r->n; v++) {
    if (r->number[v] >= 0) j[n++] = r->number[v];
    i[v + 1] = n;
  }
  P->dev = dev;
  ierr   = GPUCSRCSRCreate(dev, r->n, r->roots, n, P);
  if (!ierr) ierr = GPUCSRUpload(dev, P->array[CSR_ROWPTR].data, GPUCSR_INT32, i, GPUCSR_INT32, (size_t)r->n + 1, PETSC_FALSE, dev->stream, NULL);
  if (!ierr) ierr = GPUCSRUpload(dev, P->array[CSR_COL].data, GPUCSR_INT32, j, GPUCSR_INT32, (size_t)n, PETSC_FALSE, dev->stream, NULL);
  if (!ierr) ierr = (*dev->ops->zero)(dev->id, P->array[CSR_VAL].data, sizeof(double) * (size_t)n, dev->stream);
  PetscCall(PetscFree2(i, j));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pattern of C = P^T A P */
static PetscErrorCode ProjectSteps(const GPUCSRStorage *A, const Round *r, GPUCSRStorage *P, GPUCSRStorage *R, GPUCSRStorage *M, GPUCSRStorage *C)
{
  GPUCSRDevice     dev = A->dev;
  GPUCSRRowClasses classes;
  int32_t         *map;

  PetscFunctionBegin;
  PetscCall(Projection(dev, r, P));
  PetscCall(GPUCSRSpGEMMSymbolic(A, P, M, &classes));
  PetscCall(GPUCSRRowClassesDestroy(dev, &classes));
  PetscCall(GPUCSRTransposeStorage(P, R, &map));
  PetscCall(GPUCSRFree(dev, sizeof(int32_t) * (size_t)P->nnz, (void **)&map));
  PetscCall(GPUCSRSpGEMMSymbolic(R, M, C, &classes));
  PetscCall(GPUCSRRowClassesDestroy(dev, &classes));
  PetscCall((*dev->ops->zero)(dev->id, C->array[CSR_VAL].data, sizeof(double) * (size_t)C->nnz, dev->stream)); /* a transpose moves them */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Project(const GPUCSRStorage *A, const Round *r, GPUCSRStorage *C)
{
  GPUCSRStorage  P = {0}, R = {0}, M = {0};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = ProjectSteps(A, r, &P, &R, &M, C);
  if (P.dev) PetscCall(GPUCSRStorageDestroy(&P));
  if (R.dev) PetscCall(GPUCSRStorageDestroy(&R));
  if (M.dev) PetscCall(GPUCSRStorageDestroy(&M));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* k rounds, of the graph and of what its aggregates make of it: all.number[v] is the aggregate of v in the end */
static PetscErrorCode Rounds(const GPUCSRStorage *G, PetscBool symmetric, const PetscInt *order, PetscInt k, Round *all, GPUCSRBool *complete)
{
  GPUCSRStorage  A    = *G, C; /* of the first round the graph's own, which is not destroyed here */
  Round          last = {0};   /* the round before, but for the first, which is all */
  PetscErrorCode ierr = Select(G, symmetric, order, 2, all, complete);

  PetscFunctionBegin;
  for (PetscInt q = 1; q < k && !ierr && *complete; q++) {
    Round next = {0};

    PetscCall(PetscMemzero(&C, sizeof(C)));
    ierr = Project(&A, q > 1 ? &last : all, &C);
    if (q > 1) PetscCall(GPUCSRStorageDestroy(&A));
    A = C;
    if (!ierr) ierr = Select(&A, symmetric, NULL, ALONE, &next, complete);
    if (!ierr) {
      for (int v = 0; v < all->n; v++)
        if (all->number[v] >= 0) all->number[v] = next.number[all->number[v]];
      all->roots = next.roots;
    }
    PetscCall(RoundFree(&last));
    last = next;
  }
  PetscCall(RoundFree(&last));
  if (A.array[CSR_ROWPTR].data != G->array[CSR_ROWPTR].data && A.dev) PetscCall(GPUCSRStorageDestroy(&A));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pattern of A^T A: who is two steps away; T: A transposed, NULL where that is A */
static PetscErrorCode Square(const GPUCSRStorage *A, PetscBool symmetric, GPUCSRStorage *C)
{
  GPUCSRStorage    T   = {0};
  int32_t         *map = NULL;
  GPUCSRRowClasses classes;
  PetscErrorCode   ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (!symmetric) ierr = GPUCSRTransposeStorage(A, &T, &map);
  if (!ierr) ierr = GPUCSRSpGEMMSymbolic(symmetric ? A : &T, A, C, &classes);
  if (!ierr) ierr = GPUCSRRowClassesDestroy(A->dev, &classes);
  PetscCall(GPUCSRFree(A->dev, sizeof(int32_t) * (size_t)A->nnz, (void **)&map));
  if (T.dev) PetscCall(GPUCSRStorageDestroy(&T));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Aggregates of the square become those of the graph: each root takes its neighbours from whoever has them, as PETSc does. late: those taken, in that order */
static PetscErrorCode TakeNeighbours(Mat G, Round *r)
{
  const PetscInt *i, *j;
  PetscInt        most = 0;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(G, &i, &j, NULL, NULL));
  for (int v = 0; v < r->n; v++)
    if (r->root[v] == v) most += i[v + 1] - i[v];
  PetscCall(PetscMalloc1((size_t)most, &r->late));
  for (int v = 0; v < r->n; v++) {
    if (r->root[v] != v) continue;
    for (PetscInt k = i[v]; k < i[v + 1]; k++) {
      const PetscInt u = j[k];

      if (r->root[u] == u || r->root[u] == v) continue;
      r->late[r->lates++] = (int32_t)u;
      r->root[u]          = v;
      r->number[u]        = r->number[v];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* done: the aggregates were found on the device; otherwise PETSc's function is to find them */
static PetscErrorCode OnDevice(Mat G, const GPUCSRCoarsening *how, const PetscInt *order, Round *all, GPUCSRBool *done)
{
  Mat_SeqGPUCSR *g      = (Mat_SeqGPUCSR *)G->spptr;
  GPUCSRStorage  square = {0}, *csr;
  PetscBool      set, known;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  PetscCall(MatIsSymmetricKnown(G, &set, &known));
  if (!set || !known) PetscCall(MatIsStructurallySymmetricKnown(G, &set, &known));
  known = (PetscBool)(set && known);
  PetscCall(MatGPUCSRMirror_Private(G, g->dev, PETSC_FALSE, &csr));
  if (how->squared) ierr = Square(csr, known, &square);
  if (!ierr) ierr = Rounds(how->squared ? &square : csr, (PetscBool)(known || how->squared), order, PetscMax(how->k, 1), all, done);
  if (square.dev) PetscCall(GPUCSRStorageDestroy(&square));
  PetscCall(ierr);
  if (*done && how->squared) PetscCall(TakeNeighbours(G, all));
  if (!*done) PetscCall(PetscInfo(G, "Coarsening on the host: too many vertices wait for each other\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The aggregates from who belongs to whom: members ascending, but the root comes first where it names the place, and those taken late come last */
static PetscErrorCode Collect(Round *r, PetscBool atroot, GPUCSRAggregates *a)
{
  int32_t *next, count = 0;
  char    *late;

  PetscFunctionBegin;
  a->n      = r->n;
  a->count  = r->roots;
  a->atroot = atroot;
  PetscCall(PetscCalloc1((size_t)r->roots + 2, &a->first));
  PetscCall(PetscMalloc1((size_t)r->n, &a->member));
  PetscCall(PetscCalloc1(r->lates ? (size_t)r->n : 0, &late));
  for (int k = r->lates - 1; k >= 0; k--) { /* where it was taken last counts */
    if (late[r->late[k]]) r->late[k] = -1;
    else late[r->late[k]] = 1;
  }
  next = a->first + 1; /* next[q]: where the next member of q goes, and so first[q + 1] in the end */
  for (int v = 0; v < r->n; v++)
    if (r->number[v] >= 0) next[r->number[v]]++;
  for (int q = 0; q < r->roots; q++) {
    const int32_t length = next[q];

    next[q] = count;
    count += length;
  }
  for (int v = 0; v < r->n && atroot; v++)
    if (r->root[v] == v) a->member[next[r->number[v]]++] = v;
  for (int v = 0; v < r->n; v++)
    if (r->number[v] >= 0 && !(atroot && r->root[v] == v) && !(late && late[v])) a->member[next[r->number[v]]++] = v;
  for (int k = 0; k < r->lates; k++)
    if (r->late[k] >= 0) a->member[next[r->number[r->late[k]]]++] = r->late[k];
  PetscCall(PetscFree(late));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRAggregatesDestroy(GPUCSRAggregates *a)
{
  PetscFunctionBegin;
  PetscCall(PetscFree(a->first));
  PetscCall(PetscFree(a->member));
  PetscCall(PetscMemzero(a, sizeof(*a)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's lists, which were empty; one after the other, so that memory is met in order */
PetscErrorCode GPUCSRAggregatesList(const GPUCSRAggregates *a, PetscCoarsenData *lists)
{
  PetscFunctionBegin;
  PetscCall(PetscCDSetChunkSizeCompat(lists, PetscMax(10, a->n)));
  for (int q = 0; q < a->count; q++) {
    const int32_t place = a->atroot ? a->member[a->first[q]] : q;

    for (int32_t k = a->first[q]; k < a->first[q + 1]; k++) PetscCall(PetscCDAppendID(lists, place, a->member[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is it a graph that the device may coarsen? */
PetscErrorCode MatGPUCSRCoarsens_Private(Mat G, PetscBool *may)
{
  const PetscInt *i;

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompare((PetscObject)G, MATSEQAIJGPUCSR, may));
  if (!*may) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetCSRAndMemType(G, &i, NULL, NULL, NULL));
  *may = (PetscBool)(G->rmap->n == G->cmap->n && i && i[G->rmap->n] >= ((Mat_GPUCSR *)G->spptr)->config.productleast);
  if (!*may) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRDecide_Private(G));
  *may = (PetscBool) !!((Mat_SeqGPUCSR *)G->spptr)->dev;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* done: they were found on the device; what fails there is no reason to fail */
PetscErrorCode MatGPUCSRAggregates_Private(Mat G, const GPUCSRCoarsening *how, const PetscInt order[], GPUCSRAggregates *a, PetscBool *done)
{
  Round         all = {0};
  PetscBool     may;
  GPUCSRBool    found = 0;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(MatGPUCSRCoarsens_Private(G, &may));
  if (!may) PetscFunctionReturn(PETSC_SUCCESS);
  GPUCSRTry(&attempt, OnDevice(G, how, order, &all, &found));
  if (attempt.error) {
    PetscCheck(MatGPUCSRBackendOf(G) != MAT_GPUCSR_BACKEND_CUDA && (attempt.error == PETSC_ERR_MEM || attempt.error == PETSC_ERR_GPU || attempt.error == PETSC_ERR_SUP), PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
    PetscCall(PetscInfo(G, "Coarsening on the host, because %s\n", attempt.message));
    found = 0;
  }
  *done = (PetscBool) !!found;
  if (found) PetscCall(Collect(&all, (PetscBool)!how->k, a));
  PetscCall(RoundFree(&all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool values = PETSC_TRUE, independent = PETSC_FALSE; /* somebody reads values of the next graph; a coarsener of ours, which does not, was made for it */

/* read: the values of graphs are read, as long as nothing else is said. Otherwise coarseners that are made from now on tell */
PetscErrorCode MatGPUCSRGraphValues_Private(PetscBool read)
{
  PetscFunctionBegin;
  values      = read;
  independent = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool MatGPUCSRGraphIsPattern_Private(void)
{
  return (PetscBool)(!values && independent);
}

static GPUCSRQuestion *question = NULL;

/* The next coarsener of ours that is applied answers; NULL: nobody asks any more */
PetscErrorCode MatGPUCSRCoarsenAsk_Private(GPUCSRQuestion *q)
{
  PetscFunctionBegin;
  question = q;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool left = PETSC_FALSE;

/* leave: coarseners are PETSc's alone, until something else is said. Its lists have more than members */
PetscErrorCode MatGPUCSRCoarsenLeave_Private(PetscBool leave)
{
  PetscFunctionBegin;
  left = leave;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Apply(MatCoarsen coarse, PetscInt k, PetscErrorCode (*parent)(MatCoarsen))
{
  GPUCSRCoarsening how   = {k, PETSC_FALSE};
  GPUCSRAggregates a     = {0};
  const PetscInt  *order = NULL;
  PetscBool        done  = PETSC_FALSE;
  PetscErrorCode   ierr  = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (coarse->perm) PetscCall(ISGetIndices(coarse->perm, &order));
  if (question && k < 5) {
    question->answered    = PETSC_TRUE;
    question->how.k       = k;
    question->how.squared = (PetscBool)(coarse->graph != question->graph);
    question->first       = order ? order[0] : 0;
    question              = NULL;
  } else if (k < 5 && !left) ierr = MatGPUCSRAggregates_Private(coarse->graph, &how, order, &a, &done); /* for others PETSc has an error */
  if (coarse->perm) PetscCall(ISRestoreIndices(coarse->perm, &order));
  PetscCall(ierr);
  if (done) {
    PetscCall(PetscCDCreate(a.n, &coarse->agg_lists));
    PetscCall(GPUCSRAggregatesList(&a, coarse->agg_lists));
    PetscCall(GPUCSRAggregatesDestroy(&a));
  } else PetscCall((*parent)(coarse));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCoarsenApply_MIS_GPUCSR(MatCoarsen coarse)
{
  PetscFunctionBegin;
  PetscCall(Apply(coarse, 0, applymis));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCoarsenApply_MISK_GPUCSR(MatCoarsen coarse)
{
  PetscInt k;

  PetscFunctionBegin;
  PetscCall(MatCoarsenMISKGetDistance(coarse, &k));
  PetscCall(Apply(coarse, k > 0 ? k : 5, applymisk));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCoarsenCreate_MIS_GPUCSR(MatCoarsen coarse)
{
  PetscFunctionBegin;
  PetscCall((*createmis)(coarse));
  independent        = PETSC_TRUE;
  applymis           = coarse->ops->apply;
  coarse->ops->apply = MatCoarsenApply_MIS_GPUCSR;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCoarsenCreate_MISK_GPUCSR(MatCoarsen coarse)
{
  PetscFunctionBegin;
  PetscCall((*createmisk)(coarse));
  independent        = PETSC_TRUE;
  applymisk          = coarse->ops->apply;
  coarse->ops->apply = MatCoarsenApply_MISK_GPUCSR;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* PETSc's two coarseners with ours in front of them */
PetscErrorCode MatGPUCSRCoarsenRegister_Private(void)
{
  PetscErrorCode (*create)(MatCoarsen) = NULL;

  PetscFunctionBegin;
  PetscCall(PetscFunctionListFind(MatCoarsenList, MATCOARSENMIS, &create));
  if (create && create != MatCoarsenCreate_MIS_GPUCSR) {
    createmis = create;
    PetscCall(MatCoarsenRegister(MATCOARSENMIS, MatCoarsenCreate_MIS_GPUCSR));
  }
  create = NULL;
  PetscCall(PetscFunctionListFind(MatCoarsenList, MATCOARSENMISK, &create));
  if (create && create != MatCoarsenCreate_MISK_GPUCSR) {
    createmisk = create;
    PetscCall(MatCoarsenRegister(MATCOARSENMISK, MatCoarsenCreate_MISK_GPUCSR));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

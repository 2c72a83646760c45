/*
  The graph of a matrix of type seqaijgpucsr, and coarsening of graphs that are such matrices, for PCGAMG: MATCOARSENMIS and MATCOARSENMISK, registered again under their own names. The
  aggregates are PETSc's: both select greedily in a given order, which has one result however many threads look for it (spgemm/). All other graphs
  are coarsened by PETSc's own function, and so are these where the device does not serve.
*/
#include "gpucsrimpl.h"

static PetscErrorCode (*createmis)(MatCoarsen) = NULL, (*createmisk)(MatCoarsen) = NULL; /* PETSc's */
static PetscErrorCode (*applymis)(MatCoarsen) = NULL, (*applymisk)(MatCoarsen) = NULL;

/* Vertices without neighbours belong to nobody in the first round; in later ones, since PETSc 3.21, they are aggregates of their own */
#define ALONE (PETSC_VERSION_GE(3, 21, 0) ? 0 : 2)

#if PETSC_VERSION_LT(3, 21, 0)
  #define PetscCDSetChunkSizeCompat PetscCDSetChuckSize
#else
  #define PetscCDSetChunkSizeCompat PetscCDSetChunkSize
#endif

/* Vertices of one round: who is whose root, and after that which number the root has among roots */
typedef struct {
  int      n, roots;
  int32_t *root, *number; /* on the host; number of the root, -1 where there is none */
} Round;

static PetscErrorCode RoundFree(Round *r)
{
  PetscFunctionBegin;
  PetscCall(PetscFree2(r->root, r->number));
  r->n = r->roots = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One independent set of the graph A on the device; order: on the host, NULL is the natural one; least: see spgemm.h */
static PetscErrorCode Select(const GPUCSRStorage *A, PetscBool symmetric, const PetscInt *order, int least, Round *r, PetscBool *complete)
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
static PetscErrorCode Rounds(const GPUCSRStorage *G, PetscBool symmetric, const PetscInt *order, PetscInt k, Round *all, PetscBool *complete)
{
  GPUCSRStorage  A    = *G, C; /* of the first round the graph's own, which is not destroyed here */
  PetscErrorCode ierr = Select(G, symmetric, order, 2, all, complete);

  PetscFunctionBegin;
  for (PetscInt q = 1; q < k && !ierr && *complete; q++) {
    Round next = {0};
    Round last = *all;

    PetscCall(PetscMemzero(&C, sizeof(C)));
    last.root = NULL;
    ierr      = Project(&A, &last, &C);
    if (q > 1) PetscCall(GPUCSRStorageDestroy(&A));
    A = C;
    if (!ierr) ierr = Select(&A, symmetric, NULL, ALONE, &next, complete);
    if (!ierr) {
      for (int v = 0; v < all->n; v++)
        if (all->number[v] >= 0) all->number[v] = next.number[all->number[v]];
      all->roots = next.roots;
    }
    PetscCall(RoundFree(&next));
  }
  if (A.array[CSR_ROWPTR].data != G->array[CSR_ROWPTR].data && A.dev) PetscCall(GPUCSRStorageDestroy(&A));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* done: the aggregates were found on the device; otherwise PETSc's function is to find them */
static PetscErrorCode OnDevice(MatCoarsen coarse, PetscInt k, Round *all, PetscBool *done)
{
  Mat             G     = coarse->graph;
  Mat_SeqGPUCSR  *g     = (Mat_SeqGPUCSR *)G->spptr;
  const PetscInt *order = NULL;
  GPUCSRStorage  *csr;
  PetscBool       set, known;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  PetscCall(MatIsSymmetricKnown(G, &set, &known));
  if (!set || !known) PetscCall(MatIsStructurallySymmetricKnown(G, &set, &known));
  PetscCall(MatGPUCSRMirror_Private(G, g->dev, PETSC_FALSE, &csr));
  if (coarse->perm) PetscCall(ISGetIndices(coarse->perm, &order));
  ierr = Rounds(csr, (PetscBool)(set && known), order, k, all, done);
  if (coarse->perm) PetscCall(ISRestoreIndices(coarse->perm, &order));
  PetscCall(ierr);
  if (!*done) PetscCall(PetscInfo(G, "Coarsening on the host: too many vertices wait for each other\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Aggregates by attempt: what fails on the device is no reason to fail */
static PetscErrorCode Aggregate(MatCoarsen coarse, PetscInt k, Round *all, PetscBool *done)
{
  Mat             G = coarse->graph;
  const PetscInt *i;
  PetscBool       ours;
  GPUCSRAttempt   attempt;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(PetscObjectTypeCompare((PetscObject)G, MATSEQAIJGPUCSR, &ours));
  if (!ours || G->rmap->n != G->cmap->n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetCSRAndMemType(G, &i, NULL, NULL, NULL));
  if (!i || i[G->rmap->n] < ((Mat_GPUCSR *)G->spptr)->config.productleast) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRDecide_Private(G));
  if (!((Mat_SeqGPUCSR *)G->spptr)->dev) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = OnDevice(coarse, k, all, done);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  if (ierr) {
    PetscCheck(MatGPUCSRBackendOf(G) != MAT_GPUCSR_BACKEND_CUDA && (ierr == PETSC_ERR_MEM || ierr == PETSC_ERR_GPU || ierr == PETSC_ERR_SUP), PETSC_COMM_SELF, ierr, "%s", attempt.message);
    PetscCall(PetscInfo(G, "Coarsening on the host, because %s\n", attempt.message));
    *done = PETSC_FALSE;
  }
  if (!*done) PetscCall(RoundFree(all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The aggregates as PETSc has them, ascending: at the root's place, which comes first then, or at the aggregate's number. One after the other, so that memory is met in order. */
static PetscErrorCode Lists(const Round *r, PetscBool atroot, PetscCoarsenData **lists)
{
  int32_t *first, *member;

  PetscFunctionBegin;
  PetscCall(PetscCDCreate(r->n, lists));
  PetscCall(PetscCDSetChunkSizeCompat(*lists, PetscMax(10, r->n)));
  PetscCall(PetscCalloc1((size_t)r->roots + 2, &first));
  PetscCall(PetscMalloc1((size_t)r->n, &member));
  for (int v = 0; v < r->n; v++)
    if (r->number[v] >= 0) first[r->number[v] + 2]++;
  for (int q = 0; q < r->roots; q++) first[q + 2] += first[q + 1];
  for (int v = 0; v < r->n; v++)
    if (r->number[v] >= 0) member[first[r->number[v] + 1]++] = v;
  for (int q = 0; q < r->roots; q++) {
    const int root = atroot ? r->root[member[first[q]]] : -1, place = atroot ? root : q;

    if (atroot) PetscCall(PetscCDAppendID(*lists, place, root));
    for (int32_t k = first[q]; k < first[q + 1]; k++)
      if (member[k] != root) PetscCall(PetscCDAppendID(*lists, place, member[k]));
  }
  PetscCall(PetscFree(first));
  PetscCall(PetscFree(member));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCoarsenApply_MIS_GPUCSR(MatCoarsen coarse)
{
  Round     all = {0};
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(Aggregate(coarse, 1, &all, &done));
  if (done) PetscCall(Lists(&all, PETSC_TRUE, &coarse->agg_lists));
  else PetscCall((*applymis)(coarse));
  PetscCall(RoundFree(&all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCoarsenApply_MISK_GPUCSR(MatCoarsen coarse)
{
  Round     all  = {0};
  PetscBool done = PETSC_FALSE;
  PetscInt  k;

  PetscFunctionBegin;
  PetscCall(MatCoarsenMISKGetDistance(coarse, &k));
  if (k > 0 && k < 5) PetscCall(Aggregate(coarse, k, &all, &done)); /* for others PETSc has an error */
  if (done) PetscCall(Lists(&all, PETSC_FALSE, &coarse->agg_lists));
  else PetscCall((*applymisk)(coarse));
  PetscCall(RoundFree(&all));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCoarsenCreate_MIS_GPUCSR(MatCoarsen coarse)
{
  PetscFunctionBegin;
  PetscCall((*createmis)(coarse));
  applymis           = coarse->ops->apply;
  coarse->ops->apply = MatCoarsenApply_MIS_GPUCSR;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatCoarsenCreate_MISK_GPUCSR(MatCoarsen coarse)
{
  PetscFunctionBegin;
  PetscCall((*createmisk)(coarse));
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

/* The graph of the vertices on the device, as a matrix of the type that A has; a vertex is a block of bs rows */
static PetscErrorCode GraphOnDevice(Mat A, int bs, PetscBool symmetrize, PetscBool scale, Mat *G)
{
  GPUCSRStorage *csr, graph = {0}, blocks = {0};
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  *G = NULL;
  PetscCall(MatGPUCSRMirror_Private(A, ((Mat_SeqGPUCSR *)A->spptr)->dev, PETSC_TRUE, &csr));
  if (bs > 1) ierr = GPUCSRCollapse(csr, bs, &blocks);
  if (!ierr) ierr = GPUCSRGraph(bs > 1 ? &blocks : csr, symmetrize, scale, &graph);
  if (blocks.dev) PetscCall(GPUCSRStorageDestroy(&blocks));
  if (!ierr) ierr = MatCreate(PETSC_COMM_SELF, G);
  if (!ierr) ierr = MatSetSizes(*G, A->rmap->n / bs, A->cmap->n / bs, A->rmap->n / bs, A->cmap->n / bs);
  if (!ierr) ierr = MatSetType(*G, ((PetscObject)A)->type_name);
  if (!ierr) ierr = MatGPUCSRFromDevice_Private(*G, &graph, PETSC_TRUE);
  if (graph.dev) PetscCall(GPUCSRStorageDestroy(&graph));
  if (ierr) PetscCall(MatDestroy(G));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* done: *graph is there; otherwise it is for PETSc's function, which has filters and picks entries of blocks too */
static PetscErrorCode Graph(Mat A, PetscBool symmetrize, PetscBool scale, PetscReal filter, Mat *graph, PetscBool *done)
{
  Mat_SeqGPUCSR  *g = (Mat_SeqGPUCSR *)A->spptr;
  const PetscInt *i;
  PetscBool       set, symmetric;
  GPUCSRAttempt   attempt;
  PetscErrorCode  ierr;
  PetscInt        bs;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(MatGetBlockSize(A, &bs));
  if (filter >= 0 || A->rmap->n != A->cmap->n || A->rmap->n % bs) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatIsSymmetricKnown(A, &set, &symmetric));
  symmetric = (PetscBool)(set && symmetric);
  if (bs == 1 && !scale && (symmetric || !symmetrize)) { /* it is its own graph */
    PetscCall(PetscObjectReference((PetscObject)A));
    *graph = A;
    *done  = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
  if (!i || i[A->rmap->n] < g->base.config.productleast) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRDecide_Private(A));
  if (!g->dev) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = GraphOnDevice(A, (int)bs, (PetscBool)(symmetrize && !symmetric), scale, graph);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  if (ierr) {
    PetscCheck(MatGPUCSRBackendOf(A) != MAT_GPUCSR_BACKEND_CUDA && (ierr == PETSC_ERR_MEM || ierr == PETSC_ERR_GPU || ierr == PETSC_ERR_SUP), PETSC_COMM_SELF, ierr, "%s", attempt.message);
    PetscCall(PetscInfo(A, "The graph is made on the host, because %s\n", attempt.message));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (symmetrize) PetscCall(MatSetOption(*graph, MAT_SYMMETRIC, PETSC_TRUE));
  else PetscCall(MatPropagateSymmetryOptions(A, *graph));
  PetscCall(MatViewFromOptions(*graph, NULL, "-mat_graph_view"));
  *done = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#if PETSC_VERSION_GE(3, 21, 0)
PetscErrorCode MatCreateGraph_SeqAIJGPUCSR(Mat A, PetscBool symmetrize, PetscBool scale, PetscReal filter, PetscInt n, PetscInt index[], Mat *graph)
{
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  if (!n) PetscCall(Graph(A, symmetrize, scale, filter, graph, &done));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.creategraph)(A, symmetrize, scale, filter, n, index, graph));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#else
PetscErrorCode MatCreateGraph_SeqAIJGPUCSR(Mat A, PetscBool symmetrize, PetscBool scale, PetscReal filter, Mat *graph)
{
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(Graph(A, symmetrize, scale, filter, graph, &done));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.creategraph)(A, symmetrize, scale, filter, graph));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

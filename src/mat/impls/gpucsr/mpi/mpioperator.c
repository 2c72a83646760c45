/*
  A matrix of several ranks for solvers (operator.h): products and gathers of sums in the order of the device's stream, without MPI and the host, so
  an iteration can be recorded and played again. The exchange is the matrix' own (halo.h).
*/
#include "../type/mpigpucsr.h"

/* Collective: the entries to send, ordered by row, then by rank. Needs no exchange */
PetscErrorCode MatGPUCSRRanksSends_Private(Mat A, GPUCSRSend **sends, int *n)
{
  PetscInt64(*where)[2];
  GPUCSRHalo  h;
  GPUCSRSend *byrank;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRHaloGraph_Private(A));
  h = ((Mat_MPIGPUCSR *)A->spptr)->halo;
  PetscCall(GPUCSRHaloPlaces(h, &where));
  PetscCall(PetscMalloc1(h->nsend, &byrank));
  for (PetscMPIInt k = 0; k < h->to.n; k++)
    for (PetscInt e = h->to.offset[k]; e < h->to.offset[k + 1]; e++) byrank[e] = (GPUCSRSend){h->index[e], (PetscInt)where[h->to.rank[k]][0] + e - h->to.offset[k], h->to.rank[k]};
  *n = (int)h->nsend;
  PetscCall(PetscMalloc1(h->nsend, sends));
  for (PetscInt q = 0; q < h->nsend; q++) (*sends)[q] = byrank[h->sent[q]];
  PetscCall(PetscFree(byrank));
  PetscCall(PetscFree(where));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. Prepares A for products, or for products with its transpose; why: the reason why this rank cannot take part, or empty */
PetscErrorCode MatGPUCSRRanksGet_Private(Mat A, PetscBool transposed, GPUCSRRanks *r, char why[], size_t len)
{
  PetscBool      ready, alone;
  Mat            Ao;
  Mat_MPIGPUCSR *g = (Mat_MPIGPUCSR *)A->spptr;
  GPUCSRHalo     h;
  PetscBool      mine = PETSC_FALSE;
  int            broken;

  PetscFunctionBegin;
  why[0] = 0;
  PetscCall(PetscMemzero(r, sizeof(*r)));
  h = g->halo; /* the exchange is set up again if a rank has given it up */
  if (h && h->data) PetscCall(GPUCSRHaloBroken(h, &mine));
  broken = mine;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &broken, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)A)));
  if (broken) PetscCall(PetscMemzero(g->agreed, sizeof(g->agreed)));
  PetscCall(MatGPUCSRReadyAllreduce_Private(A, transposed ? GPUCSR_TRANSPOSE : GPUCSR_FORWARD, &ready, &alone));
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &Ao, NULL));
  if (ready) PetscCall(MatGPUCSROperatorGet_Private(Ao, transposed, &r->off, why, len));
  r->halo = ((Mat_MPIGPUCSR *)A->spptr)->halo;
  r->made = r->halo->made;
  if (!ready && !why[0]) PetscCall(PetscStrncpy(why, "the matrix is on no device", len));
  else if (!why[0] && !r->halo->exchange->gather) PetscCall(PetscSNPrintf(why, len, "exchange %s needs the host", r->halo->exchange->name));
  else if (!why[0] && r->off.plan->A.precision == GPUCSR_PRECISION_SINGLE) PetscCall(PetscStrncpy(why, "products are in single precision", len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has A changed on this rank since MatGPUCSRRanksGet_Private()? */
PetscErrorCode MatGPUCSRRanksMoved_Private(Mat A, const GPUCSRRanks *r, PetscBool transposed, PetscBool *moved)
{
  const GPUCSRHalo h = ((Mat_MPIGPUCSR *)A->spptr)->halo;
  GPUCSROperator   o;
  char             why[256];
  Mat              Ao;

  PetscFunctionBegin;
  *moved = PETSC_TRUE;
  if (h != r->halo || !h->data || h->made != r->made) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(A, NULL, &Ao, NULL));
  PetscCall(MatGPUCSROperatorGet_Private(Ao, transposed, &o, why, sizeof(why)));
  *moved = (PetscBool)(!o.dev || o.dev != r->off.dev || memcmp(&o.version, &r->off.version, sizeof(o.version)));
  if (!*moved) PetscCall(GPUCSRHaloBroken(h, moved));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The halo where the products are: an exchange through the host has it there, too */
static PetscErrorCode HaloThere(GPUCSRHalo h, double **p)
{
  PetscFunctionBegin;
  if (h->dev && h->halo.place == GPUCSR_HOST && !h->there) PetscCall(GPUCSRHaloMalloc(h, sizeof(double) * (size_t)h->nrecv, &h->there));
  *p = h->there ? h->there : (double *)h->halo.p;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The halo has arrived */
static PetscErrorCode HaloIn(GPUCSRHalo h, GPUCSRStream s, double **p)
{
  PetscFunctionBegin;
  PetscCall(HaloThere(h, p));
  if (h->there) PetscCall(GPUCSRUpload(h->dev, h->there, GPUCSR_DOUBLE, h->halo.p, GPUCSR_DOUBLE, (size_t)h->nrecv, PETSC_TRUE, s, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This rank's entries of x set out. A rank that cannot send them sends NaN: its neighbours wait for entries */
static PetscErrorCode Send(const GPUCSRRanks *r, const GPUCSROperand *x, GPUCSRStream s)
{
  const PetscErrorCode error = (*r->halo->exchange->forwardbegin)(r->halo, x, s);

  PetscFunctionBegin;
  if (x && error) (void)(*r->halo->exchange->forwardbegin)(r->halo, NULL, s);
  PetscFunctionReturn(error);
}

/*
  z = alpha A x + beta y for device arrays, or with the transpose, for which both blocks must have been prepared; o is A's diagonal block. x NULL: this rank has failed. It takes part in the exchange, and its
  numbers are NaN. A rank with an error takes part to the end, too
*/
PetscErrorCode MatGPUCSRRanksMultiply_Private(const GPUCSROperator *o, const GPUCSRRanks *r, PetscBool transposed, double alpha, const double *x, double beta, const double *y, double *z)
{
  GPUCSRHalo            h     = r->halo;
  const GPUCSRExchange *way   = h->exchange;
  const GPUCSRStream    s     = o->dev->stream;
  const GPUCSRPlace     place = h->dev ? GPUCSR_DEVICE : GPUCSR_HOST;
  GPUCSROperand         ox = {.p = (void *)x, .place = place, .vecgpu = PETSC_TRUE}, oz = {.p = z, .place = place, .vecgpu = PETSC_TRUE};
  double               *p     = NULL;
  PetscBool             adds  = PETSC_FALSE;
  PetscErrorCode        error = PETSC_SUCCESS, ierr;

  PetscFunctionBegin;
  if (transposed) {
    if (x && h->nrecv) { /* the halo, Ao^T x, complete for the exchange */
      GPUCSRKeep(&error, HaloThere(h, &p));
      GPUCSRKeep(&error, MatGPUCSROperatorMultiply_Private(&r->off, alpha, x, 0, NULL, p));
      if (h->there) GPUCSRKeep(&error, GPUCSRDownload(h->dev, h->halo.p, GPUCSR_DOUBLE, h->there, GPUCSR_DOUBLE, (size_t)h->nrecv, PETSC_TRUE, s));
      if (h->there) GPUCSRKeep(&error, h->dev->ops->streamsynchronize(h->dev->id, s));
    }
    ierr = (*way->reversebegin)(h, (PetscBool)(x && !error), PETSC_FALSE, s);
    if (x && !error && ierr) (void)(*way->reversebegin)(h, PETSC_FALSE, PETSC_FALSE, s);
    GPUCSRKeep(&error, ierr);
    if (x && !error) error = MatGPUCSROperatorMultiply_Private(o, alpha, x, beta, y, z);
    ierr = (*way->reverseadd)(h, x && !error ? &oz : NULL, s);
    GPUCSRKeep(&error, ierr);
    PetscFunctionReturn(error);
  }
  error = Send(r, x ? &ox : NULL, s);
  if (x && way->addready && alpha == 1 && r->off.A) GPUCSRKeep(&error, (*way->addready)(h, r->off.A, &adds));
  if (x) GPUCSRKeep(&error, MatGPUCSROperatorMultiply_Private(o, alpha, x, beta, y, z));
  if (adds && !error) error = (*way->forwardadd)(h, &oz, s);
  else {
    ierr = (*way->forwardend)(h, PETSC_FALSE, s);
    GPUCSRKeep(&error, ierr);
    if (x && h->nrecv) {
      GPUCSRKeep(&error, HaloIn(h, s, &p));
      GPUCSRKeep(&error, MatGPUCSROperatorMultiply_Private(&r->off, alpha, p, 1, z, z));
      if (h->there) GPUCSRKeep(&error, h->dev->ops->streamsynchronize(h->dev->id, s)); /* before the host's halo is written again */
    }
  }
  PetscFunctionReturn(error);
}

/* Collective: the exchange of a matrix that is no Mat, for products on dev, with the communicator and the configuration of `like`. n columns `ghost` belong to other ranks */
PetscErrorCode MatGPUCSRRanksExchangeCreate_Private(Mat like, PetscLayout cmap, PetscInt n, const PetscInt ghost[], GPUCSRDevice dev, struct _n_GPUCSRHalo **h)
{
  const GPUCSRDevice there = dev->ops->separate ? dev : NULL;

  PetscFunctionBegin;
  PetscCall(GPUCSRHaloCreate(PetscObjectComm((PetscObject)like), cmap, n, ghost, h));
  PetscCall(GPUCSRHaloChoose(*h, there, ((Mat_GPUCSR *)like->spptr)->config.halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Not collective: this rank's part */
PetscErrorCode MatGPUCSRRanksExchangeSetUp_Private(struct _n_GPUCSRHalo *h)
{
  return GPUCSRHaloSetUp(h, h->dev);
}

PetscErrorCode MatGPUCSRRanksExchangeDestroy_Private(struct _n_GPUCSRHalo **h)
{
  return GPUCSRHaloDestroy(h);
}

/* Can a graph record an exchange, and be launched without a word to it? */
PetscBool MatGPUCSRRanksRecordable_Private(const GPUCSRRanks *r)
{
  return (PetscBool)(r->halo->exchange->gather && !r->halo->exchange->played);
}

/* Collective: the entries of x for this rank's ghost columns, on the device. x NULL: this rank has failed */
PetscErrorCode MatGPUCSRRanksHalo_Private(const GPUCSROperator *o, const GPUCSRRanks *r, const double *x, double *to)
{
  GPUCSRHalo         h  = r->halo;
  const GPUCSRStream s  = o->dev->stream;
  GPUCSROperand      ox = {.p = (void *)x, .place = h->dev ? GPUCSR_DEVICE : GPUCSR_HOST, .vecgpu = PETSC_TRUE};
  double            *p;
  PetscErrorCode     error, ierr;

  PetscFunctionBegin;
  error = Send(r, x ? &ox : NULL, s);
  ierr  = (*h->exchange->forwardend)(h, PETSC_FALSE, s);
  GPUCSRKeep(&error, ierr);
  if (!x || !h->nrecv) PetscFunctionReturn(error);
  GPUCSRKeep(&error, HaloIn(h, s, &p));
  if (!error) error = o->dev->ops->copy(o->dev->id, to, p, sizeof(double) * (size_t)h->nrecv, GPUCSR_ON_DEVICE, s);
  if (!error) error = o->dev->ops->streamsynchronize(o->dev->id, s);
  PetscFunctionReturn(error);
}

/* Collective: a matrix whose product gives each rank the whole of x, a vector of the layout `rows`. It has the type and the exchange of `like` */
PetscErrorCode MatGPUCSRRanksEverything_Private(Mat like, PetscLayout rows, Mat *E)
{
  const PetscInt  n = rows->N;
  MatGPUCSRConfig c = ((Mat_GPUCSR *)like->spptr)->config;
  PetscInt        first;

  PetscFunctionBegin;
  PetscCall(MatCreate(PetscObjectComm((PetscObject)like), E));
  PetscCall(MatSetSizes(*E, n, rows->n, PETSC_DETERMINE, n));
  PetscCall(MatSetType(*E, MATMPIAIJ));
  PetscCall(MatMPIAIJSetPreallocation(*E, 1, NULL, 1, NULL));
  PetscCall(MatGetOwnershipRange(*E, &first, NULL));
  for (PetscInt k = 0; k < n; k++) PetscCall(MatSetValue(*E, first + k, k, 1.0, INSERT_VALUES));
  PetscCall(MatAssemblyBegin(*E, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(*E, MAT_FINAL_ASSEMBLY));
  PetscCall(MatConvert(*E, MATMPIAIJGPUCSR, MAT_INPLACE_MATRIX, E));
  PetscCall(PetscStrncpy(c.request.format, "csr", GPUCSR_WORD));
  PetscCall(PetscStrncpy(c.request.kernel, "auto", GPUCSR_WORD));
  c.precision = MAT_GPUCSR_DOUBLE;
  PetscCall(MatGPUCSRConfigure_Private(*E, &c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* all = n numbers of each rank, in the order of ranks, all where the products are */
PetscErrorCode MatGPUCSRRanksGather_Private(const GPUCSROperator *o, const GPUCSRRanks *r, const double *mine, int n, double *all)
{
  return (*r->halo->exchange->gather)(r->halo, mine, n, all, o->dev->stream);
}

/* Where the ranks gather, for a kernel with a gather of its own; size 0: not possible */
GPUCSRPeerSlots MatGPUCSRRanksSlots_Private(const GPUCSRRanks *r)
{
  const GPUCSRPeerSlots none = {.size = 0};

  return r->halo->exchange->slots ? (*r->halo->exchange->slots)(r->halo) : none;
}

/* A solve begins or ends: during it all ranks take part */
PetscErrorCode MatGPUCSRRanksSolving_Private(const GPUCSRRanks *r, PetscBool begins)
{
  return (*r->halo->exchange->solving)(r->halo, begins);
}

/* Recording of work begins or ends */
PetscErrorCode MatGPUCSRRanksRecord_Private(const GPUCSRRanks *r, PetscBool begins)
{
  PetscFunctionBegin;
  if (r->halo->exchange->record) PetscCall((*r->halo->exchange->record)(r->halo, begins));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Recorded work has been launched; errors once another rank has given up */
PetscErrorCode MatGPUCSRRanksPlayed_Private(const GPUCSROperator *o, const GPUCSRRanks *r)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRRanksCheck_Private(r));
  if (r->halo->exchange->played) PetscCall((*r->halo->exchange->played)(r->halo, o->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRRanksCheck_Private(const GPUCSRRanks *r)
{
  PetscFunctionBegin;
  if (r->halo->exchange->check) PetscCall((*r->halo->exchange->check)(r->halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This rank gives up: tells the other ranks, if the exchange can */
PetscErrorCode MatGPUCSRRanksFail_Private(const GPUCSRRanks *r, const char message[])
{
  return r->halo->exchange->fail ? (*r->halo->exchange->fail)(r->halo, message) : PETSC_SUCCESS;
}

/* The word of the exchange */
const char *MatGPUCSRRanksExchange_Private(const GPUCSRRanks *r)
{
  return r->halo->exchange->name;
}

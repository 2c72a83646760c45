/*
  MATMPIAIJGPUCSR: MATMPIAIJ whose diagonal and off-diagonal blocks are MATSEQAIJGPUCSR, with its own products: the halo of
  x crosses MPI from page-locked host buffers, whatever MPI knows of GPUs, while the diagonal block is multiplied.
*/
#include "gpucsrimpl.h"

/*
  A pattern of A: what was prepared for one is made anew for another, by all ranks together. PETSc's number of it is a sum over blocks and
  ranks, which begins anew where the blocks are replaced, by all ranks too, so that it tells patterns apart only of the same two blocks.
*/
typedef struct {
  PetscObjectState state;
  PetscObjectId    block[2];
} Pattern;

/* The entries of x that cross ranks: which of ours others need, and where those of others arrive (the order of garray) */
typedef struct {
  PetscBool    set;
  Pattern      pattern; /* it was made for */
  PetscMPIInt  nto, nfrom;
  MPI_Request *forward, *backward; /* persistent: receives first */
  PetscInt     nsend, nrecv, nunique;
  int32_t     *index;             /* local entry of x behind each sent one */
  int32_t     *unique;            /* each of those once */
  PetscInt    *slot;              /* place in unique of each sent entry */
  PetscScalar *send, *recv, *sum; /* page-locked where that means something */
  GPUCSRDevice dev;               /* whose memory they are; NULL: the host's */
  int32_t     *dindex, *dunique;  /* on the device, made when a device vector first needs them */
  void        *dbuffer;
  Vec          lvec; /* recv as a vector, for the parent's products */
} Halo;

typedef struct {
  Mat_GPUCSR       base;
  Halo             halo;
  Pattern          agreed[2]; /* for which the ranks told each other what became of each side, */
  PetscObjectState values[2]; /* and the values */
} Mat_MPIGPUCSR;

static PetscErrorCode PatternGet(Mat A, Pattern *p)
{
  Mat b[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &b[0], &b[1], NULL));
  p->state = A->nonzerostate;
  for (int k = 0; k < 2; k++) PetscCall(PetscObjectGetId((PetscObject)b[k], &p->block[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool PatternIs(const Pattern *p, const Pattern *q)
{
  return (PetscBool)(p->state == q->state && p->block[0] == q->block[0] && p->block[1] == q->block[1]);
}

static PetscErrorCode HostBuffer(GPUCSRDevice dev, PetscInt n, PetscScalar **p)
{
  const size_t bytes = sizeof(PetscScalar) * (size_t)(n + 1);

  PetscFunctionBegin;
  if (dev) PetscCall(dev->ops->hostmalloc(dev->id, bytes, (void **)p));
  else PetscCall(PetscMalloc(bytes, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Memory of the device that any stream may use */
static PetscErrorCode DeviceBuffer(GPUCSRDevice dev, size_t bytes, void **p)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRMalloc(dev, bytes, "the halo", p));
  PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostBufferFree(GPUCSRDevice dev, PetscScalar **p)
{
  PetscFunctionBegin;
  if (!dev) PetscCall(PetscFree(*p));
  else if (!dev->failed[0]) PetscCall(dev->ops->hostfree(dev->id, *p));
  *p = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HaloDestroy(Halo *h)
{
  PetscFunctionBegin;
  if (!h->set) PetscFunctionReturn(PETSC_SUCCESS);
  for (int k = 0; k < h->nto + h->nfrom; k++) {
    PetscCallMPI(MPI_Request_free(&h->forward[k]));
    PetscCallMPI(MPI_Request_free(&h->backward[k]));
  }
  PetscCall(PetscFree2(h->forward, h->backward));
  PetscCall(VecDestroy(&h->lvec));
  if (h->dev) {
    PetscCall(GPUCSRFree(h->dev, sizeof(int32_t) * (size_t)h->nsend, (void **)&h->dindex));
    PetscCall(GPUCSRFree(h->dev, sizeof(int32_t) * (size_t)h->nunique, (void **)&h->dunique));
    PetscCall(GPUCSRFree(h->dev, sizeof(double) * (size_t)h->nsend, &h->dbuffer));
  }
  PetscCall(HostBufferFree(h->dev, &h->send));
  PetscCall(HostBufferFree(h->dev, &h->recv));
  PetscCall(HostBufferFree(h->dev, &h->sum));
  PetscCall(PetscFree3(h->index, h->unique, h->slot));
  PetscCall(PetscMemzero(h, sizeof(*h)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: who needs which of our entries */
static PetscErrorCode HaloSetUp(Mat A, GPUCSRDevice dev, Halo *h)
{
  MPI_Comm        comm;
  Mat             Ad, Ao;
  const PetscInt *garray, *ranges;
  PetscInt       *want, *asked;
  PetscMPIInt     size, tag;
  MPI_Request    *req;
  PetscInt        n, ngot = 0, rstart;

  PetscFunctionBegin;
  PetscCall(HaloDestroy(h));
  PetscCall(PetscObjectGetComm((PetscObject)A, &comm));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(PetscObjectGetNewTag((PetscObject)A, &tag));
  PetscCall(MatMPIAIJGetSeqAIJ(A, &Ad, &Ao, &garray));
  PetscCall(MatGetOwnershipRangesColumn(A, &ranges));
  PetscCall(MatGetOwnershipRangeColumn(A, &rstart, NULL));
  n        = Ao->cmap->n;
  h->nrecv = n;
  h->dev   = dev;
  PetscCall(PetscMalloc2(size, &want, size, &asked));
  PetscCall(PetscArrayzero(want, size));
  for (PetscInt k = 0, r = 0; k < n; k++) {
    while (garray[k] >= ranges[r + 1]) r++;
    want[r]++;
  }
  PetscCallMPI(MPI_Alltoall(want, 1, MPIU_INT, asked, 1, MPIU_INT, comm));
  for (int r = 0; r < size; r++) {
    h->nsend += asked[r];
    h->nto += asked[r] > 0;
    h->nfrom += want[r] > 0;
  }
  /* the list of what we want goes to its owners, in garray's order */
  {
    PetscInt *indices;
    int       q = 0;

    PetscCall(PetscMalloc2(h->nsend + 1, &indices, h->nto + h->nfrom + 1, &req));
    PetscCall(PetscMalloc3(h->nsend + 1, &h->index, h->nsend + 1, &h->unique, h->nsend + 1, &h->slot));
    for (int r = 0; r < size; r++) {
      if (!asked[r]) continue;
      PetscCallMPI(MPI_Irecv(indices + ngot, (PetscMPIInt)asked[r], MPIU_INT, r, tag, comm, &req[q++]));
      ngot += asked[r];
    }
    for (PetscInt r = 0, k = 0; r < size; k += want[r++])
      if (want[r]) PetscCallMPI(MPI_Isend((void *)(garray + k), (PetscMPIInt)want[r], MPIU_INT, (PetscMPIInt)r, tag, comm, &req[q++]));
    PetscCallMPI(MPI_Waitall(q, req, MPI_STATUSES_IGNORE));
    for (PetscInt k = 0; k < h->nsend; k++) h->index[k] = (int32_t)(indices[k] - rstart);
    /* an entry that several ranks need is summed once on the way back */
    PetscCall(PetscArraycpy(h->slot, indices, h->nsend));
    h->nunique = h->nsend;
    PetscCall(PetscSortRemoveDupsInt(&h->nunique, indices));
    for (PetscInt k = 0; k < h->nunique; k++) h->unique[k] = (int32_t)(indices[k] - rstart);
    for (PetscInt k = 0; k < h->nsend; k++) PetscCall(PetscFindInt(h->slot[k], h->nunique, indices, &h->slot[k]));
    PetscCall(PetscFree2(indices, req));
  }
  PetscCall(HostBuffer(dev, h->nsend, &h->send));
  PetscCall(HostBuffer(dev, h->nrecv, &h->recv));
  PetscCall(HostBuffer(dev, h->nunique, &h->sum));
  PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, h->nrecv, h->recv, &h->lvec));
  /* forward: entries of x to those who asked; backward: sums for them from those whom we asked */
  PetscCall(PetscMalloc2(h->nto + h->nfrom + 1, &h->forward, h->nto + h->nfrom + 1, &h->backward));
  {
    int f = 0, b = 0;

    for (PetscInt r = 0, k = 0; r < size; k += want[r++])
      if (want[r]) PetscCallMPI(MPI_Recv_init(h->recv + k, (PetscMPIInt)want[r], MPIU_SCALAR, (PetscMPIInt)r, tag, comm, &h->forward[f++]));
    for (PetscInt r = 0, k = 0; r < size; k += asked[r++])
      if (asked[r]) PetscCallMPI(MPI_Send_init(h->send + k, (PetscMPIInt)asked[r], MPIU_SCALAR, (PetscMPIInt)r, tag, comm, &h->forward[f++]));
    for (PetscInt r = 0, k = 0; r < size; k += asked[r++])
      if (asked[r]) PetscCallMPI(MPI_Recv_init(h->send + k, (PetscMPIInt)asked[r], MPIU_SCALAR, (PetscMPIInt)r, tag, comm, &h->backward[b++]));
    for (PetscInt r = 0, k = 0; r < size; k += want[r++])
      if (want[r]) PetscCallMPI(MPI_Send_init(h->recv + k, (PetscMPIInt)want[r], MPIU_SCALAR, (PetscMPIInt)r, tag, comm, &h->backward[b++]));
  }
  PetscCall(PetscFree2(want, asked));
  PetscCall(PatternGet(A, &h->pattern));
  h->set = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  What HaloPack() and HaloAdd() need on the device, ahead of them: where there is no memory left for it, nothing has been sent or written yet
*/
static PetscErrorCode HaloReserve(Halo *h, PetscBool add, GPUCSRDevice dev, GPUCSRStream s)
{
  int32_t      **d     = add ? &h->dunique : &h->dindex;
  const int32_t *index = add ? h->unique : h->index;
  const size_t   n     = (size_t)(add ? h->nunique : h->nsend);

  PetscFunctionBegin;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  if (!h->dbuffer) PetscCall(DeviceBuffer(dev, sizeof(double) * (size_t)h->nsend, &h->dbuffer));
  if (*d) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(DeviceBuffer(dev, sizeof(int32_t) * n, (void **)d));
  PetscCall(GPUCSRUpload(dev, *d, GPUCSR_INT32, index, GPUCSR_INT32, n, PETSC_FALSE, s, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* h->send = the entries of x that others need */
static PetscErrorCode HaloPack(Halo *h, const GPUCSROperand *x, GPUCSRDevice dev, GPUCSRStream s)
{
  PetscFunctionBegin;
  if (x->place == GPUCSR_HOST) {
    for (PetscInt k = 0; k < h->nsend; k++) h->send[k] = ((const PetscScalar *)x->p)[h->index[k]];
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!h->nsend) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*GPUCSRHelpers(dev)->gather)(GPUCSR_DOUBLE, (size_t)h->nsend, h->dindex, x->p, h->dbuffer, s));
  PetscCall(GPUCSRDownload(dev, h->send, GPUCSR_DOUBLE, h->dbuffer, GPUCSR_DOUBLE, (size_t)h->nsend, PETSC_TRUE, s));
  PetscCall(dev->ops->streamsynchronize(dev->id, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z += what came back, each of our entries summed in the order of ranks */
static PetscErrorCode HaloAdd(Halo *h, const GPUCSROperand *z, GPUCSRDevice dev, GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(PetscArrayzero(h->sum, h->nunique));
  for (PetscInt k = 0; k < h->nsend; k++) h->sum[h->slot[k]] += h->send[k];
  if (z->place == GPUCSR_HOST) {
    for (PetscInt k = 0; k < h->nunique; k++) ((PetscScalar *)z->p)[h->unique[k]] += h->sum[k];
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!h->nunique) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRUpload(dev, h->dbuffer, GPUCSR_DOUBLE, h->sum, GPUCSR_DOUBLE, (size_t)h->nunique, PETSC_TRUE, s, NULL));
  PetscCall((*GPUCSRHelpers(dev)->scatteradd)(GPUCSR_DOUBLE, (size_t)h->nunique, h->dunique, h->dbuffer, z->p, s));
  PetscCall(dev->ops->streamsynchronize(dev->id, s)); /* sum is written again by the next product */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One product on this rank: what all its steps need */
typedef struct {
  Mat           A, Ad, Ao;
  Halo         *h;
  GPUCSRDevice  dev;   /* NULL: the parent's products of the blocks */
  PetscBool     quiet; /* a failure of the device is met by the host's products */
  PetscBool     wrote; /* z may hold part of the result */
  Vec           x, y, z;
  GPUCSRStream  s;
  GPUCSROperand ox, oy, oz, halo, partial;
} Step;

/*
  Device work of a step, with x, y and z held as arrays meanwhile. When it fails and backend is auto, the rank goes on
  with the host's products, and its neighbours never notice: communication is the same either way.
*/
static PetscErrorCode Try(Step *t, PetscErrorCode (*work)(Step *))
{
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!t->dev) PetscFunctionReturn(PETSC_SUCCESS);
  if (!t->quiet) {
    PetscCall((*work)(t));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = (*work)(t);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  if (ierr) {
    /* what the host would need must still be there: memory is asked for before anything is written, and a device that lacks it still gives vectors back */
    PetscCheck((ierr == PETSC_ERR_MEM || (t->ox.place == GPUCSR_HOST && t->oz.place == GPUCSR_HOST)) && !(t->wrote && t->y == t->z), PETSC_COMM_SELF, ierr, "%s", attempt.message);
    if (ierr == PETSC_ERR_GPU) PetscCall(PetscStrncpy(t->dev->failed, attempt.message, sizeof(t->dev->failed)));
    PetscCall(MatGPUCSRFailed_Private(t->Ad, attempt.message));
    PetscCall(MatGPUCSRLeave_Private(t->Ao, ((Mat_SeqGPUCSR *)t->Ad->spptr)->whynot));
    PetscCall(MatGPUCSRWarn_Private(t->Ad, 0, 0, 0));
    t->dev = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Both blocks ready for products of this side, or neither: what one holds on the device is of no use without the other */
static PetscErrorCode BlocksReady(Mat Ad, Mat Ao, GPUCSRSide side, PetscBool *ready)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRReady_Private(Ad, side, ready));
  if (!*ready) PetscCall(MatGPUCSRLeave_Private(Ao, ((Mat_SeqGPUCSR *)Ad->spptr)->whynot));
  else {
    PetscCall(MatGPUCSRReady_Private(Ao, side, ready));
    if (!*ready) PetscCall(MatGPUCSRLeave_Private(Ad, ((Mat_SeqGPUCSR *)Ao->spptr)->whynot));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The same, collectively: what would be the same warning or error on several ranks is said once, and no rank waits for one that has met an error. Ranks
  tell each other how they fared at the first product with a new pattern or with new values, which they all come to together, for each side: PETSc counts
  changes of a parallel matrix on all ranks alike. What happens to a rank later (a device that fails, say), or when a program changes one block alone, it says
  by itself, see warn.c, since nobody waits for it to ask.
*/
static PetscErrorCode Ready(Mat A, GPUCSRSide side, PetscBool *ready)
{
  Mat_MPIGPUCSR *g    = (Mat_MPIGPUCSR *)A->spptr;
  const MPI_Comm comm = PetscObjectComm((PetscObject)A);
  Mat            b[2], speaker;
  PetscMPIInt    rank, size, have[2], all[2], first[2];
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;
  Pattern        now;
  int            code;

  PetscObjectState state;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &b[0], &b[1], NULL));
  PetscCall(PatternGet(A, &now));
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (PatternIs(&g->agreed[side], &now) && g->values[side] == state) {
    PetscCall(BlocksReady(b[0], b[1], side, ready));
    for (int k = 0; k < 2; k++) PetscCall(MatGPUCSRWarn_Private(b[k], 0, 0, 0));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = BlocksReady(b[0], b[1], side, ready);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  code    = (int)ierr;
  speaker = b[((Mat_SeqGPUCSR *)b[0]->spptr)->warning[0] ? 0 : 1];
  have[0] = ierr ? 1 : 0;
  have[1] = ((Mat_SeqGPUCSR *)speaker->spptr)->warning[0] ? 1 : 0;
  PetscCallMPI(MPI_Allreduce(have, all, 2, MPI_INT, MPI_SUM, comm));
  if (all[0] || all[1]) {
    for (int k = 0; k < 2; k++) have[k] = have[k] ? rank : size;
    PetscCallMPI(MPI_Allreduce(have, first, 2, MPI_INT, MPI_MIN, comm));
    if (all[0]) {
      PetscCallMPI(MPI_Bcast(&code, 1, MPI_INT, first[0], comm));
      PetscCallMPI(MPI_Bcast(attempt.message, (PetscMPIInt)sizeof(attempt.message), MPI_CHAR, first[0], comm));
      PetscCheck(size == 1, comm, (PetscErrorCode)code, "%s (met by rank %d, on %d of %d ranks in all)", attempt.message, (int)first[0], (int)all[0], (int)size);
      SETERRQ(comm, (PetscErrorCode)code, "%s", attempt.message);
    }
    if (rank == first[1]) PetscCall(MatGPUCSRWarn_Private(speaker, rank, all[1], size));
    for (int k = 0; k < 2; k++) ((Mat_SeqGPUCSR *)b[k]->spptr)->warning[0] = 0;
  }
  g->agreed[side] = now;
  g->values[side] = state;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Begin(Mat A, GPUCSRSide side, Vec x, Vec y, Vec z, Step *t)
{
  Mat_MPIGPUCSR *g = (Mat_MPIGPUCSR *)A->spptr;
  Mat_SeqGPUCSR *gd;
  PetscBool      ready;
  Pattern        now;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(t, sizeof(*t)));
  t->A = A;
  t->h = &g->halo;
  t->x = x;
  t->y = y;
  t->z = z;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &t->Ad, &t->Ao, NULL));
  gd = (Mat_SeqGPUCSR *)t->Ad->spptr;
  PetscCall(Ready(A, side, &ready));
  if (ready) t->dev = gd->dev;
  t->quiet = (PetscBool)(MatGPUCSRBackendOf(A) != MAT_GPUCSR_BACKEND_CUDA);
  PetscCall(PatternGet(A, &now));
  if (!t->h->set || !PatternIs(&t->h->pattern, &now)) PetscCall(HaloSetUp(A, t->dev && t->dev->ops->separate ? t->dev : NULL, t->h));
  t->halo     = (GPUCSROperand){.p = t->h->recv, .place = GPUCSR_HOST, .pinned = (PetscBool)(t->h->dev != NULL)};
  t->ox.place = t->oz.place = GPUCSR_HOST;
  if (t->dev) {
    PetscCall(MatGPUCSRVecGet_Private(gd, x, PETSC_TRUE, PETSC_FALSE, &t->ox));
    if (y && y != z) PetscCall(MatGPUCSRVecGet_Private(gd, y, PETSC_TRUE, PETSC_FALSE, &t->oy));
    PetscCall(MatGPUCSRVecGet_Private(gd, z, (PetscBool)(y == z), PETSC_TRUE, &t->oz));
    if (y == z) t->oy = t->oz;
    PetscCall(MatGPUCSRStream_Private(t->dev, &t->ox, y && y != z ? &t->oy : NULL, &t->oz, &t->s));
    if (t->ox.place == GPUCSR_DEVICE || t->oz.place == GPUCSR_DEVICE) PetscCheck(t->h->dev, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Device vectors meet a halo of the host");
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Gives the arrays back */
static PetscErrorCode End(Step *t, PetscBool held)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)t->Ad->spptr;

  PetscFunctionBegin;
  if (held) {
    PetscCall(MatGPUCSRVecRestore_Private(g, t->x, PETSC_TRUE, PETSC_FALSE, &t->ox));
    if (t->y && t->y != t->z) PetscCall(MatGPUCSRVecRestore_Private(g, t->y, PETSC_TRUE, PETSC_FALSE, &t->oy));
    PetscCall(MatGPUCSRVecRestore_Private(g, t->z, (PetscBool)(t->y == t->z), PETSC_TRUE, &t->oz));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The partial result stays on the device, in the diagonal block's vector type */
static PetscErrorCode Partial(Step *t)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)t->Ad->spptr;

  PetscFunctionBegin;
  t->partial = (GPUCSROperand){.place = GPUCSR_NATIVE};
  PetscCall(MatGPUCSRBuffer_Private(g, PETSC_FALSE, (size_t)t->Ad->rmap->n * GPUCSRTypeSize(GPUCSRVectorType(g->precision)), &t->partial.p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Pack(Step *t)
{
  PetscFunctionBegin;
  if (t->ox.place == GPUCSR_DEVICE) PetscCall(HaloReserve(t->h, PETSC_FALSE, t->dev, t->s));
  PetscCall(HaloPack(t->h, &t->ox, t->dev, t->s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* partial = Ad x + y, under way when this returns */
static PetscErrorCode DiagonalProduct(Step *t)
{
  PetscBool wrote;

  PetscFunctionBegin;
  PetscCall(Partial(t));
  PetscCall(MatGPUCSRApply_Private(t->Ad, GPUCSR_FORWARD, &t->ox, t->y ? &t->oy : NULL, &t->partial, t->s, &wrote));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = Ao halo + partial */
static PetscErrorCode OffDiagonalProduct(Step *t)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRApply_Private(t->Ao, GPUCSR_FORWARD, &t->halo, &t->partial, &t->oz, t->s, &t->wrote));
  /* host arrays are complete; of device vectors, the halo's upload must be through before its buffer is written again */
  if (t->oz.place == GPUCSR_DEVICE) PetscCall(t->dev->ops->streamsynchronize(t->dev->id, t->s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x + y, y may be NULL, may be z */
static PetscErrorCode Forward(Mat A, Vec x, Vec y, Vec z)
{
  Step      t;
  PetscBool held;

  PetscFunctionBegin;
  PetscCall(Begin(A, GPUCSR_FORWARD, x, y, z, &t));
  held = t.dev ? PETSC_TRUE : PETSC_FALSE;
  PetscCall(PetscLogEventBegin(MAT_GPUCSR_Halo, A, 0, 0, 0));
  PetscCall(Try(&t, Pack));
  if (!t.dev) {
    GPUCSROperand o = {.place = GPUCSR_HOST};

    PetscCall(VecGetArrayRead(x, (const PetscScalar **)&o.p));
    PetscCall(HaloPack(t.h, &o, NULL, NULL));
    PetscCall(VecRestoreArrayRead(x, (const PetscScalar **)&o.p));
  }
  PetscCallMPI(MPI_Startall(t.h->nto + t.h->nfrom, t.h->forward));
  PetscCall(Try(&t, DiagonalProduct));
  PetscCallMPI(MPI_Waitall(t.h->nto + t.h->nfrom, t.h->forward, MPI_STATUSES_IGNORE));
  PetscCall(Try(&t, OffDiagonalProduct));
  PetscCall(PetscLogEventEnd(MAT_GPUCSR_Halo, A, 0, 0, 0));
  PetscCall(End(&t, held));
  if (!t.dev) {
    PetscCall(MatGPUCSRParentProduct_Private(t.Ad, GPUCSR_FORWARD, x, y, z));
    PetscCall(PetscObjectStateIncrease((PetscObject)t.h->lvec));
    PetscCall(MatGPUCSRParentProduct_Private(t.Ao, GPUCSR_FORWARD, t.h->lvec, z, z));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* recv = Ao^T x, complete on the host; with what Add() needs */
static PetscErrorCode OffDiagonalTranspose(Step *t)
{
  PetscBool wrote;

  PetscFunctionBegin;
  if (t->oz.place == GPUCSR_DEVICE) PetscCall(HaloReserve(t->h, PETSC_TRUE, t->dev, t->s));
  PetscCall(MatGPUCSRApply_Private(t->Ao, GPUCSR_TRANSPOSE, &t->ox, NULL, &t->halo, t->s, &wrote));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = Ad^T x + y */
static PetscErrorCode DiagonalTranspose(Step *t)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRApply_Private(t->Ad, GPUCSR_TRANSPOSE, &t->ox, t->y ? &t->oy : NULL, &t->oz, t->s, &t->wrote));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Add(Step *t)
{
  PetscFunctionBegin;
  PetscCall(HaloAdd(t->h, &t->oz, t->dev, t->s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A^T x + y: the halo's sums travel back while the diagonal block is multiplied */
static PetscErrorCode Backward(Mat A, Vec x, Vec y, Vec z)
{
  Step      t;
  PetscBool held, added = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(Begin(A, GPUCSR_TRANSPOSE, x, y, z, &t));
  held = t.dev ? PETSC_TRUE : PETSC_FALSE;
  PetscCall(PetscLogEventBegin(MAT_GPUCSR_Halo, A, 0, 0, 0));
  PetscCall(Try(&t, OffDiagonalTranspose));
  if (!t.dev) {
    if (held) PetscCall(End(&t, held));
    held = PETSC_FALSE;
    PetscCall(MatGPUCSRParentProduct_Private(t.Ao, GPUCSR_TRANSPOSE, x, NULL, t.h->lvec));
  }
  PetscCallMPI(MPI_Startall(t.h->nto + t.h->nfrom, t.h->backward));
  PetscCall(Try(&t, DiagonalTranspose));
  if (!t.dev) {
    if (held) PetscCall(End(&t, held));
    held = PETSC_FALSE;
    PetscCall(MatGPUCSRParentProduct_Private(t.Ad, GPUCSR_TRANSPOSE, x, y, z));
  }
  PetscCallMPI(MPI_Waitall(t.h->nto + t.h->nfrom, t.h->backward, MPI_STATUSES_IGNORE));
  t.quiet = PETSC_FALSE; /* z holds part of the result by now */
  if (t.dev) {
    PetscCall(Try(&t, Add));
    added = PETSC_TRUE;
  }
  PetscCall(PetscLogEventEnd(MAT_GPUCSR_Halo, A, 0, 0, 0));
  if (held) PetscCall(End(&t, held));
  if (!added) {
    GPUCSROperand o = {.place = GPUCSR_HOST};

    PetscCall(VecGetArray(z, (PetscScalar **)&o.p));
    PetscCall(HaloAdd(t.h, &o, NULL, NULL));
    PetscCall(VecRestoreArray(z, (PetscScalar **)&o.p));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProduct_MPIAIJGPUCSR(Mat A, GPUCSRSide side, Vec x, Vec y, Vec z)
{
  PetscFunctionBegin;
  if (side == GPUCSR_FORWARD) PetscCall(Forward(A, x, y, z));
  else PetscCall(Backward(A, x, y, z));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What a block is asked for: the off-diagonal one is sparse whatever the diagonal one is, and the matrix says when transposes are built */
static PetscErrorCode BlockConfig(const MatGPUCSRConfig *c, PetscBool offdiagonal, MatGPUCSRConfig *o)
{
  GPUCSRRequest *r[2];
  PetscBool      dense, densekernel;

  PetscFunctionBegin;
  *o                     = *c;
  o->transposeatassembly = PETSC_FALSE;
  r[0]                   = &o->request;
  r[1]                   = &o->trequest;
  for (int k = 0; k < (offdiagonal ? 2 : 0); k++) {
    PetscCall(PetscStrcmp(r[k]->format, "dense", &dense));
    PetscCall(PetscStrbeginswith(r[k]->kernel, "dense", &densekernel));
    if (dense || densekernel) {
      PetscCall(PetscStrncpy(r[k]->format, "csr", GPUCSR_WORD));
      PetscCall(PetscStrncpy(r[k]->kernel, "auto", GPUCSR_WORD));
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Make the two blocks ours, with our configuration */
static PetscErrorCode Blocks(Mat A)
{
  Mat_MPIGPUCSR *g = (Mat_MPIGPUCSR *)A->spptr;
  Mat            b[2];
  PetscBool      ours;

  PetscFunctionBegin;
  if (!A->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(A, &b[0], &b[1], NULL));
  for (int k = 0; k < 2; k++) {
    MatGPUCSRConfig c;

    if (!b[k]) continue;
    PetscCall(PetscObjectTypeCompare((PetscObject)b[k], MATSEQAIJGPUCSR, &ours));
    if (!ours) PetscCall(MatConvert_SeqAIJ_SeqAIJGPUCSR(b[k], MATSEQAIJGPUCSR, MAT_INPLACE_MATRIX, &b[k]));
    ((Mat_SeqGPUCSR *)b[k]->spptr)->block = PETSC_TRUE;
    PetscCall(PetscObjectSetName((PetscObject)b[k], k ? "off-diagonal block" : "diagonal block"));
#if PetscDefined(HAVE_DEVICE)
    PetscCall(MatBindToCPU(b[k], A->boundtocpu));
#endif
    PetscCall(BlockConfig(&g->base.config, k ? PETSC_TRUE : PETSC_FALSE, &c));
    PetscCall(MatGPUCSRReconfigure_Private(b[k], &c));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGPUCSRSetUp_MPIAIJGPUCSR(Mat A, PetscBool transpose)
{
  PetscBool ready;

  PetscFunctionBegin;
  PetscCall(Ready(A, GPUCSR_FORWARD, &ready));
  if (transpose) PetscCall(Ready(A, GPUCSR_TRANSPOSE, &ready)); /* ready or not: other ranks may be */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatAssemblyEnd_MPIAIJGPUCSR(Mat A, MatAssemblyType type)
{
  Mat_MPIGPUCSR *g = (Mat_MPIGPUCSR *)A->spptr;

  PetscFunctionBegin;
  PetscCall((*g->base.parent.assemblyend)(A, type));
  PetscCall(Blocks(A)); /* assembly may have made a new off-diagonal block */
  if (type == MAT_FINAL_ASSEMBLY && g->base.config.transposeatassembly) PetscCall(MatGPUCSRSetUp_MPIAIJGPUCSR(A, PETSC_TRUE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Some of the parent's ways write values without counting the change */
static PetscErrorCode MatCreateSubMatrices_MPIAIJGPUCSR(Mat A, PetscInt n, const IS rows[], const IS cols[], MatReuse reuse, Mat *sub[])
{
  PetscFunctionBegin;
  PetscCall((*((Mat_MPIGPUCSR *)A->spptr)->base.parent.createsubmatrices)(A, n, rows, cols, reuse, sub));
  for (PetscInt k = 0; k < n; k++) PetscCall(PetscObjectStateIncrease((PetscObject)(*sub)[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What the blocks of the first process are: those of the others are alike, and the report has them */
static PetscErrorCode ViewBlocks(Mat A, PetscViewer viewer)
{
  PetscViewer sub;
  PetscMPIInt rank;
  PetscBool   ready;
  Mat         Ad, Ao;

  PetscFunctionBegin;
  if (A->assembled) PetscCall(Ready(A, GPUCSR_FORWARD, &ready)); /* who looks wants to see the choice */
  PetscCall(MatMPIAIJGetSeqAIJ(A, &Ad, &Ao, NULL));
  PetscCall(PetscViewerASCIIPrintf(viewer, "MATGPUCSR blocks of rank 0, diagonal then off-diagonal:\n"));
  PetscCall(PetscViewerGetSubViewer(viewer, PETSC_COMM_SELF, &sub));
  PetscCallMPI(MPI_Comm_rank(PetscObjectComm((PetscObject)A), &rank));
  if (!rank) {
    PetscCall(MatGPUCSRViewBlock_Private(Ad, sub));
    PetscCall(MatGPUCSRViewBlock_Private(Ao, sub));
  }
  PetscCall(PetscViewerFlush(sub));
  PetscCall(PetscViewerRestoreSubViewer(viewer, PETSC_COMM_SELF, &sub));
  PetscCall(PetscViewerFlush(viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Names from the diagonal block, numbers from both */
static PetscErrorCode MatGPUCSRGetInfo_MPIAIJGPUCSR(Mat A, MatGPUCSRInfo *info)
{
  Mat           b[2];
  MatGPUCSRInfo o;

  PetscFunctionBegin;
  PetscCheck(A->preallocated, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix has no blocks yet: set it up first, MatSetUp()");
  PetscCall(MatMPIAIJGetSeqAIJ(A, &b[0], &b[1], NULL));
  PetscCall(MatGPUCSRInfoGet_Private(b[0], info));
  PetscCall(MatGPUCSRInfoGet_Private(b[1], &o));
#define SUM(field) info->field += o.field
  SUM(builds);
  SUM(refreshes);
  SUM(transpose_builds);
  SUM(products);
  SUM(transpose_products);
  SUM(dense_products);
  SUM(sparse_products);
  SUM(dense_columns);
  SUM(aij_products);
  SUM(aij_transpose_products);
  SUM(fallbacks);
  SUM(bytes);
  SUM(transpose_bytes);
  SUM(csr_bytes);
  SUM(uploaded);
  SUM(downloaded);
  SUM(inspect_time);
  SUM(convert_time);
  SUM(build_time);
  SUM(upload_time);
  SUM(transpose_time);
  SUM(product_time);
  SUM(transpose_product_time);
  SUM(download_time);
  SUM(pad_time);
  SUM(vector_upload_time);
  SUM(vector_convert_time);
  SUM(aij_time);
#undef SUM
  info->padding  = PetscMax(info->padding, o.padding);
  info->rounding = PetscMax(info->rounding, o.rounding);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device, or whether there is one, may be another now */
static PetscErrorCode Configured(Mat A)
{
  Mat_MPIGPUCSR *g = (Mat_MPIGPUCSR *)A->spptr;

  PetscFunctionBegin;
  PetscCall(HaloDestroy(&g->halo));
  for (int k = 0; k < 2; k++) g->agreed[k] = (Pattern){.state = -1};
  PetscCall(Blocks(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Release(Mat A)
{
  PetscFunctionBegin;
  PetscCall(HaloDestroy(&((Mat_MPIGPUCSR *)A->spptr)->halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatConvert_MPIAIJGPUCSR_MPIAIJ(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  Mat b[2];

  PetscFunctionBegin;
  (void)type;
  PetscCall(MatGPUCSRToAIJ_Private(A, reuse, newmat));
  if (reuse == MAT_REUSE_MATRIX || !(*newmat)->preallocated) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(*newmat, &b[0], &b[1], NULL));
  for (int k = 0; k < 2; k++)
    if (b[k]) PetscCall(MatConvert(b[k], MATSEQAIJ, MAT_INPLACE_MATRIX, &b[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const MatGPUCSRKind kind = {
  .name              = MATMPIAIJGPUCSR,
  .parent            = MATMPIAIJ,
  .seq               = "mpi",
  .size              = sizeof(Mat_MPIGPUCSR),
  .release           = Release,
  .configured        = Configured,
  .product           = MatProduct_MPIAIJGPUCSR,
  .createsubmatrices = MatCreateSubMatrices_MPIAIJGPUCSR,
  .assemblyend       = MatAssemblyEnd_MPIAIJGPUCSR,
  .view              = ViewBlocks,
  .setup             = MatGPUCSRSetUp_MPIAIJGPUCSR,
  .getinfo           = MatGPUCSRGetInfo_MPIAIJGPUCSR,
  .toaij             = MatConvert_MPIAIJGPUCSR_MPIAIJ,
  .fromaij           = MatConvert_MPIAIJ_MPIAIJGPUCSR,
};

PetscErrorCode MatConvert_MPIAIJ_MPIAIJGPUCSR(Mat A, MatType type, MatReuse reuse, Mat *newmat)
{
  PetscFunctionBegin;
  (void)type;
  PetscCall(MatGPUCSRFromAIJ_Private(A, &kind, reuse, newmat));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  MATMPIAIJGPUCSR - "mpiaijgpucsr", the form of `MATGPUCSR` for any number of processes

  Level: beginner

  Notes:
  Each rank keeps its diagonal and its off-diagonal block on its GPU. Entries of vectors that cross ranks go through
  page-locked host memory, so MPI need not know of GPUs.

.seealso: `MATGPUCSR`, `MATSEQAIJGPUCSR`, `MatCreateAIJGPUCSR()`
M*/
PetscErrorCode MatCreate_MPIAIJGPUCSR(Mat A)
{
  PetscFunctionBegin;
  PetscCall(MatSetType(A, MATMPIAIJ));
  PetscCall(MatConvert_MPIAIJ_MPIAIJGPUCSR(A, MATMPIAIJGPUCSR, MAT_INPLACE_MATRIX, &A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

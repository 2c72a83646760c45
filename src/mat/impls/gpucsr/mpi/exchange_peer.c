/*
  Exchange peer: kernels write into the memory of other devices of the host (blackbox/peerhalo/). Ranks that compute on the host exchange by shared memory. After the set-up,
  exchanges run without the host and MPI. The launch that waits for entries of x adds the product of the off-diagonal block.
*/
#include "halo.h"
#include "../blackbox/peerhalo/peerhalo.h"

typedef struct {
  GPUCSRPeerHalo p;
  void         **theirs; /* memory of every rank: its flags and buffers; see Layout */
  GPUCSRPeerSums sums;
  int32_t       *index;
  double        *fixed;       /* the halo where products read and write it */
  PetscScalar   *send, *recv; /* page-locked where that means something */
  PetscBool      pending;     /* an exchange has begun and not ended */
  GPUCSRStream   last;        /* of the last exchange */
  GPUCSREvent    done;
  GPUCSRPeerRows rows;    /* of the off-diagonal block, with the entries of its plan or its mirror, */
  GPUCSRVersion  version; /* of this version */
  PetscBool      pays;
} Peer;

/* --- Set-up */

/* Behind the flags: the counts of exchanges, of blocks and of gathers done */
static size_t CountAt(GPUCSRPeers peers)
{
  return GPUCSRAlignUp(sizeof(uint64_t) * (size_t)peers->size);
}

static size_t SlotsAt(GPUCSRPeers peers)
{
  return CountAt(peers) + GPUCSRAlignUp(3 * sizeof(uint64_t));
}

/* Places in the memory of a rank that receives coming[way] numbers each way */
static size_t Layout(GPUCSRPeers peers, const PetscInt64 coming[2], size_t at[2][2])
{
  size_t end = SlotsAt(peers) + GPUCSRAlignUp(GPUCSR_PEER_GATHER_BYTES(peers->size));

  for (int way = 0; way < 2; way++)
    for (int s = 0; s < 2; s++) {
      at[way][s] = end;
      end += GPUCSRAlignUp(sizeof(double) * (size_t)coming[way]);
    }
  return end;
}

/* Waits for this rank's launches that use the memory; GPUCSRPeersFree() waits for the other ranks' */
static PetscErrorCode Destroy_Peer(GPUCSRHalo h)
{
  Peer *g = (Peer *)h->data;

  PetscFunctionBegin;
  if (g->theirs) PetscCall(GPUCSRPeersFree(h->peers, g->theirs));
  PetscCall(PetscFree(g->theirs));
  if (g->done && !h->dev->failed[0]) PetscCall(h->dev->ops->eventdestroy(h->dev->id, g->done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Local_Peer(GPUCSRHalo h)
{
  Peer *g;

  PetscFunctionBegin;
  PetscCall(PetscNew(&g));
  h->data = g;
  PetscCall(PetscCalloc1(h->peers->size + 1, &g->theirs));
  PetscCheck(PetscMax(h->nsend, h->nrecv) <= INT32_MAX / 2, PETSC_COMM_SELF, PETSC_ERR_SUP, "%" PetscInt_FMT " entries to be sent and %" PetscInt_FMT " to come do not fit 32-bit indices: use more ranks", h->nsend, h->nrecv);
  PetscCall(GPUCSRHaloHostBuffer(h, h->nsend, &g->send));
  PetscCall(GPUCSRHaloHostBuffer(h, h->nrecv, &g->recv));
  PetscCall(GPUCSRHaloMalloc(h, sizeof(double) * (size_t)h->nrecv, &g->fixed));
  PetscCall(GPUCSRHaloIndices(h, h->index, h->nsend, &g->index));
  g->sums.n = (int)h->nunique;
  PetscCall(GPUCSRHaloIndices(h, h->unique, h->nunique, &g->sums.place));
  PetscCall(GPUCSRHaloIndices(h, h->first, h->nunique + 1, &g->sums.ptr));
  PetscCall(GPUCSRHaloIndices(h, h->sent, h->nsend, &g->sums.from));
  if (h->dev) PetscCall(h->dev->ops->eventcreate(h->dev->id, PETSC_FALSE, &g->done));
  g->p.dev       = h->dev;
  g->p.peers     = h->peers;
  g->p.coming[0] = (int)h->nrecv;
  g->p.coming[1] = (int)h->nsend;
  h->host        = g->recv;
  h->halo        = (GPUCSROperand){.p = h->dev ? (void *)g->fixed : (void *)g->recv, .place = h->dev ? GPUCSR_DEVICE : GPUCSR_HOST, .vecgpu = PETSC_TRUE};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Neighbours of both directions, in order; where[r]: the place of this rank's numbers in r's buffers, each way; coming[r]: the count of numbers that r receives. And places of the gathered numbers */
static PetscErrorCode Links(GPUCSRHalo h, const PetscInt64 (*where)[2], const PetscInt64 (*coming)[2])
{
  Peer           *g = (Peer *)h->data;
  GPUCSRPeers     p = h->peers;
  GPUCSRPeerLink *link;
  char          **slots;
  int             t = 0, f = 0, n = 0, last[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(PetscCalloc1(h->to.n + h->from.n + 1, &link));
  while (t < h->to.n || f < h->from.n) {
    const PetscMPIInt r    = t == h->to.n ? h->from.rank[f] : f == h->from.n ? h->to.rank[t] : PetscMin(h->to.rank[t], h->from.rank[f]);
    GPUCSRPeerLink   *l    = &link[n++];
    char             *base = (char *)g->theirs[r];
    size_t            at[2][2];

    (void)Layout(p, coming[r], at);
    l->first[0] = last[0];
    l->first[1] = last[1];
    if (t < h->to.n && h->to.rank[t] == r) last[0] = (int)h->to.offset[++t];
    if (f < h->from.n && h->from.rank[f] == r) last[1] = (int)h->from.offset[++f];
    for (int way = 0; way < 2; way++) {
      l->last[way] = last[way];
      for (int s = 0; s < 2; s++) l->to[way][s] = (double *)(void *)(base + at[way][s]) + where[r][way];
    }
    l->flag  = (uint64_t *)(void *)base + p->rank;
    l->shown = (const uint64_t *)g->theirs[p->rank] + r;
  }
  g->p.n = n;
  PetscCall(GPUCSRHaloMalloc(h, sizeof(GPUCSRPeerLink) * (size_t)n, &g->p.link));
  PetscCall(GPUCSRHaloFill(h, g->p.link, GPUCSR_INT32, link, GPUCSR_INT32, (PetscInt)(sizeof(GPUCSRPeerLink) / sizeof(int32_t)) * n));
  PetscCall(PetscFree(link));
  PetscCall(PetscMalloc1(h->peers->size, &slots));
  for (PetscMPIInt r = 0; r < h->peers->size; r++) slots[r] = (char *)g->theirs[r] + SlotsAt(h->peers);
  PetscCall(GPUCSRHaloMalloc(h, sizeof(void *) * (size_t)h->peers->size, &g->p.slots));
  PetscCall(GPUCSRHaloFill(h, g->p.slots, GPUCSR_INT32, slots, GPUCSR_INT32, (PetscInt)(sizeof(void *) / sizeof(int32_t)) * h->peers->size));
  PetscCall(PetscFree(slots));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each rank tells its neighbours where in its buffers they write */
static PetscErrorCode Connect_Peer(GPUCSRHalo h)
{
  Peer            *g       = (Peer *)h->data;
  GPUCSRPeers      p       = h->peers;
  const PetscInt64 mine[2] = {h->nrecv, h->nsend};
  PetscInt64(*where)[2], (*coming)[2];
  size_t        at[2][2];
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  PetscCall(GPUCSRPeersMalloc(p, Layout(p, mine, at), "the halo", g->theirs));
  for (int way = 0; way < 2; way++)
    for (int s = 0; s < 2; s++) g->p.in[way][s] = (double *)(void *)((char *)g->theirs[p->rank] + at[way][s]);
  g->p.count = (uint64_t *)(void *)((char *)g->theirs[p->rank] + CountAt(p));
  PetscCall(PetscCalloc1(p->size, &coming));
  PetscCall(GPUCSRHaloPlaces(h, &where));
  PetscCallMPI(MPI_Allgather((void *)mine, 2, MPI_INT64_T, coming, 2, MPI_INT64_T, p->comm));
  GPUCSRTry(&attempt, Links(h, (const PetscInt64(*)[2])where, (const PetscInt64(*)[2])coming));
  PetscCall(GPUCSRAttemptAgree(&attempt, p->comm, p->dev));
  PetscCall(PetscFree(where));
  PetscCall(PetscFree(coming));
  PetscCheck(!attempt.error, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Check_Peer(GPUCSRHalo h)
{
  return GPUCSRPeersCheck(h->peers);
}

/* --- Exchanges */

/* The stream of an exchange waits for the stream of the last one */
static PetscErrorCode Follow(GPUCSRHalo h, GPUCSRStream *s)
{
  Peer *g = (Peer *)h->data;

  PetscFunctionBegin;
  if (!h->dev) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(h->dev->ops->activate(h->dev->id));
  if (!*s) *s = h->dev->stream;
  if (g->last && g->last != *s) {
    PetscCall(h->dev->ops->eventrecord(h->dev->id, g->done, g->last));
    PetscCall(h->dev->ops->streamwait(h->dev->id, *s, g->done));
  }
  g->last = *s;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* from NULL: sends NaN. If even that fails, tells the other ranks, so that no rank waits */
static PetscErrorCode Send(GPUCSRHalo h, GPUCSRPeerWay way, PetscInt count, const int32_t *index, const PetscScalar *from, GPUCSRStream s)
{
  Peer         *g = (Peer *)h->data;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  if (!g->p.n) PetscFunctionReturn(PETSC_SUCCESS);
  if (from) {
    PetscCall(Follow(h, &s));
    PetscCall(GPUCSRPeerSend(&g->p, way, (int)count, index, (const double *)from, s));
    g->pending = PETSC_TRUE;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  GPUCSRTry(&attempt, h->dev && h->dev->failed[0] ? PETSC_ERR_GPU : GPUCSRPeersCheck(h->peers));
  GPUCSRThen(&attempt, Follow(h, &s));
  GPUCSRThen(&attempt, GPUCSRPeerSend(&g->p, way, (int)count, NULL, NULL, s));
  if (attempt.error) PetscCall(GPUCSRPeersDead(h->peers, h->dev && h->dev->failed[0] ? h->dev->failed : attempt.message));
  g->pending = (PetscBool)!attempt.error;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Ends the exchange after its wait: after a failed wait the rank is out of step, and tells the other ranks */
static PetscErrorCode Ended(GPUCSRHalo h, const GPUCSRAttempt *a)
{
  PetscFunctionBegin;
  ((Peer *)h->data)->pending = PETSC_FALSE;
  if (!a->error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRPeersDead(h->peers, a->message));
  SETERRQ(PETSC_COMM_SELF, a->error, "%s", a->message);
}

#define END(h, s, call) \
  do { \
    GPUCSRAttempt attempt_; \
\
    GPUCSRTry(&attempt_, Follow(h, &(s))); \
    GPUCSRThen(&attempt_, call); \
    PetscCall(Ended(h, &attempt_)); \
  } while (0)

static PetscErrorCode Wait(GPUCSRHalo h, GPUCSRStream s)
{
  PetscFunctionBegin;
  if (h->dev) PetscCall(h->dev->ops->streamsynchronize(h->dev->id, s));
  PetscCall(GPUCSRPeersCheck(h->peers)); /* a launch that has given up leaves its reason there */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Waits for work that uses the host's buffers */
static PetscErrorCode Quiet(GPUCSRHalo h)
{
  Peer *g = (Peer *)h->data;

  PetscFunctionBegin;
  if (h->dev && g->last) PetscCall(h->dev->ops->streamsynchronize(h->dev->id, g->last));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ForwardBegin_Peer(GPUCSRHalo h, const GPUCSROperand *x, GPUCSRStream s)
{
  Peer *g = (Peer *)h->data;

  PetscFunctionBegin;
  if (x && x->place == GPUCSR_HOST && g->p.n) {
    PetscCall(Quiet(h));
    GPUCSRHaloPack(h, (const PetscScalar *)x->p, g->send);
    PetscCall(Send(h, GPUCSR_ENTRIES, h->nsend, NULL, g->send, s));
  } else PetscCall(Send(h, GPUCSR_ENTRIES, h->nsend, g->index, x ? (const PetscScalar *)x->p : NULL, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ForwardEnd_Peer(GPUCSRHalo h, PetscBool host, GPUCSRStream s)
{
  Peer *g = (Peer *)h->data;

  PetscFunctionBegin;
  if (!g->pending) PetscFunctionReturn(PETSC_SUCCESS);
  END(h, s, GPUCSRPeerReceive(&g->p, GPUCSR_ENTRIES, host ? (double *)g->recv : (double *)h->halo.p, s));
  if (host) PetscCall(Wait(h, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ForwardAdd_Peer(GPUCSRHalo h, const GPUCSROperand *z, GPUCSRStream s)
{
  Peer *g = (Peer *)h->data;

  PetscFunctionBegin;
  if (g->pending) END(h, s, GPUCSRPeerMultiply(&g->p, &g->rows, (double *)z->p, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReverseBegin_Peer(GPUCSRHalo h, PetscBool valid, PetscBool host, GPUCSRStream s)
{
  Peer *g = (Peer *)h->data;

  return Send(h, GPUCSR_SUMS, h->nrecv, NULL, !valid ? NULL : host ? g->recv : (const PetscScalar *)h->halo.p, s);
}

static PetscErrorCode ReverseAdd_Peer(GPUCSRHalo h, const GPUCSROperand *z, GPUCSRStream s)
{
  Peer *g = (Peer *)h->data;

  PetscFunctionBegin;
  if (!g->pending) PetscFunctionReturn(PETSC_SUCCESS);
  if (!z) END(h, s, GPUCSRPeerReceive(&g->p, GPUCSR_SUMS, NULL, s));
  else if (z->place == GPUCSR_DEVICE) END(h, s, GPUCSRPeerAdd(&g->p, &g->sums, (double *)z->p, s));
  else {
    END(h, s, GPUCSRPeerReceive(&g->p, GPUCSR_SUMS, (double *)g->send, s));
    PetscCall(Wait(h, s));
    GPUCSRHaloAdd(h, g->send, (PetscScalar *)z->p);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- The off-diagonal block */

/* The plan's entries if it is in CSR: then the block is on the device once */
static PetscErrorCode AddReady_Peer(GPUCSRHalo h, Mat Ao, PetscBool *pays)
{
  Peer           *g     = (Peer *)h->data;
  Mat_SeqGPUCSR  *o     = (Mat_SeqGPUCSR *)Ao->spptr;
  GPUCSRStorage  *csr   = &o->plan[GPUCSR_FORWARD].A;
  const PetscBool exact = (PetscBool)(o->precision == GPUCSR_PRECISION_DOUBLE);

  PetscFunctionBegin;
  if (g->version.values != o->version.values) {
    PetscCall(Quiet(h));
    if (g->version.pattern != o->version.pattern) {
      const PetscInt *i;
      PetscInt       *row, *ptr, n = 0;

      /* The rows that have entries. Pays where most rows have none: elsewhere the block's own product is as fast, and is there already */
      PetscCall(GPUCSRHaloFree(h, &g->rows.row));
      PetscCall(GPUCSRHaloFree(h, &g->rows.ptr));
      PetscCall(MatSeqAIJGetCSRAndMemType(Ao, &i, NULL, NULL, NULL));
      PetscCall(PetscMalloc2(Ao->rmap->n, &row, Ao->rmap->n + 1, &ptr));
      for (PetscInt r = 0; r < Ao->rmap->n; r++)
        if (i[r] < i[r + 1]) {
          row[n]   = r;
          ptr[n++] = i[r];
        }
      ptr[n]        = i[Ao->rmap->n];
      g->rows.n     = (int)n;
      g->rows.group = ptr[n] <= 4 * n ? 2 : ptr[n] <= 32 * n ? 8 : 32;
      g->pays       = (PetscBool)(2 * n <= Ao->rmap->n);
      if (g->pays) PetscCall(GPUCSRHaloIndices(h, row, n, &g->rows.row));
      if (g->pays) PetscCall(GPUCSRHaloIndices(h, ptr, n + 1, &g->rows.ptr));
      PetscCall(PetscFree2(row, ptr));
    }
    if (g->pays && exact) {
      if (!GPUCSRIsCSR(csr->format)) PetscCall(MatGPUCSRMirror_Private(Ao, o->dev, PETSC_TRUE, &csr));
      PetscCall(o->dev->ops->streamsynchronize(o->dev->id, o->dev->stream)); /* products may be on another stream */
      g->rows.col = (int32_t *)csr->array[CSR_COL].data;
      g->rows.val = (double *)csr->array[CSR_VAL].data;
    }
    g->version = o->version;
  }
  *pays = (PetscBool)(g->pays && exact && g->pending);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Solves */

static PetscErrorCode Gather_Peer(GPUCSRHalo h, const double *mine, int n, double *all, GPUCSRStream s)
{
  Peer *g = (Peer *)h->data;

  PetscFunctionBegin;
  PetscCall(Follow(h, &s));
  PetscCall(GPUCSRPeerGather(&g->p, mine, n, all, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRPeerSlots Slots_Peer(GPUCSRHalo h)
{
  return GPUCSRPeerSlotsOf(&((const Peer *)h->data)->p);
}

static PetscErrorCode Solving_Peer(GPUCSRHalo h, PetscBool begins)
{
  h->peers->together = begins;
  return PETSC_SUCCESS;
}

static PetscErrorCode Fail_Peer(GPUCSRHalo h, const char message[])
{
  return GPUCSRPeersDead(h->peers, message);
}

/* A recorded exchange may not wait for another stream: the device's stream follows the last exchange before */
static PetscErrorCode Record_Peer(GPUCSRHalo h, PetscBool begins)
{
  GPUCSRStream s = NULL;

  PetscFunctionBegin;
  if (begins) PetscCall(Follow(h, &s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUCSRExchange GPUCSRExchange_peer = {
  .name         = "peer",
  .peers        = PETSC_TRUE,
  .local        = Local_Peer,
  .connect      = Connect_Peer,
  .destroy      = Destroy_Peer,
  .check        = Check_Peer,
  .forwardbegin = ForwardBegin_Peer,
  .forwardend   = ForwardEnd_Peer,
  .addready     = AddReady_Peer,
  .forwardadd   = ForwardAdd_Peer,
  .reversebegin = ReverseBegin_Peer,
  .reverseadd   = ReverseAdd_Peer,
  .gather       = Gather_Peer,
  .slots        = Slots_Peer,
  .record       = Record_Peer,
  .solving      = Solving_Peer,
  .fail         = Fail_Peer,
};

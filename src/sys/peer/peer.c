/*
  Ranks of one host as peers: their list, shared memory, and the words that report a failure. See peer.h.
*/
#include "peer.h"
#include <string.h>
#include <time.h>
#include <unistd.h>

double GPUCSRPeerSeconds(void)
{
  struct timespec t;

  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A number that identifies this process */
static uint64_t Token(void)
{
  static uint64_t token;
  struct timespec t;

  if (!token) {
    (void)clock_gettime(CLOCK_REALTIME, &t);
    token = ((uint64_t)t.tv_nsec << 34) ^ ((uint64_t)getpid() << 17) ^ (uint64_t)t.tv_sec ^ ((uint64_t)(uintptr_t)&t << 5);
    token |= 1;
  }
  return token;
}

/* --- Giving up */

/* Reports only the first rank to give up; message empty: a timeout. The thread of alive.c also calls this function, so it may call nothing of PETSc */
void GPUCSRPeersRaise(GPUCSRPeerControl *c, int says, const char message[])
{
  int    none = 0;
  size_t k    = 0;

  if (!__atomic_compare_exchange_n(&c->dead, &none, says, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return;
  for (; k < sizeof(c->message) - 1 && message[k]; k++) c->message[k] = message[k];
  c->message[k] = 0;
  __atomic_store_n(&c->said, 1, __ATOMIC_RELEASE);
}

PetscErrorCode GPUCSRPeersDead(GPUCSRPeers p, const char message[])
{
  PetscFunctionBegin;
  GPUCSRPeersRaise(p->control, 1 + (int)p->rank, message);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Died(GPUCSRAlive *w, int rank)
{
  GPUCSRPeersRaise((GPUCSRPeerControl *)w->ctx, 1 + rank, "its process has ended");
}

PetscErrorCode GPUCSRPeersSay(GPUCSRPeers p)
{
  const int    says = __atomic_load_n(&p->control->dead, __ATOMIC_ACQUIRE), late = says & GPUCSR_PEER_LATE, who = (says & ~GPUCSR_PEER_LATE) - 1;
  const double since = GPUCSRPeerSeconds();
  char         message[sizeof(p->control->message)];

  PetscFunctionBegin;
  /* a kernel raises the word without a message; the host adds the message at once */
  while (!__atomic_load_n(&p->control->said, __ATOMIC_ACQUIRE) && GPUCSRPeerSeconds() - since < 0.01) (void)sched_yield();
  message[0] = 0;
  if (__atomic_load_n(&p->control->said, __ATOMIC_ACQUIRE)) PetscCall(PetscStrncpy(message, p->control->message, sizeof(message)));
  PetscCheck(message[0], PETSC_COMM_SELF, PETSC_ERR_GPU, "Rank %d of this host waited more than %g seconds for another rank, which %s (%s sets the limit)", who, late ? p->patience : p->timeout, late ? "lives, and has not come" : "has failed, or computes for longer", late ? "-gpucsr_peer_patience" : "-gpucsr_peer_timeout");
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_GPU, "Rank %d of this host, a peer of this rank, has failed: %s", who, message);
}

/* --- Memory */

/* Announces a piece of a rank's memory to the other ranks */
typedef struct {
  GPUCSRHandle handle;
  uint64_t     token, bytes;
  void        *p;
} Offer;

/* A piece of memory of all ranks */
typedef struct _n_Piece Piece;
struct _n_Piece {
  GPUCSRPeers p;
  int64_t     number;
  Piece      *next;    /* in the list of pieces that this rank has freed */
  Offer       offer[]; /* by rank */
};
static Piece *waiting;

static PetscErrorCode Share(GPUCSRPeers p, size_t bytes, const char what[], Offer *mine)
{
  GPUCSRDevice d = p->dev;

  PetscFunctionBegin;
  if (d) PetscCheck(!d->limit || d->allocated + bytes <= d->limit, PETSC_COMM_SELF, PETSC_ERR_MEM, "%s needs %zu bytes, %zu are in use and -mat_gpucsr_memory_limit is %zu", what, bytes, d->allocated, d->limit);
  if (d) PetscCall(d->ops->activate(d->id));
  PetscCall((*p->ops->share)(p->id, bytes, &mine->p, &mine->handle));
  if (d) {
    d->allocated += bytes;
    d->peak = PetscMax(d->peak, d->allocated);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Unshare(GPUCSRPeers p, const Offer *mine)
{
  PetscFunctionBegin;
  if (!mine->p) PetscFunctionReturn(PETSC_SUCCESS);
  if (p->dev) p->dev->allocated -= mine->bytes;
  if (p->dev && p->dev->failed[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall((*p->ops->unshare)(p->id, mine->bytes, mine->p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Rank r's memory at this rank's address; within a process the same address */
static PetscErrorCode Attach(GPUCSRPeers p, const Offer offers[], void *theirs[])
{
  PetscFunctionBegin;
  for (PetscMPIInt r = 0; r < p->size; r++) {
    if (offers[r].token == Token()) theirs[r] = offers[r].p;
    else PetscCall((*p->ops->attach)(p->id, &offers[r].handle, offers[r].bytes, &theirs[r]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Detach(GPUCSRPeers p, const Offer offers[], void *theirs[])
{
  PetscFunctionBegin;
  for (PetscMPIInt r = 0; r < p->size; r++) {
    if (theirs[r] && offers[r].token != Token() && !(p->dev && p->dev->failed[0])) PetscCall((*p->ops->detach)(p->id, offers[r].bytes, theirs[r]));
    theirs[r] = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* theirs[p->size] keeps the offers of all ranks, for the later detachment */
PetscErrorCode GPUCSRPeersMalloc(GPUCSRPeers p, size_t bytes, const char what[], void *theirs[])
{
  Offer         mine;
  Piece        *o      = NULL;
  const int64_t number = p->pieces++; /* counted on all ranks, even after an error */
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  bytes = (PetscMax(bytes, 1) + 511) / 512 * 512; /* wide loads stay inside */
  PetscCall(PetscMemzero(&mine, sizeof(mine)));
  mine.token = Token();
  mine.bytes = bytes;
  for (PetscMPIInt r = 0; r <= p->size; r++) theirs[r] = NULL;
  PetscCall(GPUCSRPeersSweep(0));
  GPUCSRTry(&attempt, PetscMalloc(sizeof(*o) + sizeof(Offer) * (size_t)p->size, &o));
  GPUCSRThen(&attempt, Share(p, bytes, what, &mine));
  PetscCall(GPUCSRAttemptAgree(&attempt, p->comm, p->dev));
  if (!attempt.error) {
    PetscCallMPI(MPI_Allgather(&mine, (PetscMPIInt)sizeof(mine), MPI_BYTE, o->offer, (PetscMPIInt)sizeof(mine), MPI_BYTE, p->comm));
    GPUCSRTry(&attempt, Attach(p, o->offer, theirs));
    PetscCall(GPUCSRAttemptAgree(&attempt, p->comm, p->dev));
    if (attempt.error) {
      PetscCall(Detach(p, o->offer, theirs));
      PetscCallMPI(MPI_Barrier(p->comm));
    }
  }
  if (attempt.error) {
    PetscCall(Unshare(p, &mine));
    PetscCall(PetscFree(o));
    SETERRQ(PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
  }
  o->p            = p;
  o->number       = number;
  theirs[p->size] = o;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int64_t *Left(const Piece *o)
{
  return &o->p->control->left[o->number % GPUCSR_PEER_PIECES * o->p->size];
}

static PetscBool Unused(const Piece *o)
{
  for (PetscMPIInt r = 0; r < o->p->size; r++)
    if (__atomic_load_n(&Left(o)[r], __ATOMIC_ACQUIRE) <= o->number) return PETSC_FALSE;
  return PETSC_TRUE;
}

static PetscErrorCode Bury(GPUCSRPeers);

/* Frees pieces that no rank addresses any longer, and waits for the rest, patience seconds at most. At the end of the process the rest stays */
PetscErrorCode GPUCSRPeersSweep(double patience)
{
  const double since = GPUCSRPeerSeconds();

  PetscFunctionBegin;
  do {
    for (Piece **w = &waiting; *w;) {
      Piece *go = *w;

      if (Unused(go)) {
        *w = go->next;
        PetscCall(Unshare(go->p, &go->offer[go->p->rank]));
        if (!--go->p->waiting && go->p->gone) PetscCall(Bury(go->p));
        PetscCall(PetscFree(go));
      } else w = &go->next;
    }
    if (waiting && patience > 0) (void)sched_yield();
  } while (waiting && GPUCSRPeerSeconds() - since < patience);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before the devices go */
PetscErrorCode GPUCSRPeersFinalize(void)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRPeersSweep(1.0));
  while (waiting) { /* an absent rank may still write there */
    Piece *w = waiting;

    waiting = w->next;
    PetscCall(PetscInfo(NULL, "%zu bytes are not freed, because other ranks of this host may still address them\n", (size_t)w->offer[w->p->rank].bytes));
    if (!--w->p->waiting && w->p->gone) PetscCall(Bury(w->p));
    PetscCall(PetscFree(w));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Ranks may destroy in different orders and at different times */
PetscErrorCode GPUCSRPeersFree(GPUCSRPeers p, void *theirs[])
{
  Piece     *o = (Piece *)theirs[p->size];
  GPUCSRBool reached;

  PetscFunctionBegin;
  if (!o) PetscFunctionReturn(PETSC_SUCCESS);
  if (p->dev) PetscCall(GPUCSRDeviceReach(p->dev, PETSC_TRUE, &reached)); /* no launch of this rank may still write there */
  PetscCall(Detach(p, o->offer, theirs));
  o->next = waiting;
  waiting = o;
  p->waiting++;
  theirs[p->size] = NULL;
  __atomic_store_n(&Left(o)[p->rank], o->number + 1, __ATOMIC_RELEASE);
  PetscCall(GPUCSRPeersSweep(0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Set-up */

/* Properties of a rank, which all ranks compare */
typedef struct {
  char      backend[16]; /* empty: the host's memory */
  char      uuid[16];    /* of the device */
  int       id, kernels;
  double    timeout, patience;
  uint64_t  token;
  PetscBool failed;
} Card;

static size_t AliveAt(GPUCSRPeers p)
{
  return GPUCSRAlignUp(sizeof(GPUCSRPeerControl) + sizeof(int64_t) * GPUCSR_PEER_PIECES * (size_t)p->size);
}

static size_t ControlBytes(GPUCSRPeers p)
{
  return AliveAt(p) + sizeof(GPUCSRAliveWord) * (size_t)p->size;
}

/* The words on the host that all ranks see */
static PetscErrorCode ControlAttach(GPUCSRPeers p, const GPUCSRHandle *handle, uint64_t token)
{
  int e;

  PetscFunctionBegin;
  if (p->rank) PetscCall((*GPUCSRBackend_host.attach)(0, handle, ControlBytes(p), (void **)&p->control));
  PetscCheck(p->control->token == token, PETSC_COMM_SELF, PETSC_ERR_SYS, "another process maps different memory than rank 0's");
  if (p->dev && p->dev->ops->separate) {
    PetscCall(p->dev->ops->activate(p->dev->id));
    PetscCall(p->dev->ops->hostregister(p->dev->id, p->control, ControlBytes(p), &p->locked));
    PetscCheck(p->locked, PETSC_COMM_SELF, PETSC_ERR_SUP, "cannot page-lock shared memory");
  }
  /* from here on the other ranks notice the end of this process */
  p->alive.word = (GPUCSRAliveWord *)(void *)((char *)p->control + AliveAt(p));
  p->alive.rank = (int)p->rank;
  p->alive.size = (int)p->size;
  p->alive.died = Died;
  p->alive.ctx  = p->control;
  e             = GPUCSRAliveBegin(&p->alive);
  PetscCheck(!e, PETSC_COMM_SELF, PETSC_ERR_SYS, "cannot watch whether other ranks live: %s", strerror(e));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ControlCreate(GPUCSRPeers p, GPUCSRAttempt *attempt)
{
  GPUCSRHandle handle;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&handle, sizeof(handle)));
  GPUCSRTry(attempt, p->rank ? PETSC_SUCCESS : (*GPUCSRBackend_host.share)(0, ControlBytes(p), (void **)&p->control, &handle));
  if (!attempt->error && !p->rank) p->control->token = Token();
  PetscCall(GPUCSRAttemptAgree(attempt, p->comm, p->dev));
  if (attempt->error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCallMPI(MPI_Bcast(&handle, (PetscMPIInt)sizeof(handle), MPI_BYTE, 0, p->comm));
  GPUCSRTry(attempt, ControlAttach(p, &handle, p->token[0]));
  PetscCall(GPUCSRAttemptAgree(attempt, p->comm, p->dev));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Each rank writes its token into every other rank's memory, and checks all tokens in its own */
static PetscErrorCode ProbeWrite(GPUCSRPeers p, void *const theirs[], PetscBool read)
{
  GPUCSRStream stream = p->dev ? p->dev->stream : NULL;
  uint64_t     token  = Token();

  PetscFunctionBegin;
  for (PetscMPIInt r = 0; r < p->size; r++) {
    uint64_t *at = (uint64_t *)theirs[read ? p->rank : r] + (read ? r : p->rank), seen = token;

    PetscCall(p->ops->copy(p->id, read ? (void *)&seen : (void *)at, read ? (const void *)at : (const void *)&token, sizeof(token), read ? GPUCSR_TO_HOST : GPUCSR_TO_DEVICE, stream));
    PetscCall(p->ops->streamsynchronize(p->id, stream));
    PetscCheck(!read || seen == p->token[r], PETSC_COMM_SELF, PETSC_ERR_GPU, "writes of rank %d into its memory do not arrive", (int)r);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Checks the memory of all peers; attempt has the same error on all ranks */
static PetscErrorCode Probe(GPUCSRPeers p, GPUCSRAttempt *attempt)
{
  void **theirs = NULL;

  PetscFunctionBegin;
  GPUCSRTry(attempt, PetscCalloc1(p->size + 1, &theirs));
  PetscCall(GPUCSRAttemptAgree(attempt, p->comm, p->dev));
  if (attempt->error) PetscCall(PetscFree(theirs));
  if (attempt->error) PetscFunctionReturn(PETSC_SUCCESS);
  GPUCSRTry(attempt, GPUCSRPeersMalloc(p, sizeof(uint64_t) * (size_t)p->size, "a probe", theirs));
  for (int read = 0; read < 2 && !attempt->error; read++) {
    GPUCSRTry(attempt, ProbeWrite(p, theirs, (PetscBool)read));
    PetscCall(GPUCSRAttemptAgree(attempt, p->comm, p->dev));
  }
  PetscCall(GPUCSRPeersFree(p, theirs));
  PetscCall(PetscFree(theirs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Seconds by which ranks may be apart in common operations */
PetscErrorCode GPUCSRPeerTimeout(PetscReal *timeout)
{
  PetscFunctionBegin;
  *timeout = 30;
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-gpucsr_peer_timeout", timeout, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CardFill(GPUCSRDevice dev, Card *c)
{
  PetscReal timeout, patience = 3600;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(c, sizeof(*c)));
  PetscCall(GPUCSRPeerTimeout(&timeout));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-gpucsr_peer_patience", &patience, NULL));
  c->timeout  = (double)timeout;
  c->patience = (double)patience;
  c->token    = Token();
  if (dev) {
    PetscCall(PetscStrncpy(c->backend, dev->ops->name, sizeof(c->backend)));
    PetscCall(PetscMemcpy(c->uuid, dev->props.uuid, sizeof(c->uuid)));
    c->id      = dev->id;
    c->kernels = (int)dev->ops->kernels;
    c->failed  = (PetscBool)(dev->failed[0] != 0);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRPeersCreate(MPI_Comm comm, GPUCSRDevice dev, GPUCSRPeers *peers)
{
  GPUCSRPeers   p;
  GPUCSRAttempt attempt;
  PetscMPIInt   size;
  Card          mine, *cards;

  PetscFunctionBegin;
  PetscCall(PetscNew(&p));
  *peers = p;
  p->dev = dev;
  p->ops = dev ? dev->ops : &GPUCSRBackend_host;
  p->id  = dev ? dev->id : 0;
  size   = GPUCSRSizeOf(comm);
  PetscCallMPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &p->comm));
  p->rank = GPUCSRRankOf(p->comm);
  p->size = GPUCSRSizeOf(p->comm);
  PetscCall(CardFill(dev, &mine));
  p->looks    = (long)p->size <= sysconf(_SC_NPROCESSORS_ONLN) ? 1u << 19 : 64;
  p->timeout  = mine.timeout;
  p->patience = mine.patience;
  PetscCall(PetscMalloc1(p->size, &p->token));
  PetscCall(PetscMalloc1(p->size, &cards));
  PetscCallMPI(MPI_Allgather(&mine, (PetscMPIInt)sizeof(mine), MPI_BYTE, cards, (PetscMPIInt)sizeof(mine), MPI_BYTE, p->comm));
  if (p->size < size) PetscCall(PetscSNPrintf(p->why, sizeof(p->why), "the ranks are on several hosts"));
  /* ranks of different kinds are no peers. All ranks have the same cards and reach the same result */
  for (PetscMPIInt r = 0; r < p->size; r++) {
    PetscBool same;

    p->token[r] = cards[r].token;
    PetscCheck(cards[r].timeout == cards[0].timeout, p->comm, PETSC_ERR_ARG_INCOMP, "-gpucsr_peer_timeout is %g on rank %d of this host and %g on rank 0: options must be the same on all ranks", cards[r].timeout, (int)r, cards[0].timeout);
    PetscCheck(cards[r].timeout > 0, p->comm, PETSC_ERR_ARG_OUTOFRANGE, "-gpucsr_peer_timeout %g: must be a number of seconds above 0", cards[r].timeout);
    PetscCheck(cards[r].patience == cards[0].patience, p->comm, PETSC_ERR_ARG_INCOMP, "-gpucsr_peer_patience is %g on rank %d of this host and %g on rank 0: options must be the same on all ranks", cards[r].patience, (int)r, cards[0].patience);
    PetscCheck(cards[r].patience > 0, p->comm, PETSC_ERR_ARG_OUTOFRANGE, "-gpucsr_peer_patience %g: must be a number of seconds above 0", cards[r].patience);
    same = (PetscBool)(!strcmp(cards[r].backend, cards[0].backend));
    if (p->why[0]) continue;
    if (cards[r].failed) PetscCall(PetscSNPrintf(p->why, sizeof(p->why), "rank %d, %s device %d: it has failed", (int)r, cards[r].backend, cards[r].id));
    else if (!same || cards[r].kernels != cards[0].kernels)
      PetscCall(PetscSNPrintf(p->why, sizeof(p->why), "rank %d computes on %s and rank 0 on %s", (int)r, cards[r].backend[0] ? cards[r].backend : "the host", cards[0].backend[0] ? cards[0].backend : "the host"));
    for (PetscMPIInt q = 0; q < r; q++) {
      PetscCall(PetscMemcmp(cards[q].uuid, cards[r].uuid, sizeof(cards[r].uuid), &same));
      if (same && cards[r].kernels) p->shared = PETSC_TRUE;
    }
  }
  if (!p->why[0]) {
    PetscCall(ControlCreate(p, &attempt));
    if (!attempt.error) PetscCall(Probe(p, &attempt));
    if (attempt.error) PetscCall(PetscStrncpy(p->why, attempt.message, sizeof(p->why)));
  }
  p->all = (PetscBool)!p->why[0];
  PetscCall(PetscFree(cards));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Bury(GPUCSRPeers p)
{
  PetscFunctionBegin;
  if (p->control) {
    if (p->locked && !p->dev->failed[0]) PetscCall(p->dev->ops->hostunregister(p->dev->id, p->control));
    if (p->rank) PetscCall((*GPUCSRBackend_host.detach)(0, ControlBytes(p), p->control));
    else PetscCall((*GPUCSRBackend_host.unshare)(0, ControlBytes(p), p->control)); /* memory that other ranks have mapped stays */
  }
  PetscCall(PetscFree(p->token));
  PetscCall(PetscFree(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRPeersDestroy(GPUCSRPeers *peers)
{
  GPUCSRPeers p = *peers;

  PetscFunctionBegin;
  if (!p) PetscFunctionReturn(PETSC_SUCCESS);
  *peers = NULL;
  PetscCallMPI(MPI_Comm_free(&p->comm));
  GPUCSRAliveEnd(&p->alive);
  p->gone = PETSC_TRUE;
  if (!p->waiting) PetscCall(Bury(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

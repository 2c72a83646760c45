/*
  Exchange nccl: NCCL sends entries that the device packs, on a stream beside the product of the diagonal block, without waits of the host. The library
  libnccl.so.2 is opened at run time; this file declares its functions.

  A rank that has met an error sends NaN. A rank whose device has failed, or which is late, sends nothing, and NCCL itself would wait for ever. So a
  thread watches the exchanges, and ends the communicator if one takes more than -gpucsr_peer_patience seconds, or if NCCL has met an error. The
  entries that have not arrived are NaN then, and the next product is an error.
*/
#include "halo.h"
#include <dlfcn.h>

/* Of nccl.h, version 2 */
typedef struct _n_NCCL *NCCL;
typedef struct {
  char bytes[128];
} NCCLId;
enum {
  NCCL_SUCCESS    = 0,
  NCCL_INPROGRESS = 7,
  NCCL_FLOAT64    = 8
};
static struct {
  int (*getuniqueid)(NCCLId *);
  int (*comminitrank)(NCCL *, int size, NCCLId, int rank);
  int (*commdestroy)(NCCL);
  int (*commabort)(NCCL);
  int (*commgetasyncerror)(NCCL, int *);
  int (*groupstart)(void);
  int (*groupend)(void);
  int (*send)(const void *, size_t, int type, int peer, NCCL, void *stream);
  int (*recv)(void *, size_t, int type, int peer, NCCL, void *stream);
  int (*allgather)(const void *, void *, size_t, int type, NCCL, void *stream);
  const char *(*geterrorstring)(int);
} nccl;

/* One communicator for all matrices of the same ranks on the same devices */
typedef struct _n_Group Group;
struct _n_Group {
  MPI_Comm     comm;
  GPUCSRDevice dev;
  NCCL         nccl;
  int          references;
  Group       *next;
  double       patience, timeout; /* seconds: between products, and in a solve */
  int          gone;              /* the communicator has ended */
};
static Group *groups;

typedef struct {
  GPUCSRWatched watched;
  Group        *group;
  double       *send, *recv;   /* on the device, */
  double       *nan;           /* sent and received while nothing has come */
  PetscScalar  *hsend, *hrecv; /* page-locked */
  int32_t      *index;         /* of the entries sent, and of the sums that come back */
  GPUCSRStream  stream;        /* of messages */
  GPUCSREvent   packed, came;
  PetscBool     recorded; /* work is being recorded */
  int           solving;  /* in a solve */
  unsigned      posted;   /* exchanges begun, and exchanges done, modulo NUMBERS; the second in page-locked memory, */
  uint64_t     *done;     /* to which the stream copies */
  uint64_t     *number;   /* 0 to NUMBERS - 1, on the device */
  uint64_t      seen;     /* done, at the thread's last look */
  double        since;    /* when the current exchange began, in seconds; 0: none is under way */
} Nccl;
#define NUMBERS 256

#define CheckNCCL(what, call) \
  do { \
    const int e_ = (call); \
    if (e_ != NCCL_SUCCESS) PetscCall(Here(h)); \
    PetscCheck(e_ == NCCL_SUCCESS, PETSC_COMM_SELF, PETSC_ERR_LIB, "NCCL: %s failed with %s", what, (*nccl.geterrorstring)(e_)); \
  } while (0)

/* ---- The watching thread (sys/peer/alive.h) calls nothing of PETSc ---- */

/* Once: this thread and the program may both find a reason */
static void GiveUp(Group *o)
{
  if (!__atomic_exchange_n(&o->gone, 1, __ATOMIC_ACQ_REL)) (void)(*nccl.commabort)(o->nccl);
}

/* Seconds that a rank may take to arrive */
static double Limit(const Nccl *g)
{
  return __atomic_load_n(&g->solving, __ATOMIC_ACQUIRE) ? g->group->timeout : g->group->patience;
}

static void Look(GPUCSRWatched *watched)
{
  Nccl          *g     = (Nccl *)watched;
  Group         *o     = g->group;
  const uint64_t done  = __atomic_load_n(g->done, __ATOMIC_ACQUIRE);
  const double   now   = GPUCSRPeerSeconds();
  int            error = NCCL_SUCCESS;

  if (done == __atomic_load_n(&g->posted, __ATOMIC_ACQUIRE)) g->since = 0;
  else if (!g->since || done != g->seen) g->since = now;
  g->seen = done;
  if (!g->since || o->gone) return;
  if ((*nccl.commgetasyncerror)(o->nccl, &error)) error = NCCL_SUCCESS;
  if ((error == NCCL_SUCCESS || error == NCCL_INPROGRESS) && now - g->since <= Limit(g)) return;
  GiveUp(o);
}

/* Errors once the communicator has ended */
static PetscErrorCode Here(GPUCSRHalo h)
{
  const Nccl  *g = (const Nccl *)h->data;
  const Group *o = g->group;

  PetscFunctionBegin;
  if (!o) PetscFunctionReturn(PETSC_SUCCESS); /* no rank takes part in an exchange */
  PetscCheck(!__atomic_load_n(&o->gone, __ATOMIC_ACQUIRE), PETSC_COMM_SELF, PETSC_ERR_GPU, "NCCL: a rank has not arrived at an exchange for %g seconds, or its device or the network has failed: -gpucsr_peer_%s says how long it may take", Limit(g), g->solving ? "timeout" : "patience");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Open(void)
{
  static const struct {
    const char *name;
    void      **to;
  } functions[] = {
    {"ncclGetUniqueId",       (void **)&nccl.getuniqueid      },
    {"ncclCommInitRank",      (void **)&nccl.comminitrank     },
    {"ncclCommDestroy",       (void **)&nccl.commdestroy      },
    {"ncclCommAbort",         (void **)&nccl.commabort        },
    {"ncclCommGetAsyncError", (void **)&nccl.commgetasyncerror},
    {"ncclGroupStart",        (void **)&nccl.groupstart       },
    {"ncclGroupEnd",          (void **)&nccl.groupend         },
    {"ncclSend",              (void **)&nccl.send             },
    {"ncclRecv",              (void **)&nccl.recv             },
    {"ncclAllGather",         (void **)&nccl.allgather        },
    {"ncclGetErrorString",    (void **)&nccl.geterrorstring   }
  };
  static void *library;

  PetscFunctionBegin;
  if (!library) library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  PetscCheck(library, PETSC_COMM_SELF, PETSC_ERR_SUP, "NCCL cannot be loaded: %s", dlerror());
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(functions); k++) {
    *functions[k].to = dlsym(library, functions[k].name);
    PetscCheck(*functions[k].to, PETSC_COMM_SELF, PETSC_ERR_SUP, "NCCL has no %s: version 2.7 or later is needed", functions[k].name);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective on the ranks that can use NCCL */
static PetscErrorCode Join(GPUCSRHalo h)
{
  Nccl       *g = (Nccl *)h->data;
  PetscMPIInt rank, size;
  NCCLId      id = {{0}};
  Group      *o;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_rank(h->comm, &rank));
  PetscCallMPI(MPI_Comm_size(h->comm, &size));
  for (o = groups; o; o = o->next)
    if (o->comm == h->comm && o->dev == h->dev && !o->gone) break;
  if (!o) {
    if (!rank) (void)(*nccl.getuniqueid)(&id);
    PetscCallMPI(MPI_Bcast(&id, (PetscMPIInt)sizeof(id), MPI_BYTE, 0, h->comm));
    PetscCall(PetscNew(&o));
    o->comm     = h->comm;
    o->dev      = h->dev;
    o->patience = 3600;
    o->timeout  = 30;
    PetscCall(PetscOptionsGetReal(NULL, NULL, "-gpucsr_peer_patience", &o->patience, NULL));
    PetscCall(PetscOptionsGetReal(NULL, NULL, "-gpucsr_peer_timeout", &o->timeout, NULL));
    o->next = groups;
    groups  = o;
    PetscCall(h->dev->ops->activate(h->dev->id));
  }
  g->group = o;
  if (!o->references++) CheckNCCL("ncclCommInitRank()", (*nccl.comminitrank)(&o->nccl, (int)size, id, (int)rank));
  g->watched.look = Look;
  PetscCheck(!GPUCSRWatchBegin(&g->watched), PETSC_COMM_SELF, PETSC_ERR_SYS, "no thread could be started to watch NCCL's exchanges");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static size_t Bytes(PetscInt n)
{
  return sizeof(double) * (size_t)(n + 1);
}

static PetscErrorCode Destroy_Nccl(GPUCSRHalo h)
{
  Nccl           *g     = (Nccl *)h->data;
  GPUCSRDevice    dev   = h->dev;
  const PetscBool works = (PetscBool)!dev->failed[0];
  Group          *o     = g->group;

  PetscFunctionBegin;
  if (works && g->stream) PetscCall(dev->ops->streamsynchronize(dev->id, g->stream)); /* the thread still watches */
  GPUCSRWatchEnd(&g->watched);
  g->group = NULL;
  if (o && !--o->references) {
    Group **p = &groups;

    while (*p && *p != o) p = &(*p)->next;
    if (*p) *p = o->next;
    if (o->nccl && !o->gone && works) (void)(*nccl.commdestroy)(o->nccl);
    PetscCall(PetscFree(o));
  }
  if (works && g->done) PetscCall(dev->ops->hostfree(dev->id, g->done));
  if (works && g->packed) PetscCall(dev->ops->eventdestroy(dev->id, g->packed));
  if (works && g->came) PetscCall(dev->ops->eventdestroy(dev->id, g->came));
  if (works && g->stream) PetscCall(dev->ops->streamdestroy(dev->id, g->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Can this rank exchange by NCCL? Then its memory, streams and events */
static PetscErrorCode Local_Nccl(GPUCSRHalo h)
{
  GPUCSRDevice dev = h->dev;
  Nccl        *g;

  PetscFunctionBegin;
  PetscCheck(GPUCSR_SCALAR_IS_DOUBLE, PETSC_COMM_SELF, PETSC_ERR_SUP, "this PETSc does not compute with real double numbers");
  PetscCheck(dev, PETSC_COMM_SELF, PETSC_ERR_SUP, "its products are on the host, where NCCL does not reach");
  PetscCheck(!dev->failed[0], PETSC_COMM_SELF, PETSC_ERR_SUP, "it has failed: %s", dev->failed);
  PetscCall(Open());
  PetscCall(PetscNew(&g));
  h->data = g;
  PetscCall(dev->ops->activate(dev->id));
  PetscCall(GPUCSRHaloHostBuffer(h, h->nsend, &g->hsend));
  PetscCall(GPUCSRHaloHostBuffer(h, h->nrecv, &g->hrecv));
  PetscCall(GPUCSRHaloMalloc(h, Bytes(h->nsend), &g->send));
  PetscCall(GPUCSRHaloMalloc(h, Bytes(h->nrecv), &g->recv));
  PetscCall(GPUCSRHaloMalloc(h, Bytes(PetscMax(h->nsend, h->nrecv)), &g->nan));
  PetscCall(GPUCSRHaloIndices(h, h->index, h->nsend, &g->index));
  for (int way = 0; way < 2; way++) { /* either page-locked buffer is long enough for one direction */
    const PetscInt     n    = way ? h->nrecv : h->nsend;
    PetscScalar *const from = way ? g->hrecv : g->hsend;

    for (PetscInt k = 0; k <= n; k++) from[k] = (PetscScalar)NAN;
    PetscCall(dev->ops->copy(dev->id, g->nan, from, Bytes(n), GPUCSR_TO_DEVICE, dev->stream));
  }
  PetscCall(GPUCSRHaloMalloc(h, sizeof(uint64_t) * NUMBERS, &g->number));
  PetscCall(dev->ops->hostmalloc(dev->id, sizeof(uint64_t) * NUMBERS, (void **)&g->done));
  for (unsigned k = 0; k < NUMBERS; k++) g->done[k] = k;
  PetscCall(dev->ops->copy(dev->id, g->number, g->done, sizeof(uint64_t) * NUMBERS, GPUCSR_TO_DEVICE, dev->stream));
  PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream)); /* products may be on another stream */
  PetscCall(dev->ops->streamcreate(dev->id, &g->stream));
  PetscCall(dev->ops->eventcreate(dev->id, PETSC_FALSE, &g->packed));
  PetscCall(dev->ops->eventcreate(dev->id, PETSC_FALSE, &g->came));
  h->host = g->hrecv;
  h->halo = (GPUCSROperand){.p = g->recv, .place = GPUCSR_DEVICE, .vecgpu = PETSC_TRUE};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* All ranks make the communicator, or none */
static PetscErrorCode Connect_Nccl(GPUCSRHalo h)
{
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  GPUCSRTry(&attempt, Join(h));
  PetscCall(GPUCSRAttemptAgree(&attempt, h->comm, h->dev));
  PetscCheck(!attempt.error, h->comm, attempt.error, "%s", attempt.message);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The watching thread counts the exchanges under way and done. A recorded exchange counts when it is played */
static void Posted(Nccl *g)
{
  if (!g->recorded) __atomic_store_n(&g->posted, (g->posted + 1) % NUMBERS, __ATOMIC_RELEASE);
}

/* One stream copies all numbers, in order */
static PetscErrorCode Done(GPUCSRHalo h)
{
  const Nccl *g = (const Nccl *)h->data;

  PetscFunctionBegin;
  if (!g->recorded) PetscCall(h->dev->ops->copy(h->dev->id, g->done, g->number + g->posted, sizeof(*g->done), GPUCSR_TO_HOST, g->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same behind the work of s, which does not wait for it */
static PetscErrorCode DoneBehind(GPUCSRHalo h, GPUCSRStream s)
{
  const Nccl *g = (const Nccl *)h->data;

  PetscFunctionBegin;
  if (g->recorded) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(h->dev->ops->eventrecord(h->dev->id, g->packed, s));
  PetscCall(h->dev->ops->streamwait(h->dev->id, g->stream, g->packed));
  PetscCall(Done(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sends and receives, behind the work of s, the numbers between the offsets of two buffers */
static PetscErrorCode Post(GPUCSRHalo h, const GPUCSRNeighbours *to, const double *out, const GPUCSRNeighbours *from, double *in, GPUCSRStream s)
{
  Nccl        *g   = (Nccl *)h->data;
  GPUCSRDevice dev = h->dev;

  PetscFunctionBegin;
  PetscCall(Here(h));
  PetscCall(dev->ops->eventrecord(dev->id, g->packed, s));
  PetscCall(dev->ops->streamwait(dev->id, g->stream, g->packed));
  if (from->n) PetscCall(dev->ops->copy(dev->id, in, g->nan, sizeof(double) * (size_t)from->offset[from->n], GPUCSR_ON_DEVICE, g->stream));
  Posted(g);
  CheckNCCL("ncclGroupStart()", (*nccl.groupstart)());
  for (PetscMPIInt k = 0; k < to->n; k++) CheckNCCL("ncclSend()", (*nccl.send)(out + to->offset[k], (size_t)(to->offset[k + 1] - to->offset[k]), NCCL_FLOAT64, (int)to->rank[k], g->group->nccl, (void *)g->stream));
  for (PetscMPIInt k = 0; k < from->n; k++) CheckNCCL("ncclRecv()", (*nccl.recv)(in + from->offset[k], (size_t)(from->offset[k + 1] - from->offset[k]), NCCL_FLOAT64, (int)from->rank[k], g->group->nccl, (void *)g->stream));
  CheckNCCL("ncclGroupEnd()", (*nccl.groupend)());
  PetscCall(dev->ops->eventrecord(dev->id, g->came, g->stream));
  PetscCall(Done(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* n numbers into a buffer that is sent: of page-locked memory, or NaN */
static PetscErrorCode FillNccl(GPUCSRHalo h, PetscInt n, const PetscScalar *from, double *to, GPUCSRStream s)
{
  PetscFunctionBegin;
  if (n) PetscCall(h->dev->ops->copy(h->dev->id, to, from ? (const void *)from : ((Nccl *)h->data)->nan, sizeof(double) * (size_t)n, from ? GPUCSR_TO_DEVICE : GPUCSR_ON_DEVICE, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ForwardBegin_Nccl(GPUCSRHalo h, const GPUCSROperand *x, GPUCSRStream s)
{
  Nccl *g = (Nccl *)h->data;

  PetscFunctionBegin;
  PetscCheck(!h->dev->failed[0], PETSC_COMM_SELF, PETSC_ERR_GPU, "NCCL needs the device, which has failed: %s", h->dev->failed);
  PetscCall(h->dev->ops->activate(h->dev->id));
  if (!s) s = h->dev->stream;
  if (x && x->place == GPUCSR_DEVICE) {
    if (h->nsend) PetscCall((*GPUCSRHelpers(h->dev)->gather)(h->dev, (int)h->nsend, GPUCSR_DOUBLE, g->index, x->p, g->send, s));
  } else {
    if (x) {
      PetscCall(h->dev->ops->streamsynchronize(h->dev->id, s)); /* an earlier copy may still read the page-locked buffer */
      GPUCSRHaloPack(h, (const PetscScalar *)x->p, g->hsend);
    }
    PetscCall(FillNccl(h, h->nsend, x ? g->hsend : NULL, g->send, s));
  }
  PetscCall(Post(h, &h->to, g->send, &h->from, g->recv, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ToHost(GPUCSRHalo h, PetscScalar *to, const double *from, PetscInt n, GPUCSRStream s)
{
  PetscFunctionBegin;
  if (n) PetscCall(h->dev->ops->copy(h->dev->id, to, from, sizeof(double) * (size_t)n, GPUCSR_TO_HOST, s));
  PetscCall(h->dev->ops->streamsynchronize(h->dev->id, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ForwardEnd_Nccl(GPUCSRHalo h, PetscBool host, GPUCSRStream s)
{
  Nccl *g = (Nccl *)h->data;

  PetscFunctionBegin;
  if (!s) s = h->dev->stream;
  if (!h->dev->failed[0]) PetscCall(h->dev->ops->streamwait(h->dev->id, s, g->came)); /* later work of s waits for the received entries */
  if (host) PetscCall(ToHost(h, g->hrecv, g->recv, h->nrecv, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReverseBegin_Nccl(GPUCSRHalo h, PetscBool valid, PetscBool host, GPUCSRStream s)
{
  Nccl *g = (Nccl *)h->data;

  PetscFunctionBegin;
  PetscCheck(!h->dev->failed[0], PETSC_COMM_SELF, PETSC_ERR_GPU, "NCCL needs the device, which has failed: %s", h->dev->failed);
  PetscCall(h->dev->ops->activate(h->dev->id));
  if (!s) s = h->dev->stream;
  if (!valid || host) PetscCall(FillNccl(h, h->nrecv, valid ? g->hrecv : NULL, g->recv, s));
  PetscCall(Post(h, &h->from, g->recv, &h->to, g->send, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In the order of ranks: on the device one launch for each rank */
static PetscErrorCode ReverseAdd_Nccl(GPUCSRHalo h, const GPUCSROperand *z, GPUCSRStream s)
{
  Nccl *g = (Nccl *)h->data;

  PetscFunctionBegin;
  if (!s) s = h->dev->stream;
  if (!h->dev->failed[0]) PetscCall(h->dev->ops->streamwait(h->dev->id, s, g->came));
  if (!z || !h->nsend) PetscFunctionReturn(PETSC_SUCCESS);
  if (z->place == GPUCSR_DEVICE) {
    for (PetscMPIInt k = 0; k < h->to.n; k++) PetscCall((*GPUCSRHelpers(h->dev)->scatteradd)(h->dev, (int)(h->to.offset[k + 1] - h->to.offset[k]), g->index + h->to.offset[k], g->send + h->to.offset[k], z->p, s));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(ToHost(h, g->hsend, g->send, h->nsend, s));
  GPUCSRHaloAdd(h, g->hsend, (PetscScalar *)z->p);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- solves ---- */

static PetscErrorCode Gather_Nccl(GPUCSRHalo h, const double *mine, int n, double *all, GPUCSRStream s)
{
  Nccl *g = (Nccl *)h->data;

  PetscFunctionBegin;
  PetscCall(Here(h));
  if (!s) s = h->dev->stream;
  Posted(g);
  CheckNCCL("ncclAllGather()", (*nccl.allgather)(mine, all, (size_t)n, NCCL_FLOAT64, g->group->nccl, (void *)s));
  PetscCall(DoneBehind(h, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Record_Nccl(GPUCSRHalo h, PetscBool begins)
{
  ((Nccl *)h->data)->recorded = begins;
  return PETSC_SUCCESS;
}

static PetscErrorCode Played_Nccl(GPUCSRHalo h, GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(Here(h));
  Posted((Nccl *)h->data);
  PetscCall(DoneBehind(h, s ? s : h->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solving_Nccl(GPUCSRHalo h, PetscBool begins)
{
  __atomic_store_n(&((Nccl *)h->data)->solving, (int)begins, __ATOMIC_RELEASE);
  return PETSC_SUCCESS;
}

/* NCCL cannot pass the message on: the other ranks notice that this rank is late */
static PetscErrorCode Fail_Nccl(GPUCSRHalo h, const char message[])
{
  PetscFunctionBegin;
  GiveUp(((Nccl *)h->data)->group);
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUCSRExchange GPUCSRExchange_nccl = {
  .name         = "nccl",
  .local        = Local_Nccl,
  .connect      = Connect_Nccl,
  .destroy      = Destroy_Nccl,
  .check        = Here,
  .forwardbegin = ForwardBegin_Nccl,
  .forwardend   = ForwardEnd_Nccl,
  .reversebegin = ReverseBegin_Nccl,
  .reverseadd   = ReverseAdd_Nccl,
  .gather       = Gather_Nccl,
  .record       = Record_Nccl,
  .played       = Played_Nccl,
  .solving      = Solving_Nccl,
  .fail         = Fail_Nccl,
};

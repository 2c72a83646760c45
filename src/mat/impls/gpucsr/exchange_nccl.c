/*
  The exchange by NCCL, where it is found at run time: libnccl.so.2, of which this file declares what it calls. Entries are packed on the device, and travel on a stream of their own beside
  the product of the diagonal block; the host waits for nothing.

  A rank whose device has failed cannot take part, and the others wait for it as they would in MPI; a rank that has met another error sends NaN.
*/
#include "halo.h"
#include <dlfcn.h>

/* Of nccl.h, version 2 */
typedef struct _n_NCCL *NCCL;
typedef struct {
  char bytes[128];
} NCCLId;
enum {
  NCCL_SUCCESS = 0,
  NCCL_FLOAT64 = 8
};
static struct {
  void *library;
  int (*getuniqueid)(NCCLId *);
  int (*comminitrank)(NCCL *, int size, NCCLId, int rank);
  int (*commdestroy)(NCCL);
  int (*groupstart)(void);
  int (*groupend)(void);
  int (*send)(const void *, size_t, int type, int peer, NCCL, void *stream);
  int (*recv)(void *, size_t, int type, int peer, NCCL, void *stream);
  const char *(*geterrorstring)(int);
} nccl;

/* A communicator of NCCL's: one for all matrices of the same ranks on the same devices */
typedef struct _n_Group Group;
struct _n_Group {
  MPI_Comm     comm;
  GPUCSRDevice dev;
  NCCL         nccl;
  int          references;
  Group       *next;
};
static Group *groups;

typedef struct {
  Group       *group;
  double      *send, *recv;   /* on the device */
  PetscScalar *hsend, *hrecv; /* page-locked */
  int32_t     *index;         /* of the entries sent, and of the sums that come back */
  GPUCSRStream stream;        /* of what travels */
  GPUCSREvent  packed, came;
} Nccl;

#define CheckNCCL(what, call) \
  do { \
    const int e_ = (call); \
    PetscCheck(e_ == NCCL_SUCCESS, PETSC_COMM_SELF, PETSC_ERR_LIB, "NCCL: %s failed with %s", what, (*nccl.geterrorstring)(e_)); \
  } while (0)

static PetscErrorCode Open(char why[], size_t len)
{
  static const char *const names[] = {"ncclGetUniqueId", "ncclCommInitRank", "ncclCommDestroy", "ncclGroupStart", "ncclGroupEnd", "ncclSend", "ncclRecv", "ncclGetErrorString"};
  void **const             to[]    = {(void **)&nccl.getuniqueid, (void **)&nccl.comminitrank, (void **)&nccl.commdestroy, (void **)&nccl.groupstart, (void **)&nccl.groupend, (void **)&nccl.send, (void **)&nccl.recv, (void **)&nccl.geterrorstring};

  PetscFunctionBegin;
  if (nccl.library) PetscFunctionReturn(PETSC_SUCCESS);
  nccl.library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!nccl.library) {
    const char *said = dlerror();

    PetscCall(PetscSNPrintf(why, len, "NCCL cannot be loaded: %s", said ? said : "libnccl.so.2"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int k = 0; k < 8 && !why[0]; k++) {
    *to[k] = dlsym(nccl.library, names[k]);
    if (!*to[k]) PetscCall(PetscSNPrintf(why, len, "NCCL has no %s: 2.7 is the first version with all that is needed", names[k]));
  }
  if (why[0]) {
    (void)dlclose(nccl.library);
    nccl.library = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Able_Nccl(GPUCSRHalo h, char why[], size_t len)
{
  PetscFunctionBegin;
  if (!GPUCSR_SCALAR_IS_DOUBLE) PetscCall(PetscStrncpy(why, "this PETSc does not compute with real double numbers", len));
  else if (!h->dev) PetscCall(PetscStrncpy(why, "its products are on the host, where NCCL does not reach", len));
  else if (h->dev->failed[0]) PetscCall(PetscSNPrintf(why, len, "it has failed: %s", h->dev->failed));
  else PetscCall(Open(why, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective, on ranks that are able */
static PetscErrorCode GroupGet(GPUCSRHalo h, Group **group)
{
  PetscMPIInt rank, size;
  NCCLId      id;
  Group      *o;

  PetscFunctionBegin;
  for (o = groups; o; o = o->next)
    if (o->comm == h->comm && o->dev == h->dev) break;
  if (!o) {
    PetscCallMPI(MPI_Comm_rank(h->comm, &rank));
    PetscCallMPI(MPI_Comm_size(h->comm, &size));
    PetscCall(PetscMemzero(&id, sizeof(id)));
    if (!rank) (void)(*nccl.getuniqueid)(&id);
    PetscCallMPI(MPI_Bcast(&id, (PetscMPIInt)sizeof(id), MPI_BYTE, 0, h->comm));
    PetscCall(PetscNew(&o));
    o->comm = h->comm;
    o->dev  = h->dev;
    o->next = groups;
    groups  = o;
    PetscCall(h->dev->ops->activate(h->dev->id));
    *group = o;
    o->references++;
    CheckNCCL("ncclCommInitRank()", (*nccl.comminitrank)(&o->nccl, (int)size, id, (int)rank));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  *group = o;
  o->references++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode GroupRelease(Group **group)
{
  Group *o = *group;

  PetscFunctionBegin;
  *group = NULL;
  if (!o || --o->references) PetscFunctionReturn(PETSC_SUCCESS);
  for (Group **p = &groups; *p; p = &(*p)->next)
    if (*p == o) {
      *p = o->next;
      break;
    }
  if (o->nccl && !o->dev->failed[0]) (void)(*nccl.commdestroy)(o->nccl);
  PetscCall(PetscFree(o));
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

  PetscFunctionBegin;
  if (works && g->stream) PetscCall(dev->ops->streamsynchronize(dev->id, g->stream));
  PetscCall(GroupRelease(&g->group));
  PetscCall(GPUCSRFree(dev, sizeof(int32_t) * (size_t)h->nsend, (void **)&g->index));
  PetscCall(GPUCSRFree(dev, Bytes(h->nsend), (void **)&g->send));
  PetscCall(GPUCSRFree(dev, Bytes(h->nrecv), (void **)&g->recv));
  if (works && g->hsend) PetscCall(dev->ops->hostfree(dev->id, g->hsend));
  if (works && g->hrecv) PetscCall(dev->ops->hostfree(dev->id, g->hrecv));
  if (works && g->packed) PetscCall(dev->ops->eventdestroy(dev->id, g->packed));
  if (works && g->came) PetscCall(dev->ops->eventdestroy(dev->id, g->came));
  if (works && g->stream) PetscCall(dev->ops->streamdestroy(dev->id, g->stream));
  PetscCall(PetscFree(h->data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is this rank's own */
static PetscErrorCode Local(GPUCSRHalo h, Nccl *g)
{
  GPUCSRDevice dev = h->dev;

  PetscFunctionBegin;
  PetscCall(dev->ops->activate(dev->id));
  PetscCall(dev->ops->hostmalloc(dev->id, Bytes(h->nsend), (void **)&g->hsend));
  PetscCall(dev->ops->hostmalloc(dev->id, Bytes(h->nrecv), (void **)&g->hrecv));
  PetscCall(GPUCSRMalloc(dev, Bytes(h->nsend), "the halo", (void **)&g->send));
  PetscCall(GPUCSRMalloc(dev, Bytes(h->nrecv), "the halo", (void **)&g->recv));
  PetscCall(GPUCSRMalloc(dev, sizeof(int32_t) * (size_t)h->nsend, "the halo", (void **)&g->index));
  PetscCall(GPUCSRUpload(dev, g->index, GPUCSR_INT32, h->index, GPUCSR_PETSCINT, (size_t)h->nsend, PETSC_FALSE, dev->stream, NULL));
  PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream)); /* products may be on another stream */
  PetscCall(dev->ops->streamcreate(dev->id, &g->stream));
  PetscCall(dev->ops->eventcreate(dev->id, PETSC_FALSE, &g->packed));
  PetscCall(dev->ops->eventcreate(dev->id, PETSC_FALSE, &g->came));
  h->host = g->hrecv;
  h->halo = (GPUCSROperand){.p = g->recv, .place = GPUCSR_DEVICE, .ours = PETSC_TRUE};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: NCCL's communicator is made by all or none */
static PetscErrorCode SetUp_Nccl(GPUCSRHalo h)
{
  Nccl          *g;
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscNew(&g));
  h->data = g;
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = Local(h, g);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  PetscCall(GPUCSRHaloAgree(h, ierr, attempt.message));
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = GroupGet(h, &g->group);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  PetscCall(GPUCSRHaloAgree(h, ierr, attempt.message));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Behind what s was given, on the stream of what travels: numbers between the offsets of two buffers */
static PetscErrorCode Post(GPUCSRHalo h, const GPUCSRNeighbours *to, const double *out, const GPUCSRNeighbours *from, double *in, GPUCSRStream s)
{
  Nccl        *g   = (Nccl *)h->data;
  GPUCSRDevice dev = h->dev;

  PetscFunctionBegin;
  PetscCall(dev->ops->eventrecord(dev->id, g->packed, s));
  PetscCall(dev->ops->streamwait(dev->id, g->stream, g->packed));
  CheckNCCL("ncclGroupStart()", (*nccl.groupstart)());
  for (PetscMPIInt k = 0; k < to->n; k++) CheckNCCL("ncclSend()", (*nccl.send)(out + to->offset[k], (size_t)(to->offset[k + 1] - to->offset[k]), NCCL_FLOAT64, (int)to->rank[k], g->group->nccl, (void *)g->stream));
  for (PetscMPIInt k = 0; k < from->n; k++) CheckNCCL("ncclRecv()", (*nccl.recv)(in + from->offset[k], (size_t)(from->offset[k + 1] - from->offset[k]), NCCL_FLOAT64, (int)from->rank[k], g->group->nccl, (void *)g->stream));
  CheckNCCL("ncclGroupEnd()", (*nccl.groupend)());
  PetscCall(dev->ops->eventrecord(dev->id, g->came, g->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRStream Stream(GPUCSRHalo h, GPUCSRStream s)
{
  return s ? s : h->dev->stream;
}

/* n numbers of the host, or NaN, into a buffer of the device; the page-locked ones may still be on their way from the last time */
static PetscErrorCode Fill(GPUCSRHalo h, PetscInt n, PetscScalar locked[], const PetscScalar x[], const PetscInt index[], double *to, GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(h->dev->ops->streamsynchronize(h->dev->id, s));
  if (locked != x)
    for (PetscInt k = 0; k < n; k++) locked[k] = x ? x[index[k]] : (PetscScalar)NAN;
  if (n) PetscCall(h->dev->ops->copy(h->dev->id, to, locked, sizeof(double) * (size_t)n, GPUCSR_TO_DEVICE, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ForwardBegin_Nccl(GPUCSRHalo h, const GPUCSROperand *x, GPUCSRStream s)
{
  Nccl *g = (Nccl *)h->data;

  PetscFunctionBegin;
  PetscCheck(!h->dev->failed[0], PETSC_COMM_SELF, PETSC_ERR_GPU, "NCCL needs the device, which has failed: %s", h->dev->failed);
  PetscCall(h->dev->ops->activate(h->dev->id));
  s = Stream(h, s);
  if (x && x->place == GPUCSR_DEVICE) {
    if (h->nsend) PetscCall((*GPUCSRHelpers(h->dev)->gather)(GPUCSR_DOUBLE, (size_t)h->nsend, g->index, x->p, g->send, s));
  } else PetscCall(Fill(h, h->nsend, g->hsend, x ? (const PetscScalar *)x->p : NULL, h->index, g->send, s));
  PetscCall(Post(h, &h->to, g->send, &h->from, g->recv, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What s is given next comes behind what has come */
static PetscErrorCode Came(GPUCSRHalo h, GPUCSRStream s)
{
  PetscFunctionBegin;
  if (h->dev->failed[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(h->dev->ops->streamwait(h->dev->id, s, ((Nccl *)h->data)->came));
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
  s = Stream(h, s);
  PetscCall(Came(h, s));
  if (host) PetscCall(ToHost(h, g->hrecv, g->recv, h->nrecv, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReverseBegin_Nccl(GPUCSRHalo h, PetscBool valid, PetscBool host, GPUCSRStream s)
{
  Nccl *g = (Nccl *)h->data;

  PetscFunctionBegin;
  PetscCheck(!h->dev->failed[0], PETSC_COMM_SELF, PETSC_ERR_GPU, "NCCL needs the device, which has failed: %s", h->dev->failed);
  PetscCall(h->dev->ops->activate(h->dev->id));
  s = Stream(h, s);
  if (!valid) PetscCall(Fill(h, h->nrecv, g->hrecv, NULL, NULL, g->recv, s));
  else if (host) PetscCall(Fill(h, h->nrecv, g->hrecv, g->hrecv, NULL, g->recv, s));
  PetscCall(Post(h, &h->from, g->recv, &h->to, g->send, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What waits is what adds */
static PetscErrorCode ReverseEnd_Nccl(GPUCSRHalo h)
{
  (void)h;
  return PETSC_SUCCESS;
}

/* In the order of ranks: on the device a launch for each */
static PetscErrorCode ReverseAdd_Nccl(GPUCSRHalo h, const GPUCSROperand *z, GPUCSRStream s)
{
  Nccl *g = (Nccl *)h->data;

  PetscFunctionBegin;
  s = Stream(h, s);
  PetscCall(Came(h, s));
  if (!z || !h->nsend) PetscFunctionReturn(PETSC_SUCCESS);
  if (z->place == GPUCSR_DEVICE) {
    for (PetscMPIInt k = 0; k < h->to.n; k++) PetscCall((*GPUCSRHelpers(h->dev)->scatteradd)(GPUCSR_DOUBLE, (size_t)(h->to.offset[k + 1] - h->to.offset[k]), g->index + h->to.offset[k], g->send + h->to.offset[k], z->p, s));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(ToHost(h, g->hsend, g->send, h->nsend, s));
  for (PetscInt k = 0; k < h->nsend; k++) ((PetscScalar *)z->p)[h->index[k]] += g->hsend[k];
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUCSRExchange GPUCSRExchange_nccl = {
  .name         = "nccl",
  .together     = PETSC_TRUE,
  .able         = Able_Nccl,
  .setup        = SetUp_Nccl,
  .destroy      = Destroy_Nccl,
  .forwardbegin = ForwardBegin_Nccl,
  .forwardend   = ForwardEnd_Nccl,
  .reversebegin = ReverseBegin_Nccl,
  .reverseend   = ReverseEnd_Nccl,
  .reverseadd   = ReverseAdd_Nccl,
};

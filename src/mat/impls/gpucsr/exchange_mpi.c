/*
  The exchange by an MPI that takes memory of devices: entries are packed there, and travel as MPI likes best. What is on a device of one rank may come to the host of another, so that a rank
  without a device, or whose device has failed, takes part as any other.

  Its memory on the device is from cudaMalloc(), by way of share(): that of a pool, which all else here is, is memory that some MPIs cannot open in another process.
*/
#include "halo.h"
#include <dlfcn.h>

typedef struct {
  double      *send, *recv;   /* on the device; NULL where there is none */
  PetscScalar *hsend, *hrecv; /* on the host, page-locked where that means something */
  int32_t     *index;         /* on the device: of the entries sent, and of the sums that come back */
  MPI_Request *request;
  PetscBool    device; /* what comes, comes to the device */
  GPUCSRStream last;   /* of the exchange before */
} Aware;

/* Of this rank. An MPI that cannot say is taken at the word of who asks for it */
static PetscErrorCode Able_Mpi(GPUCSRHalo h, char why[], size_t len)
{
  int (*query)(void) = NULL;

  PetscFunctionBegin;
  if (!h->dev || !h->dev->ops->kernels) PetscFunctionReturn(PETSC_SUCCESS); /* memory of the host */
  *(void **)&query = dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support");
  if (query && !(*query)()) PetscCall(PetscStrncpy(why, "MPI says that it takes no memory of devices (MPIX_Query_cuda_support())", len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostMake(GPUCSRHalo h, PetscInt n, PetscScalar **p)
{
  const size_t bytes = sizeof(PetscScalar) * (size_t)(n + 1);

  PetscFunctionBegin;
  if (h->dev) PetscCall(h->dev->ops->hostmalloc(h->dev->id, bytes, (void **)p));
  else PetscCall(PetscMalloc(bytes, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode HostFree(GPUCSRHalo h, PetscScalar **p)
{
  PetscFunctionBegin;
  if (!h->dev) PetscCall(PetscFree(*p));
  else if (*p && !h->dev->failed[0]) PetscCall(h->dev->ops->hostfree(h->dev->id, *p));
  *p = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static size_t Bytes(PetscInt n)
{
  return sizeof(double) * (size_t)(n + 1);
}

static PetscErrorCode Destroy_Mpi(GPUCSRHalo h)
{
  Aware       *g   = (Aware *)h->data;
  GPUCSRDevice dev = h->dev;

  PetscFunctionBegin;
  PetscCall(PetscFree(g->request));
  if (dev) {
    PetscCall(GPUCSRFree(dev, sizeof(int32_t) * (size_t)h->nsend, (void **)&g->index));
    if (!dev->failed[0]) {
      if (g->send) PetscCall(dev->ops->unshare(dev->id, Bytes(h->nsend), g->send));
      if (g->recv) PetscCall(dev->ops->unshare(dev->id, Bytes(h->nrecv), g->recv));
    }
  }
  PetscCall(HostFree(h, &g->hsend));
  PetscCall(HostFree(h, &g->hrecv));
  PetscCall(PetscFree(h->data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetUp_Mpi(GPUCSRHalo h)
{
  GPUCSRDevice dev = h->dev;
  GPUCSRHandle unused;
  Aware       *g;

  PetscFunctionBegin;
  PetscCall(PetscNew(&g));
  h->data = g;
  PetscCall(PetscMalloc1(h->to.n + h->from.n + 1, &g->request));
  PetscCall(HostMake(h, h->nsend, &g->hsend));
  PetscCall(HostMake(h, h->nrecv, &g->hrecv));
  h->host = g->hrecv;
  h->halo = (GPUCSROperand){.p = g->hrecv, .place = GPUCSR_HOST};
  if (!dev) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(dev->ops->activate(dev->id));
  PetscCall(dev->ops->share(dev->id, Bytes(h->nsend), (void **)&g->send, &unused));
  PetscCall(dev->ops->share(dev->id, Bytes(h->nrecv), (void **)&g->recv, &unused));
  if (h->nsend) {
    PetscCall(GPUCSRMalloc(dev, sizeof(int32_t) * (size_t)h->nsend, "the halo", (void **)&g->index));
    PetscCall(GPUCSRUpload(dev, g->index, GPUCSR_INT32, h->index, GPUCSR_PETSCINT, (size_t)h->nsend, PETSC_FALSE, dev->stream, NULL));
    PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream)); /* products may be on another stream */
  }
  h->halo = (GPUCSROperand){.p = g->recv, .place = GPUCSR_DEVICE, .ours = PETSC_TRUE};
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscMPIInt Count(const GPUCSRNeighbours *b, PetscMPIInt k)
{
  return (PetscMPIInt)(b->offset[k + 1] - b->offset[k]);
}

/* Messages of what lies between the offsets of two buffers, in either memory */
static PetscErrorCode Post(GPUCSRHalo h, const GPUCSRNeighbours *to, const void *out, const GPUCSRNeighbours *from, void *in)
{
  Aware *g = (Aware *)h->data;

  PetscFunctionBegin;
  for (PetscMPIInt k = 0; k < from->n; k++) PetscCallMPI(MPI_Irecv((PetscScalar *)in + from->offset[k], Count(from, k), MPIU_SCALAR, from->rank[k], h->tag, h->comm, &g->request[k]));
  for (PetscMPIInt k = 0; k < to->n; k++) PetscCallMPI(MPI_Isend((const PetscScalar *)out + to->offset[k], Count(to, k), MPIU_SCALAR, to->rank[k], h->tag, h->comm, &g->request[from->n + k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool HasDevice(GPUCSRHalo h)
{
  return (PetscBool)(h->dev && !h->dev->failed[0]);
}

static PetscErrorCode Wait(GPUCSRHalo h, GPUCSRStream s, PetscBool must)
{
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRAttemptBegin(&attempt));
  ierr = h->dev->ops->streamsynchronize(h->dev->id, s);
  PetscCall(GPUCSRAttemptEnd(&attempt));
  PetscCheck(!ierr || !must, PETSC_COMM_SELF, ierr, "%s", attempt.message);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  MPI is about to read what the stream s is to have written, and to write where the product before may still read. An error is one where the rank must have something to send (must); one that
  sends NaN has met its own already
*/
static PetscErrorCode Settle(GPUCSRHalo h, GPUCSRStream s, PetscBool must)
{
  Aware *g = (Aware *)h->data;

  PetscFunctionBegin;
  g->device = HasDevice(h);
  if (!g->device) PetscFunctionReturn(PETSC_SUCCESS);
  if (!s) s = h->dev->stream;
  if (g->last && g->last != s) PetscCall(Wait(h, g->last, must));
  g->last = s;
  PetscCall(Wait(h, s, must));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ForwardBegin_Mpi(GPUCSRHalo h, const GPUCSROperand *x, GPUCSRStream s)
{
  Aware      *g   = (Aware *)h->data;
  const void *out = g->hsend;

  PetscFunctionBegin;
  if (!x || x->place == GPUCSR_HOST) {
    for (PetscInt k = 0; k < h->nsend; k++) g->hsend[k] = x ? ((const PetscScalar *)x->p)[h->index[k]] : (PetscScalar)NAN;
  } else if (h->nsend) {
    PetscCall((*GPUCSRHelpers(h->dev)->gather)(GPUCSR_DOUBLE, (size_t)h->nsend, g->index, x->p, g->send, s));
    out = g->send;
  }
  PetscCall(Settle(h, s, (PetscBool)(x != NULL)));
  PetscCall(Post(h, &h->to, out, &h->from, g->device ? (void *)g->recv : (void *)g->hrecv));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ForwardEnd_Mpi(GPUCSRHalo h, PetscBool host, GPUCSRStream s)
{
  Aware *g = (Aware *)h->data;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Waitall(h->to.n + h->from.n, g->request, MPI_STATUSES_IGNORE));
  if (!host || !g->device || !h->nrecv) PetscFunctionReturn(PETSC_SUCCESS);
  if (!s) s = h->dev->stream;
  PetscCall(h->dev->ops->copy(h->dev->id, g->hrecv, g->recv, sizeof(double) * (size_t)h->nrecv, GPUCSR_TO_HOST, s));
  PetscCall(h->dev->ops->streamsynchronize(h->dev->id, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReverseBegin_Mpi(GPUCSRHalo h, PetscBool valid, PetscBool host, GPUCSRStream s)
{
  Aware               *g    = (Aware *)h->data;
  const PetscErrorCode ierr = Settle(h, s, valid);
  const void          *out  = valid && !ierr && !host && g->device ? (const void *)g->recv : (const void *)g->hrecv;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < (valid && !ierr ? 0 : h->nrecv); k++) g->hrecv[k] = (PetscScalar)NAN;
  PetscCall(Post(h, &h->from, out, &h->to, g->device ? (void *)g->send : (void *)g->hsend));
  PetscFunctionReturn(ierr); /* the others have something from this rank all the same */
}

static PetscErrorCode ReverseEnd_Mpi(GPUCSRHalo h)
{
  PetscFunctionBegin;
  PetscCallMPI(MPI_Waitall(h->to.n + h->from.n, ((Aware *)h->data)->request, MPI_STATUSES_IGNORE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* In the order of ranks: on the device a launch for each */
static PetscErrorCode ReverseAdd_Mpi(GPUCSRHalo h, const GPUCSROperand *z, GPUCSRStream s)
{
  Aware *g = (Aware *)h->data;

  PetscFunctionBegin;
  if (!z || !h->nsend) PetscFunctionReturn(PETSC_SUCCESS);
  if (z->place == GPUCSR_DEVICE) {
    if (!g->device) PetscCall(h->dev->ops->copy(h->dev->id, g->send, g->hsend, sizeof(double) * (size_t)h->nsend, GPUCSR_TO_DEVICE, s));
    for (PetscMPIInt k = 0; k < h->to.n; k++) PetscCall((*GPUCSRHelpers(h->dev)->scatteradd)(GPUCSR_DOUBLE, (size_t)(h->to.offset[k + 1] - h->to.offset[k]), g->index + h->to.offset[k], g->send + h->to.offset[k], z->p, s));
    PetscCall(h->dev->ops->streamsynchronize(h->dev->id, s)); /* MPI writes there at the next product */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (g->device) {
    if (!s) s = h->dev->stream;
    PetscCall(h->dev->ops->copy(h->dev->id, g->hsend, g->send, sizeof(double) * (size_t)h->nsend, GPUCSR_TO_HOST, s));
    PetscCall(h->dev->ops->streamsynchronize(h->dev->id, s));
  }
  for (PetscInt k = 0; k < h->nsend; k++) ((PetscScalar *)z->p)[h->index[k]] += g->hsend[k];
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUCSRExchange GPUCSRExchange_mpi = {
  .name         = "mpi",
  .able         = Able_Mpi,
  .setup        = SetUp_Mpi,
  .destroy      = Destroy_Mpi,
  .forwardbegin = ForwardBegin_Mpi,
  .forwardend   = ForwardEnd_Mpi,
  .reversebegin = ReverseBegin_Mpi,
  .reverseend   = ReverseEnd_Mpi,
  .reverseadd   = ReverseAdd_Mpi,
};

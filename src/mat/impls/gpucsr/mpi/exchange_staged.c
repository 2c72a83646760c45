/*
  The exchange that works with every MPI: messages between page-locked host memory. The device packs the entries of a device vector, and adds the
  sums.
*/
#include "halo.h"

typedef struct {
  MPI_Request *forward, *backward; /* persistent: receives first */
  PetscScalar *send, *recv, *sum;  /* page-locked where that means something */
  int32_t     *dindex, *dunique;   /* on the device, for device vectors */
  double      *dbuffer;
} Staged;

static PetscErrorCode Destroy_Staged(GPUCSRHalo h)
{
  Staged *g = (Staged *)h->data;

  PetscFunctionBegin;
  for (int k = 0; k < h->to.n + h->from.n && g->forward; k++) {
    if (g->forward[k] != MPI_REQUEST_NULL) PetscCallMPI(MPI_Request_free(&g->forward[k]));
    if (g->backward[k] != MPI_REQUEST_NULL) PetscCallMPI(MPI_Request_free(&g->backward[k]));
  }
  PetscCall(PetscFree2(g->forward, g->backward));
  PetscCall(PetscFree(h->data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Persistent messages with each neighbour: the numbers between the buffer's offsets */
static PetscErrorCode Messages(GPUCSRHalo h, const GPUCSRNeighbours *b, PetscScalar *buffer, PetscBool receive, MPI_Request req[])
{
  PetscFunctionBegin;
  for (PetscMPIInt k = 0; k < b->n; k++) {
    PetscMPIInt count;

    PetscCall(PetscMPIIntCast(b->offset[k + 1] - b->offset[k], &count));
    if (receive) PetscCallMPI(MPI_Recv_init(buffer + b->offset[k], count, MPIU_SCALAR, b->rank[k], h->tag, h->comm, &req[k]));
    else PetscCallMPI(MPI_Send_init(buffer + b->offset[k], count, MPIU_SCALAR, b->rank[k], h->tag, h->comm, &req[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetUp_Staged(GPUCSRHalo h)
{
  const PetscMPIInt n = h->to.n + h->from.n;
  Staged           *g;

  PetscFunctionBegin;
  PetscCall(PetscNew(&g));
  h->data = g;
  PetscCall(PetscMalloc2(n + 1, &g->forward, n + 1, &g->backward));
  for (PetscMPIInt k = 0; k < n; k++) g->forward[k] = g->backward[k] = MPI_REQUEST_NULL;
  PetscCall(GPUCSRHaloHostBuffer(h, h->nsend, &g->send));
  PetscCall(GPUCSRHaloHostBuffer(h, h->nrecv, &g->recv));
  PetscCall(GPUCSRHaloHostBuffer(h, h->nunique, &g->sum));
  if (h->dev) {
    PetscCall(GPUCSRHaloIndices(h, h->index, h->nsend, &g->dindex));
    PetscCall(GPUCSRHaloIndices(h, h->unique, h->nunique, &g->dunique));
    PetscCall(GPUCSRHaloMalloc(h, sizeof(double) * (size_t)h->nsend, &g->dbuffer));
  }
  PetscCall(Messages(h, &h->from, g->recv, PETSC_TRUE, g->forward));
  PetscCall(Messages(h, &h->to, g->send, PETSC_FALSE, g->forward + h->from.n));
  PetscCall(Messages(h, &h->to, g->send, PETSC_TRUE, g->backward));
  PetscCall(Messages(h, &h->from, g->recv, PETSC_FALSE, g->backward + h->to.n));
  h->host = g->recv;
  h->halo = (GPUCSROperand){.p = g->recv, .place = GPUCSR_HOST, .pinned = (PetscBool)(h->dev != NULL)};
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Pack(GPUCSRHalo h, const GPUCSROperand *x, GPUCSRStream s)
{
  Staged *g = (Staged *)h->data;

  PetscFunctionBegin;
  if (!x || x->place == GPUCSR_HOST) GPUCSRHaloPack(h, x ? (const PetscScalar *)x->p : NULL, g->send);
  else if (h->nsend) {
    PetscCall((*GPUCSRHelpers(h->dev)->gather)(h->dev, (int)h->nsend, GPUCSR_DOUBLE, g->dindex, x->p, g->dbuffer, s));
    PetscCall(GPUCSRDownload(h->dev, g->send, GPUCSR_DOUBLE, g->dbuffer, GPUCSR_DOUBLE, (size_t)h->nsend, PETSC_TRUE, s));
    PetscCall(h->dev->ops->streamsynchronize(h->dev->id, s));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ForwardBegin_Staged(GPUCSRHalo h, const GPUCSROperand *x, GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(Pack(h, x, s));
  PetscCallMPI(MPI_Startall(h->to.n + h->from.n, ((Staged *)h->data)->forward));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ForwardEnd_Staged(GPUCSRHalo h, PetscBool host, GPUCSRStream s)
{
  PetscFunctionBegin;
  (void)host; /* on the host either way */
  PetscCallMPI(MPI_Waitall(h->to.n + h->from.n, ((Staged *)h->data)->forward, MPI_STATUSES_IGNORE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReverseBegin_Staged(GPUCSRHalo h, PetscBool valid, PetscBool host, GPUCSRStream s)
{
  Staged *g = (Staged *)h->data;

  PetscFunctionBegin;
  for (PetscInt k = 0; k < (valid ? 0 : h->nrecv); k++) g->recv[k] = (PetscScalar)NAN;
  PetscCallMPI(MPI_Startall(h->to.n + h->from.n, g->backward));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReverseAdd_Staged(GPUCSRHalo h, const GPUCSROperand *z, GPUCSRStream s)
{
  Staged *g = (Staged *)h->data;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Waitall(h->to.n + h->from.n, g->backward, MPI_STATUSES_IGNORE));
  if (!z) PetscFunctionReturn(PETSC_SUCCESS);
  if (z->place == GPUCSR_HOST) GPUCSRHaloSums(h, g->send, (PetscScalar *)z->p, PETSC_TRUE);
  else if (h->nunique) {
    GPUCSRHaloSums(h, g->send, g->sum, PETSC_FALSE);
    PetscCall(GPUCSRUpload(h->dev, g->dbuffer, GPUCSR_DOUBLE, g->sum, GPUCSR_DOUBLE, (size_t)h->nunique, PETSC_TRUE, s, NULL));
    PetscCall((*GPUCSRHelpers(h->dev)->scatteradd)(h->dev, (int)h->nunique, g->dunique, g->dbuffer, z->p, s));
    PetscCall(h->dev->ops->streamsynchronize(h->dev->id, s)); /* the next product writes sum again */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUCSRExchange GPUCSRExchange_staged = {
  .name         = "staged",
  .setup        = SetUp_Staged,
  .destroy      = Destroy_Staged,
  .forwardbegin = ForwardBegin_Staged,
  .forwardend   = ForwardEnd_Staged,
  .reversebegin = ReverseBegin_Staged,
  .reverseadd   = ReverseAdd_Staged,
};

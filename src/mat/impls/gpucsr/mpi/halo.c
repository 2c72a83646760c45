/*
  Neighbours of a rank and their entries of a parallel vector, found by PetscSF from the columns of MATMPIAIJ; and the choice of an exchange. The last part is the exchange that works with every MPI.
*/
#include "halo.h"
#include <limits.h>

PetscErrorCode GPUCSRHaloHostBuffer(GPUCSRHalo h, PetscInt n, PetscScalar **p)
{
  const size_t bytes = sizeof(PetscScalar) * (size_t)(n + 1);

  PetscFunctionBegin;
  PetscCheck(h->nbuffers < (int)PETSC_STATIC_ARRAY_LENGTH(h->buffer), PETSC_COMM_SELF, PETSC_ERR_PLIB, "An exchange has more than %d pieces of memory", h->nbuffers);
  if (h->dev) PetscCall(h->dev->ops->hostmalloc(h->dev->id, bytes, (void **)p));
  else PetscCall(PetscMalloc(bytes, p));
  h->buffer[h->nbuffers++] = (GPUCSRHaloBuffer){*p, bytes, PETSC_TRUE};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Any stream may use it */
PetscErrorCode GPUCSRHaloMalloc(GPUCSRHalo h, size_t bytes, void *p)
{
  PetscFunctionBegin;
  PetscCheck(h->nbuffers < (int)PETSC_STATIC_ARRAY_LENGTH(h->buffer), PETSC_COMM_SELF, PETSC_ERR_PLIB, "An exchange has more than %d pieces of memory", h->nbuffers);
  if (h->dev) PetscCall(GPUCSRMalloc(h->dev, bytes, "the halo", (void **)p));
  else PetscCall(PetscMalloc(bytes + 1, (void **)p));
  h->buffer[h->nbuffers++] = (GPUCSRHaloBuffer){*(void **)p, bytes, PETSC_FALSE};
  if (h->dev) PetscCall(h->dev->ops->streamsynchronize(h->dev->id, h->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FreeAt(GPUCSRHalo h, int k)
{
  void *p = h->buffer[k].p;

  PetscFunctionBegin;
  if (!h->dev) PetscCall(PetscFree(p));
  else if (!h->buffer[k].locked) PetscCall(GPUCSRFree(h->dev, h->buffer[k].bytes, &p));
  else if (!h->dev->failed[0]) PetscCall(h->dev->ops->hostfree(h->dev->id, p));
  h->buffer[k] = h->buffer[--h->nbuffers];
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRHaloFree(GPUCSRHalo h, void *p)
{
  PetscFunctionBegin;
  for (int k = h->nbuffers; k-- > 0;)
    if (h->buffer[k].p == *(void **)p) PetscCall(FreeAt(h, k));
  *(void **)p = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The exchange's data and memory */
static PetscErrorCode Undo(GPUCSRHalo h)
{
  PetscFunctionBegin;
  if (h->data && h->exchange->destroy) PetscCall((*h->exchange->destroy)(h));
  PetscCall(PetscFree(h->data));
  while (h->nbuffers) PetscCall(FreeAt(h, h->nbuffers - 1));
  h->there = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Undoes the set-up. Collective with peers, and bounded in time even if another rank has ended */
static PetscErrorCode Drop(GPUCSRHalo h)
{
  PetscFunctionBegin;
  PetscCall(Undo(h));
  PetscCall(GPUCSRPeersDestroy(&h->peers));
  h->exchange = &GPUCSRExchange_staged;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective with peers. The next product sets the exchange up again */
static PetscErrorCode HaloRelease(void *halo)
{
  GPUCSRHalo h = (GPUCSRHalo)halo;

  PetscFunctionBegin;
  PetscCall(Drop(h));
  h->dev = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRLivingList halos = {GPUCSR_FINAL_HALO, HaloRelease, NULL};

/* Collective: the graph of the n columns `ghost`, ascending, of which other ranks have the entries */
PetscErrorCode GPUCSRHaloCreate(MPI_Comm comm, PetscLayout cmap, PetscInt n, const PetscInt ghost[], GPUCSRHalo *halo)
{
  GPUCSRHalo         h;
  PetscSF            sf;
  GPUCSRSFCount      count;
  const PetscInt    *mine, *root, *degree;
  const PetscSFNode *owner;
  PetscSFNode       *nodes;
  PetscInt          *place, *there, m;

  PetscFunctionBegin;
  PetscCall(PetscNew(&h));
  *halo = h;
  PetscCall(GPUCSRLivingAdd(&halos, &h->living, h));
  h->exchange = &GPUCSRExchange_staged;
  h->comm     = comm;
  PetscCall(PetscSFCreate(h->comm, &sf));
  PetscCall(PetscSFSetGraphLayout(sf, cmap, n, NULL, PETSC_COPY_VALUES, ghost));
  PetscCall(PetscSFSetUp(sf));
  /* the entries that other ranks need, each once, and h->sf, which sends these to the halo */
  PetscCall(PetscSFGetGraph(sf, &m, &h->nrecv, NULL, &owner));
  PetscCall(PetscSFComputeDegreeBegin(sf, &degree));
  PetscCall(PetscSFComputeDegreeEnd(sf, &degree));
  PetscCall(PetscMalloc2(m, &place, h->nrecv, &there));
  for (PetscInt k = 0; k < m; k++) {
    place[k] = h->nunique;
    h->nunique += degree[k] > 0;
  }
  PetscCall(PetscMalloc1(h->nunique, &h->unique));
  for (PetscInt k = 0; k < m; k++)
    if (degree[k] > 0) h->unique[place[k]] = k;
  PetscCall(PetscSFBcastBegin(sf, MPIU_INT, place, there, MPI_REPLACE));
  PetscCall(PetscSFBcastEnd(sf, MPIU_INT, place, there, MPI_REPLACE));
  PetscCall(PetscMalloc1(h->nrecv, &nodes));
  for (PetscInt k = 0; k < h->nrecv; k++) {
    nodes[k].rank  = owner[k].rank;
    nodes[k].index = there[k];
  }
  PetscCall(PetscFree2(place, there));
  PetscCall(PetscSFCreate(h->comm, &h->sf));
  PetscCall(PetscSFSetGraph(h->sf, h->nunique, h->nrecv, NULL, PETSC_OWN_POINTER, nodes, PETSC_OWN_POINTER));
  PetscCall(PetscSFSetUp(h->sf));
  PetscCall(PetscSFDestroy(&sf));
  /* neighbours and their entries: PetscSF has them in the order of ranks */
  PetscCall(PetscSFGetRootRanks(h->sf, &count, &h->from.rank, &h->from.offset, &mine, NULL));
  h->from.n = (PetscMPIInt)count;
  for (PetscInt k = 0; k < h->nrecv; k++) PetscCheck(mine[k] == k, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The entries of x are not in the order of the ranks that own them");
  PetscCall(PetscSFGetLeafRanks(h->sf, &count, &h->to.rank, &h->to.offset, &root));
  h->to.n  = (PetscMPIInt)count;
  h->nsend = h->to.offset[count];
  PetscCall(PetscMalloc3(h->nsend, &h->index, h->nsend, &h->sent, h->nunique + 2, &h->first));
  PetscCall(PetscArrayzero(h->first, h->nunique + 2));
  for (PetscInt k = 0; k < h->nsend; k++) {
    h->index[k] = h->unique[root[k]];
    h->first[root[k] + 2]++;
  }
  for (PetscInt u = 0; u < h->nunique; u++) h->first[u + 2] += h->first[u + 1];
  for (PetscInt k = 0; k < h->nsend; k++) h->sent[h->first[root[k] + 1]++] = k;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* By GPUCSRHaloWay */
static const GPUCSRExchange *const exchanges[] = {NULL, &GPUCSRExchange_peer, &GPUCSRExchange_nccl, &GPUCSRExchange_staged};

/* Does the exchange no longer work on this rank? A failed check is an answer, not an error */
PetscErrorCode GPUCSRHaloBroken(GPUCSRHalo h, PetscBool *broken)
{
  GPUCSRAttempt attempt = {0};

  PetscFunctionBegin;
  if (h->exchange->check) GPUCSRTry(&attempt, (*h->exchange->check)(h));
  *broken = (PetscBool)(attempt.error != PETSC_SUCCESS);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Collective: sets up the exchange that was asked for. auto: peer if each rank has a device of its own and devices address each other's memory;
  else staged. Errors are errors on all ranks. dev: the device of this rank's products; NULL: products use host memory. GPUCSRHaloSetUp() does the rank's
  own part.
*/
PetscErrorCode GPUCSRHaloChoose(GPUCSRHalo h, GPUCSRDevice dev, GPUCSRHaloWay asked)
{
  static const volatile char name[] = "libpetscgpucsr " PETSCGPUCSR_VERSION; /* a test changes the bytes of the file */
  static PetscInt64          made;
  const PetscBool            any     = (PetscBool)(asked == GPUCSR_HALO_AUTO);
  unsigned                   version = 0;
  PetscErrorCode             ierr    = PETSC_SUCCESS;
  PetscMPIInt                size;
  int                        least[5], device = dev && dev->ops->kernels;

  PetscFunctionBegin;
  PetscCall(Drop(h));
  h->made   = ++made;
  h->dev    = dev;
  h->why[0] = 0;
  PetscCallMPI(MPI_Comm_size(h->comm, &size));
  least[0] = (int)asked;
  least[1] = -least[0];
  least[2] = device;
  for (size_t k = 0; k < sizeof(name); k++) version = 31 * version + (unsigned char)name[k];
  least[3] = (int)(version % INT_MAX); /* ranks of different versions differ in their exchanges */
  least[4] = -least[3];
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, least, 5, MPI_INT, MPI_MIN, h->comm));
  PetscCheck(least[3] == -least[4], h->comm, PETSC_ERR_ARG_INCOMP, "The ranks have loaded libpetscgpucsr.so of different versions, this one %s: it must be the same on all", PETSCGPUCSR_VERSION);
  PetscCheck(least[0] == -least[1], h->comm, PETSC_ERR_ARG_INCOMP, "-mat_gpucsr_halo is not the same on all ranks: it must be");
  if (any && (!least[2] || size == 1)) PetscCall(PetscStrncpy(h->why, size == 1 ? "there is one rank" : "a rank computes on the host", sizeof(h->why)));
  else {
    const GPUCSRExchange *exchange = any ? &GPUCSRExchange_peer : exchanges[asked]; /* and its peers; with auto each rank must have a device of its own */
    GPUCSRAttempt         attempt  = {.error = PETSC_ERR_SUP};

    if (exchange->peers && GPUCSR_SCALAR_IS_DOUBLE) PetscCall(GPUCSRPeersCreate(h->comm, h->dev, &h->peers));
    if (exchange->peers && !GPUCSR_SCALAR_IS_DOUBLE) PetscCall(PetscStrncpy(h->why, "this PETSc does not compute with real double numbers", sizeof(h->why)));
    else if (h->peers && !h->peers->all) PetscCall(PetscStrncpy(h->why, h->peers->why, sizeof(h->why)));
    else if (h->peers && any && h->peers->shared) PetscCall(PetscStrncpy(h->why, "ranks share a device, where a waiting launch blocks the other ranks' launches", sizeof(h->why)));
    else {
      h->exchange   = exchange;
      attempt.error = PETSC_SUCCESS;
      if (exchange->connect) {
        GPUCSRTry(&attempt, (*exchange->local)(h));
        PetscCall(GPUCSRAttemptAgree(&attempt, h->comm, h->dev));
      }
      if (exchange->connect) GPUCSRThen(&attempt, (*exchange->connect)(h));
      if (attempt.error) PetscCall(PetscStrncpy(h->why, attempt.message, sizeof(h->why)));
    }
    ierr = attempt.error;
    if (ierr) PetscCall(Drop(h));
    PetscCheck(!ierr || any, h->comm, ierr, "-mat_gpucsr_halo %s: %s", exchanges[asked]->name, h->why);
    if (!ierr) PetscCall(PetscStrncpy(h->why, any ? "devices of one host address each other's memory" : "asked for", sizeof(h->why)));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRHaloFill(GPUCSRHalo h, void *to, GPUCSRType type, const void *from, GPUCSRType ftype, PetscInt n)
{
  PetscFunctionBegin;
  if (h->dev) {
    PetscCall(GPUCSRUpload(h->dev, to, type, from, ftype, (size_t)n, PETSC_FALSE, h->dev->stream, NULL));
    PetscCall(h->dev->ops->streamsynchronize(h->dev->id, h->dev->stream));
  } else PetscCall(GPUCSRConvert(to, type, from, ftype, (size_t)n, 1, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRHaloIndices(GPUCSRHalo h, const PetscInt from[], PetscInt n, int32_t **to)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRHaloMalloc(h, sizeof(int32_t) * (size_t)n, to));
  PetscCall(GPUCSRHaloFill(h, *to, GPUCSR_INT32, from, GPUCSR_PETSCINT, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRHaloPlaces(GPUCSRHalo h, PetscInt64 (**where)[2])
{
  PetscInt64(*tell)[2];
  PetscMPIInt size;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(h->comm, &size));
  PetscCall(PetscCalloc1(size, &tell));
  PetscCall(PetscCalloc1(size, where));
  for (PetscMPIInt k = 0; k < h->from.n; k++) tell[h->from.rank[k]][0] = h->from.offset[k];
  for (PetscMPIInt k = 0; k < h->to.n; k++) tell[h->to.rank[k]][1] = h->to.offset[k];
  PetscCallMPI(MPI_Alltoall(tell, 2, MPI_INT64_T, *where, 2, MPI_INT64_T, h->comm));
  PetscCall(PetscFree(tell));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void GPUCSRHaloPack(GPUCSRHalo h, const PetscScalar *x, PetscScalar *to)
{
  for (PetscInt k = 0; k < h->nsend; k++) to[k] = x[h->index[k]];
}

void GPUCSRHaloAdd(GPUCSRHalo h, const PetscScalar *from, PetscScalar *z)
{
  for (PetscInt k = 0; k < h->nsend; k++) z[h->index[k]] += from[k];
}

/* This rank's buffers, on the device of its products */
PetscErrorCode GPUCSRHaloSetUp(GPUCSRHalo h, GPUCSRDevice dev)
{
  PetscFunctionBegin;
  if (h->exchange->connect) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Undo(h));
  h->dev = dev;
  PetscCall((*h->exchange->local)(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRHaloDestroy(GPUCSRHalo *halo)
{
  GPUCSRHalo h = *halo;

  PetscFunctionBegin;
  if (!h) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRLivingRemove(&h->living));
  PetscCall(Drop(h));
  PetscCall(PetscSFDestroy(&h->sf));
  PetscCall(PetscFree(h->unique));
  PetscCall(PetscFree3(h->index, h->sent, h->first));
  PetscCall(PetscFree(*halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the staged exchange: PetscSF sends and sums entries in page-locked host memory. The device packs the entries of a device vector, and adds the sums */

typedef struct {
  PetscScalar *border, *recv;    /* unique entries of x, or their sums; and the halo. Page-locked where that means something */
  int32_t     *place;            /* of the unique entries, on the device, */
  double      *there;            /* and room for them, for device vectors */
  PetscBool    forward, reverse; /* under way: a caller ends, or begins again, what an error has interrupted */
} Staged;

static PetscErrorCode Local_Staged(GPUCSRHalo h)
{
  Staged *g;

  PetscFunctionBegin;
  PetscCall(PetscNew(&g));
  h->data = g;
  PetscCall(GPUCSRHaloHostBuffer(h, h->nunique, &g->border));
  PetscCall(GPUCSRHaloHostBuffer(h, h->nrecv, &g->recv));
  if (h->dev) {
    PetscCall(GPUCSRHaloIndices(h, h->unique, h->nunique, &g->place));
    PetscCall(GPUCSRHaloMalloc(h, sizeof(double) * (size_t)h->nunique, &g->there));
  }
  h->host = g->recv;
  h->halo = (GPUCSROperand){.p = g->recv, .place = GPUCSR_HOST, .pinned = (PetscBool)(h->dev != NULL)};
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ForwardBegin_Staged(GPUCSRHalo h, const GPUCSROperand *x, GPUCSRStream s)
{
  Staged *g = (Staged *)h->data;

  PetscFunctionBegin;
  if (g->forward) PetscFunctionReturn(PETSC_SUCCESS);
  if (!x || x->place == GPUCSR_HOST) {
    for (PetscInt u = 0; u < h->nunique; u++) g->border[u] = x ? ((const PetscScalar *)x->p)[h->unique[u]] : (PetscScalar)NAN;
  } else if (h->nunique) {
    PetscCall((*GPUCSRHelpers(h->dev)->gather)(h->dev, (int)h->nunique, GPUCSR_DOUBLE, g->place, x->p, g->there, s));
    PetscCall(GPUCSRDownload(h->dev, g->border, GPUCSR_DOUBLE, g->there, GPUCSR_DOUBLE, (size_t)h->nunique, PETSC_TRUE, s));
    PetscCall(h->dev->ops->streamsynchronize(h->dev->id, s));
  }
  PetscCall(PetscSFBcastBegin(h->sf, MPIU_SCALAR, g->border, g->recv, MPI_REPLACE));
  g->forward = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ForwardEnd_Staged(GPUCSRHalo h, PetscBool host, GPUCSRStream s)
{
  Staged *g = (Staged *)h->data;

  PetscFunctionBegin;
  (void)host; /* on the host either way */
  if (!g->forward) PetscFunctionReturn(PETSC_SUCCESS);
  g->forward = PETSC_FALSE;
  PetscCall(PetscSFBcastEnd(h->sf, MPIU_SCALAR, g->border, g->recv, MPI_REPLACE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReverseBegin_Staged(GPUCSRHalo h, PetscBool valid, PetscBool host, GPUCSRStream s)
{
  Staged *g = (Staged *)h->data;

  PetscFunctionBegin;
  if (g->reverse) PetscFunctionReturn(PETSC_SUCCESS);
  for (PetscInt k = 0; k < (valid ? 0 : h->nrecv); k++) g->recv[k] = (PetscScalar)NAN;
  PetscCall(PetscArrayzero(g->border, h->nunique));
  PetscCall(PetscSFReduceBegin(h->sf, MPIU_SCALAR, g->recv, g->border, MPIU_SUM));
  g->reverse = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ReverseAdd_Staged(GPUCSRHalo h, const GPUCSROperand *z, GPUCSRStream s)
{
  Staged *g = (Staged *)h->data;

  PetscFunctionBegin;
  if (!g->reverse) PetscFunctionReturn(PETSC_SUCCESS);
  g->reverse = PETSC_FALSE;
  PetscCall(PetscSFReduceEnd(h->sf, MPIU_SCALAR, g->recv, g->border, MPIU_SUM));
  if (!z) PetscFunctionReturn(PETSC_SUCCESS);
  if (z->place == GPUCSR_HOST) {
    for (PetscInt u = 0; u < h->nunique; u++) ((PetscScalar *)z->p)[h->unique[u]] += g->border[u];
  } else if (h->nunique) {
    PetscCall(GPUCSRUpload(h->dev, g->there, GPUCSR_DOUBLE, g->border, GPUCSR_DOUBLE, (size_t)h->nunique, PETSC_TRUE, s, NULL));
    PetscCall((*GPUCSRHelpers(h->dev)->scatteradd)(h->dev, (int)h->nunique, g->place, g->there, z->p, s));
    PetscCall(h->dev->ops->streamsynchronize(h->dev->id, s)); /* the next product writes the border again */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

const GPUCSRExchange GPUCSRExchange_staged = {
  .name         = "staged",
  .local        = Local_Staged,
  .forwardbegin = ForwardBegin_Staged,
  .forwardend   = ForwardEnd_Staged,
  .reversebegin = ReverseBegin_Staged,
  .reverseadd   = ReverseAdd_Staged,
};

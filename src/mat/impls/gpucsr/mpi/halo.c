/*
  Neighbours of a rank and their entries of a parallel vector, found by PetscSF from the columns of MATMPIAIJ; and the choice of an exchange.
*/
#include "halo.h"
#include <limits.h>
#include <petscsf.h>

static PetscErrorCode NeighboursCreate(GPUCSRSFCount n, const PetscMPIInt ranks[], const PetscInt offset[], GPUCSRNeighbours *b, PetscInt **order)
{
  PetscFunctionBegin;
  b->n = (PetscMPIInt)n;
  PetscCall(PetscMalloc2(n, &b->rank, n + 1, &b->offset));
  PetscCall(PetscMalloc1(n, order));
  for (PetscInt k = 0; k < n; k++) {
    b->rank[k]  = ranks[k];
    (*order)[k] = k;
  }
  PetscCall(PetscSortMPIIntWithIntArray(b->n, b->rank, *order)); /* ranks are summed in order */
  b->offset[0] = 0;
  for (PetscInt k = 0; k < n; k++) b->offset[k + 1] = b->offset[k] + offset[(*order)[k] + 1] - offset[(*order)[k]];
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Graph(GPUCSRHalo h, PetscSF sf)
{
  GPUCSRSFCount      n;
  const PetscMPIInt *ranks;
  const PetscInt    *offset, *mine, *root;
  PetscInt          *order, *at;

  PetscFunctionBegin;
  PetscCall(PetscSFGetRootRanks(sf, &n, &ranks, &offset, &mine, NULL));
  PetscCall(NeighboursCreate(n, ranks, offset, &h->from, &order));
  h->nrecv = h->from.offset[n];
  for (PetscInt k = 0; k < n; k++)
    for (PetscInt e = 0; e < offset[order[k] + 1] - offset[order[k]]; e++) PetscCheck(mine[offset[order[k]] + e] == h->from.offset[k] + e, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The entries of x that rank %d owns are not together", (int)h->from.rank[k]);
  PetscCall(PetscFree(order));
  PetscCall(PetscSFGetLeafRanks(sf, &n, &ranks, &offset, &root));
  PetscCall(NeighboursCreate(n, ranks, offset, &h->to, &order));
  h->nsend = h->to.offset[n];
  PetscCall(PetscMalloc4(h->nsend, &h->index, h->nsend, &h->unique, h->nsend + 2, &h->first, h->nsend, &h->sent));
  for (PetscInt k = 0; k < n; k++) PetscCall(PetscArraycpy(h->index + h->to.offset[k], root + offset[order[k]], h->to.offset[k + 1] - h->to.offset[k]));
  PetscCall(PetscFree(order));
  PetscCall(PetscMalloc1(h->nsend, &at));
  PetscCall(PetscArraycpy(at, h->index, h->nsend));
  h->nunique = h->nsend;
  PetscCall(PetscSortRemoveDupsInt(&h->nunique, at));
  PetscCall(PetscArraycpy(h->unique, at, h->nunique));
  PetscCall(PetscArrayzero(h->first, h->nunique + 2));
  for (PetscInt k = 0; k < h->nsend; k++) {
    PetscCall(PetscFindInt(h->index[k], h->nunique, h->unique, &at[k]));
    h->first[at[k] + 2]++;
  }
  for (PetscInt u = 0; u < h->nunique; u++) h->first[u + 2] += h->first[u + 1];
  for (PetscInt k = 0; k < h->nsend; k++) h->sent[h->first[at[k] + 1]++] = k;
  PetscCall(PetscFree(at));
  PetscFunctionReturn(PETSC_SUCCESS);
}

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
  if (h->data) PetscCall((*h->exchange->destroy)(h));
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

/* Collective: the graph of the n columns `ghost`, ascending, of which other ranks have the entries. of: has the communicator, and a tag for messages */
PetscErrorCode GPUCSRHaloCreate(PetscObject of, PetscLayout cmap, PetscInt n, const PetscInt ghost[], GPUCSRHalo *halo)
{
  GPUCSRHalo h;
  PetscSF    sf;

  PetscFunctionBegin;
  PetscCall(PetscNew(&h));
  *halo = h;
  PetscCall(GPUCSRLivingAdd(&halos, &h->living, h));
  h->exchange = &GPUCSRExchange_staged;
  PetscCall(PetscObjectGetComm(of, &h->comm));
  PetscCall(PetscObjectGetNewTag(of, &h->tag));
  PetscCall(PetscSFCreate(h->comm, &sf));
  PetscCall(PetscSFSetGraphLayout(sf, cmap, n, NULL, PETSC_COPY_VALUES, ghost));
  PetscCall(PetscSFSetUp(sf));
  PetscCall(Graph(h, sf));
  PetscCall(PetscSFDestroy(&sf));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define GPUCSR_EXCHANGE(name) &GPUCSRExchange_##name,
static const GPUCSRExchange *const exchanges[] = {
#include "exchangelist.h"
};
#undef GPUCSR_EXCHANGE
#define EXCHANGES (int)(sizeof(exchanges) / sizeof(exchanges[0]))

/* The place of a word in the list; EXCHANGES for auto, more for an unknown word */
static PetscErrorCode Find(const char word[], int *k)
{
  PetscBool same = PETSC_FALSE;

  PetscFunctionBegin;
  for (*k = 0; *k < EXCHANGES && !same; *k += same ? 0 : 1) PetscCall(PetscStrcasecmp(word, exchanges[*k]->name, &same));
  if (!same) PetscCall(PetscStrcasecmp(word, "auto", &same));
  if (!same) *k = EXCHANGES + 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Errors if word is no value of -mat_gpucsr_halo */
PetscErrorCode GPUCSRHaloWordCheck(Mat A, const char word[])
{
  char list[128] = "auto";
  int  k;

  PetscFunctionBegin;
  PetscCall(Find(word, &k));
  for (int q = 0; q < EXCHANGES; q++) {
    PetscCall(PetscStrlcat(list, ", ", sizeof(list)));
    PetscCall(PetscStrlcat(list, exchanges[q]->name, sizeof(list)));
  }
  PetscCheck(k <= EXCHANGES, PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_UNKNOWN_TYPE, "-mat_gpucsr_halo %s: must be one of %s", word, list);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: sets up an exchange, and its peers; an error is an error on all ranks, with its reason in why. distinct: each rank must have a device of its own */
static PetscErrorCode Take(GPUCSRHalo h, const GPUCSRExchange *exchange, PetscBool distinct, PetscErrorCode *ierr)
{
  GPUCSRAttempt attempt = {.error = PETSC_ERR_SUP};

  PetscFunctionBegin;
  if (exchange->peers && GPUCSR_SCALAR_IS_DOUBLE) PetscCall(GPUCSRPeersCreate(h->comm, h->dev, &h->peers));
  if (exchange->peers && !GPUCSR_SCALAR_IS_DOUBLE) PetscCall(PetscStrncpy(h->why, "this PETSc does not compute with real double numbers", sizeof(h->why)));
  else if (h->peers && !h->peers->all) PetscCall(PetscStrncpy(h->why, h->peers->why, sizeof(h->why)));
  else if (h->peers && distinct && h->peers->shared) PetscCall(PetscStrncpy(h->why, "ranks share a device, where a waiting launch blocks the other ranks' launches", sizeof(h->why)));
  else {
    h->exchange   = exchange;
    attempt.error = PETSC_SUCCESS;
    if (exchange->together) GPUCSRTry(&attempt, (*exchange->setup)(h));
    if (attempt.error) PetscCall(PetscStrncpy(h->why, attempt.message, sizeof(h->why)));
  }
  *ierr = attempt.error;
  if (*ierr) PetscCall(Drop(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Does the exchange no longer work on this rank? A failed check is an answer, not an error */
PetscErrorCode GPUCSRHaloBroken(GPUCSRHalo h, PetscBool *broken)
{
  GPUCSRAttempt attempt = {0};

  PetscFunctionBegin;
  if (h->exchange->check) GPUCSRTry(&attempt, (*h->exchange->check)(h));
  *broken = (PetscBool)(attempt.error != PETSC_SUCCESS);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The version of this library as a number: ranks of different versions differ in their exchanges. Volatile: a test changes the bytes of the file */
static int Library(void)
{
  static const volatile char name[] = "libpetscgpucsr " PETSCGPUCSR_VERSION;
  unsigned                   n      = 0;

  for (size_t k = 0; k < sizeof(name); k++) n = 31 * n + (unsigned char)name[k];
  return (int)(n % INT_MAX);
}

/*
  Collective: sets up the exchange that the word asks for. auto: peer if each rank has a device of its own and devices address each other's memory;
  else staged. Errors are errors on all ranks. dev: the device of this rank's products; NULL: products use host memory. GPUCSRHaloSetUp() does the rank's
  own part.
*/
PetscErrorCode GPUCSRHaloChoose(GPUCSRHalo h, GPUCSRDevice dev, const char word[])
{
  static PetscInt64 made;
  PetscErrorCode    ierr = PETSC_SUCCESS;
  PetscMPIInt       size;
  int               k, least[5], device = dev && dev->ops->kernels;

  PetscFunctionBegin;
  PetscCall(Drop(h));
  h->made   = ++made;
  h->dev    = dev;
  h->why[0] = 0;
  PetscCall(Find(word, &k));
  PetscCallMPI(MPI_Comm_size(h->comm, &size));
  least[0] = k;
  least[1] = -k;
  least[2] = device;
  least[3] = Library();
  least[4] = -least[3];
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, least, 5, MPI_INT, MPI_MIN, h->comm));
  PetscCheck(least[3] == -least[4], h->comm, PETSC_ERR_ARG_INCOMP, "The ranks have loaded libpetscgpucsr.so of different versions, this one %s: it must be the same on all", PETSCGPUCSR_VERSION);
  PetscCheck(least[0] == -least[1], h->comm, PETSC_ERR_ARG_INCOMP, "-mat_gpucsr_halo is not the same on all ranks: it must be");
  if (k == EXCHANGES && (!least[2] || size == 1)) PetscCall(PetscStrncpy(h->why, size == 1 ? "there is one rank" : "a rank computes on the host", sizeof(h->why)));
  else {
    const PetscBool any = (PetscBool)(k == EXCHANGES);

    PetscCall(Take(h, any ? &GPUCSRExchange_peer : exchanges[k], any, &ierr));
    PetscCheck(!ierr || any, h->comm, ierr, "-mat_gpucsr_halo %s: %s", word, h->why);
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
  for (PetscInt k = 0; k < h->nsend; k++) to[k] = x ? x[h->index[k]] : (PetscScalar)NAN;
}

void GPUCSRHaloSums(GPUCSRHalo h, const PetscScalar *from, PetscScalar *to, PetscBool add)
{
  for (PetscInt u = 0; u < h->nunique; u++) {
    PetscScalar sum = 0;

    for (PetscInt k = h->first[u]; k < h->first[u + 1]; k++) sum += from[h->sent[k]];
    if (add) to[h->unique[u]] += sum;
    else to[u] = sum;
  }
}

/* This rank's buffers, on the device of its products */
PetscErrorCode GPUCSRHaloSetUp(GPUCSRHalo h, GPUCSRDevice dev)
{
  PetscFunctionBegin;
  if (h->exchange->together) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Undo(h));
  h->dev = dev;
  PetscCall((*h->exchange->setup)(h));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRHaloDestroy(GPUCSRHalo *halo)
{
  GPUCSRHalo h = *halo;

  PetscFunctionBegin;
  if (!h) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRLivingRemove(&h->living));
  PetscCall(Drop(h));
  PetscCall(PetscFree2(h->to.rank, h->to.offset));
  PetscCall(PetscFree2(h->from.rank, h->from.offset));
  PetscCall(PetscFree4(h->index, h->unique, h->first, h->sent));
  PetscCall(PetscFree(*halo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

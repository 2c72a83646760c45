/*
  Contributions of several ranks: each goes to the rank that has its row. MATAIJ makes the pattern. Each rank then sorts its list, followed by the received contributions in the order of ranks, once for
  each block. Values travel by MPI between arrays of the host.
*/
#include "assembly.h"

static size_t Sent(const GPUCSRCOORanks *r)
{
  return r->tofirst ? (size_t)r->tofirst[r->nto] : 0;
}

static size_t Received(const GPUCSRCOORanks *r)
{
  return r->fromfirst ? (size_t)r->fromfirst[r->nfrom] : 0;
}

/* Frees the memory on the device */
PetscErrorCode GPUCSRCOORanksRelease(GPUCSRCOO *c)
{
  GPUCSRCOORanks *r = &c->ranks;

  PetscFunctionBegin;
  if (!c->dev) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRFree(c->dev, sizeof(int32_t) * Sent(r), &r->dsent));
  PetscCall(GPUCSRFree(c->dev, sizeof(double) * Sent(r), &r->dout));
  PetscCall(GPUCSRFree(c->dev, sizeof(double) * Received(r), &r->din));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRCOORanksDestroy(GPUCSRCOO *c)
{
  GPUCSRCOORanks *r = &c->ranks;

  PetscFunctionBegin;
  PetscCall(PetscFree(r->out));
  PetscCall(PetscFree(r->in));
  PetscCall(PetscFree(r->to));
  PetscCall(PetscFree(r->from));
  PetscCall(PetscFree(r->tofirst));
  PetscCall(PetscFree(r->fromfirst));
  PetscCall(PetscFree(r->sent));
  PetscCall(PetscFree(r->request));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Ranks with contributions, and where each rank's begin */
static PetscErrorCode Partners(PetscMPIInt size, const PetscInt64 *count, PetscMPIInt *n, PetscMPIInt **rank, PetscCount **first)
{
  PetscFunctionBegin;
  *n = 0;
  for (PetscMPIInt q = 0; q < size; q++) *n += count[q] > 0;
  PetscCall(PetscMalloc1((size_t)*n, rank));
  PetscCall(PetscCalloc1((size_t)*n + 1, first));
  *n = 0;
  for (PetscMPIInt q = 0; q < size; q++) {
    if (!count[q]) continue;
    PetscCheck(count[q] <= INT32_MAX, PETSC_COMM_SELF, PETSC_ERR_SUP, "%" PetscInt64_FMT " contributions for one other rank do not fit a message", count[q]);
    (*rank)[*n]      = q;
    (*first)[*n + 1] = (*first)[*n] + (PetscCount)count[q];
    (*n)++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* out to the ranks, in from the ranks */
static PetscErrorCode Travel(GPUCSRCOO *c, const void *out, void *in, MPI_Datatype type, size_t size)
{
  GPUCSRCOORanks *r = &c->ranks;

  PetscFunctionBegin;
  for (PetscMPIInt q = 0; q < r->nfrom; q++) PetscCallMPI(MPI_Irecv((char *)in + size * (size_t)r->fromfirst[q], (PetscMPIInt)(r->fromfirst[q + 1] - r->fromfirst[q]), type, r->from[q], c->tag, c->comm, r->request + q));
  for (PetscMPIInt q = 0; q < r->nto; q++) PetscCallMPI(MPI_Isend((const char *)out + size * (size_t)r->tofirst[q], (PetscMPIInt)(r->tofirst[q + 1] - r->tofirst[q]), type, r->to[q], c->tag, c->comm, r->request + r->nfrom + q));
  PetscCallMPI(MPI_Waitall(r->nfrom + r->nto, r->request, MPI_STATUSES_IGNORE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values for other ranks, from the device */
PetscErrorCode GPUCSRCOOPack(GPUCSRCOO *c, const double *dv)
{
  GPUCSRCOORanks *r    = &c->ranks;
  GPUCSRDevice    dev  = c->dev;
  const size_t    sent = Sent(r);

  PetscFunctionBegin;
  if (!sent) PetscFunctionReturn(PETSC_SUCCESS);
  if (!r->dout) { /* the last of the two */
    if (!r->dsent) PetscCall(GPUCSRMalloc(dev, sizeof(int32_t) * sent, "contributions for other ranks", &r->dsent));
    PetscCall(GPUCSRUpload(dev, r->dsent, GPUCSR_INT32, r->sent, GPUCSR_INT32, sent, PETSC_FALSE, dev->stream, NULL));
    PetscCall(GPUCSRMalloc(dev, sizeof(double) * sent, "contributions for other ranks", &r->dout));
  }
  PetscCall((*GPUCSRHelpers(dev)->gather)(dev, (int)sent, GPUCSR_DOUBLE, (const int32_t *)r->dsent, dv, r->dout, dev->stream));
  PetscCall(GPUCSRDownload(dev, r->out, GPUCSR_DOUBLE, r->dout, GPUCSR_DOUBLE, sent, PETSC_FALSE, dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From the host; v NULL: zeros */
void GPUCSRCOOPackHost(GPUCSRCOO *c, const PetscScalar *v)
{
  for (size_t k = 0; k < Sent(&c->ranks); k++) c->ranks.out[k] = v ? v[c->ranks.sent[k]] : 0;
}

PetscErrorCode GPUCSRCOOUnpack(GPUCSRCOO *c)
{
  GPUCSRCOORanks *r = &c->ranks;

  PetscFunctionBegin;
  if (!Received(r)) PetscFunctionReturn(PETSC_SUCCESS);
  if (!r->din) PetscCall(GPUCSRMalloc(c->dev, sizeof(double) * Received(r), "contributions of other ranks", &r->din));
  PetscCall(GPUCSRUpload(c->dev, r->din, GPUCSR_DOUBLE, r->in, GPUCSR_DOUBLE, Received(r), PETSC_FALSE, c->dev->stream, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective */
PetscErrorCode GPUCSRCOOExchange(GPUCSRCOO *c)
{
  PetscFunctionBegin;
  PetscCall(Travel(c, c->ranks.out, c->ranks.in, MPIU_SCALAR, sizeof(PetscScalar)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Who sends what to whom; i and j grow by the received contributions. Entries of bad indices were the parent's error */
static PetscErrorCode Schedule(Mat A, GPUCSRCOO *c, PetscInt **i, PetscInt **j, PetscCount *n)
{
  GPUCSRCOORanks   *r = &c->ranks;
  PetscMPIInt       owner;
  PetscInt64       *to, *from;
  PetscInt         *out, *old[2] = {*i, *j}, **grown[2] = {i, j};
  PetscCount        sent, received, *next;
  const PetscMPIInt size = GPUCSRSizeOf(c->comm);

  PetscFunctionBegin;
  PetscCall(PetscCalloc2((size_t)size, &to, (size_t)size, &from));
  PetscCall(PetscCalloc1((size_t)size, &next));
  for (int pass = 0; pass < 2; pass++) {
    for (PetscCount k = 0; k < c->n; k++) {
      const PetscInt row = (*i)[k];

      if (row < 0 || (*j)[k] < 0 || (row >= A->rmap->rstart && row < A->rmap->rend)) continue;
      PetscCall(PetscLayoutFindOwner(A->rmap, row, &owner));
      if (pass) r->sent[next[owner]++] = (int32_t)k;
      else to[owner]++;
    }
    if (pass) break;
    PetscCallMPI(MPI_Alltoall(to, 1, MPIU_INT64, from, 1, MPIU_INT64, c->comm));
    PetscCall(Partners(size, to, &r->nto, &r->to, &r->tofirst));
    PetscCall(Partners(size, from, &r->nfrom, &r->from, &r->fromfirst));
    for (PetscMPIInt q = 0; q < r->nto; q++) next[r->to[q]] = r->tofirst[q];
    PetscCall(PetscMalloc1((size_t)r->tofirst[r->nto], &r->sent));
  }
  PetscCall(PetscFree2(to, from));
  PetscCall(PetscFree(next));
  sent     = r->tofirst[r->nto];
  received = r->fromfirst[r->nfrom];
  PetscCall(PetscMalloc1((size_t)sent, &r->out));
  PetscCall(PetscMalloc1((size_t)received, &r->in));
  PetscCall(PetscMalloc1((size_t)(r->nto + r->nfrom), &r->request));
  *n = c->n + received;
  for (int k = 0; k < 2; k++) {
    PetscCall(PetscMalloc1((size_t)sent, &out));
    PetscCall(PetscMalloc1((size_t)*n, grown[k]));
    PetscCall(PetscArraycpy(*grown[k], old[k], (size_t)c->n));
    for (PetscCount q = 0; q < sent; q++) out[q] = old[k][r->sent[q]];
    PetscCall(Travel(c, out, *grown[k] + c->n, MPIU_INT, sizeof(PetscInt)));
    PetscCall(PetscFree(out));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The coordinates of block b in its own numbers; coordinates of the other block or of other ranks are skipped */
static PetscErrorCode BlockCoordinates(Mat A, int b, PetscCount n, const PetscInt *i, const PetscInt *j, int32_t *bi, int32_t *bj)
{
  const PetscInt *garray;
  PetscInt        r0 = A->rmap->rstart, r1 = A->rmap->rend, c0 = A->cmap->rstart, c1 = A->cmap->rend, at;
  Mat             Ad, Ao;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &Ad, &Ao, &garray));
  for (PetscCount k = 0; k < n; k++) {
    const PetscBool diagonal = (PetscBool)(j[k] >= c0 && j[k] < c1);

    bi[k] = bj[k] = -1;
    if (j[k] < 0 || i[k] < r0 || i[k] >= r1 || diagonal == (PetscBool)(b == 1)) continue;
    bi[k] = (int32_t)(i[k] - r0);
    bj[k] = (int32_t)(j[k] - c0);
    if (!b) continue;
    PetscCall(PetscFindInt(j[k], Ao->cmap->n, garray, &at));
    bj[k] = (int32_t)at;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sorts for one block on a device, or with the host in its place */
static PetscErrorCode SortBlock(Mat B, GPUCSRDevice dev, PetscCount n, int32_t *index[2], GPUCSRCOOBlock *b)
{
  GPUCSRCoordinates list  = {.n = (int64_t)n, .type = GPUCSR_INT32};
  const size_t      bytes = sizeof(int32_t) * (size_t)n;
  void             *d[2]  = {NULL, NULL};
  GPUCSRStorage     csr   = {.dev = NULL};
  const PetscInt   *i;
  PetscErrorCode    ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  for (int k = 0; k < 2 && !ierr; k++) {
    ierr = GPUCSRMalloc(dev, bytes, "coordinates", &d[k]);
    if (!ierr) ierr = GPUCSRUpload(dev, d[k], GPUCSR_INT32, index[k], GPUCSR_INT32, (size_t)n, PETSC_FALSE, dev->stream, NULL);
  }
  list.i = d[0];
  list.j = d[1];
  if (!ierr) ierr = MatGPUCSRCOOBlock_Private(B, dev, &list, b, &csr);
  for (int k = 0; k < 2; k++) PetscCall(GPUCSRFree(dev, bytes, &d[k]));
  if (csr.dev) PetscCall(GPUCSRStorageDestroy(&csr));
  PetscCall(ierr);
  PetscCall(MatSeqAIJGetCSRAndMemType(B, &i, NULL, NULL, NULL));
  PetscCheck(b->sum.bad < 0 && b->sum.nnz == (int64_t)i[B->rmap->n], PETSC_COMM_SELF, PETSC_ERR_PLIB, "MATAIJ's pattern has %" PetscInt_FMT " entries, the sorted list has %lld", i[B->rmap->n], (long long)b->sum.nnz);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SortBlocks(Mat A, GPUCSRCOO *c, PetscCount n, const PetscInt *i, const PetscInt *j)
{
  GPUCSRDevice  host;
  GPUCSRAttempt attempt = {.error = PETSC_ERR_GPU};
  int32_t      *index[2];
  char          why[128];
  Mat           block[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  PetscCall(PetscMalloc2((size_t)n, &index[0], (size_t)n, &index[1]));
  for (int b = 0; b < 2; b++) {
    PetscCall(BlockCoordinates(A, b, n, i, j, index[0], index[1]));
    if (c->dev) GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, SortBlock(block[b], c->dev, n, index, &c->block[b]));
    if (!attempt.error) continue;
    PetscCall(MatGPUCSRKept_Private(A, NULL, &attempt));
    PetscCall(GPUCSRCOOBlockDestroy(&c->block[b]));
    PetscCall(GPUCSRDeviceOpen("host", &host, why, sizeof(why)));
    PetscCall(SortBlock(block[b], host, n, index, &c->block[b]));
  }
  PetscCall(PetscFree2(index[0], index[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: MATAIJ's pattern, and contributions of all ranks if one has a device. i and j are copies */
PetscErrorCode MatGPUCSRCOORanks_Private(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  Mat_GPUCSR    *g = (Mat_GPUCSR *)A->spptr;
  PetscInt      *copy[2];
  PetscCount     all = 0;
  GPUCSRDevice   dev;
  GPUCSRBool     unused;
  GPUCSRCOO     *c;
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;
  int            have[2] = {0, 0};

  PetscFunctionBegin;
  PetscCall(PetscMalloc2((size_t)n, &copy[0], (size_t)n, &copy[1]));
  PetscCall(PetscArraycpy(copy[0], i, (size_t)n));
  PetscCall(PetscArraycpy(copy[1], j, (size_t)n));
  ierr = (*g->preallocatecoo)(A, n, copy[0], copy[1]);
  PetscCall(PetscFree2(copy[0], copy[1]));
  PetscCall(ierr);
  PetscCall((*g->kind->configured)(A)); /* the blocks are new */
  PetscCall(MatGPUCSRCOODevice_Private(A, NULL, &dev, &unused));
  if (!strcmp(g->config.request.format, "aij") || (dev && !dev->ops->separate)) dev = NULL;
  have[0] = dev ? 1 : 0;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, have, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)A)));
  if (!have[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRCOONew_Private(A, dev, n, &c));
  PetscCall(PetscObjectGetNewTag((PetscObject)A, &c->tag));
  c->nblocks = 2;
  copy[0]    = i;
  copy[1]    = j;
  PetscCall(Schedule(A, c, &copy[0], &copy[1], &all));
  have[1] = c->ranks.nto > 0;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, have, 2, MPI_INT, MPI_MAX, c->comm));
  c->travels = (PetscBool)(have[1] > 0);
  GPUCSRTry(&attempt, SortBlocks(A, c, all, copy[0], copy[1]));
  PetscCall(PetscFree(copy[0]));
  PetscCall(PetscFree(copy[1]));
  PetscCall(GPUCSRAttemptAgree(&attempt, c->comm, dev));
  PetscCheck(!attempt.error, c->comm, attempt.error, "%s", attempt.message);
  PetscFunctionReturn(PETSC_SUCCESS);
}

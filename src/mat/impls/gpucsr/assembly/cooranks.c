/*
  Contributions of several ranks: each goes to the rank that has its row. MATAIJ makes the pattern. Each rank then sorts its list, followed by the received contributions in the order of ranks, once for
  each block. Values travel between arrays of the host.
*/
#include "assembly.h"

/* Frees the memory on the device */
PetscErrorCode GPUCSRCOORanksRelease(GPUCSRCOO *c)
{
  GPUCSRCOORanks *r = &c->ranks;

  PetscFunctionBegin;
  if (!c->dev) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRFree(c->dev, sizeof(int32_t) * (size_t)r->nsent, &r->dsent));
  PetscCall(GPUCSRFree(c->dev, sizeof(double) * (size_t)r->nsent, &r->dout));
  PetscCall(GPUCSRFree(c->dev, sizeof(double) * (size_t)r->nreceived, &r->din));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: out to the ranks, in from the ranks */
PetscErrorCode GPUCSRCOOTravel(PetscSF sf, MPI_Datatype type, const void *out, void *in)
{
  PetscFunctionBegin;
  PetscCall(PetscSFReduceBegin(sf, type, out, in, MPI_REPLACE));
  PetscCall(PetscSFReduceEnd(sf, type, out, in, MPI_REPLACE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values for other ranks, from the device */
PetscErrorCode GPUCSRCOOPack(GPUCSRCOO *c, const double *dv)
{
  GPUCSRCOORanks *r    = &c->ranks;
  GPUCSRDevice    dev  = c->dev;
  const size_t    sent = (size_t)r->nsent;

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
  for (PetscInt k = 0; k < c->ranks.nsent; k++) c->ranks.out[k] = v ? v[c->ranks.sent[k]] : 0;
}

PetscErrorCode GPUCSRCOOUnpack(GPUCSRCOO *c)
{
  GPUCSRCOORanks *r = &c->ranks;

  PetscFunctionBegin;
  if (!r->nreceived) PetscFunctionReturn(PETSC_SUCCESS);
  if (!r->din) PetscCall(GPUCSRMalloc(c->dev, sizeof(double) * (size_t)r->nreceived, "contributions of other ranks", &r->din));
  PetscCall(GPUCSRUpload(c->dev, r->din, GPUCSR_DOUBLE, r->in, GPUCSR_DOUBLE, (size_t)r->nreceived, PETSC_FALSE, c->dev->stream, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Who sends what to whom: received contributions are in the order of ranks. Entries of bad indices were the parent's error */
static PetscErrorCode Schedule(Mat A, GPUCSRCOO *c, const PetscInt i[], const PetscInt j[])
{
  GPUCSRCOORanks   *r    = &c->ranks;
  const PetscMPIInt size = GPUCSRSizeOf(c->comm);
  PetscInt64       *to, *from, all = 0, most; /* counts for and of each rank, then the places of the next at the receivers, and of the first of each sender */
  PetscSFNode      *at = NULL;
  PetscInt          n  = 0;
  PetscMPIInt       owner;

  PetscFunctionBegin;
  PetscCall(PetscCalloc2((size_t)size, &to, (size_t)size, &from));
  for (int pass = 0; pass < 2; pass++) {
    for (PetscCount k = 0; k < c->n; k++) {
      if (i[k] < 0 || j[k] < 0 || (i[k] >= A->rmap->rstart && i[k] < A->rmap->rend)) continue;
      PetscCall(PetscLayoutFindOwner(A->rmap, i[k], &owner));
      if (pass) {
        r->sent[n] = (int32_t)k;
        at[n++]    = (PetscSFNode){owner, (PetscInt)to[owner]++};
      } else to[owner]++;
    }
    if (pass) break;
    for (PetscMPIInt q = 0; q < size; q++) r->nsent += (PetscInt)to[q];
    PetscCallMPI(MPI_Alltoall(to, 1, MPIU_INT64, from, 1, MPIU_INT64, c->comm));
    for (PetscMPIInt q = 0; q < size; q++) {
      all += from[q];
      from[q] = all - from[q];
    }
    PetscCallMPI(MPI_Alltoall(from, 1, MPIU_INT64, to, 1, MPIU_INT64, c->comm));
    most = all;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPIU_INT64, MPI_MAX, c->comm));
    PetscCheck(most <= (PetscInt64)PETSC_MAX_INT, c->comm, PETSC_ERR_SUP, "A rank receives %" PetscInt64_FMT " contributions of other ranks, more than its indices count", most);
    r->nreceived = (PetscInt)all;
    PetscCall(PetscMalloc1((size_t)r->nsent, &r->sent));
    PetscCall(PetscMalloc1((size_t)r->nsent, &at));
  }
  PetscCall(PetscFree2(to, from));
  PetscCall(PetscMalloc1((size_t)r->nsent, &r->out));
  PetscCall(PetscMalloc1((size_t)r->nreceived, &r->in));
  PetscCall(PetscSFCreate(c->comm, &r->sf));
  PetscCall(PetscSFSetGraph(r->sf, r->nreceived, r->nsent, NULL, PETSC_OWN_POINTER, at, PETSC_OWN_POINTER));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: all[] = the rank's own numbers, and those of received contributions; the caller frees it */
static PetscErrorCode Grow(const GPUCSRCOO *c, const PetscInt own[], PetscInt **all)
{
  const GPUCSRCOORanks *r = &c->ranks;
  PetscInt             *out;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1((size_t)r->nsent, &out));
  for (PetscInt k = 0; k < r->nsent; k++) out[k] = own[r->sent[k]];
  PetscCall(PetscMalloc1((size_t)c->n + (size_t)r->nreceived, all));
  PetscCall(PetscArraycpy(*all, own, (size_t)c->n));
  PetscCall(GPUCSRCOOTravel(r->sf, MPIU_INT, out, *all + c->n));
  PetscCall(PetscFree(out));
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
  GPUCSRDevice   dev;
  GPUCSRBool     unused;
  GPUCSRCOO     *c;
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;
  int            have;

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
  have = dev != NULL;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &have, 1, MPI_INT, MPI_MAX, PetscObjectComm((PetscObject)A)));
  if (!have) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRCOONew_Private(A, dev, n, &c));
  c->nblocks = 2;
  PetscCall(Schedule(A, c, i, j));
  PetscCall(Grow(c, i, &copy[0]));
  PetscCall(Grow(c, j, &copy[1]));
  GPUCSRTry(&attempt, SortBlocks(A, c, n + c->ranks.nreceived, copy[0], copy[1]));
  PetscCall(PetscFree(copy[0]));
  PetscCall(PetscFree(copy[1]));
  PetscCall(GPUCSRAttemptAgree(&attempt, c->comm, dev));
  PetscCheck(!attempt.error, c->comm, attempt.error, "%s", attempt.message);
  PetscFunctionReturn(PETSC_SUCCESS);
}

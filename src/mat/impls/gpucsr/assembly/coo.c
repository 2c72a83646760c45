/*
  MatSetValuesCOO() of both types: values, on the host or the device, are summed on the device (blackbox/assemble/). Each block of a matrix that cannot be
  summed there is summed on the host, in the same order. A pattern that MATAIJ has made is filled by MATAIJ.
*/
#include "assembly.h"

static const char composed[] = "GPUCSRCOO";

/* Frees the memory on the device */
static PetscErrorCode COORanksRelease(GPUCSRCOO *c)
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
static PetscErrorCode COOTravel(PetscSF sf, MPI_Datatype type, const void *out, void *in)
{
  PetscFunctionBegin;
  PetscCall(PetscSFReduceBegin(sf, type, out, in, MPI_REPLACE));
  PetscCall(PetscSFReduceEnd(sf, type, out, in, MPI_REPLACE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values for other ranks, from the device */
static PetscErrorCode COOPack(GPUCSRCOO *c, const double *dv)
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
static void COOPackHost(GPUCSRCOO *c, const PetscScalar *v)
{
  for (PetscInt k = 0; k < c->ranks.nsent; k++) c->ranks.out[k] = v ? v[c->ranks.sent[k]] : 0;
}

static PetscErrorCode COOUnpack(GPUCSRCOO *c)
{
  GPUCSRCOORanks *r = &c->ranks;

  PetscFunctionBegin;
  if (!r->nreceived) PetscFunctionReturn(PETSC_SUCCESS);
  if (!r->din) PetscCall(GPUCSRMalloc(c->dev, sizeof(double) * (size_t)r->nreceived, "contributions of other ranks", &r->din));
  PetscCall(GPUCSRUpload(c->dev, r->din, GPUCSR_DOUBLE, r->in, GPUCSR_DOUBLE, (size_t)r->nreceived, PETSC_FALSE, c->dev->stream, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Frees the memory on the device */
static PetscErrorCode COORelease(void *data)
{
  GPUCSRCOO *c = (GPUCSRCOO *)data;

  PetscFunctionBegin;
  PetscCall(COORanksRelease(c));
  for (int b = 0; b < c->nblocks; b++) PetscCall(GPUCSRSumDestroy(&c->block[b].sum));
  c->dev = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRLivingList living = {GPUCSR_FINAL_PRODUCT, COORelease, NULL};

static PetscErrorCode COODestroy(GPUCSRContext *data)
{
#if GPUCSR_CONTAINER_GIVES_PLACE
  GPUCSRCOO *c = *(GPUCSRCOO **)data;
#else
  GPUCSRCOO *c = (GPUCSRCOO *)data;
#endif

  PetscFunctionBegin;
  PetscCall(COORanksRelease(c));
  PetscCall(PetscSFDestroy(&c->ranks.sf));
  PetscCall(PetscFree(c->ranks.sent));
  PetscCall(PetscFree(c->ranks.out));
  PetscCall(PetscFree(c->ranks.in));
  for (int b = 0; b < c->nblocks; b++) PetscCall(GPUCSRCOOBlockDestroy(&c->block[b]));
  PetscCall(GPUCSRLivingRemove(&c->living));
  PetscCall(PetscFree(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode COOGet(Mat A, GPUCSRCOO **c)
{
  PetscContainer container;

  PetscFunctionBegin;
  *c = NULL;
  PetscCall(PetscObjectQuery((PetscObject)A, composed, (PetscObject *)&container));
  if (container) PetscCall(PetscContainerGetPointer(container, (void **)c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRCOORemove_Private(Mat A)
{
  return PetscObjectCompose((PetscObject)A, composed, NULL);
}

/* Replaces the matrix' older one */
PetscErrorCode MatGPUCSRCOONew_Private(Mat A, GPUCSRDevice dev, PetscCount n, GPUCSRCOO **coo)
{
  const Mat_GPUCSR *g = (Mat_GPUCSR *)A->spptr;
  PetscContainer    container;
  GPUCSRCOO        *c;

  PetscFunctionBegin;
  PetscCall(PetscNew(&c));
  c->preallocate = g->preallocatecoo;
  c->set         = g->setvaluescoo;
  c->comm        = PetscObjectComm((PetscObject)A);
  c->dev         = dev;
  c->n           = n;
  c->nblocks     = 1;
  PetscCall(GPUCSRLivingAdd(&living, &c->living, c));
  PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &container));
  PetscCall(PetscContainerSetPointer(container, c));
  PetscCall(PetscContainerSetDestroyCompat(container, COODestroy));
  PetscCall(PetscObjectCompose((PetscObject)A, composed, (PetscObject)container));
  PetscCall(PetscObjectDereference((PetscObject)container));
  *coo = c;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B, a duplicate of A, is filled by the same coordinates. MATAIJ keeps its own in a duplicate from PETSc 3.20 on */
PetscErrorCode MatGPUCSRCOOShare_Private(Mat A, Mat B)
{
  PetscObject container;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)A, composed, &container));
  if (container) PetscCall(PetscObjectCompose((PetscObject)B, composed, container));
  PetscCall(PetscObjectQuery((PetscObject)B, "__PETSc_MatCOOStruct_Host", &container));
  ((Mat_GPUCSR *)B->spptr)->contributions = container ? ((Mat_GPUCSR *)A->spptr)->contributions : -1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* dev: the matrix' GPU, NULL: the matrix uses none. ondevice: the program's memory is on this GPU */
PetscErrorCode MatGPUCSRCOODevice_Private(Mat A, const void *p, GPUCSRDevice *dev, GPUCSRBool *ondevice)
{
  char why[512];

  PetscFunctionBegin;
  *dev      = NULL;
  *ondevice = PETSC_FALSE;
  if (GPUCSR_SCALAR_IS_DOUBLE && MatGPUCSRBackendOf(A) != MAT_GPUCSR_BACKEND_HOST) PetscCall(GPUCSRDeviceOpen("cuda", dev, why, sizeof(why)));
  PetscCall(GPUCSRHolds(*dev, p, ondevice));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After an attempt: an error leaves the work to the host, or is raised. dev: a failed device, not used again; NULL: no device has failed */
PetscErrorCode MatGPUCSRKept_Private(Mat A, GPUCSRDevice dev, const GPUCSRAttempt *t)
{
  PetscFunctionBegin;
  if (!t->error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(t->error == PETSC_ERR_MEM || t->error == PETSC_ERR_GPU || t->error == PETSC_ERR_SUP, PETSC_COMM_SELF, t->error, "%s", t->message);
  PetscCall(PetscInfo(A, "The host goes on, because %s\n", t->message));
  if (dev && t->error == PETSC_ERR_GPU) PetscCall(PetscStrncpy(dev->failed, t->message, sizeof(dev->failed)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The values of the list */
typedef struct {
  GPUCSRDevice       dev;
  PetscCount         n;
  const PetscScalar *v; /* the program's array; NULL: zeros */
  GPUCSRBool         ondevice;
  const double      *dv; /* on the device; NULL: not there */
  void              *sent;
  size_t             bytes;
  PetscScalar       *own; /* a copy on the host */
} Values;

/* The program's work on its array, on any stream, is done when the array is read */
static PetscErrorCode ValuesOnDevice(Values *x)
{
  PetscFunctionBegin;
  if (x->ondevice) {
    PetscCall(GPUCSRDeviceSynchronize(x->dev));
    x->dv = (const double *)x->v;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  x->bytes = sizeof(double) * (size_t)x->n;
  PetscCall(GPUCSRMalloc(x->dev, x->bytes, "contributions", &x->sent));
  if (x->v) PetscCall(GPUCSRUpload(x->dev, x->sent, GPUCSR_DOUBLE, x->v, GPUCSR_DOUBLE, (size_t)x->n, PETSC_FALSE, x->dev->stream, NULL));
  else PetscCall((*x->dev->ops->zero)(x->dev->id, x->sent, x->bytes, x->dev->stream));
  x->dv = (const double *)x->sent;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ValuesOnHost(Values *x, const PetscScalar **host)
{
  PetscFunctionBegin;
  *host = x->own ? x->own : x->v;
  if (x->own || (x->v && !x->ondevice)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscCalloc1((size_t)x->n + 1, &x->own));
  *host = x->own;
  if (!x->v) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRDeviceSynchronize(x->dev));
  PetscCall(GPUCSRDownload(x->dev, x->own, GPUCSR_DOUBLE, x->v, GPUCSR_DOUBLE, (size_t)x->n, PETSC_FALSE, x->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SumOnDevice(Mat A, const GPUCSRCOO *c, int b, const double *dv, PetscBool add)
{
  Mat_SeqGPUCSR   *g   = (Mat_SeqGPUCSR *)A->spptr;
  const GPUCSRSum *sum = &c->block[b].sum;
  GPUCSRStorage   *csr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRMirror_Private(A, sum->dev, add, &csr));
  g->mirror.values = -1;
  PetscCall((*GPUCSRAssembleOf(sum->dev)->sum)(sum, dv, (int64_t)c->n, (const double *)c->ranks.din, add, csr));
  g->mirror.assembling = PETSC_TRUE; /* MatSetValuesCOO() assembles next, which changes no value */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same sums by the host */
static PetscErrorCode SumOnHost(Mat A, const GPUCSRCOO *c, int b, const PetscScalar *v, PetscBool add)
{
  const GPUCSRCOOBlock *s     = &c->block[b];
  const PetscBool       there = (PetscBool)(s->sum.dev && !s->sum.dev->ops->separate);
  const int32_t        *first = there ? s->sum.first : s->first, *order = there ? s->sum.order[0] : s->order;
  PetscScalar          *a;

  PetscFunctionBegin;
  PetscCheck(first, PETSC_COMM_SELF, PETSC_ERR_GPU, "The device is gone, and with it the order of contributions: call MatSetPreallocationCOO() again");
  PetscCall(MatSeqAIJGetArray(A, &a));
  for (int64_t e = 0; e < s->sum.nnz; e++) {
    PetscScalar t = 0;

    for (int32_t k = first[e]; k < first[e + 1]; k++) t += order[k] < c->n ? (v ? v[order[k]] : 0) : c->ranks.in[order[k] - c->n];
    a[e] = add ? a[e] + t : t;
  }
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetBlock(Mat A, const GPUCSRCOO *c, int b, Mat B, Values *x, PetscBool add)
{
  const GPUCSRDevice dev = c->block[b].sum.dev;
  const PetscInt    *i;
  const PetscScalar *host;
  GPUCSRAttempt      attempt;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(B, &i, NULL, NULL, NULL));
  PetscCheck(i && i[B->rmap->n] == (PetscInt)c->block[b].sum.nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The pattern of the matrix has changed since MatSetPreallocationCOO(): call it again");
  PetscCall(MatGPUCSRDecide_Private(B));
  if (dev && x->dv && ((Mat_SeqGPUCSR *)B->spptr)->dev == dev && dev->ops->separate && !dev->failed[0]) {
    GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, SumOnDevice(B, c, b, x->dv, add));
    if (!attempt.error) {
      GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, MatGPUCSRWritten_Private(B));
      PetscCheck(!attempt.error || !add, PETSC_COMM_SELF, attempt.error, "The device failed while sums were on their way back into the matrix: %s", attempt.message);
    }
    PetscCall(MatGPUCSRKept_Private(B, dev, &attempt));
    if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
    if (!add) ((Mat_SeqGPUCSR *)B->spptr)->mirror.ahead = PETSC_FALSE; /* all values are new */
    PetscCall(MatGPUCSRFailed_Private(B, NULL, &attempt));
  }
  PetscCall(MatGPUCSRFetch_Private(B));
  PetscCall(ValuesOnHost(x, &host));
  PetscCall(SumOnHost(B, c, b, host, add));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective with several ranks */
static PetscErrorCode SetWith(Mat A, GPUCSRCOO *c, Values *x, PetscBool add)
{
  Mat                block[2] = {A, NULL};
  const PetscScalar *host     = NULL;
  GPUCSRAttempt      attempt;
  PetscErrorCode     ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (c->nblocks == 2) {
    PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
    ((Mat_MPIGPUCSR *)A->spptr)->quiet = PETSC_TRUE;
  }
  if (c->dev && x->dev == c->dev && !c->dev->failed[0]) {
    GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, ValuesOnDevice(x));
    PetscCall(MatGPUCSRKept_Private(A, c->dev, &attempt));
  }
  if (c->ranks.sf) { /* a rank with an error sends its buffer as it is, because other ranks wait for the message */
    attempt.error = PETSC_ERR_SUP;
    if (x->dv && x->ondevice) GPUCSRTry(&attempt, COOPack(c, x->dv));
    if (attempt.error) {
      GPUCSRKeep(&ierr, ValuesOnHost(x, &host));
      if (!ierr) COOPackHost(c, host);
    }
    PetscCall(COOTravel(c->ranks.sf, MPIU_SCALAR, c->ranks.out, c->ranks.in));
    PetscCall(ierr);
  }
  if (c->ranks.sf && x->dv) {
    GPUCSRTry(&attempt, COOUnpack(c));
    PetscCall(MatGPUCSRKept_Private(A, c->dev, &attempt));
    if (attempt.error) x->dv = NULL; /* the host has what came */
  }
  if (x->sent && x->v) MatGPUCSRValuesSent((Mat_SeqGPUCSR *)block[0]->spptr, (double)x->bytes);
  for (int b = 0; b < c->nblocks; b++) PetscCall(SetBlock(A, c, b, block[b], x, add));
  if (x->own && x->ondevice) MatGPUCSRValuesBack((Mat_SeqGPUCSR *)block[0]->spptr, sizeof(double) * (double)x->n);
  if (x->dv && x->ondevice) PetscCall((*c->dev->ops->streamsynchronize)(c->dev->id, c->dev->stream)); /* the program may change its array */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's, which reads and writes host memory */
static PetscErrorCode SetByParent(Mat A, Values *x, InsertMode mode)
{
  const PetscScalar *host = x->v;

  PetscFunctionBegin;
  PetscCheck(((Mat_GPUCSR *)A->spptr)->contributions >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix has no coordinates: call MatSetPreallocationCOO() before MatSetValuesCOO(), for a duplicate, too, if MATAIJ has made the pattern"); /* MATAIJ would read through NULL */
  PetscCheck(!x->ondevice || x->n >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Values on the device need a pattern of this type: call MatSetPreallocationCOO() after MatSetType()");
  PetscCall(MatGPUCSRFetch_Private(A));
  if (x->n >= 0) PetscCall(ValuesOnHost(x, &host));
  PetscCall((*((Mat_GPUCSR *)A->spptr)->setvaluescoo)(A, host, mode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSetValuesCOO_GPUCSR(Mat A, const PetscScalar v[], InsertMode mode)
{
  Values            x    = {.v = v};
  MPI_Comm          comm = PetscObjectComm((PetscObject)A);
  GPUCSRCOO        *c;
  GPUCSRAttempt     attempt;
  PetscErrorCode    ierr;
  const PetscMPIInt size = GPUCSRSizeOf(comm);

  PetscFunctionBegin;
  PetscCall(COOGet(A, &c));
  GPUCSRTryIf(size > 1, &attempt, MatGPUCSRCOODevice_Private(A, v, &x.dev, &x.ondevice));
  if (size > 1) PetscCall(GPUCSRAttemptAgree(&attempt, comm, x.dev)); /* or ranks would wait for contributions */
  PetscCheck(!attempt.error, comm, attempt.error, "%s", attempt.message);
  x.n  = c ? c->n : ((Mat_GPUCSR *)A->spptr)->contributions - 1;
  ierr = c ? SetWith(A, c, &x, (PetscBool)(mode == ADD_VALUES)) : SetByParent(A, &x, mode);
  if (x.sent) PetscCall(GPUCSRFree(x.dev, x.bytes, &x.sent));
  PetscCall(PetscFree(x.own));
  PetscFunctionReturn(ierr);
}

/* The matrix leaves its type; only this library knows its contributions */
static PetscErrorCode MatSetValuesCOO_Left(Mat A, const PetscScalar v[], InsertMode mode)
{
  Mat        block[2] = {A, NULL};
  GPUCSRCOO *c;

  PetscFunctionBegin;
  PetscCall(COOGet(A, &c));
  if (c->nblocks == 2) PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  if (c->ranks.sf) {
    COOPackHost(c, v);
    PetscCall(COOTravel(c->ranks.sf, MPIU_SCALAR, c->ranks.out, c->ranks.in));
  }
  for (int b = 0; b < c->nblocks; b++) PetscCall(SumOnHost(block[b], c, b, v, (PetscBool)(mode == ADD_VALUES)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetPreallocationCOO_Left(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  GPUCSRCOO *c;
  PetscErrorCode (*preallocate)(Mat, PetscCount, PetscInt[], PetscInt[]);

  PetscFunctionBegin;
  PetscCall(COOGet(A, &c));
  preallocate = c->preallocate;
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetPreallocationCOO_C", c->preallocate));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetValuesCOO_C", c->set));
  PetscCall(MatGPUCSRCOORemove_Private(A));
  PetscCall((*preallocate)(A, n, i, j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the pattern of several ranks: each contribution goes to the rank that has its row. MATAIJ makes the pattern. Each rank then sorts its list, followed by the received contributions in the order of
   ranks, once for each block */

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
  PetscCall(COOTravel(r->sf, MPIU_INT, out, *all + c->n));
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

PetscErrorCode MatGPUCSRCOOCompose_Private(Mat A, PetscBool install)
{
  Mat_GPUCSR *g = (Mat_GPUCSR *)A->spptr;
  GPUCSRCOO  *c;

  PetscFunctionBegin;
  PetscCall(COOGet(A, &c));
  if (install) {
    PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatSetPreallocationCOO_C", &g->preallocatecoo));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatSetValuesCOO_C", &g->setvaluescoo));
    if (c) { /* from an earlier life as this type */
      g->preallocatecoo = c->preallocate;
      g->setvaluescoo   = c->set;
    }
    g->contributions = A->preallocated ? 0 : -1;
  }
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetPreallocationCOO_C", install ? MatSetPreallocationCOO_GPUCSR : c ? MatSetPreallocationCOO_Left : g->preallocatecoo));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetPreallocationCOOLocal_C", install ? MatSetPreallocationCOOLocal_GPUCSR : NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetValuesCOO_C", install ? MatSetValuesCOO_GPUCSR : c ? MatSetValuesCOO_Left : g->setvaluescoo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

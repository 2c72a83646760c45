/*
  MatSetValuesCOO() of both types: values, on the host or the device, are summed on the device (blackbox/assemble/). Each block of a matrix that cannot be
  summed there is summed on the host, in the same order. A pattern that MATAIJ has made is filled by MATAIJ.
*/
#include "assembly.h"

static const char composed[] = "GPUCSRCOO";

/* Frees the memory on the device */
static PetscErrorCode COORelease(void *data)
{
  GPUCSRCOO *c = (GPUCSRCOO *)data;

  PetscFunctionBegin;
  PetscCall(GPUCSRCOORanksDestroy(c));
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
  PetscCall(COORelease(c));
  PetscCall(GPUCSRLivingRemove(&c->living));
  for (int b = 0; b < c->nblocks; b++) {
    PetscCall(PetscFree(c->block[b].first));
    PetscCall(PetscFree(c->block[b].order));
  }
  PetscCall(PetscFree(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRCOOGet_Private(Mat A, GPUCSRCOO **c)
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
  GPUCSRCOO *c;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRCOOGet_Private(A, &c));
  if (c) PetscCall(PetscObjectCompose((PetscObject)A, composed, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
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

/* B, a duplicate of A, is filled by the same coordinates */
PetscErrorCode MatGPUCSRCOOShare_Private(Mat A, Mat B)
{
  PetscObject container;

  PetscFunctionBegin;
  PetscCall(PetscObjectQuery((PetscObject)A, composed, &container));
  if (container) PetscCall(PetscObjectCompose((PetscObject)B, composed, container));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The device of a program's memory: the matrix' GPU, if it may use one, or NULL; ondevice: the memory is there */
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

/* The program's work on its array is done, on any stream: the array is on the host, or is brought there */
static PetscErrorCode ToHost(GPUCSRDevice dev, const PetscScalar *v, GPUCSRBool ondevice, PetscCount n, const PetscScalar **host, PetscScalar **own)
{
  PetscFunctionBegin;
  *host = v;
  if (!ondevice && v) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscCalloc1((size_t)n, own));
  *host = *own;
  if (!v) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRDownload(dev, *own, GPUCSR_DOUBLE, v, GPUCSR_DOUBLE, (size_t)n, PETSC_FALSE, dev->stream));
  PetscCall((*dev->ops->streamsynchronize)(dev->id, dev->stream));
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

/* The values of the list on the device */
typedef struct {
  GPUCSRDevice       dev;
  const PetscScalar *v;
  GPUCSRBool         ondevice;
  const double      *dv; /* NULL: not there */
  void              *own;
  size_t             bytes;
} Values;

static PetscErrorCode ValuesSend(Values *x, PetscCount n)
{
  PetscFunctionBegin;
  if (x->ondevice) {
    PetscCall(GPUCSRDeviceSynchronize(x->dev)); /* the program's kernels may run on any stream */
    x->dv = (const double *)x->v;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  x->bytes = sizeof(double) * (size_t)n;
  PetscCall(GPUCSRMalloc(x->dev, x->bytes, "contributions", &x->own));
  if (x->v) PetscCall(GPUCSRUpload(x->dev, x->own, GPUCSR_DOUBLE, x->v, GPUCSR_DOUBLE, (size_t)n, PETSC_FALSE, x->dev->stream, NULL));
  else PetscCall((*x->dev->ops->zero)(x->dev->id, x->own, x->bytes, x->dev->stream));
  x->dv = (const double *)x->own;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetBlocks(Mat A, const GPUCSRCOO *c, Mat block[], Values *x, PetscBool add)
{
  const PetscScalar *host = NULL;
  PetscScalar       *own  = NULL;
  GPUCSRAttempt      attempt;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  for (int b = 0; b < c->nblocks; b++) {
    const GPUCSRDevice dev = c->block[b].sum.dev;
    const PetscInt    *i;

    PetscCall(MatSeqAIJGetCSRAndMemType(block[b], &i, NULL, NULL, NULL));
    PetscCheck(i && i[block[b]->rmap->n] == (PetscInt)c->block[b].sum.nnz, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The pattern of the matrix has changed since MatSetPreallocationCOO(): call it again");
    PetscCall(MatGPUCSRDecide_Private(block[b]));
    ierr = PETSC_ERR_GPU;
    if (dev && x->dv && ((Mat_SeqGPUCSR *)block[b]->spptr)->dev == dev && dev->ops->separate) {
      ATTEMPT(A, SumOnDevice(block[b], c, b, x->dv, add), ierr, attempt);
      if (!ierr) {
        ATTEMPT(A, MatGPUCSRWritten_Private(block[b], 0), ierr, attempt);
        PetscCheck(!ierr || !add, PETSC_COMM_SELF, ierr, "The device failed while sums were on their way back into the matrix: %s", attempt.message);
      }
      PetscCheck(!ierr || ierr == PETSC_ERR_MEM || ierr == PETSC_ERR_GPU, PETSC_COMM_SELF, ierr, "%s", attempt.message);
      if (!ierr) continue;
      PetscCall(MatGPUCSRFailed_Private(block[b], NULL, &attempt));
    }
    PetscCall(MatGPUCSRFetch_Private(block[b]));
    if (!host) PetscCall(ToHost(x->dev, x->v, x->ondevice, c->n, &host, &own));
    PetscCall(SumOnHost(block[b], c, b, host, add));
  }
  PetscCall(PetscFree(own));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SetWith(Mat A, GPUCSRCOO *c, Values *x, PetscBool add)
{
  Mat            block[2] = {A, NULL};
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (c->nblocks == 2) PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  if (c->dev && x->dev == c->dev && !c->dev->failed[0]) ATTEMPT(A, ValuesSend(x, c->n), ierr, attempt);
  PetscCheck(!ierr || ierr == PETSC_ERR_MEM || ierr == PETSC_ERR_GPU, PETSC_COMM_SELF, ierr, "%s", attempt.message);
  if (ierr == PETSC_ERR_GPU) PetscCall(PetscStrncpy(c->dev->failed, attempt.message, sizeof(c->dev->failed)));
  PetscCheck(!ierr || !x->ondevice, PETSC_COMM_SELF, ierr, "The device that holds the values failed: %s", attempt.message);
  if (c->travels) PetscCall(GPUCSRCOOExchange(c, x->ondevice ? NULL : x->v, x->ondevice ? x->dv : NULL));
  if (x->own && x->v) ((Mat_SeqGPUCSR *)block[0]->spptr)->info.uploaded += (double)x->bytes;
  PetscCall(SetBlocks(A, c, block, x, add));
  if (x->ondevice && c->dev && !c->dev->failed[0]) PetscCall((*c->dev->ops->streamsynchronize)(c->dev->id, c->dev->stream)); /* the program may change its array */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The parent's, which reads and writes host memory */
static PetscErrorCode SetByParent(Mat A, const Values *x, PetscCount n, InsertMode mode)
{
  const PetscScalar *host;
  PetscScalar       *own = NULL;

  PetscFunctionBegin;
  PetscCheck(!x->ondevice || n >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Values on the device need a pattern of this type: call MatSetPreallocationCOO() after MatSetType()");
  PetscCall(MatGPUCSRFetch_Private(A));
  if (x->ondevice) PetscCall(GPUCSRDeviceSynchronize(x->dev));
  host = x->v;
  if (x->ondevice || (!x->v && n > 0)) PetscCall(ToHost(x->dev, x->v, x->ondevice, n, &host, &own));
  PetscCall((*((Mat_GPUCSR *)A->spptr)->setvaluescoo)(A, host, mode));
  PetscCall(PetscFree(own));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSetValuesCOO_GPUCSR(Mat A, const PetscScalar v[], InsertMode mode)
{
  Values         x = {0};
  GPUCSRCOO     *c;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRCOOGet_Private(A, &c));
  x.v = v;
  PetscCall(MatGPUCSRCOODevice_Private(A, v, &x.dev, &x.ondevice));
  if (!c) {
    PetscCall(SetByParent(A, &x, ((Mat_GPUCSR *)A->spptr)->contributions - 1, mode));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  ierr = SetWith(A, c, &x, (PetscBool)(mode == ADD_VALUES));
  if (x.own) PetscCall(GPUCSRFree(x.dev, x.bytes, &x.own));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix leaves its type with contributions that only this library knows */
static PetscErrorCode MatSetValuesCOO_Left(Mat A, const PetscScalar v[], InsertMode mode)
{
  Mat        block[2] = {A, NULL};
  GPUCSRCOO *c;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRCOOGet_Private(A, &c));
  if (c->nblocks == 2) PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
  if (c->travels) PetscCall(GPUCSRCOOExchange(c, v, NULL));
  for (int b = 0; b < c->nblocks; b++) PetscCall(SumOnHost(block[b], c, b, v, (PetscBool)(mode == ADD_VALUES)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetPreallocationCOO_Left(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  GPUCSRCOO *c;
  PetscErrorCode (*preallocate)(Mat, PetscCount, PetscInt[], PetscInt[]);

  PetscFunctionBegin;
  PetscCall(MatGPUCSRCOOGet_Private(A, &c));
  preallocate = c->preallocate;
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetPreallocationCOO_C", c->preallocate));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetValuesCOO_C", c->set));
  PetscCall(MatGPUCSRCOORemove_Private(A));
  PetscCall((*preallocate)(A, n, i, j));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRCOOCompose_Private(Mat A, PetscBool install)
{
  Mat_GPUCSR *g = (Mat_GPUCSR *)A->spptr;
  GPUCSRCOO  *c;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRCOOGet_Private(A, &c));
  if (install) {
    PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatSetPreallocationCOO_C", &g->preallocatecoo));
    PetscCall(PetscObjectQueryFunction((PetscObject)A, "MatSetValuesCOO_C", &g->setvaluescoo));
    if (c) { /* it was of this type before */
      g->preallocatecoo = c->preallocate;
      g->setvaluescoo   = c->set;
    }
  }
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetPreallocationCOO_C", install ? MatSetPreallocationCOO_GPUCSR : c ? MatSetPreallocationCOO_Left : g->preallocatecoo));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetPreallocationCOOLocal_C", install ? MatSetPreallocationCOOLocal_GPUCSR : NULL));
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatSetValuesCOO_C", install ? MatSetValuesCOO_GPUCSR : c ? MatSetValuesCOO_Left : g->setvaluescoo));
  PetscFunctionReturn(PETSC_SUCCESS);
}

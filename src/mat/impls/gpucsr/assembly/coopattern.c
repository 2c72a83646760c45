/*
  MatSetPreallocationCOO() and its local variant, of both types. The pattern of a matrix of one process is made on the device, and brought home. For several processes MATAIJ makes the pattern on the
  host, and the devices sort the contributions of their blocks (cooranks.c). Without a device MATAIJ makes pattern and values.
*/
#include "assembly.h"

static PetscErrorCode Block(GPUCSRDevice dev, const GPUCSRCoordinates *list, int m, int n, GPUCSRCOOBlock *b, GPUCSRStorage *csr)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRSumSort(dev, list, m, n, &b->sum));
  if (b->sum.bad >= 0) PetscFunctionReturn(PETSC_SUCCESS); /* the caller's error */
  PetscCall(GPUCSRCSRCreate(dev, m, n, b->sum.nnz, csr));
  PetscCall(GPUCSRSumPattern(&b->sum, csr));
  if (!dev->ops->separate) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1((size_t)b->sum.nnz + 1, &b->first));
  PetscCall(PetscMalloc1((size_t)b->sum.kept + 1, &b->order));
  PetscCall(GPUCSRDownload(dev, b->first, GPUCSR_INT32, b->sum.first, GPUCSR_INT32, (size_t)b->sum.nnz + 1, PETSC_FALSE, dev->stream));
  PetscCall(GPUCSRDownload(dev, b->order, GPUCSR_INT32, b->sum.order[0], GPUCSR_INT32, (size_t)b->sum.kept, PETSC_FALSE, dev->stream));
  PetscCall((*dev->ops->streamsynchronize)(dev->id, dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sorts the contributions to a block of A's sizes, and its pattern, which the caller destroys. After an error b is empty */
PetscErrorCode MatGPUCSRCOOBlock_Private(Mat A, GPUCSRDevice dev, const GPUCSRCoordinates *list, GPUCSRCOOBlock *b, GPUCSRStorage *csr)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall((*dev->ops->activate)(dev->id));
  ierr = Block(dev, list, (int)A->rmap->n, (int)A->cmap->n, b, csr);
  if (ierr) {
    PetscCall(GPUCSRSumDestroy(&b->sum));
    PetscCall(PetscFree(b->first));
    PetscCall(PetscFree(b->order));
  }
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An array of PetscInt on the device, sent if it is on the host */
typedef struct {
  const void *p;
  void       *own;
  size_t      bytes;
} Indices;

static PetscErrorCode Send(GPUCSRDevice dev, const PetscInt *a, PetscCount n, Indices *x)
{
  GPUCSRBool ondevice;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(x, sizeof(*x)));
  if (!a) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRHolds(dev, a, &ondevice));
  x->p = a;
  if (ondevice || !dev->ops->separate) PetscFunctionReturn(PETSC_SUCCESS);
  x->bytes = sizeof(PetscInt) * (size_t)n;
  PetscCall(GPUCSRMalloc(dev, x->bytes, "coordinates", &x->own));
  PetscCall(GPUCSRUpload(dev, x->own, GPUCSR_PETSCINT, a, GPUCSR_PETSCINT, (size_t)n, PETSC_FALSE, dev->stream, NULL));
  x->p = x->own;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Tables of local numbers, or none */
typedef struct {
  const PetscInt *row, *col;
  PetscInt        rows, cols;
} Local;

static PetscErrorCode Beyond(Mat A, GPUCSRDevice dev, const GPUCSRCoordinates *c, int64_t bad)
{
  const void *list[2] = {c->i, c->j};
  PetscInt    at[2];

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(GPUCSRDownload(dev, &at[k], GPUCSR_PETSCINT, (const PetscInt *)list[k] + bad, GPUCSR_PETSCINT, 1, PETSC_FALSE, dev->stream));
  PetscCall((*dev->ops->streamsynchronize)(dev->id, dev->stream));
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "COO entry %lld has %srow %" PetscInt_FMT " and column %" PetscInt_FMT " of a matrix of %" PetscInt_FMT " rows and %" PetscInt_FMT " columns", (long long)bad, c->row || c->col ? "local " : "", at[0], at[1],
          A->rmap->N, A->cmap->N);
}

static PetscErrorCode OnDeviceSteps(Mat A, GPUCSRDevice dev, const GPUCSRCoordinates *list, GPUCSRCOOBlock *b, GPUCSRStorage *csr)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  GPUCSRCOO     *c;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRCOOBlock_Private(A, dev, list, b, csr));
  if (b->sum.bad >= 0) PetscCall(Beyond(A, dev, list, b->sum.bad));
  PetscCall((*dev->ops->zero)(dev->id, csr->array[CSR_VAL].data, sizeof(double) * (size_t)csr->nnz, dev->stream));
  PetscCall(MatGPUCSRPlansDestroy_Private(g));
  g->mirror.ahead = PETSC_FALSE;
  PetscCall(MatGPUCSRFromDevice_Private(A, csr, PETSC_FALSE));
  if (dev->ops->separate) {
    g->mirror.pattern = A->nonzerostate + 1; /* PETSc counts the change after this function */
    PetscCall(PetscObjectStateGet((PetscObject)A, &g->mirror.values));
  } else PetscCall(GPUCSRStorageDestroy(&g->mirror.csr));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE)); /* as after MATAIJ's */
  g->decided = PETSC_FALSE;                                             /* its size was not known */
  PetscCall(MatGPUCSRCOONew_Private(A, dev, (PetscCount)list->n, &c));
  if (dev->ops->separate) g->info.downloaded += 4.0 * ((double)b->sum.kept + (double)A->rmap->n + 3 + 2 * (double)b->sum.nnz); /* the order, and the pattern */
  c->block[0] = *b;
  PetscCall(PetscMemzero(b, sizeof(*b)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix of one process. After an error before the pattern is home, the matrix is as before */
static PetscErrorCode OnDevice(Mat A, GPUCSRDevice dev, PetscCount n, const PetscInt *i, const PetscInt *j, const Local *local)
{
  GPUCSRCoordinates list = {.n = (int64_t)n, .type = GPUCSR_PETSCINT, .rows = (int)local->rows, .cols = (int)local->cols};
  GPUCSRCOOBlock    b    = {0};
  GPUCSRStorage     csr  = {0};
  Indices           x[4];
  PetscErrorCode    ierr;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(x, sizeof(x)));
  PetscCall(GPUCSRDeviceSynchronize(dev)); /* the program's kernels may run on any stream */
  ierr = Send(dev, i, n, &x[0]);
  if (!ierr) ierr = Send(dev, j, n, &x[1]);
  if (!ierr) ierr = Send(dev, local->row, local->rows, &x[2]);
  if (!ierr) ierr = Send(dev, local->col, local->cols, &x[3]);
  list.i   = x[0].p;
  list.j   = x[1].p;
  list.row = x[2].p;
  list.col = x[3].p;
  if (!ierr) ierr = OnDeviceSteps(A, dev, &list, &b, &csr);
  for (int k = 0; k < 4; k++) PetscCall(GPUCSRFree(dev, x[k].bytes, &x[k].own));
  if (csr.dev) PetscCall(GPUCSRStorageDestroy(&csr));
  PetscCall(GPUCSRSumDestroy(&b.sum));
  PetscCall(PetscFree(b.first));
  PetscCall(PetscFree(b.order));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A copy of indices on the host, which the parent may change, in numbers of the whole matrix */
static PetscErrorCode HostCopy(GPUCSRDevice dev, const PetscInt *a, PetscCount n, ISLocalToGlobalMapping map, PetscInt **copy)
{
  GPUCSRBool ondevice = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1((size_t)n, copy));
  if (dev && a) PetscCall(GPUCSRHolds(dev, a, &ondevice));
  if (!ondevice) PetscCall(PetscArraycpy(*copy, a, (size_t)n));
  else {
    PetscCall(GPUCSRDeviceSynchronize(dev));
    PetscCall(GPUCSRDownload(dev, *copy, GPUCSR_PETSCINT, a, GPUCSR_PETSCINT, (size_t)n, PETSC_FALSE, dev->stream));
    PetscCall((*dev->ops->streamsynchronize)(dev->id, dev->stream));
  }
  if (map) {
    PetscInt len;

    PetscCall(PetscIntCast((PetscInt64)n, &len));
    PetscCall(ISLocalToGlobalMappingApply(map, len, *copy, *copy));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OnHost(Mat A, GPUCSRDevice dev, PetscCount n, const PetscInt *i, const PetscInt *j, ISLocalToGlobalMapping row, ISLocalToGlobalMapping col)
{
  Mat_GPUCSR    *g    = (Mat_GPUCSR *)A->spptr;
  PetscInt      *h[2] = {NULL, NULL};
  PetscBool      seq;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(HostCopy(dev, i, n, row, &h[0]));
  PetscCall(HostCopy(dev, j, n, col, &h[1]));
  PetscCall(MatGPUCSRCOORemove_Private(A));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJGPUCSR, &seq));
  if (seq) {
    ((Mat_SeqGPUCSR *)A->spptr)->mirror.ahead = PETSC_FALSE; /* the values go */
    ierr                                      = (*g->preallocatecoo)(A, n, h[0], h[1]);
    PetscCall(PetscFree(((Mat_SeqGPUCSR *)A->spptr)->bare)); /* MatSetValuesCOO() counts */
  } else ierr = MatGPUCSRCOORanks_Private(A, n, h[0], h[1]);
  g->contributions = n + 1;
  PetscCall(PetscFree(h[0]));
  PetscCall(PetscFree(h[1]));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On the device, or with the host in its place */
static PetscErrorCode OnOne(Mat A, GPUCSRDevice dev, PetscCount n, const PetscInt *i, const PetscInt *j, ISLocalToGlobalMapping row, ISLocalToGlobalMapping col)
{
  Local          local = {NULL, NULL, 0, 0};
  GPUCSRDevice   host;
  PetscInt      *h[2];
  char           why[128];
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (row) {
    PetscCall(ISLocalToGlobalMappingGetSize(row, &local.rows));
    PetscCall(ISLocalToGlobalMappingGetIndices(row, &local.row));
  }
  if (col) {
    PetscCall(ISLocalToGlobalMappingGetSize(col, &local.cols));
    PetscCall(ISLocalToGlobalMappingGetIndices(col, &local.col));
  }
  ATTEMPT(A, OnDevice(A, dev, n, i, j, &local), ierr, attempt);
  if (ierr == PETSC_ERR_MEM || ierr == PETSC_ERR_GPU) {
    PetscCall(PetscInfo(A, "The pattern is made on the host, because %s\n", attempt.message));
    PetscCall(HostCopy(dev, i, n, NULL, &h[0]));
    PetscCall(HostCopy(dev, j, n, NULL, &h[1]));
    if (ierr == PETSC_ERR_GPU) PetscCall(PetscStrncpy(dev->failed, attempt.message, sizeof(dev->failed)));
    PetscCall(GPUCSRDeviceOpen("host", &host, why, sizeof(why)));
    PetscCall(OnDevice(A, host, n, h[0], h[1], &local));
    PetscCall(PetscFree(h[0]));
    PetscCall(PetscFree(h[1]));
    ierr = PETSC_SUCCESS;
  }
  if (col) PetscCall(ISLocalToGlobalMappingRestoreIndices(col, &local.col));
  if (row) PetscCall(ISLocalToGlobalMappingRestoreIndices(row, &local.row));
  PetscCheck(!ierr, PETSC_COMM_SELF, ierr, "%s", attempt.message);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Preallocate(Mat A, PetscCount n, const PetscInt *i, const PetscInt *j, ISLocalToGlobalMapping row, ISLocalToGlobalMapping col)
{
  const MatGPUCSRConfig *config = &((Mat_GPUCSR *)A->spptr)->config;
  PetscBool              seq, aij;
  GPUCSRDevice           dev;
  GPUCSRBool             ondevice, fits;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRCOODevice_Private(A, i, &dev, &ondevice));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJGPUCSR, &seq));
  PetscCall(PetscStrcmp(config->request.format, "aij", &aij));
  fits = A->rmap->n <= INT32_MAX - 1024 && A->cmap->n <= INT32_MAX - 1024 && n <= INT32_MAX - 4096;
  if (seq && fits && dev && dev->ops->separate && !aij && (ondevice || config->masterdevice || n >= config->productleast)) PetscCall(OnOne(A, dev, n, i, j, row, col));
  else PetscCall(OnHost(A, dev, n, i, j, row, col));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The indices stay as they are */
PetscErrorCode MatSetPreallocationCOO_GPUCSR(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  PetscFunctionBegin;
  PetscCall(Preallocate(A, n, i, j, NULL, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSetPreallocationCOOLocal_GPUCSR(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  ISLocalToGlobalMapping row, col;

  PetscFunctionBegin;
  PetscCall(MatGetLocalToGlobalMapping(A, &row, &col));
  PetscCall(Preallocate(A, n, i, j, row, col));
  A->preallocated = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

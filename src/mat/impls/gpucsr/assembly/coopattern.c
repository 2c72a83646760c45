/*
  MatSetPreallocationCOO() and its local variant, of both types. The pattern of a matrix of one process is made on the device, and brought home. For several processes MATAIJ makes the pattern on the
  host, and the devices sort the contributions of their blocks (cooranks.c). Without a device MATAIJ makes pattern and values.
*/
#include "assembly.h"

PetscErrorCode GPUCSRCOOBlockDestroy(GPUCSRCOOBlock *b)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRSumDestroy(&b->sum));
  PetscCall(PetscFree(b->first));
  PetscCall(PetscFree(b->order));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sorts the contributions to a block of A's sizes, and its pattern; the caller destroys both, after an error too */
PetscErrorCode MatGPUCSRCOOBlock_Private(Mat A, GPUCSRDevice dev, const GPUCSRCoordinates *list, GPUCSRCOOBlock *b, GPUCSRStorage *csr)
{
  GPUCSRSum *s = &b->sum;

  PetscFunctionBegin;
  PetscCall((*dev->ops->activate)(dev->id));
  PetscCall(GPUCSRSumSort(dev, list, (int)A->rmap->n, (int)A->cmap->n, s));
  if (s->bad >= 0) PetscFunctionReturn(PETSC_SUCCESS); /* the caller's error */
  PetscCall(GPUCSRCSRCreate(dev, (int)A->rmap->n, (int)A->cmap->n, s->nnz, csr));
  PetscCall(GPUCSRSumPattern(s, csr));
  if (!dev->ops->separate) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc1((size_t)s->nnz + 1, &b->first));
  PetscCall(PetscMalloc1((size_t)s->kept + 1, &b->order));
  PetscCall(GPUCSRDownload(dev, b->first, GPUCSR_INT32, s->first, GPUCSR_INT32, (size_t)s->nnz + 1, PETSC_FALSE, dev->stream));
  PetscCall(GPUCSRDownload(dev, b->order, GPUCSR_INT32, s->order[0], GPUCSR_INT32, (size_t)s->kept, PETSC_FALSE, dev->stream));
  PetscCall((*dev->ops->streamsynchronize)(dev->id, dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The program's list: rows and columns, on the host or the device, with tables of local numbers or none */
typedef struct {
  PetscCount             n;
  const PetscInt        *index[2];
  ISLocalToGlobalMapping map[2];
  const PetscInt        *table[2];
  PetscInt               len[2];
} List;

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
  x->p = a;
  if (!a || !dev->ops->separate) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRHolds(dev, a, &ondevice));
  if (ondevice) PetscFunctionReturn(PETSC_SUCCESS);
  x->bytes = sizeof(PetscInt) * (size_t)n;
  PetscCall(GPUCSRMalloc(dev, x->bytes, "coordinates", &x->own));
  PetscCall(GPUCSRUpload(dev, x->own, GPUCSR_PETSCINT, a, GPUCSR_PETSCINT, (size_t)n, PETSC_FALSE, dev->stream, NULL));
  x->p = x->own;
  PetscFunctionReturn(PETSC_SUCCESS);
}

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

static PetscErrorCode OnDeviceSteps(Mat A, GPUCSRDevice dev, const List *l, Indices x[4], GPUCSRCOOBlock *b, GPUCSRStorage *csr)
{
  GPUCSRCoordinates list = {.n = (int64_t)l->n, .type = GPUCSR_PETSCINT, .rows = (int)l->len[0], .cols = (int)l->len[1]};
  Mat_SeqGPUCSR    *g    = (Mat_SeqGPUCSR *)A->spptr;
  GPUCSRCOO        *c;

  PetscFunctionBegin;
  PetscCall(GPUCSRDeviceSynchronize(dev)); /* the program's kernels may run on any stream */
  for (int k = 0; k < 2; k++) {
    PetscCall(Send(dev, l->index[k], l->n, &x[k]));
    PetscCall(Send(dev, l->table[k], l->len[k], &x[2 + k]));
  }
  list.i   = x[0].p;
  list.j   = x[1].p;
  list.row = x[2].p;
  list.col = x[3].p;
  PetscCall(MatGPUCSRCOOBlock_Private(A, dev, &list, b, csr));
  if (b->sum.bad >= 0) PetscCall(Beyond(A, dev, &list, b->sum.bad));
  PetscCall((*dev->ops->zero)(dev->id, csr->array[CSR_VAL].data, sizeof(double) * (size_t)csr->nnz, dev->stream));
  PetscCall(MatGPUCSRPlansDestroy_Private(g));
  PetscCall(MatGPUCSRFromDevice_Private(A, csr, PETSC_FALSE));
  if (dev->ops->separate) {
    g->mirror.pattern = A->nonzerostate + 1; /* PETSc counts the change after this function */
    PetscCall(PetscObjectStateGet((PetscObject)A, &g->mirror.values));
    g->info.downloaded += 4.0 * ((double)b->sum.kept + (double)A->rmap->n + 3 + 2 * (double)b->sum.nnz); /* the order, and the pattern */
  } else PetscCall(MatGPUCSRMirrorDestroy_Private(&g->mirror));
  PetscCall(MatSetOption(A, MAT_NEW_NONZERO_LOCATION_ERR, PETSC_TRUE)); /* as after MATAIJ's */
  g->decided = PETSC_FALSE;                                             /* its size was not known */
  PetscCall(MatGPUCSRCOONew_Private(A, dev, l->n, &c));
  c->block[0] = *b;
  PetscCall(PetscMemzero(b, sizeof(*b)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix of one process. After an error before the pattern is home, the matrix is as before */
static PetscErrorCode OnDevice(Mat A, GPUCSRDevice dev, const List *l)
{
  GPUCSRCOOBlock b    = {.first = NULL};
  GPUCSRStorage  csr  = {.dev = NULL};
  Indices        x[4] = {{.p = NULL}};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = OnDeviceSteps(A, dev, l, x, &b, &csr);
  for (int k = 0; k < 4; k++) PetscCall(GPUCSRFree(dev, x[k].bytes, &x[k].own));
  if (csr.dev) PetscCall(GPUCSRStorageDestroy(&csr));
  PetscCall(GPUCSRCOOBlockDestroy(&b));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A copy of the indices on the host, which the parent may change */
static PetscErrorCode HostCopy(GPUCSRDevice dev, const List *l, PetscInt *copy[2])
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    GPUCSRBool ondevice = PETSC_FALSE;

    PetscCall(PetscMalloc1((size_t)l->n + 1, &copy[k]));
    if (dev) PetscCall(GPUCSRHolds(dev, l->index[k], &ondevice));
    if (ondevice) {
      PetscCall(GPUCSRDeviceSynchronize(dev));
      PetscCall(GPUCSRDownload(dev, copy[k], GPUCSR_PETSCINT, l->index[k], GPUCSR_PETSCINT, (size_t)l->n, PETSC_FALSE, dev->stream));
      PetscCall((*dev->ops->streamsynchronize)(dev->id, dev->stream));
    } else PetscCall(PetscArraycpy(copy[k], l->index[k], (size_t)l->n));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OnHost(Mat A, PetscBool seq, const List *l, PetscInt *copy[2])
{
  Mat_GPUCSR *g = (Mat_GPUCSR *)A->spptr;

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    PetscInt len;

    if (!l->map[k]) continue;
    PetscCall(PetscIntCast((PetscInt64)l->n, &len));
    PetscCall(ISLocalToGlobalMappingApply(l->map[k], len, copy[k], copy[k]));
  }
  PetscCall(MatGPUCSRCOORemove_Private(A));
  g->contributions = l->n + 1;
  if (seq) {
    ((Mat_SeqGPUCSR *)A->spptr)->mirror.ahead = PETSC_FALSE; /* the values go */
    PetscCall((*g->preallocatecoo)(A, l->n, copy[0], copy[1]));
    PetscCall(PetscFree(((Mat_SeqGPUCSR *)A->spptr)->bare)); /* MatSetValuesCOO() counts */
  } else PetscCall(MatGPUCSRCOORanks_Private(A, l->n, copy[0], copy[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Preallocate(Mat A, List *l)
{
  const MatGPUCSRConfig *config = &((Mat_GPUCSR *)A->spptr)->config;
  PetscInt              *copy[2];
  PetscBool              seq, aij, fits;
  GPUCSRDevice           dev, host;
  GPUCSRBool             ondevice;
  GPUCSRAttempt          attempt = {.error = PETSC_ERR_SUP};
  PetscErrorCode         ierr;
  char                   why[128];

  PetscFunctionBegin;
  PetscCall(MatGPUCSRCOODevice_Private(A, l->index[0], &dev, &ondevice));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJGPUCSR, &seq));
  PetscCall(PetscStrcmp(config->request.format, "aij", &aij));
  fits = (PetscBool)(A->rmap->n <= INT32_MAX - 1024 && A->cmap->n <= INT32_MAX - 1024 && l->n <= INT32_MAX - 4096);
  fits = (PetscBool)(fits && seq && dev && dev->ops->separate && !aij && (ondevice || config->masterdevice || l->n >= config->productleast));
  if (fits) {
    GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, OnDevice(A, dev, l));
    PetscCall(MatGPUCSRKept_Private(A, dev, &attempt));
    if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(HostCopy(dev, l, copy));
  if (fits) { /* the host in place of the device */
    for (int k = 0; k < 2; k++) l->index[k] = copy[k];
    PetscCall(GPUCSRDeviceOpen("host", &host, why, sizeof(why)));
    ierr = OnDevice(A, host, l);
  } else ierr = OnHost(A, seq, l, copy);
  for (int k = 0; k < 2; k++) PetscCall(PetscFree(copy[k]));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The indices stay as they are */
PetscErrorCode MatSetPreallocationCOO_GPUCSR(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  List l = {
    .n = n, .index = {i, j}
  };

  PetscFunctionBegin;
  PetscCall(Preallocate(A, &l));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSetPreallocationCOOLocal_GPUCSR(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  List l = {
    .n = n, .index = {i, j}
  };
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGetLocalToGlobalMapping(A, &l.map[0], &l.map[1]));
  for (int k = 0; k < 2; k++) {
    if (!l.map[k]) continue;
    PetscCall(ISLocalToGlobalMappingGetSize(l.map[k], &l.len[k]));
    PetscCall(ISLocalToGlobalMappingGetIndices(l.map[k], &l.table[k]));
  }
  ierr = Preallocate(A, &l);
  for (int k = 0; k < 2; k++)
    if (l.map[k]) PetscCall(ISLocalToGlobalMappingRestoreIndices(l.map[k], &l.table[k]));
  PetscCall(ierr);
  A->preallocated = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

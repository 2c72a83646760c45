/*
  MatSetPreallocationCOO(), its local variant, and the same by row pointers, of both types. The pattern of a matrix of one process is made on the device, and brought home. For several processes MATAIJ
  makes the pattern on the host, and the devices sort the contributions of their blocks (coo.c). Without a device MATAIJ makes pattern and values.
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
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The program's list: rows and columns, on the host or the device, with tables of local numbers or none */
typedef struct {
  PetscCount             n;
  GPUCSRType             type;     /* of the indices; tables have GPUCSR_PETSCINT */
  const void            *index[2]; /* rows and columns */
  PetscBool              csr;      /* index[0]: pointers to the rank's rows */
  ISLocalToGlobalMapping map[2];
  const PetscInt        *table[2];
  PetscInt               len[2];
} List;

/* An array on the device, sent if it is on the host */
typedef struct {
  const void *p;
  void       *own;
  size_t      bytes;
} Indices;

static PetscErrorCode Send(GPUCSRDevice dev, const void *a, GPUCSRType type, PetscCount n, Indices *x)
{
  GPUCSRBool ondevice;

  PetscFunctionBegin;
  x->p = a;
  if (!a || !dev->ops->separate) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRHolds(dev, a, &ondevice));
  if (ondevice) PetscFunctionReturn(PETSC_SUCCESS);
  x->bytes = GPUCSRTypeSize(type) * (size_t)n;
  PetscCall(GPUCSRMalloc(dev, x->bytes, "coordinates", &x->own));
  PetscCall(GPUCSRUpload(dev, x->own, type, a, type, (size_t)n, PETSC_FALSE, dev->stream, NULL));
  x->p = x->own;
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define WRONG_POINTERS "The row pointers do not ascend from 0 to %lld, the number of columns"

#define ARRAYS 5 /* the program's two, two tables, and rows of entries */

static PetscErrorCode IsBeyond(Mat A, const char local[], long long k, PetscInt i, PetscInt j)
{
  SETERRQ(PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "COO entry %lld has %srow %" PetscInt_FMT " and column %" PetscInt_FMT " of a matrix of %" PetscInt_FMT " rows and %" PetscInt_FMT " columns", k, local, i, j, A->rmap->N, A->cmap->N);
}

static PetscErrorCode OnDeviceSteps(Mat A, GPUCSRDevice dev, const List *l, Indices x[ARRAYS], GPUCSRCOOBlock *b, GPUCSRStorage *csr)
{
  GPUCSRCoordinates list = {.n = (int64_t)l->n, .type = l->type, .rows = (int)l->len[0], .cols = (int)l->len[1]};
  Mat_SeqGPUCSR    *g    = (Mat_SeqGPUCSR *)A->spptr;
  GPUCSRCOO        *c;

  PetscFunctionBegin;
  PetscCall(GPUCSRDeviceSynchronize(dev)); /* the program's kernels may run on any stream */
  for (int k = 0; k < 2; k++) {
    PetscCall(Send(dev, l->index[k], l->type, l->csr && !k ? (PetscCount)A->rmap->n + 1 : l->n, &x[k]));
    PetscCall(Send(dev, l->table[k], GPUCSR_PETSCINT, l->len[k], &x[2 + k]));
  }
  if (l->csr) {
    int           *flag, wrong;
    PetscErrorCode ierr;

    x[4].bytes = sizeof(int32_t) * (size_t)l->n;
    PetscCall(GPUCSRMalloc(dev, x[4].bytes, "rows of entries", &x[4].own));
    PetscCall(GPUCSRFlagCreate(dev, &flag));
    ierr = (*GPUCSRAssembleOf(dev)->entryrows)(dev, (int)GPUCSRMax(A->rmap->n + 1, l->n), (int)A->rmap->n, (int)l->n, (const int32_t *)x[0].p, (int32_t *)x[4].own, flag, dev->stream);
    PetscCall(GPUCSRFlagRead(dev, ierr, &flag, &wrong));
    PetscCheck(!wrong, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, WRONG_POINTERS, (long long)l->n);
    x[4].p = x[4].own;
  }
  list.i   = x[l->csr ? 4 : 0].p;
  list.j   = x[1].p;
  list.row = x[2].p;
  list.col = x[3].p;
  PetscCall(MatGPUCSRCOOBlock_Private(A, dev, &list, b, csr));
  if (b->sum.bad >= 0) {
    const void *index[2] = {list.i, list.j};
    PetscInt    at[2];

    for (int k = 0; k < 2; k++) PetscCall(GPUCSRDownload(dev, &at[k], GPUCSR_PETSCINT, (const char *)index[k] + (size_t)b->sum.bad * GPUCSRTypeSize(list.type), list.type, 1, PETSC_FALSE, dev->stream));
    PetscCall(IsBeyond(A, list.row || list.col ? "local " : "", (long long)b->sum.bad, at[0], at[1]));
  }
  PetscCall((*dev->ops->zero)(dev->id, csr->array[CSR_VAL].data, sizeof(double) * (size_t)csr->nnz, dev->stream));
  PetscCall(MatGPUCSRPlansDestroy_Private(g));
  PetscCall(MatGPUCSREntriesOf_Private(A, csr, PETSC_FALSE));
  PetscCall(MatGPUCSRProductMirror_Private(A, csr));
  if (dev->ops->separate) {
    g->mirror.pattern = A->nonzerostate + 1; /* PETSc counts the change after this function */
    g->mirror.values  = GPUCSRStateOf(A);
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
  GPUCSRCOOBlock b         = {.first = NULL};
  GPUCSRStorage  csr       = {.dev = NULL};
  Indices        x[ARRAYS] = {{.p = NULL}};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = OnDeviceSteps(A, dev, l, x, &b, &csr);
  for (int k = 0; k < ARRAYS; k++) PetscCall(GPUCSRFree(dev, x[k].bytes, &x[k].own));
  if (csr.dev) PetscCall(GPUCSRStorageDestroy(&csr));
  PetscCall(GPUCSRCOOBlockDestroy(&b));
  PetscFunctionReturn(ierr);
}

/* A copy of the indices on the host, which the parent may change */
static PetscErrorCode HostCopy(Mat A, GPUCSRDevice dev, const List *l, PetscInt *copy[2])
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    const size_t n        = l->csr && !k ? (size_t)A->rmap->n + 1 : (size_t)l->n;
    GPUCSRBool   ondevice = PETSC_FALSE;

    PetscCall(PetscMalloc1(n + 1, &copy[k]));
    if (dev) PetscCall(GPUCSRHolds(dev, l->index[k], &ondevice));
    if (ondevice) {
      PetscCall(GPUCSRDeviceSynchronize(dev));
      PetscCall(GPUCSRDownload(dev, copy[k], GPUCSR_PETSCINT, l->index[k], l->type, n, PETSC_FALSE, dev->stream));
    } else PetscCall(GPUCSRConvert(copy[k], GPUCSR_PETSCINT, l->index[k], l->type, n, 1, NULL));
  }
  if (l->csr) {
    const PetscInt  m     = A->rmap->n;
    const PetscInt *i     = copy[0];
    PetscBool       wrong = (PetscBool)(i[0] != 0 || (PetscCount)i[m] != l->n);
    PetscInt       *row;

    for (PetscInt r = 0; r < m; r++) wrong = (PetscBool)(wrong || i[r] > i[r + 1]);
    PetscCheck(!wrong, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, WRONG_POINTERS, (long long)l->n);
    PetscCall(PetscMalloc1((size_t)l->n + 1, &row));
    for (PetscInt r = 0; r < m; r++)
      for (PetscInt k = i[r]; k < i[r + 1]; k++) row[k] = A->rmap->rstart + r;
    PetscCall(PetscFree(copy[0]));
    copy[0] = row;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Sane(const List *l)
{
  PetscFunctionBegin;
  PetscCheck(l->n >= 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "%lld entries", (long long)l->n);
  PetscCheck((l->index[0] || (!l->n && !l->csr)) && (l->index[1] || !l->n), PETSC_COMM_SELF, PETSC_ERR_ARG_NULL, "No arrays for %lld entries", (long long)l->n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A copy in the numbers of all ranks, without numbers beyond the matrix, which the parent does not look for */
static PetscErrorCode HostNumbers(Mat A, const List *l, PetscInt *copy[2])
{
  GPUCSRDevice dev;
  GPUCSRBool   ondevice;

  PetscFunctionBegin;
  PetscCall(Sane(l));
  PetscCall(MatGPUCSRCOODevice_Private(A, l->index[0], &dev, &ondevice));
  PetscCall(HostCopy(A, dev, l, copy));
  for (int k = 0; k < 2; k++) {
    PetscInt len;

    if (!l->map[k]) continue;
    PetscCall(PetscIntCast((PetscInt64)l->n, &len));
    PetscCall(ISLocalToGlobalMappingApply(l->map[k], len, copy[k], copy[k]));
  }
  for (PetscCount k = 0; k < l->n; k++)
    if (PetscMin(copy[0][k], copy[1][k]) >= 0 && (copy[0][k] >= A->rmap->N || copy[1][k] >= A->cmap->N)) PetscCall(IsBeyond(A, "", (long long)k, copy[0][k], copy[1][k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: wrong indices of one rank are an error on all ranks, before the matrix changes */
static PetscErrorCode OnRanks(Mat A, const List *l, PetscInt *copy[2])
{
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  GPUCSRTry(&attempt, HostNumbers(A, l, copy));
  PetscCall(GPUCSRAttemptAgree(&attempt, PetscObjectComm((PetscObject)A), NULL));
  PetscCheck(!attempt.error, PetscObjectComm((PetscObject)A), attempt.error, "%s", attempt.message);
  PetscCall(MatGPUCSRCOORemove_Private(A));
  ((Mat_GPUCSR *)A->spptr)->contributions = l->n + 1;
  PetscCall(MatGPUCSRCOORanks_Private(A, l->n, copy[0], copy[1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix of one process. copy: for indices on the host, which the caller frees */
static PetscErrorCode OnOne(Mat A, List *l, PetscInt *copy[2])
{
  const MatGPUCSRConfig *config = &((Mat_GPUCSR *)A->spptr)->config;
  PetscBool              fits;
  GPUCSRDevice           dev, host;
  GPUCSRBool             ondevice;
  GPUCSRAttempt          attempt;
  char                   why[128];

  PetscFunctionBegin;
  PetscCall(Sane(l));
  PetscCall(MatGPUCSRCOODevice_Private(A, l->index[0], &dev, &ondevice));
  fits = (PetscBool)(A->rmap->n <= INT32_MAX - 1024 && A->cmap->n <= INT32_MAX - 1024 && l->n <= INT32_MAX - 4096);
  fits = (PetscBool)(fits && dev && dev->ops->separate && strcmp(config->request.format, "aij") && (ondevice || config->masterdevice || l->n >= config->productleast));
  if (!fits) {
    PetscCall(HostNumbers(A, l, copy));
    PetscCall(MatGPUCSRCOORemove_Private(A));
    ((Mat_GPUCSR *)A->spptr)->contributions   = l->n + 1;
    ((Mat_SeqGPUCSR *)A->spptr)->mirror.ahead = PETSC_FALSE; /* the values go */
    PetscCall((*((Mat_GPUCSR *)A->spptr)->preallocatecoo)(A, l->n, copy[0], copy[1]));
    PetscCall(PetscFree(((Mat_SeqGPUCSR *)A->spptr)->firstvalues)); /* MatSetValuesCOO() counts */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, OnDevice(A, dev, l));
  PetscCall(MatGPUCSRKept_Private(A, dev, &attempt));
  if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(HostCopy(A, dev, l, copy)); /* the host in place of the device, for the same bits */
  for (int k = 0; k < 2; k++) l->index[k] = copy[k];
  l->type = GPUCSR_PETSCINT;
  l->csr  = PETSC_FALSE;
  PetscCall(GPUCSRDeviceOpen("host", &host, why, sizeof(why)));
  PetscCall(OnDevice(A, host, l));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Preallocate(Mat A, List *l)
{
  PetscInt      *copy[2] = {NULL, NULL};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = GPUCSRIsType(A, MATSEQAIJGPUCSR) ? OnOne(A, l, copy) : OnRanks(A, l, copy);
  for (int k = 0; k < 2; k++) PetscCall(PetscFree(copy[k]));
  PetscFunctionReturn(ierr);
}

/* The indices stay as they are */
PetscErrorCode MatSetPreallocationCOO_GPUCSR(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  List l = {
    .n = n, .type = GPUCSR_PETSCINT, .index = {i, j}
  };

  PetscFunctionBegin;
  PetscCall(Preallocate(A, &l));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatSetPreallocationCOOLocal_GPUCSR(Mat A, PetscCount n, PetscInt i[], PetscInt j[])
{
  List l = {
    .n = n, .type = GPUCSR_PETSCINT, .index = {i, j}
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

/* The rest of MatSetPreallocationCOO(), which reads no arrays */
static PetscErrorCode Asked(Mat A, PetscCount n, const int i[], const int j[], PetscBool csr)
{
  List l = {
    .n = n, .type = GPUCSR_INT32, .index = {i, j},
            .csr = csr
  };

  PetscFunctionBegin;
  PetscValidHeaderSpecific(A, MAT_CLASSID, 1);
  PetscCheck(MatGPUCSRIs(A), PetscObjectComm((PetscObject)A), PETSC_ERR_ARG_WRONG, "Needs a matrix of type gpucsr, not %s", ((PetscObject)A)->type_name ? ((PetscObject)A)->type_name : "(none)");
  PetscCall(PetscLayoutSetUp(A->rmap));
  PetscCall(PetscLayoutSetUp(A->cmap));
  PetscCall(Preallocate(A, &l));
  A->preallocated = PETSC_TRUE;
  A->nonzerostate++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*@C
  MatGPUCSRSetPreallocationCOO - `MatSetPreallocationCOO()` with indices of 32 bits, which may be in GPU memory in every PETSc

  Collective; No Fortran Support

  Input Parameters:
+ A - the matrix, with its sizes and its type
. n - contributions of this rank
. i - their rows
- j - their columns; negative ones are skipped

  Level: advanced

  Notes:
  `MatSetValuesCOO()` takes the contributions' values. The arrays are not changed, and not used afterwards.

  `MatSetPreallocationCOO()` of a PETSc with debugging reads the arrays on the host, and takes indices of `PetscInt`.

.seealso: `MATGPUCSR`, `MatGPUCSRSetPreallocationCSR()`, `MatSetPreallocationCOO()`, `MatSetValuesCOO()`
@*/
PetscErrorCode MatGPUCSRSetPreallocationCOO(Mat A, PetscCount n, const int i[], const int j[])
{
  return Asked(A, n, i, j, PETSC_FALSE);
}

/*@C
  MatGPUCSRSetPreallocationCSR - Make the pattern of a matrix from row pointers and columns, which may be in GPU memory

  Collective; No Fortran Support

  Input Parameters:
+ A - the matrix, with its sizes and its type
. n - entries of this rank's rows
. i - pointers to these rows, 1 more than rows, from 0 to n
- j - columns, in any order

  Level: advanced

  Notes:
  `MatSetValuesCOO()` takes the values, in the order of j. Columns that repeat in a row become one entry, the sum. The arrays are not changed, and not used afterwards.

.seealso: `MATGPUCSR`, `MatGPUCSRSetPreallocationCOO()`, `MatSetValuesCOO()`, `MatGPUCSRGetDeviceCSR()`
@*/
PetscErrorCode MatGPUCSRSetPreallocationCSR(Mat A, PetscCount n, const int i[], const int j[])
{
  return Asked(A, n, i, j, PETSC_TRUE);
}

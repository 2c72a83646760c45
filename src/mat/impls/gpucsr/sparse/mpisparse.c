/*
  Products of two or three matrices of type mpiaijgpucsr on the devices of their ranks: A B, A^T B and P^T A P, by products of local rows and received rows (spgemm/).

    M = A B        [A_d A_o] times [this rank's rows of B; fetched rows of B]. Other ranks own the fetched rows: one for each column of A_o
    C = T^T M      T is A, or P. The rows of T_o^T M go to their owners. S has a 1 for each received row: C = [T_d^T S] [M; received rows]. Received rows are added in the order of
                   ranks, so every run has the same bits

  A_d and A_o are the diagonal and the off-diagonal block. Columns have local numbers: the rank's own, then the ghost columns, both ascending. PetscSF exchanges rows at the border
  between host arrays. All ranks compute on their devices, or all leave the product to another implementation: they agree after each step that can fail.

  Products of GPUCSRRanksCSR come first. Those of Mats, which leave to MATAIJ, are their callers.
*/
#include "mpisparse.h"
#include "sparseproduct.h"

static const Recipe recipes[] = {
  {MATPRODUCT_AB,   PETSC_TRUE,  PETSC_FALSE},
  {MATPRODUCT_AtB,  PETSC_FALSE, PETSC_TRUE },
  {MATPRODUCT_PtAP, PETSC_TRUE,  PETSC_TRUE }
};

static const Recipe *Find(MatProductType type)
{
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(recipes); k++)
    if (recipes[k].type == type) return &recipes[k];
  return NULL;
}

static GPUCSRLivingList products = {GPUCSR_FINAL_PRODUCT, GPUCSRRanksProductForget, NULL};

PetscErrorCode GPUCSRRanksProductCreate(MatProductType type, GPUCSRDevice dev, GPUCSRRanksAgree agree, void *context, RanksProduct **product)
{
  RanksProduct *p;

  PetscFunctionBegin;
  PetscCall(PetscNew(&p));
  p->recipe  = Find(type);
  p->dev     = dev;
  p->agree   = agree;
  p->context = context;
  *product   = p;
  PetscCall(GPUCSRLivingAdd(&products, &p->living, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode GPUCSRRanksProductDestroy(RanksProduct **product)
{
  RanksProduct *p = *product;

  PetscFunctionBegin;
  if (!p) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRRanksProductForget(p));
  PetscCall(GPUCSRRowsDestroy(&p->theirs));
  PetscCall(GPUCSRRowsDestroy(&p->given));
  PetscCall(PetscFree(p->ghost));
  PetscCall(PetscFree(p->moved));
  PetscCall(PetscFree(p->place));
  PetscCall(GPUCSRLivingRemove(&p->living));
  PetscCall(PetscFree(*product));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- products of matrices on devices ---- */

/* Collective, if ok: a step that may fail on one rank alone */
#define Step(p, call, ok) \
  do { \
    GPUCSRAttempt attempt; \
\
    if (!*(ok)) break; \
    GPUCSRTry(&attempt, (*(p)->dev->ops->activate)((p)->dev->id)); \
    GPUCSRThen(&attempt, call); \
    PetscCall((*(p)->agree)((p)->context, &attempt, ok)); \
  } while (0)

/* Collective: the pattern of C = A B, A^T B or P^T A P (b = P), and the data for the numeric phase. D, the block of this rank's columns, is the caller's, also after an error; p keeps E, the block of
   ghost columns. Once for each p. If not ok, destroy p */
PetscErrorCode GPUCSRRanksProductSymbolic(RanksProduct *p, const GPUCSRRanksCSR *a, const GPUCSRRanksCSR *b, GPUCSRStorage *D, PetscBool *ok)
{
  PetscFunctionBegin;
  PetscCall(PetscMemzero(D, sizeof(*D)));
  *ok    = PETSC_TRUE;
  p->own = b->cmap->n;
  if (p->recipe->multiplied) {
    PetscCall(GPUCSRRowsAsk(a, &p->theirs));
    Step(p, GPUCSRRanksProductBorder(p, b), ok);
    if (*ok) PetscCall(GPUCSRRowsFetch(&p->theirs));
  }
  if (*ok) PetscCall(GPUCSRRanksProductGhosts(p, b->block[1]->n, b->ghost, &p->theirs.here, b->cmap));
  Step(p, GPUCSRRanksProductFirst(p, a, b), ok);
  if (*ok && p->recipe->transposed) {
    PetscCall(GPUCSRRowsGive(p->recipe->multiplied ? b : a, &p->given));
    PetscCall(GPUCSRRanksProductGhosts(p, p->nghost, p->ghost, &p->given.here, b->cmap));
  }
  Step(p, GPUCSRRanksProductLast(p, b->cmap, D), ok);
  if (!*ok) PetscCall(GPUCSRRanksProductForget(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: the values of D and E from new values of the factors, whose patterns are the same. If not ok, destroy p */
PetscErrorCode GPUCSRRanksProductNumeric(RanksProduct *p, const GPUCSRRanksCSR *a, const GPUCSRRanksCSR *b, GPUCSRStorage *D, PetscBool *ok)
{
  PetscFunctionBegin;
  *ok = PETSC_TRUE;
  if (p->recipe->multiplied) {
    Step(p, GPUCSRRanksProductBorderValues(p, b), ok);
    if (*ok) PetscCall(GPUCSRRowsValues(&p->theirs));
  }
  Step(p, GPUCSRRanksProductFirstValues(p, a, b), ok);
  if (*ok && p->recipe->transposed) PetscCall(GPUCSRRowsValues(&p->given));
  Step(p, GPUCSRRanksProductLastValues(p, D), ok);
  if (!*ok) PetscCall(GPUCSRRanksProductForget(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode DestroyData(void *data)
{
  RanksProduct *p = (RanksProduct *)GPUCSRProductData(data);

  PetscFunctionBegin;
  PetscCall(GPUCSRRanksProductDestroy(&p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- of Mats: what ranks agree on ---- */

/* Collective: ok if no rank has met an error. With backend auto, the host takes over after an error of memory, device or size; any other error is an error on all ranks */
static PetscErrorCode Agree(void *context, const GPUCSRAttempt *a, PetscBool *ok)
{
  const Mat      C      = (Mat)context;
  const MPI_Comm comm   = PetscObjectComm((PetscObject)C->product->A);
  const int      host   = MatGPUCSRBackendOf(C->product->A) != MAT_GPUCSR_BACKEND_CUDA && (a->error == PETSC_ERR_MEM || a->error == PETSC_ERR_GPU || a->error == PETSC_ERR_SUP);
  int            weight = !a->error ? 0 : host ? 1 : 2;
  GPUCSRAttempt  worst  = *a;
  PetscMPIInt    rank;
  Mat            b[2];

  PetscFunctionBegin;
  PetscCall(GPUCSRAgree(comm, &weight, &worst.error, worst.message, sizeof(worst.message), &rank));
  *ok = (PetscBool)!weight;
  PetscCheck(weight != 2, comm, worst.error, "%s (met by rank %d)", worst.message, (int)rank);
  if (!a->error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(C->product->A, &b[0], &b[1], NULL));
  PetscCall(MatGPUCSRProductFailed_Private(C, b[0], b[1], a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The blocks of A, B and, if there is a result, C */
static PetscErrorCode AllBlocks(Mat C, PetscBool result, Mat b[6], int *n)
{
  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(C->product->A, &b[0], &b[1], NULL));
  PetscCall(MatMPIAIJGetSeqAIJ(C->product->B, &b[2], &b[3], NULL));
  if (result) PetscCall(MatMPIAIJGetSeqAIJ(C, &b[4], &b[5], NULL));
  *n = result ? 6 : 4;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KeysGet(Mat C, RanksProduct *p)
{
  Mat b[6];
  int n;

  PetscFunctionBegin;
  PetscCall(AllBlocks(C, PETSC_TRUE, b, &n));
  for (int k = 0; k < n; k++) p->key[k] = (BlockKey){((PetscObject)b[k])->id, b[k]->nonzerostate};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This rank's device; NULL if its blocks' products are on several devices or on the host, or if p was made for other patterns */
static PetscErrorCode DeviceOf(Mat C, const RanksProduct *p, GPUCSRDevice *dev)
{
  Mat       all[3] = {C->product->A, C->product->B, p ? C : NULL}, b[6];
  PetscBool isgpucsr;
  int       n;

  PetscFunctionBegin;
  *dev = NULL;
  for (int k = 0; k < 3 && all[k]; k++) {
    PetscCall(PetscObjectTypeCompare((PetscObject)all[k], MATMPIAIJGPUCSR, &isgpucsr)); /* a program may have converted a factor */
    if (!isgpucsr || !all[k]->assembled) PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(AllBlocks(C, p ? PETSC_TRUE : PETSC_FALSE, b, &n));
  for (int k = 0; k < n; k++) {
    GPUCSRDevice own;

    PetscCall(MatGPUCSRDecide_Private(b[k]));
    own = ((Mat_SeqGPUCSR *)b[k]->spptr)->dev;
    if (k && own != *dev) own = NULL;
    if (p && (p->dev != own || p->key[k].id != ((PetscObject)b[k])->id || p->key[k].pattern != b[k]->nonzerostate)) own = NULL;
    *dev = own;
    if (!own) break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: do all ranks have a device? */
static PetscErrorCode OnDevices(Mat C, const RanksProduct *p, GPUCSRDevice *dev, PetscBool *ready)
{
  PetscBool     ok;
  int           yes;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  GPUCSRTry(&attempt, DeviceOf(C, p, dev));
  PetscCall(Agree(C, &attempt, &ok));
  yes = ok && *dev;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &yes, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)C->product->A)));
  *ready = (PetscBool)yes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the result ---- */

static PetscErrorCode BothColumns(Mat C, RanksProduct *p, const GPUCSRStorage *D)
{
  Mat b[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(C, &b[0], &b[1], NULL));
  PetscCall(MatGPUCSRProductEntries_Private(b[0], D, NULL, PETSC_FALSE));
  PetscCall(MatGPUCSRProductEntries_Private(b[1], &p->E, p->ghost, PETSC_FALSE));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective, if ok: C with the pattern of D and E, and zeros; D becomes the mirror of its diagonal block */
static PetscErrorCode Fill(Mat C, RanksProduct *p, GPUCSRStorage *D, PetscBool *ok)
{
  PetscInt      *length[2] = {NULL, NULL};
  PetscErrorCode ierr      = PETSC_SUCCESS;
  Mat            b[2];

  PetscFunctionBegin;
  Step(p, MatGPUCSRProductLengths_Private(D, &length[0]), ok);
  Step(p, MatGPUCSRProductLengths_Private(&p->E, &length[1]), ok);
  if (*ok) {
    PetscCall(MatGPUCSRProductShape_Private(C));
    PetscCall(MatSetType(C, ((PetscObject)C->product->A)->type_name));
    ierr = MatMPIAIJSetPreallocation(C, 0, length[0], 0, length[1]);
  }
  for (int k = 0; k < 2; k++) PetscCall(PetscFree(length[k]));
  PetscCall(ierr);
  Step(p, BothColumns(C, p, D), ok);
  if (!*ok) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSetOption(C, MAT_NO_OFF_PROC_ENTRIES, PETSC_TRUE));
  PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(C, MAT_NO_OFF_PROC_ENTRIES, PETSC_FALSE));
  PetscCall(MatSetOption(C, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE)); /* as after MATAIJ's products */
  PetscCall(MatMPIAIJGetSeqAIJ(C, &b[0], &b[1], NULL));
  for (int k = 0; k < 2; k++) PetscCall(PetscFree(((Mat_SeqGPUCSR *)b[k]->spptr)->firstvalues)); /* the numeric phase computes and counts values */
  PetscCall(MatGPUCSRProductMirror_Private(b[0], D, PETSC_FALSE));
  PetscCall(KeysGet(C, p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the factors ---- */

/* Both factors on the device; and, for new values, D, the mirror of C's diagonal block */
static PetscErrorCode Mirrors(Mat C, GPUCSRDevice dev, GPUCSRRanksCSR f[2], GPUCSRStorage **D)
{
  const Mat x[2] = {C->product->A, C->product->B};
  Mat       b[2];

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) {
    f[k] = (GPUCSRRanksCSR){.comm = PetscObjectComm((PetscObject)x[k]), .rmap = x[k]->rmap, .cmap = x[k]->cmap};
    PetscCall(MatMPIAIJGetSeqAIJ(x[k], &b[0], &b[1], &f[k].ghost));
    for (int q = 0; q < 2; q++) PetscCall(MatGPUCSRMirror_Private(b[q], dev, (PetscBool)(D != NULL), &f[k].block[q]));
  }
  if (!D) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatMPIAIJGetSeqAIJ(C, &b[0], NULL, NULL));
  PetscCall(MatGPUCSRMirror_Private(b[0], dev, PETSC_FALSE, D));
  ((Mat_SeqGPUCSR *)b[0]->spptr)->mirror.values = -1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective, if ok: C, and the data for the numeric phase */
static PetscErrorCode Symbolic(Mat C, RanksProduct *p, PetscBool *ok)
{
  GPUCSRRanksCSR f[2];
  GPUCSRStorage  D = {0};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  Step(p, Mirrors(C, p->dev, f, NULL), ok);
  if (!*ok) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = GPUCSRRanksProductSymbolic(p, &f[0], &f[1], &D, ok);
  if (!ierr && *ok) ierr = Fill(C, p, &D, ok);
  PetscCall(GPUCSRStorageDestroy(&D)); /* nothing, if it is the mirror */
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* D and E into the host's values of C's blocks */
static PetscErrorCode ToBlocks(Mat C, const RanksProduct *p, const GPUCSRStorage *D)
{
  GPUCSRDevice   dev = p->dev;
  PetscScalar   *a;
  PetscErrorCode ierr = PETSC_SUCCESS;
  Mat            b[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(C, &b[0], &b[1], NULL));
  for (int k = 0; k < 2; k++) {
    const GPUCSRStorage *X = k ? &p->E : D;

    PetscCall(MatGPUCSRFetch_Private(b[k]));
    PetscCall(MatSeqAIJGetArrayWrite(b[k], &a));
    if (X->nnz) ierr = GPUCSRDownload(dev, a, GPUCSR_DOUBLE, X->array[CSR_VAL].data, GPUCSR_DOUBLE, (size_t)X->nnz, PETSC_FALSE, dev->stream);
    if (!ierr) ierr = (*dev->ops->streamsynchronize)(dev->id, dev->stream);
    MatGPUCSRValuesBack((Mat_SeqGPUCSR *)b[k]->spptr, 8.0 * (double)X->nnz);
    PetscCall(MatSeqAIJRestoreArrayWrite(b[k], &a));
    PetscCall(ierr);
  }
  ((Mat_SeqGPUCSR *)b[0]->spptr)->info.sparse_products++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective, if ok */
static PetscErrorCode Numeric(Mat C, RanksProduct *p, PetscBool *ok)
{
  GPUCSRRanksCSR f[2];
  GPUCSRStorage *D;

  PetscFunctionBegin;
  p->context = C; /* MatHeaderReplace() may have given the product to another Mat */
  Step(p, Mirrors(C, p->dev, f, &D), ok);
  if (*ok) PetscCall(GPUCSRRanksProductNumeric(p, &f[0], &f[1], D, ok));
  Step(p, ToBlocks(C, p, D), ok);
  if (!*ok) PetscCall(GPUCSRRanksProductForget(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductNumeric_MPIAIJGPUCSR(Mat C)
{
  RanksProduct *p = (RanksProduct *)C->product->data;
  GPUCSRDevice  dev;
  PetscBool     ok;
  Mat           b[2];

  PetscFunctionBegin;
  PetscCall(OnDevices(C, p, &dev, &ok));
  if (ok) PetscCall(Numeric(C, p, &ok));
  if (!ok) PetscCall(MatGPUCSRProductOnHost_Private(C, MatProductSetFromOptions_GPUCSR));
  PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  if (ok) {
    Mat_SeqGPUCSR *g;

    PetscCall(MatMPIAIJGetSeqAIJ(C, &b[0], &b[1], NULL));
    g = (Mat_SeqGPUCSR *)b[0]->spptr;
    PetscCall(MatGPUCSRHeaderReplaced_Private(b[0]));
    PetscCall(PetscObjectStateGet((PetscObject)b[0], &g->mirror.values));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_MPIAIJGPUCSR(Mat C)
{
  RanksProduct  *p;
  GPUCSRDevice   dev;
  PetscBool      ok;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(OnDevices(C, NULL, &dev, &ok));
  if (ok) {
    PetscCall(GPUCSRRanksProductCreate(C->product->type, dev, Agree, C, &p));
    ierr = Symbolic(C, p, &ok);
    if (ierr) PetscCall(GPUCSRRanksProductDestroy(&p));
    PetscCall(ierr);
    if (ok) {
      C->product->data        = p;
      C->product->destroy     = DestroyData;
      C->ops->productsymbolic = MatProductSymbolic_MPIAIJGPUCSR;
      C->ops->productnumeric  = MatProductNumeric_MPIAIJGPUCSR;
      PetscFunctionReturn(PETSC_SUCCESS);
    }
    PetscCall(GPUCSRRanksProductDestroy(&p));
  }
  C->ops->productsymbolic = NULL;
  C->ops->productnumeric  = NULL;
  PetscCall(MatProductSetFromOptions_GPUCSR(C));
  PetscCall((*C->ops->productsymbolic)(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool SameRange(PetscLayout a, PetscLayout b)
{
  return (PetscBool)(a->rstart == b->rstart && a->rend == b->rend);
}

/* Do the local sizes fit? If not, MATAIJ reports the error */
static PetscBool Conforming(Mat C)
{
  const Mat A = C->product->A, B = C->product->B;

  if (Find(C->product->type)->multiplied && !SameRange(A->cmap, B->rmap)) return PETSC_FALSE;
  return (PetscBool)(C->product->type == MATPRODUCT_AB || SameRange(A->rmap, B->rmap));
}

/* Collective: is the product MATAIJ's, because one of its algorithms was asked for, or the matrices are small or do not conform? */
static PetscErrorCode LeftToParent(Mat C, PetscBool *left)
{
  Mat         A    = C->product->A, b[6];
  PetscInt64  n[3] = {0, 0, ((Mat_GPUCSR *)A->spptr)->config.productleast}; /* sums over ranks: entries; ranks with the product left to MATAIJ; worthwhile entries */
  PetscMPIInt size;
  int         nb;

  PetscFunctionBegin;
  PetscCallMPI(MPI_Comm_size(PetscObjectComm((PetscObject)A), &size));
  PetscCall(MatGPUCSRProductAsked_Private(C, left));
  PetscCall(AllBlocks(C, PETSC_FALSE, b, &nb));
  n[1] = *left || size == 1 || !Conforming(C);
  for (int k = 0; k < nb; k++) {
    const PetscInt *i;

    PetscCall(MatSeqAIJGetCSRAndMemType(b[k], &i, NULL, NULL, NULL));
    if (i) n[0] += i[b[k]->rmap->n];
    else n[1]++;
  }
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, n, 3, MPI_INT64_T, MPI_SUM, PetscObjectComm((PetscObject)A)));
  *left = (PetscBool)(n[1] || n[0] < n[2]);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatProductSetFromOptions_MPIAIJGPUCSR(Mat C)
{
  PetscBool    left = PETSC_TRUE, isgpucsr = PETSC_FALSE, ready;
  GPUCSRDevice dev;

  PetscFunctionBegin;
  if (Find(C->product->type)) {
    PetscCall(PetscObjectTypeCompare((PetscObject)C->product->A, MATMPIAIJGPUCSR, &isgpucsr));
    if (isgpucsr) PetscCall(PetscObjectTypeCompare((PetscObject)C->product->B, MATMPIAIJGPUCSR, &isgpucsr));
  }
  if (isgpucsr && C->product->A->assembled && C->product->B->assembled) PetscCall(LeftToParent(C, &left));
  PetscCall(MatProductSetFromOptions_GPUCSR(C)); /* reads the options of that product */
  if (!left) PetscCall(OnDevices(C, NULL, &dev, &ready));
  if (!left && ready) C->ops->productsymbolic = MatProductSymbolic_MPIAIJGPUCSR;
  else PetscCall(PetscInfo(C, "This product of sparse matrices on several processes is MATAIJ's, on the host\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

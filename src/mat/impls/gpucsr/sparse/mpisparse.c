/*
  Products of two or three matrices of type mpiaijgpucsr on the devices of their ranks: A B, A^T B and P^T A P, by products of local rows and received rows (spgemm/).

    M = A B        [A_d A_o] times [this rank's rows of B; fetched rows of B]. Other ranks own the fetched rows: one for each column of A_o
    C = T^T M      T is A, or P. The rows of T_o^T M go to their owners. S has a 1 for each received row: C = [T_d^T S] [M; received rows]. Received rows are added in the order of
                   ranks, so every run has the same bits

  A_d and A_o are the diagonal and the off-diagonal block. Columns have local numbers: the rank's own, then the ghost columns, both ascending. PetscSF exchanges rows at the border
  between host arrays. All ranks compute on their devices, or all leave the product to another implementation: they agree after each step that can fail.

  Products of GPUCSRRanksCSR come first. Those of Mats are their callers.
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

/* ---- of Mats: the result ---- */

/* Was the product made for these patterns on this device? */
static PetscErrorCode Current(Mat C, const Mat b[], GPUCSRDevice dev, PetscBool *yes)
{
  const RanksProduct *p = (const RanksProduct *)C->product->data;

  PetscFunctionBegin;
  *yes = (PetscBool)(p->dev == dev);
  for (int k = 0; k < 6 && *yes; k++) {
    PetscCall(MatGPUCSRDecide_Private(b[k]));
    *yes = (PetscBool)(((Mat_SeqGPUCSR *)b[k]->spptr)->dev == dev && p->key[k].id == ((PetscObject)b[k])->id && p->key[k].pattern == b[k]->nonzerostate);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

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
  Mat            b[2], all[6];
  int            n;

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
  PetscCall(MatGPUCSRProductMirror_Private(b[0], D));
  PetscCall(MatGPUCSRProductBlocks_Private(C, PETSC_TRUE, all, &n));
  for (int k = 0; k < n; k++) p->key[k] = (BlockKey){((PetscObject)all[k])->id, all[k]->nonzerostate};
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
static PetscErrorCode SymbolicSteps(Mat C, RanksProduct *p, PetscBool *ok)
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
  PetscScalar   *a;
  PetscErrorCode ierr;
  Mat            b[2];

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(C, &b[0], &b[1], NULL));
  for (int k = 0; k < 2; k++) {
    const GPUCSRStorage *X = k ? &p->E : D;

    PetscCall(MatGPUCSRFetch_Private(b[k]));
    PetscCall(MatSeqAIJGetArrayWrite(b[k], &a));
    ierr = GPUCSRCSRDownload(X, NULL, NULL, a);
    MatGPUCSRValuesBack((Mat_SeqGPUCSR *)b[k]->spptr, 8.0 * (double)X->nnz);
    PetscCall(MatSeqAIJRestoreArrayWrite(b[k], &a));
    PetscCall(ierr);
  }
  ((Mat_SeqGPUCSR *)b[0]->spptr)->info.sparse_products++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Symbolic(Mat C, GPUCSRDevice dev, PetscBool *ok)
{
  RanksProduct  *p;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRRanksProductCreate(C->product->type, dev, MatGPUCSRProductAgree_Private, C, &p));
  ierr = SymbolicSteps(C, p, ok);
  if (!ierr && *ok) {
    C->product->data    = p;
    C->product->destroy = DestroyData;
  } else PetscCall(GPUCSRRanksProductDestroy(&p));
  PetscFunctionReturn(ierr);
}

static PetscErrorCode Numeric(Mat C, GPUCSRDevice dev, PetscBool *ok)
{
  RanksProduct  *p = (RanksProduct *)C->product->data;
  GPUCSRRanksCSR f[2];
  GPUCSRStorage *D;

  PetscFunctionBegin;
  p->context = C; /* MatHeaderReplace() may have given the product to another Mat */
  Step(p, Mirrors(C, dev, f, &D), ok);
  if (*ok) PetscCall(GPUCSRRanksProductNumeric(p, &f[0], &f[1], D, ok));
  Step(p, ToBlocks(C, p, D), ok);
  if (!*ok) PetscCall(GPUCSRRanksProductForget(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool SameRange(PetscLayout a, PetscLayout b)
{
  return (PetscBool)(a->rstart == b->rstart && a->rend == b->rend);
}

/* If local sizes do not fit, MATAIJ reports the error */
static PetscBool Computes(Mat C)
{
  const Mat     A = C->product->A, B = C->product->B;
  const Recipe *r = Find(C->product->type);

  if (!r || GPUCSRSizeOf(PetscObjectComm((PetscObject)A)) == 1 || (r->multiplied && !SameRange(A->cmap, B->rmap))) return PETSC_FALSE;
  return (PetscBool)(r->type == MATPRODUCT_AB || SameRange(A->rmap, B->rmap));
}

const GPUCSRProductWay GPUCSRProductWay_mpi = {MATMPIAIJGPUCSR, Computes, Symbolic, Current, Numeric};

/*
  Products of two or three matrices of type seqaijgpucsr on the device: A B, A^T B, A B^T, P^T A P and R A R^T. Each is one or two products of
  matrices in CSR (spgemm/), one factor of which may be a transpose.

  The host's MATAIJ stays the master copy: the result's pattern and values are downloaded. Patterns that are new to the device and values that have
  changed are uploaded.
*/
#include "sparseproduct.h"

/* The operands of both products, of two or of three matrices */
typedef enum {
  FACTOR_A,
  FACTOR_B,
  FACTOR_T, /* A or B transposed */
  FACTOR_M  /* the first product, where there are two */
} Factor;

typedef struct {
  MatProductType type;
  PetscBool      two;            /* two products, not one */
  Factor         transposed;     /* the source of T; FACTOR_T: no T */
  Factor         l1, r1, l2, r2; /* M = l1 r1, C = l2 r2 */
} Recipe;

static const Recipe recipes[] = {
  {MATPRODUCT_AB,   PETSC_FALSE, FACTOR_T, FACTOR_T, FACTOR_T, FACTOR_A, FACTOR_B},
  {MATPRODUCT_AtB,  PETSC_FALSE, FACTOR_A, FACTOR_T, FACTOR_T, FACTOR_T, FACTOR_B},
  {MATPRODUCT_ABt,  PETSC_FALSE, FACTOR_B, FACTOR_T, FACTOR_T, FACTOR_A, FACTOR_T},
  {MATPRODUCT_PtAP, PETSC_TRUE,  FACTOR_B, FACTOR_A, FACTOR_B, FACTOR_T, FACTOR_M},
  {MATPRODUCT_RARt, PETSC_TRUE,  FACTOR_B, FACTOR_A, FACTOR_T, FACTOR_B, FACTOR_M}
};

static const Recipe *Find(MatProductType type)
{
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(recipes); k++)
    if (recipes[k].type == type) return &recipes[k];
  return NULL;
}

/* Data of a product for new values, C->product->data. Everything on the device can be made again. */
typedef struct _n_SparseProduct SparseProduct;
struct _n_SparseProduct {
  const Recipe    *recipe;
  GPUCSRDevice     dev;
  GPUCSRStorage    T, M;
  int32_t         *map; /* places of T's values in their source */
  size_t           mapbytes;
  GPUCSRRowClasses mrows, crows;
  PetscObjectState apattern, bpattern, cpattern; /* nonzerostates of the factors and the result */
  GPUCSRLiving     living;
};

static PetscErrorCode SparseProductRelease(void *product)
{
  SparseProduct *p = (SparseProduct *)product;

  PetscFunctionBegin;
  if (!p->dev) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRStorageDestroy(&p->T));
  PetscCall(GPUCSRStorageDestroy(&p->M));
  PetscCall(GPUCSRFree(p->dev, p->mapbytes, (void **)&p->map));
  PetscCall(GPUCSRRowClassesDestroy(p->dev, &p->mrows));
  PetscCall(GPUCSRRowClassesDestroy(p->dev, &p->crows));
  p->dev = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRLivingList products = {GPUCSR_FINAL_PRODUCT, SparseProductRelease, NULL};

static PetscErrorCode SparseProductDestroy(void *data)
{
  SparseProduct *p = (SparseProduct *)GPUCSRProductData(data);

  PetscFunctionBegin;
  PetscCall(SparseProductRelease(p));
  PetscCall(GPUCSRLivingRemove(&p->living));
  PetscCall(PetscFree(p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The factors on the device: T and M are made again if they are missing or of old patterns */
static PetscErrorCode Factors(Mat C, PetscBool values, const GPUCSRStorage *f[4])
{
  SparseProduct *p = (SparseProduct *)C->product->data;
  const Recipe  *r = p->recipe;
  Mat            A = C->product->A, B = C->product->B;
  GPUCSRStorage *a, *b;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRMirror_Private(A, p->dev, values, &a));
  PetscCall(MatGPUCSRMirror_Private(B, p->dev, values, &b));
  f[FACTOR_A] = a;
  f[FACTOR_B] = b;
  f[FACTOR_T] = &p->T;
  f[FACTOR_M] = &p->M;
  if (p->apattern != A->nonzerostate || p->bpattern != B->nonzerostate) {
    PetscCall(GPUCSRStorageDestroy(&p->T));
    PetscCall(GPUCSRStorageDestroy(&p->M));
  }
  if (r->transposed != FACTOR_T) {
    if (!p->T.format) {
      GPUCSRStorage from = *f[r->transposed];

      if (!values) from.array[CSR_VAL].data = NULL; /* not written yet */
      PetscCall(GPUCSRFree(p->dev, p->mapbytes, (void **)&p->map));
      PetscCall(GPUCSRTransposeStorage(&from, &p->T, &p->map));
      p->mapbytes = sizeof(int32_t) * (size_t)p->T.nnz;
    } else if (values) PetscCall(GPUCSRTransposeValues(f[r->transposed], p->map, &p->T));
  }
  if (r->two && !p->M.format) {
    PetscCall(GPUCSRRowClassesDestroy(p->dev, &p->mrows));
    PetscCall(GPUCSRSpGEMMSymbolic(f[r->l1], f[r->r1], &p->M, &p->mrows));
  }
  p->apattern = A->nonzerostate;
  p->bpattern = B->nonzerostate;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Lengths of the rows of a result; the array has room for one number more */
PetscErrorCode MatGPUCSRProductLengths_Private(const GPUCSRStorage *A, PetscInt **length)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1((size_t)A->m + 1, length));
  ierr = GPUCSRCSRDownload(A, *length, NULL, NULL);
  if (ierr) PetscCall(PetscFree(*length));
  PetscCall(ierr);
  for (int r = 0; r < A->m; r++) (*length)[r] = (*length)[r + 1] - (*length)[r];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Columns and values, or zeros, of a preallocated block. Only public functions: the columns are written into the block's memory, and MatSeqAIJSetColumnIndices() accepts them.
  ghost: global numbers of the columns, which an off-diagonal block holds until it is assembled.
*/
PetscErrorCode MatGPUCSRProductEntries_Private(Mat block, const GPUCSRStorage *A, const PetscInt ghost[], PetscBool values)
{
  const int       threads = A->dev->threads;
  const PetscInt *columns;
  PetscInt       *j;
  PetscScalar    *a;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(block, NULL, &columns, &a, NULL));
  j = (PetscInt *)columns;
  PetscCall(GPUCSRCSRDownload(A, NULL, j, values ? a : NULL));
  if (values) MatGPUCSRValuesBack((Mat_SeqGPUCSR *)block->spptr, 8.0 * (double)A->nnz);
  for (int64_t k = 0; ghost && k < A->nnz; k++) j[k] = ghost[j[k]];
  PetscCall(MatSeqAIJSetColumnIndices(block, j));
  if (!values) { /* by all threads, since this is the memory's first touch */
#pragma omp parallel for num_threads(threads) if ((double)A->nnz > GPUCSRMachineShared.threaded_entries)
    for (int64_t k = 0; k < A->nnz; k++) a[k] = 0;
  }
  if (block->rmap->n != block->cmap->n) PetscCall(MatSetOption(block, MAT_USE_INODES, PETSC_FALSE)); /* PETSc would compare all rows with their neighbours; only solvers gain by that, and their matrices are square */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* csr becomes the mirror of an assembled block, without its values */
PetscErrorCode MatGPUCSRProductMirror_Private(Mat block, GPUCSRStorage *csr)
{
  Mat_SeqGPUCSR  *g = (Mat_SeqGPUCSR *)block->spptr;
  const PetscInt *columns;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(block, NULL, &columns, NULL, NULL));
  g->mirror.csr     = *csr;
  g->mirror.pattern = block->nonzerostate;
  g->mirror.columns = columns;
  g->mirror.values  = -1;
  PetscCall(PetscMemzero(csr, sizeof(*csr)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Downloads a result: its pattern, and its values, or zeros in their places. C has its sizes and its type */
PetscErrorCode MatGPUCSREntriesOf_Private(Mat C, const GPUCSRStorage *csr, PetscBool values)
{
  PetscInt      *length;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRProductLengths_Private(csr, &length));
  ierr = MatSeqAIJSetPreallocation(C, 0, length);
  PetscCall(PetscFree(length));
  PetscCall(ierr);
  PetscCall(MatGPUCSRProductEntries_Private(C, csr, NULL, values));
  PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatSetOption(C, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE)); /* as after MATAIJ's products */
  PetscCall(PetscFree(((Mat_SeqGPUCSR *)C->spptr)->firstvalues));          /* the numeric phase computes and counts values */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SymbolicSteps(Mat C, SparseProduct *p, GPUCSRStorage *csr)
{
  const GPUCSRStorage *f[4];

  PetscFunctionBegin;
  PetscCall(Factors(C, PETSC_FALSE, f));
  PetscCall(GPUCSRSpGEMMSymbolic(f[p->recipe->l2], f[p->recipe->r2], csr, &p->crows));
  PetscCall(MatGPUCSRProductShape_Private(C));
  PetscCall(MatSetType(C, ((PetscObject)C->product->A)->type_name));
  PetscCall(MatGPUCSREntriesOf_Private(C, csr, PETSC_FALSE));
  PetscCall(MatGPUCSRProductMirror_Private(C, csr));
  p->cpattern = C->nonzerostate;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The pattern of C, and the data for the numeric phase */
static PetscErrorCode SymbolicOnDevice(Mat C)
{
  SparseProduct *p   = (SparseProduct *)C->product->data;
  GPUCSRStorage  csr = {0};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = SymbolicSteps(C, p, &csr);
  PetscCall(GPUCSRStorageDestroy(&csr));
  PetscFunctionReturn(ierr);
}

static PetscErrorCode NumericOnDevice(Mat C)
{
  SparseProduct       *p = (SparseProduct *)C->product->data;
  Mat_SeqGPUCSR       *g = (Mat_SeqGPUCSR *)C->spptr;
  const GPUCSRStorage *f[4];
  GPUCSRStorage       *c;

  PetscFunctionBegin;
  PetscCall(Factors(C, PETSC_TRUE, f));
  PetscCall(MatGPUCSRMirror_Private(C, p->dev, PETSC_FALSE, &c));
  if (p->cpattern != C->nonzerostate || !p->crows.rows) {
    PetscCall(GPUCSRRowClassesOf(c, &p->crows));
    p->cpattern = C->nonzerostate;
  }
  g->mirror.values = -1;
  if (p->recipe->two) PetscCall(GPUCSRSpGEMMNumeric(f[p->recipe->l1], f[p->recipe->r1], &p->mrows, &p->M));
  PetscCall(GPUCSRSpGEMMNumeric(f[p->recipe->l2], f[p->recipe->r2], &p->crows, c));
  PetscCall(MatGPUCSRWritten_Private(C));
  ((Mat_SeqGPUCSR *)C->product->A->spptr)->info.sparse_products++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Numeric(Mat C, GPUCSRDevice dev, PetscBool *ok)
{
  SparseProduct *p = (SparseProduct *)C->product->data;
  GPUCSRAttempt  attempt;

  PetscFunctionBegin;
  if (p->dev != dev) PetscCall(SparseProductRelease(p));
  p->dev = dev;
  GPUCSRTry(&attempt, NumericOnDevice(C));
  if (attempt.error) PetscCall(SparseProductRelease(p));
  PetscCall(MatGPUCSRProductAgree_Private(C, &attempt, ok));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Symbolic(Mat C, GPUCSRDevice dev, PetscBool *ok)
{
  SparseProduct *p;
  GPUCSRAttempt  attempt;

  PetscFunctionBegin;
  PetscCall(PetscNew(&p));
  p->dev    = dev;
  p->recipe = Find(C->product->type);
  PetscCall(GPUCSRLivingAdd(&products, &p->living, p));
  C->product->data    = p;
  C->product->destroy = SparseProductDestroy;
  GPUCSRTry(&attempt, SymbolicOnDevice(C));
  PetscCall(MatGPUCSRProductAgree_Private(C, &attempt, ok));
  if (*ok) PetscFunctionReturn(PETSC_SUCCESS);
  C->product->data    = NULL;
  C->product->destroy = NULL;
  PetscCall(SparseProductDestroy(GPUCSRProductArgument(p)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscBool Computes(Mat C)
{
  return (PetscBool)(Find(C->product->type) != NULL);
}

const GPUCSRProductWay GPUCSRProductWay_seq = {MATSEQAIJGPUCSR, Computes, Symbolic, NULL, Numeric};

/* Y += a X on the device, and Y's values to the host; lost: X has entries outside Y's pattern, and the host's values are unchanged */
static PetscErrorCode AXPYOnDevice(Mat Y, PetscScalar a, Mat X, GPUCSRBool *lost)
{
  Mat_SeqGPUCSR *g   = (Mat_SeqGPUCSR *)Y->spptr;
  GPUCSRDevice   dev = g->dev;
  GPUCSRStorage *x, *y;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFetch_Private(Y)); /* in case X has other entries */
  PetscCall(MatGPUCSRMirror_Private(X, dev, PETSC_TRUE, &x));
  PetscCall(MatGPUCSRMirror_Private(Y, dev, PETSC_TRUE, &y));
  g->mirror.values = -1;
  PetscCall(GPUCSRSpAXPY((double)PetscRealPart(a), x, y, lost));
  if (*lost) PetscFunctionReturn(PETSC_SUCCESS);
  ierr = MatGPUCSRWritten_Private(Y);
  PetscCheck(!ierr, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Values of Y are lost"); /* earlier errors leave the values unchanged */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* done false: MATAIJ, which has more cases, adds them */
PetscErrorCode MatAXPY_SeqAIJGPUCSR(Mat Y, PetscScalar a, Mat X, MatStructure str, PetscBool *done)
{
  Mat_SeqGPUCSR  *g = (Mat_SeqGPUCSR *)Y->spptr;
  const PetscInt *i;
  GPUCSRBool      lost = 0;
  GPUCSRAttempt   attempt;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (!GPUCSRIsType(X, MATSEQAIJGPUCSR) || X == Y) PetscFunctionReturn(PETSC_SUCCESS);
  if (str == SAME_NONZERO_PATTERN) PetscCall(MatGPUCSRAddSame_Private(Y, a, X, done));
  if (str != SUBSET_NONZERO_PATTERN) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatSeqAIJGetCSRAndMemType(Y, &i, NULL, NULL, NULL));
  if (!i || i[Y->rmap->n] < g->base.config.productleast) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRDecide_Private(Y));
  PetscCall(MatGPUCSRDecide_Private(X));
  if (!g->dev || g->dev != ((Mat_SeqGPUCSR *)X->spptr)->dev) PetscFunctionReturn(PETSC_SUCCESS);
  GPUCSRTryIf(MatGPUCSRBackendOf(Y) != MAT_GPUCSR_BACKEND_CUDA, &attempt, AXPYOnDevice(Y, a, X, &lost));
  PetscCheck(attempt.error != PETSC_ERR_PLIB, PETSC_COMM_SELF, PETSC_ERR_GPU, "The device failed while values were on their way back into the matrix that they are added to: %s", attempt.message);
  if (attempt.error) PetscCall(PetscInfo(Y, "Matrices are added on the host, because %s\n", attempt.message));
  *done = (PetscBool)(!attempt.error && !lost);
  PetscFunctionReturn(PETSC_SUCCESS);
}

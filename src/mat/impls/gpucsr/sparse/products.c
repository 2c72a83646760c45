/*
  Products of sparse matrices of type seqaijgpucsr (sparseproduct.c) or mpiaijgpucsr (mpisparse.c): all ranks compute on their devices, or all leave the product to MATAIJ. MATAIJ computes a product that a
  device cannot (no device, no memory) or should not (another algorithm asked for, small matrices).
*/
#include "sparseproduct.h"

static const GPUCSRProductWay *WayOf(Mat C)
{
  return GPUCSRIsType(C->product->A, MATMPIAIJGPUCSR) ? &GPUCSRProductWay_mpi : &GPUCSRProductWay_seq;
}

/* The blocks of A, B and, if there is a result, C */
PetscErrorCode MatGPUCSRProductBlocks_Private(Mat C, PetscBool result, Mat b[6], int *n)
{
  const Mat all[3] = {C->product->A, C->product->B, C};

  PetscFunctionBegin;
  *n = 0;
  for (int k = 0; k < (result ? 3 : 2); k++) {
    if (GPUCSRIsType(all[k], MATMPIAIJGPUCSR)) {
      PetscCall(MatMPIAIJGetSeqAIJ(all[k], &b[*n], &b[*n + 1], NULL));
      *n += 2;
    } else b[(*n)++] = all[k];
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sizes and block sizes of the product */
PetscErrorCode MatGPUCSRProductShape_Private(Mat C)
{
  const MatProductType t = C->product->type;
  Mat                  A = C->product->A, B = C->product->B;
  PetscLayout          rows = A->rmap, cols = B->cmap;

  PetscFunctionBegin;
  if (t == MATPRODUCT_AtB) rows = A->cmap;
  if (t == MATPRODUCT_ABt) cols = B->rmap;
  if (t == MATPRODUCT_PtAP) rows = B->cmap;
  if (t == MATPRODUCT_RARt) rows = cols = B->rmap;
  PetscCall(MatSetSizes(C, rows->n, cols->n, rows->N, cols->N));
  PetscCall(PetscLayoutSetUp(C->rmap));
  PetscCall(PetscLayoutSetUp(C->cmap));
  if (rows->bs > 0 && cols->bs > 0) PetscCall(MatSetBlockSizes(C, rows->bs, cols->bs));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Collective: ok if no rank has met an error. With backend auto, the host takes over after an error of memory, device or size; any other error is an error on all ranks. A failure of the device goes to A, as
  for other products; too little memory or 32-bit indices concern this product alone
*/
PetscErrorCode MatGPUCSRProductAgree_Private(void *context, const GPUCSRAttempt *a, PetscBool *ok)
{
  const Mat      C = (Mat)context, A = C->product->A;
  const MPI_Comm comm   = PetscObjectComm((PetscObject)A);
  const int      device = a->error == PETSC_ERR_MEM || a->error == PETSC_ERR_GPU || a->error == PETSC_ERR_SUP;
  int            weight = !a->error ? 0 : device && MatGPUCSRBackendOf(A) != MAT_GPUCSR_BACKEND_CUDA ? 1 : 2, n;
  GPUCSRAttempt  worst  = *a;
  PetscMPIInt    rank;
  Mat            b[6];
  Mat_SeqGPUCSR *g;

  PetscFunctionBegin;
  PetscCall(GPUCSRAgree(comm, &weight, &worst.error, worst.message, sizeof(worst.message), &rank));
  *ok = (PetscBool)!weight;
  PetscCheck(weight != 2 || GPUCSRSizeOf(comm) == 1, comm, worst.error, "%s (met by rank %d)", worst.message, (int)rank);
  PetscCheck(weight != 2, comm, worst.error, "%s", worst.message);
  if (!a->error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRProductBlocks_Private(C, PETSC_FALSE, b, &n));
  g = (Mat_SeqGPUCSR *)b[0]->spptr;
  if (a->error == PETSC_ERR_GPU && g->dev) PetscCall(MatGPUCSRFailed_Private(b[0], n == 4 ? b[1] : NULL, a));
  else
    PetscCall(
      PetscSNPrintf(g->warning, sizeof(g->warning), "a product of sparse matrices, %s of %" PetscInt_FMT " rows and %" PetscInt_FMT " columns, is computed on the host, because %s", MatProductTypes[C->product->type], A->rmap->N, C->product->B->cmap->N, a->message));
  if (n == 4 || !g->block) PetscCall(MatGPUCSRWarn_Private(b[0], 0, 0, 0));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are the factors and, if there is a result, C of this type? A program may have converted one */
static PetscBool Typed(Mat C, PetscBool result)
{
  const Mat all[3] = {C->product->A, C->product->B, C};

  for (int k = 0; k < (result ? 3 : 2); k++)
    if (!GPUCSRIsType(all[k], WayOf(C)->type) || !all[k]->assembled) return PETSC_FALSE;
  return PETSC_TRUE;
}

/* This rank's device; NULL if its blocks' products are on several devices or on the host, or if the data of the result do not fit */
static PetscErrorCode DeviceOf(Mat C, PetscBool result, GPUCSRDevice *dev)
{
  const GPUCSRProductWay *w       = WayOf(C);
  PetscBool               current = PETSC_TRUE;
  Mat                     b[6];
  int                     n;

  PetscFunctionBegin;
  *dev = NULL;
  if (!Typed(C, result)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRProductBlocks_Private(C, PETSC_FALSE, b, &n));
  for (int k = 0; k < n && current; k++) {
    GPUCSRDevice own;

    PetscCall(MatGPUCSRDecide_Private(b[k]));
    own     = ((Mat_SeqGPUCSR *)b[k]->spptr)->dev;
    current = (PetscBool)(own && (!k || own == *dev));
    *dev    = own;
  }
  PetscCall(MatGPUCSRProductBlocks_Private(C, result, b, &n));
  if (current && result && w->current) PetscCall((*w->current)(C, b, *dev, &current));
  if (!current) *dev = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective: do all ranks have a device? */
static PetscErrorCode OnDevices(Mat C, PetscBool result, GPUCSRDevice *dev, PetscBool *ready)
{
  GPUCSRAttempt attempt;
  int           yes;

  PetscFunctionBegin;
  GPUCSRTry(&attempt, DeviceOf(C, result, dev));
  PetscCall(MatGPUCSRProductAgree_Private(C, &attempt, ready));
  yes = *ready && *dev;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &yes, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)C->product->A)));
  *ready = (PetscBool)yes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductNumeric_AIJGPUCSR(Mat C)
{
  GPUCSRDevice   dev;
  PetscBool      ok;
  Mat            b[6], D;
  Mat_SeqGPUCSR *g;
  int            n;

  PetscFunctionBegin;
  PetscCall(OnDevices(C, PETSC_TRUE, &dev, &ok));
  if (ok) PetscCall((*WayOf(C)->numeric)(C, dev, &ok));
  if (!ok) {
    Mat_Product *q = C->product;
    Mat          other;

    /* MATAIJ computes the product in another matrix, and its values are copied into C */
    PetscCall(MatProductCreate(q->A, q->B, NULL, &other));
    PetscCall(MatProductSetType(other, q->type));
    PetscCall(MatProductSetAlgorithm(other, MATPRODUCTALGORITHMDEFAULT));
    PetscCall(MatProductSetFill(other, q->fill));
    PetscCall(MatProductSetFromOptions_GPUCSR(other));
    PetscCall(MatProductSymbolic(other));
    PetscCall(MatProductNumeric(other));
    PetscCall(MatZeroEntries(C));
    PetscCall(MatAXPY(C, 1.0, other, SUBSET_NONZERO_PATTERN));
    PetscCall(MatDestroy(&other));
  }
  PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  if (!ok) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRProductBlocks_Private(C, PETSC_TRUE, b, &n));
  D = b[2 * n / 3];
  g = (Mat_SeqGPUCSR *)D->spptr;
  PetscCall(MatGPUCSRHeaderReplaced_Private(D));
  PetscCall(PetscObjectStateGet((PetscObject)D, &g->mirror.values));
  if (D == C) g->mirror.values++; /* PETSc counts the product after this function */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_AIJGPUCSR(Mat C)
{
  GPUCSRDevice dev;
  PetscBool    ok;

  PetscFunctionBegin;
  PetscCall(OnDevices(C, PETSC_FALSE, &dev, &ok));
  if (ok) PetscCall((*WayOf(C)->symbolic)(C, dev, &ok));
  if (ok) {
    C->ops->productsymbolic = MatProductSymbolic_AIJGPUCSR;
    C->ops->productnumeric  = MatProductNumeric_AIJGPUCSR;
  } else {
    PetscCall(MatProductSetFromOptions_GPUCSR(C));
    PetscCall((*C->ops->productsymbolic)(C));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatProductSetFromOptions_AIJGPUCSR(Mat C)
{
  PetscBool    left = PETSC_TRUE, ready = PETSC_FALSE;
  GPUCSRDevice dev;

  PetscFunctionBegin;
  if (Typed(C, PETSC_FALSE)) {
    Mat                      A    = C->product->A, b[6];
    PetscInt64               n[3] = {0, 0, ((Mat_GPUCSR *)A->spptr)->config.productleast}; /* sums over ranks: entries; ranks with the product left to MATAIJ; worthwhile entries */
    int                      nb;
    static const char *const words[] = {"-mat_product_algorithm", "-matmatmult_via", "-mattransposematmult_via", "-matmattransmult_via", "-matptap_via", "-matrart_via"};
    PetscBool                same;

    /* is the product MATAIJ's, because no device computes it, one of MATAIJ's algorithms was asked for, or the matrices are small? */
    PetscCall(PetscStrcmp(C->product->alg, MATPRODUCTALGORITHMDEFAULT, &same)); /* was one of MATAIJ's algorithms asked for? */
    left = (PetscBool)!same;
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(words) && !left; k++) PetscCall(PetscOptionsHasName(((PetscObject)C)->options, ((PetscObject)C)->prefix, words[k], &left));
    PetscCall(MatGPUCSRProductBlocks_Private(C, PETSC_FALSE, b, &nb));
    n[1] = left || !(*WayOf(C)->computes)(C);
    for (int k = 0; k < nb; k++) {
      const PetscInt *i;

      PetscCall(MatSeqAIJGetCSRAndMemType(b[k], &i, NULL, NULL, NULL));
      if (i) n[0] += i[b[k]->rmap->n];
      else n[1]++;
    }
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, n, 3, MPI_INT64_T, MPI_SUM, PetscObjectComm((PetscObject)A)));
    left = (PetscBool)(n[1] || n[0] < n[2]);
  }
  PetscCall(MatProductSetFromOptions_GPUCSR(C)); /* reads the options of that product */
  if (!left) PetscCall(OnDevices(C, PETSC_FALSE, &dev, &ready));
  if (ready) C->ops->productsymbolic = MatProductSymbolic_AIJGPUCSR;
  else PetscCall(PetscInfo(C, "This product of sparse matrices is MATAIJ's, on the host\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

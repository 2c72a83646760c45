/*
  Products of sparse matrices of type seqaijgpucsr (sparseproduct.c) or mpiaijgpucsr (mpisparse.c): all ranks compute on their devices, or all leave the product to MATAIJ. MATAIJ computes a product that a
  device cannot (no device, no memory) or should not (another algorithm asked for, small matrices).

  Then the type that computes a product of matrices of any types. MatProductSetFromOptions() asks the factors for a function that all of them share, then for a function of the names of their types, then for
  a function of any types. Products that matmat.c does not compute go to MATAIJ or to the other factors.
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

/* ---- of any types ---- */

/* The factors, NULL behind the last */
static void Factors(Mat C, Mat M[4])
{
  M[0] = C->product->A;
  M[1] = C->product->B;
  M[2] = C->product->type == MATPRODUCT_ABC ? C->product->C : NULL;
  M[3] = NULL;
}

/* The common function of all factors for their products, as MATAIJ; NULL: there is none */
static PetscErrorCode Shared(const Mat M[], PetscErrorCode (**f)(Mat))
{
  PetscFunctionBegin;
  *f = NULL;
  for (int k = 0; M[k]; k++) {
    PetscErrorCode (*own)(Mat) = M[k]->ops->productsetfromoptions;

    if (MatGPUCSRIs(M[k])) own = ((Mat_GPUCSR *)M[k]->spptr)->parent.productsetfromoptions;
    if (k && own != *f) {
      *f = NULL;
      break;
    }
    *f = own;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host has the values of the factors and of the result. The virtual transpose of a factor has the factor's values */
static PetscErrorCode Fetch(Mat C, const Mat M[])
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRFetch_Private(C));
  for (int k = 0; M[k]; k++) {
    Mat A = M[k];

    if (GPUCSRIsType(A, MATTRANSPOSEVIRTUAL)) PetscCall(MatTransposeGetMat(A, &A));
    PetscCall(MatGPUCSRFetch_Private(A));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The names of the parent's functions in a product */
static const char behindsymbolic[] = "MatGPUCSRProductSymbolic_C", behindnumeric[] = "MatGPUCSRProductNumeric_C";

static PetscErrorCode MatProductNumeric_Fetched(Mat);

/* MATAIJ computes C, and on the way the product of the first two of three factors: it changes both by operations, and reads their arrays */
static PetscErrorCode OnHost(Mat C, PetscErrorCode (*phase)(Mat))
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRHostWorks_Private(C, PETSC_TRUE));
  if (C->product) PetscCall(MatGPUCSRHostWorks_Private(C->product->Dwork, PETSC_TRUE));
  ierr = (*phase)(C);
  if (C->product) PetscCall(MatGPUCSRHostWorks_Private(C->product->Dwork, PETSC_FALSE));
  PetscCall(MatGPUCSRHostWorks_Private(C, PETSC_FALSE));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After a phase, which may have replaced the result and its functions; numeric: the function before it */
static PetscErrorCode Keep(Mat C, PetscErrorCode (*numeric)(Mat))
{
  PetscFunctionBegin;
  if (!C->ops->productnumeric) PetscFunctionReturn(PETSC_SUCCESS);
  if (C->ops->productnumeric != MatProductNumeric_Fetched) numeric = C->ops->productnumeric;
  PetscCall(PetscObjectComposeFunction((PetscObject)C, behindnumeric, numeric));
  C->ops->productnumeric = MatProductNumeric_Fetched;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductNumeric_Fetched(Mat C)
{
  PetscErrorCode (*numeric)(Mat);
  Mat M[4];

  PetscFunctionBegin;
  Factors(C, M);
  PetscCall(Fetch(C, M));
  PetscCall(PetscObjectQueryFunction((PetscObject)C, behindnumeric, &numeric));
  PetscCall(OnHost(C, numeric));
  PetscCall(Keep(C, numeric));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductSymbolic_Fetched(Mat C)
{
  PetscErrorCode (*symbolic)(Mat), (*shared)(Mat) = NULL;
  Mat            M[4], A                          = NULL;
  const char    *as   = NULL;
  char          *name = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  Factors(C, M);
  PetscCall(Fetch(C, M));
  PetscCall(PetscObjectQueryFunction((PetscObject)C, behindsymbolic, &symbolic));
  /* a factor takes another type name meanwhile. For A B^T, PETSc transposes B in B's type and then sets A's type, which would lose the transpose if one of them is gpucsr */
  if (C->product->type == MATPRODUCT_ABt) PetscCall(Shared(M, &shared));
  if (shared && !GPUCSRIsType(M[0], ((PetscObject)M[1])->type_name)) {
    A  = M[1];
    as = ((PetscObject)M[0])->type_name;
  } else if (C->product->type == MATPRODUCT_ABC && GPUCSRIsType(M[0], MATTRANSPOSEVIRTUAL)) { /* PETSc's hypre recognizes A in T(A) B C by its type name */
    PetscCall(MatTransposeGetMat(M[0], &A));
    if (MatGPUCSRIs(A)) as = ((Mat_GPUCSR *)A->spptr)->kind->parent;
    else A = NULL;
  }
  if (A) {
    PetscCall(PetscStrallocpy(((PetscObject)A)->type_name, &name));
    PetscCall(PetscObjectChangeTypeName((PetscObject)A, as));
  }
  ierr = OnHost(C, symbolic);
  if (A) PetscCall(PetscObjectChangeTypeName((PetscObject)A, name));
  PetscCall(PetscFree(name));
  PetscCall(ierr);
  PetscCall(Keep(C, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Asks for the product of the factors, gpucsr factors taken as their parents: by their common function, or by type names. There may be none. */
PetscErrorCode MatGPUCSRProductOfParents_Private(Mat C)
{
  char name[256]           = "MatProductSetFromOptions";
  PetscErrorCode (*f)(Mat) = NULL;
  Mat M[4];

  PetscFunctionBegin;
  Factors(C, M);
  PetscCall(Shared(M, &f));
  if (!f) {
    for (int k = 0; M[k]; k++) {
      PetscCall(PetscStrlcat(name, "_", sizeof(name)));
      PetscCall(PetscStrlcat(name, MatGPUCSRIs(M[k]) ? ((Mat_GPUCSR *)M[k]->spptr)->kind->parent : ((PetscObject)M[k])->type_name, sizeof(name)));
    }
    PetscCall(PetscStrlcat(name, "_C", sizeof(name)));
    for (int k = 0; M[k] && !f; k++) PetscCall(PetscObjectQueryFunction((PetscObject)M[k], name, &f));
  }
  if (f) PetscCall((*f)(C));
  if (!C->ops->productsymbolic || C->ops->productsymbolic == MatProductSymbolic_Fetched) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscObjectComposeFunction((PetscObject)C, behindsymbolic, C->ops->productsymbolic)); /* reads the host's values: the factors' values come first, in each phase */
  C->ops->productsymbolic = MatProductSymbolic_Fetched;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* At least one factor is gpucsr. PETSc does not ask the other types (MATTRANSPOSEVIRTUAL, MATPYTHON) afterwards, so this function asks them */
PetscErrorCode MatProductSetFromOptions_GPUCSR(Mat C)
{
  Mat M[4];

  PetscFunctionBegin;
  Factors(C, M);
  C->ops->productsymbolic = NULL;
  C->ops->productnumeric  = NULL;
  PetscCall(MatGPUCSRProductOfParents_Private(C));
  for (int k = 0; M[k] && !C->ops->productsymbolic; k++) {
    PetscErrorCode (*f)(Mat) = NULL;

    PetscCall(PetscObjectQueryFunction((PetscObject)M[k], "MatProductSetFromOptions_anytype_C", &f));
    if (f && f != MatProductSetFromOptions_GPUCSR) PetscCall((*f)(C));
    if (C->product->A != M[0] || C->product->B != M[1]) break; /* C is another product now, and its factors have been asked */
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The functions that PETSc finds by the names of the factors' types; seq is "seq" or "mpi" */
PetscErrorCode MatGPUCSRComposeProducts_Private(Mat A, const char seq[], PetscBool install)
{
  static const char *const dense[] = {"seqdense", "seqdensecuda", "mpidense"};
  char                     name[256];

  PetscFunctionBegin;
  for (size_t s = 0; s < PETSC_STATIC_ARRAY_LENGTH(dense); s++) {
    PetscBool same;

    PetscCall(PetscStrncmp(dense[s], seq, 3, &same));
    if (!same) continue;
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatProductSetFromOptions_%saijgpucsr_%s_C", seq, dense[s]));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? MatProductSetFromOptions_GPUCSR_Dense : NULL));
  }
  /* T(A) B C: MATAIJ has the product under the names of B and C, and MATTRANSPOSEVIRTUAL has none */
  for (int mixed = 0; mixed < 3; mixed++) {
    PetscCall(PetscSNPrintf(name, sizeof(name), "MatProductSetFromOptions_transpose_%saij%s_%saij%s_C", seq, mixed == 1 ? "" : "gpucsr", seq, mixed == 2 ? "" : "gpucsr"));
    PetscCall(PetscObjectComposeFunction((PetscObject)A, name, install ? MatProductSetFromOptions_GPUCSR : NULL));
  }
  PetscCall(PetscObjectComposeFunction((PetscObject)A, "MatProductSetFromOptions_anytype_C", install ? MatProductSetFromOptions_GPUCSR : NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

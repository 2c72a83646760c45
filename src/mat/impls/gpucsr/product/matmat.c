/*
  Products with dense matrices, A B and A^T B. Format CSR reads A once for 32 columns (kernels/csr_columns.cu); other formats read A for each column.

  Columns of a host matrix are staged through page-locked memory, columns of MATSEQDENSECUDA used in place. In a parallel product a rank sends only
  the needed rows of B, one message a column.
*/
#include "../type/mpigpucsr.h"

/* Columns of one pass */
#define TILE 32

/* Some columns of a product C = A B + D or A^T B + D on this rank */
typedef struct {
  Mat           A; /* of one process */
  GPUCSRSide    side;
  int           k;
  GPUCSROperand b, c;
  size_t        ldb, ldc;
  const void   *d; /* native columns, or NULL */
} Columns;

/* The columns of one product of a prepared matrix. A native c is allocated here, and valid until the next product of this matrix */
static PetscErrorCode Multiply(Columns *m)
{
  Mat_SeqGPUCSR       *g       = (Mat_SeqGPUCSR *)m->A->spptr;
  GPUCSRDevice         dev     = g->dev;
  GPUCSRPlan          *plan    = &g->plan[m->side];
  const GPUCSRStorage *M       = &plan->A;
  const GPUCSRType     vt      = GPUCSRVectorType(g->precision);
  const PetscBool      inplace = (PetscBool)(!dev->ops->separate && vt == GPUCSR_DOUBLE);
  const size_t         size = GPUCSRTypeSize(vt), nb = (size_t)M->n, nc = (size_t)M->m, k = (size_t)m->k;
  const PetscBool      bhost = (PetscBool)(m->b.place == GPUCSR_HOST && !inplace), chost = (PetscBool)(m->c.place == GPUCSR_HOST && !inplace);
  char                *broom, *croom; /* columns, then rows */
  const char          *b   = (const char *)m->b.p;
  char                *c   = (char *)m->c.p;
  size_t               ldb = m->ldb, ldc = m->ldc;
  double              *seconds = m->side == GPUCSR_FORWARD ? &g->info.product_time : &g->info.transpose_product_time;

  PetscFunctionBegin;
  PetscCall(dev->ops->activate(dev->id));
  if (g->last && g->last != dev->stream) PetscCall(GPUCSRDeviceSynchronize(dev)); /* all products of this matrix share the buffers */
  g->last = dev->stream;
  PetscCall(GPUCSRLogBegin(&MAT_GPUCSR_Product, dev, m->A));
  PetscCall(MatGPUCSRBuffer_Private(g->dev, &g->x, 2 * nb * k * size, (void **)&broom));
  PetscCall(MatGPUCSRBuffer_Private(g->dev, &g->z, 2 * nc * k * size, (void **)&croom));
  if (bhost) PetscCall(MatGPUCSRCross_Private(g, PETSC_TRUE, broom, &m->b, 0, nb, m->k, m->ldb, dev->stream));
  else if (m->b.place == GPUCSR_DEVICE && vt != GPUCSR_DOUBLE)
    for (size_t q = 0; q < k; q++) PetscCall(MatGPUCSRConvert_Private(g, nb, (const double *)m->b.p + q * m->ldb, vt, broom + q * nb * size, dev->stream));
  if (bhost || (m->b.place == GPUCSR_DEVICE && vt != GPUCSR_DOUBLE)) {
    b   = broom;
    ldb = nb;
  }
  if (chost || m->c.place == GPUCSR_NATIVE || (m->c.place == GPUCSR_DEVICE && vt != GPUCSR_DOUBLE)) {
    c   = croom;
    ldc = nc;
  }
  PetscCall(MatGPUCSRTimerBegin_Private(g, seconds, dev->stream));
  PetscCall(GPUCSRPlanColumns(plan, &(GPUCSRColumns){.k = m->k, .x = b, .ldx = ldb, .y = m->d, .z = c, .ldz = ldc, .xrows = broom + nb * k * size, .zrows = croom + nc * k * size}));
  PetscCall(MatGPUCSRTimerEnd_Private(g, dev->stream));
  if (chost) {
    PetscCall(MatGPUCSRCross_Private(g, PETSC_FALSE, c, &m->c, 0, nc, m->k, m->ldc, dev->stream));
    PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream));
  } else if (m->c.place == GPUCSR_DEVICE && vt != GPUCSR_DOUBLE)
    for (size_t q = 0; q < k; q++) PetscCall(MatGPUCSRConvert_Private(g, nc, c + q * nc * size, GPUCSR_DOUBLE, (double *)m->c.p + q * m->ldc, dev->stream));
  if (m->c.place == GPUCSR_NATIVE) m->c.p = c;
  if (m->side == GPUCSR_FORWARD) g->info.products += m->k;
  else g->info.transpose_products += m->k;
  g->info.dense_products++;
  g->info.dense_columns += m->k;
  PetscCall(PetscLogFlops(2.0 * (double)M->nnz * m->k));
  PetscCall(GPUCSRLogEnd(&MAT_GPUCSR_Product, dev, m->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The same by MATSEQAIJ, one column at a time; add: to c */
static PetscErrorCode MultiplyOnHost(Mat A, GPUCSRSide side, int k, const GPUCSROperand *b, size_t ldb, const GPUCSROperand *c, size_t ldc, PetscBool add)
{
  PetscFunctionBegin;
  PetscCheck(b->place == GPUCSR_HOST && c->place == GPUCSR_HOST, PETSC_COMM_SELF, PETSC_ERR_SUP, "A product with a dense matrix that failed on the device cannot continue on the host");
  for (size_t q = 0; q < (size_t)k; q++) {
    Vec x, z;

    PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, side == GPUCSR_FORWARD ? A->cmap->n : A->rmap->n, (const PetscScalar *)b->p + q * ldb, &x));
    PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, side == GPUCSR_FORWARD ? A->rmap->n : A->cmap->n, (const PetscScalar *)c->p + q * ldc, &z));
    PetscCall(MatGPUCSRParentProduct_Private(A, side, x, add ? z : NULL, z));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&z));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Device work of the first block, then of the second. On failure with backend auto, the host continues with the intact operands */
static PetscErrorCode Try(Mat A, Columns *m, PetscBool *ready)
{
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  if (!*ready) PetscFunctionReturn(PETSC_SUCCESS);
  GPUCSRTryIf(MatGPUCSRBackendOf(A) != MAT_GPUCSR_BACKEND_CUDA, &attempt, Multiply(m));
  if (attempt.error) {
    PetscCheck(m->b.place == GPUCSR_HOST && m->c.place != GPUCSR_DEVICE, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
    PetscCall(MatGPUCSRFailed_Private(m->A, NULL, &attempt));
    PetscCall(MatGPUCSRWarn_Private(m->A, 0, 0, 0));
    *ready = PETSC_FALSE;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A pass over some columns, and its error. Every rank takes all passes, even after an error */
typedef struct {
  Mat            A, Ad, Ao; /* Ao is NULL on one process */
  GPUCSRHalo     h;         /* of A, */
  PetscScalar   *border;    /* with the rows of B that other ranks need, or sums for them, */
  PetscScalar   *halo;      /* and rows from other ranks, or sums for those rows */
  int            k;
  GPUCSROperand  b, c;
  size_t         ldb, ldc;
  PetscErrorCode error;
} Tile;

/* The border's rows of columns c */
static PetscScalar *Row(const Tile *t, const GPUCSROperand *c, size_t ld, PetscInt q, PetscInt u)
{
  return (PetscScalar *)c->p + (size_t)q * ld + t->h->unique[u];
}

/* Columns of C = A B: rows of B travel while the diagonal block is multiplied, even after an error, which is returned at the end */
static PetscErrorCode Forward(Tile *t)
{
  Columns   d = {.A = t->Ad, .side = GPUCSR_FORWARD, .k = t->k, .b = t->b, .c = t->c, .ldb = t->ldb, .ldc = t->ldc}, o = d;
  PetscBool ready = PETSC_FALSE;

  PetscFunctionBegin;
  GPUCSRKeep(&t->error, MatGPUCSRBlocksReady_Private(t->Ad, t->Ao, GPUCSR_FORWARD, PETSC_TRUE, &ready));
  if (t->Ao) {
    for (PetscInt q = 0; q < t->k; q++) {
      for (PetscInt u = 0; u < t->h->nunique; u++) t->border[q * t->h->nunique + u] = *Row(t, &t->b, t->ldb, q, u);
      PetscCall(PetscSFBcastBegin(t->h->sf, MPIU_SCALAR, t->border + q * t->h->nunique, t->halo + q * t->h->nrecv, MPI_REPLACE));
    }
    d.c = (GPUCSROperand){.place = GPUCSR_NATIVE};
    /* both blocks must have the same native type */
    if (ready && ((Mat_SeqGPUCSR *)t->Ad->spptr)->precision != ((Mat_SeqGPUCSR *)t->Ao->spptr)->precision) ready = PETSC_FALSE;
  }
  GPUCSRKeep(&t->error, Try(t->A, &d, &ready));
  if (t->Ao) {
    for (PetscInt q = 0; q < t->k; q++) PetscCall(PetscSFBcastEnd(t->h->sf, MPIU_SCALAR, t->border + q * t->h->nunique, t->halo + q * t->h->nrecv, MPI_REPLACE));
    o.A   = t->Ao;
    o.b   = (GPUCSROperand){.p = t->halo, .place = GPUCSR_HOST};
    o.ldb = (size_t)t->h->nrecv;
    o.d   = d.c.p;
    GPUCSRKeep(&t->error, Try(t->A, &o, &ready));
  }
  if (!ready) {
    GPUCSRKeep(&t->error, MultiplyOnHost(t->Ad, GPUCSR_FORWARD, t->k, &t->b, t->ldb, &t->c, t->ldc, PETSC_FALSE));
    if (t->Ao) GPUCSRKeep(&t->error, MultiplyOnHost(t->Ao, GPUCSR_FORWARD, t->k, &o.b, o.ldb, &t->c, t->ldc, PETSC_TRUE));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns of C = A^T B: each rank adds the sums for its own rows */
static PetscErrorCode Backward(Tile *t)
{
  Columns   d = {.A = t->Ad, .side = GPUCSR_TRANSPOSE, .k = t->k, .b = t->b, .c = t->c, .ldb = t->ldb, .ldc = t->ldc}, o = d;
  PetscBool ready = PETSC_FALSE;

  PetscFunctionBegin;
  GPUCSRKeep(&t->error, MatGPUCSRBlocksReady_Private(t->Ad, t->Ao, GPUCSR_TRANSPOSE, PETSC_TRUE, &ready));
  if (t->Ao) {
    o.A   = t->Ao;
    o.c   = (GPUCSROperand){.p = t->halo, .place = GPUCSR_HOST};
    o.ldc = (size_t)t->h->nrecv;
    GPUCSRKeep(&t->error, Try(t->A, &o, &ready));
  }
  GPUCSRKeep(&t->error, Try(t->A, &d, &ready));
  if (!ready) {
    if (t->Ao) GPUCSRKeep(&t->error, MultiplyOnHost(t->Ao, GPUCSR_TRANSPOSE, t->k, &t->b, t->ldb, &o.c, o.ldc, PETSC_FALSE));
    GPUCSRKeep(&t->error, MultiplyOnHost(t->Ad, GPUCSR_TRANSPOSE, t->k, &t->b, t->ldb, &t->c, t->ldc, PETSC_FALSE));
  }
  if (t->Ao) {
    for (PetscInt e = 0; e < (t->error ? t->k * t->h->nrecv : 0); e++) t->halo[e] = (PetscScalar)NAN; /* in place of the numbers of a rank that has met an error */
    PetscCall(PetscArrayzero(t->border, t->k * t->h->nunique));
    for (PetscInt q = 0; q < t->k; q++) PetscCall(PetscSFReduceBegin(t->h->sf, MPIU_SCALAR, t->halo + q * t->h->nrecv, t->border + q * t->h->nunique, MPIU_SUM));
    for (PetscInt q = 0; q < t->k; q++) {
      PetscCall(PetscSFReduceEnd(t->h->sf, MPIU_SCALAR, t->halo + q * t->h->nrecv, t->border + q * t->h->nunique, MPIU_SUM));
      for (PetscInt u = 0; u < t->h->nunique; u++) *Row(t, &t->c, t->ldc, q, u) += t->border[q * t->h->nunique + u];
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The array of a dense matrix, on the device if PETSc has it there */
PetscErrorCode MatGPUCSRDenseGet_Private(Mat B, PetscBool write, GPUCSROperand *o, size_t *ld)
{
  PetscMemType mtype = PETSC_MEMTYPE_HOST;
  PetscScalar *a;
  PetscInt     lda;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(o, sizeof(*o)));
#if GPUCSR_DENSE_HAS_MEMTYPE
  if (write) PetscCall(MatDenseGetArrayWriteAndMemType(B, &a, &mtype));
  else PetscCall(MatDenseGetArrayReadAndMemType(B, (const PetscScalar **)&a, &mtype));
#else
  if (write) PetscCall(MatDenseGetArrayWrite(B, &a));
  else PetscCall(MatDenseGetArrayRead(B, (const PetscScalar **)&a));
#endif
  PetscCall(MatDenseGetLDA(B, &lda));
  *ld      = (size_t)lda;
  o->p     = a;
  o->place = PetscMemTypeHost(mtype) ? GPUCSR_HOST : GPUCSR_DEVICE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRDenseRestore_Private(Mat B, PetscBool write, GPUCSROperand *o)
{
  PetscScalar *a = (PetscScalar *)o->p;

  PetscFunctionBegin;
#if GPUCSR_DENSE_HAS_MEMTYPE
  if (write) PetscCall(MatDenseRestoreArrayWriteAndMemType(B, &a));
  else PetscCall(MatDenseRestoreArrayReadAndMemType(B, (const PetscScalar **)&a));
#else
  if (write) PetscCall(MatDenseRestoreArrayWrite(B, &a));
  else PetscCall(MatDenseRestoreArrayRead(B, (const PetscScalar **)&a));
#endif
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Numeric(Mat A, PetscBool forward, Mat B, Mat C)
{
  const PetscInt K = B->cmap->N;
  GPUCSROperand  b, c;
  Tile           t = {.A = A, .Ad = A};
  GPUCSRDevice   dev;

  PetscFunctionBegin;
  if (!MatGPUCSRIs(A)) { /* it has been converted to another type */
    Mat D;

    if (forward) PetscCall(MatMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
    else PetscCall(MatTransposeMatMult(A, B, MAT_INITIAL_MATRIX, PETSC_DEFAULT, &D));
    PetscCall(MatCopy(D, C, SAME_NONZERO_PATTERN));
    PetscCall(MatDestroy(&D));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (GPUCSRIsType(A, MATMPIAIJGPUCSR)) {
    PetscCall(MatMPIAIJGetSeqAIJ(A, &t.Ad, &t.Ao, NULL));
    PetscCall(MatGPUCSRHaloGraph_Private(A));
    t.h = ((Mat_MPIGPUCSR *)A->spptr)->halo;
    PetscCall(PetscMalloc2((size_t)PetscMin(TILE, K) * (size_t)t.h->nunique, &t.border, (size_t)PetscMin(TILE, K) * (size_t)t.h->nrecv, &t.halo));
  }
  PetscCall(MatGPUCSRDenseGet_Private(B, PETSC_FALSE, &b, &t.ldb));
  PetscCall(MatGPUCSRDenseGet_Private(C, PETSC_TRUE, &c, &t.ldc));
  dev = b.place == GPUCSR_DEVICE || c.place == GPUCSR_DEVICE ? ((Mat_SeqGPUCSR *)t.Ad->spptr)->dev : NULL;
  if (dev) PetscCall(GPUCSRDeviceSynchronize(dev)); /* PETSc may still work on the matrices */
  for (PetscInt k = 0; k < K; k += TILE) {
    t.k   = (int)PetscMin(TILE, K - k);
    t.b   = b;
    t.c   = c;
    t.b.p = (PetscScalar *)b.p + (size_t)k * t.ldb;
    t.c.p = (PetscScalar *)c.p + (size_t)k * t.ldc;
    if (forward) PetscCall(Forward(&t));
    else PetscCall(Backward(&t));
  }
  if (dev) PetscCall(GPUCSRDeviceSynchronize(dev));
  PetscCall(MatGPUCSRDenseRestore_Private(C, PETSC_TRUE, &c));
  PetscCall(MatGPUCSRDenseRestore_Private(B, PETSC_FALSE, &b));
  PetscCall(PetscFree2(t.border, t.halo));
  PetscCall(t.error);
  PetscCall(MatSetOption(C, MAT_NO_OFF_PROC_ENTRIES, PETSC_TRUE));
  PetscCall(MatAssemblyBegin(C, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(C, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatProductNumeric_GPUCSR_Dense(Mat C)
{
  return Numeric(C->product->A, (PetscBool)(C->product->type == MATPRODUCT_AB), C->product->B, C);
}

/* Also the last step of PETSc's products of three matrices */
static PetscErrorCode MatMatMultNumeric_GPUCSR_Dense(Mat A, Mat B, Mat C)
{
  return Numeric(A, PETSC_TRUE, B, C);
}

static PetscErrorCode MatTransposeMatMultNumeric_GPUCSR_Dense(Mat A, Mat B, Mat C)
{
  return Numeric(A, PETSC_FALSE, B, C);
}

static PetscErrorCode MatProductSymbolic_GPUCSR_Dense(Mat C)
{
  Mat             A = C->product->A, B = C->product->B;
  const PetscBool forward = (PetscBool)(C->product->type == MATPRODUCT_AB);
  PetscBool       dense, ready;
  PetscMPIInt     mine, all;
  PetscErrorCode  ierr;
  Mat             Ad = A, Ao = NULL;

  PetscFunctionBegin;
  PetscCheck(forward ? A->cmap->rstart == B->rmap->rstart && A->cmap->rend == B->rmap->rend : A->rmap->rstart == B->rmap->rstart && A->rmap->rend == B->rmap->rend, PETSC_COMM_SELF, PETSC_ERR_ARG_SIZ, "The layout of the dense matrix' rows differs from that of the %s of the sparse matrix", forward ? "columns" : "rows");
  if (GPUCSRIsType(A, MATMPIAIJGPUCSR)) { /* do all ranks have a device for this side? */
    PetscUseMethod(A, "MatGPUCSRSetUp_C", (Mat, PetscBool), (A, (PetscBool)!forward));
    PetscCall(MatMPIAIJGetSeqAIJ(A, &Ad, &Ao, NULL));
  }
  ierr = MatGPUCSRBlocksReady_Private(Ad, Ao, forward ? GPUCSR_FORWARD : GPUCSR_TRANSPOSE, PETSC_TRUE, &ready);
  mine = ierr ? -1 : (ready ? 1 : 0);
  PetscCallMPI(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)A)));
  PetscCall(ierr);
  PetscCheck(all >= 0, PETSC_COMM_SELF, PETSC_ERR_GPU, "Another rank has met an error, and says which");
  ready = (PetscBool)(all == 1);
  if (!ready) {
    C->ops->productsymbolic = NULL;
    PetscCall(MatGPUCSRProductOfParents_Private(C));
    PetscCheck(C->ops->productsymbolic, PetscObjectComm((PetscObject)C), PETSC_ERR_SUP, "MATAIJ has no product with a matrix of type %s", ((PetscObject)B)->type_name);
    PetscCall((*C->ops->productsymbolic)(C));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (forward) PetscCall(MatSetSizes(C, A->rmap->n, B->cmap->n, A->rmap->N, B->cmap->N));
  else PetscCall(MatSetSizes(C, A->cmap->n, B->cmap->n, A->cmap->N, B->cmap->N));
  PetscCall(PetscObjectBaseTypeCompareAny((PetscObject)C, &dense, MATSEQDENSE, MATMPIDENSE, ""));
  if (!dense) PetscCall(MatSetType(C, ((PetscObject)B)->type_name));
  PetscCall(MatSetUp(C));
  if (forward) C->ops->matmultnumeric = MatMatMultNumeric_GPUCSR_Dense;
  else C->ops->transposematmultnumeric = MatTransposeMatMultNumeric_GPUCSR_Dense;
  C->ops->productnumeric  = MatProductNumeric_GPUCSR_Dense;
  C->ops->productsymbolic = MatProductSymbolic_GPUCSR_Dense;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatProductSetFromOptions_GPUCSR_Dense(Mat C)
{
  PetscFunctionBegin;
  if (C->product->type == MATPRODUCT_AB || C->product->type == MATPRODUCT_AtB) C->ops->productsymbolic = MatProductSymbolic_GPUCSR_Dense;
  else PetscCall(MatGPUCSRProductOfParents_Private(C));
  PetscFunctionReturn(PETSC_SUCCESS);
}

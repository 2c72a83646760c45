/*
  Operations that change values where the master copy is: on the device with -mat_gpucsr_master device, else they are MATAIJ's, or the threads' of scale.c, because a device that fails while values
  come home would leave half of them changed. Operations that read all values take a device's copy that is up to date and large enough. The pattern stays.
*/
#include "assembly.h"

typedef PetscErrorCode Apply(GPUCSRStorage *, void *);

/* csr: the values on the device, NULL: the operation is the host's. whole: it writes all values and reads none */
static PetscErrorCode Begin(Mat A, PetscBool whole, GPUCSRStorage **csr)
{
  Mat_SeqGPUCSR      *g = (Mat_SeqGPUCSR *)A->spptr;
  const GPUCSRMirror *m = &g->mirror;
  const PetscInt     *i, *j;
  PetscObjectState    state;
  GPUCSRAttempt       attempt;
  PetscErrorCode      ierr;

  PetscFunctionBegin;
  *csr = NULL;
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, NULL, NULL));
  if (!A->assembled || A->factortype || !i) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRDecide_Private(A));
  if (!g->dev || !g->dev->ops->separate || g->dev->failed[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRCounted_Private(A));
  PetscCall(PetscObjectStateGet((PetscObject)A, &state));
  if (!g->base.config.masterdevice) {
    const PetscBool current = (PetscBool)(m->csr.format && m->csr.dev == g->dev && m->pattern == A->nonzerostate && m->columns == (const void *)j && m->values == state && !g->bare && !g->copy);

    if (!current || i[A->rmap->n] < g->base.config.productleast) PetscFunctionReturn(PETSC_SUCCESS);
  }
  ATTEMPT(A, MatGPUCSRMirror_Private(A, g->dev, (PetscBool)!whole, csr), ierr, attempt);
  if (ierr) {
    PetscCheck(ierr == PETSC_ERR_MEM || ierr == PETSC_ERR_GPU || ierr == PETSC_ERR_SUP, PETSC_COMM_SELF, ierr, "%s", attempt.message);
    PetscCall(PetscInfo(A, "The operation is the host's, because %s\n", attempt.message));
    *csr = NULL;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Changes values on the device. done false: they are as before, and on the host */
static PetscErrorCode Change(Mat A, PetscBool whole, Apply *apply, void *ctx, PetscBool *done)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  GPUCSRStorage *csr;
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (!g->base.config.masterdevice) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Begin(A, whole, &csr));
  *done = csr ? PETSC_TRUE : PETSC_FALSE;
  if (csr) {
    g->mirror.values = -1;
    ATTEMPT(A, (*apply)(csr, ctx), ierr, attempt);
    PetscCheck(!ierr || !g->mirror.ahead, PETSC_COMM_SELF, ierr, "The device failed while it changed the only copy of the values (-mat_gpucsr_master device): %s", attempt.message);
    if (!ierr) {
      ATTEMPT(A, MatGPUCSRWritten_Private(A, g->block || whole ? 0 : 1), ierr, attempt); /* PETSc calls some operations of blocks, and MatZeroEntries(), uncounted */
      PetscCheck(!ierr || whole, PETSC_COMM_SELF, ierr, "The device failed while values were on their way back into the matrix: %s", attempt.message);
    }
    if (ierr) {
      *done = PETSC_FALSE; /* the host writes all values, or has the old ones */
      PetscCall(PetscInfo(A, "The operation is the host's, because %s\n", attempt.message));
    }
  }
  if (!*done) PetscCall(MatGPUCSRFetch_Private(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A vector's array on the device; one of the host is sent, and with write brought back */
typedef struct {
  GPUCSROperand o;
  void         *own;
  size_t        n;
  double       *p;
  PetscBool     got;
} Operand;

static PetscErrorCode OperandGet(Mat A, Vec v, PetscBool write, Operand *x)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  PetscInt       n;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(x, sizeof(*x)));
  if (!v) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetLocalSize(v, &n));
  x->n   = (size_t)n;
  x->got = PETSC_TRUE;
  PetscCall(MatGPUCSRVecGet_Private(g->dev, v, PETSC_TRUE, write, &x->o));
  x->p = (double *)x->o.p;
  if (x->o.place == GPUCSR_DEVICE) {
    if (!x->o.ours) PetscCall(GPUCSRDeviceSynchronize(g->dev)); /* PETSc's stream */
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(GPUCSRMalloc(g->dev, sizeof(double) * x->n, "a vector", &x->own));
  PetscCall(GPUCSRUpload(g->dev, x->own, GPUCSR_DOUBLE, x->o.p, GPUCSR_DOUBLE, x->n, PETSC_FALSE, g->dev->stream, NULL));
  x->p = (double *)x->own;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OperandRestore(Mat A, Vec v, PetscBool write, Operand *x)
{
  Mat_SeqGPUCSR *g    = (Mat_SeqGPUCSR *)A->spptr;
  PetscErrorCode ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (!x->got) PetscFunctionReturn(PETSC_SUCCESS);
  if (x->own && write) ierr = GPUCSRDownload(g->dev, x->o.p, GPUCSR_DOUBLE, x->own, GPUCSR_DOUBLE, x->n, PETSC_FALSE, g->dev->stream);
  if (!ierr && (x->own ? write : !x->o.ours)) ierr = (*g->dev->ops->streamsynchronize)(g->dev->id, g->dev->stream);
  if (x->own) PetscCall(GPUCSRFree(g->dev, sizeof(double) * x->n, &x->own));
  PetscCall(MatGPUCSRVecRestore_Private(g->dev, v, PETSC_TRUE, write, &x->o));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- The operations */

static PetscErrorCode ApplyZero(GPUCSRStorage *A, void *ctx)
{
  PetscFunctionBegin;
  (void)ctx;
  PetscCall((*A->dev->ops->zero)(A->dev->id, A->array[CSR_VAL].data, sizeof(double) * (size_t)A->nnz, A->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroEntries_InPlace(Mat A)
{
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(Change(A, PETSC_TRUE, ApplyZero, NULL, &done));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.zeroentries)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ApplyScale(GPUCSRStorage *A, void *f)
{
  PetscFunctionBegin;
  PetscCall((*GPUCSRAssembleOf(A->dev)->scale)(*(double *)f, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatScale_InPlace(Mat A, PetscScalar alpha)
{
  double    f    = (double)PetscRealPart(alpha);
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  if (f != 0) PetscCall(Change(A, PETSC_FALSE, ApplyScale, &f, &done)); /* 0 times NaN or Inf depends on the BLAS */
  else PetscCall(MatGPUCSRFetch_Private(A));
  if (!done) PetscCall(MatScale_SeqAIJGPUCSR(A, alpha));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  Mat       A;
  Vec       l, r;
  double    s;
  PetscBool add;
  PetscInt  n;
  int32_t  *row;
  PetscBool columns;
} Arguments;

static PetscErrorCode ApplyDiagonalScale(GPUCSRStorage *csr, void *ctx)
{
  Arguments     *a = (Arguments *)ctx;
  Operand        l, r;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&r, sizeof(r)));
  ierr = OperandGet(a->A, a->l, PETSC_FALSE, &l);
  if (!ierr) ierr = OperandGet(a->A, a->r, PETSC_FALSE, &r);
  if (!ierr) ierr = (*GPUCSRAssembleOf(csr->dev)->diagonalscale)(l.p, r.p, csr);
  PetscCall(OperandRestore(a->A, a->l, PETSC_FALSE, &l));
  PetscCall(OperandRestore(a->A, a->r, PETSC_FALSE, &r));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDiagonalScale_InPlace(Mat A, Vec l, Vec r)
{
  Arguments a = {.A = A, .l = l, .r = r};
  PetscInt  m = A->rmap->n, n = A->cmap->n;
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  if (l) PetscCall(VecGetLocalSize(l, &m));
  if (r) PetscCall(VecGetLocalSize(r, &n));
  if (m == A->rmap->n && n == A->cmap->n) PetscCall(Change(A, PETSC_FALSE, ApplyDiagonalScale, &a, &done)); /* else the parent's error */
  if (!done) PetscCall(MatDiagonalScale_SeqAIJGPUCSR(A, l, r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ApplyDiagonal(GPUCSRStorage *csr, void *ctx)
{
  Arguments     *a = (Arguments *)ctx;
  Operand        d;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = OperandGet(a->A, a->l, PETSC_FALSE, &d);
  if (!ierr) ierr = (*GPUCSRAssembleOf(csr->dev)->diagonal)(d.p, a->s, a->add, csr);
  PetscCall(OperandRestore(a->A, a->l, PETSC_FALSE, &d));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the whole diagonal stored, in a matrix that may be changed on the device? Asked once for a pattern */
static PetscErrorCode WholeDiagonal(Mat A, PetscBool *whole)
{
  GPUCSRMirror  *m = &((Mat_SeqGPUCSR *)A->spptr)->mirror;
  GPUCSRStorage *csr;

  PetscFunctionBegin;
  *whole = PETSC_FALSE;
  if (!((Mat_SeqGPUCSR *)A->spptr)->base.config.masterdevice) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Begin(A, PETSC_FALSE, &csr));
  if (!csr) PetscFunctionReturn(PETSC_SUCCESS);
  if (m->diagonalat != m->pattern + 1) PetscCall((*GPUCSRAssembleOf(csr->dev)->missing)(csr, &m->missing));
  m->diagonalat = m->pattern + 1;
  *whole        = (PetscBool)!m->missing;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatShift_InPlace(Mat A, PetscScalar s)
{
  Arguments a = {.A = A, .s = (double)PetscRealPart(s), .add = PETSC_TRUE};
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(WholeDiagonal(A, &done));
  if (done) PetscCall(Change(A, PETSC_FALSE, ApplyDiagonal, &a, &done));
  else PetscCall(MatGPUCSRFetch_Private(A));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.shift)(A, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDiagonalSet_InPlace(Mat A, Vec d, InsertMode mode)
{
  Arguments a = {.A = A, .l = d, .add = (PetscBool)(mode != INSERT_VALUES)};
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(WholeDiagonal(A, &done));
  done = (PetscBool)(done && A->rmap->n <= A->cmap->n); /* else the parent's error */
  if (done) PetscCall(Change(A, PETSC_FALSE, ApplyDiagonal, &a, &done));
  else PetscCall(MatGPUCSRFetch_Private(A));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.diagonalset)(A, d, mode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ApplyZeroRows(GPUCSRStorage *csr, void *ctx)
{
  Arguments               *a     = (Arguments *)ctx;
  GPUCSRDevice             dev   = csr->dev;
  const GPUCSRAssembleOps *ops   = GPUCSRAssembleOf(dev);
  const size_t             bytes = sizeof(int32_t) * (size_t)a->n;
  void                    *row;
  Operand                  x, b;
  PetscErrorCode           ierr;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(&b, sizeof(b)));
  PetscCall(GPUCSRMalloc(dev, bytes, "rows to be zeroed", &row));
  ierr = OperandGet(a->A, a->columns ? a->l : NULL, PETSC_FALSE, &x);
  if (!ierr) ierr = OperandGet(a->A, a->columns ? a->r : NULL, PETSC_TRUE, &b);
  if (!ierr) ierr = GPUCSRUpload(dev, row, GPUCSR_INT32, a->row, GPUCSR_INT32, (size_t)a->n, PETSC_FALSE, dev->stream, NULL);
  if (!ierr && a->columns) ierr = (*ops->zerorowscolumns)((const int32_t *)row, a->s, x.p, b.p, csr);
  else if (!ierr) ierr = (*ops->zerorows)((int)a->n, (const int32_t *)row, a->s, csr);
  PetscCall(OperandRestore(a->A, a->l, PETSC_FALSE, &x));
  PetscCall(OperandRestore(a->A, a->r, PETSC_TRUE, &b));
  PetscCall(GPUCSRFree(dev, bytes, &row));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Zeroes entries of rows (and columns) and keeps the pattern; done false: the parent zeroes them and raises errors */
static PetscErrorCode ZeroRows(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diagonal, Vec x, Vec b, PetscBool columns, PetscBool *done)
{
  Arguments a = {.A = A, .s = (double)PetscRealPart(diagonal), .n = columns ? A->rmap->n : n, .columns = columns};

  PetscFunctionBegin;
  *done = PETSC_TRUE;
  for (PetscInt k = 0; k < n; k++) *done = (PetscBool)(*done && rows[k] >= 0 && rows[k] < A->rmap->n);
  if (*done) PetscCall(WholeDiagonal(A, done));
  if (*done) {
    PetscCall(PetscCalloc1((size_t)a.n, &a.row));
    for (PetscInt k = 0; k < n; k++) {
      if (columns) a.row[rows[k]] = 1;
      else a.row[k] = (int32_t)rows[k];
    }
    a.l = x && b ? x : NULL;
    a.r = x && b ? b : NULL;
    PetscCall(Change(A, PETSC_FALSE, ApplyZeroRows, &a, done));
    PetscCall(PetscFree(a.row));
  } else PetscCall(MatGPUCSRFetch_Private(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroRows_InPlace(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diagonal, Vec x, Vec b)
{
  PetscBool          done = PETSC_FALSE;
  const PetscScalar *from;
  PetscScalar       *to;

  PetscFunctionBegin;
  if (((Mat_GPUCSR *)A->spptr)->keeppattern) PetscCall(ZeroRows(A, n, rows, diagonal, NULL, NULL, PETSC_FALSE, &done));
  else PetscCall(MatGPUCSRFetch_Private(A));
  if (!done) {
    PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.zerorows)(A, n, rows, diagonal, x, b));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!x || !b) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetArrayRead(x, &from));
  PetscCall(VecGetArray(b, &to));
  for (PetscInt k = 0; k < n; k++)
    if (rows[k] < A->cmap->n) to[rows[k]] = diagonal * from[rows[k]];
  PetscCall(VecRestoreArray(b, &to));
  PetscCall(VecRestoreArrayRead(x, &from));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroRowsColumns_InPlace(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diagonal, Vec x, Vec b)
{
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  if (n && A->rmap->n == A->cmap->n) PetscCall(ZeroRows(A, n, rows, diagonal, x, b, PETSC_TRUE, &done));
  else PetscCall(MatGPUCSRFetch_Private(A));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.zerorowscolumns)(A, n, rows, diagonal, x, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatNorm_InPlace(Mat A, NormType type, PetscReal *norm)
{
  const GPUCSRNormKind kind = type == NORM_INFINITY ? GPUCSR_LARGEST_ROW : GPUCSR_SUM_OF_SQUARES;
  GPUCSRStorage       *csr  = NULL;
  double               v    = 0;
  GPUCSRAttempt        attempt;
  PetscErrorCode       ierr = PETSC_ERR_GPU;

  PetscFunctionBegin;
  if (type == NORM_FROBENIUS || type == NORM_INFINITY) PetscCall(Begin(A, PETSC_FALSE, &csr));
  if (csr) ATTEMPT(A, (*GPUCSRAssembleOf(csr->dev)->norm)(csr, kind, &v), ierr, attempt);
  if (ierr) {
    PetscCall(MatGPUCSRFetch_Private(A));
    PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.norm)(A, type, norm));
  } else *norm = (PetscReal)(kind == GPUCSR_SUM_OF_SQUARES ? PetscSqrtReal((PetscReal)v) : (PetscReal)v);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* at: columns, -1 where a row has no entry but 0 */
static PetscErrorCode RowMaxAbs(Mat A, GPUCSRStorage *csr, Vec v, PetscInt *at)
{
  GPUCSRDevice   dev    = csr->dev;
  const size_t   m      = (size_t)csr->m;
  void          *column = NULL;
  int32_t       *host   = NULL;
  Operand        x;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (at) {
    PetscCall(PetscMalloc1(m, &host));
    for (size_t r = 0; r < m; r++) host[r] = -1;
  }
  ierr = OperandGet(A, v, PETSC_TRUE, &x);
  if (!ierr && at) ierr = GPUCSRMalloc(dev, sizeof(int32_t) * m, "columns of row maxima", &column);
  if (!ierr && at) ierr = GPUCSRUpload(dev, column, GPUCSR_INT32, host, GPUCSR_INT32, m, PETSC_FALSE, dev->stream, NULL);
  if (!ierr) ierr = (*GPUCSRAssembleOf(dev)->rowmaxabs)(csr, x.p, (int32_t *)column);
  if (!ierr && at) ierr = GPUCSRDownload(dev, host, GPUCSR_INT32, column, GPUCSR_INT32, m, PETSC_FALSE, dev->stream);
  if (!ierr && at) ierr = (*dev->ops->streamsynchronize)(dev->id, dev->stream);
  for (size_t r = 0; r < m && !ierr && at; r++)
    if (host[r] >= 0) at[r] = (PetscInt)host[r];
  PetscCall(GPUCSRFree(dev, sizeof(int32_t) * m, &column));
  PetscCall(PetscFree(host));
  PetscCall(OperandRestore(A, v, PETSC_TRUE, &x));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetRowMaxAbs_InPlace(Mat A, Vec v, PetscInt at[])
{
  GPUCSRStorage *csr = NULL;
  PetscInt       n;
  GPUCSRAttempt  attempt;
  PetscErrorCode ierr = PETSC_ERR_GPU;

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(v, &n));
  if (n == A->rmap->n) PetscCall(Begin(A, PETSC_FALSE, &csr)); /* else the parent's error */
  if (csr) ATTEMPT(A, RowMaxAbs(A, csr, v, at), ierr, attempt);
  if (!ierr) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRFetch_Private(A));
  PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.getrowmaxabs)(A, v, at));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSetOption_InPlace(Mat A, MatOption option, PetscBool yes)
{
  PetscFunctionBegin;
  if (option == MAT_KEEP_NONZERO_PATTERN) ((Mat_GPUCSR *)A->spptr)->keeppattern = yes;
  PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.setoption)(A, option, yes));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Replaces the parent's operations, or restores them */
PetscErrorCode MatGPUCSRInPlace_Private(Mat A, PetscBool install)
{
  const struct _MatOps *p = &((Mat_GPUCSR *)A->spptr)->parent;

  PetscFunctionBegin;
#define REPLACE(op, fn) \
  if (p->op) A->ops->op = install ? (fn) : p->op
  REPLACE(zeroentries, MatZeroEntries_InPlace);
  REPLACE(scale, MatScale_InPlace);
  REPLACE(diagonalscale, MatDiagonalScale_InPlace);
  REPLACE(shift, MatShift_InPlace);
  REPLACE(diagonalset, MatDiagonalSet_InPlace);
  REPLACE(zerorows, MatZeroRows_InPlace);
  REPLACE(zerorowscolumns, MatZeroRowsColumns_InPlace);
  REPLACE(norm, MatNorm_InPlace);
  REPLACE(getrowmaxabs, MatGetRowMaxAbs_InPlace);
  REPLACE(setoption, MatSetOption_InPlace);
#undef REPLACE
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Y += a X of the same pattern, on the device of both; done false: nothing has happened */
typedef struct {
  double               a;
  const GPUCSRStorage *X;
} Sum;

static PetscErrorCode ApplyAdd(GPUCSRStorage *Y, void *ctx)
{
  const Sum *s = (const Sum *)ctx;

  PetscFunctionBegin;
  PetscCall((*GPUCSRAssembleOf(Y->dev)->add)(s->a, s->X, Y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRAddSame_Private(Mat Y, PetscScalar a, Mat X, PetscBool *done)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)Y->spptr;
  Sum            s = {(double)PetscRealPart(a), NULL};
  GPUCSRStorage *x, *y;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(Begin(X, PETSC_FALSE, &x));
  PetscCall(Begin(Y, PETSC_FALSE, &y));
  if (!x || !y || x->dev != y->dev || x->nnz != y->nnz || x->m != y->m) PetscFunctionReturn(PETSC_SUCCESS);
  s.X = x;
  PetscCall(Change(Y, PETSC_FALSE, ApplyAdd, &s, done));
  if (*done) PetscCall(PetscObjectStateGet((PetscObject)Y, &g->mirror.values)); /* MatAXPY() does not count */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* While the master copy is the device's: B = A of the same pattern */
static PetscErrorCode ApplyCopy(GPUCSRStorage *B, void *ctx)
{
  const GPUCSRStorage *A = (const GPUCSRStorage *)ctx;

  PetscFunctionBegin;
  PetscCall((*B->dev->ops->copy)(B->dev->id, B->array[CSR_VAL].data, A->array[CSR_VAL].data, sizeof(double) * (size_t)B->nnz, GPUCSR_ON_DEVICE, B->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRCopySame_Private(Mat A, Mat B, MatStructure str, PetscBool *done)
{
  GPUCSRStorage *a, *b;
  PetscBool      seq;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJGPUCSR, &seq));
  if (seq) PetscCall(PetscObjectTypeCompare((PetscObject)B, MATSEQAIJGPUCSR, &seq));
  if (!seq || A == B || str != SAME_NONZERO_PATTERN) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Begin(A, PETSC_FALSE, &a));
  PetscCall(Begin(B, PETSC_TRUE, &b));
  if (!a || !b || a->dev != b->dev || a->nnz != b->nnz || a->m != b->m) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Change(B, PETSC_TRUE, ApplyCopy, a, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

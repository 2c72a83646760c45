/*
  Operations that change values, and keep the pattern, run where the master copy is. With -mat_gpucsr_master device that is the device. Otherwise MATAIJ or the threads of scale.c do them on the host: a
  device that fails during the copy to the host would leave half of the values changed. Operations that read all values use the device's copy if it is up to date and large enough.
*/
#include "assembly.h"
#include <string.h>

typedef enum {
  ZERO,
  SCALE,
  DIAGONAL_SCALE,
  DIAGONAL, /* set, or added to */
  ADD,
  COPY,
  ZERO_ROWS,
  ZERO_COLUMNS /* and rows */
} Operation;

typedef struct {
  Operation            op;
  double               s;
  PetscBool            add;
  Vec                  l, r; /* of ZERO_COLUMNS: x and b; NULL: none */
  PetscInt             n;
  int32_t             *row;   /* n rows, or with ZERO_COLUMNS marks of all */
  const GPUCSRStorage *other; /* the other matrix, of the same pattern */
  PetscBool            begun; /* the vector r has changed on the device */
} Change;

/* csr: the values on the device, NULL: the operation is the host's. whole: it writes all values and reads none */
PetscErrorCode MatGPUCSRInPlaceBegin_Private(Mat A, PetscBool whole, GPUCSRStorage **csr)
{
  Mat_SeqGPUCSR      *g = (Mat_SeqGPUCSR *)A->spptr;
  const GPUCSRMirror *m = &g->mirror;
  const PetscInt     *i, *j;
  PetscObjectState    state;
  GPUCSRAttempt       attempt;

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
  GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, MatGPUCSRMirror_Private(A, g->dev, (PetscBool)!whole, csr));
  PetscCall(MatGPUCSRKept_Private(A, NULL, &attempt));
  if (attempt.error) *csr = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A vector's array on the device; one of the host is sent, and with write brought back */
typedef struct {
  Vec           v; /* NULL: there is none */
  PetscBool     write;
  GPUCSROperand o;
  void         *own;
  size_t        n;
  double       *p;
} Operand;

static PetscErrorCode OperandGet(Mat A, Vec v, PetscBool write, Operand *x)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  PetscInt       n;

  PetscFunctionBegin;
  *x = (Operand){.write = write};
  if (!v) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(VecGetLocalSize(v, &n));
  x->n = (size_t)n;
  PetscCall(MatGPUCSRVecGet_Private(g->dev, v, PETSC_TRUE, write, &x->o));
  x->v = v;
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

/* All of it or nothing: the host goes on after an error */
static PetscErrorCode Download(GPUCSRDevice dev, const Operand *x)
{
  double        *all;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(x->n, &all));
  ierr = GPUCSRDownload(dev, all, GPUCSR_DOUBLE, x->own, GPUCSR_DOUBLE, x->n, PETSC_FALSE, dev->stream);
  if (!ierr) ierr = (*dev->ops->streamsynchronize)(dev->id, dev->stream);
  if (!ierr && x->n) memcpy(x->o.p, all, sizeof(double) * x->n);
  PetscCall(PetscFree(all));
  PetscFunctionReturn(ierr);
}

/* ierr: of the work until now; after an error the vector has its old entries */
static PetscErrorCode OperandRestore(Mat A, Operand *x, PetscErrorCode ierr)
{
  GPUCSRDevice dev = ((Mat_SeqGPUCSR *)A->spptr)->dev;

  PetscFunctionBegin;
  if (!x->v) PetscFunctionReturn(ierr);
  if (!ierr && x->own && x->write) ierr = Download(dev, x);
  if (!ierr && !x->own && !x->o.ours) ierr = (*dev->ops->streamsynchronize)(dev->id, dev->stream);
  if (x->own) PetscCall(GPUCSRFree(dev, sizeof(double) * x->n, &x->own));
  PetscCall(MatGPUCSRVecRestore_Private(dev, x->v, PETSC_TRUE, x->write, &x->o));
  PetscFunctionReturn(ierr);
}

static PetscErrorCode Kernel(GPUCSRStorage *A, const Change *c, const double *l, double *r, const int32_t *row)
{
  const GPUCSRAssembleOps *ops   = GPUCSRAssembleOf(A->dev);
  const size_t             bytes = sizeof(double) * (size_t)A->nnz;

  switch (c->op) {
  case ZERO:
    return (*A->dev->ops->zero)(A->dev->id, A->array[CSR_VAL].data, bytes, A->dev->stream);
  case SCALE:
    return (*ops->scale)(c->s, A);
  case DIAGONAL_SCALE:
    return (*ops->diagonalscale)(l, r, A);
  case DIAGONAL:
    return (*ops->diagonal)(l, c->s, c->add, A);
  case ADD:
    return (*ops->add)(c->s, c->other, A);
  case COPY:
    return (*A->dev->ops->copy)(A->dev->id, A->array[CSR_VAL].data, c->other->array[CSR_VAL].data, bytes, GPUCSR_ON_DEVICE, A->dev->stream);
  case ZERO_ROWS:
    return (*ops->zerorows)((int)c->n, row, c->s, A);
  default:
    return (*ops->zerorowscolumns)(row, c->s, l, r, A);
  }
}

static PetscErrorCode Apply(Mat A, GPUCSRStorage *csr, Change *c)
{
  GPUCSRDevice   dev   = csr->dev;
  const size_t   bytes = sizeof(int32_t) * (size_t)c->n;
  void          *row   = NULL;
  Operand        l, r = {.v = NULL};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = OperandGet(A, c->l, PETSC_FALSE, &l);
  if (!ierr) ierr = OperandGet(A, c->r, (PetscBool)(c->op == ZERO_COLUMNS), &r);
  if (!ierr && c->n) ierr = GPUCSRMalloc(dev, bytes, "rows to be zeroed", &row);
  if (!ierr && c->n) ierr = GPUCSRUpload(dev, row, GPUCSR_INT32, c->row, GPUCSR_INT32, (size_t)c->n, PETSC_FALSE, dev->stream, NULL);
  if (!ierr) ierr = Kernel(csr, c, l.p, r.p, (const int32_t *)row);
  c->begun = (PetscBool)(!ierr && r.write && !r.own);
  ierr     = OperandRestore(A, &l, ierr);
  ierr     = OperandRestore(A, &r, ierr);
  PetscCall(GPUCSRFree(dev, bytes, &row));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Changes values on the device. done false: they are as before, and on the host */
static PetscErrorCode OnDevice(Mat A, Change *c, PetscBool *done)
{
  const PetscBool whole = (PetscBool)(c->op == ZERO || c->op == COPY);
  GPUCSRMirror   *m     = &((Mat_SeqGPUCSR *)A->spptr)->mirror;
  GPUCSRStorage  *csr   = NULL;
  GPUCSRAttempt   attempt;

  PetscFunctionBegin;
  if (((Mat_GPUCSR *)A->spptr)->config.masterdevice) PetscCall(MatGPUCSRInPlaceBegin_Private(A, whole, &csr));
  *done = csr ? PETSC_TRUE : PETSC_FALSE;
  if (csr) {
    m->values = -1;
    GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, Apply(A, csr, c));
    PetscCheck(!attempt.error || (!c->begun && (whole || !m->ahead)), PETSC_COMM_SELF, attempt.error, "The device failed while it changed the only copy of %s: %s", c->begun ? "a vector" : "the values (-mat_gpucsr_master device)", attempt.message);
    PetscCall(MatGPUCSRKept_Private(A, NULL, &attempt));
    *done = (PetscBool)!attempt.error;
    if (*done) PetscCall(MatGPUCSRWritten_Private(A));
    else m->ahead = PETSC_FALSE; /* the host has the old values, or writes all */
  }
  if (!*done) PetscCall(MatGPUCSRFetch_Private(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- The operations */

static PetscErrorCode MatZeroEntries_InPlace(Mat A)
{
  Change    c = {.op = ZERO};
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(OnDevice(A, &c, &done));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.zeroentries)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatScale_InPlace(Mat A, PetscScalar alpha)
{
  Change    c    = {.op = SCALE, .s = (double)PetscRealPart(alpha)};
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  if (c.s != 0) PetscCall(OnDevice(A, &c, &done)); /* 0 times NaN or Inf depends on the BLAS */
  else PetscCall(MatGPUCSRFetch_Private(A));
  if (!done) PetscCall(MatScale_SeqAIJGPUCSR(A, alpha));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDiagonalScale_InPlace(Mat A, Vec l, Vec r)
{
  Change    c = {.op = DIAGONAL_SCALE, .l = l, .r = r};
  PetscInt  m = A->rmap->n, n = A->cmap->n;
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  if (l) PetscCall(VecGetLocalSize(l, &m));
  if (r) PetscCall(VecGetLocalSize(r, &n));
  if (m == A->rmap->n && n == A->cmap->n) PetscCall(OnDevice(A, &c, &done)); /* else the parent's error */
  else PetscCall(MatGPUCSRFetch_Private(A));
  if (!done) PetscCall(MatDiagonalScale_SeqAIJGPUCSR(A, l, r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The places of the diagonal's entries among the values: the search of a pattern */
static PetscErrorCode FindDiagonal(GPUCSRMirror *m)
{
  GPUCSRDevice dev = m->csr.dev;

  PetscFunctionBegin;
  m->diagonalat = 0;
  PetscCall(GPUCSRBufferGrow(dev, sizeof(int32_t) * (size_t)GPUCSRMin(m->csr.m, m->csr.n), "places of a diagonal", &m->place));
  PetscCall((*GPUCSRAssembleOf(dev)->places)(&m->csr, (int32_t *)m->place.p, &m->missing));
  if (m->missing) PetscCall(GPUCSRBufferFree(dev, &m->place));
  m->diagonalat = m->pattern + 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the whole diagonal stored, in a matrix that may be changed on the device? Asked once for a pattern. If not, the host has the values */
PetscErrorCode MatGPUCSRWholeDiagonal_Private(Mat A, PetscBool *whole)
{
  GPUCSRMirror  *m       = &((Mat_SeqGPUCSR *)A->spptr)->mirror;
  GPUCSRStorage *csr     = NULL;
  GPUCSRAttempt  attempt = {.error = PETSC_SUCCESS};

  PetscFunctionBegin;
  if (((Mat_GPUCSR *)A->spptr)->config.masterdevice) PetscCall(MatGPUCSRInPlaceBegin_Private(A, PETSC_FALSE, &csr));
  if (csr && m->diagonalat != m->pattern + 1) {
    GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, FindDiagonal(m));
    PetscCall(MatGPUCSRKept_Private(A, NULL, &attempt));
  }
  *whole = (PetscBool)(csr && !attempt.error && !m->missing);
  if (!*whole) PetscCall(MatGPUCSRFetch_Private(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatShift_InPlace(Mat A, PetscScalar s)
{
  Change    c = {.op = DIAGONAL, .s = (double)PetscRealPart(s), .add = PETSC_TRUE};
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRWholeDiagonal_Private(A, &done));
  if (done) PetscCall(OnDevice(A, &c, &done));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.shift)(A, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDiagonalSet_InPlace(Mat A, Vec d, InsertMode mode)
{
  Change    c    = {.op = DIAGONAL, .l = d, .add = (PetscBool)(mode != INSERT_VALUES)};
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  if (A->rmap->n <= A->cmap->n) PetscCall(MatGPUCSRWholeDiagonal_Private(A, &done)); /* else the parent's error */
  else PetscCall(MatGPUCSRFetch_Private(A));
  if (done) PetscCall(OnDevice(A, &c, &done));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.diagonalset)(A, d, mode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Zeroes entries of rows, or of rows and columns. The pattern stays. done false: the parent zeroes them and raises errors */
static PetscErrorCode ZeroRows(Mat A, PetscInt n, const PetscInt rows[], Change *c, PetscBool *done)
{
  PetscFunctionBegin;
  *done = PETSC_TRUE;
  for (PetscInt k = 0; k < n; k++) *done = (PetscBool)(*done && rows[k] >= 0 && rows[k] < A->rmap->n);
  if (!*done) PetscCall(MatGPUCSRFetch_Private(A));
  else if (c->s != 0) PetscCall(MatGPUCSRWholeDiagonal_Private(A, done));
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  c->n = c->op == ZERO_COLUMNS ? A->rmap->n : n;
  PetscCall(PetscCalloc1((size_t)c->n, &c->row));
  for (PetscInt k = 0; k < n; k++) {
    if (c->op == ZERO_COLUMNS) c->row[rows[k]] = 1;
    else c->row[k] = (int32_t)rows[k];
  }
  PetscCall(OnDevice(A, c, done));
  PetscCall(PetscFree(c->row));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroRows_InPlace(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diagonal, Vec x, Vec b)
{
  Change             c    = {.op = ZERO_ROWS, .s = (double)PetscRealPart(diagonal)};
  PetscBool          done = PETSC_FALSE;
  const PetscScalar *from;
  PetscScalar       *to;

  PetscFunctionBegin;
  if (((Mat_GPUCSR *)A->spptr)->keeppattern) PetscCall(ZeroRows(A, n, rows, &c, &done));
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
  Change    c    = {.op = ZERO_COLUMNS, .s = (double)PetscRealPart(diagonal), .l = x && b ? x : NULL, .r = x && b ? b : NULL};
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  if (n && A->rmap->n == A->cmap->n) PetscCall(ZeroRows(A, n, rows, &c, &done));
  else if (n) PetscCall(MatGPUCSRFetch_Private(A));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.zerorowscolumns)(A, n, rows, diagonal, x, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diagonal(Mat A, GPUCSRStorage *csr, Vec d)
{
  const GPUCSRMirror *m = &((Mat_SeqGPUCSR *)A->spptr)->mirror;
  Operand             x;
  PetscErrorCode      ierr;

  PetscFunctionBegin;
  ierr = OperandGet(A, d, PETSC_TRUE, &x);
  if (!ierr) ierr = (*GPUCSRAssembleOf(csr->dev)->gather)((int64_t)csr->m, (const int32_t *)m->place.p, (const double *)csr->array[CSR_VAL].data, x.p, csr->dev);
  PetscCall(OperandRestore(A, &x, ierr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From the master copy on the device. done false: the host has the values */
PetscErrorCode MatGPUCSRDiagonal_Private(Mat A, Vec d, PetscBool *done)
{
  GPUCSRStorage *csr     = NULL;
  GPUCSRAttempt  attempt = {.error = PETSC_ERR_GPU};
  PetscInt       n;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(VecGetLocalSize(d, &n));
  if (((Mat_SeqGPUCSR *)A->spptr)->mirror.ahead && n == A->rmap->n && n <= A->cmap->n) PetscCall(MatGPUCSRWholeDiagonal_Private(A, done));
  if (*done) PetscCall(MatGPUCSRInPlaceBegin_Private(A, PETSC_FALSE, &csr));
  if (csr) GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, Diagonal(A, csr, d));
  *done = (PetscBool)!attempt.error;
  if (!*done) PetscCall(MatGPUCSRFetch_Private(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* at: columns, which stay where a row has no entry but 0 */
static PetscErrorCode RowMaxAbs(Mat A, GPUCSRStorage *csr, Vec v, PetscInt *at)
{
  GPUCSRDevice   dev    = csr->dev;
  const size_t   m      = (size_t)csr->m;
  void          *column = NULL;
  Operand        x;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = OperandGet(A, v, PETSC_TRUE, &x);
  if (!ierr && at) ierr = GPUCSRMalloc(dev, sizeof(int32_t) * m, "columns of row maxima", &column);
  if (!ierr && at) ierr = GPUCSRUpload(dev, column, GPUCSR_INT32, at, GPUCSR_PETSCINT, m, PETSC_FALSE, dev->stream, NULL);
  if (!ierr) ierr = (*GPUCSRAssembleOf(dev)->rowmaxabs)(csr, x.p, (int32_t *)column);
  if (!ierr && at) ierr = GPUCSRDownload(dev, at, GPUCSR_PETSCINT, column, GPUCSR_INT32, m, PETSC_FALSE, dev->stream);
  if (!ierr && at) ierr = (*dev->ops->streamsynchronize)(dev->id, dev->stream);
  PetscCall(GPUCSRFree(dev, sizeof(int32_t) * m, &column));
  PetscCall(OperandRestore(A, &x, ierr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetRowMaxAbs_InPlace(Mat A, Vec v, PetscInt at[])
{
  GPUCSRStorage *csr = NULL;
  PetscInt       n;
  GPUCSRAttempt  attempt = {.error = PETSC_ERR_GPU};

  PetscFunctionBegin;
  PetscCall(VecGetLocalSize(v, &n));
  if (n == A->rmap->n) PetscCall(MatGPUCSRInPlaceBegin_Private(A, PETSC_FALSE, &csr)); /* else the parent's error */
  if (csr) GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, RowMaxAbs(A, csr, v, at));
  if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
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

/* --- Two matrices of the same pattern, on one device */

/* done false: nothing has happened */
static PetscErrorCode Combine(Mat Y, Change *c, Mat X, PetscBool *done)
{
  GPUCSRStorage *x, *y = NULL;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (!((Mat_GPUCSR *)Y->spptr)->config.masterdevice) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRInPlaceBegin_Private(X, PETSC_FALSE, &x));
  if (x) PetscCall(MatGPUCSRInPlaceBegin_Private(Y, (PetscBool)(c->op == COPY), &y));
  if (!y || x->dev != y->dev || x->nnz != y->nnz || x->m != y->m) PetscFunctionReturn(PETSC_SUCCESS);
  c->other = x;
  PetscCall(OnDevice(Y, c, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Y += a X */
PetscErrorCode MatGPUCSRAddSame_Private(Mat Y, PetscScalar a, Mat X, PetscBool *done)
{
  Change c = {.op = ADD, .s = (double)PetscRealPart(a)};

  PetscFunctionBegin;
  PetscCall(Combine(Y, &c, X, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B = A */
PetscErrorCode MatGPUCSRCopySame_Private(Mat A, Mat B, MatStructure str, PetscBool *done)
{
  Change    c = {.op = COPY};
  PetscBool ours;

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  PetscCall(PetscObjectTypeCompare((PetscObject)B, MATSEQAIJGPUCSR, &ours));
  if (ours && str == SAME_NONZERO_PATTERN) PetscCall(Combine(B, &c, A, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

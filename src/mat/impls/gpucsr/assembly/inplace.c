/*
  Operations that change values, and keep the pattern, run at the master copy: on the device with -mat_gpucsr_master device. Otherwise MATAIJ runs on the host, or several threads for MatScale() and
  MatDiagonalScale(), as PCGAMG scales the largest matrices of its set-up: a device failure during the copy to the host would leave half of the values changed. Operations that read all values use the device's copy if it is up to date and large enough.
*/
#include "assembly.h"
#include "../../../../vec/impls/gpu/kernels.h"
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
  Vec                  l, r; /* of ZERO_ROWS and ZERO_COLUMNS: x and b; NULL: none */
  PetscInt             n;
  const PetscInt      *rows;  /* to be zeroed, */
  PetscBool            range; /* one after the other */
  const GPUCSRStorage *other; /* the other matrix, of the same pattern */
  PetscBool            begun; /* the vector r has changed on the device */
} Change;

/* csr: the values on the device, NULL: the operation is the host's. whole: it writes all values and reads none */
static PetscErrorCode InPlaceBegin(Mat A, PetscBool whole, GPUCSRStorage **csr)
{
  Mat_SeqGPUCSR      *g = (Mat_SeqGPUCSR *)A->spptr;
  const GPUCSRMirror *m = &g->mirror;
  const PetscInt     *i, *j;
  GPUCSRAttempt       attempt;

  PetscFunctionBegin;
  *csr = NULL;
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, NULL, NULL));
  if (!A->assembled || A->factortype || !i) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRDecide_Private(A));
  if (!g->dev || !g->dev->ops->separate || g->dev->failed[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRHeaderReplaced_Private(A));
  if (!g->base.config.masterdevice) {
    const PetscBool current = (PetscBool)(m->csr.format && m->csr.dev == g->dev && m->pattern == A->nonzerostate && m->columns == (const void *)j && m->values == GPUCSRStateOf(A) && !g->firstvalues && !g->copy);

    if (!current || i[A->rmap->n] < g->base.config.productleast) PetscFunctionReturn(PETSC_SUCCESS);
  }
  GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, MatGPUCSRMirror_Private(A, g->dev, (PetscBool)!whole, csr));
  PetscCall(MatGPUCSRKept_Private(A, NULL, &attempt));
  if (attempt.error) *csr = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What kernels read beside the matrix */
typedef struct {
  const int32_t *place; /* of the diagonal; NULL: not needed */
  void          *row, *mark;
  size_t         rowbytes, markbytes;
  GPUCSRVecArray l, r;
} Operands;

static PetscErrorCode Kernel(GPUCSRStorage *A, const Change *c, const Operands *o)
{
  const GPUCSRAssembleOps *ops = GPUCSRAssembleOf(A->dev);
  const VecGPUKernels     *vec = VecGPUKernelsOf(A->dev);
  const size_t             n = (size_t)A->nnz, bytes = sizeof(double) * n;
  const double             abc[3] = {c->s, 0, 0};
  const GPUCSRRowList      list   = {.n = (int)c->n, .first = c->n ? (int)c->rows[0] : 0, .row = (const int32_t *)o->row};

  switch (c->op) {
  case ZERO:
    return (*A->dev->ops->zero)(A->dev->id, A->array[CSR_VAL].data, bytes, A->dev->stream);
  case SCALE:
    return (*vec->map)(A->dev, VECGPU_MAP_scale, n, abc, NULL, NULL, (double *)A->array[CSR_VAL].data);
  case DIAGONAL_SCALE:
    return (*ops->diagonalscale)(A->dev, A->m, GPUCSRCSROf(A), o->l.p, o->r.p, A->dev->stream);
  case DIAGONAL:
    return (*ops->diagonal)(A->dev, GPUCSRMin(A->m, A->n), o->place, o->l.p, c->s, c->add, GPUCSRCSROf(A).a, A->dev->stream);
  case ADD:
    return (*vec->map)(A->dev, VECGPU_MAP_axpy, n, abc, (const double *)c->other->array[CSR_VAL].data, NULL, (double *)A->array[CSR_VAL].data);
  case COPY:
    return (*A->dev->ops->copy)(A->dev->id, A->array[CSR_VAL].data, c->other->array[CSR_VAL].data, bytes, GPUCSR_ON_DEVICE, A->dev->stream);
  case ZERO_ROWS:
    return (*ops->zerorows)(A->dev, list.n, list, o->place, c->s, o->l.p, o->r.p, GPUCSRCSROf(A), A->dev->stream);
  default:
    PetscCall((*A->dev->ops->zero)(A->dev->id, o->mark, (size_t)A->m, A->dev->stream));
    PetscCall((*ops->mark)(A->dev, list.n, list, (char *)o->mark, A->dev->stream));
    return (*ops->zerocolumns)(A->dev, A->m, (const char *)o->mark, c->s, o->l.p, o->r.p, GPUCSRCSROf(A), A->dev->stream);
  }
}

/* Places of the diagonal among the values of the mirror, on the device, found once for a pattern; NULL: some entry of the diagonal is not stored */
static PetscErrorCode DiagonalPlaces(Mat A, GPUCSRStorage *csr, const int32_t **place)
{
  GPUCSRMirror  *m = &((Mat_SeqGPUCSR *)A->spptr)->mirror;
  const int      n = GPUCSRMin(csr->m, csr->n);
  int           *flag, missing;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (m->diagonalat != m->pattern + 1) {
    PetscCall(GPUCSRBufferGrow(csr->dev, sizeof(int32_t) * (size_t)GPUCSRMax(n, 1), "places of a diagonal", &m->place));
    PetscCall(GPUCSRFlagCreate(csr->dev, &flag));
    ierr = (*GPUCSRAssembleOf(csr->dev)->places)(csr->dev, n, GPUCSRCSROf(csr), (int32_t *)m->place.p, flag, csr->dev->stream);
    PetscCall(GPUCSRFlagRead(csr->dev, ierr, &flag, &missing));
    if (missing) PetscCall(GPUCSRBufferFree(csr->dev, &m->place));
    m->diagonalat = m->pattern + 1;
  }
  *place = (const int32_t *)m->place.p;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Sends the list of rows, unless its first row tells all */
static PetscErrorCode OperandsGet(Mat A, GPUCSRStorage *csr, const Change *c, Operands *o)
{
  GPUCSRDevice dev = csr->dev;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRArrayGet_Private(dev, c->l, PETSC_TRUE, PETSC_FALSE, &o->l));
  PetscCall(MatGPUCSRArrayGet_Private(dev, c->r, PETSC_TRUE, (PetscBool)(c->op >= ZERO_ROWS), &o->r));
  if (c->op == DIAGONAL || (c->op == ZERO_ROWS && c->s != 0)) PetscCall(DiagonalPlaces(A, csr, &o->place));
  if (c->n && !c->range) {
    o->rowbytes = sizeof(int32_t) * (size_t)c->n;
    PetscCall(GPUCSRMalloc(dev, o->rowbytes, "rows to be zeroed", &o->row));
    PetscCall(GPUCSRUpload(dev, o->row, GPUCSR_INT32, c->rows, GPUCSR_PETSCINT, (size_t)c->n, PETSC_FALSE, dev->stream, NULL));
  }
  if (c->op == ZERO_COLUMNS) {
    o->markbytes = (size_t)csr->m;
    PetscCall(GPUCSRMalloc(dev, o->markbytes, "marks of rows to be zeroed", &o->mark));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Apply(Mat A, GPUCSRStorage *csr, Change *c)
{
  Operands       o = {.place = NULL};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = OperandsGet(A, csr, c, &o);
  if (!ierr) ierr = Kernel(csr, c, &o);
  c->begun = (PetscBool)(!ierr && o.r.write && !o.r.copy.p);
  ierr     = MatGPUCSRArrayRestore_Private(csr->dev, &o.l, ierr);
  ierr     = MatGPUCSRArrayRestore_Private(csr->dev, &o.r, ierr);
  PetscCall(GPUCSRFree(csr->dev, o.rowbytes, &o.row));
  PetscCall(GPUCSRFree(csr->dev, o.markbytes, &o.mark));
  PetscFunctionReturn(ierr);
}

/* Changes values on the device, if that is possible otherwise. done false: they are as before, and on the host */
static PetscErrorCode OnDevice(Mat A, PetscBool possible, Change *c, PetscBool *done)
{
  const PetscBool whole = (PetscBool)(c->op == ZERO || c->op == COPY);
  GPUCSRMirror   *m     = &((Mat_SeqGPUCSR *)A->spptr)->mirror;
  GPUCSRStorage  *csr   = NULL;
  GPUCSRAttempt   attempt;

  PetscFunctionBegin;
  if (possible && ((Mat_GPUCSR *)A->spptr)->config.masterdevice) PetscCall(InPlaceBegin(A, whole, &csr));
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
  PetscCall(OnDevice(A, PETSC_TRUE, &c, &done));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.zeroentries)(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Values of A, and the number of threads for scaling; 1: the parent scales */
static PetscErrorCode Threads(Mat A, const PetscInt **i, int *threads)
{
  const Mat_SeqGPUCSR *g   = (Mat_SeqGPUCSR *)A->spptr;
  const GPUCSRDevice   dev = g->dev ? g->dev : g->mirror.csr.format ? g->mirror.csr.dev : NULL; /* a product of matrices may have a mirror and no plan */

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(A, i, NULL, NULL, NULL));
  *threads = dev && *i && (*i)[A->rmap->n] >= GPUCSRMachineShared.threaded_entries ? dev->threads : 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatScale_InPlace(Mat A, PetscScalar alpha)
{
  Change          c = {.op = SCALE, .s = (double)PetscRealPart(alpha)};
  const PetscInt *i;
  PetscScalar    *a;
  PetscBool       done;
  int             threads;

  PetscFunctionBegin;
  PetscCall(OnDevice(A, (PetscBool)(c.s != 0), &c, &done)); /* 0 times NaN or Inf depends on the BLAS */
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Threads(A, &i, &threads));
  if (threads == 1 || alpha == (PetscScalar)0.0) {
    PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.scale)(A, alpha));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatSeqAIJGetArray(A, &a));
#pragma omp parallel for num_threads(threads)
  for (PetscInt k = 0; k < i[A->rmap->n]; k++) a[k] *= alpha;
  PetscCall(PetscLogFlops((PetscLogDouble)i[A->rmap->n]));
  PetscCall(MatSeqAIJRestoreArray(A, &a)); /* voids PETSc's inverses of the diagonal */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The threads scale the rows, by l; the parent scales the columns */
static PetscErrorCode MatDiagonalScale_InPlace(Mat A, Vec l, Vec r)
{
  Change             c    = {.op = DIAGONAL_SCALE, .l = l, .r = r};
  PetscBool          fits = (PetscBool)((!l || l->map->n == A->rmap->n) && (!r || r->map->n == A->cmap->n)), done;
  const PetscInt    *i;
  const PetscScalar *s;
  PetscScalar       *a;
  int                threads;

  PetscFunctionBegin;
  PetscCall(OnDevice(A, fits, &c, &done)); /* else the parent's error */
  if (done) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Threads(A, &i, &threads));
  if (threads == 1 || !l || l->map->n != A->rmap->n) {
    PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.diagonalscale)(A, l, r));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(VecGetArrayRead(l, &s));
  PetscCall(MatSeqAIJGetArray(A, &a));
#pragma omp parallel for num_threads(threads)
  for (PetscInt row = 0; row < A->rmap->n; row++)
    for (PetscInt k = i[row]; k < i[row + 1]; k++) a[k] *= s[row];
  PetscCall(PetscLogFlops((PetscLogDouble)i[A->rmap->n]));
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscCall(VecRestoreArrayRead(l, &s));
  if (r) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.diagonalscale)(A, NULL, r));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Is the whole diagonal stored, in a matrix that may be changed on the device? If not, the host has the values */
PetscErrorCode MatGPUCSRWholeDiagonal_Private(Mat A, PetscBool *whole)
{
  GPUCSRStorage *csr   = NULL;
  const int32_t *place = NULL;
  GPUCSRAttempt  attempt;

  PetscFunctionBegin;
  if (((Mat_GPUCSR *)A->spptr)->config.masterdevice) PetscCall(InPlaceBegin(A, PETSC_FALSE, &csr));
  if (csr) {
    GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, DiagonalPlaces(A, csr, &place));
    PetscCall(MatGPUCSRKept_Private(A, NULL, &attempt));
  }
  *whole = (PetscBool)(place != NULL);
  if (!*whole) PetscCall(MatGPUCSRFetch_Private(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatShift_InPlace(Mat A, PetscScalar s)
{
  Change    c = {.op = DIAGONAL, .s = (double)PetscRealPart(s), .add = PETSC_TRUE};
  PetscBool done;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRWholeDiagonal_Private(A, &done));
  PetscCall(OnDevice(A, done, &c, &done));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.shift)(A, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDiagonalSet_InPlace(Mat A, Vec d, InsertMode mode)
{
  Change    c    = {.op = DIAGONAL, .l = d, .add = (PetscBool)(mode != INSERT_VALUES)};
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  if (A->rmap->n <= A->cmap->n) PetscCall(MatGPUCSRWholeDiagonal_Private(A, &done)); /* else the parent's error */
  PetscCall(OnDevice(A, done, &c, &done));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.diagonalset)(A, d, mode));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Zeroes entries of rows, or of rows and columns. The pattern stays. done false: the parent zeroes them and raises errors */
static PetscErrorCode ZeroRows(Mat A, PetscInt n, const PetscInt rows[], Change *c, PetscBool *done)
{
  const GPUCSRDevice dev = ((Mat_SeqGPUCSR *)A->spptr)->dev;
  const PetscInt     m = A->rmap->n, first = n ? rows[0] : 0;
  const int          threads = dev && (double)n > GPUCSRMachineShared.threaded_entries ? dev->threads : 1;
  int                beyond = 0, apart = 0;

  PetscFunctionBegin;
#pragma omp parallel for simd num_threads(threads) if (threads > 1) reduction(| : beyond, apart)
  for (PetscInt k = 0; k < n; k++) {
    beyond |= (rows[k] < 0) | (rows[k] >= m);
    apart |= rows[k] != first + k;
  }
  *done    = (PetscBool)!beyond;
  c->n     = n;
  c->rows  = rows;
  c->range = (PetscBool)!apart;
  if (*done && c->s != 0) PetscCall(MatGPUCSRWholeDiagonal_Private(A, done));
  PetscCall(OnDevice(A, *done, c, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroRows_InPlace(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diagonal, Vec x, Vec b)
{
  Change    c    = {.op = ZERO_ROWS, .s = (double)PetscRealPart(diagonal), .l = x && b ? x : NULL, .r = x && b ? b : NULL};
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFits_Private(A, x, b));
  if (((Mat_GPUCSR *)A->spptr)->keeppattern) PetscCall(ZeroRows(A, n, rows, &c, &done));
  else PetscCall(MatGPUCSRFetch_Private(A));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.zerorows)(A, n, rows, diagonal, x, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatZeroRowsColumns_InPlace(Mat A, PetscInt n, const PetscInt rows[], PetscScalar diagonal, Vec x, Vec b)
{
  Change    c    = {.op = ZERO_COLUMNS, .s = (double)PetscRealPart(diagonal), .l = x && b ? x : NULL, .r = x && b ? b : NULL};
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFits_Private(A, x, b));
  if (n && A->rmap->n == A->cmap->n) PetscCall(ZeroRows(A, n, rows, &c, &done));
  else if (n) PetscCall(MatGPUCSRFetch_Private(A));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.zerorowscolumns)(A, n, rows, diagonal, x, b));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diagonal(Mat A, GPUCSRStorage *csr, Vec d)
{
  const int32_t *place;
  GPUCSRVecArray x;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(DiagonalPlaces(A, csr, &place));
  ierr = MatGPUCSRArrayGet_Private(csr->dev, d, PETSC_TRUE, PETSC_TRUE, &x);
  if (!ierr) ierr = (*GPUCSRHelpers(csr->dev)->gather)(csr->dev, csr->m, GPUCSR_DOUBLE, place, csr->array[CSR_VAL].data, x.p, csr->dev->stream);
  PetscCall(MatGPUCSRArrayRestore_Private(csr->dev, &x, ierr));
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
  n     = d->map->n;
  if (((Mat_SeqGPUCSR *)A->spptr)->mirror.ahead && n == A->rmap->n && n <= A->cmap->n) PetscCall(MatGPUCSRWholeDiagonal_Private(A, done));
  if (*done) PetscCall(InPlaceBegin(A, PETSC_FALSE, &csr));
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
  GPUCSRVecArray x;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  ierr = MatGPUCSRArrayGet_Private(dev, v, PETSC_TRUE, PETSC_TRUE, &x);
  if (!ierr && at) ierr = GPUCSRMalloc(dev, sizeof(int32_t) * m, "columns of row maxima", &column);
  if (!ierr && at) ierr = GPUCSRUpload(dev, column, GPUCSR_INT32, at, GPUCSR_PETSCINT, m, PETSC_FALSE, dev->stream, NULL);
  if (!ierr) ierr = (*GPUCSRAssembleOf(dev)->rowmaxabs)(dev, csr->m, GPUCSRCSROf(csr), x.p, (int32_t *)column, dev->stream);
  if (!ierr && at) ierr = GPUCSRDownload(dev, at, GPUCSR_PETSCINT, column, GPUCSR_INT32, m, PETSC_FALSE, dev->stream);
  PetscCall(GPUCSRFree(dev, sizeof(int32_t) * m, &column));
  PetscCall(MatGPUCSRArrayRestore_Private(csr->dev, &x, ierr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetRowMaxAbs_InPlace(Mat A, Vec v, PetscInt at[])
{
  GPUCSRStorage *csr     = NULL;
  GPUCSRAttempt  attempt = {.error = PETSC_ERR_GPU};
  const PetscInt n       = v->map->n;

  PetscFunctionBegin;
  if (n == A->rmap->n) PetscCall(InPlaceBegin(A, PETSC_FALSE, &csr)); /* else the parent's error */
  if (csr) GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, RowMaxAbs(A, csr, v, at));
  if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRFetch_Private(A));
  PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.getrowmaxabs)(A, v, at));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Norms: largest sums of absolute values of rows or columns, and Frobenius'. Sums of columns are row sums of the transpose, in the same order */

/* s[r] += the sum of absolute values of row r of the transpose */
static PetscErrorCode AddColumns(const GPUCSRStorage *A, double *s)
{
  GPUCSRStorage  T;
  int32_t       *map;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRTransposeStorage(A, &T, &map));
  ierr = (*GPUCSRAssembleOf(T.dev)->rowsums)(T.dev, T.m, GPUCSRCSROf(&T), s, T.dev->stream);
  PetscCall(GPUCSRFree(A->dev, sizeof(int32_t) * (size_t)A->nnz, (void **)&map));
  PetscCall(GPUCSRStorageDestroy(&T));
  PetscFunctionReturn(ierr);
}

/* By a reduction of vectors */
static PetscErrorCode Reduce(GPUCSRDevice dev, VecGPUReduction op, size_t n, const double *x, double *v)
{
  const VecGPUKernels *vec = VecGPUKernelsOf(dev);
  double               result[2];

  PetscFunctionBegin;
  if (vec->prepare) PetscCall((*vec->prepare)(dev));
  PetscCall((*vec->reduce)(dev, op, n, x, NULL, result));
  *v = result[0];
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The sums of rows (NORM_INFINITY) or columns of some blocks beside or below each other: all of them on the host, or, with sums NULL, the largest */
static PetscErrorCode Sums(int blocks, GPUCSRStorage *const A[], NormType type, double *sums, double *most)
{
  const GPUCSRDevice dev = A[0]->dev;
  const size_t       n   = (size_t)(type == NORM_1 ? A[0]->n : A[0]->m);
  void              *s   = NULL;
  PetscErrorCode     ierr;

  PetscFunctionBegin;
  if (most) *most = 0;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRMalloc(dev, sizeof(double) * n, "sums of a norm", &s));
  ierr = (*dev->ops->zero)(dev->id, s, sizeof(double) * n, dev->stream);
  for (int k = 0; k < blocks && !ierr; k++) ierr = type == NORM_1 ? AddColumns(A[k], (double *)s) : (*GPUCSRAssembleOf(dev)->rowsums)(dev, A[k]->m, GPUCSRCSROf(A[k]), (double *)s, dev->stream);
  if (!ierr) ierr = sums ? GPUCSRDownload(dev, sums, GPUCSR_DOUBLE, s, GPUCSR_DOUBLE, n, PETSC_FALSE, dev->stream) : Reduce(dev, VECGPU_REDUCE_largest, n, (const double *)s, most);
  PetscCall(GPUCSRFree(dev, sizeof(double) * n, &s));
  PetscFunctionReturn(ierr);
}

/* NORM_FROBENIUS: its square. done false: the host has the values */
static PetscErrorCode Norm(Mat A, NormType type, double *v, PetscBool *done)
{
  GPUCSRStorage *csr     = NULL;
  GPUCSRAttempt  attempt = {.error = PETSC_ERR_GPU};

  PetscFunctionBegin;
  PetscCall(InPlaceBegin(A, PETSC_FALSE, &csr));
  if (csr) GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, type == NORM_FROBENIUS ? Reduce(csr->dev, VECGPU_REDUCE_square, (size_t)csr->nnz, (const double *)csr->array[CSR_VAL].data, v) : Sums(1, &csr, type, NULL, v));
  *done = (PetscBool)!attempt.error;
  if (!*done) PetscCall(MatGPUCSRFetch_Private(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatNorm_InPlace(Mat A, NormType type, PetscReal *norm)
{
  double    v    = 0;
  PetscBool done = PETSC_FALSE;

  PetscFunctionBegin;
  if (type == NORM_1 || type == NORM_FROBENIUS || type == NORM_INFINITY) PetscCall(Norm(A, type, &v, &done));
  else PetscCall(MatGPUCSRFetch_Private(A));
  if (!done) PetscCall((*((Mat_GPUCSR *)A->spptr)->parent.norm)(A, type, norm));
  else *norm = (PetscReal)(type == NORM_FROBENIUS ? PetscSqrtReal((PetscReal)v) : v);
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
  PetscCall(InPlaceBegin(X, PETSC_FALSE, &x));
  if (x) PetscCall(InPlaceBegin(Y, (PetscBool)(c->op == COPY), &y));
  if (!y || x->dev != y->dev || x->nnz != y->nnz || x->m != y->m) PetscFunctionReturn(PETSC_SUCCESS);
  c->other = x;
  PetscCall(OnDevice(Y, PETSC_TRUE, c, done));
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
  Change c = {.op = COPY};

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (GPUCSRIsType(B, MATSEQAIJGPUCSR) && str == SAME_NONZERO_PATTERN) PetscCall(Combine(B, &c, A, done));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* --- Norms of several ranks, which add their sums of the off-diagonal block's columns at the columns' owners */

/* NORM_1 and NORM_INFINITY. done false: on some rank the values are not on a device */
static PetscErrorCode LargestOfRanks(Mat A, NormType type, double *v, PetscBool *done)
{
  GPUCSRStorage  *csr[2]  = {NULL, NULL};
  double         *sum[2]  = {NULL, NULL};
  GPUCSRAttempt   attempt = {.error = PETSC_ERR_GPU};
  const PetscInt *garray;
  Mat             block[2];
  PetscMPIInt     all;

  PetscFunctionBegin;
  PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], &garray));
  for (int b = 0; b < 2; b++) {
    PetscCall(InPlaceBegin(block[b], PETSC_FALSE, &csr[b]));
    if (type == NORM_1) PetscCall(PetscMalloc1((size_t)block[b]->cmap->n + 1, &sum[b]));
  }
  if (csr[0] && csr[1] && type == NORM_1) GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, Sums(1, &csr[0], NORM_1, sum[0], NULL));
  if (!attempt.error && type == NORM_1) GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, Sums(1, &csr[1], NORM_1, sum[1], NULL));
  if (csr[0] && csr[1] && type == NORM_INFINITY) GPUCSRTryIf(MatGPUCSRMayFail(A), &attempt, Sums(2, csr, NORM_INFINITY, NULL, v));
  all = !attempt.error;
  PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, PetscObjectComm((PetscObject)A)));
  *done = (PetscBool)(all > 0);
  if (*done && type == NORM_1) {
    PetscSF sf;

    PetscCall(PetscSFCreate(PetscObjectComm((PetscObject)A), &sf));
    PetscCall(PetscSFSetGraphLayout(sf, A->cmap, block[1]->cmap->n, NULL, PETSC_OWN_POINTER, garray));
    PetscCall(PetscSFReduceBegin(sf, MPI_DOUBLE, sum[1], sum[0], MPI_SUM));
    PetscCall(PetscSFReduceEnd(sf, MPI_DOUBLE, sum[1], sum[0], MPI_SUM));
    PetscCall(PetscSFDestroy(&sf));
    *v = 0;
    for (PetscInt k = 0; k < A->cmap->n; k++)
      if (sum[0][k] > *v) *v = sum[0][k];
  }
  for (int b = 0; b < 2; b++) PetscCall(PetscFree(sum[b]));
  if (*done) PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, v, 1, MPI_DOUBLE, MPI_MAX, PetscObjectComm((PetscObject)A)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Collective. done false: the host has all values */
PetscErrorCode MatGPUCSRNormOfRanks_Private(Mat A, NormType type, PetscReal *norm, PetscBool *done)
{
  double    v = 0;
  PetscReal part;
  Mat       block[2];

  PetscFunctionBegin;
  *done = PETSC_FALSE;
  if (type == NORM_FROBENIUS) { /* the sum of all squares; a block that is not on a device adds its own */
    PetscCall(MatMPIAIJGetSeqAIJ(A, &block[0], &block[1], NULL));
    for (int b = 0; b < 2; b++) {
      double square = 0;

      PetscCall(Norm(block[b], NORM_FROBENIUS, &square, done));
      if (!*done) {
        PetscCall(MatNorm(block[b], NORM_FROBENIUS, &part));
        square = (double)part * (double)part;
      }
      v += square;
    }
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &v, 1, MPI_DOUBLE, MPI_SUM, PetscObjectComm((PetscObject)A)));
    *done = PETSC_TRUE;
  } else if (type == NORM_1 || type == NORM_INFINITY) PetscCall(LargestOfRanks(A, type, &v, done));
  if (*done) *norm = (PetscReal)(type == NORM_FROBENIUS ? PetscSqrtReal((PetscReal)v) : v);
  else PetscCall(MatGPUCSRFetch_Private(A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

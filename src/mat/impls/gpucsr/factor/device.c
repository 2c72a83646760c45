/*
  Factors on the device: pattern and values, copied from the host or computed there; triangles; solves with vectors on either side.
*/
#include "factorimpl.h"

static PetscErrorCode FreeInts(GPUCSRDevice dev, int n, int **p)
{
  return GPUCSRFree(dev, sizeof(int) * (size_t)n, (void **)p);
}

static PetscErrorCode PairDestroy(GPUCSRDevice dev, GPUCSRFactorPair *p)
{
  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) { /* all but the factor itself */
    if (p->from[k] != p->T[k].order) PetscCall(FreeInts(dev, p->M.n, &p->from[k]));
    if (k && p->to != p->T[1].order) PetscCall(FreeInts(dev, p->M.n, &p->to));
    p->from[k] = NULL;
    PetscCall(GPUCSRTriangleDestroy(dev, &p->T[k]));
  }
  p->to    = NULL;
  p->built = p->fresh = PETSC_FALSE;
  PetscCall(FreeInts(dev, (int)p->M.nnz, &p->map));
  PetscCall(FreeInts(dev, p->M.n, &p->schedule));
  PetscCall(GPUCSRFactorCSRDestroy(dev, &p->M));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ScatterDestroy(GPUCSRDevice dev, GPUCSROverlapScatter *s)
{
  PetscFunctionBegin;
  PetscCall(GPUCSRBufferFree(dev, &s->memory));
  PetscCall(PetscMemzero(s, sizeof(*s)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* from[m], ptr[n + 1] and index[ptr[n]] are host arrays */
PetscErrorCode GPUCSROverlapScatterCreate(GPUCSRDevice dev, int n, int m, const PetscInt from[], const int ptr[], const int index[], GPUCSROverlapScatter *s)
{
  const size_t ints = (size_t)m + (size_t)n + 1 + (size_t)ptr[n];

  PetscFunctionBegin;
  PetscCall(ScatterDestroy(dev, s));
  PetscCall(GPUCSRBufferGrow(dev, 2 * sizeof(double) * (size_t)m + sizeof(int) * ints, "vectors of blocks", &s->memory));
  s->n     = n;
  s->m     = m;
  s->b     = (double *)s->memory.p;
  s->x     = s->b + m;
  s->from  = (int *)(s->x + m);
  s->ptr   = s->from + m;
  s->index = s->ptr + n + 1;
  PetscCall(GPUCSRUpload(dev, s->from, GPUCSR_INT32, from, GPUCSR_PETSCINT, (size_t)m, PETSC_FALSE, dev->stream, NULL));
  PetscCall(GPUCSRUpload(dev, s->ptr, GPUCSR_INT32, ptr, GPUCSR_INT32, (size_t)n + 1, PETSC_FALSE, dev->stream, NULL));
  PetscCall(GPUCSRUpload(dev, s->index, GPUCSR_INT32, index, GPUCSR_INT32, (size_t)ptr[n], PETSC_FALSE, dev->stream, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode InversesDestroy(Mat_GPUCSRFactor *f)
{
  GPUCSRDevice dev = f->dev;
  const int    n   = f->inverses.n;

  PetscFunctionBegin;
  PetscCall(FreeInts(dev, n, &f->from));
  PetscCall(FreeInts(dev, n, &f->to));
  PetscCall(GPUCSRInversesDestroy(dev, &f->inverses));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Frees the factor's memory on the device */
PetscErrorCode MatGPUCSRFactorEmpty_Private(Mat_GPUCSRFactor *f)
{
  GPUCSRDevice dev = f->dev;
  GPUCSRBool   reached;

  PetscFunctionBegin;
  f->ondevice = PETSC_FALSE;
  if (!dev) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRDeviceReach(dev, PETSC_TRUE, &reached));
  for (int k = 0; k < 2; k++) PetscCall(PairDestroy(dev, &f->pair[k]));
  PetscCall(ScatterDestroy(dev, &f->scatter));
  PetscCall(InversesDestroy(f));
  PetscCall(GPUCSRBufferFree(dev, &f->x));
  PetscCall(GPUCSRBufferFree(dev, &f->b));
  f->last = NULL;
  if (f->trouble && !dev->failed[0]) PetscCall(dev->ops->hostfree(dev->id, f->trouble));
  f->trouble = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Work begins on stream s: the factor is made on the device's stream, and solves on PETSc's stream too share the results by place */
static PetscErrorCode Turn(Mat_GPUCSRFactor *f, GPUCSRStream s)
{
  PetscFunctionBegin;
  if (f->last && s != f->last) PetscCall(GPUCSRDeviceSynchronize(f->dev));
  f->last = s;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies the factor's pattern to the device, and finds the diagonal there. good: columns ascend in each row, and the diagonal is complete */
PetscErrorCode MatGPUCSRFactorPattern_Private(Mat_GPUCSRFactor *f, int n, int64_t nnz, const void *i, const void *j, GPUCSRType type, PetscBool *good)
{
  GPUCSRDevice     dev = f->dev;
  GPUCSRFactorCSR *M   = &f->pair[0].M;
  int              bad;

  PetscFunctionBegin;
  PetscCall(Turn(f, dev->stream));
  for (int k = 0; k < 2; k++) PetscCall(PairDestroy(dev, &f->pair[k]));
  PetscCall(InversesDestroy(f));
  PetscCall(GPUCSRFactorCSRCreate(dev, n, nnz, M));
  M->longest = 0;
  for (int r = 0; r < n; r++) M->longest = PetscMax(M->longest, type == GPUCSR_INT32 ? ((const int32_t *)i)[r + 1] - ((const int32_t *)i)[r] : (int)(((const int64_t *)i)[r + 1] - ((const int64_t *)i)[r]));
  PetscCall(GPUCSRUpload(dev, M->i, GPUCSR_INT32, i, type, (size_t)n + 1, PETSC_FALSE, dev->stream, NULL));
  PetscCall(GPUCSRUpload(dev, M->j, GPUCSR_INT32, j, type, (size_t)nnz, PETSC_FALSE, dev->stream, NULL));
  PetscCall(GPUCSRFactorCSRInspect(dev, M, &bad));
  *good = (PetscBool)!bad;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A permutation of the host on the device */
static PetscErrorCode SendIS(GPUCSRDevice dev, int n, IS is, int **out)
{
  const PetscInt *index;
  PetscErrorCode  ierr;

  PetscFunctionBegin;
  PetscCall(GPUCSRMalloc(dev, sizeof(int) * (size_t)n, "an ordering", (void **)out));
  PetscCall(ISGetIndices(is, &index));
  ierr = GPUCSRUpload(dev, *out, GPUCSR_INT32, index, GPUCSR_PETSCINT, (size_t)n, PETSC_FALSE, dev->stream, NULL);
  PetscCall(ISRestoreIndices(is, &index));
  PetscFunctionReturn(ierr);
}

/* in[] of the device, or index[in[]] if there is an index, a permutation on the host */
static PetscErrorCode Index(GPUCSRDevice dev, int n, int *in, IS is, int **out)
{
  int           *d = NULL;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  *out = in;
  if (!is) PetscFunctionReturn(PETSC_SUCCESS);
  *out = NULL;
  ierr = SendIS(dev, n, is, &d);
  if (!ierr) ierr = GPUCSRMalloc(dev, sizeof(int) * (size_t)n, "an ordering", (void **)out);
  if (!ierr) ierr = (*GPUCSRTriangleOpsGet(dev)->compose)(dev, n, in, d, *out, dev->stream);
  PetscCall(FreeInts(dev, n, &d));
  PetscFunctionReturn(ierr);
}

/* Chooses the kernel of the solves: the user's choice, or the fastest by prediction */
static PetscErrorCode Choose(Mat_GPUCSRFactor *f, const GPUCSRTriangle T[2])
{
  const GPUCSRMachine *tuned = &GPUCSRMachineShared;
  double               t[GPUCSR_SOLVE_METHODS], host, inverses;
  int                  ranges[2], best = 0, largest = 0;

  PetscFunctionBegin;
  for (int k = 0; k < f->nblocks; k++) largest = PetscMax(largest, f->begin[k + 1] - f->begin[k]);
  inverses = f->nblocks && largest <= GPUCSR_INVERSE_ROWS ? GPUCSRInversesTime(f->dev, f->nblocks, f->begin) : PETSC_MAX_REAL; /* none are made where a block is large */
  for (int k = 0; k < 2; k++) ranges[k] = GPUCSRTriangleRanges(&T[k], f->dev);
  for (int m = 0; m < GPUCSR_SOLVE_METHODS; m++) {
    t[m] = GPUCSRTriangleTime(&T[0], f->dev, (GPUCSRSolveMethod)m, ranges[0]) + GPUCSRTriangleTime(&T[1], f->dev, (GPUCSRSolveMethod)m, ranges[1]);
    if (t[m] < t[best]) best = m;
  }
  host      = tuned->host_solve + tuned->host_solve_entry * (double)(T[0].nnz + T[1].nnz) + tuned->host_solve_row * T[0].n;
  f->chosen = f->method >= 0 ? f->method : best;
  if (f->method == GPUCSR_METHOD_INVERSES ? inverses < PETSC_MAX_REAL : f->method == GPUCSR_METHOD_AUTO && inverses < t[best]) {
    f->chosen = GPUCSR_METHOD_INVERSES;
    PetscCall(PetscSNPrintf(f->why, sizeof(f->why), "%s, of %d blocks", f->method == GPUCSR_METHOD_AUTO ? "predicted to be fastest" : "asked for", f->nblocks));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (f->method == GPUCSR_METHOD_AUTO && f->dev->ops->kernels && host < t[f->chosen] / tuned->host_solve_margin) f->chosen = GPUCSR_METHOD_HOST;
  PetscCall(PetscSNPrintf(f->why, sizeof(f->why), "%s, of %d and %d levels, %.0f rows each in the mean",
                          f->method >= 0                        ? "asked for"
                          : f->method == GPUCSR_METHOD_INVERSES ? "as inverses, which were asked for, are for several blocks of at most 64 rows: predicted to be fastest"
                                                                : "predicted to be fastest",
                          T[0].nlevels, T[1].nlevels, 2.0 * T[0].n / PetscMax(1, T[0].nlevels + T[1].nlevels)));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The inverses of the factor's blocks, and its orderings */
static PetscErrorCode Inverses(Mat_GPUCSRFactor *f)
{
  GPUCSRDevice dev = f->dev;

  PetscFunctionBegin;
  if (!f->inverses.n) {
    PetscCall(GPUCSRInversesCreate(dev, f->nblocks, f->begin, &f->inverses));
    if (!f->natural) {
      PetscCall(SendIS(dev, f->inverses.n, f->row, &f->from));
      PetscCall(SendIS(dev, f->inverses.n, f->col, &f->to));
    }
  }
  PetscCall((*GPUCSRTriangleOpsGet(dev)->invert)(dev, f->inverses.n, f->pair[0].M, f->symmetric, f->inverses, dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Builds the triangles of the factor or of its transpose; the lower one's levels may exist already */
static PetscErrorCode Triangles(Mat_GPUCSRFactor *f, int side)
{
  GPUCSRDevice      dev   = f->dev;
  GPUCSRFactorPair *p     = &f->pair[side];
  const int         n     = p->M.n;
  const IS          first = f->natural ? NULL : side ? f->col : f->row, last = f->natural ? NULL : side ? f->row : f->col;

  PetscFunctionBegin;
  if (!p->T[0].depth) PetscCall(GPUCSRTriangleLevels(dev, &p->M, PETSC_FALSE, &p->T[0], dev->stream));
  PetscCall(GPUCSRTriangleLevels(dev, &p->M, PETSC_TRUE, &p->T[1], dev->stream));
  if (!side) PetscCall(Choose(f, p->T)); /* one kernel for both */
  if (f->chosen == GPUCSR_METHOD_HOST) PetscFunctionReturn(PETSC_SUCCESS);
  if (f->chosen == GPUCSR_METHOD_INVERSES) {
    PetscCall(Inverses(f));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int k = 0; k < 2; k++) {
    p->T[k].near = (PetscBool)(f->chosen == GPUCSR_SOLVE_RANGES);
    PetscCall(GPUCSRTriangleOrder(dev, &p->M, p->T[k].near ? GPUCSRRangeRows(n, GPUCSRTriangleRanges(&p->T[k], dev)) : n, &p->T[k], dev->stream));
    PetscCall(GPUCSRTriangleSlices(dev, &p->M, &p->T[k], dev->stream));
  }
  PetscCall(Index(dev, n, p->T[0].order, first, &p->from[0]));
  PetscCall(Index(dev, n, p->T[1].order, last, &p->to));
  PetscCall(GPUCSRMalloc(dev, sizeof(int) * (size_t)n, "an ordering", (void **)&p->from[1]));
  PetscCall((*GPUCSRTriangleOpsGet(dev)->compose)(dev, n, p->T[1].order, p->T[0].place, p->from[1], dev->stream));
  p->built = p->fresh = PETSC_TRUE; /* building the slices filled in the values */
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Brings the triangles of A up to date with the factor on the device */
PetscErrorCode MatGPUCSRFactorBuild_Private(Mat_GPUCSRFactor *f)
{
  GPUCSRDevice             dev = f->dev;
  const GPUCSRTriangleOps *ops = GPUCSRTriangleOpsGet(dev);
  GPUCSRFactorPair        *p   = &f->pair[0];

  PetscFunctionBegin;
  PetscCall(Turn(f, dev->stream));
  f->pair[1].fresh = PETSC_FALSE;
  if (f->inverses.n) PetscCall(Inverses(f));
  else if (p->built)
    for (int k = 0; k < 2; k++) PetscCall((*ops->fill)(dev, p->T[k].nslices, p->M, p->T[k], PETSC_FALSE, dev->stream));
  else PetscCall(Triangles(f, 0));
  if (!f->trouble) {
    PetscCall(dev->ops->hostmalloc(dev->id, sizeof(int), &f->trouble));
    *(volatile int *)f->trouble = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies the factor's values from the host */
PetscErrorCode MatGPUCSRFactorValues_Private(Mat_GPUCSRFactor *f, const double *a, const double *dinv)
{
  GPUCSRDevice     dev = f->dev;
  GPUCSRFactorCSR *M   = &f->pair[0].M;

  PetscFunctionBegin;
  PetscCall(Turn(f, dev->stream));
  PetscCall(GPUCSRUpload(dev, M->a, GPUCSR_DOUBLE, a, GPUCSR_DOUBLE, (size_t)M->nnz, PETSC_FALSE, dev->stream, NULL));
  PetscCall(GPUCSRUpload(dev, M->dinv, GPUCSR_DOUBLE, dinv, GPUCSR_DOUBLE, (size_t)M->n, PETSC_FALSE, dev->stream, NULL));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ILU or ICC of the values in the pattern of the factor. done: all pivots are good; else row has the first that is not */
PetscErrorCode MatGPUCSRFactorEliminate_Private(Mat_GPUCSRFactor *f, GPUCSRPivotRule rule, double tolerance, PetscBool *done, int *row)
{
  GPUCSRDevice             dev = f->dev;
  const GPUCSRTriangleOps *ops = GPUCSRTriangleOpsGet(dev);
  GPUCSRFactorPair        *p   = &f->pair[0];
  GPUCSRPivots             pivots;

  PetscFunctionBegin;
  if (!p->schedule) {
    GPUCSRTriangle apart = {0}, *T = p->built ? &apart : &p->T[0];
    PetscErrorCode ierr = PETSC_SUCCESS;

    /* All rows in the order of levels. A triangle not yet built reuses the levels; a triangle built from PETSc's values stays */
    if (!T->depth) ierr = GPUCSRTriangleLevels(dev, &p->M, PETSC_FALSE, T, dev->stream);
    if (!ierr) ierr = GPUCSRTriangleOrder(dev, &p->M, p->M.n, T, dev->stream);
    if (!ierr) ierr = GPUCSRMalloc(dev, sizeof(int) * (size_t)p->M.n, "the order of levels", (void **)&p->schedule);
    if (!ierr) ierr = dev->ops->copy(dev->id, p->schedule, T->order, sizeof(int) * (size_t)p->M.n, GPUCSR_ON_DEVICE, dev->stream);
    PetscCall(GPUCSRTriangleDestroy(dev, &apart));
    PetscCall(ierr);
  }
  PetscCall((*ops->factor)(dev, &p->M, f->symmetric, p->schedule, rule, tolerance, &pivots, dev->stream));
  *row  = pivots.row;
  *done = (PetscBool)(pivots.row == p->M.n && !pivots.unsymmetric && (!f->symmetric || (p->T[0].nnz == p->M.nnz - p->M.n - p->T[0].nnz)));
  if (*done && f->symmetric) PetscCall((*ops->mirror)(dev, p->M.n, p->M, dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ILU or ICC of A on the device. done: all pivots are good; if not, PETSc must report an error or shift */
PetscErrorCode MatGPUCSRFactorNumeric_Private(Mat_GPUCSRFactor *f, Mat A, const MatFactorInfo *info, PetscBool *done)
{
  GPUCSRDevice     dev     = f->dev;
  GPUCSRFactorCSR *M       = &f->pair[0].M;
  const int        n       = (int)A->rmap->n;
  GPUCSRPivotRule  rule    = GPUCSR_PIVOT_ABSOLUTE;
  IS               inverse = NULL;
  int             *order = NULL, *column = NULL, row;
  GPUCSRStorage   *csr;
  const PetscInt  *i;
  PetscScalar     *a;
  PetscErrorCode   ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (info->shifttype == (PetscReal)MAT_SHIFT_NONZERO) rule = GPUCSR_PIVOT_ROW;
  if (info->shifttype == (PetscReal)MAT_SHIFT_POSITIVE_DEFINITE) rule = GPUCSR_PIVOT_POSITIVE;
  PetscCall(Turn(f, dev->stream));
  if (f->own) {
    PetscCall(MatGPUCSRFetch_Private(A));
    PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, &a, NULL));
    PetscCall(GPUCSRUpload(dev, M->a, GPUCSR_DOUBLE, a, GPUCSR_DOUBLE, (size_t)i[n], PETSC_FALSE, dev->stream, NULL));
  } else { /* the values of A into the pattern of the factor */
    PetscCall(MatGPUCSRMirror_Private(A, dev, PETSC_TRUE, &csr));
    if (!f->natural) {
      PetscCall(ISInvertPermutation(f->col, PETSC_DECIDE, &inverse));
      ierr = SendIS(dev, n, f->row, &order);
      if (!ierr) ierr = SendIS(dev, n, inverse, &column);
      PetscCall(ISDestroy(&inverse));
    }
    if (!ierr) ierr = dev->ops->zero(dev->id, M->a, sizeof(double) * (size_t)M->nnz, dev->stream);
    if (!ierr) ierr = (*GPUCSRTriangleOpsGet(dev)->scatter)(dev, n, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, (const double *)csr->array[CSR_VAL].data, order, column, *M, dev->stream);
    PetscCall(FreeInts(dev, n, &order));
    PetscCall(FreeInts(dev, n, &column));
    PetscCall(ierr);
  }
  PetscCall(MatGPUCSRFactorEliminate_Private(f, rule, (double)info->zeropivot, done, &row));
  if (!*done) PetscCall(PetscInfo(A, "Row %d has a pivot that PETSc must judge, or the pattern is not symmetric: its factorization is taken\n", row));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Transpose(Mat_GPUCSRFactor *f)
{
  GPUCSRDevice               dev = f->dev;
  const GPUCSRDeviceHelpers *h   = GPUCSRHelpers(dev);
  GPUCSRFactorPair          *p = &f->pair[0], *q = &f->pair[1];
  const size_t               n = (size_t)p->M.n, nnz = (size_t)p->M.nnz;

  PetscFunctionBegin;
  if (!q->map) {
    int bad;

    PetscCall(GPUCSRFactorCSRCreate(dev, p->M.n, p->M.nnz, &q->M));
    PetscCall(GPUCSRMalloc(dev, sizeof(int) * nnz, "the transpose of a factor", (void **)&q->map));
    PetscCall((*h->transpose)(p->M.csr, q->M.csr, q->map, dev->stream));
    PetscCall(GPUCSRFactorCSRInspect(dev, &q->M, &bad));
  }
  PetscCall((*h->gather)(dev, (int)nnz, GPUCSR_DOUBLE, q->map, p->M.a, q->M.a, dev->stream));
  PetscCall(dev->ops->copy(dev->id, q->M.dinv, p->M.dinv, sizeof(double) * n, GPUCSR_ON_DEVICE, dev->stream));
  if (q->built)
    for (int k = 0; k < 2; k++) PetscCall((*GPUCSRTriangleOpsGet(dev)->fill)(dev, q->T[k].nslices, q->M, q->T[k], PETSC_FALSE, dev->stream));
  else PetscCall(Triangles(f, 1));
  q->fresh = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x = the solution for b, both on the device */
static PetscErrorCode LaunchSolve(Mat_GPUCSRFactor *f, PetscBool transposed, const double *b, double *x, GPUCSRStream s)
{
  const GPUCSRTriangleOps    *ops   = GPUCSRTriangleOpsGet(f->dev);
  const GPUCSROverlapScatter *e     = f->scatter.n ? &f->scatter : NULL;
  double                     *out   = x;
  const PetscBool             other = (PetscBool)(transposed && !f->symmetric);
  GPUCSRFactorPair           *p     = &f->pair[other];
  const GPUCSRSweep           w[2]  = {
               {&p->T[0], other ? GPUCSR_SCALE_ROW : GPUCSR_UNIT, p->from[0], NULL },
               {&p->T[1],
                f->symmetric ? GPUCSR_SCALE_RIGHT
                : other      ? GPUCSR_UNIT
                             : GPUCSR_SCALE_ROW,
                p->from[1],                                                   p->to}
  };

  PetscFunctionBegin;
  if (e) {
    PetscCall((*GPUCSRHelpers(f->dev)->gather)(f->dev, (int)e->m, GPUCSR_DOUBLE, e->from, b, e->b, s));
    b = e->b;
    x = e->x;
  }
  for (int k = 0; k < 2 && f->recorded && !f->inverses.n; k++) PetscCall((*ops->reset)(w[k].T, w[k].T->turn, s)); /* a graph may have run since the last solve */
  if (f->inverses.n) PetscCall((*ops->multiply)(f->dev, f->inverses.n, f->inverses, f->from, f->to, b, x, s));
  else PetscCall((*ops->solve)(f->dev, (GPUCSRSolveMethod)f->chosen, w, b, x, (volatile int *)f->trouble, s));
  if (e) PetscCall((*ops->collect)(f->dev, e->n, e->ptr, e->index, e->x, out, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Have all solves so far received their awaited results? Call it when the device has finished them */
PetscErrorCode GPUCSRFactorCheck(const Mat_GPUCSRFactor *f)
{
  PetscFunctionBegin;
  PetscCheck(!f->trouble || !*(volatile int *)f->trouble, PETSC_COMM_SELF, PETSC_ERR_GPU, "A triangular solve of %d rows waited too long for results of other rows", f->pair[0].M.n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Apply(Mat F, Mat_GPUCSRFactor *f, PetscBool transposed, const GPUCSROperand *b, const GPUCSROperand *x, GPUCSRStream s)
{
  GPUCSRDevice    dev     = f->dev;
  const PetscBool inplace = (PetscBool)!dev->ops->separate;
  const size_t    n       = (size_t)(f->scatter.n ? f->scatter.n : F->rmap->n);
  void           *bd = b->p, *xd = x->p;

  PetscFunctionBegin;
  PetscCall(Turn(f, s));
  PetscCall(dev->ops->activate(dev->id));
  if (transposed && !f->symmetric && !f->pair[1].fresh) {
    PetscCall(Transpose(f));
    if (s != dev->stream) PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream));
  }
  if (b->place == GPUCSR_HOST && !inplace) {
    PetscCall(MatGPUCSRBuffer_Private(dev, &f->b, sizeof(double) * n, &bd));
    PetscCall(GPUCSRUpload(dev, bd, GPUCSR_DOUBLE, b->p, GPUCSR_DOUBLE, n, b->pinned, s, NULL));
  }
  if (x->place == GPUCSR_HOST && !inplace) PetscCall(MatGPUCSRBuffer_Private(dev, &f->x, sizeof(double) * n, &xd));
  PetscCall(LaunchSolve(f, transposed, (const double *)bd, (double *)xd, s));
  if (xd != x->p) {
    PetscCall(GPUCSRDownload(dev, x->p, GPUCSR_DOUBLE, xd, GPUCSR_DOUBLE, n, x->pinned, s));
    PetscCall(dev->ops->streamsynchronize(dev->id, s));
  }
  PetscCall(GPUCSRFactorCheck(f));
  PetscCall(PetscLogFlops(2.0 * (double)f->pair[0].M.nnz - (double)F->rmap->n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A, or its diagonal block; NULL: of another type */
PetscErrorCode MatGPUCSRFactorBlock_Private(Mat A, Mat *block)
{
  PetscFunctionBegin;
  *block = NULL;
  if (!GPUCSRIsType(A, MATSEQAIJGPUCSR) && !GPUCSRIsType(A, MATMPIAIJGPUCSR)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGetDiagonalBlock(A, block));
  if (!GPUCSRIsType(*block, MATSEQAIJGPUCSR)) *block = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* From begin to end, right-hand sides for a factor of A or of its diagonal block are columns of the identity, made and read on the host: a small factor that PETSc has made there solves there */
PetscErrorCode MatGPUCSRFactorProbed_Private(Mat A, PetscBool begins)
{
  Mat block;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFactorBlock_Private(A, &block));
  if (block) ((Mat_SeqGPUCSR *)block->spptr)->probed = begins;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRFactorSolve_Private(Mat F, Mat_GPUCSRFactor *f, PetscBool transposed, Vec b, Vec x)
{
  GPUCSRVectors  v = {.x = b, .z = x};
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!transposed && f->numeric && f->pair[0].M.nnz <= GPUCSRMachineShared.probed_entries && GPUCSRIsType(f->A, MATSEQAIJGPUCSR) && ((Mat_SeqGPUCSR *)f->A->spptr)->probed) {
    PetscCall((*f->petsc.solve)(F, b, x));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  ierr = MatGPUCSRVectorsGet_Private(f->dev, &v);
  if (!ierr) ierr = Apply(F, f, transposed, &v.ox, &v.oz, v.stream);
  PetscCall(MatGPUCSRVectorsRestore_Private(f->dev, &v));
  PetscFunctionReturn(ierr);
}

/* ---- for solvers with device arrays, and for graphs ---- */

/* The device of solves with F; NULL: PETSc solves, or F is another type's factor */
PetscErrorCode MatGPUCSRFactorDevice_Private(Mat F, GPUCSRDevice *dev)
{
  Mat_GPUCSRFactor *f;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFactorFind_Private(F, &f));
  *dev = f && f->ondevice ? f->dev : NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x = the solution for b; both may be local parts of parallel vectors. Not done: the factor is no longer on the device */
PetscErrorCode MatGPUCSRFactorSolveVecs_Private(Mat F, Vec b, Vec x, PetscBool *done)
{
  Mat_GPUCSRFactor *f;
  GPUCSRAttempt     attempt;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFactorGet_Private(F, &f));
  *done = f->ondevice;
  if (!*done) PetscFunctionReturn(PETSC_SUCCESS);
  GPUCSRTry(&attempt, MatGPUCSRFactorSolve_Private(F, f, PETSC_FALSE, b, x));
  PetscCall(MatGPUCSRFactorMet_Private(F, f, &attempt));
  *done = (PetscBool)!attempt.error;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x = the solution for b, in stream order; may be recorded in a graph after the first run */
PetscErrorCode GPUCSRFactorSolve(Mat_GPUCSRFactor *f, PetscBool transposed, const double *b, double *x)
{
  GPUCSRFactorPair *p = &f->pair[transposed && !f->symmetric];

  PetscFunctionBegin;
  PetscCheck(f->ondevice, PETSC_COMM_SELF, PETSC_ERR_GPU, "A factor has left the device");
  PetscCall(Turn(f, f->dev->stream));
  f->recorded = PETSC_TRUE;
  if (p != &f->pair[0] && !p->fresh) PetscCall(Transpose(f));
  for (int k = 0; k < 2; k++) p->T[k].turn = 0;
  PetscCall(LaunchSolve(f, transposed, b, x, f->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRFactorSolveArrays_Private(Mat F, const double *b, double *x)
{
  Mat_GPUCSRFactor *f;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFactorGet_Private(F, &f));
  PetscCall(GPUCSRFactorSolve(f, PETSC_FALSE, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRFactorCheck_Private(Mat F)
{
  Mat_GPUCSRFactor *f;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFactorGet_Private(F, &f));
  PetscCall(GPUCSRFactorCheck(f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRFactorDescribe_Private(Mat F, PetscViewer viewer)
{
  Mat_GPUCSRFactor     *f;
  const GPUCSRTriangle *T;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFactorGet_Private(F, &f));
  T = f->pair[0].T;
  if (f->later) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "factored, and solved with, together with the other blocks\n"));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!f->ondevice) {
    PetscCall(PetscViewerASCIIPrintf(viewer, "solves: PETSc's%s%s\n", f->whynot[0] ? ", because " : "", f->whynot));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(PetscViewerASCIIPrintf(viewer, "values: %s%s%s\n", f->numeric ? "factored by PETSc on the host" : "factored on the device", f->direct[0] ? ", not by cuDSS, because " : "", f->direct));
  PetscCall(PetscViewerASCIIPrintf(viewer, "solves: %s, kernel %s, %s\n", f->dev->ops->name, MatGPUCSRFactorKernel(f), f->why));
  if (f->inverses.n) PetscCall(PetscViewerASCIIPrintf(viewer, "inverses: %d rows, blocks of at most %d, %.0f bytes\n", f->inverses.n, f->inverses.largest, 8.0 * (double)f->inverses.stored));
  else PetscCall(PetscViewerASCIIPrintf(viewer, "triangles: %d rows, %g and %g nonzeros, %.0f bytes\n", T[0].n, (double)T[0].nnz, (double)T[1].nnz, GPUCSRTriangleBytes(&T[0]) + GPUCSRTriangleBytes(&T[1])));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- ILU(0) of a matrix that is only on the device, without a Mat. The host sees flags alone */

static PetscErrorCode Make(Mat_GPUCSRFactor *f, const GPUCSRStorage *A, int longest, PetscBool *good)
{
  GPUCSRDevice dev = f->dev;
  int          row;

  PetscFunctionBegin;
  *good = PETSC_TRUE;
  if (!f->pair[0].M.i) {
    GPUCSRFactorCSR *M = &f->pair[0].M;
    int              bad;

    PetscCheck(A->m < 1 << 28, PETSC_COMM_SELF, PETSC_ERR_SUP, "A factor of %d rows is too large for the device", A->m);
    PetscCall(GPUCSRFactorCSRCreate(dev, A->m, A->nnz, M));
    M->longest = longest;
    PetscCall(dev->ops->copy(dev->id, M->i, A->array[CSR_ROWPTR].data, sizeof(int) * ((size_t)A->m + 1), GPUCSR_ON_DEVICE, dev->stream));
    PetscCall(dev->ops->copy(dev->id, M->j, A->array[CSR_COL].data, sizeof(int) * (size_t)A->nnz, GPUCSR_ON_DEVICE, dev->stream));
    PetscCall(GPUCSRFactorCSRInspect(dev, M, &bad));
    *good = (PetscBool)!bad;
  }
  if (!*good) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(dev->ops->copy(dev->id, f->pair[0].M.a, A->array[CSR_VAL].data, sizeof(double) * (size_t)A->nnz, GPUCSR_ON_DEVICE, dev->stream));
  PetscCall(MatGPUCSRFactorEliminate_Private(f, GPUCSR_PIVOT_ROW, 100 * PETSC_MACHINE_EPSILON, good, &row));
  if (*good) PetscCall(MatGPUCSRFactorBuild_Private(f));
  else PetscCall(PetscInfo(NULL, "Row %d has a zero pivot\n", row));
  f->ondevice = *good;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ILU(0) of A, whose rows have at most `longest` entries. An existing factor has the pattern of A and gets new values. Not good: a row has no pivot or no diagonal entry. Then, and after an error, no factor remains. */
PetscErrorCode GPUCSRFactorMake(const GPUCSRStorage *A, int longest, Mat_GPUCSRFactor **f, PetscBool *good)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (!*f) PetscCall(PetscNew(f));
  (*f)->dev     = A->dev;
  (*f)->type    = MAT_FACTOR_ILU;
  (*f)->natural = PETSC_TRUE;
  (*f)->method  = GPUCSR_METHOD_DEVICE;
  ierr          = Make(*f, A, longest, good);
  if (ierr || !*good) PetscCall(GPUCSRFactorDestroy(f));
  PetscFunctionReturn(ierr);
}

PetscErrorCode GPUCSRFactorDestroy(Mat_GPUCSRFactor **f)
{
  PetscFunctionBegin;
  if (*f) PetscCall(MatGPUCSRFactorEmpty_Private(*f));
  PetscCall(PetscFree(*f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

double GPUCSRFactorEntries(const Mat_GPUCSRFactor *f)
{
  return (double)f->pair[0].M.nnz;
}

/* Of device memory */
double GPUCSRFactorBytes(const Mat_GPUCSRFactor *f)
{
  double bytes = 0;

  for (int k = 0; k < 2; k++) bytes += 12.0 * (double)f->pair[k].M.nnz + 16.0 * f->pair[k].M.n + GPUCSRTriangleBytes(&f->pair[k].T[0]) + GPUCSRTriangleBytes(&f->pair[k].T[1]);
  return bytes;
}

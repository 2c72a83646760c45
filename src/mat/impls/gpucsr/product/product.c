/*
  One product, z = A x or z = A x + y. Vectors on the device are used in place; host vectors are copied, in pieces that overlap the computation where
  overlap pays.
*/
#include "../type/gpucsrimpl.h"
#include "../blackbox/spgemm/spgemm.h"

/* A buffer for a vector of a product or a solve. Copies on other streams use it, so both its end and its beginning wait */
PetscErrorCode MatGPUCSRBuffer_Private(GPUCSRDevice dev, GPUCSRBuffer *b, size_t bytes, void **p)
{
  PetscFunctionBegin;
  if (b->bytes < bytes || !b->p) {
    PetscCall(GPUCSRDeviceSynchronize(dev));
    PetscCall(GPUCSRBufferGrow(dev, bytes, "a vector", b));
    PetscCall(dev->ops->streamsynchronize(dev->id, dev->stream));
  }
  *p = b->p;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Read timers until at most keep are pending */
PetscErrorCode MatGPUCSRTimersRead_Private(Mat_SeqGPUCSR *g, int keep)
{
  GPUCSRTimers *t = &g->timers;

  PetscFunctionBegin;
  while (t->pending > keep) {
    double s;

    PetscCall(g->dev->ops->eventelapsed(g->dev->id, t->begin[t->first], t->end[t->first], &s));
    *t->sum[t->first] += s;
    t->first = (t->first + 1) % GPUCSR_TIMERS;
    t->pending--;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Times the work of stream s until MatGPUCSRTimerEnd_Private(), into *sum, if a report was asked for */
PetscErrorCode MatGPUCSRTimerBegin_Private(Mat_SeqGPUCSR *g, double *sum, GPUCSRStream s)
{
  const GPUCSRBackendOps *ops = g->dev->ops;
  GPUCSRTimers           *t   = &g->timers;
  int                     k;

  PetscFunctionBegin;
  if (!GPUCSRSettingsGlobal.report) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRTimersRead_Private(g, GPUCSR_TIMERS - 1));
  k = (t->first + t->pending) % GPUCSR_TIMERS;
  if (!t->begin[k]) {
    PetscCall(ops->eventcreate(g->dev->id, PETSC_TRUE, &t->begin[k]));
    PetscCall(ops->eventcreate(g->dev->id, PETSC_TRUE, &t->end[k]));
  }
  t->sum[k] = sum;
  PetscCall(ops->eventrecord(g->dev->id, t->begin[k], s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRTimerEnd_Private(Mat_SeqGPUCSR *g, GPUCSRStream s)
{
  GPUCSRTimers *t = &g->timers;

  PetscFunctionBegin;
  if (!GPUCSRSettingsGlobal.report) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(g->dev->ops->eventrecord(g->dev->id, t->end[(t->first + t->pending) % GPUCSR_TIMERS], s));
  t->pending++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Product(Mat_SeqGPUCSR *g, GPUCSRSide side, const GPUCSRProduct *p, GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRTimerBegin_Private(g, side == GPUCSR_FORWARD ? &g->info.product_time : &g->info.transpose_product_time, s));
  PetscCall(GPUCSRPlanProduct(&g->plan[side], p, s));
  PetscCall(MatGPUCSRTimerEnd_Private(g, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies n entries, from first on, of k columns of the host, which are ld apart, to the contiguous columns of the device (up), or back, in the plan's vector type */
PetscErrorCode MatGPUCSRCross_Private(Mat_SeqGPUCSR *g, PetscBool up, void *there, const GPUCSROperand *x, size_t first, size_t n, int k, size_t ld, GPUCSRStream s)
{
  const GPUCSRType type = GPUCSRVectorType(g->precision);
  const size_t     size = GPUCSRTypeSize(type), run = ld == n ? n * (size_t)k : n;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRTimerBegin_Private(g, up ? &g->info.vector_upload_time : &g->info.download_time, s));
  for (size_t at = 0, c = 0; at < n * (size_t)k; at += run, c++) {
    char *const   column = (char *)there + size * (first + at);
    double *const host   = (double *)x->p + first + c * ld;

    if (up) PetscCall(GPUCSRUpload(g->dev, column, type, host, GPUCSR_DOUBLE, run, x->pinned, s, NULL));
    else PetscCall(GPUCSRDownload(g->dev, host, GPUCSR_DOUBLE, column, type, run, x->pinned, s));
  }
  PetscCall(MatGPUCSRTimerEnd_Private(g, s));
  *(up ? &g->info.uploaded : &g->info.downloaded) += (double)(size * n) * k;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Converts n numbers of a device vector to the precision of the products */
PetscErrorCode MatGPUCSRConvert_Private(Mat_SeqGPUCSR *g, size_t n, const void *x, GPUCSRType to, void *z, GPUCSRStream s)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRTimerBegin_Private(g, &g->info.vector_convert_time, s));
  PetscCall((*GPUCSRHelpers(g->dev)->convert)(g->dev, (int)n, x, to, z, s));
  PetscCall(MatGPUCSRTimerEnd_Private(g, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static inline int Cut(int64_t n, int k, int pieces)
{
  return (int)(n * k / pieces);
}

/* The last column needed by each piece of rows: a piece starts after the arrival of its columns */
static PetscErrorCode LastColumns(Mat A, Mat_SeqGPUCSR *g, int pieces)
{
  const PetscInt *i, *j;
  const int       threads = g->dev->threads;
  int             seen    = 0;

  PetscFunctionBegin;
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, NULL, NULL));
  for (int k = 0; k < pieces; k++) {
    const int first = Cut(A->rmap->n, k, pieces), last = Cut(A->rmap->n, k + 1, pieces);

    /* of all entries: after MatLoad(), for one, a row's columns may be in any order */
#pragma omp parallel for num_threads(threads) reduction(max : seen)
    for (PetscInt e = i[first]; e < i[last]; e++) seen = seen > (int)j[e] + 1 ? seen : (int)j[e] + 1;
    g->lastcol[k] = seen;
  }
  g->lastcolset = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Large host vectors: while piece p of x is uploaded, rows with complete columns are computed, and results of earlier rows are downloaded. prod has device vectors; y, if any, is in its z already.
*/
static PetscErrorCode Pipeline(Mat A, GPUCSRSide side, const GPUCSROperand *x, GPUCSRProduct *prod, const GPUCSROperand *z, int pieces, GPUCSRStream s, PetscBool *wrote)
{
  Mat_SeqGPUCSR          *g       = (Mat_SeqGPUCSR *)A->spptr;
  const GPUCSRBackendOps *ops     = g->dev->ops;
  const GPUCSRStorage    *M       = &g->plan[side].A;
  const GPUCSRType        vt      = GPUCSRVectorType(g->precision);
  const PetscBool         bypiece = (PetscBool)(!g->dev->ops->kernels || g->plan[side].choice.kernel->family->piecewise), direct = (PetscBool)(z->pinned && vt == GPUCSR_DOUBLE);
  int                     q = 0;

  PetscFunctionBegin;
  if (!g->events) {
    for (int k = 0; k < GPUCSR_PIECES; k++) {
      PetscCall(ops->eventcreate(g->dev->id, PETSC_FALSE, &g->sent[k]));
      PetscCall(ops->eventcreate(g->dev->id, PETSC_FALSE, &g->computed[k]));
    }
    g->events = PETSC_TRUE;
  }
  if (side == GPUCSR_FORWARD && !g->lastcolset) PetscCall(LastColumns(A, g, pieces));
  for (int p = 0; p < pieces; p++) {
    const int from = Cut(M->n, p, pieces), to = Cut(M->n, p + 1, pieces);

    if (!p) { /* an earlier product, not yet downloaded, may read prod->x */
      PetscCall(ops->eventrecord(g->dev->id, g->computed[0], s));
      PetscCall(ops->streamwait(g->dev->id, g->dev->up, g->computed[0]));
    }
    PetscCall(MatGPUCSRCross_Private(g, PETSC_TRUE, (void *)prod->x, x, (size_t)from, (size_t)(to - from), 1, 0, g->dev->up));
    if (!bypiece && p < pieces - 1) continue;
    PetscCall(ops->eventrecord(g->dev->id, g->sent[p], g->dev->up));
    PetscCall(ops->streamwait(g->dev->id, s, g->sent[p]));
    for (; q < pieces; q++) {
      const int need = side == GPUCSR_FORWARD && bypiece ? g->lastcol[q] : M->n;

      if (need > to) break;
      prod->first = bypiece ? Cut(M->m, q, pieces) : 0;
      prod->last  = bypiece ? Cut(M->m, q + 1, pieces) : M->m;
      PetscCall(Product(g, side, prod, s));
      PetscCall(ops->eventrecord(g->dev->id, g->computed[q], s));
      if (!bypiece) {
        q = pieces;
        break;
      }
      if (direct) {
        *wrote = PETSC_TRUE;
        PetscCall(ops->streamwait(g->dev->id, g->dev->down, g->computed[q]));
        PetscCall(MatGPUCSRCross_Private(g, PETSC_FALSE, prod->z, z, (size_t)prod->first, (size_t)(prod->last - prod->first), 1, 0, g->dev->down));
      }
    }
  }
  if (!direct || !bypiece) {
    *wrote = PETSC_TRUE;
    for (int k = 0; k < (bypiece ? pieces : 1); k++) {
      const int first = bypiece ? Cut(M->m, k, pieces) : 0, last = bypiece ? Cut(M->m, k + 1, pieces) : M->m;

      PetscCall(ops->streamwait(g->dev->id, g->dev->down, g->computed[k]));
      PetscCall(MatGPUCSRCross_Private(g, PETSC_FALSE, prod->z, z, (size_t)first, (size_t)(last - first), 1, 0, g->dev->down));
    }
  }
  PetscCall(ops->streamsynchronize(g->dev->id, g->dev->down));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  z = A x + y on the device of a prepared matrix; y may be NULL, and may be z. In the order of stream s, and complete on return if z is on the host; a
  host x or y may be changed on return. wrote becomes true before the first byte of z is written.
*/
PetscErrorCode MatGPUCSRApply_Private(Mat A, GPUCSRSide side, const GPUCSROperand *x, const GPUCSROperand *y, const GPUCSROperand *z, GPUCSRStream s, PetscBool *wrote)
{
  Mat_SeqGPUCSR       *g    = (Mat_SeqGPUCSR *)A->spptr;
  GPUCSRDevice         dev  = g->dev;
  const GPUCSRStorage *M    = &g->plan[side].A;
  const GPUCSRType     vt   = GPUCSRVectorType(g->precision);
  const size_t         size = GPUCSRTypeSize(vt), nx = (size_t)M->n, nz = (size_t)M->m;
  /* a device that uses host memory takes host vectors in place if their precision fits */
  const PetscBool inplace = (PetscBool)(!dev->ops->separate && vt == GPUCSR_DOUBLE);
  const PetscBool xhost = (PetscBool)(x->place == GPUCSR_HOST && !inplace), zhost = (PetscBool)(z->place == GPUCSR_HOST && !inplace);
  GPUCSRProduct   prod = {.alpha = 1, .beta = y ? 1 : 0, .x = x->p, .z = z->p, .last = M->m};
  void           *xd = x->p, *zd = z->p;

  PetscFunctionBegin;
  *wrote = PETSC_FALSE;
  /* all products of this matrix share buffers and a kernel's work: one stream at a time */
  if (s != g->last && g->last) PetscCall(GPUCSRDeviceSynchronize(dev));
  g->last = s;
  if (s != dev->stream) g->foreign = PETSC_TRUE;
  PetscCall(dev->ops->activate(dev->id));
  PetscCall(GPUCSRLogBegin(&MAT_GPUCSR_Product, dev, A));
  if (xhost || (x->place == GPUCSR_DEVICE && vt != GPUCSR_DOUBLE)) PetscCall(MatGPUCSRBuffer_Private(g->dev, &g->x, nx * size, &xd));
  if (zhost || (z->place == GPUCSR_DEVICE && vt != GPUCSR_DOUBLE)) PetscCall(MatGPUCSRBuffer_Private(g->dev, &g->z, nz * size, &zd));
  prod.x = xd;
  prod.z = zd;
  if (y) {
    prod.y = zd;
    if (y->place == GPUCSR_HOST && !inplace) PetscCall(MatGPUCSRCross_Private(g, PETSC_TRUE, zd, y, 0, (size_t)M->m, 1, 0, s));
    else if (y->place == GPUCSR_DEVICE && vt != GPUCSR_DOUBLE) PetscCall(MatGPUCSRConvert_Private(g, nz, y->p, vt, zd, s));
    else prod.y = y->p;
  }
  if (xhost && zhost && dev->ops->separate && (double)(size * (nx + nz)) >= 4 * GPUCSRMachineShared.piece_size && nz >= GPUCSR_PIECES) {
    PetscCall(Pipeline(A, side, x, &prod, z, (int)PetscMin(GPUCSR_PIECES, (double)(size * (nx + nz)) / GPUCSRMachineShared.piece_size), s, wrote));
  } else {
    const PetscBool lent = (PetscBool)(z->place == GPUCSR_DEVICE && vt == GPUCSR_DOUBLE && ((xhost && x->pinned) || (y && y->place == GPUCSR_HOST && y->pinned)));

    if (xhost) PetscCall(MatGPUCSRCross_Private(g, PETSC_TRUE, xd, x, 0, (size_t)M->n, 1, 0, s));
    else if (xd != x->p) PetscCall(MatGPUCSRConvert_Private(g, nx, x->p, vt, xd, s));
    if (lent) {
      /* the device reads a page-locked vector by itself, in stream order: the end waits until these copies are done */
      if (!g->read) PetscCall(g->dev->ops->eventcreate(g->dev->id, PETSC_FALSE, &g->read));
      PetscCall(g->dev->ops->eventrecord(g->dev->id, g->read, s));
    }
    if (zd == z->p) *wrote = PETSC_TRUE;
    PetscCall(Product(g, side, &prod, s));
    if (zhost) {
      /* a failure of the product must appear before z is written */
      if (y && y->p == z->p) PetscCall(dev->ops->streamsynchronize(dev->id, s));
      *wrote = PETSC_TRUE;
      PetscCall(MatGPUCSRCross_Private(g, PETSC_FALSE, zd, z, 0, (size_t)M->m, 1, 0, s));
      PetscCall(dev->ops->streamsynchronize(dev->id, s));
    } else if (zd != z->p) PetscCall(MatGPUCSRConvert_Private(g, nz, zd, GPUCSR_DOUBLE, z->p, s));
    if (lent) PetscCall(dev->ops->eventsynchronize(dev->id, g->read));
  }
  if (side == GPUCSR_FORWARD) g->info.products++;
  else g->info.transpose_products++;
  PetscCall(PetscLogFlops(2.0 * (double)M->nnz));
  PetscCall(GPUCSRLogEnd(&MAT_GPUCSR_Product, dev, A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a matrix for solvers (operator.h): prepared once, then used through its plan until the solve ends */

/* Is a failure of the device an error? */
PetscBool MatGPUCSROperatorRequired_Private(Mat A)
{
  return (PetscBool)(MatGPUCSRBackendOf(A) == MAT_GPUCSR_BACKEND_CUDA);
}

/* Prepares A, a MATSEQAIJGPUCSR, for products, or for products with its transpose; if it is on no device, why has the reason */
PetscErrorCode MatGPUCSROperatorGet_Private(Mat A, PetscBool transposed, GPUCSROperator *o, char why[], size_t len)
{
  const GPUCSRSide side = transposed ? GPUCSR_TRANSPOSE : GPUCSR_FORWARD;
  Mat_SeqGPUCSR   *g    = (Mat_SeqGPUCSR *)A->spptr;
  PetscBool        ready;

  PetscFunctionBegin;
  *o = (GPUCSROperator){.A = A, .plan = &g->plan[side], .request = &g->base.config.request, .required = MatGPUCSROperatorRequired_Private(A)};
  PetscCall(MatGPUCSRReady_Private(A, side, &ready));
  if (ready) {
    o->dev     = g->dev;
    o->version = g->version;
  } else PetscCall(PetscStrncpy(why, g->whynot, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* B, a MATAIJ copy of A, converted to the type and options of like */
PetscErrorCode MatGPUCSRLike_Private(Mat like, Mat A, Mat *B)
{
  const Mat_GPUCSR *g = (const Mat_GPUCSR *)like->spptr;

  PetscFunctionBegin;
  PetscCall(MatConvert(A, g->kind->parent, MAT_INITIAL_MATRIX, B));
  PetscCall(MatConvert(*B, g->kind->name, MAT_INPLACE_MATRIX, B));
  PetscCall(MatGPUCSRConfigure_Private(*B, &g->config));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Uploads the CSR, from which the plan is made afterwards: the matrix crosses the bus once */
PetscErrorCode MatGPUCSROperatorSend_Private(Mat A)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)A->spptr;
  GPUCSRStorage *csr;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRDecide_Private(A));
  if (g->dev && !g->dev->failed[0]) PetscCall(MatGPUCSRMirror_Private(A, g->dev, PETSC_TRUE, &csr));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host's CSR, for another format of the same matrix */
PetscErrorCode MatGPUCSROperatorSource_Private(const GPUCSROperator *o, GPUCSRSource *s)
{
  return MatGPUCSRSource_Private(o->A, s);
}

/* The operator in CSR on its device, double. A transpose is made in own, which the caller destroys; any other csr belongs to the matrix */
PetscErrorCode MatGPUCSROperatorCSR_Private(const GPUCSROperator *o, GPUCSRStorage *own, const GPUCSRStorage **csr)
{
  GPUCSRStorage *A;
  int32_t       *map;

  PetscFunctionBegin;
  if (!o->A) {
    *csr = o->csr;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGPUCSRMirror_Private(o->A, o->dev, PETSC_TRUE, &A));
  *csr = A;
  if (o->plan != &((Mat_SeqGPUCSR *)o->A->spptr)->plan[GPUCSR_TRANSPOSE]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRTransposeStorage(A, own, &map));
  PetscCall(GPUCSRFree(A->dev, sizeof(int32_t) * (size_t)A->nnz, (void **)&map));
  *csr = own;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve begins, on the device's own stream: all products of this matrix share a kernel's work arrays, so one stream at a time */
PetscErrorCode MatGPUCSROperatorBegin_Private(const GPUCSROperator *o)
{
  Mat_SeqGPUCSR *g = (Mat_SeqGPUCSR *)o->A->spptr;

  PetscFunctionBegin;
  PetscCall(o->dev->ops->activate(o->dev->id));
  if (g->last && g->last != o->dev->stream) PetscCall(GPUCSRDeviceSynchronize(o->dev));
  g->last = o->dev->stream;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OperatorProduct(const GPUCSROperator *o, GPUCSRProduct *p)
{
  Mat_SeqGPUCSR *g = o->A ? (Mat_SeqGPUCSR *)o->A->spptr : NULL;

  PetscFunctionBegin;
  p->last    = o->plan->A.m;
  p->doubles = (GPUCSRBool)!o->floats;
  PetscCall(GPUCSRPlanProduct(o->plan, p, o->dev->stream));
  if (!g) PetscFunctionReturn(PETSC_SUCCESS);
  if (o->plan != &g->plan[GPUCSR_TRANSPOSE]) {
    g->info.products++;
    g->info.solver_products++;
  } else {
    g->info.transpose_products++;
    g->info.solver_transpose_products++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = alpha A x + beta y between Begin and End, for device arrays; with the transpose if the operator is one */
PetscErrorCode MatGPUCSROperatorMultiply_Private(const GPUCSROperator *o, double alpha, const void *x, double beta, const void *y, void *z)
{
  GPUCSRProduct p = {.alpha = alpha, .beta = beta, .x = x, .y = y, .z = z};

  return OperatorProduct(o, &p);
}

/* A step from x with v = b - A x, the new x in z, if GPUCSRPlanSteps() allows it. sums: of z, or NULL */
PetscErrorCode MatGPUCSROperatorStep_Private(const GPUCSROperator *o, const void *b, const void *x, const GPUCSRStep *step, const GPUCSRSums *sums, void *z)
{
  GPUCSRProduct p = {.alpha = -1, .beta = 1, .x = x, .y = b, .z = z, .step = *step};

  PetscFunctionBegin;
  if (sums) p.sums = *sums;
  PetscCall(OperatorProduct(o, &p));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* z = A x and its sums, if GPUCSRPlanSums() allows it */
PetscErrorCode MatGPUCSROperatorSums_Private(const GPUCSROperator *o, const double *x, const GPUCSRSums *sums, double *z)
{
  GPUCSRProduct p = {.alpha = 1, .x = x, .z = z, .sums = *sums};

  return OperatorProduct(o, &p);
}

/* The solve has ended. products: made without MatGPUCSROperatorMultiply_Private() */
PetscErrorCode MatGPUCSROperatorEnd_Private(const GPUCSROperator *o, PetscInt products)
{
  MatGPUCSRInfo *info = &((Mat_SeqGPUCSR *)o->A->spptr)->info;

  PetscFunctionBegin;
  info->products += products;
  info->solver_products += products;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The host's array if the matrix has left the device during the solve: a product failed, or a preconditioner replaced it by a factor */
PetscErrorCode MatGPUCSROperatorVecGet_Private(const GPUCSROperator *o, Vec v, PetscBool read, PetscBool write, GPUCSROperand *a)
{
  const Mat_SeqGPUCSR *g = o->A ? (const Mat_SeqGPUCSR *)o->A->spptr : NULL;

  return MatGPUCSRVecGet_Private(!o->A || (g && g->dev == o->dev) ? o->dev : NULL, v, read, write, a);
}

PetscErrorCode MatGPUCSROperatorVecRestore_Private(const GPUCSROperator *o, Vec v, PetscBool read, PetscBool write, GPUCSROperand *a)
{
  return MatGPUCSRVecRestore_Private(o->dev, v, read, write, a);
}

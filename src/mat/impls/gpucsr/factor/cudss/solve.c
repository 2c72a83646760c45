/*
  Solves with a factor of cuDSS. Each solution is checked on the device by one product and refined where its backward error is larger than rounding explains. A solution whose error stays above
  -mat_gpucsr_cudss_error is Inf, so that no program goes on with it, and PCLU and PCCHOLESKY report it. A Krylov method that looks at b - A x itself needs no check.
*/
#include "cudss.h"
#include <string.h>

/* Backward error up to which refinement would gain nothing */
#define ROUNDING (64 * PETSC_MACHINE_EPSILON)

static PetscInt trusted;

/* Between calls with PETSC_TRUE and PETSC_FALSE a method runs that looks at its residuals */
PetscErrorCode MatGPUCSRFactorTrusted_Private(PetscBool begins)
{
  PetscFunctionBegin;
  trusted += begins ? 1 : -1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Was the last solution with F refused? Other solver types never refuse */
PetscErrorCode MatGPUCSRFactorRefused_Private(Mat F, PetscBool *refused)
{
  MatSolverType type = NULL;
  PetscBool     ours = PETSC_FALSE;

  PetscFunctionBegin;
  *refused = PETSC_FALSE;
  if (F) PetscCall(MatFactorGetSolverType(F, &type));
  if (type) PetscCall(PetscStrcmp(type, MATSOLVERCUDSS, &ours));
  if (ours) *refused = ((Mat_CuDSS *)F->data)->refused;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCuDSSBuffersFree_Private(Mat_CuDSS *f)
{
  GPUCSRDevice dev = f->dev;

  PetscFunctionBegin;
  for (int k = 0; k < 3; k++) {
    CuDSSDense *d = k == 0 ? &f->b : k == 1 ? &f->x : &f->d;

    if (d->matrix && !dev->failed[0]) (void)(*CuDSS.matrixdestroy)(d->matrix);
    *d = (CuDSSDense){0};
  }
  PetscCall(GPUCSRBufferFree(dev, &f->residual));
  PetscCall(GPUCSRBufferFree(dev, &f->step));
  PetscCall(GPUCSRFree(dev, sizeof(uint64_t) * CHECK_NUMBERS * CUDSS_COLUMNS, &f->most));
  if (f->mosthost && !dev->failed[0]) PetscCall((*dev->ops->hostfree)(dev->id, f->mosthost));
  f->mosthost = NULL;
  PetscCall(GPUCSRBufferFree(dev, &f->sent));
  PetscCall(GPUCSRBufferFree(dev, &f->back));
  f->last = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* d around these columns */
static PetscErrorCode Wrap(CuDSSDense *d, int64_t n, int k, const double *values, size_t ld)
{
  PetscFunctionBegin;
  if (d->matrix && d->columns == k && d->ld == (int64_t)ld) {
    CuDSSCall("cudssMatrixSetValues()", (*CuDSS.setvalues)(d->matrix, values));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (d->matrix) CuDSSCall("cudssMatrixDestroy()", (*CuDSS.matrixdestroy)(d->matrix));
  d->matrix = NULL;
  CuDSSCall("cudssMatrixCreateDn()", (*CuDSS.createdense)(&d->matrix, n, k, (int64_t)ld, values, CUDSS_DOUBLE, 0));
  d->columns = k;
  d->ld      = (int64_t)ld;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Execute(Mat_CuDSS *f, PetscBool transposed, CuDSSDense *b, CuDSSDense *x, GPUCSRStream s)
{
  const int mode = transposed && !f->symmetric;
  void     *handle;

  PetscFunctionBegin;
  PetscCall(CuDSSOnStream(f->dev, s, &handle));
  if (mode != f->mode) CuDSSCall("cudssConfigSet() of transposed solves", (*CuDSS.configset)(f->config, CUDSS_SOLVE_MODE, &mode, sizeof(mode)));
  f->mode = mode;
  CuDSSCall("a solve", (*CuDSS.execute)(handle, CUDSS_SOLVE, f->config, f->data, f->matrix, x->matrix, b->matrix));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix of these solves in CSR */
static PetscErrorCode Factored(Mat_CuDSS *f, PetscBool transposed, GPUCSRStream s, const GPUCSRStorage **A)
{
  GPUCSRDevice dev = f->dev;

  PetscFunctionBegin;
  *A = &f->A;
  if (!transposed || f->symmetric) PetscFunctionReturn(PETSC_SUCCESS);
  if (!f->T.format) PetscCall(GPUCSRTransposeStorage(&f->A, &f->T, &f->map));
  else if (!f->current) PetscCall(GPUCSRTransposeValues(&f->A, f->map, &f->T));
  if (s != dev->stream) PetscCall((*dev->ops->streamsynchronize)(dev->id, dev->stream));
  f->current = PETSC_TRUE;
  *A         = &f->T;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static double Number(uint64_t bits)
{
  double v;

  memcpy(&v, &bits, sizeof(v));
  return v;
}

/* The largest backward error of the columns, which is NaN or Inf if a number is; growth: |A| |x| / |b|, of one column */
static PetscErrorCode Check(Mat_CuDSS *f, DirectCheck *c, GPUCSRStream s, double *error, double *growth)
{
  GPUCSRDevice dev   = f->dev;
  const size_t bytes = sizeof(uint64_t) * CHECK_NUMBERS * (size_t)c->k;

  PetscFunctionBegin;
  PetscCall((*dev->ops->zero)(dev->id, f->most, bytes, s));
  PetscCall(DirectCheckColumns(c, s));
  PetscCall((*dev->ops->copy)(dev->id, f->mosthost, f->most, bytes, GPUCSR_TO_HOST, s));
  PetscCall((*dev->ops->streamsynchronize)(dev->id, s));
  *error = 0;
  for (int q = 0; q < c->k; q++) {
    const uint64_t *m    = f->mosthost + CHECK_NUMBERS * q;
    const double    size = Number(m[CHECK_A]) * Number(m[CHECK_X]), whole = size + Number(m[CHECK_B]), r = Number(m[CHECK_R]);

    if (growth) *growth = Number(m[CHECK_B]) > 0 ? size / Number(m[CHECK_B]) : 0;
    if (!(whole <= PETSC_MAX_REAL) || r != r) *error = PETSC_INFINITY;
    else if (whole > 0) *error = PetscMax(*error, r / whole);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Buffers of a check; work on another stream than the device's waits for them once */
static PetscErrorCode Buffers(Mat_CuDSS *f, int k, GPUCSRStream s)
{
  GPUCSRDevice dev   = f->dev;
  const size_t bytes = sizeof(double) * (size_t)f->A.m * (size_t)k;

  PetscFunctionBegin;
  if (f->most && f->residual.bytes >= bytes && f->step.bytes >= bytes) PetscFunctionReturn(PETSC_SUCCESS);
  if (!f->most) PetscCall(GPUCSRMalloc(dev, sizeof(uint64_t) * CHECK_NUMBERS * CUDSS_COLUMNS, "the check of solutions", &f->most));
  if (!f->mosthost) PetscCall((*dev->ops->hostmalloc)(dev->id, sizeof(uint64_t) * CHECK_NUMBERS * CUDSS_COLUMNS, (void **)&f->mosthost));
  PetscCall(GPUCSRBufferGrow(dev, bytes, "the check of solutions", &f->residual));
  PetscCall(GPUCSRBufferGrow(dev, bytes, "the check of solutions", &f->step));
  if (s != dev->stream) PetscCall((*dev->ops->streamsynchronize)(dev->id, dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Fixed-precision iterative refinement, after Skeel, Iterative refinement implies numerical stability for Gaussian elimination (1980): a step that does not help is taken back */
static PetscErrorCode Refine(Mat_CuDSS *f, PetscBool transposed, DirectCheck *c, double *x, GPUCSRStream s, double *error, double *growth)
{
  GPUCSRDevice dev = f->dev;
  const int    n   = f->A.m;

  PetscFunctionBegin;
  PetscCall(Check(f, c, s, error, growth));
  for (PetscInt step = 0; step<f->request.refine && * error> ROUNDING && *error <= PETSC_MAX_REAL; step++) {
    const double before = *error;

    PetscCall(Wrap(&f->d, n, c->k, (const double *)f->step.p, (size_t)n));
    PetscCall(Wrap(&f->b, n, c->k, c->r, (size_t)n));
    PetscCall(Execute(f, transposed, &f->b, &f->d, s));
    PetscCall(DirectAdd(dev, n, c->k, 1, (const double *)f->step.p, x, c->ldx, s));
    PetscCall(Check(f, c, s, error, growth));
    f->steps++;
    if (*error < before) continue;
    PetscCall(DirectAdd(dev, n, c->k, -1, (const double *)f->step.p, x, c->ldx, s));
    *error = before;
    break;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x = A^-1 b, or with the transpose, for at most CUDSS_COLUMNS columns on the device */
PetscErrorCode MatCuDSSSolveColumns_Private(Mat_CuDSS *f, PetscBool transposed, int k, const double *b, size_t ldb, double *x, size_t ldx, GPUCSRStream s)
{
  const PetscBool      check = (PetscBool)(f->request.check == CUDSS_ALWAYS || (f->request.check == CUDSS_AUTO && !trusted && !(f->shifts && f->perturbed)));
  const GPUCSRStorage *A;
  double               error;

  PetscFunctionBegin;
  PetscCall(Wrap(&f->b, f->A.m, k, b, ldb));
  PetscCall(Wrap(&f->x, f->A.m, k, x, ldx));
  PetscCall(Execute(f, transposed, &f->b, &f->x, s));
  f->solves += k;
  if (!check) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Buffers(f, k, s));
  PetscCall(Factored(f, transposed, s, &A));
  {
    DirectCheck c = {.A = A, .k = k, .b = b, .x = x, .ldb = ldb, .ldx = ldx, .r = (double *)f->residual.p, .most = (uint64_t *)f->most};

    PetscCall(Refine(f, transposed, &c, x, s, &error, NULL));
  }
  f->worst = PetscMax(f->worst, error);
  if (!(error <= f->request.error)) f->refused = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After replaced pivots: one solve with a pseudo-random right-hand side tells whether the factor is of a matrix near A, and whether A is regular to working precision */
PetscErrorCode MatCuDSSTrial_Private(Mat_CuDSS *f, PetscBool *good, double *growth)
{
  GPUCSRDevice   dev  = f->dev;
  const int      n    = f->A.m;
  uint32_t       seed = 1;
  double        *b;
  void          *bd, *xd;
  double         error;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(Buffers(f, 1, dev->stream));
  PetscCall(MatGPUCSRBuffer_Private(dev, &f->sent, sizeof(double) * (size_t)n, &bd));
  PetscCall(MatGPUCSRBuffer_Private(dev, &f->back, sizeof(double) * (size_t)n, &xd));
  PetscCall(PetscMalloc1(n, &b));
  for (int r = 0; r < n; r++) {
    seed = 1664525 * seed + 1013904223;
    b[r] = 1 + (seed >> 8) / 16777216.0;
  }
  ierr = GPUCSRUpload(dev, bd, GPUCSR_DOUBLE, b, GPUCSR_DOUBLE, (size_t)n, PETSC_FALSE, dev->stream, NULL);
  GPUCSRKeep(&ierr, (*dev->ops->streamsynchronize)(dev->id, dev->stream));
  PetscCall(PetscFree(b));
  PetscCall(ierr);
  PetscCall(Wrap(&f->b, n, 1, (const double *)bd, (size_t)n));
  PetscCall(Wrap(&f->x, n, 1, (const double *)xd, (size_t)n));
  PetscCall(Execute(f, PETSC_FALSE, &f->b, &f->x, dev->stream));
  {
    DirectCheck c = {.A = &f->A, .k = 1, .b = (const double *)bd, .x = (const double *)xd, .ldb = (size_t)n, .ldx = (size_t)n, .r = (double *)f->residual.p, .most = (uint64_t *)f->most};

    PetscCall(Refine(f, PETSC_FALSE, &c, (double *)xd, dev->stream, &error, growth));
  }
  *good = (PetscBool)(error <= f->request.error && *growth < 1 / ROUNDING);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The k columns of b and x, of which those on the host come by way of buffers */
static PetscErrorCode Columns(Mat_CuDSS *f, PetscBool transposed, int k, const GPUCSROperand *b, size_t ldb, const GPUCSROperand *x, size_t ldx, GPUCSRStream s)
{
  GPUCSRDevice dev = f->dev;
  const size_t n = (size_t)f->A.m, bytes = sizeof(double) * n * (size_t)k;
  void        *bd = b->p, *xd = x->p;
  size_t       lb = ldb, lx = ldx;

  PetscFunctionBegin;
  if (f->last && s != f->last) PetscCall(GPUCSRDeviceSynchronize(dev)); /* all solves share the buffers, and the factor's work space */
  f->last = s;
  PetscCall((*dev->ops->activate)(dev->id));
  if (b->place == GPUCSR_HOST) {
    lb = n;
    PetscCall(MatGPUCSRBuffer_Private(dev, &f->sent, bytes, &bd));
    for (int q = 0; q < k; q++) PetscCall(GPUCSRUpload(dev, (double *)bd + (size_t)q * n, GPUCSR_DOUBLE, (const double *)b->p + (size_t)q * ldb, GPUCSR_DOUBLE, n, b->pinned, s, NULL));
  }
  if (x->place == GPUCSR_HOST) {
    lx = n;
    PetscCall(MatGPUCSRBuffer_Private(dev, &f->back, bytes, &xd));
  }
  PetscCall(MatCuDSSSolveColumns_Private(f, transposed, k, (const double *)bd, lb, (double *)xd, lx, s));
  if (x->place == GPUCSR_HOST) {
    for (int q = 0; q < k; q++) PetscCall(GPUCSRDownload(dev, (double *)x->p + (size_t)q * ldx, GPUCSR_DOUBLE, (double *)xd + (size_t)q * n, GPUCSR_DOUBLE, n, x->pinned, s));
    PetscCall((*dev->ops->streamsynchronize)(dev->id, s));
  }
  PetscCall(PetscLogFlops(k * 2.0 * (double)f->entries));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After a solve: says why there is no solution */
static PetscErrorCode Met(Mat F, Mat_CuDSS *f, const GPUCSRAttempt *attempt)
{
  MatFactorError unused;
  char           text[256];

  PetscFunctionBegin;
  if (attempt->error) PetscCall(MatCuDSSFailed_Private(F, f, "A solve", attempt, &unused));
  if (attempt->error) f->refused = PETSC_TRUE;
  else if (f->refused) {
    PetscCall(PetscSNPrintf(text, sizeof(text), "a solution of cuDSS for %d rows was refused, because a right-hand side is not finite or its backward error is above %g: -mat_gpucsr_cudss_matching, _pivoting, or a Krylov method around it", f->A.m,
                            (double)f->request.error));
    PetscCall(GPUCSRWarn(text));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveVec(Mat F, PetscBool transposed, Vec b, Vec x)
{
  Mat_CuDSS    *f = (Mat_CuDSS *)F->data;
  GPUCSROperand ob, ox;
  GPUCSRStream  s;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  f->refused = PETSC_TRUE;
  if (!f->factored || f->dev->failed[0]) {
    PetscCall(VecSet(x, PETSC_INFINITY));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  f->refused = PETSC_FALSE;
  PetscCall(MatGPUCSRVecGet_Private(f->dev, b, PETSC_TRUE, PETSC_FALSE, &ob));
  PetscCall(MatGPUCSRVecGet_Private(f->dev, x, PETSC_FALSE, PETSC_TRUE, &ox));
  PetscCall(MatGPUCSRStream_Private(f->dev, &ob, NULL, &ox, &s));
  GPUCSRTry(&attempt, Columns(f, transposed, 1, &ob, (size_t)f->A.m, &ox, (size_t)f->A.m, s));
  PetscCall(MatGPUCSRVecRestore_Private(f->dev, b, PETSC_TRUE, PETSC_FALSE, &ob));
  PetscCall(MatGPUCSRVecRestore_Private(f->dev, x, PETSC_FALSE, PETSC_TRUE, &ox));
  PetscCall(Met(F, f, &attempt));
  if (f->refused) PetscCall(VecSet(x, PETSC_INFINITY));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSolve_CuDSS(Mat F, Vec b, Vec x)
{
  return SolveVec(F, PETSC_FALSE, b, x);
}

static PetscErrorCode MatSolveTranspose_CuDSS(Mat F, Vec b, Vec x)
{
  return SolveVec(F, PETSC_TRUE, b, x);
}

/* All columns, as many together as buffers have room for; a deterministic cuDSS takes one */
static PetscErrorCode AllColumns(Mat_CuDSS *f, PetscBool transposed, Mat B, GPUCSROperand *b, size_t ldb, GPUCSROperand *x, size_t ldx)
{
  const PetscInt most = f->request.deterministic ? 1 : CUDSS_COLUMNS;
  const double  *b0   = (const double *)b->p;
  double        *x0   = (double *)x->p;
  GPUCSRStream   s;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRStream_Private(f->dev, b, NULL, x, &s));
  for (PetscInt c = 0; c < B->cmap->n; c += most) {
    b->p = (void *)(b0 + (size_t)c * ldb);
    x->p = (void *)(x0 + (size_t)c * ldx);
    PetscCall(Columns(f, transposed, (int)PetscMin(most, B->cmap->n - c), b, ldb, x, ldx, s));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSolveMat(Mat F, PetscBool transposed, Mat B, Mat X)
{
  Mat_CuDSS    *f = (Mat_CuDSS *)F->data;
  GPUCSROperand b, x;
  void         *at[2];
  size_t        ldb, ldx;
  GPUCSRAttempt attempt;
  PetscBool     dense[2];

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)B, &dense[0], MATSEQDENSE, MATSEQDENSECUDA, NULL));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)X, &dense[1], MATSEQDENSE, MATSEQDENSECUDA, NULL));
  PetscCheck(dense[0] && dense[1], PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "Solver type %s solves for columns of MATSEQDENSE, not of %s and %s", MATSOLVERCUDSS, ((PetscObject)B)->type_name, ((PetscObject)X)->type_name);
  f->refused = (PetscBool)(F->factorerrortype || !f->factored || f->dev->failed[0]);
  PetscCall(MatGPUCSRDenseGet_Private(B, PETSC_FALSE, &b, &ldb));
  PetscCall(MatGPUCSRDenseGet_Private(X, PETSC_TRUE, &x, &ldx));
  at[0] = b.p;
  at[1] = x.p;
  if (!f->refused) {
    GPUCSRTry(&attempt, AllColumns(f, transposed, B, &b, ldb, &x, ldx));
    PetscCall(Met(F, f, &attempt));
  }
  b.p = at[0];
  x.p = at[1];
  PetscCall(MatGPUCSRDenseRestore_Private(B, PETSC_FALSE, &b));
  PetscCall(MatGPUCSRDenseRestore_Private(X, PETSC_TRUE, &x));
  if (f->refused)
    for (PetscInt c = 0; c < X->cmap->n; c++) {
      Vec v;

      PetscCall(MatDenseGetColumnVecWrite(X, c, &v));
      PetscCall(VecSet(v, PETSC_INFINITY));
      PetscCall(MatDenseRestoreColumnVecWrite(X, c, &v));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMatSolve_CuDSS(Mat F, Mat B, Mat X)
{
  return MatSolveMat(F, PETSC_FALSE, B, X);
}

static PetscErrorCode MatMatSolveTranspose_CuDSS(Mat F, Mat B, Mat X)
{
  return MatSolveMat(F, PETSC_TRUE, B, X);
}

/* MatSolveAdd() and its transpose are PETSc's, which solve and add */
PetscErrorCode MatCuDSSSolveOps_Private(Mat F)
{
  PetscFunctionBegin;
  F->ops->solve             = MatSolve_CuDSS;
  F->ops->solvetranspose    = MatSolveTranspose_CuDSS;
  F->ops->matsolve          = MatMatSolve_CuDSS;
  F->ops->matsolvetranspose = MatMatSolveTranspose_CuDSS;
  PetscFunctionReturn(PETSC_SUCCESS);
}

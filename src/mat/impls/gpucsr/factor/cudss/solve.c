/*
  Solves with a factor of cuDSS. Each solution is checked on the device by one product and refined where its backward error is larger than rounding explains. A solution with an error above
  -mat_gpucsr_cudss_error becomes Inf, and PCLU and PCCHOLESKY report a failure. A Krylov method that looks at b - A x itself needs no check.
*/
#include "cudss.h"
#include "../../../../../vec/impls/gpu/kernels.h"
#include <string.h>

/* Backward error up to which refinement would gain nothing */
#define ROUNDING (64 * PETSC_MACHINE_EPSILON)
/* After replaced pivots a matrix is singular to working precision from this condition on, or from this relative residual on */
#define SINGULAR_CONDITION 1e12
#define SINGULAR_RESIDUAL  1e-3

/* Of the worst column */
typedef struct {
  double    error, first;    /* backward error, and before refinement: Inf if a number is not finite */
  double    condition, left; /* |A| |x| / |b| and |b - A x| / |b|, the latter Inf if a number is not finite */
  PetscBool given;           /* all right-hand sides are finite */
} Quality;

/* A method with A begins that looks at its residuals: factors on A's device are trusted until MatGPUCSRFactorDistrust_Private(). dev NULL: there is none */
PetscErrorCode MatGPUCSRFactorTrust_Private(Mat A, GPUCSRDevice *dev)
{
  Mat block;

  PetscFunctionBegin;
  *dev = NULL;
  PetscCall(MatGPUCSRFactorBlock_Private(A, &block));
  if (!block) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRDecide_Private(block));
  *dev = ((Mat_SeqGPUCSR *)block->spptr)->dev;
  if (*dev) (*dev)->trusting++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRFactorDistrust_Private(GPUCSRDevice dev)
{
  PetscFunctionBegin;
  if (dev) dev->trusting--;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatCuDSSBuffersFree_Private(Mat_CuDSS *f)
{
  GPUCSRDevice  dev      = f->dev;
  GPUCSRBuffer *buffer[] = {&f->residual, &f->step, &f->sent, &f->back, &f->schur.partial};

  PetscFunctionBegin;
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(buffer); k++) PetscCall(GPUCSRBufferFree(dev, buffer[k]));
  PetscCall(GPUCSRFree(dev, sizeof(uint64_t) * CHECK_NUMBERS * CUDSS_COLUMNS, &f->most));
  if (f->mosthost && !dev->failed[0]) PetscCall((*dev->ops->hostfree)(dev->id, f->mosthost));
  f->mosthost = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A phase of the library with k columns */
PetscErrorCode MatCuDSSRun_Private(Mat_CuDSS *f, int phase, const char what[], int k, const double *b, size_t ldb, double *x, size_t ldx)
{
  void *handle, *dense[2] = {NULL, NULL};
  int   status;

  PetscFunctionBegin;
  PetscCall(CuDSSHandle(f->dev, &handle));
  status = (*CuDSS.MatrixCreateDn)(&dense[0], f->A.m, k, (int64_t)ldb, b, CUDSS_DOUBLE, 0);
  if (!status) status = (*CuDSS.MatrixCreateDn)(&dense[1], f->A.m, k, (int64_t)ldx, x, CUDSS_DOUBLE, 0);
  if (!status) status = (*CuDSS.Execute)(handle, phase, f->config, f->data, f->matrix, dense[1], dense[0]);
  for (int q = 0; q < 2; q++)
    if (dense[q]) (void)(*CuDSS.MatrixDestroy)(dense[q]);
  CuDSSCheck(what, status);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A solve, or a part of one */
PetscErrorCode MatCuDSSExecute_Private(Mat_CuDSS *f, int phase, PetscBool transposed, int k, const double *b, size_t ldb, double *x, size_t ldx)
{
  const int mode = transposed && f->kind == CUDSS_GENERAL;

  PetscFunctionBegin;
  if (mode != f->mode) CuDSSCheck("cudssConfigSet() of transposed solves", (*CuDSS.ConfigSet)(f->config, CUDSS_SOLVE_MODE, &mode, sizeof(mode)));
  f->mode = mode;
  PetscCall(MatCuDSSRun_Private(f, phase, "a solve", k, b, ldb, x, ldx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Execute(Mat_CuDSS *f, PetscBool transposed, int k, const double *b, size_t ldb, double *x, size_t ldx)
{
  if (f->schur.n) return MatCuDSSSchurSolve_Private(f, transposed, k, b, ldb, x, ldx);
  return MatCuDSSExecute_Private(f, CUDSS_SOLVE, transposed, k, b, ldb, x, ldx);
}

/* Buffers for the check of k columns */
static PetscErrorCode Buffers(Mat_CuDSS *f, int k)
{
  GPUCSRDevice dev   = f->dev;
  const size_t bytes = sizeof(double) * (size_t)f->A.m * (size_t)k;
  void        *unused;

  PetscFunctionBegin;
  if (!f->most) PetscCall(GPUCSRMalloc(dev, sizeof(uint64_t) * CHECK_NUMBERS * CUDSS_COLUMNS, "the check of solutions", &f->most));
  if (!f->mosthost) PetscCall((*dev->ops->hostmalloc)(dev->id, sizeof(uint64_t) * CHECK_NUMBERS * CUDSS_COLUMNS, (void **)&f->mosthost));
  PetscCall(MatGPUCSRBuffer_Private(dev, &f->residual, bytes, &unused));
  PetscCall(MatGPUCSRBuffer_Private(dev, &f->step, bytes, &unused));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static double Most(const Mat_CuDSS *f, int column, int what)
{
  double v;

  memcpy(&v, f->mosthost + CHECK_NUMBERS * column + what, sizeof(v));
  return v;
}

static void Raise(double v, uint64_t *most)
{
  uint64_t bits;

  v = fabs(v);
  memcpy(&bits, &v, sizeof(bits));
  if (bits > *most) *most = bits;
}

/* The twin of check.cu */
static PetscErrorCode CheckOnHost(const DirectCheck *c)
{
  const GPUCSRCSR A = GPUCSRCSROf(c->A);

  PetscFunctionBegin;
  PetscCall(GPUCSRWaitStreamOnHost(c->A->dev->stream));
  for (int q = 0; q < c->k; q++) {
    const double *b = c->b + (size_t)q * c->ldb, *x = c->x + (size_t)q * c->ldx;
    double       *r    = c->r + (size_t)q * (size_t)A.m;
    uint64_t     *most = c->most + CHECK_NUMBERS * q;

    for (int row = 0; row < A.m; row++) {
      double sum = 0, size = 0;

      for (int e = A.i[row]; e < A.i[row + 1]; e++) {
        sum += A.a[e] * x[A.j[e]];
        size += fabs(A.a[e]);
      }
      r[row] = b[row] - sum;
      Raise(r[row], &most[CHECK_R]);
      Raise(x[row], &most[CHECK_X]);
      Raise(b[row], &most[CHECK_B]);
      Raise(size, &most[CHECK_A]);
      if (size == 0) most[CHECK_ZERO] = 1;
    }
  }
  PetscCall(GPUCSRLaunched(c->A->dev, "the check of a solution"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Check(Mat_CuDSS *f, DirectCheck *c, Quality *worst)
{
  GPUCSRDevice dev   = f->dev;
  const size_t bytes = sizeof(uint64_t) * CHECK_NUMBERS * (size_t)c->k;

  PetscFunctionBegin;
  c->r    = (double *)f->residual.p;
  c->most = (uint64_t *)f->most;
  *worst  = (Quality){.given = PETSC_TRUE};
  PetscCall((*dev->ops->zero)(dev->id, f->most, bytes, dev->stream));
  PetscCall(GPUCSREither(dev, DirectCheck_CUDA(c), CheckOnHost(c)));
  PetscCall((*dev->ops->copy)(dev->id, f->mosthost, f->most, bytes, GPUCSR_TO_HOST, dev->stream));
  PetscCall((*dev->ops->streamsynchronize)(dev->id, dev->stream));
  for (int q = 0; q < c->k; q++) {
    const double r = Most(f, q, CHECK_R), b = Most(f, q, CHECK_B), size = Most(f, q, CHECK_A) * Most(f, q, CHECK_X);

    if (!isfinite(b)) worst->given = PETSC_FALSE;
    if (!isfinite(size + b) || isnan(r)) worst->error = worst->left = INFINITY;
    else if (size + b > 0) worst->error = PetscMax(worst->error, r / (size + b));
    if (b > 0) {
      worst->condition = PetscMax(worst->condition, size / b);
      worst->left      = PetscMax(worst->left, r / b);
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Are all values of the matrix finite? cuDSS gets no others, and no row of zeros, of which it may say nothing */
PetscErrorCode MatCuDSSFinite_Private(Mat_CuDSS *f, PetscBool *finite)
{
  double     *any = (double *)f->A.array[CSR_VAL].data; /* numbers that do not matter here */
  DirectCheck c   = {.A = &f->A, .k = 1, .b = any, .x = any};
  Quality     unused;

  PetscFunctionBegin;
  PetscCall(Buffers(f, 1));
  PetscCall(Check(f, &c, &unused));
  f->norm = Most(f, 0, CHECK_A);
  f->zero = (PetscBool)(f->mosthost[CHECK_ZERO] && !f->shifts);
  *finite = (PetscBool)isfinite(f->norm);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* x += a d, in each column */
static PetscErrorCode Add(Mat_CuDSS *f, const DirectCheck *c, double a, const double *d)
{
  const double abc[3] = {a, 0, 0};
  const size_t n      = (size_t)f->A.m;

  PetscFunctionBegin;
  for (size_t q = 0; q < (size_t)c->k; q++) PetscCall((*VecGPUKernelsOf(f->dev)->map)(f->dev, VECGPU_MAP_axpy, n, abc, d + q * n, NULL, c->x + q * c->ldx));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Solves, checks and refines. Fixed-precision refinement, after Skeel, Iterative refinement implies numerical stability for Gaussian elimination (1980): refinement ends with a step that does not halve
   the error, and takes back a step without gain */
static PetscErrorCode Refined(Mat_CuDSS *f, PetscBool transposed, DirectCheck *c, Quality *q)
{
  const size_t n = (size_t)f->A.m;
  double       first;

  PetscFunctionBegin;
  PetscCall(Buffers(f, c->k));
  c->A = transposed ? &f->T : &f->A; /* symmetry is only the program's promise, so a transposed solve is checked with the transpose */
  if (transposed) {
    if (!f->T.format) PetscCall(GPUCSRTransposeStorage(&f->A, &f->T, &f->map));
    else if (!f->current) PetscCall(GPUCSRTransposeValues(&f->A, f->map, &f->T));
    f->current = PETSC_TRUE;
  }
  PetscCall(Execute(f, transposed, c->k, c->b, c->ldb, c->x, c->ldx));
  PetscCall(Check(f, c, q));
  first = q->error;
  for (PetscInt step = 0; step < f->request.refine && q->error > ROUNDING && isfinite(q->error); step++) {
    double      *d      = (double *)f->step.p;
    const double before = q->error;

    PetscCall(Execute(f, transposed, c->k, c->r, n, d, n));
    PetscCall(Add(f, c, 1, d));
    PetscCall(Check(f, c, q));
    f->steps++;
    if (q->error <= before / 2) continue;
    if (q->error < before) break;
    PetscCall(Add(f, c, -1, d));
    PetscCall(Check(f, c, q)); /* a large step leaves its rounding */
    break;
  }
  q->first = first;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One solve with a pseudo-random right-hand side tells whether the factor is of a matrix near A, and whether A is regular to working precision. Refinement may converge with L L^T of another matrix. A Schur
   complement is tried with a product instead */
PetscErrorCode MatCuDSSTrial_Private(Mat_CuDSS *f, PetscBool *good)
{
  GPUCSRDevice   dev  = f->dev;
  const size_t   n    = (size_t)f->A.m;
  uint32_t       seed = 1;
  double        *b;
  void          *bd, *xd;
  Quality        q;
  DirectCheck    c;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall((*dev->ops->activate)(dev->id));
  PetscCall(MatGPUCSRBuffer_Private(dev, &f->sent, sizeof(double) * n, &bd));
  PetscCall(MatGPUCSRBuffer_Private(dev, &f->back, sizeof(double) * n, &xd));
  PetscCall(PetscMalloc1(n, &b));
  for (size_t r = 0; r < n; r++) {
    seed = 1664525 * seed + 1013904223;
    b[r] = 1 + (seed >> 8) / 16777216.0;
  }
  ierr = GPUCSRUpload(dev, bd, GPUCSR_DOUBLE, b, GPUCSR_DOUBLE, n, PETSC_FALSE, dev->stream, NULL);
  GPUCSRKeep(&ierr, (*dev->ops->streamsynchronize)(dev->id, dev->stream));
  PetscCall(PetscFree(b));
  PetscCall(ierr);
  if (f->schur.n) {
    c = (DirectCheck){.A = &f->A, .k = 1, .b = (const double *)xd, .x = (double *)bd, .ldb = n, .ldx = n};
    PetscCall(Buffers(f, 1));
    PetscCall((*dev->ops->zero)(dev->id, xd, sizeof(double) * n, dev->stream));
    PetscCall(Check(f, &c, &q));
    PetscCall(MatCuDSSSchurTrial_Private(f, c.x, c.r, Most(f, 0, CHECK_A) * Most(f, 0, CHECK_X), good));
    f->tried = *good;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  c = (DirectCheck){.k = 1, .b = (const double *)bd, .x = (double *)xd, .ldb = n, .ldx = n};
  PetscCall(Refined(f, PETSC_FALSE, &c, &q));
  *good    = (PetscBool)((f->kind == CUDSS_POSITIVE ? q.first : q.error) <= f->request.error && (!f->perturbed || (q.condition < SINGULAR_CONDITION && q.left < SINGULAR_RESIDUAL)));
  f->tried = *good;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The k columns of b and x, at most CUDSS_COLUMNS. Columns on the host go through buffers; so does b in the memory of x. s: the stream of the operands; all work on a factor is in the order of the library's */
static PetscErrorCode Columns(Mat_CuDSS *f, PetscBool transposed, int k, const GPUCSROperand *b, size_t ldb, const GPUCSROperand *x, size_t ldx, GPUCSRStream s)
{
  GPUCSRDevice    dev = f->dev;
  const size_t    n = (size_t)f->A.m, bytes = sizeof(double) * n * (size_t)k;
  const PetscBool sent = (PetscBool)(b->place == GPUCSR_HOST || b->p == x->p), back = (PetscBool)(x->place == GPUCSR_HOST);
  const PetscBool check = (PetscBool)(f->request.check == CUDSS_ALWAYS || (f->request.check == CUDSS_AUTO && !dev->trusting && !(f->shifts && f->perturbed)));
  void           *bd = b->p, *xd = x->p;
  Quality         worst;
  DirectCheck     c;

  PetscFunctionBegin;
  PetscCall((*dev->ops->activate)(dev->id));
  if (s != dev->stream) PetscCall(GPUCSRDeviceSynchronize(dev));
  if (sent) PetscCall(MatGPUCSRBuffer_Private(dev, &f->sent, bytes, &bd));
  if (back) PetscCall(MatGPUCSRBuffer_Private(dev, &f->back, bytes, &xd));
  for (size_t q = 0; q < (size_t)k && sent; q++) {
    const double *from = (const double *)b->p + q * ldb;
    double       *to   = (double *)bd + q * n;

    if (b->place == GPUCSR_HOST) PetscCall(GPUCSRUpload(dev, to, GPUCSR_DOUBLE, from, GPUCSR_DOUBLE, n, b->pinned, dev->stream, NULL));
    else PetscCall((*dev->ops->copy)(dev->id, to, from, sizeof(double) * n, GPUCSR_ON_DEVICE, dev->stream));
  }
  c = (DirectCheck){.k = k, .b = (const double *)bd, .x = (double *)xd, .ldb = sent ? n : ldb, .ldx = back ? n : ldx};
  if (check) {
    PetscCall(Refined(f, transposed, &c, &worst));
    if (!(worst.error <= f->request.error) && !f->fresh && worst.given) { /* an analysis of older values is not blamed on the matrix */
      PetscCall(MatCuDSSAgain_Private(f));
      PetscCall(Refined(f, transposed, &c, &worst));
    }
    f->worst = PetscMax(f->worst, worst.error);
    /* a pivot of zero may be replaced by anything, or divide, without a word of the library */
    if (!(worst.error <= f->request.error)) f->refused = worst.given && (f->perturbed || worst.left >= SINGULAR_RESIDUAL) ? MAT_FACTOR_NUMERIC_ZEROPIVOT : MAT_FACTOR_OTHER;
  } else PetscCall(Execute(f, transposed, k, c.b, c.ldb, c.x, c.ldx));
  for (size_t q = 0; q < (size_t)k && back; q++) PetscCall(GPUCSRDownload(dev, (double *)x->p + q * ldx, GPUCSR_DOUBLE, (double *)xd + q * n, GPUCSR_DOUBLE, n, x->pinned, dev->stream));
  if (back || s != dev->stream) PetscCall((*dev->ops->streamsynchronize)(dev->id, dev->stream));
  f->solves += k;
  PetscCall(PetscLogFlops(k * 2.0 * (double)f->entries));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* After a solve: says why there is no solution */
static PetscErrorCode Met(Mat F, Mat_CuDSS *f, const GPUCSRAttempt *attempt)
{
  char text[256];

  PetscFunctionBegin;
  if (attempt->error) PetscCall(MatCuDSSFailed_Private(F, f, "A solve", attempt, &f->refused));
  else if (f->refused) {
    PetscCall(PetscSNPrintf(text, sizeof(text), "a solution of cuDSS for %d rows was refused, because %s its backward error is above %g: -mat_gpucsr_cudss_matching, _pivoting, or a Krylov method around it", f->A.m,
                            f->refused == MAT_FACTOR_OTHER ? "a right-hand side is not finite or" : "the matrix looks singular to working precision:", (double)f->request.error));
    PetscCall(GPUCSRWarn(text));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveVec(Mat F, PetscBool transposed, Vec b, Vec x)
{
  Mat_CuDSS    *f = (Mat_CuDSS *)F->data;
  const size_t  n = (size_t)f->A.m;
  GPUCSRVectors v = {.x = b, .z = x};
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  f->refused = !f->factored || f->dev->failed[0] ? MAT_FACTOR_OTHER : MAT_FACTOR_NOERROR;
  if (!f->refused) {
    PetscCall(MatGPUCSRVectorsGet_Private(f->dev, &v));
    GPUCSRTry(&attempt, Columns(f, transposed, 1, &v.ox, n, &v.oz, n, v.stream));
    PetscCall(MatGPUCSRVectorsRestore_Private(f->dev, &v));
    PetscCall(Met(F, f, &attempt));
  }
  if (f->refused) PetscCall(VecSet(x, (PetscScalar)INFINITY));
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

/* All columns, together as many as buffers have room for; where memory runs out half as many, unless the first of these may have overwritten b. A deterministic cuDSS takes one */
static PetscErrorCode AllColumns(Mat_CuDSS *f, PetscBool transposed, PetscInt columns, GPUCSROperand b, size_t ldb, GPUCSROperand x, size_t ldx)
{
  PetscInt      most = f->request.deterministic ? 1 : CUDSS_COLUMNS, k;
  GPUCSRAttempt attempt;

  PetscFunctionBegin;
  for (PetscInt c = 0; c < columns; c += k) {
    k = PetscMin(most, columns - c);
    GPUCSRTry(&attempt, Columns(f, transposed, (int)k, &b, ldb, &x, ldx, f->dev->stream));
    if (attempt.error == PETSC_ERR_MEM && k > 1 && b.p != x.p && f->factored) {
      PetscCall(GPUCSRDeviceSynchronize(f->dev));
      PetscCall(MatCuDSSBuffersFree_Private(f));
      most = k / 2;
      k    = 0;
      continue;
    }
    PetscCheck(!attempt.error, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
    for (PetscInt q = 0; q < k; q++) {
      if (b.place == GPUCSR_HOST) VecGPUCrossed(PETSC_TRUE, (size_t)f->A.m);
      if (x.place == GPUCSR_HOST) VecGPUCrossed(PETSC_FALSE, (size_t)f->A.m);
    }
    b.p = (double *)b.p + (size_t)k * ldb;
    x.p = (double *)x.p + (size_t)k * ldx;
  }
  if (x.place == GPUCSR_DEVICE) PetscCall(GPUCSRDeviceSynchronize(f->dev)); /* PETSc's own work comes next */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode SolveMat(Mat F, PetscBool transposed, Mat B, Mat X)
{
  Mat_CuDSS    *f = (Mat_CuDSS *)F->data;
  GPUCSROperand b, x;
  size_t        ldb, ldx;
  GPUCSRAttempt attempt;
  PetscBool     dense[2];

  PetscFunctionBegin;
  PetscCall(PetscObjectTypeCompareAny((PetscObject)B, &dense[0], MATSEQDENSE, MATSEQDENSECUDA, NULL));
  PetscCall(PetscObjectTypeCompareAny((PetscObject)X, &dense[1], MATSEQDENSE, MATSEQDENSECUDA, NULL));
  PetscCheck(dense[0] && dense[1], PETSC_COMM_SELF, PETSC_ERR_ARG_WRONG, "Solver type %s solves for columns of MATSEQDENSE, not of %s and %s", MATSOLVERCUDSS, ((PetscObject)B)->type_name, ((PetscObject)X)->type_name);
  f->refused = F->factorerrortype || !f->factored || f->dev->failed[0] ? MAT_FACTOR_OTHER : MAT_FACTOR_NOERROR;
  if (!f->refused) {
    PetscCall(MatGPUCSRDenseGet_Private(B, PETSC_FALSE, &b, &ldb));
    PetscCall(MatGPUCSRDenseGet_Private(X, PETSC_TRUE, &x, &ldx));
    if (b.place == GPUCSR_DEVICE || x.place == GPUCSR_DEVICE) PetscCall(GPUCSRDeviceSynchronize(f->dev)); /* PETSc's own work on them */
    GPUCSRTry(&attempt, AllColumns(f, transposed, B->cmap->n, b, ldb, x, ldx));
    PetscCall(MatGPUCSRDenseRestore_Private(B, PETSC_FALSE, &b));
    PetscCall(MatGPUCSRDenseRestore_Private(X, PETSC_TRUE, &x));
    PetscCall(Met(F, f, &attempt));
  }
  for (PetscInt c = 0; c < X->cmap->n && f->refused; c++) {
    Vec v;

    PetscCall(MatDenseGetColumnVecWrite(X, c, &v));
    PetscCall(VecSet(v, (PetscScalar)INFINITY));
    PetscCall(MatDenseRestoreColumnVecWrite(X, c, &v));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatMatSolve_CuDSS(Mat F, Mat B, Mat X)
{
  return SolveMat(F, PETSC_FALSE, B, X);
}

static PetscErrorCode MatMatSolveTranspose_CuDSS(Mat F, Mat B, Mat X)
{
  return SolveMat(F, PETSC_TRUE, B, X);
}

/* MatSolveAdd() and its transpose are PETSc's, which solve and add */
void MatCuDSSSolveOps_Private(Mat F)
{
  F->ops->solve             = MatSolve_CuDSS;
  F->ops->solvetranspose    = MatSolveTranspose_CuDSS;
  F->ops->matsolve          = MatMatSolve_CuDSS;
  F->ops->matsolvetranspose = MatMatSolveTranspose_CuDSS;
}

/* Why the last solution with F was refused, if it was. Other solver types never refuse */
PetscErrorCode MatGPUCSRFactorRefused_Private(Mat F, MatFactorError *why)
{
  PetscFunctionBegin;
  *why = F && F->ops->solve == MatSolve_CuDSS ? ((const Mat_CuDSS *)F->data)->refused : MAT_FACTOR_NOERROR;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Before F is factored again: PETSc's preconditioners give up for good after a lack of memory, or a failure of the library */
PetscErrorCode MatGPUCSRFactorForgive_Private(Mat F)
{
  PetscFunctionBegin;
  if (F && F->ops->solve == MatSolve_CuDSS) PetscCall(MatFactorClearError(F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

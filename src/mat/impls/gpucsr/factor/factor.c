/*
  The solver type "gpucsr" of MatGetFactor(): PETSc's own factors of MATSEQAIJ, with solves on the device, and with values computed there if possible.

  The factor matrix is PETSc's. PETSc's functions set a factor's operations; afterwards this file replaces some operations. Its own data are a composed object of the matrix.
*/
#include "factorimpl.h"

/* With PETSC_TRUE later factorizations of A are deferred, until a call with PETSC_FALSE. A deferred factor keeps its request. A batch computes it with other factors, or its first use computes it alone */
PetscErrorCode MatGPUCSRFactorPutOff_Private(Mat A, PetscBool yes)
{
  PetscFunctionBegin;
  if (GPUCSRIsType(A, MATSEQAIJGPUCSR)) ((Mat_SeqGPUCSR *)A->spptr)->putoff = yes;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* This library's data of a factor; NULL: there is no factor, or it is another type's */
PetscErrorCode MatGPUCSRFactorFind_Private(Mat F, Mat_GPUCSRFactor **f)
{
  PetscContainer c = NULL;

  PetscFunctionBegin;
  *f = NULL;
  if (F) PetscCall(PetscObjectQuery((PetscObject)F, MATGPUCSRFACTOR, (PetscObject *)&c));
  if (c) PetscCall(PetscContainerGetPointer(c, (void **)f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRFactorGet_Private(Mat F, Mat_GPUCSRFactor **f)
{
  PetscFunctionBegin;
  PetscCall(MatGPUCSRFactorFind_Private(F, f));
  PetscCheck(*f, PETSC_COMM_SELF, PETSC_ERR_PLIB, "This factor is not one of solver type %s", MATSOLVERGPUCSR);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void           Install(Mat, Mat_GPUCSRFactor *);
static PetscErrorCode Settle(Mat, Mat_GPUCSRFactor *);
static PetscErrorCode MatDestroy_GPUCSRFactor(Mat);

/* PETSc solves from now on, with one message if the device failed */
static PetscErrorCode FactorLeave(Mat F, Mat_GPUCSRFactor *f, PetscErrorCode ierr, const char why[])
{
  Mat_SeqGPUCSR *g;

  PetscFunctionBegin;
  PetscCall(PetscStrncpy(f->whynot, why, sizeof(f->whynot)));
  if (f->dev && ierr) {
    if (ierr == PETSC_ERR_GPU) PetscCall(PetscStrncpy(f->dev->failed, why, sizeof(f->dev->failed)));
    if (GPUCSRIsType(f->A, MATSEQAIJGPUCSR)) {
      g = (Mat_SeqGPUCSR *)f->A->spptr;
      PetscCall(PetscSNPrintf(g->warning, sizeof(g->warning), "solves with a factor of %" PetscInt_FMT " rows go on with PETSc's on the host, because backend %s failed: %s", F->rmap->n, f->dev->ops->name, why));
      PetscCall(MatGPUCSRWarn_Private(f->A, 0, 0, 0));
    }
  } else PetscCall(PetscInfo(F, "Solves are PETSc's: %s\n", why));
  PetscCall(MatGPUCSRFactorEmpty_Private(f));
  f->dev = NULL;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Handles an error by going on with PETSc's factor, if that is allowed */
PetscErrorCode MatGPUCSRFactorMet_Private(Mat F, Mat_GPUCSRFactor *f, const GPUCSRAttempt *attempt)
{
  PetscFunctionBegin;
  if (!attempt->error) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(MatGPUCSRBackendOf(f->A) != MAT_GPUCSR_BACKEND_CUDA && (attempt->error == PETSC_ERR_MEM || attempt->error == PETSC_ERR_GPU), PETSC_COMM_SELF, attempt->error, "%s", attempt->message);
  PetscCall(FactorLeave(F, f, attempt->error, attempt->message));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Around a call of PETSc's functions: restores PETSc's operations before, and the replacements afterwards, whether the call worked or not */
static void PETScBegin(Mat F, Mat_GPUCSRFactor *f)
{
  *F->ops         = f->petsc;
  F->ops->destroy = MatDestroy_GPUCSRFactor;
}

static PetscErrorCode PETScEnd(Mat F, Mat_GPUCSRFactor *f, PetscErrorCode ierr)
{
  PetscErrorCode (*destroy)(Mat) = f->petsc.destroy;

  PetscFunctionBegin;
  f->petsc         = *F->ops;
  f->petsc.destroy = destroy;
  Install(F, f);
  PetscFunctionReturn(ierr);
}

static PetscErrorCode PETScSymbolic(Mat F, Mat_GPUCSRFactor *f)
{
  PetscErrorCode ierr;

  PetscFunctionBegin;
  if (f->symbolic) PetscFunctionReturn(PETSC_SUCCESS);
  PETScBegin(F, f);
  switch (f->type) {
  case MAT_FACTOR_LU:
    ierr = (*F->ops->lufactorsymbolic)(F, f->A, f->row, f->col, &f->info);
    break;
  case MAT_FACTOR_ILU:
    ierr = (*F->ops->ilufactorsymbolic)(F, f->A, f->row, f->col, &f->info);
    break;
  case MAT_FACTOR_CHOLESKY:
    ierr = (*F->ops->choleskyfactorsymbolic)(F, f->A, f->row, &f->info);
    break;
  default:
    ierr = (*F->ops->iccfactorsymbolic)(F, f->A, f->row, &f->info);
  }
  PetscCall(PETScEnd(F, f, ierr));
  f->symbolic = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode PETScNumeric(Mat F, Mat_GPUCSRFactor *f)
{
  double         begin;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  PetscCall(PETScSymbolic(F, f));
  PetscCall(MatGPUCSRFetch_Private(f->A));
  PETScBegin(F, f);
  begin = GPUCSRNow();
  if (f->symmetric) ierr = (*F->ops->choleskyfactornumeric)(F, f->A, &f->info);
  else ierr = (*F->ops->lufactornumeric)(F, f->A, &f->info);
  if (f->direct[0]) PetscCall(MatGPUCSRReportFactor_Private(f->type, F->rmap->n, "PETSc on the host", f->direct, GPUCSRNow() - begin));
  PetscCall(PETScEnd(F, f, ierr));
  f->numeric = PETSC_TRUE;
  Install(F, f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Makes the factor on the host, if only the device has it */
static PetscErrorCode FactorHost(Mat F, Mat_GPUCSRFactor *f)
{
  PetscFunctionBegin;
  PetscCall(Settle(F, f));
  if (f->numeric) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(f->A, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The matrix is not factored yet");
  PetscCheck(GPUCSRStateOf(f->A) == f->values, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The factor is needed on the host, was on the device alone, and the matrix has changed since it was factored: factor it again (KSPSetUp(), PCSetUp()) before, or use -pc_factor_mat_solver_type petsc");
  PetscCall(PETScNumeric(F, f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Solve(Mat F, PetscBool transposed, Vec b, Vec x)
{
  Mat_GPUCSRFactor *f;
  GPUCSRAttempt     attempt;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFactorGet_Private(F, &f));
  PetscCall(Settle(F, f));
  if (f->ondevice && (!f->inverses.n || !transposed)) {
    GPUCSRTry(&attempt, MatGPUCSRFactorSolve_Private(F, f, transposed, b, x));
    if (!attempt.error) PetscFunctionReturn(PETSC_SUCCESS);
    PetscCall(MatGPUCSRFactorMet_Private(F, f, &attempt));
  }
  PetscCall(FactorHost(F, f));
  PetscCall((*(transposed ? f->petsc.solvetranspose : f->petsc.solve))(F, b, x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatSolve_GPUCSR(Mat F, Vec b, Vec x)
{
  return Solve(F, PETSC_FALSE, b, x);
}

static PetscErrorCode MatSolveTranspose_GPUCSR(Mat F, Vec b, Vec x)
{
  return Solve(F, PETSC_TRUE, b, x);
}

/* Operations of the host, where the values may have to be computed first */
#define ON_HOST(op, formal, actual) \
  static PetscErrorCode op##_OnHost formal \
  { \
    Mat_GPUCSRFactor *f; \
\
    PetscFunctionBegin; \
    PetscCall(MatGPUCSRFactorGet_Private(F, &f)); \
    PetscCall(FactorHost(F, f)); \
    PetscCall((*f->petsc.op)actual); \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
#define OPERATIONS(R) \
  R(getdiagonal, (Mat F, Vec d), (F, d)) \
  R(getinertia, (Mat F, PetscInt * negative, PetscInt * zero, PetscInt * positive), (F, negative, zero, positive)) \
  R(solves, (Mat F, Vecs b, Vecs x), (F, b, x)) \
  R(duplicate, (Mat F, MatDuplicateOption op, Mat * B), (F, op, B))

OPERATIONS(ON_HOST)
ON_HOST(forwardsolve, (Mat F, Vec b, Vec x), (F, b, x))
ON_HOST(backwardsolve, (Mat F, Vec b, Vec x), (F, b, x))

static PetscErrorCode MatView_GPUCSRFactor(Mat F, PetscViewer viewer)
{
  Mat_GPUCSRFactor *f;
  const PetscBool   info = GPUCSRViewsInfo(viewer);

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFactorGet_Private(F, &f));
  if (!info) PetscCall(FactorHost(F, f));
  if (!info || f->symbolic) PetscCall((*f->petsc.view)(F, viewer));
  if (info) PetscCall(MatGPUCSRFactorDescribe_Private(F, viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For a factor with the pattern of A: PETSc calls MatGetInfo() before there are values */
static PetscErrorCode MatGetInfo_GPUCSRFactor(Mat F, MatInfoType type, MatInfo *info)
{
  Mat_GPUCSRFactor *f;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFactorGet_Private(F, &f));
  PetscCall((*f->petsc.getinfo)(F, type, info));
  if (!f->symbolic && (f->own || f->later)) {
    const PetscInt *i;
    double          entries = (double)f->pair[0].M.nnz;

    if (f->later) { /* without fill */
      PetscCall(MatSeqAIJGetCSRAndMemType(f->A, &i, NULL, NULL, NULL));
      entries = (double)i[F->rmap->n];
    }
    if (f->symmetric) entries = 0.5 * (entries + (double)F->rmap->n);
    info->nz_used = info->nz_allocated = entries;
    info->fill_ratio_given             = f->info.fill;
    info->fill_ratio_needed            = 1.0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Numeric(Mat, Mat, const MatFactorInfo *);
static PetscErrorCode CholeskySymbolic(Mat, Mat, IS, const MatFactorInfo *);

/* Replaces PETSc's operations by this file's; f->petsc keeps PETSc's */
static void Install(Mat F, Mat_GPUCSRFactor *f)
{
  struct _MatOps *o = F->ops;

  *o         = f->petsc;
  o->destroy = MatDestroy_GPUCSRFactor;
  if (f->type == MAT_FACTOR_LU) o->lufactorsymbolic = MatGPUCSRFactorSymbolic_Private;
  if (f->type == MAT_FACTOR_ILU) o->ilufactorsymbolic = MatGPUCSRFactorSymbolic_Private;
  if (f->type == MAT_FACTOR_CHOLESKY) o->choleskyfactorsymbolic = CholeskySymbolic;
  if (f->type == MAT_FACTOR_ICC) o->iccfactorsymbolic = CholeskySymbolic;
  if (f->symmetric) o->choleskyfactornumeric = Numeric;
  else o->lufactornumeric = Numeric;
  o->getinfo = MatGetInfo_GPUCSRFactor;
  o->view    = MatView_GPUCSRFactor;
  if (f->ondevice || f->later) {
    o->solve          = MatSolve_GPUCSR;
    o->solvetranspose = MatSolveTranspose_GPUCSR;
    /* without these PETSc uses MatSolve() */
    o->solveadd = o->solvetransposeadd = NULL;
    o->matsolve = o->matsolvetranspose = NULL;
  }
  if ((f->ondevice || f->later) && !f->numeric) {
    if (f->symmetric) {
      o->forwardsolve  = forwardsolve_OnHost;
      o->backwardsolve = backwardsolve_OnHost;
    }
#define INSTALL(op, formal, actual) \
  if (f->petsc.op) o->op = op##_OnHost;
    OPERATIONS(INSTALL)
#undef INSTALL
  }
}

/*
  PETSc's factors as one CSR matrix with its inverse diagonal, on the host. LU (MATSEQAIJ) stores the rows of L from the first to the last, then the rows of U from the last to the first, each with its
  inverse diagonal at the end. Cholesky (MATSEQSBAIJ of block size 1) stores the rows of U, negated and divided by the diagonal, each with its inverse diagonal at the end.
*/
typedef struct {
  int    *i, *j;
  double *a, *dinv;
  int64_t nnz;
} GPUCSRFactorArrays;

static PetscErrorCode Allocate(GPUCSRFactorArrays *c, PetscInt n, int64_t nnz, PetscBool values)
{
  PetscFunctionBegin;
  PetscCall(PetscMalloc4(n + 1, &c->i, (size_t)nnz, &c->j, values ? (size_t)nnz : 0, &c->a, values ? n : 0, &c->dinv));
  PetscCall(PetscArrayzero(c->i, n + 1));
  c->nnz = nnz;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FromLU(PetscInt n, PetscInt most, const PetscInt fi[], const PetscInt fj[], const PetscScalar fa[], GPUCSRFactorArrays *c)
{
  PetscInt *end, at = fi[n];
  PetscBool known = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCall(PetscMalloc1(n, &end));
  for (PetscInt r = n; r-- > 0 && known;) {
    while (at < most && fj[at] > r) at++;
    known  = (PetscBool)(at < most && fj[at] == r);
    end[r] = at++;
  }
  if (known && at < INT32_MAX - 1024) {
    const PetscErrorCode ierr = Allocate(c, n, at, (PetscBool)(fa != NULL));

    if (ierr) PetscCall(PetscFree(end));
    PetscCall(ierr);
    for (PetscInt r = 0, k = 0; r < n; r++) {
      const PetscInt begin = r + 1 < n ? end[r + 1] + 1 : fi[n];

      for (PetscInt e = fi[r]; e < fi[r + 1]; e++, k++) {
        c->j[k] = (int)fj[e];
        if (fa) c->a[k] = (double)PetscRealPart(fa[e]);
      }
      c->j[k] = (int)r;
      if (fa) c->a[k] = c->dinv[r] = (double)PetscRealPart(fa[end[r]]);
      k++;
      for (PetscInt e = begin; e < end[r]; e++, k++) {
        c->j[k] = (int)fj[e];
        if (fa) c->a[k] = (double)PetscRealPart(fa[e]);
      }
      c->i[r + 1] = (int)k;
    }
  }
  PetscCall(PetscFree(end));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FromCholesky(PetscInt n, const PetscInt ui[], const PetscInt uj[], const PetscScalar ua[], GPUCSRFactorArrays *c)
{
  const int64_t nnz   = 2 * (int64_t)ui[n] - n;
  PetscBool     known = PETSC_TRUE;
  int          *next;

  PetscFunctionBegin;
  for (PetscInt r = 0; r < n && known; r++) known = (PetscBool)(ui[r + 1] > ui[r] && uj[ui[r + 1] - 1] == r);
  if (!known || nnz > INT32_MAX - 1024) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Allocate(c, n, nnz, (PetscBool)(ua != NULL)));
  for (PetscInt r = 0; r < n; r++) {
    c->i[r + 1] += (int)(ui[r + 1] - ui[r]);
    for (PetscInt e = ui[r]; e < ui[r + 1] - 1; e++) c->i[uj[e] + 1]++;
  }
  for (PetscInt r = 0; r < n; r++) c->i[r + 1] += c->i[r];
  PetscCall(PetscMalloc1(n, &next)); /* place of the next entry left of the diagonal, later right of the diagonal */
  PetscCall(PetscArraycpy(next, c->i, n));
  for (PetscInt r = 0; r < n; r++) {
    const PetscInt last = ui[r + 1] - 1;

    c->j[next[r]] = (int)r; /* entries left of the diagonal come from rows above, so they are complete */
    if (ua) c->a[next[r]] = c->dinv[r] = (double)PetscRealPart(ua[last]);
    for (PetscInt e = ui[r]; e < last; e++) {
      const int right = next[r] + 1 + (int)(e - ui[r]), left = next[uj[e]]++;

      c->j[right] = (int)uj[e];
      c->j[left]  = (int)r;
      if (ua) c->a[right] = c->a[left] = -(double)PetscRealPart(ua[e]);
    }
  }
  PetscCall(PetscFree(next));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Copies PETSc's factor to the device, or its pattern alone. Not good: its storage is of another form */
static PetscErrorCode FromPETSc(Mat F, Mat_GPUCSRFactor *f, PetscBool values, PetscBool *good)
{
  GPUCSRFactorArrays c = {0};
  const PetscInt    *fi, *fj;
  PetscScalar       *fa = NULL;
  MatInfo            info;
  PetscInt           n;
  PetscBool          known;
  PetscErrorCode     ierr = PETSC_SUCCESS;

  PetscFunctionBegin;
  if (f->symmetric) {
    PetscCall(MatGetRowIJ(F, 0, PETSC_FALSE, PETSC_FALSE, &n, &fi, &fj, &known));
    if (known) {
      if (values) PetscCall(MatSeqSBAIJGetArray(F, &fa));
      PetscCall(FromCholesky(n, fi, fj, fa, &c));
      if (values) PetscCall(MatSeqSBAIJRestoreArray(F, &fa));
      PetscCall(MatRestoreRowIJ(F, 0, PETSC_FALSE, PETSC_FALSE, &n, &fi, &fj, &known));
    }
  } else {
    PetscCall(MatSeqAIJGetCSRAndMemType(F, &fi, &fj, &fa, NULL));
    PetscCall(MatGetInfo(F, MAT_LOCAL, &info));
    PetscCall(FromLU(F->rmap->n, (PetscInt)info.nz_used, fi, fj, values ? fa : NULL, &c));
  }
  *good = (PetscBool)(c.i != NULL);
  if (*good && (!f->pair[0].M.i || c.nnz != f->pair[0].M.nnz || f->own)) {
    ierr   = MatGPUCSRFactorPattern_Private(f, (int)F->rmap->n, c.nnz, c.i, c.j, GPUCSR_INT32, good);
    f->own = PETSC_FALSE;
  }
  if (*good && values && !ierr) ierr = MatGPUCSRFactorValues_Private(f, c.a, c.dinv);
  PetscCall(PetscFree4(c.i, c.j, c.a, c.dinv));
  PetscFunctionReturn(ierr);
}

/* Is this the natural ordering? MatReorderForNonzeroDiagonal() exchanges indices in place, and ISIdentity() would return an old answer */
static PetscErrorCode Natural(IS is, PetscBool *natural)
{
  const PetscInt *index;
  PetscInt        n, k = 0;

  PetscFunctionBegin;
  PetscCall(ISGetLocalSize(is, &n));
  PetscCall(ISGetIndices(is, &index));
  while (k < n && index[k] == k) k++;
  PetscCall(ISRestoreIndices(is, &index));
  *natural = (PetscBool)(k == n);
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode MatGPUCSRFactorSymbolic_Private(Mat F, Mat A, IS row, IS col, const MatFactorInfo *info)
{
  Mat_GPUCSRFactor    *f;
  PetscBool            identity[2];
  GPUCSRAttempt        attempt;
  const Mat_SeqGPUCSR *g;
  PetscBool            asked;
  const PetscInt      *i, *j;
  char                 unused[128];

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFactorGet_Private(F, &f));
  PetscCall(PetscObjectReference((PetscObject)A));
  PetscCall(PetscObjectReference((PetscObject)row));
  PetscCall(PetscObjectReference((PetscObject)col));
  PetscCall(MatDestroy(&f->A));
  PetscCall(ISDestroy(&f->row));
  PetscCall(ISDestroy(&f->col));
  PetscCall(MatGPUCSRFactorEmpty_Private(f));
  f->A        = A;
  f->row      = row;
  f->col      = col;
  f->info     = *info;
  f->symbolic = f->numeric = f->own = PETSC_FALSE;
  f->pattern                        = A->nonzerostate;
  PetscCall(Natural(row, &identity[0]));
  PetscCall(Natural(col, &identity[1]));
  f->natural = (PetscBool)(identity[0] && identity[1]);
  g          = (Mat_SeqGPUCSR *)A->spptr; /* The device of the products, or none and says why. The host backend serves only if a kernel of this library was asked for */
  asked      = (PetscBool)(f->method >= 0 || f->method == GPUCSR_METHOD_INVERSES);
  PetscCall(MatGPUCSRDecide_Private(A));
  f->dev = g->dev && g->dev->ops->separate && !g->dev->failed[0] ? g->dev : NULL;
  PetscCall(PetscStrncpy(f->whynot, !g->dev ? g->whynot : g->dev->failed[0] ? g->dev->failed : "backend host", sizeof(f->whynot)));
  if (f->method == GPUCSR_METHOD_HOST) {
    f->dev = NULL;
    PetscCall(PetscStrncpy(f->whynot, "-mat_gpucsr_solve_kernel host was asked for", sizeof(f->whynot)));
  } else if (!f->dev && asked && GPUCSR_SCALAR_IS_DOUBLE && strcmp(g->base.config.request.format, "aij") && !g->info.fallbacks) PetscCall(GPUCSRDeviceOpen("host", &f->dev, unused, sizeof(unused)));
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
  if (f->dev && (!A->rmap->n || A->rmap->n != A->cmap->n || A->rmap->n >= 1 << 28 || i[A->rmap->n] > INT32_MAX - 1024)) {
    f->dev = NULL;
    PetscCall(PetscStrncpy(f->whynot, "the matrix is empty, not square, or does not fit 32-bit indices", sizeof(f->whynot)));
  }
  if (!f->dev) PetscCall(PetscInfo(A, "Solves with its factors are PETSc's: %s\n", f->whynot));
  f->later = (PetscBool)(f->dev && ((Mat_SeqGPUCSR *)A->spptr)->putoff);
  if (f->dev && !f->later && f->natural && info->levels == 0 && (f->type == MAT_FACTOR_ILU || f->type == MAT_FACTOR_ICC)) {
    PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, NULL, NULL));
    GPUCSRTry(&attempt, MatGPUCSRFactorPattern_Private(f, (int)A->rmap->n, i[A->rmap->n], i, j, GPUCSR_PETSCINT, &f->own)); /* own: the factor can have this pattern */
    PetscCall(MatGPUCSRFactorMet_Private(F, f, &attempt));
    if (!f->dev) f->own = PETSC_FALSE;
  }
  if (f->own || f->later) F->preallocated = PETSC_TRUE;
  else PetscCall(PETScSymbolic(F, f));
  Install(F, f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CholeskySymbolic(Mat F, Mat A, IS perm, const MatFactorInfo *info)
{
  return MatGPUCSRFactorSymbolic_Private(F, A, perm, perm, info);
}

static PetscErrorCode Numeric(Mat F, Mat A, const MatFactorInfo *info)
{
  Mat_GPUCSRFactor *f;
  GPUCSRAttempt     attempt;
  PetscBool         good = PETSC_TRUE, done = PETSC_FALSE, ready = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFactorGet_Private(F, &f));
  if (f->dev && !GPUCSRIsType(A, MATSEQAIJGPUCSR)) PetscCall(FactorLeave(F, f, PETSC_SUCCESS, "the matrix has been converted to another type"));
  if (A != f->A) { /* PETSc accepts a new pattern of A without a symbolic factorization, so this does, too */
    PetscCall(PetscObjectReference((PetscObject)A));
    PetscCall(MatDestroy(&f->A));
    f->A = A;
  }
  if ((f->own || f->later) && A->nonzerostate != f->pattern) {
    const PetscReal levels = f->info.levels;

    f->info        = *info;
    f->info.levels = levels;
    PetscCall(MatGPUCSRFactorSymbolic_Private(F, A, f->row, f->col, &f->info));
  }
  f->info    = *info;
  f->values  = GPUCSRStateOf(A);
  f->numeric = f->ondevice = PETSC_FALSE;
  if (f->dev && ((Mat_SeqGPUCSR *)A->spptr)->putoff) {
    f->later     = PETSC_TRUE;
    F->assembled = F->preallocated = PETSC_TRUE;
    Install(F, f);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (f->later) {
    f->later = PETSC_FALSE;
    if (A->nonzerostate != f->pattern || !(f->symbolic || (f->own && f->pair[0].M.i))) PetscCall(MatGPUCSRFactorSymbolic_Private(F, f->A, f->row, f->col, &f->info));
  }
  if (f->dev && (f->type == MAT_FACTOR_ILU || f->type == MAT_FACTOR_ICC)) { /* done: the device supports the pattern, and all pivots are good */
    GPUCSRTry(&attempt, f->pair[0].M.i ? PETSC_SUCCESS : FromPETSc(F, f, PETSC_FALSE, &good));
    if (good) GPUCSRThen(&attempt, MatGPUCSRFactorNumeric_Private(f, A, info, &done));
    PetscCall(MatGPUCSRFactorMet_Private(F, f, &attempt));
  }
  if (!f->dev || !done) PetscCall(PETScNumeric(F, f));
  if (f->dev && !F->factorerrortype) {
    ready = PETSC_TRUE;
    GPUCSRTry(&attempt, done ? PETSC_SUCCESS : FromPETSc(F, f, PETSC_TRUE, &ready));
    if (ready) GPUCSRThen(&attempt, MatGPUCSRFactorBuild_Private(f));
    if (attempt.error) ready = PETSC_FALSE;
    PetscCall(MatGPUCSRFactorMet_Private(F, f, &attempt));
  }
  if (ready && f->chosen == GPUCSR_METHOD_HOST) {
    PetscCall(FactorLeave(F, f, PETSC_SUCCESS, "the host is predicted to be faster, as the levels are many and narrow"));
    ready = PETSC_FALSE;
  }
  if (!ready && !f->numeric) PetscCall(PETScNumeric(F, f));
  f->ondevice  = ready;
  F->assembled = F->preallocated = PETSC_TRUE;
  Install(F, f);
  if (ready) PetscCall(PetscInfo(F, "Solves run on %s device %d, kernel %s: %s\n", f->dev->ops->name, f->dev->id, MatGPUCSRFactorKernel(f), f->why));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Turns a factor on the device into a deferred one, and frees its memory there. later: the factor is deferred now */
PetscErrorCode MatGPUCSRFactorTakeBack_Private(Mat F, Mat_GPUCSRFactor *f, PetscBool *later)
{
  PetscFunctionBegin;
  *later = f->later;
  if (f->later || !f->ondevice) PetscFunctionReturn(PETSC_SUCCESS);
  if (GPUCSRStateOf(f->A) != f->values) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatGPUCSRFactorEmpty_Private(f));
  f->numeric = PETSC_FALSE;
  f->later = *later = PETSC_TRUE;
  Install(F, f);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Computes a deferred factor by itself */
static PetscErrorCode Settle(Mat F, Mat_GPUCSRFactor *f)
{
  PetscFunctionBegin;
  if (!f->later) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCheck(GPUCSRStateOf(f->A) == f->values, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The factor of a block was made together with other blocks, is needed by itself, and the matrix has changed since: factor it again (KSPSetUp(), PCSetUp()) before");
  PetscCall(Numeric(F, f->A, &f->info));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatDestroy_GPUCSRFactor(Mat F)
{
  Mat_GPUCSRFactor *f;
  PetscErrorCode (*destroy)(Mat);

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFactorGet_Private(F, &f));
  destroy = f->petsc.destroy;
  PetscCall(MatGPUCSRFactorEmpty_Private(f));
  PetscCall(MatDestroy(&f->A));
  PetscCall(ISDestroy(&f->row));
  PetscCall(ISDestroy(&f->col));
  PetscCall(PetscFree(f->begin));
  PetscCall(PetscFree(f));
  PetscCall(PetscObjectCompose((PetscObject)F, MATGPUCSRFACTOR, NULL));
  F->ops->destroy = destroy;
  PetscCall((*destroy)(F));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatFactorGetSolverType_GPUCSR(Mat F, MatSolverType *type)
{
  PetscFunctionBegin;
  *type = MATSOLVERGPUCSR;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* direct: the reason against cuDSS, or empty */
PetscErrorCode MatGPUCSRFactorCreate_Private(Mat A, MatFactorType type, const char direct[], Mat *B)
{
  Mat_GPUCSRFactor        *f;
  PetscContainer           c;
  static const char *const kernels[] = {"auto", "host", "inverses", "ranges", "syncfree"};
  static const int         methods[] = {GPUCSR_METHOD_AUTO, GPUCSR_METHOD_HOST, GPUCSR_METHOD_INVERSES, GPUCSR_SOLVE_RANGES, GPUCSR_SOLVE_SYNCFREE};
  PetscInt                 kernel    = 0;

  PetscFunctionBegin;
  PetscCall(MatGetFactor(A, MATSOLVERPETSC, type, B));
  if (!*B) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscNew(&f));
  PetscCall(PetscContainerCreate(PETSC_COMM_SELF, &c));
  PetscCall(PetscContainerSetPointer(c, f));
  PetscCall(PetscObjectCompose((PetscObject)*B, MATGPUCSRFACTOR, (PetscObject)c));
  PetscCall(PetscContainerDestroy(&c));
  PetscCall(PetscStrncpy(f->direct, direct, sizeof(f->direct)));
  f->type      = type;
  f->symmetric = (PetscBool)(type == MAT_FACTOR_CHOLESKY || type == MAT_FACTOR_ICC);
  f->petsc     = *(*B)->ops;
  Install(*B, f);
  PetscObjectOptionsBegin((PetscObject)A); /* with the prefix of the factored matrix */
  PetscCall(PetscOptionsEList("-mat_gpucsr_solve_kernel", "Kernel of triangular solves", "MATSOLVERGPUCSR", kernels, PETSC_STATIC_ARRAY_LENGTH(kernels), kernels[0], &kernel, NULL));
  PetscOptionsEnd();
  f->method = methods[kernel];
  PetscCall(PetscFree((*B)->solvertype));
  PetscCall(PetscStrallocpy(MATSOLVERGPUCSR, &(*B)->solvertype));
  PetscCall(PetscObjectComposeFunction((PetscObject)*B, "MatFactorGetSolverType_C", MatFactorGetSolverType_GPUCSR));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetFactor_SeqAIJGPUCSR(Mat A, MatFactorType type, Mat *B)
{
  char direct[512];

  PetscFunctionBegin;
  PetscCall(MatGPUCSRFactorCuDSS_Private(A, type, B, direct, sizeof(direct)));
  if (!*B) PetscCall(MatGPUCSRFactorCreate_Private(A, type, direct, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A PC keeps the solver type of its first factor, also if its matrix becomes a MATSEQAIJ: PETSc's factor then. A MATSEQAIJ without a choice has other packages before this one */
static PetscErrorCode MatGetFactor_SeqAIJ(Mat A, MatFactorType type, Mat *B)
{
  return MatGetFactor(A, MATSOLVERPETSC, type, B);
}

/*MC
  MATSOLVERGPUCSR - "gpucsr", the solver type of ILU, ICC, LU and Cholesky factors of `MATGPUCSR` matrices, whose solves run on the GPU

  Options Database Keys:
+ -pc_factor_mat_solver_type gpucsr             - the default for such matrices; petsc: PETSc's factors, on the host
- -mat_gpucsr_solve_kernel (auto|host|inverses|ranges|syncfree) - kernel of solves; host: PETSc's

  Level: beginner

  Notes:
  Factors are those of PETSc's `MATSOLVERPETSC` up to rounding, with its orderings, levels of fill and shifts. ILU and ICC are computed on the GPU. If a pivot needs a shift, or
  is an error, PETSc's own factorization on the host decides, and its values are copied to the GPU. LU and Cholesky are factored on the host, and solved on the GPU; large
  ones are passed on to `MATSOLVERCUDSS` where cuDSS is found (-mat_gpucsr_cudss_least).

  With ILU(0) and ICC(0) in natural ordering the factor has the matrix' pattern, and no part of the factorization runs on the host. PETSc's factor is computed there when
  an operation needs it (viewing the values, the diagonal or the inertia of the factor); the matrix must not have changed since.

  Matrices with many narrow levels (a chain) are solved on the host if that is predicted to be faster; `-ksp_view` prints the choice and its reason.

.seealso: `MATGPUCSR`, `MATSOLVERCUDSS`, `PCFactorSetMatSolverType()`, `MatGetFactor()`, `PCILU`, `PCICC`, `PCLU`, `PCCHOLESKY`
M*/
PetscErrorCode MatGPUCSRFactorRegister_Private(void)
{
  static const MatFactorType types[] = {MAT_FACTOR_LU, MAT_FACTOR_CHOLESKY, MAT_FACTOR_ILU, MAT_FACTOR_ICC};

  PetscFunctionBegin;
  for (int k = 0; k < 4; k++) PetscCall(MatSolverTypeRegister(MATSOLVERGPUCSR, MATSEQAIJGPUCSR, types[k], MatGetFactor_SeqAIJGPUCSR));
  for (int k = 0; k < 4; k++) PetscCall(MatSolverTypeRegister(MATSOLVERGPUCSR, MATSEQAIJ, types[k], MatGetFactor_SeqAIJ));
  PetscCall(MatGPUCSRCuDSSRegister_Private());
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The solver type "cudss" of MatGetFactor(): LU, Cholesky and LDL^T of MATSEQAIJGPUCSR by cuDSS on its device. The matrix' CSR on the device is copied there, since A may change before the factor is
  used; the host takes part in the ordering alone.
*/
#include "cudss.h"

/* Frees the library's objects of a factor */
static PetscErrorCode End(Mat_CuDSS *f)
{
  const PetscBool works = (PetscBool)!f->dev->failed[0];
  void           *handle;

  PetscFunctionBegin;
  if (f->data && works) {
    PetscCall(CuDSSHandle(f->dev, &handle));
    (void)(*CuDSS.DataDestroy)(handle, f->data);
  }
  if (f->matrix && works) (void)(*CuDSS.MatrixDestroy)(f->matrix);
  if (f->config) (void)(*CuDSS.ConfigDestroy)(f->config);
  f->data = f->matrix = f->config = NULL;
  f->analyzed = f->factored = PETSC_FALSE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Frees a factor's memory on the device */
static PetscErrorCode Release(void *factor)
{
  Mat_CuDSS   *f   = (Mat_CuDSS *)factor;
  GPUCSRDevice dev = f->dev;
  GPUCSRBool   reached;

  PetscFunctionBegin;
  PetscCall(GPUCSRDeviceReach(dev, PETSC_TRUE, &reached));
  PetscCall(End(f));
  PetscCall(MatCuDSSBuffersFree_Private(f));
  if (f->map) PetscCall(GPUCSRFree(dev, sizeof(int32_t) * (size_t)f->T.nnz, (void **)&f->map));
  if (f->T.dev) PetscCall(GPUCSRStorageDestroy(&f->T));
  if (f->A.dev) PetscCall(GPUCSRStorageDestroy(&f->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static GPUCSRLivingList factors = {GPUCSR_FINAL_PRODUCT, Release, NULL};

static PetscErrorCode MatDestroy_CuDSS(Mat F)
{
  Mat_CuDSS *f = (Mat_CuDSS *)F->data;

  PetscFunctionBegin;
  if (!f) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Release(f));
  PetscCall(GPUCSRLivingRemove(&f->living));
  PetscCall(MatCuDSSSchurFree_Private(&f->schur));
  PetscCall(MatCuDSSSchurCompose_Private(F, PETSC_FALSE));
  PetscCall(PetscObjectComposeFunction((PetscObject)F, "MatFactorGetSolverType_C", NULL));
  PetscCall(PetscFree(F->data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The factor error for an error of the library, of the device or of the values, with one warning. Any other error goes on */
PetscErrorCode MatCuDSSFailed_Private(Mat F, Mat_CuDSS *f, const char phase[], const GPUCSRAttempt *attempt, MatFactorError *error)
{
  const PetscErrorCode ierr     = attempt->error;
  const PetscBool      singular = (PetscBool)(ierr == PETSC_ERR_MAT_LU_ZRPVT || ierr == PETSC_ERR_MAT_CH_ZRPVT); /* a Schur complement */
  char                 text[640];

  PetscFunctionBegin;
  PetscCheck(singular || ierr == PETSC_ERR_MEM || ierr == PETSC_ERR_LIB || ierr == PETSC_ERR_GPU || ierr == PETSC_ERR_FP, PETSC_COMM_SELF, ierr, "%s", attempt->message);
  if (ierr == PETSC_ERR_GPU) PetscCall(PetscStrncpy(f->dev->failed, attempt->message, sizeof(f->dev->failed)));
  *error = singular ? MAT_FACTOR_NUMERIC_ZEROPIVOT : ierr == PETSC_ERR_MEM ? MAT_FACTOR_OUTMEMORY : MAT_FACTOR_OTHER;
  PetscCall(PetscSNPrintf(text, sizeof(text), "%s of a matrix of %" PetscInt_FMT " rows by cuDSS failed: %s", phase, F->rmap->n, attempt->message));
  PetscCall(GPUCSRWarn(text));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A's CSR, copied on the device: its pattern if that is new, and its values, which must be finite */
static PetscErrorCode Copy(Mat_CuDSS *f, Mat A)
{
  const PetscObjectState old = f->values;
  GPUCSRDevice           dev = f->dev;
  GPUCSRStorage         *csr;
  PetscBool              finite;

  PetscFunctionBegin;
  PetscCall((*dev->ops->activate)(dev->id));
  PetscCall(MatGPUCSRMirror_Private(A, dev, PETSC_TRUE, &csr));
  f->values  = GPUCSRStateOf(A);
  f->fresh   = (PetscBool)(f->fresh && f->values == old); /* PETSc analyzes and factors the same values */
  f->current = PETSC_FALSE;
  for (int k = f->A.format ? CSR_VAL : CSR_ROWPTR; k <= CSR_VAL; k++) {
    const size_t bytes = k == CSR_ROWPTR ? sizeof(int32_t) * ((size_t)csr->m + 1) : (k == CSR_COL ? sizeof(int32_t) : sizeof(double)) * (size_t)csr->nnz;

    if (!f->A.format) PetscCall(GPUCSRCSRCreate(dev, csr->m, csr->n, csr->nnz, &f->A));
    PetscCall((*dev->ops->copy)(dev->id, f->A.array[k].data, csr->array[k].data, bytes, GPUCSR_ON_DEVICE, dev->stream));
  }
  PetscCall(MatCuDSSFinite_Private(f, &finite));
  PetscCheck(finite, PETSC_COMM_SELF, PETSC_ERR_FP, "the matrix has values that are not finite");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A new configuration and new data of the library, for the copied matrix */
static PetscErrorCode Begin(Mat_CuDSS *f, void *handle)
{
  const CuDSSRequest *r  = &f->request;
  const int           on = 1, none = 0;
  const struct {
    int         which, value; /* -1: the library's choice */
    const char *what;
  } settings[] = {
    {CUDSS_REORDERING,    r->reordering ? (int)r->reordering : -1, "-mat_gpucsr_cudss_reordering"   },
    {CUDSS_MATCHING,      (int)r->matching - 1,                    "-mat_gpucsr_cudss_matching"     },
    {CUDSS_PIVOTING,      r->pivoting ? (int)r->pivoting : -1,     "-mat_gpucsr_cudss_pivoting"     },
    {CUDSS_DETERMINISTIC, r->deterministic ? 1 : -1,               "-mat_gpucsr_cudss_deterministic"},
    {CUDSS_HYBRID,        f->hybrid ? 1 : -1,                      "-mat_gpucsr_cudss_hybrid"       },
    {CUDSS_THREADS,       f->dev->threads,                         "a number of host threads"       }
  };

  PetscFunctionBegin;
  PetscCall(End(f));
  f->mode = 0;
  CuDSSCall(ConfigCreate, &f->config);
  CuDSSCall(DataCreate, handle, &f->data);
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(settings); k++)
    if (settings[k].value >= 0) CuDSSCheck(settings[k].what, (*CuDSS.ConfigSet)(f->config, settings[k].which, &settings[k].value, sizeof(int)));
  if (f->schur.n) {
    CuDSSCheck("the mode of Schur complements", (*CuDSS.ConfigSet)(f->config, CUDSS_SCHUR_MODE, &on, sizeof(on)));
    CuDSSCheck("no matching", (*CuDSS.ConfigSet)(f->config, CUDSS_MATCHING, &none, sizeof(none))); /* it would permute rows of A11 and A21 */
    CuDSSCheck("the rows of a Schur complement", (*CuDSS.DataSet)(handle, f->data, CUDSS_SCHUR_ROWS, f->schur.marks, sizeof(int32_t) * (size_t)f->A.m));
  }
  CuDSSCall(MatrixCreateCsr, &f->matrix, f->A.m, f->A.n, f->A.nnz, f->A.array[CSR_ROWPTR].data, NULL, f->A.array[CSR_COL].data, f->A.array[CSR_VAL].data, CUDSS_INT32, CUDSS_INT32, CUDSS_DOUBLE, f->kind, f->kind == CUDSS_GENERAL ? CUDSS_FULL : CUDSS_UPPER, 0);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A result that not each of the library's orderings has: zero if it is unknown */
static PetscErrorCode Datum(Mat_CuDSS *f, int which, void *value, size_t bytes, PetscBool *known)
{
  void  *handle;
  size_t written;
  int    status;

  PetscFunctionBegin;
  PetscCall(CuDSSHandle(f->dev, &handle));
  PetscCall(PetscMemzero(value, bytes));
  status = (*CuDSS.DataGet)(handle, f->data, which, value, bytes, &written);
  *known = (PetscBool)(status != CUDSS_INVALID_VALUE && status != CUDSS_NOT_SUPPORTED);
  if (*known) CuDSSCheck("cudssDataGet()", status);
  else {
    PetscCall(PetscInfo(NULL, "cuDSS has no result %d with this ordering\n", which));
    PetscCall(PetscMemzero(value, bytes));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One phase of a factorization. The analysis reads the shape of right-hand sides: one column. info: the pivot that ended the phase; 0: none. A matrix is not taken for positive definite if the library does not say */
static PetscErrorCode Phase(Mat_CuDSS *f, int phase, const char what[], int *info)
{
  GPUCSRDevice  dev    = f->dev;
  double *const values = (double *)f->A.array[CSR_VAL].data; /* in place of columns */
  PetscBool     known;
  double        least;

  PetscFunctionBegin;
  *info = 0;
  /* The library replaces pivots below a number of its own, whatever the size of the entries: a matrix of small ones would look singular. -1: that number */
  least = f->norm > 0 && f->norm < 1 ? 1e-13 * f->norm : -1;
  CuDSSCheck("the least pivot", (*CuDSS.ConfigSet)(f->config, CUDSS_PIVOT_EPSILON, &least, sizeof(least)));
  PetscCall(MatCuDSSRun_Private(f, phase, what, 1, values, (size_t)f->A.m, values, (size_t)f->A.m));
  PetscCall((*dev->ops->streamsynchronize)(dev->id, dev->stream));
  if (phase != CUDSS_ANALYSIS) {
    PetscCall(Datum(f, CUDSS_INFO, info, sizeof(*info), &known));
    if (!known && f->kind == CUDSS_POSITIVE) *info = 1;
  }
  PetscCheck(!*info || f->kind == CUDSS_POSITIVE, PETSC_COMM_SELF, PETSC_ERR_LIB, "cuDSS: %s ended with info %d", what, *info);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Orders the unknowns and finds the pattern of the factors, in host memory if the device has no room for them */
static PetscErrorCode Analyze(Mat_CuDSS *f)
{
  GPUCSRDevice dev = f->dev;
  void        *handle;
  int64_t      estimate[CUDSS_ESTIMATES_ALL] = {0}, room = 0, limit;
  PetscBool    known;
  int          unused;
  const double begin = GPUCSRNow();

  PetscFunctionBegin;
  f->hybrid = (PetscBool)(f->request.hybrid == CUDSS_ALWAYS);
  PetscCall(CuDSSHandle(dev, &handle));
  for (int again = 0; again < 2; again++) {
    size_t left, total;

    PetscCall(Begin(f, handle));
    PetscCall((*dev->ops->memory)(dev->id, &left, &total)); /* bytes for the library; Begin() has freed the old factors */
    if (dev->limit) left = PetscMin(left, dev->limit > dev->allocated ? dev->limit - dev->allocated : 0);
    room  = (int64_t)left;
    limit = room - room / 10;
    if (f->hybrid) CuDSSCheck("-mat_gpucsr_cudss_hybrid", (*CuDSS.ConfigSet)(f->config, CUDSS_HYBRID_LIMIT, &limit, sizeof(limit)));
    PetscCall(Phase(f, CUDSS_ANALYSIS, "the analysis", &unused));
    PetscCall(Datum(f, CUDSS_ESTIMATES, estimate, sizeof(estimate), &known));
    f->bytes = (double)estimate[f->hybrid ? CUDSS_HYBRID_LEAST : CUDSS_DEVICE_PEAK];
    if (f->bytes <= (double)room || f->hybrid || f->request.hybrid == CUDSS_NEVER) break;
    PetscCall(PetscInfo(NULL, "Factors need %g bytes on the device, which has %g: host memory is used as well\n", f->bytes, (double)room));
    f->hybrid = PETSC_TRUE;
  }
  PetscCheck(f->bytes <= (double)room, PETSC_COMM_SELF, PETSC_ERR_MEM, "cuDSS needs %g bytes on %s device %d for the factors%s, which has %g free", f->bytes, dev->ops->name, dev->id, f->hybrid ? ", with host memory for most of them" : "", (double)room);
  PetscCall(Datum(f, CUDSS_FACTOR_NONZEROS, &f->entries, sizeof(f->entries), &known));
  f->analyzed = f->fresh = PETSC_TRUE;
  f->seconds[0]          = GPUCSRNow() - begin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A pivot that is not positive asks for L D L^T, and for L U in a factor of PCLU */
static PetscErrorCode Factor(Mat_CuDSS *f)
{
  const PetscBool again    = f->factored;
  const int       phase    = again && !f->schur.n && f->request.reordering != 1 && f->request.reordering != 2 ? CUDSS_REFACTORIZATION : CUDSS_FACTORIZATION; /* these two orderings choose pivots of the whole matrix each time */
  int32_t         pairs[2] = {0, 0}, perturbed = 0;
  int             info;
  PetscBool       known = PETSC_TRUE;
  const double    begin = GPUCSRNow();

  PetscFunctionBegin;
  f->factored = f->tried = PETSC_FALSE;
  PetscCall(Phase(f, phase, again ? "a new factorization" : "the factorization", &info));
  if (info) {
    f->kind = f->type == MAT_FACTOR_LU ? CUDSS_GENERAL : CUDSS_SYMMETRIC;
    PetscCall(PetscInfo(NULL, "The matrix is not positive definite: cuDSS factors it as %s\n", f->kind == CUDSS_GENERAL ? "L U" : "L D L^T"));
    PetscCall(Analyze(f));
    PetscCall(Phase(f, CUDSS_FACTORIZATION, "the factorization", &info));
  }
  PetscCall(Datum(f, CUDSS_PERTURBED, &perturbed, sizeof(perturbed), &known));
  f->perturbed = perturbed;
  if (f->kind == CUDSS_SYMMETRIC && !f->schur.n) PetscCall(Datum(f, CUDSS_INERTIA, pairs, sizeof(pairs), &known));
  f->positives = f->kind == CUDSS_POSITIVE ? f->A.m : known ? pairs[0] : -1;
  f->negative  = pairs[1];
  if (f->schur.n) PetscCall(MatCuDSSSchurGet_Private(f));
  f->factored               = PETSC_TRUE;
  f->seconds[again ? 2 : 1] = GPUCSRNow() - begin;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Analyzes and factors the copied values: the last analysis may have the matching and the scaling of older values */
PetscErrorCode MatCuDSSAgain_Private(Mat_CuDSS *f)
{
  PetscFunctionBegin;
  PetscCall(Analyze(f));
  PetscCall(Factor(f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode KindOf(Mat A, MatFactorType type, int *kind)
{
  PetscBool known, spd = PETSC_FALSE;

  PetscFunctionBegin;
  PetscCall(MatIsSPDKnown(A, &known, &spd));
  *kind = known && spd ? CUDSS_POSITIVE : type == MAT_FACTOR_LU ? CUDSS_GENERAL : CUDSS_SYMMETRIC;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Was this pattern analyzed? */
static PetscBool Known(const Mat_CuDSS *f, Mat A)
{
  return (PetscBool)(f->A.format && f->id == ((PetscObject)A)->id && f->pattern == A->nonzerostate);
}

static PetscErrorCode Symbolic(Mat_CuDSS *f, Mat A)
{
  PetscFunctionBegin;
  if (!Known(f, A)) PetscCall(Release(f));
  f->id      = ((PetscObject)A)->id;
  f->pattern = A->nonzerostate;
  PetscCall(KindOf(A, f->type, &f->kind));
  PetscCall(Copy(f, A));
  f->analyzed = PETSC_FALSE;
  if (!f->zero) PetscCall(Analyze(f));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* good: no row is zero, and no pivot was replaced in vain. MAT_SPD is only a hint for LU: PETSc keeps the option when MatZeroRows() makes a matrix unsymmetric */
static PetscErrorCode Numeric(Mat_CuDSS *f, Mat A, PetscBool *good)
{
  int kind;

  PetscFunctionBegin;
  PetscCall(KindOf(A, f->type, &kind));
  if (!f->analyzed || !Known(f, A) || (f->kind == CUDSS_POSITIVE && kind == CUDSS_GENERAL)) PetscCall(Symbolic(f, A));
  else PetscCall(Copy(f, A));
  *good = (PetscBool)!f->zero;
  if (f->zero) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Factor(f));
  f->factorizations++;
  for (;;) {
    const PetscBool hint = (PetscBool)(f->kind == CUDSS_POSITIVE && f->type == MAT_FACTOR_LU);

    *good = PETSC_TRUE;
    if (((f->perturbed || f->schur.n) && !(f->shifts && f->perturbed)) || hint) PetscCall(MatCuDSSTrial_Private(f, good));
    if (*good || (f->fresh && !hint)) break;
    if (hint) f->kind = CUDSS_GENERAL;
    PetscCall(MatCuDSSAgain_Private(f));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The symbolic part of a factorization, or all of it: PETSc accepts a new pattern without a symbolic factorization */
static PetscErrorCode Make(Mat F, Mat A, const MatFactorInfo *info, PetscBool numeric)
{
  Mat_CuDSS     *f     = (Mat_CuDSS *)F->data;
  MatFactorError error = MAT_FACTOR_NOERROR;
  PetscBool      good  = PETSC_TRUE;
  PetscInt       row   = A->rmap->n;
  GPUCSRAttempt  attempt;

  PetscFunctionBegin;
  if (numeric) F->assembled = F->preallocated = PETSC_TRUE;
  F->factorerrortype = MAT_FACTOR_NOERROR;
  f->refused         = MAT_FACTOR_NOERROR;
  f->fill            = info->fill;
  f->shifts          = (PetscBool)(info->shifttype != (PetscReal)MAT_SHIFT_NONE);
  PetscCall(MatCuDSSSchurClear_Private(F));
  if (!A->rmap->n) PetscFunctionReturn(PETSC_SUCCESS);
  if (!f->analyzed || !Known(f, A)) {
    const PetscInt *i;

    PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, NULL, NULL, NULL));
    for (row = 0; row < A->rmap->n && i[row + 1] > i[row]; row++) {
    }
  }
  if (row < A->rmap->n) {
    f->analyzed = f->factored = PETSC_FALSE;
    F->factorerrortype        = MAT_FACTOR_STRUCT_ZEROPIVOT;
    PetscCheck(!A->erroriffailure, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "Row %" PetscInt_FMT " of the matrix has no entries", row);
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  GPUCSRTry(&attempt, numeric ? Numeric(f, A, &good) : Symbolic(f, A));
  if (attempt.error || !good) {
    f->factored = PETSC_FALSE;
    PetscCall(MatCuDSSSchurClear_Private(F));
  }
  if (attempt.error) {
    f->analyzed = PETSC_FALSE;
    f->id       = 0;                                                                   /* the copy of the pattern may be incomplete */
    if (attempt.error == PETSC_ERR_FP && !numeric) PetscFunctionReturn(PETSC_SUCCESS); /* the factorization may have finite values */
    PetscCall(MatCuDSSFailed_Private(F, f, numeric ? "A factorization" : "The analysis", &attempt, &error));
    PetscCheck(!A->erroriffailure, PETSC_COMM_SELF, attempt.error, "%s", attempt.message);
  } else if (!good && f->schur.n && !f->perturbed && !f->zero) {
    error = MAT_FACTOR_OTHER;
    PetscCheck(!A->erroriffailure, PETSC_COMM_SELF, PETSC_ERR_LIB, "cuDSS gives a wrong Schur complement: a product shows it");
    PetscCall(GPUCSRWarn("cuDSS gives a wrong Schur complement: the factor is refused"));
  } else if (!good) {
    error = MAT_FACTOR_NUMERIC_ZEROPIVOT;
    if (f->zero) f->perturbed = 0;
    PetscCheck(!A->erroriffailure, PETSC_COMM_SELF, f->type == MAT_FACTOR_LU ? PETSC_ERR_MAT_LU_ZRPVT : PETSC_ERR_MAT_CH_ZRPVT, "Zero pivot: %scuDSS has replaced %d pivots, and the matrix of %" PetscInt_FMT " rows is singular to working precision", f->zero ? "a row is zero, " : "", f->perturbed,
               A->rmap->n);
  }
  F->factorerrortype = error;
  if (numeric) PetscCall(MatGPUCSRReportFactor_Private(f->type, A->rmap->n, "cudss", f->why, f->seconds[f->factorizations > 1 ? 2 : 1]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Orderings of PETSc are not used: the library has its own */
static PetscErrorCode MatLUFactorSymbolic_CuDSS(Mat F, Mat A, IS row, IS col, const MatFactorInfo *info)
{
  return Make(F, A, info, PETSC_FALSE);
}

static PetscErrorCode MatCholeskyFactorSymbolic_CuDSS(Mat F, Mat A, IS row, const MatFactorInfo *info)
{
  return Make(F, A, info, PETSC_FALSE);
}

static PetscErrorCode MatFactorNumeric_CuDSS(Mat F, Mat A, const MatFactorInfo *info)
{
  return Make(F, A, info, PETSC_TRUE);
}

/* A trial vouches for the signs: if refinement with the factor converges, no eigenvalue has changed its sign between the matrix and L D L^T */
static PetscErrorCode MatGetInertia_CuDSS(Mat F, PetscInt *negative, PetscInt *zero, PetscInt *positive)
{
  Mat_CuDSS *f    = (Mat_CuDSS *)F->data;
  PetscBool  good = PETSC_TRUE;

  PetscFunctionBegin;
  PetscCheck(f->factored || !F->rmap->n, PETSC_COMM_SELF, PETSC_ERR_ARG_WRONGSTATE, "The inertia needs a factorization that has succeeded");
  PetscCheck(!f->schur.n, PETSC_COMM_SELF, PETSC_ERR_SUP, "cuDSS does not say the inertia with a Schur complement (MatFactorSetSchurIS())");
  PetscCheck(f->positives >= 0, PETSC_COMM_SELF, PETSC_ERR_SUP, "cuDSS does not say the inertia with this ordering: take another -mat_gpucsr_cudss_reordering");
  if (F->rmap->n && !f->tried) PetscCall(MatCuDSSTrial_Private(f, &good));
  if (!good && !f->fresh) {
    PetscCall(MatCuDSSAgain_Private(f));
    PetscCall(MatCuDSSTrial_Private(f, &good));
  }
  PetscCheck(good, PETSC_COMM_SELF, PETSC_ERR_LIB, "The factors of cuDSS for %" PetscInt_FMT " rows are too inaccurate for the inertia: -mat_gpucsr_cudss_matching or _pivoting", F->rmap->n);
  if (negative) *negative = f->negative;
  if (positive) *positive = f->positives;
  if (zero) *zero = F->rmap->n - f->negative - f->positives;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetInfo_CuDSS(Mat F, MatInfoType type, MatInfo *info)
{
  const Mat_CuDSS *f = (const Mat_CuDSS *)F->data;

  PetscFunctionBegin;
  PetscCall(PetscMemzero(info, sizeof(*info)));
  info->block_size        = 1;
  info->nz_used           = (PetscLogDouble)f->entries;
  info->nz_allocated      = (PetscLogDouble)f->entries;
  info->memory            = f->bytes;
  info->fill_ratio_given  = f->fill;
  info->fill_ratio_needed = f->A.nnz ? (double)f->entries / (double)f->A.nnz : 1;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatFactorGetSolverType_CuDSS(Mat F, MatSolverType *type)
{
  PetscFunctionBegin;
  *type = MATSOLVERCUDSS;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatView_CuDSS(Mat F, PetscViewer viewer)
{
  static const char *const kinds[] = {"L U", "L D L^T", NULL, "L L^T"};
  const Mat_CuDSS         *f       = (const Mat_CuDSS *)F->data;

  PetscFunctionBegin;
  if (!GPUCSRViewsInfo(viewer)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscViewerASCIIPrintf(viewer, "%s on %s device %d, because %s\n", CuDSSName(), f->dev->ops->name, f->dev->id, f->why));
  PetscCall(PetscViewerASCIIPrintf(viewer, "factors: %s, %.0f nonzeros, %.0f bytes on the device%s\n", kinds[f->kind], (double)f->entries, f->bytes, f->hybrid ? ", most in host memory" : ""));
  if (f->schur.n) PetscCall(PetscViewerASCIIPrintf(viewer, "Schur complement: %d rows\n", f->schur.n));
  if (f->perturbed) PetscCall(PetscViewerASCIIPrintf(viewer, "pivots replaced: %d\n", f->perturbed));
  PetscCall(PetscViewerASCIIPrintf(viewer, "set-up, ms: analysis %.2f, factorization %.2f, last of new values %.2f\n", 1e3 * f->seconds[0], 1e3 * f->seconds[1], 1e3 * f->seconds[2]));
  PetscCall(PetscViewerASCIIPrintf(viewer, "solves: %" PetscInt_FMT ", steps of refinement %" PetscInt_FMT ", largest backward error of those checked %.1e\n", f->solves, f->steps, f->worst));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* why stays empty if the matrix is on a GPU */
static PetscErrorCode OnDevice(Mat A, char why[], size_t len)
{
  Mat_SeqGPUCSR *g    = (Mat_SeqGPUCSR *)A->spptr;
  PetscBool      cuda = PETSC_FALSE;

  PetscFunctionBegin;
  why[0] = 0;
  PetscCall(MatGPUCSRDecide_Private(A));
  if (g->dev) cuda = (PetscBool)(!strcmp(g->dev->ops->name, "cuda"));
  if (!g->dev) PetscCall(PetscStrncpy(why, g->whynot, len));
  else if (!cuda) PetscCall(PetscStrncpy(why, "the matrix is on the host", len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* why stays empty if cuDSS can factor A */
static PetscErrorCode Able(Mat A, char why[], size_t len)
{
  PetscFunctionBegin;
  PetscCall(OnDevice(A, why, len));
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  if (((Mat_SeqGPUCSR *)A->spptr)->dev->failed[0]) PetscCall(PetscSNPrintf(why, len, "the device has failed: %s", ((Mat_SeqGPUCSR *)A->spptr)->dev->failed));
  else if (A->rmap->n != A->cmap->n) PetscCall(PetscStrncpy(why, "the matrix is not square", len));
  else PetscCall(CuDSSOpen(why, len));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Create(Mat A, MatFactorType type, const char why[], Mat *B)
{
  Mat_CuDSS               *f;
  static const char *const reorderings[] = {"auto", "btf_colamd", "colamd", "amd", "nested_dissection", "natural"};
  static const char *const matchings[]   = {"auto", "none", "count", "smallest", "smallest_alternative", "sum", "product"};
  static const char *const pivotings[]   = {"auto", "none", "column", "row", "diagonal", "block", "bunch_kaufman"};
  static const char *const whens[]       = {"auto", "never", "always"}; /* CuDSSWhen */

  PetscFunctionBegin;
  PetscCall(PetscNew(&f));
  f->type    = type;
  f->dev     = ((Mat_SeqGPUCSR *)A->spptr)->dev;
  f->request = (CuDSSRequest){.refine = 5, .error = 1e-10};
  PetscObjectOptionsBegin((PetscObject)A);
  PetscCall(PetscOptionsEList("-mat_gpucsr_cudss_reordering", "Ordering of the unknowns", "MATSOLVERCUDSS", reorderings, 6, reorderings[0], &f->request.reordering, NULL));
  PetscCall(PetscOptionsEList("-mat_gpucsr_cudss_matching", "Large entries are brought to the diagonal: which sense", "MATSOLVERCUDSS", matchings, 7, matchings[0], &f->request.matching, NULL));
  PetscCall(PetscOptionsEList("-mat_gpucsr_cudss_pivoting", "Search for pivots", "MATSOLVERCUDSS", pivotings, 7, pivotings[0], &f->request.pivoting, NULL));
  PetscCall(PetscOptionsEList("-mat_gpucsr_cudss_hybrid", "Keep factors in host memory", "MATSOLVERCUDSS", whens, 3, whens[0], &f->request.hybrid, NULL));
  PetscCall(PetscOptionsBool("-mat_gpucsr_cudss_deterministic", "The same bits in every run", "MATSOLVERCUDSS", f->request.deterministic, &f->request.deterministic, NULL));
  PetscCall(PetscOptionsEList("-mat_gpucsr_cudss_check", "Check solutions by their residual", "MATSOLVERCUDSS", whens, 3, whens[0], &f->request.check, NULL));
  PetscCall(PetscOptionsBoundedInt("-mat_gpucsr_cudss_refine", "Most steps of iterative refinement", "MATSOLVERCUDSS", f->request.refine, &f->request.refine, NULL, 0));
  PetscCall(PetscOptionsReal("-mat_gpucsr_cudss_error", "Backward error above which a solution is refused", "MATSOLVERCUDSS", f->request.error, &f->request.error, NULL));
  PetscOptionsEnd();
  PetscCheck(f->request.error > 0, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-mat_gpucsr_cudss_error %g: must be positive", (double)f->request.error);
  PetscCall(PetscStrncpy(f->why, why, sizeof(f->why)));
  PetscCall(MatCreate(PetscObjectComm((PetscObject)A), B));
  PetscCall(MatSetSizes(*B, A->rmap->n, A->cmap->n, A->rmap->N, A->cmap->N));
  PetscCall(PetscStrallocpy(MATSOLVERCUDSS, &((PetscObject)*B)->type_name));
  PetscCall(MatSetUp(*B));
  (*B)->data       = f;
  (*B)->factortype = type;
  PetscCall(PetscFree((*B)->solvertype));
  PetscCall(PetscStrallocpy(MATSOLVERCUDSS, &(*B)->solvertype));
  PetscCall(GPUCSRLivingAdd(&factors, &f->living, f));
  PetscCall(PetscObjectComposeFunction((PetscObject)*B, "MatFactorGetSolverType_C", MatFactorGetSolverType_CuDSS));
  (*B)->ops->destroy = MatDestroy_CuDSS;
  (*B)->ops->view    = MatView_CuDSS;
  (*B)->ops->getinfo = MatGetInfo_CuDSS;
  if (type == MAT_FACTOR_LU) {
    (*B)->ops->lufactorsymbolic = MatLUFactorSymbolic_CuDSS;
    (*B)->ops->lufactornumeric  = MatFactorNumeric_CuDSS;
  } else {
    (*B)->ops->choleskyfactorsymbolic = MatCholeskyFactorSymbolic_CuDSS;
    (*B)->ops->choleskyfactornumeric  = MatFactorNumeric_CuDSS;
    (*B)->ops->getinertia             = MatGetInertia_CuDSS;
  }
  PetscCall(MatCuDSSSchurCompose_Private(*B, PETSC_TRUE));
  MatCuDSSSolveOps_Private(*B);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* For solver type gpucsr: *B stays NULL, and why says the reason, if PETSc's factor is the better or the only one. Without a GPU both stay empty */
PetscErrorCode MatGPUCSRFactorCuDSS_Private(Mat A, MatFactorType type, Mat *B, char why[], size_t len)
{
  PetscReal least = GPUCSRMachineShared.cudss_least;
  PetscBool triangles, asked;
  char      text[320];

  PetscFunctionBegin;
  *B     = NULL;
  why[0] = 0;
  if (type != MAT_FACTOR_LU && type != MAT_FACTOR_CHOLESKY) PetscFunctionReturn(PETSC_SUCCESS);
  PetscObjectOptionsBegin((PetscObject)A);
  PetscCall(PetscOptionsReal("-mat_gpucsr_cudss_least", "Rows from which on cuDSS factors", "MATSOLVERCUDSS", least, &least, &asked));
  PetscOptionsEnd();
  PetscCall(OnDevice(A, text, sizeof(text)));
  if (text[0] && !asked) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscOptionsHasName(((PetscObject)A)->options, ((PetscObject)A)->prefix, "-mat_gpucsr_solve_kernel", &triangles));
  if (triangles) PetscCall(PetscStrncpy(why, "-mat_gpucsr_solve_kernel asks for solves with its triangles", len));
  else if (!((PetscReal)A->rmap->n >= least)) PetscCall(PetscSNPrintf(why, len, "it has fewer than %.0f rows (-mat_gpucsr_cudss_least)", (double)least));
  else PetscCall(Able(A, why, len));
  if (why[0]) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscSNPrintf(text, sizeof(text), "the matrix has %.0f rows or more (-mat_gpucsr_cudss_least)", (double)least));
  PetscCall(Create(A, type, text, B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MatGetFactor_SeqAIJGPUCSR_CuDSS(Mat A, MatFactorType type, Mat *B)
{
  char why[512];

  PetscFunctionBegin;
  PetscCall(Able(A, why, sizeof(why)));
  PetscCheck(!why[0], PETSC_COMM_SELF, PETSC_ERR_SUP, "Solver type %s cannot factor this matrix: %s. -pc_factor_mat_solver_type %s takes PETSc's factor then", MATSOLVERCUDSS, why, MATSOLVERGPUCSR);
  PetscCall(Create(A, type, "it was asked for", B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*MC
  MATSOLVERCUDSS - "cudss", the solver type of LU and Cholesky factors of `MATGPUCSR` matrices by NVIDIA's direct solver cuDSS, on the GPU

  Options Database Keys:
+ -pc_factor_mat_solver_type cudss                                 - takes it, or is an error that names the reason
. -mat_gpucsr_cudss_library file                                   - libcudss.so.1, if the loader does not find it
. -mat_gpucsr_cudss_least rows                                     - the least size for which `MATSOLVERGPUCSR`, the default, takes it where it is found; 10000
. -mat_gpucsr_cudss_reordering (auto|nested_dissection|amd|colamd|btf_colamd|natural) - ordering of the unknowns
. -mat_gpucsr_cudss_matching (auto|none|count|smallest|smallest_alternative|sum|product) - entries that are brought to the diagonal
. -mat_gpucsr_cudss_pivoting (auto|none|column|row|diagonal|block|bunch_kaufman) - search for pivots
. -mat_gpucsr_cudss_hybrid (auto|never|always)                     - factors in host memory; auto: if the device has no room
. -mat_gpucsr_cudss_deterministic (0|1)                            - the same bits in every run
. -mat_gpucsr_cudss_check (auto|never|always)                      - check of solutions; auto: not inside a Krylov method that looks at its residuals
. -mat_gpucsr_cudss_refine steps                                   - most steps of iterative refinement (5)
- -mat_gpucsr_cudss_error e                                        - backward error above which a solution is refused (1e-10)

  Level: beginner

  Notes:
  cuDSS 1.x is opened at run time, and never required. Solver type `MATSOLVERGPUCSR` passes matrices of -mat_gpucsr_cudss_least rows or more on to it. Orderings of PETSc are not
  used.

  A matrix known to be positive definite (`MAT_SPD`) is factored as L L^T, by `PCLU` as well; any other Cholesky factor is L D L^T, whose inertia `MatGetInertia()` gives. `MatSolve()`,
  `MatSolveTranspose()` and `MatMatSolve()` run on the GPU, for vectors and dense matrices there or on the host.

  `MatFactorSetSchurIS()` before the factorization asks for a Schur complement, a dense matrix on the host that is checked by a product. `MatSolve()` and `MatMatSolve()` solve the whole system. With it
  there is no `MatSolveTranspose()` of L U, no `MatGetInertia()`, no matching, and no ordering colamd or btf_colamd.

  The normwise backward error of each solution is checked. A solution above the bound after refinement is Inf, and `KSPSolve()` with `KSPPREONLY` ends with `KSP_DIVERGED_PC_FAILED`. Failures:
  `MAT_FACTOR_STRUCT_ZEROPIVOT` for a row without entries, `MAT_FACTOR_NUMERIC_ZEROPIVOT` for a matrix that is singular to working precision, `MAT_FACTOR_OUTMEMORY`, and `MAT_FACTOR_OTHER`. With
  -pc_factor_shift_type cuDSS may replace small pivots; solutions are not checked then.

.seealso: `MATGPUCSR`, `MATSOLVERGPUCSR`, `PCFactorSetMatSolverType()`, `MatGetFactor()`, `MatFactorGetError()`, `MatFactorSetSchurIS()`, `PCLU`, `PCCHOLESKY`
M*/
PetscErrorCode MatGPUCSRCuDSSRegister_Private(void)
{
  static const MatFactorType types[] = {MAT_FACTOR_LU, MAT_FACTOR_CHOLESKY};

  PetscFunctionBegin;
  for (int k = 0; k < 2; k++) PetscCall(MatSolverTypeRegister(MATSOLVERCUDSS, MATSEQAIJGPUCSR, types[k], MatGetFactor_SeqAIJGPUCSR_CuDSS));
  PetscFunctionReturn(PETSC_SUCCESS);
}

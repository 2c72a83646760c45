/* The candidates for a matrix: all kernels whose format can hold the matrix, and cuSPARSE's algorithms. The program times each candidate once roughly, and verifies its result */
#include "spmv.h"

#define HOPELESS 2.0     /* times the best so far in one launch, or for a large matrix by the profile: the program times the candidate no further */
#define LARGE    5000000 /* entries */
#define VAST     5e7     /* entries, and of a matrix of more the pairs alone that the profile knows are tried */
#define OVERSIZE 3.0     /* times the bytes of CSR, and a format is not tried */

static PetscErrorCode LaunchOurs(void *ctx)
{
  Candidate *k = (Candidate *)ctx;

  return GPUCSRPlanProduct(&k->plan, &k->product, k->c->b->dev->stream);
}

static PetscErrorCode LaunchPeer(void *ctx)
{
  static const double one = 1, zero = 0;
  static const float  onef = 1, zerof = 0;
  Candidate          *k      = (Candidate *)ctx;
  const PetscBool     single = (PetscBool)(k->c->precision == GPUCSR_PRECISION_SINGLE);

  PetscFunctionBeginUser;
  CUSPARSECall(cusparseSpMV(k->c->b->peer, k->op, single ? (const void *)&onef : (const void *)&one, k->mat, k->x, single ? (const void *)&zerof : (const void *)&zero, k->y, single ? CUDA_R_32F : CUDA_R_64F, k->alg, k->buffer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpmvLaunch(void *ctx)
{
  return ((Candidate *)ctx)->peer ? LaunchPeer(ctx) : LaunchOurs(ctx);
}

/* The matrix multiplied, as a request has it */
static PetscErrorCode Build(Case *c, const GPUCSRRequest *q, GPUCSRPlan *P)
{
  PetscFunctionBeginUser;
  if (c->side) PetscCall(GPUCSRPlanBuildTranspose(c->b->dev, &c->p->src, c->A, c->precision, q, P));
  else PetscCall(GPUCSRPlanBuild(c->b->dev, &c->p->src, c->precision, q, P));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One product into a z full of NaN, against the host's */
static PetscErrorCode Verify(Case *c, Candidate *d)
{
  const Bench     *b  = c->b;
  const GPUCSRType vt = GPUCSRVectorType(c->precision);
  const int        m = c->side ? c->p->src.n : c->p->src.m, threads = b->dev->threads;
  const double     eps = c->precision == GPUCSR_PRECISION_DOUBLE ? DBL_EPSILON : (double)FLT_EPSILON;
  const double    *y = c->p->y[c->side], *bound = c->p->bound[c->side], *host = c->host;
  double           worst = 0;

  PetscFunctionBeginUser;
  PetscCall(b->dev->ops->copy(b->dev->id, c->z, c->nan, (size_t)m * GPUCSRTypeSize(vt), GPUCSR_ON_DEVICE, b->dev->stream));
  PetscCall(SpmvLaunch(d));
  PetscCall(GPUCSRDownload(b->dev, c->host, GPUCSR_DOUBLE, c->z, vt, (size_t)m, PETSC_FALSE, b->dev->stream));
#pragma omp parallel for num_threads(threads) reduction(max : worst)
  for (int r = 0; r < m; r++) {
    const double off = fabs(host[r] - y[r]);

    /* values outside the range of float are no error of a kernel; below its smallest number float rounds to that */
    if (c->precision != GPUCSR_PRECISION_DOUBLE && bound[r] > (double)FLT_MAX) continue;
    if (off > 0) worst = PetscMax(worst, off / (eps * bound[r] + (c->precision == GPUCSR_PRECISION_DOUBLE ? 0 : 1e3 * (double)FLT_MIN)));
    else if (!(off == 0)) worst = PETSC_MAX_REAL;
  }
  d->error  = worst;
  d->failed = (PetscBool) !(worst <= 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Times one launch; then verifies a candidate with a chance, and times it by a batch */
PetscErrorCode SpmvFirstLook(Case *c, Candidate *d)
{
  PetscFunctionBeginUser;
  PetscCall(SpmvLaunch(d));                                           /* may wait for its code to be loaded */
  PetscCall(BenchBatch(&c->b->clock, SpmvLaunch, d, 1, &d->seconds)); /* as the events resolve it */
  d->slow = (PetscBool)(d->seconds > HOPELESS * c->best + 10e-6 && !d->peer);
  if (d->slow) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Verify(c, d));
  PetscCall(BenchCalibrate(&c->b->clock, SpmvLaunch, d, &d->batch, &d->seconds));
  if (!d->failed) c->best = PetscMin(c->best, d->seconds);
  d->slow = (PetscBool)(d->seconds > SLOW * c->best && !d->peer);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Release(Case *c, Candidate *d)
{
  PetscFunctionBeginUser;
  PetscCall(GPUCSRFree(c->b->dev, d->plan.A.work.count * GPUCSRTypeSize(d->plan.A.work.type), &d->plan.A.work.data));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Name(const GPUCSRFormat *f, const GPUCSRKernel *k, char name[], size_t len)
{
  PetscBool same;

  PetscFunctionBeginUser;
  PetscCall(PetscStrcmp(f->name, f->family, &same));
  PetscCall(PetscSNPrintf(name, len, same ? "%s%s" : "%s+%s", same ? "" : f->name, k->name));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix in a format of the host, made by a plan, which the storage outlives */
static PetscErrorCode StoredOnHost(Case *c, const GPUCSRFormat *format, GPUCSRStorage *A)
{
  GPUCSRRequest  q = {.format = "auto", .kernel = "auto"};
  GPUCSRPlan     P = {0};
  PetscErrorCode ierr;

  PetscFunctionBeginUser;
  PetscCall(PetscStrncpy(q.format, format->name, sizeof(q.format)));
  ierr = Build(c, &q, &P);
  *A   = P.A;
  PetscCall(PetscMemzero(&P.A, sizeof(P.A)));
  PetscCall(PetscFree(P.candidate));
  if (P.map) PetscCall(GPUCSRFree(c->b->dev, sizeof(int32_t) * (size_t)c->csr.features.nnz, (void **)&P.map));
  if (P.changed) PetscCall(c->b->dev->ops->eventdestroy(c->b->dev->id, P.changed));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The matrix in a format, made when the first kernel asks for it */
static PetscErrorCode StoredGet(Case *c, const GPUCSRFormat *format, Stored **stored)
{
  const GPUCSRFeatures *f = &c->csr.features;
  Stored               *s;
  PetscLogDouble        t0, t1;
  GPUCSRAttempt         attempt;

  PetscFunctionBeginUser;
  for (int k = 0; k < c->ns; k++)
    if (c->stored[k].A.format == format) {
      *stored = &c->stored[k];
      PetscFunctionReturn(PETSC_SUCCESS);
    }
  PetscCheck(c->ns < MAX_STORED, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Too many formats for this program's tables");
  s       = &c->stored[c->ns++];
  *stored = s;
  PetscCall(GPUCSRDeviceSynchronize(c->b->dev));
  PetscCall(PetscTime(&t0));
  if (GPUCSRIsCSR(format)) {
    s->A = c->csr.A;
    PetscCall(PetscMemzero(&s->A.work, sizeof(s->A.work)));
  } else {
    GPUCSRTry(&attempt, c->b->dev->ops->separate ? GPUCSRStorageFromCSR(&c->csr.A, f, format, &s->A) : StoredOnHost(c, format, &s->A)); /* its exact extent may be too much after all */
    if (attempt.error) {
      PetscCheck(attempt.error == PETSC_ERR_SUP || attempt.error == PETSC_ERR_MEM, PETSC_COMM_SELF, attempt.error, "%s: %s", format->name, attempt.message);
      PetscCall(GPUCSRStorageDestroy(&s->A));
      s->A.format = format;
      s->refused  = PETSC_TRUE;
    }
  }
  PetscCall(GPUCSRDeviceSynchronize(c->b->dev));
  PetscCall(PetscTime(&t1));
  s->convert = t1 - t0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Has a pair a chance? No, if its bytes are far too many or alone take too long, or if the profile predicts a slow product */
static PetscErrorCode HasChance(const Case *c, const GPUCSRCandidate *pair, PetscBool *chance)
{
  const GPUCSRFeatures *f = &c->csr.features;
  GPUCSRModelInput      in;

  PetscFunctionBeginUser;
  PetscCall(GPUCSRModelInputGet(pair->format, f, c->precision, c->b->dev->props.l2, &in));
  *chance = PETSC_TRUE;
  if (1e6 * in.matrix > OVERSIZE * GPUCSRCSRBytes(f, c->precision)) *chance = PETSC_FALSE;
  if (1e6 * PetscMax(0, in.matrix + in.vectors - in.cache) > SLOW * c->best * c->b->copy) *chance = PETSC_FALSE;
  if (f->nnz > LARGE && pair->known && pair->predicted > HOPELESS * c->best) *chance = PETSC_FALSE;
  if ((double)f->nnz > VAST && !pair->known) *chance = PETSC_FALSE;
  if (GPUCSRIsCSR(pair->format)) *chance = PETSC_TRUE; /* it is there, and holds every matrix: what every choice is measured by */
  if (c->b->npairs) {
    char name[2 * GPUCSR_WORD];

    *chance = PETSC_FALSE;
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s %s", pair->format->name, pair->kernel->name));
    for (PetscInt k = 0; k < c->b->npairs; k++)
      if (strstr(name, c->b->pairs[k])) *chance = PETSC_TRUE;
  }
  for (int s = 0; s < NSELECTS; s++)
    if (pair->format == c->choice[s].format && pair->kernel == c->choice[s].kernel) *chance = PETSC_TRUE; /* to be judged whatever it takes */
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode AddPair(Case *c, const GPUCSRCandidate *pair)
{
  Candidate     *d = &c->cand[c->nc];
  PetscLogDouble t0, t1;
  Stored        *stored;

  PetscFunctionBeginUser;
  PetscCheck(c->nc < MAX_CANDIDATES - 3, PETSC_COMM_SELF, PETSC_ERR_PLIB, "Too many candidates for this program's tables");
  PetscCall(StoredGet(c, pair->format, &stored));
  if (stored->refused) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Name(pair->format, pair->kernel, d->name, sizeof(d->name)));
  d->c                  = c;
  d->plan.features      = c->csr.features;
  d->plan.choice.format = pair->format;
  d->plan.choice.kernel = pair->kernel;
  d->plan.A             = stored->A;
  d->product            = (GPUCSRProduct){.alpha = 1, .x = c->x, .z = c->z, .last = stored->A.m};
  PetscCall(PetscMemzero(&d->plan.A.work, sizeof(d->plan.A.work)));
  PetscCall(PetscTime(&t0));
  if (c->b->dev->ops->separate && pair->kernel->family->prepare) PetscCall((*pair->kernel->family->prepare)(&d->plan.A, pair->kernel->variant));
  PetscCall(GPUCSRDeviceSynchronize(c->b->dev));
  PetscCall(PetscTime(&t1));
  d->convert = stored->convert + t1 - t0;
  PetscCall(SpmvFirstLook(c, d));
  c->nc++;
  if (d->slow) PetscCall(Release(c, d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The choice, and all pairs that can take the matrix, the most promising first, but all kernels of a format together */
PetscErrorCode SpmvAddOurs(Case *c)
{
  static const GPUCSRRequest csr = {.format = "csr", .kernel = "auto"};
  GPUCSRRequest              all = {.format = "auto", .kernel = "auto"};
  GPUCSRCandidate           *list;
  const GPUCSRFeatures      *f;
  PetscBool                  chance = PETSC_FALSE;
  int                        n;

  PetscFunctionBeginUser;
  PetscCall(Build(c, &csr, &c->csr));
  f       = &c->csr.features;
  c->best = PETSC_MAX_REAL;
  for (int s = 0; s < NSELECTS; s++) {
    GPUCSRPlan P = {0};

    all.select = s == 0 ? GPUCSR_SELECT_ESTIMATE : s == 1 ? GPUCSR_SELECT_MEASURE : GPUCSR_SELECT_TREE;
    if (s == 1) {
      PetscCall(Build(c, &all, &P));
      c->choice[s] = P.choice;
      PetscCall(GPUCSRPlanDestroy(&P));
    } else PetscCall(GPUCSRChoose(f, c->precision, c->b->dev, &all, &c->choice[s], NULL, NULL));
  }
  PetscCall(GPUCSRCandidatesGet(f, c->precision, c->b->dev, &all, PETSC_TRUE, &list, &n));
  for (int q = 0; q < n; q++)
    for (int k = q; k < n; k++) {
      if (!list[k].usable || list[k].format != list[q].format) continue;
      PetscCall(HasChance(c, &list[k], &chance));
      if (chance) PetscCall(AddPair(c, &list[k]));
      if (k > q) list[k].usable = PETSC_FALSE;
    }
  PetscCall(PetscFree(list));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One of cuSPARSE's algorithms, with A or its transpose as CSR */
static PetscErrorCode AddPeer(Case *c, const char name[], cusparseSpMVAlg_t alg, cusparseOperation_t op, const GPUCSRStorage *A)
{
  static const double one = 1, zero = 0;
  static const float  onef = 1, zerof = 0;
  const PetscBool     single = (PetscBool)(c->precision == GPUCSR_PRECISION_SINGLE), turned = (PetscBool)(op == CUSPARSE_OPERATION_TRANSPOSE);
  const cudaDataType  type  = single ? CUDA_R_32F : CUDA_R_64F;
  const void         *alpha = single ? (const void *)&onef : (const void *)&one, *beta = single ? (const void *)&zerof : (const void *)&zero;
  Candidate          *d = &c->cand[c->nc];

  PetscFunctionBeginUser;
  PetscCall(PetscStrncpy(d->name, name, sizeof(d->name)));
  d->c    = c;
  d->peer = PETSC_TRUE;
  d->alg  = alg;
  d->op   = op;
  /* what preprocessing finds is kept with the descriptor: each algorithm gets its own */
  CUSPARSECall(cusparseCreateCsr(&d->mat, A->m, A->n, A->nnz, A->array[CSR_ROWPTR].data, A->array[CSR_COL].data, A->array[CSR_VAL].data, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type));
  CUSPARSECall(cusparseCreateDnVec(&d->x, turned ? A->m : A->n, c->x, type));
  CUSPARSECall(cusparseCreateDnVec(&d->y, turned ? A->n : A->m, c->z, type));
  CUSPARSECall(cusparseSpMV_bufferSize(c->b->peer, op, alpha, d->mat, d->x, beta, d->y, type, alg, &d->bytes));
  PetscCall(GPUCSRMalloc(c->b->dev, d->bytes, "cuSPARSE's buffer", &d->buffer));
  CUSPARSECall(cusparseSpMV_preprocess(c->b->peer, op, alpha, d->mat, d->x, beta, d->y, type, alg, d->buffer));
  c->nc++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpmvAddPeers(Case *c)
{
  static const struct {
    const char       *name, *explicit; /* with the transpose as CSR */
    cusparseSpMVAlg_t alg;
  } algs[] = {
    {"cusparse_default", "cusparse_explicit_default", CUSPARSE_SPMV_ALG_DEFAULT},
    {"cusparse_alg1",    "cusparse_explicit_alg1",    CUSPARSE_SPMV_CSR_ALG1   },
    {"cusparse_alg2",    "cusparse_explicit_alg2",    CUSPARSE_SPMV_CSR_ALG2   }
  };

  PetscFunctionBeginUser;
  if (!c->b->peer || c->precision == GPUCSR_PRECISION_MIXED) PetscFunctionReturn(PETSC_SUCCESS);
  if (c->side) PetscCall(AddPeer(c, algs[0].name, algs[0].alg, CUSPARSE_OPERATION_TRANSPOSE, &c->A->A));
  for (int q = 0; q < 3; q++) PetscCall(AddPeer(c, c->side ? algs[q].explicit : algs[q].name, algs[q].alg, CUSPARSE_OPERATION_NON_TRANSPOSE, c->side ? &c->csr.A : &c->A->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscErrorCode SpmvCaseDestroy(Case *c)
{
  PetscFunctionBeginUser;
  PetscCall(GPUCSRDeviceSynchronize(c->b->dev));
  for (int k = 0; k < c->nc; k++) {
    Candidate *d = &c->cand[k];

    if (d->peer) {
      CUSPARSECall(cusparseDestroyDnVec(d->x));
      CUSPARSECall(cusparseDestroyDnVec(d->y));
      CUSPARSECall(cusparseDestroySpMat(d->mat));
      PetscCall(GPUCSRFree(c->b->dev, d->bytes, &d->buffer));
    } else PetscCall(Release(c, d));
  }
  for (int k = 0; k < c->ns; k++)
    if (!GPUCSRIsCSR(c->stored[k].A.format) && !c->stored[k].refused) PetscCall(GPUCSRStorageDestroy(&c->stored[k].A));
  PetscCall(GPUCSRPlanDestroy(&c->csr));
  PetscCall(GPUCSRFree(c->b->dev, c->vbytes, &c->x));
  PetscCall(GPUCSRFree(c->b->dev, c->vbytes, &c->z));
  PetscCall(GPUCSRFree(c->b->dev, c->vbytes, &c->nan));
  PetscCall(PetscFree(c->host));
  PetscFunctionReturn(PETSC_SUCCESS);
}

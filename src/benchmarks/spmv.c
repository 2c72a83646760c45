static char help[] = "Products with vectors on the device: every kernel of the library against cuSPARSE.\n\n";

/*
    spmv [-dir FOLDER,...] [-f FILE,...] [-synthetic no] [-collection] [-o FILE]      on a GPU
    spmv -backend host -shrink 20                                      without one, to try the program itself

  Matrices: the synthetic ones of synthetic.h (-shrink k: small ones), with -collection the survey's too, then every *.petsc of the
  folders and the files, PETSc binary; a name met before is passed over. -match TEXT,... takes those alone whose name contains one of the texts.
  Other options: -precisions double,single,mixed (the first two); -sides N,T (both); -setup no (products alone); -products no
  (set-up alone); -calls (what set-up and refresh ask of the backend); -budget s (matrices that would start later than so many seconds are left out, and counted); -rounds n (7); -progress; -id TEXT.

  For each matrix, precision and side all kernels that can hold the matrix, and cuSPARSE's three CSR algorithms (after
  cusparseSpMV_preprocess(); its default one for the transpose, which works on the CSR of A where ours has the transpose
  resident), run in turn: each round gives every candidate one batch of launches back to back, preceded by one that is not
  timed, between two events; a batch lasts 100 us or one launch, and the device begins with it when all of it is queued, so that the host is not
  what is timed. A time is the median over rounds. A candidate well behind
  the best (SLOW) is timed once, one far behind (HOPELESS) is not verified, and one whose bytes alone take longer is not built. Every other result is compared with the host's in double: it may be off by
  (8 + sqrt(n)) eps sum|a||x|, n the entries of the row.

  -threads: kernels that leave the threads of a block open are timed with 64, 128, 256 and 512 of them too, in A x and double.

  Set-up: GPUCSRPlanBuild() with warm memory pools, and GPUCSRPlanRefresh(), against one pageable cudaMemcpy() of the CSR's or the values' bytes: as PETSc
  holds them, and in the same precision, which is a harder measure in single. Conversion, padding and upload alone are timed with the device waited for
  after each part.

  -o FILE gets one JSON object a line. Times are microseconds, rates 1e9/s, sizes bytes.
    run      what ran where: program, id, date, petsc, cuda, backend, device, processors, threads, copy_gbs
    product  matrix, class (synthetic|real), precision, side; rows, columns, nnz of A; length_min, _max, _mean, _deviation, empty,
             sell_padding of the matrix multiplied (the transpose for side T); us: time of each candidate; failed: names of those
             with wrong results, and error, the largest fraction of the allowed error met; chosen and why, chosen_us; best (of ours),
             best_us; peer (cuSPARSE's best), peer_us; gflops, gbs (of A's CSR and both vectors), fraction (of the device copy), all
             of the chosen one; ratio = peer_us / chosen_us, regret = chosen_us / best_us; regret_halves, the
             same with the best found by half of the rounds and timed by the others
    threads  matrix, class, precision, side; us: for each kernel its times with 64, 128, 256 and 512 threads a block
    setup    matrix, class, precision, rows, columns, nnz, format, kernel; setup_us and, each waited for, its parts inspect_us, choose_us, upload_us,
             convert_us; copy_us; setup_ratio = setup_us / (0.7 copy_us + 30 product_us); refresh_us, value_copy_us, refresh_ratio = refresh_us /
             (0.7 value_copy_us + 2 product_us); held_copy_us, held_value_copy_us of the bytes that PETSc holds; held_setup_ratio = (upload_us +
             convert_us) / (0.7 held_copy_us + 30 product_us), held_refresh_ratio; product_us; transpose_us (build, A resident),
             transpose_refresh_us; csr_bytes, device_bytes, peak_bytes (while building), transpose_bytes
    failure  matrix, precision, side, message: an error where there should be none
*/
#include <petscmat.h>
#include "bench.h"
#include "synthetic.h"
#define DISABLE_CUSPARSE_DEPRECATED
#include <cusparse.h>
#include <dirent.h>
#include <float.h>

#define MAX_CANDIDATES 400
#define MAX_ROUNDS     32
#define MAX_FILES      2000
#define MAX_STORED     64
#define SLOW           1.3     /* times the best so far, and a candidate is timed once */
#define HOPELESS       2.0     /* times the best so far in one launch, or of a large matrix in the profile's words, and it is not timed again */
#define LARGE          5000000 /* entries */
#define VAST           5e7     /* entries, and of a matrix of more the pairs alone that the profile knows are tried */
#define OVERSIZE       3.0     /* times the bytes of CSR, and a format is not tried */

#define CUSPARSECall(call) \
  do { \
    cusparseStatus_t st_ = (call); \
    PetscCheck(st_ == CUSPARSE_STATUS_SUCCESS, PETSC_COMM_SELF, PETSC_ERR_GPU, "%s failed with %s", #call, cusparseGetErrorName(st_)); \
  } while (0)

static const char *const precisionwords[] = {"double", "single", "mixed"}; /* GPUCSRPrecision */
static const char *const sidewords[]      = {"N", "T"};

typedef struct {
  const char    *name;
  PetscBool      real; /* from a file */
  GPUCSRSource   src;
  GPUCSRFeatures f;
  double        *x;        /* host: max(m, n) numbers, all of them floats */
  double        *y[2];     /* host: A x, A^T x */
  double        *bound[2]; /* what their entries may be off by, in units of eps */
} Problem;

static const char *const selectwords[] = {"estimate", "measure", "tree"}; /* the choices that are judged, the first of them the default */
#define NSELECTS 3

typedef struct {
  GPUCSRDevice     dev;
  BenchClock       clock;
  cusparseHandle_t peer; /* NULL on the host */
  double           copy; /* bytes/s */
  FILE            *out, *samples;
  int              rounds;
  PetscBool        progress, products, setup, calls, threads, precisions[3], sides[2];
} Bench;

struct Case_;

typedef struct {
  char          name[2 * GPUCSR_WORD];
  PetscBool     peer, failed, slow;
  GPUCSRProduct product;
  GPUCSRPlan    plan;    /* ours: the arrays belong to the case, the work array is this kernel's own */
  double        convert; /* seconds from CSR on the device */
  struct Case_ *c;
  /* cuSPARSE's */
  cusparseSpMVAlg_t    alg;
  cusparseSpMatDescr_t mat;
  cusparseDnVecDescr_t x, y;
  void                *buffer;
  size_t               bytes;
  int                  batch, nt;
  double               t[MAX_ROUNDS + 1], seconds, error;
  double               half[2]; /* seconds by the even rounds and by the odd ones; 0: those were not timed */
} Candidate;

/* A matrix in a format, for all kernels that work on it */
typedef struct {
  GPUCSRStorage A;
  double        convert;
  PetscBool     refused;
} Stored;

/* One matrix in one precision on one side */
typedef struct Case_ {
  const Bench      *b;
  const Problem    *p;
  GPUCSRPrecision   precision;
  int               side;
  const GPUCSRPlan *A;   /* CSR of A itself */
  GPUCSRPlan        csr; /* of the matrix multiplied */
  int               nc;
  void             *x, *z, *nan; /* device vectors */
  size_t            vbytes;
  double           *host;
  GPUCSRChoice      choice[NSELECTS];
  double            best;  /* seconds of the fastest met so far */
  double            petsc; /* seconds of MatMult() or MatMultTranspose() of MATSEQAIJCUSPARSE; NaN in a PETSc without CUDA, and but in double */
  int               ns;
  Stored            stored[MAX_STORED];
  Candidate         cand[MAX_CANDIDATES];
} Case;

/* What the table at the end is made of */
typedef struct {
  char            name[64], chosen[GPUCSR_WORD], best[GPUCSR_WORD];
  PetscBool       real;
  GPUCSRPrecision precision;
  int             side;
  double          ratio, bestratio, regret, fraction, petsc;
} Result;

typedef struct {
  char   name[64];
  double ratio[4], memory; /* set-up and refresh, as the bytes are held; the same, harder */
  int    precision;
} SetUpResult;

static Result      results[6 * MAX_FILES];
static SetUpResult setups[3 * MAX_FILES];
static int         nresults, nsetups, nfailures;

/* ---- the candidates ---- */

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
  CUSPARSECall(cusparseSpMV(k->c->b->peer, k->c->side ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE, single ? (const void *)&onef : (const void *)&one, k->mat, k->x, single ? (const void *)&zerof : (const void *)&zero, k->y, single ? CUDA_R_32F : CUDA_R_64F, k->alg, k->buffer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Launch(void *ctx)
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
  PetscCall(Launch(d));
  PetscCall(GPUCSRDownload(b->dev, c->host, GPUCSR_DOUBLE, c->z, vt, (size_t)m, PETSC_FALSE, b->dev->stream));
#pragma omp parallel for num_threads(threads) reduction(max : worst)
  for (int r = 0; r < m; r++) {
    const double off = fabs(host[r] - y[r]);

    /* what float cannot hold is nobody's fault, and below its smallest number it rounds to that */
    if (c->precision != GPUCSR_PRECISION_DOUBLE && bound[r] > (double)FLT_MAX) continue;
    if (off > 0) worst = PetscMax(worst, off / (eps * bound[r] + (c->precision == GPUCSR_PRECISION_DOUBLE ? 0 : 1e3 * (double)FLT_MIN)));
    else if (!(off == 0)) worst = PETSC_MAX_REAL;
  }
  d->error  = worst;
  d->failed = (PetscBool) !(worst <= 1);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Timed once: a launch; then, if that has a chance, verified and timed by a batch */
static PetscErrorCode FirstLook(Case *c, Candidate *d)
{
  PetscFunctionBeginUser;
  PetscCall(Launch(d));                                           /* may wait for its code to be loaded */
  PetscCall(BenchBatch(&c->b->clock, Launch, d, 1, &d->seconds)); /* as the events resolve it */
  d->slow = (PetscBool)(d->seconds > HOPELESS * c->best + 10e-6 && !d->peer);
  if (d->slow) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Verify(c, d));
  PetscCall(BenchCalibrate(&c->b->clock, Launch, d, &d->batch, &d->seconds));
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

/* The matrix in a format, made when the first kernel asks for it */
static PetscErrorCode StoredGet(Case *c, const GPUCSRFormat *format, Stored **stored)
{
  const GPUCSRFeatures *f = &c->csr.features;
  Stored               *s;
  PetscLogDouble        t0, t1;
  GPUCSRAttempt         attempt;
  PetscErrorCode        ierr;

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
    PetscCall(GPUCSRAttemptBegin(&attempt)); /* its exact extent may be too much after all */
    if (c->b->dev->ops->separate) ierr = GPUCSRStorageFromCSR(&c->csr.A, f, format, &s->A);
    else {
      GPUCSRRequest q = {.format = "auto", .kernel = "auto"};
      GPUCSRPlan    P = {0};

      PetscCall(PetscStrncpy(q.format, format->name, sizeof(q.format)));
      ierr = Build(c, &q, &P);
      s->A = P.A; /* its arrays now belong to the case */
      PetscCall(PetscMemzero(&P.A, sizeof(P.A)));
      PetscCall(PetscFree(P.candidate));
      if (P.map) PetscCall(GPUCSRFree(c->b->dev, sizeof(int32_t) * (size_t)f->nnz, (void **)&P.map));
      if (P.changed) PetscCall(c->b->dev->ops->eventdestroy(c->b->dev->id, P.changed));
    }
    PetscCall(GPUCSRAttemptEnd(&attempt));
    if (ierr) {
      PetscCheck(ierr == PETSC_ERR_SUP || ierr == PETSC_ERR_MEM, PETSC_COMM_SELF, ierr, "%s: %s", format->name, attempt.message);
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

/* Has a pair a chance: are its bytes not far too many, would they alone not take too long, does the profile not speak against it? */
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
  d->product            = (GPUCSRProduct){1, 0, c->x, NULL, c->z, 0, stored->A.m};
  PetscCall(PetscMemzero(&d->plan.A.work, sizeof(d->plan.A.work)));
  PetscCall(PetscTime(&t0));
  if (c->b->dev->ops->separate && pair->kernel->family->prepare) PetscCall((*pair->kernel->family->prepare)(&d->plan.A, pair->kernel->variant));
  PetscCall(GPUCSRDeviceSynchronize(c->b->dev));
  PetscCall(PetscTime(&t1));
  d->convert = stored->convert + t1 - t0;
  PetscCall(FirstLook(c, d));
  c->nc++;
  if (d->slow) PetscCall(Release(c, d));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What is chosen, and all pairs that can take the matrix, the most promising first, but all kernels of a format one after the other */
static PetscErrorCode AddOurs(Case *c)
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
  PetscCall(GPUCSRCandidatesGet(f, c->precision, c->b->dev, &all, &list, &n));
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

static PetscErrorCode AddPeers(Case *c)
{
  static const struct {
    const char       *name;
    cusparseSpMVAlg_t alg;
  } algs[] = {
    {"cusparse_default", CUSPARSE_SPMV_ALG_DEFAULT},
    {"cusparse_alg1",    CUSPARSE_SPMV_CSR_ALG1   },
    {"cusparse_alg2",    CUSPARSE_SPMV_CSR_ALG2   }
  };
  static const double  one = 1, zero = 0;
  static const float   onef = 1, zerof = 0;
  const PetscBool      single = (PetscBool)(c->precision == GPUCSR_PRECISION_SINGLE);
  const cudaDataType   type   = single ? CUDA_R_32F : CUDA_R_64F;
  const void          *alpha = single ? (const void *)&onef : (const void *)&one, *beta = single ? (const void *)&zerof : (const void *)&zero;
  const GPUCSRStorage *A = &c->A->A;

  PetscFunctionBeginUser;
  if (!c->b->peer || c->precision == GPUCSR_PRECISION_MIXED) PetscFunctionReturn(PETSC_SUCCESS);
  for (int q = 0; q < (c->side ? 1 : 3); q++) {
    Candidate                *d  = &c->cand[c->nc];
    const cusparseOperation_t op = c->side ? CUSPARSE_OPERATION_TRANSPOSE : CUSPARSE_OPERATION_NON_TRANSPOSE;

    PetscCall(PetscStrncpy(d->name, algs[q].name, sizeof(d->name)));
    d->c    = c;
    d->peer = PETSC_TRUE;
    d->alg  = algs[q].alg;
    /* what preprocessing finds is kept with the descriptor: each algorithm gets its own */
    CUSPARSECall(cusparseCreateCsr(&d->mat, A->m, A->n, A->nnz, A->array[CSR_ROWPTR].data, A->array[CSR_COL].data, A->array[CSR_VAL].data, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type));
    CUSPARSECall(cusparseCreateDnVec(&d->x, c->side ? A->m : A->n, c->x, type));
    CUSPARSECall(cusparseCreateDnVec(&d->y, c->side ? A->n : A->m, c->z, type));
    CUSPARSECall(cusparseSpMV_bufferSize(c->b->peer, op, alpha, d->mat, d->x, beta, d->y, type, d->alg, &d->bytes));
    PetscCall(GPUCSRMalloc(c->b->dev, d->bytes, "cuSPARSE's buffer", &d->buffer));
    CUSPARSECall(cusparseSpMV_preprocess(c->b->peer, op, alpha, d->mat, d->x, beta, d->y, type, d->alg, d->buffer));
    c->nc++;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode CaseDestroy(Case *c)
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

/* ---- timing ---- */

/* PETSc's own matrix for the GPU, as a program meets it: its products go to PETSc's stream, so that the host's clock times them, a batch and one wait */
#if PetscDefined(HAVE_CUDA)
static PetscErrorCode TimePETSc(Case *c)
{
  const GPUCSRSource *s    = &c->p->src;
  const PetscInt      cols = c->side ? s->m : s->n, rows = c->side ? s->n : s->m;
  double              t[MAX_ROUNDS];
  Mat                 A, G;
  Vec                 x, z;

  PetscFunctionBeginUser;
  c->petsc = NAN;
  if (!c->b->peer || c->precision != GPUCSR_PRECISION_DOUBLE) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, s->m, s->n, (PetscInt *)s->i, (PetscInt *)s->j, (PetscScalar *)s->a, &A));
  PetscCall(MatConvert(A, MATSEQAIJCUSPARSE, MAT_INITIAL_MATRIX, &G));
  PetscCall(VecCreateSeqCUDAWithArray(PETSC_COMM_SELF, 1, cols, (PetscScalar *)c->x, &x));
  PetscCall(VecCreateSeqCUDAWithArray(PETSC_COMM_SELF, 1, rows, (PetscScalar *)c->z, &z));
  for (int r = -1, batch = 1; r < c->b->rounds; r++) { /* the first makes what PETSc keeps, and tells how many go into a batch */
    PetscLogDouble from = 0, to;

    for (int k = 0; k <= batch; k++) {
      if (k == 1) {
        PetscCheck(!cudaDeviceSynchronize(), PETSC_COMM_SELF, PETSC_ERR_GPU, "cudaDeviceSynchronize() failed");
        PetscCall(PetscTime(&from));
      }
      PetscCall(c->side ? MatMultTranspose(G, x, z) : MatMult(G, x, z));
    }
    PetscCheck(!cudaDeviceSynchronize(), PETSC_COMM_SELF, PETSC_ERR_GPU, "cudaDeviceSynchronize() failed");
    PetscCall(PetscTime(&to));
    if (r < 0) batch = (int)PetscMax(1, PetscMin(50, 500e-6 / (to - from)));
    else t[r] = (to - from) / batch;
  }
  c->petsc = BenchMedian(t, c->b->rounds);
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&z));
  PetscCall(MatDestroy(&G));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}
#else
static PetscErrorCode TimePETSc(Case *c)
{
  PetscFunctionBeginUser;
  c->petsc = NAN;
  PetscFunctionReturn(PETSC_SUCCESS);
}
#endif

/* In turn, those that have a chance */
static PetscErrorCode TimeAll(Case *c)
{
  PetscFunctionBeginUser;
  for (int r = 0; r < c->b->rounds; r++)
    for (int k = 0; k < c->nc; k++) {
      Candidate *d = &c->cand[k];

      if (d->peer || (!d->slow && d->seconds <= SLOW * c->best)) PetscCall(BenchBatch(&c->b->clock, Launch, d, d->batch, &d->t[d->nt++]));
    }
  for (int k = 0; k < c->nc; k++) {
    Candidate *d = &c->cand[k];
    double     half[2][MAX_ROUNDS + 1];

    for (int r = 0; r < d->nt; r++) half[r % 2][r / 2] = d->t[r];
    for (int h = 0; h < 2; h++) d->half[h] = d->nt > 1 ? BenchMedian(half[h], (d->nt + 1 - h) / 2) : d->seconds;
    if (d->nt) d->seconds = BenchMedian(d->t, d->nt);
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  The least of two hundred medians is a lucky one where many are alike: what was chosen over the best, that found by half of the rounds and
  timed by the others, both ways
*/
static double Regret(const Case *c, const Candidate *chosen)
{
  double sum = 0;

  for (int h = 0; h < 2; h++) {
    const Candidate *best = NULL;

    for (int k = 0; k < c->nc; k++)
      if (!c->cand[k].peer && !c->cand[k].failed && c->cand[k].half[h] > 0 && (!best || c->cand[k].half[h] < best->half[h])) best = &c->cand[k];
    sum += best ? 0.5 * chosen->half[!h] / best->half[!h] : NAN;
  }
  return sum;
}

static void JsonMatrix(FILE *f, const Problem *p, GPUCSRPrecision precision)
{
  JsonText(f, "matrix", p->name);
  JsonText(f, "class", p->real ? "real" : "synthetic");
  JsonText(f, "precision", precisionwords[precision]);
  JsonNumber(f, "rows", p->f.m);
  JsonNumber(f, "columns", p->f.n);
  JsonNumber(f, "nnz", (double)p->f.nnz);
}

/* The kernels that leave it open with other blocks: medians of three batches each, by turns */
static PetscErrorCode Threads(Case *c)
{
  static const int sizes[] = {64, 128, 256, 512};
  FILE            *o       = c->b->out;
  const char      *comma   = "";

  PetscFunctionBeginUser;
  if (!c->b->threads || c->side || c->precision || !o || !c->b->dev->ops->separate) PetscFunctionReturn(PETSC_SUCCESS);
  JsonBegin(o, "threads");
  JsonMatrix(o, c->p, c->precision);
  JsonText(o, "side", sidewords[c->side]);
  fprintf(o, ", \"us\": {");
  for (int k = 0; k < c->nc; k++) {
    Candidate *d = &c->cand[k];
    double     t[4][3];

    if (d->peer || d->slow || !d->plan.choice.kernel->family->block) continue;
    for (int r = 0; r < 3; r++)
      for (int q = 0; q < 4; q++) {
        GPUCSRThreads = sizes[q];
        PetscCall(BenchBatch(&c->b->clock, Launch, d, d->batch, &t[q][r]));
      }
    GPUCSRThreads = 0;
    fprintf(o, "%s\"%s\": [", comma, d->name);
    for (int q = 0; q < 4; q++) fprintf(o, "%s%.6g", q ? ", " : "", 1e6 * BenchMedian(t[q], 3));
    fprintf(o, "]");
    comma = ", ";
  }
  fprintf(o, "}");
  JsonEnd(o);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* What fit.c makes a profile of, a line a candidate: matrix side precision format kernel us best_us convert_us, then the model's input */
static PetscErrorCode Samples(Case *c, const Candidate *best)
{
  const GPUCSRFeatures *f = &c->csr.features;
  FILE                 *o = c->b->samples;

  PetscFunctionBeginUser;
  for (int k = 0; o && k < c->nc; k++) {
    const Candidate *d = &c->cand[k];
    GPUCSRModelInput in;

    if (d->peer || d->failed) continue;
    PetscCall(GPUCSRModelInputGet(d->plan.choice.format, &c->csr.features, c->precision, c->b->dev->props.l2, &in));
    fprintf(o, "%s %s %s %s %s %.6g %.6g %.6g  %.6g %.6g %.6g %.10g %.10g %.10g %.10g %.6g %.6g %d %.6g  %.6g %.6g %.6g %.10g", c->p->name, sidewords[c->side], precisionwords[c->precision], d->plan.choice.format->name, d->plan.choice.kernel->name, 1e6 * d->seconds,
            1e6 * best->seconds, 1e6 * d->convert, in.matrix, in.vectors, in.cache, in.rows, in.stored, in.mean, in.max, in.sectors, in.quads, f->n, f->density, f->deviation, f->spread, f->twins, (double)f->sell_stored);
    for (int b = 0; b < GPUCSR_NCLASSES; b++) fprintf(o, b ? ",%d:%.10g" : " %d:%.10g", f->rows[b], (double)f->entries[b]);
    fprintf(o, "\n");
  }
  if (o) fflush(o);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Report(Case *c, const Candidate *const by[])
{
  const Bench          *b     = c->b;
  const GPUCSRFeatures *f     = &c->csr.features;
  const double          v     = (double)GPUCSRTypeSize(GPUCSRVectorType(c->precision));
  const double          bytes = GPUCSRCSRBytes(&c->p->f, c->precision) + v * ((double)f->m + f->n);
  const Candidate      *best = NULL, *peer = NULL, *chosen = by[0];
  const char           *comma = "";
  double                error = 0;
  Result               *r     = &results[nresults++];
  FILE                 *o     = b->out;

  PetscFunctionBeginUser;
  for (int k = 0; k < c->nc; k++) {
    const Candidate **slot = c->cand[k].peer ? &peer : &best;

    error = PetscMax(error, c->cand[k].error);
    if (c->cand[k].failed) PetscCall(PetscPrintf(PETSC_COMM_SELF, "WRONG %s %s %s %s: off by %.3g times what is allowed\n", c->p->name, precisionwords[c->precision], sidewords[c->side], c->cand[k].name, c->cand[k].error));
    if (c->cand[k].failed) nfailures++;
    else if (!*slot || c->cand[k].seconds < (*slot)->seconds) *slot = &c->cand[k];
  }
  if (!best) best = chosen;
  PetscCall(Samples(c, best));
  PetscCall(PetscStrncpy(r->name, c->p->name, sizeof(r->name)));
  PetscCall(PetscStrncpy(r->chosen, chosen->name, sizeof(r->chosen)));
  PetscCall(PetscStrncpy(r->best, best->name, sizeof(r->best)));
  r->real      = c->p->real;
  r->precision = c->precision;
  r->side      = c->side;
  r->ratio     = peer ? peer->seconds / chosen->seconds : NAN;
  r->bestratio = peer ? peer->seconds / best->seconds : NAN;
  r->regret    = chosen->seconds / best->seconds;
  r->fraction  = bytes / chosen->seconds / b->copy;
  r->petsc     = c->petsc / chosen->seconds;
  if (b->progress)
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-24s %s %s  %s %.2f us, best %s %.2f us, peer %s %.2f us, ratio %.2f\n", c->p->name, precisionwords[c->precision], sidewords[c->side], chosen->name, 1e6 * chosen->seconds, best->name, 1e6 * best->seconds,
                          peer ? peer->name : "none", peer ? 1e6 * peer->seconds : 0, r->ratio));

  JsonBegin(o, "product");
  JsonMatrix(o, c->p, c->precision);
  JsonText(o, "side", sidewords[c->side]);
  JsonNumber(o, "length_min", f->min);
  JsonNumber(o, "length_max", f->max);
  JsonNumber(o, "length_mean", f->mean);
  JsonNumber(o, "length_deviation", f->deviation);
  JsonNumber(o, "empty", f->empty);
  JsonNumber(o, "sell_padding", f->nnz ? (double)f->sell_stored / (double)f->nnz - 1 : 0);
  if (o) {
    fprintf(o, ", \"us\": {");
    for (int k = 0; k < c->nc; k++) fprintf(o, "%s\"%s\": %.6g", k ? ", " : "", c->cand[k].name, 1e6 * c->cand[k].seconds);
    fprintf(o, "}, \"convert\": {");
    for (int k = 0; k < c->nc && !c->cand[k].peer; k++) fprintf(o, "%s\"%s\": %.4g", k ? ", " : "", c->cand[k].name, 1e6 * c->cand[k].convert);
    fprintf(o, "}, \"failed\": [");
    for (int k = 0; k < c->nc; k++)
      if (c->cand[k].failed) {
        fprintf(o, "%s\"%s\"", comma, c->cand[k].name);
        comma = ", ";
      }
    fprintf(o, "]");
  }
  JsonNumber(o, "error", error);
  JsonText(o, "chosen", chosen->name);
  JsonText(o, "why", c->choice[0].why);
  for (int q = 1; q < NSELECTS; q++) {
    char key[32];

    JsonText(o, selectwords[q], by[q]->name);
    PetscCall(PetscSNPrintf(key, sizeof(key), "%s_regret", selectwords[q]));
    JsonNumber(o, key, by[q]->seconds / best->seconds);
    PetscCall(PetscSNPrintf(key, sizeof(key), "%s_regret_halves", selectwords[q]));
    JsonNumber(o, key, Regret(c, by[q]));
  }
  JsonNumber(o, "sampled", f->sampled);
  JsonNumber(o, "diagonals", f->diagonals);
  JsonNumber(o, "spread", f->spread);
  JsonNumber(o, "twins", f->twins);
  JsonNumber(o, "chosen_us", 1e6 * chosen->seconds);
  JsonText(o, "best", best->name);
  JsonNumber(o, "best_us", 1e6 * best->seconds);
  JsonText(o, "peer", peer ? peer->name : "none");
  JsonNumber(o, "peer_us", peer ? 1e6 * peer->seconds : NAN);
  JsonNumber(o, "gflops", 2e-9 * (double)f->nnz / chosen->seconds);
  JsonNumber(o, "gbs", 1e-9 * bytes / chosen->seconds);
  JsonNumber(o, "fraction", r->fraction);
  JsonNumber(o, "ratio", r->ratio);
  JsonNumber(o, "aijcusparse_us", 1e6 * c->petsc);
  JsonNumber(o, "aijcusparse_ratio", c->petsc / chosen->seconds);
  JsonNumber(o, "regret", r->regret);
  JsonNumber(o, "regret_halves", Regret(c, chosen));
  JsonEnd(o);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* product: seconds of the chosen kernel */
static PetscErrorCode CaseRun(Case *c, double *product)
{
  const Bench     *b            = c->b;
  const GPUCSRType vt           = GPUCSRVectorType(c->precision);
  const size_t     n            = (size_t)PetscMax(c->p->src.m, c->p->src.n);
  const Candidate *by[NSELECTS] = {NULL};
  int              first;

  PetscFunctionBeginUser;
  c->vbytes = n * GPUCSRTypeSize(vt);
  PetscCall(GPUCSRMalloc(b->dev, c->vbytes, "x", &c->x));
  PetscCall(GPUCSRMalloc(b->dev, c->vbytes, "z", &c->z));
  PetscCall(GPUCSRMalloc(b->dev, c->vbytes, "NaN", &c->nan));
  PetscCall(PetscMalloc1(n, &c->host));
  for (size_t k = 0; k < n; k++) c->host[k] = NAN;
  PetscCall(GPUCSRUpload(b->dev, c->x, vt, c->p->x, GPUCSR_DOUBLE, n, PETSC_FALSE, b->dev->stream, NULL));
  PetscCall(GPUCSRUpload(b->dev, c->nan, vt, c->host, GPUCSR_DOUBLE, n, PETSC_FALSE, b->dev->stream, NULL));
  PetscCall(AddOurs(c));
  first = c->nc;
  PetscCall(AddPeers(c));
  for (int k = first; k < c->nc; k++) PetscCall(FirstLook(c, &c->cand[k]));
  for (int s = 0; s < NSELECTS; s++) {
    for (int k = 0; k < first; k++)
      if (c->cand[k].plan.choice.format == c->choice[s].format && c->cand[k].plan.choice.kernel == c->choice[s].kernel) by[s] = &c->cand[k];
    PetscCheck(by[s], PETSC_COMM_SELF, PETSC_ERR_PLIB, "Kernel %s on format %s, chosen by %s, is not among those that can take the matrix", c->choice[s].kernel->name, c->choice[s].format->name, selectwords[s]);
  }
  PetscCall(TimeAll(c));
  PetscCall(TimePETSc(c));
  PetscCall(Report(c, by));
  PetscCall(Threads(c));
  *product = by[0]->seconds;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- set-up and refresh ---- */

/* A refresh costs what it adds to the product after it: nobody waits for it but that product */
static PetscErrorCode RefreshAndProduct(GPUCSRPlan *P, const GPUCSRSource *s, const GPUCSRPlan *D, const GPUCSRProduct *p)
{
  PetscBool held;

  PetscFunctionBeginUser;
  PetscCall(GPUCSRPlanRefresh(P, s, D, &held));
  PetscCheck(held, PETSC_COMM_SELF, PETSC_ERR_PLIB, "The same values again do not fit format %s", P->A.format->name);
  PetscCall(GPUCSRPlanProduct(P, p, P->A.dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- what is asked of the backend: a table that counts, and hands on ---- */

#define COUNTED(X) \
  X(malloc, (int id, size_t bytes, GPUCSRStream s, void **p), (id, bytes, s, p)) \
  X(free, (int id, GPUCSRStream s, void *p), (id, s, p)) \
  X(copy, (int id, void *dst, const void *src, size_t bytes, GPUCSRCopyKind kind, GPUCSRStream s), (id, dst, src, bytes, kind, s)) \
  X(zero, (int id, void *p, size_t bytes, GPUCSRStream s), (id, p, bytes, s)) \
  X(eventcreate, (int id, PetscBool timing, GPUCSREvent *e), (id, timing, e)) \
  X(eventdestroy, (int id, GPUCSREvent e), (id, e)) \
  X(eventrecord, (int id, GPUCSREvent e, GPUCSRStream s), (id, e, s)) \
  X(eventsynchronize, (int id, GPUCSREvent e), (id, e)) \
  X(streamwait, (int id, GPUCSRStream s, GPUCSREvent e), (id, s, e)) \
  X(streamsynchronize, (int id, GPUCSRStream s), (id, s))

static const GPUCSRBackendOps *backend;

#define COUNT(call, parameters, arguments) \
  static struct { \
    int    n; \
    double s; \
  } count_##call; \
  static PetscErrorCode Counted_##call parameters \
  { \
    PetscLogDouble t0, t1; \
\
    PetscFunctionBeginUser; \
    PetscCall(PetscTime(&t0)); \
    PetscCall((*backend->call)arguments); \
    PetscCall(PetscTime(&t1)); \
    count_##call.n++; \
    count_##call.s += t1 - t0; \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
COUNTED(COUNT)
#undef COUNT

/* From here on, or no more: then says how often each was called, and its microseconds in all */
static PetscErrorCode Calls(GPUCSRDevice dev, PetscBool begin, const char what[], double seconds)
{
  static GPUCSRBackendOps ops;

  PetscFunctionBeginUser;
  if (begin) {
    backend = dev->ops;
    ops     = *backend;
#define TAKE(call, parameters, arguments) \
  ops.call       = Counted_##call; \
  count_##call.n = 0; \
  count_##call.s = 0;
    COUNTED(TAKE)
#undef TAKE
    dev->ops = &ops;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  dev->ops = backend;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "  %s %.1f us:", what, 1e6 * seconds));
#define SAY(call, parameters, arguments) \
  if (count_##call.n) PetscCall(PetscPrintf(PETSC_COMM_SELF, " " #call " %d x %.2f", count_##call.n, 1e6 * count_##call.s / count_##call.n));
  COUNTED(SAY)
#undef SAY
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  GPUCSRPlan    *plan;
  GPUCSRProduct *product;
} Single;

static PetscErrorCode LaunchSingle(void *ctx)
{
  const Single *one = (const Single *)ctx;

  return GPUCSRPlanProduct(one->plan, one->product, one->plan->A.dev->stream);
}

/* product: seconds of the chosen kernel, where it was timed; else it is timed here */
static PetscErrorCode SetUp(const Bench *b, const Problem *p, GPUCSRPrecision precision, double product)
{
  static const GPUCSRRequest anything = {.format = "auto", .kernel = "auto"};
  enum {
    BUILD,
    REFRESH,
    TBUILD,
    TREFRESH,
    PRODUCT,
    TPRODUCT,
    INSPECT,
    CHOOSE,
    UPLOAD,
    CONVERT,
    NSTEPS
  };
  const int      repeats = p->f.nnz < 2000000 ? 7 : p->f.nnz < 20000000 ? 3 : 1, turns = p->f.nnz < 2000000 ? 5 : 1; /* of a product, and of a refresh with one: they differ by little */
  const double   csr = GPUCSRCSRBytes(&p->f, precision), values = (double)GPUCSRTypeSize(GPUCSRValueType(precision)) * (double)p->f.nnz;
  GPUCSRPlan     P = {0}, T = {0};
  const double   held = GPUCSRCSRBytes(&p->f, GPUCSR_PRECISION_DOUBLE), heldvalues = 8.0 * (double)p->f.nnz; /* bytes, in PETSc's hands */
  double         t[NSTEPS][40], us[NSTEPS], copy, vcopy, hcopy, hvcopy, device = 0, peak = 0, transposed = 0;
  PetscLogDouble t0, t1;
  PetscBool      can                 = PETSC_FALSE;
  SetUpResult   *r                   = &setups[nsetups++];
  char           format[GPUCSR_WORD] = "", kernel[GPUCSR_WORD] = "";
  const size_t   vbytes = 8 * (size_t)PetscMax(p->src.m, p->src.n);
  void          *x = NULL, *z = NULL;
  GPUCSRProduct  pr = {.alpha = 1};

  PetscFunctionBeginUser;
  PetscCall(GPUCSRMalloc(b->dev, vbytes, "x", &x));
  PetscCall(GPUCSRMalloc(b->dev, vbytes, "z", &z));
  pr.x = x;
  pr.z = z;
#define STEP(which, turn, call) \
  do { \
    PetscCall(GPUCSRDeviceSynchronize(b->dev)); \
    PetscCall(PetscTime(&t0)); \
    PetscCall(call); \
    PetscCall(GPUCSRDeviceSynchronize(b->dev)); \
    PetscCall(PetscTime(&t1)); \
    if (k) t[which][(k - 1) + (turn)*repeats] = t1 - t0; \
  } while (0)
  for (int k = 0; k <= repeats; k++) { /* the first fills the memory pools */
    const size_t before = b->dev->allocated;

    b->dev->peak = before;
    PetscCall(PetscMemzero(&P, sizeof(P)));
    STEP(BUILD, 0, GPUCSRPlanBuild(b->dev, &p->src, precision, &anything, &P));
    peak   = (double)(b->dev->peak - before);
    device = GPUCSRPlanBytes(&P);
    PetscCall(PetscStrncpy(format, P.A.format->name, sizeof(format)));
    PetscCall(PetscStrncpy(kernel, P.choice.kernel ? P.choice.kernel->name : "none", sizeof(kernel)));
    pr.last = P.A.m;
    for (int turn = 0; turn < turns; turn++) {
      STEP(PRODUCT, turn, GPUCSRPlanProduct(&P, &pr, b->dev->stream));
      STEP(REFRESH, turn, RefreshAndProduct(&P, &p->src, NULL, &pr));
    }
    PetscCall(PetscMemzero(&T, sizeof(T)));
    STEP(TBUILD, 0, GPUCSRPlanBuildTranspose(b->dev, &p->src, &P, precision, &anything, &T));
    transposed = GPUCSRPlanBytes(&T);
    PetscCall(GPUCSRPlanCanRefresh(&T, &can));
    pr.last = T.A.m;
    STEP(TPRODUCT, 0, GPUCSRPlanProduct(&T, &pr, b->dev->stream));
    if (can) STEP(TREFRESH, 0, RefreshAndProduct(&T, &p->src, &P, &pr));
    PetscCall(GPUCSRPlanDestroy(&T));
    if (k) t[CHOOSE][k - 1] = P.costs.choose; /* on the host, after the inspector was waited for */
    PetscCall(GPUCSRPlanDestroy(&P));
    /* once more, with the device's work waited for after each part */
    GPUCSRSettingsGlobal.report = PETSC_TRUE;
    PetscCall(PetscMemzero(&P, sizeof(P)));
    PetscCall(GPUCSRPlanBuild(b->dev, &p->src, precision, &anything, &P));
    GPUCSRSettingsGlobal.report = PETSC_FALSE;
    if (k) {
      t[INSPECT][k - 1] = P.costs.inspect;
      t[UPLOAD][k - 1]  = P.costs.upload;
      t[CONVERT][k - 1] = P.costs.convert;
    }
    PetscCall(GPUCSRPlanDestroy(&P));
  }
#undef STEP
  for (int s = 0; s < NSTEPS; s++) us[s] = 1e6 * (s == TREFRESH && !can ? NAN : BenchMedian(t[s], s == PRODUCT || s == REFRESH ? turns * repeats : repeats));
  us[REFRESH] = PetscMax(0, us[REFRESH] - us[PRODUCT]);
  us[TREFRESH] -= us[TPRODUCT];
  if (!isfinite(product)) {
    Single one = {&P, &pr};
    int    n;

    PetscCall(PetscMemzero(&P, sizeof(P)));
    PetscCall(GPUCSRPlanBuild(b->dev, &p->src, precision, &anything, &P));
    pr.last = P.A.m;
    PetscCall(BenchCalibrate(&b->clock, LaunchSingle, &one, &n, &product));
    PetscCall(GPUCSRPlanDestroy(&P));
  }
  if (b->calls) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%s %s, %s %s, inspect %.1f choose %.1f upload %.1f convert %.1f us\n", p->name, precisionwords[precision], format, kernel, us[INSPECT], us[CHOOSE], us[UPLOAD], us[CONVERT]));
    PetscCall(PetscMemzero(&P, sizeof(P)));
    PetscCall(Calls(b->dev, PETSC_TRUE, NULL, 0));
    PetscCall(PetscTime(&t0));
    PetscCall(GPUCSRPlanBuild(b->dev, &p->src, precision, &anything, &P));
    PetscCall(PetscTime(&t1));
    PetscCall(Calls(b->dev, PETSC_FALSE, "set-up", t1 - t0));
    pr.last = P.A.m;
    PetscCall(Calls(b->dev, PETSC_TRUE, NULL, 0));
    PetscCall(PetscTime(&t0));
    PetscCall(RefreshAndProduct(&P, &p->src, NULL, &pr));
    PetscCall(PetscTime(&t1));
    PetscCall(Calls(b->dev, PETSC_FALSE, "refresh and product", t1 - t0));
    PetscCall(GPUCSRPlanDestroy(&P));
  }
  PetscCall(GPUCSRFree(b->dev, vbytes, &x));
  PetscCall(GPUCSRFree(b->dev, vbytes, &z));
  PetscCall(BenchPageable(b->dev, (size_t)csr, cudaMemcpyHostToDevice, repeats, &copy));
  PetscCall(BenchPageable(b->dev, (size_t)values, cudaMemcpyHostToDevice, repeats, &vcopy));
  hcopy  = copy;
  hvcopy = vcopy;
  if (held > csr) PetscCall(BenchPageable(b->dev, (size_t)held, cudaMemcpyHostToDevice, repeats, &hcopy));
  if (held > csr) PetscCall(BenchPageable(b->dev, (size_t)heldvalues, cudaMemcpyHostToDevice, repeats, &hvcopy));

  PetscCall(PetscStrncpy(r->name, p->name, sizeof(r->name)));
  r->precision = precision;
  r->ratio[0]  = 1e-6 * (us[UPLOAD] + us[CONVERT]) / (0.7 * hcopy + 30 * product);
  r->ratio[1]  = 1e-6 * us[REFRESH] / (0.7 * hvcopy + 2 * product);
  r->ratio[2]  = 1e-6 * us[BUILD] / (0.7 * copy + 30 * product);
  r->ratio[3]  = 1e-6 * us[REFRESH] / (0.7 * vcopy + 2 * product);
  r->memory    = device / csr;
  JsonBegin(b->out, "setup");
  JsonMatrix(b->out, p, precision);
  JsonText(b->out, "format", format);
  JsonText(b->out, "kernel", kernel);
  JsonNumber(b->out, "setup_us", us[BUILD]);
  JsonNumber(b->out, "inspect_us", us[INSPECT]);
  JsonNumber(b->out, "choose_us", us[CHOOSE]);
  JsonNumber(b->out, "upload_us", us[UPLOAD]);
  JsonNumber(b->out, "convert_us", us[CONVERT]);
  JsonNumber(b->out, "copy_us", 1e6 * copy);
  JsonNumber(b->out, "held_copy_us", 1e6 * hcopy);
  JsonNumber(b->out, "held_value_copy_us", 1e6 * hvcopy);
  JsonNumber(b->out, "held_setup_ratio", r->ratio[0]);
  JsonNumber(b->out, "held_refresh_ratio", r->ratio[1]);
  JsonNumber(b->out, "setup_ratio", r->ratio[2]);
  JsonNumber(b->out, "refresh_us", us[REFRESH]);
  JsonNumber(b->out, "value_copy_us", 1e6 * vcopy);
  JsonNumber(b->out, "refresh_ratio", r->ratio[3]);
  JsonNumber(b->out, "product_us", 1e6 * product);
  JsonNumber(b->out, "transpose_us", us[TBUILD]);
  JsonNumber(b->out, "transpose_refresh_us", us[TREFRESH]);
  JsonNumber(b->out, "csr_bytes", csr);
  JsonNumber(b->out, "device_bytes", device);
  JsonNumber(b->out, "peak_bytes", peak);
  JsonNumber(b->out, "transpose_bytes", transposed);
  JsonEnd(b->out);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a matrix ---- */

static PetscErrorCode Reference(Problem *p, int side, int threads)
{
  const GPUCSRSource *s = &p->src;
  const int           m = side ? s->n : s->m;
  double             *y, *bound, *count;

  PetscFunctionBeginUser;
  PetscCall(PetscCalloc3(m, &y, m, &bound, m, &count));
  if (!side) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1024)
    for (int r = 0; r < m; r++) {
      for (int32_t k = s->i[r]; k < s->i[r + 1]; k++) {
        y[r] += s->a[k] * p->x[s->j[k]];
        bound[r] += fabs(s->a[k] * p->x[s->j[k]]);
      }
      count[r] = s->i[r + 1] - s->i[r];
    }
  } else {
    for (int r = 0; r < s->m; r++)
      for (int32_t k = s->i[r]; k < s->i[r + 1]; k++) {
        y[s->j[k]] += s->a[k] * p->x[r];
        bound[s->j[k]] += fabs(s->a[k] * p->x[r]);
        count[s->j[k]]++;
      }
  }
  for (int r = 0; r < m; r++) bound[r] *= 8 + sqrt(count[r]);
  PetscCall(PetscMalloc2(m, &p->y[side], m, &p->bound[side]));
  PetscCall(PetscArraycpy(p->y[side], y, m));
  PetscCall(PetscArraycpy(p->bound[side], bound, m));
  PetscCall(PetscFree3(y, bound, count));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* An error in one case is written down, and the next one runs, unless the device is lost */
static PetscErrorCode Failure(const Bench *b, const Problem *p, GPUCSRPrecision precision, const char side[], PetscErrorCode ierr, const GPUCSRAttempt *a)
{
  PetscFunctionBeginUser;
  if (!ierr) PetscFunctionReturn(PETSC_SUCCESS);
  nfailures++;
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "FAILED %s %s %s: %s\n", p->name, precisionwords[precision], side, a->message));
  JsonBegin(b->out, "failure");
  JsonMatrix(b->out, p, precision);
  JsonText(b->out, "side", side);
  JsonText(b->out, "message", a->message);
  JsonEnd(b->out);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Measure(const Bench *b, Problem *p)
{
  static const GPUCSRRequest csr = {.format = "csr", .kernel = "auto"};
  const int                  n   = PetscMax(p->src.m, p->src.n);
  GPUCSRAttempt              attempt;
  PetscErrorCode             ierr;
  Case                      *c;

  PetscFunctionBeginUser;
  PetscCheck(nresults + 6 <= (int)(sizeof(results) / sizeof(results[0])), PETSC_COMM_SELF, PETSC_ERR_PLIB, "More matrices than the tables of this program hold: %d", MAX_FILES);
  PetscCall(PetscNew(&c));
  PetscCall(GPUCSRFeaturesOfRows(p->src.m, p->src.n, p->src.i, b->dev->threads, &p->f));
  PetscCall(PetscMalloc1(n, &p->x));
  for (int k = 0; k < n; k++) p->x[k] = (double)(float)(SyntheticUniform(99, 0, (uint64_t)k) - 0.5);
  for (int side = 0; side < 2; side++)
    if (b->products && b->sides[side]) PetscCall(Reference(p, side, b->dev->threads));
  for (int q = 0; q < 3; q++) {
    const GPUCSRPrecision precision = (GPUCSRPrecision)q;
    GPUCSRPlan            A         = {0};
    double                product   = NAN, ignored;

    if (!b->precisions[q]) continue;
    PetscCall(GPUCSRPlanBuild(b->dev, &p->src, precision, &csr, &A));
    for (int side = 0; side < 2; side++) {
      if (!b->products || !b->sides[side]) continue;
      PetscCall(PetscMemzero(c, sizeof(*c)));
      c->b         = b;
      c->p         = p;
      c->A         = &A;
      c->precision = precision;
      c->side      = side;
      PetscCall(GPUCSRAttemptBegin(&attempt));
      ierr = CaseRun(c, side ? &ignored : &product);
      PetscCall(GPUCSRAttemptEnd(&attempt));
      PetscCall(Failure(b, p, precision, sidewords[side], ierr, &attempt));
      PetscCall(CaseDestroy(c));
    }
    PetscCall(GPUCSRPlanDestroy(&A));
    if (!b->setup || (b->products && !isfinite(product))) continue;
    PetscCall(GPUCSRAttemptBegin(&attempt));
    ierr = SetUp(b, p, precision, product);
    PetscCall(GPUCSRAttemptEnd(&attempt));
    PetscCall(Failure(b, p, precision, "set-up", ierr, &attempt));
  }
  for (int side = 0; side < 2; side++)
    if (b->products && b->sides[side]) PetscCall(PetscFree2(p->y[side], p->bound[side]));
  PetscCall(PetscFree(p->x));
  PetscCall(PetscFree(c));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MeasureFile(const Bench *b, const char file[], Problem *p)
{
  Mat             A;
  PetscViewer     viewer;
  const PetscInt *i, *j;
  PetscScalar    *a;
  PetscInt        m, n;
  PetscBool       isaij;

  PetscFunctionBeginUser;
  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_SELF, file, FILE_MODE_READ, &viewer));
  PetscCall(MatCreate(PETSC_COMM_SELF, &A));
  PetscCall(MatSetType(A, MATSEQAIJ));
  PetscCall(MatLoad(A, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscCall(PetscObjectTypeCompare((PetscObject)A, MATSEQAIJ, &isaij));
  PetscCheck(isaij, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: does not hold a sparse matrix", file);
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, &a, NULL));
  p->src = (GPUCSRSource){(int)m, (int)n, i[m], (const int32_t *)i, j, a};
  if (i[m]) PetscCall(Measure(b, p));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MeasureSynthetic(const Bench *b, const Synthetic *s, int shrink, Problem *p)
{
  int          m, n;
  int32_t     *i;
  PetscInt    *j;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(SyntheticCreate(s, shrink, &m, &n, &i, &j, &a));
  p->src = (GPUCSRSource){m, n, i[m], i, j, a};
  PetscCall(Measure(b, p));
  PetscCall(SyntheticDestroy(&i, &j, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the end ---- */

static double GeometricMean(const double *v, int n)
{
  double sum = 0;

  for (int k = 0; k < n; k++) sum += log(v[k]);
  return n ? exp(sum / n) : NAN;
}

/* The list first, so that the end of a long output is what sums it up */
static PetscErrorCode Table(void)
{
  static double v[5][6 * MAX_FILES];

  PetscFunctionBeginUser;
  for (int k = 0, head = 1; k < nresults; k++) {
    const Result *r = &results[k];

    if (!(r->ratio < 1)) continue;
    if (head) PetscCall(PetscPrintf(PETSC_COMM_SELF, "\nslower than cuSPARSE's best: matrix, ratio, chosen kernel, (best kernel, its ratio)\n"));
    head = 0;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "  %-24s %-6s %s  %.3f  %s (%s %.3f)\n", r->name, precisionwords[r->precision], sidewords[r->side], r->ratio, r->chosen, r->best, r->bestratio));
  }
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\nclass      precision side  matrices   cuSPARSE/chosen  cuSPARSE/best   regret  worst   of copy  slower\n"));
  for (int cls = 0; cls < 2; cls++)
    for (int q = 0; q < 3; q++)
      for (int side = 0; side < 2; side++) {
        int    n = 0, np = 0, slower = 0;
        double worst = 0, fraction = 0;

        for (int k = 0; k < nresults; k++) {
          const Result *r = &results[k];

          if ((int)r->real != cls || (int)r->precision != q || r->side != side) continue;
          v[2][n++] = r->regret;
          worst     = PetscMax(worst, r->regret);
          fraction += r->fraction;
          if (!isfinite(r->ratio)) continue;
          v[0][np]   = r->ratio;
          v[1][np++] = r->bestratio;
          slower += r->ratio < 1;
        }
        if (n)
          PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-10s %-9s %-4s  %8d   %15.3f  %13.3f  %7.3f  %5.2f   %7.2f  %6d\n", cls ? "real" : "synthetic", precisionwords[q], sidewords[side], n, GeometricMean(v[0], np), GeometricMean(v[1], np), GeometricMean(v[2], n), worst, fraction / n, slower));
      }
  for (int side = 0; side < 2; side++) {
    int n = 0;

    for (int k = 0; k < nresults; k++)
      if (results[k].side == side && isfinite(results[k].petsc)) v[0][n++] = results[k].petsc;
    if (n) PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n%s of MATSEQAIJCUSPARSE, double, %d matrices: %.3f times the chosen one's time in the geometric mean", side ? "MatMultTranspose()" : "MatMult()", n, GeometricMean(v[0], n)));
  }
  for (int q = 0; q < 3; q++) {
    int    n = 0, over[4] = {0};
    double worst[5] = {0};

    for (int k = 0; k < nsetups; k++) {
      if (setups[k].precision != q) continue;
      for (int w = 0; w < 4; w++) {
        v[w][n]  = setups[k].ratio[w];
        worst[w] = PetscMax(worst[w], v[w][n]);
        over[w] += v[w][n] > 1;
      }
      v[4][n]  = setups[k].memory;
      worst[4] = PetscMax(worst[4], v[4][n]);
      n++;
    }
    if (n)
      PetscCall(PetscPrintf(PETSC_COMM_SELF,
                            "\n%s, %d matrices, of what is allowed, mean (worst, above): conversion and upload %.2f (%.2f, %d), refresh %.2f (%.2f, %d); with inspection and choice, of the copy of bytes as sent: set-up %.2f (%.2f, %d), refresh %.2f "
                            "(%.2f, %d); device bytes / CSR bytes "
                            "%.3f (%.2f)\n",
                            precisionwords[q], n, GeometricMean(v[0], n), worst[0], over[0], GeometricMean(v[1], n), worst[1], over[1], GeometricMean(v[2], n), worst[2], over[2], GeometricMean(v[3], n), worst[3], over[3], GeometricMean(v[4], n), worst[4]));
  }
  if (nfailures) PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n%d WRONG or FAILED, see above\n", nfailures));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the list of matrices ---- */

static PetscErrorCode AddFile(const char file[], char *files[], int *n)
{
  PetscFunctionBeginUser;
  PetscCheck(*n < MAX_FILES, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "More than %d files", MAX_FILES);
  PetscCall(PetscStrallocpy(file, &files[(*n)++]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int IsPetscFile(const struct dirent *e)
{
  const size_t len = strlen(e->d_name);

  return len > 6 && !strcmp(e->d_name + len - 6, ".petsc");
}

static PetscErrorCode Files(char *files[], int *n)
{
  char    *word[64], path[PETSC_MAX_PATH_LEN];
  PetscInt nw = 64;

  PetscFunctionBeginUser;
  *n = 0;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-dir", word, &nw, NULL));
  for (PetscInt k = 0; k < nw; k++) {
    struct dirent **list;
    const int       found = scandir(word[k], &list, IsPetscFile, alphasort);

    PetscCheck(found >= 0, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-dir %s: cannot be read", word[k]);
    for (int q = 0; q < found; q++) {
      PetscCall(PetscSNPrintf(path, sizeof(path), "%s/%s", word[k], list[q]->d_name));
      PetscCall(AddFile(path, files, n));
      free(list[q]);
    }
    free(list);
    PetscCall(PetscFree(word[k]));
  }
  nw = 64;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-f", word, &nw, NULL));
  for (PetscInt k = 0; k < nw; k++) {
    PetscCall(AddFile(word[k], files, n));
    PetscCall(PetscFree(word[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The words given by an option as flags; all of the first ndefault without it */
static PetscErrorCode Words(const char option[], const char *const words[], int nwords, int ndefault, PetscBool *flag)
{
  char     *given[16];
  PetscInt  n = 16;
  PetscBool set, same;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, option, given, &n, &set));
  for (int w = 0; w < nwords; w++) flag[w] = (PetscBool)(!set && w < ndefault);
  for (PetscInt k = 0; set && k < n; k++) {
    PetscBool known = PETSC_FALSE;

    for (int w = 0; w < nwords; w++) {
      PetscCall(PetscStrcmp(given[k], words[w], &same));
      if (same) flag[w] = known = PETSC_TRUE;
    }
    PetscCheck(known, PETSC_COMM_SELF, PETSC_ERR_ARG_UNKNOWN_TYPE, "%s %s: must be some of %s, %s%s%s", option, given[k], words[0], words[1], nwords > 2 ? ", " : "", nwords > 2 ? words[2] : "");
    PetscCall(PetscFree(given[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static char   *files[MAX_FILES];
  static char    names[MAX_FILES + NSYNTHETICS + NCOLLECTION][64];
  Bench          b      = {0};
  PetscInt       shrink = 1, rounds = 7, nmatches = 64;
  PetscReal      budget    = 0;
  PetscBool      synthetic = PETSC_TRUE, more = PETSC_FALSE;
  char           samples[PETSC_MAX_PATH_LEN] = "", *match[64];
  int            nfiles, nnames = 0, late = 0, measured = 0;
  const int      made = NSYNTHETICS + NCOLLECTION;
  PetscLogDouble t0, t1;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscTime(&t0));
  b.setup = b.products = PETSC_TRUE;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-samples", samples, sizeof(samples), NULL));
  if (samples[0]) {
    b.samples = fopen(samples, "a");
    PetscCheck(b.samples, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-samples %s: cannot be written", samples);
  }
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-shrink", &shrink, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-rounds", &rounds, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-budget", &budget, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-synthetic", &synthetic, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-collection", &more, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-setup", &b.setup, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-products", &b.products, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-calls", &b.calls, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-threads", &b.threads, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-progress", &b.progress, NULL));
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-match", match, &nmatches, NULL));
  PetscCheck(shrink >= 1 && rounds >= 1 && rounds <= MAX_ROUNDS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-shrink must be at least 1, -rounds from 1 to %d", MAX_ROUNDS);
  b.rounds = (int)rounds;
  PetscCall(Words("-precisions", precisionwords, 3, 2, b.precisions));
  PetscCall(Words("-sides", sidewords, 2, 2, b.sides));
  PetscCall(Files(files, &nfiles));
  PetscCall(BenchDevice(&b.dev));
  PetscCall(BenchOutput("spmv", b.dev, &b.out));
  PetscCall(GPUCSRDeviceBandwidth(b.dev, &b.copy));
  PetscCall(BenchClockCreate(b.dev, &b.clock));
  if (b.dev->ops->separate) {
    CUSPARSECall(cusparseCreate(&b.peer));
    CUSPARSECall(cusparseSetStream(b.peer, (cudaStream_t)b.dev->stream));
  }
  for (int k = 0; k < made + nfiles; k++) {
    const Synthetic *s    = k < NSYNTHETICS ? &synthetics[k] : k < made ? &collection[k - NSYNTHETICS] : NULL;
    const char      *file = s ? NULL : files[k - made];
    char            *dot, *name = names[nnames];
    const char      *slash = file ? strrchr(file, '/') : NULL;
    Problem          p     = {0};
    PetscBool        seen = PETSC_FALSE, wanted = (PetscBool)!nmatches;

    if (s && !(k < NSYNTHETICS ? synthetic : more)) continue;
    PetscCall(PetscStrncpy(name, s ? s->name : slash ? slash + 1 : file, sizeof(names[0])));
    dot = strrchr(name, '.');
    if (dot && file) *dot = 0;
    for (int q = 0; q < nnames && !seen; q++) PetscCall(PetscStrcmp(names[q], name, &seen));
    for (PetscInt q = 0; q < nmatches; q++) wanted = (PetscBool)(wanted || strstr(name, match[q]));
    if (seen || !wanted) continue;
    nnames++;
    PetscCall(PetscTime(&t1));
    if (budget > 0 && t1 - t0 > budget) {
      late++;
      continue;
    }
    p.name = name;
    p.real = (PetscBool)(file != NULL);
    if (file) PetscCall(MeasureFile(&b, file, &p));
    else PetscCall(MeasureSynthetic(&b, s, (int)shrink, &p));
    measured++;
  }
  PetscCall(PetscTime(&t1));
  PetscCall(Table());
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n%d matrices in %.0f s", measured, t1 - t0));
  if (late) PetscCall(PetscPrintf(PETSC_COMM_SELF, "; %d LEFT OUT, the budget of %g s was spent", late, (double)budget));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n"));
  for (int k = 0; k < nfiles; k++) PetscCall(PetscFree(files[k]));
  for (PetscInt k = 0; k < nmatches; k++) PetscCall(PetscFree(match[k]));
  if (b.peer) CUSPARSECall(cusparseDestroy(b.peer));
  PetscCall(BenchClockDestroy(&b.clock));
  if (b.out) fclose(b.out);
  if (b.samples) fclose(b.samples);
  PetscCall(GPUCSRPlanFinalize());
  PetscCall(GPUCSRSysFinalize());
  PetscCall(PetscFinalize());
  return nfailures > 0;
}

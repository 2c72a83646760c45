static char help[] = "Products with vectors on the device: every kernel of the library against cuSPARSE.\n\n";

/*
    spmv [-dir FOLDER,...] [-f FILE,...] [-synthetic no] [-collection] [-meshes] [-drawn FIRST,LAST] [-o FILE]      on a GPU
    spmv -backend host -shrink 20                                      without one, to try the program itself

  Matrices: the synthetic matrices of synthetic.h (-shrink k: smaller), with -collection the survey's too, with -meshes Delaunay meshes of linear and quadratic elements, saddle points and graphs by R-MAT, with -drawn random matrices (SyntheticDrawn()), then every *.petsc of
  the folders and the files, PETSc binary, without repeated names. -match TEXT,... takes only matrices with one of the texts in the name.
  -pairs TEXT,... takes only pairs with one of the texts in "FORMAT KERNEL", and the chosen pairs.
  Other options: -precisions double,single,mixed (the first two), -sides N,T (both), -setup no (products alone), -products no
  (set-up alone), -calls (the backend's calls in set-up and refresh), -budget s (the program skips and counts later matrices), -rounds n (7), -progress, -id TEXT.

  For each matrix, precision and side all candidates run in turn: all kernels whose format can hold the matrix, and cuSPARSE's three CSR algorithms after
  cusparseSpMV_preprocess(). For the transpose its default algorithm works on the CSR of A, and all three work on the CSR of the transpose, which the
  library has too. Each round gives every candidate one batch of successive launches between two events, after one launch without
  a time. A batch lasts 100 us or one launch. The device starts after the host has queued the whole batch, so the host's time does not count.
  A time is the median over rounds. The program times a candidate well behind the best (SLOW) once, and does not verify a candidate far behind (HOPELESS). It does not build a candidate whose bytes alone take longer. It compares all other
  results with the host's in double, with the bound (8 + sqrt(n)) eps sum|a||x| for a row of n entries.

  -threads: kernels with a free number of threads a block also run with 64, 128, 256 and 512, for A x in double.

  Set-up: GPUCSRPlanBuild() with warm memory pools, and GPUCSRPlanRefresh(). The peer is one pageable cudaMemcpy() of the CSR's or the values' bytes, in PETSc's
  precision and in the precision of the case. Conversion, padding and upload are timed separately, with a wait
  after each part.

  -o FILE gets one JSON object a line. Times are microseconds, rates 1e9/s, sizes bytes.
    run      the program and the machine: program, id, date, petsc, cuda, backend, device, processors, threads, copy_gbs
    product  matrix, class (synthetic|real), precision, side; rows, columns, nnz of A; length_min, _max, _mean, _deviation, empty,
             sell_padding of the matrix multiplied (the transpose for side T); us: time of each candidate; failed: names of those
             with wrong results, and error, the largest fraction of the allowed error met; chosen and why, chosen_us; best (of ours),
             best_us; peer (cuSPARSE's best), peer_us; gflops, gbs (of A's CSR and both vectors), fraction (of the device copy), all
             of the chosen one; ratio = peer_us / chosen_us, regret = chosen_us / best_us; regret_halves, the
             same with the best found by half of the rounds and timed by the others; chosen_spread, peer_spread: of the rounds, most less least over the median;
             gpucsr_us, aijcusparse_us, aijcusparse_explicit_us (with -mat_form_explicit_transpose; side T) and their spreads: MatMult() or MatMultTranspose()
             by the host's clock, in double, as a program sees them; the same ending in _cold_us: of copies in turn that together do not fit the last-level cache
    threads  matrix, class, precision, side; us: for each kernel its times with 64, 128, 256 and 512 threads a block
    setup    matrix, class, precision, rows, columns, nnz, format, kernel; setup_us and, each waited for, its parts inspect_us, choose_us, upload_us,
             convert_us; copy_us; setup_ratio = setup_us / (0.7 copy_us + 30 product_us); refresh_us, value_copy_us, refresh_ratio = refresh_us /
             (0.7 value_copy_us + 2 product_us); held_copy_us, held_value_copy_us of the bytes that PETSc holds; held_setup_ratio = (upload_us +
             convert_us) / (0.7 held_copy_us + 30 product_us), held_refresh_ratio; product_us; transpose_us (build, A resident),
             transpose_refresh_us; csr_bytes, device_bytes, peak_bytes (while building), transpose_bytes
    failure  matrix, precision, side, message: an unexpected error
*/
#include "spmv.h"
#include <petscgpucsr.h>
#include "../problems/files.h"
#include "../problems/synthetic.h"

const char *const precisionwords[] = {"double", "single", "mixed"};
const char *const sidewords[]      = {"N", "T"};
const char *const selectwords[]    = {"estimate", "measure", "tree"};

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

/* Writes down an error in one case; the next case runs, unless the device is lost */
static PetscErrorCode Failure(const Bench *b, const Problem *p, GPUCSRPrecision precision, const char side[], PetscErrorCode ierr, const GPUCSRAttempt *a)
{
  PetscFunctionBeginUser;
  if (!ierr) PetscFunctionReturn(PETSC_SUCCESS);
  SpmvFailed();
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "FAILED %s %s %s: %s\n", p->name, precisionwords[precision], side, a->message));
  JsonBegin(b->out, "failure");
  SpmvJsonMatrix(b->out, p, precision);
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
  Case                      *c;

  PetscFunctionBeginUser;
  PetscCall(PetscNew(&c));
  PetscCall(GPUCSRFeaturesOfRows(p->src.m, p->src.n, p->src.i, b->dev->threads, &p->f));
  PetscCall(PetscMalloc1(n, &p->x));
  for (int k = 0; k < n; k++) p->x[k] = (double)(float)(SyntheticUniform(99, 0, (uint64_t)k) - 0.5);
  for (int side = 0; side < 2; side++)
    if (b->products && b->sides[side]) PetscCall(Reference(p, side, b->dev->threads));
  for (int q = 0; q < NPRECISIONS; q++) {
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
      GPUCSRTry(&attempt, SpmvProducts(c, side ? &ignored : &product));
      PetscCall(Failure(b, p, precision, sidewords[side], attempt.error, &attempt));
      PetscCall(SpmvCaseDestroy(c));
    }
    PetscCall(GPUCSRPlanDestroy(&A));
    if (!b->setup || (b->products && !isfinite(product))) continue;
    GPUCSRTry(&attempt, SpmvSetUp(b, p, precision, product));
    PetscCall(Failure(b, p, precision, "set-up", attempt.error, &attempt));
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
  const PetscInt *i, *j;
  PetscScalar    *a;
  PetscInt        m, n;

  PetscFunctionBeginUser;
  PetscCall(BenchLoad(file, &A));
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatSeqAIJGetCSRAndMemType(A, &i, &j, &a, NULL));
  p->src = (GPUCSRSource){(int)m, (int)n, i[m], (const int32_t *)i, j, a, NULL};
  if (i[m]) PetscCall(Measure(b, p));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MeasureSynthetic(const Bench *b, const Synthetic *s, int shrink, Problem *p)
{
  int          m = 0, n = 0;
  int32_t     *i;
  PetscInt    *j;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(SyntheticCreate(s, shrink, &m, &n, &i, &j, &a));
  p->src = (GPUCSRSource){m, n, i[m], i, j, a, NULL};
  PetscCall(Measure(b, p));
  PetscCall(SyntheticDestroy(&i, &j, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The files of -dir FOLDER,... and -f FILE,... */
typedef struct {
  char *files[MAX_FILES];
  int   n;
} FileList;

static PetscErrorCode AddFile(void *list, const char file[], const char name[])
{
  FileList *l = (FileList *)list;

  PetscFunctionBeginUser;
  (void)name;
  PetscCheck(l->n < MAX_FILES, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "More than %d files", MAX_FILES);
  PetscCall(PetscStrallocpy(file, &l->files[l->n++]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Files(FileList *l)
{
  char    *word[64];
  PetscInt nw = 64;

  PetscFunctionBeginUser;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-dir", word, &nw, NULL));
  for (PetscInt k = 0; k < nw; k++) {
    PetscCall(BenchFolder(word[k], AddFile, l));
    PetscCall(PetscFree(word[k]));
  }
  nw = 64;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-f", word, &nw, NULL));
  for (PetscInt k = 0; k < nw; k++) {
    PetscCall(AddFile(l, word[k], word[k]));
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

/* The matrices, in the order in which they are measured */
typedef struct {
  FileList         from;
  char             names[2 * MAX_FILES + NSYNTHETICS + NCOLLECTION + NMESHES][64]; /* met so far */
  int              nnames;
  PetscBool        synthetic, more, meshes; /* the matrices of synthetic.h; the survey's too, the meshes */
  PetscInt         drawn[2];                /* the first of those drawn, and the one after the last */
  Synthetic        draw;
  char             drawname[64];
  char            *match[64];
  PetscInt         nmatches, shrink;
  PetscReal        budget; /* seconds; 0: none */
  const Synthetic *made;   /* the next one, if it is not a file */
  const char      *file;
} List;

#define NMADE (NSYNTHETICS + NCOLLECTION + NMESHES)

static PetscErrorCode ListCreate(List *l)
{
  PetscInt ndrawn = 2;

  PetscFunctionBeginUser;
  l->synthetic = PETSC_TRUE;
  l->shrink    = 1;
  l->nmatches  = PETSC_STATIC_ARRAY_LENGTH(l->match);
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-shrink", &l->shrink, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-budget", &l->budget, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-synthetic", &l->synthetic, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-collection", &l->more, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-meshes", &l->meshes, NULL));
  PetscCall(PetscOptionsGetIntArray(NULL, NULL, "-drawn", l->drawn, &ndrawn, NULL));
  PetscCheck((ndrawn == 2 && l->drawn[0] >= 0 && l->drawn[1] >= l->drawn[0] && l->drawn[1] - l->drawn[0] <= MAX_FILES) || !l->drawn[1], PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-drawn must be the number of the first and of the one after the last, at most %d", MAX_FILES);
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-match", l->match, &l->nmatches, NULL));
  PetscCheck(l->shrink >= 1, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-shrink must be at least 1");
  PetscCall(Files(&l->from));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ListDestroy(List *l)
{
  PetscFunctionBeginUser;
  for (int k = 0; k < l->from.n; k++) PetscCall(PetscFree(l->from.files[k]));
  for (PetscInt k = 0; k < l->nmatches; k++) PetscCall(PetscFree(l->match[k]));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Number k of the list; name: NULL for a matrix not asked for, or met before */
static PetscErrorCode ListGet(List *l, int k, const char **name)
{
  const int   drawn = (int)(l->drawn[1] - l->drawn[0]);
  char       *to    = l->names[l->nnames], *dot;
  const char *slash;
  PetscBool   seen = PETSC_FALSE, wanted = (PetscBool)!l->nmatches;

  PetscFunctionBeginUser;
  *name   = NULL;
  l->made = k < NSYNTHETICS ? &synthetics[k] : k < NSYNTHETICS + NCOLLECTION ? &collection[k - NSYNTHETICS] : k < NMADE ? &meshes[k - NSYNTHETICS - NCOLLECTION] : NULL;
  if (k >= NMADE && k < NMADE + drawn) {
    SyntheticDrawn((int)l->drawn[0] + k - NMADE, &l->draw, l->drawname);
    l->made = &l->draw;
  }
  l->file = l->made ? NULL : l->from.files[k - NMADE - drawn];
  if (l->made && k < NMADE && !(k < NSYNTHETICS ? l->synthetic : k < NSYNTHETICS + NCOLLECTION ? l->more : l->meshes)) PetscFunctionReturn(PETSC_SUCCESS);
  slash = l->file ? strrchr(l->file, '/') : NULL;
  PetscCall(PetscStrncpy(to, l->made ? l->made->name : slash ? slash + 1 : l->file, sizeof(l->names[0])));
  dot = strrchr(to, '.');
  if (dot && l->file) *dot = 0;
  for (int q = 0; q < l->nnames && !seen; q++) PetscCall(PetscStrcmp(l->names[q], to, &seen));
  for (PetscInt q = 0; q < l->nmatches; q++) wanted = (PetscBool)(wanted || strstr(to, l->match[q]));
  if (seen || !wanted) PetscFunctionReturn(PETSC_SUCCESS);
  l->nnames++;
  *name = to;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BenchCreate(Bench *b)
{
  char     samples[PETSC_MAX_PATH_LEN] = "";
  PetscInt rounds                      = 7;

  PetscFunctionBeginUser;
  b->setup = b->products = PETSC_TRUE;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-samples", samples, sizeof(samples), NULL));
  if (samples[0]) {
    b->samples = fopen(samples, "a");
    PetscCheck(b->samples, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-samples %s: cannot be written", samples);
  }
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-rounds", &rounds, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-setup", &b->setup, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-products", &b->products, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-calls", &b->calls, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-threads", &b->threads, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-progress", &b->progress, NULL));
  b->npairs = PETSC_STATIC_ARRAY_LENGTH(b->pairs);
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-pairs", b->pairs, &b->npairs, NULL));
  PetscCheck(rounds >= 1 && rounds <= MAX_ROUNDS, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-rounds must be from 1 to %d", MAX_ROUNDS);
  b->rounds = (int)rounds;
  PetscCall(Words("-precisions", precisionwords, NPRECISIONS, 2, b->precisions));
  PetscCall(Words("-sides", sidewords, 2, 2, b->sides));
  PetscCall(BenchDevice(&b->dev));
  PetscCall(BenchOutput("spmv", b->dev, &b->out));
  PetscCall(GPUCSRDeviceBandwidth(b->dev, &b->copy));
  PetscCall(BenchClockCreate(b->dev, &b->clock));
  if (b->dev->ops->separate) {
    CUSPARSECall(cusparseCreate(&b->peer));
    CUSPARSECall(cusparseSetStream(b->peer, (cudaStream_t)b->dev->stream));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode BenchDestroy(Bench *b)
{
  PetscFunctionBeginUser;
  if (b->peer) CUSPARSECall(cusparseDestroy(b->peer));
  PetscCall(BenchClockDestroy(&b->clock));
  for (PetscInt k = 0; k < b->npairs; k++) PetscCall(PetscFree(b->pairs[k]));
  if (b->out) fclose(b->out);
  if (b->samples) fclose(b->samples);
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static List    l;
  Bench          b    = {0};
  int            late = 0, measured = 0, failures;
  PetscLogDouble t0, t1;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PetscTime(&t0));
  PetscCall(ListCreate(&l));
  PetscCall(BenchCreate(&b));
  for (int k = 0; k < NMADE + (int)(l.drawn[1] - l.drawn[0]) + l.from.n; k++) {
    Problem p = {0};

    PetscCall(ListGet(&l, k, &p.name));
    if (!p.name) continue;
    PetscCall(PetscTime(&t1));
    if (l.budget > 0 && t1 - t0 > l.budget) {
      late++;
      continue;
    }
    p.real = (PetscBool)(l.file != NULL);
    if (l.file) PetscCall(MeasureFile(&b, l.file, &p));
    else PetscCall(MeasureSynthetic(&b, l.made, (int)l.shrink, &p));
    measured++;
  }
  PetscCall(PetscTime(&t1));
  PetscCall(SpmvTables(&failures));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n%d matrices in %.0f s", measured, t1 - t0));
  if (late) PetscCall(PetscPrintf(PETSC_COMM_SELF, "; %d LEFT OUT, the budget of %g s was spent", late, (double)l.budget));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n"));
  PetscCall(ListDestroy(&l));
  PetscCall(BenchDestroy(&b));
  PetscCall(PetscFinalize());
  return failures > 0;
}

static char help[] = "Times CSR kernels of every mapping, load width and memory space: the 335 of A. H. El Zein's thesis, for a GPU of today.\n\n";

/*
    variants [-dir FOLDER,...] [-generated no] [-sweep] [-shrink k] [-o FILE] [-budget s] [-rounds n] [-precisions double,single]

  A. H. El Zein, M. Phil. thesis, ANU 2009, section 4.4: kernels for CSR with all combinations of threads a row, load width and memory space.
  Here:   t1 t4 t16 tb           threads a row; b: a block of 128
          w1 w2 w4               entries a load
          plain ldg cs tex       values and columns: ordinary loads, read-only, streaming, texture
          plain ldg tex const shared   row pointers, and x.
  A name has this order: t4-w2-ldg-shared-tex. Constant and shared memory only if the data fit. In addition, with read-only loads and every t and w, 2, 5, 10 and 20 rows a
  unit, -c2 (cyclic) or -b2 (neighbouring rows). Each kernel is verified before it is timed; the bound of a row's error is eps times its entries times the sum of |a x|.

  -sweep takes the matrices of the thesis' figures 4.4 to 4.7: 3000 rows of equal length with 100 to 10 000 columns, of which 0.1 to 20 % hold entries at random places.

  The program starts no matrix after -budget (50) seconds. It times a variant once, roughly, if the variant takes four times the best time so far. If it takes
  fifty times as long, the program skips all other variants with as many threads a row.
  FILE gets one line for each matrix and precision: rows, columns, nnz, and us. us is an object of names and microseconds (median of -rounds (3) batches). It includes the library's
  CSR kernels (csr_vector4, ...) and the library's choice (chosen, chosen_us). src/benchmarks/papers/variants.py makes the tables.
*/
#include "../bench.h"
#include "../problems/matrices.h"
#include "variants.h"

static const char *const spaceword[] = {"plain", "ldg", "cs", "tex", "const", "shared"};

static const char *const ours[] = {"csr_scalar", "csr_vector2", "csr_vector4", "csr_vector8", "csr_vector16", "csr_vector32", "csr_vector8_wide4", "csr_vector32_wide4", "csr_block", "csr_adaptive"};

typedef struct {
  GPUCSRDevice   dev;
  BenchClock     clock;
  FILE          *out;
  int            rounds, late, measured, wrong, kernels; /* kernels: timed in all, */
  int            written;                                /* of this matrix */
  PetscBool      hopeless[VARIANT_BLOCK + 1];            /* of this matrix: so many threads a row */
  PetscBool      precisions[2];
  PetscReal      budget;
  PetscLogDouble begin;
} Bench;

typedef struct {
  const Variant       *v;
  const VariantMatrix *A;
  GPUCSRStream         stream;
} Timed;

static PetscErrorCode Launch(void *ctx)
{
  const Timed *t = (const Timed *)ctx;

  PetscFunctionBeginUser;
  BenchTry(VariantLaunch(t->v, t->A, t->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Microseconds of a launch; once only where it is far behind *best */
static PetscErrorCode Clock(const Bench *b, BenchLaunch launch, void *ctx, double *best, double *us)
{
  double t[32], once;
  int    batch;

  PetscFunctionBeginUser;
  PetscCall(BenchBatch(&b->clock, launch, ctx, 1, &once));
  *us = 1e6 * once;
  if (*us > 4 * *best + 10) PetscFunctionReturn(PETSC_SUCCESS);
  batch = BenchBatchSize(once);
  for (int r = 0; r < b->rounds; r++) PetscCall(BenchBatch(&b->clock, launch, ctx, batch, &t[r]));
  *us   = 1e6 * BenchMedian(t, b->rounds);
  *best = PetscMin(*best, *us);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Write(Bench *b, const char name[], double us)
{
  if (b->out) fprintf(b->out, "%s\"%s\": %.4g", b->written++ ? ", " : ", \"us\": {", name, us);
}

/* ---- a matrix on the device ---- */

typedef struct {
  VariantMatrix A;
  size_t        bytes[5];
  double       *right, *bound; /* of z, on the device */
  int          *wrong;
} Problem;

static void **Array(Problem *p, int k)
{
  return k == 0 ? (void **)&p->A.ptr : k == 1 ? (void **)&p->A.col : k == 2 ? (void **)&p->A.val : k == 3 ? (void **)&p->A.x : &p->A.z;
}

/* The right z, and its allowed error, in the numbers of the precision */
static void Right(const GPUCSRSource *s, PetscBool single, const double *x, double *right, double *bound)
{
  const double eps = single ? 1.2e-7 : 2.3e-16;

#pragma omp parallel for schedule(dynamic, 1024)
  for (int r = 0; r < s->m; r++) {
    double sum = 0, size = 0;

    for (int k = s->i[r]; k < s->i[r + 1]; k++) {
      const double a = single ? (float)s->a[k] : s->a[k], t = a * x[s->j[k]];

      sum += t;
      size += fabs(t);
    }
    right[r] = sum;
    bound[r] = eps * (4 + s->i[r + 1] - s->i[r]) * size;
  }
}

static PetscErrorCode ProblemCreate(const Bench *b, const GPUCSRSource *s, PetscBool single, Problem *p)
{
  const GPUCSRType   type = single ? GPUCSR_FLOAT : GPUCSR_DOUBLE;
  const size_t       size = GPUCSRTypeSize(type), nnz = (size_t)s->nnz;
  const GPUCSRStream stream = b->dev->stream;
  double            *x, *right, *bound;

  PetscFunctionBeginUser;
  memset(p, 0, sizeof(*p));
  p->A.single = single, p->A.m = s->m, p->A.n = s->n;
  p->bytes[0] = ((size_t)s->m + 1) * sizeof(int);
  p->bytes[1] = (nnz + 4) * sizeof(int);
  p->bytes[2] = (nnz + 4) * size;
  p->bytes[3] = (size_t)s->n * size;
  p->bytes[4] = (size_t)s->m * size;
  for (int k = 0; k < 5; k++) PetscCall(GPUCSRMalloc(b->dev, p->bytes[k], "a matrix", Array(p, k)));
  PetscCall(GPUCSRMalloc(b->dev, (size_t)s->m * 8, "a product", (void **)&p->right));
  PetscCall(GPUCSRMalloc(b->dev, (size_t)s->m * 8, "a product", (void **)&p->bound));
  PetscCall(GPUCSRMalloc(b->dev, sizeof(int), "a count", (void **)&p->wrong));
  PetscCall(PetscMalloc3(s->n, &x, s->m, &right, s->m, &bound));
  for (int c = 0; c < s->n; c++) x[c] = (float)(SyntheticUniform(11, 0, (uint64_t)c) - 0.3);
  Right(s, single, x, right, bound);
  PetscCall(b->dev->ops->zero(b->dev->id, (void *)p->A.col, p->bytes[1], stream));
  PetscCall(GPUCSRUpload(b->dev, (void *)p->A.ptr, GPUCSR_INT32, s->i, GPUCSR_INT32, (size_t)s->m + 1, PETSC_FALSE, stream, NULL));
  PetscCall(GPUCSRUpload(b->dev, (void *)p->A.col, GPUCSR_INT32, s->j, GPUCSR_PETSCINT, nnz, PETSC_FALSE, stream, NULL));
  PetscCall(GPUCSRUpload(b->dev, (void *)p->A.val, type, s->a, GPUCSR_DOUBLE, nnz, PETSC_FALSE, stream, NULL));
  PetscCall(GPUCSRUpload(b->dev, (void *)p->A.x, type, x, GPUCSR_DOUBLE, (size_t)s->n, PETSC_FALSE, stream, NULL));
  PetscCall(GPUCSRUpload(b->dev, p->right, GPUCSR_DOUBLE, right, GPUCSR_DOUBLE, (size_t)s->m, PETSC_FALSE, stream, NULL));
  PetscCall(GPUCSRUpload(b->dev, p->bound, GPUCSR_DOUBLE, bound, GPUCSR_DOUBLE, (size_t)s->m, PETSC_FALSE, stream, NULL));
  PetscCall(GPUCSRDeviceSynchronize(b->dev));
  PetscCall(PetscFree3(x, right, bound));
  BenchTry(VariantMatrixTextures(&p->A, nnz));
  BenchTry(VariantMatrixConstants(&p->A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode ProblemDestroy(const Bench *b, Problem *p)
{
  const size_t m = (size_t)p->A.m;

  PetscFunctionBeginUser;
  PetscCall(GPUCSRDeviceSynchronize(b->dev));
  for (int k = 0; k < 5; k++) PetscCall(GPUCSRFree(b->dev, p->bytes[k], Array(p, k)));
  PetscCall(GPUCSRFree(b->dev, m * 8, (void **)&p->right));
  PetscCall(GPUCSRFree(b->dev, m * 8, (void **)&p->bound));
  PetscCall(GPUCSRFree(b->dev, sizeof(int), (void **)&p->wrong));
  VariantMatrixDestroy(&p->A);
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- variants ---- */

static PetscErrorCode Name(const Variant *v, char name[64])
{
  char threads[16] = "b", rows[16] = "";

  PetscFunctionBeginUser;
  if (v->threads < VARIANT_BLOCK) PetscCall(PetscSNPrintf(threads, sizeof(threads), "%d", v->threads));
  if (v->rows > 1) PetscCall(PetscSNPrintf(rows, sizeof(rows), "-%c%d", v->cyclic ? 'c' : 'b', v->rows));
  PetscCall(PetscSNPrintf(name, 64, "t%s-w%d-%s-%s-%s%s", threads, v->width, spaceword[v->load], spaceword[v->ptr], spaceword[v->x], rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Time(Bench *b, Problem *p, const Variant *v, double *best)
{
  Timed  t = {v, &p->A, b->dev->stream};
  char   name[64];
  int    wrong = 0;
  double us;

  PetscFunctionBeginUser;
  /* each block copies x: more bytes than twenty matrices is not worth a try */
  if (b->hopeless[v->threads] || !VariantCan(v, &p->A)) PetscFunctionReturn(PETSC_SUCCESS);
  if (v->x == SPACE_SHARED && (double)p->bytes[3] * p->A.m * v->threads / VARIANT_BLOCK / v->rows > 20.0 * (double)(p->bytes[1] + p->bytes[2])) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Name(v, name));
  PetscCall(b->dev->ops->zero(b->dev->id, p->A.z, p->bytes[4], t.stream));
  PetscCall(b->dev->ops->zero(b->dev->id, p->wrong, sizeof(int), t.stream));
  PetscCall(Launch(&t));
  BenchTry(VariantWrong(&p->A, p->right, p->bound, p->wrong, t.stream));
  PetscCall(b->dev->ops->copy(b->dev->id, &wrong, p->wrong, sizeof(int), GPUCSR_TO_HOST, t.stream));
  PetscCall(b->dev->ops->streamsynchronize(b->dev->id, t.stream));
  if (wrong) {
    b->wrong++;
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "WRONG: %s, %d rows\n", name, wrong));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(Clock(b, Launch, &t, best, &us));
  b->kernels++;
  b->hopeless[v->threads] = (PetscBool)(us > 50 * *best && us > 2000);
  Write(b, name, us);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static const int threadword[] = {1, 4, 16, VARIANT_BLOCK}, widthword[] = {1, 2, 4}, rowsword[] = {2, 5, 10, 20};

/* The favourites first: variants far behind them are timed once */
static PetscErrorCode Variants(Bench *b, Problem *p, double *best)
{
  static const Space load[] = {SPACE_READONLY, SPACE_PLAIN, SPACE_STREAMING, SPACE_TEXTURE}, any[] = {SPACE_READONLY, SPACE_PLAIN, SPACE_TEXTURE, SPACE_CONSTANT, SPACE_SHARED};

  PetscFunctionBeginUser;
  for (int l = 0; l < 4; l++)
    for (int q = 0; q < 5; q++)
      for (int x = 0; x < 5; x++)
        for (int t = 0; t < 4; t++)
          for (int w = 0; w < 3; w++) {
            const Variant v = {threadword[t], widthword[w], load[l], any[q], any[x], 1, 0};

            PetscCall(Time(b, p, &v, best));
          }
  for (int r = 0; r < 4; r++)
    for (int cyclic = 0; cyclic < 2; cyclic++)
      for (int t = 0; t < 4; t++)
        for (int w = 0; w < 3; w++) {
          const Variant v = {threadword[t], widthword[w], SPACE_READONLY, SPACE_READONLY, SPACE_READONLY, rowsword[r], cyclic};

          PetscCall(Time(b, p, &v, best));
        }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A kernel of the library's, or with NULL the pair that it chooses */
static PetscErrorCode Ours(const Bench *b, const GPUCSRSource *s, const Problem *p, const char kernel[], double *best, char chosen[64], double *us)
{
  GPUCSRRequest q = {"csr", "", GPUCSR_SELECT_ESTIMATE, 0, 0};
  BenchPlanned  l;

  PetscFunctionBeginUser;
  memset(&l, 0, sizeof(l));
  if (!kernel) PetscCall(PetscStrncpy(q.format, "auto", sizeof(q.format)));
  PetscCall(PetscStrncpy(q.kernel, kernel ? kernel : "auto", sizeof(q.kernel)));
  PetscCall(GPUCSRPlanBuild(b->dev, s, p->A.single ? GPUCSR_PRECISION_SINGLE : GPUCSR_PRECISION_DOUBLE, &q, &l.plan));
  PetscCall(GPUCSRPlanPrepare(&l.plan));
  l.product = (GPUCSRProduct){.alpha = 1, .x = p->A.x, .z = p->A.z, .last = s->m};
  PetscCall(BenchLaunchPlanned(&l));
  PetscCall(Clock(b, BenchLaunchPlanned, &l, best, us));
  PetscCall(PetscSNPrintf(chosen, 64, "%s %s", l.plan.choice.format->name, l.plan.choice.kernel->name));
  PetscCall(GPUCSRPlanDestroy(&l.plan));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Late(Bench *b, PetscBool *late)
{
  PetscLogDouble now;

  PetscFunctionBeginUser;
  PetscCall(PetscTime(&now));
  *late = (PetscBool)(b->budget > 0 && now - b->begin > b->budget);
  b->late += *late;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Visit(void *ctx, const char name[], PetscBool real, const GPUCSRSource *s)
{
  Bench    *b = (Bench *)ctx;
  PetscBool late;

  PetscFunctionBeginUser;
  PetscCall(Late(b, &late));
  if (late || !s->nnz) PetscFunctionReturn(PETSC_SUCCESS);
  for (int single = 0; single < 2; single++) {
    Problem p;
    double  best = 1e9, us = 0;
    char    chosen[64];

    if (!b->precisions[single]) continue;
    PetscCall(ProblemCreate(b, s, (PetscBool)single, &p));
    JsonBegin(b->out, "variants");
    JsonText(b->out, "matrix", name);
    JsonText(b->out, "class", real ? "real" : "generated");
    JsonText(b->out, "precision", single ? "single" : "double");
    JsonNumber(b->out, "rows", s->m);
    JsonNumber(b->out, "columns", s->n);
    JsonNumber(b->out, "nnz", (double)s->nnz);
    PetscCall(Ours(b, s, &p, NULL, &best, chosen, &us));
    JsonText(b->out, "chosen", chosen);
    JsonNumber(b->out, "chosen_us", us);
    best       = 1e9;
    b->written = 0;
    PetscCall(PetscMemzero(b->hopeless, sizeof(b->hopeless)));
    for (size_t k = 0; k < sizeof(ours) / sizeof(ours[0]); k++) {
      PetscCall(Ours(b, s, &p, ours[k], &best, chosen, &us));
      Write(b, ours[k], us);
    }
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-16s %s  ours %8.2f us", name, single ? "single" : "double", best));
    PetscCall(Variants(b, &p, &best));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, ", all %8.2f\n", best));
    if (b->out) fputc('}', b->out);
    JsonEnd(b->out);
    PetscCall(ProblemDestroy(b, &p));
  }
  b->measured++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Sweep(Bench *b, int shrink)
{
  static const int    columns[] = {100, 300, 1000, 2400, 5000, 10000};
  static const double shares[]  = {0.001, 0.01, 0.05, 0.1, 0.15, 0.2};

  PetscFunctionBeginUser;
  for (size_t c = 0; c < PETSC_STATIC_ARRAY_LENGTH(columns); c++)
    for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(shares); k++) {
      char            name[64];
      const Synthetic s = {name, UNIFORM, 3000, columns[c], PetscMax(1, shares[k] * columns[c]), 50, 0, 0, 0, 0};
      PetscBool       late;

      PetscCall(PetscSNPrintf(name, sizeof(name), "sweep_%d_%g", columns[c], shares[k]));
      PetscCall(Late(b, &late));
      if (!late) PetscCall(BenchVisitGenerated(&s, shrink, Visit, b));
    }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Bench     b         = {0};
  PetscBool generated = PETSC_TRUE, sweep = PETSC_FALSE, set;
  PetscInt  shrink = 1, rounds = 3, given = 2;
  PetscReal budget = 50;
  char     *words[2];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscTime(&b.begin));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-generated", &generated, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-sweep", &sweep, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-shrink", &shrink, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-rounds", &rounds, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-budget", &budget, NULL));
  PetscCheck(rounds >= 1 && rounds <= 32, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-rounds must be from 1 to 32");
  b.rounds        = (int)rounds;
  b.budget        = budget;
  b.precisions[0] = b.precisions[1] = PETSC_TRUE;
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-precisions", words, &given, &set));
  if (set) b.precisions[0] = b.precisions[1] = PETSC_FALSE;
  for (PetscInt k = 0; set && k < given; k++) {
    PetscBool single;

    PetscCall(PetscStrcmp(words[k], "single", &single));
    b.precisions[single] = PETSC_TRUE;
    PetscCall(PetscFree(words[k]));
  }
  PetscCall(BenchDevice(&b.dev));
  PetscCheck(b.dev->ops->separate, PETSC_COMM_SELF, PETSC_ERR_SUP, "The variants are kernels of a GPU, and there is none");
  PetscCall(BenchOutput("variants", b.dev, &b.out));
  PetscCall(BenchClockCreate(b.dev, &b.clock));
  PetscCall(BenchVisitFolders(Visit, &b));
  if (sweep) PetscCall(Sweep(&b, (int)shrink));
  for (int k = 0; k < NSYNTHETICS + NCOLLECTION && generated && !sweep; k++) {
    const Synthetic *s = k < NSYNTHETICS ? &synthetics[k] : &collection[k - NSYNTHETICS];
    PetscBool        late;

    if (s->mean * s->m > 5e7 && s->kind != FULL) continue; /* a rate of memory, whichever the kernel */
    PetscCall(Late(&b, &late));
    if (!late) PetscCall(BenchVisitGenerated(s, (int)shrink, Visit, &b));
  }
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%d matrices, %d kernels timed, %d WRONG, %d matrices left out by -budget\n", b.measured, b.kernels, b.wrong, b.late));
  if (b.out) fclose(b.out);
  PetscCall(BenchClockDestroy(&b.clock));
  PetscCall(PetscFinalize());
  return b.wrong > 0;
}

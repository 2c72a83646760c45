static char help[] = "Times four kernels on benchmark matrices, and on real ones, for the model of Wang, Gu and Li.\n\n";

/*
    strips [-o FILE] [-dir FOLDER,...] [-most n] [-budget s] [-rounds n] [-backend auto|cuda|host]

  R. Wang, T. Gu, M. Li, J. Comput. Commun. 5, 2017, predict the time of a product from generated benchmark matrices. A benchmark matrix is square and has I strips of rows
  with about P entries each. A strip is the number of rows that the GPU's threads handle at a time (16 threads a row: csr_vector16_wide1; one thread a row: csr_scalar, ell, jad). Row lengths:

    fixed      P each                              uniform     1 to 2 P - 1, with equal probability
    normal     deviation P/4, rounded, at least 1  bernoulli   each place holds an entry with probability P / n.

  A row has equal parts, and each entry lies at a random place of its part (bernoulli: anywhere). The program skips matrices of more than -most (2e7) entries, and starts no matrix
  after -budget (80) seconds. The *.petsc of the folders follow.

  FILE gets a line a product: kind name strips rows columns entries mean mode longest precision format kernel us. mode: the most frequent row length (the shortest of several);
  us: the median of -rounds (5) batches of queued products, vectors on the device. src/benchmarks/papers/strips.py fits and tests the model.
*/
#include "bench.h"
#include "problems/matrices.h"

static const char *const kindword[] = {"fixed", "normal", "uniform", "bernoulli"};
enum {
  FIXED,
  NORMAL,
  FLAT,
  BERNOULLI,
  NKINDS
};

static const char *const pairword[][2] = {
  {"csr", "csr_vector16_wide1"},
  {"csr", "csr_scalar"        },
  {"ell", "sell_row"          },
  {"jad", "jad_row"           }
};
#define NPAIRS 4

typedef struct {
  GPUCSRDevice dev;
  BenchClock   clock;
  FILE        *out;
  void        *x, *z; /* of so many doubles */
  size_t       room;
  PetscInt     rounds;
} Bench;

typedef struct {
  GPUCSRPlan    plan;
  GPUCSRProduct product;
  GPUCSRStream  stream;
} Launched;

static PetscErrorCode Launch(void *ctx)
{
  Launched *l = (Launched *)ctx;

  return GPUCSRPlanProduct(&l->plan, &l->product, l->stream);
}

/* ---- benchmark matrices ---- */

static int Length(int kind, int n, double mean, int r)
{
  const double u = SyntheticUniform(7, (uint64_t)r, 0), v = SyntheticUniform(8, (uint64_t)r, 0);
  double       length = mean;

  if (kind == NORMAL) length = floor(0.5 + mean + 0.25 * mean * sqrt(-2 * log(1 - u)) * cos(2 * PETSC_PI * v));
  if (kind == FLAT) length = 1 + floor((2 * mean - 1) * u);
  return (int)PetscMax(1, PetscMin(n, length));
}

/* The columns of a row, increasing, into col where that is not NULL; returns their number */
static int Row(int kind, int n, double mean, int r, PetscInt *col)
{
  int count = 0;

  if (kind == BERNOULLI) {
    const double gap = log1p(-PetscMin(1 - 1e-12, mean / n));

    for (double c = 0;; c++, count++) {
      c += floor(log(1 - SyntheticUniform(9, (uint64_t)r, (uint64_t)count)) / gap);
      if (c >= n) return count;
      if (col) col[count] = (PetscInt)c;
    }
  }
  count = Length(kind, n, mean, r);
  for (int q = 0; q < count && col; q++) col[q] = (PetscInt)PetscMin(n - 1, (q + SyntheticUniform(9, (uint64_t)r, (uint64_t)q)) * n / count);
  return count;
}

static PetscErrorCode Make(int kind, int n, double mean, GPUCSRSource *s)
{
  int32_t     *i;
  PetscInt    *j;
  PetscScalar *a;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(n + 1, &i));
  i[0] = 0;
#pragma omp parallel for
  for (int r = 0; r < n; r++) i[r + 1] = Row(kind, n, mean, r, NULL);
  for (int r = 0; r < n; r++) i[r + 1] += i[r];
  PetscCall(PetscMalloc2(i[n], &j, i[n], &a));
#pragma omp parallel for
  for (int r = 0; r < n; r++) {
    (void)Row(kind, n, mean, r, j + i[r]);
    for (int k = i[r]; k < i[r + 1]; k++) a[k] = SyntheticUniform(10, 0, (uint64_t)k) - 0.3;
  }
  *s = (GPUCSRSource){n, n, i[n], i, j, a, NULL};
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- a matrix ---- */

/* The length that most rows have, and the longest */
static PetscErrorCode Lengths(const GPUCSRSource *s, int *mode, int *longest)
{
  int *count;

  PetscFunctionBeginUser;
  *mode = *longest = 0;
  for (int r = 0; r < s->m; r++) *longest = PetscMax(*longest, s->i[r + 1] - s->i[r]);
  PetscCall(PetscCalloc1(*longest + 1, &count));
  for (int r = 0; r < s->m; r++) count[s->i[r + 1] - s->i[r]]++;
  for (int k = 0; k <= *longest; k++)
    if (count[k] > count[*mode]) *mode = k;
  PetscCall(PetscFree(count));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Time(Bench *b, const GPUCSRSource *s, const char format[], const char kernel[], GPUCSRPrecision precision, double *us)
{
  GPUCSRRequest q = {"", "", GPUCSR_SELECT_ESTIMATE, 0, 0};
  Launched      l;
  double        t[32];
  int           batch = 1;

  PetscFunctionBeginUser;
  memset(&l, 0, sizeof(l));
  PetscCall(PetscStrncpy(q.format, format, sizeof(q.format)));
  PetscCall(PetscStrncpy(q.kernel, kernel, sizeof(q.kernel)));
  PetscCall(GPUCSRPlanBuild(b->dev, s, precision, &q, &l.plan));
  PetscCall(GPUCSRPlanPrepare(&l.plan));
  l.product = (GPUCSRProduct){.alpha = 1, .x = b->x, .z = b->z, .last = s->m};
  l.stream  = b->dev->stream;
  PetscCall(BenchCalibrate(&b->clock, Launch, &l, &batch, &t[0]));
  for (int r = 0; r < b->rounds; r++) PetscCall(BenchBatch(&b->clock, Launch, &l, batch, &t[r]));
  *us = 1e6 * BenchMedian(t, (int)b->rounds);
  PetscCall(GPUCSRPlanDestroy(&l.plan));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* family: 16 threads a row (0), a thread a row (1), both (-1) */
static PetscErrorCode Measure(Bench *b, const char kind[], const char name[], int strips, int family, const GPUCSRSource *s)
{
  const size_t need = (size_t)PetscMax(s->m, s->n);
  int          mode, longest;

  PetscFunctionBeginUser;
  if (need > b->room) {
    PetscCall(GPUCSRFree(b->dev, b->room * 8, &b->x));
    PetscCall(GPUCSRFree(b->dev, b->room * 8, &b->z));
    b->room = 2 * need;
    PetscCall(GPUCSRMalloc(b->dev, b->room * 8, "x", &b->x));
    PetscCall(GPUCSRMalloc(b->dev, b->room * 8, "z", &b->z));
    PetscCall(b->dev->ops->zero(b->dev->id, b->x, b->room * 8, b->dev->stream)); /* values do not count */
  }
  PetscCall(Lengths(s, &mode, &longest));
  for (int k = 0; k < NPAIRS; k++) {
    if (family >= 0 && family != (k > 0)) continue;
    if (k == 2 && (double)longest * s->m > PetscMin(4e8, 64.0 * (double)(s->nnz + s->m))) continue; /* ELL of a long row */
    for (int p = 0; p < 2; p++) {
      const GPUCSRPrecision precision = p ? GPUCSR_PRECISION_SINGLE : GPUCSR_PRECISION_DOUBLE;
      double                us;

      PetscCall(Time(b, s, pairword[k][0], pairword[k][1], precision, &us));
      fprintf(b->out, "%s %s %d %d %d %.10g %.6g %d %d %s %s %s %.6g\n", kind, name, strips, s->m, s->n, (double)s->nnz, (double)s->nnz / PetscMax(1, s->m), mode, longest, p ? "single" : "double", pairword[k][0], pairword[k][1], us);
    }
  }
  fflush(b->out);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Benchmarks(Bench *b, double most, double budget)
{
  static const int strips[2][12] = {
    {1, 2, 3, 5, 8, 10, 15, 20, 30, 40, 50, 0},
    {1, 2, 3, 4, 5, 6,  8,  10, 0,  0,  0,  0}
  };
  static const double means[] = {4, 8, 16, 32, 64, 128, 256, 512, 1024, 1536, 2048, 2560, 3072};
  const int           threads = b->dev->props.processors * 2048;
  int                 made = 0, late = 0;
  PetscLogDouble      t0, t;

  PetscFunctionBeginUser;
  PetscCall(PetscTime(&t0));
  for (int family = 0; family < 2; family++)
    for (int q = 0; strips[family][q]; q++)
      for (size_t m = 0; m < sizeof(means) / sizeof(means[0]); m++)
        for (int kind = 0; kind < NKINDS; kind++) {
          const int    n = (family ? threads : threads / 16) * strips[family][q];
          char         name[64];
          GPUCSRSource s;

          if (n * means[m] > most) continue;
          PetscCall(PetscTime(&t));
          if (t - t0 > budget) {
            late++;
            continue;
          }
          PetscCall(PetscSNPrintf(name, sizeof(name), "%s_%d_%g", kindword[kind], strips[family][q], means[m]));
          PetscCall(Make(kind, n, means[m], &s));
          PetscCall(Measure(b, kindword[kind], name, strips[family][q], family, &s));
          PetscCall(PetscFree(s.i));
          PetscCall(PetscFree2(s.j, s.a));
          made++;
        }
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%d benchmark matrices, %d left out by -budget\n", made, late));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Real(void *ctx, const char name[], PetscBool real, const GPUCSRSource *s)
{
  return Measure((Bench *)ctx, "real", name, 0, -1, s);
}

int main(int argc, char **argv)
{
  char      name[PETSC_MAX_PATH_LEN] = "strips.txt";
  PetscReal most = 2e7, budget = 80;
  Bench     b;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  memset(&b, 0, sizeof(b));
  b.rounds = 5;
  PetscCall(PetscOptionsGetString(NULL, NULL, "-o", name, sizeof(name), NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-most", &most, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-budget", &budget, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-rounds", &b.rounds, NULL));
  PetscCheck(b.rounds >= 1 && b.rounds <= 32, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-rounds must be from 1 to 32");
  PetscCall(BenchDevice(&b.dev));
  PetscCall(BenchClockCreate(b.dev, &b.clock));
  b.out = fopen(name, "w");
  PetscCheck(b.out, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-o %s: cannot be written", name);
  PetscCall(Benchmarks(&b, most, budget));
  PetscCall(BenchVisitFolders(Real, &b));
  (void)fclose(b.out);
  PetscCall(GPUCSRFree(b.dev, b.room * 8, &b.x));
  PetscCall(GPUCSRFree(b.dev, b.room * 8, &b.z));
  PetscCall(BenchClockDestroy(&b.clock));
  PetscCall(PetscFinalize());
  return 0;
}

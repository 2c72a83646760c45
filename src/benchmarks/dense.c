static char help[] = "Dense matrices: products by cuBLAS, by this library's formats and by the CPU, and the density at which sparse and dense formats meet.\n\n";

/*
    dense [-parts sizes,alignment,shapes,density,blocks] [-cpu] [-o FILE] [-budget s] [-rounds n] [-shrink k] [-backend auto|cuda|host] [-id TEXT]

  A. H. El Zein, M. Phil. thesis, ANU 2009, tables 3.3 to 3.6, figures 3.1 to 3.8: y = A x and y = A' x, column-major, single and double:
    sizes      squares of 1024 to 10240, step 512
    alignment  squares of 4160 to 4224, step 1
    shapes     26214400 entries, from 128 by 204800 to 204800 by 128
  The parts above use cuBLAS' gemv and gemm (with one column and with 16: us a column), vectors on the device; with -cpu MATSEQDENSE on the host, with the threads of its BLAS.
    density    five shapes, densities of 1 to 100 %, entries at random places, the library's formats csr (the fastest of four kernels), bitdense, bcsr8x8.
    blocks     dense squares of 64 to 4096, the library's blocks of 1 by 2 to 4 by 4 and 8 by 8 (figure 5 of X. Zhang et al., GOSpMV), and csr.

  FILE gets a line each: part, precision, side (N|T), rows, columns, how (gemv|gemm|gemm16|cpu|FORMAT), density, us (a product; median of -rounds (3) batches).
  The first result with each matrix is compared with the host's. -shrink k divides sizes, to try the program. papers/dense.py makes the tables.
*/
#include "bench.h"
#include "problems/random.h"
#include <cublas_v2.h>
#include <petscmat.h>

typedef struct {
  GPUCSRDevice   dev;
  BenchClock     clock;
  FILE          *out;
  int            rounds, shrink, timed, late;
  PetscBool      cpu;
  PetscReal      budget;
  PetscLogDouble begin;
  cublasHandle_t blas;
} Bench;

#define CUBLASCall(call) \
  do { \
    cublasStatus_t st_ = (call); \
    PetscCheck(st_ == CUBLAS_STATUS_SUCCESS, PETSC_COMM_SELF, PETSC_ERR_GPU, "%s failed with cuBLAS status %d", #call, (int)st_); \
  } while (0)

typedef enum {
  GEMV,
  GEMM,
  GEMM16,
  NHOW
} How;
static const char *const howword[] = {"gemv", "gemm", "gemm16"};

/* A product by cuBLAS: A is m by n, column-major */
typedef struct {
  cublasHandle_t blas;
  How            how;
  PetscBool      transpose, single;
  int            m, n;
  void          *A, *x, *y;
} Product;

static PetscErrorCode Launch(void *ctx)
{
  const Product          *p   = (const Product *)ctx;
  const double            one = 1, none = 0;
  const float             fone = 1, fnone = 0;
  const cublasOperation_t op   = p->transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
  const int               rows = p->transpose ? p->n : p->m, inner = p->transpose ? p->m : p->n, columns = p->how == GEMM16 ? 16 : 1;

  PetscFunctionBeginUser;
  if (p->how == GEMV) {
    if (p->single) CUBLASCall(cublasSgemv(p->blas, op, p->m, p->n, &fone, (const float *)p->A, p->m, (const float *)p->x, 1, &fnone, (float *)p->y, 1));
    else CUBLASCall(cublasDgemv(p->blas, op, p->m, p->n, &one, (const double *)p->A, p->m, (const double *)p->x, 1, &none, (double *)p->y, 1));
  } else if (p->single) CUBLASCall(cublasSgemm(p->blas, op, CUBLAS_OP_N, rows, columns, inner, &fone, (const float *)p->A, p->m, (const float *)p->x, inner, &fnone, (float *)p->y, rows));
  else CUBLASCall(cublasDgemm(p->blas, op, CUBLAS_OP_N, rows, columns, inner, &one, (const double *)p->A, p->m, (const double *)p->x, inner, &none, (double *)p->y, rows));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Time(Bench *b, BenchLaunch launch, void *ctx, double *us)
{
  double t[32], once;
  int    batch = 1;

  PetscFunctionBeginUser;
  PetscCall(BenchCalibrate(&b->clock, launch, ctx, &batch, &once));
  for (int r = 0; r < b->rounds; r++) PetscCall(BenchBatch(&b->clock, launch, ctx, batch, &t[r]));
  *us = 1e6 * BenchMedian(t, b->rounds);
  b->timed++;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Write(const Bench *b, const char part[], PetscBool single, PetscBool transpose, int m, int n, const char how[], double density, double us)
{
  JsonBegin(b->out, "dense");
  JsonText(b->out, "part", part);
  JsonText(b->out, "precision", single ? "single" : "double");
  JsonText(b->out, "side", transpose ? "T" : "N");
  JsonNumber(b->out, "rows", m);
  JsonNumber(b->out, "columns", n);
  JsonText(b->out, "how", how);
  JsonNumber(b->out, "density", density);
  JsonNumber(b->out, "us", us);
  JsonEnd(b->out);
}

static PetscErrorCode Late(Bench *b, PetscBool *late)
{
  PetscLogDouble now;

  PetscFunctionBeginUser;
  PetscCall(PetscTime(&now));
  *late = (PetscBool)(now - b->begin > b->budget);
  b->late += *late;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* On the host, with its BLAS */
static PetscErrorCode OnCPU(Bench *b, const char part[], int m, int n)
{
  Mat            A;
  Vec            x, y;
  PetscScalar   *a;
  double         t[32];
  PetscLogDouble t0, t1;

  PetscFunctionBeginUser;
  PetscCall(MatCreateSeqDense(PETSC_COMM_SELF, m, n, NULL, &A));
  PetscCall(MatDenseGetArray(A, &a));
  for (size_t k = 0; k < (size_t)m * (size_t)n; k++) a[k] = 1e-3 * (double)(k % 1009);
  PetscCall(MatDenseRestoreArray(A, &a));
  PetscCall(MatCreateVecs(A, &x, &y));
  for (int transpose = 0; transpose < 2; transpose++) {
    PetscCall(VecSet(transpose ? y : x, 1));
    for (int k = -1; k < b->rounds; k++) {
      PetscCall(PetscTime(&t0));
      PetscCall(transpose ? MatMultTranspose(A, y, x) : MatMult(A, x, y));
      PetscCall(PetscTime(&t1));
      if (k >= 0) t[k] = t1 - t0;
    }
    b->timed++;
    Write(b, part, PETSC_FALSE, (PetscBool)transpose, m, n, "cpu", 1, 1e6 * BenchMedian(t, b->rounds));
  }
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode OnGPU(Bench *b, const char part[], int m, int n)
{
  PetscFunctionBeginUser;
  for (int single = 0; single < 2; single++) {
    const size_t size = single ? 4 : 8, bytes = size * (size_t)m * (size_t)n, vector = 16 * size * (size_t)PetscMax(m, n);
    Product      p = {.blas = b->blas, .single = (PetscBool)single, .m = m, .n = n};

    PetscCall(GPUCSRMalloc(b->dev, bytes, "A", &p.A));
    PetscCall(GPUCSRMalloc(b->dev, vector, "x", &p.x));
    PetscCall(GPUCSRMalloc(b->dev, vector, "y", &p.y));
    PetscCall(b->dev->ops->zero(b->dev->id, p.A, bytes, b->dev->stream)); /* values do not count */
    PetscCall(b->dev->ops->zero(b->dev->id, p.x, vector, b->dev->stream));
    for (int transpose = 0; transpose < 2; transpose++)
      for (int how = 0; how < NHOW; how++) {
        double us;

        p.transpose = (PetscBool)transpose;
        p.how       = (How)how;
        PetscCall(Time(b, Launch, &p, &us));
        Write(b, part, p.single, p.transpose, m, n, howword[how], 1, how == GEMM16 ? us / 16 : us);
      }
    PetscCall(GPUCSRFree(b->dev, bytes, &p.A));
    PetscCall(GPUCSRFree(b->dev, vector, &p.x));
    PetscCall(GPUCSRFree(b->dev, vector, &p.y));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Products(Bench *b, const char part[], int m, int n)
{
  PetscBool late;

  PetscFunctionBeginUser;
  m = PetscMax(8, m / b->shrink);
  n = PetscMax(8, n / b->shrink);
  PetscCall(Late(b, &late));
  if (late) PetscFunctionReturn(PETSC_SUCCESS);
  if (b->cpu) PetscCall(OnCPU(b, part, m, n));
  else PetscCall(OnGPU(b, part, m, n));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- density ---- */

/* Compares z with the host's result: the format's product must be right before its time counts */
static PetscErrorCode Verify(const Bench *b, const GPUCSRSource *s, PetscBool single, const double *x, const void *z, const char how[])
{
  double *got;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(s->m, &got));
  PetscCall(GPUCSRDownload(b->dev, got, GPUCSR_DOUBLE, z, single ? GPUCSR_FLOAT : GPUCSR_DOUBLE, (size_t)s->m, PETSC_FALSE, b->dev->stream));
  for (int r = 0; r < s->m; r++) {
    double sum = 0, size = 0;

    for (int k = s->i[r]; k < s->i[r + 1]; k++) {
      const double t = (single ? (float)s->a[k] : s->a[k]) * x[s->j[k]];

      sum += t;
      size += fabs(t);
    }
    PetscCheck(fabs(got[r] - sum) <= (single ? 1.2e-7 : 2.3e-16) * (4 + s->i[r + 1] - s->i[r]) * size, PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s: row %d is %g, not %g", how, r, got[r], sum);
  }
  PetscCall(PetscFree(got));
  PetscFunctionReturn(PETSC_SUCCESS);
}

typedef struct {
  const char *format, *kernel; /* of a format that stands here several times the fastest kernel counts */
} Pair;

/* A product of the matrix by one pair, in microseconds; 0: not possible */
static PetscErrorCode TimePair(Bench *b, const GPUCSRSource *s, PetscBool single, const Pair *pair, const double *x, void *dx, void *dz, double *us)
{
  const GPUCSRPrecision precision = single ? GPUCSR_PRECISION_SINGLE : GPUCSR_PRECISION_DOUBLE;
  GPUCSRRequest         q         = {"", "", GPUCSR_SELECT_ESTIMATE, 0, 0};
  BenchPlanned          l;

  PetscFunctionBeginUser;
  *us = 0;
  PetscCall(PetscStrncpy(q.format, pair->format, sizeof(q.format)));
  PetscCall(PetscStrncpy(q.kernel, pair->kernel, sizeof(q.kernel)));
  if (strcmp(pair->format, "csr") && (double)s->m * s->n > 60 * (double)s->nnz) PetscFunctionReturn(PETSC_SUCCESS); /* the library refuses such matrices */
  memset(&l, 0, sizeof(l));
  PetscCall(GPUCSRPlanBuild(b->dev, s, precision, &q, &l.plan));
  PetscCall(GPUCSRPlanPrepare(&l.plan));
  l.product = (GPUCSRProduct){.alpha = 1, .x = dx, .z = dz, .last = s->m};
  PetscCall(BenchLaunchPlanned(&l));
  PetscCall(Verify(b, s, single, x, dz, pair->format));
  PetscCall(Time(b, BenchLaunchPlanned, &l, us));
  PetscCall(GPUCSRPlanDestroy(&l.plan));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Formats(Bench *b, const char part[], const GPUCSRSource *s, double density, const Pair pair[], int npairs)
{
  double *x;

  PetscFunctionBeginUser;
  PetscCall(PetscMalloc1(s->n, &x));
  for (int c = 0; c < s->n; c++) x[c] = 0.125 * (1 + c % 7);
  for (int single = 0; single < 2; single++) {
    const GPUCSRType type = single ? GPUCSR_FLOAT : GPUCSR_DOUBLE;
    const size_t     size = GPUCSRTypeSize(type);
    void            *dx = NULL, *dz = NULL;
    double           us, least      = 0;

    PetscCall(GPUCSRMalloc(b->dev, size * (size_t)s->n, "x", &dx));
    PetscCall(GPUCSRMalloc(b->dev, size * (size_t)s->m, "z", &dz));
    PetscCall(GPUCSRUpload(b->dev, dx, type, x, GPUCSR_DOUBLE, (size_t)s->n, PETSC_FALSE, b->dev->stream, NULL));
    for (int k = 0; k < npairs; k++) {
      PetscCall(TimePair(b, s, (PetscBool)single, &pair[k], x, dx, dz, &us));
      if (us > 0 && (least <= 0 || us < least)) least = us;
      if (k + 1 < npairs && !strcmp(pair[k + 1].format, pair[k].format)) continue;
      if (least > 0) Write(b, part, (PetscBool)single, PETSC_FALSE, s->m, s->n, pair[k].format, density, least);
      least = 0;
    }
    PetscCall(GPUCSRFree(b->dev, size * (size_t)s->n, &dx));
    PetscCall(GPUCSRFree(b->dev, size * (size_t)s->m, &dz));
  }
  PetscCall(PetscFree(x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

#define CSR_PAIRS \
  {"csr", "csr_vector32_wide4"}, {"csr", "csr_vector16"}, {"csr", "csr_block"}, \
  { \
    "csr", "csr_adaptive" \
  }

static PetscErrorCode RandomMatrix(Bench *b, const char part[], int m, int n, double density, const Pair pair[], int npairs)
{
  const size_t room = (size_t)m * (size_t)n;
  int32_t     *i;
  PetscInt    *j, nnz = 0;
  PetscScalar *a;
  PetscBool    late;

  PetscFunctionBeginUser;
  PetscCall(Late(b, &late));
  if (late) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscMalloc3(m + 1, &i, room, &j, room, &a));
  for (int r = 0; r < m; r++) {
    i[r] = nnz;
    for (int c = 0; c < n; c++)
      if (density >= 1 || SyntheticUniform(12, (uint64_t)r, (uint64_t)c) < density) {
        j[nnz]   = c;
        a[nnz++] = 0.25 + c % 5;
      }
  }
  i[m] = nnz;
  PetscCall(Formats(b, part, &(GPUCSRSource){m, n, nnz, i, j, a, NULL}, density, pair, npairs));
  PetscCall(PetscFree3(i, j, a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Density(Bench *b)
{
  static const int shape[][2] = {
    {500,   500  },
    {2000,  2000 },
    {4000,  4000 },
    {40000, 200  },
    {200,   40000}
  };
  static const double density[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1};
  static const Pair   pair[]    = {
         CSR_PAIRS, {"bitdense", "auto"},
          {"bcsr8x8",  "auto"}
  };

  PetscFunctionBeginUser;
  for (int q = 0; q < 5; q++)
    for (size_t d = 0; d < sizeof(density) / sizeof(density[0]); d++) PetscCall(RandomMatrix(b, "density", PetscMax(8, shape[q][0] / b->shrink), PetscMax(8, shape[q][1] / b->shrink), density[d], pair, 6));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Blocks(Bench *b)
{
  static const Pair csr[] = {CSR_PAIRS};

  PetscFunctionBeginUser;
  for (int n = 64; n <= 4096 / b->shrink; n *= 2) {
    PetscCall(RandomMatrix(b, "blocks", n, n, 1, csr, 4));
    for (int r = 1; r <= 8; r++)
      for (int c = 1; c <= 8; c++) {
        char word[16];

        if (r * c == 1 || ((r > 4 || c > 4) && (r != 8 || c != 8))) continue;
        PetscCall(PetscSNPrintf(word, sizeof(word), "bcsr%dx%d", r, c));
        if (r != c) PetscCall(RandomMatrix(b, "blocks", n, n, 1, &(const Pair){word, "oblong_twostep"}, 1));
        else
          PetscCall(RandomMatrix(b, "blocks", n, n, 1,
                                 (const Pair[]){
                                   {word, "bcsr_vector8" },
                                   {word, "bcsr_vector32"},
                                   {word, "bcsr_block"   },
                                   {word, "bcsr_adaptive"}
          },
                                 4));
      }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  static const char *const partword[] = {"sizes", "alignment", "shapes", "density", "blocks"};
  Bench                    b          = {0};
  PetscBool                parts[5]   = {PETSC_TRUE, PETSC_TRUE, PETSC_TRUE, PETSC_TRUE, PETSC_TRUE}, set;
  PetscInt                 rounds = 3, shrink = 1, given = 5;
  PetscReal                budget = 50;
  char                    *words[5];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscTime(&b.begin));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-rounds", &rounds, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-shrink", &shrink, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-budget", &budget, NULL));
  PetscCall(PetscOptionsGetBool(NULL, NULL, "-cpu", &b.cpu, NULL));
  PetscCheck(rounds >= 1 && rounds <= 32 && shrink >= 1, PETSC_COMM_SELF, PETSC_ERR_ARG_OUTOFRANGE, "-rounds must be from 1 to 32, -shrink at least 1");
  PetscCall(PetscOptionsGetStringArray(NULL, NULL, "-parts", words, &given, &set));
  for (int p = 0; p < 5 && set; p++) {
    parts[p] = PETSC_FALSE;
    for (PetscInt k = 0; k < given; k++) parts[p] = (PetscBool)(parts[p] || !strcmp(words[k], partword[p]));
  }
  for (PetscInt k = 0; set && k < given; k++) PetscCall(PetscFree(words[k]));
  b.rounds = (int)rounds;
  b.shrink = (int)shrink;
  b.budget = budget;
  PetscCall(BenchDevice(&b.dev));
  PetscCheck(b.cpu || b.dev->ops->separate || (!parts[0] && !parts[1] && !parts[2]), PETSC_COMM_SELF, PETSC_ERR_SUP, "cuBLAS needs a GPU, and there is none: -cpu measures the host, -parts density all formats");
  PetscCall(BenchOutput("dense", b.dev, &b.out));
  PetscCall(BenchClockCreate(b.dev, &b.clock));
  if (!b.cpu && b.dev->ops->separate) {
    CUBLASCall(cublasCreate(&b.blas));
    CUBLASCall(cublasSetStream(b.blas, (cudaStream_t)b.dev->stream));
  }
  if (parts[3] && !b.cpu) PetscCall(Density(&b));
  if (parts[4] && !b.cpu) PetscCall(Blocks(&b));
  for (int n = 1024; n <= 10240 && parts[0]; n += 512) PetscCall(Products(&b, "sizes", n, n));
  for (int m = 128; m <= 204800 && parts[2]; m *= 2) PetscCall(Products(&b, "shapes", m, 26214400 / m));
  for (int n = 4160; n <= 4224 && parts[1]; n++) PetscCall(Products(&b, "alignment", n, n));
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%d products timed, %d matrices left out by -budget\n", b.timed, b.late));
  if (b.blas) CUBLASCall(cublasDestroy(b.blas));
  if (b.out) fclose(b.out);
  PetscCall(BenchClockDestroy(&b.clock));
  PetscCall(PetscFinalize());
  return 0;
}

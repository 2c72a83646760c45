static char help[] = "Products and iterations of conjugate gradients on the CPU and the GPU, with vectors here and there, beside what is advised.\n\n";

/*
    places [-dir share/datasets] [-o FILE] [-budget s] [-only WORD] [-backend host|cuda] [-id TEXT]

  For each file of a folder, and for generated matrices from a hundred to ten million entries, this times MatMult() on one core by MATSEQAIJ, on the GPU with
  host vectors, and on the GPU with device vectors. For positive definite matrices it also times an iteration of KSPCG with Jacobi on the CPU, of KSPCG on the GPU with device
  vectors, and of gpucg. It compares the times with MatGPUCSRGetAdvice(). At the end it counts how often the advice names the fastest of the three, and the loss of wrong advice.
  Several processes (mpiexec -n 16 places) use no GPU: each product is MATMPIAIJ's, with rows distributed evenly.

  -o FILE gets one JSON object a line, times in microseconds:
    place   matrix, rows, columns, nnz, id; cpu, host_vectors, device_vectors: measured; advised_* of the same; best, advised, loss = time of the advised over that of the best
            cg_cpu, cg_device_vectors, cg_solver and advised_cg_*: of an iteration, where it was measured
    ranks   matrix, rows, columns, nnz, id, ranks; cpu: a product by so many processes
*/
#include <petscgpucsr.h>
#include <petsctime.h>
#include <dirent.h>
#include <string.h>
#include "problems/spd.h"

#define PLACES     3
#define ROUNDS     9
#define ROUND      300e-6 /* seconds of a round at least */
#define ITERATIONS 60

typedef struct {
  FILE       *out;
  const char *id;
  double      begin, budget;
  char        only[64];
  int         n, named;
  double      worst, loss;
  char        worstname[64];
  double      error[2], most[2]; /* of products on the CPU and on the GPU with vectors there: mean so far, most */
  int         nerror;
  double      cgerror[PLACES];
  int         ncg;
  PetscMPIInt ranks;
} Run;

static const char *const words[] = {"cpu", "host_vectors", "device_vectors", "solver"};

static int Less(const void *a, const void *b)
{
  return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

/* Seconds of a product: median of rounds, each long enough for the clock; a round ends with a wait for the device */
static PetscErrorCode TimeProducts(Mat A, PetscBool device, double *seconds)
{
  Vec            x, y;
  double         t[ROUNDS] = {0};
  int            batch     = 1;
  PetscLogDouble t0, t1;
  PetscInt       m, n;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(VecCreate(PETSC_COMM_SELF, &x));
  PetscCall(VecSetSizes(x, n, n));
  PetscCall(VecSetType(x, device ? VECSEQGPU : VECSEQ));
  PetscCall(VecCreate(PETSC_COMM_SELF, &y));
  PetscCall(VecSetSizes(y, m, m));
  PetscCall(VecSetType(y, device ? VECSEQGPU : VECSEQ));
  PetscCall(VecSet(x, 1));
  PetscCall(VecSet(y, 0));
  for (int k = -4; k < ROUNDS; k++) {
    PetscCall(PetscTime(&t0));
    for (int q = 0; q < batch; q++) PetscCall(MatMult(A, x, y));
    if (device) PetscCall(VecGPUSynchronize(y));
    PetscCall(PetscTime(&t1));
    if (k == -2) batch = (int)PetscMin(1000, 1 + ROUND / PetscMax(t1 - t0, 1e-7));
    if (k >= 0) t[k] = (t1 - t0) / batch;
    if (k >= 2 && t1 - t0 > 0.05) { /* long enough */
      for (int q = k + 1; q < ROUNDS; q++) t[q] = t[k];
      break;
    }
  }
  qsort(t, ROUNDS, sizeof(*t), Less);
  *seconds = t[ROUNDS / 2];
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Seconds of an iteration: of the second and third solve from 0, cut off; 0 where it ends early */
static PetscErrorCode TimeIterations(Mat A, const char type[], PetscBool device, double *seconds)
{
  KSP            ksp;
  PC             pc;
  Vec            b, x;
  PetscInt       n, its = 0;
  PetscLogDouble t0, t1;

  PetscFunctionBeginUser;
  *seconds = 0;
  PetscCall(MatGetSize(A, &n, NULL));
  PetscCall(VecCreate(PETSC_COMM_SELF, &b));
  PetscCall(VecSetSizes(b, n, n));
  PetscCall(VecSetType(b, device ? VECSEQGPU : VECSEQ));
  PetscCall(VecDuplicate(b, &x));
  PetscCall(VecSet(b, 1));
  PetscCall(KSPCreate(PETSC_COMM_SELF, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, type));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCJACOBI));
  PetscCall(KSPSetTolerances(ksp, 1e-14, 1e-50, 1e50, ITERATIONS));
  for (int k = 0; k < 3; k++) {
    PetscCall(VecSet(x, 0));
    PetscCall(PetscTime(&t0));
    PetscCall(KSPSolve(ksp, b, x));
    if (device) PetscCall(VecGPUSynchronize(x));
    PetscCall(PetscTime(&t1));
    PetscCall(KSPGetIterationNumber(ksp, &its));
    if (k && its >= 10) *seconds = k == 1 ? (t1 - t0) / (double)its : PetscMin(*seconds, (t1 - t0) / (double)its);
  }
  PetscCall(KSPDestroy(&ksp));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static void Judge(Run *r, const char name[], const double t[], const double cg[], const MatGPUCSRAdvice *a, char line[], size_t len)
{
  static const int at[] = {MAT_GPUCSR_PLACE_CPU, MAT_GPUCSR_PLACE_DEVICE_VECTORS, MAT_GPUCSR_PLACE_SOLVER};
  int              best = 0;
  double           loss;

  for (int k = 1; k < PLACES; k++)
    if (t[k] < t[best]) best = k;
  loss = t[a->best] / t[best];
  r->n++;
  r->named += a->best == (MatGPUCSRPlace)best;
  r->loss += loss;
  if (loss > r->worst) {
    r->worst = loss;
    (void)snprintf(r->worstname, sizeof(r->worstname), "%s", name);
  }
  for (int k = 0; k < 2; k++) {
    const double e = fabs(a->product[at[k]] / t[at[k]] - 1);

    r->error[k] += e;
    r->most[k] = PetscMax(r->most[k], e);
  }
  r->ncg += cg[0] > 0 && cg[1] > 0 && cg[2] > 0;
  for (int k = 0; k < 3 && cg[0] > 0 && cg[1] > 0 && cg[2] > 0; k++) r->cgerror[k] += fabs(a->iteration[at[k]] / cg[k] - 1);
  (void)snprintf(line, len, "%-14s %-14s %5.2f", words[best], words[a->best], loss);
}

static void Record(const Run *r, const char name[], PetscInt m, PetscInt n, double nnz, const double t[], const double cg[], const MatGPUCSRAdvice *a)
{
  static const int at[] = {MAT_GPUCSR_PLACE_CPU, MAT_GPUCSR_PLACE_DEVICE_VECTORS, MAT_GPUCSR_PLACE_SOLVER};
  int              best = 0;

  if (!r->out) return;
  for (int k = 1; k < PLACES; k++)
    if (t[k] < t[best]) best = k;
  fprintf(r->out, "{\"record\": \"place\", \"matrix\": \"%s\", \"rows\": %d, \"columns\": %d, \"nnz\": %.0f, \"id\": \"%s\", \"format\": \"%s\", \"kernel\": \"%s\", \"advised_kernel_product\": %.4f", name, (int)m, (int)n, nnz, r->id, a->format, a->kernel, 1e6 * a->kernel_product);
  for (int k = 0; k < PLACES; k++) fprintf(r->out, ", \"%s\": %.4f, \"advised_%s\": %.4f", words[k], 1e6 * t[k], words[k], 1e6 * a->product[k]);
  for (int k = 0; k < 3 && cg[0] > 0; k++) fprintf(r->out, ", \"cg_%s\": %.4f, \"advised_cg_%s\": %.4f", words[at[k]], 1e6 * cg[k], words[at[k]], 1e6 * a->iteration[at[k]]);
  fprintf(r->out, ", \"advised_bytes\": %.0f, \"best\": \"%s\", \"advised\": \"%s\", \"loss\": %.4f}\n", a->bytes[MAT_GPUCSR_PLACE_DEVICE_VECTORS], words[best], words[a->best], t[a->best] / t[best]);
  fflush(r->out);
}

/* Rows of A, which every process has, shared out; the time that the slowest takes */
static PetscErrorCode MeasureRanks(Run *r, const char name[], Mat A)
{
  Mat             B;
  Vec             x, y;
  PetscInt        m, n, local = PETSC_DECIDE, begin, end, all, entries, *rows;
  const PetscInt *i, *j;
  PetscScalar    *a;
  PetscBool       done;
  double          t[ROUNDS] = {0};
  int             batch     = 1;
  PetscLogDouble  t0, t1;

  PetscFunctionBeginUser;
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(PetscSplitOwnership(PETSC_COMM_WORLD, &local, &m));
  PetscCallMPI(MPI_Scan(&local, &end, 1, MPIU_INT, MPI_SUM, PETSC_COMM_WORLD));
  begin = end - local;
  PetscCall(MatGetRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &all, &i, &j, &done));
  PetscCall(MatSeqAIJGetArray(A, &a));
  PetscCall(PetscMalloc1(local + 1, &rows));
  for (PetscInt k = 0; k <= local; k++) rows[k] = i[begin + k] - i[begin];
  PetscCall(MatCreateMPIAIJWithArrays(PETSC_COMM_WORLD, local, PETSC_DECIDE, m, n, rows, j + i[begin], a + i[begin], &B));
  entries = i[m];
  PetscCall(MatSeqAIJRestoreArray(A, &a));
  PetscCall(MatRestoreRowIJ(A, 0, PETSC_FALSE, PETSC_FALSE, &all, &i, &j, &done));
  PetscCall(PetscFree(rows));
  PetscCall(MatCreateVecs(B, &x, &y));
  PetscCall(VecSet(x, 1));
  for (int k = -3; k < ROUNDS; k++) {
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    PetscCall(PetscTime(&t0));
    for (int q = 0; q < batch; q++) PetscCall(MatMult(B, x, y));
    PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));
    PetscCall(PetscTime(&t1));
    if (k == -2) batch = (int)PetscMin(1000, 1 + ROUND / PetscMax(t1 - t0, 1e-7));
    PetscCallMPI(MPI_Bcast(&batch, 1, MPI_INT, 0, PETSC_COMM_WORLD));
    if (k >= 0) t[k] = (t1 - t0) / batch;
  }
  qsort(t, ROUNDS, sizeof(*t), Less);
  if (r->out) fprintf(r->out, "{\"record\": \"ranks\", \"matrix\": \"%s\", \"rows\": %d, \"columns\": %d, \"nnz\": %d, \"id\": \"%s\", \"ranks\": %d, \"cpu\": %.4f}\n", name, (int)m, (int)n, (int)entries, r->id, r->ranks, 1e6 * t[ROUNDS / 2]);
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-18s %9d  cpu, %d processes %9.2f\n", name, (int)entries, r->ranks, 1e6 * t[ROUNDS / 2]));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&y));
  PetscCall(MatDestroy(&B));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A is MATSEQAIJ, and afterwards gpucsr */
static PetscErrorCode Measure(Run *r, const char name[], Mat A, PetscBool spd, MatGPUCSRBackend backend)
{
  double          t[PLACES], cg[3] = {0};
  MatGPUCSRAdvice a;
  MatInfo         info;
  PetscInt        m, n;
  char            line[64];

  PetscFunctionBeginUser;
  if (r->ranks > 1) {
    PetscCall(MeasureRanks(r, name, A));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  PetscCall(MatGetSize(A, &m, &n));
  PetscCall(MatGetInfo(A, MAT_LOCAL, &info));
  PetscCall(MatGPUCSRGetAdvice(A, &a));
  PetscCall(TimeProducts(A, PETSC_FALSE, &t[0]));
  if (spd) PetscCall(TimeIterations(A, KSPCG, PETSC_FALSE, &cg[0]));
  PetscCall(MatConvert(A, MATSEQAIJGPUCSR, MAT_INPLACE_MATRIX, &A));
  PetscCall(MatGPUCSRSetBackend(A, backend));
  PetscCall(TimeProducts(A, PETSC_FALSE, &t[1]));
  PetscCall(TimeProducts(A, PETSC_TRUE, &t[2]));
  if (spd) {
    PetscCall(TimeIterations(A, KSPCG, PETSC_TRUE, &cg[1]));
    PetscCall(TimeIterations(A, "gpucg", PETSC_TRUE, &cg[2]));
  }
  Judge(r, name, t, cg, &a, line, sizeof(line));
  Record(r, name, m, n, info.nz_used, t, cg, &a);
  PetscCall(PetscPrintf(PETSC_COMM_SELF, "%-18s %9.0f  cpu %9.2f (%9.2f)  host vectors %9.2f (%9.2f)  device %8.2f (%8.2f)  cg %9.2f (%9.2f) %8.2f (%8.2f) %7.2f (%7.2f)  %s\n", name, info.nz_used, 1e6 * t[0], 1e6 * a.product[0], 1e6 * t[1], 1e6 * a.product[1], 1e6 * t[2], 1e6 * a.product[2], 1e6 * cg[0], 1e6 * a.iteration[0], 1e6 * cg[1], 1e6 * a.iteration[2], 1e6 * cg[2], 1e6 * a.iteration[3], line));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Wanted(const Run *r, const char name[], PetscBool *yes)
{
  PetscLogDouble now;

  PetscFunctionBeginUser;
  PetscCall(PetscTime(&now));
  *yes = (PetscBool)(!r->only[0] || strstr(name, r->only));
  if (*yes && r->budget > 0 && now - r->begin > r->budget) {
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%-18s left out, the budget of %g s was spent\n", name, r->budget));
    *yes = PETSC_FALSE;
  }
  PetscCallMPI(MPI_Bcast(yes, 1, MPIU_BOOL, 0, PETSC_COMM_WORLD));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- matrices ---- */

static PetscErrorCode OfArrays(Run *r, const char name[], int m, int n, int32_t *i, PetscInt *j, PetscScalar *a, PetscBool spd, MatGPUCSRBackend backend)
{
  Mat A;

  PetscFunctionBeginUser;
  PetscCall(MatCreateSeqAIJWithArrays(PETSC_COMM_SELF, m, n, (PetscInt *)i, j, a, &A));
  PetscCall(Measure(r, name, A, spd, backend));
  PetscCall(MatDestroy(&A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Generated(Run *r, const Synthetic *s, MatGPUCSRBackend backend)
{
  int          m = 0, n = 0;
  int32_t     *i;
  PetscInt    *j;
  PetscScalar *a;
  PetscBool    yes;

  PetscFunctionBeginUser;
  PetscCall(Wanted(r, s->name, &yes));
  if (!yes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SyntheticCreate(s, 1, &m, &n, &i, &j, &a));
  PetscCall(OfArrays(r, s->name, m, n, i, j, a, SyntheticIsStencil(s) && s->n == 1 && !s->block ? PETSC_TRUE : PETSC_FALSE, backend));
  PetscCall(SyntheticDestroy(&i, &j, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Every kind at several sizes; names are made of the numbers */
static PetscErrorCode Families(Run *r, MatGPUCSRBackend backend)
{
  static const struct {
    const char   *name;
    SyntheticKind kind;
    int           size[10]; /* points an edge, or rows */
    double        mean[3];
    double        wide; /* columns over rows, 0: 1 */
  } family[] = {
    {"lap7",     STENCIL7,  {4, 6, 8, 12, 16, 24, 32, 50, 80}, {0},         0   },
    {"st27",     STENCIL27, {4, 8, 12, 16, 24, 32, 50},        {0},         0   },
    {"square5",  STENCIL5,  {10, 30, 60, 120, 250, 500},       {0},         0   },
    {"uniform",  UNIFORM,   {100, 1000, 10000, 100000},        {3, 10, 40}, 0   },
    {"random",   RANDOM,    {300, 3000, 30000, 300000},        {5, 20, 60}, 0   },
    {"powerlaw", POWERLAW,  {1000, 10000, 100000, 1000000},    {4},         0   },
    {"text",     TEXT,      {500, 5000, 50000},                {20},        1.5 },
    {"tall",     UNIFORM,   {2000, 20000, 200000},             {8},         0.01},
    {"wide",     UNIFORM,   {50, 500, 5000},                   {60},        40  },
  };

  PetscFunctionBeginUser;
  for (size_t f = 0; f < sizeof(family) / sizeof(family[0]); f++)
    for (int k = 0; k < 10 && family[f].size[k]; k++)
      for (int q = 0; q < 3 && (!q || family[f].mean[q] > 0); q++) {
        char      name[64];
        Synthetic s = {name, family[f].kind, family[f].size[k], 1, family[f].mean[q], 100 + (uint64_t)(10 * k + q), 0, 0, 0, 0};

        (void)snprintf(name, sizeof(name), family[f].mean[0] > 0 ? "%s_%d_%g" : "%s_%d", family[f].name, family[f].size[k], family[f].mean[q]);
        if (!SyntheticIsStencil(&s)) s.n = family[f].wide > 0 ? (int)PetscMax(20, s.m * family[f].wide) : s.m;
        PetscCall(Generated(r, &s, backend));
      }
  for (int k = 0; k < NCOLLECTION; k++) { /* of moderate size */
    const Synthetic *s       = &collection[k];
    const double     points  = pow(s->m, s->kind == STENCIL5 ? 2 : 3);
    const double     entries = SyntheticIsStencil(s) ? points * s->mean * s->n : s->m * s->mean;

    if (entries < 1.3e7 && s->n < 10000000) PetscCall(Generated(r, s, backend));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* One positive definite matrix */
static PetscErrorCode OneDefinite(Run *r, const char name[], SPDKind kind, int edge, MatGPUCSRBackend backend)
{
  const SPD    s = {kind, edge, 0, 0, NULL};
  int          m;
  int32_t     *i;
  PetscInt    *j;
  PetscScalar *a;
  PetscBool    yes;

  PetscFunctionBeginUser;
  PetscCall(Wanted(r, name, &yes));
  if (!yes) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(SPDCreate(&s, &m, &i, &j, &a));
  PetscCall(OfArrays(r, name, m, m, i, j, a, PETSC_TRUE, backend));
  PetscCall(SyntheticDestroy(&i, &j, &a));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* As many as M. Verschoor and A. C. Jalba had, and of their sizes: 20 to 1.6 million rows, even in the logarithm, blocks of 3 by 3 and none by turns */
#define SIXTYSEVEN 67

static PetscErrorCode Definite(Run *r, MatGPUCSRBackend backend)
{
  static const struct {
    const char *name;
    int         edge[6];
  } kinds[] = {
    {"lognormal7",  {8, 16, 32, 64, 100}}, /* in the order of SPDKind */
    {"lognormal27", {8, 16, 32, 64}     },
    {"elastic",     {6, 12, 24}         },
    {"graph",       {8, 16, 32, 60}     },
  };
  char name[64];

  PetscFunctionBeginUser;
  for (int k = 0; k < 4; k++)
    for (int q = 0; q < 6 && kinds[k].edge[q]; q++) {
      (void)snprintf(name, sizeof(name), "%s_%d", kinds[k].name, kinds[k].edge[q]);
      PetscCall(OneDefinite(r, name, (SPDKind)k, kinds[k].edge[q], backend));
    }
  for (int k = 0; k < SIXTYSEVEN; k++) {
    const double  rows = 20 * pow(1.6e6 / 20, k / (SIXTYSEVEN - 1.0));
    const SPDKind kind = (SPDKind)(k % 4);

    (void)snprintf(name, sizeof(name), "definite%d_%s", k + 1, kinds[kind].name);
    PetscCall(OneDefinite(r, name, kind, PetscMax(2, (int)lround(cbrt(kind == ELASTIC ? rows / 3 : rows))), backend));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

static int ByName(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static PetscErrorCode Files(Run *r, const char folder[], MatGPUCSRBackend backend)
{
  DIR           *d = opendir(folder);
  struct dirent *e;
  char          *names[1024];
  int            n = 0;

  PetscFunctionBeginUser;
  if (!d) PetscFunctionReturn(PETSC_SUCCESS);
  while ((e = readdir(d)) && n < 1024)
    if (strstr(e->d_name, ".petsc") || strstr(e->d_name, ".mtx") || strstr(e->d_name, ".svm")) PetscCall(PetscStrallocpy(e->d_name, &names[n++]));
  closedir(d);
  qsort(names, (size_t)n, sizeof(*names), ByName);
  for (int k = 0; k < n; k++) {
    char      path[PETSC_MAX_PATH_LEN];
    Mat       A;
    PetscBool yes;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, names[k]);
    PetscCall(Wanted(r, names[k], &yes));
    if (yes) {
      PetscCall(MatCreate(PETSC_COMM_SELF, &A));
      PetscCall(MatSetType(A, MATSEQAIJ));
      PetscCall(MatGPUCSRLoadFile(A, path, NULL, NULL, NULL, NULL));
      PetscCall(Measure(r, names[k], A, PETSC_FALSE, backend));
      PetscCall(MatDestroy(&A));
    }
    PetscCall(PetscFree(names[k]));
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
  Run              r                          = {.id = "unknown"};
  char             folder[PETSC_MAX_PATH_LEN] = "share/datasets", learning[PETSC_MAX_PATH_LEN + 16], file[PETSC_MAX_PATH_LEN], id[64] = "unknown", word[16] = "cuda";
  PetscBool        set;
  PetscReal        budget = 0;
  PetscLogDouble   now;
  PetscMPIInt      rank;
  MatGPUCSRBackend backend;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, help));
  PetscCall(PetscTime(&now));
  PetscCall(MatGPUCSRInitializePackage());
  PetscCall(PetscOptionsGetString(NULL, NULL, "-dir", folder, sizeof(folder), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-only", r.only, sizeof(r.only), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-id", id, sizeof(id), NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-backend", word, sizeof(word), NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-budget", &budget, NULL));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-o", file, sizeof(file), &set));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &r.ranks));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  if (set && !rank) r.out = fopen(file, "w");
  PetscCheck(!set || rank || r.out, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "-o %s cannot be written", file);
  backend  = word[0] == 'h' ? MAT_GPUCSR_BACKEND_HOST : MAT_GPUCSR_BACKEND_CUDA;
  r.begin  = now;
  r.budget = (double)budget;
  r.id     = id;
  (void)snprintf(learning, sizeof(learning), "%s/learning", folder);
  PetscCall(PetscPrintf(PETSC_COMM_WORLD, "microseconds, advised in brackets: products on the CPU, on the GPU with host vectors, with vectors there; CG iterations on the CPU, on the GPU with vectors there, by gpucg; fastest, advised, loss\n"));
  PetscCall(Files(&r, folder, backend));
  PetscCall(Files(&r, learning, backend));
  PetscCall(Definite(&r, backend));
  PetscCall(Families(&r, backend));
  if (r.n) {
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "\n%d matrices: the fastest is named for %d (%.1f %%), loss %.3f in the mean, %.2f at worst (%s)\n", r.n, r.named, 100.0 * r.named / r.n, r.loss / r.n, r.worst, r.worstname));
    PetscCall(PetscPrintf(PETSC_COMM_SELF, "error of products: CPU %.1f %% in the mean, %.0f %% at most; GPU with vectors there %.1f %%, %.0f %%\n", 100 * r.error[0] / r.n, 100 * r.most[0], 100 * r.error[1] / r.n, 100 * r.most[1]));
    if (r.ncg) PetscCall(PetscPrintf(PETSC_COMM_SELF, "error of CG iterations, %d matrices: CPU %.1f %%, GPU with vectors there %.1f %%, gpucg %.1f %%\n", r.ncg, 100 * r.cgerror[0] / r.ncg, 100 * r.cgerror[1] / r.ncg, 100 * r.cgerror[2] / r.ncg));
  }
  if (r.out) fclose(r.out);
  PetscCall(PetscFinalize());
  return 0;
}

#pragma once

/*
  What the drivers of peers share: the systems of ../gamg.c without PETSc, a clock, the true residual, and the table.

  Of each case and setting a driver fills in a PeerRow: seconds of the first set-up, of the best later one, of the first solve and of the best later one, the iterations of the last
  solve, and |b - A x| / |b| of its x by a product on the host. All entries of b are 1. A solve begins with x = 0 and ends when the 2-norm of the residual, without the
  preconditioner, is 1e-8 of the norm of b. The matrix is on the device before the first set-up. The case of half as many points an
  edge runs with the same setting before, so that no time includes the first call of a kernel.
*/
#include "../problems/spdrows.h"
#include <cuda_runtime_api.h>
#include <string.h>
#include <time.h>
#ifdef __cplusplus
  #include <exception>
#endif

#define PEER_RTOL    1e-8
#define PEER_REPEATS 3
#define PEER_LONG    0.5 /* seconds of a phase, beyond which it is repeated once */
#define PEER_MOST    500 /* iterations */

typedef struct {
  int     n, bs; /* unknowns, and unknowns of a point */
  int     symmetric;
  int    *i, *j;
  double *a, *b, *x; /* b: ones; x: the solution, for PeerResidual() */
  void   *device;    /* where a driver keeps its uploaded matrix, or NULL */
} PeerSystem;

typedef struct {
  double      first, again, solve1, solve, residual;
  int         its;
  const char *failed; /* NULL: the setting ran */
} PeerRow;

static inline void *PeerAlloc(size_t count, size_t size)
{
  void *p = malloc((count ? count : 1) * size);

  if (p) return p;
  fprintf(stderr, "peer: no memory for %zu times %zu bytes\n", count, size);
  exit(1);
}

static inline void PeerSystemCreate(const SPD *which, PeerSystem *A)
{
  SPD       s      = *which;
  const int points = s.m * s.m * SPDDepth(&s);
  double   *table  = (double *)PeerAlloc((size_t)points, sizeof(*table));

#pragma omp parallel for
  for (int p = 0; p < points; p++) table[p] = SPDCoefficient(p);
  s.first      = 0;
  s.table      = table;
  A->device    = NULL;
  A->bs        = s.kind == ELASTIC ? 3 : 1;
  A->symmetric = 1;
  A->n         = points * A->bs;
  A->i         = (int *)PeerAlloc((size_t)A->n + 1, sizeof(*A->i));
  A->i[0]      = 0;
#pragma omp parallel for schedule(dynamic, 1024)
  for (int r = 0; r < A->n; r++) {
    int32_t col[SPD_LONGEST];
    double  val[SPD_LONGEST];

    A->i[r + 1] = SPDRow(&s, r, col, val);
  }
  for (int r = 0; r < A->n; r++) A->i[r + 1] += A->i[r];
  A->j = (int *)PeerAlloc((size_t)A->i[A->n], sizeof(*A->j));
  A->a = (double *)PeerAlloc((size_t)A->i[A->n], sizeof(*A->a));
  A->b = (double *)PeerAlloc((size_t)A->n, sizeof(*A->b));
  A->x = (double *)PeerAlloc((size_t)A->n, sizeof(*A->x));
#pragma omp parallel for schedule(dynamic, 1024)
  for (int r = 0; r < A->n; r++) {
    int32_t   col[SPD_LONGEST];
    double    val[SPD_LONGEST];
    const int length = SPDRow(&s, r, col, val);

    for (int k = 0; k < length; k++) {
      A->j[A->i[r] + k] = col[k];
      A->a[A->i[r] + k] = val[k];
    }
    A->b[r] = 1;
    A->x[r] = 0;
  }
  free(table);
}

/* Big-endian 32-bit integers and doubles, as PETSc writes them */
static inline void PeerRead32(FILE *f, const char *path, size_t count, int32_t *v)
{
  unsigned char *bytes = (unsigned char *)v;

  if (fread(v, sizeof(*v), count, f) != count) {
    fprintf(stderr, "%s: not a matrix and a right-hand side of `amgcollection -write`\n", path);
    exit(1);
  }
  for (size_t k = 0; k < count; k++, bytes += 4) v[k] = (int32_t)((uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | (uint32_t)bytes[3]);
}

static inline void PeerRead64(FILE *f, const char *path, size_t count, double *v)
{
  int32_t *half = (int32_t *)v;

  PeerRead32(f, path, 2 * count, half);
  for (size_t k = 0; k < count; k++) {
    const int32_t high = half[2 * k];

    half[2 * k]     = half[2 * k + 1];
    half[2 * k + 1] = high;
  }
}

/* Is every entry (r, c) beside an entry (c, r) of the same value? Columns of a row increase */
static inline int PeerSymmetric(const PeerSystem *A)
{
  int same = 1, *next = (int *)PeerAlloc((size_t)A->n, sizeof(*next));

  memcpy(next, A->i, sizeof(*next) * (size_t)A->n);
  for (int r = 0; r < A->n && same; r++)
    for (int k = A->i[r]; k < A->i[r + 1] && same; k++) {
      const int c = A->j[k], at = next[c]++;

      same = at < A->i[c + 1] && A->j[at] == r && fabs(A->a[at] - A->a[k]) <= 1e-10 * fabs(A->a[k]);
    }
  free(next);
  return same;
}

/* Have the rows of a point the same neighbours, with entries for all unknowns of each? */
static inline int PeerBlocks(const PeerSystem *A, int bs)
{
  if (A->n % bs) return 0;
  for (int p = 0; p < A->n; p += bs) {
    const int length = A->i[p + 1] - A->i[p];

    if (length % bs) return 0;
    for (int r = p; r < p + bs; r++) {
      if (A->i[r + 1] - A->i[r] != length) return 0;
      for (int k = 0; k < length; k++)
        if (A->j[A->i[r] + k] != A->j[A->i[p] + k - k % bs] + k % bs || A->j[A->i[p] + k - k % bs] % bs) return 0;
    }
  }
  return 1;
}

/* A file of `amgcollection -write`; PETSc writes the block size into a file beside it */
static inline void PeerSystemRead(const char *path, PeerSystem *A)
{
  char    line[256];
  int32_t head[4];
  int     bs = 1;
  FILE   *f  = fopen(path, "rb");

  if (!f) {
    fprintf(stderr, "%s: no such file\n", path);
    exit(1);
  }
  PeerRead32(f, path, 4, head);
  A->device = NULL;
  A->n      = head[1];
  A->i      = (int *)PeerAlloc((size_t)A->n + 1, sizeof(*A->i));
  A->j      = (int *)PeerAlloc((size_t)head[3], sizeof(*A->j));
  A->a      = (double *)PeerAlloc((size_t)head[3], sizeof(*A->a));
  A->b      = (double *)PeerAlloc((size_t)A->n, sizeof(*A->b));
  A->x      = (double *)PeerAlloc((size_t)A->n, sizeof(*A->x));
  A->i[0]   = 0;
  PeerRead32(f, path, (size_t)A->n, A->i + 1);
  for (int r = 0; r < A->n; r++) A->i[r + 1] += A->i[r];
  PeerRead32(f, path, (size_t)head[3], A->j);
  PeerRead64(f, path, (size_t)head[3], A->a);
  PeerRead32(f, path, 2, head);
  PeerRead64(f, path, (size_t)A->n, A->b);
  (void)fclose(f);
  memset(A->x, 0, sizeof(*A->x) * (size_t)A->n);
  (void)snprintf(line, sizeof(line), "%s.info", path);
  f = fopen(line, "r");
  while (f && fgets(line, sizeof(line), f)) (void)sscanf(line, "-matload_block_size %d", &bs);
  if (f) (void)fclose(f);
  A->bs        = bs > 1 && PeerBlocks(A, bs) ? bs : 1;
  A->symmetric = PeerSymmetric(A);
}

static inline void PeerSystemDestroy(PeerSystem *A)
{
  free(A->i);
  free(A->j);
  free(A->a);
  free(A->b);
  free(A->x);
}

static inline double PeerResidual(const PeerSystem *A)
{
  double r2 = 0, b2 = 0;

#pragma omp parallel for reduction(+ : r2, b2)
  for (int r = 0; r < A->n; r++) {
    double sum = A->b[r];

    for (int k = A->i[r]; k < A->i[r + 1]; k++) sum -= A->a[k] * A->x[A->j[k]];
    r2 += sum * sum;
    b2 += A->b[r] * A->b[r];
  }
  return sqrt(r2 / b2);
}

/* The time in seconds, when the device has done all its work */
static inline double PeerNow(void)
{
  struct timespec t;

  (void)cudaDeviceSynchronize();
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The two phases of a peer's solver; each returns NULL, or says what failed. Solve begins with x = 0, which begin, if there is one, makes before the clock starts */
typedef struct {
  void *ctx;
  const char *(*setup)(void *ctx);
  const char *(*solve)(void *ctx, int *its);
  const char *(*fetch)(void *ctx, double *x); /* the solution, to the host */
  const char *(*begin)(void *ctx);
} PeerSolver;

/* Seconds of one phase; what failed is noted in row */
static inline double PeerClock(const PeerSolver *s, int solve, PeerRow *row)
{
  double      begin, took;
  cudaError_t error;

  if (solve && s->begin && (row->failed = s->begin(s->ctx))) return 0;
  begin       = PeerNow();
  row->failed = solve ? s->solve(s->ctx, &row->its) : s->setup(s->ctx);
  took        = PeerNow() - begin;
  error       = cudaDeviceSynchronize(); /* again: for its error alone */
  if (!row->failed && error != cudaSuccess) row->failed = cudaGetErrorString(error);
  return took;
}

static inline void PeerRun(const PeerSolver *s, PeerSystem *A, PeerRow *row)
{
  *row        = (PeerRow){0, 1e9, 0, 1e9, 1, 0, NULL};
  row->first  = PeerClock(s, 0, row);
  row->solve1 = row->failed ? 0 : PeerClock(s, 1, row);
  for (int k = 0; k < (row->solve1 > PEER_LONG ? 1 : PEER_REPEATS) && !row->failed; k++) row->solve = fmin(row->solve, PeerClock(s, 1, row));
  if (row->failed || (row->failed = s->fetch(s->ctx, A->x))) return;
  row->residual = PeerResidual(A);
  for (int k = 0; k < (row->first > PEER_LONG ? 1 : PEER_REPEATS) && !row->failed; k++) row->again = fmin(row->again, PeerClock(s, 0, row));
}

#ifdef __cplusplus
/* What call throws, as text for a row of the table; NULL: nothing */
template <class Call>
static inline const char *PeerThrown(Call call)
{
  static char text[256];

  try {
    call();
    return NULL;
  } catch (const std::exception &e) {
    (void)snprintf(text, sizeof(text), "%s", e.what());
  }
  for (char *c = text; *c; c++)
    if (*c == '\n' || *c == '|') *c = ' ';
  return text;
}
#endif

static const char PeerSkipped[] = "not for this case"; /* no row of the table */

/* Runs setting k of a peer for A */
typedef void (*PeerSetting)(int k, PeerSystem *A, PeerRow *row);

static inline int PeerGood(const PeerRow *r)
{
  return !r->failed && r->residual <= 1.1 * PEER_RTOL;
}

static inline void PeerPrint(const char what[], const char setting[], const PeerRow *r)
{
  if (r->failed) printf("| %s | %s | failed: %s |\n", what, setting, r->failed);
  else printf("| %s | %s | %.2f | %.2f | %.2f | %.2f | %.2f | %d | %.1e%s |\n", what, setting, 1e3 * r->first, 1e3 * r->again, 1e3 * r->solve1, 1e3 * r->solve, 1e3 * (r->first + r->solve1), r->its, r->residual, PeerGood(r) ? "" : " (not solved)");
  fflush(stdout);
}

/* Is setting k asked for by -only? By its whole name, or by a part of it where no setting has the word for a name */
static inline int PeerWanted(const char *const names[], int count, int k, const char *only)
{
  for (int q = 0; only && q < count; q++)
    if (!strcmp(names[q], only)) return q == k;
  return !only || strstr(names[k], only);
}

/* The arguments are cases, names of systems or paths of files that `amgcollection -write` has written; -only WORD chooses the settings of the cases after it. forget frees A->device; NULL: there is nothing */
static inline int PeerMain(int argc, char **argv, const char *const names[], int count, PeerSetting run, void (*forget)(PeerSystem *A))
{
  const char *only = NULL;
  PeerRow    *row  = (PeerRow *)PeerAlloc((size_t)count, sizeof(*row));

  printf("| case | setting | first set-up | again | first solve | solve | set-up and first solve | iterations | residual |\n| :-- | :-- | --: | --: | --: | --: | --: | --: | --: |\n");
  for (int c = 1; c < argc; c++) {
    SPD        s = {LOGNORMAL7, 0, 0, 0, NULL}, small;
    PeerSystem A, warm;
    int        total = -1, later = -1;
    char       what[96];

    if (!strcmp(argv[c], "-only") && c + 1 < argc) {
      only = argv[++c];
      continue;
    }
    if (strchr(argv[c], '/')) {
      PeerSystemRead(argv[c], &A);
      PeerSystemRead(argv[c], &warm);
    } else {
      if (!SPDNamed(argv[c], &s) || s.m < 2 || s.m > 200) {
        fprintf(stderr, "%s: must be a path with /, lognormal7_N, lognormal27_N, elastic_N or graph_N, N points an edge\n", argv[c]);
        return 1;
      }
      small   = s;
      small.m = s.m < 16 ? s.m : s.m / 2;
      PeerSystemCreate(&s, &A);
      PeerSystemCreate(&small, &warm);
    }
    for (int k = 0; k < count; k++) {
      if (!PeerWanted(names, count, k, only)) continue;
      run(k, &warm, &row[k]);
      if (!row[k].failed) run(k, &A, &row[k]);
      if (row[k].failed == PeerSkipped) continue;
      PeerPrint(argv[c], names[k], &row[k]);
      if (!PeerGood(&row[k])) continue;
      if (total < 0 || row[k].first + row[k].solve1 < row[total].first + row[total].solve1) total = k;
      if (later < 0 || row[k].solve < row[later].solve) later = k;
    }
    (void)snprintf(what, sizeof(what), "**%s, best with set-up**", argv[c]);
    if (total >= 0) PeerPrint(what, names[total], &row[total]);
    (void)snprintf(what, sizeof(what), "**%s, best later solve**", argv[c]);
    if (later >= 0) PeerPrint(what, names[later], &row[later]);
    if (forget) forget(&A);
    if (forget) forget(&warm);
    PeerSystemDestroy(&A);
    PeerSystemDestroy(&warm);
  }
  free(row);
  return 0;
}

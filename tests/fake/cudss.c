/*
  Stands in for cuDSS where the host stands in for GPUs (t633-cudss.sh): its factorizations by dense elimination, in memory that the host can read. The matrix is read as by cuDSS: only the upper triangle if symmetric. In the environment: FAKE_CUDSS_FAIL=FUNCTION:N:STATUS, the N-th call of a function or phase from then on fails; _VERSION; _BYTES and _HYBRID, what it estimates; _COLUMNS, with more in a solve memory runs out; _WITHOUT, the number of a result that it
  does not have; _PIVOT, what replaces small pivots, which are not counted then; _WRONG, a
  relative error of solutions; _STALE, the same where factored values are not those of the analysis; _SCHUR, a relative error of Schur complements; _COUNT, a file that gets the number of calls of each function at the end.
*/
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  CREATE,
  DESTROY,
  STREAM,
  CONFIG,
  SET,
  DATA,
  GET,
  CSR,
  DENSE,
  ANALYSIS,
  FACTORIZATION,
  REFACTORIZATION,
  SOLVE,
  FORWARD, /* parts of solves with a Schur complement */
  DIAGONAL,
  BACKWARD,
  MARKS,
  SCHUR,
  FUNCTIONS
};
static const char *const words[FUNCTIONS] = {"create", "destroy", "stream", "config", "set", "data", "get", "csr", "dense", "analysis", "factorization", "refactorization", "solve", "forward", "diagonal", "backward", "marks", "schur"};
static int               calls[FUNCTIONS], living;

typedef struct {
  int64_t        rows, columns, ld, nnz;
  const int32_t *i, *j;
  double        *v;
  int            kind, view;
} Matrix;

typedef struct {
  int     set[64];
  int64_t limit;
  double  epsilon; /* smaller pivots are replaced; negative: below 1e-13 */
} Config;

typedef struct {
  int     n, analyzed, factored, again, info, perturbed, pairs[2], hybrid, kind;
  int     eliminated; /* rows, the first of the order */
  int    *row;        /* exchanged with row k */
  int    *order;      /* row of the matrix for each row here: those of a Schur complement come last */
  char   *marks;      /* of the rows of a Schur complement */
  double *a, sum;     /* of the values at the analysis */
} Data;

static const char *Env(const char name[])
{
  char whole[64];

  snprintf(whole, sizeof(whole), "FAKE_CUDSS_%s", name);
  return getenv(whole);
}

/* The status of this call */
static int Count(int what)
{
  static char last[64]; /* FAKE_CUDSS_FAIL, and the calls since it was set */
  static int  since;
  const char *fail = Env("FAIL");
  char        word[32];
  int         n, status;

  calls[what]++;
  if (!fail || strcmp(fail, last)) since = 0;
  snprintf(last, sizeof(last), "%s", fail ? fail : "");
  return fail && sscanf(fail, "%31[a-z]:%d:%d", word, &n, &status) == 3 && !strcmp(word, words[what]) && n == ++since ? status : 0;
}

int cudssGetProperty(int which, int *value)
{
  const char *v = Env("VERSION");

  *value = which ? 0 : v ? atoi(v) : 1;
  return 0;
}

int cudssCreate(void **h)
{
  const int e = Count(CREATE);

  *h = e ? NULL : malloc(1);
  living += !e;
  return e;
}

int cudssDestroy(void *h)
{
  const char *name = Env("COUNT");

  (void)Count(DESTROY);
  free(h);
  living--;
  if (name) {
    FILE *fp = fopen(name, "w");

    for (int k = 0; k < FUNCTIONS && fp; k++) fprintf(fp, "%s %d\n", words[k], calls[k]);
    if (fp) fprintf(fp, "living %d\n", living);
    if (fp) fclose(fp);
  }
  return 0;
}

int cudssSetStream(void *h, void *s)
{
  (void)h;
  (void)s;
  return Count(STREAM);
}

int cudssSetThreadingLayer(void *h, const char file[])
{
  (void)h;
  (void)file;
  return 4;
}

int cudssConfigCreate(void **c)
{
  const int e = Count(CONFIG);

  *c = e ? NULL : calloc(1, sizeof(Config));
  if (!e) ((Config *)*c)->epsilon = -1;
  living += !e;
  return e;
}

int cudssConfigDestroy(void *c)
{
  free(c);
  living--;
  return 0;
}

int cudssConfigSet(void *c, int which, const void *value, size_t bytes)
{
  const int e = Count(SET);

  if (e) return e;
  if (which < 0 || which >= 64 || bytes != (which == 12 ? sizeof(int64_t) : which == 9 ? sizeof(double) : sizeof(int))) return 3;
  if (which == 12) memcpy(&((Config *)c)->limit, value, sizeof(int64_t));
  else if (which == 9) memcpy(&((Config *)c)->epsilon, value, sizeof(double));
  else memcpy(&((Config *)c)->set[which], value, sizeof(int));
  return 0;
}

int cudssDataCreate(const void *h, void **d)
{
  const int e = h ? Count(DATA) : 1;

  *d = e ? NULL : calloc(1, sizeof(Data));
  living += !e;
  return e;
}

int cudssDataDestroy(void *h, void *data)
{
  Data *d = (Data *)data;

  if (!h) return 1;
  free(d->a);
  free(d->row);
  free(d->order);
  free(d->marks);
  free(d);
  living--;
  return 0;
}

/* The rows of a Schur complement: the matrix is not known yet */
int cudssDataSet(void *h, void *data, int which, const void *value, size_t bytes)
{
  const size_t n = bytes / sizeof(int32_t);
  Data        *d = (Data *)data;
  const int    e = h ? Count(MARKS) : 1;

  if (e) return e;
  if (which != 18 || !n) return 3;
  free(d->marks);
  d->marks = (char *)malloc(n);
  for (size_t k = 0; k < n; k++) d->marks[k] = (char)((const int32_t *)value)[k];
  return 0;
}

/* S by columns, in a dense matrix of the caller */
static int Schur(const Data *d, const Matrix *S)
{
  const int n = d->n, m = d->eliminated, e = Count(SCHUR);

  if (e) return e;
  if (!d->factored || m == n || !S || S->rows != n - m || S->columns != n - m || S->ld < n - m) return 3;
  for (int c = m; c < n; c++)
    for (int r = m; r < n; r++) S->v[(c - m) * S->ld + r - m] = d->a[r * n + c] * (1 + (Env("SCHUR") ? atof(Env("SCHUR")) : 0));
  return 0;
}

int cudssDataGet(const void *h, const void *data, int which, void *value, size_t bytes, size_t *written)
{
  const Data *d      = (const Data *)data;
  int64_t     number = (int64_t)d->n * d->n, estimate[16] = {1000, 2000, 1000, 2000, 100, 5000};
  const char *given = Env(d->hybrid ? "HYBRID" : "BYTES");
  int         e     = h ? Count(GET) : 1;
  struct {
    const void *p;
    size_t      bytes;
  } what[14] = {
    {&d->info,      sizeof(int)     },
    {&number,       sizeof(number)  },
    {&d->perturbed, sizeof(int)     },
    {d->pairs,      sizeof(d->pairs)}
  };

  if (e) return e;
  if (which == 20) return bytes == sizeof(Matrix *) ? Schur(d, *(Matrix *const *)value) : 3;
  if (Env("WITHOUT") && atoi(Env("WITHOUT")) == which) return 3;
  if (given) estimate[d->hybrid ? 4 : 1] = atoll(given);
  what[13].p     = estimate;
  what[13].bytes = sizeof(estimate);
  if (which < 0 || which > 13 || !what[which].p || bytes != what[which].bytes || !d->analyzed || (which != 1 && which != 13 && !d->factored)) return 3;
  memcpy(value, what[which].p, bytes);
  *written = bytes;
  return 0;
}

int cudssMatrixCreateDn(void **m, int64_t rows, int64_t columns, int64_t ld, const void *values, int type, int layout)
{
  const int e = Count(DENSE);
  Matrix   *M;

  *m = NULL;
  if (e) return e;
  if (ld < rows || type != 1 || layout || !values) return 3;
  M  = (Matrix *)calloc(1, sizeof(*M));
  *M = (Matrix){.rows = rows, .columns = columns, .ld = ld, .v = (double *)values};
  *m = M;
  living++;
  return 0;
}

int cudssMatrixCreateCsr(void **m, int64_t rows, int64_t columns, int64_t nnz, const void *begin, const void *end, const void *column, const void *values, int offsets, int indices, int type, int kind, int view, int base)
{
  const int e = Count(CSR);
  Matrix   *M;

  *m = NULL;
  if (e) return e;
  if (end || offsets != 10 || indices != 10 || type != 1 || base || rows != columns || (kind && view != 2)) return 3;
  M  = (Matrix *)calloc(1, sizeof(*M));
  *M = (Matrix){.rows = rows, .columns = columns, .nnz = nnz, .i = (const int32_t *)begin, .j = (const int32_t *)column, .v = (double *)values, .kind = kind, .view = view};
  *m = M;
  living++;
  return 0;
}

int cudssMatrixDestroy(void *m)
{
  free(m);
  living--;
  return 0;
}

static double Sum(const Matrix *A)
{
  double sum = 0;

  for (int64_t e = 0; e < A->nnz; e++) sum += A->v[e] / (double)(e + 1);
  return sum;
}

static void Read(const Matrix *A, double *a)
{
  const size_t n = (size_t)A->rows;

  memset(a, 0, sizeof(*a) * n * n);
  for (size_t r = 0; r < n; r++)
    for (int32_t e = A->i[r]; e < A->i[r + 1]; e++) {
      const size_t c = (size_t)A->j[e];

      if (A->view == 2 && c < r) continue;
      a[r * n + c] = A->v[e];
      if (A->view == 2) a[c * n + r] = A->v[e];
    }
}

/* Rows and columns of a in another order */
static void Permute(int n, const int order[], double *a)
{
  double *b = (double *)malloc(sizeof(double) * (size_t)n * (size_t)n);

  for (int r = 0; r < n; r++)
    for (int c = 0; c < n; c++) b[r * n + c] = a[order[r] * n + order[c]];
  memcpy(a, b, sizeof(double) * (size_t)n * (size_t)n);
  free(b);
}

/* The signs of the eigenvalues, by Sylvester's law: elimination with symmetric pivots of one or two rows (Bunch and Parlett) */
static void Inertia(const Matrix *A, double epsilon, int pairs[2])
{
  const size_t n    = (size_t)A->rows;
  double      *a    = (double *)malloc(sizeof(double) * n * n);
  char        *done = (char *)calloc(n, 1);
  size_t       left = n;

  Read(A, a);
  pairs[0] = pairs[1] = 0;
  while (left) {
    size_t p = n, q = n, at = n;
    double diagonal = 0, off = 0;

    for (size_t r = 0; r < n; r++)
      for (size_t c = r; c < n && !done[r]; c++) {
        const double v = fabs(a[r * n + c]);

        if (done[c]) continue;
        if (r == c && v > diagonal) {
          diagonal = v;
          at       = r;
        } else if (r != c && v > off) {
          off = v;
          p   = r;
          q   = c;
        }
      }
    if (diagonal <= epsilon && off <= epsilon) break;
    if (diagonal >= 0.6 * off) {
      done[at] = 1;
      left--;
      pairs[a[at * n + at] < 0]++;
      for (size_t r = 0; r < n; r++)
        for (size_t c = 0; c < n; c++)
          if (!done[r] && !done[c]) a[r * n + c] -= a[r * n + at] * a[at * n + c] / a[at * n + at];
    } else {
      const double e = a[p * n + p], f = a[q * n + q], g = a[p * n + q], det = e * f - g * g;

      done[p] = done[q] = 1;
      left -= 2;
      pairs[0]++;
      pairs[1]++;
      for (size_t r = 0; r < n; r++)
        for (size_t c = 0; c < n; c++)
          if (!done[r] && !done[c]) a[r * n + c] -= (a[r * n + p] * (f * a[p * n + c] - g * a[q * n + c]) + a[r * n + q] * (e * a[q * n + c] - g * a[p * n + c])) / det;
    }
  }
  free(a);
  free(done);
}

static int Positive(const Matrix *A)
{
  const int n    = (int)A->rows;
  double   *a    = (double *)malloc(sizeof(double) * (size_t)n * (size_t)n);
  int       info = 0;

  Read(A, a);
  for (int k = 0; k < n && !info; k++) {
    if (!(a[k * n + k] > 0)) info = k + 1;
    for (int r = k + 1; r < n && !info; r++)
      for (int c = k + 1; c < n; c++) a[r * n + c] -= a[r * n + k] * a[k * n + c] / a[k * n + k];
  }
  free(a);
  return info;
}

/* P A = L U, with pivots below epsilon replaced: silently by a number from outside, or else by epsilon */
static void Factor(Data *d, const Matrix *A, double epsilon)
{
  const int   n      = d->n;
  double     *a      = d->a;
  const char *silent = Env("PIVOT");

  Read(A, a);
  if (d->eliminated < n) Permute(n, d->order, a);
  d->perturbed = 0;
  d->kind      = A->kind;
  for (int k = 0; k < d->eliminated; k++) {
    int at = k;

    for (int r = k + 1; r < d->eliminated; r++)
      if (fabs(a[r * n + k]) > fabs(a[at * n + k])) at = r;
    d->row[k] = at;
    for (int c = 0; c < n && at != k; c++) {
      const double v = a[k * n + c];

      a[k * n + c]  = a[at * n + c];
      a[at * n + c] = v;
    }
    if (fabs(a[k * n + k]) < epsilon) {
      a[k * n + k] = silent ? atof(silent) : epsilon;
      d->perturbed += !silent;
    }
    for (int r = k + 1; r < n; r++) {
      const double l = a[r * n + k] /= a[k * n + k];

      for (int c = k + 1; c < n && l != 0; c++) a[r * n + c] -= l * a[k * n + c];
    }
  }
}

static void Solve(const Data *d, int transposed, double *x)
{
  const int     n = d->n;
  const double *a = d->a;
  double        t;

  for (int k = 0; k < n && !transposed; k++) {
    t            = x[k];
    x[k]         = x[d->row[k]];
    x[d->row[k]] = t;
    for (int c = 0; c < k; c++) x[k] -= a[k * n + c] * x[c];
  }
  for (int k = 0; k < n && transposed; k++) {
    for (int c = 0; c < k; c++) x[k] -= a[c * n + k] * x[c];
    x[k] /= a[k * n + k];
  }
  for (int k = n; k-- > 0;) {
    for (int c = k + 1; c < n; c++) x[k] -= (transposed ? a[c * n + k] : a[k * n + c]) * x[c];
    if (!transposed) x[k] /= a[k * n + k];
  }
  for (int k = n; k-- > 0 && transposed;) {
    t            = x[k];
    x[k]         = x[d->row[k]];
    x[d->row[k]] = t;
  }
}

/* A part of a solve around a Schur complement. Vectors between the parts are in the order of elimination; L D L^T has its diagonal apart */
static void Part(const Data *d, int what, const double *b, double *x)
{
  const int     n = d->n, m = d->eliminated;
  const double *a = d->a;
  double       *y = (double *)malloc(sizeof(double) * (size_t)n), t;

  for (int k = 0; k < n; k++) y[k] = b[what == FORWARD ? d->order[k] : k];
  for (int k = 0; k < m && what == FORWARD; k++) {
    t            = y[k];
    y[k]         = y[d->row[k]];
    y[d->row[k]] = t;
  }
  for (int k = 0; k < n && what == FORWARD; k++)
    for (int c = 0; c < k && c < m; c++) y[k] -= a[k * n + c] * y[c];
  for (int k = 0; k < m && what == DIAGONAL; k++) y[k] /= a[k * n + k];
  for (int k = m; k-- > 0 && what == BACKWARD;) {
    t = 0;
    for (int c = k + 1; c < n; c++) t += a[k * n + c] * y[c];
    y[k] = d->kind == 1 ? y[k] - t / a[k * n + k] : (y[k] - t) / a[k * n + k];
  }
  for (int k = 0; k < n; k++) x[what == BACKWARD ? d->order[k] : k] = y[k];
  free(y);
}

/* The order of elimination */
static void Order(Data *d)
{
  int at = 0;

  free(d->order);
  d->order = (int *)malloc(sizeof(int) * (size_t)d->n);
  for (int last = 0; last < 2; last++) {
    for (int k = 0; k < d->n; k++)
      if ((d->marks && d->marks[k]) == last) d->order[at++] = k;
    if (!last) d->eliminated = at;
  }
}

int cudssExecute(void *h, int phase, const void *config, void *data, const void *matrix, void *x, const void *b)
{
  const Config *c = (const Config *)config;
  const Matrix *A = (const Matrix *)matrix, *B = (const Matrix *)b, *X = (const Matrix *)x;
  Data         *d     = (Data *)data;
  const char   *wrong = Env("WRONG");
  const int     what  = phase == 3 ? ANALYSIS : phase == 4 ? FACTORIZATION : phase == 8 ? REFACTORIZATION : phase == 1008 ? SOLVE : phase == 48 ? FORWARD : phase == 64 ? DIAGONAL : phase == 384 ? BACKWARD : -1;
  int           e;

  if (!h || what < 0 || !A || !B || !X || B->rows != A->rows || X->rows != A->rows || B->columns != X->columns) return 3;
  e = Count(what);
  if (e) return e;
  if (d->again && Env("STALE")) wrong = Env("STALE");
  if (what == ANALYSIS) {
    free(d->a);
    free(d->row);
    d->n        = (int)A->rows;
    d->a        = (double *)malloc(sizeof(double) * (size_t)d->n * (size_t)d->n);
    d->row      = (int *)malloc(sizeof(int) * (size_t)d->n);
    d->hybrid   = c->set[11];
    d->analyzed = 1;
    d->factored = 0;
    d->sum      = Sum(A);
    Order(d);
    if ((d->eliminated < d->n) != (c->set[23] == 1) || (c->set[23] && c->set[3])) return 4; /* a Schur complement, without a matching */
    if (c->set[11] && c->limit <= 0) return 3;
    return 0;
  }
  if (!d->analyzed || (what >= REFACTORIZATION && !d->factored)) return 3;
  if (what < SOLVE) {
    const double epsilon = c->epsilon < 0 ? 1e-13 : c->epsilon;

    Factor(d, A, epsilon);
    d->info = A->kind == 3 ? Positive(A) : 0;
    if (A->kind == 1) Inertia(A, epsilon, d->pairs);
    d->factored = 1;
    d->again    = Sum(A) != d->sum;
    return 0;
  }
  if ((d->eliminated < d->n) == (what == SOLVE) || (what == DIAGONAL && d->kind != 1) || (what != SOLVE && c->set[4])) return 4;
  if (c->set[24] && B->columns > 1) return 4; /* deterministic */
  if (Env("COLUMNS") && B->columns > atoi(Env("COLUMNS"))) return 2;
  for (int64_t q = 0; q < B->columns; q++) {
    double *y = X->v + q * X->ld;

    if (what != SOLVE) {
      Part(d, what, B->v + q * B->ld, y);
      continue;
    }
    memmove(y, B->v + q * B->ld, sizeof(double) * (size_t)d->n);
    Solve(d, c->set[4] && !A->kind, y);
    for (int k = 0; k < d->n && wrong; k++) y[k] *= 1 + atof(wrong) * (k % 2 ? 1 : -0.5);
  }
  return 0;
}

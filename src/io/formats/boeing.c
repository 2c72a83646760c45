/*
  Harwell-Boeing, after I. S. Duff, R. G. Grimes and J. G. Lewis, "Users' guide for the Harwell-Boeing sparse matrix collection", 1992, and Rutherford-Boeing, after the same authors' report
  RAL-TR-97-031, 1997: compressed columns in lines of fixed columns, with widths in Fortran formats. Right-hand sides are skipped; unassembled matrices and supplementary files are not supported.
*/
#include "../gpucsrio.h"
#include "number.h"
#include <ctype.h>
#include <stdlib.h>

enum {
  FIELD_LIMIT = 128 /* the widest field */
};

/* ---- Lines */

typedef struct {
  const char *text;
  int64_t     lines;
  size_t     *start; /* lines + 1 starts: the last is beyond the end of the text */
} Text;

static int TextCreate(GPUCSRInput *s, Text *t, GPUCSRFault *f)
{
  const char *const text = GPUCSRInputWhole(s, f);
  const char       *end;

  t->text = text;
  if (!text) return 1;
  end = text + GPUCSRInputSize(s);
  for (const char *p = text; p < end; p++, t->lines++) {
    p = (const char *)memchr(p, '\n', (size_t)(end - p));
    if (!p) p = end;
  }
  t->start = (size_t *)malloc((size_t)(t->lines + 1) * sizeof(*t->start));
  if (!t->start) return GPUCSRFaultSet(f, 0, 0, "no memory for %lld lines", (long long)t->lines);
  t->start[0] = 0;
  for (int64_t k = 0; k < t->lines; k++) {
    const char *const p = (const char *)memchr(text + t->start[k], '\n', (size_t)(end - text) - t->start[k]);

    t->start[k + 1] = (size_t)((p ? p : end) - text) + 1;
  }
  return 0;
}

/* Line k without its end, which may include a carriage return */
static const char *Line(const Text *t, int64_t k, size_t *length)
{
  const char *const p = t->text + t->start[k];

  *length = t->start[k + 1] - t->start[k] - 1;
  if (*length && p[*length - 1] == '\r') --*length;
  return p;
}

/* ---- Fortran formats */

/* An unsigned number of at most four digits; -1 if there is none */
static int Count(const char **p)
{
  int n = -1;

  while (isdigit((unsigned char)**p) && n < 1000) n = (n < 0 ? 0 : 10 * n) + *(*p)++ - '0';
  return n;
}

/* A format behind its parenthesis, nLw.d or nLw.dEe, with a scale kP or kP, in front: what the collections and RBio have. 1: it is another */
static int Scan(const char *p, GPUCSRFortran *F)
{
  const int minus = *p == '-';
  int       n;

  p += minus;
  n = Count(&p);
  if (*p == 'P' && n >= 0 && n < 100) {
    F->scale = minus ? -n : n;
    p += p[1] == ',' ? 2 : 1;
    n = Count(&p);
  } else if (minus) return 1;
  F->count  = n < 0 ? 1 : n;
  F->letter = *p;
  if (!F->count || !*p || !strchr("IFEDG", *p++)) return 1;
  if (F->letter == 'E' && (*p == 'S' || *p == 'N')) p++;
  F->width = Count(&p);
  if (*p == '.') {
    p++;
    F->digits = Count(&p);
    if (*p == 'E' && (p++, Count(&p)) < 0) return 1;
  }
  return F->width < 1 || F->width > FIELD_LIMIT || F->digits < 0 || F->digits > F->width || strcmp(p, ")");
}

/* A format such as (1P,5E16.8) in the columns from and to of a line */
static int Format(const char *line, size_t length, size_t from, size_t to, int64_t number, GPUCSRFortran *F, GPUCSRFault *f)
{
  char text[32];
  int  n = 0;

  for (size_t k = from; k < to && k < length; k++)
    if (!GPUCSRIsBlank(line[k])) text[n++] = (char)toupper((unsigned char)line[k]);
  text[n] = 0;
  memset(F, 0, sizeof(*F));
  return text[0] != '(' || Scan(text + 1, F) ? GPUCSRFaultSet(f, number, (int64_t)from + 1, "expected a Fortran format such as (16I5) or (1P,5E16.8), not '%s'", text) : 0;
}

/* Do n numbers fit so many lines? */
static int Fit(const GPUCSRFortran *F, int64_t n, int64_t lines)
{
  return n <= 0 || (n - 1) / F->count < lines;
}

/* ---- Header */

/* The whole numbers of a line from column on: their number, at most limit, or -1 with a fault */
static int Numbers(const char *line, size_t length, size_t column, int64_t number, int limit, int64_t v[], GPUCSRFault *f)
{
  int n = 0;

  for (const char *p = line + column; p < line + length && n < limit; n++) {
    const char *q;

    while (GPUCSRIsBlank(*p)) p++;
    if (p >= line + length) break;
    q = GPUCSRWhole(p, &v[n]);
    if (!q || (q < line + length && !GPUCSRIsBlank(*q))) return GPUCSRFaultSet(f, number, p - line + 1, "expected whole numbers"), -1;
    p = q;
  }
  return n;
}

int GPUCSRBoeingHeader(const char text[], size_t bytes, GPUCSRTextHeader *h, GPUCSRFault *f)
{
  const char *line[5];
  size_t      length[5];
  int64_t     cards[5] = {0, 0, 0, 0, 0}, size[4] = {0, 0, 0, 0};
  char        type[4] = "   ";
  int         n;
  const char *p = text, *end = text + bytes;

  memset(h, 0, sizeof(*h));
  h->format = GPUCSR_TEXT_BOEING;
  for (n = 0; n < 5 && p < end; n++) {
    const char *q = (const char *)memchr(p, '\n', (size_t)(end - p));

    line[n]   = p;
    length[n] = (size_t)(q - p);
    if (length[n] && q[-1] == '\r') length[n]--;
    p = q + 1;
    if (n < 4) h->bytes = (size_t)(p - text);
  }
  if (n < 4) return GPUCSRFaultSet(f, n + 1, 0, "expected the four lines of a Harwell-Boeing header, and the file ends"), GPUCSR_HEADER_ENDS;
  h->lines = 4;
  n        = Numbers(line[1], length[1], 0, 2, 5, cards, f);
  if (n < 0) return 1;
  if (n < 4) return GPUCSRFaultSet(f, 2, 0, "expected the numbers of lines: in all, of pointers, of indices, of values");
  for (n = 0; n < 3 && (size_t)n < length[2]; n++) type[n] = (char)toupper((unsigned char)line[2][n]);
  if (!memchr("RCPI", type[0], 4) || !memchr("SUHZR", type[1], 5)) return GPUCSRFaultSet(f, 3, 1, "matrix type '%s' must begin with R, C, P or I, and then S, U, H, Z or R", type);
  if (type[2] == 'E') return GPUCSRFaultSet(f, 3, 3, "matrix type '%s': unassembled matrices of finite elements are not supported", type);
  if (type[2] != 'A') return GPUCSRFaultSet(f, 3, 3, "matrix type '%s' does not end in A, assembled", type);
  n = Numbers(line[2], length[2], 3, 3, 4, size, f);
  if (n < 0) return 1;
  if (n < 3) return GPUCSRFaultSet(f, 3, 4, "expected the numbers of rows, columns and entries");
  if (size[0] > PETSC_MAX_INT || size[1] > PETSC_MAX_INT) return GPUCSRFaultSet(f, 3, 4, "%lld by %lld: more than this PETSc can count", (long long)size[0], (long long)size[1]);
  h->m        = size[0];
  h->n        = size[1];
  h->entries  = size[2];
  h->numbers  = type[0] == 'P' ? 0 : type[0] == 'C' ? 2 : 1;
  h->symmetry = type[1] == 'S' ? GPUCSR_SYMMETRIC : type[1] == 'Z' ? GPUCSR_SKEW : type[1] == 'H' ? GPUCSR_HERMITIAN : GPUCSR_GENERAL;
  if (h->numbers == 2 && !PetscDefined(USE_COMPLEX)) return GPUCSRFaultSet(f, 3, 1, "a complex matrix needs a PETSc configured with complex scalars; this one has real scalars");
  if (h->symmetry != GPUCSR_GENERAL && h->m != h->n) return GPUCSRFaultSet(f, 3, 0, "a symmetric matrix has to be square, not %lld by %lld", (long long)h->m, (long long)h->n);
  h->pointers = cards[1];
  h->indices  = cards[2];
  h->values   = h->numbers ? cards[3] : 0;
  if (h->numbers && !cards[3] && h->entries) return GPUCSRFaultSet(f, 2, 0, "a matrix of type '%s' without lines of values", type);
  if (Format(line[3], length[3], 0, 16, 4, &h->pointer, f) || Format(line[3], length[3], 16, 32, 4, &h->index, f)) return 1;
  if (h->pointer.letter != 'I' || h->index.letter != 'I') return GPUCSRFaultSet(f, 4, 1, "expected formats of whole numbers, (16I5), for pointers and indices");
  if (h->numbers && h->entries && Format(line[3], length[3], 32, 52, 4, &h->value, f)) return 1;
  if (cards[4] > 0) { /* a line about right-hand sides */
    if (p == text + h->bytes) return GPUCSRFaultSet(f, 5, 0, "expected the line about right-hand sides, and the file ends"), GPUCSR_HEADER_ENDS;
    h->bytes = (size_t)(p - text);
    h->lines = 5;
  }
  if (!Fit(&h->pointer, h->n + 1, h->pointers)) return GPUCSRFaultSet(f, 2, 0, "%lld lines of %d pointers are too few for %lld columns", (long long)h->pointers, h->pointer.count, (long long)h->n);
  if (!Fit(&h->index, h->entries, h->indices)) return GPUCSRFaultSet(f, 2, 0, "%lld lines of %d indices are too few for %lld entries", (long long)h->indices, h->index.count, (long long)h->entries);
  if (h->numbers && h->entries && !Fit(&h->value, h->entries * h->numbers, h->values)) return GPUCSRFaultSet(f, 2, 0, "%lld lines of %d values are too few for %lld entries", (long long)h->values, h->value.count, (long long)h->entries);
  return 0;
}

/* ---- Numbers in their fields */

/* A part of the file: pointers, indices or values */
typedef struct {
  const Text          *t;
  int64_t              first; /* line, from 0 */
  const GPUCSRFortran *F;
  GPUCSRFault         *f;
  int64_t              line, column; /* of the last number, for messages */
} Part;

/* Number k, from 0: its field, without blanks, before a line feed. The lines are there, as the header and Pointers() check */
static void Field(Part *p, int64_t k, char text[FIELD_LIMIT + 2])
{
  const int64_t at = p->first + k / p->F->count;
  size_t        length, from = (size_t)(k % p->F->count * p->F->width), to = from + (size_t)p->F->width, n = 0;
  const char   *line;

  p->line   = at + 1;
  p->column = (int64_t)from + 1;
  line      = Line(p->t, at, &length);
  for (to = PetscMin(to, length); from < to; from++)
    if (!GPUCSRIsBlank(line[from])) text[n++] = line[from] ? line[from] : '?';
  text[n] = '\n';
}

static int Expected(const Part *p, const char kind[], char text[])
{
  *strchr(text, '\n') = 0;
  return GPUCSRFaultSet(p->f, p->line, p->column, "expected a %s number in %d columns, not '%.24s'", kind, p->F->width, text);
}

static int Whole(Part *p, int64_t k, int64_t *v)
{
  char        text[FIELD_LIMIT + 2];
  const char *q;

  Field(p, k, text);
  q = GPUCSRWhole(text + (*text == '+'), v);
  return q && *q == '\n' ? 0 : Expected(p, "whole", text);
}

/* Fortran's reals: D for E, an exponent without a letter, an implied point, a scale that applies without an exponent */
static int Real(Part *p, int64_t k, double *v)
{
  char        text[FIELD_LIMIT + 2], fixed[FIELD_LIMIT + 32];
  const char *q     = text;
  int64_t     e     = 0;
  int         point = 0, exponent = 0, n = 0;

  Field(p, k, text);
  if (*q == '+' || *q == '-') fixed[n++] = *q++;
  for (; isdigit((unsigned char)*q) || (*q == '.' && !point); q++) {
    point |= *q == '.';
    fixed[n++] = *q;
  }
  if (strchr("eEdD", *q) || *q == '+' || *q == '-') {
    const char *s     = q + (*q != '+' && *q != '-');
    const int   minus = *s == '-';

    exponent = 1;
    s        = GPUCSRWhole(s + (*s == '+' || *s == '-'), &e);
    if (s) q = s;
    e = s ? (minus ? -1 : 1) * PetscMin(e, 99999) : 0;
  }
  if (*q == '\n' && n) {
    if (p->F->letter != 'I') e -= (point ? 0 : p->F->digits) + (exponent ? 0 : p->F->scale);
    if (e) n += snprintf(fixed + n, 24, "e%lld", (long long)e);
    fixed[n] = '\n';
    q        = GPUCSRReal(fixed, fixed + n + 1, v);
    if (q && *q == '\n') return 0;
  }
  return Expected(p, "finite", text);
}

/* The pointers of the columns, n + 1 of them, from 0 */
static int Pointers(const GPUCSRTextHeader *h, const Text *t, int64_t **pointer, GPUCSRFault *f)
{
  const int64_t lines  = h->lines + h->pointers + h->indices + h->values;
  Part          part   = {t, h->lines, &h->pointer, f, 0, 0};
  int64_t      *p      = NULL;
  int           failed = 0;

  if (t->lines < lines) return GPUCSRFaultSet(f, t->lines, 0, "the file ends after %lld of the %lld lines that its header announces", (long long)t->lines, (long long)lines);
  *pointer = p = (int64_t *)malloc((size_t)(h->n + 1) * sizeof(*p));
  if (!p) return GPUCSRFaultSet(f, 3, 0, "no memory for %lld columns", (long long)h->n);
  for (int64_t j = 0; j <= h->n && !failed; j++) {
    failed = Whole(&part, j, &p[j]);
    if (failed) break;
    p[j]--;
    if (p[j] < (j ? p[j - 1] : 0) || p[j] > h->entries || (!j && p[j]) || (j == h->n && p[j] != h->entries))
      failed = GPUCSRFaultSet(f, part.line, part.column, "pointer %lld is %lld: expected %s", (long long)j + 1, (long long)p[j] + 1,
                              !j          ? "1 as the first one"
                              : j == h->n ? "the number of entries and 1 as the last one"
                                          : "one that is at least its predecessor and within the entries");
  }
  return failed;
}

/* Entry number k, of column j, into the piece */
static int Entry(const GPUCSRTextHeader *h, Part *rows, Part *values, int64_t k, int64_t j, GPUCSRPiece *piece)
{
  const size_t at = piece->nz;
  int64_t      i;
  double       x[2] = {1, 0};

  if (Whole(rows, k, &i)) return 1;
  if (i < 1 || i > h->m) return GPUCSRFaultSet(&piece->fault, rows->line, rows->column, "row %lld is outside the matrix, of %lld rows", (long long)i, (long long)h->m);
  i--;
  if (h->symmetry != GPUCSR_GENERAL && (h->symmetry == GPUCSR_SKEW ? i <= j : i < j))
    return GPUCSRFaultSet(&piece->fault, rows->line, rows->column, "entry (%lld, %lld) is not in the lower triangle, where a %s has all its entries", (long long)i + 1, (long long)j + 1, h->symmetry == GPUCSR_SKEW ? "skew-symmetric file" : "symmetric file");
  for (int c = 0; c < h->numbers; c++)
    if (Real(values, h->numbers * k + c, &x[c])) return 1;
  piece->i[at] = (PetscInt)i;
  piece->j[at] = (PetscInt)j;
  if (h->numbers) piece->v[at] = GPUCSRScalar(x[0], x[1]);
  piece->low  = PetscMin(piece->low, (PetscInt)i);
  piece->high = PetscMax(piece->high, (PetscInt)i);
  piece->nz++;
  piece->entries++;
  return 0;
}

/* The entries first to last */
static void Entries(const GPUCSRTextHeader *h, const Text *t, const int64_t pointer[], int64_t first, int64_t last, GPUCSRPiece *piece)
{
  int64_t j = 0, end = h->n; /* column of an entry: the last that begins at or before the entry */
  Part    rows = {t, h->lines + h->pointers, &h->index, &piece->fault, 0, 0}, values = {t, h->lines + h->pointers + h->indices, &h->value, &piece->fault, 0, 0};

  if (GPUCSRPieceAllocate(piece, 0, (size_t)(last - first), 1, h->numbers > 0, &piece->fault)) return;
  while (end - j > 1) {
    const int64_t c = j + (end - j) / 2;

    if (pointer[c] <= first) j = c;
    else end = c;
  }
  for (int64_t k = first; k < last; k++) {
    while (pointer[j + 1] <= k) j++;
    if (Entry(h, &rows, &values, k, j, piece)) break;
  }
}

int GPUCSRBoeingParse(GPUCSRInput *s, const GPUCSRTextHeader *h, int threads, GPUCSRBlockFn handle, void *ctx, GPUCSRFault *f)
{
  GPUCSRBlock *block   = (GPUCSRBlock *)calloc((size_t)threads, sizeof(*block));
  int64_t     *pointer = NULL, first, last, step;
  Text         t       = {NULL, 0, NULL};
  int          failed  = block ? 0 : GPUCSRFaultSet(f, 0, 0, "no memory");

  failed = failed || TextCreate(s, &t, f) || Pointers(h, &t, &pointer, f);
  GPUCSRInputEntries(s, h->entries, &first, &last, &step);
  for (; !failed && first < last; first += threads * step) {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int k = 0; k < threads; k++) Entries(h, &t, pointer, PetscMin(first + k * step, last), PetscMin(first + (k + 1) * step, last), &block[k].piece);
    for (int k = 0; k < threads; k++) {
      if (!failed && block[k].piece.fault.why[0]) {
        *f     = block[k].piece.fault;
        failed = 1;
      }
      failed = failed || handle(ctx, &block[k], f);
      GPUCSRBlockDestroy(&block[k]);
    }
  }
  free(t.start);
  free(pointer);
  free(block);
  return failed;
}

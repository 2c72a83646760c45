/*
  Harwell-Boeing, after I. S. Duff, R. G. Grimes and J. G. Lewis, "Users' guide for the Harwell-Boeing sparse matrix collection", 1992, and Rutherford-Boeing, after the same authors' report
  RAL-TR-97-031, 1997: compressed columns in lines of fixed columns, with widths in Fortran formats. Right-hand sides are skipped; unassembled matrices and supplementary files are not supported.
*/
#include "../gpucsrio.h"
#include "number.h"
#include <ctype.h>
#include <stdlib.h>

enum {
  FIELD_LIMIT = 128,     /* the widest field */
  WINDOW      = 1 << 14, /* window of the search for ends of lines */
  CURSOR      = 1 << 16  /* window of lines in memory */
};

/* ---- Lines */

/* One pass over a part of the text: counts its lines, or writes down the starts of the next lines */
static int FindLines(const GPUCSRInput *s, size_t begin, size_t end, int64_t *n, size_t start[], GPUCSRFault *f)
{
  char text[WINDOW];

  for (size_t at = begin; at < end; at += sizeof(text)) {
    const size_t bytes = PetscMin(sizeof(text), end - at);

    if (GPUCSRInputRead(s, at, bytes, text, f)) return 1;
    for (const char *p = text; (p = (const char *)memchr(p, '\n', (size_t)(text + bytes - p))); p++) {
      ++*n;
      if (start) start[*n] = at + (size_t)(p - text) + 1;
    }
  }
  return 0;
}

int GPUCSRLinesCreate(const GPUCSRInput *s, int threads, GPUCSRLines *l, GPUCSRFault *f)
{
  const size_t bytes = GPUCSRInputSize(s), piece = (size_t)1 << 20, npieces = bytes / piece + 1;
  int64_t     *count = (int64_t *)calloc(npieces + 1, sizeof(*count));
  char         last  = '\n';
  int          failed;

  memset(l, 0, sizeof(*l));
  l->source = s;
  l->bytes  = bytes;
  failed    = count ? bytes && GPUCSRInputRead(s, bytes - 1, 1, &last, f) : GPUCSRFaultSet(f, 0, 0, "no memory to find the lines of %zu bytes", bytes);
  for (int pass = 0; pass < 2 && !failed; pass++) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t k = 0; k < npieces; k++) {
      int64_t     n = pass ? count[k] : 0;
      GPUCSRFault bad;

      if (FindLines(s, k * piece, PetscMin((k + 1) * piece, bytes), &n, l->start, &bad)) {
#pragma omp critical
        {
          failed = 1;
          *f     = bad;
        }
      }
      if (!pass) count[k + 1] = n;
    }
    if (pass || failed) break;
    for (size_t k = 0; k < npieces; k++) count[k + 1] += count[k];
    l->lines = count[npieces] + (last != '\n');
    l->start = (size_t *)malloc((size_t)(l->lines + 1) * sizeof(*l->start));
    if (!l->start) {
      failed = GPUCSRFaultSet(f, 0, 0, "no memory to find the lines of %zu bytes", bytes);
      break;
    }
    l->start[0] = 0;
    if (last != '\n') l->start[l->lines] = bytes + 1;
  }
  free(count);
  if (failed) GPUCSRLinesDestroy(l);
  return failed;
}

void GPUCSRLinesDestroy(GPUCSRLines *l)
{
  free(l->start);
  memset(l, 0, sizeof(*l));
}

/* Lines in order: those around the last request are in memory */
typedef struct {
  const GPUCSRLines *lines;
  int64_t            first, last;
  size_t             room;
  char              *text;
} Cursor;

static void CursorOpen(const GPUCSRLines *l, Cursor *c)
{
  memset(c, 0, sizeof(*c));
  c->lines = l;
}

static void CursorClose(Cursor *c)
{
  free(c->text);
}

/* Line k without its end, which may include a carriage return; NULL with a fault */
static const char *Line(Cursor *c, int64_t k, size_t *length, GPUCSRFault *f)
{
  const size_t *start = c->lines->start;
  const char   *p;

  if (k < c->first || k >= c->last) {
    size_t bytes;

    for (c->first = k, c->last = k + 1; c->last < c->lines->lines && start[c->last + 1] - start[k] <= CURSOR; c->last++) {
    }
    bytes = PetscMin(start[c->last], c->lines->bytes) - start[k];
    if (bytes > c->room || !c->text) {
      char *text = (char *)realloc(c->text, PetscMax(bytes, (size_t)CURSOR));

      if (!text) {
        GPUCSRFaultSet(f, k + 1, 0, "no memory for a line of %zu bytes", bytes);
        return NULL;
      }
      c->text = text;
      c->room = PetscMax(bytes, (size_t)CURSOR);
    }
    if (GPUCSRInputRead(c->lines->source, start[k], bytes, c->text, f)) {
      c->last = c->first;
      return NULL;
    }
  }
  p       = c->text + (start[k] - start[c->first]);
  *length = start[k + 1] - start[k] - 1;
  if (*length && p[*length - 1] == '\r') --*length;
  return p;
}

/* ---- Fortran formats */

/* Position in a format */
typedef struct {
  const char    *p, *group; /* group: start of the last group at the outermost level, at its count */
  int            line, column, scale, number;
  GPUCSRFortran *F;
} Scan;

/* An unsigned number of at most four digits; -1 if there is none */
static int Count(Scan *s)
{
  int n = -1;

  while (isdigit((unsigned char)*s->p) && n < 1000) n = (n < 0 ? 0 : 10 * n) + *s->p++ - '0';
  return n;
}

/* The fields of an edit descriptor, repeated: W, W.D or W.DEe after its letter */
static int Edit(Scan *s, char letter, int times)
{
  const int width  = Count(s);
  int       digits = 0;

  if (*s->p == '.') {
    s->p++;
    digits = Count(s);
    if (*s->p == 'E') {
      s->p++;
      if (Count(s) < 0) return 1;
    }
    if (digits < 0) return 1;
  }
  if (width < 1 || width > FIELD_LIMIT || digits > width) return 1;
  for (; times > 0; times--) {
    const GPUCSRField field = {(int16_t)s->line, (int16_t)s->column, (uint8_t)width, (uint8_t)digits, (int8_t)s->scale, letter};
    int *const        count = &s->F->pass[s->number].count;

    if (*count == GPUCSR_FIELDS || s->column > INT16_MAX - FIELD_LIMIT) return 1;
    s->F->pass[s->number].field[(*count)++] = field;
    s->column += width;
  }
  return 0;
}

/* Parses a group after its opening parenthesis, to behind its closing parenthesis */
static int Group(Scan *s, int depth)
{
  if (*s->p == ')' || depth > 8) return 1;
  while (*s->p != ')') {
    const char *const begin = s->p;
    const int         minus = *s->p == '-', given = (s->p += minus || *s->p == '+', Count(s)), times = given < 0 ? 1 : given;
    const char        c = *s->p;

    if (!c || times > 9999) return 1;
    s->p++;
    if (minus && c != 'P') return 1;
    if (c == ',' || c == '/') {
      if (given >= 0) return 1;
      if (c == '/') s->line++, s->column = 0;
    } else if (c == 'P') {
      if (given < 0 || given > 99) return 1;
      s->scale = minus ? -given : given;
    } else if (c == 'X') s->column += times;
    else if (c == 'T' && given < 0) {
      const char way = *s->p == 'L' || *s->p == 'R' ? *s->p++ : ' ';
      const int  to  = Count(s);

      if (to < 0) return 1;
      s->column = way == 'R' ? s->column + to : way == 'L' ? PetscMax(s->column - to, 0) : PetscMax(to - 1, 0);
    } else if (c == '(') {
      const char *const inside = s->p;

      if (!depth) s->group = begin;
      for (int k = 0; k < times; k++) {
        s->p = inside;
        if (Group(s, depth + 1)) return 1;
      }
      if (!times) return 1;
    } else if (strchr("IFEDG", c)) {
      if (c == 'E' && (*s->p == 'S' || *s->p == 'N')) s->p++;
      if (Edit(s, c, times)) return 1;
    } else return 1;
    if (s->column > INT16_MAX / 2 || s->line > INT16_MAX / 2) return 1;
  }
  s->p++;
  return 0;
}

/* A format such as (1P,5E16.8) in the columns from and to of a line */
static int Format(const char *line, size_t length, size_t from, size_t to, int64_t number, GPUCSRFortran *F, GPUCSRFault *f)
{
  char text[32];
  int  n = 0, failed;
  Scan s = {text + 1, NULL, 0, 0, 0, 0, F};

  for (size_t k = from; k < to && k < length; k++)
    if (!GPUCSRIsBlank(line[k])) text[n++] = (char)toupper((unsigned char)line[k]);
  text[n] = 0;
  memset(F, 0, sizeof(*F));
  failed = text[0] != '(' || Group(&s, 0) || *s.p;
  for (s.number = 1; s.number < 2 && !failed; s.number++) { /* again, from the last group on */
    F->pass[0].lines = s.line + 1;
    s.p              = s.group ? s.group : text + 1;
    s.line = s.column = 0;
    failed            = Group(&s, 0);
    F->pass[1].lines  = s.line + 1;
  }
  if (!failed && F->pass[0].count && F->pass[1].count) return 0;
  return GPUCSRFaultSet(f, number, (int64_t)from + 1, "expected a Fortran format such as (16I5) or (1P,5E16.8), not '%s'", text);
}

/* All numbers of this kind? */
static int OnlyWhole(const GPUCSRFortran *F)
{
  for (int pass = 0; pass < 2; pass++)
    for (int k = 0; k < F->pass[pass].count; k++)
      if (F->pass[pass].field[k].letter != 'I') return 0;
  return 1;
}

/* Column of number k, from 0, and its line, from the start of the part */
static const GPUCSRField *Place(const GPUCSRFortran *F, int64_t k, int64_t *line)
{
  const GPUCSRField *field;
  int64_t            pass = 0;

  if (k >= F->pass[0].count) {
    k -= F->pass[0].count;
    pass  = 1 + k / F->pass[1].count;
    field = &F->pass[1].field[k % F->pass[1].count];
  } else field = &F->pass[0].field[k];
  *line = field->line + (pass ? F->pass[0].lines + (pass - 1) * F->pass[1].lines : 0);
  return field;
}

/* Do n numbers fit so many lines? */
static int Fit(const GPUCSRFortran *F, int64_t n, int64_t lines)
{
  int64_t last = -1;

  if (n > 0) Place(F, n - 1, &last);
  return last < lines;
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
  if (!OnlyWhole(&h->pointer) || !OnlyWhole(&h->index)) return GPUCSRFaultSet(f, 4, 1, "expected formats of whole numbers, (16I5), for pointers and indices");
  if (h->numbers && h->entries && Format(line[3], length[3], 32, 52, 4, &h->value, f)) return 1;
  if (cards[4] > 0) { /* a line about right-hand sides */
    if (p == text + h->bytes) return GPUCSRFaultSet(f, 5, 0, "expected the line about right-hand sides, and the file ends"), GPUCSR_HEADER_ENDS;
    h->bytes = (size_t)(p - text);
    h->lines = 5;
  }
  if (!Fit(&h->pointer, h->n + 1, h->pointers)) return GPUCSRFaultSet(f, 2, 0, "%lld lines of %d pointers are too few for %lld columns", (long long)h->pointers, h->pointer.pass[1].count, (long long)h->n);
  if (!Fit(&h->index, h->entries, h->indices)) return GPUCSRFaultSet(f, 2, 0, "%lld lines of %d indices are too few for %lld entries", (long long)h->indices, h->index.pass[1].count, (long long)h->entries);
  if (h->numbers && h->entries && !Fit(&h->value, h->entries * h->numbers, h->values)) return GPUCSRFaultSet(f, 2, 0, "%lld lines of %d values are too few for %lld entries", (long long)h->values, h->value.pass[1].count, (long long)h->entries);
  return 0;
}

/* ---- Numbers in their fields */

/* The number k (from 0) of a part that begins on a line: its field, without blanks; the position for messages */
static const GPUCSRField *Field(Cursor *c, int64_t first, const GPUCSRFortran *F, int64_t k, char text[FIELD_LIMIT + 2], int64_t *number, int64_t *column, GPUCSRFault *f)
{
  int64_t                  at;
  const GPUCSRField *const field = Place(F, k, &at);
  size_t                   length, from = (size_t)field->column, to = from + (size_t)field->width, n = 0;
  const char              *line;

  at += first;
  *number = at + 1;
  *column = (int64_t)from + 1;
  if (at >= c->lines->lines) {
    GPUCSRFaultSet(f, c->lines->lines, 0, "the file ends where line %lld is announced", (long long)at + 1);
    return NULL;
  }
  line = Line(c, at, &length, f);
  if (!line) return NULL;
  if (to > length) to = length;
  for (; from < to; from++)
    if (!GPUCSRIsBlank(line[from])) text[n++] = line[from] ? line[from] : '?';
  text[n] = '\n';
  return field;
}

static int Whole(Cursor *c, int64_t first, const GPUCSRFortran *F, int64_t k, int64_t *v, int64_t *number, int64_t *column, GPUCSRFault *f)
{
  char                     text[FIELD_LIMIT + 2];
  const GPUCSRField *const field = Field(c, first, F, k, text, number, column, f);
  const char              *q;

  if (!field) return 1;
  q = GPUCSRWhole(text + (*text == '+'), v);
  if (q && *q == '\n') return 0;
  *strchr(text, '\n') = 0;
  return GPUCSRFaultSet(f, *number, *column, "expected a whole number in %d columns, not '%.24s'", field->width, text);
}

/* Fortran's reals: D for E, an exponent without a letter, an implied point, a scale that applies without an exponent */
static int Real(Cursor *cursor, int64_t first, const GPUCSRFortran *F, int64_t k, double *v, GPUCSRFault *f)
{
  char               text[FIELD_LIMIT + 2], fixed[FIELD_LIMIT + 32];
  const char        *q;
  int64_t            number, column, e = 0;
  int                point = 0, exponent = 0, n = 0;
  const GPUCSRField *field = Field(cursor, first, F, k, text, &number, &column, f);

  if (!field) return 1;
  q = text;
  if (*q == '+' || *q == '-') fixed[n++] = *q++;
  for (; isdigit((unsigned char)*q) || (*q == '.' && !point); q++) {
    point |= *q == '.';
    fixed[n++] = *q;
  }
  if (strchr("eEdD", *q) || *q == '+' || *q == '-') {
    const char *s = q;
    int         minus;

    if (*s != '+' && *s != '-') s++;
    minus = *s == '-';
    if (*s == '+' || *s == '-') s++;
    exponent = 1;
    s        = GPUCSRWhole(s, &e);
    if (s) {
      if (minus) e = -e;
      q = s;
    }
  }
  if (*q == '\n' && n) {
    if (e > 99999) e = 99999;
    if (e < -99999) e = -99999;
    if (field->letter != 'I') e -= (point ? 0 : field->digits) + (exponent ? 0 : field->scale);
    if (e) n += snprintf(fixed + n, 24, "e%lld", (long long)e);
    fixed[n] = '\n';
    q        = GPUCSRReal(fixed, fixed + n + 1, v);
    if (q && *q == '\n') return 0;
  }
  *strchr(text, '\n') = 0;
  return GPUCSRFaultSet(f, number, column, "expected a finite number in %d columns, not '%.24s'", field->width, text);
}

int GPUCSRBoeingPointers(const GPUCSRTextHeader *h, const GPUCSRLines *l, int64_t **pointer, GPUCSRFault *f)
{
  const int64_t lines = h->lines + h->pointers + h->indices + h->values;
  int64_t       number, column, *p;
  int           failed = 0;
  Cursor        cursor;

  *pointer = NULL;
  if (l->lines < lines) return GPUCSRFaultSet(f, l->lines, 0, "the file ends after %lld of the %lld lines that its header announces", (long long)l->lines, (long long)lines);
  p = (int64_t *)malloc((size_t)(h->n + 1) * sizeof(*p));
  if (!p) return GPUCSRFaultSet(f, 3, 0, "no memory for %lld columns", (long long)h->n);
  CursorOpen(l, &cursor);
  for (int64_t j = 0; j <= h->n && !failed; j++) {
    failed = Whole(&cursor, h->lines, &h->pointer, j, &p[j], &number, &column, f);
    if (failed) break;
    p[j]--;
    if (p[j] < (j ? p[j - 1] : 0) || p[j] > h->entries || (!j && p[j]) || (j == h->n && p[j] != h->entries))
      failed = GPUCSRFaultSet(f, number, column, "pointer %lld is %lld: expected %s", (long long)j + 1, (long long)p[j] + 1,
                              !j          ? "1 as the first one"
                              : j == h->n ? "the number of entries and 1 as the last one"
                                          : "one that is at least its predecessor and within the entries");
  }
  CursorClose(&cursor);
  if (failed) free(p);
  else *pointer = p;
  return failed;
}

/* Entry number k, of column j, into the piece */
static int Entry(const GPUCSRTextHeader *h, Cursor *rows, Cursor *values, int64_t k, int64_t j, GPUCSRPiece *piece)
{
  const size_t at = piece->nz;
  int64_t      i, number, column;
  double       x[2] = {1, 0};

  if (Whole(rows, h->lines + h->pointers, &h->index, k, &i, &number, &column, &piece->fault)) return 1;
  if (i < 1 || i > h->m) return GPUCSRFaultSet(&piece->fault, number, column, "row %lld is outside the matrix, of %lld rows", (long long)i, (long long)h->m);
  i--;
  if (h->symmetry != GPUCSR_GENERAL && (h->symmetry == GPUCSR_SKEW ? i <= j : i < j))
    return GPUCSRFaultSet(&piece->fault, number, column, "entry (%lld, %lld) is not in the lower triangle, where a %s has all its entries", (long long)i + 1, (long long)j + 1, h->symmetry == GPUCSR_SKEW ? "skew-symmetric file" : "symmetric file");
  for (int c = 0; c < h->numbers; c++)
    if (Real(values, h->lines + h->pointers + h->indices, &h->value, h->numbers * k + c, &x[c], &piece->fault)) return 1;
  piece->i[at] = (PetscInt)i;
  piece->j[at] = (PetscInt)j;
  if (h->numbers) {
#if defined(PETSC_USE_COMPLEX)
    piece->v[at] = PetscCMPLX(x[0], x[1]);
#else
    piece->v[at] = x[0];
#endif
  }
  if (i < piece->low) piece->low = (PetscInt)i;
  if (i > piece->high) piece->high = (PetscInt)i;
  piece->nz++;
  piece->entries++;
  return 0;
}

void GPUCSRBoeingParse(const GPUCSRTextHeader *h, const GPUCSRLines *l, const int64_t pointer[], int64_t first, int64_t last, GPUCSRPiece *piece)
{
  int64_t j = 0, end = h->n; /* column of an entry: the last that begins at or before the entry */
  Cursor  rows, values;

  if (GPUCSRPieceAllocate(piece, 0, (size_t)(last - first), 1, h->numbers > 0, &piece->fault)) return;
  CursorOpen(l, &rows);
  CursorOpen(l, &values);
  while (end - j > 1) {
    const int64_t c = j + (end - j) / 2;

    if (pointer[c] <= first) j = c;
    else end = c;
  }
  for (int64_t k = first; k < last; k++) {
    while (pointer[j + 1] <= k) j++;
    if (Entry(h, &rows, &values, k, j, piece)) break;
  }
  CursorClose(&rows);
  CursorClose(&values);
}

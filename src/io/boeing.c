/*
  Harwell-Boeing, as I. S. Duff, R. G. Grimes and J. G. Lewis, "Users' guide for the Harwell-Boeing sparse matrix collection", 1992, and
  Rutherford-Boeing, as the same authors' report RAL-TR-97-031, 1997, describe them: compressed columns in lines of fixed columns, whose widths are
  given as Fortran formats. Right-hand sides that may follow are not read, neither are unassembled matrices nor supplementary files.
*/
#include "gpucsrio.h"
#include "number.h"
#include <ctype.h>
#include <stdlib.h>

enum {
  FIELD_LIMIT = 128 /* the widest field */
};

static int64_t Ceil(int64_t a, int64_t b)
{
  return a / b + (a % b != 0);
}

/* Line k of the text without its end, which a carriage return may belong to; shorter than asked for where the text ends */
static const char *Line(const GPUCSRLines *l, int64_t k, size_t *length)
{
  const char *p = l->text + l->start[k];

  *length = l->start[k + 1] - l->start[k] - 1;
  if (*length && p[*length - 1] == '\r') --*length;
  return p;
}

int GPUCSRLinesCreate(const char text[], size_t bytes, int threads, GPUCSRLines *l, GPUCSRFault *f)
{
  const size_t piece = (size_t)1 << 20, npieces = bytes / piece + 1;
  int64_t     *count = (int64_t *)calloc(npieces + 1, sizeof(*count));

  memset(l, 0, sizeof(*l));
  l->text  = text;
  l->bytes = bytes;
  if (!count) return GPUCSRFaultSet(f, 0, 0, "no memory to find the lines of %zu bytes", bytes);
  for (int pass = 0; pass < 2; pass++) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t k = 0; k < npieces; k++) {
      const size_t end = k + 1 == npieces ? bytes : (k + 1) * piece;
      int64_t      n   = pass ? count[k] : 0;

      for (size_t at = k * piece; at < end; at++) {
        const char *p = (const char *)memchr(text + at, '\n', end - at);

        if (!p) break;
        at = (size_t)(p - text);
        n++;
        if (pass) l->start[n] = at + 1;
      }
      if (!pass) count[k + 1] = n;
    }
    if (pass) break;
    for (size_t k = 0; k < npieces; k++) count[k + 1] += count[k];
    l->lines = count[npieces];
    l->start = (size_t *)malloc((size_t)(l->lines + 1) * sizeof(*l->start));
    if (!l->start) {
      free(count);
      return GPUCSRFaultSet(f, 0, 0, "no memory to find the lines of %zu bytes", bytes);
    }
    l->start[0] = 0;
  }
  free(count);
  return 0;
}

void GPUCSRLinesDestroy(GPUCSRLines *l)
{
  free(l->start);
  memset(l, 0, sizeof(*l));
}

/* A format such as (1P,5E16.8) in the columns from and to of a line */
static int Format(const char *line, size_t length, size_t from, size_t to, int64_t number, GPUCSRFortran *F, GPUCSRFault *f)
{
  char text[32];
  int  n = 0, value = 0, given = 0, minus = 0, at = 0;

  for (size_t k = from; k < to && k < length; k++)
    if (!GPUCSRIsBlank(line[k])) text[n++] = (char)toupper((unsigned char)line[k]);
  text[n] = 0;
  memset(F, 0, sizeof(*F));
  F->count = 1;
  if (text[at] == '(') {
    for (at++;; at++) {
      if (text[at] == '-' && !given) minus = 1;
      else if (isdigit((unsigned char)text[at]) && value < 10000) {
        value = 10 * value + text[at] - '0';
        given = 1;
      } else if (text[at] == 'P' && given && !F->letter) {
        F->scale = minus ? -value : value;
        value = given = minus = 0;
        if (text[at + 1] == ',') at++;
      } else if (strchr("IFEDG", text[at]) && text[at] && !F->letter && !minus) {
        F->letter = text[at];
        if (given) F->count = value;
        value = given = 0;
      } else if (text[at] == '.' && F->letter && given && !F->width) {
        F->width = value;
        value = given = 0;
      } else break;
    }
    if (text[at] == 'E' && F->width) { /* the width of an exponent, E16.8E3 */
      F->digits = value;
      given     = 0;
      for (at++; isdigit((unsigned char)text[at]); at++) given = 1;
      value = F->digits;
    }
    if (F->width) F->digits = value;
    else F->width = value;
    if (text[at] == ')' && !text[at + 1] && given && F->letter && F->width > 0 && F->width <= FIELD_LIMIT && F->count > 0 && F->digits <= F->width && abs(F->scale) < 100) return 0;
  }
  return GPUCSRFaultSet(f, number, (int64_t)from + 1, "expected a Fortran format such as (16I5) or (1P,5E16.8), not '%s'", text);
}

/* The whole numbers of a line from column on: how many, at most limit, or -1 with a fault */
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
  if (n < 4) return GPUCSRFaultSet(f, n + 1, 0, "expected the four lines of a Harwell-Boeing header, and the file ends");
  h->lines = 4;
  n        = Numbers(line[1], length[1], 0, 2, 5, cards, f);
  if (n < 0) return 1;
  if (n < 4) return GPUCSRFaultSet(f, 2, 0, "expected the numbers of lines: in all, of pointers, of indices, of values");
  for (n = 0; n < 3 && (size_t)n < length[2]; n++) type[n] = (char)toupper((unsigned char)line[2][n]);
  if (!memchr("RCPI", type[0], 4) || !memchr("SUHZR", type[1], 5)) return GPUCSRFaultSet(f, 3, 1, "matrix type '%s' is none that begins with R, C, P or I, and S, U, H, Z or R", type);
  if (type[2] == 'E') return GPUCSRFaultSet(f, 3, 3, "matrix type '%s': an unassembled matrix, of finite elements, is not read", type);
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
    if (p == text + h->bytes) return GPUCSRFaultSet(f, 5, 0, "expected the line about right-hand sides, and the file ends");
    h->bytes = (size_t)(p - text);
    h->lines = 5;
  }
  if (h->pointers < Ceil(h->n + 1, h->pointer.count)) return GPUCSRFaultSet(f, 2, 0, "%lld lines of %d pointers are too few for %lld columns", (long long)h->pointers, h->pointer.count, (long long)h->n);
  if (h->indices < Ceil(h->entries, h->index.count)) return GPUCSRFaultSet(f, 2, 0, "%lld lines of %d indices are too few for %lld entries", (long long)h->indices, h->index.count, (long long)h->entries);
  if (h->numbers && h->entries && h->values < Ceil(h->entries * h->numbers, h->value.count)) return GPUCSRFaultSet(f, 2, 0, "%lld lines of %d values are too few for %lld entries", (long long)h->values, h->value.count, (long long)h->entries);
  return 0;
}

/* The number k (from 0) of a part that begins on a line: its field, without blanks; the position for messages */
static int Field(const GPUCSRLines *l, int64_t first, const GPUCSRFortran *F, int64_t k, char text[FIELD_LIMIT + 2], int64_t *number, int64_t *column, GPUCSRFault *f)
{
  const int64_t at = first + k / F->count;
  size_t        length, from = (size_t)(k % F->count) * (size_t)F->width, to = from + (size_t)F->width, n = 0;
  const char   *line;

  *number = at + 1;
  *column = (int64_t)from + 1;
  if (at >= l->lines) return GPUCSRFaultSet(f, l->lines, 0, "the file ends where line %lld is announced", (long long)at + 1);
  line = Line(l, at, &length);
  if (to > length) to = length;
  for (; from < to; from++)
    if (!GPUCSRIsBlank(line[from])) text[n++] = line[from] ? line[from] : '?';
  text[n] = '\n';
  return 0;
}

static int Whole(const GPUCSRLines *l, int64_t first, const GPUCSRFortran *F, int64_t k, int64_t *v, int64_t *number, int64_t *column, GPUCSRFault *f)
{
  char        text[FIELD_LIMIT + 2];
  const char *q;

  if (Field(l, first, F, k, text, number, column, f)) return 1;
  q = GPUCSRWhole(text + (*text == '+'), v);
  if (q && *q == '\n') return 0;
  *strchr(text, '\n') = 0;
  return GPUCSRFaultSet(f, *number, *column, "expected a whole number in %d columns, not '%.24s'", F->width, text);
}

/* Fortran's reals: D for E, an exponent without a letter, a point that is implied, a scale that holds where there is no exponent */
static int Real(const GPUCSRLines *l, int64_t first, const GPUCSRFortran *F, int64_t k, double *v, GPUCSRFault *f)
{
  char        text[FIELD_LIMIT + 2], fixed[FIELD_LIMIT + 32];
  const char *q;
  int64_t     number, column, e = 0;
  int         point = 0, exponent = 0, n = 0;

  if (Field(l, first, F, k, text, &number, &column, f)) return 1;
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
    if (F->letter != 'I') e -= (point ? 0 : F->digits) + (exponent ? 0 : F->scale);
    if (e) n += snprintf(fixed + n, 24, "e%lld", (long long)e);
    fixed[n] = '\n';
    q        = GPUCSRReal(fixed, fixed + n + 1, v);
    if (q && *q == '\n') return 0;
  }
  *strchr(text, '\n') = 0;
  return GPUCSRFaultSet(f, number, column, "expected a finite number in %d columns, not '%.24s'", F->width, text);
}

int GPUCSRBoeingPointers(const GPUCSRTextHeader *h, const GPUCSRLines *l, int64_t **pointer, GPUCSRFault *f)
{
  const int64_t lines = h->lines + h->pointers + h->indices + h->values;
  int64_t       number, column, *p;

  *pointer = NULL;
  if (l->lines < lines) return GPUCSRFaultSet(f, l->lines, 0, "the file ends after %lld of the %lld lines that its header announces", (long long)l->lines, (long long)lines);
  p = (int64_t *)malloc((size_t)(h->n + 1) * sizeof(*p));
  if (!p) return GPUCSRFaultSet(f, 3, 0, "no memory for %lld columns", (long long)h->n);
  for (int64_t j = 0; j <= h->n; j++) {
    if (Whole(l, h->lines, &h->pointer, j, &p[j], &number, &column, f)) goto bad;
    p[j]--;
    if (p[j] < (j ? p[j - 1] : 0) || p[j] > h->entries || (!j && p[j]) || (j == h->n && p[j] != h->entries)) {
      GPUCSRFaultSet(f, number, column, "pointer %lld is %lld: expected %s", (long long)j + 1, (long long)p[j] + 1,
                     !j          ? "1 as the first one"
                     : j == h->n ? "the number of entries and 1 as the last one"
                                 : "one that is not less than that before, nor beyond the entries");
      goto bad;
    }
  }
  *pointer = p;
  return 0;
bad:
  free(p);
  return 1;
}

void GPUCSRBoeingParse(const GPUCSRTextHeader *h, const GPUCSRLines *l, const int64_t pointer[], int64_t first, int64_t last, GPUCSRPiece *piece)
{
  int64_t j = 0, end = h->n; /* column of an entry: the last that begins at or before it */

  if (GPUCSRPieceAllocate(piece, 0, (size_t)(last - first), 1, h->numbers > 0, &piece->fault)) return;
  while (end - j > 1) {
    const int64_t c = j + (end - j) / 2;

    if (pointer[c] <= first) j = c;
    else end = c;
  }
  for (int64_t k = first; k < last; k++) {
    const size_t at = piece->nz;
    int64_t      i, number, column;
    double       x[2] = {1, 0};

    while (pointer[j + 1] <= k) j++;
    if (Whole(l, h->lines + h->pointers, &h->index, k, &i, &number, &column, &piece->fault)) return;
    if (i < 1 || i > h->m) {
      GPUCSRFaultSet(&piece->fault, number, column, "row %lld is outside the matrix, of %lld rows", (long long)i, (long long)h->m);
      return;
    }
    i--;
    if (h->symmetry != GPUCSR_GENERAL && (h->symmetry == GPUCSR_SKEW ? i <= j : i < j)) {
      GPUCSRFaultSet(&piece->fault, number, column, "entry (%lld, %lld) is not in the lower triangle, where a %s has all its entries", (long long)i + 1, (long long)j + 1, h->symmetry == GPUCSR_SKEW ? "skew-symmetric file" : "symmetric file");
      return;
    }
    for (int c = 0; c < h->numbers; c++)
      if (Real(l, h->lines + h->pointers + h->indices, &h->value, h->numbers * k + c, &x[c], &piece->fault)) return;
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
  }
}

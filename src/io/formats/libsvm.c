/*
  LIBSVM and svmlight text, after the README of LIBSVM (C.-C. Chang and C.-J. Lin) and svmlight (T. Joachims): a line per row,

    LABEL [qid:NUMBER] INDEX:VALUE INDEX:VALUE ... [# comment]

  with a label in any form of a number. All rows have a label, or none (rows to predict). Blank lines and pure comments are skipped. Indices should increase: other rows are sorted, and a repeated
  index is a fault.
*/
#include "../gpucsrio.h"
#include "number.h"
#include <stdlib.h>

typedef struct {
  const char *begin, *line, *end; /* of the text, of the line, of the text */
  int64_t     number;             /* of the line */
  int64_t     low, beyond;        /* range of possible indices */
  int         unlabelled;
} Place;

/* Reports a line that cannot be used, with the word at p. Always false */
static int Expected(const Place *at, const char *p, GPUCSRFault *f, const char what[])
{
  return !GPUCSRFaultExpected(f, at->number, at->line, p, what);
}

/* The second pair with this index in the line */
static const char *Second(const Place *at, PetscInt index)
{
  int     times = 0;
  int64_t v;

  for (const char *p = at->line; *p != '\n' && *p != '#'; p++) {
    if (!GPUCSRIsBlank(*p) || !GPUCSRWhole(p + 1, &v) || v != (int64_t)index) continue;
    if (*GPUCSRWhole(p + 1, &v) == ':' && ++times == 2) return p + 1;
  }
  return at->line;
}

/* Sorts a row with unsorted indices */
static int SortRow(const Place *at, size_t n, PetscInt j[], PetscScalar v[], GPUCSRFault *f)
{
  const int64_t equal = GPUCSRSortRow((int64_t)n, j, v);

  if (equal < 0) return !GPUCSRFaultSet(f, at->number, 0, "no memory to sort a row of %zu entries", n);
  if (!equal) return 1;
  for (size_t k = 1; k < n; k++)
    if (j[k] == j[k - 1]) return !GPUCSRFaultSet(f, at->number, Second(at, j[k]) - at->line + 1, "index %" PetscInt_FMT " stands in this line a second time", j[k]);
  return 1;
}

/* Reports an index beyond the integers of this PETSc, or outside the base and the columns. Always false */
static int Outside(const Place *at, const char *p, int64_t index, GPUCSRFault *f)
{
  if (index >= PETSC_MAX_INT) return Expected(at, p, f, "an index that fits the integers of this PETSc");
  if (index < at->low) GPUCSRFaultSet(f, at->number, p - at->line + 1, "index 0, where the first index is 1");
  else GPUCSRFaultSet(f, at->number, p - at->line + 1, "index %lld is beyond the columns, whose last index is %lld", (long long)index, (long long)at->beyond - 1);
  return 0;
}

/* Can this word follow a label? */
static int StartsRow(const char *p, const char *end)
{
  int64_t     index;
  const char *q = GPUCSRWhole(p, &index);

  return (q && *q == ':') || (end - p > 4 && !memcmp(p, "qid:", 4));
}

typedef struct {
  size_t  n; /* entries */
  double  label;
  int64_t query; /* -1 without a query */
} Row;

/* Parses the line with first word p. False with a fault; *next is where parsing stopped */
static int ParseLine(const Place *at, const char *p, PetscInt j[], PetscScalar v[], Row *row, GPUCSRFault *f, const char **next)
{
  const char *q;
  size_t      nz     = 0;
  PetscInt    last   = -1;
  int         sorted = 1;

  *next = p;
  q     = p;
  if (at->unlabelled) {
    if (!StartsRow(p, at->end)) return Expected(at, p, f, "INDEX:VALUE, as the first row has no label");
  } else {
    q = GPUCSRReal(p, at->end, &row->label);
    if (q && *q == ':') return Expected(at, p, f, "a label before the first INDEX:VALUE");
    if (q && *q == ',') return Expected(at, p, f, "one label, a number");
    if (!q || !(GPUCSRIsBlank(*q) || *q == '\n' || *q == '#')) return Expected(at, p, f, "a label, a finite number");
  }
  row->query = -1;
  for (;;) {
    int64_t index;
    double  value;

    p = q;
    while (GPUCSRIsBlank(*p)) p++;
    if (*p == '\n' || *p == '#') break;
    *next = p;
    q     = GPUCSRWhole(p, &index);
    if (!q || *q != ':') {
      if (at->end - p > 4 && !memcmp(p, "qid:", 4)) {
        if (nz || row->query >= 0) return Expected(at, p, f, "one qid, in front of the entries");
        q = GPUCSRWhole(p + 4, &row->query);
        if (!q || !(GPUCSRIsBlank(*q) || *q == '\n' || *q == '#')) return Expected(at, p, f, "a whole number after qid:");
        continue;
      }
      return Expected(at, p, f, "INDEX:VALUE, the index a whole number");
    }
    if (index < at->low || index >= at->beyond) return Outside(at, p, index, f);
    p = q + 1;
    q = GPUCSRReal(p, at->end, &value);
    if (!q || !(GPUCSRIsBlank(*q) || *q == '\n' || *q == '#')) return Expected(at, p, f, "a finite number as the value");
    sorted &= (PetscInt)index > last;
    last  = (PetscInt)index;
    j[nz] = last;
    v[nz] = value;
    nz++;
  }
  row->n = nz;
  return sorted || SortRow(at, nz, j, v, f);
}

/* Has the first row a label? */
void GPUCSRLibsvmHeader(const char text[], size_t bytes, GPUCSRTextHeader *h)
{
  const char *p = text, *end = text + bytes;

  if (bytes >= 3 && !memcmp(p, "\xef\xbb\xbf", 3)) p += 3;
  for (; p < end; p++) {
    while (GPUCSRIsBlank(*p)) p++;
    if (*p != '\n' && *p != '#') break;
    p = (const char *)memchr(p, '\n', (size_t)(end - p));
    if (!p) return;
  }
  if (p >= end) return;
  h->unlabelled = StartsRow(p, end);
}

/* With an unknown base, an index may be as large as for base 1 */
void GPUCSRLibsvmBound(GPUCSRTextHeader *h, int64_t base, int64_t columns)
{
  h->bounded = 1;
  h->low     = base > 0 ? base : 0;
  h->beyond  = columns >= 0 && columns < PETSC_MAX_INT ? columns + (base ? 1 : 0) : PETSC_MAX_INT;
}

void GPUCSRLibsvmParse(const GPUCSRTextHeader *h, const char text[], size_t bytes, int skip, GPUCSRPiece *piece)
{
  Place       at = {text, text, text + bytes, 1, h->bounded ? h->low : 0, h->bounded ? h->beyond : PETSC_MAX_INT, h->unlabelled};
  size_t      nz = 0, rows = 0, entries = 0, skipped = 0;
  PetscInt    low = PETSC_MAX_INT, high = PETSC_MIN_INT;
  GPUCSRFault fault;

  /* a row takes at least 2 characters, "1" and a line feed, an entry 4, " 1:1" */
  if (GPUCSRPieceAllocate(piece, bytes / 2 + 1, bytes / 4 + 1, 0, 1, &fault)) {
    piece->fault = fault;
    return;
  }
  for (const char *p = text; p < at.end; at.number++) {
    Row row = {0, 0, -1};

    at.line = p;
    while (GPUCSRIsBlank(*p)) p++;
    if (*p != '\n' && *p != '#') {
      entries++;
      if (ParseLine(&at, p, piece->j + nz, piece->v + nz, &row, &fault, &p)) {
        if (row.query >= 0 && !piece->query) {
          piece->query = (int64_t *)malloc((bytes / 2 + 1) * sizeof(*piece->query));
          if (!piece->query) {
            GPUCSRFaultSet(&piece->fault, at.number, 0, "no memory for the numbers after qid:");
            break;
          }
          for (size_t r = 0; r < rows; r++) piece->query[r] = -1;
        }
        if (piece->query) piece->query[rows] = row.query;
        piece->length[rows] = (PetscInt)row.n;
        piece->label[rows]  = row.label;
        if (row.n) {
          if (piece->j[nz] < low) low = piece->j[nz];
          if (piece->j[nz + row.n - 1] > high) high = piece->j[nz + row.n - 1];
        }
        nz += row.n;
        rows++;
      } else if (skip) {
        if (!skipped++) piece->skip = at.number;
      } else {
        piece->fault = fault;
        break;
      }
    }
    if (*p != '\n') p = (const char *)memchr(p, '\n', (size_t)(at.end - p));
    p++;
  }
  piece->rows    = rows;
  piece->nz      = nz;
  piece->low     = low;
  piece->high    = high;
  piece->entries = entries;
  piece->skipped = skipped;
  GPUCSRPieceTrim(piece);
}

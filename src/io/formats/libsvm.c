/*
  LIBSVM and svmlight text, after the README of LIBSVM (C.-C. Chang and C.-J. Lin) and svmlight (T. Joachims): a line per row,

    LABEL [qid:NUMBER] INDEX:VALUE INDEX:VALUE ... [# comment]

  with a label in any form of a number. All rows have a label, or none (rows to predict). Blank lines and pure comments are skipped. Indices should increase: other rows are sorted, and a repeated
  index is a fault.
*/
#include "lines.h"
#include <stdlib.h>

/* Reports a line that cannot be used, with the word at p. Always NULL */
static const char *Expected(const GPUCSRLine *line, const char *p, GPUCSRFault *f, const char what[])
{
  return GPUCSRFaultExpected(f, line->number, line->begin, p, what), NULL;
}

/* Sorts a row with unsorted indices */
static int SortRow(const GPUCSRLine *line, size_t n, PetscInt j[], PetscScalar v[], GPUCSRFault *f)
{
  const int64_t equal = GPUCSRSortRow((int64_t)n, j, v);

  if (equal < 0) return !GPUCSRFaultSet(f, line->number, 0, "no memory to sort a row of %zu entries", n);
  if (!equal) return 1;
  for (size_t k = 1; k < n; k++)
    if (j[k] == j[k - 1]) return !GPUCSRFaultSet(f, line->number, 0, "index %" PetscInt_FMT " stands in this line a second time", j[k]);
  return 1;
}

/* Reports an index beyond the integers of this PETSc, or outside the base and the columns. Always NULL */
static const char *Outside(const GPUCSRTextHeader *h, const GPUCSRLine *line, const char *p, int64_t index, GPUCSRFault *f)
{
  if (index >= PETSC_MAX_INT) return Expected(line, p, f, "an index that fits the integers of this PETSc");
  if (index < h->low) GPUCSRFaultSet(f, line->number, p - line->begin + 1, "index 0, where the first index is 1");
  else GPUCSRFaultSet(f, line->number, p - line->begin + 1, "index %lld is beyond the columns, whose last index is %lld", (long long)index, (long long)h->beyond - 1);
  return NULL;
}

/* Can this word follow a label? */
static int StartsRow(const char *p, const char *end)
{
  int64_t     index;
  const char *q = GPUCSRWhole(p, &index);

  return (q && *q == ':') || (end - p > 4 && !memcmp(p, "qid:", 4));
}

/* Does a word end here? */
static inline int Ends(char c)
{
  return GPUCSRIsBlank(c) || c == '\n' || c == '#';
}

typedef struct {
  size_t  n; /* entries */
  double  label;
  int64_t query; /* -1 without a query */
} Row;

/* Parses the line with first word p: returns its end, or NULL with a fault */
static const char *ParseLine(const GPUCSRTextHeader *h, const GPUCSRLine *line, const char *p, PetscInt j[], PetscScalar v[], Row *row, GPUCSRFault *f)
{
  const char *q      = p;
  size_t      nz     = 0;
  PetscInt    last   = -1;
  int         sorted = 1;

  if (h->unlabelled) {
    if (!StartsRow(p, line->end)) return Expected(line, p, f, "INDEX:VALUE, as the first row has no label");
  } else {
    q = GPUCSRReal(p, line->end, &row->label);
    if (q && *q == ':') return Expected(line, p, f, "a label before the first INDEX:VALUE");
    if (q && *q == ',') return Expected(line, p, f, "one label, a number");
    if (!q || !Ends(*q)) return Expected(line, p, f, "a label, a finite number");
  }
  row->query = -1;
  for (;;) {
    int64_t index;
    double  value;

    p = GPUCSRBlanks(q);
    if (*p == '\n' || *p == '#') break;
    q = GPUCSRWhole(p, &index);
    if (!q || *q != ':') {
      if (line->end - p > 4 && !memcmp(p, "qid:", 4)) {
        if (nz || row->query >= 0) return Expected(line, p, f, "one qid, in front of the entries");
        q = GPUCSRWhole(p + 4, &row->query);
        if (!q || !Ends(*q)) return Expected(line, p, f, "a whole number after qid:");
        continue;
      }
      return Expected(line, p, f, "INDEX:VALUE, the index a whole number");
    }
    if (index < h->low || index >= h->beyond) return Outside(h, line, p, index, f);
    p = q + 1;
    q = GPUCSRReal(p, line->end, &value);
    if (!q || !Ends(*q)) return Expected(line, p, f, "a finite number as the value");
    sorted &= (PetscInt)index > last;
    last  = (PetscInt)index;
    j[nz] = last;
    v[nz] = value;
    nz++;
  }
  row->n = nz;
  return sorted || SortRow(line, nz, j, v, f) ? p : NULL;
}

/* Has the first row a label? */
void GPUCSRLibsvmHeader(const char text[], size_t bytes, GPUCSRTextHeader *h)
{
  const char *p = text, *end = text + bytes;

  h->beyond = PETSC_MAX_INT;
  for (; p < end; p++) {
    p = GPUCSRBlanks(p);
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
  h->low    = base > 0 ? base : 0;
  h->beyond = columns >= 0 && columns < PETSC_MAX_INT ? columns + (base ? 1 : 0) : PETSC_MAX_INT;
}

static inline const char *TakeRow(const void *ctx, const GPUCSRLine *line, const char *p, GPUCSRPiece *piece, GPUCSRFault *f)
{
  PetscInt *const   j   = piece->j + piece->nz;
  Row               row = {0, 0, -1};
  const char *const q   = ParseLine((const GPUCSRTextHeader *)ctx, line, p, j, piece->v + piece->nz, &row, f);

  if (!q) return NULL;
  if (row.query >= 0 && !piece->query) {
    piece->query = (int64_t *)malloc(((size_t)(line->end - line->text) / 2 + 1) * sizeof(*piece->query));
    if (!piece->query) return GPUCSRFaultSet(&piece->fault, line->number, 0, "no memory for the numbers after qid:"), NULL;
    for (size_t r = 0; r < piece->rows; r++) piece->query[r] = -1;
  }
  if (piece->query) piece->query[piece->rows] = row.query;
  piece->length[piece->rows]  = (PetscInt)row.n;
  piece->label[piece->rows++] = row.label;
  if (row.n) {
    piece->low  = PetscMin(piece->low, j[0]);
    piece->high = PetscMax(piece->high, j[row.n - 1]);
  }
  piece->nz += row.n;
  return q;
}

void GPUCSRLibsvmParse(const GPUCSRTextHeader *h, const char text[], size_t bytes, int skip, GPUCSRPiece *piece)
{
  /* a row takes at least 2 characters, "1" and a line feed, an entry 4, " 1:1" */
  if (GPUCSRPieceAllocate(piece, bytes / 2 + 1, bytes / 4 + 1, 0, 1, &piece->fault)) return;
  GPUCSRParseLines(text, bytes, '#', skip, TakeRow, h, piece);
}

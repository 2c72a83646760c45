/*
  Matrix Market, the text format of R. F. Boisvert, R. Pozo and K. A. Remington, "The Matrix Market exchange formats: initial design",
  NISTIR 5935, 1996: coordinate or array; real, integer, pattern, and complex if PETSc is; general, symmetric, skew-symmetric, Hermitian.

  Files of symmetric matrices hold only the lower triangle. Entries of equal places are added up.
*/
#include "lines.h"
#include <strings.h>

/* The index of a word in a list that ends in NULL, or -1 */
static int Find(const char *const list[], const char word[])
{
  for (int k = 0; list[k]; k++)
    if (!strcasecmp(list[k], word)) return k;
  return -1;
}

static int Banner(const char text[], GPUCSRTextHeader *h, GPUCSRFault *f)
{
  static const char *const formats[]    = {"coordinate", "array", NULL};
  static const char *const fields[]     = {"pattern", "real", "complex", "integer", "double", NULL};
  static const char *const symmetries[] = {"general", "symmetric", "skew-symmetric", "hermitian", NULL};
  char                     word[5][32];
  int64_t                  column[5];
  const char              *p = text;
  int                      k;

  for (k = 0; k < 5; k++) {
    p         = GPUCSRBlanks(p);
    column[k] = p - text + 1;
    p         = GPUCSRFaultWord(p, word[k]);
  }
  if (strcasecmp(word[0], "%%MatrixMarket") || strcasecmp(word[1], "matrix")) return GPUCSRFaultSet(f, 1, 1, "expected '%%%%MatrixMarket matrix', not '%s %s'", word[0], word[1]);
  if ((k = Find(formats, word[2])) < 0) return GPUCSRFaultSet(f, 1, column[2], "format '%s' is none of coordinate, array", word[2]);
  h->array = k;
  if ((k = Find(fields, word[3])) < 0) return GPUCSRFaultSet(f, 1, column[3], "field '%s' is none of real, integer, pattern, complex", word[3]);
  h->numbers = k > 2 ? 1 : k;
  if ((k = Find(symmetries, word[4])) < 0) return GPUCSRFaultSet(f, 1, column[4], "symmetry '%s' is none of general, symmetric, skew-symmetric, hermitian", word[4]);
  h->symmetry = (GPUCSRSymmetry)k;
  p           = GPUCSRBlanks(p);
  if (*p != '\n') return GPUCSRFaultSet(f, 1, p - text + 1, "expected five words, '%%%%MatrixMarket matrix FORMAT FIELD SYMMETRY'");
  if (h->numbers == 2 && !PetscDefined(USE_COMPLEX)) return GPUCSRFaultSet(f, 1, column[3], "a complex matrix needs a PETSc configured with complex scalars; this one has real scalars");
  if (h->array && !h->numbers) return GPUCSRFaultSet(f, 1, column[3], "an array has values: field 'pattern' is for coordinates alone");
  if (h->symmetry == GPUCSR_SKEW && !h->numbers) return GPUCSRFaultSet(f, 1, column[4], "a skew-symmetric matrix has values: its field cannot be 'pattern'");
  return 0;
}

/* The banner and the sizes; text ends in a line feed */
int GPUCSRMarketHeader(const char text[], size_t bytes, GPUCSRTextHeader *h, GPUCSRFault *f)
{
  const char *end = text + bytes, *p, *line;
  int64_t     size[3];

  memset(h, 0, sizeof(*h));
  h->format = GPUCSR_TEXT_MARKET;
  if (!bytes) return GPUCSRFaultSet(f, 0, 0, "is empty");
  if (Banner(text, h, f)) return 1;
  p = (const char *)memchr(text, '\n', bytes) + 1;
  for (h->lines = 2;; h->lines++) {
    if (p >= end) return GPUCSRFaultSet(f, h->lines, 0, "expected the sizes, and the file ends"), GPUCSR_HEADER_ENDS;
    line = p;
    p    = GPUCSRBlanks(p);
    if (*p != '\n' && *p != '%') break;
    p = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
  }
  for (int k = 0; k < 3 - h->array; k++) {
    const char *q = GPUCSRWhole(p, &size[k]);

    if (!q || !(GPUCSRIsBlank(*q) || *q == '\n')) return GPUCSRFaultExpected(f, h->lines, line, p, h->array ? "the sizes: rows and columns, as whole numbers" : "the sizes: rows, columns and entries, as whole numbers");
    if (k < 2 && size[k] > PETSC_MAX_INT) return GPUCSRFaultSet(f, h->lines, p - line + 1, "%lld %s: more than this PETSc can count", (long long)size[k], k ? "columns" : "rows");
    p = GPUCSRBlanks(q);
  }
  if (*p != '\n') return GPUCSRFaultSet(f, h->lines, p - line + 1, "expected no more than the sizes, %d numbers", 3 - h->array);
  h->m = size[0];
  h->n = size[1];
  if (h->symmetry != GPUCSR_GENERAL && h->m != h->n) return GPUCSRFaultSet(f, h->lines, 0, "a symmetric matrix has to be square, not %lld by %lld", (long long)h->m, (long long)h->n);
  if (!h->array) h->entries = size[2];
  else if (h->symmetry == GPUCSR_GENERAL) {
    if (__builtin_mul_overflow(h->m, h->n, &h->entries)) return GPUCSRFaultSet(f, h->lines, 0, "%lld by %lld values: more than a file holds", (long long)h->m, (long long)h->n);
  } else if (h->m == PETSC_MAX_INT && sizeof(PetscInt) == 8) return GPUCSRFaultSet(f, h->lines, 0, "%lld rows: more than a file holds", (long long)h->m);
  else {
    const int64_t n = h->symmetry == GPUCSR_SKEW && h->n ? h->n - 1 : h->n;

    if (__builtin_mul_overflow(n % 2 ? (n + 1) / 2 : n / 2, n % 2 ? n : n + 1, &h->entries)) return GPUCSRFaultSet(f, h->lines, 0, "%lld rows: more than a file holds", (long long)h->m);
  }
  p        = (const char *)p + 1;
  h->bytes = (size_t)(p - text);
  return 0;
}

static inline int Ends(char c)
{
  return GPUCSRIsBlank(c) || c == '\n';
}

/* The entry at p: returns the end of the line, NULL with a fault */
static inline const char *Entry(const GPUCSRTextHeader *h, const GPUCSRLine *line, const char *p, int64_t i[2], double x[2], GPUCSRFault *f)
{
  static const char *const places[] = {"a row, a whole number", "a column, a whole number"}, *const values[] = {"a finite number as the value", "a finite number as the imaginary part"};
  const char *q;

  for (int k = 0; k < 2 && !h->array; k++, p = GPUCSRBlanks(q)) {
    q = GPUCSRWhole(p, &i[k]);
    if (!q || !Ends(*q)) return GPUCSRFaultExpected(f, line->number, line->begin, p, places[k]), NULL;
    if (i[k] < 1 || i[k] > (k ? h->n : h->m)) return GPUCSRFaultSet(f, line->number, p - line->begin + 1, "%s %lld is outside the matrix, of %lld rows and %lld columns", k ? "column" : "row", (long long)i[k], (long long)h->m, (long long)h->n), NULL;
  }
  if (h->symmetry != GPUCSR_GENERAL && !h->array && i[1] >= i[0]) {
    if (h->symmetry == GPUCSR_SKEW) return GPUCSRFaultSet(f, line->number, 0, "entry (%lld, %lld) is not below the diagonal, where a skew-symmetric file has all its entries", (long long)i[0], (long long)i[1]), NULL;
    if (i[1] > i[0]) return GPUCSRFaultSet(f, line->number, 0, "entry (%lld, %lld) is above the diagonal; a symmetric file has the lower triangle alone", (long long)i[0], (long long)i[1]), NULL;
  }
  for (int k = 0; k < h->numbers; k++, p = GPUCSRBlanks(q)) {
    q = GPUCSRReal(p, line->end, &x[k]);
    if (!q || !Ends(*q)) return GPUCSRFaultExpected(f, line->number, line->begin, p, values[k]), NULL;
  }
  return *p == '\n' ? p : (GPUCSRFaultExpected(f, line->number, line->begin, p, "the end of the line after one entry"), NULL);
}

/* A skipped value of an array becomes zero, for the places of later values */
static inline const char *TakeEntry(const void *ctx, const GPUCSRLine *line, const char *p, GPUCSRPiece *piece, GPUCSRFault *f)
{
  const GPUCSRTextHeader *h    = (const GPUCSRTextHeader *)ctx;
  const size_t            at   = piece->nz;
  int64_t                 i[2] = {1, 1};
  double                  x[2] = {1, 0};
  const char *const       q    = Entry(h, line, p, i, x, f);

  if (!q && !h->array) return NULL;
  piece->i[at] = (PetscInt)(i[0] - 1);
  piece->j[at] = (PetscInt)(i[1] - 1);
  piece->low   = PetscMin(piece->low, piece->i[at]);
  piece->high  = PetscMax(piece->high, piece->i[at]);
  if (piece->v) piece->v[at] = q ? GPUCSRScalar(x[0], x[1]) : 0;
  piece->nz++;
  return q;
}

void GPUCSRMarketParse(const GPUCSRTextHeader *h, const char text[], size_t bytes, int skip, GPUCSRPiece *piece)
{
  /* an entry takes at least 2 characters in an array, 4 with a row and a column */
  if (GPUCSRPieceAllocate(piece, 0, bytes / (h->array ? 2 : 4) + 1, 1, h->numbers > 0, &piece->fault)) return;
  GPUCSRParseLines(text, bytes, '%', skip, TakeEntry, h, piece);
}

void GPUCSRMarketPlace(const GPUCSRTextHeader *h, int64_t first, GPUCSRPiece *piece)
{
  const int triangle = h->symmetry != GPUCSR_GENERAL, below = h->symmetry == GPUCSR_SKEW;
  int64_t   i, j;

  if (!piece->nz) return;
  j = triangle ? 0 : first / h->m;
  i = first - (triangle ? 0 : j * h->m);
  if (triangle) { /* column j of a triangle has n - j entries */
    for (; j < h->n && i >= h->n - below - j; j++) i -= h->n - below - j;
    i += j + below;
  }
  piece->low  = PETSC_MAX_INT;
  piece->high = PETSC_MIN_INT;
  for (size_t k = 0; k < piece->nz; k++) {
    piece->i[k] = (PetscInt)i;
    piece->j[k] = (PetscInt)j;
    if (i < piece->low) piece->low = (PetscInt)i;
    if (i > piece->high) piece->high = (PetscInt)i;
    if (++i == h->m) {
      j++;
      i = triangle ? j + below : 0;
    }
  }
}

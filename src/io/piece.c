/*
  Pieces, the memory for the contents of a block of text, and faults.

  A piece first has room for all that its text can hold. Later it shrinks to its contents: unwritten pages cost nothing.
*/
#include "gpucsrio.h"
#include "formats/number.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the character at s if a terminal can show it: ASCII, or complete UTF-8. 0: it cannot */
static int Shown(const unsigned char *s)
{
  const int n = *s < 128 ? 1 : *s < 0xc2 ? 0 : *s < 0xe0 ? 2 : *s < 0xf0 ? 3 : *s < 0xf5 ? 4 : 0;

  if (*s < 32 || *s == 127 || (*s == 0xc2 && s[1] < 0xa0)) return 0; /* C0 and C1 are for controlling the terminal */
  for (int k = 1; k < n; k++)
    if ((s[k] & 0xc0) != 0x80) return 0;
  return n;
}

int GPUCSRFaultSet(GPUCSRFault *f, int64_t line, int64_t column, const char format[], ...)
{
  va_list args;

  f->line   = line;
  f->column = column;
  va_start(args, format);
  vsnprintf(f->why, sizeof(f->why), format, args);
  va_end(args);
  for (char *s = f->why; *s;) { /* words of a file that is not text */
    const int n = Shown((const unsigned char *)s);

    if (!n) *s = '?';
    s += n ? n : 1;
  }
  return 1;
}

const char *GPUCSRFaultWord(const char *p, char word[32])
{
  const char *begin = p;
  size_t      n;

  while (*p != '\n' && !GPUCSRIsBlank(*p)) p++;
  n = (size_t)(p - begin);
  memcpy(word, begin, n < 24 ? n : 24);
  memcpy(word + (n < 24 ? n : 24), n > 24 ? "..." : "", n > 24 ? 4 : 1);
  for (size_t k = 0; k < n && k < 24; k++)
    if (!word[k]) word[k] = '?';
  return p;
}

int GPUCSRFaultExpected(GPUCSRFault *f, int64_t number, const char *line, const char *p, const char what[])
{
  char word[32];

  GPUCSRFaultWord(p, word);
  return GPUCSRFaultSet(f, number, p - line + 1, "expected %s, not %s%s%s", what, word[0] ? "'" : "", word[0] ? word : "the end of the line", word[0] ? "'" : "");
}

void GPUCSRFaultPrint(const GPUCSRFault *f, const char file[], char text[], size_t size)
{
  if (!strcmp(file, "-")) file = "standard input";
  if (f->column > 0) snprintf(text, size, "%s, line %lld, column %lld: %s", file, (long long)f->line, (long long)f->column, f->why);
  else if (f->line > 0) snprintf(text, size, "%s, line %lld: %s", file, (long long)f->line, f->why);
  else snprintf(text, size, "%s: %s", file, f->why);
}

void GPUCSRPieceDestroy(GPUCSRPiece *p)
{
  free(p->i);
  free(p->j);
  free(p->v);
  free(p->length);
  free(p->label);
  free(p->query);
  memset(p, 0, sizeof(*p));
}

static void *Room(size_t n, size_t size)
{
  return malloc(n ? n * size : 1);
}

int GPUCSRPieceAllocate(GPUCSRPiece *p, size_t rows, size_t entries, int triplets, int values, GPUCSRFault *f)
{
  memset(p, 0, sizeof(*p));
  p->low  = PETSC_MAX_INT;
  p->high = PETSC_MIN_INT;
  if (triplets) p->i = (PetscInt *)Room(entries, sizeof(*p->i));
  p->j = (PetscInt *)Room(entries, sizeof(*p->j));
  if (values) p->v = (PetscScalar *)Room(entries, sizeof(*p->v));
  if (rows) {
    p->length = (PetscInt *)Room(rows, sizeof(*p->length));
    p->label  = (double *)Room(rows, sizeof(*p->label));
  }
  if (p->j && (!triplets || p->i) && (!values || p->v) && (!rows || (p->length && p->label))) return 0;
  GPUCSRPieceDestroy(p);
  return GPUCSRFaultSet(f, 0, 0, "no memory for %zu entries", entries);
}

static void *Trim(void *p, size_t n, size_t size)
{
  void *q = p ? realloc(p, n ? n * size : 1) : NULL;

  return q ? q : p;
}

void GPUCSRPieceTrim(GPUCSRPiece *p)
{
  p->i      = (PetscInt *)Trim(p->i, p->nz, sizeof(*p->i));
  p->j      = (PetscInt *)Trim(p->j, p->nz, sizeof(*p->j));
  p->v      = (PetscScalar *)Trim(p->v, p->nz, sizeof(*p->v));
  p->length = (PetscInt *)Trim(p->length, p->rows, sizeof(*p->length));
  p->label  = (double *)Trim(p->label, p->rows, sizeof(*p->label));
  p->query  = (int64_t *)Trim(p->query, p->rows, sizeof(*p->query));
}

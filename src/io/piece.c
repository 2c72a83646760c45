/*
  Pieces, the memory for the contents of a block of text, and faults. Then threads parse blocks of text into pieces, and the format of a text is detected.

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

/* ---- By threads */

static void ParseBlock(const GPUCSRTextHeader *h, int skip, GPUCSRBlock *b)
{
  GPUCSRFault f;

  if (GPUCSRBlockLoad(b, &f)) b->piece.fault = f;
  else if (h->format == GPUCSR_TEXT_LIBSVM) GPUCSRLibsvmParse(h, b->text, b->bytes, skip, &b->piece);
  else GPUCSRMarketParse(h, b->text, b->bytes, skip, &b->piece);
  free(b->text);
  b->text = NULL;
}

typedef struct {
  GPUCSRBlock *block;
  size_t       n;
  GPUCSRFault  fault;
  int          failed;
} Batch;

static void Fetch(GPUCSRInput *s, size_t depth, Batch *batch)
{
  for (batch->n = 0; batch->n < depth; batch->n++) {
    batch->failed = GPUCSRInputNext(s, &batch->block[batch->n], &batch->fault);
    if (batch->failed || !batch->block[batch->n].bytes) break;
  }
}

int GPUCSRInputParse(GPUCSRInput *s, const GPUCSRTextHeader *h, int skip, int threads, size_t depth, GPUCSRBlockFn handle, void *ctx, GPUCSRFault *f)
{
  Batch batch[2];
  int   now = 0, failed = 0;

  if (h->format == GPUCSR_TEXT_BOEING) return GPUCSRBoeingParse(s, h, threads, handle, ctx, f);
  memset(batch, 0, sizeof(batch));
  for (int k = 0; k < 2; k++) batch[k].block = (GPUCSRBlock *)calloc(depth, sizeof(GPUCSRBlock));
  if (!batch[0].block || !batch[1].block) failed = GPUCSRFaultSet(f, 0, 0, "no memory for %zu blocks", depth);
  else Fetch(s, depth, &batch[0]);
  for (; !failed && batch[now].n; now = !now) {
    Batch *const b = &batch[now];

    /* parses one batch while the next is decompressed */
#pragma omp parallel num_threads(threads)
#pragma omp          single
    {
      for (size_t k = 0; k < b->n; k++) {
                 GPUCSRBlock *block = &b->block[k];

#pragma omp task firstprivate(block)
        ParseBlock(h, skip, block);
      }
      if (!b->failed) Fetch(s, depth, &batch[!now]);
    }
    for (size_t k = 0; k < b->n; k++) {
      GPUCSRBlock *block = &b->block[k];

      if (!failed && block->piece.fault.why[0]) {
        *f = block->piece.fault;
        if (f->line) f->line += GPUCSRBlockLine(block) - 1;
        failed = 1;
      } else if (!failed) failed = handle(ctx, block, f);
      GPUCSRBlockDestroy(block);
    }
    if (b->failed) break;
  }
  if (!failed && (batch[0].failed || batch[1].failed)) {
    *f     = batch[batch[1].failed].fault;
    failed = 1;
  }
  for (int k = 0; k < 2; k++) {
    for (size_t i = 0; batch[k].block && i < batch[k].n; i++) GPUCSRBlockDestroy(&batch[k].block[i]);
    free(batch[k].block);
  }
  return failed;
}

/* ---- Which format */

static int LooksBoeing(const char text[], size_t bytes)
{
  const char *line = text, *end = text + bytes;
  size_t      length;

  for (int k = 0; k < 2; k++) {
    line = (const char *)memchr(line, '\n', (size_t)(end - line));
    if (!line) return 0;
    line++;
  }
  if (end - line < 4 || !memchr("RrCcPpIi", line[0], 8) || !memchr("SsUuHhZzRr", line[1], 10) || !memchr("AaEe", line[2], 4) || !GPUCSRIsBlank(line[3])) return 0;
  line = (const char *)memchr(line, '\n', (size_t)(end - line));
  if (!line) return 0;
  line++;
  for (length = 0; line + length < end && line[length] == ' '; length++) {
  }
  return line + length < end && line[length] == '(';
}

int GPUCSRInputHeader(GPUCSRInput *s, GPUCSRTextFormat format, GPUCSRTextHeader *h, GPUCSRFault *f)
{
  for (size_t want = 1 << 16;; want *= 4) {
    size_t bytes, whole;
    char  *head;
    int    more, failed = 0;

    memset(h, 0, sizeof(*h));
    if (GPUCSRInputHead(s, want, &head, &bytes, &more, f)) return 1;
    if (format != GPUCSR_TEXT_AUTO) h->format = format;
    else if (GPUCSRIsBinary(head, bytes)) h->format = GPUCSR_TEXT_PETSC;
    else if (bytes >= 2 && head[0] == '%' && head[1] == '%') h->format = GPUCSR_TEXT_MARKET;
    else h->format = LooksBoeing(head, bytes) ? GPUCSR_TEXT_BOEING : GPUCSR_TEXT_LIBSVM;
    for (whole = bytes; whole && head[whole - 1] != '\n'; whole--) {
    }
    if (!whole || !more) { /* a last line without a line feed */
      whole = bytes;
      if (head[whole - 1] != '\n') head[whole++] = '\n';
    }
    if (h->format == GPUCSR_TEXT_LIBSVM) GPUCSRLibsvmHeader(head, whole, h);
    if (h->format == GPUCSR_TEXT_MARKET) failed = GPUCSRMarketHeader(head, whole, h, f);
    if (h->format == GPUCSR_TEXT_BOEING) failed = GPUCSRBoeingHeader(head, whole, h, f);
    if (failed == GPUCSR_HEADER_ENDS && more) continue;
    if (!failed && h->format == GPUCSR_TEXT_MARKET && !GPUCSRInputIsStream(s) && (double)h->entries > 0.5 * ((double)GPUCSRInputBytes(s) + 1)) /* an entry takes at least two characters */
      failed = GPUCSRFaultSet(f, h->lines, 0, "the file, of %zu bytes, is too short for the %lld entries announced here", (size_t)GPUCSRInputBytes(s), (long long)h->entries);
    return failed;
  }
}

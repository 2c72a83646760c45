/*
  Parses blocks of text into pieces, by threads; and detects the format of a text.
*/
#include "gpucsrio.h"
#include "formats/number.h"
#include <stdlib.h>

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

/* Parses one batch while the next is decompressed */
static void ParseBatch(GPUCSRInput *s, const GPUCSRTextHeader *h, int skip, int threads, size_t depth, Batch *now, Batch *next)
{
#pragma omp parallel num_threads(threads)
#pragma omp          single
  {
    for (size_t k = 0; k < now->n; k++) {
               GPUCSRBlock *block = &now->block[k];

#pragma omp task firstprivate(block)
      ParseBlock(h, skip, block);
    }
    if (!now->failed) Fetch(s, depth, next);
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

    ParseBatch(s, h, skip, threads, depth, b, &batch[!now]);
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

static GPUCSRTextFormat Sniff(const char text[], size_t bytes)
{
  if (GPUCSRIsBinary(text, bytes)) return GPUCSR_TEXT_PETSC;
  if (bytes >= 2 && text[0] == '%' && text[1] == '%') return GPUCSR_TEXT_MARKET;
  if (LooksBoeing(text, bytes)) return GPUCSR_TEXT_BOEING;
  return GPUCSR_TEXT_LIBSVM;
}

int GPUCSRInputHeader(GPUCSRInput *s, GPUCSRTextFormat format, GPUCSRTextHeader *h, GPUCSRFault *f)
{
  for (size_t want = 1 << 16;; want *= 4) {
    size_t bytes, whole;
    char  *head;
    int    more, failed = 0;

    memset(h, 0, sizeof(*h));
    if (GPUCSRInputHead(s, want, &head, &bytes, &more, f)) return 1;
    h->format = format == GPUCSR_TEXT_AUTO ? Sniff(head, bytes) : format;
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

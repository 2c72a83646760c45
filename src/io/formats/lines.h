#pragma once

/*
  Text with a row or an entry a line, into a piece. Blank lines, and lines that begin with the character for comments, are skipped. A bad line ends the piece with its fault, or is counted and left out.
*/
#include "../gpucsrio.h"
#include "number.h"

static inline const char *GPUCSRBlanks(const char *p)
{
  while (GPUCSRIsBlank(*p)) p++;
  return p;
}

/* A line, with this number from the start of the text */
typedef struct {
  const char *text, *begin, *end; /* begin: of the line; end: of the text */
  int64_t     number;
} GPUCSRLine;

/* Takes the line with first word p into a piece: where it stopped, or NULL with a fault. A fault of the piece itself, like no memory, ends the piece in any case */
typedef const char *(*GPUCSRLineFn)(const void *ctx, const GPUCSRLine *, const char *p, GPUCSRPiece *, GPUCSRFault *);

/* Inlined with its function: an indirect call for each entry would take longer than the entry */
static inline __attribute__((always_inline)) void GPUCSRParseLines(const char text[], size_t bytes, char comment, int skip, GPUCSRLineFn take, const void *ctx, GPUCSRPiece *piece)
{
  GPUCSRLine  line = {text, text, text + bytes, 1};
  GPUCSRFault fault;

  for (const char *p = text; p < line.end && !piece->fault.why[0]; line.number++, p++) {
    line.begin = p;
    p          = GPUCSRBlanks(p);
    if (*p != '\n' && *p != comment) {
      const char *const q = (*take)(ctx, &line, p, piece, &fault);

      piece->entries++;
      if (q) p = q;
      else if (!skip && !piece->fault.why[0]) piece->fault = fault;
      else if (!piece->skipped++) piece->skip = line.number;
    }
    if (*p != '\n') p = (const char *)memchr(p, '\n', (size_t)(line.end - p));
  }
  GPUCSRPieceTrim(piece);
}

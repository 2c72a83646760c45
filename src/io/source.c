/*
  Sources: files that are mapped, and compressed ones that are a stream, cut at line ends into blocks.

  Which compression is told by the first bytes. Each is a row of the table of decoders, compiled in where its library's header was found.
*/
#include "gpucsrio.h"
#include "number.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(GPUCSR_HAVE_ZLIB)
  #include <zlib.h>
#endif
#if defined(GPUCSR_HAVE_LZMA)
  #include <lzma.h>
#endif
#if defined(GPUCSR_HAVE_BZ2)
  #include <bzlib.h>
#endif

/* ---- Decoders: from *in to *out, which move on. done: the file ends here */

typedef struct {
  const unsigned char *in, *in_end;
  unsigned char       *out, *out_end;
  int                  done;
} Flow;

typedef struct {
  const char   *name, *library;
  unsigned char magic[6];
  size_t        nmagic;
  int (*open)(void **);
  int (*decode)(void *, Flow *, GPUCSRFault *);
  void (*close)(void *);
} Decoder;

enum {
  GIVE = 1 << 30 /* most bytes that a library is given at once: some of them count in int */
};

static inline size_t Give(size_t n)
{
  return n < GIVE ? n : GIVE;
}

static int Early(GPUCSRFault *f)
{
  return GPUCSRFaultSet(f, 0, 0, "the compressed data end early: the file is cut off");
}

#if defined(GPUCSR_HAVE_ZLIB)
static int OpenGzip(void **state)
{
  z_stream *z = (z_stream *)calloc(1, sizeof(*z));

  *state = z;
  return !z || inflateInit2(z, 15 + 16) != Z_OK; /* 16: gzip's header */
}

static int DecodeGzip(void *state, Flow *w, GPUCSRFault *f)
{
  z_stream *z = (z_stream *)state;
  int       status;

  z->next_in   = (unsigned char *)w->in;
  z->avail_in  = (unsigned int)Give((size_t)(w->in_end - w->in));
  z->next_out  = w->out;
  z->avail_out = (unsigned int)Give((size_t)(w->out_end - w->out));
  status       = inflate(z, Z_NO_FLUSH);
  w->in        = z->next_in;
  w->out       = z->next_out;
  if (status == Z_STREAM_END) { /* another member may follow, or zeros that fill a block of tape */
    while (w->in < w->in_end && !*w->in) w->in++;
    if (w->in == w->in_end) w->done = 1;
    else if (inflateReset(z) != Z_OK) return GPUCSRFaultSet(f, 0, 0, "zlib could not go on");
    return 0;
  }
  if (status == Z_BUF_ERROR && w->in == w->in_end) return Early(f);
  if (status != Z_OK) return GPUCSRFaultSet(f, 0, 0, "the compressed data are damaged: %s", z->msg ? z->msg : "zlib does not understand them");
  return 0;
}

static void CloseGzip(void *state)
{
  if (state) inflateEnd((z_stream *)state);
  free(state);
}
#else
  #define OpenGzip   NULL
  #define DecodeGzip NULL
  #define CloseGzip  NULL
#endif

#if defined(GPUCSR_HAVE_LZMA)
static int OpenXz(void **state)
{
  const lzma_stream fresh = LZMA_STREAM_INIT;
  lzma_stream      *z     = (lzma_stream *)malloc(sizeof(*z));

  *state = z;
  if (!z) return 1;
  *z = fresh;
  return lzma_stream_decoder(z, UINT64_MAX, LZMA_CONCATENATED) != LZMA_OK;
}

static int DecodeXz(void *state, Flow *w, GPUCSRFault *f)
{
  lzma_stream *z = (lzma_stream *)state;
  lzma_ret     status;

  z->next_in   = w->in;
  z->avail_in  = (size_t)(w->in_end - w->in);
  z->next_out  = w->out;
  z->avail_out = (size_t)(w->out_end - w->out);
  status       = lzma_code(z, LZMA_FINISH);
  w->in        = z->next_in;
  w->out       = z->next_out;
  if (status == LZMA_STREAM_END) w->done = 1;
  else if (status == LZMA_BUF_ERROR) return Early(f);
  else if (status == LZMA_MEM_ERROR) return GPUCSRFaultSet(f, 0, 0, "no memory to decompress");
  else if (status != LZMA_OK) return GPUCSRFaultSet(f, 0, 0, "the compressed data are damaged: liblzma says %d", (int)status);
  return 0;
}

static void CloseXz(void *state)
{
  if (state) lzma_end((lzma_stream *)state);
  free(state);
}
#else
  #define OpenXz   NULL
  #define DecodeXz NULL
  #define CloseXz  NULL
#endif

#if defined(GPUCSR_HAVE_BZ2)
static int OpenBzip2(void **state)
{
  bz_stream *z = (bz_stream *)calloc(1, sizeof(*z));

  *state = z;
  return !z || BZ2_bzDecompressInit(z, 0, 0) != BZ_OK;
}

static int DecodeBzip2(void *state, Flow *w, GPUCSRFault *f)
{
  bz_stream           *z  = (bz_stream *)state;
  const unsigned char *in = w->in, *out = w->out;
  int                  status;

  z->next_in   = (char *)w->in;
  z->avail_in  = (unsigned int)Give((size_t)(w->in_end - w->in));
  z->next_out  = (char *)w->out;
  z->avail_out = (unsigned int)Give((size_t)(w->out_end - w->out));
  status       = BZ2_bzDecompress(z);
  w->in        = (const unsigned char *)z->next_in;
  w->out       = (unsigned char *)z->next_out;
  if (status == BZ_STREAM_END) {
    if (w->in == w->in_end) w->done = 1;
    else { /* another stream follows */ BZ2_bzDecompressEnd(z);
      memset(z, 0, sizeof(*z));
      if (BZ2_bzDecompressInit(z, 0, 0) != BZ_OK) return GPUCSRFaultSet(f, 0, 0, "no memory to decompress");
    }
    return 0;
  }
  if (status == BZ_MEM_ERROR) return GPUCSRFaultSet(f, 0, 0, "no memory to decompress");
  if (status != BZ_OK) return GPUCSRFaultSet(f, 0, 0, "the compressed data are damaged: libbz2 says %d", status);
  if (w->in == in && w->out == out) return Early(f);
  return 0;
}

static void CloseBzip2(void *state)
{
  if (state) BZ2_bzDecompressEnd((bz_stream *)state);
  free(state);
}
#else
  #define OpenBzip2   NULL
  #define DecodeBzip2 NULL
  #define CloseBzip2  NULL
#endif

/* Those without a library are recognized, and refused */
static const Decoder decoders[] = {
  {"gzip",  "zlib",    {0x1f, 0x8b},                       2, OpenGzip,  DecodeGzip,  CloseGzip },
  {"xz",    "liblzma", {0xfd, '7', 'z', 'X', 'Z', 0},      6, OpenXz,    DecodeXz,    CloseXz   },
  {"bzip2", "libbz2",  {'B', 'Z', 'h'},                    3, OpenBzip2, DecodeBzip2, CloseBzip2},
  {"zstd",  NULL,      {0x28, 0xb5, 0x2f, 0xfd},           4, NULL,      NULL,        NULL      },
  {"zip",   NULL,      {'P', 'K', 3, 4},                   4, NULL,      NULL,        NULL      },
  {"7-Zip", NULL,      {'7', 'z', 0xbc, 0xaf, 0x27, 0x1c}, 6, NULL,      NULL,        NULL      }
};

/* ---- A source */

struct GPUCSRSource_s {
  const char *file;   /* mapped, or somebody else's memory */
  size_t      length; /* of it */
  int         mapped;
  const char *map;   /* its text: the same, or a copy that ends in a line feed */
  size_t      bytes; /* of it */
  /* mapped text: what is handed out */
  size_t begin, end; /* of this part, between lines */
  size_t skip;       /* behind the header */
  size_t block;
  char  *tail; /* the last line, where it has no line feed, with one */
  size_t ntail;
  /* a stream */
  const Decoder *decoder;
  void          *state;
  Flow           flow;
  char          *text; /* decompressed and not handed out */
  size_t         ntext, room;
  size_t         handed; /* text so far */
  int            begun;  /* the first bytes were looked at */
  int            binary; /* they are PETSc's: there are no lines */
  int64_t        line;
};

/* Length of the mark that some editors put in front of UTF-8 */
static size_t ByteOrderMark(const char text[], size_t bytes)
{
  return bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
}

static int Decompress(GPUCSRSource *s, size_t atleast, GPUCSRFault *f)
{
  if (!s->begun && atleast < 8) atleast = 8; /* what tells the format */
  while (s->ntext < atleast && !s->flow.done) {
    if (s->room < atleast + 1) {
      char *text = (char *)realloc(s->text, atleast + 1); /* 1: a line feed at the end of the file */

      if (!text) return GPUCSRFaultSet(f, 0, 0, "no memory for %zu bytes of text", atleast);
      s->text = text;
      s->room = atleast + 1;
    }
    s->flow.out     = (unsigned char *)s->text + s->ntext;
    s->flow.out_end = (unsigned char *)s->text + s->room - 1;
    if (s->decoder->decode(s->state, &s->flow, f)) return 1;
    s->ntext = (size_t)((char *)s->flow.out - s->text);
    if (!s->begun && (s->ntext >= 8 || s->flow.done)) {
      const size_t mark = ByteOrderMark(s->text, s->ntext);

      s->begun  = 1;
      s->binary = GPUCSRTextSniff(s->text, s->ntext) == GPUCSR_TEXT_PETSC;
      s->ntext -= mark;
      memmove(s->text, s->text + mark, s->ntext);
    }
    if (s->flow.done && s->ntext && s->text[s->ntext - 1] != '\n' && !s->binary) s->text[s->ntext++] = '\n';
  }
  return 0;
}

int GPUCSRSourceMemory(const void *data, size_t bytes, GPUCSRSource **source, GPUCSRFault *f)
{
  GPUCSRSource *s = (GPUCSRSource *)calloc(1, sizeof(*s));

  *source = NULL;
  if (!s) return GPUCSRFaultSet(f, 0, 0, "no memory");
  s->file = s->map = (const char *)data;
  s->length = s->bytes = s->end = bytes;
  s->block                      = 1 << 22;
  s->line                       = 1;
  for (size_t k = 0; k < sizeof(decoders) / sizeof(decoders[0]); k++) {
    const Decoder *d = &decoders[k];

    if (bytes < d->nmagic || memcmp(data, d->magic, d->nmagic)) continue;
    if (!d->open) {
      free(s);
      return GPUCSRFaultSet(f, 0, 0, "is compressed by %s, which %s%s: decompress it first", d->name, d->library ? "needs a gpucsr that was built with " : "is not read", d->library ? d->library : "");
    }
    s->decoder     = d;
    s->flow.in     = (const unsigned char *)data;
    s->flow.in_end = s->flow.in + bytes;
    if (d->open(&s->state)) {
      GPUCSRSourceClose(s);
      return GPUCSRFaultSet(f, 0, 0, "no memory to decompress");
    }
    *source = s;
    return 0;
  }
  s->map += ByteOrderMark(s->map, bytes);
  s->bytes = s->end = bytes -= (size_t)(s->map - s->file);
  if (bytes && s->map[bytes - 1] != '\n' && GPUCSRTextSniff(s->map, bytes) != GPUCSR_TEXT_PETSC) {
    size_t n = 0;

    if (bytes <= s->block) { /* so that a header is never part of the tail */
      s->text = (char *)malloc(bytes + 1);
      if (!s->text) {
        free(s);
        return GPUCSRFaultSet(f, 0, 0, "no memory for %zu bytes of text", bytes);
      }
      memcpy(s->text, s->map, bytes);
      s->text[bytes] = '\n';
      s->map         = s->text;
      s->bytes = s->end = bytes + 1;
      *source           = s;
      return 0;
    }

    while (n < bytes && s->map[bytes - 1 - n] != '\n') n++;
    s->ntail = n + 1;
    s->tail  = (char *)malloc(s->ntail);
    if (!s->tail) {
      free(s);
      return GPUCSRFaultSet(f, 0, 0, "no memory for a line of %zu bytes", n);
    }
    memcpy(s->tail, s->map + bytes - n, n);
    s->tail[n] = '\n';
    s->end     = bytes - n;
  }
  *source = s;
  return 0;
}

int GPUCSRSourceOpen(const char name[], GPUCSRSource **source, GPUCSRFault *f)
{
  struct stat st;
  void       *map = NULL;
  int         fd  = open(name, O_RDONLY | O_CLOEXEC);

  *source = NULL;
  if (fd < 0) return GPUCSRFaultSet(f, 0, 0, "cannot be opened: %s", strerror(errno));
  if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
    close(fd);
    return GPUCSRFaultSet(f, 0, 0, "is not a regular file");
  }
  if (st.st_size) map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (map == MAP_FAILED) return GPUCSRFaultSet(f, 0, 0, "cannot be mapped: %s", strerror(errno));
  if (map) madvise(map, (size_t)st.st_size, MADV_SEQUENTIAL);
  if (GPUCSRSourceMemory(map ? map : "", (size_t)st.st_size, source, f)) {
    if (map) munmap(map, (size_t)st.st_size);
    return 1;
  }
  (*source)->mapped = map != NULL;
  return 0;
}

void GPUCSRSourceClose(GPUCSRSource *s)
{
  if (!s) return;
  if (s->decoder) s->decoder->close(s->state);
  if (s->mapped) munmap((void *)s->file, s->length);
  free(s->tail);
  free(s->text);
  free(s);
}

int GPUCSRSourceIsStream(const GPUCSRSource *s)
{
  return s->decoder != NULL;
}

int64_t GPUCSRSourceBytes(const GPUCSRSource *s)
{
  return (int64_t)s->length;
}

int64_t GPUCSRSourceText(const GPUCSRSource *s)
{
  return (int64_t)(s->decoder ? s->handed : s->length);
}

double GPUCSRSourceDone(const GPUCSRSource *s)
{
  if (!s->bytes) return 1;
  return (s->decoder ? (double)((const char *)s->flow.in - s->map) : (double)s->begin) / (double)s->bytes;
}

/* Whole lines. Of a file that is one line without a line feed the tail is all */
int GPUCSRSourceHead(GPUCSRSource *s, const char **text, size_t *bytes, GPUCSRFault *f)
{
  *text  = s->end ? s->map : s->tail;
  *bytes = s->end ? s->end : s->ntail;
  if (s->decoder) {
    *bytes = 0;
    for (size_t want = s->block; !*bytes; want *= 2) { /* a line at the least */
      if (Decompress(s, want, f)) return 1;
      *text  = s->text;
      *bytes = s->ntext;
      while (*bytes && s->text[*bytes - 1] != '\n' && !s->binary) --*bytes;
      if (s->flow.done) break;
    }
  }
  return *bytes ? 0 : GPUCSRFaultSet(f, 0, 0, "is empty");
}

int GPUCSRSourceWhole(GPUCSRSource *s, const char **text, size_t *bytes, GPUCSRFault *f)
{
  if (!s->decoder) {
    if (s->ntail) { /* the last line has to end */
      char *copy = (char *)malloc(s->bytes + 1);

      if (!copy) return GPUCSRFaultSet(f, 0, 0, "no memory for %zu bytes of text", s->bytes);
      memcpy(copy, s->map, s->bytes);
      copy[s->bytes] = '\n';
      free(s->text);
      s->text = copy;
    }
    *text  = s->ntail ? s->text : s->map;
    *bytes = s->bytes + (s->ntail > 0);
    return 0;
  }
  for (size_t want = s->block; !s->flow.done; want = 2 * s->ntext)
    if (Decompress(s, want, f)) return 1;
  *text     = s->text;
  *bytes    = s->ntext;
  s->handed = s->ntext;
  return 0;
}

void GPUCSRSourceSkip(GPUCSRSource *s, size_t bytes, int64_t lines)
{
  s->line += lines;
  if (s->decoder) {
    memmove(s->text, s->text + bytes, s->ntext - bytes);
    s->ntext -= bytes;
    s->handed += bytes;
  } else if (s->end) {
    s->skip = s->begin = bytes;
  } else s->ntail = 0; /* the header was all */
}

/* Where the first line begins that begins at or behind this place */
static size_t LineBegin(const GPUCSRSource *s, size_t at)
{
  const char *p;

  if (at <= s->skip) return s->skip;
  if (at >= s->end) return s->end;
  p = (const char *)memchr(s->map + at - 1, '\n', s->end - at + 1);
  return (size_t)(p - s->map) + 1;
}

void GPUCSRSourcePart(GPUCSRSource *s, int rank, int size, size_t blockbytes)
{
  s->block = blockbytes;
  if (s->decoder) return;
  const size_t text = s->end - s->skip, begin = s->skip + text / (size_t)size * (size_t)rank, end = s->skip + text / (size_t)size * (size_t)(rank + 1);

  s->begin = LineBegin(s, begin);
  if (rank + 1 < size) {
    s->end   = LineBegin(s, end);
    s->ntail = 0;
  }
}

int GPUCSRSourceNext(GPUCSRSource *s, GPUCSRBlock *b, GPUCSRFault *f)
{
  memset(b, 0, sizeof(*b));
  if (!s->decoder) {
    b->offset = s->begin;
    if (s->begin < s->end) {
      const size_t end = LineBegin(s, s->end - s->begin > s->block ? s->begin + s->block : s->end);

      b->text  = s->map + s->begin;
      b->bytes = end - s->begin;
      s->begin = end;
    } else if (s->ntail) {
      b->text  = s->tail;
      b->bytes = s->ntail;
      s->ntail = 0;
      s->begin = s->bytes;
    }
    return 0;
  }
  for (size_t want = s->block;; want *= 2) {
    size_t n, rest;
    char  *text;

    if (Decompress(s, want, f)) return 1;
    n = s->ntext;
    while (n && s->text[n - 1] != '\n') n--;
    if (!n && s->ntext) continue; /* a line longer than the block */
    if (!n) return 0;
    rest = s->ntext - n;
    text = (char *)malloc(rest > s->block ? rest + 1 : s->block + 1);
    if (!text) return GPUCSRFaultSet(f, 0, 0, "no memory for a block of text");
    memcpy(text, s->text + n, rest);
    b->text = b->owned = s->text;
    b->bytes           = n;
    b->line            = s->line;
    s->text            = text;
    s->ntext           = rest;
    s->room            = rest > s->block ? rest + 1 : s->block + 1;
    s->handed += n;
    for (const char *p = b->text, *end = p + n; p < end; s->line++) p = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
    return 0;
  }
}

int64_t GPUCSRSourceLine(const GPUCSRSource *s, const GPUCSRBlock *b)
{
  int64_t line = 1;

  if (s->decoder) return b->line;
  for (const char *p = s->map, *end = p + b->offset; p < end && (p = (const char *)memchr(p, '\n', (size_t)(end - p))); p++) line++;
  return line;
}

/* ---- Parsing by threads */

void GPUCSRBlockParse(const GPUCSRTextHeader *h, int skip, GPUCSRBlock *b)
{
  if (h->format == GPUCSR_TEXT_LIBSVM) GPUCSRLibsvmParse(h, b->text, b->bytes, skip, &b->piece);
  else GPUCSRMarketParse(h, b->text, b->bytes, skip, &b->piece);
}

void GPUCSRBlockDestroy(GPUCSRBlock *b)
{
  GPUCSRPieceDestroy(&b->piece);
  free(b->owned);
  memset(b, 0, sizeof(*b));
}

typedef struct {
  GPUCSRBlock *block;
  size_t       n;
  GPUCSRFault  fault;
  int          failed;
} Batch;

static void Fetch(GPUCSRSource *s, size_t depth, Batch *batch)
{
  for (batch->n = 0; batch->n < depth; batch->n++) {
    batch->failed = GPUCSRSourceNext(s, &batch->block[batch->n], &batch->fault);
    if (batch->failed || !batch->block[batch->n].bytes) break;
  }
}

/* While threads parse one batch, the next one is decompressed */
int GPUCSRSourceParse(GPUCSRSource *s, const GPUCSRTextHeader *h, int skip, int threads, size_t depth, GPUCSRBlockFn handle, void *ctx, GPUCSRFault *f)
{
  Batch  batch[2];
  int    now = 0, failed = 0;
  size_t handled;

  memset(batch, 0, sizeof(batch));
  for (int k = 0; k < 2; k++) batch[k].block = (GPUCSRBlock *)calloc(depth, sizeof(GPUCSRBlock));
  if (!batch[0].block || !batch[1].block) failed = GPUCSRFaultSet(f, 0, 0, "no memory for %zu blocks", depth);
  else Fetch(s, depth, &batch[0]);
  for (; !failed && batch[now].n; now = !now) {
    Batch *const b = &batch[now], *const next = &batch[!now];

#pragma omp parallel num_threads(threads)
#pragma omp          single
    {
      for (size_t k = 0; k < b->n; k++) {
                 GPUCSRBlock *block = &b->block[k];

#pragma omp task firstprivate(block)
        GPUCSRBlockParse(h, skip, block);
      }
      if (!b->failed) Fetch(s, depth, next);
    }
    for (handled = 0; handled < b->n; handled++) {
      GPUCSRBlock *block = &b->block[handled];

      if (!failed && block->piece.fault.why[0]) {
        *f = block->piece.fault;
        if (f->line) f->line += GPUCSRSourceLine(s, block) - 1;
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

GPUCSRTextFormat GPUCSRTextSniff(const char text[], size_t bytes)
{
  static const unsigned char mat[4] = {0x00, 0x12, 0x7b, 0x50}, wide[8] = {0, 0, 0, 0, 0x00, 0x12, 0x7b, 0x50}; /* MAT_FILE_CLASSID, 1211216 */

  if (bytes >= 4 && !memcmp(text, mat, 4)) return GPUCSR_TEXT_PETSC;
  if (bytes >= 8 && !memcmp(text, wide, 8)) return GPUCSR_TEXT_PETSC;
  if (bytes >= 2 && text[0] == '%' && text[1] == '%') return GPUCSR_TEXT_MARKET;
  if (LooksBoeing(text, bytes)) return GPUCSR_TEXT_BOEING;
  return GPUCSR_TEXT_LIBSVM;
}

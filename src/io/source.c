/*
  Sources of text, cut at line ends into blocks.

  A plain regular file, or memory, is readable at any place: a block is a range of the file, and the thread that parses the block reads the range. A compressed file or a pipe is a stream: its
  bytes come in order, through a decoder. Files are not mapped, so a shrinking file causes an error and not a signal.
*/
#include "decode.h"
#include "formats/number.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
  BLOCK  = 1 << 22, /* bytes of a block by default */
  INPUT  = 1 << 20, /* bytes of a stream that are read at once */
  WINDOW = 1 << 12, /* window of the search for the end of a line */
  WAIT   = 5        /* seconds that a named pipe may be without a writer */
};

static const size_t longest = (size_t)1 << 32; /* longest line of a stream, which must fit into memory */

struct GPUCSRInput_s {
  int         fd;     /* -1: memory */
  const char *memory; /* the caller's, or */
  char       *owned;  /* our own */
  int         regular;
  size_t      length; /* of the file; 0 for a pipe */
  char       *head;   /* the beginning, for GPUCSRInputHead() */
  size_t      block, handed;
  int         rank, ranks; /* that share the file */
  int64_t     line;        /* of a stream: the next one */
  /* read at any place */
  size_t mark;       /* length of the byte order mark; places count from its end */
  size_t size;       /* of the text */
  size_t begin, end; /* the rest of this part, between lines */
  size_t skip;       /* behind the header */
  /* a stream */
  const Decoder *decoder;
  void          *state;
  Flow           flow;
  unsigned char *input; /* INPUT bytes, for a file */
  size_t         taken; /* bytes of the file so far */
  char          *text;  /* decoded and not handed out */
  size_t         ntext, room;
  int            begun;  /* the first bytes were looked at */
  int            binary; /* PETSc binary: there are no lines */
};

/* Length of the mark that some editors write before UTF-8 */
static size_t ByteOrderMark(const char text[], size_t bytes)
{
  return bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
}

/* PETSc binary begins with the class id of a matrix, in 32 or 64 bits */
int GPUCSRIsBinary(const char text[], size_t bytes)
{
  static const char wide[8] = {0, 0, 0, 0, 0, 0x12, 0x7b, 0x50};

  return (bytes >= 4 && !memcmp(text, wide + 4, 4)) || (bytes >= 8 && !memcmp(text, wide, 8));
}

/* ---- Open and close */

static GPUCSRInput *InputCreate(GPUCSRFault *f)
{
  GPUCSRInput *s = (GPUCSRInput *)calloc(1, sizeof(*s));

  if (!s) {
    GPUCSRFaultSet(f, 0, 0, "no memory");
    return NULL;
  }
  s->fd    = -1;
  s->line  = 1;
  s->block = BLOCK;
  s->ranks = 1;
  return s;
}

void GPUCSRInputClose(GPUCSRInput *s)
{
  if (!s) return;
  if (s->decoder) s->decoder->close(s->state);
  if (s->fd >= 0) close(s->fd);
  free(s->owned);
  free(s->head);
  free(s->input);
  free(s->text);
  free(s);
}

static int OpenDecoder(GPUCSRInput *s, const Decoder *d, GPUCSRFault *f)
{
  s->decoder = d;
  return d->open(&s->state) ? GPUCSRFaultSet(f, 0, 0, "no memory to decompress") : 0;
}

/* Text that can be read at any place: without its mark */
static int OpenPlaces(GPUCSRInput *s, GPUCSRFault *f)
{
  char mark[3];

  s->size = s->length;
  if (s->size >= sizeof(mark)) {
    if (GPUCSRInputRead(s, 0, sizeof(mark), mark, f)) return 1;
    s->mark = ByteOrderMark(mark, sizeof(mark));
  }
  s->size -= s->mark;
  s->end = s->size;
  return 0;
}

int GPUCSRInputMemory(const void *data, size_t bytes, GPUCSRInput **source, GPUCSRFault *f)
{
  GPUCSRInput   *s = *source = InputCreate(f);
  const Decoder *d;
  int            failed;

  if (!s) return 1;
  s->memory = (const char *)data;
  s->length = bytes;
  failed    = GPUCSRDecoderFind(data, bytes, &d, f);
  if (!failed && d) {
    s->flow.in     = (const unsigned char *)data;
    s->flow.in_end = s->flow.in + bytes;
    s->flow.last   = 1;
    failed         = OpenDecoder(s, d, f);
  } else if (!failed) failed = OpenPlaces(s, f);
  if (!failed) return 0;
  GPUCSRInputClose(s);
  *source = NULL;
  return 1;
}

/* "-", /dev/stdin and /dev/fd/N are open already: their descriptor, or -1 */
static int AlreadyOpen(const char name[])
{
  static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

  if (!strcmp(name, "-") || !strcmp(name, "/dev/stdin")) return STDIN_FILENO;
  for (size_t k = 0; k < sizeof(folders) / sizeof(folders[0]); k++) {
    const size_t n = strlen(folders[k]);
    int64_t      fd;
    const char  *end = strncmp(name, folders[k], n) ? NULL : GPUCSRWhole(name + n, &fd);

    if (end && !*end && fd <= INT_MAX) return (int)fd;
  }
  return -1;
}

/* Reads at most so many bytes: returns their number, 0 at the end, negative after an error */
static ssize_t ReadSome(const GPUCSRInput *s, void *to, size_t bytes, GPUCSRFault *f)
{
  for (;;) {
    const ssize_t n = s->regular ? pread(s->fd, to, bytes, (off_t)s->taken) : read(s->fd, to, bytes); /* the position of a file that was already open stays */

    if (n >= 0) return n;
    if (errno == EAGAIN) {
      struct pollfd p = {s->fd, POLLIN, 0};

      poll(&p, 1, -1);
    } else if (errno != EINTR) return GPUCSRFaultSet(f, 0, 0, "cannot be read: %s", strerror(errno)), -1;
  }
}

/* The first bytes of a pipe. A named pipe without a writer reads as ended, so wait a little for a writer */
static int FillFirst(GPUCSRInput *s, int named, GPUCSRFault *f)
{
  const struct timespec pause = {0, 10000000};
  const time_t          begun = time(NULL);

  while (s->taken < MAGIC) {
    const ssize_t n = ReadSome(s, s->input + s->taken, INPUT - s->taken, f);

    if (n < 0) return 1;
    s->taken += (size_t)n;
    if (n) continue;
    if (!named || s->taken) break;
    if (time(NULL) - begun > WAIT) return GPUCSRFaultSet(f, 0, 0, "is a named pipe without a writer for %d seconds", WAIT);
    nanosleep(&pause, NULL);
  }
  s->flow.in     = s->input;
  s->flow.in_end = s->input + s->taken;
  s->flow.last   = s->taken < MAGIC;
  return 0;
}

/* The kind of the open file, and how to read it */
static int OpenFile(GPUCSRInput *s, int named, int others, GPUCSRFault *f)
{
  struct stat    st;
  const Decoder *d;
  char           magic[MAGIC];

  if (fstat(s->fd, &st)) return GPUCSRFaultSet(f, 0, 0, "cannot be read: %s", strerror(errno));
  if (S_ISDIR(st.st_mode)) return GPUCSRFaultSet(f, 0, 0, "is a folder");
  if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode) && !isatty(s->fd)) return GPUCSRFaultSet(f, 0, 0, "is a device: neither a regular file nor a pipe");
  s->regular = S_ISREG(st.st_mode) && (named || (!others && !lseek(s->fd, 0, SEEK_CUR))); /* an open file may be positioned in its middle */
  s->input   = (unsigned char *)malloc(INPUT);
  if (!s->input) return GPUCSRFaultSet(f, 0, 0, "no memory");
  if (s->regular) {
    const size_t n = PetscMin((size_t)st.st_size, sizeof(magic));

    s->length = (size_t)st.st_size;
    if (GPUCSRInputRead(s, 0, n, magic, f) || GPUCSRDecoderFind(magic, n, &d, f)) return 1;
    return d ? OpenDecoder(s, d, f) : OpenPlaces(s, f);
  }
  if (FillFirst(s, named && S_ISFIFO(st.st_mode), f) || GPUCSRDecoderFind(s->input, s->taken, &d, f)) return 1;
  return OpenDecoder(s, d ? d : &GPUCSRDecoderCopy, f);
}

int GPUCSRInputOpen(const char name[], int others, GPUCSRInput **source, GPUCSRFault *f)
{
  GPUCSRInput *s = *source = InputCreate(f);
  const int    already     = AlreadyOpen(name);

  if (!s) return 1;
  s->fd = already >= 0 ? fcntl(already, F_DUPFD_CLOEXEC, 0) : open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* without O_NONBLOCK a named pipe waits for a writer */
  if (s->fd < 0) GPUCSRFaultSet(f, 0, 0, "cannot be opened: %s", strerror(errno));
  else if (!OpenFile(s, already < 0, others, f)) return 0;
  GPUCSRInputClose(s);
  *source = NULL;
  return 1;
}

int GPUCSRInputIsStream(const GPUCSRInput *s)
{
  return s->decoder != NULL;
}

int64_t GPUCSRInputBytes(const GPUCSRInput *s)
{
  return (int64_t)s->length;
}

int64_t GPUCSRInputText(const GPUCSRInput *s)
{
  return (int64_t)(s->decoder ? s->handed : s->length);
}

size_t GPUCSRInputSize(const GPUCSRInput *s)
{
  return s->size;
}

/* ---- Reading */

int GPUCSRInputRead(const GPUCSRInput *s, size_t at, size_t bytes, void *to, GPUCSRFault *f)
{
  if (s->fd < 0) {
    if (bytes) memcpy(to, s->memory + s->mark + at, bytes);
    return 0;
  }
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = pread(s->fd, (char *)to + done, bytes - done, (off_t)(s->mark + at + done));

    if (n > 0) done += (size_t)n;
    else if (n < 0 && errno == EINTR) continue;
    else if (n < 0) return GPUCSRFaultSet(f, 0, 0, "cannot be read: %s", strerror(errno));
    else return GPUCSRFaultSet(f, 0, 0, "was cut short during reading: it had %zu bytes, and now ends before byte %zu", s->length, s->mark + at + bytes);
  }
  return 0;
}

static int Decode(GPUCSRInput *s, size_t atleast, GPUCSRFault *f)
{
  if (!s->begun && atleast < MAGIC) atleast = MAGIC;
  while (s->ntext < atleast && !s->flow.done) {
    if (s->room < atleast + 1) {
      char *text = (char *)realloc(s->text, atleast + 1); /* 1: a line feed at the end of the file */

      if (!text) return GPUCSRFaultSet(f, 0, 0, "no memory for %zu bytes of text", atleast);
      s->text = text;
      s->room = atleast + 1;
    }
    if (s->flow.in == s->flow.in_end && !s->flow.last) { /* more of the file for the decoder */
      const ssize_t n = ReadSome(s, s->input, INPUT, f);

      if (n < 0) return 1;
      s->flow.in     = s->input;
      s->flow.in_end = s->input + n;
      s->flow.last   = n == 0;
      s->taken += (size_t)n;
    }
    s->flow.out     = (unsigned char *)s->text + s->ntext;
    s->flow.out_end = (unsigned char *)s->text + s->room - 1;
    if (GPUCSRDecode(s->decoder, &s->state, &s->flow, f)) return 1;
    s->ntext = (size_t)((char *)s->flow.out - s->text);
    if (!s->begun && (s->ntext >= MAGIC || s->flow.done)) {
      const size_t mark = ByteOrderMark(s->text, s->ntext);

      s->begun  = 1;
      s->binary = GPUCSRIsBinary(s->text, s->ntext);
      s->ntext -= mark;
      memmove(s->text, s->text + mark, s->ntext);
    }
    if (s->flow.done && s->ntext && s->text[s->ntext - 1] != '\n' && !s->binary) s->text[s->ntext++] = '\n';
  }
  return 0;
}

int GPUCSRInputHead(GPUCSRInput *s, size_t want, char **text, size_t *bytes, int *more, GPUCSRFault *f)
{
  char *head;

  if (s->decoder && Decode(s, want, f)) return 1;
  *bytes = s->decoder ? PetscMin(want, s->ntext) : PetscMin(want, s->size);
  *more  = s->decoder ? *bytes < s->ntext || !s->flow.done : *bytes < s->size;
  if (!*bytes) return GPUCSRFaultSet(f, 0, 0, "is empty");
  head = (char *)realloc(s->head, *bytes + 1);
  if (!head) return GPUCSRFaultSet(f, 0, 0, "no memory for %zu bytes of text", *bytes);
  *text = s->head = head;
  if (s->decoder) memcpy(head, s->text, *bytes);
  else if (GPUCSRInputRead(s, 0, *bytes, head, f)) return 1;
  return 0;
}

const char *GPUCSRInputWhole(GPUCSRInput *s, GPUCSRFault *f)
{
  if (s->decoder) { /* all of a stream, which then is no stream */
    for (size_t want = s->block; !s->flow.done; want = 2 * s->ntext)
      if (Decode(s, want, f)) return NULL;
    s->decoder->close(s->state);
    s->decoder = NULL;
    s->memory = s->owned = s->text;
    s->text              = NULL;
    s->size = s->end = s->length = s->ntext;
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
  } else if (s->fd >= 0) {
    s->owned = (char *)malloc(s->size + 1);
    if (!s->owned) GPUCSRFaultSet(f, 0, 0, "no memory for %zu bytes of text", s->size);
    if (!s->owned || GPUCSRInputRead(s, 0, s->size, s->owned, f)) return NULL;
    close(s->fd);
    s->fd     = -1;
    s->memory = s->owned;
    s->mark   = 0;
  }
  return s->memory + s->mark;
}

/* ---- Blocks */

/* The start of the first line at or after this place */
static int LineBegin(const GPUCSRInput *s, size_t at, size_t *begin, GPUCSRFault *f)
{
  char text[WINDOW];

  *begin = at <= s->skip ? s->skip : s->end;
  if (at <= s->skip) return 0;
  for (at--; at < s->end; at += sizeof(text)) {
    const size_t n = PetscMin(sizeof(text), s->end - at);
    const char  *p;

    if (GPUCSRInputRead(s, at, n, text, f)) return 1;
    p = (const char *)memchr(text, '\n', n);
    if (!p) continue;
    *begin = at + (size_t)(p - text) + 1;
    return 0;
  }
  return 0;
}

int GPUCSRInputPart(GPUCSRInput *s, const GPUCSRTextHeader *h, int rank, int size, size_t blockbytes, GPUCSRFault *f)
{
  size_t text, begin, end, bytes = h->bytes;

  s->block = blockbytes;
  s->rank  = rank;
  s->ranks = size;
  if (h->format == GPUCSR_TEXT_BOEING) return 0;
  s->line += h->lines;
  if (s->decoder) {
    bytes = PetscMin(bytes, s->ntext);
    memmove(s->text, s->text + bytes, s->ntext - bytes);
    s->ntext -= bytes;
    s->handed += bytes;
    return 0;
  }
  s->skip = PetscMin(bytes, s->size); /* the header's last line may be without a line feed */
  text    = s->end - s->skip;
  if (LineBegin(s, s->skip + text / (size_t)size * (size_t)rank, &begin, f) || LineBegin(s, s->skip + text / (size_t)size * (size_t)(rank + 1), &end, f)) return 1;
  s->begin = begin;
  if (rank + 1 < size) s->end = end;
  return 0;
}

void GPUCSRInputEntries(const GPUCSRInput *s, int64_t n, int64_t *first, int64_t *last, int64_t *step)
{
  *first = n / s->ranks * s->rank;
  *last  = s->rank + 1 == s->ranks ? n : n / s->ranks * (s->rank + 1);
  *step  = (int64_t)s->block / 16 + 1;
}

/* Whole lines of a stream */
static int NextOfStream(GPUCSRInput *s, GPUCSRBlock *b, GPUCSRFault *f)
{
  for (size_t want = s->block;; want *= 2) {
    size_t n, rest;
    char  *text;

    if (want > longest && want > s->block) return GPUCSRFaultSet(f, s->line, 0, "is a line of more than %zu bytes", longest);
    if (Decode(s, want, f)) return 1;
    n = s->ntext;
    while (n && s->text[n - 1] != '\n') n--;
    if (!n && s->ntext) continue; /* a line longer than the block */
    if (!n) return 0;
    rest = s->ntext - n;
    text = (char *)malloc(PetscMax(rest, s->block) + 1);
    if (!text) return GPUCSRFaultSet(f, 0, 0, "no memory for a block of text");
    memcpy(text, s->text + n, rest);
    b->text  = s->text;
    b->bytes = n;
    b->line  = s->line;
    s->text  = text;
    s->ntext = rest;
    s->room  = PetscMax(rest, s->block) + 1;
    s->handed += n;
    for (const char *p = b->text, *end = p + n; p < end; s->line++) p = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
    return 0;
  }
}

int GPUCSRInputNext(GPUCSRInput *s, GPUCSRBlock *b, GPUCSRFault *f)
{
  size_t end = s->end;

  memset(b, 0, sizeof(*b));
  if (s->decoder) return NextOfStream(s, b, f);
  if (s->end - s->begin > s->block && LineBegin(s, s->begin + s->block, &end, f)) return 1;
  b->source = s;
  b->offset = s->begin;
  b->bytes  = end - s->begin;
  s->begin  = end;
  return 0;
}

int GPUCSRBlockLoad(GPUCSRBlock *b, GPUCSRFault *f)
{
  if (b->text) return 0;
  b->text = (char *)malloc(b->bytes + 1);
  if (!b->text) return GPUCSRFaultSet(f, 0, 0, "no memory for a block of %zu bytes of text", b->bytes);
  if (GPUCSRInputRead(b->source, b->offset, b->bytes, b->text, f)) return 1;
  if (b->text[b->bytes - 1] != '\n') b->text[b->bytes++] = '\n'; /* the last line of the file */
  return 0;
}

int64_t GPUCSRBlockLine(const GPUCSRBlock *b)
{
  char        text[WINDOW];
  int64_t     line = 1;
  GPUCSRFault f;

  if (!b->source) return b->line;
  for (size_t at = 0; at < b->offset; at += sizeof(text)) {
    const size_t n = PetscMin(sizeof(text), b->offset - at);

    if (GPUCSRInputRead(b->source, at, n, text, &f)) break; /* the line number is part of a message already */
    for (const char *p = text; (p = (const char *)memchr(p, '\n', (size_t)(text + n - p))); p++) line++;
  }
  return line;
}

void GPUCSRBlockDestroy(GPUCSRBlock *b)
{
  GPUCSRPieceDestroy(&b->piece);
  free(b->text);
  memset(b, 0, sizeof(*b));
}

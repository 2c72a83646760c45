/*
  gpucsr-convert: a matrix from one file format into another, with statistics and a checksum.

  Rows stream from the reader to the writer, a batch at a time, so a file may be larger than memory. Triplets (Matrix Market, Harwell-Boeing) come in any
  order: beyond -memory they go through nameless files, one for each range of rows that fits, as a bucket sort. No PETSc is initialized.
*/
#include "convert.h"
#include "number.h"
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char usage[] = "Usage: gpucsr-convert [OPTIONS] INPUT [OUTPUT]\n"
                            "\n"
                            "Convert a sparse matrix between file formats, and say what it is like. Without OUTPUT, only the latter.\n"
                            "INPUT is a regular file: PETSc binary, LIBSVM or svmlight, Matrix Market, or Harwell-Boeing or Rutherford-Boeing, told by its content. It may be\n"
                            "compressed by gzip, xz or bzip2. OUTPUT is told by its name: .petsc .dat .bin, .svm .libsvm, .mtx, .rb; or by -to.\n"
                            "\n"
                            "  -from FORMAT      petsc, libsvm, market or boeing\n"
                            "  -to FORMAT        the same\n"
                            "  -base 0|1         LIBSVM: index of the first column; in INPUT 0 if an index 0 occurs, else 1; in OUTPUT 1\n"
                            "  -columns N        LIBSVM: columns of the matrix, if not the largest index of INPUT\n"
                            "  -skip             leave bad lines out and count them, instead of stopping at the first\n"
                            "  -threads N        that parse; default: one for each core\n"
                            "  -memory MB        for sorting entries by rows; default: half of the machine's\n"
                            "  -quiet            neither statistics nor a progress bar\n"
                            "\n"
                            "Labels of LIBSVM become the vector behind the matrix in PETSc binary. Exit status: 0, or 1 if the file is wrong, 2 if the command is.\n";

typedef struct {
  const char *input, *output, *from, *to;
  int64_t     base, columns, threads, memory; /* -1: not given */
  int         skip, quiet;
} Command;

typedef struct {
  const Command   *command;
  int              threads;
  int64_t          base; /* of LIBSVM's indices, as far as is known */
  GPUCSRSource    *source;
  GPUCSRTextHeader header;
  Statistics       statistics;
  Writer          *writer;
  int64_t          entries, skipped, skip; /* of the file; lines left out and the first of them */
  int              queries;                /* there are numbers after qid: */
  int              again;                  /* base was wrong: begin again */
  /* sorting */
  GPUCSRPiece *piece; /* all of them, where they fit into memory */
  size_t       npieces;
  int64_t      buckets, height, placed; /* otherwise: files, rows of each; entries of an array so far */
  FILE       **bucket;
  double       shown;
} Conversion;

typedef struct {
  PetscInt    i, j;
  PetscScalar v;
} Triplet;

static double Now(void)
{
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void Progress(Conversion *c, const char *what, double done)
{
  char bar[41];

  if (c->command->quiet || !isatty(STDERR_FILENO)) return;
  if (done >= 0 && Now() - c->shown < 0.1) return;
  c->shown = Now();
  for (int k = 0; k < 40; k++) bar[k] = k < 40 * done ? '#' : '.';
  bar[40] = 0;
  if (done < 0) fprintf(stderr, "\r\033[K");
  else fprintf(stderr, "\r%-8s [%s] %3.0f%%", what, bar, 100 * done);
  fflush(stderr);
}

/* A batch of rows to the statistics and to the output */
static int Deliver(Conversion *c, const Rows *rows, GPUCSRFault *f)
{
  StatisticsAdd(&c->statistics, rows, c->threads);
  if (!c->writer) return 0;
  c->writer->nz += rows->row[rows->m] - rows->row[0];
  return c->writer->rows(c->writer, rows, f);
}

/* ---- LIBSVM: rows in their order */

static int LibsvmBlock(void *ctx, GPUCSRBlock *block, GPUCSRFault *f)
{
  Conversion  *c = (Conversion *)ctx;
  GPUCSRPiece *p = &block->piece;
  Rows         rows;
  int64_t     *row;
  int          failed;

  if (p->skipped && !c->skipped) c->skip = p->skip + GPUCSRSourceLine(c->source, block) - 1;
  c->skipped += (int64_t)p->skipped;
  c->entries += (int64_t)p->nz;
  if (p->nz && p->low < c->base) {
    c->again = 1;
    return GPUCSRFaultSet(f, 0, 0, "begins with index 0");
  }
  row = (int64_t *)malloc((p->rows + 1) * sizeof(*row));
  if (!row) return GPUCSRFaultSet(f, 0, 0, "no memory for %zu rows", p->rows);
  row[0] = 0;
  for (size_t r = 0; r < p->rows; r++) row[r + 1] = row[r] + p->length[r];
  for (size_t k = 0; k < p->nz; k++) p->j[k] -= (PetscInt)c->base;
  if (p->query) c->queries = 1;
  rows.first = c->statistics.m;
  rows.m     = (int64_t)p->rows;
  rows.row   = row;
  rows.j     = p->j;
  rows.v     = p->v;
  rows.label = p->label;
  rows.query = p->query;
  failed     = Deliver(c, &rows, f);
  free(row);
  Progress(c, "convert", GPUCSRSourceDone(c->source));
  return failed;
}

/* ---- Triplets: sorted by rows, in memory or by files */

static int SortBegin(Conversion *c, GPUCSRFault *f)
{
  const int64_t m = c->header.m, memory = c->command->memory > 0 ? c->command->memory << 20 : (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 2;
  const double  needed = (double)c->header.entries * (c->header.symmetry == GPUCSR_GENERAL ? 1 : 2) * 2 * sizeof(Triplet);

  c->buckets = 1 + (int64_t)(needed / (double)memory);
  if (c->buckets > 512) c->buckets = 512;
  c->height = m / c->buckets + 1;
  if (c->buckets == 1) return 0;
  c->bucket = (FILE **)calloc((size_t)c->buckets, sizeof(*c->bucket));
  if (!c->bucket) return GPUCSRFaultSet(f, 0, 0, "no memory");
  for (int64_t k = 0; k < c->buckets; k++) {
    const char *folder = getenv("TMPDIR");
    char        name[4096];
    int         fd;

    if (c->command->output) snprintf(name, sizeof(name), "%s.XXXXXX", c->command->output);
    else snprintf(name, sizeof(name), "%s/gpucsr-convert.XXXXXX", folder ? folder : "/tmp");
    fd = mkstemp(name);
    if (fd >= 0) {
      unlink(name);
      c->bucket[k] = fdopen(fd, "w+");
    }
    if (!c->bucket[k]) return GPUCSRFaultSet(f, 0, 0, "no temporary file for sorting, number %lld: a larger -memory needs fewer", (long long)k + 1);
    setvbuf(c->bucket[k], NULL, _IOFBF, 1 << 16);
  }
  return 0;
}

static int SortPiece(Conversion *c, GPUCSRPiece *p, GPUCSRFault *f)
{
  c->entries += (int64_t)p->entries;
  c->skipped += (int64_t)p->skipped;
  if (c->header.array) {
    if (c->placed + (int64_t)p->nz > c->header.entries) return GPUCSRFaultSet(f, 0, 0, "more than the %lld entries that the sizes ask for", (long long)c->header.entries);
    GPUCSRMarketPlace(&c->header, c->placed, p);
    c->placed += (int64_t)p->nz;
  }
  if (c->buckets == 1) {
    GPUCSRPiece *more = (GPUCSRPiece *)realloc(c->piece, (c->npieces + 1) * sizeof(*more));

    if (!more) return GPUCSRFaultSet(f, 0, 0, "no memory");
    c->piece               = more;
    c->piece[c->npieces++] = *p;
    memset(p, 0, sizeof(*p));
    return 0;
  }
  for (size_t k = 0; k < p->nz; k++) {
    Triplet t = {p->i[k], p->j[k], p->v ? p->v[k] : (PetscScalar)1}, turned = {p->j[k], p->i[k], GPUCSRMirror(c->header.symmetry, t.v)};

    if (fwrite(&t, sizeof(t), 1, c->bucket[t.i / c->height]) != 1 || (c->header.symmetry != GPUCSR_GENERAL && t.i != t.j && fwrite(&turned, sizeof(turned), 1, c->bucket[turned.i / c->height]) != 1))
      return GPUCSRFaultSet(f, 0, 0, "a temporary file for sorting cannot be written");
  }
  return 0;
}

static int MarketBlock(void *ctx, GPUCSRBlock *block, GPUCSRFault *f)
{
  Conversion *c = (Conversion *)ctx;

  if (block->piece.skipped && !c->skipped) c->skip = block->piece.skip + GPUCSRSourceLine(c->source, block) - 1;
  Progress(c, "read", GPUCSRSourceDone(c->source));
  return SortPiece(c, &block->piece, f);
}

static int Boeing(Conversion *c, GPUCSRFault *f)
{
  const int64_t step = 1 << 20;
  const char   *text;
  size_t        bytes;
  GPUCSRLines   lines;
  GPUCSRPiece  *piece;
  int64_t      *pointer;
  int           failed;

  if (GPUCSRSourceWhole(c->source, &text, &bytes, f) || GPUCSRLinesCreate(text, bytes, c->threads, &lines, f)) return 1;
  piece  = (GPUCSRPiece *)calloc((size_t)c->threads, sizeof(*piece));
  failed = GPUCSRBoeingPointers(&c->header, &lines, &pointer, f);
  for (int64_t at = 0; !failed && at < c->header.entries; at += c->threads * step) {
#pragma omp parallel for num_threads(c->threads) schedule(static, 1)
    for (int t = 0; t < c->threads; t++) {
      const int64_t first = PetscMin(at + t * step, c->header.entries), last = PetscMin(first + step, c->header.entries);

      GPUCSRBoeingParse(&c->header, &lines, pointer, first, last, &piece[t]);
    }
    for (int t = 0; t < c->threads; t++) {
      if (!failed && piece[t].fault.why[0]) {
        *f     = piece[t].fault;
        failed = 1;
      }
      if (!failed) failed = SortPiece(c, &piece[t], f);
      GPUCSRPieceDestroy(&piece[t]);
    }
    Progress(c, "read", (double)at / (double)c->header.entries);
  }
  free(piece);
  free(pointer);
  GPUCSRLinesDestroy(&lines);
  return failed;
}

/* Rows rstart to rend out of pieces */
static int SortRows(Conversion *c, GPUCSRAssembly *A, GPUCSRFault *f)
{
  const int64_t m   = A->rend - A->rstart;
  int64_t      *row = (int64_t *)malloc((size_t)(m + 1) * sizeof(*row)), equal;
  Rows          rows;
  PetscInt     *j = NULL;
  PetscScalar  *v = NULL;
  int           failed;

  failed = row ? 0 : GPUCSRFaultSet(f, 0, 0, "no memory for %lld rows", (long long)m);
  if (!failed) {
    GPUCSRAssemblyCount(A, row);
    j      = (PetscInt *)malloc((size_t)row[m] * sizeof(*j) + 1);
    v      = (PetscScalar *)malloc((size_t)row[m] * sizeof(*v) + 1);
    failed = j && v ? GPUCSRAssemblyFill(A, 0, row, j, v, &equal, f) : GPUCSRFaultSet(f, 0, 0, "no memory for %lld entries: a smaller -memory sorts by files", (long long)row[m]);
  }
  if (!failed) {
    if (equal) GPUCSRAssemblyCompact(m, row, j, v);
    memset(&rows, 0, sizeof(rows));
    rows.first = A->rstart;
    rows.m     = m;
    rows.row   = row;
    rows.j     = j;
    rows.v     = v;
    failed     = Deliver(c, &rows, f);
  }
  free(row);
  free(j);
  free(v);
  return failed;
}

static int SortEnd(Conversion *c, GPUCSRFault *f)
{
  GPUCSRAssembly A = {c->header.symmetry, 0, c->header.m, c->npieces, c->piece, c->threads};

  if (c->buckets == 1) return SortRows(c, &A, f);
  A.symmetry = GPUCSR_GENERAL;
  for (int64_t k = 0; k < c->buckets; k++) {
    FILE       *in = c->bucket[k];
    GPUCSRPiece p;
    long        bytes = fflush(in) ? -1 : ftell(in);
    int         failed;

    if (bytes < 0 || fseek(in, 0, SEEK_SET)) return GPUCSRFaultSet(f, 0, 0, "a temporary file for sorting cannot be written");
    if (GPUCSRPieceAllocate(&p, 0, (size_t)bytes / sizeof(Triplet), 1, 1, f)) return 1;
    for (Triplet t; fread(&t, sizeof(t), 1, in) == 1; p.nz++) {
      p.i[p.nz] = t.i;
      p.j[p.nz] = t.j;
      p.v[p.nz] = t.v;
    }
    p.low     = 0;
    p.high    = PETSC_MAX_INT;
    A.rstart  = PetscMin(k * c->height, c->header.m);
    A.rend    = PetscMin(A.rstart + c->height, c->header.m);
    A.npieces = 1;
    A.piece   = &p;
    failed    = p.nz * sizeof(Triplet) != (size_t)bytes ? GPUCSRFaultSet(f, 0, 0, "a temporary file for sorting cannot be read") : SortRows(c, &A, f);
    GPUCSRPieceDestroy(&p);
    if (failed) return 1;
    Progress(c, "write", (double)(k + 1) / (double)c->buckets);
  }
  return 0;
}

/* ---- PETSc binary */

/* The first of n scalars that is not finite, or n */
static int64_t FirstInfinite(int64_t n, const PetscScalar v[])
{
  int64_t k = 0;

  while (k < n && isfinite(PetscRealPart(v[k])) && isfinite(PetscImaginaryPart(v[k]))) k++;
  return k;
}

static int Petsc(Conversion *c, const char *text, size_t bytes, GPUCSRFault *f)
{
  const int64_t batch = 1 << 22;
  GPUCSRBinary  b;
  int64_t      *row, at = 0;
  PetscInt     *j;
  PetscScalar  *v, *y = NULL;
  double       *label  = NULL;
  int           failed = 0;

  if (GPUCSRBinaryHeader(text, bytes, &b, f)) return 1;
  if (b.nz < 0) return GPUCSRFaultSet(f, 0, 0, "is a matrix that was stored dense, which is not read here");
  c->header.n = b.N;
  row         = (int64_t *)malloc((size_t)(b.M + 1) * sizeof(*row));
  if (!row) return GPUCSRFaultSet(f, 0, 0, "no memory for %lld rows", (long long)b.M);
  row[0] = 0;
  for (int64_t r = 0; r < b.M; r++) {
    const int64_t n = GPUCSRBinaryInteger(b.at + b.lengths + (size_t)r * b.width, b.width);

    if (n < 0 || n > b.N || row[r] + n > b.nz) {
      free(row);
      return GPUCSRFaultSet(f, 0, 0, "row %lld has %lld entries in a matrix of %lld columns and %lld entries", (long long)r, (long long)n, (long long)b.N, (long long)b.nz);
    }
    row[r + 1] = row[r] + n;
  }
  if (row[b.M] != b.nz) failed = GPUCSRFaultSet(f, 0, 0, "the rows have %lld entries together, the header says %lld", (long long)row[b.M], (long long)b.nz);
  for (int64_t r = 0; !failed && r < b.M;) {
    int64_t last = r + 1, bad, nz;
    Rows    rows;

    while (last < b.M && last - r < batch && row[last + 1] - row[r] <= batch) last++;
    nz     = row[last] - row[r];
    j      = (PetscInt *)malloc((size_t)nz * sizeof(*j) + 1);
    v      = (PetscScalar *)malloc((size_t)nz * sizeof(*v) + 1);
    failed = !j || !v ? GPUCSRFaultSet(f, 0, 0, "no memory for %lld entries", (long long)nz) : 0;
    for (int64_t k = last; k >= r; k--) row[k] -= at; /* from the start of the batch */
    if (!failed && (bad = GPUCSRBinaryColumns(&b, last - r, row + r, at, j, c->threads)) >= 0)
      failed = GPUCSRFaultSet(f, 0, 0, "the columns of row %lld do not increase, or are outside the matrix, of %lld columns", (long long)(r + bad), (long long)b.N);
    if (!failed) {
      GPUCSRBinaryReals(b.at + b.values + (size_t)at * sizeof(*v), nz * (int64_t)(sizeof(*v) / 8), v, c->threads);
      if ((bad = FirstInfinite(nz, v)) < nz) {
        for (nz = r; row[nz + 1] <= bad; nz++) {
        }
        failed = GPUCSRFaultSet(f, 0, 0, "row %lld has a value that is not a finite number", (long long)nz);
      }
      memset(&rows, 0, sizeof(rows));
      rows.first = r;
      rows.m     = last - r;
      rows.row   = row + r;
      rows.j     = j;
      rows.v     = v;
      if (b.labels) {
        y     = (PetscScalar *)malloc((size_t)rows.m * sizeof(*y));
        label = (double *)malloc((size_t)rows.m * sizeof(*label));
        if (y && label) {
          GPUCSRBinaryReals(b.at + b.labels + (size_t)r * sizeof(*y), rows.m * (int64_t)(sizeof(*y) / 8), y, c->threads);
          if (!failed && (bad = FirstInfinite(rows.m, y)) < rows.m) failed = GPUCSRFaultSet(f, 0, 0, "the label of row %lld is not a finite number", (long long)(r + bad));
          for (int64_t k = 0; k < rows.m; k++) label[k] = PetscRealPart(y[k]);
          rows.label = label;
        } else failed = GPUCSRFaultSet(f, 0, 0, "no memory for %lld labels", (long long)rows.m);
      }
      if (!failed) failed = Deliver(c, &rows, f);
      free(y);
      free(label);
    }
    free(j);
    free(v);
    row[last] += at;
    at = row[last];
    r  = last;
    Progress(c, "convert", (double)r / (double)b.M);
  }
  c->entries = b.nz;
  free(row);
  return failed;
}

/* ---- The whole */

static int Convert(Conversion *c, GPUCSRFault *f)
{
  static const char *const names[] = {"libsvm", "market", "boeing", "petsc"}; /* as GPUCSRTextFormat */
  const Command           *k       = c->command;
  GPUCSRTextHeader        *h       = &c->header;
  const char              *text;
  size_t                   bytes;
  int                      failed = 0;

  if (GPUCSRSourceOpen(k->input, &c->source, f) || GPUCSRSourceHead(c->source, &text, &bytes, f)) return 1;
  memset(h, 0, sizeof(*h));
  h->format = GPUCSRTextSniff(text, bytes);
  for (int i = 0; k->from && i < 4; i++)
    if (!strcmp(k->from, names[i])) h->format = (GPUCSRTextFormat)i;
  if (h->format == GPUCSR_TEXT_MARKET) failed = GPUCSRMarketHeader(text, bytes, h, f);
  if (h->format == GPUCSR_TEXT_BOEING) failed = GPUCSRBoeingHeader(text, bytes, h, f);
  if (h->format == GPUCSR_TEXT_PETSC) failed = GPUCSRSourceWhole(c->source, &text, &bytes, f);
  if (h->format == GPUCSR_TEXT_MARKET && !failed && !GPUCSRSourceIsStream(c->source) && (double)h->entries > 0.5 * ((double)GPUCSRSourceBytes(c->source) + 1))
    failed = GPUCSRFaultSet(f, h->lines, 0, "the file, of %lld bytes, is too short for the %lld entries announced here", (long long)GPUCSRSourceBytes(c->source), (long long)h->entries);
  if (failed) return 1;
  if (!k->quiet && !c->again) printf("read        %s: %s%s\n", k->input, names[h->format], GPUCSRSourceIsStream(c->source) ? ", compressed" : "");
  c->again = 0;
  if (k->output && WriterOpen(k->to, k->output, k->base >= 0 ? (int)k->base : 1, &c->writer, f)) return 1;
  if (h->format == GPUCSR_TEXT_LIBSVM) GPUCSRLibsvmBound(h, k->base >= 0 ? k->base : c->base ? -1 : 0, k->columns); /* unless an index 0 was met, the base is a guess */
  if (h->format == GPUCSR_TEXT_LIBSVM || h->format == GPUCSR_TEXT_MARKET) {                                         /* Harwell-Boeing is read as a whole, its header too */
    GPUCSRSourceSkip(c->source, h->bytes, h->lines);
    GPUCSRSourcePart(c->source, 0, 1, 1 << 22);
  }
  if (h->format == GPUCSR_TEXT_PETSC) failed = Petsc(c, text, bytes, f);
  else if (h->format == GPUCSR_TEXT_LIBSVM) {
    failed = GPUCSRSourceParse(c->source, h, k->skip, c->threads, 2 * (size_t)c->threads, LibsvmBlock, c, f);
    h->n   = k->columns >= 0 ? k->columns : c->statistics.n;
  } else {
    failed = SortBegin(c, f);
    if (!failed) failed = h->format == GPUCSR_TEXT_BOEING ? Boeing(c, f) : GPUCSRSourceParse(c->source, h, k->skip, c->threads, 2 * (size_t)c->threads, MarketBlock, c, f);
    if (!failed && c->entries != h->entries)
      failed = GPUCSRFaultSet(f, 0, 0, c->entries < h->entries ? "the file ends after %lld of %lld entries" : "has %lld entries, more than the %lld that the size line announces", (long long)c->entries, (long long)h->entries);
    if (!failed) failed = SortEnd(c, f);
  }
  c->statistics.n = h->n;
  Progress(c, "", -1);
  if (!failed && c->writer) failed = WriterFinish(c->writer, c->statistics.m, h->n, f);
  return failed;
}

static void Destroy(Conversion *c)
{
  GPUCSRSourceClose(c->source);
  WriterDestroy(c->writer);
  StatisticsDestroy(&c->statistics);
  for (size_t k = 0; k < c->npieces; k++) GPUCSRPieceDestroy(&c->piece[k]);
  free(c->piece);
  for (int64_t k = 0; c->bucket && k < c->buckets; k++)
    if (c->bucket[k]) fclose(c->bucket[k]);
  free(c->bucket);
}

/* The format that a name asks for, by its ending, or NULL */
static const char *ByName(const char *name)
{
  static const char *const endings[][2] = {
    {".petsc",  "petsc" },
    {".dat",    "petsc" },
    {".bin",    "petsc" },
    {".svm",    "libsvm"},
    {".libsvm", "libsvm"},
    {".mtx",    "market"},
    {".rb",     "boeing"}
  };
  const size_t length = strlen(name);

  for (size_t k = 0; k < sizeof(endings) / sizeof(endings[0]); k++) {
    const size_t n = strlen(endings[k][0]);

    if (length > n && !strcmp(name + length - n, endings[k][0])) return endings[k][1];
  }
  return NULL;
}

static int Compressed(const char *name)
{
  static const char *const endings[] = {".gz", ".xz", ".bz2", ".zst", ".zip"};
  const char              *ending    = strrchr(name, '.');

  for (size_t k = 0; ending && k < sizeof(endings) / sizeof(endings[0]); k++)
    if (!strcmp(ending, endings[k])) return 1;
  return 0;
}

static int Wrong(const char *what, const char *word)
{
  fprintf(stderr, "gpucsr-convert: %s%s\n%s", what, word, usage);
  return 2;
}

static int ReadCommand(int argc, char **argv, Command *k)
{
  static const char *const formats[] = {"petsc", "libsvm", "market", "boeing"};

  memset(k, 0, sizeof(*k));
  k->base = k->columns = k->threads = k->memory = -1;
  for (int a = 1; a < argc; a++) {
    const char *word   = argv[a];
    int64_t    *number = !strcmp(word, "-base") ? &k->base : !strcmp(word, "-columns") ? &k->columns : !strcmp(word, "-threads") ? &k->threads : !strcmp(word, "-memory") ? &k->memory : NULL;

    if (!strcmp(word, "-h") || !strcmp(word, "-help") || !strcmp(word, "--help")) {
      fputs(usage, stdout);
      exit(0);
    } else if (number) {
      const char *end = a + 1 < argc ? GPUCSRWhole(argv[++a], number) : NULL;

      if (!end || *end) return Wrong("expected a whole number after ", word);
    } else if (!strcmp(word, "-from") || !strcmp(word, "-to")) {
      const char *format = a + 1 < argc ? argv[++a] : "";
      int         found  = 0;

      for (int i = 0; i < 4; i++) found |= !strcmp(format, formats[i]);
      if (!found) return Wrong("expected petsc, libsvm, market or boeing after ", word);
      if (word[1] == 'f') k->from = format;
      else k->to = format;
    } else if (!strcmp(word, "-skip")) k->skip = 1;
    else if (!strcmp(word, "-quiet")) k->quiet = 1;
    else if (word[0] == '-' && word[1]) return Wrong("no such option: ", word);
    else if (!k->input) k->input = word;
    else if (!k->output) k->output = word;
    else return Wrong("one file too many: ", word);
  }
  if (!k->input) return Wrong("which file?", "");
  if (k->base > 1) return Wrong("-base is 0 or 1", "");
  if (k->columns > PETSC_MAX_INT) return Wrong("-columns: more than the integers of this PETSc can count", "");
  if (k->memory > INT64_MAX >> 20) return Wrong("-memory: more than a machine has, in MB", "");
  if (k->output && Compressed(k->output)) return Wrong("output is not compressed: leave the ending off of ", k->output);
  if (k->output && !k->to) k->to = ByName(k->output);
  if (k->output && !k->to) return Wrong("-to is needed: the format cannot be told from the name ", k->output);
  return 0;
}

int main(int argc, char **argv)
{
  Command     command;
  Conversion  c;
  GPUCSRFault fault;
  char        text[8192];
  double      begun = Now();
  int         failed;
  int64_t     base;

  if (ReadCommand(argc, argv, &command)) return 2;
  base = command.base == 0 ? 0 : 1;
  for (int pass = 0;; pass++) {
    memset(&c, 0, sizeof(c));
    memset(&fault, 0, sizeof(fault));
    c.command = &command;
    c.threads = command.threads > 0 ? (int)PetscMin(command.threads, 1024) : omp_get_max_threads();
    c.base    = base;
    c.again   = pass;
    failed    = Convert(&c, &fault);
    if (!failed || !c.again || pass) break;
    base = 0; /* an index 0 came after rows that were taken as beginning with 1 */
    Destroy(&c);
  }
  if (failed) {
    GPUCSRFaultPrint(&fault, command.input, text, sizeof(text));
    fprintf(stderr, "gpucsr-convert: %s\n", text);
  } else {
    if (c.queries && command.output && strcmp(command.to, "libsvm")) fprintf(stderr, "gpucsr-convert: %s: numbers after qid: are not kept in this format\n", command.output);
    if (c.statistics.labels && command.output && (!strcmp(command.to, "market") || !strcmp(command.to, "boeing"))) fprintf(stderr, "gpucsr-convert: %s: labels are not kept in this format\n", command.output);
    if (c.skipped) fprintf(stderr, "gpucsr-convert: %s: %lld bad lines left out, the first is line %lld\n", command.input, (long long)c.skipped, (long long)c.skip);
    if (!command.quiet) {
      const double time = Now() - begun;

      StatisticsPrint(&c.statistics, stdout);
      printf("text        %.6g MB in %.3g s, %.4g MB/s\n", 1e-6 * (double)GPUCSRSourceText(c.source), time, 1e-6 * (double)GPUCSRSourceText(c.source) / time);
      if (command.output) printf("written     %s: %s\n", command.output, command.to);
    }
  }
  Destroy(&c);
  return failed;
}

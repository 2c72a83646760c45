/*
  gpucsr-convert: converts a matrix from one file format into another, with statistics and a checksum.

  Rows stream from the reader to the writer, a batch at a time, so a file may be larger than memory. Triplets (Matrix Market, Harwell-Boeing) come in any order: beyond -memory a bucket sort puts them
  into nameless files, one for each range of rows that fits. PETSc is not initialized.
*/
#include "convert.h"
#include "../io/decode.h"
#include "../io/formats/number.h"
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <unistd.h>

#if !defined(GPUCSR_VERSION) /* by the makefile */
  #define GPUCSR_VERSION "unknown"
#endif

static const char *const names[] = {"libsvm", "market", "boeing", "petsc"}; /* as GPUCSRTextFormat */

static const char usage[] = "Usage: gpucsr-convert [OPTIONS] INPUT [OUTPUT]\n"
                            "\n"
                            "Convert a sparse matrix between file formats, and print statistics. Without OUTPUT, only print statistics.\n"
                            "INPUT is PETSc binary, LIBSVM or svmlight, Matrix Market, or Harwell-Boeing or Rutherford-Boeing, told by its content. It may be compressed by\n"
                            "gzip, xz, bzip2 or zstd; a file, a pipe, or - for standard input. OUTPUT is a file, its format told by its name: .petsc .dat .bin, .svm .libsvm, .mtx; or by -to.\n"
                            "\n"
                            "  -from FORMAT      petsc, libsvm, market or boeing\n"
                            "  -to FORMAT        petsc, libsvm or market\n"
                            "  -base 0|1         LIBSVM: index of the first column; in INPUT 0 if an index 0 occurs, else 1; in OUTPUT 1\n"
                            "  -columns N        LIBSVM: columns of the matrix, if not the largest index of INPUT\n"
                            "  -skip             skip and count bad lines, instead of stopping at the first\n"
                            "  -threads N        that parse; default: one for each core\n"
                            "  -memory MB        for sorting entries by rows; default: half of the machine's\n"
                            "  -quiet            no statistics\n"
                            "  -version          of gpucsr, what it decompresses, and the PETSc it writes for\n"
                            "\n"
                            "Labels of LIBSVM become the vector after the matrix in PETSc binary. Exit status: 0; 1 if the file is wrong; 2 if the command is wrong.\n";

typedef struct {
  const char *input, *output, *to;
  int         from;                           /* GPUCSRTextFormat; -1: told by the content */
  int64_t     base, columns, threads, memory; /* -1: not given */
  int         skip, quiet;
} Command;

typedef struct {
  const Command   *command;
  int              threads;
  int64_t          base; /* of LIBSVM's indices, as far as known */
  GPUCSRInput     *source;
  GPUCSRTextHeader header;
  Statistics       statistics;
  Writer          *writer;
  int64_t          entries, lines, skipped, skip; /* of the file; lines with entries, skipped lines, and the first skipped line */
  int              queries;                       /* there are numbers after qid: */
  int              again;                         /* base was wrong: begin again */
  /* sorting */
  GPUCSRPiece *piece; /* all pieces, if they fit into memory */
  size_t       npieces;
  int64_t      buckets, height; /* otherwise: files, and rows of each */
  FILE       **bucket;
} Conversion;

typedef struct {
  PetscInt    i, j;
  PetscScalar v;
} Triplet;

/* Passes a batch of rows to the statistics and to the output */
static int Deliver(Conversion *c, const Rows *rows, GPUCSRFault *f)
{
  StatisticsAdd(&c->statistics, rows, c->threads);
  if (!c->writer) return 0;
  c->writer->nz += rows->row[rows->m] - rows->row[0];
  return c->writer->rows(c->writer, rows, f);
}

/* Are all lines bad and skipped? */
static int Nothing(const Conversion *c, GPUCSRFault *f)
{
  return c->skipped && c->skipped == c->lines ? GPUCSRFaultSet(f, c->skip, 0, GPUCSR_NOTHING_UNDERSTOOD, (long long)c->lines) : 0;
}

/* ---- LIBSVM: rows in their order */

static int LibsvmBlock(void *ctx, GPUCSRBlock *block, GPUCSRFault *f)
{
  Conversion  *c = (Conversion *)ctx;
  GPUCSRPiece *p = &block->piece;
  int64_t     *row;
  int          failed;

  if (p->skipped && !c->skipped) c->skip = p->skip + GPUCSRBlockLine(block) - 1;
  c->skipped += (int64_t)p->skipped;
  c->lines += (int64_t)p->entries;
  c->entries += (int64_t)p->nz;
  if (p->nz && p->low < c->base && !c->statistics.m && c->command->columns < 0) c->base = 0; /* no row was taken yet */
  if (p->nz && p->low < c->base) {
    c->again = GPUCSRInputIsRegular(c->source);
    return GPUCSRFaultSet(f, 0, 0, "has an index 0 after rows that were read with base 1, and a pipe cannot be read again: give -base 0");
  }
  row = (int64_t *)malloc((p->rows + 1) * sizeof(*row));
  if (!row) return GPUCSRFaultSet(f, 0, 0, "no memory for %zu rows", p->rows);
  row[0] = 0;
  for (size_t r = 0; r < p->rows; r++) row[r + 1] = row[r] + p->length[r];
  for (size_t k = 0; k < p->nz; k++) p->j[k] -= (PetscInt)c->base;
  if (p->query) c->queries = 1;
  failed = Deliver(c, &(Rows){c->statistics.m, (int64_t)p->rows, row, p->j, p->v, c->header.unlabelled ? NULL : p->label, p->query}, f);
  free(row);
  return failed;
}

/* ---- Triplets: sorted by rows, in memory or in files */

static int SortBegin(Conversion *c, GPUCSRFault *f)
{
  const int64_t m = c->header.m, memory = c->command->memory > 0 ? c->command->memory << 20 : (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 2;
  const double  needed = (double)c->header.entries * (c->header.symmetry == GPUCSR_GENERAL ? 1 : 2) * 2 * sizeof(Triplet);

  c->buckets = 1 + (int64_t)PetscMin(needed / (double)memory, 511);
  c->height  = m / c->buckets + 1;
  if (c->buckets == 1) return 0;
  c->bucket = (FILE **)calloc((size_t)c->buckets, sizeof(*c->bucket));
  if (!c->bucket) return GPUCSRFaultSet(f, 0, 0, "no memory");
  for (int64_t k = 0; k < c->buckets; k++) {
    c->bucket[k] = Nameless(c->command->output);
    if (!c->bucket[k]) return GPUCSRFaultSet(f, 0, 0, "no temporary file for sorting, number %lld: a larger -memory needs fewer", (long long)k + 1);
    setvbuf(c->bucket[k], NULL, _IOFBF, 1 << 16);
  }
  return 0;
}

static int SortPiece(void *ctx, GPUCSRBlock *block, GPUCSRFault *f)
{
  Conversion  *c = (Conversion *)ctx;
  GPUCSRPiece *p = &block->piece;

  if (p->skipped && !c->skipped) c->skip = p->skip + GPUCSRBlockLine(block) - 1;
  if (c->header.array) {
    if (c->entries + (int64_t)p->nz > c->header.entries) return GPUCSRFaultSet(f, 0, 0, "more than the %lld entries that the sizes ask for", (long long)c->header.entries);
    GPUCSRMarketPlace(&c->header, c->entries, p);
  }
  c->entries += (int64_t)p->entries;
  c->lines += (int64_t)p->entries;
  c->skipped += (int64_t)p->skipped;
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

/* Rows rstart to rend out of pieces */
static int SortRows(Conversion *c, GPUCSRAssembly *A, GPUCSRFault *f)
{
  const int64_t m   = A->rend - A->rstart;
  int64_t      *row = (int64_t *)malloc((size_t)(m + 1) * sizeof(*row)), equal;
  PetscInt     *j   = NULL;
  PetscScalar  *v   = NULL;
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
    failed = Deliver(c, &(Rows){.first = A->rstart, .m = m, .row = row, .j = j, .v = v}, f);
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

/* Labels of the rows from row r on, if there are labels */
static int PetscLabels(const Conversion *c, const GPUCSRBinary *b, int64_t r, int64_t m, double label[], GPUCSRFault *f)
{
  PetscScalar *y      = (PetscScalar *)malloc((size_t)m * sizeof(*y));
  int64_t      bad    = m;
  int          failed = y ? GPUCSRBinaryReals(b, b->labels + (size_t)r * sizeof(*y), m, y, c->threads, f) : GPUCSRFaultSet(f, 0, 0, "no memory for %lld labels", (long long)m);

  if (!failed) bad = FirstInfinite(m, y);
  if (bad < m) failed = GPUCSRFaultSet(f, 0, 0, "the label of row %lld is not a finite number", (long long)(r + bad));
  for (int64_t k = 0; k < m && !failed; k++) label[k] = PetscRealPart(y[k]);
  free(y);
  return failed;
}

/* Rows r to last with the entries from `first` on; row[] counts from there */
static int PetscBatch(Conversion *c, const GPUCSRBinary *b, int64_t r, int64_t last, const int64_t row[], int64_t first, GPUCSRFault *f)
{
  const int64_t m = last - r, nz = row[m];
  PetscInt     *j      = (PetscInt *)malloc((size_t)nz * sizeof(*j) + 1);
  PetscScalar  *v      = (PetscScalar *)malloc((size_t)nz * sizeof(*v) + 1);
  double       *label  = b->labels ? (double *)malloc((size_t)m * sizeof(*label)) : NULL;
  Rows          rows   = {r, m, row, j, v, label, NULL};
  int           failed = !j || !v || (b->labels && !label) ? GPUCSRFaultSet(f, 0, 0, "no memory for %lld rows with %lld entries", (long long)m, (long long)nz) : 0;

  if (!failed) failed = GPUCSRBinaryColumns(b, r, m, row, first, j, c->threads, f) || GPUCSRBinaryReals(b, b->values + (size_t)first * sizeof(*v), nz, v, c->threads, f);
  if (!failed) {
    const int64_t bad = FirstInfinite(nz, v);
    int64_t       at  = 0;

    while (bad < nz && row[at + 1] <= bad) at++;
    if (bad < nz) failed = GPUCSRFaultSet(f, 0, 0, "row %lld has a value that is not a finite number", (long long)(r + at));
  }
  if (!failed && label) failed = PetscLabels(c, b, r, m, label, f);
  if (!failed) failed = Deliver(c, &rows, f);
  free(j);
  free(v);
  free(label);
  return failed;
}

static int Petsc(Conversion *c, GPUCSRFault *f)
{
  const int64_t batch = 1 << 22;
  GPUCSRBinary  b;
  int64_t      *row, at = 0;
  int           failed = 0;

  if (GPUCSRInputSettle(c->source, f) || GPUCSRBinaryHeader(c->source, &b, f)) return 1;
  if (b.nz < 0) return GPUCSRFaultSet(f, 0, 0, "is a dense matrix, which gpucsr-convert does not support");
  c->header.n = b.N;
  row         = (int64_t *)malloc((size_t)(b.M + 1) * sizeof(*row));
  failed      = row ? GPUCSRBinaryRows(&b, 0, b.M, row, f) : GPUCSRFaultSet(f, 0, 0, "no memory for %lld rows", (long long)b.M);
  for (int64_t r = 0; !failed && r < b.M;) {
    int64_t last = r + 1;

    while (last < b.M && last - r < batch && row[last + 1] - row[r] <= batch) last++;
    for (int64_t k = last; k >= r; k--) row[k] -= at; /* from the start of the batch */
    failed = PetscBatch(c, &b, r, last, row + r, at, f);
    row[last] += at;
    at = row[last];
    r  = last;
  }
  c->entries = b.nz;
  free(row);
  return failed;
}

/* ---- The whole */

/* Passes all entries to SortEnd(): are they as many as the file announces? */
static int Triplets(Conversion *c, GPUCSRFault *f)
{
  const GPUCSRTextHeader *h = &c->header;

  if (SortBegin(c, f)) return 1;
  if (GPUCSRInputParse(c->source, h, c->command->skip, c->threads, 2 * (size_t)c->threads, SortPiece, c, f)) return 1;
  if (Nothing(c, f)) return 1;
  if (c->entries != h->entries) return GPUCSRFaultSet(f, 0, 0, c->entries < h->entries ? "the file ends after %lld of %lld entries" : "has %lld entries, more than the %lld that the size line announces", (long long)c->entries, (long long)h->entries);
  if (GPUCSRTooTall(h->m, GPUCSRInputText(c->source))) return GPUCSRFaultSet(f, h->lines, 0, GPUCSR_TOO_TALL, (long long)h->m, (long long)GPUCSRInputText(c->source));
  return SortEnd(c, f);
}

static int Convert(Conversion *c, GPUCSRFault *f)
{
  const Command    *k      = c->command;
  GPUCSRTextHeader *h      = &c->header;
  int               failed = 0;

  if (GPUCSRInputOpen(k->input, 0, &c->source, f) || GPUCSRInputHeader(c->source, k->from, h, f)) return 1;
  if (!k->quiet && !c->again) printf("read        %s: %s%s\n", k->input, names[h->format], GPUCSRInputKind(c->source));
  c->again = 0;
  if (k->output && WriterOpen(k->to, k->output, k->base >= 0 ? (int)k->base : 1, &c->writer, f)) return 1;
  if (h->format == GPUCSR_TEXT_LIBSVM) GPUCSRLibsvmBound(h, k->base >= 0 ? k->base : c->base ? -1 : 0, k->columns); /* without an index 0 so far, the base is a guess */
  if (h->format != GPUCSR_TEXT_PETSC && GPUCSRInputPart(c->source, h, 0, 1, 1 << 22, f)) return 1;
  if (h->format == GPUCSR_TEXT_PETSC) failed = Petsc(c, f);
  else if (h->format == GPUCSR_TEXT_LIBSVM) {
    failed = GPUCSRInputParse(c->source, h, k->skip, c->threads, 2 * (size_t)c->threads, LibsvmBlock, c, f) || Nothing(c, f);
    h->n   = k->columns >= 0 ? k->columns : c->statistics.n;
  } else failed = Triplets(c, f);
  c->statistics.n = h->n;
  if (!failed && c->writer) failed = WriterFinish(c->writer, c->statistics.m, h->n, f);
  return failed;
}

static void ConversionDestroy(Conversion *c)
{
  GPUCSRInputClose(c->source);
  WriterDestroy(c->writer);
  StatisticsDestroy(&c->statistics);
  for (size_t k = 0; k < c->npieces; k++) GPUCSRPieceDestroy(&c->piece[k]);
  free(c->piece);
  for (int64_t k = 0; c->bucket && k < c->buckets; k++)
    if (c->bucket[k]) fclose(c->bucket[k]);
  free(c->bucket);
}

/* The format for the name's ending, or NULL */
static const char *ByName(const char *name)
{
  static const char *const endings[][2] = {
    {".petsc",  "petsc" },
    {".dat",    "petsc" },
    {".bin",    "petsc" },
    {".svm",    "libsvm"},
    {".libsvm", "libsvm"},
    {".mtx",    "market"}
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

static void PrintVersion(void)
{
  const char *name;

  printf("gpucsr-convert %s, for PETSc %d.%d with %s scalars and integers of %d bits; decompresses", GPUCSR_VERSION, PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PetscDefined(USE_COMPLEX) ? "complex" : "real", (int)(8 * sizeof(PetscInt)));
  for (int k = 0; (name = GPUCSRDecoderName(k)); k++) printf(" %s", name);
  printf("\n");
}

static int Wrong(const char *what, const char *word)
{
  fprintf(stderr, "gpucsr-convert: %s%s\n%s", what, word, usage);
  return 2;
}

static int ReadCommand(int argc, char **argv, Command *k)
{
  memset(k, 0, sizeof(*k));
  k->from = -1;
  k->base = k->columns = k->threads = k->memory = -1;
  for (int a = 1; a < argc; a++) {
    const char *word   = argv[a];
    int64_t    *number = !strcmp(word, "-base") ? &k->base : !strcmp(word, "-columns") ? &k->columns : !strcmp(word, "-threads") ? &k->threads : !strcmp(word, "-memory") ? &k->memory : NULL;

    if (!strcmp(word, "-h") || !strcmp(word, "-help") || !strcmp(word, "--help")) {
      fputs(usage, stdout);
      exit(0);
    } else if (!strcmp(word, "-version") || !strcmp(word, "--version")) {
      PrintVersion();
      exit(0);
    } else if (number) {
      const char *end = a + 1 < argc ? GPUCSRWhole(argv[++a], number) : NULL;

      if (!end || *end) return Wrong("expected a whole number after ", word);
    } else if (!strcmp(word, "-from") || !strcmp(word, "-to")) {
      const char *name  = a + 1 < argc ? argv[++a] : "";
      const int   from  = word[1] == 'f';
      int         found = 3;

      while (found >= 0 && (strcmp(name, names[found]) || (!from && found == GPUCSR_TEXT_BOEING))) found--;
      if (found < 0) return Wrong(from ? "expected petsc, libsvm, market or boeing after " : "expected petsc, libsvm or market after ", word);
      if (from) k->from = found;
      else k->to = names[found];
    } else if (!strcmp(word, "-skip")) k->skip = 1;
    else if (!strcmp(word, "-quiet")) k->quiet = 1;
    else if (word[0] == '-' && word[1]) return Wrong("no such option: ", word);
    else if (!k->input) k->input = word;
    else if (!k->output) k->output = word;
    else return Wrong("one file too many: ", word);
  }
  if (!k->input) return Wrong("which file?", "");
  if (k->output && !strcmp(k->output, "-")) return Wrong("output is a file, not standard output: parts of it are written out of order", "");
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
  double      begun = omp_get_wtime();
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
    base = 0; /* an index 0 came after rows that were read with base 1 */
    ConversionDestroy(&c);
  }
  if (failed) {
    GPUCSRFaultPrint(&fault, command.input, text, sizeof(text));
    fprintf(stderr, "gpucsr-convert: %s\n", text);
  } else {
    if (c.queries && command.output && strcmp(command.to, "libsvm")) fprintf(stderr, "gpucsr-convert: %s: numbers after qid: are not kept in this format\n", command.output);
    if (c.statistics.labels && command.output && !strcmp(command.to, "market")) fprintf(stderr, "gpucsr-convert: %s: labels are not kept in this format\n", command.output);
    if (c.skipped) fprintf(stderr, "gpucsr-convert: %s: %lld bad lines left out, the first is line %lld\n", command.input, (long long)c.skipped, (long long)c.skip);
    if (!command.quiet) {
      const double time = omp_get_wtime() - begun;

      StatisticsPrint(&c.statistics, stdout);
      printf("%-12s%.6g MB in %.3g s, %.4g MB/s\n", c.header.format == GPUCSR_TEXT_PETSC ? "binary" : "text", 1e-6 * (double)GPUCSRInputText(c.source), time, 1e-6 * (double)GPUCSRInputText(c.source) / time);
      if (command.output) printf("written     %s: %s\n", command.output, command.to);
    }
  }
  ConversionDestroy(&c);
  return failed;
}

/*
  gpucsr-convert: converts a matrix from one file format into another, with statistics and a checksum.

  A PETSc program that is linked with the library: MatGPUCSRLoadFile() reads the file, and MatView() writes PETSc binary.
*/
#include "program.h"
#include "convert.h"
#include <math.h>
#include <omp.h>
#include <stdlib.h>

static const char *const names[] = {"petsc", "libsvm", "market", "boeing"}; /* as MatGPUCSRFileFormat, without auto */

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
                            "  -quiet            no statistics\n"
                            "  -version          of gpucsr, what it decompresses, and the PETSc it writes for\n"
                            "\n"
                            "The matrix must fit into memory. Labels of LIBSVM become the vector after the matrix in PETSc binary. Exit status: 0; 1 if the file is wrong; 2 if the command is wrong.\n";

typedef struct {
  const char          *input, *output, *to;
  MatGPUCSRFileOptions read;
  PetscBool            quiet;
} Command;

static PetscErrorCode Convert(const Command *k)
{
  const double      begun = MPI_Wtime();
  Contents          c     = {0};
  MatGPUCSRFileInfo info;

  PetscFunctionBegin;
  PetscCall(MatCreate(PETSC_COMM_SELF, &c.A));
  PetscCall(MatSetType(c.A, MATSEQAIJ));
  PetscCall(MatGPUCSRLoadFile(c.A, k->input, &k->read, &c.labels, &c.queries, &info));
  PetscCall(MatGetSize(c.A, &c.m, &c.n));
  PetscCall(MatSeqAIJGetCSRAndMemType(c.A, &c.i, &c.j, (PetscScalar **)&c.a, NULL));
  if (c.labels) PetscCall(VecGetArrayRead(c.labels, &c.label));
  if (c.queries) PetscCall(VecGetArrayRead(c.queries, &c.query));
  /* PETSc binary can hold numbers that text cannot */
  for (PetscInt r = 0; r < c.m; r++) {
    for (PetscInt e = c.i[r]; e < c.i[r + 1]; e++) PetscCheck(!PetscIsInfOrNanScalar(c.a[e]), PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: row %" PetscInt_FMT " has a value that is not a finite number", k->input, r);
    PetscCheck(!c.label || !PetscIsInfOrNanScalar(c.label[r]), PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: the label of row %" PetscInt_FMT " is not a finite number", k->input, r);
  }
  if (k->output) PetscCall(Write(&c, k->to, k->read.base >= 0 ? k->read.base : 1, k->output));
  if (c.queries && k->output && strcmp(k->to, "libsvm")) fprintf(stderr, "gpucsr-convert: %s: numbers after qid: are not kept in this format\n", k->output);
  if (c.labels && k->output && !strcmp(k->to, "market")) fprintf(stderr, "gpucsr-convert: %s: labels are not kept in this format\n", k->output);
  if (info.skipped) fprintf(stderr, "gpucsr-convert: %s: %lld bad lines left out, the first is line %lld\n", k->input, (long long)info.skipped, (long long)info.line);
  if (!k->quiet) {
    const double time = MPI_Wtime() - begun, megabytes = 1e-6 * (double)info.text;

    printf("read        %s: %s\n", k->input, names[info.format - MAT_GPUCSR_FILE_PETSC]);
    PetscCall(StatisticsPrint(&c, k->read.threads > 0 ? (int)k->read.threads : omp_get_max_threads(), stdout));
    printf("%-12s%.6g MB in %.3g s, %.4g MB/s\n", info.format == MAT_GPUCSR_FILE_PETSC ? "binary" : "text", megabytes, time, megabytes / time);
    if (k->output) printf("written     %s: %s\n", k->output, k->to);
  }
  if (c.labels) PetscCall(VecRestoreArrayRead(c.labels, &c.label));
  if (c.queries) PetscCall(VecRestoreArrayRead(c.queries, &c.query));
  PetscCall(VecDestroy(&c.labels));
  PetscCall(VecDestroy(&c.queries));
  PetscCall(MatDestroy(&c.A));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* ---- the command ---- */

static PetscBool EndsIn(const char name[], const char ending[])
{
  const size_t n = strlen(name), e = strlen(ending);

  return (PetscBool)(n > e && !strcmp(name + n - e, ending));
}

/* The format for the name's ending, or NULL */
static const char *ByName(const char name[])
{
  static const char *const endings[][2] = {
    {".petsc",  "petsc" },
    {".dat",    "petsc" },
    {".bin",    "petsc" },
    {".svm",    "libsvm"},
    {".libsvm", "libsvm"},
    {".mtx",    "market"}
  };

  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(endings); k++)
    if (EndsIn(name, endings[k][0])) return endings[k][1];
  return NULL;
}

static int Wrong(const char *what, const char *word)
{
  fprintf(stderr, "gpucsr-convert: %s%s\n%s", what, word, usage);
  return 2;
}

static int ReadCommand(int argc, char **argv, Command *k)
{
  static const char *const compressed[] = {".gz", ".xz", ".bz2", ".zst", ".zip"};

  memset(k, 0, sizeof(*k));
  if (MatGPUCSRFileOptionsInitialize(&k->read)) return 1;
  for (int a = 1; a < argc; a++) {
    const char *word   = argv[a];
    PetscInt   *number = !strcmp(word, "-base") ? &k->read.base : !strcmp(word, "-columns") ? &k->read.columns : !strcmp(word, "-threads") ? &k->read.threads : NULL;

    if (!strcmp(word, "-h") || !strcmp(word, "-help") || !strcmp(word, "--help")) {
      fputs(usage, stdout);
      exit(0);
    } else if (!strcmp(word, "-version") || !strcmp(word, "--version")) {
      printf("gpucsr-convert %s, for PETSc %d.%d with %s scalars and integers of %d bits; decompresses"
#if defined(GPUCSR_HAVE_ZLIB)
             " gzip"
#endif
#if defined(GPUCSR_HAVE_LZMA)
             " xz"
#endif
#if defined(GPUCSR_HAVE_BZ2)
             " bzip2"
#endif
#if defined(GPUCSR_HAVE_ZSTD)
             " zstd"
#endif
             "\n",
             PETSCGPUCSR_VERSION, PETSC_VERSION_MAJOR, PETSC_VERSION_MINOR, PetscDefined(USE_COMPLEX) ? "complex" : "real", (int)(8 * sizeof(PetscInt)));
      exit(0);
    } else if (number) {
      char           *end   = NULL;
      const long long value = a + 1 < argc ? strtoll(argv[++a], &end, 10) : -1;

      if (!end || *end || end == argv[a] || value < 0) return Wrong("expected a whole number after ", word);
      if (value > PETSC_MAX_INT) return Wrong(word, ": more than the integers of this PETSc can count");
      *number = (PetscInt)value;
    } else if (!strcmp(word, "-from") || !strcmp(word, "-to")) {
      const char *name  = a + 1 < argc ? argv[++a] : "";
      const int   from  = word[1] == 'f';
      int         found = from ? 3 : 2;

      while (found >= 0 && strcmp(name, names[found])) found--;
      if (found < 0) return Wrong(from ? "expected petsc, libsvm, market or boeing after " : "expected petsc, libsvm or market after ", word);
      if (from) k->read.format = (MatGPUCSRFileFormat)(MAT_GPUCSR_FILE_PETSC + found);
      else k->to = names[found];
    } else if (!strcmp(word, "-skip")) k->read.skip = PETSC_TRUE;
    else if (!strcmp(word, "-quiet")) k->quiet = PETSC_TRUE;
    else if (word[0] == '-' && word[1]) return Wrong("no such option: ", word);
    else if (!k->input) k->input = word;
    else if (!k->output) k->output = word;
    else return Wrong("one file too many: ", word);
  }
  if (!k->input) return Wrong("which file?", "");
  if (k->output && !strcmp(k->output, "-")) return Wrong("output is a file, not standard output: it is renamed when it is complete", "");
  if (k->read.base > 1) return Wrong("-base is 0 or 1", "");
  for (size_t e = 0; k->output && e < PETSC_STATIC_ARRAY_LENGTH(compressed); e++)
    if (EndsIn(k->output, compressed[e])) return Wrong("output is not compressed: leave the ending off of ", k->output);
  if (k->output && !k->to) k->to = ByName(k->output);
  if (k->output && !k->to) return Wrong("-to is needed: the format cannot be told from the name ", k->output);
  return 0;
}

int main(int argc, char **argv)
{
  Command        command;
  PetscErrorCode ierr;

  if (ReadCommand(argc, argv, &command)) return 2;
  if (PetscInitializeNoArguments()) return 1;
  (void)PetscPushErrorHandler(Remember, NULL);
  ierr = Convert(&command);
  if (ierr) WriteAbandon();
  return End("gpucsr-convert", ierr);
}

//TEST

/*
  A file that is truncated after it was opened is an error, for every format and at every place: no signal, and no matrix of the remaining rows. The complete file is read
  without an error.
*/
#include <petscsys.h>
#include <stdlib.h>
#include <unistd.h>
#include "../src/io/gpucsrio.h"

enum {
  ROWS = 200000
};

static int64_t entries;

static int Count(void *ctx, GPUCSRBlock *block, GPUCSRFault *f)
{
  entries += (int64_t)block->piece.nz;
  return 0;
}

static void Word(FILE *out, uint32_t x)
{
  x = __builtin_bswap32(x);
  fwrite(&x, 4, 1, out);
}

/* The identity of so many rows in a format */
static PetscErrorCode Write(const char name[], GPUCSRTextFormat format)
{
  FILE *out = fopen(name, "w");

  PetscFunctionBeginUser;
  PetscCheck(out, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s cannot be written", name);
  if (format == GPUCSR_TEXT_MARKET) fprintf(out, "%%%%MatrixMarket matrix coordinate real general\n%d %d %d\n", ROWS, ROWS, ROWS);
  if (format == GPUCSR_TEXT_BOEING) {
    fprintf(out, "%-72s%-8s\n%14d%14d%14d%14d\n%-14s%14d%14d%14d%14d\n%-16s%-16s%-20s\n", "The identity", "ONE", 3 * ROWS + 1, ROWS + 1, ROWS, ROWS, "RUA", ROWS, ROWS, ROWS, 0, "(I8)", "(I8)", "(E10.3)");
    for (int part = 0; part < 3; part++)
      for (int r = 0; r < ROWS + !part; r++) fprintf(out, part < 2 ? "%8d\n" : " 1.000E+00\n", r + 1);
  }
  if (format == GPUCSR_TEXT_PETSC) {
    const uint32_t head[] = {1211216, ROWS, ROWS, ROWS};

    for (int k = 0; k < 4; k++) Word(out, head[k]);
    for (int r = 0; r < ROWS; r++) Word(out, 1);
    for (uint32_t r = 0; r < ROWS; r++) Word(out, r);
    for (int k = 0; k < 2 * ROWS; k++) Word(out, k % 2 ? 0 : 0x3ff00000);
  }
  for (int r = 0; r < ROWS && (format == GPUCSR_TEXT_LIBSVM || format == GPUCSR_TEXT_MARKET); r++) fprintf(out, format == GPUCSR_TEXT_LIBSVM ? "1 %d:1\n" : "%d %d 1\n", r + 1, r + 1);
  PetscCheck(!fclose(out), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s cannot be written", name);
  PetscFunctionReturn(0);
}

static int ReadBinary(const GPUCSRInput *s, const char name[], off_t cut, GPUCSRFault *f)
{
  GPUCSRBinary b;
  int64_t     *row = (int64_t *)malloc((ROWS + 1) * sizeof(*row));
  PetscInt    *j   = (PetscInt *)malloc(ROWS * sizeof(*j));
  PetscScalar *v   = (PetscScalar *)malloc(ROWS * sizeof(*v));
  int          failed;

  failed = GPUCSRBinaryHeader(s, &b, f);
  if (!failed && cut >= 0 && truncate(name, cut)) failed = 2;
  if (!failed) failed = GPUCSRBinaryRows(&b, 0, ROWS, row, f) || GPUCSRBinaryColumns(&b, 0, ROWS, row, 0, j, 2, f) || GPUCSRBinaryReals(&b, b.values, ROWS, v, 2, f);
  entries = ROWS;
  free(row);
  free(j);
  free(v);
  return failed;
}

/* Read, cut at some place once it is open; negative: not cut */
static PetscErrorCode Read(const char name[], GPUCSRTextFormat format, off_t cut)
{
  GPUCSRInput     *s;
  GPUCSRTextHeader h;
  GPUCSRFault      f;
  int              failed;

  PetscFunctionBeginUser;
  PetscCall(Write(name, format));
  entries = 0;
  failed  = GPUCSRInputOpen(name, 0, &s, &f) || GPUCSRInputHeader(s, GPUCSR_TEXT_AUTO, &h, &f);
  PetscCheck(!failed && h.format == format, PETSC_COMM_SELF, PETSC_ERR_PLIB, "format %d is not read: %s", format, f.why);
  if (format != GPUCSR_TEXT_PETSC && cut >= 0) PetscCheck(!truncate(name, cut), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s cannot be cut", name);
  if (format == GPUCSR_TEXT_PETSC) failed = ReadBinary(s, name, cut, &f);
  else failed = GPUCSRInputPart(s, &h, 0, 1, 1 << 16, &f) || GPUCSRInputParse(s, &h, 0, 2, 4, Count, NULL, &f);
  GPUCSRInputClose(s);
  if (cut < 0) PetscCheck(!failed && entries == ROWS, PETSC_COMM_SELF, PETSC_ERR_PLIB, "format %d, whole: %lld of %d entries: %s", format, (long long)entries, ROWS, failed ? f.why : "no error");
  else PetscCheck(failed == 1 && strstr(f.why, "was cut short during reading"), PETSC_COMM_SELF, PETSC_ERR_PLIB, "format %d, cut at byte %lld: %s", format, (long long)cut, failed ? f.why : "no error");
  PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
  static const GPUCSRTextFormat formats[] = {GPUCSR_TEXT_LIBSVM, GPUCSR_TEXT_MARKET, GPUCSR_TEXT_BOEING, GPUCSR_TEXT_PETSC};
  static const off_t            cuts[]    = {-1, 0, 400000, 1000000, 1500000, 3000000};
  char                          name[]    = "/tmp/gpucsr-source.XXXXXX";
  const int                     fd        = mkstemp(name);
  PetscErrorCode                ierr      = 0;

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCheck(fd >= 0, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s cannot be made", name);
  close(fd);
  for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]) && !ierr; i++)
    for (size_t k = 0; k < sizeof(cuts) / sizeof(cuts[0]) && !ierr; k++)
      if (cuts[k] != 3000000 || formats[i] == GPUCSR_TEXT_BOEING || formats[i] == GPUCSR_TEXT_PETSC) ierr = Read(name, formats[i], cuts[k]);
  unlink(name);
  PetscCall(ierr);
  PetscCall(PetscFinalize());
  return 0;
}

/*
  Writers: PETSc binary, Matrix Market, LIBSVM.

  A file is written under another name, and renamed when complete. Numbers have the fewest of 15, 16 or 17 digits that read back as the same double.
*/
#include "convert.h"
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The name of a file that is not complete; empty: none */
static char unfinished[PETSC_MAX_PATH_LEN + 16];

/* A double in the fewest digits that read back as the same number */
static void Print(FILE *out, double v)
{
  char text[32];

  if (v == floor(v) && fabs(v) < 1e15 && (v != 0 || !signbit(v))) {
    fprintf(out, "%lld", (long long)v);
    return;
  }
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(text, sizeof(text), "%.*g", digits, v);
    if (strtod(text, NULL) == v) break;
  }
  fputs(text, out);
}

static PetscErrorCode WriteText(const Contents *c, const char format[], PetscInt base)
{
  FILE *out = fopen(unfinished, "w");
  int   failed;

  PetscFunctionBegin;
  if (!out) PetscFunctionReturn(PETSC_ERR_FILE_OPEN);
  if (!strcmp(format, "market")) {
    fprintf(out, "%%%%MatrixMarket matrix coordinate %s general\n", PetscDefined(USE_COMPLEX) ? "complex" : "real");
    fprintf(out, "%" PetscInt_FMT " %" PetscInt_FMT " %" PetscInt_FMT "\n", c->m, c->n, c->i[c->m]);
    for (PetscInt i = 0; i < c->m; i++)
      for (PetscInt k = c->i[i]; k < c->i[i + 1]; k++) {
        fprintf(out, "%" PetscInt_FMT " %" PetscInt_FMT " ", i + 1, c->j[k] + 1);
        Print(out, PetscRealPart(c->a[k]));
        if (PetscDefined(USE_COMPLEX)) fputc(' ', out);
        if (PetscDefined(USE_COMPLEX)) Print(out, PetscImaginaryPart(c->a[k]));
        fputc('\n', out);
      }
  } else {
    for (PetscInt i = 0; i < c->m; i++) {
      Print(out, c->label ? PetscRealPart(c->label[i]) : 0);
      if (c->query) fprintf(out, " qid:%.0f", (double)PetscRealPart(c->query[i]));
      for (PetscInt k = c->i[i]; k < c->i[i + 1]; k++) {
        fprintf(out, " %" PetscInt_FMT ":", c->j[k] + base);
        Print(out, PetscRealPart(c->a[k]));
      }
      fputc('\n', out);
    }
  }
  failed = ferror(out);
  PetscFunctionReturn(fclose(out) || failed ? PETSC_ERR_FILE_WRITE : PETSC_SUCCESS);
}

static PetscErrorCode WritePetsc(const Contents *c)
{
  PetscViewer viewer;

  PetscFunctionBegin;
  PetscCall(PetscViewerCreate(PETSC_COMM_SELF, &viewer));
  PetscCall(PetscViewerSetType(viewer, PETSCVIEWERBINARY));
  PetscCall(PetscViewerFileSetMode(viewer, FILE_MODE_WRITE));
  PetscCall(PetscViewerBinarySetSkipInfo(viewer, PETSC_TRUE)); /* no second file */
  PetscCall(PetscViewerFileSetName(viewer, unfinished));
  PetscCall(MatView(c->A, viewer));
  if (c->labels) PetscCall(VecView(c->labels, viewer));
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(PETSC_SUCCESS);
}

void WriteAbandon(void)
{
  if (unfinished[0]) unlink(unfinished);
}

static void Interrupted(int number)
{
  WriteAbandon();
  signal(number, SIG_DFL);
  raise(number);
}

PetscErrorCode Write(const Contents *c, const char format[], PetscInt base, const char name[])
{
  PetscErrorCode   ierr;
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  struct stat      st;
  const int        there = !lstat(name, &st);
  const mode_t     mask  = umask(0);
  int              fd;

  PetscFunctionBegin;
  /* a file next to the output, with the permissions of the file that it replaces, or of a new file. An interrupted program removes it */
  umask(mask);
  PetscCheck(!there || S_ISREG(st.st_mode), PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s cannot be written: it is not a regular file, and only a regular file can be replaced", name);
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(signals); k++)
    if (signal(signals[k], Interrupted) == SIG_IGN) signal(signals[k], SIG_IGN); /* nohup */
  PetscCall(PetscSNPrintf(unfinished, sizeof(unfinished), "%s.part.XXXXXX", name));
  fd = mkstemp(unfinished);
  if (fd < 0) unfinished[0] = 0;
  PetscCheck(fd >= 0 && !fchmod(fd, there ? st.st_mode & 0777 : 0666 & ~mask) && !close(fd), PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s cannot be written: %s", name, strerror(errno));
  errno = 0;
  ierr  = strcmp(format, "petsc") ? WriteText(c, format, base) : WritePetsc(c);
  PetscCheck(!ierr && !rename(unfinished, name), PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "%s cannot be written: %s", name, strerror(errno ? errno : EIO));
  unfinished[0] = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/*
  Wisdom: choices that measuring made, kept in a file by the signature of the matrix and the machine, so that later runs need not measure.

    gpucsr-wisdom 1
    SIGNATURE PRECISION FORMAT KERNEL MICROSECONDS MACHINE

  Lines of format aij are times of the host, which earlier versions kept: they are not looked up.

  Skips lines of another machine, of an unknown format or kernel, or of a kernel that cannot take the matrix. Nothing reads or
  writes a damaged file. One warning reports either.

  The idea and the word are FFTW's: M. Frigo, S. G. Johnson, Proc. IEEE 93 (2), 2005, section III.
*/
#include "plan.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  unsigned long long signature;
  GPUCSRPrecision    precision;
  double             microseconds;
  char               format[GPUCSR_WORD], kernel[GPUCSR_WORD], machine[128];
} Line;

static Line     *lines  = NULL;
static int       nlines = 0, room = 0;
static PetscBool changed = PETSC_FALSE, toldstale = PETSC_FALSE, toldforeign = PETSC_FALSE;
static char      file[PETSC_MAX_PATH_LEN] = "", why[256];

static const char *const precisions[] = {"double", "single", "mixed"}; /* GPUCSRPrecision */

/* FNV-1a over the exact features; the sample depends on an option */
static unsigned long long Signature(const GPUCSRFeatures *f)
{
  const int64_t      words[] = {f->m, f->n, f->nnz, f->min, f->max, f->sell_stored};
  unsigned long long h       = 14695981039346656037ULL;

#define ADD(what) \
  for (size_t k = 0; k < sizeof(what); k++) h = (h ^ ((const unsigned char *)(what))[k]) * 1099511628211ULL
  ADD(words);
  ADD(f->rows);
  ADD(f->entries);
#undef ADD
  return h;
}

static PetscErrorCode Append(const Line *l)
{
  PetscFunctionBegin;
  if (nlines == room) {
    room = PetscMax(64, 2 * room);
    PetscCall(PetscRealloc(sizeof(Line) * (size_t)room, &lines));
  }
  lines[nlines++] = *l;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Warns before the run if no file can be made */
static PetscErrorCode Unreadable(void)
{
  char folder[PETSC_MAX_PATH_LEN], *slash;

  PetscFunctionBegin;
  if (errno == ENOENT) {
    PetscCall(PetscStrncpy(folder, file, sizeof(folder)));
    slash = strrchr(folder, '/');
    if (!slash) PetscCall(PetscStrncpy(folder, ".", sizeof(folder)));
    else slash[slash == folder] = 0;
    if (!access(folder, W_OK | X_OK)) PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (GPUCSRSettingsGlobal.localrank == 0)
    PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "MATGPUCSR warning: -mat_gpucsr_wisdom %s cannot be %s: %s; nothing is looked up or kept\n", file, errno == ENOENT ? "written" : "read or written", strerror(errno)));
  file[0] = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* The end of the run writes a missing file. A damaged file gets a warning and is not used */
PetscErrorCode GPUCSRWisdomLoad(const char name[])
{
  FILE *f;
  char  text[1024], wrong[128] = "";

  PetscFunctionBegin;
  nlines  = 0;
  changed = toldstale = toldforeign = PETSC_FALSE;
  PetscCall(PetscStrncpy(file, name, sizeof(file)));
  if (!file[0]) PetscFunctionReturn(PETSC_SUCCESS);
  f = fopen(file, "r");
  if (!f) {
    PetscCall(Unreadable());
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  for (int number = 1; fgets(text, sizeof(text), f) && !wrong[0]; number++) {
    Line l;
    char precision[16];
    int  used = 0, p;

    if (!strchr(text, '\n')) {
      PetscCall(PetscSNPrintf(wrong, sizeof(wrong), "line %d is cut off", number));
      continue;
    }
    text[strcspn(text, "\n")] = 0;
    if (number == 1) {
      if (strcmp(text, "gpucsr-wisdom 1")) PetscCall(PetscSNPrintf(wrong, sizeof(wrong), "its first line is not \"gpucsr-wisdom 1\""));
      continue;
    }
    PetscCall(PetscMemzero(&l, sizeof(l)));
    if (sscanf(text, "%llx %15s %31s %31s %lf %n", &l.signature, precision, l.format, l.kernel, &l.microseconds, &used) == 5 && used && text[used] && l.microseconds > 0) {
      for (p = 0; p < 3 && strcmp(precision, precisions[p]); p++) {
      }
      if (p < 3) {
        l.precision = (GPUCSRPrecision)p;
        PetscCall(PetscStrncpy(l.machine, text + used, sizeof(l.machine)));
        PetscCall(Append(&l));
        continue;
      }
    }
    PetscCall(PetscSNPrintf(wrong, sizeof(wrong), "line %d is damaged", number));
  }
  if (ferror(f)) PetscCall(PetscSNPrintf(wrong, sizeof(wrong), "it cannot be read (%s)", strerror(errno)));
  (void)fclose(f);
  if (wrong[0]) {
    PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "MATGPUCSR warning: -mat_gpucsr_wisdom %s is not used and not written: %s; remove the file to begin anew\n", file, wrong));
    nlines  = 0;
    file[0] = 0;
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

PetscBool GPUCSRWisdomThere(void)
{
  return nlines ? PETSC_TRUE : PETSC_FALSE;
}

/* Moves the remembered candidate for the matrix to the front, with its reason in because; NULL: none is remembered */
PetscErrorCode GPUCSRWisdomFind(GPUCSRDevice dev, const GPUCSRFeatures *f, GPUCSRPrecision p, GPUCSRCandidate c[], int n, const char **because)
{
  const unsigned long long signature = nlines ? Signature(f) : 0;

  PetscFunctionBegin;
  *because = NULL;
  for (int q = nlines; q-- > 0 && !*because;) { /* the newest line counts */
    const Line *l = &lines[q];

    if (l->signature != signature || l->precision != p || !strcmp(l->format, "aij")) continue;
    if (strcmp(l->machine, dev->props.name)) {
      if (!toldforeign) PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "MATGPUCSR warning: -mat_gpucsr_wisdom %s knows this matrix on %s, which does not count on %s\n", file, l->machine, dev->props.name));
      toldforeign = PETSC_TRUE;
      continue;
    }
    for (int k = 0; k < n && !*because; k++) {
      if (!c[k].usable || strcmp(c[k].format->name, l->format) || strcmp(c[k].kernel->name, l->kernel)) continue;
      GPUCSRCandidatesPromote(c, k);
      c[0].measured = 1e-6 * l->microseconds;
      PetscCall(PetscSNPrintf(why, sizeof(why), "an earlier run measured it as the fastest: %.1f us (-mat_gpucsr_wisdom)", l->microseconds));
      *because = why;
    }
    if (!*because && !toldstale) {
      PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "MATGPUCSR warning: -mat_gpucsr_wisdom %s is stale: kernel %s on format %s no longer exists for this matrix\n", file, l->kernel, l->format));
      toldstale = PETSC_TRUE;
    }
  }
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A new line for the matrix, if there is a file for it */
PetscErrorCode GPUCSRWisdomAdd(GPUCSRDevice dev, const GPUCSRFeatures *f, GPUCSRPrecision p, const GPUCSRCandidate *c)
{
  Line l = {.signature = Signature(f), .precision = p, .microseconds = 1e6 * c->measured};

  PetscFunctionBegin;
  if (!file[0] || !(c->measured > 0)) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(PetscStrncpy(l.format, c->format->name, sizeof(l.format)));
  PetscCall(PetscStrncpy(l.kernel, c->kernel->name, sizeof(l.kernel)));
  PetscCall(PetscStrncpy(l.machine, dev->props.name, sizeof(l.machine)));
  PetscCall(Append(&l));
  changed = PETSC_TRUE;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Writes another file, then renames it: no reader sees half a file. Only the first rank of a node writes */
PetscErrorCode GPUCSRWisdomFinalize(void)
{
  char  name[PETSC_MAX_PATH_LEN + 32];
  FILE *f;

  PetscFunctionBegin;
  if (changed && file[0] && GPUCSRSettingsGlobal.localrank == 0) {
    PetscCall(PetscSNPrintf(name, sizeof(name), "%s.%d", file, PetscGlobalRank));
    f = fopen(name, "w");
    if (f) {
      PetscBool good = PETSC_TRUE;

      good = fprintf(f, "gpucsr-wisdom 1\n") > 0;
      for (int q = 0; q < nlines; q++) good = good && fprintf(f, "%016llx %s %s %s %.4g %s\n", lines[q].signature, precisions[lines[q].precision], lines[q].format, lines[q].kernel, lines[q].microseconds, lines[q].machine) > 0;
      if (fclose(f) || !good || rename(name, file)) {
        (void)remove(name);
        f = NULL;
      }
    }
    if (!f) PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "MATGPUCSR warning: -mat_gpucsr_wisdom %s cannot be written\n", file));
  }
  if (file[0] && !nlines && !PetscGlobalRank) PetscCall(PetscFPrintf(PETSC_COMM_SELF, PETSC_STDERR, "MATGPUCSR warning: -mat_gpucsr_wisdom %s is not written: nothing was measured, which takes a GPU and -mat_gpucsr_select measure\n", file));
  PetscCall(PetscFree(lines));
  nlines = room = 0;
  file[0]       = 0;
  PetscFunctionReturn(PETSC_SUCCESS);
}

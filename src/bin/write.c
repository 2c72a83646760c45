/*
  Writers: PETSc binary, Matrix Market, LIBSVM.

  A file is written under another name, and renamed when complete. Numbers have the fewest of 15, 16 or 17 digits that read back as the same double.
*/
#include "convert.h"
#include "../io/formats/number.h"
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  BUFFER = 1 << 20,
  HEADER = 80 /* characters kept free for the sizes of Matrix Market */
};

static int Bad(const Writer *w, GPUCSRFault *f)
{
  return GPUCSRFaultSet(f, 0, 0, "%s cannot be written: %s", w->name, strerror(errno ? errno : EIO));
}

static int Put(Writer *w, FILE *out, const void *data, size_t bytes, GPUCSRFault *f)
{
  return bytes && fwrite(data, 1, bytes, out) != bytes ? Bad(w, f) : 0;
}

/* A double in the fewest digits that read back as the same number, in the locale C whatever the program's */
static int Print(char text[32], double v)
{
  double back;
  int    n = 0;

  if (v == floor(v) && fabs(v) < 1e15 && (v != 0 || !signbit(v))) return snprintf(text, 32, "%lld", (long long)v);
  for (int digits = 15; digits <= 17; digits++) {
    n       = snprintf(text, 32, "%.*g", digits, v);
    text[n] = '\n';
    if (GPUCSRReal(text, text + n + 1, &back) && back == v) break;
  }
  text[n] = 0;
  return n;
}

static int PrintScalar(char text[64], PetscScalar v)
{
  int n = Print(text, PetscRealPart(v));

  if (PetscDefined(USE_COMPLEX)) {
    text[n++] = ' ';
    n += Print(text + n, PetscImaginaryPart(v));
  }
  return n;
}

FILE *Nameless(const char beside[])
{
  const char *folder = getenv("TMPDIR");
  char        name[PETSC_MAX_PATH_LEN];
  FILE       *out = NULL;
  int         fd;

  snprintf(name, sizeof(name), "%s%s.XXXXXX", beside ? beside : folder ? folder : "/tmp", beside ? "" : "/gpucsr-convert");
  fd = mkstemp(name);
  if (fd < 0) return NULL;
  unlink(name);
  out = fdopen(fd, "w+");
  if (!out) close(fd);
  return out;
}

static int KeepLabels(Writer *w, const Rows *r, GPUCSRFault *f)
{
  if (!r->label || !r->m) return 0;
  if (w->labels + r->m > w->room) {
    const int64_t room  = PetscMax(2 * w->room, w->labels + r->m);
    double       *label = (double *)realloc(w->label, (size_t)room * sizeof(*label));

    if (!label) return GPUCSRFaultSet(f, 0, 0, "no memory for %lld labels", (long long)room);
    w->label = label;
    w->room  = room;
  }
  memcpy(w->label + w->labels, r->label, (size_t)r->m * sizeof(*w->label));
  w->labels += r->m;
  return 0;
}

/* ---- PETSc binary */

/* n numbers of 4 or 8 bytes, in the byte order of PETSc's files */
static int PutNumbers(Writer *w, FILE *out, const void *v, size_t width, int64_t n, GPUCSRFault *f)
{
  for (int64_t at = 0; at < n;) {
    const int64_t many = PetscMin(n - at, (int64_t)(BUFFER / width));

    memcpy(w->buffer, (const char *)v + (size_t)at * width, (size_t)many * width);
    if (width == 4)
      for (int64_t k = 0; k < many; k++) ((uint32_t *)w->buffer)[k] = __builtin_bswap32(((uint32_t *)w->buffer)[k]);
    else
      for (int64_t k = 0; k < many; k++) ((uint64_t *)w->buffer)[k] = __builtin_bswap64(((uint64_t *)w->buffer)[k]);
    if (Put(w, out, w->buffer, (size_t)many * width, f)) return 1;
    at += many;
  }
  return 0;
}

static int PetscRows(Writer *w, const Rows *r, GPUCSRFault *f)
{
  PetscInt length[1024];

  for (int64_t at = 0; at < r->m; at += 1024) {
    const int64_t many = PetscMin(r->m - at, 1024);

    for (int64_t k = 0; k < many; k++) length[k] = (PetscInt)(r->row[at + k + 1] - r->row[at + k]);
    if (PutNumbers(w, w->out, length, sizeof(*length), many, f)) return 1;
  }
  if (PutNumbers(w, w->columns, r->j + r->row[0], sizeof(*r->j), r->row[r->m] - r->row[0], f)) return 1;
  if (PutNumbers(w, w->values, r->v + r->row[0], 8, (r->row[r->m] - r->row[0]) * (int64_t)(sizeof(*r->v) / 8), f)) return 1;
  return KeepLabels(w, r, f);
}

static int Append(Writer *w, FILE *from, GPUCSRFault *f)
{
  size_t n;

  if (fflush(from) || fseek(from, 0, SEEK_SET)) return Bad(w, f);
  while ((n = fread(w->buffer, 1, BUFFER, from)) > 0)
    if (Put(w, w->out, w->buffer, n, f)) return 1;
  return ferror(from) ? Bad(w, f) : 0;
}

static int PetscFinish(Writer *w, GPUCSRFault *f)
{
  PetscInt head[4] = {GPUCSR_BINARY_MAT, (PetscInt)w->m, (PetscInt)w->n, (PetscInt)w->nz};

  if (w->m > PETSC_MAX_INT || w->n > PETSC_MAX_INT) return GPUCSRFaultSet(f, 0, 0, "%lld by %lld is more than the integers of this PETSc can count: a PETSc with 64-bit indices writes such files", (long long)w->m, (long long)w->n);
  if (w->nz > PETSC_MAX_INT) return GPUCSRFaultSet(f, 0, 0, "%lld entries are more than the integers of this PETSc can count: a PETSc with 64-bit indices writes such files", (long long)w->nz);
  if (Append(w, w->columns, f) || Append(w, w->values, f)) return 1;
  if (w->labels) {
    head[0] = GPUCSR_BINARY_VEC;
    if (PutNumbers(w, w->out, head, sizeof(*head), 2, f)) return 1;
    head[0] = GPUCSR_BINARY_MAT;
    for (int64_t k = 0; k < w->labels; k++) {
      const PetscScalar y = (PetscScalar)w->label[k];

      if (PutNumbers(w, w->out, &y, 8, sizeof(y) / 8, f)) return 1;
    }
  }
  if (fseek(w->out, 0, SEEK_SET)) return Bad(w, f);
  return PutNumbers(w, w->out, head, sizeof(*head), 4, f);
}

/* ---- Matrix Market */

static int MarketRows(Writer *w, const Rows *r, GPUCSRFault *f)
{
  for (int64_t i = 0; i < r->m; i++)
    for (int64_t k = r->row[i]; k < r->row[i + 1]; k++) {
      char text[128];
      int  n = snprintf(text, sizeof(text), "%lld %lld ", (long long)(r->first + i + 1), (long long)r->j[k] + 1);

      n += PrintScalar(text + n, r->v[k]);
      text[n++] = '\n';
      if (Put(w, w->out, text, (size_t)n, f)) return 1;
    }
  return 0;
}

static int MarketFinish(Writer *w, GPUCSRFault *f)
{
  if (fseek(w->out, 0, SEEK_SET)) return Bad(w, f);
  fprintf(w->out, "%%%%MatrixMarket matrix coordinate %s general\n", PetscDefined(USE_COMPLEX) ? "complex" : "real");
  fprintf(w->out, "%*lld %lld %lld\n", (int)(HEADER - 1 - snprintf(NULL, 0, " %lld %lld", (long long)w->n, (long long)w->nz)), (long long)w->m, (long long)w->n, (long long)w->nz);
  return ferror(w->out) ? Bad(w, f) : 0;
}

/* ---- LIBSVM */

static int LibsvmRows(Writer *w, const Rows *r, GPUCSRFault *f)
{
  for (int64_t i = 0; i < r->m; i++) {
    char text[128];
    int  n = r->label ? Print(text, r->label[i]) : snprintf(text, sizeof(text), "0");

    if (r->query && r->query[i] >= 0) n += snprintf(text + n, sizeof(text) - (size_t)n, " qid:%lld", (long long)r->query[i]);
    if (Put(w, w->out, text, (size_t)n, f)) return 1;
    for (int64_t k = r->row[i]; k < r->row[i + 1]; k++) {
      n = snprintf(text, sizeof(text), " %lld:", (long long)(r->j[k] + w->base));
      n += Print(text + n, PetscRealPart(r->v[k]));
      if (Put(w, w->out, text, (size_t)n, f)) return 1;
    }
    if (Put(w, w->out, "\n", 1, f)) return 1;
  }
  return 0;
}

/* ---- All of them */

/* The file that a signal would leave behind */
static char *volatile left;

static void Interrupted(int number)
{
  if (left) unlink(left);
  signal(number, SIG_DFL);
  raise(number);
}

/* A file next to the output, renamed when complete: with the permissions of the file that it replaces, or of a new file */
static int OpenUnfinished(Writer *w, GPUCSRFault *f)
{
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  struct stat      st;
  const int        there = !lstat(w->name, &st), size = (int)strlen(w->name) + 16;
  mode_t           mask;
  int              fd;

  if (there && !S_ISREG(st.st_mode)) return GPUCSRFaultSet(f, 0, 0, "%s cannot be written: it is not a regular file, and only a regular file can be replaced", w->name);
  w->unfinished = (char *)malloc((size_t)size);
  if (!w->unfinished) return GPUCSRFaultSet(f, 0, 0, "no memory");
  snprintf(w->unfinished, (size_t)size, "%s.part.XXXXXX", w->name);
  fd = mkstemp(w->unfinished);
  if (fd < 0) {
    const int failed = Bad(w, f);

    free(w->unfinished);
    w->unfinished = NULL;
    return failed;
  }
  left = w->unfinished;
  for (size_t k = 0; k < sizeof(signals) / sizeof(signals[0]); k++)
    if (signal(signals[k], Interrupted) == SIG_IGN) signal(signals[k], SIG_IGN); /* nohup */
  mask = umask(0);
  umask(mask);
  w->out = fchmod(fd, there ? st.st_mode & 0777 : 0666 & ~mask) ? NULL : fdopen(fd, "w+");
  if (w->out) return 0;
  close(fd);
  return Bad(w, f);
}

int WriterOpen(const char format[], const char name[], int base, Writer **writer, GPUCSRFault *f)
{
  Writer *w = (Writer *)calloc(1, sizeof(*w));

  *writer = w;
  if (!w) return GPUCSRFaultSet(f, 0, 0, "no memory");
  w->name   = name;
  w->base   = base;
  w->buffer = (char *)malloc(BUFFER);
  if (!w->buffer) return GPUCSRFaultSet(f, 0, 0, "no memory");
  if (OpenUnfinished(w, f)) return 1;
  if (!strcmp(format, "petsc")) {
    w->rows    = PetscRows;
    w->finish  = PetscFinish;
    w->columns = Nameless(w->name);
    w->values  = Nameless(w->name);
    if (!w->columns || !w->values || fseek(w->out, 4 * sizeof(PetscInt), SEEK_SET)) return Bad(w, f);
  } else if (!strcmp(format, "market")) {
    w->rows   = MarketRows;
    w->finish = MarketFinish;
    fprintf(w->out, "%%%%MatrixMarket matrix coordinate %s general\n%*s\n", PetscDefined(USE_COMPLEX) ? "complex" : "real", HEADER - 1, "");
  } else {
    w->rows = LibsvmRows;
  }
  return 0;
}

int WriterFinish(Writer *w, int64_t m, int64_t n, GPUCSRFault *f)
{
  FILE *out = w->out;

  w->m = m;
  w->n = n;
  if (w->finish && w->finish(w, f)) return 1;
  w->out = NULL; /* closed, whatever fclose() says */
  if (fclose(out) || rename(w->unfinished, w->name)) return Bad(w, f);
  left = NULL;
  free(w->unfinished);
  w->unfinished = NULL;
  return 0;
}

void WriterDestroy(Writer *w)
{
  if (!w) return;
  if (w->out) fclose(w->out);
  if (w->unfinished) unlink(w->unfinished);
  left = NULL;
  free(w->unfinished);
  if (w->columns) fclose(w->columns);
  if (w->values) fclose(w->values);
  free(w->label);
  free(w->buffer);
  free(w);
}

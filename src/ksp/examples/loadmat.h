#pragma once

/*
  LoadMat() and LoadVec(): read a matrix or a vector from a file, on any number of ranks.

  The file is told by its content: PETSc binary (MatView() and VecView() write it) or Matrix Market, the text format of
  R. F. Boisvert, R. Pozo and K. A. Remington, "The Matrix Market exchange formats: initial design", NISTIR 5935, 1996.
  Of the latter: coordinate or (general) array; real, integer, pattern, and complex where PETSc is; general, symmetric,
  skew-symmetric, Hermitian. Entries given twice are added.

  Rank 0 reads and checks; what is wrong with a file is said once, with its name and line, before PETSc allocates anything by it.
*/
#include <petscksp.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Matrix Market ---- */

enum {
  LINE_MAX_CHARS = 1024 /* the longest line that the format allows */
};

typedef struct {
  FILE       *fp;
  const char *name;
  long        bytes; /* length of the file */
  long        line;  /* number of the line in text, from 1 */
  char        text[LINE_MAX_CHARS + 2];
} TextFile;

typedef enum {
  ENTRIES_GENERAL,
  ENTRIES_SYMMETRIC,
  ENTRIES_SKEW,
  ENTRIES_HERMITIAN
} EntriesSymmetry;

/* The whole matrix as triplets, both halves of a symmetric one; on all ranks but the first it has no entries */
typedef struct {
  PetscInt     m, n;
  PetscCount   nz;
  PetscInt    *i, *j; /* from 0 */
  PetscScalar *v;
} Triplets;

#define LineCheck(ok, t, ...) \
  do { \
    if (!(ok)) { \
      char why_[256]; \
      PetscCall(PetscSNPrintf(why_, sizeof(why_), __VA_ARGS__)); \
      SETERRQ(PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s, line %ld: %s", (t)->name, (t)->line, why_); \
    } \
  } while (0)

/* The next line that is neither blank nor a comment; end is true and text empty when there is none */
static PetscErrorCode NextLine(TextFile *t, PetscBool *end)
{
  size_t len;
  char  *s;

  PetscFunctionBeginUser;
  do {
    t->line++;
    *end = (PetscBool)!fgets(t->text, sizeof(t->text), t->fp);
    if (*end) t->text[0] = 0;
    PetscCheck(!ferror(t->fp), PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "%s, line %ld: cannot be read: %s", t->name, t->line, strerror(errno));
    len = strlen(t->text);
    LineCheck(*end || (len && (t->text[len - 1] == '\n' || (feof(t->fp) && len <= LINE_MAX_CHARS))), t, "is longer than %d characters, or not text", LINE_MAX_CHARS);
    for (s = t->text; isspace((unsigned char)*s); s++) {
    }
  } while (!*end && (!*s || *s == '%'));
  PetscFunctionReturn(0);
}

static PetscBool AtNumberEnd(const char *begin, const char *end)
{
  return (PetscBool)(end != begin && (!*end || isspace((unsigned char)*end)));
}

/* Read one number at *s and step over it; false if there is none, or it does not fit */
static PetscBool TakeInt(char **s, PetscInt *v)
{
  char     *end;
  long long w;

  errno = 0;
  w     = strtoll(*s, &end, 10);
  if (errno || !AtNumberEnd(*s, end) || w > PETSC_MAX_INT || w < PETSC_MIN_INT) return PETSC_FALSE;
  *v = (PetscInt)w;
  *s = end;
  return PETSC_TRUE;
}

static PetscBool TakeReal(char **s, PetscReal *v)
{
  char  *end;
  double w = strtod(*s, &end);

  if (!AtNumberEnd(*s, end) || PetscIsInfOrNanReal((PetscReal)w)) return PETSC_FALSE;
  *v = (PetscReal)w;
  *s = end;
  return PETSC_TRUE;
}

static PetscBool TakeNothing(char *s)
{
  while (isspace((unsigned char)*s)) s++;
  return (PetscBool) !*s;
}

static PetscScalar MakeScalar(PetscReal re, PetscReal im)
{
#if defined(PETSC_USE_COMPLEX)
  return PetscCMPLX(re, im);
#else
  (void)im;
  return re;
#endif
}

/* The words of the first line, and what they ask for */
static PetscErrorCode ReadBanner(TextFile *t, PetscBool *array, PetscInt *numbers, EntriesSymmetry *symmetry)
{
  const char *const symmetries[] = {"general", "symmetric", "skew-symmetric", "hermitian"};
  const char *const fields[]     = {"pattern", "real", "complex", "integer"}; /* index modulo 3: numbers of an entry, but integer */
  char              word[5][64]  = {"", "", "", "", ""};
  PetscInt          field, sym;
  PetscBool         same, object, format, found;

  PetscFunctionBeginUser;
  t->line = 1;
  LineCheck(fgets(t->text, sizeof(t->text), t->fp), t, "is empty");
  LineCheck(sscanf(t->text, "%63s %63s %63s %63s %63s", word[0], word[1], word[2], word[3], word[4]) == 5, t, "expected the five words '%%%%MatrixMarket matrix FORMAT FIELD SYMMETRY'");
  PetscCall(PetscStrcasecmp(word[0], "%%MatrixMarket", &same));
  PetscCall(PetscStrcasecmp(word[1], "matrix", &object));
  LineCheck(same && object, t, "expected it to begin with '%%%%MatrixMarket matrix', not '%s %s'", word[0], word[1]);
  PetscCall(PetscStrcasecmp(word[2], "array", array));
  PetscCall(PetscStrcasecmp(word[2], "coordinate", &format));
  LineCheck(*array || format, t, "format '%s' is none of coordinate, array", word[2]);
  PetscCall(PetscEListFind(4, fields, word[3], &field, &found));
  LineCheck(found, t, "field '%s' is none of real, integer, pattern, complex", word[3]);
  PetscCall(PetscEListFind(4, symmetries, word[4], &sym, &found));
  LineCheck(found, t, "symmetry '%s' is none of general, symmetric, skew-symmetric, hermitian", word[4]);
  *symmetry = (EntriesSymmetry)sym;
  *numbers  = field == 3 ? 1 : field;
  LineCheck(*numbers < 2 || PetscDefined(USE_COMPLEX), t, "a complex matrix needs a PETSc configured with complex scalars; this one has real scalars");
  LineCheck(!*array || (*numbers && *symmetry == ENTRIES_GENERAL), t, "array files are read only when they are 'general' and have values");
  PetscFunctionReturn(0);
}

static PetscErrorCode ReadMatrixMarket(TextFile *t, Triplets *T)
{
  EntriesSymmetry symmetry = ENTRIES_GENERAL;
  PetscBool       array, end, ok;
  PetscInt        numbers = 1, entries = 0, i = 0, j = 0;
  PetscReal       re = 1.0, im = 0.0;
  char           *s;

  PetscFunctionBeginUser;
  PetscCall(ReadBanner(t, &array, &numbers, &symmetry));

  PetscCall(NextLine(t, &end));
  s  = t->text;
  ok = (PetscBool)(TakeInt(&s, &T->m) && TakeInt(&s, &T->n) && (array || TakeInt(&s, &entries)) && TakeNothing(s));
  LineCheck(ok, t, "expected the sizes: %s, as whole numbers of at most %" PetscInt_FMT, array ? "rows and columns" : "rows, columns and entries", (PetscInt)PETSC_MAX_INT);
  LineCheck(T->m >= 0 && T->n >= 0 && entries >= 0, t, "negative size: %" PetscInt_FMT " rows, %" PetscInt_FMT " columns, %" PetscInt_FMT " entries", T->m, T->n, entries);
  LineCheck(symmetry == ENTRIES_GENERAL || T->m == T->n, t, "a symmetric matrix has to be square, not %" PetscInt_FMT " by %" PetscInt_FMT, T->m, T->n);
  /* an entry takes two characters at the least: refuse sizes that the file cannot hold before memory is asked for them */
  LineCheck((array ? (double)T->m * T->n : (double)entries) <= 0.5 * ((double)t->bytes + 1), t, "the file, of %ld bytes, is too short for the entries announced here", t->bytes);
  if (array) entries = T->m * T->n;

  T->nz = 0;
  PetscCall(PetscMalloc3((symmetry ? 2 : 1) * (size_t)entries, &T->i, (symmetry ? 2 : 1) * (size_t)entries, &T->j, (symmetry ? 2 : 1) * (size_t)entries, &T->v));
  for (PetscInt k = 0; k < entries; k++) {
    PetscCall(NextLine(t, &end));
    LineCheck(!end, t, "the file ends after %" PetscInt_FMT " of %" PetscInt_FMT " entries", k, entries);
    s = t->text;
    if (array) {
      i = k % T->m + 1; /* by columns */
      j = k / T->m + 1;
    } else LineCheck(TakeInt(&s, &i) && TakeInt(&s, &j), t, "expected a row and a column, as whole numbers");
    LineCheck(i >= 1 && i <= T->m && j >= 1 && j <= T->n, t, "entry (%" PetscInt_FMT ", %" PetscInt_FMT ") is outside the matrix, of %" PetscInt_FMT " rows and %" PetscInt_FMT " columns", i, j, T->m, T->n);
    LineCheck(numbers < 1 || TakeReal(&s, &re), t, "expected a finite number as the value");
    LineCheck(numbers < 2 || TakeReal(&s, &im), t, "expected a finite number as the imaginary part");
    LineCheck(TakeNothing(s), t, "has more than one entry on it");
    LineCheck(symmetry == ENTRIES_GENERAL || i > j || (i == j && symmetry != ENTRIES_SKEW), t, "entry (%" PetscInt_FMT ", %" PetscInt_FMT ") %s", i, j, symmetry == ENTRIES_SKEW ? "is not below the diagonal, where a skew-symmetric file has all its entries" : "is above the diagonal; a symmetric file has the lower triangle alone");
    T->i[T->nz] = i - 1;
    T->j[T->nz] = j - 1;
    T->v[T->nz] = MakeScalar(re, im);
    T->nz++;
    if (symmetry != ENTRIES_GENERAL && i != j) {
      T->i[T->nz] = j - 1;
      T->j[T->nz] = i - 1;
      T->v[T->nz] = symmetry == ENTRIES_SKEW ? -MakeScalar(re, im) : MakeScalar(re, symmetry == ENTRIES_HERMITIAN ? -im : im);
      T->nz++;
    }
  }
  PetscCall(NextLine(t, &end));
  LineCheck(end, t, "more than the %" PetscInt_FMT " entries that the size line announces", entries);
  PetscFunctionReturn(0);
}

/* ---- PETSc binary ---- */

/*
  Check the file that MatLoad() or VecLoad() is about to read: they trust its sizes and indices.
  Rows, columns and entries of the matrix stand after the class id, then the lengths of the rows, the columns of all entries, the
  values; of a vector its length, then the values. All of it is big-endian, in the widths of the PETSc that wrote it. More objects may follow.
*/
static PetscErrorCode CheckBinary(const char name[], long bytes, PetscInt classid, PetscInt *m, PetscInt *n)
{
  const PetscBool isvec  = (PetscBool)(classid == VEC_FILE_CLASSID);
  const PetscInt  header = isvec ? 2 : 4;
  PetscInt        head[4], *length, *column, count, next, longest = 0;
  PetscCount      nz = 0;
  off_t           at;
  double          want;
  int             fd;

  PetscFunctionBeginUser;
  PetscCall(PetscBinaryOpen(name, FILE_MODE_READ, &fd));
  PetscCall(PetscBinaryRead(fd, head, header, &count, PETSC_INT));
  PetscCheck(count == header, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: truncated: the file ends in its header", name);
  PetscCheck(head[1] >= 0 && (isvec || head[2] >= 0), PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: negative size in the header: %" PetscInt_FMT " rows, %" PetscInt_FMT " columns", name, head[1], isvec ? 1 : head[2]);
  PetscCheck(isvec || head[3] >= -1, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: negative number of entries in the header: %" PetscInt_FMT, name, head[3]);

  if (isvec) want = (double)head[1] * sizeof(PetscScalar);
  else if (head[3] == -1) want = (double)head[1] * head[2] * sizeof(PetscScalar); /* dense */
  else want = (double)head[1] * sizeof(PetscInt) + (double)head[3] * (sizeof(PetscInt) + sizeof(PetscScalar));
  want += header * sizeof(PetscInt);
  PetscCheck(bytes >= want, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: has %ld bytes where its header asks for %.0f: truncated, or written by a PETSc of another precision or scalar type", name, bytes, want);
  if (bytes > want) {
    PetscCall(PetscBinarySeek(fd, (off_t)want, PETSC_BINARY_SEEK_SET, &at));
    PetscCall(PetscBinaryRead(fd, &next, 1, &count, PETSC_INT));
    PetscCall(PetscBinarySeek(fd, (off_t)(header * sizeof(PetscInt)), PETSC_BINARY_SEEK_SET, &at));
    /* the class ids of what PETSc writes lie close together */
    PetscCheck(count == 1 && PetscAbsInt(next - MAT_FILE_CLASSID) < 100, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: has %ld bytes where its header asks for %.0f, and what follows is no object of PETSc: damaged, or written by a PETSc of another precision or scalar type", name, bytes, want);
  }

  if (!isvec && head[3] >= 0) {
    PetscCall(PetscMalloc1(head[1], &length));
    PetscCall(PetscBinaryRead(fd, length, head[1], NULL, PETSC_INT));
    for (PetscInt i = 0; i < head[1]; i++) {
      PetscCheck(length[i] >= 0 && length[i] <= head[2], PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: row %" PetscInt_FMT " has %" PetscInt_FMT " entries in a matrix of %" PetscInt_FMT " columns", name, i, length[i], head[2]);
      longest = PetscMax(longest, length[i]);
      nz += length[i];
    }
    PetscCheck(nz == head[3], PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: the rows have %.0f entries together, the header says %" PetscInt_FMT, name, (double)nz, head[3]);
    PetscCall(PetscMalloc1(longest, &column));
    for (PetscInt i = 0; i < head[1]; i++) {
      PetscCall(PetscBinaryRead(fd, column, length[i], NULL, PETSC_INT));
      for (PetscInt k = 0; k < length[i]; k++) {
        PetscCheck(column[k] >= 0 && column[k] < head[2], PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: row %" PetscInt_FMT " has an entry in column %" PetscInt_FMT " of %" PetscInt_FMT " (counted from 0)", name, i, column[k], head[2]);
        PetscCheck(!k || column[k] > column[k - 1], PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: the columns of row %" PetscInt_FMT " do not increase: %" PetscInt_FMT " stands before %" PetscInt_FMT, name, i, column[k - 1], column[k]);
      }
    }
    PetscCall(PetscFree(column));
    PetscCall(PetscFree(length));
  }
  PetscCall(PetscBinaryClose(fd));
  *m = head[1];
  *n = isvec ? 1 : head[2];
  PetscFunctionReturn(0);
}

/* ---- both ---- */

/* On rank 0: open a file, tell what it is by its first bytes, and check or read it */
static PetscErrorCode InspectFile(const char name[], PetscInt classid, PetscBool *text, Triplets *T)
{
  TextFile      t;
  unsigned char first[8] = {0};
  unsigned long word[2]  = {0, 0};

  PetscFunctionBeginUser;
  t.name = name;
  t.fp   = fopen(name, "rb");
  PetscCheck(t.fp, PETSC_COMM_SELF, PETSC_ERR_FILE_OPEN, "%s: cannot be opened: %s", name, strerror(errno));
  PetscCheck(!fseek(t.fp, 0, SEEK_END) && (t.bytes = ftell(t.fp)) >= 0 && t.bytes < LONG_MAX && !fseek(t.fp, 0, SEEK_SET), PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "%s: is not a regular file", name);
  PetscCheck(fread(first, 1, sizeof(first), t.fp) == sizeof(first), PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: is empty, or too short for a file of either kind", name);
  rewind(t.fp);
  for (int k = 0; k < 8; k++) word[k / 4] = word[k / 4] << 8 | first[k];

  PetscCheck(first[0] != 0x1f || first[1] != 0x8b, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: is compressed: decompress it first, or let -dll_append libpetscgpucsr.so bring what reads it", name);
  PetscCheck(first[0] == 0 || first[0] == '%', PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: is neither PETSc binary nor Matrix Market, whose first line begins with %%%%MatrixMarket", name);
  *text = (PetscBool)(first[0] == '%');
  if (*text) PetscCall(ReadMatrixMarket(&t, T));
  else {
    const int bits = word[0] ? 32 : 64; /* the width of the first index, which is the class id */

    PetscCheck(word[bits == 64] == (unsigned long)classid, PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: holds no %s: class id %lu instead of %" PetscInt_FMT, name, classid == VEC_FILE_CLASSID ? "vector" : "matrix", word[bits == 64], classid);
    PetscCheck(bits == 8 * (int)sizeof(PetscInt), PETSC_COMM_SELF, PETSC_ERR_FILE_UNEXPECTED, "%s: was written by a PETSc of %d-bit indices, this one has %d-bit indices; both read Matrix Market", name, bits, 8 * (int)sizeof(PetscInt));
    PetscCall(CheckBinary(name, t.bytes, classid, &T->m, &T->n));
  }
  PetscCheck(!fclose(t.fp), PETSC_COMM_SELF, PETSC_ERR_FILE_READ, "%s: cannot be closed: %s", name, strerror(errno));
  PetscFunctionReturn(0);
}

/* Collective: T has the sizes on all ranks, and on the first the entries if the file is text; viewer is that of a binary file, or NULL */
static PetscErrorCode OpenFile(MPI_Comm comm, const char name[], PetscInt classid, Triplets *T, PetscViewer *viewer)
{
  PetscBool   text = PETSC_FALSE;
  PetscInt    say[3];
  PetscMPIInt rank;

  PetscFunctionBeginUser;
  PetscCall(PetscMemzero(T, sizeof(*T)));
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  if (!rank) PetscCall(InspectFile(name, classid, &text, T));
  say[0] = T->m;
  say[1] = T->n;
  say[2] = text;
  PetscCallMPI(MPI_Bcast(say, 3, MPIU_INT, 0, comm));
  T->m    = say[0];
  T->n    = say[1];
  *viewer = NULL;
  if (!say[2]) PetscCall(PetscViewerBinaryOpen(comm, name, FILE_MODE_READ, viewer));
  PetscFunctionReturn(0);
}

/* Each rank sets the entries that it has; PETSc sends them to the ranks of their rows */
static PetscErrorCode SetEntries(Mat A, const Triplets *T)
{
  PetscFunctionBeginUser;
  for (PetscCount k = 0; k < T->nz; k++) PetscCall(MatSetValue(A, T->i[k], T->j[k], T->v[k], ADD_VALUES));
  PetscCall(MatAssemblyBegin(A, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(A, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(0);
}

/* A compressed file, by a library that was loaded and has a function for such */
static PetscErrorCode LoadCompressed(Mat A, const char name[], PetscBool *loaded)
{
  static const char *const magic[]                                              = {"\x1f\x8b",
                                                                                   "\xfd"
                                                                                                                                "7zXZ",
                                                                                   "BZh"};
  PetscErrorCode (*load)(Mat, const char *, const void *, Vec *, Vec *, void *) = NULL;
  MPI_Comm    comm                                                              = PetscObjectComm((PetscObject)A);
  int         compressed                                                        = 0;
  PetscMPIInt rank;

  PetscFunctionBeginUser;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  if (!rank) {
    char  first[8] = {0};
    FILE *fp       = fopen(name, "rb");

    if (fp && fread(first, 1, sizeof(first) - 1, fp))
      for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(magic); k++) compressed |= !strncmp(first, magic[k], strlen(magic[k]));
    if (fp) fclose(fp);
  }
  PetscCallMPI(MPI_Bcast(&compressed, 1, MPI_INT, 0, comm));
  if (compressed) PetscCall(PetscDLSym(NULL, "MatGPUCSRLoadFile", (void **)&load));
  if (load) PetscCall((*load)(A, name, NULL, NULL, NULL, NULL));
  *loaded = (PetscBool)(load != NULL);
  PetscFunctionReturn(0);
}

/* Fill a matrix whose type is set (MatSetFromOptions()) and whose sizes are not; its rows and columns are distributed evenly */
static inline PetscErrorCode LoadMat(Mat A, const char name[])
{
  Triplets    T;
  PetscViewer viewer;
  Mat         counter; /* takes entries and keeps but their number, for MatSetValues() is slow in a matrix that has to grow */
  PetscBool   loaded = PETSC_FALSE;

  PetscFunctionBeginUser;
  PetscCall(LoadCompressed(A, name, &loaded));
  if (loaded) PetscFunctionReturn(0);
  PetscCall(OpenFile(PetscObjectComm((PetscObject)A), name, MAT_FILE_CLASSID, &T, &viewer));
  if (viewer) PetscCall(MatLoad(A, viewer));
  else {
    PetscCall(MatSetSizes(A, PETSC_DECIDE, PETSC_DECIDE, T.m, T.n));
    PetscCall(MatCreate(PetscObjectComm((PetscObject)A), &counter));
    PetscCall(MatSetSizes(counter, PETSC_DECIDE, PETSC_DECIDE, T.m, T.n));
    PetscCall(MatSetType(counter, MATPREALLOCATOR));
    PetscCall(MatSetOptionsPrefix(counter, "counter_"));
    PetscCall(MatSetUp(counter));
    PetscCall(SetEntries(counter, &T));
    PetscCall(MatPreallocatorPreallocate(counter, PETSC_FALSE, A));
    PetscCall(MatDestroy(&counter));
    PetscCall(SetEntries(A, &T));
    PetscCall(PetscFree3(T.i, T.j, T.v));
  }
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(0);
}

/* Fill a vector whose type and size are set; in Matrix Market it is a matrix of one column */
static inline PetscErrorCode LoadVec(Vec x, const char name[])
{
  Triplets    T;
  PetscViewer viewer;
  PetscInt    N;

  PetscFunctionBeginUser;
  PetscCall(OpenFile(PetscObjectComm((PetscObject)x), name, VEC_FILE_CLASSID, &T, &viewer));
  PetscCall(VecGetSize(x, &N));
  PetscCheck(T.m == N && T.n == 1, PetscObjectComm((PetscObject)x), PETSC_ERR_FILE_UNEXPECTED, "%s: has %" PetscInt_FMT " rows and %" PetscInt_FMT " columns where a vector of %" PetscInt_FMT " rows, in 1 column, is needed", name, T.m, T.n, N);
  if (viewer) PetscCall(VecLoad(x, viewer));
  else {
    PetscCall(VecSet(x, 0.0));
    PetscCall(VecSetValues(x, (PetscInt)T.nz, T.i, T.v, ADD_VALUES));
    PetscCall(VecAssemblyBegin(x));
    PetscCall(VecAssemblyEnd(x));
    PetscCall(PetscFree3(T.i, T.j, T.v));
  }
  PetscCall(PetscViewerDestroy(&viewer));
  PetscFunctionReturn(0);
}

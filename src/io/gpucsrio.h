#pragma once

/*
  Matrices from text, for MatGPUCSRLoadFile() and the fuzzers.

  A file is a source of text, readable at any place, or a stream if it is compressed or a pipe. The text is cut at line ends into blocks. Threads parse each block into a piece: rows with labels (LIBSVM),
  triplets (Matrix Market coordinates, Harwell-Boeing) or bare values (Matrix Market arrays). Pieces are then assembled into compressed rows.

  This layer uses PetscInt and PetscScalar but calls no function of PETSc, because it runs inside threads. A function that can fail returns 0, or leaves the
  error and its place in a GPUCSRFault.
*/
#include <petscsys.h>
#include <stdint.h>
#include <stdio.h>

#define GPUCSR_IO_INTERN extern PETSC_VISIBILITY_INTERNAL

/* An error. Lines and columns count from 1; line 0: the file as a whole, column 0: the line as a whole */
typedef struct {
  int64_t line, column;
  char    why[256];
} GPUCSRFault;

GPUCSR_IO_INTERN int  GPUCSRFaultSet(GPUCSRFault *, int64_t line, int64_t column, const char format[], ...) __attribute__((format(printf, 4, 5))); /* returns 1 */
GPUCSR_IO_INTERN int  GPUCSRFaultExpected(GPUCSRFault *, int64_t number, const char *line, const char *p, const char what[]);                      /* "expected what, not the word at p", in a line with this number; returns 1 */
GPUCSR_IO_INTERN void GPUCSRFaultPrint(const GPUCSRFault *, const char file[], char text[], size_t size);                                          /* "FILE, line 3, column 7: why" */

/* The word at p, up to a blank or the end of the line, cut for a message; returns its end */
GPUCSR_IO_INTERN const char *GPUCSRFaultWord(const char *p, char word[32]);

/* ---- Pieces: the contents of a block of text */

typedef struct {
  size_t       nz;   /* entries */
  PetscInt    *i;    /* row indices; LIBSVM text has lengths instead */
  PetscInt    *j;    /* columns; LIBSVM: as in the file, before subtracting the base */
  PetscScalar *v;    /* values; NULL if all are 1 */
  size_t       rows; /* LIBSVM: rows, the length of each, labels, and qid (NULL if there is none) */
  PetscInt    *length;
  double      *label;
  int64_t     *query;     /* -1 for a row without */
  PetscInt     low, high; /* smallest and largest index of a column (LIBSVM) or a row (other formats) */
  size_t       entries;   /* lines with an entry, including skipped lines */
  size_t       skipped;   /* bad lines left out */
  int64_t      skip;      /* the first skipped line, from the start of the block */
  GPUCSRFault  fault;     /* why set: parsing stopped there; line from the start of the block */
} GPUCSRPiece;

GPUCSR_IO_INTERN void GPUCSRPieceDestroy(GPUCSRPiece *);
GPUCSR_IO_INTERN int  GPUCSRPieceAllocate(GPUCSRPiece *, size_t rows, size_t entries, int triplets, int values, GPUCSRFault *);
GPUCSR_IO_INTERN void GPUCSRPieceTrim(GPUCSRPiece *);

typedef struct GPUCSRInput_s GPUCSRInput; /* where bytes come from, see below */

/* ---- Formats */

typedef enum { /* as MatGPUCSRFileFormat */
  GPUCSR_TEXT_AUTO,
  GPUCSR_TEXT_PETSC, /* not text, but also recognised by content */
  GPUCSR_TEXT_LIBSVM,
  GPUCSR_TEXT_MARKET,
  GPUCSR_TEXT_BOEING
} GPUCSRTextFormat;

typedef enum {
  GPUCSR_GENERAL,
  GPUCSR_SYMMETRIC,
  GPUCSR_SKEW,
  GPUCSR_HERMITIAN
} GPUCSRSymmetry;

/* A Fortran format of lines with as many numbers each, such as (16I5) or (1P,5E16.8) */
typedef struct {
  int  count, width, digits; /* digits: after an implied point */
  int  scale;                /* power of ten */
  char letter;               /* I, F, E, D or G */
} GPUCSRFortran;

/* The header before the entries. LIBSVM has none, but the reader's caller may know the range of indices */
typedef struct {
  GPUCSRTextFormat format;
  GPUCSRSymmetry   symmetry;
  int64_t          low, beyond; /* LIBSVM: range of possible indices, as in the file, before subtracting the base */
  int              unlabelled;  /* LIBSVM: the first row has no label, so none may have one */
  int              array;       /* Matrix Market: values by columns, without indices */
  int              numbers;     /* of a value: 0 (pattern), 1, or 2 (complex) */
  int64_t          m, n, entries;
  size_t           bytes;                     /* length of the header */
  int64_t          lines;                     /* and its lines */
  int64_t          pointers, indices, values; /* Harwell-Boeing: lines of each part */
  GPUCSRFortran    pointer, index, value;
} GPUCSRTextHeader;

/* Parse the beginning of the text, in whole lines; return GPUCSR_HEADER_ENDS if more text may help */
#define GPUCSR_HEADER_ENDS 2
GPUCSR_IO_INTERN int  GPUCSRMarketHeader(const char text[], size_t bytes, GPUCSRTextHeader *, GPUCSRFault *);
GPUCSR_IO_INTERN void GPUCSRLibsvmHeader(const char text[], size_t bytes, GPUCSRTextHeader *);
GPUCSR_IO_INTERN int  GPUCSRBoeingHeader(const char text[], size_t bytes, GPUCSRTextHeader *, GPUCSRFault *);

/* Parse whole lines that end in a line feed. A fault is stored in the piece */
GPUCSR_IO_INTERN void GPUCSRLibsvmBound(GPUCSRTextHeader *, int64_t base, int64_t columns); /* negative: unknown */
GPUCSR_IO_INTERN void GPUCSRLibsvmParse(const GPUCSRTextHeader *, const char text[], size_t bytes, int skip, GPUCSRPiece *);
GPUCSR_IO_INTERN void GPUCSRMarketParse(const GPUCSRTextHeader *, const char text[], size_t bytes, int skip, GPUCSRPiece *);

/* ---- PETSc binary */

typedef struct {
  const GPUCSRInput *source;                                          /* no stream */
  size_t             length, width, lengths, columns, values, labels; /* of the file; of an integer; starts of the parts, labels 0 without labels */
  int64_t            M, N, nz;
} GPUCSRBinary;

GPUCSR_IO_INTERN int GPUCSRBinaryHeader(const GPUCSRInput *, GPUCSRBinary *, GPUCSRFault *);
GPUCSR_IO_INTERN int GPUCSRBinaryRows(const GPUCSRBinary *, int64_t rstart, int64_t m, int64_t row[], GPUCSRFault *);                                                    /* starts of m rows, m + 1 numbers from 0 */
GPUCSR_IO_INTERN int GPUCSRBinaryColumns(const GPUCSRBinary *, int64_t rstart, int64_t m, const int64_t row[], int64_t first, PetscInt j[], int threads, GPUCSRFault *); /* of m rows; `first` is the number of their first entry */
GPUCSR_IO_INTERN int GPUCSRBinaryReals(const GPUCSRBinary *, size_t at, int64_t n, PetscScalar to[], int threads, GPUCSRFault *);

/* ---- Sources and blocks */

/* Whole lines: a range of a source, or the text of a part of a stream */
typedef struct {
  const GPUCSRInput *source; /* NULL: a stream, with its text here */
  size_t             offset; /* of the range */
  int64_t            line;   /* of a stream: number of its first line */
  char              *text;   /* once it is loaded; ends in a line feed */
  size_t             bytes;
  GPUCSRPiece        piece;
} GPUCSRBlock;

GPUCSR_IO_INTERN int     GPUCSRInputOpen(const char name[], int others, GPUCSRInput **, GPUCSRFault *);    /* "-" is standard input; others is 1 if further processes open the file */
GPUCSR_IO_INTERN int     GPUCSRInputMemory(const void *data, size_t bytes, GPUCSRInput **, GPUCSRFault *); /* of a file in memory */
GPUCSR_IO_INTERN void    GPUCSRInputClose(GPUCSRInput *);
GPUCSR_IO_INTERN int     GPUCSRInputIsStream(const GPUCSRInput *); /* compressed, or a pipe: no size, one direction */
GPUCSR_IO_INTERN int64_t GPUCSRInputBytes(const GPUCSRInput *);    /* of the file; 0 of a pipe */
GPUCSR_IO_INTERN int64_t GPUCSRInputText(const GPUCSRInput *);     /* bytes of text: of a stream, the bytes passed on so far */
GPUCSR_IO_INTERN size_t  GPUCSRInputSize(const GPUCSRInput *);     /* that GPUCSRInputRead() can read */

GPUCSR_IO_INTERN int         GPUCSRIsBinary(const char text[], size_t bytes);                                                   /* does PETSc binary begin so? */
GPUCSR_IO_INTERN int         GPUCSRInputHead(GPUCSRInput *, size_t want, char **text, size_t *bytes, int *more, GPUCSRFault *); /* the first bytes, with room for one more; more: the text continues */
GPUCSR_IO_INTERN int         GPUCSRInputHeader(GPUCSRInput *, GPUCSRTextFormat, GPUCSRTextHeader *, GPUCSRFault *);
GPUCSR_IO_INTERN const char *GPUCSRInputWhole(GPUCSRInput *, GPUCSRFault *);                                         /* all of the text, in memory, of GPUCSRInputSize() bytes, and no stream then; NULL: a fault */
GPUCSR_IO_INTERN int         GPUCSRInputRead(const GPUCSRInput *, size_t at, size_t bytes, void *to, GPUCSRFault *); /* not of a stream; by any thread */

/* Ranks share the blocks of text that is not a stream: blocks of rank of size. A stream has one reader */
GPUCSR_IO_INTERN int     GPUCSRInputPart(GPUCSRInput *, const GPUCSRTextHeader *, int rank, int size, size_t blockbytes, GPUCSRFault *); /* behind the header */
GPUCSR_IO_INTERN void    GPUCSRInputEntries(const GPUCSRInput *, int64_t n, int64_t *first, int64_t *last, int64_t *step);               /* of n entries: this part, and entries of a block */
GPUCSR_IO_INTERN int     GPUCSRInputNext(GPUCSRInput *, GPUCSRBlock *, GPUCSRFault *);                                                   /* bytes is 0 at the end */
GPUCSR_IO_INTERN int     GPUCSRBlockLoad(GPUCSRBlock *, GPUCSRFault *);
GPUCSR_IO_INTERN int64_t GPUCSRBlockLine(const GPUCSRBlock *); /* number of its first line */
GPUCSR_IO_INTERN void    GPUCSRBlockDestroy(GPUCSRBlock *);

/* Parses by threads, then passes on the blocks in order, without their text; depth: number of blocks parsed before that. Stops at a fault, also of the handler */
typedef int (*GPUCSRBlockFn)(void *ctx, GPUCSRBlock *, GPUCSRFault *);
GPUCSR_IO_INTERN int GPUCSRInputParse(GPUCSRInput *, const GPUCSRTextHeader *, int skip, int threads, size_t depth, GPUCSRBlockFn, void *ctx, GPUCSRFault *);
GPUCSR_IO_INTERN int GPUCSRBoeingParse(GPUCSRInput *, const GPUCSRTextHeader *, int threads, GPUCSRBlockFn, void *ctx, GPUCSRFault *); /* the same for Harwell-Boeing */

/* ---- Assembly: rows from rstart to rend out of pieces, both halves of symmetric files */

typedef struct {
  GPUCSRSymmetry symmetry;
  int64_t        rstart, rend;
  size_t         npieces;
  GPUCSRPiece   *piece;
  int            threads;
} GPUCSRAssembly;

/* LIBSVM: the rows of the pieces one after the other, minus the base. Other formats: triplets; row gets the start of each row, m + 1 numbers */
GPUCSR_IO_INTERN void    GPUCSRAssemblyCount(const GPUCSRAssembly *, int64_t row[]);
GPUCSR_IO_INTERN int     GPUCSRAssemblyFill(const GPUCSRAssembly *, PetscInt base, const int64_t row[], PetscInt j[], PetscScalar v[], int64_t *equal, GPUCSRFault *);
GPUCSR_IO_INTERN int64_t GPUCSRSortRow(int64_t n, PetscInt j[], PetscScalar v[]);                        /* by columns; returns the number of entries with the place of the entry before, or -1 without memory */
GPUCSR_IO_INTERN void    GPUCSRAssemblyCompact(int64_t m, int64_t row[], PetscInt j[], PetscScalar v[]); /* adds up entries of equal places, if Fill has found any */

/* Matrix Market arrays: gives the values of a piece their rows and columns; first is the number of the first value */
GPUCSR_IO_INTERN void GPUCSRMarketPlace(const GPUCSRTextHeader *, int64_t first, GPUCSRPiece *);

static inline PetscScalar GPUCSRScalar(double re, double im)
{
#if defined(PETSC_USE_COMPLEX)
  return PetscCMPLX(re, im);
#else
  (void)im;
  return re;
#endif
}

static inline PetscScalar GPUCSRMirror(GPUCSRSymmetry symmetry, PetscScalar v)
{
#if defined(PETSC_USE_COMPLEX)
  if (symmetry == GPUCSR_HERMITIAN) return PetscCMPLX(creal(v), -cimag(v));
#endif
  return symmetry == GPUCSR_SKEW ? -v : v;
}

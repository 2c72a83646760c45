#pragma once

/*
  Shared by the converter's files: rows on their way from a reader to a writer, in order, a batch at a time.
*/
#include "../io/gpucsrio.h"

typedef struct {
  int64_t            first, m; /* the rows of this batch */
  const int64_t     *row;      /* first entry of each row, m + 1 numbers */
  const PetscInt    *j;        /* columns, from 0, ascending */
  const PetscScalar *v;
  const double      *label; /* NULL where there are none */
  const int64_t     *query; /* -1 for a row without */
} Rows;

/* ---- Statistics, and a checksum that depends only on the matrix, not on the file's format or the order of reading */

typedef struct {
  int64_t  m, n, nz, zeros, diagonal, empty, shortest, longest, bandwidth;
  int64_t *column; /* entries of each column; NULL if memory does not suffice, and then uncounted is set */
  int64_t  room;
  int      uncounted;
  double   squares; /* of the lengths of rows, for their deviation */
  double   least, most, smallest;
  int64_t  labels, integers; /* rows with a label; values that are whole numbers */
  double   label[8];         /* the first different labels, nlabels of them; 9 if there are more */
  int      nlabels;
  uint64_t sum, turned, pattern, patternturned, labelsum;
} Statistics;

void StatisticsAdd(Statistics *, const Rows *, int threads);
void StatisticsPrint(const Statistics *, FILE *);
void StatisticsDestroy(Statistics *);

/* ---- Writers */

typedef struct Writer_s Writer;
struct Writer_s {
  const char *name;                   /* of the file */
  char       *unfinished;             /* name until the file is complete */
  FILE       *out, *columns, *values; /* nameless files for later sections of the output */
  int64_t     m, n, nz, base;
  double     *label;
  int64_t     labels, room;
  char       *buffer;
  int (*rows)(Writer *, const Rows *, GPUCSRFault *);
  int (*finish)(Writer *, GPUCSRFault *); /* NULL: nothing is left to write */
};

int   WriterOpen(const char format[], const char name[], int base, Writer **, GPUCSRFault *);
int   WriterFinish(Writer *, int64_t m, int64_t n, GPUCSRFault *); /* completes the output and gives the file its name */
FILE *Nameless(const char beside[]);                               /* a file without a name, beside this file; NULL: in the folder of temporary files */
void  WriterDestroy(Writer *);                                     /* without WriterFinish() in front nothing stays */

#pragma once

/*
  What the converter's files share: rows on their way from a reader to a writer, in their order, a batch at a time.
*/
#include "gpucsrio.h"

typedef struct {
  int64_t            first, m; /* the rows of this batch */
  const int64_t     *row;      /* where each begins, m + 1 numbers */
  const PetscInt    *j;        /* columns, from 0, ascending */
  const PetscScalar *v;
  const double      *label; /* NULL where there are none */
  const int64_t     *query; /* -1 for a row without */
} Rows;

/* ---- Statistics, and a checksum that depends on the matrix alone: neither on the format of its file nor on the order of reading */

typedef struct {
  int64_t  m, n, nz, zeros, diagonal, empty, shortest, longest, bandwidth;
  int64_t *column; /* entries of each column; NULL beyond what memory can hold, and then uncounted is set */
  int64_t  room;
  int      uncounted;
  double   squares; /* of the lengths of rows, for their deviation */
  double   least, most, smallest;
  int64_t  labels, integers; /* rows with a label; values that are whole numbers */
  double   label[8];         /* the first different ones, nlabels of them, 9 when there are more */
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
  char       *unfinished;             /* what it is called until it is whole */
  FILE       *out, *columns, *values; /* the latter two have no name, and hold what stands further down in the file */
  int64_t     m, n, nz, base;
  double     *label;
  int64_t     labels, room;
  char       *buffer;
  int (*rows)(Writer *, const Rows *, GPUCSRFault *);
  int (*finish)(Writer *, GPUCSRFault *);
};

int  WriterOpen(const char format[], const char name[], int base, Writer **, GPUCSRFault *);
int  WriterFinish(Writer *, int64_t m, int64_t n, GPUCSRFault *); /* what was written becomes the file */
void WriterDestroy(Writer *);                                     /* without WriterFinish() in front nothing stays */

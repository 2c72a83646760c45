#pragma once

/*
  Values of a matrix in CSR, on its device: summed from a list of coordinates, and changed in place. Knows no Mat and no CUDA.

  A list of coordinates is sorted once, by row, column and place in the list (a stable radix sort of 64-bit keys). An entry of the matrix is then the sum of
  neighbours in the sorted list, added in the order of the list. Every run has the same bits, on the device and on the host.
*/
#include "../kernels/each.h"

/* Coordinates on a device. A negative row or column: the contribution is skipped. With a table, indices are places in the table */
typedef struct {
  int64_t     n;
  GPUCSRType  type; /* of i and j: GPUCSR_INT32 or GPUCSR_INT64 */
  const void *i, *j;
  int         rows, cols; /* lengths of the tables */
  const void *row, *col;  /* tables, of the same type; NULL: none */
} GPUCSRCoordinates;

/* How contributions become entries: entry e is the sum of contributions order[first[e]] to order[first[e + 1] - 1] */
typedef struct {
  GPUCSRDevice dev;
  int64_t      n, kept, nnz; /* contributions, those not skipped, and entries */
  int64_t      bad;          /* the first contribution beyond the matrix, -1: none */
  uint64_t    *key[2];       /* n of each, while the list is sorted */
  int32_t     *order[2];     /* n of each; later the first alone */
  int32_t     *entry;        /* n: 1 + the entry of each sorted contribution, while the list is sorted */
  int32_t     *first;        /* nnz + 1 */
} GPUCSRSum;

/* Rows on a device; row NULL: first, first + 1 and so on */
typedef struct {
  int            n, first;
  const int32_t *row;
} GPUCSRRowList;

/*
  Steps of rows, see ../kernels/each.h and rows.h: of the rows of A, but
    diagonalscale  rows by l, then columns by r; NULL: not
    places         place[r] of A[r][r] among the values, -1: not stored, and missing, which was 0, is 1; for the smaller size of A
    diagonal       A[r][r] = or += d[r], d NULL: s; all are stored, at place[r]; for the smaller size of A
    zerorows       the list's rows are zeroed, and their diagonal entries set to d; place NULL: d is 0. With x, b[r] = d x[r] for these rows
    mark           marks of the list's rows
    zerocolumns    zeroes marked rows, as zerorows, and their columns. With x, b loses the columns' products with x, too
    rowmaxabs      largest absolute value of each row, and its first column, untouched where the row has no entries; column NULL: no columns
    rowsums        s[r] += the sum of row r's absolute values
    entryrows      row[k] = the row of entry k < n, by m + 1 row pointers; wrong, which was 0, is 1 if the pointers do not ascend from 0 to n; for the larger of m + 1 and n
*/
#define GPUCSR_ASSEMBLE_STEPS(STEP) \
  STEP(diagonalscale, 8, (GPUCSRCSR A, const double *__restrict__ l, const double *__restrict__ r), (A, l, r)) \
  STEP(places, 8, (GPUCSRCSR A, int32_t * place, int *missing), (A, place, missing)) \
  STEP(diagonal, 1, (const int32_t *place, const double *d, double s, GPUCSRBool add, double *a), (place, d, s, add, a)) \
  STEP(zerorows, 8, (GPUCSRRowList list, const int32_t *place, double d, const double *x, double *b, GPUCSRCSR A), (list, place, d, x, b, A)) \
  STEP(mark, 1, (GPUCSRRowList list, char *mark), (list, mark)) \
  STEP(zerocolumns, 8, (const char *__restrict__ mark, double d, const double *__restrict__ x, double *b, GPUCSRCSR A), (mark, d, x, b, A)) \
  STEP(rowmaxabs, 1, (GPUCSRCSR A, double *v, int32_t *column), (A, v, column)) \
  STEP(rowsums, 8, (GPUCSRCSR A, double *s), (A, s)) \
  STEP(entryrows, 1, (int m, int n, const int32_t *rowptr, int32_t *row, int *wrong), (m, n, rowptr, row, wrong))

/* A backend's functions; all run on the stream of the device. A function that returns numbers has waited for the stream */
typedef struct {
  GPUCSR_ASSEMBLE_STEPS(GPUCSR_EACH_MEMBER)
  /* sorts: kept, nnz, bad, order[0] and entry, with key[0] sorted */
  GPUCSRError (*sort)(const GPUCSRCoordinates *, int m, int n, GPUCSRSum *);
  /* the pattern of A, and first */
  GPUCSRError (*pattern)(GPUCSRSum *, GPUCSRStorage *A);
  /* values of A = or += the sums of contributions, of which those from `there` on are more[0] and so on */
  GPUCSRError (*sum)(const GPUCSRSum *, const double *v, int64_t there, const double *more, GPUCSRBool add, GPUCSRStorage *A);
} GPUCSRAssembleOps;

GPUCSR_INTERN const GPUCSRAssembleOps  GPUCSRAssemble_host;
GPUCSR_INTERN const GPUCSRAssembleOps  GPUCSRAssemble_cuda;
GPUCSR_INTERN const GPUCSRAssembleOps *GPUCSRAssembleOf(GPUCSRDevice);

GPUCSR_INTERN GPUCSRError GPUCSRSumSort(GPUCSRDevice, const GPUCSRCoordinates *, int m, int n, GPUCSRSum *);
GPUCSR_INTERN GPUCSRError GPUCSRSumPattern(GPUCSRSum *, GPUCSRStorage *A);
GPUCSR_INTERN GPUCSRError GPUCSRSumDestroy(GPUCSRSum *);

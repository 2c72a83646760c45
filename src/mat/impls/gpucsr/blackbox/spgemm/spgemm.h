#pragma once

/*
  Sparse products C = A B of matrices in CSR on one device, in two phases: the pattern of C, then the values. New values of A and B need the second phase only. Knows no Mat and no CUDA.

  Rows of C are classified by a bound of their length. For each row of a class a group of threads has a hash table of one size in fast memory, and inserts the row's columns, after Nagasaka, Nishide, Azad, Buluc, High-performance sparse matrix-matrix
  products on Intel KNL and multicore architectures (2018) and Nagasaka, Nukada, Matsuoka, High-performance and memory-saving sparse general
  matrix-matrix multiplication for NVIDIA Pascal GPU (2017); the few longer rows have their tables in device memory, as in Parger,
  Winter, Mlakar, Steinberger, spECK (2020). Unlike in these papers, every run has the same bits: a group takes the entries of a row of A one after the other, as MATAIJ does.
*/
#include "../kernels/each.h"

/* Class k > 0 holds the rows of more than limit k - 1 and at most limit k entries; tables have twice as many places. Class 0: empty rows */
#define GPUCSR_ROW_CLASSES 7
static const int       GPUCSRRowLimit[GPUCSR_ROW_CLASSES] = {0, 16, 64, 256, 1024, 2048, INT32_MAX};
GPUCSR_HOST_DEVICE int GPUCSRRowClass(int length)
{
  return length <= 0 ? 0 : length <= 16 ? 1 : length <= 64 ? 2 : length <= 256 ? 3 : length <= 1024 ? 4 : length <= 2048 ? 5 : 6;
}

/* Rows by class: class k has rows[first[k]] to rows[first[k + 1] - 1] */
typedef struct {
  int      first[GPUCSR_ROW_CLASSES + 1];
  int      longest;
  int32_t *rows; /* device memory, m of them */
  int      m;
} GPUCSRRowClasses;

/*
  Steps of rows, see ../kernels/each.h and rows.h
    bound     length[r] = an upper bound for the length of row r of A B
    beside    K = [A T], row by row; for the rows of A and one more
    axpy      Y += f X, if Y has all entries of X; if not, lost, which was 0, is 1, and values of Y may be wrong
    renumber  j[k] = table[j[k]]
    lengths   length[r] = number of entries of row r of A, of ascending columns, before column n, or (rest) from n on
    part      copies the entries before column n to D, and the rest to E, whose column 0 is A's n; D and E have row pointers
*/
#define GPUCSR_SPGEMM_STEPS(STEP) \
  STEP(bound, 8, (GPUCSRCSR A, GPUCSRCSR B, int32_t * length), (A, B, length)) \
  STEP(beside, 8, (GPUCSRCSR A, GPUCSRCSR T, int32_t *__restrict__ rowptr, int32_t *__restrict__ col, double *__restrict__ val), (A, T, rowptr, col, val)) \
  STEP(axpy, 8, (double f, GPUCSRCSR X, GPUCSRCSR Y, int *lost), (f, X, Y, lost)) \
  STEP(renumber, 1, (const int32_t *table, int32_t *j), (table, j)) \
  STEP(lengths, 1, (GPUCSRCSR A, int n, GPUCSRBool rest, int32_t *length), (A, n, rest, length)) \
  STEP(part, 8, (GPUCSRCSR A, int n, const int32_t *__restrict__ drow, int32_t *__restrict__ dcol, double *__restrict__ dval, GPUCSRCSR E), (A, n, drow, dcol, dval, E))

/* A backend's functions; all run on the stream of A's device. A function that returns numbers has waited for the stream. */
typedef struct {
  GPUCSR_SPGEMM_STEPS(GPUCSR_EACH_MEMBER)
  /* length[r] = the length of row r of C, from the bound in length[r] */
  GPUCSRError (*count)(const GPUCSRStorage *A, const GPUCSRStorage *B, const GPUCSRRowClasses *, int32_t *length);
  /* rowptr from m + 1 lengths, the last of which is ignored, nnz, their sum, and the rows by class; rowptr NULL: the classes alone, classes NULL: the row pointers alone */
  GPUCSRError (*shape)(int m, const int32_t *length, int32_t *rowptr, int64_t *nnz, GPUCSRRowClasses *, GPUCSRDevice);
  /* columns of C, ascending, from its row pointers */
  GPUCSRError (*fill)(const GPUCSRStorage *A, const GPUCSRStorage *B, const GPUCSRRowClasses *, GPUCSRStorage *C);
  /* values of C; lost: an entry of the product has no place in C; with NULL the host does not wait */
  GPUCSRError (*numeric)(const GPUCSRStorage *A, const GPUCSRStorage *B, const GPUCSRRowClasses *, GPUCSRStorage *C, GPUCSRBool *lost);
} GPUCSRSpGEMMOps;

GPUCSR_INTERN const GPUCSRSpGEMMOps  GPUCSRSpGEMM_host;
GPUCSR_INTERN const GPUCSRSpGEMMOps  GPUCSRSpGEMM_cuda;
GPUCSR_INTERN const GPUCSRSpGEMMOps *GPUCSRSpGEMMOf(GPUCSRDevice);
GPUCSR_INTERN GPUCSRError            GPUCSRShape_CUDA(int m, const int32_t *length, int32_t *rowptr, int64_t *nnz, GPUCSRRowClasses *, GPUCSRDevice); /* classes.cu, for spgemm.cu */

/* parts.c */
GPUCSR_INTERN GPUCSRError GPUCSRPartColumns(const GPUCSRStorage *A, int n, GPUCSRStorage *D, GPUCSRStorage *E);
GPUCSR_INTERN GPUCSRError GPUCSRPartEntries(const GPUCSRStorage *A, int n, GPUCSRStorage *D, GPUCSRStorage *E);
GPUCSR_INTERN GPUCSRError GPUCSRBeside(const GPUCSRStorage *A, const GPUCSRStorage *T, GPUCSRStorage *K);
GPUCSR_INTERN GPUCSRError GPUCSRSpAXPY(double f, const GPUCSRStorage *X, GPUCSRStorage *Y, GPUCSRBool *lost);

GPUCSR_INTERN GPUCSRError GPUCSRCSRCreate(GPUCSRDevice, int m, int n, int64_t nnz, GPUCSRStorage *);
GPUCSR_INTERN GPUCSRError GPUCSRCSRFromLengths(GPUCSRDevice, int m, int n, const int32_t *length, GPUCSRRowClasses *, GPUCSRStorage *);
GPUCSR_INTERN GPUCSRError GPUCSRSpGEMMSymbolic(const GPUCSRStorage *A, const GPUCSRStorage *B, GPUCSRStorage *C, GPUCSRRowClasses *);
GPUCSR_INTERN GPUCSRError GPUCSRSpGEMMNumeric(const GPUCSRStorage *A, const GPUCSRStorage *B, const GPUCSRRowClasses *, GPUCSRStorage *C);
GPUCSR_INTERN GPUCSRError GPUCSRSpGEMMValues(const GPUCSRStorage *A, const GPUCSRStorage *B, const GPUCSRRowClasses *, GPUCSRStorage *C);
GPUCSR_INTERN GPUCSRError GPUCSRRowClassesOf(const GPUCSRStorage *C, GPUCSRRowClasses *);
GPUCSR_INTERN GPUCSRError GPUCSRRowClassesDestroy(GPUCSRDevice, GPUCSRRowClasses *);
GPUCSR_INTERN GPUCSRError GPUCSRTransposeStorage(const GPUCSRStorage *A, GPUCSRStorage *T, int32_t **map);
GPUCSR_INTERN GPUCSRError GPUCSRTransposeValues(const GPUCSRStorage *A, const int32_t *map, GPUCSRStorage *T);

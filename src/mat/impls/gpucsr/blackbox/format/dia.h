#pragma once

/* Layout of the diagonal format, shared by its host file and its kernels */
#include "format.h"

enum {
  DIA_OFFSET, /* column - row of each diagonal, ascending */
  DIA_VAL,    /* marked if absent (absent.h) */
  DIA_ORDER   /* a GPUCSRDiagonal for each pair of diagonals with the same bits, mirrored, and for each other diagonal; then their number */
};

typedef struct {
  int32_t offset, number;
  /* the upper one of a pair has its number; another diagonal has -1 - its number */
} GPUCSRDiagonal;
#define DIA_MOST_PAIRED 128 /* diagonals */

/* The place of row r on diagonal d */
GPUCSR_HOST_DEVICE int64_t DIAEntry(int diagonals, int r, int d)
{
  return (int64_t)GPUCSR_SLICE * ((int64_t)diagonals * (r / GPUCSR_SLICE) + d) + r % GPUCSR_SLICE;
}

/* Are pairs looked for? A kernel reads both diagonals of a pair in one place, which pays where values of 8 bytes come from memory */
static inline GPUCSRBool DIAPairs(const GPUCSRStorage *A)
{
  return A->m == A->n && A->precision == GPUCSR_PRECISION_DOUBLE && A->extent.units <= DIA_MOST_PAIRED && 8 * (double)A->stored >= GPUCSRMachineOf(A->dev)->pairs_least * (double)A->dev->props.l2;
}

/* The number of the diagonal with this offset, which exists */
GPUCSR_HOST_DEVICE int DIAFind(const int32_t *offset, int diagonals, int which)
{
  int lo = 0, hi = diagonals - 1;

  while (lo < hi) {
    const int mid = (lo + hi) / 2;

    if (offset[mid] < which) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

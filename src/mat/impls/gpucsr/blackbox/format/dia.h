#pragma once

/* Layout of the diagonal format, shared by its host file and its kernels */
#include "format.h"

enum {
  DIA_OFFSET, /* column - row of each diagonal, ascending */
  DIA_VAL     /* marked if absent (absent.h) */
};

/* The place of row r on diagonal d */
GPUCSR_HOST_DEVICE int64_t DIAEntry(int diagonals, int r, int d)
{
  return (int64_t)GPUCSR_SLICE * ((int64_t)diagonals * (r / GPUCSR_SLICE) + d) + r % GPUCSR_SLICE;
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

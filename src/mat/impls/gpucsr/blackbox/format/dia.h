#pragma once

/* Layout of the diagonal format, shared by its host file and its kernels */
#include "format.h"

enum {
  DIA_OFFSET, /* column - row of each diagonal, ascending */
  DIA_VAL     /* marked where there is no entry (absent.h) */
};

/* The entry of row r on diagonal d of so many */
GPUCSR_HOST_DEVICE int64_t DIAEntry(int diagonals, int r, int d)
{
  return (int64_t)GPUCSR_SLICE * ((int64_t)diagonals * (r / GPUCSR_SLICE) + d) + r % GPUCSR_SLICE;
}

/* Which diagonal has this offset: it is there */
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

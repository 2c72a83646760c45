#pragma once

/* Layout of sliced ELL, shared by its host file and its kernels */
#include "../inspect/order.h"

enum {
  SELL_SLICE,  /* first stored column of each slice; empty in ell, whose slices have equal width */
  SELL_ROWPTR, /* of CSR, for new values */
  SELL_PERM,   /* the row at each place; empty if rows are not sorted */
  SELL_COL,    /* -1 in padding */
  SELL_VAL
};

/* Variants: rows of a sorted window (sigma; GPUCSR_ALL_ROWS: a single window), or */
#define SELL_ELL      0
#define SELL_UNSORTED 1

GPUCSR_HOST_DEVICE int SELLSlices(int m)
{
  return m / GPUCSR_SLICE + (m % GPUCSR_SLICE ? 1 : 0);
}

/* The beginning of a slice, in columns of 32 entries; slice is NULL in ell */
GPUCSR_HOST_DEVICE int SELLBegin(const int32_t *slice, int width, int s)
{
  return slice ? slice[s] : width * s;
}

/* Entry k of the row at place q */
GPUCSR_HOST_DEVICE int64_t SELLEntry(const int32_t *slice, int width, int q, int k)
{
  return (int64_t)GPUCSR_SLICE * (SELLBegin(slice, width, q / GPUCSR_SLICE) + k) + q % GPUCSR_SLICE;
}

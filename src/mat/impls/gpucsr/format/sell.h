#pragma once

/* Layout of sliced ELL, shared by its host file and its kernels */
#include "format.h"

enum {
  SELL_SLICE,  /* first stored column of each slice; empty in ell, whose slices are all of one width */
  SELL_ROWPTR, /* that of CSR: where a row's values come from when they change */
  SELL_PERM,   /* the row at each place; empty where rows stay where they are */
  SELL_COL,    /* -1 in padding */
  SELL_VAL
};

/* Variants: rows that are sorted together (sigma), or these */
#define SELL_ELL      0
#define SELL_UNSORTED 1
#define SELL_ALL      INT32_MAX

#if defined(__CUDACC__)
  #define SELL_FUNCTION static inline __host__ __device__
#else
  #define SELL_FUNCTION static inline
#endif

SELL_FUNCTION int SELLSlices(int m)
{
  return m / GPUCSR_SLICE + (m % GPUCSR_SLICE ? 1 : 0);
}

/* Where a slice begins, in columns of 32 entries; slice is NULL in ell */
SELL_FUNCTION int SELLBegin(const int32_t *slice, int width, int s)
{
  return slice ? slice[s] : width * s;
}

/* Entry k of the row at place q */
SELL_FUNCTION int64_t SELLEntry(const int32_t *slice, int width, int q, int k)
{
  return (int64_t)GPUCSR_SLICE * (SELLBegin(slice, width, q / GPUCSR_SLICE) + k) + q % GPUCSR_SLICE;
}

/* Rows are sorted by windows, and in a window by falling length: the two in one number, of as many bits as there are to spare for the length */
typedef struct {
  int      window; /* rows */
  int      bits;   /* of the length: longer rows count as equally long */
  int      keybits;
  uint32_t most;
} SELLOrder;

static inline SELLOrder SELLOrderOf(int m, int n, int sigma)
{
  SELLOrder o       = {sigma, 1, 0, 0};
  int       windows = 0;

  while ((int64_t)sigma << windows < m) windows++; /* bits of a window's number */
  while (o.bits < 16 && o.bits < 32 - windows && n >> o.bits) o.bits++;
  o.keybits = windows + o.bits;
  o.most    = (1u << o.bits) - 1;
  return o;
}

SELL_FUNCTION uint32_t SELLKey(SELLOrder o, int r, int length)
{
  return (uint32_t)(r / o.window) << o.bits | (o.most - ((uint32_t)length < o.most ? (uint32_t)length : o.most));
}

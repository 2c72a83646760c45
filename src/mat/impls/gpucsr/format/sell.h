#pragma once

/* Layout of sliced ELL, shared by its host file and its kernels */
#include "format.h"

enum {
  SELL_SLICE,  /* first stored column of each slice */
  SELL_ROWPTR, /* that of CSR: where a row's values come from when they change */
  SELL_COL,    /* -1 in padding */
  SELL_VAL
};

#if defined(__CUDACC__)
  #define SELL_FUNCTION static inline __host__ __device__
#else
  #define SELL_FUNCTION static inline
#endif
SELL_FUNCTION int64_t SELLEntry(const int32_t *slice, int r, int k)
{
  return (int64_t)GPUCSR_SLICE * (slice[r / GPUCSR_SLICE] + k) + r % GPUCSR_SLICE;
}

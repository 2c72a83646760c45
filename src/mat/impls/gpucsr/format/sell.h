#pragma once

/* Layout of sliced ELL, shared by its host file and its kernels */
#include "format.h"

enum {
  SELL_SLICE,  /* first stored column of each slice */
  SELL_ROWPTR, /* that of CSR: row lengths, and where a row's values come from when they change */
  SELL_COL,
  SELL_VAL
};

#if defined(__CUDACC__)
__host__ __device__
#endif
static inline int64_t SELLEntry(const int32_t *slice, int r, int k)
{
  return (int64_t)GPUCSR_SLICE * (slice[r / GPUCSR_SLICE] + k) + r % GPUCSR_SLICE;
}

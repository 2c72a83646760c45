#pragma once

/* Layout of coordinates, for coo itself and for the second part of hyb */
#include "../format.h"

enum {
  COO_ROW,
  COO_COL,
  COO_VAL
};

/* The first entry of row r or a later row */
static inline int64_t COOFirst(const GPUCSRArray *coo, int r)
{
  const int32_t *row = (const int32_t *)coo[COO_ROW].data;
  int64_t        lo = 0, hi = (int64_t)coo[COO_ROW].count;

  while (lo < hi) {
    const int64_t mid = lo + (hi - lo) / 2;

    if (row[mid] < r) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/* ENTRY(column, value) for the entries of row r (reference.h) */
#define COOForRow(coo, V, ENTRY) \
  for (size_t k = (size_t)COOFirst(coo, r); k < (coo)[COO_ROW].count && ((const int32_t *)(coo)[COO_ROW].data)[k] == r; k++) ENTRY(((const int32_t *)(coo)[COO_COL].data)[k], ((const V *)(coo)[COO_VAL].data)[k])

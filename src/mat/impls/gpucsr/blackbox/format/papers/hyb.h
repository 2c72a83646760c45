#pragma once

/* Layout of hyb: the arrays of sliced ELL with the variant ell, then coordinates */
#include "coo.h"
#include "../sell.h"

#define HYB_COO (SELL_VAL + 1) /* the first array of the second part */

/* Widths up to which rows are counted one by one */
#define HYB_WIDEST 4096

/* The widest first part that pays: rows[k] rows have k entries, or k and more for k = HYB_WIDEST */
static inline int HYBWidth(int m, const int32_t *rows)
{
  const int64_t enough = GPUCSRMin((int64_t)m, GPUCSRMax(4096, ((int64_t)m + 2) / 3));
  int64_t       reach  = 0;
  int           k      = HYB_WIDEST;

  for (; k > 0; k--) {
    reach += rows[k];
    if (reach >= enough) break;
  }
  return m ? k : 0;
}

/* The extent: entries beyond the width are the second part's */
static inline void HYBExtent(int m, int64_t nnz, const int32_t *rows, GPUCSRExtent *e)
{
  int64_t reach = 0;

  e->width = HYBWidth(m, rows);
  e->units = nnz;
  for (int k = HYB_WIDEST; k > 0; k--) {
    reach += rows[k];
    if (k <= e->width) e->units -= reach;
  }
  e->stored = (int64_t)SELLSlices(m) * GPUCSR_SLICE * e->width + e->units;
}

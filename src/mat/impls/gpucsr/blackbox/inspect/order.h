#pragma once

/*
  Rows in the order of their lengths, the longest first, in windows of so many rows: window and length are one number, by which a
  stable sort (order.c, kernels/build/sell_build.cu) orders them.
*/
#include "../format/format.h"

#define GPUCSR_ALL_ROWS INT32_MAX /* one window of all rows */

/* The length has the bits that the window's number leaves: rows of GPUCSRRowOrder.most entries and more count as equally long */
typedef struct {
  int      window; /* rows */
  int      bits;   /* of the length */
  int      keybits;
  uint32_t most;
} GPUCSRRowOrder;

static inline GPUCSRRowOrder GPUCSRRowOrderOf(int m, int n, int window)
{
  GPUCSRRowOrder o       = {window, 1, 0, 0};
  int            windows = 0; /* bits of a window's number */

  while ((int64_t)window << windows < m) windows++;
  while (o.bits < 31 && o.bits < 32 - windows && n >> o.bits) o.bits++;
  o.keybits = windows + o.bits;
  o.most    = (1u << o.bits) - 1;
  return o;
}

GPUCSR_HOST_DEVICE uint32_t GPUCSRRowKey(GPUCSRRowOrder o, int r, int length)
{
  return (uint32_t)((uint64_t)(uint32_t)(r / o.window) << o.bits) | (o.most - ((uint32_t)length < o.most ? (uint32_t)length : o.most));
}

GPUCSR_INTERN GPUCSRError GPUCSRSortRows(int, int, const int32_t *, int, int32_t *);

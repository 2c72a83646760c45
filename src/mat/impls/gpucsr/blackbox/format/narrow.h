#pragma once

/* Layout of CSR with narrow columns, shared by its host file and its kernels */
#include "format.h"

enum {
  NARROW_HEAD,   /* for each slice NARROW_WORDS numbers: its first entry, then the first column of each window; for a wide slice NARROW_WIDE_SLICE, then its first entry in wide */
  NARROW_LENGTH, /* for each row, one byte */
  NARROW_COL,    /* for each entry, its window and the place there; unused in wide slices */
  NARROW_WIDE,   /* the columns of wide slices */
  NARROW_VAL     /* as in CSR */
};

#define NARROW_WORDS      8    /* a sector of memory */
#define NARROW_WINDOWS    7    /* of a slice, at most */
#define NARROW_BITS       13   /* of a column within its window */
#define NARROW_REACH      8192 /* columns of a window */
#define NARROW_LONGEST    255  /* entries of a row at most: a byte's count */
#define NARROW_WIDE_SLICE -1

GPUCSR_HOST_DEVICE int NarrowSlices(int m)
{
  return m / GPUCSR_SLICE + (m % GPUCSR_SLICE ? 1 : 0);
}
GPUCSR_HOST_DEVICE uint16_t NarrowColumn(int window, int within)
{
  return (uint16_t)(window << NARROW_BITS | within);
}
GPUCSR_HOST_DEVICE int NarrowWindow(int column)
{
  return column >> NARROW_BITS;
}
GPUCSR_HOST_DEVICE int NarrowWithin(int column)
{
  return column & (NARROW_REACH - 1);
}

#pragma once

/*
  The inspector's look at a sample of the rows, written once for host and device.

  The sample is windows of 24 rows (so that block rows of 1, 2, 3, 4 and 8 rows lie inside), evenly spread, and of each row its first
  GPUCSR_SAMPLE_LENGTH entries. An entry counts as a block's if it is the first one in it, going row by row; rows are taken to be
  sorted, and where they are not the estimates are off and nothing else.

  Another sample is of whole tiles of 128 rows: how many different columns they have is told by how many of so many bits they set, each column one that a hash gives it.

  Papers: E. Im, K. Yelick, R. Vuduc, SPARSITY, IJHPCA 2004, section 4.2 (the fill ratio from a sample of the block rows); K.-Y. Whang, B. T. Vander-Zanden, H. M. Taylor, A linear-time
  probabilistic counting algorithm for database applications, ACM TODS 15, 1990.
*/
#include "format.h"
#include <math.h>

#define GPUCSR_WINDOW        24
#define GPUCSR_SAMPLE_LENGTH 128
#define GPUCSR_TILE          128 /* rows */
#define GPUCSR_MOST_TILES    64
#define GPUCSR_TILE_BITS     14 /* of the number of a bit */

typedef struct {
  unsigned long long rows, filled, entries, spread, pairs, twins, diagonals, windows; /* filled: rows that have entries */
  unsigned long long blocks[GPUCSR_NBLOCKSIZES];
  unsigned long long bb, be, ee;    /* over the windows: 2 by 2 blocks squared, times entries, entries squared */
  unsigned long long listed, tiled; /* of the tiles: different columns, entries */
  int                bandwidth;
} GPUCSRSample;

/* The tiles of the sample, where one begins, the bit that a column sets, and from those that nobody has set how many columns there are */
GPUCSR_HOST_DEVICE int GPUCSRSampledTiles(int m)
{
  const int all = (int)(((int64_t)m + GPUCSR_TILE - 1) / GPUCSR_TILE);

  return all < GPUCSR_MOST_TILES ? all : GPUCSR_MOST_TILES;
}
GPUCSR_HOST_DEVICE int GPUCSRTileStart(int m, int tiles, int t)
{
  return GPUCSR_TILE * (int)((int64_t)t * (((int64_t)m + GPUCSR_TILE - 1) / GPUCSR_TILE) / tiles);
}
GPUCSR_HOST_DEVICE uint32_t GPUCSRTileBit(int32_t c)
{
  uint32_t h = (uint32_t)c * 0x9E3779B1u;

  h = (h ^ (h >> 15)) * 0x85EBCA77u;
  return h >> (32 - GPUCSR_TILE_BITS);
}
GPUCSR_HOST_DEVICE int GPUCSRTileListed(int unset)
{
  const double all = 1 << GPUCSR_TILE_BITS;

  return (int)(0.5 - all * log((unset > 1 ? unset : 1) / all));
}

/* Windows there are, and of how many the sample is made */
GPUCSR_HOST_DEVICE int GPUCSRWindows(int m)
{
  return (int)(((int64_t)m + GPUCSR_WINDOW - 1) / GPUCSR_WINDOW);
}
GPUCSR_HOST_DEVICE int GPUCSRSampledWindows(int m, double fraction)
{
  const int    all = GPUCSRWindows(m);
  const double n   = fraction * all;
  const int    few = all < 64 ? all : 64, many = n < 4096 ? (int)n : 4096;

  return many > few ? many : few;
}
GPUCSR_HOST_DEVICE int GPUCSRWindowStart(int m, int windows, int w)
{
  return GPUCSR_WINDOW * (int)((int64_t)w * GPUCSRWindows(m) / windows);
}

/*
  Adds to blocks[] those block sizes whose block entry k of row r is the first of. Row q has columns col[begin[q]] to col[end[q] - 1]; r may be counted from a
  window's first row.
*/
GPUCSR_HOST_DEVICE void SampleBlocks(const int32_t *begin, const int32_t *end, const int32_t *col, int r, int32_t k, int blocks[])
{
  const int c = col[k], before = k > begin[r] ? col[k - 1] : -1;
  const int above   = r % 8 > r % 3 ? r % 8 : r % 3; /* rows above in any of the blocks */
  int       near[6] = {8, 8, 8, 8, 8, 8};            /* by width 1, 2, 3, 4, 8, 64: how far above the next row that is in the same columns is */

  for (int d = 1; d <= above; d++) {
    const int32_t first = begin[r - d], last = end[r - d] - first > GPUCSR_SAMPLE_LENGTH ? first + GPUCSR_SAMPLE_LENGTH : end[r - d];
    int32_t       a = first, b = last;

    while (a < b) { /* the first that is not left of c */
      const int32_t mid = a + (b - a) / 2;

      if (col[mid] < c) a = mid + 1;
      else b = mid;
    }
    const int left = a > first ? col[a - 1] : -1, right = a < last ? col[a] : 0x7fffffff;

    for (int q = 0; q < 6; q++) {
      const int width = q < 4 ? q + 1 : q == 4 ? 8 : 64, lo = c - c % width;

      if (near[q] == 8 && (left >= lo || right - lo < width)) near[q] = d;
    }
  }
  for (int q = 0; q < 4; q++)
    for (int height = 1; height <= 4; height++) blocks[4 * (height - 1) + q] += before < c - c % (q + 1) && near[q] > r % height;
  blocks[16] += before < c - c % 8 && near[4] > r % 8;
  blocks[17] += before < c - c % 64 && near[5] > r % 4;
}

#if defined(__cplusplus)
extern "C" {
#endif
GPUCSR_INTERN PetscErrorCode GPUCSRFeaturesDerive(double, GPUCSRFeatures *);
GPUCSR_INTERN PetscErrorCode GPUCSRFeaturesOfSample(const GPUCSRSample *, GPUCSRFeatures *);
#if defined(__cplusplus)
}
#endif

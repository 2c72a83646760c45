#pragma once

/*
  The inspector's view of a sample of the rows, one source for host and device.

  The sample is evenly spread windows of 24 rows (so that block rows of 1, 2, 3, 4 and 8 rows lie inside), and the first GPUCSR_SAMPLE_LENGTH entries
  of each row. An entry counts for a block if it is the block's first, row by row. Unsorted rows make the estimates worse, and nothing else.

  A second sample is whole tiles of 128 rows. A hash gives each column a bit, and the number of bits set estimates the number of different columns.
  The same counts the sectors of x, of 32 bytes, that a tile and each group of 8 rows in it touch: a block of threads fetches each of its sectors
  once, in every kernel.

  Papers: E. Im, K. Yelick, R. Vuduc, SPARSITY, IJHPCA 2004, section 4.2 (the fill ratio from a sample of the block rows); K.-Y. Whang, B. T.
  Vander-Zanden, H. M. Taylor, A linear-time probabilistic counting algorithm for database applications, ACM TODS 15, 1990.
*/
#include "../format/format.h"
#include <math.h>

#define GPUCSR_WINDOW        24
#define GPUCSR_SAMPLE_LENGTH 128
#define GPUCSR_TILE          128 /* rows */
#define GPUCSR_MOST_TILES    64
#define GPUCSR_TILE_BITS     14 /* of the number of a bit */
#define GPUCSR_GROUP         8  /* rows */
#define GPUCSR_GROUP_BITS    11

typedef struct {
  unsigned long long rows, filled, entries, spread, diagonals; /* filled: rows with entries */
  unsigned long long blocks[GPUCSR_NBLOCKSIZES];
  unsigned long long listed, tiled; /* of the tiles: different columns, entries */
  unsigned long long sectors[2][2]; /* different sectors: of numbers of 8 bytes, of 4; of groups, of tiles */
  int                bandwidth;
} GPUCSRSample;

/* The number of tiles in the sample, and the first row of each */
GPUCSR_HOST_DEVICE int GPUCSRSampledTiles(int m)
{
  const int all = (int)(((int64_t)m + GPUCSR_TILE - 1) / GPUCSR_TILE);

  return all < GPUCSR_MOST_TILES ? all : GPUCSR_MOST_TILES;
}
GPUCSR_HOST_DEVICE int GPUCSRTileStart(int m, int tiles, int t)
{
  return GPUCSR_TILE * (int)((int64_t)t * (((int64_t)m + GPUCSR_TILE - 1) / GPUCSR_TILE) / tiles);
}

/*
  The bits of a tile, in words of 32, by sections: its columns; its sectors of numbers of 8 bytes, and of 4; the sectors of each group, of 8 bytes,
  and of 4
*/
#define GPUCSR_TILE_GROUPS   (GPUCSR_TILE / GPUCSR_GROUP)
#define GPUCSR_TILE_SECTIONS (3 + 2 * GPUCSR_TILE_GROUPS)
#define GPUCSR_TILE_WORDS    (3 * (1 << GPUCSR_TILE_BITS) / 32)
#define GPUCSR_ALL_WORDS     (GPUCSR_TILE_WORDS + 2 * GPUCSR_TILE_GROUPS * (1 << GPUCSR_GROUP_BITS) / 32)

GPUCSR_HOST_DEVICE int GPUCSRSectionOfWord(int w)
{
  return w < GPUCSR_TILE_WORDS ? w / ((1 << GPUCSR_TILE_BITS) / 32) : 3 + (w - GPUCSR_TILE_WORDS) / ((1 << GPUCSR_GROUP_BITS) / 32);
}
GPUCSR_HOST_DEVICE int GPUCSRSectionBits(int section)
{
  return 1 << (section < 3 ? GPUCSR_TILE_BITS : GPUCSR_GROUP_BITS);
}
GPUCSR_HOST_DEVICE uint32_t GPUCSRHashed(uint32_t c, int bits)
{
  uint32_t h = c * 0x9E3779B1u;

  h = (h ^ (h >> 15)) * 0x85EBCA77u;
  return h >> (32 - bits);
}
/* Bit k of the GPUCSR_TILE_SETS bits that a column sets in row r of a tile */
#define GPUCSR_TILE_SETS 5
GPUCSR_HOST_DEVICE uint32_t GPUCSRTileBit(int k, int r, int32_t c)
{
  const uint32_t sector = (uint32_t)c / (k % 2 ? 4 : 8);

  if (k < 3) return ((uint32_t)k << GPUCSR_TILE_BITS) + GPUCSRHashed(k ? sector : (uint32_t)c, GPUCSR_TILE_BITS);
  return 32 * GPUCSR_TILE_WORDS + ((uint32_t)((k == 3 ? 0 : GPUCSR_TILE_GROUPS) + r / GPUCSR_GROUP) << GPUCSR_GROUP_BITS) + GPUCSRHashed(sector, GPUCSR_GROUP_BITS);
}
/* Estimates how many different items were hashed to `bits` bits, of which `unset` are 0 */
GPUCSR_HOST_DEVICE int GPUCSRDifferent(int bits, int unset)
{
  return (int)(0.5 - (double)bits * log((unset > 1 ? unset : 1) / (double)bits));
}
/* The sample's count for a section */
GPUCSR_HOST_DEVICE unsigned long long *GPUCSRSectionCount(GPUCSRSample *s, int section)
{
  if (!section) return &s->listed;
  return section < 3 ? &s->sectors[section - 1][1] : &s->sectors[(section - 3) / GPUCSR_TILE_GROUPS][0];
}

/* The number of windows in the matrix, and in the sample */
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
  Adds to blocks[] the block sizes of which entry k of row r is a block's first. Row q has columns col[begin[q]] to col[end[q] - 1]; r may be counted
  from a window's first row.
*/
GPUCSR_HOST_DEVICE void SampleBlocks(const int32_t *begin, const int32_t *end, const int32_t *col, int r, int32_t k, int blocks[])
{
  const int c = col[k], before = k > begin[r] ? col[k - 1] : -1;
  const int above   = r % 8 > r % 3 ? r % 8 : r % 3; /* rows above in any of the blocks */
  int       near[6] = {8, 8, 8, 8, 8, 8};            /* for widths 1, 2, 3, 4, 8, 64: distance to the next row above with an entry in the same columns */

  for (int d = 1; d <= above; d++) {
    const int32_t first = begin[r - d], last = end[r - d] - first > GPUCSR_SAMPLE_LENGTH ? first + GPUCSR_SAMPLE_LENGTH : end[r - d];
    int32_t       a = first, b = last;

    while (a < b) { /* the first not left of c */
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

GPUCSR_INTERN void GPUCSRFeaturesDerive(double, GPUCSRFeatures *);
GPUCSR_INTERN void GPUCSRFeaturesOfSample(const GPUCSRSample *, GPUCSRFeatures *);

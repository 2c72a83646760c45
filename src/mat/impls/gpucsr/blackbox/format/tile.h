#pragma once

/* Layout of tiles, shared by their host file and their kernels */
#include "format.h"

enum {
  TILE_BEGIN,  /* the beginning of each tile's columns in the list */
  TILE_LIST,   /* the columns of each tile, ascending; the column of each entry if a tile has more than TILE_STAGED */
  TILE_PLACE,  /* for each place in a tile, TilePlace(): its row, counted from the tile's first, and its number of entries */
  TILE_SLICE,  /* the first entry of each slice */
  TILE_ROWPTR, /* of CSR, for new values */
  TILE_COL,    /* for each entry, the place of its column in the tile's list */
  TILE_VAL
};

#define TILE_STAGED  4096      /* most different columns of a tile whose entries of x go to shared memory */
#define TILE_ENTRIES (1 << 16) /* of a tile at most: the range of 16 bits */

GPUCSR_HOST_DEVICE int TileCount(int m, int rows)
{
  return m / rows + (m % rows ? 1 : 0);
}
GPUCSR_HOST_DEVICE int TileSlices(int m)
{
  return m / GPUCSR_SLICE + (m % GPUCSR_SLICE ? 1 : 0);
}

GPUCSR_HOST_DEVICE int32_t TilePlace(int row, int length)
{
  return row | length << 16;
}
GPUCSR_HOST_DEVICE int TilePlaceRow(int32_t place)
{
  return place & 0xffff;
}
GPUCSR_HOST_DEVICE int TilePlaceLength(int32_t place)
{
  return (int)((uint32_t)place >> 16);
}

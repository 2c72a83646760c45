#pragma once

/* Layout of blocked CSR, shared by its host file and its kernels */
#include "format.h"
#include <string.h>

enum {
  BCSR_ROWPTR, /* first block of each block row */
  BCSR_COL,    /* first column of each block */
  BCSR_VAL
};

#define BCSR_WARP 32

/* Lanes of a block: one, or eight for an 8 by 8 block (a lane for each row) */
#define BCSR_LANES(r) ((r) == 8 ? 8 : 1)

/* Values that a lane loads at once: 16 bytes */
#define BCSR_WIDE(size) (16 / (int)(size))

#if defined(__CUDACC__)
  #define BCSR_FUNCTION static inline __host__ __device__
#else
  #define BCSR_FUNCTION static inline
#endif

/* The place of value k of `count` of lane l: 32 lanes, their values `wide` at a time, and the rest one by one */
BCSR_FUNCTION int64_t BCSRPlace(int64_t l, int k, int count, int wide)
{
  const int     whole = count / wide * wide, lane = (int)(l % BCSR_WARP);
  const int64_t base = l / BCSR_WARP * BCSR_WARP * count;

  return k < whole ? base + (int64_t)(k / wide) * wide * BCSR_WARP + wide * lane + k % wide : base + (int64_t)k * BCSR_WARP + lane;
}

/* The place of row i, column j of block b; size: bytes of a value */
BCSR_FUNCTION int64_t BCSREntry(int64_t b, int i, int j, int r, int c, int size)
{
  const int lanes = BCSR_LANES(r), rows = r / lanes;

  return BCSRPlace(b * lanes + i / rows, i % rows * c + j, rows * c, BCSR_WIDE(size));
}

/* Entries stored for so many blocks: whole warps of lanes */
BCSR_FUNCTION int64_t BCSRStored(int64_t blocks, int r, int c)
{
  const int at_once = BCSR_WARP / BCSR_LANES(r);

  return (blocks + at_once - 1) / at_once * at_once * r * c;
}

GPUCSR_INTERN const GPUCSRFormatFamily GPUCSRFormat_bcsr, GPUCSRFormat_oblong;

/* Values of a lane; 0 in other formats */
static inline int BCSRLane(const GPUCSRFormat *f)
{
  const int r = GPUCSR_BLOCK_ROWS(f->variant);

  return f->ops == &GPUCSRFormat_bcsr || f->ops == &GPUCSRFormat_oblong ? r * GPUCSR_BLOCK_COLS(f->variant) / BCSR_LANES(r) : 0;
}

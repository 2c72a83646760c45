#pragma once

/* Layout of the hybrid blocks, shared by its host file and its kernels */
#include "../format.h"

enum {
  BLOCK4X64_ROWPTR, /* first block of each block row */
  BLOCK4X64_START,  /* first column of each block, a multiple of BLOCK4X64_UNIT */
  BLOCK4X64_UNIT4,  /* first unit of each of the four rows of each block, then their total */
  BLOCK4X64_COL,    /* one byte for each entry: its column less the block's first, BLOCK4X64_COLS in padding */
  BLOCK4X64_VAL
};

#define BLOCK4X64_ROWS 4
#define BLOCK4X64_COLS 64
#define BLOCK4X64_UNIT 16 /* entries: half a warp */

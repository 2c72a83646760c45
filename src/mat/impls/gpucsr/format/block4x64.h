#pragma once

/* Layout of the hybrid blocks, shared by its host file and its kernels */
#include "format.h"

enum {
  HYBRID_ROWPTR, /* first block of each block row */
  HYBRID_START,  /* first column of each block, a multiple of HYBRID_UNIT */
  HYBRID_UNIT4,  /* first unit of each of the four rows of each block, and at the end how many there are */
  HYBRID_COL,    /* a byte an entry: its column less the block's first, HYBRID_COLS in padding */
  HYBRID_VAL
};

#define HYBRID_ROWS 4
#define HYBRID_COLS 64
#define HYBRID_UNIT 16 /* entries: half a warp */

#pragma once

/* Layout of the stencil format, shared by its host file and its kernels */
#include "format.h"

enum {
  STENCIL_ID,     /* of each row, the number of its stencil */
  STENCIL_BEGIN,  /* first entry of each stencil, and the end of the last */
  STENCIL_OFFSET, /* column - row, in the order of the rows that have it */
  STENCIL_VAL,
  STENCIL_ROW /* the first row that has the stencil: where its values come from when they change */
};

/* Stencils and their entries together at most: 64 kilobytes in double, entries of 16 bytes, which is what a block of any GPU since 7.5 can have of shared memory */
#define STENCIL_MOST GPUCSR_MOST_STENCILS

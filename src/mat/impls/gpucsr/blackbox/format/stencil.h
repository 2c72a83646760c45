#pragma once

/* Layout of the stencil format, shared by its host file and its kernels */
#include "format.h"

enum {
  STENCIL_ID,     /* for each row, the number of its stencil */
  STENCIL_BEGIN,  /* first entry of each stencil, and the end of the last */
  STENCIL_OFFSET, /* column - row, in the order of the stencil's rows */
  STENCIL_VAL,
  STENCIL_ROW /* the first row of each stencil: the source of new values */
};

/* Most stencils and their entries in all: 64 kilobytes in double, at 16 bytes an entry, the shared memory of a block on any GPU since 7.5 */
#define STENCIL_MOST GPUCSR_MOST_STENCILS

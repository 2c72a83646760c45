#pragma once

/* Layout of coordinates, shared by their host file and their kernels */
#include "../format.h"

enum {
  COO_ROW,
  COO_COL,
  COO_VAL
};

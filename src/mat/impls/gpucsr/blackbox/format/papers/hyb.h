#pragma once

/* Layout of hyb: the arrays of sliced ELL as in ell, but without rowptr, then those of coordinates */
#include "coo.h"
#include "../sell.h"

#define HYB_COO (SELL_VAL + 1) /* the first array of the coordinates */

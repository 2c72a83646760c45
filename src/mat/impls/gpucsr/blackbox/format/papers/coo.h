#pragma once

/* Coordinates, for coo itself and for the second part of hyb */
#include "../format.h"

enum {
  COO_ROW,
  COO_COL,
  COO_VAL
};

GPUCSR_INTERN void        GPUCSRCOOLayout(int64_t, GPUCSRPrecision, GPUCSRArray *);
GPUCSR_INTERN GPUCSRError GPUCSRCOOFill(const GPUCSRSource *, int, GPUCSRArray *, GPUCSRBool, double *);
GPUCSR_INTERN void        GPUCSRCOOAdd(const GPUCSRArray *, GPUCSRPrecision, const GPUCSRProduct *);
GPUCSR_INTERN void        GPUCSRCOODiagonal(const GPUCSRArray *, GPUCSRPrecision, void *);

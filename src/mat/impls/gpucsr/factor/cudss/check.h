#pragma once

/*
  The check of solutions on a device: r = b - A x of several columns, and the largest absolute numbers of the normwise backward error |r| / (|A| |x| + |b|) of each, after Rigal and Gaches, On the
  compatibility of a given solution with the data of a linear system (1967), in the maximum norm.
*/
#include "../../blackbox/format/format.h"

/* Maxima of a column, as bits of doubles. Integers have the same order; NaN is the largest */
enum {
  CHECK_R,
  CHECK_X,
  CHECK_B,
  CHECK_A,    /* the largest sum of a row's absolute values */
  CHECK_ZERO, /* not 0: a row's sum is 0 */
  CHECK_NUMBERS
};

/* Column q begins at b + q ldb, x + q ldx and r + q n */
typedef struct {
  const GPUCSRStorage *A; /* CSR */
  int                  k;
  const double        *b;
  double              *x;
  size_t               ldb, ldx;
  double              *r;
  uint64_t            *most; /* CHECK_NUMBERS for each column, zero before */
} DirectCheck;

GPUCSR_INTERN GPUCSRError DirectCheck_CUDA(const DirectCheck *); /* on the device's stream */

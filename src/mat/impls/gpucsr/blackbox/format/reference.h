#pragma once

/*
  Product and diagonal on the host, from a format's walk along a row. A file defines

    #define ROW(V, ENTRY) ...        statements that call ENTRY(column, value) for each entry of row r, values being of type V

  They may use q: the row is the q-th in the order of perm, which is NULL if rows are not sorted. Names of all other locals end in _ and clash
  with no argument.
*/
#include "format.h"

#define GPUCSRReferenceAdd(c, v) sum_ += (v)*x_[c]
#define GPUCSRReferenceFind(c, v) \
  if ((c) == r) d_[r] = (v)

/* V, X: the types of values and vectors. Sums are doubles: float sums one by one along a long row would lose digits, unlike the device's trees */
#define GPUCSRReferenceRows(V, X, p, perm, m, ROW) \
  do { \
    const X       *x_ = (const X *)(p)->x, *y_ = (const X *)(p)->y, alpha_ = (X)(p)->alpha, beta_ = (X)(p)->beta; \
    X             *z_     = (X *)(p)->z; \
    const int32_t *order_ = perm; \
\
    for (int q = order_ ? 0 : (p)->first; q < (order_ ? (m) : (p)->last); q++) { \
      const int r    = order_ ? order_[q] : q; \
      double    sum_ = 0; \
\
      if (r < (p)->first || r >= (p)->last) continue; \
      ROW(V, GPUCSRReferenceAdd); \
      z_[r] = (X)(beta_ == 0 ? alpha_ * sum_ : alpha_ * sum_ + beta_ * y_[r]); \
    } \
  } while (0)
#define GPUCSRReferenceDiagonals(V, X, diagonal, perm, m, n, ROW) \
  do { \
    X             *d_     = (X *)(diagonal); \
    const int32_t *order_ = perm; \
\
    for (int q = 0; q < (order_ ? (m) : PetscMin(m, n)); q++) { \
      const int r = order_ ? order_[q] : q; \
\
      if (r >= (n)) continue; \
      d_[r] = 0; \
      ROW(V, GPUCSRReferenceFind); \
    } \
  } while (0)

#define GPUCSRReferenceMult(A, p, perm, ROW) \
  do { \
    switch ((A)->precision) { \
    case GPUCSR_PRECISION_DOUBLE: \
      GPUCSRReferenceRows(double, double, p, perm, (A)->m, ROW); \
      break; \
    case GPUCSR_PRECISION_SINGLE: \
      GPUCSRReferenceRows(float, float, p, perm, (A)->m, ROW); \
      break; \
    case GPUCSR_PRECISION_MIXED: \
      GPUCSRReferenceRows(float, double, p, perm, (A)->m, ROW); \
      break; \
    } \
  } while (0)
#define GPUCSRReferenceDiagonal(A, diagonal, perm, ROW) \
  do { \
    switch ((A)->precision) { \
    case GPUCSR_PRECISION_DOUBLE: \
      GPUCSRReferenceDiagonals(double, double, diagonal, perm, (A)->m, (A)->n, ROW); \
      break; \
    case GPUCSR_PRECISION_SINGLE: \
      GPUCSRReferenceDiagonals(float, float, diagonal, perm, (A)->m, (A)->n, ROW); \
      break; \
    case GPUCSR_PRECISION_MIXED: \
      GPUCSRReferenceDiagonals(float, double, diagonal, perm, (A)->m, (A)->n, ROW); \
      break; \
    } \
  } while (0)

#pragma once

/*
  Product and diagonal on the host, from a format's walk along a row. A file defines

    #define LOCALS ...               declarations that the walk uses
    #define ROW(V, ENTRY) ...        statements that call ENTRY(column, value) for each entry of row r, values being of type V

  and GPUCSR_REFERENCE(NAME, sorted, row) makes Mult_NAME() and Diagonal_NAME(). The walk may use q: if rows are sorted, the row is the q-th in the order of the format, and `row` an expression of q; else
  it is q. Names of all other locals end in _ and clash with no argument.
*/
#include "format.h"

#define GPUCSRReferenceAdd(c, v) sum_ += (v)*x_[c]
#define GPUCSRReferenceFind(c, v) \
  if ((c) == r) d_[r] = (v)

/* V, X: the types of values and vectors. Sums are doubles: float sums one by one along a long row would lose digits, unlike the device's trees */
#define GPUCSRReferenceRows(V, X, sorted, row) \
  do { \
    const X *x_ = (const X *)p->x, *y_ = (const X *)p->y, alpha_ = (X)p->alpha, beta_ = (X)p->beta; \
    X       *z_ = (X *)p->z; \
\
    for (int q = (sorted) ? 0 : p->first; q < ((sorted) ? A->m : p->last); q++) { \
      const int r    = row; \
      double    sum_ = 0; \
\
      if (r < p->first || r >= p->last) continue; \
      ROW(V, GPUCSRReferenceAdd); \
      z_[r] = (X)(beta_ == 0 ? alpha_ * sum_ : alpha_ * sum_ + beta_ * y_[r]); \
    } \
  } while (0)
#define GPUCSRReferenceDiagonals(V, X, sorted, row) \
  do { \
    X *d_ = (X *)diagonal; \
\
    for (int q = 0; q < ((sorted) ? A->m : PetscMin(A->m, A->n)); q++) { \
      const int r = row; \
\
      if (r >= A->n) continue; \
      d_[r] = 0; \
      ROW(V, GPUCSRReferenceFind); \
    } \
  } while (0)

#define GPUCSRReferenceFunction(name, argument, LOOP, sorted, row) \
  static PetscErrorCode name(const GPUCSRStorage *A, argument) \
  { \
    LOCALS; \
\
    PetscFunctionBegin; \
    switch (A->precision) { \
    case GPUCSR_PRECISION_DOUBLE: \
      LOOP(double, double, sorted, row); \
      break; \
    case GPUCSR_PRECISION_SINGLE: \
      LOOP(float, float, sorted, row); \
      break; \
    case GPUCSR_PRECISION_MIXED: \
      LOOP(float, double, sorted, row); \
      break; \
    } \
    PetscFunctionReturn(PETSC_SUCCESS); \
  }
#define GPUCSR_REFERENCE(NAME, sorted, row) GPUCSRReferenceFunction(Mult_##NAME, const GPUCSRProduct *p, GPUCSRReferenceRows, sorted, row) GPUCSRReferenceFunction(Diagonal_##NAME, void *diagonal, GPUCSRReferenceDiagonals, sorted, row)

#pragma once

/* Steps that move numbers, for any format (GPUCSRDeviceHelpers in kernels.h): the text of one number, for the loop of the host and for the kernel of a GPU */
#include "each.h"

#define GPUCSR_MOVES(STEP) \
  STEP(gather, 1, (GPUCSRType type, const int32_t *index, const void *from, void *to), (type, index, from, to)) \
  STEP(scatteradd, 1, (const int32_t *index, const double *from, double *to), (index, from, to)) \
  STEP(convert, 1, (const void *from, GPUCSRType type, void *to), (from, type, to)) \
  STEP(columnstorows, 1, (GPUCSRType type, int k, const void *columns, size_t ld, void *rows), (type, k, columns, ld, rows)) \
  STEP(rowstocolumns, 1, (GPUCSRType type, int k, const void *rows, const void *plus, void *columns, size_t ld, size_t ldplus), (type, k, rows, plus, columns, ld, ldplus))

/* STATEMENT(X) with the C type of a vector's numbers */
#define GPUCSRMoveAs(type, STATEMENT) \
  do { \
    if ((type) == GPUCSR_DOUBLE) STATEMENT(double); \
    else STATEMENT(float); \
  } while (0)

GPUCSR_HOST_DEVICE void gather_row(GPUCSRShare p, GPUCSRType type, const int32_t *index, const void *from, void *to)
{
#define GATHER(X) ((X *)to)[p.row] = ((const X *)from)[index[p.row]]
  GPUCSRMoveAs(type, GATHER);
#undef GATHER
}

GPUCSR_HOST_DEVICE void scatteradd_row(GPUCSRShare p, const int32_t *index, const double *from, double *to)
{
  to[index[p.row]] += from[p.row];
}

/* Doubles to floats, or floats to doubles */
GPUCSR_HOST_DEVICE void convert_row(GPUCSRShare p, const void *from, GPUCSRType type, void *to)
{
  if (type == GPUCSR_DOUBLE) ((double *)to)[p.row] = ((const float *)from)[p.row];
  else ((float *)to)[p.row] = (float)((const double *)from)[p.row];
}

/* On a GPU the first cache holds the strided reads, and below writes, of the threads */
GPUCSR_HOST_DEVICE void columnstorows_row(GPUCSRShare p, GPUCSRType type, int k, const void *columns, size_t ld, void *rows)
{
  const size_t r = (size_t)p.row;

#define TOROWS(X) \
  for (size_t c = 0; c < (size_t)k; c++) ((X *)rows)[r * (size_t)k + c] = ((const X *)columns)[c * ld + r]
  GPUCSRMoveAs(type, TOROWS);
#undef TOROWS
}

GPUCSR_HOST_DEVICE void rowstocolumns_row(GPUCSRShare p, GPUCSRType type, int k, const void *rows, const void *plus, void *columns, size_t ld, size_t ldplus)
{
  const size_t r = (size_t)p.row;

#define TOCOLUMNS(X) \
  for (size_t c = 0; c < (size_t)k; c++) ((X *)columns)[c * ld + r] = plus ? ((const X *)rows)[r * (size_t)k + c] + ((const X *)plus)[c * ldplus + r] : ((const X *)rows)[r * (size_t)k + c]
  GPUCSRMoveAs(type, TOCOLUMNS);
#undef TOCOLUMNS
}

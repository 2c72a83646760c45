#pragma once

/* The steps of triangle.h whose rows do not need each other */
#include "triangle.h"
#include <math.h>

/* The entries of row r in a triangle of F */
GPUCSR_HOST_DEVICE int GPUCSRTriangleBegin(const GPUCSRFactorCSR *F, GPUCSRBool upper, int r)
{
  return upper ? F->diag[r] + 1 : F->i[r];
}
GPUCSR_HOST_DEVICE int GPUCSRTriangleEnd(const GPUCSRFactorCSR *F, GPUCSRBool upper, int r)
{
  return upper ? F->i[r + 1] : F->diag[r];
}

GPUCSR_HOST_DEVICE void inspect_row(GPUCSRShare p, GPUCSRFactorCSR F, int *bad)
{
  int d = -1, last = -1, unsorted = 0;

  for (int e = F.i[p.row]; e < F.i[p.row + 1]; e++) {
    const int c = F.j[e];

    unsorted = unsorted || c <= last;
    if (c == p.row) d = e;
    last = c;
  }
  F.diag[p.row] = d;
  if (unsorted || d < 0) *bad = 1;
}

/* A lane for each row of the slice */
GPUCSR_HOST_DEVICE void widths_row(GPUCSRShare p, GPUCSRFactorCSR F, GPUCSRTriangle T, int *width)
{
  const GPUCSRSlice S     = T.slice[p.row];
  const int         lanes = 1 << GPUCSRSliceLanes(S.shape);
  int               most  = 0;

  for (int q = p.lane; q < GPUCSRSliceRows(S.shape); q += p.lanes) {
    const int r = T.order[S.first + q], w = (GPUCSRTriangleEnd(&F, T.upper, r) - GPUCSRTriangleBegin(&F, T.upper, r) + lanes - 1) / lanes;

    if (w > most) most = w;
  }
  most = GPUCSRLanesMax(p, most);
  if (!p.lane) width[p.row] = most;
}

/* l: a lane of the slice's rows */
GPUCSR_HOST_DEVICE void fill_row(GPUCSRShare p, GPUCSRFactorCSR F, GPUCSRTriangle T, GPUCSRBool pattern)
{
  const GPUCSRSlice S   = T.slice[p.row];
  const int         log = GPUCSRSliceLanes(S.shape), lanes = 1 << log, width = GPUCSRSliceWidth(S.shape), base = S.first / T.rows * T.rows;

  for (int l = p.lane; l < GPUCSR_SLICE; l += p.lanes) {
    const int there = l >> log < GPUCSRSliceRows(S.shape), place = S.first + (l >> log), r = there ? T.order[place] : 0;
    const int end = there ? GPUCSRTriangleEnd(&F, T.upper, r) : 0;
    int       e   = there ? GPUCSRTriangleBegin(&F, T.upper, r) + (l & (lanes - 1)) : 0;
    int64_t   to  = GPUCSR_SLICE * (int64_t)S.offset + l;

    if (there && !(l & (lanes - 1))) T.scale[place] = F.dinv[r];
    for (int w = 0; w < width; w++, e += lanes, to += GPUCSR_SLICE) {
      if (pattern) {
        const int c = e < end ? T.place[F.j[e]] : -1;

        T.col[to] = T.near && c >= base && c - base < T.rows ? GPUCSR_NEAR(c, base) : c;
      }
      T.val[to] = e < end ? F.a[e] : 0;
    }
  }
}

GPUCSR_HOST_DEVICE void compose_row(GPUCSRShare p, const int *in, const int *index, int *out)
{
  out[p.row] = index[in[p.row]];
}

GPUCSR_HOST_DEVICE void collect_row(GPUCSRShare p, const int *__restrict__ ptr, const int *__restrict__ index, const double *__restrict__ from, double *to)
{
  double sum = 0;

  for (int k = ptr[p.row]; k < ptr[p.row + 1]; k++) sum += from[index[k]];
  to[p.row] = sum;
}

GPUCSR_HOST_DEVICE void scatter_row(GPUCSRShare p, const int *ai, const int *aj, const double *aa, const int *row, const int *column, GPUCSRFactorCSR F)
{
  const int from = row ? row[p.row] : p.row;

  for (int e = ai[from] + p.lane; e < ai[from + 1]; e += p.lanes) {
    const int at = GPUCSRColumnFind(F.j, F.i[p.row], F.i[p.row + 1], column ? column[aj[e]] : aj[e]);

    if (at >= 0) F.a[at] = aa[e];
  }
}

GPUCSR_HOST_DEVICE void mirror_row(GPUCSRShare p, GPUCSRFactorCSR F)
{
  for (int e = F.diag[p.row] + 1; e < F.i[p.row + 1]; e++) {
    const int k = F.j[e], at = GPUCSRColumnFind(F.j, F.i[k], F.diag[k], p.row);

    F.a[e] = at < 0 ? 0 : F.a[at];
  }
}

/*
  Row r of a block's inverse: z' with z' (U' L) = e_r'. The upper triangle comes first, with columns ascending, then the lower triangle, with columns descending. Each column's result is at once subtracted from the
  columns after it. A block's inverse is stored by columns, so that neighbouring rows write neighbouring numbers
*/
GPUCSR_HOST_DEVICE void invert_row(GPUCSRShare p, GPUCSRFactorCSR F, GPUCSRBool symmetric, GPUCSRInverses V)
{
  const int     k = V.block[p.row], first = V.begin[k], end = V.begin[k + 1];
  const int64_t stride = end - first;
  double       *z      = V.value + V.at[k] + (p.row - first);

  for (int c = first; c < end; c++) z[(c - first) * stride] = c == p.row;
  for (int c = p.row; c < end; c++) {
    const double w = z[(c - first) * stride] * (symmetric ? 1 : F.dinv[c]);

    z[(c - first) * stride] = symmetric ? w * F.dinv[c] : w;
    for (int e = F.diag[c] + 1; e < F.i[c + 1]; e++) z[(F.j[e] - first) * stride] -= w * F.a[e];
  }
  for (int c = end - 1; c > first; c--) {
    const double w = z[(c - first) * stride];

    for (int e = F.i[c]; e < F.diag[c]; e++) z[(F.j[e] - first) * stride] -= w * F.a[e];
  }
}

GPUCSR_HOST_DEVICE void multiply_row(GPUCSRShare p, GPUCSRInverses V, const int *__restrict__ from, const int *__restrict__ to, const double *__restrict__ b, double *x)
{
  const int     k = V.block[p.row], first = V.begin[k], m = V.begin[k + 1] - first;
  const double *v   = V.value + V.at[k] + (p.row - first);
  double        sum = 0;

  for (int c = 0; c < m; c++) sum += v[(int64_t)c * m] * b[from ? from[first + c] : first + c];
  x[to ? to[p.row] : p.row] = sum;
}

#pragma once

/* The steps of assemble.h whose rows do not need each other. Products of two roundings are not fused where MATAIJ rounds twice */
#include "assemble.h"
#include <math.h>

GPUCSR_HOST_DEVICE void diagonalscale_row(GPUCSRShare p, GPUCSRCSR A, const double *__restrict__ l, const double *__restrict__ r)
{
  const double f = l ? l[p.row] : 1;

  for (int k = A.i[p.row] + p.lane; k < A.i[p.row + 1]; k += p.lanes) {
    double v = A.a[k];

    if (l) v *= f;
    if (r) v *= r[A.j[k]];
    A.a[k] = v;
  }
}

GPUCSR_HOST_DEVICE void places_row(GPUCSRShare p, GPUCSRCSR A, int32_t *place, int *missing)
{
  int at = -1;

  for (int k = A.i[p.row] + p.lane; k < A.i[p.row + 1]; k += p.lanes)
    if (A.j[k] == p.row && at < 0) at = k;
  at = GPUCSRLanesMax(p, at);
  if (p.lane) return;
  place[p.row] = at;
  if (at < 0) *missing = 1;
}

GPUCSR_HOST_DEVICE void diagonal_row(GPUCSRShare p, const int32_t *place, const double *d, double s, GPUCSRBool add, double *a)
{
  const int k = place[p.row];

  a[k] = (add ? a[k] : 0) + (d ? d[p.row] : s);
}

GPUCSR_HOST_DEVICE int GPUCSRListed(GPUCSRRowList list, int k)
{
  return list.row ? list.row[k] : list.first + k;
}

GPUCSR_HOST_DEVICE void zerorows_row(GPUCSRShare p, GPUCSRRowList list, const int32_t *place, double d, const double *x, double *b, GPUCSRCSR A)
{
  const int r = GPUCSRListed(list, p.row), at = place && r < A.n ? place[r] : -1;

  for (int k = A.i[r] + p.lane; k < A.i[r + 1]; k += p.lanes) A.a[k] = k == at ? d : 0;
  if (x && !p.lane && r < A.n) b[r] = d * x[r];
}

GPUCSR_HOST_DEVICE void mark_row(GPUCSRShare p, GPUCSRRowList list, char *mark)
{
  mark[GPUCSRListed(list, p.row)] = 1;
}

GPUCSR_HOST_DEVICE void zerocolumns_row(GPUCSRShare p, const char *__restrict__ mark, double d, const double *__restrict__ x, double *b, GPUCSRCSR A)
{
  const int all = mark[p.row];
  double    t   = 0;

  for (int k = A.i[p.row] + p.lane; k < A.i[p.row + 1]; k += p.lanes) {
    const int c = A.j[k];

    if (all) A.a[k] = c == p.row ? d : 0;
    else if (c < A.m && mark[c]) {
      if (x) t += A.a[k] * x[c];
      A.a[k] = 0;
    }
  }
  t = GPUCSRLanesSum(p, t);
  if (p.lane || !x) return;
  if (!all) b[p.row] -= t;
  else if (p.row < A.n) b[p.row] = d * x[p.row];
}

/* The first of equal entries wins */
GPUCSR_HOST_DEVICE void rowmaxabs_row(GPUCSRShare p, GPUCSRCSR A, double *v, int32_t *column)
{
  double most = 0;
  int    at   = -1;

  for (int k = A.i[p.row]; k < A.i[p.row + 1]; k++) {
    if (!(fabs(A.a[k]) > most)) continue;
    most = fabs(A.a[k]);
    at   = A.j[k];
  }
  v[p.row] = most;
  if (column && at >= 0) column[p.row] = at;
}

GPUCSR_HOST_DEVICE void rowsums_row(GPUCSRShare p, GPUCSRCSR A, double *s)
{
  double t = 0;

  for (int k = A.i[p.row] + p.lane; k < A.i[p.row + 1]; k += p.lanes) t += fabs(A.a[k]);
  t = GPUCSRLanesSum(p, t);
  if (!p.lane) s[p.row] += t;
}

/* For each entry, which looks for its row, and for each row pointer, which is compared with the next */
GPUCSR_HOST_DEVICE void entryrows_row(GPUCSRShare p, int m, int n, const int32_t *rowptr, int32_t *row, int *wrong)
{
  const int k  = p.row;
  int       lo = 0, hi = m - 1;

  if (k <= m && ((k == 0 && rowptr[0] != 0) || (k == m ? rowptr[m] != n : rowptr[k] > rowptr[k + 1]))) *wrong = 1;
  if (k >= n) return;
  while (lo < hi) { /* the last row that does not begin behind k */
    const int mid = lo + (hi - lo + 1) / 2;

    if (rowptr[mid] <= k) lo = mid;
    else hi = mid - 1;
  }
  row[k] = lo;
}

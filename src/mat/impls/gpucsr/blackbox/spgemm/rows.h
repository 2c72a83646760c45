#pragma once

/* The steps of spgemm.h whose rows do not need each other */
#include "spgemm.h"

GPUCSR_HOST_DEVICE void bound_row(GPUCSRShare p, GPUCSRCSR A, GPUCSRCSR B, int32_t *length)
{
  int64_t sum = 0;

  for (int k = A.i[p.row] + p.lane; k < A.i[p.row + 1]; k += p.lanes) sum += B.i[A.j[k] + 1] - B.i[A.j[k]];
  const double all = GPUCSRLanesSum(p, (double)sum);
  if (!p.lane) length[p.row] = all < B.n ? (int32_t)all : B.n;
}

/* One row more than A, for the end of the row pointers */
GPUCSR_HOST_DEVICE void beside_row(GPUCSRShare p, GPUCSRCSR A, GPUCSRCSR T, int32_t *__restrict__ rowptr, int32_t *__restrict__ col, double *__restrict__ val)
{
  const int a = A.i[p.row], t = T.i[p.row], first = a + t;

  if (!p.lane) rowptr[p.row] = first;
  if (p.row == A.m) return;
  const int na = A.i[p.row + 1] - a, nt = T.i[p.row + 1] - t;
  for (int k = p.lane; k < na + nt; k += p.lanes) {
    col[first + k] = k < na ? A.j[a + k] : T.j[t + k - na] + A.n;
    val[first + k] = k < na ? A.a[a + k] : T.a[t + k - na];
  }
}

/* Rows of Y may be in any order: a column that bisection does not find is looked for in the whole row */
GPUCSR_HOST_DEVICE void axpy_row(GPUCSRShare p, double f, GPUCSRCSR X, GPUCSRCSR Y, int *lost)
{
  const int first = Y.i[p.row], end = Y.i[p.row + 1];

  for (int q = X.i[p.row] + p.lane; q < X.i[p.row + 1]; q += p.lanes) {
    const int c  = X.j[q];
    int       at = GPUCSRColumnFind(Y.j, first, end, c);

    if (at < 0)
      for (at = first; at < end && Y.j[at] != c; at++)
        ;
    if (at < end) Y.a[at] += f * X.a[q];
    else *lost = 1;
  }
}

GPUCSR_HOST_DEVICE void renumber_row(GPUCSRShare p, const int32_t *table, int32_t *j)
{
  j[p.row] = table[j[p.row]];
}

GPUCSR_HOST_DEVICE void lengths_row(GPUCSRShare p, GPUCSRCSR A, int n, GPUCSRBool rest, int32_t *length)
{
  int lo = A.i[p.row], hi = A.i[p.row + 1];

  while (lo < hi) { /* the first entry with a column from n on */
    const int mid = lo + (hi - lo) / 2;

    if (A.j[mid] < n) lo = mid + 1;
    else hi = mid;
  }
  length[p.row] = rest ? A.i[p.row + 1] - lo : lo - A.i[p.row];
}

/* The entries before column n go to D, the rest to E */
GPUCSR_HOST_DEVICE void part_row(GPUCSRShare p, GPUCSRCSR A, int n, const int32_t *__restrict__ drow, int32_t *__restrict__ dcol, double *__restrict__ dval, GPUCSRCSR E)
{
  const int first = A.i[p.row], length = A.i[p.row + 1] - first, d = drow[p.row], e = E.i[p.row], own = drow[p.row + 1] - d;

  for (int k = p.lane; k < length; k += p.lanes) {
    const int    c = A.j[first + k];
    const double v = A.a[first + k];

    if (k < own) {
      dcol[d + k] = c;
      dval[d + k] = v;
    } else {
      E.j[e + k - own] = c - n;
      E.a[e + k - own] = v;
    }
  }
}

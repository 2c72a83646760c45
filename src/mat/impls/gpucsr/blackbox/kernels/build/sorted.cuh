#pragma once

/* CSR with its rows sorted by column, for conversions that search in them */
#include "../device.cuh"

/* Sets *unsorted if two neighbouring entries of a row descend: one thread for each pair; row is its row */
__device__ __forceinline__ void check_sorted(int k, int begin, const int *__restrict__ col, int *unsorted)
{
  if (k > begin && col[k - 1] > col[k]) *unsorted = 1;
}

/* The row of entry k, one of lo <= row < hi, some of which may be empty */
__device__ __forceinline__ int row_of(int k, int lo, int hi, const int *__restrict__ rowptr)
{
  return bisect(lo + 1, hi, [=](int r) { return rowptr[r] <= k; }) - 1;
}

/* The same matrix with sorted rows, in memory of its own (GPUCSRStorageDestroy()): the transpose of the transpose */
GPUCSR_INTERN GPUCSRError GPUCSRSortColumns(const GPUCSRStorage *csr, GPUCSRStorage *sorted, GPUCSRStream);

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
  while (hi - lo > 1) {
    const int mid = (int)(((int64_t)lo + hi) / 2);

    if (rowptr[mid] <= k) lo = mid;
    else hi = mid;
  }
  return lo;
}

/* The same matrix with sorted rows, in memory of its own (GPUCSRStorageDestroy()): the transpose of the transpose */
GPUCSR_INTERN GPUCSRError GPUCSRSortRows(const GPUCSRStorage *csr, GPUCSRStorage *sorted, GPUCSRStream);

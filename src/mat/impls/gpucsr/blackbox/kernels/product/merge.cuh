#pragma once

/* Rows and entries of CSR as one list, cut into equal pieces for any row lengths: merge path */

/* The number of row ends before diagonal d of the merge of row ends and entry numbers */
__device__ __forceinline__ int merge_row(int64_t d, const int *__restrict__ rowptr, int m, int64_t nnz)
{
  int lo = d > nnz ? (int)(d - nnz) : 0, hi = d < m ? (int)d : m;

  while (lo < hi) {
    const int mid = (int)(((int64_t)lo + hi) / 2);

    if (rowptr[mid + 1] <= d - 1 - mid) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

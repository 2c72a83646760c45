#pragma once

/* Rows and entries of CSR as one list, to be cut into equal pieces whatever the lengths of the rows: merge path */

/* On diagonal d of the merge of row ends and entry numbers: how many row ends come first */
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

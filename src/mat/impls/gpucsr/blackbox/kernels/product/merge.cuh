#pragma once

/* Rows and entries of CSR as one list, cut into equal pieces for any row lengths: merge path */

/* The number of row ends before diagonal d of the merge of row ends and entry numbers */
__device__ __forceinline__ int merge_row(int64_t d, const int *__restrict__ rowptr, int m, int64_t nnz)
{
  return bisect(d > nnz ? (int)(d - nnz) : 0, d < m ? (int)d : m, [=](int r) { return rowptr[r + 1] <= d - 1 - r; });
}

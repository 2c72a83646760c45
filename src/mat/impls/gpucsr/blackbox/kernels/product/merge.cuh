#pragma once

/* Rows and entries of CSR as one list, to be cut into equal pieces whatever the lengths of the rows: merge path */

/* On diagonal d of the merge of row ends and entry numbers: how many row ends come first */
__device__ __forceinline__ int merge_row(int64_t d, const int *__restrict__ rowptr, int m, int64_t nnz)
{
  return bisect(d > nnz ? (int)(d - nnz) : 0, d < m ? (int)d : m, [=](int r) { return rowptr[r + 1] <= d - 1 - r; });
}

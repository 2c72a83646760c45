/*
  CSR with its rows sorted by column, for conversions that search in them. A transpose has sorted rows, so the transpose of the transpose is the
  matrix with sorted rows. Few matrices need it.
*/
#include "sorted.cuh"

/* The caller destroys it, even after an error */
GPUCSRError GPUCSRSortColumns(const GPUCSRStorage *csr, GPUCSRStorage *sorted, GPUCSRStream s)
{
  const GPUCSRDeviceHelpers *h     = GPUCSRHelpers(csr->dev);
  const size_t               bytes = sizeof(int32_t) * (size_t)csr->nnz;
  GPUCSRStorage              T     = {0};
  void                      *map   = NULL;
  GPUCSRError                ierr;

  GPUCSRCall(GPUCSRStorageCSR(csr->dev, csr->m, csr->n, csr->nnz, csr->precision, false, sorted));
  ierr = GPUCSRMalloc(csr->dev, bytes, "the sort of rows", &map);
  if (!ierr) ierr = GPUCSRStorageCSR(csr->dev, csr->n, csr->m, csr->nnz, csr->precision, false, &T);
  if (!ierr) ierr = (*h->transpose)(csr, &T, (int32_t *)map, s);
  if (!ierr) ierr = (*h->transpose)(&T, sorted, (int32_t *)map, s);
  GPUCSRCall(GPUCSRFree(csr->dev, bytes, &map)); /* in the order of the stream */
  GPUCSRCall(GPUCSRStorageDestroy(&T));
  GPUCSRCall(ierr);
  return 0;
}

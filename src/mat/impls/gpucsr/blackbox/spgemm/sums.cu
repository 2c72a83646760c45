/* Sums of sparse matrices on a GPU: of two side by side, and in place if the pattern has all entries */
#include "spgemm.cuh"

/* 8 threads for a row */
__global__ void beside_kernel(int m, int n, csr A, csr T, int *__restrict__ rowptr, int *__restrict__ col, double *__restrict__ val)
{
  const int r = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 8), lane = threadIdx.x % 8;

  if (r >= m) return;
  const int first = A.i[r] + T.i[r], la = A.i[r + 1] - A.i[r], lt = T.i[r + 1] - T.i[r];
  for (int k = lane; k < la + lt; k += 8) {
    col[first + k] = k < la ? A.j[A.i[r] + k] : T.j[T.i[r] + k - la] + n;
    val[first + k] = k < la ? A.a[A.i[r] + k] : T.a[T.i[r] + k - la];
  }
  if (lane == 0) {
    rowptr[r] = first;
    if (r == m - 1) rowptr[m] = first + la + lt;
  }
}

GPUCSRError GPUCSRBeside_CUDA(const GPUCSRStorage *A, const GPUCSRStorage *T, GPUCSRStorage *K)
{
  if (!A->m) {
    GPUCSRCall((*A->dev->ops->zero)(A->dev->id, K->array[CSR_ROWPTR].data, sizeof(int), A->dev->stream));
    return 0;
  }
  beside_kernel<<<GPUCSRBlocks((int64_t)A->m * 8, 256), 256, 0, StreamOf(A)>>>(A->m, A->n, Arrays(A), Arrays(T), (int *)K->array[CSR_ROWPTR].data, (int *)K->array[CSR_COL].data, (double *)K->array[CSR_VAL].data);
  GPUCSRCheckLaunch("beside");
  return 0;
}

/* 8 threads for a row; rows of Y may be in any order: the search begins at the column's place in an ascending row */
__global__ void axpy_kernel(int m, double f, csr X, const int *__restrict__ yrow, const int *__restrict__ ycol, double *yval, int *lost)
{
  const int r = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 8);

  if (r >= m) return;
  const int first = yrow[r], end = yrow[r + 1];
  for (int q = X.i[r] + (int)(threadIdx.x % 8); q < X.i[r + 1]; q += 8) {
    const int c  = X.j[q];
    int       lo = bisect(first, end, [=](int k) { return ycol[k] < c; });

    if (lo == end || ycol[lo] != c)
      for (lo = first; lo < end && ycol[lo] != c; lo++)
        ;
    if (lo < end) yval[lo] += f * X.a[q];
    else *lost = 1;
  }
}

GPUCSRError GPUCSRAXPY_CUDA(double f, const GPUCSRStorage *X, GPUCSRStorage *Y, GPUCSRBool *lost)
{
  GPUCSRDevice dev  = Y->dev;
  void        *flag = NULL;
  int          yes  = 0;
  GPUCSRError  ierr;

  *lost = false;
  if (!Y->m) return 0;
  GPUCSRCall(GPUCSRMalloc(dev, sizeof(int), "a sum's flag", &flag));
  ierr = dev->ops->zero(dev->id, flag, sizeof(int), dev->stream);
  if (!ierr) {
    axpy_kernel<<<GPUCSRBlocks((int64_t)Y->m * 8, 256), 256, 0, StreamOf(Y)>>>(Y->m, f, Arrays(X), Arrays(Y).i, Arrays(Y).j, (double *)Y->array[CSR_VAL].data, (int *)flag);
    ierr = GPUCSRRead(dev, &yes, flag, sizeof(int));
  }
  GPUCSRCall(GPUCSRFree(dev, sizeof(int), &flag));
  GPUCSRCall(ierr);
  GPUCSRCheckLaunch("spgemm (axpy)");
  *lost = yes ? true : false;
  return 0;
}

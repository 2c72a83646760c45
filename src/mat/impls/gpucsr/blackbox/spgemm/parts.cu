/* Columns of matrices on a GPU renumbered, and matrices split by columns */
#include "spgemm.cuh"

__global__ void renumber_kernel(int64_t n, const int *__restrict__ table, int *j)
{
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (k < n) j[k] = table[j[k]];
}

GPUCSRError GPUCSRRenumber_CUDA(int64_t n, const int32_t *table, int32_t *j, GPUCSRDevice dev)
{
  if (!n) return 0;
  renumber_kernel<<<GPUCSRBlocks(n, 256), 256, 0, (cudaStream_t)dev->stream>>>(n, table, j);
  GPUCSRCheckLaunch("renumber");
  return 0;
}

/* The first entry with a column from n on, in an ascending row */
__device__ __forceinline__ int border(const csr &A, int r, int n)
{
  return bisect(A.i[r], A.i[r + 1], [&](int k) { return A.j[k] < n; });
}

__global__ void lengths_kernel(int m, csr A, int n, bool rest, int *__restrict__ length)
{
  const int64_t r = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (r >= m) return;
  const int at = border(A, (int)r, n);
  length[r]    = rest ? A.i[r + 1] - at : at - A.i[r];
}

GPUCSRError GPUCSRLengths_CUDA(const GPUCSRStorage *A, int n, GPUCSRBool rest, int32_t *length)
{
  if (!A->m) return 0;
  lengths_kernel<<<GPUCSRBlocks(A->m, 256), 256, 0, StreamOf(A)>>>(A->m, Arrays(A), n, rest == true, length);
  GPUCSRCheckLaunch("lengths of parts");
  return 0;
}

/* 8 threads for a row */
__global__ void part_kernel(int m, csr A, int n, const int *__restrict__ drow, int *__restrict__ dcol, double *__restrict__ dval, const int *__restrict__ erow, int *__restrict__ ecol, double *__restrict__ eval)
{
  const int r = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 8), lane = threadIdx.x % 8;

  if (r >= m) return;
  const int first = A.i[r], length = A.i[r + 1] - first, d = drow[r], e = erow[r], own = drow[r + 1] - d;
  for (int k = lane; k < length; k += 8) {
    const int    c = A.j[first + k];
    const double v = A.a[first + k];

    if (k < own) {
      dcol[d + k] = c;
      dval[d + k] = v;
    } else {
      ecol[e + k - own] = c - n;
      eval[e + k - own] = v;
    }
  }
}

GPUCSRError GPUCSRPart_CUDA(const GPUCSRStorage *A, int n, GPUCSRStorage *D, GPUCSRStorage *E)
{
  if (!A->m) return 0;
  part_kernel<<<GPUCSRBlocks((int64_t)A->m * 8, 256), 256, 0, StreamOf(A)>>>(A->m, Arrays(A), n, Arrays(D).i, (int *)D->array[CSR_COL].data, (double *)D->array[CSR_VAL].data, Arrays(E).i, (int *)E->array[CSR_COL].data, (double *)E->array[CSR_VAL].data);
  GPUCSRCheckLaunch("parts");
  return 0;
}

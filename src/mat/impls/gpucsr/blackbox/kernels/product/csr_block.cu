/*
  y = A x, CSR, a block of 256 threads for each row.

  Like csr_vector with the whole block on one row, which adds its warps' sums in shared memory. Wins on few and very long rows, of about a thousand entries and more; loses elsewhere.

  Bytes: CSR's, n x once at best, m y.

  Paper: A. H. El Zein, A. P. Rendell, Generating optimal CUDA sparse matrix-vector product implementations for evolving
  GPU hardware, Concurrency and Computation 2012, section 3.
*/
#include "../device.cuh"

template <int B, class V, class X>
__global__ void __launch_bounds__(B) csr_block_kernel(int first, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, X alpha, const X *__restrict__ x, X beta, const X *y, X *z)
{
  after_previous();
  typedef typename pair_of<V>::type V2;
  __shared__ X                      part[B / 32];
  const int                         r     = first + (int)blockIdx.x;
  const int                         begin = rowptr[r], end = rowptr[r + 1];
  X                                 sum = 0;

#pragma unroll 4
  for (int64_t k = (begin & ~1) + 2 * (int)threadIdx.x; k < end; k += 2 * B) {
    const int2 c = streamed((const int2 *)(col + k));
    const V2   v = streamed((const V2 *)(val + k));

    if (k >= begin) sum += X(v.x) * __ldg(x + c.x);
    if (k + 1 < end) sum += X(v.y) * __ldg(x + c.y);
  }
  sum = reduce<32>(sum);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < B / 32 ? part[threadIdx.x] : X(0);
    sum = reduce<32>(sum);
    if (threadIdx.x == 0) store(z, y, r, alpha, sum, beta);
  }
}

static GPUCSRError Launch_csr_block(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
#define LAUNCH(V, X) \
  launch_after(csr_block_kernel<256, V, X>, (unsigned int)(p->last - p->first), 256, 0, s, p->first, (const int *)A->array[CSR_ROWPTR].data, (const int *)A->array[CSR_COL].data, (const V *)A->array[CSR_VAL].data, (X)p->alpha, (const X *)p->x, (X)p->beta, \
               (const X *)p->y, (X *)p->z)
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("csr_block");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_csr_block) = {true, NULL, Launch_csr_block};

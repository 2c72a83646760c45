/*
  y = A x, CSR, one thread for each row (CSR-S, the sequential kernel of the literature).

  Each thread walks its row alone, so neighbouring threads read entries a row length apart. Wins on very many rows of a few entries, where several threads for a row would idle.

  Bytes: CSR's, n x once at best, m y. Loses from about four entries a row on, where loads no longer share sectors.

  Paper: N. Bell, M. Garland, Implementing sparse matrix-vector multiplication on throughput-oriented processors, SC 2009,
  section 4.2.
*/
#include "../device.cuh"

template <class V, class X, class E>
__global__ void csr_scalar_kernel(int first, int last, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, const X *__restrict__ x, const E ending)
{
  after_previous();
  const int r   = first + (int)(blockIdx.x * blockDim.x + threadIdx.x);
  X         sum = 0;

  typename E::Tally tally;

  if (r < last) {
    const int end = rowptr[r + 1];

#pragma unroll 4
    for (int k = rowptr[r]; k < end; k++) sum += X(val[k]) * __ldg(x + col[k]);
    store(ending, r, sum, tally);
  }
  finish(ending, tally);
}

GPUCSR_INTERN const GPUCSRKernelFamily GPUCSRKernel_csr_scalar;

static GPUCSRError Launch_csr_scalar(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int block = GPUCSRBlockOf(&GPUCSRKernel_csr_scalar);

#define LAUNCH(V, X) \
  GPUCSREnding<X>(p, GPUCSRBlocks(p->last - p->first, block), [&](auto ending) { \
    launch_after(csr_scalar_kernel<V, X, decltype(ending)>, GPUCSRBlocks(p->last - p->first, block), block, 0, s, p->first, p->last, (const int *)A->array[CSR_ROWPTR].data, (const int *)A->array[CSR_COL].data, (const V *)A->array[CSR_VAL].data, \
                 (const X *)p->x, ending); \
  })
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("csr_scalar");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_csr_scalar) = {true, NULL, Launch_csr_scalar, 128, true};

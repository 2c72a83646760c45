/*
  y = A x, CSR, 2, 4, 8, 16 or 32 threads a row (CSR-V, the coalesced kernel of the literature); the variant is that number.

  The threads of a row read neighbouring entries, two a thread in one aligned load: a row's head that is not aligned is
  covered by starting one entry early and leaving that one out, so every load is whole. Their sums meet by shuffles.

  Bytes: those of CSR, n x once at best, m y. Wins where the rows have about two to four entries a thread; loses on rows
  much shorter than the threads that share them, and where lengths differ so much that warps wait for one row.

  Papers: N. Bell, M. Garland, SC 2009, section 4.2; aligned access after M. M. Baskaran, R. Bordawekar, Optimizing sparse
  matrix-vector multiplication on GPUs, IBM RC24704, section 4.
*/
#include "device.cuh"

template <int T, class V, class X>
__global__ void __launch_bounds__(256) csr_vector_kernel(int first, int last, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, X alpha, const X *__restrict__ x, X beta, const X *y, X *z)
{
  typedef typename pair_of<V>::type V2;
  const int                         r    = first + (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / T);
  const int                         lane = threadIdx.x % T;
  X                                 sum  = 0;

  if (r < last) {
    const int begin = rowptr[r], end = rowptr[r + 1];

#pragma unroll 4
    for (int k = (begin & ~1) + 2 * lane; k < end; k += 2 * T) {
      const int2 c = streamed((const int2 *)(col + k));
      const V2   v = streamed((const V2 *)(val + k));

      if (k >= begin) sum += X(v.x) * __ldg(x + c.x);
      if (k + 1 < end) sum += X(v.y) * __ldg(x + c.y);
    }
  }
  sum = reduce<T>(sum);
  if (r < last && lane == 0) store(z, y, r, alpha, sum, beta);
}

static PetscErrorCode Launch(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int block = 256;

  PetscFunctionBegin;
#define LAUNCHT(T, V, X) \
  case T: \
    csr_vector_kernel<T, V, X><<<GPUCSRBlocks((int64_t)(p->last - p->first) * T, block), block, 0, (cudaStream_t)s>>>(p->first, p->last, (const int *)A->array[CSR_ROWPTR].data, (const int *)A->array[CSR_COL].data, (const V *)A->array[CSR_VAL].data, \
                                                                                                                      (X)p->alpha, (const X *)p->x, (X)p->beta, (const X *)p->y, (X *)p->z); \
    break
#define LAUNCH(V, X) \
  switch (variant) { \
    LAUNCHT(2, V, X); \
    LAUNCHT(4, V, X); \
    LAUNCHT(8, V, X); \
    LAUNCHT(16, V, X); \
    LAUNCHT(32, V, X); \
  }
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("csr_vector");
  PetscFunctionReturn(PETSC_SUCCESS);
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_csr_vector) = {PETSC_TRUE, NULL, NULL, Launch, NULL};

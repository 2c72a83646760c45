/*
  y = A x, CSR, 2, 4, 8, 16 or 32 threads for a row (CSR-V, the coalesced kernel of the literature).

  The threads of a row read neighbouring entries, 1, 2 or 4 in one aligned load: an unaligned row starts early, and leaves out the entries of the row before. Shuffles add their sums.

  Bytes: CSR's, n x once at best, m y. Wins if the rows have about two to four entries for each thread; loses on rows with fewer entries than threads, and if warps wait for one long row.

  Papers: N. Bell, M. Garland, SC 2009, section 4.2; aligned access after M. M. Baskaran, R. Bordawekar, Optimizing sparse
  matrix-vector multiplication on GPUs, IBM RC24704, section 4.
*/
#include "../device.cuh"

#define ENTRIES 8 /* of a thread in flight */

template <int T, int W, class V, class X>
__device__ __forceinline__ X row_sum(int begin, int end, int lane, const int *__restrict__ col, const V *__restrict__ val, const X *__restrict__ x)
{
  constexpr int LOADS = ENTRIES / W;
  X             sum   = 0;

#pragma unroll LOADS
  for (int64_t k = (begin & ~(W - 1)) + W * lane; k < end; k += W * T) {
    int c[W];
    V   v[W];

    streamed(col + k, c);
    streamed(val + k, v);
#pragma unroll
    for (int w = 0; w < W; w++)
      if ((W == 1 || k + w >= begin) && k + w < end) sum += X(v[w]) * __ldg(x + c[w]);
  }
  return sum;
}

template <int T, int W, class V, class X, class E>
__global__ void __launch_bounds__(512) csr_vector_kernel(int first, int last, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, const X *__restrict__ x, const E ending)
{
  after_previous();
  const int64_t     r     = first + ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / T;
  const int         lane  = threadIdx.x % T;
  const int         begin = r < last ? rowptr[r] : 0, end = r < last ? rowptr[r + 1] : 0;
  const X           y   = r < last && lane == 0 ? added(ending, r) : X(0);
  const X           sum = reduce<T>(row_sum<T, W, V, X>(begin, end, lane, col, val, x));
  typename E::Tally tally;

  if (r < last && lane == 0) store(ending, r, sum, y, tally);
  finish(ending, tally);
}

GPUCSR_INTERN const GPUCSRKernelFamily GPUCSRKernel_csr_vector;

static GPUCSRError Launch_csr_vector(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int block = GPUCSRBlockOf(&GPUCSRKernel_csr_vector);

#define LAUNCHT(T, W, V, X) \
  case CSR_VECTOR(T, W): \
    GPUCSREnding<X>(p, GPUCSRBlocks((int64_t)(p->last - p->first) * T, block), [&](auto ending) { \
      launch_after(csr_vector_kernel<T, W, V, X, decltype(ending)>, GPUCSRBlocks((int64_t)(p->last - p->first) * T, block), block, 0, s, p->first, p->last, (const int *)A->array[CSR_ROWPTR].data, (const int *)A->array[CSR_COL].data, \
                   (const V *)A->array[CSR_VAL].data, (const X *)p->x, ending); \
    }); \
    break
#define LAUNCH(V, X) \
  switch (variant) { \
    LAUNCHT(2, 2, V, X); \
    LAUNCHT(4, 2, V, X); \
    LAUNCHT(8, 2, V, X); \
    LAUNCHT(16, 2, V, X); \
    LAUNCHT(32, 2, V, X); \
    LAUNCHT(16, 1, V, X); \
    LAUNCHT(8, 4, V, X); \
    LAUNCHT(32, 4, V, X); \
  }
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("csr_vector");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_csr_vector) = {true, NULL, Launch_csr_vector, 256, true};

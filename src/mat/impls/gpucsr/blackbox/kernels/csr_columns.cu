/*
  Z = A X, CSR, for several columns at once: reads the matrix once for 32 columns, not once for each.

  On the device X and Z are stored by rows, so an entry multiplies neighbours in X. In a warp C neighbouring threads have one or two columns each,
  and the 32 / C groups share a row's entries. Rows and entries together are one list of m + nnz items, cut into equal stretches, one for
  each warp, for any row lengths. A second, small kernel adds the sums of rows cut by stretches in a fixed order, so every run has the same bits.

  Bytes: CSR's for every 32 columns, 8 k n of X once at best, 8 k m of Z. Beyond the caches each entry loads a row of X.

  Paper: stretches after D. Merrill, M. Garland, Merge-based parallel sparse matrix-vector multiplication, SC 2016, section 3.
*/
#include "device.cuh"

#define BLOCK 256
#define ITEMS 128 /* of the merged list, for each warp */

static int64_t Stretches(const GPUCSRStorage *A)
{
  return (A->m + A->nnz + ITEMS - 1) / ITEMS;
}

/* W neighbouring numbers of a row, the part of a thread: one, or two in one load */
template <int W, class X>
struct Few;
template <class X>
struct Few<1, X> {
  X a;

  __device__ __forceinline__ void add(X v, const X *x)
  {
    a += v * __ldg(x);
  }
  __device__ __forceinline__ void down(int o)
  {
    a += __shfl_down_sync(0xffffffffu, a, o);
  }
  __device__ __forceinline__ void put(X *to, bool more) const
  {
    *to = more ? *to + a : a;
  }
};
template <class X>
struct Few<2, X> {
  X a, b;

  __device__ __forceinline__ void add(X v, const X *x)
  {
    const typename pair_of<X>::type t = __ldg((const typename pair_of<X>::type *)x);

    a += v * t.x;
    b += v * t.y;
  }
  __device__ __forceinline__ void down(int o)
  {
    a += __shfl_down_sync(0xffffffffu, a, o);
    b += __shfl_down_sync(0xffffffffu, b, o);
  }
  __device__ __forceinline__ void put(X *to, bool more) const
  {
    to[0] = more ? to[0] + a : a;
    to[1] = more ? to[1] + b : b;
  }
};

/* The number of row ends before diagonal d of the merge of row ends and entry numbers */
__device__ __forceinline__ int merge_row(int64_t d, const int *__restrict__ rowptr, int m, int64_t nnz)
{
  return bisect(d > nnz ? (int)(d - nnz) : 0, d < m ? (int)d : m, [=](int r) { return rowptr[r + 1] <= d - 1 - r; });
}

/* C threads have W columns each; carry: a stretch's sum of the row `cut` that its end cuts */
template <int C, int W, class V, class X>
__global__ void __launch_bounds__(BLOCK) csr_columns_kernel(int m, int64_t nnz, int k, int64_t stretches, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, const X *__restrict__ x, X *z, int *cut, X *carry)
{
  const int64_t w    = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int     lane = threadIdx.x % 32, group = lane / C, c = W * ((int)blockIdx.y * C + lane % C);
  const int64_t d0 = w * ITEMS, d1 = d0 + ITEMS < m + nnz ? d0 + ITEMS : m + nnz;

  if (w >= stretches) return;
  const int r0 = merge_row(d0, rowptr, m, nnz), r1 = merge_row(d1, rowptr, m, nnz);
  int64_t   begin = d0 - r0;

  for (int r = r0; r <= r1; r++) {
    const int64_t end = r < r1 ? rowptr[r + 1] : d1 - r1;
    Few<W, X>     sum = {};

    if (c < k) {
#pragma unroll 4
      for (int64_t q = begin + group; q < end; q += 32 / C) sum.add(X(val[q]), x + (int64_t)col[q] * k + c);
    }
#pragma unroll
    for (int o = 16; o >= C; o /= 2) sum.down(o);
    if (group == 0 && c < k) sum.put((r < r1 ? z + (int64_t)r * k : carry + w * k) + c, false);
    begin = end;
  }
  if (lane == 0 && blockIdx.y == 0) cut[w] = r1;
}

/* z[row] += the sums of the row from earlier stretches: by the warp of the first of them */
template <int C, int W, class X>
__global__ void csr_columns_carry_kernel(int m, int k, int64_t stretches, const int *__restrict__ cut, const X *__restrict__ carry, X *z)
{
  const int64_t w    = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int     lane = threadIdx.x % 32, group = lane / C, c = W * ((int)blockIdx.y * C + lane % C);
  Few<W, X>     sum = {};

  if (w >= stretches) return;
  const int row = cut[w];
  if (row >= m || (w && cut[w - 1] == row)) return;
  for (int64_t q = w + group; q < stretches && cut[q] == row; q += 32 / C)
    if (c < k) sum.add(X(1), carry + q * k + c);
#pragma unroll
  for (int o = 16; o >= C; o /= 2) sum.down(o);
  if (group == 0 && c < k) sum.put(z + (int64_t)row * k + c, true);
}

template <int C, int W, class V, class X>
static void Launch_csr_columns(const GPUCSRStorage *A, int k, const void *x, void *z, int *cut, void *carry, cudaStream_t s)
{
  const int64_t stretches = Stretches(A);
  const dim3    grid(GPUCSRBlocks(stretches * 32, BLOCK), (unsigned int)((k + C * W - 1) / (C * W)));

  csr_columns_kernel<C, W, V, X><<<grid, BLOCK, 0, s>>>(A->m, A->nnz, k, stretches, (const int *)A->array[CSR_ROWPTR].data, (const int *)A->array[CSR_COL].data, (const V *)A->array[CSR_VAL].data, (const X *)x, (X *)z, cut, (X *)carry);
  csr_columns_carry_kernel<C, W, X><<<grid, BLOCK, 0, s>>>(A->m, k, stretches, cut, (const X *)carry, (X *)z);
}

/* As many threads as columns, or as pairs of columns if the number is even */
template <class V, class X>
static void Widest(const GPUCSRStorage *A, int k, const void *x, void *z, int *cut, void *carry, cudaStream_t s)
{
  if (k % 2) {
    if (k <= 4) Launch_csr_columns<4, 1, V, X>(A, k, x, z, cut, carry, s);
    else if (k <= 8) Launch_csr_columns<8, 1, V, X>(A, k, x, z, cut, carry, s);
    else if (k <= 16) Launch_csr_columns<16, 1, V, X>(A, k, x, z, cut, carry, s);
    else Launch_csr_columns<32, 1, V, X>(A, k, x, z, cut, carry, s);
  } else {
    if (k <= 8) Launch_csr_columns<4, 2, V, X>(A, k, x, z, cut, carry, s);
    else if (k <= 16) Launch_csr_columns<8, 2, V, X>(A, k, x, z, cut, carry, s);
    else Launch_csr_columns<16, 2, V, X>(A, k, x, z, cut, carry, s);
  }
}

GPUCSRError GPUCSRMultRows_CUDA(const GPUCSRStorage *A, int k, const void *x, void *z)
{
  const int64_t stretches = Stretches(A);
  const size_t  carries = (size_t)stretches * (size_t)k * GPUCSRTypeSize(GPUCSRVectorType(A->precision)), bytes = carries + (size_t)stretches * sizeof(int);
  cudaStream_t  s    = (cudaStream_t)A->dev->stream;
  void         *work = NULL;

  if (!A->m || !k) return 0;
  GPUCSRCall(GPUCSRMalloc(A->dev, bytes, "sums of rows that are cut", &work));
#define LAUNCH(V, X) Widest<V, X>(A, k, x, z, (int *)((char *)work + carries), work, s)
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCall(GPUCSRFree(A->dev, bytes, &work));
  GPUCSRCheckLaunch("csr_columns");
  return 0;
}

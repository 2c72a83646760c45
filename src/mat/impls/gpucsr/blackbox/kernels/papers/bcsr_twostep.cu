/*
  y = A x, blocked CSR, in two kernels. The first one has a thread a block, and writes the sums of the block's rows. The second one adds them up, with
  8 threads a block row. The work is balanced for any lengths.

  Bytes: blocked CSR's, 2 r for each block more in sums, n x once at best, m y. Loses by the sums, which go through memory, not registers.

  Paper: X. Zhang et al., GOSpMV.
*/
#include "../product/bcsr.cuh"

/* ACTION(r, c, V, X) for each block size of formatlist.h that is not square */
#define OBLONGS(ACTION, V, X) \
  ACTION(1, 2, V, X) \
  ACTION(1, 3, V, X) \
  ACTION(1, 4, V, X) \
  ACTION(2, 1, V, X) \
  ACTION(2, 3, V, X) \
  ACTION(2, 4, V, X) \
  ACTION(3, 1, V, X) \
  ACTION(3, 2, V, X) \
  ACTION(3, 4, V, X) \
  ACTION(4, 1, V, X) \
  ACTION(4, 2, V, X) \
  ACTION(4, 3, V, X)

template <int BR, int BC, class V, class X>
__global__ void __launch_bounds__(256) bcsr_products_kernel(int64_t lanes, int n, bool wide, const int *__restrict__ col, const V *__restrict__ val, const X *__restrict__ x, X *part)
{
  constexpr int S = BCSR_LANES(BR), R = BR / S, K = R * BC;
  const int64_t l = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  X             xs[BC], sum[R] = {0};
  V             v[K];

  if (l >= lanes) return;
  load_lane<K>(val, (int)l, v);
  load_x<BC>(x, col[l / S], n, wide, xs);
  multiply<R, BC>(v, xs, sum);
#pragma unroll
  for (int i = 0; i < R; i++) part[i * lanes + l] = sum[i];
}

/* A thread group adds part[i][lane s of block b] over the blocks of its block row, for each of its rows in turn */
template <class X>
__global__ void __launch_bounds__(256) bcsr_sums_kernel(int rows, int m, int br, int S, int64_t lanes, const int *__restrict__ rowptr, const X *__restrict__ part, X alpha, X beta, const X *y, X *z)
{
  const int q = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 8), t = (int)threadIdx.x % 8;
  const int begin = q < rows ? rowptr[q] : 0, end = q < rows ? rowptr[q + 1] : 0;

  for (int i = 0; i < br; i++) {
    const int     s   = i * S / br;
    const int64_t r   = (int64_t)q * br + i;
    const X      *p   = part + (i - s * (br / S)) * lanes + s;
    X             sum = 0;

#pragma unroll 4
    for (int b = begin + t; b < end; b += 8) sum += p[(int64_t)b * S];
    sum = reduce<8>(sum);
    if (t == 0 && q < rows && r < m) store(z, y, r, alpha, sum, beta);
  }
}

/* A->work: the sums of each block's rows, with room for doubles */
static GPUCSRError Prepare_bcsr_twostep(GPUCSRStorage *A, int variant)
{
  GPUCSRCall(GPUCSRStorageWork(A, GPUCSR_DOUBLE, (size_t)A->extent.units * GPUCSR_BLOCK_ROWS(A->format->variant) + 1));
  return 0;
}

static GPUCSRError Launch_bcsr_twostep(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int     br = GPUCSR_BLOCK_ROWS(A->format->variant), bc = GPUCSR_BLOCK_COLS(A->format->variant), S = BCSR_LANES(br), rows = (int)A->array[BCSR_ROWPTR].count - 1;
  const int64_t lanes = A->extent.units * S;

#define CASE(R, C, V, X) \
  case GPUCSR_BLOCK(R, C): \
    if (lanes) \
      bcsr_products_kernel<R, C, V, X><<<GPUCSRBlocks(lanes, 256), 256, 0, (cudaStream_t)s>>>(lanes, A->n, WideX(p->x, A->n, bc), (const int *)A->array[BCSR_COL].data, (const V *)A->array[BCSR_VAL].data, (const X *)p->x, (X *)A->work.data); \
    break;
#define LAUNCH(V, X) \
  switch (A->format->variant) { \
    BCSR_SQUARES(CASE, V, X) \
    OBLONGS(CASE, V, X) \
  } \
  bcsr_sums_kernel<X><<<GPUCSRBlocks((int64_t)rows * 8, 256), 256, 0, (cudaStream_t)s>>>(rows, A->m, br, S, lanes, (const int *)A->array[BCSR_ROWPTR].data, (const X *)A->work.data, (X)p->alpha, (X)p->beta, (const X *)p->y, (X *)p->z)
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("bcsr_twostep");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_bcsr_twostep) = {false, Prepare_bcsr_twostep, Launch_bcsr_twostep};

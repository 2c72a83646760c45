/*
  y = A x, CSR, by a segmented scan in four passes over memory: flags at the beginnings of rows, products, the scan, and each row's last entry. A
  baseline of the literature, only by name.

  Bytes: CSR's, and 3 nnz products and 3 nnz flags written and read again: loses everywhere.

  Papers: S. Sengupta, M. Harris, Y. Zhang, J. D. Owens, Scan primitives for GPU computing, Graphics Hardware 2007; G. E. Blelloch, M. A. Heroux, M.
  Zagha, CMU-CS-93-173.
*/
#include "segment.cuh"

#define BLOCK 256
#define ITEMS 8 /* entries a thread */
#define TILE  (BLOCK * ITEMS)

/* A->work, each with room for doubles: the products, a carry for each tile; then a flag for each entry and for each tile */
typedef struct {
  double        *product, *carry;
  unsigned char *flag, *started;
  int64_t        tiles;
} ScanWork;

static ScanWork WorkOf(const GPUCSRStorage *A)
{
  ScanWork w;

  w.tiles   = (A->nnz + TILE - 1) / TILE;
  w.product = (double *)A->work.data;
  w.carry   = w.product + A->nnz;
  w.flag    = (unsigned char *)(w.carry + w.tiles);
  w.started = w.flag + A->nnz;
  return w;
}

static GPUCSRError Prepare_csr_scan(GPUCSRStorage *A, int variant)
{
  const int64_t tiles = (A->nnz + TILE - 1) / TILE;

  GPUCSRCall(GPUCSRStorageWork(A, GPUCSR_DOUBLE, (size_t)(A->nnz + tiles) + (size_t)(A->nnz + tiles + 7) / 8));
  return 0;
}

__global__ void scan_flags_kernel(int m, const int *__restrict__ rowptr, unsigned char *flag)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r < m && rowptr[r] < rowptr[r + 1]) flag[rowptr[r]] = 1;
}

template <class V, class X>
__global__ void scan_products_kernel(int64_t n, const int *__restrict__ col, const V *__restrict__ val, const X *__restrict__ x, X *product)
{
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (k < n) product[k] = X(val[k]) * __ldg(x + col[k]);
}

/* Each tile alone, in place; carry[t], started[t]: its last sum, and whether a row begins in it */
template <class X>
__global__ void __launch_bounds__(BLOCK) scan_tiles_kernel(int64_t n, const unsigned char *__restrict__ flag, X *product, X *carry, unsigned char *started)
{
  const int64_t base = (int64_t)blockIdx.x * TILE + (int64_t)threadIdx.x * ITEMS;
  Segment<X>    mine[ITEMS], sum = {0, false}, all;

#pragma unroll
  for (int u = 0; u < ITEMS; u++) {
    mine[u] = {base + u < n ? product[base + u] : X(0), base + u < n && flag[base + u]};
    sum     = sum + mine[u];
  }
  sum = segment_scan<BLOCK>(sum, &all);
#pragma unroll
  for (int u = 0; u < ITEMS; u++) {
    sum = sum + mine[u];
    if (base + u < n) product[base + u] = sum.sum;
  }
  if (threadIdx.x == 0) {
    carry[blockIdx.x]   = all.sum;
    started[blockIdx.x] = all.started;
  }
}

/* One block: carry[t] = the sum from the tiles before t */
template <class X>
__global__ void __launch_bounds__(BLOCK) scan_carries_kernel(int64_t tiles, X *carry, const unsigned char *__restrict__ started)
{
  Segment<X> before = {0, false}, all;

  for (int64_t base = 0; base < tiles; base += BLOCK) {
    const int64_t    t    = base + threadIdx.x;
    const Segment<X> mine = {t < tiles ? carry[t] : X(0), t < tiles && started[t]}, sum = before + segment_scan<BLOCK>(mine, &all);

    if (t < tiles) carry[t] = sum.sum;
    before = before + all;
    __syncthreads();
  }
}

template <class X>
__global__ void scan_gather_kernel(int first, int last, const int *__restrict__ rowptr, const X *__restrict__ product, const X *__restrict__ carry, X alpha, X beta, const X *y, X *z)
{
  const int r   = first + (int)(blockIdx.x * blockDim.x + threadIdx.x);
  X         sum = 0;

  if (r >= last) return;
  const int begin = rowptr[r], end = rowptr[r + 1];
  if (begin < end) {
    sum = product[end - 1];
    if (begin / TILE < (end - 1) / TILE) sum += carry[(end - 1) / TILE];
  }
  store(z, y, r, alpha, sum, beta);
}

static GPUCSRError Launch_csr_scan(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream st)
{
  const ScanWork w      = WorkOf(A);
  const int     *rowptr = (const int *)A->array[CSR_ROWPTR].data;
  cudaStream_t   s      = (cudaStream_t)st;

#define LAUNCH(V, X) \
  do { \
    if (A->nnz) { \
      GPUCSR_CUDA(cudaMemsetAsync(w.flag, 0, (size_t)A->nnz, s)); \
      scan_flags_kernel<<<GPUCSRBlocks(A->m, 256), 256, 0, s>>>(A->m, rowptr, w.flag); \
      scan_products_kernel<V, X><<<GPUCSRBlocks(A->nnz, 256), 256, 0, s>>>(A->nnz, (const int *)A->array[CSR_COL].data, (const V *)A->array[CSR_VAL].data, (const X *)p->x, (X *)w.product); \
      scan_tiles_kernel<X><<<(unsigned int)w.tiles, BLOCK, 0, s>>>(A->nnz, w.flag, (X *)w.product, (X *)w.carry, w.started); \
      scan_carries_kernel<X><<<1, BLOCK, 0, s>>>(w.tiles, (X *)w.carry, w.started); \
    } \
    scan_gather_kernel<X><<<GPUCSRBlocks(p->last - p->first, 256), 256, 0, s>>>(p->first, p->last, rowptr, (const X *)w.product, (const X *)w.carry, (X)p->alpha, (X)p->beta, (const X *)p->y, (X *)p->z); \
  } while (0)
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("csr_scan");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_csr_scan) = {false, Prepare_csr_scan, Launch_csr_scan};

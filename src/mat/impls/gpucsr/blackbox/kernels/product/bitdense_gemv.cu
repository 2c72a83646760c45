/*
  y = A x, dense with marks at absent entries; and the format filled on the device, and its diagonal.

  A team of 8, 32 or 256 threads takes four rows at once: an entry of x serves four entries of A. Loads are coalesced, with eight in flight for
  each thread. If the rows are too few to fill the device, the columns are cut into parts, and each block takes a part. The last block of a
  group adds the parts in their order, so every run has the same bits.

  Bytes: v m n, n x for every four rows, mostly from the caches, m y. Wins if most entries are there, for any shape.
*/
#include "../device.cuh"
#include "../../format/absent.h"

#define BLOCK   256
#define ROWS    4                   /* of a team */
#define AHEAD   2                   /* columns of a thread in flight, each of ROWS rows */
#define PARTCOL (8 * AHEAD * BLOCK) /* columns of a part at least */

/* The cut of a matrix: threads of a team, columns and number of the parts of a row */
typedef struct {
  int team, columns, parts;
} Shape;

static int Groups(int rows)
{
  return rows / ROWS + (rows % ROWS ? 1 : 0);
}

static Shape ShapeOf(const GPUCSRStorage *A)
{
  const int wanted = 8 * A->dev->props.processors, groups = Groups(A->m); /* blocks */
  Shape     s = {A->n < 24 ? 8 : (A->n < 1024 ? 32 : BLOCK), A->n, 1};

  if (s.team == BLOCK && groups < wanted / 2) {
    s.parts   = GPUCSRMax(1, GPUCSRMin(A->n / PARTCOL, wanted / GPUCSRMax(1, groups)));
    s.columns = (A->n + s.parts - 1) / s.parts;
  }
  return s;
}

/* A->work if rows are cut: a sum for each row and part (room for a double), and a counter for each group */
static GPUCSRError Prepare_bitdense_gemv(GPUCSRStorage *A, int variant)
{
  const Shape  s    = ShapeOf(A);
  const size_t sums = 2 * (size_t)ROWS * (size_t)Groups(A->m) * (size_t)s.parts;

  if (s.parts == 1) return 0;
  GPUCSRCall(GPUCSRStorageWork(A, GPUCSR_INT32, sums + (size_t)Groups(A->m)));
  GPUCSR_CUDA(cudaMemsetAsync((int *)A->work.data + sums, 0, sizeof(int) * (size_t)Groups(A->m), (cudaStream_t)A->dev->stream));
  return 0;
}

template <int T, class V, class X>
__global__ void __launch_bounds__(BLOCK) bitdense_gemv_kernel(int first, int last, int n, int columns, const V *__restrict__ val, X *partial, int *counter, X alpha, const X *__restrict__ x, X beta, const X *y, X *z)
{
  after_previous();
  constexpr int LANES = T < 32 ? T : 32;
  const int     lane  = (int)threadIdx.x % T;
  const int     group = (int)(blockIdx.x * (BLOCK / T) + threadIdx.x / T);
  const int     c0 = (int)blockIdx.y * columns, c1 = min(n, c0 + columns), parts = (int)gridDim.y;
  const int64_t r0 = first + (int64_t)ROWS * group;
  const V      *row[ROWS];
  X             sum[ROWS] = {};

#pragma unroll
  for (int r = 0; r < ROWS; r++) row[r] = val + (r0 + r < last ? r0 + r : (int64_t)first) * n; /* a row past the end computes another row, and does not store it */
  if (r0 < last) {
    for (int c = c0 + lane; c < c1; c += T * AHEAD) {
      V v[AHEAD][ROWS];
      X xc[AHEAD];

#pragma unroll
      for (int u = 0; u < AHEAD; u++) {
        const bool there = c + u * T < c1;

#pragma unroll
        for (int r = 0; r < ROWS; r++) v[u][r] = there ? streamed(row[r] + c + u * T) : absent<V>();
        xc[u] = there ? __ldg(x + c + u * T) : X(0);
      }
#pragma unroll
      for (int u = 0; u < AHEAD; u++)
#pragma unroll
        for (int r = 0; r < ROWS; r++)
          if (!is_absent(v[u][r])) sum[r] += X(v[u][r]) * xc[u];
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; r++) sum[r] = reduce<LANES>(sum[r]);
  if (T < BLOCK) {
    if (lane) return;
#pragma unroll
    for (int r = 0; r < ROWS; r++)
      if (r0 + r < last) store(z, y, r0 + r, alpha, sum[r], beta);
    return;
  }

  __shared__ X part[BLOCK / 32][ROWS];
  const int    mine  = (int)threadIdx.x;
  X            total = 0;

  if (mine % 32 == 0) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) part[mine / 32][r] = sum[r];
  }
  __syncthreads();
  if (mine < ROWS) {
    for (int w = 0; w < BLOCK / 32; w++) total += part[w][mine];
    if (parts > 1) partial[((int64_t)group * parts + blockIdx.y) * ROWS + mine] = total;
  }
  if (parts > 1) {
    if (!last_block(counter + group, parts)) return;
    if (mine < ROWS) {
      total = 0;
#pragma unroll 8
      for (int q = 0; q < parts; q++) total += __ldcg(partial + ((int64_t)group * parts + q) * ROWS + mine);
    }
  }
  if (mine < ROWS && r0 + mine < last) store(z, y, r0 + mine, alpha, total, beta);
}

static GPUCSRError Launch_bitdense_gemv(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const Shape shape = ShapeOf(A);
  const dim3  grid(GPUCSRBlocks((int64_t)Groups(p->last - p->first) * shape.team, BLOCK), (unsigned int)shape.parts);
  int        *counter = shape.parts > 1 ? (int *)A->work.data + 2 * (size_t)ROWS * (size_t)Groups(A->m) * (size_t)shape.parts : NULL;

#define LAUNCHT(T, V, X) \
  case T: \
    launch_after(bitdense_gemv_kernel<T, V, X>, grid, BLOCK, 0, s, p->first, p->last, A->n, shape.columns, (const V *)A->array[0].data, (X *)A->work.data, counter, (X)p->alpha, (const X *)p->x, (X)p->beta, (const X *)p->y, (X *)p->z); \
    break
#define LAUNCH(V, X) \
  switch (shape.team) { \
    LAUNCHT(8, V, X); \
    LAUNCHT(32, V, X); \
    LAUNCHT(BLOCK, V, X); \
  }
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("bitdense_gemv");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_bitdense_gemv) = {true, Prepare_bitdense_gemv, Launch_bitdense_gemv};

/* 32 threads for a row and each block of the grid's second direction */
template <class V>
__global__ void bitdense_fill_kernel(int m, int n, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ from, V *to)
{
  const int r = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32);

  if (r >= m) return;
  for (int64_t k = rowptr[r] + (int64_t)(32 * blockIdx.y + threadIdx.x % 32); k < rowptr[r + 1]; k += 32 * gridDim.y) to[(size_t)r * (size_t)n + (size_t)col[k]] = present(from[k]);
}

template <class V, class X>
__global__ void bitdense_diagonal_kernel(int n, size_t stride, const V *__restrict__ val, X *d)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r < n) d[r] = is_absent(val[(size_t)r * stride]) ? X(0) : X(val[(size_t)r * stride]);
}

static GPUCSRError Fill_BitDense_CUDA(const GPUCSRStorage *csr, GPUCSRStorage *A, GPUCSRBool valuesonly, GPUCSRStream s)
{
  if (!valuesonly) GPUCSR_CUDA(cudaMemsetAsync(A->array[0].data, GPUCSR_ABSENT, A->array[0].count * GPUCSRTypeSize(A->array[0].type), (cudaStream_t)s));
  if (!A->m) return 0;
#define FILL(V, X) \
  bitdense_fill_kernel<V><<<dim3(GPUCSRBlocks((int64_t)A->m * 32, 256), (unsigned int)GPUCSRMin(A->n / 1024 + 1, 65535)), 256, 0, (cudaStream_t)s>>>(A->m, A->n, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, \
                                                                                                                                                     (const V *)csr->array[CSR_VAL].data, (V *)A->array[0].data)
  GPUCSRDispatchPrecision(A->precision, FILL);
  GPUCSRCheckLaunch("bitdense_gemv (fill)");
  return 0;
}

static GPUCSRError Diagonal_BitDense_CUDA(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  const int n = GPUCSRMin(A->m, A->n);

  if (!n) return 0;
#define DIAGONAL(V, X) bitdense_diagonal_kernel<V, X><<<GPUCSRBlocks(n, 256), 256, 0, (cudaStream_t)s>>>(n, (size_t)A->n + 1, (const V *)A->array[0].data, (X *)d)
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
  GPUCSRCheckLaunch("bitdense_gemv (diagonal)");
  return 0;
}

/* the place of a value depends on the pattern */
GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_bitdense) = {NULL, Fill_BitDense_CUDA, Diagonal_BitDense_CUDA, true};

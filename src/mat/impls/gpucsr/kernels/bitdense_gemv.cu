/*
  y = A x, dense with marks at absent entries; and the format filled on the device, and its diagonal.

  A team of 8, 32 or 256 threads takes four rows at once, so that an entry of x serves four entries of A, and reads them coalesced,
  eight in flight a thread. Where there are too few rows to fill the device, a row's columns are cut into parts, a block each;
  the last of a group's blocks to finish adds the parts in their order, so the result is the same every time.

  Bytes: v m n, n x for every four rows, mostly from the caches, m y. Wins where most entries are there, whatever the shape.
*/
#include "device.cuh"

#define BLOCK   256
#define PARTCOL 2048 /* columns of a part at least */
#define NARROW  24   /* columns below which 8 threads do */
#define WIDE    1024 /* columns from which on a whole block does */

#define THREADS(T) ((T) > 32 ? (T) : BLOCK) /* of a block of teams of T */

/* How a matrix is cut: threads a team, its rows, columns and number of the parts of a row */
typedef struct {
  int team, rows, columns, parts;
} Shape;

static int Groups(int m, int rows)
{
  return m / rows + (m % rows ? 1 : 0);
}

static Shape ShapeOf(const GPUCSRStorage *A, int variant)
{
  const int wanted = 16 * A->dev->props.processors; /* blocks */
  Shape     s      = {A->n < NARROW ? 8 : (A->n < WIDE ? 32 : (variant == 3 ? 128 : 256)), 4, A->n, 1};

  if (variant == 2) s.rows = s.team > 32 ? 2 : 4;
  if (s.team > 32 && Groups(A->m, s.rows) < wanted / 4) {
    s.parts   = PetscMax(1, PetscMin(A->n / PARTCOL, wanted / PetscMax(1, Groups(A->m, s.rows))));
    s.columns = (A->n + s.parts - 1) / s.parts;
  }
  return s;
}

/* A->work, where rows are cut: a sum for each row and part (room for a double), and a counter a group */
static size_t Sums(const GPUCSRStorage *A, Shape s)
{
  return (size_t)s.rows * (size_t)Groups(A->m, s.rows) * (size_t)s.parts;
}

static PetscErrorCode Prepare(GPUCSRStorage *A, int variant)
{
  const Shape  s      = ShapeOf(A, variant);
  const size_t groups = (size_t)Groups(A->m, s.rows);

  PetscFunctionBegin;
  if (s.parts == 1) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRStorageWork(A, GPUCSR_INT32, 2 * Sums(A, s) + groups));
  GPUCSR_CUDA(cudaMemsetAsync((double *)A->work.data + Sums(A, s), 0, sizeof(int) * groups, (cudaStream_t)A->dev->stream));
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Columns c, c + T, ... of R rows, U of each in flight: those that are there */
template <int T, int R, int U, bool WHOLE, class V, class X>
__device__ __forceinline__ void columns(int c, int end, const V *const (&row)[R], const X *__restrict__ x, X (&sum)[R])
{
  V v[U][R];
  X xc[U];

#pragma unroll
  for (int u = 0; u < U; u++) {
    const bool there = WHOLE || c + u * T < end;

#pragma unroll
    for (int r = 0; r < R; r++) v[u][r] = there ? streamed(row[r] + c + u * T) : absent<V>();
    xc[u] = there ? __ldg(x + c + u * T) : X(0);
  }
#pragma unroll
  for (int u = 0; u < U; u++)
#pragma unroll
    for (int r = 0; r < R; r++)
      if (!is_absent(v[u][r])) sum[r] += X(v[u][r]) * xc[u];
}

template <int T, int R, int U, class V, class X>
__global__ void __launch_bounds__(THREADS(T)) bitdense_gemv_kernel(int first, int last, int n, int most, const V *__restrict__ val, X *partial, int *counter, X alpha, const X *__restrict__ x, X beta, const X *y, X *z)
{
  constexpr int TEAMS = T > 32 ? 1 : BLOCK / T;
  const int     lane = (int)threadIdx.x % T, group = (int)(blockIdx.x * TEAMS + threadIdx.x / T), parts = (int)gridDim.y;
  const int     c1 = (int)min((int64_t)n, (int64_t)(blockIdx.y + 1) * most);
  const int64_t r0 = first + (int64_t)R * group;
  const V      *row[R];
  X             sum[R] = {};
  int           c      = (int)blockIdx.y * most + lane;

#pragma unroll
  for (int r = 0; r < R; r++) row[r] = val + (r0 + r < last ? r0 + r : (int64_t)first) * n; /* a row past the end is another, not stored */
  if (r0 < last) {
    for (; c < c1 - (U - 1) * T; c += U * T) columns<T, R, U, true>(c, c1, row, x, sum);
    if (c < c1) columns<T, R, U, false>(c, c1, row, x, sum);
  }
#pragma unroll
  for (int r = 0; r < R; r++) sum[r] = reduce < T < 32 ? T : 32 > (sum[r]);
  if (T <= 32) {
    if (lane) return;
#pragma unroll
    for (int r = 0; r < R; r++)
      if (r0 + r < last) store(z, y, r0 + r, alpha, sum[r], beta);
    return;
  }

  constexpr int   WARPS = T > 32 ? T / 32 : 1;
  __shared__ X    part[WARPS][R];
  __shared__ bool finished;
  const int       mine  = (int)threadIdx.x;
  X               total = 0;

  if (mine % 32 == 0) {
#pragma unroll
    for (int r = 0; r < R; r++) part[mine / 32][r] = sum[r];
  }
  __syncthreads();
  if (mine < R) {
    for (int w = 0; w < WARPS; w++) total += part[w][mine];
    if (parts > 1) {
      partial[((int64_t)group * parts + blockIdx.y) * R + mine] = total;
      __threadfence();
    }
  }
  if (parts > 1) {
    __syncthreads();
    if (mine == 0) finished = atomicAdd(counter + group, 1) == parts - 1;
    __syncthreads();
    if (!finished) return;
    __threadfence();
    if (mine < R) {
      total = 0;
#pragma unroll 8
      for (int q = 0; q < parts; q++) total += __ldcg(partial + ((int64_t)group * parts + q) * R + mine);
    }
    if (mine == 0) counter[group] = 0;
  }
  if (mine < R && r0 + mine < last) store(z, y, r0 + mine, alpha, total, beta);
}

static PetscErrorCode Launch(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const Shape shape  = ShapeOf(A, variant);
  const int   groups = Groups(p->last - p->first, shape.rows);
  const dim3  grid(shape.team > 32 ? (unsigned int)groups : GPUCSRBlocks((int64_t)groups * shape.team, BLOCK), (unsigned int)shape.parts);
  int        *counter = shape.parts > 1 ? (int *)((double *)A->work.data + Sums(A, shape)) : NULL;

  PetscFunctionBegin;
#define LAUNCHT(T, R, U, V, X) \
  bitdense_gemv_kernel<T, R, U, V, X><<<grid, THREADS(T), 0, (cudaStream_t)s>>>(p->first, p->last, A->n, shape.columns, (const V *)A->array[0].data, (X *)A->work.data, counter, (X)p->alpha, (const X *)p->x, (X)p->beta, (const X *)p->y, (X *)p->z)
#define LAUNCH(V, X) \
  if (shape.team == 8) LAUNCHT(8, 4, 2, V, X); \
  else if (shape.team == 32) LAUNCHT(32, 4, 2, V, X); \
  else if (variant == 0) LAUNCHT(256, 4, 2, V, X); \
  else if (variant == 1) LAUNCHT(256, 4, 4, V, X); \
  else if (variant == 2) LAUNCHT(256, 2, 4, V, X); \
  else LAUNCHT(128, 4, 4, V, X)
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("bitdense_gemv");
  PetscFunctionReturn(PETSC_SUCCESS);
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_bitdense_gemv) = {PETSC_TRUE, NULL, Prepare, Launch, NULL};

/* 32 threads a row for each block of the grid's second direction */
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

static PetscErrorCode Fill(const GPUCSRStorage *csr, GPUCSRStorage *A, PetscBool valuesonly, GPUCSRStream s)
{
  PetscFunctionBegin;
  if (!valuesonly) GPUCSR_CUDA(cudaMemsetAsync(A->array[0].data, 255, A->array[0].count * GPUCSRTypeSize(A->array[0].type), (cudaStream_t)s));
  if (!A->m) PetscFunctionReturn(PETSC_SUCCESS);
#define FILL(V, X) \
  bitdense_fill_kernel<V><<<dim3(GPUCSRBlocks((int64_t)A->m * 32, 256), (unsigned int)PetscMin(A->n / 1024 + 1, 65535)), 256, 0, (cudaStream_t)s>>>(A->m, A->n, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, \
                                                                                                                                                    (const V *)csr->array[CSR_VAL].data, (V *)A->array[0].data)
  GPUCSRDispatchPrecision(A->precision, FILL);
  GPUCSRCheckLaunch("bitdense_gemv (fill)");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diagonal(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  const int n = PetscMin(A->m, A->n);

  PetscFunctionBegin;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
#define DIAGONAL(V, X) bitdense_diagonal_kernel<V, X><<<GPUCSRBlocks(n, 256), 256, 0, (cudaStream_t)s>>>(n, (size_t)A->n + 1, (const V *)A->array[0].data, (X *)d)
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
  GPUCSRCheckLaunch("bitdense_gemv (diagonal)");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* without its pattern CSR does not say where a value goes */
GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_bitdense) = {NULL, Fill, Diagonal, PETSC_TRUE};

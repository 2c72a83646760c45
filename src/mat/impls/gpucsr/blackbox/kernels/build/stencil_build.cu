/*
  The stencil format filled on the device from CSR there, its diagonal, and the inspector's search for all stencils.

  8 or 32 threads look up a row in a hash table (stencil.cuh). A team first compares with the stencil of its last row: if most rows are alike, it
  reads CSR once and nothing else. New values come from the first row of each stencil, and all rows are compared with it.
*/
#include "../product/stencil.cuh"
#include "scan.cuh"
#include <cub/block/block_scan.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#define BLOCK    256
#define SEEDS    2048
#define NUMBERER 1024 /* threads of the one numbering block */
#define EACH     ((STENCIL_MOST + NUMBERER) / NUMBERER)

/* Rows 0, step, 2 step, ...; id: the place of each row's stencil in the table; notfirst: INT_MAX - the first row of each place; both or none */
template <int G, class V>
__global__ void __launch_bounds__(BLOCK) stencil_find_kernel(int rows, int step, StencilRows<V> a, StencilCount *count, int *slot, int *notfirst, unsigned short *id)
{
  int at = -1, like = 0;

  if (count->entries > STENCIL_MOST) return; /* an earlier launch */
  for (int64_t k = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / G; k < rows; k += (int64_t)gridDim.x * BLOCK / G) {
    const int r = (int)k * step;

    if (at < 0 || !stencil_same<G>(a, r, like)) {
      at = stencil_find<G>(a, r, count, slot, &like);
      if (at < 0) return;
      if (notfirst && threadIdx.x % G == 0 && notfirst[at] < INT_MAX - r) atomicMax(notfirst + at, INT_MAX - r);
    }
    if (id && threadIdx.x % G == 0) id[r] = (unsigned short)at;
  }
}

template <int G, class V>
static void find(int rows, int step, const GPUCSRStorage *csr, StencilCount *count, int *slot, int *notfirst, unsigned short *id, cudaStream_t s)
{
  const StencilRows<V> a      = {(const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, (const V *)csr->array[CSR_VAL].data};
  const unsigned int   blocks = GPUCSRMin(GPUCSRBlocks((int64_t)rows * G, BLOCK), (unsigned int)(csr->dev->props.processors * (2048 / BLOCK)));

  stencil_find_kernel<G, V><<<blocks, BLOCK, 0, s>>>(rows, step, a, count, slot, notfirst, id);
}

/* All rows of csr into a table, which may have rows already; see the kernel */
GPUCSRError GPUCSRFindStencils(const GPUCSRStorage *csr, int rows, int step, void *count, int *slot, int *notfirst, unsigned short *id, GPUCSRStream st)
{
  if (!rows) return 0;
#define FIND(V, X) \
  if ((double)csr->nnz >= GPUCSRMachineShared.stencil_warp * csr->m) find<32, V>(rows, step, csr, (StencilCount *)count, slot, notfirst, id, (cudaStream_t)st); \
  else find<8, V>(rows, step, csr, (StencilCount *)count, slot, notfirst, id, (cudaStream_t)st)
  GPUCSRDispatchPrecision(csr->precision, FIND);
  GPUCSRCheckLaunch("stencil_build (find)");
  return 0;
}

/* Temporary device data of a fill */
typedef struct {
  StencilCount   count;
  int            slot[STENCIL_SLOTS], notfirst[STENCIL_SLOTS];
  unsigned short number[STENCIL_SLOTS]; /* of the stencil at each place */
} Table;

/* Numbers stencils by their first rows, and finds the beginning of each one's entries: one block */
__global__ void __launch_bounds__(NUMBERER) stencil_number_kernel(Table *t, const int *__restrict__ rowptr, int units, int *row, int *begin)
{
  typedef cub::BlockScan<int, NUMBERER> Scan;
  __shared__ typename Scan::TempStorage temp;
  __shared__ int                        first[STENCIL_MOST];
  __shared__ unsigned short             place[STENCIL_MOST];
  __shared__ int                        n;
  int                                   length[EACH];

  if (threadIdx.x == 0) n = 0;
  __syncthreads();
  for (int s = (int)threadIdx.x; s < STENCIL_SLOTS; s += NUMBERER)
    if (t->slot[s]) {
      const int k = atomicAdd(&n, 1); /* in any order, ranked below */

      if (k < units) {
        first[k] = INT_MAX - t->notfirst[s];
        place[k] = (unsigned short)s;
      }
    }
  __syncthreads();
  for (int k = (int)threadIdx.x; k < units; k += NUMBERER) {
    int rank = 0;

    for (int j = 0; j < units; j++) rank += first[j] < first[k];
    row[rank]           = first[k];
    t->number[place[k]] = (unsigned short)rank;
  }
  __syncthreads();
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    const int u = (int)threadIdx.x * EACH + e;

    length[e] = u < units ? rowptr[row[u] + 1] - rowptr[row[u]] : 0;
  }
  Scan(temp).ExclusiveSum(length, length);
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if ((int)threadIdx.x * EACH + e <= units) begin[threadIdx.x * EACH + e] = length[e];
}

__global__ void __launch_bounds__(BLOCK) stencil_id_kernel(int m, const unsigned short *__restrict__ number, unsigned short *id)
{
  const int64_t r = (int64_t)blockIdx.x * BLOCK + threadIdx.x;

  if (r < m) id[r] = number[id[r]];
}

/* One warp for each stencil: its entries from its first row */
template <class V>
__global__ void __launch_bounds__(BLOCK) stencil_dictionary_kernel(int units, const int *__restrict__ row, const int *__restrict__ begin, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ from, int *offset, V *val)
{
  const int u = (int)(blockIdx.x * BLOCK + threadIdx.x) / 32;

  if (u >= units) return;
  for (int k = (int)threadIdx.x % 32; k < begin[u + 1] - begin[u]; k += 32) {
    const int e = rowptr[row[u]] + k;

    if (offset) offset[begin[u] + k] = col[e] - row[u];
    val[begin[u] + k] = from[e];
  }
}

/* Does every row have the values of its stencil? */
template <class V>
__global__ void __launch_bounds__(BLOCK) stencil_check_kernel(int m, const unsigned short *__restrict__ id, const int *__restrict__ begin, const V *__restrict__ val, const int *__restrict__ rowptr, const V *__restrict__ from, int *differ)
{
  const int64_t r = ((int64_t)blockIdx.x * BLOCK + threadIdx.x) / 8;

  if (r >= m) return;
  const int first = begin[id[r]], length = begin[id[r] + 1] - first, of = rowptr[r];
  bool      same = true;

#pragma unroll 4
  for (int k = (int)threadIdx.x % 8; k < length; k += 8) same = same & (stencil_bits(val[first + k]) == stencil_bits(from[of + k]));
  if (!same) *differ = 1;
}

template <class V, class X>
__global__ void __launch_bounds__(BLOCK) stencil_diagonal_kernel(int n, const unsigned short *__restrict__ id, const int *__restrict__ begin, const int *__restrict__ offset, const V *__restrict__ val, X *d)
{
  const int r = (int)(blockIdx.x * BLOCK + threadIdx.x);
  X         v = 0;

  if (r >= n) return;
  for (int k = begin[id[r]]; k < begin[id[r] + 1]; k++)
    if (offset[k] == 0) v = X(val[k]);
  d[r] = v;
}

/* Entries of a row; 0 behind the last one */
struct Length {
  int                   m;
  const unsigned short *id;
  const int            *begin;
  __device__ int        operator()(int r) const
  {
    return r < m ? begin[id[r] + 1] - begin[id[r]] : 0;
  }
};

/* CSR's row pointers, for new values */
static GPUCSRError RowPointers(const GPUCSRStorage *A, int *rowptr, cudaStream_t s)
{
  const Length length = {A->m, (const unsigned short *)A->array[STENCIL_ID].data, (const int *)A->array[STENCIL_BEGIN].data};

  GPUCSRCall(GPUCSRSumsBefore(A->dev, thrust::make_transform_iterator(thrust::counting_iterator<int>(0), length), rowptr, A->m + 1, s));
  return 0;
}

static GPUCSRError Dictionary(const GPUCSRStorage *csr, const GPUCSRStorage *A, const int *rowptr, GPUCSRBool valuesonly, cudaStream_t s)
{
  const unsigned int blocks = GPUCSRBlocks(32 * A->extent.units, BLOCK);

#define DICTIONARY(V, X) \
  stencil_dictionary_kernel<V><<<blocks, BLOCK, 0, s>>>((int)A->extent.units, (const int *)A->array[STENCIL_ROW].data, (const int *)A->array[STENCIL_BEGIN].data, rowptr, (const int *)csr->array[CSR_COL].data, (const V *)csr->array[CSR_VAL].data, \
                                                        valuesonly ? NULL : (int *)A->array[STENCIL_OFFSET].data, (V *)A->array[STENCIL_VAL].data)
  GPUCSRDispatchPrecision(A->precision, DICTIONARY);
  GPUCSRCheckLaunch("stencil_build (dictionary)");
  return 0;
}

static GPUCSRError Pattern(const GPUCSRStorage *csr, GPUCSRStorage *A, Table *t, cudaStream_t s)
{
  const int      *rowptr = (const int *)csr->array[CSR_ROWPTR].data;
  unsigned short *id     = (unsigned short *)A->array[STENCIL_ID].data;

  GPUCSR_CUDA(cudaMemsetAsync(t, 0, sizeof(*t), s));
  /* frequent stencils first, so that all later teams find them */
  GPUCSRCall(GPUCSRFindStencils(csr, GPUCSRMin(A->m, SEEDS), GPUCSRMax(1, A->m / SEEDS), &t->count, t->slot, NULL, NULL, s));
  GPUCSRCall(GPUCSRFindStencils(csr, A->m, 1, &t->count, t->slot, t->notfirst, id, s));
  stencil_number_kernel<<<1, NUMBERER, 0, s>>>(t, rowptr, (int)A->extent.units, (int *)A->array[STENCIL_ROW].data, (int *)A->array[STENCIL_BEGIN].data);
  stencil_id_kernel<<<GPUCSRBlocks(A->m, BLOCK), BLOCK, 0, s>>>(A->m, t->number, id);
  GPUCSRCheckLaunch("stencil_build (numbers)");
  GPUCSRCall(Dictionary(csr, A, rowptr, false, s));
  return 0;
}

/* differ, and behind it the row pointers */
static GPUCSRError Values(const GPUCSRStorage *csr, GPUCSRStorage *A, int *differ, cudaStream_t s)
{
  int    *rowptr = differ + 1;
  int32_t found  = 0;

  GPUCSR_CUDA(cudaMemsetAsync(differ, 0, sizeof(int), s));
  GPUCSRCall(RowPointers(A, rowptr, s));
  GPUCSRCall(Dictionary(csr, A, rowptr, true, s));
#define CHECK(V, X) \
  stencil_check_kernel<V> \
    <<<GPUCSRBlocks(8 * (int64_t)A->m, BLOCK), BLOCK, 0, s>>>(A->m, (const unsigned short *)A->array[STENCIL_ID].data, (const int *)A->array[STENCIL_BEGIN].data, (const V *)A->array[STENCIL_VAL].data, rowptr, (const V *)csr->array[CSR_VAL].data, differ)
  GPUCSRDispatchPrecision(A->precision, CHECK);
  GPUCSRCheckLaunch("stencil_build (check)");
  GPUCSRCall(GPUCSRDownload(A->dev, &found, GPUCSR_INT32, differ, GPUCSR_INT32, 1, false, (GPUCSRStream)s));
  A->outdated = found ? true : false;
  return 0;
}

static GPUCSRError Fill_Stencil_CUDA(const GPUCSRStorage *csr, GPUCSRStorage *A, GPUCSRBool valuesonly, GPUCSRStream st)
{
  const size_t bytes = valuesonly ? sizeof(int) * ((size_t)A->m + 2) : sizeof(Table);
  void        *temp  = NULL;
  GPUCSRError  ierr;

  if (!A->m) {
    GPUCSR_CUDA(cudaMemsetAsync(A->array[STENCIL_BEGIN].data, 0, sizeof(int), (cudaStream_t)st));
    return 0;
  }
  GPUCSRCall(GPUCSRMalloc(A->dev, bytes, "a search for rows that are alike", &temp));
  if (valuesonly) ierr = Values(csr, A, (int *)temp, (cudaStream_t)st);
  else ierr = Pattern(csr, A, (Table *)temp, (cudaStream_t)st);
  GPUCSRCall(GPUCSRFree(A->dev, bytes, &temp));
  GPUCSRCall(ierr);
  return 0;
}

static GPUCSRError Diagonal_Stencil_CUDA(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  const int n = GPUCSRMin(A->m, A->n);

  if (!n) return 0;
#define DIAGONAL(V, X) \
  stencil_diagonal_kernel<V, X> \
    <<<GPUCSRBlocks(n, BLOCK), BLOCK, 0, (cudaStream_t)s>>>(n, (const unsigned short *)A->array[STENCIL_ID].data, (const int *)A->array[STENCIL_BEGIN].data, (const int *)A->array[STENCIL_OFFSET].data, (const V *)A->array[STENCIL_VAL].data, (X *)d)
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
  GPUCSRCheckLaunch("stencil_build (diagonal)");
  return 0;
}

GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_stencil) = {NULL, Fill_Stencil_CUDA, Diagonal_Stencil_CUDA, false};

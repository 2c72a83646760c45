/*
  The diagonal format filled on the device from CSR there, and its diagonal.

  Every entry marks its offset, and one block lists the marked diagonals, once for the extent and the offsets. Then four warps for each slice put the
  entries in their places, which are neighbours if the rows are alike.
*/
#include "../device.cuh"
#include "../../format/absent.h"
#include "../../format/dia.h"
#include <cub/block/block_scan.cuh>

#define FILL_WARPS 4
#define LISTER     1024 /* threads of the listing block, */
#define EACH       64   /* and marks that each reads at once, a multiple of 16 */
#define MOST       8192 /* diagonals kept for fill(), which lists larger numbers again */

/* seen[column - row + m - 1] = 1: 8 threads for a row. Reads before it writes, since all rows mark the same few places */
__global__ void dia_seen_kernel(int m, const int *__restrict__ rowptr, const int *__restrict__ col, unsigned char *seen)
{
  const int r = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 8);

  if (r >= m) return;
  for (int k = rowptr[r] + (int)(threadIdx.x % 8); k < rowptr[r + 1]; k += 8) {
    unsigned char *mark = seen + ((int64_t)col[k] - r + m - 1);

    if (!*mark) *mark = 1;
  }
}

/* list[0] = the number of diagonals, then the first MOST of their offsets, ascending. Behind the n marks are zeros */
__global__ void __launch_bounds__(LISTER) dia_list_kernel(int64_t n, int m, const unsigned char *__restrict__ seen, int most, int *list)
{
  typedef cub::BlockScan<int, LISTER>   Scan;
  __shared__ typename Scan::TempStorage temp;
  int                                   found = 0;

  for (int64_t base = 0; base < n; base += LISTER * EACH) {
    const int64_t first = base + (int64_t)threadIdx.x * EACH;
    unsigned int  word[EACH / 4];
    int           mine = 0, before, all;

#pragma unroll
    for (int k = 0; k < EACH; k += 16) {
      const uint4 marks = first + k < n ? *(const uint4 *)(seen + first + k) : make_uint4(0, 0, 0, 0);

      word[k / 4]     = marks.x;
      word[k / 4 + 1] = marks.y;
      word[k / 4 + 2] = marks.z;
      word[k / 4 + 3] = marks.w;
    }
#pragma unroll
    for (int k = 0; k < EACH / 4; k++) mine += __popc(word[k]);
    if (!__syncthreads_or(mine)) continue; /* most are not marked */
    Scan(temp).ExclusiveSum(mine, before, all);
    if (mine) {
      int to = found + before;

#pragma unroll
      for (int k = 0; k < EACH / 4; k++)
        for (unsigned int left = word[k]; left; left &= left - 1, to++)
          if (to < most) list[1 + to] = (int)(first + 4 * k) + (__ffs(left) - 1) / 8 + 1 - m;
    }
    found += all;
  }
  if (threadIdx.x == 0) list[0] = found;
}

/* list: the offsets; NULL: the format has its offsets, and new values replace the old ones */
template <class V>
__global__ void __launch_bounds__(FILL_WARPS *GPUCSR_SLICE) dia_fill_kernel(int m, int diagonals, const int *__restrict__ list, int *own, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ from, V *to)
{
  const int  r      = (int)(blockIdx.x * GPUCSR_SLICE + threadIdx.x);
  const int *offset = list ? list : own;

  if (list) {
    for (int64_t d = (int64_t)blockIdx.x * FILL_WARPS * GPUCSR_SLICE + threadIdx.y * GPUCSR_SLICE + threadIdx.x; d < diagonals; d += (int64_t)gridDim.x * FILL_WARPS * GPUCSR_SLICE) own[d] = list[d];
    for (int d = (int)threadIdx.y; d < diagonals; d += FILL_WARPS) to[DIAEntry(diagonals, r, d)] = absent<V>();
    __syncthreads();
  }
  if (r >= m) return;
  for (int k = rowptr[r] + (int)threadIdx.y; k < rowptr[r + 1]; k += FILL_WARPS) to[DIAEntry(diagonals, r, DIAFind(offset, diagonals, col[k] - r))] = present(from[k]);
}

/* The order without pairs. paired: each diagonal below the main one has the number of its opposite, if there is one */
__global__ void dia_order_kernel(int diagonals, bool paired, const int *__restrict__ offset, GPUCSRDiagonal *order)
{
  const int d = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (!d) order[diagonals].offset = diagonals;
  if (d >= diagonals) return;
  const int above = paired && offset[d] < 0 ? DIAFind(offset, diagonals, -offset[d]) : d;

  order[d] = {offset[d], above != d && offset[above] == -offset[d] ? above : -1 - d};
}

/* An entry whose bits differ from those of its mirrored entry ends a pair */
__global__ void __launch_bounds__(FILL_WARPS *GPUCSR_SLICE) dia_part_kernel(int m, int diagonals, const double *__restrict__ val, volatile GPUCSRDiagonal *order)
{
  const int r = (int)(blockIdx.x * GPUCSR_SLICE + threadIdx.x);

  if (r >= m) return;
  for (int d = (int)threadIdx.y; d < diagonals; d += FILL_WARPS) {
    const int above = order[d].number, c = r + order[d].offset;

    if (above >= 0 && c >= 0 && __double_as_longlong(val[DIAEntry(diagonals, r, d)]) != __double_as_longlong(val[DIAEntry(diagonals, c, above)])) order[d].number = -1 - d;
  }
}

/* The order with pairs, by one thread: there are few diagonals */
__global__ void dia_pair_kernel(int diagonals, GPUCSRDiagonal *order)
{
  __shared__ GPUCSRDiagonal own[DIA_MOST_PAIRED];
  __shared__ bool           paired[DIA_MOST_PAIRED];
  int                       count = 0;

  for (int d = 0; d < diagonals; d++) {
    own[d]    = order[d];
    paired[d] = false;
  }
  for (int d = 0; d < diagonals; d++)
    if (own[d].number >= 0) paired[own[d].number] = true;
  for (int d = 0; d < diagonals; d++) {
    if (paired[d]) continue;
    if (own[d].number >= 0) own[d].offset = -own[d].offset;
    order[count++] = own[d];
  }
  order[diagonals].offset = count;
}

template <class V, class X>
__global__ void dia_diagonal_kernel(int n, int diagonals, const int *__restrict__ offset, const V *__restrict__ val, X *d)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x), main = DIAFind(offset, diagonals, 0);
  X         v = 0;

  if (r >= n) return;
  if (diagonals && offset[main] == 0 && !is_absent(val[DIAEntry(diagonals, r, main)])) v = X(val[DIAEntry(diagonals, r, main)]);
  d[r] = v;
}

/* The number of diagonals, and up to most of their offsets, into list; one byte marks each possible diagonal */
static GPUCSRError List(const GPUCSRStorage *csr, int most, int *list, cudaStream_t s)
{
  const int64_t  n     = (int64_t)csr->m + csr->n;
  const size_t   bytes = (size_t)n + 16;
  unsigned char *seen  = NULL;

  GPUCSRCall(GPUCSRMalloc(csr->dev, bytes, "marks of diagonals", (void **)&seen));
  (void)cudaMemsetAsync(seen, 0, bytes, s);
  dia_seen_kernel<<<GPUCSRBlocks((int64_t)csr->m * 8, 256), 256, 0, s>>>(csr->m, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, seen);
  dia_list_kernel<<<1, LISTER, 0, s>>>(n, csr->m, seen, most, list);
  GPUCSRCall(GPUCSRFree(csr->dev, bytes, (void **)&seen));
  GPUCSRCheckLaunch("dia_build (diagonals)");
  return 0;
}

static GPUCSRError Measure_DIA_CUDA(GPUCSRStorage *csr, int variant, GPUCSRExtent *e, GPUCSRStream st)
{
  int32_t count = 0;

  if (!csr->m) return 0;
  GPUCSRCall(GPUCSRStorageWork(csr, GPUCSR_INT32, 1 + MOST));
  GPUCSRCall(List(csr, MOST, (int *)csr->work.data, (cudaStream_t)st));
  GPUCSRCall(GPUCSRDownload(csr->dev, &count, GPUCSR_INT32, csr->work.data, GPUCSR_INT32, 1, false, st));
  e->units  = count;
  e->stored = ((int64_t)csr->m + GPUCSR_SLICE - 1) / GPUCSR_SLICE * GPUCSR_SLICE * e->units;
  return 0;
}

static GPUCSRError Entries(const GPUCSRStorage *csr, GPUCSRStorage *A, const int *list, cudaStream_t s)
{
#define FILL(V, X) \
  dia_fill_kernel<V><<<GPUCSRBlocks(A->m, GPUCSR_SLICE), dim3(GPUCSR_SLICE, FILL_WARPS), 0, s>>>(A->m, (int)A->extent.units, list, (int *)A->array[DIA_OFFSET].data, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, \
                                                                                                 (const V *)csr->array[CSR_VAL].data, (V *)A->array[DIA_VAL].data)
  const int        diagonals = (int)A->extent.units;
  const GPUCSRBool paired    = DIAPairs(A);
  GPUCSRDiagonal  *order     = (GPUCSRDiagonal *)A->array[DIA_ORDER].data;

  GPUCSRDispatchPrecision(A->precision, FILL);
  dia_order_kernel<<<GPUCSRBlocks(diagonals, 256), 256, 0, s>>>(diagonals, paired, (const int *)A->array[DIA_OFFSET].data, order);
  if (paired) {
    dia_part_kernel<<<GPUCSRBlocks(A->m, GPUCSR_SLICE), dim3(GPUCSR_SLICE, FILL_WARPS), 0, s>>>(A->m, diagonals, (const double *)A->array[DIA_VAL].data, order);
    dia_pair_kernel<<<1, 1, 0, s>>>(diagonals, order);
  }
  GPUCSRCheckLaunch("dia_build (fill)");
  return 0;
}

static GPUCSRError Fill_DIA_CUDA(const GPUCSRStorage *csr, GPUCSRStorage *A, GPUCSRBool valuesonly, GPUCSRStream st)
{
  const int    units = (int)A->extent.units;
  const size_t bytes = sizeof(int) * ((size_t)units + 1);
  cudaStream_t s     = (cudaStream_t)st;
  int         *list  = NULL;
  GPUCSRError  ierr;

  if (!A->stored) return 0;
  if (valuesonly || (csr->work.data && units <= MOST)) {
    GPUCSRCall(Entries(csr, A, valuesonly ? NULL : (const int *)csr->work.data + 1, s));
    return 0;
  }
  GPUCSRCall(GPUCSRMalloc(csr->dev, bytes, "the list of diagonals", (void **)&list));
  ierr = List(csr, units, list, s);
  if (!ierr) ierr = Entries(csr, A, list + 1, s);
  GPUCSRCall(GPUCSRFree(csr->dev, bytes, (void **)&list));
  GPUCSRCall(ierr);
  return 0;
}

static GPUCSRError Diagonal_DIA_CUDA(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  const int n = GPUCSRMin(A->m, A->n);

  if (!n) return 0;
#define DIAGONAL(V, X) dia_diagonal_kernel<V, X><<<GPUCSRBlocks(n, 256), 256, 0, (cudaStream_t)s>>>(n, (int)A->extent.units, (const int *)A->array[DIA_OFFSET].data, (const V *)A->array[DIA_VAL].data, (X *)d)
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
  GPUCSRCheckLaunch("dia_build (diagonal)");
  return 0;
}

/* the place of a value depends on the pattern */
GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_dia) = {Measure_DIA_CUDA, Fill_DIA_CUDA, Diagonal_DIA_CUDA, true};

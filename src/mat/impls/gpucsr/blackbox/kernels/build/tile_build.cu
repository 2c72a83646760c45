/*
  Tiles filled on the device from CSR there, and their diagonal.

  One block for each tile: a hash table in shared memory counts its different columns; for the fill they are sorted there, and every entry finds its
  column by bisection. So the order in the table does not matter. A scan (CUB) gives the starts of the lists.
*/
#include "scan.cuh"
#include "../../format/tile.h"
#include <cub/block/block_scan.cuh>

#define BLOCK   256
#define WARPS   (BLOCK / 32)
#define SLOTS   (2 * TILE_STAGED) /* of the table, twice the columns allowed */
#define SHIFT   19                /* bits of a hash not used as a place */
#define OWN     (SLOTS / BLOCK)   /* of a thread */
#define MOST    256               /* rows of a tile */
#define COUNTS  4                 /* the beginning of the lists' lengths in the data that measure() leaves for fill(), behind their sum and the longest staged one */
#define REFRESH 128

static_assert(SLOTS == 1u << (32 - SHIFT), "a hash numbers a slot");

/* Puts the different columns of entries begin <= k < end into the table, where -1 is a free place. Returns their number, or some number above
   TILE_STAGED if there are more */
static __device__ __forceinline__ int distinct(int begin, int end, const int *__restrict__ col, int *table)
{
  __shared__ int count;

  for (int k = (int)threadIdx.x; k < SLOTS; k += BLOCK) table[k] = -1;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  for (int k = begin + (int)threadIdx.x; k < end && *(volatile int *)&count <= TILE_STAGED; k += BLOCK) {
    const int    c  = col[k];
    unsigned int at = (unsigned int)c * 2654435761u >> SHIFT;

    for (;;) {
      const int there = atomicCAS(table + at, -1, c);

      if (there == -1) atomicAdd(&count, 1);
      if (there == -1 || there == c) break;
      at = (at + 1) % SLOTS;
    }
  }
  __syncthreads();
  return count;
}

/* Length of each tile's list, their sum and the longest staged one */
__global__ void __launch_bounds__(BLOCK) tile_count_kernel(int m, int rows, const int *__restrict__ rowptr, const int *__restrict__ col, int *counts, unsigned long long *total)
{
  __shared__ int table[SLOTS];
  const int      tile = (int)blockIdx.x, begin = rowptr[tile * rows], end = rowptr[min(m, (tile + 1) * rows)];
  const int      n = distinct(begin, end, col, table), listed = n > TILE_STAGED ? end - begin : n;

  if (threadIdx.x) return;
  counts[tile] = listed;
  if (tile == (int)gridDim.x - 1) counts[tile + 1] = 0;
  if (total) {
    atomicAdd(total, (unsigned long long)listed);
    if (n <= TILE_STAGED) atomicMax((int *)(total + 1), n);
  }
}

/* Sorts the n columns in the table to its front, ascending */
static __device__ __forceinline__ void sort_table(int n, int *table)
{
  typedef cub::BlockScan<int, BLOCK> Scan;

  __shared__ typename Scan::TempStorage temp;
  int                                   own[OWN], mine = 0, size = 1, to;

#pragma unroll
  for (int u = 0; u < OWN; u++) {
    own[u] = table[u * BLOCK + (int)threadIdx.x];
    mine += own[u] >= 0;
  }
  Scan(temp).ExclusiveSum(mine, to);
  __syncthreads(); /* all have read the table */
#pragma unroll
  for (int u = 0; u < OWN; u++)
    if (own[u] >= 0) table[to++] = own[u];
  while (size < n) size *= 2;
  __syncthreads();
  for (int k = n + (int)threadIdx.x; k < size; k += BLOCK) table[k] = INT_MAX;
  __syncthreads();
  for (int run = 2; run <= size; run *= 2) /* bitonic */
    for (int apart = run / 2; apart; apart /= 2) {
      for (int k = (int)threadIdx.x; k < size / 2; k += BLOCK) {
        const int a = 2 * k - (k & (apart - 1)), b = a + apart, x = table[a], y = table[b];

        if ((x > y) == !(a & run)) {
          table[a] = y;
          table[b] = x;
        }
      }
      __syncthreads();
    }
}

/* The place of c among n ascending columns */
static __device__ __forceinline__ int find(int c, int n, const int *table)
{
  int lo = 0;

  while (n > 1) {
    const int half = n / 2;

    if (table[lo + half] <= c) lo += half;
    n -= half;
  }
  return lo;
}

/* The entries of the row at a place, from `from` on in CSR, by the warp of its slice, which begins at `at`; ccol NULL: values only. first: the tile's
   first entry in CSR */
template <class V>
static __device__ __forceinline__ void tile_entries(int length, int from, int at, int first, int listed, const int *table, const int *__restrict__ ccol, const V *__restrict__ cval, unsigned short *col, V *val)
{
  const int lane = (int)threadIdx.x % 32;

  for (int k = 0;; k++) {
    const unsigned int have = __ballot_sync(0xffffffffu, k < length);

    if (!have) return;
    if (k < length) {
      val[at + lane] = cval[from + k];
      if (ccol) col[at + lane] = (unsigned short)(listed > TILE_STAGED ? from + k - first : find(ccol[from + k], listed, table));
    }
    at += __popc(have);
  }
}

/* A whole tile: its list, its rows' order, its slices and its entries; begin: of the lists */
template <class V>
__global__ void __launch_bounds__(BLOCK) tile_fill_kernel(int m, int rows, const int *__restrict__ rowptr, const int *__restrict__ ccol, const V *__restrict__ cval, const int *__restrict__ begin, int *list, int *place, int *slice, unsigned short *col, V *val)
{
  __shared__ int table[SLOTS], length[MOST], placed[MOST];
  const int      tile = (int)blockIdx.x, r0 = tile * rows, n = min(rows, m - r0), first = rowptr[r0], end = rowptr[r0 + n], listed = begin[tile + 1] - begin[tile];
  const int      slices = (n + GPUCSR_SLICE - 1) / GPUCSR_SLICE, lane = (int)threadIdx.x % 32;

  if (listed > TILE_STAGED) {
    for (int k = first + (int)threadIdx.x; k < end; k += BLOCK) list[begin[tile] + k - first] = ccol[k];
  } else {
    (void)distinct(first, end, ccol, table);
    sort_table(listed, table);
    for (int k = (int)threadIdx.x; k < listed; k += BLOCK) list[begin[tile] + k] = table[k];
  }
  for (int q = (int)threadIdx.x; q < n; q += BLOCK) length[q] = rowptr[r0 + q + 1] - rowptr[r0 + q];
  __syncthreads();
  for (int q = (int)threadIdx.x; q < n; q += BLOCK) { /* its place: behind longer rows, and behind equal ones before it */
    int to = 0;

    for (int w = 0; w < n; w++) to += length[w] > length[q] || (length[w] == length[q] && w < q);
    placed[to] = TilePlace(q, length[q]);
  }
  __syncthreads();
  for (int q = (int)threadIdx.x; q < n; q += BLOCK) place[r0 + q] = placed[q];
  for (int s = (int)threadIdx.x / 32; s < slices; s += WARPS) {
    const int q = s * GPUCSR_SLICE + lane, here = q < n ? placed[q] : 0;
    int       at = 0;

    for (int w = lane; w < s * GPUCSR_SLICE; w += 32) at += TilePlaceLength(placed[w]);
    at = first + __shfl_sync(0xffffffffu, reduce<32>(at), 0);
    if (lane == 0) slice[r0 / GPUCSR_SLICE + s] = at;
    tile_entries(TilePlaceLength(here), rowptr[r0 + TilePlaceRow(here)], at, first, listed, table, ccol, cval, col, val);
  }
}

/* New values: one warp for each slice */
template <class V>
__global__ void __launch_bounds__(REFRESH) tile_refresh_kernel(int m, int rows, const int *__restrict__ rowptr, const V *__restrict__ cval, const int *__restrict__ place, const int *__restrict__ slice, V *val)
{
  const int q = (int)(blockIdx.x * REFRESH + threadIdx.x), here = q < m ? place[q] : 0;

  if (q / GPUCSR_SLICE * GPUCSR_SLICE >= m) return; /* the whole warp */
  tile_entries<V>(TilePlaceLength(here), q < m ? rowptr[q / rows * rows + TilePlaceRow(here)] : 0, slice[q / GPUCSR_SLICE], 0, 0, NULL, NULL, cval, NULL, val);
}

template <class V, class X>
__global__ void __launch_bounds__(REFRESH) tile_diagonal_kernel(int m, int n, int rows, const int *__restrict__ begin, const int *__restrict__ list, const int *__restrict__ place, const int *__restrict__ slice, const unsigned short *__restrict__ col, const V *__restrict__ val, X *d)
{
  const int q = (int)(blockIdx.x * REFRESH + threadIdx.x), lane = (int)threadIdx.x % 32, here = q < m ? place[q] : 0, length = TilePlaceLength(here), r = q / rows * rows + TilePlaceRow(here);
  X         v = 0;

  if (q / GPUCSR_SLICE * GPUCSR_SLICE >= m) return;
  int at = slice[q / GPUCSR_SLICE];
  for (int k = 0;; k++) {
    const unsigned int have = __ballot_sync(0xffffffffu, k < length);

    if (!have) break;
    if (k < length && list[begin[q / rows] + col[at + lane]] == r) v = X(val[at + lane]);
    at += __popc(have);
  }
  if (q < m && r < n) d[r] = v;
}

static GPUCSRError Count(const GPUCSRStorage *csr, int rows, int *counts, unsigned long long *total, cudaStream_t s)
{
  tile_count_kernel<<<(unsigned int)TileCount(csr->m, rows), BLOCK, 0, s>>>(csr->m, rows, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, counts, total);
  GPUCSRCheckLaunch("tile_build (count)");
  return 0;
}

static GPUCSRError Measure_Tile_CUDA(GPUCSRStorage *csr, int variant, GPUCSRExtent *e, GPUCSRStream st)
{
  cudaStream_t s       = (cudaStream_t)st;
  int64_t      head[2] = {0, 0};

  e->units = e->width = 0;
  if (!csr->m) return 0;
  GPUCSRCall(GPUCSRStorageWork(csr, GPUCSR_INT32, COUNTS + (size_t)TileCount(csr->m, variant) + 1));
  GPUCSR_CUDA(cudaMemsetAsync(csr->work.data, 0, sizeof(head), s));
  GPUCSRCall(Count(csr, variant, (int *)csr->work.data + COUNTS, (unsigned long long *)csr->work.data, s));
  GPUCSRCall(GPUCSRDownload(csr->dev, head, GPUCSR_INT64, csr->work.data, GPUCSR_INT64, 2, false, st));
  e->units = head[0];
  e->width = (int)head[1];
  return 0;
}

/* The starts of the lists, from their lengths */
static GPUCSRError Starts(const GPUCSRStorage *csr, GPUCSRStorage *A, cudaStream_t s)
{
  const int tiles = TileCount(A->m, A->format->variant);
  int      *begin = (int *)A->array[TILE_BEGIN].data;

  GPUCSR_CUDA(cudaMemcpyAsync(A->array[TILE_ROWPTR].data, csr->array[CSR_ROWPTR].data, sizeof(int) * ((size_t)A->m + 1), cudaMemcpyDeviceToDevice, s));
  if (csr->work.data) GPUCSR_CUDA(cudaMemcpyAsync(begin, (const int *)csr->work.data + COUNTS, sizeof(int) * ((size_t)tiles + 1), cudaMemcpyDeviceToDevice, s));
  else GPUCSRCall(Count(csr, A->format->variant, begin, NULL, s));
  GPUCSRCall(GPUCSRSumsBefore(A->dev, begin, begin, tiles + 1, s));
  return 0;
}

static GPUCSRError Fill_Tile_CUDA(const GPUCSRStorage *csr, GPUCSRStorage *A, GPUCSRBool valuesonly, GPUCSRStream st)
{
  const int    rows = A->format->variant;
  cudaStream_t s    = (cudaStream_t)st;

  if (!A->m) {
    if (valuesonly) return 0;
    GPUCSR_CUDA(cudaMemsetAsync(A->array[TILE_BEGIN].data, 0, sizeof(int), s));
    GPUCSR_CUDA(cudaMemsetAsync(A->array[TILE_ROWPTR].data, 0, sizeof(int), s));
    return 0;
  }
  if (!valuesonly) GPUCSRCall(Starts(csr, A, s));
#define FILL(V, X) \
  if (valuesonly) \
    tile_refresh_kernel<V> \
      <<<GPUCSRBlocks(A->m, REFRESH), REFRESH, 0, s>>>(A->m, rows, (const int *)A->array[TILE_ROWPTR].data, (const V *)csr->array[CSR_VAL].data, (const int *)A->array[TILE_PLACE].data, (const int *)A->array[TILE_SLICE].data, (V *)A->array[TILE_VAL].data); \
  else \
    tile_fill_kernel<V><<<(unsigned int)TileCount(A->m, rows), BLOCK, 0, s>>>(A->m, rows, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, (const V *)csr->array[CSR_VAL].data, (const int *)A->array[TILE_BEGIN].data, \
                                                                              (int *)A->array[TILE_LIST].data, (int *)A->array[TILE_PLACE].data, (int *)A->array[TILE_SLICE].data, (unsigned short *)A->array[TILE_COL].data, (V *)A->array[TILE_VAL].data)
  GPUCSRDispatchPrecision(A->precision, FILL);
  GPUCSRCheckLaunch("tile_build (fill)");
  return 0;
}

static GPUCSRError Diagonal_Tile_CUDA(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  if (!A->m) return 0;
#define DIAGONAL(V, X) \
  tile_diagonal_kernel<V, X><<<GPUCSRBlocks(A->m, REFRESH), REFRESH, 0, (cudaStream_t)s>>>(A->m, A->n, A->format->variant, (const int *)A->array[TILE_BEGIN].data, (const int *)A->array[TILE_LIST].data, (const int *)A->array[TILE_PLACE].data, \
                                                                                           (const int *)A->array[TILE_SLICE].data, (const unsigned short *)A->array[TILE_COL].data, (const V *)A->array[TILE_VAL].data, (X *)d)
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
  GPUCSRCheckLaunch("tile_build (diagonal)");
  return 0;
}

GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_tile) = {Measure_Tile_CUDA, Fill_Tile_CUDA, Diagonal_Tile_CUDA, false};

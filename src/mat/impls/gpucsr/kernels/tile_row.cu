/*
  y = A x, tiles, a block a tile, one or two threads a row.

  Three things are on their way at once: the first entries of each row, the list of the tile's columns, and behind it the entries of x that it names, which go to shared memory. Where an entry is follows from
  the lengths of the slice's rows, by a vote of the warp, so no pointer has to come first. With two threads a row, two warps take a slice's columns in turn.

  Bytes: those of tiles but 4 m, n x once a tile that has it, m y. Wins on meshes; see format/tile.c. Loses by its lists on anything whose rows share no columns.

  Paper: see format/tile.c.
*/
#include "device.cuh"
#include "../format/tile.h"

#define LISTED     6                      /* columns of the list that a thread has in flight */
#define RUNNING(A) ((A) > 8 ? 768 : 1280) /* threads of a processor at a time, which is what registers are for */

/* Entries `from`, `from` + T, ... of a row, AHEAD of them: what of them there is goes to c and v; at: the first entry of the slice's column `from`, moved on */
template <int T, int AHEAD, class V>
__device__ __forceinline__ void tile_load(int from, int length, int lane, int &at, const unsigned short *__restrict__ col, const V *__restrict__ val, int (&c)[AHEAD], V (&v)[AHEAD])
{
#pragma unroll
  for (int u = 0; u < AHEAD; u++) {
    const int k = from + T * u;

    if (k < length) {
      c[u] = streamed(col + at + lane);
      v[u] = streamed(val + at + lane);
    }
#pragma unroll
    for (int t = 0; t < T; t++) at += __popc(__ballot_sync(0xffffffffu, k + t < length));
  }
}

/* A row's sum; STAGED: the tile's part of x is in shared memory, else it is gathered through the list. c and v hold the first entries already */
template <int T, int AHEAD, bool STAGED, class V, class X>
__device__ __forceinline__ X tile_sum(int from, int length, int longest, int lane, int at, const unsigned short *__restrict__ col, const V *__restrict__ val, const int *__restrict__ list, const X *__restrict__ x, const X *xs, int (&c)[AHEAD], V (&v)[AHEAD])
{
  X sum = 0;

  for (int k = from;; k += T * AHEAD) {
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
      if (k + T * u < length) sum += X(v[u]) * (STAGED ? xs[c[u]] : __ldg(x + list[c[u]]));
    if (k + T * AHEAD >= longest) return sum; /* the same for the whole warp */
    tile_load<T, AHEAD>(k + T * AHEAD, length, lane, at, col, val, c, v);
  }
}

template <int R, int T, int AHEAD, class V, class X>
__global__ void __launch_bounds__(R *T, RUNNING(AHEAD) / (R * T)) tile_row_kernel(int offset, int m, int first, int last, const int *__restrict__ begin, const int *__restrict__ list, const int *__restrict__ place, const int *__restrict__ slice, const unsigned short *__restrict__ col, const V *__restrict__ val, const X *__restrict__ x, const Ending<X> ending)
{
  extern __shared__ double shared[];
  X                       *xs   = (X *)shared;
  const int                tile = offset + (int)blockIdx.x, lane = (int)threadIdx.x % GPUCSR_SLICE, warp = (int)threadIdx.x / GPUCSR_SLICE % T, mine = (int)threadIdx.x / (GPUCSR_SLICE * T);
  const int                q = tile * R + mine * GPUCSR_SLICE + lane, from = begin[tile], listed = begin[tile + 1] - from;
  const int                here = q < m ? place[q] : 0, length = TilePlaceLength(here), row = q < m ? tile * R + TilePlaceRow(here) : -1;
  int                      at = q - lane < m ? slice[q / GPUCSR_SLICE] : 0, l[LISTED], c[AHEAD];
  V                        v[AHEAD];
  X                        sum;

  list += from;
  if (listed <= TILE_STAGED) {
#pragma unroll
    for (int u = 0; u < LISTED; u++) {
      const int k = u * R * T + (int)threadIdx.x;

      l[u] = k < listed ? list[k] : -1;
    }
  }
  const int longest = __shfl_sync(0xffffffffu, length, 0);
  if (T > 1 && warp) at += __popc(__ballot_sync(0xffffffffu, length > 0));
  tile_load<T, AHEAD>(warp, length, lane, at, col, val, c, v);
  if (listed <= TILE_STAGED) {
#pragma unroll
    for (int u = 0; u < LISTED; u++)
      if (l[u] >= 0) xs[u * R * T + (int)threadIdx.x] = __ldg(x + l[u]);
    for (int k = LISTED * R * T + (int)threadIdx.x; k < listed; k += R * T) xs[k] = __ldg(x + list[k]);
    __syncthreads();
    sum = tile_sum<T, AHEAD, true>(warp, length, longest, lane, at, col, val, list, x, xs, c, v);
  } else sum = tile_sum<T, AHEAD, false>(warp, length, longest, lane, at, col, val, list, x, xs, c, v);
  if (T > 1) {
    __shared__ X part[R];

    if (warp) part[mine * GPUCSR_SLICE + lane] = sum;
    __syncthreads();
    if (warp) return;
    sum += part[mine * GPUCSR_SLICE + lane];
  }
  if (row >= first && row < last) store(ending, row, sum);
}

static PetscErrorCode Launch_tile_row(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int          rows = A->format->variant, offset = p->first / rows;
  const unsigned int tiles = (unsigned int)(TileCount(p->last, rows) - offset);

  PetscFunctionBegin;
#define LAUNCHR(R, T, AHEAD, V, X) \
  case R + TILE_ROW(T, AHEAD): \
    tile_row_kernel<R, T, AHEAD, V, X><<<tiles, R * T, sizeof(X) * (size_t)A->extent.width, (cudaStream_t)s>>>(offset, A->m, p->first, p->last, (const int *)A->array[TILE_BEGIN].data, (const int *)A->array[TILE_LIST].data, \
                                                                                                               (const int *)A->array[TILE_PLACE].data, (const int *)A->array[TILE_SLICE].data, (const unsigned short *)A->array[TILE_COL].data, \
                                                                                                               (const V *)A->array[TILE_VAL].data, (const X *)p->x, Ending<X>(p)); \
    break
#define LAUNCHT(T, AHEAD, V, X) \
  LAUNCHR(128, T, AHEAD, V, X); \
  LAUNCHR(256, T, AHEAD, V, X); \
  LAUNCHR(512, T, AHEAD, V, X)
#define LAUNCH(V, X) \
  switch (rows + variant) { \
    LAUNCHT(1, 8, V, X); \
    LAUNCHT(1, 16, V, X); \
    LAUNCHT(2, 8, V, X); \
  }
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("tile_row");
  PetscFunctionReturn(PETSC_SUCCESS);
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_tile_row) = {PETSC_TRUE, NULL, NULL, Launch_tile_row, NULL, 0, PETSC_TRUE};

/*
  y = A x, tiles, one block for each tile, one thread for each row.

  Three loads overlap: the first entries of each row, the list of the tile's columns, and behind it their entries of x, which go to shared memory. A
  vote of the warp on the lengths of the slice's rows gives the place of an entry, so no pointer is loaded first.

  Bytes: the format's without 4 m, an entry of x once for each tile that lists it, m y. Wins on meshes; see format/tile.c. Loses by its lists if rows share no
  columns.

  Paper: see format/tile.c.
*/
#include "../device.cuh"
#include "../../format/tile.h"

#define AHEAD   8    /* entries of a row in flight */
#define LISTED  6    /* columns of the list that a thread has in flight */
#define RUNNING 1280 /* threads of a processor at a time, for their registers */

/* Entries k, k + 1, ... of a row, up to AHEAD: their columns and values go to c and v; at: the first entry of the slice's column k, moved on */
template <class V>
__device__ __forceinline__ void tile_load(int k, int length, int lane, int &at, const unsigned short *__restrict__ col, const V *__restrict__ val, int (&c)[AHEAD], V (&v)[AHEAD])
{
#pragma unroll
  for (int u = 0; u < AHEAD; u++) {
    if (k + u < length) {
      c[u] = streamed(col + at + lane);
      v[u] = streamed(val + at + lane);
    }
    at += __popc(__ballot_sync(0xffffffffu, k + u < length));
  }
}

/* A row's sum; STAGED: the tile's part of x is in shared memory, else x is gathered through the list. c and v hold the first entries */
template <bool STAGED, class V, class X>
__device__ __forceinline__ X tile_sum(int length, int lane, int at, const unsigned short *__restrict__ col, const V *__restrict__ val, const int *__restrict__ list, const X *__restrict__ x, const X *xs, int (&c)[AHEAD], V (&v)[AHEAD])
{
  const int longest = __shfl_sync(0xffffffffu, length, 0); /* of the slice */
  X         sum     = 0;

  for (int k = 0;; k += AHEAD) {
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
      if (k + u < length) sum += X(v[u]) * (STAGED ? xs[c[u]] : __ldg(x + list[c[u]]));
    if (k + AHEAD >= longest) return sum;
    tile_load(k + AHEAD, length, lane, at, col, val, c, v);
  }
}

/* R rows for each tile */
template <int R, class V, class X, class E>
__global__ void __launch_bounds__(R, RUNNING / R) tile_row_kernel(int offset, int m, int first, int last, const int *__restrict__ begin, const int *__restrict__ list, const int *__restrict__ place, const int *__restrict__ slice, const unsigned short *__restrict__ col, const V *__restrict__ val, const X *__restrict__ x, const E ending)
{
  after_previous();
  extern __shared__ double shared[];
  X                       *xs   = (X *)shared;
  const int                tile = offset + (int)blockIdx.x, lane = (int)threadIdx.x % GPUCSR_SLICE, q = tile * R + (int)threadIdx.x, from = begin[tile], listed = begin[tile + 1] - from;
  const int                here = q < m ? place[q] : 0, length = TilePlaceLength(here), row = q < m ? tile * R + TilePlaceRow(here) : -1;
  int                      at = q - lane < m ? slice[q / GPUCSR_SLICE] : 0, l[LISTED], c[AHEAD];
  V                        v[AHEAD];
  const bool               wanted = row >= first && row < last;
  const X                  y      = wanted ? added(ending, row) : X(0);
  X                        sum;

  list += from;
  if (listed <= TILE_STAGED) {
#pragma unroll
    for (int u = 0; u < LISTED; u++) {
      const int k = u * R + (int)threadIdx.x;

      l[u] = k < listed ? list[k] : -1;
    }
  }
  tile_load(0, length, lane, at, col, val, c, v);
  if (listed <= TILE_STAGED) {
#pragma unroll
    for (int u = 0; u < LISTED; u++)
      if (l[u] >= 0) xs[u * R + (int)threadIdx.x] = __ldg(x + l[u]);
    for (int k = LISTED * R + (int)threadIdx.x; k < listed; k += R) xs[k] = __ldg(x + list[k]);
    __syncthreads();
    sum = tile_sum<true>(length, lane, at, col, val, list, x, xs, c, v);
  } else sum = tile_sum<false>(length, lane, at, col, val, list, x, xs, c, v);
  typename E::Tally tally;

  if (wanted) store(ending, row, sum, y, tally);
  finish(ending, tally);
}

static GPUCSRError Launch_tile_row(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int          rows = A->format->variant, offset = p->first / rows;
  const unsigned int tiles = (unsigned int)(TileCount(p->last, rows) - offset);

#define LAUNCHR(R, V, X) \
  case R: \
    GPUCSREnding<X>(p, tiles, [&](auto ending) { \
      launch_after(tile_row_kernel<R, V, X, decltype(ending)>, tiles, R, sizeof(X) * (size_t)A->extent.width, s, offset, A->m, p->first, p->last, (const int *)A->array[TILE_BEGIN].data, (const int *)A->array[TILE_LIST].data, \
                   (const int *)A->array[TILE_PLACE].data, (const int *)A->array[TILE_SLICE].data, (const unsigned short *)A->array[TILE_COL].data, (const V *)A->array[TILE_VAL].data, (const X *)p->x, ending); \
    }); \
    break
#define LAUNCH(V, X) \
  switch (rows) { \
    LAUNCHR(128, V, X); \
    LAUNCHR(256, V, X); \
  }
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("tile_row");
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_tile_row) = {true, NULL, Launch_tile_row, 0, true};

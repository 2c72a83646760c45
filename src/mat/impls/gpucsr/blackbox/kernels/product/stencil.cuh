#pragma once

/*
  Equal rows found on the device: a hash table of rows in global memory, one for each stencil (format/stencil.c). G threads share a row. A row whose
  place is taken is compared with the row there, entry by entry; if the rows differ, it tries the next place. Each stencil gets one place, and their
  number does not depend on the order of threads.
*/
#include "../device.cuh"
#include "../../format/stencil.h"

#define STENCIL_SLOTS (2 * (STENCIL_MOST + 1))

typedef struct alignas(8) {
  int entries, stencils; /* found so far; a stencil counts as an entry, too. More than STENCIL_MOST: too many, and the search ends */
} StencilCount;

static __device__ __forceinline__ unsigned long long stencil_bits(double v)
{
  return (unsigned long long)__double_as_longlong(v);
}
static __device__ __forceinline__ unsigned long long stencil_bits(float v)
{
  return (unsigned int)__float_as_int(v);
}

template <class V>
struct StencilRows {
  const int *__restrict__ rowptr;
  const int *__restrict__ col;
  const V *__restrict__ val;
};

/* The threads of a warp with the same row */
template <int G>
static __device__ __forceinline__ unsigned int stencil_team()
{
  return G == 32 ? 0xffffffffu : ((1u << G % 32) - 1) << threadIdx.x % 32 / G * G;
}

/* A thread loads several entries before it compares any: mostly rows are equal */
template <int G, class V>
static __device__ bool stencil_same(const StencilRows<V> &a, int r, int q)
{
  const int br = a.rowptr[r], bq = a.rowptr[q], length = a.rowptr[r + 1] - br;

  if (a.rowptr[q + 1] - bq != length) return false;
  for (int k = 0; k < length; k += 4 * G) {
    bool same = true;

#pragma unroll
    for (int u = 0; u < 4; u++) {
      const int e = k + u * G + (int)threadIdx.x % G;

      if (e < length) same = same & (a.col[br + e] - r == a.col[bq + e] - q) & (stencil_bits(a.val[br + e]) == stencil_bits(a.val[bq + e]));
    }
    if (!__all_sync(stencil_team<G>(), same)) return false;
  }
  return true;
}

/* The place of row r's stencil, and in like an equal row; -1: too many */
template <int G, class V>
static __device__ int stencil_find(const StencilRows<V> &a, int r, StencilCount *count, int *slot, int *like)
{
  const unsigned int team  = stencil_team<G>();
  const int          begin = a.rowptr[r], length = a.rowptr[r + 1] - begin, mine = (int)threadIdx.x % G;
  unsigned long long h = 0;

  if (length > STENCIL_MOST) {
    if (mine == 0) atomicMax(&count->entries, STENCIL_MOST + 1);
    return -1;
  }
  for (int k = mine; k < length; k += G) { /* the finaliser of SplitMix64 on each entry: the sum does not depend on the order of the threads */
    unsigned long long e = stencil_bits(a.val[begin + k]) ^ (unsigned long long)(unsigned int)(a.col[begin + k] - r) * 0x9e3779b97f4a7c15ull ^ (unsigned long long)k << 48;

    e = (e ^ e >> 30) * 0xbf58476d1ce4e5b9ull;
    e = (e ^ e >> 27) * 0x94d049bb133111ebull;
    h += e ^ e >> 31;
  }
#pragma unroll
  for (int o = G / 2; o; o >>= 1) h += __shfl_xor_sync(team, h, o);
  for (unsigned int probe = 0;; probe++) {
    const int at = (int)((h + length + probe) % STENCIL_SLOTS);
    int       q  = 0; /* 1 + the row there, -1: too many */

    if (mine == 0) {
      q = __ldca(slot + at); /* a row once there stays: the atomic below asks again for a place that seems free */
      if ((!q || probe) && *(volatile int *)&count->entries > STENCIL_MOST) q = -1;
      else if (!q && !(q = atomicCAS(slot + at, 0, r + 1))) {
        q = r + 1;
        atomicAdd((unsigned long long *)count, 1ull << 32 | (unsigned int)(length + 1)); /* both at once, as all finders meet here */
      }
    }
    q = __shfl_sync(team, q, 0, G);
    if (q < 0) return -1;
    *like = q - 1;
    if (*like == r || stencil_same<G>(a, r, *like)) return at;
  }
}

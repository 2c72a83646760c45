#pragma once

/*
  Sums of segments of consecutive values over the threads of a block; the order of additions is fixed, so every run has the same bits.
*/
#include "../device.cuh"

/* The sum since the last start of a segment, and whether there was a start */
template <class X>
struct Segment {
  X    sum;
  bool started;
};

template <class X>
__device__ __forceinline__ Segment<X> operator+(const Segment<X> &a, const Segment<X> &b)
{
  return {b.started ? b.sum : a.sum + b.sum, a.started || b.started};
}

/* Combines the earlier threads; *all: all threads. B threads; part has room for B / 32 and is free after a barrier */
template <int B, class X>
__device__ __forceinline__ Segment<X> segment_scan(Segment<X> mine, Segment<X> *part, Segment<X> *all)
{
  const int  lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
  Segment<X> before = {0, false}, total = {0, false};

#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    const Segment<X> other = {__shfl_up_sync(0xffffffffu, mine.sum, o), __shfl_up_sync(0xffffffffu, (int)mine.started, o) != 0};

    if (lane >= o) mine = other + mine;
  }
  if (lane == 31) part[warp] = mine;
  mine = {__shfl_up_sync(0xffffffffu, mine.sum, 1), __shfl_up_sync(0xffffffffu, (int)mine.started, 1) != 0};
  if (lane == 0) mine = {0, false};
  __syncthreads();
#pragma unroll
  for (int w = 0; w < B / 32; w++) {
    if (w == warp) before = total;
    total = total + part[w];
  }
  *all = total;
  return before + mine;
}

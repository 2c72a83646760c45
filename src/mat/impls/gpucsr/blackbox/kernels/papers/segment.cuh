#pragma once

/*
  Sums of segments of consecutive values over the threads of a block; the order of additions is fixed, so every run has the same bits.
*/
#include "../device.cuh"
#include <cub/block/block_scan.cuh>

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

struct SegmentSum {
  template <class X>
  __device__ __forceinline__ Segment<X> operator()(const Segment<X> &a, const Segment<X> &b) const
  {
    return a + b;
  }
};

/* Combines the earlier threads; *all: all threads. B threads, with a barrier before the next call */
template <int B, class X>
__device__ __forceinline__ Segment<X> segment_scan(const Segment<X> &mine, Segment<X> *all)
{
  typedef cub::BlockScan<Segment<X>, B, cub::BLOCK_SCAN_WARP_SCANS> Scan;

  __shared__ typename Scan::TempStorage temp;
  Segment<X>                            before;

  Scan(temp).ExclusiveScan(mine, before, Segment<X>{0, false}, SegmentSum(), *all);
  return before;
}

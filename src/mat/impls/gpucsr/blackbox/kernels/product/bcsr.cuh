#pragma once

/* Common to the kernels of blocked CSR: the block sizes, a block in registers, its product with x */
#include "../device.cuh"
#include "../../format/bcsr.h"

/* ACTION(r, c, V, X) for each square block size of formatlist.h */
#define BCSR_SQUARES(ACTION, V, X) \
  ACTION(2, 2, V, X) \
  ACTION(3, 3, V, X) \
  ACTION(4, 4, V, X) \
  ACTION(8, 8, V, X)

/* 16 bytes of values */
template <class T>
struct wide_of;
template <>
struct wide_of<double> {
  typedef double2                        type;
  static const int                       count = 2;
  static __device__ __forceinline__ void split(double2 w, double *v)
  {
    v[0] = w.x;
    v[1] = w.y;
  }
};
template <>
struct wide_of<float> {
  typedef float4                         type;
  static const int                       count = 4;
  static __device__ __forceinline__ void split(float4 w, float *v)
  {
    v[0] = w.x;
    v[1] = w.y;
    v[2] = w.z;
    v[3] = w.w;
  }
};

/* The K values of lane l, in the order of BCSRPlace() */
template <int K, class V>
__device__ __forceinline__ void load_lane(const V *__restrict__ val, int l, V v[K])
{
  typedef wide_of<V> W;
  const int          lane = l % BCSR_WARP;
  const V           *from = val + (int64_t)(l / BCSR_WARP) * (BCSR_WARP * K);

#pragma unroll
  for (int k = 0; k + W::count <= K; k += W::count) W::split(streamed((const typename W::type *)(from + k * BCSR_WARP + W::count * lane)), v + k);
#pragma unroll
  for (int k = K / W::count * W::count; k < K; k++) v[k] = streamed(from + k * BCSR_WARP + lane);
}

/*
  x[j], ..., x[j + C - 1]; columns past the end load the last of x, and multiply nothing. wide: x is aligned to 16 bytes and n a multiple of C. The
  test for the end decides how many loads the compiler keeps in flight, so block sizes differ in it.
*/
template <int C, class X>
__device__ __forceinline__ void load_x(const X *__restrict__ x, int j, int n, bool wide, X v[C])
{
  typedef typename pair_of<X>::type X2;

  if (C % 2) {
#pragma unroll
    for (int k = 0; k < C; k++) v[k] = __ldg(x + min(j + k, n - 1));
  } else if (wide) {
#pragma unroll
    for (int k = 0; k + 1 < C; k += 2) {
      const X2 w = __ldg((const X2 *)(x + j + k));

      v[k]     = w.x;
      v[k + 1] = w.y;
    }
  } else {
#pragma unroll
    for (int k = 0; k < C; k++) v[k] = __ldg(x + j + min(k, n - 1 - j));
  }
}

/* sum += R by C entries times C of x, without absent entries */
template <int R, int C, class V, class X>
__device__ __forceinline__ void multiply(const V v[R * C], const X x[C], X sum[R])
{
#pragma unroll
  for (int i = 0; i < R; i++)
#pragma unroll
    for (int j = 0; j < C; j++)
      if (!is_absent(v[i * C + j])) sum[i] += X(v[i * C + j]) * x[j];
}

/* May load_x() load wide? */
static inline bool WideX(const void *x, int n, int c)
{
  return c % 2 == 0 && n % c == 0 && (uintptr_t)x % 16 == 0;
}

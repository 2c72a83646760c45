/* Persistent kernels with sliced ELL */
#include "../../../../../mat/impls/gpucsr/blackbox/format/sell.h"
#include "../kernel.cuh"

template <class V>
struct Sell {
  static const bool offsets = false, peers = sizeof(V) == sizeof(double);
  const int        *slice, *perm, *col; /* slice is NULL if all slices have the same width, perm if no row has moved; rows move within a block only */
  const V          *val;
  int               width;
  Sharing           split; /* warps that share a slice, if there are fewer slices than warps */
  int               keep;

  static Sell of(const GPUKSPPersistent *L)
  {
    const GPUCSRStorage *A = L->A;

    return {A->array[SELL_SLICE].count ? (const int *)A->array[SELL_SLICE].data : NULL, A->array[SELL_PERM].count ? (const int *)A->array[SELL_PERM].data : NULL, (const int *)A->array[SELL_COL].data, (const V *)A->array[SELL_VAL].data, A->extent.width, Sharing::of(L->threads), fits(A, sizeof(V) + sizeof(int))};
  }

  __device__ __forceinline__ void settle(Pool &)
  {
  }

  size_t shared() const
  {
    return 0;
  }

  __device__ __forceinline__ bool shares() const
  {
    return split.count > 1;
  }

  template <class G, class F>
  __device__ __forceinline__ void product(const G &x, int first, int last, double *scratch, F f) const
  {
    constexpr int            ahead  = G::ahead;
    const unsigned long long policy = entry_policy(keep);
    const int                lane = threadIdx.x % 32, warp = threadIdx.x / 32, groups = split.groups(WARPS), part = split.part(warp);
    const int                slices = (last - first + 31) / 32;

    for (int q0 = 0; q0 < slices; q0 += groups) {
      const int q   = q0 + split.groups(warp);
      double    sum = 0;

      if (q < slices) {
        const int  begin = SELLBegin(slice, width, first / 32 + q), most = SELLBegin(slice, width, first / 32 + q + 1) - begin;
        const int *c0 = col + 32 * (int64_t)begin + lane;
        const V   *v0 = val + 32 * (int64_t)begin + lane;

        for (int k = part; k < most; k += ahead * split.count) {
          int c[ahead];
          V   v[ahead];

#pragma unroll
          for (int u = 0; u < ahead; u++) {
            c[u] = -1;
            if (k + u * split.count < most) {
              c[u] = entry(c0 + 32 * (k + u * split.count), policy);
              v[u] = entry(v0 + 32 * (k + u * split.count), policy);
            }
          }
#pragma unroll
          for (int u = 0; u < ahead; u++)
            if (c[u] >= 0) sum += (double)v[u] * x(c[u]);
        }
      }
      if (split.count > 1) sum = add_parts(sum, split, part, scratch);
      if (part == 0 && q < slices && first + 32 * q + lane < last) f(perm ? perm[first + 32 * q + lane] - first : 32 * q + lane, sum);
    }
  }
};

GPUKSP_PERSISTENT_PRODUCT(sell, ByValues<Sell>);

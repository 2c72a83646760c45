/* Persistent kernels with CSR */
#include "../kernel.cuh"

template <class V>
struct Csr {
  static const bool offsets = false, peers = sizeof(V) == sizeof(double);
  const int        *rowptr, *col;
  const V          *val;
  Sharing           share; /* threads that share a row */
  int               keep;

  static Csr of(const GPUKSPPersistent *L)
  {
    const GPUCSRStorage *A = L->A;

    return {(const int *)A->array[CSR_ROWPTR].data, (const int *)A->array[CSR_COL].data, (const V *)A->array[CSR_VAL].data, Sharing::of(L->threads), fits(A, sizeof(V) + sizeof(int))};
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
    return false;
  }

  template <class G, class F>
  __device__ __forceinline__ void product(const G &x, int first, int last, double *, F f) const
  {
    const int lanes = share.count, lane = share.part(threadIdx.x), groups = share.groups(THREADS), rows = last - first;
    int       r = share.groups(threadIdx.x), begin = r < rows ? rowptr[first + r] : 0, end = r < rows ? rowptr[first + r + 1] : 0;

    for (int r0 = 0; r0 < rows; r0 += groups, r += groups) {
      const int next = r + groups, nextbegin = next < rows ? rowptr[first + next] : 0, nextend = next < rows ? rowptr[first + next + 1] : 0;
      double    sum = 0;

      for (int k = begin + lane; k < end; k += 4 * lanes) {
        int c[4];
        V   v[4];

#pragma unroll
        for (int u = 0; u < 4; u++) {
          c[u] = -1;
          if (k + u * lanes < end) {
            c[u] = keep ? __ldg(col + k + u * lanes) : __ldcs(col + k + u * lanes);
            v[u] = keep ? __ldg(val + k + u * lanes) : __ldcs(val + k + u * lanes);
          }
        }
#pragma unroll
        for (int u = 0; u < 4; u++)
          if (c[u] >= 0) sum += (double)v[u] * x(c[u]);
      }
      begin = nextbegin;
      end   = nextend;
      for (int o = lanes / 2; o; o >>= 1) sum += __shfl_down_sync(0xffffffffu, sum, o, lanes);
      if (lane == 0 && r < rows) f(r, sum);
    }
  }
};

GPUKSP_PERSISTENT_PRODUCT(csr, ByValues<Csr>);

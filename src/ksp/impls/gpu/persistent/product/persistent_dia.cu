/* Persistent kernels with diagonals */
#include "../../../../../mat/impls/gpucsr/blackbox/format/dia.h"
#include "../kernel.cuh"

#define DIA_AHEAD 9 /* values of a row in flight */

/* As sliced ELL, but the column follows from the diagonal, so entries of x and of A are loaded together */
template <class V>
struct Dia {
  static const bool offsets = true, peers = sizeof(V) == sizeof(double);
  const int        *offset;
  const V          *val;
  int               diagonals, n;
  Sharing           split; /* warps that share a slice */
  int               keep;
  int              *at; /* in shared memory: the place of each diagonal in the windows of a chunk */
  GPUKSPWindows     windows;

  static Dia of(const GPUKSPPersistent *L)
  {
    const GPUCSRStorage *A = L->A;

    return {(const int *)A->array[DIA_OFFSET].data, (const V *)A->array[DIA_VAL].data, (int)A->extent.units, A->n, Sharing::of(L->threads), fits(A, sizeof(V)), NULL, L->windows};
  }

  __device__ __forceinline__ void settle(Pool &pool)
  {
    if (!windows.count) return;
    at = pool.take<int>(diagonals);
    for (int i = threadIdx.x; i < diagonals; i += THREADS) at[i] = windows.at(offset[i]);
  }

  size_t shared() const
  {
    return windows.count ? (sizeof(int) * (size_t)diagonals + 15) / 16 * 16 : 0;
  }

  /* The rows of a thread in a chunk: row, row + WINDOW_THREADS, ..., up to left. Ahead: values read in advance */
  struct Ahead {
    V v[DIA_AHEAD];
  };

  __device__ __forceinline__ Ahead some(int k, int row, bool in) const
  {
    const unsigned long long policy = entry_policy(keep);
    const V                 *v0     = val + DIAEntry(diagonals, row, 0);
    Ahead                    a;

#pragma unroll
    for (int u = 0; u < DIA_AHEAD; u++) {
      a.v[u] = absent<V>();
      if (in && k + u < diagonals) a.v[u] = entry(v0 + 32 * (k + u), policy);
    }
    return a;
  }

  __device__ __forceinline__ Ahead ahead(int row, bool in) const
  {
    return some(0, row, in);
  }

  __device__ __forceinline__ void rows_of_chunk(const double *x, int t, int row, int left, Ahead (&a)[WINDOW_ROWS], double (&sum)[WINDOW_ROWS]) const
  {
#pragma unroll
    for (int r = 0; r < WINDOW_ROWS; r++) sum[r] = 0;
    for (int k = 0; k < diagonals; k += DIA_AHEAD) {
#pragma unroll
      for (int r = 0; r < WINDOW_ROWS; r++) {
#pragma unroll
        for (int u = 0; u < DIA_AHEAD; u++)
          if (!is_absent(a[r].v[u])) sum[r] += (double)a[r].v[u] * x[t + r * WINDOW_THREADS + at[k + u]];
        if (k + DIA_AHEAD < diagonals) a[r] = some(k + DIA_AHEAD, row + r * WINDOW_THREADS, r * WINDOW_THREADS < left);
      }
    }
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
        const int row = first + 32 * q + lane;
        const V  *v0  = val + DIAEntry(diagonals, row, 0);

        for (int k = part; k < diagonals; k += ahead * split.count) {
          V      v[ahead];
          double xc[ahead];

#pragma unroll
          for (int u = 0; u < ahead; u++) {
            const int d = k + u * split.count, c = d < diagonals ? row + __ldg(offset + d) : -1;

            v[u]  = absent<V>();
            xc[u] = 0;
            if (c >= 0 && c < n) {
              v[u]  = entry(v0 + 32 * d, policy);
              xc[u] = x(c);
            }
          }
#pragma unroll
          for (int u = 0; u < ahead; u++)
            if (!is_absent(v[u])) sum += (double)v[u] * xc[u];
        }
      }
      if (split.count > 1) sum = add_parts(sum, split, part, scratch);
      if (part == 0 && q < slices && first + 32 * q + lane < last) f(32 * q + lane, sum);
    }
  }
};

GPUKSP_PERSISTENT_PRODUCT(dia, ByValues<Dia>);

#pragma once

/*
  ---- The next direction, computed in shared memory for a chunk of rows at a time. ----

  Each column is its row plus one of a few offsets. So a chunk of rows needs only some windows of the vector, one around each group of offsets. The kernel copies the summands of the direction in the
  windows while it multiplies the previous chunk. It reads each element once; gathers would read an element once for every entry. Copies of 16 bytes are faster than bulk copies (cp.async.bulk).
*/
#include "products.cuh"

struct Windows {
  double *stage; /* two buffers, each with the windows of z and of p */
  int     length;

  /* Copies the windows of the chunk from row on, into a buffer that has been read; 0 outside the vector */
  __device__ __forceinline__ void fetch(const GPUKSPWindows &w, const double *z, const double *p, int n, int row, int which) const
  {
    double *const to = stage + 2 * which * length;

#pragma unroll
    for (int q = 0; q < GPUKSP_WINDOWS; q++) {
      if (q >= w.count) break;
      for (int e = 2 * threadIdx.x; e < w.wide[q]; e += 2 * WINDOW_THREADS) {
        const int  c  = row + w.lo[q] + e;
        const bool in = c >= 0 && c < n;

        copy(to + w.place[q] + e, z + (in ? c : 0), in);
        copy(to + length + w.place[q] + e, p + (in ? c : 0), in);
      }
    }
  }

  /* Copies 16 bytes, or writes 16 zero bytes */
  static __device__ __forceinline__ void copy(double *to, const double *from, bool in)
  {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(in ? 16 : 0) : "memory");
#else
    *(double2 *)to = in ? __ldcg((const double2 *)from) : make_double2(0, 0);
#endif
  }

  static __device__ __forceinline__ void wait()
  {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  }

  /* Calls f(row in the block, sum, direction, p, previous x) */
  template <class M, class F>
  __device__ __forceinline__ void product(const M &A, const double *z, const double *p, double beta, int n, int first, int rows, const Rows &x, F f) const
  {
    const GPUKSPWindows &w     = A.windows;
    const int            chunk = WINDOW_ROWS * WINDOW_THREADS, t = threadIdx.x;

    fetch(w, z, p, n, first, 0);
    for (int i0 = 0, k = 0; i0 < rows; i0 += chunk, k ^= 1) {
      double *const d = stage + 2 * k * length, *const before = d + length;
      typename M::Ahead ahead[WINDOW_ROWS];
      double            xi[WINDOW_ROWS], sum[WINDOW_ROWS];

#pragma unroll
      for (int u = 0; u < WINDOW_ROWS; u++) {
        const int i = i0 + t + u * WINDOW_THREADS;

        ahead[u] = A.ahead(first + i, i < rows);
        xi[u]    = i < rows ? x[i] : 0;
      }
      wait();
      __syncthreads();
      if (i0 + chunk < rows) fetch(w, z, p, n, first + i0 + chunk, 1 - k);
      for (int e = 2 * t; e < length; e += 2 * WINDOW_THREADS) {
        double2       a = *(double2 *)(d + e);
        const double2 b = *(double2 *)(before + e);

        a.x += beta * b.x;
        a.y += beta * b.y;
        *(double2 *)(d + e) = a;
      }
      __syncthreads();
      A.rows_of_chunk(d, t, first + i0 + t, rows - i0 - t, ahead, sum);
#pragma unroll
      for (int u = 0; u < WINDOW_ROWS; u++) {
        const int c = t + u * WINDOW_THREADS, i = i0 + c;

        if (i < rows) f(i, sum[u], d[w.own + c], before[w.own + c], xi[u]);
      }
    }
  }
};

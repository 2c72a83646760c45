#pragma once

/* Preconditioners of a persistent kernel, on a block's rows: the diagonal or diagonal blocks */
#include "peers.cuh"

struct Preconditioner {
  Rows            d;     /* the diagonal, if any */
  const double   *block; /* rows of the diagonal blocks, in global memory; ranges of rows do not cut them */
  int             diagonal, bs, first;
  const uint16_t *id;    /* stencil of each row, if the diagonal is constant on stencils; d is then not read */
  const double   *table; /* in shared memory: diagonals of the stencils and their inverses; otherwise NULL */
  int             tables;

  __device__ __forceinline__ double entry(int i) const
  {
    return table ? table[id[first + i]] : d[i];
  }

  __device__ __forceinline__ double on_the_way(int i, double r) const
  {
    return diagonal ? entry(i) * r : r;
  }

  /* Copies the diagonals of stencils to shared memory, into the room that the shape has reserved, before vectors take the rest */
  __device__ __forceinline__ void tabulate(const GPUKSPDiagonals &same, Pool &pool)
  {
    if (!diagonal || !same.table) return;
    double *const t = pool.take<double>(2 * same.count);

    for (int i = threadIdx.x; i < same.count; i += THREADS) {
      const double v = same.table[i];

      t[i]              = v;
      t[same.count + i] = v != 0.0 ? 1 / v : 0.0;
    }
    table  = t;
    tables = same.count;
    id     = same.id;
    __syncthreads();
  }

  /* Takes the block's part of a diagonal that is not constant on stencils */
  __device__ __forceinline__ void settle(const double *whole, Pool &pool, int rows)
  {
    if (table) return;
    d = pool.rows((double *)whole, first, rows);
    for (int i = threadIdx.x; i < d.resident && diagonal; i += THREADS) d.nearby[i] = d.far[i];
  }

  /* r is complete in all rows of the block */
  template <class R>
  __device__ __forceinline__ double of(int i, const R &r) const
  {
    if (!bs) return on_the_way(i, r[i]);
    const int b = i - (first + i) % bs;
    double    z = 0;

    for (int j = 0; j < bs; j++) z += block[(int64_t)(first + i) * bs + j] * r[b + j];
    return z;
  }
};

__device__ __forceinline__ Preconditioner preconditioner(const GPUKSPVectors &v, int first)
{
  const double *d = v.pc;

  return {
    {NULL, (double *)d + first, 0},
    v.block, d != NULL, v.block ? v.bs : 0, first, NULL, NULL, 0
  };
}

struct From {
  const double                     *p;
  __device__ __forceinline__ double operator[](int i) const
  {
    return p[i];
  }
};

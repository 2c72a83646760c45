#pragma once

/* Preconditioners of a persistent kernel, on a block's rows: the diagonal, diagonal blocks, or a Chebyshev polynomial with either */
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
  const double *d = v.degree ? v.diagonal : v.pc;

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

/* z = a Chebyshev polynomial in A, applied to r; each thread takes the rows that it wrote. Not inlined, to spare the registers of solves without a polynomial */
struct Polynomial {
  double *now, *next, *left, *z;
  double  emin, emax;
  int     degree;
};

template <class M, class R, class O>
__device__ __noinline__ unsigned chebyshev(const M &A, Polynomial v, const Preconditioner pc, R grid, const O others, int first, int rows, double *scratch)
{
  double *now = v.now, *next = v.next, *left = v.left, *z = v.z;
  double  rho = 0, ca, cb;

  for (int k = 0; k < v.degree; k++) {
    if (k) {
      others.exchange(now, grid);
      grid_sync(grid);
      A.product(Vector{now}, first, first + rows, scratch, [&](int i, double s) { left[i] -= s; });
      others.add(Vector{now}, [&](int i, double s) { left[i] -= s; });
    }
    __syncthreads();
    rho = GPUKSPChebyshev(v.emin, v.emax, rho, &ca, &cb);
    FOR_ROWS(i)
    {
      const double y = pc.of(i, From{left}), step = k ? ca * now[first + i] + cb * y : cb * y;

      next[first + i] = step;
      z[i]            = k ? z[i] + step : step;
    }
    { /* other blocks still read the old step */
      double *const old = now;

      now  = next;
      next = old;
    }
  }
  __syncthreads();
  return grid.epoch;
}

template <class M, class R, class O, class V>
__device__ __forceinline__ void polynomial(const M &A, const GPUKSPVectors &v, const Preconditioner &pc, R &grid, const O &others, int first, int rows, double *scratch, const V &r)
{
  const M copy = A; /* the function takes the address of its operand, which would keep A out of registers */

  FOR_ROWS(i) v.c2[first + i] = r[i];
  grid.epoch                  = chebyshev(copy, {v.c0, v.c1, v.c2 + first, v.z + first, v.emin, v.emax, v.degree}, pc, grid, others, first, rows, scratch);
}

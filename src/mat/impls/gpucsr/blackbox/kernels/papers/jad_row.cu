/*
  y = A x, jagged diagonals, a thread for a row.

  A warp takes 32 neighbouring rows in the order of lengths, and reads entries diagonal by diagonal, coalesced and several in flight. A row ends
  where a diagonal is too short for the row.

  Bytes: the format's but rowptr, n x once at best, m y. Wins over sliced ELL if lengths differ; loses to it by loads that are not aligned.

  Papers: Y. Saad 1989; J. Wong, E. Kuhl, E. Darve, A new sparse matrix vector multiplication graphics processing unit algorithm designed for finite
  element problems, Int. J. Numer. Meth. Engng 102, 2015.
*/
#include "../device.cuh"
#include "../../format/papers/jad.h"

#define AHEAD 8 /* entries of a thread in flight */

template <class V, class X>
__global__ void __launch_bounds__(128) jad_row_kernel(int m, int first, int last, int diagonals, const int *__restrict__ start, const int *__restrict__ perm, const int *__restrict__ col, const V *__restrict__ val, X alpha, const X *__restrict__ x, X beta, const X *y, X *z)
{
  const int  q = (int)(blockIdx.x * blockDim.x + threadIdx.x), row = q < m ? perm[q] : -1;
  const bool wanted = row >= first && row < last;
  X          sum    = 0;

  if (wanted) {
    bool more = true;

    for (int k = 0; k < diagonals && more; k += AHEAD) {
      int c[AHEAD];
      V   v[AHEAD];

#pragma unroll
      for (int u = 0; u < AHEAD; u++) {
        const int d = k + u, begin = d < diagonals ? __ldg(start + d) : 0;

        c[u] = -1;
        if (d < diagonals && q < __ldg(start + d + 1) - begin) {
          c[u] = streamed(col + (size_t)begin + (size_t)q);
          v[u] = streamed(val + (size_t)begin + (size_t)q);
        }
      }
#pragma unroll
      for (int u = 0; u < AHEAD; u++) {
        if (c[u] >= 0) sum += X(v[u]) * __ldg(x + c[u]);
        else more = false;
      }
    }
  }
  if (wanted) store(z, y, row, alpha, sum, beta);
}

static GPUCSRError Launch_jad_row(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
#define LAUNCH(V, X) \
  jad_row_kernel<V, X><<<GPUCSRBlocks(A->m, 128), 128, 0, (cudaStream_t)s>>>(A->m, p->first, p->last, (int)A->extent.units, (const int *)A->array[JAD_START].data, (const int *)A->array[JAD_PERM].data, (const int *)A->array[JAD_COL].data, \
                                                                             (const V *)A->array[JAD_VAL].data, (X)p->alpha, (const X *)p->x, (X)p->beta, (const X *)p->y, (X *)p->z)
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("jad_row");
  return 0;
}

/* The sort scatters a range of rows over all places: only the whole matrix at once */
GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_jad_row) = {false, NULL, Launch_jad_row};

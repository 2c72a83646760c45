/*
  y = A x, jagged diagonals, 1 or 4 threads a row; the variant is that number.

  A warp takes 32 rows that follow each other in the order of lengths and reads their entries diagonal by diagonal, coalesced and
  several in flight; the starts of 32 diagonals are read together, and handed round. With 4 threads a row four warps share the
  diagonals, and their sums meet in shared memory.

  Bytes: those of the format, n x once at best, m y. Wins over sliced ELL where lengths differ; loses to it by
  loads that are not aligned.

  Papers: Y. Saad 1989; J. Wong, E. Kuhl, E. Darve, A new sparse matrix vector multiplication graphics processing unit algorithm
  designed for finite element problems, Int. J. Numer. Meth. Engng 102, 2015.
*/
#include "device.cuh"
#include "../format/jad.h"

#define AHEAD 8 /* entries of a thread in flight */

template <int T, class V, class X>
__global__ void __launch_bounds__(128) jad_row_kernel(int m, int first, int last, int diagonals, const int *__restrict__ start, const int *__restrict__ rowptr, const int *__restrict__ perm, const int *__restrict__ col, const V *__restrict__ val, X alpha, const X *__restrict__ x, X beta, const X *y, X *z)
{
  constexpr int TEAMS = 4 / T;
  const int     lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32 % T, team = (int)threadIdx.x / (32 * T);
  const int     q = ((int)blockIdx.x * TEAMS + team) * 32 + lane, row = q < m ? perm[q] : -1, len = row >= 0 ? rowptr[row + 1] - rowptr[row] : 0;
  const bool    wanted = row >= first && row < last;
  X             sum    = 0;

  if (__any_sync(0xffffffffu, wanted)) {                /* the same for all warps of 32 rows */
    const int width = __shfl_sync(0xffffffffu, len, 0); /* the first row is the longest */

    for (int base = 0; base < width; base += 32) {
      const int begin = base + lane < diagonals ? start[base + lane] : 0; /* of a diagonal each, for all */

#pragma unroll
      for (int k = 0; k < 32; k += T * AHEAD) {
        int c[AHEAD];
        V   v[AHEAD];

        if (base + k >= width) break;
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
          const int    d  = k + T * u + warp;
          const size_t at = (size_t)__shfl_sync(0xffffffffu, begin, d) + (size_t)q;

          c[u] = -1;
          if (base + d < len) {
            c[u] = streamed(col + at);
            v[u] = streamed(val + at);
          }
        }
#pragma unroll
        for (int u = 0; u < AHEAD; u++)
          if (c[u] >= 0) sum += X(v[u]) * __ldg(x + c[u]);
      }
    }
  }
  if (T > 1) {
    __shared__ X part[TEAMS][T][32];

    part[team][warp][lane] = sum;
    __syncthreads();
    if (warp) return;
#pragma unroll
    for (int t = 1; t < T; t++) sum += part[team][t][lane];
  }
  if (wanted) store(z, y, row, alpha, sum, beta);
}

static PetscErrorCode Launch(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  PetscFunctionBegin;
#define LAUNCHT(T, V, X) \
  jad_row_kernel<T, V, X><<<GPUCSRBlocks(A->m, 128 / T), 128, 0, (cudaStream_t)s>>>(A->m, p->first, p->last, (int)A->extent.units, (const int *)A->array[JAD_START].data, (const int *)A->array[JAD_ROWPTR].data, (const int *)A->array[JAD_PERM].data, \
                                                                                    (const int *)A->array[JAD_COL].data, (const V *)A->array[JAD_VAL].data, (X)p->alpha, (const X *)p->x, (X)p->beta, (const X *)p->y, (X *)p->z)
#define LAUNCH(V, X) \
  if (variant == 1) LAUNCHT(1, V, X); \
  else LAUNCHT(4, V, X)
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("jad_row");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* A range of rows is scattered over all places: the whole matrix at once */
GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_jad_row) = {PETSC_FALSE, NULL, NULL, Launch, NULL};

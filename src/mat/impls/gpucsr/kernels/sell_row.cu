/*
  y = A x, sliced ELL, a thread a row.

  The 32 threads of a warp hold the 32 rows of a slice and read its columns one after the other, each in one coalesced
  load; several are in flight before the first is used.

  Bytes: 4 slices + (4 + v) stored, n x once at best, m y. Wins on rows of about equal length, up to about 64 entries;
  loses by padding, and where there are too few rows to fill the device with one thread each.

  Paper: A. Monakov et al., HiPEAC 2010, section 3.
*/
#include "device.cuh"
#include "../format/sell.h"

#define AHEAD 8 /* entries of a row in flight */

/* The column of padding is negative, so no row length is read */
template <class V, class X>
__global__ void __launch_bounds__(128) sell_row_kernel(int first, int last, const int *__restrict__ slice, const int *__restrict__ col, const V *__restrict__ val, X alpha, const X *__restrict__ x, X beta, const X *y, X *z)
{
  const int r   = first + (int)(blockIdx.x * blockDim.x + threadIdx.x);
  X         sum = 0;

  if (r >= last) return;
  const int     begin = slice[r / GPUCSR_SLICE], width = slice[r / GPUCSR_SLICE + 1] - begin;
  const int64_t start = (int64_t)GPUCSR_SLICE * begin + r % GPUCSR_SLICE;

  col += start;
  val += start;
  for (int k = 0; k < width; k += AHEAD) {
    int c[AHEAD];
    V   v[AHEAD];

#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      c[u] = -1;
      if (k + u < width) {
        c[u] = streamed(col + GPUCSR_SLICE * (k + u));
        v[u] = streamed(val + GPUCSR_SLICE * (k + u));
      }
    }
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
      if (c[u] >= 0) sum += X(v[u]) * __ldg(x + c[u]);
  }
  store(z, y, r, alpha, sum, beta);
}

static PetscErrorCode Launch(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int block = 128;

  PetscFunctionBegin;
  (void)variant;
#define LAUNCH(V, X) \
  sell_row_kernel<V, X><<<GPUCSRBlocks(p->last - p->first, block), block, 0, (cudaStream_t)s>>>(p->first, p->last, (const int *)A->array[SELL_SLICE].data, (const int *)A->array[SELL_COL].data, (const V *)A->array[SELL_VAL].data, (X)p->alpha, \
                                                                                                (const X *)p->x, (X)p->beta, (const X *)p->y, (X *)p->z)
  GPUCSRDispatchPrecision(A->precision, LAUNCH);
  GPUCSRCheckLaunch("sell_row");
  PetscFunctionReturn(PETSC_SUCCESS);
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_sell_row) = {PETSC_TRUE, NULL, NULL, Launch, NULL};

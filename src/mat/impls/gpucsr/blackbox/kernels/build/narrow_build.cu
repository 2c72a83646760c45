/*
  CSR with narrow columns filled on the device from CSR there, and its diagonal.

  One warp for each slice: it reads the slice's columns once for each window, to find the least column beyond the windows so far, and once more to
  number them. A scan (CUB) finds the beginnings of wide slices in their own array, if there are any. Values are copied.
*/
#include "scan.cuh"
#include "../../format/narrow.h"

#define BLOCK 128
#define WARPS (BLOCK / GPUCSR_SLICE)

/* Thread w of the warp returns the first column of window w of entries begin <= k < end; `windows` is the number of windows, or -1: the slice is wide */
static __device__ __forceinline__ int narrow_windows(int begin, int end, const int *__restrict__ col, int *windows)
{
  const int lane    = (int)threadIdx.x % 32;
  int       first   = 0;
  int64_t   reached = -1;

  for (int w = 0;; w++) {
    unsigned int least = UINT_MAX;

    for (int k = begin + lane; k < end; k += 32)
      if (col[k] > reached) least = min(least, (unsigned int)col[k]);
    least    = warp_least(least);
    *windows = w;
    if (least == UINT_MAX) return first;
    if (w == NARROW_WINDOWS) break;
    if (lane == w) first = (int)least;
    reached = (int64_t)least + NARROW_REACH - 1;
  }
  *windows = -1;
  return 0;
}

/* Entries of each wide slice, and their sum */
__global__ void __launch_bounds__(BLOCK) narrow_count_kernel(int m, const int *__restrict__ rowptr, const int *__restrict__ col, int *counts, unsigned long long *total)
{
  const int s = (int)(blockIdx.x * WARPS + threadIdx.x / 32), r = s * GPUCSR_SLICE;
  int       windows;

  if (r >= m) return; /* the whole warp */
  const int begin = rowptr[r], end = rowptr[min(m, r + GPUCSR_SLICE)];
  (void)narrow_windows(begin, end, col, &windows);
  if (threadIdx.x % 32) return;
  if (counts) counts[s] = windows < 0 ? end - begin : 0;
  if (total && windows < 0) atomicAdd(total, (unsigned long long)(end - begin));
}

/* A slice's head, lengths and columns; starts: of wide slices in wide, NULL without any */
__global__ void __launch_bounds__(BLOCK) narrow_fill_kernel(int m, const int *__restrict__ rowptr, const int *__restrict__ ccol, const int *__restrict__ starts, int *head, unsigned char *length, unsigned short *col, int *wide)
{
  const int s = (int)(blockIdx.x * WARPS + threadIdx.x / 32), lane = (int)threadIdx.x % 32, r = s * GPUCSR_SLICE + lane;
  int       windows;

  if (s * GPUCSR_SLICE >= m) return; /* the whole warp */
  const int begin = rowptr[s * GPUCSR_SLICE], end = rowptr[min(m, (s + 1) * GPUCSR_SLICE)];
  const int first = narrow_windows(begin, end, ccol, &windows), start = windows < 0 ? starts[s] : 0, before = __shfl_up_sync(0xffffffffu, first, 1);

  length[r] = (unsigned char)(r < m ? rowptr[r + 1] - rowptr[r] : 0);
  if (lane < NARROW_WORDS) head[NARROW_WORDS * (int64_t)s + lane] = lane == 0 ? begin : windows >= 0 ? before : lane == 1 ? NARROW_WIDE_SLICE : lane == 2 ? start : 0;
  for (int k = begin + lane; k - lane < end; k += 32) {
    const int c      = k < end ? ccol[k] : 0;
    int       window = 0, from = 0;

    for (int w = 0; w < windows; w++) {
      const int f = __shfl_sync(0xffffffffu, first, w);

      if (f > c) continue;
      window = w;
      from   = f;
    }
    if (k < end) col[k] = windows < 0 ? 0 : NarrowColumn(window, c - from);
    if (k < end && windows < 0) wide[start + k - begin] = c;
  }
}

template <class V, class X>
__global__ void __launch_bounds__(BLOCK) narrow_diagonal_kernel(int m, int n, const int *__restrict__ head, const unsigned char *__restrict__ lengths, const unsigned short *__restrict__ col, const int *__restrict__ wide, const V *__restrict__ val, X *d)
{
  const int r = (int)(blockIdx.x * BLOCK + threadIdx.x);
  X         v = 0;

  if (r / GPUCSR_SLICE * GPUCSR_SLICE >= m) return; /* the whole warp */
  head += NARROW_WORDS * (int64_t)(r / GPUCSR_SLICE);
  const int length = lengths[r], stop = warp_upto(length);
  for (int k = stop - length; k < stop; k++) { /* counted from the slice's first entry */
    const int code = col[head[0] + k], c = head[1] == NARROW_WIDE_SLICE ? wide[head[2] + k] : head[1 + NarrowWindow(code)] + NarrowWithin(code);

    if (c == r) v = X(val[head[0] + k]);
  }
  if (r < m && r < n) d[r] = v;
}

static GPUCSRError Measure_Narrow_CUDA(GPUCSRStorage *csr, int variant, GPUCSRExtent *e, GPUCSRStream st)
{
  cudaStream_t s    = (cudaStream_t)st;
  int64_t      wide = 0;

  e->units = 0;
  if (!csr->m) return 0;
  GPUCSRCall(GPUCSRStorageWork(csr, GPUCSR_INT64, 1));
  GPUCSR_CUDA(cudaMemsetAsync(csr->work.data, 0, sizeof(wide), s));
  narrow_count_kernel<<<GPUCSRBlocks(NarrowSlices(csr->m), WARPS), BLOCK, 0, s>>>(csr->m, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, NULL, (unsigned long long *)csr->work.data);
  GPUCSRCheckLaunch("narrow_build (count)");
  GPUCSRCall(GPUCSRDownload(csr->dev, &wide, GPUCSR_INT64, csr->work.data, GPUCSR_INT64, 1, false, st));
  e->units = wide;
  return 0;
}

/* The beginnings of wide slices' columns */
static GPUCSRError Starts(const GPUCSRStorage *csr, int *starts, cudaStream_t s)
{
  const int slices = NarrowSlices(csr->m);

  narrow_count_kernel<<<GPUCSRBlocks(slices, WARPS), BLOCK, 0, s>>>(csr->m, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, starts, NULL);
  GPUCSRCall(GPUCSRSumsBefore(csr->dev, starts, starts, slices, s));
  return 0;
}

static GPUCSRError FillPattern(const GPUCSRStorage *csr, GPUCSRStorage *A, cudaStream_t s)
{
  const size_t bytes  = sizeof(int) * (size_t)NarrowSlices(A->m);
  void        *starts = NULL;
  GPUCSRError  ierr   = 0;

  if (A->extent.units) {
    GPUCSRCall(GPUCSRMalloc(A->dev, bytes, "the starts of wide slices", &starts));
    ierr = Starts(csr, (int *)starts, s);
  }
  if (!ierr)
    narrow_fill_kernel<<<GPUCSRBlocks(NarrowSlices(A->m), WARPS), BLOCK, 0, s>>>(A->m, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, (const int *)starts, (int *)A->array[NARROW_HEAD].data,
                                                                                 (unsigned char *)A->array[NARROW_LENGTH].data, (unsigned short *)A->array[NARROW_COL].data, (int *)A->array[NARROW_WIDE].data);
  GPUCSRCall(GPUCSRFree(A->dev, bytes, &starts));
  GPUCSRCall(ierr);
  GPUCSRCheckLaunch("narrow_build (fill)");
  return 0;
}

static GPUCSRError Fill_Narrow_CUDA(const GPUCSRStorage *csr, GPUCSRStorage *A, GPUCSRBool valuesonly, GPUCSRStream st)
{
  cudaStream_t s = (cudaStream_t)st;

  if (!A->m) return 0;
  if (!valuesonly) GPUCSRCall(FillPattern(csr, A, s));
  GPUCSR_CUDA(cudaMemcpyAsync(A->array[NARROW_VAL].data, csr->array[CSR_VAL].data, A->array[NARROW_VAL].count * GPUCSRTypeSize(A->array[NARROW_VAL].type), cudaMemcpyDeviceToDevice, s));
  return 0;
}

static GPUCSRError Diagonal_Narrow_CUDA(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  if (!A->m) return 0;
#define DIAGONAL(V, X) \
  narrow_diagonal_kernel<V, X><<<GPUCSRBlocks(A->m, BLOCK), BLOCK, 0, (cudaStream_t)s>>>(A->m, A->n, (const int *)A->array[NARROW_HEAD].data, (const unsigned char *)A->array[NARROW_LENGTH].data, (const unsigned short *)A->array[NARROW_COL].data, \
                                                                                         (const int *)A->array[NARROW_WIDE].data, (const V *)A->array[NARROW_VAL].data, (X *)d)
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
  GPUCSRCheckLaunch("narrow_build (diagonal)");
  return 0;
}

GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_narrow) = {Measure_Narrow_CUDA, Fill_Narrow_CUDA, Diagonal_Narrow_CUDA, false};

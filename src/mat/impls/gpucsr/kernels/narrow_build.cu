/*
  Slices with narrow columns filled on the device from CSR already there, and their diagonal.

  A warp a slice: it goes over the slice's columns once a window, for the least that no window reaches yet. Then each thread places the entries of its row. Where wide slices begin
  in their own array a scan tells (CUB); without wide slices there is none.
*/
#include "device.cuh"
#include "../format/narrow.h"
#include <cub/device/device_scan.cuh>

#define BLOCK 128
#define WARPS (BLOCK / GPUCSR_SLICE)

/* Thread w of the warp returns the first column of window w of entries begin <= k < end; the number of windows is `windows`, or -1: the slice is wide */
static __device__ __forceinline__ int narrow_windows(int begin, int end, const int *__restrict__ col, int *windows)
{
  const int lane    = (int)threadIdx.x % 32;
  int       first   = 0;
  int64_t   reached = -1;

  for (int w = 0;; w++) {
    unsigned int least = UINT_MAX;

    for (int k = begin + lane; k < end; k += 32)
      if (col[k] > reached) least = min(least, (unsigned int)col[k]);
    least    = __reduce_min_sync(0xffffffffu, least);
    *windows = w;
    if (least == UINT_MAX) return first;
    if (w == NARROW_WINDOWS) break;
    if (lane == w) first = (int)least;
    reached = (int64_t)least + NARROW_REACH - 1;
  }
  *windows = -1;
  return 0;
}

/* Entries of each slice that are wide, and their sum */
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

/* The entries of a row, `from` on in CSR, in the slice that begins at `at`; ccol NULL: the values alone. first: of window w, in thread w; wide: of a wide slice, its columns */
template <class V>
static __device__ __forceinline__ void narrow_entries(int length, int from, int at, int first, int windows, const int *__restrict__ ccol, const V *__restrict__ cval, unsigned short *col, int *wide, V *val)
{
  const unsigned int before = (1u << threadIdx.x % 32) - 1;

  for (int k = 0, within = 0;; k++) {
    const unsigned int have = __ballot_sync(0xffffffffu, k < length);
    const int          to   = within + __popc(have & before);

    if (!have) return;
    if (k < length) val[at + to] = cval[from + k];
    if (ccol) {
      const int c      = k < length ? ccol[from + k] : 0;
      int       window = 0, start = 0;

      for (int w = 0; w < windows; w++) {
        const int f = __shfl_sync(0xffffffffu, first, w);

        if (f > c) continue;
        window = w;
        start  = f;
      }
      if (k < length && windows < 0) wide[to] = c;
      if (k < length && windows >= 0) col[at + to] = NarrowColumn(window, c - start);
    }
    within += __popc(have);
  }
}

/* A slice whole; starts: of wide slices in wide, NULL where there are none */
template <class V>
__global__ void __launch_bounds__(BLOCK) narrow_fill_kernel(int m, const int *__restrict__ rowptr, const int *__restrict__ ccol, const V *__restrict__ cval, const int *__restrict__ starts, int *head, unsigned char *length, unsigned short *col, int *wide, V *val)
{
  const int s = (int)(blockIdx.x * WARPS + threadIdx.x / 32), lane = (int)threadIdx.x % 32, r = s * GPUCSR_SLICE + lane;
  int       windows;

  if (s * GPUCSR_SLICE >= m) return; /* the whole warp */
  const int begin = rowptr[s * GPUCSR_SLICE], end = rowptr[min(m, (s + 1) * GPUCSR_SLICE)], from = r < m ? rowptr[r] : 0, n = r < m ? rowptr[r + 1] - from : 0;
  const int first = narrow_windows(begin, end, ccol, &windows), start = windows < 0 ? starts[s] : 0, before = __shfl_up_sync(0xffffffffu, first, 1);

  length[r] = (unsigned char)n;
  if (lane < NARROW_WORDS) head[NARROW_WORDS * (int64_t)s + lane] = lane == 0 ? begin : windows >= 0 ? before : lane == 1 ? NARROW_WIDE_SLICE : lane == 2 ? start : 0;
  narrow_entries(n, from, begin, first, windows, ccol, cval, col, wide + start, val);
}

template <class V>
__global__ void __launch_bounds__(BLOCK) narrow_refresh_kernel(int m, const int *__restrict__ rowptr, const V *__restrict__ cval, V *val)
{
  const int r = (int)(blockIdx.x * BLOCK + threadIdx.x), first = r / GPUCSR_SLICE * GPUCSR_SLICE;

  if (first >= m) return; /* the whole warp */
  const int from = r < m ? rowptr[r] : 0, n = r < m ? rowptr[r + 1] - from : 0;
  narrow_entries<V>(n, from, rowptr[first], 0, 0, NULL, cval, NULL, NULL, val);
}

template <class V, class X>
__global__ void __launch_bounds__(BLOCK) narrow_diagonal_kernel(int m, int n, const int *__restrict__ head, const unsigned char *__restrict__ lengths, const unsigned short *__restrict__ col, const int *__restrict__ wide, const V *__restrict__ val, X *d)
{
  const int          r      = (int)(blockIdx.x * BLOCK + threadIdx.x);
  const unsigned int before = (1u << threadIdx.x % 32) - 1;
  X                  v      = 0;

  if (r / GPUCSR_SLICE * GPUCSR_SLICE >= m) return;
  head += NARROW_WORDS * (int64_t)(r / GPUCSR_SLICE);
  const int length = lengths[r];
  for (int k = 0, within = 0;; k++) {
    const unsigned int have = __ballot_sync(0xffffffffu, k < length);
    const int          at   = within + __popc(have & before);

    if (!have) break;
    if (k < length) {
      const int code = head[1] == NARROW_WIDE_SLICE ? 0 : col[head[0] + at], c = head[1] == NARROW_WIDE_SLICE ? wide[head[2] + at] : head[1 + NarrowWindow(code)] + NarrowWithin(code);

      if (c == r) v = X(val[head[0] + at]);
    }
    within += __popc(have);
  }
  if (r < m && r < n) d[r] = v;
}

static PetscErrorCode Count(const GPUCSRStorage *csr, int *counts, unsigned long long *total, cudaStream_t s)
{
  PetscFunctionBegin;
  narrow_count_kernel<<<GPUCSRBlocks(NarrowSlices(csr->m), WARPS), BLOCK, 0, s>>>(csr->m, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, counts, total);
  GPUCSRCheckLaunch("narrow_build (count)");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Measure_Narrow_CUDA(GPUCSRStorage *csr, int variant, GPUCSRExtent *e, GPUCSRStream st)
{
  cudaStream_t s    = (cudaStream_t)st;
  int64_t      wide = 0;

  PetscFunctionBegin;
  (void)variant;
  e->units = 0;
  if (!csr->m) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(GPUCSRStorageWork(csr, GPUCSR_INT64, 1));
  GPUCSR_CUDA(cudaMemsetAsync(csr->work.data, 0, sizeof(wide), s));
  PetscCall(Count(csr, NULL, (unsigned long long *)csr->work.data, s));
  PetscCall(GPUCSRDownload(csr->dev, &wide, GPUCSR_INT64, csr->work.data, GPUCSR_INT64, 1, PETSC_FALSE, st));
  e->units = wide;
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* Where the columns of wide slices begin, behind them room for the scan; to be freed */
static PetscErrorCode Starts(const GPUCSRStorage *csr, GPUCSRStorage *A, cudaStream_t s, size_t *bytes, void **starts)
{
  const int    slices = NarrowSlices(A->m);
  const size_t own    = (sizeof(int) * (size_t)slices + 255) / 256 * 256;
  size_t       scan   = 0;

  PetscFunctionBegin;
  GPUCSR_CUDA(cub::DeviceScan::ExclusiveSum(NULL, scan, (int *)NULL, (int *)NULL, slices, s));
  *bytes = own + scan;
  PetscCall(GPUCSRMalloc(A->dev, *bytes, "the starts of wide slices", starts));
  PetscCall(Count(csr, (int *)*starts, NULL, s));
  GPUCSR_CUDA(cub::DeviceScan::ExclusiveSum((char *)*starts + own, scan, (int *)*starts, (int *)*starts, slices, s));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode FillWhole(const GPUCSRStorage *csr, GPUCSRStorage *A, cudaStream_t s)
{
  size_t         bytes  = 0;
  void          *starts = NULL;
  PetscErrorCode ierr   = PETSC_SUCCESS;

  PetscFunctionBegin;
  GPUCSR_CUDA(cudaMemcpyAsync(A->array[NARROW_ROWPTR].data, csr->array[CSR_ROWPTR].data, sizeof(int) * ((size_t)A->m + 1), cudaMemcpyDeviceToDevice, s));
  if (A->extent.units) ierr = Starts(csr, A, s, &bytes, &starts);
#define FILL(V, X) \
  narrow_fill_kernel<V><<<GPUCSRBlocks(NarrowSlices(A->m), WARPS), BLOCK, 0, s>>>(A->m, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, (const V *)csr->array[CSR_VAL].data, (const int *)starts, \
                                                                                  (int *)A->array[NARROW_HEAD].data, (unsigned char *)A->array[NARROW_LENGTH].data, (unsigned short *)A->array[NARROW_COL].data, (int *)A->array[NARROW_WIDE].data, \
                                                                                  (V *)A->array[NARROW_VAL].data)
  if (!ierr) GPUCSRDispatchPrecision(A->precision, FILL);
  if (starts) PetscCall(GPUCSRFree(A->dev, bytes, &starts));
  PetscCall(ierr);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fill_Narrow_CUDA(const GPUCSRStorage *csr, GPUCSRStorage *A, PetscBool valuesonly, GPUCSRStream st)
{
  cudaStream_t s = (cudaStream_t)st;

  PetscFunctionBegin;
  if (!A->m) {
    if (!valuesonly) GPUCSR_CUDA(cudaMemsetAsync(A->array[NARROW_ROWPTR].data, 0, sizeof(int), s));
    PetscFunctionReturn(PETSC_SUCCESS);
  }
  if (!valuesonly) PetscCall(FillWhole(csr, A, s));
  else {
#define REFRESH(V, X) narrow_refresh_kernel<V><<<GPUCSRBlocks(A->m, BLOCK), BLOCK, 0, s>>>(A->m, (const int *)A->array[NARROW_ROWPTR].data, (const V *)csr->array[CSR_VAL].data, (V *)A->array[NARROW_VAL].data)
    GPUCSRDispatchPrecision(A->precision, REFRESH);
  }
  GPUCSRCheckLaunch("narrow_build (fill)");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diagonal_Narrow_CUDA(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  PetscFunctionBegin;
  if (!A->m) PetscFunctionReturn(PETSC_SUCCESS);
#define DIAGONAL(V, X) \
  narrow_diagonal_kernel<V, X><<<GPUCSRBlocks(A->m, BLOCK), BLOCK, 0, (cudaStream_t)s>>>(A->m, A->n, (const int *)A->array[NARROW_HEAD].data, (const unsigned char *)A->array[NARROW_LENGTH].data, (const unsigned short *)A->array[NARROW_COL].data, \
                                                                                         (const int *)A->array[NARROW_WIDE].data, (const V *)A->array[NARROW_VAL].data, (X *)d)
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
  GPUCSRCheckLaunch("narrow_build (diagonal)");
  PetscFunctionReturn(PETSC_SUCCESS);
}

GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_narrow) = {Measure_Narrow_CUDA, Fill_Narrow_CUDA, Diagonal_Narrow_CUDA, PETSC_FALSE};

/*
  The diagonal format filled on the device from CSR already there, and its diagonal.

  Diagonals are found by marking the offset of every entry, and listed by a compaction (CUB); then four warps a slice put the entries in
  their places, which lie side by side where the rows are alike.
*/
#include "device.cuh"
#include "../format/absent.h"
#include "../format/dia.h"
#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#define FILL_WARPS 4

/* seen[column - row + m - 1] = 1: 8 threads a row. Looked at first, for all rows mark the same few places */
__global__ void dia_seen_kernel(int m, const int *__restrict__ rowptr, const int *__restrict__ col, unsigned char *seen)
{
  const int r = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 8);

  if (r >= m) return;
  for (int k = rowptr[r] + (int)(threadIdx.x % 8); k < rowptr[r + 1]; k += 8) {
    unsigned char *mark = seen + ((int64_t)col[k] - r + m - 1);

    if (!*mark) *mark = 1;
  }
}

__global__ void dia_count_kernel(int64_t n, const unsigned char *__restrict__ seen, int *count)
{
  int mine = 0;

  for (int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; k < n; k += (int64_t)gridDim.x * blockDim.x) mine += seen[k];
  mine = reduce<32>(mine);
  if (threadIdx.x % 32 == 0 && mine) atomicAdd(count, mine);
}

template <class V>
__global__ void __launch_bounds__(FILL_WARPS *GPUCSR_SLICE) dia_fill_kernel(int m, int diagonals, const int *__restrict__ offset, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ from, V *to)
{
  const int r = (int)(blockIdx.x * GPUCSR_SLICE + threadIdx.x);

  if (r >= m) return;
  for (int k = rowptr[r] + (int)threadIdx.y; k < rowptr[r + 1]; k += FILL_WARPS) to[DIAEntry(diagonals, r, DIAFind(offset, diagonals, col[k] - r))] = present(from[k]);
}

template <class V, class X>
__global__ void dia_diagonal_kernel(int n, int diagonals, const int *__restrict__ offset, const V *__restrict__ val, X *d)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x), main = DIAFind(offset, diagonals, 0);
  X         v = 0;

  if (r >= n) return;
  if (diagonals && offset[main] == 0 && !is_absent(val[DIAEntry(diagonals, r, main)])) v = X(val[DIAEntry(diagonals, r, main)]);
  d[r] = v;
}

/* One byte a diagonal that there could be; the caller frees them */
static PetscErrorCode Seen(const GPUCSRStorage *csr, size_t extra, unsigned char **seen, cudaStream_t s)
{
  const size_t n = (size_t)csr->m + (size_t)csr->n;

  PetscFunctionBegin;
  PetscCall(GPUCSRMalloc(csr->dev, n + extra, "marks of diagonals", (void **)seen));
  (void)cudaMemsetAsync(*seen, 0, n + extra, s);
  dia_seen_kernel<<<GPUCSRBlocks((int64_t)csr->m * 8, 256), 256, 0, s>>>(csr->m, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, *seen + extra);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Measure(const GPUCSRStorage *csr, int variant, GPUCSRExtent *e, GPUCSRStream st)
{
  const int64_t  n     = (int64_t)csr->m + csr->n;
  cudaStream_t   s     = (cudaStream_t)st;
  unsigned char *seen  = NULL;
  int32_t        count = 0;
  PetscErrorCode ierr;

  PetscFunctionBegin;
  (void)variant;
  if (!csr->m) PetscFunctionReturn(PETSC_SUCCESS);
  PetscCall(Seen(csr, 16, &seen, s)); /* the count in front */
  dia_count_kernel<<<GPUCSRBlocks(PetscMin(n, 1 << 18), 256), 256, 0, s>>>(n, seen + 16, (int *)seen);
  ierr = GPUCSRDownload(csr->dev, &count, GPUCSR_INT32, seen, GPUCSR_INT32, 1, PETSC_FALSE, st);
  PetscCall(GPUCSRFree(csr->dev, (size_t)n + 16, (void **)&seen));
  PetscCall(ierr);
  GPUCSRCheckLaunch("dia_build (diagonals)");
  e->units  = count;
  e->stored = ((int64_t)csr->m + GPUCSR_SLICE - 1) / GPUCSR_SLICE * GPUCSR_SLICE * e->units;
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Offsets(const GPUCSRStorage *csr, GPUCSRStorage *A, cudaStream_t s)
{
  const int64_t                  n      = (int64_t)csr->m + csr->n;
  unsigned char                 *seen   = NULL;
  int                           *offset = (int *)A->array[DIA_OFFSET].data, *count;
  size_t                         bytes  = 0;
  void                          *temp   = NULL;
  thrust::counting_iterator<int> offsets(1 - csr->m);

  PetscFunctionBegin;
  PetscCall(Seen(csr, 16, &seen, s));
  count = (int *)seen;
  GPUCSR_CUDA(cub::DeviceSelect::Flagged(NULL, bytes, offsets, seen + 16, offset, count, n, s));
  PetscCall(GPUCSRMalloc(csr->dev, bytes, "the list of diagonals", &temp));
  const cudaError_t err = cub::DeviceSelect::Flagged(temp, bytes, offsets, seen + 16, offset, count, n, s);
  PetscCall(GPUCSRFree(csr->dev, bytes, &temp));
  PetscCall(GPUCSRFree(csr->dev, (size_t)n + 16, (void **)&seen));
  GPUCSR_CUDA(err);
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Fill(const GPUCSRStorage *csr, GPUCSRStorage *A, PetscBool valuesonly, GPUCSRStream st)
{
  cudaStream_t s = (cudaStream_t)st;

  PetscFunctionBegin;
  if (!A->stored) PetscFunctionReturn(PETSC_SUCCESS);
  if (!valuesonly) {
    PetscCall(Offsets(csr, A, s));
    GPUCSR_CUDA(cudaMemsetAsync(A->array[DIA_VAL].data, GPUCSR_ABSENT, A->array[DIA_VAL].count * GPUCSRTypeSize(A->array[DIA_VAL].type), s));
  }
#define FILL(V, X) \
  dia_fill_kernel<V><<<GPUCSRBlocks(A->m, GPUCSR_SLICE), dim3(GPUCSR_SLICE, FILL_WARPS), 0, s>>>(A->m, (int)A->extent.units, (const int *)A->array[DIA_OFFSET].data, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, \
                                                                                                 (const V *)csr->array[CSR_VAL].data, (V *)A->array[DIA_VAL].data)
  GPUCSRDispatchPrecision(A->precision, FILL);
  GPUCSRCheckLaunch("dia_build (fill)");
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Diagonal(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  const int n = PetscMin(A->m, A->n);

  PetscFunctionBegin;
  if (!n) PetscFunctionReturn(PETSC_SUCCESS);
#define DIAGONAL(V, X) dia_diagonal_kernel<V, X><<<GPUCSRBlocks(n, 256), 256, 0, (cudaStream_t)s>>>(n, (int)A->extent.units, (const int *)A->array[DIA_OFFSET].data, (const V *)A->array[DIA_VAL].data, (X *)d)
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
  GPUCSRCheckLaunch("dia_build (diagonal)");
  PetscFunctionReturn(PETSC_SUCCESS);
}

/* without its pattern CSR does not say where a value goes */
GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_dia) = {Measure, Fill, Diagonal, PETSC_TRUE};

/*
  y = A x, dense, by cuBLAS; and the dense format filled on the device, and its diagonal.

  cuBLAS is opened at the first use, not linked, so that the library loads without a CUDA toolkit. Rows here are cuBLAS' columns: the product is its
  transposed one.

  Bytes: v m n, n x, m y. Wins if two thirds or more of the entries are there; loses below.
*/
#include "../device.cuh"
#include <dlfcn.h>

/* The part of cublas_v2.h used here, as a compiler installed alone comes without it; the ABI is that of CUDA 8 and later */
typedef struct cublasContext *cublasHandle_t;
typedef int                   cublasStatus_t, cublasOperation_t;
#define CUBLAS_STATUS_SUCCESS 0
#define CUBLAS_OP_T           1

static struct {
  bool  tried;
  void *lib;
  cublasStatus_t (*create)(cublasHandle_t *);
  cublasStatus_t (*destroy)(cublasHandle_t);
  cublasStatus_t (*setstream)(cublasHandle_t, cudaStream_t);
  cublasStatus_t (*dgemv)(cublasHandle_t, cublasOperation_t, int, int, const double *, const double *, int, const double *, int, const double *, double *, int);
  cublasStatus_t (*sgemv)(cublasHandle_t, cublasOperation_t, int, int, const float *, const float *, int, const float *, int, const float *, float *, int);
  cublasHandle_t handle; /* one device for each process */
} blas;

static GPUCSRError Available_dense_gemv(GPUCSRBool *yes, char why[], size_t len)
{
  if (!blas.tried) {
    char name[32];

    blas.tried = true;
    /* the version of the build's toolkit, then older ones: these functions have not changed since CUDA 8 */
    for (int version = CUDART_VERSION / 1000; version >= 11 && !blas.lib; version--) {
      (void)snprintf(name, sizeof(name), "libcublas.so.%d", version);
      blas.lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (!blas.lib) blas.lib = dlopen("libcublas.so", RTLD_NOW | RTLD_LOCAL);
    if (blas.lib) {
      *(void **)&blas.create    = dlsym(blas.lib, "cublasCreate_v2");
      *(void **)&blas.destroy   = dlsym(blas.lib, "cublasDestroy_v2");
      *(void **)&blas.setstream = dlsym(blas.lib, "cublasSetStream_v2");
      *(void **)&blas.dgemv     = dlsym(blas.lib, "cublasDgemv_v2");
      *(void **)&blas.sgemv     = dlsym(blas.lib, "cublasSgemv_v2");
    }
  }
  *yes = blas.lib && blas.create && blas.destroy && blas.setstream && blas.dgemv && blas.sgemv ? true : false;
  if (!*yes) (void)snprintf(why, len, "libcublas was not found; put its folder into LD_LIBRARY_PATH");
  return 0;
}

#define CUBLASCall(call) \
  do { \
    cublasStatus_t st_ = (call); \
    GPUCSRCheck(st_ == CUBLAS_STATUS_SUCCESS, GPUCSR_ERR_GPU, "%s failed with cuBLAS status %d", #call, (int)st_); \
  } while (0)

/* Floats with vectors of doubles, which cuBLAS lacks: the same layout, without absent entries */
GPUCSR_DECLARE(GPUCSRKernelFamily, GPUCSRKernel_bitdense_gemv);

static GPUCSRError Prepare_dense_gemv(GPUCSRStorage *A, int variant)
{
  GPUCSRBool yes;
  char       why[128];

  GPUCSRCall(Available_dense_gemv(&yes, why, sizeof(why)));
  GPUCSRCheck(yes, GPUCSR_ERR_SUP, "Kernel dense_gemv cannot run: %s", why);
  if (!blas.handle) CUBLASCall(blas.create(&blas.handle));
  if (A->precision != GPUCSR_PRECISION_DOUBLE) GPUCSRCall((*GPUCSRKernel_bitdense_gemv.prepare)(A, variant));
  return 0;
}

static GPUCSRError Release_dense_gemv(void)
{
  if (blas.handle) (void)blas.destroy(blas.handle); /* fails, too, after a failure of the device, without a loss */
  blas.handle = NULL;
  return 0;
}

/* cuBLAS refuses an inner dimension of 0, which leaves z = beta y */
template <class X>
__global__ void scale_kernel(int n, X beta, const X *y, X *z)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r < n) z[r] = beta == X(0) ? X(0) : beta * y[r];
}

static GPUCSRError Launch_dense_gemv(const GPUCSRStorage *A, const GPUCSRProduct *p, int variant, GPUCSRStream s)
{
  const int    rows = p->last - p->first;
  const size_t size = GPUCSRTypeSize(GPUCSRVectorType(A->precision));
  char        *z    = (char *)p->z + size * (size_t)p->first;

  if (A->precision == GPUCSR_PRECISION_MIXED) {
    GPUCSRCall((*GPUCSRKernel_bitdense_gemv.launch)(A, p, variant, s));
    return 0;
  }
  if (A->n == 0) {
    if (size == 8) scale_kernel<<<GPUCSRBlocks(rows, 256), 256, 0, (cudaStream_t)s>>>(rows, p->beta, (const double *)p->y + p->first, (double *)z);
    else scale_kernel<<<GPUCSRBlocks(rows, 256), 256, 0, (cudaStream_t)s>>>(rows, (float)p->beta, (const float *)p->y + p->first, (float *)z);
    GPUCSRCheckLaunch("dense_gemv");
    return 0;
  }
  CUBLASCall(blas.setstream(blas.handle, (cudaStream_t)s));
  if (p->beta != 0 && p->y != p->z) GPUCSR_CUDA(cudaMemcpyAsync(z, (const char *)p->y + size * (size_t)p->first, size * (size_t)rows, cudaMemcpyDeviceToDevice, (cudaStream_t)s));
  if (size == 8) {
    CUBLASCall(blas.dgemv(blas.handle, CUBLAS_OP_T, A->n, rows, &p->alpha, (const double *)A->array[0].data + (size_t)p->first * (size_t)A->n, A->n, (const double *)p->x, 1, &p->beta, (double *)z, 1));
  } else {
    const float alpha = (float)p->alpha, beta = (float)p->beta;

    CUBLASCall(blas.sgemv(blas.handle, CUBLAS_OP_T, A->n, rows, &alpha, (const float *)A->array[0].data + (size_t)p->first * (size_t)A->n, A->n, (const float *)p->x, 1, &beta, (float *)z, 1));
  }
  return 0;
}

GPUCSR_EXPORT(GPUCSRKernelFamily, GPUCSRKernel_dense_gemv) = {true, Available_dense_gemv, Prepare_dense_gemv, Launch_dense_gemv, Release_dense_gemv};

/* 32 threads for a row and each block of the grid's second direction */
template <class V>
__global__ void dense_fill_kernel(int m, int n, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ from, V *to)
{
  const int r = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32);

  if (r >= m) return;
  for (int64_t k = rowptr[r] + (int64_t)(32 * blockIdx.y + threadIdx.x % 32); k < rowptr[r + 1]; k += 32 * gridDim.y) to[(size_t)r * (size_t)n + (size_t)col[k]] = from[k];
}

template <class V, class X>
__global__ void dense_diagonal_kernel(int n, size_t stride, const V *__restrict__ val, X *d)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r < n) d[r] = X(val[(size_t)r * stride]);
}

static GPUCSRError Fill_Dense_CUDA(const GPUCSRStorage *csr, GPUCSRStorage *A, GPUCSRBool valuesonly, GPUCSRStream s)
{
  /* the place of a value depends on the pattern, so a refresh uploads the pattern, too */
  (void)valuesonly;
  GPUCSR_CUDA(cudaMemsetAsync(A->array[0].data, 0, A->array[0].count * GPUCSRTypeSize(A->array[0].type), (cudaStream_t)s));
  if (!A->m) return 0;
#define FILL(V, X) \
  dense_fill_kernel<V><<<dim3(GPUCSRBlocks((int64_t)A->m * 32, 256), (unsigned int)GPUCSRMin(A->n / 1024 + 1, 65535)), 256, 0, (cudaStream_t)s>>>(A->m, A->n, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, \
                                                                                                                                                  (const V *)csr->array[CSR_VAL].data, (V *)A->array[0].data)
  GPUCSRDispatchPrecision(A->precision, FILL);
  GPUCSRCheckLaunch("dense_gemv (fill)");
  return 0;
}

static GPUCSRError Diagonal_Dense_CUDA(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  const int n = GPUCSRMin(A->m, A->n);

  if (!n) return 0;
#define DIAGONAL(V, X) dense_diagonal_kernel<V, X><<<GPUCSRBlocks(n, 256), 256, 0, (cudaStream_t)s>>>(n, (size_t)A->n + 1, (const V *)A->array[0].data, (X *)d)
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
  GPUCSRCheckLaunch("dense_gemv (diagonal)");
  return 0;
}

GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_dense) = {NULL, Fill_Dense_CUDA, Diagonal_Dense_CUDA, true};

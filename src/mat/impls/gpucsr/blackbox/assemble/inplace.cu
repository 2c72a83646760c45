/*
  Changes of a matrix in place on a GPU. Every kernel reads and writes each value once; those that need the row of a value have 8 threads for a row. Products of two roundings are not fused where MATAIJ
  rounds twice.
*/
#include "inplace.h"
#include "../kernels/device.cuh"

#define THREADS 256
#define LANES   8 /* of a row */

struct rows {
  const int *i, *j;
  double    *a;
};

static inline rows RowsOf(const GPUCSRStorage *A)
{
  return {(const int *)A->array[CSR_ROWPTR].data, (const int *)A->array[CSR_COL].data, (double *)A->array[CSR_VAL].data};
}

static inline cudaStream_t StreamOf(const GPUCSRStorage *A)
{
  return (cudaStream_t)A->dev->stream;
}

#define ROW      const int r = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / LANES), lane = (int)(threadIdx.x % LANES)
#define BYROW(n) GPUCSRBlocks((int64_t)(n)*LANES, THREADS), THREADS, 0
#define EACH(n)  GPUCSRBlocks(n, THREADS), THREADS, 0

__global__ void scale_kernel(int64_t n, double f, double *a)
{
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (k < n) a[k] *= f;
}

GPUCSRError GPUCSRScale_CUDA(double f, GPUCSRStorage *A)
{
  if (!A->nnz) return 0;
  scale_kernel<<<EACH(A->nnz), StreamOf(A)>>>(A->nnz, f, RowsOf(A).a);
  GPUCSRCheckLaunch("assemble (scale)");
  return 0;
}

__global__ void diagonalscale_kernel(int m, rows x, const double *__restrict__ l, const double *__restrict__ r_)
{
  ROW;

  if (r >= m) return;
  const double f = l ? l[r] : 1;
  for (int k = x.i[r] + lane; k < x.i[r + 1]; k += LANES) {
    double v = x.a[k];

    if (l) v *= f;
    if (r_) v *= r_[x.j[k]];
    x.a[k] = v;
  }
}

GPUCSRError GPUCSRDiagonalScale_CUDA(const double *l, const double *r, GPUCSRStorage *A)
{
  if (!A->nnz) return 0;
  diagonalscale_kernel<<<BYROW(A->m), StreamOf(A)>>>(A->m, RowsOf(A), l, r);
  GPUCSRCheckLaunch("assemble (diagonal scale)");
  return 0;
}

/* Every row takes part: lanes of a row agree */
__global__ void missing_kernel(int n, rows x, int *missing)
{
  ROW;
  int found = 0;

  if (r < n)
    for (int k = x.i[r] + lane; k < x.i[r + 1]; k += LANES) found |= x.j[k] == r;
  found = reduce<LANES>(found);
  if (r < n && !lane && !found) *missing = 1;
}

GPUCSRError GPUCSRMissing_CUDA(const GPUCSRStorage *A, GPUCSRBool *missing)
{
  GPUCSRDevice dev  = A->dev;
  const int    n    = GPUCSRMin(A->m, A->n);
  void        *flag = NULL;
  int          yes  = 0;
  GPUCSRError  ierr;

  *missing = false;
  if (!n) return 0;
  GPUCSRCall(GPUCSRMalloc(dev, sizeof(int), "a diagonal's flag", &flag));
  ierr = dev->ops->zero(dev->id, flag, sizeof(int), dev->stream);
  if (!ierr) {
    missing_kernel<<<BYROW(n), StreamOf(A)>>>(n, RowsOf(A), (int *)flag);
    ierr = dev->ops->copy(dev->id, &yes, flag, sizeof(int), GPUCSR_TO_HOST, dev->stream);
  }
  if (!ierr) ierr = dev->ops->streamsynchronize(dev->id, dev->stream);
  GPUCSRCall(GPUCSRFree(dev, sizeof(int), &flag));
  GPUCSRCall(ierr);
  GPUCSRCheckLaunch("assemble (missing)");
  *missing = yes ? true : false;
  return 0;
}

__global__ void setdiagonal_kernel(int n, rows x, const double *__restrict__ d, double s, bool add)
{
  ROW;

  if (r >= n) return;
  for (int k = x.i[r] + lane; k < x.i[r + 1]; k += LANES)
    if (x.j[k] == r) x.a[k] = (add ? x.a[k] : 0) + (d ? d[r] : s);
}

GPUCSRError GPUCSRDiagonal_CUDA(const double *d, double s, GPUCSRBool add, GPUCSRStorage *A)
{
  const int n = GPUCSRMin(A->m, A->n);

  if (!n) return 0;
  setdiagonal_kernel<<<BYROW(n), StreamOf(A)>>>(n, RowsOf(A), d, s, add != 0);
  GPUCSRCheckLaunch("assemble (diagonal)");
  return 0;
}

__global__ void add_kernel(int64_t n, double f, const double *__restrict__ x, double *y)
{
  const int64_t k = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (k < n) y[k] += f * x[k];
}

GPUCSRError GPUCSRAdd_CUDA(double f, const GPUCSRStorage *X, GPUCSRStorage *Y)
{
  if (!Y->nnz) return 0;
  add_kernel<<<EACH(Y->nnz), StreamOf(Y)>>>(Y->nnz, f, RowsOf(X).a, RowsOf(Y).a);
  GPUCSRCheckLaunch("assemble (add)");
  return 0;
}

__global__ void zerorows_kernel(int n, const int *__restrict__ row, double d, rows x)
{
  ROW;

  if (r >= n) return;
  for (int k = x.i[row[r]] + lane; k < x.i[row[r] + 1]; k += LANES) x.a[k] = x.j[k] == row[r] ? d : 0;
}

GPUCSRError GPUCSRZeroRows_CUDA(int n, const int32_t *row, double d, GPUCSRStorage *A)
{
  if (!n) return 0;
  zerorows_kernel<<<BYROW(n), StreamOf(A)>>>(n, row, d, RowsOf(A));
  GPUCSRCheckLaunch("assemble (zero rows)");
  return 0;
}

__global__ void zerorowscolumns_kernel(int m, int n, const int *__restrict__ row, double d, const double *__restrict__ x, double *b, rows a)
{
  ROW;
  double t = 0;

  if (r < m) {
    const bool all = row[r] != 0;

    for (int k = a.i[r] + lane; k < a.i[r + 1]; k += LANES) {
      const int c = a.j[k];

      if (all) a.a[k] = c == r ? d : 0;
      else if (c < m && row[c]) {
        if (x) t += a.a[k] * x[c];
        a.a[k] = 0;
      }
    }
  }
  t = reduce<LANES>(t);
  if (r >= m || lane || !x) return;
  if (!row[r]) b[r] -= t;
  else if (r < n) b[r] = d * x[r];
}

GPUCSRError GPUCSRZeroRowsColumns_CUDA(const int32_t *row, double d, const double *x, double *b, GPUCSRStorage *A)
{
  if (!A->m) return 0;
  zerorowscolumns_kernel<<<BYROW(A->m), StreamOf(A)>>>(A->m, A->n, row, d, x, b, RowsOf(A));
  GPUCSRCheckLaunch("assemble (zero rows and columns)");
  return 0;
}

/* One thread for a row: the first of equal entries wins */
__global__ void rowmaxabs_kernel(int m, rows x, double *v, int *column)
{
  const int r    = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  double    most = 0;
  int       at   = -1;

  if (r >= m) return;
  for (int k = x.i[r]; k < x.i[r + 1]; k++) {
    if (!(fabs(x.a[k]) > most)) continue;
    most = fabs(x.a[k]);
    at   = x.j[k];
  }
  v[r] = most;
  if (column && at >= 0) column[r] = at;
}

GPUCSRError GPUCSRRowMaxAbs_CUDA(const GPUCSRStorage *A, double *v, int32_t *column)
{
  if (!A->m) return 0;
  rowmaxabs_kernel<<<EACH(A->m), StreamOf(A)>>>(A->m, RowsOf(A), v, column);
  GPUCSRCheckLaunch("assemble (row maxima)");
  return 0;
}

#define PARTS 1024 /* blocks of a norm, whose results the host combines in their order */

template <bool squares>
__global__ void norm_kernel(int m, rows x, double *part)
{
  __shared__ double warp[THREADS / 32];
  const int         lane = (int)(threadIdx.x % LANES);
  double            all  = 0;

  for (int64_t first = (int64_t)blockIdx.x * (THREADS / LANES); first < m; first += (int64_t)gridDim.x * (THREADS / LANES)) {
    const int64_t r = first + threadIdx.x / LANES;
    double        t = 0;

    if (r < m)
      for (int k = x.i[r] + lane; k < x.i[r + 1]; k += LANES) t += squares ? x.a[k] * x.a[k] : fabs(x.a[k]);
    t = reduce<LANES>(t);
    if (lane) t = 0;
    all = squares ? all + t : t > all ? t : all;
  }
  for (int k = 16; k > 0; k /= 2) {
    const double other = __shfl_xor_sync(0xffffffff, all, k);

    all = squares ? all + other : other > all ? other : all;
  }
  if (threadIdx.x % 32 == 0) warp[threadIdx.x / 32] = all;
  __syncthreads();
  if (threadIdx.x) return;
  for (int k = 1; k < THREADS / 32; k++) all = squares ? all + warp[k] : warp[k] > all ? warp[k] : all;
  part[blockIdx.x] = all;
}

GPUCSRError GPUCSRNorm_CUDA(const GPUCSRStorage *A, GPUCSRNormKind kind, double *norm)
{
  GPUCSRDevice dev   = A->dev;
  const size_t bytes = sizeof(double) * PARTS;
  void        *part  = NULL;
  double       host[PARTS];
  GPUCSRError  ierr;

  *norm = 0;
  if (!A->nnz) return 0;
  GPUCSRCall(GPUCSRMalloc(dev, bytes, "a norm", &part));
  if (kind == GPUCSR_SUM_OF_SQUARES) norm_kernel<true><<<PARTS, THREADS, 0, StreamOf(A)>>>(A->m, RowsOf(A), (double *)part);
  else norm_kernel<false><<<PARTS, THREADS, 0, StreamOf(A)>>>(A->m, RowsOf(A), (double *)part);
  ierr = dev->ops->copy(dev->id, host, part, bytes, GPUCSR_TO_HOST, dev->stream);
  if (!ierr) ierr = dev->ops->streamsynchronize(dev->id, dev->stream);
  GPUCSRCall(GPUCSRFree(dev, bytes, &part));
  GPUCSRCall(ierr);
  GPUCSRCheckLaunch("assemble (norm)");
  for (int k = 0; k < PARTS; k++) *norm = kind == GPUCSR_SUM_OF_SQUARES ? *norm + host[k] : GPUCSRMax(*norm, host[k]);
  return 0;
}

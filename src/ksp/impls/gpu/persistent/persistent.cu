/* The format-independent part of a persistent kernel: its shape, the row ranges of its blocks, and their ranges of columns. The kernels begin in solve.cuh */
#include "persistent.cuh"

/* The product of A's format, which must be in the list */
static const GPUKSPPersistentProduct *product_of(const GPUCSRStorage *A)
{
#define GPUKSP_FORMAT(name, sharing, before, moved, offsets, needs) &GPUKSPPersistent_##name,
  static const GPUKSPPersistentProduct *const products[] = {
#include "persistentlist.h"
  };
#undef GPUKSP_FORMAT

  return products[GPUKSPFormatOf(A->format) - GPUKSPFormats];
}

/* ---- ranges of rows of about equal work ---- */

/* prefix[r / step] * weight entries are stored before row r; without prefix all rows have the same number. A row itself costs as much as ROW_ENTRIES entries, a row with off-diagonal entries more */
#define ROW_ENTRIES 6

struct Work {
  int        m, step, weight, each; /* each: entries of a row without prefix, for comparison with the off-diagonal block's */
  const int *prefix;
  int        rows, more; /* of the off-diagonal block */
  const int *row;

  __device__ int64_t before(int r) const
  {
    const int *const off = row;
    const int        low = bisect(0, rows, [=](int k) { return off[k] < r; });

    return (prefix ? (int64_t)weight * prefix[(r + step - 1) / step] : (int64_t)each * r) + (int64_t)ROW_ENTRIES * r + (int64_t)more * low;
  }
};

__global__ void partition_kernel(const Work work, int align, int blocks, int *bounds)
{
  const int     b = (int)(blockIdx.x * blockDim.x + threadIdx.x), m = work.m, units = (m + align - 1) / align;
  const int64_t all = work.before(m), want = all / blocks * b + all % blocks * b / blocks;

  if (b <= blocks) bounds[b] = b == blocks ? m : min(m, align * bisect(0, units, [=](int u) { return work.before(min(m, u * align)) < want; }));
}

/* In large blocks the extra cost of a row with off-diagonal entries falls before the second of two reductions, where there is little other work */
GPUCSRError GPUKSPPersistentPartition(const GPUCSRStorage *A, int align, int blocks, const GPUKSPPeers *o, int *bounds, GPUCSRStream s)
{
  const GPUKSPFormat *f      = GPUKSPFormatOf(A->format);
  const int           slice  = f->sharing == GPUKSP_BY_WARPS ? GPUCSR_SLICE : 1;
  const int          *prefix = f->before >= 0 && A->array[f->before].count ? (const int *)A->array[f->before].data : NULL;
  const Work          work   = {A->m, slice, slice, o->rows ? (int)(A->nnz / GPUCSRMax(1, A->m)) : 0, prefix, o->rows, A->m / blocks < GPUCSRMachineShared.written_rows ? o->weight : o->weight * 3 / 2, o->row};

  while (align % GPUCSR_SLICE) align *= 2;
  if (f->moved >= 0 && A->array[f->moved].count)
    while (align % A->format->variant) align *= 2;
  partition_kernel<<<GPUCSRBlocks(blocks + 1, 128), 128, 0, (cudaStream_t)s>>>(work, align, blocks, bounds);
  GPUCSRCheckLaunch("the partition of a solve");
  return 0;
}

/* ---- the shape ---- */

/* Warps that share a slice, or threads that share a row of CSR, in blocks of `size` threads */
static int Share(const GPUCSRStorage *A, int blocks, int size)
{
  const double mean   = (double)A->nnz / GPUCSRMax(1, A->m);
  const int    slices = (A->m / GPUCSR_SLICE + blocks) / blocks, rows = (A->m + blocks - 1) / blocks;
  int          share;

  if (GPUKSPFormatOf(A->format)->sharing == GPUKSP_BY_WARPS) {
    for (share = 1; 2 * share * slices <= size / 32 && 2 * share <= mean; share *= 2) {
    }
  } else {
    for (share = 1; 2 * share <= 32 && (8 * share <= mean || (2 * share * rows <= size && 2 * share <= mean)); share *= 2) {
    }
  }
  return share;
}

static int Ascending(const void *a, const void *b)
{
  return *(const int *)a < *(const int *)b ? -1 : *(const int *)a > *(const int *)b;
}

/* The windows of a chunk of rows; none if there would be too many, or if they need more than three quarters of the shared memory */
static GPUCSRError Window(const GPUCSRStorage *A, int chunk, size_t shared, GPUKSPWindows *w, cudaStream_t s)
{
  const GPUCSRArray *offsets = &A->array[GPUKSPFormatOf(A->format)->offsets];
  const int          n       = (int)offsets->count;
  HostArray<int>     offset;
  cudaError_t        err;

  memset(w, 0, sizeof(*w));
  GPUCSRCall(offset.make((size_t)n + 1));
  offset[n] = 0;
  err       = cudaMemcpyAsync(offset.p, offsets->data, sizeof(int) * (size_t)n, cudaMemcpyDeviceToHost, s);
  if (!err) err = cudaStreamSynchronize(s);
  GPUCSR_CUDA(err);
  qsort(offset.p, (size_t)n + 1, sizeof(int), Ascending);
  for (int k = 0; k <= n;) {
    const int lo = offset[k] & ~(GPUKSP_ALIGN - 1);
    int       hi = lo;

    for (; k <= n && offset[k] - hi <= chunk; k++) hi = offset[k];
    if (w->count == GPUKSP_WINDOWS) {
      w->count = 0;
      break;
    }
    w->lo[w->count]    = lo;
    w->wide[w->count]  = (chunk + hi - lo + GPUKSP_ALIGN) / GPUKSP_ALIGN * GPUKSP_ALIGN;
    w->place[w->count] = w->length;
    w->length += w->wide[w->count++];
  }
  if (4 * sizeof(double) * (size_t)w->length > shared / 4 * 3) w->count = 0;
  if (!w->count) w->length = 0;
  w->own = w->at(0);
  return 0;
}

/* Bytes of shared memory that a kernel needs before any vector: for the matrix, the diagonals of stencils, and windows */
static GPUCSRError Tables(const GPUKSPPersistent *L, size_t *bytes)
{
  GPUCSRCall((*product_of(L->A)->shared)(L, bytes));
  *bytes += sizeof(double) * (4 * (size_t)L->windows.length + (L->windows.count ? GPUKSP_ALIGN : 0));
  if (GPUKSPFormatIsTable(L->A->format)) *bytes += sizeof(double) * 2 * (size_t)(GPUCSRMin(L->A->extent.units, GPUKSP_STENCILS) + 1);
  return 0;
}

/* Shared memory besides tables and windows: scratch for a product's sums, and some for vectors */
#define ROOM (2 * MOST_THREADS * sizeof(double))

/* Can this device run the solve as one persistent kernel? Fills in blocks, threads, shared */
GPUCSRError GPUKSPPersistentShape(GPUCSRDevice dev, GPUKSPPersistent *L, GPUCSRBool *possible, char why[], size_t len)
{
  const GPUCSRStorage           *A       = L->A;
  const GPUKSPPersistentProduct *f       = product_of(A);
  const int                      vectors = L->method == GPUKSP_CG && !L->v.explicitpc ? 3 : 6, size = 8;
  int                            cooperative = 0, clusters = 0, most = -1;
  size_t                         need, matrix = 0;

  GPUCSR_CUDA(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, dev->id));
  GPUCSR_CUDA(cudaDeviceGetAttribute(&clusters, cudaDevAttrClusterLaunch, dev->id));
  *possible = (GPUCSRBool)cooperative;
  if (!cooperative) {
    (void)snprintf(why, len, "the device has no cooperative launches");
    return 0;
  }
  L->halo = false;
  memset(&L->windows, 0, sizeof(L->windows));
  L->written = false;
  L->size    = MOST_THREADS;
  for (L->cluster = (GPUCSRBool)(clusters && !L->peers.size && (double)A->nnz < (GPUKSPFormatIsTable(A->format) ? 2 : 1) * GPUCSRMachineShared.cluster_entries); most < 0; L->cluster = false) {
    L->blocks  = (int)GPUCSRMax(1, GPUCSRMin(L->cluster ? CLUSTER : dev->props.processors, (A->m + GPUCSR_SLICE - 1) / GPUCSR_SLICE));
    L->threads = Share(A, L->blocks, L->size);
    GPUCSRCall((*f->run)(L, &most, NULL));
    if (most >= 0) break;
  }
  if (!L->cluster && L->method == GPUKSP_CG && !L->v.explicitpc && A->m / L->blocks >= GPUCSRMachineShared.written_rows) {
    const GPUCSRBool known = (GPUCSRBool)(GPUKSPFormatOf(A->format)->offsets >= 0);

    L->written = (GPUCSRBool)!known;
    GPUCSRCall(Tables(L, &matrix));
    if (known && (size_t)most > matrix + ROOM) GPUCSRCall(Window(A, WINDOW_ROWS * WINDOW_THREADS, (size_t)most - matrix - ROOM, &L->windows, (cudaStream_t)dev->stream));
    if (L->windows.count) L->size = WINDOW_THREADS;
    GPUCSRCall((*f->run)(L, &most, NULL));
  }
  if (!L->cluster && L->method == GPUKSP_BCGS && !L->peers.size && !L->v.block && A->m / L->blocks >= GPUCSRMachineShared.written_rows) {
    L->written = true;
    GPUCSRCall((*f->run)(L, &most, NULL));
  }
  GPUCSRCall(Tables(L, &matrix));
  if ((size_t)most < matrix + MOST_THREADS * sizeof(double)) {
    *possible = false;
    (void)snprintf(why, len, "its stencils do not fit the shared memory of a block");
    return 0;
  }
  /* the vectors private to a block, as far as the product's gathers keep a cache */
  need      = matrix + (size_t)vectors * (size_t)size * (size_t)((double)A->m / L->blocks * 1.1 + 128) + MOST_THREADS * sizeof(double);
  L->shared = GPUCSRMin(need, GPUCSRMax(matrix + MOST_THREADS * sizeof(double), (size_t)(L->windows.count ? most : GPUCSRMin(most, SHARED_MOST)))) / 16 * 16;
  return 0;
}

/* The range of halo entries for a block's rows of the off-diagonal block: the first, and one past the last */
__global__ void remote_reach_kernel(const GPUKSPPeers o, const int *bounds, int *reach)
{
  __shared__ int ends[2];

  if (threadIdx.x < 2) ends[threadIdx.x] = threadIdx.x ? 0 : o.halo;
  __syncthreads();
  for (int k = threadIdx.x; k < o.rows; k += blockDim.x) {
    if (o.row[k] < bounds[blockIdx.x] || o.row[k] >= bounds[blockIdx.x + 1]) continue;
    for (int e = o.slice[k / GPUCSR_SLICE]; e < o.slice[k / GPUCSR_SLICE + 1]; e++) {
      const int h = o.col[GPUCSR_SLICE * (int64_t)e + k % GPUCSR_SLICE] - o.tail;

      if (h < 0) continue; /* padding */
      atomicMin(&ends[0], h);
      atomicMax(&ends[1], h + 1);
    }
  }
  __syncthreads();
  if (threadIdx.x < 2) reach[2 * blockIdx.x + threadIdx.x] = threadIdx.x ? max(ends[0], ends[1]) : ends[0];
}

/* Halos are recomputed (halo.cuh) if a block's shared memory holds its halo of two vectors besides its own rows. After GPUKSPPersistentPartition() */
GPUCSRError GPUKSPPersistentHalo(GPUKSPPersistent *L, GPUCSRStream s)
{
  const GPUKSPPersistentProduct *f    = product_of(L->A);
  const GPUCSRBool               bcgs = (GPUCSRBool)(L->method == GPUKSP_BCGS);
  GPUKSPPersistent               with = *L;
  int                            ends[2 * GPUKSP_BLOCKS], remote[2 * GPUKSP_BLOCKS] = {0}, bounds[GPUKSP_BLOCKS + 1], most, rows = 0;
  size_t                         need = 0, vectors = 0;

  /* BiCGStab of one rank with long rows of stored entries is slower with recomputed halos */
  if (bcgs && !L->peers.size && !GPUKSPFormatIsTable(L->A->format) && L->A->nnz > HALO_LONG * (int64_t)L->A->m) return 0;
  if (L->v.explicitpc || L->v.block) return 0;
  GPUCSRCall((*f->reach)(L, s));
  if (L->peers.size) {
    remote_reach_kernel<<<(unsigned)L->blocks, 256, 0, (cudaStream_t)s>>>(L->peers, L->bounds, L->reach + 2 * L->blocks);
    GPUCSRCheckLaunch("the halo entries of a solve's blocks");
    GPUCSR_CUDA(cudaMemcpyAsync(remote, L->reach + 2 * L->blocks, sizeof(int) * 2 * (size_t)L->blocks, cudaMemcpyDeviceToHost, (cudaStream_t)s));
  }
  GPUCSRCall((*f->shared)(L, &need));
  GPUCSR_CUDA(cudaMemcpyAsync(ends, L->reach, sizeof(int) * 2 * (size_t)L->blocks, cudaMemcpyDeviceToHost, (cudaStream_t)s));
  GPUCSR_CUDA(cudaMemcpyAsync(bounds, L->bounds, sizeof(int) * ((size_t)L->blocks + 1), cudaMemcpyDeviceToHost, (cudaStream_t)s));
  GPUCSR_CUDA(cudaStreamSynchronize((cudaStream_t)s));
  for (int b = 0; b < L->blocks; b++) {
    const size_t of = (sizeof(double) * (size_t)(ends[2 * b + 1] - ends[2 * b] + remote[2 * b + 1] - remote[2 * b]) + 15) / 16 * 16, own = (sizeof(double) * (size_t)(bounds[b + 1] - bounds[b]) + 15) / 16 * 16;

    vectors = GPUCSRMax(vectors, 2 * of + own + (bcgs ? (sizeof(double) * (size_t)(remote[2 * b + 1] - remote[2 * b]) + 15) / 16 * 16 : 0));
    rows    = GPUCSRMax(rows, bounds[b + 1] - bounds[b]);
  }
  with.halo = true;
  if (rows > 512 * HALO_ROWS) return 0;
  with.size    = rows <= 256 && !L->peers.size ? 256 : rows > 512 && rows <= 1024 ? 1024 : 512; /* few threads meet sooner */
  with.each    = rows <= with.size ? 1 : HALO_ROWS;
  with.threads = Share(L->A, L->blocks, with.size);
  need += vectors + sizeof(unsigned short) * HALO_PIECES + (GPUKSPFormatOf(L->A->format)->sharing == GPUKSP_BY_LANES || with.threads == 1 ? 0 : MOST_THREADS * sizeof(double));
  GPUCSRCall((*f->run)(&with, &most, s));
  if (most < 0 || (size_t)most < need) return 0;
  *L        = with;
  L->shared = need;
  return 0;
}

GPUCSRError GPUKSPPersistentSolve(const GPUKSPPersistent *L, GPUCSRStream s)
{
  GPUCSRCall((*product_of(L->A)->run)(L, NULL, s));
  return 0;
}

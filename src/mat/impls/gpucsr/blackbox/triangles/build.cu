/*
  Triangles on a GPU: diagonal, levels, order, slices, values.

  A single launch finds all levels: a lane takes a row, in ascending order, and waits for the levels of the needed rows, as solves do (solve.cu). Lanes of a warp exchange levels
  by shuffles. All lanes run the loop together, so that every lane can go on.
*/
#include "await.cuh"
#include "../format/absent.h"
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_run_length_encode.cuh>

__global__ void inspect_kernel(GPUCSRFactorCSR F, int *bad)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  int       d = -1, last = -1;
  bool      unsorted = false;

  if (r >= F.n) return;
  for (int e = F.i[r]; e < F.i[r + 1]; e++) {
    const int c = F.j[e];

    unsorted = unsorted || c <= last;
    if (c == r) d = e;
    last = c;
  }
  F.diag[r] = d;
  if (unsorted) bad[GPUCSR_PATTERN_UNSORTED] = 1;
  if (d < 0) bad[GPUCSR_PATTERN_NO_DIAGONAL] = 1;
}

static GPUCSRError Inspect(GPUCSRDevice dev, GPUCSRFactorCSR *F, int bad[], GPUCSRStream st)
{
  cudaStream_t s = (cudaStream_t)st;
  int         *d = NULL;

  GPUCSRCall(GPUCSRMalloc(dev, sizeof(int) * GPUCSR_PATTERN_FLAGS, "flags of a pattern", (void **)&d));
  GPUCSRCall(dev->ops->zero(dev->id, d, sizeof(int) * GPUCSR_PATTERN_FLAGS, st));
  if (F->n) inspect_kernel<<<GPUCSRBlocks(F->n, 128), 128, 0, s>>>(*F, d);
  GPUCSRCheckLaunch("inspect_kernel");
  GPUCSRCall(GPUCSRDownload(dev, bad, GPUCSR_INT32, d, GPUCSR_INT32, GPUCSR_PATTERN_FLAGS, false, st));
  GPUCSRCall(GPUCSRFree(dev, sizeof(int) * GPUCSR_PATTERN_FLAGS, (void **)&d));
  return 0;
}

/* Entries of row r in one triangle */
__device__ __forceinline__ int row_begin(const GPUCSRFactorCSR &F, bool upper, int r)
{
  return upper ? F.diag[r] + 1 : F.i[r];
}
__device__ __forceinline__ int row_end(const GPUCSRFactorCSR &F, bool upper, int r)
{
  return upper ? F.i[r + 1] : F.diag[r];
}

/*
  level[r] is -1 until it is known. sums: number of entries, and the deepest level + 1. Entries are taken from the far end, because those rows finish first. The remaining entry is then mostly one of the same
  warp, and costs no load
*/
__global__ void __launch_bounds__(256) find_levels_kernel(GPUCSRFactorCSR F, bool upper, int *level, unsigned long long *sums, volatile int *trouble)
{
  const int lane = (int)threadIdx.x % 32, warps = (int)(gridDim.x * (blockDim.x / 32)), n = F.n;
  int64_t   entries = 0;
  int       most    = 0;

  for (int64_t w = threadIdx.x / 32 * (int64_t)gridDim.x + blockIdx.x; 32 * w < n; w += warps) {
    const int first = (int)(32 * w), k = first + lane, r = upper ? n - 1 - k : k;
    bool      active = k < n;
    const int begin = active ? row_begin(F, upper, r) : 0, length = active ? row_end(F, upper, r) - begin : 0;
    int       done = 0, deepest = 0, mine = -1, need = length ? F.j[upper ? begin + length - 1 : begin] : 0;
    Patience  patience;

    entries += length;
    while (__any_sync(0xffffffffu, active)) {
      const bool some   = active && done < length;
      const int  at     = upper ? n - 1 - need : need;
      const bool inside = some && at >= first;
      int        there  = __shfl_sync(0xffffffffu, mine, inside ? at - first : lane);

      if (some) {
        if (!inside) there = look(level + need);
        if (there >= 0) {
          deepest = max(deepest, there + 1);
          if (++done < length) need = F.j[upper ? begin + length - 1 - done : begin + done];
        }
      }
      if (active && done >= length) {
        mine = deepest;
        most = max(most, mine + 1);
        show(level + r, mine);
        active = false;
      }
      if (patience.gone(trouble)) active = false;
    }
  }
  if (entries) atomicAdd(sums, (unsigned long long)entries);
  if (most) atomicMax((int *)(sums + 1), most);
}

static GPUCSRError LevelsWith(GPUCSRDevice dev, const GPUCSRFactorCSR *F, GPUCSRTriangle *T, unsigned long long *sums, int *trouble, cudaStream_t s)
{
  bool               upper    = T->upper;
  GPUCSRFactorCSR    f        = *F;
  unsigned long long found[2] = {0, 0};
  int                blocks;
  void              *args[] = {&f, &upper, &T->depth, &sums, &trouble};

  GPUCSR_CUDA(cudaMemsetAsync(T->depth, 0xFF, sizeof(int) * (size_t)F->n, s));
  GPUCSR_CUDA(cudaMemsetAsync(sums, 0, sizeof(found), s));
  GPUCSRCall(Resident(dev, find_levels_kernel, 256, 0, 8, &blocks));
  GPUCSR_CUDA(cudaLaunchCooperativeKernel((const void *)find_levels_kernel, blocks, 256, args, 0, s));
  GPUCSRCall(GPUCSRDownload(dev, found, GPUCSR_INT64, sums, GPUCSR_INT64, 2, false, s));
  GPUCSRCheck(!*(volatile int *)trouble, GPUCSR_ERR_GPU, "find_levels_kernel waited too long for the levels of other rows");
  T->nnz     = (int64_t)found[0];
  T->nlevels = (int)found[1];
  return 0;
}

static GPUCSRError Levels(GPUCSRDevice dev, const GPUCSRFactorCSR *F, GPUCSRTriangle *T, GPUCSRStream s)
{
  unsigned long long *sums = NULL;
  void               *trouble;

  GPUCSRCheck(F->n < 1 << 28, GPUCSR_ERR_MEM, "A triangle of %d rows is too large for its keys", F->n);
  if (!F->n) return 0;
  GPUCSRCall(GPUCSRMalloc(dev, 2 * sizeof(*sums), "levels of a triangle", (void **)&sums));
  GPUCSRCall(dev->ops->hostmalloc(dev->id, sizeof(int), &trouble));
  *(int *)trouble        = 0;
  const GPUCSRError ierr = LevelsWith(dev, F, T, sums, (int *)trouble, (cudaStream_t)s);
  GPUCSRCall(GPUCSRFree(dev, 2 * sizeof(*sums), (void **)&sums));
  GPUCSRCall(dev->ops->hostfree(dev->id, trouble));
  GPUCSRCall(ierr);
  return 0;
}

/* Sort keys, in the order of rows (upper: from the end), so that for one range a stable sort by the lower bits suffices */
__global__ void key_kernel(GPUCSRFactorCSR F, GPUCSRTriangle T, int bits, uint64_t *key, int *row)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  int       c = 0;

  if (r >= F.n) return;
  const int length = row_end(F, T.upper, r) - row_begin(F, T.upper, r);
  while (c < GPUCSR_LANE_CLASSES - 1 && length > GPUCSR_LANE_ENTRIES << c) c++;
  key[r] = (uint64_t)((T.upper ? F.n - 1 - r : r) / T.rows) << bits | (unsigned)(8 * T.depth[r] + c);
  row[r] = r;
}

/* Moves the range into the upper half of the key */
__global__ void spread_kernel(int n, int bits, int64_t *key)
{
  const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (p < n) key[p] = key[p] >> bits << 32 | (key[p] & (((int64_t)1 << bits) - 1));
}

__global__ void place_kernel(int n, const int *__restrict__ order, int *place)
{
  const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (p < n) place[order[p]] = p;
}

static GPUCSRError Order(GPUCSRDevice dev, const GPUCSRFactorCSR *F, GPUCSRTriangle *T, GPUCSRStream st)
{
  const int    n     = F->n;
  const size_t list  = ((size_t)n + 63) / 64 * 64;
  cudaStream_t s     = (cudaStream_t)st;
  size_t       bytes = 0;
  uint64_t    *key   = NULL;
  int          bits  = 3, all;

  if (!n) return 0;
  while ((int64_t)1 << bits < 8 * (int64_t)T->nlevels) bits++;
  for (all = bits; (int64_t)1 << (all - bits) < T->nranges;) all++;
  GPUCSR_CUDA(cub::DeviceRadixSort::SortPairs(NULL, bytes, key, key, T->order, T->order, n, 0, all, s));
  GPUCSRCall(GPUCSRMalloc(dev, bytes + 12 * list, "the order of levels", (void **)&key));
  int *row = (int *)(key + list);
  key_kernel<<<GPUCSRBlocks(n, 256), 256, 0, s>>>(*F, *T, bits, key, row);
  const cudaError_t err = cub::DeviceRadixSort::SortPairs(row + list, bytes, key, (uint64_t *)T->key, row, T->order, n, 0, all, s);
  spread_kernel<<<GPUCSRBlocks(n, 256), 256, 0, s>>>(n, bits, T->key);
  place_kernel<<<GPUCSRBlocks(n, 256), 256, 0, s>>>(n, T->order, T->place);
  GPUCSRCall(GPUCSRFree(dev, bytes + 12 * list, (void **)&key));
  GPUCSR_CUDA(err);
  GPUCSRCheckLaunch("key_kernel");
  return 0;
}

/* Numbers of a list with one for each row, rounded up to align the next list */
static size_t RunsRoom(const GPUCSRTriangle *T)
{
  return ((size_t)T->n + 63) / 64 * 64;
}

static GPUCSRError RunsWith(GPUCSRDevice dev, const GPUCSRTriangle *T, int64_t *unique, size_t bytes, int *n, int64_t **key, int **rows, GPUCSRStream st)
{
  int *count = (int *)(unique + RunsRoom(T)), *number = count + RunsRoom(T);

  GPUCSR_CUDA(cub::DeviceRunLengthEncode::Encode(number + 64, bytes, T->key, unique, count, number, T->n, (cudaStream_t)st));
  GPUCSRCall(GPUCSRDownload(dev, n, GPUCSR_INT32, number, GPUCSR_INT32, 1, false, st));
  GPUCSRCall(GPUCSRHostMalloc(sizeof(**key) * (size_t)*n, (void **)key));
  GPUCSRCall(GPUCSRHostMalloc(sizeof(**rows) * (size_t)*n, (void **)rows));
  GPUCSRCall(GPUCSRDownload(dev, *key, GPUCSR_INT64, unique, GPUCSR_INT64, (size_t)*n, false, st));
  GPUCSRCall(GPUCSRDownload(dev, *rows, GPUCSR_INT32, count, GPUCSR_INT32, (size_t)*n, false, st));
  return 0;
}

static GPUCSRError Runs(GPUCSRDevice dev, const GPUCSRTriangle *T, int *n, int64_t **key, int **rows, GPUCSRStream st)
{
  size_t   bytes = 0, all;
  int64_t *work  = NULL;

  *n    = 0;
  *key  = NULL;
  *rows = NULL;
  if (!T->n) return 0;
  GPUCSR_CUDA(cub::DeviceRunLengthEncode::Encode(NULL, bytes, T->key, work, T->order, T->order, T->n, (cudaStream_t)st));
  all = bytes + 12 * RunsRoom(T) + sizeof(int) * 64;
  GPUCSRCall(GPUCSRMalloc(dev, all, "levels of a triangle", (void **)&work));
  const GPUCSRError ierr = RunsWith(dev, T, work, bytes, n, key, rows, st);
  if (ierr) {
    GPUCSRHostFree((void **)key);
    GPUCSRHostFree((void **)rows);
  }
  GPUCSRCall(GPUCSRFree(dev, all, (void **)&work));
  GPUCSRCall(ierr);
  return 0;
}

/* A warp a slice */
__global__ void widths_kernel(GPUCSRFactorCSR F, GPUCSRTriangle T, int *width)
{
  const int k = (int)((blockIdx.x * blockDim.x + threadIdx.x) / 32), lane = (int)threadIdx.x % 32;
  int       w = 0;

  if (k >= T.nslices) return;
  const GPUCSRSlice S = T.slice[k];
  if (lane < GPUCSRSliceRows(S.shape)) {
    const int r = T.order[S.first + lane], length = row_end(F, T.upper, r) - row_begin(F, T.upper, r), lanes = 1 << GPUCSRSliceLanes(S.shape);

    w = (length + lanes - 1) / lanes;
  }
#pragma unroll
  for (int o = 16; o; o >>= 1) w = max(w, __shfl_xor_sync(0xffffffffu, w, o));
  if (!lane) width[k] = w;
}

static GPUCSRError Widths(GPUCSRDevice dev, const GPUCSRFactorCSR *F, const GPUCSRTriangle *T, int *width, GPUCSRStream st)
{
  const size_t bytes = sizeof(int) * (size_t)T->nslices;
  int         *d     = NULL;

  if (!T->nslices) return 0;
  GPUCSRCall(GPUCSRMalloc(dev, bytes, "widths of a triangle", (void **)&d));
  widths_kernel<<<GPUCSRBlocks(32 * (int64_t)T->nslices, 128), 128, 0, (cudaStream_t)st>>>(*F, *T, d);
  GPUCSRCheckLaunch("widths_kernel");
  const GPUCSRError ierr = GPUCSRDownload(dev, width, GPUCSR_INT32, d, GPUCSR_INT32, (size_t)T->nslices, false, st);
  GPUCSRCall(GPUCSRFree(dev, bytes, (void **)&d));
  GPUCSRCall(ierr);
  return 0;
}

/* A warp a slice. PATTERN: also the columns */
template <bool PATTERN>
__global__ void fill_kernel(GPUCSRFactorCSR F, GPUCSRTriangle T)
{
  const int k = (int)((blockIdx.x * blockDim.x + threadIdx.x) / 32), lane = (int)threadIdx.x % 32;

  if (k >= T.nslices) return;
  const GPUCSRSlice S   = T.slice[k];
  const int         log = GPUCSRSliceLanes(S.shape), lanes = 1 << log, width = GPUCSRSliceWidth(S.shape), base = S.first / T.rows * T.rows;
  const bool        there = lane >> log < GPUCSRSliceRows(S.shape);
  const int         r     = there ? T.order[S.first + (lane >> log)] : 0;
  int               e     = there ? row_begin(F, T.upper, r) + (lane & (lanes - 1)) : 0;
  const int         end   = there ? row_end(F, T.upper, r) : 0;
  int64_t           to    = 32 * (int64_t)S.offset + lane;

  if (there && !(lane & (lanes - 1))) T.scale[S.first + (lane >> log)] = F.dinv[r];
  for (int w = 0; w < width; w++, e += lanes, to += 32) {
    if (PATTERN) {
      const int p = e < end ? T.place[F.j[e]] : -1;

      T.col[to] = T.near && p >= base && p - base < T.rows ? GPUCSR_NEAR(p, base) : p;
    }
    T.val[to] = e < end ? F.a[e] : 0;
  }
}

static GPUCSRError Fill(GPUCSRDevice dev, const GPUCSRFactorCSR *F, GPUCSRTriangle *T, GPUCSRBool pattern, GPUCSRStream st)
{
  const unsigned blocks = GPUCSRBlocks(32 * (int64_t)T->nslices, 128);

  (void)dev;
  if (!T->nslices) return 0;
  if (pattern) fill_kernel<true><<<blocks, 128, 0, (cudaStream_t)st>>>(*F, *T);
  else fill_kernel<false><<<blocks, 128, 0, (cudaStream_t)st>>>(*F, *T);
  GPUCSRCheckLaunch("fill_kernel");
  return 0;
}

__global__ void compose_kernel(int n, const int *__restrict__ in, const int *__restrict__ index, int *out)
{
  const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (p < n) out[p] = index ? index[in[p]] : in[p];
}

static GPUCSRError Compose(int n, const int *in, const int *index, int *out, GPUCSRStream st)
{
  if (!n) return 0;
  compose_kernel<<<GPUCSRBlocks(n, 256), 256, 0, (cudaStream_t)st>>>(n, in, index, out);
  GPUCSRCheckLaunch("compose_kernel");
  return 0;
}

__global__ void collect_kernel(int n, const int *__restrict__ ptr, const int *__restrict__ index, const double *__restrict__ from, double *to)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r < n) to[r] = GPUCSRCollected(r, ptr, index, from);
}

static GPUCSRError Collect(int n, const int *ptr, const int *index, const double *from, double *to, GPUCSRStream st)
{
  if (!n) return 0;
  collect_kernel<<<GPUCSRBlocks(n, 256), 256, 0, (cudaStream_t)st>>>(n, ptr, index, from, to);
  GPUCSRCheckLaunch("collect_kernel");
  return 0;
}

/* A warp a row; the factor's values must be zero before */
__global__ void scatter_kernel(const int *__restrict__ ai, const int *__restrict__ aj, const double *__restrict__ aa, const int *__restrict__ row, const int *__restrict__ column, GPUCSRFactorCSR F)
{
  const int r = (int)((blockIdx.x * (int64_t)blockDim.x + threadIdx.x) / 32), lane = (int)threadIdx.x % 32;

  if (r >= F.n) return;
  const int from = row ? row[r] : r;
  for (int e = ai[from] + lane; e < ai[from + 1]; e += 32) {
    const int at = find_column(F.j, F.i[r], F.i[r + 1], column ? column[aj[e]] : aj[e]);

    if (at >= 0) F.a[at] = aa[e];
  }
}

static GPUCSRError Scatter(const int *ai, const int *aj, const double *aa, const int *row, const int *column, GPUCSRFactorCSR *F, GPUCSRStream st)
{
  GPUCSR_CUDA(cudaMemsetAsync(F->a, 0, sizeof(double) * (size_t)F->nnz, (cudaStream_t)st));
  if (F->n) scatter_kernel<<<GPUCSRBlocks(32 * (int64_t)F->n, 128), 128, 0, (cudaStream_t)st>>>(ai, aj, aa, row, column, *F);
  GPUCSRCheckLaunch("scatter_kernel");
  return 0;
}

__global__ void mirror_kernel(GPUCSRFactorCSR F)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r >= F.n) return;
  for (int e = F.diag[r] + 1; e < F.i[r + 1]; e++) {
    const int k = F.j[e], at = find_column(F.j, F.i[k], F.diag[k], r);

    F.a[e] = at < 0 ? 0 : F.a[at];
  }
}

static GPUCSRError Mirror(GPUCSRFactorCSR *F, GPUCSRStream st)
{
  if (F->n) mirror_kernel<<<GPUCSRBlocks(F->n, 128), 128, 0, (cudaStream_t)st>>>(*F);
  GPUCSRCheckLaunch("mirror_kernel");
  return 0;
}

static GPUCSRError Reset(GPUCSRTriangle *T, int turn, GPUCSRStream st)
{
  GPUCSR_CUDA(cudaMemsetAsync(T->x[turn], GPUCSR_ABSENT, sizeof(double) * (size_t)T->n, (cudaStream_t)st));
  return 0;
}

GPUCSR_EXPORT(GPUCSRTriangleOps, GPUCSRTriangleOps_CUDA) = {Inspect, Levels, Order, Runs, Widths, Fill, Compose, Collect, Scatter, GPUCSRFactor_CUDA, Mirror, GPUCSRSolve_CUDA, Reset, GPUCSRInvert_CUDA, GPUCSRMultiply_CUDA};

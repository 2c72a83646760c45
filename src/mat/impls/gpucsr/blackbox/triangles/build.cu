/*
  Triangles on a GPU: diagonal, levels, order, slices, values.

  A single launch finds all levels: a lane takes a row, in ascending order, and waits for the levels of the needed rows, as solves do (solve.cu). Lanes of a warp exchange levels
  by shuffles. All lanes run the loop together, so that every lane can go on.
*/
#include "await.cuh"
#include "rows.h"
#include "../format/absent.h"
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_run_length_encode.cuh>

GPUCSR_TRIANGLE_STEPS(GPUCSR_EACH)

/*
  level[r] is -1 until it is known. sums: number of entries, and the deepest level + 1. Entries are taken from the far end, because those rows finish first. The remaining entry is then mostly one of the same
  warp, and costs no load
*/
__global__ void __launch_bounds__(256) find_levels_kernel(GPUCSRFactorCSR F, GPUCSRBool upper, int *level, unsigned long long *sums, volatile int *trouble)
{
  const int lane = (int)threadIdx.x % 32, warps = (int)(gridDim.x * (blockDim.x / 32)), n = F.n;
  int64_t   entries = 0;
  int       most    = 0;

  for (int64_t w = threadIdx.x / 32 * (int64_t)gridDim.x + blockIdx.x; 32 * w < n; w += warps) {
    const int first = (int)(32 * w), k = first + lane, r = upper ? n - 1 - k : k;
    bool      active = k < n;
    const int begin = active ? GPUCSRTriangleBegin(&F, upper, r) : 0, length = active ? GPUCSRTriangleEnd(&F, upper, r) - begin : 0;
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

/* found, on the device: the two sums, and whether a wait was too long */
static GPUCSRError LevelsWith(GPUCSRDevice dev, const GPUCSRFactorCSR *F, GPUCSRTriangle *T, unsigned long long *found, cudaStream_t s)
{
  GPUCSRBool         upper   = T->upper;
  GPUCSRFactorCSR    f       = *F;
  unsigned long long host[3] = {0, 0, 0}, *trouble = found + 2;
  int                blocks;
  void              *args[] = {&f, &upper, &T->depth, &found, &trouble};

  GPUCSR_CUDA(cudaMemsetAsync(T->depth, 0xFF, sizeof(int) * (size_t)F->n, s));
  GPUCSR_CUDA(cudaMemsetAsync(found, 0, sizeof(host), s));
  GPUCSRCall(Resident(dev, find_levels_kernel, 256, 0, 8, &blocks));
  GPUCSR_CUDA(cudaLaunchCooperativeKernel((const void *)find_levels_kernel, blocks, 256, args, 0, s));
  GPUCSRCall(GPUCSRDownload(dev, host, GPUCSR_INT64, found, GPUCSR_INT64, 3, false, s));
  GPUCSRCheck(!host[2], GPUCSR_ERR_GPU, "find_levels_kernel waited too long for the levels of other rows");
  T->nnz     = (int64_t)host[0];
  T->nlevels = (int)host[1];
  return 0;
}

static GPUCSRError Levels(GPUCSRDevice dev, const GPUCSRFactorCSR *F, GPUCSRTriangle *T, GPUCSRStream s)
{
  unsigned long long *found = NULL;

  GPUCSRCheck(F->n < 1 << 28, GPUCSR_ERR_MEM, "A triangle of %d rows is too large for its keys", F->n);
  if (!F->n) return 0;
  GPUCSRCall(GPUCSRMalloc(dev, 3 * sizeof(*found), "levels of a triangle", (void **)&found));
  const GPUCSRError ierr = LevelsWith(dev, F, T, found, (cudaStream_t)s);
  GPUCSRCall(GPUCSRFree(dev, 3 * sizeof(*found), (void **)&found));
  GPUCSRCall(ierr);
  return 0;
}

/* Sort keys, in the order of rows (upper: from the end), so that for one range a stable sort by the lower bits suffices */
__global__ void key_kernel(GPUCSRFactorCSR F, GPUCSRTriangle T, int bits, uint64_t *key, int *row)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r >= F.n) return;
  const int c = GPUCSRLaneClass(GPUCSRTriangleEnd(&F, T.upper, r) - GPUCSRTriangleBegin(&F, T.upper, r));

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

static GPUCSRError Reset(GPUCSRTriangle *T, int turn, GPUCSRStream st)
{
  GPUCSR_CUDA(cudaMemsetAsync(T->x[turn], GPUCSR_ABSENT, sizeof(double) * (size_t)T->n, (cudaStream_t)st));
  return 0;
}

GPUCSR_EXPORT(GPUCSRTriangleOps, GPUCSRTriangleOps_CUDA) = {GPUCSR_TRIANGLE_STEPS(GPUCSR_EACH_ENTRY) Levels, Order, Runs, GPUCSRFactor_CUDA, GPUCSRSolve_CUDA, Reset};

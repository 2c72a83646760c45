/*
  Blocked CSR filled on the device from CSR there, and its diagonal.

  One thread for each entry, for any row lengths. Each thread looks for the first entry of its block, in the order of rows and columns. It searches
  the block row's rows above, by a guess (rows of a block row often have the same columns) and then by bisection, and the places just before its own
  entry. One bit for
  each entry marks these first entries; the number of marks before an entry is its block's number, from a scan (CUB) over words of 32 marks and a
  count within the word. So nothing is sorted, and the marks take a quarter byte for each entry. A copy of unsorted rows is sorted first.
*/
#include "../product/bcsr.cuh"
#include "../../format/absent.h"
#include "scan.cuh"

#define BLOCK 256
#define TILE  2048 /* entries of a thread block, which finds their rows together */

/* Sets *unsorted if two neighbouring entries of a row descend: one thread for each pair; the row begins at `begin` */
__device__ __forceinline__ void check_sorted(int k, int begin, const int *__restrict__ col, int *unsorted)
{
  if (k > begin && col[k - 1] > col[k]) *unsorted = 1;
}

/* The row of entry k, one of lo <= row < hi, some of which may be empty */
__device__ __forceinline__ int row_of(int k, int lo, int hi, const int *__restrict__ rowptr)
{
  return bisect(lo + 1, hi, [=](int r) { return rowptr[r] <= k; }) - 1;
}

/* The first column of an entry's block, a multiple of c */
__device__ __forceinline__ int block_start(int j, int c)
{
  return c == 3 ? j / 3 * 3 : j & ~(c - 1);
}

/* The first entry, in the order of CSR, of the block of entry k in row `row` */
__device__ __forceinline__ int first_of_block(int k, int row, int r, int c, const int *__restrict__ rowptr, const int *__restrict__ col)
{
  const int start = block_start(col[k], c), begin = rowptr[row];

  for (int above = row / r * r; above < row; above++) {
    const int b = rowptr[above], e = rowptr[above + 1], guess = b + (k - begin);
    int       lo = b, hi = e;

    if (guess < e && block_start(col[guess], c) == start) lo = hi = guess;
    lo = bisect(lo, hi, [=](int at) { return col[at] < start; });
    if (lo < e && block_start(col[lo], c) == start) {
      while (lo > b && col[lo - 1] >= start) lo--;
      return lo;
    }
  }
  while (k > begin && col[k - 1] >= start) k--;
  return k;
}

/* The rows lo <= row < hi with the entries of this thread block */
__device__ __forceinline__ void rows_of_block(int m, int64_t nnz, const int *__restrict__ rowptr, int *lo, int *hi)
{
  __shared__ int ends[2];

  if (threadIdx.x < 2) ends[threadIdx.x] = row_of((int)(threadIdx.x ? min(nnz, (int64_t)(blockIdx.x + 1) * TILE) - 1 : (int64_t)blockIdx.x * TILE), 0, m, rowptr);
  __syncthreads();
  *lo = ends[0];
  *hi = ends[1] + 1;
}

/* A word of marks for each 32 entries, and its number of marks */
__global__ void __launch_bounds__(BLOCK) bcsr_mark_kernel(int m, int64_t nnz, int r, int c, const int *__restrict__ rowptr, const int *__restrict__ col, unsigned int *mark, int *count, int *unsorted)
{
  const int64_t begin = (int64_t)blockIdx.x * TILE, end = min(nnz, begin + TILE);
  int           lo, hi;

  rows_of_block(m, nnz, rowptr, &lo, &hi);
  for (int64_t base = begin; base < end; base += BLOCK) { /* whole warps stay in the loop, for the ballot */
    const int64_t k     = base + threadIdx.x;
    bool          first = false;

    if (k < end) {
      const int row = row_of((int)k, lo, hi, rowptr);

      check_sorted((int)k, rowptr[row], col, unsorted);
      first = first_of_block((int)k, row, r, c, rowptr, col) == k;
    }
    const unsigned int word = __ballot_sync(0xffffffffu, first);
    if (threadIdx.x % 32 == 0 && k < end) {
      mark[k / 32]  = word;
      count[k / 32] = __popc(word);
    }
  }
}

/* Blocks that begin before entry k */
__device__ __forceinline__ int blocks_before(int64_t k, const unsigned int *__restrict__ mark, const int *__restrict__ before)
{
  const int n = before[k / 32];

  return k % 32 ? n + __popc(mark[k / 32] & ((1u << (k % 32)) - 1)) : n;
}

__global__ void bcsr_rows_kernel(int rows, int m, int r, const int *__restrict__ rowptr, const unsigned int *__restrict__ mark, const int *__restrict__ before, int *to)
{
  const int64_t q = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (q <= rows) to[q] = blocks_before(rowptr[min(q * r, (int64_t)m)], mark, before);
}

template <class V>
__global__ void __launch_bounds__(BLOCK) bcsr_fill_kernel(int m, int64_t nnz, int r, int c, const int *__restrict__ rowptr, const int *__restrict__ ccol, const V *__restrict__ cval, const unsigned int *__restrict__ mark, const int *__restrict__ before, int *col, V *val)
{
  const int64_t begin = (int64_t)blockIdx.x * TILE, end = min(nnz, begin + TILE);
  int           lo, hi;

  rows_of_block(m, nnz, rowptr, &lo, &hi);
  for (int64_t k = begin + threadIdx.x; k < end; k += BLOCK) {
    const int row = row_of((int)k, lo, hi, rowptr), first = first_of_block((int)k, row, r, c, rowptr, ccol), b = blocks_before(first, mark, before);
    const int start = block_start(ccol[k], c);

    if (first == k && col) col[b] = start;
    val[BCSREntry(b, row % r, ccol[k] - start, r, c, sizeof(V))] = present(cval[k]);
  }
}

template <class V, class X>
__global__ void bcsr_diagonal_kernel(int n, int br, int bc, const int *__restrict__ rowptr, const int *__restrict__ col, const V *__restrict__ val, X *d)
{
  const int r = (int)(((int64_t)blockIdx.x * blockDim.x + threadIdx.x) / 8), lane = threadIdx.x % 8, start = block_start(r, bc);
  X         v = 0;

  if (r < n)
    for (int b = rowptr[r / br] + lane; b < rowptr[r / br + 1]; b += 8)
      if (col[b] == start) {
        const V a = val[BCSREntry(b, r % br, r - start, br, bc, sizeof(V))];

        if (!is_absent(a)) v = X(a);
      }
  v = reduce<8>(v); /* at most one number is not 0 */
  if (r < n && lane == 0) d[r] = v;
}

/* Marks of the first entries of blocks */
typedef struct {
  size_t        words;    /* of 32 entries */
  unsigned int *mark;     /* of each word */
  int          *before;   /* marks before each word; at the end, all */
  int          *unsorted; /* after the last count: a row is not sorted, and the counts are void */
  void         *memory;
  size_t        bytes;
} Marks;

static Marks MarksOf(const GPUCSRStorage *csr, void *memory)
{
  Marks k;

  k.words    = ((size_t)csr->nnz + 31) / 32;
  k.bytes    = sizeof(int) * (2 * k.words + 2);
  k.memory   = memory;
  k.mark     = (unsigned int *)memory;
  k.before   = (int *)(k.mark + k.words);
  k.unsorted = k.before + k.words + 1;
  return k;
}

/* The caller frees k, even after an error; csr has an entry */
static GPUCSRError MarkFirst(const GPUCSRStorage *csr, int variant, Marks *k, GPUCSRBool *sorted, int *blocks, cudaStream_t s)
{
  int32_t host[2];

  *k = MarksOf(csr, NULL);
  GPUCSRCall(GPUCSRMalloc(csr->dev, k->bytes, "the marks of blocks", &k->memory));
  *k = MarksOf(csr, k->memory);
  GPUCSR_CUDA(cudaMemsetAsync(k->before + k->words, 0, 2 * sizeof(int), s));
  bcsr_mark_kernel<<<GPUCSRBlocks(csr->nnz, TILE), BLOCK, 0, s>>>(csr->m, csr->nnz, GPUCSR_BLOCK_ROWS(variant), GPUCSR_BLOCK_COLS(variant), (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, k->mark, k->before, k->unsorted);
  GPUCSRCheckLaunch("bcsr_build (mark)");
  GPUCSRCall(GPUCSRSumsBefore(csr->dev, k->before, k->before, (int)k->words + 1, s));
  GPUCSRCall(GPUCSRDownload(csr->dev, host, GPUCSR_INT32, k->before + k->words, GPUCSR_INT32, 2, false, (GPUCSRStream)s));
  *blocks = host[0];
  *sorted = host[1] ? false : true;
  return 0;
}

static GPUCSRError FillSteps(const GPUCSRStorage *csr, const Marks *k, int blocks, GPUCSRStorage *A, GPUCSRBool valuesonly, cudaStream_t s)
{
  const int     br = GPUCSR_BLOCK_ROWS(A->format->variant), bc = GPUCSR_BLOCK_COLS(A->format->variant), rows = (int)A->array[BCSR_ROWPTR].count - 1;
  const int64_t clear = (int64_t)blocks * br * bc == A->nnz ? GPUCSRMax(0, A->stored - BCSR_WARP / BCSR_LANES(br) * br * bc) : 0; /* if an entry may be absent */
  int          *col   = valuesonly ? NULL : (int *)A->array[BCSR_COL].data;

  GPUCSRCheck((size_t)blocks == A->array[BCSR_COL].count, GPUCSR_ERR_PLIB, "%d blocks, %zu when they were counted", blocks, A->array[BCSR_COL].count);
  if (!valuesonly) {
    bcsr_rows_kernel<<<GPUCSRBlocks((int64_t)rows + 1, 256), 256, 0, s>>>(rows, A->m, br, (const int *)csr->array[CSR_ROWPTR].data, k->mark, k->before, (int *)A->array[BCSR_ROWPTR].data);
    GPUCSRCheckLaunch("bcsr_build (rows)");
  }
#define FILL(V, X) \
  if (!valuesonly) GPUCSR_CUDA(cudaMemsetAsync((V *)A->array[BCSR_VAL].data + clear, GPUCSR_ABSENT, sizeof(V) * (size_t)(A->stored - clear), s)); \
  bcsr_fill_kernel<V> \
    <<<GPUCSRBlocks(csr->nnz, TILE), BLOCK, 0, s>>>(csr->m, csr->nnz, br, bc, (const int *)csr->array[CSR_ROWPTR].data, (const int *)csr->array[CSR_COL].data, (const V *)csr->array[CSR_VAL].data, k->mark, k->before, col, (V *)A->array[BCSR_VAL].data)
  GPUCSRDispatchPrecision(A->precision, FILL);
  GPUCSRCheckLaunch("bcsr_build (fill)");
  return 0;
}

/* The same matrix with sorted rows, as the transpose of the transpose: few matrices need it. The caller destroys it, even after an error */
static GPUCSRError SortColumns(const GPUCSRStorage *csr, GPUCSRStorage *sorted, GPUCSRStream s)
{
  const GPUCSRDeviceHelpers *h     = GPUCSRHelpers(csr->dev);
  const size_t               bytes = sizeof(int32_t) * (size_t)csr->nnz;
  GPUCSRStorage              T     = {0};
  void                      *map   = NULL;
  GPUCSRError                ierr;

  GPUCSRCall(GPUCSRStorageCSR(csr->dev, csr->m, csr->n, csr->nnz, csr->precision, false, sorted));
  ierr = GPUCSRMalloc(csr->dev, bytes, "the sort of rows", &map);
  if (!ierr) ierr = GPUCSRStorageCSR(csr->dev, csr->n, csr->m, csr->nnz, csr->precision, false, &T);
  if (!ierr) ierr = (*h->transpose)(csr, &T, (int32_t *)map, s);
  if (!ierr) ierr = (*h->transpose)(&T, sorted, (int32_t *)map, s);
  GPUCSRCall(GPUCSRFree(csr->dev, bytes, &map)); /* in the order of the stream */
  GPUCSRCall(GPUCSRStorageDestroy(&T));
  GPUCSRCall(ierr);
  return 0;
}

/* Counts blocks and, if A is given, fills it: from csr, or from a copy with sorted rows. kept: receives the marks of csr itself, which the caller frees */
static GPUCSRError Build(const GPUCSRStorage *csr, int variant, GPUCSRStorage *A, GPUCSRBool valuesonly, int *blocks, GPUCSRArray *kept, GPUCSRStream st)
{
  GPUCSRDevice  dev  = csr->dev;
  GPUCSRStorage copy = {0};
  Marks         k    = {0};
  GPUCSRBool    sorted;
  GPUCSRError   ierr;

  ierr = MarkFirst(csr, variant, &k, &sorted, blocks, (cudaStream_t)st);
  if (!ierr && !sorted) {
    ierr = GPUCSRFree(dev, k.bytes, &k.memory);
    if (!ierr) ierr = SortColumns(csr, &copy, st);
    csr = &copy;
    if (!ierr) ierr = MarkFirst(csr, variant, &k, &sorted, blocks, (cudaStream_t)st);
  }
  if (!ierr && A) ierr = FillSteps(csr, &k, *blocks, A, valuesonly, (cudaStream_t)st);
  if (kept && !ierr && csr != &copy) {
    *kept    = (GPUCSRArray){"marks", GPUCSR_INT32, false, k.bytes / sizeof(int), k.memory};
    k.memory = NULL;
  }
  GPUCSRCall(GPUCSRFree(dev, k.bytes, &k.memory)); /* in the order of the stream */
  GPUCSRCall(GPUCSRStorageDestroy(&copy));
  GPUCSRCall(ierr);
  return 0;
}

static GPUCSRError Measure_BCSR_CUDA(GPUCSRStorage *csr, int variant, GPUCSRExtent *e, GPUCSRStream s)
{
  int blocks = 0;

  if (csr->nnz) GPUCSRCall(Build(csr, variant, NULL, false, &blocks, &csr->work, s));
  e->units  = blocks;
  e->stored = BCSRStored(blocks, GPUCSR_BLOCK_ROWS(variant), GPUCSR_BLOCK_COLS(variant));
  return 0;
}

static GPUCSRError Fill_BCSR_CUDA(const GPUCSRStorage *csr, GPUCSRStorage *A, GPUCSRBool valuesonly, GPUCSRStream s)
{
  int blocks;

  if (A->nnz && csr->work.data && !valuesonly) {
    const Marks k = MarksOf(csr, csr->work.data);

    GPUCSRCall(FillSteps(csr, &k, (int)A->extent.units, A, false, (cudaStream_t)s));
  } else if (A->nnz) GPUCSRCall(Build(csr, A->format->variant, A, valuesonly, &blocks, NULL, s));
  else if (!valuesonly) GPUCSR_CUDA(cudaMemsetAsync(A->array[BCSR_ROWPTR].data, 0, sizeof(int) * A->array[BCSR_ROWPTR].count, (cudaStream_t)s));
  return 0;
}

static GPUCSRError Diagonal_BCSR_CUDA(const GPUCSRStorage *A, void *d, GPUCSRStream s)
{
  const int n = GPUCSRMin(A->m, A->n);

  if (!n) return 0;
#define DIAGONAL(V, X) \
  bcsr_diagonal_kernel<V, X><<<GPUCSRBlocks((int64_t)n * 8, 256), 256, 0, (cudaStream_t)s>>>(n, GPUCSR_BLOCK_ROWS(A->format->variant), GPUCSR_BLOCK_COLS(A->format->variant), (const int *)A->array[BCSR_ROWPTR].data, (const int *)A->array[BCSR_COL].data, \
                                                                                             (const V *)A->array[BCSR_VAL].data, (X *)d)
  GPUCSRDispatchPrecision(A->precision, DIAGONAL);
  GPUCSRCheckLaunch("bcsr_build (diagonal)");
  return 0;
}

GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_bcsr)   = {Measure_BCSR_CUDA, Fill_BCSR_CUDA, Diagonal_BCSR_CUDA, true};
GPUCSR_EXPORT(GPUCSRDeviceFormat, GPUCSRDeviceFormat_oblong) = {Measure_BCSR_CUDA, Fill_BCSR_CUDA, Diagonal_BCSR_CUDA, true};

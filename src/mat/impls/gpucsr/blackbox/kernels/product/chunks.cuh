#pragma once

/*
  Tiles and chunks of csr_adaptive and bcsr_adaptive. Rows and entries together (there: block rows and lanes) are cut into tiles of about equal size, at
  row ends. A row longer than a tile is cut into chunks instead, which the host lays out, as it must know their number.
*/
#include "../device.cuh"

typedef struct {
  int row, begin, end;
  int first, count; /* numbers of its row's first chunk, and of its chunks */
} Chunk;

/* A->work, A->parts chunks: so many doubles each, the chunks, a counter each, the tiles' first rows */
typedef struct {
  double *sum;
  Chunk  *chunk;
  int    *counter, *start;
} Work;

static Work WorkOf(const GPUCSRStorage *A, int sums)
{
  Work w;

  w.sum     = (double *)A->work.data;
  w.chunk   = (Chunk *)(w.sum + (size_t)sums * (size_t)A->parts);
  w.counter = (int *)(w.chunk + A->parts);
  w.start   = w.counter + A->parts;
  return w;
}

/* start[t] = the first row whose number plus begin reaches t tiles */
static __global__ void chunks_starts_kernel(int64_t tiles, int tile, int rows, int lanes, const int *__restrict__ rowptr, int *start)
{
  const int64_t t = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;

  if (t <= tiles) start[t] = bisect(0, rows, [=](int r) { return (int64_t)r + (int64_t)rowptr[r] * lanes < t * tile; });
}

/* list[0] counts the rows above `longest`; each takes three places, in any order: row, begin, end */
static __global__ void chunks_long_kernel(int rows, int lanes, int longest, const int *__restrict__ rowptr, int *list)
{
  const int r = (int)(blockIdx.x * blockDim.x + threadIdx.x);

  if (r < rows && (rowptr[r + 1] - rowptr[r]) * lanes > longest) {
    const int q = atomicAdd(list, 1);

    list[1 + 3 * q] = r;
    list[2 + 3 * q] = rowptr[r] * lanes;
    list[3 + 3 * q] = rowptr[r + 1] * lanes;
  }
}

#define FIRST 64 /* long rows downloaded along with their number */

/* The list of the long rows, of which there are `most` at most, and their number */
static GPUCSRError LongRows(GPUCSRStorage *A, int rows, int lanes, int longest, int64_t most, HostArray<int32_t> *list, int *n)
{
  const size_t room = 1 + 3 * (size_t)most;
  cudaStream_t s    = (cudaStream_t)A->dev->stream;
  int32_t      head[1 + 3 * FIRST];

  *n = 0;
  if (!most || !rows) return 0;
  GPUCSRCall(GPUCSRStorageWork(A, GPUCSR_INT32, room)); /* for now; Lay() makes the data that stay */
  GPUCSR_CUDA(cudaMemsetAsync(A->work.data, 0, sizeof(int), s));
  chunks_long_kernel<<<GPUCSRBlocks(rows, 256), 256, 0, s>>>(rows, lanes, longest, (const int *)A->array[0].data, (int *)A->work.data);
  GPUCSRCheckLaunch("chunks (long rows)");
  GPUCSRCall(GPUCSRDownload(A->dev, head, GPUCSR_INT32, A->work.data, GPUCSR_INT32, GPUCSRMin(room, sizeof(head) / sizeof(head[0])), false, s));
  *n = head[0];
  GPUCSRCall(list->make(3 * (size_t)*n + 1));
  memcpy(list->p, head + 1, sizeof(int32_t) * (size_t)(3 * GPUCSRMin(*n, FIRST)));
  if (*n > FIRST) GPUCSRCall(GPUCSRDownload(A->dev, list->p + 3 * FIRST, GPUCSR_INT32, (int *)A->work.data + 1 + 3 * FIRST, GPUCSR_INT32, 3 * (size_t)(*n - FIRST), false, s));
  GPUCSRCall(GPUCSRFree(A->dev, A->work.count * GPUCSRTypeSize(A->work.type), &A->work.data));
  return 0;
}

/* A->work, with the chunks of the listed rows. cut(length, &size): the number of a row's chunks, and their size */
template <class F>
static GPUCSRError Lay(GPUCSRStorage *A, int rows, int lanes, int64_t tiles, int tile, int sums, const HostArray<int32_t> &list, int n, F cut)
{
  cudaStream_t     s = (cudaStream_t)A->dev->stream;
  int              size;
  HostArray<Chunk> chunk;
  Work             w;

  A->parts = 0;
  for (int q = 0; q < n; q++) A->parts += cut(list[3 * q + 2] - list[3 * q + 1], &size);
  GPUCSRCall(chunk.make((size_t)A->parts));
  for (int q = 0, c = 0; q < n; q++) {
    const int begin = list[3 * q + 1], end = list[3 * q + 2], first = c, count = cut(end - begin, &size);

    for (int k = 0; k < count; k++) chunk[c++] = Chunk{list[3 * q], GPUCSRMin(end, begin + k * size), k == count - 1 ? end : GPUCSRMin(end, begin + (k + 1) * size), first, count};
  }
  GPUCSRCall(GPUCSRStorageWork(A, GPUCSR_INT32, (size_t)A->parts * (2 * (size_t)sums + sizeof(Chunk) / sizeof(int) + 1) + (size_t)tiles + 1));
  w = WorkOf(A, sums);
  if (A->parts) {
    GPUCSRCall(GPUCSRUpload(A->dev, w.chunk, GPUCSR_INT32, chunk.p, GPUCSR_INT32, sizeof(Chunk) / sizeof(int) * (size_t)A->parts, false, s, NULL));
    GPUCSR_CUDA(cudaMemsetAsync(w.counter, 0, sizeof(int) * (size_t)A->parts, s));
  }
  chunks_starts_kernel<<<GPUCSRBlocks(tiles + 1, 256), 256, 0, s>>>(tiles, tile, rows, lanes, (const int *)A->array[0].data, w.start);
  GPUCSRCheckLaunch("chunks (starts)");
  return 0;
}

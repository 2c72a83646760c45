/* Reads of rows of equal lengths, by a block or by a thread each, in every way there is */
#include <cuda_runtime.h>
#include <cstdint>
#include <cstring>
#include "reads.h"

#define RING       4
#define BULK_BYTES 8192

struct Arguments {
  const char         *from;
  cudaTextureObject_t texture;
  size_t              rows, row; /* row in loads; bytes for bulk copies */
  unsigned long long *sum;
};

static __device__ __forceinline__ unsigned int words(unsigned int v)
{
  return v;
}
static __device__ __forceinline__ unsigned int words(uint2 v)
{
  return v.x + v.y;
}
static __device__ __forceinline__ unsigned int words(uint4 v)
{
  return v.x + v.y + v.z + v.w;
}

/* A timed run does not use the sum, but the compiler must keep the reads */
static __device__ __forceinline__ void finish(const Arguments &a, unsigned int sum)
{
  if (a.sum) {
    if (sum) atomicAdd(a.sum, (unsigned long long)sum);
  } else if (sum == 0x80000001u) asm volatile("trap;");
}

template <int WAY, class T>
static __device__ __forceinline__ T load(const Arguments &a, size_t k)
{
  const T *p = (const T *)a.from + k;

  if constexpr (WAY == READ_TEXTURE) return tex1Dfetch<T>(a.texture, (int)k);
  else return WAY == READ_READONLY ? __ldg(p) : WAY == READ_STREAMING ? __ldcs(p) : *p;
}

template <int WAY, class T>
static __global__ void block_kernel(const Arguments a)
{
  const size_t first = blockIdx.x * a.row;
  unsigned int sum   = 0;

#pragma unroll 4
  for (size_t k = threadIdx.x; k < a.row; k += blockDim.x) sum += words(load<WAY, T>(a, first + k));
  finish(a, sum);
}

template <int WAY, class T>
static __global__ void thread_kernel(const Arguments a)
{
  const size_t r   = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  unsigned int sum = 0;

  if (r >= a.rows) return;
#pragma unroll 4
  for (size_t k = 0; k < a.row; k++) sum += words(load<WAY, T>(a, r * a.row + k));
  finish(a, sum);
}

/* Each thread's loads have places of their own, without a wait for other threads */
template <class T>
static __global__ void async_kernel(const Arguments a)
{
  extern __shared__ __align__(128) char shared[];
  T                                    *place = (T *)shared + threadIdx.x;
  const size_t                          first = blockIdx.x * a.row;
  unsigned int                          sum   = 0;

  for (int s = 0; s < RING - 1; s++) {
    const size_t k = threadIdx.x + (size_t)s * blockDim.x;

    if (k < a.row) asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"((unsigned int)__cvta_generic_to_shared(place + s * blockDim.x)), "l"((const T *)a.from + first + k), "n"(sizeof(T)) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  int s = 0;
  for (size_t k = threadIdx.x; k < a.row; k += blockDim.x, s++) {
    const size_t next = k + (size_t)(RING - 1) * blockDim.x;

    if (next < a.row) asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"((unsigned int)__cvta_generic_to_shared(place + (s + RING - 1) % RING * blockDim.x)), "l"((const T *)a.from + first + next), "n"(sizeof(T)) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group %0;" ::"n"(RING - 1) : "memory");
    sum += words(place[s % RING * blockDim.x]);
  }
  finish(a, sum);
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
static __device__ __forceinline__ void bulk(const Arguments &a, char *to, uint64_t *arrived, size_t first, size_t at)
{
  const unsigned int bytes = (unsigned int)(a.row - at < BULK_BYTES ? a.row - at : BULK_BYTES), bar = (unsigned int)__cvta_generic_to_shared(arrived);

  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"((unsigned int)__cvta_generic_to_shared(to)), "l"(a.from + first + at), "r"(bytes), "r"(bar) : "memory");
}

static __device__ __forceinline__ void await(uint64_t *arrived, unsigned int parity)
{
  unsigned int done;

  do asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"((unsigned int)__cvta_generic_to_shared(arrived)), "r"(parity) : "memory");
  while (!done);
}
#endif

/* Rows are multiples of 16 bytes; the first thread starts the copy, and all read the result */
static __global__ void bulk_kernel(const Arguments a)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) char shared[];
  __shared__ uint64_t                   arrived[RING];
  const size_t                          first = blockIdx.x * a.row, pieces = (a.row + BULK_BYTES - 1) / BULK_BYTES;
  unsigned int                          sum = 0;

  if (threadIdx.x == 0) {
    for (int s = 0; s < RING; s++) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"((unsigned int)__cvta_generic_to_shared(&arrived[s])) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0)
    for (size_t p = 0; p < RING && p < pieces; p++) bulk(a, shared + p * BULK_BYTES, &arrived[p], first, p * BULK_BYTES);
  for (size_t p = 0; p < pieces; p++) {
    const int          s     = (int)(p % RING);
    const unsigned int count = (unsigned int)((a.row - p * BULK_BYTES < BULK_BYTES ? a.row - p * BULK_BYTES : BULK_BYTES) / 16);

    await(&arrived[s], (unsigned int)(p / RING % 2));
    for (unsigned int k = threadIdx.x; k < count; k += blockDim.x) sum += words(((const uint4 *)(shared + s * BULK_BYTES))[k]);
    __syncthreads();
    if (threadIdx.x == 0 && p + RING < pieces) bulk(a, shared + s * BULK_BYTES, &arrived[s], first, (p + RING) * BULK_BYTES);
  }
  finish(a, sum);
#endif
}

typedef void (*Kernel)(Arguments);

template <class T>
static Kernel pick(const Read *r)
{
  static const Kernel blocks[]  = {block_kernel<READ_PLAIN, T>, block_kernel<READ_READONLY, T>, block_kernel<READ_STREAMING, T>, block_kernel<READ_TEXTURE, T>, async_kernel<T>, bulk_kernel};
  static const Kernel threads[] = {thread_kernel<READ_PLAIN, T>, thread_kernel<READ_READONLY, T>, thread_kernel<READ_STREAMING, T>, thread_kernel<READ_TEXTURE, T>};

  return r->block ? blocks[r->way] : threads[r->way];
}

static const char *failed(cudaError_t err)
{
  return err == cudaSuccess ? NULL : cudaGetErrorString(err);
}

int ReadCan(const Read *r)
{
  int device = 0, major = 0;

  if (r->way == READ_TEXTURE && r->row * r->rows / (size_t)r->bytes > (size_t)1 << 27) return 0; /* elements of a texture */
  if (r->way >= READ_ASYNC && !r->block) return 0;
  if (r->way != READ_BULK) return 1;
  (void)cudaGetDevice(&device);
  (void)cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  return major >= 9 && r->bytes == 16 && r->row % 16 == 0;
}

const char *ReadLaunch(const Read *r, unsigned long long *sum, void *stream)
{
  const Kernel kernel = r->bytes == 4 ? pick<unsigned int>(r) : r->bytes == 8 ? pick<uint2>(r) : pick<uint4>(r);
  const size_t blocks = r->block ? r->rows : (r->rows + (size_t)r->threads - 1) / (size_t)r->threads;
  const size_t shared = r->way == READ_ASYNC ? (size_t)RING * (size_t)r->threads * (size_t)r->bytes : r->way == READ_BULK ? RING * BULK_BYTES : 0;
  Arguments    a;

  a.from    = (const char *)r->from;
  a.texture = r->texture[r->bytes / 8];
  a.rows    = r->rows;
  a.row     = r->way == READ_BULK ? r->row : r->row / (size_t)r->bytes;
  a.sum     = sum;
  if (shared > 48 << 10) {
    const cudaError_t err = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);

    if (err) return failed(err);
  }
  kernel<<<(unsigned int)blocks, r->threads, shared, (cudaStream_t)stream>>>(a);
  return failed(cudaGetLastError());
}

const char *ReadTextures(const void *from, size_t bytes, unsigned long long texture[3])
{
  cudaError_t err = cudaSuccess;

  for (int k = 0; k < 3 && !err; k++) {
    const int        w    = 1 << k;
    const size_t     most = ((size_t)1 << 27) * 4 * (size_t)w;
    cudaResourceDesc r;
    cudaTextureDesc  t;

    memset(&r, 0, sizeof(r));
    memset(&t, 0, sizeof(t));
    r.resType                = cudaResourceTypeLinear;
    r.res.linear.devPtr      = (void *)from;
    r.res.linear.desc        = cudaCreateChannelDesc(32, w > 1 ? 32 : 0, w > 2 ? 32 : 0, w > 2 ? 32 : 0, cudaChannelFormatKindUnsigned);
    r.res.linear.sizeInBytes = bytes < most ? bytes : most;
    t.readMode               = cudaReadModeElementType;
    err                      = cudaCreateTextureObject(&texture[k], &r, &t, NULL);
  }
  return failed(err);
}

void ReadTexturesDestroy(unsigned long long texture[3])
{
  for (int k = 0; k < 3; k++) (void)cudaDestroyTextureObject(texture[k]);
}

/*
  VECGPU's arithmetic on an NVIDIA GPU: one kernel for each row of veclist.h, and kernels for several vectors at once.

  A reduction is one launch. Every block leaves its partial result, and the last block to finish adds these up in block order, so the bits do not depend on which block is last. It writes the result,
  then a ticket, to page-locked host memory, where the host waits for the ticket. This takes a third of the time of a copy and a synchronised stream.
*/
#include "../../../sys/launch.cuh"
#include "kernels.h"

#define THREADS 256
#define WARPS   (THREADS / 32)

#define LAUNCH_VECTORS 32 /* vectors of one launch of mdot and maxpy; their pointers are parameters of the kernel */
#define THREAD_VECTORS 8  /* vectors that a thread of mdot multiplies with its entry of x */
#define GROUPS         (LAUNCH_VECTORS / THREAD_VECTORS)
#define RESULTS        512
#define BLOCKS_SM      4 /* blocks of a reduction on a processor, at most */

#define SPINS 32768 /* about a millisecond; after that the host may sleep, and notices errors */

/* Memory for the results of reductions, in the order of the device's stream: one a process */
static struct {
  GPUCSRDevice                 dev;
  double                      *partial;  /* device: results of each block */
  unsigned                    *finished; /* device: finished blocks of each group of vectors; finished groups */
  volatile unsigned long long *ticket;   /* host, page-locked, like result: the last complete reduction */
  volatile double             *result;
  unsigned long long           given; /* tickets so far */
  int                          blocks;
} work;

static GPUCSRError Release_CUDA(void)
{
  GPUCSRDevice dev = work.dev;

  work.dev = NULL;
  if (!dev || dev->failed[0]) return 0;
  GPUCSRCall(dev->ops->activate(dev->id));
  if (work.partial) GPUCSRCall(dev->ops->free(dev->id, dev->stream, work.partial));
  if (work.finished) GPUCSRCall(dev->ops->free(dev->id, dev->stream, work.finished));
  if (work.ticket) GPUCSRCall(dev->ops->hostfree(dev->id, (void *)work.ticket));
  return 0;
}

/* A fixed size, like the staging buffers, and not counted for -mat_gpucsr_memory_limit */
static GPUCSRError Allocate(GPUCSRDevice dev)
{
  void *page;

  GPUCSRCall(dev->ops->activate(dev->id));
  GPUCSRCall(dev->ops->malloc(dev->id, sizeof(double) * LAUNCH_VECTORS * (size_t)work.blocks, dev->stream, (void **)&work.partial));
  GPUCSRCall(dev->ops->malloc(dev->id, sizeof(unsigned) * (GROUPS + 1), dev->stream, (void **)&work.finished));
  GPUCSRCall(dev->ops->zero(dev->id, work.finished, sizeof(unsigned) * (GROUPS + 1), dev->stream));
  GPUCSRCall(dev->ops->hostmalloc(dev->id, sizeof(double) * (RESULTS + 1), &page));
  work.ticket  = (volatile unsigned long long *)page;
  work.result  = (volatile double *)page + 1;
  *work.ticket = 0;
  return 0;
}

/* Allocates all of the memory or none: a process without memory for reductions continues on the host */
static GPUCSRError Prepare_CUDA(GPUCSRDevice dev)
{
  GPUCSRError ierr;

  if (work.dev == dev) return 0;
  memset(&work, 0, sizeof(work));
  work.dev    = dev;
  work.blocks = BLOCKS_SM * dev->props.processors;
  ierr        = Allocate(dev);
  if (ierr) GPUCSRCall(Release_CUDA());
  GPUCSRCall(ierr);
  return 0;
}

/* Waits for the last ticket, and takes n results */
static GPUCSRError Wait(size_t n, double result[])
{
  for (int spin = 0; *work.ticket != work.given; spin++) {
    if (spin == SPINS) {
      cudaError_t err = cudaStreamSynchronize((cudaStream_t)work.dev->stream);

      GPUCSRCheck(err == cudaSuccess, GPUCSR_ERR_GPU, "CUDA device %d: a reduction failed with %s: %s", work.dev->id, cudaGetErrorName(err), cudaGetErrorString(err));
      GPUCSRCheck(*work.ticket == work.given, GPUCSR_ERR_GPU, "CUDA device %d: a reduction ended without a result", work.dev->id);
      break;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  for (size_t k = 0; k < n; k++) result[k] = work.result[k];
  return 0;
}

/* Can all these arrays be read by pairs? NULL can. Parts of vectors may begin at an odd entry */
static inline bool Paired(const void *x, const void *y, const void *z)
{
  return (((uintptr_t)x | (uintptr_t)y | (uintptr_t)z) & 15) == 0;
}

static inline unsigned Blocks(size_t work, size_t most)
{
  const size_t blocks = (work + THREADS - 1) / THREADS;

  return (unsigned)(blocks < 1 ? 1 : blocks < most ? blocks : most);
}

/* --- Entry by entry: a thread for each pair of entries, or for each entry */

#define VECGPU_MAP(name, reads_, expression) \
  struct map_##name { \
    static constexpr int                     reads = reads_; \
    static __device__ __forceinline__ double apply(double a, double b, double c, double x, double y, double z) \
    { \
      return expression; \
    } \
  };
#include "veclist.h"
#undef VECGPU_MAP

template <class Op>
__device__ __forceinline__ void entry(size_t i, double a, double b, double c, const double *xs, const double *ys, double *zs)
{
  const double x = Op::reads & VECGPU_X ? xs[i] : 0, y = Op::reads & VECGPU_Y ? ys[i] : 0, z = Op::reads & VECGPU_Z ? zs[i] : 0;

  zs[i] = Op::apply(a, b, c, x, y, z);
}

template <class Op>
__global__ void map_kernel(size_t n, double a, double b, double c, const double *xs, const double *ys, double *zs)
{
  const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;

  if (i < n) entry<Op>(i, a, b, c, xs, ys, zs);
}

template <class Op>
__global__ void map_pairs_kernel(size_t n, double a, double b, double c, const double *xs, const double *ys, double *zs)
{
  const size_t  i    = (size_t)blockIdx.x * THREADS + threadIdx.x;
  const double2 none = {0, 0};

  if (2 * i + 1 < n) {
    const double2 x = Op::reads & VECGPU_X ? ((const double2 *)xs)[i] : none, y = Op::reads & VECGPU_Y ? ((const double2 *)ys)[i] : none, z = Op::reads & VECGPU_Z ? ((const double2 *)zs)[i] : none;

    ((double2 *)zs)[i] = make_double2(Op::apply(a, b, c, x.x, y.x, z.x), Op::apply(a, b, c, x.y, y.y, z.y));
  } else if (2 * i < n) entry<Op>(2 * i, a, b, c, xs, ys, zs);
}

template <class Op>
static void LaunchMap(cudaStream_t s, size_t n, const double abc[3], const double *x, const double *y, double *z)
{
  const double *const px = Op::reads & VECGPU_X ? x : NULL, *const py = Op::reads & VECGPU_Y ? y : NULL;

  if (Paired(px, py, z)) map_pairs_kernel<Op><<<Blocks((n + 1) / 2, UINT32_MAX), THREADS, 0, s>>>(n, abc[0], abc[1], abc[2], px, py, z);
  else map_kernel<Op><<<Blocks(n, UINT32_MAX), THREADS, 0, s>>>(n, abc[0], abc[1], abc[2], px, py, z);
}

#define VECGPU_MAP(name, reads, expression) LaunchMap<map_##name>,
static void (*const maps[])(cudaStream_t, size_t, const double[3], const double *, const double *, double *) = {
#include "veclist.h"
};
#undef VECGPU_MAP

static GPUCSRError Map_CUDA(GPUCSRDevice dev, VecGPUMap op, size_t n, const double abc[3], const double *x, const double *y, double *z)
{
  if (!n) return 0;
  GPUCSRCall(dev->ops->activate(dev->id));
  (*maps[op])((cudaStream_t)dev->stream, n, abc, x, y, z);
  GPUCSRCheckLaunch("a vector operation");
  return 0;
}

struct Terms {
  const double *x[LAUNCH_VECTORS];
  double        a[LAUNCH_VECTORS];
};

template <class V>
__device__ __forceinline__ void add(V &sum, double a, V x);
template <>
__device__ __forceinline__ void add(double &sum, double a, double x)
{
  sum += a * x;
}
template <>
__device__ __forceinline__ void add(double2 &sum, double a, double2 x)
{
  sum.x += a * x.x;
  sum.y += a * x.y;
}

template <class V>
__device__ __forceinline__ void maxpy_entry(size_t i, int nv, const Terms &t, double b, double *y)
{
  V sum = {};

  if (b != 0) add(sum, b, ((const V *)y)[i]);
#pragma unroll 8
  for (int k = 0; k < nv; k++) add(sum, t.a[k], ((const V *)t.x[k])[i]);
  ((V *)y)[i] = sum;
}

template <bool PAIRS>
__global__ void maxpy_kernel(size_t n, int nv, const __grid_constant__ Terms t, double b, double *y)
{
  const size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;

  if (!PAIRS) {
    if (i < n) maxpy_entry<double>(i, nv, t, b, y);
  } else if (2 * i + 1 < n) maxpy_entry<double2>(i, nv, t, b, y);
  else if (2 * i < n) maxpy_entry<double>(2 * i, nv, t, b, y);
}

static GPUCSRError MAXPY_CUDA(GPUCSRDevice dev, size_t n, int nv, const double a[], const double *const x[], double b, double *y)
{
  if (!n) return 0;
  GPUCSRCall(dev->ops->activate(dev->id));
  for (int first = 0; !first || first < nv; first += LAUNCH_VECTORS, b = 1) {
    const int m     = GPUCSRMin(nv - first, LAUNCH_VECTORS);
    bool      pairs = Paired(y, NULL, NULL);
    Terms     t;

    for (int k = 0; k < m; k++) {
      t.x[k] = x[first + k];
      t.a[k] = a[first + k];
      pairs  = pairs && Paired(t.x[k], NULL, NULL);
    }
    if (pairs) maxpy_kernel<true><<<Blocks((n + 1) / 2, UINT32_MAX), THREADS, 0, (cudaStream_t)dev->stream>>>(n, m, t, b, y);
    else maxpy_kernel<false><<<Blocks(n, UINT32_MAX), THREADS, 0, (cudaStream_t)dev->stream>>>(n, m, t, b, y);
    GPUCSRCheckLaunch("VecMAXPY");
  }
  return 0;
}

/* --- Reductions */

struct ADD {
  static __device__ __forceinline__ double of(double a, double b)
  {
    return a + b;
  }
};

struct TOP {
  static __device__ __forceinline__ double of(double a, double b)
  {
    return b > a || b != b ? b : a;
  }
};

#define VECGPU_REDUCE(name, reads_, count_, combine_, first_, second_) \
  struct reduce_##name { \
    typedef combine_                         combine; \
    static constexpr int                     reads = reads_, count = count_; \
    static __device__ __forceinline__ double first(double x, double y) \
    { \
      return first_; \
    } \
    static __device__ __forceinline__ double second(double x, double y) \
    { \
      return second_; \
    } \
  };
#include "veclist.h"
#undef VECGPU_REDUCE

/* Over the threads of a block, always in the same order; thread 0 has the result. 0 is neutral */
template <class C>
__device__ __forceinline__ double over_block(double r)
{
  __shared__ double warp[WARPS];

#pragma unroll
  for (int o = 16; o; o >>= 1) r = C::of(r, __shfl_down_sync(0xffffffffu, r, o));
  __syncthreads(); /* all threads have read the previous number from warp */
  if (threadIdx.x % 32 == 0) warp[threadIdx.x / 32] = r;
  __syncthreads();
  if (threadIdx.x < 32) {
    r = threadIdx.x < WARPS ? warp[threadIdx.x] : 0;
#pragma unroll
    for (int o = WARPS / 2; o; o >>= 1) r = C::of(r, __shfl_down_sync(0xffffffffu, r, o));
  }
  return r;
}

__device__ __forceinline__ void publish(volatile unsigned long long *ticket, unsigned long long number)
{
  __threadfence_system();
  *ticket = number;
}

template <class Op>
__device__ __forceinline__ void meet(double &r, double &s, double x, double y)
{
  r = Op::combine::of(r, Op::first(x, y));
  if (Op::count > 1) s = Op::combine::of(s, Op::second(x, y));
}

template <class Op, bool PAIRS>
__global__ void __launch_bounds__(THREADS) reduce_kernel(size_t n, const double *__restrict__ xs, const double *__restrict__ ys, double *partial, unsigned *finished, volatile unsigned long long *ticket, volatile double *result, unsigned long long number)
{
  const size_t me = (size_t)blockIdx.x * THREADS + threadIdx.x, all = (size_t)gridDim.x * THREADS;
  double       r = 0, s = 0;

  if (PAIRS) {
#pragma unroll 4
    for (size_t i = me; i < n / 2; i += all) {
      const double2 x = ((const double2 *)xs)[i], y = Op::reads & VECGPU_Y ? ((const double2 *)ys)[i] : x;

      meet<Op>(r, s, x.x, y.x);
      meet<Op>(r, s, x.y, y.y);
    }
    if (n % 2 && me == 0) meet<Op>(r, s, xs[n - 1], Op::reads & VECGPU_Y ? ys[n - 1] : 0);
  } else {
#pragma unroll 4
    for (size_t i = me; i < n; i += all) meet<Op>(r, s, xs[i], Op::reads & VECGPU_Y ? ys[i] : 0);
  }
  r = over_block<typename Op::combine>(r);
  if (Op::count > 1) s = over_block<typename Op::combine>(s);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = r;
    if (Op::count > 1) partial[gridDim.x + blockIdx.x] = s;
  }
  if (!last_block(finished, gridDim.x)) return;
  r = s = 0;
  for (unsigned b = threadIdx.x; b < gridDim.x; b += THREADS) {
    r = Op::combine::of(r, __ldcg(partial + b));
    if (Op::count > 1) s = Op::combine::of(s, __ldcg(partial + gridDim.x + b));
  }
  r = over_block<typename Op::combine>(r);
  if (Op::count > 1) s = over_block<typename Op::combine>(s);
  if (threadIdx.x == 0) {
    result[0] = r;
    if (Op::count > 1) result[1] = s;
    publish(ticket, number);
  }
}

template <class Op>
static void LaunchReduce(cudaStream_t s, size_t n, const double *x, const double *y)
{
  const double *const py     = Op::reads & VECGPU_Y ? y : NULL;
  const unsigned      blocks = Blocks((n + 3) / 4, (size_t)work.blocks); /* four entries a thread at least */

  if (Paired(x, py, NULL)) reduce_kernel<Op, true><<<blocks, THREADS, 0, s>>>(n, x, py, work.partial, work.finished, work.ticket, work.result, ++work.given);
  else reduce_kernel<Op, false><<<blocks, THREADS, 0, s>>>(n, x, py, work.partial, work.finished, work.ticket, work.result, ++work.given);
}

#define VECGPU_REDUCE(name, reads, count, combine, first, second) LaunchReduce<reduce_##name>,
static void (*const reductions[])(cudaStream_t, size_t, const double *, const double *) = {
#include "veclist.h"
};
#undef VECGPU_REDUCE

static GPUCSRError Reduce_CUDA(GPUCSRDevice dev, VecGPUReduction op, size_t n, const double *x, const double *y, double result[2])
{
  result[0] = result[1] = 0;
  if (!n) return 0;
  GPUCSRCall(dev->ops->activate(dev->id));
  (*reductions[op])((cudaStream_t)dev->stream, n, x, y);
  GPUCSRCheckLaunch("a reduction");
  GPUCSRCall(Wait(2, result));
  return 0;
}

struct Many {
  const double *y[LAUNCH_VECTORS];
};

template <bool PAIRS>
__global__ void __launch_bounds__(THREADS) mdot_kernel(size_t n, int nv, const double *__restrict__ xs, const __grid_constant__ Many many, double *partial, unsigned *finished, volatile unsigned long long *ticket, volatile double *result, unsigned long long number)
{
  __shared__ double    all_parts[THREADS];
  const int            first = (int)blockIdx.y * THREAD_VECTORS, m = min(THREAD_VECTORS, nv - first);
  const size_t         me = (size_t)blockIdx.x * THREADS + threadIdx.x, all = (size_t)gridDim.x * THREADS;
  const double *const *y    = many.y + first;
  double              *mine = partial + (size_t)blockIdx.y * gridDim.x * THREAD_VECTORS, r[THREAD_VECTORS];

#pragma unroll
  for (int k = 0; k < THREAD_VECTORS; k++) r[k] = 0;
  if (PAIRS) {
    for (size_t i = me; i < n / 2; i += all) {
      const double2 x = ((const double2 *)xs)[i];

#pragma unroll
      for (int k = 0; k < THREAD_VECTORS; k++) {
        if (k < m) {
          const double2 v = __ldg((const double2 *)y[k] + i);

          r[k] += x.x * v.x + x.y * v.y;
        }
      }
    }
  }
  for (size_t i = PAIRS ? n - n % 2 + me : me; i < n; i += all) {
#pragma unroll
    for (int k = 0; k < THREAD_VECTORS; k++)
      if (k < m) r[k] += xs[i] * y[k][i];
  }
#pragma unroll
  for (int k = 0; k < THREAD_VECTORS; k++) {
#pragma unroll
    for (int o = 16; o; o >>= 1) r[k] += __shfl_down_sync(0xffffffffu, r[k], o);
    if (threadIdx.x % 32 == 0) all_parts[threadIdx.x / 32 * THREAD_VECTORS + k] = r[k];
  }
  __syncthreads();
  if ((int)threadIdx.x < THREAD_VECTORS) {
    double sum = 0;

#pragma unroll
    for (int w = 0; w < WARPS; w++) sum += all_parts[w * THREAD_VECTORS + threadIdx.x];
    mine[blockIdx.x * THREAD_VECTORS + threadIdx.x] = sum;
  }
  if (!last_block(finished + blockIdx.y, gridDim.x)) return;
  /* neighbouring threads have neighbouring vectors, and every THREAD_VECTORS-th thread the same vector */
  const int k   = (int)threadIdx.x % THREAD_VECTORS;
  double    sum = 0;

  for (unsigned b = threadIdx.x / THREAD_VECTORS; b < gridDim.x; b += THREADS / THREAD_VECTORS) sum += __ldcg(mine + b * THREAD_VECTORS + k);
  all_parts[threadIdx.x] = sum;
  __syncthreads();
  for (int half = THREADS / 2; half >= THREAD_VECTORS; half /= 2) {
    if ((int)threadIdx.x < half) all_parts[threadIdx.x] += all_parts[threadIdx.x + half];
    __syncthreads();
  }
  if ((int)threadIdx.x < m) {
    result[first + k] = all_parts[threadIdx.x];
    __threadfence_system();
  }
  if (last_block(finished + GROUPS, gridDim.y) && threadIdx.x == 0) publish(ticket, number);
}

static GPUCSRError MDot_CUDA(GPUCSRDevice dev, size_t n, int nv, const double *x, const double *const y[], double result[])
{
  const unsigned blocks = Blocks((n + 3) / 4, (size_t)BLOCKS_SM * dev->props.processors);

  memset(result, 0, sizeof(*result) * (size_t)nv);
  if (!n || !nv) return 0;
  GPUCSRCall(dev->ops->activate(dev->id));
  for (int batch = 0; batch < nv; batch += RESULTS) {
    const int end = GPUCSRMin(nv, batch + RESULTS);

    for (int first = batch; first < end; first += LAUNCH_VECTORS) {
      const int m     = GPUCSRMin(end - first, LAUNCH_VECTORS);
      bool      pairs = Paired(x, NULL, NULL);
      Many      many;
      dim3      grid(blocks, (m + THREAD_VECTORS - 1) / THREAD_VECTORS);

      for (int k = 0; k < m; k++) {
        many.y[k] = y[first + k];
        pairs     = pairs && Paired(many.y[k], NULL, NULL);
      }
      if (pairs) mdot_kernel<true><<<grid, THREADS, 0, (cudaStream_t)dev->stream>>>(n, m, x, many, work.partial, work.finished, work.ticket, work.result + (first - batch), ++work.given);
      else mdot_kernel<false><<<grid, THREADS, 0, (cudaStream_t)dev->stream>>>(n, m, x, many, work.partial, work.finished, work.ticket, work.result + (first - batch), ++work.given);
      GPUCSRCheckLaunch("VecMDot");
    }
    GPUCSRCall(Wait((size_t)(end - batch), result + batch));
  }
  return 0;
}

/* --- The largest or smallest entry, and its place */

struct Best {
  double             value; /* times the sign: the largest entry wins */
  unsigned long long at;
};

__device__ __forceinline__ Best better(Best a, Best b)
{
  return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
}

__device__ __forceinline__ Best best_of_block(Best r)
{
  __shared__ Best all[THREADS];

  all[threadIdx.x] = r;
  __syncthreads();
  for (int half = THREADS / 2; half; half /= 2) {
    if ((int)threadIdx.x < half) all[threadIdx.x] = better(all[threadIdx.x], all[threadIdx.x + half]);
    __syncthreads();
  }
  r = all[0];
  __syncthreads();
  return r;
}

__global__ void __launch_bounds__(THREADS) extreme_kernel(double sign, size_t n, const double *__restrict__ x, double *partial, unsigned *finished, volatile unsigned long long *ticket, volatile double *result, unsigned long long number)
{
  const Best none = {-INFINITY, ~0ULL};
  Best      *mine = (Best *)partial, r = none;

  /* comparisons with NaN are false */
  for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (size_t)gridDim.x * THREADS) r = better(r, Best{sign * x[i], i});
  r = best_of_block(r);
  if (threadIdx.x == 0) mine[blockIdx.x] = r;
  if (!last_block(finished, gridDim.x)) return;
  r = none;
  for (unsigned b = threadIdx.x; b < gridDim.x; b += THREADS) r = better(r, Best{__ldcg(&mine[b].value), __ldcg(&mine[b].at)});
  r = best_of_block(r);
  if (threadIdx.x == 0) {
    if (x[0] != x[0]) r = Best{x[0], 0};
    result[0] = sign * r.value;
    result[1] = __longlong_as_double((long long)r.at);
    publish(ticket, number);
  }
}

static GPUCSRError Extreme_CUDA(GPUCSRDevice dev, int sign, size_t n, const double *x, double *value, size_t *at)
{
  double result[2];

  GPUCSRCall(dev->ops->activate(dev->id));
  extreme_kernel<<<Blocks((n + 3) / 4, (size_t)work.blocks), THREADS, 0, (cudaStream_t)dev->stream>>>(sign, n, x, work.partial, work.finished, work.ticket, work.result, ++work.given);
  GPUCSRCheckLaunch("VecMax or VecMin");
  GPUCSRCall(Wait(2, result));
  *value = result[0];
  memcpy(at, &result[1], sizeof(*at));
  return 0;
}

/* kernels.h declares it extern: otherwise a const object of namespace scope has internal linkage in C++ */
const VecGPUKernels VecGPUKernels_cuda = {Prepare_CUDA, Map_CUDA, MAXPY_CUDA, Reduce_CUDA, MDot_CUDA, Extreme_CUDA, Release_CUDA};

#pragma once

/* Common to kernels: checked launches, streamed loads, the end of every product */
#include "kernels.h"
#include "../../../../../sys/launch.cuh"
#include <cuda_runtime.h>

/* A const object of C++ needs this declaration for external linkage */
#define GPUCSR_EXPORT(type, name) \
  GPUCSR_INTERN const type name; \
  const type               name

/* Of stencil_build.cu, for the inspector */
GPUCSR_INTERN GPUCSRError GPUCSRFindStencils(const GPUCSRStorage *, int, int, void *, int *, int *, unsigned short *, GPUCSRStream);

/* Memory of the host, given back when its scope ends */
template <class T>
struct HostArray {
  T *p = NULL;

  GPUCSRError make(size_t n)
  {
    return GPUCSRHostMalloc(sizeof(T) * n, (void **)&p);
  }
  T &operator[](size_t k) const
  {
    return p[k];
  }
  ~HostArray()
  {
    GPUCSRHostFree((void **)&p);
  }
};

static inline unsigned int GPUCSRBlocks(int64_t work, int block)
{
  return (unsigned int)((work + block - 1) / block);
}

/* The first of lo, ..., hi - 1 for which below() is false, hi if there is none. Once false, below() stays false */
template <class I, class F>
__device__ __forceinline__ I bisect(I lo, I hi, F below)
{
  while (lo < hi) {
    const I mid = lo + (hi - lo) / 2;

    if (below(mid)) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/* Matrix entries are read once: keeps them from pushing x out of the caches */
template <class T>
__device__ __forceinline__ T streamed(const T *p)
{
  return __ldcs(p);
}

/* W neighbours at a multiple of their size, in one load, or in two of 16 bytes */
template <int W, class T>
__device__ __forceinline__ void streamed(const T *p, T (&to)[W])
{
  constexpr int bytes = W * (int)sizeof(T);

  if constexpr (W == 1) to[0] = __ldcs(p);
  else if constexpr (bytes == 8) {
    const uint2 t = __ldcs((const uint2 *)p);

    memcpy(to, &t, 8);
  } else {
#pragma unroll
    for (int k = 0; k < bytes / 16; k++) {
      const uint4 t = __ldcs((const uint4 *)p + k);

      memcpy((char *)to + 16 * k, &t, 16);
    }
  }
}

/* The mark of format/absent.h, in one comparison */
__device__ __forceinline__ bool is_absent(double v)
{
  return __double2hiint(v) == -1;
}
__device__ __forceinline__ bool is_absent(float v)
{
  return __float_as_int(v) == -1;
}
template <class V>
__device__ __forceinline__ V absent();
template <>
__device__ __forceinline__ double absent<double>()
{
  return __longlong_as_double(-1);
}
template <>
__device__ __forceinline__ float absent<float>()
{
  return __int_as_float(-1);
}
/* A value to be stored */
template <class V>
__device__ __forceinline__ V present(V v)
{
  return is_absent(v) ? V(nan("")) : v;
}

/* The product contract: z = alpha A x + beta y, y untouched when beta is 0 */
template <class X>
__device__ __forceinline__ void store(X *z, const X *y, int64_t r, X alpha, X sum, X beta)
{
  z[r] = beta == X(0) ? alpha * sum : alpha * sum + beta * y[r];
}

/* The same for kernels whose products may end with a step. finish() takes the tally of its rows from each thread of a block */
template <class X>
struct Ending {
  X        alpha, beta, ca, cb;
  const X *x, *y, *M, *before;
  X       *z;
  bool     step;

  struct Tally {
    __device__ __forceinline__ void row(const Ending &, int64_t, X)
    {
    }
  };

  Ending(const GPUCSRProduct *p) : alpha((X)p->alpha), beta((X)p->beta), ca((X)p->step.ca), cb((X)p->step.cb), x((const X *)p->x), y((const X *)p->y), M((const X *)p->step.M), before((const X *)p->step.before), z((X *)p->z), step(p->step.taken)
  {
  }

  __device__ __forceinline__ X scaled(int64_t, X v) const
  {
    return v;
  }
};

/* The same with sums */
struct Summing : Ending<double> {
  const double *q, *u, *scale;
  double       *part;
  int           most;
  bool          all;

  struct Tally {
    double sum[GPUCSR_INNER] = {};

    __device__ __forceinline__ void row(const Summing &e, int64_t r, double z)
    {
      const double q = e.q[r];

      sum[0] += q * z;
      if (!e.all) return;
      sum[1] += z * z;
      sum[2] += q * q;
      if (!e.u) return;
      const double u = e.u[r];

      sum[3] += u * z;
      sum[4] += u * q;
    }
  };

  Summing(const GPUCSRProduct *p) : Ending<double>(p), q(p->sums.q), u(p->sums.u), scale(p->sums.M), part(p->sums.part), most(GPUCSR_MOST_PARTS(p->last)), all(p->sums.all)
  {
  }

  __device__ __forceinline__ double scaled(int64_t r, double v) const
  {
    return scale ? scale[r] * v : v;
  }
};

/* y of a row, before its sum is known if the kernel wants */
template <class X>
__device__ __forceinline__ X added(const Ending<X> &e, int64_t r)
{
  return e.beta == X(0) ? X(0) : e.y[r];
}

template <class E, class X>
__device__ __forceinline__ void store(const E &e, int64_t r, X sum, X y, typename E::Tally &tally)
{
  X v = e.beta == X(0) ? e.alpha * sum : e.alpha * sum + e.beta * y;

  if (e.step) {
    const X x = e.x[r];
    X       d = e.cb * (e.M ? e.M[r] * v : v);

    if (e.ca != X(0)) d += e.ca * (e.before ? x - e.before[r] : x);
    v = x + d;
  } else v = e.scaled(r, v);
  e.z[r] = v;
  tally.row(e, r, v);
}

template <class E, class X>
__device__ __forceinline__ void store(const E &e, int64_t r, X sum, typename E::Tally &tally)
{
  store(e, r, sum, added(e, r), tally);
}

template <class X>
__device__ __forceinline__ void finish(const Ending<X> &, const typename Ending<X>::Tally &)
{
}

/* Two neighbours in one load */
template <class T>
struct pair_of;
template <>
struct pair_of<double> {
  typedef double2 type;
};
template <>
struct pair_of<float> {
  typedef float2 type;
};

/* Sum over T neighbouring threads of a warp, T a power of two; the first one gets it */
template <int T, class X>
__device__ __forceinline__ X reduce(X s)
{
#pragma unroll
  for (int o = T / 2; o; o >>= 1) s += __shfl_down_sync(0xffffffffu, s, o, T);
  return s;
}

/* The sums of a slice's rows, each in the thread of its row, from W neighbouring rows a thread */
template <int W, class X>
__device__ __forceinline__ X to_rows(X (&sum)[W])
{
  const int lane = (int)threadIdx.x % GPUCSR_SLICE;
  X         own  = sum[0];

  if constexpr (W > 1) {
#pragma unroll
    for (int w = 0; w < W; w++) {
#pragma unroll
      for (int o = GPUCSR_SLICE / W; o < GPUCSR_SLICE; o *= 2) sum[w] += __shfl_xor_sync(0xffffffffu, sum[w], o);
      const X other = __shfl_sync(0xffffffffu, sum[w], lane / W);
      if (lane % W == w) own = other;
    }
  }
  return own;
}

/* Adds the sums of the T warps of a slice, in the first one; TEAMS slices a block */
template <int TEAMS, int T, class X>
__device__ __forceinline__ X add_warps(X sum)
{
  const int lane = (int)threadIdx.x % GPUCSR_SLICE, warp = (int)threadIdx.x / GPUCSR_SLICE % T, team = (int)threadIdx.x / (GPUCSR_SLICE * T);

  if constexpr (T > 1) {
    __shared__ X part[TEAMS][T][GPUCSR_SLICE];

    part[team][warp][lane] = sum;
    __syncthreads();
    if (warp == 0)
#pragma unroll
      for (int t = 1; t < T; t++) sum += part[team][t][lane];
  }
  return sum;
}

/* The sum over a lane and the lanes before it */
static __device__ __forceinline__ int warp_upto(int v)
{
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    const int before = __shfl_up_sync(0xffffffffu, v, o);

    if ((int)threadIdx.x % 32 >= o) v += before;
  }
  return v;
}

/* Every lane of a warp returns the sum or the minimum over the lanes; for 32 bits one instruction from compute capability 8.0 on */
static __device__ __forceinline__ int warp_sum(int v)
{
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(0xffffffffu, v);
#else
  #pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
#endif
}

static __device__ __forceinline__ unsigned long long warp_sum(unsigned long long v)
{
#pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffffu, v, o);
  return v;
}

static __device__ __forceinline__ unsigned int warp_least(unsigned int v)
{
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(0xffffffffu, v);
#else
  #pragma unroll
  for (int o = 16; o; o >>= 1) v = min(v, __shfl_xor_sync(0xffffffffu, v, o));
  return v;
#endif
}

/* N sums over a warp at once: lanes share the work, and which() tells a lane's sum */
template <int N>
struct WarpSums {
  static constexpr int wide = N <= 1 ? 1 : N <= 2 ? 2 : N <= 4 ? 4 : 8;

  static __device__ __forceinline__ int which(int lane)
  {
    return wide == 1 ? 0 : wide == 2 ? lane / 16 : wide == 4 ? lane / 8 : lane / 4;
  }

  static __device__ __forceinline__ double sum(const double (&v)[N], int lane)
  {
    double w[wide];

#pragma unroll
    for (int k = 0; k < wide; k++) w[k] = k < N ? v[k] : 0;
#pragma unroll
    for (int have = wide, o = 16; o; o >>= 1) {
      if (have > 1) {
        have /= 2;
#pragma unroll
        for (int k = 0; k < have; k++) {
          const double keep = lane & o ? w[k + have] : w[k], give = lane & o ? w[k] : w[k + have];

          w[k] = keep + __shfl_xor_sync(0xffffffffu, give, o);
        }
      } else w[0] += __shfl_xor_sync(0xffffffffu, w[0], o);
    }
    return w[0];
  }
};

/* Called by all threads of a block, at the end */
__device__ __forceinline__ void finish(const Summing &e, const Summing::Tally &tally)
{
  typedef WarpSums<GPUCSR_INNER> Sums;

  __shared__ double part[GPUCSR_INNER][32];
  const int         lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, warps = (int)blockDim.x / 32, k = e.all ? Sums::which(lane) : 0;

  const double sums = e.all ? Sums::sum(tally.sum, lane) : WarpSums<1>::sum({tally.sum[0]}, lane);

  if (k < GPUCSR_INNER) part[k][warp] = sums; /* all lanes with sum k have the same number */
  __syncthreads();
  if (threadIdx.x >= (e.all ? GPUCSR_INNER : 1)) return;
  double sum = 0;

  for (int w = 0; w < warps; w++) sum += part[threadIdx.x][w];
  e.part[(size_t)threadIdx.x * e.most + blockIdx.x] = sum;
}

/* Calls launch() with the end of the product */
template <class X, class F>
static void GPUCSREnding(const GPUCSRProduct *p, unsigned int blocks, F launch)
{
  if constexpr (sizeof(X) == sizeof(double)) {
    if (p->sums.q) {
      *p->sums.parts = (int)blocks;
      launch(Summing(p));
      return;
    }
  }
  launch(Ending<X>(p));
}

#pragma once

/*
  Building blocks for the products of a persistent kernel. A format's product, in its own file, is a struct F<V> with values V. product() calls f(row in the block, sum) for each row of a block, in the
  thread that has the sum. settle() loads its data in shared memory. of() makes the struct for a kernel. offsets: columns are rows plus a few offsets. peers: kernels exist for several ranks;
  with single precision values these solve by a graph, since kernels would double the code.
*/
#include "../persistent.cuh"

#define THREADS ((int)blockDim.x)
#define WARPS   (THREADS / 32)
#define AHEAD   8 /* entries of a row in flight */

/* ---- matrix entries: read once an iteration, and kept in the last-level cache between iterations only if all of them fit ---- */

__device__ __forceinline__ unsigned long long entry_policy(int keep)
{
  unsigned long long p = 0;

#if __CUDA_ARCH__ >= 800
  if (keep) asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(p));
  else asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(p));
#endif
  return p;
}

#if __CUDA_ARCH__ >= 800
  #define LOAD_ENTRY(v, name, letter, p, policy) asm("ld.global.nc.L1::no_allocate.L2::cache_hint." name " %0, [%1], %2;" : letter(v) : "l"(p), "l"(policy))
#else
  #define LOAD_ENTRY(v, name, letter, p, policy) v = __ldcs(p)
#endif
#define ENTRY(type, name, letter) \
  __device__ __forceinline__ type entry(const type *p, unsigned long long policy) \
  { \
    type v; \
\
    LOAD_ENTRY(v, name, letter, p, policy); \
    return v; \
  }
ENTRY(int, "s32", "=r")
ENTRY(float, "f32", "=f")
ENTRY(double, "f64", "=d")

/*
  ---- the vector that A multiplies: stored, or computed on reading as a sum of other vectors ----

  Computing it saves a grid-wide reduction, because the summands are complete before their coefficients. Other blocks have written the summands in this kernel, so plain loads read them; reductions
  keep the loaded values from being stale.
*/

struct Vector {
  static const int ahead = AHEAD;
  const double    *x;

  __device__ __forceinline__ double operator()(int c) const
  {
    return x[c];
  }
};

/* No vector: records the columns of a thread's rows */
struct Reach {
  static const int ahead = AHEAD;
  int             *lo, *hi;

  __device__ __forceinline__ double operator()(int c) const
  {
    *lo = min(*lo, c);
    *hi = max(*hi, c + 1);
    return 0;
  }
};

/* The next direction of conjugate gradients */
struct Direction {
  static const int ahead = AHEAD;
  const double    *z, *p;
  double           beta;

  __device__ __forceinline__ double operator()(int c) const
  {
    return z[c] + beta * p[c];
  }
};

/* The directions of BiCGStab; d is the diagonal of a right preconditioner, or NULL */
struct BCGSWhole {
  static const int ahead = AHEAD / 2;
  const double    *r, *v, *p, *d;
  double           omegabeta, beta;

  __device__ __forceinline__ double operator()(int c) const
  {
    const double y = r[c] - omegabeta * v[c] + beta * p[c];

    return d ? d[c] * y : y;
  }
};

struct BCGSHalf {
  static const int ahead = AHEAD / 2;
  const double    *r, *v, *d;
  double           alpha;

  __device__ __forceinline__ double operator()(int c) const
  {
    const double y = r[c] - alpha * v[c];

    return d ? d[c] * y : y;
  }
};

/* ---- a vector of the block's rows, with as many rows as fit in shared memory ---- */

struct Rows {
  double *nearby, *far;
  int     resident;

  __device__ __forceinline__ double &operator[](int i) const
  {
    return i < resident ? nearby[i] : far[i];
  }
};

struct Pool {
  char  *next;
  size_t left;

  __device__ __forceinline__ Rows rows(double *global, int first, int count)
  {
    Rows      v;
    const int fit = (int)(left / sizeof(double));

    v.far      = global ? global + first : global;
    v.nearby   = (double *)next;
    v.resident = global ? (count <= fit ? count : fit / THREADS * THREADS) : 0;
    next += (sizeof(double) * v.resident + 15) / 16 * 16;
    left -= min(left, (sizeof(double) * v.resident + 15) / 16 * 16);
    return v;
  }

  __device__ __forceinline__ void align(unsigned bytes)
  {
    const unsigned over = (unsigned)__cvta_generic_to_shared(next) % bytes, pad = over ? bytes - over : 0;

    next += pad;
    left -= pad;
  }

  /* A vector that is known to fit */
  template <class T>
  __device__ __forceinline__ T *take(int count)
  {
    T *const p = (T *)next;

    next += (sizeof(T) * count + 15) / 16 * 16;
    left -= (sizeof(T) * count + 15) / 16 * 16;
    return p;
  }
};

/* The number of warps of a slice, or of threads of a row of CSR: a power of two, so an iteration divides no integers */
struct Sharing {
  int count, log;

  static Sharing of(int count)
  {
    Sharing s = {count, 0};

    while (1 << s.log < count) s.log++;
    return s;
  }

  __device__ __forceinline__ int part(int i) const
  {
    return i & (count - 1);
  }

  /* The groups of i work items, and the item of the i-th group */
  __device__ __forceinline__ int groups(int i) const
  {
    return i >> log;
  }
};

/* The sum of the parts of neighbouring warps, in the first of these */
__device__ __forceinline__ double add_parts(double sum, Sharing split, int part, double *scratch)
{
  scratch[threadIdx.x] = sum;
  __syncthreads();
  for (int u = 1; u < split.count && part == 0; u++) sum += scratch[threadIdx.x + 32 * u];
  __syncthreads();
  return sum;
}

/* Does the matrix stay in the last-level cache between iterations? entry: bytes of an entry */
static inline int fits(const GPUCSRStorage *A, size_t entry)
{
  return (double)A->stored * (double)entry + 8.0 * 4.0 * (double)A->m < 0.9 * (double)A->dev->props.l2;
}

/* Loops over the rows of a block. The kernel defines int rows, and int GROUP, the number of a thread's rows that are read together */
#define FOR_ROWS(i) for (int i = threadIdx.x; i < rows; i += THREADS)

/* The loops of an iteration: several rows of a thread are read before the first is written, to have their loads in flight together */
#define FOR_GROUPS(g)      for (int g = threadIdx.x; g < rows; g += GROUP * THREADS)
#define FOR_GROUPS_BACK(g) for (int g = (rows + GROUP * THREADS - 1) / (GROUP * THREADS) * (GROUP * THREADS) - GROUP * THREADS + threadIdx.x; g >= 0; g -= GROUP * THREADS)
#define FOR_GROUP(g, u, i) _Pragma("unroll") for (int u = 0, i = g; u < GROUP; u++, i += THREADS) if (i < rows)
/* For reading: past the end, repeats the last row, since branches would separate the loads */
#define FOR_GROUP_READ(g, u, i) _Pragma("unroll") for (int u = 0, i = min(g, rows - 1); u < GROUP; u++, i = min(g + u * THREADS, rows - 1))

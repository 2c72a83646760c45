/*
  z = A x for CSR, with every kind of load of a GPU, in one template. A unit of `threads` threads computes a row, then the next of its `rows` rows. Loads of
  `width` entries begin at a multiple of width; entries outside of the row do not count. VALUE is float or double.

  Row pointers are two loads a row. A branch at run time, the same for all threads, chooses their memory space.
*/
#include <cuda_runtime.h>
#include <cstdint>
#include <utility>
#include "variants.h"

#define VARIANT_NAME_(function, type) function##_##type
#define VARIANT_NAME(function, type)  VARIANT_NAME_(function, type)

struct Arguments {
  VariantMatrix A;
  int           rows, cyclic, ptr;
  int           xconstant, xshared; /* where x begins in constant and in shared memory, bytes */
};

static __constant__ __align__(16) char pool[VARIANT_CONSTANT];

template <int SPACE, class T>
static __device__ __forceinline__ T load(const T *p)
{
  return SPACE == SPACE_READONLY ? __ldg(p) : SPACE == SPACE_STREAMING ? __ldcs(p) : *p;
}

static __device__ __forceinline__ double number(int2 v)
{
  return __hiloint2double(v.y, v.x);
}

/* WIDTH columns or values from entry q on; t is the texture of such loads */
template <int SPACE, int WIDTH>
static __device__ __forceinline__ void loads(const int *p, cudaTextureObject_t t, int q, int out[WIDTH])
{
  if constexpr (WIDTH == 1) {
    if constexpr (SPACE == SPACE_TEXTURE) out[0] = tex1Dfetch<int>(t, q);
    else out[0] = load<SPACE>(p + q);
  } else if constexpr (WIDTH == 2) {
    int2 v;
    if constexpr (SPACE == SPACE_TEXTURE) v = tex1Dfetch<int2>(t, q / 2);
    else v = load<SPACE>((const int2 *)(p + q));
    out[0] = v.x, out[1] = v.y;
  } else {
    int4 v;
    if constexpr (SPACE == SPACE_TEXTURE) v = tex1Dfetch<int4>(t, q / 4);
    else v = load<SPACE>((const int4 *)(p + q));
    out[0] = v.x, out[1] = v.y, out[2] = v.z, out[3] = v.w;
  }
}

template <int SPACE, int WIDTH>
static __device__ __forceinline__ void loads(const float *p, cudaTextureObject_t t, int q, float out[WIDTH])
{
  int v[WIDTH];
  loads<SPACE, WIDTH>((const int *)p, t, q, v);
  for (int w = 0; w < WIDTH; w++) out[w] = __int_as_float(v[w]);
}

template <int SPACE, int WIDTH>
static __device__ __forceinline__ void loads(const double *p, cudaTextureObject_t t, int q, double out[WIDTH])
{
  if constexpr (WIDTH == 1) {
    if constexpr (SPACE == SPACE_TEXTURE) out[0] = number(tex1Dfetch<int2>(t, q));
    else out[0] = load<SPACE>(p + q);
  } else {
#pragma unroll
    for (int w = 0; w < WIDTH; w += 2) {
      if constexpr (SPACE == SPACE_TEXTURE) {
        const int4 v = tex1Dfetch<int4>(t, (q + w) / 2);
        out[w] = number(make_int2(v.x, v.y)), out[w + 1] = number(make_int2(v.z, v.w));
      } else {
        const double2 v = load<SPACE>((const double2 *)(p + q + w));
        out[w] = v.x, out[w + 1] = v.y;
      }
    }
  }
}

template <int SPACE>
static __device__ __forceinline__ VALUE entry(const Arguments &a, const char *shared, int c)
{
  if constexpr (SPACE == SPACE_CONSTANT) return ((const VALUE *)(pool + a.xconstant))[c];
  else if constexpr (SPACE == SPACE_SHARED) return ((const VALUE *)(shared + a.xshared))[c];
  else if constexpr (SPACE != SPACE_TEXTURE) return load<SPACE>((const VALUE *)a.A.x + c);
  else if constexpr (sizeof(VALUE) == 8) return number(tex1Dfetch<int2>(a.A.xtexture, c));
  else return tex1Dfetch<float>(a.A.xtexture, c);
}

/* Pointer r, of which a block's first is `first` */
static __device__ __forceinline__ int pointer(const Arguments &a, const int *shared, int first, int r)
{
  switch (a.ptr) {
  case SPACE_READONLY:
    return __ldg(a.A.ptr + r);
  case SPACE_TEXTURE:
    return tex1Dfetch<int>(a.A.ptrtexture, r);
  case SPACE_CONSTANT:
    return ((const int *)pool)[r];
  case SPACE_SHARED:
    return shared[r - first];
  default:
    return a.A.ptr[r];
  }
}

template <int THREADS, int WIDTH, int LOAD, int X>
static __global__ void __launch_bounds__(VARIANT_BLOCK) variant_kernel(const Arguments a)
{
  constexpr int     UNITS = VARIANT_BLOCK / THREADS;
  extern __shared__ __align__(16) char shared[];
  __shared__ VALUE                     part[VARIANT_BLOCK / 32];
  const int                            unit = (int)threadIdx.x / THREADS, lane = (int)threadIdx.x % THREADS, first = (int)blockIdx.x * UNITS * a.rows;
  const unsigned int                   mask = THREADS >= 32 ? 0xffffffffu : ((1u << (THREADS % 32)) - 1) << ((int)threadIdx.x % 32 / THREADS * THREADS);

  if (X == SPACE_SHARED)
    for (int c = (int)threadIdx.x; c < a.A.n; c += VARIANT_BLOCK) ((VALUE *)(shared + a.xshared))[c] = __ldg((const VALUE *)a.A.x + c);
  if (a.ptr == SPACE_SHARED)
    for (int r = (int)threadIdx.x; r <= UNITS * a.rows && first + r <= a.A.m; r += VARIANT_BLOCK) ((int *)shared)[r] = __ldg(a.A.ptr + first + r);
  if (X == SPACE_SHARED || a.ptr == SPACE_SHARED) __syncthreads();
  for (int k = 0; k < a.rows; k++) {
    const int r = first + (a.cyclic ? unit + k * UNITS : unit * a.rows + k);

    if (r >= a.A.m) return; /* all threads of the row */
    const int begin = pointer(a, (const int *)shared, first, r), end = pointer(a, (const int *)shared, first, r + 1);
    VALUE     sum = 0;

    for (int q = begin / WIDTH * WIDTH + lane * WIDTH; q < end; q += THREADS * WIDTH) {
      VALUE v[WIDTH];
      int   c[WIDTH];

      loads<LOAD, WIDTH>(a.A.col, a.A.coltexture[WIDTH / 2], q, c);
      loads<LOAD, WIDTH>((const VALUE *)a.A.val, a.A.valtexture[WIDTH / 2], q, v);
#pragma unroll
      for (int w = 0; w < WIDTH; w++)
        if (WIDTH == 1 || (q + w >= begin && q + w < end)) sum += v[w] * entry<X>(a, shared, c[w]);
    }
#pragma unroll
    for (int o = THREADS >= 32 ? 16 : THREADS / 2; o > 0; o /= 2) sum += __shfl_xor_sync(mask, sum, o);
    if (THREADS == VARIANT_BLOCK) {
      if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
      __syncthreads();
      if (lane == 0)
        for (int w = 1; w < VARIANT_BLOCK / 32; w++) sum += part[w];
      __syncthreads();
    }
    if (lane == 0) ((VALUE *)a.A.z)[r] = sum;
  }
}

typedef void (*Kernel)(Arguments);

/* All of them; NTHREADS, ... are the words of each option in the order of the template's parameters */
static constexpr int threads_[] = {1, 4, 16, VARIANT_BLOCK}, width_[] = {1, 2, 4}, load_[] = {SPACE_PLAIN, SPACE_READONLY, SPACE_STREAMING, SPACE_TEXTURE}, x_[] = {SPACE_PLAIN, SPACE_READONLY, SPACE_TEXTURE, SPACE_CONSTANT, SPACE_SHARED};
#define NVARIANTS (4 * 3 * 4 * 5)

template <size_t... K>
static Kernel pick(size_t which, std::index_sequence<K...>)
{
  static const Kernel all[] = {&variant_kernel<threads_[K / 60], width_[K / 20 % 3], load_[K / 5 % 4], x_[K % 5]>...};

  return all[which];
}

template <size_t N>
static size_t position(const int (&words)[N], int word)
{
  for (size_t k = 0; k < N; k++)
    if (words[k] == word) return k;
  return N;
}

static const char *failed(cudaError_t err)
{
  return err == cudaSuccess ? NULL : cudaGetErrorString(err);
}

extern "C" const char *VARIANT_NAME(VariantLaunch, VALUE)(const Variant *v, const VariantMatrix *A, void *stream)
{
  const size_t t = position(threads_, v->threads), w = position(width_, v->width), l = position(load_, v->load), x = position(x_, v->x);
  const int    units = VARIANT_BLOCK / v->threads, rows = units * v->rows;
  size_t       bytes = 0, xbytes;
  Arguments    a;

  if (t == 4 || w == 3 || l == 4 || x == 5) return "no such variant";
  const Kernel kernel = pick(60 * t + 20 * w + 5 * l + x, std::make_index_sequence<NVARIANTS>());
  a.A = *A, a.rows = v->rows, a.cyclic = v->cyclic, a.ptr = v->ptr;
  a.xconstant = (int)VariantConstantBytes(A, &xbytes);
  if (v->ptr == SPACE_SHARED) bytes = ((size_t)rows + 1) * sizeof(int);
  bytes     = (bytes + 15) / 16 * 16;
  a.xshared = (int)bytes;
  if (v->x == SPACE_SHARED) bytes += (size_t)A->n * sizeof(VALUE);
  if (bytes > 48 << 10) {
    const cudaError_t err = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);

    if (err) return failed(err);
  }
  kernel<<<(unsigned int)(((int64_t)A->m + rows - 1) / rows), VARIANT_BLOCK, bytes, (cudaStream_t)stream>>>(a);
  return failed(cudaGetLastError());
}

extern "C" const char *VARIANT_NAME(VariantConstants, VALUE)(const VariantMatrix *A, size_t ptrbytes, size_t xbytes)
{
  cudaError_t err = cudaSuccess;

  if (ptrbytes) err = cudaMemcpyToSymbol(pool, A->ptr, ((size_t)A->m + 1) * sizeof(int), 0, cudaMemcpyDeviceToDevice);
  if (!err && xbytes) err = cudaMemcpyToSymbol(pool, A->x, xbytes, ptrbytes, cudaMemcpyDeviceToDevice);
  if (!err) err = cudaDeviceSynchronize(); /* other streams read it */
  return failed(err);
}

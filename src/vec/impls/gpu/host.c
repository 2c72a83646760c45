/*
  VECGPU's arithmetic on the host backend: one loop for each row of veclist.h.
*/
#include "kernels.h"
#include "../../../sys/gpucsrsys.h"
#include <math.h>
#include <string.h>

#define VECGPU_MAP(name, reads, expression) \
  static void map_##name(size_t n, double a, double b, double c, const double *xs, const double *ys, double *zs) \
  { \
    (void)a; \
    (void)b; \
    (void)c; \
    _Pragma("omp simd") for (size_t i = 0; i < n; i++) \
    { \
      const double x = (reads)&VECGPU_X ? xs[i] : 0, y = (reads)&VECGPU_Y ? ys[i] : 0, z = (reads)&VECGPU_Z ? zs[i] : 0; \
\
      (void)x; \
      (void)y; \
      (void)z; \
      zs[i] = expression; \
    } \
  }
#include "veclist.h"
#undef VECGPU_MAP

#define VECGPU_MAP(name, reads, expression) map_##name,
static void (*const maps[])(size_t, double, double, double, const double *, const double *, double *) = {
#include "veclist.h"
};
#undef VECGPU_MAP

static inline double Add(double a, double b)
{
  return a + b;
}

static inline double Top(double a, double b)
{
  return b > a || b != b ? b : a;
}

#pragma omp declare reduction(ADD:double : omp_out = Add(omp_out, omp_in)) initializer(omp_priv = 0)
#pragma omp declare reduction(TOP:double : omp_out = Top(omp_out, omp_in)) initializer(omp_priv = 0)
#define COMBINE_ADD Add
#define COMBINE_TOP Top

#define PRAGMA(text) _Pragma(#text)

/* Entries of a piece of vectors, which stays in the first-level cache. Summing the sums of pieces keeps rounding errors small */
#define PIECE 1024

#define VECGPU_REDUCE(name, reads, count, combine, first, second) \
  static void reduce_##name(size_t n, const double *xs, const double *ys, double result[2]) \
  { \
    result[0] = result[1] = 0; \
    for (size_t p = 0; p < n; p += PIECE) { \
      const size_t end = p + PIECE < n ? p + PIECE : n; \
      double       r = 0, s = 0; \
\
      PRAGMA(omp simd reduction(combine : r, s)) \
      for (size_t i = p; i < end; i++) { \
        const double x = (reads)&VECGPU_X ? xs[i] : 0, y = (reads)&VECGPU_Y ? ys[i] : 0; \
\
        (void)y; \
        r = COMBINE_##combine(r, first); \
        if ((count) > 1) s = COMBINE_##combine(s, second); \
      } \
      result[0] = COMBINE_##combine(result[0], r); \
      result[1] = COMBINE_##combine(result[1], s); \
    } \
  }
#include "veclist.h"
#undef VECGPU_REDUCE

#define VECGPU_REDUCE(name, reads, count, combine, first, second) reduce_##name,
static void (*const reductions[])(size_t, const double *, const double *, double[2]) = {
#include "veclist.h"
};
#undef VECGPU_REDUCE

/* dev NULL: vectors that are on the host for good, or for lack of memory */
static PetscErrorCode Begin(GPUCSRDevice dev)
{
  return dev ? GPUCSRWaitStreamOnHost(dev->stream) : PETSC_SUCCESS;
}

static PetscErrorCode End(GPUCSRDevice dev, const char what[])
{
  return dev ? GPUCSRLaunched(dev, what) : PETSC_SUCCESS;
}

static PetscErrorCode Map_Host(GPUCSRDevice dev, VecGPUMap op, size_t n, const double abc[3], const double *x, const double *y, double *z)
{
  PetscFunctionBegin;
  PetscCall(Begin(dev));
  (*maps[op])(n, abc[0], abc[1], abc[2], x, y, z);
  PetscCall(End(dev, "map"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MAXPY_Host(GPUCSRDevice dev, size_t n, int nv, const double a[], const double *const x[], double b, double *y)
{
  PetscFunctionBegin;
  PetscCall(Begin(dev));
  for (size_t p = 0; p < n; p += PIECE) {
    const size_t end = PetscMin(n, p + PIECE);

    if (b == 0) memset(y + p, 0, (end - p) * sizeof(*y));
    else if (b != 1) map_scale(end - p, b, 0, 0, NULL, NULL, y + p);
    for (int k = 0; k < nv; k++) map_axpy(end - p, a[k], 0, 0, x[k] + p, NULL, y + p);
  }
  PetscCall(End(dev, "maxpy"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Reduce_Host(GPUCSRDevice dev, VecGPUReduction op, size_t n, const double *x, const double *y, double result[2])
{
  PetscFunctionBegin;
  PetscCall(Begin(dev));
  (*reductions[op])(n, x, y, result);
  PetscCall(End(dev, "reduce"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode MDot_Host(GPUCSRDevice dev, size_t n, int nv, const double *x, const double *const y[], double result[])
{
  PetscFunctionBegin;
  PetscCall(Begin(dev));
  for (int k = 0; k < nv; k++) result[k] = 0;
  for (size_t p = 0; p < n; p += PIECE) {
    const size_t length = PetscMin(PIECE, n - p);
    double       part[2];

    for (int k = 0; k < nv; k++) {
      reduce_dot(length, x + p, y[k] + p, part);
      result[k] += part[0];
    }
  }
  PetscCall(End(dev, "mdot"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

static PetscErrorCode Extreme_Host(GPUCSRDevice dev, int sign, size_t n, const double *x, double *value, size_t *at)
{
  PetscFunctionBegin;
  PetscCall(Begin(dev));
  *at = 0;
  for (size_t i = 1; i < n; i++)
    if (sign > 0 ? x[i] > x[*at] : x[i] < x[*at]) *at = i;
  *value = x[*at];
  PetscCall(End(dev, "extreme"));
  PetscFunctionReturn(PETSC_SUCCESS);
}

const VecGPUKernels VecGPUKernels_host = {.map = Map_Host, .maxpy = MAXPY_Host, .reduce = Reduce_Host, .mdot = MDot_Host, .extreme = Extreme_Host};

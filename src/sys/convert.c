/*
  Conversion of numbers by several threads, and the largest rounding error of it.
*/
#include "gpucsrsys.h"
#include <math.h>
#include <omp.h>
#include <string.h>

/*
  Several numbers at once, with a division only if a block has a larger rounding error than all before: divisions dominate otherwise. A quotient that is NaN or Inf counts as no rounding
*/
static double RoundToFloat(float *restrict t, const double *restrict f, size_t n, double worst)
{
  const size_t block = 256;

  for (size_t b = 0; b < n; b += block) {
    const size_t end  = PetscMin(n, b + block);
    double       over = -1;

#pragma omp simd reduction(max : over)
    for (size_t k = b; k < end; k++) {
      double e;

      t[k] = (float)f[k];
      e    = fabs(f[k] - (double)t[k]) - worst * fabs(f[k]);
      over = e > over ? e : over;
    }
    if (over <= 0) continue;
#pragma omp simd reduction(max : worst)
    for (size_t k = b; k < end; k++) {
      const double e = fabs(f[k] - (double)t[k]) / fabs(f[k]);

      worst = e > worst ? e : worst;
    }
    worst = worst < 1 ? worst : 1;
  }
  return worst;
}

PetscBool GPUCSRConvertible(GPUCSRType to, GPUCSRType from)
{
  return (PetscBool)(to == from || (to == GPUCSR_FLOAT && from == GPUCSR_DOUBLE) || (to == GPUCSR_DOUBLE && from == GPUCSR_FLOAT) || (to == GPUCSR_INT32 && from == GPUCSR_INT64) || (to == GPUCSR_INT64 && from == GPUCSR_INT32));
}

#define CONVERT(TO, FROM) \
  for (size_t k = 0; k < n; k++) ((TO *)dst)[k] = (TO)((const FROM *)src)[k]

/* Numbers first <= k < last of src to the start of dst, by one thread. Returns the largest rounding error, at least `worst`; not computed if `worst` is negative */
double GPUCSRConvertPiece(void *restrict dst, GPUCSRType to, const void *restrict from_, GPUCSRType from, size_t first, size_t last, double worst)
{
  const void  *src = (const char *)from_ + first * GPUCSRTypeSize(from);
  const size_t n   = last - first;

  if (!n) return worst; /* nothing may be nowhere */
  if (to == from) memcpy(dst, src, n * GPUCSRTypeSize(to));
  else if (to == GPUCSR_FLOAT && worst >= 0) return RoundToFloat((float *)dst, (const double *)src, n, worst);
  else if (to == GPUCSR_FLOAT) CONVERT(float, double);
  else if (to == GPUCSR_DOUBLE) CONVERT(double, float);
  else if (to == GPUCSR_INT32) CONVERT(int32_t, int64_t);
  else CONVERT(int64_t, int32_t);
  return worst;
}

/*
  dst[0..n) = src[0..n), converted. If rounding is given, it grows to the largest |a - float(a)| / |a|;
  Inf and NaN convert to themselves, and a value beyond float's range counts as 1.
*/
PetscErrorCode GPUCSRConvert(void *dst, GPUCSRType to, const void *src, GPUCSRType from, size_t n, int nthreads, double *rounding)
{
  const int threads = (double)(n * GPUCSRTypeSize(from)) < GPUCSRMachineShared.threaded_size ? 1 : nthreads;
  double    worst   = rounding ? *rounding : -1;

  PetscFunctionBegin;
  PetscCheck(GPUCSRConvertible(to, from), PETSC_COMM_SELF, PETSC_ERR_SUP, "No conversion from type %d to type %d", (int)from, (int)to);
  if (threads == 1) { /* formats convert single entries: even a parallel region of one thread would dominate */
    worst = GPUCSRConvertPiece(dst, to, src, from, 0, n, worst);
    if (rounding) *rounding = worst;
    PetscFunctionReturn(PETSC_SUCCESS);
  }
#pragma omp parallel num_threads(threads) reduction(max : worst)
  {
    const size_t me = (size_t)omp_get_thread_num(), all = (size_t)omp_get_num_threads(), first = n * me / all;

    worst = GPUCSRConvertPiece((char *)dst + first * GPUCSRTypeSize(to), to, src, from, first, n * (me + 1) / all, rounding ? *rounding : -1);
  }
  if (rounding) *rounding = worst;
  PetscFunctionReturn(PETSC_SUCCESS);
}

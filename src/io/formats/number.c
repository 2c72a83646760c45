/*
  The slow part of number.h: powers, and numbers that are too long or too far from 1 for integers.
*/
#define _GNU_SOURCE
#include "number.h"
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#if defined(__APPLE__)
  #include <xlocale.h>
#endif

const double GPUCSRTen[23] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

const uint64_t GPUCSRFive[28] = {1u,
                                 5u,
                                 25u,
                                 125u,
                                 625u,
                                 3125u,
                                 15625u,
                                 78125u,
                                 390625u,
                                 1953125u,
                                 9765625u,
                                 48828125u,
                                 244140625u,
                                 1220703125u,
                                 6103515625u,
                                 30517578125u,
                                 152587890625u,
                                 762939453125u,
                                 3814697265625u,
                                 19073486328125u,
                                 95367431640625u,
                                 476837158203125u,
                                 2384185791015625u,
                                 11920928955078125u,
                                 59604644775390625u,
                                 298023223876953125u,
                                 1490116119384765625u,
                                 7450580596923828125u};

static locale_t classic;

__attribute__((constructor)) static void ClassicCreate(void)
{
  classic = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

__attribute__((destructor)) static void ClassicDestroy(void)
{
  if (classic) freelocale(classic);
}

/* The caller has checked the digits, point and exponent; 1 if the number is too long or beyond the largest double */
int GPUCSRRealSlow(const char *begin, const char *end, double *v)
{
  char   text[GPUCSR_NUMBER_MAX + 1];
  size_t n = (size_t)(end - begin);

  if (n > GPUCSR_NUMBER_MAX) return 1;
  memcpy(text, begin, n);
  text[n] = 0;
  *v      = classic ? strtod_l(text, NULL, classic) : strtod(text, NULL);
  return !isfinite(*v);
}

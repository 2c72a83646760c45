/*
  The slow part of number.h: powers, and numbers that are too long or too far from 1 for integers.
*/
#define _GNU_SOURCE
#include "number.h"
#include <locale.h>
#include <math.h>
#include <stdlib.h>

double   GPUCSRTen[23];
uint64_t GPUCSRFive[28];

static locale_t classic;

__attribute__((constructor)) static void NumberCreate(void)
{
  classic      = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  GPUCSRTen[0] = GPUCSRFive[0] = 1;
  for (int k = 1; k < 23; k++) GPUCSRTen[k] = 10 * GPUCSRTen[k - 1]; /* all are exact doubles */
  for (int k = 1; k < 28; k++) GPUCSRFive[k] = 5 * GPUCSRFive[k - 1];
}

__attribute__((destructor)) static void NumberDestroy(void)
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

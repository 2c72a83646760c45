/*
  GPUCSRReal() against strtod(), to the last bit, on inputs accepted by both, and on numbers made of the bytes, so most inputs are numbers.
*/
#include "../../src/io/formats/number.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void Compare(const char *text, size_t n)
{
  char       *copy = (char *)malloc(n + 2), *end;
  const char *stop;
  double      v = 0, w;

  memcpy(copy, text, n);
  copy[n]     = '\n';
  copy[n + 1] = 0;
  stop        = GPUCSRReal(copy, copy + n + 1, &v);
  if (stop) {
    const char rest = *stop;

    copy[stop - copy] = 0;
    w                 = strtod(copy, &end);
    if (end != stop || memcmp(&v, &w, sizeof(v))) {
      fprintf(stderr, "'%s': %a where strtod() has %a\n", copy, v, w);
      abort();
    }
    copy[stop - copy] = rest;
  }
  free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const char digits[] = "0123456789012345678901234567890123456789.e+-";
  char              text[64] = "", exact[64];
  uint64_t          bits;
  double            v;
  size_t            n;

  Compare((const char *)data, size);
  for (n = 0; n < size && n < sizeof(text); n++) text[n] = digits[data[n] % (sizeof(digits) - 1)];
  Compare(text, n);
  if (size < 9) return 0;
  memcpy(&bits, data, 8);
  memcpy(&v, &bits, 8);
  if (!isfinite(v)) return 0;
  for (int precision = 14; precision < 20; precision++) {
    snprintf(exact, sizeof(exact), "%.*g", precision, v);
    Compare(exact, strlen(exact));
    snprintf(exact, sizeof(exact), "%.*g", precision, (double)(int64_t)bits * pow(10, data[8] % 56 - 28)); /* of a size that data sets have */
    Compare(exact, strlen(exact));
  }
  return 0;
}

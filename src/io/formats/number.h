#pragma once

/*
  Decimal numbers, exactly: the double nearest to the text, ties to even, in any locale.

  Three ways for the number m 10^e (m of at most 19 digits):
    m < 2^53, |e| <= 22   one multiplication or division of two exact doubles, which IEEE rounds correctly
    |e| <= 27             integers of 128 bits: m 5^e fits; m / 5^e has a quotient of 63 or 64 bits and a remainder that tells whether to round up
    else                  strtod() in the locale C

  Text ends in a byte that is part of no number (a line feed); only the load of 8 bytes at once checks the end.
*/
#include <stdint.h>
#include <string.h>

#define GPUCSR_NUMBER_MAX 4096 /* longest number in characters */

extern double   GPUCSRTen[23] __attribute__((visibility("hidden")));  /* 10^k */
extern uint64_t GPUCSRFive[28] __attribute__((visibility("hidden"))); /* 5^k */
extern int      GPUCSRRealSlow(const char *begin, const char *end, double *v) __attribute__((visibility("hidden")));

/* m 10^e with 27 >= |e|, m > 0 */
static inline double GPUCSRRealExact(uint64_t m, int e)
{
  double power; /* of two, exact */
  int    shift;

  if (e >= 0) {
    power = (double)((uint64_t)1 << e);
    return (double)((unsigned __int128)m * GPUCSRFive[e]) * power;
  } else {
    const uint64_t          five = GPUCSRFive[-e];
    const int               a = __builtin_clzll(m), b = __builtin_clzll(five);
    const uint64_t          d   = five << b;
    const unsigned __int128 num = (unsigned __int128)(m << a) << 63; /* less than d 2^64, so that the quotient fits */
    const uint64_t          q   = (uint64_t)(num / d);
    uint64_t                bits;

    shift = b - a - 63 + e; /* e is negative: 10^e = 5^e 2^e */
    bits  = (uint64_t)(1023 + shift) << 52;
    memcpy(&power, &bits, sizeof(power));
    return (double)(q | (num != (unsigned __int128)q * d)) * power; /* the remainder decides ties, and nothing else */
  }
}

/* Digits from p on, added to *m, 8 at a time if possible; returns their end. *m is valid for at most 19 digits */
static inline const char *GPUCSRDigits(const char *p, const char *end, uint64_t *m)
{
  uint64_t w = *m;
  unsigned d;

  while (end - p >= 8) {
    uint64_t x;

    memcpy(&x, p, 8);
    x ^= 0x3030303030303030u;                                                  /* digits become 0 to 9 */
    if (((x + 0x7676767676767676u) | x) & 0x8080808080808080u) break;          /* 10 and more reach the highest bit */
    x = x * 10 + (x >> 8);                                                     /* pairs, in every second byte */
    x = (x & 0x00ff00ff00ff00ffu) * 100 + ((x >> 16) & 0x00ff00ff00ff00ffu);   /* fours */
    x = (x & 0x0000ffff0000ffffu) * 10000 + ((x >> 32) & 0x0000ffff0000ffffu); /* all eight */
    w = w * 100000000 + (uint32_t)x;
    p += 8;
  }
  for (; (d = (unsigned char)*p - '0') < 10; p++) w = w * 10 + d;
  *m = w;
  return p;
}

/* A whole number without sign of at most 18 digits: where it ends, or NULL */
static inline const char *GPUCSRWhole(const char *p, int64_t *v)
{
  const char *begin = p;
  uint64_t    w     = 0;
  unsigned    d;

  for (; (d = (unsigned char)*p - '0') < 10 && p - begin < 19; p++) w = w * 10 + d;
  *v = (int64_t)w;
  return p == begin || p - begin > 18 ? NULL : p;
}

/* A finite number: where it ends, or NULL */
static inline const char *GPUCSRReal(const char *p, const char *end, double *v)
{
  const char *begin = p, *digits, *stop;
  uint64_t    m     = 0;
  long        count = 0, e = 0;
  int         negative = *p == '-';
  double      r;

  if (*p == '-' || *p == '+') p++;
  digits = p;
  p      = GPUCSRDigits(p, end, &m);
  count  = p - digits;
  if (*p == '.') {
    stop = GPUCSRDigits(p + 1, end, &m);
    e    = -(stop - p - 1);
    count -= e;
    p = stop;
  }
  if (!count) return NULL;
  if (__builtin_expect(count > 19, 0)) {
    const char *s = digits;

    for (; *s == '0' || *s == '.'; s++) count -= *s == '0'; /* leading zeros are no digits of m */
  }
  if (*p == 'e' || *p == 'E') {
    const char *s     = p + 1;
    long        x     = 0;
    int         minus = *s == '-';

    if (*s == '-' || *s == '+') s++;
    if (*s < '0' || *s > '9') return NULL;
    for (; *s >= '0' && *s <= '9'; s++)
      if (x < 100000) x = x * 10 + (*s - '0');
    e += minus ? -x : x;
    p = s;
  }
  if (__builtin_expect(count > 19, 0)) return GPUCSRRealSlow(begin, p, v) ? NULL : p;
  if (m <= (uint64_t)1 << 53 && e >= -22 && e <= 22) r = e < 0 ? (double)m / GPUCSRTen[-e] : (double)m * GPUCSRTen[e];
  else if (!m) r = 0;
  else if (e >= -27 && e <= 27) r = GPUCSRRealExact(m, (int)e);
  else return GPUCSRRealSlow(begin, p, v) ? NULL : p;
  *v = negative ? -r : r;
  return p;
}

static inline int GPUCSRIsBlank(char c)
{
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

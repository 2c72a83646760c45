#pragma once

/* Random numbers, the same on every machine and with any number of threads: a hash of the seed and the place (SplitMix64; Steele, Lea, Flood, OOPSLA 2014) */
#include <stdint.h>

/* In [0, 1): the k-th number of stream r */
static inline double SyntheticUniform(uint64_t seed, uint64_t r, uint64_t k)
{
  uint64_t h = (seed * 0x9E3779B97F4A7C15ULL) ^ (r * 0xD1B54A32D192ED03ULL);

  h += k * 0x9E3779B97F4A7C15ULL;
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ULL;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBULL;
  h ^= h >> 31;
  return (double)(h >> 11) * 0x1p-53;
}

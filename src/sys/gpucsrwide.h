#pragma once

/* GPUCSR_WIDE: compiles a function also for wide registers; the loader picks the version */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
  #define GPUCSR_WIDE __attribute__((target_clones("avx2", "default")))
#else
  #define GPUCSR_WIDE
#endif

#pragma once

/* GPUCSR_WIDE: before a function whose loops gain from wide registers. It is compiled for those too, and the one to call is chosen when the library is loaded */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
  #define GPUCSR_WIDE __attribute__((target_clones("avx2", "default")))
#else
  #define GPUCSR_WIDE
#endif

#pragma once

/* What the program knows of the kernels that read */
#include <stddef.h>

#if defined(__cplusplus)
extern "C" {
#endif

typedef enum {
  READ_PLAIN,
  READ_READONLY,
  READ_STREAMING,
  READ_TEXTURE,
  READ_ASYNC, /* cp.async into shared memory, a ring of four */
  READ_BULK,  /* a block's copies of 8 KB into shared memory by the copy unit of an SM, a ring of four; compute capability 9 */
  READ_NWAYS
} ReadWay;

typedef struct {
  ReadWay            way;
  int                block;   /* a row is read by a block (coalesced); otherwise by a thread (sequential) */
  int                bytes;   /* a load: 4, 8 or 16 */
  int                threads; /* of a block */
  size_t             row;     /* bytes of a row, a multiple of a load's */
  size_t             rows;
  const void        *from;
  unsigned long long texture[3]; /* for loads of 4, 8, 16 bytes */
} Read;

extern const char *ReadTextures(const void *from, size_t bytes, unsigned long long texture[3]); /* each returns NULL or what failed */
extern void        ReadTexturesDestroy(unsigned long long texture[3]);
extern int         ReadCan(const Read *);
extern const char *ReadLaunch(const Read *, unsigned long long *sum, void *stream); /* adds all 32-bit words to *sum, on the device, where that is not NULL */

#if defined(__cplusplus)
}
#endif

#pragma once

/* The interface of the kernels: a variant by its options, and its arrays */
#include <stddef.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* Where a load goes */
typedef enum {
  SPACE_PLAIN,
  SPACE_READONLY,  /* __ldg */
  SPACE_STREAMING, /* __ldcs */
  SPACE_TEXTURE,
  SPACE_CONSTANT,
  SPACE_SHARED
} Space;

#define VARIANT_BLOCK    128   /* threads */
#define VARIANT_CONSTANT 65536 /* bytes of constant memory: row pointers, then x */
#define VARIANT_STAGED   65536 /* bytes of x that a block copies into shared memory, at most */

typedef struct {
  int   threads; /* a row: 1, 4, 16 or a block of VARIANT_BLOCK */
  int   width;   /* entries a load: 1, 2 or 4 */
  Space load;    /* values and columns: not constant, not shared */
  Space ptr;     /* row pointers: not streaming */
  Space x;       /* not streaming */
  int   rows;    /* a unit (the threads of a row) computes */
  int   cyclic;  /* these lie apart by the units of a block; otherwise they follow each other */
} Variant;

/* A matrix on the device; textures are objects of the runtime, [0], [1], [2] for loads of 1, 2 and 4 entries */
typedef struct {
  int                single, m, n;
  const int         *ptr, *col;
  const void        *val, *x;
  void              *z;
  unsigned long long ptrtexture, xtexture, coltexture[3], valtexture[3];
} VariantMatrix;

extern const char *VariantMatrixTextures(VariantMatrix *, size_t nnz); /* each returns NULL or what failed */
extern const char *VariantMatrixConstants(const VariantMatrix *);      /* what fits of row pointers and x into constant memory */
extern void        VariantMatrixDestroy(VariantMatrix *);
extern int         VariantCan(const Variant *, const VariantMatrix *); /* do the data fit constant and shared memory? */
extern const char *VariantLaunch(const Variant *, const VariantMatrix *, void *stream);
extern const char *VariantWrong(const VariantMatrix *, const double *right, const double *bound, int *wrong, void *stream); /* adds to *wrong, on the device, the rows of z off by more than bound */

/* kernels.cuh, for each type of values */
extern const char *VariantLaunch_double(const Variant *, const VariantMatrix *, void *stream);
extern const char *VariantLaunch_float(const Variant *, const VariantMatrix *, void *stream);
extern const char *VariantConstants_double(const VariantMatrix *, size_t ptrbytes, size_t xbytes);
extern const char *VariantConstants_float(const VariantMatrix *, size_t ptrbytes, size_t xbytes);

/* Bytes of constant memory that row pointers and x take, 0 where they do not fit; the pointers come first */
static inline size_t VariantConstantBytes(const VariantMatrix *A, size_t *xbytes)
{
  size_t ptr = ((size_t)A->m + 1) * sizeof(int), x = (size_t)A->n * (A->single ? 4 : 8);

  if (ptr > VARIANT_CONSTANT) ptr = 0;
  ptr     = (ptr + 15) / 16 * 16;
  *xbytes = ptr + x > VARIANT_CONSTANT ? 0 : x;
  return ptr;
}

#if defined(__cplusplus)
}
#endif

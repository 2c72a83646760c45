#pragma once

/*
  Storage formats. A format is one file here and one row in formatlist.h: its arrays, how they are filled from CSR, and
  a host reference of its product, against which every kernel is tested and which the host backend runs.

  Where the arrays live does not matter to the host functions but that the host can address them. A format that can also
  be filled on the device from CSR already there says so in its row (device.h); the others are filled on the host and sent.
*/
#include "../../../../sys/gpucsrsys.h"
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

typedef enum {
  GPUCSR_PRECISION_DOUBLE, /* values double, vectors double */
  GPUCSR_PRECISION_SINGLE, /* values float,  vectors float  */
  GPUCSR_PRECISION_MIXED   /* values float,  vectors double */
} GPUCSRPrecision;

static inline GPUCSRType GPUCSRValueType(GPUCSRPrecision p)
{
  return p == GPUCSR_PRECISION_DOUBLE ? GPUCSR_DOUBLE : GPUCSR_FLOAT;
}
static inline GPUCSRType GPUCSRVectorType(GPUCSRPrecision p)
{
  return p == GPUCSR_PRECISION_SINGLE ? GPUCSR_FLOAT : GPUCSR_DOUBLE;
}

/* BODY(V, X) with the C types of values and vectors */
#define GPUCSRDispatchPrecision(p, BODY) \
  do { \
    switch (p) { \
    case GPUCSR_PRECISION_DOUBLE: \
      BODY(double, double); \
      break; \
    case GPUCSR_PRECISION_SINGLE: \
      BODY(float, float); \
      break; \
    case GPUCSR_PRECISION_MIXED: \
      BODY(float, double); \
      break; \
    } \
  } while (0)

#define GPUCSR_SLICE 32 /* rows of a slice of sliced ELL: a warp */

/* What one look at the row lengths tells; all a choice may depend on */
typedef struct {
  int     m, n;
  int64_t nnz;
  int     min, max;        /* of the row lengths */
  int     empty;           /* rows without entries */
  double  mean, deviation; /* of the row lengths */
  double  density;         /* nnz / (m n) */
  int64_t sell_stored;     /* entries that sliced ELL would store */
} GPUCSRFeatures;

/* The matrix as MATAIJ holds it: host CSR, rows sorted or not, no duplicates */
typedef struct {
  int                m, n;
  int64_t            nnz;
  const int32_t     *i; /* m + 1 */
  const PetscInt    *j; /* nnz */
  const PetscScalar *a; /* nnz */
} GPUCSRSource;

#define GPUCSR_MAX_ARRAYS 6

typedef struct {
  const char *name;
  GPUCSRType  type;
  PetscBool   values; /* changes when values change; the others change with the pattern alone */
  size_t      count;
  void       *data; /* memory of the device */
} GPUCSRArray;

typedef struct _n_GPUCSRFormat GPUCSRFormat;

/* A matrix in some format on some device: all that a kernel sees */
typedef struct {
  const GPUCSRFormat *format;
  GPUCSRDevice        dev;
  GPUCSRPrecision     precision;
  int                 m, n;
  int64_t             nnz;
  int64_t             stored; /* entries held, padding included */
  int                 narrays;
  GPUCSRArray         array[GPUCSR_MAX_ARRAYS];
  GPUCSRArray         work;  /* what a kernel precomputed from the pattern */
  int                 parts; /* and a count that goes with it */
} GPUCSRStorage;

/* z = alpha A x + beta y for rows first <= r < last; z may be y; y is not read when beta is 0. Vectors are whole. */
typedef struct {
  double      alpha, beta;
  const void *x, *y;
  void       *z;
  int         first, last;
} GPUCSRProduct;

struct _n_GPUCSRFormat {
  const char *name;
  /* could the format hold such a matrix; where not, why says so. About correctness alone, never about speed */
  PetscErrorCode (*applicable)(const GPUCSRFeatures *, GPUCSRPrecision, PetscBool *, char why[], size_t len);
  /* names, types and lengths of the arrays, and A->stored */
  PetscErrorCode (*layout)(const GPUCSRFeatures *, GPUCSRStorage *A);
  /* write the arrays from host CSR; with valuesonly the value arrays alone */
  PetscErrorCode (*fill)(const GPUCSRSource *, GPUCSRStorage *A, PetscBool valuesonly, double *rounding);
  /* the reference product on the host */
  PetscErrorCode (*mult)(const GPUCSRStorage *A, const GPUCSRProduct *);
  /* d[r] = A[r][r], 0 where it is not stored, r < min(m, n), in the vector type */
  PetscErrorCode (*diagonal)(const GPUCSRStorage *A, void *d);
};

#define GPUCSR_FORMAT(name, build) GPUCSR_INTERN const GPUCSRFormat GPUCSRFormat_##name;
#include "formatlist.h"
#undef GPUCSR_FORMAT

/* The arrays of CSR, which every build starts from */
enum {
  CSR_ROWPTR,
  CSR_COL,
  CSR_VAL
};

GPUCSR_INTERN PetscErrorCode GPUCSRFormatFind(const char[], const GPUCSRFormat **);
GPUCSR_INTERN PetscErrorCode GPUCSRFormatNames(char[], size_t);
GPUCSR_INTERN PetscErrorCode GPUCSRFormatGet(int, const GPUCSRFormat **);

GPUCSR_INTERN PetscErrorCode GPUCSRFeaturesGet(int, int, const int32_t *, int, GPUCSRFeatures *);

GPUCSR_INTERN PetscErrorCode GPUCSRStorageCreate(GPUCSRDevice, const GPUCSRFormat *, const GPUCSRFeatures *, GPUCSRPrecision, GPUCSRStorage *);
GPUCSR_INTERN PetscErrorCode GPUCSRStorageAllocate(GPUCSRStorage *, PetscBool valuesonly);
GPUCSR_INTERN PetscErrorCode GPUCSRStorageDestroy(GPUCSRStorage *);
GPUCSR_INTERN PetscErrorCode GPUCSRStorageWork(GPUCSRStorage *, GPUCSRType, size_t);
GPUCSR_INTERN double         GPUCSRStorageBytes(const GPUCSRStorage *);
GPUCSR_INTERN double         GPUCSRCSRBytes(const GPUCSRFeatures *, GPUCSRPrecision);

GPUCSR_INTERN PetscErrorCode GPUCSRTransposeCSR(const GPUCSRStorage *A, GPUCSRStorage *T, int32_t *map);

#if defined(__cplusplus)
}
#endif

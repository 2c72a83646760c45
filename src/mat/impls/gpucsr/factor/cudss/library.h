#pragma once

/*
  The C interface of cuDSS, version 1, as far as it is used here. The library is opened at run time; numbers of enumerations are those of its public header.
*/
#include "../../../../../sys/gpucsrsys.h"

enum {
  CUDSS_ALLOC_FAILED    = 2,
  CUDSS_INT32           = 10, /* cudaDataType: 32-bit integers, */
  CUDSS_DOUBLE          = 1,  /* and doubles */
  CUDSS_GENERAL         = 0,  /* kinds of matrices */
  CUDSS_SYMMETRIC       = 1,
  CUDSS_POSITIVE        = 3,
  CUDSS_FULL            = 0, /* the part of a matrix that is read */
  CUDSS_UPPER           = 2,
  CUDSS_REORDERING      = 0, /* settings */
  CUDSS_MATCHING        = 3,
  CUDSS_SOLVE_MODE      = 4,
  CUDSS_PIVOTING        = 7,
  CUDSS_HYBRID          = 11,
  CUDSS_HYBRID_LIMIT    = 12,
  CUDSS_THREADS         = 14,
  CUDSS_DETERMINISTIC   = 24,
  CUDSS_INFO            = 0, /* results */
  CUDSS_FACTOR_NONZEROS = 1,
  CUDSS_PERTURBED       = 2,
  CUDSS_INERTIA         = 3,
  CUDSS_ESTIMATES       = 13,
  CUDSS_ANALYSIS        = 3, /* phases */
  CUDSS_FACTORIZATION   = 4,
  CUDSS_REFACTORIZATION = 8,
  CUDSS_SOLVE           = 1008
};

/* Places in the sixteen numbers of CUDSS_ESTIMATES, bytes */
enum {
  CUDSS_DEVICE_PEAK   = 1,
  CUDSS_HYBRID_LEAST  = 4,
  CUDSS_ESTIMATES_ALL = 16
};

typedef struct {
  int (*getproperty)(int which, int *value);
  int (*create)(void **handle);
  int (*destroy)(void *handle);
  int (*setstream)(void *handle, void *stream);
  int (*setthreadinglayer)(void *handle, const char file[]);
  int (*configcreate)(void **config);
  int (*configdestroy)(void *config);
  int (*configset)(void *config, int which, const void *value, size_t bytes);
  int (*datacreate)(const void *handle, void **data);
  int (*datadestroy)(void *handle, void *data);
  int (*dataget)(const void *handle, const void *data, int which, void *value, size_t bytes, size_t *written);
  int (*execute)(void *handle, int phase, const void *config, void *data, const void *A, void *x, const void *b);
  int (*createdense)(void **matrix, int64_t rows, int64_t columns, int64_t ld, const void *values, int type, int layout);
  int (*createcsr)(void **matrix, int64_t rows, int64_t columns, int64_t nnz, const void *begin, const void *end, const void *column, const void *values, int offsets, int indices, int type, int kind, int view, int base);
  int (*matrixdestroy)(void *matrix);
  int (*setvalues)(void *matrix, const void *values);
} CuDSSFunctions;

GPUCSR_INTERN CuDSSFunctions CuDSS;

GPUCSR_INTERN PetscErrorCode CuDSSOpen(char why[], size_t len); /* why stays empty if the library can be called */
GPUCSR_INTERN PetscErrorCode CuDSSHandle(GPUCSRDevice, void **handle);
GPUCSR_INTERN PetscErrorCode CuDSSOnStream(GPUCSRDevice, GPUCSRStream, void **handle);
GPUCSR_INTERN const char    *CuDSSName(void); /* version and file */
GPUCSR_INTERN const char    *CuDSSStatus(int);

#define CuDSSCall(what, call) \
  do { \
    const int e_ = (call); \
    PetscCheck(!e_, PETSC_COMM_SELF, e_ == CUDSS_ALLOC_FAILED ? PETSC_ERR_MEM : PETSC_ERR_LIB, "cuDSS: %s failed with %s", what, CuDSSStatus(e_)); \
  } while (0)

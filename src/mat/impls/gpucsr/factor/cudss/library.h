#pragma once

/*
  The functions and numbers of cuDSS, version 1, in use. The library is opened at run time. The numbers of enumerations are from the public header of cuDSS; t633-cudss.sh compares both.
*/
#include "../../../../../sys/gpucsrsys.h"

enum {
  CUDSS_ALLOC_FAILED    = 2, /* statuses */
  CUDSS_INVALID_VALUE   = 3,
  CUDSS_NOT_SUPPORTED   = 4,
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
  CUDSS_PIVOT_EPSILON   = 9,
  CUDSS_HYBRID          = 11,
  CUDSS_HYBRID_LIMIT    = 12,
  CUDSS_THREADS         = 14,
  CUDSS_SCHUR_MODE      = 23,
  CUDSS_DETERMINISTIC   = 24,
  CUDSS_INFO            = 0, /* results */
  CUDSS_FACTOR_NONZEROS = 1,
  CUDSS_PERTURBED       = 2,
  CUDSS_INERTIA         = 3,
  CUDSS_ESTIMATES       = 13,
  CUDSS_SCHUR_ROWS      = 18, /* given to the library */
  CUDSS_SCHUR_MATRIX    = 20,
  CUDSS_ANALYSIS        = 3, /* phases */
  CUDSS_FACTORIZATION   = 4,
  CUDSS_REFACTORIZATION = 8,
  CUDSS_SOLVE           = 1008,
  CUDSS_SOLVE_FORWARD   = 48, /* with the permutation, as the backward solve */
  CUDSS_SOLVE_DIAGONAL  = 64,
  CUDSS_SOLVE_BACKWARD  = 384
};

/* Places in the sixteen numbers of CUDSS_ESTIMATES, bytes */
enum {
  CUDSS_DEVICE_PEAK   = 1,
  CUDSS_HYBRID_LEAST  = 4,
  CUDSS_ESTIMATES_ALL = 16
};

/* Each function of the library in use: its name after cudss, and its parameters */
#define CUDSS_FUNCTIONS(ROW) \
  ROW(GetProperty, (int which, int *value)) \
  ROW(Create, (void **handle)) \
  ROW(Destroy, (void *handle)) \
  ROW(SetStream, (void *handle, void *stream)) \
  ROW(SetThreadingLayer, (void *handle, const char file[])) \
  ROW(ConfigCreate, (void **config)) \
  ROW(ConfigDestroy, (void *config)) \
  ROW(ConfigSet, (void *config, int which, const void *value, size_t bytes)) \
  ROW(DataCreate, (const void *handle, void **data)) \
  ROW(DataDestroy, (void *handle, void *data)) \
  ROW(DataSet, (void *handle, void *data, int which, const void *value, size_t bytes)) \
  ROW(DataGet, (const void *handle, const void *data, int which, void *value, size_t bytes, size_t *written)) \
  ROW(Execute, (void *handle, int phase, const void *config, void *data, const void *A, void *x, const void *b)) \
  ROW(MatrixCreateDn, (void **matrix, int64_t rows, int64_t columns, int64_t ld, const void *values, int type, int layout)) \
  ROW(MatrixCreateCsr, (void **matrix, int64_t rows, int64_t columns, int64_t nnz, const void *begin, const void *end, const void *column, const void *values, int offsets, int indices, int type, int kind, int view, int base)) \
  ROW(MatrixDestroy, (void *matrix))

typedef struct {
#define CUDSS_MEMBER(name, parameters) int(*name) parameters;
  CUDSS_FUNCTIONS(CUDSS_MEMBER)
#undef CUDSS_MEMBER
} CuDSSFunctions;

GPUCSR_INTERN CuDSSFunctions CuDSS;

GPUCSR_INTERN PetscErrorCode CuDSSOpen(char why[], size_t len); /* why stays empty if the library can be called */
GPUCSR_INTERN PetscErrorCode CuDSSHandle(GPUCSRDevice, void **handle);
GPUCSR_INTERN const char    *CuDSSName(void); /* version and file */
GPUCSR_INTERN const char    *CuDSSStatus(int);

#define CuDSSCheck(what, status) \
  do { \
    const int e_ = (status); \
    PetscCheck(!e_, PETSC_COMM_SELF, e_ == CUDSS_ALLOC_FAILED ? PETSC_ERR_MEM : PETSC_ERR_LIB, "cuDSS: %s failed with %s", what, CuDSSStatus(e_)); \
  } while (0)
#define CuDSSCall(name, ...) CuDSSCheck("cudss" #name "()", (*CuDSS.name)(__VA_ARGS__))

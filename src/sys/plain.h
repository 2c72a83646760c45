#pragma once

/*
  C shared by host files and device sources: errors and truth values without a header of PETSc, so that one build of the kernels serves every PETSc. A function of a device source returns 0 or one of
  PETSc's error codes; GPUCSRCheck() and GPUCSRCall() correspond to PetscCheck() and PetscCall(). plain.c asserts that the codes agree.
*/
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if defined(__CUDACC__)
typedef int GPUCSRError;
#else
  #include <petscsys.h>
  #include "gpucsrcompat.h"
typedef PetscErrorCode GPUCSRError;
#endif

/* The width of PetscBool differs between releases of PETSc */
typedef int GPUCSRBool;

#if defined(__cplusplus)
  #define GPUCSR_INTERN extern "C" __attribute__((visibility("hidden")))
#else
  #define GPUCSR_INTERN extern __attribute__((visibility("hidden")))
#endif

#define GPUCSR_ERR_MEM  55
#define GPUCSR_ERR_SUP  56
#define GPUCSR_ERR_PLIB 77
#define GPUCSR_ERR_GPU  97

#define GPUCSRMin(a, b) ((a) < (b) ? (a) : (b))
#define GPUCSRMax(a, b) ((a) > (b) ? (a) : (b))

/* PetscError() for device sources: for an error that begins there, and for an error that passes through. Both return the code */
GPUCSR_INTERN int GPUCSRFail(const char file[], int line, const char function[], int code, const char format[], ...) __attribute__((format(printf, 5, 6)));
GPUCSR_INTERN int GPUCSRPass(const char file[], int line, const char function[], int code);

/* Memory of the host, zeroed, by PetscMalloc() and PetscFree() */
GPUCSR_INTERN GPUCSRError GPUCSRHostMalloc(size_t bytes, void **);
GPUCSR_INTERN void        GPUCSRHostFree(void **);

#if defined(__CUDACC__)
  #define GPUCSRCheck(condition, code, ...) \
    do { \
      if (!(condition)) return GPUCSRFail(__FILE__, __LINE__, __func__, code, __VA_ARGS__); \
    } while (0)
  #define GPUCSRCall(...) \
    do { \
      const int code_ = __VA_ARGS__; \
      if (code_) return GPUCSRPass(__FILE__, __LINE__, __func__, code_); \
    } while (0)
#endif

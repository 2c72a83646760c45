#pragma once

/*
  The blackbox: features of a matrix -> choice of format and kernel -> the matrix in that format on a device, ready for
  products. Knows neither Mat nor CUDA.
*/
#include "../kernels/kernels.h"

#define GPUCSR_WORD 32

/* What a user asked for, "auto" where nothing */
typedef struct {
  char format[GPUCSR_WORD], kernel[GPUCSR_WORD];
} GPUCSRRequest;

typedef struct {
  const GPUCSRFormat *format;
  const GPUCSRKernel *kernel;
  char                why[256]; /* one phrase for a person */
} GPUCSRChoice;

typedef struct {
  double inspect, convert, upload, transpose; /* seconds so far */
  double uploaded;                            /* bytes so far */
} GPUCSRCosts;

/* A matrix, or a transpose, ready for products */
typedef struct {
  PetscBool      built;
  GPUCSRFeatures features;
  GPUCSRChoice   choice;
  GPUCSRStorage  A;
  int32_t       *map; /* of a transpose: the entry of A's CSR that each entry of its own CSR came from; device memory */
  double         rounding;
  GPUCSRCosts    costs;
} GPUCSRPlan;

GPUCSR_INTERN PetscErrorCode GPUCSRRequestCheck(const GPUCSRRequest *);
GPUCSR_INTERN PetscErrorCode GPUCSRRequestTakes(const GPUCSRRequest *, GPUCSRPrecision, PetscBool *);
GPUCSR_INTERN PetscErrorCode GPUCSRChoose(const GPUCSRFeatures *, GPUCSRPrecision, GPUCSRDevice, const GPUCSRRequest *, GPUCSRChoice *);

GPUCSR_INTERN PetscErrorCode GPUCSRPlanBuild(GPUCSRDevice, const GPUCSRSource *, GPUCSRPrecision, const GPUCSRRequest *, GPUCSRPlan *);
GPUCSR_INTERN PetscErrorCode GPUCSRPlanBuildTranspose(GPUCSRDevice, const GPUCSRSource *, const GPUCSRPlan *, GPUCSRPrecision, const GPUCSRRequest *, GPUCSRPlan *);
GPUCSR_INTERN PetscErrorCode GPUCSRPlanRefresh(GPUCSRPlan *, const GPUCSRSource *, const GPUCSRPlan *);
GPUCSR_INTERN PetscErrorCode GPUCSRPlanCanRefresh(const GPUCSRPlan *, PetscBool *);
GPUCSR_INTERN PetscErrorCode GPUCSRValuesAreFloats(const GPUCSRSource *, int, PetscBool *);
GPUCSR_INTERN PetscErrorCode GPUCSRPlanProduct(const GPUCSRPlan *, const GPUCSRProduct *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUCSRPlanDiagonal(const GPUCSRPlan *, void *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode GPUCSRPlanDestroy(GPUCSRPlan *);
GPUCSR_INTERN double         GPUCSRPlanBytes(const GPUCSRPlan *);

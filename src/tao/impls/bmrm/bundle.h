#pragma once

/*
  A bundle: the planes of a function as columns of a dense matrix, whose rows are distributed like the weights. This rank's rows are stored in blocks of
  columns, on the device or on the host, so that a new plane moves no old one. The first column is not a plane but the weights.
*/
#include <petscvec.h>
#include "../../../sys/gpucsrsys.h"

#define BUNDLE_BLOCK 64 /* columns of a block */

typedef struct {
  GPUCSRDevice dev; /* NULL: in host memory */
  PetscInt     n;   /* rows of this rank */
  PetscInt     columns, nblocks, ablocks;
  double     **block;    /* device pointers if dev is set */
  double      *dots;     /* device: dot products of one vector with all columns, after room for partial sums */
  size_t       adots;    /* numbers allocated */
  char         why[512]; /* the reason if dev is NULL */
} Bundle;

/* Columns of one block, and their weights in a sum */
typedef struct {
  int    count, column[BUNDLE_BLOCK];
  double weight[BUNDLE_BLOCK];
} BundleTerms;

GPUCSR_INTERN PetscErrorCode BundleCreate(PetscInt n, const char backend[], Bundle *);
GPUCSR_INTERN PetscErrorCode BundleDestroy(Bundle *);
GPUCSR_INTERN PetscErrorCode BundleSetWeights(Bundle *, Vec);
GPUCSR_INTERN PetscErrorCode BundleAdd(Bundle *, Vec, double dots[]);
GPUCSR_INTERN PetscErrorCode BundleKeep(Bundle *, PetscInt, const PetscInt[]);
GPUCSR_INTERN PetscErrorCode BundleStep(Bundle *, const double weight[], Vec);

#if defined(GPUCSR_HAVE_CUDA)
  #if defined(__cplusplus)
extern "C" {
  #endif
GPUCSR_INTERN int            BundleParts_CUDA(PetscInt n);
GPUCSR_INTERN PetscErrorCode BundleDots_CUDA(PetscInt n, int columns, const double *block, const double *g, double *parts, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode BundleSum_CUDA(PetscInt n, PetscInt columns, const double *parts, double *dots, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode BundleStep_CUDA(PetscInt n, const BundleTerms *, const double *block, PetscBool add, double *w, GPUCSRStream);
  #if defined(__cplusplus)
}
  #endif
#endif

#pragma once

/*
  Rows of sparse matrices that travel between ranks (mpirows.c): the pattern once, its values after every change. All functions are collective and
  work on host arrays: only rows at the border of a rank travel.
*/
#include "../type/gpucsrimpl.h"
#include <petscsf.h>

typedef struct {
  PetscSF      sf;    /* one leaf for each entry */
  PetscInt     n;     /* rows received, */
  PetscInt    *i, *j; /* their row pointers and global columns, */
  PetscScalar *a;     /* and values */
  PetscInt    *first; /* of rows given: the rows for row r of this rank are first[r] to first[r + 1] - 1, in the order of ranks */
  PetscInt     nsent; /* of rows fetched: entries of this rank's rows for other ranks, */
  PetscInt    *sent;
  PetscScalar *send; /* and their values */
} GPUCSRRows;

GPUCSR_INTERN PetscErrorCode GPUCSRRowsFetch(Mat A, Mat B, GPUCSRRows *);
GPUCSR_INTERN PetscErrorCode GPUCSRRowsFetchValues(Mat B, GPUCSRRows *);
GPUCSR_INTERN PetscErrorCode GPUCSRRowsGive(Mat T, const PetscInt i[], const PetscInt j[], GPUCSRRows *);
GPUCSR_INTERN PetscErrorCode GPUCSRRowsGiveValues(GPUCSRRows *, const PetscScalar a[]);
GPUCSR_INTERN PetscErrorCode GPUCSRRowsDestroy(GPUCSRRows *);

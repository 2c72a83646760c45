#pragma once

/*
  Rows of sparse matrices on their way between ranks (mpirows.c): which go where is found out once for a pattern, values follow as often as they change. All functions are collective, and work on
  arrays of the host: the rows are those on the border of what a rank owns.
*/
#include "../type/gpucsrimpl.h"
#include <petscsf.h>

typedef struct {
  PetscSF      sf;    /* an entry of a row each */
  PetscInt     n;     /* rows that came here, */
  PetscInt    *i, *j; /* their row pointers and global columns, */
  PetscScalar *a;     /* and values */
  PetscInt    *first; /* of rows given away: those for row r of this rank are first[r] to first[r + 1] - 1, in the order of ranks */
  PetscInt     nsent; /* of rows fetched: those of this rank that others have, */
  PetscInt    *sent;
  PetscScalar *send; /* and their values */
} GPUCSRRows;

GPUCSR_INTERN PetscErrorCode GPUCSRRowsFetch(Mat A, Mat B, GPUCSRRows *);
GPUCSR_INTERN PetscErrorCode GPUCSRRowsFetchValues(Mat B, GPUCSRRows *);
GPUCSR_INTERN PetscErrorCode GPUCSRRowsGive(Mat T, const PetscInt i[], const PetscInt j[], GPUCSRRows *);
GPUCSR_INTERN PetscErrorCode GPUCSRRowsGiveValues(GPUCSRRows *, const PetscScalar a[]);
GPUCSR_INTERN PetscErrorCode GPUCSRRowsDestroy(GPUCSRRows *);

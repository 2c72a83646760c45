#pragma once

/*
  Rows of sparse matrices that travel between ranks (mpirows.c): the pattern once, its values after every change. All functions are collective and
  work on host arrays: only rows at the border of a rank travel.
*/
#include "../type/gpucsrimpl.h"
#include <petscsf.h>

/* A matrix of several ranks on their devices: this rank's rows, in its own columns and in columns of other ranks */
typedef struct _n_GPUCSRRanksCSR {
  MPI_Comm        comm;
  PetscLayout     rmap, cmap;
  GPUCSRStorage  *block[2]; /* in CSR; the second has local column numbers 0 .. n - 1 of ghost[] */
  const PetscInt *ghost;    /* global numbers of the second block's columns, ascending */
} GPUCSRRanksCSR;

typedef struct {
  PetscInt     n;     /* rows, */
  PetscInt    *i, *j; /* their row pointers and global columns, */
  PetscScalar *a;     /* and values */
} GPUCSRHostRows;

typedef struct {
  PetscSF        sf;         /* one leaf for each entry */
  GPUCSRHostRows sent, here; /* rows for other ranks; rows received */
  PetscInt      *first;      /* of rows given: the rows for row r of this rank are first[r] to first[r + 1] - 1, in the order of ranks */
  PetscInt      *number;     /* of rows fetched: which rows of this rank are sent */
  PetscSF        rows;       /* of rows fetched: one leaf for each row */
} GPUCSRRows;

GPUCSR_INTERN PetscErrorCode GPUCSRRowsAsk(const GPUCSRRanksCSR *A, GPUCSRRows *);
GPUCSR_INTERN PetscErrorCode GPUCSRRowsFetch(GPUCSRRows *);
GPUCSR_INTERN PetscErrorCode GPUCSRRowsGive(const GPUCSRRanksCSR *T, GPUCSRRows *);
GPUCSR_INTERN PetscErrorCode GPUCSRRowsValues(GPUCSRRows *);
GPUCSR_INTERN PetscErrorCode GPUCSRRowsDestroy(GPUCSRRows *);

/* Not collective */
GPUCSR_INTERN PetscErrorCode GPUCSRCSRDownload(const GPUCSRStorage *, PetscInt i[], PetscInt j[], PetscScalar a[]);
GPUCSR_INTERN PetscErrorCode GPUCSRRanksRows(const GPUCSRRanksCSR *, PetscInt **i, PetscInt **j, PetscScalar **a);

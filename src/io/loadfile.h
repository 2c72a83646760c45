#pragma once

/*
  Shared by the files of MatGPUCSRLoadFile(): text (loadtext.c) and PETSc binary (loadfile.c) into rows, rows into a matrix (setrows.c).
*/
#include <petscgpucsr.h>
#include <petsc/private/matimpl.h> /* layouts and states of a Mat that a file fills */
#include "../sys/agree.h"
#include "gpucsrio.h"

typedef struct {
  MPI_Comm             comm;
  PetscMPIInt          rank, size;
  const char          *file;
  MatGPUCSRFileOptions options;
  int                  threads;
  GPUCSRInput         *source; /* on the ranks that read */
  int                  stream; /* the first rank reads for all */
  GPUCSRTextHeader     header;
  GPUCSRPiece         *piece; /* of this rank; ranks hold pieces in the order of the file */
  size_t               npieces, room;
  MatGPUCSRFileInfo    info;
  int64_t              lines, low, high; /* lines: with an entry or a row, including skipped lines; smallest and largest index */
  double               parsed;           /* when parsing ended */
  int                  failed;
  GPUCSRFault          fault;
  /* of this rank's rows; kept here with the blocks, so that an error leaks nothing */
  int64_t     *row; /* where each begins */
  PetscInt    *nnz; /* their lengths */
  PetscInt    *j;   /* entries, if the matrix has no arrays for them */
  PetscScalar *v;
  int64_t     *first;     /* of each piece: LIBSVM, the first row; Matrix Market arrays, the first value */
  char        *all;       /* PETSc binary: all of a stream, on ranks other than the first */
  int64_t     *work, bin; /* work in bins of so many rows, behind a zero: see loadfile.c */
} GPUCSRReader;

typedef PetscErrorCode (*GPUCSRCountFn)(GPUCSRReader *, const void *ctx); /* adds the entries that this rank has read, by GPUCSRReaderCount() */

/* Collective: if any rank has failed, all return the fault that comes first in the file */
GPUCSR_IO_INTERN PetscErrorCode GPUCSRReaderAgree(GPUCSRReader *);
GPUCSR_IO_INTERN PetscErrorCode GPUCSRReaderLayout(GPUCSRReader *, Mat, PetscInt M, PetscInt N, GPUCSRCountFn, const void *ctx); /* sizes, type and layouts of the matrix */
GPUCSR_IO_INTERN PetscErrorCode GPUCSRReaderArrays(GPUCSRReader *, Mat, PetscInt **j, PetscScalar **v, PetscBool *direct);       /* for the entries of this rank's rows; direct: they are the matrix' */
GPUCSR_IO_INTERN void           GPUCSRReaderCount(GPUCSRReader *, int64_t row, int64_t entries);

GPUCSR_IO_INTERN PetscErrorCode GPUCSRLoadText(GPUCSRReader *, Mat, Vec *labels, Vec *queries);

/* setrows.c */
GPUCSR_IO_INTERN PetscErrorCode GPUCSRSeqArrays(Mat, size_t nz, PetscInt **j, PetscScalar **v);
GPUCSR_IO_INTERN PetscErrorCode GPUCSRSetRows(Mat, PetscBool filled, const int64_t row[], PetscInt j[], const PetscScalar v[], int threads);

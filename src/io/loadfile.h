#pragma once

/*
  Shared by the files of MatGPUCSRLoadFile(): text (loadtext.c) and PETSc binary (loadbinary.c) into rows, rows into a matrix (setrows.c).
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
  int64_t     *first; /* of each piece: LIBSVM, the first row; Matrix Market arrays, the first value */
  char        *all;   /* PETSc binary: all of a stream, on ranks other than the first */
  int64_t     *work;  /* of bins of rows, see reader.c */
} GPUCSRReader;

/* Work of a matrix of M rows, in bins of equally many */
typedef struct {
  int64_t M, rows, *work;
} GPUCSRBins;
typedef PetscErrorCode (*GPUCSRCountFn)(GPUCSRReader *, const void *ctx, GPUCSRBins *); /* adds the entries that this rank has read, by GPUCSRBinsAdd() */

/* Collective: if any rank has failed, all return the fault that comes first in the file */
GPUCSR_IO_INTERN PetscErrorCode GPUCSRReaderAgree(GPUCSRReader *);
GPUCSR_IO_INTERN void           GPUCSRReaderFail(GPUCSRReader *, const char why[]);
GPUCSR_IO_INTERN PetscErrorCode GPUCSRReaderLayout(GPUCSRReader *, Mat, PetscInt M, PetscInt N, GPUCSRCountFn, const void *ctx); /* sizes, type and layouts of the matrix */
GPUCSR_IO_INTERN PetscErrorCode GPUCSRReaderArrays(GPUCSRReader *, Mat, PetscInt **j, PetscScalar **v, PetscBool *direct);       /* for the entries of this rank's rows; direct: they are the matrix' */
GPUCSR_IO_INTERN PetscErrorCode GPUCSRReaderDestroy(GPUCSRReader *);
GPUCSR_IO_INTERN void           GPUCSRBinsAdd(GPUCSRBins *, int64_t row, int64_t entries);

GPUCSR_IO_INTERN PetscErrorCode GPUCSRLoadText(GPUCSRReader *, Mat, Vec *labels, Vec *queries);
GPUCSR_IO_INTERN PetscErrorCode GPUCSRLoadBinary(GPUCSRReader *, Mat, Vec *labels);

/* The arrays of a MATSEQAIJ with rows of these lengths, to fill before GPUCSRSeqArraysDone(); NULL if the type has no arrays */
GPUCSR_IO_INTERN PetscErrorCode GPUCSRSeqArrays(Mat, PetscBool preallocate, const PetscInt nnz[], PetscInt **j, PetscScalar **v);
GPUCSR_IO_INTERN PetscErrorCode GPUCSRSeqArraysDone(Mat, const int64_t row[], PetscInt j[]);
GPUCSR_IO_INTERN PetscErrorCode GPUCSRSpareInodes(Mat, PetscInt m, const int64_t row[], const PetscInt j[]);
GPUCSR_IO_INTERN PetscErrorCode GPUCSRAssemble(Mat);
GPUCSR_IO_INTERN PetscErrorCode GPUCSRSetRows(Mat, const int64_t row[], const PetscInt j[], const PetscScalar v[], int threads); /* local rows, columns global and ascending, into a matrix of any type */

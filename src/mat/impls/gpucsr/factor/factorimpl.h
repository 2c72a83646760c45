#pragma once

/* What the files of the solver type gpucsr of MatGetFactor() share */
#include "../gpucsrimpl.h"
#include "triangle.h"

/* What a factor has besides PETSc's hangs on it under this name */
#define MATGPUCSRFACTOR "MatGPUCSRFactor"

/* The solves of a factor, as PETSc has them */
typedef enum {
  GPUCSR_SOLVE,
  GPUCSR_SOLVE_TRANSPOSE,
  GPUCSR_SOLVE_FORWARD, /* these two: halves of an ICC or Cholesky solve, each with the square root of the diagonal */
  GPUCSR_SOLVE_BACKWARD
} GPUCSRSolveKind;

/* -mat_gpucsr_solve_kernel: one of GPUCSRSolveMethods, or one of these */
#define GPUCSR_METHOD_AUTO (-1)
#define GPUCSR_METHOD_HOST (-2)

/* Two triangles that are solved one after the other, and the index arrays between vectors and places */
typedef struct {
  PetscBool       built;    /* pattern */
  PetscBool       fresh;    /* values */
  GPUCSRFactorCSR M;        /* the factor, or its transpose */
  int            *map;      /* of a transpose: the entry of the factor that each of its entries is */
  int            *schedule; /* rows in the order of levels of the lower one, for the factorization */
  GPUCSRTriangle  T[2];     /* lower, upper */
  int            *from[2], *to;
} GPUCSRFactorPair;

/* Where a factor is that of blocks which overlap in a vector: its right-hand side is gathered from entries of one, and its solution's entries are added up in one. Arrays are the device's */
typedef struct {
  int     n, m;        /* entries of those vectors, and rows of the factor; n 0: the vectors are the factor's own */
  int     entries;     /* of the solution that are used */
  int    *from;        /* entry of the right-hand side, for each row */
  int    *ptr, *index; /* for each entry of the result, the rows that are added up */
  double *b, *x;       /* vectors of the factor */
} GPUCSRSpread;

/*
  What a factor matrix made by us has, beside PETSc's factor that it is. PETSc's symbolic and numeric factorizations are run when something needs them: an ordering or levels of
  fill, a pivot that asks for a shift or an error, an operation on the host, the end of the device. Until then a factor of the device is on the device alone.
*/
typedef struct {
  Mat_SeqGPUCSR    vectors; /* the device, and buffers for vectors of the host; nothing else of it is used */
  Mat              A;       /* that was factored, as PETSc may have to do it again */
  PetscObjectState pattern, values;
  MatFactorType    type;
  IS               row, col;
  MatFactorInfo    info;
  PetscBool        natural, symmetric; /* symmetric: Cholesky or ICC */
  PetscBool        own;                /* the pattern is that of A: nothing of PETSc's symbolic factorization is needed */
  PetscBool        symbolic, numeric;  /* PETSc's are done, for what A was then */
  PetscBool        later;              /* put off: it is made when somebody needs it, or together with others (together.c) */
  PetscBool        ondevice;           /* solves are the device's */
  PetscBool        positive;           /* no negative number in the diagonal */
  int              method, sweeps;     /* as asked for; sweeps 0: exact */
  int              chosen;
  PetscBool        recorded; /* a graph has a solve in it, whose results by place are in the first x of each triangle whenever it runs */
  char             why[256], whynot[512];
  void            *trouble; /* page-locked, set by a solve that waited too long */
  GPUCSRFactorPair pair[2]; /* A, transposed */
  GPUCSRSpread     spread;
  struct _MatOps   petsc; /* the operations of PETSc's factor; some of them are replaced by ours */
} Mat_GPUCSRFactor;

GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorGet_Private(Mat, Mat_GPUCSRFactor **);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorHost_Private(Mat, Mat_GPUCSRFactor *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorLeave_Private(Mat, Mat_GPUCSRFactor *, PetscErrorCode, const char[]);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorTakeBack_Private(Mat, Mat_GPUCSRFactor *, PetscBool *later);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorView_Private(Mat, Mat_GPUCSRFactor *, PetscViewer);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorMet_Private(Mat, Mat_GPUCSRFactor *, PetscErrorCode, const GPUCSRAttempt *);

/* On the device: device.c */
GPUCSR_INTERN PetscErrorCode GPUCSRFactorPairDestroy(GPUCSRDevice, GPUCSRFactorPair *);
GPUCSR_INTERN PetscErrorCode GPUCSRSpreadDestroy(GPUCSRDevice, GPUCSRSpread *);
GPUCSR_INTERN PetscErrorCode GPUCSRSpreadCreate(GPUCSRDevice, int n, int m, const PetscInt from[], const int ptr[], const int index[], GPUCSRSpread *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorPattern_Private(Mat_GPUCSRFactor *, int n, int64_t nnz, const void *i, const void *j, GPUCSRType, PetscBool *good);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorBuild_Private(Mat_GPUCSRFactor *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorNumeric_Private(Mat_GPUCSRFactor *, Mat, const MatFactorInfo *, PetscBool *done);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorValues_Private(Mat_GPUCSRFactor *, const double *a, const double *dinv);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorSolve_Private(Mat, Mat_GPUCSRFactor *, GPUCSRSolveKind, Vec b, Vec x);

/* PETSc's factors as one CSR matrix with its diagonal: petscfactor.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorFromPETSc_Private(Mat, PetscBool symmetric, PetscBool *known, int64_t *nnz, int **i, int **j, double **a, double **dinv);

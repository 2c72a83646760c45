#pragma once

/* Shared by the files of the solver type gpucsr of MatGetFactor() */
#include "../type/gpucsrimpl.h"
#include "../blackbox/triangles/triangle.h"

/* This library's data of a factor are composed with it under this name */
#define MATGPUCSRFACTOR "MatGPUCSRFactor"

/* -mat_gpucsr_solve_kernel: a GPUCSRSolveMethod, or */
#define GPUCSR_METHOD_AUTO     (-1)
#define GPUCSR_METHOD_HOST     (-2)
#define GPUCSR_METHOD_INVERSES (-3) /* of the blocks of a block diagonal matrix, where these are small */
#define GPUCSR_METHOD_DEVICE   (-4) /* the fastest one of the device */

/* Two triangles, solved one after the other, and the index arrays between vectors and places */
typedef struct {
  PetscBool       built;    /* pattern */
  PetscBool       fresh;    /* values */
  GPUCSRFactorCSR M;        /* the factor, or its transpose */
  int            *map;      /* of a transpose: the factor's entry for each of its entries */
  int            *schedule; /* rows in the order of levels of the lower one, for the factorization */
  GPUCSRTriangle  T[2];     /* lower, upper */
  int            *from[2], *to;
} GPUCSRFactorPair;

/* For a factor of blocks that overlap in a vector: gathers its right-hand side from a vector's entries, and adds up its solution in a vector's entries. Arrays are on the device */
typedef struct {
  int          n, m;        /* entries of those vectors, and rows of the factor; n 0: the vectors are the factor's own */
  double      *b, *x;       /* vectors of the factor */
  int         *from;        /* entry of the right-hand side, for each row */
  int         *ptr, *index; /* for each entry of the result, the rows to add up */
  GPUCSRBuffer memory;      /* of these */
} GPUCSROverlapScatter;

/*
  The library's data of a factor matrix of PETSc, or the factor of a matrix that is no Mat (GPUCSRFactorMake()). PETSc's symbolic and numeric factorizations run only for an ordering, levels of fill, a pivot with a shift or an error, an
  operation on the host, or a failed device. Until then the factor exists on the device only.
*/
struct _n_Mat_GPUCSRFactor {
  GPUCSRDevice         dev;  /* NULL: PETSc solves */
  GPUCSRStream         last; /* stream of the last work */
  GPUCSRBuffer         b, x; /* device vectors of solves with host vectors */
  Mat                  A;    /* the factored matrix, since PETSc may have to factor it again */
  PetscObjectState     pattern, values;
  MatFactorType        type;
  IS                   row, col;
  MatFactorInfo        info;
  PetscBool            natural, symmetric; /* symmetric: Cholesky or ICC */
  PetscBool            own;                /* the pattern is A's, so PETSc's symbolic factorization is not needed */
  PetscBool            symbolic, numeric;  /* PETSc's factorizations are done, for A at that time */
  PetscBool            later;              /* deferred: computed when needed, or in a batch (batch.c) */
  PetscBool            ondevice;           /* the device solves */
  int                  method;             /* as requested */
  int                  chosen;
  PetscBool            recorded;                           /* a graph contains a solve; each of its runs writes the results by place to the first x of each triangle */
  char                 why[256], whynot[512], direct[512]; /* direct: why PETSc's factorization was taken, not cuDSS' */
  void                *trouble;                            /* page-locked, set by a solve that waited too long */
  GPUCSRFactorPair     pair[2];                            /* A, transposed */
  GPUCSROverlapScatter scatter;
  int                  nblocks, *begin; /* of a block diagonal matrix, on the host: rows of block k are begin[k] to begin[k + 1] - 1 */
  GPUCSRInverses       inverses;
  int                 *from, *to; /* of these: entry of the right-hand side and of the solution for each row; NULL: the identity */
  struct _MatOps       petsc;     /* the operations of PETSc's factor; some of them are replaced */
};

/* The kernel that solves */
static inline const char *MatGPUCSRFactorKernel(const Mat_GPUCSRFactor *f)
{
  return f->chosen == GPUCSR_METHOD_INVERSES ? "inverses" : GPUCSRSolveMethods[f->chosen];
}

GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorCreate_Private(Mat, MatFactorType, const char direct[], Mat *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorBlock_Private(Mat A, Mat *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorGet_Private(Mat, Mat_GPUCSRFactor **);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorSymbolic_Private(Mat, Mat, IS row, IS col, const MatFactorInfo *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorTakeBack_Private(Mat, Mat_GPUCSRFactor *, PetscBool *later);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorMet_Private(Mat, Mat_GPUCSRFactor *, const GPUCSRAttempt *);

/* By cuDSS: cudss/ */
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorCuDSS_Private(Mat, MatFactorType, Mat *, char why[], size_t);
GPUCSR_INTERN PetscErrorCode MatGPUCSRCuDSSRegister_Private(void);

/* On the device: device.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorEmpty_Private(Mat_GPUCSRFactor *);
GPUCSR_INTERN PetscErrorCode GPUCSROverlapScatterCreate(GPUCSRDevice, int n, int m, const PetscInt from[], const int ptr[], const int index[], GPUCSROverlapScatter *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorPattern_Private(Mat_GPUCSRFactor *, int n, int64_t nnz, const void *i, const void *j, GPUCSRType, PetscBool *good);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorEliminate_Private(Mat_GPUCSRFactor *, GPUCSRPivotRule, double tolerance, PetscBool *done, int *row);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorBuild_Private(Mat_GPUCSRFactor *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorNumeric_Private(Mat_GPUCSRFactor *, Mat, const MatFactorInfo *, PetscBool *done);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorValues_Private(Mat_GPUCSRFactor *, const double *a, const double *dinv);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorSolve_Private(Mat, Mat_GPUCSRFactor *, PetscBool transposed, Vec b, Vec x);

#pragma once

/* Shared by the files of the solver type cudss of MatGetFactor() */
#include "../factorimpl.h"
#include "../../blackbox/spgemm/spgemm.h"
#include "library.h"
#include "check.h"
#include <math.h>

/* Columns that are solved for together */
#define CUDSS_COLUMNS 64

typedef enum {
  CUDSS_AUTO,
  CUDSS_NEVER,
  CUDSS_ALWAYS
} CuDSSWhen;

/* The user's request, with places in lists of words; 0: auto */
typedef struct {
  PetscInt  reordering, matching, pivoting;
  PetscInt  hybrid, check; /* a CuDSSWhen */
  PetscBool deterministic;
  PetscInt  refine; /* most steps of refinement */
  PetscReal error;  /* backward error above which a solution is refused */
} CuDSSRequest;

/* Rows of a Schur complement; n 0: none was asked for */
typedef struct {
  Mat          F;
  int          n, *place; /* of each entry of the index set in ascending order */
  int32_t     *marks;     /* of each row of the matrix: 1 if the row is one of them */
  GPUCSRBuffer partial;   /* forward solves */
} CuDSSSchur;

/* F->data of a factor */
typedef struct {
  GPUCSRDevice     dev;
  GPUCSRBuffer     sent, back; /* device vectors of solves with host vectors */
  GPUCSRLiving     living;
  MatFactorType    type;
  CuDSSRequest     request;
  int              kind;   /* CUDSS_GENERAL, CUDSS_SYMMETRIC or CUDSS_POSITIVE, the latter until a pivot is not */
  PetscBool        shifts; /* pivots may be replaced, because a shift was asked for */
  PetscBool        analyzed, factored, hybrid;
  PetscBool        fresh, tried; /* the analysis has seen the factored values; a trial was solved with the factor */
  PetscObjectId    id;           /* of A, */
  PetscObjectState pattern;      /* that was analyzed, */
  PetscObjectState values;       /* and of the copied values */
  GPUCSRStorage    A, T;         /* the factored matrix, and its transpose for checks of transposed solves */
  int32_t         *map;          /* places of T's values in A */
  PetscBool        current;      /* T has A's values */
  double           norm;         /* the largest sum of a row's absolute values */
  PetscBool        zero;         /* the sum of a row is zero, and no shift was asked for */
  void            *config, *data, *matrix;
  CuDSSSchur       schur;
  GPUCSRBuffer     residual, step;      /* of CUDSS_COLUMNS columns at most */
  void            *most;                /* numbers of a check, on the device, */
  uint64_t        *mosthost;            /* and in page-locked memory */
  int              mode;                /* transposed solves are set */
  MatFactorError   refused;             /* why the last solve's solution was */
  int64_t          entries;             /* of the factors */
  int              perturbed;           /* pivots that cuDSS has replaced */
  PetscInt         negative, positives; /* eigenvalues, of LDL^T; -1: unknown */
  double           bytes;               /* on the device, estimated; 0: unknown, as are entries */
  double           fill;                /* as the program expects it */
  double           seconds[3];          /* analysis, first factorization, last one */
  PetscInt         factorizations, solves, steps;
  double           worst;    /* backward error of all solves */
  char             why[320]; /* the reason that this solver type was taken */
} Mat_CuDSS;

GPUCSR_INTERN PetscErrorCode MatCuDSSRun_Private(Mat_CuDSS *, int phase, const char what[], int k, const double *b, size_t ldb, double *x, size_t ldx);
GPUCSR_INTERN PetscErrorCode MatCuDSSExecute_Private(Mat_CuDSS *, int phase, PetscBool transposed, int k, const double *b, size_t ldb, double *x, size_t ldx);
GPUCSR_INTERN PetscErrorCode MatCuDSSFinite_Private(Mat_CuDSS *, PetscBool *finite);
GPUCSR_INTERN PetscErrorCode MatCuDSSTrial_Private(Mat_CuDSS *, PetscBool *good);
GPUCSR_INTERN PetscErrorCode MatCuDSSAgain_Private(Mat_CuDSS *);
GPUCSR_INTERN PetscErrorCode MatCuDSSFailed_Private(Mat F, Mat_CuDSS *, const char phase[], const GPUCSRAttempt *, MatFactorError *);
GPUCSR_INTERN void           MatCuDSSSolveOps_Private(Mat);
GPUCSR_INTERN PetscErrorCode MatCuDSSBuffersFree_Private(Mat_CuDSS *);

/* Schur complements of a factor: schur.c */
GPUCSR_INTERN PetscErrorCode MatCuDSSSchurCompose_Private(Mat F, PetscBool yes);
GPUCSR_INTERN PetscErrorCode MatCuDSSSchurClear_Private(Mat F);
GPUCSR_INTERN PetscErrorCode MatCuDSSSchurFree_Private(CuDSSSchur *);
GPUCSR_INTERN PetscErrorCode MatCuDSSSchurGet_Private(Mat_CuDSS *);
GPUCSR_INTERN PetscErrorCode MatCuDSSSchurSolve_Private(Mat_CuDSS *, PetscBool transposed, int k, const double *b, size_t ldb, double *x, size_t ldx);
GPUCSR_INTERN PetscErrorCode MatCuDSSSchurTrial_Private(Mat_CuDSS *, const double *x, const double *r, double size, PetscBool *good);

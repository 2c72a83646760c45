#pragma once

/*
  The interface between the matrix and the solvers of this library (src/ksp, src/tao). gpucsrimpl.h is private to the Mat.
*/
#include <petscgpucsr.h>
#include "../../../../sys/peer/peer.h"
#include "../../../../vec/impls/gpu/vecgpu.h"
#include "../blackbox/plan/plan.h"

/* ---- the arrays of vectors ---- */

typedef enum {
  GPUCSR_HOST,   /* PetscScalar on the host */
  GPUCSR_DEVICE, /* PetscScalar on the device */
  GPUCSR_NATIVE  /* on the device, in the plan's vector type */
} GPUCSRPlace;

typedef struct {
  void       *p;
  GPUCSRPlace place;
  PetscBool   pinned; /* page-locked host memory */
  PetscBool   vecgpu; /* the array of a VECGPU, used in the order of the device's stream */
  PetscBool   mixed;  /* ... while another vector of the product is used in the order of PETSc's stream */
} GPUCSROperand;

GPUCSR_INTERN PetscErrorCode MatGPUCSRStream_Private(GPUCSRDevice, GPUCSROperand *x, GPUCSROperand *y, GPUCSROperand *z, GPUCSRStream *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRVecGet_Private(GPUCSRDevice, Vec, PetscBool read, PetscBool write, GPUCSROperand *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRVecRestore_Private(GPUCSRDevice, Vec, PetscBool read, PetscBool write, GPUCSROperand *);

/* A vector's array on a device, or a copy of its array on the host */
typedef struct {
  Vec           v; /* NULL: there is none */
  PetscBool     read, write;
  PetscBool     partly; /* after an error the array on the host may have some new entries: nothing goes on from its old ones */
  GPUCSROperand o;
  GPUCSRBuffer  copy;
  double       *p;
} GPUCSRVecArray;

GPUCSR_INTERN PetscErrorCode MatGPUCSRArrayGet_Private(GPUCSRDevice, Vec, PetscBool read, PetscBool write, GPUCSRVecArray *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRArrayRestore_Private(GPUCSRDevice, GPUCSRVecArray *, PetscErrorCode);

/* ---- the operator of a solve ---- */

/* Identifies the matrix that a plan was made from: no two states of any matrices of the process have the same numbers */
typedef struct {
  PetscInt64 pattern, values;
} GPUCSRVersion;

/* The matrix of one process, or a rank's diagonal block, ready for products. Valid until another use of the matrix */
typedef struct {
  Mat                  A;    /* no reference; NULL: the operator is a plan of csr */
  GPUCSRDevice         dev;  /* NULL: on no device */
  GPUCSRPlan          *plan; /* of A, or of its transpose if the operator is one */
  const GPUCSRRequest *request;
  GPUCSRVersion        version;
  PetscBool            required; /* backend cuda: failure of the device is an error */
  const GPUCSRStorage *csr;      /* of an operator that is no Mat */
  PetscBool            floats;   /* the vectors of its products, as the values of its plan; otherwise vectors are doubles */
} GPUCSROperator;

GPUCSR_INTERN PetscErrorCode MatGPUCSROperatorGet_Private(Mat, PetscBool transposed, GPUCSROperator *, char why[], size_t);
GPUCSR_INTERN PetscErrorCode MatGPUCSRLike_Private(Mat like, Mat A, Mat *);
GPUCSR_INTERN PetscBool      MatGPUCSROperatorRequired_Private(Mat);
GPUCSR_INTERN PetscErrorCode MatGPUCSROperatorSource_Private(const GPUCSROperator *, GPUCSRSource *);
GPUCSR_INTERN PetscErrorCode MatGPUCSROperatorCSR_Private(const GPUCSROperator *, GPUCSRStorage *own, const GPUCSRStorage **);
GPUCSR_INTERN PetscErrorCode MatGPUCSROperatorSend_Private(Mat);
GPUCSR_INTERN PetscErrorCode MatGPUCSROperatorBegin_Private(const GPUCSROperator *);
GPUCSR_INTERN PetscErrorCode MatGPUCSROperatorMultiply_Private(const GPUCSROperator *, double alpha, const void *x, double beta, const void *y, void *z);
GPUCSR_INTERN PetscErrorCode MatGPUCSROperatorStep_Private(const GPUCSROperator *, const void *b, const void *x, const GPUCSRStep *, const GPUCSRSums *, void *z);
GPUCSR_INTERN PetscErrorCode MatGPUCSROperatorSums_Private(const GPUCSROperator *, const double *x, const GPUCSRSums *, double *z);
GPUCSR_INTERN PetscErrorCode MatGPUCSROperatorEnd_Private(const GPUCSROperator *, PetscInt products);
GPUCSR_INTERN PetscErrorCode MatGPUCSROperatorVecGet_Private(const GPUCSROperator *, Vec, PetscBool read, PetscBool write, GPUCSROperand *);
GPUCSR_INTERN PetscErrorCode MatGPUCSROperatorVecRestore_Private(const GPUCSROperator *, Vec, PetscBool read, PetscBool write, GPUCSROperand *);

/* ---- the operator of several ranks: its diagonal block is a GPUCSROperator (mpioperator.c) ---- */

typedef struct {
  GPUCSROperator        off; /* the off-diagonal block */
  struct _n_GPUCSRHalo *halo;
  PetscInt64            made; /* number of the exchange's set-up */
} GPUCSRRanks;

/* An entry of x for another rank: its local index, the receiving rank, and its place in that rank's halo */
typedef struct {
  PetscInt    row, slot;
  PetscMPIInt rank;
} GPUCSRSend;

GPUCSR_INTERN PetscErrorCode  MatGPUCSRRanksSends_Private(Mat, GPUCSRSend **, int *n);
GPUCSR_INTERN PetscErrorCode  MatGPUCSRRanksGet_Private(Mat, PetscBool transposed, GPUCSRRanks *, char why[], size_t);
GPUCSR_INTERN PetscErrorCode  MatGPUCSRRanksMoved_Private(Mat, const GPUCSRRanks *, PetscBool transposed, PetscBool *);
GPUCSR_INTERN PetscErrorCode  MatGPUCSRRanksMultiply_Private(const GPUCSROperator *, const GPUCSRRanks *, PetscBool transposed, double alpha, const double *x, double beta, const double *y, double *z);
GPUCSR_INTERN PetscErrorCode  MatGPUCSRRanksExchangeCreate_Private(Mat like, PetscLayout, PetscInt n, const PetscInt ghost[], GPUCSRDevice, struct _n_GPUCSRHalo **);
GPUCSR_INTERN PetscErrorCode  MatGPUCSRRanksExchangeSetUp_Private(struct _n_GPUCSRHalo *);
GPUCSR_INTERN PetscErrorCode  MatGPUCSRRanksExchangeDestroy_Private(struct _n_GPUCSRHalo **);
GPUCSR_INTERN PetscErrorCode  MatGPUCSRRanksHalo_Private(const GPUCSROperator *, const GPUCSRRanks *, const double *x, double *);
GPUCSR_INTERN PetscBool       MatGPUCSRRanksRecordable_Private(const GPUCSRRanks *);
GPUCSR_INTERN PetscErrorCode  MatGPUCSRRanksEverything_Private(Mat like, PetscLayout rows, Mat *);
GPUCSR_INTERN PetscErrorCode  MatGPUCSRRanksGather_Private(const GPUCSROperator *, const GPUCSRRanks *, const double *mine, int n, double *all);
GPUCSR_INTERN GPUCSRPeerSlots MatGPUCSRRanksSlots_Private(const GPUCSRRanks *);
GPUCSR_INTERN PetscErrorCode  MatGPUCSRRanksSolving_Private(const GPUCSRRanks *, PetscBool);
GPUCSR_INTERN PetscErrorCode  MatGPUCSRRanksRecord_Private(const GPUCSRRanks *, PetscBool);
GPUCSR_INTERN PetscErrorCode  MatGPUCSRRanksPlayed_Private(const GPUCSROperator *, const GPUCSRRanks *);
GPUCSR_INTERN PetscErrorCode  MatGPUCSRRanksCheck_Private(const GPUCSRRanks *);
GPUCSR_INTERN PetscErrorCode  MatGPUCSRRanksFail_Private(const GPUCSRRanks *, const char message[]);
GPUCSR_INTERN const char     *MatGPUCSRRanksExchange_Private(const GPUCSRRanks *);

/* ---- levels of a hierarchy: entries on devices alone (type/level.c) ---- */

#define MATGPUCSRLEVEL    "gpucsrlevel"
#define MATMPIGPUCSRLEVEL "mpigpucsrlevel" /* on several ranks */
struct _n_GPUCSRRanksCSR;
GPUCSR_INTERN PetscErrorCode MatGPUCSRLevelCreate_Private(Mat like, const GPUCSROperator side[2], const GPUCSRRanks[2], const struct _n_GPUCSRRanksCSR *, PetscInt rbs, PetscInt cbs, void *owner, PetscErrorCode (*release)(void *), Mat *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRLevelGet_Private(Mat, PetscBool transposed, GPUCSROperator *, GPUCSRRanks *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRLevelBecome_Private(Mat);

/* ---- factors (factor/); the first function returns the device of their arrays ---- */

typedef struct _n_Mat_GPUCSRFactor Mat_GPUCSRFactor;
GPUCSR_INTERN PetscErrorCode       MatGPUCSRFactorFind_Private(Mat F, Mat_GPUCSRFactor **);
GPUCSR_INTERN PetscErrorCode       MatGPUCSRFactorDevice_Private(Mat F, GPUCSRDevice *);
GPUCSR_INTERN PetscErrorCode       MatGPUCSRFactorSolveArrays_Private(Mat F, const double *b, double *x);
GPUCSR_INTERN PetscErrorCode       MatGPUCSRFactorSolveVecs_Private(Mat F, Vec b, Vec x, PetscBool *done);
GPUCSR_INTERN PetscErrorCode       MatGPUCSRFactorCheck_Private(Mat F);
GPUCSR_INTERN PetscErrorCode       MatGPUCSRFactorProbed_Private(Mat A, PetscBool begins);
GPUCSR_INTERN PetscErrorCode       MatGPUCSRFactorDescribe_Private(Mat F, PetscViewer);
GPUCSR_INTERN PetscErrorCode       GPUCSRFactorMake(const GPUCSRStorage *, int longest, Mat_GPUCSRFactor **, PetscBool *good);
GPUCSR_INTERN PetscErrorCode       GPUCSRFactorDestroy(Mat_GPUCSRFactor **);
GPUCSR_INTERN PetscErrorCode       GPUCSRFactorSolve(Mat_GPUCSRFactor *, PetscBool transposed, const double *b, double *x);
GPUCSR_INTERN PetscErrorCode       GPUCSRFactorCheck(const Mat_GPUCSRFactor *);
GPUCSR_INTERN double               GPUCSRFactorEntries(const Mat_GPUCSRFactor *);
GPUCSR_INTERN double               GPUCSRFactorBytes(const Mat_GPUCSRFactor *);

/* ---- solutions of cuDSS (factor/cudss/solve.c) ---- */

GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorTrust_Private(Mat A, GPUCSRDevice *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorDistrust_Private(GPUCSRDevice);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorRefused_Private(Mat F, MatFactorError *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorForgive_Private(Mat F);

/* ---- factors of blocks, made and solved with as one batch (factor/batch.c) ---- */

typedef struct {
  PetscInt      n;
  Mat           F;    /* of the block diagonal matrix; NULL: none */
  PetscInt64   *key;  /* versions of its blocks, */
  MatFactorType type; /* their type, */
  MatFactorInfo info;
  PetscInt     *i, *j;
  PetscScalar  *a; /* values of the block diagonal matrix */
} GPUCSRFactors;

/* Overlapping blocks of vectors of n entries: the entries of each block, and the entries taken from its solution (NULL: all). NULL: blocks follow each other */
typedef struct {
  PetscInt n;
  IS      *is, *counted;
} GPUCSROverlap;

GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorPutOff_Private(Mat, PetscBool);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorWasPutOff_Private(Mat F, PetscBool *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorsBatch_Private(PetscInt n, const Mat F[], const GPUCSROverlap *, GPUCSRFactors *, PetscBool *ok, char why[], size_t);
GPUCSR_INTERN PetscErrorCode GPUCSRFactorsDestroy(GPUCSRFactors *);

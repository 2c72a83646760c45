#pragma once

/* What the files of the Mat share */
#include <petscgpucsr.h>
#include <petsc/private/matimpl.h>
#include <petsc/private/vecimpl.h>
#include "plan/plan.h"

/* What a user may set; of a parallel matrix handed to its two blocks */
typedef struct {
  MatGPUCSRBackend   backend;
  MatGPUCSRPrecision precision;
  GPUCSRRequest      request, trequest;
  PetscBool          transposeatassembly;
} MatGPUCSRConfig;

typedef enum {
  GPUCSR_FORWARD,
  GPUCSR_TRANSPOSE
} GPUCSRSide;

/* The kernels of products are timed, when a report was asked for, by pairs of events read long after */
#define GPUCSR_TIMERS 32

typedef struct {
  GPUCSREvent begin[GPUCSR_TIMERS], end[GPUCSR_TIMERS];
  GPUCSRSide  side[GPUCSR_TIMERS];
  int         first, pending;
} GPUCSRTimers;

/* Pieces at most in which a large product with host vectors is sent, computed and brought back at the same time */
#define GPUCSR_PIECES 16

/*
  Values that are looked at before each product, besides the object's state: PETSc 3.18 writes into submatrices that hold
  all rows and columns (MatCreateSubMatrices() with MAT_REUSE_MATRIX) without counting it.
*/
#define GPUCSR_SAMPLES 8

/* A->spptr of a MATSEQAIJGPUCSR. The host's MATAIJ stays the master copy of the matrix; everything here can be made again. */
typedef struct _n_Mat_SeqGPUCSR Mat_SeqGPUCSR;
struct _n_Mat_SeqGPUCSR {
  struct _MatOps   parent; /* MATSEQAIJ's own operations */
  MatGPUCSRConfig  config;
  PetscBool        decided;                /* backend known, for this configuration */
  GPUCSRStream     last;                   /* that of the last product */
  PetscBool        foreign;                /* products may be under way on PETSc's stream */
  PetscBool        warned;                 /* the tolerance that precision cannot reach was mentioned */
  GPUCSRDevice     dev;                    /* NULL: products are MATSEQAIJ's */
  char             whynot[512];            /* reason when dev is NULL */
  GPUCSRPrecision  precision;              /* that of the plans */
  GPUCSRPlan       plan[2];                /* by side */
  PetscObjectState pattern[2];             /* nonzerostate that the plan was built for */
  PetscObjectState values[2];              /* object state that its values are from */
  PetscScalar      sample[GPUCSR_SAMPLES]; /* of the host's values when the plans last followed them */
  PetscBool        early;                  /* both plans were made inside an assembly, */
  PetscInt         assemblies;             /* which was this one */
  int32_t         *rowptr;                 /* row pointers in 32 bits where PetscInt has 64 */
  int              lastcol[GPUCSR_PIECES]; /* of each piece of rows: 1 + the last column met so far; A alone */
  PetscBool        lastcolset;
  void            *x, *z; /* device vectors of products with host vectors */
  size_t           xbytes, zbytes;
  GPUCSREvent      sent[GPUCSR_PIECES], computed[GPUCSR_PIECES];
  PetscBool        events;
  GPUCSRTimers     timers;
  MatGPUCSRInfo    info;      /* counts and times; the rest is filled in when asked for */
  char             name[128]; /* what the report calls it */
  Mat_SeqGPUCSR   *next;      /* living matrices, for the report */
  Mat_SeqGPUCSR  **previous;
};

/* A vector of a product */
typedef enum {
  GPUCSR_HOST,   /* PetscScalar on the host */
  GPUCSR_DEVICE, /* PetscScalar on the device */
  GPUCSR_NATIVE  /* on the device, in the plan's vector type */
} GPUCSRPlace;

typedef struct {
  void       *p;
  GPUCSRPlace place;
  PetscBool   pinned; /* page-locked host memory */
} GPUCSROperand;

GPUCSR_INTERN PetscLogEvent MAT_GPUCSR_Build, MAT_GPUCSR_Refresh, MAT_GPUCSR_Transpose, MAT_GPUCSR_Product, MAT_GPUCSR_Halo;

GPUCSR_INTERN PetscErrorCode MatCreate_SeqAIJGPUCSR(Mat);
GPUCSR_INTERN PetscErrorCode MatCreate_MPIAIJGPUCSR(Mat);
GPUCSR_INTERN PetscErrorCode MatConvert_SeqAIJ_SeqAIJGPUCSR(Mat, MatType, MatReuse, Mat *);
GPUCSR_INTERN PetscErrorCode MatConvert_MPIAIJ_MPIAIJGPUCSR(Mat, MatType, MatReuse, Mat *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRComposeConverters_Private(Mat, const char[], PetscErrorCode (*)(Mat, MatType, MatReuse, Mat *), PetscErrorCode (*)(Mat, MatType, MatReuse, Mat *), PetscBool);
GPUCSR_INTERN PetscErrorCode MatGPUCSRConfigDefault_Private(MatGPUCSRConfig *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRConfigOptions_Private(Mat, MatGPUCSRConfig *, PetscBool *, GPUCSROptionItems);
GPUCSR_INTERN PetscErrorCode MatGPUCSRConfigCheck_Private(const MatGPUCSRConfig *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRVecType_Private(Mat, const MatGPUCSRConfig *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRConfigure_Private(Mat, const MatGPUCSRConfig *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRReconfigure_Private(Mat, const MatGPUCSRConfig *);

GPUCSR_INTERN PetscErrorCode MatGPUCSRPlansDestroy_Private(Mat_SeqGPUCSR *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRReady_Private(Mat, GPUCSRSide, PetscBool *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFailed_Private(Mat, const char[]);
GPUCSR_INTERN PetscErrorCode MatGPUCSRApply_Private(Mat, GPUCSRSide, const GPUCSROperand *x, const GPUCSROperand *y, const GPUCSROperand *z, GPUCSRStream, PetscBool *wrote);
GPUCSR_INTERN PetscErrorCode MatGPUCSRBuffer_Private(Mat_SeqGPUCSR *, PetscBool, size_t, void **);
GPUCSR_INTERN PetscErrorCode MatGPUCSRTimersRead_Private(Mat_SeqGPUCSR *, int);

GPUCSR_INTERN PetscErrorCode MatGPUCSRVecGet_Private(Mat_SeqGPUCSR *, Vec, PetscBool read, PetscBool write, GPUCSROperand *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRVecRestore_Private(Vec, PetscBool read, PetscBool write, GPUCSROperand *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRStream_Private(GPUCSRDevice, PetscBool, GPUCSRStream *);
GPUCSR_INTERN PetscErrorCode GPUCSRPinVector(GPUCSRDevice, Vec, const void *, PetscBool *);
GPUCSR_INTERN PetscErrorCode GPUCSRPinFinalize(void);

GPUCSR_INTERN PetscErrorCode MatGPUCSRInfoGet_Private(Mat, MatGPUCSRInfo *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRReportAdd_Private(Mat_SeqGPUCSR *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRReportRemove_Private(Mat_SeqGPUCSR *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRReportPrint_Private(void);
GPUCSR_INTERN PetscErrorCode MatGPUCSRViewBlock_Private(Mat, PetscViewer);

GPUCSR_INTERN PetscErrorCode KSPGPUInitialize_Private(void); /* src/ksp/impls/gpu */

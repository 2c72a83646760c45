#pragma once

/* What the files of the Mat share */
#include <petsc/private/matimpl.h>
#include <petsc/private/vecimpl.h>
#include "../product/operator.h"
#include "../blackbox/spgemm/spgemm.h"

/* What a user may set; of a parallel matrix handed to its two blocks */
typedef struct {
  MatGPUCSRBackend   backend;
  MatGPUCSRPrecision precision;
  GPUCSRRequest      request, trequest;
  PetscBool          transposeatassembly;
  char               halo[GPUCSR_WORD]; /* how ranks exchange, a word of exchangelist.h or auto */
  PetscInt           smallonhost;       /* under backend auto, products of host vectors that the host is predicted to be faster with are MATAIJ's: 1, 0, or -1, on a GPU alone */
  PetscInt           productleast;      /* nonzeros of two sparse matrices below which their product is MATAIJ's */
} MatGPUCSRConfig;

typedef enum {
  GPUCSR_FORWARD,
  GPUCSR_TRANSPOSE
} GPUCSRSide;

/* What sets our two types apart; all else is in inherit.c */
typedef struct {
  MatType     name, parent;
  const char *seq;                                                 /* "seq" or "mpi", as names of types begin */
  size_t      size;                                                /* of A->spptr */
  PetscErrorCode (*created)(Mat);                                  /* A has just become one of ours; may be NULL */
  PetscErrorCode (*release)(Mat);                                  /* it is about to be one no more */
  PetscErrorCode (*configured)(Mat);                               /* the configuration is another one */
  PetscErrorCode (*product)(Mat, GPUCSRSide, Vec x, Vec y, Vec z); /* z = A x + y or with the transpose; y may be NULL, may be z */
  PetscErrorCode (*getdiagonal)(Mat, Vec);                         /* this and the next two: NULL where the parent's does */
  PetscErrorCode (*productsetfromoptions)(Mat);
  PetscBool graph;                           /* its graph is ours to make */
  PetscErrorCode (*scale)(Mat, PetscScalar); /* this and the next: NULL where the parent's does */
  PetscErrorCode (*diagonalscale)(Mat, Vec l, Vec r);
  PetscErrorCode (*axpy)(Mat, PetscScalar, Mat, MatStructure, PetscBool *done); /* NULL, or not done: the parent's */
  PetscErrorCode (*createsubmatrices)(Mat, PetscInt, const IS[], const IS[], MatReuse, Mat *[]);
  PetscErrorCode (*assemblyend)(Mat, MatAssemblyType);
  PetscErrorCode (*view)(Mat, PetscViewer); /* what the parent's does not say */
  PetscErrorCode (*setup)(Mat, PetscBool);
  PetscErrorCode (*getinfo)(Mat, MatGPUCSRInfo *);
  PetscErrorCode (*toaij)(Mat, MatType, MatReuse, Mat *);
  PetscErrorCode (*fromaij)(Mat, MatType, MatReuse, Mat *);
} MatGPUCSRKind;

/* What A->spptr of both begins with */
typedef struct {
  const MatGPUCSRKind *kind;
  struct _MatOps       parent;     /* the operations of the MATAIJ that it is otherwise, */
  PetscErrorCode (*retrieve)(Mat); /* and its MatRetrieveValues() */
  MatGPUCSRConfig config;
  PetscBool       devicevectors; /* MatCreateVecs() gives VECGPU where nobody asked for a type */
} Mat_GPUCSR;

/* Pieces at most in which a large product with host vectors is sent, computed and brought back at the same time */
#define GPUCSR_PIECES 16

/* Kernels and copies of vectors are timed, when a report was asked for, by pairs of events read long after: those of one product in pieces at least */
#define GPUCSR_TIMERS (4 * GPUCSR_PIECES)

typedef struct {
  GPUCSREvent begin[GPUCSR_TIMERS], end[GPUCSR_TIMERS];
  double     *sum[GPUCSR_TIMERS]; /* where the seconds go */
  int         first, pending;
} GPUCSRTimers;

/*
  Values are known to be as they were by the object's state, which PETSc moves with each change. Two things write past it:

  - MatCreateSubMatrices() of MATMPIAIJ, where a submatrix has all rows and columns: it is assembled first, filled after that, and
    filled again by MAT_REUSE_MATRIX, and nothing of it counted. Such a matrix gives itself away, see MatGPUCSRUnwatched_Private(): it is compared with a
    copy of its values before each product.
  - A program that keeps the array it gave to MatCreateSeqAIJWithArrays(), or a read-only one. It must call
    PetscObjectStateIncrease(), as for any other device matrix. A few values, spread over all of them, are looked at before each product
    in case it does not: no more than a chance.
*/
#define GPUCSR_SAMPLES      8
#define GPUCSR_BARE_SAMPLES 1024 /* looked at twice in the life of a matrix: all values, of most submatrices */

/* The matrix in CSR on a device, for products of sparse matrices */
typedef struct {
  GPUCSRStorage    csr;     /* its format is NULL where there is none */
  PetscObjectState pattern; /* nonzerostate that its pattern is from, */
  const void      *columns; /* the host's columns, */
  PetscObjectState values;  /* and the object state that its values are from */
} GPUCSRMirror;

/* A device vector of products with host vectors, which grows */
typedef struct {
  void  *data;
  size_t bytes;
} GPUCSRBuffer;

/* A->spptr of a MATSEQAIJGPUCSR. The host's MATAIJ stays the master copy of the matrix; everything here can be made again. */
typedef struct _n_Mat_SeqGPUCSR Mat_SeqGPUCSR;
struct _n_Mat_SeqGPUCSR {
  Mat_GPUCSR       base;
  PetscBool        block;                  /* of a MATMPIAIJGPUCSR, which speaks for it */
  char             warning[768];           /* to be said, by this matrix or by the one that speaks for it */
  PetscBool        putoff;                 /* its factorizations are deferred, see MatGPUCSRFactorPutOff_Private() */
  PetscBool        decided;                /* backend known, for this configuration */
  GPUCSRStream     last;                   /* that of the last product */
  PetscBool        foreign;                /* products may be under way on PETSc's stream */
  PetscBool        warned;                 /* the tolerance that precision cannot reach was mentioned */
  GPUCSRDevice     dev;                    /* NULL: products are MATSEQAIJ's */
  char             whynot[512];            /* reason when dev is NULL */
  GPUCSRPrecision  precision;              /* that of the plans */
  GPUCSRPlan       plan[2];                /* by side */
  Mat              counted;                /* whose states follow */
  PetscObjectState pattern[2];             /* nonzerostate that the plan was built for */
  PetscObjectState values[2];              /* object state that its values are from */
  GPUCSRVersion    version;                /* of A's plan: another one whenever it has changed, counted by PETSc or not */
  PetscScalar      sample[GPUCSR_SAMPLES]; /* of the host's values when the plans last followed them */
  PetscScalar     *bare;                   /* values at an assembly that nobody had set any for, until they are first used */
  PetscObjectState bareat;                 /* the object's state once that assembly is counted */
  PetscScalar     *copy;                   /* of all values, where changes are not counted */
  PetscBool        early;                  /* both plans were made inside an assembly, */
  PetscInt         assemblies;             /* which was this one */
  int32_t         *rowptr;                 /* row pointers in 32 bits where PetscInt has 64 */
  GPUCSRMirror     mirror;                 /* sparseproduct.c */
  int              lastcol[GPUCSR_PIECES]; /* of each piece of rows: 1 + the last column met so far; A alone */
  PetscBool        lastcolset;
  GPUCSRBuffer     x, z;
  GPUCSREvent      sent[GPUCSR_PIECES], computed[GPUCSR_PIECES];
  GPUCSREvent      read; /* host vectors that the device reads for itself */
  PetscBool        events;
  GPUCSRTimers     timers;
  double           filled;    /* of what the plans call upload, seconds that formats were filled in: where device memory is the host's, nothing is sent */
  MatGPUCSRInfo    info;      /* counts and times; the rest is filled in when asked for */
  char             name[128]; /* what the report calls it: of a block, the matrix that it is of */
  double           nonzeros;
  PetscBool        small;       /* the host is faster with host vectors, */
  double           smallat;     /* with the pattern of this nonzerostate + 1, 0: never asked, */
  double           foretold[2]; /* seconds there, and on the device */
  PetscBool        advised;     /* -mat_gpucsr_advise has said */
  MatGPUCSRAdvice  advice;      /* this */
  double           share[3];    /* diagonal block: entries of this rank, the mean, and the most of a rank; 0: not known */
  Mat_SeqGPUCSR   *next;        /* living matrices, for the report */
  Mat_SeqGPUCSR  **previous;
};

GPUCSR_INTERN GPUCSRLogEvent MAT_GPUCSR_Build, MAT_GPUCSR_Refresh, MAT_GPUCSR_Transpose, MAT_GPUCSR_Product, MAT_GPUCSR_Halo;

GPUCSR_INTERN PetscErrorCode MatCreate_SeqAIJGPUCSR(Mat);
GPUCSR_INTERN PetscErrorCode MatCreate_MPIAIJGPUCSR(Mat);
GPUCSR_INTERN PetscErrorCode MatConvert_SeqAIJ_SeqAIJGPUCSR(Mat, MatType, MatReuse, Mat *);
GPUCSR_INTERN PetscErrorCode MatConvert_MPIAIJ_MPIAIJGPUCSR(Mat, MatType, MatReuse, Mat *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRComposeConverters_Private(Mat, const char[], PetscErrorCode (*)(Mat, MatType, MatReuse, Mat *), PetscErrorCode (*)(Mat, MatType, MatReuse, Mat *), PetscBool);
GPUCSR_INTERN PetscErrorCode MatGPUCSRConfigDefault_Private(MatGPUCSRConfig *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRConfigOptions_Private(Mat, MatGPUCSRConfig *, PetscBool *, GPUCSROptionItems);
GPUCSR_INTERN PetscErrorCode MatGPUCSRConfigCheck_Private(Mat, const MatGPUCSRConfig *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRVecType_Private(Mat, const MatGPUCSRConfig *);
GPUCSR_INTERN PetscErrorCode MatCreateVecs_GPUCSR(Mat, Vec *, Vec *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRConfigure_Private(Mat, const MatGPUCSRConfig *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRReconfigure_Private(Mat, const MatGPUCSRConfig *);

GPUCSR_INTERN PetscErrorCode MatGPUCSRFromAIJ_Private(Mat, const MatGPUCSRKind *, MatReuse, Mat *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRToAIJ_Private(Mat, MatReuse, Mat *);

/* What the products may use: what was asked for, but for a matrix that the program binds to the CPU */
static inline MatGPUCSRBackend MatGPUCSRBackendOf(Mat A)
{
#if PetscDefined(HAVE_DEVICE)
  if (A->boundtocpu) return MAT_GPUCSR_BACKEND_HOST;
#endif
  return ((Mat_GPUCSR *)A->spptr)->config.backend;
}

GPUCSR_INTERN PetscErrorCode MatGPUCSRPlansDestroy_Private(Mat_SeqGPUCSR *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRDevicesForget_Private(void);
GPUCSR_INTERN PetscErrorCode MatGPUCSRViewBlock_Private(Mat, PetscViewer);
GPUCSR_INTERN PetscErrorCode MatGPUCSRDecide_Private(Mat);
GPUCSR_INTERN PetscErrorCode MatGPUCSRCounted_Private(Mat); /* this and the next three: changes.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRSample_Private(Mat, PetscInt, PetscScalar[]);
GPUCSR_INTERN PetscErrorCode MatGPUCSRBare_Private(Mat, Mat_SeqGPUCSR *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRUnwatched_Private(Mat, Mat_SeqGPUCSR *, PetscObjectState, PetscBool *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRReady_Private(Mat, GPUCSRSide, PetscBool *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRSource_Private(Mat, GPUCSRSource *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRReset_Private(Mat_SeqGPUCSR *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRLeave_Private(Mat, const char[]);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFailed_Private(Mat, const char[]);
GPUCSR_INTERN PetscErrorCode MatGPUCSRWarn_Private(Mat, PetscMPIInt, PetscMPIInt, PetscMPIInt);
GPUCSR_INTERN PetscErrorCode MatGPUCSRParentProduct_Private(Mat, GPUCSRSide, Vec, Vec, Vec);
GPUCSR_INTERN PetscErrorCode MatGPUCSRApply_Private(Mat, GPUCSRSide, const GPUCSROperand *x, const GPUCSROperand *y, const GPUCSROperand *z, GPUCSRStream, PetscBool *wrote);
GPUCSR_INTERN PetscErrorCode MatGPUCSRBuffer_Private(GPUCSRDevice, GPUCSRBuffer *, size_t, void **);
GPUCSR_INTERN PetscErrorCode MatGPUCSRBufferFree_Private(GPUCSRDevice, GPUCSRBuffer *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRConvert_Private(Mat_SeqGPUCSR *, size_t, GPUCSRType, const void *, GPUCSRType, void *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode MatGPUCSRTimerBegin_Private(Mat_SeqGPUCSR *, double *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode MatGPUCSRTimerEnd_Private(Mat_SeqGPUCSR *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode MatGPUCSRTimersRead_Private(Mat_SeqGPUCSR *, int);

GPUCSR_INTERN PetscErrorCode MatProductSetFromOptions_GPUCSR_Dense(Mat); /* matmat.c */
GPUCSR_INTERN PetscErrorCode MatProductSetFromOptions_GPUCSR(Mat);       /* matproduct.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRProductOfParents_Private(Mat);
GPUCSR_INTERN PetscErrorCode MatGPUCSRComposeProducts_Private(Mat, const char[], PetscBool);

GPUCSR_INTERN PetscErrorCode MatGPUCSRMirror_Private(Mat, GPUCSRDevice, PetscBool, GPUCSRStorage **); /* sparseproduct.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRFromDevice_Private(Mat, GPUCSRStorage *, PetscBool);
GPUCSR_INTERN PetscErrorCode MatGPUCSRProductsForget_Private(void);
GPUCSR_INTERN PetscErrorCode MatProductSetFromOptions_SeqAIJGPUCSR(Mat);
GPUCSR_INTERN PetscErrorCode MatProductSetFromOptions_MPIAIJGPUCSR(Mat); /* mpisparse.c */
GPUCSR_INTERN PetscErrorCode MatAXPY_SeqAIJGPUCSR(Mat, PetscScalar, Mat, MatStructure, PetscBool *);

GPUCSR_INTERN PetscErrorCode MatScale_SeqAIJGPUCSR(Mat, PetscScalar); /* scale.c */
GPUCSR_INTERN PetscErrorCode MatDiagonalScale_SeqAIJGPUCSR(Mat, Vec, Vec);

GPUCSR_INTERN PetscBool      MatGPUCSRGraphIsPattern_Private(void);
GPUCSR_INTERN PetscErrorCode MatGPUCSRCoarsenRegister_Private(void); /* graph.c */
#if PETSC_VERSION_GE(3, 21, 0)
GPUCSR_INTERN PetscErrorCode MatCreateGraph_SeqAIJGPUCSR(Mat, PetscBool, PetscBool, PetscReal, PetscInt, PetscInt[], Mat *);
#else
GPUCSR_INTERN PetscErrorCode MatCreateGraph_SeqAIJGPUCSR(Mat, PetscBool, PetscBool, PetscReal, Mat *);
#endif

GPUCSR_INTERN PetscErrorCode MatGPUCSRVecGet_Private(GPUCSRDevice, Vec, PetscBool read, PetscBool write, GPUCSROperand *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRVecRestore_Private(GPUCSRDevice, Vec, PetscBool read, PetscBool write, GPUCSROperand *);
GPUCSR_INTERN PetscErrorCode GPUCSRPinFinalize(void);

GPUCSR_INTERN PetscErrorCode MatGPUCSRAdviseFirst_Private(Mat); /* this and the next: advice.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRAdviceError_Private(const Mat_SeqGPUCSR *, const MatGPUCSRInfo *, char[], size_t);
GPUCSR_INTERN PetscErrorCode MatGPUCSRHostIsFaster_Private(Mat, Vec x, Vec y, Vec z, PetscBool *); /* this and the next: small.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRHostIsFasterWhy_Private(const Mat_SeqGPUCSR *, char[], size_t);
GPUCSR_INTERN PetscErrorCode MatGPUCSRInfoGet_Private(Mat, MatGPUCSRInfo *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRReportAdd_Private(Mat_SeqGPUCSR *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRReportRemove_Private(Mat_SeqGPUCSR *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRReportPrint_Private(void);
GPUCSR_INTERN PetscErrorCode MatGPUCSRDescribe_Private(Mat, PetscViewer);
GPUCSR_INTERN Mat_SeqGPUCSR *MatGPUCSRLiving_Private(void); /* the first of them */

GPUCSR_INTERN PetscErrorCode GPUCSRHaloWordCheck(Mat, const char[]); /* halo.c */
GPUCSR_INTERN PetscErrorCode GPUCSRHalosForget(void);

/* For the one who registers all types of the library, dlregisgpucsr.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRInitialize_Private(MPI_Comm);
GPUCSR_INTERN PetscErrorCode MatGPUCSRRegister_Private(void);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorRegister_Private(void); /* factor/ */

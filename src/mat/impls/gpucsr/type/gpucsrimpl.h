#pragma once

/* What the files of the Mat share */
#include <petsc/private/matimpl.h> /* the operations of a Mat, which the types replace, its product and its state */
#include <petsc/private/vecimpl.h> /* the offload mask and the arrays of device vectors */
#include "../product/operator.h"
#include "../blackbox/spgemm/spgemm.h"

/* Exchanges between ranks */
typedef enum {
  GPUCSR_HALO_AUTO,
  GPUCSR_HALO_PEER,
  GPUCSR_HALO_NCCL,
  GPUCSR_HALO_STAGED
} GPUCSRHaloWay;

/* Options of a matrix; a parallel matrix passes them to its two blocks */
typedef struct {
  MatGPUCSRBackend   backend;
  MatGPUCSRPrecision precision;
  GPUCSRRequest      request, trequest;
  PetscBool          transposeatassembly;
  GPUCSRHaloWay      halo;
  PetscInt           smallonhost;  /* under backend auto, leave products of host vectors to MATAIJ if that is predicted to be faster: 1, 0, or -1, on a GPU alone */
  PetscInt           productleast; /* nonzeros of two sparse matrices below which their product is MATAIJ's */
  PetscBool          masterdevice; /* the master copy of the values is the device's */
} MatGPUCSRConfig;

typedef enum {
  GPUCSR_FORWARD,
  GPUCSR_TRANSPOSE
} GPUCSRSide;

/* The differences between the two types; inherit.c has the rest */
typedef struct {
  MatType     name, parent;
  const char *seq;                                                              /* "seq" or "mpi", as names of types begin */
  size_t      size;                                                             /* of A->spptr */
  PetscErrorCode (*created)(Mat);                                               /* A has just become this type; may be NULL */
  PetscErrorCode (*release)(Mat);                                               /* A is about to leave this type */
  PetscErrorCode (*configured)(Mat);                                            /* the configuration has changed */
  PetscErrorCode (*product)(Mat, GPUCSRSide, Vec x, Vec y, Vec z);              /* z = A x + y or with the transpose; y may be NULL, may be z */
  PetscErrorCode (*getdiagonal)(Mat, Vec);                                      /* NULL: the parent's */
  PetscErrorCode (*inplace)(Mat, PetscBool install);                            /* operations in place; NULL: the parent's */
  PetscErrorCode (*axpy)(Mat, PetscScalar, Mat, MatStructure, PetscBool *done); /* not done: the parent's */
  PetscErrorCode (*createsubmatrices)(Mat, PetscInt, const IS[], const IS[], MatReuse, Mat *[]);
  PetscErrorCode (*assemblyend)(Mat, MatAssemblyType);
  PetscErrorCode (*view)(Mat, PetscViewer); /* the part that the parent's view lacks */
  PetscErrorCode (*setup)(Mat, PetscBool);
  PetscErrorCode (*getinfo)(Mat, MatGPUCSRInfo *);
  PetscErrorCode (*toaij)(Mat, MatType, MatReuse, Mat *);
  PetscErrorCode (*fromaij)(Mat, MatType, MatReuse, Mat *);
} MatGPUCSRKind;

/* The beginning of A->spptr of both types */
typedef struct {
  const MatGPUCSRKind *kind;
  struct _MatOps       parent;     /* the operations of the parent MATAIJ, */
  PetscErrorCode (*retrieve)(Mat); /* its MatRetrieveValues(), */
  PetscErrorCode (*store)(Mat);
  PetscErrorCode (*istranspose)(Mat, Mat, PetscReal, PetscBool *); /* while the master copy is the device's: its MatStoreValues() and MatIsTranspose() */
  PetscErrorCode (*preallocatecoo)(Mat, PetscCount, PetscInt[], PetscInt[]);
  PetscErrorCode (*setvaluescoo)(Mat, const PetscScalar[], InsertMode); /* MatSetPreallocationCOO() and MatSetValuesCOO() */
  struct _MatOps *behind;                                               /* operations that are wrapped while the master copy is the device's */
  PetscCount      contributions;                                        /* 1 + contributions of the pattern that the parent made by coordinates; -1: it made none */
  PetscBool       keeppattern;                                          /* MAT_KEEP_NONZERO_PATTERN is known to be set */
  MatGPUCSRConfig config;
  PetscBool       devicevectors; /* MatCreateVecs() makes VECGPU unless another type was asked for */
  PetscBool       hostworks;     /* MATAIJ computes this matrix, by operations and by its array: results of the device come home */
} Mat_GPUCSR;

/* Most pieces of a large product with host vectors, in which upload, product and download overlap */
#define GPUCSR_PIECES 16

/* With a report, pairs of events time kernels and copies of vectors, and are read long after: room for one product in pieces at least */
#define GPUCSR_TIMERS (4 * GPUCSR_PIECES)

typedef struct {
  GPUCSREvent begin[GPUCSR_TIMERS], end[GPUCSR_TIMERS];
  double     *sum[GPUCSR_TIMERS]; /* sums of the seconds */
  int         first, pending;
} GPUCSRTimers;

/*
  The object's state, which PETSc increases with each change, tells whether values have changed. Two kinds of writes leave the state as it is:

  - MatCreateSubMatrices() of MATMPIAIJ assembles a submatrix of all rows and columns, and fills the submatrix afterwards, also with MAT_REUSE_MATRIX.
    MatGPUCSRUncountedChange_Private() recognizes the matrix, and each product compares the values with a copy.
  - A program that keeps the array of MatCreateSeqAIJWithArrays(), or a read-only array. The program must call PetscObjectStateIncrease(), as for any
    other device matrix. Each product compares a few values, which detects most omissions of this call, and not all.
*/
#define GPUCSR_SAMPLES       8
#define GPUCSR_FIRST_SAMPLES 1024 /* compared twice in the life of a matrix: all values of most submatrices */

/* The matrix in CSR on a device, for products of sparse matrices */
typedef struct {
  GPUCSRStorage    csr;        /* its format is NULL if there is no mirror */
  PetscObjectState pattern;    /* nonzerostate of its pattern, */
  const void      *columns;    /* the host's columns, */
  PetscObjectState values;     /* and object state of its values */
  PetscBool        ahead;      /* the host's values are older, and NaN */
  PetscBool        spare;      /* not read yet; freed after */
  PetscInt64       until;      /* this number of products */
  PetscBool        assembling; /* an assembly follows that changes no value */
  PetscObjectState diagonalat; /* 1 + nonzerostate of a pattern; its diagonal */
  GPUCSRBuffer     place;      /* has these places on the device, or none if the diagonal has gaps */
} GPUCSRMirror;

/* A->spptr of a MATSEQAIJGPUCSR. The host's MATAIJ stays the master copy of the matrix; everything here can be made again. */
typedef struct _n_Mat_SeqGPUCSR Mat_SeqGPUCSR;
struct _n_Mat_SeqGPUCSR {
  Mat_GPUCSR       base;
  PetscBool        block;                  /* of a MATMPIAIJGPUCSR, which prints its warnings */
  char             warning[768];           /* to be printed, by this matrix or by its parallel matrix */
  PetscBool        putoff;                 /* its factorizations are deferred, see MatGPUCSRFactorPutOff_Private() */
  PetscBool        probed;                 /* see MatGPUCSRFactorProbed_Private() */
  PetscBool        decided;                /* backend known, for this configuration */
  GPUCSRStream     last;                   /* stream of the last product */
  PetscBool        foreign;                /* products may be running on PETSc's stream */
  PetscBool        warned;                 /* the warning about the tolerance was printed */
  GPUCSRDevice     dev;                    /* NULL: products are MATSEQAIJ's */
  char             whynot[512];            /* reason when dev is NULL */
  GPUCSRPrecision  precision;              /* of the plans */
  GPUCSRPlan       plan[2];                /* by side */
  Mat              counted;                /* the matrix of these states */
  PetscObjectState pattern[2];             /* nonzerostate of the plan */
  PetscObjectState values[2];              /* object state of its values */
  GPUCSRVersion    version;                /* of A's plan: new after every change, counted by PETSc or not */
  PetscScalar      sample[GPUCSR_SAMPLES]; /* the host's values at the plans' last update */
  PetscScalar     *firstvalues;            /* values at an assembly without MatSetValues(), until their first use */
  PetscObjectState firststate;             /* the object's state once that assembly is counted */
  PetscScalar     *copy;                   /* of all values, where changes are not counted */
  PetscScalar     *kept;                   /* the only copy of the values of a device that was closed, */
  const void      *keptcolumns;            /* of these columns on the host */
  int64_t          nkept;
  PetscBool        early;                  /* both plans were made inside an assembly, */
  PetscInt         assemblies;             /* of this number */
  int32_t         *rowptr;                 /* row pointers in 32 bits where PetscInt has 64 */
  GPUCSRMirror     mirror;                 /* mirror.c */
  int              lastcol[GPUCSR_PIECES]; /* for each piece of rows: 1 + the last column met so far; A alone */
  PetscBool        lastcolset;
  GPUCSRBuffer     x, z; /* device vectors of products with host vectors */
  GPUCSREvent      sent[GPUCSR_PIECES], computed[GPUCSR_PIECES];
  GPUCSREvent      read; /* the device still reads host vectors */
  PetscBool        events;
  GPUCSRTimers     timers;
  double           filled;    /* seconds of the plans' upload that filled formats: a device that uses host memory uploads nothing */
  MatGPUCSRInfo    info;      /* counts and times; MatGPUCSRGetInfo() fills in the rest */
  char             name[128]; /* in the report: of a block, its parallel matrix' name */
  double           nonzeros;
  PetscBool        small;       /* the host is faster with host vectors, */
  double           smallat;     /* with the pattern of this nonzerostate + 1, 0: never asked, */
  double           foretold[2]; /* seconds there, and on the device */
  PetscBool        advised;     /* -mat_gpucsr_advise has said */
  MatGPUCSRAdvice  advice;      /* this */
  double           share[3];    /* diagonal block: entries of this rank, the mean, and the most of a rank; 0: not known */
  GPUCSRLiving     living;
};

GPUCSR_INTERN GPUCSRLogEvent MAT_GPUCSR_Build, MAT_GPUCSR_Refresh, MAT_GPUCSR_Transpose, MAT_GPUCSR_Product, MAT_GPUCSR_Halo;

GPUCSR_INTERN PetscErrorCode MatCreate_SeqAIJGPUCSR(Mat);
GPUCSR_INTERN PetscErrorCode MatCreate_MPIAIJGPUCSR(Mat);
GPUCSR_INTERN PetscErrorCode MatConvert_SeqAIJ_SeqAIJGPUCSR(Mat, MatType, MatReuse, Mat *);
GPUCSR_INTERN PetscErrorCode MatConvert_MPIAIJ_MPIAIJGPUCSR(Mat, MatType, MatReuse, Mat *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRConfigOptions_Private(Mat, MatGPUCSRConfig *, PetscBool *, GPUCSROptionItems);
GPUCSR_INTERN PetscErrorCode MatGPUCSRConfigCheck_Private(Mat, const MatGPUCSRConfig *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRVecType_Private(Mat, const MatGPUCSRConfig *);
GPUCSR_INTERN PetscErrorCode MatCreateVecs_GPUCSR(Mat, Vec *, Vec *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRConfigure_Private(Mat, const MatGPUCSRConfig *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRReconfigure_Private(Mat, const MatGPUCSRConfig *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFits_Private(Mat, Vec x, Vec b);                                                        /* inherit.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRLevelRegister_Private(void);                                                            /* level.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRPlanDiagonal_Private(GPUCSRDevice, GPUCSRPlan *, Vec, GPUCSRStream *, PetscBool *done); /* seqgpucsr.c */

GPUCSR_INTERN PetscErrorCode MatGPUCSRFromAIJ_Private(Mat, const MatGPUCSRKind *, MatReuse, Mat *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRToAIJ_Private(Mat, MatType, MatReuse, Mat *);

/* Is A of this library's types? */
static inline PetscBool MatGPUCSRIs(Mat A)
{
  return (PetscBool)(GPUCSRIsType(A, MATSEQAIJGPUCSR) || GPUCSRIsType(A, MATMPIAIJGPUCSR));
}

/* The backend that was asked for; the host's for a matrix bound to the CPU */
static inline MatGPUCSRBackend MatGPUCSRBackendOf(Mat A)
{
#if PetscDefined(HAVE_DEVICE)
  if (A->boundtocpu) return MAT_GPUCSR_BACKEND_HOST;
#endif
  return ((Mat_GPUCSR *)A->spptr)->config.backend;
}

GPUCSR_INTERN PetscErrorCode MatGPUCSRPlansDestroy_Private(Mat_SeqGPUCSR *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRMirrorDestroy_Private(GPUCSRMirror *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRViewBlock_Private(Mat, PetscViewer);
GPUCSR_INTERN PetscErrorCode MatGPUCSRDecide_Private(Mat);
GPUCSR_INTERN PetscErrorCode MatGPUCSRHeaderReplaced_Private(Mat); /* this and the next three: changes.c */
GPUCSR_INTERN void           MatGPUCSRVoid_Private(PetscScalar[], int64_t);
GPUCSR_INTERN PetscErrorCode MatGPUCSRSample_Private(Mat, PetscInt, PetscScalar[]);
GPUCSR_INTERN PetscErrorCode MatGPUCSRUncountedChange_Private(Mat, Mat_SeqGPUCSR *, PetscObjectState, PetscBool *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRReady_Private(Mat, GPUCSRSide, PetscBool *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRBlocksReady_Private(Mat, Mat, GPUCSRSide, PetscBool warns, PetscBool *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRSource_Private(Mat, GPUCSRSource *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRLeave_Private(Mat, const char[]);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFailed_Private(Mat, Mat other, const GPUCSRAttempt *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRWarn_Private(Mat, PetscMPIInt, PetscMPIInt, PetscMPIInt);
GPUCSR_INTERN PetscErrorCode MatGPUCSRParentProduct_Private(Mat, GPUCSRSide, Vec, Vec, Vec);
GPUCSR_INTERN PetscErrorCode MatGPUCSRApply_Private(Mat, GPUCSRSide, const GPUCSROperand *x, const GPUCSROperand *y, const GPUCSROperand *z, GPUCSRStream, PetscBool *wrote);
GPUCSR_INTERN PetscErrorCode MatGPUCSRBuffer_Private(GPUCSRDevice, GPUCSRBuffer *, size_t, void **);
GPUCSR_INTERN PetscErrorCode MatGPUCSRCross_Private(Mat_SeqGPUCSR *, PetscBool up, void *, const GPUCSROperand *, size_t first, size_t n, int k, size_t ld, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode MatGPUCSRConvert_Private(Mat_SeqGPUCSR *, size_t, const void *, GPUCSRType, void *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode MatGPUCSRTimerBegin_Private(Mat_SeqGPUCSR *, double *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode MatGPUCSRTimerEnd_Private(Mat_SeqGPUCSR *, GPUCSRStream);
GPUCSR_INTERN PetscErrorCode MatGPUCSRTimersRead_Private(Mat_SeqGPUCSR *, int);

GPUCSR_INTERN PetscErrorCode MatGPUCSRCOOCompose_Private(Mat, PetscBool install); /* this and the next: assembly/coo.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRCOOShare_Private(Mat, Mat);
GPUCSR_INTERN PetscErrorCode MatGPUCSRInPlace_Private(Mat, PetscBool install); /* this and the next four: assembly/inplace.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRDiagonal_Private(Mat, Vec, PetscBool *done);
GPUCSR_INTERN PetscErrorCode MatGPUCSRAddSame_Private(Mat, PetscScalar, Mat, PetscBool *done);
GPUCSR_INTERN PetscErrorCode MatGPUCSRCopySame_Private(Mat, Mat, MatStructure, PetscBool *done);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFetch_Private(Mat); /* this and the next five: assembly/master.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRHostWorks_Private(Mat, PetscBool);
GPUCSR_INTERN PetscErrorCode MatGPUCSRKeep_Private(Mat_SeqGPUCSR *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRWritten_Private(Mat);
GPUCSR_INTERN PetscErrorCode MatGPUCSRWatch_Private(Mat);
GPUCSR_INTERN PetscErrorCode MatGPUCSRUnwatch_Private(Mat);

GPUCSR_INTERN PetscErrorCode MatProductSetFromOptions_GPUCSR_Dense(Mat); /* this and the next two: matmat.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRDenseGet_Private(Mat, PetscBool write, GPUCSROperand *, size_t *ld);
GPUCSR_INTERN PetscErrorCode MatGPUCSRDenseRestore_Private(Mat, PetscBool write, GPUCSROperand *);
GPUCSR_INTERN PetscErrorCode MatProductSetFromOptions_GPUCSR(Mat); /* this and the next three: products.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRProductOfParents_Private(Mat);
GPUCSR_INTERN PetscErrorCode MatGPUCSRComposeProducts_Private(Mat, const char[], PetscBool);
GPUCSR_INTERN PetscErrorCode MatProductSetFromOptions_AIJGPUCSR(Mat);

GPUCSR_INTERN PetscErrorCode MatGPUCSRMirror_Private(Mat, GPUCSRDevice, PetscBool, GPUCSRStorage **); /* this and the next two: mirror.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRShare_Private(Mat, PetscBool whole);
GPUCSR_INTERN PetscErrorCode MatGPUCSRUnspare_Private(Mat);
GPUCSR_INTERN PetscErrorCode MatGPUCSREntriesOf_Private(Mat, const GPUCSRStorage *, PetscBool); /* this and the next two: sparseproduct.c */
GPUCSR_INTERN PetscErrorCode MatGPUCSRProductMirror_Private(Mat, GPUCSRStorage *);
GPUCSR_INTERN PetscErrorCode MatAXPY_SeqAIJGPUCSR(Mat, PetscScalar, Mat, MatStructure, PetscBool *);

/* Values of the matrix that have crossed the bus */
static inline void MatGPUCSRValuesSent(Mat_SeqGPUCSR *g, double bytes)
{
  g->info.uploaded += bytes;
  g->info.values_uploaded += bytes;
}

static inline void MatGPUCSRValuesBack(Mat_SeqGPUCSR *g, double bytes)
{
  g->info.downloaded += bytes;
  g->info.values_downloaded += bytes;
}

/* The vectors of a product z = A x + y with their arrays, and its stream; y may be NULL, may be z */
typedef struct {
  Vec           x, y, z;
  GPUCSROperand ox, oy, oz;
  PetscBool     hasx, hasy, hasz; /* arrays taken from x, y and z */
  GPUCSRStream  stream;
} GPUCSRVectors;

GPUCSR_INTERN PetscErrorCode MatGPUCSRVectorsGet_Private(GPUCSRDevice, GPUCSRVectors *);
GPUCSR_INTERN PetscErrorCode MatGPUCSRVectorsRestore_Private(GPUCSRDevice, GPUCSRVectors *);

GPUCSR_INTERN PetscErrorCode   MatGPUCSRAdviseFirst_Private(Mat); /* this and the next: advice.c */
GPUCSR_INTERN PetscErrorCode   MatGPUCSRAdviceError_Private(const Mat_SeqGPUCSR *, const MatGPUCSRInfo *, char[], size_t);
GPUCSR_INTERN PetscErrorCode   MatGPUCSRHostIsFaster_Private(Mat, Vec x, Vec y, Vec z, PetscBool *); /* this and the next: foretell.c */
GPUCSR_INTERN PetscErrorCode   MatGPUCSRHostIsFasterWhy_Private(const Mat_SeqGPUCSR *, char[], size_t);
GPUCSR_INTERN PetscErrorCode   MatGPUCSRInfoGet_Private(Mat, MatGPUCSRInfo *);
GPUCSR_INTERN PetscErrorCode   MatGPUCSRReportAdd_Private(Mat);
GPUCSR_INTERN PetscErrorCode   MatGPUCSRReportRemove_Private(Mat_SeqGPUCSR *);
GPUCSR_INTERN PetscErrorCode   MatGPUCSRReportPrint_Private(void);
GPUCSR_INTERN PetscErrorCode   MatGPUCSRReportFactor_Private(MatFactorType, PetscInt rows, const char solver[], const char why[], double seconds); /* report.c */
GPUCSR_INTERN PetscErrorCode   MatGPUCSRDescribe_Private(Mat, PetscViewer);
GPUCSR_INTERN GPUCSRLivingList MatGPUCSRLiving; /* of Mat_SeqGPUCSR */

/* For dlregisgpucsr.c, which registers all types of the library */
GPUCSR_INTERN PetscErrorCode MatGPUCSRInitialize_Private(MPI_Comm);
GPUCSR_INTERN PetscErrorCode MatGPUCSRRegister_Private(void);
GPUCSR_INTERN PetscErrorCode MatGPUCSRFactorRegister_Private(void); /* factor/ */

#pragma once

/* PCGPUAMG for the files of this folder, and for the levels of several ranks in a PCGAMG (../gamg) */
#include "../petscprivate.h"
#include "../../../../sys/gpucsrsys.h"
#include "../../../../mat/impls/gpucsr/blackbox/amg/amg.h"
#include "../../../../mat/impls/gpucsr/sparse/mpisparse.h"
#include "gpuamg.h"

typedef struct _n_GPUAMGRanks GPUAMGRanks;

/* Of the levels on one device */
typedef struct {
  PetscBool richardson; /* Richardson's iteration, otherwise Chebyshev's */
  PetscBool given;      /* Chebyshev's bounds are in bounds, otherwise in part */
  PetscReal scale;      /* Richardson's */
  PetscReal part[2];    /* Chebyshev's bounds, relative to the largest eigenvalue of a level */
  PetscReal bounds[2];  /* Chebyshev's bounds as numbers */
} PCGPUAMGSmoother;

#define GPUAMG_K 3 /* `cycles`: 1 V, 2 W, and K-cycles */

/* Options of a hierarchy. Unused bytes are 0, because options are compared byte by byte */
typedef struct {
  GPUAMGOptions    o;
  PetscInt         nthreshold, cycles;
  PetscInt         precision; /* of levels: an index of PCGPUAMGPrecisions */
  int              degree, tail;
  int              least;  /* -pc_gpuamg_process_eq_limit: a level of fewer rows a rank goes to each rank, */
  int              gather; /* -pc_gpuamg_gather_limit: and a level below the finest of at most so many rows */
  PetscReal        scale;
  PCGPUAMGSmoother smoother;
} PCGPUAMGOptions;

typedef struct _n_PC_GPUAMG PC_GPUAMG;
struct _n_PC_GPUAMG {
  PCGPUAMGOptions   asked, used;  /* for the next set-up; by the last one */
  PetscBool         inner;        /* part of another PC, which prints messages */
  PetscBool         singular;     /* the message about a singular matrix is printed */
  PetscBool         told;         /* which options have no effect: */
  char              without[512]; /* their names */
  PetscBool         reuse;
  PetscBool         part; /* another PC has the levels, and makes small levels itself */
  GPUAMG            h;
  Mat_GPUCSRFactor *factor[GPUAMG_LEVELS]; /* of the hierarchy's levels, in its order; NULL: another smoother */
  GPUMGCycle        cycle, transposed;
  PetscBool         taken, takent; /* the cycles belong to the present hierarchy */
  PetscBool         warned;        /* of K-cycles inside a method that is not flexible */
  PetscBool         rounded;       /* the cycle may be in floats */
  PetscInt64        pattern;       /* of the finest matrix when the hierarchy was made */
  GPUCSROperator    matrix;        /* the finest matrix, with a reference to its Mat; on several ranks the Mat alone */
  const void       *data;          /* of its plan's first array */
  const char       *kernel;        /* of its products */
  PetscInt          bs;            /* rows of a block */
  PetscObjectId     near;          /* near null space */
  PetscObjectState  nearstate;
  PetscBool         moved;   /* the coordinates, since the hierarchy was made */
  PetscInt          version; /* changes with each change of the cycle */
  PetscInt          built, refreshed;
  GPUCSREvent       event;
  GPUAMGRanks      *ranks; /* instead of a hierarchy: levels of several ranks */
  double           *given; /* the near null space from a finer level, by rows of ngiven numbers */
  PetscInt          ngiven;
  PetscReal        *coordinates; /* of PCSetCoordinates() */
  PetscInt          dim, points;
  GPUCSRLiving      living;
};

/* A matrix of all ranks on their devices. The finest has the blocks, plans and exchange of its Mat */
typedef struct {
  GPUCSRRanksCSR m;
  GPUCSRStorage  own[2]; /* blocks that belong to the matrix */
  GPUCSRPlan     plan[2];
  GPUCSROperator o;
  GPUCSRRanks    r;
  PetscBool      exchanges; /* the exchange belongs to the matrix */
} GPUAMGRanksMatrix;

/* Level 0 is the finest. P: from the next level to this level: tentative, smoothed once, ... */
typedef struct {
  GPUAMGRanksMatrix A, P[GPUAMG_SMOOTHS + 1], R; /* R: with the transposed blocks of P, which its products take in reverse */
  GPUAMGRanksMatrix T;                           /* A transposed, made when it is asked for; without T.o.dev there is none */
  int32_t          *tmap[2];
  RanksProduct     *smoothed[GPUAMG_SMOOTHS + 1], *galerkin;
  PetscLayout       rows;
  GPUCSRBuffer      dinv, smooth, basis, dead; /* smooth: of another smoother than the diagonal's; basis: near null vectors, ns numbers a row, without memory constants; dead: of rows without one */
  Mat_GPUCSRFactor *factor;
  double            lambda, bound; /* the largest eigenvalue of D^-1 A, and for the smoother */
  PetscInt          n, N, bs, ns;
  int64_t           nnz; /* of this rank's rows of A, for a view */
} GPUAMGRanksLevel;

struct _n_GPUAMGRanks {
  int               levels;
  PetscObjectId     id; /* of the finest matrix, which MatHeaderReplace() changes */
  GPUAMGRanksLevel  level[GPUAMG_LEVELS];
  PetscBool         weak;       /* entries are dropped */
  PetscBool         beyond;     /* the coarsest level has a prolongator from another PC's level */
  PetscBool         small;      /* each rank has all rows of the coarsest level: */
  PC                one;        /* a PC of all rows, on each rank */
  Mat               all;        /* the matrix of `one` */
  Mat               everything; /* its product is all of a right-hand side */
  GPUAMGRanksMatrix gather;     /* device data of `everything` */
};

/* A level's matrix or its prolongator, and their transposes if they are there (dev NULL: no), of one rank or of several */
typedef struct {
  GPUCSROperator        side[2];
  GPUCSRRanks           ranks[2];
  const GPUCSRRanksCSR *rows; /* of several ranks */
  PetscInt              bs, cbs;
} PCGPUAMGMatrix;

/* options.c */
GPUCSR_INTERN PetscErrorCode    PCGPUAMGSettersCompose_Private(PC, PetscBool);
GPUCSR_INTERN PetscErrorCode    PCGPUAMGSetFromOptions_Private(PC, GPUCSROptionItems);
GPUCSR_INTERN PetscErrorCode    PCGPUAMGOptionsSame_Private(PC);
GPUCSR_INTERN const char *const PCGPUAMGSmoothers[]; /* in the order of GPUAMGSmoother */

/* gpuamg.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGForget_Private(void *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGTransposedCycle_Private(PC, GPUMGCycle **);
GPUCSR_INTERN void           PCGPUAMGOptionsAt_Private(const PC_GPUAMG *, int level, GPUAMGOptions *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGStays_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGPUAMGOneLevels_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGPUAMGOneRefresh_Private(PC, PetscBool *good);
GPUCSR_INTERN PetscErrorCode PCGPUAMGOnDevice_Private(const GPUCSROperator *, const char why[]);

/* rounded.c */
GPUCSR_INTERN const char *const PCGPUAMGPrecisions[];
GPUCSR_INTERN PetscErrorCode    PCGPUAMGRound_Private(GPUAMG *, GPUMGCycle *, const GPUCSROperator *, PetscInt precision, PetscBool *rounded);
GPUCSR_INTERN PetscErrorCode    PCGPUAMGFinest_Private(PC_GPUAMG *, const GPUCSROperator *);
GPUCSR_INTERN PetscErrorCode    PCGPUAMGFloats_Private(PC, PetscBool floats);

/* near.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGNear_Private(PC, GPUCSRDevice, PetscInt *bs, PetscInt *ns, GPUCSRBuffer *basis);
GPUCSR_INTERN PetscErrorCode PCSetCoordinates_GPUAMG(PC, PetscInt dim, PetscInt points, PetscReal[]);

/* smoother.c */
GPUCSR_INTERN void           PCGPUAMGSmoother_Private(const PC_GPUAMG *, const GPUCSRBuffer *dinv, const GPUCSRBuffer *smooth, int bs, Mat_GPUCSRFactor *, double lambda, PetscBool last, GPUMGSmoother *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGSmootherSetFromOptions_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGPUAMGSmootherTell_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGPUAMGFactors_Private(PC_GPUAMG *);

/* levels.c */
GPUCSR_INTERN PCGPUAMGMatrix PCGPUAMGMatrixOf_Private(PC_GPUAMG *, int level, PetscBool prolongator);
GPUCSR_INTERN PetscErrorCode PCGPUAMGGetOperator_GPUAMG(PC, PetscInt level, Mat *);

/* gather.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGGather_Private(PC);

/* filter.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGBeyond_Private(const GPUAMGRanksLevel *, GPUCSRBuffer *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGFilter_Private(const GPUAMGRanksLevel *, GPUAMGRanksMatrix *);

/* ranks.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGSettle_Private(MPI_Comm, GPUCSRAttempt *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksSetUp_Private(PC, PetscBool same);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksRenew_Private(Mat, GPUAMGRanks *, PetscBool *here);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksLevels_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksRefresh_Private(PC, PetscBool *good);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksDestroy_Private(GPUAMGRanks **);

/* ranksmatrix.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksFinest_Private(Mat, PetscBool transposed, GPUAMGRanksMatrix *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksPlan_Private(Mat like, int longest, GPUAMGRanksMatrix *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksTransposed_Private(GPUCSRStorage *const block[2], const GPUAMGRanksMatrix *, GPUAMGRanksMatrix *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksEmpty_Private(GPUCSRDevice, PetscInt m, PetscInt n, GPUCSRStorage *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksMatrixDestroy_Private(GPUAMGRanksMatrix *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksLargest_Private(const GPUAMGRanksLevel *, int most, PetscErrorCode (*)(const GPUAMGRanksLevel *, const double *, double *), double *);

/* cycles.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGPreSolve_Private(PC, KSP, Vec, Vec);
GPUCSR_INTERN PetscErrorCode PCGPUAMGCycleFill_Private(PC, const GPUCSROperator *, PetscBool transposed, GPUMGCycle *);

/* rankscycle.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksCycles_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksTranspose_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksCurrent_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksView_Private(PC, PetscViewer);

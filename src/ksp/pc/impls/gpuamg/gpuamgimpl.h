#pragma once

/* PCGPUAMG for the files of this folder */
#include "../petscprivate.h"
#include "../../../../sys/gpucsrsys.h"
#include "../../../../mat/impls/gpucsr/blackbox/amg/amg.h"
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
  PCGPUAMGOptions   asked, used; /* for the next set-up; by the last one */
  PetscBool         told;        /* which options have no effect */
  PetscBool         reuse;
  GPUAMG            h;
  Mat_GPUCSRFactor *factor[GPUAMG_LEVELS]; /* of the hierarchy's levels, in its order; NULL: another smoother */
  GPUMGCycle        cycle, transposed;
  PetscBool         taken, takent; /* the cycles belong to the present hierarchy */
  PetscBool         warned;        /* of K-cycles inside a method that is not flexible */
  PetscBool         rounded;       /* the cycle has float values */
  GPUCSROperator    matrix;        /* the finest matrix of the hierarchy, with a reference to its Mat */
  const void       *data;          /* of its plan's first array */
  const char       *kernel;        /* of its products */
  PetscInt          bs;            /* rows of a block */
  PetscObjectId     near;          /* near null space */
  PetscObjectState  nearstate;
  PetscBool         moved;   /* the coordinates, since the hierarchy was made */
  PetscInt          version; /* changes with each change of the cycle */
  PetscInt          built, refreshed;
  GPUCSREvent       event;
  GPUAMGRanks      *ranks;   /* instead of a hierarchy: levels of several ranks */
  PetscBool         gathers; /* the matrix goes to each rank, for any size */
  double           *given;   /* the near null space from a finer level, by rows of ngiven numbers */
  PetscInt          ngiven;
  PetscReal        *coordinates; /* of PCSetCoordinates() */
  PetscInt          dim, points;
  GPUCSRLiving      living;
};

/* Level 0 is the finest. P: from the next level to this level: tentative, smoothed once, ... */
typedef struct {
  Mat       A, P[GPUAMG_SMOOTHS + 1];
  Vec       dinv;
  double    lambda;
  PetscInt  n, N, bs, ns;
  double   *near;   /* near null vectors in this rank's rows, ns numbers a row; NULL: constants */
  Vec       dead;   /* ones in rows without a near null vector; NULL: every row has one */
  Vec      *krylov; /* of a K-cycle: the first correction, and products with both */
  PetscBool whole;  /* no row lacks its diagonal entry */
} GPUAMGRanksLevel;

struct _n_GPUAMGRanks {
  int               levels;
  GPUAMGRanksLevel  level[GPUAMG_LEVELS];
  PetscObjectId     id; /* of the finest matrix */
  PetscObjectState  pattern;
  PetscBool         weak; /* entries are dropped */
  GPUMGKrylovMethod krylov;
  PetscBool         continues; /* of K-cycles: below the levels of all ranks are several small ones */
  PC                mg;
  PC                one; /* instead of mg: a PC of all rows, on each rank */
  Mat               all; /* the matrix of `one` */
  VecScatter        scatter;
  Vec               b, x;
};

/* options.c */
GPUCSR_INTERN PetscErrorCode    PCGPUAMGSettersCompose_Private(PC, PetscBool);
GPUCSR_INTERN PetscErrorCode    PCGPUAMGSetFromOptions_Private(PC, GPUCSROptionItems);
GPUCSR_INTERN PetscErrorCode    PCGPUAMGOptionsSame_Private(PC);
GPUCSR_INTERN const char *const PCGPUAMGSmoothers[]; /* in the order of GPUAMGSmoother */

/* gpuamg.c */
GPUCSR_INTERN void           PCGPUAMGOptionsAt_Private(const PC_GPUAMG *, int level, GPUAMGOptions *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGInherit_Private(const PC_GPUAMG *, int level, PetscInt ns, const double *near, PC);
GPUCSR_INTERN PetscErrorCode PCGPUAMGOnDevice_Private(const GPUCSROperator *, const char why[]);

/* rounded.c */
GPUCSR_INTERN const char *const PCGPUAMGPrecisions[];
GPUCSR_INTERN PetscErrorCode    PCGPUAMGRound_Private(GPUAMG *, GPUMGCycle *, const GPUCSROperator *, PetscInt precision, PetscBool *rounded);

/* near.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGNear_Private(PC, PetscInt *bs, PetscInt *ns, double **rows);
GPUCSR_INTERN PetscErrorCode PCGPUAMGUpload_Private(GPUCSRDevice, size_t n, const double *rows, GPUCSRBuffer *);
GPUCSR_INTERN PetscErrorCode PCSetCoordinates_GPUAMG(PC, PetscInt dim, PetscInt points, PetscReal[]);

/* smoother.c */
GPUCSR_INTERN void           PCGPUAMGSmoother_Private(const PC_GPUAMG *, double lambda, int steps, GPUMGSmoother *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGSmootherSetFromOptions_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGPUAMGSmootherTell_Private(PC, PetscBool several);
GPUCSR_INTERN PetscErrorCode PCGPUAMGFactors_Private(PC_GPUAMG *);

/* operator.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGGetOperator_GPUAMG(PC, PetscInt level, Mat *);

/* gather.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGGather_Private(PC);
GPUCSR_INTERN PetscErrorCode PCGPUAMGGatheredApply_Private(const GPUAMGRanks *, PetscBool transposed, Vec, Vec);

/* tentative.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGWeak_Private(Mat, PetscBool *weak);
GPUCSR_INTERN PetscErrorCode PCGPUAMGBlock_Private(Mat, GPUCSROperator *, const GPUCSRStorage **);

/* filter.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGBeyond_Private(Mat, Vec dinv, double **);
GPUCSR_INTERN PetscErrorCode PCGPUAMGFilter_Private(Mat, Vec dinv, const double *near, Mat *);

/* krylov.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGKrylovMethod_Private(const PC_GPUAMG *, Mat, GPUMGKrylovMethod *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGPreSolve_Private(PC, KSP, Vec, Vec);
GPUCSR_INTERN PetscErrorCode PCGPUAMGKrylovSetUp_Private(GPUAMGRanks *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGKrylovApply_Private(PC, Vec, Vec);

/* ranks.c */
GPUCSR_INTERN PetscErrorCode PCGPUAMGSettle_Private(MPI_Comm, GPUCSRAttempt *);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksSetUp_Private(PC, PetscBool same);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksDestroy_Private(GPUAMGRanks **);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksApply_Private(PC, PetscBool transposed, Vec, Vec);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksCycle_Private(PC, GPUMGCycle **, PetscInt *version);
GPUCSR_INTERN PetscErrorCode PCGPUAMGRanksView_Private(PC, PetscViewer);

#pragma once

/*
  A multigrid cycle on one device: operators and interpolations are matrices of this library, smoothers are polynomials, and the coarse solver is a dense inverse or a smoother. levels.c makes
  the cycle from a PCMG, cycle.c runs it, pcmg.c hooks it into PCMG and PCGAMG.
*/
#include <petscksp.h>
#include "../../../../mat/impls/gpucsr/product/operator.h"
#include "pass.h"

#define GPUMG_LEVELS  16 /* at most */
#define GPUMG_STEPS   32 /* of a smoother at most */
#define GPUMG_VECTORS 5  /* of a level */

/* So many steps d = ca d + cb M (b - A x), x += d: all that Chebyshev's and Richardson's iterations are */
typedef struct {
  double ca, cb;
} GPUMGStep;

typedef struct {
  int          steps;
  GPUMGStep    step[GPUMG_STEPS];
  PetscBool    fromzero; /* it starts from 0, whatever x is */
  int          bs;       /* M: 0 none, 1 a diagonal, else diagonal blocks of this size, */
  GPUCSRBuffer M;        /* by rows */
} GPUMGSmoother;

/* A matrix of the cycle, or its transpose */
typedef struct {
  Mat            A; /* not counted */
  GPUCSROperator o; /* with several ranks: its diagonal block, */
  GPUCSRRanks    r; /* and the off-diagonal block; no halo: one rank */
  PetscBool      transposed;
  const void    *data; /* address of the plan's first array when the cycle was made */
} GPUMGMatrix;

/* A copy of a MATSEQAIJ of the program in type gpucsr */
typedef struct {
  Mat        A;
  PetscInt64 id, state; /* of the original */
} GPUMGCopy;

typedef struct {
  int           n;
  int           cycles;  /* visits of the next coarser level: 1 V, 2 W */
  GPUMGMatrix   A, P, R; /* P: from the next coarser level to this; R: back */
  GPUMGCopy     copy[3]; /* of the matrices of A, P and R */
  GPUMGSmoother down, up;
  PetscBool     two; /* up is another one than down */
  GPUCSRBuffer  memory;
  double       *b, *x, *spare, *r, *d; /* in it; spare: for a step, which cannot write the x that it multiplies with */
} GPUMGLevel;

/* A recorded application */
typedef struct {
  const double *b;
  double       *x;
  void         *graph; /* NULL: not recorded */
} GPUMGRecord;

typedef struct _n_GPUMGCycle GPUMGCycle;
struct _n_GPUMGCycle {
  GPUCSRDevice dev;
  PCMGType     type;
  int          levels, cycles; /* cycles of an application */
  GPUMGLevel   level[GPUMG_LEVELS];
  PetscBool    exact; /* the coarsest level is solved with by a dense inverse, else smoothed */
  GPUCSRBuffer inverse;
  int          bottom;        /* where cycles end: the finest of the small levels that one matrix stands for (tail.c), else 0 */
  GPUCSRBuffer tail, panels;  /* the dense matrix, and its work space */
  PetscMPIInt  size;          /* ranks. Of several, each solves the level where cycles end for all of them: */
  Mat          gathermatrix;  /* its product is the right-hand side of all ranks */
  GPUMGMatrix  gather;        /* device data of gathermatrix */
  int          coarserows;    /* rows of this level on all ranks */
  GPUCSRBuffer coarsevectors; /* right-hand side and solution of all ranks */
  GPUMGCycle  *small;         /* by this cycle of one process, or, NULL, by a dense matrix */
  PetscBool    lent;          /* that is another PC's */
  GPUMGRecord  ownrecord;     /* application to b and x of the finest level */
  GPUMGRecord  callerrecord;  /* application to arrays of the last caller */
  void        *stale;         /* graph of earlier data, which the next record becomes an update of */
  PetscBool    ran;           /* before anything is recorded: what kernels set up for good is there */
  PetscBool    unrecordable;  /* and cannot be recorded */
  double       flops;         /* of an application */
};

/* Options; rows of levels as in docs/options.md */
typedef struct {
  PetscBool wanted, asked;
  PetscInt  tail, small;
} GPUMGOptions;

/* Key: all bytes that PETSc's cycle of a hierarchy reads */
typedef struct {
  char     *bytes;
  size_t    used, room, at;
  PetscBool comparing, differs, inside;
} GPUMGKey;

/* key.c */
GPUCSR_INTERN PetscErrorCode GPUMGKeyTake(PC, GPUMGKey *);
GPUCSR_INTERN PetscErrorCode GPUMGKeySame(PC, GPUMGKey *, PetscBool *);
GPUCSR_INTERN PetscErrorCode GPUMGKeyDestroy(GPUMGKey *);
GPUCSR_INTERN PetscErrorCode GPUMGPlain(KSP, PetscBool *);
GPUCSR_INTERN PetscErrorCode GPUMGInside(PC, PetscInt *, KSP **, KSP *);

/* options.c */
GPUCSR_INTERN PetscErrorCode GPUMGAsked(PC, GPUMGOptions *);

/* cycle.c */
GPUCSR_INTERN PetscErrorCode GPUMGCycleRun(GPUMGCycle *, const double *b, double *x, const GPUCSRSums *);
GPUCSR_INTERN PetscErrorCode GPUMGCycleApplyVecs(GPUMGCycle *, GPUCSREvent *, Vec b, Vec x);
GPUCSR_INTERN size_t         GPUMGCycleVectorBytes(int n);
GPUCSR_INTERN void           GPUMGCycleVectors(GPUMGLevel *);
GPUCSR_INTERN PetscErrorCode GPUMGCycleForget(GPUMGCycle *);
GPUCSR_INTERN PetscErrorCode GPUMGCycleSmallDestroy(GPUMGCycle *);
GPUCSR_INTERN PetscErrorCode GPUMGCycleDestroy(GPUMGCycle *);
GPUCSR_INTERN double         GPUMGCycleBytes(const GPUMGCycle *);

/* densecoarse.c */
GPUCSR_INTERN PetscErrorCode GPUMGTailMake(GPUMGCycle *, int most);

/* polynomial.c */
GPUCSR_INTERN PetscErrorCode GPUMGPolynomial(KSP, GPUMGSmoother *, PetscBool *);

/* ranks.c */
GPUCSR_INTERN PetscErrorCode GPUMGRanksSolving(const GPUMGCycle *, PetscBool);
GPUCSR_INTERN PetscErrorCode GPUMGRanksCheck(const GPUMGCycle *);
GPUCSR_INTERN PetscErrorCode GPUMGRanksFail(const GPUMGCycle *, const char message[]);
GPUCSR_INTERN PetscErrorCode GPUMGRanksColumns(KSP, Mat, double *all);
GPUCSR_INTERN PetscErrorCode GPUMGRanksAllRows(Mat, Mat *);
GPUCSR_INTERN PetscErrorCode GPUMGRanksSmall(GPUMGCycle *, MPI_Comm, PetscInt small, PetscInt most);

/* levels.c */
GPUCSR_INTERN PetscErrorCode GPUMGPCApply(void *ksp, Vec, Vec);
GPUCSR_INTERN PetscErrorCode GPUMGPCProbe(KSP, PetscInt first, PetscInt count, Vec unit, Vec column, double rows[]);
GPUCSR_INTERN PetscErrorCode GPUMGLevelsTake(PC, GPUMGCycle *, PetscBool *, char[], size_t);
GPUCSR_INTERN PetscErrorCode GPUMGLevelsMoved(const GPUMGCycle *, PetscBool *);

/* pcmg.c */
GPUCSR_INTERN PetscErrorCode PCMGInitialize_Private(void);
GPUCSR_INTERN PetscErrorCode PCMGCycleGet_Private(PC, GPUMGCycle **, PetscInt *version);

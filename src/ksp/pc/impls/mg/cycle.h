#pragma once

/*
  A cycle of multigrid on one device: levels whose operators and interpolations are matrices of this library, smoothers that are polynomials, and a coarse solver that is a dense
  inverse or such a polynomial. Made from a PCMG by levels.c, run by cycle.c, hooked into PCMG and PCGAMG by pcmg.c.
*/
#include <petscksp.h>
#include "../../../../mat/impls/gpucsr/product/operator.h"
#include "pass.h"

#define GPUMG_LEVELS  16 /* at most */
#define GPUMG_STEPS   32 /* of a smoother at most */
#define GPUMG_VECTORS 5  /* of a level */

/* Device memory that is kept for the next hierarchy */
typedef struct {
  void  *p;
  size_t bytes;
} GPUMGMemory;

/* So many steps d = ca d + cb M (b - A x), x += d: all that Chebyshev's and Richardson's iterations are */
typedef struct {
  double ca, cb;
} GPUMGStep;

typedef struct {
  int         steps;
  GPUMGStep   step[GPUMG_STEPS];
  PetscBool   fromzero; /* it starts from 0, whatever x is */
  int         bs;       /* M: 0 none, 1 a diagonal, else diagonal blocks of this size, */
  GPUMGMemory M;        /* by rows */
} GPUMGSmoother;

/* A matrix that takes part, or its transpose */
typedef struct {
  Mat            A; /* not counted */
  GPUCSROperator o; /* of several ranks, of its diagonal block, */
  GPUCSRRanks    r; /* and the rest; no halo: of one */
  PetscBool      transposed;
  const void    *data; /* of the plan's first array, when the cycle was made */
} GPUMGMatrix;

/* One that the program has as MATSEQAIJ, as a matrix of ours */
typedef struct {
  Mat        A;
  PetscInt64 id, state; /* what it was made from */
} GPUMGCopy;

typedef struct {
  int           n;
  int           cycles;  /* on the next coarser level: 1 V, 2 W */
  GPUMGMatrix   A, P, R; /* P: to this level from the next coarser one; R: back */
  GPUMGCopy     copy[3]; /* of the matrices of A, P and R */
  GPUMGSmoother down, up;
  PetscBool     two; /* up is another one than down */
  GPUMGMemory   memory;
  double       *b, *x, *spare, *r, *d; /* in it; spare: for a step, which cannot write the x that it multiplies with */
} GPUMGLevel;

/* A recorded application */
typedef struct {
  const double *b;
  double       *x;
  void         *graph; /* NULL: it is not, or not yet */
} GPUMGRecord;

typedef struct _n_GPUMGCycle GPUMGCycle;
struct _n_GPUMGCycle {
  GPUCSRDevice dev;
  PCMGType     type;
  int          levels, cycles; /* cycles of an application */
  GPUMGLevel   level[GPUMG_LEVELS];
  PetscBool    exact; /* the coarsest level is solved with by a dense inverse, else smoothed */
  GPUMGMemory  inverse;
  int          bottom;       /* where cycles end: the finest of the small levels that one matrix stands for (tail.c), else 0 */
  GPUMGMemory  tail, panels; /* that matrix, and what it was made in */
  PetscMPIInt  size;         /* ranks. Of several, each solves the level where cycles end for all of them: */
  Mat          everything;   /* its product is the right-hand side of all ranks, */
  GPUMGMatrix  all;          /* as it takes part, */
  int          whole;        /* so many rows, */
  GPUMGMemory  both;         /* which, and their solution, are here, */
  GPUMGCycle  *small;        /* by this cycle of one process, or, NULL, by a dense matrix */
  GPUMGRecord  own, last;    /* applications to b and x of the finest level, and to those of the last caller */
  PetscBool    ran;          /* before anything is recorded: what kernels set up for good is there */
  PetscBool    unrecordable; /* and cannot be recorded */
  double       flops;        /* of an application */
};

/* What was asked for; rows of levels, as docs/options.md has them */
typedef struct {
  PetscBool wanted, asked;
  PetscInt  tail, small;
} GPUMGOptions;

/* All that PETSc's cycle of a hierarchy looks at */
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

/* asked.c */
GPUCSR_INTERN PetscErrorCode GPUMGAsked(PC, GPUMGOptions *);

/* cycle.c */
GPUCSR_INTERN PetscErrorCode GPUMGCycleRun(GPUMGCycle *, const double *b, double *x, const GPUCSRSums *);
GPUCSR_INTERN PetscErrorCode GPUMGCycleApply(GPUMGCycle *, const double *b, double *x);
GPUCSR_INTERN PetscErrorCode GPUMGCycleApplyVecs(GPUMGCycle *, GPUCSREvent *, Vec b, Vec x);
GPUCSR_INTERN size_t         GPUMGCycleVectorBytes(int n);
GPUCSR_INTERN void           GPUMGCycleVectors(GPUMGLevel *);
GPUCSR_INTERN PetscErrorCode GPUMGCycleForget(GPUMGCycle *);
GPUCSR_INTERN PetscErrorCode GPUMGCycleDestroy(GPUMGCycle *);
GPUCSR_INTERN PetscErrorCode GPUMGGrow(GPUCSRDevice, size_t, const char[], GPUMGMemory *);
GPUCSR_INTERN PetscErrorCode GPUMGFree(GPUCSRDevice, GPUMGMemory *);
GPUCSR_INTERN double         GPUMGCycleBytes(const GPUMGCycle *);

/* tail.c */
GPUCSR_INTERN PetscErrorCode GPUMGTailMake(GPUMGCycle *, int most);

/* polynomial.c */
GPUCSR_INTERN PetscErrorCode GPUMGPolynomial(KSP, GPUMGSmoother *, PetscBool *);

/* ranks.c */
GPUCSR_INTERN PetscErrorCode GPUMGRanksSolving(const GPUMGCycle *, PetscBool);
GPUCSR_INTERN PetscErrorCode GPUMGRanksCheck(const GPUMGCycle *);
GPUCSR_INTERN PetscErrorCode GPUMGRanksFail(const GPUMGCycle *, const char message[]);
GPUCSR_INTERN PetscErrorCode GPUMGRanksColumns(KSP, Mat, double *all);
GPUCSR_INTERN PetscErrorCode GPUMGRanksSmall(GPUMGCycle *, MPI_Comm, PetscInt small, PetscInt most);

/* levels.c */
GPUCSR_INTERN PetscErrorCode GPUMGPCApply(KSP, Vec, Vec);
GPUCSR_INTERN PetscErrorCode GPUMGLevelsTake(PC, GPUMGCycle *, PetscBool *, char[], size_t);
GPUCSR_INTERN PetscErrorCode GPUMGLevelsMoved(const GPUMGCycle *, PetscBool *);

/* pcmg.c */
GPUCSR_INTERN PetscErrorCode PCGAMGProlongator_Private(PC);
GPUCSR_INTERN PetscErrorCode PCMGInitialize_Private(void);
GPUCSR_INTERN PetscErrorCode PCMGFinalize_Private(void);
GPUCSR_INTERN PetscErrorCode PCMGCycleGet_Private(PC, GPUMGCycle **, PetscInt *version);

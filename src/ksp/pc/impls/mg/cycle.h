#pragma once

/*
  A multigrid cycle on one device. Operators and interpolations are matrices of this library. Smoothers are polynomials. The coarse solver is a dense inverse or a smoother. levels.c makes the cycle from
  a PCMG, cycle.c runs the cycle, and pcmg.c lets PCMG and PCGAMG call it.
*/
#include <petscksp.h>
#include "../../../../mat/impls/gpucsr/product/operator.h"
#include "pass.h"

#define GPUMG_LEVELS 16 /* at most */
#define GPUMG_STEPS  32 /* of a smoother at most */

/* A step d = ca d + cb M (b - A x), x += d; Chebyshev's and Richardson's iterations have steps of this form */
typedef struct {
  double ca, cb;
} GPUMGStep;

typedef struct {
  int               steps;
  GPUMGStep         step[GPUMG_STEPS];
  PetscBool         fromzero;   /* the smoother starts from 0 and does not read x */
  int               bs;         /* M: 0 none, 1 a diagonal, else diagonal blocks of size bs */
  GPUCSRBuffer      M;          /* by rows */
  const void       *rounded;    /* M in floats, of a cycle in floats */
  PetscBool         factors;    /* M is the solve with a factor, and bs 0 */
  Mat_GPUCSRFactor *factor;     /* which another object owns; NULL on a rank without rows */
  PetscBool         transposed; /* the solve */
} GPUMGSmoother;

/* Do smoothers of the level solve with factors? The answer is the same on all ranks */
#define GPUMGFactored(L) ((L)->down.factors || ((L)->two && (L)->up.factors))

/* A matrix of the cycle, or its transpose */
typedef struct {
  Mat            A; /* not counted */
  GPUCSROperator o; /* the matrix of one rank, or the diagonal block of several ranks */
  GPUCSRRanks    r; /* the off-diagonal block; without a halo: one rank */
  PetscBool      transposed;
  const void    *data; /* address of the plan's first array when the cycle was made */

  const GPUCSRStorage *rows; /* in CSR, for products with several vectors at once; NULL: with one */
} GPUMGMatrix;

/* A copy of a MATSEQAIJ of the program in type gpucsr */
typedef struct {
  Mat        A;
  PetscInt64 id, state; /* of the original */
} GPUMGCopy;

typedef struct {
  int           n;
  int           cycles;  /* visits of the next coarser level: 1 V, 2 W */
  GPUMGMatrix   A, P, R; /* P: from the next coarser level to this level; R: back */
  GPUMGCopy     copy[3]; /* of the matrices of A, P and R */
  GPUMGSmoother down, up;
  PetscBool     two; /* up and down differ */
  GPUCSRBuffer  memory;
  void         *r, *d, *spare, *b, *x; /* in memory; spare: a step writes its x here, because its product reads the old x */
  GPUCSRBuffer  krylov;                /* of a K-cycle's Krylov method: two vectors, and parts of sums */
} GPUMGLevel;

/* A recorded application */
typedef struct {
  const double *b;
  double       *x;
  void         *graph; /* NULL: not recorded */
} GPUMGRecord;

/* The Krylov method at coarse levels of K-cycles */
typedef enum {
  GPUMG_KRYLOV_NONE, /* V- or W-cycles */
  GPUMG_KRYLOV_CG,
  GPUMG_KRYLOV_GCR
} GPUMGKrylovMethod;

typedef struct _n_GPUMGCycle GPUMGCycle;
struct _n_GPUMGCycle {
  GPUCSRDevice      dev;
  PCMGType          type;
  int               levels, cycles; /* cycles of an application */
  GPUMGLevel        level[GPUMG_LEVELS];
  GPUMGKrylovMethod krylov;
  PetscBool         exact; /* a dense inverse solves on the coarsest level, otherwise a smoother */
  GPUCSRBuffer      inverse;
  int               bottom;       /* level where cycles end: the finest of the small levels behind the dense matrix, else 0 */
  GPUCSRBuffer      tail, panels; /* the dense matrix, and its work space */
  PetscBool         floats;       /* V- or W-cycles of one rank, whose operators, smoothers' data and level vectors are floats */
  GPUCSRBuffer      rounded;      /* their numbers at the ends, then M of the levels, and the dense matrix where cycles end: */
  const void       *dense;
  MPI_Comm          comm;
  PetscMPIInt       size;          /* number of ranks; each rank solves all rows of the level where cycles end: */
  Mat               gathermatrix;  /* its product is the right-hand side of all ranks */
  GPUMGMatrix       gather;        /* device data of gathermatrix */
  int               coarserows;    /* rows of the level on all ranks, */
  int               coarsefirst;   /* and the first of this rank */
  GPUCSRBuffer      coarsevectors; /* right-hand side and solution of all ranks */
  GPUMGCycle       *small;         /* another PC's cycle of one process solves on the level; NULL: a dense matrix solves */
  GPUCSRBuffer      ends;          /* of the vectors of an application that cannot work on the arrays of its caller: */
  double           *b, *x;
  GPUMGRecord       ownrecord;    /* application to these */
  GPUMGRecord       callerrecord; /* application to arrays of the last caller */
  void             *stale;        /* graph of earlier data, which the next record becomes an update of */
  PetscBool         ran;          /* the cycle has run once without a record, and kernels have set up their permanent data */
  PetscBool         unrecordable; /* a graph cannot record the cycle */
  PetscBool         host;         /* the host takes part in an application, so no graph can record it */
  PetscBool         met;          /* this rank has been in the exchanges of the present application */
  double            flops;        /* of an application */
};

/* Options; rows of levels as in docs/options.md */
typedef struct {
  PetscBool wanted, asked;
  PetscInt  tail;
} GPUMGOptions;

/* Key: all bytes that PETSc's cycle of a hierarchy reads */
typedef struct {
  char     *bytes;
  size_t    used, room, at;
  PetscBool comparing, differs, inside;
} GPUMGKey;

/* key.c */
GPUCSR_INTERN PetscErrorCode GPUMGKeyNote(PC, GPUMGKey *, PetscBool *same);
GPUCSR_INTERN PetscErrorCode GPUMGPlain(KSP, PetscBool *);
GPUCSR_INTERN PetscErrorCode GPUMGInside(PC, PetscInt *, KSP **, KSP *);

/* options.c */
GPUCSR_INTERN PetscErrorCode GPUMGAsked(PC, GPUMGOptions *);

/* cycle.c */
GPUCSR_INTERN PetscErrorCode GPUMGCycleRun(GPUMGCycle *, const double *b, double *x, const GPUCSRSums *);
GPUCSR_INTERN PetscErrorCode GPUMGCycleApplyVecs(GPUMGCycle *, GPUCSREvent *, Vec b, Vec x);
GPUCSR_INTERN size_t         GPUMGCycleVectorBytes(const GPUMGCycle *, int l);
GPUCSR_INTERN void           GPUMGCycleVectors(GPUMGCycle *, int l);
GPUCSR_INTERN PetscErrorCode GPUMGCycleEnds(GPUMGCycle *);
GPUCSR_INTERN PetscErrorCode GPUMGTailMake(GPUMGCycle *, int most);
GPUCSR_INTERN PetscErrorCode GPUMGCycleKrylov(GPUMGCycle *, GPUMGKrylovMethod);
GPUCSR_INTERN PetscErrorCode GPUMGCycleForget(GPUMGCycle *);
GPUCSR_INTERN PetscErrorCode GPUMGCycleDestroy(GPUMGCycle *);
GPUCSR_INTERN double         GPUMGCycleBytes(const GPUMGCycle *);
GPUCSR_INTERN PetscErrorCode GPUMGCycleCheck(const GPUMGCycle *);

/* pass.c, collective: sums of all ranks pass through the host. *error: of this rank, whose sums are then NaN */
GPUCSR_INTERN PetscErrorCode GPUMGKrylovStepOfRanks(GPUCSRDevice, const GPUMGKrylov *, int step, MPI_Comm, PetscErrorCode *error, GPUCSRStream);

/* polynomial.c */
GPUCSR_INTERN PetscErrorCode GPUMGPolynomial(KSP, GPUMGSmoother *, PetscBool *);

/* ranks.c */
GPUCSR_INTERN PetscErrorCode GPUMGRanksSolving(const GPUMGCycle *, PetscBool);
GPUCSR_INTERN PetscErrorCode GPUMGRanksRecord(const GPUMGCycle *, PetscBool);
GPUCSR_INTERN PetscErrorCode GPUMGRanksCheck(const GPUMGCycle *);
GPUCSR_INTERN PetscErrorCode GPUMGRanksFail(const GPUMGCycle *, const char message[]);
GPUCSR_INTERN PetscErrorCode GPUMGRanksAllgather(MPI_Comm, PetscInt own, MPI_Datatype, const void *mine, void *all);

/* levels.c */
GPUCSR_INTERN PetscErrorCode GPUMGPCApply(void *ksp, Vec, Vec);
GPUCSR_INTERN PetscErrorCode GPUMGPCDiagonal(const GPUCSROperator *, KSP, double *);
GPUCSR_INTERN PetscErrorCode GPUMGPCColumns(GPUCSRDevice, KSP, PetscInt n, PetscInt count, double *);
GPUCSR_INTERN PetscErrorCode GPUMGPCProbe(KSP, PetscInt n, PetscInt first, PetscInt count, double rows[]);
GPUCSR_INTERN PetscErrorCode GPUMGLevelsTake(PC, GPUMGCycle *, PetscBool *, char[], size_t);
GPUCSR_INTERN PetscErrorCode GPUMGLevelsMoved(const GPUMGCycle *, PetscBool *);

/* pcmg.c */
GPUCSR_INTERN PetscErrorCode PCMGInitialize_Private(void);
GPUCSR_INTERN PetscErrorCode PCMGCycleGet_Private(PC, GPUMGCycle **, PetscInt *version);
